//! Single settings of vector search: `key=value`.

use std::path::PathBuf;
use std::str::FromStr;

use crate::bench::preset::{self, SetError};
use crate::domain::benchmark::{Shape, Workload};
use crate::domain::vector::{
    Case, DataSource, Distance, Iterative, Neighbours, PgBuild, Variant, VectorShape,
};

/// A setting of this benchmark.
struct Setting {
    key: &'static str,
    apply: fn(&mut Workload, &mut VectorShape, &str) -> Result<(), String>,
}

macro_rules! settings {
    ($($key:literal, |$workload:ident, $shape:ident, $value:ident| $apply:expr;)*) => {
        const SETTINGS: &[Setting] = &[$(Setting {
            key: $key,
            apply: |$workload, $shape, $value| { let _ = &$workload; $apply; Ok(()) },
        }),*];
    };
}

settings! {
    "data", |_workload, shape, value| shape.data = data(value, &shape.data);
    "rows", |workload, shape, value| rows(workload, shape, value)?;
    "queries", |_workload, shape, value| queries(shape, value)?;
    "dims", |_workload, shape, value| dims(shape, value)?;
    "data_seed", |_workload, shape, value| data_seed(shape, value)?;
    "distance", |_workload, shape, value| distance(shape, value)?;
    "neighbours", |_workload, shape, value| neighbours(shape, value)?;
    "k", |_workload, shape, value| shape.k = preset::count(value, 1, 1000)? as u32;
    "cases", |_workload, shape, value| shape.cases = cases(value)?;
    "pgvector", |_workload, shape, value|
        shape.pgvector = list(value, |word| PgBuild::try_from(word.to_owned()))?;
    "mariadb", |_workload, shape, value|
        shape.mariadb = list(value, |word| whole(word, 3, 200))?;
    "ef", |_workload, shape, value| shape.ef = list(value, |word| whole(word, 1, 10_000))?;
    "ramp", |_workload, shape, value| shape.ramp = list(value, |word| whole(word, 1, 1000))?;
    "targets", |_workload, shape, value|
        shape.targets = list(value, |word| within(word, 0.01, 1.0))?;
    "selectivity", |_workload, shape, value|
        shape.selectivity = list(value, |word| within(word, 0.01, 100.0))?;
    "deletes", |_workload, shape, value| {
        shape.deletes = list(value, |word| within(word, 0.01, 99.0))?;
        shape.deletes.sort_by(f64::total_cmp);
    };
    "insert_rate", |_workload, shape, value|
        shape.insert_rate = within(value, 0.01, 1e6)?;
    "variant", |_workload, shape, value| shape.variant = Variant::from_name(value)

        .ok_or("it must be vector, halfvec, halfvec-rerank, halfvec-column or bit")?;
    "iterative", |_workload, shape, value| shape.iterative = iterative(value)?;
    "build_workers", |_workload, shape, value|
        shape.build_workers = preset::count(value, 0, 1024)? as u32;
}

/// Settings of all benchmarks that this one takes too.
const COMMON: [&str; 9] = [
    "clients",
    "seconds",
    "read_seconds",
    "write_seconds",
    "warmup_seconds",
    "cache",
    "rate",
    "placement",
    "idle",
];

/// Changes a workload of this benchmark by one `key=value`. Nothing is changed on an error.
///
/// # Errors
/// An unknown key, or a value outside its limits; the text lists keys or limits.
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
            benchmark: "vector",
            known: known.join(", "),
        });
    };
    let Shape::Vector(shape) = &workload.shape else {
        return preset::set(workload, assignment);
    };
    let (mut shape, mut changed) = (shape.clone(), workload.clone());
    (setting.apply)(&mut changed, &mut shape, value).map_err(|why| SetError::BadValue {
        key: setting.key,
        value: value.to_owned(),
        why,
    })?;
    changed.shape = Shape::Vector(shape);
    *workload = changed;
    Ok(())
}

/// `fashion`, `fashion-float`, or a file. What is set of the set before stays as far as it can.
fn data(value: &str, before: &DataSource) -> DataSource {
    let (dims, queries, seed) = match before {
        DataSource::Fashion { dims, queries, seed, .. } => (*dims, *queries, *seed),
        DataSource::Files { .. } => (784, 1_000, 1),
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
    let count = preset::count(value, 1, u64::from(u32::MAX) / 2)?;
    match &mut shape.data {
        DataSource::Fashion { .. } => workload.rows = count,
        DataSource::Files { limit_rows, .. } => *limit_rows = count,
    }
    Ok(())
}

/// A number; or a file, beside a file of rows.
fn queries(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    match &mut shape.data {
        DataSource::Fashion { queries, .. } => {
            *queries = preset::count(value, 1, 10_000_000)? as u32;
        }
        DataSource::Files { queries, limit_queries, .. } => {
            match preset::count(value, 1, 10_000_000) {
                Ok(count) => *limit_queries = count as u32,
                Err(_) => *queries = Some(PathBuf::from(value)),
            }
        }
    }
    Ok(())
}

fn dims(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    match &mut shape.data {
        DataSource::Fashion { dims, .. } => *dims = preset::count(value, 1, 16_000)? as u32,
        DataSource::Files { .. } => return Err("a file has the dimensions that it has".to_owned()),
    }
    Ok(())
}

fn data_seed(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    match &mut shape.data {
        DataSource::Fashion { seed, .. } => *seed = preset::count(value, 0, u64::MAX)?,
        DataSource::Files { .. } => return Err("a file is not generated".to_owned()),
    }
    Ok(())
}

fn distance(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    let wanted = match value {
        "euclidean" => Distance::Euclidean,
        "cosine" | "angular" => Distance::Cosine,
        _ => return Err("it must be euclidean or cosine".to_owned()),
    };
    match &mut shape.data {
        DataSource::Fashion { .. } if wanted == Distance::Euclidean => {}
        DataSource::Fashion { .. } => {
            return Err("the generated set is made for euclidean distances".to_owned());
        }
        DataSource::Files { distance, .. } => *distance = Some(wanted),
    }
    Ok(())
}

/// A file of row numbers, or `none`.
fn neighbours(shape: &mut VectorShape, value: &str) -> Result<(), String> {
    match &mut shape.data {
        DataSource::Fashion { .. } => {
            Err("those of the generated set are computed; name files with data= first".to_owned())
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
    let known: Vec<&str> = Case::ALL.iter().map(|case| case.name()).collect();
    if value == "all" {
        return Ok(Case::ALL.to_vec());
    }
    list(value, |word| {
        let found = Case::ALL.into_iter().find(|case| case.name() == word);
        found.ok_or_else(|| format!("`{word}` is no case; there are {} and all", known.join(", ")))
    })
}

fn iterative(value: &str) -> Result<Iterative, String> {
    let all = [Iterative::Off, Iterative::StrictOrder, Iterative::RelaxedOrder];
    let found = all.into_iter().find(|word| word.name() == value);
    found.ok_or_else(|| "it must be off, strict_order or relaxed_order".to_owned())
}

/// Words apart by commas, at least one, none twice.
fn list<T: PartialEq>(
    value: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    let mut all = Vec::new();
    for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let item = read(word)?;
        if !all.contains(&item) {
            all.push(item);
        }
    }
    if all.is_empty() {
        Err("it is a list with commas, of at least one".to_owned())
    } else {
        Ok(all)
    }
}

fn whole(word: &str, low: u32, high: u32) -> Result<u32, String> {
    preset::count(word, low.into(), high.into()).map(|count| count as u32)
}

fn within(word: &str, low: f64, high: f64) -> Result<f64, String> {
    match f64::from_str(word) {
        Ok(number) if (low..=high).contains(&number) => Ok(number),
        _ => Err(format!("`{word}` is no number from {low} to {high}")),
    }
}
