//! What needs a server or files: how tables are filled, and a draft of a workload from a running
//! database.

mod draft;
mod load;
mod statements;
mod survey;

pub use draft::draft;
pub(super) use load::load;
pub use survey::{AskDatabase, DatabaseSurvey, survey};
