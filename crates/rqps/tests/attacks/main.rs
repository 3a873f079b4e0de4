//! Small, harmless forms of the attacks of a security review, each on the whole program or on a
//! real server: docs/security.md names what is promised against whom.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod consent;
mod edges;
mod hosts;
mod root;
mod servers;
mod sql;

#[path = "../builds/mod.rs"]
mod builds;
#[allow(dead_code, reason = "other tests read sessions")]
#[path = "../statements/log.rs"]
mod log;
#[path = "../program/mod.rs"]
mod program;
#[path = "../server_place/mod.rs"]
mod server_place;
#[path = "../skipped/mod.rs"]
mod skipped;
#[path = "../terminal/mod.rs"]
mod terminal;
#[allow(dead_code, reason = "other tests read the server's log")]
#[path = "../theirs/mod.rs"]
mod theirs;
