//! `rqps export`: what is in run folders is in the tables, once and exactly.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::made;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use crate::support::made::Size;
use rqps_embed::sqlite::{Sqlite, SqliteConnection};

const SIZE: Size = Size { targets: 2, steps: 8, blocks: 3, seconds: 5 };

fn export(set: &Path, format: &str, output: &Path) -> Output {
    let words = ["export", set.to_str().unwrap(), "--format", format, "-o"];
    Command::new(env!("CARGO_BIN_EXE_rqps")).args(words).arg(output).output().unwrap()
}

#[test]
fn tables_hold_every_run_step_second_and_ratio() {
    let folder = tempfile::tempdir().unwrap();
    let (set, csv, database) =
        (folder.path().join("set"), folder.path().join("csv"), folder.path().join("all.db"));
    made::write_set(&set, SIZE);
    for (format, output) in [("csv", &csv), ("sqlite", &database)] {
        let done = export(&set, format, output);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let lines = |table: &str| {
        let text = std::fs::read_to_string(csv.join(format!("{table}.csv"))).unwrap();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let mut sqlite =
        SqliteConnection::open(&Arc::new(Sqlite::compiled_in()), &database, 0).unwrap();
    let mut ask = |sql: &str| -> String {
        let rows = sqlite.rows(sql).unwrap();
        rows[0][0].clone().unwrap_or_default()
    };
    // 2 targets x 3 blocks; 8 steps each, of which one failed.
    for (table, rows) in [("runs", 6), ("steps", 48), ("seconds", 47 * 5)] {
        assert_eq!(lines(table).len(), rows + 1, "{table}");
        assert_eq!(ask(&format!("SELECT count(*) FROM {table}")), rows.to_string());
    }
    assert_eq!(ask("SELECT count(*) FROM metrics WHERE metric = 'o/s'"), "47");
    assert_eq!(ask("SELECT count(*) FROM relative WHERE metric = 'o/s'"), "8");
    // Numbers are numbers, and what was not measured is NULL.
    assert_eq!(ask("SELECT typeof(value) FROM metrics"), "real");
    assert_eq!(ask("SELECT typeof(events) FROM seconds"), "integer");
    assert_eq!(ask("SELECT typeof(read_kb) FROM seconds"), "null");
    // The tables fit together: the rate is statements by seconds.
    let wrong = "SELECT count(*) FROM metrics JOIN steps USING (run, step) WHERE metric = 'o/s' \
                 AND abs(value - statements / seconds_s) > 1e-9 * value";
    assert_eq!(ask(wrong), "0");
    let label = made::label(1);
    assert!(lines("relative")[1..].iter().all(|line| line.contains(&label)));
}

#[test]
fn a_database_that_is_there_is_not_touched() {
    let folder = tempfile::tempdir().unwrap();
    let (set, database) = (folder.path().join("set"), folder.path().join("mine.db"));
    made::write_set(&set, SIZE);
    std::fs::write(&database, "mine").unwrap();
    let done = export(&set, "sqlite", &database);
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("mine.db") && said.contains("already exists"), "{said}");
    assert_eq!(std::fs::read_to_string(&database).unwrap(), "mine");
}
