//! Parse, call, print. The only module that prints, exits or reads the environment.

use std::process::ExitCode;

/// The whole program.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
