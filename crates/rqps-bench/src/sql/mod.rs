//! Workloads of the user's own: `sql`, statements in a workload file.
//!
//! A front end turns what the user wrote into scripts (`rqps-model`), which the driver
//! carries out as it does those of the sysbench steps.

pub mod draft;
mod replay;
pub mod steps;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::spec::{BenchmarkSpec, DataSize, LENGTHS, UserCode, WorkloadFile, scaled};
use rqps_driver::part::DriverPart;
use rqps_driver::request::{CsvFile, FileLoad, RequestBody};
use rqps_driver::workload as shared;
use rqps_driver::workload::SetError;
use rqps_model::benchmark::{BenchmarkParameters, OwnParameters, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::TableName;
use rqps_model::sql_workload::{
    ByDialect, CsvLoad, PinnedFile, SqlLoad, SqlShape, SqlStatement, SqlStep,
};
use rqps_model::units;

/// The row of `--bench sql:FILE`.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "sql",
    workload: |name| scaled(&LENGTHS, name, |_| BenchmarkParameters::Sql(Box::default())),
    set,
    finish,
    of_dbms: steps::of_dbms,
    check: steps::check,
    phases: |dialect, _, workload| steps::phases(dialect, workload),
    placement: None,
    load: Some(load),
    file: Some(WorkloadFile {
        read,
        files,
        pin,
        folder,
        writes: steps::writes,
        has_load: steps::has_load,
        loads_on_servers: steps::loads_on_servers,
    }),
    one_client_host: |workload| {
        let mut steps = steps::shape(workload).into_iter().flat_map(|shape| &shape.step);
        let replays = steps.any(|step| step.trace.is_some());
        replays.then_some("the sessions of a trace wait for each other")
    },
    driver: DriverPart {
        benchmark: "sql",
        step_loop: Some(replay::step_loop),
        answers: true,
        ..DriverPart::NONE
    },
    size: data_size,
    brought,
    ..BenchmarkSpec::PLAIN
};

pub use self::replay::fit;

// Settings of a workload file: the file itself, and its variables.

/// Assumed bytes of a row in a file, if its number of rows is unknown.
const ROW_BYTES: u64 = 100;

/// Most disk space of loaded data with indexes, as a multiple of the bytes of their files.
const GROWTH: f64 = 4.0;

/// Assumed bytes of data of unknown size.
const UNKNOWN_BYTES: u64 = 64 << 20;

fn shape_of(workload: &mut Workload) -> Option<&mut SqlShape> {
    OwnParameters::of_mut(&mut workload.shape)
}

/// Reads a workload file into the workload.
///
/// # Errors
///
/// The text names the place in the file.
pub fn read(workload: &mut Workload, text: &str) -> Result<(), String> {
    workload.shape = BenchmarkParameters::Sql(Box::new(steps::read(text)?));
    Ok(())
}

/// The files that the workload reads; `None` until they are pinned.
pub fn files(workload: &Workload) -> BTreeMap<String, Option<PinnedFile>> {
    let Some(shape) = steps::shape(workload) else { return BTreeMap::new() };
    let pinned = |name: String| {
        let known = shape.files.get(&name).cloned();
        (name, known)
    };
    steps::files(shape).into_iter().map(pinned).collect()
}

/// Stores the folder and the pinned files.
pub fn pin(workload: &mut Workload, folder: &Path, files: BTreeMap<String, PinnedFile>) {
    let Some(shape) = shape_of(workload) else { return };
    if !files.is_empty() {
        shape.load.get_or_insert_with(SqlLoad::default).folder = Some(folder.to_owned());
    }
    shape.files = files;
}

/// The folder of relative paths, if the workload has one.
pub fn folder(workload: &Workload) -> Option<PathBuf> {
    steps::shape(workload)?.load.as_ref()?.folder.clone()
}

/// The statements of the steps, which the plan holds, and all files. The hash
/// is that of all that the plan says beside its files: values, names of tables and files, too.
pub fn brought(workload: &Workload) -> Vec<UserCode> {
    let Some(shape) = steps::shape(workload) else { return Vec::new() };
    let statements: Vec<&SqlStatement> = shape.statements().collect();
    let inits: Vec<&String> = shape.step.iter().flat_map(|step| &step.init).collect();
    // Files have hashes of their own, and the folder is another one on each host.
    let mut hashed = shape.clone();
    hashed.files.clear();
    if let Some(load) = &mut hashed.load {
        load.folder = None;
    }
    let in_plan = UserCode {
        kind: "SQL",
        name: format!("{} statements of steps", statements.len() + inits.len()),
        sha256: Some(units::sha256(json!(hashed).to_string())),
        place: None,
    };
    let executed = steps::executed_files(shape);
    let is_trace = |name: &str| shape.step.iter().any(|it| it.trace.as_deref() == Some(name));
    let folder = folder(workload).unwrap_or_default();
    let files = steps::files(shape).into_iter().map(|name| UserCode {
        kind: if executed.contains(&name) || is_trace(&name) { "SQL" } else { "file" },
        sha256: shape.files.get(&name).map(|file| file.sha256.clone()),
        place: Some(folder.join(&name)),
        name,
    });
    std::iter::once(in_plan).chain(files).collect()
}

/// Changes the workload by one `key=value`: a variable of the file, or a setting of all benchmarks.
///
/// # Errors
/// See [`SetError`].
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    let (key, value) = shared::parts(assignment)?;
    let Some(shape) = shape_of(workload) else { return shared::set(workload, assignment) };
    if let Some(variable) = shape.variables.get_mut(key) {
        *variable = value.replace('_', "").parse().map_err(|_| SetError::BadValue {
            key: "a variable",
            value: value.to_owned(),
            why: "write a whole number".to_owned(),
        })?;
        return Ok(());
    }
    if shape.step.iter().any(|step| step.trace.is_some()) && ["speed", "order"].contains(&key) {
        for step in shape.step.iter_mut().filter(|step| step.trace.is_some()) {
            match key {
                "order" => step.order = Some(value.to_owned()),
                _ => set_speed(step, value)?,
            }
        }
        return Ok(());
    }
    if shared::without_tables().any(|known| known == key) {
        return shared::set(workload, assignment);
    }
    let known = shape.variables.keys().cloned();
    let known: Vec<String> = known.chain(shared::without_tables().map(str::to_owned)).collect();
    let (key, known) = (key.to_owned(), known.join(", "));
    Err(SetError::UnknownKeyOf { key, benchmark: "sql", known })
}

fn set_speed(step: &mut SqlStep, value: &str) -> Result<(), SetError> {
    let speed = value.parse().ok().filter(|speed| steps::SPEEDS.contains(speed));
    let speed: f64 = speed.ok_or_else(|| SetError::BadValue {
        key: "speed",
        value: value.to_owned(),
        why: "write how many times as fast as recorded, such as 1".to_owned(),
    })?;
    // Its limit was twice the recorded time.
    step.seconds = step.seconds.map(|seconds| (seconds / speed.min(1.0)).min(86_400.0));
    step.speed = Some(speed);
    Ok(())
}

/// Computes the size of the load.
pub fn finish(workload: &mut Workload) {
    let Some(shape) = steps::shape(workload) else { return };
    let expected = |shape: &SqlShape| {
        let load = shape.load.as_ref()?;
        load.data.iter().map(|data| data.expect_rows).sum::<Option<u64>>()
    };
    let by_bytes = bytes_of_files(shape) / ROW_BYTES;
    workload.rows = expected(shape).filter(|rows| *rows > 0).unwrap_or(by_bytes).max(1);
}

/// The size of the data, estimated from its files.
pub fn data_size(workload: &Workload) -> DataSize {
    let bytes = steps::shape(workload).map_or(0, bytes_of_files).max(UNKNOWN_BYTES);
    DataSize { data_bytes: GROWTH * bytes as f64, cached_bytes: GROWTH as u64 * bytes }
}

fn bytes_of_files(shape: &SqlShape) -> u64 {
    shape.files.values().map(|file| file.bytes).sum()
}

// The load of a workload file.

/// The files of a dialect, in their order.
pub(crate) fn load(dialect: Dialect, workload: &Workload, _: Option<&str>) -> RequestBody {
    let default = SqlLoad::default();
    let load = steps::shape(workload).and_then(|shape| shape.load.as_ref()).unwrap_or(&default);
    let folder = load.folder.clone().unwrap_or_default();
    let scripts = |said: &Option<ByDialect<Vec<String>>>| -> Vec<PathBuf> {
        let names = said.as_ref().and_then(|said| steps::of_dialect(said, dialect));
        names.into_iter().flatten().map(|name| folder.join(name)).collect()
    };
    let drop = load.drop.as_ref().and_then(|said| steps::of_dialect(said, dialect));
    RequestBody::LoadFiles(FileLoad {
        drop: drop.into_iter().flatten().map(|entry| drop_statement(dialect, entry)).collect(),
        database: load.database.clone(),
        schema: scripts(&load.schema),
        data: load.data.iter().map(|data| csv_file(&folder, data)).collect(),
        sessions: load.sessions.unwrap_or(1),
        index: scripts(&load.index),
        analyze: load.analyze.unwrap_or(true),
    })
}

/// The statement for an entry of `drop`: a table, or the statement itself.
fn drop_statement(dialect: Dialect, entry: &str) -> String {
    match TableName::try_from(entry.trim().to_owned()) {
        Ok(table) => format!("DROP TABLE IF EXISTS {}", table.identifier(dialect)),
        Err(_) => entry.to_owned(),
    }
}

fn csv_file(folder: &Path, data: &CsvLoad) -> CsvFile {
    CsvFile {
        path: folder.join(&data.csv),
        table: data.table.clone(),
        columns: data.columns.clone(),
        hex: data.hex.clone(),
        null: data.null.clone().unwrap_or_default(),
        delimiter: data.delimiter.as_ref().and_then(|text| text.bytes().next()).unwrap_or(b','),
        expect_rows: data.expect_rows,
    }
}
