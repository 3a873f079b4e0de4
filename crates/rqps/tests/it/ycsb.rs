//! YCSB through the whole program: the example of docs/workloads.md as it stands there, on SQLite;
//! all core workloads on a real server; and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::{builds, program, skipped};
use std::path::Path;

use crate::support::program::{SHORT, steps};
use serde_json::Value as Json;

fn run(words: &[String], folder: &Path) -> std::process::Output {
    let mut command = program::rqps_in(words, folder);
    command.args(SHORT).args(["--clients", "2"]).output().unwrap()
}

/// Checks the records of a, b, c, f, d and e, which hold on any target.
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
    let output = run(&program::example_of_docs("--bench ycsb:"), folder.path());
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
    let words = program::example_of_docs("--bench ycsb:").into_iter();
    let words = words.filter(|word| !word.starts_with("small="));
    let words: Vec<String> =
        words.map(|word| word.replace("sqlite", "p=postgres@17.2.0")).collect();
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
