//! Habits of command lines: completion as bash asks for it, topics of the help, manual pages, and
//! what `--quiet`, `--progress` and `--color` change.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;

use std::process::Command;

use program::{run, text};
use serde_json::Value;

const RESULTS: &str = "tests/data/two-targets";

#[test]
fn bash_completes_words_that_it_splits() {
    let folder = tempfile::tempdir().unwrap();
    // What bash does on Tab, for a line that ends at the cursor.
    let lines = [
        "rqps comp",
        "rqps compare postgres@17.2",
        "rqps compare new=mysql@8.0.3",
        "rqps compare a b --set turn_",
        "rqps help verd",
    ];
    let script = format!(
        "source <(rqps completions bash)\n\
         for COMP_LINE in {}; do COMP_POINT=${{#COMP_LINE}}; _rqps 2>/dev/null\n\
         echo \"${{COMPREPLY[*]}}\"; done",
        lines.map(|line| format!("'{line}'")).join(" ")
    );
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_rqps")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let said = Command::new("bash").args(["-c", &script]).env("PATH", path).output().unwrap();
    let answers = text(&said.stdout);
    let answers: Vec<&str> = answers.lines().collect();
    // Bash has `postgres@` already: only what follows is put in.
    assert_eq!(answers[0], "compare completions", "{}", text(&said.stderr));
    assert_eq!(answers[1..], ["17.2.0", "8.0.33", "turn_ms=", "verdicts"]);
    for shell in ["zsh", "fish"] {
        let said = run(&["completions", shell], folder.path());
        assert!(text(&said.stdout).contains("RQPS_COMPLETE"), "{shell}");
    }
}

#[test]
fn help_has_topics_and_commands() {
    let folder = tempfile::tempdir().unwrap();
    let said = run(&["help"], folder.path());
    assert!(text(&said.stdout).contains("verdicts"));
    assert!(text(&run(&["help", "compare"], folder.path()).stdout).contains("--interleave"));
    let wrong = run(&["help", "weather"], folder.path());
    assert_eq!(wrong.status.code(), Some(2));
    let complaint = text(&wrong.stderr);
    assert!(complaint.contains("explain `weather`: no such topic or command"), "{complaint}");
    assert!(complaint.contains("topics are targets, "), "{complaint}");
}

#[test]
fn each_command_has_a_manual_page() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man");
    let said = run(&["man", pages.to_str().unwrap()], folder.path());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let page = std::fs::read_to_string(pages.join("rqps-gate.1")).unwrap();
    assert!(page.contains("thresholds"));
    assert!(!pages.join("rqps-driver.1").exists(), "a page of a hidden command");
}

#[test]
fn colours_are_for_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let plain = run(&["report", RESULTS], folder.path()).stdout;
    assert!(!text(&plain).contains('\u{1b}'));
    let painted = text(&run(&["report", RESULTS, "--color", "always"], folder.path()).stdout);
    assert!(painted.contains("\u{1b}[31mSLOWER\u{1b}[0m"));
    let page = run(&["report", RESULTS, "--color", "always", "--format", "csv"], folder.path());
    assert!(!text(&page.stdout).contains('\u{1b}'));
}

#[test]
fn progress_is_json_or_nothing_if_asked() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let (out, work) = (out.to_str().unwrap(), folder.path().to_str().unwrap());
    let mut words = vec!["compare", "sqlite", "sqlite:small-cache", "--steps", "point-query"];
    words.extend(["--blocks", "1", "--set", "rows=1000", "--set", "read_seconds=0.1"]);
    words.extend(["--set", "warmup_seconds=0", "--canaries", "off", "--work", work]);
    words.extend(["--out", out, "--progress", "json"]);
    let said = run(&words, folder.path());
    assert!(said.status.success(), "{}", text(&said.stderr));
    let mut kinds = std::collections::BTreeSet::new();
    for line in text(&said.stderr).lines() {
        let event: Value = serde_json::from_str(line).expect(line);
        kinds.insert(event["event"].as_str().expect(line).to_owned());
    }
    let expected = ["doing", "loaded", "measured", "note", "progress"];
    assert_eq!(kinds.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    let quiet = run(&["--quiet", "run", "--resume", out], folder.path());
    assert_eq!(text(&quiet.stderr), "");
    assert!(text(&quiet.stdout).contains("relative to sqlite"));
    let refused = run(&["-q", "report", "/no/such/folder"], folder.path());
    assert!(!refused.stderr.is_empty(), "an error is never silent");
}
