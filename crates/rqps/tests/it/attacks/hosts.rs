//! Measuring hosts, source trees and packages of strangers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::program::{rqps_in, said, text, turn};

/// Variables that no child may see.
const SECRETS: [(&str, &str); 3] = [
    ("AWS_SECRET_ACCESS_KEY", "rqps-secret-1"),
    ("GITHUB_TOKEN", "rqps-secret-2"),
    ("PGPASSWORD", "rqps-secret-3"),
];

/// As much of SQLite as is looked for in a library.
const LIBRARY: &str = "const char version[] = \"3.99.1\";\n\
                       int sqlite3_prepare_v2(void) { return version[0]; }\n";

/// A folder that everybody may enter, as the user who builds must.
fn open_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    folder
}

/// A folder that everybody may write into, for traces of an attack.
fn traces(folder: &Path) -> PathBuf {
    let traces = folder.join("traces");
    fs::create_dir(&traces).unwrap();
    fs::set_permissions(&traces, Permissions::from_mode(0o777)).unwrap();
    traces
}

fn program(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

fn get(target: &str, folder: &Path) -> Output {
    let cache = folder.join("cache").display().to_string();
    rqps_in(&["get", target, "--cache", &cache], folder).envs(SECRETS).output().unwrap()
}

fn git(folder: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let done = command.args(words).output().unwrap();
    assert!(done.status.success(), "{words:?} {}", text(&done.stderr));
}

fn sources(folder: &Path) -> PathBuf {
    let sources = folder.join("sources");
    fs::create_dir(&sources).unwrap();
    fs::write(sources.join("sqlite3.c"), LIBRARY).unwrap();
    fs::write(sources.join("sqlite3.h"), "").unwrap();
    sources
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A file of traces, which must not hold the user id of root or a variable of the user's.
fn check_stranger(trace: &Path) {
    let found = fs::read_to_string(trace).unwrap();
    for (_, secret) in SECRETS {
        assert!(!found.contains(secret), "{found}");
    }
    assert!(!is_root() || !found.lines().any(|line| line == "uid=0"), "{found}");
}

#[test]
fn a_repository_runs_no_program_of_its_own_configuration() {
    let folder = open_folder();
    let traces = traces(folder.path());
    let repository = sources(folder.path());
    fs::write(repository.join(".gitattributes"), "* filter=evil diff=evil\n").unwrap();
    git(&repository, &["init", "-q", "-b", "main", "."]);
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-q", "-m", "Import"]);
    let evil = folder.path().join("evil");
    program(&evil, &format!("#!/bin/sh\necho $0 >> {}/ran\nexec cat\n", traces.display()));
    let evil = evil.display().to_string();
    for name in [
        "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass",
        "core.alternateRefsCommand", "filter.evil.clean", "filter.evil.smudge",
        "filter.evil.process", "diff.external", "diff.evil.command", "diff.evil.textconv",
        "gpg.program", "tar.tar.command", "uploadpack.packObjectsHook", "alias.archive",
    ] {
        git(&repository, &["config", name, &evil]);
    }
    for (name, value) in [
        ("filter.evil.required", "true"),
        ("log.showSignature", "true"),
        ("core.hooksPath", folder.path().to_str().unwrap()),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", &format!("ext::{evil}")),
        ("protocol.ext.allow", "always"),
    ] {
        git(&repository, &["config", name, value]);
    }
    // As a changed file: git looks at its content, if it trusts no time.
    let touched = fs::File::options().append(true).open(repository.join("sqlite3.h")).unwrap();
    touched.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    for target in ["sqlite=src:sources", "sqlite=src:sources@HEAD", "sqlite=src:sources@HEAD~9"] {
        let said = said(&get(target, folder.path()));
        let ran = fs::read_to_string(traces.join("ran")).unwrap_or_default();
        assert_eq!(ran, "", "{target}: {said}");
        assert!(target.ends_with('9') || !said.contains("failed"), "{target}: {said}");
    }
    fs::write(repository.join("sqlite3.h"), "/* changed */\n").unwrap();
    let output = get("sqlite=src:sources", folder.path());
    assert!(said(&output).contains("not committed"), "{}", said(&output));
    assert!(!traces.join("ran").exists());
}

#[test]
fn a_recipe_sees_no_keys_of_the_user() {
    let folder = open_folder();
    sources(folder.path());
    let traces = traces(folder.path());
    let recipe = format!(
        "echo uid=$(id -u) > {0}/trace; env >> {0}/trace\n\
         cc -shared -fPIC -o libsqlite3.so sqlite3.c && mkdir -p \"$DEST/lib\" && \
         cp libsqlite3.so \"$DEST/lib\"\n",
        traces.display()
    );
    fs::write(folder.path().join("recipe.sh"), recipe).unwrap();
    let output = get("sqlite=src:sources+recipe=./recipe.sh", folder.path());
    let trace = traces.join("trace");
    assert!(trace.exists(), "{}", said(&output));
    check_stranger(&trace);
}

#[test]
fn what_is_asked_for_its_version_is_nobody_and_knows_nothing() {
    let folder = open_folder();
    let traces = traces(folder.path());
    let server = format!(
        "#!/bin/sh\necho uid=$(id -u) > {0}/trace; env >> {0}/trace\n\
         for n in 3 4 5 6 7 8 9; do\n\
         (: >&$n) 2> /dev/null && echo rqps-secret-$n >> {0}/trace\ndone\n\
         sleep 60 &\n\
         echo 'postgres (PostgreSQL) 17.2'\n",
        traces.display()
    );
    program(&folder.path().join("tree/bin/postgres"), &server);
    let tree = folder.path().join("tree");
    let output = get(&format!("postgres={}", tree.display()), folder.path());
    assert!(traces.join("trace").exists(), "{}", said(&output));
    check_stranger(&traces.join("trace"));
}

/// A host that answers as any other, and sends back what this script makes of the results.
fn hostile_host(folder: &Path, attack: &str) -> Output {
    let _turn = turn();
    measuring_on(folder, "", attack).output().unwrap()
}

/// The same, not started. The host does something `first`.
fn measuring_on(folder: &Path, first: &str, attack: &str) -> Command {
    let ssh = format!(
        "#!/bin/sh\n\
         export RQPS_HOST_LOCK={0}/lock-there\n\
         echo \"$@\" >> {0}/words\n\
         for word; do script=$word; done\n\
         {first}\n\
         case $* in *' -O '*|*' -- evil true') exit 0;; esac\n\
         cd / && exec sh -c \"$script\"\n",
        folder.display()
    );
    program(&folder.join("programs/ssh"), &ssh);
    let tar = format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{attack}\n");
    program(&folder.join("programs/tar"), &tar);
    let path = std::env::var("PATH").unwrap();
    let words = [
        "compare", "fake@1", "--steps", "point-query", "--blocks", "1", "--canaries", "off",
        "--on", "ssh:evil", "--out", "out",
    ];
    let mut command = rqps_in(&words, folder);
    command.env("PATH", format!("{}:{path}", folder.join("programs").display()));
    command.env("HOME", folder.join("there")).envs(SECRETS);
    command
}

/// Whoever waits for a host, or for git in somebody's repository, hears the first Ctrl-C.
fn check_interrupt(mut command: Command, is_waiting: impl Fn(u32) -> bool) {
    let mut rqps = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let is_so = |what: &mut dyn FnMut() -> bool| {
        (0..900).any(|_| {
            thread::sleep(Duration::from_millis(100));
            what()
        })
    };
    let id = rqps.id();
    let waits = is_so(&mut || is_waiting(id));
    let pid = Pid::from_raw(id.cast_signed()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let ends = is_so(&mut || rqps.try_wait().unwrap().is_some());
    rqps.kill().ok();
    assert!(waits && ends, "{}", said(&rqps.wait_with_output().unwrap()));
}

#[test]
fn a_host_that_floods_or_says_nothing_is_left() {
    let _turn = turn();
    for first in [
        "case $* in *'-- evil true') exec yes >&2;; esac",
        "case $script in *uname*) exec yes;; esac",
        "case $script in *'tar -cf'*) sh -c \"$script\"; exec yes >&2;; esac",
    ] {
        let folder = open_folder();
        fs::create_dir(folder.path().join("there")).unwrap();
        let output = measuring_on(folder.path(), first, "tar -cf - .").output().unwrap();
        assert!(!output.status.success(), "{first}");
        assert!(said(&output).contains("more than anybody reads"), "{first}: {}", said(&output));
    }
    for at in ["case $* in *'-- evil true')", "case $script in *uname*)"] {
        let folder = open_folder();
        fs::create_dir(folder.path().join("there")).unwrap();
        let asked = folder.path().join("asked");
        let first = format!("{at} touch {}; exec sleep 900;; esac", asked.display());
        check_interrupt(measuring_on(folder.path(), &first, ""), |_| asked.exists());
    }
}

/// A pipe in the place of an object, for whose end git would wait for ever.
#[test]
fn a_repository_that_says_nothing_is_left() {
    let folder = open_folder();
    let repository = sources(folder.path());
    git(&repository, &["init", "-q", "-b", "main", "."]);
    git(&repository, &["add", "-A"]);
    git(&repository, &["commit", "-q", "-m", "Import"]);
    let object = repository.join(".git/objects/e6/9de29bb2d1d6434b8b29ae775ad8c2e48c5391");
    fs::remove_file(&object).expect("the object of the empty file");
    let mode = rustix::fs::Mode::from_raw_mode(0o644);
    rustix::fs::mknodat(rustix::fs::CWD, &object, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let cache = folder.path().join("cache").display().to_string();
    let words = ["get", "sqlite=src:sources@HEAD", "--cache", &cache];
    let command = rqps_in(&words, folder.path());
    check_interrupt(command, |pid| {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let command = |pid| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        children
            .unwrap_or_default()
            .split_whitespace()
            .any(|pid| text(&command(pid)).contains("archive"))
    });
}

#[test]
fn a_measuring_host_writes_no_files_of_the_user() {
    let attacks: [(&str, &str, &str); 5] = [
        // A folder that is a link, and a file in it.
        (
            "link",
            "d=$(mktemp -d); cp -r . $d/c; cd $d/c; ln -s FOLDER link; tar -cf $d/t .; \
             mkdir $d/x; cd $d/x; mkdir link; echo evil > link/evil; tar -rf $d/t ./link/evil; \
             cat $d/t; rm -rf $d",
            "neither a folder nor a plain file",
        ),
        (
            "parent",
            "d=$(mktemp -d); echo evil > $d/evil; \
             tar -cPf - --transform 's,.*,../../../evil,' $d/evil; rm -rf $d",
            "leads out",
        ),
        (
            "label",
            "sed -i 's,\"label\": *\"[^\"]*\",\"label\": \"x/../../evil\",' block.json; \
             tar -cf - .",
            "is not the label of a target",
        ),
        (
            "other run",
            "sed -i 's/\"order\": *1/\"order\": 7/' block.json; tar -cf - .",
            "a run that is not of this block",
        ),
        ("cut", "head -c 300000 /dev/zero | tr '\\0' x >&2; exit 3", "on evil"),
    ];
    for (name, attack, expected) in attacks {
        let folder = open_folder();
        fs::create_dir(folder.path().join("there")).unwrap();
        let attack = attack.replace("FOLDER", &folder.path().display().to_string());
        let output = hostile_host(folder.path(), &attack);
        let said = said(&output);
        assert!(!output.status.success(), "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
        assert!(!folder.path().join("evil").exists(), "{name}");
        assert!(!folder.path().join("out/evil").exists(), "{name}");
        let words = fs::read_to_string(folder.path().join("words")).unwrap();
        for option in ["ForwardAgent=no", "ForwardX11=no", "PermitLocalCommand=no"] {
            assert!(words.lines().all(|line| line.contains(option)), "{option}: {words}");
        }
    }
}

#[test]
fn an_honest_host_measures() {
    let folder = open_folder();
    fs::create_dir(folder.path().join("there")).unwrap();
    let output = hostile_host(folder.path(), "tar -cf - .");
    assert!(output.status.success(), "{}", said(&output));
    assert!(folder.path().join("out/b01-1-fake-1/run.json").is_file());
}

#[test]
fn a_name_of_a_host_is_no_option() {
    let folder = open_folder();
    for host in ["-oProxyCommand=touch evil", "a@-oProxyCommand=x", "a;touch evil", "a b"] {
        let on = format!("ssh:{host}");
        let words = ["compare", "fake@1", "--blocks", "1", "--on", &on, "--out", "out"];
        let output = rqps_in(&words, folder.path()).output().unwrap();
        assert!(!output.status.success() && said(&output).contains("host"), "{}", said(&output));
        assert!(!folder.path().join("evil").exists());
    }
}

#[test]
fn a_build_that_is_a_link_changes_no_rights_elsewhere() {
    let folder = open_folder();
    sources(folder.path());
    let closed = folder.path().join("closed");
    fs::create_dir_all(closed.join("lib")).unwrap();
    fs::write(closed.join("lib/libsqlite3.so"), "x").unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
    let recipe = format!(
        "mkdir -p \"$DEST$(dirname $PREFIX)\"; ln -s {} \"$DEST$PREFIX\"\n",
        closed.display()
    );
    fs::write(folder.path().join("recipe.sh"), recipe).unwrap();
    let output = get("sqlite=src:sources+recipe=./recipe.sh", folder.path());
    assert!(!output.status.success(), "{}", said(&output));
    let mode = fs::metadata(&closed).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o700, "{}", said(&output));
}

#[test]
fn a_library_under_test_is_nobody_and_knows_nothing() {
    let folder = open_folder();
    let traces = traces(folder.path());
    let library = format!(
        "#include <stdlib.h>\n\
         const char version[] = \"3.99.1\";\n\
         int sqlite3_prepare_v2(void) {{ return version[0]; }}\n\
         __attribute__((constructor)) static void loaded(void) {{\n\
         system(\"(echo uid=$(id -u); env) >> {}/trace\");\n}}\n",
        traces.display()
    );
    fs::write(folder.path().join("evil.c"), library).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o", "libsqlite3.so", "evil.c"]).current_dir(folder.path());
    assert!(cc.status().unwrap().success());
    let word = format!("sqlite={}", folder.path().join("libsqlite3.so").display());
    let words = ["compare", &word, "--steps", "point-query", "--blocks", "1", "--out", "out"];
    let _turn = turn();
    let output = rqps_in(&words, folder.path()).envs(SECRETS).output().unwrap();
    assert!(!output.status.success(), "{}", said(&output));
    assert!(traces.join("trace").exists(), "{}", said(&output));
    check_stranger(&traces.join("trace"));
}
