//! Targets that take turns within a step, with the real program on SQLite: what is written down,
//! and what happens when a driver is killed or stopped in its turn.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Starts a comparison of SQLite with itself; a lock of its own lets tests run side by side.
fn compare(folder: &Path, words: &[&str]) -> Child {
    let own = |name: &str| folder.join(name).to_string_lossy().into_owned();
    Command::new(env!("CARGO_BIN_EXE_rqps"))
        .args(["compare", "a=sqlite", "b=sqlite", "--interleave", "turns", "--blocks", "1"])
        .args(["--canaries", "off", "--set", "rows=2000", "--set", "warmup_seconds=0.1"])
        .args(["--out", &own("out"), "--work", &own("work"), "--format", "json"])
        .args(words)
        .env("RQPS_HOST_LOCK", own("lock"))
        .env("RQPS_STATE", own("state"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(fs::File::create(folder.join("stderr")).unwrap())
        .spawn()
        .unwrap()
}

fn json(path: &Path) -> Value {
    let text = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_slice(&text).unwrap()
}

/// The run folders, those of `a` first.
fn runs(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("out")).unwrap().map(|entry| entry.unwrap().path());
    let mut runs: Vec<PathBuf> = entries.filter(|path| path.join("run.json").exists()).collect();
    runs.sort_by_key(|path| path.to_string_lossy().chars().last());
    runs
}

/// Turn, start and length in milliseconds, events.
fn turns(run: &Path, step: &str) -> Vec<[f64; 4]> {
    let text = fs::read_to_string(run.join("steps").join(format!("{step}.turns.csv"))).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("turn,start_ms,ms,events"));
    let row = |line: &str| {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
        [cells[0], cells[1], cells[2], cells[3]]
    };
    lines.map(row).collect()
}

/// Each block has its own load, each sitting is a session, and what sittings differ by is kept for
/// the next comparison.
#[test]
fn sittings_of_sqlite_load_anew_and_fill_the_ledger() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let rqps = |out: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
        command.args(["compare", "a=sqlite", "b=sqlite", "--steps", "point-query,update-index"]);
        command.args(["--canaries", "off", "--set", "rows=2000", "--set", "seconds=0.5"]);
        command.args(["--set", "warmup_seconds=0.1", "--blocks", "2", "--format", "json"]);
        command.args(more).arg("--out").arg(place(out)).stdin(Stdio::null());
        command.env("RQPS_HOST_LOCK", place("lock")).env("RQPS_STATE", place("state"));
        let done = command.output().unwrap();
        (done.status.code(), done.stdout, String::from_utf8_lossy(&done.stderr).into_owned())
    };
    let (code, report, said) = rqps("out", &["--sittings", "3", "--every", "0s"]);
    assert_eq!(code, Some(0), "{said}");
    let mut loads: Vec<(u64, u64)> = Vec::new();
    for run in runs(folder.path()) {
        let run = json(&run.join("run.json"));
        let number = |it: &Value| it.as_u64().unwrap_or(1);
        loads.push((number(&run["sitting"]["number"]), number(&run["load"]["number"])));
    }
    loads.sort_unstable();
    loads.dedup();
    assert_eq!(loads, [(1, 1), (1, 2), (2, 3), (2, 4), (3, 5), (3, 6)]);
    assert!(!place("out").join(".work").exists(), "no snapshot stays");
    let report: Value = serde_json::from_slice(&report).unwrap();
    let about = report["comparison"]["summary"]["about"].as_str().unwrap();
    assert!(about.contains("6 loads of each, 3 sittings. Another host"), "{about}");
    let ledger = fs::read_to_string(place("state/ledger.csv")).unwrap();
    let lines: Vec<&str> = ledger.lines().skip(2).collect();
    assert_eq!(lines.len(), 3, "loads, reads and writes: {ledger}");
    assert!(lines.iter().all(|line| line.starts_with("sqlite,") && line.contains("3 sittings")));
    // One sitting takes over what the ledger knows.
    let (code, report, said) = rqps("next", &[]);
    assert_eq!(code, Some(0), "{said}");
    let report: Value = serde_json::from_slice(&report).unwrap();
    for step in report["comparison"]["steps"].as_array().unwrap() {
        let test = &step["targets"][1]["metrics"]["rate"]["relative"]["judgement"]["test"];
        let width = |it: &Value| it["high"].as_f64().unwrap() - it["low"].as_f64().unwrap();
        assert!(width(&test["another_sitting"]) >= width(&test["interval"]), "{test}");
    }
    fs::write(place("state/ledger.csv"), "# rqps ledger 9\n").unwrap();
    let (code, _, said) = rqps("never", &[]);
    assert_eq!(code, Some(2), "{said}");
    let way_out = "ledger.csv`, line 1: it does not begin with `# rqps ledger 1`";
    assert!(said.contains(way_out) && said.contains("or remove it"), "{said}");
}

#[test]
fn turns_follow_each_other_and_are_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["--steps", "point-query", "--set", "seconds=0.5", "--set", "clients=3"];
    let mut child = compare(folder.path(), &[&words[..], &["--set", "turn_ms=10"]].concat());
    assert!(
        child.wait().unwrap().success(),
        "{:?}",
        fs::read_to_string(folder.path().join("stderr"))
    );
    let plan = fs::read_to_string(folder.path().join("out/plan.toml")).unwrap();
    assert!(plan.contains("interleave = \"turns\"") && plan.contains("turn_ms = 10"), "{plan}");
    let runs = runs(folder.path());
    let mut all = Vec::new();
    for run in &runs {
        let own = turns(run, "02-point-query");
        let record = json(&run.join("steps/02-point-query.json"));
        let outcome = &record["outcome"];
        let sum = |column: usize| own.iter().map(|row| row[column]).sum::<f64>();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-3 * a.max(b), "{a} {b}");
        close(outcome["seconds"].as_f64().unwrap() * 1e3, sum(2));
        assert_eq!(outcome["events"].as_f64().unwrap(), sum(3));
        assert_eq!(outcome["turns"]["turns"], own.len());
        let shares = outcome["turns"]["shares"].as_array().unwrap();
        let in_shares: f64 = shares.iter().map(|share| share[1].as_f64().unwrap()).sum();
        assert_eq!(in_shares, sum(3));
        assert!(record["usage"]["missing"]["host"].as_str().unwrap().contains("took turns"));
        // Every client has an event in every turn.
        assert!(own.iter().all(|row| row[3] >= 3.0 && row[2] >= 10.0), "{own:?}");
        all.extend(own);
    }
    all.sort_by(|a, b| a[0].total_cmp(&b[0]));
    assert_eq!(all.len() % 4, 0, "whole rounds");
    for (place, row) in all.iter().enumerate() {
        assert_eq!(row[0], place as f64, "every turn is one target's");
    }
    for pair in all.windows(2) {
        assert!(pair[1][1] + 0.002 >= pair[0][1] + pair[0][2], "no two at once: {pair:?}");
    }
    let halves: Vec<usize> = runs.iter().map(|run| turns(run, "02-point-query").len()).collect();
    assert_eq!(halves[0], halves[1]);
}

/// Waits for two drivers of `rqps`, lets them work, and sends one of them `signal`. Returns how all
/// of it ended.
fn disturbed(folder: &Path, signal: &str) -> ExitStatus {
    let words = ["--steps", "point-query", "--set", "seconds=2"];
    let mut child = compare(folder, &words);
    let deadline = Instant::now() + Duration::from_secs(120);
    let drivers = loop {
        assert!(Instant::now() < deadline, "no drivers");
        let drivers = drivers(child.id());
        if drivers.len() == 2 {
            break drivers;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    std::thread::sleep(Duration::from_millis(700));
    let sent = Command::new("kill").args([signal, &drivers[0].to_string()]).status().unwrap();
    assert!(sent.success());
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < deadline, "it hangs");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Children of a process that are drivers.
fn drivers(parent: u32) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_driver = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let ppid = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
        ppid == Some(parent) && line.split(|byte| *byte == 0).nth(1) == Some(b"driver")
    };
    pids.filter(is_driver).collect()
}

/// One target failed in the first step, with `why`; the other, and the next step, are complete.
fn check_faults(folder: &Path, status: ExitStatus, why: &str) {
    assert_eq!(status.code(), Some(4));
    let statuses = |step: &str| -> Vec<Value> {
        let path = format!("steps/{step}.json");
        runs(folder).iter().map(|run| json(&run.join(&path))["status"].clone()).collect()
    };
    let first = statuses("01-point-query.warm");
    let failed: Vec<&str> = first.iter().filter_map(|status| status["failed"].as_str()).collect();
    assert_eq!(failed.len(), 1, "{first:?}");
    assert!(failed[0].contains(why), "{failed:?}");
    assert!(first.contains(&Value::from("complete")), "{first:?}");
    assert_eq!(statuses("02-point-query"), ["complete", "complete"]);
}

#[test]
fn a_driver_that_is_killed_fails_its_step_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let status = disturbed(folder.path(), "-KILL");
    check_faults(folder.path(), status, "the driver process ended early");
}

#[test]
fn a_driver_that_stands_still_fails_its_step_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let status = disturbed(folder.path(), "-STOP");
    check_faults(folder.path(), status, "was stuck");
}
