//! Carries a fault out, and takes it back when the run has ended.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown, lchown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rqps_model::units::short_hash;
use rustix::process::{Resource, Rlimit, Signal};

use crate::kinds::Trial;
use crate::kinds::{Kind, Role};
use crate::running::Running;
use crate::running::{self, signal};
use crate::scene::{CACHE, DISK, NOBODY, POWER_CUT, Scene, below, made, text};

/// What was done, or that there was nothing to do it to.
pub(crate) enum Blow {
    Struck(String),
    /// No process of that role is there now.
    NoVictim,
    /// It went wrong in the scene itself.
    Broken(String),
    /// It showed a defect at once.
    Wrong(String),
}

/// Room that a full disk still has, at most.
const ROOM: u64 = 256 << 10;

/// Ports that are taken.
static TAKEN: Mutex<Vec<TcpListener>> = Mutex::new(Vec::new());

/// Strikes once.
pub(crate) fn strike(trial: &Trial, scene: &Scene, run: &mut Running) -> Blow {
    let dice = trial.dice;
    let done = match trial.kind {
        Kind::Kill(role) => {
            return on_process(scene, run, role, dice, &|pid| {
                signal(pid, Signal::KILL);
                String::new()
            });
        }
        Kind::Stop(role) => return on_process(scene, run, role, dice, &|pid| stop(pid, dice)),
        Kind::Ask(which) => {
            signal(run.pid(), which);
            Ok(format!("{which:?}"))
        }
        Kind::FullDisk => fill(scene, dice % ROOM),
        Kind::NoRoom => obey(scene, &format!("room {}", dice % (64 << 10))),
        Kind::FileSize => limit_files(scene, dice % 200_000),
        Kind::Error => {
            let operations = ["write", "fsync", "rename", "mkdir", "create", "open"];
            let operation = operations[(dice % 6) as usize];
            let error = if dice >> 8 & 3 == 0 { libc::ENOSPC } else { libc::EIO };
            obey(scene, &format!("error {operation} {} {error}", 1 + (dice >> 16) % 5))
        }
        Kind::SlowDisk => obey(scene, &format!("slow fsync {}", 10_000 + dice % 60_000)),
        Kind::Clock => jump(scene, dice),
        Kind::Memory => squeeze(scene, dice),
        Kind::NoCache => empty(Path::new(CACHE)),
        Kind::ReadOnly => close(scene),
        Kind::Ports => take_ports(),
        Kind::Squatter => squat(run.pid()),
        Kind::Cut => {
            let bytes = i64::try_from(dice % 20_000).unwrap_or_default();
            if let Some(proxy) = &scene.proxy {
                proxy.cut_after(bytes);
            }
            Ok(format!("after {bytes} bytes"))
        }
        Kind::PowerCut => cut_power(scene),
        Kind::SameResults => return second(scene, run, true),
        Kind::SameHost => return second(scene, run, false),
    };
    done.map_or_else(Blow::Broken, Blow::Struck)
}

fn on_process(
    scene: &Scene,
    run: &Running,
    role: Role,
    dice: u64,
    act: &dyn Fn(i32) -> String,
) -> Blow {
    let found = running::of_role(&scene.processes(), role, run.pid());
    if found.is_empty() {
        return Blow::NoVictim;
    }
    let pid = found[(dice % found.len() as u64) as usize];
    Blow::Struck(format!("{pid} {}", act(pid)))
}

/// Mostly for 1 to 5 s, in one of ten cases for up to 30 s.
fn stop(pid: i32, dice: u64) -> String {
    let most = if dice >> 32 & 15 == 0 { 30_000 } else { 4_000 };
    let milliseconds = 1000 + (dice >> 8) % most;
    signal(pid, Signal::STOP);
    thread::sleep(Duration::from_millis(milliseconds));
    signal(pid, Signal::CONT);
    format!("{milliseconds} ms")
}

/// The disk shrinks to what is on it.
fn fill(scene: &Scene, room: u64) -> Result<String, String> {
    let disk = rustix::fs::statvfs(scene.disk()).map_err(|error| error.to_string())?;
    let mut bytes = (disk.f_blocks - disk.f_bfree) * disk.f_frsize + room;
    // Others write meanwhile, and it cannot have less than it holds.
    while resize(scene, &bytes.to_string()).is_err() {
        bytes += 1 << 20;
    }
    Ok(format!("{room} bytes of room"))
}

fn resize(scene: &Scene, bytes: &str) -> Result<(), String> {
    let size = format!("remount,size={bytes}");
    made(&["mount", "-o", &size, &text(&scene.disk())])
}

fn obey(scene: &Scene, order: &str) -> Result<String, String> {
    let partial = scene.at.join("order.partial");
    let written = fs::write(&partial, format!("{order}\n"));
    fs::set_permissions(&partial, fs::Permissions::from_mode(0o644)).ok();
    written.and_then(|()| fs::rename(&partial, scene.order())).map_err(|it| it.to_string())?;
    Ok(order.to_owned())
}

fn limit_files(scene: &Scene, bytes: u64) -> Result<String, String> {
    for process in scene.processes() {
        let limit = Rlimit { current: Some(bytes), maximum: None };
        let pid = rustix::process::Pid::from_raw(process.pid);
        rustix::process::prlimit(pid, Resource::Fsize, limit).ok();
    }
    Ok(format!("{bytes} bytes"))
}

fn jump(scene: &Scene, dice: u64) -> Result<String, String> {
    let lengths = [1, 60, 3600, 86_400, 315_360_000];
    let seconds = lengths[(dice % 5) as usize];
    let seconds = if dice >> 8 & 1 == 0 { seconds } else { -seconds };
    obey(scene, &format!("clock {seconds}"))?;
    thread::sleep(Duration::from_millis(300));
    obey(scene, &format!("clock {}", -seconds))
}

/// The run may use hardly more memory than now.
fn squeeze(scene: &Scene, dice: u64) -> Result<String, String> {
    let group = scene.group.as_ref().ok_or("no control group")?;
    let read = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let used = read("memory.usage_in_bytes").or_else(|| read("memory.current"));
    let limit = used.ok_or("no usage of memory")? + dice % (4 << 20);
    for name in ["memory.limit_in_bytes", "memory.max"] {
        if group.join(name).exists() {
            fs::write(group.join(name), limit.to_string()).map_err(|error| error.to_string())?;
        }
    }
    Ok(format!("{limit} bytes"))
}

fn empty(folder: &Path) -> Result<String, String> {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.map_err(|error| format!("remove {}: {error}", path.display()))?;
    }
    Ok(text(folder))
}

/// Root may write where modes forbid it, so for root the folder is mounted anew.
fn close(scene: &Scene) -> Result<String, String> {
    let out = scene.out();
    if !out.exists() {
        return Ok("it is not there yet".to_owned());
    }
    if scene.as_nobody {
        for folder in below(&out).into_iter().chain([out]).filter(|path| path.is_dir()) {
            chown(&folder, Some(0), Some(0)).map_err(|error| error.to_string())?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).ok();
        }
        return Ok("of another user".to_owned());
    }
    let out = text(&out);
    made(&["mount", "--bind", &out, &out])?;
    // Busy while a file in it is written.
    let mut closed = Err(String::new());
    for _ in 0..200 {
        closed = made(&["mount", "-o", "remount,ro,bind", &out]);
        if closed.is_ok() {
            break;
        }
    }
    closed.map(|()| "mounted read-only".to_owned())
}

/// This namespace of networks has four ports to give, and they are taken.
fn take_ports() -> Result<String, String> {
    fs::write("/proc/sys/net/ipv4/ip_local_port_range", "40000 40003")
        .map_err(|error| error.to_string())?;
    let ports =
        (40_000..=40_003).filter_map(|port| std::net::TcpListener::bind(("0.0.0.0", port)).ok());
    *TAKEN.lock().unwrap_or_else(PoisonError::into_inner) = ports.collect();
    Ok("40000 to 40003 taken".to_owned())
}

/// Names that servers' sockets had in /tmp when they could be foretold.
fn squat(lab: i32) -> Result<String, String> {
    let labels = ["a", "b"].map(|label| short_hash(label.as_bytes()));
    for name in labels.map(|hash| format!("/tmp/rqps-{lab}-{hash}")) {
        let path = PathBuf::from(&name);
        if fs::create_dir(&path).is_ok() {
            fs::write(path.join("whose"), "another's").map_err(|error| error.to_string())?;
            chown(&path, Some(1), Some(1)).map_err(|error| error.to_string())?;
        }
    }
    Ok(format!("/tmp/rqps-{lab}-…"))
}

fn cut_power(scene: &Scene) -> Result<String, String> {
    let disk = text(&scene.disk());
    let cut = Command::new(POWER_CUT).arg(&disk).stdin(Stdio::null()).output();
    if !cut.is_ok_and(|output| output.status.success()) {
        return Err("the disk has no power to cut".to_owned());
    }
    let mut victims = scene.processes();
    while !victims.is_empty() {
        victims.iter().for_each(|process| signal(process.pid, Signal::KILL));
        thread::sleep(Duration::from_millis(10));
        victims = scene.processes();
        // Its end is seen by who waits for it.
        victims.retain(|process| !process.words.is_empty());
    }
    Ok("all that was not on the disk".to_owned())
}

/// A second rqps must not get in, and say why.
fn second(scene: &Scene, run: &mut Running, same_results: bool) -> Blow {
    let mut words = if scene.out().join("plan.toml").exists() && same_results {
        scene.resuming.clone()
    } else {
        scene.words.clone()
    };
    if !same_results {
        for word in &mut words {
            *word = word.replace("disk/out", "disk/other");
        }
    }
    let output = match scene.rqps(&words, false).stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) => return Blow::Broken(error.to_string()),
    };
    let said = crate::support::program::said(&output);
    let code = output.status.code();
    let is_refused = code == Some(2) && said.contains("another rqps");
    if run.has_ended() {
        return Blow::NoVictim;
    }
    let shown = said.lines().last().unwrap_or_default().to_owned();
    if is_refused {
        Blow::Struck("refused".to_owned())
    } else {
        Blow::Wrong(format!("the second rqps ended with {code:?}: {shown}"))
    }
}

/// Takes the fault back.
pub(crate) fn heal(trial: &Trial, scene: &Scene) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    fs::remove_file(scene.order()).ok();
    match trial.kind {
        Kind::FullDisk => resize(scene, DISK),
        Kind::Memory => {
            let group = scene.group.as_ref().ok_or("no control group")?;
            for (name, none) in [("memory.limit_in_bytes", "-1"), ("memory.max", "max")] {
                if group.join(name).exists() {
                    fs::write(group.join(name), none).map_err(io)?;
                }
            }
            Ok(())
        }
        Kind::NoCache => {
            made(&["umount", "-l", CACHE])?;
            made(&["mkdir", "/mnt/upper2", "/mnt/work2"])?;
            let layers = format!("lowerdir={CACHE},upperdir=/mnt/upper2,workdir=/mnt/work2");
            made(&["mount", "-t", "overlay", "-o", &layers, "overlay", CACHE])
        }
        Kind::ReadOnly if scene.as_nobody => {
            let out = scene.out();
            let all = below(&out).into_iter().chain([out]);
            all.filter(|path| path.exists())
                .try_for_each(|path| lchown(&path, Some(NOBODY), Some(NOBODY)).map_err(io))
        }
        Kind::ReadOnly => {
            made(&["umount", "-l", &text(&scene.out())]).ok();
            Ok(())
        }
        Kind::Ports => {
            TAKEN.lock().unwrap_or_else(PoisonError::into_inner).clear();
            fs::write("/proc/sys/net/ipv4/ip_local_port_range", "32768 60999").map_err(io)
        }
        Kind::PowerCut => {
            // A server that is killed keeps its files until it has given back its memory.
            let end = Instant::now() + Duration::from_secs(60);
            while let Err(why) = made(&["umount", &text(&scene.disk())]) {
                if Instant::now() > end {
                    return Err(why);
                }
                thread::sleep(Duration::from_millis(100));
            }
            scene.start_the_host_anew()?;
            scene.mount_image_anew()
        }
        _ => Ok(()),
    }?;
    std::io::stdout().flush().map_err(io)
}
