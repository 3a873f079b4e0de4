//! Small, harmless forms of the attacks of a security review, each on the whole program or on a
//! real server: docs/security.md names what is promised against whom.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod behind;
mod consent;
mod edges;
mod hosts;
mod root;
mod servers;
mod sql;
