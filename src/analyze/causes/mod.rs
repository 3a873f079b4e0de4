//! What else differs between targets whose rates or counts differ: settings that their servers had,
//! and counters of the DBMS. What differs together with a rate may be its cause; it is no proof.

mod find;
mod found;

pub use find::{CauseReaders, ReadCounters, ReadSettings, differing_steps, find};
pub use found::{Causes, CausesOfStep, SettingsOfTarget};
