//! Dialects: protocol and SQL of a DBMS, with one row of facts for each.

use serde::{Deserialize, Serialize};

/// Sessions of Postgres see the server's own functions and operators, and no others.
pub const SERVER_ONLY: &str = "SET search_path TO pg_catalog, pg_temp";

/// The SQL and the protocol that a DBMS speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dialect {
    /// Postgres protocol version 3, `$1` placeholders.
    Postgres,
    /// MySQL protocol version 10, `?` placeholders.
    Mysql,
    /// SQLite's C API, `?` placeholders.
    Sqlite,
    /// RocksDB's C API: keys and values, no SQL.
    KeyValue,
    /// The scripted one of the fake DBMS.
    Fake,
}

/// Facts of one dialect that do not depend on what is measured. Statements that differ by dialect
/// stay with the benchmark that sends them.
#[derive(Debug)]
pub struct DialectSpec {
    /// The dialect.
    pub dialect: Dialect,
    /// The way to reach its servers; `None` for a DBMS without one.
    pub server: Option<ServerProtocol>,
    /// True if statements are SQL, false for keys and values.
    pub has_sql: bool,
    /// The names of parameters in a prepared statement.
    pub placeholder: Placeholder,
    /// The prefix of a statement that shows its plan; ends with a space.
    pub explain: &'static str,
    /// Columns of a plan that are the same on two targets with the same plan, by the number of
    /// columns that the version has; all where that number is not listed.
    pub plan_columns: &'static [(usize, &'static [usize])],
    /// True if BEGIN and COMMIT can be prepared.
    pub begin_prepared: bool,
    /// Codes of errors after which an event begins again.
    ///
    /// As sysbench has them: deadlock, lock wait timeout and record changed on MySQL; deadlock,
    /// serialization failure and unique violation on Postgres. Beyond sysbench's list, MySQL's
    /// duplicate key (1062) is treated as its Postgres twin 23505: the delete and insert of
    /// write-only meet it after `delete` runs have thinned the table out, and it stays visible
    /// under its code. For SQLite it is every form of BUSY and LOCKED.
    pub retryable: &'static [&'static str],
    /// Codes that say that another transaction was in the way, so that the same statement may pass
    /// when it is sent again: deadlock, lock wait, record changed, serialization failure.
    pub conflicts: &'static [&'static str],
    /// True if a code is a number whose lowest byte alone is looked up (SQLite's extended codes).
    pub codes_are_extended: bool,
    /// The fastest way to fill a table.
    pub bulk: Bulk,
    /// Said on every loading connection, as far as the version knows it; `{cpus}` is the number of
    /// CPUs.
    pub load_setup: &'static [&'static str],
    /// True if a table may be filled by several connections, since it is sorted by primary key
    /// anyway.
    pub splits_tables: bool,
    /// The way to mark a table on a server that rqps does not run.
    pub marks: Option<TableMarks>,
}

/// The way to reach servers of a dialect.
#[derive(Debug)]
pub struct ServerProtocol {
    /// The port that a DSN without one means.
    pub port: u16,
    /// A unix socket in a DSN.
    pub socket: SocketName,
    /// The server's side of a connection.
    pub backend: Backend,
    /// The client whose habits users know.
    pub client: OwnClient,
}

/// The DBMS's own client: where it looks for a password that a DSN leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnClient {
    /// PGPASSWORD, then ~/.pgpass.
    Libpq,
    /// ~/.my.cnf, then MYSQL_PWD.
    Mysql,
}

impl OwnClient {
    /// The environment variable of a password.
    pub fn variable(self) -> &'static str {
        match self {
            OwnClient::Libpq => "PGPASSWORD",
            OwnClient::Mysql => "MYSQL_PWD",
        }
    }
}

/// A unix socket in a DSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketName {
    /// Its folder, as a host: `?host=/run/postgresql`.
    HostFolder,
    /// Its file: `?socket=/run/mysqld/mysqld.sock`.
    File,
}

/// The process or thread that serves a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A process, whose id the protocol tells.
    Process,
    /// A thread, which may serve other connections afterwards.
    Thread,
}

/// The names of parameters in a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placeholder {
    /// `$1`, `$2`.
    Numbered,
    /// `?`, in order.
    InOrder,
}

/// The fastest way to fill a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bulk {
    /// COPY in its binary form.
    Copy,
    /// LOAD DATA LOCAL.
    LoadData,
    /// A prepared INSERT for each row.
    Rows,
}

/// The comment that marks a table. `{table}` is its name, `{mark}` the mark as a literal.
#[derive(Debug)]
pub struct TableMarks {
    /// Asks for the comment of a table of the session's schema or database.
    pub comment: &'static str,
    /// Asks for the bytes of all marked tables there, with their indexes.
    pub size: &'static str,
    /// The way to mark a new table.
    pub marking: Marking,
}

/// The way to mark a new table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marking {
    /// By a clause of CREATE TABLE, before its partitions.
    Clause,
    /// By COMMENT ON in the same message, which is one transaction.
    Statement,
}

const POSTGRES: DialectSpec = DialectSpec {
    dialect: Dialect::Postgres,
    server: Some(ServerProtocol {
        port: 5432,
        socket: SocketName::HostFolder,
        backend: Backend::Process,
        client: OwnClient::Libpq,
    }),
    has_sql: true,
    placeholder: Placeholder::Numbered,
    explain: "EXPLAIN (VERBOSE false, COSTS OFF) ",
    plan_columns: &[],
    begin_prepared: true,
    retryable: &["40P01", "23505", "40001", "OC000", "OC001"],
    // The last two are Aurora DSQL's.
    conflicts: &["40001", "40P01", "OC000", "OC001"],
    codes_are_extended: false,
    bulk: Bulk::Copy,
    load_setup: &[],
    splits_tables: false,
    marks: Some(TableMarks {
        comment: "SELECT obj_description(c.oid, 'pg_class') FROM pg_class c \
                  JOIN pg_namespace n ON n.oid = c.relnamespace \
                  WHERE n.nspname = current_schema() AND c.relname = '{table}'",
        size: "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c \
               JOIN pg_namespace n ON n.oid = c.relnamespace \
               WHERE n.nspname = current_schema() AND c.relkind = 'r' \
               AND obj_description(c.oid, 'pg_class') = {mark}",
        marking: Marking::Statement,
    }),
};

const MYSQL: DialectSpec = DialectSpec {
    dialect: Dialect::Mysql,
    server: Some(ServerProtocol {
        port: 3306,
        socket: SocketName::File,
        backend: Backend::Thread,
        client: OwnClient::Mysql,
    }),
    has_sql: true,
    placeholder: Placeholder::InOrder,
    explain: "EXPLAIN ",
    // select_type, table, type, key, key_len, ref, Extra, without estimates: with partitions and
    // filtered since 5.7, without before.
    plan_columns: &[(12, &[1, 2, 4, 6, 7, 8, 11]), (10, &[1, 2, 3, 5, 6, 7, 9])],
    begin_prepared: false,
    retryable: &["1213", "1020", "1205", "1062", "8002", "8005", "8022", "8028", "9007"],
    // From 8002 on they are TiDB's; MySQL has no such numbers.
    conflicts: &["1213", "1205", "1020", "8002", "8005", "8022", "8028", "9007"],
    codes_are_extended: false,
    bulk: Bulk::LoadData,
    // A loading thread that is instrumented spends a fifth of its CPU on that. An index is sorted
    // by a thread per CPU; a larger buffer than the default 1 MB means fewer files to merge, a very
    // large one is slower.
    load_setup: &[
        "UPDATE performance_schema.threads SET INSTRUMENTED = 'NO' \
         WHERE PROCESSLIST_ID = CONNECTION_ID()",
        "SET SESSION innodb_parallel_read_threads = {cpus}",
        "SET SESSION innodb_ddl_threads = {cpus}",
        "SET SESSION innodb_ddl_buffer_size = 8388608",
    ],
    splits_tables: true,
    marks: Some(TableMarks {
        comment: "SELECT table_comment FROM information_schema.tables \
                  WHERE table_schema = DATABASE() AND table_name = '{table}'",
        size: "SELECT sum(data_length + index_length + data_free) FROM information_schema.tables \
               WHERE table_schema = DATABASE() AND table_comment = {mark}",
        marking: Marking::Clause,
    }),
};

const SQLITE: DialectSpec = DialectSpec {
    dialect: Dialect::Sqlite,
    has_sql: true,
    explain: "EXPLAIN QUERY PLAN ",
    // Without the numbers of its bytecode.
    plan_columns: &[(4, &[3])],
    retryable: &["5", "6"],
    codes_are_extended: true,
    ..KEY_VALUE
};

const KEY_VALUE: DialectSpec = DialectSpec {
    dialect: Dialect::KeyValue,
    server: None,
    has_sql: false,
    placeholder: Placeholder::InOrder,
    explain: "plan of ",
    plan_columns: &[],
    begin_prepared: true,
    retryable: &[],
    conflicts: &[],
    codes_are_extended: false,
    bulk: Bulk::Rows,
    load_setup: &[],
    splits_tables: false,
    marks: None,
};

const FAKE: DialectSpec = DialectSpec {
    dialect: Dialect::Fake,
    retryable: &["40001"],
    conflicts: &["40001"],
    has_sql: true,
    ..KEY_VALUE
};

impl Dialect {
    /// Its row.
    pub fn spec(self) -> &'static DialectSpec {
        match self {
            Dialect::Postgres => &POSTGRES,
            Dialect::Mysql => &MYSQL,
            Dialect::Sqlite => &SQLITE,
            Dialect::KeyValue => &KEY_VALUE,
            Dialect::Fake => &FAKE,
        }
    }

    /// True if nothing is really executed: the driver plays it.
    pub fn is_scripted(self) -> bool {
        self == Dialect::Fake
    }

    /// True if an event begins again after an error of this code.
    pub fn retries(self, code: &str) -> bool {
        self.spec().holds(self.spec().retryable, code)
    }

    /// True if an error of this code says that another transaction was in the way.
    pub fn is_conflict(self, code: &str) -> bool {
        self.spec().holds(self.spec().conflicts, code)
    }
}

impl DialectSpec {
    fn holds(&self, codes: &[&str], code: &str) -> bool {
        match code.parse::<i32>() {
            Ok(number) if self.codes_are_extended => {
                codes.contains(&(number & 0xff).to_string().as_str())
            }
            _ => codes.contains(&code),
        }
    }
}

/// Appends a text as a quoted literal. `backslash`: the server reads a backslash as an escape.
#[inline]
pub fn push_literal(sql: &mut String, text: &[u8], backslash: bool) {
    sql.push('\'');
    for letter in String::from_utf8_lossy(text).chars() {
        if letter == '\'' || (backslash && letter == '\\') {
            sql.push(letter);
        }
        sql.push(letter);
    }
    sql.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_pass_are_those_of_the_dialect() {
        let check = |dialect: Dialect, code: &str, retries: bool, conflict: bool| {
            let found = (dialect.retries(code), dialect.is_conflict(code));
            assert_eq!(found, (retries, conflict), "{dialect:?} {code}");
        };
        check(Dialect::Postgres, "40P01", true, true);
        check(Dialect::Postgres, "23505", true, false);
        check(Dialect::Postgres, "1213", false, false);
        check(Dialect::Mysql, "1213", true, true);
        check(Dialect::Mysql, "1062", true, false);
        check(Dialect::Mysql, "40001", false, false);
        // SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_LOCKED_SHAREDCACHE, SQLITE_ERROR.
        check(Dialect::Sqlite, "5", true, false);
        check(Dialect::Sqlite, "517", true, false);
        check(Dialect::Sqlite, "262", true, false);
        check(Dialect::Sqlite, "1", false, false);
        check(Dialect::Sqlite, "five", false, false);
        check(Dialect::KeyValue, "5", false, false);
        check(Dialect::Fake, "40001", true, true);
    }

    #[test]
    fn every_row_is_of_its_dialect() {
        use Dialect::{Fake, KeyValue, Mysql, Postgres, Sqlite};
        for dialect in [Postgres, Mysql, Sqlite, KeyValue, Fake] {
            let spec = dialect.spec();
            assert_eq!(spec.dialect, dialect);
            assert!(spec.explain.ends_with(' '), "{dialect:?}");
            assert_eq!(spec.server.is_some(), spec.marks.is_some(), "{dialect:?}");
        }
    }
}
