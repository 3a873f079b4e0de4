//! The lab carries out a plan: obtains builds, loads and snapshots each target, runs the blocks,
//! and
//! writes run folders. It judges nothing and prints nothing; whoever watches gets [`Event`]s.

mod block;
mod driver_process;
pub mod event;
pub mod fault;
mod measure;
pub mod place;
mod prepare;
mod progress;
mod resume;
mod subject;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

use crate::domain::benchmark::Idle;
use crate::lab::event::Event;
use crate::lab::place::Place;
use crate::lab::progress::Progress;
use crate::obtain::Cache;
use crate::os::spinner::Spinner;
use crate::os::{clock, disk, host};
use crate::plan::{Plan, cost, file, order};
use crate::results::ResultSet;

/// What to carry out and where.
#[derive(Debug)]
pub struct Assignment {
    /// The plan.
    pub plan: Plan,
    /// The result folder.
    pub out: PathBuf,
    /// The cache of builds.
    pub cache: PathBuf,
    /// The user's configurations, searched before the shipped ones.
    pub configs: Option<PathBuf>,
    /// Where data and snapshots go; `None` puts them beside the results.
    pub work: Option<PathBuf>,
    /// The rqps binary: drivers and wardens are started from it.
    pub program: PathBuf,
    /// The lock that keeps a second rqps from measuring on this host.
    pub host_lock: PathBuf,
    /// Becomes true when the user wants to stop.
    pub stop: Arc<AtomicBool>,
}

/// How it went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// One line for each run or target that failed.
    pub faults: Vec<String>,
    /// True if the user stopped it before the end.
    pub interrupted: bool,
}

/// Everything that stays the same while a plan is carried out.
struct Bench<'a> {
    assignment: &'a Assignment,
    place: Place,
    results: ResultSet,
    plan_hash: String,
    host_fingerprint: String,
    disk: Option<String>,
    memory_bytes: u64,
    spinner: Option<Spinner>,
}

impl Bench<'_> {
    fn stopped(&self) -> bool {
        self.assignment.stop.load(Ordering::Relaxed)
    }
}

/// Carries out the plan.
///
/// # Errors
/// What stops everything: a build that cannot be obtained, a configuration that does not exist, a
/// folder that cannot be written, another rqps on this host. A target that fails later is a line in
/// the summary and the others go on.
pub fn carry_out(assignment: &Assignment, events: &mut dyn FnMut(Event)) -> Result<Summary> {
    let bench = open(assignment)?;
    let mut progress = Progress::new(events);
    let mut subjects = subject::all(&bench, &mut progress)?;
    let orders = order::orders(subjects.len(), assignment.plan.blocks, assignment.plan.seed);
    let todo = resume::blocks_to_do(&bench.results, assignment.plan.blocks, subjects.len())?;
    for note in &todo.notes {
        progress.note(note);
    }
    let stages: Vec<_> = subjects.first().map(|subject| subject.stages.clone()).unwrap_or_default();
    progress.plan(&assignment.plan, &stages, todo.blocks.len());
    if !todo.blocks.is_empty() {
        bench.place.check_space(cost::estimate(&assignment.plan, &stages).disk_bytes)?;
        prepare::all(&bench, &mut subjects, &mut progress)?;
    }
    for (block, attempt) in todo.blocks {
        if bench.stopped() {
            break;
        }
        let order = &orders[block as usize - 1];
        block::run(&bench, &mut subjects, order, block, attempt, &mut progress)?;
    }
    let interrupted = bench.stopped();
    if !interrupted {
        bench.place.clear()?;
    }
    let faults = subjects.into_iter().flat_map(|subject| subject.faults).collect();
    Ok(Summary { faults, interrupted })
}

fn open(assignment: &Assignment) -> Result<Bench<'_>> {
    let plan = &assignment.plan;
    let place = Place::open(&assignment.out, assignment.work.as_deref(), &assignment.host_lock)?;
    let facts = host::read(&place.target(""));
    let host_fingerprint = host::fingerprint(&facts);
    // A folder that holds results of this plan already is gone on with.
    let results = ResultSet::create(&assignment.out, &file::print(plan), &facts)?;
    let spinner = match plan.workload.idle {
        Idle::Awake => Some(Spinner::start(&assignment.program).context("keep CPUs awake")?),
        Idle::Os => None,
    };
    Ok(Bench {
        assignment,
        place,
        results,
        plan_hash: file::hash(plan),
        host_fingerprint,
        disk: facts.disk.clone(),
        memory_bytes: facts.memory_bytes,
        spinner,
    })
}

/// Opens the cache of builds.
///
/// # Errors
/// The folder cannot be made or is not a cache.
pub fn open_cache(folder: &std::path::Path) -> Result<Cache> {
    Cache::open(folder).with_context(|| format!("open the cache of builds {}", folder.display()))
}

/// The time of day in the form that run folders use.
fn now() -> String {
    clock::now_rfc3339()
}

/// Bytes of a folder, if it can be read: a fact of a run, never a reason to stop one.
fn bytes_of(folder: &std::path::Path) -> Option<u64> {
    disk::folder_bytes(folder).ok()
}
