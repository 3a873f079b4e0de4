//! The command line: commands, options and their help. Other files decide what they mean.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::{Arg, Args, ColorChoice, Parser, Subcommand, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::campaigns::{self, BisectArgs, FindRateArgs, GapArgs};
use crate::cli::check::CheckArgs;
use crate::cli::convert::Import;
use crate::cli::help::{self, Shell};
use crate::cli::hosts::{BlockArgs, CheckNodeArgs, ClearBlockArgs, HostArgs};
use crate::cli::parts::{HOST, OrderWord, SittingArgs, WorkloadArgs, duration, number, whole};
use crate::cli::plans::Plans;
use crate::cli::record::Record;
use crate::cli::rehearse::Rehearse;
use crate::cli::site::{History, SiteArgs};
use rqps_model::verdict::{AnswersRule, DataRule};

/// Headings of the help.
const OUTPUT: &str = "Output";

/// Database performance-regression lab: which build got slower, on which operation, by how much.
#[derive(Debug, Parser)]
#[command(name = "rqps", version, propagate_version = true, max_term_width = 100)]
#[command(disable_help_subcommand = true)]
#[command(after_help = "`rqps help` lists topics with examples, such as `rqps help targets`.")]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    #[command(flatten)]
    pub all: GlobalArgs,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Compare two configurations of the embedded SQLite: no server, no download, about a minute
    Quickstart(Quickstart),
    /// Measure targets against each other; the first is the baseline
    Compare(Compare),
    /// Count the instructions of each statement by function, under valgrind; in most steps they
    /// repeat within 0.1 % on any host
    Count(Count),
    /// Check a change within a budget: count instructions, measure the steps that moved, and give
    /// one verdict (exit codes as `gate`)
    Check(CheckArgs),
    /// Print the plan file and its estimated cost without running it. Accepts every option of
    /// `compare`; output options have no effect
    #[command(mut_args(hide_options_without_effect))]
    Plan(Compare),
    /// Write a workload file for `--bench sql:FILE` from a running database: its tables, and the
    /// statements that took most of its time
    Init(Init),
    /// Compare the plans of statements on two versions without the data: by schema, sizes and
    /// statistics (exit code: 0 nothing changes, 1 something does, 3 something cannot be told)
    Plans(Plans),
    /// Rehearse an upgrade: what breaks, answers differently, gets slower or faster, on one page
    /// (exit code: 0 nothing, 1 something breaks, differs or slows, 3 something cannot be said)
    Rehearse(Rehearse),
    /// Make a trace of the statements in logs of a server, for `--bench trace:FILE`
    Record(Record),
    /// Run a plan file, resume an interrupted result folder, or repeat a bundle
    Run(RunArgs),
    /// Pack a result folder and everything needed to repeat it into one file, for `rqps run FILE`
    /// on another host
    Bundle(BundleArgs),
    /// Report on result folders as text, Markdown, a post, HTML, TSV, CSV or JSON
    Report(Report),
    /// Draw relative rates, changes by version or courses over time as SVG or PNG
    Plot(Plot),
    /// Explain differences: settings, query plans, counters of the DBMS and counted functions of
    /// each step that differs
    Explain(Explain),
    /// Find the versions in which a step changed its level, among many versions of a DBMS
    History(History),
    /// Write a static site over many result sets: reports, series, changes, a feed
    Site(SiteArgs),
    /// Find the version or commit that changed a step, between two targets or among several
    #[command(mut_args(campaigns::hide_options_without_effect))]
    Bisect(BisectArgs),
    /// Measure which of the settings that differ between two targets make the difference in a step,
    /// and how much of it each is worth
    #[command(mut_args(campaigns::arrange_gap_options))]
    Gap(GapArgs),
    /// Find the most events per second at which response times keep a limit, for each target
    #[command(mut_args(campaigns::arrange_rate_options))]
    FindRate(FindRateArgs),
    /// Export result folders as flat tables: runs, steps, metrics, seconds, relative
    Export(Export),
    /// Check result folders for regressions in a CI job (exit code: 0 nothing is slower,
    /// 1 regression, 2 usage, 3 no verdict, 4 a run failed)
    Gate(Gate),
    /// Measure again, in fresh sittings, what failed the gate of a result folder, with as many other
    /// steps as controls; the fresh data alone decide (exit codes as `gate`)
    Confirm(Confirm),
    /// Diagnose this host: noise sources, recommended settings, unavailable counters
    Doctor(Doctor),
    /// Import published results and other tools' output as run folders
    Import(Import),
    /// Verify vector data sets
    #[command(subcommand)]
    Vector(Vector),
    /// List obtainable builds
    Builds(Builds),
    /// Fetch and verify builds into the cache
    Get(Get),
    /// Explain a topic or a command, with examples
    Help(HelpWords),
    /// Print the script that completes rqps's command lines in a shell. In bash:
    /// `source <(rqps completions bash)`
    Completions(Completions),
    #[command(hide = true)]
    Man(Man),
    #[command(hide = true)]
    Driver(Driver),
    #[command(hide = true, name = rqps_dbms::SQLITE_COMMAND)]
    SqliteProcess,
    #[command(hide = true, name = rqps_dbms::ROCKSDB_COMMAND)]
    RocksdbProcess,
    #[command(hide = true)]
    Warden,
    #[command(hide = true)]
    ClientHost(ClientHostArgs),
    #[command(hide = true)]
    Block(BlockArgs),
    #[command(hide = true)]
    CheckNode(CheckNodeArgs),
    #[command(hide = true)]
    ClearBlock(ClearBlockArgs),
    #[command(hide = true)]
    Spinner,
    #[command(hide = true, name = rqps_bench::client::driver::CLIENT_COMMAND)]
    LookAtClient { program: PathBuf },
    #[command(hide = true, name = rqps_bench_lua::driver::LUA_COMMAND)]
    LookAtLua {
        script: PathBuf,
        #[arg(long)]
        with_help: bool,
        /// What a client would send first in this work, as JSON
        #[arg(long)]
        work: Option<String>,
    },
}

/// Keeps the command line of `compare` valid for `plan`: options without effect stay, hidden.
fn hide_options_without_effect(arg: Arg) -> Arg {
    let idle =
        ["out", "configs", "work", "cache", "format", "full", "dry_run", "keep", "replace", "yes"]
            .contains(&arg.get_id().as_str());
    arg.hide(idle)
}

#[derive(Debug, Args)]
pub(super) struct ClientHostArgs {
    /// Address and port at which servers will listen
    pub address: SocketAddr,
    /// Listen there instead of connecting; print the address, and end with standard input
    #[arg(long)]
    pub listen: bool,
}

#[derive(Debug, Args)]
pub(super) struct Driver {
    #[arg(long)]
    pub memory_group: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Vector {
    /// Verify a vector data set: its statistics and its ground-truth neighbours
    VerifyData(VerifyData),
}

#[derive(Debug, Args)]
pub(super) struct VerifyData {
    /// The data set, as for `compare --bench vector`: data, rows, queries, dims, data_seed,
    /// distance, neighbours [default: 60000 generated rows of 784 dimensions]
    #[arg(long = "set", value_name = "KEY=VALUE", add = ArgValueCompleter::new(help::settings))]
    pub settings: Vec<String>,
    /// Indexes to build in memory and query, as m/ef_construction, or none [default: the eight
    /// with a published recall for the generated 60000 rows, else 8/32,16/64]
    #[arg(long, value_name = "LIST")]
    pub indexes: Option<String>,
    #[command(flatten)]
    pub cache: CacheFolder,
}

#[derive(Debug, Args)]
pub(super) struct Quickstart {
    /// Result folder [default: a new folder in ./rqps-results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub printed: Printed,
}

/// What a command that measures prints at its end.
#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Printed {
    /// Format of the report on stdout; the result folder also gets report.html
    #[arg(long, value_enum, default_value = "text", help_heading = OUTPUT)]
    pub format: Format,
    /// Print the whole report, not the answer in twenty lines
    #[arg(long, help_heading = OUTPUT)]
    pub full: bool,
}

#[derive(Debug, Args)]
pub(super) struct Compare {
    /// Targets, the baseline first: DBMS@VERSION, DBMS=deb:SUITE/PACKAGE, DBMS=PATH, sqlite, or a
    /// DSN. Prefix LABEL= to name a target; append :CONFIG to choose a configuration (not for a
    /// DSN). Examples: mysql@8.0.33 old=postgres=/opt/pg:big postgres://user@host/db. In the git
    /// repository of a DBMS, commits: HEAD~1 HEAD, main.., or none for HEAD and the work tree
    #[arg(value_name = "TARGET", help_heading = "What to compare", display_order = 0)]
    #[arg(add = ArgValueCompleter::new(help::targets))]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub hosts: HostArgs,
    #[command(flatten)]
    pub guest: GuestOptions,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Also count the instructions of each step under valgrind, after the blocks: 3 repeats of 1000
    /// statements, into the folder `count` of the result folder
    #[arg(long, help_heading = "What to compare")]
    pub count: bool,
    /// Also sample the stacks of the servers with perf, after the blocks: 6 blocks with perf and 3
    /// without, into the folder `profile` of the result folder. Shows functions whose CPU time per
    /// operation differs
    #[arg(long, help_heading = "What to compare")]
    pub profile: bool,
    /// With --count, simulate caches and branches, too: misses and mispredictions per operation
    #[arg(long, requires = "count", help_heading = "What to compare")]
    pub simulate: bool,
    /// Measure every combination of values: of a setting of targets (pg.KEY, my.KEY, sqlite.KEY;
    /// for kv also fanout, cache_type, option.KEY) as targets of one plan, of clients and writer_mb
    /// as steps, of any other setting of the workload as parts; repeatable, at most 64 combinations
    #[arg(long, value_name = "KEY=V,V...", help_heading = "What to compare")]
    pub sweep: Vec<String>,
    #[command(flatten)]
    pub check: PlanCheck,
    /// Print the plan and its estimated cost, and measure nothing: as `rqps plan`
    #[arg(long, help_heading = "What to compare")]
    pub dry_run: bool,
    #[command(flatten)]
    pub printed: Printed,
}

/// What `plan` and `--dry-run` look at beside the plan.
#[derive(Debug, Default, Args)]
pub(super) struct PlanCheck {
    /// With plan: also say whether disk and memory suffice, and how each build can be had (exit
    /// code: 2 if something is missing)
    #[arg(long, help_heading = "What to compare")]
    pub check: bool,
    /// As --check, for the machine in this file and not for this host: {"cores": 48, "memory_gb":
    /// 128, "disk_gb": 1900}
    #[arg(long, value_name = "FILE", help_heading = "What to compare")]
    pub host_like: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Count {
    /// Targets, the baseline first, as for `compare`, but no DSN, because rqps starts each server
    /// under valgrind
    #[arg(required = true, value_name = "TARGET", add = ArgValueCompleter::new(help::targets))]
    pub targets: Vec<String>,
    /// Benchmark: sysbench, kv (RocksDB and Speedb), vector, insert, sql:FILE, pgbench:SCRIPT or
    /// lua:SCRIPT, as for `compare`
    #[arg(long, value_name = "NAME", default_value = "sysbench")]
    #[arg(add = ArgValueCompleter::new(help::benchmark))]
    pub bench: Vec<String>,
    /// Count only steps whose name matches; !GLOB excludes; repeatable
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    #[arg(add = ArgValueCompleter::new(help::steps))]
    pub steps: Vec<String>,
    /// Statements to count in each step, after as many warm-up statements. Steps with long scans
    /// execute fewer; steps of kv execute ten times as many operations
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = number)]
    #[arg(allow_hyphen_values = true)]
    pub statements: u64,
    /// Simulate caches and branches, too: misses and mispredictions per operation. Takes 2 to 4
    /// times as long
    #[arg(long)]
    pub simulate: bool,
    /// Repeats of each count, with different random keys on fresh data; the interval comes from
    /// their variance
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = at_least_1())]
    pub repeats: u32,
    /// Change one setting of the workload, such as rows=1M; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", add = ArgValueCompleter::new(help::settings))]
    pub settings: Vec<String>,
    /// Order of the sysbench steps, as for `compare`
    #[arg(long, value_enum)]
    pub order: Option<OrderWord>,
    /// Seed of the data and the statements
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>)]
    #[arg(allow_hyphen_values = true)]
    pub seed: u64,
    /// Options for pgbench or sysbench scripts, after `--`, as for `compare`
    #[arg(last = true, value_name = "OPTION")]
    pub options: Vec<String>,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub printed: Printed,
}

#[derive(Debug, Args)]
pub(super) struct Init {
    /// A DSN (postgres://user@host/db, mysql://…) or a file of SQLite
    #[arg(value_name = "DATABASE")]
    pub database: String,
    /// The workload file to write; it must not exist yet
    #[arg(short, long, value_name = "FILE", default_value = "workload.toml")]
    pub out: PathBuf,
    /// Also dump the database into a file of SQL beside it, which builds that rqps starts then load:
    /// with pg_dump, mysqldump, mariadb-dump or sqlite3, which must be installed
    #[arg(long)]
    pub dump: bool,
}

#[derive(Debug, Args)]
pub(super) struct Confirm {
    /// The result folder; the newest if none is named. The fresh sittings go to the folder `confirm`
    /// in it, and are resumed there
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folder: Option<PathBuf>,
    #[command(flatten)]
    pub fresh: FreshArgs,
    /// Format of the findings
    #[arg(long, value_enum, default_value = "text")]
    pub format: GateForm,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Write the findings to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Fresh sittings.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct FreshArgs {
    /// Fresh sittings [default: 3, of 4 blocks each]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=200))]
    pub sittings: Option<u32>,
    /// Begin one this long after the one before [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub every: Option<Duration>,
    /// Measure with a plan that is new on this host if all that it would use has this hash
    #[arg(long, value_name = "HASH")]
    pub allow: Option<String>,
    /// Your configurations: DIR/DBMS/NAME.conf [default: as `rqps run`]
    #[arg(long, value_name = "DIR")]
    pub configs: Option<PathBuf>,
    #[command(flatten)]
    pub cache: CacheFolder,
    /// Parent of the temporary folder for data and snapshots [default: beside the results]
    #[arg(long, value_name = "DIR", env = "RQPS_WORK")]
    pub work: Option<PathBuf>,
}

#[derive(Debug, Default, Args)]
pub(super) struct Gate {
    /// Result folders [default: the newest below ./rqps-results]
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Earlier result sets, such as those of a nightly job: their newest level is a second
    /// baseline. Needs four or more of this host since the last change
    #[arg(long, value_name = "DIR", num_args = 1..)]
    #[arg(add = ArgValueCompleter::new(help::result_folders))]
    pub history: Vec<PathBuf>,
    /// Take the hosts of the history for the host of DIR, such as before and after a new kernel
    #[arg(long, requires = "history")]
    pub same_host: bool,
    /// Accept the speed of this step in DIR as a new level of the history, and record it there:
    /// its loss is no regression, tonight and from now on; repeatable
    #[arg(long, value_name = "STEP", requires = "history")]
    #[arg(add = ArgValueCompleter::new(help::steps))]
    pub accept: Vec<String>,
    /// Label of the baseline target [default: the first of the plan]
    #[arg(long, value_name = "LABEL")]
    pub baseline: Option<String>,
    /// Format of the findings
    #[arg(long, value_enum, default_value = "text")]
    pub format: GateForm,
    /// A file with a [gate] table [default: plan.toml of the first folder]
    #[arg(long, value_name = "FILE")]
    pub thresholds: Option<PathBuf>,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Probability of a false regression, per target and metric [default: 0.05]
    #[arg(long, value_name = "ALPHA", value_parser = share, allow_hyphen_values = true)]
    pub alpha: Option<f64>,
    /// Metrics that may fail the gate, by column head: o/s, p99_ms, server_cpu_us/o, ... [default:
    /// o/s]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Largest allowed share of unclear verdicts [default: 50%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub unclear_max: Option<f64>,
    /// Also fail if a step executes more instructions per operation by this share, if they were
    /// counted (`compare --count`, `count`). Its rate may be the same
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub instructions: Option<f64>,
    /// Exit with 3 if any verdict is unclear
    #[arg(long)]
    pub fail_on_inconclusive: bool,
    /// Measure a regression again in fresh sittings before it fails the job, as `rqps confirm` does
    #[arg(long)]
    pub confirm: bool,
    #[command(flatten)]
    pub fresh: FreshArgs,
    /// Write the findings to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum GateForm {
    #[default]
    Text,
    Json,
    Markdown,
    Junit,
    Github,
}

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// Result folders [default: the newest below ./rqps-results]
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Explain this step, whether it differs or not; repeatable
    #[arg(long = "step", value_name = "NAME", add = ArgValueCompleter::new(help::steps))]
    pub steps: Vec<String>,
    /// Label of the baseline target [default: the first of the plan]
    #[arg(long, value_name = "LABEL")]
    pub baseline: Option<String>,
    #[command(flatten)]
    pub rules: RuleOptions,
}

#[derive(Debug, Args)]
pub(super) struct Report {
    /// Result folders [default: the newest below ./rqps-results]
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Label of the baseline target [default: the first of the plan]. Repeatable, one for each
    /// family (DBMS and storage engine): then each family is relative to its own
    #[arg(long, value_name = "LABEL")]
    pub baseline: Vec<String>,
    /// Compare each family (DBMS and storage engine) with its own baseline: the one that
    /// --baseline names, or its first target
    #[arg(long)]
    pub by_family: bool,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Format of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Only the answer: of text twenty lines, of Markdown the tables, at most 65,536 characters
    #[arg(long, conflicts_with = "by_family")]
    pub brief: bool,
    /// Show a target under another name: LABEL=NAME, such as a="MySQL 8.0.33"; repeatable
    #[arg(long, value_name = "LABEL=NAME")]
    pub label: Vec<String>,
    /// Write the report to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Omit the vendors' conditions for publishing results
    #[arg(long)]
    pub no_terms: bool,
}

#[derive(Debug, Args)]
pub(super) struct Plot {
    /// Result folders [default: the newest below ./rqps-results]
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folders: Vec<PathBuf>,
    /// What to draw
    #[arg(long, value_enum, default_value = "forest")]
    pub kind: PlotForm,
    /// Only this step; repeatable
    #[arg(long, value_name = "STEP")]
    pub step: Vec<String>,
    /// Label of the baseline target [default: the first of the plan]
    #[arg(long, value_name = "LABEL")]
    pub baseline: Option<String>,
    /// Show a target under another name: LABEL=NAME, such as a="MySQL 8.0.33"; repeatable
    #[arg(long, value_name = "LABEL=NAME")]
    pub label: Vec<String>,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Write to this file, FILE.svg or FILE.png, instead of SVG to stdout; a PNG needs rsvg-convert
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum PlotForm {
    /// Relative rates with their intervals, the largest loss first
    Forest,
    /// Each step by version, with the levels that `rqps history` finds
    Ladder,
    /// Each step over time and by percentile, and rates by clients
    Lines,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Run an A/A test of this target and save it as the noise calibration of this host. Accepts
    /// the options of `compare` (default: six short steps, 12 blocks)
    #[arg(long, value_name = "TARGET", add = ArgValueCompleter::new(help::targets))]
    pub aa: Option<String>,
    /// Measure builds of these sources (`DBMS=src:DIR@REF`) whose functions are linked in shuffled
    /// orders, and save the noise of code layout: `compare` and `bisect` then use it as --tau for
    /// this DBMS on this host. Accepts the options of `compare` (default: six short steps,
    /// 6 blocks)
    #[arg(long, value_name = "TARGET", conflicts_with = "aa")]
    #[arg(add = ArgValueCompleter::new(help::targets))]
    pub layout: Option<String>,
    /// Number of orders of linking for --layout
    #[arg(long, value_name = "N", default_value_t = 8, requires = "layout")]
    #[arg(value_parser = clap::value_parser!(u32).range(2..=100))]
    pub relink: u32,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    /// Format of the diagnosis
    #[arg(long, value_enum, default_value = "text")]
    pub format: DoctorFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DoctorFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    /// Result folders
    #[arg(required = true, value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folders: Vec<PathBuf>,
    /// Label of the baseline target [default: the first of the plan]
    #[arg(long, value_name = "LABEL")]
    pub baseline: Option<String>,
    /// csv: a folder of tables; sqlite: one database; folded, pprof: a folder with the sampled
    /// stacks of each step and target
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// The folder or the database to write
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,
    /// csv: leave texts that begin with = + - @ as they are. Otherwise an apostrophe before them
    /// keeps a spreadsheet from calculating them
    #[arg(long)]
    pub formulas: bool,
    #[command(flatten)]
    pub rules: RuleOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ExportFormat {
    Csv,
    Sqlite,
    Folded,
    Pprof,
}

#[derive(Debug, Args)]
pub(super) struct Builds {
    /// Only builds of this DBMS
    #[arg(add = ArgValueCompleter::new(help::dbms))]
    pub dbms: Option<String>,
    /// All releases that the packages offer, not only the tested ones. rqps asks the package client
    /// once a day
    #[arg(long)]
    pub all: bool,
    /// With --all: ask the package client again, even if it was asked today
    #[arg(long, requires = "all")]
    pub refresh: bool,
    #[command(flatten)]
    pub cache: CacheFolder,
    /// Omit the vendors' conditions for publishing results
    #[arg(long)]
    pub no_terms: bool,
}

#[derive(Debug, Args)]
pub(super) struct Get {
    /// Builds to fetch: DBMS@VERSION or DBMS=deb:SUITE/PACKAGE
    #[arg(required = true, value_name = "TARGET", add = ArgValueCompleter::new(help::targets))]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub cache: CacheFolder,
}

pub(super) fn at_least_1() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

/// Folders of results, configurations, work and builds.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = OUTPUT)]
pub(super) struct Folders {
    /// Result folder [default: a new folder in ./rqps-results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Your configurations: DIR/DBMS/NAME.conf, which replace shipped ones of that name [default:
    /// ./configs, for targets that name their configuration]
    #[arg(long, value_name = "DIR")]
    pub configs: Option<PathBuf>,
    /// Parent of the temporary folder for data and snapshots. rqps removes it at the end; after
    /// Ctrl-C it stays: --resume with the same --work uses and removes it, another one leaves it
    /// there [default: beside the results]
    #[arg(long, value_name = "DIR", env = "RQPS_WORK")]
    pub work: Option<PathBuf>,
    /// Measure although the estimate says that the disk is too small
    #[arg(long)]
    pub yes_disk: bool,
    /// Wait so long for another rqps that measures on this host, such as 30m [default: refuse]
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    #[arg(hide_default_value = true)]
    pub wait: Duration,
    /// Folder of debug files by build id (DIR/.build-id/ab/cdef.debug): names of functions of
    /// stripped builds in counts; repeatable
    #[arg(long = "debug-dir", value_name = "DIR")]
    pub debug: Vec<PathBuf>,
    #[command(flatten)]
    pub cache: CacheFolder,
}

#[derive(Clone, Debug, Default, Args)]
pub(super) struct CacheFolder {
    /// Cache of builds and data sets [default: /var/cache/rqps as root, else the XDG cache folder]
    #[arg(long = "cache", value_name = "DIR", env = "RQPS_CACHE")]
    pub cache: Option<PathBuf>,
}

/// Heading of the help.
const VERDICT: &str = "Verdict";

/// Thresholds of verdicts (docs/verdicts.md).
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = VERDICT)]
pub(super) struct RuleOptions {
    /// Equivalence margin: smallest relative difference that matters [default: 2%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub delta: Option<f64>,
    /// Relative differences up to this size are attributed to code layout [default: 1%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub tau: Option<f64>,
    /// False discovery rate of the listed differences [default: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub q: Option<f64>,
    /// Give verdicts although targets answer statements differently
    #[arg(long, value_name = "ignore", value_parser = ignore)]
    pub answers: Option<AnswersRule>,
    /// Give verdicts although targets hold different data
    #[arg(long, value_name = "differ", value_parser = differ)]
    pub data: Option<DataRule>,
}

fn ignore(word: &str) -> Result<AnswersRule, String> {
    let known = (word == "ignore").then_some(AnswersRule::Ignore);
    known.ok_or_else(|| "the only word is `ignore`".to_owned())
}

fn differ(word: &str) -> Result<DataRule, String> {
    let known = (word == "differ").then_some(DataRule::Differ);
    known.ok_or_else(|| "the only word is `differ`".to_owned())
}

/// `2%`, `2 %` or `0.02`.
pub(super) fn share(word: &str) -> Result<f64, String> {
    let (number, scale) = match word.trim().strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (word.trim(), 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number / scale),
        _ => Err("write a share as 2% or 0.02".to_owned()),
    }
}

const SCRIPTS: &str = "What others made";

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// A plan file, or a bundle (`rqps bundle`) to repeat and compare with; with --resume, the
    /// result folder [default: the newest below ./rqps-results, or its plan]
    #[arg(value_name = "PLAN")]
    pub plan: Option<PathBuf>,
    /// Measure so many blocks, not the number of the plan: the same comparison again, longer
    #[arg(long, value_name = "N", value_parser = at_least_1(), conflicts_with_all = ["resume", "status"])]
    pub blocks: Option<u32>,
    /// Resume an interrupted result folder
    #[arg(long)]
    pub resume: bool,
    /// Show the state of each block in the result folder PLAN; measure nothing
    #[arg(long, conflicts_with_all = ["resume", "on"])]
    pub status: bool,
    #[command(flatten)]
    pub sittings: SittingArgs,
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
    #[command(flatten)]
    pub printed: Printed,
}

impl RunArgs {
    /// The plan, which [`crate::cli::measure::run`] names if the user does not.
    pub(super) fn plan(&self) -> &Path {
        self.plan.as_deref().unwrap_or(Path::new("."))
    }
}

#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    /// The result folder [default: the newest below ./rqps-results]
    #[arg(value_name = "DIR", add = ArgValueCompleter::new(help::result_folders))]
    pub folder: Option<PathBuf>,
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
    #[arg(long = "replace-tables", value_name = "NAME", value_delimiter = ',', help_heading = HOST)]
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Text,
    Tsv,
    Csv,
    Json,
    Markdown,
    /// Markdown in the order of a published post; `report -o FILE.md` also draws FILE.svg
    Post,
    Html,
}

/// Heading of the help.
const GLOBAL: &str = "All commands";

#[derive(Debug, Args)]
pub(super) struct GlobalArgs {
    /// Form of the progress on stderr [default: a bar on a terminal, else plain lines]
    #[arg(long, global = true, value_enum, value_name = "FORM", help_heading = GLOBAL)]
    pub progress: Option<ProgressForm>,
    /// Print no progress and no notes: only the result, and errors
    #[arg(short, long, global = true, conflicts_with = "progress", help_heading = GLOBAL)]
    pub quiet: bool,
    /// Colours of the text report [default: on a terminal, unless NO_COLOR is set]
    #[arg(long, global = true, value_enum, value_name = "WHEN", help_heading = GLOBAL)]
    #[arg(default_value = "auto", hide_default_value = true)]
    pub color: ColorChoice,
}

/// The form of progress messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ProgressForm {
    /// A moving line
    Bar,
    /// Lines
    Plain,
    /// One JSON object per line, for programs (docs/command_line.md)
    Json,
    /// Nothing
    None,
}

#[derive(Debug, Args)]
pub(super) struct HelpWords {
    /// A topic or a command [default: list the topics]
    #[arg(value_name = "TOPIC", add = ArgValueCompleter::new(help::completed_topics))]
    pub topic: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct Man {
    /// The folder for the pages; it is made if it is not there
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}
