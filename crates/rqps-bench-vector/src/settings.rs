//! Settings `key=value` of vector search.

use std::path::PathBuf;

use crate::presets::DATA_SEED;
use rqps_driver::workload::own::{Settings, own_settings};
use rqps_driver::workload::settings::SetError;
use rqps_driver::workload::value::{choice, count, list, number};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
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
    of: |shape| match shape {
        BenchmarkParameters::Vector(shape) => Some(shape),
        _ => None,
    },
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
            return Err("a file is not generated, so it has no seed, so it has no seed".to_owned());
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
