//! Reading result sets and run folders, and whether they changed since.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, FileType, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::store::ResultSet;
use super::{profiles, seconds};
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::gate::HostLog;
use rqps_model::host::{Host, Tuning, fingerprint};
use rqps_model::run::{Dataset, FORMAT, ReadSeconds, Run, RunRecord, StepRecord};
use rqps_model::{bounded, escape, units};
use rqps_stats::parallel;

/// The folder in a result folder that holds the runs of its counting pass: a result set of its own.
pub const COUNTS: &str = "count";

/// The folder that holds the runs of its profiling pass: a result set, too.
pub const PROFILES: &str = "profile";

/// Reads result sets and single run folders into one dataset. Reads a folder once even if `dirs`
/// names it twice. Reads the counts and profiles of a result set with it; counted runs come after
/// measured ones, and profiled runs last.
///
/// Runs come in the order of the folders given, and by key within each. Ignores temporary files,
/// folders without a `run.json` and files that are no steps.
pub fn read(dirs: &[PathBuf]) -> Result<Dataset, ResultsError> {
    read_each(dirs, |_, _| ()).map(|(dataset, _)| dataset)
}

/// As [`read`]. Calls `take` with each run as soon as it is read, and returns the results in the
/// order of the runs. `take` may ask for the seconds of a step, and may remove parts of the run, so
/// that they need no memory while the other runs are read.
pub fn read_each<T: Send>(
    dirs: &[PathBuf],
    take: impl Fn(&mut Run, ReadSeconds) -> T + Sync,
) -> Result<(Dataset, Vec<T>), ResultsError> {
    let mut sets = Sets::default();
    let mut places: Vec<RunLocation> = Vec::new();
    let mut known = HashSet::new();
    for dir in dirs {
        let mut of_dir = places_of(dir, &mut sets)?;
        for pass in [COUNTS, PROFILES].map(|name| dir.join(name)) {
            if pass.join("plan.toml").is_file() {
                of_dir.extend(places_of(&pass, &mut sets)?);
            }
        }
        let new =
            of_dir.into_iter().filter_map(|(real, place)| known.insert(real).then_some(place));
        places.extend(new);
    }
    let read = parallel::map(places, |place| {
        let mut run = read_run(&place.shown, &place.result_set)?;
        let seconds: ReadSeconds =
            |run, step| seconds::seconds_of(run, step).map_err(|error| error.to_string());
        let taken = take(&mut run, seconds);
        Ok((run, taken))
    });
    let mut runs = read.into_iter().collect::<Result<Vec<(Run, T)>, ResultsError>>()?;
    let mut ranks: BTreeMap<String, usize> = BTreeMap::new();
    for (run, _) in &runs {
        if !ranks.contains_key(&run.result_set) {
            ranks.insert(run.result_set.clone(), ranks.len());
        }
    }
    runs.sort_by_cached_key(|(run, _)| {
        (run.pass(), ranks.get(&run.result_set), run.record.key.clone())
    });
    let (runs, taken) = runs.into_iter().unzip();
    let Sets { hosts, tunings, gates, .. } = sets;
    Ok((Dataset { hosts, tunings, runs, gates }, taken))
}

/// The content of result sets besides their runs.
#[derive(Default)]
struct Sets {
    hosts: BTreeMap<String, Host>,
    tunings: BTreeMap<String, Tuning>,
    gates: BTreeMap<String, HostLog>,
    /// First name given by the reader, by real path of a set.
    names: BTreeMap<PathBuf, String>,
}

/// The path of a run folder, and the name of its result set, as the reader gave them.
struct RunLocation {
    shown: PathBuf,
    result_set: String,
}

/// The run folders that `dir` stands for, each with its real path.
fn places_of(dir: &Path, sets: &mut Sets) -> Result<Vec<(PathBuf, RunLocation)>, ResultsError> {
    let single = dir.join("run.json").is_file();
    let real = |path: &Path| fs::canonicalize(path).map_err(ResultsError::io("open", path));
    let set_folder = if single {
        dir.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
    } else {
        dir
    };
    let set = match ResultSet::open(set_folder) {
        // A run folder may be read far from the set that it was copied from.
        Err(ResultsError::NotResults { .. }) if single => None,
        opened => Some(opened?),
    };
    let shown_set = set_folder.display().to_string();
    let result_set = sets.names.entry(real(set_folder)?).or_insert(shown_set).clone();
    if let Some(set) = set {
        let hosts = set.hosts()?;
        // Several hosts may be tuned in several ways; no run says by which.
        if let [Host { tuning: Some(tuning), .. }] = hosts.as_slice() {
            sets.tunings.insert(result_set.clone(), tuning.clone());
        }
        sets.hosts.extend(hosts.into_iter().map(|host| (fingerprint(&host), host)));
        sets.gates.extend(set.gate()?.map(|gate| (result_set.clone(), gate)));
    }
    let real_dir = real(dir)?;
    if single {
        return Ok(vec![(real_dir, RunLocation { shown: dir.to_owned(), result_set })]);
    }
    let folders = run_folders(dir)?;
    let mut places = Vec::with_capacity(folders.len());
    for FolderOfRun { path: shown, is_link } in folders {
        let name = shown.file_name().filter(|_| !is_link);
        let real = name.map_or_else(|| real(&shown), |name| Ok(real_dir.join(name)))?;
        places.push((real, RunLocation { shown, result_set: result_set.clone() }));
    }
    Ok(places)
}

/// Reads one run folder. `result_set` is how the set that holds it is shown.
pub fn read_run(folder: &Path, result_set: &str) -> Result<Run, ResultsError> {
    let record = run_record(folder)?;
    if !BenchmarkParameters::BENCHMARKS.contains(&record.benchmark.as_str()) {
        let why = format!("this rqps has no benchmark `{}`", record.benchmark);
        let path = folder.join("run.json");
        return Err(ResultsError::malformed(&path, 0, Some("benchmark"), why));
    }
    let steps_folder = folder.join("steps");
    let mut names = entries(&steps_folder).or_else(|fault| match fault {
        ResultsError::Io { source, .. } if is_no_folder(&source) => Ok(Vec::new()),
        fault => Err(fault),
    })?;
    let has_counters = names.iter().any(|name| name.ends_with(seconds::SUFFIX));
    names.retain(|name| name.ends_with(".json") && name.starts_with(|c: char| c.is_ascii_digit()));
    let mut steps: Vec<StepRecord> = Vec::with_capacity(names.len());
    for name in names {
        let path = steps_folder.join(name);
        let mut step = step_record(&path)?;
        profiles::attach_callgrind(&steps_folder, &mut step)?;
        profiles::attach_folded(&steps_folder, &mut step)?;
        steps.push(step);
    }
    steps.sort_by(|a, b| (a.index, &a.name).cmp(&(b.index, &b.name)));
    Ok(Run {
        folder: folder.display().to_string(),
        result_set: result_set.to_owned(),
        record,
        steps: steps.into_iter().map(Arc::new).collect(),
        has_counters,
    })
}

/// True if there is nothing at a path, or a file.
fn is_no_folder(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

// Files and folders as they are read: text, JSON, names.

/// A folder that holds a run.
pub(super) struct FolderOfRun {
    /// In the folder that was listed.
    pub path: PathBuf,
    pub is_link: bool,
}

/// Folders in a result set that hold a run, by name.
pub(super) fn run_folders(dir: &Path) -> Result<Vec<FolderOfRun>, ResultsError> {
    let listed = listed(dir)?.into_iter().filter(|(_, kind)| !kind.is_file());
    let folders =
        listed.map(|(name, kind)| FolderOfRun { path: dir.join(name), is_link: kind.is_symlink() });
    Ok(folders.filter(|folder| folder.path.join("run.json").is_file()).collect())
}

/// Reads `run.json` of a run folder.
pub(super) fn run_record(folder: &Path) -> Result<RunRecord, ResultsError> {
    record(&folder.join("run.json"), |run| run.format)
}

/// Names in a folder, sorted, without those that begin with a dot.
pub fn entries(dir: &Path) -> Result<Vec<String>, ResultsError> {
    Ok(listed(dir)?.into_iter().map(|(name, _)| name).collect())
}

/// As [`entries`], with the kind of each.
fn listed(dir: &Path) -> Result<Vec<(String, FileType)>, ResultsError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).map_err(ResultsError::io("read", dir))? {
        let entry = entry.map_err(ResultsError::io("read", dir))?;
        // Every name that rqps writes is UTF-8.
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            let kind = entry.file_type().map_err(ResultsError::io("read", dir))?;
            found.push((name, kind));
        }
    }
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    Ok(found)
}

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, ResultsError> {
    bounded::text(path, bounded::RECORD_MAX).map_err(ResultsError::io("read", path))
}

thread_local! {
    /// The memory of [`with_text`]: the text of one file of many, all of which are short.
    static TEXT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The result of `read` for the text of a file; `None` if there is no file. `read` opens no other
/// file in this way.
pub(super) fn with_text<R>(
    path: &Path,
    read: impl FnOnce(&str) -> R,
) -> Result<Option<R>, ResultsError> {
    // Asking first whether it is there would take another call of the kernel.
    let text = |file| TEXT.with_borrow_mut(|buffer| text_in(buffer, file).map(read));
    match bounded::plain(path).and_then(text) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some).map_err(ResultsError::io("read", path)),
    }
}

/// A file of JSON.
pub(super) fn json<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    let text = text(path)?;
    serde_json::from_str(&text).map_err(|fault| ResultsError::json(path, &text, &fault))
}

/// Reads the record of a step.
fn step_record(path: &Path) -> Result<StepRecord, ResultsError> {
    record(path, |step| step.format)
}

fn record<T: DeserializeOwned>(path: &Path, format: fn(&T) -> u32) -> Result<T, ResultsError> {
    let found = versioned(path, FORMAT, format)?;
    found.ok_or_else(|| no_file(path))
}

/// The error of a file that must be there.
pub(super) fn no_file(path: &Path) -> ResultsError {
    ResultsError::io("read", path)(io::Error::new(ErrorKind::NotFound, "no such file"))
}

/// A file of JSON that has its format version; `None` if there is no file. The error for a later
/// version is [`ResultsError::Newer`], whatever else is wrong with the file.
pub(super) fn versioned<T: DeserializeOwned>(
    path: &Path,
    known: u32,
    format: fn(&T) -> u32,
) -> Result<Option<T>, ResultsError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let read = |text: &str| {
        let value = serde_json::from_str::<T>(text);
        let found = match &value {
            Ok(value) => format(value),
            Err(_) => serde_json::from_str::<Head>(text).map_or(known, |head| head.format),
        };
        if found > known {
            Err(ResultsError::Newer { path: path.to_owned(), found, known })
        } else {
            value.map_err(|fault| ResultsError::json(path, text, &fault))
        }
    };
    with_text(path, read)?.transpose()
}

/// Enough for most records.
const BUFFER_BYTES: usize = 16 << 10;

/// The text of a file, in `buffer`. The general readers ask the kernel for the size of each file,
/// or read it in several pieces, which takes as long as two of the calls here.
fn text_in(buffer: &mut Vec<u8>, mut file: impl Read) -> io::Result<&str> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            if length as u64 >= bounded::RECORD_MAX {
                return Err(bounded::too_long(bounded::RECORD_MAX));
            }
            buffer.resize((2 * length).max(BUFFER_BYTES), 0);
        }
        match file.read(&mut buffer[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    std::str::from_utf8(&buffer[..length])
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

// Detects changes of a result set since it was read.

/// Folders of a result set are not deeper.
const DEPTH_MAX: usize = 6;

/// Reports that rqps writes beside the runs: they are made from the set, and no part of it.
const MADE: &str = "report.html";

/// A hash of the names, sizes and times of all files of a result set. If it is the same, rqps takes
/// the content to be the same.
///
/// # Errors
/// A folder that cannot be read.
pub fn quick_stamp(dir: &Path) -> Result<String, ResultsError> {
    let mut hash = Sha256::new();
    walk(dir, "", DEPTH_MAX, &mut |name, _, metadata| {
        let changed =
            metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanoseconds = changed.map_or(0, |time| time.as_nanos());
        hash.update(format!("{name}\0{}\0{nanoseconds}\0", metadata.len()));
        Ok(())
    })?;
    Ok(units::hex(&hash.finalize()[..16]))
}

/// A hash of the names and bytes of all files of a result set: a copy has the same.
///
/// # Errors
/// A file or folder that cannot be read.
pub fn content_stamp(dir: &Path) -> Result<String, ResultsError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    walk(dir, "", DEPTH_MAX, &mut |name, path, metadata| {
        hash.update(format!("{name}\0{}\0", metadata.len()));
        // Somebody else's folder may hold a pipe or an endless device: their length is 0.
        let file = bounded::open(path).map_err(ResultsError::io("open", path))?;
        let mut file = file.take(metadata.len());
        loop {
            match file.read(&mut buffer).map_err(ResultsError::io("read", path))? {
                0 => return Ok(()),
                count => hash.update(&buffer[..count]),
            }
        }
    })?;
    Ok(units::hex(&hash.finalize()[..16]))
}

type Visit<'a> = dyn FnMut(&str, &Path, &Metadata) -> Result<(), ResultsError> + 'a;

/// All files, in the order of their names; those that begin with a dot are temporary.
fn walk(dir: &Path, before: &str, depth: usize, visit: &mut Visit<'_>) -> Result<(), ResultsError> {
    for name in entries(dir)? {
        if name == MADE {
            continue;
        }
        let path: PathBuf = dir.join(&name);
        let metadata = fs::metadata(&path).map_err(ResultsError::io("read", &path))?;
        let shown = format!("{before}{name}");
        if !metadata.is_dir() {
            visit(&shown, &path, &metadata)?;
        } else if depth > 0 {
            walk(&path, &format!("{shown}/"), depth - 1, visit)?;
        }
    }
    Ok(())
}

// Errors of result folders.

/// The reason why a result folder could not be written or read. Each text reads after "failed to".
#[derive(Debug, Error)]
pub enum ResultsError {
    /// The operating system refused.
    #[error("{doing} `{}`: {source}", path.display())]
    Io {
        /// `read`, `write`, `create` …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("read `{}`, line {line}{}: {why}; restore the file from a copy{}", path.display(),
            in_field(field), way_around(path))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// From 1; 0 if the fault has no line.
        line: usize,
        /// The field or column, if it is known.
        field: Option<String>,
        /// The problem.
        why: String,
    },
    /// Written by a later rqps.
    #[error("read `{}`: its format version is {found}, this rqps knows versions up to {known}; \
             use the rqps that wrote it, or a later one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// [`rqps_model::run::FORMAT`].
        known: u32,
    },
    /// Neither a result set nor a run folder.
    #[error("read results from `{}`: {why}; name the folder that `rqps compare` or `rqps run` \
             wrote (it holds plan.toml), or one run folder in it (it holds run.json)",
             path.display())]
    NotResults {
        /// The folder.
        path: PathBuf,
        /// The missing part.
        why: String,
    },
    /// The folder is in use for something else.
    #[error("keep results in `{}`: {why}; choose another folder with --out, or empty this one",
             path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// The content of the folder.
        why: String,
    },
    /// A name that cannot be a file name, or a value that JSON cannot hold.
    #[error("write {what}: {why}")]
    Unwritable {
        /// The thing.
        what: String,
        /// The problem.
        why: String,
    },
}

fn in_field(field: &Option<String>) -> String {
    field.as_ref().map(|field| format!(", field `{field}`")).unwrap_or_default()
}

/// A way to do without the file.
fn way_around(path: &Path) -> &'static str {
    if path.parent().is_some_and(|folder| folder.ends_with("calibrations")) {
        return ", or remove it and calibrate this host again";
    }
    match path.file_name().and_then(|name| name.to_str()) {
        Some("host.json" | "plan.toml") => "",
        Some("ledger.csv") => ", or remove it: what rqps ships counts then",
        Some("gate.json") => ", or remove it to do without the host log",
        _ => ", or remove its run folder to do without that run",
    }
}

impl ResultsError {
    /// The error of a failed access: the action, and the file.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ResultsError {
        move |source| ResultsError::Io { doing, path: path.to_owned(), source }
    }

    /// A JSON fault, with the field on whose line the parser stopped: records are written one
    /// field a line.
    pub fn json(path: &Path, text: &str, source: &serde_json::Error) -> ResultsError {
        let line = source.line();
        let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or("").trim_start();
        let field = shown.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        ResultsError::malformed(path, line, field.map(|(name, _)| name), escape::fault(source))
    }

    /// A fault in a line of a file, from 1, or of the whole file: 0.
    pub(super) fn malformed(
        path: &Path,
        line: usize,
        field: Option<&str>,
        why: String,
    ) -> ResultsError {
        let field = field.map(str::to_owned);
        ResultsError::Malformed { path: path.to_owned(), line, field, why }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_fills_the_buffer_as_often_as_it_must() {
        let long = "é".repeat(2 * BUFFER_BYTES);
        let mut buffer = vec![0; 3];
        for text in ["", "ab", &long, "abc"] {
            assert_eq!(text_in(&mut buffer, text.as_bytes()).unwrap(), text);
        }
        let error = text_in(&mut buffer, &b"\xff"[..]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_copy_has_the_same_content_and_a_changed_file_has_not() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, text: &str| {
            let steps = folder.path().join(name).join("run/steps");
            fs::create_dir_all(&steps).unwrap();
            fs::write(steps.join("01-a.json"), text).unwrap();
            folder.path().join(name)
        };
        let (one, copy, other) = (make("one", "1"), make("copy", "1"), make("other", "2"));
        let of = |path: &Path| content_stamp(path).unwrap();
        assert_eq!(of(&one), of(&copy));
        assert_ne!(of(&one), of(&other));
        let before = quick_stamp(&one).unwrap();
        assert_eq!(before, quick_stamp(&one).unwrap());
        fs::write(one.join("report.html"), "made").unwrap();
        fs::write(one.join("run/.lock"), "").unwrap();
        assert_eq!(before, quick_stamp(&one).unwrap(), "what is made from it is no part of it");
        fs::write(one.join("run/steps/02-b.json"), "").unwrap();
        assert_ne!(before, quick_stamp(&one).unwrap());
        assert!(quick_stamp(&folder.path().join("none")).is_err());
    }
}
