//! Files that name each other in a circle: nobody can read one of them without the others.

use std::collections::{BTreeMap, BTreeSet};

use crate::exceptions::hold_explained;
use crate::graph::{Graph, Reference, references_of_sources};
use crate::sources::{made, short};

#[test]
fn files_depend_on_each_other_one_way() {
    hold_explained("cycles", cycles(references_of_sources()));
}

#[test]
fn a_circle_of_files_is_found() {
    let check = |text: &str, expected: &[&str]| {
        let files = made(&[
            ("src/lib.rs", "pub mod a;"),
            ("src/a/mod.rs", "pub mod one; pub mod two; pub use one::One;"),
            ("src/a/one.rs", "use super::two::Two; pub struct One;"),
            ("src/a/two.rs", text),
        ]);
        let found = cycles(&Graph::of(&files).references(&files));
        let found: Vec<String> = found.into_iter().map(|(it, more)| it + &more).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("pub struct Two;", &[]);
    check(
        "use crate::a::One; pub struct Two;",
        &["a/one, by way of a/two", "a/two, by way of a/one"],
    );
    check("use super::*; pub struct Two(One);", &[]);
    check("#[cfg(test)] mod tests { use crate::a::One; } pub struct Two;", &[]);
    check(
        "use crate::a; pub struct Two(a::One);",
        &["a/one, by way of a/two", "a/two, by way of a/one"],
    );
}

/// Files that lie on a circle, and what leads them there.
fn cycles(references: &BTreeSet<Reference>) -> BTreeMap<String, String> {
    let mut edges: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
    for Reference { from, to, is_module, is_passed_on, .. } in references {
        if !is_module && !is_passed_on && from != to {
            edges.entry(from).or_default().insert(to);
        }
    }
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        edges.keys().map(|from| (*from, reachable(&edges, from))).collect();
    let mut found = BTreeMap::new();
    for (from, all) in &edges {
        let returns = |to: &&&String| reached.get(**to).is_some_and(|back| back.contains(from));
        let along: Vec<&str> = all.iter().filter(returns).map(|to| short(to)).collect();
        if !along.is_empty() {
            found.insert(short(from).to_string(), format!(", by way of {}", along.join(", ")));
        }
    }
    found
}

fn reachable<'a>(
    edges: &BTreeMap<&'a String, BTreeSet<&'a String>>,
    from: &'a String,
) -> BTreeSet<&'a String> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(next) = waiting.pop() {
        for to in edges.get(next).into_iter().flatten().copied() {
            if seen.insert(to) {
                waiting.push(to);
            }
        }
    }
    seen
}
