//! Scripts of pgbench through the whole program: the examples of docs/workloads.md on SQLite, what
//! is refused, and on Postgres the statements of the real program with the same seed, by the
//! server's own log.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support::{program, skipped};
use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Output, Stdio};

use crate::support::program::{SHORT, rqps_in, said, steps, turn};
use crate::support::theirs::Theirs;
use rqps_model::build::Dbms;
use serde_json::Value as Json;

/// The scripts of docs/workloads.md.
fn examples() -> tempfile::TempDir {
    program::files_of_docs("A script ", 1)
}

#[test]
fn the_script_of_the_docs_runs_as_it_stands_beside_built_in_ones() {
    let _turn = turn();
    let folder = examples();
    let words = ["compare", "sqlite", "b=sqlite:small-cache"];
    let mut command = rqps_in(&words, folder.path());
    command.args(SHORT);
    command.args(["--bench", "pgbench:deposit.sql@3,select-only@1", "--bench", "pgbench:tpcb"]);
    let output = command.args(["--", "-n", "-D", "largest=50"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("pgbench's tables of scale 1, 1 client"), "{report}");
    assert!(report.contains("tps"), "{report}");
    for label in ["sqlite", "b"] {
        let steps = steps(&folder.path().join("out"), label);
        let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["deposit+select-only", "tpcb-like"]);
        let of = |step: &Json, fact: &str| step["outcome"][fact].as_f64().unwrap();
        for step in &steps {
            assert_eq!(
                (step["status"].as_str(), step["rate"].as_str()),
                (Some("complete"), Some("transactions"))
            );
            assert!(of(step, "events") >= 1.0, "{step}");
        }
        let each = of(&steps[1], "statements") / of(&steps[1], "events");
        assert!((each - 7.0).abs() < 1e-9, "{each}");
        assert_eq!(steps[1]["outcome"]["no_ops"].as_u64(), Some(0), "every row is found");
        let plan = steps[1]["outcome"]["plans"]["tpcb-like line 6"].as_str().unwrap();
        assert!(plan.contains("pgbench_accounts"), "{plan}");
        let each = of(&steps[0], "statements") / of(&steps[0], "events");
        assert!((1.0..4.0).contains(&each), "{each}");
    }
}

#[test]
fn a_plan_holds_the_scripts_and_refuses_another_text() {
    let _turn = turn();
    let folder = examples();
    let words = ["plan", "sqlite", "b=sqlite", "--bench", "pgbench:deposit.sql"];
    let mut command = rqps_in(&words, folder.path());
    let plan = command.args(&SHORT[..8]).args(["--", "-D", "largest=9"]).output().unwrap();
    assert!(plan.status.success(), "{}", said(&plan));
    let text = String::from_utf8(plan.stdout).unwrap();
    assert!(text.contains("benchmark = \"pgbench\"") && text.contains("sha256 = "), "{text}");
    let path = folder.path().join("plan.toml");
    let run = ["run", "plan.toml", "--out", "out"];
    let run = || rqps_in(&run, folder.path()).output().unwrap();
    fs::write(&path, text.replace("UPDATE pgbench_accounts", "UPDATE  pgbench_accounts")).unwrap();
    let refused = run();
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
    assert!(
        said(&refused).contains("the text of `deposit.sql` in the plan does not match its sha256")
    );
    // The file itself is not needed any more.
    fs::remove_file(folder.path().join("deposit.sql")).unwrap();
    fs::write(&path, &text).unwrap();
    let done = run();
    assert!(done.status.success(), "{}", said(&done));
    assert_eq!(steps(&folder.path().join("out"), "b").len(), 1);
}

#[test]
fn what_cannot_be_used_is_refused_before_anything_starts() {
    let folder = examples();
    let check = |bench: &[&str], options: &[&str], want: &str| {
        let mut command = rqps_in(&["compare", "sqlite", "b=sqlite"], folder.path());
        command.args(SHORT);
        for bench in bench {
            command.args(["--bench", bench]);
        }
        let output = command.arg("--").args(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{bench:?} {options:?}: {}", said(&output));
        assert!(said(&output).contains(want), "{}\n  instead of {want}", said(&output));
        assert!(!folder.path().join("out").exists());
    };
    let select = &["pgbench:select-only"][..];
    check(select, &["-c", "8"], "`-c 8`: it is `--clients 8` here");
    check(select, &["-T60"], "`-T 60`: it is `--set seconds=60` here");
    check(select, &["--random-seed=5"], "`--random-seed 5`: it is `--seed 5` here");
    check(select, &["-R", "10"], "it is `--rate 10` here");
    check(select, &["-t", "10"], "a step ends by time; see `--set seconds`");
    check(select, &["-h", "db"], "a target says where its server is");
    check(select, &["-i"], "rqps loads once and then runs");
    check(select, &["-S"], "scripts are named by `--bench pgbench:select-only`; leave out `-S`");
    check(select, &["--foo"], "pgbench has no option `--foo`");
    check(select, &["shop"], "`shop` is not an option of pgbench");
    check(select, &["-s", "0"], "`-s 0`: write a whole number from 1 to 1000000");
    check(select, &["-s"], "a value must follow `-s`");
    check(select, &["-M", "fast"], "write simple, extended or prepared");
    check(select, &["-D", "a"], "write NAME=VALUE");
    check(select, &["-M", "extended"], "`-M extended` needs Postgres; a target speaks sqlite");
    check(select, &["-F", "50"], "sqlite has no fill factor");
    check(select, &["--partition-method=hash"], "`--partition-method` needs `--partitions`");
    check(&["pgbench:s"], &[], "`s` begins several built-in scripts: tpcb-like, simple-update");
    check(&["pgbench:nosuch.sql"], &[], "read nosuch.sql: ");
    check(&["pgbench:deposit.sql@x"], &[], "the weight of `deposit.sql` must be");
    check(&["pgbench:deposit.sql@0"], &[], "all weights of `deposit.sql@0` are 0");
    check(&["sysbench"], &["-s", "1"], "it takes no options after `--`; leave out `-s`");
    check(&["pgbench:tpcb", "sysbench"], &[], "run the benchmarks `pgbench` and `sysbench`");
    let script = |text: &str| fs::write(folder.path().join("bad.sql"), text).unwrap();
    script("SELECT 1;\n\\set a 1 +\n");
    check(
        &["pgbench:bad.sql"],
        &[],
        "bad.sql, line 2, column 11: a value, not the end of the line",
    );
    script("SELECT 1;\n\\shell ls\n");
    check(&["pgbench:bad.sql"], &[], "bad.sql, line 2, column 1: `\\shell` runs a program");
    script("\\startpipeline\nSELECT 1;\n\\endpipeline\n");
    check(&["pgbench:bad.sql"], &[], "bad.sql, line 1: pipelines need `-M extended`");
    script("SELECT 1 \\; SELECT 2;\n");
    check(&["pgbench:bad.sql"], &[], "bad.sql, line 1: sqlite executes one statement at a time");
}

/// Runs the real program on a server.
fn pgbench(server: &Theirs, options: &[&str]) -> Output {
    let mut command = Command::new("pgbench");
    let socket = server.socket();
    let port = socket.extension().unwrap();
    command.arg("-h").arg(socket.parent().unwrap()).arg("-p").arg(port);
    command.args(["-U", &server.login.user]).args(options).arg(&server.login.database);
    command.stdin(Stdio::null()).output().unwrap()
}

/// The statements, with their values, of each session that sent any while `work` ran; sessions are
/// in the order of their first statements.
fn sent_by(server: &Theirs, work: impl FnOnce()) -> Vec<Vec<String>> {
    let before = server.log_length();
    work();
    let log = server.log_since(before);
    let (mut places, mut sessions) = (BTreeMap::new(), Vec::<Vec<String>>::new());
    let mut last = None;
    for line in log.lines() {
        // The text of a statement may have several lines.
        let begun = line.strip_prefix('@').and_then(|line| line.split_once(' '));
        let Some((id, text)) = begun else {
            if let (Some(place), Some(rest)) = (last, line.strip_prefix('\t')) {
                let statements: &mut Vec<String> = &mut sessions[place];
                statements.last_mut().unwrap().push_str(&format!("\n{rest}"));
            }
            continue;
        };
        let place = *places.entry(id.to_owned()).or_insert(sessions.len());
        if place == sessions.len() {
            sessions.push(Vec::new());
        }
        let statements = &mut sessions[place];
        last = None;
        if let Some(sql) = text.strip_prefix("LOG:  statement: ") {
            statements.push(sql.to_owned());
            last = Some(place);
        } else if let Some(call) = text.strip_prefix("LOG:  execute ") {
            statements.push(call.split_once(": ").unwrap().1.to_owned());
            last = Some(place);
        } else if let Some(values) = text.strip_prefix("DETAIL:  ") {
            let values = values.split_once("arameters: ").map_or("", |(_, values)| values);
            statements.last_mut().unwrap().push_str(&format!(" -- {values}"));
        }
    }
    sessions
}

/// Every command and function of the language.
const EVERYTHING: &str = r"-- a script with all that there is
\set a random(1, 100000) * :factor
\set b random_gaussian(1, 1000, 2.5) + random_exponential(1, 100, 3.5)
\set c random_zipfian(1, 100000, 1.2)
\set d case when :a % 2 = 0 then hash(:a) else permute(:b, 1000) end
\set e :a / 3.0
\set nothing null
SELECT :a, ':b', ':unknown', :c::int8 \; SELECT :d AS last;
SELECT :a + 1 AS one, :e AS two \gset p_
SELECT :p_one - 1 AS three, 'x' AS four \gset
\if :a > 50000
SELECT 'large', ':four', :three;
\elif :b > 500 and not false
SELECT 'middle', ':four_', :d;
\else
SELECT 'small', $$:a$$;
\endif
SELECT 1 AS x \; SELECT 2 AS y \aset
SELECT :x + :y;
\sleep 10 us
\set a \
  :a + 1
SELECT sum(generate_series) -- not the end;
  FROM generate_series(1, :x);
";

/// Statements that all protocols can carry, with a pipeline.
const PIPELINE: &str = r"\set a random(1, 100000)
\set name random(1, 9)
\startpipeline
SELECT :a::int;
SELECT :name::text || 'x';
\endpipeline
SELECT :a::int AS again \gset
SELECT :again::int, :never::int IS NULL, :name::int, :name::int;
";

#[test]
fn a_server_receives_what_the_real_program_sends() {
    let test = "a_server_receives_what_the_real_program_sends";
    let version = match Command::new("pgbench").arg("--version").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => return skipped::note(test, &format!("no pgbench: {error}")),
    };
    let number = version.split(' ').find_map(|word| word.split('.').next()?.parse::<u32>().ok());
    if number.is_none_or(|number| number < 15) {
        let why = format!("pgbench before 15 has other random numbers: {version}");
        return skipped::note(test, &why);
    }
    let Some(server) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    let made = pgbench(&server, &["-i", "-q", "-s", "2"]);
    assert!(made.status.success(), "{}", said(&made));
    let folder = server.folder.path();
    fs::write(folder.join("everything.sql"), EVERYTHING).unwrap();
    fs::write(folder.join("pipeline.sql"), PIPELINE).unwrap();
    for (scripts, protocol) in [
        (&["tpcb-like", "simple-update@2", "select-only@5"][..], "prepared"),
        (&["everything.sql@3", "select-only@1"], "simple"),
        (&["pipeline.sql"], "prepared"),
        (&["pipeline.sql", "select-only"], "extended"),
    ] {
        check_same(&server, scripts, protocol);
    }
}

/// Runs the scripts by rqps and by pgbench and compares what the server wrote down.
fn check_same(server: &Theirs, scripts: &[&str], protocol: &str) {
    let folder = server.folder.path();
    let out = folder.join(format!("out-{}-{protocol}", scripts.len()));
    let dsn = server.dsn("t");
    let more = ["-s", "2", "-M", protocol, "-D", "factor=3"];
    let ours = sent_by(server, || {
        let mut command = rqps_in(&["compare", &dsn], folder);
        command.args(&SHORT[..8]).arg("--out").arg(&out);
        command.args(["--clients", "2", "--set", "load=none", "--yes"]);
        command.arg("--bench").arg(format!("pgbench:{}", scripts.join(",")));
        let output = command.arg("--").args(more).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
    });
    let step = steps(&out, "t").remove(0);
    let way = step["outcome"]["facts"]["random numbers"].as_str().unwrap().to_owned();
    let seed = way.split_whitespace().last().unwrap();
    let theirs = sent_by(server, || {
        let mut options = vec!["-n", "-c", "2", "-j", "2", "-t", "300", seed];
        options.extend(more);
        for script in scripts {
            let is_file = script.contains(".sql");
            options.extend([if is_file { "-f" } else { "-b" }, script]);
        }
        let files: Vec<String> = options
            .iter()
            .map(|word| {
                if word.contains(".sql") {
                    folder.join(word).display().to_string()
                } else {
                    (*word).to_owned()
                }
            })
            .collect();
        let files: Vec<&str> = files.iter().map(String::as_str).collect();
        let output = pgbench(server, &files);
        assert!(output.status.success(), "{}", said(&output));
    });
    let clients = |sessions: Vec<Vec<String>>| -> Vec<Vec<String>> {
        let of_client = |session: Vec<String>| {
            // What finds the server's side, asks for plans, has it refuse writes, and looks behind
            // names.
            let of_rqps = [
                "EXPLAIN",
                "SELECT pg_catalog.pg_backend_pid",
                "SET default_transaction",
                "SELECT pg_catalog.unnest(pg_catalog.current_schemas",
                "SELECT pg_catalog.current_setting('server_version_num')",
                "BEGIN READ ONLY",
                "SET LOCAL search_path TO pg_catalog, pg_temp",
                "SELECT * FROM (WITH RECURSIVE made AS",
            ];
            let own = |sql: &String| {
                let is_end = ["SELECT 1", "COMMIT"].contains(&sql.as_str());
                !is_end && !of_rqps.iter().any(|begin| sql.starts_with(begin))
            };
            session.into_iter().filter(own).collect::<Vec<String>>()
        };
        let all = sessions.into_iter().map(of_client);
        let mut long: Vec<Vec<String>> = all.filter(|session| session.len() > 40).collect();
        // Sessions that ask for answers, before the clients come and after them.
        if long.len() > 2 {
            long.remove(0);
        }
        long.truncate(2);
        long.sort();
        long
    };
    let (ours, theirs) = (clients(ours), clients(theirs));
    assert_eq!((ours.len(), theirs.len()), (2, 2), "{scripts:?} {protocol}");
    for (ours, theirs) in ours.iter().zip(&theirs) {
        for (number, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
            assert_eq!(ours, theirs, "statement {number} of {scripts:?} {protocol}");
        }
    }
}
