//! Servers never outlive rqps (the warden), and live through their whole life: data folder, start,
//! settle, pause, stop, a second start on a copy.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rqps::dbms::{ControlPlane, DbmsError, Interrupt, SettleLoad, Site, config, control_plane};
use rqps::domain::build::{Build, Dbms, Manifest, Version};
use rqps::domain::endpoint::{Address, Endpoint};
use rqps::os::process::{CLEAN_EXIT, Job, ProcessError, Stop, StopSignal, Warden};
use rqps::os::user;

const RQPS: &str = env!("CARGO_BIN_EXE_rqps");

/// Names the folder of [`lab_process`]; only set by the tests that start it.
const LAB_FOLDER: &str = "RQPS_TEST_LAB_FOLDER";

/// Nothing here takes long; this is how long a broken test takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn skipped(test: &str, why: &str) {
    eprintln!("SKIPPED: {test}: {why}");
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// The state letter of a process; `None` if there is none of that id. A zombie is gone.
fn state(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let letter = stat.rsplit_once(')')?.1.trim_start().chars().next()?;
    (letter != 'Z' && letter != 'X').then_some(letter)
}

fn shell(script: &str, folder: &Path) -> Job {
    Job {
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        folder: folder.to_owned(),
        stdin: None,
        log: folder.join("log"),
        run_as: None,
        remove_after: None,
        on_loss: Stop::HARD,
    }
}

/// A server of the worst kind: children in sessions of their own, an orphan, and deaf to SIGTERM.
/// Says `up` when all are there.
const STUBBORN: &str = "trap '' TERM INT QUIT HUP
    setsid sh -c 'trap \"\" TERM INT QUIT HUP; sleep 1000; sleep 1000' &
    (setsid sh -c 'sleep 1000; sleep 1000' &)
    sleep 1000 &
    sleep 0.2; echo up; sleep 1000; sleep 1000";

fn log_of(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

fn start_stubborn(folder: &Path) -> Warden {
    let warden = Warden::spawn(&shell(STUBBORN, folder), Path::new(RQPS)).unwrap();
    wait_until("the stubborn server is up", || log_of(folder).contains("up"));
    warden
}

#[test]
fn a_stop_leaves_nothing_of_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let mut warden = start_stubborn(folder.path());
    let tree = warden.tree();
    assert!(tree.len() >= 6, "{tree:?}");
    let status = warden.stop(StopSignal::Term, Duration::from_millis(100)).unwrap();
    assert_eq!(status, "killed by signal 9");
    assert_eq!(tree.into_iter().filter_map(state).collect::<Vec<_>>(), []);
}

#[test]
fn a_drop_ends_the_tree() {
    let folder = tempfile::tempdir().unwrap();
    let warden = start_stubborn(folder.path());
    let tree = warden.tree();
    drop(warden);
    assert_eq!(tree.into_iter().filter_map(state).collect::<Vec<_>>(), []);
}

#[test]
fn a_pause_stops_every_process_and_a_stop_ends_them_still() {
    let folder = tempfile::tempdir().unwrap();
    let mut warden = start_stubborn(folder.path());
    let states =
        |warden: &Warden| -> Vec<char> { warden.tree().into_iter().filter_map(state).collect() };
    warden.pause().unwrap();
    wait_until("all are stopped", || states(&warden).iter().all(|letter| *letter == 'T'));
    warden.resume().unwrap();
    wait_until("all run again", || states(&warden).iter().all(|letter| *letter != 'T'));
    warden.pause().unwrap();
    let tree = warden.tree();
    warden.stop(StopSignal::Term, Duration::from_millis(100)).unwrap();
    assert_eq!(tree.into_iter().filter_map(state).collect::<Vec<_>>(), []);
}

#[test]
fn a_good_end_is_told_and_its_folder_removed() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("sockets");
    fs::create_dir(&sockets).unwrap();
    fs::write(sockets.join("socket"), "").unwrap();
    let check = |script: &str, signal, wanted: &str| {
        let mut job = shell(script, folder.path());
        job.remove_after = Some(sockets.clone());
        let mut warden = Warden::spawn(&job, Path::new(RQPS)).unwrap();
        wait_until("it is up", || log_of(folder.path()).contains("up"));
        assert_eq!(warden.has_exited(), None);
        assert_eq!(warden.stop(signal, PATIENCE).unwrap(), wanted);
        assert_eq!(warden.has_exited().as_deref(), Some(wanted));
        fs::remove_file(folder.path().join("log")).unwrap();
    };
    let wait = "while :; do sleep 1000 & wait $!; done";
    check(&format!("trap 'exit 0' TERM; echo up; {wait}"), StopSignal::Term, CLEAN_EXIT);
    assert!(!sockets.exists());
    check(&format!("trap 'exit 7' INT; echo up; {wait}"), StopSignal::Int, "exit status 7");
    check("echo up; exec sleep 1000", StopSignal::Kill, "killed by signal 9");
}

#[test]
fn an_end_by_itself_is_noticed_and_takes_the_children_along() {
    let folder = tempfile::tempdir().unwrap();
    let script = "setsid sleep 1000 & echo $! >&2; sleep 0.1; exit 3";
    let warden = Warden::spawn(&shell(script, folder.path()), Path::new(RQPS)).unwrap();
    assert_eq!(warden.wait(PATIENCE).as_deref(), Some("exit status 3"));
    let child: u32 = log_of(folder.path()).trim().parse().unwrap();
    assert_eq!(state(child), None);
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let mut job = shell("", folder.path());
    job.program = PathBuf::from("/nowhere/mysqld");
    let error = Warden::spawn(&job, Path::new(RQPS)).unwrap_err();
    assert!(matches!(error, ProcessError::Start { .. }), "{error:?}");
    assert!(error.to_string().contains("start /nowhere/mysqld: No such file"), "{error}");
    let job = shell("sleep 1000", folder.path());
    let error = Warden::spawn(&job, Path::new("/bin/true")).unwrap_err().to_string();
    assert!(error.contains("/bin/true"), "{error}");
}

#[test]
fn a_server_of_a_killed_warden_is_killed_too() {
    let folder = tempfile::tempdir().unwrap();
    let warden =
        Warden::spawn(&shell("echo up; exec sleep 1000", folder.path()), Path::new(RQPS)).unwrap();
    let server = warden.server_pid();
    let parent = rqps::os::process::parent_of(server).unwrap();
    kill_9(parent);
    wait_until("the server is gone", || state(server).is_none());
    wait_until("the end is known", || warden.has_exited().is_some());
}

#[test]
fn root_gives_up_its_user_and_all_its_groups() {
    let Some(user) = user::choose(None).unwrap() else {
        return skipped("root_gives_up_its_user_and_all_its_groups", "not root");
    };
    let folder = tempfile::tempdir().unwrap();
    user::chown_tree(folder.path(), &user).unwrap();
    let mut job = shell("id -u; id -G; touch made", folder.path());
    job.run_as = Some(user.identity());
    let warden = Warden::spawn(&job, Path::new(RQPS)).unwrap();
    assert_eq!(warden.wait(PATIENCE).as_deref(), Some(CLEAN_EXIT));
    assert_eq!(log_of(folder.path()), format!("{}\n{}\n", user.uid, user.gid));
    assert!(folder.path().join("made").exists());
}

fn kill_9(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Not a test: what the two tests below start and kill in place of rqps.
#[test]
#[ignore = "started by other tests"]
fn lab_process() {
    let Ok(folder) = std::env::var(LAB_FOLDER) else {
        return skipped("lab_process", "it is started by other tests");
    };
    let folder = PathBuf::from(folder);
    let warden = start_stubborn(&folder);
    let mut pids = warden.tree();
    pids.push(rqps::os::process::parent_of(warden.server_pid()).unwrap());
    if folder.join("pause").exists() {
        warden.pause().unwrap();
    }
    let text: Vec<String> = pids.iter().map(u32::to_string).collect();
    fs::write(folder.join("pids.new"), text.join(" ")).unwrap();
    fs::rename(folder.join("pids.new"), folder.join("pids")).unwrap();
    thread::sleep(Duration::from_secs(1000));
}

/// Kills a lab with `kill -9`; nothing that it started may be left.
fn check_kill_9(pause: bool) {
    let folder = tempfile::tempdir().unwrap();
    if pause {
        fs::write(folder.path().join("pause"), "").unwrap();
    }
    let mut lab = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "lab_process", "--ignored"])
        .env(LAB_FOLDER, folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("the lab is up", || folder.path().join("pids").exists());
    let text = fs::read_to_string(folder.path().join("pids")).unwrap();
    let pids: Vec<u32> = text.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() >= 7, "{pids:?}");
    assert!(pids.iter().all(|pid| state(*pid).is_some()), "{pids:?}");
    lab.kill().unwrap();
    lab.wait().unwrap();
    wait_until("nothing is left", || pids.iter().all(|pid| state(*pid).is_none()));
}

#[test]
fn nothing_outlives_a_lab_that_is_killed() {
    check_kill_9(false);
}

#[test]
fn nothing_outlives_a_killed_lab_even_when_stopped() {
    check_kill_9(true);
}

/// A target in a temporary folder, with a config of its own.
struct Place {
    folder: tempfile::TempDir,
    build: Build,
}

impl Place {
    fn new(dbms: Dbms, root: &Path, version: &str) -> Place {
        let manifest = Manifest {
            dbms,
            version: Version::new(version),
            reported: String::new(),
            origin: root.display().to_string(),
            sha256: None,
            compiler: None,
        };
        let folder = tempfile::Builder::new().prefix("rqps-servers-").tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        Place { folder, build: Build { root: Some(root.to_owned()), manifest } }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn site(&self, data: &str) -> Site {
        let Manifest { dbms, version, .. } = &self.build.manifest;
        Site {
            build: self.build.clone(),
            config: config::load(*dbms, "default", None, version, 128 << 20).unwrap(),
            data: self.path(data),
            logs: self.path("logs"),
            sockets: self.path("s"),
            storage_engine: None,
            run_as: user::choose(None).unwrap(),
            tcp_port: None,
            warden_program: PathBuf::from(RQPS),
            start_timeout: Duration::from_secs(120),
            interrupt: Interrupt::default(),
        }
    }

    fn logs(&self) -> String {
        ["init.log", "server.log"]
            .map(|name| fs::read_to_string(self.path("logs").join(name)).unwrap_or_default())
            .concat()
    }
}

/// Roots of builds to test: those in the environment variable (separated by colons), else
/// `installed`.
fn roots(variable: &str, installed: &str) -> Vec<PathBuf> {
    if let Ok(list) = std::env::var(variable) {
        return list.split(':').map(PathBuf::from).collect();
    }
    let Ok(entries) = fs::read_dir(installed) else {
        return Vec::new();
    };
    entries.flatten().map(|entry| entry.path()).collect()
}

/// What the server program says of its version: the first word with a digit and a dot.
fn version_of(root: &Path, names: &[&str]) -> String {
    let program = names.iter().map(|name| root.join("bin").join(name)).find(|path| path.exists());
    let output = Command::new(program.unwrap()).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let starts_with_digit = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    text.split_whitespace().find(starts_with_digit).unwrap().to_owned()
}

/// Copies a data folder as a snapshot is: by root, so that all files belong to root.
fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

fn rows(plane: &dyn ControlPlane, sql: &str) -> Vec<String> {
    let (endpoint, login) = plane.endpoint();
    let Endpoint::Server(Address::Unix(path)) = endpoint else { panic!() };
    let out = if login.user == "rqps" {
        Command::new("psql")
            .args(["-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h"])
            .arg(path.parent().unwrap())
            .args(["-U", &login.user, "-d", &login.database, "-c", sql])
            .output()
            .unwrap()
    } else {
        Command::new("mariadb")
            .args(["--no-defaults", "-N", "-B", "-u", &login.user, "-D", &login.database, "-S"])
            .arg(path)
            .args(["-e", sql])
            .output()
            .unwrap()
    };
    assert!(out.status.success(), "{sql}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).lines().map(str::to_owned).collect()
}

/// The whole life of a server.
fn check_life(dbms: Dbms, root: &Path, version: &str) {
    let place = Place::new(dbms, root, version);
    let name = format!("{dbms} {version}");
    let mut plane = control_plane(place.site("data")).unwrap();
    let mut times = Vec::new();
    let mut clock = Instant::now();
    let mut lap = |what: &str| {
        times.push(format!("{what} {:.1} s", clock.elapsed().as_secs_f64()));
        clock = Instant::now();
    };
    plane.init().unwrap_or_else(|error| panic!("{name}: {error}"));
    lap("init");
    plane.start().unwrap_or_else(|error| panic!("{name}: {error}"));
    lap("start");
    let reported = plane.reported_version().unwrap();
    assert!(reported.starts_with(version), "{name} says {reported}");
    assert!(user::choose(None).unwrap().is_none_or(|user| {
        fs::metadata(format!("/proc/{}", plane.server_pid().unwrap())).unwrap().uid() == user.uid
    }));
    for table in ["sbtest1", "sbtest2"] {
        rows(&*plane, &format!("CREATE TABLE {table} (id INT PRIMARY KEY, c CHAR(120))"));
        rows(&*plane, &format!("INSERT INTO {table} VALUES (1, 'one'), (2, 'two')"));
    }
    let mut load =
        SettleLoad { tables: 2, rows_total: 4, table: "sbtest{table}".to_owned(), scale: 0.05 };
    lap("tables");
    let before = limits(&*plane, dbms);
    plane.settle(&load, &mut |_| {}).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(limits(&*plane, dbms), before, "{name}");
    lap("settle");
    let status = plane.status().unwrap();
    eprintln!("{:?}", status.iter().map(|(n, t)| (n, t.len())).collect::<Vec<_>>());
    lap("status");
    plane.pause().unwrap();
    plane.resume().unwrap();
    plane.check().unwrap();
    assert_eq!(rows(&*plane, "SELECT COUNT(*) FROM sbtest2"), ["2"], "{name}");
    // A paused server stops in good order, too.
    plane.pause().unwrap();
    plane.stop().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(!place.path("s").exists(), "{name}");
    lap("stop");
    copy(&place.path("data"), &place.path("copy"));
    lap("copy");
    let mut plane = control_plane(place.site("copy")).unwrap();
    assert!(matches!(plane.init(), Err(DbmsError::DataNotEmpty(_))), "{name}");
    plane.start().unwrap_or_else(|error| panic!("{name} on a copy: {error}"));
    assert_eq!(rows(&*plane, "SELECT COUNT(*) FROM sbtest1"), ["2"], "{name}");
    load.scale = 0.0;
    plane.settle(&load, &mut |_| {}).unwrap();
    plane.stop().unwrap();
    lap("again");
    eprintln!("{name}: {}", times.join(", "));
    eprintln!(
        "{}",
        place
            .logs()
            .lines()
            .filter(|l| (l.to_lowercase().contains("err")
                || l.to_lowercase().contains("warn")
                || l.to_lowercase().contains("hint")))
            .take(12)
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// Settings that settling changes for a while.
fn limits(plane: &dyn ControlPlane, dbms: Dbms) -> Vec<String> {
    if dbms == Dbms::Postgres {
        return Vec::new();
    }
    rows(
        plane,
        "SHOW GLOBAL VARIABLES WHERE Variable_name LIKE '%dirty_pages_pct%'
        OR Variable_name LIKE 'innodb_idle_flush_pct'",
    )
}

#[test]
fn postgres_lives() {
    for root in roots("RQPS_TEST_POSTGRES", "/usr/lib/postgresql") {
        check_life(Dbms::Postgres, &root, &version_of(&root, &["postgres"]));
    }
}
#[test]
fn mysql_lives() {
    for root in roots("RQPS_TEST_MYSQL", "/nowhere") {
        check_life(Dbms::Mysql, &root, &version_of(&root, &["mysqld"]));
    }
}
#[test]
fn mariadb_lives() {
    for root in roots("RQPS_TEST_MARIADB", "/nowhere") {
        check_life(Dbms::Mariadb, &root, &version_of(&root, &["mariadbd", "mysqld"]));
    }
}
