//! Deletes rows, and cleans the table afterwards.

use std::io::Write;
use std::sync::atomic::Ordering;

use super::search::count;
use super::sql::TABLE;
use super::untimed::untimed;
use crate::data::parts;
use crate::driver::context::VectorContext;
use rqps_driver::Stop;
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;
use rqps_model::vector::Present;

/// Deletes until `percent` of all rows are gone: always the same rows, and each share includes the
/// smaller ones.
pub(super) fn delete<W: Write>(
    context: &mut VectorContext<'_, W>,
    percent: f64,
) -> Result<Outcome, Stop> {
    let connector = context.connector.clone();
    let (_, outcome) =
        untimed(context, &connector, "the deletion", move |session, table, done| {
            let data = &table.data;
            let statement = format!("DELETE FROM {TABLE} WHERE fate < {}", parts(percent));
            let reply = session.simple(&statement);
            let reply = reply.map_err(|error| format!("failed to run {statement}: {error}"))?;
            done.store(reply.affected, Ordering::Relaxed);
            let present = Present::Kept { deleted: percent };
            let rows = 0..data.train.rows() as u32;
            let expected = rows.filter(|id| data.is_present(*id, present)).count() as u64;
            match count(session)? {
                left if left == expected => Ok(()),
                left => Err(format!(
                    "failed to delete {percent} % of the rows: {left} rows remain instead of \
                     {expected}"
                )),
            }
        })?;
    Ok(outcome)
}

/// Runs VACUUM or OPTIMIZE.
pub(super) fn clean<W: Write>(context: &mut VectorContext<'_, W>) -> Result<Outcome, Stop> {
    let (statement, connector) = (context.sql().clean(), context.connector.clone());
    let (_, mut outcome) =
        untimed(context, &connector, "the cleaning", move |session, _, done| {
            let cleaned = session.rows(&statement);
            cleaned.map_err(|error| format!("failed to run {statement}: {error}"))?;
            done.store(1, Ordering::Relaxed);
            Ok(())
        })?;
    outcome.extra.insert(Metric::CleanSeconds, outcome.seconds);
    Ok(outcome)
}
