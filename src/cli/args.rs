//! The command line: words and options as they were said. What they mean is decided elsewhere.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::RangedI64ValueParser;
use clap::{Arg, Args, Parser, Subcommand, ValueEnum};

use crate::units;

/// Database performance-regression lab: which build got slower, on which operation, by how much.
#[derive(Debug, Parser)]
#[command(name = "rqps", version, propagate_version = true, max_term_width = 100)]
pub(super) struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Compare two configurations of the embedded SQLite: no server, no download, about a minute
    Quickstart(Quickstart),
    /// Measure targets against each other; the first is the base
    Compare(Compare),
    /// Print the plan of a comparison, and its cost, instead of running it. Takes the options of
    /// compare; those that say where and in which form change nothing here
    #[command(mut_args(hide_what_a_plan_does_not_hold))]
    Plan(Compare),
    /// Run a plan file, or go on with a result folder
    Run(Run),
    /// Report what result folders hold
    Report(Report),
    /// Write what result folders hold as flat tables: runs, steps, metrics, seconds, relative
    Export(Export),
    /// End with 1 if result folders hold a regression, for CI jobs (exit: 0 nothing is slower,
    /// 1 regression, 2 usage, 3 no verdict, 4 a run failed)
    Gate(Gate),
    /// Tell what is noisy on this host, what to switch off, and what cannot be measured
    Doctor(Doctor),
    /// Turn results that others published into run folders
    Import(Import),
    /// Look at sets of vectors
    #[command(subcommand)]
    Vector(Vector),
    /// List obtainable builds
    Builds(Builds),
    /// Fetch and verify builds into the cache
    Get(Get),
    #[command(hide = true)]
    Driver,
    #[command(hide = true, name = crate::dbms::SQLITE_COMMAND)]
    SqliteProcess,
    #[command(hide = true, name = crate::dbms::ROCKSDB_COMMAND)]
    RocksdbProcess,
    #[command(hide = true)]
    Warden,
    #[command(hide = true)]
    Spinner,
}

/// Whoever puts `plan` in the place of `compare` need not take options away.
fn hide_what_a_plan_does_not_hold(arg: Arg) -> Arg {
    let idle = ["out", "configs", "work", "cache", "format"].contains(&arg.get_id().as_str());
    arg.hide(idle)
}

#[derive(Debug, Subcommand)]
pub(super) enum Vector {
    /// Hold a set of vectors against its specification, and the neighbours of a file against exact
    /// ones
    VerifyData(VerifyData),
}

#[derive(Debug, Args)]
pub(super) struct VerifyData {
    /// Which set, as for `compare --bench vector`: data, rows, queries, dims, data_seed, distance,
    /// neighbours [default: 60000 generated rows of 784]
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Indexes that are built in memory and asked, as m/ef_construction, or none [default: of the
    /// generated 60000 rows the eight whose recall was published, else 8/32,16/64]
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
    /// Form of the report on stdout; report.html is written into the result folder too
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub(super) struct Compare {
    /// What to measure: DBMS@VERSION, DBMS=deb:SUITE/PACKAGE, DBMS=PATH, sqlite, or a DSN; each may
    /// begin with LABEL= and, but for a DSN, end in :CONFIG (examples: mysql@8.0.33
    /// old=postgres=/opt/pg:big postgres://user@host/db)
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub shape: Shape,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Form of the report on stdout; report.html is written into the result folder too
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// What a comparison measures.
#[derive(Clone, Debug, Args)]
pub(super) struct Shape {
    /// Benchmark: sysbench, insert, kv or vector
    #[arg(long, value_name = "NAME", default_value = "sysbench")]
    pub bench: String,
    /// Scale: quick, standard, full, or a published shape (see the benchmark's page in docs)
    #[arg(long, value_name = "NAME", default_value = "quick")]
    pub preset: String,
    /// Sequence of the steps of sysbench: abbreviated (since 2025) or full (42) [default: the
    /// preset's]
    #[arg(long, value_enum)]
    pub order: Option<OrderWord>,
    /// Only steps whose name matches; may be given several times; !GLOB leaves out
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// Rounds; each measures every target once. auto measures until every step is settled
    /// [default: 4; of doctor --aa: 12]
    #[arg(long, value_name = "N|auto", allow_hyphen_values = true)]
    pub blocks: Option<BlocksWord>,
    /// With --blocks auto: rounds before the first look at the results [default: 4]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u32>)]
    pub min_blocks: Option<u32>,
    /// With --blocks auto: rounds at the last look [default: 12]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u32>)]
    pub max_blocks: Option<u32>,
    /// With --blocks auto: time for everything, loading included, such as 30m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, allow_hyphen_values = true)]
    pub budget: Option<Duration>,
    /// Small fixed work before and after each round, a few tenths of a second in all: a round
    /// during which the host was another one than usual is thrown away and measured again
    #[arg(long, value_enum, default_value = "on")]
    pub canaries: Switch,
    /// Concurrent clients, each with a connection or a thread of its own [default: the preset's]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u32>)]
    pub clients: Option<u32>,
    /// Change one setting of the workload, such as rows=1M; may be given several times. A key that
    /// the benchmark does not have is answered with those that it has
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Memory that each server and the page cache of its files may take, such as 4G: makes data
    /// IO-bound on a big machine. Insert Benchmark only; refused where it is not allowed
    #[arg(long, value_name = "SIZE")]
    pub memory_limit: Option<String>,
    /// Events per second of all clients together on an open schedule [default: closed loop]
    #[arg(long, value_name = "EVENTS_PER_SECOND", allow_negative_numbers = true)]
    pub rate: Option<f64>,
    /// How targets take turns in a block: by step (all servers up) or by run (one server at a time)
    /// [default: step; run for the Insert Benchmark]
    #[arg(long, value_enum)]
    pub interleave: Option<InterleaveWord>,
    /// Where client and server run [default: for sysbench together if there are no more clients
    /// than CPUs; else os]
    #[arg(long, value_enum)]
    pub placement: Option<PlacementWord>,
    /// What idle CPUs do: kept awake, or left to the operating system [default: os]
    #[arg(long, value_enum)]
    pub idle: Option<IdleWord>,
    /// Seed of data, order and statements
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_hyphen_values = true,
        value_parser = whole::<u64>
    )]
    pub seed: u64,
}

/// Where things are.
#[derive(Debug, Args)]
pub(super) struct Folders {
    /// Result folder [default: a new folder in ./rqps-results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Your configurations: DIR/DBMS/NAME.conf
    #[arg(long, value_name = "DIR", default_value = "configs")]
    pub configs: PathBuf,
    /// Where data and snapshots go while measuring, into a folder of their own that is removed in
    /// the end [default: beside the results]
    #[arg(long, value_name = "DIR", env = "RQPS_WORK")]
    pub work: Option<PathBuf>,
    #[command(flatten)]
    pub cache: CacheFolder,
}

#[derive(Debug, Args)]
pub(super) struct CacheFolder {
    /// Cache of builds and of data sets [default: /var/cache/rqps as root, else the XDG cache
    /// folder]
    #[arg(long = "cache", value_name = "DIR", env = "RQPS_CACHE")]
    pub cache: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Run {
    /// A plan file; with --resume, the result folder to go on with
    #[arg(value_name = "PLAN")]
    pub plan: PathBuf,
    /// Go on with a result folder that was broken off
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Form of the report on stdout; report.html is written into the result folder too
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub(super) struct Gate {
    /// Result folders
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Label of the target that others are divided by [default: the first of the plan]
    #[arg(long, value_name = "LABEL")]
    pub base: Option<String>,
    /// Form of the findings
    #[arg(long, value_enum, default_value = "text")]
    pub format: GateForm,
    /// A file with a [gate] table [default: plan.toml of the first folder]
    #[arg(long, value_name = "FILE")]
    pub thresholds: Option<PathBuf>,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Chance of a false regression, per target and metric [default: 0.05]
    #[arg(long, value_name = "ALPHA", value_parser = share, allow_hyphen_values = true)]
    pub alpha: Option<f64>,
    /// Metrics that may fail the gate, by column head: o/s, p99_ms, server_cpu_us/o … [default:
    /// o/s]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub metrics: Vec<String>,
    /// Share of verdicts that may be unclear [default: 50%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub unclear_max: Option<f64>,
    /// End with 3 if a single verdict is unclear
    #[arg(long)]
    pub fail_on_inconclusive: bool,
    /// Write the findings to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// By what verdicts are given (docs/verdicts.md).
#[derive(Clone, Debug, Default, Args)]
pub(super) struct RuleOptions {
    /// A difference of this share counts, and one shown to be smaller is none [default: 2%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub delta: Option<f64>,
    /// Differences up to this share are what another link order gives, and no evidence [default:
    /// 1%]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub tau: Option<f64>,
    /// Share of wrong ones among the differences listed [default: 0.05]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub q: Option<f64>,
}

/// `2%`, `2 %` or `0.02`.
fn share(word: &str) -> Result<f64, String> {
    let (number, scale) = match word.trim().strip_suffix('%') {
        Some(number) => (number.trim_end(), 100.0),
        None => (word.trim(), 1.0),
    };
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number / scale),
        _ => Err("write it as 2% or 0.02".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum GateForm {
    Text,
    Json,
    Markdown,
    Junit,
    Github,
}

#[derive(Debug, Args)]
pub(super) struct Report {
    /// Result folders
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Label of the target that others are divided by [default: the first of the plan]
    #[arg(long, value_name = "LABEL")]
    pub base: Option<String>,
    #[command(flatten)]
    pub rules: RuleOptions,
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Write it to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Doctor {
    /// Measure this target against itself and keep what that tells about the noise of this host;
    /// the options of compare say how (by default six short steps, 12 blocks)
    #[arg(long, value_name = "TARGET")]
    pub aa: Option<String>,
    #[command(flatten)]
    pub shape: Shape,
    #[command(flatten)]
    pub folders: Folders,
    /// Form of what is told
    #[arg(long, value_enum, default_value = "text")]
    pub format: DoctorFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum DoctorFormat {
    Text,
    Json,
}

#[derive(Debug, Args)]
pub(super) struct Import {
    /// Form of the files: sysbench-mytools, sysbench, ibench-mytools, dbbench,
    /// ann-benchmarks (see docs/importing.md)
    pub format: String,
    /// Files and folders to import; plain outputs may be written LABEL=FILE or LABEL/STEP=FILE
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<String>,
    /// Result folder to write; new or empty
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Take published means of vmstat, which count its repeated heads as samples of zeros, also
    /// where the samples are there
    #[arg(long)]
    pub compat: bool,
    /// The disk under the data, as iostat names it [default: what gives the published means]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Clients of the columns of a table with several: 1,2,3
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = at_least_1())]
    pub clients: Vec<u32>,
    /// Steps of a table of the Insert Benchmark that does not name them, in order: l.i0,l.x,…
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// CPUs of the host that was measured [default: as the tags tell]
    #[arg(long, value_name = "N", value_parser = at_least_1())]
    pub cpus: Option<u32>,
    /// Labels of the rows or columns of a table that does not tell its targets, in order
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    pub labels: Vec<String>,
    /// Several rows of one target and step are repetitions: each becomes a block
    #[arg(long)]
    pub repeats: bool,
}

#[derive(Debug, Args)]
pub(super) struct Export {
    /// Result folders
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Label of the target that others are divided by [default: the first of the plan]
    #[arg(long, value_name = "LABEL")]
    pub base: Option<String>,
    /// A folder of CSV files, or one SQLite database
    #[arg(long, value_enum)]
    pub format: ExportFormat,
    /// The folder or the database to write
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,
    #[command(flatten)]
    pub rules: RuleOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum ExportFormat {
    Csv,
    Sqlite,
}

#[derive(Debug, Args)]
pub(super) struct Builds {
    /// Only builds of this DBMS
    pub dbms: Option<String>,
    #[command(flatten)]
    pub cache: CacheFolder,
}

#[derive(Debug, Args)]
pub(super) struct Get {
    /// Builds to fetch: DBMS@VERSION or DBMS=deb:SUITE/PACKAGE
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub cache: CacheFolder,
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

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum OrderWord {
    Abbreviated,
    Full,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum InterleaveWord {
    Step,
    Run,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum PlacementWord {
    Together,
    Apart,
    Os,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum IdleWord {
    Awake,
    Os,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// `--blocks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlocksWord {
    Number(u32),
    Auto,
}

impl FromStr for BlocksWord {
    type Err = String;

    fn from_str(text: &str) -> Result<BlocksWord, String> {
        match text {
            "auto" => Ok(BlocksWord::Auto),
            _ => text
                .parse()
                .map(BlocksWord::Number)
                .map_err(|_| "write a number from 1 to 999, or auto".to_owned()),
        }
    }
}

fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "write a whole number".to_owned())
}

fn at_least_1() -> RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

fn parse_duration(text: &str) -> Result<Duration, String> {
    units::parse_duration(text).map_err(|error| error.to_string())
}
