//! What stands behind the names of queries on a server that rqps does not run. READ ONLY keeps a
//! view or a function from changing tables, and from nothing else: it may end sessions, wait for
//! locks, send notifications. So a step that nobody was asked about reads only what does no more than
//! its own words could.

use crate::connection::Connection;
use rqps_model::benchmark::StepBody;
use rqps_model::dialect::Dialect;
use rqps_text::behind::{self, Doing, HiddenAct};
use rqps_wire::WireError;

/// The texts in which a step of the user's own can hold names, one after the other. No value becomes
/// a part of one: such a step is asked about.
pub(super) fn texts_of(step: &StepBody) -> String {
    let texts: Vec<&str> = match step {
        StepBody::Script(script) => {
            let events = script.events.iter().flat_map(|event| &event.begin);
            let operations = script.operations().map(|operation| &operation.sql);
            script.init.iter().chain(events).chain(operations).map(String::as_str).collect()
        }
        StepBody::Pgbench(work) => {
            let scripts = work.scripts.iter().map(|script| &script.text);
            scripts.chain(work.define.values()).map(String::as_str).collect()
        }
        _ => Vec::new(),
    };
    texts.join("\n")
}

/// Refuses what acts when one of the names in these texts is read.
///
/// # Errors
/// There is such an object, or the server does not tell.
pub(super) fn check(
    session: &mut Connection,
    dialect: Dialect,
    texts: &str,
) -> Result<(), HiddenAct<WireError>> {
    if dialect != Dialect::Postgres {
        let mut ask = |sql: &str| session.rows(sql);
        return behind::check(dialect, Doing::Reading, &[], texts, &mut ask);
    }
    let path = session.rows("SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))")?;
    let path: Vec<String> = path.into_iter().flatten().flatten().collect();
    session.simple("BEGIN READ ONLY")?;
    session.simple("SET LOCAL search_path TO pg_catalog, pg_temp")?;
    behind::check(dialect, Doing::Reading, &path, texts, &mut |sql| session.rows(sql))?;
    session.simple("COMMIT")?;
    Ok(())
}
