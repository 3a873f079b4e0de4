//! Loads of workload files, and drafts of them from a running database.

mod digests;
mod draft;
mod facts;
mod functions;
mod keys;
mod load;
mod named_tables;
mod names;
mod operands;
mod pairs;
mod parameters;
mod ranges;
mod rows;
mod statements;
mod survey;
mod token_tree;
mod typed;
mod values;
mod written;

pub use draft::draft;
pub use facts::{AskDatabase, DatabaseSurvey};
pub(super) use load::load;
pub use parameters::DraftFile;
pub use survey::survey;
