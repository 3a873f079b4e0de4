//! Tables on a server that rqps does not run. Each table bears a mark in its comment from its
//! creation on. rqps drops only tables with the mark, whatever their names.

use crate::connection::{Connection, Connector};
use rqps_model::dialect::{Dialect, Marking};
use rqps_model::sql_name::{Identifier, Literal};
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
