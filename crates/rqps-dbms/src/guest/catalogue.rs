//! Queries on a server's catalogue before rqps creates or drops anything there, per dialect.

use sha2::{Digest, Sha256};

use crate::guest::trust;
use crate::sql_server::{ControlConnection, ControlRow, one_value};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::{Identifier, Literal};
use rqps_wire::WireError;

/// Codes with which a server says that the user has no right: insufficient_privilege of Postgres;
/// access to a database, a command, a table, a privilege denied of MySQL.
const DENIED: [&str; 5] = ["42501", "1044", "1142", "1227", "1370"];

/// Codes with which a server says that it does not have the function of a lock:
/// feature_not_supported and undefined_function of Postgres; not supported yet, and no such
/// function of MySQL.
const NO_LOCKS: [&str; 4] = ["0A000", "42883", "1235", "1305"];

/// True if the user has no right to do it.
pub(super) fn is_denied(error: &WireError) -> bool {
    error.code().is_some_and(|code| DENIED.contains(&code))
}

/// An object with a name of the benchmark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    pub(super) name: String,
    /// "table", "view", "sequence".
    pub(super) kind: String,
    pub(super) comment: String,
    /// The table of an index or of a sequence; empty for none.
    pub(super) of_table: String,
    /// The reason why it must not be dropped: "the foreign key f of orders refers to it". Empty if
    /// there is none.
    pub(super) tie: String,
    /// True if it belongs to this login, where objects have owners.
    pub(super) is_own: bool,
}

impl Relation {
    /// True for a table, function or procedure with this comment that belongs to the login.
    pub(super) fn bears(&self, mark: &str) -> bool {
        let kinds = ["table", "function", "procedure"];
        self.is_own && kinds.contains(&self.kind.as_str()) && self.comment == mark
    }
}

/// The answer of a server to a request for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LockAnswer {
    /// The session has it.
    Taken,
    /// Another session has it.
    Held,
    /// The server has no such locks, so it excludes nobody.
    Unknown,
}

/// The catalogue of one server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Catalogue(pub(super) Dialect);

impl Catalogue {
    /// "schema" or "database".
    pub(super) fn place_word(self) -> &'static str {
        if self.is_mysql() { "database" } else { "schema" }
    }

    pub(super) fn is_mysql(self) -> bool {
        self.0 == Dialect::Mysql
    }

    /// Takes a lock that ends with the session.
    pub(super) fn try_lock(
        self,
        session: &mut dyn ControlConnection,
        name: &str,
    ) -> Result<LockAnswer, WireError> {
        let sql = if self.is_mysql() {
            format!("SELECT GET_LOCK({}, 0)", Literal::quoted(self.0, name))
        } else {
            format!("SELECT pg_catalog.pg_try_advisory_lock({})", lock_number(name))
        };
        match one_value(session, &sql) {
            Ok(Some(taken)) if taken == "1" || taken == "t" => Ok(LockAnswer::Taken),
            Ok(_) => Ok(LockAnswer::Held),
            Err(error) if error.code().is_some_and(|code| NO_LOCKS.contains(&code)) => {
                Ok(LockAnswer::Unknown)
            }
            Err(error) => Err(error),
        }
    }

    /// The number of the session that has a lock.
    pub(super) fn lock_holder(
        self,
        session: &mut dyn ControlConnection,
        name: &str,
    ) -> Option<u64> {
        let sql = if self.is_mysql() {
            format!("SELECT IS_USED_LOCK({})", Literal::quoted(self.0, name))
        } else {
            format!(
                "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted \
                 AND objsubid = 1 AND ((classid::bigint << 32) | objid::bigint) = {} \
                 AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
                lock_number(name)
            )
        };
        one_value(session, &sql).ok().flatten()?.parse().ok()
    }

    /// Settings of a session that waits while rqps measures, and drops tables in the end. Those
    /// that a version does not have are left.
    pub(super) fn keep_alive(self, session: &mut dyn ControlConnection) {
        let settings: &[&str] = if self.is_mysql() {
            &["SET SESSION wait_timeout = 31536000", "SET SESSION lock_wait_timeout = 30"]
        } else {
            &["SET idle_session_timeout = 0", "SET lock_timeout = '30s'"]
        };
        for setting in settings {
            // A refusal leaves what the server has.
            session.run(setting).ok();
        }
    }

    /// Makes the session see one schema or database and no other.
    pub(super) fn enter(
        self,
        session: &mut dyn ControlConnection,
        place: &str,
    ) -> Result<(), WireError> {
        match self.enter_statement(place) {
            Some(sql) => session.run(&sql),
            None => session.run(&format!("USE {}", Identifier::quoted(self.0, place))),
        }
    }

    /// The statement that enters the place, unless the session logs in to the database itself.
    pub(super) fn enter_statement(self, place: &str) -> Option<String> {
        (!self.is_mysql())
            .then(|| format!("SET search_path TO {}, pg_temp", Identifier::quoted(self.0, place)))
    }

    /// The schema or database that the login leads to, asked first: after it, a session of Postgres
    /// sees nothing but the server's own catalogue.
    pub(super) fn current_place(
        self,
        session: &mut dyn ControlConnection,
    ) -> Result<Option<String>, WireError> {
        if self.is_mysql() {
            one_value(session, "SELECT DATABASE()")
        } else {
            trust::enter_catalogue(session)
        }
    }

    /// True if the user may make tables there. MySQL tells only when it is tried.
    pub(super) fn may_make_tables(
        self,
        session: &mut dyn ControlConnection,
        place: &str,
    ) -> Result<bool, WireError> {
        if self.is_mysql() {
            return Ok(true);
        }
        let sql =
            format!("SELECT has_schema_privilege({}, 'CREATE')", Literal::quoted(self.0, place));
        Ok(one_value(session, &sql)?.as_deref() == Some("t"))
    }

    pub(super) fn is_there(
        self,
        session: &mut dyn ControlConnection,
        place: &str,
    ) -> Result<bool, WireError> {
        let place = Literal::quoted(self.0, place);
        let sql = if self.is_mysql() {
            format!("SELECT 1 FROM information_schema.schemata WHERE schema_name = {place}")
        } else {
            format!("SELECT 1 FROM pg_namespace WHERE nspname = {place}")
        };
        Ok(one_value(session, &sql)?.is_some())
    }

    /// Makes an empty place. A database has the character set of the one that the DSN names.
    pub(super) fn create(
        self,
        session: &mut dyn ControlConnection,
        place: &str,
    ) -> Result<(), WireError> {
        let name = Identifier::quoted(self.0, place);
        if !self.is_mysql() {
            return session.run(&format!("CREATE SCHEMA {name}"));
        }
        let sets = session.rows(
            "SELECT default_character_set_name, default_collation_name \
             FROM information_schema.schemata WHERE schema_name = DATABASE()",
        )?;
        let sets = match sets.first().map(Vec::as_slice) {
            Some([Some(set), Some(order)]) => {
                let [set, order] = [set, order].map(|name| Identifier::plain(self.0, name));
                format!(" CHARACTER SET {set} COLLATE {order}")
            }
            _ => String::new(),
        };
        session.run(&format!("CREATE DATABASE {name}{sets}"))
    }

    /// Drops a place in which there is nothing but the table `last`; of any other, nothing.
    pub(super) fn drop_with(
        self,
        session: &mut dyn ControlConnection,
        place: &str,
        last: Option<&str>,
    ) -> Result<(), WireError> {
        let name = Identifier::quoted(self.0, place);
        if !self.is_mysql() {
            let table = last
                .map(|last| format!("DROP TABLE {name}.{}; ", Identifier::quoted(self.0, last)));
            // RESTRICT refuses a schema that holds anything. Both in one message are one
            // transaction.
            return session
                .run(&format!("{}DROP SCHEMA {name} RESTRICT", table.unwrap_or_default()));
        }
        let (place, last) =
            (Literal::quoted(self.0, place), Literal::quoted(self.0, last.unwrap_or_default()));
        let inside = session.rows(&format!(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = {place} \
             AND table_name <> {last} \
             UNION SELECT routine_name FROM information_schema.routines \
             WHERE routine_schema = {place} \
             UNION SELECT event_name FROM information_schema.events WHERE event_schema = {place}"
        ))?;
        if !inside.is_empty() {
            let inside: Vec<String> = inside.into_iter().flatten().flatten().collect();
            let what = format!("it holds objects that rqps did not make: {}", inside.join(", "));
            return Err(WireError::Protocol(what));
        }
        session.run(&format!("DROP DATABASE {name}"))
    }

    /// The objects with one of `names` in a place.
    pub(super) fn relations(
        self,
        session: &mut dyn ControlConnection,
        place: &str,
        names: &[&str],
    ) -> Result<Vec<Relation>, WireError> {
        let has_routines = names.iter().any(|name| name.ends_with("()"));
        let names: Vec<Literal> = names.iter().map(|name| Literal::quoted(self.0, name)).collect();
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let (place, names) = (Literal::quoted(self.0, place), Literal::list(&names));
        let (relations, routines) = if self.is_mysql() {
            (mysql_relations(&place, &names), mysql_routines(&place, &names))
        } else {
            (postgres_relations(&place, &names), postgres_routines(&place, &names))
        };
        let mut rows = session.rows(&relations)?;
        if has_routines {
            rows.extend(session.rows(&routines)?);
        }
        Ok(rows.into_iter().filter_map(relation).collect())
    }

    /// The statements that drop a function or procedure `name()`.
    pub(super) fn drop_routine(
        self,
        session: &mut dyn ControlConnection,
        place: &str,
        name: &str,
        mark: &str,
    ) -> Result<Vec<String>, WireError> {
        let name = name.trim_end_matches("()");
        if self.is_mysql() {
            let place = Identifier::quoted(self.0, place);
            let full = place.dot(&Identifier::quoted(self.0, name));
            return Ok(vec![format!("DROP PROCEDURE {full}")]);
        }
        let literal = |text: &str| Literal::quoted(self.0, text);
        // The server spells name and types.
        let rows = session.rows(&format!(
            "SELECT 'DROP FUNCTION ' || p.oid::regprocedure::text FROM pg_proc p \
             JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = {} \
             AND p.proname = {} AND obj_description(p.oid, 'pg_proc') = {}",
            literal(place),
            literal(name),
            literal(mark)
        ))?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }

    /// Schemas or databases that an rqps of this user's may have made, by their names.
    pub(super) fn places_of_rqps(
        self,
        session: &mut dyn ControlConnection,
    ) -> Result<Vec<String>, WireError> {
        let sql = if self.is_mysql() {
            "SELECT schema_name FROM information_schema.schemata ORDER BY 1"
        } else {
            "SELECT nspname FROM pg_namespace WHERE pg_has_role(nspowner, 'USAGE') ORDER BY 1"
        };
        let names = session.rows(sql)?.into_iter().flatten().flatten();
        Ok(names.filter(|name| is_own_name(name)).collect())
    }

    /// Extensions of Postgres that bear a mark.
    pub(super) fn extensions(
        self,
        session: &mut dyn ControlConnection,
        mark: &str,
    ) -> Result<Vec<String>, WireError> {
        if self.is_mysql() {
            return Ok(Vec::new());
        }
        let rows = session.rows(&format!(
            "SELECT extname FROM pg_extension WHERE obj_description(oid, 'pg_extension') = {}",
            Literal::quoted(self.0, mark)
        ))?;
        Ok(rows.into_iter().flatten().flatten().collect())
    }
}

/// Name of rqps's own schema or database for a tag of 12 hex digits.
pub(super) fn own_name(tag: &str) -> String {
    format!("rqps_{tag}")
}

fn is_own_name(name: &str) -> bool {
    let tag = name.strip_prefix("rqps_").unwrap_or_default();
    tag.len() == 12 && tag.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The number of an advisory lock of Postgres.
fn lock_number(name: &str) -> i64 {
    let digest = Sha256::digest(name.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    i64::from_be_bytes(first)
}

fn relation(row: ControlRow) -> Option<Relation> {
    let mut cells = row.into_iter().map(Option::unwrap_or_default);
    Some(Relation {
        name: cells.next()?,
        kind: kind(&cells.next()?),
        comment: cells.next()?,
        of_table: cells.next()?,
        tie: cells.next()?,
        is_own: cells.next()? != "f",
    })
}

/// `relkind` of pg_class, or TABLE_TYPE of MySQL, in words.
fn kind(code: &str) -> String {
    match code {
        "r" | "p" | "BASE TABLE" => "table",
        "v" | "VIEW" | "SYSTEM VIEW" => "view",
        "m" => "materialised view",
        "S" | "SEQUENCE" => "sequence",
        "i" | "I" => "index",
        "f" => "foreign table",
        "type" => "type",
        "function" => "function",
        "procedure" => "procedure",
        _ => "other relation",
    }
    .to_owned()
}

/// Types share names with tables: a table is a type, too.
fn postgres_relations(place: &Literal, names: &Literal) -> String {
    format!(
        "SELECT c.relname, c.relkind::text, obj_description(c.oid, 'pg_class'), \
         (SELECT t.relname FROM pg_class t WHERE t.oid = coalesce( \
          (SELECT indrelid FROM pg_index WHERE indexrelid = c.oid), \
          (SELECT refobjid FROM pg_depend WHERE classid = 'pg_class'::regclass \
           AND objid = c.oid AND refclassid = 'pg_class'::regclass AND refobjsubid > 0 \
           AND deptype IN ('a', 'i') LIMIT 1))), \
         coalesce((SELECT 'it is a partition of ' || inhparent::regclass::text FROM pg_inherits \
          WHERE inhrelid = c.oid LIMIT 1), \
          (SELECT 'the foreign key ' || conname || ' of ' || conrelid::regclass::text || \
           ' refers to it' FROM pg_constraint WHERE contype = 'f' AND confrelid = c.oid \
           AND conrelid <> c.oid LIMIT 1), \
          (SELECT 'the view ' || r.ev_class::regclass::text || ' reads it' FROM pg_depend d \
           JOIN pg_rewrite r ON r.oid = d.objid WHERE d.classid = 'pg_rewrite'::regclass \
           AND d.refobjid = c.oid AND r.ev_class <> c.oid LIMIT 1), \
          CASE WHEN NOT pg_has_role(c.relowner, 'USAGE') \
           THEN 'it belongs to the user ' || pg_get_userbyid(c.relowner) END), \
         c.relowner = (SELECT oid FROM pg_roles WHERE rolname = current_user) \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = {place} AND c.relname IN ({names}) \
         UNION ALL SELECT t.typname, 'type', '', '', '', false FROM pg_type t \
         JOIN pg_namespace n ON n.oid = t.typnamespace \
         WHERE n.nspname = {place} AND t.typname IN ({names}) AND t.typrelid = 0 ORDER BY 1"
    )
}

fn mysql_relations(place: &Literal, names: &Literal) -> String {
    format!(
        "SELECT t.TABLE_NAME, t.TABLE_TYPE, t.TABLE_COMMENT, '', \
         (SELECT MIN(CONCAT('the foreign key ', k.CONSTRAINT_NAME, ' of ', k.TABLE_SCHEMA, '.', \
          k.TABLE_NAME, ' refers to it')) FROM information_schema.KEY_COLUMN_USAGE k \
          WHERE k.REFERENCED_TABLE_SCHEMA = t.TABLE_SCHEMA \
          AND k.REFERENCED_TABLE_NAME = t.TABLE_NAME \
          AND NOT (k.TABLE_SCHEMA = t.TABLE_SCHEMA AND k.TABLE_NAME = t.TABLE_NAME)), 't' \
         FROM information_schema.TABLES t \
         WHERE t.TABLE_SCHEMA = {place} AND t.TABLE_NAME IN ({names}) ORDER BY 1"
    )
}

/// Functions and procedures: their names end with `()`.
fn postgres_routines(place: &Literal, names: &Literal) -> String {
    format!(
        "SELECT p.proname || '()', 'function', obj_description(p.oid, 'pg_proc'), '', \
         CASE WHEN NOT pg_has_role(p.proowner, 'USAGE') \
         THEN 'it belongs to the user ' || pg_get_userbyid(p.proowner) END, \
         p.proowner = (SELECT oid FROM pg_roles WHERE rolname = current_user) \
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace \
         WHERE n.nspname = {place} AND p.proname || '()' IN ({names}) ORDER BY 1"
    )
}

fn mysql_routines(place: &Literal, names: &Literal) -> String {
    format!(
        "SELECT CONCAT(ROUTINE_NAME, '()'), LOWER(ROUTINE_TYPE), ROUTINE_COMMENT, '', '', 't' \
         FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = {place} \
         AND CONCAT(ROUTINE_NAME, '()') IN ({names}) ORDER BY 1"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_rqps_gives_are_its_own() {
        let check = |name: &str, own| assert_eq!(is_own_name(name), own, "{name}");
        check(&own_name("0123456789ab"), true);
        check("rqps_results", false);
        check("rqps_0123456789ag", false);
        check("rqps_0123456789abc", false);
        check("0123456789ab", false);
    }

    /// A server that refuses everything with a code.
    struct Refusing(&'static str);

    impl ControlConnection for Refusing {
        fn rows(&mut self, _sql: &str) -> Result<Vec<ControlRow>, WireError> {
            let (code, message) = (self.0.to_owned(), "no".to_owned());
            Err(WireError::Server { code, message })
        }

        fn run(&mut self, sql: &str) -> Result<(), WireError> {
            self.rows(sql).map(|_| ())
        }
    }

    #[test]
    fn a_server_without_locks_keeps_nobody_away() {
        let postgres = Catalogue(Dialect::Postgres);
        let answer = postgres.try_lock(&mut Refusing("0A000"), "a").expect("no lock is needed");
        assert_eq!(answer, LockAnswer::Unknown);
        assert!(postgres.try_lock(&mut Refusing("42501"), "a").is_err());
        let mysql = Catalogue(Dialect::Mysql);
        let answer = mysql.try_lock(&mut Refusing("1305"), "a").expect("no lock is needed");
        assert_eq!(answer, LockAnswer::Unknown);
        assert!(mysql.try_lock(&mut Refusing("1205"), "a").is_err());
    }

    #[test]
    fn postgres_enters_a_schema_by_a_statement() {
        let (postgres, mysql) = (Catalogue(Dialect::Postgres), Catalogue(Dialect::Mysql));
        assert_eq!(
            postgres.enter_statement("a").as_deref(),
            Some("SET search_path TO \"a\", pg_temp")
        );
        assert_eq!(mysql.enter_statement("a"), None);
    }
}
