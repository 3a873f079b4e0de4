//! `rqps bisect`: measures versions between two until it is known which of them changed a step.

mod choice;
mod measuring;
mod outcome;
mod search;
mod versions;

pub use measuring::searched;
pub(super) use measuring::{is_fault_of, step};
pub use search::{BisectionEnd, bisect};
pub use versions::versions;
