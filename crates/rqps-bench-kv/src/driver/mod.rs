//! Carries out the steps of the RocksDB sequence.

mod client;
mod counted;
mod limiter;
mod maintain;
mod player;
mod setup;
mod step;
mod workers;
mod writer;

pub(crate) use step::step_loop;
