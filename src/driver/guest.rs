//! Tables on a server that rqps does not run. Each table bears a mark in its comment from its
//! creation on. rqps drops only tables with the mark, whatever their names.

use crate::domain::dialect::{Dialect, Marking};
use crate::domain::sql_name::Literal;
use crate::driver::connection::{Connection, Connector};
use crate::wire::WireError;

const DROP_TABLE: &str = "DROP TABLE IF EXISTS ";
const CREATE_TABLE: &str = "CREATE TABLE ";
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
