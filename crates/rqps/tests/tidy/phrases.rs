//! Plain words: what rqps says to its users, and its documents, do without these.

use std::collections::BTreeSet;

use crate::quoted::{holds, literals, one_line};
use crate::sources::{Files, hold_nothing, made, shipped, short, tree_files};

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
const SPEAKING: &[&str] =
    &["rqps/", "rqps-analysis/", "rqps-bench", "rqps-import/", "rqps-lab/", "rqps-report/"];

/// The command line's documentation is its help.
const HELP: &str = "crates/rqps/src/cli/";

#[test]
fn users_are_spoken_to_plainly() {
    let mut files = shipped();
    files.extend(tree_files().into_iter().filter(|(path, _)| path.ends_with(".md")));
    hold_nothing(phrases(&files));
}

#[test]
fn a_riddle_is_found() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let found: Vec<String> = phrases(&made(&[(path, text)])).into_iter().collect();
        assert_eq!(found, expected, "{path}: {text}");
    };
    let text = "fn f() { say(\"the block was thrown \\\n   away\") }";
    check("crates/rqps-report/src/x.rs", text, &["report/x: thrown away"]);
    check("crates/rqps-bench-kv/src/report.rs", text, &["bench-kv/report: thrown away"]);
    check("crates/rqps-host/src/x.rs", text, &[]);
    check("crates/rqps-report/src/x.rs", "/// Is thrown away.\nfn f() {}", &[]);
    check(
        "crates/rqps/src/cli/args.rs",
        "/// Is thrown\n/// away.\nfn f() {}",
        &["rqps/cli/args: thrown away"],
    );
    check(
        "crates/rqps-lab/src/lab/x.rs",
        "#[cfg(test)] mod t { const A: &str = \"whoever\"; }",
        &[],
    );
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
            false if SPEAKING.iter().any(|it| path.starts_with(&format!("crates/{it}"))) => {
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
