//! Where a trial happens: the folders, the disk, other hosts and servers. All of it is in
//! namespaces of its own, so what is there is there because of the trial.

use std::collections::BTreeSet;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::kinds::{Kind, Trial};
use crate::options::Options;
use crate::record::{Outcome, Record};
use crate::running::{self, Process};
use crate::setups::{Builds, Place, Proxy};
use crate::support::slurm_site::Cluster;
use crate::support::ssh_site::Site;
use crate::support::theirs::Theirs;
use crate::support::{elsewhere, program};
use rqps_model::build::Dbms;

/// rqps, in a folder that everybody can reach.
pub(crate) const RQPS: &str = "/mnt/rqps";
pub(crate) const SHIM: &str = "/mnt/shim.so";
pub(crate) const POWER_CUT: &str = "/mnt/power_cut";
/// Builds; what a trial changes there, others do not see.
pub(crate) const CACHE: &str = "/var/cache/rqps";
/// A user without rights.
pub(crate) const NOBODY: u32 = 65_534;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Bytes of the disk for results and data.
pub(crate) const DISK: &str = "7g";

/// Other hosts or servers.
enum Others {
    Nobody,
    Ssh(Site),
    Slurm(Cluster),
    Theirs(Theirs),
}

/// The scene of one trial.
pub(crate) struct Scene {
    pub(crate) at: PathBuf,
    pub(crate) as_nobody: bool,
    pub(crate) words: Vec<String>,
    pub(crate) resuming: Vec<String>,
    pub(crate) proxy: Option<Proxy>,
    /// The own control group, for the memory of what runs.
    pub(crate) group: Option<PathBuf>,
    others: Others,
    _folder: Option<tempfile::TempDir>,
    before: Listing,
    daemons: BTreeSet<i32>,
}

/// What a run may leave behind on a host.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listing {
    files: BTreeSet<String>,
    mounts: BTreeSet<String>,
    groups: BTreeSet<String>,
    sockets: BTreeSet<String>,
    segments: usize,
}

/// Runs a command that must work.
pub(crate) fn made(words: &[&str]) -> Result<(), String> {
    let output = Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("start {}: {error}", words[0]))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(format!("{}: {}", words.join(" "), program::said(&output).trim()))
    }
}

/// What another user has put where rqps may want to make something.
pub(crate) fn is_squatted(path: &Path) -> bool {
    fs::read_to_string(path.join("whose")).is_ok_and(|text| text == "another's")
}

impl Scene {
    /// Makes all that the trial needs.
    pub(crate) fn make(trial: &Trial, builds: &Builds) -> Result<Scene, String> {
        let others = match trial.setup.place {
            Place::Here => Others::Nobody,
            Place::Ssh | Place::Clients => {
                Others::Ssh(Site::start("faults").ok_or("no site of ssh")?)
            }
            Place::Slurm => Others::Slurm(Cluster::start("faults").ok_or("no site of Slurm")?),
            Place::Dsn => {
                let theirs = Theirs::start("faults", "postgres@17.2.0", Dbms::Postgres);
                Others::Theirs(theirs.ok_or("no server")?)
            }
        };
        let own = || tempfile::Builder::new().prefix("faults-").tempdir();
        let (at, folder) = match &others {
            Others::Ssh(site) => (site.path(""), None),
            Others::Slurm(cluster) => (cluster.path(""), None),
            Others::Nobody | Others::Theirs(_) => {
                let folder = own().map_err(|error| error.to_string())?;
                (folder.path().to_owned(), Some(folder))
            }
        };
        let proxy = match &others {
            Others::Theirs(theirs) => Some(Proxy::start(&at, &theirs.socket())?),
            _ => None,
        };
        let (dsn, as_nobody) = match (&others, &proxy) {
            (Others::Theirs(theirs), Some(proxy)) => {
                let dsn = theirs.dsn("").replace(&text(&theirs.socket()), &text(&proxy.socket));
                (dsn, false)
            }
            _ => (String::new(), trial.as_nobody),
        };
        let mut scene = Scene {
            words: trial.setup.words(builds, &at, &dsn),
            resuming: trial.setup.resuming(&at),
            at,
            as_nobody,
            proxy,
            group: None,
            others,
            _folder: folder,
            before: Listing::default(),
            daemons: BTreeSet::new(),
        };
        scene.furnish(trial).map_err(|error| format!("make the scene: {error}"))?;
        scene.before = scene.listing();
        scene.daemons = running::all().into_iter().map(|process| process.pid).collect();
        Ok(scene)
    }

    fn furnish(&mut self, trial: &Trial) -> Result<(), String> {
        let io = |error: std::io::Error| error.to_string();
        fs::set_permissions(&self.at, fs::Permissions::from_mode(0o755)).map_err(io)?;
        elsewhere::write_configs(&self.at.join("configs"));
        let files = program::files_of_docs("", 4);
        made(&["cp", "-r", &text(files.path()), &text(&self.at.join("sql"))])?;
        made(&["chmod", "-R", "a+rX", &text(&self.at.join("sql"))])?;
        for name in ["disk", "home", "state"] {
            fs::create_dir_all(self.at.join(name)).map_err(io)?;
        }
        self.mount_disk(trial.kind)?;
        if self.as_nobody {
            for name in ["", "disk", "home", "state"] {
                chown(self.at.join(name), Some(NOBODY), Some(NOBODY)).map_err(io)?;
            }
        }
        self.group = own_group().and_then(|group| {
            let path = group.join("run");
            fs::create_dir(&path).ok().map(|()| path)
        });
        if self.group.is_none() && trial.kind == Kind::Memory {
            return Err("no control group for memory".to_owned());
        }
        Ok(())
    }

    /// A disk of its own: in memory, or in a file where it must be able to lose its power.
    fn mount_disk(&self, kind: Kind) -> Result<(), String> {
        let disk = text(&self.disk());
        if kind != Kind::PowerCut {
            let size = format!("size={DISK},mode=755");
            return made(&["mount", "-t", "tmpfs", "-o", &size, "disk", &disk]);
        }
        let image = text(&self.at.join("image"));
        made(&["truncate", "-s", DISK, &image])?;
        made(&["mkfs.ext4", "-q", "-E", "lazy_itable_init=1,nodiscard", &image])?;
        self.mount_image()?;
        made(&["rm", "-rf", &format!("{disk}/lost+found")])?;
        made(&["sync", "-f", &disk])
    }

    pub(crate) fn mount_image(&self) -> Result<(), String> {
        made(&["mount", "-o", "loop", &text(&self.at.join("image")), &text(&self.disk())])
    }

    /// The disk after a restart: the kernel gives it another number than it had.
    pub(crate) fn mount_image_anew(&self) -> Result<(), String> {
        let other = text(&self.at.join("spare-image"));
        made(&["truncate", "-s", "1M", &other])?;
        let taken = Command::new("losetup").args(["--find", "--show", &other]).output();
        let device = taken.map_err(|error| format!("start losetup: {error}"))?.stdout;
        let mounted = self.mount_image();
        made(&["losetup", "--detach", program::text(&device).trim()])?;
        mounted
    }

    /// What the start of a Debian empties: /tmp, and all that is in memory. The kernel names each
    /// start.
    pub(crate) fn start_the_host_anew(&self) -> Result<(), String> {
        let named = text(&self.at.join("boot_id"));
        fs::write(&named, "the second start\n").map_err(|error| error.to_string())?;
        made(&["mount", "--bind", &named, BOOT_ID])?;
        let groups = self.group.iter().flat_map(|group| below(group)).filter(|path| path.is_dir());
        for group in groups.filter(|group| !self.before.groups.contains(&text(group))) {
            made(&["rmdir", &text(&group)])?;
        }
        for path in self.listing().files.difference(&self.before.files) {
            if !path.starts_with("/var/tmp") {
                made(&["rm", "-rf", path])?;
            }
        }
        if self.listing().segments != self.before.segments {
            made(&["ipcrm", "--all=shm"])?;
        }
        Ok(())
    }

    pub(crate) fn disk(&self) -> PathBuf {
        self.at.join("disk")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.at.join("disk/out")
    }

    /// The file that the preloaded library obeys.
    pub(crate) fn order(&self) -> PathBuf {
        self.at.join("order")
    }

    /// It is there once a call got its error.
    pub(crate) fn met(&self) -> PathBuf {
        self.at.join("order.met")
    }

    /// rqps with these words, not started.
    pub(crate) fn rqps(&self, words: &[String], with_shim: bool) -> Command {
        let mut command = Command::new(RQPS);
        command.args(words).env_clear().stdin(Stdio::null()).current_dir(&self.at);
        command.env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
        command.env("HOME", self.at.join("home")).env("RQPS_STATE", self.at.join("state"));
        command.env("RQPS_HOST_LOCK", self.at.join("home/lock")).env("RQPS_CACHE", CACHE);
        if let Others::Slurm(cluster) = &self.others {
            command.env("SLURM_CONF", cluster.path("slurm.conf"));
        }
        if with_shim {
            command.env("LD_PRELOAD", SHIM).env("FAULTS_ORDER", self.order());
            command.env("FAULTS_BELOW", self.disk());
        }
        if self.as_nobody {
            use std::os::unix::process::CommandExt;
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    /// Processes of runs: all but what the scene itself has.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let mut all = running::all();
        let mut own = self.daemons.clone();
        if let Others::Theirs(_) = self.others {
            // Sessions of a server that is not rqps's.
            let of_daemons = all.iter().filter(|one| self.daemons.contains(&one.parent));
            own.extend(of_daemons.map(|one| one.pid));
        }
        all.retain(|process| !own.contains(&process.pid));
        all
    }

    /// What is there and was not before, or the other way round. `is_done`: the plan is at its
    /// end, so its data must be gone, too.
    pub(crate) fn left(&self, is_done: bool) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        let me = i32::try_from(std::process::id()).unwrap_or_default();
        let processes = self.processes().into_iter().filter(|process| process.parent != me);
        left.extend(processes.map(|one| format!("process {} {}", one.pid, one.words.join(" "))));
        let now = self.listing();
        let sets = [
            ("file", &now.files, &self.before.files),
            ("mount", &now.mounts, &self.before.mounts),
            ("control group", &now.groups, &self.before.groups),
            ("socket", &now.sockets, &self.before.sockets),
        ];
        for (what, now, before) in sets {
            left.extend(now.difference(before).map(|one| format!("{what} {one}")));
            // A test beside this one may take away the mount point of its own file system.
            if what != "mount" {
                left.extend(before.difference(now).map(|one| format!("{what} gone: {one}")));
            }
        }
        if now.segments != self.before.segments {
            left.push(format!("{} segments of shared memory", now.segments));
        }
        if is_done {
            left.extend(self.data_left());
        } else {
            // What a plan needs to go on may stay until it does.
            left.retain(|line| !line.starts_with("file /var/tmp/rqps-"));
        }
        left
    }

    /// Data folders, and files that are there in part.
    fn data_left(&self) -> Vec<String> {
        let mut left = Vec::new();
        for path in below(&self.disk()).into_iter().chain(below(&self.at.join("data"))) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_partial = name.starts_with('.') && name.ends_with(".partial");
            if name == ".work" || is_partial || path.ends_with("data") || name == "PG_VERSION" {
                left.push(format!("file {}", path.display()));
            }
        }
        if let Others::Theirs(theirs) = &self.others {
            let schemas = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND \
                           nspname NOT IN ('public', 'information_schema')";
            let rows = theirs.owner_rows(schemas).into_iter().flatten().flatten();
            left.extend(rows.map(|name| format!("schema {name}")));
        }
        if let Others::Ssh(site) = &self.others {
            let here = text(&site.path("home"));
            left.extend(site.left().into_iter().filter(|path| !path.starts_with(&here)));
        }
        left
    }

    fn listing(&self) -> Listing {
        let mut files = BTreeSet::new();
        for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
            let entries = fs::read_dir(folder).into_iter().flatten().flatten();
            let paths = entries.map(|entry| entry.path()).filter(|path| !is_squatted(path));
            files.extend(paths.map(|path| text(&path)));
        }
        let lines = |path: &str| fs::read_to_string(path).unwrap_or_default();
        // The program is mounted where cargo may build it anew meanwhile.
        let is_own = |path: &String| [env!("CARGO_BIN_EXE_rqps"), BOOT_ID].contains(&path.as_str());
        let mounts = lines("/proc/self/mounts");
        let mounts = mounts.lines().map(mount_point).filter(|path| !is_own(path)).collect();
        let groups = self.group.iter().flat_map(|group| below(group)).filter(|path| path.is_dir());
        let groups = groups.map(|path| text(&path)).collect();
        let unix = lines("/proc/net/unix");
        let named = unix.lines().filter_map(|line| line.split_whitespace().nth(7));
        // Ports that listen.
        let tcp = lines("/proc/net/tcp") + &lines("/proc/net/tcp6");
        let ports = tcp.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let ports = ports.filter(|words| words.get(3) == Some(&"0A")).map(|words| words[1].into());
        Listing {
            files,
            mounts,
            groups,
            sockets: named.map(str::to_owned).chain(ports).collect(),
            segments: lines("/proc/sysvipc/shm").lines().count(),
        }
    }
}

fn mount_point(line: &str) -> String {
    line.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// The path as text.
pub(crate) fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Everything below a folder; no link is followed.
pub(crate) fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(below(&path));
        }
        found.push(path);
    }
    found
}

/// The memory group of this process, if it is one of the campaign's own.
fn own_group() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mount =
        if groups.contains(":memory:") { "/sys/fs/cgroup/memory" } else { "/sys/fs/cgroup" };
    let own = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controller, path) = (parts.next()?, parts.next()?);
        let is_memory = controller == "memory" || (controller.is_empty() && mount.len() < 16);
        is_memory.then(|| path.to_owned())
    })?;
    own.contains("rqps-faults-").then(|| PathBuf::from(format!("{mount}{own}")))
}

// The room that trials happen in: namespaces in which this program runs again.

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
