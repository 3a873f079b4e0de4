//! Settings `key=value` of vector search.

use std::path::PathBuf;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::steps::{self, shape_of};
use rqps_driver::workload::{self, SetError, Settings, choice, count, list, number, own_settings};
use rqps_model::benchmark::{BenchmarkParameters, Idle, Workload};
use rqps_model::build::{Dbms, Target};
use rqps_model::dialect::Dialect;
use rqps_model::vector::{
    Case, DataSource, Distance, Iterative, Neighbours, PgBuild, Variant, VectorShape,
};

own_settings! { VectorShape:
    "data", |_, shape, value| shape.data = data(value, &shape.data);
    "rows", |workload, shape, value| rows(workload, shape, value)?;
    "queries", |_, shape, value| queries(shape, value)?;
    "dims", |_, shape, value| dims(shape, value)?;
    "data_seed", |_, shape, value| data_seed(shape, value)?;
    "distance", |_, shape, value| distance(shape, value)?;
    "neighbours", |_, shape, value| neighbours(shape, value)?;
    "k", |_, shape, value| shape.k = count(value, 1, 1000)? as u32;
    "cases", |_, shape, value| shape.cases = cases(value)?;
    "pgvector", |_, shape, value|
        shape.pgvector = list(value, |word| PgBuild::try_from(word.to_owned()))?;
    "mariadb", |_, shape, value|
        shape.mariadb = list(value, |word| whole(word, 3, 200))?;
    "ef", |_, shape, value| shape.ef = list(value, |word| whole(word, 1, 10_000))?;
    "ramp", |_, shape, value| shape.ramp = list(value, |word| whole(word, 1, 1000))?;
    "targets", |_, shape, value|
        shape.targets = list(value, |word| number(word, 0.01, 1.0))?;
    "selectivity", |_, shape, value|
        shape.selectivity = list(value, |word| number(word, 0.01, 100.0))?;
    "deletes", |_, shape, value| {
        shape.deletes = list(value, |word| number(word, 0.01, 99.0))?;
        shape.deletes.sort_by(f64::total_cmp);
    };
    "insert_rate", |_, shape, value|
        shape.insert_rate = number(value, 0.01, 1e6)?;
    "variant", |_, shape, value| shape.variant = Variant::from_name(value)
        .ok_or("write one of vector, halfvec, halfvec-rerank, halfvec-column, bit")?;
    "iterative", |_, shape, value| shape.iterative = iterative(value)?;
    "build_workers", |_, shape, value|
        shape.build_workers = count(value, 0, 1024)? as u32;
    "commit_rows", |_, shape, value|
        shape.commit_rows = list(value, |word| whole(word, 1, 1000))?;
    "capacity_seconds", |_, shape, value|
        shape.capacity_seconds = number(value, 0.1, 1e6)?;
}

const SETTINGS: Settings<VectorShape> = Settings {
    benchmark: "vector",
    own: OWN,
    common: &[
        ("clients", "clients"),
        ("seconds", "seconds"),
        ("read_seconds", "read_seconds"),
        ("write_seconds", "write_seconds"),
        ("warmup_seconds", "warmup_seconds"),
        ("cache", "cache"),
        ("memory_limit", "memory_limit"),
        ("rate", "rate"),
        ("placement", "placement"),
        ("idle", "idle"),
        ("turn_ms", "turn_ms"),
        ("waiting", "waiting"),
    ],
    others: false,
    open: &[],
};

/// The files of the user's own vectors.
pub(super) fn own_data(workload: &Workload) -> Vec<PathBuf> {
    let BenchmarkParameters::Vector(shape) = &workload.shape else { return Vec::new() };
    match &shape.data {
        DataSource::Files { rows, queries, neighbours, .. } => {
            let neighbours = match neighbours {
                Neighbours::File(path) => Some(path),
                Neighbours::OfFile | Neighbours::Ignored => None,
            };
            [Some(rows), queries.as_ref(), neighbours].into_iter().flatten().cloned().collect()
        }
        DataSource::Fashion { .. } => Vec::new(),
    }
}

/// Changes a workload of this benchmark by one `key=value`. On an error, nothing changes.
///
/// # Errors
///
/// An unknown key, or a value outside its limits; the text lists keys or limits.
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    SETTINGS.set(workload, assignment)
}

/// Reads `fashion`, `fashion-float`, or a file. Keeps settings of the earlier set where possible.
fn data(value: &str, before: &DataSource) -> DataSource {
    let (dims, queries, seed) = match before {
        DataSource::Fashion { dims, queries, seed, .. } => (*dims, *queries, *seed),
        DataSource::Files { .. } => (784, 1_000, DATA_SEED),
    };
    match value {
        "fashion" | "fashion-float" => {
            DataSource::Fashion { dims, queries, rounded: value == "fashion", seed }
        }
        file => DataSource::Files {
            rows: PathBuf::from(file),
            queries: None,
            limit_rows: 0,
            limit_queries: 0,
            distance: None,
            neighbours: Neighbours::OfFile,
        },
    }
}

fn rows(workload: &mut Workload, shape: &mut VectorShape, value: &str) -> Result<(), String> {
    let count = count(value, 1, u64::from(u32::MAX) / 2)?;
    match &mut shape.data {
        DataSource::Fashion { .. } => workload.rows = count,
        DataSource::Files { limit_rows, .. } => *limit_rows = count,
    }
    Ok(())
}

/// Reads a number, or a file beside a file of rows.
fn queries(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    match &mut shape.data {
        DataSource::Fashion { queries, .. } => {
            *queries = count(value, 1, 10_000_000)? as u32;
        }
        DataSource::Files { queries, limit_queries, .. } => match count(value, 1, 10_000_000) {
            Ok(count) => *limit_queries = count as u32,
            Err(_) => *queries = Some(PathBuf::from(value)),
        },
    }
    Ok(())
}

fn dims(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    match &mut shape.data {
        DataSource::Fashion { dims, .. } => *dims = count(value, 1, 16_000)? as u32,
        DataSource::Files { .. } => return Err("a file has fixed dimensions".to_owned()),
    }
    Ok(())
}

fn data_seed(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    match &mut shape.data {
        DataSource::Fashion { seed, .. } => *seed = count(value, 0, u64::MAX)?,
        DataSource::Files { .. } => {
            return Err("a file is not generated, so it has no seed".to_owned());
        }
    }
    Ok(())
}

fn distance(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    let known = [
        ("euclidean", Distance::Euclidean),
        ("cosine", Distance::Cosine),
        ("angular", Distance::Cosine),
    ];
    let wanted = choice(value, &known)?;
    match &mut shape.data {
        DataSource::Fashion { .. } if wanted == Distance::Euclidean => {}
        DataSource::Fashion { .. } => {
            return Err("the generated set is euclidean only".to_owned());
        }
        DataSource::Files { distance, .. } => *distance = Some(wanted),
    }
    Ok(())
}

/// Reads a file of row numbers, or `none`.
fn neighbours(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    match &mut shape.data {
        DataSource::Fashion { .. } => {
            Err("rqps computes the neighbours of a generated set; name files with data= \
                 first"
                .to_owned())
        }
        DataSource::Files { neighbours, .. } => {
            *neighbours = match value {
                "none" => Neighbours::Ignored,
                file => Neighbours::File(PathBuf::from(file)),
            };
            Ok(())
        }
    }
}

fn cases(value: &str) -> Result<Vec<Case>, String> {
    if value == "all" {
        return Ok(Case::ALL.to_vec());
    }
    let known = Case::ALL.map(|case| (case.name(), case));
    list(value, |word| choice(word, &known).map_err(|why| why + "; or write `all`"))
}

fn iterative(value: &str) -> Result<Iterative, String> {
    let all = [Iterative::Off, Iterative::StrictOrder, Iterative::RelaxedOrder];
    choice(value, &all.map(|word| (word.name(), word)))
}

fn whole(word: &str, low: u32, high: u32) -> Result<u32, String> {
    count(word, low.into(), high.into()).map(|count| count as u32)
}

// Presets of vector search.

/// A size, and its part of the published grid.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Preset {
    name: String,
    rows: u64,
    queries: u32,
    seconds: f64,
    warmup_seconds: f64,
    pgvector: String,
    mariadb: Vec<u32>,
    ef: Vec<u32>,
    ramp: Vec<u32>,
}

/// All presets in the order of lists.
fn presets() -> &'static [Preset] {
    static PRESETS: LazyLock<Vec<Preset>> =
        LazyLock::new(|| workload::presets(include_str!("presets.toml")).unwrap_or_default());
    &PRESETS
}

/// Default seed of the generated set: the first one that passes all checks of `rqps vector
/// verify-data` (docs/vector.md).
const DATA_SEED: u64 = 2;

/// The workload of a preset.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn workload(preset: &str) -> Result<Workload, String> {
    let found = workload::named(presets(), |known| (&known.name, &[]), preset)?;
    let shape = VectorShape {
        data: DataSource::Fashion {
            dims: 784,
            queries: found.queries,
            rounded: true,
            seed: DATA_SEED,
        },
        k: 10,
        cases: vec![Case::Sweep],
        pgvector: list(&found.pgvector, |word| PgBuild::try_from(word.to_owned()))?,
        mariadb: found.mariadb.clone(),
        ef: found.ef.clone(),
        ramp: found.ramp.clone(),
        targets: vec![0.95, 0.99],
        selectivity: vec![50.0, 10.0, 1.0],
        deletes: vec![10.0, 50.0],
        insert_rate: 50.0,
        variant: Variant::Vector,
        iterative: Iterative::Off,
        build_workers: 0,
        commit_rows: vec![1],
        capacity_seconds: 60.0,
    };
    Ok(Workload {
        rows: found.rows,
        read_seconds: found.seconds,
        write_seconds: found.seconds,
        warmup_seconds: found.warmup_seconds,
        idle: Idle::Os,
        ..Workload::plain(BenchmarkParameters::Vector(Box::new(shape)))
    })
}

// Refuses vector workloads that cannot be measured.

/// Refuses a workload that cannot be measured.
///
/// # Errors
///
/// The text names the settings and a way out.
pub(super) fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = shape_of(workload) else { return Ok(()) };
    match dialect {
        Dialect::Postgres | Dialect::Mysql => {}
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => {
            return Err(
                "search vectors on this DBMS: only postgres with pgvector and mariadb since 11.7 \
                 have a vector index"
                    .to_owned(),
            );
        }
    }
    let least = shape.ef.iter().min().copied().unwrap_or(0);
    if dialect == Dialect::Postgres && least < shape.k {
        return Err(format!(
            "search with ef={least} and k={}: pgvector returns at most ef_search rows; use an ef \
             of at least k",
            shape.k
        ));
    }
    if let DataSource::Fashion { .. } = shape.data
        && workload.rows < u64::from(shape.k)
    {
        return Err(format!(
            "search with rows={} and k={}: k cannot exceed the number of rows",
            workload.rows, shape.k
        ));
    }
    let spare = steps::spare(workload, shape);
    if shape.cases.contains(&Case::Mixed)
        && matches!(shape.data, DataSource::Fashion { .. })
        && spare + u64::from(shape.k) > workload.rows
    {
        return Err(format!(
            "run the case mixed: it inserts {spare} rows at insert_rate={} but the set has {}; use \
             a lower rate, shorter windows or more rows",
            shape.insert_rate, workload.rows
        ));
    }
    Ok(())
}

/// Refuses a DBMS without vectors before its build is fetched.
///
/// # Errors
///
/// The text names DBMSs with vectors.
pub fn check_target(target: &Target) -> Result<(), String> {
    match target.dbms {
        Dbms::Mysql => Err(format!(
            "search vectors on {}: MySQL has no vector index; MariaDB has one since 11.7 \
             (mariadb@11.8)",
            target.label
        )),
        Dbms::Mariadb if target.storage_engine.as_deref() == Some("rocksdb") => Err(format!(
            "search vectors on {}: MyRocks has no vector index; InnoDB has one (leave out \
             +myrocks)",
            target.label
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_presets_is_read() {
        let names: Vec<&str> = presets().iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names, ["quick", "standard", "full"]);
        let full = workload("full").unwrap();
        let BenchmarkParameters::Vector(shape) = &full.shape else { panic!("{full:?}") };
        assert_eq!((full.rows, shape.pgvector.len(), shape.ef.len()), (60_000, 19, 9));
    }
}
