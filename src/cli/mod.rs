//! Parse, call, print. The only module that prints, exits or reads the environment.

/// A line on standard error. Unlike `eprintln!` it does not panic where nobody reads any more
/// (`rqps compare … 2>&1 | head`): hours of measuring go on.
macro_rules! tell {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(
            &mut std::io::stderr(),
            format_args!("{}\n", format_args!($($words)*)),
        );
    }};
}

/// A line on standard output. A reader that has seen enough, such as `head`, is no error.
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

/// Documented exit codes; scripts depend on them.
pub mod exit {
    /// All went well.
    pub const FINE: u8 = 0;
    /// `rqps gate`: something is slower beyond doubt.
    pub const REGRESSION: u8 = 1;
    /// The words of the command line or the plan file were wrong, or something that everything
    /// needs
    /// was missing.
    pub const USAGE: u8 = 2;
    /// `rqps gate`: too much is unclear, or the numbers are not comparable.
    pub const NO_VERDICT: u8 = 3;
    /// A run failed; the others are there.
    pub const RUN_FAILED: u8 = 4;
    /// Stopped by the user.
    pub const INTERRUPTED: u8 = 130;
}

/// The whole program.
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

/// Help and version go to stdout and are no error; the rest is.
fn print_usage(error: &clap::Error) -> ExitCode {
    // Nothing can be said if the terminal is gone.
    error.print().ok();
    ExitCode::from(if error.use_stderr() { exit::USAGE } else { exit::FINE })
}

/// A reader that has seen enough, such as `head`, is no error.
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

/// This binary: drivers and wardens are started from it.
fn program() -> Result<PathBuf> {
    std::env::current_exe().context("find the rqps program itself")
}

/// What the lab starts as processes of their own. Not for users.
mod hidden {
    use std::io::{self, BufReader};
    use std::path::Path;
    use std::process::ExitCode;

    use anyhow::{Context, Result};

    use crate::dbms;
    use crate::driver::{self, Ending};
    use crate::os::{spinner, warden};

    /// One job, then the end of the process: threads of clients may still be running.
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
