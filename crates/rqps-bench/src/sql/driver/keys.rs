//! Foreign keys and unique indexes of a database: what an INSERT or UPDATE must heed, and values
//! that foreign keys allow.

use super::facts::{AskDatabase, ColumnValues, ForeignKey, TableFacts, TopStatement};
use super::names::{bare, plain};
use super::values::{Meaning, RowOfValues};
use rqps_model::dialect::Dialect;

/// A column with fewer new values uses them up within a run.
pub(super) const PLENTY: i64 = 200_000_000;

/// Reads foreign keys and unique indexes.
pub(super) fn read(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    tables: &mut [TableFacts],
) -> Result<(), String> {
    let rows = ask(foreign_keys(dialect))?;
    let mut before: Option<[String; 3]> = None;
    for row in rows {
        let text = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
        let names = [plain(dialect, &text(0)), plain(dialect, &text(1)), text(2)];
        let is_called = |table: &TableFacts, name: &str| match dialect {
            // It knows a table in any case, and has no schemas here.
            Dialect::Sqlite => bare(&table.name).eq_ignore_ascii_case(bare(name)),
            _ => table.name == name,
        };
        let of = |name: &str| tables.iter().position(|table| is_called(table, name));
        let (Some(own), Some(other)) = (of(&names[0]), of(&names[1])) else { continue };
        let is_next = before.as_ref() == Some(&names);
        let place = match tables[own].references.last().filter(|_| is_next) {
            Some(key) => key.columns.len(),
            None => 0,
        };
        let column = tables[own].column(bare(&text(3)));
        // SQLite leaves the name out where it is the primary key.
        let referenced = match bare(&text(4)) {
            "" => tables[other].key.get(place).copied(),
            name => tables[other].column(name),
        };
        let (Some(column), Some(referenced)) = (column, referenced) else { continue };
        if !is_next {
            let key = ForeignKey { table: other, ..ForeignKey::default() };
            tables[own].references.push(key);
            before = Some(names);
        }
        if let Some(key) = tables[own].references.last_mut() {
            key.columns.push(column);
            key.referenced.push(referenced);
        }
    }
    unique_indexes(dialect, ask, tables)
}

/// The statement that lists foreign keys, a column a row: tables, name of the key, columns.
fn foreign_keys(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => {
            "SELECT c.conrelid::regclass::text, c.confrelid::regclass::text, c.oid, \
             quote_ident(a.attname), quote_ident(f.attname) FROM pg_constraint c \
             CROSS JOIN LATERAL unnest(c.conkey, c.confkey) \
             WITH ORDINALITY AS k(own, other, place) \
             JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.own \
             JOIN pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = k.other \
             WHERE c.contype = 'f' ORDER BY 1, c.oid, k.place"
        }
        Dialect::Mysql => {
            "SELECT CONCAT('`', REPLACE(TABLE_NAME, '`', '``'), '`'), \
             CONCAT('`', REPLACE(REFERENCED_TABLE_NAME, '`', '``'), '`'), CONSTRAINT_NAME, \
             COLUMN_NAME, REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE \
             WHERE TABLE_SCHEMA = DATABASE() AND REFERENCED_TABLE_SCHEMA = DATABASE() \
             ORDER BY TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION"
        }
        _ => {
            "SELECT '\"' || replace(m.name, '\"', '\"\"') || '\"', \
             '\"' || replace(f.\"table\", '\"', '\"\"') || '\"', f.id, f.\"from\", f.\"to\" \
             FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f \
             WHERE m.type = 'table' ORDER BY m.name, f.id, f.seq"
        }
    }
}

/// Reads unique indexes. Without statements, as of SQLite, nothing is inserted.
fn unique_indexes(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    tables: &mut [TableFacts],
) -> Result<(), String> {
    for table in &mut *tables {
        if !table.key.is_empty() {
            table.unique.push(table.key.clone());
        }
    }
    let sql = match dialect {
        Dialect::Postgres => {
            "SELECT i.indrelid::regclass::text, i.indexrelid, quote_ident(a.attname) \
             FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) \
             WITH ORDINALITY AS k(number, place) \
             JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number \
             WHERE i.indisunique AND NOT i.indisprimary ORDER BY 1, 2, k.place"
        }
        Dialect::Mysql => {
            "SELECT CONCAT('`', REPLACE(TABLE_NAME, '`', '``'), '`'), INDEX_NAME, COLUMN_NAME \
             FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
             AND NON_UNIQUE = 0 AND INDEX_NAME <> 'PRIMARY' \
             ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
        }
        _ => return Ok(()),
    };
    let mut before = None;
    for row in ask(sql)? {
        let text = |index: usize| row.get(index).cloned().flatten().unwrap_or_default();
        let (name, index) = (plain(dialect, &text(0)), text(1));
        let Some(table) = tables.iter_mut().find(|table| table.name == name) else { continue };
        let Some(column) = table.column(bare(&text(2))) else { continue };
        let this = Some((name, index));
        match table.unique.last_mut().filter(|_| before == this) {
            Some(columns) => columns.push(column),
            None => table.unique.push(vec![column]),
        }
        before = this;
    }
    Ok(())
}

/// The reference of a table by a column whose columns are all in `stored`; that of most columns,
/// which the others follow.
pub(super) fn reference_of<'a>(
    table: &'a TableFacts,
    column: usize,
    stored: &[usize],
) -> Option<(usize, &'a ForeignKey)> {
    let is_stored = |key: &&ForeignKey| key.columns.iter().all(|column| stored.contains(column));
    let keys = table.references.iter().enumerate();
    let keys = keys.filter(|(_, key)| key.columns.contains(&column) && is_stored(key));
    keys.max_by_key(|(_, key)| key.columns.len())
}

/// True if new rows need a new value in this column: it is the last of a unique index that is
/// neither a reference nor left to the server.
pub(super) fn must_be_new(table: &TableFacts, column: usize, stored: &[usize]) -> bool {
    let is_free = |column: &&usize| {
        let facts = &table.columns[**column];
        let is_reference = table.references.iter().any(|key| key.columns.contains(*column));
        !is_reference && (facts.is_whole() || facts.is_text())
    };
    let of_index = |index: &Vec<usize>| match index.iter().all(|column| stored.contains(column)) {
        // A value of another type is better marked than repeated.
        true => index
            .iter()
            .rfind(is_free)
            .or_else(|| {
                index.iter().rfind(|column| {
                    !table.references.iter().any(|key| key.columns.contains(*column))
                })
            })
            .copied(),
        false => None,
    };
    table.unique.iter().any(|index| of_index(index) == Some(column))
}

/// True if a value of this table can be refused because of a foreign key: it references, or others
/// reference it.
pub(super) fn is_bound(tables: &[TableFacts], table: usize) -> bool {
    !tables[table].references.is_empty() || is_referenced(tables, table)
}

/// True if other rows may reference those of this table.
pub(super) fn is_referenced(tables: &[TableFacts], table: usize) -> bool {
    tables.iter().any(|other| other.references.iter().any(|key| key.table == table))
}

/// True if a unique index consists of references only: a new row may find none that is free.
pub(super) fn has_unique_references(table: &TableFacts) -> bool {
    unique_references(table).is_some()
}

/// The columns of a unique index that consists of references only.
fn unique_references(table: &TableFacts) -> Option<&Vec<usize>> {
    let is_reference =
        |column: &usize| table.references.iter().any(|key| key.columns.contains(column));
    table.unique.iter().find(|index| index.iter().all(is_reference))
}

/// Columns with the numbers of their values.
pub(super) type ColumnsAndValues = Vec<(usize, usize)>;

/// The rows that an INSERT needs to be away, because a unique index of its table has few free keys
/// or consists of references only: the table, and for each row the columns of that index with the
/// numbers of their values. None if the statement says itself what happens to such a row.
pub(super) fn freed_rows(
    tables: &[TableFacts],
    statement: &TopStatement,
    meaning: &Meaning,
) -> Option<(usize, Vec<ColumnsAndValues>)> {
    let upper = statement.sql.to_uppercase();
    let decides = ["REPLACE", "IGNORE", "ON CONFLICT", "ON DUPLICATE"];
    if !statement.is_insert() || decides.iter().any(|words| upper.contains(words)) {
        return None;
    }
    let rows: Vec<&RowOfValues> = meaning.rows.iter().filter(|row| row.is_stored).collect();
    let table = rows.first()?.table;
    let of_row = |index: &[usize], row: &RowOfValues| -> Option<ColumnsAndValues> {
        let of_column = |column: &usize| row.columns.iter().find(|(it, _)| it == column).copied();
        index.iter().map(of_column).collect()
    };
    let of_index = |index: &Vec<usize>| -> Option<Vec<ColumnsAndValues>> {
        rows.iter().map(|row| of_row(index, row)).collect()
    };
    let facts = &tables[table];
    let is_scarce = |index: &&Vec<usize>| {
        index.iter().any(|column| {
            must_be_new(facts, *column, index) && facts.columns[*column].new_values() < PLENTY
        })
    };
    let full = unique_references(facts).into_iter().chain(facts.unique.iter().filter(is_scarce));
    Some((table, full.into_iter().find_map(of_index)?))
}

/// Tables in an order in which they can be dropped: those that reference before those that they
/// reference. Tables whose references form a circle stand together.
pub(super) fn drop_order(tables: &[TableFacts]) -> Vec<Vec<usize>> {
    let mut left: Vec<usize> = (0..tables.len()).collect();
    let mut order = Vec::new();
    while !left.is_empty() {
        let is_referenced = |table: usize| {
            left.iter()
                .filter(|other| **other != table)
                .any(|other| tables[*other].references.iter().any(|key| key.table == table))
        };
        let (free, bound): (Vec<usize>, Vec<usize>) =
            left.iter().copied().partition(|table| !is_referenced(*table));
        if free.is_empty() {
            order.push(bound);
            break;
        }
        order.extend(free.into_iter().map(|table| vec![table]));
        left = bound;
    }
    order
}

/// The values of a column of a referenced table, if any of them can be taken: a whole range, or a
/// few.
pub(super) fn few_values(
    key: &ForeignKey,
    tables: &[TableFacts],
    most: usize,
) -> Option<ColumnValues> {
    let [referenced] = key.referenced.as_slice() else { return None };
    let column = &tables[key.table].columns[*referenced];
    if column.is_dense {
        return Some(column.values.clone());
    }
    let texts: Vec<String> = key.sample.iter().flatten().cloned().collect();
    (!texts.is_empty() && texts.len() <= most).then_some(ColumnValues::Sample(texts))
}

#[cfg(test)]
mod tests {
    use super::super::facts::ColumnFacts;
    use super::super::statements::meaning;
    use super::*;

    /// Tables with two columns each, and references of their second columns.
    fn tables(references: &[(usize, usize)], count: usize) -> Vec<TableFacts> {
        let column = |name: &str| ColumnFacts {
            name: name.to_owned(),
            type_name: "integer".to_owned(),
            ..ColumnFacts::default()
        };
        let table = |number: usize| TableFacts {
            name: format!("t{number}"),
            columns: vec![column("id"), column("other")],
            key: vec![0],
            unique: vec![vec![0]],
            ..TableFacts::default()
        };
        let mut tables: Vec<TableFacts> = (0..count).map(table).collect();
        for (own, other) in references {
            let (columns, referenced) = (vec![1], vec![0]);
            let key = ForeignKey { columns, table: *other, referenced, ..ForeignKey::default() };
            tables[*own].references.push(key);
        }
        tables
    }

    #[test]
    fn what_references_is_dropped_first_and_circles_together() {
        let order = |references: &[(usize, usize)]| drop_order(&tables(references, 4));
        assert_eq!(order(&[]), [[0], [1], [2], [3]]);
        assert_eq!(order(&[(0, 1), (1, 2), (0, 0)]), [[0], [3], [1], [2]]);
        assert_eq!(order(&[(1, 2), (2, 1), (2, 0)]), [vec![3], vec![0, 1, 2]]);
    }

    #[test]
    fn references_and_unique_indexes_are_read_column_by_column() {
        let mut found = tables(&[], 3);
        let cell = |text: &str| Some(text.to_owned());
        let row =
            |cells: &[&str]| -> Vec<Option<String>> { cells.iter().map(|it| cell(it)).collect() };
        let mut ask = |sql: &str| -> Result<Vec<Vec<Option<String>>>, String> {
            Ok(if sql.contains("pg_constraint") {
                vec![
                    row(&["t1", "t0", "7", "id", "id"]),
                    row(&["t1", "t0", "7", "other", "other"]),
                    row(&["t1", "t1", "8", "other", "id"]),
                    row(&["t1", "far", "9", "other", "id"]),
                ]
            } else {
                vec![
                    row(&["t2", "5", "other"]),
                    row(&["t2", "6", "id"]),
                    row(&["t2", "6", "other"]),
                ]
            })
        };
        read(Dialect::Postgres, &mut ask, &mut found).expect("answers");
        let keys: Vec<(usize, &[usize], &[usize])> = found[1]
            .references
            .iter()
            .map(|key| (key.table, key.columns.as_slice(), key.referenced.as_slice()))
            .collect();
        assert_eq!(keys, [(0, &[0, 1][..], &[0, 1][..]), (1, &[1], &[0])]);
        assert_eq!(found[2].unique, [vec![0], vec![0], vec![1], vec![0, 1]]);
        assert!(is_bound(&found, 0) && is_bound(&found, 1) && !is_bound(&found, 2));
        // The reference with the most columns counts, if all of them are stored.
        let table_of =
            |stored: &[usize]| reference_of(&found[1], 1, stored).map(|(_, key)| key.table);
        assert_eq!((table_of(&[0, 1]), table_of(&[1]), table_of(&[0])), (Some(0), Some(1), None));
    }

    #[test]
    fn a_key_of_few_numbers_is_given_again() {
        let mut tables = tables(&[], 1);
        let statement = TopStatement {
            sql: "INSERT INTO t0 (id, other) VALUES ($1, $2)".to_owned(),
            ..TopStatement::default()
        };
        let of =
            |tables: &[TableFacts]| freed_rows(tables, &statement, &meaning(&statement, tables));
        assert_eq!(of(&tables), None);
        tables[0].columns[0].type_name = "smallint".to_owned();
        assert_eq!(of(&tables), Some((0, vec![vec![(0, 0)]])));
    }

    #[test]
    fn new_rows_have_new_values_where_no_reference_decides() {
        let table = &tables(&[(0, 1)], 2)[0];
        assert!(must_be_new(table, 0, &[0, 1]));
        assert!(!must_be_new(table, 0, &[1]) && !must_be_new(table, 1, &[0, 1]));
        let line = TableFacts { unique: vec![vec![1, 0]], ..table.clone() };
        assert!(must_be_new(&line, 0, &[0, 1]) && !must_be_new(&line, 1, &[0, 1]));
        let pair = TableFacts { unique: vec![vec![1]], ..table.clone() };
        assert!(!must_be_new(&pair, 1, &[0, 1]));
        assert!(has_unique_references(&pair) && !has_unique_references(table));
        let freed = |sql: &str| {
            let statement = TopStatement { sql: sql.to_owned(), ..TopStatement::default() };
            let tables = std::slice::from_ref(&pair);
            freed_rows(tables, &statement, &meaning(&statement, tables))
        };
        let one = vec![vec![(1, 1)]];
        assert_eq!(freed("INSERT INTO t0 VALUES ($1, $2)"), Some((0, one)));
        assert_eq!(freed("INSERT INTO t0 (id) VALUES ($1)"), None);
        let two = vec![vec![(1, 1)], vec![(1, 3)]];
        assert_eq!(freed("INSERT INTO t0 VALUES ($1, $2), ($3, $4)"), Some((0, two)));
        assert_eq!(freed("REPLACE INTO t0 VALUES ($1, $2)"), None);
        assert_eq!(freed("INSERT INTO t0 VALUES ($1, $2) ON CONFLICT DO NOTHING"), None);
    }
}
