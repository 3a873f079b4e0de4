//! Finds other differences between targets whose rates or counts differ: settings of their servers,
//! and counters of the DBMS. Such a difference may be the cause of a rate; it is no proof.

mod counters_of_runs;
mod find;
mod found;

pub use counters_of_runs::{ReadCounters, TakeCounter};
pub use find::{CauseReaders, ReadSettings, differing_steps, find};
pub use found::{Causes, CausesOfStep, SettingsOfTarget};
