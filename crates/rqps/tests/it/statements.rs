//! The statements that servers receive are those of the published benchmark, by the servers' own
//! word: Postgres with `log_statement`, MySQL with its general log.
//!
//! The expected statements are written here by hand, from the description of the benchmark. None
//! comes from the code that makes the statements.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod shape;

use crate::support::{log, skipped};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value as Json;

use crate::support::log::{How, Seen};
use shape::{Given, Shape, Value};

/// Rows of each table.
const ROWS: u64 = 1000;
/// Tables.
const TABLES: u32 = 3;

/// Servers take turns: the machine is small.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A dialect, as far as the benchmark spells things differently.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Postgres,
    Mysql,
}

/// A statement of an event: how often in a row, and its shape.
struct Line {
    repeat: usize,
    how: How,
    shape: Shape,
}

fn lines(how: How, shapes: &[(usize, &str)]) -> Vec<Line> {
    let line =
        |(repeat, text): &(usize, &str)| Line { repeat: *repeat, how, shape: Shape::parse(text) };
    shapes.iter().map(line).collect()
}

/// The full order, 42 steps after the warm-up, by the names of their last published labels.
const FULL_ORDER: &[&str] = &[
    "point-query.warm", "point-query.pre", "random-points.pre_range=10",
    "random-points.pre_range=100", "random-points.pre_range=1000", "read-only.pre_range=10",
    "read-only.pre_range=100", "read-only.pre_range=10000", "points-covered-pk.pre",
    "points-notcovered-pk.pre", "points-covered-si.pre", "points-notcovered-si.pre",
    "range-covered-pk.pre", "range-notcovered-pk.pre", "range-covered-si.pre",
    "range-notcovered-si.pre", "update-inlist", "update-index", "update-nonindex", "update-one",
    "update-zipf", "write-only", "read-write_range=10", "read-write_range=100",
    "read-only_range=10", "read-only_range=100", "read-only_range=10000", "point-query",
    "random-points_range=10", "random-points_range=100", "random-points_range=1000", "hot-points",
    "points-covered-pk", "points-notcovered-pk", "points-covered-si", "points-notcovered-si",
    "range-covered-pk", "range-notcovered-pk", "range-covered-si", "range-notcovered-si", "scan",
    "delete", "insert",
];

/// Steps that only the abbreviated order has.
const SINGLE_RANGES: &[&str] = &[
    "read-only-simple", "read-only-sum", "read-only-order", "read-only-distinct", "read-only-count",
];

const POINT: (usize, &str) = (10, "SELECT c FROM sbtest# WHERE id=<id>");
const WRITES: [(usize, &str); 4] = [
    (1, "UPDATE sbtest# SET k=k+1 WHERE id=<id>"),
    (1, "UPDATE sbtest# SET c=<c> WHERE id=<id>"),
    (1, "DELETE FROM sbtest# WHERE id=<id>"),
    (1, "INSERT INTO sbtest# (id, k, c, pad) VALUES (<deleted>, <k>, <c>, <pad>)"),
];

/// The statements of one event of a step, without BEGIN and COMMIT, and whether it has those.
fn expected(dialect: Dialect, step: &str) -> (bool, Vec<Line>) {
    let (name, label) = step.split_once("_range=").unwrap_or((step, "100"));
    let test = name.split('.').next().unwrap();
    let auto = |text: &str| (false, lines(How::Prepared, &[(1, text)]));
    let in_list = |columns: &str, on: &str, what: &str| {
        auto(&format!("SELECT {columns} FROM sbtest# WHERE {on} IN (<{label} {what}>)"))
    };
    let between = |columns: &str, on: &str| {
        auto(&format!("SELECT {columns} FROM sbtest# WHERE {on} BETWEEN <m> AND <m+100>"))
    };
    match test {
        "point-query" => auto(POINT.1),
        "random-points" => in_list("c", "id", "ids"),
        "hot-points" => in_list("c", "id", "hot"),
        "points-covered-pk" => in_list("id", "id", "ids"),
        "points-notcovered-pk" => in_list("id, c", "id", "ids"),
        "points-covered-si" => in_list("k", "k", "ks"),
        "points-notcovered-si" => in_list("k, c", "k", "ks"),
        "range-covered-pk" => between("id", "id"),
        "range-notcovered-pk" => between("id, c", "id"),
        "range-covered-si" => between("k", "k"),
        "range-notcovered-si" => between("k, c", "k"),
        "scan" => (false, lines(How::Text, &[(1, "SELECT * FROM sbtest# WHERE LENGTH(c) < 0")])),
        "read-only-count" => auto("SELECT count(c) FROM sbtest# WHERE id BETWEEN <m> AND <m+999>"),
        "update-inlist" => auto("UPDATE sbtest# SET c=<c> WHERE id IN (<10 ids>)"),
        "update-index" => auto(WRITES[0].1),
        "update-nonindex" => auto(WRITES[1].1),
        "update-one" => auto("UPDATE sbtest# SET c=<c> WHERE id=<one>"),
        "update-zipf" => auto("UPDATE sbtest# SET c=<c> WHERE id=<zipf>"),
        "delete" => auto(WRITES[2].1),
        "insert" => {
            let shape = match dialect {
                Dialect::Postgres => "INSERT INTO sbtest# (k, c, pad) VALUES (<k>, <c>, <pad>)",
                Dialect::Mysql => "INSERT INTO sbtest# (id, k, c, pad) VALUES (0, <k>, <c>, <pad>)",
            };
            (false, lines(How::Text, &[(1, shape)]))
        }
        _ => (true, transaction(test, label)),
    }
}

/// Point selects, ranges of `label` rows, and writes, in one transaction.
fn transaction(test: &str, label: &str) -> Vec<Line> {
    let rows: u64 = if label == "100" && test.starts_with("read-only-") {
        1000
    } else {
        label.parse().unwrap()
    };
    let range = |columns: &str, tail: &str| {
        let last = rows - 1;
        format!("SELECT {columns} FROM sbtest# WHERE id BETWEEN <m> AND <m+{last}>{tail}")
    };
    let simple = range("c", "");
    let sum = range("SUM(k)", "");
    let order = range("c", " ORDER BY c");
    let distinct = range("DISTINCT c", " ORDER BY c");
    let ranges: &[(usize, &str)] = match test {
        "read-only" | "read-write" => &[(1, &simple), (1, &sum), (1, &order), (1, &distinct)],
        "read-only-simple" => &[(1, &simple)],
        "read-only-sum" => &[(1, &sum)],
        "read-only-order" => &[(1, &order)],
        "read-only-distinct" => &[(1, &distinct)],
        "write-only" => &[],
        other => panic!("no step is called {other}"),
    };
    let mut shapes = Vec::new();
    if test != "write-only" {
        shapes.push(POINT);
        shapes.extend(ranges);
    }
    if matches!(test, "write-only" | "read-write") {
        shapes.extend(WRITES);
    }
    lines(How::Prepared, &shapes)
}

/// Everything that one session of a step sent, held against what is expected.
struct Audit<'a> {
    step: &'a str,
    dialect: Dialect,
    /// Values and tables by place: `(line, place within the line)` of all events.
    given: Vec<(usize, Vec<Given>)>,
    tables: Vec<(usize, u32)>,
    events: u64,
    statements: u64,
}

impl Audit<'_> {
    /// Cuts the statements of a session into events; panics at the first that does not fit.
    fn read<'a>(step: &'a str, dialect: Dialect, session: &[Seen]) -> Audit<'a> {
        let mut audit = Audit {
            step,
            dialect,
            given: Vec::new(),
            tables: Vec::new(),
            events: 0,
            statements: session.len() as u64,
        };
        let (bracketed, lines) = expected(dialect, step);
        let mut rest = session.iter();
        while !rest.as_slice().is_empty() {
            if bracketed {
                audit.bracket(rest.next(), "BEGIN");
            }
            audit.event(&lines, &mut rest);
            if bracketed {
                audit.bracket(rest.next(), "COMMIT");
            }
            audit.events += 1;
        }
        audit
    }

    /// BEGIN and COMMIT are prepared where the server can: MySQL cannot.
    fn bracket(&self, seen: Option<&Seen>, word: &str) {
        let seen = seen.unwrap_or_else(|| panic!("{}: ends before {word}", self.step));
        let how = match self.dialect {
            Dialect::Postgres => How::Prepared,
            Dialect::Mysql => How::Text,
        };
        assert_eq!((seen.how, seen.sql.as_str()), (how, word), "{}", self.step);
    }

    fn event<'s>(&mut self, lines: &[Line], rest: &mut impl Iterator<Item = &'s Seen>) {
        let mut deleted = None;
        for (index, line) in lines.iter().enumerate() {
            let mut table = None;
            for _ in 0..line.repeat {
                let seen = rest.next();
                let seen = seen.unwrap_or_else(|| panic!("{}: an event is cut", self.step));
                assert_eq!(seen.how, line.how, "{}: {}", self.step, seen.sql);
                let fitted = line.shape.fit(seen);
                let (on, given) = fitted
                    .unwrap_or_else(|| panic!("{}: {:?} is not {:?}", self.step, seen, line.shape));
                // Ten point selects of a transaction go to one table.
                assert_eq!(*table.get_or_insert(on), on, "{}: tables of a line", self.step);
                self.check_values(&given, on, &mut deleted, line);
                self.given.push((index, given));
            }
            let table = table.unwrap();
            assert!((1..=TABLES).contains(&table), "{}: table {table}", self.step);
            self.tables.push((index, table));
        }
    }

    fn check_values(
        &self,
        given: &[Given],
        table: u32,
        deleted: &mut Option<(u32, i64)>,
        line: &Line,
    ) {
        let step = self.step;
        let mut start = None;
        for (place, one) in given.iter().enumerate() {
            let number = || one.number.unwrap_or_else(|| panic!("{step}: {one:?} is no number"));
            match one.value {
                Value::Id | Value::Key | Value::Zipf => {
                    assert!((1..=ROWS as i64).contains(&number()), "{step}: {one:?}");
                }
                Value::One => assert_eq!(number(), 1, "{step}"),
                Value::Hot => {
                    assert_eq!(number(), ROWS as i64 / 2 + 1 + place as i64, "{step}");
                }
                Value::Start => {
                    assert!((1..=ROWS as i64).contains(&number()), "{step}: {one:?}");
                    start = Some(number());
                }
                Value::End(span) => {
                    assert_eq!(number() - start.expect("a start"), span, "{step}");
                }
                Value::Deleted => {
                    assert_eq!(
                        Some((table, number())),
                        *deleted,
                        "{step}: inserts what it deleted"
                    );
                }
                Value::C => assert!(is_groups(&one.text, 10), "{step}: {one:?}"),
                Value::Pad => assert!(is_groups(&one.text, 5), "{step}: {one:?}"),
            }
        }
        if line.shape.is_delete() {
            *deleted = given[0].number.map(|id| (table, id));
        }
    }

    /// All values of a kind on one line of the event.
    fn numbers(&self, line: usize, value: Value) -> Vec<i64> {
        let of_line = self.given.iter().filter(|(index, _)| *index == line);
        let all = of_line.flat_map(|(_, given)| given);
        all.filter(|one| one.value == value).filter_map(|one| one.number).collect()
    }

    /// Checks the distribution of random values, with a tolerance of six standard errors, so that
    /// no run fails by chance.
    fn check_draws(&self) {
        let lines = expected(self.dialect, self.step).1.len();
        for line in 0..lines {
            for value in [Value::Id, Value::Key, Value::Start] {
                self.check_uniform(&self.numbers(line, value), ROWS as f64, value);
            }
            let tables: Vec<i64> = self
                .tables
                .iter()
                .filter(|(index, _)| *index == line)
                .map(|(_, table)| i64::from(*table))
                .collect();
            if self.step != "scan" {
                self.check_uniform(&tables, f64::from(TABLES), "table");
            }
            self.check_zipfian(&self.numbers(line, Value::Zipf));
        }
    }

    /// Mean and variance of uniform integers 1..=n: (n + 1) / 2 and (n² - 1) / 12.
    fn check_uniform(&self, drawn: &[i64], n: f64, what: impl std::fmt::Debug) {
        if drawn.is_empty() {
            return;
        }
        let mean = drawn.iter().sum::<i64>() as f64 / drawn.len() as f64;
        let error = ((n * n - 1.0) / 12.0 / drawn.len() as f64).sqrt();
        let off = (mean - (n + 1.0) / 2.0).abs() / error;
        assert!(off < 6.0, "{}: mean {mean} of {} {what:?}, off by {off}", self.step, drawn.len());
        let distinct: BTreeSet<&i64> = drawn.iter().collect();
        assert!(drawn.len() < 20 || distinct.len() > 2, "{}: {what:?}: {distinct:?}", self.step);
    }

    /// Rank k has a share of k^-0.8 / Σ j^-0.8, and rank k is id k.
    fn check_zipfian(&self, drawn: &[i64]) {
        if drawn.is_empty() {
            return;
        }
        let weight = |k: u64| (k as f64).powf(-0.8);
        let all: f64 = (1..=ROWS).map(weight).sum();
        for id in [1, 2, 10] {
            let share = weight(id) / all;
            let count = drawn.iter().filter(|drawn| **drawn == id as i64).count() as f64;
            let n = drawn.len() as f64;
            let off = (count - n * share).abs() / (n * share * (1.0 - share)).sqrt();
            assert!(off < 6.0, "{}: id {id} {count} times in {n}, {share} wanted", self.step);
        }
    }
}

/// `groups` groups of 11 digits, joined by `-`.
fn is_groups(text: &str, groups: usize) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let digits = |part: &&str| part.len() == 11 && part.bytes().all(|byte| byte.is_ascii_digit());
    parts.len() == groups && parts.iter().all(digits)
}

/// A comparison of one target with itself logged; returns its run folder. `None` if it cannot be
/// had here; the reason has been noted.
struct Laboratory {
    folder: tempfile::TempDir,
}

impl Laboratory {
    fn new() -> Laboratory {
        let folder = tempfile::tempdir().unwrap();
        let set = |path: &Path, mode| {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        };
        set(folder.path(), 0o755);
        // The server's own user writes its log here; rqps as root keeps no results beside it.
        let log = folder.path().join("log");
        fs::create_dir(&log).unwrap();
        set(&log, 0o777);
        Laboratory { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Adds `more` to the shipped config of `dbms`, as the config `logging`.
    fn configure(&self, dbms: &str, more: &str) {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(dbms);
        let shipped = fs::read_to_string(shipped.join("default.conf")).unwrap();
        let folder = self.path("configs").join(dbms);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("logging.conf"), format!("{shipped}\n{more}\n")).unwrap();
    }

    /// Runs one block of `target` and returns its run folder; `None`, and a note, if the build
    /// cannot be had here.
    fn measure(&self, test: &str, target: &str, out: &str, words: &[&str]) -> Option<PathBuf> {
        let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join("statements.lock");
        let get = rqps(&["get", target.split(':').next().unwrap()], &lock);
        if let Err(said) = get {
            skipped::note(test, &said);
            return None;
        }
        let out = self.path(out);
        let (out_word, configs) = (out.to_string_lossy(), self.path("configs"));
        let tables = format!("tables={TABLES}");
        let rows = format!("rows={ROWS}");
        let mut all = vec!["compare", target, "--out", &out_word, "--blocks", "1"];
        all.extend(["--canaries", "off"]);
        let configs = configs.to_string_lossy();
        all.extend(["--configs", &configs, "--set", &tables, "--set", &rows]);
        for setting in ["read_seconds=0.1", "write_seconds=0.1", "warmup_seconds=0"] {
            all.extend(["--set", setting]);
        }
        all.extend(["--set", "settle_scale=0"]);
        all.extend(words);
        match rqps(&all, &lock) {
            Ok(()) => {}
            Err(said) if said.contains("lacks a library") => {
                skipped::note(test, &said);
                return None;
            }
            Err(said) => panic!("{said}"),
        }
        let folders = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
        folders.into_iter().find(|path| path.join("steps").is_dir())
    }
}

fn rqps(words: &[&str], lock: &Path) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
    command.args(words).stdin(Stdio::null()).env("RQPS_HOST_LOCK", lock);
    // What was found out about this host must not decide how often a block is measured.
    command.env("RQPS_STATE", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-calibrations"));
    let output = command.output().unwrap();
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The records of the steps of a run, in order.
fn steps(run: &Path) -> Vec<Json> {
    let mut paths: Vec<PathBuf> = fs::read_dir(run.join("steps"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    paths.sort();
    let read = |path: &PathBuf| serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    paths.iter().map(read).collect()
}

/// Holds one step's session against the benchmark, and what rqps counted against what was sent.
fn check_step(dialect: Dialect, record: &Json, session: &[Seen], clients: u64) {
    let step = record["name"].as_str().unwrap();
    assert_eq!(record["status"], "complete", "{step}");
    let audit = Audit::read(step, dialect, session);
    audit.check_draws();
    let (bracketed, lines) = expected(dialect, step);
    let own: usize = lines.iter().map(|line| line.repeat).sum();
    let per_event = own as u64 + if bracketed { 2 } else { 0 };
    assert_eq!(audit.statements, audit.events * per_event, "{step}");
    let count = |name: &str| record["outcome"][name].as_u64().unwrap();
    if clients == 1 && step != "scan" {
        // One event may have begun before the window and one ends after it.
        let beyond = audit.events as i64 - count("events") as i64;
        assert!((0..=2).contains(&beyond), "{step}: {} sent, {record}", audit.events);
    }
    assert_eq!(count("statements"), count("events") * per_event, "{step}: BEGIN and COMMIT count");
}

fn check_order(records: &[Json], names: &[&str]) {
    let found: Vec<&str> = records.iter().map(|record| record["name"].as_str().unwrap()).collect();
    assert_eq!(found, names);
}

/// The full order by one client, then a scan and the steps that this order lacks by several.
fn check_both_orders(
    dialect: Dialect,
    measure: impl Fn(&str, &[&str]) -> Option<(PathBuf, Vec<Vec<Seen>>)>,
) {
    let Some((run, sessions)) = measure("full", &["--order", "full"]) else { return };
    let records = steps(&run);
    check_order(&records, FULL_ORDER);
    assert_eq!(sessions.len(), FULL_ORDER.len(), "one connection for each step");
    for (record, session) in records.iter().zip(&sessions) {
        check_step(dialect, record, session, 1);
    }
    let words = format!("scan,{},!*.warm", SINGLE_RANGES.join(","));
    let words = ["--order", "abbreviated", "--steps", &words, "--clients", "4"];
    let (run, sessions) = measure("several", &words).unwrap();
    let records = steps(&run);
    let names: Vec<&str> = [&["scan"], SINGLE_RANGES].concat();
    check_order(&records, &names);
    assert_eq!(sessions.len(), names.len() * 4, "four connections for each step");
    for (record, sessions) in records.iter().zip(sessions.chunks(4)) {
        for session in sessions {
            check_step(dialect, record, session, 4);
        }
    }
    let mut tables = Vec::new();
    for session in &sessions[..4] {
        let audit = Audit::read("scan", dialect, session);
        let own: BTreeSet<u32> = audit.tables.iter().map(|(_, table)| *table).collect();
        assert_eq!(own.len(), 1, "a client always scans one table");
        tables.extend(own);
    }
    tables.sort_unstable();
    assert_eq!(tables, [1, 1, 2, 3], "client i scans table i mod 3, plus 1");
}

#[test]
fn postgres_receives_the_published_statements() {
    let _turn = turn();
    let test = "postgres_receives_the_published_statements";
    let laboratory = Laboratory::new();
    laboratory.configure("postgres", "log_statement = all\nlog_line_prefix = '@%p '");
    let measure = |out: &str, words: &[&str]| {
        let run = laboratory.measure(test, "postgres@17.2.0:logging", out, words)?;
        let log = fs::read_to_string(run.join("logs/server.log")).unwrap();
        let sessions = log::clients_only(log::postgres(&log));
        let load = laboratory.path(out).join("load/postgres-17.2.0.logging/server.log");
        check_load(Dialect::Postgres, &log::postgres(&fs::read_to_string(load).unwrap()));
        Some((run, sessions))
    };
    check_both_orders(Dialect::Postgres, measure);
}

#[test]
fn mysql_receives_the_published_statements() {
    mysql("mysql_receives_the_published_statements", "8.0.33");
}

#[test]
fn old_mysql_receives_the_published_statements() {
    mysql("old_mysql_receives_the_published_statements", "5.6.14");
}

fn mysql(test: &str, version: &str) {
    let _turn = turn();
    let laboratory = Laboratory::new();
    let log = laboratory.path("log/general.log");
    let settings =
        format!("general_log = 1\nlog_output = FILE\ngeneral_log_file = {}", log.display());
    laboratory.configure("mysql", &settings);
    let target = format!("mysql@{version}:logging");
    let measure = |out: &str, words: &[&str]| {
        fs::remove_file(&log).ok();
        let run = laboratory.measure(test, &target, out, words)?;
        let text = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
        // The server writes a heading each time it starts: to make its tables, to load, to measure.
        let starts: Vec<&str> = text.split(" started with:\n").collect();
        let [.., load, measured] = starts.as_slice() else { panic!("{} starts", starts.len()) };
        let load = log::mysql(load);
        check_load(Dialect::Mysql, &load);
        check_ready(&load, &run, version);
        check_prepared(&log::without_asking(log::mysql(measured)));
        Some((run, log::clients_only(log::mysql(measured))))
    };
    check_both_orders(Dialect::Mysql, measure);
}

/// Checks that settings which the load changes have the values of the config in measured steps.
fn check_ready(load: &[Vec<Seen>], run: &Path, version: &str) {
    let said = |words| load.iter().flatten().any(|seen| seen.sql.contains(words));
    let holds =
        |name, line| fs::read_to_string(run.join("logs").join(name)).unwrap().contains(line);
    assert!(said("SET GLOBAL innodb_adaptive_hash_index = ON"));
    assert!(holds("variables.tsv", "\ninnodb_adaptive_hash_index\tOFF\n"));
    if version == "8.0.33" {
        assert!(said("DISABLE INNODB REDO_LOG"));
        assert!(holds("status.tsv", "\nInnodb_redo_log_enabled\tON\n"));
        assert!(holds("variables.tsv", "\ninnodb_extend_and_initialize\tON\n"));
    }
}

/// Checks that statements which the client prepares on MySQL have placeholders and no values.
fn check_prepared(sessions: &[Vec<Seen>]) {
    let all = sessions.iter().flatten();
    let prepares: Vec<_> = all.filter(|seen| seen.how == How::Prepare).collect();
    assert!(!prepares.is_empty());
    for seen in prepares {
        let expected_of = |step: &&str| expected(Dialect::Mysql, step).1;
        let known = FULL_ORDER.iter().chain(SINGLE_RANGES).flat_map(expected_of);
        let fits = known
            .filter(|line| line.how == How::Prepared)
            .any(|line| line.shape.fit(seen).is_some_and(|(_, given)| Given::are_open(&given)));
        assert!(fits, "prepared: {}", seen.sql);
    }
}

/// Tables, rows, and the secondary index after them.
fn check_load(dialect: Dialect, sessions: &[Vec<Seen>]) {
    let all: Vec<&str> = sessions.iter().flatten().map(|seen| seen.sql.as_str()).collect();
    let id = match dialect {
        Dialect::Postgres => "SERIAL",
        Dialect::Mysql => "INTEGER NOT NULL AUTO_INCREMENT",
    };
    for table in 1..=TABLES {
        let create = format!(
            "CREATE TABLE sbtest{table} (id {id}, k INTEGER DEFAULT 0 NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, PRIMARY KEY (id))"
        );
        assert_eq!(all.iter().filter(|sql| **sql == create).count(), 1, "{create}: {all:?}");
        let index = format!("CREATE INDEX k_{table} ON sbtest{table} (k)");
        assert_eq!(all.iter().filter(|sql| **sql == index).count(), 1, "{index}");
    }
}
