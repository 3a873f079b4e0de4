//! `rqps compare --profile`: from the command line to the report, with the SQLite that is compiled
//! in, under the perf of this host.

use crate::support::skipped;
use std::process::Command;

use serde_json::Value;

use crate::support::program::{rqps, run, text};

/// True if perf is here and may sample; else the test is noted as left out.
fn has_perf(test: &str) -> bool {
    let trial = ["record", "-q", "-e", "cpu-clock", "-o", "/dev/null", "--", "true"];
    let said = Command::new("perf").args(trial).output();
    let works = said.is_ok_and(|said| said.status.success());
    if !works {
        skipped::note(test, "needs perf (package linux-perf) and the right to sample");
    }
    works
}

const TARGETS: [&str; 2] = ["sqlite", "again=sqlite"];
const SHORT: [&str; 16] = [
    "--steps", "point-query", "--blocks", "1", "--canaries", "off", "--set", "rows=2000", "--set",
    "read_seconds=2", "--set", "write_seconds=2", "--set", "warmup_seconds=0", "--set",
    "settle_scale=0",
];

#[test]
fn a_comparison_samples_after_its_blocks() {
    if !has_perf("a_comparison_samples_after_its_blocks") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out_word = out.to_string_lossy().into_owned();
    let words = [&["plan", "--profile"][..], &TARGETS, &SHORT].concat();
    let printed = run(&words, folder.path());
    let plan = text(&printed.stdout);
    let (before, pass) = plan.split_once("[profile]").expect("a table of the pass");
    let plan = format!("{before}[profile]{}", pass.replacen("blocks = 9", "blocks = 3", 1));
    let file = folder.path().join("plan.toml");
    std::fs::write(&file, plan).expect("write the plan");
    let words = ["run", &file.to_string_lossy(), "--out", &out_word];
    let measured = run(&words, folder.path());
    assert!(measured.status.success(), "{}", text(&measured.stderr));
    let json = run(&["report", &out_word, "--format", "json"], folder.path());
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let comparison = &report["comparison"];
    assert!(comparison["overhead"]["ratio"].as_f64().expect("overhead") > 0.2);
    let steps = comparison["profiles"]["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 1);
    for step in steps {
        let sampled = &step["targets"][1]["sampled"];
        assert_eq!(sampled["pairs"], 2, "{sampled}");
        assert!(sampled["tested"].as_u64().expect("tested") > 0, "{sampled}");
        let facts = &sampled["facts"][1];
        assert_eq!(facts["in_client"], true);
        assert!(facts["samples"].as_u64().expect("samples") > 0, "{facts}");
        let waits = &sampled["waits"];
        assert_eq!(waits["serving"], serde_json::json!([1, 1]), "{waits}");
        assert!(waits["running"][1].as_f64().expect("running") > 0.0, "{waits}");
    }
    let explained = run(&["explain", &out_word, "--step", "point-query"], folder.path());
    let explained = text(&explained.stdout);
    for part in [
        "us of CPU per operation in the client with the library",
        "Rates of blocks with the profiler",
        "again: the threads that serve clients run, or are ready to run, for",
    ] {
        assert!(
            explained.split_whitespace().collect::<Vec<_>>().join(" ").contains(part),
            "{part}"
        );
    }
    let stacks = folder.path().join("stacks");
    let words = ["export", &out_word, "--format", "folded", "-o", &stacks.to_string_lossy()];
    assert!(run(&words, folder.path()).status.success());
    let folded = std::fs::read_to_string(stacks.join("point-query.again.folded")).expect("stacks");
    let is_stack = |line: &str| line.rsplit_once(' ').is_some_and(|it| it.1.parse::<u64>().is_ok());
    assert!(folded.lines().all(is_stack), "{folded}");
    assert!(folded.contains("sqlite3_step") || folded.contains("sqlite3VdbeExec"), "{folded}");
    assert!(!out.join("profile/.work").exists(), "nothing but results stays");
}

#[test]
fn without_perf_nothing_is_measured() {
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out").to_string_lossy().into_owned();
    let words = [&["compare", "--profile", "--out", &out][..], &TARGETS, &SHORT].concat();
    let refused = rqps(&words, folder.path()).env("PATH", folder.path()).output().expect("rqps");
    let said = text(&refused.stderr);
    assert!(!refused.status.success());
    assert!(said.contains("install the package linux-perf"), "{said}");
    assert!(!folder.path().join("out").exists(), "{said}");
}
