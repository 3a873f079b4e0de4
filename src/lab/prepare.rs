//! Loads each target once, lets it settle, and keeps a snapshot that every block starts from.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::dbms::{ControlPlane, SettleLoad};
use crate::domain::run::LoadRecord;
use crate::lab::event::Event;
use crate::lab::fault;
use crate::lab::measure::{StepRunner, cause};
use crate::lab::progress::Progress;
use crate::lab::subject::TargetState;
use crate::lab::{Execution, guest};
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

/// Prepares all subjects. One that fails is marked broken; the others go on.
///
/// # Errors
/// The user stopped, or no subject could be prepared.
pub(super) fn all(
    bench: &Execution<'_>,
    subjects: &mut [TargetState],
    progress: &mut Progress<'_>,
) -> Result<()> {
    for subject in subjects.iter_mut() {
        if bench.stopped() {
            return Ok(());
        }
        match one(bench, subject, progress) {
            Ok(load) => subject.load = load,
            Err(_) if bench.stopped() => return Ok(()),
            Err(error) => {
                subject.broken = true;
                subject.fault(format!("prepare: {}", fault::text(&error)), progress);
            }
        }
        progress.advance(load_estimate(bench));
    }
    Ok(())
}

fn load_estimate(bench: &Execution<'_>) -> f64 {
    let plan = &bench.assignment.plan;
    cost::estimate(plan, &[]).load_seconds / plan.targets.len() as f64
}

/// The folder that blocks restore from.
pub(super) fn snapshot(subject: &TargetState) -> PathBuf {
    subject.folder.join("snapshot")
}

/// Prepares one subject. A server that somebody else runs has no snapshot: its tables are loaded
/// in each block, and what an earlier run left there is removed now.
fn one(
    bench: &Execution<'_>,
    subject: &TargetState,
    progress: &mut Progress<'_>,
) -> Result<Option<LoadRecord>> {
    if guest::clear_the_way(bench.assignment, &subject.target, progress)? {
        return Ok(None);
    }
    let mark = subject.folder.join("snapshot.json");
    if let Some(load) = kept(bench, subject, &mark) {
        progress.doing(&subject.target.label, "use the existing snapshot", None);
        return Ok(load);
    }
    if subject.folder.exists() {
        disk::remove_tree(&subject.folder)
            .with_context(|| format!("remove {}", subject.folder.display()))?;
    }
    let data = subject.folder.join("loading");
    fs::create_dir_all(&data).with_context(|| format!("make {}", data.display()))?;
    if let Some(user) = &bench.place.run_as {
        user::chown_tree(&subject.folder, user)?;
    }
    let mut load = fill(bench, subject, &data, progress)?;
    if let Some(load) = &mut load {
        load.data_bytes = super::bytes_of(&data);
    }
    fs::rename(&data, snapshot(subject)).context("name the snapshot")?;
    let whole = Mark {
        plan_hash: bench.plan_hash.clone(),
        config_hash: subject.config.hash.clone(),
        load: load.clone(),
    };
    fs::write(&mark, serde_json::to_vec_pretty(&whole)?)
        .with_context(|| format!("write {}", mark.display()))?;
    Ok(load)
}

fn kept(bench: &Execution<'_>, subject: &TargetState, mark: &Path) -> Option<Option<LoadRecord>> {
    let mark: Mark = serde_json::from_slice(&fs::read(mark).ok()?).ok()?;
    let same = mark.plan_hash == bench.plan_hash && mark.config_hash == subject.config.hash;
    (same && snapshot(subject).is_dir()).then_some(mark.load)
}

fn fill(
    bench: &Execution<'_>,
    subject: &TargetState,
    data: &Path,
    progress: &mut Progress<'_>,
) -> Result<Option<LoadRecord>> {
    let logs = bench.assignment.out.join("load").join(&subject.target.label);
    fs::create_dir_all(&logs).with_context(|| format!("make {}", logs.display()))?;
    let mut control = subject.control(bench, data.to_owned(), logs.clone(), None)?;
    progress.doing(&subject.target.label, "initialise", None);
    control.init()?;
    progress.doing(&subject.target.label, "start", None);
    control.start()?;
    let load = load(bench, subject, control.as_mut(), &logs, progress)?;
    if load.is_some() {
        settle(bench, subject, control.as_mut(), progress)?;
    }
    progress.doing(&subject.target.label, "stop and keep a snapshot", None);
    control.stop()?;
    Ok(load)
}

/// Creates and fills the tables of a server that is up, unless that is a step of the benchmark.
///
/// # Errors
/// The server refuses or dies; the user stops.
pub(super) fn load(
    bench: &Execution<'_>,
    subject: &TargetState,
    control: &mut dyn ControlPlane,
    logs: &Path,
    progress: &mut Progress<'_>,
) -> Result<Option<LoadRecord>> {
    let dialect = subject.target.dbms.dialect();
    let storage_engine = subject.target.storage_engine.as_deref();
    let Some(task) = bench.assignment.plan.load_request(&subject.target) else {
        return Ok(None);
    };
    let label = &subject.target.label;
    let logs = logs.to_owned();
    control.before_load()?;
    let mut seat = StepRunner {
        bench,
        control: &mut *control,
        dialect,
        storage_engine,
        label,
        logs,
        taking: None,
    };
    let load = seat.load(task, progress)?;
    drop(seat);
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
    bench: &Execution<'_>,
    subject: &TargetState,
    control: &mut dyn ControlPlane,
    progress: &mut Progress<'_>,
) -> Result<()> {
    let workload = &bench.assignment.plan.workload;
    let load = SettleLoad {
        tables: workload.tables,
        rows_total: u64::from(workload.tables) * workload.rows,
        table: bench.assignment.plan.table_name().to_owned(),
        scale: workload.settle_scale,
    };
    let label = subject.target.label.clone();
    let settled = control.settle(&load, &mut |what: &str| progress.doing(&label, what, None));
    settled.map_err(|error| {
        let error = anyhow::Error::from(error);
        if bench.stopped() { error } else { cause(control, error) }
    })
}
