//! Keys and values as RocksDB's db_bench makes them: the same numbers give the same bytes, so that
//! its runs and those of rqps can be compared.

mod entries;
mod key_numbers;
mod mix_draws;
mod twister;

pub use entries::{ValuePool, key};
pub use key_numbers::KeyNumbers;
pub use mix_draws::MixDraws;
