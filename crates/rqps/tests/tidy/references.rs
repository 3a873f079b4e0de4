//! Comments and documents cite only sources that a reader can open: files of this repository, RFCs,
//! DOIs, authors with a year.

use std::collections::BTreeSet;

use crate::quoted::{comments, holds, one_line};
use crate::sources::{Files, hold_nothing, made, short, tree_files};

#[test]
fn references_can_be_followed() {
    let of_this_rule = "crates/rqps/tests/tidy/references.rs";
    let mut files = tree_files();
    files
        .retain(|path, _| (path.ends_with(".rs") && path != of_this_rule) || path.ends_with(".md"));
    hold_nothing(references(&files));
}

#[test]
fn a_reference_to_nowhere_is_found() {
    let check = |path: &str, text: &str, expected: &[&str]| {
        let found: Vec<String> = references(&made(&[(path, text)])).into_iter().collect();
        assert_eq!(found, expected, "{path}: {text}");
    };
    check("x.rs", "// As the\n// specification asks.", &["x: the specification"]);
    check("x.rs", "//! Section 2.4 of the plan.", &["x: section N.N of"]);
    check("docs/x.md", "See section 12.4\nof it.", &["docs/x.md: section N.N of"]);
    check("docs/x.md", "Acceptance test 3 asks.", &["docs/x.md: Acceptance test N"]);
    check("x.rs", "fn f() {} // see specs/kv.md", &["x: specs/"]);
    check("x.rs", "// RFC 5869, section 2.2; hold it against its specification.", &[]);
    check("x.rs", "const A: &str = \"the specification\";", &[]);
    check("docs/x.md", "Sections 3 of 4. The acceptance test of 3.", &[]);
}

fn references(files: &Files) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (path, text) in files {
        let texts = match path.ends_with(".md") {
            true => vec![one_line(text)],
            false => comments(text),
        };
        for text in texts {
            let words: Vec<&str> = text.split(' ').collect();
            let follows = |first: &str, is_next: fn(&str) -> bool| {
                let at = |pair: &[&str]| pair[0].eq_ignore_ascii_case(first) && is_next(pair[1]);
                words.windows(2).any(at)
            };
            let is_number = |word: &str| word.starts_with(|letter: char| letter.is_ascii_digit());
            let is_section = words.windows(3).any(|three| {
                three[0].trim_start_matches('(').eq_ignore_ascii_case("section")
                    && three[1].contains('.')
                    && is_number(three[1])
                    && three[2] == "of"
            });
            let acceptance = holds(&text, "acceptance test") && follows("test", is_number);
            let faults = [
                ("the specification", holds(&text, "the specification")),
                ("section N.N of", is_section),
                ("Acceptance test N", acceptance),
                ("specs/", text.contains("specs/")),
            ];
            let faults = faults.into_iter().filter(|(_, is_there)| *is_there);
            found.extend(faults.map(|(what, _)| format!("{}: {what}", short(path))));
        }
    }
    found
}
