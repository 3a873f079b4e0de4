//! The whole program on the fake DBMS: what a user types, what comes out, what stays behind.
//!
//! The fake DBMS runs on a clock of its own, so these tests take seconds and give the same numbers
//! each time.

mod blocks;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A host lock is shared by all tests that measure, so they take turns.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The host lock and the calibrations of this test program. A static is never dropped, so a folder
/// of its own would stay: this one is cargo's, and the same each time.
fn private(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("whole").join(name)
}

fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn rqps() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
    command.stdin(Stdio::null());
    // Not the lock of the host: whoever measures on this machine is not disturbed by fakes.
    command.env("RQPS_HOST_LOCK", private("lock")).env("RQPS_STATE", private("state"));
    command
}

fn run(words: &[&str]) -> Output {
    rqps().args(words).output().expect("start rqps")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Short fake steps: two of reading, one of writing.
const STEPS: [&str; 6] = [
    "--steps",
    "point-query,range-covered-pk,update-index",
    "--set",
    "read_seconds=2",
    "--set",
    "write_seconds=2",
];

/// A folder with configurations of the fake DBMS: `slow` takes 125 µs where the default takes 100,
/// `waiting` sleeps through its steps as a real one would.
fn configs(folder: &Path) -> String {
    let fake = folder.join("configs/fake");
    std::fs::create_dir_all(&fake).expect("folder");
    std::fs::write(fake.join("slow.conf"), "mean_us = 125\n").expect("write");
    std::fs::write(fake.join("waiting.conf"), "mean_us = 100\nreal_time = true\n").expect("write");
    folder.join("configs").to_string_lossy().into_owned()
}

fn compare(targets: &[&str], out: &Path, more: &[&str]) -> Output {
    let out = out.to_string_lossy();
    let mut words = vec!["compare", "--full"];
    words.extend(targets);
    words.extend(["--out", &out, "--set", "settle_scale=0"]);
    words.extend(STEPS);
    words.extend(more);
    run(&words)
}

/// Replaces the parts of a report that differ between two runs of the same plan: folders and times
/// of day.
fn redacted(report: &str, out: &Path) -> String {
    let mut redacted = report.replace(&*out.to_string_lossy(), "DIR");
    let digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
    let words: Vec<String> = redacted
        .split_inclusive(char::is_whitespace)
        .map(|word| {
            let bare = word.trim_end();
            let is_time = bare.len() == 20 && bare.ends_with('Z') && digits(&bare[..4]);
            if is_time { word.replace(bare, "0000-00-00T00:00:00Z") } else { word.to_owned() }
        })
        .collect();
    redacted = words.concat();
    redacted
}

#[test]
fn a_comparison_gives_the_same_numbers_each_time() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let configs = configs(folder.path());
    let targets = ["fake@1", "slow=fake@1:slow"];
    let mut reports = Vec::new();
    for name in ["first", "second"] {
        let out = folder.path().join(name);
        let output = compare(&targets, &out, &["--blocks", "3", "--configs", &configs]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let tsv = run(&["report", &out.to_string_lossy(), "--format", "tsv"]);
        reports.push(redacted(&text(&tsv.stdout), &out));
        let again = run(&["report", &out.to_string_lossy()]);
        assert_eq!(text(&again.stdout), text(&output.stdout), "report rebuilds the same bytes");
        assert!(!out.join(".work").exists(), "nothing but results stays");
    }
    let shape = |report: &str| report.lines().filter(|line| line.contains("point-query")).count();
    assert!(shape(&reports[0]) > 0, "{}", reports[0]);
    let relative: Vec<_> = reports.iter().map(|report| relative_rates(report)).collect();
    assert_eq!(relative[0], relative[1]);
    // 100 µs against 125 µs: 0.8, whatever the step.
    for (step, ratio) in &relative[0] {
        assert!((ratio - 0.8).abs() < 0.02, "{step}: {ratio}");
    }
}

/// Step and relative rate from the first table of the TSV form.
fn relative_rates(tsv: &str) -> Vec<(String, f64)> {
    let mut rates = Vec::new();
    let mut inside = false;
    for line in tsv.lines() {
        if line.starts_with("Relative to:") {
            inside = true;
        }
        let cells: Vec<_> = line.split('\t').collect();
        if inside
            && cells.len() == 2
            && let Ok(ratio) = cells[0].parse()
        {
            rates.push((cells[1].to_owned(), ratio));
        }
    }
    assert!(!rates.is_empty(), "no relative rates in:\n{tsv}");
    rates
}

/// Kills rqps with SIGKILL at a moment that depends on `round`, and returns how many whole steps
/// lay on
/// disk right after.
fn start_and_kill(words: &[&str], after: Duration) -> bool {
    let mut child =
        rqps().args(words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start rqps");
    let began = Instant::now();
    while began.elapsed() < after {
        if let Some(status) = child.try_wait().expect("look") {
            assert!(status.success(), "rqps ended with {status}");
            return true;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
    false
}

fn steps_on_disk(out: &Path) -> Vec<PathBuf> {
    let mut steps = Vec::new();
    for run in std::fs::read_dir(out).into_iter().flatten().flatten() {
        for step in std::fs::read_dir(run.path().join("steps")).into_iter().flatten().flatten() {
            if step.path().extension().is_some_and(|extension| extension == "json") {
                steps.push(step.path());
            }
        }
    }
    steps.sort();
    steps
}

/// Driver and warden processes of the rqps under test that still run: of these tests alone, which
/// have a host lock of their own in their environment.
fn left_running() -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_rqps");
    let ours = format!("RQPS_HOST_LOCK={}", private("lock").display());
    let mut left = Vec::new();
    for process in std::fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(line) = std::fs::read(process.path().join("cmdline")) else { continue };
        let words: Vec<_> = line.split(|byte| *byte == 0).map(text).collect();
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        if !environment.split(|byte| *byte == 0).any(|variable| variable == ours.as_bytes()) {
            continue;
        }
        if words[0] == program && words.get(1).is_some_and(|word| word != "compare") {
            left.push(words.join(" "));
        }
    }
    left
}

fn wait_until_nothing_runs() {
    let began = Instant::now();
    while !left_running().is_empty() {
        assert!(began.elapsed() < Duration::from_secs(20), "still running: {:?}", left_running());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn killed_at_any_moment_it_resumes_and_loses_no_finished_step() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out_word = out.to_string_lossy().into_owned();
    let configs = configs(folder.path());
    let mut first = vec!["compare", "a=fake@1", "b=fake@1:slow", "--out", &out_word];
    first.extend(["--configs", &configs]);
    first.extend(["--set", "settle_scale=0", "--blocks", "2"]);
    first.extend(STEPS);
    let resume = ["run", "--resume", &out_word, "--configs", &configs];
    let mut moment = 0x9E37_79B9_u64;
    let mut kills = 0;
    let mut done = start_and_kill(&first, Duration::from_millis(120));
    while !done {
        wait_until_nothing_runs();
        let before = steps_on_disk(&out);
        moment = moment.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        // However long it needs here, the kills before take no more than a few times as long.
        let longer = Duration::from_millis(100).mul_f64(1.5_f64.powi(kills));
        let after = Duration::from_millis(20 + (moment >> 33) % 500) + longer;
        // Killed before the plan was stored, there is nothing to resume.
        done = if out.join("plan.toml").exists() {
            start_and_kill(&resume, after)
        } else {
            start_and_kill(&first, after)
        };
        let kept = steps_on_disk(&out);
        assert!(before.iter().all(|step| kept.contains(step)), "a finished step was lost");
        kills += 1;
        assert!(kills < 80, "it never comes to its end");
    }
    wait_until_nothing_runs();
    let report = run(&["report", &out_word]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    assert!(text(&report.stdout).contains("update-index"));
    eprintln!("killed {kills} times");
}

#[test]
fn a_second_rqps_is_refused_with_the_reason() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let configs = configs(folder.path());
    let words = |out: &str| {
        let out = folder.path().join(out).to_string_lossy().into_owned();
        let words = ["compare", "fake@1:waiting", "--steps", "point-query", "--out", &out];
        let more = ["--set", "settle_scale=0", "--blocks", "9", "--configs", &configs];
        words.iter().chain(&more).map(|word| word.to_string()).collect::<Vec<_>>()
    };
    // It sleeps through its steps in real time, which keeps it busy.
    let slow = words("one");
    let mut first =
        rqps().args(&slow).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start rqps");
    let began = Instant::now();
    while !folder.path().join("one/plan.toml").exists() {
        assert!(began.elapsed() < Duration::from_secs(20), "the first never starts");
        std::thread::sleep(Duration::from_millis(10));
    }
    for out in ["one", "two"] {
        let second = rqps().args(words(out)).output().expect("start rqps");
        assert_eq!(second.status.code(), Some(2));
        let said = text(&second.stderr);
        let reason =
            if out == "one" { "another rqps is writing" } else { "another rqps is measuring" };
        assert!(said.contains(reason), "{said}");
        assert!(said.contains(&first.id().to_string()), "the holder is named: {said}");
    }
    first.kill().expect("kill");
    first.wait().expect("wait");
    wait_until_nothing_runs();
}

#[test]
fn client_counts_make_a_step_and_a_verdict_each_and_a_table_of_scaling() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let (out, configs) = (folder.path().join("out"), configs(folder.path()));
    let words = ["--clients", "4,1", "--blocks", "3", "--configs", &configs, "--set"];
    let words = [&words[..], &["warmup_seconds=0.1", "--steps", "!range-covered-pk"]].concat();
    let output = compare(&["fake@1", "slow=fake@1:slow"], &out, &words);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let names = [
        "point-query.clients=1", "point-query.clients=4", "update-index.clients=1",
        "update-index.clients=4",
    ];
    for name in names {
        let runs = ["b01-1-slow", "b01-2-slow"].map(|run| out.join(run).join("steps"));
        let path = runs.iter().find(|path| path.exists()).expect("a run");
        let files: Vec<_> = std::fs::read_dir(path).expect("steps").flatten().collect();
        let ends = format!("-{name}.json");
        let file = files.iter().find(|file| file.file_name().to_string_lossy().ends_with(&ends));
        let file = file.unwrap_or_else(|| panic!("no {ends} in {}", path.display()));
        let record = std::fs::read(file.path()).expect("record");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        let (step, clients) = name.split_once(".clients=").expect("a count");
        let clients: u32 = clients.parse().expect("a number");
        let count = serde_json::json!({ "step": step, "clients": clients });
        assert_eq!(record["client_count"], count);
    }
    let json = run(&["report", &out.to_string_lossy(), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let steps = report["comparison"]["steps"].as_array().expect("steps");
    let listed: Vec<_> = steps.iter().map(|step| step["name"].as_str().expect("name")).collect();
    assert_eq!(listed, names);
    for step in steps {
        let relative = &step["targets"][1]["metrics"]["rate"]["relative"];
        assert_eq!(relative["judgement"]["verdict"], "slower", "{relative}");
    }
    // Fake clients wait for nobody, so four do four times as much.
    let table = said.split("Scaling over client counts").nth(1).expect("a table of scaling");
    let row = table.lines().find(|line| line.trim_start().starts_with("4 ")).expect("a row");
    let cells: Vec<&str> = row.split_whitespace().collect();
    let number = |at: usize| cells[at].parse::<f64>().expect("a number");
    assert!((number(3) - 4.0).abs() < 0.1 && (number(1) / number(2) - 4.0).abs() < 0.01, "{row}");
    let html = std::fs::read_to_string(out.join("report.html")).expect("report");
    for chart in ["rate", "per-client", "p99"] {
        assert!(html.contains(&format!("scaling-update-index-{chart}")), "{chart}");
    }
    let markdown = run(&["report", &out.to_string_lossy(), "--format", "markdown"]);
    assert!(text(&markdown.stdout).contains("Scaling over client counts"));
}

#[test]
fn several_loads_are_a_step_with_a_pair_each() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let words = ["--loads", "2", "--blocks", "3", "--steps", "!range-covered-pk,!update-index"];
    let output = compare(&["fake@1", "b=fake@1"], &out, &words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let numbers = |block: &str| -> Vec<u64> {
        let runs = statuses(&out).into_iter().filter(|run| run.0.starts_with(block));
        let number = |run: (String, serde_json::Value)| {
            let record = std::fs::read(out.join(run.0).join("run.json")).expect("run.json");
            let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
            record["load"]["number"].as_u64().unwrap_or(1)
        };
        runs.map(number).collect()
    };
    let of_blocks = ["b01", "b02", "b03"].map(numbers);
    assert_eq!(of_blocks, [vec![1, 1], vec![2, 2], vec![1, 1]]);
    let json = run(&["report", &out.to_string_lossy(), "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let step = &report["comparison"]["steps"][0];
    assert_eq!((&step["name"], &step["rate"]), (&"load".into(), &"rows_inserted".into()));
    assert_eq!(step["targets"][1]["metrics"]["rate"]["relative"]["pairs"], 2);
    let said = text(&output.stdout);
    assert!(said.contains("2 of each target; block i starts from load i modulo 2"), "{said}");
    assert!(!said.contains("loaded once"), "{said}");
}

/// Number and beginning of the sitting of each run, by its folder.
fn sittings(out: &Path) -> Vec<(String, u64, String)> {
    let of_run = |(run, _): (String, serde_json::Value)| {
        let record = std::fs::read(out.join(&run).join("run.json")).expect("run.json");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        let sitting = &record["sitting"];
        let begun = sitting["begun"].as_str().expect("begun").to_owned();
        (run, sitting["number"].as_u64().expect("a number"), begun)
    };
    statuses(out).into_iter().map(of_run).collect()
}

#[test]
fn sittings_share_the_blocks_and_each_is_a_session() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let words = ["--sittings", "3", "--every", "0s", "--blocks", "2"];
    let output = compare(&["fake@1", "b=fake@1"], &out, &words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let numbers: Vec<u64> = sittings(&out).iter().map(|(_, number, _)| *number).collect();
    assert_eq!(numbers, [1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3]);
    let said = text(&output.stdout);
    assert!(said.contains("one load of each, 3 sittings. Another"), "{said}");
    assert!(said.contains("between sd %") && said.contains("session-3"), "{said}");
    // Two sittings are left; their time goes on from the sitting before them.
    for run in statuses(&out).iter().filter(|run| !run.0.starts_with("b01")) {
        std::fs::remove_dir_all(out.join(&run.0)).expect("remove");
    }
    let again = run(&["run", "--full", "--resume", &out.to_string_lossy()]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let said = text(&again.stderr);
    assert!(said.contains("the rest of sitting 1 of 3 is a sitting of its own"), "{said}");
    let begun: std::collections::BTreeSet<String> =
        sittings(&out).into_iter().map(|(_, _, begun)| begun).collect();
    assert_eq!(begun.len(), 2, "{begun:?}");
    assert!(text(&again.stdout).contains("sitting 1, resumed 1"), "{}", text(&again.stdout));
}

#[test]
fn a_wait_for_a_sitting_ends_with_the_user_and_goes_on_by_the_wall_clock() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let place = out.to_string_lossy().into_owned();
    let mut words = vec!["compare", "fake@1", "b=fake@1", "--out", &place, "--blocks", "1"];
    words.extend(["--set", "settle_scale=0", "--sittings", "2", "--every", "1h"]);
    words.extend(STEPS);
    let mut child = rqps().args(&words).stderr(Stdio::null()).spawn().expect("start rqps");
    let is_waiting = || statuses(&out).iter().filter(|run| run.1 == "complete").count() == 2;
    let until = Instant::now() + Duration::from_secs(120);
    while !(out.is_dir() && is_waiting()) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(50));
    }
    let process = rustix::process::Pid::from_raw(child.id() as i32).expect("a process");
    rustix::process::kill_process(process, rustix::process::Signal::INT).expect("interrupt");
    let code = child.wait().expect("wait").code();
    assert_eq!(code, Some(130), "the wait does not hold the user up");
    assert_eq!(statuses(&out).len(), 2);
    // As if the first sitting had been yesterday.
    for (run, _) in statuses(&out) {
        let path = out.join(run).join("run.json");
        let record = std::fs::read_to_string(&path).expect("run.json");
        let mut record: serde_json::Value = serde_json::from_str(&record).expect("JSON");
        record["started"] = "2026-01-01T00:00:00Z".into();
        std::fs::write(&path, record.to_string()).expect("write");
    }
    let again = run(&["run", "--resume", &place]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let numbers: Vec<u64> = sittings(&out).iter().map(|(_, number, _)| *number).collect();
    assert_eq!(numbers, [1, 1, 2, 2]);
}

#[test]
fn fresh_sittings_confirm_a_regression_and_not_a_lucky_one() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let configs = configs(folder.path());
    let out = folder.path().join("out");
    let place = out.to_string_lossy().into_owned();
    let targets = ["fake@1", "slow=fake@1:slow"];
    let first = compare(&targets, &out, &["--blocks", "3", "--configs", &configs]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let fresh = ["--sittings", "3", "--every", "0s", "--configs", &configs];
    let confirm = |more: &[&str]| {
        let mut words = vec!["confirm", &place];
        words.extend(fresh.iter().chain(more));
        run(&words)
    };
    let slow = confirm(&[]);
    let said = text(&slow.stdout);
    assert_eq!(slow.status.code(), Some(1), "{said}{}", text(&slow.stderr));
    assert_eq!(said.matches(" o/s CONFIRMED 0.").count(), 3, "{said}");
    assert!(said.contains("between-sitting sd") && said.contains("does not count"), "{said}");
    assert!(said.contains("no step is left as a control"), "{said}");
    let runs = || std::fs::read_dir(out.join("confirm")).expect("confirm").count();
    let before = runs();
    let again = confirm(&["--format", "json"]);
    assert_eq!((again.status.code(), runs()), (Some(1), before), "measured once");
    let report = run(&["report", &place, "--format", "json"]);
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    assert_eq!(report["comparison"]["runs"].as_array().expect("runs").len(), 6, "not pooled");
    // What is equal, and was slow by luck, is not confirmed.
    let equal = folder.path().join("equal");
    let place = equal.to_string_lossy().into_owned();
    let first = compare(&["fake@1", "b=fake@1"], &equal, &["--blocks", "3"]);
    assert!(first.status.success(), "{}", text(&first.stderr));
    for (run, _) in statuses(&equal).into_iter().filter(|run| run.0.ends_with("-b")) {
        for entry in std::fs::read_dir(equal.join(run).join("steps")).expect("steps").flatten() {
            let path = entry.path();
            if !path.to_string_lossy().ends_with("-point-query.json") {
                continue;
            }
            let step = std::fs::read_to_string(&path).expect("a step");
            let mut step: serde_json::Value = serde_json::from_str(&step).expect("JSON");
            let statements = step["outcome"]["statements"].as_u64().expect("statements");
            step["outcome"]["statements"] = (statements / 2).into();
            std::fs::write(&path, step.to_string()).expect("write");
        }
    }
    let lucky = run(&["gate", &place, "--confirm", "--sittings", "3", "--every", "0s"]);
    let said = text(&lucky.stdout);
    assert!(said.contains("NOT CONFIRMED"), "{said}{}", text(&lucky.stderr));
    assert_ne!(lucky.status.code(), Some(1), "{said}");
    assert!(said.contains("none of 1 control is slower"), "{said}");
}

#[test]
fn wrong_words_are_told_what_to_do() {
    let _turn = turn();
    let fails = |words: &[&str], part: &str| {
        let output = run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    };
    fails(&["compare"], "TARGET");
    fails(&["compare", "oracle@19"], "unknown DBMS `oracle`");
    fails(&["compare", "sqlite", "--preset", "huge"], "known: quick");
    fails(&["compare", "sqlite", "--steps", "pointquery"], "point-query");
    fails(&["compare", "sqlite", "--set", "rowz=5"], "rows");
    fails(&["compare", "sqlite", "--set", "rows=-5"], "rows");
    fails(&["compare", "sqlite", "--blocks", "0"], "blocks must be from 1");
    fails(&["compare", "sqlite", "--clients", "0"], "clients to `0`");
    fails(&["compare", "sqlite", "--clients", "1,0"], "`0`: write a whole number from 1");
    fails(&["compare", "sqlite", "--clients", "4,4"], "4 is there twice");
    fails(&["compare", "sqlite", "--clients", "many"], "or several such as 1,4,16");
    fails(&["compare", "sqlite", "--bench", "insert", "--clients", "1,4"], "once per count");
    fails(&["compare", "sqlite", "--loads", "5"], "from 1 to the number of blocks (4), not 5");
    fails(&["compare", "sqlite", "--loads", "0"], "not 0");
    fails(&["compare", "sqlite", "--loads", "3", "--blocks", "auto"], "loads must be 1 or 12");
    fails(&["compare", "sqlite", "--loads", "2", "--bench", "insert"], "leave loads out");
    fails(&["compare", "sqlite", "--sittings", "2", "--blocks", "auto"], "belong to one sitting");
    fails(&["compare", "sqlite", "--sittings", "2", "--every", "soon"], "soon");
    fails(&["compare", "sqlite", "--sittings", "2", "--every", "30d"], "at most 7 days");
    fails(&["compare", "sqlite", "--bench", "tpcc"], "known: sysbench");
    fails(&["compare", "sqlite", "--rate", "-1"], "rate to `-1`");
    fails(&["compare", "sqlite", "--bench", "insert", "--rate", "5"], "unknown key");
    fails(&["run", "/nonexistent/plan.toml"], "/nonexistent/plan.toml");
    fails(&["run", "--resume", "/nonexistent"], "/nonexistent");
    fails(&["report", "/nonexistent"], "/nonexistent");
    fails(&["report", "/nonexistent"], "no such folder");
    fails(&["builds", "oracle"], "no such DBMS");
    fails(&["compare", "postgres://host/db"], "names no user");
    let folder = tempfile::tempdir().expect("folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (empty, planned, file) = (path("empty"), path("planned"), path("file"));
    for folder in [&empty, &planned] {
        std::fs::create_dir(folder).expect("folder");
    }
    std::fs::write(&file, "").expect("write");
    std::fs::write(path("planned/plan.toml"), run(&["plan", "fake@1"]).stdout).expect("write");
    fails(&["report", &empty], "it holds no plan.toml");
    fails(&["report", &planned], "it holds a plan but no results");
    fails(&["report", &file], "it is a file");
    fails(&["run", "--resume", &empty], "it holds no plan.toml");
    fails(&["compare", "fake@1", "--out", &file], "it is a file");
    let nowhere = ["compare", "fake@1:nope", "--out", &path("out")];
    fails(&nowhere, "configs/fake/nope.conf");
}

#[test]
fn presets_are_parts_of_one_report_and_never_pooled() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let (configs, out) = (configs(folder.path()), folder.path().join("out"));
    let compare = |presets: &str| {
        let words = ["compare", "fake@1", "fake@1:slow", "--preset", presets, "--blocks", "2"];
        let place = ["--configs", &configs, "--out", out.to_str().expect("UTF-8"), "-q"];
        run(&[&words[..], &place, &["--canaries", "off"], &STEPS].concat())
    };
    let said = compare("quick,standard");
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(out.join("report.html").is_file() && out.join("standard/plan.toml").is_file());
    let report = |folders: &[&str]| {
        let folders = folders.iter().map(|name| out.join(name).to_string_lossy().into_owned());
        let words: Vec<String> = ["report".to_owned()].into_iter().chain(folders).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        text(&run(&[&words[..], &["--format", "json"]].concat()).stdout)
    };
    let all: serde_json::Value = serde_json::from_str(&report(&[""])).expect("JSON");
    let names: Vec<_> = all["families"].as_array().expect("parts").iter().collect();
    let names: Vec<_> = names.iter().map(|part| part["family"].as_str()).collect();
    assert_eq!(names, [Some("quick"), Some("standard")]);
    assert_eq!(report(&["quick", "standard"]), report(&[""]), "folders alone know it, too");
    assert!(report(&["quick", "quick"]).contains("\"baseline\""), "one part is a report");
    let said = compare("quick,full");
    assert!(text(&said.stderr).contains("it has other parts"), "{}", text(&said.stderr));
}

#[test]
fn single_settings_of_targets_stand_in_words() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let slow = ["slow=fake@1:default,mean_us=125", "slower=fake@1:default,mean_us=250"];
    let targets = ["compare", "fake@1", slow[0], slow[1], "--blocks", "2", "--clients", "1,4"];
    let place = ["--set", "fake.mean_us=100", "--out", out.to_str().expect("UTF-8"), "-q"];
    let said = run(&[&targets[..], &place, &["--canaries", "off"], &STEPS].concat());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let report = text(&run(&["report", out.to_str().expect("UTF-8"), "--brief"]).stdout);
    assert!(report.contains("SLOWER") && report.contains("0.79"), "{report}");
    let whole = text(&run(&["report", out.to_str().expect("UTF-8")]).stdout);
    let summary = whole.split("Relative rates by group").nth(1).expect("a summary");
    for row in ["point.clients=1  average", "point.clients=4  average"] {
        assert!(summary.contains(row), "a summary for each number of clients: {summary}");
    }
    let page = std::fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("point.clients=4: rate relative to"), "a chart for each");
    let plan = std::fs::read_to_string(out.join("plan.toml")).expect("plan");
    assert!(plan.contains("fake@1:default,mean_us=100"), "{plan}");
    let fails = |setting: &str, part: &str| {
        let said = text(&run(&["plan", "fake@1", "--set", setting]).stderr);
        assert!(said.contains(part), "{said}");
    };
    fails("pg.work_mem=4MB", "starts no target that takes it");
    fails("my.tmpdir=/etc", "begins with `include default`");
}

/// The fake DBMS takes 100 or 125 µs: the effect is known.
#[test]
fn a_sweep_measures_all_combinations_and_tells_each_effect() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let sweep = ["--sweep", "fake.mean_us=100,125"];
    let words = ["compare", "fake@1", "--blocks", "3", "--canaries", "off", "-q", "--out", out];
    let said = run(&[&words[..], &sweep, &["--sweep", "rows=1000,2000"], &STEPS].concat());
    assert!(said.status.success(), "{}", text(&said.stderr));
    for part in ["quick.rows=1000", "quick.rows=2000"] {
        let plan = std::fs::read_to_string(format!("{out}/{part}/plan.toml")).expect("a part");
        assert!(plan.contains("\"fake@1:default,mean_us=125\""), "{plan}");
    }
    let out = folder.path().join("two");
    let words =
        ["compare", "fake@1", "fake@1.2", "--blocks", "3", "--canaries", "off", "-q", "--out"];
    let place = [out.to_str().expect("UTF-8")];
    let said = run(&[&words[..], &place, &sweep, &STEPS].concat());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let report = text(&run(&["report", place[0]]).stdout);
    let effects = report.split("Effects of settings").nth(1).expect("a section");
    let line = effects.lines().find(|line| line.contains("mean_us: 125 / 100")).expect("an effect");
    assert!(line.trim().starts_with("0.79") || line.trim().starts_with("0.80"), "{line}");
    assert!(effects.contains("mean_us 125 with target fake-1.2"), "{effects}");
    // The configuration of a preset is that of its swept targets, too.
    let words = ["plan", "postgres@17.2.0", "--preset", "c2s60-4g", "--sweep"];
    let said = text(&run(&[&words[..], &["pg.work_mem=1MB,2MB"]].concat()).stdout);
    for value in ["1MB", "2MB"] {
        let word = format!("postgres@17.2.0:buffered,work_mem={value}");
        assert!(said.contains(&word), "{said}");
    }
    let fails = |sweep: &str, part: &str| {
        let said = text(&run(&["plan", "fake@1", "--sweep", sweep]).stderr);
        assert!(said.contains(part), "{said}");
    };
    let many: Vec<String> = (1..=65).map(|number| number.to_string()).collect();
    fails(&format!("rows={}", many.join(",")), "sweep 65 combinations: at most 64");
    fails("pg.work_mem=1MB,2MB", "starts no target that takes it");
    fails("rows=5", "write KEY=VALUE,VALUE");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let check = |words: &[&str], code: i32| {
        let mut child = rqps()
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start rqps");
        // Closed before rqps has found its first word.
        drop((child.stdout.take(), child.stderr.take()));
        assert_eq!(child.wait().expect("wait").code(), Some(code), "{words:?}");
    };
    check(&["plan", "fake@1"], 0);
    check(&["compare", "nosuch"], 2);
    check(&["builds"], 0);
}

#[test]
fn what_is_set_is_not_overridden_by_defaults() {
    let check = |words: &[&str], wanted: &[&str]| {
        let output = run(&[&["plan", "sqlite"], words].concat());
        let said = text(&output.stdout);
        for line in wanted {
            assert!(said.lines().any(|said| said == *line), "{words:?}: no {line} in {said}");
        }
    };
    check(&[], &["idle = \"os\""]);
    let set = ["--set", "idle=awake", "--set", "placement=apart"];
    check(&set, &["idle = \"awake\"", "placement = \"apart\""]);
    let words = [&set[..], &["--idle", "os", "--placement", "os"]].concat();
    check(&words, &["idle = \"os\"", "placement = \"os\""]);
}

/// Runs of a result set by folder name, with their status.
fn statuses(out: &Path) -> Vec<(String, serde_json::Value)> {
    let mut runs: Vec<_> = std::fs::read_dir(out)
        .expect("results")
        .flatten()
        .filter_map(|entry| {
            let record = std::fs::read(entry.path().join("run.json")).ok()?;
            let record: serde_json::Value = serde_json::from_slice(&record).expect("run.json");
            Some((entry.file_name().to_string_lossy().into_owned(), record["status"].clone()))
        })
        .collect();
    runs.sort_by(|a, b| a.0.cmp(&b.0));
    runs
}

fn gate(out: &Path) -> serde_json::Value {
    serde_json::from_slice(&std::fs::read(out.join("gate.json")).expect("gate.json")).expect("JSON")
}

/// A config of the fake DBMS, for both targets of a plan that is measured against itself.
fn with_config(folder: &Path, text: &str) -> [String; 2] {
    let fake = folder.join("configs/fake");
    std::fs::create_dir_all(&fake).expect("folder");
    std::fs::write(fake.join("scripted.conf"), text).expect("write");
    ["a=fake@1:scripted".to_owned(), "b=fake@1:scripted".to_owned()]
}

#[test]
fn a_block_out_of_range_of_the_canaries_is_measured_again() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let configs = configs(folder.path());
    // Three first readings, block 1 disturbed for a moment at its end, block 2 for longer.
    let targets = with_config(folder.path(), "canaries = 1, 1, 1, 1, 1.9, 1, 1, 1.9, 1.9\n");
    let targets = [targets[0].as_str(), targets[1].as_str()];
    let out = folder.path().join("out");
    let output = compare(&targets, &out, &["--blocks", "4", "--configs", &configs]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("block 2 is disturbed (after it, spin 1.90"), "{said}");
    assert!(said.contains("rqps discards and repeats it"), "{said}");
    let statuses = statuses(&out);
    assert_eq!(statuses.len(), 10, "{statuses:?}");
    for (run, status) in &statuses {
        let discarded = status["discarded"].as_str().is_some_and(|why| why.contains("spin"));
        assert_eq!(discarded, run.starts_with("b02-"), "{run}: {status}");
        assert!(discarded || status == "complete", "{run}: {status}");
    }
    let gate = gate(&out);
    let blocks = gate["blocks"].as_array().expect("blocks");
    let of: Vec<_> = blocks.iter().map(|block| (&block["block"], &block["attempt"])).collect();
    assert_eq!(of.len(), 5, "{of:?}");
    assert_eq!(blocks[1]["discarded"], true);
    assert_eq!((&blocks[2]["block"], &blocks[2]["attempt"]), (&2.into(), &2.into()));
    let report = text(&output.stdout);
    assert!(report.contains("Discarded blocks"), "{report}");
    // Four pairs, not five.
    let json = run(&["report", &out.to_string_lossy(), "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let relative = &json["comparison"]["steps"][0]["targets"][1]["metrics"]["rate"]["relative"];
    assert_eq!(relative["pairs"], 4);
}

#[test]
fn a_host_that_stays_noisy_does_not_keep_a_plan_from_ending() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let configs = configs(folder.path());
    let noisy = ["1, 1, 1", &["2"; 60].join(", ")].join(", ");
    let targets = with_config(folder.path(), &format!("canaries = {noisy}\n"));
    let targets = [targets[0].as_str(), targets[1].as_str()];
    let out = folder.path().join("out");
    let output = compare(&targets, &out, &["--blocks", "4", "--configs", &configs]);
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("verdicts account for the host's noise"), "{said}");
    // One block may be thrown away of four; then they are kept, and told.
    let gate = gate(&out);
    let blocks = gate["blocks"].as_array().expect("blocks");
    assert_eq!(blocks.len(), 5);
    assert!(blocks.iter().all(|block| block["out_of_range"].is_string()));
    assert_eq!(blocks.iter().filter(|block| block["discarded"] == true).count(), 1);
    // The same with canaries off: nobody looks.
    let out = folder.path().join("off");
    let more = ["--blocks", "4", "--configs", &configs, "--canaries", "off"];
    assert!(compare(&targets, &out, &more).status.success());
    assert!(self::gate(&out)["blocks"][0]["before"].is_null());
    assert_eq!(statuses(&out).len(), 8);
}

/// A plan with `blocks = "auto"` of one step that reads for long and one that writes for a moment:
/// the first is settled at the first look, the other is noisy and stays open.
const MIXED: [&str; 8] = [
    "--steps", "point-query,delete", "--set", "read_seconds=8", "--set", "write_seconds=0.1",
    "--set", "settle_scale=0",
];

/// Words of such a plan; its configuration is the default one, with targets that draw their own
/// latencies.
fn auto<'a>(folder: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let fake = Path::new(folder).join("fake");
    std::fs::create_dir_all(&fake).expect("folder");
    std::fs::write(fake.join("default.conf"), "own_luck = true\n").expect("write");
    let mut words = vec!["compare", "a=fake@1", "b=fake@1", "--out", out, "--blocks", "auto"];
    words.extend(["--configs", folder]);
    words.extend(MIXED);
    words.extend(more);
    words
}

/// Names of the steps of a run that are on disk.
fn steps_of(out: &Path, run: &str) -> Vec<String> {
    let folder = out.join(run).join("steps");
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("steps")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
        .collect();
    names.sort();
    names
}

#[test]
fn settled_steps_are_left_out_and_open_ones_go_on() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let word = out.to_string_lossy().into_owned();
    let configs = folder.path().join("configs").to_string_lossy().into_owned();
    let output = run(&auto(&configs, &word, &["--max-blocks", "6"]));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("after block 4: 1 of 2 steps open: delete (about"), "{said}");
    assert!(said.contains("2 steps decided"), "{said}");
    let gate = gate(&out);
    let blocks = gate["blocks"].as_array().expect("blocks");
    assert!((5..=6).contains(&blocks.len()), "{}", blocks.len());
    assert_eq!(blocks[3]["skipped"], serde_json::json!({}));
    assert!(blocks[3]["open"]["delete"].is_number());
    let why = blocks[4]["skipped"]["point-query"].as_str().expect("a reason");
    assert!(why.contains("decided; it changes no data"), "{why}");
    let runs: Vec<String> = statuses(&out).into_iter().map(|run| run.0).collect();
    assert_eq!(runs.len(), 2 * blocks.len());
    for run in &runs {
        let steps = steps_of(&out, run);
        let measured = steps.iter().any(|step| step.ends_with("-point-query"));
        assert_eq!(measured, run.as_str() < "b05", "{run}: {steps:?}");
        assert!(steps.iter().any(|step| step.ends_with("-delete")), "{run}: {steps:?}");
        let record = std::fs::read(out.join(run).join("run.json")).expect("run.json");
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        assert_eq!(record["schedule"], serde_json::json!({"blocks_min": 4, "blocks_max": 6}));
    }
    // The pairs are those that exist; nothing is called missing or failed.
    let json = self::run(&["report", &word, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let pairs = |step: usize| {
        json["comparison"]["steps"][step]["targets"][1]["metrics"]["rate"]["relative"]["pairs"]
            .as_u64()
    };
    assert_eq!((pairs(0), pairs(1)), (Some(4), Some(blocks.len() as u64)));
    let caveats = json["comparison"]["caveats"].to_string();
    assert!(!caveats.contains("missing_step") && !caveats.contains("failed"), "{caveats}");
}

#[test]
fn a_plan_until_settled_survives_being_killed() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let word = out.to_string_lossy().into_owned();
    let configs = folder.path().join("configs").to_string_lossy().into_owned();
    let first = auto(&configs, &word, &["--max-blocks", "6"]);
    let resume = ["run", "--resume", &word, "--configs", &configs];
    let mut after = Duration::from_millis(150);
    let mut done = start_and_kill(&first, after);
    while !done {
        wait_until_nothing_runs();
        after += Duration::from_millis(450);
        done = if out.join("plan.toml").exists() {
            start_and_kill(&resume, after)
        } else {
            start_and_kill(&first, after)
        };
    }
    wait_until_nothing_runs();
    // Whatever was begun in vain besides: the first four blocks are whole, and the plan came to
    // its end by looking at what is there. A kill between two runs of a block leaves a complete one
    // in an attempt that does not count.
    let complete: Vec<String> = statuses(&out)
        .into_iter()
        .filter(|run| run.1 == "complete")
        .filter_map(|run| Some(run.0.split_once('-')?.0.to_owned()))
        .collect();
    for block in ["b01", "b02", "b03", "b04"] {
        let attempts = complete.iter().filter(|run| run.starts_with(block));
        let last = attempts.max_by_key(|attempt| (attempt.len(), attempt.as_str())).expect(block);
        assert_eq!(complete.iter().filter(|run| *run == last).count(), 2, "{complete:?}");
    }
    let gate = gate(&out);
    let last = gate["blocks"].as_array().and_then(|blocks| blocks.last()).expect("blocks");
    assert_eq!(last["open"], serde_json::json!({}));
    assert!(run(&["report", &word]).status.success());
    // A plan that is done has nothing left to do.
    let before = statuses(&out);
    let again = run(&resume);
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert_eq!(statuses(&out), before);
}

#[test]
fn a_budget_ends_a_plan_and_a_plan_says_what_it_may_cost() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let word = out.to_string_lossy().into_owned();
    // One block is measured in any case.
    let configs = folder.path().join("configs").to_string_lossy().into_owned();
    let output = run(&auto(&configs, &word, &["--budget", "1ms"]));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("stopping for the budget"), "{said}");
    assert_eq!(statuses(&out).len(), 2);
    let plan = run(&["plan", "sqlite", "sqlite:small-cache", "--blocks", "auto", "--budget", "2h"]);
    let plan = text(&plan.stdout);
    assert!(plan.contains("budget = \"7200s\"") && plan.contains("(4 blocks) to"), "{plan}");
    let fails = |words: &[&str], part: &str| {
        let output = run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    };
    fails(&["plan", "sqlite", "--budget", "5m"], "need --blocks auto");
    fails(&["plan", "sqlite", "--blocks", "auto", "--min-blocks", "1"], "needs min from 2");
    fails(&["plan", "sqlite", "--blocks", "some"], "or auto");
    fails(&["plan", "sqlite", "--blocks", "auto", "--budget", "20"], "write 20s, 20m or 20h");
}

#[test]
fn a_target_against_itself_calibrates_its_host() {
    let _turn = turn();
    let folder = tempfile::tempdir().expect("folder");
    let state = folder.path().join("state");
    let out = folder.path().join("out").to_string_lossy().into_owned();
    let mut words = vec!["doctor", "--aa", "fake@1", "--blocks", "4", "--out", &out];
    words.extend(["--set", "settle_scale=0", "--steps", "point-query,update-index"]);
    let output = rqps().env("RQPS_STATE", &state).args(&words).output().expect("start rqps");
    let (told, said) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}");
    for part in ["fake@1 against itself, 4 blocks", "Blocks to find 2 %", "Slot effect:"] {
        assert!(told.contains(part), "{told}");
    }
    let files: Vec<_> =
        std::fs::read_dir(state.join("calibrations")).expect("kept").flatten().collect();
    assert_eq!(files.len(), 1);
    let known = std::fs::read(files[0].path()).expect("read");
    let known: serde_json::Value = serde_json::from_slice(&known).expect("JSON");
    assert_eq!(known["steps"].as_array().map(Vec::len), Some(2));
    assert_eq!(known["blocks"], 4);
    // A plan by step says what it expects to find; in turns the calibration says nothing.
    let plan = |words: &[&str]| {
        let words = [&["plan", "fake@1", "b=fake@1", "--out", &out], words].concat();
        text(&rqps().env("RQPS_STATE", &state).args(&words).output().expect("start rqps").stdout)
    };
    let auto = plan(&["--blocks", "auto"]);
    let line = auto.lines().find(|line| line.starts_with("# finds differences of "));
    let line = line.unwrap_or_else(|| panic!("{auto}"));
    for part in ["(4 blocks), ", "(12 blocks), by the calibration of fake@1 with 1 client by step"]
    {
        assert!(line.contains(part), "{line}");
    }
    assert!(plan(&["--blocks", "5"]).contains("(5 blocks), by the calibration"));
    let unknown = plan(&["--blocks", "auto", "--interleave", "turns"]);
    let wanted = "no calibration of fake in turns; to make one: rqps doctor --aa fake@1 ";
    assert!(unknown.contains(wanted), "{unknown}");
    let budget = plan(&["--blocks", "auto", "--budget", "1s"]);
    assert!(budget.contains("about 1 of the 4 blocks before the first interim look"), "{budget}");
    // A comparison on this host finds it and keeps a copy beside its results.
    let next = folder.path().join("next");
    let mut words =
        vec!["compare", "fake@1", "b=fake@1", "--blocks", "1", "--steps", "point-query"];
    let next_word = next.to_string_lossy().into_owned();
    words.extend(["--out", &next_word, "--set", "settle_scale=0"]);
    let output = rqps().env("RQPS_STATE", &state).args(&words).output().expect("start rqps");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(gate(&next)["calibration"], known);
}
