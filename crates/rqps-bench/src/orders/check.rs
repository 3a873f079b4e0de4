//! Refuses targets that cannot execute the order mix.

use crate::orders::steps;
use rqps_model::benchmark::Workload;
use rqps_model::dialect::Dialect;

/// Refuses a workload that cannot run on a DBMS of this dialect.
///
/// # Errors
///
/// The text names the setting.
pub(super) fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = steps::shape(workload) else { return Ok(()) };
    match dialect {
        Dialect::Sqlite if shape.partitions > 0 => {
            Err("SQLite has no partitions; leave out `partitions`".to_owned())
        }
        Dialect::Sqlite if shape.procedures => {
            Err("SQLite has no stored procedures; leave out `procedures`".to_owned())
        }
        Dialect::Fake => {
            Err("the order mix reads its own rows, and the fake DBMS stores nothing".to_owned())
        }
        _ => Ok(()),
    }
}
