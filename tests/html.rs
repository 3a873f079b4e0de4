//! The HTML report in a real browser: what it says, that it loads nothing, that nothing is cut.
//!
//! Needs Chromium; without it these tests say SKIPPED. With `RQPS_SCREENSHOTS=DIR` pictures of the
//! page stay in DIR, to be looked at.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod browser;
mod made;
mod skipped;

use std::path::Path;

use made::Size;

#[test]
fn make() {
    if let Some(dir) = std::env::var_os("MADE_DIR") {
        made::write_set(
            &Path::new(&dir).join("big"),
            Size { targets: 20, steps: 42, blocks: 8, seconds: 60 },
        );
        made::write_set(
            &Path::new(&dir).join("mid"),
            Size { targets: 4, steps: 42, blocks: 6, seconds: 60 },
        );
        made::write_set(
            &Path::new(&dir).join("one"),
            Size { targets: 2, steps: 42, blocks: 6, seconds: 60 },
        );
        made::write_set(
            &Path::new(&dir).join("single"),
            Size { targets: 1, steps: 10, blocks: 2, seconds: 20 },
        );
    }
}
