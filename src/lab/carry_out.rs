//! Carries out a plan from its first look at the host to the last block.

use std::time::Instant;

use anyhow::{Context, Result};

use crate::domain::benchmark::Idle;
use crate::domain::host::fingerprint;
use crate::lab::canaries::CanarySource;
use crate::lab::decider::Decider;
use crate::lab::event::Event;
use crate::lab::execution::{Execution, ExecutionOptions, ExecutionSummary};
use crate::lab::host_monitor::{Fate, HostMonitor};
use crate::lab::progress::Progress;
use crate::lab::resolve::ResolvedTarget;
use crate::lab::resume::History;
use crate::lab::scheduler::BlockScheduler;
use crate::lab::target_state::TargetState;
use crate::lab::work_folders::{Reservation, WorkFolders};
use crate::lab::{block, guest, memory, prepare, resolve, resume, target_state, work_folders};
use crate::os::spinner::Spinner;
use crate::os::{host, user};
use crate::plan::{cost, file, order};
use crate::results::ResultSet;

/// Carries out the plan; `decider` says after each block what the next one measures.
///
/// # Errors
/// What stops everything: a build that cannot be obtained, a configuration that does not exist, a
/// folder that cannot be written, another rqps on this host. Of what can be known before the result
/// folder is made none is made. A target that fails later is a line in the summary and the others
/// go on.
pub fn carry_out(
    options: &ExecutionOptions,
    decider: &mut dyn Decider,
    events: &mut dyn FnMut(Event),
) -> Result<ExecutionSummary> {
    let mut progress = Progress::new(events);
    let (reservation, resolved) = look_ahead(options, &mut progress)?;
    let execution = open(options, reservation)?;
    let mut states = target_state::all(&execution, resolved)?;
    let source = canary_source(&execution, &states);
    let mut monitor = HostMonitor::open(&execution, source, &mut progress)?;
    let history = resume::history(&execution.results, states.len())?;
    for note in &history.notes {
        progress.note(note);
    }
    blocks(&execution, &mut states, decider, (&mut monitor, &history), &mut progress)?;
    let interrupted = execution.stopped();
    if !interrupted {
        guest::clean_up(options, &mut progress)?;
        execution.folders.clear()?;
    }
    let faults = states.into_iter().flat_map(|state| state.faults).collect();
    Ok(ExecutionSummary { faults, interrupted })
}

/// Measures the blocks that are left, and repeats those that are discarded.
fn blocks(
    execution: &Execution<'_>,
    states: &mut [TargetState],
    decider: &mut dyn Decider,
    (monitor, history): (&mut HostMonitor, &History),
    progress: &mut Progress<'_>,
) -> Result<()> {
    let plan = &execution.options.plan;
    let stages: Vec<_> = states.first().map(|state| state.stages.clone()).unwrap_or_default();
    let cached = states.iter().all(|state| state.is_cached(execution));
    let orders = order::orders(states.len(), plan.blocks.most(), plan.seed);
    let mut scheduler = BlockScheduler::new(execution, &stages, cached);
    let left = (1..=plan.blocks.fewest()).filter(|block| !history.is_done(*block)).count();
    progress.plan(plan, &stages, left);
    scheduler.decide(execution, history.last_done(), decider, (monitor, progress))?;
    let mut prepared = false;
    for (block, order) in (1..).zip(&orders) {
        if execution.stopped() {
            break;
        }
        if history.is_done(block) {
            continue;
        }
        let Some(selection) = scheduler.next(execution, block, monitor, progress) else { break };
        if !prepared {
            execution.folders.check_space(cost::estimate(plan, &stages).disk_bytes)?;
            prepare::all(execution, states, progress)?;
            prepared = true;
        }
        let mut attempt = history.next_attempt(block);
        let fate = loop {
            monitor.before(execution, (block, attempt), (&selection, &stages), progress)?;
            let began = Instant::now();
            let place = block::At { block, attempt, order, selection: &selection };
            block::run(execution, states, &place, progress)?;
            if execution.stopped() {
                break None;
            }
            scheduler.took(execution, &selection, began.elapsed().as_secs_f64());
            match monitor.after(execution, progress)? {
                Fate::Kept => break Some(()),
                Fate::Discarded => progress.more(scheduler.seconds(execution, &selection)),
            }
            attempt += 1;
        };
        if fate.is_some() {
            scheduler.decide(execution, block, decider, (monitor, progress))?;
        }
    }
    Ok(())
}

/// Real targets are measured on a real host. The fake DBMS does no work, so its host is a script,
/// if its config has one (`canaries = 1, 1, 1.5`).
fn canary_source(execution: &Execution<'_>, states: &[TargetState]) -> CanarySource {
    if !execution.options.plan.canaries {
        return CanarySource::Off;
    }
    if states.iter().any(|state| !state.target.dbms.dialect().is_scripted()) {
        return CanarySource::Host(execution.folders.target(""));
    }
    let script = states.iter().flat_map(|state| state.config.text.lines()).find_map(|line| {
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
    options: &ExecutionOptions,
    progress: &mut Progress<'_>,
) -> Result<(Reservation, Vec<ResolvedTarget>)> {
    let ExecutionOptions { plan, out, work, .. } = options;
    let run_as = user::choose(None)?;
    if !ResultSet::is_begun(out, &file::print(plan))? {
        let bytes = cost::estimate(plan, &[]).disk_bytes;
        work_folders::check_space_for(out, work.as_deref(), run_as.as_ref(), bytes)?;
    }
    let search = resolve::Search::begin(options, progress)?;
    memory::check_together(plan, host::memory_bytes())?;
    memory::try_out(plan)?;
    let reservation = Reservation::new(out, &options.host_lock, run_as)?;
    guest::survey(options, progress)?;
    let resolved = search.end(reservation.run_as.as_ref(), progress)?;
    Ok((reservation, resolved))
}

fn open(options: &ExecutionOptions, reservation: Reservation) -> Result<Execution<'_>> {
    let plan = &options.plan;
    let folders = WorkFolders::open(reservation, &options.out, options.work.as_deref())?;
    let facts = host::read(&folders.target(""));
    let host_fingerprint = fingerprint(&facts);
    // A folder that holds results of this plan already is continued.
    let results = ResultSet::create(&options.out, &file::print(plan), &facts)?;
    let spinner = match plan.workload.idle {
        Idle::Awake => Some(Spinner::start(&options.program).context("keep CPUs awake")?),
        Idle::Os => None,
    };
    Ok(Execution {
        options,
        folders,
        results,
        plan_hash: file::hash(plan),
        host_fingerprint,
        disk: facts.disk.clone(),
        memory_bytes: facts.memory_bytes,
        spinner,
    })
}
