//! The driver of the order mix: load, clients, and checks after a step.

mod calls;
mod check;
mod client;
mod inputs;
mod load;
mod procedures;
mod rows;
mod sql;
mod statements;
mod step;

pub(super) use load::{load, part_rows};
pub(super) use step::step_loop;
