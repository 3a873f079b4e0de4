//! Blocks on their way to other hosts and back. `.cells` in the result folder has a cell for each
//! attempt at a block: what was written down, and what each start of it has written. On Slurm it is
//! the shared folder that nodes read and write.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{io, thread};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::lab::ssh;
use crate::plan::BlockSpec;
use rqps_host::beneath::{self, Folder, REMOVALS};
use rqps_host::lock::{Lock, LockError, MarkKey, OwnFolder};
use rqps_host::user;
use rqps_model::run::{BLOCK_FORMAT, BlockReport, RunKey};
use rqps_model::units::{self, short_hash};
use rqps_model::{escape, safe_path};
use rqps_results::{ResultSet, replace_whole};

/// The folder of all cells, in the result folder. Readers of results pass it over.
const FOLDER: &str = ".cells";
/// The folder for outputs of jobs, in the result folder.
const LOGS: &str = "jobs";
/// Bytes that are read of the log of a failed block, at most.
const LOG_TAIL_BYTES: u64 = 4096;
/// Bytes at the end of the log of a job that are kept.
const LOG_KEPT: u64 = 4 << 20;
/// The report of a start, which is there when it has come to its end.
const REPORT: &str = "block.json";
/// No report or record is longer.
const REPORT_MOST: u64 = 64 << 20;

/// The cells of a result folder.
pub(super) struct Cells {
    /// The proof that rqps made the folder.
    pub(super) own: OwnFolder,
    results: ResultSet,
    /// The rqps that measures all blocks, a copy: the original may be replaced meanwhile.
    pub(super) program: PathBuf,
}

/// One attempt at a block.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    /// `0003-1`: block and attempt.
    pub(super) name: String,
    /// Hash of everything that it measures, and where.
    pub(super) id: String,
    /// As written down.
    pub(super) spec: BlockSpec,
}

impl Cells {
    /// The cells of a result set; puts a copy of `program` beside them.
    ///
    /// # Errors
    /// The folder cannot be written, or the program cannot be read.
    pub(super) fn open(results: &ResultSet, program: &Path, key: &MarkKey) -> Result<Cells> {
        let folder = path_of(results.folder())?;
        let own = key.claim(&folder).context("keep blocks on their way")?;
        let logs = results.folder().join(LOGS);
        safe_path::make_folder(&logs).with_context(|| format!("make {}", logs.display()))?;
        let copy = folder.join(ssh::program_name(&ssh::digest_of(program)?));
        if !copy.exists() {
            let partial = folder.join(".program.partial");
            File::open(program)
                .and_then(|program| safe_path::copy(&program, &partial))
                .and_then(|_| safe_path::rename(&partial, &copy))
                .with_context(|| format!("copy rqps to {}", copy.display()))?;
        }
        Ok(Cells { own, results: results.clone(), program: copy })
    }

    /// The folder of all cells, from the root.
    pub(super) fn folder(&self) -> &Path {
        self.own.path()
    }

    /// The file name of the copy of rqps.
    pub(super) fn program_name(&self) -> String {
        file_name(&self.program)
    }

    /// The folder of one of them.
    pub(super) fn folder_of(&self, cell: &Cell) -> PathBuf {
        self.folder().join(&cell.name)
    }

    /// Writes a block down for hosts of this class.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn write(&self, spec: BlockSpec, class: &str) -> Result<Cell> {
        let cell = Cell { name: name(&spec), id: id(&spec, class), spec };
        let folder = self.folder_of(&cell);
        safe_path::make_folder(&folder).with_context(|| format!("make {}", folder.display()))?;
        replace_whole(&folder.join("spec.json"), cell.spec.print()?)?;
        replace_whole(&folder.join("cell"), format!("{}\n", cell.id))?;
        Ok(cell)
    }

    /// The id of the cell of this name, as it was written down; `None` if it was not.
    pub(super) fn id_of(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder().join(name).join("cell")).ok()?;
        Some(text.trim().to_owned())
    }

    /// The report of a block, if a start of it came to its end. Its runs and the facts of its host
    /// are in the result folder then, and so is `log`, what the job said.
    ///
    /// What a host wrote is hostile: it is copied without links first, and names come from what
    /// this host wrote down, never from a report.
    ///
    /// The first report that is seen counts. A second start, of a host that was thought dead, may
    /// also end: nobody reads it.
    ///
    /// # Errors
    /// The report cannot be read, or the result folder cannot be written.
    pub(super) fn take(&self, cell: &Cell, log: &Path) -> Result<Option<BlockReport>> {
        let Some((taken, report)) = self.chosen(cell)? else { return Ok(None) };
        let what = || format!("take block {} from {}", cell.spec.block, taken.display());
        let measured = ResultSet::open(&taken).with_context(what)?;
        self.results.add_host(&measured.host().with_context(what)?)?;
        for run in &report.runs {
            let name = run.key.folder();
            bring(&taken.join(&name), &self.results.folder().join(&name))?;
        }
        let logs = self.results.folder().join(LOGS);
        bring(&taken.join("load"), &logs.join(format!("{}.load", cell.name)))?;
        if let Ok(said) = beneath::end(log, 0, LOG_KEPT) {
            let kept = logs.join(format!("{}.log", cell.name));
            replace_whole(&kept, said)?;
        }
        File::open(self.results.folder()).and_then(|folder| folder.sync_all())?;
        Ok(Some(report))
    }

    /// A copy of the start that counts, which nobody else can change, with its report.
    fn chosen(&self, cell: &Cell) -> Result<Option<(PathBuf, BlockReport)>> {
        let taken = self.folder().join(format!("{}.taken", cell.name));
        if is_folder(&taken) {
            let report = checked_report(cell, &taken)?;
            return Ok(report.map(|report| (taken, report)));
        }
        for start in starts(&self.folder_of(cell))? {
            let is_whole = fs::symlink_metadata(start.join(REPORT)).is_ok_and(|it| it.is_file());
            if !is_whole {
                continue;
            }
            let partial = self.folder().join(format!("{}.taking", cell.name));
            self.own.remove_below(&partial)?;
            ssh::copy(&start, &partial, ssh::OF_BLOCK)?;
            if let Some(report) = checked_report(cell, &partial)? {
                rustix::fs::syncfs(File::open(&partial)?).context("bring a block to the disk")?;
                safe_path::rename(&partial, &taken).context("name a block that was taken in")?;
                return Ok(Some((taken, report)));
            }
            self.own.remove_below(&partial)?;
        }
        Ok(None)
    }

    /// Removes all cells: the plan is done.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub(super) fn clear(&self) -> Result<()> {
        Ok(self.own.remove()?)
    }
}

/// The folder of the cells of a result folder, from the root.
///
/// # Errors
/// There is no current folder.
pub(super) fn path_of(results: &Path) -> Result<PathBuf> {
    let results = std::path::absolute(results).context("find the result folder")?;
    Ok(results.join(FOLDER))
}

/// Name of the cell of a block.
pub(super) fn name(spec: &BlockSpec) -> String {
    format!("{:04}-{}", spec.block, spec.attempt)
}

/// The hash of what one cell measures: builds, settings, workload, class of hosts, block and
/// attempt.
pub(super) fn id(spec: &BlockSpec, class: &str) -> String {
    let mut text = format!("{}\n{}\n{class}\n", spec.id, spec.rqps_version);
    for slot in &spec.targets {
        let build = slot.build.sha256.as_deref().unwrap_or(&slot.build.origin);
        text.push_str(&format!("{build}\n{}\n{}\n", slot.config.hash, slot.position));
    }
    units::short_hash(text)
}

/// Folders of the starts of a cell, the first to be made first.
fn starts(cell: &Path) -> Result<Vec<PathBuf>> {
    let mut starts = BTreeSet::new();
    let entries = fs::read_dir(cell).with_context(|| format!("read {}", cell.display()))?;
    for entry in entries {
        let entry = entry.with_context(|| format!("read {}", cell.display()))?;
        // A link leads to what no start has written.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            starts.insert(entry.path());
        }
    }
    Ok(starts.into_iter().collect())
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|facts| facts.is_dir())
}

/// What another host wrote.
fn read_json<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| anyhow!(escape::fault(error)))
}

/// The report in a folder that was taken in; `None` if it is of another block.
///
/// # Errors
/// It cannot be read, or it has runs that the block cannot have.
fn checked_report(cell: &Cell, taken: &Path) -> Result<Option<BlockReport>> {
    let file = taken.join(REPORT);
    let what = || format!("read {}", file.display());
    let report: BlockReport = read_json(&ssh::text(&file, REPORT_MOST)?).with_context(what)?;
    if report.format > BLOCK_FORMAT {
        bail!("{}: a newer rqps wrote it", what());
    }
    if report.id != cell.spec.id {
        return Ok(None);
    }
    for run in &report.runs {
        let is_own = cell.spec.targets.iter().any(|slot| {
            run.key.label == slot.label
                && run.key.order == slot.position
                && (run.key.block, run.key.attempt) == (cell.spec.block, cell.spec.attempt)
        });
        if !is_own {
            bail!("{}: it has a run that is not of this block: {:?}", what(), run.key.folder());
        }
        let record = taken.join(run.key.folder()).join("run.json");
        if record.exists() {
            let text = ssh::text(&record, REPORT_MOST)?;
            let found: OfRun = read_json(&text).with_context(|| record.display().to_string())?;
            if found.key != run.key {
                bail!("read {}: it is of another run", record.display());
            }
        }
    }
    Ok(Some(report))
}

/// The part of `run.json` that its folder is named after.
#[derive(Deserialize)]
struct OfRun {
    key: RunKey,
}

/// Moves a folder into the result folder, unless an earlier rqps has done so.
fn bring(from: &Path, to: &Path) -> Result<()> {
    if !is_folder(from) {
        return Ok(());
    }
    if fs::symlink_metadata(to).is_ok() {
        bail!("move {} to {}: it is there", from.display(), to.display());
    }
    safe_path::rename(from, to)
        .with_context(|| format!("move {} to {}", from.display(), to.display()))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// True if rqps or the job says in its log why it failed.
pub(super) fn complains(log: &Path) -> bool {
    last_words(log).is_some_and(|said| said.starts_with("failed"))
}

/// The last message of rqps in a log, or else its last line; `None` for an empty log.
pub(super) fn last_words(log: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&beneath::end(log, 0, LOG_TAIL_BYTES).ok()?).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let fault = lines.iter().rposition(|line| line.starts_with("rqps: failed"));
    let from = fault.unwrap_or(lines.len().saturating_sub(1));
    let said = lines.get(from..)?.join("; ");
    (!said.is_empty()).then(|| said.trim_start_matches("rqps: ").to_owned())
}

// Folders for the data of blocks on a host of a pool. A block that was killed leaves its data; who
// started it removes them, or the next block on that host.

/// Time for a block to stop its servers after its connection was cut; wardens have the same time
/// after the block was killed.
const ENDING: Duration = Duration::from_secs(60);
/// Between two looks whether it has.
const LOOK: Duration = Duration::from_millis(100);

/// The folder of one block, and its lock for as long as this lives.
pub(in crate::lab) struct BlockFolder {
    own: OwnFolder,
    lock_path: PathBuf,
    _lock: Lock,
}

impl BlockFolder {
    /// Makes a folder for the block whose results go to `out`, in a folder of this user in `work`.
    /// Removes the folders of blocks that are gone.
    ///
    /// # Errors
    /// The folder cannot be made, or another process measures the same block.
    pub(in crate::lab) fn make(work: &Path, out: &Path, key: &MarkKey) -> Result<BlockFolder> {
        let (all, path, lock_path) = paths(work, out)?;
        let doing = format!("rqps, block in {}", out.display());
        let mut tries = 0;
        let lock = loop {
            make_folder_of_user(work)?;
            remove_leftovers(&all, key);
            match Lock::acquire(&lock_path, &doing) {
                // A block that ended has removed the empty folder.
                Err(LockError::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && tries < REMOVALS =>
                {
                    tries += 1;
                }
                lock => break lock?,
            }
        };
        let own = key.claim(&path).context("keep data of a block")?;
        Ok(BlockFolder { own, lock_path, _lock: lock })
    }

    pub(in crate::lab) fn path(&self) -> &Path {
        self.own.path()
    }
}

/// Checks that this user may keep data of blocks in `work`.
///
/// # Errors
/// No folder can be made there.
pub(in crate::lab) fn check_can_keep(work: &Path) -> Result<()> {
    make_folder_of_user(work)?;
    // Data of other blocks keep it.
    fs::remove_dir(folder_of_user(work)).ok();
    Ok(())
}

/// The folder of all blocks of this user in `work`.
fn folder_of_user(work: &Path) -> PathBuf {
    work.join(format!("rqps-blocks-{}", rustix::process::geteuid().as_raw()))
}

/// Makes it, or finds it: `work` may be a place for everyone, but nobody may put another folder in its
/// place while root works there. The error says what to do.
fn make_folder_of_user(work: &Path) -> Result<()> {
    let folder = folder_of_user(work);
    let name = folder.file_name().unwrap_or_default();
    let made = safe_path::make_folder(work)
        .and_then(|_| user::check_entries(work).map_err(io::Error::other))
        .and_then(|()| Folder::open(work)?.make_or_find(name, 0o711).map(drop));
    made.map_err(|error| {
        anyhow!(
            "keep data in {}: make {}: {error}\nhint: name a folder with --work that you may write \
             to on each host",
            work.display(),
            folder.display()
        )
    })
}

/// True of a folder of this user, into which no other may write: in a place for everyone, nobody can
/// put another one there.
fn is_own(folder: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder)
        .is_ok_and(|facts| facts.is_dir() && facts.uid() == own && facts.mode() & 0o002 == 0)
}

/// The folder of all blocks of this user in `work`, that of the block whose results go to `out`,
/// and its lock.
fn paths(work: &Path, out: &Path) -> Result<(PathBuf, PathBuf, PathBuf)> {
    let all = folder_of_user(work);
    let out = std::path::absolute(out).context("find the result folder")?;
    let name = short_hash(out.as_os_str().as_encoded_bytes());
    let lock_path = all.join(format!("{name}.lock"));
    let path = all.join(name);
    Ok((all, path, lock_path))
}

/// Waits until the block has ended whose results go to `out`, however that comes, and removes its
/// data and the folder around its results.
///
/// # Errors
/// It does not end, or a folder cannot be removed.
pub fn clear_block(work: &Path, out: &Path, key: &MarkKey) -> Result<()> {
    let (all, path, lock_path) = paths(work, out)?;
    let deadline = Instant::now() + ENDING;
    let is_own = is_own(&all);
    while is_own && (lock_path.exists() || path.exists()) {
        // A server of a killed block may still write until its warden has ended it.
        let removed = Lock::acquire(&lock_path, "rqps, removing what a block left")
            .map_err(anyhow::Error::from)
            .and_then(|lock| {
                key.find(&path)?.map_or(Ok(()), |own| own.remove())?;
                fs::remove_file(&lock_path).ok();
                drop(lock);
                Ok(())
            });
        match removed {
            Ok(()) => break,
            Err(error) if Instant::now() > deadline => {
                return Err(error).context("remove what the block left");
            }
            Err(_) => thread::sleep(LOOK),
        }
    }
    // Data of other blocks keep it.
    if is_own {
        fs::remove_dir(&all).ok();
    }
    match out.parent() {
        // Whoever had the block started has made it for the block alone.
        Some(around) if around.exists() => beneath::remove_made(around, None)
            .with_context(|| format!("remove {}", around.display())),
        _ => Ok(()),
    }
}

impl Drop for BlockFolder {
    /// Removes the folder. The next block removes the files that this one cannot.
    fn drop(&mut self) {
        if self.own.remove().is_ok() {
            fs::remove_file(&self.lock_path).ok();
        }
        // Data of other blocks keep it.
        if let Some(all) = self.own.path().parent() {
            fs::remove_dir(all).ok();
        }
    }
}

/// Removes the folders whose owners have ended. One that cannot be removed stays until the next
/// block tries: it only takes space, and a block that lacks space says so.
fn remove_leftovers(all: &Path, key: &MarkKey) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let lock_path = path.with_extension("lock");
        let Ok(lock) = Lock::acquire(&lock_path, "rqps, removing what a block left") else {
            continue;
        };
        if let Ok(Some(own)) = key.find(&path)
            && own.remove().is_ok()
        {
            fs::remove_file(&lock_path).ok();
        }
        drop(lock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_removes_what_dead_blocks_left_and_nothing_else() {
        let work = tempfile::tempdir().expect("folder");
        let key = MarkKey::open(None).expect("a key");
        let make = |out: &str| BlockFolder::make(work.path(), Path::new(out), &key);
        let living = make("/results/a").expect("a folder");
        let all = living.path().parent().expect("a parent").to_owned();
        key.claim(&all.join("0123456789ab")).expect("a leftover");
        fs::create_dir(all.join("photos")).expect("a folder of others");
        for file in ["0123456789ab/data", "photos/me"] {
            fs::write(all.join(file), "x").expect("its data");
        }
        let next = make("/results/b").expect("a folder");
        assert!(!all.join("0123456789ab").exists());
        assert!(all.join("photos/me").exists());
        for lock in ["photos/me", "photos.lock"] {
            fs::remove_file(all.join(lock)).expect("remove");
        }
        fs::remove_dir(all.join("photos")).expect("remove");
        assert!(living.path().is_dir() && next.path().is_dir());
        let again = make("/results/a").err();
        assert!(again.is_some_and(|error| error.to_string().contains("is held by")));
        drop((living, next));
        assert!(!all.exists(), "nothing is left");
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let work = tempfile::tempdir().expect("folder");
        let elsewhere = tempfile::tempdir().expect("folder");
        let key = MarkKey::open(None).expect("a key");
        let place = folder_of_user(work.path());
        symlink(elsewhere.path(), &place).expect("a link");
        assert!(BlockFolder::make(work.path(), Path::new("/results/a"), &key).is_err());
        assert_eq!(fs::read_dir(elsewhere.path()).expect("folder").count(), 0);
        fs::remove_file(&place).expect("remove");
        fs::create_dir(&place).expect("a folder");
        fs::set_permissions(&place, fs::Permissions::from_mode(0o777)).expect("chmod");
        assert!(check_can_keep(work.path()).is_err());
        fs::remove_dir(&place).expect("remove");
        check_can_keep(work.path()).expect("an own place");
        if user::is_root() {
            std::os::unix::fs::chown(work.path(), Some(65_534), None).expect("chown");
            let error = check_can_keep(work.path()).expect_err("somebody's place").to_string();
            assert!(error.contains("others than root may write to"), "{error}");
        }
    }

    #[test]
    fn what_a_killed_block_left_is_removed_for_it() {
        let work = tempfile::tempdir().expect("folder");
        let out = work.path().join("cell/start");
        let (all, data, lock) = paths(work.path(), &out).expect("paths");
        let key = MarkKey::open(None).expect("a key");
        fs::create_dir_all(&out).expect("a folder");
        key.claim(&data).expect("a folder");
        fs::write(&lock, "").expect("its lock");
        clear_block(work.path(), &out, &key).expect("clear");
        assert!(!all.exists());
        assert!(!work.path().join("cell").exists());
        clear_block(work.path(), &out, &key).expect("nothing to clear");
    }

    #[test]
    fn what_is_somebody_elses_is_not_cleared() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let work = tempfile::tempdir().expect("folder");
        let out = work.path().join("cell/start");
        let (all, _, lock) = paths(work.path(), &out).expect("paths");
        let key = MarkKey::open(None).expect("a key");
        fs::create_dir(&all).expect("a folder");
        fs::write(&lock, "theirs").expect("a file of theirs");
        fs::set_permissions(&all, fs::Permissions::from_mode(0o777)).expect("chmod");
        clear_block(work.path(), &out, &key).expect("nothing to clear");
        assert!(lock.exists());
        if user::is_root() {
            fs::set_permissions(&all, fs::Permissions::from_mode(0o755)).expect("chmod");
            std::os::unix::fs::chown(&all, Some(65_534), None).expect("chown");
            clear_block(work.path(), &out, &key).expect("nothing to clear");
            assert!(lock.exists());
            fs::remove_file(&lock).expect("remove");
            clear_block(work.path(), &out, &key).expect("nothing to clear");
            assert!(all.exists(), "an empty folder of somebody else stays");
        }
        let elsewhere = tempfile::tempdir().expect("folder");
        fs::remove_dir_all(&all).expect("remove");
        symlink(elsewhere.path(), &all).expect("a link");
        let there = elsewhere.path().join(lock.file_name().expect("a name"));
        fs::write(&there, "theirs").expect("a file of theirs");
        clear_block(work.path(), &out, &key).expect("nothing to clear");
        assert!(there.exists());
    }

    #[test]
    fn a_block_that_stops_is_waited_for() {
        let work = tempfile::tempdir().expect("folder");
        let out = work.path().join("cell/start");
        let key = MarkKey::open(None).expect("a key");
        let block = BlockFolder::make(work.path(), &out, &key).expect("a folder");
        let data = block.path().to_owned();
        thread::scope(|scope| {
            let clear = scope.spawn(|| clear_block(work.path(), &out, &key));
            thread::sleep(LOOK);
            assert!(data.is_dir(), "it is at work");
            drop(block);
            clear.join().expect("no panic").expect("clear");
        });
        assert!(!data.exists());
    }
}
