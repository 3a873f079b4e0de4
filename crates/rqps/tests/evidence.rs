//! The page docs/evidence.md is what its generator makes of the findings beside it.

#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

#[path = "../benches/findings/mod.rs"]
mod findings;

use std::fs;
use std::path::Path;

#[test]
fn the_page_is_that_of_the_recorded_findings() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let sheets = findings::read(&docs.join("evidence")).unwrap();
    assert!(!sheets.is_empty(), "docs/evidence has no findings");
    let made = findings::page(&sheets);
    let kept = fs::read_to_string(docs.join("evidence.md")).unwrap();
    let line = made.lines().zip(kept.lines()).position(|(made, kept)| made != kept);
    assert!(
        made == kept,
        "docs/evidence.md differs from line {} on; write it with\n    \
         cargo bench --profile dev --bench evidence -- docs/evidence > docs/evidence.md",
        line.unwrap_or_else(|| made.lines().count().min(kept.lines().count())) + 1
    );
}
