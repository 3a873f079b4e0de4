//! `rqps plans`: plans of statements on two versions, without the data.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used)]

mod builds;
mod program;
mod skipped;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use program::{rqps_in, said, text};
use serde_json::Value as Json;

/// Classes of the statements of a report, in their order.
fn classes(output: &Output) -> Vec<String> {
    let report: Json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)));
    let statements = report["statements"].as_array().unwrap().iter();
    statements.map(|one| one["class"].as_str().unwrap().to_owned()).collect()
}

const SQLITE_SCHEMA: &str = "\
CREATE TABLE club (club_id INTEGER PRIMARY KEY, town TEXT);
CREATE TABLE member (member_id INTEGER PRIMARY KEY, club_id INT, fee INT);
CREATE INDEX member_club ON member (club_id);
CREATE VIEW rich AS SELECT * FROM member WHERE fee > 50;
";

const SQLITE_DATA: &str = "\
INSERT INTO club WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100)
    SELECT i, 'town ' || i FROM n;
INSERT INTO member WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
    SELECT i, i % 100, i % 70 FROM n;
ANALYZE;
";

#[test]
fn a_database_file_is_planned_without_its_rows_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("club.db");
    let library = std::sync::Arc::new(rqps_embed::sqlite::Sqlite::compiled_in());
    let mut connection =
        rqps_embed::sqlite::SqliteConnection::open(&library, &database, 1000).unwrap();
    connection.simple("PRAGMA journal_mode = wal").unwrap();
    for sql in SQLITE_SCHEMA.split(";\n").chain(SQLITE_DATA.split(";\n")) {
        if !sql.trim().is_empty() {
            connection.simple(sql).unwrap();
        }
    }
    let before = fs::read(&database).unwrap();
    let log = fs::read(folder.path().join("club.db-wal")).unwrap();
    fs::write(
        folder.path().join("q.sql"),
        "SELECT * FROM rich JOIN club USING (club_id) WHERE town = 'town 7';\n\
         SELECT count(*) FROM member WHERE club_id = 7 OR fee = 3 ORDER BY 1;\n\
         SELECT lacking FROM member;\nPRAGMA optimize;\n",
    )
    .unwrap();
    let words = ["plans", "club.db", "--to", "sqlite", "--statements", "q.sql", "--format", "json"];
    // Its samples in sqlite_stat4 are values of rows.
    let output = rqps_in(&words, folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("sqlite_stat4 of club.db"), "{}", said(&output));
    let output = rqps_in(&words, folder.path()).arg("--yes").output().unwrap();
    assert_eq!(classes(&output), ["same", "same", "not_covered", "not_covered"]);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    let plan = report["statements"][0]["old"]["children"].to_string();
    assert!(plan.contains("member_club"), "{plan}");
    let error = report["statements"][2]["new_error"].as_str().unwrap();
    assert!(error.starts_with("no such column: lacking"), "{error}");
    assert_eq!(before, fs::read(&database).unwrap());
    assert_eq!(log, fs::read(folder.path().join("club.db-wal")).unwrap());

    let words = ["plans", "sqlite:///club.db", "--to", "sqlite", "--sql", "SELECT 1; SELECT 2"];
    let output = rqps_in(&words, folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("find /club.db"), "{}", said(&output));
    let path = format!("sqlite://{}", database.display());
    let words = ["plans", &path, "--to", "sqlite", "--sql", "SELECT 1; SELECT 2", "-o", "out"];
    let output = rqps_in(&words, folder.path()).arg("--yes").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(text(&output.stdout).contains("0 of 2 change"), "{}", text(&output.stdout));
    assert!(fs::read_to_string(folder.path().join("out/plans.html")).unwrap().contains("<html"));
}

#[test]
fn two_versions_of_sqlite_differ_in_what_only_one_parses() {
    let test = "two_versions_of_sqlite_differ_in_what_only_one_parses";
    if let Err(why) = builds::roots("", &["sqlite@3.34.1"]) {
        return skipped::note(test, &why);
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schema.sql"), SQLITE_SCHEMA).unwrap();
    fs::write(folder.path().join("data.sql"), SQLITE_DATA).unwrap();
    let words = [
        "plans",
        "sqlite@3.34.1",
        "sqlite",
        "--schema",
        "schema.sql",
        "--data",
        "data.sql",
        "--format",
        "json",
        "--sql",
        "SELECT * FROM club RIGHT JOIN member USING (club_id); SELECT fee FROM member m, club c \
         WHERE m.club_id = c.club_id AND c.town LIKE 'a%'",
    ];
    let output = rqps_in(&words, folder.path()).output().unwrap();
    assert_eq!(classes(&output), ["error", "same"], "{}", text(&output.stdout));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}

/// A case of the fixtures: its folder and its `expect.toml`.
fn cases(test: &str, dbms: &str) -> Vec<(PathBuf, toml::Table)> {
    let Some(fixtures) = std::env::var_os("RQPS_FIXTURES") else {
        skipped::note(test, "RQPS_FIXTURES names no folder");
        return Vec::new();
    };
    let Ok(entries) = fs::read_dir(Path::new(&fixtures).join("plans").join(dbms)) else {
        skipped::note(test, "RQPS_FIXTURES holds no plans");
        return Vec::new();
    };
    let mut folders: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    folders.sort();
    let read = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("expect.toml")).ok()?;
        Some((folder, text.parse().unwrap()))
    };
    folders.into_iter().filter_map(read).collect()
}

/// Runs all cases of a DBMS: each must change, and controls must not.
fn check_cases(test: &str, dbms: &str, unseen: &[&str]) {
    for (folder, expect) in cases(test, dbms) {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let versions = |key: &str| {
            let word = expect[key].as_str().unwrap();
            let words = word.split([',', ' ']).filter(|word| word.contains('.'));
            let target = |word: &str| match word.contains('@') {
                true => word.to_owned(),
                false => format!("{dbms}@{word}"),
            };
            words.map(target).collect::<Vec<_>>()
        };
        let (from, to) = (versions("from"), versions("to"));
        if let Err(why) = builds::roots("", &[from[0].as_str()])
            .and_then(|_| builds::roots("", &[to[0].as_str()]))
        {
            skipped::note(test, &format!("{name}: {why}"));
            continue;
        }
        let files = |begin: &str| {
            let entries = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
            let is =
                |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(begin);
            let mut files: Vec<PathBuf> = entries.filter(is).collect();
            files.sort();
            files
        };
        let here = tempfile::tempdir().unwrap();
        let mut command = rqps_in(&["plans", &from[0], &to[0], "--format", "json"], here.path());
        for (option, begin) in
            [("--schema", "schema"), ("--data", "data"), ("--statements", "query")]
        {
            for file in files(begin) {
                command.arg(option).arg(file);
            }
        }
        let output = command.output().unwrap();
        let found = classes(&output);
        let is_quiet = expect["kind"].as_str() == Some("none") || unseen.contains(&&*name);
        let changed = |class: &String| !["same", "not_covered"].contains(&class.as_str());
        assert_eq!(found.iter().any(changed), !is_quiet, "{name}: {found:?}");
        assert!(!found.iter().any(|class| class == "not_faithful"), "{name}: {found:?}");
    }
}

#[test]
fn published_cases_of_sqlite_come_out() {
    check_cases("published_cases_of_sqlite_come_out", "sqlite", &[]);
}
