//! Tables and views that a load by files changes on a server that rqps does not run. If one exists,
//! the load changes it only if the workload drops it first.

use std::path::Path;

use crate::domain::dialect::Dialect;
use crate::driver::connection::{Connection, Connector};
use crate::driver::request::FileLoad;
use crate::driver::sql_file::SqlFile;
use crate::user_text::{self, ChangedRelation, RelationKind, SqlChunk};

/// The tables and views that a load makes, changes or drops, in the order of its files.
///
/// # Errors
/// A file cannot be read, or is not SQL for a server. The error is a complete message.
pub fn of_load(load: &FileLoad, dialect: Dialect) -> Result<Vec<ChangedRelation>, String> {
    let mut changed = Vec::new();
    for path in &load.schema {
        add_file(&mut changed, path, dialect)?;
    }
    for file in &load.data {
        add(&mut changed, vec![ChangedRelation::table(&file.table)]);
    }
    for path in &load.index {
        add_file(&mut changed, path, dialect)?;
    }
    Ok(changed)
}

/// Tables and views that no statement of `drop` drops. They must not exist before the load.
pub fn undropped(load: &FileLoad, changed: &[ChangedRelation]) -> Vec<ChangedRelation> {
    let dropped: Vec<ChangedRelation> =
        load.drop.iter().flat_map(|sql| user_text::changes(sql.as_bytes())).collect();
    let stays = |relation: &&ChangedRelation| !dropped.iter().any(|other| other.is_same(relation));
    changed.iter().filter(stays).cloned().collect()
}

/// A summary of the load for the owner of the server: `drops and loads customer, orders`.
pub fn words(load: &FileLoad, changed: &[ChangedRelation]) -> String {
    let mut dropped = Vec::new();
    for sql in &load.drop {
        let names = user_text::changes(sql.as_bytes()).into_iter().map(|relation| relation.name);
        let before = dropped.len();
        dropped.extend(names);
        // Such as a function.
        if dropped.len() == before {
            dropped.push(sql.clone());
        }
    }
    let names: Vec<&str> = changed.iter().map(|relation| relation.name.as_str()).collect();
    let (dropped_names, names) = (dropped.join(", "), names.join(", "));
    let is_changed = |name: &String| {
        changed.iter().any(|relation| relation.is_same(&ChangedRelation::table(name)))
    };
    match dropped.is_empty() {
        true => format!("loads {names}"),
        false if dropped.iter().all(is_changed) && undropped(load, changed).is_empty() => {
            format!("drops and loads {names}")
        }
        false => format!("drops {dropped_names}, then loads {names}"),
    }
}

/// Drops what the workload says before a load. Nothing is dropped if something else is in the way.
/// Returns what the load will change.
///
/// # Errors
/// A relation is in the way, or the server refuses. The error is a complete message.
pub(super) fn make_way(
    load: &FileLoad,
    dialect: Dialect,
    connector: &Connector,
) -> Result<Vec<ChangedRelation>, String> {
    let changed = of_load(load, dialect)?;
    let mut session = connector.open(0)?;
    for relation in undropped(load, &changed) {
        if is_there(&relation, dialect, &mut session)? {
            return Err(format!(
                "failed to load: {} is there already, and `drop` of [load] does not name it",
                relation.name
            ));
        }
    }
    for sql in &load.drop {
        session.simple(sql).map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    }
    Ok(changed)
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
        let name = &relation.name;
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
    changed: &mut Vec<ChangedRelation>,
    path: &Path,
    dialect: Dialect,
) -> Result<(), String> {
    let fault = |what: String| format!("failed to read {}: {what}", path.display());
    let mut file = SqlFile::open(path, dialect).map_err(fault)?;
    while let Some(chunk) = file.next().map_err(fault)? {
        match chunk {
            SqlChunk::Statement(sql, _) => add(changed, user_text::changes(&sql)),
            SqlChunk::Copy(sql, _) => add(changed, user_text::changes(sql.as_bytes())),
            SqlChunk::CopyLine(_) | SqlChunk::CopyEnd => {}
        }
    }
    Ok(())
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
    use crate::driver::request::CsvFile;

    #[test]
    fn a_load_changes_what_its_files_name_each_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let schema = file(
            "schema.sql",
            "CREATE TABLE shop.customer (id int);\nCREATE TABLE orders (id int);\n\
             COPY orders (id) FROM stdin;\n1\tDROP TABLE other;\n\\.\n\
             CREATE VIEW rich AS SELECT 1;\nCOMMENT ON VIEW rich IS 'x';\n",
        );
        let index = file("index.sql", "CREATE INDEX i ON customer (id);\nALTER TABLE rich ADD x;");
        let data = CsvFile {
            path: folder.path().join("none.csv"),
            table: "customer".to_owned(),
            columns: Vec::new(),
            hex: Vec::new(),
            null: String::new(),
            delimiter: b',',
            expect_rows: None,
        };
        let drop = ["DROP TABLE IF EXISTS orders, customer"].map(str::to_owned).to_vec();
        let (schema, data, index) = (vec![schema], vec![data], vec![index]);
        let load = FileLoad { drop, schema, data, index, ..FileLoad::default() };
        let changed = of_load(&load, Dialect::Postgres).unwrap();
        let entries = |all: &[ChangedRelation]| -> Vec<String> {
            all.iter().map(ChangedRelation::drop_entry).collect()
        };
        let view = "DROP VIEW IF EXISTS rich";
        assert_eq!(entries(&changed), ["shop.customer", "orders", view]);
        assert_eq!(entries(&undropped(&load, &changed)), [view]);
        let said = |drop: &[&str]| {
            let drop = drop.iter().map(|sql| (*sql).to_owned()).collect();
            words(&FileLoad { drop, ..load.clone() }, &changed)
        };
        let (tables, function) = ("DROP TABLE orders, customer", "DROP FUNCTION f");
        assert_eq!(said(&[]), "loads shop.customer, orders, rich");
        assert_eq!(said(&[tables, view]), "drops and loads shop.customer, orders, rich");
        assert_eq!(
            said(&[tables, function]),
            "drops orders, customer, DROP FUNCTION f, then loads shop.customer, orders, rich"
        );
        let load = FileLoad { drop: Vec::new(), ..load };
        assert_eq!(undropped(&load, &changed), changed);
    }
}
