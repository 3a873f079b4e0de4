//! The Insert Benchmark as data: the steps of both eras, with every statement spelled out.
//!
//! Rows go in at one end in the order of the primary key; three secondary indexes take them at
//! random places; in the newer era as many rows leave at the other end, so that a table is a queue
//! of constant length. Query steps query as fast as they can while writers keep a rate.

pub mod analyze;
mod check;
pub(crate) mod driver;
pub mod import;
mod presets;
pub(crate) mod report;
pub mod rows;
mod schema;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

pub use check::{ShapeError, check};
pub use presets::{PRESETS, workload};
pub use settings::set;
pub use steps::{choose, stages};

use crate::domain::benchmark::{BenchmarkParameters, Workload};
use crate::domain::build::Dialect;
use crate::domain::insert::InsertShape;

/// The name of a table, with `{table}` for its number.
pub const TABLE: &str = schema::TABLE;

/// The parameters of this benchmark, if the workload is of it.
pub fn shape(workload: &Workload) -> Option<&InsertShape> {
    match &workload.shape {
        BenchmarkParameters::Insert(shape) => Some(shape),
        _ => None,
    }
}

/// Settles what follows from other settings: the number of tables.
pub fn finish(workload: &mut Workload) {
    let BenchmarkParameters::Insert(shape) = &workload.shape else { return };
    workload.tables = shape.tables.unwrap_or(if shape.shared { 1 } else { workload.clients });
}

/// See [`crate::benchmarks::names_made`].
pub fn names_made(dialect: Dialect, workload: &Workload, shape: &InsertShape) -> Vec<String> {
    let tables = if shape.shared { 1 } else { workload.clients };
    let mut names = vec![TABLE.to_owned()];
    if dialect == Dialect::Postgres {
        names.extend(schema::names_beside(shape.profile, shape.partitions));
    }
    let of_table = |table: u32| {
        let table = table.to_string();
        names.iter().map(move |name| name.replace("{table}", &table)).collect::<Vec<_>>()
    };
    (1..=tables).flat_map(of_table).collect()
}

/// Rows that are inserted and not deleted again.
pub fn rows_written(workload: &Workload, shape: &InsertShape) -> u64 {
    let clients = u64::from(workload.clients);
    if shape.deletes {
        return workload.rows * clients;
    }
    let rates: u64 = shape.query_steps.iter().map(|step| u64::from(step.rows_per_second)).sum();
    let queried = (rates as f64 * shape.query_seconds) as u64;
    (workload.rows + shape.i1_rows + shape.i2_rows + queried) * clients
}
