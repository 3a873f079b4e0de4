//! Parse, call, print. The only module that prints, exits or reads the environment.

use std::io;
use std::process::ExitCode;

use crate::driver::{self, Ending};

/// The whole program.
pub fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|word| word == "driver") {
        return driver_process();
    }
    ExitCode::SUCCESS
}

/// `rqps driver`, hidden: the measuring process, which speaks with the lab over its standard input
/// and output.
fn driver_process() -> ExitCode {
    match driver::main(io::BufReader::new(io::stdin()), io::stdout()) {
        Ending::Done => ExitCode::SUCCESS,
        Ending::Failed | Ending::Abandoned => ExitCode::FAILURE,
    }
}
