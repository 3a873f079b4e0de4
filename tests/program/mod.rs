//! Runs rqps as a user does, with a lock and calibrations of the test's own.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The command, not started.
pub(crate) fn rqps<W: AsRef<OsStr>>(words: &[W], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
    command.args(words).stdin(Stdio::null());
    let (lock, state) = (folder.join("lock"), folder.join("state"));
    command.env("RQPS_HOST_LOCK", lock).env("RQPS_STATE", state);
    command
}

/// Runs it to its end.
#[allow(dead_code, reason = "tests that set more of its environment start it themselves")]
pub(crate) fn run<W: AsRef<OsStr>>(words: &[W], folder: &Path) -> Output {
    rqps(words, folder).output().expect("start rqps")
}

/// What a program said.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
