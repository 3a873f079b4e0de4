//! Carries out the steps of the RocksDB sequence.

mod client;
mod counted;
mod crew;
mod limiter;
mod maintain;
mod player;
mod setup;
mod step;
mod writer;

pub(crate) use step::step_loop;
