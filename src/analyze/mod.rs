//! From facts to judgements: metrics per operation, comparison by block, group summaries, caveats.
//! Pure functions over a dataset; the same runs give the same numbers for ever.

pub mod calibration;
pub mod caveat;
pub mod compare;
pub mod counters;
pub mod gate;
pub mod groups;
pub mod histogram;
pub mod host_noise;
pub mod measured;
pub mod metrics;
pub mod plans;
pub mod remarks;
mod seconds;
pub mod sessions;
pub mod turns;
pub mod verdict;
pub mod write_rate;

pub use caveat::Caveat;
pub use compare::{AnalyzeError, Comparison, compare, compare_measured};
pub use measured::digest;
pub use verdict::VerdictOptions;
