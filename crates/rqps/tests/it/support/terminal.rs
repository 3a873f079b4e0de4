//! A terminal of a test's own, with the program `script`: what it shows, and keys that are typed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

/// A command that runs on a terminal.
pub(crate) struct Terminal {
    script: Child,
    shown: ChildStdout,
    text: Vec<u8>,
}

impl Terminal {
    /// Starts a line of the shell in `folder`. HOME is there, and no variable has a password.
    pub(crate) fn start(line: &str, folder: &Path) -> Terminal {
        // Beneath nohup and in the background, Ctrl-C is ignored: a terminal's shell minds it.
        let mut script = Command::new("env")
            .args([
                "--default-signal=INT", "script", "--quiet", "--return", "--echo", "never",
                "--command", line, "/dev/null",
            ])
            .current_dir(folder)
            .env("HOME", folder)
            .env("RQPS_HOST_LOCK", folder.join("lock"))
            .env("RQPS_STATE", folder.join("state"))
            .env_remove("PGPASSWORD")
            .env_remove("PGPASSFILE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let shown = script.stdout.take().unwrap();
        Terminal { script, shown, text: Vec::new() }
    }

    /// What it has shown once that ends so, or the command.
    pub(crate) fn until(&mut self, end: &str) -> String {
        let mut byte = [0];
        while !self.text.ends_with(end.as_bytes()) && self.shown.read(&mut byte).unwrap() == 1 {
            self.text.push(byte[0]);
        }
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Types keys and waits for the end: its exit code, and all that it has shown.
    pub(crate) fn end(mut self, keys: &[u8]) -> (Option<i32>, String) {
        let mut input = self.script.stdin.take().unwrap();
        input.write_all(keys).unwrap();
        input.flush().unwrap();
        self.shown.read_to_end(&mut self.text).unwrap();
        drop(input);
        let code = self.script.wait().unwrap().code();
        (code, String::from_utf8_lossy(&self.text).into_owned())
    }
}
