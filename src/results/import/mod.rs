//! Importers: results that others measured and published become run folders, so that `rqps report`
//! works on them (docs/importing.md).
//!
//! Parsers take a [`text::Text`] and never panic; what they cannot read is an error with file and
//! line. Nothing is invented: a metric that is not in the files stays missing.

mod error;
mod folder;
pub mod ibench_histograms;
mod ibench_mytools;
mod ibench_sources;
pub mod ibench_summary;
pub mod ibench_tables;
pub mod iostat;
pub mod met_tables;
mod mytools_raw;
mod mytools_sources;
mod mytools_verify;
pub mod notice;
mod published;
pub mod sb_met;
mod sysbench_mytools;
pub mod sysbench_names;
pub mod sysbench_output;
mod sysbench_record;
pub mod sysbench_tables;
pub mod tag;
pub mod text;
pub mod vmstat;

use std::path::PathBuf;

pub use error::ImportError;
pub use folder::{Written, write};
pub use published::{Check, NOT_IN_FILES, Published, PublishedRun};

/// What can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Published sysbench results: tables and folders of targets.
    SysbenchMytools,
    /// Published results of the Insert Benchmark: tables of perf reports.
    IbenchMytools,
}

impl Format {
    /// All, in the order of the documentation.
    pub const ALL: [Format; 2] = [Format::SysbenchMytools, Format::IbenchMytools];

    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Format::SysbenchMytools => "sysbench-mytools",
            Format::IbenchMytools => "ibench-mytools",
        }
    }

    /// The format of a word.
    ///
    /// # Errors
    /// [`ImportError::Words`] with the words there are.
    pub fn from_word(word: &str) -> Result<Format, ImportError> {
        let found = Format::ALL.into_iter().find(|format| format.word() == word);
        found.ok_or_else(|| {
            let known: Vec<&str> = Format::ALL.iter().map(|format| format.word()).collect();
            let known = known.join(", ");
            ImportError::Words(format!("`{word}`: no such format (known: {known})"))
        })
    }
}

/// What was said on the command line beside format and paths.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Take published means of vmstat even where samples would give better ones.
    pub compat: bool,
    /// The disk under the data, as iostat names it.
    pub device: Option<String>,
    /// Clients of the columns of a table.
    pub clients: Vec<u32>,
    /// Names of the steps of a table that has none.
    pub steps: Vec<String>,
    /// CPUs of the host.
    pub cpus: Option<u32>,
}

/// Reads others' results.
///
/// # Errors
/// See [`ImportError`].
pub fn read(
    format: Format,
    paths: &[PathBuf],
    options: &Options,
) -> Result<Published, ImportError> {
    match format {
        Format::SysbenchMytools => sysbench_mytools::read(paths, options),
        Format::IbenchMytools => ibench_mytools::read(paths, options),
    }
}
