//! Workloads of the user's own SQL, through the whole program: the examples of docs/workloads.md as
//! they stand there, on SQLite; what Postgres receives, by its own log; what is refused; and what
//! fails in one step only.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod builds;
#[allow(dead_code, reason = "another test reads logs of MySQL, too")]
#[path = "statements/log.rs"]
mod log;
mod skipped;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};

use serde_json::Value as Json;

/// One at a time: the host lock is taken without waiting for long.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn rqps(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
    let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join("workloads.lock");
    command.env("RQPS_HOST_LOCK", lock).current_dir(folder).stdin(Stdio::null());
    command.env("RQPS_STATE", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-calibrations"));
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The files of docs/workloads.md: each stands in a block after a line with its name alone.
fn examples() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/workloads.md");
    let docs = fs::read_to_string(docs).unwrap();
    let (mut name, mut lines, mut count) = (None, docs.lines(), 0);
    while let Some(line) = lines.next() {
        let named = line.strip_prefix('`').and_then(|rest| rest.strip_suffix("`:"));
        if line.starts_with("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if let Some(name) = name.take() {
                fs::write(folder.path().join::<&str>(name), block.join("\n") + "\n").unwrap();
                count += 1;
            }
        } else {
            name = named;
        }
    }
    assert_eq!(count, 4);
    folder
}

const SHORT: [&str; 10] = [
    "--canaries",
    "off",
    "--blocks",
    "1",
    "--set",
    "seconds=0.2",
    "--set",
    "warmup_seconds=0.1",
    "--out",
    "out",
];

fn compare(folder: &Path, targets: &[&str], more: &[&str]) -> Output {
    let mut command = rqps(folder);
    command.arg("compare").args(targets).args(["--bench", "sql:shop.toml"]).args(SHORT);
    command.args(more).output().unwrap()
}

/// The records of all steps of a target, in order.
fn steps(out: &Path, label: &str) -> Vec<Json> {
    let mut paths: Vec<PathBuf> = fs::read_dir(out)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(&format!("-{label}")))
        .flat_map(|run| fs::read_dir(run.join("steps")).unwrap().flatten().map(|one| one.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn the_example_of_the_docs_runs_as_it_stands() {
    let _turn = turn();
    let folder = examples();
    let output = compare(folder.path(), &["sqlite", "b=sqlite:small-cache"], &[]);
    assert!(output.status.success(), "{}", said(&output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("SELECT * FROM customer WHERE id = :id"), "{report}");
    assert!(report.contains("tables of 3 files, 1 client"), "{report}");
    for label in ["sqlite", "b"] {
        let steps = steps(&folder.path().join("out"), label);
        let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["customer-by-id", "cities", "checkout"]);
        for (step, group) in steps.iter().zip(["point", "range", "write"]) {
            assert_eq!(
                (step["status"].as_str(), step["group"].as_str()),
                (Some("complete"), Some(group))
            );
            let outcome = &step["outcome"];
            assert!(outcome["events"].as_u64().unwrap() > 10, "{outcome}");
        }
        let [point, _, checkout] = steps.as_slice() else { panic!("{names:?}") };
        assert_eq!(point["outcome"]["events"], point["outcome"]["reads"]);
        assert!(point["outcome"]["plans"]["statement 1"].as_str().unwrap().contains("customer"));
        assert!(checkout["outcome"]["plans"]["buy statement 2"].is_string(), "{checkout}");
        assert!(checkout["outcome"]["writes"].as_u64().unwrap() > 0);
        // Nine of ten events are one statement, one of ten is four with BEGIN and COMMIT.
        let of_event = checkout["outcome"]["statements"].as_f64().unwrap()
            / checkout["outcome"]["events"].as_f64().unwrap();
        assert!((1.05..1.6).contains(&of_event), "{of_event}");
    }
}

#[test]
fn rows_of_insert_statements_count_as_loaded() {
    let _turn = turn();
    let folder = examples();
    let mut schema = fs::read_to_string(folder.path().join("schema.sql")).unwrap();
    schema += "INSERT INTO orders (id, customer_id) VALUES (1, 1), (2, 1);\n\
               insert into orders (id, customer_id) select id + 2, 1 from orders;\n\
               UPDATE orders SET total = 1;\n";
    fs::write(folder.path().join("schema.sql"), schema).unwrap();
    edit(
        &folder.path().join("shop.toml"),
        "from = 1, to = 1_000_000_000",
        "from = 9, to = 99999999",
    );
    let output = compare(folder.path(), &["sqlite"], &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("sqlite: 8 rows loaded"), "{}", said(&output));
}

#[test]
fn a_plan_holds_the_workload_and_refuses_another_file() {
    let _turn = turn();
    let folder = examples();
    let mut command = rqps(folder.path());
    let plan = command.args(["plan", "sqlite", "b=sqlite", "--bench", "sql:shop.toml"]);
    let plan = plan.args(&SHORT[..8]).output().unwrap();
    assert!(plan.status.success(), "{}", said(&plan));
    let text = String::from_utf8(plan.stdout).unwrap();
    assert!(text.contains("[[step]]\nname = \"customer-by-id\""), "{text}");
    let path = folder.path().join("plan.toml");
    fs::write(&path, &text).unwrap();
    let run = || rqps(folder.path()).args(["run", "plan.toml", "--out", "out"]).output().unwrap();
    edit(&folder.path().join("customer.csv"), "Ada", "Adam");
    let refused = run();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("customer.csv: it is not the file of the plan"));
    edit(&folder.path().join("customer.csv"), "Adam", "Ada");
    edit(&path, "customer WHERE id = :id", "customer WHERE id = :key");
    let line = fs::read_to_string(&path).unwrap();
    let line = line.lines().position(|line| line.contains(":key")).unwrap() + 1;
    let wrong = said(&run());
    let place =
        format!("line {line}, column 7: step `customer-by-id`, statement 1: it uses `:key`");
    assert!(wrong.contains(&place), "{wrong}");
    edit(&path, ":key", ":id");
    let done = run();
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(steps(&folder.path().join("out"), "b").len(), 3);
}

#[test]
fn a_statement_that_fails_fails_its_step_alone() {
    let _turn = turn();
    let folder = examples();
    let shop = folder.path().join("shop.toml");
    edit(&shop, "count(*) FROM customer", "count(*) FROM supplier");
    let output = compare(folder.path(), &["sqlite", "b=sqlite"], &[]);
    let words = said(&output);
    assert!(!output.status.success() && words.contains("no such table: supplier"), "{words}");
    let status: Vec<String> = steps(&folder.path().join("out"), "b")
        .iter()
        .map(|step| step["status"].to_string())
        .collect();
    assert_eq!(status.len(), 3, "{status:?}");
    assert!(status[0].contains("complete") && status[2].contains("complete"), "{status:?}");
    assert!(status[1].contains("no such table: supplier"), "{status:?}");
}

#[test]
fn rows_that_are_not_expected_fail_the_step_with_the_values() {
    let _turn = turn();
    let folder = examples();
    let shop = folder.path().join("shop.toml");
    edit(&shop, "expect.rows = 1", "expect.rows = 2");
    let words = said(&compare(folder.path(), &["sqlite"], &["--steps", "customer-by-id"]));
    assert!(words.contains("statement 1: it returned 1 rows, not 2 with the values "), "{words}");
}

#[test]
fn what_cannot_be_used_is_refused_before_anything_starts() {
    let folder = examples();
    let shop = folder.path().join("shop.toml");
    let original = fs::read_to_string(&shop).unwrap();
    let refused = |targets: &[&str], from: &str, to: &str| {
        fs::write(&shop, original.replacen(from, to, 1)).unwrap();
        let output = compare(folder.path(), targets, &[]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(!folder.path().join("out").exists());
        said(&output)
    };
    let check = |targets: &[&str], from: &str, to: &str, want: &str| {
        let words = refused(targets, from, to);
        assert!(words.contains(want), "{words}");
    };
    check(&["sqlite"], "customer.csv", "client.csv", "read ");
    let line = |of: &str| original.lines().position(|line| line.starts_with(of)).unwrap() + 1;
    let unknown = format!("line {}, column 10: unknown key `wieght`", line("weight = 9"));
    check(&["sqlite"], "weight = 9", "wieght = 9", &unknown);
    let broken = format!("at line {}, column 8", line("name = \"cities\""));
    check(&["sqlite"], "name = \"cities\"", "name = cities", &broken);
    let guest = "postgres://nobody@/none?host=/nowhere";
    let question = "hint: add --yes to allow it, or leave the steps out with --steps";
    check(&[guest], "x", "x", question);
    let named = "checkout may change rows of the database of ";
    check(&[guest], "x", "x", named);
    let load = &original[original.find("[load]").unwrap()..original.find("[parameter]").unwrap()];
    check(&["sqlite"], load, "", "rqps starts sqlite on an empty database");
    let mut command = rqps(folder.path());
    let output = command.args(["compare", "sqlite", "--bench", "sql"]).output().unwrap();
    assert!(said(&output).contains("it needs a workload file"), "{}", said(&output));
    let mut command = rqps(folder.path());
    let output = command.args(["compare", "sqlite", "--bench", "kv:shop.toml"]).output().unwrap();
    assert!(said(&output).contains("it takes no file; leave out `:shop.toml`"));
}

#[test]
fn a_draft_from_a_database_runs_as_it_is_written() {
    use rqps::embed::sqlite::{Sqlite, SqliteConnection};
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT);\n\
                  CREATE TABLE \"order\" (code TEXT PRIMARY KEY, \"Total sum\" NUMERIC);\n\
                  CREATE TABLE empty (id INTEGER PRIMARY KEY);\nCREATE TABLE nokey (a INTEGER);\n\
                  INSERT INTO customer VALUES (1, 'a'), (2, 'b''c'), (3, NULL);\n\
                  INSERT INTO \"order\" VALUES ('x\"1', 1.5), ('y\\2', 2), ('z''3', 3);\n\
                  INSERT INTO nokey VALUES (1);\n";
    let database = folder.path().join("app.db");
    let library = std::sync::Arc::new(Sqlite::compiled_in());
    let mut connection = SqliteConnection::open(&library, &database, 1000).unwrap();
    for sql in schema.split(";\n").filter(|sql| !sql.is_empty()) {
        connection.simple(sql).unwrap();
    }
    drop(connection);
    let init = |more: &[&str]| {
        let mut command = rqps(folder.path());
        command.args(["init", "app.db", "-o", "shop.toml"]).args(more).output().unwrap()
    };
    let output = init(&[]);
    assert!(output.status.success(), "{}", said(&output));
    let text = fs::read_to_string(folder.path().join("shop.toml")).unwrap();
    for part in [
        "#   customer: about 3 rows\n",
        "customer_key = { kind = \"uniform\", from = 1, to = 3 }  # customer.id, INTEGER\n",
        "sql = \"SELECT * FROM customer WHERE id = :customer_key\"\nexpect.rows = 1\n",
        "# SQLite keeps no statistics of statements.\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("empty-by-key") && !text.contains("nokey-by-key"), "{text}");
    let again = init(&[]);
    assert!(said(&again).contains("it is there already"), "{}", said(&again));
    fs::write(folder.path().join("dump.sql"), schema).unwrap();
    let loaded = text.replace("# [load]", "[load]").replace("# schema", "schema");
    fs::write(folder.path().join("shop.toml"), loaded).unwrap();
    let output = compare(folder.path(), &["sqlite", "b=sqlite"], &[]);
    assert!(output.status.success(), "{}", said(&output));
    for step in steps(&folder.path().join("out"), "b") {
        // Every value of the sample is found.
        let (events, rows) = (&step["outcome"]["events"], &step["outcome"]["rows"]);
        assert_eq!(events, rows, "{step}");
    }
}

/// What a session of Postgres executed: statements with the values of `$1` …, by the server's log.
fn logged_events(log: &str) -> Vec<Vec<(String, Vec<String>)>> {
    let sessions = log::postgres(log).into_iter();
    let seen = |seen: log::Seen| (seen.sql, seen.parameters);
    sessions.map(|session| session.into_iter().map(seen).collect()).collect()
}

#[test]
fn a_server_receives_the_statements_of_the_file_with_the_values_of_their_kinds() {
    let test = "a_server_receives_the_statements_of_the_file";
    let _turn = turn();
    let folder = examples();
    let root = match builds::roots("", &["postgres@17.2.0"]) {
        Ok(_) => folder.path(),
        Err(why) => return skipped::note(test, &why),
    };
    // The server's own user goes through it.
    fs::set_permissions(root, fs::Permissions::from_mode(0o755)).unwrap();
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/postgres/default.conf");
    let more = "\nlog_statement = all\nlog_line_prefix = '@%p '\n";
    fs::create_dir_all(root.join("configs/postgres")).unwrap();
    let config = fs::read_to_string(shipped).unwrap() + more;
    fs::write(root.join("configs/postgres/logging.conf"), config).unwrap();
    let targets = ["a=postgres@17.2.0:logging", "b=postgres@17.2.0:logging"];
    let words = ["--interleave", "step", "--steps", "checkout", "--configs", "configs"];
    let output = compare(root, &targets, &words);
    assert!(output.status.success(), "{}", said(&output));
    let logs = ["a", "b"].map(|label| {
        let runs = fs::read_dir(root.join("out")).unwrap().flatten().map(|entry| entry.path());
        let mut runs = runs.filter(|path| path.to_string_lossy().ends_with(&format!("-{label}")));
        fs::read_to_string(runs.next().unwrap().join("logs/server.log")).unwrap()
    });
    let sent = logs.map(|log| {
        let mut sessions = logged_events(&log).into_iter();
        let is_client = |session: &Vec<(String, Vec<String>)>| {
            session.iter().any(|(sql, _)| sql.starts_with("SELECT total"))
        };
        let session = sessions.find(is_client).expect("a client");
        let mut session: Vec<_> = session
            .into_iter()
            .filter(|(sql, _)| !sql.starts_with("EXPLAIN") && sql != "SELECT 1")
            .collect();
        // The last event may have been cut off by the end of the window.
        let end = session.iter().rposition(|(sql, _)| sql == "COMMIT").expect("a transaction");
        session.truncate(end + 1);
        session
    });
    let same = sent[0].len().min(sent[1].len());
    assert!(same > 50, "{same}");
    assert_eq!(sent[0][..same], sent[1][..same], "one seed, one sequence");
    check_checkout(&sent[0]);
}

/// Holds the statements of the step `checkout` against docs/workloads.md, by hand.
fn check_checkout(sent: &[(String, Vec<String>)]) {
    let (mut reads, mut buys, mut at) = (0, 0, 0);
    let is_id = |text: &str| (1..=4).contains(&text.parse::<i32>().unwrap());
    while let Some((sql, values)) = sent.get(at) {
        if sql == "SELECT total FROM orders WHERE customer_id = $1 LIMIT 20" {
            assert!(values.len() == 1 && is_id(&values[0]), "{values:?}");
            (reads, at) = (reads + 1, at + 1);
            continue;
        }
        let [begin, insert, update, commit] = &sent[at..at + 4] else { panic!("{sql}") };
        assert_eq!(begin.0, "BEGIN ISOLATION LEVEL REPEATABLE READ");
        assert_eq!(
            insert.0,
            "INSERT INTO orders (id, customer_id, total, day) VALUES ($1, $2, $3, $4::date)"
        );
        let [order, id, total, day] = insert.1.as_slice() else { panic!("{insert:?}") };
        buys += 1;
        assert_eq!(*order, buys.to_string(), "a sequence");
        assert!(is_id(id), "{id}");
        assert!((1.0..=999.0).contains(&total.parse::<f64>().unwrap()), "{total}");
        assert_eq!(total.split_once('.').unwrap().1.len(), 2, "{total}");
        assert!(day.starts_with("2024-") && day.len() == 10, "{day}");
        assert_eq!(update.0, "UPDATE customer SET note = $1 WHERE id = $2");
        let [note, same] = update.1.as_slice() else { panic!("{update:?}") };
        assert!(note == "NULL" || (20..=60).contains(&note.len()), "{note}");
        assert_eq!(same, id, "one value for the whole event");
        assert_eq!(commit.0, "COMMIT");
        at += 4;
    }
    let events = f64::from(reads + buys);
    let off = (f64::from(buys) - 0.1 * events).abs() / (0.09 * events).sqrt();
    // The sequence ends with a transaction: one more than by chance.
    assert!(off < 6.5, "{buys} of {events} events, where one of ten is wanted");
}
