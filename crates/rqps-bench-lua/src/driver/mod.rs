//! Runs scripts: a state of LuaJIT per client, and the functions that scripts call.

mod client;
mod declarations;
mod event_cap;
mod host;
mod load;
mod placeholders;
mod random;
mod reports;
mod restarts;
mod state;
mod step;
mod values;

pub use declarations::{LUA_COMMAND, declared};
pub(super) use load::{own_load, request, script};
pub(super) use step::step_loop;
