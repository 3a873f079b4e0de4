//! Benchmarks as data: which stages there are, in which order, with which SQL. Nothing here opens
//! a connection.

pub mod insert;
pub mod kv;
pub mod sysbench;
#[cfg(test)]
mod tests;
pub mod vector;

use serde::{Deserialize, Serialize};

use crate::domain::benchmark::{BenchmarkParameters, Group, Phase, Workload};
use crate::domain::build::Dialect;
use crate::driver::protocol::LoadRequest;

use self::sysbench::{presets, steps as sysbench_steps};
use crate::workload::select::{SelectError, select};
use crate::workload::settings;

/// Which of the published orders of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepSet {
    /// The 42 steps of 2021 to 2024: reads before and after the writes are both reported.
    Full,
    /// Of October 2024 to March 2025, 27 reported steps: as [`StepSet::Abbreviated`], which has the
    /// five steps of one range each since.
    #[serde(rename = "2025-01")]
    January2025,
    /// Since April 2025, 32 reported steps; reads before the writes only warm.
    #[default]
    Abbreviated,
}

/// What a benchmark does after its load, in order.
///
/// Every step of the order is a [`Phase::Measure`], those that only warm with `reported` false.
/// [`Phase::Settle`] stands where the published work runs its post-write step after the last
/// read-write step. The one after the load is not among them: what is measured starts from a
/// snapshot that was taken after it.
pub fn stages(dialect: Dialect, order: StepSet, workload: &Workload) -> Vec<Phase> {
    match &workload.shape {
        BenchmarkParameters::Sysbench => sysbench_steps::stages(dialect, order, workload),
        BenchmarkParameters::Insert(shape) => insert::stages(dialect, workload, shape),
        BenchmarkParameters::Kv(shape) => kv::stages(workload, shape),
        BenchmarkParameters::Vector(_) => vector::stages(dialect, workload),
    }
}

/// Keeps the steps that `globs` choose, with those that they build on.
///
/// # Errors
/// As [`select`].
pub fn choose(
    stages: Vec<Phase>,
    globs: &[String],
    workload: &Workload,
) -> Result<Vec<Phase>, SelectError> {
    match workload.shape {
        BenchmarkParameters::Insert(_) => insert::choose(stages, globs),
        BenchmarkParameters::Vector(_) => vector::choose(stages, globs),
        _ => select(stages, globs),
    }
}

/// The workload of a preset of a benchmark, and the order of steps that goes with it.
///
/// # Errors
/// No such benchmark or preset; the text lists those there are.
pub fn workload(benchmark: &str, preset: &str) -> Result<(Workload, StepSet), String> {
    match benchmark {
        "sysbench" => match presets::Preset::named(preset) {
            Some(preset) => Ok((preset.workload(), preset.order)),
            None => {
                let known: Vec<_> = presets::ALL.iter().map(|preset| preset.name).collect();
                Err(format!(
                    "use the preset `{preset}`: no such preset (known: {})",
                    known.join(", ")
                ))
            }
        },
        "insert" => insert::workload(preset).map(|workload| (workload, StepSet::default())),
        "kv" => kv::workload(preset),
        "vector" => vector::workload(preset).map(|workload| (workload, StepSet::default())),
        _ => Err(format!(
            "run the benchmark `{benchmark}`: no such benchmark (known: sysbench, insert, kv, \
             vector)"
        )),
    }
}

/// True for presets that have the shape of published results.
pub fn is_published(benchmark: &str, preset: &str) -> bool {
    match benchmark {
        "sysbench" => presets::Preset::named(preset).is_some_and(presets::Preset::is_published),
        "kv" => kv::is_published(preset),
        _ => false,
    }
}

/// The configuration that a preset asks for, of targets whose DBMS has one of that name and whose
/// words name none.
pub fn config(benchmark: &str, preset: &str) -> Option<&'static str> {
    presets::Preset::named(preset).filter(|_| benchmark == "sysbench")?.config
}

/// Applies `key=value` to a workload.
///
/// # Errors
/// What [`settings::SetError`] says.
pub fn set(workload: &mut Workload, setting: &str) -> Result<(), settings::SetError> {
    match workload.shape {
        BenchmarkParameters::Insert(_) => insert::set(workload, setting),
        BenchmarkParameters::Kv(_) => kv::set(workload, setting),
        BenchmarkParameters::Vector(_) => vector::set(workload, setting),
        BenchmarkParameters::Sysbench => settings::set(workload, setting),
    }
}

/// Fills in what follows from other settings, when all are known.
pub fn finish(workload: &mut Workload) {
    insert::finish(workload);
}

/// Refuses a workload that its benchmark cannot carry out on a DBMS of this dialect.
///
/// # Errors
/// The text says which settings are at fault and what to do.
pub fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    insert::check(workload, dialect).map_err(|error| error.to_string())?;
    vector::check(workload, dialect)
}

/// The name of a table of the benchmark, with `{table}` for its number.
pub fn table_name(shape: &BenchmarkParameters) -> &'static str {
    match shape {
        BenchmarkParameters::Sysbench => "sbtest{table}",
        BenchmarkParameters::Insert(_) => insert::TABLE,
        BenchmarkParameters::Kv(_) => "",
        BenchmarkParameters::Vector(_) => "items",
    }
}

/// Every name that the benchmark gives in a database: to tables, and, where those share names with
/// tables, to indexes, partitions and sequences.
pub fn names_made(dialect: Dialect, workload: &Workload) -> Vec<String> {
    let apart = dialect == Dialect::Mysql;
    match &workload.shape {
        BenchmarkParameters::Sysbench => {
            let of_table = |table: u32| match apart {
                true => vec![format!("sbtest{table}")],
                false => vec![format!("sbtest{table}"), format!("k_{table}")],
            };
            (1..=workload.tables).flat_map(of_table).collect()
        }
        BenchmarkParameters::Insert(shape) => insert::names_made(dialect, workload, shape),
        BenchmarkParameters::Kv(_) => Vec::new(),
        BenchmarkParameters::Vector(_) if apart => vec!["items".to_owned()],
        BenchmarkParameters::Vector(_) => vec!["items".to_owned(), "items_v".to_owned()],
    }
}

/// How the tables are made and filled before the first step; `None` where filling is a step of the
/// benchmark. `storage_engine` goes into MySQL's ENGINE clause as it is given; the other dialects
/// have no such choice.
pub fn load_task(
    dialect: Dialect,
    workload: &Workload,
    storage_engine: Option<&str>,
) -> Option<LoadRequest> {
    match &workload.shape {
        BenchmarkParameters::Sysbench => {
            Some(sysbench_steps::load_task(dialect, workload, storage_engine))
        }
        BenchmarkParameters::Insert(_)
        | BenchmarkParameters::Kv(_)
        | BenchmarkParameters::Vector(_) => None,
    }
}

/// Memory that a target with the page cache of its files may take, bytes.
pub fn memory_limit(workload: &Workload) -> Option<u64> {
    match &workload.shape {
        BenchmarkParameters::Insert(shape) => shape.memory_limit,
        _ => workload.memory_limit,
    }
}

/// Whether tables are filled before the first step.
pub fn is_loaded_first(workload: &Workload) -> bool {
    matches!(workload.shape, BenchmarkParameters::Sysbench)
}

/// Rows that tables hold at most, all together: for estimates of disk.
pub fn rows_written(workload: &Workload) -> u64 {
    match &workload.shape {
        BenchmarkParameters::Insert(shape) => insert::rows_written(workload, shape),
        _ => u64::from(workload.tables) * workload.rows,
    }
}

/// One line of a listing of steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// Name of the step.
    pub name: String,
    /// Its group.
    pub group: Group,
    /// False for warm-ups.
    pub reported: bool,
    /// True parameters.
    pub detail: String,
    /// Statements of an event in order, as the dialect spells them, in-lists shortened; `10 × …`
    /// where one is repeated.
    pub statements: Vec<String>,
}

/// All steps of an order, for `rqps` listings and documents.
pub fn names(dialect: Dialect, order: StepSet) -> Vec<Listing> {
    let workload = presets::QUICK.workload();
    let mut listings = Vec::new();
    for stage in stages(dialect, order, &workload) {
        if let Phase::Measure(step) = stage
            && let Some(script) = step.script()
        {
            listings.push(Listing {
                statements: sysbench_steps::statements(dialect, script),
                name: step.name,
                group: step.group,
                reported: step.reported,
                detail: step.detail,
            });
        }
    }
    listings
}
