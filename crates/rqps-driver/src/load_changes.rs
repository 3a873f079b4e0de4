//! What a load by files may do on a server that rqps does not run, and what it makes there. If
//! something of that name exists, the load changes it only if the workload drops it first.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::connection::{Connection, Connector};
use crate::files::{self, SqlFile};
use crate::guest;
use crate::request::FileLoad;
use rqps_model::dialect::Dialect;
use rqps_model::escape;
use rqps_model::sql_name::{Identifier, Literal, TableName};
use rqps_text::reading::{self, DumpedStatement};
use rqps_text::{self as user_text, ChangedRelation, LoadRules, RelationKind, SqlChunk};
use rqps_wire::WireError;

/// Characters of a refused statement that are shown.
const SHOWN: usize = 120;

/// What a load makes, changes or drops.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadChanges {
    /// In the order of its files.
    pub relations: Vec<ChangedRelation>,
    /// The schema or database that its files name, in which the login must be.
    pub place: Option<String>,
}

/// The changes of a load.
///
/// # Errors
/// A file cannot be read, is not SQL for a server, or holds a statement that a load may not
/// execute there. The error is a complete message.
pub fn of_load(load: &FileLoad, dialect: Dialect) -> Result<LoadChanges, String> {
    judged(load, dialect).map(|(changes, _)| changes)
}

/// Bytes of a file that are looked at before servers start.
const LOOKED_AT: u64 = 64 << 20;

/// Looks for what no server takes, in the beginnings of the files of a load.
///
/// # Errors
/// A file cannot be read, holds a command of a client, or names another database. The error is a
/// complete message.
pub fn check_files(load: &FileLoad, dialect: Dialect) -> Result<(), String> {
    for path in load.schema.iter().chain(&load.index) {
        if files::is_database(path)? {
            continue;
        }
        let fault = |why: String| format!("failed to load {}: {why}", path.display());
        let read = Arc::default();
        let mut script = SqlFile::open_counted(path, dialect, &read).map_err(fault)?;
        while let Some(chunk) = script.next().map_err(fault)? {
            if let SqlChunk::Statement(sql, line) = chunk
                && dialect == Dialect::Mysql
                && reading::judge_dumped(&sql) == DumpedStatement::NamesDatabase
                && names_another(&sql, load)
            {
                let why = another_database(&sql);
                return Err(fault(format!("line {line}: {why}")));
            }
            if read.load(Ordering::Relaxed) > LOOKED_AT {
                break;
            }
        }
    }
    Ok(())
}

/// True if a statement on a database means another one than the workload names.
pub(super) fn names_another(sql: &[u8], task: &FileLoad) -> bool {
    let text = String::from_utf8_lossy(sql);
    let mut words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    task.database.as_ref().is_none_or(|name| words.all(|word| word != name.to_string()))
}

/// The fault of a statement on a database.
pub(super) fn another_database(sql: &[u8]) -> String {
    format!(
        "the file names a database: {}\nhint: dump one database without --databases, or name it \
         with `database = \"NAME\"` in [load]",
        shortened(sql)
    )
}

/// The same, with what its statements call.
fn judged(load: &FileLoad, dialect: Dialect) -> Result<(LoadChanges, LoadRules), String> {
    let mut rules = LoadRules::new(dialect);
    let mut relations = Vec::new();
    for path in &load.schema {
        add_file(&mut rules, &mut relations, path, dialect)?;
    }
    for file in &load.data {
        let judged = rules.judge_rows(&file.table);
        judged.map_err(|why| format!("failed to load {}: {why}", file.path.display()))?;
        add(&mut relations, vec![ChangedRelation::table(&file.table.to_string())]);
    }
    for path in &load.index {
        add_file(&mut rules, &mut relations, path, dialect)?;
    }
    relations.retain(|relation| !rules.is_of_table(relation));
    let place = rules.place().map(str::to_owned);
    Ok((LoadChanges { relations, place }, rules))
}

/// What no statement of `drop` drops. It must not exist before the load.
pub fn undropped(
    load: &FileLoad,
    dialect: Dialect,
    changed: &[ChangedRelation],
) -> Vec<ChangedRelation> {
    let dropped = dropped(load, dialect);
    let stays = |relation: &&ChangedRelation| !dropped.iter().any(|other| other.is_same(relation));
    changed.iter().filter(stays).cloned().collect()
}

/// What the statements of `drop` drop. They were checked with the plan.
fn dropped(load: &FileLoad, dialect: Dialect) -> Vec<ChangedRelation> {
    load.drop.iter().flat_map(|sql| user_text::dropped(dialect, sql).unwrap_or_default()).collect()
}

/// A summary of the load for the owner of the server: `drops and loads customer, orders`.
pub fn words(load: &FileLoad, dialect: Dialect, changed: &[ChangedRelation]) -> String {
    let mut dropped = Vec::new();
    for sql in &load.drop {
        let of_entry = user_text::dropped(dialect, sql).unwrap_or_default();
        let is_routine = of_entry.iter().any(|it| it.kind == RelationKind::Routine);
        if is_routine || of_entry.is_empty() {
            dropped.push(sql.clone())
        } else {
            dropped.extend(of_entry.into_iter().map(|relation| relation.name))
        }
    }
    let names: Vec<&str> = changed.iter().map(|relation| relation.name.as_str()).collect();
    let (dropped_names, names) = (dropped.join(", "), names.join(", "));
    let is_changed = |name: &String| {
        changed.iter().any(|relation| relation.is_same(&ChangedRelation::table(name)))
    };
    match dropped.is_empty() {
        true => format!("loads {names}"),
        false if dropped.iter().all(is_changed) && undropped(load, dialect, changed).is_empty() => {
            format!("drops and loads {names}")
        }
        false => format!("drops {dropped_names}, then loads {names}"),
    }
}

/// Drops what the workload says before a load. Nothing is dropped if something else is in the way,
/// or if the load may not execute one of its statements. Returns what the load will change.
///
/// # Errors
/// Something is in the way, or the server refuses. The error is a complete message.
pub(super) fn make_way(
    load: &FileLoad,
    dialect: Dialect,
    connector: &Connector,
) -> Result<Vec<ChangedRelation>, String> {
    let (changed, rules) = judged(load, dialect)?;
    for sql in &load.drop {
        user_text::dropped(dialect, sql).map_err(|why| format!("failed to load: {why}"))?;
    }
    let mut session = connector.open(0)?;
    read_as_written(dialect, &mut session)?;
    check_place(changed.place.as_deref(), dialect, &mut session)?;
    guest::check(&rules, dialect, &mut session)?;
    if dialect == Dialect::Mysql {
        check_children(&changed.relations, &mut session)?;
    }
    for relation in undropped(load, dialect, &changed.relations) {
        if is_there(&relation, dialect, &mut session)? {
            return Err(format!(
                "failed to load: {} is there already, and `drop` of [load] does not name it",
                relation.name
            ));
        }
    }
    if dialect == Dialect::Mysql {
        check_hidden_children(&changed.relations, &mut session)?;
    }
    for sql in &load.drop {
        session.simple(sql).map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    }
    Ok(changed.relations)
}

/// Foreign keys to tables of this database, and whether they are of one of its own tables.
const CHILDREN: &str = "SELECT DISTINCT LOWER(referenced_table_name), table_schema, table_name, \
     table_schema = DATABASE() FROM information_schema.key_column_usage \
     WHERE referenced_table_schema = DATABASE()";

/// Refuses a load that makes the parent of a table which it does not make: MySQL keeps foreign keys
/// whose parent is gone, and REPLACE deletes and `ON UPDATE` changes rows by them.
fn check_children(made: &[ChangedRelation], session: &mut Connection) -> Result<(), String> {
    let last = |made: &ChangedRelation| {
        let name = TableName::try_from(made.name.clone()).ok()?;
        name.folded(Dialect::Mysql).pop().map(|name| name.to_lowercase())
    };
    let made: Vec<String> = made.iter().filter_map(last).collect();
    let rows = session.rows(CHILDREN);
    let rows = rows.map_err(|error| format!("failed to look for foreign keys: {error}"))?;
    for row in rows {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let mut next = || cells.next().unwrap_or_default();
        let (parent, schema, child, is_near) = (next(), next(), next(), next() == "1");
        if made.contains(&parent) && !(is_near && made.contains(&child.to_lowercase())) {
            let (parent, child) = (escape::line(&parent), format!("{schema}.{child}"));
            let child = escape::line(&child);
            return Err(format!(
                "failed to load: a foreign key of {child} leads to {parent}, which the load makes, \
                 so rows there could go\nhint: load into a database of its own, or drop that key"
            ));
        }
    }
    Ok(())
}

/// Refuses a load that makes the parent of a table that the login may not see: the server refuses a
/// parent without the column to which the key leads. A table that is there has no such child, or
/// could not be dropped. No other parent comes to be, either: its two rows have one key, so nobody
/// can put a row into it, and nothing has to be dropped.
fn check_hidden_children(made: &[ChangedRelation], session: &mut Connection) -> Result<(), String> {
    let checks = session.simple("SET SESSION foreign_key_checks = 1");
    checks.map_err(|error| format!("failed to look for foreign keys: {error}"))?;
    for relation in made.iter().filter(|made| made.kind == RelationKind::Table) {
        let Ok(name) = TableName::try_from(relation.name.clone()) else { continue };
        let table = name.identifier(Dialect::Mysql);
        let probe = format!(
            "CREATE TABLE {table} (rqps_looks_for_foreign_keys INT PRIMARY KEY) ENGINE = InnoDB \
             SELECT 1 AS rqps_looks_for_foreign_keys UNION ALL SELECT 1"
        );
        let probed = match session.simple(&probe) {
            Err(error) if error.code().is_some_and(|code| NOT_ONE.contains(&code)) => {
                probe_under_lock(&table, session)
            }
            other => other.map(drop),
        };
        // Another answer, as after a wait for a lock, tells nothing.
        if let Err(error) = probed
            && !error.code().is_some_and(|code| OF_NO_CHILD.contains(&code))
        {
            return Err(format!(
                "failed to load: a foreign key of a table that the login may not see may lead to \
                 {table}, which the load makes, so rows there could go: {error}\n\
                 hint: load into a database of its own"
            ));
        }
    }
    Ok(())
}

/// The same where no statement makes a table with its rows, as in MySQL before 8.0.21 with global
/// transaction ids: only what is empty while nobody else can write to it is dropped.
fn probe_under_lock(table: &Identifier, session: &mut Connection) -> Result<(), WireError> {
    let made = format!("CREATE TABLE {table} (rqps_looks_for_foreign_keys INT) ENGINE = InnoDB");
    session.simple(&made)?;
    let mut drop_empty = || {
        session.simple(&format!("LOCK TABLES {table} WRITE"))?;
        if !session.rows(&format!("SELECT 1 FROM {table} LIMIT 1"))?.is_empty() {
            return Err(WireError::Protocol("somebody has put rows into it meanwhile".to_owned()));
        }
        session.simple(&format!("DROP TABLE {table}"))?;
        session.simple("UNLOCK TABLES").map(drop)
    };
    drop_empty().map_err(|why| {
        WireError::Protocol(format!(
            "rqps made the table {table} to look for them, and did not drop it: {why}\nhint: look \
             into it and drop it; GRANT LOCK TABLES lets rqps do so"
        ))
    })
}

/// Codes of servers that make no table with its rows in one statement; the second is TiDB's.
const NOT_ONE: [&str; 2] = ["1786", "1105"];

/// Codes of a table that no key of others leads to: its two rows have one key, it is there already.
const OF_NO_CHILD: [&str; 2] = ["1062", "1050"];

/// Has the session read literals and names as rqps does, and refuse a second statement in a text
/// that rqps takes for one.
pub(super) fn read_as_written(dialect: Dialect, session: &mut Connection) -> Result<(), String> {
    let fault = |error| format!("failed to set up a session for loading: {error}");
    let sql = match dialect {
        Dialect::Mysql => {
            let rows = session.rows("SELECT @@SESSION.sql_mode").map_err(fault)?;
            let modes = rows.into_iter().flatten().flatten().next().unwrap_or_default();
            let modes = Literal::quoted(dialect, &user_text::plain_modes(&modes));
            format!("SET SESSION sql_mode = {modes}")
        }
        _ => "SET standard_conforming_strings = on".to_owned(),
    };
    session.simple(&sql).map_err(fault)?;
    session.one_statement_each().map_err(fault)
}

/// Refuses a load whose files name another schema or database than that of the login.
fn check_place(
    place: Option<&str>,
    dialect: Dialect,
    session: &mut Connection,
) -> Result<(), String> {
    let Some(place) = place else { return Ok(()) };
    let sql = user_text::place_query(dialect);
    let rows = session.rows(sql).map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    let own = rows.into_iter().flatten().flatten().next().unwrap_or_default();
    if own == place {
        Ok(())
    } else {
        Err(format!("failed to load: {}", user_text::elsewhere(place, &own)))
    }
}

/// Has the server look at the tables that were loaded, and at no others.
pub(super) fn gather_statistics(
    changed: &[ChangedRelation],
    dialect: Dialect,
    connector: &Connector,
) -> Result<(), String> {
    let mut session = connector.open(0)?;
    for relation in changed.iter().filter(|relation| relation.kind == RelationKind::Table) {
        // A file may drop or rename what it has made.
        if !is_there(relation, dialect, &mut session)? {
            continue;
        }
        let name = relation.identifier(dialect);
        let analyze = match dialect {
            Dialect::Mysql => format!("ANALYZE TABLE {name}"),
            _ => format!("ANALYZE {name}"),
        };
        // Servers that are only compatible with Postgres have no VACUUM.
        let vacuum = format!("VACUUM (ANALYZE) {name}");
        if dialect == Dialect::Postgres && session.rows(&vacuum).is_ok() {
            continue;
        }
        session
            .rows(&analyze)
            .map_err(|error| format!("failed to execute {analyze:?}: {error}"))?;
    }
    Ok(())
}

fn is_there(
    relation: &ChangedRelation,
    dialect: Dialect,
    session: &mut Connection,
) -> Result<bool, String> {
    let rows = session.rows(&relation.presence_query(dialect));
    let rows = rows.map_err(|error| format!("failed to look for {}: {error}", relation.name))?;
    Ok(!rows.is_empty())
}

fn add_file(
    rules: &mut LoadRules,
    changed: &mut Vec<ChangedRelation>,
    path: &Path,
    dialect: Dialect,
) -> Result<(), String> {
    let fault = |what: String| format!("failed to read {}: {what}", path.display());
    let mut file = SqlFile::open(path, dialect).map_err(fault)?;
    rules.begin_file();
    while let Some(chunk) = file.next().map_err(fault)? {
        let (sql, line) = match &chunk {
            SqlChunk::Statement(sql, line) => (sql.as_slice(), *line),
            SqlChunk::Copy(sql, line) => (sql.as_bytes(), *line),
            SqlChunk::CopyLine(_) | SqlChunk::CopyEnd => continue,
        };
        let judged = match &chunk {
            SqlChunk::Copy(sql, _) => rules.judge_copy(sql).map(|()| Vec::new()),
            _ => judge_dumped(rules, sql, dialect),
        };
        let makes = judged.map_err(|why| refused(path, line, sql, &why))?;
        add(changed, makes);
    }
    Ok(())
}

/// Judges a statement, which may be one of mysqldump that is not sent as it is.
fn judge_dumped(
    rules: &mut LoadRules,
    sql: &[u8],
    dialect: Dialect,
) -> Result<Vec<ChangedRelation>, String> {
    let dumped = match dialect {
        Dialect::Mysql => reading::judge_dumped(sql),
        _ => DumpedStatement::Plain,
    };
    match dumped {
        DumpedStatement::Plain => rules.judge(sql).map(|admitted| admitted.makes),
        DumpedStatement::WithoutDefiner(rest) => rules.judge(&rest).map(|admitted| admitted.makes),
        DumpedStatement::OfReplication => Ok(Vec::new()),
        DumpedStatement::NamesDatabase => Err("it names a database".to_owned()),
    }
}

/// The message about a statement that a load may not execute.
fn refused(path: &Path, line: u64, sql: &[u8], why: &str) -> String {
    format!(
        "failed to load {} on a server that others use: line {line}: {why}: {}",
        path.display(),
        shortened(sql)
    )
}

/// The beginning of a statement in one line.
pub(super) fn shortened(sql: &[u8]) -> String {
    // Four bytes per character, and blanks that are left out.
    let sql = String::from_utf8_lossy(&sql[..sql.len().min(8 * SHOWN)]);
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Adds what is not there yet. The statement that makes a relation says what it is.
fn add(changed: &mut Vec<ChangedRelation>, found: Vec<ChangedRelation>) {
    for relation in found {
        match changed.iter_mut().find(|known| known.is_same(&relation)) {
            Some(known) if known.kind == RelationKind::Table => known.kind = relation.kind,
            Some(_) => {}
            None => changed.push(relation),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::CsvFile;

    fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> std::path::PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    #[test]
    fn a_load_changes_what_its_files_name_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let schema = "CREATE TABLE shop.customer (id int);\nCREATE TABLE orders (id int);\n\
                      COPY orders (id) FROM stdin;\n1\tDROP TABLE other;\n\\.\n\
                      CREATE VIEW rich AS SELECT 1;\nCOMMENT ON VIEW rich IS 'x';\n";
        let schema = file(&folder, "schema.sql", schema);
        let index = file(&folder, "index.sql", "CREATE INDEX i ON customer (id);\n");
        let data = CsvFile {
            path: folder.path().join("none.csv"),
            table: "customer".to_owned().try_into().unwrap(),
            columns: Vec::new(),
            hex: Vec::new(),
            null: String::new(),
            delimiter: b',',
            expect_rows: None,
        };
        let drop = ["DROP TABLE IF EXISTS orders, customer"].map(str::to_owned).to_vec();
        let (schema, data, index) = (vec![schema], vec![data], vec![index]);
        let load = FileLoad { drop, schema, data, index, ..FileLoad::default() };
        let LoadChanges { relations: changed, place } = of_load(&load, Dialect::Postgres).unwrap();
        assert_eq!(place.as_deref(), Some("shop"));
        let entries = |all: &[ChangedRelation]| -> Vec<String> {
            all.iter().map(ChangedRelation::drop_entry).collect()
        };
        let view = "DROP VIEW IF EXISTS rich";
        assert_eq!(entries(&changed), ["shop.customer", "orders", view]);
        assert_eq!(entries(&undropped(&load, Dialect::Postgres, &changed)), [view]);
        let said = |drop: &[&str]| {
            let drop = drop.iter().map(|sql| (*sql).to_owned()).collect();
            words(&FileLoad { drop, ..load.clone() }, Dialect::Postgres, &changed)
        };
        let (tables, function) = ("DROP TABLE orders, customer", "DROP FUNCTION f");
        assert_eq!(said(&[]), "loads shop.customer, orders, rich");
        assert_eq!(said(&[tables, view]), "drops and loads shop.customer, orders, rich");
        assert_eq!(
            said(&[tables, function]),
            "drops orders, customer, DROP FUNCTION f, then loads shop.customer, orders, rich"
        );
        let load = FileLoad { drop: Vec::new(), ..load };
        assert_eq!(undropped(&load, Dialect::Postgres, &changed), changed);
    }

    #[test]
    fn what_is_refused_has_file_line_and_statement() {
        let folder = tempfile::tempdir().unwrap();
        let text = "CREATE TABLE t (id int);\n\nDROP DATABASE shop;\n";
        let load = FileLoad { schema: vec![file(&folder, "a.sql", text)], ..FileLoad::default() };
        let error = of_load(&load, Dialect::Postgres).unwrap_err();
        for part in ["a.sql", "line 3: a load may drop nothing but", ": DROP DATABASE shop"] {
            assert!(error.contains(part), "{error}");
        }
    }
}
