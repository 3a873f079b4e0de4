//! The operating system as only some hosts show it: giving files away, a real server with backends
//! that come and go.
#![allow(clippy::unwrap_used)] // A test file throughout; clippy only sees the marked functions.

use crate::support::skipped;
use std::fs;
use std::os::unix::fs::{MetadataExt, lchown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rqps_host::sample::CounterSampler;
use rqps_host::{disk, tree};

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn owners_are_kept_by_root() {
    if !is_root() {
        skipped::note("owners_are_kept_by_root", "only root may give files away");
        return;
    }
    let work = tempfile::tempdir().unwrap();
    let (from, to) = (work.path().join("from"), work.path().join("to"));
    fs::create_dir(&from).unwrap();
    fs::write(from.join("file"), "x").unwrap();
    symlink("file", from.join("link")).unwrap();
    for path in [from.clone(), from.join("file"), from.join("link")] {
        lchown(path, Some(12_345), Some(54_321)).unwrap();
    }
    disk::copy_tree(&from, &to, &mut |_, _| {}).unwrap();
    for path in [to.clone(), to.join("file"), to.join("link")] {
        let meta = fs::symlink_metadata(&path).unwrap();
        assert_eq!((meta.uid(), meta.gid()), (12_345, 54_321), "{path:?}");
    }
}

/// An installed Postgres in a folder of its own, stopped when the test ends.
struct Postgres {
    programs: PathBuf,
    folder: tempfile::TempDir,
    server: Child,
}

impl Postgres {
    /// `None` if Debian's packages are not installed.
    fn start() -> Option<Postgres> {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?.filter_map(Result::ok);
        let mut programs = versions.map(|version| version.path().join("bin"));
        let programs =
            programs.find(|bin| bin.join("initdb").exists() && bin.join("psql").exists())?;
        let folder = tempfile::tempdir().unwrap();
        if is_root() {
            lchown(folder.path(), Some(65_534), Some(65_534)).unwrap();
        }
        let data = folder.path().join("data");
        let init = unprivileged(&programs.join("initdb"))
            .args(["--auth=trust", "--username=postgres", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(init.status.success(), "{init:?}");
        let server = unprivileged(&programs.join("postgres"))
            .args(["-c", "listen_addresses=", "-k"])
            .arg(folder.path())
            .arg("-D")
            .arg(&data)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut postgres = Postgres { programs, folder, server };
        while !postgres.ask("select 1") {
            let ended = postgres.server.try_wait().unwrap();
            assert_eq!(ended, None, "the server ended before it answered");
            std::thread::sleep(Duration::from_millis(50));
        }
        Some(postgres)
    }

    /// One session of one statement; true if it went well.
    fn ask(&self, sql: &str) -> bool {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-U", "postgres", "-Atc", sql, "-h"]).arg(self.folder.path()).arg("postgres");
        psql.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Immediate shutdown, which also gives its shared memory back.
        let pid = rustix::process::Pid::from_child(&self.server);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
        let _ = self.server.wait();
    }
}

/// A Postgres does not run as root; 65534 is nobody.
fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new(program);
    if is_root() {
        command.uid(65_534).gid(65_534);
    }
    command.current_dir("/");
    command
}

#[test]
fn ended_backends_of_a_postgres_keep_counting() {
    let Some(postgres) = Postgres::start() else {
        let why = "no Postgres with psql below /usr/lib/postgresql (apt package postgresql)";
        skipped::note("ended_backends_of_a_postgres_keep_counting", why);
        return;
    };
    let pid = postgres.server.id();
    let device = disk::device_under(postgres.folder.path()).unwrap().name;
    let mut sampler = CounterSampler::new(Some(pid), device, None);
    let waited_ms = || {
        let stat = tree::stat_of(pid).unwrap();
        (stat.waited_user + stat.waited_system) as f64 * 10.0
    };
    let (before, waited_before) = (sampler.read(), waited_ms());
    let mut last = 0.0;
    // Until the postmaster has taken over 100 ms of ended backends, however fast they are.
    while waited_ms() - waited_before < 100.0 {
        assert!(postgres.ask("select count(*) from generate_series(1, 300000)"));
        let usage = sampler.read().since(&before);
        let total = usage.server_cpu.unwrap().total_us();
        assert!(total >= last, "{total} after {last}");
        last = total;
    }
    let ended_ms = waited_ms() - waited_before;
    let mut usage = sampler.read().since(&before);
    sampler.read_memory(&mut usage);
    let counted_ms = usage.server_cpu.unwrap().total_us() / 1e3;
    // The postmaster's account is told in ticks, rounded down for user and for system.
    assert!(counted_ms >= ended_ms - 20.0, "{counted_ms} ms counted, {ended_ms} ms in ended ones");
    assert!(usage.server_rss_bytes.unwrap() > 1 << 20, "{usage:?}");
    assert!(tree::processes(pid).unwrap().len() > 3);
}
