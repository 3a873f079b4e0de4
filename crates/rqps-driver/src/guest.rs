//! Tables on a server that rqps does not run. Each table bears a mark in its comment from its
//! creation on. rqps drops only tables with the mark, whatever their names.

use crate::connection::{Connection, Connector};
use rqps_model::dialect::{Dialect, Marking, SERVER_ONLY};
use rqps_model::escape;
use rqps_model::sql_name::{Identifier, Literal};
use rqps_text::LoadRules;
use rqps_text::behind::{AS_COLUMNS, CALLING, CHECKED, OF_NO_ROW, TRUSTED, from_files};
use rqps_wire::WireError;

const DROP_TABLE: &str = "DROP TABLE IF EXISTS ";
const CREATE_TABLE: &str = "CREATE TABLE ";
const DROP_PROCEDURE: &str = "DROP PROCEDURE IF EXISTS ";
const CREATE_PROCEDURE: &str = "CREATE PROCEDURE ";
const CREATE_FUNCTION: &str = "CREATE OR REPLACE FUNCTION ";
const CREATE_EXTENSION: &str = "CREATE EXTENSION IF NOT EXISTS ";

impl Connector {
    /// Executes a statement that creates or drops a table.
    pub fn make(&self, session: &mut Connection, sql: &str) -> Result<(), WireError> {
        make(session, self.dialect(), self.mark(), sql)
    }

    /// The query for the bytes of marked tables and their indexes in the session's schema or
    /// database; `None` if all tables are rqps's.
    pub fn size_of_marked(&self) -> Option<String> {
        let dialect = self.dialect();
        let marks = dialect.spec().marks.as_ref()?;
        self.mark()
            .map(|mark| marks.size.replace("{mark}", &Literal::quoted(dialect, mark).to_string()))
    }
}

/// Executes a statement of the setup. With a `mark`, it marks created tables and extensions, and
/// drops only tables with the mark.
///
/// # Errors
///
/// The server refuses; a table to be dropped has no mark.
pub fn make(
    session: &mut Connection,
    dialect: Dialect,
    mark: Option<&str>,
    sql: &str,
) -> Result<(), WireError> {
    let Some(mark) = mark else { return session.simple(sql).map(drop) };
    if let Some(table) = sql.strip_prefix(DROP_TABLE) {
        return drop_own(session, dialect, mark, table);
    }
    if let Some(extension) = sql.strip_prefix(CREATE_EXTENSION) {
        let known = format!("SELECT 1 FROM pg_extension WHERE extname = '{extension}'");
        if !session.rows(&known)?.is_empty() {
            return Ok(());
        }
        let sql = format!(
            "CREATE EXTENSION {extension}; COMMENT ON EXTENSION {extension} IS {}",
            Literal::quoted(dialect, mark)
        );
        return session.simple(&sql).map(drop);
    }
    if let Some(procedure) = sql.strip_prefix(DROP_PROCEDURE) {
        return keep_foreign(session, dialect, mark, procedure);
    }
    if sql.starts_with(CREATE_PROCEDURE) || sql.starts_with(CREATE_FUNCTION) {
        return session.simple(&marked_routine(dialect, sql, mark)).map(drop);
    }
    if sql.starts_with(CREATE_TABLE) {
        return session.simple(&marked(dialect, sql, mark)).map(drop);
    }
    session.simple(sql).map(drop)
}

/// Drops a table that bears the mark. A missing table is no error.
fn drop_own(
    session: &mut Connection,
    dialect: Dialect,
    mark: &str,
    table: &str,
) -> Result<(), WireError> {
    let Some(marks) = &dialect.spec().marks else { return Ok(()) };
    let comment = marks.comment.replace("{table}", table);
    let rows = session.rows(&comment)?;
    match rows.first().and_then(|row| row.first()) {
        None => Ok(()),
        Some(Some(comment)) if comment == mark => {
            session.simple(&format!("DROP TABLE {table}")).map(drop)
        }
        Some(_) => Err(WireError::Protocol(format!(
            "another user made the table {table} meanwhile; rqps did not touch it"
        ))),
    }
}

/// Drops a procedure of MySQL that bears the mark, and no other. A missing one is no error.
fn keep_foreign(
    session: &mut Connection,
    dialect: Dialect,
    mark: &str,
    procedure: &str,
) -> Result<(), WireError> {
    let name = Literal::quoted(dialect, procedure);
    let rows = session.rows(&format!(
        "SELECT routine_comment FROM information_schema.routines \
         WHERE routine_schema = DATABASE() AND routine_name = {name}"
    ))?;
    match rows.first().and_then(|row| row.first()) {
        None => Ok(()),
        Some(Some(comment)) if comment == mark => {
            let name = Identifier::quoted(dialect, procedure);
            session.simple(&format!("DROP PROCEDURE {name}")).map(drop)
        }
        Some(_) => Err(WireError::Protocol(format!(
            "another user made the procedure {procedure}; rqps did not touch it"
        ))),
    }
}

/// A new procedure or function with the mark, which takes the place of none.
fn marked_routine(dialect: Dialect, sql: &str, mark: &str) -> String {
    let mark = Literal::quoted(dialect, mark);
    match sql.strip_prefix(CREATE_FUNCTION) {
        // Characteristics stand before the body.
        None => sql.replacen("\nBEGIN", &format!("\nCOMMENT {mark}\nBEGIN"), 1),
        Some(function) => {
            let end = function.find(')').map_or(function.len(), |at| at + 1);
            format!(
                "CREATE FUNCTION {function}; COMMENT ON FUNCTION {} IS {mark}",
                &function[..end]
            )
        }
    }
}

/// A CREATE TABLE with the mark in the same statement or transaction.
fn marked(dialect: Dialect, sql: &str, mark: &str) -> String {
    match dialect.spec().marks.as_ref().map(|marks| marks.marking) {
        Some(Marking::Clause) => {
            let (table, partitions) = sql.split_at(sql.find(" PARTITION BY ").unwrap_or(sql.len()));
            format!("{table} COMMENT = {}{partitions}", Literal::quoted(dialect, mark))
        }
        Some(Marking::Statement) => {
            let name = sql[CREATE_TABLE.len()..].split([' ', '(']).next().unwrap_or_default();
            // Statements of one message are one transaction.
            format!("{sql}; COMMENT ON TABLE {name} IS {}", Literal::quoted(dialect, mark))
        }
        None => sql.to_owned(),
    }
}

// Functions, operators and types that a load calls: if somebody made one of that name on a server
// that rqps does not run, the server may take it for its own, and it may do anything.

/// The schemas in which the session looks for functions. No operator and no function that somebody
/// could have made.
const PATH: &str = "SELECT pg_catalog.unnest(pg_catalog.current_schemas(false))";

/// Functions and operators of these schemas, but those that extensions brought. Whatever it says of
/// itself, each may write: an immutable function may call one that does.
fn functions(schemas: &Literal) -> [String; 2] {
    let from_files = from_files();
    [
        format!(
            "SELECT p.proname, p.oid::regprocedure::text FROM pg_proc p \
             JOIN pg_namespace n ON n.oid = p.pronamespace \
             WHERE NOT {from_files} AND n.nspname IN ({schemas})"
        ),
        format!(
            "SELECT o.oprname, o.oid::regoperator::text FROM pg_operator o \
             JOIN pg_namespace n ON n.oid = o.oprnamespace JOIN pg_proc p ON p.oid = o.oprcode \
             WHERE NOT {from_files} AND n.nspname IN ({schemas})"
        ),
    ]
}

/// Functions that are called where a column could stand, that say of themselves that they do more than
/// give a value, or that somebody made; among these names, and of those that take no row among the
/// names after values.
fn acting(names: &Literal, values: &Literal) -> String {
    let from_files = from_files();
    format!(
        "SELECT p.proname, p.oid::regprocedure::text FROM pg_proc p WHERE {AS_COLUMNS} \
         AND (p.provolatile = 'v' OR p.pronamespace <> 'pg_catalog'::regnamespace \
         AND NOT {from_files}) AND p.proname IN ({names}) \
         AND NOT ({OF_NO_ROW} AND p.proname NOT IN ({values}))"
    )
}

/// Types of these schemas that call what somebody made.
fn types(schemas: &Literal) -> String {
    let from_files = from_files();
    format!(
        "WITH RECURSIVE made AS (SELECT p.oid, p.proname AS shown FROM pg_proc p \
         JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname <> 'pg_catalog' \
         AND NOT {from_files}), {CALLING} {CHECKED} \
         SELECT t.typname, t.oid::regtype::text FROM pg_type t \
         JOIN pg_namespace n ON n.oid = t.typnamespace WHERE n.nspname IN ({schemas}) \
         AND (t.oid IN (SELECT oid FROM calling) OR t.oid IN (SELECT oid FROM checked))"
    )
}

/// Schemas of these in which users may make objects, beside this one and superusers, who could do
/// more anyway, and those in which they have made some: whatever a load writes, the server may call
/// them. Also who.
fn of_others(schemas: &Literal) -> [String; 2] {
    let makers = format!(
        "SELECT n.nspname, CASE maker WHEN 0 THEN 'everybody' ELSE pg_get_userbyid(maker) END \
         || ' may make objects' FROM pg_namespace n JOIN LATERAL (SELECT a.grantee AS maker \
         FROM aclexplode(n.nspacl) a WHERE a.privilege_type = 'CREATE' \
         AND a.grantee <> n.nspowner UNION SELECT \
         CASE pg_get_userbyid(n.nspowner) WHEN 'pg_database_owner' THEN d.datdba \
         ELSE n.nspowner END FROM pg_database d WHERE d.datname = current_database()) m ON true \
         WHERE n.nspname IN ({schemas}) AND maker NOT IN {TRUSTED}"
    );
    let from_files = from_files();
    let objects = format!(
        "SELECT n.nspname, pg_get_userbyid(o.owner) || ' has made objects' FROM \
         (SELECT p.oid, pronamespace AS place, proowner AS owner FROM pg_proc p \
         WHERE NOT {from_files} UNION ALL SELECT o.oid, oprnamespace, oprowner FROM pg_operator o \
         JOIN pg_proc p ON p.oid = o.oprcode WHERE NOT {from_files} \
         UNION ALL SELECT oid, typnamespace, typowner FROM pg_type WHERE typtype IN ('d', 'm', 'r') \
         OR typrelid IN (SELECT oid FROM pg_class WHERE relkind = 'c')) o \
         JOIN pg_namespace n ON n.oid = o.place WHERE n.nspname IN ({schemas}) \
         AND o.owner NOT IN {TRUSTED} LIMIT 1"
    );
    [makers, objects]
}

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
    let [made, types, acting] = match dialect {
        Dialect::Mysql if rules.called().chain(rules.types()).next().is_none() => return Ok(()),
        Dialect::Mysql => [pairs(session, OF_MYSQL)?, Vec::new(), Vec::new()],
        _ => made_on_postgres(rules, session)?,
    };
    // The server may read a part of some signs as an operator.
    let is_called = |name: &str| {
        if name.starts_with(is_of_name) {
            rules.called().any(|called| called == name)
        } else {
            rules.called().any(|called| called.contains(name))
        }
    };
    let is_type = |name: &str| rules.types().any(|known| known == name);
    let called = made.iter().find(|(name, _)| is_called(name));
    let called = called.or_else(|| types.iter().find(|(name, _)| is_type(name)));
    match called.or(acting.first()) {
        None => Ok(()),
        Some((_, shown)) => Err(format!(
            "failed to load: its files use {}, which may do anything there\n\
             hint: rename it there, or leave the statement out of the files",
            escape::line(shown)
        )),
    }
}

fn is_of_name(first: char) -> bool {
    first.is_alphanumeric() || first == '_'
}

fn pairs(session: &mut Connection, sql: &str) -> Result<Made, String> {
    let rows = session.rows(sql);
    let rows = rows.map_err(|error| format!("failed to look for functions: {error}"))?;
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        Some((cells.next()?, cells.next()?))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// What somebody made by names, and how it is shown.
type Made = Vec<(String, String)>;

/// Functions and operators, types that call some, and what attributes of values call.
fn made_on_postgres(rules: &LoadRules, session: &mut Connection) -> Result<[Made; 3], String> {
    // Servers that are only compatible may have no such catalogue, and no such functions.
    let Ok(path) = session.rows(PATH) else { return Ok(Default::default()) };
    let path = path.into_iter().flatten().flatten();
    let path: Vec<Literal> =
        path.map(|schema| Literal::quoted(Dialect::Postgres, &schema)).collect();
    if path.is_empty() {
        return Ok(Default::default());
    }
    let set = |error| format!("failed to set up a session for loading: {error}");
    session.simple(SERVER_ONLY).map_err(set)?;
    let list = Literal::list(&path);
    for query in of_others(&list) {
        // A list of names would never be whole: LIKE, IN and attributes call some, too.
        let found = pairs(session, &query);
        if let Some((schema, who)) = found?.into_iter().next() {
            let (schema, who) = (escape::line(&schema), escape::line(&who));
            return Err(format!(
                "failed to load: {who} in the schema {schema}, which the load could call as you\n\
                 hint: REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC and from others, or name a \
                 schema of your own: options=-csearch_path%3DSCHEMA in the DSN"
            ));
        }
    }
    let [functions, operators] = functions(&list);
    let mut made = pairs(session, &functions)?;
    made.extend(pairs(session, &operators)?);
    let types = pairs(session, &types(&list))?;
    let quoted = |names: &mut dyn Iterator<Item = &str>| {
        let names = names.chain([""]).map(|name| Literal::quoted(Dialect::Postgres, name));
        Literal::list(&names.collect::<Vec<_>>())
    };
    let acting =
        acting(&quoted(&mut rules.attributes()), &quoted(&mut rules.attributes_of_values()));
    let acting = pairs(session, &acting)?;
    session.simple("RESET search_path").map_err(set)?;
    Ok([made, types, acting])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_routine_is_marked_and_takes_the_place_of_none() {
        let procedure = "CREATE PROCEDURE p (a INT)\nBEGIN\n  BEGIN END;\nEND";
        let wanted = "CREATE PROCEDURE p (a INT)\nCOMMENT 'm'\nBEGIN\n  BEGIN END;\nEND";
        assert_eq!(marked_routine(Dialect::Mysql, procedure, "m"), wanted);
        let function = "CREATE OR REPLACE FUNCTION f (a INT[])\nRETURNS int AS $$ $$";
        let wanted = "CREATE FUNCTION f (a INT[])\nRETURNS int AS $$ $$; \
                      COMMENT ON FUNCTION f (a INT[]) IS 'm'";
        assert_eq!(marked_routine(Dialect::Postgres, function, "m"), wanted);
    }

    #[test]
    fn a_table_is_marked_by_the_statement_that_makes_it() {
        let check = |dialect, sql: &str, want: &str| assert_eq!(marked(dialect, sql, "m"), want);
        check(
            Dialect::Mysql,
            "CREATE TABLE t1 (id INT) ENGINE = InnoDB",
            "CREATE TABLE t1 (id INT) ENGINE = InnoDB COMMENT = 'm'",
        );
        check(
            Dialect::Mysql,
            "CREATE TABLE t1 (id INT) ENGINE=x PARTITION BY RANGE (id) (p0)",
            "CREATE TABLE t1 (id INT) ENGINE=x COMMENT = 'm' PARTITION BY RANGE (id) (p0)",
        );
        check(
            Dialect::Postgres,
            "CREATE TABLE t1 (id int)",
            "CREATE TABLE t1 (id int); COMMENT ON TABLE t1 IS 'm'",
        );
        check(
            Dialect::Postgres,
            "CREATE TABLE t1_p0 PARTITION OF t1 FOR VALUES FROM (1) TO (2)",
            "CREATE TABLE t1_p0 PARTITION OF t1 FOR VALUES FROM (1) TO (2); \
             COMMENT ON TABLE t1_p0 IS 'm'",
        );
    }
}
