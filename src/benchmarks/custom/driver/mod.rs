//! Loads of workload files, and drafts of them from a running database.

mod draft;
mod facts;
mod load;
mod statements;
mod survey;

pub use draft::draft;
pub use facts::DatabaseSurvey;
pub(super) use load::load;
pub use survey::{AskDatabase, survey};
