//! Parse, call, print. The only module that prints, exits or reads the environment.

use std::io;
use std::process::ExitCode;

use crate::dbms::{SQLITE_COMMAND, sqlite_process};
use crate::driver::{self, Ending};
use crate::os::process::{WARDEN_COMMAND, warden_main};

/// The whole program.
pub fn main() -> ExitCode {
    // Hidden: rqps starts itself for what must not happen in its own process.
    match std::env::args_os().nth(1).as_deref().and_then(|word| word.to_str()) {
        Some("driver") => driver_process(),
        Some(WARDEN_COMMAND) => warden_main(),
        Some(SQLITE_COMMAND) => sqlite_process(io::stdin().lock(), io::stdout()),
        _ => ExitCode::SUCCESS,
    }
}

/// `rqps driver`, hidden: the measuring process, which speaks with the lab over its standard input
/// and output.
fn driver_process() -> ExitCode {
    match driver::main(io::BufReader::new(io::stdin()), io::stdout()) {
        Ending::Done => ExitCode::SUCCESS,
        Ending::Failed | Ending::Abandoned => ExitCode::FAILURE,
    }
}
