//! Builds from any suite of Debian.

mod apt;
mod fetch;
mod loader;
mod mirror;
mod tree;
mod words;

pub(super) use apt::parse_uri;
pub(super) use fetch::{Request, check_names, fetch, name_and_version};
pub(super) use loader::ASIDE;
pub(super) use mirror::choose;
