//! Writing result sets and run folders, whole or not at all.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::read::{self, ResultsError};
use super::{profiles, seconds};
use rqps_model::gate::{GATE_FORMAT, HostLog};
use rqps_model::host::{Host, fingerprint};
use rqps_model::run::{
    BLOCK_FORMAT, BlockReport, Counter, RunKey, RunRecord, Second, StepRecord, Turn,
};
use rqps_model::safe_path;

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
            sweep(dir);
            return Ok(set);
        }
        if !dir.exists() {
            create_folder(dir)?;
        }
        // The plan comes last: it is what makes the folder a result set.
        write_whole(&set.host_path(), &json(host, "host.json")?)?;
        write_whole(&set.plan_path(), plan_toml.as_bytes())?;
        Ok(set)
    }

    /// This host as the set in `dir` knows it: a kernel numbers disks anew at each start, so the
    /// disk that was `sda` may be `sdb` now. No block of this start may have been measured on the
    /// other one.
    pub fn since_restart(dir: &Path, host: Host, boot: Option<&str>) -> Host {
        let set = ResultSet { folder: dir.to_owned() };
        let (Ok(there), Ok(gate)) = (set.host(), set.gate()) else { return host };
        let boots = gate.iter().flat_map(|gate| &gate.blocks).filter_map(|it| it.session.as_ref());
        let is_restarted = boot.is_some() && boots.into_iter().all(|it| it.boot.as_deref() != boot);
        let kinds = [&there, &host].map(|host| host.disk.as_deref().map(kind_of_disk));
        let disk = if is_restarted && kinds[0] == kinds[1] { there.disk } else { host.disk };
        Host { disk, ..host }
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
            sweep(dir);
        } else {
            create_folder(&set.hosts_path())?;
            write_whole(&set.plan_path(), plan_toml.as_bytes())?;
        }
        Ok(set)
    }

    /// Keeps a copy of a file that the workload reads: `workload/NAME`.
    pub fn keep_file(&self, name: &Path, content: &[u8]) -> Result<(), ResultsError> {
        let path = self.folder.join("workload").join(name);
        if let Some(folder) = path.parent() {
            create_folder(folder)?;
        }
        write_whole(&path, content)
    }

    /// Writes the facts of a host that measured blocks: `hosts/FINGERPRINT.json`.
    pub fn add_host(&self, host: &Host) -> Result<(), ResultsError> {
        let name = format!("hosts/{}.json", fingerprint(host));
        let path = self.folder.join(&name);
        if path.exists() { Ok(()) } else { write_whole(&path, &json(host, &name)?) }
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
                check_plain(dir).map(|()| true)
            } else {
                occupied("it holds the results of another plan".to_owned())
            };
        }
        for name in read::entries(dir)? {
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
        read::text(&self.plan_path())
    }

    /// `host.json`.
    pub fn host(&self) -> Result<Host, ResultsError> {
        read::json(&self.host_path())
    }

    /// The facts of all hosts that measured blocks.
    pub(super) fn hosts(&self) -> Result<Vec<Host>, ResultsError> {
        let folder = self.hosts_path();
        if !folder.is_dir() {
            return Ok(vec![self.host()?]);
        }
        read::entries(&folder)?.iter().map(|name| read::json(&folder.join(name))).collect()
    }

    /// `gate.json`; `None` if the set has none.
    pub fn gate(&self) -> Result<Option<HostLog>, ResultsError> {
        read::versioned(&self.gate_path(), GATE_FORMAT, |gate: &HostLog| gate.format)
    }

    /// Writes `gate.json` anew.
    pub fn write_gate(&self, gate: &HostLog) -> Result<(), ResultsError> {
        write_whole(&self.gate_path(), &json(gate, "gate.json")?)
    }

    /// `block.json`: the report of the one block that the set was made for; `None` if it has none.
    pub fn block(&self) -> Result<Option<BlockReport>, ResultsError> {
        read::versioned(&self.block_path(), BLOCK_FORMAT, |report: &BlockReport| report.format)
    }

    /// Writes `block.json`, when all runs of the block are written.
    pub fn write_block(&self, report: &BlockReport) -> Result<(), ResultsError> {
        write_whole(&self.block_path(), &json(report, "block.json")?)
    }

    /// The `run.json` of every run folder, by key. A folder without one was never begun.
    pub fn runs(&self) -> Result<Vec<RunRecord>, ResultsError> {
        let folders = read::run_folders(&self.folder)?;
        let mut records = Vec::with_capacity(folders.len());
        for folder in folders {
            records.push(read::run_record(&folder.path)?);
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
        create_folder(&folder)?;
        create_folder(&folder.join("steps"))?;
        create_folder(&folder.join("logs"))?;
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
        read::run_record(&self.folder)
    }

    /// Writes `run.json` anew.
    pub fn update(&self, record: &RunRecord) -> Result<(), ResultsError> {
        write_whole(&self.folder.join("run.json"), &json(record, "run.json")?)
    }

    /// Writes the turns of a step, before the step itself.
    pub fn write_turns(&self, step: &StepRecord, turns: &[Turn]) -> Result<(), ResultsError> {
        let name = format!("{:02}-{}", step.index, step.name);
        check_name(&name, "step")?;
        let path = self.folder.join("steps").join(format!("{name}.turns.csv"));
        write_whole(&path, turns_csv(turns).as_bytes())
    }

    /// Writes the counters of the DBMS, before the step itself.
    pub fn write_counters(
        &self,
        step: &StepRecord,
        counters: &[Counter],
    ) -> Result<(), ResultsError> {
        let name = format!("{:02}-{}", step.index, step.name);
        check_name(&name, "step")?;
        let path = self.folder.join("steps").join(format!("{name}{}", seconds::SUFFIX));
        write_whole(&path, seconds::counters_csv(counters).as_bytes())
    }

    /// Writes what callgrind counted in a step, before the step itself.
    ///
    /// # Errors
    /// It is no profile; the file cannot be written.
    pub fn write_profile(&self, step: &StepRecord, text: &str) -> Result<(), ResultsError> {
        let name = profiles::callgrind_name(step);
        check_name(&name, "step")?;
        let what = format!("steps/{name}");
        let packed = profiles::pack_callgrind(text)
            .map_err(|why| ResultsError::Unwritable { what: what.clone(), why })?;
        write_whole(&self.folder.join("steps").join(name), &packed)
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
        let name = profiles::folded_name(step);
        check_name(&name, "step")?;
        let packed = profiles::pack_folded(stacks).map_err(|error| ResultsError::Unwritable {
            what: format!("steps/{name}"),
            why: error.to_string(),
        })?;
        write_whole(&self.folder.join("steps").join(name), &packed)
    }

    /// Writes a step: its seconds first, then its record, which makes it count.
    pub fn write_step(&self, step: &StepRecord, rows: &[Second]) -> Result<(), ResultsError> {
        let name = format!("{:02}-{}", step.index, step.name);
        check_name(&name, "step")?;
        let steps = self.folder.join("steps");
        let record = json(step, &format!("steps/{name}.json"))?;
        write_whole(&steps.join(format!("{name}.csv")), seconds::seconds_csv(rows).as_bytes())?;
        write_whole(&steps.join(format!("{name}.json")), &record)
    }

    /// Writes `logs/NAME`.
    pub fn write_log(&self, name: &str, text: &str) -> Result<(), ResultsError> {
        check_name(name, "log")?;
        write_whole(&self.folder.join("logs").join(name), text.as_bytes())
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
/// The name of a block device without what numbers it: `nvmenp` of `nvme0n1p2`, `sd` of `sda1`.
fn kind_of_disk(name: &str) -> String {
    let lettered = ["xvd", "sd", "vd", "hd"].into_iter().find(|kind| name.starts_with(kind));
    lettered.map_or_else(|| name.replace(|c: char| c.is_ascii_digit(), ""), str::to_owned)
}

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

// What may lie in a result folder that is resumed. It may come from somebody else: a link in it
// would lead writes elsewhere, and a pipe would hold them for ever.

/// Refuses a result folder in which something is neither a plain file nor a folder; if rqps runs as
/// root, also one with a folder of another user. What begins with a dot has checks of its own.
///
/// # Errors
/// There is such an entry, or it cannot be read.
pub(super) fn check_plain(folder: &Path) -> Result<(), ResultsError> {
    let refused =
        |path: &Path, why: String| Err(ResultsError::Occupied { path: path.to_owned(), why });
    let facts = fs::metadata(folder).map_err(ResultsError::io("read", folder))?;
    let user = rustix::process::geteuid();
    if user.is_root() && facts.uid() != 0 {
        let why = format!(
            "it belongs to user {}, and rqps runs as root: resume it as that user, or copy it",
            facts.uid()
        );
        return refused(folder, why);
    }
    for entry in fs::read_dir(folder).map_err(ResultsError::io("read", folder))? {
        let entry = entry.map_err(ResultsError::io("read", folder))?;
        let path = entry.path();
        let kind = entry.file_type().map_err(ResultsError::io("read", &path))?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if kind.is_dir() {
            if !is_hidden {
                check_plain(&path)?;
            }
        } else if !kind.is_file() && !is_hidden {
            let why = "it is neither a plain file nor a folder, so rqps writes nothing beside it; \
                       remove it, or copy the results without it";
            return refused(&path, why.to_owned());
        }
    }
    Ok(())
}

// Files that are there whole or not at all.

/// The end of a temporary name.
const PARTIAL: &str = ".partial";

/// Writes `bytes` to `path`: to a temporary name beside it, fsynced, renamed over it, and the
/// folder fsynced. A kill at any moment leaves the old file or the new one, and perhaps a
/// temporary file, whose name begins with a dot: readers pass those over.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), ResultsError> {
    let temporary = Temporary::beside(path)?;
    let mut file = temporary.create()?;
    file.write_all(bytes).map_err(temporary.fault("write"))?;
    file.sync_all().map_err(temporary.fault("flush"))?;
    let above = temporary.put_in_place(path)?;
    above.sync_all().map_err(ResultsError::io("flush the folder of", path))
}

/// As [`write_whole`], but without fsync: for output that can be made again after a power failure.
///
/// # Errors
/// The file cannot be written.
pub fn replace_whole(path: &Path, content: impl AsRef<[u8]>) -> Result<(), ResultsError> {
    let temporary = Temporary::beside(path)?;
    temporary.create()?.write_all(content.as_ref()).map_err(temporary.fault("write"))?;
    temporary.put_in_place(path).map(drop)
}

/// The name of a file until it is whole, in a folder that nobody swaps meanwhile. An error removes
/// the file: a full disk needs the room.
pub(super) struct Temporary {
    above: File,
    name: OsString,
    path: PathBuf,
}

impl Temporary {
    pub(super) fn beside(path: &Path) -> Result<Temporary, ResultsError> {
        let mut name = OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(PARTIAL);
        let temporary = path.with_file_name(&name);
        let (above, _) = safe_path::parent(path).map_err(ResultsError::io("create", &temporary))?;
        Ok(Temporary { above, name, path: temporary })
    }

    /// The new file. What has its name is removed: a rest of a killed process, or a link or a pipe
    /// that somebody else put there.
    pub(super) fn create(&self) -> Result<File, ResultsError> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let made = match unlinkat(&self.above, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {
                openat(&self.above, &self.name, flags, Mode::from_raw_mode(0o666))
            }
            Err(error) => Err(error),
        };
        made.map(File::from).map_err(|error| self.fault("create")(error.into()))
    }

    pub(super) fn fault(&self, doing: &'static str) -> impl FnOnce(std::io::Error) -> ResultsError {
        ResultsError::io(doing, &self.path)
    }

    /// Gives the file its name. Returns the folder.
    pub(super) fn put_in_place(self, path: &Path) -> Result<File, ResultsError> {
        let name = path.file_name().unwrap_or_default();
        let fault = |error: Errno| ResultsError::io("put in place", path)(error.into());
        renameat(&self.above, &self.name, &self.above, name).map_err(fault)?;
        self.above.try_clone().map_err(ResultsError::io("put in place", path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is none of that name.
        let _ = unlinkat(&self.above, &self.name, AtFlags::empty());
    }
}

/// Removes what [`write_whole`] had not finished when it was killed, here and in the folders below. No
/// link is followed, also none that is put there meanwhile. What begins with a dot is for others.
fn sweep(folder: &Path) {
    // What cannot be removed stays; readers pass it over.
    if let Ok(folder) = safe_path::folder(folder) {
        sweep_open(&folder);
    }
}

fn sweep_open(folder: &File) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    for entry in Dir::read_from(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_hidden = name.to_bytes().starts_with(b".");
        if is_hidden && name.to_bytes().ends_with(PARTIAL.as_bytes()) {
            let facts = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
            let is_file = |facts: &Stat| FileType::from_raw_mode(facts.st_mode).is_file();
            if facts.is_ok_and(|facts| is_file(&facts)) {
                let _ = unlinkat(folder, name, AtFlags::empty());
            }
        } else if !is_hidden && let Ok(below) = openat(folder, name, flags, Mode::empty()) {
            sweep_open(&File::from(below));
        }
    }
}

/// Creates a folder that may be there already, durably.
pub(super) fn create_folder(path: &Path) -> Result<(), ResultsError> {
    let made = safe_path::make_folder(path).map_err(ResultsError::io("create", path))?;
    made.sync_all().map_err(ResultsError::io("flush", path))?;
    let above = safe_path::parent(path).map(|(above, _)| above.sync_all());
    // `.` and `/` are in no folder that has to know them.
    above.unwrap_or(Ok(())).map_err(ResultsError::io("flush the folder of", path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_pipes_are_found_at_any_depth() {
        let set = tempfile::tempdir().unwrap();
        let steps = set.path().join("b01-1-a/steps");
        fs::create_dir_all(&steps).unwrap();
        fs::write(steps.join("01-x.json"), "{}").unwrap();
        check_plain(set.path()).unwrap();
        symlink("/nowhere", set.path().join(".hidden")).unwrap();
        check_plain(set.path()).unwrap();
        for name in ["report.html", "b01-1-a/logs", "b01-1-a/steps/02-y.json"] {
            let link = set.path().join(name);
            symlink("/nowhere", &link).unwrap();
            let error = check_plain(set.path()).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("neither"), "{error}");
            fs::remove_file(link).unwrap();
        }
        let pipe = set.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert!(check_plain(set.path()).is_err());
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("steps.json");
        // A folder cannot be replaced by a file.
        fs::create_dir(&path).unwrap();
        assert!(write_whole(&path, b"text").is_err() && replace_whole(&path, "text").is_err());
        let names = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(names, 1, "only the folder");
    }

    #[test]
    fn a_link_in_place_of_a_temporary_file_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "mine").unwrap();
        for write_one in
            [|path: &Path| write_whole(path, b"new"), |path: &Path| replace_whole(path, "new")]
        {
            symlink(&victim, folder.path().join(".run.json.partial")).unwrap();
            write_one(&folder.path().join("run.json")).unwrap();
            assert_eq!(fs::read_to_string(&victim).unwrap(), "mine");
            assert_eq!(fs::read_to_string(folder.path().join("run.json")).unwrap(), "new");
        }
    }

    #[test]
    fn a_sweep_takes_only_unfinished_files_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let other = tempfile::tempdir().unwrap();
        fs::write(other.path().join(".x.partial"), "").unwrap();
        symlink(other.path(), at("link")).unwrap();
        symlink(other.path().join(".x.partial"), at(".linked.partial")).unwrap();
        for folder in [".work", "run"] {
            fs::create_dir(at(folder)).unwrap();
            fs::write(at(folder).join(".x.partial"), "").unwrap();
        }
        for name in [".host.json.partial", "x.partial", ".lock"] {
            fs::write(at(name), "").unwrap();
        }
        sweep(folder.path());
        let gone = [".host.json.partial", "run/.x.partial"];
        assert!(gone.iter().all(|name| !at(name).exists()));
        let kept = ["x.partial", ".lock", ".work/.x.partial", "link/.x.partial", ".linked.partial"];
        assert!(kept.iter().all(|name| at(name).exists()));
    }
}
