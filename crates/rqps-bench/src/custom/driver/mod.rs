//! Loads of workload files, and drafts of them from a running database.

mod draft;
mod facts;
mod keys;
mod load;
mod names;
mod parameters;
mod ranges;
mod statements;
mod survey;
mod written;

pub use draft::draft;
pub use facts::{AskDatabase, DatabaseSurvey};
pub(super) use load::load;
pub use parameters::DraftFile;
pub use survey::survey;
