//! The driver process from outside: a job in, messages out.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::user_files;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rqps_bench::sysbench::columns;
use rqps_bench::sysbench::steps::{COLUMN_C, COLUMN_PAD};
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverRequest, LoadRequest, RequestBody, StepRequest, VERSION};
use rqps_embed::sqlite::{Sqlite, SqliteConnection};
use rqps_model::benchmark::{Pace, Placement, RateUnit, StepBody};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Endpoint, Login};
use rqps_model::run::Outcome;
use rqps_model::script::{Distribution, Operation, Parameter, Protocol, Script, TableChoice};

const ROWS: u64 = 1_000;
const TABLES: u32 = 2;

fn start() -> Child {
    Command::new(env!("CARGO_BIN_EXE_rqps"))
        .arg("driver")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Sends one line and reads all that is said, with the input open until the end.
fn talk(line: &str) -> Vec<DriverEvent> {
    let mut driver = start();
    let mut input = driver.stdin.take().unwrap();
    writeln!(input, "{line}").unwrap();
    let output = BufReader::new(driver.stdout.take().unwrap());
    let messages =
        output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    driver.wait().unwrap();
    messages
}

fn run(job: &DriverRequest) -> Vec<DriverEvent> {
    talk(&serde_json::to_string(job).unwrap())
}

fn measured(messages: &[DriverEvent]) -> &Outcome {
    match messages.last() {
        Some(DriverEvent::Measured(outcome)) => outcome,
        other => panic!("not measured: {other:?}"),
    }
}

fn fault(messages: &[DriverEvent]) -> &str {
    match messages.last() {
        Some(DriverEvent::Failed { fault }) => fault,
        other => panic!("did not fail: {other:?}"),
    }
}

fn job(dialect: Dialect, endpoint: Endpoint, task: RequestBody) -> DriverRequest {
    DriverRequest {
        version: VERSION,
        dialect,
        endpoint,
        login: Login::default(),
        target: None,
        session_setup: vec![],
        mark: None,
        seed: 42,
        tables: TABLES,
        rows: ROWS,
        pause: false,
        task,
        away: None,
        turns: None,
        standstill: None,
        counted_events: None,
        asks: false,
        only_reads: false,
        scratch: None,
        places: None,
    }
}

fn sqlite(path: &Path, task: RequestBody) -> DriverRequest {
    let endpoint = Endpoint::File { path: path.to_owned(), library: None };
    let mut job = job(Dialect::Sqlite, endpoint, task);
    job.session_setup = vec!["PRAGMA journal_mode = WAL".into(), "PRAGMA synchronous = OFF".into()];
    job
}

fn fake(task: RequestBody) -> DriverRequest {
    job(Dialect::Fake, Endpoint::Fake { mean_us: 200, real_time: false }, task)
}

fn load() -> RequestBody {
    RequestBody::Load(LoadRequest {
        drop_sql: "DROP TABLE IF EXISTS sbtest{table}".into(),
        create_sql: "CREATE TABLE sbtest{table} (id INTEGER PRIMARY KEY, k INTEGER NOT NULL, \
                     c TEXT NOT NULL, pad TEXT NOT NULL)"
            .into(),
        index_sql: vec!["CREATE INDEX k_{table} ON sbtest{table} (k)".into()],
        table: "sbtest{table}".into(),
        rows_of: "sysbench".into(),
        columns: columns(),
        parallel: 1,
    })
}

/// The request to measure a script.
fn script(task: StepRequest<Script>) -> RequestBody {
    RequestBody::Step(Box::new(task.with(StepBody::Script(task.work.clone()))))
}

fn measure(operations: Vec<Operation>, transaction: bool) -> StepRequest<Script> {
    StepRequest {
        work: Script::of(transaction, operations, Distribution::Uniform),
        clients: 2,
        warmup_seconds: 0.1,
        seconds: 1.0,
        pace: Pace::Closed,
        rate: RateUnit::Queries,
        placement: Placement::Os,
        server_pid: None,
        plans: true,
        storage_engine: None,
        cache: None,
    }
}

fn operation(sql: &str, parameters: Vec<Parameter>) -> Operation {
    Operation {
        kind: sql.split(' ').next().unwrap().to_lowercase(),
        sql: sql.into(),
        parameters,
        ..Operation::PLAIN
    }
}

fn point_query() -> Operation {
    operation("SELECT c FROM sbtest{table} WHERE id = ?", vec![Parameter::Id])
}

#[test]
fn a_driver_that_is_to_pause_waits_for_a_line() {
    let folder = user_files::open_folder();
    let path = folder.path().join("db");
    run(&sqlite(&path, load()));
    let task = measure(vec![operation("SELECT c FROM sbtest{table} WHERE id = 1", vec![])], false);
    let mut job = sqlite(&path, script(task));
    job.pause = true;
    let mut driver = start();
    let mut input = driver.stdin.take().unwrap();
    writeln!(input, "{}", serde_json::to_string(&job).unwrap()).unwrap();
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<DriverEvent>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(next(), DriverEvent::Prepared);
    writeln!(input).unwrap();
    assert_eq!(next(), DriverEvent::Warming);
    let measured = loop {
        if let DriverEvent::Measured(outcome) = next() {
            break outcome;
        }
    };
    driver.wait().unwrap();
    assert!(measured.outside > 0, "statements of the warm-up: {measured:?}");
}

#[test]
fn a_driver_that_may_be_stopped_says_first_that_it_ends_with_the_lab() {
    let page = rqps_host::shared_memory::SharedPage::create().unwrap();
    let mut job = fake(script(measure(vec![point_query()], false)));
    job.standstill = Some(page.path().to_owned());
    assert_eq!(run(&job).first(), Some(&DriverEvent::Bound));
    job.standstill = None;
    assert_eq!(run(&job).first(), Some(&DriverEvent::Warming));
}

#[test]
fn a_line_that_is_no_job_is_answered_with_what_is_wrong() {
    let messages = talk("{\"version\":1}");
    assert!(fault(&messages).contains("dialect"), "{messages:?}");
}

#[test]
fn another_version_is_refused() {
    let mut job = fake(script(measure(vec![point_query()], false)));
    job.version = VERSION + 1;
    let messages = run(&job);
    assert!(fault(&messages).contains("version"), "{messages:?}");
}

#[test]
fn the_driver_ends_when_its_input_ends() {
    let mut task = measure(vec![point_query()], false);
    task.seconds = 3600.0;
    let mut job = fake(script(task));
    job.endpoint = Endpoint::Fake { mean_us: 100_000, real_time: true };
    let mut driver = start();
    let mut input = driver.stdin.take().unwrap();
    writeln!(input, "{}", serde_json::to_string(&job).unwrap()).unwrap();
    let mut output = BufReader::new(driver.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert!(line.contains("warming"), "{line}");
    drop(input);
    assert!(!driver.wait().unwrap().success());
}

#[test]
fn sqlite_is_loaded_and_measured() {
    let folder = user_files::open_folder();
    let path = folder.path().join("test.db");
    match run(&sqlite(&path, load())).last() {
        Some(DriverEvent::Loaded { rows, .. }) => assert_eq!(*rows, ROWS * u64::from(TABLES)),
        other => panic!("{other:?}"),
    }

    let task = measure(vec![point_query()], false);
    let messages = run(&sqlite(&path, script(task)));
    assert!(
        matches!(messages[..2], [DriverEvent::Warming, DriverEvent::WindowStart { .. }]),
        "{messages:?}"
    );
    let outcome = measured(&messages);
    assert!(outcome.events > 0, "{outcome:?}");
    assert_eq!(outcome.events, outcome.reads);
    assert_eq!(outcome.events, outcome.rows, "every id exists");
    assert_eq!(outcome.bytes, outcome.rows * 119);
    assert_eq!(outcome.seconds, 1.0);
    assert!(outcome.plans["select"].contains("SEARCH"), "{:?}", outcome.plans);
    assert!(outcome.client_cpu.total_us() > 0.0);
    let in_intervals: u64 = messages
        .iter()
        .map(|message| match message {
            DriverEvent::Interval(interval) => interval.events,
            _ => 0,
        })
        .sum();
    assert_eq!(in_intervals, outcome.events, "intervals add up");
}

#[test]
fn deletes_and_inserts_are_counted_by_what_they_did() {
    let folder = user_files::open_folder();
    let path = folder.path().join("test.db");
    run(&sqlite(&path, load()));
    let delete = operation("DELETE FROM sbtest{table} WHERE id = ?", vec![Parameter::Id]);
    let mut task = measure(vec![delete], false);
    task.clients = 1;
    task.warmup_seconds = 0.0;
    let messages = run(&sqlite(&path, script(task.clone())));
    let outcome = measured(&messages);
    assert_eq!(outcome.writes + outcome.no_ops, outcome.statements);
    // The last delete may have ended after the window.
    let left = count(&path);
    let gone = ROWS * u64::from(TABLES) - left;
    assert!(gone - outcome.writes <= 1, "{gone} rows gone, {} counted", outcome.writes);

    let insert = Operation {
        protocol: Protocol::Text,
        ..operation(
            "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (NULL, {1}, {2}, {3})",
            vec![Parameter::Key, COLUMN_C, COLUMN_PAD],
        )
    };
    task.work = Script::of(true, vec![insert], Distribution::Uniform);
    let messages = run(&sqlite(&path, script(task)));
    let outcome = measured(&messages);
    assert_eq!(outcome.statements, 3 * outcome.events);
    assert_eq!((outcome.writes, outcome.others), (outcome.events, 2 * outcome.events));
    assert_eq!(outcome.no_ops, 0);
    assert!(count(&path) - left - outcome.writes <= 1);
}

fn count(path: &Path) -> u64 {
    let mut connection = SqliteConnection::open(&Arc::new(Sqlite::compiled_in()), path, 0).unwrap();
    let sql = "SELECT (SELECT count(*) FROM sbtest1) + (SELECT count(*) FROM sbtest2)";
    connection.rows(sql).unwrap()[0][0].as_ref().unwrap().parse().unwrap()
}

#[test]
fn scans_are_counted_whole() {
    let folder = user_files::open_folder();
    let path = folder.path().join("test.db");
    run(&sqlite(&path, load()));
    let scan = Operation {
        protocol: Protocol::Text,
        table: TableChoice::ByClient,
        ..operation("SELECT * FROM sbtest{table} WHERE LENGTH(c) < 0", vec![])
    };
    let mut task = measure(vec![scan], false);
    task.rate = RateUnit::RowsScanned;
    // Shorter than any scan: each client still finishes one.
    task.seconds = 1e-6;
    let messages = run(&sqlite(&path, script(task)));
    let outcome = measured(&messages);
    assert_eq!(outcome.events, 2);
    assert_eq!(outcome.rows_scanned, 2 * ROWS);
    assert!(outcome.seconds > 1e-6);
}

#[test]
fn the_fake_gives_the_same_bytes_twice() {
    let update =
        operation("UPDATE sbtest{table} SET c = ? WHERE id = ?", vec![COLUMN_C, Parameter::Id]);
    let task = measure(vec![point_query(), update], true);
    let job = fake(script(task));
    let first = run(&job);
    assert_eq!(first, run(&job));
    let outcome = measured(&first);
    // Four statements of 200 µs each on two clients in one second.
    assert!((2_300..2_700).contains(&outcome.events), "{}", outcome.events);
    let mut other = job.clone();
    other.seed += 1;
    assert_ne!(first, run(&other));
}

#[test]
fn a_missing_table_is_named() {
    let folder = user_files::open_folder();
    let path = folder.path().join("empty.db");
    let task = measure(vec![point_query()], false);
    let messages = run(&sqlite(&path, script(task)));
    let fault = fault(&messages);
    assert!(fault.contains("select") && fault.contains("sbtest1"), "{fault}");
}

#[test]
fn sqlite_gets_the_rows_of_a_csv_file_as_servers_do() {
    let folder = user_files::open_folder();
    let path = folder.path().join("files.db");
    let place = user_files::Place {
        dialect: Dialect::Sqlite,
        endpoint: Endpoint::File { path: path.clone(), library: None },
        login: Login::default(),
    };
    user_files::check_refused_csv(&place);
    user_files::check_generated_column(&place);
    user_files::check_csv(&place, &[1, 2], &mut |sql| {
        let library = Arc::new(Sqlite::compiled_in());
        SqliteConnection::open(&library, &path, 0).unwrap().rows(sql).unwrap()
    });
}
