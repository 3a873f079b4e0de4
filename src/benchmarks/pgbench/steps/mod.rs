//! The steps of a workload of scripts: read, refused, made into what the driver carries out.

mod reading;
mod sequence;

pub(super) use reading::{check, has_tables};
pub(super) use sequence::{COUNTING, phases, writes};
