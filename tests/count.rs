//! `rqps count`: from the command line to the report, with the SQLite that is compiled in, under
//! the valgrind of this host.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

mod skipped;

fn rqps(words: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
    command.args(words).stdin(Stdio::null());
    let (lock, state) = (folder.join("lock"), folder.join("state"));
    command.env("RQPS_HOST_LOCK", lock).env("RQPS_STATE", state);
    command
}

fn run(words: &[&str], folder: &Path) -> Output {
    rqps(words, folder).output().expect("start rqps")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// True if valgrind is here; else the test is noted as left out.
fn has_valgrind(test: &str) -> bool {
    let said = Command::new("valgrind").arg("--version").output();
    let works = said.is_ok_and(|said| said.status.success());
    if !works {
        skipped::note(test, "needs valgrind (package valgrind)");
    }
    works
}

/// Values of a metric of a step, one for each run of a target, from the JSON form of a report.
fn values(report: &Value, step: &str, target: usize, metric: &str) -> Vec<f64> {
    let steps = report["comparison"]["steps"].as_array().expect("steps");
    let step = steps.iter().find(|found| found["name"] == step).expect("the step");
    let samples = step["targets"][target]["samples"].as_array().expect("samples");
    samples.iter().map(|sample| sample["values"][metric].as_f64().expect(metric)).collect()
}

#[test]
fn counts_of_one_build_repeat() {
    if !has_valgrind("counts_of_one_build_repeat") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out_word = out.to_string_lossy().into_owned();
    let counted = run(
        &[
            "count",
            "sqlite",
            "again=sqlite",
            "--steps",
            "point-query,update-index",
            "--statements",
            "200",
            "--repeats",
            "1",
            "--set",
            "rows=2000",
            "--out",
            &out_word,
        ],
        folder.path(),
    );
    let shown = text(&counted.stdout);
    assert!(counted.status.success(), "{}\n{shown}", text(&counted.stderr));
    assert!(shown.contains("Instructions per operation"), "{shown}");
    let json = run(&["report", &out_word, "--format", "json"], folder.path());
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    for step in ["point-query", "update-index"] {
        let [one, again] =
            [0, 1].map(|target| values(&report, step, target, "instructions_per_op"));
        assert_eq!((one.len(), again.len()), (1, 1), "{step}");
        for (one, again) in one.iter().zip(&again) {
            assert!((1e3..1e7).contains(one), "{step}: {one}");
            assert!((again / one - 1.0).abs() < 0.0005, "{step}: {one} {again}");
        }
        let runs = std::fs::read_dir(&out).expect("the result folder");
        let runs = runs.map(|run| run.expect("run").path().join("steps"));
        let files = runs.filter_map(|steps| std::fs::read_dir(steps).ok()).flatten();
        let names = files.map(|file| text(file.expect("file").file_name().as_encoded_bytes()));
        let ending = format!("{step}.callgrind.gz");
        assert_eq!(names.filter(|name| name.ends_with(&ending)).count(), 2, "{step}");
    }
    // Nothing was timed.
    assert!(!text(&json.stdout).contains("\"server_rss\""), "a metric of a measured run");
    assert!(!out.join(".work").exists(), "nothing but results stays");
    let page = std::fs::read_to_string(out.join("report.html")).expect("report.html");
    assert!(page.contains("Instructions per operation"));
}

#[test]
fn a_comparison_counts_after_its_blocks() {
    if !has_valgrind("a_comparison_counts_after_its_blocks") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out_word = out.to_string_lossy().into_owned();
    let words = format!(
        "compare sqlite other=sqlite:small-cache --count --steps point-query --blocks 1 --out \
         {out_word} --set rows=5000 --set read_seconds=0.1 --set warmup_seconds=0.1 --set \
         settle_scale=0"
    );
    let words: Vec<&str> = words.split_whitespace().collect();
    let done = run(&words, folder.path());
    let shown = text(&done.stdout);
    assert!(done.status.success(), "{}\n{shown}", text(&done.stderr));
    for part in ["rQPS", "Instructions per operation", "Functions that changed", "unixShmLock"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let json = run(&["report", &out_word, "--format", "json"], folder.path());
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let counts = &report["comparison"]["counts"];
    assert_eq!(report["comparison"]["runs"].as_array().expect("runs").len(), 2);
    assert_eq!(counts["runs"].as_array().expect("counted runs").len(), 6);
    let counted = &counts["steps"][0]["targets"][1]["counted"];
    assert_eq!(counted["functions"]["changes"][0]["name"], "unixShmLock");
    // Counts fail a gate only where that was asked for.
    let gate = |words: &[&str]| {
        let words = [&["gate", &out_word, "--unclear-max", "100%"], words].concat();
        run(&words, folder.path()).status.code()
    };
    assert_eq!((gate(&[]), gate(&["--instructions", "0.1%"])), (Some(0), Some(1)));
    let explained = text(&run(&["explain", &out_word], folder.path()).stdout);
    for part in ["cache_size", "The query plans have the same shape.", "MORE", "unixLock"] {
        assert!(explained.contains(part), "{part}\n{explained}");
    }
    let unknown = run(&["explain", &out_word, "--step", "scan"], folder.path());
    assert!(text(&unknown.stderr).contains("these folders hold point-query"));
    let alone = run(&["report", &format!("{out_word}/count")], folder.path());
    assert!(text(&alone.stdout).contains("Instructions per operation"));
}

#[test]
fn without_valgrind_the_package_is_named() {
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let words = ["count", "sqlite", "--out", &out.to_string_lossy()];
    let output = rqps(&words, folder.path()).env("PATH", folder.path()).output().expect("start");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("find valgrind in PATH"), "{said}");
    assert!(said.contains("apt-get install valgrind"), "{said}");
    assert!(!out.exists(), "an error before the first count leaves no folder");
}

#[test]
fn a_valgrind_that_dies_fails_the_steps() {
    let folder = tempfile::tempdir().expect("folder");
    let programs = folder.path().join("programs");
    std::fs::create_dir(&programs).expect("folder of programs");
    let dying = "#!/bin/sh\n[ \"$1\" = --version ] && echo valgrind-3.19.0 && exit 0\n\
                 echo 'valgrind: out of luck' >&2\nexit 1\n";
    for program in ["valgrind", "vgdb"] {
        let path = programs.join(program);
        std::fs::write(&path, dying).expect("program");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("permissions");
    }
    let out = folder.path().join("out");
    let words = format!(
        "count sqlite --steps point-query --repeats 1 --set rows=1000 --out {}",
        out.display()
    );
    let words: Vec<&str> = words.split_whitespace().collect();
    let path = format!("{}:/usr/bin:/bin", programs.display());
    let output = rqps(&words, folder.path()).env("PATH", path).output().expect("start");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("point-query") && said.contains("out of luck"), "{said}");
    assert!(!out.join(".work").exists(), "nothing but results stays");
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let folder = tempfile::tempdir().expect("folder");
    let check = |words: &[&str], part: &str| {
        let output = run(words, folder.path());
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
    };
    check(&["count", "postgres://user@host/db"], "name a build instead of a DSN");
    check(&["count", "fake@1"], "it executes nothing");
    check(&["compare", "fake@1", "fake@2", "--count"], "rqps starts none of these targets");
    check(&["count", "sqlite", "--statements", "5"], "from 10 to 1000000");
    check(&["count", "sqlite", "--set", "clients=2"], "one client");
    check(&["count", "sqlite", "--steps", "no-such-step"], "no-such-step");
}
