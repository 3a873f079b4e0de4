//! Reading result sets and run folders.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::domain::gate::HostLog;
use crate::domain::host::{Host, Tuning};
use crate::domain::run::{Dataset, FORMAT, ReadSeconds, Run, RunRecord, StepRecord};
use crate::os::host::fingerprint;
use crate::parallel;
use crate::results::{ResultSet, ResultsError, seconds};

/// Reads result sets and single run folders into one dataset. What is named twice is read once.
///
/// Runs come in the order of the folders given, and by key within each. Temporary files, folders
/// without a `run.json` and files that are no steps are passed over.
pub fn read(dirs: &[PathBuf]) -> Result<Dataset, ResultsError> {
    read_each(dirs, |_, _| ()).map(|(dataset, _)| dataset)
}

/// The same, with what `take` makes of each run as soon as it is read, in the order of the runs. It
/// may ask for the seconds of a step. What it removes from a run is not held in memory while the
/// others are read.
pub fn read_each<T: Send>(
    dirs: &[PathBuf],
    take: impl Fn(&mut Run, ReadSeconds) -> T + Sync,
) -> Result<(Dataset, Vec<T>), ResultsError> {
    let mut sets = Sets::default();
    let mut places: Vec<RunLocation> = Vec::new();
    let mut known = BTreeSet::new();
    for dir in dirs {
        let of_dir = places_of(dir, &mut sets)?;
        places.extend(of_dir.into_iter().filter(|place| known.insert(place.real.clone())));
    }
    let runs = parallel::map(places, |place| {
        let mut run = read_run(&place.shown, &place.result_set)?;
        let seconds: ReadSeconds =
            |run, step| seconds::seconds_of(run, step).map_err(|error| error.to_string());
        let taken = take(&mut run, seconds);
        Ok((run, taken))
    });
    let mut runs = runs.into_iter().collect::<Result<Vec<(Run, T)>, ResultsError>>()?;
    let mut ranks: BTreeMap<String, usize> = BTreeMap::new();
    for (run, _) in &runs {
        let next = ranks.len();
        ranks.entry(run.result_set.clone()).or_insert(next);
    }
    runs.sort_by_cached_key(|(run, _)| (ranks.get(&run.result_set), run.record.key.clone()));
    let (runs, taken) = runs.into_iter().unzip();
    Ok((Dataset { hosts: sets.hosts, tunings: sets.tunings, runs, gates: sets.gates }, taken))
}

/// What was read of result sets besides their runs.
#[derive(Default)]
struct Sets {
    hosts: BTreeMap<String, Host>,
    tunings: BTreeMap<String, Tuning>,
    gates: BTreeMap<String, HostLog>,
    /// Where a set really is → how the reader named it first.
    names: BTreeMap<PathBuf, String>,
}

/// Where a run folder is, and how the reader named it.
struct RunLocation {
    shown: PathBuf,
    real: PathBuf,
    result_set: String,
}

/// The run folders that `dir` stands for.
fn places_of(dir: &Path, sets: &mut Sets) -> Result<Vec<RunLocation>, ResultsError> {
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
        let host = set.host()?;
        if let Some(tuning) = &host.tuning {
            sets.tunings.insert(result_set.clone(), tuning.clone());
        }
        sets.hosts.insert(fingerprint(&host), host);
        if let Some(gate) = set.gate()? {
            sets.gates.insert(result_set.clone(), gate);
        }
    }
    let folders = if single { vec![dir.to_owned()] } else { run_folders(dir)? };
    let mut places = Vec::with_capacity(folders.len());
    for shown in folders {
        places.push(RunLocation { real: real(&shown)?, shown, result_set: result_set.clone() });
    }
    Ok(places)
}

/// Reads one run folder. `result_set` is how the set that holds it is shown.
pub fn read_run(folder: &Path, result_set: &str) -> Result<Run, ResultsError> {
    let mut text = String::new();
    let mut unknown = BTreeSet::new();
    let record = versioned_run(folder, &mut text, &mut unknown)?;
    let steps_folder = folder.join("steps");
    let mut names: Vec<String> =
        if steps_folder.is_dir() { entries(&steps_folder)? } else { Vec::new() };
    names.retain(|name| name.ends_with(".json") && name.starts_with(|c: char| c.is_ascii_digit()));
    let mut steps: Vec<StepRecord> = Vec::with_capacity(names.len());
    for name in names {
        let path = steps_folder.join(name);
        steps.push(versioned(&path, &mut text, &mut unknown, |step: &StepRecord| step.format)?);
    }
    steps.sort_by(|a, b| (a.index, &a.name).cmp(&(b.index, &b.name)));
    Ok(Run {
        folder: folder.display().to_string(),
        result_set: result_set.to_owned(),
        record,
        steps: steps.into_iter().map(Arc::new).collect(),
        unknown,
    })
}

/// Folders in a result set that hold a run, by name.
pub(crate) fn run_folders(dir: &Path) -> Result<Vec<PathBuf>, ResultsError> {
    let names = entries(dir)?;
    Ok(names
        .into_iter()
        .map(|name| dir.join(name))
        .filter(|path| path.join("run.json").is_file())
        .collect())
}

/// Reads `run.json` of a run folder.
pub(crate) fn run_record(folder: &Path) -> Result<RunRecord, ResultsError> {
    versioned_run(folder, &mut String::new(), &mut BTreeSet::new())
}

fn versioned_run(
    folder: &Path,
    text: &mut String,
    unknown: &mut BTreeSet<String>,
) -> Result<RunRecord, ResultsError> {
    versioned(&folder.join("run.json"), text, unknown, |record: &RunRecord| record.format)
}

/// Names in a folder, sorted, without those that begin with a dot.
pub(crate) fn entries(dir: &Path) -> Result<Vec<String>, ResultsError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(ResultsError::io("read", dir))? {
        let entry = entry.map_err(ResultsError::io("read", dir))?;
        // Every name that rqps writes is UTF-8.
        if let Ok(name) = entry.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

pub(crate) fn text(path: &Path) -> Result<String, ResultsError> {
    fs::read_to_string(path).map_err(ResultsError::io("read", path))
}

pub(crate) fn json<T: DeserializeOwned>(path: &Path) -> Result<T, ResultsError> {
    let text = text(path)?;
    serde_json::from_str(&text).map_err(|fault| ResultsError::json(path, &text, &fault))
}

/// A record that carries its format version: a later version is said to be one, whatever else is
/// the matter with the file. `text` is room for it, which the next file can have again. Fields that
/// this rqps does not know are added to `unknown`.
fn versioned<T: DeserializeOwned>(
    path: &Path,
    text: &mut String,
    unknown: &mut BTreeSet<String>,
    format: impl Fn(&T) -> u32,
) -> Result<T, ResultsError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    let newer = |found: u32| ResultsError::Newer { path: path.to_owned(), found, known: FORMAT };
    text.clear();
    fs::File::open(path)
        .and_then(|mut file| file.read_to_string(text))
        .map_err(ResultsError::io("read", path))?;
    let mut json = serde_json::Deserializer::from_str(text);
    let read = serde_ignored::deserialize::<_, _, T>(&mut json, |field| {
        unknown.insert(field.to_string());
    });
    match read.and_then(|value| json.end().map(|()| value)) {
        Ok(value) if format(&value) > FORMAT => Err(newer(format(&value))),
        Ok(value) => Ok(value),
        Err(fault) => match serde_json::from_str::<Head>(text) {
            Ok(head) if head.format > FORMAT => Err(newer(head.format)),
            _ => Err(ResultsError::json(path, text, &fault)),
        },
    }
}
