//! How the driver loads the tables, what its clients do, and how it checks what they left.

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
