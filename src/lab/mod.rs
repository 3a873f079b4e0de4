//! The lab carries out a plan: obtains builds, loads and snapshots each target, runs the blocks,
//! and
//! writes run folders. It judges nothing and prints nothing; whoever watches gets [`Event`]s.

mod block;
mod canaries;
mod decider;
mod driver_process;
pub mod event;
pub mod fault;
mod gatekeeper;
mod guest;
mod measure;
mod memory;
mod outfit;
pub mod place;
mod prepare;
mod progress;
mod resume;
mod scheduler;
mod selection;
mod server_log;
mod subject;
mod turns;

pub use decider::{Decider, Decision, UndecidedStep};
pub use event::Event;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::domain::benchmark::Idle;
use crate::domain::gate::Calibration;
use crate::domain::host::fingerprint;
use crate::lab::canaries::CanarySource;
use crate::lab::gatekeeper::{Fate, HostMonitor};
use crate::lab::outfit::ResolvedTarget;
use crate::lab::place::{Reservation, WorkFolders};
use crate::lab::progress::Progress;
use crate::lab::resume::History;
use crate::lab::scheduler::BlockScheduler;
use crate::lab::subject::TargetState;
use crate::obtain::Cache;
use crate::os::spinner::Spinner;
use crate::os::{clock, disk, host, user};
use crate::plan::{Plan, cost, file, order};
use crate::results::ResultSet;

/// What to carry out and where.
#[derive(Debug)]
pub struct ExecutionOptions {
    /// The plan.
    pub plan: Plan,
    /// The result folder.
    pub out: PathBuf,
    /// The cache of builds.
    pub cache: PathBuf,
    /// The user's configurations, searched before the shipped ones.
    pub configs: Option<PathBuf>,
    /// A/A calibrations, of this host and of others.
    pub calibrations: Vec<Calibration>,
    /// Where data and snapshots go; `None` puts them beside the results.
    pub work: Option<PathBuf>,
    /// The rqps binary: drivers and wardens are started from it.
    pub program: PathBuf,
    /// The lock that keeps a second rqps from measuring on this host.
    pub host_lock: PathBuf,
    /// True to leave the tables on servers that rqps does not run.
    pub keep: bool,
    /// Tables of others on such servers that may be dropped for their names.
    pub replace: Vec<String>,
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
struct Execution<'a> {
    assignment: &'a ExecutionOptions,
    place: WorkFolders,
    results: ResultSet,
    plan_hash: String,
    host_fingerprint: String,
    disk: Option<String>,
    memory_bytes: u64,
    spinner: Option<Spinner>,
}

impl Execution<'_> {
    fn stopped(&self) -> bool {
        self.assignment.stop.load(Ordering::Relaxed)
    }
}

/// Carries out the plan; `decider` says after each block what the next one measures.
///
/// # Errors
/// What stops everything: a build that cannot be obtained, a configuration that does not exist, a
/// folder that cannot be written, another rqps on this host. Of what can be known before the result
/// folder is made none is made. A target that fails later is a line in the summary and the others
/// go on.
pub fn carry_out(
    assignment: &ExecutionOptions,
    decider: &mut dyn Decider,
    events: &mut dyn FnMut(Event),
) -> Result<Summary> {
    let mut progress = Progress::new(events);
    let (claim, outfits) = look_ahead(assignment, &mut progress)?;
    let bench = open(assignment, claim)?;
    let mut subjects = subject::all(&bench, outfits)?;
    let source = canary_source(&bench, &subjects);
    let mut keeper = HostMonitor::open(&bench, source, &mut progress)?;
    let history = resume::history(&bench.results, subjects.len())?;
    for note in &history.notes {
        progress.note(note);
    }
    blocks(&bench, &mut subjects, decider, (&mut keeper, &history), &mut progress)?;
    let interrupted = bench.stopped();
    if !interrupted {
        guest::clean_up(assignment, &mut progress)?;
        bench.place.clear()?;
    }
    let faults = subjects.into_iter().flat_map(|subject| subject.faults).collect();
    Ok(Summary { faults, interrupted })
}

/// Measures the blocks that are left, and those again that are thrown away.
fn blocks(
    bench: &Execution<'_>,
    subjects: &mut [TargetState],
    decider: &mut dyn Decider,
    (keeper, history): (&mut HostMonitor, &History),
    progress: &mut Progress<'_>,
) -> Result<()> {
    let plan = &bench.assignment.plan;
    let stages: Vec<_> = subjects.first().map(|subject| subject.stages.clone()).unwrap_or_default();
    let cached = subjects.iter().all(|subject| subject.is_cached(bench));
    let orders = order::orders(subjects.len(), plan.blocks.most(), plan.seed);
    let mut course = BlockScheduler::new(bench, &stages, cached);
    let left = (1..=plan.blocks.fewest()).filter(|block| !history.is_done(*block)).count();
    progress.plan(plan, &stages, left);
    course.decide(bench, history.last_done(), decider, (keeper, progress))?;
    let mut prepared = false;
    for (block, order) in (1..).zip(&orders) {
        if bench.stopped() {
            break;
        }
        if history.is_done(block) {
            continue;
        }
        let Some(selection) = course.next(bench, block, keeper, progress) else { break };
        if !prepared {
            bench.place.check_space(cost::estimate(plan, &stages).disk_bytes)?;
            prepare::all(bench, subjects, progress)?;
            prepared = true;
        }
        let mut attempt = history.next_attempt(block);
        let fate = loop {
            keeper.before(bench, (block, attempt), (&selection, &stages), progress)?;
            let began = Instant::now();
            let place = block::At { block, attempt, order, selection: &selection };
            block::run(bench, subjects, &place, progress)?;
            if bench.stopped() {
                break None;
            }
            course.took(bench, &selection, began.elapsed().as_secs_f64());
            match keeper.after(bench, progress)? {
                Fate::Kept => break Some(()),
                Fate::Discarded => progress.more(course.seconds(bench, &selection)),
            }
            attempt += 1;
        };
        if fate.is_some() {
            course.decide(bench, block, decider, (keeper, progress))?;
        }
    }
    Ok(())
}

/// Real targets are measured on a real host. The fake DBMS does no work, so its host is a script,
/// if its config has one (`canaries = 1, 1, 1.5`).
fn canary_source(bench: &Execution<'_>, subjects: &[TargetState]) -> CanarySource {
    if !bench.assignment.plan.canaries {
        return CanarySource::Off;
    }
    if subjects.iter().any(|subject| !subject.target.dbms.dialect().is_scripted()) {
        return CanarySource::Host(bench.place.target(""));
    }
    let script = subjects.iter().flat_map(|subject| subject.config.text.lines()).find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "canaries").then_some(value)
    });
    match script {
        Some(factors) => {
            let factors = factors.split(',').filter_map(|word| word.trim().parse().ok());
            CanarySource::Script(factors.collect())
        }
        None => CanarySource::Off,
    }
}

/// Refuses what can be told to lead nowhere before a folder is made for it: first without the
/// host's lock, then with it what would be noise to another who measures.
fn look_ahead(
    assignment: &ExecutionOptions,
    progress: &mut Progress<'_>,
) -> Result<(Reservation, Vec<ResolvedTarget>)> {
    let ExecutionOptions { plan, out, work, .. } = assignment;
    let run_as = user::choose(None)?;
    if !ResultSet::is_begun(out, &file::print(plan))? {
        let bytes = cost::estimate(plan, &[]).disk_bytes;
        place::check_space_for(out, work.as_deref(), run_as.as_ref(), bytes)?;
    }
    let search = outfit::Search::begin(assignment, progress)?;
    memory::check_together(plan, host::memory_bytes())?;
    memory::try_out(plan)?;
    let claim = Reservation::new(out, &assignment.host_lock, run_as)?;
    guest::survey(assignment, progress)?;
    let outfits = search.end(claim.run_as.as_ref(), progress)?;
    Ok((claim, outfits))
}

fn open(assignment: &ExecutionOptions, claim: Reservation) -> Result<Execution<'_>> {
    let plan = &assignment.plan;
    let place = WorkFolders::open(claim, &assignment.out, assignment.work.as_deref())?;
    let facts = host::read(&place.target(""));
    let host_fingerprint = fingerprint(&facts);
    // A folder that holds results of this plan already is gone on with.
    let results = ResultSet::create(&assignment.out, &file::print(plan), &facts)?;
    let spinner = match plan.workload.idle {
        Idle::Awake => Some(Spinner::start(&assignment.program).context("keep CPUs awake")?),
        Idle::Os => None,
    };
    Ok(Execution {
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
    Ok(Cache::open(folder)?)
}

/// The time of day in the form that run folders use.
fn now() -> String {
    clock::now_rfc3339()
}

/// Bytes of a folder, if it can be read: a fact of a run, never a reason to stop one.
fn bytes_of(folder: &std::path::Path) -> Option<u64> {
    disk::folder_bytes(folder).ok()
}
