//! Settings `key=value` of the Insert Benchmark.

use crate::presets;
use rqps_driver::workload::own::{Settings, own_settings};
use rqps_driver::workload::settings::SetError;
use rqps_driver::workload::value::{
    choice, client_counts, count, memory_limit, number, seconds, yes_or_no,
};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::insert::{InsertShape, Pacing, Profile, QueryStep};

/// Most rows of any step or table.
const MOST_ROWS: u64 = 100_000_000_000;

own_settings! { InsertShape:
    "profile", |_, shape, value| presets::take_profile(shape, profile(value)?);
    "rows", |workload, _, value| workload.rows = count(value, 1, MOST_ROWS)?;
    "i1_rows", |_, shape, value| shape.i1_rows = count(value, 1, MOST_ROWS)?;
    "i2_rows", |_, shape, value| shape.i2_rows = count(value, 1, MOST_ROWS)?;
    "more_rows", |_, shape, value|
        presets::share_rows(shape, count(value, 5, MOST_ROWS)?);
    "clients", |workload, _, value| workload.set_counts(client_counts(value, 1000)?);
    "tables", |_, shape, value| shape.tables = Some(count(value, 1, 1000)? as u32);
    "shared", |_, shape, value| shape.shared = yes_or_no(value)?;
    "deletes", |_, shape, value| shape.deletes = yes_or_no(value)?;
    "partitions", |_, shape, value|
        shape.partitions = count(value, 1, 1000)? as u32;
    "secondary_indexes", |_, shape, value|
        shape.secondary_indexes = count(value, 0, 3)? as u32;
    "query_seconds", |_, shape, value| shape.query_seconds = seconds(value)?;
    "query_steps", |_, shape, value| shape.query_steps = query_steps(value)?;
    "query_threads", |_, shape, value|
        shape.query_threads = count(value, 1, 1000)? as u32;
    "i0_commit", |_, shape, value| shape.rows_per_commit.i0 = commit(value)?;
    "i1_commit", |_, shape, value| shape.rows_per_commit.i1 = commit(value)?;
    "i2_commit", |_, shape, value| shape.rows_per_commit.i2 = commit(value)?;
    "query_commit", |_, shape, value| shape.rows_per_commit.query = commit(value)?;
    "resync_every", |_, shape, value|
        shape.resync_every = count(value, 0, 1_000_000_000)? as u32;
    "pacing", |_, shape, value| shape.pacing = pacing(value)?;
    "memory_limit", |_, shape, value| shape.memory_limit = memory_limit(value)?;
    "step_limit", |_, shape, value| shape.step_limit = step_limit(value)?;
}

const SETTINGS: Settings<InsertShape> = Settings {
    benchmark: "insert",
    own: OWN,
    common: &[
        ("settle_scale", "settle_scale"),
        ("cache", "cache"),
        ("placement", "placement"),
        ("idle", "idle"),
    ],
    others: false,
    open: &[],
    of: |shape| match shape {
        BenchmarkParameters::Insert(shape) => Some(shape),
        _ => None,
    },
};

/// Changes a workload of this benchmark by one `key=value`. On an error, nothing changes.
///
/// # Errors
///
/// See [`SetError`].
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    SETTINGS.set(workload, assignment)
}

fn profile(value: &str) -> Result<Profile, String> {
    choice(value, &Profile::ALL.map(|profile| (profile.name(), profile)))
}

fn pacing(value: &str) -> Result<Pacing, String> {
    choice(value, &[("open", Pacing::Open), ("compat", Pacing::Compat)])
}

/// Query steps separated by commas.
fn query_steps(value: &str) -> Result<Vec<QueryStep>, String> {
    value.split(',').map(|word| QueryStep::try_from(word.trim().to_owned())).collect()
}

/// Rows per commit. More would not fit into a statement that every server accepts.
fn commit(value: &str) -> Result<u32, String> {
    Ok(count(value, 1, 10_000)? as u32)
}

/// A time limit as a multiple of the planned length, or none. Below 1.5, a step that keeps its rate
/// could reach it.
fn step_limit(value: &str) -> Result<Option<f64>, String> {
    if value == "none" {
        return Ok(None);
    }
    let why = |_| "write a number from 1.5 to 1000, times the planned length, or none".to_owned();
    number(value, 1.5, 1000.0).map(Some).map_err(why)
}

/// The parameters of this benchmark; `None` for another workload.
pub fn shape(workload: &Workload) -> Option<&InsertShape> {
    match &workload.shape {
        BenchmarkParameters::Insert(shape) => Some(shape),
        _ => None,
    }
}

/// Computes the number of tables from other settings.
pub fn finish(workload: &mut Workload) {
    let Some(shape) = shape(workload) else { return };
    workload.tables = shape.tables.unwrap_or(if shape.shared { 1 } else { workload.clients });
}
