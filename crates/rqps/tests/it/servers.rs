//! Servers never outlive rqps (the warden), and live through their whole life: data folder, start,
//! settle, pause, stop, a second start on a copy.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support::{builds, skipped};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rqps_dbms::{
    ControlPlane, DbmsError, Guest, Interrupt, ListenAddress, SettleLoad, Site, config,
    control_plane, external,
};
use rqps_host::process::{CLEAN_EXIT, ProcessSpec, StopOrder, StopSignal, Warden, parent_of, tree};
use rqps_host::{beneath, disk, user};
use rqps_model::build::{Build, Dbms, Manifest};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Endpoint, Login, Tls};
use rqps_wire::mysql::MysqlClient;
use rqps_wire::postgres::PostgresClient;

use crate::support::server_place::{build, site};

const RQPS: &str = env!("CARGO_BIN_EXE_rqps");

/// Names the folder of [`lab_process`]; only set by the tests that start it.
const LAB_FOLDER: &str = "RQPS_TEST_LAB_FOLDER";

/// Nothing here takes long; this is how long a broken test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Environment variable with roots of builds, and what is fetched without it.
type Builds = (&'static str, &'static [&'static str]);

const POSTGRES: Builds = ("RQPS_TEST_POSTGRES", &["postgres@17.2.0"]);
const MYSQL: Builds = ("RQPS_TEST_MYSQL", &["mysql@5.6.14", "mysql@8.0.33"]);
const MARIADB: Builds = ("RQPS_TEST_MARIADB", &["mariadb@11.4.5"]);
/// Through the loader of another release of Debian.
const MYROCKS: Builds = ("RQPS_TEST_MYROCKS", &["mariadb@11.8+myrocks"]);
const PGVECTOR: Builds = ("RQPS_TEST_PGVECTOR", &["postgres@17+pgvector"]);

/// One build of those, if there is any; else the test says that it is left out.
fn root_of(test: &str, (variable, words): Builds) -> Option<PathBuf> {
    match builds::roots(variable, words) {
        Ok(mut roots) => roots.pop(),
        Err(why) => {
            skipped::note(test, &why);
            None
        }
    }
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

fn shell(script: &str, folder: &Path) -> ProcessSpec {
    ProcessSpec {
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        folder: folder.to_owned(),
        stdin: None,
        log: folder.join("log"),
        run_as: None,
        memory_group: None,
        private_folder: None,
        on_loss: StopOrder::HARD,
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
fn shared_memory_of_what_is_killed_is_removed() {
    // A program that lies there has its own text mapped, as a server has its shared memory.
    let shared = PathBuf::from(format!("/dev/shm/rqps-test-{}", std::process::id()));
    let folder = tempfile::tempdir().unwrap();
    let check = |stop: &dyn Fn(Warden)| {
        fs::copy("/bin/sleep", &shared).unwrap();
        let mut job = shell("", folder.path());
        (job.program, job.args) = (shared.clone(), vec!["1000".to_owned()]);
        let warden = match Warden::spawn(&job, Path::new(RQPS)) {
            Ok(warden) => warden,
            Err(error) => {
                let why = format!("{error}; /dev/shm must be mounted without noexec");
                skipped::note("shared_memory_of_what_is_killed_is_removed", &why);
                return fs::remove_file(&shared).unwrap();
            }
        };
        let name = shared.to_string_lossy().into_owned();
        let maps = format!("/proc/{}/maps", warden.server_pid());
        wait_until("it runs", || fs::read_to_string(&maps).unwrap().contains(&name));
        stop(warden);
        assert!(!shared.exists());
    };
    check(&|mut warden| drop(warden.stop(StopSignal::Kill, Duration::ZERO).unwrap()));
    check(&drop);
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
    let found = states(&warden);
    assert!(found.iter().all(stands), "{found:?}");
    warden.resume().unwrap();
    wait_until("all run again", || states(&warden).iter().all(|letter| *letter != 'T'));
    warden.pause().unwrap();
    let tree = warden.tree();
    warden.stop(StopSignal::Term, Duration::from_millis(100)).unwrap();
    assert_eq!(tree.into_iter().filter_map(state).collect::<Vec<_>>(), []);
}

/// Stopped, or in a wait that only a stopped child could end: shells start programs by vfork.
fn stands(state: &char) -> bool {
    matches!(state, 'T' | 'D')
}

/// A process may be about to have a child when it is stopped.
#[test]
fn a_pause_meets_every_child_that_is_being_made() {
    let folder = tempfile::tempdir().unwrap();
    let script = shell("echo up; while :; do /bin/true; done", folder.path());
    let mut warden = Warden::spawn(&script, Path::new(RQPS)).unwrap();
    wait_until("it is up", || log_of(folder.path()).contains("up"));
    for _ in 0..50 {
        warden.pause().unwrap();
        let found: Vec<char> = warden.tree().into_iter().filter_map(state).collect();
        assert!(found.iter().all(stands), "{found:?}");
        warden.resume().unwrap();
    }
    warden.stop(StopSignal::Kill, PATIENCE).unwrap();
}

#[test]
fn a_good_end_is_told_and_its_folder_removed() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = folder.path().join("sockets");
    let check = |script: &str, signal, wanted: &str| {
        let mut job = shell(script, folder.path());
        job.private_folder = Some(sockets.clone());
        let mut warden = Warden::spawn(&job, Path::new(RQPS)).unwrap();
        wait_until("it is up", || log_of(folder.path()).contains("up"));
        assert_eq!(fs::metadata(&sockets).unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(sockets.join("socket"), "").unwrap();
        assert_eq!(warden.has_exited(), None);
        assert_eq!(warden.stop(signal, PATIENCE).unwrap(), wanted);
        assert_eq!(warden.has_exited().as_deref(), Some(wanted));
        assert!(!sockets.exists());
        fs::remove_file(folder.path().join("log")).unwrap();
    };
    let wait = "while :; do sleep 1000 & wait $!; done";
    check(&format!("trap 'exit 0' TERM; echo up; {wait}"), StopSignal::Term, CLEAN_EXIT);
    check(&format!("trap 'exit 7' INT; echo up; {wait}"), StopSignal::Int, "exit status 7");
    check("echo up; exec sleep 1000", StopSignal::Kill, "killed by signal 9");
}

/// A Postgres that starts anew after a crash may miss the order to stop.
#[test]
fn what_misses_an_order_gets_a_harder_one() {
    let folder = tempfile::tempdir().unwrap();
    let harder = StopOrder { signal: StopSignal::Quit, timeout_ms: 60_000 };
    let wait = "echo up; while :; do sleep 1000 & wait $!; done";
    let deaf = format!("trap '' INT; trap 'exit 3' QUIT; {wait}");
    let heeding = format!("trap 'exit 0' INT; {wait}");
    for (script, patience, wanted) in [
        (deaf, Duration::from_millis(200), ("exit status 3", true)),
        (heeding, PATIENCE, (CLEAN_EXIT, false)),
    ] {
        let job = shell(&script, folder.path());
        let mut warden = Warden::spawn(&job, Path::new(RQPS)).unwrap();
        wait_until("it is up", || log_of(folder.path()).contains("up"));
        let (status, was_needed) = warden.stop_or(StopSignal::Int, patience, harder).unwrap();
        assert_eq!((status.as_str(), was_needed), wanted, "{script}");
        fs::remove_file(folder.path().join("log")).unwrap();
    }
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
    job.private_folder = Some(folder.path().join("sockets"));
    let error = Warden::spawn(&job, Path::new(RQPS)).unwrap_err();
    assert!(error.to_string().contains("start /nowhere/mysqld: No such file"), "{error}");
    assert!(!folder.path().join("sockets").exists());
    let job = shell("sleep 1000", folder.path());
    let error = Warden::spawn(&job, Path::new("/bin/true")).unwrap_err().to_string();
    assert!(error.contains("/bin/true"), "{error}");
}

#[test]
fn a_server_of_a_killed_warden_is_killed_too_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let script = "sleep 1000 & echo up; sleep 1000";
    let mut warden = Warden::spawn(&shell(script, folder.path()), Path::new(RQPS)).unwrap();
    wait_until("all are there", || warden.tree().len() == 3);
    let tree = warden.tree();
    let parent = parent_of(warden.server_pid()).unwrap();
    kill_9(parent);
    wait_until("the server is gone", || state(tree[0]).is_none());
    wait_until("the end is known", || warden.has_exited().is_some());
    warden.stop(StopSignal::Term, PATIENCE).unwrap();
    wait_until("its children are gone", || tree.iter().all(|pid| state(*pid).is_none()));
}

/// As those of Postgres: in a session of their own, and paused, so they do not see that their
/// server is gone.
#[test]
fn paused_children_of_a_killed_warden_are_killed_too() {
    let folder = tempfile::tempdir().unwrap();
    let script = "setsid sleep 1000 & sleep 1000";
    let mut warden = Warden::spawn(&shell(script, folder.path()), Path::new(RQPS)).unwrap();
    wait_until("all are there", || warden.tree().len() == 3);
    let tree = warden.tree();
    warden.pause().unwrap();
    kill_9(parent_of(warden.server_pid()).unwrap());
    warden.stop(StopSignal::Term, PATIENCE).unwrap();
    wait_until("its children are gone", || tree.iter().all(|pid| state(*pid).is_none()));
}

#[test]
fn shared_memory_of_a_killed_warden_is_removed_once_its_children_end() {
    let name = "shared_memory_of_a_killed_warden_is_removed_once_its_children_end";
    if !Path::new("/usr/bin/python3").exists() {
        return skipped::note(name, "needs python3, which maps the memory");
    }
    let folder = tempfile::tempdir().unwrap();
    // A list of Postgres, by its first bytes; the child sees late that its parent is gone.
    let list = format!("/dev/shm/PostgreSQL.9{}", std::process::id());
    let map = "import mmap, os, struct, sys, time\nfile = open(sys.argv[1], 'w+b')\n\
               file.write(struct.pack('=I', 0x9a503d32).ljust(4096, b'\\0'))\nfile.flush()\n\
               memory = mmap.mmap(file.fileno(), 0)\nparent = os.getppid()\n\
               while os.getppid() == parent: time.sleep(0.01)\ntime.sleep(0.3)\n";
    fs::write(folder.path().join("map.py"), map).unwrap();
    let script = format!("setsid python3 map.py {list} >/dev/null 2>&1 & sleep 1000");
    let mut warden = Warden::spawn(&shell(&script, folder.path()), Path::new(RQPS)).unwrap();
    let maps = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    wait_until("it is mapped", || warden.tree().iter().any(|pid| maps(pid).contains(&list)));
    kill_9(parent_of(warden.server_pid()).unwrap());
    warden.stop(StopSignal::Term, PATIENCE).unwrap();
    assert!(!Path::new(&list).exists());
}

#[test]
fn root_gives_up_its_user_and_all_its_groups() {
    let Some(user) = user::choose(None).unwrap() else {
        return skipped::note("root_gives_up_its_user_and_all_its_groups", "not root");
    };
    let folder = tempfile::tempdir().unwrap();
    beneath::chown_tree(folder.path(), &user).unwrap();
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

/// Not a test: what tests below start and kill in place of rqps.
#[test]
#[ignore = "started by other tests"]
fn lab_process() {
    let Ok(folder) = std::env::var(LAB_FOLDER) else {
        return skipped::note("lab_process", "it is started by other tests");
    };
    let folder = PathBuf::from(folder);
    let warden = start_stubborn(&folder);
    if folder.join("pause").exists() {
        warden.pause().unwrap();
    }
    report_and_wait(&folder, warden.server_pid());
}

/// Not a test: the same with a real server, one session at work, all of it stopped.
#[test]
#[ignore = "started by other tests"]
fn lab_with_server() {
    let Ok(folder) = std::env::var(LAB_FOLDER) else {
        return skipped::note("lab_with_server", "it is started by other tests");
    };
    let folder = PathBuf::from(folder);
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    let dbms = Dbms::from_name(&read("dbms")).unwrap();
    let build = build(dbms, Some(Path::new(&read("root"))), &read("version"));
    let mut plane = control_plane(site(&folder, &build)).unwrap();
    plane.init().unwrap();
    plane.start().unwrap();
    let (Endpoint::Server(address), login) = plane.endpoint() else { panic!("no server") };
    thread::spawn(move || match dbms {
        Dbms::Postgres => {
            let mut client = PostgresClient::connect(&address, &login, PATIENCE).unwrap();
            client.simple("SELECT pg_sleep(1000)")
        }
        _ => {
            let mut client = MysqlClient::connect(&address, &login, PATIENCE).unwrap();
            client.simple("SELECT sleep(1000)")
        }
    });
    let sessions = match dbms {
        Dbms::Postgres => "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%_sleep%'",
        _ => "SELECT count(*) FROM information_schema.processlist WHERE info LIKE '%sleep%'",
    };
    // The asking session finds itself, too.
    wait_until("the session is at work", || rows(&*plane, sessions) == ["2"]);
    plane.pause().unwrap();
    report_and_wait(&folder, plane.server_pid().unwrap());
}

/// Writes the ids of the server's processes and of its warden, and waits to be killed.
fn report_and_wait(folder: &Path, server: u32) {
    let mut pids = tree(parent_of(server).unwrap());
    // A session that has just ended is a zombie until its stopped parent runs again.
    pids.retain(|pid| state(*pid).is_some());
    let text: Vec<String> = pids.iter().map(u32::to_string).collect();
    fs::write(folder.join("pids.new"), text.join(" ")).unwrap();
    fs::rename(folder.join("pids.new"), folder.join("pids")).unwrap();
    thread::sleep(Duration::from_secs(1000));
}

/// A process that does not outlive its test, whatever becomes of that.
struct Mortal(Child);

impl Drop for Mortal {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Kills a lab with `kill -9`; nothing that it started may be left.
fn check_kill_9(folder: &Path, lab: &str, at_least: usize) {
    let lab = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", lab, "--ignored"])
        .env(LAB_FOLDER, folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let lab = Mortal(lab);
    wait_until("the lab is up", || folder.join("pids").exists());
    let text = fs::read_to_string(folder.join("pids")).unwrap();
    let pids: Vec<u32> = text.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.len() >= at_least, "{pids:?}");
    assert!(pids.iter().all(|pid| state(*pid).is_some()), "{pids:?}");
    drop(lab);
    wait_until("nothing is left", || pids.iter().all(|pid| state(*pid).is_none()));
}

#[test]
fn nothing_outlives_a_lab_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    check_kill_9(folder.path(), "servers::lab_process", 7);
}

#[test]
fn nothing_outlives_a_killed_lab_even_when_stopped() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("pause"), "").unwrap();
    check_kill_9(folder.path(), "servers::lab_process", 7);
}

/// Kills a lab whose server is stopped.
fn check_server_dies(build: &Build, processes: usize) {
    let folder = open_folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("dbms", build.manifest.dbms.name());
    write("version", build.manifest.version.as_str());
    write("root", build.root.as_ref().unwrap().to_str().unwrap());
    check_kill_9(folder.path(), "servers::lab_with_server", processes);
    assert!(!folder.path().join("s").exists());
}

#[test]
fn a_stopped_postgres_does_not_outlive_a_killed_lab() {
    let test = "a_stopped_postgres_does_not_outlive_a_killed_lab";
    let Some(root) = root_of(test, POSTGRES) else { return };
    // Warden, postmaster, five or more helpers, one session.
    check_server_dies(&postgres_build(&root), 8);
}

/// A Postgres that is ordered to stop while it recovers from a crash waits for ever.
#[test]
fn a_postgres_that_recovers_from_a_crash_stops() {
    let test = "a_postgres_that_recovers_from_a_crash_stops";
    let Some(root) = root_of(test, POSTGRES) else { return };
    let folder = open_folder();
    let build = postgres_build(&root);
    let mut plane = control_plane(site(folder.path(), &build)).unwrap();
    plane.init().unwrap();
    plane.start().unwrap();
    // Something to recover.
    rows(&*plane, "CREATE TABLE t AS SELECT g, repeat('x', 200) FROM generate_series(1, 500000) g");
    let (server, log) = (plane.server_pid().unwrap(), folder.path().join("logs/server.log"));
    let is_writer = |pid: &u32| {
        let words = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        words.contains("walwriter")
    };
    kill_9(tree(server).into_iter().find(is_writer).unwrap());
    wait_until("it recovers", || fs::read_to_string(&log).unwrap().contains("redo starts at"));
    let stopped = plane.stop().map_err(|error| error.to_string());
    let words = "after a crash of one of its processes";
    assert!(stopped.as_ref().err().is_none_or(|why| why.contains(words)), "{stopped:?}");
    assert_eq!(state(server), None);
}

#[test]
fn a_stopped_mysql_does_not_outlive_a_killed_lab() {
    let test = "a_stopped_mysql_does_not_outlive_a_killed_lab";
    let Some(root) = root_of(test, MYSQL) else { return };
    let version = version_of(&root, &["mysqld"]);
    check_server_dies(&build(Dbms::Mysql, Some(&root), &version), 2);
}

/// A temporary folder that the user of servers can enter.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::Builder::new().prefix("rqps-servers-").tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn postgres_build(root: &Path) -> Build {
    build(Dbms::Postgres, Some(root), &version_of(root, &["postgres"]))
}

/// The version of a server program: the first word of its output that begins with a digit.
fn version_of(root: &Path, names: &[&str]) -> String {
    let folders = ["bin", "sbin"].map(|folder| root.join(folder));
    let places = folders.iter().flat_map(|f| names.iter().map(move |name| f.join(name)));
    let program = places.into_iter().find(|path| path.exists());
    let output = Command::new(program.unwrap()).arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let starts_with_digit = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    text.split_whitespace().find(starts_with_digit).unwrap().to_owned()
}

/// Runs a statement as a client would; rows as text, columns joined by a bar.
fn rows(plane: &dyn ControlPlane, sql: &str) -> Vec<String> {
    let (Endpoint::Server(address), login) = plane.endpoint() else { panic!("no server") };
    let rows = if login.user == "rqps" {
        PostgresClient::connect(&address, &login, PATIENCE).unwrap().rows(sql)
    } else {
        MysqlClient::connect(&address, &login, PATIENCE).unwrap().rows(sql)
    };
    let text = |row: Vec<Option<String>>| row.into_iter().flatten().collect::<Vec<_>>().join("|");
    rows.unwrap_or_else(|error| panic!("{sql}: {error}")).into_iter().map(text).collect()
}

/// All settings, some of which loading and settling change for a while.
fn settings(plane: &dyn ControlPlane, dbms: Dbms) -> Vec<String> {
    if dbms == Dbms::Postgres {
        return Vec::new();
    }
    let mut settings = rows(plane, "SHOW GLOBAL VARIABLES");
    assert!(settings.iter().any(|line| line.starts_with("innodb_max_dirty_pages_pct|90")));
    settings.extend(redo_log(plane));
    settings
}

/// The state of the redo log, for versions that can switch it off.
fn redo_log(plane: &dyn ControlPlane) -> Vec<String> {
    rows(plane, "SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'")
}

/// Data folder, start, tables, settle.
fn check_first_life(plane: &mut dyn ControlPlane, build: &Build, load: &SettleLoad) {
    let Manifest { dbms, version, .. } = &build.manifest;
    plane.init().unwrap_or_else(|error| panic!("{error}"));
    plane.start().unwrap_or_else(|error| panic!("{error}"));
    let reported = plane.reported_version().unwrap();
    assert!(reported.starts_with(version.as_str()), "{dbms} {version} says {reported}");
    let server = fs::metadata(format!("/proc/{}", plane.server_pid().unwrap())).unwrap();
    if let Some(user) = user::choose(None).unwrap() {
        assert_eq!(server.uid(), user.uid);
    }
    for setup in plane.session_setup(false) {
        rows(plane, &setup);
    }
    let before = settings(plane, *dbms);
    plane.before_load().unwrap_or_else(|error| panic!("{error}"));
    if *dbms != Dbms::Postgres {
        assert!(before.contains(&"innodb_adaptive_hash_index|OFF".to_owned()));
        assert_eq!(rows(plane, "SELECT @@innodb_adaptive_hash_index"), ["1"]);
    }
    if *dbms == Dbms::Mysql && version.at_least(&[8, 0, 22]) {
        assert_eq!(redo_log(plane), ["Innodb_redo_log_enabled|OFF"]);
        assert_eq!(rows(plane, "SELECT @@innodb_extend_and_initialize"), ["0"]);
    }
    for table in ["sbtest1", "sbtest2"] {
        rows(plane, &format!("CREATE TABLE {table} (id INT PRIMARY KEY, c CHAR(120))"));
        rows(plane, &format!("INSERT INTO {table} VALUES (1, 'one'), (2, 'two')"));
    }
    plane.after_load().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(settings(plane, *dbms), before);
    let mut told = 0;
    plane.settle(load, &mut |_| told += 1).unwrap_or_else(|error| panic!("{error}"));
    assert!(told > 0);
    assert_eq!(settings(plane, *dbms), before);
}

/// The whole life of a server, and a second one on a copy of its data folder.
fn check_life(dbms: Dbms, root: &Path, version: &str) {
    eprintln!("life of {dbms} {version}");
    let folder = open_folder();
    let build = build(dbms, Some(root), version);
    check_life_of(folder.path(), &build, site(folder.path(), &build));
}

fn check_life_of(folder: &Path, build: &Build, site: Site) {
    let dbms = build.manifest.dbms;
    let mut plane = control_plane(site.clone()).unwrap();
    let mut load =
        SettleLoad { tables: 2, rows_total: 4, table: "sbtest{table}".to_owned(), scale: 0.02 };
    check_first_life(&mut *plane, build, &load);
    let before = plane.counters(false).unwrap();
    rows(&*plane, "SELECT 1");
    let after = plane.counters(true).unwrap();
    assert!(before.len() > 30, "{before:?}");
    assert!(after.iter().any(|(name, value)| before.get(name).is_some_and(|it| it < value)));
    let status = plane.status().unwrap();
    assert!(status.len() >= 4 && status.iter().all(|(_, text)| text.len() > 50), "{status:?}");
    if dbms != Dbms::Postgres {
        let query = "SELECT default_character_set_name FROM information_schema.schemata \
                     WHERE schema_name = 'test'";
        assert_eq!(rows(&*plane, query), ["latin1"], "alike in all versions");
    }
    plane.pause().unwrap();
    plane.resume().unwrap();
    plane.check().unwrap();
    assert_eq!(rows(&*plane, "SELECT COUNT(*) FROM sbtest2"), ["2"]);
    // A paused server stops in good order, too.
    plane.pause().unwrap();
    plane.stop().unwrap_or_else(|error| panic!("{error}"));
    assert!(!site.sockets.exists());
    assert!(plane.check().unwrap_err().to_string().contains("it is not running"));
    let copy = folder.join("copy");
    disk::copy_tree(&site.data, &copy, &mut |_, _| {}).unwrap();
    assert!(plane.far_endpoint().is_none(), "a private socket is no address");
    let listen = Some(listen_at(free_port()));
    let mut plane = control_plane(Site { data: copy.clone(), listen, ..site }).unwrap();
    assert!(matches!(plane.init(), Err(DbmsError::DataNotEmpty(path)) if path == copy));
    plane.start().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(rows(&*plane, "SELECT COUNT(*) FROM sbtest1"), ["2"]);
    only_the_password_opens_tcp(&*plane);
    load.scale = 0.0;
    plane.settle(&load, &mut |_| {}).unwrap();
    plane.stop().unwrap();
}

fn check_lives(test: &str, dbms: Dbms, (variable, words): Builds, programs: &[&str]) {
    let roots = match builds::roots(variable, words) {
        Ok(roots) => roots,
        Err(why) => return skipped::note(test, &why),
    };
    for root in roots {
        check_life(dbms, &root, &version_of(&root, programs));
    }
}

#[test]
fn postgres_lives() {
    check_lives("postgres_lives", Dbms::Postgres, POSTGRES, &["postgres"]);
}

#[test]
fn mysql_lives() {
    check_lives("mysql_lives", Dbms::Mysql, MYSQL, &["mysqld"]);
}

#[test]
fn mariadb_lives() {
    let programs = ["mariadbd", "mysqld"];
    check_lives("mariadb_lives", Dbms::Mariadb, MARIADB, &programs);
}

#[test]
fn a_second_data_folder_of_a_build_is_a_copy_of_the_first() {
    let test = "a_second_data_folder_of_a_build_is_a_copy_of_the_first";
    for (dbms, of, program) in
        [(Dbms::Postgres, POSTGRES, "postgres"), (Dbms::Mysql, MYSQL, "mysqld")]
    {
        let Some(root) = root_of(test, of) else { continue };
        let mut build = build(dbms, Some(&root), &version_of(&root, &[program]));
        build.cache = root.ancestors().nth(3).map(Path::to_owned);
        for number in 0..2 {
            let folder = open_folder();
            let site = site(folder.path(), &build);
            let mut plane = control_plane(site.clone()).unwrap();
            plane.init().unwrap_or_else(|error| panic!("{error}"));
            let log = fs::read_to_string(site.logs.join("init.log")).unwrap_or_default();
            assert!(number == 0 || log.contains("rqps: a copy of "), "{dbms}: {log}");
            plane.start().unwrap_or_else(|error| panic!("{error}"));
            rows(&*plane, "CREATE TABLE t (id INT PRIMARY KEY)");
            plane.stop().unwrap_or_else(|error| panic!("{error}"));
        }
    }
}

/// True if the server has opened the file with this end of its path without the page cache
/// (O_DIRECT), as the kernel reports.
fn is_direct(pid: u32, ending: &str) -> bool {
    let mut flags = Vec::new();
    for pid in tree(pid) {
        let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        for file in files {
            let named = fs::read_link(file.path()).unwrap_or_default();
            let info = file.path().to_string_lossy().replace("/fd/", "/fdinfo/");
            let info = fs::read_to_string(info).unwrap_or_default();
            if let Some(line) = info.lines().find_map(|line| line.strip_prefix("flags:"))
                && named.to_string_lossy().ends_with(ending)
            {
                flags.push(i32::from_str_radix(line.trim(), 8).unwrap() & libc::O_DIRECT != 0);
            }
        }
    }
    assert!(!flags.is_empty(), "nobody has opened {ending}");
    flags.contains(&true)
}

/// A server with the config `name`: what it says of itself, and what the kernel says.
fn check_io(dbms: Dbms, root: &Path, version: &str, (name, said, direct): (&str, &str, bool)) {
    let folder = open_folder();
    let build = build(dbms, Some(root), version);
    let config =
        config::load(dbms, name, &Default::default(), &build.manifest.version, 128 << 20).unwrap();
    let site = Site { config, ..site(folder.path(), &build) };
    let mut plane = control_plane(site).unwrap();
    plane.init().unwrap_or_else(|error| panic!("{error}"));
    plane.start().unwrap_or_else(|error| panic!("{error}"));
    let (ask, file) = match dbms {
        Dbms::Postgres => ("SHOW debug_io_direct", ""),
        _ => ("SELECT @@innodb_flush_method", "/ibdata1"),
    };
    assert_eq!(rows(&*plane, ask), [said], "{dbms} {version}:{name}");
    if dbms != Dbms::Postgres {
        let log = if name == "binlog" { "1" } else { "0" };
        assert_eq!(rows(&*plane, "SELECT @@log_bin"), [log], "{dbms} {version}:{name}");
    }
    let pid = plane.server_pid().unwrap();
    let (Endpoint::Server(address), login) = plane.endpoint() else { panic!("no server") };
    let mut session = None;
    let mut file = file.to_owned();
    if dbms == Dbms::Postgres {
        // A transaction keeps open what it reads.
        let mut client = PostgresClient::connect(&address, &login, PATIENCE).unwrap();
        client.simple("CREATE TABLE t AS SELECT generate_series(1, 10000) AS id").unwrap();
        client.simple("BEGIN").unwrap();
        client.rows("SELECT count(*) FROM t").unwrap();
        file = client.rows("SELECT pg_relation_filepath('t')").unwrap()[0][0].clone().unwrap();
        session = Some(client);
    }
    assert_eq!(is_direct(pid, &file), direct, "{dbms} {version}:{name} {file}");
    drop(session);
    plane.stop().unwrap();
}

#[test]
fn direct_and_buffered_io_take_effect() {
    let test = "direct_and_buffered_io_take_effect";
    let inno = [("direct-io", "O_DIRECT", true), ("binlog", "O_DIRECT", true)];
    let fsync = [("buffered", "fsync", false)];
    let postgres = [("direct-io", "data,wal", true), ("buffered", "", false)];
    let of = |dbms, words: Builds, programs: &[&str], cases: &[(&str, &str, bool)]| {
        let roots = match builds::roots(words.0, words.1) {
            Ok(roots) => roots,
            Err(why) => return skipped::note(test, &why),
        };
        for root in roots {
            let version = version_of(&root, programs);
            for case in cases {
                check_io(dbms, &root, &version, *case);
            }
        }
    };
    of(Dbms::Mysql, MYSQL, &["mysqld"], &[&inno[..], &fsync].concat());
    of(Dbms::Mariadb, MARIADB, &["mariadbd", "mysqld"], &[&inno[..], &fsync].concat());
    of(Dbms::Postgres, POSTGRES, &["postgres"], &postgres);
}

#[test]
fn an_installed_server_has_the_defaults_of_its_build() {
    let test = "an_installed_server_has_the_defaults_of_its_build";
    let check = |dbms, words: Builds, programs: &[&str], query: &str, expected: &str| {
        let roots = match builds::roots(words.0, words.1) {
            Ok(roots) => roots,
            Err(why) => return skipped::note(test, &why),
        };
        for root in roots {
            let folder = open_folder();
            let build = build(dbms, Some(&root), &version_of(&root, programs));
            let version = &build.manifest.version;
            let own = Default::default();
            let config = config::load(dbms, "installed", &own, version, 128 << 20).unwrap();
            let mut plane = control_plane(Site { config, ..site(folder.path(), &build) }).unwrap();
            plane.init().unwrap_or_else(|error| panic!("{error}"));
            plane.start().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(rows(&*plane, query), [expected], "{dbms} {version}");
            let setup = plane.session_setup(false);
            assert!(setup.iter().all(|sql| sql == "SET NAMES DEFAULT"), "{setup:?}");
            plane.stop().unwrap();
        }
    };
    let from_file = "SELECT count(*) FROM pg_settings WHERE source = 'configuration file'";
    check(Dbms::Postgres, POSTGRES, &["postgres"], from_file, "0");
    // What SET NAMES DEFAULT gives to a session.
    let sessions = "SELECT @@GLOBAL.character_set_client = @@character_set_server";
    check(Dbms::Mysql, MYSQL, &["mysqld"], sessions, "1");
    check(Dbms::Mariadb, MARIADB, &["mariadbd", "mysqld"], sessions, "1");
}

#[test]
fn myrocks_lives_in_a_build_of_another_release() {
    let test = "myrocks_lives_in_a_build_of_another_release";
    let Some(root) = root_of(test, MYROCKS) else { return };
    let version = version_of(&root, &["mariadbd"]);
    check_life(Dbms::Mariadb, &root, &version);

    let folder = open_folder();
    let build = build(Dbms::Mariadb, Some(&root), &version);
    let site = site(folder.path(), &build);
    let numbers = &build.manifest.version;
    let config =
        config::load(Dbms::Mariadb, "myrocks", &Default::default(), numbers, 128 << 20).unwrap();
    let site = Site { config, storage_engine: Some("rocksdb".to_owned()), ..site };
    check_life_of(folder.path(), &build, site.clone());
    let mut plane = control_plane(site).unwrap();
    plane.start().unwrap_or_else(|error| panic!("{error}"));
    let storage = "SELECT DISTINCT ENGINE FROM information_schema.TABLES \
                   WHERE TABLE_SCHEMA = 'test'";
    assert_eq!(rows(&*plane, storage), ["ROCKSDB"]);
    let settings = "SELECT @@rocksdb_flush_log_at_trx_commit, @@rocksdb_block_cache_size >> 20";
    assert_eq!(rows(&*plane, settings), ["2|128"]);
    // The process is known by the name of the server, whoever started it.
    let name = fs::read_to_string(format!("/proc/{}/comm", plane.server_pid().unwrap())).unwrap();
    assert_eq!(name.trim(), "mariadbd");
    plane.stop().unwrap();
}

#[test]
fn postgres_of_another_release_has_pgvector() {
    let test = "postgres_of_another_release_has_pgvector";
    let Some(root) = root_of(test, PGVECTOR) else { return };
    let build = postgres_build(&root);
    check_life(Dbms::Postgres, &root, build.manifest.version.as_str());
    let folder = open_folder();
    let mut plane = control_plane(site(folder.path(), &build)).unwrap();
    plane.init().unwrap_or_else(|error| panic!("{error}"));
    plane.start().unwrap_or_else(|error| panic!("{error}"));
    rows(&*plane, "CREATE EXTENSION vector");
    rows(&*plane, "CREATE TABLE v (id INT, v vector(2))");
    rows(&*plane, "INSERT INTO v VALUES (1, '[0,0]'), (2, '[3,4]'), (3, '[1,1]')");
    rows(&*plane, "CREATE INDEX ON v USING hnsw (v vector_l2_ops)");
    let nearest = rows(&*plane, "SELECT id FROM v ORDER BY v <-> '[3,3]' LIMIT 2");
    assert_eq!(nearest, ["2", "3"]);
    plane.stop().unwrap();
}

#[test]
fn sqlite_lives() {
    let folder = open_folder();
    let mut site = site(folder.path(), &build(Dbms::Sqlite, None, "compiled in"));
    let mut plane = control_plane(site.clone()).unwrap();
    plane.init().unwrap();
    plane.start().unwrap();
    assert!(plane.reported_version().unwrap().starts_with("3."));
    let load = SettleLoad { tables: 1, rows_total: 0, table: "t{table}".to_owned(), scale: 1.0 };
    plane.settle(&load, &mut |_| {}).unwrap();
    let status = plane.status().unwrap();
    assert!(status[0].1.contains("cache_size\t-131072\n"), "{status:?}");
    assert!(status[0].1.contains("journal_mode\twal\n"), "{status:?}");
    assert!(status[1].1.contains("THREADSAFE"), "{status:?}");
    plane.stop().unwrap();
    assert!(matches!(plane.init(), Err(DbmsError::DataNotEmpty(_))));
    site.config.text = "no_such_function(\n".to_owned();
    let error = control_plane(site.clone()).unwrap().start().unwrap_err().to_string();
    assert!(error.contains("PRAGMA no_such_function("), "{error}");
    site.build.root = Some(PathBuf::from("/nowhere/libsqlite3.so"));
    let error = control_plane(site).unwrap().start().unwrap_err().to_string();
    assert!(error.contains("/nowhere/libsqlite3.so"), "{error}");
}

#[test]
fn the_fake_one_lives_and_fails_as_told() {
    let folder = open_folder();
    let site = site(folder.path(), &build(Dbms::Fake, None, "1"));
    let with = |text: &str| {
        let mut site = site.clone();
        site.config.text = text.to_owned();
        control_plane(site).unwrap()
    };
    let mut plane = with("mean_us = 7\nreal_time = true\nprocess = true\n");
    plane.init().unwrap();
    plane.start().unwrap();
    plane.check().unwrap();
    let endpoint = Endpoint::Fake { mean_us: 7, real_time: true };
    assert_eq!(plane.endpoint().0, endpoint);
    let pid = plane.server_pid().unwrap();
    assert!(state(pid).is_some());
    plane.stop().unwrap();
    assert_eq!(state(pid), None);
    let mut failing = with("fail = start\n");
    assert!(failing.start().unwrap_err().to_string().contains("start fake 1"));
    failing.stop().unwrap();
    assert!(with("fail = check\n").check().is_err());
}

/// A folder of programs that are shell scripts.
fn scripted_root(folder: &Path, programs: &[(&str, &str)]) -> PathBuf {
    let bin = folder.join("root/bin");
    fs::create_dir_all(&bin).unwrap();
    for (name, script) in programs {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    folder.join("root")
}

/// The error of a start with `server` in place of Postgres.
fn failed_start(server: &str, change: impl Fn(&mut Site)) -> String {
    let folder = open_folder();
    let root = scripted_root(folder.path(), &[("initdb", "exit 0"), ("postgres", server)]);
    let mut site = site(folder.path(), &build(Dbms::Postgres, Some(&root), "17.2"));
    change(&mut site);
    fs::create_dir_all(site.data.join("db")).unwrap();
    control_plane(site).unwrap().start().unwrap_err().to_string()
}

#[test]
fn a_failed_start_ends_in_the_last_words_of_the_server() {
    let check = |server: &str, wanted: &[&str]| {
        let hasty = |site: &mut Site| site.start_timeout = Duration::from_millis(1500);
        let error = failed_start(server, hasty);
        for words in wanted {
            assert!(error.contains(words), "{words} is not in: {error}");
        }
    };
    check("echo oh dear; exit 3", &["start postgres 17.2", "exit status 3", "\n  | oh dear"]);
    check("kill -11 $$", &["killed by signal 11", "server.log is empty"]);
    check("echo one moment; sleep 1000", &["does not answer after 1 s", "\n  | one moment"]);
    check(
        "echo 'FATAL:  could not write to file: No space left on device'; exit 1",
        &["The disk is full"],
    );
}

#[test]
fn what_cannot_be_started_is_refused_with_the_reason() {
    let error = failed_start("exit 0", |site| site.sockets = site.sockets.join("x".repeat(100)));
    assert!(
        error.contains("a socket path can have at most 107") && error.contains("shorter"),
        "{error}"
    );
    let error = failed_start("exit 0", |site| site.build.root = Some(PathBuf::from("/nowhere")));
    assert!(error.contains("find postgres") && error.contains("/nowhere/bin"), "{error}");
    let flag = Interrupt::default();
    flag.0.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = failed_start("sleep 1000", |site| site.interrupt = flag.clone());
    assert!(error.contains("interrupted"), "{error}");
    if user::is_root() {
        let error = failed_start("exit 0", |site| {
            let folder = site.logs.parent().unwrap();
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
        });
        assert!(error.contains("may not enter") && error.contains("chmod o+x"), "{error}");
    }
}

#[test]
fn a_failed_initdb_ends_in_its_last_words() {
    let folder = open_folder();
    let root = scripted_root(
        folder.path(),
        &[("initdb", "echo initdb: error: invalid locale name; exit 1"), ("postgres", "exit 0")],
    );
    let site = site(folder.path(), &build(Dbms::Postgres, Some(&root), "17.2"));
    let mut plane = control_plane(site).unwrap();
    plane.init().unwrap_err();
    // Not "the folder is not empty": what was begun is gone.
    let error = plane.init().unwrap_err().to_string();
    let wanted = "make a data folder for postgres 17.2 with initdb: it ended with exit status 1";
    assert!(error.contains(wanted), "{error}");
    assert!(error.ends_with("\n  | initdb: error: invalid locale name"), "{error}");
}

#[test]
fn failures_of_a_real_postgres_are_told() {
    let Some(root) = root_of("failures_of_a_real_postgres_are_told", POSTGRES) else { return };
    let folder = open_folder();
    let site = site(folder.path(), &postgres_build(&root));
    let mut plane = control_plane(site.clone()).unwrap();
    plane.init().unwrap();
    let failed = |change: &dyn Fn(&mut Site)| {
        let mut site = site.clone();
        change(&mut site);
        control_plane(site).unwrap().start().unwrap_err().to_string()
    };
    let error = failed(&|site| site.config.text.push_str("no_such_setting = 1\n"));
    assert!(
        error.contains("no_such_setting") && error.contains("does not know a setting"),
        "{error}"
    );
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let error = failed(&|site| site.listen = Some(listen_at(port)));
    assert!(error.contains("Another server uses the port or socket"), "{error}");
    drop(listener);
    plane.start().unwrap();
    let error = failed(&|site| site.logs = folder.path().join("logs2"));
    assert!(error.contains("another server uses this socket"), "{error}");
    let error = failed(&|site| {
        site.logs = folder.path().join("logs2");
        site.sockets = folder.path().join("s2");
    });
    assert!(error.contains("Another server uses this data folder"), "{error}");
    kill_9(plane.server_pid().unwrap());
    wait_until("the end is noticed", || plane.check().is_err());
    let error = plane.check().unwrap_err().to_string();
    assert!(error.contains("keep postgres"), "{error}");
    // Comes up again after the crash, and takes back what the kernel kept of the first life.
    plane.start().unwrap();
    plane.stop().unwrap();
}

const PASSWORD: &str = "secret";

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn listen_at(port: u16) -> ListenAddress {
    ListenAddress { ip: [127, 0, 0, 1].into(), port, password: PASSWORD.to_owned() }
}

/// Clients on other hosts enter with the password, and nobody without it.
fn only_the_password_opens_tcp(plane: &dyn ControlPlane) {
    let (Endpoint::Server(address), login) = plane.far_endpoint().unwrap() else {
        panic!("no server")
    };
    let is_postgres = plane.endpoint().1.user == "rqps";
    let enter = |login: &Login| {
        if is_postgres {
            PostgresClient::connect(&address, login, PATIENCE).map(drop)
        } else {
            MysqlClient::connect(&address, login, PATIENCE).map(drop)
        }
    };
    enter(&login).unwrap_or_else(|error| panic!("{login:?}: {error}"));
    for password in ["", "guess"] {
        for user in [login.user.as_str(), "root", "postgres", ""] {
            let (user, password) = (user.to_owned(), password.to_owned());
            let stranger = Login { user, password, ..login.clone() };
            assert!(enter(&stranger).is_err(), "{stranger:?} enters");
        }
    }
}

/// The rights and marks of rqps on a server that it does not run.
fn guest(label: &str) -> Guest {
    Guest {
        tag: format!("{label:0>12}"),
        plan: "a plan".to_owned(),
        results: "/results".to_owned(),
        host: "here".to_owned(),
        label: label.to_owned(),
        time: "2026-11-20T12:00:00Z".to_owned(),
        names: vec!["sbtest1".to_owned(), "k_1".to_owned()],
        keep: false,
        replace: Vec::new(),
    }
}

/// Lists the schemas that rqps made.
const SCHEMAS: &str = "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'rqps%' ORDER BY 1";

#[test]
fn a_server_by_its_address_is_measured_and_left_alone() {
    let test = "a_server_by_its_address_is_measured_and_left_alone";
    let Some(root) = root_of(test, POSTGRES) else { return };
    let folder = open_folder();
    let port = free_port();
    let mut site = site(folder.path(), &postgres_build(&root));
    site.listen = Some(listen_at(port));
    let mut plane = control_plane(site).unwrap();
    plane.init().unwrap();
    plane.start().unwrap();
    let (Endpoint::Server(socket), login) = plane.endpoint() else { panic!("no server") };
    only_the_password_opens_tcp(&*plane);
    let login = Login { password: PASSWORD.to_owned(), ..login };
    let users = "CREATE USER dev PASSWORD 'secret'; GRANT CREATE ON DATABASE rqps TO dev; \
                 CREATE TABLE sbtest1 (id INT)";
    rows(&*plane, users);
    let tcp = Address::Tcp { host: "127.0.0.1".to_owned(), port, tls: Tls::OFF };
    let dev = Login { user: "dev".to_owned(), ..login.clone() };
    let load =
        SettleLoad { tables: 1, rows_total: 0, table: "sbtest{table}".to_owned(), scale: 0.0 };
    let checkpoints = "SELECT redo_lsn FROM pg_control_checkpoint()";
    let before = rows(&*plane, checkpoints);
    for (address, login) in [(socket, &login), (tcp.clone(), &login), (tcp.clone(), &dev)] {
        let interrupt = Interrupt::default();
        let (label, dialect) = ("a", Dialect::Postgres);
        let mut other =
            external(dialect, address, login.clone(), guest(label), interrupt.clone()).unwrap();
        other.start().unwrap();
        assert_eq!(other.server_pid(), plane.server_pid());
        assert_eq!(rows(&*plane, SCHEMAS), ["rqps_00000000000a"]);
        let (Endpoint::Server(own), own_login) = other.endpoint() else { panic!("no server") };
        let mut session = PostgresClient::connect(&own, &own_login, PATIENCE).unwrap();
        for setup in other.session_setup(false) {
            session.simple(&setup).unwrap();
        }
        session.simple("CREATE TABLE sbtest1 (id INT)").unwrap();
        other.settle(&load, &mut |_| {}).unwrap();
        assert_eq!(rows(&*plane, checkpoints), before, "a checkpoint is one of all data");
        assert!(other.status().unwrap().iter().all(|(_, text)| !text.contains("public")));
        // The same target of the same plan elsewhere: one of them is at work.
        let mut twin =
            external(dialect, tcp.clone(), login.clone(), guest(label), interrupt).unwrap();
        let error = twin.start().unwrap_err().to_string();
        assert!(error.contains("another rqps"), "{error}");
        // Without its mark a table is not taken for rqps's, wherever it is.
        let error = other.stop().unwrap_err().to_string();
        assert!(error.contains("rqps_00000000000a"), "{error}");
        rows(&*plane, "DROP SCHEMA rqps_00000000000a CASCADE");
        assert!(plane.check().is_ok());
    }
    assert_eq!(rows(&*plane, "SELECT count(*) FROM sbtest1"), ["0"]);
    plane.stop().unwrap();
    let nobody = Address::Unix(folder.path().join("none"));
    let error = external(Dialect::Postgres, nobody, login, guest("a"), Interrupt::default())
        .unwrap()
        .start()
        .unwrap_err()
        .to_string();
    assert!(error.contains("connect to the server at"), "{error}");
}
