//! YCSB through the whole program: the example of docs/workloads.md as it stands there, on SQLite;
//! all core workloads on a real server; and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod builds;
#[allow(dead_code, reason = "other tests need no folder of their own")]
mod program;
mod skipped;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

const SHORT: [&str; 12] = [
    "--canaries",
    "off",
    "--blocks",
    "1",
    "--set",
    "seconds=0.3",
    "--set",
    "warmup_seconds=0.1",
    "--clients",
    "2",
    "--out",
    "out",
];

/// The words after `rqps` of the example in the docs.
fn example() -> Vec<String> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/workloads.md");
    let docs = fs::read_to_string(docs).unwrap();
    let line = docs.lines().find(|line| line.contains("--bench ycsb:")).unwrap();
    line.split_whitespace().skip(1).map(str::to_owned).collect()
}

fn run(words: &[String], folder: &Path) -> std::process::Output {
    let mut command = program::rqps(words, folder);
    command.args(SHORT).current_dir(folder).output().unwrap()
}

/// The records of all steps of a target, in order.
fn steps(out: &Path, label: &str) -> Vec<Json> {
    let mut paths: Vec<PathBuf> = fs::read_dir(out)
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(&format!("-{label}")))
        .flat_map(|run| fs::read_dir(run.join("steps")).unwrap().flatten().map(|one| one.path()))
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    paths.sort();
    paths.iter().map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
}

/// What holds for the records of a, b, c, f, d and e on any target.
fn check(steps: &[Json]) {
    let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a", "b", "c", "f", "d", "e"]);
    let count = |step: &Json, what: &str| step["outcome"][what].as_f64().unwrap();
    for step in steps {
        assert_eq!(step["status"], "complete", "{step}");
        assert_eq!(step["rate"], "operations");
        // An operation is an event, also one of two statements.
        let (events, operations) = (count(step, "events"), count(step, "statements"));
        assert!(events >= 1.0 && events == operations, "{step}");
        assert_eq!(step["outcome"]["errors"], serde_json::json!({}), "{step}");
    }
    let [a, _, c, f, d, e] = steps else { panic!("{names:?}") };
    assert_eq!((count(c, "writes"), count(c, "rows")), (0.0, count(c, "events")));
    assert_eq!(count(a, "reads") + count(a, "writes") + count(a, "others"), count(a, "events"));
    // Each event of f reads a record, and some then write it.
    assert!(count(f, "reads") == count(f, "events") && count(f, "writes") >= 1.0, "{f}");
    assert_eq!(count(d, "rows"), count(d, "reads"), "{d}");
    let rows = count(e, "rows") / count(e, "reads").max(1.0);
    assert!((20.0..80.0).contains(&rows), "{rows} rows a scan");
}

#[test]
fn the_example_of_the_docs_runs_as_it_stands() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(&example(), folder.path());
    let said = program::text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("sqlite: 2,000 rows loaded"), "{said}");
    let report = program::text(&output.stdout);
    assert!(report.contains("core workloads of YCSB, by rqps over SQL; 2000 records"), "{report}");
    for label in ["sqlite", "small"] {
        check(&steps(&folder.path().join("out"), label));
    }
}

#[test]
fn a_server_carries_out_all_core_workloads() {
    let test = "a_server_carries_out_all_core_workloads";
    if let Err(why) = builds::roots("", &["postgres@17.2.0"]) {
        return skipped::note(test, &why);
    }
    let folder = tempfile::tempdir().unwrap();
    let words: Vec<String> =
        example().into_iter().filter(|word| !word.starts_with("small=")).collect();
    let words: Vec<String> =
        words.into_iter().map(|word| word.replace("sqlite", "p=postgres@17.2.0")).collect();
    let output = run(&words, folder.path());
    assert!(output.status.success(), "{}", program::text(&output.stderr));
    check(&steps(&folder.path().join("out"), "p"));
}

#[test]
fn a_letter_that_is_no_workload_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["compare", "sqlite", "--bench", "ycsb:a,g"].map(str::to_owned);
    let output = run(&words, folder.path());
    let said = program::text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("it has no core workload `g`; it has a, b, c, d, e, f"), "{said}");
    assert!(!folder.path().join("out").exists());
}
