//! LuaJIT in this process: a state with a limited heap, and the C functions by which scripts reach
//! what rqps offers them.
//!
//! The library is the one that the system has for the real sysbench, loaded at run time. It costs
//! no build, and scripts get the same `math.random` and the same `ffi` as there.

mod bridge;
mod heap;
mod host;
mod library;
mod state;

pub use heap::HeapLimit;
pub use host::{Binding, RandomDraw, Report, RowCells, ScriptHost, StatementEnd};
pub use library::{LuaError, LuaJit};
pub use state::{EventEnd, LuaState};
