//! Importers: results that others measured and published become run folders, so that `rqps report`
//! works on them (docs/importing.md).
//!
//! Parsers take a [`text::Text`] and never panic; what they cannot read is an error with file and
//! line. Nothing is invented: a metric that is not in the files stays missing.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod cells;
mod echo;
mod error;
mod folder;
mod format;
pub mod iostat;
pub mod leftovers;
pub mod notice;
pub mod number;
pub mod one_build;
mod one_set;
mod options;
pub mod published;
mod read;
mod stream;
pub mod tag;
pub mod text;
pub mod variants;
pub mod vmstat;

pub use error::ImportError;
pub use folder::{Written, write};
pub use format::ImportFormat;
pub use options::{Across, ImportOptions, Named};
pub use published::{Check, NOT_IN_FILES, Published, PublishedRun};
pub use read::read;

pub use options::unnamed;
