//! `rqps gate` over small result sets: exit codes, one line for each finding, the forms of CI
//! systems, and rules from the plan file and from options.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

const NEW: &str = "mysql-8.0.33";
const STEPS: [&str; 3] = ["02-point-query", "03-scan", "05-delete"];

/// A result set made of the committed one: three steps, every one of them complete, with the new
/// target's rates as given, per cent of the base's, in each block.
fn set(percent: [[f64; 3]; 3]) -> tempfile::TempDir {
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
        fs::copy(run.path().join("run.json"), to.join("run.json")).unwrap();
        for (step, ratios) in STEPS.iter().zip(percent) {
            let file = format!("steps/{step}.json");
            let text = fs::read_to_string(run.path().join(&file)).unwrap();
            let mut record: Value = serde_json::from_str(&text).unwrap();
            let factor = if name.ends_with(NEW) { ratios[block - 1] / 100.0 } else { 1.0 };
            let outcome = &mut record["outcome"];
            for count in ["statements", "events"] {
                outcome[count] = json!((100_000.0 * factor).round() as u64);
            }
            outcome["rows_scanned"] = json!((100_000_000.0 * factor).round() as u64);
            fs::write(to.join(&file), record.to_string()).unwrap();
        }
    }
    scratch
}

const SAME: [f64; 3] = [100.1, 99.9, 100.0];
const HALF: [f64; 3] = [50.1, 49.9, 50.0];

fn gate(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rqps")).arg("gate").arg(folder).args(words).output().unwrap()
}

fn check(folder: &Path, words: &[&str], code: i32, parts: &[&str]) -> String {
    let output = gate(folder, words);
    let text = String::from_utf8(output.stdout).unwrap();
    let faults = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{words:?}\n{text}\n{faults}");
    for part in parts {
        assert!(text.contains(part) || faults.contains(part), "{part:?} in\n{text}\n{faults}");
    }
    text
}

#[test]
fn two_equal_targets_are_boring() {
    let set = set([SAME, SAME, SAME]);
    let text = check(set.path(), &[], 0, &["gate: boring (exit 0)", "delta 2 %, tau 1 %, q 0.05"]);
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// A job that asks for a limit and has no counts must not pass.
#[test]
fn a_limit_on_instructions_needs_counts() {
    let set = set([SAME, SAME, SAME]);
    let parts = ["no counted instructions in these results", "`rqps compare --count`"];
    check(set.path(), &["--instructions", "0.5%"], 2, &parts);
}

#[test]
fn a_gain_is_no_regression() {
    let set = set([SAME, [150.0, 151.0, 149.0], SAME]);
    check(set.path(), &[], 0, &["GAIN mysql-8.0.33 scan o/s FASTER 1.500"]);
}

#[test]
fn a_slower_step_fails_the_job_in_one_line() {
    let set = set([SAME, HALF, SAME]);
    let text = check(set.path(), &[], 1, &["REGRESSION mysql-8.0.33 scan o/s SLOWER 0.500 [0.4"]);
    assert_eq!(text.lines().count(), 2, "{text}");
    // The other way round it is a gain.
    check(set.path(), &["--baseline", NEW], 0, &["GAIN mysql-5.6.14 scan o/s FASTER 2.000"]);
}

#[test]
fn what_is_unclear_fails_it_when_it_is_too_much() {
    let noisy = [80.0, 125.0, 100.0];
    let one = set([SAME, SAME, noisy]);
    let line = "UNCLEAR mysql-8.0.33 delete o/s INCONCLUSIVE";
    check(one.path(), &[], 0, &[line, "sample size "]);
    check(one.path(), &["--fail-on-inconclusive"], 3, &[line]);
    check(one.path(), &["--unclear-max", "20%"], 3, &["1 of 3 verdicts unclear, 20 % may be"]);
    check(set([noisy, noisy, SAME]).path(), &[], 3, &["NO VERDICT (exit 3)"]);
}

/// An exit of 0 is called boring only if every verdict is known and none is a small loss.
#[test]
fn what_is_not_boring_is_not_called_so() {
    let noisy = [80.0, 125.0, 100.0];
    let said = "gate: undecided, no regression shown (exit 0): regressions 0, small losses 0";
    check(set([SAME, SAME, noisy]).path(), &[], 0, &[said, "1 of 3 verdicts unclear"]);
    let less = [98.7, 98.6, 98.65];
    let small = set([less, less, less]);
    let said = "gate: no regression (exit 0): regressions 0, small losses 3";
    let text = check(small.path(), &[], 0, &[said]);
    assert_eq!(text.matches("SMALL LOSS mysql-8.0.33").count(), 3, "{text}");
    let text = check(small.path(), &["--format", "json"], 0, &["\"ending\": \"no_regression\""]);
    assert!(!text.contains("boring"), "{text}");
}

/// A plan whose number of blocks was raised after a look at two pays for both looks.
#[test]
fn blocks_that_were_raised_are_another_look() {
    let set = set([SAME, HALF, SAME]);
    let planned = |of_block: fn(&str) -> u32| {
        for run in fs::read_dir(set.path()).unwrap().map(|entry| entry.unwrap().path()) {
            let name = run.file_name().unwrap().to_str().unwrap().to_owned();
            if !run.is_dir() {
                continue;
            }
            let text = fs::read_to_string(run.join("run.json")).unwrap();
            let mut record: Value = serde_json::from_str(&text).unwrap();
            let blocks = of_block(&name);
            record["schedule"] = json!({ "blocks_min": blocks, "blocks_max": blocks });
            fs::write(run.join("run.json"), record.to_string()).unwrap();
        }
        let mut report = Command::new(env!("CARGO_BIN_EXE_rqps"));
        let output =
            report.arg("report").arg(set.path()).args(["--format", "json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report.to_string()
    };
    assert!(!planned(|_| 3).contains("\"blocks_min\":"));
    let raised = planned(|name| if name.starts_with("b03") { 3 } else { 2 });
    assert!(raised.contains("\"schedule\":{\"blocks_max\":3,\"blocks_min\":2}"), "{raised}");
}

/// Two pairs show too little of their scatter to fail a job.
#[test]
fn two_pairs_fail_no_job() {
    let set = set([SAME, HALF, SAME]);
    check(set.path(), &[], 1, &["REGRESSION mysql-8.0.33 scan"]);
    for run in fs::read_dir(set.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if run.file_name().unwrap().to_str().unwrap().starts_with("b03") {
            fs::remove_dir_all(run).unwrap();
        }
    }
    let line = "UNCLEAR mysql-8.0.33 scan o/s SLOWER 0.500";
    check(set.path(), &[], 0, &[line, "2 values fail no job: measure more blocks"]);
}

/// No step loses δ, but all of them together lose more than half of it.
#[test]
fn a_suite_that_is_slower_as_a_whole_fails_the_job() {
    let less = [98.2, 98.3, 98.25];
    let set = set([less, [98.3, 98.2, 98.25], less]);
    let line = "REGRESSION mysql-8.0.33 o/s SLOWER 0.982";
    let why = "the geometric mean of 3 steps, none of which fails alone";
    check(set.path(), &["--tau", "0.2%"], 1, &[line, why]);
    // With a loss that the rules allow, the mean says nothing.
    let text = check(set.path(), &["--tau", "0.2%", "--delta", "10%"], 0, &[]);
    assert!(!text.contains("geometric mean"), "{text}");
}

#[test]
fn other_compilers_are_named() {
    let set = set([SAME, SAME, SAME]);
    for run in fs::read_dir(set.path()).unwrap().map(|entry| entry.unwrap().path()) {
        let file = run.join("run.json");
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let mut record: Value = serde_json::from_str(&text).unwrap();
        let is_new = record["key"]["label"] == NEW;
        let compiler = if is_new { "GCC: (Debian 12.2.0-14) 12.2.0" } else { "gcc 7.5.0" };
        record["manifest"]["compiler"] = json!(compiler);
        fs::write(&file, record.to_string()).unwrap();
    }
    let said = "compilers differ: compiler: gcc 7.5.0 (mysql-5.6.14); gcc 12.2.0 (mysql-8.0.33)";
    check(set.path(), &[], 0, &[&format!("NOTE {said}")]);
    check(set.path(), &["--format", "markdown"], 0, &[said]);
}

#[test]
fn one_block_has_no_verdict() {
    let set = set([HALF, HALF, HALF]);
    for block in ["b02", "b03"] {
        for run in fs::read_dir(set.path()).unwrap().map(|entry| entry.unwrap().path()) {
            if run.file_name().unwrap().to_str().unwrap().starts_with(block) {
                fs::remove_dir_all(run).unwrap();
            }
        }
    }
    check(set.path(), &[], 3, &["NO VERDICT 0.501 n=1: one pair gives no estimate"]);
}

fn change_run(set: &Path, change: impl Fn(&mut Value)) -> PathBuf {
    let runs = fs::read_dir(set).unwrap().map(|entry| entry.unwrap().path());
    let run = runs.filter(|path| path.ends_with(format!("b02-1-{NEW}"))).last().unwrap();
    let file = run.join("run.json");
    let mut record: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    change(&mut record);
    fs::write(&file, record.to_string()).unwrap();
    run
}

#[test]
fn a_failed_run_is_told_from_a_regression() {
    let same = set([SAME, SAME, SAME]);
    let fail = |record: &mut Value| record["status"] = json!({"failed": "start: no room"});
    change_run(same.path(), fail);
    check(same.path(), &[], 4, &["FAILED mysql-8.0.33: the run ", "failed: start: no room"]);
    let slower = set([SAME, HALF, SAME]);
    change_run(slower.path(), fail);
    check(slower.path(), &[], 1, &["FAILED", "REGRESSION"]);
}

#[test]
fn numbers_of_two_hosts_are_no_regression() {
    let set = set([HALF, HALF, HALF]);
    change_run(set.path(), |record| record["host_fingerprint"] = json!("cafe00000000"));
    check(set.path(), &[], 3, &["UNCLEAR Different hosts"]);
}

#[test]
fn rules_come_from_the_plan_and_options_stand_over_them() {
    let slower = [94.0, 94.1, 93.9];
    let set = set([slower, SAME, SAME]);
    check(set.path(), &[], 1, &["REGRESSION mysql-8.0.33 point-query"]);
    check(set.path(), &["--delta", "10%"], 0, &["SMALL LOSS", "delta 10 %"]);
    let plan = set.path().join("plan.toml");
    let own = fs::read_to_string(&plan).unwrap();
    let write = |table: &str| fs::write(&plan, table).unwrap();
    write("[gate]\ndelta = 0.10\n");
    check(set.path(), &[], 0, &["delta 10 %"]);
    check(set.path(), &["--delta=0.02"], 1, &["delta 2 %"]);
    let allowance = "[[gate.allow]]\nstep = \"point-*\"\ndelta = 0.08\nreason = \"issue 7\"\n";
    write(allowance);
    check(set.path(), &[], 0, &["ALLOWED mysql-8.0.33 point-query", "up to 8 %: issue 7"]);
    let apart = set.path().join("gate.toml");
    fs::write(&apart, allowance).unwrap();
    fs::write(&plan, own).unwrap();
    let words = ["--thresholds", apart.to_str().unwrap()];
    check(set.path(), &words, 0, &["ALLOWED mysql-8.0.33 point-query"]);
    // Reports are made by the same rules.
    write("[gate]\ndelta = 0.10\n");
    let report = Command::new(env!("CARGO_BIN_EXE_rqps"))
        .arg("report")
        .arg(set.path())
        .args(["--tau", "0.5 %"])
        .output()
        .unwrap();
    let text = String::from_utf8(report.stdout).unwrap();
    assert!(text.contains("Rule: delta 10 %, tau 0.5 %, q 0.05."), "{text}");
}

#[test]
fn costs_can_fail_it_too() {
    // With the CPU of the host as it was, half the rate is twice the CPU per operation.
    let set = set([SAME, HALF, SAME]);
    let words = ["--metrics", "o/s,server_cpu_us/o"];
    check(set.path(), &words, 1, &["REGRESSION mysql-8.0.33 scan server_cpu_us/o WORSE 2.000"]);
}

#[test]
fn wrong_words_end_with_two() {
    let set = set([SAME, SAME, SAME]);
    for (words, part) in [
        (&["--tau", "5%"][..], "tau must be"),
        (&["--delta", "much"], "write a share as 2% or 0.02"),
        (&["--metrics", "speed"], "unknown metric `speed`"),
        (&["--format", "yaml"], "yaml"),
        (&["--baseline", "x"], "no such target"),
        (&["--thresholds", "absent.toml"], "absent.toml"),
    ] {
        check(set.path(), words, 2, &[part]);
    }
    check(Path::new("src"), &[], 2, &["src"]);
    fs::write(set.path().join("plan.toml"), "[gate]\ndetla = 1\n").unwrap();
    check(set.path(), &[], 2, &["detla"]);
}

#[test]
fn every_form_says_the_same() {
    let set = set([SAME, HALF, [80.0, 125.0, 100.0]]);
    let json = check(set.path(), &["--format", "json"], 1, &[]);
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["exit"], &json["gate"]["ending"]), (&json!(1), &json!("regression")));
    assert_eq!(json["gate"]["findings"][0]["step"], "scan");
    assert_eq!(json["gate"]["findings"][1]["level"], "unclear");
    let row = "| REGRESSION | mysql-8.0.33 | scan | o/s | SLOWER | 0.500 \\[";
    check(set.path(), &["--format", "markdown"], 1, &[row]);
    let xml = check(
        set.path(),
        &["--format", "junit"],
        1,
        &[
            "tests=\"3\" failures=\"1\" errors=\"0\" skipped=\"1\"",
            "name=\"scan o/s\"><failure message=\"mysql-8.0.33",
        ],
    );
    assert_eq!(xml.matches("<testcase ").count(), xml.matches("</testcase>").count());
    assert!(!xml.contains("holm<0"), "{xml}");
    let words = ["--format", "github"];
    let text = check(set.path(), &words, 1, &["::error title=rqps REGRESSION scan::mysql-8.0.33"]);
    assert!(text.contains("delta 2 %25, tau"), "{text}");
    let file = set.path().join("findings.xml");
    let words = ["--format", "junit", "-o", file.to_str().unwrap()];
    assert_eq!(check(set.path(), &words, 1, &[]), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), xml);
}

/// The output of a command, and its exit code.
fn said(words: &[&str]) -> (String, Option<i32>) {
    let output = Command::new(env!("CARGO_BIN_EXE_rqps")).args(words).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), output.status.code())
}

/// Single published values cannot be judged, and nobody can measure more of them: a broken column
/// is one finding, what steps have in common is said once, and no row is without a number.
#[test]
fn reports_of_imports_say_a_thing_once() {
    let scratch = tempfile::tempdir().unwrap();
    let table = scratch.path().join("qps.tsv");
    let names = ["point-query", "scan", "update-index", "delete", "hot-points"];
    let mut rows = "col-1 : a\ncol-2 : b\ncol-3 : c\n\ncol-1\tcol-2\tcol-3\n".to_owned();
    for (step, base) in names.iter().zip([8.0, 80.0, 800.0, 1600.0, 2400.0]) {
        rows.push_str(&format!("{base}\t{}\t0\t{step}\n", base * 1.375));
    }
    fs::write(&table, rows).unwrap();
    let out = scratch.path().join("out");
    let (table, out) = (table.to_str().unwrap(), out.to_str().unwrap());
    assert_eq!(said(&["import", "sysbench-mytools", table, "--out", out]).1, Some(0));
    for format in ["text", "markdown"] {
        let (text, code) = said(&["report", out, "--format", format]);
        assert_eq!(code, Some(0));
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let count = |part: &str| text.matches(part).count();
        assert_eq!(count("--blocks"), 0, "{text}");
        assert_eq!(count("no rate above 0 on any of 5 steps"), 1, "{text}");
        assert_eq!(count("one pair gives no estimate"), 1, "{text}");
        assert_eq!(count("a value is 0 and has no logarithm"), 1, "{text}");
        assert!(text.contains("geometric mean of rQPS 1.375."), "{text}");
        assert!(text.contains("Each ratio comes from one pair"), "{text}");
        let dashes = text.contains("- - - -") || text.contains("| - | - | - |");
        assert!(!dashes, "{text}");
    }
    let (text, code) = said(&["gate", out]);
    assert_eq!((text.lines().count(), code), (3, Some(3)), "{text}");
    assert!(
        text.contains("5 steps: one pair gives no estimate") && !text.contains("FAILED"),
        "{text}"
    );
}

/// A page with many targets counts the SLOWER ones. Without a test it must not say that there are
/// none.
#[test]
fn untested_targets_are_not_told_as_not_slower() {
    let scratch = tempfile::tempdir().unwrap();
    let table = scratch.path().join("qps.tsv");
    let heads: Vec<String> = (1..=7).map(|column| format!("col-{column}")).collect();
    let mut rows: String = heads.iter().map(|head| format!("{head} : {head}x\n")).collect();
    rows.push_str(&format!("\n{}\n", heads.join("\t")));
    for step in ["point-query", "scan", "update-index"] {
        rows.push_str(&format!("100\t90\t80\t70\t60\t50\t40\t{step}\n"));
    }
    fs::write(&table, rows).unwrap();
    let out = scratch.path().join("out");
    let (table, out) = (table.to_str().unwrap(), out.to_str().unwrap());
    assert_eq!(said(&["import", "sysbench-mytools", table, "--out", out]).1, Some(0));
    let (page, code) = said(&["report", out, "--format", "html"]);
    assert_eq!(code, Some(0));
    assert!(page.contains("No verdict on any of 6 targets."));
    assert!(!page.contains("None of 6 targets"));
}

/// Steps of vector indexes are named after parameters that only one DBMS has: what a target could
/// not be measured on did not fail.
#[test]
fn parameters_of_another_target_are_no_failure() {
    let set = set([SAME, SAME, SAME]);
    for run in fs::read_dir(set.path()).unwrap().map(|entry| entry.unwrap().path()) {
        if !run.is_dir() {
            continue;
        }
        let new = run.to_str().unwrap().ends_with(NEW);
        let name = if new { "search.m=16.ec=64.ef=40" } else { "search.m=6.ef=10" };
        let file = run.join("steps/03-scan.json");
        let text = fs::read_to_string(&file).unwrap();
        let mut record: Value = serde_json::from_str(&text).unwrap();
        record["name"] = json!(name);
        record["parameters"] = json!({ "of_one_dbms": true });
        fs::write(&file, record.to_string()).unwrap();
        let file = run.join("run.json");
        let mut record: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        if new {
            record["target"]["dbms"] = json!("postgres");
        }
        fs::write(&file, record.to_string()).unwrap();
    }
    let text = check(set.path(), &[], 0, &["gate: boring (exit 0)", "failures 0; 0 of 2"]);
    assert!(!text.contains("FAILED"), "{text}");
}
