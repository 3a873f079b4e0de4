//! A limit on a server's memory, by the kernel's word: it holds from the first instruction on, the
//! page cache counts, and nothing of it is left behind.

// The lints know tests by their attribute; what they share has none.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use crate::support::{builds, skipped};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rqps_host::cgroup::MemoryGroup;
use rqps_host::process::{ProcessSpec, StopOrder, StopSignal, Warden, parent_of};

use crate::support::scene::{Scene, stderr, turn};

const RQPS: &str = env!("CARGO_BIN_EXE_rqps");
const LIMIT: u64 = 64 << 20;
const POSTGRES: &str = "a=postgres@17.2.0";
/// A user who may do nothing.
const NOBODY: u32 = 65_534;

/// A group, or a note that this host has none.
fn group(test: &str, name: &str) -> Option<MemoryGroup> {
    MemoryGroup::create(Path::new("/"), name, LIMIT)
        .inspect_err(|error| skipped::note(test, &error.to_string()))
        .ok()
}

/// Bytes by the kernel's word, in whichever version of its interface the group is.
fn bytes(group: &Path, names: [&str; 2]) -> u64 {
    let text = names.iter().find_map(|name| fs::read_to_string(group.join(name)).ok());
    text.unwrap().trim().parse().unwrap()
}

fn used(group: &Path) -> u64 {
    bytes(group, ["memory.usage_in_bytes", "memory.current"])
}

fn processes(group: &Path) -> Vec<u32> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    text.lines().map(|line| line.parse().unwrap()).collect()
}

fn shell(script: &str, folder: &Path, group: &MemoryGroup) -> ProcessSpec {
    ProcessSpec {
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".to_owned(), script.to_owned()],
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        folder: folder.to_owned(),
        stdin: None,
        log: folder.join("log"),
        run_as: None,
        memory_group: Some(group.path().to_owned()),
        private_folder: None,
        on_loss: StopOrder::HARD,
    }
}

fn until(what: &str, done: impl Fn() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_process_is_limited_from_its_start_page_cache_included() {
    let test = "a_process_is_limited_from_its_start_page_cache_included";
    let Some(group) = group(test, "start") else { return };
    // On a disk: what is in tmpfs cannot be given up.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let script = "cat /proc/self/cgroup; dd if=/dev/zero of=file bs=1M count=192 2>/dev/null; \
                  cat file >/dev/null; echo done; sleep 1000; echo";
    let job = shell(script, folder.path(), &group);
    let mut warden = Warden::spawn(&job, Path::new(RQPS)).unwrap();
    let said = || fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    until("all is written", || said().contains("done"));
    let name = group.path().file_name().unwrap().to_string_lossy().into_owned();
    assert!(said().lines().any(|line| line.ends_with(&name)), "its first words: {}", said());
    // Three times the limit went through the page cache, which has no more than the limit.
    let used = used(group.path());
    assert!(used <= LIMIT, "{used}");
    assert!(used > LIMIT / 2, "{used}: the page cache of the file does not count");
    let watcher = parent_of(warden.server_pid()).unwrap();
    let members = processes(group.path());
    assert!(members.contains(&warden.server_pid()), "{members:?}");
    assert!(!members.contains(&watcher), "the warden is not held back: {members:?}");
    warden.stop(StopSignal::Kill, Duration::ZERO).unwrap();
    let path = group.path().to_owned();
    assert!(path.exists(), "a server may be started again in it");
    drop(group);
    assert!(!path.exists(), "an empty group is removed");
}

#[test]
fn one_who_does_not_fit_is_killed_and_counted() {
    let test = "one_who_does_not_fit_is_killed_and_counted";
    let Some(group) = group(test, "big") else { return };
    let folder = tempfile::tempdir().unwrap();
    // One line of 200 MiB, which tail holds in memory.
    let job = shell("head -c 200M /dev/zero | tail", folder.path(), &group);
    let warden = Warden::spawn(&job, Path::new(RQPS)).unwrap();
    assert!(warden.wait(Duration::from_secs(60)).is_some());
    assert!(group.killed() >= Some(1), "{:?}", group.killed());
}

/// `compare` of this benchmark, long enough to be looked at.
fn compare(scene: &Scene, target: &str, out: &Path, limit: &str) -> std::process::Command {
    let mut command = scene.rqps();
    command.args(["compare", target, "--bench", "insert", "--blocks", "1"]);
    command.args(["--memory-limit", limit, "--steps", "l.*", "--canaries", "off"]);
    for setting in ["rows=300k", "more_rows=20M", "settle_scale=0", "cache=48M"] {
        command.args(["--set", setting]);
    }
    command.arg("--out").arg(out);
    command
}

#[test]
fn a_server_is_held_and_its_group_goes_when_rqps_is_killed() {
    let _turn = turn();
    let test = "a_server_is_held_and_its_group_goes_when_rqps_is_killed";
    if let Err(why) = builds::roots("", &["postgres@17.2.0"]) {
        return skipped::note(test, &why);
    }
    let Some(probe) = group(test, "probe") else { return };
    let scene = Scene::new();
    // Its data are to be on a disk too.
    let work = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o755))
        .tempdir_in("/tmp")
        .unwrap();
    const MOST: u64 = 256 << 20;
    let mut command = compare(&scene, POSTGRES, &scene.path("out"), "256M");
    command.arg("--work").arg(work.path().join("work"));
    let mut running = scene.start(command);
    let in_i1 = |_: &str| scene.steps().len() >= 2;
    assert!(running.until(in_i1).is_none(), "{}", running.said());
    let group = probe.path().with_file_name(format!("rqps-{}-a", running.pid()));
    let mut most = 0;
    for _ in 0..200 {
        let now = used(&group);
        assert!(now <= MOST, "{now}");
        most = most.max(now);
        thread::sleep(Duration::from_millis(10));
    }
    // More than the cache of 48 MiB: files of 300,000 rows with their indexes and log are in it.
    assert!(most > 100 << 20, "{most}");
    let limit = bytes(&group, ["memory.limit_in_bytes", "memory.max"]);
    assert_eq!(limit, MOST);
    let members = processes(&group);
    // All that is in it is the server, whole: the words of the postmaster are there.
    let words = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    assert!(members.iter().any(|pid| words(pid).contains("config_file=")), "{members:?}");
    assert!(members.len() > 4, "its own processes and a backend: {members:?}");
    assert!(!members.contains(&running.pid()), "{members:?}");
    running.kill();
    scene.check_nothing_is_left(running.pid());
    until("the server is gone", || members.iter().all(|pid| words(pid).is_empty()));
    until("the group is gone", || !group.exists());
}

#[test]
fn a_server_that_does_not_fit_is_told_so() {
    let _turn = turn();
    let test = "a_server_that_does_not_fit_is_told_so";
    if let Err(why) = builds::roots("", &["mysql@8.0.33"]) {
        return skipped::note(test, &why);
    }
    let Some(_probe) = group(test, "fit") else { return };
    let scene = Scene::new();
    // Less than this server takes to start.
    let output = compare(&scene, "a=mysql@8.0.33", &scene.path("out"), "64M").output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("memory_limit is too small: the kernel killed 1 of its"), "{said}");
}

#[test]
fn who_may_not_limit_is_told_before_anything_is_measured() {
    let _turn = turn();
    let test = "who_may_not_limit_is_told_before_anything_is_measured";
    if !rustix::process::geteuid().is_root() {
        return skipped::note(test, "only root can be somebody else");
    }
    let Some(_probe) = group(test, "may") else { return };
    let scene = Scene::new();
    let open = scene.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    // The folder of the program may be closed to others.
    let program = open.join("rqps");
    fs::copy(RQPS, &program).unwrap();
    let like = compare(&scene, POSTGRES, &open.join("out"), "256M");
    let mut command = std::process::Command::new(&program);
    command.args(like.get_args()).uid(NOBODY).gid(NOBODY).env("HOME", &open);
    command.env("RQPS_HOST_LOCK", open.join("lock")).env("RQPS_STATE", open.join("state"));
    let output = command.current_dir(&open).output().unwrap();
    let said = stderr(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("limit the memory of a server: make /"), "{said}");
    assert!(said.contains("Permission denied") && said.contains("run as root, or in"), "{said}");
    assert!(!open.join("out").join("b01-1-a").exists(), "nothing was begun");
}
