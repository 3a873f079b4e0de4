//! Counted runs: instructions per operation, and the functions that a target executes more or less
//! of than the baseline.

mod functions;
mod total;
mod work;

pub use functions::{Change, FunctionChange, FunctionComparison, compare_functions};
pub use total::{SAME_WITHIN, TotalChange};
pub(super) use work::metrics;
pub use work::{FunctionCost, is_counted};
