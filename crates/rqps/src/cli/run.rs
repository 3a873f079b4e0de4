//! The entry of the program: from the command line to an exit code.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory, Parser};

use crate::cli::args::{self, Arguments, Command, ProgressForm};
use crate::cli::{
    bisect, block, builds, bundle, check, colour, completion, confirm, doctor, exit, explain,
    export, gap, gate, help, hidden, history, import, init, measure, plans, print, program, report,
    site, vector,
};
use rqps_host::child;
use rqps_lab::benchmarks::{client, lua};
use rqps_lab::lab::error_text;
use rqps_lab::plan::words;

/// Runs the program.
pub(crate) fn main() -> ExitCode {
    child::keep_descriptors();
    match completion::answered(Arguments::command) {
        Ok(true) => return ExitCode::from(exit::FINE),
        Ok(false) => {}
        Err(error) => return print_usage(&error),
    }
    let arguments = match Arguments::try_parse_from(with_command(std::env::args_os().collect())) {
        Ok(arguments) => arguments,
        Err(error) => return print_usage(&error),
    };
    let all = &arguments.all;
    print::choose(all.progress.or(all.quiet.then_some(ProgressForm::None)));
    colour::choose(all.color);
    match program::outlive_file_limits().and_then(|()| run(arguments)) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::from(exit::FINE),
        Err(error) => {
            error!("rqps: failed to {}", error_text(&error).trim_end());
            ExitCode::from(exit::USAGE)
        }
    }
}

/// The words of the command line. Targets without a command are compared.
fn with_command(mut line: Vec<OsString>) -> Vec<OsString> {
    let first = line.get(1).and_then(|word| word.to_str()).map(str::to_owned);
    let is_target = |word: &String| {
        let is_command = Arguments::command().find_subcommand(word).is_some();
        !is_command && !word.starts_with('-') && words::targets(std::slice::from_ref(word)).is_ok()
    };
    if first.as_ref().is_some_and(is_target) {
        line.insert(1, "compare".into());
    }
    line
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
        Command::Init(words) => init::init(&words),
        Command::Plans(words) => plans::plans(&words),
        Command::Run(run) => measure::run(run),
        Command::Bundle(words) => bundle::write(&words),
        Command::Report(report) => report::print(&report),
        Command::Explain(words) => explain::explain(&words),
        Command::Bisect(words) => bisect::search(&words),
        Command::Gap(words) => gap::close(&words),
        Command::History(words) => history::print(&words),
        Command::Site(words) => site::write(&words),
        Command::Export(export) => export::export(&export),
        Command::Gate(gate) => gate::judge(&gate),
        Command::Confirm(words) => confirm::confirm(words),
        Command::Doctor(doctor) => doctor::examine(&doctor),
        Command::Import(import) => import::import(&import),
        Command::Vector(args::Vector::VerifyData(words)) => vector::verify(&words),
        Command::Builds(builds) => builds::list(&builds),
        Command::Get(get) => builds::get(&get),
        Command::Help(words) => help::explain(Arguments::command(), words.topic.as_deref()),
        Command::Completions(words) => completion::script(words.shell),
        Command::Man(words) => help::write_manual(Arguments::command(), &words.folder),
        Command::Driver(words) => return Ok(hidden::driver(words.memory_group.as_deref())),
        Command::SqliteProcess => return Ok(hidden::sqlite_process()),
        Command::RocksdbProcess => return Ok(hidden::rocksdb_process()),
        Command::Warden => return Ok(hidden::warden()),
        Command::ClientHost(words) => hidden::client_host(&words).map(|()| exit::FINE),
        Command::Block(words) => block::measure(&words),
        Command::CheckNode(words) => block::check_node(&words),
        Command::ClearBlock(words) => block::clear(&words),
        Command::LookAtClient { program } => {
            return Ok(hidden::look(client::driver::declared(&program)));
        }
        Command::LookAtLua { script, with_help } => {
            return Ok(hidden::look(lua::driver::declared(&script, with_help)));
        }
        Command::Spinner => hidden::spinner().map(|()| exit::FINE),
    }?;
    Ok(ExitCode::from(code))
}
