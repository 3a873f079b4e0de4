//! The steps of the sysbench microbenchmarks as data: a table of test types, two orders of steps,
//! and their SQL by dialect.

mod listing;
mod microbenchmarks;
mod sequence;
mod statements;

pub use listing::{operations, statements};
pub use microbenchmarks::{
    Lasts, MICROBENCHMARKS, Microbenchmark, Ranged, SbtestIndex, StatementShape, UPDATE_INLIST_IDS,
    ZIPF_EXPONENT,
};
pub(super) use sequence::COUNTING;
pub use sequence::{choose, phases};
pub use statements::{COLUMN_C, COLUMN_PAD};
