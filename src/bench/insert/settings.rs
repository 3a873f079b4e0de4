//! Single settings of the Insert Benchmark: `key=value`.

use crate::bench::insert::shapes;
use crate::bench::preset::{self, SetError};
use crate::domain::benchmark::{Shape, Workload};
use crate::domain::insert::{InsertShape, Pacing, Profile, QueryStep};

/// A setting of this benchmark.
struct Setting {
    key: &'static str,
    apply: fn(&mut Workload, &mut InsertShape, &str) -> Result<(), String>,
}

macro_rules! settings {
    ($($key:literal, |$workload:ident, $shape:ident, $value:ident| $apply:expr;)*) => {
        const SETTINGS: &[Setting] = &[$(Setting {
            key: $key,
            apply: |$workload, $shape, $value| { let _ = &$workload; $apply; Ok(()) },
        }),*];
    };
}

/// The most rows that anything may have.
const MOST_ROWS: u64 = 100_000_000_000;

settings! {
    "profile", |_workload, shape, value| shapes::take_profile(shape, profile(value)?);
    "rows", |workload, _shape, value| workload.rows = preset::count(value, 1, MOST_ROWS)?;
    "i1_rows", |_workload, shape, value| shape.i1_rows = preset::count(value, 1, MOST_ROWS)?;
    "i2_rows", |_workload, shape, value| shape.i2_rows = preset::count(value, 1, MOST_ROWS)?;
    "more_rows", |_workload, shape, value|
        shapes::share_rows(shape, preset::count(value, 5, MOST_ROWS)?);
    "clients", |workload, _shape, value| workload.clients = preset::count(value, 1, 1000)? as u32;
    "tables", |_workload, shape, value| shape.tables = Some(preset::count(value, 1, 1000)? as u32);
    "shared", |_workload, shape, value| shape.shared = yes_or_no(value)?;
    "deletes", |_workload, shape, value| shape.deletes = yes_or_no(value)?;
    "partitions", |_workload, shape, value|
        shape.partitions = preset::count(value, 1, 1000)? as u32;
    "secondary_indexes", |_workload, shape, value|
        shape.secondary_indexes = preset::count(value, 0, 3)? as u32;
    "query_seconds", |_workload, shape, value| shape.query_seconds = preset::seconds(value)?;
    "query_steps", |_workload, shape, value| shape.query_steps = query_steps(value)?;
    "query_threads", |_workload, shape, value|
        shape.query_threads = preset::count(value, 1, 1000)? as u32;
    "i0_commit", |_workload, shape, value| shape.rows_per_commit.i0 = commit(value)?;
    "i1_commit", |_workload, shape, value| shape.rows_per_commit.i1 = commit(value)?;
    "i2_commit", |_workload, shape, value| shape.rows_per_commit.i2 = commit(value)?;
    "query_commit", |_workload, shape, value| shape.rows_per_commit.query = commit(value)?;
    "resync_every", |_workload, shape, value|
        shape.resync_every = preset::count(value, 0, 1_000_000_000)? as u32;
    "pacing", |_workload, shape, value| shape.pacing = pacing(value)?;
    "memory_limit", |_workload, shape, value| shape.memory_limit = memory_limit(value)?;
}

/// Settings of all benchmarks that this one takes too.
const COMMON: [&str; 4] = ["settle_scale", "cache", "placement", "idle"];

/// Changes a workload of this benchmark by one `key=value`. Nothing is changed on an error.
///
/// # Errors
/// See [`SetError`].
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    let Some((key, value)) = assignment.split_once('=') else {
        return Err(SetError::NoEquals { text: assignment.to_owned() });
    };
    let (key, value) = (key.trim(), value.trim());
    if COMMON.contains(&key) {
        return preset::set(workload, assignment);
    }
    let Some(setting) = SETTINGS.iter().find(|setting| setting.key == key) else {
        let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).chain(COMMON).collect();
        return Err(SetError::UnknownKeyOf {
            key: key.to_owned(),
            benchmark: "insert",
            known: known.join(", "),
        });
    };
    let Shape::Insert(shape) = &workload.shape else {
        return preset::set(workload, assignment);
    };
    let mut shape = shape.clone();
    let mut changed = workload.clone();
    (setting.apply)(&mut changed, &mut shape, value).map_err(|why| SetError::BadValue {
        key: setting.key,
        value: value.to_owned(),
        why,
    })?;
    changed.shape = Shape::Insert(shape);
    *workload = changed;
    Ok(())
}

fn profile(value: &str) -> Result<Profile, String> {
    let found = Profile::ALL.into_iter().find(|profile| profile.name() == value);
    found.ok_or_else(|| {
        let known: Vec<&str> = Profile::ALL.iter().map(|profile| profile.name()).collect();
        format!("it is one of {}", known.join(", "))
    })
}

fn yes_or_no(value: &str) -> Result<bool, String> {
    match value {
        "yes" | "on" | "true" => Ok(true),
        "no" | "off" | "false" => Ok(false),
        _ => Err("it is yes or no".to_owned()),
    }
}

fn pacing(value: &str) -> Result<Pacing, String> {
    match value {
        "open" => Ok(Pacing::Open),
        "compat" => Ok(Pacing::Compat),
        _ => Err("it is open or compat".to_owned()),
    }
}

/// All steps are separated by commas.
fn query_steps(value: &str) -> Result<Vec<QueryStep>, String> {
    value.split(',').map(|word| QueryStep::try_from(word.trim().to_owned())).collect()
}

/// More would not fit into a statement that every server takes.
fn commit(value: &str) -> Result<u32, String> {
    Ok(preset::count(value, 1, 10_000)? as u32)
}

/// Less than a server needs to start is refused.
fn memory_limit(value: &str) -> Result<Option<u64>, String> {
    if value == "none" {
        return Ok(None);
    }
    let why = |_| "it is a size from 64M to 64T such as 512M or 4G, or none".to_owned();
    let bytes = preset::bytes(value).map_err(why)?;
    if bytes < 64 << 20 { Err(why(String::new())) } else { Ok(Some(bytes)) }
}
