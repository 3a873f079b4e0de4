//! Writing result sets and run folders.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{ResultsError, atomic, callgrind, counters, files, folded, plain_set, seconds};
use rqps_model::block::{BLOCK_FORMAT, BlockReport};
use rqps_model::gate::{GATE_FORMAT, HostLog};
use rqps_model::host::{Host, fingerprint};
use rqps_model::run::{Counter, RunKey, RunRecord, Second, StepRecord, Turn};

/// A folder that holds `plan.toml`, `host.json` and run folders.
#[derive(Clone, Debug)]
pub struct ResultSet {
    folder: PathBuf,
}

/// One run folder of a result set, open for writing.
#[derive(Clone, Debug)]
pub struct RunFolder {
    folder: PathBuf,
}

impl ResultSet {
    /// Opens `dir` for the results of a plan on a host, and makes it where it is missing.
    ///
    /// A folder with the same plan and host (by [`fingerprint`]) is taken up again. One that holds
    /// another plan, was measured on another host, or holds anything else (but for names that
    /// begin with a dot) is refused.
    pub fn create(dir: &Path, plan_toml: &str, host: &Host) -> Result<ResultSet, ResultsError> {
        let set = ResultSet { folder: dir.to_owned() };
        if ResultSet::is_begun(dir, plan_toml)? {
            if set.hosts_path().is_dir() {
                let why = "its blocks were measured on several hosts; resume it with --on, as it \
                           was begun";
                return Err(ResultsError::Occupied { path: dir.to_owned(), why: why.to_owned() });
            }
            let there = set.host()?;
            if fingerprint(&there) != fingerprint(host) {
                let why = format!(
                    "its results come from another host, or the host has changed ({})",
                    differing_facts(&there, host)
                );
                return Err(ResultsError::Occupied { path: dir.to_owned(), why });
            }
            atomic::sweep(dir);
            return Ok(set);
        }
        if !dir.exists() {
            atomic::create_folder(dir)?;
        }
        // The plan comes last: it is what makes the folder a result set.
        atomic::write(&set.host_path(), &json(host, "host.json")?)?;
        atomic::write(&set.plan_path(), plan_toml.as_bytes())?;
        Ok(set)
    }

    /// Opens `dir` for the results of a plan whose blocks several hosts measure, and makes it where
    /// it is missing. Facts of the hosts come with their blocks: [`ResultSet::add_host`].
    ///
    /// A folder with results that one host measured by itself is refused.
    pub fn create_for_hosts(dir: &Path, plan_toml: &str) -> Result<ResultSet, ResultsError> {
        let set = ResultSet { folder: dir.to_owned() };
        let begun = ResultSet::is_begun(dir, plan_toml)?;
        if set.host_path().exists() {
            let why = "it holds results of one host; resume it there, without --on".to_owned();
            return Err(ResultsError::Occupied { path: dir.to_owned(), why });
        }
        if begun {
            atomic::sweep(dir);
        } else {
            atomic::create_folder(&set.hosts_path())?;
            atomic::write(&set.plan_path(), plan_toml.as_bytes())?;
        }
        Ok(set)
    }

    /// Keeps a copy of a file that the workload reads: `workload/NAME`.
    pub fn keep_file(&self, name: &Path, content: &[u8]) -> Result<(), ResultsError> {
        let path = self.folder.join("workload").join(name);
        if let Some(folder) = path.parent() {
            atomic::create_folder(folder)?;
        }
        atomic::write(&path, content)
    }

    /// Writes the facts of a host that measured blocks: `hosts/FINGERPRINT.json`.
    pub fn add_host(&self, host: &Host) -> Result<(), ResultsError> {
        let name = format!("hosts/{}.json", fingerprint(host));
        let path = self.folder.join(&name);
        if path.exists() { Ok(()) } else { atomic::write(&path, &json(host, &name)?) }
    }

    /// True if `dir` has results of this plan; false for a missing or empty folder. Creates
    /// nothing. Refuses the same folders as [`ResultSet::create`], on every host.
    pub fn is_begun(dir: &Path, plan_toml: &str) -> Result<bool, ResultsError> {
        let set = ResultSet { folder: dir.to_owned() };
        let occupied = |why: String| Err(ResultsError::Occupied { path: dir.to_owned(), why });
        if !dir.exists() {
            return Ok(false);
        }
        if !dir.is_dir() {
            return occupied("it is a file, not a folder".to_owned());
        }
        if set.plan_path().exists() {
            return if set.plan()? == plan_toml {
                plain_set::check(dir).map(|()| true)
            } else {
                occupied("it holds the results of another plan".to_owned())
            };
        }
        for name in files::entries(dir)? {
            if name != "host.json" && name != "hosts" {
                return occupied(format!("it holds `{name}` and no plan.toml"));
            }
        }
        Ok(false)
    }

    /// Opens a result set that is there.
    pub fn open(dir: &Path) -> Result<ResultSet, ResultsError> {
        let set = ResultSet { folder: dir.to_owned() };
        let why = if !dir.exists() {
            "no such folder"
        } else if !dir.is_dir() {
            "it is a file, not a folder (`rqps import` makes one of results of other programs)"
        } else if !is_there(&set.plan_path())? {
            if holds_sets(dir) {
                "its folders are result folders: name them, with /* at its end"
            } else {
                "it holds no plan.toml"
            }
        } else if set.hosts_path().is_dir() {
            return Ok(set);
        } else if !is_there(&set.host_path())? {
            "it holds a plan but no results; `rqps run` carries out a plan"
        } else {
            set.host()?;
            return Ok(set);
        };
        Err(ResultsError::NotResults { path: dir.to_owned(), why: why.to_owned() })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The text of `plan.toml`.
    pub fn plan(&self) -> Result<String, ResultsError> {
        files::text(&self.plan_path())
    }

    /// `host.json`.
    pub fn host(&self) -> Result<Host, ResultsError> {
        files::json(&self.host_path())
    }

    /// The facts of all hosts that measured blocks.
    pub(super) fn hosts(&self) -> Result<Vec<Host>, ResultsError> {
        let folder = self.hosts_path();
        if !folder.is_dir() {
            return Ok(vec![self.host()?]);
        }
        files::entries(&folder)?.iter().map(|name| files::json(&folder.join(name))).collect()
    }

    /// `gate.json`; `None` if the set has none.
    pub fn gate(&self) -> Result<Option<HostLog>, ResultsError> {
        files::versioned(&self.gate_path(), GATE_FORMAT, |gate: &HostLog| gate.format)
    }

    /// Writes `gate.json` anew.
    pub fn write_gate(&self, gate: &HostLog) -> Result<(), ResultsError> {
        atomic::write(&self.gate_path(), &json(gate, "gate.json")?)
    }

    /// `block.json`: the report of the one block that the set was made for; `None` if it has none.
    pub fn block(&self) -> Result<Option<BlockReport>, ResultsError> {
        files::versioned(&self.block_path(), BLOCK_FORMAT, |report: &BlockReport| report.format)
    }

    /// Writes `block.json`, when all runs of the block are written.
    pub fn write_block(&self, report: &BlockReport) -> Result<(), ResultsError> {
        atomic::write(&self.block_path(), &json(report, "block.json")?)
    }

    /// The `run.json` of every run folder, by key. A folder without one was never begun.
    pub fn runs(&self) -> Result<Vec<RunRecord>, ResultsError> {
        let folders = files::run_folders(&self.folder)?;
        let mut records = Vec::with_capacity(folders.len());
        for folder in folders {
            records.push(files::run_record(&folder.path)?);
        }
        records.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(records)
    }

    /// Makes the folder of a new run and writes its record. A run that was begun before is
    /// refused: take it up with [`ResultSet::run`], or begin another attempt.
    pub fn begin_run(&self, record: &RunRecord) -> Result<RunFolder, ResultsError> {
        let name = record.key.folder();
        check_name(&name, "run folder")?;
        let folder = self.folder.join(name);
        if folder.join("run.json").exists() {
            let why = "it already holds a run".to_owned();
            return Err(ResultsError::Occupied { path: folder, why });
        }
        atomic::create_folder(&folder)?;
        atomic::create_folder(&folder.join("steps"))?;
        atomic::create_folder(&folder.join("logs"))?;
        let run = RunFolder { folder };
        run.update(record)?;
        Ok(run)
    }

    /// A run that was begun before, to be written to again.
    pub fn run(&self, key: &RunKey) -> Result<RunFolder, ResultsError> {
        let folder = self.folder.join(key.folder());
        if !folder.join("run.json").exists() {
            let why = "it holds no run.json".to_owned();
            return Err(ResultsError::NotResults { path: folder, why });
        }
        Ok(RunFolder { folder })
    }

    fn plan_path(&self) -> PathBuf {
        self.folder.join("plan.toml")
    }

    fn gate_path(&self) -> PathBuf {
        self.folder.join("gate.json")
    }

    fn block_path(&self) -> PathBuf {
        self.folder.join("block.json")
    }

    fn hosts_path(&self) -> PathBuf {
        self.folder.join("hosts")
    }

    fn host_path(&self) -> PathBuf {
        self.folder.join("host.json")
    }
}

impl RunFolder {
    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// `run.json`.
    pub fn record(&self) -> Result<RunRecord, ResultsError> {
        files::run_record(&self.folder)
    }

    /// Writes `run.json` anew.
    pub fn update(&self, record: &RunRecord) -> Result<(), ResultsError> {
        atomic::write(&self.folder.join("run.json"), &json(record, "run.json")?)
    }

    /// Writes the turns of a step, before the step itself.
    pub fn write_turns(&self, step: &StepRecord, turns: &[Turn]) -> Result<(), ResultsError> {
        let name = format!("{:02}-{}", step.index, step.name);
        check_name(&name, "step")?;
        let path = self.folder.join("steps").join(format!("{name}.turns.csv"));
        atomic::write(&path, turns_csv(turns).as_bytes())
    }

    /// Writes the counters of the DBMS, before the step itself.
    pub fn write_counters(
        &self,
        step: &StepRecord,
        counters: &[Counter],
    ) -> Result<(), ResultsError> {
        let name = format!("{:02}-{}", step.index, step.name);
        check_name(&name, "step")?;
        let path = self.folder.join("steps").join(format!("{name}{}", counters::SUFFIX));
        atomic::write(&path, counters::to_csv(counters).as_bytes())
    }

    /// Writes what callgrind counted in a step, before the step itself.
    ///
    /// # Errors
    /// It is no profile; the file cannot be written.
    pub fn write_profile(&self, step: &StepRecord, text: &str) -> Result<(), ResultsError> {
        let name = callgrind::file_name(step);
        check_name(&name, "step")?;
        let what = format!("steps/{name}");
        let packed = callgrind::pack(text)
            .map_err(|why| ResultsError::Unwritable { what: what.clone(), why })?;
        atomic::write(&self.folder.join("steps").join(name), &packed)
    }

    /// Writes the sampled stacks of a step, before the step itself.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_stacks(
        &self,
        step: &StepRecord,
        stacks: &HashMap<String, u64>,
    ) -> Result<(), ResultsError> {
        let name = folded::file_name(step);
        check_name(&name, "step")?;
        let packed = folded::pack(stacks).map_err(|error| ResultsError::Unwritable {
            what: format!("steps/{name}"),
            why: error.to_string(),
        })?;
        atomic::write(&self.folder.join("steps").join(name), &packed)
    }

    /// Writes a step: its seconds first, then its record, which makes it count.
    pub fn write_step(&self, step: &StepRecord, rows: &[Second]) -> Result<(), ResultsError> {
        let name = format!("{:02}-{}", step.index, step.name);
        check_name(&name, "step")?;
        let steps = self.folder.join("steps");
        let record = json(step, &format!("steps/{name}.json"))?;
        atomic::write(&steps.join(format!("{name}.csv")), seconds::to_csv(rows).as_bytes())?;
        atomic::write(&steps.join(format!("{name}.json")), &record)
    }

    /// Writes `logs/NAME`.
    pub fn write_log(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        check_name(name, "log")?;
        atomic::write(&self.folder.join("logs").join(name), text.as_bytes())
    }
}

/// To the microsecond.
fn turns_csv(turns: &[Turn]) -> String {
    let mut text = "turn,start_ms,ms,events\n".to_owned();
    for Turn { turn, start_ms, ms, events } in turns {
        text.push_str(&format!("{turn},{start_ms:.3},{ms:.3},{events}\n"));
    }
    text
}

/// True if a folder of this one is a result set.
fn holds_sets(dir: &Path) -> bool {
    let all = dir.read_dir().into_iter().flatten().flatten();
    all.take(1000).any(|entry| entry.path().join("plan.toml").is_file())
}

/// A file in a folder that may not be looked into is not missing.
fn is_there(path: &Path) -> Result<bool, ResultsError> {
    path.try_exists().map_err(ResultsError::io("look for", path))
}

/// Pretty JSON with a final line end, proven to read back: JSON has no NaN and no infinity, and a
/// record that holds one must not be found out years later.
pub(super) fn json<T: Serialize + DeserializeOwned>(
    value: &T,
    what: &str,
) -> Result<Vec<u8>, ResultsError> {
    let unwritable = |why: String| ResultsError::Unwritable { what: format!("`{what}`"), why };
    let mut text = serde_json::to_string_pretty(value).map_err(|e| unwritable(e.to_string()))?;
    if let Err(fault) = serde_json::from_str::<T>(&text) {
        let line = text.lines().nth(fault.line().saturating_sub(1)).unwrap_or("").trim();
        return Err(unwritable(format!("`{line}` cannot be read back: {fault}")));
    }
    text.push('\n');
    Ok(text.into_bytes())
}

/// Names become names of files: no slash, no leading dot, nothing that cannot be seen.
fn check_name(name: &str, what: &str) -> Result<(), ResultsError> {
    let bad = |c: char| c == '/' || c.is_control();
    if name.is_empty() || name.starts_with('.') || name.contains(bad) {
        let why = "not a valid file name".to_owned();
        return Err(ResultsError::Unwritable { what: format!("{what} `{name}`"), why });
    }
    Ok(())
}

/// Names of the facts in which two hosts differ, for an error text.
fn differing_facts(a: &Host, b: &Host) -> String {
    let facts = |host: &Host| serde_json::to_value(host).unwrap_or_default();
    let (a, b) = (facts(a), facts(b));
    let Some(a) = a.as_object() else { return String::new() };
    let differing: Vec<String> = a
        .iter()
        .filter(|(name, value)| *name != "missing" && b.get(name.as_str()) != Some(value))
        .map(|(name, value)| {
            format!("{name}: {value} then, {} now", b.get(name.as_str()).unwrap_or(value))
        })
        .collect();
    differing.join("; ")
}
