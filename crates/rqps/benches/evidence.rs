//! Prints docs/evidence.md from the findings in a folder.
//!
//!     cargo bench --profile dev --bench evidence -- docs/evidence > docs/evidence.md
//!
//! `cargo bench --bench true_slowdown -- --record FILE` makes such findings.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod findings;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    // cargo adds `--bench`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let folder = words.next().unwrap_or_else(|| "docs/evidence".to_owned());
    match findings::read(Path::new(&folder)) {
        Ok(sheets) => {
            print!("{}", findings::page(&sheets));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("evidence: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}
