//! From facts to judgements: metrics per operation, comparison by block, group summaries, caveats.
//! Pure functions over a dataset; the same runs always give the same numbers.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod answers;
pub mod best_rate;
pub mod calibration;
pub mod causes;
pub mod caveat;
mod classes;
mod compare;
pub mod comparison;
pub mod confirm;
pub mod counted;
pub mod families;
pub mod gap;
pub mod gate;
pub mod history;
pub mod measurement;
pub mod pairing;
pub mod repetition;
pub mod sampled;
pub mod verdict;

pub use caveat::Caveat;
pub use compare::{AnalyzeError, compare, compare_measured};
pub use comparison::Comparison;
pub use measurement::{Extension, digest, measure, measure_step};
pub use verdict::VerdictOptions;
