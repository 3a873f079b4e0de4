//! `rqps plans`: plans of statements on two versions, without the data.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used)]

use crate::support::{builds, program, skipped, theirs};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::program::{rqps_in, said, text};
use crate::support::theirs::Theirs;
use rqps_model::build::Dbms;
use rustix::process::{Pid, Signal, kill_process};
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
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("/club.db: no such file"), "{}", said(&output));
    let path = format!("sqlite://{}", database.display());
    let words = ["plans", &path, "--to", "sqlite", "--sql", "SELECT 1; SELECT 2", "-o", "out"];
    let output = rqps_in(&words, folder.path()).arg("--yes").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(text(&output.stdout).contains("0 of 2 change"), "{}", text(&output.stdout));
    assert!(fs::read_to_string(folder.path().join("out/plans.html")).unwrap().contains("<html"));
}

#[test]
fn a_file_that_is_not_there_is_said_to_be_missing() {
    let folder = tempfile::tempdir().unwrap();
    for word in ["foo.db", "sqlite:///no/foo.db"] {
        let output = rqps_in(&["plans", word, "--to", "sqlite"], folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{word}");
        assert!(said(&output).contains("foo.db: no such file"), "{}", said(&output));
    }
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

#[test]
fn a_workload_file_gives_statements_and_tables() {
    let folder = tempfile::tempdir().unwrap();
    let workload = "[load]\nschema = [\"schema.sql\"]\n[parameter.club]\nkind = \"uniform\"\nfrom = 1\n\
                    to = 9\n[[step]]\nname = \"a\"\n[[step.event]]\n[[step.event.statement]]\n\
                    sql = \"SELECT fee FROM member WHERE club_id = :club\"\n";
    fs::write(folder.path().join("shop.toml"), workload).unwrap();
    fs::write(folder.path().join("schema.sql"), SQLITE_SCHEMA).unwrap();
    let words = ["plans", "sqlite", "sqlite", "--bench", "sql:shop.toml", "--format", "json"];
    let output = rqps_in(&words, folder.path()).output().unwrap();
    assert_eq!(classes(&output), ["same"], "{}", said(&output));
    let report: Json = serde_json::from_slice(&output.stdout).unwrap();
    let statement = &report["statements"][0];
    assert_eq!(statement["text"], "SELECT fee FROM member WHERE club_id = ?");
    assert!(statement["new"].to_string().contains("member_club"), "{statement:#}");
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

/// The data with fewer rows: as many as the plans of the case take to differ, where times, which are
/// not looked at here, take ten times as many.
fn fewer_rows(case: &str, data: &str) -> String {
    let most = if case.starts_with("03") { 1 << 17 } else { 1 << 15 };
    let doubles_on = |line: &&str| {
        let added = line.strip_prefix("INSERT INTO nums SELECT n + ");
        let added = added.and_then(|rest| rest.split(' ').next()?.parse().ok());
        added.is_some_and(|added: u32| added >= most)
    };
    let lines = data.lines().filter(|line| !doubles_on(line)).collect::<Vec<_>>().join("\n");
    let mut parts = lines.split("generate_series(1, ");
    let mut fewer = parts.next().unwrap().to_owned();
    for part in parts {
        let (rows, rest) = part.split_once(')').unwrap();
        let rows: u32 = rows.parse().unwrap();
        let rows = if rows >= 100_000 { rows / 5 } else { rows };
        fewer += &format!("generate_series(1, {rows}){rest}");
    }
    fewer + "\n"
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
            for mut file in files(begin) {
                if begin == "data" {
                    let data = fewer_rows(&name, &fs::read_to_string(&file).unwrap());
                    file = here.path().join(file.file_name().unwrap());
                    fs::write(&file, data).unwrap();
                }
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

/// Names of what there is in a folder.
fn entries(folder: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// Ends it with a signal once it has its folders. Whatever the signal, they go.
#[test]
fn a_signal_leaves_no_folder_of_private_servers() {
    let test = "a_signal_leaves_no_folder_of_private_servers";
    if let Err(why) = builds::roots("", &["postgres@17.2.0"]) {
        return skipped::note(test, &why);
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(folder.path().join("schema.sql"), "CREATE TABLE a (b int);\n").unwrap();
    let work = folder.path().join("work");
    let there = || {
        entries(Path::new("/tmp"))
            .into_iter()
            .filter(|name| name.to_string_lossy().starts_with("rqps-plans-"))
    };
    for (signal, code) in [(Signal::INT, Some(130)), (Signal::KILL, None)] {
        fs::create_dir(&work).unwrap();
        let before: Vec<_> = there().collect();
        let words = ["plans", "postgres@17.2.0", "postgres@17.2.0", "--sql", "SELECT b FROM a"];
        let mut command = rqps_in(&words, folder.path());
        command.args(["--schema", "schema.sql", "--work", "work"]);
        let mut running = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let until = |is_done: &dyn Fn() -> bool| {
            let begun = Instant::now();
            while !is_done() {
                assert!(begun.elapsed() < Duration::from_secs(100), "{signal:?}");
                thread::sleep(Duration::from_millis(20));
            }
        };
        let made = |name: &std::ffi::OsString| !before.contains(name);
        until(&|| !entries(&work).is_empty() && there().any(|name| made(&name)));
        let sockets = there().find(made).unwrap();
        let id = i32::try_from(running.id()).ok().and_then(Pid::from_raw).unwrap();
        kill_process(id, signal).unwrap();
        assert_eq!(running.wait().unwrap().code(), code);
        until(&|| entries(&work).is_empty() && !Path::new("/tmp").join(&sockets).exists());
        fs::remove_dir(&work).unwrap();
    }
}

#[test]
fn published_cases_of_mysql_come_out() {
    check_cases("published_cases_of_mysql_come_out", "mysql", &[]);
}

#[test]
fn published_cases_of_postgres_come_out() {
    let _turn = program::turn();
    // What it shows comes when it runs.
    check_cases("published_cases_of_postgres_come_out", "postgres", &["14-search-path"]);
}

/// Tables with all that needs care: partitions, types of their own, dropped and generated columns,
/// all kinds of indexes, extended statistics.
const SCHEMA: &str = "\
CREATE SCHEMA app;
ALTER DATABASE rqps SET search_path = app, public;
SET search_path = app, public;
CREATE TYPE app.state AS ENUM ('new', 'paid', 'sent');
CREATE DOMAIN app.amount AS numeric CHECK (VALUE >= 0);
CREATE TABLE app.customer (gone text, id int PRIMARY KEY, name text NOT NULL, \"Home Town\" \
    varchar(30), tags text[]);
ALTER TABLE app.customer DROP COLUMN gone;
CREATE INDEX ON app.customer (lower(name));
CREATE INDEX ON app.customer USING gin (tags);
CREATE TABLE app.orders (id bigint, customer int NOT NULL, day date NOT NULL, state app.state, \
    total app.amount, during daterange, half int GENERATED ALWAYS AS (customer / 2) STORED, \
    PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE app.orders_1 PARTITION OF app.orders FOR VALUES FROM ('2024-01-01') TO ('2024-07-01');
CREATE TABLE app.orders_rest PARTITION OF app.orders DEFAULT;
CREATE INDEX orders_customer ON app.orders (customer);
ALTER TABLE app.orders ADD FOREIGN KEY (customer) REFERENCES app.customer (id);
CREATE INDEX orders_during ON app.orders_1 USING gist (during);
CREATE TABLE app.event (id bigserial PRIMARY KEY, kind int, sub int, at timestamp, v float8);
CREATE INDEX event_at ON app.event USING brin (at);
CREATE INDEX event_kind ON app.event (kind, sub) WHERE v > 0.5;
CREATE INDEX event_time ON app.event (at);
CREATE STATISTICS app.event_kinds (ndistinct, dependencies, mcv) ON kind, sub FROM app.event;
CREATE STATISTICS app.event_half ON (kind / 2) FROM app.event;
CREATE VIEW app.rich WITH (security_barrier) AS SELECT * FROM app.customer WHERE id % 7 = 0;
CREATE MATERIALIZED VIEW app.totals AS SELECT customer, count(*) AS n FROM app.orders GROUP BY 1;
CREATE AGGREGATE app.product (int) (SFUNC = int4mul, STYPE = int, INITCOND = '1');
CREATE FUNCTION app.fee(int) RETURNS int LANGUAGE sql STABLE AS 'SELECT max(id) FROM customer';
CREATE MATERIALIZED VIEW app.fees AS SELECT app.fee(1) WITH NO DATA;
";

const DATA: &str = "\
INSERT INTO app.customer SELECT i, 'Name ' || i, 'town ' || i % 37, ARRAY['t' || i % 5] FROM \
    generate_series(1, 5000) i;
INSERT INTO app.orders SELECT i, 1 + i * 7 % 5000, date '2024-01-01' + (i % 400)::int, \
    (ARRAY['new','paid','sent'])[1 + i % 3]::app.state, i % 1000, daterange(date '2024-01-01' + (i \
    % 400)::int, date '2024-01-01' + (i % 400 + i % 30)::int) FROM generate_series(1, 40000) i;
INSERT INTO app.event SELECT i, i % 100, (i % 100) / 10, timestamp '2024-01-01' + i * interval '1 \
    minute', (i % 97) / 97.0 FROM generate_series(1, 100000) i;
REFRESH MATERIALIZED VIEW app.totals;
VACUUM ANALYZE;
";

const STATEMENTS: &str = "\
SELECT * FROM customer WHERE lower(name) = 'name 7';
SELECT count(*) FROM customer WHERE tags @> ARRAY['t4'];
SELECT * FROM customer c JOIN orders o ON o.customer = c.id WHERE \"Home Town\" = 'town 3' AND \
    state = 'paid' AND total < 90;
SELECT count(*) FROM orders WHERE day BETWEEN '2024-03-01' AND '2024-03-03';
SELECT count(*) FROM orders_1 WHERE during && daterange('2024-02-01', '2024-02-02');
SELECT count(*) FROM event WHERE at > '2024-03-10 10:30';
SELECT kind, sub, count(*) FROM event GROUP BY 1, 2;
SELECT count(*) FROM event WHERE kind = 7 AND sub = 0;
SELECT count(*) FROM event WHERE kind / 2 = 3;
SELECT * FROM rich WHERE name LIKE 'Name 7%';
SELECT app.product(n::int) FROM totals WHERE customer < 10;
SELECT half, count(*), rank() OVER (ORDER BY count(*)) FROM orders WHERE half < 50 GROUP BY 1;
SELECT count(*) FROM event WHERE at > $1 AND kind = $2;
UPDATE orders SET total = 1 WHERE customer = 5 AND day = '2024-02-02';
REFRESH MATERIALIZED VIEW totals;
SELECT sum(customer) FROM orders WHERE customer BETWEEN 100 AND 300;
";

fn write_case(folder: &Path) {
    for (name, text) in [("schema.sql", SCHEMA), ("data.sql", DATA), ("q.sql", STATEMENTS)] {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn a_server_without_rows_plans_as_one_with_them() {
    let test = "a_server_without_rows_plans_as_one_with_them";
    let _turn = program::turn();
    let versions = ["postgres@16.10.0", "postgres@17.6.0"];
    for version in versions {
        if let Err(why) = builds::roots("", &[version]) {
            return skipped::note(test, &why);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    write_case(folder.path());
    let files = ["--schema", "schema.sql", "--data", "data.sql", "--format", "json"];
    let mut command = rqps_in(&["plans", versions[0], versions[1]], folder.path());
    command.args(files).args(["--statements", "q.sql", "-o", "out"]);
    let output = command.args(["--sql", "REFRESH MATERIALIZED VIEW fees"]).output().unwrap();
    let report: Json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    assert_eq!(report["notes"].as_array().unwrap().len(), 0, "{report:#}");
    for (index, one) in report["statements"].as_array().unwrap().iter().enumerate() {
        // From 17 on, the function finds no table: its schema is not that of the session.
        let class = if index == 0 { "error" } else { "same" };
        assert_eq!(one["class"].as_str(), Some(class), "{one:#}");
        assert_eq!(one["warnings"].as_array().unwrap().len(), 0, "{one:#}");
        if one["text"].as_str().unwrap().contains("sum(customer)") {
            let trees = format!("{}{}", one["old"], one["new"]);
            let scans = trees.matches("Index Only Scan").count();
            assert_eq!(scans, 4, "VACUUM has seen all rows of two partitions: {one:#}");
        }
    }
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let words = report["statements"][0]["new_error"].as_str().unwrap();
    assert!(words.contains("\"customer\" does not exist"), "{words}");
    let page = fs::read_to_string(folder.path().join("out/plans.html")).unwrap();
    assert!(page.contains("relation \"customer\" does not exist</span>"), "{page}");
}

/// First words of the statements in a log, whatever their protocol.
fn first_words(log: &str) -> Vec<String> {
    let statement = |line: &str| {
        let (_, rest) = line.split_once("LOG:  statement: ").or_else(|| {
            let (head, rest) = line.split_once(": ")?.1.split_once(": ")?;
            head.contains("execute").then_some((head, rest))
        })?;
        rest.split_whitespace().next().map(str::to_owned)
    };
    log.lines().filter_map(statement).collect()
}

/// Objects of another user that take the place of the catalogue's, and code that refuses to run as
/// a superuser, on the source or on the servers that are made after it.
const HOSTILE: [&str; 11] = [
    "CREATE FUNCTION public.spy(name, name) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RAISE \
     EXCEPTION ''called as %'', current_user; END'",
    "CREATE OPERATOR public.!~ (FUNCTION = public.spy, LEFTARG = name, RIGHTARG = name)",
    "CREATE DOMAIN app.checked AS int",
    "CREATE TYPE app.pair AS (a app.checked, b int)",
    "CREATE TABLE app.pairs (id int, p app.pair)",
    "INSERT INTO app.pairs SELECT i, ROW(i % 3, 1)::app.pair FROM generate_series(1, 900) i",
    "ANALYZE app.pairs",
    "CREATE FUNCTION app.not_super(int) RETURNS boolean LANGUAGE plpgsql AS 'BEGIN RETURN \
     current_setting(''is_superuser'') <> ''on''; END'",
    "ALTER DOMAIN app.checked ADD CHECK (app.not_super(VALUE)) NOT VALID",
    "CREATE FUNCTION app.lie() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    // It says that a function is made by a statement that has a superuser call another.
    "SET allow_system_table_mods = on; UPDATE pg_proc SET proname = 'told' WHERE proname = \
     'pg_get_functiondef'; CREATE FUNCTION pg_catalog.pg_get_functiondef(oid) RETURNS text LANGUAGE \
     sql AS $$ SELECT CASE proname WHEN 'lie' THEN 'ALTER DOMAIN app.checked ADD CHECK \
     (app.not_super(VALUE))' ELSE pg_catalog.told(oid) END FROM pg_catalog.pg_proc WHERE oid = $1 $$",
];

#[test]
fn a_source_is_only_read_and_its_values_stay_without_a_yes() {
    let test = "a_source_is_only_read_and_its_values_stay_without_a_yes";
    let Some(server) = Theirs::start(test, "postgres@16.10.0", Dbms::Postgres) else { return };
    for sql in SCHEMA.split(";\n").chain(DATA.split(";\n")) {
        if !sql.trim().is_empty() {
            server.owner(&[sql]);
        }
    }
    server.owner(&["CREATE ROLE watcher LOGIN", "GRANT pg_monitor TO watcher"]);
    server.owner(&HOSTILE);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("q.sql"), STATEMENTS).unwrap();
    let owner = server.dsn("");
    let dsn = owner.trim_start_matches('=').replacen(&server.login.user, "watcher", 1);
    let mark = server.log_length();
    let plans = |more: &[&str]| {
        let words = ["plans", &dsn, "--to", "postgres@16.10.0", "--format", "json"];
        let mut command = rqps_in(&words, folder.path());
        command.args(["--statements", "q.sql"]).args(more).output().unwrap()
    };
    // This role sees no statistics: the report says what it lacks.
    let output = plans(&[]);
    let report: Json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    assert!(report["notes"].to_string().contains("GRANT pg_read_all_data"), "{report:#}");
    assert!(report["statements"][0]["warnings"].to_string().contains("does not explain"));
    server.owner(&["GRANT pg_read_all_data TO watcher"]);
    let refused = plans(&[]);
    assert_eq!(refused.status.code(), Some(4), "{}", said(&refused));
    assert!(said(&refused).contains("app.customer"), "{}", said(&refused));
    let output = plans(&["--yes"]);
    let report: Json = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(&output)));
    for one in report["statements"].as_array().unwrap() {
        assert_eq!(one["class"], "same", "{one:#}");
    }
    assert_eq!(report["notes"].as_array().unwrap().len(), 0, "{report:#}");
    // Also of settings that this role does not see.
    assert!(report.get("preflight").is_none(), "{report:#}");
    let log = server.log_since(mark);
    let words = first_words(&log);
    let granted = words.iter().filter(|word| *word == "GRANT").count();
    assert_eq!(granted, 1, "the owner's");
    // No setting stays in a session, which a pooler may give to an application.
    let allowed = ["BEGIN", "SELECT", "EXPLAIN", "ROLLBACK", "GRANT"];
    let other = words.iter().find(|word| !allowed.contains(&word.as_str()));
    assert!(other.is_none() && words.len() > 100, "{other:?} of {}", words.len());
    assert!(!log.contains("', false)"), "a setting of a whole session");
    let count = |wanted: &str| words.iter().filter(|word| *word == wanted).count();
    assert_eq!(count("BEGIN"), count("ROLLBACK"));
}

/// A workload whose tables have a column that is a word of SQL from Postgres 16 on, and a statement
/// that the older version alone understands.
const UPGRADE: &str = r#"
[load]
schema = ["schema.sql"]
[parameter]
id = { kind = "uniform", from = 1, to = 100 }
[[step]]
name = "by-id"
[[step.event]]
[[step.event.statement]]
sql = "SELECT * FROM clerk WHERE id = :id"
[[step]]
name = "own-orders"
[[step.event]]
[[step.event.statement]]
sql = "SELECT count(*) FROM clerk WHERE system_user = 'clerk7'"
[[step]]
name = "quoted"
[[step.event]]
[[step.event.statement]]
sql = "SELECT 1 AS a, 2 AS system_user FROM clerk system_user WHERE id = :id"
"#;

#[test]
fn a_rehearsal_tells_first_what_breaks_and_what_answers_differently() {
    let test = "a_rehearsal_tells_first_what_breaks_and_what_answers_differently";
    if let Err(why) = builds::roots("", &["postgres@15.14.0", "postgres@17.2.0"]) {
        return skipped::note(test, &why);
    }
    let folder = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE clerk (id INTEGER PRIMARY KEY, \"system_user\" VARCHAR(20));\n\
                  INSERT INTO clerk SELECT i, 'clerk' || i % 10 FROM generate_series(1, 100) i;\n";
    fs::write(folder.path().join("schema.sql"), schema).unwrap();
    fs::write(folder.path().join("shop.toml"), UPGRADE).unwrap();
    let line = "rehearse postgres@15.14.0 postgres@17.2.0 --bench sql:shop.toml --blocks 1 \
                --out page --format json";
    let words: Vec<&str> = line.split_whitespace().collect();
    let output = rqps_in(&words, folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let page: Json = serde_json::from_slice(&output.stdout).unwrap();
    let of = |section: &str| -> Vec<String> {
        let list = page[section].as_array().unwrap().iter();
        list.map(|it| format!("{} | {}", it["what"], it["evidence"])).collect()
    };
    let breaks = of("breaks").join("\n");
    assert!(breaks.contains("AS system_user FROM clerk") && breaks.contains("syntax"), "{breaks}");
    let answers = of("answers_differently").join("\n");
    assert!(answers.contains("own-orders") && answers.contains("(10)"), "{answers}");
    for file in ["rehearsal.html", "rehearsal.json", "plans.html", "results/report.html"] {
        assert!(folder.path().join("page").join(file).is_file(), "{file}");
    }

    // A wrong word leaves no folder behind.
    let words = ["rehearse", "sqlite", "sqlite", "--bench", "sql:none.toml", "--out", "none"];
    let output = rqps_in(&words, folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(!folder.path().join("none").exists());

    // Without data, the rest is said to be unknown.
    let line = "rehearse sqlite sqlite --schema schema.sql --sql SELECT?1 --out other";
    let schema = "CREATE TABLE clerk (id INTEGER PRIMARY KEY);\n";
    fs::write(folder.path().join("schema.sql"), schema).unwrap();
    let words: Vec<String> = line.split(' ').map(|word| word.replace('?', " ")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = rqps_in(&words, folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("0 break, 0 differ") && shown.contains("nothing was executed"),
        "{shown}"
    );
}
