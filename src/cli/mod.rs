//! Parse, call, print. The only module that prints, exits or reads the environment.

use std::process::ExitCode;

use crate::os::process::{WARDEN_COMMAND, warden_main};

/// The whole program.
pub fn main() -> ExitCode {
    // Hidden: rqps starts itself so to watch over a server.
    if std::env::args().nth(1).as_deref() == Some(WARDEN_COMMAND) {
        return warden_main();
    }
    ExitCode::SUCCESS
}
