//! Several workloads in one command: each is a part with a result folder of its own, and one report
//! has them all. Rates of different workloads are never pooled.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::help;
use rqps_driver::workload;
use rqps_import::IMPORTED;
use rqps_lab::benchmarks::StepSet;
use rqps_lab::plan::{Blocks, Interleave, PlanDraft, Sittings, file, words};
use rqps_model::benchmark::Workload;
use rqps_model::build::{BuildSource, Dbms, Setting, Target, config_parts, setting};
use rqps_model::dialect::Dialect;
use rqps_model::{bounded, safe_path, units};

/// Most parts of a command.
const MOST: usize = 64;

/// A workload of a command, and the name of its folder.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) shape: WorkloadArgs,
}

/// The parts that words ask for: one for each preset and combination of swept settings.
///
/// # Errors
/// A preset is named twice, or there are too many.
pub(super) fn of(shape: &WorkloadArgs, sweep: &Sweep) -> Result<Vec<Part>> {
    let mut parts: Vec<Part> = Vec::new();
    for preset in shape.preset.split(',').map(str::trim) {
        if parts.iter().any(|part| part.name == preset) {
            bail!("measure the preset {preset} twice: name each once, and repeat it by --blocks");
        }
        let mut shape = WorkloadArgs { preset: preset.to_owned(), ..shape.clone() };
        shape.settings.extend(sweep.of_steps.iter().cloned());
        parts.push(Part { name: preset.to_owned(), shape });
    }
    for values in &sweep.of_parts {
        let with = |part: &Part, setting: &String| {
            let mut shape = part.shape.clone();
            shape.settings.push(setting.clone());
            Part { name: format!("{}.{setting}", part.name), shape }
        };
        parts = parts.iter().flat_map(|part| values.iter().map(move |it| with(part, it))).collect();
    }
    if let Some(part) = parts.iter().find(|part| part.name.contains('/')) {
        bail!("measure the part {}: its name would be a path; put the value into --set", part.name);
    }
    if parts.len() > MOST {
        bail!("measure {} workloads: a command has at most {MOST} parts", parts.len());
    }
    Ok(parts)
}

/// Folders whose runs may be pooled, with the name of their part.
pub(super) type Pool = (String, Vec<PathBuf>);

/// Divides result folders into those with the same workload, if the same target was measured under
/// different ones, and imported ones from measured ones. A folder of parts stands for them.
///
/// # Errors
/// A folder cannot be listed.
pub(super) fn pools(folders: &[PathBuf]) -> Result<Vec<Pool>> {
    let mut known: Vec<(Option<Said>, PathBuf)> = Vec::new();
    for folder in folders {
        for part in parts_of(folder)? {
            known.push((said(&part), part));
        }
    }
    let told: Vec<&Said> = known.iter().filter_map(|(said, _)| said.as_ref()).collect();
    let is_mixed = |(at, one): (usize, &&Said)| {
        let shares = |other: &&Said| one.labels.iter().any(|label| other.labels.contains(label));
        told[..at].iter().any(|other| other.measured != one.measured && shares(other))
    };
    let imported = told.iter().filter(|said| said.measured.is_none()).count();
    let beside_imported = imported > 0 && imported < known.len();
    if known.is_empty() || !beside_imported && !told.iter().enumerate().any(is_mixed) {
        let all = known.into_iter().map(|(_, folder)| folder).collect();
        return Ok(vec![(String::new(), all)]);
    }
    let mut pools: Vec<(Option<Option<Workload>>, Pool)> = Vec::new();
    for (said, folder) in known {
        let measured = said.map(|said| said.measured);
        match pools.iter_mut().find(|(other, _)| *other == measured) {
            Some((_, (_, folders))) => folders.push(folder),
            None => {
                let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                pools.push((measured, (name, vec![folder])));
            }
        }
    }
    Ok(pools.into_iter().map(|(_, pool)| pool).collect())
}

/// What the plan of a result folder says.
struct Said {
    labels: Vec<String>,
    /// `None` of what others measured.
    measured: Option<Workload>,
}

/// `None` where there is no plan.
fn said(folder: &Path) -> Option<Said> {
    let text = bounded::text(&folder.join("plan.toml"), bounded::WRITTEN_MAX).ok()?;
    if text.starts_with(IMPORTED) {
        return Some(Said { labels: Vec::new(), measured: None });
    }
    let plan = file::draft(&text).ok()?;
    let labels = plan.targets.iter().map(|target| target.label.clone()).collect();
    // Longer windows or another placement measure the same thing.
    let plain = Workload::plain(plan.workload.shape.clone());
    let Workload { tables, rows, clients, client_counts, pace, .. } = plan.workload;
    let Workload { cache_bytes, plain_statements, memory_limit, .. } = plan.workload;
    let measured = Workload {
        tables,
        rows,
        clients,
        client_counts,
        pace,
        cache_bytes,
        plain_statements,
        memory_limit,
        ..plain
    };
    Some(Said { labels, measured: Some(measured) })
}

/// The result folders in a folder of parts; else the folder.
fn parts_of(folder: &Path) -> Result<Vec<PathBuf>> {
    let is_set = |path: &Path| path.join("plan.toml").is_file();
    if is_set(folder) || !folder.join(MARK).is_file() {
        return Ok(vec![folder.to_owned()]);
    }
    let doing = || format!("read the parts in {}", folder.display());
    let text = bounded::text(&folder.join(MARK), bounded::WRITTEN_MAX).with_context(doing)?;
    let named = text.lines().take(MOST);
    let parts = named.filter(|name| !name.contains('/') && !name.starts_with('.'));
    Ok(parts.map(|name| folder.join(name)).filter(|path| is_set(path)).collect())
}

/// The file with the names of the parts of a folder, in their order.
const MARK: &str = "parts";

/// True for a folder of parts.
pub(super) fn is_folder(folder: &Path) -> bool {
    folder.join(MARK).is_file()
}

/// Makes the folder of parts, or takes it up again.
///
/// # Errors
/// It holds something else.
pub(super) fn make_folder(folder: &Path, parts: &[Part]) -> Result<()> {
    let doing = || format!("make the folder of parts {}", folder.display());
    safe_path::make_folder(folder).with_context(doing)?;
    let names: String = parts.iter().map(|part| format!("{}\n", part.name)).collect();
    let mark = folder.join(MARK);
    if mark.exists() {
        if bounded::text(&mark, bounded::WRITTEN_MAX).with_context(doing)? != names {
            bail!("{}: it has other parts; name another folder with --out", doing());
        }
        return Ok(());
    }
    if fs::read_dir(folder).with_context(doing)?.next().is_some() {
        bail!("{}: it is not empty; name another folder with --out", doing());
    }
    // Never through a link that somebody puts there meanwhile.
    let mut file = safe_path::new_file(&mark).with_context(doing)?;
    file.write_all(names.as_bytes()).with_context(doing)
}

// `--sweep KEY=V1,V2`: every combination of values. Settings of servers and libraries make
// targets, rates of a background writer and client counts repeat steps, and all other settings of
// the workload make parts.

/// Most combinations of a sweep.
const SWEPT_MOST: usize = 64;

/// Settings whose values are steps of one plan.
const STEPS: [&str; 3] = ["clients", "threads", "writer_mb"];

/// Short names of options of RocksDB and Speedb.
const SHORT: [(&str, &str); 2] =
    [("fanout", "max_bytes_for_level_multiplier"), ("cache_type", "rqps.cache")];

/// What a sweep asks for.
#[derive(Default)]
pub(super) struct Sweep {
    /// Settings of targets, each a list of `KIND.KEY=VALUE`.
    of_targets: Vec<Vec<String>>,
    /// Settings whose values repeat steps.
    of_steps: Vec<String>,
    /// Settings of parts.
    of_parts: Vec<Vec<String>>,
}

impl Sweep {
    /// Reads the words of `--sweep`.
    ///
    /// # Errors
    /// A word is malformed, a key is there twice, or there are too many combinations.
    pub(super) fn of(said: &[String]) -> Result<Sweep> {
        let mut sweep = Sweep::default();
        let mut keys: Vec<&str> = Vec::new();
        for word in said {
            let Some((key, values)) = word.split_once('=').filter(|(_, it)| it.contains(','))
            else {
                bail!("sweep {word}: write KEY=VALUE,VALUE,…, such as fanout=8,32");
            };
            if keys.contains(&key) {
                bail!("sweep {word}: {key} is there twice; list all values at once");
            }
            keys.push(key);
            if STEPS.contains(&key) {
                sweep.of_steps.push(word.clone());
                continue;
            }
            let short = SHORT.iter().find(|(short, _)| *short == key).map(|(_, key)| *key);
            let option = key.strip_prefix("option.").or(short);
            let key = option.map_or(key.to_owned(), |option| format!("kv.{option}"));
            let mut all: Vec<String> = Vec::new();
            for value in values.split(',').map(str::trim) {
                let value = if value == "hyperclock" { "hyper_clock" } else { value };
                let setting = format!("{key}={value}");
                if value.is_empty() || all.contains(&setting) {
                    bail!("sweep {word}: name each value once");
                }
                all.push(setting);
            }
            match TargetSetting::of(&all[0])? {
                Some(_) => sweep.of_targets.push(all),
                None => sweep.of_parts.push(all),
            }
        }
        let lists = sweep.of_targets.iter().chain(&sweep.of_parts);
        let number = lists.map(Vec::len).fold(1, usize::saturating_mul);
        if number > SWEPT_MOST {
            bail!(
                "sweep {number} combinations: at most {SWEPT_MOST}; fix some settings with --set, or \
                 leave values out"
            );
        }
        Ok(sweep)
    }

    /// All targets: one for each combination of settings that one of these takes.
    ///
    /// # Errors
    /// No target takes a setting, or one has no word any more.
    pub(super) fn targets(&self, configured: Vec<Target>) -> Result<Vec<Target>> {
        if self.of_targets.is_empty() {
            return Ok(configured);
        }
        let mut targets = Vec::new();
        let mut is_taken = vec![false; self.of_targets.len()];
        for target in configured {
            let mut all = vec![target];
            for (values, is_taken) in self.of_targets.iter().zip(&mut is_taken) {
                let settings = divide(values)?.0;
                let takes = |target: &_| settings.iter().any(|it| it.is_of(target));
                if !all.iter().all(takes) {
                    continue;
                }
                *is_taken = true;
                let with = |target: &Target| {
                    let one = |it: &TargetSetting<'_>| {
                        let (key, value) = it.setting;
                        let short = SHORT.iter().find(|(_, long)| *long == key);
                        let shown = short.map_or(key, |(short, _)| *short);
                        let mut target = target.clone();
                        target.label.push_str(&format!(".{shown}-{value}"));
                        target.config.push_str(&format!(",{key}={value}"));
                        target
                    };
                    settings.iter().map(one).collect::<Vec<_>>()
                };
                all = all.iter().flat_map(with).collect();
            }
            targets.extend(all);
        }
        if let Some(at) = is_taken.iter().position(|is_taken| !is_taken) {
            bail!("sweep {}: rqps starts no target that takes it", self.of_targets[at].join(", "));
        }
        Ok(words::targets(&targets.iter().map(words::word).collect::<Vec<_>>())?)
    }
}

// `--set pg.work_mem=64MB`: settings of servers and libraries on the command line.

/// A setting of all targets of a kind.
pub(super) struct TargetSetting<'a> {
    /// The word before the dot.
    kind: &'a str,
    pub(super) setting: Setting<'a>,
}

impl<'a> TargetSetting<'a> {
    /// `my.KEY=VALUE`; `None` for a setting of the workload.
    ///
    /// # Errors
    /// The value may be more than one setting.
    pub(super) fn of(word: &'a str) -> Result<Option<TargetSetting<'a>>> {
        let Some((kind, rest)) = word.split_once('.') else { return Ok(None) };
        if kind.contains('=') || (![MY, KV].contains(&kind) && Dbms::from_name(kind).is_none()) {
            return Ok(None);
        }
        match setting(rest) {
            Some(setting) => Ok(Some(TargetSetting { kind, setting })),
            None => bail!(
                "set {word}: write {kind}.KEY=VALUE with letters, digits and _ . - + %; other \
                 values have a line in a config that begins with `include default`"
            ),
        }
    }

    /// True if rqps starts the target, and it has such settings.
    pub(super) fn is_of(&self, target: &Target) -> bool {
        match self.kind {
            _ if matches!(target.source, BuildSource::Dsn(_)) => false,
            KV => target.dbms.dialect() == Dialect::KeyValue,
            MY => target.dbms.dialect() == Dialect::Mysql,
            name => Dbms::from_name(name) == Some(target.dbms),
        }
    }
}

/// MySQL and MariaDB.
const MY: &str = "my";
/// RocksDB and Speedb.
const KV: &str = "kv";

/// Divides settings into those of targets and those of the workload.
///
/// # Errors
/// A setting of targets is malformed.
pub(super) fn divide(settings: &[String]) -> Result<(Vec<TargetSetting<'_>>, Vec<&String>)> {
    let (mut of_targets, mut of_workload) = (Vec::new(), Vec::new());
    for word in settings {
        match TargetSetting::of(word)? {
            Some(setting) => of_targets.push(setting),
            None => of_workload.push(word),
        }
    }
    Ok((of_targets, of_workload))
}

/// Adds settings to the configurations of the targets that they are for. One that a target's own
/// word sets stays.
///
/// # Errors
/// No target takes a setting.
pub(super) fn put(targets: &mut [Target], settings: &[TargetSetting<'_>]) -> Result<()> {
    for one in settings {
        let (key, value) = one.setting;
        let mut is_taken = false;
        for target in targets.iter_mut().filter(|target| one.is_of(target)) {
            is_taken = true;
            if !config_parts(&target.config).1.iter().any(|(known, _)| *known == key) {
                target.config.push_str(&format!(",{key}={value}"));
            }
        }
        if !is_taken {
            bail!("set {}.{key}: rqps starts no target that takes it", one.kind);
        }
    }
    Ok(())
}

// Options for the workload of a comparison: what, how long, on which CPUs.

/// Headings of the help of commands that measure.
const WORKLOAD: &str = "Workload";
const HOW_LONG: &str = "How long";
pub(super) const HOST: &str = "Host";
pub(super) const HOSTS: &str = "Other hosts";

/// The workload of a comparison.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct WorkloadArgs {
    /// Benchmark: sysbench, insert, kv, vector, ycsb:LETTERS, orders, sql:FILE for your own
    /// statements, trace:FILE[,SQL] to replay a trace, pgbench:SCRIPT@WEIGHT,... for scripts of pgbench (a step for each --bench),
    /// lua:SCRIPT,... for scripts of sysbench, or client:PROGRAM for a program of yours
    #[arg(long, value_name = "NAME", default_value = "sysbench", help_heading = WORKLOAD)]
    #[arg(add = ArgValueCompleter::new(help::benchmark))]
    pub bench: Vec<String>,
    /// Scale: quick, standard, full, or a published shape (see the benchmark's page in docs). With
    /// compare and plan, several such as cpu,io are parts of one report, which pools nothing
    #[arg(long, value_name = "NAME", default_value = "quick", help_heading = WORKLOAD)]
    #[arg(add = ArgValueCompleter::new(help::presets))]
    pub preset: String,
    /// Order of the sysbench steps: abbreviated (since April 2025, 32 steps), 2025-01 (27) or full
    /// (42) [default: the preset's]
    #[arg(long, value_enum, help_heading = WORKLOAD)]
    pub order: Option<OrderWord>,
    /// Measure only steps whose name matches; !GLOB excludes; repeatable
    #[arg(long, value_name = "GLOB", value_delimiter = ',', help_heading = WORKLOAD)]
    #[arg(add = ArgValueCompleter::new(help::steps))]
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
    #[arg(add = ArgValueCompleter::new(help::settings))]
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
    workload::count(text, 0, u64::MAX)
        .map_err(|_| "write a whole number, such as 1000 or 10k".to_owned())
}

/// A time with its unit: 20 could be seconds or minutes.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<f64>() {
        Ok(_) => Err(format!("{0} of what? write {0}s, {0}m or {0}h", text.trim())),
        Err(_) => units::parse_duration(text).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_no_more_parts_than_a_command() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("a/plan.toml"), "").unwrap();
        let named = |names: &str| {
            fs::write(folder.path().join(MARK), names).unwrap();
            parts_of(folder.path()).unwrap().len()
        };
        assert_eq!(named("a\n../a\n.a\nb\n"), 1);
        assert_eq!(named(&"a\n".repeat(1000)), MOST);
    }
}
