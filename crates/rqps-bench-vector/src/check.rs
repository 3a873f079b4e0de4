//! Refuses vector workloads that cannot be measured.

use super::steps::{self, shape_of};
use rqps_model::benchmark::Workload;
use rqps_model::build::Dbms;
use rqps_model::dialect::Dialect;
use rqps_model::target::Target;
use rqps_model::vector::{Case, DataSource};

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
