//! Reading result sets and run folders.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::{FolderOfRun, entries, run_folders, run_record, step_record};
use crate::{ResultSet, ResultsError, callgrind, counters, folded, seconds};
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::gate::HostLog;
use rqps_model::host::{Host, Tuning, fingerprint};
use rqps_model::run::{Dataset, ReadSeconds, Run, StepRecord};
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
        return Err(ResultsError::Malformed {
            path: folder.join("run.json"),
            line: 0,
            field: Some("benchmark".to_owned()),
            why: format!("this rqps has no benchmark `{}`", record.benchmark),
        });
    }
    let steps_folder = folder.join("steps");
    let mut names = entries(&steps_folder).or_else(|fault| match fault {
        ResultsError::Io { source, .. } if is_no_folder(&source) => Ok(Vec::new()),
        fault => Err(fault),
    })?;
    let has_counters = names.iter().any(|name| name.ends_with(counters::SUFFIX));
    names.retain(|name| name.ends_with(".json") && name.starts_with(|c: char| c.is_ascii_digit()));
    let mut steps: Vec<StepRecord> = Vec::with_capacity(names.len());
    for name in names {
        let path = steps_folder.join(name);
        let mut step = step_record(&path)?;
        callgrind::attach(&steps_folder, &mut step)?;
        folded::attach(&steps_folder, &mut step)?;
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
