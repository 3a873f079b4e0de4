//! Vector search by the whole program: on real servers, with every case; and what it says of
//! servers and data that will not do.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod builds;
mod skipped;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rqps::domain::vector::Distance;
use rqps::driver::vector::dataset::hdf5;
use rqps::driver::vector::dataset::matrix::Values;
use rqps::driver::vector::truth::exact;
use serde_json::Value as Json;

const PGVECTOR: &str = "postgres@17+pgvector";
const MARIADB: &str = "mariadb@11.8";
/// Servers take turns: the machine is small.
static TURN: Mutex<()> = Mutex::new(());

/// A set that is indexed in a moment.
const SMALL: [&str; 8] = [
    "rows=3000",
    "dims=64",
    "queries=100",
    "pgvector=8/32",
    "mariadb=6",
    "ef=10,40",
    "seconds=0.4",
    "warmup_seconds=0.1",
];

struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::Builder::new().prefix("rqps-vector-").tempdir().unwrap();
        // The user of servers goes through it.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Scene { folder }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn rqps(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
        let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join("vector.lock");
        command.env("RQPS_HOST_LOCK", lock).stdin(Stdio::null());
        command
    }

    fn compare(&self, targets: &[&str], settings: &[&str]) -> Command {
        let mut command = self.rqps();
        command.arg("compare").args(targets).arg("--out").arg(self.out());
        command.args(["--bench", "vector", "--blocks", "1", "--canaries", "off"]);
        for setting in SMALL.iter().chain(settings) {
            command.args(["--set", setting]);
        }
        command
    }

    /// All steps of all runs: run folder and record.
    fn steps(&self) -> Vec<(String, Json)> {
        let mut steps = Vec::new();
        for run in folders(&self.out()) {
            let name = run.file_name().unwrap().to_string_lossy().into_owned();
            for path in folders(&run.join("steps")) {
                if path.extension().is_some_and(|end| end == "json") {
                    let record = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
                    steps.push((name.clone(), record));
                }
            }
        }
        steps
    }
}

/// What is in a folder, in order; nothing where there is none.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    all.sort();
    all
}

fn words(output: &Output) -> String {
    let all = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// False, and a note, if a build cannot be had here.
fn can_run(test: &str, targets: &[&str]) -> bool {
    for target in targets {
        if let Err(why) = builds::roots("", &[target]) {
            skipped::note(test, &why);
            return false;
        }
    }
    true
}

#[test]
fn every_case_works_on_every_dbms() {
    let test = "every_case_works_on_every_dbms";
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !can_run(test, &[PGVECTOR, MARIADB]) {
        return;
    }
    let scene = Scene::new();
    let half = format!("half={PGVECTOR}:halfvec");
    let settings =
        ["cases=all", "deletes=50", "targets=0.9", "selectivity=20", "insert_rate=50", "ramp=1,2"];
    let output = scene.compare(&[MARIADB, PGVECTOR, &half], &settings).output().unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let steps = scene.steps();
    let mut found = 0;
    for (run, step) in &steps {
        let name = step["name"].as_str().unwrap();
        assert_eq!(step["status"], "complete", "{run} {name}: {}", step["status"]);
        let extra = &step["outcome"]["extra"];
        let number = |metric: &str| extra[metric].as_f64();
        let needs = |metric: &str| {
            number(metric).unwrap_or_else(|| panic!("{run} {name} has no {metric}: {extra}"))
        };
        if name.contains("load") {
            assert!(needs("load_seconds") > 0.0 && needs("table_size") > 0.0);
        } else if name.contains("index.") {
            assert!(needs("index_seconds") > 0.0 && needs("index_size") > 0.0);
        } else if name.contains("ef=40") || name.starts_with("target") {
            found += 1;
            let recall = needs("recall");
            // Nothing is asked of pgvector's filters and deletes: there, few rows come back.
            let whole = !name.starts_with("filter") && !name.starts_with("churn.deleted");
            let least = if whole { 0.9 } else { 0.05 };
            assert!((least..=1.0).contains(&recall), "{run} {name}: {recall}");
            if whole {
                assert_eq!(needs("rows_per_k"), 1.0, "{run} {name}");
            }
            assert!(step["outcome"]["events"].as_u64().unwrap() > 10, "{run} {name}");
        }
        if name.starts_with("target") {
            assert!((10.0..=1000.0).contains(&needs("ef_search")));
        }
        if name.starts_with("cold") {
            assert!(needs("first_query") > 0.0 && needs("warm_seconds") > 0.0);
        }
        if name.starts_with("mixed.inserts") {
            assert!(needs("recall_low") <= needs("recall"));
            let inserted = step["outcome"]["roles"]["inserts"]["operations"].as_u64().unwrap();
            assert!(inserted > 0, "{run}");
        }
        if name.starts_with("search") {
            let plan = step["outcome"]["plans"]["search"].as_str().unwrap();
            assert!(plan.contains("items_v"), "{plan}");
        }
    }
    // Per target: search with one and two clients, target, 3 filters, cold, 2 mixed, 2 churn.
    assert_eq!(found, 3 * 11);
    let report = words(&output);
    for expected in ["Best QPS for a given recall", "half(m=8, ef_construction=32, ef_search="] {
        assert!(report.contains(expected), "{report}");
    }
}

#[test]
fn a_server_without_vectors_says_what_it_lacks() {
    let test = "a_server_without_vectors_says_what_it_lacks";
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for (target, expected) in
        [("postgres@17.2.0", "no pgvector"), ("mariadb@11.4.5", "it came with MariaDB 11.7")]
    {
        if !can_run(test, &[target]) {
            continue;
        }
        let scene = Scene::new();
        let output = scene.compare(&[target], &[]).output().unwrap();
        let load = scene.steps().into_iter().find(|(_, step)| step["name"] == "load");
        let (_, load) = load.unwrap_or_else(|| panic!("{}", words(&output)));
        let why = load["status"]["failed"].as_str().unwrap();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn an_exact_scan_is_no_point_and_the_others_stay() {
    let test = "an_exact_scan_is_no_point_and_the_others_stay";
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !can_run(test, &[PGVECTOR]) {
        return;
    }
    let scene = Scene::new();
    // With so many links on so few rows a scan looks cheaper to the planner.
    let settings = ["pgvector=8/32,64/128", "ef=10"];
    let output = scene.compare(&[PGVECTOR], &settings).output().unwrap();
    let steps = scene.steps();
    let status = |name: &str| {
        let step = steps.iter().find(|(_, step)| step["name"] == name);
        step.unwrap_or_else(|| panic!("no {name}: {}", words(&output))).1["status"].clone()
    };
    assert_eq!(status("search.m=8.ec=32.ef=10"), "complete");
    let why = status("search.m=64.ec=128.ef=10")["failed"].as_str().unwrap().to_owned();
    assert!(why.contains("does not use the index") && why.contains("Seq Scan"), "{why}");
}

#[test]
fn a_build_that_was_killed_is_done_again() {
    let test = "a_build_that_was_killed_is_done_again";
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !can_run(test, &[PGVECTOR]) {
        return;
    }
    let scene = Scene::new();
    // The second index takes seconds.
    let settings = ["rows=6000", "pgvector=8/32,64/400", "ef=10"];
    let mut running = scene
        .compare(&[PGVECTOR], &settings)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    while scene.steps().len() < 3 {
        assert!(Instant::now() < deadline, "the first point never came");
        assert!(running.try_wait().unwrap().is_none(), "it ended early");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(300));
    running.kill().unwrap();
    running.wait().unwrap();
    let before = scene.steps().len();
    assert!((3..5).contains(&before), "{before} steps were there");
    let resumed = scene.rqps().args(["run", "--resume"]).arg(scene.out()).output().unwrap();
    assert!(resumed.status.success(), "{}", words(&resumed));
    let steps = scene.steps();
    // The finished steps of the first attempt, and all five of the second.
    assert_eq!(steps.len(), before + 5, "{}", words(&resumed));
    assert!(steps.iter().all(|(_, step)| step["status"] == "complete"));
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_fetched() {
    let scene = Scene::new();
    let check = |target: &str, settings: &[&str], expected: &str| {
        let output = scene.compare(&[target], settings).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", words(&output));
        assert!(words(&output).contains(expected), "{}", words(&output));
        assert!(scene.steps().is_empty());
    };
    check(PGVECTOR, &["pgvector=64/64"], "ef_construction must be at least 2 m");
    check(PGVECTOR, &["ef=5"], "no more rows than ef_search");
    check(PGVECTOR, &["rows=5"], "more neighbours than rows");
    check("mysql@8.0.33", &[], "mariadb@11.8");
    check("sqlite", &[], "postgres with pgvector and by mariadb");
}

#[test]
fn a_file_of_h5py_is_read_and_its_neighbours_are_right() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vector/tiny-4-euclidean.hdf5");
    let data = hdf5::dataset(&file).unwrap();
    assert_eq!((data.train.rows(), data.test.rows(), data.train.dims), (20, 3, 4));
    assert_eq!(data.distance, Distance::Euclidean);
    assert!(matches!(data.train.values, Values::Bytes(_)), "whole numbers become bytes");
    let given = data.given.clone().unwrap();
    let truth = exact(&data.train, &data.test, data.distance, None, 5, 1);
    assert_eq!(given.ids, truth.ids);
    for (have, want) in given.distances.iter().zip(&truth.distances) {
        assert!((have - want).abs() < 1e-3, "{have} {want}");
    }
    let chunked = file.with_file_name("tiny-chunked.hdf5");
    let error = hdf5::dataset(&chunked).unwrap_err().to_string();
    assert!(error.contains("`train`") && error.contains("h5repack"), "{error}");
}
