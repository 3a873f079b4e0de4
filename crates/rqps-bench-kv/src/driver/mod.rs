//! Carries out the steps of the RocksDB sequence.
//!
//! A step of the RocksDB sequence: opens the database, runs clients and the background writer,
//! maintains the tree, and reads the library's statistics.

mod client;
mod workers;

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::rows::key;
use rqps_driver::clock::SECOND;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::{DriverEvent, StepInterval};
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::worker_pool::Events;
use rqps_driver::{Stop, placement};
use rqps_embed::rocksdb::marker::{Marker, State, database_folder};
use rqps_embed::rocksdb::{
    CacheKind, Database, Durability, Handle, Rocksdb, RocksdbError, RocksdbOptions, facts,
};
use rqps_host::clock::{self, RealClock, TimeSource as _};
use rqps_host::{affinity, proc, tree};
use rqps_model::endpoint::Endpoint;
use rqps_model::kv::{KvMaintenance, KvOperation, KvWork};
use rqps_model::metric::Metric;
use rqps_model::rocksdb::{CacheWord, DriverSettings, KvOption};
use rqps_model::run::Outcome;

/// Properties to keep as texts: name of the text, names of the property in different versions.
const TEXTS: &[(&str, &[&std::ffi::CStr])] = &[
    ("stats", &[c"rocksdb.stats"]),
    ("levelstats", &[c"rocksdb.levelstats"]),
    ("cf-write-stalls", &[c"rocksdb.cf-write-stall-stats"]),
    ("db-write-stalls", &[c"rocksdb.db-write-stall-stats"]),
];

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    measure(request, &task.own()?, control)
}

/// Carries out a step and sends its progress.
fn measure<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<KvWork>,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let work = &task.work;
    let mut setup = Setup::of(request, work)?;
    let fills = work.action == KvOperation::FillSequential;
    if fills {
        mark(&setup, State::Filling)?;
    }
    let measured = run(request, task, &mut setup, control);
    if let (true, Err(Stop::Fault(why))) = (fills, &measured) {
        // Later steps must not measure a half-loaded database.
        let _ = mark(&setup, State::Broken(why.clone()));
    }
    let outcome = measured?;
    if fills {
        mark(&setup, State::Filled)?;
    }
    control.send(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}

fn mark(setup: &Setup, state: State) -> Result<(), String> {
    let data = &setup.data;
    Marker::new(state)
        .write(data)
        .map_err(|error| format!("failed to write into {}: {error}", data.display()))
}

fn run<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<KvWork>,
    setup: &mut Setup,
    control: &mut ControlChannel<W>,
) -> Result<Outcome, Stop> {
    let work = &task.work;
    // Time under valgrind is meaningless, and the work that operations leave is counted with them.
    let is_timed = request.counted_events.is_none();
    let overhead = is_timed.then(|| client::overhead(work)).flatten();
    let opened = RealClock::new();
    let writer_mb = setup.writer_mb(work);
    let cpus = affinity::allowed_cpus();
    let threads = work.clients + u32::from(writer_mb.is_some());
    let seating = placement::plan_library(task.placement, threads);
    let database = setup.open();
    placement::rise(&cpus);
    let database = Arc::new(database?);
    control.send(&DriverEvent::Warming)?;
    let mut outcome = match work.action {
        KvOperation::Maintain => maintain_alone(&database, work, control)?,
        _ => workers::measure(request, task, (writer_mb, seating), &database, control)?,
    };
    if is_timed && work.action != KvOperation::Maintain && !work.after.is_empty() {
        control.send(&DriverEvent::WindowEnd)?;
        let begun = RealClock::new();
        carry_out(&database, &work.after, control)?;
        outcome.extra.insert(Metric::DrainSeconds, seconds_since(begun));
    }
    if let Some(overhead) = overhead {
        outcome.extra.insert(Metric::ClientOverhead, overhead);
    }
    outcome.facts = texts(&database);
    outcome.extra.insert(Metric::Uptime, seconds_since(opened));
    // Closing writes unsaved data, which is part of the cost of the process.
    drop(database);
    if let Ok(Some(facts)) = facts(&setup.database) {
        outcome.facts.insert("library".to_owned(), facts.line());
    }
    outcome.notes.splice(..0, setup.notes.drain(..));
    put_process(&mut outcome);
    Ok(outcome)
}

fn seconds_since(begun: RealClock) -> f64 {
    begun.now_ns() as f64 / SECOND
}

/// Adds the costs of the whole process, including opening, maintenance and closing.
fn put_process(outcome: &mut Outcome) {
    let cpu = tree::own_cpu().since(tree::Cpu::default());
    outcome.extra.insert(Metric::UserCpu, cpu.user_us / 1e9);
    outcome.extra.insert(Metric::SystemCpu, cpu.system_us / 1e9);
    match peak_rss_bytes() {
        Some(bytes) => {
            outcome.extra.insert(Metric::PeakRss, bytes as f64 / (1u64 << 30) as f64);
        }
        None => outcome.notes.push("peak resident memory is unavailable".to_owned()),
    }
}

/// `VmHWM` of this process.
fn peak_rss_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes << 10)
}

fn texts(database: &Database) -> BTreeMap<String, String> {
    let found = TEXTS.iter().filter_map(|(name, properties)| {
        let text = properties.iter().find_map(|property| database.property(property))?;
        Some(((*name).to_owned(), text))
    });
    found.collect()
}

/// A step of maintenance only; its window is the maintenance.
fn maintain_alone<W: Write>(
    database: &Database,
    work: &KvWork,
    control: &mut ControlChannel<W>,
) -> Result<Outcome, Stop> {
    let cpu = tree::own_cpu();
    let begun = RealClock::new();
    control.send(&DriverEvent::WindowStart { at_ns: clock::monotonic_ns() })?;
    carry_out(database, &work.after, control)?;
    let seconds = seconds_since(begun);
    control.send(&DriverEvent::Interval(StepInterval {
        second: 1,
        seconds,
        ..StepInterval::default()
    }))?;
    Ok(Outcome { seconds, client_cpu: tree::own_cpu().since(cpu), ..Outcome::default() })
}

// Prepares the opening of the database: options, block cache, and a check of the folder.

/// Share of the LRU cache for indexes and filters that are in the cache, as in db_bench.
const HIGH_PRIORITY: f64 = 0.5;

/// Everything that opening the database needs.
pub(super) struct Setup {
    /// The data folder, with rqps's marker.
    pub(super) data: PathBuf,
    /// The database's own folder in it.
    pub(super) database: PathBuf,
    /// Settings that could not be made, in words.
    pub(super) notes: Vec<String>,
    library: PathBuf,
    settings: DriverSettings,
    options: Vec<KvOption>,
}

impl Setup {
    /// Reads the request. Errors are complete messages, here and below.
    pub(super) fn of(request: &DriverRequest, work: &KvWork) -> Result<Setup, String> {
        let Endpoint::File { path: data, library: Some(library) } = &request.endpoint else {
            return Err("failed to measure: the benchmark kv needs RocksDB or Speedb".to_owned());
        };
        let mut config = Vec::new();
        for line in &request.session_setup {
            config.push(KvOption::parse(line).map_err(|error| format!("failed to {error}"))?);
        }
        let layers = [&work.options[..], &config[..], &work.overrides[..]];
        let (settings, options) = DriverSettings::take(KvOption::layered(layers))
            .map_err(|error| format!("failed to {error}"))?;
        let setup = Setup {
            data: data.clone(),
            database: database_folder(data),
            notes: Vec::new(),
            library: library.clone(),
            settings,
            options,
        };
        setup.check_folder(work.action)?;
        setup.check_memory()?;
        Ok(setup)
    }

    /// The limit of the background writer, MB/s: the config's, or else the workload's. A step that
    /// is named after its limit ignores the config.
    pub(super) fn writer_mb(&self, work: &KvWork) -> Option<f64> {
        let config = self.settings.writer_mb.filter(|_| !work.writer_named);
        work.writer_mb.map(|mb| config.unwrap_or(mb)).filter(|mb| *mb > 0.0)
    }

    /// Refuses a folder that rqps did not make, and a half-loaded database.
    fn check_folder(&self, action: KvOperation) -> Result<(), String> {
        let folder = self.data.display();
        let marker = Marker::read(&self.data)
            .map_err(|error| format!("failed to look into {folder}: {error}"))?;
        let state = match marker {
            Some(marker) => marker.state,
            None => {
                return Err(format!(
                    "failed to use {folder}: rqps did not make this database, and only uses its \
                     own; name another folder with --work"
                ));
            }
        };
        match (action, state) {
            (KvOperation::FillSequential, State::Empty) if !self.database.exists() => Ok(()),
            (KvOperation::FillSequential, _) => {
                Err(format!("failed to fill {folder}: it already holds a database"))
            }
            (_, State::Filled) => Ok(()),
            (_, State::Broken(why)) => Err(format!("failed to measure: no filled database: {why}")),
            (_, State::Empty | State::Filling) => {
                Err("failed to measure: no filled database; run fillseq first".to_owned())
            }
        }
    }

    fn check_memory(&self) -> Result<(), String> {
        let Some(megabytes) = self.settings.cache_mb else { return Ok(()) };
        let memory = std::fs::read_to_string("/proc/meminfo").ok();
        let memory = memory.and_then(|text| proc::memory(&text).ok());
        let total = memory.map_or(u64::MAX, |memory| memory.total_bytes >> 20);
        if megabytes < total {
            return Ok(());
        }
        Err(format!(
            "failed to make a block cache of {megabytes} MiB: this machine has {total} MiB of \
             memory; use --set cache=SIZE with a smaller size"
        ))
    }

    /// Loads the library and opens the database.
    pub(super) fn open(&mut self) -> Result<Database, String> {
        let failed = |error: rqps_embed::rocksdb::RocksdbError| format!("failed to {error}");
        let rocksdb = Arc::new(Rocksdb::load(&self.library).map_err(failed)?);
        let mut options = RocksdbOptions::new(&rocksdb);
        match self.settings.cache_mb {
            Some(megabytes) => {
                let kind = self.cache_kind()?;
                let block = self.value("table.block_size").and_then(|text| text.parse().ok());
                let in_cache = self.value("table.cache_index_and_filter_blocks") == Some("true");
                let share = if in_cache { HIGH_PRIORITY } else { 0.0 };
                options
                    .set_cache(kind, megabytes << 20, block.unwrap_or(4096), share)
                    .map_err(failed)?;
            }
            None => self.notes.push(
                "the config has no rqps.cache_mb, so the block cache is the library's default"
                    .to_owned(),
            ),
        }
        for rejected in options.set_all(&self.options).map_err(failed)? {
            self.notes.push(format!(
                "skipped the option {}={}: {}",
                rejected.option.key, rejected.option.value, rejected.said
            ));
        }
        Database::open(options, &self.database).map_err(failed)
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.options.iter().find(|option| option.key == key).map(|option| option.value.as_str())
    }

    /// The kind of cache that this version supports.
    fn cache_kind(&mut self) -> Result<CacheKind, String> {
        let version = rqps_model::build::Version::new(
            self.settings.version.iter().map(u32::to_string).collect::<Vec<_>>().join("."),
        );
        let (auto, fixed) = (version.at_least(&[8, 6]), version.at_least(&[8, 1]));
        match self.settings.cache {
            CacheWord::Lru => Ok(CacheKind::Lru),
            CacheWord::HyperClock | CacheWord::Best if auto => Ok(CacheKind::AutoHyperClock),
            CacheWord::HyperClock | CacheWord::FixedHyperClock | CacheWord::Best if fixed => {
                Ok(CacheKind::FixedHyperClock)
            }
            CacheWord::Best => {
                self.notes.push(format!(
                    "the block cache is LRU: the C API of RocksDB {version} has no hyper clock \
                     cache"
                ));
                Ok(CacheKind::Lru)
            }
            CacheWord::HyperClock | CacheWord::FixedHyperClock => Err(format!(
                "failed to make a hyper clock cache: RocksDB {version} lacks it (the C API has it \
                 since 8.1, growing since 8.6); use the config lru or best-cache"
            )),
        }
    }
}

// Compacts and flushes the tree, after the window or in a step of its own.

/// Time between two looks at the tree.
const LOOK: Duration = Duration::from_millis(20);
/// Looks in a row that must find no work: a compaction may begin right after a flush.
const QUIET_LOOKS: u32 = 10;
/// Time between two messages to the lab during maintenance.
const HEARTBEAT: Duration = Duration::from_secs(20);
/// The trigger of level 0 that all runs have.
const TRIGGER: &CStr = c"level0_file_num_compaction_trigger";

/// Properties that are above zero while there is work.
const WORK: [&CStr; 4] = [
    c"rocksdb.mem-table-flush-pending",
    c"rocksdb.num-running-flushes",
    c"rocksdb.compaction-pending",
    c"rocksdb.num-running-compactions",
];

/// Carries out all maintenance in order.
pub(super) fn carry_out<W: Write>(
    database: &Database,
    all: &[KvMaintenance],
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    for one in all {
        match one {
            KvMaintenance::Flush => database.flush().map_err(fault)?,
            KvMaintenance::Wait => wait(control, "compaction", || is_quiet(database))?,
            KvMaintenance::CompactLevel0 => compact_level0(database, control)?,
        }
    }
    Ok(())
}

fn fault(error: RocksdbError) -> Stop {
    Stop::Fault(format!("failed to {error}"))
}

/// Sleeps until `quiet` was true several times in a row.
fn wait<W: Write>(
    control: &mut ControlChannel<W>,
    what: &str,
    quiet: impl Fn() -> bool,
) -> Result<(), Stop> {
    let (mut looks, mut told) = (0, Instant::now());
    while looks < QUIET_LOOKS {
        control.sleep(LOOK)?;
        looks = if quiet() { looks + 1 } else { 0 };
        if told.elapsed() > HEARTBEAT {
            control.send(&DriverEvent::Waiting { what: what.to_owned() })?;
            told = Instant::now();
        }
    }
    Ok(())
}

fn is_quiet(database: &Database) -> bool {
    WORK.iter().all(|property| database.number(property) == Some(0))
}

/// Number of files in level 0.
pub(super) fn level0_files(database: &Database) -> Option<u64> {
    database.property(c"rocksdb.num-files-at-level0")?.trim().parse().ok()
}

/// Compacts level 0 into the level below by lowering the trigger to a single file: the C API can
/// name files to compact only since 11.8, but all versions can change options.
fn compact_level0<W: Write>(
    database: &Database,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    if level0_files(database) == Some(0) {
        return Ok(());
    }
    database.set_option(TRIGGER, c"1").map_err(fault)?;
    wait(control, "level 0", || level0_files(database) == Some(0) && is_quiet(database))?;
    database.set_option(TRIGGER, c"4").map_err(fault)
}

// Preparation and end of a step whose instructions are counted: background work of the library
// that would vary or would be missed.

/// Completes the library's background work, and fills the block cache by a scan of all keys, so
/// that reads do not differ by its content.
pub(super) fn prepare<W: Write>(
    database: &Arc<Database>,
    work: &KvWork,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    carry_out(database, &[KvMaintenance::Wait], control)?;
    if !writes(work) {
        let mut handle = Handle::new(database, Durability::Log);
        handle
            .scan(&key(0), u32::MAX, false)
            .map_err(|error| format!("failed to read all keys: {error}"))?;
    }
    Ok(())
}

/// Flushes all written keys and completes the compactions that follow: the same work after the same
/// puts. Reads leave none.
pub(super) fn settle<W: Write>(
    database: &Database,
    work: &KvWork,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    if writes(work) {
        carry_out(database, &[KvMaintenance::Flush, KvMaintenance::Wait], control)
    } else {
        Ok(())
    }
}

fn writes(work: &KvWork) -> bool {
    matches!(
        work.action,
        KvOperation::FillSequential | KvOperation::Overwrite | KvOperation::Mix { .. }
    )
}

/// The operations of the warm-up: as many as are counted; for a load, all at its start.
pub(super) fn events(work: &KvWork, counted: u64) -> Events {
    match work.action {
        KvOperation::FillSequential => {
            let counted = counted.min(work.keys);
            Events { warm_up: work.keys - counted, counted }
        }
        _ => Events { warm_up: counted, counted },
    }
}
