//! Blocks on their way to other hosts and back. `.cells` in the result folder has a cell for each
//! attempt at a block: what was written down, and what each start of it has written. On Slurm it is
//! the shared folder that nodes read and write.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::domain::block::BlockReport;
use crate::lab::far;
use crate::plan::BlockSpec;
use crate::results::{ResultSet, replace_whole};
use crate::units;

/// The folder of all cells, in the result folder. Readers of results pass it over.
const FOLDER: &str = ".cells";
/// The folder for outputs of jobs, in the result folder.
const LOGS: &str = "jobs";
/// Bytes that are read of the log of a failed block, at most.
const LAST_WORDS: usize = 4096;

/// The cells of a result folder.
pub(super) struct Cells {
    folder: PathBuf,
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
    pub(super) fn open(results: &ResultSet, program: &Path) -> Result<Cells> {
        let folder = path_of(results.folder())?;
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        let logs = results.folder().join(LOGS);
        fs::create_dir_all(&logs).with_context(|| format!("make {}", logs.display()))?;
        let copy = folder.join(far::program_name(&far::digest_of(program)?));
        if !copy.exists() {
            let partial = folder.join(".program.partial");
            fs::copy(program, &partial)
                .and_then(|_| fs::rename(&partial, &copy))
                .with_context(|| format!("copy rqps to {}", copy.display()))?;
        }
        Ok(Cells { folder, results: results.clone(), program: copy })
    }

    /// The folder of all cells, from the root.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file name of the copy of rqps.
    pub(super) fn program_name(&self) -> String {
        file_name(&self.program)
    }

    /// The folder of one of them.
    pub(super) fn folder_of(&self, cell: &Cell) -> PathBuf {
        self.folder.join(&cell.name)
    }

    /// Writes a block down for hosts of this class.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub(super) fn write(&self, spec: BlockSpec, class: &str) -> Result<Cell> {
        let cell = Cell { name: name(&spec), id: id(&spec, class), spec };
        let folder = self.folder_of(&cell);
        fs::create_dir_all(&folder).with_context(|| format!("make {}", folder.display()))?;
        replace_whole(&folder.join("spec.json"), cell.spec.print()?)?;
        replace_whole(&folder.join("cell"), format!("{}\n", cell.id))?;
        Ok(cell)
    }

    /// The id of the cell of this name, as it was written down; `None` if it was not.
    pub(super) fn id_of(&self, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(name).join("cell")).ok()?;
        Some(text.trim().to_owned())
    }

    /// The report of a block, if a start of it came to its end. Its runs and the facts of its host
    /// are in the result folder then, and so is `log`, what the job said.
    ///
    /// The first report that is seen counts. A second start, of a host that was thought dead, may
    /// also end: nobody reads it.
    ///
    /// # Errors
    /// The report cannot be read, or the result folder cannot be written.
    pub(super) fn take(&self, cell: &Cell, log: &Path) -> Result<Option<BlockReport>> {
        let folder = self.folder_of(cell);
        let Some((start, report)) = self.chosen(cell, &folder)? else { return Ok(None) };
        let what = || format!("take block {} from {}", cell.spec.block, start.display());
        replace_whole(&folder.join("taken"), file_name(&start)).with_context(what)?;
        let measured = ResultSet::open(&start).with_context(what)?;
        self.results.add_host(&measured.host().with_context(what)?)?;
        for run in &report.runs {
            let name = run.key.folder();
            self.bring(&start.join(&name), &self.results.folder().join(&name))?;
        }
        let logs = self.results.folder().join(LOGS);
        self.bring(&start.join("load"), &logs.join(format!("{}.load", cell.name)))?;
        if log.exists() {
            let kept = logs.join(format!("{}.log", cell.name));
            fs::copy(log, &kept).with_context(|| format!("write {}", kept.display()))?;
        }
        File::open(self.results.folder()).and_then(|folder| folder.sync_all())?;
        Ok(Some(report))
    }

    /// The attempt that counts, with its report.
    fn chosen(&self, cell: &Cell, folder: &Path) -> Result<Option<(PathBuf, BlockReport)>> {
        let starts = match fs::read_to_string(folder.join("taken")) {
            Ok(start) => vec![folder.join(start)],
            Err(_) => starts(folder)?,
        };
        for start in starts {
            if !start.join("block.json").exists() {
                continue;
            }
            let report = ResultSet::open(&start).and_then(|set| set.block());
            let report = report.with_context(|| format!("read {}", start.display()))?;
            if let Some(report) = report.filter(|report| report.id == cell.spec.id) {
                return Ok(Some((start, report)));
            }
        }
        Ok(None)
    }

    /// Moves a folder into the result folder, unless an earlier rqps has done so.
    fn bring(&self, from: &Path, to: &Path) -> Result<()> {
        if !from.exists() {
            return Ok(());
        }
        fs::rename(from, to).with_context(|| format!("move {} to {}", from.display(), to.display()))
    }

    /// Removes all cells: the plan is done.
    ///
    /// # Errors
    /// The folder cannot be removed.
    pub(super) fn clear(&self) -> Result<()> {
        crate::os::disk::remove_tree(&self.folder)
            .with_context(|| format!("remove {}", self.folder.display()))
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
        let path = entry.with_context(|| format!("read {}", cell.display()))?.path();
        if path.is_dir() {
            starts.insert(path);
        }
    }
    Ok(starts.into_iter().collect())
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
    let bytes = fs::read(log).ok()?;
    let tail = bytes.get(bytes.len().saturating_sub(LAST_WORDS)..).unwrap_or_default();
    let text = String::from_utf8_lossy(tail).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let fault = lines.iter().rposition(|line| line.starts_with("rqps: failed"));
    let from = fault.unwrap_or(lines.len().saturating_sub(1));
    let said = lines.get(from..)?.join("; ");
    (!said.is_empty()).then(|| said.trim_start_matches("rqps: ").to_owned())
}
