//! Modules that may use unsafe code, print, exit, or read the environment.

use crate::sources::{flat, hold, is_test_line, rust_files, sources, test_lines, tokens};

/// The file that starts other programs, with the variables that they may know.
const STARTER: &str = "crates/rqps-host/src/child.rs";

/// The warden starts a server with an environment and a user that it was told.
const STARTS_SERVERS: &str = "crates/rqps-host/src/warden.rs";

/// Files besides crates/rqps/src/cli that may open a standard stream: two processes of rqps talk over it.
const SPEAKERS: &[&str] =
    &["crates/rqps-host/src/confinement.rs", "crates/rqps-host/src/warden.rs"];

/// The kernels that compare vectors.
const SIMD: &str = "crates/rqps-bench-vector/src/data/simd.rs";

#[test]
fn only_the_c_interfaces_are_unsafe() {
    hold(rust_files(), unsafe_code);
}

#[test]
fn unsafe_elsewhere_is_found() {
    let text = "fn f() { g!(unsafe { h() }) }";
    assert_eq!(unsafe_code("crates/rqps-lab/src/lab/mod.rs", text).len(), 1);
    assert_eq!(unsafe_code("crates/rqps-host/src/tree.rs", text), [""; 0]);
    assert_eq!(unsafe_code("src/osmosis/tree.rs", text).len(), 1);
    let words = "//! unsafe\n#![deny(unsafe_code)] const S: &str = \"unsafe\";";
    assert_eq!(unsafe_code("crates/rqps-lab/src/lab/mod.rs", words), [""; 0]);
}

fn unsafe_code(path: &str, text: &str) -> Vec<String> {
    let places = ["crates/rqps-host/src/", "crates/rqps-embed/src/", SIMD];
    if places.iter().any(|place| path.starts_with(place)) || !text.contains("unsafe") {
        return Vec::new();
    }
    let words = flat(tokens(path, text));
    let found = words.iter().filter(|(word, _)| word == "unsafe");
    found
        .map(|(_, line)| {
            format!("{path}:{line}: unsafe is for crates/rqps-embed/src and crates/rqps-host/src")
        })
        .collect()
}

/// Files that remove a folder by its path, because the same function has made it, new. Everything
/// else goes by a proof that rqps made it: `os::mark`, `os::beneath`.
const REMOVERS: &[&str] =
    &["crates/rqps-import/src/folder.rs", "crates/rqps-results/src/bundle/unpack.rs"];

#[test]
fn folders_are_removed_by_a_proof_only() {
    hold(sources(), removals);
}

#[test]
fn a_removal_without_proof_is_found() {
    let text = "fn f() { fs::remove_dir_all(path); }";
    assert_eq!(removals("crates/rqps-lab/src/lab/mod.rs", text).len(), 1);
    assert_eq!(removals(REMOVERS[0], text), [""; 0]);
    let test = "#[cfg(test)] mod tests { fn f() { fs::remove_dir_all(path); } }";
    assert_eq!(removals("crates/rqps-lab/src/lab/mod.rs", test), [""; 0]);
}

fn removals(path: &str, text: &str) -> Vec<String> {
    if REMOVERS.contains(&path) || !text.contains("remove_dir_all") {
        return Vec::new();
    }
    let tests = test_lines(path, text);
    let words = flat(tokens(path, text));
    let found = words
        .iter()
        .filter(|(word, line)| word == "remove_dir_all" && !is_test_line(&tests, *line));
    let why = "removes a folder without a proof that rqps made it: see os::mark, os::beneath";
    found.map(|(_, line)| format!("{path}:{line}: {why}")).collect()
}

#[test]
fn only_the_command_line_prints_exits_and_reads_the_environment() {
    hold(sources(), shell_only);
}

#[test]
fn printing_elsewhere_is_found() {
    let check = |text: &str, count: usize| {
        assert_eq!(shell_only("crates/rqps-lab/src/lab/mod.rs", text).len(), count, "{text}");
        assert_eq!(shell_only("crates/rqps/src/cli/mod.rs", text), [""; 0]);
    };
    check("fn f() { println!(\"x\"); }", 1);
    check("fn f() { vec![eprint!(\"x\"), dbg!(1)]; }", 2);
    check("fn f() { std::process::exit(1) }", 1);
    check("use std::process; fn f() { process::exit(1) }", 1);
    check("fn f() { std::env::var(\"HOME\"); }", 1);
    check("use std::env;", 1);
    check("use std::{env, fs};", 1);
    check("use std::env::var_os;", 1);
    check("fn f() { std::io::stdout(); }", 1);
    check("#[cfg(test)] mod tests { fn f() { println!(\"x\"); } }", 0);
    check("const V: &str = env!(\"CARGO_PKG_VERSION\"); // println!", 0);
    check("fn f() { writeln!(out, \"std::env\"); self.exit(); }", 0);
}

fn shell_only(path: &str, text: &str) -> Vec<String> {
    let words = ["print", "dbg", "stdout", "stderr", "exit", "env"];
    if path.starts_with("crates/rqps/src/cli/")
        || path == STARTER
        || !words.iter().any(|word| text.contains(word))
    {
        return Vec::new();
    }
    let tests = test_lines(path, text);
    let words = flat(tokens(path, text));
    let word = |at: usize| words.get(at).map_or("", |(word, _)| word.as_str());
    let mut found = Vec::new();
    for (at, (first, line)) in words.iter().enumerate() {
        let what = match (first.as_str(), word(at + 1)) {
            ("println" | "print" | "eprintln" | "eprint" | "dbg", "!") => "prints",
            ("stdout" | "stderr", "(") if !SPEAKERS.contains(&path) => "opens a standard stream",
            ("process", "::") if word(at + 2) == "exit" => "exits",
            ("std", "::") if word(at + 2) == "env" => "reads the environment",
            ("std", "::") if word(at + 2) == "{" && braces_hold(&words[at + 2..], "env") => {
                "reads the environment"
            }
            _ => continue,
        };
        // `Command::stdout(…)` sets up somebody else's stream.
        let method = at > 0 && word(at - 1) == ".";
        if !method && !is_test_line(&tests, *line) {
            found.push(format!("{path}:{line}: {what}, which only crates/rqps/src/cli may"));
        }
    }
    found
}

#[test]
fn other_programs_are_started_in_one_place() {
    hold(sources(), started_elsewhere);
}

#[test]
fn a_program_that_gets_the_whole_environment_is_found() {
    let check = |text: &str, count: usize| {
        assert_eq!(started_elsewhere("crates/rqps/src/cli/mod.rs", text).len(), count, "{text}");
        assert_eq!(started_elsewhere(STARTER, text), [""; 0]);
    };
    check("fn f() { Command::new(\"git\"); }", 1);
    check("fn f() { std::process::Command::new(\"git\"); }", 1);
    check("fn f() { child::command(\"git\", ChildTask::Work); }", 0);
    check("#[cfg(test)] mod tests { fn f() { Command::new(\"git\"); } }", 0);
}

fn started_elsewhere(path: &str, text: &str) -> Vec<String> {
    let may = [STARTER, STARTS_SERVERS].contains(&path) || path.ends_with("/tests.rs");
    if may || !text.contains("Command::new") {
        return Vec::new();
    }
    let tests = test_lines(path, text);
    let words = flat(tokens(path, text));
    let is_start = |at: usize| {
        let word = |at: usize| words.get(at).map_or("", |(word, _)| word.as_str());
        [word(at), word(at + 1), word(at + 2)] == ["Command", "::", "new"]
    };
    let starts = (0..words.len()).filter(|at| is_start(*at)).map(|at| words[at].1);
    let starts = starts.filter(|line| !is_test_line(&tests, *line));
    starts.map(|line| format!("{path}:{line}: {STARTER} starts other programs")).collect()
}

/// True if `name` is an entry of the braces at the front of `words`.
fn braces_hold(words: &[(String, usize)], name: &str) -> bool {
    let mut depth = 0;
    for (at, (word, _)) in words.iter().enumerate() {
        match word.as_str() {
            "{" => depth += 1,
            "}" if depth == 1 => return false,
            "}" => depth -= 1,
            _ if depth == 1 && word == name && matches!(words[at - 1].0.as_str(), "{" | ",") => {
                return true;
            }
            _ => {}
        }
    }
    false
}
