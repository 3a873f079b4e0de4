//! Carries out a plan whose blocks other hosts measure. This host writes blocks down, takes their
//! runs in and judges their canaries.

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::lab::canaries::CanarySource;
use crate::lab::execution::{self, Execution, ExecutionOptions, ExecutionSummary};
use crate::lab::executor::{self, BlockEnd, Executor, RemoteHosts, Transport};
use crate::lab::host_monitor::{BlockDisposition, HostMonitor};
use crate::lab::progress::{Event, Progress};
use crate::lab::run_plan::{self, BlockTemplate, CurrentSitting, keep_own_files};
use crate::lab::scheduler::{self, Decider, History};
use crate::lab::targets;
use crate::lab::work_folders::{self, WorkFolders};
use crate::plan::cost::{self, PlannedTask};
use crate::plan::{BlockSpec, Blocks, Plan, file};
use rqps_host::{clock, host};
use rqps_model::build::BuildSource;
use rqps_model::host::{HostsOfClients, Session};
use rqps_model::units::counted;
use rqps_results::ResultSet;

/// Carries out the plan on the hosts of `place`. Every block goes to one host; as many are under
/// way at once as there are hosts. With `--blocks auto` there is one host, and `decider` says after
/// each block what the next one measures.
///
/// # Errors
/// A build cannot be obtained, a host does not exist, or a folder cannot be written. A block that
/// fails on its host is no error: it is a line in the summary, and the others continue.
pub fn run_plan_on(
    options: &ExecutionOptions,
    place: &RemoteHosts,
    decider: &mut dyn Decider,
    events: &mut dyn FnMut(Event),
) -> Result<ExecutionSummary> {
    let mut progress = Progress::new(events);
    let place = &place.for_plan(&options.plan);
    refuse(&options.plan, &place.way)?;
    // Calibrations are of this host, which measures nothing.
    let options = &ExecutionOptions { calibrations: Vec::new(), ..options.clone() };
    ResultSet::is_begun(&options.out, &file::text_in(&options.out, &options.plan)?)?;
    let memory_there = executor::check(place, options, &mut progress)?;
    if let Some(memory_bytes) = memory_there {
        execution::check_together(&options.plan, memory_bytes)?;
    }
    let memory_bytes = memory_there.unwrap_or_else(host::memory_bytes);
    let search = targets::Search::begin((options, memory_bytes), None, &mut progress)?;
    let resolved = search.end(None, &mut progress)?;
    let execution = begin(options, memory_bytes)?;
    let states = targets::all(&execution, resolved)?;
    let template = BlockTemplate::of(&execution, &states);
    let in_turns = options.plan.takes_turns_in_all(&template.phases);
    let source = if options.plan.canaries { CanarySource::RemoteHosts } else { CanarySource::Off };
    let (mut monitor, _) = HostMonitor::open(&execution, (source, in_turns), &mut progress)?;
    let history = scheduler::history(&execution.results, states.len())?;
    let mut executor = executor::open(&execution, place, &mut progress)?;
    let (execution, executor) = (&execution, executor.as_mut());
    let found = (&mut monitor, &history);
    let faults = match options.plan.blocks {
        Blocks::Auto(_) => {
            run_plan::blocks((execution, &mut *executor), &template, decider, found, &mut progress)?
        }
        Blocks::Fixed(_) => {
            let at_once = place.hosts_at_once(options.plan.blocks.most() as usize);
            let template = (&template, at_once);
            all_blocks((execution, &mut *executor), template, found, &mut progress)?
        }
    };
    let interrupted = execution.stopped();
    if !interrupted && faults.is_empty() {
        executor.clear()?;
    }
    Ok(ExecutionSummary { faults, interrupted })
}

/// Plans that other hosts cannot measure.
fn refuse(plan: &Plan, way: &Transport) -> Result<()> {
    let clients = plan.workload.client_hosts.as_ref();
    let is_one_host = clients.is_some_and(|clients| clients.server_host.is_some());
    if matches!(plan.blocks, Blocks::Auto(_)) && !is_one_host {
        bail!(
            "measure blocks on several hosts: --blocks auto looks at the results of a block \
             before it plans the next, and several hosts measure blocks at the same time\nhint: \
             give a number of blocks"
        );
    }
    if let Some(clients) = clients.filter(|clients| clients.server_host.is_none()) {
        match (clients.nodes, way) {
            (Some(_), Transport::Slurm(_)) => {}
            (Some(_), Transport::Ssh(_)) => bail!(
                "run clients on nodes of Slurm with --on ssh\nhint: --on slurm:PARTITION, or \
                 --server-host USER@HOST with --client-host USER@HOST"
            ),
            (None, _) => bail!(
                "measure blocks on several hosts with clients on {}: with --on, the clients of a \
                 block run on the host of its servers\nhint: leave out --on or the client hosts, \
                 or use --client-nodes N with --on slurm:PARTITION",
                clients.hosts.join(", ")
            ),
        }
    }
    let guest = plan.targets.iter().find(|target| matches!(target.source, BuildSource::Dsn(_)));
    if let Some(target) = guest {
        bail!(
            "measure {} from several hosts: each would load the server that the others \
             measure\nhint: leave out --on",
            target.label
        );
    }
    Ok(())
}

fn begin(options: &ExecutionOptions, memory_bytes: u64) -> Result<Execution<'_>> {
    let plan = &options.plan;
    let clients = plan.workload.client_hosts.as_ref();
    let are_here = |hosts: &HostsOfClients| hosts.server_host.is_some() && hosts.hosts.is_empty();
    let own = if clients.is_some_and(are_here) {
        Some(work_folders::lock_host(&options.out, &options.host_lock)?)
    } else {
        None
    };
    let results = ResultSet::create_for_hosts(&options.out, &file::text_in(&options.out, plan)?)?;
    keep_own_files(&results, plan)?;
    let folders = WorkFolders::elsewhere(&options.out, own)?;
    let session = Session { started: clock::now_rfc3339(), ..Session::default() };
    Ok(Execution {
        options,
        plan,
        folders,
        results,
        session,
        disk: None,
        memory_bytes,
        spinner: None,
        clients: None,
    })
}

/// The blocks that are left, written down. An attempt without a report is not a new one: a host may
/// be at it.
fn left(
    plan: &Plan,
    template: &BlockTemplate,
    (monitor, history): (&HostMonitor<'_>, &History),
) -> Vec<BlockSpec> {
    let orders = plan.orders(template.slots.len());
    let unreported = monitor.unreported();
    let specs = (1..).zip(&orders).filter_map(|(block, order)| {
        let attempt = match unreported.get(&block) {
            Some(attempt) => *attempt,
            None if history.is_done(block) => return None,
            None => history.next_attempt(block),
        };
        Some(BlockSpec {
            canaries: monitor.reference(),
            ..BlockSpec::new(plan, (block, attempt), template.in_order(order))
        })
    });
    specs.collect()
}

/// Has all blocks measured that are left, and discarded ones again. Returns the faults.
fn all_blocks(
    (execution, executor): (&Execution<'_>, &mut dyn Executor),
    (template, at_once): (&BlockTemplate, usize),
    (monitor, history): (&mut HostMonitor<'_>, &History),
    progress: &mut Progress<'_>,
) -> Result<Vec<String>> {
    let plan = execution.plan;
    let specs = left(plan, template, (monitor, history));
    let kept = plan.blocks.most() as usize - specs.len();
    if kept > 0 {
        progress.note(&format!("{kept} blocks are already measured; keeping their results"));
    }
    let targets: Vec<_> = plan.targets.iter().collect();
    let block = cost::block(plan, &targets, &cost::numbered(&template.phases));
    let task = cost::block_elsewhere(plan, &block, at_once);
    let whole = cost::block_elsewhere(plan, &block, 1);
    progress.plan(&vec![task; specs.len()], Vec::new());
    let mut faults = Vec::new();
    let mut sitting = CurrentSitting::default();
    for group in specs.chunk_by(|a, b| plan.sitting_of(a.block) == plan.sitting_of(b.block)) {
        sitting.before(execution, (group[0].block, history), progress);
        if !execution.stopped() {
            let tasks = (task, whole);
            faults.extend(group_of_blocks((execution, executor), group, monitor, tasks, progress)?);
        }
    }
    Ok(faults)
}

/// Has blocks measured at the same time, and discarded ones again. Returns the faults. A task is a
/// block among the others, and by itself.
fn group_of_blocks(
    (execution, executor): (&Execution<'_>, &mut dyn Executor),
    specs: &[BlockSpec],
    monitor: &mut HostMonitor<'_>,
    (task, whole): (PlannedTask, PlannedTask),
    progress: &mut Progress<'_>,
) -> Result<Vec<String>> {
    let plan = execution.plan;
    progress.begin(whole);
    let mut under_way: BTreeMap<String, BlockSpec> =
        specs.iter().map(|spec| (spec.id.clone(), spec.clone())).collect();
    monitor.begin(specs, BTreeMap::new())?;
    executor.submit(specs.to_vec())?;
    let mut faults = Vec::new();
    while let Some(end) = executor.poll(progress)? {
        let mut report = match end {
            BlockEnd::Measured(report) => report,
            BlockEnd::Lost { ids, fault } => {
                for id in &ids {
                    under_way.remove(id);
                }
                progress.note(&fault);
                faults.push(fault);
                continue;
            }
        };
        let Some(spec) = under_way.remove(&report.id) else { continue };
        let node = report.session.node.as_deref().unwrap_or("another host");
        let seconds = report.seconds;
        let failed = match report.faults.len() {
            0 => String::new(),
            failures => format!(", with {}", counted(failures, "failure")),
        };
        progress
            .note(&format!("block {} measured on {node} in {seconds:.0} s{failed}", spec.block));
        // A disk that fills up is a fault of its host.
        faults.extend(report.faults.drain(..).map(|fault| format!("on {node}: {fault}")));
        progress.end(task);
        if monitor.end((&spec, &report), progress)? == BlockDisposition::Discarded {
            let again = BlockSpec {
                canaries: monitor.reference(),
                ..BlockSpec::new(plan, (spec.block, spec.attempt + 1), spec.targets)
            };
            monitor.begin(std::slice::from_ref(&again), BTreeMap::new())?;
            progress.more(&[task]);
            under_way.insert(again.id.clone(), again.clone());
            executor.submit(vec![again])?;
        }
        if !under_way.is_empty() {
            progress.begin(whole);
        }
    }
    Ok(faults)
}
