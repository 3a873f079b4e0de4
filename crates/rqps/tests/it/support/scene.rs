//! A folder of its own for one test, rqps started in it, and what can be seen of that from
//! outside: processes in /proc, steps on disk.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

/// Scenes take turns: they share a lock of the host, and the machine is small.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Nothing here takes long; this is how long a broken test takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// So soon after the end of rqps nothing that it started may be left.
const GONE: Duration = Duration::from_secs(20);
/// A variable that rqps and what it starts of itself have; servers get an environment of their own.
const MARK: &str = "RQPS_TEST_SCENE";

/// A scratch folder with results in `out` and configs in `configs`.
pub(crate) struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        let mut builder = tempfile::Builder::new();
        let folder = match roomy_memory() {
            // Nothing here is about the speed of the disk.
            Some(memory) => builder.prefix("rqps-live-").tempdir_in(memory).unwrap(),
            None => builder.prefix("rqps-live-").tempdir().unwrap(),
        };
        // The user of servers goes through it.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(folder.path().join("configs")).unwrap();
        let scene = Scene { folder };
        // The redo log is most of a small data folder of MySQL, and is copied with it.
        scene.configure("mysql", "small", "innodb_redo_log_capacity = 8M");
        scene.configure("postgres", "small", "");
        scene
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a config: the shipped one of `dbms` with `more` at its end.
    pub(crate) fn configure(&self, dbms: &str, name: &str, more: &str) {
        let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs").join(dbms);
        let shipped = fs::read_to_string(shipped.join("default.conf")).unwrap();
        let folder = self.path("configs").join(dbms);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.conf")), format!("{shipped}\n{more}\n")).unwrap();
    }

    pub(crate) fn rqps(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
        // Two test programs may run at once, as in `.ci/run`.
        let name = format!("live-{}.lock", std::process::id());
        let lock = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        command.env("RQPS_HOST_LOCK", lock).env(MARK, self.folder.path());
        // What was found out about this host must not decide how often a block is measured.
        command.env("RQPS_STATE", concat!(env!("CARGO_TARGET_TMPDIR"), "/no-calibrations"));
        command.stdin(Stdio::null());
        command
    }

    /// `compare TARGETS…` into `out`: small tables, short steps.
    pub(crate) fn compare(&self, targets: &[&str], more: &[&str]) -> Command {
        let mut command = self.rqps();
        command.arg("compare").args(targets).arg("--out").arg(self.path("out"));
        command.arg("--configs").arg(self.path("configs")).args(["--canaries", "off"]);
        let sizes = ["tables=2", "rows=2000", "read_seconds=0.3", "write_seconds=0.3"];
        for setting in sizes.iter().chain(&["warmup_seconds=0", "settle_scale=0"]) {
            command.args(["--set", setting]);
        }
        command.args(more);
        command
    }

    /// Goes on with what is in `out`.
    pub(crate) fn resume(&self) -> Command {
        let mut command = self.rqps();
        command.args(["run", "--resume"]).arg(self.path("out"));
        command.arg("--configs").arg(self.path("configs"));
        command
    }

    pub(crate) fn report(&self) -> Command {
        let mut command = self.rqps();
        command.arg("report").arg(self.path("out"));
        command
    }

    /// Starts it with its words going to `said`.
    pub(crate) fn start(&self, mut command: Command) -> Running {
        let said = self.path("said");
        let file = fs::File::create(&said).unwrap();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Running { child, said }
    }

    /// Steps that are whole on disk.
    pub(crate) fn steps(&self) -> Vec<PathBuf> {
        let mut steps = Vec::new();
        for run in entries(&self.path("out")) {
            let of_run = entries(&run.join("steps"));
            steps.extend(
                of_run.into_iter().filter(|path| path.extension() == Some("json".as_ref())),
            );
        }
        steps.sort();
        steps
    }

    /// The records of all runs, by folder name.
    pub(crate) fn runs(&self) -> Vec<(PathBuf, Json)> {
        let all = entries(&self.path("out")).into_iter();
        let read = |path: PathBuf| {
            let bytes = fs::read(path.join("run.json")).ok()?;
            Some((path, serde_json::from_slice(&bytes).unwrap()))
        };
        let mut runs: Vec<_> = all.filter_map(read).collect();
        runs.sort_by(|a, b| a.0.cmp(&b.0));
        runs
    }

    /// Processes of this scene: rqps in all its forms, and servers.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let own = self.folder.path().to_string_lossy().into_owned();
        let mark = format!("{MARK}={own}");
        let mut found = Vec::new();
        for path in entries(Path::new("/proc")) {
            let Some(pid) = path.file_name().and_then(|name| name.to_str()?.parse().ok()) else {
                continue;
            };
            let read = |name| {
                let bytes = fs::read(path.join(name)).ok()?;
                Some(String::from_utf8_lossy(&bytes).into_owned())
            };
            let Some(words) = read("cmdline") else { continue };
            let here = fs::read_link(path.join("cwd")).unwrap_or_default().starts_with(&own);
            let marked = read("environ").unwrap_or_default().split('\0').any(|word| word == mark);
            if here || marked || words.contains(&own) {
                found.push(Process { pid, words: words.replace('\0', " ") });
            }
        }
        found
    }

    /// Waits until nothing is left of rqps `pid`, processes and sockets.
    pub(crate) fn check_nothing_is_left(&self, pid: u32) {
        let began = Instant::now();
        let sockets = || {
            let prefix = format!("rqps-{pid}-");
            let all = entries(Path::new("/tmp")).into_iter();
            let is_own = |path: &PathBuf| path.to_string_lossy().contains(&prefix);
            all.filter(is_own).collect::<Vec<_>>()
        };
        loop {
            let (processes, sockets) = (self.processes(), sockets());
            if processes.is_empty() && sockets.is_empty() {
                return;
            }
            let left = format!("{processes:?} {sockets:?}");
            assert!(began.elapsed() < GONE, "left by rqps {pid}: {left}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A file system in memory, if there is one with room for several data folders.
fn roomy_memory() -> Option<&'static Path> {
    let memory = Path::new("/dev/shm");
    let facts = rustix::fs::statvfs(memory).ok()?;
    (facts.f_bavail * facts.f_frsize > 6 << 30).then_some(memory)
}

/// A process and its command line.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) words: String,
}

/// An rqps at work. It does not outlive its test.
pub(crate) struct Running {
    child: Child,
    said: PathBuf,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its output so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.said).unwrap_or_default()
    }

    /// Waits until `seen` or its end; the end is returned.
    pub(crate) fn until(&mut self, mut seen: impl FnMut(&str) -> bool) -> Option<ExitStatus> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            if seen(&self.said()) {
                return None;
            }
            assert!(began.elapsed() < PATIENCE, "waited in vain; it said: {}", self.said());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.until(|_| false).expect("an end")
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Sends a signal.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
