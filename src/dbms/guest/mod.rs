//! Tables of rqps on a server that somebody else runs: a schema or database of its own, or, where
//! it may not make one, the given one without anything in it that rqps did not make.

mod catalogue;
mod claim;
mod owner;
mod stranger;

pub(super) use claim::{Claim, Theirs, sweep};
pub use owner::Guest;
