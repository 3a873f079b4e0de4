//! Folders that rqps may not write or does not know, and systems that it does not support: what
//! still works, and what users read where it does not.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::support::skipped;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::program::{text, turn};

/// A user without rights.
const NOBODY: u32 = 65_534;
/// Environment variables that decide the folders of rqps.
const VARIABLES: [&str; 5] =
    ["HOME", "RQPS_CACHE", "RQPS_STATE", "XDG_CACHE_HOME", "XDG_STATE_HOME"];

/// A short measurement of a target that needs no build.
const SHORT: [&str; 17] = [
    "compare", "sqlite", "b=sqlite", "--steps", "point-query", "--set", "rows=1000", "--set",
    "read_seconds=0.1", "--set", "warmup_seconds=0", "--blocks", "1", "--canaries", "off", "--out",
    "out",
];

/// A folder that all may write, with rqps in it, and one that nobody may write.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let mut builder = tempfile::Builder::new();
        let folder = builder.permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
        let scene = Scene { folder };
        for (path, mode) in [(scene.open(), 0o777), (scene.closed(), 0o555)] {
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        // The folder of the program may be closed to others.
        let (from, to) = (env!("CARGO_BIN_EXE_rqps"), scene.open().join("rqps"));
        fs::hard_link(from, &to).or_else(|_| fs::copy(from, &to).map(|_| ())).unwrap();
        scene
    }

    fn open(&self) -> PathBuf {
        self.folder.path().join("open")
    }

    fn closed(&self) -> PathBuf {
        self.folder.path().join("closed")
    }

    /// rqps in the open folder, by a user whom modes stop, without any folder of its own.
    fn rqps(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.open().join("rqps"));
        command.args(words).current_dir(self.open()).stdin(Stdio::null());
        for name in VARIABLES {
            command.env_remove(name);
        }
        command.env("RQPS_HOST_LOCK", self.open().join("lock"));
        if rustix::process::geteuid().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// [`SHORT`] there.
    fn measure(&self) -> Command {
        self.rqps(&SHORT)
    }

    fn check_measures(&self, command: &mut Command) {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("point-query"), "{}", text(&output.stdout));
        assert!(self.open().join("out/plan.toml").exists());
        let inside = fs::read_dir(self.closed()).unwrap().count();
        assert_eq!(inside, 0, "nobody can write there");
    }
}

/// The message of a command that must fail.
fn refused(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{said}");
    said
}

#[test]
fn a_read_only_home_stops_only_what_is_kept_there() {
    let _turn = turn();
    let scene = Scene::new();
    let home = scene.closed();
    scene.check_measures(scene.measure().env("HOME", &home));
    let said = refused(scene.rqps(&["get", "postgres@17.2.0"]).env("HOME", &home));
    let place = home.join(".cache/rqps");
    assert!(
        said.contains(&format!("not in the cache {}, which is not", place.display())),
        "{said}"
    );
    assert!(said.contains("name another folder with RQPS_CACHE"), "{said}");
    // Known before anything is measured.
    let said = refused(scene.rqps(&["doctor", "--aa", "sqlite"]).env("HOME", &home));
    let place = home.join(".local/state/rqps/calibrations");
    let expected = format!("keep a calibration in {}; name another folder", place.display());
    assert!(said.contains(&expected) && said.contains("RQPS_STATE"), "{said}");
}

#[test]
fn without_a_home_everything_is_beside_the_results() {
    let _turn = turn();
    let scene = Scene::new();
    scene.check_measures(&mut scene.measure());
    let listed = scene.rqps(&["builds", "sqlite"]).output().unwrap();
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    assert!(scene.open().join("rqps-results/.cache/builds").is_dir());
}

#[test]
fn a_cache_without_write_permission_stops_only_what_is_to_be_fetched() {
    let _turn = turn();
    let scene = Scene::new();
    scene.check_measures(scene.measure().env("RQPS_CACHE", scene.closed()));
    let said = refused(scene.rqps(&["get", "postgres@17.2.0"]).env("RQPS_CACHE", scene.closed()));
    let expected = format!("not in the cache {}, which is not", scene.closed().display());
    assert!(said.contains(&expected), "{said}");
}

/// As root in a container that has no users. Needs the right to mount.
#[test]
fn root_without_users_measures_what_needs_no_server() {
    let _turn = turn();
    let without_users = |command: &Command| {
        let script = "mount --bind /dev/null /etc/passwd && exec \"$@\"";
        let mut wrapped = Command::new("unshare");
        wrapped.args(["--mount", "sh", "-c", script, "sh"]).arg(command.get_program());
        wrapped.args(command.get_args()).stdin(Stdio::null());
        wrapped
    };
    if !without_users(&Command::new("true")).output().is_ok_and(|output| output.status.success()) {
        return skipped::note("root_without_users", "no right to mount");
    }
    let scene = Scene::new();
    // Root keeps no data where the user who runs libraries may write.
    fs::set_permissions(scene.open(), Permissions::from_mode(0o755)).unwrap();
    let command = |words: &[&str]| {
        let mut command = without_users(&scene.rqps(words));
        command.current_dir(scene.open()).env("RQPS_HOST_LOCK", scene.open().join("lock"));
        command
    };
    scene.check_measures(&mut command(&SHORT));
    let said =
        refused(&mut command(&["compare", "postgres=/usr", "b=postgres=/usr", "--blocks", "1"]));
    assert!(said.contains("find the user 'nobody'") && said.contains("useradd"), "{said}");
}

/// The settings for conditional compilation on a target.
fn settings(target: &str) -> String {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    text(&command.args(["--print", "cfg", "--target", target]).output().unwrap().stdout)
}

#[test]
fn the_compiler_refuses_systems_without_glibc() {
    // The standard library of such a target is rarely there, so the condition is tried.
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rqps-host/src/lib.rs");
    let source = fs::read_to_string(source).unwrap();
    let guard = "#[cfg(not(all(target_os = \"linux\", target_env = \"gnu\")))]\ncompile_error!(";
    let words = source.split(guard).nth(1).expect("the guard").split(");").next().unwrap();
    assert!(words.contains("rqps needs Linux with glibc") && words.contains("Alpine"), "{words}");
    let check = |target: &str, expected: bool| {
        let settings = settings(target);
        let holds = |wanted: &str| settings.lines().any(|line| line == wanted);
        let supported = holds("target_os=\"linux\"") && holds("target_env=\"gnu\"");
        assert_eq!(supported, expected, "{target}: {settings}");
    };
    check("x86_64-unknown-linux-gnu", true);
    check("aarch64-unknown-linux-gnu", true);
    check("x86_64-unknown-linux-musl", false);
    check("aarch64-unknown-linux-musl", false);
    check("x86_64-apple-darwin", false);
}

#[test]
fn all_files_name_the_same_oldest_glibc() {
    let read = |name: &str| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)).unwrap()
    };
    let script = read("scripts/release");
    let oldest = script.lines().find_map(|line| line.strip_prefix("glibc=")).unwrap();
    // manylinux2014 is the tag of wheels for glibc 2.17 (PEP 599).
    assert_eq!((oldest, script.contains("manylinux2014")), ("2.17", true));
    let page = read("docs/installing.md");
    assert!(page.contains(&format!("needs glibc {oldest} or later")));
    // What the system's loader says where it is older.
    assert!(page.contains(&format!("| `version 'GLIBC_{oldest}' not found` |")));
}
