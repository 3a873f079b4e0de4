//! Functions and operators that a load calls: if somebody made one of that name on a server that
//! rqps does not run, the server may take it for its own, and it may do anything.

use crate::connection::Connection;
use rqps_model::dialect::{Dialect, SERVER_ONLY};
use rqps_model::escape;
use rqps_model::sql_name::Literal;
use rqps_text::LoadRules;

/// The schemas in which the session looks for functions. No operator and no function that somebody
/// could have made.
const PATH: &str = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))";

/// Functions and operators of the schemas that follow in parentheses, if they may write. Those of
/// extensions come from their files.
const MAY_WRITE: &str = "SELECT p.proname, p.oid::regprocedure::text FROM pg_proc p \
     JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.provolatile = 'v' AND NOT EXISTS \
     (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e') AND n.nspname IN ";
const OPERATORS: &str = "SELECT o.oprname, o.oid::regoperator::text FROM pg_operator o \
     JOIN pg_namespace n ON n.oid = o.oprnamespace JOIN pg_proc p ON p.oid = o.oprcode \
     WHERE p.provolatile = 'v' AND NOT EXISTS \
     (SELECT 1 FROM pg_depend d WHERE d.objid = o.oid AND d.deptype = 'e') AND n.nspname IN ";

/// All stored functions: MySQL does not see to it that they keep their word.
const OF_MYSQL: &str = "SELECT LOWER(routine_name), routine_name \
     FROM information_schema.routines WHERE routine_schema = DATABASE() \
     AND routine_type = 'FUNCTION'";

/// Refuses a load that calls a function which somebody made on the server under the name of one
/// that loads may call.
///
/// # Errors
/// There is one, or the server refuses. The error is a complete message.
pub(super) fn check(
    rules: &LoadRules,
    dialect: Dialect,
    session: &mut Connection,
) -> Result<(), String> {
    if rules.called().next().is_none() {
        return Ok(());
    }
    let made = match dialect {
        Dialect::Mysql => pairs(session, OF_MYSQL)?,
        _ => made_on_postgres(session)?,
    };
    // The server may read a part of some signs as an operator.
    let is_called = |name: &str| match name.starts_with(is_of_name) {
        true => rules.called().any(|called| called == name),
        false => rules.called().any(|called| called.contains(name)),
    };
    match made.iter().find(|(name, _)| is_called(name)) {
        None => Ok(()),
        Some((_, shown)) => Err(format!(
            "failed to load: its files call {}, which somebody made there, and which may do \
             anything\nhint: rename it there, or leave the statement out of the files",
            escape::line(shown)
        )),
    }
}

fn is_of_name(first: char) -> bool {
    first.is_alphanumeric() || first == '_'
}

/// Names, and how they are shown.
fn pairs(session: &mut Connection, sql: &str) -> Result<Vec<(String, String)>, String> {
    let rows = session.rows(sql);
    let rows = rows.map_err(|error| format!("failed to look for functions: {error}"))?;
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        Some((cells.next()?, cells.next()?))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

fn made_on_postgres(session: &mut Connection) -> Result<Vec<(String, String)>, String> {
    // Servers that are only compatible may have no such catalogue, and no such functions.
    let Ok(path) = session.rows(PATH) else { return Ok(Vec::new()) };
    let path = path.into_iter().flatten().flatten();
    let path: Vec<Literal> =
        path.map(|schema| Literal::quoted(Dialect::Postgres, &schema)).collect();
    if path.is_empty() {
        return Ok(Vec::new());
    }
    let set = |error| format!("failed to set up a session for loading: {error}");
    session.simple(SERVER_ONLY).map_err(set)?;
    let mut made = Vec::new();
    for query in [MAY_WRITE, OPERATORS] {
        made.extend(pairs(session, &format!("{query}({})", Literal::list(&path)))?);
    }
    session.simple("RESET search_path").map_err(set)?;
    Ok(made)
}
