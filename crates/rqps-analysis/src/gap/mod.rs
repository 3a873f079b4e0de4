//! The gap between two targets: what of one could be put into the other, and what each of these
//! changes is worth.

mod candidates;
mod closed;

pub use candidates::{Candidates, LeftOut, candidates, not_taken};
pub use closed::{Cause, Gap, GapCost, GapEnds, Unknown};
