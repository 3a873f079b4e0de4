//! Builds from any suite of Debian.

mod apt;
mod fetch;
mod loader;
mod mirror;
mod tree;
mod words;

pub(super) use fetch::{Request, check_names, fetch};
pub(super) use loader::ASIDE;
