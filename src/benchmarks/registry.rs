//! All benchmarks, and what is asked of whichever a workload belongs to.

use crate::benchmarks::spec::{BenchmarkSpec, StepSet};
use crate::benchmarks::{custom, insert, kv, lua, orders, pgbench, sysbench, vector, ycsb};
use crate::domain::benchmark::{Phase, Step, Workload};
use crate::domain::counted::StepCount;
use crate::domain::dialect::Dialect;
use crate::driver::DriverPart;
use crate::driver::request::RequestBody;
use crate::workload::client_counts::at_each_count;
use crate::workload::select::SelectError;
use crate::workload::settings::SetError;

/// All benchmarks, in the order of listings.
pub static ALL: [&BenchmarkSpec; 9] = [
    &sysbench::SPEC,
    &insert::SPEC,
    &kv::SPEC,
    &vector::SPEC,
    &custom::SQL,
    &pgbench::SPEC,
    &ycsb::SPEC,
    &lua::SPEC,
    &orders::SPEC,
];

/// What benchmarks have of their own in the driver.
pub fn driver_parts() -> Vec<&'static DriverPart> {
    ALL.iter().map(|spec| &spec.driver).collect()
}

/// The benchmark of that name.
///
/// # Errors
/// No such benchmark; the text lists those there are.
pub fn named(name: &str) -> Result<&'static BenchmarkSpec, String> {
    ALL.into_iter().find(|spec| spec.name == name).ok_or_else(|| {
        let known = ALL.map(|spec| spec.name).join(", ");
        format!("run the benchmark `{name}`: no such benchmark (known: {known})")
    })
}

/// The benchmark that a workload belongs to.
pub fn of(workload: &Workload) -> &'static BenchmarkSpec {
    let name = workload.shape.benchmark();
    // A workload is made by a row of the list, or read as one of the same names.
    ALL.into_iter().find(|spec| spec.name == name).unwrap_or(&sysbench::SPEC)
}

/// The workload of a preset of a benchmark, and the set of steps that goes with it.
///
/// # Errors
/// No such benchmark or preset; the text lists those there are.
pub fn workload(benchmark: &str, preset: &str) -> Result<(Workload, StepSet), String> {
    (named(benchmark)?.workload)(preset)
}

/// What a benchmark does after its load, in order: see [`BenchmarkSpec::phases`].
///
/// Every step of the order is a [`Phase::Measure`], warm-up steps with `reported` false.
/// [`Phase::Settle`] stands where the published work runs its post-write step after the last
/// read-write step. The one after the load is not among them: what is measured starts from a
/// snapshot that was taken after it.
///
/// With several client counts, each reported step but loads is there once per count.
pub fn phases(dialect: Dialect, order: StepSet, workload: &Workload) -> Vec<Phase> {
    at_each_count(workload, |single| (of(single).phases)(dialect, order, single))
}

/// Keeps the steps that `globs` choose and the steps that they build on.
///
/// # Errors
/// As [`crate::workload::select::select`].
pub fn choose(
    phases: Vec<Phase>,
    globs: &[String],
    workload: &Workload,
) -> Result<Vec<Phase>, SelectError> {
    (of(workload).choose)(phases, globs)
}

/// Applies `key=value` to a workload.
///
/// # Errors
/// What [`SetError`] says.
pub fn set(workload: &mut Workload, setting: &str) -> Result<(), SetError> {
    (of(workload).set)(workload, setting)
}

/// Fills in what follows from other settings, when all are known.
pub fn finish(workload: &mut Workload) {
    (of(workload).finish)(workload);
}

/// Refuses a workload that its benchmark cannot carry out on a DBMS of this dialect.
///
/// # Errors
/// The text says which settings are at fault and what to do.
pub fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    (of(workload).check)(workload, dialect)
}

/// How the tables are made and filled before the first step: see [`BenchmarkSpec::load`].
/// `storage_engine` goes into MySQL's ENGINE clause as it is given; the other dialects have no such
/// choice.
pub fn load_task(
    dialect: Dialect,
    workload: &Workload,
    storage_engine: Option<&str>,
) -> Option<RequestBody> {
    of(workload).load.map(|load| load(dialect, workload, storage_engine))
}

/// What a counted run does with a step. A workload that is not counted counts nothing.
pub fn counted(step: &Step, workload: &Workload) -> StepCount {
    match workload.counted_statements {
        Some(statements) => (of(workload).counting.step)(step, workload, statements),
        None => StepCount::CarriedOut("this run measures rates".to_owned()),
    }
}

/// Every name that the benchmark gives in a database: see [`BenchmarkSpec::names_made`].
pub fn names_made(dialect: Dialect, workload: &Workload) -> Vec<String> {
    (of(workload).names_made)(dialect, workload)
}

/// Memory that a target with the page cache of its files may take, bytes.
pub fn memory_limit(workload: &Workload) -> Option<u64> {
    (of(workload).memory_limit)(workload)
}
