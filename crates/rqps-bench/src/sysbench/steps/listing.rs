//! Lists statements for readers: long lists are shortened, repetitions counted.

use rqps_model::dialect::Dialect;
use rqps_model::script::{Operation, Script};

/// The statements of one event for readers, with BEGIN and COMMIT.
pub fn statements(dialect: Dialect, script: &Script) -> Vec<String> {
    let mut lines = operations(dialect, script);
    if script.has_transaction() {
        lines.insert(0, "BEGIN".to_string());
        lines.push("COMMIT".to_string());
    }
    lines
}

/// The statements of one event for readers, without BEGIN and COMMIT: one line per operation.
pub fn operations(dialect: Dialect, script: &Script) -> Vec<String> {
    let line = |operation: &Operation| {
        let sql = shortened(dialect, &operation.sql);
        let repeat = operation.repeat;
        if repeat > 1 { format!("{repeat} × {sql}") } else { sql }
    };
    script.operations().map(line).collect()
}

/// Shortens `IN (?, ?, … ?)` of more than three members to `IN (100 × ?)` or `IN ($1, …, $100)`.
fn shortened(dialect: Dialect, sql: &str) -> String {
    let parts = sql
        .split_once(" IN (")
        .and_then(|(head, rest)| rest.split_once(')').map(|(list, tail)| (head, list, tail)));
    let Some((head, list, tail)) = parts else { return sql.to_string() };
    let members: Vec<&str> = list.split(", ").collect();
    let (Some(first), Some(last)) = (members.first(), members.last()) else {
        return sql.to_string();
    };
    if members.len() <= 3 {
        return sql.to_string();
    }
    match dialect {
        Dialect::Postgres => format!("{head} IN ({first}, …, {last}){tail}"),
        _ => format!("{head} IN ({} × {first}){tail}", members.len()),
    }
}
