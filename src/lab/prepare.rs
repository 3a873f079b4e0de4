//! Loads each target once, lets it settle, and keeps a snapshot that every block starts from.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::dbms::{ControlPlane, SettleLoad};
use crate::domain::run::LoadRecord;
use crate::lab::event::Event;
use crate::lab::execution::Execution;
use crate::lab::fault;
use crate::lab::guest;
use crate::lab::progress::Progress;
use crate::lab::step_runner::{StepRunner, cause};
use crate::lab::target_state::TargetState;
use crate::os::{disk, user};
use crate::plan::cost;

/// Written beside a snapshot when it is whole; a resumed plan takes the snapshot only then.
#[derive(Serialize, Deserialize)]
struct Mark {
    plan_hash: String,
    config_hash: String,
    /// `None` where filling is a step of the benchmark.
    load: Option<LoadRecord>,
}

/// Prepares all targets. One that fails is marked broken; the others go on.
///
/// # Errors
/// The user stopped, or no target could be prepared.
pub(super) fn all(
    execution: &Execution<'_>,
    states: &mut [TargetState],
    progress: &mut Progress<'_>,
) -> Result<()> {
    for state in states.iter_mut() {
        if execution.stopped() {
            return Ok(());
        }
        match one(execution, state, progress) {
            Ok(load) => state.load = load,
            Err(_) if execution.stopped() => return Ok(()),
            Err(error) => {
                state.broken = true;
                state.fault(format!("prepare: {}", fault::text(&error)), progress);
            }
        }
        progress.advance(load_estimate(execution));
    }
    Ok(())
}

fn load_estimate(execution: &Execution<'_>) -> f64 {
    let plan = &execution.options.plan;
    cost::estimate(plan, &[]).load_seconds / plan.targets.len() as f64
}

/// The folder that blocks restore from.
pub(super) fn snapshot(state: &TargetState) -> PathBuf {
    state.folder.join("snapshot")
}

/// Prepares one target. A server that somebody else runs has no snapshot: its tables are loaded
/// in each block, and what an earlier run left there is removed now.
fn one(
    execution: &Execution<'_>,
    state: &TargetState,
    progress: &mut Progress<'_>,
) -> Result<Option<LoadRecord>> {
    if guest::clear_the_way(execution.options, &state.target, progress)? {
        return Ok(None);
    }
    let mark = state.folder.join("snapshot.json");
    if let Some(load) = kept(execution, state, &mark) {
        progress.doing(&state.target.label, "use the existing snapshot", None);
        return Ok(load);
    }
    if state.folder.exists() {
        disk::remove_tree(&state.folder)
            .with_context(|| format!("remove {}", state.folder.display()))?;
    }
    let data = state.folder.join("loading");
    fs::create_dir_all(&data).with_context(|| format!("make {}", data.display()))?;
    if let Some(user) = &execution.folders.run_as {
        user::chown_tree(&state.folder, user)?;
    }
    let mut load = fill(execution, state, &data, progress)?;
    if let Some(load) = &mut load {
        load.data_bytes = disk::folder_bytes(&data).ok();
    }
    fs::rename(&data, snapshot(state)).context("name the snapshot")?;
    let whole = Mark {
        plan_hash: execution.plan_hash.clone(),
        config_hash: state.config.hash.clone(),
        load: load.clone(),
    };
    fs::write(&mark, serde_json::to_vec_pretty(&whole)?)
        .with_context(|| format!("write {}", mark.display()))?;
    Ok(load)
}

fn kept(execution: &Execution<'_>, state: &TargetState, mark: &Path) -> Option<Option<LoadRecord>> {
    let mark: Mark = serde_json::from_slice(&fs::read(mark).ok()?).ok()?;
    let same = mark.plan_hash == execution.plan_hash && mark.config_hash == state.config.hash;
    (same && snapshot(state).is_dir()).then_some(mark.load)
}

fn fill(
    execution: &Execution<'_>,
    state: &TargetState,
    data: &Path,
    progress: &mut Progress<'_>,
) -> Result<Option<LoadRecord>> {
    let logs = execution.options.out.join("load").join(&state.target.label);
    fs::create_dir_all(&logs).with_context(|| format!("make {}", logs.display()))?;
    let mut control = state.control(execution, data.to_owned(), logs.clone(), None)?;
    progress.doing(&state.target.label, "initialise", None);
    control.init()?;
    progress.doing(&state.target.label, "start", None);
    control.start()?;
    let load = load(execution, state, control.as_mut(), &logs, progress)?;
    if load.is_some() {
        settle(execution, state, control.as_mut(), progress)?;
    }
    progress.doing(&state.target.label, "stop and keep a snapshot", None);
    control.stop()?;
    Ok(load)
}

/// Creates and fills the tables of a server that is up, unless that is a step of the benchmark.
///
/// # Errors
/// The server refuses or dies; the user stops.
pub(super) fn load(
    execution: &Execution<'_>,
    state: &TargetState,
    control: &mut dyn ControlPlane,
    logs: &Path,
    progress: &mut Progress<'_>,
) -> Result<Option<LoadRecord>> {
    let dialect = state.target.dbms.dialect();
    let storage_engine = state.target.storage_engine.as_deref();
    let Some(task) = execution.options.plan.load_request(&state.target) else {
        return Ok(None);
    };
    let label = &state.target.label;
    let logs = logs.to_owned();
    control.before_load()?;
    let mut runner = StepRunner {
        execution,
        control: &mut *control,
        dialect,
        storage_engine,
        label,
        logs,
        taking: None,
    };
    let load = runner.load(task, progress)?;
    drop(runner);
    progress.doing(label, "write the loaded data to disk", None);
    control.after_load()?;
    progress.event(Event::Loaded {
        label: label.clone(),
        rows: load.rows,
        load_seconds: load.load_seconds,
        index_seconds: load.index_seconds,
    });
    Ok(Some(load))
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
    let workload = &execution.options.plan.workload;
    let load = SettleLoad {
        tables: workload.tables,
        rows_total: u64::from(workload.tables) * workload.rows,
        table: execution.options.plan.table_name().to_owned(),
        scale: workload.settle_scale,
    };
    let label = state.target.label.clone();
    let settled = control.settle(&load, &mut |what: &str| progress.doing(&label, what, None));
    settled.map_err(|error| {
        let error = anyhow::Error::from(error);
        if execution.stopped() { error } else { cause(control, error) }
    })
}
