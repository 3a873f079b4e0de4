//! The statements of each microbenchmark by dialect.

use super::steps::{
    ALL_RANGES, Microbenchmark, POINT_SELECTS, Ranged, SbtestIndex, StatementShape,
    UPDATE_INLIST_IDS, ZIPF_EXPONENT,
};
use crate::sysbench::{C_LEN, PAD_LEN};
use rqps_model::dialect::Dialect;
use rqps_model::script::{Distribution, Operation, Parameter, Protocol, Script, TableChoice};

/// A new text for column c.
pub const COLUMN_C: Parameter = Parameter::Digits { bytes: C_LEN as u32 };
/// A new text for column pad.
pub const COLUMN_PAD: Parameter = Parameter::Digits { bytes: PAD_LEN as u32 };

/// The statements of a microbenchmark: prepared like those of sysbench, or all as text.
pub(super) fn script(dialect: Dialect, benchmark: &Microbenchmark, as_text: bool) -> Script {
    let script = prepared_script(dialect, benchmark);
    if as_text { plain(dialect, script) } else { script }
}

fn prepared_script(dialect: Dialect, benchmark: &Microbenchmark) -> Script {
    let n = benchmark.range;
    let transaction = matches!(
        benchmark.kind,
        StatementShape::ReadOnly(_) | StatementShape::ReadWrite | StatementShape::WriteOnly
    );
    let distribution = match benchmark.kind {
        StatementShape::UpdateZipf => Distribution::Zipfian { exponent: ZIPF_EXPONENT },
        _ => Distribution::Uniform,
    };
    let operations = match benchmark.kind {
        StatementShape::PointQuery => vec![point_select(dialect)],
        StatementShape::RandomPoints => {
            vec![in_list(dialect, "random_points", "c", "id", vec![Parameter::Id; n as usize])]
        }
        StatementShape::HotPoints => {
            let ids = (1..=n).map(|offset| Parameter::HotId { offset }).collect();
            vec![in_list(dialect, "hot_points", "c", "id", ids)]
        }
        StatementShape::Points { on, covered } => vec![index_points(dialect, on, covered, n)],
        StatementShape::Range { on, covered } => vec![index_range(dialect, on, covered, n)],
        StatementShape::Scan => vec![scan()],
        StatementShape::ReadOnly(ranges) => read_only(dialect, ranges, n),
        StatementShape::Count => {
            let sql = "SELECT count(c) FROM sbtest{table} WHERE id BETWEEN ? AND ?";
            vec![prepared(dialect, "count_ranges", sql, rows_range(n))]
        }
        StatementShape::ReadWrite => {
            let mut operations = read_only(dialect, ALL_RANGES, n);
            operations.extend(write_only(dialect));
            operations
        }
        StatementShape::WriteOnly => write_only(dialect),
        StatementShape::UpdateIndex => vec![index_update(dialect)],
        StatementShape::UpdateNonindex | StatementShape::UpdateZipf => {
            vec![non_index_update(dialect, Parameter::Id)]
        }
        StatementShape::UpdateOne => vec![non_index_update(dialect, Parameter::FirstId)],
        StatementShape::UpdateInlist => vec![update_in_list(dialect)],
        StatementShape::Delete => vec![delete(dialect)],
        StatementShape::Insert => vec![insert_text(dialect)],
    };
    Script::of(transaction, operations, distribution)
}

fn point_select(dialect: Dialect) -> Operation {
    let sql = "SELECT c FROM sbtest{table} WHERE id=?";
    prepared(dialect, "point_selects", sql, vec![Parameter::Id])
}

fn in_list(
    dialect: Dialect,
    kind: &str,
    columns: &str,
    on: &str,
    parameters: Vec<Parameter>,
) -> Operation {
    let list = vec!["?"; parameters.len()].join(", ");
    let sql = format!("SELECT {columns} FROM sbtest{{table}} WHERE {on} IN ({list})");
    prepared(dialect, kind, &sql, parameters)
}

fn index_points(dialect: Dialect, on: SbtestIndex, covered: bool, n: u32) -> Operation {
    let (column, columns) = index_columns(on, covered);
    let value = match on {
        SbtestIndex::Primary => Parameter::Id,
        SbtestIndex::Secondary => Parameter::Key,
    };
    in_list(dialect, "points", columns, column, vec![value; n as usize])
}

fn index_range(dialect: Dialect, on: SbtestIndex, covered: bool, n: u32) -> Operation {
    let (column, columns) = index_columns(on, covered);
    let sql = format!("SELECT {columns} FROM sbtest{{table}} WHERE {column} BETWEEN ? AND ?");
    let parameters = vec![Parameter::RangeStart, Parameter::RangeEnd { span: n }];
    prepared(dialect, "ranges", &sql, parameters)
}

/// The searched column and the selected columns.
fn index_columns(on: SbtestIndex, covered: bool) -> (&'static str, &'static str) {
    match (on, covered) {
        (SbtestIndex::Primary, true) => ("id", "id"),
        (SbtestIndex::Primary, false) => ("id", "id, c"),
        (SbtestIndex::Secondary, true) => ("k", "k"),
        (SbtestIndex::Secondary, false) => ("k", "k, c"),
    }
}

fn scan() -> Operation {
    Operation {
        kind: "scan".to_string(),
        sql: "SELECT * FROM sbtest{table} WHERE LENGTH(c) < 0".to_string(),
        protocol: Protocol::Text,
        parameters: Vec::new(),
        repeat: 1,
        table: TableChoice::ByClient,
        ..Operation::PLAIN
    }
}

fn read_only(dialect: Dialect, ranges: &[Ranged], n: u32) -> Vec<Operation> {
    let mut operations = vec![Operation { repeat: POINT_SELECTS, ..point_select(dialect) }];
    for range in ranges {
        let (kind, columns, tail) = match range {
            Ranged::Simple => ("simple_ranges", "c", ""),
            Ranged::Sum => ("sum_ranges", "SUM(k)", ""),
            Ranged::Order => ("order_ranges", "c", " ORDER BY c"),
            Ranged::Distinct => ("distinct_ranges", "DISTINCT c", " ORDER BY c"),
        };
        let sql = format!("SELECT {columns} FROM sbtest{{table}} WHERE id BETWEEN ? AND ?{tail}");
        operations.push(prepared(dialect, kind, &sql, rows_range(n)));
    }
    operations
}

/// The parameters of BETWEEN a AND a + n - 1: n rows.
fn rows_range(n: u32) -> Vec<Parameter> {
    vec![Parameter::RangeStart, Parameter::RangeEnd { span: n - 1 }]
}

fn write_only(dialect: Dialect) -> Vec<Operation> {
    let sql = "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (?, ?, ?, ?)";
    let row = vec![Parameter::SameId, Parameter::Key, COLUMN_C, COLUMN_PAD];
    let insert = prepared(dialect, "inserts", sql, row);
    vec![
        index_update(dialect),
        non_index_update(dialect, Parameter::Id),
        delete(dialect),
        Operation { table: TableChoice::SameAsPrevious, ..insert },
    ]
}

fn index_update(dialect: Dialect) -> Operation {
    let sql = "UPDATE sbtest{table} SET k=k+1 WHERE id=?";
    prepared(dialect, "index_updates", sql, vec![Parameter::Id])
}

fn non_index_update(dialect: Dialect, id: Parameter) -> Operation {
    let sql = "UPDATE sbtest{table} SET c=? WHERE id=?";
    prepared(dialect, "non_index_updates", sql, vec![COLUMN_C, id])
}

fn update_in_list(dialect: Dialect) -> Operation {
    let ids = UPDATE_INLIST_IDS as usize;
    let list = vec!["?"; ids].join(", ");
    let sql = format!("UPDATE sbtest{{table}} SET c=? WHERE id IN ({list})");
    let mut parameters = vec![COLUMN_C];
    parameters.resize(1 + ids, Parameter::Id);
    prepared(dialect, "inlist_updates", &sql, parameters)
}

fn delete(dialect: Dialect) -> Operation {
    let sql = "DELETE FROM sbtest{table} WHERE id=?";
    prepared(dialect, "deletes", sql, vec![Parameter::Id])
}

fn insert_text(dialect: Dialect) -> Operation {
    let sql = match dialect {
        Dialect::Postgres => "INSERT INTO sbtest{table} (k, c, pad) VALUES ({1}, {2}, {3})",
        Dialect::Sqlite => "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (NULL, {1}, {2}, {3})",
        Dialect::Mysql | Dialect::KeyValue | Dialect::Fake => {
            "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (0, {1}, {2}, {3})"
        }
    };
    Operation {
        kind: "inserts".to_string(),
        sql: sql.to_string(),
        protocol: Protocol::Text,
        parameters: vec![Parameter::Key, COLUMN_C, COLUMN_PAD],
        ..Operation::PLAIN
    }
}

/// A prepared statement on a table that it draws; `?` becomes the dialect's placeholder.
fn prepared(dialect: Dialect, kind: &str, sql: &str, parameters: Vec<Parameter>) -> Operation {
    Operation {
        kind: kind.to_string(),
        sql: placeholders(dialect, sql),
        protocol: Protocol::Prepared,
        parameters,
        ..Operation::PLAIN
    }
}

fn placeholders(dialect: Dialect, sql: &str) -> String {
    if dialect != Dialect::Postgres {
        return sql.to_string();
    }
    let mut numbered = String::with_capacity(sql.len() * 2);
    for (index, part) in sql.split('?').enumerate() {
        if index > 0 {
            numbered.push_str(&format!("${index}"));
        }
        numbered.push_str(part);
    }
    numbered
}

/// The statements as text with literals, which the server parses and plans each time, like
/// `--db-ps-mode=disable` of sysbench.
fn plain(dialect: Dialect, mut script: Script) -> Script {
    for operation in script.events.iter_mut().flat_map(|event| &mut event.operations) {
        if operation.protocol == Protocol::Prepared {
            let count = operation.parameters.len();
            operation.sql = match dialect {
                // From the last number down, so that `$1` does not match the beginning of `$12`.
                Dialect::Postgres => {
                    (1..=count).rev().fold(operation.sql.clone(), |sql, number| {
                        sql.replace(&format!("${number}"), &format!("{{{number}}}"))
                    })
                }
                _ => (1..=count).fold(operation.sql.clone(), |sql, number| {
                    sql.replacen('?', &format!("{{{number}}}"), 1)
                }),
            };
            operation.protocol = Protocol::Text;
        }
    }
    script
}
