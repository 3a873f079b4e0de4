//! Tables of rqps on a server that somebody else runs: a schema or database of its own, or, where
//! it may not make one, the given one without anything in it that rqps did not make.

mod catalogue;
mod claim;
mod ledger;
mod owner;
mod stranger;
mod sweep;
mod trust;

pub(super) use claim::{Ownership, Theirs};
pub use owner::Guest;
pub(super) use sweep::sweep;
pub(super) use trust::open_schemas;
