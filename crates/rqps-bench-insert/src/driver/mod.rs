//! Carries out the steps of the Insert Benchmark.

mod counted;
mod fake;
mod make;
mod meter;
mod observer;
mod outcome;
mod pair;
mod prepare;
mod querier;
mod step;
mod text;
mod turns;
mod writer;

pub(crate) use step::step_loop;
