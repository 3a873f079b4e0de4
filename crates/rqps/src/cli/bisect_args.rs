//! The command line of `rqps bisect`.

use std::path::PathBuf;

use clap::{Arg, Args, ValueEnum};

use crate::cli::folder_args::Folders;
use crate::cli::rule_args::RuleOptions;
use crate::cli::workload_args::WorkloadArgs;

#[derive(Debug, Args)]
pub(super) struct BisectArgs {
    /// Baseline and candidate: two releases of a DBMS, between which `rqps builds` knows others; or
    /// three or more targets in their order
    #[arg(value_name = "TARGET", required_unless_present_any = ["resume", "repo"])]
    pub targets: Vec<String>,
    /// Git repository whose commits to search, instead of targets
    #[arg(long, value_name = "DIR", conflicts_with = "targets",
          requires_all = ["good", "bad", "recipe"])]
    pub repo: Option<PathBuf>,
    /// The older commit, which is still fast
    #[arg(long, value_name = "REF", requires = "repo")]
    pub good: Option<String>,
    /// The newer commit, which is slow
    #[arg(long, value_name = "REF", requires = "repo")]
    pub bad: Option<String>,
    /// DBMS that the repository has the sources of, and a variant: sqlite, postgres+O3,
    /// postgres+recipe=./build.sh (docs/builds.md)
    #[arg(long, value_name = "DBMS+VARIANT", requires = "repo")]
    pub recipe: Option<String>,
    /// Step that changed
    #[arg(long, value_name = "NAME", required_unless_present = "resume")]
    pub step: Option<String>,
    /// Metric to search by: instr/o, instr_bg/o, o/s, server_cpu_us/o or client_cpu_us/o [default:
    /// the one that shows the difference best]
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Resume the interrupted bisection in this folder
    #[arg(long, value_name = "DIR",
          conflicts_with_all = ["targets", "repo", "step", "metric", "out"])]
    pub resume: Option<PathBuf>,
    /// With --resume: measure a bisection that is new on this host if all that it would use has
    /// this hash
    #[arg(long, value_name = "HASH", requires = "resume")]
    pub allow: Option<String>,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Format of the result
    #[arg(long, value_enum, default_value = "text")]
    pub format: BisectFormat,
}

impl BisectArgs {
    /// The words of the targets, those of two commits among them.
    pub(super) fn target_words(&self) -> Vec<String> {
        let (Some(repository), Some(recipe)) = (&self.repo, &self.recipe) else {
            return self.targets.clone();
        };
        let (dbms, variant) = recipe.split_once('+').unwrap_or((recipe, ""));
        let plus = if variant.is_empty() { "" } else { "+" };
        let ends = [&self.good, &self.bad].into_iter().flatten();
        let word = |end| format!("{dbms}=src:{}@{end}{plus}{variant}", repository.display());
        ends.map(word).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum BisectFormat {
    Text,
    Markdown,
    Json,
}

/// Hides the options of workloads that a bisection decides itself.
pub(super) fn hide_options_without_effect(arg: Arg) -> Arg {
    let own = [
        "steps",
        "blocks",
        "min_blocks",
        "max_blocks",
        "budget",
        "loads",
        "server_host",
        "client_nodes",
    ];
    let hidden = own.contains(&arg.get_id().as_str());
    arg.hide(hidden)
}
