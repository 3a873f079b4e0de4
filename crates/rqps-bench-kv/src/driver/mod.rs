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

use rqps_driver::clock::SECOND;
use rqps_driver::control_channel::{ControlChannel, DriverEvent, StepInterval};
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::worker_pool::Events;
use rqps_driver::{Stop, confined};
use rqps_embed::rocksdb::marker::{Marker, State, database_folder};
use rqps_embed::rocksdb::{
    CacheKind, Database, Durability, Handle, Rocksdb, RocksdbError, RocksdbOptions, facts,
};
use rqps_host::clock::{self, RealClock, TimeSource as _};
use rqps_host::{affinity, proc, tree};
use rqps_model::datagen::distribution::{HashedZipfian, Zipfian};
use rqps_model::datagen::rng::Rng;
use rqps_model::endpoint::Endpoint;
use rqps_model::kv::{
    CacheWord, DriverSettings, KEY_BYTES, KvMaintenance, KvOperation, KvOption, KvWork,
};
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;

/// What the driver tells the lab, wherever the lab is.
type LabChannel<'a> = ControlChannel<&'a mut dyn Write>;

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
    control: &mut LabChannel,
) -> Result<(), Stop> {
    measure(request, &task.own()?, control)
}

/// Carries out a step and sends its progress.
fn measure(
    request: &DriverRequest,
    task: &StepRequest<KvWork>,
    control: &mut LabChannel,
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

fn run(
    request: &DriverRequest,
    task: &StepRequest<KvWork>,
    setup: &mut Setup,
    control: &mut LabChannel,
) -> Result<Outcome, Stop> {
    let work = &task.work;
    // Time under valgrind is meaningless, and the work that operations leave is counted with them.
    let is_timed = request.counted_events.is_none();
    let overhead = is_timed.then(|| client::overhead(work)).flatten();
    let opened = RealClock::new();
    let writer_mb = setup.writer_mb(work);
    let cpus = affinity::allowed_cpus();
    let threads = work.clients + u32::from(writer_mb.is_some());
    let seating = confined::plan_library(task.placement, threads);
    let database = setup.open();
    confined::rise(&cpus);
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
fn maintain_alone(
    database: &Database,
    work: &KvWork,
    control: &mut LabChannel,
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
pub(super) fn carry_out(
    database: &Database,
    all: &[KvMaintenance],
    control: &mut LabChannel,
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
fn wait(control: &mut LabChannel, what: &str, quiet: impl Fn() -> bool) -> Result<(), Stop> {
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
fn compact_level0(database: &Database, control: &mut LabChannel) -> Result<(), Stop> {
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
pub(super) fn prepare(
    database: &Arc<Database>,
    work: &KvWork,
    control: &mut LabChannel,
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
pub(super) fn settle(
    database: &Database,
    work: &KvWork,
    control: &mut LabChannel,
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

// Keys and values as RocksDB's db_bench makes them: the same numbers give the same bytes, so that
// its runs and those of rqps can be compared.
//
// Keys and values of db_bench.

/// The key for a number: 8 bytes, the most significant first, then `0` up to 20 bytes.
#[inline]
pub(super) fn key(number: u64) -> [u8; KEY_BYTES] {
    let mut key = [b'0'; KEY_BYTES];
    key[..8].copy_from_slice(&number.to_be_bytes());
    key
}

/// Smallest size of the pool, bytes.
const POOL_BYTES: usize = 1_048_576;
/// Bytes of a fragment: 50 random bytes, twice, so that half can be compressed away.
const FRAGMENT_BYTES: usize = 100;

/// The bytes of all values, which follow each other in it. Equal in every client.
pub(super) struct ValuePool {
    pool: Vec<u8>,
    length: usize,
    next: usize,
}

impl ValuePool {
    /// Makes values of `length` bytes, at most as long as the pool.
    pub(super) fn new(length: usize) -> ValuePool {
        let mut lcg: u64 = 301;
        let mut pool = Vec::with_capacity(POOL_BYTES + FRAGMENT_BYTES);
        while pool.len() < POOL_BYTES {
            let start = pool.len();
            for _ in 0..FRAGMENT_BYTES / 2 {
                lcg = lcg * 16_807 % 2_147_483_647;
                pool.push((lcg % 127) as u8);
            }
            pool.extend_from_within(start..);
        }
        ValuePool { length: length.min(pool.len()), pool, next: 0 }
    }

    /// The next value.
    #[inline]
    pub(super) fn next_value(&mut self) -> &[u8] {
        if self.next + self.length > self.pool.len() {
            self.next = 0;
        }
        let start = self.next;
        self.next += self.length;
        &self.pool[start..self.next]
    }
}

// The key numbers that db_bench draws for a seed, a thread and a number of keys.

/// Draws key numbers in the order of a client of db_bench.
#[derive(Clone)]
pub(super) struct KeyNumbers {
    random: Mt64,
    keys: u64,
    seed: u64,
    thread: u64,
    mixed: Option<Box<MixDraws>>,
}

impl KeyNumbers {
    /// For thread `thread` (from 1 over the whole process) of a process seeded with `seed`.
    pub(super) fn new(seed: u64, thread: u64, keys: u64) -> KeyNumbers {
        let random = Mt64::new(seed.wrapping_add(thread));
        KeyNumbers { random, keys, seed, thread, mixed: None }
    }

    /// The random draws of YCSB's core workloads, from a generator of their own.
    pub(super) fn mixed(&mut self) -> &mut MixDraws {
        let KeyNumbers { keys, seed, thread, mixed, .. } = self;
        mixed.get_or_insert_with(|| Box::new(MixDraws::new(*seed, *thread, *keys)))
    }

    /// The key number of a get or put. db_bench first draws the number of the database.
    #[inline]
    pub(super) fn after_choice(&mut self) -> u64 {
        self.random.next_u64();
        self.random.next_u64() % self.keys
    }

    /// The key number of a seek, drawn alone.
    #[inline]
    pub(super) fn plain(&mut self) -> u64 {
        self.random.next_u64() % self.keys
    }

    /// Draws the number of the database, before a batch.
    #[inline]
    pub(super) fn choice(&mut self) {
        self.random.next_u64();
    }
}

// The random draws of YCSB's core workloads on keys and values.

/// Draws for a client of a YCSB core workload. A record has the number of its key, as with YCSB's
/// `insertorder=ordered`.
#[derive(Clone)]
pub(super) struct MixDraws {
    rng: Rng,
    popular: HashedZipfian,
    latest: Zipfian,
    keys: u64,
    thread: u64,
    inserted: u64,
    /// Number of gets of existing keys that found nothing.
    pub(super) missed: u64,
    /// Number of puts.
    pub(super) puts: u64,
}

/// Client threads whose new keys do not collide.
const THREADS: u64 = 4096;

/// Most entries of a scan: `maxscanlength` of YCSB's workload E.
const SCAN_MOST: u64 = 100;

/// θ of the Zipf distribution of keys: `ZIPFIAN_CONSTANT` of YCSB.
const EXPONENT: f64 = 0.99;

impl MixDraws {
    pub(super) fn new(seed: u64, thread: u64, keys: u64) -> MixDraws {
        MixDraws {
            rng: Rng::stream(seed, "core mix", thread),
            popular: HashedZipfian::default(),
            latest: Zipfian::new(keys.max(1), EXPONENT),
            keys,
            thread,
            inserted: 0,
            missed: 0,
            puts: 0,
        }
    }

    /// True for `percent` of 100 draws.
    #[inline]
    pub(super) fn is_among(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    /// A loaded key, Zipf distributed over scrambled keys.
    #[inline]
    pub(super) fn popular(&mut self) -> u64 {
        self.popular.draw(&mut self.rng, self.keys)
    }

    /// A loaded key, or one put by this client; newer keys are more frequent.
    #[inline]
    pub(super) fn latest(&mut self) -> u64 {
        let back = self.latest.draw(&mut self.rng) - 1;
        match self.inserted.checked_sub(back + 1) {
            Some(place) => self.new_key(place),
            None => self.keys.saturating_sub(back - self.inserted + 1),
        }
    }

    /// A new key.
    #[inline]
    pub(super) fn next_new(&mut self) -> u64 {
        self.inserted += 1;
        self.new_key(self.inserted - 1)
    }

    /// The number of entries of a scan.
    #[inline]
    pub(super) fn scanned(&mut self) -> u32 {
        self.rng.uniform(1, SCAN_MOST) as u32
    }

    fn new_key(&self, place: u64) -> u64 {
        self.keys + place * THREADS + self.thread % THREADS
    }
}

// The random generator of db_bench.

const N: usize = 312;
const M: usize = 156;
const UPPER: u64 = 0xffff_ffff_8000_0000;
const LOWER: u64 = 0x7fff_ffff;
const TWIST: u64 = 0xb502_6f5a_a966_19e9;

/// The 64-bit Mersenne twister (M. Matsumoto and T. Nishimura, 2004), as C++'s `mt19937_64`.
#[derive(Clone)]
pub(super) struct Mt64 {
    state: [u64; N],
    next: usize,
}

impl Mt64 {
    /// Seeded as `std::mt19937_64(seed)`.
    pub(super) fn new(seed: u64) -> Mt64 {
        let mut state = [0; N];
        state[0] = seed;
        for index in 1..N {
            let before: u64 = state[index - 1];
            state[index] = (before ^ (before >> 62))
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(index as u64);
        }
        Mt64 { state, next: N }
    }

    /// Draws the next number.
    #[inline]
    pub(super) fn next_u64(&mut self) -> u64 {
        if self.next == N {
            self.refill();
        }
        let mut x = self.state[self.next];
        self.next += 1;
        x ^= (x >> 29) & 0x5555_5555_5555_5555;
        x ^= (x << 17) & 0x71d6_7fff_eda6_0000;
        x ^= (x << 37) & 0xfff7_eee0_0000_0000;
        x ^ (x >> 43)
    }

    fn refill(&mut self) {
        for index in 0..N {
            let x = (self.state[index] & UPPER) | (self.state[(index + 1) % N] & LOWER);
            let twisted = (x >> 1) ^ if x & 1 == 1 { TWIST } else { 0 };
            self.state[index] = self.state[(index + M) % N] ^ twisted;
        }
        self.next = 0;
    }
}

#[cfg(test)]
mod rows_tests {
    use std::collections::BTreeSet;

    use super::*;
    use sha2::{Digest, Sha256};

    // Golden bytes from db_bench.
    #[test]
    fn keys_are_big_endian_and_filled_with_zeros() {
        let wanted = *b"\x00\x00\x00\x00\x07\x5b\xcd\x15000000000000";
        assert_eq!(key(123_456_789), wanted);
    }

    #[test]
    fn the_pool_is_that_of_db_bench() {
        let mut values = ValuePool::new(400);
        assert_eq!(values.pool.len(), 1_048_600);
        let digest = Sha256::digest(&values.pool);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, "c6f1644ffd6c78636591d12877edb7e8a6fe8b35a1cd9cfff96524d5ae6bf1af");
        let first = values.next_value().to_vec();
        // 2621 values of 400 bytes, then from the start.
        for _ in 0..2620 {
            values.next_value();
        }
        assert_eq!(values.next_value(), first);
    }

    // Golden numbers from db_bench.
    #[test]
    fn key_numbers_are_those_of_db_bench() {
        let mut reads = KeyNumbers::new(999, 1, 1_000_000);
        let numbers: Vec<u64> = (0..5).map(|_| reads.after_choice()).collect();
        assert_eq!(numbers, [239_071, 130_198, 572_195, 488_098, 973_592]);
        let mut seeks = KeyNumbers::new(1000, 0, 1_000_000);
        let numbers: Vec<u64> = (0..5).map(|_| seeks.plain()).collect();
        assert_eq!(numbers, [921_198, 239_071, 793_948, 130_198, 298_196]);
    }

    #[test]
    fn a_client_of_a_mix_reads_what_is_there_and_puts_in_what_is_not() {
        let mut draws = MixDraws::new(7, 3, 1000);
        let mut there: BTreeSet<u64> = (0..1000).collect();
        for _ in 0..2000 {
            let read = draws.latest();
            assert!(there.contains(&read), "{read}");
            assert!(draws.popular() < 1000);
            assert!((1..=100).contains(&draws.scanned()));
            if draws.is_among(5) {
                assert!(there.insert(draws.next_new()));
            }
        }
        assert!((1050..1150).contains(&there.len()), "{}", there.len());
        let other = MixDraws::new(7, 4, 1000).next_new();
        assert!(!there.contains(&other), "two clients put in the same key");
    }

    // Golden numbers from the C++ standard library.
    #[test]
    fn the_twister_is_that_of_the_standard() {
        assert_eq!(Mt64::new(5489).next_u64(), 14_514_284_786_278_117_030);
        let mut random = Mt64::new(1000);
        let first: Vec<u64> = (0..4).map(|_| random.next_u64()).collect();
        assert_eq!(
            first,
            [
                2_632_470_296_759_921_198, 18_115_171_260_975_239_071, 15_206_147_180_661_793_948,
                8_100_504_859_641_130_198
            ]
        );
        // The 10000th number of the default seed, by ISO C++ [rand.predef].
        let mut random = Mt64::new(5489);
        assert_eq!((0..10_000).map(|_| random.next_u64()).last(), Some(9_981_545_732_273_789_042));
    }
}
