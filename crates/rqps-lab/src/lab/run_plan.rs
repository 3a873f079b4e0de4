//! Carries out a plan from its first look at the host to the last block.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::lab::canaries::{self, BlockDisposition, CanaryReader, CanarySource, HostMonitor};
use crate::lab::client_hosts::{ClientHosts, WayToClients};
use crate::lab::execution::{
    self, Execution, ExecutionOptions, ExecutionSummary, Reservation, WorkFolders,
};
use crate::lab::executor::{
    self, BlockEnd, BlockFolder, Executor, LocalExecutor, RemoteHosts, Transport,
};
use crate::lab::guest;
use crate::lab::prepare::{self, ResolvedTarget, TargetState};
use crate::lab::progress::{Event, Progress};
use crate::lab::scheduler::{self, BlockScheduler, Decider, History};
use crate::plan::cost::{self, PlannedTask};
use crate::plan::{BlockSpec, Blocks, Plan, TargetSlot, file, own_files, step_files};
use rqps_host::affinity::Spinner;
use rqps_host::{clock, host};
use rqps_model::benchmark::{Idle, Phase};
use rqps_model::bounded;
use rqps_model::build::BuildSource;
use rqps_model::host::{HostsOfClients, Session, fingerprint};
use rqps_model::run::{BlockReport, RunKey};
use rqps_model::units::{self, counted};
use rqps_results::ResultSet;

/// Carries out the plan; `decider` says after each block what the next one measures.
///
/// # Errors
/// A build cannot be obtained, a configuration does not exist, a folder cannot be written, or
/// another rqps measures on this host. If this shows before the first block, no result folder is
/// made. A target that fails later is no error: it is a line in the summary, and the others
/// continue.
pub fn run_plan(
    options: &ExecutionOptions,
    decider: &mut dyn Decider,
    events: &mut dyn FnMut(Event),
) -> Result<ExecutionSummary> {
    let mut progress = Progress::new(events);
    let (reservation, resolved, clients) = look_ahead(options, None, &mut progress)?;
    let execution = open(options, reservation, clients)?;
    keep_own_files(&execution.results, &options.plan)?;
    let states = prepare::planned_targets(&execution, resolved)?;
    let source = canary_source(&execution, &states);
    let template = BlockTemplate::of(&execution, &states);
    scheduler::check_builds(&execution.results, &template.slots)?;
    let in_turns = options.plan.takes_turns_in_all(&template.phases);
    let (mut monitor, reader) = HostMonitor::open(&execution, (source, in_turns), &mut progress)?;
    let history = scheduler::history(&execution.results, states.len())?;
    for note in &history.notes {
        progress.note(note);
    }
    let mut executor = LocalExecutor::new(&execution, states, reader);
    let faults = blocks(
        (&execution, &mut executor),
        &template,
        decider,
        (&mut monitor, &history),
        &mut progress,
    )?;
    let interrupted = execution.stopped();
    if !interrupted {
        let task = cost::clear(&options.plan);
        progress.begin(task);
        progress.doing("", "remove data and snapshots", None);
        guest::clean_up(options, &mut progress)?;
        execution.folders.clear()?;
        progress.end(task);
    }
    Ok(ExecutionSummary { faults, interrupted })
}

/// The common part of all block specifications of a plan.
pub(super) struct BlockTemplate {
    /// Phases of the first target, and by number those of all.
    pub(super) phases: Vec<Phase>,
    /// Builds and settings; positions follow from the order of each block.
    pub(super) slots: Vec<TargetSlot>,
    /// True if all data of the workload fit into the caches of every DBMS.
    cached: bool,
}

impl BlockTemplate {
    pub(super) fn of(execution: &Execution<'_>, states: &[TargetState]) -> BlockTemplate {
        let slots = (1..).zip(states).map(|(position, state)| TargetSlot {
            label: state.target.label.clone(),
            position,
            build: state.build.manifest.clone(),
            config: state.config.clone(),
        });
        BlockTemplate {
            phases: states.first().map(|state| state.phases.clone()).unwrap_or_default(),
            slots: slots.collect(),
            cached: states.iter().all(|state| state.is_cached(execution)),
        }
    }

    /// The slots in this order: indices of the targets, the first to be measured first.
    pub(super) fn in_order(&self, order: &[usize]) -> Vec<TargetSlot> {
        let mut slots = self.slots.clone();
        for (position, target) in (1..).zip(order) {
            if let Some(slot) = slots.get_mut(*target) {
                slot.position = position;
            }
        }
        slots
    }
}

/// Measures the blocks that are left one after another, and repeats those that are discarded.
/// Returns the faults.
pub(super) fn blocks(
    (execution, executor): (&Execution<'_>, &mut dyn Executor),
    template: &BlockTemplate,
    decider: &mut dyn Decider,
    (monitor, history): (&mut HostMonitor<'_>, &History),
    progress: &mut Progress<'_>,
) -> Result<Vec<String>> {
    let plan = execution.plan;
    let phases = &template.phases;
    let orders = plan.orders(template.slots.len());
    let cached = template.cached;
    let mut scheduler = BlockScheduler::new(execution, (phases, cached), executor.is_elsewhere());
    if !scheduler.decide(history.last_done(), decider, (monitor, progress))? {
        scheduler.plan(0, history, (monitor, progress));
    }
    let mut faults = Vec::new();
    let mut sitting = CurrentSitting::default();
    for (block, order) in (1..).zip(&orders) {
        if execution.stopped() {
            break;
        }
        if history.is_done(block) {
            continue;
        }
        sitting.before(execution, (block, history), progress);
        if execution.stopped() {
            break;
        }
        let Some(selection) = scheduler.next(block, monitor, progress) else { break };
        let begun = monitor.unreported().get(&block).copied();
        let begun = begun.filter(|_| executor.is_elsewhere());
        for attempt in begun.unwrap_or_else(|| history.next_attempt(block)).. {
            let spec = BlockSpec {
                left_out: selection.left_out(),
                canaries: monitor.reference(),
                ..BlockSpec::new(plan, (block, attempt), template.in_order(order))
            };
            monitor.begin(std::slice::from_ref(&spec), selection.skipped(phases))?;
            let tasks = scheduler.block(&selection);
            let elsewhere = tasks.first().copied().filter(|_| executor.is_elsewhere());
            elsewhere.into_iter().for_each(|task| progress.begin(task));
            let mut report = match carried_out(executor, &spec, progress)? {
                Some(BlockEnd::Measured(report)) => report,
                Some(BlockEnd::Lost { fault, .. }) => {
                    progress.note(&fault);
                    faults.push(fault);
                    return Ok(faults);
                }
                None if execution.stopped() => return Ok(faults),
                None => bail!("measure block {block}: no report arrived"),
            };
            faults.append(&mut report.faults);
            elsewhere.into_iter().for_each(|task| progress.end(task));
            let fate = monitor.end((&spec, &report), progress)?;
            if execution.stopped() {
                break;
            }
            scheduler.measured(&report);
            if fate == BlockDisposition::Kept {
                if !scheduler.decide(block, decider, (monitor, progress))? {
                    scheduler.plan(block, history, (monitor, progress));
                }
                break;
            }
            progress.more(&tasks);
        }
    }
    Ok(faults)
}

/// Has a block measured, and waits for its end; `None` if the user stops first.
fn carried_out(
    executor: &mut dyn Executor,
    spec: &BlockSpec,
    progress: &mut Progress<'_>,
) -> Result<Option<BlockEnd>> {
    executor.submit(vec![spec.clone()])?;
    while let Some(end) = executor.poll(progress)? {
        let is_this_block = match &end {
            BlockEnd::Measured(report) => report.id == spec.id,
            BlockEnd::Lost { ids, .. } => ids.contains(&spec.id),
        };
        if is_this_block {
            return Ok(Some(end));
        }
    }
    Ok(None)
}

/// Measures one written-down block, whose plan is that of the options. The result folder has its
/// runs then, and its report.
///
/// A block whose report is there already is not measured again. `node` is the name of this host in
/// a pool; there the work folder is one of the block's own, and nothing in it stays.
///
/// # Errors
/// As [`run_plan`]; a build on this host is not the one that was written down; the result folder
/// has runs of this block, but no report.
pub fn run_block(
    options: &ExecutionOptions,
    (spec, node): (&BlockSpec, Option<&str>),
    events: &mut dyn FnMut(Event),
) -> Result<BlockReport> {
    let mut progress = Progress::new(events);
    if let Some(report) = block_result(options, spec)? {
        return Ok(report);
    }
    let own = match (node, &options.work) {
        (Some(_), Some(work)) => Some(BlockFolder::make(work, &options.out, &options.mark_key)?),
        _ => None,
    };
    let mut options = options.clone();
    if let Some(own) = &own {
        options.work = Some(own.path().to_owned());
    }
    let options = &options;
    let (reservation, resolved, clients) = look_ahead(options, Some(&spec.targets), &mut progress)?;
    let mut execution = open(options, reservation, clients)?;
    execution.session.node = node.map(str::to_owned);
    let states = prepare::planned_targets(&execution, resolved)?;
    let phases = states.first().map(|state| state.phases.clone()).unwrap_or_default();
    let plan = &options.plan;
    let targets: Vec<_> = plan.targets.iter().collect();
    let mut tasks = cost::block(plan, &targets, &cost::numbered(&phases));
    let loads = |target| [cost::load(plan, target), cost::read(plan, target)];
    tasks.extend(plan.targets.iter().flat_map(loads));
    progress.plan(&tasks, Vec::new());
    let reader = CanaryReader::new(canary_source(&execution, &states), 0);
    let mut executor = LocalExecutor::new(&execution, states, reader);
    let report = match carried_out(&mut executor, spec, &mut progress)? {
        Some(BlockEnd::Measured(report)) => *report,
        Some(BlockEnd::Lost { fault, .. }) => bail!("measure {fault}"),
        None => bail!("measure block {}: no report arrived", spec.block),
    };
    if !execution.stopped() {
        guest::clean_up(options, &mut progress)?;
        execution.folders.clear()?;
        execution.results.write_block(&report)?;
    }
    Ok(report)
}

/// The report of a block that was measured before, if the result folder has it.
fn block_result(options: &ExecutionOptions, spec: &BlockSpec) -> Result<Option<BlockReport>> {
    let out = &options.out;
    if !ResultSet::is_begun(out, &file::text_in(out, &spec.plan)?)? {
        return Ok(None);
    }
    let results = ResultSet::open(out)?;
    if let Some(report) = results.block()?.filter(|report| report.id == spec.id) {
        return Ok(Some(report));
    }
    let of_block = |key: &RunKey| (key.block, key.attempt) == (spec.block, spec.attempt);
    match results.runs()?.iter().find(|record| of_block(&record.key)) {
        None => Ok(None),
        Some(record) => bail!(
            "measure block {}: {} holds the run {} of it and no report, so it was interrupted\n\
             hint: choose a new folder with --out, or remove this one",
            spec.block,
            out.display(),
            record.key.folder()
        ),
    }
}

/// Real targets are measured on a real host. The fake DBMS does no work, so its host is a script,
/// if its config has one (`canaries = 1, 1, 1.5`).
fn canary_source(execution: &Execution<'_>, states: &[TargetState]) -> CanarySource {
    if !execution.plan.canaries {
        return CanarySource::Off;
    }
    if states.iter().any(|state| !state.target.dbms.dialect().is_scripted()) {
        return CanarySource::Host(execution.folders.target(""));
    }
    let configs = states.iter().map(|state| state.config.text.as_str());
    canaries::script(configs, "canaries").map_or(CanarySource::Off, CanarySource::Script)
}

/// Refuses plans that cannot work before it makes a folder for them: first without the host's lock,
/// then with it what would be noise to another who measures.
fn look_ahead(
    options: &ExecutionOptions,
    slots: Option<&[TargetSlot]>,
    progress: &mut Progress<'_>,
) -> Result<(Reservation, Vec<ResolvedTarget>, Option<ClientHosts>)> {
    let ExecutionOptions { plan, out, work, .. } = options;
    let run_as = execution::unprivileged_user(plan)?;
    execution::check_alone(out, work.as_deref(), run_as.as_ref())?;
    if !options.ignores_space && !ResultSet::is_begun(out, &file::text_in(out, plan)?)? {
        let bytes = cost::estimate(plan, &[]).disk_bytes;
        execution::check_space_for(out, work.as_deref(), run_as.as_ref(), bytes)?;
    }
    let memory_bytes = host::memory_bytes();
    let search = prepare::Search::begin((options, memory_bytes), slots, progress)?;
    execution::check_together(plan, memory_bytes)?;
    execution::try_out(plan)?;
    execution::wait_for_host(options, progress);
    let reservation = Reservation::new(out, &options.host_lock, run_as)?;
    let mut files = guest::check_far(options)?;
    guest::survey(options, progress)?;
    files.extend(step_files(plan));
    let way = WayToClients {
        ssh_config: options.ssh_config.as_deref(),
        line: options.client_line.as_ref(),
        cache: &options.cache,
        variable: options.variable,
    };
    let clients = ClientHosts::open(
        (plan.workload.client_hosts.as_ref(), way),
        (&options.program, &files),
        progress,
    )?;
    let resolved = search.end(reservation.run_as.as_ref(), progress)?;
    Ok((reservation, resolved, clients))
}

/// Copies what the workload reads of the user's own, so that a report can be walked back.
pub(super) fn keep_own_files(results: &ResultSet, plan: &Plan) -> Result<()> {
    for own in own_files(plan) {
        let content = bounded::bytes(&own.path, bounded::WRITTEN_MAX);
        let content = content.with_context(|| format!("read {}", own.path.display()))?;
        results.keep_file(&own.copy, &content)?;
    }
    Ok(())
}

fn open(
    options: &ExecutionOptions,
    reservation: Reservation,
    clients: Option<ClientHosts>,
) -> Result<Execution<'_>> {
    let plan = &options.plan;
    let folders =
        WorkFolders::open(reservation, (&options.out, options.work.as_deref()), &options.mark_key)?;
    let (facts, boot) = (host::read(&folders.target("")), host::boot());
    let disk = facts.disk.clone();
    let facts = ResultSet::since_restart(&options.out, facts, boot.as_deref());
    let session =
        Session { host: fingerprint(&facts), boot, started: clock::now_rfc3339(), node: None };
    // A folder that holds results of this plan already is continued.
    let results = ResultSet::create(&options.out, &file::text_in(&options.out, plan)?, &facts)?;
    let spinner = match plan.workload.idle {
        Idle::Awake => Some(Spinner::start(&options.program).context("keep CPUs awake")?),
        Idle::Os => None,
    };
    Ok(Execution {
        options,
        plan,
        folders,
        results,
        session,
        disk,
        memory_bytes: facts.memory_bytes,
        spinner,
        clients,
    })
}

// The time between the sittings of a plan.

/// How often a wait looks whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(200);

/// The sitting that is under way.
#[derive(Default)]
pub(super) struct CurrentSitting {
    begun: Option<(u32, Instant)>,
}

impl CurrentSitting {
    /// Before a block: if it begins a sitting of the plan, waits until that may begin.
    ///
    /// While rqps runs, the monotonic clock decides. A plan that was resumed knows the beginning of
    /// the sitting before by the wall clock alone; if that was set back, it waits the whole time.
    pub(super) fn before(
        &mut self,
        execution: &Execution<'_>,
        (block, history): (u32, &History),
        progress: &mut Progress<'_>,
    ) {
        let plan = execution.plan;
        let Some(sittings) = &plan.sittings else { return };
        let number = plan.sitting_of(block);
        if self.begun.is_some_and(|(begun, _)| begun == number) {
            return;
        }
        let every = sittings.every;
        let blocks_of = |wanted: u32| {
            (1..=plan.blocks.most()).filter(move |block| plan.sitting_of(*block) == wanted)
        };
        let went = match self.begun {
            Some((_, at)) => Some(at.elapsed()),
            None => {
                let started =
                    blocks_of(number - 1).filter_map(|block| history.started(block)).min();
                started.map(|started| clock::since(started).unwrap_or_default())
            }
        };
        // The rest of a sitting that was interrupted waits for nothing.
        let is_rest = self.begun.is_none() && blocks_of(number).any(|it| history.is_done(it));
        let left = match went {
            Some(went) if !is_rest => every.saturating_sub(went),
            _ => Duration::ZERO,
        };
        let what = format!("sitting {number} of {}", sittings.number);
        if !left.is_zero() {
            let task = cost::wait(plan);
            progress.begin(task);
            progress.note(&format!("{what} begins in {}", units::duration(left)));
            let until = Instant::now() + left;
            while !execution.stopped() {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let text = format!("wait {} for {what}", units::duration(left));
                progress.doing("", &text, None);
                thread::sleep(left.min(LOOK));
            }
            progress.end(task);
        }
        if is_rest {
            progress.note(&format!("the rest of {what} is a sitting of its own: time went by"));
        }
        self.begun = Some((number, Instant::now()));
    }
}

// Carries out a plan whose blocks other hosts measure. This host writes blocks down, takes their
// runs in and judges their canaries.

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
    let search = prepare::Search::begin((options, memory_bytes), None, &mut progress)?;
    let resolved = search.end(None, &mut progress)?;
    let execution = begin(options, memory_bytes)?;
    let states = prepare::planned_targets(&execution, resolved)?;
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
            blocks((execution, &mut *executor), &template, decider, found, &mut progress)?
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
        Some(execution::lock_host(&options.out, &options.host_lock)?)
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
