//! Parse, call, print. The only module that prints, exits or reads the environment.

/// Prints a line on standard error. Unlike `eprintln!` it does not panic if the reader is gone
/// (`rqps compare … 2>&1 | head`), because hours of measuring continue.
macro_rules! tell {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("{}\n", format_args!($($words)*)),
        );
    }};
}

/// Prints a line on standard output. A reader that stops early, such as `head`, is no error.
macro_rules! say {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stdout(),
            format_args!("{}\n", format_args!($($words)*)),
        );
    }};
}

mod args;
mod builds;
mod doctor;
mod export;
mod folders;
mod gate;
mod import;
mod measure;
mod progress;
mod report;
mod vector;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::cli::args::{Arguments, Command};
use crate::lab::fault;

/// Documented exit codes, which scripts use.
pub mod exit {
    /// Success.
    pub const FINE: u8 = 0;
    /// `rqps gate`: a regression.
    pub const REGRESSION: u8 = 1;
    /// The command line or the plan file is wrong, or a general prerequisite is missing.
    pub const USAGE: u8 = 2;
    /// `rqps gate`: too many unclear verdicts, or the numbers are not comparable.
    pub const NO_VERDICT: u8 = 3;
    /// A run failed; the other runs are kept.
    pub const RUN_FAILED: u8 = 4;
    /// Stopped by the user.
    pub const INTERRUPTED: u8 = 130;
}

/// Runs the program.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print_usage(&error),
    };
    match run(arguments) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::from(exit::FINE),
        Err(error) => {
            tell!("rqps: failed to {}", fault::text(&error).trim_end());
            ExitCode::from(exit::USAGE)
        }
    }
}

/// Prints help and version on stdout with exit code 0, and everything else as an error.
fn print_usage(error: &clap::Error) -> ExitCode {
    // If the terminal is gone, there is no way to report it.
    error.print().ok();
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::FINE })
}

/// Returns true if the reader stopped early, such as `head`, which is no error.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &std::io::Error| cause.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().filter_map(|cause| cause.downcast_ref::<std::io::Error>()).any(broken)
}

fn run(arguments: Arguments) -> Result<ExitCode> {
    let code = match arguments.command {
        Command::Quickstart(quickstart) => measure::quickstart(&quickstart),
        Command::Compare(compare) => measure::compare(&compare),
        Command::Plan(plan) => measure::print_plan(&plan),
        Command::Run(run) => measure::run(&run),
        Command::Report(report) => report::print(&report),
        Command::Export(export) => export::export(&export),
        Command::Gate(gate) => gate::judge(&gate),
        Command::Doctor(doctor) => doctor::examine(&doctor),
        Command::Import(import) => import::import(&import),
        Command::Vector(args::Vector::VerifyData(words)) => vector::verify(&words),
        Command::Builds(builds) => builds::list(&builds),
        Command::Get(get) => builds::get(&get),
        Command::Driver(words) => return Ok(hidden::driver(words.memory_group.as_deref())),
        Command::SqliteProcess => return Ok(hidden::sqlite_process()),
        Command::RocksdbProcess => return Ok(hidden::rocksdb_process()),
        Command::Warden => return Ok(hidden::warden()),
        Command::Spinner => hidden::spinner().map(|()| exit::FINE),
    }?;
    Ok(ExitCode::from(code))
}

/// The path of this program, which also runs drivers and wardens.
fn program() -> Result<PathBuf> {
    std::env::current_exe().context("find the rqps program itself")
}

/// Processes that the lab starts. Not for users.
mod hidden {
    use std::io::{self, BufReader};
    use std::path::Path;
    use std::process::ExitCode;

    use anyhow::{Context, Result};

    use crate::dbms;
    use crate::driver::{self, Ending};
    use crate::os::{spinner, warden};

    /// Does one job and ends the process, because client threads may still run.
    pub(super) fn driver(memory_group: Option<&Path>) -> ExitCode {
        match driver::main(BufReader::new(io::stdin()), io::stdout().lock(), memory_group) {
            Ending::Done => ExitCode::SUCCESS,
            Ending::Failed | Ending::Abandoned => ExitCode::FAILURE,
        }
    }

    pub(super) fn warden() -> ExitCode {
        warden::main()
    }

    pub(super) fn sqlite_process() -> ExitCode {
        dbms::sqlite_process(io::stdin().lock(), io::stdout())
    }

    pub(super) fn rocksdb_process() -> ExitCode {
        dbms::rocksdb_process(io::stdin().lock(), io::stdout())
    }

    pub(super) fn spinner() -> Result<()> {
        spinner::serve(io::stdin(), &mut io::stdout()).context("keep CPUs awake")
    }
}
