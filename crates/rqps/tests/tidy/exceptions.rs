//! Today's violations of rules. The list only shrinks: a line that is no longer needed fails the
//! test of its rule.
//!
//! One line each: the rule, a colon, what the rule found. Sorted, as `sort` does by bytes.

use std::collections::{BTreeMap, BTreeSet};

const EXCEPTIONS: &str = "";

/// Holds what a rule found against its exceptions.
pub(crate) fn hold_all_but_exceptions(rule: &str, found: impl IntoIterator<Item = String>) {
    hold_explained(rule, found.into_iter().map(|found| (found, String::new())).collect());
}

/// The same for findings with more to say: finding → what helps to mend it.
pub(crate) fn hold_explained(rule: &str, found: BTreeMap<String, String>) {
    let faults = faults(EXCEPTIONS, rule, &found);
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn faults(exceptions: &str, rule: &str, found: &BTreeMap<String, String>) -> Vec<String> {
    let of_rule = |line: &str| line.strip_prefix(rule)?.strip_prefix(": ").map(str::to_string);
    let excused: BTreeSet<String> = exceptions.lines().filter_map(of_rule).collect();
    let new = found.iter().filter(|(found, _)| !excused.contains(*found));
    let new = new.map(|(found, more)| format!("{rule}: {found}{more}"));
    let stale = excused.iter().filter(|excused| !found.contains_key(*excused)).map(|excused| {
        format!("{rule}: {excused}: no longer so: remove it from tests/tidy/exceptions.rs")
    });
    new.chain(stale).collect()
}

#[test]
fn exceptions_are_sorted_and_of_rules_that_are_there() {
    let rules: BTreeSet<&str> = crate::RULES.iter().copied().collect();
    for line in EXCEPTIONS.lines() {
        let rule = line.split(": ").next().unwrap_or("");
        assert!(rules.contains(rule), "no rule has the name {rule}: {line}");
    }
    for (line, next) in EXCEPTIONS.lines().zip(EXCEPTIONS.lines().skip(1)) {
        assert!(line < next, "not sorted, or twice: {line}, {next}");
    }
}

#[test]
fn an_exception_that_is_not_needed_is_found() {
    let found = |names: &[&str]| -> BTreeMap<String, String> {
        names.iter().map(|name| (name.to_string(), String::new())).collect()
    };
    let list = "a: x\na: y\nab: z";
    assert_eq!(faults(list, "a", &found(&["x", "y"])), [""; 0]);
    assert_eq!(faults(list, "a", &found(&["x", "y", "z"])), ["a: z"]);
    let stale = faults(list, "a", &found(&["x"]));
    assert_eq!(stale, ["a: y: no longer so: remove it from tests/tidy/exceptions.rs"]);
}
