//! Makes result sets of any size, as a series of builds over the field's steps would give them:
//! long names, an outlier, a stall, a failed step, plans and settings that differ. Seeded: the same
//! numbers each time. Use it with `mod made;`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use rqps_lab::benchmarks;
use rqps_model::benchmark::{Group, RateUnit, Workload};
use rqps_model::build::{BuildSource, Dbms, Manifest, Version};
use rqps_model::build::{Config, Target};
use rqps_model::host::{Host, fingerprint};
use rqps_model::run::*;
use rqps_results::ResultSet;

/// The size of a result set to make.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) targets: usize,
    pub(crate) steps: usize,
    pub(crate) blocks: u32,
    /// Seconds of each step.
    pub(crate) seconds: u32,
}

/// The field's names: points, then ranges, then writes.
const STEPS: [(&str, Group); 42] = [
    ("hot-points_range=100", Group::Point),
    ("range-covered-pk", Group::Range),
    ("update-index", Group::Write),
    ("scan", Group::Range),
    ("points-notcovered-si.pre", Group::Point),
    ("read-only_range=10000", Group::Range),
    ("write-only_range=10000", Group::Write),
    ("point-query", Group::Point),
    ("point-query.pre", Group::Point),
    ("points-covered-pk", Group::Point),
    ("points-covered-pk.pre", Group::Point),
    ("points-covered-si", Group::Point),
    ("points-covered-si.pre", Group::Point),
    ("points-notcovered-pk", Group::Point),
    ("points-notcovered-pk.pre", Group::Point),
    ("points-notcovered-si", Group::Point),
    ("random-points_range=10", Group::Point),
    ("random-points_range=100", Group::Point),
    ("random-points_range=1000", Group::Point),
    ("random-points.pre_range=10", Group::Point),
    ("random-points.pre_range=100", Group::Point),
    ("random-points.pre_range=1000", Group::Point),
    ("range-covered-pk.pre", Group::Range),
    ("range-covered-si", Group::Range),
    ("range-covered-si.pre", Group::Range),
    ("range-notcovered-pk", Group::Range),
    ("range-notcovered-pk.pre", Group::Range),
    ("range-notcovered-si", Group::Range),
    ("range-notcovered-si.pre", Group::Range),
    ("read-only-count", Group::Range),
    ("read-only-distinct", Group::Range),
    ("read-only-order", Group::Range),
    ("read-only-simple", Group::Range),
    ("read-only-sum", Group::Range),
    ("delete", Group::Write),
    ("insert", Group::Write),
    ("read-write_range=10", Group::Write),
    ("read-write_range=100", Group::Write),
    ("update-inlist", Group::Write),
    ("update-nonindex", Group::Write),
    ("update-one", Group::Write),
    ("update-zipf", Group::Write),
];

/// A seeded stream of numbers between 0 and 1.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1u64 << 24) as f64
    }

    /// Around 1, as a share either way.
    fn around(&mut self, share: f64) -> f64 {
        1.0 + share * (2.0 * self.next() - 1.0)
    }
}

/// Labels as a series has them: version, compiler options, configuration, host class.
pub(crate) fn label(target: usize) -> String {
    let version = ["5.6.51", "5.7.44", "8.0.22", "8.0.28", "8.0.36", "8.4.6", "9.1.0", "9.5.0"];
    if target < version.len() {
        format!("my{}_rel_o2nofp.z12a_c8r32", version[target])
    } else {
        format!("my9.{target}.0_rel_native_lto.z12a_c8r32")
    }
}

fn host() -> Host {
    Host {
        cpu_model: Some("Example CPU 3000 with Radiance".to_owned()),
        cpus: 8,
        cores: Some(8),
        kernel: Some("6.1.0".to_owned()),
        memory_bytes: 32 << 30,
        os: Some("Debian GNU/Linux 12".to_owned()),
        filesystem: Some("xfs".to_owned()),
        disk: Some("nvme0n1".to_owned()),
        missing: BTreeMap::from([("governor".to_owned(), "no cpufreq".to_owned())]),
        ..Host::default()
    }
}

fn workload() -> Workload {
    benchmarks::workload("sysbench", "quick").expect("the quick preset of sysbench").0
}

/// A run to take whatever does not matter here from: of the result set that is kept in the tree.
fn pattern() -> Run {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/two-targets");
    let dataset = rqps_results::read(&[kept]).expect("the result set of the tree");
    dataset.runs.into_iter().next().expect("a run in it")
}

/// Writes a result set into `folder`.
pub(crate) fn write_set(folder: &Path, size: Size) {
    let pattern = pattern();
    ResultSet::create(folder, "# made for a test\n", &host()).expect("a new result set");
    let mut noise = Noise(7);
    for block in 1..=size.blocks {
        for target in 0..size.targets {
            let record = run_record(&pattern.record, size, block, target);
            let run = folder.join(record.key.folder());
            fs::create_dir_all(run.join("steps")).expect("folder");
            let json = serde_json::to_string(&record).expect("JSON");
            fs::write(run.join("run.json"), json).expect("write");
            for step in 0..size.steps {
                write_step(&run, &pattern.steps[0], size, (block, target, step), &mut noise);
            }
        }
    }
}

fn run_record(pattern: &RunRecord, size: Size, block: u32, target: usize) -> RunRecord {
    let version = Version::new(format!("8.0.{target}"));
    RunRecord {
        format: FORMAT,
        key: RunKey { block, attempt: 1, order: target as u32 + 1, label: label(target) },
        target: Target {
            label: label(target),
            dbms: Dbms::Mysql,
            source: BuildSource::Version { version: version.clone(), variant: None },
            config: "z12a".to_owned(),
            storage_engine: None,
        },
        debug_build: None,
        server_settings: Default::default(),
        place: None,
        manifest: Manifest {
            dbms: Dbms::Mysql,
            version,
            reported: "mysqld Ver 8 for Linux on x86_64".to_owned(),
            origin: "example:mysql".to_owned(),
            sha256: Some("ab12".repeat(16)),
            compiler: Some("GCC 12.2.0".to_owned()),
            code: None,
            ..pattern.manifest.clone()
        },
        config: Config {
            name: "z12a".to_owned(),
            text: format!("[mysqld]\ninnodb_buffer_pool_size={}G\nsync_binlog=0\n", 1 + target / 4),
            hash: format!("{target:012x}"),
        },
        benchmark: "sysbench".to_owned(),
        workload: workload(),
        seed: 1,
        plan_hash: "feedc0ffee00".to_owned(),
        targets: (0..size.targets).map(label).collect(),
        host_fingerprint: fingerprint(&host()),
        node: None,
        sitting: None,
        rqps_version: "0.1.0".to_owned(),
        started: format!("2026-01-02T{block:02}:{:02}:00Z", target),
        finished: Some(format!("2026-01-02T{block:02}:{:02}:30Z", target)),
        status: Status::Complete,
        load: None,
        ..pattern.clone()
    }
}

/// The true ratio of a target's rate to the baseline's: it falls slowly with every version; one
/// step loses much more, and one is a little faster.
fn truth(step: usize, target: usize) -> f64 {
    match step {
        0 if target > 0 => 1.0 + 4.0 * target as f64 / 20.0 + if target == 1 { 3.1 } else { 0.0 },
        2 => 1.0 + 0.01 * target as f64,
        3 if target > 2 => 0.35,
        step if step % 3 == 0 => 1.0,
        step => 1.0 - 0.004 * (target * (1 + step % 5)) as f64,
    }
}

fn write_step(
    run: &Path,
    pattern: &StepRecord,
    size: Size,
    at: (u32, usize, usize),
    noise: &mut Noise,
) {
    let (block, target, step) = at;
    let (name, group) = STEPS[step];
    let rate = 20_000.0 / (1.0 + step as f64 / 4.0) * truth(step, target) * noise.around(0.012);
    let failed = (block, target, step) == (2, 1, 6);
    let mut csv =
        "second,seconds_s,events,statements,errors,p50_us,p95_us,p99_us,max_us\n".to_owned();
    let mut statements = 0;
    for second in 1..=size.seconds {
        // A checkpoint stalls one run of one step for two seconds.
        let stalled = (block, target, step) == (1, 1, 2) && (4..=5).contains(&second);
        let here = rate * noise.around(0.05) * if stalled { 0.01 } else { 1.0 };
        statements += here as u64;
        let p50 = 1e6 / rate;
        let p99 = p50 * 3.0 * noise.around(0.4) * if stalled { 300.0 } else { 1.0 };
        let _ = writeln!(
            csv,
            "{second},1,{0},{0},0,{p50:.1},{1:.1},{p99:.1},{2:.1}",
            here as u64,
            p50 * 2.0,
            p99 * 4.0
        );
    }
    let record = StepRecord {
        format: FORMAT,
        index: step as u32 + 1,
        name: name.to_owned(),
        group,
        reported: true,
        detail: if step == 2 { "one row by primary key; k is indexed" } else { "" }.to_owned(),
        rate: RateUnit::Queries,
        status: if failed {
            Status::Failed("run a step: the server went away".to_owned())
        } else {
            Status::Complete
        },
        started: "2026-01-02T01:00:00Z".to_owned(),
        outcome: if failed { Outcome::default() } else { outcome(size, step, target, statements) },
        usage: usage(size, rate, group),
        data_bytes: Some(5 << 30),
        ..pattern.clone()
    };
    let file = run.join("steps").join(format!("{:02}-{name}", step + 1));
    fs::write(file.with_added_extension("csv"), csv).expect("write");
    let json = serde_json::to_string(&record).expect("JSON");
    fs::write(file.with_added_extension("json"), json).expect("write");
}

fn outcome(size: Size, step: usize, target: usize, statements: u64) -> Outcome {
    let plan = match (step, target) {
        (3, 3..) => "SIMPLE\tsbtest1\tindex\tk_1\t4\tNULL\tUsing where",
        _ => "SIMPLE\tsbtest1\tALL\tNULL\tNULL\tNULL\tUsing where",
    };
    Outcome {
        seconds: f64::from(size.seconds),
        events: statements,
        statements,
        reads: statements,
        latency: latency(statements, u64::from(size.seconds) * 1_000_000_000 / statements.max(1)),
        client_cpu: CpuTime { user_us: 2e5 * f64::from(size.seconds), system_us: 1e5 },
        client_busiest: 0.3,
        plans: BTreeMap::from([("scans".to_owned(), plan.to_owned())]),
        ..Outcome::default()
    }
}

fn latency(events: u64, mean_ns: u64) -> String {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, (1 << 42) - 1, 3).expect("bounds");
    for (share, factor) in [(0.5, 0.9), (0.4, 1.1), (0.09, 2.0), (0.009, 4.0), (0.001, 30.0)] {
        let value = (mean_ns as f64 * factor) as u64;
        histogram.record_n(value.max(1), (events as f64 * share) as u64).expect("in bounds");
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).expect("serialize");
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn usage(size: Size, rate: f64, group: Group) -> Usage {
    let seconds = f64::from(size.seconds);
    let writes = if group == Group::Write { rate * seconds } else { 0.0 };
    Usage {
        seconds,
        server_cpu: Some(CpuTime { user_us: 6e5 * seconds, system_us: 1e5 * seconds }),
        server_rss_bytes: Some(4 << 30),
        host: HostUsage {
            cpus: 8,
            user: 0.9 * seconds,
            system: 0.3 * seconds,
            idle: 6.8 * seconds,
            context_switches: (rate * 2.0 * seconds) as u64,
            ..HostUsage::default()
        },
        disk: Some(DiskUsage {
            writes: writes as u64,
            write_kb: 16.0 * writes,
            ..Default::default()
        }),
        ..Usage::default()
    }
}
