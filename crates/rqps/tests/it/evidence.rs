//! What the documentation shows of stored runs is what its generator makes of them, and numbers in
//! sentences are those of the tables beside them.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

#[path = "../../benches/documents/mod.rs"]
mod documents;
#[path = "../../benches/findings/mod.rs"]
mod findings;

use std::fs;
use std::path::{Path, PathBuf};

use rqps_model::units;

#[test]
fn the_page_is_that_of_the_recorded_findings() {
    let docs = root().join("docs");
    let sheets = findings::read(&docs.join("evidence")).unwrap();
    assert!(!sheets.is_empty(), "docs/evidence has no findings");
    let made = findings::page(&sheets);
    let kept = fs::read_to_string(docs.join("evidence.md")).unwrap();
    check("docs/evidence.md", &made, &kept);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn check(name: &str, made: &str, kept: &str) {
    let line = made.lines().zip(kept.lines()).position(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "{name} differs from line {} on; write it with\n    \
         cargo bench --profile dev --bench evidence",
        line.unwrap_or_else(|| made.lines().count().min(kept.lines().count())) + 1
    );
}

#[test]
fn parts_with_a_source_are_those_of_the_stored_runs() {
    let documents = documents::read(&root()).unwrap();
    assert!(documents.len() >= 2, "no page names a source");
    for document in documents {
        check(&document.path.display().to_string(), &document.made, &document.kept);
    }
}

/// README's sentence about the counted instructions is the difference of its table's columns.
#[test]
fn a_difference_in_a_sentence_is_that_of_the_table() {
    let page = fs::read_to_string(root().join("README.md")).unwrap();
    let row = page.lines().find(|line| line.contains("MORE     points-covered-si")).unwrap();
    let counts: Vec<u64> = row.split_whitespace().flat_map(str::parse).collect();
    let more = units::count(counts[1] - counts[0]);
    assert!(page.contains(&format!("8.0 executes {more} instructions more")), "{row}: {more}");
}
