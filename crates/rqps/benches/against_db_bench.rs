//! Compares rqps with db_bench, RocksDB's own benchmark program: same library file, options, keys
//! and threads, in turn. Shows whether both measure the same rate, and the client's cost of an
//! operation outside the library.
//!
//!     cargo bench --bench against_db_bench -- --help
//!
//! docs/performance.md explains the method and has the results.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;
use rqps_dbms::config;
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverRequest, RequestBody, StepRequest, VERSION};
use rqps_embed::rocksdb::marker::{Marker, State, database_folder};
use rqps_lab::benchmarks;
use rqps_lab::lab::HostLock;
use rqps_model::benchmark::{Phase, Step, Workload};
use rqps_model::build::{Dbms, Version};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Endpoint, Login};
use rqps_model::kv::KvWork;
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;
use rqps_stats::paired::mean_interval;

/// The compared steps: name in rqps, benchmark of db_bench.
const STEPS: [(&str, &str); 4] = [
    (FILL, "fillseq"),
    ("readrandom", "readrandom"),
    ("fwdrange", "seekrandom"),
    ("overwriteandwait", "overwrite"),
];

/// The step that loads.
const FILL: &str = "fillseq";
/// The step that flushes and compacts.
const ORDER: &str = "flush_mt_l0";

/// rqps and db_bench in turns on one librocksdb.
#[derive(Parser)]
struct Options {
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
    /// The program; Debian's package rocksdb-tools has it.
    #[arg(long, default_value = "db_bench")]
    db_bench: PathBuf,
    /// The library that it is linked with.
    #[arg(long, default_value = "/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8")]
    library: PathBuf,
    /// Keys.
    #[arg(long, default_value_t = 1_000_000)]
    keys: u64,
    /// Clients of all steps but fillseq.
    #[arg(long, default_value_t = 1)]
    clients: u32,
    /// Seconds of a step.
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Rounds; in each both programs run every step.
    #[arg(long, default_value_t = 8)]
    rounds: u32,
    /// Folder for databases; rqps removes them at the end. A folder in memory excludes the disk.
    #[arg(long, default_value = "/dev/shm")]
    work: PathBuf,
}

fn main() -> ExitCode {
    match compare(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("against_db_bench: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<()> {
    let named = std::env::var_os("RQPS_HOST_LOCK").map(|path| HostLock::named(path.into()));
    let lock = named.unwrap_or_else(|| HostLock::of_user(None));
    let _alone = lock
        .hold("the bench against db_bench")
        .context("measure on this host: each would be noise to the other")?;
    let folder = tempfile::Builder::new()
        .prefix("against-db-bench-")
        .tempdir_in(&options.work)
        .with_context(|| format!("make a folder in {}", options.work.display()))?;
    let (mut workload, _) = benchmarks::workload("kv", "quick").map_err(anyhow::Error::msg)?;
    for setting in [
        format!("keys={}", options.keys),
        format!("clients={}", options.clients),
        format!("seconds={}", options.seconds),
        "limits_scale=1".to_owned(),
    ] {
        benchmarks::set(&mut workload, &setting)?;
    }
    let mut results: Vec<Vec<Pair>> = vec![Vec::new(); STEPS.len()];
    for round in 0..options.rounds {
        let folders = Folders::of(folder.path())?;
        for (place, (name, benchmark)) in STEPS.into_iter().enumerate() {
            let step = step(&workload, name)?;
            let seed = u64::from(round) + 1;
            if name != FILL {
                folders.copy()?;
            }
            let rqps_first = (round as usize + place).is_multiple_of(2);
            let mut pair = Pair::default();
            for rqps in [rqps_first, !rqps_first] {
                if rqps {
                    pair.outcome = run_rqps(options, &workload, &step, &folders.rqps, seed)?;
                } else {
                    let theirs = &folders.db_bench;
                    pair.db_bench = run_db_bench(options, &workload, benchmark, theirs, seed)?;
                }
            }
            eprintln!(
                "round {}/{} {name}: rqps {:.0}, db_bench {:.0} ops/s",
                round + 1,
                options.rounds,
                pair.rqps(),
                pair.db_bench
            );
            results[place].push(pair);
            if name == FILL {
                let order = self::step(&workload, ORDER)?;
                run_rqps(options, &workload, &order, &folders.rqps, seed)?;
                folders.keep()?;
            }
        }
        folders.remove()?;
    }
    print_table(options, &results);
    Ok(())
}

/// The databases of a round. The result of fillseq varies: the number of files in level 0 depends
/// on the times of flushes and compactions. So the later steps of both programs begin with copies
/// of one database.
struct Folders {
    rqps: PathBuf,
    db_bench: PathBuf,
    kept: PathBuf,
}

impl Folders {
    /// Makes empty folders.
    fn of(parent: &Path) -> Result<Folders> {
        let [rqps, db_bench, kept] = ["rqps", "db_bench", "kept"].map(|name| parent.join(name));
        let folders = Folders { rqps, db_bench, kept };
        folders.make(State::Empty)?;
        Ok(folders)
    }

    fn make(&self, state: State) -> Result<()> {
        fs::create_dir(&self.rqps)
            .and_then(|()| fs::create_dir(&self.db_bench))
            .and_then(|()| Marker::new(state).write(&self.rqps))
            .context("make folders")
    }

    /// Stores the database of rqps.
    fn keep(&self) -> Result<()> {
        fs::rename(database_folder(&self.rqps), &self.kept).context("put the database aside")
    }

    /// Copies the stored database for both programs.
    fn copy(&self) -> Result<()> {
        self.remove_used()?;
        self.make(State::Filled)?;
        let ours = database_folder(&self.rqps);
        fs::create_dir(&ours).context("make folders")?;
        for entry in fs::read_dir(&self.kept).context("read the database")? {
            let entry = entry.context("read the database")?;
            for folder in [&ours, &self.db_bench] {
                fs::copy(entry.path(), folder.join(entry.file_name()))
                    .context("copy the database")?;
            }
        }
        Ok(())
    }

    fn remove_used(&self) -> Result<()> {
        fs::remove_dir_all(&self.rqps)
            .and_then(|()| fs::remove_dir_all(&self.db_bench))
            .context("clean up")
    }

    fn remove(&self) -> Result<()> {
        self.remove_used()?;
        fs::remove_dir_all(&self.kept).context("clean up")
    }
}

/// One step in one round.
#[derive(Clone, Debug, Default)]
struct Pair {
    outcome: Outcome,
    db_bench: f64,
}

impl Pair {
    fn rqps(&self) -> f64 {
        self.outcome.statements as f64 / self.outcome.seconds.max(f64::MIN_POSITIVE)
    }
}

fn print_table(options: &Options, results: &[Vec<Pair>]) {
    println!(
        "{} keys of 20 + 400 bytes, {} clients, {} s, {} rounds; {}",
        options.keys,
        options.clients,
        options.seconds,
        options.rounds,
        options.library.display()
    );
    println!();
    println!(
        "| step | rqps ops/s | db_bench ops/s | ratio | 95 % interval | >= 1 | client ns/op |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for ((name, _), pairs) in STEPS.iter().zip(results) {
        let mean = |get: &dyn Fn(&Pair) -> f64| {
            let sum: f64 = pairs.iter().map(|pair| get(pair).max(1e-9).ln()).sum();
            (sum / pairs.len().max(1) as f64).exp()
        };
        let differences: Vec<f64> =
            pairs.iter().map(|pair| (pair.rqps() / pair.db_bench).ln()).collect();
        let Some(ratio) = mean_interval(&differences, 0.95) else { continue };
        let (interval, reaches) = match ratio.interval {
            Some(ends) => (
                format!("{:.3} … {:.3}", ends.low.exp(), ends.high.exp()),
                if ends.high >= 0.0 { "yes" } else { "no" },
            ),
            None => ("-".to_owned(), "-"),
        };
        let overhead =
            mean(&|pair| pair.outcome.extra.get(&Metric::ClientOverhead).copied().unwrap_or(0.0));
        println!(
            "| {name} | {:.0} | {:.0} | {:.3} | {interval} | {reaches} | {overhead:.0} |",
            mean(&|pair| pair.rqps()),
            mean(&|pair| pair.db_bench),
            ratio.mean.exp(),
        );
    }
}

/// The step of this name as in rqps's benchmark, without the maintenance after it.
fn step(workload: &Workload, name: &str) -> Result<Step> {
    let phases = benchmarks::phases(Dialect::KeyValue, benchmarks::StepSet::Full, workload);
    let step = phases.into_iter().find_map(|phase| match phase {
        Phase::Measure(step) if step.name == name => Some(*step),
        _ => None,
    });
    let mut step = step.with_context(|| format!("find the step {name} in the benchmark"))?;
    let mut work: KvWork =
        step.own().cloned().with_context(|| format!("measure {name}: no step of kv"))?;
    if name != ORDER {
        work.after.clear();
        step.work = work.into();
    }
    Ok(step)
}

fn cache_bytes(workload: &Workload) -> u64 {
    // All data fit in both programs.
    (workload.rows * 420 * 2).max(256 << 20)
}

fn run_rqps(
    options: &Options,
    workload: &Workload,
    step: &Step,
    data: &Path,
    seed: u64,
) -> Result<Outcome> {
    let version = Version::new("7.8.3");
    let config = config::load(
        Dbms::Rocksdb,
        "default",
        &Default::default(),
        &version,
        cache_bytes(workload),
    )?;
    let request = DriverRequest {
        version: VERSION,
        dialect: Dialect::KeyValue,
        endpoint: Endpoint::File {
            path: data.to_owned(),
            library: Some(options.library.canonicalize().context("find the library")?),
        },
        login: Login::default(),
        target: None,
        session_setup: config.text.lines().map(str::to_owned).collect(),
        mark: None,
        seed,
        tables: 1,
        rows: workload.rows,
        pause: false,
        task: RequestBody::Step(Box::new(StepRequest {
            warmup_seconds: 0.0,
            ..StepRequest::of(step, workload)
        })),
        away: None,
        turns: None,
        standstill: None,
        counted_events: None,
        asks: false,
        only_reads: false,
        scratch: None,
        places: None,
    };
    drive(&request)
}

/// Sends a request to a driver process and reads its events.
fn drive(request: &DriverRequest) -> Result<Outcome> {
    let program = env!("CARGO_BIN_EXE_rqps");
    let mut child = Command::new(program)
        .arg("driver")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("start {program} driver"))?;
    let mut input = child.stdin.take().context("the driver has no standard input")?;
    let output = child.stdout.take().context("the driver has no standard output")?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    input.write_all(&line).context("send the driver its request")?;
    let mut measured = None;
    for line in BufReader::new(output).lines() {
        match serde_json::from_str(&line.context("listen to the driver")?)? {
            DriverEvent::Failed { fault } => bail!("{fault}"),
            DriverEvent::Measured(outcome) => measured = Some(*outcome),
            _ => {}
        }
    }
    child.wait().context("wait for the driver")?;
    measured.context("hear the driver out: it measured nothing")
}

fn run_db_bench(
    options: &Options,
    workload: &Workload,
    benchmark: &str,
    folder: &Path,
    seed: u64,
) -> Result<f64> {
    let output = Command::new(&options.db_bench)
        .args(flags(options, workload, benchmark, folder, seed))
        .output()
        .with_context(|| {
            format!("run {}: install Debian's rocksdb-tools", options.db_bench.display())
        })?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().rev().find_map(|line| {
        let (name, rest) = line.split_once(':')?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let place = words.iter().position(|word| *word == "ops/sec")?;
        (name.trim() == benchmark).then(|| words.get(place.checked_sub(1)?)?.parse().ok())?
    });
    rate.with_context(|| {
        format!("find the rate in what db_bench said: {text}{}", {
            String::from_utf8_lossy(&output.stderr)
        })
    })
}

/// The options of `benchmarks::kv` as flags of db_bench.
fn flags(
    options: &Options,
    workload: &Workload,
    benchmark: &str,
    folder: &Path,
    seed: u64,
) -> Vec<String> {
    let fills = benchmark == "fillseq";
    let mut flags = COMMON_FLAGS.iter().map(|flag| format!("--{flag}")).collect::<Vec<_>>();
    flags.extend([
        format!("--benchmarks={benchmark}"),
        format!("--db={}", folder.display()),
        format!("--num={}", workload.rows),
        format!("--seed={seed}"),
        format!("--cache_size={}", cache_bytes(workload) >> 20 << 20),
        format!("--threads={}", if fills { 1 } else { options.clients }),
        format!("--use_existing_db={}", u8::from(!fills)),
        format!("--disable_wal={}", u8::from(fills)),
    ]);
    if fills {
        flags.push("--memtablerep=vector".to_owned());
        flags.push("--allow_concurrent_memtable_write=false".to_owned());
    } else {
        flags.push(format!("--duration={}", options.seconds));
    }
    flags
}

const COMMON_FLAGS: [&str; 38] = [
    "key_size=20",
    "value_size=400",
    "compression_type=none",
    "compression_ratio=0.5",
    "histogram=1",
    "statistics=0",
    "sync=0",
    "seek_nexts=10",
    "verify_checksum=1",
    "checksum_type=3",
    "cache_numshardbits=6",
    "cache_high_pri_pool_ratio=0.5",
    "block_size=8192",
    "bloom_bits=10",
    "cache_index_and_filter_blocks=1",
    "pin_l0_filter_and_index_blocks_in_cache=1",
    "index_shortening_mode=2",
    "write_buffer_size=16777216",
    "max_write_buffer_number=8",
    "target_file_size_base=16777216",
    "max_bytes_for_level_base=67108864",
    "max_bytes_for_level_multiplier=8",
    "num_levels=8",
    "level_compaction_dynamic_level_bytes=true",
    "level0_file_num_compaction_trigger=4",
    "level0_slowdown_writes_trigger=20",
    "level0_stop_writes_trigger=30",
    "max_background_jobs=3",
    "open_files=-1",
    "table_cache_numshardbits=4",
    "soft_pending_compaction_bytes_limit=68719476736",
    "hard_pending_compaction_bytes_limit=137438953472",
    "delayed_write_rate=8388608",
    "enable_pipelined_write=true",
    "bytes_per_sync=1048576",
    "compaction_readahead_size=2097152",
    "cache_type=lru_cache",
    "memtable_use_huge_page=false",
];
