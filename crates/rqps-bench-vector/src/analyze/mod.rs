//! Metrics and rules of vector search.

mod caveats;
pub(crate) mod equal_recall;
mod extension;
pub mod recall;
pub mod verify;

pub(crate) use extension::EXTENSION;
