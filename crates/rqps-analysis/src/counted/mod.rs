//! Counted runs: instructions per operation, and the functions that a target executes more or less
//! of than the baseline.

mod change;
mod difference;
mod functions;
mod moved;
mod nameless;
mod weaker;
mod work;

pub(super) use change::{compare, explain};
pub use difference::{
    BackgroundChange, Change, CountedChange, FunctionChange, FunctionComparison, FunctionCost,
    TotalChange,
};
pub use difference::{COUNTS_TAU, SAME_WITHIN};
pub use weaker::plain_name;
pub use work::is_counted;
pub(super) use work::metrics;
