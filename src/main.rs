//! The `rqps` program: everything it does is in the library, so that tests and benches reach it
//! too.

use std::process::ExitCode;

fn main() -> ExitCode {
    rqps::cli::main()
}
