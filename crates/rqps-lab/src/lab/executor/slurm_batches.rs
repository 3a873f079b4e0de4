//! The jobs of a result folder: which blocks each has, their scripts, and what the queue says of
//! them.
//!
//! Names of jobs and their lists of blocks are on disk before Slurm gets them. So a killed rqps
//! finds its jobs again, and one that got no answer learns whether Slurm has taken the job.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result};

use super::cells::Cells;
use super::job_script::{self, Batch};
use super::slurm_queue::{self, NoAnswer, QueuedTask};
use super::{RemoteHosts, SlurmPartition};
use rqps_model::units::short_hash;
use rqps_results::{entries, replace_whole};

/// Time for cancelled jobs to end.
const CANCELLING: Duration = Duration::from_secs(45);
/// Between two questions whether they have.
const LOOK: Duration = Duration::from_millis(250);

/// All jobs of a result folder.
pub(super) struct Batches<'e> {
    place: &'e RemoteHosts,
    slurm: &'e SlurmPartition,
    /// The folder of all cells.
    folder: PathBuf,
    /// The copy of rqps that measures.
    program: PathBuf,
    /// Names of all jobs of this result folder begin with it.
    prefix: String,
    /// Names of jobs, and their cells in order.
    cells: BTreeMap<String, Vec<String>>,
    /// Names of jobs whose submission the controller has not confirmed.
    unconfirmed: BTreeSet<String>,
    array_most: usize,
}

impl<'e> Batches<'e> {
    /// Those that an earlier rqps has submitted.
    ///
    /// # Errors
    /// The folder cannot be read, or the controller does not answer.
    pub(super) fn open(
        (place, slurm): (&'e RemoteHosts, &'e SlurmPartition),
        of: &Cells,
    ) -> Result<Batches<'e>> {
        let folder = of.folder().to_owned();
        job_script::check(&folder, slurm)?;
        let mut cells = BTreeMap::new();
        for file in entries(&folder)? {
            let Some(name) = file.strip_suffix(".cells") else { continue };
            let path = folder.join(&file);
            let text = fs::read_to_string(&path);
            let text = text.with_context(|| format!("read {}", path.display()))?;
            cells.insert(name.to_owned(), text.lines().map(str::to_owned).collect());
        }
        Ok(Batches {
            place,
            slurm,
            prefix: prefix(&folder),
            program: of.program.clone(),
            folder,
            cells,
            unconfirmed: BTreeSet::new(),
            // Slurm takes no array of jobs of several parts.
            array_most: match slurm.client_nodes {
                Some(_) => 1,
                None => slurm_queue::array_most()?,
            },
        })
    }

    /// Most blocks that a job takes.
    pub(super) fn most(&self) -> usize {
        self.array_most
    }

    /// True if a job has this cell.
    pub(super) fn has(&self, cell: &str) -> bool {
        self.cells.values().flatten().any(|name| name == cell)
    }

    /// Submits these cells as one job, without the nodes to be avoided; returns its name. If the
    /// controller does not answer, the job stays [unconfirmed](Batches::is_unconfirmed).
    ///
    /// # Errors
    /// A file cannot be written, or Slurm refuses the job.
    pub(super) fn submit(&mut self, names: Vec<String>, avoided: &[String]) -> Result<String> {
        let name = format!("{}-{:04}", self.prefix, self.cells.len() + 1);
        let script = self.script(&name, &names, avoided);
        replace_whole(&self.folder.join(format!("{name}.cells")), names.join("\n") + "\n")?;
        replace_whole(&self.folder.join(format!("{name}.sh")), script)?;
        self.cells.insert(name.clone(), names);
        match self.send(&name) {
            Err(error) if error.is::<NoAnswer>() => drop(self.unconfirmed.insert(name.clone())),
            sent => sent?,
        }
        Ok(name)
    }

    fn send(&self, name: &str) -> Result<()> {
        let features = self.slurm.features();
        let script = self.folder.join(format!("{name}.sh"));
        let job = slurm_queue::submit(&script, features.as_deref(), &self.slurm.partition)?;
        replace_whole(&self.folder.join(format!("{name}.job")), format!("{job}\n"))?;
        Ok(())
    }

    /// True if the controller has not confirmed the submission of this job.
    pub(super) fn is_unconfirmed(&self, name: &str) -> bool {
        self.unconfirmed.contains(name)
    }

    /// Submits the jobs that the controller has not confirmed, unless they are among these tasks.
    /// Returns the names of refused ones, with the reasons.
    pub(super) fn send_again(
        &mut self,
        tasks: &BTreeMap<String, QueuedTask>,
    ) -> Vec<(String, anyhow::Error)> {
        let mut refused = Vec::new();
        for name in std::mem::take(&mut self.unconfirmed) {
            if tasks.values().any(|task| task.name == name) {
                continue;
            }
            match self.send(&name) {
                Ok(()) => {}
                Err(error) if error.is::<NoAnswer>() => drop(self.unconfirmed.insert(name)),
                Err(error) => refused.push((name, error)),
            }
        }
        refused
    }

    /// The tasks that Slurm knows, by cell; of several the last that was submitted.
    ///
    /// # Errors
    /// The controller does not answer.
    pub(super) fn tasks(&self) -> Result<BTreeMap<String, QueuedTask>> {
        let mut tasks = slurm_queue::tasks(&self.names())?;
        tasks.sort_by(|a, b| a.name.cmp(&b.name));
        let mut by_cell: BTreeMap<String, QueuedTask> = BTreeMap::new();
        for task in tasks {
            let cells = self.cells.get(&task.name);
            let Some(cell) = cells.and_then(|cells| cells.get(task.index.wrapping_sub(1))) else {
                continue;
            };
            let known = by_cell.get(cell);
            if known.is_none_or(|known| known.has_ended() || !task.has_ended()) {
                by_cell.insert(cell.clone(), task);
            }
        }
        Ok(by_cell)
    }

    fn names(&self) -> Vec<String> {
        self.cells.keys().cloned().collect()
    }

    /// True unless Slurm says that no node is left without those.
    pub(super) fn has_nodes(&self, avoided: &[String]) -> bool {
        slurm_queue::has_nodes(&self.script(&self.prefix, &["0001-1".to_owned()], avoided))
    }

    fn script(&self, name: &str, cells: &[String], avoided: &[String]) -> String {
        let (folder, program) = (&self.folder, &self.program);
        let batch = Batch { name, cells, folder, program, avoided };
        job_script::text(&batch, self.place, self.slurm)
    }

    /// Cancels all jobs, and waits until none is left.
    ///
    /// # Errors
    /// The controller does not answer; the text says how to cancel them.
    pub(super) fn cancel(&self) -> Result<()> {
        let names = self.names();
        if names.is_empty() {
            return Ok(());
        }
        self.cancelled(&names).map_err(|error| {
            anyhow::anyhow!(
                "cancel the jobs: {error:#}; the jobs keep running\nhint: when the controller \
                 answers again, cancel them with `scancel --name={}`, or collect their results \
                 with `rqps run --resume`",
                names.join(",")
            )
        })
    }

    fn cancelled(&self, names: &[String]) -> Result<()> {
        slurm_queue::cancel(names)?;
        let until = Instant::now() + CANCELLING;
        while Instant::now() < until {
            if slurm_queue::tasks(names)?.iter().all(QueuedTask::has_ended) {
                break;
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }
}

/// The beginning of the names of all jobs of a folder of cells: the same for the same folder.
pub(super) fn prefix(folder: &Path) -> String {
    format!("rqps-{}", short_hash(folder.as_os_str().as_encoded_bytes()))
}
