//! The whole program on real servers, when things go wrong: rqps killed at any moment, Ctrl-C, a
//! server that dies, a setting that does not exist, a full disk; and targets that are no packages:
//! a path, a DSN.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support::{builds, server_place, skipped};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use rqps_dbms::{ControlPlane, Site, control_plane};
use rqps_model::build::Dbms;
use rqps_model::endpoint::{Endpoint, Login};
use rqps_wire::postgres::PostgresClient;
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::support::scene::{Running, Scene, entries, signal, stderr, turn};

const POSTGRES: &str = "postgres@17.2.0";
const MYSQL: &str = "mysql@8.0.33";

/// The root of a build; `None`, and a note, if it cannot be had or run here.
fn root_of(test: &str, target: &str) -> Option<PathBuf> {
    let root = match builds::roots("", &[target]) {
        Ok(roots) => roots.into_iter().next()?,
        Err(why) => {
            skipped::note(test, &why);
            return None;
        }
    };
    let names = ["bin/mysqld", "bin/postgres"];
    let program = names.iter().map(|name| root.join(name)).find(|path| path.exists())?;
    let output = Command::new(program).arg("--version").output().unwrap();
    if !output.status.success() {
        // A system library is missing.
        skipped::note(test, &stderr(&output));
        return None;
    }
    Some(root)
}

/// A build by its path: rqps copies no data folder that it made before, so one is made each time.
fn by_path(target: &str, root: &Path) -> String {
    let (dbms, _) = target.split_once('@').unwrap();
    format!("{dbms}={}", root.display())
}

/// When rqps is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// A program makes a data folder.
    Init,
    /// Rows are being loaded, or about to be.
    Load,
    /// They have been; what follows is settling, the end of the server, the snapshot.
    Settle,
    /// A run has begun: the snapshot is restored, servers start.
    Start,
    /// So many steps of this start are on disk.
    Steps(usize),
    /// The last step of a block is on disk.
    Stop,
}

/// Three steps for two targets.
const STEPS: [&str; 6] = [
    "--steps",
    "point-query,update-index,range-covered-pk,!*.warm",
    "--blocks",
    "2",
    "--seed",
    "7",
];
const STEPS_OF_BLOCK: usize = 6;

fn wait_for(moment: Moment, scene: &Scene, running: &mut Running) -> bool {
    let runs_before = scene.runs().len();
    let steps_before = scene.steps().len();
    let makes = ["initdb", "--initialize", "--bootstrap", "--single"];
    let ended = running.until(|said| match moment {
        Moment::Init => scene
            .processes()
            .iter()
            .any(|process| makes.iter().any(|word| process.words.contains(word))),
        Moment::Load => scene.path("out/load/a/driver.log").exists(),
        Moment::Settle => said.contains("rows loaded in"),
        Moment::Start => scene.runs().len() > runs_before,
        Moment::Steps(count) => scene.steps().len() >= steps_before + count,
        Moment::Stop => scene.steps().len() >= steps_before + STEPS_OF_BLOCK,
    });
    ended.is_none()
}

/// Kills rqps at moments of every kind; each time nothing stays but what was finished.
fn killed_again_and_again(test: &str, target: &str) {
    let _turn = turn();
    let Some(root) = root_of(test, target) else { return };
    let scene = Scene::new();
    // One data folder is made by the server, the other one is a copy of one that was made before.
    let (a, b) = (format!("a={}:small", by_path(target, &root)), format!("b={target}:small"));
    let moments = [
        (Moment::Init, 150),
        (Moment::Load, 60),
        (Moment::Settle, 120),
        (Moment::Init, 900),
        (Moment::Start, 250),
        (Moment::Steps(1), 200),
        (Moment::Steps(4), 300),
        (Moment::Stop, 60),
    ];
    let mut random = 0x9E37_79B9_u64;
    for (moment, spread_ms) in moments {
        // Killed before the plan was stored, there is nothing to resume.
        let stored = scene.path("out/plan.toml").exists();
        let command = if stored { scene.resume() } else { scene.compare(&[&a, &b], &STEPS) };
        let before = scene.steps();
        let mut running = scene.start(command);
        let in_time = wait_for(moment, &scene, &mut running);
        assert!(in_time, "{moment:?} never comes: {}", running.said());
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        thread::sleep(Duration::from_millis((random >> 33) % spread_ms));
        running.kill();
        scene.check_nothing_is_left(running.pid());
        let kept = scene.steps();
        assert!(before.iter().all(|step| kept.contains(step)), "{moment:?} lost a step");
        for step in &kept {
            let record: Json = serde_json::from_slice(&fs::read(step).unwrap()).unwrap();
            assert_eq!(record["status"], "complete", "{moment:?}: {}", step.display());
        }
        eprintln!("killed at {moment:?}: {} steps", kept.len());
    }
    let mut running = scene.start(scene.resume());
    let status = running.end();
    assert!(status.success(), "{status}: {}", running.said());
    scene.check_nothing_is_left(running.pid());
    assert!(!scene.path("out/.work").exists(), "nothing but results stays");
    let complete = scene.runs().iter().filter(|(_, run)| run["status"] == "complete").count();
    assert_eq!(complete, 4, "two targets in two blocks");
    let report = scene.report().output().unwrap();
    assert!(report.status.success(), "{}", stderr(&report));
    let report = String::from_utf8_lossy(&report.stdout).into_owned();
    assert!(report.contains("range-covered-pk"), "{report}");
}

#[test]
fn killed_at_any_moment_it_leaves_no_postgres_and_loses_no_step() {
    let test = "killed_at_any_moment_it_leaves_no_postgres_and_loses_no_step";
    killed_again_and_again(test, POSTGRES);
}

#[test]
fn killed_at_any_moment_it_leaves_no_mysql_and_loses_no_step() {
    let test = "killed_at_any_moment_it_leaves_no_mysql_and_loses_no_step";
    killed_again_and_again(test, MYSQL);
}

#[test]
fn ctrl_c_stops_cleanly() {
    let _turn = turn();
    let test = "ctrl_c_stops_cleanly";
    let (Some(postgres), Some(mysql)) = (root_of(test, POSTGRES), root_of(test, MYSQL)) else {
        return;
    };
    let scene = Scene::new();
    let targets = [by_path(POSTGRES, &postgres), by_path(MYSQL, &mysql)];
    let targets = [format!("a={}:small", targets[0]), format!("b={}:small", targets[1])];
    let targets = targets.each_ref().map(String::as_str);
    for (moment, steps) in [(Moment::Init, 0), (Moment::Settle, 0), (Moment::Steps(3), 3)] {
        let stored = scene.path("out/plan.toml").exists();
        let command = if stored { scene.resume() } else { scene.compare(&targets, &STEPS) };
        let mut running = scene.start(command);
        assert!(wait_for(moment, &scene, &mut running), "{moment:?}: {}", running.said());
        signal(running.pid(), Signal::INT);
        let status = running.end();
        assert_eq!(status.code(), Some(130), "{moment:?}: {}", running.said());
        scene.check_nothing_is_left(running.pid());
        assert!(scene.steps().len() >= steps, "{moment:?}: finished steps stay");
        let resume = format!("rqps run --resume {}", scene.path("out").display());
        assert!(running.said().contains(&resume), "{}", running.said());
    }
    let interrupted = scene.runs().iter().filter(|(_, run)| run["status"] == "interrupted").count();
    assert_eq!(interrupted, 2, "{:?}", scene.runs());
    let before = scene.steps();
    let mut running = scene.start(scene.resume());
    let status = running.end();
    assert!(status.success(), "{}", running.said());
    let kept = scene.steps();
    assert!(before.iter().all(|step| kept.contains(step)), "a finished step was lost");
}

/// The run of a label.
fn run_of(scene: &Scene, label: &str) -> (PathBuf, Json) {
    let mut runs = scene.runs().into_iter();
    runs.find(|(_, run)| run["key"]["label"] == label).unwrap_or_else(|| panic!("no run {label}"))
}

/// Kills the server of `b` after its first step.
fn a_server_dies(target: &str, program: &str) {
    let scene = Scene::new();
    let (a, b) = (format!("a={target}:small"), format!("b={target}:small"));
    let words = ["--steps", "point-query,update-index,scan,!*.warm", "--blocks", "1"];
    let mut running = scene.start(scene.compare(&[&a, &b], &words));
    let first_of_b = |scene: &Scene| {
        let is_of_b = |step: &PathBuf| step.to_string_lossy().contains("-b/steps/");
        scene.steps().iter().any(is_of_b)
    };
    assert!(running.until(|_| first_of_b(&scene)).is_none(), "{}", running.said());
    let data = scene.path("out/.work/b/").to_string_lossy().into_owned();
    let processes = scene.processes();
    let is_server = |words: &str| words.contains(program) && words.contains(&data);
    let server = processes.iter().find(|process| is_server(&process.words));
    signal(server.unwrap_or_else(|| panic!("{processes:?}")).pid, Signal::KILL);
    let status = running.end();
    let said = running.said();
    assert_eq!(status.code(), Some(4), "{said}");
    scene.check_nothing_is_left(running.pid());
    assert!(said.contains("rqps: failed: b: "), "{said}");
    assert!(said.contains("killed by signal 9"), "{said}");
    assert!(said.contains("server.log:\n  | "), "the last lines of its log: {said}");
    let (folder, run) = run_of(&scene, "a");
    assert_eq!(run["status"], "complete", "{run}");
    let steps = entries(&folder.join("steps"));
    let records = steps.iter().filter(|path| path.extension().is_some_and(|e| e == "json"));
    assert_eq!(records.count(), 3, "a record of each step: {steps:?}");
    let (folder, run) = run_of(&scene, "b");
    let why = run["status"]["failed"].as_str().unwrap_or_else(|| panic!("{run}"));
    assert!(why.contains("signal 9"), "{why}");
    assert!(entries(&folder.join("steps")).len() >= 2, "what it finished before stays");
}

#[test]
fn a_server_that_dies_costs_its_own_run_only() {
    let _turn = turn();
    let test = "a_server_that_dies_costs_its_own_run_only";
    if root_of(test, POSTGRES).is_some() {
        a_server_dies(POSTGRES, "bin/postgres");
    }
    if root_of(test, MYSQL).is_some() {
        a_server_dies(MYSQL, "bin/mysqld");
    }
}

#[test]
fn a_wrong_setting_is_named() {
    let _turn = turn();
    let test = "a_wrong_setting_is_named";
    for (dbms, target) in [("postgres", POSTGRES), ("mysql", MYSQL)] {
        if root_of(test, target).is_none() {
            continue;
        }
        let scene = Scene::new();
        scene.configure(dbms, "wrong", "no_such_setting = 1");
        let (good, wrong) = (format!("good={target}:small"), format!("wrong={target}:wrong"));
        let words = ["--steps", "point-query,!*.warm", "--blocks", "1"];
        let mut running = scene.start(scene.compare(&[&good, &wrong], &words));
        let status = running.end();
        let said = running.said();
        assert_eq!(status.code(), Some(4), "{said}");
        scene.check_nothing_is_left(running.pid());
        for part in ["rqps: failed: wrong: ", "no_such_setting", "\n  | ", "correct the config"] {
            assert!(said.contains(part), "no `{part}`: {said}");
        }
        assert_eq!(run_of(&scene, "good").1["status"], "complete");
    }
}

/// A small file system that is unmounted at the end.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(path: PathBuf, megabytes: u32) -> Result<SmallDisk, String> {
        fs::create_dir(&path).unwrap();
        let options = format!("size={megabytes}m,mode=755");
        let words = ["-t", "tmpfs", "-o", &options, "tmpfs"];
        let mount = Command::new("mount")
            .args(words)
            .arg(&path)
            .output()
            .map_err(|error| format!("mount: {error}"))?;
        if mount.status.success() { Ok(SmallDisk(path)) } else { Err(stderr(&mount)) }
    }

    /// Fills what is left.
    fn fill(&self) {
        let mut file = fs::File::create(self.0.join("filler")).unwrap();
        let block = vec![1_u8; 1 << 16];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg("--lazy").arg(&self.0).status().ok();
    }
}

#[test]
fn a_full_disk_is_told() {
    let _turn = turn();
    let test = "a_full_disk_is_told";
    if root_of(test, POSTGRES).is_none() {
        return;
    }
    let scene = Scene::new();
    let disk = match SmallDisk::mount(scene.path("small"), 2000) {
        Ok(disk) => disk,
        Err(why) => return skipped::note(test, &why),
    };
    let work = scene.path("small/work").to_string_lossy().into_owned();
    let target = format!("a={POSTGRES}");
    let words = ["--steps", "point-query,insert,!*.warm", "--blocks", "1", "--work", &work];
    let more = ["--set", "write_seconds=60"];
    let words: Vec<&str> = words.iter().chain(&more).copied().collect();
    let mut running = scene.start(scene.compare(&[&target], &words));
    let ended = running.until(|_| !scene.steps().is_empty());
    assert!(ended.is_none(), "{}", running.said());
    disk.fill();
    let status = running.end();
    let said = running.said();
    assert_eq!(status.code(), Some(4), "{said}");
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.to_lowercase().contains("disk is full"), "what to do: {said}");
    scene.check_nothing_is_left(running.pid());
    let (folder, _) = run_of(&scene, "a");
    let kept = entries(&folder.join("steps"));
    let kept = kept.iter().find(|path| path.to_string_lossy().ends_with("point-query.json"));
    let kept = kept.unwrap_or_else(|| panic!("no point-query in {}", folder.display()));
    let record: Json = serde_json::from_slice(&fs::read(kept).unwrap()).unwrap();
    assert_eq!(record["status"], "complete");
}

#[test]
fn a_plan_that_does_not_fit_on_the_disk_is_refused() {
    let _turn = turn();
    let test = "a_plan_that_does_not_fit_on_the_disk_is_refused";
    let scene = Scene::new();
    let _disk = match SmallDisk::mount(scene.path("small"), 20) {
        Ok(disk) => disk,
        Err(why) => return skipped::note(test, &why),
    };
    let work = scene.path("small/work").to_string_lossy().into_owned();
    let words = ["--steps", "scan", "--work", &work, "--set", "rows=1000000"];
    let output = scene.compare(&["sqlite"], &words).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("they need about") && said.contains("--work"), "{said}");
}

#[test]
fn sqlite_of_the_system_compares_with_the_compiled_in() {
    let _turn = turn();
    let test = "sqlite_of_the_system_compares_with_the_compiled_in";
    let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
    let library = folders.iter().map(|folder| Path::new(folder).join("libsqlite3.so.0"));
    let Some(library) = { library }.find(|path| path.exists()) else {
        return skipped::note(test, "no libsqlite3.so.0: install the package libsqlite3-0");
    };
    let scene = Scene::new();
    let system = format!("system=sqlite={}", library.display());
    let words = ["--steps", "point-query,update-index,!*.warm", "--blocks", "1"];
    let mut running = scene.start(scene.compare(&["own=sqlite", &system], &words));
    let status = running.end();
    assert!(status.success(), "{}", running.said());
    let version =
        |label| run_of(&scene, label).1["manifest"]["reported"].as_str().unwrap().to_owned();
    assert!(version("own").starts_with("3."), "{}", version("own"));
    assert!(version("system").starts_with("3."), "{}", version("system"));
    assert_eq!(scene.steps().len(), 4);
}

/// A Postgres that somebody else runs.
fn somebodys_postgres(scene: &Scene, root: &Path) -> Box<dyn ControlPlane> {
    let build = server_place::build(Dbms::Postgres, Some(root), "17.2.0");
    let site = Site {
        data: scene.path("theirs"),
        logs: scene.path("their-logs"),
        sockets: scene.path("their-sockets"),
        ..server_place::site(&scene.path(""), &build)
    };
    let mut plane = control_plane(site).unwrap();
    plane.init().unwrap();
    plane.start().unwrap();
    plane
}

fn client(plane: &dyn ControlPlane) -> PostgresClient {
    let (Endpoint::Server(address), login): (Endpoint, Login) = plane.endpoint() else {
        panic!("no server")
    };
    PostgresClient::connect(&address, &login, Duration::from_secs(30)).unwrap()
}

#[test]
fn a_server_by_dsn_is_measured_and_keeps_what_is_its_own() {
    let _turn = turn();
    let test = "a_server_by_dsn_is_measured_and_keeps_what_is_its_own";
    let Some(root) = root_of(test, POSTGRES) else { return };
    let scene = Scene::new();
    let mut plane = somebodys_postgres(&scene, &root);
    let mut session = client(&*plane);
    session.simple("CREATE TABLE sbtest99 (their INTEGER)").unwrap();
    session.simple("CREATE TABLE theirs AS SELECT 42 AS answer").unwrap();
    let sockets = scene.path("their-sockets");
    let dsn = format!("theirs=postgres://rqps@/rqps?host={}", sockets.display());
    let words = ["--steps", "point-query,update-index,!*.warm", "--blocks", "2"];
    let mut running = scene.start(scene.compare(&[&dsn, "own=postgres@17.2.0"], &words));
    let status = running.end();
    assert!(status.success(), "{}", running.said());
    for (folder, run) in scene.runs() {
        assert_eq!(run["status"], "complete", "{run}");
        assert!(run["manifest"]["reported"].as_str().unwrap().starts_with("17.2"), "{run}");
        for step in entries(&folder.join("steps")) {
            if step.extension() == Some("json".as_ref()) {
                let record: Json = serde_json::from_slice(&fs::read(&step).unwrap()).unwrap();
                assert_eq!(record["status"], "complete");
                let server = &record["usage"]["server_cpu"];
                assert!(!server.is_null(), "no server CPU in {}: {record}", step.display());
            }
        }
    }
    plane.check().unwrap();
    let tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1";
    let tables: Vec<String> =
        session.rows(tables).unwrap().into_iter().flatten().flatten().collect();
    assert_eq!(tables, ["sbtest99", "theirs"]);
    let answer = session.rows("SELECT answer FROM theirs").unwrap();
    assert_eq!(answer, [[Some("42".to_owned())]]);
    plane.stop().unwrap();
    scene.check_nothing_is_left(running.pid());
}

#[test]
fn a_server_that_does_not_answer_is_told() {
    let _turn = turn();
    let scene = Scene::new();
    let words = ["--steps", "point-query,!*.warm", "--blocks", "1"];
    let dsn = "theirs=postgres://rqps@/rqps?host=/nowhere";
    let output = scene.compare(&["sqlite", dsn], &words).output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "before the first block: {said}");
    assert!(said.contains("/nowhere/.s.PGSQL.5432"), "{said}");
}

/// The VACUUM after the load comes right after its commits, whose log may not be on disk yet.
#[test]
fn an_index_only_scan_of_a_new_load_reads_no_table() {
    let _turn = turn();
    let test = "an_index_only_scan_of_a_new_load_reads_no_table";
    if root_of(test, POSTGRES).is_none() {
        return;
    }
    let scene = Scene::new();
    let words = ["--steps", "range-covered-pk,!*.warm", "--blocks", "1"];
    let mut running = scene.start(scene.compare(&["a=postgres@17.2.0"], &words));
    assert!(running.end().success(), "{}", running.said());
    let (run, _) = run_of(&scene, "a");
    let steps = entries(&run.join("steps"));
    let named = |end: &str| {
        let found = steps.iter().find(|path| path.to_string_lossy().ends_with(end));
        fs::read_to_string(found.unwrap_or_else(|| panic!("no {end}: {steps:?}"))).unwrap()
    };
    let counters = named("range-covered-pk.counters.csv");
    let fetched = counters.lines().find_map(|line| {
        let (before, after) =
            line.strip_prefix("pg_stat_user_tables.idx_tup_fetch,")?.split_once(',')?;
        Some(after.parse::<f64>().unwrap() - before.parse::<f64>().unwrap())
    });
    let step: Json = serde_json::from_str(&named("range-covered-pk.json")).unwrap();
    let rows = step["outcome"]["rows"].as_f64().unwrap();
    // A counter that did not move is left out.
    let fetched = fetched.unwrap_or(0.0);
    assert!(rows > 100.0 && fetched <= rows / 50.0, "{fetched} of {rows} rows: {counters}");
}

#[test]
fn an_installed_tree_is_measured() {
    let _turn = turn();
    let test = "an_installed_tree_is_measured";
    let trees = entries(Path::new("/usr/lib/postgresql"));
    let Some(tree) = trees.into_iter().find(|tree| tree.join("bin/initdb").exists()) else {
        return skipped::note(test, "no /usr/lib/postgresql: install the package postgresql");
    };
    let scene = Scene::new();
    let target = format!("installed=postgres={}", tree.display());
    let words = ["--steps", "point-query,!*.warm", "--blocks", "1"];
    let mut running = scene.start(scene.compare(&[&target], &words));
    let status = running.end();
    assert!(status.success(), "{}", running.said());
    let (_, run) = run_of(&scene, "installed");
    let version = tree.file_name().unwrap().to_string_lossy().into_owned();
    assert!(run["manifest"]["reported"].as_str().unwrap().starts_with(&version), "{run}");
    scene.check_nothing_is_left(running.pid());
}
