//! Importers: results that others measured and published become run folders, so that `rqps report`
//! works on them (docs/importing.md).
//!
//! Parsers take a [`text::Text`] and never panic; what they cannot read is an error with file and
//! line. Nothing is invented: a metric that is not in the files stays missing.

pub mod cells;
mod error;
mod folder;
pub mod iostat;
pub mod notice;
pub mod number;
mod one_set;
pub(crate) mod published;
mod stream;
pub mod tag;
pub mod text;
pub mod vmstat;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use notice::{Notice, NoticeKind};
use text::Text;

pub use error::ImportError;
pub use folder::{Written, write};
pub use published::{Check, NOT_IN_FILES, Published, PublishedRun};

/// What can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Published sysbench results: tables and folders of targets.
    SysbenchMytools,
    /// What sysbench 1.0 and 1.1 print.
    Sysbench,
    /// Published results of the Insert Benchmark: tables of perf reports, and raw files.
    IbenchMytools,
    /// db_bench of RocksDB: published report tables, and its own output.
    Dbbench,
    /// Texts of ann-benchmarks: plots, builds, logs.
    AnnBenchmarks,
}

impl Format {
    /// All, in the order of the documentation.
    pub const ALL: [Format; 5] = [
        Format::SysbenchMytools,
        Format::Sysbench,
        Format::IbenchMytools,
        Format::Dbbench,
        Format::AnnBenchmarks,
    ];

    /// The word of the command line.
    pub fn word(self) -> &'static str {
        match self {
            Format::SysbenchMytools => "sysbench-mytools",
            Format::Sysbench => "sysbench",
            Format::IbenchMytools => "ibench-mytools",
            Format::Dbbench => "dbbench",
            Format::AnnBenchmarks => "ann-benchmarks",
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
pub struct ImportOptions {
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
    /// Labels of rows or columns of a table that does not tell its targets.
    pub labels: Vec<String>,
    /// True if rows of one target and step are repetitions, not targets of their own.
    pub repeats: bool,
    /// Rows of this size only, as tags have it: `20m`.
    pub size: Option<String>,
    /// What may differ within the set, because somebody asked for ratios across it.
    pub across: Across,
}

/// What may differ between targets of one import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Across {
    /// The number of rows.
    pub sizes: bool,
    /// The machine.
    pub hosts: bool,
}

/// A file or folder, with what was said before it: `LABEL=PATH`, `LABEL/STEP=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Where it is.
    pub path: PathBuf,
    /// The target it belongs to.
    pub label: Option<String>,
    /// The step it belongs to.
    pub step: Option<String>,
}

impl Named {
    /// Takes a word of the command line apart. What exists as it is written is a path, whatever it
    /// holds.
    pub fn of(word: &str) -> Named {
        let plain = Named { path: PathBuf::from(word), label: None, step: None };
        if plain.path.exists() {
            return plain;
        }
        let Some((label, path)) = word.split_once('=').filter(|(label, _)| !label.is_empty())
        else {
            return plain;
        };
        let (label, step) = match label.split_once('/') {
            Some((label, step)) if !label.is_empty() && !step.is_empty() => (label, Some(step)),
            _ => (label, None),
        };
        Named {
            path: PathBuf::from(path),
            label: Some(label.to_owned()),
            step: step.map(str::to_owned),
        }
    }
}

/// Paths of formats whose files say themselves what they are of.
pub(crate) fn unnamed(paths: &[Named]) -> Result<Vec<PathBuf>, ImportError> {
    if let Some(named) = paths.iter().find(|named| named.label.is_some()) {
        let path = named.path.display();
        return Err(ImportError::Words(format!(
            "`{path}`: files of this format name their targets; leave out the label before it"
        )));
    }
    Ok(paths.iter().map(|named| named.path.clone()).collect())
}

/// Reads others' results.
///
/// # Errors
/// See [`ImportError`].
pub fn read(
    format: Format,
    paths: &[Named],
    options: &ImportOptions,
) -> Result<Published, ImportError> {
    let mut published = match format {
        Format::SysbenchMytools => {
            crate::benchmarks::sysbench::import::mytools::read(&unnamed(paths)?, options)
        }
        Format::Sysbench => crate::benchmarks::sysbench::import::plain::read(paths, options),
        Format::IbenchMytools => {
            crate::benchmarks::insert::import::mytools::read(&unnamed(paths)?, options)
        }
        Format::Dbbench => crate::benchmarks::kv::import::tables::read(paths, options),
        Format::AnnBenchmarks => {
            crate::benchmarks::vector::import::ann_benchmarks::read(paths, options)
        }
    }?;
    one_set::check(&published, options.across)?;
    published.notices.extend(published.cells.notices());
    note_cut_files(&mut published)?;
    Ok(published)
}

/// A cut within the last line may leave something that reads well and is something else.
fn note_cut_files(published: &mut Published) -> Result<(), ImportError> {
    let steps = published.runs.iter().flat_map(|run| &run.steps);
    let files = steps.filter_map(|step| step.imported.as_ref()).flat_map(|from| &from.files);
    let files: BTreeSet<&String> = files.collect();
    let mut notices = Vec::new();
    for file in files {
        let path = Path::new(file);
        if stream::ends_whole(path).map_err(ImportError::io(path))? {
            continue;
        }
        let text = Text::read(path)?;
        if !text.is_whole() {
            let what = "the last line has no end: was the file cut short?";
            notices.push(Notice::at(NoticeKind::Note, text.path(), text.len(), what));
        }
    }
    published.notices.append(&mut notices);
    Ok(())
}
