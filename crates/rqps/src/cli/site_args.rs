//! The command line of `rqps site`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::engine::ArgValueCompleter;

use crate::cli::completion;
use crate::cli::rule_args::RuleOptions;

#[derive(Debug, Args)]
pub(super) struct SiteArgs {
    /// Result folders, or folders that hold result folders
    #[arg(required = true, value_name = "DIR")]
    #[arg(add = ArgValueCompleter::new(completion::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Folder of the site: a new one, or that of an earlier `rqps site`
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// Title of the overview and the feed
    #[arg(long, value_name = "TEXT", default_value = "Benchmark results")]
    pub title: String,
    /// Address at which you publish the site, for the feed
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Metric whose changes the overview and the feed list; repeatable
    #[arg(long = "metric", value_name = "NAME", default_value = "o/s")]
    pub metrics: Vec<String>,
    /// In charts by version, look for changes along the first version of each branch (10.4.8,
    /// 10.5.6, …) and along each branch, not along all versions
    #[arg(long)]
    pub branches: bool,
    /// Render all reports again, also of result sets that did not change
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub rules: RuleOptions,
}
