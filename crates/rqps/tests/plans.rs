//! `rqps plans`: plans of statements on two versions, without the data.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used)]

mod builds;
#[allow(dead_code, reason = "other tests compare sessions of servers")]
#[path = "statements/log.rs"]
mod log;
mod program;
mod server_place;
mod skipped;
#[allow(dead_code, reason = "other tests look at tables")]
mod theirs;

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

const MYSQL_SCHEMA: &str = "\
CREATE TABLE club (club_id INT PRIMARY KEY, town VARCHAR(20), KEY k_town (town));
CREATE TABLE member (member_id INT PRIMARY KEY, club_id INT NOT NULL, kind INT NOT NULL, note TEXT,
    KEY k_club (club_id), KEY k_kind (kind), CONSTRAINT of_club FOREIGN KEY (club_id)
    REFERENCES club (club_id));
CREATE VIEW big AS SELECT member_id, club_id FROM member WHERE note IS NOT NULL;
";

/// Rows by doubling; nine of ten members are of kind 0.
fn mysql_data() -> String {
    let numbers = "CREATE TABLE n (i INT PRIMARY KEY);\nINSERT INTO n VALUES (0);\n".to_owned();
    let doubled = (0..13).map(|bit| format!("INSERT INTO n SELECT i + {} FROM n;\n", 1 << bit));
    let rows = "INSERT INTO club SELECT i, CONCAT('town ', i % 50) FROM n WHERE i < 200;\n\
                INSERT INTO member SELECT i, i % 200, IF(i % 10 = 0, i, 0), 'it''s \\\\ \u{e9}' FROM n;\n\
                DROP TABLE n;\nANALYZE TABLE club, member;\n";
    numbers + &doubled.collect::<String>() + rows
}

/// Beginnings of all that may reach a source.
const READS: [&str; 6] =
    ["START TRANSACTION READ ONLY", "ROLLBACK", "SELECT ", "SHOW ", "EXPLAIN ", "SET NAMES"];

/// What `rqps plans` says about statements on a server of the user's.
fn on_server(theirs: &theirs::Theirs, sql: &str, more: &[&str]) -> (Output, Vec<String>) {
    let dsn = theirs.dsn("x").replacen("x=", "", 1).replacen("root@", "planner@", 1);
    let words = ["plans", &dsn, "--to", "mysql@8.0.33", "--format", "json", "--sql", sql];
    let mut command = rqps_in(&words, theirs.folder.path());
    let output = command.args(more).output().unwrap();
    let classes = classes(&output);
    (output, classes)
}

#[test]
fn a_mysql_of_others_is_only_read_and_its_rows_stay_without_a_yes() {
    let test = "a_mysql_of_others_is_only_read_and_its_rows_stay_without_a_yes";
    let Some(theirs) = theirs::Theirs::start(test, "mysql@8.0.33", rqps_model::build::Dbms::Mysql)
    else {
        return;
    };
    let text = format!("{MYSQL_SCHEMA}{}", mysql_data());
    let made: Vec<&str> = text.split(";\n").filter(|sql| !sql.trim().is_empty()).collect();
    theirs.owner(&made);
    theirs.owner(&[
        "CREATE USER planner@localhost",
        "GRANT SELECT, SHOW VIEW ON test.* TO planner@localhost",
        "GRANT SELECT ON mysql.innodb_table_stats TO planner@localhost",
    ]);
    let mark = theirs.log_length();
    let sql = "SELECT * FROM member WHERE member_id = 4711; \
               SELECT town, COUNT(*) FROM club JOIN member USING (club_id) GROUP BY town; \
               SELECT member_id FROM big WHERE club_id = 7; \
               SELECT lacking FROM club; DROP TABLE club; \
               UPDATE member SET kind = 1 WHERE member_id = 8";
    let dsn = theirs.dsn("x").replacen("x=", "", 1).replacen("root@", "planner@", 1);
    let words = ["plans", &dsn, "--to", "mysql@8.0.33", "--sql", sql];
    let output = rqps_in(&words, theirs.folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", said(&output));
    assert!(said(&output).contains("mysql.innodb_index_stats"), "{}", said(&output));
    theirs.owner(&["GRANT SELECT ON mysql.innodb_index_stats TO planner@localhost"]);
    let (output, found) = on_server(&theirs, sql, &[]);
    let want = ["same", "same", "same", "not_covered", "not_covered", "same"];
    assert_eq!(found, want, "{}", text_of(&output));
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let is_of_owner = |sql: &str| sql.starts_with("GRANT ");
    for seen in theirs.sessions_since(mark).iter().flatten() {
        let is_known = READS.iter().any(|begin| seen.sql.starts_with(begin));
        assert!(is_known || is_of_owner(&seen.sql), "{}", seen.sql);
        // No row was asked for but those of the catalogue.
        let is_of_rows = seen.sql.contains("FROM `member`") || seen.sql.contains("FROM `club`");
        assert!(!is_of_rows, "{}", seen.sql);
    }
    // What most members are is not in the statistics, so only a sample plans it.
    let skewed = "SELECT * FROM member WHERE kind = 0";
    let (output, found) = on_server(&theirs, skewed, &[]);
    assert_eq!(found, ["not_faithful"], "{}", text_of(&output));
    let (output, found) = on_server(&theirs, skewed, &["--yes"]);
    assert_eq!(found, ["same"], "{}", text_of(&output));
    assert!(text_of(&output).contains("a sample of one row in"), "{}", text_of(&output));
    let rows = theirs.owner_rows("SELECT COUNT(*) FROM member");
    assert_eq!(rows[0][0].as_deref(), Some("8192"));
}

fn text_of(output: &Output) -> String {
    format!("{}{}", text(&output.stdout), said(output))
}

#[test]
fn two_versions_of_mysql_load_the_data_and_differ_in_what_they_parse() {
    let test = "two_versions_of_mysql_load_the_data_and_differ_in_what_they_parse";
    for target in ["mysql@5.7.22", "mysql@8.0.33"] {
        if let Err(why) = builds::roots("", &[target]) {
            return skipped::note(test, &why);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("schema.sql"), MYSQL_SCHEMA).unwrap();
    fs::write(folder.path().join("data.sql"), mysql_data()).unwrap();
    fs::write(
        folder.path().join("q.sql"),
        "SELECT member_id AS rank FROM member LIMIT 3;\n\
         SELECT note FROM member WHERE note REGEXP '[[:<:]]it';\n\
         SELECT COUNT(*) FROM member WHERE club_id = 42;\n\
         SELECT town FROM club WHERE club_id NOT IN (SELECT kind FROM member m) AND club_id < 9;\n",
    )
    .unwrap();
    let files = ["--schema", "schema.sql", "--data", "data.sql", "--statements", "q.sql"];
    let words = ["plans", "mysql@5.7.22", "mysql@8.0.33", "--format", "json"];
    let output = rqps_in(&words, folder.path()).args(files).output().unwrap();
    let found = classes(&output);
    assert_eq!(found[..3], ["error", "error", "same"], "{}", text_of(&output));
    // 8.0 makes a join of it.
    assert!(["nodes", "join_order", "access_path"].contains(&&*found[3]), "{}", text_of(&output));
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
}

#[test]
fn published_cases_of_mysql_come_out() {
    check_cases("published_cases_of_mysql_come_out", "mysql", &[]);
}
