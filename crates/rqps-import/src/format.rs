//! Formats of somebody else's results: who reads them, with which options, errors and notices.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::published::{self, Published};
use super::text::{self, Text};
use super::{insert, kv, series, sysbench, vector};
use rqps_host::beneath::FreshFolder;
use rqps_model::host::fingerprint;
use rqps_model::run::StepRecord;
use rqps_model::{escape, safe_path, units};
use rqps_results::{ResultSet, ResultsError, entries};

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

// Writes imported results as a result set, with the writer of every run.

/// The written files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Labels.
    pub targets: usize,
    /// Run folders.
    pub runs: usize,
    /// Steps of all runs.
    pub steps: usize,
}

/// Largest name of a target or step, bytes. Linux allows 255 for a file, and numbers and endings
/// follow the name.
const NAME_MAX: usize = 200;

/// Writes run folders into `out`, which must be new or empty. They are written to a temporary
/// folder first, so that `out` holds all of them or is left as it was.
///
/// # Errors
/// A name of a target or step that is too long for a file; as [`ResultSet::create`] and its kin.
pub fn write(format: ImportFormat, published: &Published, out: &Path) -> Result<Written> {
    check_names(published)?;
    if published.by_date {
        return write_dates(format, published, out);
    }
    let plan = plan(format, published);
    if ResultSet::is_begun(out, &plan)? {
        let why = "it already holds the same results".to_owned();
        return Err(ResultsError::Occupied { path: out.to_owned(), why }.into());
    }
    // In a folder that is there: it may be another file system than what it lies in.
    let there = out.exists();
    let id = std::process::id();
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let temporary = if there {
        out.join(format!(".import.{id}.partial"))
    } else {
        out.with_file_name(format!(".{name}.{id}.partial"))
    };
    if let Some(above) = temporary.parent().filter(|above| !above.as_os_str().is_empty()) {
        safe_path::make_folder(above).map_err(ResultsError::io("create", above))?;
    }
    // New, so that all in it is this import's.
    let made = safe_path::new_folder(&temporary, 0o777);
    let made = made.and_then(|()| FreshFolder::take(&temporary, 0o777));
    let made = made.map_err(ResultsError::io("create", &temporary))?;
    let written = write_into(&plan, published, &temporary).and_then(|written| {
        put_in_place(&temporary, out, there)?;
        Ok(written)
    });
    if written.is_err() || there {
        // The error that stopped the import says more than one of tidying up.
        let _ = made.remove();
    }
    written
}

/// Writes a result set for each date into a folder of its own.
fn write_dates(format: ImportFormat, published: &Published, out: &Path) -> Result<Written> {
    if out.exists() && !entries(out)?.is_empty() {
        let why = "it is not empty".to_owned();
        return Err(ResultsError::Occupied { path: out.to_owned(), why }.into());
    }
    safe_path::make_folder(out).map_err(ResultsError::io("create", out))?;
    let mut all = Written { targets: 0, runs: 0, steps: 0 };
    for (name, one) in published.dates() {
        let written = write(format, &one, &out.join(name))?;
        all.targets = all.targets.max(written.targets);
        (all.runs, all.steps) = (all.runs + written.runs, all.steps + written.steps);
    }
    Ok(all)
}

/// Moves what is in a folder into another one, the plan last: it makes the folder a result set.
fn put_in_place(from: &Path, to: &Path, there: bool) -> Result<(), ResultsError> {
    if !there {
        return safe_path::rename(from, to).map_err(ResultsError::io("put in place", to));
    }
    let mut names = entries(from)?;
    names.sort_by_key(|name| name == "plan.toml");
    names.iter().try_for_each(|name| {
        let path = to.join(name);
        safe_path::rename(&from.join(name), &path).map_err(ResultsError::io("put in place", &path))
    })
}

/// Names become names of files: too long ones are refused before anything is written.
fn check_names(published: &Published) -> Result<()> {
    for run in &published.runs {
        let files = |step: &StepRecord| {
            let files = step.imported.as_ref().map(|imported| imported.files.join(", "));
            files.unwrap_or_default()
        };
        let of = run.steps.first().map(files).unwrap_or_default();
        let label = ("target", &run.record.key.label, of);
        let steps = run.steps.iter().map(|step| ("step", &step.name, files(step)));
        for (what, name, files) in steps.chain([label]) {
            if name.len() > NAME_MAX {
                let begin: String = name.chars().take(60).collect();
                let length = name.len();
                return Err(ImportError::Words(format!(
                    "`{files}`: the name of a {what} (`{begin}…`) has {length} bytes, but a file \
                     or folder name can have at most {NAME_MAX}: shorten it"
                )));
            }
        }
    }
    Ok(())
}

fn write_into(plan: &str, published: &Published, out: &Path) -> Result<Written> {
    let hash = units::short_hash(plan);
    let set = ResultSet::create(out, plan, &published.host)?;
    let mut labels: Vec<String> = Vec::new();
    let mut order: Vec<&str> = Vec::new();
    for run in &published.runs {
        if !labels.contains(&run.record.key.label) {
            labels.push(run.record.key.label.clone());
        }
        // A step that the runs before do not have comes where this one has it.
        let mut next = 0;
        for step in &run.steps {
            match order.iter().position(|name| *name == step.name) {
                Some(place) => next = place + 1,
                None => {
                    order.insert(next, &step.name);
                    next += 1;
                }
            }
        }
    }
    let notices: String = published.notices.iter().map(|notice| format!("{notice}\n")).collect();
    let mut steps = 0;
    for run in &published.runs {
        let mut record = run.record.clone();
        let place = labels.iter().position(|label| *label == record.key.label).unwrap_or(0);
        record.key.order = u32::try_from(place + 1).unwrap_or(u32::MAX);
        record.targets = labels.clone();
        record.plan_hash = hash.clone();
        record.host_fingerprint = fingerprint(&published.host);
        let folder = set.begin_run(&record)?;
        for step in &run.steps {
            let mut step = step.clone();
            let place = order.iter().position(|name| *name == step.name).unwrap_or(0);
            step.index = u32::try_from(place + 1).unwrap_or(u32::MAX);
            folder.write_step(&step, &[])?;
            steps += 1;
        }
        for (name, text) in &run.logs {
            folder.write_log(name, text)?;
        }
        if !notices.is_empty() {
            folder.write_log("import.txt", &notices)?;
        }
    }
    Ok(Written { targets: labels.len(), runs: published.runs.len(), steps })
}

/// The beginning of the text in place of a plan.
pub const IMPORTED: &str = "# Imported with `rqps import ";

/// Text in place of a plan: an imported result set has no plan and cannot be resumed.
fn plan(format: ImportFormat, published: &Published) -> String {
    let mut text = format!(
        "{IMPORTED}{}`: others measured and published these results.\n# rqps \
         can report them, not run them.\n",
        format.word
    );
    for run in &published.runs {
        let files = run.steps.iter().filter_map(|step| step.imported.as_ref());
        let mut files: Vec<&String> = files.flat_map(|imported| &imported.files).collect();
        files.sort();
        files.dedup();
        let key = &run.record.key;
        text.push_str(&format!("# {} block {}:\n", key.label, key.block));
        for file in files {
            text.push_str(&format!("#   {file}\n"));
        }
    }
    text
}
