//! The room that trials happen in: namespaces in which this program runs again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::draw::Trial;
use crate::options::Options;
use crate::record::{Outcome, Record};
use crate::scene::made;
use crate::support::program;

/// A trial that takes longer has hung.
const PATIENCE: Duration = Duration::from_secs(500);
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults");
const BUILT: &str = env!("CARGO_BIN_EXE_rqps");

/// Makes the namespaces' own /tmp and the like, and keeps within reach what may be in the old one:
/// $1 rqps, $2 where it was built, $3 the repository, $4 this program, $5 the compiled helpers,
/// $6 the control group.
const ENTER: &str = r#"
set -e
[ -z "$6" ] || echo 0 > "$6/cgroup.procs"
mount -t tmpfs -o mode=755,size=64m mnt /mnt
for file in rqps faults; do : > /mnt/$file; done
mount --bind "$1" /mnt/rqps
mount --bind "$4" /mnt/faults
cp "$5/shim.so" "$5/power_cut" /mnt
mkdir /mnt/repository /mnt/upper /mnt/work
mount --bind "$3" /mnt/repository
[ -d /var/cache/rqps ] || { mount -t tmpfs cache /var/cache; mkdir /var/cache/rqps; }
mount -t overlay -o lowerdir=/var/cache/rqps,upperdir=/mnt/upper,workdir=/mnt/work o /var/cache/rqps
for folder in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o mode=1777 tmp $folder; done
[ -e "$3/Cargo.toml" ] || { mkdir -p "$3"; mount --bind /mnt/repository "$3"; }
[ -e "$2" ] || { mkdir -p "${2%/*}"; : > "$2"; }
mount --bind /mnt/rqps "$2"
ip link set lo up
# Programs that ask for names need an address that is not the host's own.
ip address add 192.0.2.1/32 dev lo
shift 6
unset TMPDIR
/mnt/faults "$@"
exit $?
"#;

/// What all trials share.
pub(crate) struct Room {
    repository: PathBuf,
    helpers: PathBuf,
    me: PathBuf,
    /// The own memory group, below which each trial has one.
    group: Option<PathBuf>,
}

impl Room {
    /// Compiles the helpers and looks whether this machine lets it make namespaces.
    ///
    /// # Errors
    /// The reason why there can be no trials here.
    pub(crate) fn prepare() -> Result<Room, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("needs root, for namespaces and mounts".to_owned());
        }
        made(&["unshare", "--mount", "--ipc", "--pid", "--net", "--fork", "ip", "link"])?;
        let helpers = Path::new(env!("CARGO_TARGET_TMPDIR")).join("faults");
        fs::create_dir_all(&helpers).map_err(|error| error.to_string())?;
        let at = |name: &str| helpers.join(name).display().to_string();
        let source = |name: &str| format!("{SOURCES}/{name}");
        let (shim, cut) = (at("shim.so"), at("power_cut"));
        made(&["cc", "-shared", "-fPIC", "-O1", "-o", &shim, &source("shim.c"), "-ldl"])?;
        made(&["cc", "-O1", "-o", &cut, &source("power_cut.c")])?;
        let me = std::env::current_exe().map_err(|error| error.to_string())?;
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let repository = repository.canonicalize().map_err(|error| error.to_string())?;
        Ok(Room { repository, helpers, me, group: memory_group() })
    }

    /// One trial in namespaces of its own; all that is left in them ends with it.
    pub(crate) fn carry_out(&self, options: &Options, trial: &Trial) -> Record {
        let group = self.group.as_ref().and_then(|group| {
            let name = format!("rqps-faults-{}-{}", std::process::id(), trial.number);
            let path = group.join(name);
            fs::create_dir(&path).ok().map(|()| path)
        });
        let mut command = Command::new("unshare");
        command.args(["--mount", "--ipc", "--pid", "--net", "--fork", "--kill-child"]);
        command.args(["--mount-proc", "bash", "-c", ENTER, "bash"]);
        command.arg(options.program.as_deref().unwrap_or(Path::new(BUILT))).arg(BUILT);
        command.arg(&self.repository).arg(&self.me).arg(&self.helpers);
        command.arg(group.as_deref().unwrap_or(Path::new("")));
        command.args(options.words_inside(trial.number)).stdin(Stdio::null());
        let said = self.helpers.join(format!("{}-{}.txt", trial.seed, trial.number));
        let result = run(command, &said);
        let text = fs::read_to_string(&said).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("RECORD "));
        let record = line.and_then(Record::read).unwrap_or_else(|| {
            let last = text.lines().last().unwrap_or_default().to_owned();
            let note = result.err().unwrap_or(last);
            let mut broken = Record::of(trial);
            (broken.outcome, broken.note) = (Outcome::Broken, note);
            broken
        });
        if let Some(group) = group {
            remove_group(&group);
        }
        if !matches!(record.outcome, Outcome::Lost | Outcome::Broken) && !options.keeps() {
            fs::remove_file(&said).ok();
        }
        record
    }
}

fn run(mut command: Command, said: &Path) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let file = fs::File::create(said).map_err(io)?;
    command.stdout(file.try_clone().map_err(io)?).stderr(file);
    let mut child = command.spawn().map_err(io)?;
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().map_err(io)?.is_none() {
        if Instant::now() > deadline {
            child.kill().and_then(|()| child.wait()).map_err(io)?;
            return Err(format!("the trial took more than {} s", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// The memory group of this process, in the first version of control groups.
fn memory_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|line| line.split_once(":memory:"))?.1;
    Some(Path::new("/sys/fs/cgroup/memory").join(own.trim_start_matches('/')))
}

/// A group can go as soon as its last process has.
fn remove_group(group: &Path) {
    for _ in 0..200 {
        for folder in crate::scene::below(group).iter().rev().filter(|path| path.is_dir()) {
            fs::remove_dir(folder).ok();
        }
        if fs::remove_dir(group).is_ok() || !group.exists() {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    eprintln!("the control group {} is left", program::text(group.as_os_str().as_encoded_bytes()));
}
