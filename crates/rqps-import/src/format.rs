//! Formats of somebody else's results: who reads them, with which options, errors and notices.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::published::{self, Published};
use super::text::{self, Text};
use super::{insert, kv, series, sysbench, vector};
use rqps_model::escape;
use rqps_results::ResultsError;

/// All formats, in the order of lists.
pub const FORMATS: [ImportFormat; 7] = [
    sysbench::MYTOOLS,
    sysbench::PLAIN,
    insert::MYTOOLS,
    kv::DB_BENCH,
    vector::ANN_BENCHMARKS,
    series::FORMAT,
    series::HAMMERDB,
];

/// One row: a word of the command line with its reader.
#[derive(Clone, Copy, Debug)]
pub struct ImportFormat {
    /// The word of the command line.
    pub word: &'static str,
    /// Reads files and folders.
    pub read: fn(&[Named], &ImportOptions) -> Result<Published>,
}

impl ImportFormat {
    /// Finds the format of a word.
    ///
    /// # Errors
    /// [`ImportError::Words`] with the words there are.
    pub fn named(word: &str) -> Result<ImportFormat> {
        let found = FORMATS.iter().find(|format| format.word == word);
        found.copied().ok_or_else(|| {
            let known: Vec<&str> = FORMATS.iter().map(|format| format.word).collect();
            let known = known.join(", ");
            ImportError::Words(format!("`{word}`: unknown format (known: {known})"))
        })
    }
}

// Options of an import.

/// Options of the command line beside format and paths.
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
    /// Allowed differences within the set, for ratios across them.
    pub across: Across,
}

/// Properties that may differ between the targets of one import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Across {
    /// The number of rows.
    pub sizes: bool,
    /// The machine.
    pub hosts: bool,
}

/// A file or folder with its prefix: `LABEL=PATH`, `LABEL/STEP=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The path.
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
pub(crate) fn unnamed(paths: &[Named]) -> Result<Vec<PathBuf>> {
    if let Some(named) = paths.iter().find(|named| named.label.is_some()) {
        let path = named.path.display();
        return Err(ImportError::Words(format!(
            "`{path}`: files of this format name their targets; leave out the label before the path"
        )));
    }
    Ok(paths.iter().map(|named| named.path.clone()).collect())
}

// Reads files of a format, and adds what holds for every format.

/// Reads others' results.
///
/// # Errors
/// See [`ImportError`].
pub fn read(format: ImportFormat, paths: &[Named], options: &ImportOptions) -> Result<Published> {
    let mut published = (format.read)(paths, options)?;
    // A label that the user gave says that it is a build of its own.
    if !published.by_date
        && options.labels.is_empty()
        && paths.iter().all(|named| named.label.is_none())
    {
        published::join_builds(&mut published);
    }
    check_labels(&published, options)?;
    published::check_one_set(&published, options.across)?;
    published.notices.extend(published.cells.notices());
    note_cut_files(&mut published)?;
    Ok(published)
}

/// Refuses labels that name nothing: somebody would take the result for what it is not.
fn check_labels(published: &Published, options: &ImportOptions) -> Result<()> {
    let is_used = |label: &&String| {
        let name = published::safe(label);
        published.runs.iter().any(|run| run.record.key.label == name)
    };
    let Some(unused) = options.labels.iter().find(|label| !is_used(label)) else { return Ok(()) };
    let mut labels: Vec<&str> = Vec::new();
    for run in &published.runs {
        if !labels.contains(&run.record.key.label.as_str()) {
            labels.push(&run.record.key.label);
        }
    }
    Err(ImportError::Words(format!(
        "--labels: `{unused}` names no row and no column, because these files name their targets \
         ({}); leave it out",
        labels.join(", ")
    )))
}

/// A cut within the last line may leave something that reads well and is something else.
fn note_cut_files(published: &mut Published) -> Result<()> {
    let steps = published.runs.iter().flat_map(|run| &run.steps);
    let files = steps.filter_map(|step| step.imported.as_ref()).flat_map(|from| &from.files);
    let files: BTreeSet<&String> = files.collect();
    let mut notices = Vec::new();
    for file in files {
        let path = Path::new(file);
        if text::ends_whole(path).map_err(ImportError::io(path))? {
            continue;
        }
        let text = Text::read(path)?;
        // JSON that was cut is not JSON.
        if !text.is_whole() && !text.first().starts_with(['[', '{']) {
            let what = "the last line has no newline: is the file truncated?";
            notices.push(Notice::at(NoticeKind::Note, text.path(), text.len(), what));
        }
    }
    published.notices.append(&mut notices);
    Ok(())
}

// Errors of imports: the file, the line, the problem.

/// What fails while reading somebody's files is an [`ImportError`], unless said otherwise.
pub type Result<T, E = ImportError> = std::result::Result<T, E>;

/// An error of an import. Each text reads after "failed to".
#[derive(Debug, Error)]
pub enum ImportError {
    /// The operating system refused.
    #[error("read `{}` for import: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A line is not what its form asks for.
    #[error("import `{}`, line {line}{}: {why} (docs/importing.md describes the formats)",
            path.display(), column.map(|at| format!(", column {at}")).unwrap_or_default())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The cell of the line, from 1, where one is at fault.
        column: Option<usize>,
        /// The fault, or what the parser expected.
        why: String,
    },
    /// The whole file or folder is of no form that this format knows.
    #[error("import `{}`: {why} (docs/importing.md describes the formats)", path.display())]
    Foreign {
        /// The file or folder.
        path: PathBuf,
        /// The search.
        why: String,
    },
    /// The words of the command line do not fit.
    #[error("import {0}")]
    Words(String),
    /// The run folders could not be written.
    #[error(transparent)]
    Results(#[from] ResultsError),
}

impl ImportError {
    /// Wraps what the operating system said about that path.
    pub fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ImportError {
        let path = path.to_owned();
        move |source| ImportError::Io { path, source }
    }

    /// A file that is not in the form that was expected.
    pub fn foreign(path: &Path, why: impl Into<String>) -> ImportError {
        ImportError::Foreign { path: path.to_owned(), why: echoed(&why.into()) }
    }
}

/// Characters of others' text that a message echoes.
const SHOWN_MAX: usize = 400;

/// A message that echoes text of a file: on one line, and cut in the middle where it is long.
pub(crate) fn echoed(text: &str) -> String {
    let count = text.chars().count();
    if count <= SHOWN_MAX {
        return escape::line(text).into_owned();
    }
    let half = SHOWN_MAX / 2;
    let begin: String = text.chars().take(half).collect();
    let end: String = text.chars().skip(count - half).collect();
    let cut = count - 2 * half;
    format!("{} [… {cut} characters …] {}", escape::line(&begin), escape::line(&end))
}

// Notices of an importer: contradictions, omitted cells and remarks.

/// The kind of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoticeKind {
    /// Two published numbers that should follow from each other do not.
    Mismatch,
    /// Something was there and was not taken.
    Left,
    /// Something to know about the numbers.
    Note,
}

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The kind.
    pub kind: NoticeKind,
    /// The file or folder.
    pub file: String,
    /// Its line from 1, if it is about one.
    pub line: Option<usize>,
    /// The text.
    pub text: String,
}

impl Notice {
    /// About a line.
    pub fn at(kind: NoticeKind, file: &Path, line: usize, text: impl Into<String>) -> Notice {
        let text = echoed(&text.into());
        Notice { kind, file: file.display().to_string(), line: Some(line), text }
    }

    /// About a whole file or folder.
    pub fn of(kind: NoticeKind, file: impl AsRef<Path>, text: impl Into<String>) -> Notice {
        let file = file.as_ref().display().to_string();
        Notice { kind, file, line: None, text: text.into() }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            NoticeKind::Mismatch => "mismatch: ",
            NoticeKind::Left => "not imported: ",
            NoticeKind::Note => "",
        };
        match self.line {
            Some(line) => write!(f, "{}, line {line}: {kind}{}", self.file, self.text),
            None => write!(f, "{}: {kind}{}", self.file, self.text),
        }
    }
}
