//! The question before rqps changes the database of others, on a terminal: what it names, and what
//! follows each answer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod program;
mod terminal;

use std::fs;

use terminal::Terminal;

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
    let is_begun = folder.path().join("out").exists();
    assert_eq!(is_begun, keys.starts_with(b"y"), "{all}");
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
    assert_eq!(code, Some(4), "{after}");
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
