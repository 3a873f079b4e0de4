//! Options of `rqps run` and `rqps bundle`, and those that `run` and `compare` share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::completion;
use crate::cli::folder_args::Folders;
use crate::cli::hosts::HostArgs;
use crate::cli::rule_args::RuleOptions;
use crate::cli::workload_args::HOST;

/// Heading of the help.
const OUTPUT: &str = "Output";
const SCRIPTS: &str = "What others made";

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// A plan file, or a bundle (`rqps bundle`) to repeat and compare with; with --resume, the
    /// result folder
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Resume an interrupted result folder
    #[arg(long)]
    pub resume: bool,
    /// Show the state of each block in the result folder PLAN; measure nothing
    #[arg(long, conflicts_with_all = ["resume", "on"])]
    pub status: bool,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub hosts: HostArgs,
    #[command(flatten)]
    pub guest: GuestOptions,
    /// Run a plan or bundle that is new on this host if all that it would use has this hash
    /// [default: list it with hashes, and ask on a terminal]
    #[arg(long, value_name = "HASH", help_heading = SCRIPTS)]
    pub allow: Option<String>,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Format of the report on stdout; the result folder also gets report.html
    #[arg(long, value_enum, default_value = "text", help_heading = OUTPUT)]
    pub format: Format,
}

#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    /// The result folder
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(completion::result_folders))]
    pub folder: PathBuf,
    /// The bundle to write, such as results.tar.gz
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Permissions for servers that rqps does not run.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct GuestOptions {
    /// On a server given by a DSN: keep the tables in the schema or database that rqps made for
    /// them [default: remove them at the end of each block]
    #[arg(long, help_heading = HOST)]
    pub keep: bool,
    /// On a server given by a DSN where rqps may not make a schema or database of its own: drop
    /// these tables because the benchmark needs their names. Their data are lost
    #[arg(long = "replace-tables", value_name = "NAME", value_delimiter = ',')]
    #[arg(help_heading = HOST)]
    pub replace: Vec<String>,
    /// On a server given by a DSN: run statements of a workload file that may change rows, without
    /// a question
    #[arg(long, help_heading = HOST)]
    pub yes: bool,
    /// Let scripts for sysbench run programs (os.execute, io.popen). A script may then do whatever
    /// you may
    #[arg(long, help_heading = SCRIPTS)]
    pub allow_shell: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Format {
    Text,
    Tsv,
    Csv,
    Json,
    Markdown,
    Html,
}
