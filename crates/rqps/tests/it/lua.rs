//! Scripts for sysbench, through the whole program: what servers receive is what the real sysbench
//! sends for the same script and seed, by the servers' own logs; a script that walks through the
//! interface; and what is refused.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support::{log, program, skipped};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::log::{How, Seen};
use crate::support::program::{said, steps};
use crate::support::theirs::Theirs;

use rqps_embed::lua::LuaJit;
use rqps_model::build::Dbms;
use rqps_model::endpoint::Login;
use serde_json::Value as Json;

/// Scripts of an installed sysbench: the user's, never part of rqps.
const SYSBENCH: &str = "/usr/share/sysbench";

/// Statements of a client that are compared: the first, after the warm-up of nothing.
const COMPARED: usize = 300;

/// True if scripts can run here; a note if not.
fn has_luajit(test: &str) -> bool {
    let jit = LuaJit::load();
    if let Err(error) = &jit {
        skipped::note(test, &error.to_string());
    }
    jit.is_ok()
}

/// A folder with the scripts of tests/data/lua.
fn scripts() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/lua");
    for entry in fs::read_dir(source).unwrap().flatten() {
        fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
    }
    folder
}

fn compare(folder: &Path, targets: &[&str], bench: &str, options: &[&str]) -> Output {
    let mut command = program::rqps_in(&["compare"], folder);
    command.args(targets).args(["--bench", bench, "--out", "out", "--yes"]);
    command.args(["--canaries", "off", "--blocks", "1", "--set", "seconds=0.4"]);
    command.args(["--set", "warmup_seconds=0", "--"]).args(options).output().unwrap()
}

#[test]
fn what_cannot_be_run_is_refused_with_the_way_out() {
    if !has_luajit("what_cannot_be_run_is_refused_with_the_way_out") {
        return;
    }
    let folder = scripts();
    fs::write(folder.path().join("compiled.lua"), b"\x1bLJ\x02").unwrap();
    fs::write(folder.path().join("queries.sql"), "SELECT 1;\n").unwrap();
    fs::write(folder.path().join("broken.lua"), "function event()\n  local = 3\nend\n").unwrap();
    fs::write(folder.path().join("still.lua"), "sysbench.cmdline.options = {}\n").unwrap();
    fs::write(folder.path().join("reach.lua"), "os.execute('true')\nfunction event() end\n")
        .unwrap();
    fs::write(folder.path().join("table.lua"), "sysbench.cmdline.options = { a = 1 }\n").unwrap();
    let helps = "sysbench.cmdline.options = { size = { \"Rows\", 3 } }\n\
                 sysbench.cmdline.commands = { check = { function() end } }\n\
                 print(\"too early\")\nfunction event() end\n\
                 function help()\n  print(\"SIZE rows, read\", \"by check\")\n\
                 sysbench.cmdline.print_test_options()\nend\n";
    fs::write(folder.path().join("helps.lua"), helps).unwrap();
    let worse = "function event() end\nfunction help() error(\"no help today\") end\n";
    fs::write(folder.path().join("worse.lua"), worse).unwrap();
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("queries.sql", &[], &["queries.sql is no Lua script", "--bench pgbench:FILE"]),
        ("walk.lua", &["--foo=1"], &["walk.lua has no option `--foo`; it has flag, many, size"]),
        ("walk.lua", &["--threads=8"], &["`--threads=8` is `--clients 8` here"]),
        ("walk.lua", &["--time=60"], &["`--time=60` is `--set seconds=60` here"]),
        ("walk.lua", &["--rand-seed=7"], &["`--rand-seed=7` is `--seed 7` here"]),
        ("walk.lua", &["--events=0.5"], &["invalid option `--events=0.5`: write a whole"]),
        ("walk.lua", &["--mysql-host=h"], &["leave out `--mysql-host`"]),
        ("walk.lua", &["--pgsql-password=x"], &["leave out `--pgsql-password`"]),
        ("walk.lua", &["--mysql-dry-run"], &["`--mysql-dry-run` is not supported"]),
        ("walk.lua", &["prepare"], &["rqps loads once and then runs: leave out `prepare`"]),
        ("walk.lua", &["help"], &["walk.lua has these options:\n  --flag=on (bool): A switch\n"]),
        (
            "helps.lua",
            &["help"],
            &[
                "  --size=3 (number): Rows\n  commands for --set before= and after=: check\n",
                "the help of helps.lua itself:\nSIZE rows, read\tby check\nhint: leave out `help`",
            ],
        ),
        ("worse.lua", &["help"], &["worse.lua:2: no help today"]),
        ("walk.lua", &["--flag=maybe"], &["invalid option `--flag=maybe`: write on or off"]),
        ("walk.lua", &["--size=many"], &["invalid option `--size=many`: write a number"]),
        ("walk.lua", &["--rand-type=odd"], &["there are uniform, gaussian, special"]),
        ("nowhere.lua", &[], &["nowhere.lua was not found", "install sysbench for its scripts"]),
        ("cpu", &[], &["`cpu` measures no database"]),
        ("compiled.lua", &[], &["script is compiled Lua; rqps needs the source"]),
        ("broken.lua", &[], &["broken.lua:2:", "'<name>' expected"]),
        ("still.lua", &[], &["still.lua has no event()"]),
        ("reach.lua", &[], &["reach.lua:1:", "`os.execute` is not allowed"]),
        ("table.lua", &[], &["wrong table structure in sysbench.cmdline.options"]),
    ];
    for (script, options, expected) in cases {
        let output = compare(folder.path(), &["sqlite"], &format!("lua:{script}"), options);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(2), "{script} {options:?}: {text}");
        for words in *expected {
            assert!(text.contains(words), "{script} {options:?}: {text}");
        }
    }
}

/// The output of scripts in the step of the first block.
fn printed(folder: &Path) -> String {
    fs::read_to_string(folder.join("out/b01-1-sqlite/logs/driver.log")).unwrap()
}

#[test]
fn scripts_run_on_sqlite_with_their_reports_and_commands() {
    if !has_luajit("scripts_run_on_sqlite_with_their_reports_and_commands") {
        return;
    }
    let folder = scripts();
    let options = ["--flag=off", "--many=a,b", "--size=3"];
    let output = compare(folder.path(), &["sqlite"], "lua:walk.lua,loop.lua", &options);
    assert!(output.status.success(), "{}", said(&output));
    check_own_loop(folder.path());
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    let mut command = program::rqps_in(&["compare", "sqlite"], folder.path());
    command.args(["--bench", "lua:reports.lua", "--out", "out", "--canaries", "off"]);
    command.args(["--blocks", "1", "--set", "seconds=1.2", "--set", "warmup_seconds=0"]);
    command.args(["--set", "before=look", "--set", "after=look", "--"]);
    let output = command.arg("--report-interval=0.4").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let log = printed(folder.path());
    let counted: Vec<u64> =
        log.lines().filter_map(|line| line.strip_prefix("rows: ")?.parse().ok()).collect();
    let record = steps(&folder.path().join("out"), "sqlite").remove(0);
    let events = record["outcome"]["events"].as_u64().unwrap();
    // Those of the warm-up and after the window are there, too, and in no report.
    assert_eq!(counted[0], 0, "{log}");
    assert!(counted[1] >= events, "{events}: {log}");
    assert!(log.contains(&format!("events: {events}")), "{events}: {log}");
    assert!(log.contains(r#""qps": {"total": "#), "{log}");
}

/// Options are globals where a script declares none, and one `prepare` of several says so.
#[test]
fn scripts_of_version_0_5_find_their_globals() {
    if !has_luajit("scripts_of_version_0_5_find_their_globals") {
        return;
    }
    let folder = scripts();
    fs::copy(folder.path().join("old.lua"), folder.path().join("again.lua")).unwrap();
    let output = compare(folder.path(), &["sqlite"], "lua:old.lua,again.lua", &[]);
    let steps = steps(&folder.path().join("out"), "sqlite");
    assert_eq!(steps[0]["status"], "complete", "{} {}", steps[0], said(&output));
    let note = "`prepare` of old loads for all scripts; that of again does not run";
    assert!(said(&output).contains(note), "{}", said(&output));
}

/// A command for all threads runs once on each in a state of its own, others run once, and one that
/// returns false fails the step.
#[test]
fn commands_run_as_scripts_declare_them() {
    if !has_luajit("commands_run_as_scripts_declare_them") {
        return;
    }
    let folder = scripts();
    let run = |after: &str| {
        let mut command = program::rqps_in(&["compare", "sqlite"], folder.path());
        command.args(["--bench", "lua:commands.lua", "--out", "out", "--canaries", "off"]);
        command.args(["--blocks", "1", "--set", "seconds=0.4", "--set", "warmup_seconds=0"]);
        command.args(["--clients", "2", "--set", "before=each,once", "--set", after]);
        command.output().unwrap()
    };
    let output = run("after=once");
    assert!(output.status.success(), "{}", said(&output));
    let log = printed(folder.path());
    let mut lines: Vec<&str> = log.lines().filter(|line| line.contains(": ")).collect();
    lines.sort_unstable();
    let wanted = [
        "each: thread 0 of 2, state 1, each",
        "each: thread 0 of 2, state 2, once",
        "each: thread 0 of 2, state 2, once",
        "each: thread 1 of 2, state 1, each",
        "once: state 1",
        "once: state 1",
    ];
    assert_eq!(lines, wanted, "{log}");
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    let output = run("after=fails");
    assert!(!output.status.success(), "{}", said(&output));
    let status = steps(&folder.path().join("out"), "sqlite").remove(0)["status"].to_string();
    assert!(status.contains("of commands: the command `fails` failed"), "{status}");
}

#[test]
fn a_script_may_not_take_all_memory() {
    if !has_luajit("a_script_may_not_take_all_memory") {
        return;
    }
    let folder = scripts();
    let run = |memory: &str| {
        let mut command = program::rqps_in(&["compare", "sqlite"], folder.path());
        command.args(["--bench", "lua:hungry.lua", "--out", "out", "--canaries", "off"]);
        command.args(["--blocks", "1", "--set", "seconds=0.4", "--set", "warmup_seconds=0"]);
        let output = command.args(["--set", memory]).output().unwrap();
        assert!(!output.status.success(), "{}", said(&output));
        said(&output)
    };
    run("lua_memory=64M");
    let out = folder.path().join("out");
    let status = steps(&out, "sqlite").remove(0)["status"].to_string();
    let wanted = "hungry: not enough memory: a state of a script may take 64 MiB\\nhint: use a \
                  larger lua_memory";
    assert!(status.contains(wanted), "{status}");
    fs::remove_dir_all(&out).unwrap();
    let large = run("lua_memory=32T");
    let wanted = "failed to open 3 states of a script: 33554432 MiB each are more than the ";
    assert!(large.contains(wanted), "{large}");
}

/// A client whose script ends its thread waits for the others, and the report says so.
#[test]
fn a_client_that_stops_early_is_told_in_the_report() {
    if !has_luajit("a_client_that_stops_early_is_told_in_the_report") {
        return;
    }
    let folder = scripts();
    let output = compare(folder.path(), &["sqlite"], "lua:stops.lua", &[]);
    assert!(output.status.success(), "{}", said(&output));
    let report = program::text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("client 0 stopped after 3 events"), "{report}");
    let outcome = &steps(&folder.path().join("out"), "sqlite")[0]["outcome"];
    assert_eq!((&outcome["stopped"]["0"], &outcome["events"]), (&3.into(), &3.into()));
}

/// A step ends after so many events of all clients; those in flight count.
#[test]
fn a_number_of_events_ends_a_step() {
    if !has_luajit("a_number_of_events_ends_a_step") {
        return;
    }
    let folder = scripts();
    let output = compare(folder.path(), &["sqlite"], "lua:stops.lua", &["--events=2"]);
    assert!(output.status.success(), "{}", said(&output));
    let report = program::text(&output.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("--events=2 ended it before its 0.4 s"), "{report}");
    let outcome = &steps(&folder.path().join("out"), "sqlite")[0]["outcome"];
    assert_eq!((&outcome["stopped"], &outcome["events"]), (&serde_json::Value::Null, &2.into()));
    assert!(outcome["seconds"].as_f64().unwrap() < 0.4, "{outcome}");
}

/// A step whose script draws by the distribution that nobody named says which one that is.
fn check_note(step: &Json) {
    let notes = step["outcome"]["notes"].to_string();
    assert!(notes.contains("drawn with `special`, the default of sysbench 1.0"), "{notes}");
}

/// The script with a loop of its own: each of its events counts, and it hears of its end.
fn check_own_loop(folder: &Path) {
    let records = steps(&folder.join("out"), "sqlite");
    check_note(&records[0]);
    let record = &records[1];
    assert_eq!(record["outcome"]["notes"].to_string(), "[]");
    let outcome = &record["outcome"];
    let count = |what: &str| outcome[what].as_u64().unwrap();
    let events = count("events");
    assert!(events > 0 && count("reads") == events, "{outcome}");
    let log = printed(folder);
    let ended = log.lines().find_map(|line| line.strip_prefix("the loop ended after "));
    assert!(ended.unwrap().parse::<u64>().unwrap() >= events, "{log}");
    assert!(log.contains("done after init: true"), "{log}");
}

#[test]
fn programs_need_the_users_word() {
    if !has_luajit("programs_need_the_users_word") {
        return;
    }
    let folder = scripts();
    let output = compare(folder.path(), &["sqlite"], "lua:programs.lua", &[]);
    let all = said(&output) + &String::from_utf8_lossy(&output.stdout);
    let flat = all.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["programs.lua:4: the script runs a program by `io.popen`", "--allow-shell"] {
        assert!(flat.contains(words), "{all}");
    }
    fs::remove_dir_all(folder.path().join("out")).unwrap();
    let bench = ["--bench", "lua:programs.lua", "--canaries", "off", "--blocks", "1"];
    let seconds = ["--set", "seconds=0.4", "--set", "warmup_seconds=0"];
    let allowed = |words: &[&str]| {
        program::rqps_in(words, folder.path()).args(bench).args(seconds).output().unwrap()
    };
    let output = allowed(&["compare", "sqlite", "--allow-shell", "--out", "out"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(printed(folder.path()).contains("from a shell"), "{}", printed(folder.path()));
    // A plan that allows it needs the word of whoever runs it.
    let plan = allowed(&["plan", "sqlite", "--allow-shell"]);
    fs::write(folder.path().join("plan.toml"), plan.stdout).unwrap();
    let output = program::rqps_in(&["run", "plan.toml"], folder.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("add --allow-shell if you trust them"), "{}", said(&output));
}

#[test]
fn a_script_has_few_rights_and_a_folder_of_its_own() {
    if !has_luajit("a_script_has_few_rights_and_a_folder_of_its_own") {
        return;
    }
    let folder = scripts();
    let words = ["compare", "sqlite", "b=sqlite", "--bench", "lua:rights.lua", "--out", "out"];
    let mut command = program::rqps_in(&words, folder.path());
    command.args(["--canaries", "off", "--blocks", "1", "--interleave", "turns"]);
    command.args(["--set", "seconds=0.4", "--set", "warmup_seconds=0"]);
    let output = command.env("RQPS_TEST_SECRET", "hush").output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let run = program::runs(&folder.path().join("out"), "sqlite").remove(0);
    let printed = fs::read_to_string(run.join("logs/driver.log")).unwrap();
    for line in [
        "beside: found", "data beside: true", "NoNewPrivs: 1", "secret: nil", "path: true",
        "environment: nil", "input: nil",
    ] {
        assert!(printed.contains(line), "{line} in\n{printed}");
    }
    if is_root() {
        assert!(printed.contains("Uid: ") && !printed.contains("Uid: 0"), "{printed}");
        // The mark by which rqps finds what a script leaves running; of no user and no file.
        let groups = printed.lines().find_map(|line| line.strip_prefix("Groups: ")).unwrap();
        let mark: u32 = groups.trim().parse().unwrap();
        assert_eq!(mark >> 24, 0x7f, "{printed}");
    }
    let load = fs::read_to_string(folder.path().join("out/load/b/driver.log")).unwrap();
    assert!(load.contains("own file: written"), "{load}");
    assert!(!folder.path().join("own.txt").exists());
    for label in ["sqlite", "b"] {
        assert_eq!(steps(&folder.path().join("out"), label)[0]["status"], "complete");
    }
}

/// True if tests run as root, whose rights a script must not have.
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// The statements of a session without how they came to be prepared.
fn executed(session: &[Seen]) -> Vec<String> {
    let sent = session.iter().filter(|seen| seen.how != How::Prepare);
    let text = |seen: &Seen| match seen.parameters.as_slice() {
        [] => seen.sql.clone(),
        values => format!("{} <- {}", seen.sql, values.join(", ")),
    };
    sent.map(text).collect()
}

/// The session that sent most, from its first statement on a table or BEGIN.
fn busiest(sessions: Vec<Vec<Seen>>) -> Vec<String> {
    let sessions = log::clients_only(sessions);
    let longest = sessions.iter().max_by_key(|session| session.len()).expect("a session");
    executed(longest)
}

/// Scripts and the options that they are compared with.
const DIFFERENTIAL: [(&str, &[&str]); 5] = [
    ("oltp_point_select.lua", &[]),
    ("oltp_read_write.lua", &[]),
    ("oltp_read_write.lua", &["--db-ps-mode=disable", "--rand-type=pareto"]),
    ("oltp_write_only.lua", &["--rand-type=gaussian"]),
    ("oltp_delete.lua", &["--rand-type=uniform"]),
];

/// Compares the statements of both for the same script: rqps first, then sysbench with the seed
/// that rqps names.
fn check_same_statements(theirs: &Theirs) {
    let folder = scripts();
    let of_tables = ["--tables=2", "--table-size=500"];
    sysbench(theirs, "oltp_read_write.lua", &of_tables, "prepare");
    for (script, more) in DIFFERENTIAL {
        let options: Vec<&str> = of_tables.iter().chain(more).copied().collect();
        let mark = theirs.log_length();
        let target = theirs.dsn("a");
        let output = compare(folder.path(), &[&target], &format!("lua:{script}"), &options);
        assert!(output.status.success(), "{script}: {}", said(&output));
        let ours = busiest(theirs.sessions_since(mark));
        let out = folder.path().join("out");
        let record = steps(&out, "a").remove(0);
        fs::remove_dir_all(&out).unwrap();
        let seed = record["outcome"]["facts"]["sysbench draws the same with"].as_str().unwrap();
        let seed = seed.split(' ').next().unwrap();
        let mark = theirs.log_length();
        let with_seed: Vec<&str> = options.iter().copied().chain([seed]).collect();
        sysbench(theirs, script, &with_seed, "run");
        let real = busiest(theirs.sessions_since(mark));
        let compared = COMPARED.min(ours.len()).min(real.len());
        assert!(compared >= 20, "{script}: {} and {} statements", ours.len(), real.len());
        for (number, (own, other)) in ours.iter().zip(&real).take(compared).enumerate() {
            assert_eq!(own, other, "{script} {more:?}: statement {number}");
        }
    }
}

/// The script in tests/data/lua that checks what it finds: it fails by itself.
fn check_walk(theirs: &Theirs) {
    let folder = scripts();
    let options = ["--flag=off", "--many=a,b", "--size=3"];
    let output = compare(folder.path(), &[&theirs.dsn("a")], "lua:walk.lua", &options);
    assert!(output.status.success(), "{}", said(&output));
    let record = steps(&folder.path().join("out"), "a").remove(0);
    let outcome = &record["outcome"];
    assert_eq!(record["status"], "complete", "{record}");
    assert!(outcome["events"].as_u64().unwrap() > 0, "{outcome}");
    // Every event restarts once, by an error that the script calls ignorable, and counts one error.
    let errors = &outcome["errors"];
    assert_eq!(errors["script"], outcome["events"], "{outcome}");
    assert!(errors.as_object().unwrap().len() == 2, "{outcome}");
}

/// A script that fails does so with its place; one that never returns is ended.
fn check_failures(theirs: &Theirs) {
    let folder = scripts();
    let cases = [
        ("missing.lua", "missing.lua:4: SQL error, errno = "),
        ("wrong.lua", "wrong.lua:2: attempt to perform arithmetic on"),
        ("hungry.lua", "not enough memory: a state of a script may take "),
    ];
    for (script, expected) in cases {
        let output = compare(folder.path(), &[&theirs.dsn("a")], &format!("lua:{script}"), &[]);
        assert_ne!(output.status.code(), Some(0), "{script}");
        let all = said(&output) + &String::from_utf8_lossy(&output.stdout);
        let flat = all.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(expected), "{script}: {all}");
        fs::remove_dir_all(folder.path().join("out")).unwrap();
    }
}

#[test]
fn postgres_receives_what_sysbench_sends() {
    let test = "postgres_receives_what_sysbench_sends";
    if !has_luajit(test) {
        return;
    }
    let Some(theirs) = Theirs::start(test, "postgres@17.2.0", Dbms::Postgres) else { return };
    check_walk(&theirs);
    check_failures(&theirs);
    if has_sysbench(test) {
        check_same_statements(&theirs);
    }
}

#[test]
fn mysql_receives_what_sysbench_sends() {
    let test = "mysql_receives_what_sysbench_sends";
    if !has_luajit(test) {
        return;
    }
    let Some(theirs) = Theirs::start(test, "mysql@8.0.33", Dbms::Mysql) else { return };
    check_walk(&theirs);
    if has_sysbench(test) {
        check_same_statements(&theirs);
    }
}

/// True if the real program and its scripts are here.
fn has_sysbench(test: &str) -> bool {
    let is_here =
        real_sysbench().is_some() && PathBuf::from(SYSBENCH).join("oltp_read_write.lua").is_file();
    if !is_here {
        skipped::note(test, "sysbench and its scripts are not installed");
    }
    is_here
}

/// The real program, if it is installed.
fn real_sysbench() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("sysbench")).find(|it| it.is_file())
}

/// Runs the real program on a server, with one thread and a fixed number of events.
fn sysbench(theirs: &Theirs, script: &str, options: &[&str], command: &str) {
    let mut real = Command::new(real_sysbench().unwrap());
    let (socket, Login { user, database, .. }) = (theirs.socket(), &theirs.login);
    real.arg(Path::new(SYSBENCH).join(script))
        .args(["--threads=1", "--events=200", "--time=0"])
        .args(options);
    match theirs.dbms {
        Dbms::Postgres => {
            let port = socket.extension().unwrap().to_string_lossy().into_owned();
            real.arg("--db-driver=pgsql").arg(format!("--pgsql-port={port}"));
            real.arg(format!("--pgsql-host={}", socket.parent().unwrap().display()));
            real.arg(format!("--pgsql-user={user}")).arg(format!("--pgsql-db={database}"));
        }
        _ => {
            real.arg("--db-driver=mysql");
            real.arg(format!("--mysql-socket={}", socket.display()));
            real.arg(format!("--mysql-user={user}")).arg(format!("--mysql-db={database}"));
        }
    }
    let output = real.arg(command).output().unwrap();
    let words = program::text(&output.stdout);
    assert!(output.status.success(), "sysbench {script} {command}: {words}");
}
