//! From facts to judgements: metrics per operation, comparison by block, group summaries, caveats.
//! Pure functions over a dataset; the same runs always give the same numbers.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod allowance;
pub mod answers;
mod assembly;
pub mod bisection;
pub mod calibration;
pub mod causes;
pub mod caveat;
mod clusters;
mod compare;
pub mod comparison;
pub mod confirm;
pub mod counted;
pub mod counters;
pub mod crossing;
pub mod estimand;
pub mod extension;
pub mod families;
mod finding;
pub mod gap;
pub mod gate;
mod gate_history;
mod gate_job;
pub mod groups;
pub mod histogram;
pub mod history;
pub mod host_noise;
pub mod layout;
pub mod ledger;
pub mod loads;
mod measure;
pub mod measurement;
pub mod metrics;
mod number;
pub mod pairing;
pub mod plans;
pub mod remarks;
pub mod repetition;
pub mod sampled;
pub mod server_settings;
pub mod sessions;
pub mod turns;
pub mod verdict;
mod write_rate;

pub use caveat::Caveat;
pub use compare::{AnalyzeError, compare, compare_measured};
pub use comparison::Comparison;
pub use extension::Extension;
pub use measure::{digest, measure, measure_step};
pub use verdict::VerdictOptions;
