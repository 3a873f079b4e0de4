//! From run folders to reports: a small fixed result set under tests/data, golden reports, and
//! properties that must hold for any measurements.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::program;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};

use rqps_analysis::caveat::CaveatKind as Kind;
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::{Comparison, VerdictOptions};
use rqps_bench_vector::analyze::drops;
use rqps_lab::benchmarks::{compare, compare_measured, digest, measure, render, sections};
use rqps_model::benchmark::{
    BenchmarkParameters, Group, Idle, Pace, Placement, RateUnit, Workload,
};
use rqps_model::build::{BuildSource, Dbms, Manifest, Version};
use rqps_model::build::{Config, Target};
use rqps_model::gate::*;
use rqps_model::host::{Host, Session, Tuning, fingerprint};
use rqps_model::metric::Metric;
use rqps_model::row_digest::RowsRecord;
use rqps_model::row_digest::{AnswerReply, StepAnswers, TableRecord};
use rqps_model::run::*;
use rqps_model::script::{StepParameters, StepPurpose};
use rqps_model::vector::VectorParameters;
use rqps_model::verdict::{Rules, Verdict};
use rqps_report::Format;
use rqps_report::export::{Beside, TABLES, rows};
use rqps_report::html::{self, Material};
use rqps_results::{ResultSet, ResultsError, read, read_each, read_seconds, seconds_of};

const BASE: &str = "mysql-5.6.14";
const NEW: &str = "mysql-8.0.33";

// ---- The hand-made result set -------------------------------------------------------------------

fn host() -> Host {
    Host {
        cpu_model: Some("Example CPU".to_owned()),
        cpus: 2,
        cores: Some(2),
        smt: Some("notsupported".to_owned()),
        virtualization: Some("kvm".to_owned()),
        kernel: Some("6.1.0".to_owned()),
        mitigations: BTreeMap::from([("spectre_v2".to_owned(), "Mitigation: IBRS".to_owned())]),
        transparent_huge_pages: Some("madvise".to_owned()),
        huge_pages: Some(0),
        memory_bytes: 8 << 30,
        disk: Some("vda".to_owned()),
        disk_rotational: Some(false),
        filesystem: Some("ext4".to_owned()),
        mount_options: Some("rw,relatime".to_owned()),
        os: Some("Debian GNU/Linux 12".to_owned()),
        missing: BTreeMap::from([("governor".to_owned(), "no cpufreq".to_owned())]),
        ..Host::default()
    }
}

fn workload() -> Workload {
    Workload {
        rows: 300_000,
        read_seconds: 10.0,
        write_seconds: 20.0,
        warmup_seconds: 5.0,
        settle_scale: 0.5,
        placement: Placement::Together,
        ..Workload::plain(BenchmarkParameters::Sysbench)
    }
}

fn run_record(label: &str, block: u32, order: u32) -> RunRecord {
    let version = label.split_once('-').unwrap().1;
    let text = if label == BASE {
        "[mysqld]\nquery_cache_size=0\ninnodb_buffer_pool_size=512M\n"
    } else {
        "[mysqld]\nskip_log_bin\ninnodb_buffer_pool_size=512M\n"
    };
    RunRecord {
        format: FORMAT,
        key: RunKey { block, attempt: 1, order, label: label.to_owned() },
        target: Target {
            label: label.to_owned(),
            dbms: Dbms::Mysql,
            source: BuildSource::Version { version: Version::new(version), variant: None },
            config: "default".to_owned(),
            storage_engine: Some("innodb".to_owned()),
        },
        debug_build: None,
        server_settings: Default::default(),
        place: None,
        manifest: Manifest {
            dbms: Dbms::Mysql,
            version: Version::new(version),
            reported: format!("mysqld  Ver {version} for Linux on x86_64\n"),
            origin: format!("example:mysql:{version}"),
            sha256: Some(if label == BASE { "ab12" } else { "cd34" }.repeat(16)),
            compiler: Some("GCC 4.4.7".to_owned()),
            code: None,
            packages: BTreeMap::new(),
        },
        config: Config {
            name: "default".to_owned(),
            text: text.to_owned(),
            hash: if label == BASE { "0a1b2c3d4e5f" } else { "5f4e3d2c1b0a" }.to_owned(),
        },
        benchmark: "sysbench".to_owned(),
        workload: workload(),
        seed: 42,
        plan_hash: "feedc0ffee00".to_owned(),
        targets: vec![BASE.to_owned(), NEW.to_owned()],
        host_fingerprint: fingerprint(&host()),
        node: None,
        sitting: None,
        rqps_version: "0.1.0".to_owned(),
        started: format!("2026-01-02T0{block}:{order}0:00Z"),
        finished: Some(format!("2026-01-02T0{block}:{order}5:00Z")),
        status: Status::Complete,
        load: Some(LoadRecord {
            number: 1,
            rows: 300_000,
            load_seconds: 2.5,
            index_seconds: if label == BASE { 0.5 } else { 0.75 },
            data_bytes: Some(120 << 20),
            files: Vec::new(),
        }),
        schedule: None,
        tables: Vec::new(),
        answers_after: Default::default(),
    }
}

/// A histogram of `events` latencies around `mean_us`, spread a little: 90 % at the mean, 9.9 % at
/// the double, the rest at tenfold.
fn latency(events: u64, mean_us: u64) -> String {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, (1 << 42) - 1, 3).unwrap();
    let tail = events / 1000;
    let slow = events / 10 - tail;
    histogram.record_n(mean_us * 1000, events - slow - tail).unwrap();
    histogram.record_n(mean_us * 2000, slow).unwrap();
    histogram.record_n(mean_us * 10_000, tail).unwrap();
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The properties of a step of the sample.
struct Shape {
    name: &'static str,
    group: Group,
    reported: bool,
    rate: RateUnit,
    /// Statements per second of the baseline.
    base: u64,
    /// Rate of the target in each block, per cent of the baseline's.
    percent: [u64; 3],
    plan: [&'static str; 2],
}

const POINT_PLAN: &str = "SIMPLE\tsbtest1\tconst\tPRIMARY\t4\tconst\tNULL";
const POINT_PLAN_8: &str = "SIMPLE\tsbtest1\tconst\tPRIMARY\t4\tconst\tNULL";
const SCAN_PLAN: &str = "SIMPLE\tsbtest1\tALL\tNULL\tNULL\tNULL\tUsing where";
const SCAN_PLAN_8: &str = "SIMPLE\tsbtest1\tindex\tk_1\t4\tNULL\tUsing where";

const SHAPES: [Shape; 5] = [
    Shape {
        name: "point-query.warm",
        group: Group::Point,
        reported: false,
        rate: RateUnit::Queries,
        base: 19_000,
        percent: [70, 70, 70],
        plan: [POINT_PLAN, POINT_PLAN_8],
    },
    Shape {
        name: "point-query",
        group: Group::Point,
        reported: true,
        rate: RateUnit::Queries,
        base: 20_000,
        percent: [70, 72, 71],
        plan: [POINT_PLAN, POINT_PLAN_8],
    },
    Shape {
        name: "scan",
        group: Group::Range,
        reported: true,
        rate: RateUnit::RowsScanned,
        base: 12,
        percent: [100, 125, 100],
        plan: [SCAN_PLAN, SCAN_PLAN_8],
    },
    Shape {
        name: "update-index",
        group: Group::Write,
        reported: true,
        rate: RateUnit::Queries,
        base: 4_000,
        percent: [90, 89, 0],
        plan: [POINT_PLAN, POINT_PLAN_8],
    },
    Shape {
        name: "delete",
        group: Group::Write,
        reported: true,
        rate: RateUnit::Queries,
        base: 10_000,
        percent: [60, 60, 60],
        plan: [POINT_PLAN, POINT_PLAN_8],
    },
];

fn outcome(shape: &Shape, label: &str, block: u32, statements: u64) -> Outcome {
    let writes = shape.group == Group::Write;
    let no_ops = if shape.name == "delete" { statements * 3 / 10 } else { 0 };
    let new = usize::from(label == NEW);
    let kind = if shape.name == "scan" { "scans" } else { "point_selects" };
    Outcome {
        seconds: 10.0,
        events: statements,
        statements,
        reads: if writes { 0 } else { statements },
        writes: if writes { statements - no_ops } else { 0 },
        others: no_ops,
        no_ops,
        rows: statements,
        rows_scanned: if shape.name == "scan" { statements * 300_000 } else { 0 },
        bytes: statements * 200,
        errors: match (shape.name, label == NEW) {
            ("update-index", true) => BTreeMap::from([("1213".to_owned(), 90)]),
            _ => BTreeMap::new(),
        },
        latency: latency(statements, 10_000_000 / statements.max(1)),
        client_cpu: CpuTime { user_us: 0.5e6, system_us: 2.0e6 },
        client_busiest: if shape.name == "point-query" && block == 2 { 0.85 } else { 0.25 },
        plans: BTreeMap::from([(kind.to_owned(), shape.plan[new].to_owned())]),
        notes: match (shape.name, label == NEW) {
            ("scan", false) => vec![format!("client 0 could not be pinned to CPU {block}")],
            _ => Vec::new(),
        },
        ..Outcome::default()
    }
}

fn usage(shape: &Shape) -> Usage {
    Usage {
        seconds: 10.0,
        server_cpu: Some(CpuTime { user_us: 5.0e6, system_us: 1.0e6 }),
        server_rss_bytes: Some(600 << 20),
        server_events: None,
        client_events: None,
        host: HostUsage {
            cpus: 2,
            user: 9.0,
            nice: 3.0,
            system: 4.0,
            idle: 6.5,
            iowait: 0.5,
            steal: if shape.name == "delete" { 0.3 } else { 0.0 },
            context_switches: 80_000,
        },
        disk: Some(DiskUsage {
            reads: 0,
            read_kb: 0.0,
            writes: if shape.group == Group::Write { 5000 } else { 0 },
            write_kb: if shape.group == Group::Write { 80_000.0 } else { 0.0 },
            busy_ms: 100,
            read_ms: 0,
            write_ms: if shape.group == Group::Write { 60 } else { 0 },
        }),
        spinner_cpu: CpuTime { user_us: 3.0e6, system_us: 0.0 },
        disturbance: None,
        sources: BTreeMap::from([("server_cpu".to_owned(), "proc stat".to_owned())]),
        missing: BTreeMap::new(),
    }
}

fn step_record(shape: &Shape, index: u32, label: &str, block: u32) -> StepRecord {
    // The base's rate drifts by the block; the pair shares the drift.
    let base = shape.base * u64::from(95 + 5 * block) / 100;
    let percent = if label == BASE { 100 } else { shape.percent[block as usize - 1] };
    let statements = 10 * base * percent / 100;
    StepRecord {
        reported: shape.reported,
        detail: if shape.name == "delete" { "ids with replacement" } else { "" }.to_owned(),
        status: match percent {
            0 => Status::Failed("run update-index on mysql-8.0.33: server went away".to_owned()),
            _ => Status::Complete,
        },
        started: format!("2026-01-02T0{block}:0{index}:00Z"),
        outcome: match percent {
            0 => Outcome::default(),
            _ => outcome(shape, label, block, statements),
        },
        usage: usage(shape),
        data_bytes: Some((120 + u64::from(index)) << 20),
        // As an older version wrote it: parameters are in the name.
        parameters: StepParameters::default(),
        ..StepRecord::empty(index, shape.name, shape.group, shape.rate)
    }
}

fn seconds(record: &StepRecord) -> Vec<Second> {
    let second = |second: u32| Second {
        second,
        seconds: 1.0,
        events: record.outcome.events / 10,
        statements: record.outcome.statements / 10,
        errors: 0,
        p50_us: 100.0,
        p95_us: 200.5,
        p99_us: 200.5,
        max_us: 1000.0,
        extra: BTreeMap::new(),
        usage: Some(Usage {
            seconds: 1.0,
            sources: BTreeMap::new(),
            missing: BTreeMap::new(),
            ..record.usage.clone()
        }),
    };
    (1..=2).map(second).collect()
}

/// A block's order of targets: ABBA.
fn order(block: u32) -> [&'static str; 2] {
    if block % 2 == 1 { [BASE, NEW] } else { [NEW, BASE] }
}

/// A log of the host beside the blocks, with every field filled in.
fn host_gate() -> HostLog {
    let canary = Canary { spin_ns: Some(5e7), ..Canary::default() };
    let differences = vec![0.01, -0.01];
    let noise = StepNoise { step: "scan".into(), group: Group::Point, differences };
    HostLog {
        ledger: Vec::new(),
        format: GATE_FORMAT,
        canaries: CanaryRule::Calibration,
        first_canaries: vec![canary.clone()],
        calibration: Some(Calibration {
            format: GATE_FORMAT,
            host_fingerprint: fingerprint(&host()),
            made: "2026-01-01T00:00:00Z".to_owned(),
            rqps_version: "0.1.0".to_owned(),
            target: "mysql@5.6.14".to_owned(),
            dbms: Dbms::Mysql,
            clients: 1,
            placement: Placement::Together,
            idle: Idle::Os,
            turns: false,
            read_seconds: 10.0,
            write_seconds: 10.0,
            blocks: 2,
            steps: vec![noise],
            slot: SlotEffect { differences: vec![0.0, 0.0] },
            canary_pairs: vec![[canary.clone(), canary.clone()]],
            out_of_range: 0,
        }),
        blocks: vec![BlockRecord {
            block: 1,
            attempt: 1,
            before: Some(canary.clone()),
            after: Some(canary),
            out_of_range: Some("spin".to_owned()),
            discarded: true,
            ..BlockRecord::default()
        }],
        spent_seconds: 600.0,
    }
}

/// The plan and the runs of three blocks of two targets, five steps each.
fn sample_runs() -> Vec<(RunRecord, Vec<StepRecord>)> {
    let mut runs = Vec::new();
    for block in 1..=3 {
        for (place, label) in order(block).into_iter().enumerate() {
            let steps = SHAPES.iter().zip(1..).map(|(s, i)| step_record(s, i, label, block));
            runs.push((run_record(label, block, place as u32 + 1), steps.collect()));
        }
    }
    runs
}

fn write_set(dir: &Path, runs: &[(RunRecord, Vec<StepRecord>)]) {
    let set = ResultSet::create(dir, "# A plan.\n", &host()).unwrap();
    for (record, steps) in runs {
        let run = set.begin_run(record).unwrap();
        for step in steps {
            run.write_step(step, &seconds(step)).unwrap();
        }
        run.write_log("server.log", "ready\n").unwrap();
    }
}

fn dataset_of(runs: &[(RunRecord, Vec<StepRecord>)]) -> Dataset {
    let runs = runs.iter().map(|(record, steps)| Run {
        folder: format!("set/{}", record.key.folder()),
        result_set: "set".to_owned(),
        record: record.clone(),
        steps: steps.iter().cloned().map(Arc::new).collect(),
        has_counters: false,
    });
    let mut runs: Vec<Run> = runs.collect();
    runs.sort_by(|a, b| a.record.key.cmp(&b.record.key));
    let hosts = BTreeMap::from([(fingerprint(&host()), host())]);
    Dataset { hosts, runs, ..Dataset::default() }
}

fn compared(runs: &[(RunRecord, Vec<StepRecord>)]) -> Comparison {
    compare(&dataset_of(runs), &VerdictOptions::default()).unwrap()
}

// ---- tests/data ---------------------------------------------------------------------------------

const DATA: &str = "tests/data/two-targets";

fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir).unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The format of version 1 is what is committed. After a change of the format that is meant, run
/// with RQPS_WRITE_TEST_DATA=1 and look at the difference before committing it.
#[test]
fn the_committed_result_set_is_what_we_write() {
    let scratch = tempfile::tempdir().unwrap();
    let written = scratch.path().join("set");
    write_set(&written, &sample_runs());
    if std::env::var_os("RQPS_WRITE_TEST_DATA").is_some() {
        fs::remove_dir_all(DATA).ok();
        write_set(Path::new(DATA), &sample_runs());
    }
    let (ours, committed) = (files(&written), files(Path::new(DATA)));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&ours), names(&committed));
    for (name, bytes) in &ours {
        assert!(bytes == &committed[name], "{} differs", name.display());
    }
}

#[test]
fn the_committed_result_set_reads_back_whole() {
    let dataset = read(&[PathBuf::from(DATA)]).unwrap();
    let mut expected = dataset_of(&sample_runs());
    for run in &mut expected.runs {
        run.folder = run.folder.replace("set/", &format!("{DATA}/"));
        run.result_set = DATA.to_owned();
    }
    assert_eq!(dataset, expected);
    let step = &sample_runs()[0].1[1];
    let csv = format!("{DATA}/b01-1-{BASE}/steps/02-point-query.csv");
    assert_eq!(read_seconds(Path::new(&csv)).unwrap(), seconds(step));
}

fn committed_report(format: Format) -> String {
    let dataset = read(&[PathBuf::from(DATA)]).unwrap();
    render(&compare(&dataset, &VerdictOptions::default()).unwrap(), format)
}

#[test]
fn a_report_needs_no_histograms_once_runs_are_read() {
    let page = |dataset: &Dataset, comparison: &Comparison| {
        let seconds =
            |run: &Run, step: &StepRecord| seconds_of(run, step).map_err(|e| e.to_string());
        let links = BTreeMap::new();
        html::render(&Material {
            comparison,
            dataset,
            seconds: &seconds,
            links: &links,
            own: &sections(),
        })
    };
    let whole = read(&[PathBuf::from(DATA)]).unwrap();
    let (dataset, measured) = read_each(&[PathBuf::from(DATA)], digest).unwrap();
    let latencies = |dataset: &Dataset| {
        let steps = dataset.runs.iter().flat_map(|run| &run.steps);
        steps.filter(|step| !step.outcome.latency.is_empty()).count()
    };
    assert!(latencies(&whole) > 0);
    assert_eq!(latencies(&dataset), 0);
    let of_whole = compare(&whole, &VerdictOptions::default()).unwrap();
    let comparison = compare_measured(&dataset, measured, &VerdictOptions::default()).unwrap();
    for format in Format::ALL {
        assert_eq!(render(&comparison, format), render(&of_whole, format), "{format:?}");
    }
    let with_charts = page(&whole, &of_whole);
    assert!(with_charts.contains("latency by percentile"));
    assert_eq!(page(&dataset, &comparison), with_charts);
}

#[test]
fn what_is_made_of_runs_comes_in_their_order() {
    let dirs =
        [format!("b02-1-{NEW}"), format!("b01-1-{BASE}")].map(|run| Path::new(DATA).join(run));
    let (dataset, names) = read_each(&dirs, |run, _| run.folder.clone()).unwrap();
    let folders: Vec<String> = dataset.runs.iter().map(|run| run.folder.clone()).collect();
    assert_eq!(names, folders);
    assert_eq!(names, [format!("{DATA}/b01-1-{BASE}"), format!("{DATA}/b02-1-{NEW}")]);
}

#[test]
fn golden_text() {
    insta::assert_snapshot!("text", committed_report(Format::Text));
}

#[test]
fn golden_post() {
    insta::assert_snapshot!("post", committed_report(Format::Post));
}

/// The ratio of one's own pairs does not change beside a published one of the same labels.
#[test]
fn imported_results_are_a_part_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = std::fs::canonicalize(DATA).unwrap();
    let table = format!("Relative to: {BASE}\ncol-1 : {NEW}\n\ncol-1\tstep\n0.90\tpoint-query\n");
    let [file, published] = ["qps.rel.tsv", "published"]
        .map(|name| folder.path().join(name).to_string_lossy().into_owned());
    std::fs::write(&file, table).unwrap();
    let words = ["import", "sysbench-mytools", &file, "--out", &published];
    let said = program::run(&words, folder.path());
    assert!(said.status.success(), "{said:?}");
    let json = |folders: &[&str]| -> serde_json::Value {
        let words: Vec<&str> =
            ["report", "--format", "json"].iter().chain(folders).copied().collect();
        serde_json::from_slice(&program::run(&words, folder.path()).stdout).unwrap()
    };
    let ratio = |comparison: &serde_json::Value| {
        let steps = comparison["steps"].as_array().unwrap();
        let step = steps.iter().find(|step| step["name"] == "point-query").unwrap();
        step["targets"][1]["metrics"]["rate"]["relative"]["ratio"].as_f64().unwrap()
    };
    let alone = json(&[data.to_str().unwrap()]);
    let both = json(&[data.to_str().unwrap(), &published]);
    let parts = both["families"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    assert_eq!(ratio(&parts[0]["comparison"]), ratio(&alone["comparison"]));
    assert_eq!(ratio(&parts[1]["comparison"]), 0.9);
}

/// The texts of a plot in their order; each dot has its step and target.
#[test]
fn a_plot_has_the_largest_loss_first() {
    let folder = tempfile::tempdir().unwrap();
    let plot = folder.path().join("p.svg");
    let data = std::fs::canonicalize(DATA).unwrap();
    let draw = |words: &[&str]| {
        let words: Vec<&str> =
            ["plot", data.to_str().unwrap()].iter().chain(words).copied().collect();
        program::run(&words, folder.path())
    };
    let said = draw(&["-o", plot.to_str().unwrap(), "--label", &format!("{NEW}=<b>new</b>")]);
    assert!(said.status.success(), "{said:?}");
    let svg = std::fs::read_to_string(&plot).unwrap();
    assert!(!svg.contains("<b>"), "{svg}");
    let texts: Vec<&str> = svg.lines().filter(|line| line.contains("class=\"name\"")).collect();
    insta::assert_snapshot!("plot", texts.join("\n"));
    for (words, why) in [
        (&["-o", "x.gif"][..], "name it x.svg"),
        (&["--step", "none"], "no such step; they have"),
        (&["--kind", "ladder"], "three or more versions"),
    ] {
        let said = draw(words);
        let error = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.status.code() == Some(2) && error.contains(why), "{words:?}: {error}");
    }
    let png = folder.path().join("x.png");
    let picture = draw(&["-o", png.to_str().unwrap()]);
    if std::path::Path::new("/usr/bin/rsvg-convert").exists() {
        assert!(picture.status.success(), "{picture:?}");
        assert!(std::fs::read(png).unwrap().starts_with(b"\x89PNG\r\n"));
    } else {
        assert!(String::from_utf8_lossy(&picture.stderr).contains("librsvg2-bin"), "{picture:?}");
    }
    let lines = draw(&["--kind", "lines", "--step", "point-query"]);
    assert!(String::from_utf8_lossy(&lines.stdout).contains("<polyline"), "{lines:?}");
}

#[test]
fn golden_tsv() {
    insta::assert_snapshot!("tsv", committed_report(Format::Tsv));
}

#[test]
fn golden_csv() {
    let csv = committed_report(Format::Csv);
    // One run is enough to hold the form; every run has the same number of lines.
    let first: Vec<&str> = csv.lines().filter(|line| line.contains("b01-1-")).collect();
    let head = csv.lines().next().unwrap();
    insta::assert_snapshot!("csv", format!("{head}\n{}", first.join("\n")));
}

#[test]
fn golden_json() {
    let json = committed_report(Format::Json);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["schema"], 1);
    // The head of the first step: the rest is more of the same.
    let step = serde_json::to_string_pretty(&value["comparison"]["steps"][0]["targets"][1]);
    insta::assert_snapshot!("json", step.unwrap());
}

#[test]
fn the_same_folders_give_the_same_bytes() {
    for format in Format::ALL {
        assert_eq!(committed_report(format), committed_report(format));
    }
}

// ---- Writing and reading ------------------------------------------------------------------------

fn scratch_set() -> (tempfile::TempDir, ResultSet) {
    let folder = tempfile::tempdir().unwrap();
    let set = ResultSet::create(&folder.path().join("set"), "plan", &host()).unwrap();
    (folder, set)
}

#[test]
fn leftovers_of_a_kill_are_passed_over() {
    let (_folder, set) = scratch_set();
    let (record, steps) = &sample_runs()[0];
    let run = set.begin_run(record).unwrap();
    run.write_step(&steps[0], &[]).unwrap();
    // A step whose record was being written, one whose seconds were all that was written, a run
    // whose record was being written, and a run that has a folder only.
    fs::write(run.folder().join("steps/.02-point-query.json.partial"), "{\"format\": 1,").unwrap();
    fs::write(run.folder().join("steps/02-point-query.csv"), "second\n").unwrap();
    let other = set.folder().join("b01-2-x");
    fs::create_dir_all(other.join("steps")).unwrap();
    fs::write(other.join(".run.json.partial"), "{").unwrap();
    fs::write(set.folder().join("notes.txt"), "mine").unwrap();
    let dataset = read(&[set.folder().to_owned()]).unwrap();
    assert_eq!(dataset.runs.len(), 1);
    assert_eq!(dataset.runs[0].steps, [Arc::new(steps[0].clone())]);
    assert_eq!(set.runs().unwrap(), std::slice::from_ref(record));
}

#[test]
fn a_run_can_be_taken_up_and_a_step_written_again() {
    let (_folder, set) = scratch_set();
    let (mut record, steps) = sample_runs().swap_remove(0);
    record.status = Status::Running;
    record.finished = None;
    let run = set.begin_run(&record).unwrap();
    run.write_step(&StepRecord { status: Status::Interrupted, ..steps[0].clone() }, &[]).unwrap();
    let again = set.run(&record.key).unwrap();
    again.write_step(&steps[0], &[]).unwrap();
    record.status = Status::Complete;
    again.update(&record).unwrap();
    let dataset = read(&[set.folder().to_owned()]).unwrap();
    assert_eq!(dataset.runs[0].record.status, Status::Complete);
    assert_eq!(dataset.runs[0].steps, [Arc::new(steps[0].clone())]);
    let other = RunKey { block: 9, ..record.key };
    assert!(matches!(set.run(&other), Err(ResultsError::NotResults { .. })));
}

fn check_refusal<T>(result: Result<T, ResultsError>, expected: &[&str]) {
    let text = result.err().expect("it should have been refused").to_string();
    for part in expected {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// A kernel may number the disks anew when the host starts: a plan goes on, unless a block of this
/// start was measured on the other disk.
#[test]
fn a_disk_that_a_restart_numbered_anew_is_the_same() {
    let (_folder, set) = scratch_set();
    let dir = set.folder();
    let known = |boot: Option<&str>, disk: &str| {
        let now = Host { disk: Some(disk.to_owned()), ..host() };
        ResultSet::since_restart(dir, now, boot).disk.unwrap()
    };
    assert_eq!(known(Some("1"), "vdb1"), "vda", "no block is there yet");
    let session = Session { boot: Some("1".to_owned()), ..Session::default() };
    let blocks = vec![BlockRecord { session: Some(session), ..BlockRecord::default() }];
    set.write_gate(&HostLog { format: GATE_FORMAT, blocks, ..HostLog::default() }).unwrap();
    assert_eq!(known(Some("1"), "vdb1"), "vdb1", "another disk of the same start");
    assert_eq!(known(None, "vdb1"), "vdb1", "the kernel names no starts");
    assert_eq!(known(Some("2"), "vdb1"), "vda");
    assert_eq!(known(Some("2"), "nvme0n1"), "nvme0n1", "a disk of another kind");
    let other = tempfile::tempdir().unwrap();
    let now = ResultSet::since_restart(other.path(), host(), Some("2"));
    assert_eq!(now, host(), "no results are there yet");
}

#[test]
fn a_folder_of_something_else_is_refused() {
    let (folder, set) = scratch_set();
    let dir = set.folder();
    assert!(ResultSet::create(dir, "plan", &host()).is_ok(), "the same plan is taken up again");
    check_refusal(ResultSet::create(dir, "another", &host()), &["another plan", "--out"]);
    let moved = Host { kernel: Some("7".to_owned()), ..host() };
    check_refusal(ResultSet::create(dir, "plan", &moved), &["another host", "kernel", "\"7\" now"]);
    check_refusal(ResultSet::create(folder.path(), "plan", &host()), &["it holds `set`"]);
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    check_refusal(ResultSet::create(&file, "plan", &host()), &["it is a file"]);
    let hidden = folder.path().join("hidden");
    fs::create_dir(&hidden).unwrap();
    fs::write(hidden.join(".lock"), "").unwrap();
    assert!(ResultSet::create(&hidden, "plan", &host()).is_ok(), "a lock file is no content");
    check_refusal(ResultSet::open(&folder.path().join("none")), &["no such folder"]);
    check_refusal(ResultSet::open(&file), &["it is a file", "rqps import"]);
    check_refusal(ResultSet::open(&hidden.join("..")), &["its folders are result folders", "/*"]);
    check_refusal(ResultSet::open(&set.folder().join("runs")), &["no such folder"]);
    let empty = folder.path().join("empty");
    fs::create_dir(&empty).unwrap();
    check_refusal(ResultSet::open(&empty), &["it holds no plan.toml", "rqps compare"]);
    check_refusal(read(&[empty]), &["it holds no plan.toml"]);
    let (record, _) = sample_runs().swap_remove(0);
    set.begin_run(&record).unwrap();
    check_refusal(set.begin_run(&record), &["b01-1-mysql-5.6.14", "already holds a run"]);
}

#[test]
fn what_cannot_be_a_file_or_json_is_refused() {
    let (_folder, set) = scratch_set();
    let (record, steps) = sample_runs().swap_remove(0);
    let run = set.begin_run(&record).unwrap();
    let mut step = steps[0].clone();
    step.outcome.client_busiest = f64::NAN;
    check_refusal(run.write_step(&step, &[]), &["01-point-query.warm.json", "client_busiest"]);
    step = StepRecord { name: "../x".to_owned(), ..steps[0].clone() };
    check_refusal(run.write_step(&step, &[]), &["step `01-../x`", "valid file name"]);
    check_refusal(run.write_log("a/b", ""), &["log `a/b`"]);
    check_refusal(run.write_log(".hidden", ""), &[".hidden"]);
    assert!(read(&[set.folder().to_owned()]).unwrap().runs[0].steps.is_empty());
}

#[test]
fn damaged_files_are_named_with_line_and_field() {
    let (_folder, set) = scratch_set();
    let (record, steps) = sample_runs().swap_remove(0);
    let run = set.begin_run(&record).unwrap();
    run.write_step(&steps[0], &[]).unwrap();
    let path = run.folder().join("steps/01-point-query.warm.json");
    let dirs = [set.folder().to_owned()];
    let good = fs::read_to_string(&path).unwrap();
    let check = |bad: &str, expected: &[&str]| {
        assert_ne!(bad, good);
        fs::write(&path, bad).unwrap();
        check_refusal(read(&dirs), expected);
    };
    let file = "01-point-query.warm.json";
    check(&good.replace("\"index\": 1", "\"index\": \"x\""), &[file, "line 3, field `index`"]);
    check(&good.replace("\"reads\"", "\"reeds\""), &[file, "missing field `reads`"]);
    check(&good[..good.len() / 2], &[file, "EOF"]);
    let newer = good.replace("\"format\": 1", "\"format\": 2");
    check(&newer, &[file, "version is 2", "up to 1"]);
    // A later format may have lost a field: that it is later is what must be said.
    check(&newer.replace("\"reads\"", "\"reeds\""), &[file, "version is 2"]);
    fs::write(&path, good).unwrap();
    let run_json = run.folder().join("run.json");
    let good = fs::read_to_string(&run_json).unwrap();
    fs::write(&run_json, good.replace("\"format\": 1", "\"format\": 7")).unwrap();
    check_refusal(read(&dirs), &["run.json", "version is 7"]);
    check_refusal(set.runs(), &["run.json", "version is 7"]);
}

#[test]
fn a_run_folder_alone_and_a_set_named_twice_are_understood() {
    let set = PathBuf::from(DATA);
    let run = set.join(format!("b02-1-{NEW}"));
    let one = read(std::slice::from_ref(&run)).unwrap();
    assert_eq!(one.runs.len(), 1);
    assert_eq!(one.runs[0].result_set, DATA);
    assert_eq!(one.hosts.len(), 1);
    let all = read(&[set.clone(), run.clone(), set.join("../two-targets")]).unwrap();
    assert_eq!(all, read(std::slice::from_ref(&set)).unwrap());
    // Copied away from its set: the host is not known, the rest is.
    let scratch = tempfile::tempdir().unwrap();
    let copy = scratch.path().join("copy");
    fs::create_dir_all(copy.join("steps")).unwrap();
    fs::copy(run.join("run.json"), copy.join("run.json")).unwrap();
    let alone = read(std::slice::from_ref(&copy)).unwrap();
    assert_eq!((alone.runs.len(), alone.hosts.len()), (1, 0));
    assert_eq!(alone.runs[0].record, one.runs[0].record);
    // A link to a run is that run.
    let linked = scratch.path().join("linked");
    fs::create_dir(&linked).unwrap();
    for name in ["plan.toml", "host.json"] {
        fs::copy(set.join(name), linked.join(name)).unwrap();
    }
    std::os::unix::fs::symlink(fs::canonicalize(&run).unwrap(), linked.join("link")).unwrap();
    assert_eq!(read(std::slice::from_ref(&linked)).unwrap().runs.len(), 1);
    assert_eq!(read(&[set, linked]).unwrap().runs, all.runs);
}

// ---- docs/results.md ----------------------------------------------------------------------------

/// Names of all fields of a JSON value. Keys of maps that hold data (codes, counters) are not
/// fields; `data_maps` names the fields that are such maps.
fn field_names(value: &serde_json::Value, data_maps: &[&str], names: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(map) => {
            for (name, value) in map {
                names.push(name.clone());
                if !data_maps.contains(&name.as_str()) {
                    field_names(value, data_maps, names);
                }
            }
        }
        serde_json::Value::Array(list) => {
            list.iter().for_each(|value| field_names(value, data_maps, names));
        }
        _ => {}
    }
}

#[test]
fn every_field_is_documented() {
    let document = fs::read_to_string("../../docs/results.md").unwrap();
    let data_maps = [
        "mitigations", "errors", "plans", "sources", "missing", "hosts", "metrics", "skipped",
        "open",
    ];
    let mut names = Vec::new();
    let mut collect = |value: serde_json::Value| field_names(&value, &data_maps, &mut names);
    let mut step = step_record(&SHAPES[1], 2, BASE, 1);
    step.outcome.service = Some(step.outcome.latency.clone());
    step.usage.disturbance = Some(Disturbance::default());
    step.outcome.open = Some(OpenOutcome { due: 1, behind_seconds_max: 0.5 });
    let mut record = run_record(BASE, 1, 1);
    record.status = Status::Failed("why".to_owned());
    record.workload.pace = Pace::Open { events_per_second: 5.0 };
    collect(serde_json::to_value(&step).unwrap());
    collect(serde_json::to_value(host()).unwrap());
    let json: serde_json::Value = serde_json::from_str(&committed_report(Format::Json)).unwrap();
    for source in
        [BuildSource::Path("/x".into()), BuildSource::CompiledIn, BuildSource::Dsn("d".to_owned())]
    {
        record.target.source = source;
        collect(serde_json::to_value(&record).unwrap());
    }
    collect(serde_json::to_value(run_record(BASE, 1, 1)).unwrap());
    collect(serde_json::to_value(host_gate()).unwrap());
    // The report repeats the records; its metrics are a map by metric of one more level.
    let metrics = json["comparison"]["steps"][0]["targets"][1]["metrics"].as_object().unwrap();
    metrics.values().for_each(|metric| collect(metric.clone()));
    metrics.keys().for_each(|name| collect(serde_json::json!({ name: 0 })));
    collect(json);
    let columns = rqps_results::COLUMNS.iter().map(|column| column.name.to_owned());
    names.extend(columns);
    names.sort();
    names.dedup();
    assert!(names.len() > 120, "the sample is not fully populated: {}", names.len());
    let words: std::collections::BTreeSet<&str> =
        document.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let missing: Vec<&String> =
        names.iter().filter(|name| !words.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "docs/results.md does not name {missing:?}");
}

#[test]
fn every_metric_is_documented() {
    let document = fs::read_to_string("../../docs/results.md").unwrap();
    for metric in Metric::ALL {
        let name = serde_json::to_value(metric).unwrap();
        let name = format!("`{}`", name.as_str().unwrap());
        assert!(document.contains(&name), "docs/results.md does not name {name}");
    }
}

// ---- Formulas -----------------------------------------------------------------------------------

/// A step with round numbers, all of them different.
fn round_step() -> StepRecord {
    let mut step = step_record(&SHAPES[1], 1, BASE, 1);
    step.outcome.seconds = 10.0;
    step.outcome.statements = 50_000;
    step.outcome.client_cpu = CpuTime { user_us: 1e6, system_us: 3e6 };
    step.usage.seconds = 8.0;
    step.usage.server_cpu = Some(CpuTime { user_us: 2e6, system_us: 4e6 });
    step.usage.server_rss_bytes = Some(3 << 20);
    step.usage.server_events = Some(CpuEvents { instructions: 4e9, cycles: 2e9 });
    step.usage.client_events = Some(CpuEvents { instructions: 4e8, cycles: 8e8 });
    step.usage.host = HostUsage {
        cpus: 4,
        user: 9.0,
        nice: 2.0,
        system: 5.0,
        idle: 16.0,
        iowait: 1.0,
        steal: 1.0,
        context_switches: 160_000,
    };
    step.usage.disk =
        Some(DiskUsage { reads: 4000, read_kb: 64_000.0, write_kb: 16.0, ..DiskUsage::default() });
    step.usage.spinner_cpu = CpuTime { user_us: 1e6, system_us: 1e6 };
    step.data_bytes = Some(1 << 30);
    step
}

fn check_metric(step: &StepRecord, metric: Metric, expected: f64) {
    let value = measure(step).get(metric).unwrap();
    assert!((value / expected - 1.0).abs() < 1e-12, "{}: {value}", metric.name());
}

#[test]
fn metrics_are_those_worked_out_by_hand() {
    let step = round_step();
    check_metric(&step, Metric::Rate, 5000.0);
    // Busy 9 + 5 − 2 = 12 CPU s of 4 × 8 = 32: 37.5 %.
    check_metric(&step, Metric::CpuPerOp, 37.5 / 5000.0);
    // 6 s of CPU in 8 s: 750,000 µs/s at 5000/s.
    check_metric(&step, Metric::ServerCpuPerOp, 150.0);
    // 4 s of CPU in the 10 s of the window.
    check_metric(&step, Metric::ClientCpuPerOp, 80.0);
    check_metric(&step, Metric::ContextSwitchesPerOp, 4.0);
    check_metric(&step, Metric::ReadsPerOp, 0.1);
    check_metric(&step, Metric::ReadKbPerOp, 1.6);
    check_metric(&step, Metric::WriteKbPerOp, 2.0 / 5000.0);
    check_metric(&step, Metric::ServerRss, 3.0);
    check_metric(&step, Metric::DataSize, 1024.0);
    // 4e9 in 8 s are 5e8 per second, at 5000/s.
    check_metric(&step, Metric::ServerInstructionsPerOp, 1e5);
    check_metric(&step, Metric::ServerCyclesPerOp, 5e4);
    check_metric(&step, Metric::ServerIpc, 2.0);
    check_metric(&step, Metric::ClientInstructionsPerOp, 1e4);
    check_metric(&step, Metric::ClientCyclesPerOp, 2e4);
    check_metric(&step, Metric::ClientIpc, 0.5);
    // cpu/o × CPUs × 10,000 is µs of the host: 12 s in 8 s at 5000/s are 300 µs.
    check_metric(&step, Metric::CpuPerOp, 300.0 / 4.0 / 10_000.0);
}

/// Counters of the CPU as another host recorded them: the newer build executes 5 % more.
#[test]
fn events_of_the_cpu_get_verdicts_and_their_absence_a_reason() {
    let mut runs = clean_runs(4);
    for (at, (record, steps)) in runs.iter_mut().enumerate() {
        let slower = if record.key.label == NEW { 1.05 } else { 1.0 };
        for step in steps {
            let operations = step.outcome.statements as f64;
            let noise = 1.0 + 0.0002 * (at % 3) as f64;
            let instructions = 40_000.0 * operations * slower * noise;
            let events = CpuEvents { instructions, cycles: instructions / 1.6 };
            step.usage.server_events = Some(events);
            step.usage.client_events = Some(events);
        }
    }
    let comparison = compared(&runs);
    let step = comparison.steps.iter().find(|step| step.name == "point-query").unwrap();
    let relative = step.targets[1].relative(Metric::ServerInstructionsPerOp).unwrap();
    assert!((relative.ratio / 1.05 - 1.0).abs() < 0.001, "{}", relative.ratio);
    assert_eq!(relative.judgement.as_ref().unwrap().verdict, Verdict::Slower);
    let text = render(&comparison, Format::Text);
    assert!(text.contains("server_instr/o") && text.contains("server_ipc"), "{text}");
    let hidden = "this CPU shows no counters of instructions and cycles";
    let mut runs = clean_runs(4);
    for step in runs.iter_mut().flat_map(|(_, steps)| steps) {
        step.usage.missing.insert("cpu_events".to_owned(), hidden.to_owned());
    }
    let comparison = compared(&runs);
    assert_eq!(comparison.caveats, [], "no caveat: most hosts lack them");
}

#[test]
fn an_operation_of_scan_is_a_thousand_rows() {
    let mut step = round_step();
    step.rate = RateUnit::RowsScanned;
    step.outcome.rows_scanned = 20_000_000;
    check_metric(&step, Metric::Rate, 2000.0);
    check_metric(&step, Metric::ServerCpuPerOp, 375.0);
}

#[test]
fn the_published_vmstat_example_comes_out() {
    // Published for read-write.range100 of Postgres 11.10 at 40 clients, without the
    // banners: 85.7 % busy and 1,471,461 switches/s give 0.000172 and 2.951 per operation, so the
    // rate is between the two quotients' bounds; 96.5 µs at 0.000201 on 48 CPUs.
    let mut step = round_step();
    let rate = 1_471_461.0 / 2.951;
    step.outcome.seconds = 1.0;
    step.outcome.statements = rate as u64;
    step.usage.seconds = 1.0;
    step.usage.spinner_cpu = CpuTime::default();
    step.usage.host = HostUsage {
        cpus: 48,
        user: 0.857 * 48.0 * 0.7,
        system: 0.857 * 48.0 * 0.3,
        context_switches: 1_471_461,
        ..HostUsage::default()
    };
    let values = measure(&step);
    assert_eq!(format!("{:.6}", values.get(Metric::CpuPerOp).unwrap()), "0.000172");
    assert_eq!(format!("{:.3}", values.get(Metric::ContextSwitchesPerOp).unwrap()), "2.951");
}

#[test]
fn latencies_are_those_that_were_recorded() {
    let mut step = round_step();
    // 1..=10,000 µs, once each: the quantiles are known, to the histogram's three digits.
    let mut histogram = Histogram::<u64>::new_with_bounds(1, (1 << 42) - 1, 3).unwrap();
    (1..=10_000u64).for_each(|us| histogram.record(us * 1000).unwrap());
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
    step.outcome.latency = base64::engine::general_purpose::STANDARD.encode(bytes);
    let expected = [
        (Metric::P50, 5.0),
        (Metric::P95, 9.5),
        (Metric::P99, 9.9),
        (Metric::P999, 9.99),
        (Metric::Max, 10.0),
    ];
    for (metric, ms) in expected {
        let value = measure(&step).get(metric).unwrap();
        assert!((value / ms - 1.0).abs() < 1e-3, "{}: {value}", metric.name());
    }
}

fn check_missing(step: &StepRecord, metric: Metric, why: &str) {
    let values = measure(step);
    assert_eq!(values.get(metric), None, "{}", metric.name());
    let reason = values.why_missing(metric).unwrap();
    assert!(reason.contains(why), "{}: {reason}", metric.name());
}

#[test]
fn what_cannot_be_computed_has_a_reason() {
    let mut step = round_step();
    step.outcome.latency = latency(9_999, 100);
    check_missing(&step, Metric::P999, "9999 events; a 99.9th percentile needs 10000");
    step.outcome.latency = "!".to_owned();
    check_missing(&step, Metric::P50, "not base64");
    step.outcome.latency = "AAAA".to_owned();
    check_missing(&step, Metric::P99, "cannot be read");
    step.usage.server_cpu = None;
    step.usage.missing.insert("server_cpu".to_owned(), "no process".to_owned());
    check_missing(&step, Metric::ServerCpuPerOp, "no process");
    step.usage.disk = None;
    check_missing(&step, Metric::ReadsPerOp, "not sampled");
    step.usage.host = HostUsage::default();
    check_missing(&step, Metric::CpuPerOp, "not sampled");
    check_missing(&step, Metric::ContextSwitchesPerOp, "not sampled");
    (step.outcome.statements, step.outcome.events) = (0, 0);
    assert_eq!(measure(&step).get(Metric::Rate), Some(0.0));
    check_missing(&step, Metric::ClientCpuPerOp, "no completed operation");
    step.outcome.seconds = 0.0;
    check_missing(&step, Metric::Rate, "no length");
    step.rate = RateUnit::RowsInserted;
    step.outcome.seconds = 1.0;
    step.outcome.statements = 7;
    assert_eq!(measure(&step).get(Metric::Rate), Some(7.0), "inserted rows are counted as such");
}

// ---- Comparing ----------------------------------------------------------------------------------

/// Runs without anything to doubt: `blocks` blocks, one step of each group, nothing in the notes.
fn clean_runs(blocks: u32) -> Vec<(RunRecord, Vec<StepRecord>)> {
    let mut runs = Vec::new();
    for block in 1..=blocks {
        for (place, label) in order(block).into_iter().enumerate() {
            let mut record = run_record(label, block, place as u32 + 1);
            record.config.hash = "same".to_owned();
            record.load = None;
            let mut steps = Vec::new();
            for (shape, index) in SHAPES[1..4].iter().zip(1..) {
                let mut step = step_record(shape, index, label, 1);
                step.outcome.client_busiest = 0.2;
                step.outcome.client_cpu = CpuTime { user_us: 0.3e6, system_us: 1.0e6 };
                step.outcome.errors.clear();
                step.outcome.notes.clear();
                step.outcome.plans.clear();
                steps.push(step);
            }
            runs.push((record, steps));
        }
    }
    runs
}

/// Sets a step's rate, in statements per second.
fn set_rate(step: &mut StepRecord, rate: f64) {
    step.outcome.statements = 1_000_000;
    step.outcome.seconds = 1_000_000.0 / rate;
}

fn steps_of<'a>(
    runs: &'a mut [(RunRecord, Vec<StepRecord>)],
    label: &'a str,
    name: &'a str,
) -> impl Iterator<Item = (&'a RunKey, &'a mut StepRecord)> {
    runs.iter_mut().filter(move |(record, _)| record.key.label == label).flat_map(
        move |(record, steps)| {
            let key = &record.key;
            steps.iter_mut().filter(move |s| s.name == name).map(move |s| (key, s))
        },
    )
}

fn rqps<'a>(comparison: &'a Comparison, step: &str) -> &'a rqps_analysis::comparison::Relative {
    let step = comparison.steps.iter().find(|other| other.name == step).unwrap();
    step.targets[1].relative(Metric::Rate).unwrap()
}

#[test]
fn the_interval_is_the_t_interval_on_paired_logarithms() {
    let mut runs = clean_runs(3);
    for (key, step) in steps_of(&mut runs, BASE, "point-query") {
        set_rate(step, 1000.0 * f64::from(key.block));
    }
    // Ratios 0.5, 0.4 and 0.8 whatever the block's level.
    for (key, step) in steps_of(&mut runs, NEW, "point-query") {
        let ratio = [0.5, 0.4, 0.8][key.block as usize - 1];
        set_rate(step, 1000.0 * f64::from(key.block) * ratio);
    }
    let comparison = compared(&runs);
    let relative = rqps(&comparison, "point-query");
    // By hand: the geometric mean is the cube root of 0.16; t(.975, 2) = 4.302653.
    let d = [0.5f64.ln(), 0.4f64.ln(), 0.8f64.ln()];
    let mean = (d[0] + d[1] + d[2]) / 3.0;
    let sd = (d.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / 2.0).sqrt();
    let half = 4.302_652_729_9 * sd / 3.0f64.sqrt();
    let interval = relative.interval.unwrap();
    assert!((relative.ratio - 0.16f64.cbrt()).abs() < 1e-12);
    assert!((interval.low - (mean - half).exp()).abs() < 1e-9, "{interval:?}");
    assert!((interval.high - (mean + half).exp()).abs() < 1e-9, "{interval:?}");
    assert_eq!((relative.pairs, relative.robust.is_none()), (3, true));
    // Absolute values are medians: 500, 800, 2400.
    let target = &comparison.steps[0].targets[1];
    assert!((target.absolute(Metric::Rate).unwrap() - 800.0).abs() < 1e-9);
}

/// Inserts of 2 ms, and one of `longest_us`.
fn inserts(longest_us: u64) -> Role {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, (1 << 42) - 1, 3).unwrap();
    histogram.record_n(2_000_000, 9_999).unwrap();
    histogram.record(longest_us * 1000).unwrap();
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
    let latency = base64::engine::general_purpose::STANDARD.encode(bytes);
    Role { workers: 1, operations: 10_000, rows: 500_000, latency, ..Role::default() }
}

/// Postgres 12 to 14: the rate is flat, the longest insert rose from 0.037 to 0.696 s.
#[test]
fn a_longest_insert_that_grows_is_judged_where_the_rate_is_flat() {
    let mut runs = clean_runs(4);
    for (record, _) in &mut runs {
        record.benchmark = "insert".to_owned();
    }
    for (label, longest_ms) in [(BASE, 37), (NEW, 696)] {
        for (key, step) in steps_of(&mut runs, label, "point-query") {
            // A tenth to and fro from block to block, a thousandth of the rate.
            let sway = u64::from(key.block % 2);
            step.rate = RateUnit::RowsInserted;
            // Not in step with the other target: copies of one ratio prove nothing.
            let own = if label == BASE { sway } else { u64::from(key.block > 2) };
            set_rate(step, 20_000.0 + 20.0 * own as f64);
            let longest = longest_ms * (1000 + 100 * sway);
            step.outcome.roles.insert("inserts".to_owned(), inserts(longest));
        }
    }
    let comparison = compared(&runs);
    let step = comparison.steps.iter().find(|step| step.name == "point-query").unwrap();
    let judged = |metric| {
        let relative = step.targets[1].relative(metric).unwrap();
        (relative.ratio, relative.judgement.as_ref().unwrap().verdict)
    };
    assert_eq!(judged(Metric::Rate).1, Verdict::Same);
    let (ratio, verdict) = judged(Metric::InsertMax);
    assert!((ratio / (696.0 / 37.0) - 1.0).abs() < 0.01, "{ratio}");
    assert_eq!(verdict, Verdict::Slower);
    // 9,999 of 10,000 take as long as before, to the last digit: nothing that a test could use.
    assert_eq!(judged(Metric::InsertP99), (1.0, Verdict::NoVerdict));
    let text = render(&comparison, Format::Text);
    let row = text.lines().find(|line| line.contains("max_insert_ms") && line.contains("WORSE"));
    assert!(row.is_some(), "{text}");
}

#[test]
fn one_pair_has_a_ratio_and_no_interval() {
    let comparison = compared(&clean_runs(1));
    let relative = rqps(&comparison, "point-query");
    assert_eq!((relative.pairs, relative.interval, relative.sd_ln), (1, None, None));
    assert!((relative.ratio - 0.7).abs() < 1e-12);
    assert!(render(&comparison, Format::Text).contains("0.700  1  NO VERDICT  point-query"));
}

/// The ratio of one pair is its quotient: exp(ln a − ln b) of these lies below 1.375 and would
/// print as 1.37.
#[test]
fn the_ratio_of_one_pair_is_its_quotient() {
    let rates = [(8.0, 11.0), (24.0, 33.0), (56.0, 77.0), (1000.0, 1375.0), (3.0, 7.0)];
    for (base, new) in rates {
        let mut runs = clean_runs(1);
        for (label, rate) in [(BASE, base), (NEW, new)] {
            for (_, step) in steps_of(&mut runs, label, "point-query") {
                (step.outcome.statements, step.outcome.seconds) = (rate as u64, 1.0);
            }
        }
        let comparison = compared(&runs);
        assert_eq!(rqps(&comparison, "point-query").ratio, new / base, "{new} / {base}");
    }
}

/// The geometric mean is over the steps of the group summaries: no load, nothing before the writes
/// and nothing that only warms. Of single pairs it has no interval.
#[test]
fn the_geometric_mean_is_over_the_steps_of_the_groups() {
    let with_asides = |blocks: u32| {
        let mut runs = clean_runs(blocks);
        for (record, steps) in &mut runs {
            for (name, group, purpose) in [
                ("point-query.pre", Group::Point, StepPurpose::BeforeWrites),
                ("scan.warm", Group::Range, StepPurpose::Warming),
                ("l.i0", Group::Load, StepPurpose::Result),
            ] {
                let mut aside = StepRecord { group, name: name.to_owned(), ..steps[0].clone() };
                aside.parameters.purpose = purpose;
                set_rate(&mut aside, if record.key.label == BASE { 100.0 } else { 1.0 });
                steps.push(aside);
            }
        }
        let comparison = compared(&runs);
        let counted: usize = comparison.groups.iter().map(|group| group.steps).sum();
        let mean = comparison.summary.targets[0].geomean.unwrap();
        assert_eq!((mean.steps, counted), (3, 3));
        let logs = comparison.groups.iter().map(|group| group.targets[0].summary.unwrap());
        let by_groups = logs.map(|summary| summary.min.ln()).sum::<f64>() / 3.0;
        assert!((mean.ratio.ln() - by_groups).abs() < 1e-12, "{mean:?}");
        mean.interval
    };
    assert!(with_asides(2).is_some());
    assert_eq!(with_asides(1), None);
}

/// One block of four was disturbed and measured again: that is no evidence against the others.
#[test]
fn a_host_with_other_work_does_not_silence_a_large_difference() {
    let mut runs = clean_runs(3);
    for (key, step) in steps_of(&mut runs, NEW, "point-query") {
        set_rate(step, [760.0, 800.0, 850.0][key.block as usize - 1]);
    }
    let block = |number: u32, times: f64, discarded: bool| {
        let canary = |ns: f64| Some(Canary { spin_ns: Some(ns), ..Canary::default() });
        BlockRecord {
            block: number,
            attempt: 1,
            before: canary(5e7),
            after: canary(5e7 * times),
            out_of_range: discarded.then(|| "after it, spin 1.90 times".to_owned()),
            discarded,
            ..BlockRecord::default()
        }
    };
    let blocks = vec![
        block(1, 1.03, false),
        block(2, 1.9, true),
        block(2, 0.96, false),
        block(3, 1.02, false),
    ];
    let mut dataset = dataset_of(&runs);
    let gate = HostLog { blocks, ..HostLog::default() };
    dataset.gates = BTreeMap::from([("set".to_owned(), gate)]);
    let comparison = compare(&dataset, &VerdictOptions::default()).unwrap();
    let of = |step: &str| rqps(&comparison, step).judgement.as_ref().unwrap().verdict;
    assert_eq!(of("point-query"), Verdict::Slower);
    // What lies within the noise of the host is not told as known.
    assert_eq!(of("scan"), Verdict::NoVerdict);
    for format in [Format::Text, Format::Markdown] {
        let text = render(&comparison, format);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let (first, rest) = text.split_at(text.find("benchmark").unwrap());
        assert!(
            first.contains("SLOWER") && first.contains("This host finds differences"),
            "{text}"
        );
        assert!(first.contains("the canaries found 1 of 4 blocks disturbed"), "{text}");
        assert!(rest.contains("MDE") && rest.contains("sample size"), "{text}");
    }
}

#[test]
fn six_pairs_have_a_robust_check() {
    let mut runs = clean_runs(6);
    for (key, step) in steps_of(&mut runs, NEW, "point-query") {
        // 19,000 to 24,000 over the base's 20,000, and one block that is far off.
        let rate = if key.block == 6 { 1000.0 } else { 19_000.0 + 1000.0 * f64::from(key.block) };
        set_rate(step, rate);
    }
    let comparison = compared(&runs);
    let relative = rqps(&comparison, "point-query");
    let robust = relative.robust.as_ref().unwrap();
    // At six pairs the exact interval spans the data.
    assert!((robust.interval.low - 0.05).abs() < 1e-9, "{robust:?}");
    assert!((robust.interval.high - 1.2).abs() < 1e-9, "{robust:?}");
    assert!(robust.ratio > relative.ratio, "the outlier moves the mean more");
}

#[test]
fn attempts_are_pairs_of_their_own() {
    let mut runs = clean_runs(2);
    // Block 2 was broken off after the base had finished all and the other its first step; then
    // it was done again.
    let again: Vec<_> = runs[2..]
        .iter()
        .map(|(record, steps)| {
            let key = RunKey { attempt: 2, ..record.key.clone() };
            (RunRecord { key, ..record.clone() }, steps.clone())
        })
        .collect();
    runs.extend(again);
    for (record, steps) in &mut runs {
        if record.key.attempt == 1 && record.key.block == 2 && record.key.label == NEW {
            record.status = Status::Interrupted;
            steps.truncate(1);
        }
    }
    let comparison = compared(&runs);
    assert_eq!(rqps(&comparison, "point-query").pairs, 3);
    assert_eq!(rqps(&comparison, "scan").pairs, 2);
}

#[test]
fn nothing_is_computed_from_a_discarded_block() {
    let mut runs = clean_runs(4);
    for (key, step) in steps_of(&mut runs, NEW, "point-query") {
        set_rate(step, if key.block == 2 { 10_000.0 } else { 20_000.0 });
    }
    let with_it = compared(&runs);
    assert_eq!(rqps(&with_it, "point-query").pairs, 4);
    for (record, _) in runs.iter_mut().filter(|run| run.0.key.block == 2) {
        record.status = Status::Discarded("memory".to_owned());
    }
    let without = compared(&runs);
    let relative = rqps(&without, "point-query");
    assert_eq!((relative.pairs, relative.ratio), (3, 1.0));
    assert_eq!(without.runs.len(), 8, "they are still told");
}

#[test]
fn result_sets_are_not_paired_with_each_other() {
    let runs = clean_runs(2);
    let mut dataset = dataset_of(&runs);
    for run in &mut dataset.runs {
        run.result_set = format!("set of {}", run.record.key.label);
    }
    let comparison = compare(&dataset, &VerdictOptions::default()).unwrap();
    let relative = rqps(&comparison, "point-query");
    assert_eq!((relative.pairs, relative.interval), (0, None));
    assert!((relative.ratio - 0.7).abs() < 1e-12, "a ratio of medians");
    assert!(comparison.caveats.iter().any(|caveat| caveat.kind == Kind::NotPaired));
    // Two copies of one plan: twice the pairs.
    let mut twice = dataset_of(&runs);
    let other = dataset_of(&runs).runs.into_iter();
    twice.runs.extend(other.map(|run| Run { result_set: "other".to_owned(), ..run }));
    assert_eq!(rqps(&compare(&twice, &VerdictOptions::default()).unwrap(), "point-query").pairs, 4);
}

/// Two sittings on two hosts: pairs within each, the session a random effect.
#[test]
fn sessions_of_two_hosts_are_pooled_and_shown_side_by_side() {
    let mut runs = clean_runs(3);
    let mut dataset = dataset_of(&runs);
    for (record, steps) in &mut runs {
        record.host_fingerprint = "cafe".to_owned();
        if record.key.label != BASE {
            // The second session finds every rate of the target 10 % higher than the first.
            for step in steps {
                let rate = step.outcome.statements as f64 / step.outcome.seconds;
                set_rate(step, 1.1 * rate);
            }
        }
    }
    let other = dataset_of(&runs).runs.into_iter();
    dataset.runs.extend(other.map(|run| Run { result_set: "other".to_owned(), ..run }));
    let comparison = compare(&dataset, &VerdictOptions::default()).unwrap();
    let relative = rqps(&comparison, "point-query");
    let sessions = relative.sessions.as_ref().unwrap();
    assert_eq!((relative.pairs, sessions.sessions.len()), (6, 2));
    let [first, second] = [&sessions.sessions[0], &sessions.sessions[1]];
    assert!((second.ratio / first.ratio - 1.1).abs() < 1e-3, "{sessions:?}");
    assert!((relative.ratio.powi(2) / (first.ratio * second.ratio) - 1.0).abs() < 1e-3);
    // ln 1.1 apart: a standard deviation of ln 1.1 / √2 between two sessions.
    assert!((sessions.between_sd - 1.1f64.ln() / 2.0f64.sqrt()).abs() < 2e-3, "{sessions:?}");
    let kinds: Vec<Kind> = comparison.caveats.iter().map(|caveat| caveat.kind).collect();
    assert!(kinds.contains(&Kind::SeveralHosts) && !kinds.contains(&Kind::DifferentHost));
    let text = render(&comparison, Format::Text);
    assert!(text.contains("rQPS by session") && text.contains("session-2: other"), "{text}");
    // A target that only one of the hosts measured is divided by a baseline of another host.
    for run in &mut dataset.runs {
        if run.result_set == "other" && run.record.key.label == BASE {
            run.result_set = "third".to_owned();
        } else if run.result_set != "other" {
            run.record.key.label = BASE.to_owned();
        }
    }
    let kinds = compare(&dataset, &VerdictOptions::default()).unwrap().caveats;
    assert!(kinds.iter().any(|caveat| caveat.kind == Kind::DifferentHost));
}

/// Four blocks of two loads: the blocks of the second find 10 % more. The load is a random effect,
/// and two loads show little.
#[test]
fn blocks_that_share_loads_are_pooled_by_load() {
    let mut runs = clean_runs(4);
    for (record, steps) in &mut runs {
        let number = (record.key.block - 1) % 2 + 1;
        let load = run_record(BASE, 1, 1).load.unwrap();
        record.load = Some(LoadRecord { number, ..load });
        if record.key.label != BASE && number == 2 {
            for step in steps {
                let rate = step.outcome.statements as f64 / step.outcome.seconds;
                set_rate(step, 1.1 * rate);
            }
        }
    }
    let comparison = compare(&dataset_of(&runs), &VerdictOptions::default()).unwrap();
    let relative = rqps(&comparison, "point-query");
    let loads = relative.loads.as_ref().unwrap();
    let numbers: Vec<(u32, usize)> = loads.loads.iter().map(|own| (own.load, own.pairs)).collect();
    assert_eq!((relative.pairs, numbers), (4, vec![(1, 2), (2, 2)]));
    assert!((loads.loads[1].ratio / loads.loads[0].ratio - 1.1).abs() < 2e-2, "{loads:?}");
    assert!((loads.between_sd - 1.1f64.ln() / 2.0f64.sqrt()).abs() < 1e-2, "{loads:?}");
    let interval = relative.interval.unwrap();
    // t(.975; 1) is 12.7.
    assert!(interval.high / interval.low > 2.0, "{interval:?}");
    let text = render(&comparison, Format::Text);
    assert!(text.contains("so the load is a random effect"), "{text}");
    // A load for each block: pairs are independent, and nothing is pooled.
    for (record, _) in &mut runs {
        record.load.as_mut().unwrap().number = record.key.block;
    }
    let comparison = compare(&dataset_of(&runs), &VerdictOptions::default()).unwrap();
    assert_eq!(rqps(&comparison, "point-query").loads, None);
    let text = render(&comparison, Format::Text);
    assert!(text.contains("Each block has a load of its own"), "{text}");
}

/// The parameters of a step that is named after a point of a curve.
fn of_point(name: &str) -> StepParameters {
    let value = |key: &str| name.split('.').find_map(|part| part.strip_prefix(key)?.parse().ok());
    let (m, ef_construction, ef_search) = (value("m="), value("ec="), value("ef="));
    let own =
        VectorParameters { on_curve: true, m, ef_construction, ef_search, ..Default::default() };
    StepParameters { of_one_dbms: true, ..StepParameters::of(&own) }
}

/// The steps of `runs` become points of a curve: for each target names, recalls and rates, a rate
/// for each block.
fn set_points(runs: &mut [(RunRecord, Vec<StepRecord>)], points: &[(&str, &str, f64, &[f64])]) {
    for (record, steps) in runs {
        let pattern = steps[0].clone();
        let own = points.iter().filter(|(label, ..)| *label == record.key.label);
        *steps = own
            .zip(1..)
            .map(|((_, name, recall, rates), index)| {
                let mut step = pattern.clone();
                (step.name, step.index) = ((*name).to_owned(), index);
                step.parameters = of_point(name);
                step.outcome.extra.insert(Metric::Recall, *recall);
                set_rate(&mut step, rates[record.key.block as usize - 1]);
                step
            })
            .collect();
    }
}

#[test]
fn targets_of_other_parameters_meet_at_equal_recall() {
    let mut runs = clean_runs(3);
    set_points(
        &mut runs,
        &[
            (BASE, "search.m=6.ef=10", 0.965, &[950.0, 950.0, 950.0]),
            (BASE, "search.m=6.ef=20", 0.985, &[800.0, 1000.0, 1250.0]),
            (BASE, "search.m=6.ef=40", 0.999, &[400.0, 500.0, 600.0]),
            (NEW, "search.m=16.ec=64.ef=10", 0.975, &[900.0, 900.0, 900.0]),
            (NEW, "search.m=16.ec=64.ef=20", 0.984, &[400.0, 400.0, 625.0]),
        ],
    );
    let comparison = compared(&runs);
    let choice = |recall: &str, target: usize| {
        let step = comparison.steps.iter().find(|step| step.name == recall);
        step.and_then(|step| step.targets[target].chosen.as_deref())
    };
    // At .99 only the base is there; at .96 the base has another point, but a slower one.
    let choices = comparison.steps.iter().filter(|step| step.is_choice());
    let recalls: Vec<&str> = choices.map(|step| step.name.as_str()).collect();
    assert_eq!(recalls, ["recall=0.98", "recall=0.97"]);
    assert_eq!(choice("recall=0.98", 0), Some("search.m=6.ef=20"));
    assert_eq!(choice("recall=0.98", 1), Some("search.m=16.ec=64.ef=20"));
    assert_eq!(choice("recall=0.97", 1), Some("search.m=16.ec=64.ef=10"));
    // Ratios .5, .4, .5 block by block.
    let relative = rqps(&comparison, "recall=0.98");
    assert_eq!(relative.pairs, 3);
    assert!((relative.ratio - 0.1f64.cbrt()).abs() < 1e-12, "{relative:?}");
    assert!(relative.judgement.as_ref().unwrap().test.is_some());
    // Recalls that differ between choices are no loss of recall, and nobody failed to measure.
    assert_eq!(drops(&comparison), []);
    let text = render(&comparison, Format::Text);
    assert!(text.contains("recall=0.98"), "{text}");
    let json: serde_json::Value = serde_json::from_str(&render(&comparison, Format::Json)).unwrap();
    let steps = json["comparison"]["steps"].as_array().unwrap();
    let step = steps.iter().find(|step| step["name"] == "recall=0.97").unwrap();
    assert_eq!(step["targets"][0]["chosen"], "search.m=6.ef=20");
}

/// One block cannot tell a lost recall from the scatter between builds of an index, and several
/// can.
#[test]
fn a_lost_recall_exceeds_what_recall_scatters() {
    let check = |recalls: &[[f64; 2]], expected: &[bool], said: &str| {
        let mut runs = clean_runs(recalls.len() as u32);
        let rates = [900.0; 9];
        let point = |label| (label, "search.m=6.ef=10", 0.9, &rates[..]);
        set_points(&mut runs, &[point(BASE), point(NEW)]);
        for (record, steps) in &mut runs {
            let place = usize::from(record.key.label == NEW);
            let recall = recalls[record.key.block as usize - 1][place];
            steps[0].outcome.extra.insert(Metric::Recall, recall);
        }
        let comparison = compared(&runs);
        let sure: Vec<bool> = drops(&comparison).iter().map(|drop| drop.is_sure).collect();
        assert_eq!(sure, expected, "{recalls:?}");
        let text = render(&comparison, Format::Text);
        assert_eq!(text.contains("correctness problem"), expected.contains(&true), "{text}");
        assert!(text.contains(said), "{text}");
    };
    check(&[[0.95, 0.90]], &[false], "Lower recall in few blocks");
    check(&[[0.95, 0.90], [0.91, 0.94], [0.93, 0.92]], &[], "");
    check(&[[0.95, 0.90], [0.91, 0.86], [0.93, 0.881]], &[true], "Recall loss at equal");
}

/// Events of a script that send no statement have a rate of events, and a script that only reads is
/// in no group of writes.
#[test]
fn scripts_are_judged_by_what_they_did() {
    let mut runs = clean_runs(3);
    for (record, steps) in &mut runs {
        record.benchmark = "lua".to_owned();
        for step in steps.iter_mut().filter(|step| step.name == "update-index") {
            (step.outcome.writes, step.outcome.no_ops) = (0, 0);
            (step.outcome.reads, step.outcome.rows) = (step.outcome.statements, 1 << 40);
        }
        for step in steps.iter_mut().filter(|step| step.name == "point-query") {
            step.group = Group::Write;
            let outcome = &mut step.outcome;
            (outcome.events, outcome.statements) = (outcome.statements, 0);
            (outcome.reads, outcome.writes, outcome.no_ops) = (0, 0, 0);
        }
    }
    let comparison = compared(&runs);
    let of = |name: &str| comparison.steps.iter().find(|step| step.name == name).unwrap();
    assert_eq!(of("update-index").group, Group::Range);
    // The flat tables have one group for a step, too.
    let beside = Beside { seconds: &|_, _| Ok(Vec::new()), counters: &|_, _| Ok(Vec::new()) };
    let mut take = |row: &[String]| -> Result<(), ()> {
        assert!(row[1] != "update-index" || row[3] == "range", "{row:?}");
        Ok(())
    };
    let steps = TABLES.iter().find(|table| table.name == "steps").unwrap();
    rows(steps, &comparison, &dataset_of(&runs), &beside, &mut take).unwrap();
    let events = of("point-query");
    assert_eq!((events.group, events.rate), (Group::Range, RateUnit::Transactions));
    assert!((rqps(&comparison, "point-query").ratio - 0.7).abs() < 1e-3);
    let idle = |found: &Comparison| found.caveats.iter().any(|it| it.kind == Kind::NoOperations);
    assert!(!idle(&comparison), "events are operations");
    // Nothing at all is no ratio.
    for (_, steps) in &mut runs {
        steps.retain(|step| step.name == "point-query");
        steps[0].outcome.events = 0;
    }
    let nothing = compared(&runs);
    assert!(idle(&nothing));
    let mean = nothing.summary.targets.iter().find_map(|target| target.geomean);
    assert_eq!(mean, None, "{:?}", nothing.summary);
}

#[test]
fn zeros_are_written_as_the_field_writes_them() {
    let mut runs = clean_runs(3);
    let set = |runs: &mut Vec<(RunRecord, Vec<StepRecord>)>, label, reads: [u64; 3]| {
        for (key, step) in steps_of(runs, label, "point-query") {
            let disk = step.usage.disk.as_mut().unwrap();
            disk.reads = reads[key.block as usize - 1];
        }
    };
    let check = |runs: &[(RunRecord, Vec<StepRecord>)], expected: f64, text: &str| {
        let comparison = compared(runs);
        let relative = comparison.steps[0].targets[1].relative(Metric::ReadsPerOp).unwrap();
        assert_eq!((relative.ratio, relative.interval), (expected, None));
        let report = render(&comparison, Format::Text);
        let row = report.lines().skip_while(|line| !line.contains("--- relative")).nth(2);
        assert_eq!(row.unwrap().split_whitespace().nth(2).unwrap(), text);
    };
    check(&runs, 1.0, "1");
    set(&mut runs, NEW, [5, 5, 5]);
    check(&runs, f64::INFINITY, "inf");
    set(&mut runs, BASE, [7, 7, 7]);
    set(&mut runs, NEW, [0, 0, 0]);
    check(&runs, 0.0, "0.00");
}

#[test]
fn the_base_is_the_first_of_the_plan_or_the_one_asked_for() {
    let runs = clean_runs(2);
    let dataset = dataset_of(&runs);
    let other = compare(&dataset, &VerdictOptions::with_baseline(Some(NEW))).unwrap();
    assert_eq!(other.baseline, NEW);
    assert_eq!(other.targets[1].label, BASE);
    assert!((rqps(&other, "point-query").ratio - 1.0 / 0.7).abs() < 1e-12);
    let error =
        compare(&dataset, &VerdictOptions::with_baseline(Some("x"))).unwrap_err().to_string();
    assert!(error.contains("`x`") && error.contains(BASE) && error.contains(NEW), "{error}");
    let error = compare(&Dataset::default(), &VerdictOptions::default()).unwrap_err().to_string();
    assert!(error.contains("no run"), "{error}");
    // The plan decides, not the alphabet nor the order in the first block.
    let mut reversed = runs.clone();
    for (record, _) in &mut reversed {
        record.targets.reverse();
    }
    assert_eq!(compared(&reversed).baseline, NEW);
}

#[test]
fn one_target_alone_has_a_report() {
    let runs: Vec<_> =
        clean_runs(2).into_iter().filter(|(record, _)| record.key.label == BASE).collect();
    let mut runs = runs;
    for (record, _) in &mut runs {
        record.targets = vec![BASE.to_owned()];
    }
    let comparison = compared(&runs);
    assert!(comparison.caveats.is_empty(), "{:?}", comparison.caveats);
    for format in Format::ALL {
        assert!(render(&comparison, format).contains("point-query"));
    }
}

#[test]
fn steps_come_in_the_order_of_the_field() {
    let names = [
        "random-points_range=10", "point-query", "random-points_range=1000", "hot-points",
        "points-covered-pk", "random-points_range=100", "points-notcovered-pk",
    ];
    let mut runs = clean_runs(1);
    for (_, steps) in &mut runs {
        let step = steps[0].clone();
        let named = |name: &&str| StepRecord { name: (*name).to_owned(), ..step.clone() };
        *steps = names.iter().map(named).collect();
    }
    let order: Vec<String> = compared(&runs).steps.into_iter().map(|step| step.name).collect();
    let expected = [
        "hot-points", "point-query", "points-covered-pk", "points-notcovered-pk",
        "random-points_range=1000", "random-points_range=100", "random-points_range=10",
    ];
    assert_eq!(order, expected);
}

#[test]
fn summaries_leave_out_what_comes_before_the_writes() {
    let mut runs = clean_runs(2);
    for (record, steps) in &mut runs {
        let mut before = steps[0].clone();
        before.name = "point-query.pre".to_owned();
        before.parameters.purpose = StepPurpose::BeforeWrites;
        set_rate(&mut before, if record.key.label == BASE { 100.0 } else { 1.0 });
        steps.push(before);
    }
    let comparison = compared(&runs);
    assert_eq!(comparison.steps.iter().filter(|step| step.group == Group::Point).count(), 2);
    let point = &comparison.groups[0];
    assert_eq!((point.group, point.steps), (Group::Point, 1));
    assert!((point.targets[0].summary.unwrap().min - 0.7).abs() < 1e-12);
}

#[test]
fn parameters_of_a_step_count_and_its_name_does_not() {
    let counted = |name: &str, purpose: StepPurpose| {
        let mut runs = clean_runs(2);
        for (_, steps) in &mut runs {
            let parameters = StepParameters { purpose, ..StepParameters::default() };
            let name = name.to_owned();
            steps.push(StepRecord { name, parameters, ..steps[0].clone() });
        }
        compared(&runs).groups[0].steps
    };
    assert_eq!(counted("point-query.pre", StepPurpose::Result), 2);
    assert_eq!(counted("second", StepPurpose::BeforeWrites), 1);
    assert_eq!(counted("second", StepPurpose::Warming), 1);
}

// ---- Properties ---------------------------------------------------------------------------------

mod properties {
    use super::*;
    use proptest::prelude::*;

    /// Rates of both targets in each block.
    fn rates() -> impl Strategy<Value = Vec<(f64, f64)>> {
        prop::collection::vec((1.0..1e6f64, 1.0..1e6f64), 1..9)
    }

    fn runs_with(rates: &[(f64, f64)]) -> Vec<(RunRecord, Vec<StepRecord>)> {
        let mut runs = clean_runs(rates.len() as u32);
        for (label, get) in [(BASE, false), (NEW, true)] {
            for (key, step) in steps_of(&mut runs, label, "point-query") {
                let (base, new) = rates[key.block as usize - 1];
                set_rate(step, if get { new } else { base });
            }
        }
        runs
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        #[test]
        fn half_the_rate_is_half_the_ratio(rates in rates()) {
            let halved: Vec<(f64, f64)> = rates.iter().map(|(b, n)| (*b, n / 2.0)).collect();
            let (whole, half) = (compared(&runs_with(&rates)), compared(&runs_with(&halved)));
            let (whole, half) = (rqps(&whole, "point-query"), rqps(&half, "point-query"));
            prop_assert!((whole.ratio / half.ratio / 2.0 - 1.0).abs() < 1e-12);
            if let (Some(whole), Some(half)) = (whole.interval, half.interval) {
                prop_assert!((whole.low / half.low / 2.0 - 1.0).abs() < 1e-9);
                prop_assert!((whole.high / half.high / 2.0 - 1.0).abs() < 1e-9);
            }
        }

        #[test]
        fn the_order_of_blocks_does_not_matter(
            (rates, shuffled) in
                rates().prop_flat_map(|r| (Just(r.clone()), Just(r).prop_shuffle()))
        ) {
            let (a, b) = (compared(&runs_with(&rates)), compared(&runs_with(&shuffled)));
            // The pairs themselves are listed in the order of the blocks.
            let unordered = |comparison: &Comparison| {
                let relative = rqps(comparison, "point-query").clone();
                rqps_analysis::comparison::Relative { differences: Vec::new(), ..relative }
            };
            prop_assert_eq!(unordered(&a), unordered(&b));
            prop_assert_eq!(&a.groups, &b.groups);
            for &metric in Metric::ALL {
                let (a, b) = (&a.steps[0].targets[1], &b.steps[0].targets[1]);
                prop_assert_eq!(a.absolute(metric), b.absolute(metric));
            }
        }

        #[test]
        fn the_other_way_round_is_the_inverse(rates in rates()) {
            let dataset = dataset_of(&runs_with(&rates));
            let there = compare(&dataset, &VerdictOptions::with_baseline(Some(BASE))).unwrap();
            let back = compare(&dataset, &VerdictOptions::with_baseline(Some(NEW))).unwrap();
            let (there, back) = (rqps(&there, "point-query"), rqps(&back, "point-query"));
            prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
            if let (Some(there), Some(back)) = (there.interval, back.interval) {
                prop_assert!((there.low * back.high - 1.0).abs() < 1e-9);
            }
        }
    }
}

// ---- Caveats ------------------------------------------------------------------------------------

type Runs = Vec<(RunRecord, Vec<StepRecord>)>;

/// Kind, how to make it happen, and a part of what must be said then.
type Case = (Kind, fn(&mut Runs), &'static str);

fn each_new_step(runs: &mut Runs, change: fn(&mut StepRecord)) {
    for (record, steps) in runs {
        if record.key.label == NEW {
            steps.iter_mut().for_each(change);
        }
    }
}

fn each_new_run(runs: &mut Runs, change: fn(&mut RunRecord)) {
    runs.iter_mut().map(|run| &mut run.0).filter(|record| record.key.label == NEW).for_each(change);
}

fn set_plan(record: &mut StepRecord, plan: &str) {
    record.outcome.plans.insert("point_selects".to_owned(), plan.to_owned());
}

/// A commit of the baseline flushes less than one of the other target.
fn set_durability(runs: &mut Runs) {
    for (record, _) in runs {
        let (flush, log) = if record.key.label == NEW { ("1", "ON") } else { ("2", "OFF") };
        for (name, value) in [("innodb_flush_log_at_trx_commit", flush), ("log_bin", log)] {
            record.server_settings.insert(name.to_owned(), value.to_owned());
        }
    }
}

#[rustfmt::skip]
const CASES: &[Case] = &[
    (Kind::DifferentData, |runs| runs.iter_mut().take(2).for_each(|run| {
        let rows = Some(run.0.key.order.into());
        run.0.tables = vec![TableRecord { name: "t".into(), rows, content: None, note: None }];
    }), "table t: 1 row on mysql-5.6.14, 2 on mysql-8.0.33"),
    (Kind::DifferentAnswers, |runs| answer(runs, ["1146", "1054"]),
        "`SELECT 1`: error 1146 on mysql-5.6.14 (no), error 1054 on mysql-8.0.33 (no)"),
    (Kind::UncomparedAnswers, |runs| answer(runs, ["1146", "1317"]),
        "not compared: it takes longer than 10 s"),
    (Kind::HarmlessAnswers, |runs| runs.iter_mut().take(2).for_each(|run| {
        let rows = RowsRecord { in_order: run.0.key.label.clone(), ..RowsRecord::default() };
        let reply = AnswerReply::Rows { rows, repeats: None, order: None, warnings: Vec::new() };
        run.1[1].answers = Some(answered("SELECT a FROM t ORDER BY b", reply));
    }), "the same rows in another order"),
    (Kind::DifferentHost, |runs| each_new_run(runs, |run| run.host_fingerprint = "cafe".into()),
        "cafe (mysql-8.0.33)"),
    (Kind::DifferentBenchmark, |runs| each_new_run(runs, |run| run.benchmark = "insert".into()),
        "sysbench (mysql-5.6.14); insert (mysql-8.0.33)"),
    (Kind::DifferentWorkload, |runs| each_new_run(runs, |run| run.workload.rows = 5),
        "rows: 300000 (mysql-5.6.14); 5 (mysql-8.0.33)"),
    (Kind::DifferentPlacement,
        |runs| each_new_run(runs, |run| run.workload.placement = Placement::Os),
        "placement: together (mysql-5.6.14); os (mysql-8.0.33)"),
    (Kind::DifferentIdle, |runs| each_new_run(runs, |run| run.workload.idle = Idle::Os),
        "idle: awake"),
    (Kind::DifferentTurns,
        |runs| each_new_step(runs, |step| step.outcome.turns = Some(TurnFacts::default())),
        "continuously (mysql-5.6.14); in turns (mysql-8.0.33)"),
    (Kind::DifferentStep, |runs| each_new_step(runs, |step| step.detail = "other".into()),
        "`other` (mysql-8.0.33)"),
    (Kind::MixedBuilds, |runs| runs[1].0.manifest.origin = "elsewhere".into(), "from elsewhere"),
    (Kind::MixedSettings, |runs| runs[1].0.config.text.push_str("x=1\n"), "same to same: `-x=1`"),
    (Kind::NeverMeasured, |runs| runs[0].0.targets.push("third".into()),
        "third: in the plan"),
    (Kind::FailedRun, |runs| runs[1].0.status = Status::Failed("start: no room".into()),
        "set/b01-2-mysql-8.0.33: failed: start: no room"),
    (Kind::RepeatedRun, |runs| {
        let mut again = runs[1].clone();
        again.0.key.attempt = 2;
        runs[1].0.status = Status::Interrupted;
        runs.push(again);
    }, "set/b01-2-mysql-8.0.33: interrupted by the user"),
    (Kind::DiscardedBlock, |runs| runs[1].0.status = Status::Discarded("spin 1.31".into()),
        "set/b01-2-mysql-8.0.33: discarded with its block: spin 1.31"),
    (Kind::FailedStep, |runs| runs[1].1[0].status = Status::Running, "ended without a status"),
    (Kind::FailedStep, |runs| runs[1].1[0].status = Status::Failed("full\nhint: fewer".into()),
        "failed: full; hint: fewer"),
    (Kind::MissingStep, |runs| runs.iter_mut().filter(|run| run.0.key.label == NEW)
        .for_each(|run| run.1.truncate(2)),
        "not measured, while another target was (update-index)"),
    (Kind::NotPaired, |runs| each_new_run(runs, |run| run.key.block += 10), "no block where"),
    (Kind::TooFewBlocks, |runs| runs.truncate(4), "only 2 pairs (all 3 steps)"),
    (Kind::ClientBound, |runs| runs[1].1[1].outcome.client_busiest = 0.83,
        "up to 83 % of its CPU (scan)"),
    (Kind::ClientShare,
        |runs| runs[1].1[1].outcome.client_cpu = CpuTime { user_us: 1e6, system_us: 3e6 },
        "up to 40 % of the CPU time of client and server belongs to the client (scan)"),
    (Kind::MissedPace, |runs| each_new_step(runs, |step| step.outcome.open =
        Some(OpenOutcome { due: step.outcome.events * 2, behind_seconds_max: 1.0 })),
        "only 50 % of the scheduled events"),
    (Kind::StoppedClients, |runs| {
        runs[1].1[1].outcome.stopped = [("3".to_owned(), 812), ("5".to_owned(), 900)].into();
    }, "up to 2 clients of a run; client 3 stopped after 812 events (scan)"),
    (Kind::Errors, |runs| each_new_step(runs, |step| {
        step.outcome.errors.insert("40001".into(), step.outcome.events);
    }), "up to 50 % of the events retried; 40001"),
    (Kind::NoOps, |runs| each_new_step(runs, |step| {
        step.outcome.no_ops = 3;
        step.outcome.writes = 1;
    }), "75 % of mysql-8.0.33"),
    (Kind::NoOperations, |runs| {
        let outcome = &mut runs[1].1[0].outcome;
        (outcome.statements, outcome.events) = (0, 0);
    }, "in 1 run of a step"),
    (Kind::Steal, |runs| each_new_step(runs, |step| step.usage.host.steal = 1.0), "up to 5.0 %"),
    (Kind::ForeignLoad, |runs| each_new_step(runs, |step| step.usage.disturbance =
        Some(Disturbance { foreign_cpu: Some(0.03), ..Disturbance::default() })), "up to 3.0 %"),
    (Kind::CpuPressure, |runs| {
        runs.iter_mut().for_each(|run| run.0.workload.placement = Placement::Os);
        each_new_step(runs, |step| step.usage.disturbance =
            Some(Disturbance { pressure_cpu: Some(0.1), ..Disturbance::default() }));
    }, "some task waited for a CPU during up to 10 % of a step"),
    (Kind::Swapped, |runs| each_new_step(runs, |step| step.usage.disturbance =
        Some(Disturbance { swapped_in: Some(9), ..Disturbance::default() })), "up to 9 pages"),
    (Kind::Throttled, |runs| each_new_step(runs, |step| step.usage.disturbance =
        Some(Disturbance { throttled_cgroup_us: Some(1), ..Disturbance::default() })),
        "the heat or quota counters increased"),
    (Kind::WriteBack, |runs| each_new_step(runs, |step| {
        step.outcome.series.insert("server_pages_dirty".into(), vec![3000.0, 9.0]);
        step.usage.disk = Some(DiskUsage { write_kb: 51_230.0, ..DiskUsage::default() });
    }), "up to 5123 KB/s written to the disk in read-only steps"),
    (Kind::WriteBack, |runs| each_new_step(runs, |step| {
        step.name = "qr100.L1".into();
        step.outcome.roles.insert("inserts".into(), Role::default());
        step.outcome.series.insert("server_pages_dirty".into(), vec![3009.0, 2000.0, 9.0]);
    }), "writeback of the previous step's dirty pages, up to 4800 KB/s"),
    (Kind::MissedRate, |runs| each_new_step(runs, |step| {
        step.name = "qr100.L1".into();
        let (operations, rows, target_per_second) = (50, 2500, Some(10.0));
        let role = Role { operations, rows, target_per_second, ..Role::default() };
        step.outcome.roles.insert("inserts".into(), role);
        step.outcome.extra.insert(Metric::InsertRate, 250.0);
    }), "only 50 % of the requested rows inserted"),
    (Kind::DebugBuild, |runs| each_new_run(runs, |run|
        run.debug_build = Some("version 9.7.2-debug".into())),
        "built for debugging (version 9.7.2-debug)"),
    (Kind::DifferentServers, |runs| {
        set_durability(runs);
        each_new_run(runs, |run| run.target.source = BuildSource::Dsn("mysql://me@db/app".into()));
    }, "innodb_flush_log_at_trx_commit: 2 (mysql-5.6.14), 1 (mysql-8.0.33); log_bin: OFF"),
    (Kind::AskedDurability, |runs| {
        set_durability(runs);
        each_new_run(runs, |run| run.target.config = "binlog".into());
    }, "log_bin: OFF (mysql-5.6.14), ON (mysql-8.0.33)"),
    (Kind::DifferentCompiler, |runs| each_new_run(runs, |run|
        run.manifest.compiler = Some("clang 19".into())), "clang 19 (mysql-8.0.33)"),
    (Kind::SameCode, |runs| runs.iter_mut().for_each(|(run, _)| {
        run.manifest.code = Some("c0de".into());
        run.config = run_record(BASE, 1, 1).config;
    }), "its sources are those of mysql-5.6.14 but for"),
    (Kind::Stalls, |runs| runs[1].1[0].per_second = [vec![100.0; 9], vec![1.0; 2]].concat(),
        "up to 2 s in a row (point-query)"),
    (Kind::NotSteady, |runs| each_new_step(runs, |step| step.per_second =
        (0..60).map(|i| 1000.0 - 300.0 * (-f64::from(i) / 60.0).exp()).collect()),
        "runs of a step (all 3 steps)"),
    (Kind::Drifting, |runs| each_new_step(runs, |step| step.per_second =
        (0..120).map(|i| 1000.0 - f64::from(i)).collect()),
        "falls by up to 13 % over the window"),
    (Kind::PlanDiffers, |runs| {
        each_new_step(runs, |step| set_plan(step, "Seq Scan on sbtest1"));
        steps_of(runs, BASE, "point-query")
            .for_each(|(_, step)| set_plan(step, "Index Scan using sbtest1_pkey on sbtest1"));
    }, "`Index Scan using sbtest1_pkey on sbtest1`, mysql-8.0.33 `Seq Scan on sbtest1`"),
    (Kind::PlanChanges, |runs| {
        each_new_step(runs, |step| set_plan(step, "Seq Scan on sbtest1"));
        set_plan(&mut runs[1].1[0], "Index Scan on sbtest1");
    }, "`Index Scan on sbtest1`, then `Seq Scan on sbtest1`"),
    (Kind::DifferentSettings, |runs| each_new_run(runs, |run| run.config.hash = "else".into()),
        "same to else: `-query_cache_size=0` `+skip_log_bin`"),
    (Kind::EmptyColumn, |runs| {
        each_new_run(runs, |run| run.target.source = BuildSource::Imported("my8033".into()));
        each_new_step(runs, |step| {
            step.imported = Some(Imported { format: "dbbench".into(), ..Imported::default() });
            step.outcome.statements = 0;
        });
    }, "mysql-8.0.33: no rate above 0 on any of 3 steps"),
    (Kind::SingleLoad, |runs| {
        let load = run_record(BASE, 1, 1).load;
        runs.iter_mut().for_each(|run| run.0.load.clone_from(&load));
    }, "loaded once: every ratio includes the difference between single loads"),
    (Kind::CarryOver, |runs| {
        let after = |mean_ln| CarryOver { pairs: 100, mean_ln, error_ln: 0.002 };
        for (record, steps) in runs {
            let mean_ln = if record.key.label == NEW { -0.07 } else { -0.05 };
            for step in steps {
                let carry_over = Some(after(mean_ln));
                step.outcome.turns = Some(TurnFacts { carry_over, ..TurnFacts::default() });
            }
        }
    }, "next turn, but 4.9 % with the baseline; so ratios of rates may be up to 1.9 % lower than"),
    (Kind::DifferentSource, |runs| each_new_step(runs, |step| {
        step.usage.sources.insert("server_cpu".into(), "perf".into());
    }), "server_cpu: proc stat (mysql-5.6.14); perf (mysql-8.0.33)"),
    (Kind::DifferentRqps, |runs| each_new_run(runs, |run| run.rqps_version = "9".into()),
        "9 (mysql-8.0.33)"),
    (Kind::Unmeasured, |runs| each_new_step(runs, |step| {
        step.usage.missing.insert("disk".into(), "no such device".into());
    }), "disk: no such device (all 3 steps)"),
    (Kind::UnreadableLatency, |runs| runs[1].1[0].outcome.latency = "?".into(), "not base64"),
    (Kind::EmbeddedDbms, |runs| each_new_run(runs, |run| run.target.dbms = Dbms::Sqlite),
        "the DBMS runs inside the driver"),
    (Kind::Imported, |runs| {
        each_new_run(runs, |run| run.target.source = BuildSource::Imported("my8033".into()));
        each_new_step(runs, |step| {
            step.imported = Some(Imported { format: "dbbench".into(), ..Imported::default() });
        });
    }, "published by others, imported as dbbench"),
    (Kind::DriverNote, |runs| each_new_step(runs, |step| step.outcome.notes.push("odd 7".into())),
        "odd 7, and 8 like it (all 3 steps)"),
];

#[test]
fn clean_runs_have_no_caveat() {
    assert_eq!(compared(&clean_runs(3)).caveats, []);
    assert!(!render(&compared(&clean_runs(3)), Format::Text).contains("Caveats"));
}

/// Each target of the first block refuses a statement with a code of its own.
fn answer(runs: &mut [(RunRecord, Vec<StepRecord>)], codes: [&str; 2]) {
    for (run, code) in runs.iter_mut().zip(codes) {
        let reply = AnswerReply::Refused { code: code.into(), message: "no".into() };
        run.1[1].answers = Some(answered("SELECT 1", reply));
    }
}

fn answered(sql: &str, reply: AnswerReply) -> StepAnswers {
    StepAnswers { answers: vec![reply.into()], statements: vec![sql.to_owned()], note: None }
}

/// Steps that answer differently have no verdict, unless the reader says that he knows.
#[test]
fn a_step_with_another_answer_has_no_verdict() {
    let mut runs = clean_runs(3);
    answer(&mut runs, ["1146", "1054"]);
    let dataset = dataset_of(&runs);
    let void = |ignore_answers: bool| -> Vec<String> {
        let rules = Rules { ignore_answers, ..Rules::default() };
        let options = VerdictOptions { rules, ..VerdictOptions::default() };
        let comparison = compare(&dataset, &options).unwrap();
        let first = comparison.caveats.first().map(|caveat| caveat.kind);
        assert_eq!(first, Some(Kind::DifferentAnswers));
        // The answer in twenty lines has it before the first number, too.
        let place = rqps_report::BriefPlace { width: 100, folder: None, page: None };
        let brief = rqps_report::brief(&comparison, &place);
        let at = |words: &str| brief.find(words).unwrap_or_else(|| panic!("{words}: {brief}"));
        assert!(at("! Targets that answer differently") < at("\nverdict "), "{brief}");
        let void = |step: &&StepComparison| step.targets[1].is_void(Metric::Rate);
        comparison.steps.iter().filter(void).map(|step| step.name.clone()).collect()
    };
    assert_eq!(void(false), [runs[0].1[1].name.clone()]);
    assert_eq!(void(true), [""; 0]);
}

/// Other numbers of rows are other work, unless a step before it wrote at each target's own rate.
#[test]
fn rows_per_statement_that_differ_are_another_answer() {
    let found = |before: u64, is_paced: bool| -> Vec<String> {
        let mut runs = clean_runs(3);
        for (run, steps) in &mut runs {
            let each = if run.key.label == NEW { 2 } else { 1 };
            steps[0].outcome.writes = before;
            let outcome = &mut steps[1].outcome;
            (outcome.reads, outcome.rows, outcome.writes) = (10_000, 10_000 * each, 0);
            if is_paced {
                outcome.open = Some(OpenOutcome { due: 7, behind_seconds_max: 0.0 });
                outcome.extra.insert(Metric::RowsPerQuery, each as f64);
            }
        }
        let answers = compared(&runs).caveats.into_iter();
        answers.filter(|found| found.kind == Kind::DifferentAnswers).map(|it| it.text).collect()
    };
    let want = |what: &str| {
        [format!("over the window: 1.000 {what} on mysql-5.6.14, 2.000 {what} on mysql-8.0.33")]
    };
    assert_eq!(found(0, false), want("rows per statement"));
    assert_eq!(found(7, false), [""; 0]);
    // Queries of the Insert Benchmark run beside writes at one rate for all targets.
    assert_eq!(found(7, true), want("rows per query"));
}

#[test]
fn each_caveat_is_found_and_shown() {
    for (kind, change, expected) in CASES {
        let mut runs = clean_runs(3);
        change(&mut runs);
        let comparison = compared(&runs);
        let found = comparison.caveats.iter().any(|caveat| caveat.kind == *kind);
        assert!(found, "{kind:?}: {:#?}", comparison.caveats);
        let text = render(&comparison, Format::Text);
        // Prose is wrapped: compare without line ends.
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(expected), "{kind:?}: `{expected}` is not in {text}");
        let warned = text.contains("WARNING: these numbers may not be comparable");
        assert_eq!(warned, comparison.caveats.iter().any(|c| c.kind.is_loud()), "{kind:?}");
    }
}

#[test]
fn writes_have_no_verdict_where_durability_differs_unasked() {
    let check = |config: &str, step: &str, expected: Option<&str>| {
        let mut runs = clean_runs(3);
        set_durability(&mut runs);
        each_new_run(&mut runs, |run| run.target.source = BuildSource::Path("/opt/my".into()));
        for (record, _) in runs.iter_mut().filter(|run| run.0.key.label == NEW) {
            record.target.config = config.to_owned();
        }
        let comparison = compared(&runs);
        let step = comparison.steps.iter().find(|it| it.name == step).unwrap();
        let judged = step.targets[1].relative(Metric::Rate).unwrap().judgement.as_ref().unwrap();
        let reasons = judged.reasons.join("; ");
        assert_eq!(
            reasons.contains("durability differs"),
            expected.is_some(),
            "{config} {reasons}"
        );
        assert!(reasons.contains(expected.unwrap_or_default()), "{reasons}");
        assert!(expected.is_none() || judged.verdict == Verdict::NoVerdict, "{judged:?}");
    };
    let why = "innodb_flush_log_at_trx_commit is 1, on the baseline 2, log_bin is ON";
    check("default", "update-index", Some(why));
    check("default", "point-query", None);
    check("binlog", "update-index", None);
}

#[test]
fn every_kind_of_caveat_has_a_case() {
    let covered: Vec<Kind> = CASES.iter().map(|case| case.0).collect();
    for kind in Kind::ALL {
        // Those that no single change of a run makes have tests of their own.
        let own = [
            Kind::RobustDisagrees,
            Kind::HostChanged,
            Kind::Readahead,
            Kind::MissedRate,
            Kind::DifferentRecall,
            Kind::SeveralHosts,
        ];
        assert!(covered.contains(kind) || own.contains(kind), "{kind:?}");
    }
}

/// The texts of a kind of caveat, after a change of the whole dataset.
fn caveats_of(kind: Kind, change: impl FnOnce(&mut Dataset)) -> Vec<String> {
    let mut dataset = dataset_of(&clean_runs(3));
    change(&mut dataset);
    let comparison = compare(&dataset, &VerdictOptions::default()).unwrap();
    let found = comparison.caveats.into_iter().filter(|caveat| caveat.kind == kind);
    found.map(|caveat| caveat.text).collect()
}

#[test]
fn settings_of_a_host_that_changed_are_told_and_those_of_before_are_no_change() {
    let two_sets = |second: Option<Tuning>| {
        caveats_of(Kind::HostChanged, |dataset| {
            for run in dataset.runs.iter_mut().filter(|run| run.record.key.label == NEW) {
                run.result_set = "later".to_owned();
            }
            let turbo = Some("on".to_owned());
            let first = Tuning { turbo, max_sectors_kb: Some(128), ..Tuning::default() };
            dataset.tunings.insert("set".to_owned(), first);
            second.map(|tuning| dataset.tunings.insert("later".to_owned(), tuning));
        })
    };
    let off =
        Tuning { turbo: Some("off".to_owned()), max_sectors_kb: Some(128), ..Tuning::default() };
    assert_eq!(two_sets(Some(off)), ["turbo: on (set); off (later)"]);
    assert!(two_sets(None).is_empty(), "nothing was recorded then");
}

#[test]
fn searches_of_two_products_that_find_different_shares_are_told() {
    let found = |dbms: Dbms, recall: f64| {
        caveats_of(Kind::DifferentRecall, |dataset| {
            for run in &mut dataset.runs {
                let new = run.record.key.label == NEW;
                run.record.target.dbms = if new { dbms } else { Dbms::Mysql };
                for step in &mut run.steps {
                    let recall = if new { recall } else { 0.99 };
                    Arc::make_mut(step).outcome.extra.insert(Metric::Recall, recall);
                }
            }
        })
    };
    let told = found(Dbms::Postgres, 0.90);
    assert_eq!(told, ["recall 0.9000, 0.9900 of mysql-5.6.14"], "once for all steps");
    assert!(found(Dbms::Postgres, 0.988).is_empty(), "as near as two builds of one index");
    assert!(found(Dbms::Mysql, 0.90).is_empty(), "of one product it is a loss, told elsewhere");
}

#[test]
fn a_readahead_that_the_disk_cuts_is_told() {
    let with = |max_sectors_kb: u64, read_ahead_kb: u64, line: &str| {
        caveats_of(Kind::Readahead, |dataset| {
            for run in dataset.runs.iter_mut().filter(|run| run.record.key.label == NEW) {
                run.record.config.text.push_str(line);
            }
            let (max_sectors_kb, read_ahead_kb) = (Some(max_sectors_kb), Some(read_ahead_kb));
            let tuning = Tuning { max_sectors_kb, read_ahead_kb, ..Tuning::default() };
            dataset.tunings.insert("set".to_owned(), tuning);
        })
    };
    assert!(with(128, 128, "").is_empty());
    assert_eq!(
        with(128, 4096, ""),
        ["read_ahead_kb of the disk is 4096 KiB, max_sectors_kb of the disk is 128"]
    );
    assert_eq!(
        with(128, 128, "rocksdb_compaction_readahead_size = 2M\n"),
        ["rocksdb_compaction_readahead_size is 2048 KiB, max_sectors_kb of the disk is 128"]
    );
    assert!(with(128, 128, "io_combine_limit = 16\n").is_empty(), "16 blocks are 128 KiB");
    assert_eq!(
        with(64, 64, "io_combine_limit = 128kB\n"),
        ["io_combine_limit is 128 KiB, max_sectors_kb of the disk is 64"]
    );
    let of_library = caveats_of(Kind::Readahead, |dataset| {
        let (workload, _) = rqps_lab::benchmarks::workload("kv", "quick").unwrap();
        for run in &mut dataset.runs {
            run.record.workload = workload.clone();
            run.record.config.text = if run.record.key.label == NEW {
                "compaction_readahead_size = 0\n".to_owned()
            } else {
                String::new()
            };
        }
        let tuning = Tuning { max_sectors_kb: Some(1280), ..Tuning::default() };
        dataset.tunings.insert("set".to_owned(), tuning);
    });
    let wanted = "compaction_readahead_size is 2048 KiB, max_sectors_kb of the disk is 1280";
    assert_eq!(of_library, [wanted], "the benchmark's own, on the target without another");
}

#[test]
fn mean_and_robust_estimate_that_disagree_are_told() {
    // 30 pairs that agree but for three far below: the mean's interval ends below the others.
    let mut runs = clean_runs(30);
    for (key, step) in steps_of(&mut runs, NEW, "point-query") {
        let wobble = 1.0 + 0.001 * f64::from(key.block % 3);
        let far = if key.block.is_multiple_of(4) { 0.7 } else { 1.0 };
        set_rate(step, 20_000.0 * wobble * far);
    }
    let comparison = compared(&runs);
    let caveat = comparison.caveats.iter().find(|c| c.kind == Kind::RobustDisagrees);
    assert!(
        caveat.is_some_and(|c| c.text.contains("Hodges-Lehmann")),
        "{:?}",
        rqps(&comparison, "point-query")
    );
}

// ---- Published results --------------------------------------------------------------------------

/// Rates by step of a qps.abs file: the base's and those of one column.
fn published_rates(text: &str, column: usize) -> Vec<(String, f64, f64)> {
    let rows = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    rows.map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let rate = |cell: usize| cells[cell].parse::<f64>().unwrap();
        (cells[cells.len() - 1].to_owned(), rate(0), rate(column - 1))
    })
    .collect()
}

/// The group that the field puts a label in.
fn published_group(label: &str) -> Group {
    let writes = ["delete", "insert", "update", "write"];
    match label {
        _ if label.contains("point") => Group::Point,
        _ if writes.iter().any(|word| label.contains(word)) => Group::Write,
        _ => Group::Range,
    }
}

/// The published file as a dataset of one block: a second of whole statements for each rate.
fn published_dataset(rows: &[(String, f64, f64)]) -> Dataset {
    let run = |label: &str, order: u32, get: fn(&(String, f64, f64)) -> f64| {
        let steps = rows.iter().zip(1..).map(|(row, index)| {
            let mut step = step_record(&SHAPES[1], index, BASE, 1);
            step.name = row.0.clone();
            step.group = published_group(&row.0);
            step.reported = !row.0.contains(".warm");
            step.outcome.seconds = 1.0;
            step.outcome.statements = get(row) as u64;
            step
        });
        (run_record(label, 1, order), steps.collect())
    };
    dataset_of(&[run(BASE, 1, |row| row.1), run(NEW, 2, |row| row.2)])
}

#[test]
fn published_summaries_come_out() {
    let Some(fixtures) = std::env::var_os("RQPS_FIXTURES") else {
        eprintln!("SKIPPED: published_summaries_come_out: RQPS_FIXTURES is not set");
        return;
    };
    let folder = PathBuf::from(fixtures).join("sysbench/2025-11.mysql.dop1");
    let text = fs::read_to_string(folder.join("qps.abs.all.tsv")).unwrap();
    // MySQL 8.0.44 is the fourth column; min, max, average, median, stddev as published.
    let rows = published_rates(&text, 4);
    assert_eq!(rows.len(), 33);
    let comparison = compare(&published_dataset(&rows), &VerdictOptions::default()).unwrap();
    let expected = [
        (Group::Point, 9, ["0.66", "0.85", "0.74", "0.74", "0.059"]),
        (Group::Range, 13, ["0.67", "1.25", "0.77", "0.70", "0.166"]),
        (Group::Write, 10, ["0.55", "0.88", "0.67", "0.65", "0.098"]),
    ];
    for (group, (name, n, published)) in comparison.groups.iter().zip(expected) {
        let summary = group.targets[0].summary.unwrap();
        assert_eq!((group.group, summary.n), (name, n));
        let two = |number: f64| format!("{number:.2}");
        let ours = [
            two(summary.min),
            two(summary.max),
            two(summary.average),
            two(summary.median),
            format!("{:.3}", summary.stddev.unwrap()),
        ];
        assert_eq!(ours, published, "{}", name.name());
    }
    // The same file's relative companion, cell by cell. Its scan.warm row is not reported here.
    let relative = fs::read_to_string(folder.join("qps.rel.all.tsv")).unwrap();
    let theirs = relative.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let tsv = render(&comparison, Format::Tsv);
    for line in theirs.filter(|line| !line.contains(".warm")) {
        let cells: Vec<&str> = line.split('\t').collect();
        let ours = format!("\n{}\t{}\n", cells[2], cells[cells.len() - 1]);
        assert!(tsv.contains(&ours), "{ours:?}");
    }
}

// ---- Time of a thousand runs --------------------------------------------------------------------

/// A histogram as a real step has it: thousands of distinct latencies.
fn broad_latency(seed: u64) -> String {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, (1 << 42) - 1, 3).unwrap();
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    for _ in 0..100_000 {
        // A linear congruential step; the sum of four is bell-shaped, its power of two is skewed.
        let mut sum = 0.0;
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
            sum += (state >> 40) as f64 / f64::from(1u32 << 24);
        }
        histogram.record((30_000.0 * (2.0 * sum).exp2()) as u64).unwrap();
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn many_runs(blocks: u32) -> Runs {
    let latencies: Vec<String> = (0..33).map(broad_latency).collect();
    let mut runs = Vec::new();
    for block in 1..=blocks {
        for (place, label) in order(block).into_iter().enumerate() {
            let steps = (0..33).map(|index| {
                let mut step = step_record(&SHAPES[1], index + 1, label, 1 + block % 3);
                step.name = format!("step-{index}");
                step.group = Group::ALL[1 + index as usize % 3];
                step.outcome.latency = latencies[index as usize].clone();
                for kind in ["simple_ranges", "sum_ranges", "order_ranges", "distinct_ranges"] {
                    let plan = format!("{POINT_PLAN_8}\n{POINT_PLAN_8} {}", block % 5);
                    step.outcome.plans.insert(kind.to_owned(), plan);
                }
                step
            });
            runs.push((run_record(label, block, place as u32 + 1), steps.collect()));
        }
    }
    runs
}

/// Says how long a report over 1000 runs of 33 steps takes; no bar here, machines differ.
/// `RQPS_TIMING=1 cargo test --release --test it a_thousand_runs -- --nocapture`
#[test]
fn time_of_a_thousand_runs() {
    if std::env::var_os("RQPS_TIMING").is_none() {
        eprintln!("SKIPPED: time_of_a_thousand_runs: RQPS_TIMING is not set");
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("set");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("plan.toml"), "plan").unwrap();
    fs::write(dir.join("host.json"), serde_json::to_string_pretty(&host()).unwrap()).unwrap();
    // Written without fsync: 66,000 of those would take longer than all the rest.
    for (record, steps) in many_runs(500) {
        let run = dir.join(record.key.folder());
        fs::create_dir_all(run.join("steps")).unwrap();
        fs::write(run.join("run.json"), serde_json::to_string_pretty(&record).unwrap()).unwrap();
        for step in steps {
            let name = format!("{:02}-{}.json", step.index, step.name);
            let json = serde_json::to_string_pretty(&step).unwrap();
            fs::write(run.join("steps").join(name), json).unwrap();
        }
    }
    for round in 1..=3 {
        let start = std::time::Instant::now();
        let dataset = read(std::slice::from_ref(&dir)).unwrap();
        let read_done = start.elapsed();
        let comparison = compare(&dataset, &VerdictOptions::default()).unwrap();
        let compared = start.elapsed();
        let text = render(&comparison, Format::Text);
        let rendered = start.elapsed();
        let json = render(&comparison, Format::Json);
        let done = start.elapsed();
        eprintln!(
            "round {round}: read {read_done:?}, compare {:?}, text {:?} ({} bytes), JSON {:?} \
             ({} bytes); read to text {rendered:?}",
            compared - read_done,
            rendered - compared,
            text.len(),
            done - rendered,
            json.len(),
        );
    }
}
