//! A question on a terminal that only a yes answers.

use std::io::BufRead;

use anyhow::{Context, Result};

/// Asks and reads the answer. Anything but `y`, `Y` and `yes` is a no.
///
/// # Errors
///
/// Standard input cannot be read.
pub(super) fn confirm(question: &str) -> Result<bool> {
    complain!("{question} [y/N]");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("read the answer")?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
