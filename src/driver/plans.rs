//! Query plans of every statement kind, with the same sample values on every target so that plans
//! compare.

use std::collections::BTreeMap;

use crate::domain::build::Dialect;
use crate::domain::script::{Operation, Parameter, Protocol, Script};
use crate::driver::protocol::Job;
use crate::driver::session::Session;

/// The plan of every kind on table 1 as text, and notes on those that could not be had.
pub(crate) fn capture(
    job: &Job,
    script: &Script,
    session: &mut Session,
) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut plans, mut notes) = (BTreeMap::new(), Vec::new());
    for operation in &script.operations {
        let sql = with_samples(operation, job.dialect, job.rows);
        match session.rows(&format!("{}{sql}", explain(job.dialect))) {
            Ok(rows) => {
                plans.insert(operation.kind.clone(), spell(job.dialect, &rows));
            }
            // MySQL before 5.6.3 explains SELECT only. A step is not given up for a plan.
            Err(error) => {
                notes.push(format!("no query plan of {}: failed to {error}", operation.kind));
            }
        }
    }
    (plans, notes)
}

fn explain(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "EXPLAIN (VERBOSE false, COSTS OFF) ",
        Dialect::Mysql => "EXPLAIN ",
        Dialect::Sqlite => "EXPLAIN QUERY PLAN ",
        Dialect::Fake => "plan of ",
    }
}

/// SQLite's first three columns are numbers of its bytecode; only the fourth says something.
fn spell(dialect: Dialect, rows: &[Vec<Option<String>>]) -> String {
    let skip = if dialect == Dialect::Sqlite { 3 } else { 0 };
    let lines = rows.iter().map(|row| {
        let cells: Vec<&str> =
            row.iter().skip(skip).map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
        cells.join("\t")
    });
    lines.collect::<Vec<String>>().join("\n")
}

/// The statement on table 1 with literals for its placeholders: `{n}` in text protocol, `$n` on
/// Postgres, `?` in order elsewhere.
fn with_samples(operation: &Operation, dialect: Dialect, rows: u64) -> String {
    let sql = operation.sql.replace("{table}", "1");
    let values = samples(&operation.parameters, rows);
    match (operation.protocol, dialect) {
        (Protocol::Text, _) => numbered(&sql, &values, |number| format!("{{{number}}}")),
        (Protocol::Prepared, Dialect::Postgres) => {
            numbered(&sql, &values, |number| format!("${number}"))
        }
        (Protocol::Prepared, _) => {
            let mut values = values.iter();
            sql.chars().fold(String::new(), |mut text, letter| {
                match (letter, letter == '?') {
                    (_, true) => text.push_str(values.next().map_or("?", String::as_str)),
                    (other, false) => text.push(other),
                }
                text
            })
        }
    }
}

/// From the last number down, so that `$1` does not eat the beginning of `$12`.
fn numbered(sql: &str, values: &[String], mark: impl Fn(usize) -> String) -> String {
    (1..=values.len())
        .rev()
        .fold(sql.to_owned(), |text, number| text.replace(&mark(number), &values[number - 1]))
}

/// Values from the middle of the table on, each id another.
fn samples(parameters: &[Parameter], rows: u64) -> Vec<String> {
    let middle = (rows / 2).max(1);
    let (mut last_id, mut start) = (middle, middle);
    let mut values = Vec::with_capacity(parameters.len());
    for (index, parameter) in parameters.iter().enumerate() {
        values.push(match parameter {
            Parameter::Id | Parameter::Key => {
                last_id = middle + index as u64;
                last_id.to_string()
            }
            Parameter::FirstId => "1".to_owned(),
            Parameter::SameId => last_id.to_string(),
            Parameter::HotId { offset } => (rows / 2 + u64::from(*offset)).to_string(),
            Parameter::RangeStart => {
                start = middle;
                start.to_string()
            }
            Parameter::RangeEnd { span } => (start + u64::from(*span)).to_string(),
            Parameter::ColumnC | Parameter::ColumnPad => "'00000000000'".to_owned(),
        });
    }
    values
}
