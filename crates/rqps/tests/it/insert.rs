//! The Insert Benchmark on real databases: what they are sent by their own word, what is in their
//! tables afterwards, and what happens when things go wrong.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod limits;

use crate::support::{builds, skipped};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rqps_driver::control_channel::{DriverEvent, StepInterval};
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest, VERSION};
use rqps_driver::{Ending, run_request};
use rqps_embed::sqlite::{Sqlite, SqliteConnection};
use rqps_lab::benchmarks;
use rqps_model::benchmark::{BenchmarkParameters, Pace, Phase, Placement, Step, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Endpoint, Login};
use rqps_model::run::Outcome;
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::support::scene::{Scene, entries, signal, stderr, turn};

fn workload(settings: &[&str]) -> Workload {
    let (mut workload, _) = benchmarks::workload("insert", "quick").unwrap();
    for setting in settings {
        benchmarks::set(&mut workload, setting).unwrap();
    }
    benchmarks::finish(&mut workload);
    benchmarks::check(&workload, Dialect::Sqlite).unwrap();
    workload
}

fn steps(dialect: Dialect, workload: &Workload) -> Vec<Step> {
    let all = benchmarks::phases(dialect, benchmarks::StepSet::default(), workload);
    let step = |phase| match phase {
        Phase::Measure(step) => Some(*step),
        Phase::Settle | Phase::Restore => None,
    };
    all.into_iter().filter_map(step).collect()
}

/// The messages of the driver about a step.
struct Said {
    outcome: Outcome,
    intervals: Vec<StepInterval>,
}

fn job(dialect: Dialect, endpoint: Endpoint, workload: &Workload, step: &Step) -> DriverRequest {
    DriverRequest {
        version: VERSION,
        dialect,
        endpoint,
        login: Login::default(),
        target: None,
        session_setup: match dialect {
            Dialect::Sqlite => vec!["PRAGMA journal_mode = WAL".to_owned()],
            _ => vec![],
        },
        mark: None,
        seed: 1,
        tables: workload.tables,
        rows: workload.rows,
        pause: false,
        task: RequestBody::Step(Box::new(StepRequest {
            pace: Pace::Closed,
            placement: Placement::Os,
            ..StepRequest::of(step, workload)
        })),
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

fn messages(job: &DriverRequest) -> (Ending, Vec<DriverEvent>) {
    let mut output = Vec::new();
    let ending = run_request(job, &benchmarks::driver_parts(), &mut output);
    let lines = String::from_utf8(output).unwrap();
    (ending, lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

fn run(job: &DriverRequest) -> Said {
    let (ending, messages) = messages(job);
    assert_eq!(ending, Ending::Done, "{messages:?}");
    let mut intervals = Vec::new();
    let mut outcome = None;
    for message in messages {
        match message {
            DriverEvent::Interval(interval) => intervals.push(interval),
            DriverEvent::Measured(measured) => outcome = Some(*measured),
            _ => {}
        }
    }
    Said { outcome: outcome.unwrap(), intervals }
}

fn rows_of(outcome: &Outcome, role: &str) -> u64 {
    outcome.roles.get(role).map_or(0, |role| role.rows)
}

/// A SQLite database and what is in it.
struct Database {
    folder: tempfile::TempDir,
}

impl Database {
    fn path(&self) -> PathBuf {
        self.folder.path().join("rqps.db")
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::File { path: self.path(), library: None }
    }

    fn ask(&self, sql: &str) -> Vec<String> {
        let sqlite = Arc::new(Sqlite::compiled_in());
        let mut connection = SqliteConnection::open(&sqlite, &self.path(), 1000).unwrap();
        let rows = connection.rows(sql).unwrap();
        rows.into_iter().map(|row| row.into_iter().next().unwrap().unwrap()).collect()
    }

    fn number(&self, sql: &str) -> u64 {
        self.ask(sql)[0].parse().unwrap()
    }
}

/// Every step of 2026 with two clients: what went in came out at the other end.
#[test]
fn a_table_is_a_queue_of_constant_length() {
    let _turn = turn();
    let workload = workload(&[
        "rows=3000",
        "i1_rows=1000",
        "i2_rows=200",
        "clients=2",
        "query_seconds=1",
        "query_steps=200:range,200:point",
    ]);
    let database = Database { folder: tempfile::tempdir().unwrap() };
    let mut inserted = 0;
    let mut deleted = 0;
    for step in steps(Dialect::Sqlite, &workload) {
        let said = run(&job(Dialect::Sqlite, database.endpoint(), &workload, &step));
        let outcome = &said.outcome;
        inserted += rows_of(outcome, "inserts");
        deleted += rows_of(outcome, "deletes");
        let live =
            database.number("SELECT (SELECT count(*) FROM pi1) + (SELECT count(*) FROM pi2)");
        assert_eq!(live, inserted - deleted, "{}", step.name);
        assert!(outcome.errors.is_empty(), "{}: {:?}", step.name, outcome.errors);
        let seen: f64 = said.intervals.iter().map(|interval| interval.extra["inserts"]).sum();
        assert_eq!(seen as u64, rows_of(outcome, "inserts"), "{}", step.name);
        match step.name.as_str() {
            "l.i0" => assert_eq!((inserted, deleted), (6000, 0)),
            "l.x" => {
                assert_eq!(inserted, 6200, "a batch of 100 for each client");
                assert_eq!(outcome.statements, 6000 + 200, "the rate counts indexed rows");
                let indexes = database.ask("SELECT name FROM sqlite_schema WHERE type = 'index'");
                assert_eq!(indexes.len(), 6, "{indexes:?}");
            }
            _ => assert_eq!(live, 6200, "{}", step.name),
        }
        if step.name.starts_with('q') {
            let queries = &outcome.roles["queries"];
            assert_eq!(outcome.statements, queries.operations);
            assert!(queries.rows > 9 * queries.operations, "{queries:?}");
            // How much longer it took is the machine's business.
            assert!(outcome.seconds >= 1.0, "{}", outcome.seconds);
            let ips = rows_of(outcome, "inserts") as f64 / outcome.seconds;
            let kept = (0.5 * 400.0..=1.05 * 400.0).contains(&ips);
            assert!(kept, "neither client is far from its rate: {ips}");
        }
    }
    // Keys are those of a queue: the oldest are gone.
    let oldest = database.number("SELECT min(transactionid) FROM pi1");
    assert_eq!(oldest, 1 + deleted / 2);
}

#[test]
fn a_seed_gives_the_same_rows_but_for_their_time() {
    let _turn = turn();
    let workload = workload(&["rows=2000", "clients=2"]);
    let step = &steps(Dialect::Sqlite, &workload)[0];
    let rows = || {
        let database = Database { folder: tempfile::tempdir().unwrap() };
        run(&job(Dialect::Sqlite, database.endpoint(), &workload, step));
        database.ask(
            "SELECT transactionid || ' ' || cashregisterid || ' ' || customerid || ' ' || \
             productid || ' ' || price || ' ' || data FROM pi2 ORDER BY transactionid",
        )
    };
    let first = rows();
    assert_eq!(first.len(), 2000);
    assert_eq!(first, rows());
}

/// On the fake clock: each second has what the rate says to within one batch, for inserts and
/// deletes alike, and the same bytes come each time.
#[test]
fn the_limiter_errs_by_less_than_a_batch_in_each_second() {
    let workload = workload(&["query_seconds=10", "query_steps=1000:range"]);
    let step = &steps(Dialect::Fake, &workload)[4];
    let endpoint = Endpoint::Fake { mean_us: 500, real_time: false };
    let job = job(Dialect::Fake, endpoint, &workload, step);
    let said = run(&job);
    assert_eq!(said.outcome.seconds, 10.0);
    for interval in &said.intervals {
        for role in ["inserts", "deletes"] {
            let rows = interval.extra[role];
            assert!((rows - 1000.0).abs() <= 50.0, "second {}: {rows} {role}", interval.second);
        }
    }
    assert_eq!(rows_of(&said.outcome, "inserts"), 10_000);
    assert_eq!(messages(&job).1, messages(&job).1);
}

/// The most memory that a driver process has held while it did a job, KiB, and the rows that it
/// inserted. The kernel's highest mark, read again and again until the process is gone.
fn peak_kib(job: &DriverRequest) -> (u64, u64) {
    let mut driver = Command::new(env!("CARGO_BIN_EXE_rqps"))
        .arg("driver")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = driver.stdin.take().unwrap();
    writeln!(input, "{}", serde_json::to_string(job).unwrap()).unwrap();
    let output = driver.stdout.take().unwrap();
    let reader = std::thread::spawn(move || std::io::read_to_string(output).unwrap());
    let status = format!("/proc/{}/status", driver.id());
    let mut peak = 0;
    while driver.try_wait().unwrap().is_none() {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.map_or(peak, |line| line.trim_end_matches("kB").trim().parse().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let said = reader.join().unwrap();
    let last = said.lines().last().unwrap();
    let DriverEvent::Measured(outcome) = serde_json::from_str(last).unwrap() else {
        panic!("{last}")
    };
    (peak, rows_of(&outcome, "inserts"))
}

/// Ten times the rows, the same memory: on the fake DBMS that of making and recording inserts and
/// deletes alone; on SQLite that of a whole client, whose page cache is limited.
#[test]
fn memory_does_not_grow_with_rows() {
    let _turn = turn();
    let peaks = |dialect, name: &str, rows: [u64; 2], endpoint: &dyn Fn() -> Endpoint| {
        rows.map(|rows| {
            let more = [format!("rows={rows}"), format!("i1_rows={rows}")];
            let workload = workload(&[&more[0], &more[1], "i2_rows=100"]);
            let all = steps(dialect, &workload);
            let step = all.iter().find(|step| step.name == name).unwrap();
            let mut job = job(dialect, endpoint(), &workload, step);
            job.session_setup.push("PRAGMA cache_size = -1000".to_owned());
            let (peak, inserted) = peak_kib(&job);
            assert_eq!(inserted, rows);
            peak
        })
    };
    let fake = || Endpoint::Fake { mean_us: 100, real_time: false };
    let database = Database { folder: tempfile::tempdir().unwrap() };
    // As root, a driver that opens a file runs as somebody else.
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(database.folder.path(), everybody).unwrap();
    let all = [
        peaks(Dialect::Fake, "l.i1", [200_000, 2_000_000], &fake),
        peaks(Dialect::Sqlite, "l.i0", [30_000, 300_000], &|| database.endpoint()),
    ];
    for [few, many] in all {
        assert!(few > 1000, "{few} KiB is no process");
        // Pages of the program itself come and go, a MiB or so. A quarter, of some 20 MiB, is 3
        // bytes for each of the 1.8 million rows more of the first, and 20 of the second's.
        assert!(many < few + few / 4, "{few} KiB for N rows, {many} KiB for 10 N");
    }
}

#[test]
fn compat_pacing_bursts_as_published() {
    let settings = ["query_seconds=10", "query_steps=1000:range", "pacing=compat", "deletes=no"];
    let workload = workload(&settings);
    let step = &steps(Dialect::Fake, &workload)[4];
    let endpoint = Endpoint::Fake { mean_us: 100, real_time: false };
    let said = run(&job(Dialect::Fake, endpoint, &workload, step));
    let seconds: Vec<f64> =
        said.intervals.iter().map(|interval| interval.extra["inserts"]).collect();
    assert_eq!(
        seconds[..10],
        [50.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0, 1000.0]
    );
    // 200 batches: one in the first second, and the last in the eleventh.
    assert_eq!(seconds[10..].iter().sum::<f64>(), 950.0);
}

#[test]
fn a_worker_that_cannot_go_on_ends_the_step_at_once() {
    let _turn = turn();
    let workload = workload(&["rows=3000", "i1_rows=1000", "query_seconds=5"]);
    let database = Database { folder: tempfile::tempdir().unwrap() };
    let all = steps(Dialect::Sqlite, &workload);
    run(&job(Dialect::Sqlite, database.endpoint(), &workload, &all[0]));
    database.ask("SELECT 1");
    let sqlite = Arc::new(Sqlite::compiled_in());
    let mut connection = SqliteConnection::open(&sqlite, &database.path(), 1000).unwrap();
    connection
        .simple(
            "CREATE TRIGGER no BEFORE DELETE ON pi1 BEGIN SELECT raise(ABORT, 'no more deletes'); \
             END",
        )
        .unwrap();
    let (ending, said) = messages(&job(Dialect::Sqlite, database.endpoint(), &workload, &all[2]));
    assert_eq!(ending, Ending::Failed);
    let Some(DriverEvent::Failed { fault }) = said.last() else { panic!("{said:?}") };
    assert!(fault.contains("the deleter of client 1"), "{fault}");
    assert!(fault.contains("no more deletes"), "{fault}");
}

/// The statements of a server's log, numbers as `#` and batches cut to one row, with how often.
fn shapes(log: &str) -> BTreeMap<String, u32> {
    let mut shapes = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains("pi1") || line.contains("EXECUTE")) {
        let starts = [
            "DROP ", "CREATE ", "ALTER ", "INSERT ", "DELETE ", "SELECT ", "PREPARE ", "EXECUTE ",
            "VACUUM ", "ANALYZE ",
        ];
        let Some(at) = starts.iter().filter_map(|start| line.find(start)).min() else { continue };
        *shapes.entry(shape(&line[at..])).or_insert(0) += 1;
    }
    shapes
}

fn shape(sql: &str) -> String {
    let sql = match sql.find("VALUES ") {
        Some(at) => {
            let tuples = sql.matches("),(").count() + 1;
            format!("{}VALUES x {tuples}", &sql[..at])
        }
        None => sql.to_owned(),
    };
    let mut shape = String::new();
    let mut within_name = false;
    for c in sql.chars() {
        let digit = c.is_ascii_digit() && !within_name;
        if !digit {
            shape.push(c);
        } else if !shape.ends_with('#') {
            shape.push('#');
        }
        within_name = c.is_ascii_alphabetic() || c == '$' || (within_name && c.is_ascii_digit());
    }
    shape
}

/// Runs all steps of a profile on a server that writes its statements down; `None` if it cannot be
/// had. `more` are lines of its config.
fn logged(
    test: &str,
    target: &str,
    profile: &str,
    more: &str,
    log: impl Fn(&Scene, &Path) -> PathBuf,
) -> Option<BTreeMap<String, u32>> {
    if let Err(why) = builds::roots("", &[target]) {
        skipped::note(test, &why);
        return None;
    }
    let scene = Scene::new();
    let dbms = target.split('@').next().unwrap();
    // The user of the server writes there.
    let open = scene.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let more = more.replace("{log}", &open.join("general.log").to_string_lossy());
    scene.configure(dbms, "logged", &more);
    let output = small(&scene, &[&format!("a={target}:logged")], &[&format!("profile={profile}")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let (folder, _) = scene.runs().into_iter().next().unwrap();
    let bytes = fs::read(log(&scene, &folder)).unwrap();
    Some(shapes(&String::from_utf8_lossy(&bytes)))
}

/// `compare` of this benchmark with small tables.
fn small(scene: &Scene, targets: &[&str], settings: &[&str]) -> Command {
    let mut command = scene.rqps();
    command.args(["compare", "--full"]).args(targets).args(["--bench", "insert", "--blocks", "1"]);
    // A block that a neighbour spoilt would be measured again, against what the test waits for.
    command.args(["--canaries", "off"]);
    command.arg("--out").arg(scene.path("out")).arg("--configs").arg(scene.path("configs"));
    let sizes = ["rows=2000", "query_seconds=1", "settle_scale=0"];
    for setting in settings.iter().chain(&sizes) {
        command.args(["--set", setting]);
    }
    let last = if settings.iter().any(|setting| setting.contains("2021")) {
        vec!["more_rows=500"]
    } else {
        vec!["i1_rows=400", "i2_rows=100"]
    };
    for setting in last {
        command.args(["--set", setting]);
    }
    command
}

fn check_shapes(have: &BTreeMap<String, u32>, want: &[(&str, u32)]) {
    for (sql, least) in want {
        let count = have.get(*sql).copied().unwrap_or(0);
        assert!(count >= *least, "{sql}: {count}, at least {least} expected in {have:#?}");
    }
}

const INSERT: &str =
    "INSERT INTO pi1 (dateandtime,cashregisterid,customerid,productid,price,data) VALUES x ";

#[test]
fn postgres_receives_the_published_statements() {
    let _turn = turn();
    let test = "postgres_receives_the_published_statements";
    let of_run = |_: &Scene, folder: &Path| folder.join("logs/server.log");
    let more = "log_statement = all";
    let Some(have) = logged(test, "postgres@17.2.0", "2026", more, of_run) else { return };
    check_shapes(
        &have,
        &[
            (
                "CREATE TABLE pi1 (transactionid bigserial PRIMARY KEY, dateandtime timestamp \
                 without time zone, cashregisterid int NOT NULL, customerid int NOT NULL, \
                 productid int NOT NULL, price int NOT NULL, data varchar(#))",
                1,
            ),
            ("ALTER SEQUENCE pi1_transactionid_seq CACHE #", 1),
            (&format!("{INSERT}#"), 20 + 1 + 8 + 20),
            ("CREATE INDEX pi1_marketsegment ON pi1 (productid, customerid, price)", 1),
            ("CREATE INDEX pi1_registersegment ON pi1 (cashregisterid, customerid, price)", 1),
            ("CREATE INDEX pi1_pdc ON pi1 (price, dateandtime, customerid)", 1),
            ("SELECT min(transactionid) FROM pi1", 8),
            ("SELECT max(transactionid) FROM pi1", 3),
            (
                "DELETE FROM pi1 WHERE transactionid IN (SELECT transactionid FROM pi1 WHERE \
                 transactionid >= # ORDER BY transactionid ASC LIMIT #)",
                8 + 20,
            ),
            (
                "PREPARE marketsegment (int) AS SELECT productid, customerid, price FROM pi1 WHERE \
                 productid >= $1 ORDER BY productid, customerid, price LIMIT #",
                3,
            ),
            ("EXECUTE marketsegment(#)", 10),
            ("EXECUTE registersegment(#)", 10),
            ("EXECUTE pdc(#)", 10),
            ("EXECUTE point(#,#,#,#,#,#,#,#,#,#)", 10),
            ("VACUUM (verbose, analyze, index_cleanup ON) pi1", 1),
        ],
    );
}

#[test]
fn postgres_of_2021_receives_text_and_is_vacuumed() {
    let _turn = turn();
    let test = "postgres_of_2021_receives_text_and_is_vacuumed";
    let of_run = |_: &Scene, folder: &Path| folder.join("logs/server.log");
    let more = "log_statement = all";
    let Some(have) = logged(test, "postgres@17.2.0", "2021", more, of_run) else { return };
    check_shapes(
        &have,
        &[
            ("VACUUM (VERBOSE) pi1", 5),
            (
                "SELECT price, customerid FROM pi1 WHERE price >= #.# ORDER BY price, customerid \
                 LIMIT #",
                10,
            ),
            (
                "SELECT cashregisterid, price, customerid FROM pi1 WHERE cashregisterid > # ORDER \
                 BY cashregisterid, price, customerid LIMIT #",
                10,
            ),
        ],
    );
    assert!(!have.keys().any(|sql| sql.starts_with("DELETE") || sql.starts_with("PREPARE")));
}

#[test]
fn mysql_receives_the_published_statements() {
    let _turn = turn();
    let test = "mysql_receives_the_published_statements";
    let of_scene = |scene: &Scene, _: &Path| scene.path("open/general.log");
    let more = "general_log = 1\nlog_output = FILE\ngeneral_log_file = {log}";
    let Some(have) = logged(test, "mysql@8.0.33", "2026", more, of_scene) else { return };
    check_shapes(
        &have,
        &[
            (
                "CREATE TABLE pi1 (transactionid bigint NOT NULL AUTO_INCREMENT, dateandtime \
                 datetime, cashregisterid int NOT NULL, customerid int NOT NULL, productid int NOT \
                 NULL, price int NOT NULL, data varchar(#), PRIMARY KEY (transactionid)) \
                 ENGINE=InnoDB",
                1,
            ),
            (
                "ALTER TABLE pi1 ADD INDEX pi1_marketsegment (productid, customerid, price), ADD \
                 INDEX pi1_registersegment (cashregisterid, customerid, price), ADD INDEX pi1_pdc \
                 (price, dateandtime, customerid)",
                1,
            ),
            (&format!("{INSERT}#"), 49),
            ("DELETE FROM pi1 WHERE transactionid >= # ORDER BY transactionid ASC LIMIT #", 28),
            (
                "SELECT price, dateandtime, customerid FROM pi1 FORCE INDEX (pi1_pdc) WHERE price \
                 >= # ORDER BY price, dateandtime, customerid LIMIT #",
                10,
            ),
            (
                "SELECT transactionid, productid, data FROM pi1 WHERE transactionid IN \
                 (#,#,#,#,#,#,#,#,#,#)",
                10,
            ),
        ],
    );
}

#[test]
fn servers_and_host_are_observed_each_second() {
    let _turn = turn();
    let test = "servers_and_host_are_observed_each_second";
    let targets = ["mysql@5.6.14", "mysql@8.0.33", "postgres@12.22.0", "postgres@17.2.0"];
    if let Err(why) = builds::roots("", &targets) {
        return skipped::note(test, &why);
    }
    let scene = Scene::new();
    let output = small(&scene, &targets, &["query_steps=100:range"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let runs = scene.runs();
    assert_eq!(runs.len(), targets.len());
    for (folder, _) in runs {
        let of_queries = |path: &PathBuf| path.to_string_lossy().ends_with("qr100.L1.json");
        let step = entries(&folder.join("steps")).into_iter().find(of_queries).unwrap();
        let record: Json = serde_json::from_slice(&fs::read(&step).unwrap()).unwrap();
        let seconds = fs::read_to_string(step.with_extension("csv")).unwrap();
        let series = &record["outcome"]["series"];
        let first = |column: &str| {
            let values = series[column].as_array().unwrap_or_else(|| panic!("{column}: {series}"));
            assert_eq!(values.len(), series["inserts"].as_array().unwrap().len(), "{column}");
            values[0].as_f64().unwrap()
        };
        // Data that lies in memory has no disk.
        for column in ["iowait_s", "steal_s"] {
            let place = seconds.lines().next().unwrap().split(',').position(|head| head == column);
            let cell = seconds.lines().nth(1).unwrap().split(',').nth(place.unwrap()).unwrap();
            assert!(cell.parse::<f64>().is_ok_and(|value| value >= 0.0), "{column}: {seconds}");
        }
        if folder.to_string_lossy().contains("mysql") {
            let (used, capacity) = (first("server_redo_used"), first("server_redo_capacity"));
            assert!(0.0 < used && used < capacity, "{used} of {capacity}");
            first("server_pages_flushed");
        } else {
            first("server_checkpoint_pages");
            first("server_autovacuum_workers");
        }
    }
}

#[test]
fn a_server_killed_in_l_i1_fails_its_run_and_the_plan_goes_on() {
    let _turn = turn();
    let test = "a_server_killed_in_l_i1_fails_its_run_and_the_plan_goes_on";
    if let Err(why) = builds::roots("", &["postgres@17.2.0"]) {
        return skipped::note(test, &why);
    }
    let scene = Scene::new();
    let mut command = small(&scene, &["a=postgres@17.2.0"], &["i1_rows=20M"]);
    command.args(["--set", "i1_rows=20M", "--steps", "l.*"]);
    let mut running = scene.start(command);
    let of_i1 = |said: &str| said.contains("l.x") || scene.steps().len() >= 2;
    assert!(running.until(of_i1).is_none(), "{}", running.said());
    std::thread::sleep(std::time::Duration::from_millis(700));
    let postmaster = scene
        .processes()
        .into_iter()
        .find(|process| process.words.contains("config_file="))
        .expect("a server");
    signal(postmaster.pid, Signal::KILL);
    let status = running.end();
    let said = running.said();
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("signal 9") || said.contains("SIGKILL"), "{said}");
    scene.check_nothing_is_left(running.pid());
    let kept: Vec<Json> = scene
        .steps()
        .iter()
        .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        .collect();
    let complete =
        |name: &str| kept.iter().any(|step| step["name"] == name && step["status"] == "complete");
    assert!(complete("l.i0") && complete("l.x"), "finished steps are kept");
    assert_eq!(scene.runs()[0].1["status"].as_object().map(|status| status.len()), Some(1));
    let mut resumed = scene.start(scene.resume());
    let of_i1 = |said: &str| said.contains("repeating block") && scene.steps().len() >= 3;
    assert!(resumed.until(of_i1).is_none(), "{}", resumed.said());
    assert!(resumed.said().contains("block 1: a failed"), "{}", resumed.said());
    assert_eq!(scene.runs().len(), 2, "another attempt: {:?}", scene.runs());
}

#[test]
fn a_plan_that_was_killed_in_l_i1_is_gone_on_with() {
    let _turn = turn();
    let scene = Scene::new();
    let mut command = small(&scene, &["a=sqlite", "b=sqlite"], &[]);
    command.args(["--set", "i1_rows=100000", "--steps", "l.*"]);
    let mut running = scene.start(command);
    let in_i1 = |_: &str| scene.steps().len() >= 2;
    assert!(running.until(in_i1).is_none(), "{}", running.said());
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.kill();
    scene.check_nothing_is_left(running.pid());
    let kept = scene.steps();
    assert_eq!(kept.len(), 2, "l.i0 and l.x are whole, l.i1 is not there");
    let mut resumed = scene.start(scene.resume());
    let status = resumed.end();
    assert!(status.success(), "{}", resumed.said());
    assert!(kept.iter().all(|step| step.exists()), "finished steps are kept");
    let complete = scene.runs().iter().filter(|(_, run)| run["status"] == "complete").count();
    assert_eq!(complete, 2, "both targets, from an empty database");
}

/// A small file system that is unmounted at the end.
struct SmallDisk(PathBuf);

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

#[test]
fn a_full_disk_in_l_i0_is_told() {
    let _turn = turn();
    let test = "a_full_disk_in_l_i0_is_told";
    let scene = Scene::new();
    let disk = SmallDisk(scene.path("small"));
    fs::create_dir(&disk.0).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1500m,mode=755", "tmpfs"])
        .arg(&disk.0)
        .output()
        .unwrap();
    if !mount.status.success() {
        return skipped::note(test, &stderr(&mount));
    }
    let mut command = small(&scene, &["a=sqlite"], &[]);
    command.args(["--set", "rows=2M", "--steps", "l.i0", "--work"]).arg(disk.0.join("work"));
    let mut running = scene.start(command);
    let begun = running.until(|_| {
        let of_target = |own: &PathBuf| entries(&own.join("a"));
        let data = entries(&disk.0.join("work")).iter().flat_map(of_target).collect::<Vec<_>>();
        data.iter().any(|path| path.join("rqps.db").exists()) && !scene.runs().is_empty()
    });
    assert!(begun.is_none(), "{}", running.said());
    let mut filler = fs::File::create(disk.0.join("filler")).unwrap();
    let block = vec![1_u8; 1 << 16];
    while std::io::Write::write_all(&mut filler, &block).is_ok() {}
    let status = running.end();
    let said = running.said();
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("the inserter of client 1"), "{said}");
    assert!(said.contains("full"), "{said}");
    scene.check_nothing_is_left(running.pid());
}

#[test]
fn impossible_shapes_are_refused_before_anything_starts() {
    let scene = Scene::new();
    let refused = |settings: &[&str], part: &str| {
        let output = small(&scene, &["a=sqlite"], settings).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(part), "{said}");
        assert!(!scene.path("out").exists(), "nothing was begun");
    };
    refused(&["query_steps=-1:range"], "RATE:KIND");
    refused(&["query_steps=0:range"], "RATE:KIND");
    refused(&["i0_commit=5000"], "more than all rows");
    refused(&["clients=3", "tables=2"], "3 clients need a table each");
    refused(&["shared=yes"], "deletes need a table for each client");
}

#[test]
fn a_report_has_the_published_tables() {
    let _turn = turn();
    let scene = Scene::new();
    let output = small(&scene, &["a=sqlite", "b=sqlite"], &[]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "Insert Benchmark: summary",
        "Throughput relative to a",
        "Inserts/s during queries",
        "wkbpi",
        "256us",
        "Longest operations of all blocks",
        "one writer at a time",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let order: Vec<usize> = ["l.i0", "l.x", "l.i1", "l.i2", "qr100.L1", "qp1000.L6"]
        .iter()
        .map(|step| text.find(&format!("\n{step} relative to a")).expect(step))
        .collect();
    assert!(order.is_sorted(), "in the order of the sequence: {order:?}");
    let record: Json = serde_json::from_slice(&fs::read(&scene.steps()[0]).unwrap()).unwrap();
    assert_eq!(record["name"], "l.i0");
    assert_eq!(record["outcome"]["roles"]["inserts"]["rows"], 2000);
    assert!(record["outcome"]["extra"]["database_size"].as_f64().unwrap() > 0.0);
    assert!(matches!(workload(&[]).shape, BenchmarkParameters::Insert(_)));
}
