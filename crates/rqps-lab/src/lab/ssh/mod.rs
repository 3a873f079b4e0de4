//! Other hosts that ssh reaches, with this rqps on them.

mod host;
mod link;
mod sockets;

pub(super) use host::{PreparedHost, check_machine};
pub(super) use link::{CONNECTION_FAILED, SshLink, bound_files};
pub(super) use sockets::SocketFolder;

use std::path::Path;

use anyhow::{Context, Result, bail};

use rqps_host::child::{self, ChildTask};
use rqps_host::command_output;

/// A path as a word of a shell.
pub(in crate::lab) fn quoted(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A text as a word of a shell.
pub(in crate::lab) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The file name of a copy of the program with this SHA-256.
pub(in crate::lab) fn program_name(digest: &str) -> String {
    format!("rqps-{}", digest.get(..12).unwrap_or(digest))
}

/// SHA-256 of a large file, by the system's program for it.
///
/// # Errors
/// It is missing or cannot read the file.
pub(in crate::lab) fn digest_of(file: &Path) -> Result<String> {
    let mut command = child::command("sha256sum", ChildTask::Work);
    command.arg(file);
    let said = command_output::run(command).context("start sha256sum")?;
    match said.output.split_whitespace().next() {
        // A name with a backslash in it would begin the line with one.
        Some(digest) if said.success() => Ok(digest.trim_start_matches('\\').to_owned()),
        _ => bail!("read {}: {}", file.display(), said.complaint()),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shell_reads_a_word_as_it_was(text in "[\\PC\\t\\n'\"\\\\$`!#;&|*? -]{0,40}") {
            // As ssh has it: the shell of the user, and `sh` in it.
            let inner = format!("printf %s {}", shell_word(&text));
            let script = format!("exec sh -c {}", shell_word(&inner));
            let said = Command::new("sh").args(["-c", &script]).output().unwrap();
            prop_assert_eq!(String::from_utf8_lossy(&said.stdout), text);
        }
    }
}
