//! The steps of the RocksDB sequence in order, with their options.

use std::collections::BTreeMap;

use rqps_bench::spec::{Counting, DataSize, StepSet, all_rows};
use rqps_driver::workload::{
    self, Companions, SelectError, SetError, Settings, choice, count, number, own_settings, select,
    yes_or_no,
};
use rqps_model::benchmark::{
    BenchmarkParameters, Group, OwnParameters, Pace, Phase, RateUnit, Step, StepTurns, Workload,
};
use rqps_model::counted::StepCount;
use rqps_model::kv::{
    Compression, CoreMix, Data, KEY_BYTES, KvMaintenance, KvOperation, KvOption, KvShape, KvWork,
    READAHEAD_BYTES, READAHEAD_OPTION, Style,
};

/// Keys that the only client reads while compaction catches up.
const DRAIN_KEYS: u64 = 100;
/// Keys per call of multireadrandom.
const BATCH: u32 = 10;
/// Counted operations per `--statements`: they are shorter than SQL statements, and a flush of too
/// few puts is mostly overhead.
const OPERATIONS_PER_STATEMENT: u64 = 10;
/// Expected puts per second at least; for estimates.
const EXPECTED_RATE: f64 = 200_000.0;
/// Expected seconds of maintenance; for estimates.
const MAINTENANCE_SECONDS: f64 = 5.0;
/// Bytes of a block.
pub const BLOCK_BYTES: u64 = 8192;

/// Bytes in a file for each byte of keys and values, with indexes and filters.
const INDEXED: f64 = 1.02;
/// Bytes of the levels above the third, which are never compressed.
const TOP_LEVELS_BYTES: f64 = 0.6e9;
/// Bytes of memtables that wait for their flush, and as many of their write-ahead log.
const LOG_BYTES: f64 = 0.2e9;
/// Compaction debt at which RocksDB stops writes, bytes, at a scale of 1 of its limits.
const MOST_DEBT_BYTES: f64 = 128.0 * 1_073_741_824.0;

/// Most bytes of an overwritten tree: its entries, stale ones that a level still hides, what a
/// compaction writes before it removes what it read, and debt. Checked against the largest size
/// during runs of 1 to 4 M keys; published trees of 2 G keys with LZ4 have 440 GB when at rest.
fn tree_bytes(keys: f64, shape: &KvShape) -> f64 {
    let entries = keys * (KEY_BYTES as f64 + f64::from(shape.value_bytes)) * INDEXED;
    let compressed = match shape.compression {
        Compression::None => 1.0,
        Compression::Lz4 => 0.55,
        Compression::Zstd => 0.45,
    };
    let at_rest = entries.min(entries * compressed + TOP_LEVELS_BYTES);
    let rewritten = match shape.style {
        Style::Leveled => 1.2,
        // One compaction may write all anew.
        Style::Universal => 2.2,
    };
    let debt = (MOST_DEBT_BYTES * shape.limits_scale).min(at_rest / 2.0);
    rewritten * at_rest + debt + LOG_BYTES
}

/// The parameters of this benchmark, if the workload is of it.
fn shape(workload: &Workload) -> Option<&KvShape> {
    OwnParameters::of(&workload.shape)
}

/// The size of the data. The snapshot is an empty folder: loading is a step.
pub(super) fn size(workload: &Workload) -> DataSize {
    let value = shape(workload).map_or(0, |shape| u64::from(shape.value_bytes));
    let entry = KEY_BYTES as u64 + value;
    DataSize {
        data_bytes: shape(workload).map_or(0.0, |shape| tree_bytes(workload.rows as f64, shape)),
        // Overwrites grow the tree by 10 to 15 %; indexes and filters need room too.
        cached_bytes: all_rows(workload) * (entry * 3 / 2),
    }
}

/// All steps in order.
pub(super) fn phases(workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let plan = Sequence { workload, shape };
    let mut steps = vec![plan.fill(), plan.drain()];
    if !shape.mixes.is_empty() {
        steps.extend(shape.mixes.iter().map(|mix| plan.mix(*mix)));
        return measured(steps);
    }
    if shape.reads {
        steps.push(plan.read("readrandom", Group::Point, KvOperation::Read));
        steps.push(plan.read("fwdrange", Group::Range, plan.range(false)));
    }
    if shape.multireads {
        let batch = KvOperation::MultiRead { batch: BATCH };
        steps.push(plan.read("multireadrandom", Group::Point, batch));
    }
    steps.push(plan.overwrite_some());
    steps.push(plan.maintain());
    steps.extend(plan.all_while_writing(shape.writer_mb, false));
    for rate in &shape.writer_sweep {
        steps.extend(plan.all_while_writing(*rate, true));
    }
    steps.push(plan.overwrite());
    measured(steps)
}

fn measured(steps: Vec<Step>) -> Vec<Phase> {
    steps.into_iter().map(|step| Phase::Measure(Box::new(step))).collect()
}

/// Keeps the steps that `globs` select, and the load, which all need.
pub(super) fn choose(phases: Vec<Phase>, globs: &[String]) -> Result<Vec<Phase>, SelectError> {
    select(phases, globs, &Companions { is_needed: fills, ..Companions::NONE })
}

/// The counted runs of this benchmark: the choice of steps, and a small number of keys.
pub(super) const COUNTING: Counting = Counting {
    step: counted,
    settings: &["keys=100000", "clients=1", "seconds=1", "drain_seconds=1"],
};

/// The number of counted operations of a step with a single client; the reason why other steps are
/// not counted.
fn counted(step: &Step, _: &Workload, statements: u64) -> StepCount {
    let Some(work) = step.own::<KvWork>() else {
        return StepCount::LeftOut("its work is not known".to_owned());
    };
    if !step.reported || work.action == KvOperation::Maintain {
        return StepCount::CarriedOut("it prepares the steps after it".to_owned());
    }
    match work.writer_mb {
        Some(_) => StepCount::LeftOut(
            "the writer beside its client keeps to a clock, which valgrind slows down".to_owned(),
        ),
        None => StepCount::Events((statements * OPERATIONS_PER_STATEMENT).min(work.keys)),
    }
}

fn fills(step: &Step) -> bool {
    step.own().is_some_and(|work: &KvWork| work.action == KvOperation::FillSequential)
}

struct Sequence<'a> {
    workload: &'a Workload,
    shape: &'a KvShape,
}

impl Sequence<'_> {
    fn range(&self, reverse: bool) -> KvOperation {
        KvOperation::Range { nexts: self.shape.seek_nexts, reverse }
    }

    fn work(&self, action: KvOperation) -> KvWork {
        KvWork {
            action,
            clients: self.workload.clients,
            operations: None,
            keys: self.workload.rows,
            value_bytes: self.shape.value_bytes,
            write_ahead_log: true,
            pace: Pace::Closed,
            writer_mb: None,
            writer_named: false,
            after: Vec::new(),
            options: options(self.shape),
            overrides: overrides(self.shape),
        }
    }

    fn step(&self, name: &str, group: Group, seconds: f64, work: KvWork) -> Step {
        Step {
            seconds,
            detail: detail(&work),
            turns: StepTurns::of_clients(work.only_reads()),
            ..Step::new(name, group, RateUnit::Operations, work)
        }
    }

    /// The load: one client, keys in order, no log, a vector memtable.
    fn fill(&self) -> Step {
        let mut work = self.work(KvOperation::FillSequential);
        work.clients = 1;
        work.operations = Some(self.workload.rows);
        work.write_ahead_log = false;
        work.options.push(KvOption::new("memtable", "vector"));
        work.options.push(KvOption::new("allow_concurrent_memtable_write", false));
        if self.shape.style == Style::Leveled {
            // Trivially moved files keep their compression.
            let same = [self.shape.compression.option(); LEVELS];
            let all = KvOption::new("compression_per_level", same.join(":"));
            work.options.retain(|option| option.key != all.key);
            work.options.push(all);
        }
        let seconds = self.workload.rows as f64 / EXPECTED_RATE;
        self.step("fillseq", Group::Load, seconds.max(1.0), work)
    }

    /// Compacts the debt of the load while one client is almost idle.
    fn drain(&self) -> Step {
        let mut work = self.work(self.range(true));
        work.clients = 1;
        work.keys = DRAIN_KEYS.min(self.workload.rows);
        let mut step = self.step("revrange.drain", Group::Range, self.shape.drain_seconds, work);
        step.reported = false;
        step
    }

    /// Measured work that lasts as long as its window, at the requested pace.
    fn paced(&self, action: KvOperation) -> KvWork {
        KvWork { pace: self.workload.pace, ..self.work(action) }
    }

    fn read(&self, name: &str, group: Group, action: KvOperation) -> Step {
        self.step(name, group, self.workload.read_seconds, self.paced(action))
    }

    /// A core workload of YCSB.
    fn mix(&self, mix: CoreMix) -> Step {
        let (group, seconds) = match mix {
            CoreMix::C => (Group::Point, self.workload.read_seconds),
            CoreMix::E => (Group::Range, self.workload.read_seconds),
            _ => (Group::Write, self.workload.write_seconds),
        };
        let name = format!("ycsb-{}", mix.letter());
        self.step(&name, group, seconds, self.paced(KvOperation::Mix { mix }))
    }

    fn overwrite_some(&self) -> Step {
        let mut work = self.work(KvOperation::Overwrite);
        let all = self.workload.rows as f64 * self.shape.overwrite_share;
        let each = (all / f64::from(self.workload.clients)).round().max(1.0);
        work.operations = Some(each as u64);
        let seconds = (all / EXPECTED_RATE).max(1.0);
        let mut step = self.step("overwritesome", Group::Write, seconds, work);
        step.reported = false;
        step
    }

    fn maintain(&self) -> Step {
        let mut work = self.work(KvOperation::Maintain);
        work.clients = 1;
        work.after = match self.shape.style {
            Style::Leveled => vec![
                KvMaintenance::Flush,
                KvMaintenance::Wait,
                KvMaintenance::CompactLevel0,
                KvMaintenance::Wait,
            ],
            Style::Universal => vec![KvMaintenance::Flush, KvMaintenance::Wait],
        };
        let name = match self.shape.style {
            Style::Leveled => "flush_mt_l0",
            Style::Universal => "flush_mt_wait",
        };
        let mut step = self.step(name, Group::Write, MAINTENANCE_SECONDS, work);
        step.reported = false;
        step
    }

    /// The three steps beside a writer of this rate; `named`: with the rate in their names.
    fn all_while_writing(&self, rate: f64, named: bool) -> [Step; 3] {
        let step = |name: &str, group: Group, action: KvOperation| {
            let mut work = self.paced(action);
            (work.writer_mb, work.writer_named) = (Some(rate), named);
            let name = if named { format!("{name}.writer={rate}") } else { name.to_owned() };
            self.step(&name, group, self.workload.write_seconds, work)
        };
        [
            step("revrangewhilewriting", Group::Range, self.range(true)),
            step("fwdrangewhilewriting", Group::Range, self.range(false)),
            step("readwhilewriting", Group::Point, KvOperation::Read),
        ]
    }

    fn overwrite(&self) -> Step {
        let mut work = self.paced(KvOperation::Overwrite);
        work.after = vec![KvMaintenance::Flush, KvMaintenance::Wait];
        self.step("overwriteandwait", Group::Write, self.workload.write_seconds, work)
    }
}

fn detail(work: &KvWork) -> String {
    let of = format!("{} keys of 20 + {} bytes", work.keys, work.value_bytes);
    let what = match work.action {
        KvOperation::FillSequential => "puts of all keys in order, no log, one client".to_owned(),
        KvOperation::Overwrite => "puts of random keys".to_owned(),
        KvOperation::Read => "gets of random keys".to_owned(),
        KvOperation::MultiRead { batch } => format!("batched gets of {batch} random keys"),
        KvOperation::Range { nexts, reverse } => {
            let way = if reverse { "backwards" } else { "forwards" };
            format!("seeks to random keys, {nexts} entries {way}")
        }
        KvOperation::Mix { mix } => {
            format!("core workload {} of YCSB, by rqps over keys and values", mix.letter())
        }
        KvOperation::Maintain => "flush memtables and compact level 0".to_owned(),
    };
    let writer = work.writer_mb.map(|mb| format!(", a writer of {mb} MiB/s")).unwrap_or_default();
    format!("{what}{writer}; {of}")
}

/// Levels of leveled compaction.
const LEVELS: usize = 8;
/// Levels of universal compaction.
const RUNS: usize = 40;
/// The first compressed level, counted from the base level.
const FIRST_COMPRESSED: usize = 3;

fn option(key: &str, value: impl ToString) -> KvOption {
    KvOption::new(key, value)
}

/// The options of all steps and targets: those of the published runs, those that their db_bench
/// sets, and the same checksum for all versions.
fn options(shape: &KvShape) -> Vec<KvOption> {
    let mut all = vec![
        option("create_if_missing", true),
        option("write_buffer_size", shape.write_buffer_bytes),
        option("max_write_buffer_number", 8),
        option("target_file_size_base", shape.target_file_bytes),
        option("max_bytes_for_level_base", 64 << 20),
        option("max_background_jobs", shape.background_jobs),
        option("max_open_files", -1),
        option("table_cache_numshardbits", 4),
        option(
            "soft_pending_compaction_bytes_limit",
            (64.0 * GIB as f64 * shape.limits_scale) as u64,
        ),
        option(
            "hard_pending_compaction_bytes_limit",
            (128.0 * GIB as f64 * shape.limits_scale) as u64,
        ),
        option("delayed_write_rate", 8 << 20),
        option("enable_pipelined_write", true),
        option("bytes_per_sync", if shape.direct_io { 0 } else { 1 << 20 }),
        option(READAHEAD_OPTION, READAHEAD_BYTES),
        KvOption::optional("new_table_reader_for_compaction_inputs", true),
        option("table.block_size", BLOCK_BYTES),
        // As a string, because its C function makes another filter up to 6.6.
        option("table.filter_policy", "bloomfilter:10:false"),
        // Without hardware CRC32C, which these builds lack, the old default would slow reads.
        option("table.checksum", "kxxHash64"),
        KvOption::optional("table.index_shortening", "kShortenSeparatorsAndSuccessor"),
    ];
    match shape.style {
        Style::Leveled => all.extend(leveled(shape)),
        Style::Universal => all.extend(universal(shape)),
    }
    if shape.direct_io {
        all.push(option("use_direct_reads", true));
        all.push(option("use_direct_io_for_flush_and_compaction", true));
        all.push(KvOption::optional("table.prepopulate_block_cache", "kFlushOnly"));
    }
    all
}

fn leveled(shape: &KvShape) -> Vec<KvOption> {
    let compressed = shape.compression.option();
    let per_level = (0..LEVELS)
        .map(|level| if level < FIRST_COMPRESSED { "kNoCompression" } else { compressed });
    let mut all = vec![
        option("compaction_style", "kCompactionStyleLevel"),
        option("num_levels", LEVELS),
        option("max_bytes_for_level_multiplier", 8),
        option("level_compaction_dynamic_level_bytes", true),
        option("level0_file_num_compaction_trigger", 4),
        option("level0_slowdown_writes_trigger", 20),
        option("level0_stop_writes_trigger", 30),
        option("compression", compressed),
        option("table.cache_index_and_filter_blocks", true),
        option("table.cache_index_and_filter_blocks_with_high_priority", true),
        option("table.pin_l0_filter_and_index_blocks_in_cache", true),
    ];
    if shape.compression != Compression::None {
        all.push(option("compression_per_level", per_level.collect::<Vec<_>>().join(":")));
    }
    all
}

fn universal(shape: &KvShape) -> Vec<KvOption> {
    vec![
        option("compaction_style", "kCompactionStyleUniversal"),
        option("num_levels", RUNS),
        option("level_compaction_dynamic_level_bytes", false),
        option("level0_file_num_compaction_trigger", 16),
        option("level0_slowdown_writes_trigger", 200),
        option("level0_stop_writes_trigger", 200),
        option("max_subcompactions", shape.subcompactions),
        option("compression", shape.compression.option()),
        // One group, because some versions parse it anew each time.
        option(
            "compaction_options_universal",
            "{size_ratio=10;min_merge_width=2;max_merge_width=20;\
             max_size_amplification_percent=50;compression_size_percent=-1;\
             allow_trivial_move=true}",
        ),
        option("table.cache_index_and_filter_blocks", false),
        option("table.pin_l0_filter_and_index_blocks_in_cache", false),
        option("table.index_type", "kTwoLevelIndexSearch"),
        option("table.partition_filters", true),
        option("table.metadata_block_size", 65_536),
        option("table.pin_top_level_index_and_filter", true),
    ]
}

fn overrides(shape: &KvShape) -> Vec<KvOption> {
    shape.options.iter().map(|(key, value)| KvOption::new(key, value)).collect()
}

// Settings `key=value` of the RocksDB sequence.

/// The option for the ratio between the sizes of neighbouring levels.
const FANOUT: &str = "max_bytes_for_level_multiplier";

own_settings! { KvShape:
    "data", |_, shape, value| set_data(shape, value)?;
    "style", |_, shape, value| shape.style =
        choice(value, &[("leveled", Style::Leveled), ("universal", Style::Universal)])?;
    "compression", |_, shape, value| shape.compression = parse_compression(value)?;
    "direct_io", |_, shape, value| shape.direct_io = yes_or_no(value)?;
    "value_bytes", |_, shape, value| shape.value_bytes = count(value, 1, 65_536)? as u32;
    "seek_nexts", |_, shape, value| shape.seek_nexts = count(value, 0, 100_000)? as u32;
    "ycsb", |_, shape, value| {
        let mixes = value.split(',').map(|letter| choice(letter.trim(), &CoreMix::ALL));
        shape.mixes = mixes.collect::<Result<Vec<CoreMix>, String>>()?;
    };
    "reads", |_, shape, value| shape.reads = yes_or_no(value)?;
    "multireads", |_, shape, value| shape.multireads = yes_or_no(value)?;
    "drain_seconds", |_, shape, value| shape.drain_seconds = number(value, 0.1, 86_400.0)?;
    "writer_mb", |_, shape, value| {
        let rates = value.split(',').map(|word| number(word.trim(), 0.0, 100_000.0));
        let rates = rates.collect::<Result<Vec<f64>, String>>()?;
        // The first rate keeps the plain names of steps.
        (shape.writer_mb, shape.writer_sweep) = (rates[0], rates[1..].to_vec());
    };
    "fanout", |_, shape, value| {
        let fanout = number(value, 2.0, 1000.0)?;
        shape.options.insert(FANOUT.to_owned(), fanout.to_string());
    };
    "overwrite_share", |_, shape, value| shape.overwrite_share = number(value, 0.0, 100.0)?;
    "background_jobs", |_, shape, value| shape.background_jobs = count(value, 1, 1024)? as u32;
    "subcompactions", |_, shape, value| shape.subcompactions = count(value, 1, 1024)? as u32;
    "write_buffer_mb", |_, shape, value|
        shape.write_buffer_bytes = count(value, 1, 65_536)? << 20;
    "target_file_mb", |_, shape, value| shape.target_file_bytes = count(value, 1, 65_536)? << 20;
    "limits_scale", |_, shape, value| shape.limits_scale = number(value, 1e-6, 1e3)?;
}

const SETTINGS: Settings<KvShape> = Settings {
    benchmark: "kv",
    own: OWN,
    common: &[
        ("keys", "rows"),
        ("rows", "rows"),
        ("clients", "clients"),
        ("threads", "clients"),
        ("seconds", "seconds"),
        ("read_seconds", "read_seconds"),
        ("write_seconds", "write_seconds"),
        ("cache", "cache"),
        ("memory_limit", "memory_limit"),
        ("rate", "rate"),
        ("placement", "placement"),
        ("idle", "idle"),
        ("turn_ms", "turn_ms"),
    ],
    others: false,
    open: &["option.KEY"],
};

/// Changes a workload of this benchmark by one `key=value`. `option.KEY=VALUE` sets an option of
/// the library on all targets.
///
/// # Errors
///
/// See [`SetError`].
pub fn set(workload: &mut Workload, assignment: &str) -> Result<(), SetError> {
    let (key, value) = workload::parts(assignment)?;
    let (Some(name), BenchmarkParameters::Kv(shape)) =
        (key.strip_prefix("option."), &mut workload.shape)
    else {
        return SETTINGS.set(workload, assignment);
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || "_.".contains(c);
    if name.is_empty() || value.is_empty() || !name.chars().all(plain) {
        let (key, value) = ("option.KEY", value.to_owned());
        return Err(SetError::BadValue { key, value, why: "write option.KEY=VALUE".to_owned() });
    }
    shape.options.insert(name.to_owned(), value.to_owned());
    Ok(())
}

// Named shapes of the RocksDB sequence.

/// A machine of the published runs: parallel flushes and compactions, block cache, and so on.
struct Hardware {
    name: &'static str,
    jobs: u32,
    cache_gb: u64,
    subcompactions: u32,
    clients: u32,
}

const fn hardware(name: &'static str, jobs: u32, cache_gb: u64, subs: u32, c: u32) -> Hardware {
    Hardware { name, jobs, cache_gb, subcompactions: subs, clients: c }
}

/// The published profiles. Published runs choose the clients; here as many as cores, 40 on 48.
const HARDWARE: [Hardware; 17] = [
    hardware("c4r16", 3, 10, 2, 4),
    hardware("c4bc1g", 3, 1, 2, 4),
    hardware("c8r16", 4, 10, 2, 8),
    hardware("c8r32", 4, 20, 2, 8),
    hardware("c16r16", 8, 12, 4, 16),
    hardware("c16r64", 8, 48, 4, 16),
    hardware("c16bc1g", 8, 1, 4, 16),
    hardware("c16r64b", 8, 48, 4, 16),
    hardware("c24r64", 12, 48, 4, 24),
    hardware("c30r240", 8, 180, 4, 30),
    hardware("c30r240bc150", 8, 150, 4, 30),
    hardware("c32r128", 8, 90, 4, 32),
    hardware("c40r256", 8, 210, 4, 40),
    hardware("c40r256bc180", 8, 180, 4, 40),
    hardware("c40bc1g", 8, 1, 4, 40),
    hardware("c48r128", 12, 90, 4, 40),
    hardware("c2r24", 3, 4, 2, 2),
];

/// The published machine that `quick`, `standard` and `full` are derived from.
const LARGEST: &str = "c48r128";

/// Keys of the published runs that fit in memory, and those that do not.
const KEYS_CACHED: u64 = 100_000_000;
const KEYS_IO: u64 = 2_000_000_000;
const GIB: u64 = 1 << 30;

/// The workload of a preset: `quick`, `standard`, `full` or a published machine, each with a data
/// shape after a dash: `c48r128-iodir_zstd`, `quick-iobuf`.
///
/// # Errors
///
/// No such preset; the text lists the valid ones.
pub fn workload(name: &str) -> Result<(Workload, StepSet), String> {
    let (workload, shape) = parts(name)?;
    Ok((Workload { shape: BenchmarkParameters::Kv(shape), ..workload }, StepSet::Full))
}

/// True for the shapes of published results.
pub(super) fn is_published(name: &str) -> bool {
    let size = name.split_once('-').map_or(name, |(size, _)| size);
    !SMALL.iter().any(|small| small.name == size)
}

/// Both parts of a preset.
pub(crate) fn parts(name: &str) -> Result<(Workload, KvShape), String> {
    let (size, data) = name.split_once('-').unwrap_or((name, "byrx"));
    let (mut workload, mut shape) = sized(size).ok_or_else(|| unknown(name))?;
    set_data(&mut shape, data).map_err(|_| unknown(name))?;
    let io = matches!(shape.data, Data::Iobuf | Data::Iodir);
    match SMALL.iter().find(|small| small.name == size) {
        Some(small) => small.fit(&mut workload, &mut shape),
        None if io => workload.rows = KEYS_IO,
        None => {}
    }
    Ok((workload, shape))
}

/// Limits for small scales, so that the data do not fit in memory: only the published number of
/// keys exceeds the memory of the published machines.
struct Small {
    name: &'static str,
    /// Keys that exceed both cache and limit, even if values are compressed by half.
    keys_io: u64,
    /// Bytes of RocksDB's cache if the data must not fit in it.
    cache_bytes: u64,
    /// Bytes for the process and the page cache of its files: enough for the cache and eight
    /// memtables of 16 MiB.
    limit_bytes: u64,
}

const SMALL: [Small; 3] = [
    Small { name: "quick", keys_io: 2_000_000, cache_bytes: 64 << 20, limit_bytes: 320 << 20 },
    Small { name: "standard", keys_io: 10_000_000, cache_bytes: 256 << 20, limit_bytes: GIB },
    Small { name: "c2r24", keys_io: 40_000_000, cache_bytes: GIB, limit_bytes: 4 * GIB },
];

impl Small {
    fn fit(&self, workload: &mut Workload, shape: &mut KvShape) {
        if shape.data == Data::Byrx {
            return;
        }
        workload.cache_bytes = Some(self.cache_bytes);
        if shape.data == Data::Byos {
            // The page cache holds the rest.
            return;
        }
        // Limits of compaction debt are proportional to the data.
        shape.limits_scale *= self.keys_io as f64 / workload.rows as f64;
        workload.rows = self.keys_io;
        if shape.data == Data::Iobuf {
            // With O_DIRECT, no page cache can hold them.
            workload.memory_limit = Some(self.limit_bytes);
        }
    }
}

fn unknown(name: &str) -> String {
    let machines: Vec<_> = HARDWARE.iter().map(|hardware| hardware.name).collect();
    format!(
        "use the preset `{name}`: no such preset (known: quick, standard, full, {}, each with \
         -byrx, -byos, -iobuf or -iodir after it, those with _none, _lz4 or _zstd)",
        machines.join(", ")
    )
}

fn sized(size: &str) -> Option<(Workload, KvShape)> {
    let machine = if matches!(size, "quick" | "standard" | "full") { LARGEST } else { size };
    let hardware = HARDWARE.iter().find(|hardware| hardware.name == machine)?;
    let (mut workload, mut shape) = published(hardware);
    match size {
        // About three minutes for two targets.
        "quick" => {
            set_scale(&mut workload, 1_000_000, 2, 10.0);
            shape.drain_seconds = 3.0;
            shape.background_jobs = 3;
            shape.subcompactions = 2;
            shape.limits_scale = 0.01;
        }
        "standard" => {
            set_scale(&mut workload, 10_000_000, 2, 60.0);
            shape.drain_seconds = 20.0;
            shape.background_jobs = 3;
            shape.subcompactions = 2;
            shape.limits_scale = 0.01;
        }
        "c16r64b" => {
            shape.write_buffer_bytes = 128 << 20;
            shape.target_file_bytes = 8 << 20;
        }
        "c2r24" => {
            // The published shape for a small virtual machine.
            set_scale(&mut workload, 5_000_000, 2, 300.0);
            workload.cache_bytes = Some(4 * GIB);
            shape.limits_scale = 0.0025;
        }
        _ => {}
    }
    Some((workload, shape))
}

fn set_scale(workload: &mut Workload, keys: u64, clients: u32, seconds: f64) {
    workload.rows = keys;
    workload.clients = clients;
    workload.read_seconds = seconds;
    workload.write_seconds = seconds;
    workload.cache_bytes = None;
}

fn published(hardware: &Hardware) -> (Workload, KvShape) {
    let workload = Workload {
        rows: KEYS_CACHED,
        clients: hardware.clients,
        read_seconds: 1800.0,
        write_seconds: 1800.0,
        cache_bytes: Some(hardware.cache_gb * GIB),
        ..Workload::plain(BenchmarkParameters::Sysbench)
    };
    let shape = KvShape {
        mixes: Vec::new(),
        style: Style::Leveled,
        data: Data::Byrx,
        compression: Compression::None,
        direct_io: false,
        value_bytes: 400,
        seek_nexts: 10,
        reads: true,
        multireads: false,
        drain_seconds: 300.0,
        writer_mb: 2.0,
        writer_sweep: Vec::new(),
        overwrite_share: 0.1,
        background_jobs: hardware.jobs,
        subcompactions: hardware.subcompactions,
        write_buffer_bytes: 16 << 20,
        target_file_bytes: 16 << 20,
        limits_scale: 1.0,
        options: BTreeMap::new(),
    };
    (workload, shape)
}

/// Sets the data shape `byrx`, `iodir` or `iodir_zstd`: where the data fit, and their compression.
fn set_data(shape: &mut KvShape, word: &str) -> Result<(), String> {
    let (data, compression) = match word.split_once('_') {
        Some((data, compression)) => (data, Some(compression)),
        None => (word, None),
    };
    let data = choice(data, &Data::ALL.map(|data| (data.name(), data)))?;
    let compression = match compression {
        Some(word) => parse_compression(word)?,
        None if matches!(data, Data::Iobuf | Data::Iodir) => Compression::Lz4,
        None => Compression::None,
    };
    shape.data = data;
    shape.compression = compression;
    shape.direct_io = data == Data::Iodir;
    Ok(())
}

fn parse_compression(word: &str) -> Result<Compression, String> {
    choice(
        word,
        &[("none", Compression::None), ("lz4", Compression::Lz4), ("zstd", Compression::Zstd)],
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::benchmark::BenchmarkParameters;

    fn steps(change: impl FnOnce(&mut Workload, &mut KvShape)) -> Vec<Step> {
        let (mut workload, mut shape) = parts("c48r128").unwrap();
        change(&mut workload, &mut shape);
        workload.shape = BenchmarkParameters::Kv(shape);
        let phases = phases(&workload);
        let steps = phases.into_iter().filter_map(|phase| match phase {
            Phase::Measure(step) => Some(*step),
            Phase::Settle | Phase::Restore => None,
        });
        steps.collect()
    }

    fn work(step: &Step) -> KvWork {
        step.own()
            .cloned()
            .unwrap_or_else(|| panic!("{} is a step of another benchmark", step.name))
    }

    fn option(step: &Step, key: &str) -> Option<String> {
        let all = &work(step).options;
        assert!(all.iter().filter(|option| option.key == key).count() < 2, "{key} twice");
        all.iter().find(|option| option.key == key).map(|option| option.value.clone())
    }

    #[test]
    fn the_sequence_is_the_published_one() {
        let names: Vec<String> =
            steps(|_, shape| shape.multireads = true).into_iter().map(|step| step.name).collect();
        assert_eq!(
            names,
            [
                "fillseq", "revrange.drain", "readrandom", "fwdrange", "multireadrandom",
                "overwritesome", "flush_mt_l0", "revrangewhilewriting", "fwdrangewhilewriting",
                "readwhilewriting", "overwriteandwait"
            ]
        );
        let without = steps(|_, shape| shape.reads = false);
        assert!(!without.iter().any(|step| step.name == "readrandom"));
    }

    #[test]
    fn overwritesome_writes_a_tenth_of_the_keys() {
        let all = steps(|_, _| ());
        let some = all.iter().find(|step| step.name == "overwritesome").unwrap();
        // 100,000,000 / 40 / 10.
        assert_eq!(work(some).operations, Some(250_000));
        assert!(!some.reported);
    }

    #[test]
    fn a_pattern_chooses_the_steps_of_all_rates() {
        let chosen = |glob: &str| {
            let all = steps(|_, shape| shape.writer_sweep = vec![0.5, 32.0]);
            let kept = choose(measured(all), &[glob.to_owned()]).unwrap();
            kept.len() - 1
        };
        assert_eq!((chosen("*whilewriting"), chosen("readwhilewriting")), (9, 3));
        assert_eq!((chosen("readwhilewriting.writer=0.5"), chosen("*.writer=32")), (1, 3));
    }

    #[test]
    fn only_what_runs_while_writing_has_a_writer() {
        for step in steps(|_, _| ()) {
            let wanted = step.name.ends_with("whilewriting").then_some(2.0);
            assert_eq!(work(&step).writer_mb, wanted, "{}", step.name);
        }
    }

    #[test]
    fn more_rates_of_the_writer_repeat_the_steps_beside_it() {
        let all = steps(|workload, shape| {
            (shape.writer_mb, shape.writer_sweep) = (2.0, vec![8.0, 32.0]);
            workload.pace = Pace::Open { events_per_second: 500.0 };
        });
        let of = |name: &str| work(all.iter().find(|step| step.name == name).unwrap());
        assert_eq!(of("readwhilewriting").writer_mb, Some(2.0));
        assert!(!of("readwhilewriting").writer_named);
        let swept = of("readwhilewriting.writer=32");
        assert_eq!((swept.writer_mb, swept.writer_named), (Some(32.0), true));
        assert_eq!(all.iter().filter(|step| step.name.contains("whilewriting")).count(), 9);
        let names: std::collections::BTreeSet<_> = all.iter().map(|step| &step.name).collect();
        assert_eq!(names.len(), all.len());
        // Steps that last as long as their window have the pace, others do not.
        let open = |step: &&Step| work(step).pace != Pace::Closed;
        let paced: Vec<_> = all.iter().filter(open).map(|step| step.name.as_str()).collect();
        assert!(paced.contains(&"readrandom") && paced.contains(&"overwriteandwait"), "{paced:?}");
        for free in ["fillseq", "revrange.drain", "overwritesome", "flush_mt_l0"] {
            assert!(!paced.contains(&free), "{free}");
        }
    }

    #[test]
    fn the_load_compresses_all_levels_and_the_rest_the_deep_ones() {
        let all = steps(|_, shape| shape.compression = Compression::Lz4);
        let of = |name: &str| {
            let step = all.iter().find(|step| step.name == name).unwrap();
            option(step, "compression_per_level").unwrap()
        };
        assert_eq!(of("fillseq"), ["kLZ4Compression"; 8].join(":"));
        let deep = of("readrandom");
        let deep: Vec<&str> = deep.split(':').collect();
        assert_eq!(deep[..3], ["kNoCompression"; 3]);
        assert_eq!(deep[3..], ["kLZ4Compression"; 5]);
    }

    #[test]
    fn limits_scale_and_direct_io_switch_options() {
        let all = steps(|_, shape| {
            shape.limits_scale = 0.01;
            shape.direct_io = true;
        });
        let step = all.last().unwrap();
        assert_eq!(
            option(step, "soft_pending_compaction_bytes_limit").as_deref(),
            Some("687194767")
        );
        assert_eq!(option(step, "use_direct_reads").as_deref(), Some("true"));
        assert_eq!(option(step, "bytes_per_sync").as_deref(), Some("0"));
        let universal = steps(|_, shape| shape.style = Style::Universal);
        assert_eq!(option(&universal[0], "num_levels").as_deref(), Some("40"));
        assert_eq!(option(&universal[0], "max_subcompactions").as_deref(), Some("4"));
    }
}

#[cfg(test)]
mod settings_tests {
    use super::*;

    #[test]
    fn settings_are_those_of_the_benchmark_and_the_common_ones() {
        let (mut workload, _) = workload("quick").unwrap();
        let mut check = |assignment: &str| set(&mut workload, assignment);
        for good in [
            "keys=2M",
            "threads=4",
            "data=iobuf_zstd",
            "style=universal",
            "writer_mb=8",
            "option.max_bytes_for_level_multiplier=32",
            "limits_scale=0.001",
            "direct_io=on",
            "multireads=yes",
            "reads=false",
            "rate=1000",
            "placement=apart",
            "memory_limit=1G",
        ] {
            check(good).unwrap();
        }
        check("writer_mb=2, 8,32").unwrap();
        check("fanout=16").unwrap();
        let wrong = |error: SetError| error.to_string();
        assert!(wrong(check("style=flat").unwrap_err()).contains("leveled, universal"));
        assert!(wrong(check("reads=maybe").unwrap_err()).contains("yes or no"));
        assert!(
            wrong(check("tables=2").unwrap_err()).contains("unknown key of the benchmark `kv`")
        );
        assert!(wrong(check("option.=1").unwrap_err()).contains("option.KEY=VALUE"));
        assert!(wrong(check("keys").unwrap_err()).contains("no `=`"));
        let BenchmarkParameters::Kv(shape) = &workload.shape else { panic!("{workload:?}") };
        assert_eq!((workload.rows, workload.clients), (2_000_000, 4));
        assert_eq!((shape.direct_io, shape.multireads, shape.reads), (true, true, false));
        assert_eq!(shape.options["max_bytes_for_level_multiplier"], "16");
        assert_eq!((shape.writer_mb, &shape.writer_sweep[..]), (2.0, &[8.0, 32.0][..]));
        assert_eq!(workload.memory_limit, Some(1 << 30));
        assert_eq!((shape.style, shape.compression), (Style::Universal, Compression::Zstd));
    }

    #[test]
    fn presets_have_the_published_shapes() {
        let (workload, shape) = parts("c48r128").unwrap();
        assert_eq!((workload.rows, workload.clients), (100_000_000, 40));
        assert_eq!((workload.cache_bytes, shape.background_jobs), (Some(90 * GIB), 12));
        let (workload, shape) = parts("c48r128-iodir_zstd").unwrap();
        assert_eq!((workload.rows, shape.compression), (2_000_000_000, Compression::Zstd));
        assert!(shape.direct_io);
        let (_, shape) = parts("c16r64b").unwrap();
        assert_eq!((shape.write_buffer_bytes, shape.target_file_bytes), (128 << 20, 8 << 20));
        let (_, shape) = parts("c8r32-iobuf").unwrap();
        assert_eq!((shape.compression, shape.direct_io), (Compression::Lz4, false));
        assert_eq!(parts("c48r128-iobuf").unwrap().0.memory_limit, None);
        assert!(parts("c1r1").unwrap_err().contains("known: quick, standard, full, c4r16"));
        assert!(parts("quick-byox").unwrap_err().contains("no such preset"));
    }

    /// Smallest size of the data, bytes: values compressed by half, without indexes and filters.
    fn least_bytes(workload: &Workload, shape: &KvShape) -> u64 {
        let value = u64::from(shape.value_bytes);
        let value = if shape.compression == Compression::None { value } else { value / 2 };
        workload.rows * (20 + value)
    }

    #[test]
    fn data_that_are_larger_than_memory_are() {
        for size in ["quick", "standard", "c2r24"] {
            for compression in ["", "_none", "_lz4", "_zstd"] {
                let (workload, shape) = parts(&format!("{size}-iobuf{compression}")).unwrap();
                let limit = workload.memory_limit.unwrap();
                assert!(least_bytes(&workload, &shape) > limit, "{size}{compression}");
                let memtables = 8 * shape.write_buffer_bytes;
                assert!(workload.cache_bytes.unwrap() + memtables < limit, "{size}: no room");
                let (workload, shape) = parts(&format!("{size}-iodir{compression}")).unwrap();
                let least = least_bytes(&workload, &shape);
                assert!(shape.direct_io && workload.memory_limit.is_none());
                assert!(least > workload.cache_bytes.unwrap(), "{size}{compression}");
            }
        }
    }

    #[test]
    fn data_of_the_page_cache_do_not_fit_into_the_own_one() {
        for size in ["quick", "standard", "c2r24"] {
            let (workload, shape) = parts(&format!("{size}-byos")).unwrap();
            assert!(workload.cache_bytes.unwrap() < least_bytes(&workload, &shape), "{size}");
            assert_eq!(workload.memory_limit, None);
        }
    }
}
