//! Statements beside those that the server saw, which keep a long run at work: a deleted row comes
//! back, a counter returns to its value, a key that runs out is given again.

use std::collections::BTreeMap;

use super::facts::{DatabaseSurvey, TableFacts, TopStatement};
use super::keys::{self, PLENTY};
use super::named_tables::NamedTables;
use super::token_tree::TokenTree;
use super::values::{Meaning, RowOfValues};
use super::written::Target;
use rqps_model::dialect::Dialect;

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
        let is_new = |column: &usize| keys::must_be_new(table, *column, columns);
        let has_new = self.found_by.iter().any(|(column, _)| is_new(column));
        Some((columns, has_new && keys::is_referenced(&found.tables, self.table)))
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
    let is_known = found_by.len() == meaning.guesses.len()
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

/// An UPDATE that undoes what another adds to counters.
pub(super) struct Undone {
    pub(super) sql: String,
    /// It comes first: a counter that is lowered may not go below its bound.
    pub(super) is_first: bool,
}

/// What undoes an UPDATE whose counters would leave their columns; `name` spells a value.
pub(super) fn undone(
    tables: &[TableFacts],
    statement: &TopStatement,
    name: impl Fn(usize) -> String,
) -> Option<Undone> {
    let tree = TokenTree::of(statement);
    let target = Target::of(&tree, tables).filter(|_| statement.is_update())?;
    let counters = target.counters(&tree);
    let is_first = counters.iter().any(|(at, _)| tree.is_sign(*at, "-"));
    let columns = &tables[target.table].columns;
    let is_narrow = counters.iter().any(|(_, column)| columns[*column].room_to_count() < PLENTY);
    if !is_first && !is_narrow {
        return None;
    }
    let sql = tree.with(|at| {
        if counters.iter().any(|(sign, _)| *sign == at) {
            Some(if tree.is_sign(at, "-") { "+" } else { "-" }.to_owned())
        } else {
            tree.value(at).map(&name)
        }
    });
    Some(Undone { sql, is_first })
}

/// An INSERT whose row also gets its key, because numbers that the server gives would run out. The
/// statement itself where they do not.
pub(super) fn with_own_key(statement: TopStatement, tables: &[TableFacts]) -> TopStatement {
    let tree = TokenTree::of(&statement);
    let target = Target::of(&tree, tables).filter(|_| statement.is_insert());
    let Some(Target { table, columns, list: Some(list), values: Some(values), .. }) = target else {
        return statement;
    };
    let facts = &tables[table];
    let [key] = facts.key[..] else { return statement };
    let column = &facts.columns[key];
    let is_given = columns.contains(&Some(key)) || !column.is_whole();
    if is_given || column.most_of_type() >= PLENTY {
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
    use super::super::facts::{ColumnFacts, ColumnValues};
    use super::super::statements::meaning;
    use super::*;

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
        assert_eq!(one.choices, [vec![0, 1, 2], vec![0, 1, 2]]);
        assert_eq!(one.found_by, [(0, 0), (1, 1)]);
        let row = back("DELETE FROM product WHERE (id, stock) = ($1, $2)").unwrap();
        assert_eq!((row.choices, row.found_by), (one.choices, one.found_by));
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
            let found = undone(&tables(), &of(sql), |value| format!(":v{value}"));
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
    }

    #[test]
    fn a_number_of_the_server_that_runs_out_is_given() {
        let check = |sql: &str, want: &str| assert_eq!(with_own_key(of(sql), &tables()).sql, want);
        check(
            "INSERT INTO product (stock) VALUES ($1), ($2)",
            "INSERT INTO product (id, stock) OVERRIDING SYSTEM VALUE VALUES ($3, $1), ($4, $2)",
        );
        let given = "INSERT INTO product (id, stock) VALUES ($1, $2)";
        check(given, given);
    }
}
