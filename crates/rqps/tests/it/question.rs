//! The questions before rqps changes the database of others, and before it runs a plan with SQL of
//! others: what they name, and what follows each answer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::program;
use std::fs;

use crate::support::terminal::Terminal;

/// Asks before a step that writes; with `load`, also before tables are dropped and loaded. Returns
/// the exit code, and what was shown until the question and after it.
fn answered(load: &str, keys: &[u8]) -> (Option<i32>, String, String) {
    let folder = program::files_of_docs("", 4);
    let path = folder.path().join("shop.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("[load]\n", &format!("[load]\n{load}"), 1)).unwrap();
    let line = format!(
        "{} compare 'far=postgres://nobody@/none?host=/nowhere' --bench sql:shop.toml {}",
        env!("CARGO_BIN_EXE_rqps"),
        program::SHORT.join(" ")
    );
    let mut terminal = Terminal::start(&line, folder.path());
    let question = terminal.until("Go on? [y/N]");
    let (code, all) = terminal.end(keys);
    let after = all[question.len()..].to_owned();
    // Nobody runs that server, so nothing is begun after a yes either.
    assert!(!folder.path().join("out").exists(), "{all}");
    (code, question, after)
}

const LOAD: &str = "load = true\ndrop = [\"orders\", \"customer\"]\n";

#[test]
fn the_question_names_what_changes_and_only_yes_goes_on() {
    let (code, question, after) = answered("", b"n\n");
    let wanted =
        "rqps: checkout may change rows of the database of far, which is not a copy. Go on?";
    assert!(question.contains(wanted), "{question}");
    assert!(after.contains("others use: not confirmed"), "{after}");
    assert_eq!(code, Some(2));
    let (code, question, after) = answered(LOAD, b"\n");
    let wanted = "rqps: each block drops and loads customer, orders, and checkout may change rows, \
                  in the database of far, which is not a copy. Go on?";
    assert!(question.contains(wanted), "{question}");
    assert!(after.contains("not confirmed"), "{after}");
    assert_eq!(code, Some(2));
    let (code, _, after) = answered(LOAD, b"y\n");
    assert!(!after.contains("not confirmed"), "{after}");
    // It goes on to a server that nobody runs.
    assert!(after.contains("/nowhere"), "{after}");
    assert_eq!(code, Some(2), "{after}");
}

#[test]
fn the_end_of_the_input_and_an_interrupt_change_nothing() {
    const END_OF_INPUT: u8 = 4;
    const INTERRUPT: u8 = 3;
    let (code, _, after) = answered(LOAD, &[END_OF_INPUT]);
    assert!(after.contains("not confirmed"), "{after}");
    assert_eq!(code, Some(2));
    let (code, _, _) = answered(LOAD, &[INTERRUPT]);
    assert_eq!(code, Some(130));
}

/// A folder with a plan for the example of the docs that somebody made elsewhere.
fn strangers_plan() -> tempfile::TempDir {
    let folder = program::files_of_docs("", 4);
    let words = ["plan", "sqlite", "--bench", "sql:shop.toml", "--steps", "cities"];
    let mut command = program::rqps_in(&words, folder.path());
    let elsewhere = folder.path().join("state-of-another-host");
    let plan = command.args(&program::SHORT[..8]).env("RQPS_STATE", elsewhere).output().unwrap();
    assert!(plan.status.success(), "{}", program::said(&plan));
    fs::write(folder.path().join("plan.toml"), plan.stdout).unwrap();
    folder
}

#[test]
fn sql_of_others_runs_only_if_the_user_allows_it_once() {
    let folder = strangers_plan();
    let run = |words: &[&str]| {
        let output = program::rqps_in(words, folder.path()).output().unwrap();
        (output.status.code(), program::said(&output))
    };
    let (code, said) = run(&["run", "plan.toml", "--out", "out"]);
    assert_eq!(code, Some(2), "{said}");
    for words in [
        "failed to run plan.toml: it is new on this host. It would use:",
        "\n  SQL       5 statements of steps\n    sha256 ",
        "\n  SQL       schema.sql\n    sha256 ",
        "\n  SQL       indexes.sql\n    sha256 ",
        "\n  file      customer.csv\n    sha256 ",
        "\nhint: read it, then add --allow ",
    ] {
        assert!(said.contains(words), "{words} in\n{said}");
    }
    assert!(!folder.path().join("out").exists());
    let hash = program::hash_to_allow(&said).unwrap();
    let (code, said) = run(&["run", "plan.toml", "--out", "out", "--allow", &hash[..63]]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("Its hash is not the one that --allow names"), "{said}");
    let (code, said) = run(&["run", "plan.toml", "--out", "out", "--allow", &hash]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("schema.sql") && said.contains(&hash), "{said}");
    // It was allowed, so nothing is said again.
    let (code, said) = run(&["run", "--resume", "out"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("sha256"), "{said}");
    // Another text is new, and what it comes with is shown again: it may be another harm now.
    let path = folder.path().join("plan.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("SELECT count(*)", "SELECT sum(id)", 1)).unwrap();
    let (code, said) = run(&["run", "plan.toml", "--out", "other", "--allow", &hash]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("statements of steps") && said.contains("schema.sql"), "{said}");
}

#[test]
fn a_terminal_is_asked_about_sql_of_others() {
    let answered = |keys: &[u8]| {
        let folder = strangers_plan();
        let line = format!("{} run plan.toml --out out", env!("CARGO_BIN_EXE_rqps"));
        let mut terminal = Terminal::start(&line, folder.path());
        let question = terminal.until("Run it? [y/N]");
        assert!(question.contains("schema.sql\r\n    sha256 "), "{question}");
        let widest = question.lines().map(|line| line.trim_end().len()).max().unwrap();
        assert!(widest <= 80, "{question}");
        let (code, all) = terminal.end(keys);
        (code, folder.path().join("out").exists(), all)
    };
    let (code, is_begun, all) = answered(b"\n");
    assert!(all.contains("failed to run plan.toml: not confirmed"), "{all}");
    assert_eq!((code, is_begun), (Some(2), false), "{all}");
    let (code, is_begun, all) = answered(b"y\n");
    assert_eq!((code, is_begun), (Some(0), true), "{all}");
}
