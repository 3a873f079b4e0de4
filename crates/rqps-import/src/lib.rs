//! Importers: results that others measured and published become run folders, so that `rqps report`
//! works on them (docs/importing.md).
//!
//! Parsers take a [`text::Text`] and never panic; what they cannot read is an error with file and
//! line. Nothing is invented: a metric that is not in the files stays missing.
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cells;
pub mod format;
pub mod insert;
pub mod kv;
pub mod published;
mod series;
pub mod sysbench;
pub mod text;
pub mod vector;

pub use cells::{Cells, Totals};
use format::unnamed;
pub use format::{Across, FORMATS, ImportError, ImportFormat, ImportOptions, Named, read};
pub use format::{IMPORTED, Written, write};
pub use published::{Check, NOT_IN_FILES, Published, PublishedRun};
