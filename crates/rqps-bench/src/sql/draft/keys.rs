//! Foreign keys and unique indexes of a database: what an INSERT or UPDATE must heed, and values
//! that foreign keys allow.

use std::collections::{BTreeMap, BTreeSet};

use super::ranges::{Meaning, RowOfValues, ValueGuess};
use super::statements::{TokenTree, bare, plain};
use super::survey::{
    AskDatabase, ColumnValues, DatabaseSurvey, ForeignKey, TableFacts, TopStatement,
};
use super::written::{NamedTables, Target};
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
fn is_referenced(tables: &[TableFacts], table: usize) -> bool {
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
type ColumnsAndValues = Vec<(usize, usize)>;

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
    let mut left: Vec<usize> = (0..tables.len()).filter(|table| !tables[*table].is_view).collect();
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

// Statements beside those that the server saw, which keep a long run at work: a deleted row comes
// back, a counter returns to its value, a key that runs out is given again.

/// The row that a DELETE takes away: an INSERT after it puts it back, or makes it before.
pub(super) struct PutBack {
    pub(super) table: usize,
    /// The columns that the INSERT names: all, or those that must have a value.
    pub(super) choices: [Vec<usize>; 2],
    /// Columns by which the DELETE finds the row, with the numbers of their values.
    pub(super) found_by: Vec<(usize, usize)>,
}

impl PutBack {
    /// The columns of the rows that were read; and true if the DELETE takes away a row with a new
    /// key, because others reference those that are there.
    pub(super) fn columns(&self, found: &DatabaseSurvey) -> Option<(&Vec<usize>, bool)> {
        let table = &found.tables[self.table];
        let has_rows = |columns: &&Vec<usize>| {
            let rows = found.rows.get(&(self.table, (*columns).clone()));
            rows.is_some_and(|rows| !rows.is_empty())
        };
        let columns = self.choices.iter().find(has_rows)?;
        let is_new = |column: &usize| must_be_new(table, *column, columns);
        let has_new = self.found_by.iter().any(|(column, _)| is_new(column));
        Some((columns, has_new && is_referenced(&found.tables, self.table)))
    }
}

/// The row that a DELETE of one row takes away. `None` for other statements.
pub(super) fn put_back(
    tables: &[TableFacts],
    statement: &TopStatement,
    meaning: &Meaning,
) -> Option<PutBack> {
    let tree = TokenTree::of(statement);
    let is_known = tree.is(0, "DELETE") && NamedTables::of(&tree, tables).count() == 1;
    // With an OR at any depth, it may delete more rows than the values name.
    if !is_known || (0..tree.nodes.len()).any(|at| tree.is(at, "OR")) {
        return None;
    }
    let [RowOfValues { table, columns: found_by, is_equal: true, .. }] = meaning.rows.as_slice()
    else {
        return None;
    };
    let facts = &tables[*table];
    let columns: Vec<usize> =
        (0..facts.columns.len()).filter(|column| !facts.columns[*column].is_computed).collect();
    let is_sent = |column: &usize| !statement.is_mysql || facts.columns[*column].has_text();
    // Other values of a list may delete more rows, but hardly do.
    let is_found_by = |(value, guess): (usize, &ValueGuess)| {
        let is_listed = |column| *guess == ValueGuess::Column(*table, column);
        found_by.iter().any(|(column, own)| *own == value || is_listed(*column))
    };
    let is_known = meaning.guesses.iter().enumerate().all(is_found_by)
        && found_by.iter().all(|(column, _)| columns.contains(column))
        && columns.iter().all(is_sent);
    let is_needed = |column: &usize| {
        !facts.columns[*column].is_nullable || found_by.iter().any(|(it, _)| it == column)
    };
    let needed = columns.iter().copied().filter(is_needed).collect();
    let (choices, found_by) = ([columns, needed], found_by.clone());
    is_known.then_some(PutBack { table: *table, choices, found_by })
}

/// The INSERT of such a row, with the names of parameters by column.
pub(super) fn insert(
    dialect: Dialect,
    facts: &TableFacts,
    names: &BTreeMap<usize, String>,
) -> String {
    let columns: Vec<&str> = names.keys().map(|it| facts.columns[*it].name.as_str()).collect();
    let values: Vec<String> = names.values().map(|name| format!(":{name}")).collect();
    let is_identity = names.keys().any(|column| facts.columns[*column].is_identity);
    let overriding =
        if is_identity && dialect == Dialect::Postgres { " OVERRIDING SYSTEM VALUE" } else { "" };
    let (columns, values) = (columns.join(", "), values.join(", "));
    format!("INSERT INTO {} ({columns}){overriding} VALUES ({values})", facts.name)
}

/// An UPDATE that undoes what another does to columns, which would leave their bounds.
pub(super) struct Undone {
    pub(super) sql: String,
    /// It comes first: a counter that is lowered may not go below its bound.
    pub(super) is_first: bool,
}

/// The table of an UPDATE and those of its columns that would grow beyond their bounds, but for
/// counters: they get a value back that the column has.
pub(super) fn outgrown(
    tables: &[TableFacts],
    statement: &TopStatement,
) -> Option<(usize, Vec<usize>)> {
    let tree = TokenTree::of(statement);
    let target = Target::of(&tree, tables).filter(|_| statement.is_update())?;
    let columns = &tables[target.table].columns;
    let is_bounded =
        |column: &usize| columns[*column].longest.is_some() || columns[*column].is_whole();
    let grown = target.grown(&tree).into_iter().map(|(column, ..)| column);
    Some((target.table, grown.filter(is_bounded).collect()))
}

/// What undoes an UPDATE whose columns would leave their bounds; `name` spells a value, and `again`
/// one of a column that has outgrown.
pub(super) fn undone(
    tables: &[TableFacts],
    statement: &TopStatement,
    name: impl Fn(usize) -> String,
    again: &BTreeMap<usize, String>,
) -> Option<Undone> {
    let tree = TokenTree::of(statement);
    let target = Target::of(&tree, tables)?;
    if statement.is_insert() {
        return upsert_undone(&tables[target.table], &target, &tree, name);
    }
    let counters = target.counters(&tree);
    if !statement.is_update() {
        return None;
    }
    let is_first = counters.iter().any(|(at, _)| tree.is_sign(*at, "-"));
    let columns = &tables[target.table].columns;
    let is_narrow = counters.iter().any(|(_, column)| columns[*column].room_to_count() < PLENTY);
    if !is_first && !is_narrow && again.is_empty() {
        return None;
    }
    let grown = target.grown(&tree);
    let sql = tree.with_parts(|at| {
        let part = grown.iter().find(|(_, begin, _)| *begin == at);
        if let Some((column, _, end)) = part
            && let Some(value) = again.get(column)
        {
            Some((*end, format!(":{value}")))
        } else if counters.iter().any(|(sign, _)| *sign == at) {
            Some((at + 1, if tree.is_sign(at, "-") { "+" } else { "-" }.to_owned()))
        } else {
            Some((at + 1, name(tree.value(at)?)))
        }
    });
    Some(Undone { sql, is_first })
}

/// What takes away again what an INSERT of one row adds to narrow columns of a row that is there.
fn upsert_undone(
    facts: &TableFacts,
    target: &Target<'_>,
    tree: &TokenTree<'_>,
    name: impl Fn(usize) -> String,
) -> Option<Undone> {
    let mut stored: BTreeMap<usize, String> = BTreeMap::new();
    for (at, number) in tree.values() {
        match target.inserted(tree, at) {
            Some((0, column)) => _ = stored.entry(column).or_insert_with(|| name(number)),
            Some(_) => return None,
            None => {}
        }
    }
    let amount = |sign: usize| {
        if let Some(number) = tree.value(sign + 1) {
            return Some(name(number));
        }
        // `excluded.plays`, `VALUES(plays)`.
        let column = facts.column(tree.name(sign + 3)?)?;
        stored.get(&column).cloned()
    };
    let is_narrow = |column: usize| facts.columns[column].room_to_count() < PLENTY;
    let counters = target.counters(tree).into_iter().filter(|(_, column)| is_narrow(*column));
    let assignments = counters.map(|(sign, column)| {
        let (column, amount) = (&facts.columns[column].name, amount(sign)?);
        Some(match tree.is_sign(sign, "+") {
            // Others may have taken it away meanwhile.
            true => format!("{column} = greatest({column}, {amount}) - {amount}"),
            false => format!("{column} = {column} + {amount}"),
        })
    });
    let assignments: Vec<String> = assignments.collect::<Option<_>>()?;
    let is_given = |key: &&Vec<usize>| key.iter().all(|column| stored.contains_key(column));
    let key = facts.unique.iter().find(is_given).filter(|_| !assignments.is_empty())?;
    let equal = |column: &usize| format!("{} = {}", facts.columns[*column].name, stored[column]);
    let key: Vec<String> = key.iter().map(equal).collect();
    let (assignments, key) = (assignments.join(", "), key.join(" AND "));
    let sql = format!("UPDATE {} SET {assignments} WHERE {key}", facts.name);
    Some(Undone { sql, is_first: false })
}

/// Keys that the server, or a query, numbers in an INSERT of these statements: their tables and
/// columns.
pub(super) fn numbered(found: &DatabaseSurvey) -> BTreeSet<(usize, usize)> {
    let of = |statement: &TopStatement| {
        let tree = TokenTree::of(statement);
        let target = Target::of(&tree, &found.tables).filter(|_| statement.is_insert())?;
        let facts = &found.tables[target.table];
        let [key] = facts.key[..] else { return None };
        let is_given = target.columns.contains(&Some(key)) && target.select.is_none();
        (!is_given && facts.columns[key].is_whole()).then_some((target.table, key))
    };
    found.statements.iter().filter_map(of).collect()
}

/// An INSERT whose row also gets its key, because numbers that the server gives would run out, or
/// meet those of rows that are made to be deleted (`deletes`) where none is below zero. The
/// statement itself where they do not.
pub(super) fn with_own_key(
    statement: TopStatement,
    tables: &[TableFacts],
    deletes: &[String],
) -> TopStatement {
    let tree = TokenTree::of(&statement);
    let target = Target::of(&tree, tables).filter(|_| statement.is_insert());
    let Some(Target { table, columns, list: Some(list), values: Some(values), .. }) = target else {
        return statement;
    };
    let facts = &tables[table];
    let [key] = facts.key[..] else { return statement };
    let column = &facts.columns[key];
    let is_given = columns.contains(&Some(key)) || !column.is_whole();
    let is_deleted = || deletes.iter().any(|sql| sql.contains(bare(&facts.name)));
    let meets = statement.is_mysql && column.type_name.contains("unsigned") && is_deleted();
    if is_given || column.most_of_type() >= PLENTY && !meets {
        return statement;
    }
    let mut next = tree.values().map(|(_, number)| number + 1).max().unwrap_or_default();
    let (mut sql, mut from) = (String::new(), 0);
    for (at, node) in tree.nodes.iter().enumerate() {
        let is_row = at > values && tree.is_sign(at, "(") && node.parent.is_none();
        let is_values = at == values && column.is_identity && !statement.is_mysql;
        let text = match (at == list, is_values, is_row) {
            (true, ..) => format!("{}, ", column.name),
            (_, true, _) => "OVERRIDING SYSTEM VALUE ".to_owned(),
            (.., true) if statement.is_mysql => "?, ".to_owned(),
            (.., true) => {
                next += 1;
                format!("${next}, ")
            }
            _ => continue,
        };
        let until = if is_values { node.begin } else { node.end };
        sql.push_str(&tree.sql[from..until]);
        sql.push_str(&text);
        from = until;
    }
    sql.push_str(&tree.sql[from..]);
    TopStatement { sql, seen: Vec::new(), counts: Vec::new(), ..statement }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::draft::statements::meaning;
    use crate::sql::draft::survey::ColumnFacts;

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

#[cfg(test)]
mod pairs_tests {
    use super::*;
    use crate::sql::draft::statements::meaning;
    use crate::sql::draft::survey::{ColumnFacts, ColumnValues};

    fn tables() -> Vec<TableFacts> {
        let column = |name: &str, type_name: &str| ColumnFacts {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            ..ColumnFacts::default()
        };
        let columns = vec![
            ColumnFacts { is_identity: true, ..column("id", "smallint") },
            ColumnFacts { values: ColumnValues::Whole(0, 9), ..column("stock", "integer") },
            column("rating", "tinyint"),
            ColumnFacts { is_computed: true, ..column("gross", "numeric") },
            column("hits", "tinyint unsigned"),
        ];
        let key = vec![0];
        let unique = vec![vec![0]];
        let name = "product".to_owned();
        vec![TableFacts { name, columns, key, unique, ..TableFacts::default() }]
    }

    fn of(sql: &str) -> TopStatement {
        TopStatement { sql: sql.to_owned(), ..TopStatement::default() }
    }

    #[test]
    fn a_deleted_row_comes_back_with_all_that_the_server_does_not_compute() {
        let back = |sql: &str| put_back(&tables(), &of(sql), &meaning(&of(sql), &tables()));
        let one = back("DELETE FROM product WHERE id = $1 AND stock = $2").unwrap();
        assert_eq!(one.choices, [vec![0, 1, 2, 4], vec![0, 1, 2, 4]]);
        assert_eq!(one.found_by, [(0, 0), (1, 1)]);
        let row = back("DELETE FROM product WHERE (id, stock) = ($1, $2)").unwrap();
        assert_eq!((row.choices, row.found_by), (one.choices, one.found_by));
        let listed = back("DELETE FROM product WHERE id = $1 AND stock IN ($2, $3)").unwrap();
        assert_eq!(listed.found_by, [(0, 0), (1, 1)]);
        for sql in [
            "DELETE FROM product WHERE id < $1",
            "DELETE FROM product WHERE id = $1 OR stock = $2",
            "DELETE FROM product WHERE id = $1 AND stock > $2",
            "DELETE FROM product WHERE (id, stock) >= ($1, $2)",
            "DELETE FROM product WHERE (id, stock) = ($1, $2) OR rating = 1",
            "DELETE FROM product WHERE (id = $1 AND stock = $2) OR rating = 1",
            "SELECT 1 FROM product WHERE id = $1",
        ] {
            assert!(back(sql).is_none(), "{sql}");
        }
        let names = BTreeMap::from([(0, "a".to_owned()), (1, "b".to_owned())]);
        let sql = insert(Dialect::Postgres, &tables()[0], &names);
        let want = "INSERT INTO product (id, stock) OVERRIDING SYSTEM VALUE VALUES (:a, :b)";
        assert_eq!(sql, want);
    }

    #[test]
    fn what_is_added_to_a_narrow_column_is_taken_away_again() {
        let check = |sql: &str, want: Option<(&str, bool)>| {
            let columns = outgrown(&tables(), &of(sql)).map(|(_, columns)| columns);
            let again = columns.unwrap_or_default().into_iter().map(|it| (it, format!("c{it}")));
            let again = again.collect();
            let found = undone(&tables(), &of(sql), |value| format!(":v{value}"), &again);
            let found = found.as_ref().map(|found| (found.sql.as_str(), found.is_first));
            assert_eq!(found, want, "{sql}");
        };
        check("UPDATE product SET stock = stock + $1 WHERE id = $2", None);
        check(
            "UPDATE product SET stock = stock - $1 WHERE id = $2",
            Some(("UPDATE product SET stock = stock + :v0 WHERE id = :v1", true)),
        );
        check(
            "UPDATE product p SET rating = p.rating + 1 WHERE id = $1",
            Some(("UPDATE product p SET rating = p.rating - 1 WHERE id = :v0", false)),
        );
        check("UPDATE product SET rating = $1 WHERE id = $2", None);
        check(
            "UPDATE product SET stock = round(stock * 1.05, 2), rating = rating + 1 WHERE id = $1",
            Some(("UPDATE product SET stock = :c1, rating = rating - 1 WHERE id = :v0", false)),
        );
        check(
            "UPDATE product SET rating = concat(rating, $1) WHERE id = $2",
            Some(("UPDATE product SET rating = :c2 WHERE id = :v1", false)),
        );
        check(
            "UPDATE product SET hits = hits + 1 WHERE stock = $1",
            Some(("UPDATE product SET hits = :c4 WHERE stock = :v0", false)),
        );
        // Factors and texts that are values of the draft change nothing.
        for sql in [
            "UPDATE product SET stock = stock * $1, rating = rating || $2 WHERE id = $3",
            "UPDATE product SET stock = rating * 2 WHERE id = $1",
        ] {
            check(sql, None);
        }
    }

    #[test]
    fn keys_that_no_value_gives_are_numbered() {
        let numbered = |sql: &str| {
            let (tables, statements) = (tables(), vec![of(sql)]);
            numbered(&DatabaseSurvey { tables, statements, ..DatabaseSurvey::default() })
        };
        let key = BTreeSet::from([(0, 0)]);
        assert_eq!(numbered("INSERT INTO product (stock) VALUES ($1)"), key);
        assert_eq!(numbered("INSERT INTO product (id) SELECT max(id) + 1 FROM product"), key);
        assert_eq!(numbered("INSERT INTO product (id, stock) VALUES ($1, $2)"), BTreeSet::new());
    }

    #[test]
    fn a_number_of_the_server_that_runs_out_is_given() {
        let check =
            |sql: &str, want: &str| assert_eq!(with_own_key(of(sql), &tables(), &[]).sql, want);
        check(
            "INSERT INTO product (stock) VALUES ($1), ($2)",
            "INSERT INTO product (id, stock) OVERRIDING SYSTEM VALUE VALUES ($3, $1), ($4, $2)",
        );
        let given = "INSERT INTO product (id, stock) VALUES ($1, $2)";
        check(given, given);
        // None of its numbers is below zero, and rows are made to be deleted.
        let mut tables = tables();
        tables[0].columns[0].type_name = "bigint unsigned".to_owned();
        let sql = "INSERT INTO product (stock) VALUES (?)".to_owned();
        let insert = TopStatement { sql, is_mysql: true, ..TopStatement::default() };
        let own = |deletes: &[String]| with_own_key(insert.clone(), &tables, deletes).sql;
        assert_eq!(own(&[]), insert.sql);
        let deletes = ["DELETE FROM `product` WHERE `id` = ?".to_owned()];
        assert_eq!(own(&deletes), "INSERT INTO product (id, stock) VALUES (?, ?)");
    }
}
