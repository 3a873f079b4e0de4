//! The `rqps` program.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
