//! Writes what the documentation shows of stored runs: docs/evidence.md from docs/evidence, and the
//! parts of other pages that name their source.
//!
//!     cargo bench --profile dev --bench evidence
//!
//! `cargo bench --bench true_slowdown -- --record FILE` makes findings of docs/evidence, the bench
//! time_left docs/time_left.csv, and scripts/outputs the files of docs/outputs.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod documents;
mod findings;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

fn main() -> ExitCode {
    if !std::env::args().any(|word| word == "--bench") {
        // `cargo test` only builds and starts it.
        return ExitCode::SUCCESS;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    match write(&root) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("evidence: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn write(root: &Path) -> Result<()> {
    let sheets = findings::read(&root.join("docs/evidence"))?;
    fs::write(root.join("docs/evidence.md"), findings::page(&sheets)).context("write a page")?;
    for document in documents::read(root)? {
        if document.made != document.kept {
            println!("{}", document.path.display());
            fs::write(&document.path, document.made).context("write a page")?;
        }
    }
    Ok(())
}
