//! Reasons to doubt a number, as data: kind, place, size, and advice.

mod comparability;
mod completeness;
mod course;
mod evidence;
mod find;
mod kind;
mod measuring;
mod planning;
mod readahead;

pub use evidence::*;
pub use evidence::{Evidence, most, percent, worst};
pub use kind::{Caveat, CaveatKind};
pub use readahead::too_large;

pub(super) use find::find;
