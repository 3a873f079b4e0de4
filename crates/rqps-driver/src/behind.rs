//! What stands behind the names of queries on a server that rqps does not run. READ ONLY keeps a
//! view or a function from changing tables, and from nothing else: it may end sessions, wait for
//! locks, send notifications. So a step that nobody was asked about reads only what does no more than
//! its own words could.

use std::collections::BTreeSet;

use crate::connection::Connection;
use crate::guest::{AS_COLUMNS, CALLING, TRUSTED};
use rqps_model::benchmark::StepBody;
use rqps_model::dialect::Dialect;
use rqps_model::escape;
use rqps_model::sql_name::Literal;
use rqps_text::reading;
use rqps_wire::WireError;

/// Views upon views.
const DEPTH_MOST: usize = 32;

/// Objects of extensions come from their files.
const OF_NO_EXTENSION: &str =
    "NOT EXISTS (SELECT 1 FROM pg_depend e WHERE e.objid = p.oid AND e.deptype = 'e')";

/// What is older came with the server.
const FIRST_MADE: u32 = 16_384;

/// Statistics of several columns, since this version of Postgres.
const WITH_STATISTICS: u32 = 100_000;

/// Why a step may do more than its words. It reads as a clause.
#[derive(Debug, thiserror::Error)]
pub(super) enum HiddenAct {
    /// The server refuses to tell.
    #[error("it does not tell what stands behind names: {0}")]
    Untold(#[from] WireError),
    /// Something acts when a name is read.
    #[error("it would use {}", escape::line(.0))]
    Used(String),
    /// There are more than [`DEPTH_MOST`].
    #[error("its views lead to others, more than {DEPTH_MOST} one behind the other")]
    TooDeep,
}

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
) -> Result<(), HiddenAct> {
    match dialect {
        Dialect::Postgres => {
            let path = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))";
            let path = session.rows(path)?.into_iter().flatten().flatten();
            // There may be none.
            let path = std::iter::once(String::new()).chain(path);
            let path: Vec<Literal> = path.map(|schema| Literal::quoted(dialect, &schema)).collect();
            let path = Literal::list(&path);
            let version = session.rows("SHOW server_version_num")?.into_iter().flatten().flatten();
            let version = version.filter_map(|number| number.parse().ok()).next().unwrap_or(0);
            session.simple("BEGIN READ ONLY")?;
            session.simple("SET LOCAL search_path TO pg_catalog, pg_temp")?;
            look(session, dialect, texts, &|words| on_postgres(words, &path, version))?;
            session.simple("COMMIT")?;
            Ok(())
        }
        Dialect::Mysql => look(session, dialect, texts, &on_mysql),
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => Ok(()),
    }
}

/// Looks at what the names mean, and at what the names in that mean. `query` returns rows of a name, a
/// definition if words tell all, and how it is shown.
fn look(
    session: &mut Connection,
    dialect: Dialect,
    texts: &str,
    query: &dyn Fn(&Literal) -> String,
) -> Result<(), HiddenAct> {
    let (mut texts, mut known) = (texts.to_owned(), BTreeSet::new());
    for _ in 0..DEPTH_MOST {
        let words = words(&texts).into_iter().map(|word| Literal::quoted(dialect, &word));
        let words = Literal::list(&words.collect::<Vec<_>>());
        let (lower, mut more) = (texts.to_lowercase(), String::new());
        for row in session.rows(&query(&words))? {
            let mut cells = row.into_iter();
            let mut next = || cells.next().flatten();
            let (name, definition, shown) = (next(), next(), next().unwrap_or_default());
            let name = name.unwrap_or_default().to_lowercase();
            if !lower.contains(&name) || known.contains(&shown) {
                continue;
            }
            match definition.filter(|sql| !sql.is_empty()) {
                Some(sql) if !reading::may_write(&sql) => more.push_str(&format!("{sql}\n")),
                _ => return Err(HiddenAct::Used(shown)),
            }
            known.insert(shown);
        }
        if more.is_empty() {
            return Ok(());
        }
        texts = more;
    }
    Err(HiddenAct::TooDeep)
}

/// What may be names in a text. Servers fold the case of some.
fn words(text: &str) -> BTreeSet<String> {
    let is_of_name = |letter: char| letter.is_ascii_alphanumeric() || "_$".contains(letter);
    let words = text.split(|letter| !is_of_name(letter)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// Views, whose definitions are queries; policies; foreign tables; what others have made that a query
/// calls without naming it, or as if it were a column: functions behind indexes and constraints,
/// which planning executes, operators, casts, types whose values call one. Names with other signs than
/// [`words`] has come, too.
fn on_postgres(words: &Literal, path: &Literal, version: u32) -> String {
    let statistics = match version {
        WITH_STATISTICS.. => {
            "UNION SELECT s.stxrelid, 'statistics that call ' || m.shown FROM made m \
             JOIN pg_depend d ON d.refobjid = m.oid AND d.refclassid = 'pg_proc'::regclass \
             JOIN pg_statistic_ext s ON s.oid = d.objid"
        }
        _ => "",
    };
    format!(
        "WITH RECURSIVE made AS (SELECT p.oid, p.proname, p.oid::regprocedure::text AS shown \
         FROM pg_proc p WHERE p.proowner NOT IN {TRUSTED} AND {OF_NO_EXTENSION}), \
         acting AS (SELECT i.indrelid AS oid, 'an index that calls ' || m.shown AS what \
         FROM made m JOIN pg_depend d ON d.refobjid = m.oid \
         AND d.refclassid = 'pg_proc'::regclass JOIN pg_index i ON i.indexrelid = d.objid \
         UNION SELECT k.conrelid, 'a constraint that calls ' || m.shown FROM made m \
         JOIN pg_depend d ON d.refobjid = m.oid AND d.refclassid = 'pg_proc'::regclass \
         JOIN pg_constraint k ON k.oid = d.objid \
         {statistics} UNION SELECT oid, 'rows of another server' FROM pg_class WHERE relkind = 'f' \
         UNION SELECT h.inhparent, a.what FROM acting a JOIN pg_inherits h ON h.inhrelid = a.oid), \
         {CALLING} SELECT * FROM (SELECT c.relname::text AS name, pg_get_viewdef(c.oid) AS sql, \
         'the view ' || c.oid::regclass::text AS shown FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v' \
         AND n.nspname NOT IN ('pg_catalog', 'information_schema') \
         UNION ALL SELECT c.relname, 'SELECT 1 WHERE ' || \
         coalesce(pg_get_expr(p.polqual, p.polrelid), 'true'), 'the policy ' || p.polname || \
         ' of ' || c.oid::regclass::text FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid \
         WHERE c.relrowsecurity \
         UNION ALL SELECT c.relname, NULL, c.oid::regclass::text || ', which has ' || a.what \
         FROM acting a JOIN pg_class c ON c.oid = a.oid \
         UNION ALL SELECT t.typname, NULL, 'the type ' || t.oid::regtype::text FROM pg_type t \
         JOIN calling y ON y.oid = t.oid \
         UNION ALL SELECT proname, NULL, 'the function ' || shown FROM made \
         UNION ALL SELECT p.proname, NULL, 'the function ' || p.oid::regprocedure::text \
         FROM pg_proc p WHERE {AS_COLUMNS} AND p.provolatile = 'v' \
         AND NOT (p.oid >= {FIRST_MADE} AND {OF_NO_EXTENSION})) o \
         WHERE lower(name) IN ({words}) OR name !~ '^[0-9A-Za-z_$]+$' \
         UNION ALL SELECT p.oprname, NULL, 'the operator ' || p.oid::regoperator::text \
         FROM pg_operator p JOIN pg_namespace n ON n.oid = p.oprnamespace \
         WHERE n.nspname IN ({path}) AND p.oprowner NOT IN {TRUSTED} AND {OF_NO_EXTENSION} \
         UNION ALL SELECT '', NULL, 'the cast by ' || m.shown FROM pg_cast k \
         JOIN made m ON m.oid = k.castfunc WHERE k.castcontext = 'i'"
    )
}

/// Views. One that does not show its definition to the login has none here.
fn on_mysql(words: &Literal) -> String {
    format!(
        "SELECT table_name, view_definition, CONCAT('the view ', table_schema, '.', table_name) \
         FROM information_schema.views WHERE table_schema <> 'sys' \
         AND (LOWER(table_name) IN ({words}) OR NOT table_name REGEXP '^[0-9A-Za-z_$]+$')"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::script::{Distribution, Operation, Script};

    #[test]
    fn all_names_of_a_step_are_found() {
        let statement = |sql: &str| Operation { sql: sql.to_owned(), ..Operation::PLAIN };
        let statements = vec![statement("SELECT \"Busy\".a FROM t$1, é")];
        let mut script = Script::of(false, statements, Distribution::Uniform);
        script.init.push("SET v2 = 1".to_owned());
        let step = StepBody::Script(script);
        let found = words(&texts_of(&step));
        for name in ["busy", "t$1", "v2"] {
            assert!(found.contains(name), "{name}: {found:?}");
        }
    }
}
