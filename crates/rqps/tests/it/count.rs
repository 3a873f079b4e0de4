//! `rqps count`: from the command line to the report, with the SQLite that is compiled in, under
//! the valgrind of this host.

use crate::support::skipped;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::program::{rqps, run, text};

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
            "count", "sqlite", "again=sqlite", "--steps", "point-query,update-index",
            "--statements", "200", "--repeats", "1", "--set", "rows=2000", "--out", &out_word,
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

/// One block of two SQLite configurations, and the count after it.
fn compared_and_counted(folder: &Path, out: &Path) -> Output {
    let words = format!(
        "compare sqlite other=sqlite:small-cache --count --steps point-query --blocks 1 --out {} \
         --set rows=5000 --set read_seconds=0.1 --set warmup_seconds=0.1 --set settle_scale=0",
        out.display()
    );
    run(&words.split_whitespace().collect::<Vec<_>>(), folder)
}

#[test]
fn a_comparison_counts_after_its_blocks() {
    if !has_valgrind("a_comparison_counts_after_its_blocks") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out_word = out.to_string_lossy().into_owned();
    let done = compared_and_counted(folder.path(), &out);
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
    // Counts that are known do not make up for a rate that is not.
    let strict = ["gate", &out_word, "--instructions", "99%"];
    assert_eq!(run(&strict, folder.path()).status.code(), Some(3));
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
fn a_stripped_program_says_how_to_count_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let stripped = folder.path().join("rqps");
    let mut strip = Command::new("strip");
    strip.arg(env!("CARGO_BIN_EXE_rqps")).arg("-o").arg(&stripped);
    assert!(strip.status().unwrap().success());
    let out = folder.path().join("out");
    let words = ["count", "sqlite", "--steps", "point-query", "--out"];
    let output = Command::new(&stripped).args(words).arg(&out).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("is stripped") && said.contains("hint: name a library"), "{said}");
    assert!(!out.exists(), "nothing was begun");
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

/// A process under callgrind that a thread of this process started, once it is there.
fn counted_child(parent: u32) -> u32 {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        let threads = std::fs::read_dir(format!("/proc/{parent}/task")).expect("rqps runs");
        let children: String = threads
            .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok())
            .collect();
        let is_counted = |pid: &&str| {
            let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            text(&words).contains("callgrind")
        };
        if let Some(pid) = children.split_whitespace().find(is_counted) {
            return pid.parse().expect("a process id");
        }
        assert!(Instant::now() < end, "no process under valgrind");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: u32, signal: &str) {
    let sent = Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill");
    assert!(sent.success(), "kill {signal} {pid}");
}

fn small_count(out: &Path, more: &str) -> Vec<String> {
    let out = out.display();
    let words = format!("count sqlite again=sqlite --set rows=1000 --statements 20 --out {out}");
    format!("{words} {more}").split_whitespace().map(str::to_owned).collect()
}

#[test]
fn what_hangs_under_valgrind_is_given_up_and_ended() {
    if !has_valgrind("what_hangs_under_valgrind_is_given_up_and_ended") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let words = small_count(&out, "--steps point-query --repeats 1");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = rqps(&words, folder.path());
    command.env("RQPS_VALGRIND_PATIENCE", "2").stdout(Stdio::piped()).stderr(Stdio::piped());
    let counting = command.spawn().expect("start rqps");
    let hung = counted_child(counting.id());
    signal(hung, "-STOP");
    let output = counting.wait_with_output().expect("rqps ends");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    // It hangs before its first word, or while it is asked to count.
    let reasons = ["no message from the driver for", "it does not answer within"];
    assert!(reasons.iter().any(|reason| said.contains(reason)), "{said}");
    assert!(!Path::new(&format!("/proc/{hung}")).exists(), "an orphan is left");
    assert!(!out.join(".work").exists(), "nothing but results stays");
}

#[test]
fn a_killed_count_is_resumed() {
    if !has_valgrind("a_killed_count_is_resumed") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let words = small_count(&out, "--steps point-query,update-index --repeats 2");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let mut command = rqps(&words, folder.path());
    let mut counting =
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start rqps");
    counted_child(counting.id());
    counting.kill().expect("kill rqps");
    counting.wait().expect("rqps ends");
    let at_work = out.join(".work/.counted-01").exists() || out.join(".work/.counted-02").exists();
    assert!(at_work, "it was killed while it counted");
    let resumed = run(&["run", "--resume", &out.to_string_lossy()], folder.path());
    let shown = text(&resumed.stdout);
    assert!(resumed.status.success(), "{}\n{shown}", text(&resumed.stderr));
    let json = run(&["report", &out.to_string_lossy(), "--format", "json"], folder.path());
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    for target in [0, 1] {
        let counts = values(&report, "update-index", target, "instructions_per_op");
        assert_eq!(counts.len(), 2, "{report}");
    }
}

/// Gives a run the version of another build.
fn set_version(run: &Path, version: &str) {
    let path = run.join("run.json");
    let read = std::fs::read(&path).expect("run.json");
    let mut record: Value = serde_json::from_slice(&read).expect("JSON");
    record["manifest"]["version"] = version.into();
    std::fs::write(&path, record.to_string()).expect("write run.json");
}

#[test]
fn a_history_has_counts_alone_and_beside_rates() {
    if !has_valgrind("a_history_has_counts_alone_and_beside_rates") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out_word = out.to_string_lossy().into_owned();
    let done = compared_and_counted(folder.path(), &out);
    assert!(done.status.success(), "{}", text(&done.stderr));
    for results in [out.clone(), out.join("count")] {
        for entry in std::fs::read_dir(&results).expect("the result folder") {
            let run = entry.expect("an entry").path();
            if run.join("run.json").is_file() && run.to_string_lossy().ends_with("-other") {
                set_version(&run, "3.99.0");
            }
        }
    }
    let both = [out_word.clone(), format!("{out_word}/count")];
    for results in &both {
        let history = run(&["history", results, "--metric", "instr/o"], folder.path());
        let shown = text(&history.stdout);
        assert!(history.status.success(), "{}", text(&history.stderr));
        assert!(shown.contains("3.99.0") && shown.contains("point-query"), "{shown}");
    }
    // Of nothing but counts, they are the metric.
    let counts = run(&["history", &both[1]], folder.path());
    assert!(text(&counts.stdout).contains("Changes of instr/o"), "{}", text(&counts.stderr));
    let rates = run(&["history", &out_word], folder.path());
    assert!(text(&rates.stdout).contains("3.99.0"), "{}", text(&rates.stderr));
    let unknown = run(&["history", &both[1], "--metric", "ops"], folder.path());
    assert!(text(&unknown.stderr).contains("instr/o"), "{}", text(&unknown.stderr));
}

#[test]
fn a_simulation_adds_misses_and_mispredictions() {
    if !has_valgrind("a_simulation_adds_misses_and_mispredictions") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let words = small_count(&out, "--steps point-query --repeats 1 --simulate");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let counted = run(&words, folder.path());
    let shown = text(&counted.stdout);
    assert!(counted.status.success(), "{}\n{shown}", text(&counted.stderr));
    for part in ["simulated misses of the first-level caches", "simulated mispredicted branches"] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let json = run(&["report", &out.to_string_lossy(), "--format", "json"], folder.path());
    let report: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let of = |metric| values(&report, "point-query", 0, metric)[0];
    let instructions = of("instructions_per_op");
    for metric in ["simulated_first_level_misses_per_op", "simulated_mispredictions_per_op"] {
        assert!(of(metric) > 0.0 && of(metric) < instructions, "{metric}: {}", of(metric));
    }
    assert!(of("simulated_last_level_misses_per_op") <= of("simulated_first_level_misses_per_op"));
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
    let load = ["count", "postgres@17+pgvector", "--bench", "vector", "--steps", "load"];
    check(&load, "no step of it can be counted; load: it makes what the steps after it search");
    check(&["count", "sqlite", "--debug-dir", "/no/such/folder"], "no such folder");
}

#[test]
fn a_check_counts_and_measures_and_leaves_a_receipt() {
    if !has_valgrind("a_check_counts_and_measures_and_leaves_a_receipt") {
        return;
    }
    let folder = tempfile::tempdir().expect("folder");
    let out = folder.path().join("out");
    let out_word = out.to_string_lossy().into_owned();
    let words = [
        "check", "sqlite", "sqlite:small-cache", "--steps", "point-query", "--set", "rows=2000",
        "--budget", "2m", "--json", "--out", &out_word,
    ];
    let checked = run(&words, folder.path());
    let json: Value = serde_json::from_slice(&checked.stdout).unwrap_or_default();
    assert!(json.is_object(), "{}", text(&checked.stderr));
    assert_eq!(checked.status.code(), json["exit"].as_i64().map(|code| code as i32), "{json}");
    let judged = run(&["gate", &out_word, "--format", "json"], folder.path());
    let gate: Value = serde_json::from_slice(&judged.stdout).expect("JSON");
    assert_eq!((&gate["gate"], &gate["exit"]), (&json["gate"], &json["exit"]));
    assert_eq!(json["counts"][0]["step"], "point-query");
    assert!(json["counts"][0]["ratio"].as_f64().is_some_and(|ratio| ratio > 0.0), "{json}");
    // The receipt is what it says, and holds the counts, too.
    let file = json["receipt"]["file"].as_str().expect("a file");
    let sum = Command::new("sha256sum").arg(file).output().expect("sha256sum");
    let sum = text(&sum.stdout);
    assert_eq!(sum.split(' ').next(), json["receipt"]["sha256"].as_str());
    let listed = Command::new("tar").args(["-tzf", file]).output().expect("tar");
    assert!(text(&listed.stdout).contains("results/count/b02-"), "{}", text(&listed.stdout));
    // The page of its form names each field.
    let page = include_str!("../../../../docs/check.md");
    let objects = [&json, &json["counts"][0], &json["receipt"]];
    let fields = objects.into_iter().filter_map(Value::as_object).flat_map(|it| it.keys());
    for field in fields {
        assert!(page.contains(&format!("`{field}`")), "docs/check.md lacks {field}");
    }
    let short = run(&["check", "sqlite", "sqlite:small-cache", "--budget", "1s"], folder.path());
    assert_eq!(short.status.code(), Some(2));
    assert!(text(&short.stderr).contains("name a longer --budget"), "{}", text(&short.stderr));
}
