//! Runs pgbench scripts: the interpreter of a client, and the standard tables.

mod arithmetic;
mod client;
mod evaluate;
mod functions;
#[doc(hidden)]
pub mod fuzzing;
mod load;
mod numbers;
mod samples;
mod scripts;
mod step;
mod variables;

pub(crate) use load::{load, own_load};
pub(crate) use step::step_loop;
