//! Reads and checks pgbench scripts, and makes steps of them.

mod reading;
mod sequence;

pub(super) use reading::{check, has_tables};
pub(super) use sequence::{COUNTING, phases, writes};
