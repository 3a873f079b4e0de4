//! Refuses Insert Benchmark workloads that cannot be measured, before anything starts.

use crate::shape;
use rqps_model::benchmark::{Pace, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::insert::InsertShape;

/// Refuses a workload that cannot be measured on a target of `dialect`.
///
/// # Errors
///
/// Names the settings and a way out.
pub fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = shape(workload) else { return Ok(()) };
    let faults = [
        tables(workload, shape),
        commits(workload, shape),
        steps(shape),
        pacing(workload, shape),
        memory(workload, shape),
        of_dialect(workload, shape, dialect),
    ];
    match faults.into_iter().flatten().next() {
        Some(fault) => Err(format!("run the Insert Benchmark: {fault}")),
        None => Ok(()),
    }
}

fn tables(workload: &Workload, shape: &InsertShape) -> Option<String> {
    let (tables, clients) = (workload.tables, workload.clients);
    if shape.shared && shape.deletes {
        return Some(
            "deletes need a table for each client: with shared=yes several clients would delete \
             the same rows; use deletes=no or shared=no"
                .to_owned(),
        );
    }
    if shape.shared && tables != 1 {
        return Some(format!(
            "a shared table is one table, not {tables}; leave tables out or use shared=no"
        ));
    }
    if !shape.shared && clients > tables {
        return Some(format!(
            "{clients} clients need a table each, not {tables} tables; use tables={clients}, or \
             shared=yes deletes=no for one table"
        ));
    }
    if !shape.shared && clients < tables {
        return Some(format!(
            "{tables} tables for {clients} clients: a table without a client stays empty; leave \
             tables out"
        ));
    }
    None
}

fn commits(workload: &Workload, shape: &InsertShape) -> Option<String> {
    let commit = &shape.rows_per_commit;
    let mut steps = vec![
        ("i0_commit", commit.i0, "rows", workload.rows),
        ("i1_commit", commit.i1, "i1_rows", shape.i1_rows),
    ];
    if !shape.profile.is_2021() {
        steps.push(("i2_commit", commit.i2, "i2_rows", shape.i2_rows));
    }
    steps.into_iter().find(|(_, commit, _, rows)| u64::from(*commit) > *rows).map(
        |(key, commit, rows_key, rows)| {
            format!(
                "{key}={commit} is more than all rows of that step ({rows_key}={rows}); use at \
                 most {rows}"
            )
        },
    )
}

fn steps(shape: &InsertShape) -> Option<String> {
    if shape.query_seconds.is_nan() || shape.query_seconds <= 0.0 {
        return Some("query_seconds must be above 0".to_owned());
    }
    let point =
        |step: &&rqps_model::insert::QueryStep| step.kind == rqps_model::insert::QueryKind::Point;
    match shape.query_steps.iter().find(point) {
        Some(step) if shape.profile.is_2021() => {
            Some(format!("{step}: the 2021 profiles have no point queries; use profile=2026"))
        }
        _ => None,
    }
}

fn pacing(workload: &Workload, shape: &InsertShape) -> Option<String> {
    if let Pace::Open { events_per_second } = workload.pace {
        return Some(format!(
            "its steps set their own rates, so --rate {events_per_second} has no place; use --set \
             query_steps={events_per_second:.0}:range"
        ));
    }
    let commit = shape.rows_per_commit.query;
    let short = shape
        .query_steps
        .iter()
        .find(|step| shape.query_seconds * f64::from(step.rows_per_second) < 1.0);
    short.map(|step| {
        format!(
            "{step}: the rate is below one row in {} s ({commit} rows per \
                 commit)",
            shape.query_seconds
        )
    })
}

fn memory(workload: &Workload, shape: &InsertShape) -> Option<String> {
    let (limit, cache) = (shape.memory_limit?, workload.cache_bytes?);
    (cache >= limit).then(|| {
        format!(
            "a cache of {} MiB does not fit into memory_limit ({} MiB), which covers the whole \
             server and the page cache of its files; use a smaller cache, or leave it out for at \
             most 60 % of the limit",
            cache >> 20,
            limit >> 20
        )
    })
}

fn of_dialect(workload: &Workload, shape: &InsertShape, dialect: Dialect) -> Option<String> {
    match dialect {
        Dialect::Sqlite | Dialect::Fake if shape.memory_limit.is_some() => Some(
            "SQLite runs inside the client, so its memory alone cannot be limited; leave \
             memory_limit out, or use --set cache=SIZE"
                .to_owned(),
        ),
        Dialect::Sqlite | Dialect::Fake if shape.partitions > 1 => {
            Some("SQLite has no partitions; use partitions=1".to_owned())
        }
        _ if u64::from(shape.partitions) > workload.rows => {
            Some(format!("{} partitions for {} rows", shape.partitions, workload.rows))
        }
        _ => None,
    }
}
