//! Options for the workload of a comparison: what, how long, on which CPUs.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::completion;
use rqps_driver::workload::value;
use rqps_lab::benchmarks::StepSet;
use rqps_lab::plan::{Blocks, Interleave, PlanDraft, Sittings};
use rqps_model::units;

/// Headings of the help of commands that measure.
const WORKLOAD: &str = "Workload";
const HOW_LONG: &str = "How long";
pub(super) const HOST: &str = "Host";
pub(super) const HOSTS: &str = "Other hosts";

/// The workload of a comparison.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct WorkloadArgs {
    /// Benchmark: sysbench, insert, kv, vector, ycsb:LETTERS, orders, sql:FILE for your own
    /// statements, pgbench:SCRIPT@WEIGHT,... for scripts of pgbench (a step for each --bench),
    /// lua:SCRIPT,... for scripts of sysbench, or client:PROGRAM for a program of yours
    #[arg(long, value_name = "NAME", default_value = "sysbench", help_heading = WORKLOAD)]
    #[arg(add = ArgValueCompleter::new(completion::benchmark))]
    pub bench: Vec<String>,
    /// Scale: quick, standard, full, or a published shape (see the benchmark's page in docs). With
    /// compare and plan, several such as cpu,io are parts of one report, which pools nothing
    #[arg(long, value_name = "NAME", default_value = "quick", help_heading = WORKLOAD)]
    #[arg(add = ArgValueCompleter::new(completion::presets))]
    pub preset: String,
    /// Order of the sysbench steps: abbreviated (since April 2025, 32 steps), 2025-01 (27) or full
    /// (42) [default: the preset's]
    #[arg(long, value_enum, help_heading = WORKLOAD)]
    pub order: Option<OrderWord>,
    /// Measure only steps whose name matches; !GLOB excludes; repeatable
    #[arg(long, value_name = "GLOB", value_delimiter = ',', help_heading = WORKLOAD)]
    #[arg(add = ArgValueCompleter::new(completion::steps))]
    pub steps: Vec<String>,
    /// Number of blocks; each measures every target once. `auto` stops when every step is decided
    /// [default: 4; doctor --aa: 12]
    #[arg(long, value_name = "N|auto", allow_hyphen_values = true, help_heading = HOW_LONG)]
    pub blocks: Option<BlocksWord>,
    /// With --blocks auto: blocks before the first interim look [default: 4]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u32>)]
    #[arg(help_heading = HOW_LONG)]
    pub min_blocks: Option<u32>,
    /// With --blocks auto: the largest number of blocks [default: 12]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u32>)]
    #[arg(help_heading = HOW_LONG)]
    pub max_blocks: Option<u32>,
    /// With --blocks auto: time limit for everything, loading included, such as 30m
    #[arg(long, value_name = "TIME", value_parser = duration, allow_hyphen_values = true)]
    #[arg(help_heading = HOW_LONG)]
    pub budget: Option<Duration>,
    #[command(flatten)]
    pub sittings: SittingArgs,
    /// Independent loads of each target; block i starts from load i modulo N. With 2 or more, the
    /// load is a step with a verdict. No interval of 1 load contains what another load would give
    /// [default: a load for each block if loading takes less time than a block; else one for each
    /// sitting]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = whole::<u32>)]
    #[arg(help_heading = HOW_LONG)]
    pub loads: Option<u32>,
    /// Run short host checks (canaries) around each block; discard and repeat disturbed blocks,
    /// unless targets take turns within every step
    #[arg(long, value_enum, default_value = "on", help_heading = HOST)]
    pub canaries: Switch,
    /// Concurrent clients, each with its own connection or thread. Several counts such as 1,4,16
    /// run each step once per count [default: the preset's]
    #[arg(long, value_name = "N,...", allow_hyphen_values = true, help_heading = WORKLOAD)]
    pub clients: Option<String>,
    /// Change one setting of the workload, such as rows=1M; repeatable. An unknown key prints the
    /// valid keys
    #[arg(long = "set", value_name = "KEY=VALUE", help_heading = WORKLOAD)]
    #[arg(add = ArgValueCompleter::new(completion::settings))]
    pub settings: Vec<String>,
    /// Memory limit of each target (its server, or the client process that loads a library),
    /// including the page cache of its files, such as 4G: makes data IO-bound on a big machine
    #[arg(long, value_name = "SIZE", help_heading = HOST)]
    pub memory_limit: Option<String>,
    /// Open loop: events per second of all clients together [default: closed loop]
    #[arg(long, value_name = "EVENTS_PER_SECOND", allow_negative_numbers = true)]
    #[arg(help_heading = WORKLOAD)]
    pub rate: Option<f64>,
    /// How targets take turns in a block: every few milliseconds within a step (all servers up), by
    /// step (all servers up) or by run (one server at a time) [default: turns with several targets
    /// and no published preset, with clients on this host; run for the Insert Benchmark; else step]
    #[arg(long, value_enum, help_heading = HOW_LONG)]
    pub interleave: Option<InterleaveWord>,
    /// CPUs of client and server: on the same CPU, on different CPUs, or as the operating system
    /// chooses [default: together for sysbench with at most as many clients as CPUs, else os]
    #[arg(long, value_enum, help_heading = HOST)]
    pub placement: Option<PlacementWord>,
    /// Run the clients on this host, which the system's ssh reaches; repeatable: several hosts
    /// share the clients of each step
    #[arg(long = "client-host", value_name = "USER@HOST", help_heading = HOSTS)]
    pub client_hosts: Vec<String>,
    /// With --on slurm:PARTITION: run the clients of each block on this number of nodes beside the
    /// node of its servers, in one heterogeneous job
    #[arg(long, value_name = "N", help_heading = HOSTS)]
    #[arg(conflicts_with_all = ["client_hosts", "server_host"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100))]
    pub client_nodes: Option<u32>,
    /// Run and load the servers on this host, which the system's ssh reaches; clients stay here, or
    /// on those of --client-host. --work and --cache are then folders there
    #[arg(long, value_name = "USER@HOST", help_heading = HOSTS)]
    pub server_host: Option<String>,
    /// Address of the servers' host at which they listen for clients on other hosts [default: the
    /// one that the first client host sees, or by which ssh reaches the host of --server-host]
    #[arg(long, value_name = "ADDRESS", help_heading = HOSTS)]
    pub server_address: Option<String>,
    /// Idle CPUs: keep them awake, or let the operating system halt them [default: os]
    #[arg(long, value_enum, help_heading = HOST)]
    pub idle: Option<IdleWord>,
    /// Seed of the data, the target order and the statements
    #[arg(
        long,
        help_heading = WORKLOAD,
        value_name = "N",
        default_value_t = 1,
        allow_hyphen_values = true,
        value_parser = whole::<u64>
    )]
    pub seed: u64,
    /// Options of pgbench or sysbench for its scripts, after `--`, such as `-- -s 10`
    #[arg(last = true, value_name = "OPTION", help_heading = WORKLOAD)]
    pub options: Vec<String>,
}

/// Sittings of a plan.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SittingArgs {
    /// Measure in N sittings of --blocks blocks each: with new loads, a new order, other data
    /// folders and programs read anew. Verdicts then contain what sittings differ by [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=200))]
    #[arg(help_heading = HOW_LONG)]
    pub sittings: Option<u32>,
    /// With --sittings: begin one this long after the one before, or when that ends if it takes
    /// longer [default: 5m]
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "sittings")]
    #[arg(help_heading = HOW_LONG)]
    pub every: Option<Duration>,
}

impl SittingArgs {
    /// Has a plan measured in as many sittings, if there are more than one.
    pub(super) fn take(&self, plan: &mut PlanDraft) {
        let Some(number) = self.sittings.filter(|number| *number > 1) else { return };
        if let Blocks::Fixed(each) = plan.blocks {
            plan.blocks = Blocks::Fixed(each.saturating_mul(number));
        }
        let every = self.every.unwrap_or(SITTINGS_EVERY);
        plan.sittings = Some(Sittings { number, every });
    }
}

/// The time between sittings, if none is given.
pub(super) const SITTINGS_EVERY: Duration = Duration::from_mins(5);

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum OrderWord {
    Abbreviated,
    #[value(name = "2025-01")]
    January2025,
    Full,
}

impl OrderWord {
    pub(super) fn steps(self) -> StepSet {
        match self {
            OrderWord::Abbreviated => StepSet::Abbreviated,
            OrderWord::January2025 => StepSet::January2025,
            OrderWord::Full => StepSet::Full,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum InterleaveWord {
    Turns,
    Step,
    Run,
}

impl InterleaveWord {
    pub(super) fn interleave(self) -> Interleave {
        match self {
            InterleaveWord::Turns => Interleave::Turns,
            InterleaveWord::Step => Interleave::Step,
            InterleaveWord::Run => Interleave::Run,
        }
    }
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Switch {
    #[default]
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

pub(super) fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "write a whole number".to_owned())
}

/// A whole number with a unit of powers of 1000.
pub(super) fn number(text: &str) -> Result<u64, String> {
    value::count(text, 0, u64::MAX)
        .map_err(|_| "write a whole number, such as 1000 or 10k".to_owned())
}

/// A time with its unit: 20 could be seconds or minutes.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err(format!("{0} of what? write {0}s, {0}m or {0}h", text.trim())),
        Err(_) => units::parse_duration(text).map_err(|error| error.to_string()),
    }
}
