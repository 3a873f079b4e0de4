//! Names of tables and indexes, and the contents of columns.

use rqps_model::benchmark::Workload;
use rqps_model::dialect::Dialect;

/// Bytes of column c: ten groups of eleven digits joined by `-`.
pub const C_LEN: usize = 119;
/// Bytes of column pad: five groups of eleven digits joined by `-`.
pub const PAD_LEN: usize = 59;

/// Names of all tables, and of indexes that share a name space with tables.
pub(super) fn names_made(dialect: Dialect, workload: &Workload) -> Vec<String> {
    let of_table = |table: u32| match dialect {
        Dialect::Mysql => vec![format!("sbtest{table}")],
        _ => vec![format!("sbtest{table}"), format!("k_{table}")],
    };
    (1..=workload.tables).flat_map(of_table).collect()
}
