//! The program: parses the command line, calls, prints. The only module that prints, exits or reads
//! the environment.

#[macro_use]
mod terminal;

mod args;
mod builds;
mod bundle;
mod campaigns;
mod check;
mod convert;
mod doctor;
mod dump;
mod effect;
mod folders;
mod forecast;
mod gate;
mod help;
mod hosts;
mod measure;
mod own_workload;
mod parts;
mod plans;
mod questions;
mod record;
mod rehearse;
mod report;
mod site;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use crate::cli::args::{Arguments, Command, ProgressForm};
use clap::error::{ContextKind, ContextValue};
use rqps_host::{child, process};
use rqps_lab::benchmarks::{client, lua};
use rqps_lab::lab::error_text;
use rqps_lab::plan::words;
use rqps_wire::WireError;

/// Documented exit codes, which scripts use.
pub(crate) mod exit {
    /// Success.
    pub(crate) const FINE: u8 = 0;
    /// `gate`, `check`, `confirm`: a regression. `plans`, `rehearse`: a statement changes or breaks.
    pub(crate) const REGRESSION: u8 = 1;
    /// The command line or the plan file is wrong, or a general prerequisite is missing.
    pub(crate) const USAGE: u8 = 2;
    /// The commands of [`REGRESSION`]: no verdict, or something cannot be told.
    pub(crate) const NO_VERDICT: u8 = 3;
    /// A run failed; the other runs are kept.
    pub(crate) const RUN_FAILED: u8 = 4;
    /// Stopped by the user.
    pub(crate) const INTERRUPTED: u8 = 130;
}

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    child::keep_descriptors();
    if let Some(code) = without_command_line() {
        return code;
    }
    match help::answered(Arguments::command) {
        Ok(true) => return ExitCode::from(exit::FINE),
        Ok(false) => {}
        Err(error) => return print_usage(&error),
    }
    let arguments = match Arguments::try_parse_from(with_command(std::env::args_os().collect())) {
        Ok(arguments) => arguments,
        Err(error) => return print_usage(&without_inner(error)),
    };
    let all = &arguments.all;
    terminal::choose(all.progress.or(all.quiet.then_some(ProgressForm::None)));
    terminal::choose_color(all.color);
    match folders::outlive_file_limits().and_then(|()| run(arguments)) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::from(exit::FINE),
        Err(error) => {
            let text = error_text(&error);
            let server = error.chain().find_map(|cause| cause.downcast_ref::<WireError>());
            let way_out = server.and_then(WireError::way_out).filter(|_| !text.contains("\nhint:"));
            let hint = way_out.map_or_else(String::new, |way| format!("\nhint: {way}"));
            error!("rqps: failed to {}{hint}", text.trim_end());
            ExitCode::from(exit::USAGE)
        }
    }
}

/// What rqps starts for each step and server, if this is one: to know all words of the command line
/// would take most of its start, ten times as long under valgrind.
fn without_command_line() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let (Some(word), None) = (words.next(), words.next()) else { return None };
    let inner: fn() -> ExitCode = match word.to_str()? {
        "driver" => || hosts::driver(None),
        process::WARDEN_COMMAND => hosts::warden,
        rqps_dbms::SQLITE_COMMAND => hosts::sqlite_process,
        _ => return None,
    };
    // Its error is told by the usual way.
    folders::outlive_file_limits().is_ok().then(inner)
}

/// The words of the command line. Targets without a command are compared.
fn with_command(mut line: Vec<OsString>) -> Vec<OsString> {
    let first = line.get(1).and_then(|word| word.to_str()).map(str::to_owned);
    let is_target = |word: &String| {
        let is_command = || Arguments::command().find_subcommand(word).is_some();
        !word.starts_with('-')
            && words::targets(std::slice::from_ref(word)).is_ok()
            && !is_command()
    };
    if first.as_ref().is_some_and(is_target) {
        line.insert(1, "compare".into());
    }
    line
}

/// The error without advice to use a command that only rqps itself starts.
fn without_inner(mut error: clap::Error) -> clap::Error {
    let kind = ContextKind::SuggestedSubcommand;
    if let Some(ContextValue::Strings(mut names)) = error.remove(kind) {
        let all = Arguments::command();
        names.retain(|name| all.find_subcommand(name).is_some_and(|it| !it.is_hide_set()));
        if !names.is_empty() {
            error.insert(kind, ContextValue::Strings(names));
        }
    }
    error
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
        Command::Count(count) => measure::count(&count),
        Command::Check(words) => check::check(&words),
        Command::Plan(plan) => measure::print_plan(&plan),
        Command::Init(words) => own_workload::init(&words),
        Command::Plans(words) => plans::plans(&words),
        Command::Rehearse(words) => rehearse::rehearse(&words),
        Command::Record(words) => record::record(&words),
        Command::Run(run) => measure::run(run),
        Command::Bundle(words) => bundle::write(&words),
        Command::Report(report) => report::print(&report),
        Command::Plot(plot) => report::draw(&plot),
        Command::Explain(words) => report::explain(&words),
        Command::Bisect(words) => campaigns::search(&words),
        Command::Gap(words) => campaigns::close_gap_between(&words),
        Command::FindRate(words) => campaigns::find_rate(&words),
        Command::History(words) => site::print(&words),
        Command::Site(words) => site::write(&words),
        Command::Export(export) => convert::export(&export),
        Command::Gate(gate) => gate::judge(&gate),
        Command::Confirm(words) => gate::confirm(words),
        Command::Doctor(doctor) => doctor::examine(&doctor),
        Command::Import(import) => convert::import(&import),
        Command::Vector(args::Vector::VerifyData(words)) => own_workload::verify(&words),
        Command::Builds(builds) => builds::list(&builds),
        Command::Get(get) => builds::get(&get),
        Command::Help(words) => help::explain(Arguments::command(), words.topic.as_deref()),
        Command::Completions(words) => help::script(words.shell),
        Command::Man(words) => help::write_manual(Arguments::command(), &words.folder),
        Command::Driver(words) => return Ok(hosts::driver(words.memory_group.as_deref())),
        Command::SqliteProcess => return Ok(hosts::sqlite_process()),
        Command::RocksdbProcess => return Ok(hosts::rocksdb_process()),
        Command::Warden => return Ok(hosts::warden()),
        Command::ClientHost(words) => hosts::client_host(&words).map(|()| exit::FINE),
        Command::Block(words) => hosts::measure(&words),
        Command::CheckNode(words) => hosts::check_node(&words),
        Command::ClearBlock(words) => hosts::clear(&words),
        Command::LookAtClient { program } => {
            return Ok(hosts::look(client::driver::declared(&program)));
        }
        Command::LookAtLua { script, with_help, work } => {
            let told = match work {
                Some(work) => lua::driver::first_statements(&work),
                None => lua::driver::declared(&script, with_help),
            };
            return Ok(hosts::look(told));
        }
        Command::Spinner => hosts::spinner().map(|()| exit::FINE),
    }?;
    Ok(ExitCode::from(code))
}

#[cfg(test)]
mod tests;
