//! Loads each target as often as the plan says, lets it settle, and keeps a snapshot of each load
//! that its blocks start from.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::lab::client_hosts::ClientHosts;
use crate::lab::execution::{self, Execution, ExecutionOptions};
use crate::lab::guest;
use crate::lab::progress::{Event, Progress, error_text, side_by_side};
use crate::lab::step_runner::{self, Loaded, Silence, StepRunner, cause};
use crate::plan::{Plan, PlanDraft, TargetSlot, cost, orders};
use rqps_builds as obtain;
use rqps_builds::{Cache, Found, PackageClients, Said};
use rqps_dbms as dbms;
use rqps_dbms::{ControlPlane, Interrupt, SettleLoad, Site};
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest, TableRead};
use rqps_host::disk;
use rqps_host::user::User;
use rqps_host::valgrind::Callgrind;
use rqps_model::benchmark::{Phase, Step};
use rqps_model::build::{Build, BuildSource, Config, Manifest, Target};
use rqps_model::counted::CallGraph;
use rqps_model::dialect::Dialect;
use rqps_model::row_digest::{StepAnswers, TableRecord};
use rqps_model::run::{LoadRecord, StepRecord};
use rqps_model::safe_path;
use rqps_wire::dsn::Dsn;

/// Written beside a complete snapshot. A resumed plan uses only snapshots with this mark.
#[derive(Serialize, Deserialize)]
struct Mark {
    plan_hash: String,
    config_hash: String,
    // Not flattened: serde then reads no numbers as keys of a map.
    kept: KeptLoad,
}

/// Prepares the load of a block for all targets that do not have it, and removes the snapshots that
/// no later block starts from. The plan's seed gives each load its order of targets, as for blocks,
/// so that a slow drift of the host does not favour a target. Loads of counted runs are prepared
/// side by side. A target that fails is marked broken; the others go on.
///
/// # Errors
/// A snapshot cannot be removed.
pub(super) fn all(
    execution: &Execution<'_>,
    states: &mut [TargetState],
    block: u32,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let plan = execution.plan;
    let load = plan.load_of(block);
    let still: BTreeSet<u32> = (block..=plan.blocks.most()).map(|it| plan.load_of(it)).collect();
    for state in states.iter_mut().filter(|state| !state.is_external()) {
        for past in state.loads.keys().filter(|past| !still.contains(past)) {
            execution.folders.remove(&snapshot(state, *past))?;
        }
        state.loads.retain(|load, _| still.contains(load));
    }
    let orders = orders(states.len(), plan.loads, plan.seed);
    let order = orders.get(load.saturating_sub(1) as usize).context("order the loads")?;
    let mut waiting: Vec<_> = states.iter_mut().enumerate().collect();
    waiting.sort_by_key(|(place, state)| {
        (state.shares_load, order.iter().position(|other| other == place))
    });
    let waiting = waiting.into_iter().map(|(_, state)| state).filter(|state| {
        let has_it = state.loads.contains_key(&load);
        // On a server that somebody else runs, each block loads, and rqps cleared the way once.
        let is_done = has_it || state.is_external() && !state.loads.is_empty();
        !state.broken && !is_done
    });
    if execution.options.valgrind.is_some() {
        let fit = execution::servers_that_fit(plan.workload.cache_bytes, execution.memory_bytes);
        side_by_side(waiting.collect(), fit, progress, |state, progress| {
            if !execution.stopped() {
                prepare(execution, state, load, progress);
            }
        });
        return Ok(());
    }
    for state in waiting {
        if execution.stopped() {
            return Ok(());
        }
        prepare(execution, state, load, progress);
    }
    Ok(())
}

/// Prepares a load of a target. Marks the target as broken if that fails.
fn prepare(
    execution: &Execution<'_>,
    state: &mut TargetState,
    load: u32,
    progress: &mut Progress<'_>,
) {
    let task = cost::load(execution.plan, &state.target);
    progress.begin(task);
    match load_or_reuse(execution, state, load, progress) {
        Ok((kept, is_new)) => {
            state.loads.insert(load, kept);
            let read = cost::read(execution.plan, &state.target);
            match (is_new, execution.plan.load_request(&state.target)) {
                (true, Some(_)) => return progress.end(read),
                (true, None) => return progress.end(task),
                (false, _) => progress.skip(read),
            }
        }
        Err(_) if execution.stopped() => return,
        Err(error) => {
            state.broken = true;
            state.fault(format!("prepare: {}", error_text(&error)), progress);
        }
    }
    progress.skip(task);
}

/// The folder that blocks of this load restore from.
pub(super) fn snapshot(state: &TargetState, load: u32) -> PathBuf {
    state.folder.join(name(load))
}

fn name(load: u32) -> String {
    if load == 1 { "snapshot".to_owned() } else { format!("snapshot-{load}") }
}

/// The file beside it that says that it is complete.
fn record(load: u32) -> String {
    format!("{}.json", name(load))
}

/// Makes one load of a target, or uses the snapshot of an earlier one; says whether it is new.
/// On an external server there is no snapshot: this removes tables of an earlier run, and each
/// block loads its own.
fn load_or_reuse(
    execution: &Execution<'_>,
    state: &TargetState,
    load: u32,
    progress: &mut Progress<'_>,
) -> Result<(KeptLoad, bool)> {
    if guest::clear_the_way(execution.options, &state.target, progress)? || state.is_external() {
        return Ok((KeptLoad::default(), false));
    }
    if let Some(kept) = existing(execution, state, load) {
        progress.doing(&state.target.label, "use the existing snapshot", None);
        return Ok((kept, false));
    }
    // Other files here belong to an interrupted plan or to earlier loads.
    let is_first = load == 1 && state.loads.is_empty();
    let old = if is_first { state.folder.clone() } else { snapshot(state, load) };
    let data = state.folder.join("loading");
    for folder in [&old, &data] {
        execution.folders.remove(folder)?;
    }
    execution.folders.make(&data)?;
    let (mut loaded, asked) = fill(execution, state, (&data, load), progress)?;
    if let Some(loaded) = &mut loaded {
        loaded.record.data_bytes = disk::folder_bytes(&data).ok();
    }
    let (folder, from) = execution.folders.place(&data)?;
    folder.rename(from, name(load).as_ref()).context("name the snapshot")?;
    let whole = Mark {
        plan_hash: execution.plan.hash().to_owned(),
        config_hash: state.load_hash.clone(),
        kept: keep(execution, loaded, asked),
    };
    let text = serde_json::to_vec_pretty(&whole)?;
    folder
        .replace(record(load).as_ref(), &text, 0o600)
        .with_context(|| format!("write {} in {}", record(load), state.folder.display()))?;
    Ok((whole.kept, true))
}

/// The record of a load. With several loads, each is also a step with its times. A single load is
/// not, because its variance is unknown; loads of counted runs are not, because they are not timed.
pub(super) fn keep(execution: &Execution<'_>, loaded: Option<Loaded>, asked: Asked) -> KeptLoad {
    let PlanDraft { loads, workload, .. } = &**execution.plan;
    let several = *loads > 1 && workload.counted_statements.is_none();
    KeptLoad {
        step: loaded.as_ref().filter(|_| several).map(Loaded::step),
        load: loaded.map(|loaded| loaded.record),
        tables: asked.tables,
        answers: asked.answers,
    }
}

/// The load of a snapshot of the same plan and configuration.
fn existing(execution: &Execution<'_>, state: &TargetState, load: u32) -> Option<KeptLoad> {
    let path = state.folder.join(record(load));
    let (folder, name) = execution.folders.place(&path).ok()?;
    let mut text = Vec::new();
    folder.read_of(name, None).ok()?.read_to_end(&mut text).ok()?;
    let mark: Mark = serde_json::from_slice(&text).ok()?;
    let same = mark.plan_hash == execution.plan.hash() && mark.config_hash == state.load_hash;
    (same && snapshot(state, load).is_dir()).then_some(mark.kept)
}

fn fill(
    execution: &Execution<'_>,
    state: &TargetState,
    (data, number): (&Path, u32),
    progress: &mut Progress<'_>,
) -> Result<(Option<Loaded>, Asked)> {
    let mut logs = execution.options.out.join("load").join(&state.target.label);
    if number > 1 {
        logs.push(number.to_string());
    }
    safe_path::make_folder(&logs).with_context(|| format!("make {}", logs.display()))?;
    let mut control = state.control(execution, data.to_owned(), logs.clone(), None, None)?;
    progress.doing(&state.target.label, "initialise", None);
    control.init()?;
    progress.doing(&state.target.label, "start", None);
    control.start()?;
    let load = load(execution, state, control.as_mut(), (&logs, number), progress)?;
    let mut asked = Asked::default();
    if load.is_some() {
        settle(execution, state, control.as_mut(), progress)?;
        progress.end(cost::load(execution.plan, &state.target));
        progress.begin(cost::read(execution.plan, &state.target));
        asked = ask(execution, state, control.as_mut(), (&logs, number), progress)?;
    }
    progress.doing(&state.target.label, "stop and keep a snapshot", None);
    control.stop()?;
    Ok((load, asked))
}

/// Creates and fills the tables of a running server. `None` if loading is a step of the benchmark.
///
/// # Errors
/// The server refuses or dies; the user stops.
pub(super) fn load(
    execution: &Execution<'_>,
    state: &TargetState,
    control: &mut dyn ControlPlane,
    (logs, number): (&Path, u32),
    progress: &mut Progress<'_>,
) -> Result<Option<Loaded>> {
    let Some(task) = execution.plan.load_request(&state.target) else {
        return Ok(None);
    };
    let label = &state.target.label;
    control.before_load()?;
    let loaded = StepRunner::new(execution, &state.target, control, logs.to_owned())
        .load((task, number), progress)?;
    progress.doing(label, "write the loaded data to disk", None);
    control.after_load()?;
    progress.event(Event::Loaded {
        label: label.clone(),
        rows: loaded.record.rows,
        load_seconds: loaded.record.load_seconds,
        index_seconds: loaded.record.index_seconds,
        files: loaded.record.files.clone(),
    });
    Ok(Some(loaded))
}

/// The settle rules after loading and after writing.
///
/// # Errors
/// The server refuses or dies.
pub(super) fn settle(
    execution: &Execution<'_>,
    state: &TargetState,
    control: &mut dyn ControlPlane,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let load = settle_load(execution);
    let label = state.target.label.clone();
    let settled = control.settle(&load, &mut |what: &str| progress.doing(&label, what, None));
    settled.map_err(|error| {
        let error = anyhow::Error::from(error);
        if execution.stopped() { error } else { cause(control, error) }
    })
}

/// Reads all tables and indexes, so that no counted statement reads a page for the first time.
///
/// # Errors
/// The server refuses or dies.
pub(super) fn read_all(
    execution: &Execution<'_>,
    state: &TargetState,
    control: &mut dyn ControlPlane,
    progress: &mut Progress<'_>,
) -> Result<()> {
    progress.doing(&state.target.label, "read all tables", None);
    control.read_all(&settle_load(execution)).map_err(|error| cause(control, error.into()))
}

fn settle_load(execution: &Execution<'_>) -> SettleLoad {
    let workload = &execution.plan.workload;
    SettleLoad {
        tables: workload.tables,
        rows_total: u64::from(workload.tables) * workload.rows,
        table: execution.plan.table_name().to_owned(),
        scale: workload.settle_scale,
    }
}

// Asks a target, after its load, what its tables hold and what it answers to the first statements
// of each step: facts by which a report tells whether targets do the same work.

/// A driver is silent for this long only if a statement takes too long.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a table up to which its rows are read.
const TABLE_BYTES: u64 = 256 << 20;

/// What a target answered.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) tables: Vec<TableRecord>,
    pub(super) answers: BTreeMap<u32, StepAnswers>,
}

/// Reads the tables and asks the first statements of each step. A step that cannot be asked says
/// why; it is measured all the same.
///
/// # Errors
/// The server dies; the user stops.
pub(super) fn ask(
    execution: &Execution<'_>,
    state: &TargetState,
    control: &mut dyn ControlPlane,
    (logs, load): (&Path, u32),
    progress: &mut Progress<'_>,
) -> Result<Asked> {
    let dialect = state.target.dbms.dialect();
    let has_answers = matches!(dialect, Dialect::Postgres | Dialect::Mysql | Dialect::Sqlite);
    if !has_answers || execution.options.valgrind.is_some() {
        return Ok(Asked::default());
    }
    let mut runner = StepRunner::new(execution, &state.target, control, logs.to_owned());
    progress.doing(&state.target.label, "read the tables to compare them", None);
    let plan = execution.plan;
    let mut asked = Asked::default();
    if plan.load_request(&state.target).is_some() {
        let names = state.is_external().then(|| plan.names_made(&state.target));
        asked.tables =
            runner.read_tables(TableRead { names, bytes_most: TABLE_BYTES }, &mut |rows| {
                progress.share(cost::share_of_read(plan, &state.target, rows));
            })?;
    }
    progress.doing(&state.target.label, "ask the first statements of each step", None);
    asked.answers = runner.ask_steps(&state.phases, load, |_| true)?;
    Ok(asked)
}

impl StepRunner<'_> {
    /// Asks the first statements of each of these steps.
    ///
    /// # Errors
    /// The server dies; the user stops.
    pub(super) fn ask_steps(
        &mut self,
        phases: &[Phase],
        load: u32,
        is_asked: impl Fn(&Step) -> bool,
    ) -> Result<BTreeMap<u32, StepAnswers>> {
        let seed = self.execution.plan.seed;
        let (mut known, mut all): (Vec<(&Step, StepAnswers)>, _) = (Vec::new(), BTreeMap::new());
        for (index, phase) in phases.iter().enumerate() {
            let Phase::Measure(step) = phase else { continue };
            if !is_asked(step) {
                continue;
            }
            let number = index as u32 + 1;
            // The same step with more clients begins as it does with one.
            let same = known.iter().find(|(other, _)| other.work == step.work);
            let answers = match same {
                Some((_, answers)) => answers.clone(),
                None => self.ask(step, step_runner::seed_of(seed, load, number))?,
            };
            known.push((step, answers.clone()));
            all.insert(number, answers);
        }
        Ok(all)
    }

    /// Asks the first statements of a step.
    fn ask(&mut self, step: &Step, seed: u64) -> Result<StepAnswers> {
        let workload = self.execution.plan.workload.clone();
        let task = StepRequest {
            plans: false,
            storage_engine: self.storage_engine.map(str::to_owned),
            ..StepRequest::of(step, &workload)
        };
        let request = self.request(seed, RequestBody::Step(Box::new(task)));
        let only_reads = self.only_reads(step);
        let request = DriverRequest { asks: true, pause: false, only_reads, ..request };
        let mut found = StepAnswers::default();
        let ended = self.converse(&request, &mut |event| match event {
            DriverEvent::Answer(more) => {
                found.answers.extend(more.answers);
                found.statements.extend(more.statements);
                Ok(None)
            }
            DriverEvent::Answered(note) => Ok(Some(note)),
            other => bail!("expected an answer from the driver, got {other:?}"),
        })?;
        found.note = ended.unwrap_or_else(Some);
        Ok(found)
    }

    /// Reads the tables. Says after each how many rows were read so far.
    fn read_tables(
        &mut self,
        task: TableRead,
        tell: &mut dyn FnMut(u64),
    ) -> Result<Vec<TableRecord>> {
        let request = self.request(0, RequestBody::ReadTables(task));
        let request = DriverRequest { pause: false, ..request };
        let (mut tables, mut rows) = (Vec::new(), 0_u64);
        let ended = self.converse(&request, &mut |event| match event {
            DriverEvent::Table(table) => {
                rows = rows.saturating_add(table.rows.unwrap_or_default());
                tell(rows);
                tables.push(*table);
                Ok(None)
            }
            DriverEvent::TablesRead => Ok(Some(())),
            other => bail!("expected a table from the driver, got {other:?}"),
        })?;
        if let Err(why) = ended {
            // Tables after this one are missing on one target alone: the report says so.
            let note = Some(format!("the tables after this one were not read: {why}"));
            let last = tables.pop();
            tables.extend(last.map(|last| TableRecord { note, ..last }));
        }
        Ok(tables)
    }

    /// Takes the messages of a driver up to the last. The inner error says why it ended early.
    ///
    /// # Errors
    /// The server is gone; the user stops.
    fn converse<T>(
        &mut self,
        request: &DriverRequest,
        take: &mut dyn FnMut(DriverEvent) -> Result<Option<T>>,
    ) -> Result<Result<T, String>> {
        let mut driver = self.driver(request, None)?;
        loop {
            let taken = self.next(&mut driver, PATIENCE).and_then(&mut *take);
            match taken {
                Ok(Some(last)) => return Ok(Ok(last)),
                Ok(None) => {}
                Err(error) if self.execution.stopped() => return Err(error),
                Err(error) if error.is::<Silence>() => {
                    let seconds = PATIENCE.as_secs();
                    return Ok(Err(format!("a statement took longer than {seconds} s")));
                }
                Err(error) => {
                    self.control.check()?;
                    return Ok(Err(error_text(&error)));
                }
            }
        }
    }
}

// A target with everything that is needed to run it: build, configuration, phases, folders.

/// Servers have this long to start: a first start on a slow disk recovers and creates files, and
/// valgrind is slow.
const START_TIMEOUT: Duration = Duration::from_secs(300);

/// A load with a complete snapshot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct KeptLoad {
    /// `None` where filling is a step of the benchmark.
    pub(super) load: Option<LoadRecord>,
    /// The load as a step, where a plan has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) step: Option<StepRecord>,
    /// What the tables hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) tables: Vec<TableRecord>,
    /// The answers to the first statements of each step, by its number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) answers: BTreeMap<u32, StepAnswers>,
}

/// A target, ready to be prepared.
pub(super) struct TargetState {
    pub(super) target: Target,
    pub(super) build: Build,
    pub(super) config: Config,
    pub(super) phases: Vec<Phase>,
    /// Its folder in the work folder; that of another target if it starts from its load.
    pub(super) folder: PathBuf,
    /// The hash of the config of its load.
    pub(super) load_hash: String,
    /// True if its load is that of another target.
    pub(super) shares_load: bool,
    /// Its loads by number, from 1; empty until its data are loaded.
    pub(super) loads: BTreeMap<u32, KeptLoad>,
    /// Set if it cannot be measured at all.
    pub(super) broken: bool,
    /// The method of unwinding stacks of its build.
    pub(super) call_graph: CallGraph,
    /// One line for each thing that went wrong.
    pub(super) faults: Vec<String>,
}

impl TargetState {
    /// Remembers a fault, and says it.
    pub(super) fn fault(&mut self, text: String, progress: &mut Progress<'_>) {
        let line = format!("{}: {text}", self.target.label);
        progress.note(&line);
        self.faults.push(line);
    }

    /// True for a server that somebody else runs.
    pub(super) fn is_external(&self) -> bool {
        self.target.source.is_elsewhere()
    }

    /// True if its caches are meant to hold all data of the workload. Nothing is known of a server
    /// that somebody else runs, nor of the caches of a configuration that is not the shipped one.
    pub(super) fn is_cached(&self, execution: &Execution<'_>) -> bool {
        let plan = execution.plan;
        let share = execution.memory_bytes / plan.targets.len() as u64;
        let known = !self.is_external() && self.target.config == "default";
        known && cache_bytes(plan, share) >= plan.size().cached_bytes
    }

    /// The control plane of this target on a data folder; its server is started in `memory_group`
    /// and under `callgrind`.
    pub(super) fn control(
        &self,
        execution: &Execution<'_>,
        data: PathBuf,
        logs: PathBuf,
        memory_group: Option<PathBuf>,
        callgrind: Option<Callgrind>,
    ) -> Result<Box<dyn ControlPlane>> {
        execution.options.accepted.check(&self.target.label)?;
        if let Some(external) = guest::control(execution.options, &self.target)? {
            return Ok(Box::new(external));
        }
        let site = Site {
            build: self.build.clone(),
            accepted: execution.options.accepted.builds.get(&self.target.label).cloned(),
            config: self.config.clone(),
            data,
            logs,
            sockets: execution.folders.sockets()?,
            storage_engine: self.target.storage_engine.clone(),
            run_as: execution.folders.run_as.clone(),
            memory_group,
            start_timeout: START_TIMEOUT,
            callgrind,
            still: execution.plan.workload.counted_statements.is_some(),
            warden_program: execution.options.program.clone(),
            listen: execution.clients.as_ref().map(ClientHosts::listen).transpose()?,
            interrupt: Interrupt(Arc::clone(&execution.options.stop)),
        };
        Ok(dbms::control_plane(site)?)
    }
}

/// All targets of the plan with what they run, in its order.
///
/// # Errors
/// A glob without a step.
pub(super) fn planned_targets(
    execution: &Execution<'_>,
    resolved: Vec<ResolvedTarget>,
) -> Result<Vec<TargetState>> {
    let plan = execution.plan;
    let hashes = plan.targets.iter().zip(&resolved);
    let hashes: BTreeMap<&String, String> =
        hashes.map(|(target, resolved)| (&target.label, resolved.config.hash.clone())).collect();
    let states = plan.targets.iter().zip(&resolved).map(|(target, resolved)| {
        let lender = execution.options.shared_loads.get(&target.label);
        let lender = lender.filter(|label| hashes.contains_key(label));
        let loaded_by = lender.unwrap_or(&target.label);
        Ok(TargetState {
            phases: plan.phases(target)?,
            folder: execution.folders.target(loaded_by),
            load_hash: hashes.get(loaded_by).cloned().unwrap_or_default(),
            shares_load: lender.is_some(),
            target: target.clone(),
            build: resolved.build.clone(),
            config: resolved.config.clone(),
            loads: BTreeMap::new(),
            broken: false,
            call_graph: CallGraph::default(),
            faults: Vec::new(),
        })
    });
    states.collect()
}

// Builds and settings of the targets of a plan. All of it is looked at before anything is taken or
// made, as far as it is here; what must be fetched is fetched alone on the host, and before the
// results have a folder. So a word that leads nowhere costs nothing.

/// No server gets less: small tables still want room for indexes, undo, and growth under inserts.
const CACHE_FLOOR_BYTES: u64 = 256 << 20;

/// A target with its build, configuration and sizes.
pub(super) struct ResolvedTarget {
    pub(super) build: Build,
    pub(super) config: Config,
}

/// The builds and settings of a plan as far as they are known without fetching.
pub(super) struct Search<'a> {
    options: &'a ExecutionOptions,
    /// Memory of the host that runs the targets.
    memory_bytes: u64,
    cache: Cache,
    clients: PackageClients,
    found: Vec<Found>,
    /// The targets in a block's specification, if one is carried out.
    slots: Option<&'a [TargetSlot]>,
}

impl<'a> Search<'a> {
    /// Looks for every build and every configuration, for a host with so much memory. Takes and
    /// makes nothing but the cache. The `slots` of a written-down block have the configurations
    /// already.
    ///
    /// # Errors
    /// A build that is nowhere, a configuration that does not exist or is not for that build.
    pub(super) fn begin(
        (options, memory_bytes): (&'a ExecutionOptions, u64),
        slots: Option<&'a [TargetSlot]>,
        progress: &mut Progress<'_>,
    ) -> Result<Search<'a>> {
        let cache = open_cache(&options.cache)?;
        let clients =
            PackageClients { stop: Arc::clone(&options.stop), ..PackageClients::default() };
        let mut found = Vec::new();
        for target in &options.plan.targets {
            let label = &target.label;
            let mut say = |said: Said<'_>| match said {
                // Whoever wrote the block down has told the user already.
                Said::Note(_) if slots.is_some() => {}
                _ => progress.fetching(label, said),
            };
            options.accepted.check(label)?;
            let one = obtain::find(&clients, target.dbms, &target.source, &cache, &mut say)?;
            if let Found::Here(build) = &one {
                options.accepted.check_place(label, build.root.as_deref())?;
            }
            match &one {
                _ if slots.is_some() => Ok(()),
                Found::Here(build) => configure((options, memory_bytes), target, build).map(drop),
                Found::Wanted(_) => {
                    dbms::config::check_name(target.dbms, &target.config, &options.configs)
                        .with_context(|| format!("configure {label}"))
                }
            }?;
            found.push(one);
        }
        Ok(Search { options, memory_bytes, cache, clients, found, slots })
    }

    /// Fetches what is missing. `run_as` is who servers run as, when rqps runs as root.
    ///
    /// # Errors
    /// As [`Search::begin`], and a build that servers may not reach.
    pub(super) fn end(
        self,
        run_as: Option<&User>,
        progress: &mut Progress<'_>,
    ) -> Result<Vec<ResolvedTarget>> {
        let mut resolved = Vec::new();
        for (index, found) in self.found.into_iter().enumerate() {
            let target = &self.options.plan.targets[index];
            let label = &target.label;
            let mut say = |said: Said<'_>| progress.fetching(label, said);
            let build = match found {
                Found::Here(build) => build,
                Found::Wanted(wanted) => {
                    let accepted = &self.options.accepted;
                    accepted.check(label)?;
                    let made = obtain::fetch(&self.clients, &wanted, &self.cache, &mut say)?;
                    accepted.check(label)?;
                    made
                }
            };
            if let Some(closed) = closed_build(run_as, &build) {
                bail!(
                    "run {label}: what is under test runs as an unprivileged user, who may not \
                     enter {}\nhint: move the build, or allow access to that folder (chmod o+x)",
                    closed.display()
                );
            }
            let config = match self.slots.and_then(|slots| slots.get(index)) {
                Some(slot) => {
                    check_build(slot, &build)?;
                    slot.config.clone()
                }
                None => configure((self.options, self.memory_bytes), target, &build)?,
            };
            let is_same = |first: &&ResolvedTarget| {
                let code = build.manifest.code.as_ref();
                code.is_some_and(|code| first.build.manifest.code.as_ref() == Some(code))
                    && first.config == config
            };
            if resolved.first().filter(is_same).is_some() {
                let first = &self.options.plan.targets[0].label;
                progress.note(&format!(
                    "{label} is the same build as {first} but for comments: what differs is noise"
                ));
            }
            resolved.push(ResolvedTarget { build, config });
        }
        Ok(resolved)
    }
}

/// Refuses a build that is not the one that was written down.
fn check_build(slot: &TargetSlot, build: &Build) -> Result<()> {
    let (wanted, here) = (&slot.build, &build.manifest);
    if wanted.sha256 != here.sha256 || wanted.dbms != here.dbms {
        let sum = |manifest: &Manifest| manifest.sha256.clone().unwrap_or("none".to_owned());
        bail!(
            "run {}: the block specification names another build than the one on this host \
             (SHA-256 {}, here {} from {})\nhint: install the same build on all hosts",
            slot.label,
            sum(wanted),
            sum(here),
            here.origin
        );
    }
    Ok(())
}

/// Opens the cache of builds.
///
/// # Errors
/// The folder cannot be made or is not a cache.
pub fn open_cache(folder: &Path) -> Result<Cache> {
    Ok(Cache::open(folder)?)
}

/// The settings of a target. A server that somebody else runs has its own, which its logs tell.
fn configure(
    (options, memory_bytes): (&ExecutionOptions, u64),
    target: &Target,
    build: &Build,
) -> Result<Config> {
    if let BuildSource::Dsn(dsn) = &target.source {
        Dsn::parse(dsn).with_context(|| format!("measure {}", target.label))?;
    }
    if let BuildSource::Dsn(_) | BuildSource::Client(_) = &target.source {
        let (name, text) = ("its own".to_owned(), String::new());
        return Ok(Config { name, hash: dbms::config::hash(&text), text });
    }
    let plan = &options.plan;
    let memory = memory_bytes / plan.targets.len() as u64;
    let version = &build.manifest.version;
    let cache = cache_bytes(plan, memory);
    let load = if plan.workload.shape.has_own_statements() {
        dbms::config::load_for_own_statements
    } else {
        dbms::config::load
    };
    load(target.dbms, &target.config, &options.configs, version, cache)
        .with_context(|| format!("configure {}", target.label))
}

/// The folder that keeps an unprivileged server or driver from its build, if rqps runs as root.
fn closed_build(run_as: Option<&User>, build: &Build) -> Option<PathBuf> {
    run_as?;
    build.root.as_deref().and_then(obtain::closed_folder)
}

/// Bytes of a target's cache: the requested size, or enough for all data, but at most 60 % of the
/// target's share of memory or of its memory limit.
pub(super) fn cache_bytes(plan: &Plan, memory_share: u64) -> u64 {
    let wanted = plan.size().cached_bytes.max(CACHE_FLOOR_BYTES);
    let memory = memory_share.min(plan.memory_limit().unwrap_or(u64::MAX));
    plan.workload.cache_bytes.unwrap_or(wanted.min(memory / 10 * 6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::row_digest::StepAnswers;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let answers = [(3, StepAnswers::default())].into();
        let kept = KeptLoad { answers, ..KeptLoad::default() };
        let mark = Mark { plan_hash: "p".to_owned(), config_hash: "c".to_owned(), kept };
        let text = serde_json::to_vec(&mark).unwrap();
        let read: Mark = serde_json::from_slice(&text).unwrap();
        assert_eq!(read.kept.answers, mark.kept.answers);
    }
}
