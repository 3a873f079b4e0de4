//! The command line: words and options as they were said. What they mean is decided elsewhere.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Print the plan of a comparison, and its cost, instead of running it
    Plan(Compare),
    /// Run a plan file, or go on with a result folder
    Run(Run),
    /// Report what result folders hold
    Report(Report),
    /// List obtainable builds
    Builds(Builds),
    /// Fetch and verify builds into the cache
    Get(Get),
    #[command(hide = true)]
    Driver,
    #[command(hide = true, name = crate::dbms::SQLITE_COMMAND)]
    SqliteProcess,
    #[command(hide = true)]
    Warden,
    #[command(hide = true)]
    Spinner,
}

#[derive(Debug, Args)]
pub(super) struct Quickstart {
    /// Result folder [default: a new folder in ./rqps-results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct Compare {
    /// What to measure: DBMS@VERSION, DBMS=deb:SUITE/PACKAGE, DBMS=PATH, sqlite, or a DSN; each may
    /// begin with LABEL= and end in :CONFIG (examples: mysql@8.0.33  old=postgres=/opt/pg:big  postgres://user@host/db)
    #[arg(required = true, value_name = "TARGET")]
    pub targets: Vec<String>,
    #[command(flatten)]
    pub shape: Shape,
    #[command(flatten)]
    pub folders: Folders,
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

/// What a comparison measures.
#[derive(Debug, Args)]
pub(super) struct Shape {
    /// Benchmark
    #[arg(long, value_name = "NAME", default_value = "sysbench")]
    pub bench: String,
    /// Scale: quick, standard, full, or a published shape (see docs/sysbench.md)
    #[arg(long, value_name = "NAME", default_value = "quick")]
    pub preset: String,
    /// Sequence of steps: abbreviated (since 2025) or full (42) [default: the preset's]
    #[arg(long, value_enum)]
    pub order: Option<OrderWord>,
    /// Only steps whose name matches; may be given several times; !GLOB leaves out
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    pub steps: Vec<String>,
    /// Rounds; each measures every target once
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub blocks: u32,
    /// Concurrent connections
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// Change the workload: tables, rows, read_seconds, write_seconds, warmup_seconds,
    /// settle_scale,
    /// cache (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
    /// Events per second of all clients together on an open schedule [default: closed loop]
    #[arg(long, value_name = "EVENTS_PER_SECOND")]
    pub rate: Option<f64>,
    /// How targets take turns in a block: by step (all servers up) or by run (one server at a time)
    #[arg(long, value_enum, default_value = "step")]
    pub interleave: InterleaveWord,
    /// Where client and server run [default: together if there are no more clients than CPUs, else
    /// os]
    #[arg(long, value_enum)]
    pub placement: Option<PlacementWord>,
    /// What idle CPUs do: kept awake, or left to the operating system
    #[arg(long, value_enum, default_value = "os")]
    pub idle: IdleWord,
    /// Seed of data, order and statements
    #[arg(long, value_name = "N", default_value_t = 1)]
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
    /// Where data and snapshots go while measuring [default: beside the results]
    #[arg(long, value_name = "DIR", env = "RQPS_WORK")]
    pub work: Option<PathBuf>,
    #[command(flatten)]
    pub cache: CacheFolder,
}

#[derive(Debug, Args)]
pub(super) struct CacheFolder {
    /// Cache of builds [default: /var/cache/rqps as root, else the XDG cache folder]
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
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
}

#[derive(Debug, Args)]
pub(super) struct Report {
    /// Result folders
    #[arg(required = true, value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Label of the target that others are divided by [default: the first of the plan]
    #[arg(long, value_name = "LABEL")]
    pub base: Option<String>,
    /// Form of the report
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Write it to a file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
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
    /// Builds to fetch: DBMS@VERSION
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
