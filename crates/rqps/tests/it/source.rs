//! Builds from sources: git repositories and folders that the tests make, the compiler of this
//! host, the cache. What is compiled is a stand-in for SQLite that is only read, never loaded.

use crate::support::skipped;
use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rqps_builds::source::commits;
use rqps_builds::{Cache, Hear, PackageClients, Said, obtain_with};
use rqps_model::build::{Build, BuildSource, Dbms};

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
        say: &mut Hear<'_>,
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
    let mut say = |told: Said<'_>| said.push(told.text().to_owned());
    let again = site.obtain_from(&site.repository(), Some(&first[..9]), None, &mut say);
    assert_eq!(again.expect("a build"), old);
    assert_eq!(said, [""; 0], "it was in the cache");
    assert_eq!(site.git(&["status", "--porcelain", "--ignored"]), before);
    assert_eq!(site.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn a_commit_of_comments_is_the_same_build() {
    let site = Site::new();
    let code = || site.obtain(Some("HEAD"), None).expect("a build").manifest.code;
    let first = code();
    assert!(first.is_some());
    let check = |expected: &str| {
        let mut rqps = Command::new(env!("CARGO_BIN_EXE_rqps"));
        rqps.args(["check", "HEAD~1", "HEAD", "--cache"]).arg(site.cache.root());
        rqps.arg("--out").arg(site.folder.path().join("out")).current_dir(site.repository());
        let said = rqps.output().expect("rqps");
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success() && text.contains(expected), "{said:?}");
        assert!(!site.folder.path().join("out").exists());
    };
    site.commit("sqlite3.c", &format!("/* What\n it is */\n{STAND_IN} // end\n"), "Comment");
    assert_eq!(code(), first);
    check(
        "same build (exit 0): sqlite-HEAD-1 and sqlite-HEAD differ in comments, or in files that",
    );
    site.commit("test/a.c", "int a;", "A test");
    assert_eq!(code(), first);
    site.commit("sqlite3.c", &STAND_IN.replace("version[0]", "version[1]"), "Change");
    assert_ne!(code(), first);
    // Whatever the user's own script reads.
    let script = site.folder.path().join("build.sh");
    fs::write(&script, "$CC -shared -fPIC -o \"$DEST/libsqlite3.so\" sqlite3.c\n").expect("write");
    let own = site.obtain(Some("HEAD"), Some(&format!("recipe={}", script.display())));
    assert_eq!(own.expect("a build").manifest.code, None);
}

/// As a tree of many files: `make` compiles what depends on files that are newer.
#[test]
fn a_commit_is_built_with_the_objects_of_the_last_one() {
    let test = "a_commit_is_built_with_the_objects_of_the_last_one";
    if Command::new("make").arg("--version").output().is_err() {
        skipped::note(test, "needs make (package make)");
        return;
    }
    let site = Site::new();
    site.commit("b.h", "#define B 1\n", "Header");
    site.commit("b.c", "#include \"b.h\"\nint b = B;\n", "Another file");
    let objects = "%.o: %.c\n\t$(CC) -fPIC -c -o $@ $<\n\techo $@ >> built\n";
    let linked = "libsqlite3.so: sqlite3.o b.o\n\t$(CC) -shared -o $@ $^\nb.o: b.h\n";
    site.commit("Makefile", &format!("{linked}{objects}"), "Makefile");
    let recipe = site.folder.path().join("fork.toml");
    let lines = "lines = ['rm -f built', 'make libsqlite3.so', 'cp libsqlite3.so \"$DEST\"', \
                 'cp built \"$DEST/\" 2>/dev/null || touch \"$DEST/built\"']\nincremental = true\n";
    fs::write(&recipe, lines).expect("write");
    let word = format!("recipe={}", recipe.display());
    let built = || {
        let build = site.obtain(Some("HEAD"), Some(&word)).expect("a build");
        let library = build.root.expect("a library");
        let list = fs::read_to_string(library.with_file_name("built")).expect("a list");
        let mut names: Vec<String> = list.lines().map(str::to_owned).collect();
        names.sort();
        (names.join(" "), build.manifest.version.as_str().to_owned())
    };
    let check = |expected: &str, version: &str| {
        assert_eq!(built(), (expected.to_owned(), version.to_owned()));
    };
    check("b.o sqlite3.o", "3.99.1");
    site.commit("sqlite3.c", &STAND_IN.replace("99.1", "99.2"), "Change");
    check("sqlite3.o", "3.99.2");
    site.commit("b.h", "#define B 2\n", "Change a header");
    check("b.o", "3.99.2");
    // A new header may stand before the one of the objects.
    site.commit("c.h", "", "A header more");
    check("b.o sqlite3.o", "3.99.2");
    // Objects of other flags have no newer source.
    let flags = objects.replace("-fPIC", "-fPIC -DFLAG");
    site.commit("Makefile", &format!("{linked}{flags}"), "Flags");
    check("b.o sqlite3.o", "3.99.2");
    // An older state has a newer time, and a file that is gone is gone.
    site.git(&["rm", "-q", "b.h"]);
    site.commit("b.c", "#if __has_include(\"b.h\")\n#error b.h\n#endif\nint b;\n", "No header");
    site.commit("Makefile", &format!("{}{objects}", linked.replace("b.o: b.h", "")), "Makefile");
    site.commit("sqlite3.c", STAND_IN, "Back");
    check("b.o sqlite3.o", "3.99.1");
    // What fails among old objects is built anew.
    let wall = linked.replace("b.o: b.h", "ifneq ($(wildcard b.o),)\n$(error old objects)\nendif");
    site.commit("Makefile", &format!("{wall}{objects}"), "Break it");
    check("b.o sqlite3.o", "3.99.1");
    site.commit("b.c", "#error half done\n", "Half");
    let said = site.obtain(Some("HEAD"), Some(&word)).unwrap_err();
    assert!(said.contains("half done"), "{said}");
    assert_eq!(site.cached("builds").len(), 7);
    let Site { folder, cache } = site;
    drop(cache);
    let left = fs::read_dir(folder.path().join("cache/partial")).expect("folder").count();
    assert_eq!(left, 0);
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
    site.refuses(Some("HEAD"), &["the build exited with 1", "half done", "logs/sqlite-src-"]);
    assert_eq!(site.cached("logs").len(), 1);
    site.commit("sqlite3.c", "#error No space left on device\n", "Fill the disk");
    site.refuses(Some("HEAD"), &["is full", "--cache"]);
    site.commit("sqlite3.c", "int nothing_of_sqlite;\n", "Another library");
    site.refuses(Some("HEAD"), &["not a shared library with SQLite's functions"]);
    site.git(&["rm", "-q", "sqlite3.c"]);
    site.commit("x", "", "Remove it");
    let lacking = "the recipe amalgamation needs sqlite3.c, the recipe sources needs configure and";
    site.refuses(Some("HEAD"), &[lacking, "add what is missing"]);
}

#[test]
fn a_build_that_is_stopped_leaves_nothing() {
    let site = Site::new();
    let stop = Arc::new(AtomicBool::new(false));
    let clients = PackageClients { stop: Arc::clone(&stop), ..PackageClients::default() };
    let mut say = |said: Said<'_>| {
        if said.text().starts_with("building") {
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
fn a_build_that_is_killed_says_by_which_signal_and_leaves_only_its_log() {
    let test = "a_build_that_is_killed_says_by_which_signal_and_leaves_only_its_log";
    let there = |program: &str| Command::new("sh").args(["-c", "command -v $0", program]).output();
    if !["make", "tclsh"].iter().all(|it| there(it).is_ok_and(|said| said.status.success())) {
        skipped::note(test, "needs make and tclsh (packages make, tcl)");
        return;
    }
    let site = Site::new();
    let folder = site.folder.path().join("sources");
    // As the kernel ends a build that needs too much memory.
    sources_that(&folder, "echo checking; kill -9 $PPID");
    let said = site.obtain_from(&folder, None, None, &mut |_| {}).unwrap_err();
    assert!(said.contains("killed by signal 9") && said.contains("logs/"), "{said}");
    assert_eq!(site.cached("builds"), [""; 0]);
    assert_eq!(site.cached("partial"), [""; 0]);
}

/// A file of this name in a folder or below it.
fn below(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    let found = paths.iter().find(|path| path.file_name().is_some_and(|it| it == name)).cloned();
    found.or_else(|| paths.iter().find_map(|path| below(path, name)))
}

/// Waits for something for a minute at most.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..1200 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{what}");
}

#[test]
fn a_compiler_ends_with_rqps() {
    let there = |program: &str| Command::new("sh").args(["-c", "command -v $0", program]).output();
    if !["make", "tclsh"].iter().all(|it| there(it).is_ok_and(|said| said.status.success())) {
        skipped::note("a_compiler_ends_with_rqps", "needs make and tclsh (packages make, tcl)");
        return;
    }
    for (signal, code) in [("-KILL", None), ("-TERM", Some(130))] {
        let site = Site::new();
        let folder = site.folder.path().join("sources");
        // A build without end, which tells its process.
        sources_that(&folder, "echo $$ > begun.tmp; mv begun.tmp begun; exec sleep 600");
        let mut rqps = Command::new(env!("CARGO_BIN_EXE_rqps"));
        rqps.arg("get").arg(format!("sqlite=src:{}", folder.display()));
        rqps.arg("--cache").arg(site.cache.root());
        let mut rqps = rqps.spawn().expect("start rqps");
        let begun = wait_for("no build began", || below(site.cache.root(), "begun"));
        let pid = fs::read_to_string(begun).expect("read");
        let process = Path::new("/proc").join(pid.trim());
        assert!(process.exists());
        let rqps_pid = rqps.id().to_string();
        Command::new("kill").args([signal, &rqps_pid]).status().expect("kill");
        let ended = rqps.wait().expect("wait");
        assert_eq!(ended.code(), code, "{signal}");
        // A zombie that nobody waits for has ended, too.
        let is_gone = || match fs::read_to_string(process.join("stat")) {
            Ok(stat) => stat.rsplit_once(") ").is_some_and(|it| it.1.starts_with('Z')),
            Err(_) => true,
        };
        wait_for("the build goes on", || is_gone().then_some(()));
        assert_eq!(site.cached("builds"), [""; 0]);
    }
}

/// A folder that looks like SQLite's sources, with this configure script.
fn sources_that(folder: &Path, script: &str) {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(folder.join("src")).expect("folder");
    for file in ["src/main.c", "src/sqlite.h.in"] {
        fs::write(folder.join(file), "").expect("write");
    }
    let configure = folder.join("configure");
    fs::write(&configure, format!("#!/bin/sh\n{script}\n")).expect("write");
    fs::set_permissions(&configure, fs::Permissions::from_mode(0o755)).expect("chmod");
}

#[test]
fn a_patch_changes_a_copy_of_the_sources() {
    let site = Site::new();
    let file = site.folder.path().join("newer.diff");
    let line = "const char version[] = \"3.99.1\";";
    let patch = |old: &str, new: &str| {
        let head = "--- a/sqlite3.c\n+++ b/sqlite3.c\n@@ -1,2 +1,2 @@\n";
        let last = " int sqlite3_prepare_v2(void) { return version[0]; }\n";
        fs::write(&file, format!("{head}-{old}\n+{new}\n{last}")).expect("write");
    };
    let variant = format!("O0+patch={}", file.display());
    let build = || site.obtain(Some("HEAD"), Some(&variant));
    patch(line, &line.replace("99.1", "99.7"));
    let one = build().expect("a build");
    assert_eq!(one.manifest.version.as_str(), "3.99.7");
    assert!(one.manifest.compiler.as_deref().is_some_and(|it| it.ends_with("patch newer.diff")));
    patch(line, &line.replace("99.1", "99.8"));
    let two = build().expect("a build");
    assert_eq!(two.manifest.version.as_str(), "3.99.8");
    let plain = site.obtain(None, Some("O0")).expect("a build");
    assert_eq!(plain.manifest.version.as_str(), "3.99.1");
    patch("another line", "a new line");
    let said = build().unwrap_err();
    assert!(said.contains("newer.diff does not apply") && said.contains("FAILED"), "{said}");
    fs::remove_file(&file).expect("remove");
    let said = build().unwrap_err();
    assert!(said.contains("read the patch") && said.contains("newer.diff"), "{said}");
    assert_eq!(site.cached("builds").len(), 3);
    assert_eq!(site.cached("partial"), [""; 0]);
}

#[test]
fn a_script_or_a_recipe_of_the_user_builds() {
    let site = Site::new();
    let script = site.folder.path().join("build.sh");
    // Such as the configure script of old releases of SQLite.
    let lines = "set -eu\nfile=$(mktemp)\ntest -w \"$HOME\"\ntest -z \"$LDFLAGS\"\nmkdir -p \"$DEST$PREFIX\"\n\
                 $CC $CFLAGS -DBY=1 -shared -fPIC -o \"$DEST$PREFIX/libsqlite3.so\" sqlite3.c\n";
    fs::write(&script, lines).expect("write");
    let word = format!("O0+recipe={}", script.display());
    let build = |word: &str| site.obtain(Some("HEAD"), Some(word));
    let plain = build("O0").expect("a build");
    let own = build(&word).expect("a build");
    assert_ne!(own.root, plain.root);
    assert!(own.root.as_deref().is_some_and(|it| it.ends_with("tree/libsqlite3.so")));
    assert!(own.manifest.origin.ends_with("build.sh"), "{}", own.manifest.origin);
    assert_eq!(build(&word).expect("a build"), own, "it was in the cache");
    // A first line of its own, and another place in the cache.
    fs::write(&script, format!("#!/bin/sh\n{}", lines.replace("$DEST$PREFIX", "$DEST")))
        .expect("write");
    assert_ne!(build(&word).expect("a build").root, own.root);
    fs::write(&script, "echo half; false; true\n").expect("write");
    let said = build(&word).unwrap_err();
    assert!(said.contains("the build exited with 1: ") && said.contains("half"), "{said}");
    fs::write(&script, "true\n").expect("write");
    let said = build(&word).unwrap_err();
    assert!(said.contains("it made no files in DEST"), "{said}");

    let file = site.folder.path().join("own.toml");
    let text = "lines = ['$CC -shared -fPIC -o \"$DEST/libsqlite3.so\" sqlite3.c']\n\
                [needs]\nno-such-program = 'nothing'\n";
    let word = format!("recipe={}", file.display());
    fs::write(&file, text).expect("write");
    let folder = site.repository();
    let mut messages = Vec::new();
    let said = site
        .obtain_from(&folder, None, Some(&word), &mut |said| messages.push(said.text().to_owned()))
        .unwrap_err();
    assert!(said.contains("no-such-program") && said.contains("apt-get install nothing"), "{said}");
    let copied = messages.iter().any(|text| text.contains("copying"));
    assert!(!copied && !messages.is_empty(), "it looks before it copies: {messages:?}");
    fs::write(&file, text.lines().next().expect("a line")).expect("write");
    assert!(build(&word).is_ok());
    let said = build("recipe=amalgamation+jemalloc").unwrap_err();
    assert!(said.contains("sqlite is a library"), "{said}");
    assert_eq!(site.cached("builds").len(), 4);
    assert_eq!(site.cached("partial"), [""; 0]);
}

#[test]
fn an_order_of_linking_moves_functions_and_repeats() {
    let site = Site::new();
    let more = (0..20).map(|at| format!("int f{at}(void) {{ return {at}; }}\n"));
    site.commit("sqlite3.c", &format!("{STAND_IN}{}", more.collect::<String>()), "Add functions");
    let bytes = |variant: &str| {
        let build = site.obtain(Some("HEAD"), Some(variant)).expect("a build");
        fs::read(build.root.expect("a library")).expect("read")
    };
    let (one, two) = (bytes("relink1"), bytes("relink2"));
    assert_ne!(one, two);
    for name in site.cached("builds") {
        fs::remove_dir_all(site.cache.root().join("builds").join(name)).expect("remove");
    }
    assert_eq!(bytes("relink1"), one, "the same order again");
    let said = site.obtain(None, Some("lto+relink1")).unwrap_err();
    assert!(said.contains("leave out lto"), "{said}");

    let folder = site.folder.path().join("rocksdb");
    fs::create_dir_all(folder.join("include/rocksdb")).expect("folder");
    for file in ["Makefile", "include/rocksdb/version.h"] {
        fs::write(folder.join(file), "").expect("write");
    }
    let from = source(&folder, None, Some("relink1"));
    let clients = PackageClients::default();
    let said = obtain_with(&clients, Dbms::Rocksdb, &from, &site.cache, &mut |_| {}).unwrap_err();
    assert!(said.to_string().contains("SQLite and Postgres"), "{said}");
}

#[test]
fn orders_of_linking_share_the_objects_while_the_cache_is_open() {
    let site = Site::new();
    let more = (0..20).map(|at| format!("int f{at}(void) {{ return {at}; }}\n"));
    site.commit("sqlite3.c", &format!("{STAND_IN}{}", more.collect::<String>()), "Add functions");
    let recipe = site.folder.path().join("own.toml");
    // What is made once has a number of its own each time.
    let lines = "'$CC $CFLAGS -fPIC -c -o one.o sqlite3.c', 'mkdir \"$DEST/empty\"',
                 'od -An -tx8 -N8 /dev/urandom > \"$DEST/made\"'";
    let relink = "'$CC -shared -Wl,-T,\"$ORDER\" -o \"$DEST/libsqlite3.so\" one.o'";
    fs::write(&recipe, format!("lines = [{lines}]\nrelink = [{relink}]\n")).expect("write");
    let built = |cache: &Cache, order: &str| {
        let word = format!("{order}+recipe={}", recipe.display());
        let source = source(&site.repository(), Some("HEAD"), Some(&word));
        let clients = PackageClients::default();
        let built = obtain_with(&clients, Dbms::Sqlite, &source, cache, &mut |_| {});
        built.map_err(|error| error.to_string())
    };
    let files = |build: Result<Build, String>| {
        let library = build.expect("a build").root.expect("a library");
        let folder = library.parent().expect("a folder");
        assert!(folder.join("empty").is_dir());
        (fs::read(folder.join("made")).expect("read"), fs::read(&library).expect("read"))
    };
    let (made, one) = files(built(&site.cache, "relink1"));
    assert_eq!(site.cached("partial").len(), 1, "the objects");
    let (again, two) = files(built(&site.cache.clone(), "relink2"));
    assert_eq!(again, made, "the recipe's lines ran once");
    assert_ne!(one, two);
    // An order that cannot be linked does not harm the next one.
    let text = fs::read_to_string(&recipe).expect("read");
    fs::write(&recipe, text.replace("relink = [", "relink = ['false', ")).expect("write");
    let said = built(&site.cache, "relink3").unwrap_err();
    assert!(said.contains("the build exited with 1"), "{said}");
    fs::write(&recipe, text).expect("write");
    assert_eq!(files(built(&site.cache, "relink3")).0, made);

    let Site { folder, cache } = site;
    let root = cache.root().to_owned();
    let place = |name: &str| fs::read_dir(root.join(name)).expect("read").count();
    let other = Cache::open(&root).expect("cache");
    assert_eq!(place("partial"), 1, "they are in use");
    drop(cache);
    assert_eq!((place("partial"), place("builds")), (0, 3), "they go with the cache");
    drop(other);
    drop(folder);
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
    assert!(said.contains("swap them"), "{said}");
    let said = commits(&site.repository(), "HEAD^1", "HEAD^2").unwrap_err().to_string();
    assert!(said.contains("does not come from"), "{said}");
}
