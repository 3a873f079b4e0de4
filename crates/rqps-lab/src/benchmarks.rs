//! Benchmarks as data: which phases there are, in which order, with which SQL. Each benchmark is a
//! row of [`ALL`].

pub use rqps_bench::{client, orders, pgbench, spec, sql, sysbench, ycsb};
pub use rqps_bench_insert as insert;
pub use rqps_bench_kv as kv;
pub use rqps_bench_lua as lua;
pub use rqps_bench_vector as vector;
pub use spec::{BenchmarkSpec, StepSet};

use std::io::{self, Write};
use std::sync::Arc;

use rqps_analysis as analyze;
use rqps_analysis::measurement::Measurement;
use rqps_analysis::{AnalyzeError, Comparison, Extension, VerdictOptions};
use rqps_driver::DriverPart;
use rqps_driver::request::RequestBody;
use rqps_driver::workload::{SetError, at_each_count};
use rqps_model::benchmark::{BenchmarkParameters, Phase, Step, StepBody, Workload};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::run::{Dataset, ReadSeconds, Run, StepRecord};
use rqps_model::script::{Fragment, Operation};
use rqps_report as report;
use rqps_report::{Document, FamilyReport, ReportOptions, Sections};

// The list of all benchmarks, and calls of their hooks by workload.

/// All benchmarks in the order of lists.
pub static ALL: [&BenchmarkSpec; 10] = [
    &sysbench::SPEC,
    &insert::SPEC,
    &kv::SPEC,
    &vector::SPEC,
    &sql::SPEC,
    &pgbench::SPEC,
    &ycsb::SPEC,
    &lua::SPEC,
    &orders::SPEC,
    &client::SPEC,
];

/// Driver hooks of all benchmarks.
pub fn driver_parts() -> Vec<&'static DriverPart> {
    ALL.iter().map(|spec| &spec.driver).collect()
}

/// The benchmark with this name.
///
/// # Errors
///
/// No such benchmark; the text lists the valid ones.
pub fn named(name: &str) -> Result<&'static BenchmarkSpec, String> {
    ALL.into_iter().find(|spec| spec.name == name).ok_or_else(|| {
        let known = ALL.map(|spec| spec.name).join(", ");
        let of_file = [(".sql", "pgbench"), (".lua", "lua"), (".toml", "sql")];
        let of_file = of_file.iter().find(|(end, _)| name.ends_with(end));
        let hint = of_file.map_or_else(String::new, |(_, front)| {
            format!("\nhint: this file is run by --bench {front}:{name}")
        });
        format!("run the benchmark `{name}`: no such benchmark (known: {known}){hint}")
    })
}

/// The benchmark of a workload.
pub fn of(workload: &Workload) -> &'static BenchmarkSpec {
    match workload.shape {
        BenchmarkParameters::Sysbench => &sysbench::SPEC,
        BenchmarkParameters::Insert(_) => &insert::SPEC,
        BenchmarkParameters::Kv(_) => &kv::SPEC,
        BenchmarkParameters::Vector(_) => &vector::SPEC,
        BenchmarkParameters::Sql(_) => &sql::SPEC,
        BenchmarkParameters::Pgbench(_) => &pgbench::SPEC,
        BenchmarkParameters::Ycsb(_) => &ycsb::SPEC,
        BenchmarkParameters::Lua(_) => &lua::SPEC,
        BenchmarkParameters::Orders(_) => &orders::SPEC,
        BenchmarkParameters::Client(_) => &client::SPEC,
    }
}

/// The names of the steps of the user's own that may write.
fn written(workload: &Workload) -> Vec<String> {
    let spec = of(workload);
    match (&spec.file, &spec.words) {
        (Some(file), _) => (file.writes)(workload),
        (None, Some(words)) => (words.writes)(workload),
        (None, None) => Vec::new(),
    }
}

/// True if a step of the user's own may write: on a server of others, rqps asks, and has the server
/// refuse what others write.
pub fn may_write(workload: &Workload, step: &Step) -> bool {
    let of_all = step.client_count.as_ref().map(|count| &count.step);
    written(workload).iter().any(|name| *name == step.name || Some(name) == of_all)
}

/// The statements of a step that it cannot do without, with NULL for each value; none of those that
/// only a running script knows.
pub fn statements(step: &Step) -> Vec<String> {
    let script = match &step.work {
        StepBody::Script(script) => script,
        _ => return step.own().map(pgbench::statements).unwrap_or_default(),
    };
    let needed = script.events.iter().filter(|event| event.ignore.is_empty());
    let spelled = |operation: &Operation| {
        let part = |part: &Fragment| match part {
            Fragment::Sql(sql) => sql.clone(),
            Fragment::Literal(_) => "NULL".to_owned(),
        };
        operation.fragments.iter().map(part).collect()
    };
    let of_events = needed.flat_map(|event| &event.operations).map(spelled);
    script.init.iter().cloned().chain(of_events).collect()
}

/// The workload of a preset, and its set of steps.
///
/// # Errors
///
/// No such benchmark or preset; the text lists the valid ones.
pub fn workload(benchmark: &str, preset: &str) -> Result<(Workload, StepSet), String> {
    (named(benchmark)?.workload)(preset)
}

/// The phases of a workload after its load, in order (see [`BenchmarkSpec::phases`]).
///
/// Each step is a [`Phase::Measure`]; warm-up steps have `reported` false. [`Phase::Settle`] stands
/// where the published work runs its post-write step after the last read-write step. The settling
/// after the load is left out, because runs start from a snapshot taken after it.
///
/// With several client counts, each reported step except loads occurs once per count.
pub fn phases(dialect: Dialect, order: StepSet, workload: &Workload) -> Vec<Phase> {
    at_each_count(workload, |single| (of(single).phases)(dialect, order, single))
}

/// Applies `key=value` to a workload.
///
/// # Errors
///
/// See [`SetError`].
pub fn set(workload: &mut Workload, setting: &str) -> Result<(), SetError> {
    (of(workload).set)(workload, setting)
}

/// Computes values that follow from other settings, after all settings.
pub fn finish(workload: &mut Workload) {
    (of(workload).finish)(workload);
}

/// Refuses a workload that cannot run on a DBMS of this dialect.
///
/// # Errors
///
/// The text names the settings and a way out.
pub fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    (of(workload).check)(workload, dialect)
}

/// The load before the first step (see [`BenchmarkSpec::load`]). `storage_engine` goes into MySQL's
/// ENGINE clause unchanged; the other dialects have no such choice.
pub fn load_task(
    dialect: Dialect,
    workload: &Workload,
    storage_engine: Option<&str>,
) -> Option<RequestBody> {
    of(workload).load.map(|load| load(dialect, workload, storage_engine))
}

/// The treatment of a step in a counted run: count events, carry out, or leave out. A benchmark
/// without counting counts no step.
pub fn counted(step: &Step, workload: &Workload) -> StepCount {
    match workload.counted_statements {
        Some(statements) => (of(workload).counting.step)(step, workload, statements),
        None => StepCount::CarriedOut("this run measures rates".to_owned()),
    }
}

// Passes the hooks of all benchmarks to analysis and reports, which name no benchmark.

fn extensions() -> Vec<&'static Extension> {
    ALL.iter().map(|spec| &spec.extension).collect()
}

/// Report hooks of all benchmarks.
pub fn sections() -> Vec<&'static Sections> {
    ALL.iter().map(|spec| &spec.sections).collect()
}

/// [`analyze::compare`] with the hooks of all benchmarks.
///
/// # Errors
///
/// As [`analyze::compare`].
pub fn compare(dataset: &Dataset, options: &VerdictOptions) -> Result<Comparison, AnalyzeError> {
    analyze::compare(dataset, options, &extensions())
}

/// [`analyze::compare_measured`] with the hooks of all benchmarks.
///
/// # Errors
///
/// As [`analyze::compare_measured`].
pub fn compare_measured(
    dataset: &Dataset,
    measured: Vec<Vec<Option<Measurement>>>,
    options: &VerdictOptions,
) -> Result<Comparison, AnalyzeError> {
    analyze::compare_measured(dataset, measured, options, &extensions())
}

/// [`analyze::digest`] with the hooks of all benchmarks.
pub fn digest(run: &mut Run, seconds: ReadSeconds) -> Vec<Option<Measurement>> {
    analyze::digest(run, seconds, &extensions())
}

/// [`analyze::measure_step`] with the hooks of all benchmarks.
pub fn measure(step: &StepRecord) -> Measurement {
    analyze::measure_step(&Arc::new(step.clone()), &extensions())
}

/// [`mod@report::document`] with the hooks of all benchmarks.
pub fn document(comparison: &Comparison, options: &ReportOptions) -> Document {
    report::document(comparison, options, &sections())
}

/// [`report::render`] with the hooks of all benchmarks.
pub fn render(comparison: &Comparison, format: report::Format) -> String {
    report::render(comparison, format, &sections())
}

/// [`report::write`] with the hooks of all benchmarks.
///
/// # Errors
///
/// As [`report::write`].
pub fn write_report(
    comparison: &Comparison,
    format: report::Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    report::write(comparison, format, &sections(), out)
}

/// [`report::write_families`] with the hooks of all benchmarks.
///
/// # Errors
///
/// As [`report::write_families`].
pub fn write_families(
    parts: &[FamilyReport],
    format: report::Format,
    out: &mut dyn Write,
) -> io::Result<()> {
    report::write_families(parts, format, &sections(), out)
}
