//! Command line of the comparison with another program.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;
use rqps_model::benchmark::Placement;

/// Few rows, so that a smoke run takes seconds. Its figures are meaningless.
const SMOKE_ROWS: u64 = 2000;

/// One case per value of [`super::Fresh`], and a script.
const SMOKE_CASES: [&str; 4] = ["point-query", "write-only", "insert", "lua-point-select"];

/// Compare rqps with sysbench 1.0 or pgbench on the same running servers, the two programs in turn.
///
/// Tables go to stdout, progress to stderr. Without --bench, which cargo bench passes, this is a
/// smoke run.
#[derive(Clone, Debug, Parser)]
#[command(name = "against_sysbench")]
pub(crate) struct Options {
    /// Builds to run as servers: Postgres, MySQL, MariaDB.
    #[arg(long, value_delimiter = ',', default_value = "postgres@17.2.0,mysql@8.0.33")]
    pub(crate) targets: Vec<String>,
    /// The cases. Default: steps of rqps against sysbench: point-query, read-only,
    /// update-index, update-nonindex, write-only, delete, insert. Scripts of sysbench in both
    /// programs: lua-point-select, lua-read-only, lua-read-write, lua-update-index, lua-tpcc. Those
    /// of pgbench: pgbench-select-only, pgbench-tpcb-like. Own SQL against steps of rqps:
    /// sql-point, sql-update.
    #[arg(long, value_delimiter = ',')]
    pub(crate) cases: Vec<String>,
    /// Placements of client and server: together, apart, os.
    #[arg(long, value_delimiter = ',', default_value = "together,apart,os")]
    pub(crate) placements: Vec<String>,
    /// Pairs of runs for each case and placement, in ABBA order.
    #[arg(long, default_value_t = 10)]
    pub(crate) alternations: u32,
    /// Measured seconds of a run.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// Seconds of a run before the measured ones. sysbench counts them in whole.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) warmup: u32,
    /// Connections, each with a thread of its own.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) clients: u32,
    /// Scale of pgbench's tables.
    #[arg(long, default_value_t = 10)]
    pub(crate) scale: u32,
    /// Folder of Percona's sysbench-tpcc, for lua-tpcc.
    #[arg(long)]
    pub(crate) tpcc: Option<PathBuf>,
    /// Rows of the table.
    #[arg(long, default_value_t = 300_000)]
    pub(crate) rows: u64,
    /// Rows for the comparison of loading.
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) load_rows: u64,
    /// Pairs of loads; 0 leaves loading out.
    #[arg(long, default_value_t = 3)]
    pub(crate) load_alternations: u32,
    /// Clients when the memory of the driver is read; 0 leaves it out.
    #[arg(long, default_value_t = 64)]
    pub(crate) memory_clients: u32,
    /// Keep idle CPUs from halting.
    #[arg(long)]
    pub(crate) awake: bool,
    /// Seed of everything random.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Cache of builds; /var/cache/rqps for root, else the XDG cache folder.
    #[arg(long, env = "RQPS_CACHE")]
    pub(crate) cache: Option<PathBuf>,
    /// Folder for the servers' data.
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) work: PathBuf,
    /// Print tables as Markdown.
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Do all of it once and tiny: to see that it works.
    #[arg(long)]
    pub(crate) smoke: bool,
    /// Passed by cargo bench.
    #[arg(long, hide = true)]
    pub(crate) bench: bool,
}

impl Options {
    /// The effective options: a smoke run is small in any case.
    pub(crate) fn settled(mut self) -> Options {
        if self.smoke || !self.bench {
            self.smoke = true;
            if self.cases.is_empty() {
                self.cases = SMOKE_CASES.map(str::to_owned).to_vec();
            }
            self.placements.truncate(1);
            self.alternations = 1;
            (self.warmup, self.seconds) = (1, 1);
            (self.rows, self.load_rows) = (SMOKE_ROWS, SMOKE_ROWS);
            self.load_alternations = self.load_alternations.min(1);
            self.memory_clients = self.memory_clients.min(4);
        }
        self
    }

    /// The cache of builds.
    pub(crate) fn cache_folder(&self) -> Result<PathBuf> {
        if let Some(said) = &self.cache {
            return Ok(said.clone());
        }
        if rqps_host::user::is_root() {
            return Ok("/var/cache/rqps".into());
        }
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        match (variable("XDG_CACHE_HOME"), variable("HOME")) {
            (Some(folder), _) => Ok(PathBuf::from(folder).join("rqps")),
            (None, Some(home)) => Ok(PathBuf::from(home).join(".cache/rqps")),
            (None, None) => bail!("find the cache of builds: name it with --cache"),
        }
    }

    /// The named placements.
    pub(crate) fn placements(&self) -> Result<Vec<Placement>> {
        let placement = |name: &String| match name.as_str() {
            "together" => Ok(Placement::Together),
            "apart" => Ok(Placement::Apart),
            "os" => Ok(Placement::Os),
            other => bail!("use the placement {other}: there are together, apart and os"),
        };
        self.placements.iter().map(placement).collect()
    }
}

/// The name of a placement in options and tables.
pub(crate) fn name(placement: Placement) -> &'static str {
    match placement {
        Placement::Together => "together",
        Placement::Apart => "apart",
        Placement::Os => "os",
    }
}
