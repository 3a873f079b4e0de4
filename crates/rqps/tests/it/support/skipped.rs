//! The message of a test that cannot run here.
//!
//! The harness hides what passing tests print, so the line goes to the file named by
//! `RQPS_SKIP_LOG` too, where `.ci/run` counts it.

use std::fs::OpenOptions;
use std::io::Write;

/// Notes that `test` was left out and why; the test returns after it.
#[allow(clippy::print_stderr, reason = "whoever runs one test by hand is to see it")]
pub(crate) fn note(test: &str, why: &str) {
    let line = format!("SKIPPED: {test}: {}\n", why.replace('\n', " "));
    eprint!("{line}");
    if let Some(path) = std::env::var_os("RQPS_SKIP_LOG") {
        let log = OpenOptions::new().create(true).append(true).open(&path);
        // One write, so that lines of tests that run at the same time do not mix.
        let written = log.and_then(|mut log| log.write_all(line.as_bytes()));
        written.unwrap_or_else(|error| panic!("write {path:?}: {error}"));
    }
}
