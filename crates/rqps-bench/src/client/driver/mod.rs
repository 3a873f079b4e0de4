//! Starts the program, once for each client, and has it work in turns.

mod load;
mod member;
mod program;
mod step;

pub use load::{CLIENT_COMMAND, declared};
pub(super) use load::{own_load, request, script};
pub(super) use step::step_loop;
