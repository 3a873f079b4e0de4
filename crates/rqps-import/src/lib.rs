//! Importers: results that others measured and published become run folders, so that `rqps report`
//! works on them (docs/importing.md).
//!
//! Parsers take a [`text::Text`] and never panic; what they cannot read is an error with file and
//! line. Nothing is invented: a metric that is not in the files stays missing.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cells;
mod error;
mod folder;
mod format;
mod hammerdb;
pub mod insert;
pub mod iostat;
pub mod kv;
mod leftovers;
pub mod notice;
mod number;
mod one_build;
mod one_set;
mod options;
mod published;
mod read;
mod series;
mod stream;
pub mod sysbench;
pub mod tag;
pub mod text;
mod variants;
pub mod vector;
pub mod vmstat;

pub use cells::{Cells, Totals};
pub use error::ImportError;
pub use folder::{Written, write};
pub use format::{FORMATS, ImportFormat};
pub use options::{Across, ImportOptions, Named};
pub use published::{Check, NOT_IN_FILES, Published, PublishedRun};
pub use read::read;

use options::unnamed;
