//! As root: what code under test, another local user or a stranger's result folder puts in the way
//! of files that rqps writes, reads, gives away or removes.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Output;

use rqps_dbms::control_plane;
use rqps_host::lock::MarkKey;
use rqps_host::user;
use rqps_model::build::{Build, Dbms};

use crate::support::program::{self, rqps_in, said};
use crate::support::{server_place, skipped};

/// The user of servers.
const NOBODY: u32 = 65_534;
/// The secret that no attack may reach, and what it says.
const CANARY: &str = "only root may read this, and nobody may change it";

/// A folder that servers can pass through, and in it a folder of root's with the canary.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let mut builder = tempfile::Builder::new();
        let folder = builder.permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        let scene = Scene { folder };
        fs::create_dir(scene.path("root")).unwrap();
        fs::write(scene.canary(), CANARY).unwrap();
        fs::set_permissions(scene.canary(), Permissions::from_mode(0o600)).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn canary(&self) -> PathBuf {
        self.path("root/canary")
    }

    /// Nothing came to the canary: not its content, its owner, or its place.
    fn check_canary(&self) {
        assert_eq!(fs::read_to_string(self.canary()).unwrap(), CANARY);
        let facts = fs::metadata(self.canary()).unwrap();
        let own = rustix::process::geteuid().as_raw();
        assert_eq!((facts.uid(), facts.mode() & 0o777), (own, 0o600));
        assert_eq!(fs::read_dir(self.path("root")).unwrap().count(), 1, "nothing came beside it");
    }

    /// A short comparison of the fake DBMS into `out`, with these words more.
    fn compare(&self, more: &[&str]) -> Output {
        let words = ["compare", "a=fake@1", "--steps", "point-query", "--set", "settle_scale=0"];
        self.rqps(&[&words[..], &["--blocks", "1", "--canaries", "off"], more].concat())
    }

    fn rqps(&self, words: &[&str]) -> Output {
        let mut command = rqps_in(words, self.folder.path());
        command.env("RQPS_CACHE", self.path("cache")).output().unwrap()
    }
}

fn is_root(test: &str) -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        skipped::note(test, "only root runs servers as another user");
    }
    is
}

/// A build whose programs are this script.
fn hostile_build(scene: &Scene, dbms: Dbms, script: &str) -> Build {
    let root = scene.path("build");
    fs::create_dir_all(root.join("bin")).unwrap();
    for program in ["initdb", "postgres", "mysqld"] {
        let path = root.join("bin").join(program);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    server_place::build(dbms, Some(&root), "17.2")
}

/// Finding 2: what runs as nobody plants links where control files of the next program will be.
#[test]
fn a_server_cannot_lead_root_to_write_elsewhere() {
    if !is_root("a_server_cannot_lead_root_to_write_elsewhere") {
        return;
    }
    for dbms in [Dbms::Postgres, Dbms::Mysql] {
        let scene = Scene::new();
        let (data, canary) = (scene.path("data"), scene.canary());
        let names = "postgresql.conf pg_hba.conf my.cnf init.sql create.sql tmp/init.sql \
                     tmp/create.sql db/mysql db/tmp server.log snapshot.json";
        let plant = format!(
            "for name in {names}; do rm -rf {0}/$name; ln -s {1} {0}/$name; done; \
             mv {0}/db {0}/old; ln -s {2} {0}/db; ln {1} {0}/tmp/hard; exit 0",
            data.display(),
            canary.display(),
            scene.path("root").display()
        );
        let build = hostile_build(&scene, dbms, &plant);
        let mut plane = control_plane(server_place::site(scene.folder.path(), &build)).unwrap();
        // Programs that end at once make no data folder, or no server that answers.
        let _ = plane.init();
        let _ = plane.start();
        drop(plane);
        scene.check_canary();
        assert!(!data.join("db").is_symlink(), "the folder of the data belongs to root");
        for name in ["postgresql.conf", "my.cnf"] {
            assert!(!data.join(name).is_symlink(), "{name}");
        }
    }
}

/// The same through the program: a snapshot of a hostile server is copied, measured and removed.
#[test]
fn a_folder_of_another_user_is_copied_and_removed_without_following_links() {
    let scene = Scene::new();
    let (from, to) = (scene.path("from"), scene.path("to"));
    fs::create_dir_all(from.join("db")).unwrap();
    symlink(scene.path("root"), from.join("db/base")).unwrap();
    symlink(scene.canary(), from.join("db/file")).unwrap();
    rqps_host::disk::copy_tree(&from, &to, &mut |_, _| {}).unwrap();
    assert!(to.join("db/base").is_symlink() && to.join("db/file").is_symlink());
    let key = MarkKey::open(None).unwrap();
    let own = key.claim(&scene.path("work")).unwrap();
    fs::rename(&to, scene.path("work/to")).unwrap();
    symlink(scene.path("root"), scene.path("work/link")).unwrap();
    assert!(own.remove_below(Path::new("link/canary")).is_err(), "a link on the way");
    own.remove().unwrap();
    assert!(!scene.path("work").exists());
    scene.check_canary();
}

/// Finding 3, 21: `.work` is a link, or a folder of the user's.
#[test]
fn a_work_folder_that_rqps_did_not_make_is_neither_used_nor_removed() {
    let scene = Scene::new();
    let check = |name: &str, why: &str| {
        let output = scene.compare(&["--out", name]);
        assert!(!output.status.success());
        assert!(said(&output).contains(why), "{name}: {}", said(&output));
        scene.check_canary();
    };
    fs::create_dir_all(scene.path("linked")).unwrap();
    symlink(scene.path("root"), scene.path("linked/.work")).unwrap();
    fs::create_dir_all(scene.path("used/.work")).unwrap();
    fs::write(scene.path("used/.work/photos"), "dear").unwrap();
    for out in ["linked", "used"] {
        let why = if out == "linked" { "it is a link" } else { "no mark of this user's rqps" };
        check(out, why);
    }
    assert_eq!(fs::read_to_string(scene.path("used/.work/photos")).unwrap(), "dear");
    // A result folder of somebody else, with a plan to resume.
    let output = scene.compare(&["--out", "theirs"]);
    assert!(output.status.success(), "{}", said(&output));
    symlink(scene.path("root"), scene.path("theirs/.work")).unwrap();
    let output = scene.rqps(&["run", "--resume", "theirs"]);
    assert!(said(&output).contains("it is a link"), "{}", said(&output));
    scene.check_canary();
    // One with a mark of theirs.
    fs::remove_file(scene.path("theirs/.work")).unwrap();
    MarkKey::open(None).unwrap().claim(&scene.path("theirs/.work")).unwrap();
    fs::write(scene.path("theirs/.work/photos"), "dear").unwrap();
    let output = scene.rqps(&["run", "--resume", "theirs"]);
    assert!(said(&output).contains("no mark of this user's rqps"), "{}", said(&output));
    assert!(scene.path("theirs/.work/photos").exists());
}

/// A plan that was killed leaves its own work folder, which its resumption knows and removes.
#[test]
fn a_work_folder_of_ones_own_is_taken_up_again() {
    let scene = Scene::new();
    let output = scene.compare(&["--out", "out"]);
    assert!(output.status.success(), "{}", said(&output));
    MarkKey::open(Some(&scene.path("state"))).unwrap().claim(&scene.path("out/.work")).unwrap();
    fs::create_dir(scene.path("out/.work/a")).unwrap();
    let output = scene.rqps(&["run", "--resume", "out"]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(!scene.path("out/.work").exists());
}

/// Finding 9: a script of another user with a link beside it that only root can read.
#[test]
fn a_link_beside_a_script_gives_it_nothing_of_root() {
    let test = "a_link_beside_a_script_gives_it_nothing_of_root";
    if !is_root(test) {
        return;
    }
    let scene = Scene::new();
    let theirs = scene.path("theirs");
    fs::create_dir(&theirs).unwrap();
    let script = theirs.join("bench.lua");
    let text = "local f = io.open('x.lua') or io.open('scripts/x.lua')\n\
                print(f and f:read('a') or 'nothing')\nfunction event() end\n";
    fs::write(&script, text).unwrap();
    symlink(scene.canary(), theirs.join("x.lua")).unwrap();
    fs::hard_link(scene.canary(), theirs.join("y.lua")).unwrap();
    for path in [&theirs, &script] {
        chown(path, Some(1_000_123), Some(1_000_123)).unwrap();
        fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
    let copied = looked_at(&scene, &script);
    assert!(!copied.contains(CANARY), "{copied}");
    // The script itself is such a link.
    let link = theirs.join("link.lua");
    symlink(scene.canary(), &link).unwrap();
    let copied = looked_at(&scene, &link);
    assert!(!copied.contains(CANARY), "{copied}");
    // A script in a closed folder of root's runs, with those beside it.
    let own = scene.path("root/own");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, Permissions::from_mode(0o700)).unwrap();
    fs::write(own.join("bench.lua"), "require('common')\nfunction event() end\n").unwrap();
    fs::write(own.join("common.lua"), "common = true\n").unwrap();
    let said = looked_at(&scene, &own.join("bench.lua"));
    assert!(!said.contains("not found") && !said.contains("denied"), "{said}");
    fs::remove_dir_all(&own).unwrap();
    fs::remove_file(theirs.join("y.lua")).unwrap();
    scene.check_canary();
}

/// All that comes of looking at a script, in the process that runs it as nobody.
fn looked_at(scene: &Scene, script: &Path) -> String {
    let output = scene.rqps(&["look-at-lua", &script.display().to_string()]);
    said(&output) + &program::text(&output.stdout)
}

/// Finding 12: whoever foresees the name of a private folder puts a link in its place.
#[test]
fn a_private_folder_must_be_new() {
    use rqps_host::process::{ProcessSpec, StopOrder, Warden};
    let scene = Scene::new();
    let job = |folder: &str| ProcessSpec {
        program: "/bin/true".into(),
        args: Vec::new(),
        env: std::collections::BTreeMap::new(),
        folder: "/".into(),
        stdin: None,
        log: scene.path("log"),
        run_as: user::choose(None).unwrap().map(|user| user.identity()),
        memory_group: None,
        private_folder: Some(scene.path(folder)),
        on_loss: StopOrder::HARD,
    };
    symlink(scene.path("root"), scene.path("trap")).unwrap();
    let started = Warden::spawn(&job("trap"), env!("CARGO_BIN_EXE_rqps").as_ref());
    assert!(started.unwrap_err().to_string().contains("make the private folder"));
    assert_ne!(fs::metadata(scene.path("root")).unwrap().uid(), NOBODY);
    // The log of a server is a link.
    symlink(scene.canary(), scene.path("log")).unwrap();
    let started = Warden::spawn(&job("new"), env!("CARGO_BIN_EXE_rqps").as_ref());
    assert!(started.unwrap_err().to_string().contains("open the log"));
    scene.check_canary();
    assert!(!scene.path("new").exists());
}

/// Finding 20: `--cache DIR` of a folder of the user's that has a `partial`.
#[test]
fn a_cache_folder_keeps_what_others_put_there() {
    let scene = Scene::new();
    for (folder, file) in [("partial/photos", "me"), ("builds/mine", "notes")] {
        let folder = scene.path("cache").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), "dear").unwrap();
    }
    symlink(scene.path("root"), scene.path("cache/partial/link")).unwrap();
    let output = scene.rqps(&["builds", "sqlite"]);
    assert!(output.status.success(), "{}", said(&output));
    for file in ["partial/photos/me", "partial/link/canary", "builds/mine/notes"] {
        assert!(scene.path("cache").join(file).exists(), "{file}");
    }
    assert!(!scene.path("cache/locks/photos.lock").exists(), "nothing is made for it either");
    scene.check_canary();
}

/// Finding 27: somebody else holds the lock file of old, in a place for everyone.
#[test]
fn the_lock_of_root_is_in_no_place_for_everyone() {
    let scene = Scene::new();
    let mut command =
        rqps_in(&["compare", "a=fake@1", "--steps", "point-query"], scene.path("").as_path());
    command.args(["--set", "settle_scale=0", "--blocks", "1", "--canaries", "off", "--out", "o"]);
    // Where each user's own lock is: nobody else can open it.
    command.env_remove("RQPS_HOST_LOCK");
    let output = command.output().unwrap();
    assert!(output.status.success() || said(&output).contains("measur"), "{}", said(&output));
    let lock = if rustix::process::geteuid().is_root() {
        PathBuf::from("/run/rqps/measuring.lock")
    } else {
        scene.path("state/measuring.lock")
    };
    assert_eq!(fs::metadata(&lock).unwrap().mode() & 0o077, 0, "{}", lock.display());
}

/// A server under test leads root to a server that trusts root, by a link in place of its socket.
#[test]
fn a_socket_that_is_a_link_of_another_user_is_not_followed() {
    use std::os::unix::net::UnixListener;
    if !is_root("a_socket_that_is_a_link_of_another_user_is_not_followed") {
        return;
    }
    let scene = Scene::new();
    let _production = UnixListener::bind(scene.path("root/mysql.sock")).unwrap();
    let link = scene.path("mysql.sock");
    symlink(scene.path("root/mysql.sock"), &link).unwrap();
    rustix::fs::chownat(
        rustix::fs::CWD,
        &link,
        Some(rustix::fs::Uid::from_raw(NOBODY)),
        None,
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    )
    .unwrap();
    let dsn = format!("mysql://root@/test?socket={}", link.display());
    let output = scene.rqps(&["compare", &dsn, "--steps", "point-query", "--out", "out", "--yes"]);
    assert!(said(&output).contains("which root does not follow"), "{}", said(&output));
    drop(fs::remove_file(scene.path("root/mysql.sock")));
}

/// The folder of another user's in which root works: results, reports and tables go through none of
/// their links, and what they have accepted root has not.
#[test]
fn root_writes_through_no_link_of_another_user() {
    if !is_root("root_writes_through_no_link_of_another_user") {
        return;
    }
    let scene = Scene::new();
    let output = scene.compare(&["--out", "out"]);
    assert!(output.status.success(), "{}", said(&output));
    fs::create_dir(scene.path("theirs")).unwrap();
    symlink(scene.canary(), scene.path("theirs/file")).unwrap();

    symlink(scene.path("root"), scene.path("theirs/folder")).unwrap();
    symlink(scene.path("root/new"), scene.path("theirs/new")).unwrap();
    for name in ["", "file", "folder", "new"] {
        lchown(scene.path("theirs").join(name), Some(NOBODY), None).unwrap();
    }
    let refused = |words: &[&str]| {
        let output = scene.rqps(words);
        assert!(!output.status.success(), "{words:?}");
        let said = said(&output);
        assert!(said.contains("a link of user 65534, which root does not follow"), "{said}");
        scene.check_canary();
    };
    for format in ["text", "html", "post", "json"] {
        refused(&["report", "out", "--format", format, "-o", "theirs/file"]);
    }
    refused(&["bundle", "out", "-o", "theirs/folder/bundle.tar.gz"]);
    refused(&["site", "out", "-o", "theirs/folder/site"]);
    refused(&["export", "out", "--format", "csv", "-o", "theirs/folder/tables"]);
    let made_elsewhere = ["export", "out", "--format", "sqlite", "-o", "theirs/new"];
    assert!(!scene.rqps(&made_elsewhere).status.success());
    let words = ["compare", "a=fake@1", "--steps", "point-query", "--blocks", "1", "--out"];
    refused(&[&words[..], &["theirs/folder/out"]].concat());
    scene.check_canary();
    let planned = scene.rqps(&["plan", "postgres://nobody@/none?host=/nowhere"]);
    fs::write(scene.path("plan.toml"), planned.stdout).unwrap();
    chown(scene.path("state/plans"), Some(NOBODY), None).unwrap();
    let output = scene.rqps(&["run", "plan.toml", "--out", "planned"]);
    assert!(said(&output).contains("which plans were accepted"), "{}", said(&output));
}

/// A folder of sources of another user, with another name of a file of root's in it, or a link to a
/// folder of root's in its place.
#[test]
fn sources_of_another_user_give_a_build_nothing_of_root() {
    if !is_root("sources_of_another_user_give_a_build_nothing_of_root") {
        return;
    }
    let scene = Scene::new();
    fs::create_dir(scene.path("theirs")).unwrap();
    fs::write(scene.path("theirs/sqlite3.c"), "const char version[] = \"3.99.1\";\n").unwrap();
    fs::write(scene.path("theirs/sqlite3.h"), "").unwrap();
    fs::hard_link(scene.canary(), scene.path("theirs/hard.h")).unwrap();
    symlink("theirs", scene.path("link")).unwrap();
    for name in ["theirs", "theirs/sqlite3.c", "theirs/sqlite3.h", "link"] {
        lchown(scene.path(name), Some(1234), None).unwrap();
    }
    fs::write(scene.path("recipe.sh"), "cat hard.h\nexit 1\n").unwrap();
    let check = |folder: &str, why: &str| {
        let output = scene.rqps(&["get", &format!("sqlite=src:{folder}+recipe=./recipe.sh")]);
        let said = said(&output);
        assert!(said.contains(why) && !said.contains(CANARY), "{said}");
    };
    check("theirs", "has several names");
    fs::remove_file(scene.path("theirs/hard.h")).unwrap();
    check("theirs", "the build exited with 1");
    check("link", "a link of user 1234, which root does not follow");
    // A cache in which they have put links.
    for name in ["cache/locks", "cache/logs"] {
        fs::remove_dir_all(scene.path(name)).unwrap();
        symlink(scene.path("root"), scene.path(name)).unwrap();
        lchown(scene.path(name), Some(1234), None).unwrap();
        check("theirs", "which root does not follow");
        fs::remove_file(scene.path(name)).unwrap();
        fs::create_dir(scene.path(name)).unwrap();
    }
    scene.check_canary();
}

/// A library under test looks at what root has: its terminal, its closed folder, its PATH. It leaves
/// a daemon behind.
#[test]
fn code_under_test_reaches_neither_terminal_nor_folder_and_leaves_nothing() {
    let test = "code_under_test_reaches_neither_terminal_nor_folder_and_leaves_nothing";
    if !is_root(test) {
        return;
    }
    let scene = Scene::new();
    let open = scene.path("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
    let source = format!(
        "#include <fcntl.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n\
         int sqlite3_prepare_v2(void) {{ return 1; }}\n\
         __attribute__((constructor)) static void start(void) {{\n\
         if (geteuid() == 0) return;\n\
         char at[4096] = \"?\"; getcwd(at, sizeof at);\n\
         int tty = open(\"/dev/tty\", O_RDWR);\n\
         FILE *out = fopen(\"{}/seen\", \"w\"); if (!out) return;\n\
         fprintf(out, \"%s|%d|%s\", at, tty >= 0, getenv(\"PATH\")); fclose(out);\n\
         if (fork() == 0) {{ setsid(); if (fork() == 0) {{\n\
         FILE *pid = fopen(\"{}/daemon\", \"w\"); fprintf(pid, \"%d\", getpid()); fclose(pid);\n\
         close(0); close(1); close(2); sleep(300); }} _exit(0); }}\n\
         usleep(300000); }}\n",
        open.display(),
        open.display()
    );
    fs::write(scene.path("evil.c"), source).unwrap();
    let library = scene.path("libsqlite3.so");
    let mut cc = std::process::Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(scene.path("evil.c"));
    if !cc.status().is_ok_and(|status| status.success()) {
        skipped::note(test, "no C compiler");
        return;
    }
    let line = format!(
        "PATH=$PATH:/root/closed RQPS_CACHE={} {} compare sqlite={} --bench sysbench --steps \
         point-query --blocks 1 --canaries off --out out",
        scene.path("cache").display(),
        env!("CARGO_BIN_EXE_rqps"),
        library.display()
    );
    let (_, said) = crate::support::terminal::Terminal::start(&line, scene.folder.path()).end(b"");
    let seen = fs::read_to_string(open.join("seen")).expect(&said);
    assert!(seen.starts_with("/|0|"), "{seen}");
    assert!(!seen.contains("closed"), "{seen}");
    let daemon = fs::read_to_string(open.join("daemon")).expect(&said);
    let status = fs::read_to_string(format!("/proc/{daemon}/status")).unwrap_or_default();
    assert!(status.is_empty() || status.contains("State:\tZ"), "{status}");
}

/// The folder around a bundle that is being unpacked is swapped for one with a link in it.
#[test]
fn a_bundle_is_unpacked_through_no_link_that_comes_meanwhile() {
    if !is_root("a_bundle_is_unpacked_through_no_link_that_comes_meanwhile") {
        return;
    }
    let scene = Scene::new();
    super::consent::bundle(scene.folder.path(), &|entries, _| {
        for number in 0..2000 {
            entries.push((format!("rqps-bundle/files/pad/{number}"), b"x".to_vec()));
        }
        entries.push(("rqps-bundle/files/evil/planted".to_owned(), b"x".to_vec()));
    });
    fs::create_dir_all(scene.path("photos/files")).unwrap();
    fs::write(scene.path("photos/files/me"), "dear").unwrap();
    // In the place of a folder in it, and of the folder around it, which rqps removes then.
    for (link, to) in [("files/files/evil", "root"), ("", "photos")] {
        let (swapped, around, to) = (scene.path("swapped"), scene.path("gone"), scene.path(to));
        let partial = swapped.join(".bundle.partial");
        let (seen, link) = (partial.join("files/files/pad"), partial.join(link));
        let (from, gone) = (swapped.clone(), around.clone());
        let swap = std::thread::spawn(move || {
            while !seen.exists() {
                std::thread::yield_now();
            }
            fs::rename(&from, gone).unwrap();
            fs::create_dir_all(link.parent().unwrap()).unwrap();
            let link = link.components().as_path();
            symlink(to, link).unwrap();
            lchown(link, Some(NOBODY), None).unwrap();
        });
        let output = scene.rqps(&["run", "changed.tar.gz", "--out", "swapped"]);
        swap.join().unwrap();
        assert!(!output.status.success(), "{}", said(&output));
        scene.check_canary();
        assert!(scene.path("photos/files/me").exists(), "{}", said(&output));
        fs::remove_dir_all(swapped).unwrap();
        fs::remove_dir_all(around).unwrap();
    }
}

/// SQLite takes files beside a database as its own: it writes into them, and gives them to the owner
/// of the database.
#[test]
fn files_beside_a_database_of_another_user_are_not_those_of_root() {
    use rqps_embed::sqlite::{Sqlite, SqliteConnection};
    if !is_root("files_beside_a_database_of_another_user_are_not_those_of_root") {
        return;
    }
    let scene = Scene::new();
    let database = scene.path("theirs/x.db");
    fs::create_dir(scene.path("theirs")).unwrap();
    let library = std::sync::Arc::new(Sqlite::compiled_in());
    let mut made = SqliteConnection::open(&library, &database, 0).unwrap();
    for sql in ["PRAGMA journal_mode = wal", "CREATE TABLE t (a INTEGER PRIMARY KEY)"] {
        made.rows(sql).unwrap();
    }
    drop(made);
    for end in ["-shm", "-wal"] {
        fs::hard_link(scene.canary(), scene.path(&format!("theirs/x.db{end}"))).unwrap();
    }
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(&database, open).unwrap();
    chown(scene.path("theirs"), Some(1234), None).unwrap();
    let all = |of: &str, ends_well: bool, part: &str| {
        let plans = ["plans", of, "--to", "sqlite", "--sql", "SELECT a FROM t"];
        for words in [&["init", of, "-o", "w.toml"][..], &plans] {
            let output = scene.rqps(words);
            assert!(said(&output).contains(part), "{}", said(&output));
            assert_eq!(output.status.success(), ends_well, "{}", said(&output));
            scene.check_canary();
        }
        fs::remove_file(scene.path("w.toml")).ok();
    };
    for owner in [0, 1234] {
        chown(&database, Some(owner), None).unwrap();
        all("theirs/x.db", false, "unable to open database file");
    }
    for end in ["-shm", "-wal"] {
        fs::remove_file(scene.path(&format!("theirs/x.db{end}"))).unwrap();
    }
    all("theirs/x.db", true, "");
    symlink(&database, scene.path("theirs/link.db")).unwrap();
    lchown(scene.path("theirs/link.db"), Some(1234), None).unwrap();
    all("theirs/link.db", false, "which root does not follow");
}

/// A cache, a work folder and a home that another user has prepared.
#[test]
fn root_works_in_no_cache_or_home_of_another_user() {
    if !is_root("root_works_in_no_cache_or_home_of_another_user") {
        return;
    }
    let scene = Scene::new();
    let build = scene.path("theirs/cache/builds/rocksdb-9.9.3-x86_64");
    fs::create_dir_all(&build).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(build.join("manifest.json")).status();
    assert!(pipe.unwrap().success());
    // What a client of packages takes from folders above its own, and from a home.
    let mvn = "#!/bin/sh\nat=$PWD\nwhile [ \"$at\" != / ]; do\n\
               if [ -d \"$at/.mvn\" ]; then break; fi\nat=$(dirname \"$at\")\ndone\n\
               echo \"settings in ${at#$PWD}, home in $HOME\"\nexit 1\n";
    fs::create_dir(scene.path("bin")).unwrap();
    fs::write(scene.path("bin/mvn"), mvn).unwrap();
    fs::set_permissions(scene.path("bin/mvn"), Permissions::from_mode(0o755)).unwrap();
    for folder in [".mvn", "theirs/home"] {
        fs::create_dir(scene.path(folder)).unwrap();
    }
    symlink(scene.path("root"), scene.path("theirs/link")).unwrap();
    for name in ["theirs", "theirs/cache", "theirs/cache/builds", "theirs/home", "theirs/link"] {
        lchown(scene.path(name), Some(NOBODY), None).unwrap();
    }
    let run = |words: &[&str]| {
        let mut command = rqps_in(words, scene.folder.path());
        let path = format!("{}:/usr/bin:/bin", scene.path("bin").display());
        command.env("HOME", scene.path("theirs/home")).env("PATH", path);
        let output = said(&command.output().unwrap());
        scene.check_canary();
        output
    };
    let told = run(&["get", "rocksdb@9.9.3", "--cache", "theirs/cache"]);
    assert!(told.contains("root puts nothing there"), "{told}");
    assert_eq!(fs::read_dir(scene.path("theirs/cache")).unwrap().count(), 1);
    let told = run(&["get", "rocksdb@9.9.3", "--cache", "theirs/link"]);
    assert!(told.contains("which root does not follow"), "{told}");
    let words = ["compare", "a=fake@1", "--steps", "point-query", "--out", "out", "--work"];
    let told = run(&[&words[..], &["theirs/link"]].concat());
    assert!(told.contains("which root does not follow"), "{told}");
    // Programs of root's, such as perf, write into the work folder by path.
    let words = ["compare", "sqlite", "--steps", "point-query", "--out", "new", "--work"];
    fs::create_dir(scene.path("others")).unwrap();
    chown(scene.path("others"), Some(1234), None).unwrap();
    let told = run(&[&words[..], &["others"]].concat());
    assert!(told.contains("others than root may write to"), "{told}");
    // As in /tmp and /dev/shm, others cannot touch what is not theirs.
    fs::create_dir(scene.path("shared")).unwrap();
    fs::set_permissions(scene.path("shared"), Permissions::from_mode(0o1777)).unwrap();
    let short = ["--blocks", "1", "--set", "rows=1000", "--set", "read_seconds=0.1"];
    let told = run(&[&words[..], &["shared"], &short].concat());
    assert!(!told.contains("others than root"), "{told}");
    let told = run(&["get", "rocksdb@9.9.3", "--cache", "cache"]);
    assert!(told.trim_end().ends_with("settings in , home in"), "{told}");
}

/// Files of another user, read as root: a link, or another name, of a file that only root may read.
/// A server of theirs would get it as its first SQL, and a bundle would carry it away.
#[test]
fn root_reads_through_no_link_of_another_user() {
    if !is_root("root_reads_through_no_link_of_another_user") {
        return;
    }
    let scene = Scene::new();
    let output = scene.compare(&["--out", "out"]);
    assert!(output.status.success(), "{}", said(&output));
    let refused = |words: &[&str]| {
        let output = scene.rqps(words);
        let said = said(&output) + &program::text(&output.stdout);
        assert!(!output.status.success() && !said.contains(CANARY), "{words:?}: {said}");
        said
    };
    let link = |name: &str| {
        fs::remove_file(scene.path(name)).ok();
        symlink(scene.canary(), scene.path(name)).unwrap();
        lchown(scene.path(name), Some(1234), None).unwrap();
    };
    for (name, words) in [
        ("plan.toml", &["run", "plan.toml"][..]),
        ("own.toml", &["plan", "sqlite", "--bench", "sql:own.toml"]),
        ("own.sql", &["plan", "postgres://a@/b?host=/none", "--bench", "pgbench:own.sql"]),
        ("out/plan.toml", &["run", "--resume", "out"]),
        ("out/gate.json", &["report", "out"]),
    ] {
        let kept = fs::read(scene.path(name)).ok();
        link(name);
        let said = refused(words);
        assert!(said.contains("which root does not follow"), "{name}: {said}");
        fs::remove_file(scene.path(name)).unwrap();
        drop(kept.map(|kept| fs::write(scene.path(name), kept)));
    }
    // Another name of it in their folder.
    let log = scene.path("out/b01-1-a/driver.log");
    fs::remove_file(&log).ok();
    fs::hard_link(scene.canary(), &log).unwrap();
    for folder in ["out", "out/b01-1-a"] {
        chown(scene.path(folder), Some(1234), None).unwrap();
    }
    let said = refused(&["bundle", "out", "-o", "bundle.tar.gz"]);
    assert!(said.contains("has several names"), "{said}");
    fs::remove_file(log).unwrap();
    // A server that writes down what it is told.
    let (tree, told) = (scene.path("tree"), scene.path("told"));
    fs::create_dir(&told).unwrap();
    fs::set_permissions(&told, Permissions::from_mode(0o777)).unwrap();
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in *ersion*) echo 'mariadbd  Ver 11.4.5-MariaDB'; exit;; esac\n\
         cat >> {0}/all\nfor word; do cat \"${{word#*=}}\" >> {0}/all; done\n",
        told.display()
    );
    fs::create_dir_all(tree.join("bin")).unwrap();
    fs::create_dir_all(tree.join("share/english")).unwrap();
    fs::write(tree.join("share/english/errmsg.sys"), "").unwrap();
    fs::write(tree.join("share/mysql_system_tables_data.sql"), "").unwrap();
    fs::write(tree.join("bin/mariadbd"), script).unwrap();
    fs::set_permissions(tree.join("bin/mariadbd"), Permissions::from_mode(0o755)).unwrap();
    link("tree/share/mysql_system_tables.sql");
    let target = format!("mariadb={}", tree.display());
    let words =
        ["compare", &target, "--steps", "point-query", "--blocks", "1", "--canaries", "off"];
    let said = refused(&[&words[..], &["--out", "served"]].concat());
    assert!(said.contains("which root does not follow"), "{said}");
    let all = fs::read_to_string(told.join("all")).unwrap_or_default();
    assert!(!all.contains(CANARY), "{all}");
    scene.check_canary();
}
