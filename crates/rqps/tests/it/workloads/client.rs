//! Programs of the user's own (docs/clients.md): turns, versions, passwords, faults, refusals.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::program::{SHORT, rqps_in, said, steps, turn};
use crate::support::skipped;

fn fake() -> String {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/client/fake.sh");
    format!("client:{}", bench.display())
}

fn compare(folder: &Path, targets: &[&str], bench: &str, more: &[&str]) -> Output {
    let mut command = rqps_in(&["compare"], folder);
    command.args(targets).args(["--bench", bench]).args(SHORT).args(more).output().unwrap()
}

/// All files of the results.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { all.extend(files(&path)) } else { all.push(path) }
    }
    all
}

#[test]
fn a_program_takes_turns_and_keeps_no_password() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let targets = ["a=client:one", "b=redis://me:hush-hush@127.0.0.1:1/0"];
    let output = compare(folder.path(), &targets, &fake(), &["--yes", "--clients", "2"]);
    let out = folder.path().join("out");
    assert!(output.status.success(), "{}", said(&output));
    for label in ["a", "b"] {
        let steps = steps(&out, label);
        let names: Vec<&str> = steps.iter().map(|step| step["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["get", "set"]);
        for step in steps {
            assert_eq!(step["status"], "complete", "{step}");
            assert_eq!(step["outcome"]["facts"]["version"], "Fake 1.2");
            assert!(step["outcome"]["turns"]["turns"].as_u64() > Some(1), "{step}");
        }
    }
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    for words in ["Fake 1.2", "redis://me@127.0.0.1:1/0"] {
        assert!(report.contains(words), "{report}");
    }
    for file in files(&out) {
        let bytes = fs::read(&file).unwrap();
        let has = bytes.windows(9).any(|part| part == b"hush-hush");
        assert!(!has, "{}", file.display());
    }
    // A plan of somebody else names the program and its hash before it runs it.
    let mut command = rqps_in(&["run", "out/plan.toml", "--out", "again"], folder.path());
    let stranger = said(&command.env("RQPS_STATE", folder.path().join("other")).output().unwrap());
    assert!(stranger.contains("program") && stranger.contains("fake.sh"), "{stranger}");
}

#[test]
fn a_program_that_dies_in_its_turn_fails_its_target_only() {
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let targets = ["a=client:fine", "b=client:die"];
    let more = ["--steps", "get", "--", "--fault=hidden"];
    let output = compare(folder.path(), &targets, &fake(), &more);
    let out = folder.path().join("out");
    assert_eq!(steps(&out, "a")[0]["status"], "complete", "{}", said(&output));
    let text = said(&output);
    let words = "failed to run client 0 of fake.sh: asked to `run`, it ended (exited with 3: no \
                 route to host)";
    assert!(!output.status.success() && text.contains(words), "{text}");
}

#[test]
fn what_no_program_can_do_is_refused_with_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain.py"), "print(1)\n").unwrap();
    fs::write(folder.path().join("mute.sh"), "#!/bin/sh\nexit 0\n").unwrap();
    let chmod = Command::new("chmod").args(["+x", "mute.sh"]).current_dir(folder.path()).status();
    assert!(chmod.unwrap().success());
    let cases: &[(&str, &str, &[&str], &str)] = &[
        (
            "r=redis://h:1",
            "sysbench",
            &[],
            "let a program of yours talk to it: --bench client:PROGRAM",
        ),
        ("mongodb://u@h,i/d", "sysbench", &[], "--bench client:PROGRAM"),
        ("mongodb+srv://u@h/d", "sysbench", &[], "--bench client:PROGRAM"),
        ("client:x", "sysbench", &[], "--bench client:PROGRAM"),
        ("fake@1", &fake(), &[], "a program has nothing to talk to there"),
        ("client:x", "client:", &[], "it needs a program"),
        ("client:x", "client:nowhere.py", &[], "nowhere.py was not found"),
        ("client:x", "client:plain.py", &[], "it is not executable\nhint: chmod +x plain.py"),
        ("client:x", "client:mute.sh", &[], "it ended (exited with 0)"),
        ("client:x", &fake(), &["--", "size=3"], "its options look like --size=100"),
        ("client:x", &fake(), &["--rate", "100"], "it begins its events itself"),
        ("redis://h:1", &fake(), &[], "set may change rows of the database of redis-h-1"),
    ];
    for (target, bench, more, words) in cases {
        let output = compare(folder.path(), &[target], bench, more);
        let text = said(&output);
        assert!(!output.status.success() && text.contains(words), "{target} {bench}: {text}");
    }
}

#[test]
fn the_helper_for_python_measures_sqlite() {
    let test = "the_helper_for_python_measures_sqlite";
    let sqlite = Command::new("/usr/bin/python3").args(["-c", "import sqlite3"]).output();
    if !sqlite.is_ok_and(|output| output.status.success()) {
        return skipped::note(test, "no /usr/bin/python3 with sqlite3");
    }
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let program = "../../clients/python/sqlite_client.py";
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join(program).canonicalize().unwrap();
    let bench = format!("client:{}", program.display());
    let output = compare(folder.path(), &["client:normal"], &bench, &["--set", "rows=300"]);
    let steps = steps(&folder.path().join("out"), "normal");
    assert_eq!(steps.len(), 3, "{}", said(&output));
    for step in steps {
        assert_eq!(step["status"], "complete", "{step}");
        assert!(step["outcome"]["events"].as_u64() > Some(10), "{step}");
    }
}

/// Events with and without a promise, and one in three that fails.
const NODE_CLIENT: &str = r#"#!/usr/bin/env node
const { Failed, serve } = require('./rqps_client.js');
const wait = () => new Promise(setImmediate);
serve({
  steps: { now: 'point', later: 'write' },
  open({ target }) { console.log('a word'); this.count = 0; return `Node ${target}`; },
  async load(rows, loading) { await wait(); loading(1); return rows; },
  now() { this.count += 1; if (this.count % 3 === 0) throw new Failed('busy'); },
  async later() { this.now(); await wait(); },
});
"#;

#[test]
fn the_helper_for_node_counts_events_and_failures() {
    let test = "the_helper_for_node_counts_events_and_failures";
    if !Path::new("/usr/bin/node").exists() {
        return skipped::note(test, "no /usr/bin/node");
    }
    let _turn = turn();
    let folder = tempfile::tempdir().unwrap();
    let helper = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/node/rqps_client.js");
    fs::copy(helper, folder.path().join("rqps_client.js")).unwrap();
    fs::write(folder.path().join("app.js"), NODE_CLIENT).unwrap();
    let chmod = Command::new("chmod").args(["+x", "app.js"]).current_dir(folder.path()).status();
    assert!(chmod.unwrap().success());
    let output = compare(folder.path(), &["client:x"], "client:app.js", &["--set", "rows=300"]);
    let steps = steps(&folder.path().join("out"), "x");
    assert_eq!(steps.len(), 2, "{}", said(&output));
    for step in steps {
        assert_eq!(step["status"], "complete", "{step}");
        assert_eq!(step["outcome"]["facts"]["version"], "Node x");
        assert!(step["outcome"]["events"].as_u64() > Some(10), "{step}");
        assert!(step["outcome"]["errors"]["busy"].as_u64() > Some(3), "{step}");
    }
}
