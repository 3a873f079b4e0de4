//! The command line of `rqps history`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::completion;
use crate::cli::rule_args::{RuleOptions, share};

#[derive(Debug, Args)]
pub(super) struct History {
    /// Result folders with two or more versions of a DBMS; with --by date, of two or more days
    #[arg(required = true, value_name = "DIR")]
    #[arg(add = ArgValueCompleter::new(completion::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Order of the points: versions of a DBMS, or dates of the result sets of each target
    #[arg(long, value_enum, default_value = "version")]
    pub by: HistoryOrder,
    /// With --by date: compute as Apache Otava 0.8.0 does, digit for digit
    #[arg(long)]
    pub otava: bool,
    /// With --by date: ignore changes up to this size [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub min_magnitude: Option<f64>,
    /// With --by date: take all hosts of a target for one, such as before and after a new kernel
    #[arg(long)]
    pub same_host: bool,
    /// Metric, such as o/s, server_cpu_us/o or instr/o [default: o/s, or instr/o if there are only
    /// counts]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Look for changes along the first version of each branch (10.4.8, 10.5.6, …) and along each
    /// branch, not along all versions
    #[arg(long, conflicts_with = "order")]
    pub branches: bool,
    /// File with one target label per line, the oldest first [default: by version number]
    #[arg(long, value_name = "FILE")]
    pub order: Option<PathBuf>,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Format of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: HistoryFormat,
    /// Write the report to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HistoryOrder {
    Version,
    Date,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum HistoryFormat {
    Text,
    Markdown,
    Csv,
    Json,
}
