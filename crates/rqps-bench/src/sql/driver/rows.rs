//! Rows of a database from which a draft takes values: those that others reference, and those that
//! have several values of a statement.

use std::collections::BTreeSet;

use super::facts::{AskDatabase, DatabaseSurvey, TableFacts, TopStatement};
use super::keys::{must_be_new, reference_of};
use super::pairs;
use super::statements::{OWN, meaning};
use super::values::{Meaning, RowOfValues, ValueGuess};
use rqps_model::dialect::Dialect;

/// Rows of a referenced table that a draft chooses from.
const SAMPLE: usize = 1000;

/// Longest sampled value, bytes.
const LONGEST: usize = 200;

/// Reads rows of the tables that statements reference by what they store, and those from which they
/// take several values together. Returns the referenced columns that stand alone, whose values may
/// be a range.
pub(super) fn learn(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    found: &mut DatabaseSurvey,
) -> Vec<(usize, usize)> {
    let mut stored: Vec<(usize, usize)> = Vec::new();
    let mut together: BTreeSet<(usize, Vec<usize>)> = BTreeSet::new();
    for statement in &found.statements {
        let meaning = meaning(statement, &found.tables);
        stored.extend(meaning.guesses.iter().filter_map(|guess| match guess {
            ValueGuess::Stored(table, column) => Some((*table, *column)),
            _ => None,
        }));
        together.extend(
            drawn_together(&found.tables, statement, &meaning)
                .iter()
                .map(|row| (row.table, row.columns.iter().map(|(column, _)| *column).collect())),
        );
        together.extend(meaning.guesses.iter().filter_map(|guess| {
            match guess {
                ValueGuess::Column(table, column) => Some((*table, vec![*column]))
                    .filter(|_| found.tables[*table].columns[*column].is_sparse),
                _ => None,
            }
        }));
        let back = pairs::put_back(&found.tables, statement, &meaning);
        let choices = back.into_iter().flat_map(|back| back.choices.map(|it| (back.table, it)));
        together.extend(choices);
    }
    for (table, columns) in together {
        let rows = sample(dialect, ask, &found.tables[table], &columns);
        found.rows.insert((table, columns), rows);
    }
    let mut alone = Vec::new();
    for own in 0..found.tables.len() {
        for number in 0..found.tables[own].references.len() {
            let key = found.tables[own].references[number].clone();
            if !key.columns.iter().any(|column| stored.contains(&(own, *column))) {
                continue;
            }
            let sample = sample(dialect, ask, &found.tables[key.table], &key.referenced);
            found.tables[own].references[number].sample = sample;
            alone.extend(match key.referenced.as_slice() {
                [column] => Some((key.table, *column)),
                _ => None,
            });
        }
    }
    alone
}

/// The values of a statement that come from one row of a table: those of several columns that it
/// compares with one row, and those that it stores in one, but for references and new keys.
pub(super) fn drawn_together(
    tables: &[TableFacts],
    statement: &TopStatement,
    meaning: &Meaning,
) -> Vec<RowOfValues> {
    let of_row = |row: &RowOfValues| {
        let table = &tables[row.table];
        let stored: Vec<usize> = row.columns.iter().map(|(column, _)| *column).collect();
        let is_other = |(column, _): &(usize, usize)| {
            let is_free = reference_of(table, *column, &stored).is_none()
                && !must_be_new(table, *column, &stored);
            (!row.is_stored || is_free)
                && (!statement.is_mysql || table.columns[*column].has_text())
        };
        let columns = row.columns.iter().filter(|pair| is_other(pair)).copied().collect();
        RowOfValues { columns, ..row.clone() }
    };
    let rows = meaning.rows.iter().map(of_row);
    rows.filter(|row| row.columns.len() > 1).collect()
}

/// Some rows of these columns; none if they cannot be read.
fn sample(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    table: &TableFacts,
    columns: &[usize],
) -> Vec<Vec<String>> {
    let names: Vec<&str> =
        columns.iter().map(|column| table.columns[*column].name.as_str()).collect();
    let (list, from) = (names.join(", "), &table.name);
    let random = if dialect == Dialect::Mysql { "rand()" } else { "random()" };
    let known: Vec<String> = names.iter().map(|name| format!("{name} IS NOT NULL")).collect();
    let known = known.join(" AND ");
    let sql = format!(
        "SELECT {list} FROM (SELECT {list} FROM {from} WHERE {known} LIMIT 100000) AS {OWN} \
         ORDER BY {random} LIMIT {SAMPLE}"
    );
    let rows = ask(&sql).unwrap_or_default().into_iter();
    let whole = |row: Vec<Option<String>>| row.into_iter().collect::<Option<Vec<String>>>();
    let is_short = |row: &Vec<String>| row.iter().all(|text| text.len() <= LONGEST);
    let mut rows: Vec<Vec<String>> = rows.filter_map(whole).filter(is_short).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}
