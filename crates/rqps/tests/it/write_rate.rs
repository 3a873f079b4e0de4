//! Query steps of the Insert Benchmark whose writers missed their rate, through the whole program:
//! no verdict, no part in a mean, and a gate that names what happened.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

const NEW: &str = "mysql-8.0.33";
/// Steps of the committed result set, and what they are made to be.
const STEPS: [(&str, &str); 3] =
    [("02-point-query", "l.i1"), ("03-scan", "qr500.L1"), ("05-delete", "qr1000.L2")];

/// A result set of three blocks. In qr1000.L2 the targets write these shares of their rate, block
/// by block, the base first; queries are the faster the less is written.
fn set(shares: [[f64; 3]; 2]) -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let source = Path::new("tests/data/two-targets");
    for name in ["plan.toml", "host.json"] {
        fs::copy(source.join(name), scratch.path().join(name)).unwrap();
    }
    for run in fs::read_dir(source).unwrap().map(|entry| entry.unwrap()) {
        let name = run.file_name().into_string().unwrap();
        let Some(block) = name.strip_prefix('b').filter(|_| run.path().is_dir()) else { continue };
        let block: usize = block[..2].parse().unwrap();
        let to = scratch.path().join(&name);
        fs::create_dir_all(to.join("steps")).unwrap();
        let mut record = read(&run.path().join("run.json"));
        record["benchmark"] = json!("insert");
        record["status"] = json!("complete");
        fs::write(to.join("run.json"), record.to_string()).unwrap();
        for (index, (of, step)) in STEPS.iter().enumerate() {
            let share = match *step {
                "qr1000.L2" => shares[usize::from(name.ends_with(NEW))][block - 1],
                _ => 1.0,
            };
            let mut record = read(&run.path().join(format!("steps/{of}.json")));
            // Ratios scatter a little: pairs that are equal to the last digit are no evidence.
            let sway = if name.ends_with(NEW) { block + block % 2 } else { block };
            make(&mut record, index, step, share, sway);
            // The published classes of response times; one run is of a version that had none.
            if block != 2 {
                let classes = json!({ "inserts": [1, 2, 3, 0, 0, 0, 0, 0, 0, 0] });
                record["outcome"]["buckets"] = classes;
            }
            fs::write(to.join(format!("steps/{}-{step}.json", index + 1)), record.to_string())
                .unwrap();
        }
    }
    scratch
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn make(record: &mut Value, index: usize, step: &str, share: f64, sway: usize) {
    let rate: Option<f64> = step.strip_prefix("qr").map(|rest| {
        // Twice that of the name: the record knows better than a name.
        2.0 * rest.split('.').next().unwrap().parse::<f64>().unwrap()
    });
    (record["index"], record["name"]) = (json!(index + 1), json!(step));
    (record["status"], record["detail"]) = (json!("complete"), json!(""));
    record["group"] = json!(if rate.is_some() { "range" } else { "load" });
    record["rate"] = json!(if rate.is_some() { "queries" } else { "rows_inserted" });
    let outcome = &mut record["outcome"];
    outcome["seconds"] = json!(10.0);
    let jitter = 1.0 + 0.001 * sway as f64 * (1.0 - 2.0 * (index % 2) as f64);
    let statements = (100_000.0 * jitter / share.powi(2)).round() as u64;
    (outcome["statements"], outcome["events"]) = (json!(statements), json!(statements));
    let rows = rate.unwrap_or(5000.0) * share * 10.0;
    let role = |target: Option<f64>| {
        json!({
            "workers": 1, "operations": (rows / 50.0) as u64, "rows": rows as u64,
            "target_per_second": target, "latency": "", "service": null,
            "cpu": { "user_us": 0.0, "system_us": 0.0 }, "busiest": 0.1,
        })
    };
    outcome["roles"] = json!({ "inserts": role(rate.map(|rate| rate / 50.0)) });
    if rate.is_some() {
        outcome["extra"] = json!({ "insert_rate": rows / 10.0 * (1.0 - 1e-5 * sway as f64) });
    }
}

fn rqps(words: &[&str], folder: &Path) -> (Option<i32>, String) {
    let (command, rest) = words.split_first().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_rqps"))
        .arg(command)
        .arg(folder)
        .args(rest)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let faults = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), format!("{text}{faults}"))
}

const KEPT: [f64; 3] = [1.0; 3];
const MISSED: [f64; 3] = [0.6; 3];

fn report(folder: &Path) -> Value {
    let (code, text) = rqps(&["report", "--format", "json"], folder);
    assert_eq!(code, Some(0), "{text}");
    serde_json::from_str(&text).unwrap()
}

fn check_report(shares: [[f64; 3]; 2], reasons: &[&str]) {
    let set = set(shares);
    let json = report(set.path());
    let comparison = if json["comparison"].is_object() { &json["comparison"] } else { &json };
    let steps = comparison["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "qr1000.L2").unwrap();
    let target = &step["targets"][1];
    for (metric, result) in target["metrics"].as_object().unwrap() {
        let relative = &result["relative"];
        let judged = relative["judgement"]["verdict"].as_str();
        if metric == "insert_rate" {
            assert_ne!(judged, Some("no_verdict"), "rates of writers are compared");
            continue;
        }
        if let Some(verdict) = judged {
            assert_eq!(verdict, "no_verdict", "{metric}");
            let why = relative["judgement"]["reasons"].to_string();
            assert!(reasons.iter().all(|reason| why.contains(reason)), "{metric}: {why}");
            assert!(relative["interval"].is_null() && relative["robust"].is_null(), "{metric}");
        }
    }
    let of_target = &comparison["summary"]["targets"][0];
    assert_eq!(of_target["geomean"]["steps"], 1, "loads and the step are left out of the mean");
    let ratio = of_target["geomean"]["ratio"].as_f64().unwrap();
    assert!((ratio - 1.0).abs() < 0.01, "{ratio}");
    let ranges = &comparison["groups"][0]["targets"][0]["summary"];
    assert_eq!(ranges["n"], 1, "and out of that of its group: {ranges}");
    let caveats = comparison["caveats"].to_string();
    assert!(caveats.contains("missed_rate") && caveats.contains("qr1000.L2"), "{caveats}");
    for format in ["text", "markdown", "html"] {
        let (_, text) = rqps(&["report", "--format", format], set.path());
        for reason in reasons {
            assert!(text.contains(reason), "{format}: {reason} in {text}");
        }
    }
    let (_, tsv) = rqps(&["report", "--format", "tsv"], set.path());
    let row = tsv.lines().find(|line| line.ends_with("qr1000.L2")).unwrap();
    assert_eq!(row, "\tqr1000.L2", "no ratio where there is no place for a reason");
}

#[test]
fn a_step_whose_writers_missed_their_rate_is_not_comparable() {
    check_report([KEPT, MISSED], &["misses its write rate: 1200 of 2000 rows/s, in 3 of 3 blocks"]);
    check_report([[1.0, 0.9, 1.0], KEPT], &["the baseline misses its write rate: 1800 of 2000"]);
    let both = ["misses its write rate: 1200 of", "the baseline misses its write rate: 1200 of"];
    check_report([MISSED, MISSED], &both);
}

#[test]
fn the_gate_names_a_write_rate_that_only_the_new_build_misses() {
    let check = |shares, words: &[&str], code, part: &str| {
        let set = set(shares);
        let words: Vec<&str> = ["gate"].iter().chain(words).copied().collect();
        let (have, text) = rqps(&words, set.path());
        assert_eq!(have, Some(code), "{text}");
        assert!(text.contains(part), "{part} in {text}");
    };
    let of_new = "REGRESSION mysql-8.0.33 qr1000.L2 o/s MISSES ITS WRITE RATE";
    check([KEPT, MISSED], &[], 1, of_new);
    check([KEPT, MISSED], &["--format", "json"], 1, "MISSES ITS WRITE RATE");
    check([KEPT, MISSED], &["--format", "junit"], 1, "MISSES ITS WRITE RATE");
    // One block of three is no regression, and no result either.
    let unclear = "UNCLEAR mysql-8.0.33 qr1000.L2 o/s NO VERDICT";
    check([KEPT, [1.0, 0.6, 1.0]], &[], 0, unclear);
    check([MISSED, MISSED], &[], 0, unclear);
    check([MISSED, KEPT], &["--fail-on-inconclusive"], 3, unclear);
}

#[test]
fn figures_of_the_pairs_and_of_all_runs_are_shown() {
    let set = set([KEPT, MISSED]);
    let (_, text) = rqps(&["report"], set.path());
    let after = |head: &str| {
        let at = text.find(head).unwrap_or_else(|| panic!("{head} in {text}"));
        text[at..].lines().take(8).collect::<Vec<_>>().join("\n")
    };
    // The run without classes hides no other: 4 runs of 6 operations.
    let classes = after("\nqr500.L1: insert");
    assert!(classes.contains("mysql-5.6.14") && classes.contains(NEW), "{classes}");
    let wanted = after("\nInserts/s during queries");
    assert!(wanted.contains("2000") && wanted.contains("1000"), "{wanted}");
    assert!(wanted.contains("1200 -"), "{wanted}");
    // (1 / 0.6)², marked as no result.
    let relative = after("\nThroughput relative to");
    assert!(relative.contains("2.78 ?"), "{relative}");
}
