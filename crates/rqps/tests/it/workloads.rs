//! Workloads of the user's own SQL, through the whole program: the examples of docs/workloads.md as
//! they stand there, on SQLite; what Postgres receives, by its own log; what is refused; and what
//! fails in one step only.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod client;

use crate::support::{builds, log, program, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::support::program::{SHORT, rqps_in, said, steps, turn};
use crate::support::theirs::Theirs;
use rqps_model::build::Dbms;

/// The files of docs/workloads.md.
fn examples() -> tempfile::TempDir {
    program::files_of_docs("", 4)
}

fn compare(folder: &Path, targets: &[&str], more: &[&str]) -> Output {
    let mut command = rqps_in(&["compare", "--bench", "sql:shop.toml"], folder);
    command.args(targets).args(SHORT).args(more).output().unwrap()
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
    // Long enough that an event of one in ten surely happens, also where a commit takes 10 ms.
    let longer = ["--set", "seconds=1"];
    let output = compare(folder.path(), &["sqlite", "b=sqlite:small-cache"], &longer);
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
            assert!(outcome["events"].as_u64().unwrap() > 0, "{outcome}");
        }
        let [point, _, checkout] = steps.as_slice() else { panic!("{names:?}") };
        assert_eq!(point["outcome"]["events"], point["outcome"]["reads"]);
        assert!(point["outcome"]["plans"]["statement 1"].as_str().unwrap().contains("customer"));
        assert!(checkout["outcome"]["plans"]["buy statement 2"].is_string(), "{checkout}");
        // Nine of ten events are one statement, one of ten is four with BEGIN and COMMIT. Six
        // standard deviations: a slow host makes a few dozen events.
        let of = |name: &str| checkout["outcome"][name].as_f64().unwrap();
        let (events, bought) = (of("events"), of("writes") / 2.0);
        assert!(bought > 0.0 && of("statements") == events + 3.0 * bought, "{checkout}");
        let deviation = (events * 0.1 * 0.9).sqrt();
        assert!((bought - events * 0.1).abs() <= 6.0 * deviation, "{bought} of {events}");
    }
}

/// Scripts that the page names and does not show.
const SCRIPTS: [(&str, &str); 4] = [
    ("browse.sql", "SELECT 1;\n"),
    (
        "oltp_point_select.lua",
        "sysbench.cmdline.options = { tables = { \"\", 1 }, table_size = \
     { \"\", 1 } }\nfunction event() end\n",
    ),
    (
        "oltp_read_write.lua",
        "sysbench.cmdline.options = { tables = { \"\", 1 } }\n\
     function event() end\n",
    ),
    (
        "tpcc.lua",
        "sysbench.cmdline.options = { tables = { \"\", 1 }, scale = { \"\", 1 }, \
     use_fk = { \"\", 1 } }\nsysbench.cmdline.commands = { check = { function() end } }\n\
     function event() end\n",
    ),
];

/// What is too large for a test is at least understood: names, options and files.
#[test]
fn every_command_of_the_docs_makes_a_plan() {
    let folder = examples();
    let script = program::files_of_docs("A script ", 1);
    fs::copy(script.path().join("deposit.sql"), folder.path().join("deposit.sql")).unwrap();
    for (name, text) in SCRIPTS {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let has_luajit = rqps_embed::lua::LuaJit::load().is_ok();
    let mut planned = 0;
    for mut words in program::commands_of_docs() {
        // `init` has tests of its own.
        let is_lua = words.iter().any(|word| word.starts_with("lua:"));
        if words[0] == "init" || (is_lua && !has_luajit) {
            continue;
        }
        "plan".clone_into(&mut words[0]);
        let of_rqps = words.iter().take_while(|word| *word != ">").cloned().collect::<Vec<_>>();
        let output = rqps_in(&of_rqps, folder.path()).output().unwrap();
        assert!(output.status.success(), "{of_rqps:?}: {}", said(&output));
        let plan = program::text(&output.stdout);
        let benchmark = of_rqps.iter().skip_while(|word| *word != "--bench").nth(1).unwrap();
        let benchmark = benchmark.split(':').next().unwrap();
        assert!(plan.contains(&format!("benchmark = \"{benchmark}\"")), "{of_rqps:?}: {plan}");
        planned += 1;
    }
    assert!(planned >= 9, "{planned}");
}

/// Takes its first lines from the file of the docs, and its step from the part about `into`.
fn refunds(folder: &Path) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/workloads.md");
    let docs = fs::read_to_string(docs).unwrap();
    let part = docs.split("```toml\n").find(|part| part.contains("into = [")).unwrap();
    let part = part.split("```").next().unwrap();
    let load = "[load]\nschema = [\"schema.sql\"]\ndata = [{ csv = \"orders.csv\", \
                table = \"orders\" }]\n";
    fs::write(folder.join("shop.toml"), format!("{load}{part}")).unwrap();
    let rows: String = (1..=1000).map(|id| format!("{id},{},{id}.25\n", id % 7)).collect();
    fs::write(folder.join("orders.csv"), format!("id,customer_id,total\n{rows}")).unwrap();
}

/// Checks the step of `refunds`.
fn check_refunds(step: &serde_json::Value) {
    assert_eq!(
        (step["status"].as_str(), step["rate"].as_str()),
        (Some("complete"), Some("transactions"))
    );
    let of = |fact: &str| step["outcome"][fact].as_f64().unwrap();
    assert!(of("events") > 0.0, "{step}");
    // BEGIN, SELECT, INSERT, COMMIT; each reads one row and writes one.
    assert_eq!(of("statements"), 4.0 * of("events"), "{step}");
    assert_eq!((of("reads"), of("writes")), (of("events"), of("events")), "{step}");
    assert_eq!(step["parameters"]["clients"], 2, "{step}");
    let plans = &step["outcome"]["plans"];
    assert!(plans["statement 1"].is_string() && plans["statement 2"].is_string(), "{step}");
}

#[test]
fn a_row_gives_values_to_later_statements_and_files_are_kept_with_the_results() {
    let _turn = turn();
    let folder = examples();
    refunds(folder.path());
    let output = compare(folder.path(), &["sqlite", "b=sqlite"], &[]);
    assert!(output.status.success(), "{}", said(&output));
    let out = folder.path().join("out");
    for label in ["sqlite", "b"] {
        check_refunds(&steps(&out, label)[0]);
    }
    for file in ["schema.sql", "orders.csv"] {
        let kept = fs::read(out.join("workload").join(file)).unwrap();
        assert_eq!(kept, fs::read(folder.path().join(file)).unwrap(), "{file}");
    }
    // The copies are no runs.
    let report = rqps_in(&["report", "out"], folder.path()).output().unwrap();
    assert!(report.status.success(), "{}", said(&report));
    let missing = folder.path().join("shop.toml");
    edit(&missing, "FROM orders WHERE id = :old", "FROM orders WHERE id = -:old");
    fs::remove_dir_all(&out).unwrap();
    let output = compare(folder.path(), &["sqlite"], &[]);
    let words = said(&output);
    let wanted = "it returned no row; `into` needs one row of 2 columns";
    assert!(!output.status.success() && words.contains(wanted), "{words}");
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
    let words = said(&output);
    assert!(words.contains("sqlite: 8 rows loaded"), "{words}");
    let run = program::runs(&folder.path().join("out"), "sqlite").remove(0);
    let record = fs::read_to_string(run.join("run.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let files = record["load"]["files"].as_array().unwrap();
    let wanted = [("schema.sql", 4), ("customer.csv", 4), ("indexes.sql", 0)];
    assert_eq!(files.len(), wanted.len(), "{record}");
    for (file, (name, rows)) in files.iter().zip(wanted) {
        let bytes = fs::metadata(folder.path().join(name)).unwrap().len();
        assert_eq!(
            (file["file"].as_str(), file["rows"].as_u64(), file["bytes"].as_u64()),
            (Some(name), Some(rows), Some(bytes)),
        );
        assert!(file["seconds"].as_f64().unwrap() > 0.0, "{file}");
        assert!(words.contains(&format!("sqlite: {name}: ")), "{words}");
    }
}

/// The server takes the rows of an open transaction back when the session ends.
#[test]
fn a_file_that_ends_within_a_transaction_ends_the_load() {
    let test = "a_file_that_ends_within_a_transaction_ends_the_load";
    let roots = builds::roots("", &["mysql@8.0.33"]).unwrap_or_default();
    let mut targets = vec!["sqlite".to_owned()];
    match roots.first() {
        Some(root) => targets.push(format!("mysql={}", root.display())),
        None => skipped::note(test, "on MySQL it needs MySQL 8.0.33"),
    }
    let _turn = turn();
    for target in &targets {
        let folder = examples();
        let path = folder.path().join("schema.sql");
        let schema = fs::read_to_string(&path).unwrap();
        let insert = "BEGIN;\nINSERT INTO orders (id, customer_id) VALUES (1, 1);\n";
        fs::write(&path, schema + insert).unwrap();
        let words = said(&compare(folder.path(), &[target], &[]));
        assert!(words.contains("its end comes before that of a transaction"), "{words}");
    }
}

/// Tables of which one draws its numbers on the server, and steps that read them.
const DRAWN: &str = r#"
[load]
schema = ["drawn.sql"]
[parameter]
id = { kind = "uniform", from = 1, to = 100 }
[[step]]
name = "drawn"
[[step.event]]
[[step.event.statement]]
sql = "SELECT number FROM drawn WHERE id = :id"
[[step]]
name = "given"
[[step.event]]
[[step.event.statement]]
sql = "SELECT number, loaded FROM given WHERE id = :id"
[[step.event.statement]]
sql = "UPDATE given SET number = number WHERE id = :id"
"#;

const DRAWN_SCHEMA: &str = "\
CREATE TABLE drawn (id INTEGER PRIMARY KEY, number INTEGER);
CREATE TABLE given (id INTEGER PRIMARY KEY, number INTEGER, loaded TEXT);
WITH RECURSIVE ids(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < 100)
  INSERT INTO drawn SELECT id, random() FROM ids;
WITH RECURSIVE ids(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM ids WHERE id < 100)
  INSERT INTO given SELECT id, id * 7, strftime('%Y-%m-%d %H:%M:%f', 'now') FROM ids;
";

/// Each target draws its own numbers: other rows are other work.
#[test]
fn steps_on_data_that_differ_have_no_verdict() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("shop.toml"), DRAWN).unwrap();
    fs::write(folder.path().join("drawn.sql"), DRAWN_SCHEMA).unwrap();
    let output = compare(folder.path(), &["sqlite", "b=sqlite"], &[]);
    let report = program::text(&output.stdout);
    assert!(output.status.success(), "{}", said(&output));
    let first = report.split("- ").nth(1).unwrap();
    assert!(first.starts_with("b: table drawn: column number differs"), "{report}");
    assert!(first.contains("(drawn)"), "{report}");
    let void = "it reads data that differ from the baseline's";
    assert!(report.contains(void), "{report}");
    assert!(!report.contains("answers differ"), "{report}");
    let all = ["given: column loaded differs: it holds the time of the load", "(given)"];
    assert!(all.iter().all(|text| report.contains(text)), "{report}");
    let again = rqps_in(&["report", "out", "--data", "differ"], folder.path()).output().unwrap();
    let again = program::text(&again.stdout);
    assert!(again.contains("table drawn: column number differs"), "{again}");
    assert!(!again.contains(void), "{again}");
    let steps = steps(&folder.path().join("out"), "b");
    let given = &steps[1]["answers"];
    assert_eq!(given["statements"].as_array().map(Vec::len), Some(2), "{given}");
    assert_eq!(given["answers"].as_array().map(Vec::len), Some(5), "only what reads: {given}");
}

/// `system_user` names a column before Postgres 16 and a keyword since; `random()` draws other
/// numbers since 15. The first counts other rows, the second loads other rows.
#[test]
fn another_version_of_postgres_that_answers_differently_has_no_verdict() {
    let test = "another_version_of_postgres_that_answers_differently_has_no_verdict";
    let roots = builds::roots("", &["postgres@12.22.0", "postgres@17.2.0"]).unwrap_or_default();
    let [old, new] = roots.as_slice() else {
        return skipped::note(test, "it needs Postgres 12.22.0 and 17.2.0");
    };
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let schema = "CREATE TABLE audit (id INT PRIMARY KEY, \"system_user\" TEXT, made TIMESTAMP \
                  DEFAULT now());\n\
                  INSERT INTO audit SELECT id, 'clerk' || id % 25 FROM generate_series(1, 5000) id;\n\
                  CREATE TABLE drawn (id INT PRIMARY KEY);\n\
                  SELECT setseed(0.5);\n\
                  INSERT INTO drawn SELECT id FROM generate_series(1, 5000) id \
                  WHERE random() < 0.9;\n";
    fs::write(folder.path().join("schema.sql"), schema).unwrap();
    let step = |name: &str, sql: &str| {
        format!(
            "[[step]]\nname = \"{name}\"\n[[step.event]]\n[[step.event.statement]]\nsql = \"{sql}\"\n"
        )
    };
    let text = [
        "[load]\nschema = [\"schema.sql\"]\n".to_owned(),
        step("by-user", "SELECT count(*) FROM audit WHERE system_user = 'clerk7'"),
        step("all", "SELECT count(*), sum(sqrt(id)) FROM audit"),
        step("drawn", "SELECT count(*) FROM drawn"),
        step("first", "SELECT id FROM audit ORDER BY (system_user = 'clerk7') DESC, id LIMIT 3"),
        step("ties", "SELECT id FROM audit ORDER BY id % 7 LIMIT 3"),
    ];
    fs::write(folder.path().join("shop.toml"), text.concat()).unwrap();
    let target = |label: &str, root: &Path| format!("{label}=postgres={}", root.display());
    let targets = [target("old", old), target("new", new)];
    let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
    let output = compare(folder.path(), &targets, &[]);
    assert!(output.status.success(), "{}", said(&output));
    let report = program::text(&output.stdout);
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let answer = "new: `SELECT count(*) FROM audit WHERE system_user = 'clerk7'`: 1 row on old, (200) \
                  only there; 1 row on new, (0) only there (by-user)";
    assert!(report.contains(answer), "{report}");
    assert!(report.contains("new: table drawn: "), "{report}");
    let first =
        "LIMIT 3`: other rows: row 1 has the sort key (t, 7) on old, (NULL, 1) on new (first)";
    assert!(report.contains(first), "{report}");
    let json = rqps_in(&["report", "out", "--format", "json"], folder.path()).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    let void = json["comparison"]["steps"].as_array().unwrap().iter().filter(|step| {
        step["targets"][1]["not_comparable"].as_array().is_some_and(|why| !why.is_empty())
    });
    let mut void: Vec<&str> = void.map(|step| step["name"].as_str().unwrap()).collect();
    void.sort_unstable();
    assert_eq!(void, ["by-user", "drawn", "first"]);
}

#[test]
fn a_plan_holds_the_workload_and_refuses_another_file() {
    let _turn = turn();
    let folder = examples();
    let words = ["plan", "sqlite", "b=sqlite", "--bench", "sql:shop.toml"];
    let plan = rqps_in(&words, folder.path()).args(&SHORT[..8]).output().unwrap();
    assert!(plan.status.success(), "{}", said(&plan));
    let text = String::from_utf8(plan.stdout).unwrap();
    assert!(text.contains("[[step]]\nname = \"customer-by-id\""), "{text}");
    let path = folder.path().join("plan.toml");
    fs::write(&path, &text).unwrap();
    let run = ["run", "plan.toml", "--out", "out"];
    let run = || rqps_in(&run, folder.path()).output().unwrap();
    edit(&folder.path().join("customer.csv"), "Ada", "Adam");
    let refused = run();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(said(&refused).contains("customer.csv: the file has changed"));
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
    assert!(words.contains("statement 1: it returned 1 row, not 2 with the values "), "{words}");
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
    let unknown = format!("line {}, column 1: unknown key `wieght`", line("weight = 9"));
    check(&["sqlite"], "weight = 9", "wieght = 9", &unknown);
    let broken = format!("line {}, column 8: ", line("name = \"cities\""));
    check(&["sqlite"], "name = \"cities\"", "name = cities", &broken);
    let words = refused(&["sqlite"], "values = [\"Paris\"", "values = [true");
    let place = format!("line {}, column ", line("city  ="));
    let wanted = "expected a number, or a text in quotes";
    assert!(words.contains(&place) && words.contains(wanted), "{words}");
    let latin1 = original.replacen("Oslo", "\u{d8}slo", 1);
    let latin1: Vec<u8> = latin1.chars().map(|letter| u8::try_from(letter).unwrap()).collect();
    fs::write(&shop, latin1).unwrap();
    let words = said(&compare(folder.path(), &["sqlite"], &[]));
    let place = format!("line {}, column 46: it is not UTF-8\nhint: convert", line("city  ="));
    assert!(words.contains(&place), "{words}");
    let guest = "postgres://nobody@/none?host=/nowhere";
    let question = "hint: add --yes to allow it, or leave the steps out with --steps";
    check(&[guest], "x", "x", question);
    let named = "checkout may change rows of the database of ";
    check(&[guest], "x", "x", named);
    let there = "each block loads customer, orders, and checkout may change rows, in the database";
    check(&[guest], "[load]", "[load]\nload = true", there);
    let load = &original[original.find("[load]").unwrap()..original.find("[parameter]").unwrap()];
    check(&["sqlite"], load, "", "rqps starts sqlite on an empty database");
    let bench = |bench: &str| {
        let words = ["compare", "sqlite", "--bench", bench];
        said(&rqps_in(&words, folder.path()).output().unwrap())
    };
    assert!(bench("sql").contains("it needs a workload file"), "{}", bench("sql"));
    assert!(bench("kv:shop.toml").contains("it takes no file; leave out `:shop.toml`"));
}

/// The statements of each session of Postgres with the values of `$1` …, from the server's log.
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
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/postgres/default.conf");
    let more = "\nlog_statement = all\nlog_line_prefix = '@%p '\n";
    fs::create_dir_all(root.join("configs/postgres")).unwrap();
    let config = fs::read_to_string(shipped).unwrap() + more;
    fs::write(root.join("configs/postgres/logging.conf"), config).unwrap();
    let targets = ["a=postgres@17.2.0:logging", "b=postgres@17.2.0:logging"];
    let words = ["--interleave", "step", "--steps", "checkout", "--configs", "configs"];
    let output = compare(root, &targets, &words);
    assert!(output.status.success(), "{}", said(&output));
    let logs = ["a", "b"].map(|label| {
        let run = program::runs(&root.join("out"), label).remove(0);
        fs::read_to_string(run.join("logs/server.log")).unwrap()
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
            .filter(|(sql, _)| !["rqps_generic", "plan_cache"].iter().any(|own| sql.contains(own)))
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
    let plans = &steps(&root.join("out"), "a")[0]["outcome"]["plans"];
    let generic = plans["buy statement 2 (generic)"].as_str().unwrap_or_default();
    assert!(generic.contains("(id = $2)"), "{plans}");
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

/// The workload of the docs, loaded on a server that is not rqps's.
fn check_load_on_a_server(test: &str, target: &str, dbms: Dbms) {
    let Some(server) = Theirs::start(test, target, dbms) else { return };
    let folder = examples();
    let shop = folder.path().join("shop.toml");
    edit(&shop, "[load]", "[load]\nload = true");
    let customer = "CREATE TABLE customer (id INTEGER)";
    let kept = ["CREATE TABLE kept (id INTEGER)", "INSERT INTO kept VALUES (7)"];
    server.owner(&[customer, "INSERT INTO customer VALUES (9)", kept[0], kept[1]]);
    let dsn = server.dsn("a");
    let compare = |blocks: &str, more: &[&str]| {
        let words = ["compare", &dsn, "--bench", "sql:shop.toml", "--blocks", blocks];
        let mut command = rqps_in(&words, folder.path());
        command.args(&SHORT[..2]).args(&SHORT[4..]).args(more).output().unwrap()
    };
    let refused = |blocks: &str, more: &[&str], want: &str| {
        let output = compare(blocks, more);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        assert!(said(&output).contains(want), "{}", said(&output));
        let rows = server.owner_rows("SELECT id FROM customer");
        assert_eq!(rows, [[Some("9".to_owned())]]);
    };
    refused(
        "1",
        &["--yes"],
        "there are already customer, and rqps changed nothing\nhint: add drop",
    );
    let wanted =
        "hint: if nothing else is in them, add drop = [\"orders\", \"customer\"] to [load]";
    refused("2", &["--yes"], wanted);
    // From here on the load is that of the docs.
    let text = fs::read_to_string(&shop).unwrap();
    let (before, rest) = text.split_once("[load]\n").unwrap();
    let (_, after) = rest.split_once("[parameter]\n").unwrap();
    let load = program::block_of_docs("load = true ");
    fs::write(&shop, format!("{before}{load}\n[parameter]\n{after}")).unwrap();
    refused("2", &[], "each block drops and loads customer, orders, and checkout may");
    let output = compare("2", &["--yes"]);
    assert!(output.status.success(), "{}", said(&output));
    let words = format!("{}{}", said(&output), program::text(&output.stdout));
    assert!(words.contains("rqps drops and loads customer, orders before each block"), "{words}");
    let runs = program::runs(&folder.path().join("out"), "a");
    assert_eq!(runs.len(), 2);
    for run in runs {
        let record = fs::read_to_string(run.join("run.json")).unwrap();
        let record: serde_json::Value = serde_json::from_str(&record).unwrap();
        assert_eq!((&record["load"]["rows"], &record["status"]), (&4.into(), &"complete".into()));
    }
    let count = |sql: &str| server.owner_rows(sql).remove(0).remove(0).unwrap();
    assert_eq!(count("SELECT count(*) FROM customer"), "4");
    assert_eq!(count("SELECT min(id) FROM kept"), "7");
    assert_ne!(count("SELECT count(*) FROM orders"), "0", "tables stay after the last block");
}

#[test]
fn a_load_on_a_server_changes_what_the_file_says_and_nothing_else() {
    let test = "a_load_on_a_server_changes_what_the_file_says_and_nothing_else";
    check_load_on_a_server(test, "postgres@17.2.0", Dbms::Postgres);
    check_load_on_a_server(test, "mysql@8.0.33", Dbms::Mysql);
    check_load_on_a_server(test, "mariadb@11.4.5", Dbms::Mariadb);
}

/// Statements on tables that are missing, or closed to the login, and where they are looked for.
fn check_absent(test: &str, target: &str, dbms: Dbms) {
    let Some(server) = Theirs::start(test, target, dbms) else { return };
    server.owner(&["CREATE TABLE item (id INTEGER, n INTEGER)", "INSERT INTO item VALUES (7, 1)"]);
    let is_postgres = dbms == Dbms::Postgres;
    let guest = if is_postgres { "guest" } else { "guest@localhost" };
    let role = if is_postgres { "CREATE ROLE guest LOGIN" } else { "CREATE USER guest@localhost" };
    server.owner(&[role, &format!("GRANT SELECT ON item TO {guest}")]);
    let folder = server.folder.path();
    let own = |name: &str, statements: &[&str]| {
        let statements = statements
            .iter()
            .map(|sql| format!("[[step.event]]\n[[step.event.statement]]\nsql = \"{sql}\"\n"));
        let text = "[[step]]\nname = \"look\"\n".to_owned() + &statements.collect::<String>();
        fs::write(folder.join(name), text).unwrap();
    };
    own("absent.toml", &["SELECT n FROM item WHERE id = 7", "UPDATE absent_table SET n = 1"]);
    own("there.toml", &["SELECT n FROM item WHERE id = 7"]);
    own("closed.toml", &["SELECT n FROM item WHERE id = 7", "DELETE FROM item WHERE id = 7"]);
    own("making.toml", &["CREATE TEMPORARY TABLE made (n INTEGER)", "SELECT n FROM made"]);
    fs::write(folder.join("item.sql"), "SELECT n FROM item WHERE id = 7;\n").unwrap();
    let compare = |dsn: &str, words: &[&str]| {
        let mut command = rqps_in(&["compare", dsn], folder);
        command.args(SHORT).arg("--yes").args(words);
        command.output().unwrap()
    };
    let refused = |dsn: &str, words: &[&str], wanted: [&str; 2]| {
        let output = compare(dsn, words);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        for wanted in wanted {
            assert!(said(&output).contains(wanted), "{wanted}: {}", said(&output));
        }
        assert!(!folder.join("out").exists(), "{}", said(&output));
    };
    let dsn = server.dsn("a");
    let absent = ["`UPDATE absent_table SET n = 1`", "the database of the DSN"];
    refused(&dsn, &["--bench", "sql:absent.toml"], absent);
    let standard = ["`SELECT n FROM item WHERE id = 7;`", "--set load=none"];
    refused(&dsn, &["--bench", "pgbench:item.sql"], standard);
    let script = "function thread_init() con = sysbench.sql.driver():connect() end\n\
                  function event() con:query('SELECT n FROM absent_' .. 'lua') end\n";
    fs::write(folder.join("absent.lua"), script).unwrap();
    if let Err(why) = rqps_embed::lua::LuaJit::load() {
        skipped::note(test, &why.to_string());
    } else {
        let prepare = ["`SELECT n FROM absent_lua`", "sysbench SCRIPT prepare"];
        refused(&dsn, &["--bench", "lua:absent.lua"], prepare);
    }
    let user = dsn.split_once("//").unwrap().1.split_once('@').unwrap().0;
    let by_guest = dsn.replace(&format!("//{user}@"), "//guest@");
    let closed = ["`DELETE FROM item WHERE id = 7`", "GRANT the right"];
    refused(&by_guest, &["--bench", "sql:closed.toml"], closed);
    let output = compare(&by_guest, &["--bench", "sql:there.toml"]);
    assert!(output.status.success(), "{}", said(&output));
    fs::remove_dir_all(folder.join("out")).unwrap();
    for words in [
        &["--bench", "sql:there.toml"][..],
        &["--bench", "sql:making.toml"],
        &["--bench", "pgbench:item.sql", "--set", "load=none"],
    ] {
        let output = compare(&dsn, words);
        // The second event of one step makes its table again.
        let is_making = words[1] == "sql:making.toml";
        assert!(output.status.success() || is_making, "{}", said(&output));
        assert!(!said(&output).contains("the database of the DSN"), "{}", said(&output));
        fs::remove_dir_all(folder.join("out")).unwrap();
    }
}

#[test]
fn tables_that_a_server_lacks_are_named_before_the_first_block() {
    let test = "tables_that_a_server_lacks_are_named_before_the_first_block";
    check_absent(test, "postgres@17.2.0", Dbms::Postgres);
    check_absent(test, "mysql@8.0.33", Dbms::Mysql);
    check_absent(test, "mariadb@11.4.5", Dbms::Mariadb);
}
