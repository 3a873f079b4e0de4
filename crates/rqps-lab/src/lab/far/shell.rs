//! Words of a shell.

use std::path::Path;

/// A path as a word of a shell.
pub(in crate::lab) fn quoted(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// A text as a word of a shell.
pub(in crate::lab) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
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
