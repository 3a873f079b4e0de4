//! Builds from sources: git repositories and folders that the tests make, the compiler of this
//! host, the cache. What is compiled is a stand-in for SQLite that is only read, never loaded.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rqps::domain::build::{Build, BuildSource, Dbms};
use rqps::obtain::source::commits;
use rqps::obtain::{Cache, PackageClients, obtain_with};

mod skipped;

/// As much of SQLite as is looked for in a library: a symbol and a version.
const STAND_IN: &str = "const char version[] = \"3.99.1\";\n\
                        int sqlite3_prepare_v2(void) { return version[0]; }\n";

struct Site {
    folder: tempfile::TempDir,
    cache: Cache,
}

impl Site {
    /// A repository with one commit, and an empty cache.
    fn new() -> Site {
        let folder = tempfile::tempdir().expect("folder");
        open(folder.path());
        let cache = Cache::open(&folder.path().join("cache")).expect("cache");
        let site = Site { folder, cache };
        fs::create_dir(site.repository()).expect("repository");
        site.git(&["init", "-q", "-b", "main", "."]);
        site.git(&["config", "user.email", "test@localhost"]);
        site.git(&["config", "user.name", "test"]);
        site.commit("sqlite3.c", STAND_IN, "Import");
        site.commit("sqlite3.h", "", "Header");
        site
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("repository")
    }

    fn git(&self, words: &[&str]) -> String {
        let said = Command::new("git").arg("-C").arg(self.repository()).args(words).output();
        let said = said.expect("run git");
        assert!(said.status.success(), "{words:?} {}", String::from_utf8_lossy(&said.stderr));
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }

    fn commit(&self, file: &str, text: &str, subject: &str) -> String {
        let path = self.repository().join(file);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(&path, text).expect("write");
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", subject]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn obtain(&self, reference: Option<&str>, variant: Option<&str>) -> Result<Build, String> {
        self.obtain_from(&self.repository(), reference, variant, &mut |_| {})
    }

    fn obtain_from(
        &self,
        folder: &Path,
        reference: Option<&str>,
        variant: Option<&str>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Build, String> {
        let clients = PackageClients::default();
        let source = source(folder, reference, variant);
        obtain_with(&clients, Dbms::Sqlite, &source, &self.cache, say)
            .map_err(|error| error.to_string())
    }

    /// Names in a folder of the cache.
    fn cached(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.cache.root().join(name)).expect("folder of the cache");
        let names = entries.map(|entry| entry.expect("entry").file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    fn refuses(&self, reference: Option<&str>, expected: &[&str]) {
        let said = self.obtain(reference, None).expect_err("no build");
        for part in expected {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(self.cached("builds"), [""; 0], "{said}");
        assert_eq!(self.cached("partial"), [""; 0], "{said}");
    }
}

fn source(folder: &Path, reference: Option<&str>, variant: Option<&str>) -> BuildSource {
    BuildSource::Source {
        folder: folder.to_owned(),
        reference: reference.map(str::to_owned),
        variant: variant.map(str::to_owned),
    }
}

/// Builds run as an unprivileged user where the test runs as root.
fn open(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("chmod");
}

#[test]
fn a_commit_is_built_once_and_the_repository_is_only_read() {
    let site = Site::new();
    let first = site.git(&["rev-parse", "HEAD"]);
    site.commit("sqlite3.c", &STAND_IN.replace("3.99.1", "3.99.2"), "Next");
    let before = site.git(&["status", "--porcelain", "--ignored"]);

    let old = site.obtain(Some(&first), None).expect("a build");
    assert_eq!(old.manifest.version.as_str(), "3.99.1");
    assert!(old.manifest.origin.contains(&first[..12]), "{}", old.manifest.origin);
    let compiler = old.manifest.compiler.clone().expect("a compiler");
    assert!(compiler.ends_with("-O2 -g"), "{compiler}");
    assert!(old.root.as_deref().is_some_and(Path::is_file));
    let new = site.obtain(None, None).expect("a build");
    assert_eq!(new.manifest.version.as_str(), "3.99.2");
    let other = site.obtain(None, Some("O0")).expect("a build");
    assert_ne!(other.root, new.root);
    assert!(other.manifest.compiler.expect("a compiler").ends_with("-g -O0"));

    let mut said = Vec::new();
    let mut say = |text: &str| said.push(text.to_owned());
    let again = site.obtain_from(&site.repository(), Some(&first[..9]), None, &mut say);
    assert_eq!(again.expect("a build"), old);
    assert_eq!(said, [""; 0], "it was in the cache");
    assert_eq!(site.git(&["status", "--porcelain", "--ignored"]), before);
    assert_eq!(site.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn changes_that_are_not_committed_are_not_built() {
    let site = Site::new();
    fs::write(site.repository().join("sqlite3.c"), "#error not committed\n").expect("write");
    site.refuses(None, &["not committed", "@HEAD"]);
    assert!(site.obtain(Some("HEAD"), None).is_ok());
}

#[test]
fn references_that_are_not_there_are_refused() {
    let site = Site::new();
    site.refuses(Some("nothing"), &["has no commit nothing", "git log"]);
    site.refuses(Some("--help"), &["has no commit --help"]);
    let shallow = site.folder.path().join("shallow");
    let from = format!("file://{}", site.repository().display());
    let mut clone = Command::new("git");
    clone.args(["clone", "-q", "--depth", "1"]).arg(from).arg(&shallow);
    let cloned = clone.status().expect("git");
    assert!(cloned.success());
    let said = site.obtain_from(&shallow, Some("HEAD~1"), None, &mut |_| {}).unwrap_err();
    assert!(said.contains("shallow clone") && said.contains("--unshallow"), "{said}");
    let said = commits(&shallow, "HEAD~1", "HEAD").unwrap_err().to_string();
    assert!(said.contains("--unshallow"), "{said}");
    let said = commits(site.folder.path(), "a", "b").unwrap_err().to_string();
    assert!(said.contains("not the top folder of a git repository"), "{said}");
}

#[test]
fn a_build_that_fails_leaves_only_its_log() {
    let site = Site::new();
    site.commit("sqlite3.c", "#error half done\n", "Break it");
    site.refuses(Some("HEAD"), &["the build exits with 1", "half done", "logs/sqlite-src-"]);
    assert_eq!(site.cached("logs").len(), 1);
    site.commit("sqlite3.c", "#error No space left on device\n", "Fill the disk");
    site.refuses(Some("HEAD"), &["is full", "--cache"]);
    site.commit("sqlite3.c", "int nothing_of_sqlite;\n", "Another library");
    site.refuses(Some("HEAD"), &["not a shared library with SQLite's functions"]);
    site.git(&["rm", "-q", "sqlite3.c"]);
    site.commit("x", "", "Remove it");
    site.refuses(Some("HEAD"), &["they lack sqlite3.c and sqlite3.h, or configure"]);
}

#[test]
fn a_build_that_is_stopped_leaves_nothing() {
    let site = Site::new();
    let stop = Arc::new(AtomicBool::new(false));
    let clients = PackageClients { stop: Arc::clone(&stop), ..PackageClients::default() };
    let mut say = |text: &str| {
        if text.starts_with("building") {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let from = source(&site.repository(), Some("HEAD"), None);
    let said = obtain_with(&clients, Dbms::Sqlite, &from, &site.cache, &mut say).unwrap_err();
    assert!(said.to_string().contains("stopped"), "{said}");
    assert_eq!(site.cached("builds"), [""; 0]);
    assert_eq!(site.cached("partial"), [""; 0]);
    assert!(site.obtain(Some("HEAD"), None).is_ok());
}

#[test]
fn a_folder_without_git_is_known_by_its_files() {
    let site = Site::new();
    let folder = site.folder.path().join("unpacked+dfsg");
    fs::create_dir(&folder).expect("folder");
    fs::write(folder.join("sqlite3.c"), STAND_IN).expect("write");
    fs::write(folder.join("sqlite3.h"), "").expect("write");
    let build = |reference| site.obtain_from(&folder, reference, None, &mut |_| {});
    let one = build(None).expect("a build");
    assert_eq!(build(None).expect("a build"), one);
    fs::write(folder.join("sqlite3.h"), "/* */\n").expect("write");
    assert_ne!(build(None).expect("a build").root, one.root);
    let said = build(Some("HEAD")).unwrap_err();
    assert!(said.contains("leave out @REF"), "{said}");
}

#[test]
fn a_repository_of_somebody_else_is_git_s_to_refuse() {
    let site = Site::new();
    if chown(site.repository(), Some(65534), Some(65534)).is_err() {
        let test = "a_repository_of_somebody_else_is_git_s_to_refuse";
        skipped::note(test, "needs root, to give a folder away");
        return;
    }
    site.refuses(Some("HEAD"), &["belongs to another user", "safe.directory"]);
}

#[test]
fn commits_are_those_along_first_parents() {
    let site = Site::new();
    let first = site.git(&["rev-parse", "HEAD"]);
    let doc = site.commit("doc/a.md", "a", "Document it");
    site.git(&["checkout", "-q", "-b", "side"]);
    site.commit("side.c", "", "On the side");
    site.git(&["checkout", "-q", "main"]);
    let code = site.commit("a.c", "", "Change: it, \"quoted\"");
    site.git(&["merge", "-q", "--no-ff", "-m", "Merge the side", "side"]);
    let (found, between) = commits(&site.repository(), "HEAD~3", "HEAD").expect("commits");
    assert_eq!(found, first);
    let ids: Vec<&str> = between.iter().map(|commit| commit.id.as_str()).collect();
    assert_eq!(ids[..2], [doc.as_str(), code.as_str()]);
    let merge = &between[2];
    assert_eq!((merge.parents, merge.subject.as_str()), (2, "Merge the side"));
    assert_eq!(merge.paths, ["side.c"]);
    assert_eq!(between[0].paths, ["doc/a.md"]);
    assert_eq!(between[1].subject, "Change: it, \"quoted\"");
    let said = commits(&site.repository(), "HEAD", "HEAD~1").unwrap_err().to_string();
    assert!(said.contains("does not come from"), "{said}");
}
