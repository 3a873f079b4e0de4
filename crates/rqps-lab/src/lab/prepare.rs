//! Loads each target as often as the plan says, lets it settle, and keeps a snapshot of each load
//! that its blocks start from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::lab::execution::{self, Execution};
use crate::lab::guest;
use crate::lab::progress::{Event, Progress, error_text, side_by_side};
use crate::lab::step_runner::{self, Loaded, Silence, StepRunner, cause};
use crate::lab::targets::{KeptLoad, TargetState};
use crate::plan::{PlanDraft, cost, orders};
use rqps_dbms::{ControlPlane, SettleLoad};
use rqps_driver::event::DriverEvent;
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest, TableRead};
use rqps_host::disk;
use rqps_model::answers::{StepAnswers, TableRecord};
use rqps_model::benchmark::{Phase, Step};
use rqps_model::dialect::Dialect;

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
    fs::create_dir_all(&logs).with_context(|| format!("make {}", logs.display()))?;
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
        asked.tables = runner.read_tables(TableRead { names, bytes_most: TABLE_BYTES })?;
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

    /// Reads the tables.
    fn read_tables(&mut self, task: TableRead) -> Result<Vec<TableRecord>> {
        let request = self.request(0, RequestBody::ReadTables(task));
        let request = DriverRequest { pause: false, ..request };
        let mut tables = Vec::new();
        let ended = self.converse(&request, &mut |event| match event {
            DriverEvent::Table(table) => {
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

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::answers::StepAnswers;

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
