//! Run folders on disk stay readable: golden ones of every benchmark, and of a newer rqps.

use std::collections::BTreeSet;

use crate::sources::{Files, made, tree_files};

/// Folders of golden runs besides those of benchmarks.
const NEWER: &str = "newer";

#[test]
fn every_benchmark_has_golden_runs() {
    assert_eq!(golden(&tree_files()), [""; 0]);
}

#[test]
fn a_benchmark_without_golden_runs_is_found() {
    let run = |set: &str| (format!("tests/data/golden/{set}/b01-1-a/run.json"), String::new());
    let mut files: Files = [run("kv"), run("newer")].into();
    files.extend(made(&[("src/benchmarks/mod.rs", ""), ("src/benchmarks/kv/mod.rs", "")]));
    files.insert("tests/golden.rs".to_string(), "check(\"kv\"); check(\"newer\");".to_string());
    assert_eq!(golden(&files), [""; 0]);
    files.insert("src/benchmarks/fill/mod.rs".to_string(), String::new());
    assert_eq!(golden(&files), ["fill: no golden runs, or tests/golden.rs does not report them"]);
    files.insert("tests/golden.rs".to_string(), "check(\"kv\"); check(\"fill\");".to_string());
    files.extend([run("fill")]);
    assert_eq!(golden(&files), ["newer: no golden runs, or tests/golden.rs does not report them"]);
}

fn golden(files: &Files) -> Vec<String> {
    let benchmark = |path: &String| {
        let name = path.strip_prefix("src/benchmarks/")?.strip_suffix("/mod.rs")?;
        Some(name.to_string()).filter(|name| !name.contains('/'))
    };
    let mut names: BTreeSet<String> = files.keys().filter_map(benchmark).collect();
    names.insert(NEWER.to_string());
    let test = &files["tests/golden.rs"];
    names.retain(|name| {
        let folder = format!("tests/data/golden/{name}/");
        let is_run = |path: &&String| path.starts_with(&folder) && path.ends_with("/run.json");
        !files.keys().any(|path| is_run(&path)) || !test.contains(&format!("check(\"{name}\")"))
    });
    names
        .into_iter()
        .map(|name| format!("{name}: no golden runs, or tests/golden.rs does not report them"))
        .collect()
}
