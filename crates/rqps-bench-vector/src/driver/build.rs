//! Builds an index on a loaded table with enough memory, and measures its size.

use std::io::Write;
use std::sync::atomic::Ordering;

use super::sql::Sql;
use super::untimed::untimed;
use crate::driver::context::{VectorContext, numbers, run};
use crate::driver::load;
use rqps_driver::Stop;
use rqps_driver::connection::Connection;
use rqps_model::dialect::Dialect;
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;
use rqps_model::vector::{Index, Variant};

const MIB: f64 = (1 << 20) as f64;
/// Smallest memory of a build, bytes.
const FLOOR_BYTES: u64 = 64 << 20;
/// Room of a cache as a multiple of the index. With less, the step would measure how the index is
/// read repeatedly.
pub(super) const ROOM: f64 = 1.5;

/// Builds `index`. Drops an existing one first, outside the measurement.
pub(super) fn build<W: Write>(
    context: &mut VectorContext<'_, W>,
    index: &Index,
) -> Result<Outcome, Stop> {
    let sql = context.sql();
    let rows = context.data.train.rows() as u64;
    let memory = memory_bytes(&sql, index, rows);
    let mut session = context.connector.open(0)?;
    run(&mut session, &sql.drop_index())?;
    load::settle(&sql, &mut session)?;
    allow(&sql, &mut session, memory);
    let connector = context.connector.also(settings(&sql, index, memory, context.request.seed));
    let statement = sql.create_index(index);
    let (notices, mut outcome) =
        untimed(context, &connector, "the build", move |session, _, done| {
            session.take_warnings();
            let built = session.simple(&statement);
            built.map_err(|error| format!("failed to build the index ({statement}): {error}"))?;
            done.store(rows, Ordering::Relaxed);
            Ok(session.take_warnings())
        })?;
    put_sizes(&sql, &mut session, &mut outcome)?;
    outcome.extra.insert(Metric::IndexSeconds, outcome.seconds);
    outcome.facts.insert("memory for the build".to_owned(), format!("{} MiB", memory >> 20));
    outcome.facts.insert("workers beside the leader".to_owned(), index.workers.to_string());
    if let Some(setting) = give_room(&sql, &mut session)? {
        outcome.facts.insert("mhnsw_max_cache_size".to_owned(), setting);
    }
    for notice in notices {
        // "hnsw graph no longer fits into maintenance_work_mem": the build continued more slowly.
        outcome.notes.push(format!("server notice during the index build: {notice}"));
    }
    load::settle(&sql, &mut session)?;
    Ok(outcome)
}

/// Measures the sizes of table and index.
pub(super) fn put_sizes(
    sql: &Sql,
    session: &mut Connection,
    outcome: &mut Outcome,
) -> Result<(), String> {
    let sizes = numbers(session, &sql.sizes())?;
    for (metric, bytes) in [Metric::TableSize, Metric::IndexSize].into_iter().zip(sizes) {
        if let Some(bytes) = bytes {
            outcome.extra.insert(metric, bytes / MIB);
        }
    }
    Ok(())
}

/// Lets MariaDB's cache of the graph grow to `memory` bytes. On a server that rqps does not run,
/// the current size may suffice; [`give_room`] checks.
pub(super) fn allow(sql: &Sql, session: &mut Connection, memory: u64) {
    if sql.dialect == Dialect::Mysql && sql.mark.is_none() {
        let _ = session.simple(&format!("SET GLOBAL mhnsw_max_cache_size = {memory}"));
    }
}

/// Memory for a build, bytes, estimated generously: each vector in the index's form, its links, and
/// half as much in addition.
pub(super) fn memory_bytes(sql: &Sql, index: &Index, rows: u64) -> u64 {
    let dims = sql.dims as u64;
    let vector = match (sql.dialect, sql.work.variant) {
        (Dialect::Mysql, _)
        | (_, Variant::Halfvec | Variant::HalfvecRerank | Variant::HalfvecColumn) => 2 * dims,
        (_, Variant::Vector) => 4 * dims,
        (_, Variant::Bit) => dims / 8,
    };
    // pgvector: candidates of 16 bytes, about one layer of 2 m and a few of m.
    let links = 64 * u64::from(index.m);
    (rows * (vector + links + 200) * 3 / 2).max(FLOOR_BYTES)
}

/// Settings of the session that builds the index.
fn settings(sql: &Sql, index: &Index, memory: u64, seed: u64) -> Vec<String> {
    match sql.dialect {
        Dialect::Mysql => vec![
            // The session's own generator draws the layer of a node.
            format!("SET rand_seed1 = {}, rand_seed2 = {}", seed & 0x3fff_ffff, seed >> 34),
        ],
        _ => vec![
            format!("SET maintenance_work_mem = '{}MB'", (memory >> 20) + 1),
            format!("SET max_parallel_maintenance_workers = {}", index.workers),
        ],
    }
}

/// Makes sure that MariaDB's cache holds the graph; otherwise each statement would drop the graph
/// and the next read it again. Returns the setting; `None` if there is no such cache.
pub(super) fn give_room(sql: &Sql, session: &mut Connection) -> Result<Option<String>, String> {
    if sql.dialect != Dialect::Mysql {
        return Ok(None);
    }
    let cache = || "SELECT @@GLOBAL.mhnsw_max_cache_size";
    let size = numbers(session, &sql.sizes())?.get(1).copied().flatten();
    let Some(size) = size else { return Ok(None) };
    let have = numbers(session, cache())?.first().copied().flatten().unwrap_or(0.0);
    if have < ROOM * size {
        let wanted = (2.0 * size) as u64;
        if sql.mark.is_none() {
            run(session, &format!("SET GLOBAL mhnsw_max_cache_size = {wanted}"))?;
        }
    }
    let now = numbers(session, cache())?.first().copied().flatten().unwrap_or(0.0);
    if now < ROOM * size {
        return Err(format!(
            "failed to measure: mhnsw_max_cache_size is {:.0} MiB but the index has {:.0} MiB, so \
             every query would read the graph again; set it to at least {ROOM} times the index \
             size",
            now / MIB,
            size / MIB
        ));
    }
    Ok(Some(format!("{:.0} MiB for an index of {:.0} MiB", now / MIB, size / MIB)))
}
