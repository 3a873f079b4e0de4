//! Plain words: what rqps says to its users, and its documents, do without these.

use std::collections::BTreeSet;

use crate::exceptions::hold_all_but_exceptions;
use crate::quoted::{holds, literals, one_line};
use crate::sources::{Files, made, shipped, short, tree_files};

/// A riddle or a passive where a plain verb stands ready.
const PHRASES: &[&str] = &[
    "another one than",
    "broken off",
    "go on with",
    "is said",
    "is told",
    "nothing was",
    "thrown away",
    "whoever",
];

/// Sources that speak to users: their literals are texts.
const SPEAKING: &[&str] = &["analyze", "benchmarks", "campaign", "cli", "import", "lab", "report"];

/// The command line's documentation is its help.
const HELP: &str = "src/cli/";

#[test]
fn users_are_spoken_to_plainly() {
    let mut files = shipped();
    files.extend(tree_files().into_iter().filter(|(path, _)| path.ends_with(".md")));
    hold_all_but_exceptions("phrases", phrases(&files));
}

#[test]
fn a_riddle_is_found() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let found: Vec<String> = phrases(&made(&[(path, text)])).into_iter().collect();
        assert_eq!(found, expected, "{path}: {text}");
    };
    let text = "fn f() { say(\"the block was thrown \\\n   away\") }";
    check("src/report/x.rs", text, &["report/x: thrown away"]);
    check("src/benchmarks/kv/report.rs", text, &["benchmarks/kv/report: thrown away"]);
    check("src/os/x.rs", text, &[]);
    check("src/report/x.rs", "/// Is thrown away.\nfn f() {}", &[]);
    check("src/cli/args.rs", "/// Is thrown\n/// away.\nfn f() {}", &["cli/args: thrown away"]);
    check("src/lab/x.rs", "#[cfg(test)] mod t { const A: &str = \"whoever\"; }", &[]);
    check(
        "docs/x.md",
        "# A\nIt is\ntold, Whoever asks.",
        &["docs/x.md: is told", "docs/x.md: whoever"],
    );
}

fn phrases(files: &Files) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in files {
        let texts = match path.ends_with(".md") {
            true => vec![one_line(text)],
            false if SPEAKING.iter().any(|it| path.starts_with(&format!("src/{it}/"))) => {
                literals(path, text, path.starts_with(HELP))
            }
            false => continue,
        };
        let spoken = |phrase: &&&str| texts.iter().any(|text| holds(text, phrase));
        let faults = PHRASES.iter().filter(spoken);
        found.extend(faults.map(|phrase| format!("{}: {phrase}", short(path))));
    }
    found
}
