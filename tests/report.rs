//! From run folders to reports: a small fixed result set under tests/data, golden reports, and
//! properties that must hold for any measurements.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use rqps::analyze::caveat::Kind;
use rqps::analyze::metrics::values;
use rqps::analyze::{Comparison, compare};
use rqps::domain::benchmark::{Group, Idle, Pace, Placement, RateUnit, Workload};
use rqps::domain::build::{Dbms, Manifest, Source, Version};
use rqps::domain::config::Config;
use rqps::domain::host::Host;
use rqps::domain::metric::Metric;
use rqps::domain::run::*;
use rqps::domain::target::Target;
use rqps::os::host::fingerprint;
use rqps::report::{Format, render};
use rqps::results::{ResultSet, ResultsError, read, read_seconds};
use rqps::stats::summary::summarize;

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
        tables: 1,
        rows: 300_000,
        clients: 1,
        read_seconds: 10.0,
        write_seconds: 20.0,
        warmup_seconds: 5.0,
        settle_scale: 0.5,
        cache_bytes: None,
        pace: Pace::Closed,
        placement: Placement::Together,
        idle: Idle::Awake,
    }
}

fn run_record(label: &str, block: u32, order: u32) -> RunRecord {
    let version = label.split_once('-').unwrap().1;
    let text = match label == BASE {
        true => "[mysqld]\nquery_cache_size=0\ninnodb_buffer_pool_size=512M\n",
        false => "[mysqld]\nskip_log_bin\ninnodb_buffer_pool_size=512M\n",
    };
    RunRecord {
        format: FORMAT,
        key: RunKey { block, attempt: 1, order, label: label.to_owned() },
        target: Target {
            label: label.to_owned(),
            dbms: Dbms::Mysql,
            source: Source::Version { version: Version::new(version), variant: None },
            config: "default".to_owned(),
            storage_engine: Some("innodb".to_owned()),
        },
        manifest: Manifest {
            dbms: Dbms::Mysql,
            version: Version::new(version),
            reported: format!("mysqld  Ver {version} for Linux on x86_64\n"),
            origin: format!("example:mysql:{version}"),
            sha256: Some(if label == BASE { "ab12" } else { "cd34" }.repeat(16)),
            compiler: Some("GCC 4.4.7".to_owned()),
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
        rqps_version: "0.1.0".to_owned(),
        started: format!("2026-01-02T0{block}:{order}0:00Z"),
        finished: Some(format!("2026-01-02T0{block}:{order}5:00Z")),
        status: Status::Complete,
        load: Some(LoadRecord {
            rows: 300_000,
            load_seconds: 2.5,
            index_seconds: if label == BASE { 0.5 } else { 0.75 },
            data_bytes: Some(120 << 20),
        }),
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

/// What a step of the sample does.
struct Shape {
    name: &'static str,
    group: Group,
    reported: bool,
    rate: RateUnit,
    /// Statements per second of the base.
    base: u64,
    /// Of the new one, per cent of the base's in each block.
    percent: [u64; 3],
    plan: [&'static str; 2],
}

const POINT_PLAN: &str = "1\tSIMPLE\tsbtest1\tconst\tPRIMARY\tPRIMARY\t4\tconst\t1\tNULL";
const POINT_PLAN_8: &str =
    "1\tSIMPLE\tsbtest1\tNULL\tconst\tPRIMARY\tPRIMARY\t4\tconst\t1\t100.00\tNULL";
const SCAN_PLAN: &str = "1\tSIMPLE\tsbtest1\tALL\tNULL\tNULL\tNULL\tNULL\t295890\tUsing where";
const SCAN_PLAN_8: &str =
    "1\tSIMPLE\tsbtest1\tNULL\tindex\tNULL\tk_1\t4\tNULL\t295890\t100.00\tUsing where";

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
        }),
        spinner_cpu: CpuTime { user_us: 3.0e6, system_us: 0.0 },
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
        format: FORMAT,
        index,
        name: shape.name.to_owned(),
        group: shape.group,
        reported: shape.reported,
        detail: if shape.name == "delete" { "ids with replacement" } else { "" }.to_owned(),
        rate: shape.rate,
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
        steps: steps.clone(),
    });
    let mut runs: Vec<Run> = runs.collect();
    runs.sort_by(|a, b| a.record.key.cmp(&b.record.key));
    Dataset { hosts: BTreeMap::from([(fingerprint(&host()), host())]), runs }
}

fn compared(runs: &[(RunRecord, Vec<StepRecord>)]) -> Comparison {
    compare(&dataset_of(runs), None).unwrap()
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
    render(&compare(&dataset, None).unwrap(), format)
}

#[test]
fn golden_text() {
    insta::assert_snapshot!("text", committed_report(Format::Text));
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
    assert_eq!(dataset.runs[0].steps, steps[..1]);
    assert_eq!(set.runs().unwrap(), [record.clone()]);
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
    assert_eq!(dataset.runs[0].steps, steps[..1]);
    let other = RunKey { block: 9, ..record.key };
    assert!(matches!(set.run(&other), Err(ResultsError::NotResults { .. })));
}

fn check_refusal<T>(result: Result<T, ResultsError>, expected: &[&str]) {
    let text = result.err().expect("it should have been refused").to_string();
    for part in expected {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
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
    check_refusal(ResultSet::open(&folder.path().join("none")), &["there is no such folder"]);
    check_refusal(ResultSet::open(folder.path()), &["it holds no plan.toml", "rqps compare"]);
    check_refusal(read(&[folder.path().to_owned()]), &["it holds no plan.toml"]);
    let (record, _) = sample_runs().swap_remove(0);
    set.begin_run(&record).unwrap();
    check_refusal(set.begin_run(&record), &["b01-1-mysql-5.6.14", "begun before"]);
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
    check_refusal(run.write_step(&step, &[]), &["step `01-../x`", "name of a file"]);
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
}
