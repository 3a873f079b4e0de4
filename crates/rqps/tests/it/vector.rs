//! Vector search by the whole program: on real servers, with every case; and what it says of
//! servers and data that will not do.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support::{builds, skipped};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rqps_bench_vector::data::Numbers;
use rqps_bench_vector::data::files;
use rqps_bench_vector::data::truth::exact;
use rqps_model::vector::Distance;
use serde_json::Value as Json;

const PGVECTOR: &str = "postgres@17+pgvector";
const MARIADB: &str = "mariadb@11.8";
/// Servers take turns: the machine is small.
static TURN: Mutex<()> = Mutex::new(());

/// A set that is indexed in a moment.
const SMALL: [&str; 8] = [
    "rows=3000", "dims=64", "queries=100", "pgvector=8/32", "mariadb=6", "ef=10,40", "seconds=0.4",
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
        // What was found out about this host must not decide how often a block is measured.
        command.env("RQPS_STATE", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-calibrations"));
        command
    }

    fn compare(&self, targets: &[&str], settings: &[&str]) -> Command {
        let mut command = self.rqps();
        command.args(["compare", "--full"]).args(targets).arg("--out").arg(self.out());
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

/// The entries of a folder, in order; empty if it does not exist.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    all.sort();
    all
}

fn words_of(output: &Output) -> String {
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
    let settings = [
        "cases=sweep,target,filter,cold,mixed,churn,payload",
        "deletes=50",
        "targets=0.9",
        "selectivity=20",
        "insert_rate=50",
        "ramp=1,2",
    ];
    let rerank = format!("rerank={PGVECTOR}:halfvec-rerank");
    let column = format!("column={PGVECTOR}:halfvec-column");
    let targets = [MARIADB, PGVECTOR, &half, &rerank, &column];
    let output = scene.compare(&targets, &settings).output().unwrap();
    assert!(output.status.success(), "{}", words_of(&output));
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
        if name == "load" {
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
            assert!(step["outcome"]["events"].as_u64().unwrap() > 0, "{run} {name}");
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
    assert_eq!(found, targets.len() * 11);
    let report = words_of(&output);
    for expected in ["Best QPS for a given recall", "half(m=8, ef_construction=32, ef_search="] {
        assert!(report.contains(expected), "{report}");
    }
}

#[test]
fn transactions_are_kept_apart_and_tables_filled() {
    let test = "transactions_are_kept_apart_and_tables_filled";
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !can_run(test, &[PGVECTOR, MARIADB]) {
        return;
    }
    let scene = Scene::new();
    let settings = [
        "cases=isolation,capacity", "ramp=1,2", "commit_rows=1,50", "capacity_seconds=2",
        "seconds=1",
    ];
    let bit = format!("bit={PGVECTOR}:bit");
    let targets = [MARIADB, PGVECTOR, &bit];
    let output = scene.compare(&targets, &settings).output().unwrap();
    assert!(output.status.success(), "{}", words_of(&output));
    let steps = scene.steps();
    let (mut levels, mut fills) = (0, 0);
    for (run, step) in &steps {
        let name = step["name"].as_str().unwrap();
        assert_eq!(step["status"], "complete", "{run} {name}: {}", step["status"]);
        let outcome = &step["outcome"];
        let needs = |metric: &str| {
            let number = outcome["extra"][metric].as_f64();
            number.unwrap_or_else(|| panic!("{run} {name} has no {metric}: {outcome}"))
        };
        if name.starts_with("isolation.") && name.contains("ef=") {
            levels += 1;
            assert_eq!(needs("violations"), 0.0, "{run} {name}: {}", outcome["notes"]);
            // MariaDB 11.8.6: a reader with an older snapshot takes what it sees into the graph
            // that all share, and rows of later transactions are missed until tables are flushed.
            let is_stale = run.contains("mariadb") && name.contains("repeatable-read");
            if needs("found") < 0.9 {
                assert!(is_stale, "{run} {name}: {}", outcome["facts"]);
                let missed = outcome["facts"]["missed by the index"].as_str().unwrap();
                assert!(missed.contains("Reader at the first place"), "{run}: {missed}");
            }
            assert!(outcome["statements"].as_u64().unwrap() > 24, "{run} {name}");
        }
        if name.starts_with("capacity.fill=") {
            fills += 1;
            let rows = needs("capacity");
            assert_eq!(outcome["statements"].as_f64().unwrap(), rows, "{run} {name}");
            assert!(rows > 0.0 && rows <= 3000.0 && needs("index_size") > 0.0, "{run} {name}");
        }
        if name.starts_with("capacity.filled=") {
            assert!(needs("recall") > 0.5, "{run} {name}");
        }
    }
    assert_eq!((levels, fills), (targets.len() * 4, targets.len() * 4));
    assert!(!words_of(&output).contains("must be invisible"), "{}", words_of(&output));
}

#[test]
fn a_server_without_vectors_says_what_it_lacks() {
    let test = "a_server_without_vectors_says_what_it_lacks";
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for (target, expected) in
        [("postgres@17.2.0", "no pgvector"), ("mariadb@11.4.5", "needs MariaDB 11.7")]
    {
        if !can_run(test, &[target]) {
            continue;
        }
        let scene = Scene::new();
        let output = scene.compare(&[target], &[]).output().unwrap();
        let load = scene.steps().into_iter().find(|(_, step)| step["name"] == "load");
        let (_, load) = load.unwrap_or_else(|| panic!("{}", words_of(&output)));
        let why = load["status"]["failed"].as_str().unwrap();
        assert!(why.contains(expected), "{why}");
        for (_, step) in scene.steps().iter().filter(|(_, step)| step["name"] != "load") {
            assert_eq!(step["status"]["failed"], "skipped because load failed");
        }
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
        step.unwrap_or_else(|| panic!("no {name}: {}", words_of(&output))).1["status"].clone()
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
    assert!(resumed.status.success(), "{}", words_of(&resumed));
    let steps = scene.steps();
    // The finished steps of the first attempt, and all five of the second.
    assert_eq!(steps.len(), before + 5, "{}", words_of(&resumed));
    assert!(steps.iter().all(|(_, step)| step["status"] == "complete"));
}

/// The server whose data lie in `folder`: the oldest process that is told so on its command line.
fn server_in(folder: &Path) -> Option<u32> {
    let mut found: Option<u32> = None;
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let cmdline = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        let words = String::from_utf8_lossy(&cmdline);
        let is_server = ["postgres", "mariadbd"].contains(&name.trim());
        if is_server && words.contains(&*folder.to_string_lossy()) {
            found = Some(found.map_or(pid, |other| other.min(pid)));
        }
    }
    found
}

/// The process of a server in `folder` that builds an index.
fn builder_in(folder: &Path) -> Option<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let of_index = processes.filter(|entry| {
        let cmdline = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let place = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
        String::from_utf8_lossy(&cmdline).contains("CREATE INDEX") && place.starts_with(folder)
    });
    let mut numbers = of_index.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.next()
}

#[test]
fn a_build_that_the_server_breaks_off_fails_alone_and_is_done_again() {
    let test = "a_build_that_the_server_breaks_off_fails_alone_and_is_done_again";
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if !can_run(test, &[PGVECTOR]) {
        return;
    }
    let scene = Scene::new();
    // The first index takes seconds.
    let settings = ["rows=6000", "pgvector=64/400,8/32", "ef=10"];
    let work = scene.folder.path().join("work");
    let mut running = scene
        .compare(&[PGVECTOR], &settings)
        .args(["--work".as_ref(), work.as_os_str()])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let builder = loop {
        assert!(Instant::now() < deadline, "no index was ever built");
        assert!(running.try_wait().unwrap().is_none(), "it ended early");
        match builder_in(&work) {
            Some(builder) => break builder,
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(Command::new("kill").arg(builder.to_string()).status().unwrap().success());
    let output = running.wait_with_output().unwrap();
    let words = words_of(&output);
    assert_eq!(output.status.code(), Some(4), "{words}");
    assert!(words.contains("failed to build the index (CREATE INDEX"), "{words}");
    let status = |name: &str| {
        let steps = scene.steps().into_iter().filter(|(_, step)| step["name"] == name);
        steps.map(|(_, step)| step["status"].clone()).collect::<Vec<_>>()
    };
    let lost = &status("search.m=64.ec=400.ef=10")[0]["failed"];
    assert_eq!(*lost, "skipped because index.m=64.ec=400 failed");
    assert_eq!(status("search.m=8.ec=32.ef=10"), ["complete"], "the others were measured");
    let resumed = scene.rqps().args(["run", "--resume"]).arg(scene.out()).output().unwrap();
    assert!(resumed.status.success(), "{}", words_of(&resumed));
    assert_eq!(status("search.m=64.ec=400.ef=10")[1], "complete", "{}", words_of(&resumed));
}

#[test]
fn a_server_that_is_killed_while_it_builds_says_so_and_resumes() {
    let test = "a_server_that_is_killed_while_it_builds_says_so_and_resumes";
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    // The second index takes seconds.
    for (target, step) in [(PGVECTOR, "index.m=64.ec=400"), (MARIADB, "index.m=64")] {
        if !can_run(test, &[target]) {
            continue;
        }
        let scene = Scene::new();
        let settings = ["rows=6000", "pgvector=8/32,64/400", "mariadb=6,64", "ef=10"];
        let mut running = scene
            .compare(&[target], &settings)
            .args(["--work".as_ref(), scene.folder.path().join("work").as_os_str()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let deadline = Instant::now() + Duration::from_secs(120);
        while scene.steps().len() < 3 {
            assert!(Instant::now() < deadline, "{target}: the first point never came");
            assert!(running.try_wait().unwrap().is_none(), "{target}: it ended early");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(300));
        let server = server_in(scene.folder.path()).expect("there is a server");
        assert!(Command::new("kill").args(["-9", &server.to_string()]).status().unwrap().success());
        let output = running.wait_with_output().unwrap();
        let words = words_of(&output);
        assert_eq!(output.status.code(), Some(4), "{target}: {words}");
        for expected in [&format!("measure {step}"), "killed by signal 9"] {
            assert!(words.contains(expected), "{target}: no `{expected}` in {words}");
        }
        let finished = scene.steps();
        assert_eq!(finished.len(), 3, "{target}: {finished:?}");
        assert!(finished.iter().all(|(_, step)| step["status"] == "complete"));
        let resumed = scene.rqps().args(["run", "--resume"]).arg(scene.out()).output().unwrap();
        assert!(resumed.status.success(), "{target}: {}", words_of(&resumed));
        let steps = scene.steps();
        assert_eq!(steps.len(), 3 + 5, "{target}: {}", words_of(&resumed));
        assert!(steps.iter().all(|(_, step)| step["status"] == "complete"), "{target}");
    }
}

#[test]
fn a_file_that_will_not_do_is_refused_before_anything_is_started() {
    let scene = Scene::new();
    let path = |name: &str| scene.folder.path().join(name);
    let write = |name: &str, rows: &[Vec<f32>]| {
        let vectors = rows.iter().flat_map(|row| {
            let values = row.iter().flat_map(|value| value.to_le_bytes());
            (row.len() as i32).to_le_bytes().into_iter().chain(values)
        });
        fs::write(path(name), vectors.collect::<Vec<u8>>()).unwrap();
    };
    let rows: Vec<Vec<f32>> = (0..40).map(|row| vec![row as f32 + 0.5, 1.0]).collect();
    let mut nan = rows.clone();
    nan[7][1] = f32::NAN;
    write("rows.fvecs", &rows);
    write("few.fvecs", &rows[..6]);
    write("nan.fvecs", &nan);
    let mut mixed = rows.clone();
    mixed[5] = vec![0.5; 3];
    write("mixed.fvecs", &mixed);
    write("queries.fvecs", &rows[..3]);
    write("long.fvecs", &[vec![0.5; 3]]);
    // Bits of floats are numbers too, and none of a row.
    fs::copy(path("queries.fvecs"), path("near.ivecs")).unwrap();
    let check = |rows: &str, queries: &str, more: &str, expected: &str| {
        let data = format!("data={}", path(rows).display());
        let queries = format!("queries={}", path(queries).display());
        let mut command = scene.rqps();
        command.args(["compare", PGVECTOR, "--bench", "vector", "--out"]).arg(scene.out());
        for setting in [data.as_str(), queries.as_str(), more] {
            command.args(["--set", setting]);
        }
        let output = command.output().unwrap();
        let words = words_of(&output);
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(words.contains(expected), "{words}");
        assert!(!scene.out().exists(), "{words}");
    };
    check("rows.fvecs", "long.fvecs", "k=10", "rows have 2 dimensions but queries 3");
    check(
        "mixed.fvecs",
        "queries.fvecs",
        "k=10",
        "vector 5 has 3 dimensions but the vectors before it have 2",
    );
    check("nan.fvecs", "queries.fvecs", "k=10", "row 7 has NaN in dimension 1");
    check("few.fvecs", "queries.fvecs", "k=10", "it has 6 rows, but 10 neighbours");
    check("no.fvecs", "queries.fvecs", "k=10", "no.fvecs");
    let near = format!("neighbours={}", path("near.ivecs").display());
    check("rows.fvecs", "queries.fvecs", &near, "as a neighbour, but the 40 rows");
}

#[test]
fn verify_data_tells_what_it_checked() {
    let scene = Scene::new();
    let verify = |words: &[&str]| {
        let mut command = scene.rqps();
        command.args(["vector", "verify-data", "--cache"]).arg(scene.folder.path());
        command.args(["--set", "rows=1500", "--set", "dims=16", "--set", "queries=50"]);
        let output = command.args(words).output().unwrap();
        assert!(output.status.success(), "{}", words_of(&output));
        words_of(&output)
    };
    let words = verify(&["--indexes", "8/32"]);
    for expected in [
        "relative contrast at 10",
        "recall of 8/32 at ef 80",
        "wider searches with less recall",
        "all checks passed",
    ] {
        assert!(words.contains(expected), "no `{expected}` in {words}");
    }
    let words = verify(&["--indexes", "none"]);
    assert!(!words.contains("recall of 8/32") && !words.contains("wider"), "{words}");
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is_fetched() {
    let scene = Scene::new();
    let check = |target: &str, settings: &[&str], expected: &str| {
        let output = scene.compare(&[target], settings).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", words_of(&output));
        assert!(words_of(&output).contains(expected), "{}", words_of(&output));
        assert!(scene.steps().is_empty());
    };
    check(PGVECTOR, &["pgvector=64/64"], "ef_construction must be at least 2 m");
    let few = "search with ef=5 and k=10: pgvector returns at most ef_search rows";
    check(PGVECTOR, &["ef=5"], few);
    check(PGVECTOR, &["rows=5"], "k cannot exceed");
    check("mysql@8.0.33", &[], "mariadb@11.8");
    check("mariadb@11.8+myrocks", &[], "MyRocks has no vector index");
    check("sqlite", &[], "postgres with pgvector and mariadb");
}

#[test]
fn the_published_table_comes_out_of_the_published_points() {
    let test = "the_published_table_comes_out_of_the_published_points";
    let Some(fixtures) = std::env::var_os("RQPS_FIXTURES") else {
        return skipped::note(test, "RQPS_FIXTURES names no folder");
    };
    let published = Path::new(&fixtures).join("vector/2025-01.fashion.serial");
    let scene = Scene::new();
    let run = |words: &[&std::ffi::OsStr]| {
        let output = scene.rqps().args(words).output().unwrap();
        assert!(output.status.success(), "{}", words_of(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    let out = scene.out();
    let [import, format, to] = ["import", "ann-benchmarks", "--out"].map(std::ffi::OsStr::new);
    run(&[import, format, published.as_os_str(), to, out.as_os_str()]);
    let report = run(&[std::ffi::OsStr::new("report"), out.as_os_str()]);
    let spaced = report.split_whitespace().collect::<Vec<_>>().join(" ");
    for row in [
        "1.00 1.000 920 97.4 PGVector(m=16, ef_construction=192, ef_search=120)",
        "1.00 1.000 991 89.8 PGVector_halfvec(m=16, ef_construction=256, ef_search=120)",
        "1.00 1.000 3226 111.8 MariaDB(m=32, ef_search=10)",
        "0.99 0.990 2337 70.7 PGVector(m=16, ef_construction=96, ef_search=20)",
        "0.98 0.984 5351 18.1 MariaDB(m=8, ef_search=10)",
        "0.97 0.973 3185 89.8 PGVector_halfvec(m=16, ef_construction=256, ef_search=10)",
        "0.95 0.961 5691 14.8 MariaDB(m=6, ef_search=10)",
        // Three per cent slower, and built in a third of the time.
        "3129 QPS, 28.7 s, m=8, ef_construction=64, ef_search=20",
    ] {
        assert!(spaced.contains(row), "no `{row}` in {report}");
    }
}

#[test]
fn a_file_of_h5py_is_read_and_its_neighbours_are_right() {
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/vector/tiny-4-euclidean.hdf5");
    let data = files::dataset(&file).unwrap();
    assert_eq!((data.train.rows(), data.test.rows(), data.train.dims), (20, 3, 4));
    assert_eq!(data.distance, Distance::Euclidean);
    assert!(matches!(data.train.values, Numbers::Bytes(_)), "whole numbers become bytes");
    let given = data.given.clone().unwrap();
    let truth = exact(&data.train, &data.test, data.distance, None, 5, 1);
    assert_eq!(given.ids, truth.ids);
    for (have, want) in given.distances.iter().zip(&truth.distances) {
        assert!((have - want).abs() < 1e-3, "{have} {want}");
    }
    let chunked = file.with_file_name("tiny-chunked.hdf5");
    let error = files::dataset(&chunked).unwrap_err().to_string();
    assert!(error.contains("`train`") && error.contains("h5repack"), "{error}");
}
