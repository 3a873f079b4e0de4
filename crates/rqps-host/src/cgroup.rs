//! A limit on the memory of a server, page cache of its files included: a control group of its own,
//! in either version of the interface.
//!
//! A process is started in the group rather than moved into it: what it has allocated before a move
//! is not counted (never in version 2, and in version 1 only where somebody asked for it). The
//! warden enters the group, starts the server, and leaves again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rqps_model::safe_path;
use thiserror::Error;

/// The prefix of names of groups; the id of the process follows.
const PREFIX: &str = "rqps-";
/// Number of attempts, and time between them, to remove a group whose last process is ending.
const REMOVALS: (u32, Duration) = (100, Duration::from_millis(10));

/// The reason why memory cannot be limited here.
#[derive(Debug, Error)]
pub enum CgroupError {
    /// No memory controller.
    #[error(
        "limit the memory of a server: this system has no memory controller for control groups \
         ({0}); leave out the limit, or use a machine with less memory"
    )]
    NoController(String),
    /// Not allowed, or refused by the kernel.
    #[error(
        "limit the memory of a server: {doing}: {source}; run as root, or in a scope that may \
         delegate memory (systemd-run --user --scope -p Delegate=yes)"
    )]
    Refused {
        /// The action and its object.
        doing: String,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// The version of the interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// The group that this process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Own {
    version: Version,
    /// The mount point of the hierarchy.
    mount: PathBuf,
    group: PathBuf,
}

/// A group with a limit. Dropping it removes it, once its processes are gone.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
    version: Version,
}

impl MemoryGroup {
    /// Makes the group `rqps-PID-NAME` with `limit` bytes: below this process's own, or in version
    /// 2 beside it where the own one may not have any below. `root` is `/`, but for tests.
    ///
    /// # Errors
    /// There is no controller, or making the group is not allowed.
    pub fn create(root: &Path, name: &str, limit: u64) -> Result<MemoryGroup, CgroupError> {
        let own = Own::find(root)?;
        let parent = match own.version {
            Version::One => own.group.clone(),
            Version::Two => own.passing()?,
        };
        remove_abandoned(root, &parent);
        let path = parent.join(format!("{PREFIX}{}-{name}", std::process::id()));
        safe_path::new_folder(&path, 0o755).map_err(|source| CgroupError::Refused {
            doing: format!("make {}", path.display()),
            source,
        })?;
        let group = MemoryGroup { path, version: own.version };
        let file = match group.version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        write(&group.path.join(file), &limit.to_string())?;
        // Without this, the speed of a swap device would be measured. Kernels that do not count
        // swap have no such file.
        let (file, most) = match group.version {
            Version::One => ("memory.memsw.limit_in_bytes", limit.to_string()),
            Version::Two => ("memory.swap.max", "0".to_owned()),
        };
        let swap = group.path.join(file);
        if swap.exists() {
            write(&swap, &most)?;
        }
        Ok(group)
    }

    /// The folder in which the kernel keeps its figures, and which processes are started in.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Processes of the group that the kernel has killed because they did not fit; `None` where it
    /// does not count them.
    pub fn killed(&self) -> Option<u64> {
        let file = match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        };
        let text = fs::read_to_string(self.path.join(file)).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a group, which works as soon as its last process is gone. One that stays is tried again
/// by the next that makes a group here.
pub(super) fn remove(group: &Path) {
    let (times, pause) = REMOVALS;
    for _ in 0..times {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => thread::sleep(pause),
            _ => return,
        }
    }
}

/// Puts this process into a group. What it has allocated before does not count there, so it is the
/// first thing that it does.
///
/// # Errors
/// The group cannot be entered.
pub fn enter(group: &Path) -> io::Result<()> {
    let file = group.join("cgroup.procs");
    safe_path::write(&file, std::process::id().to_string()).map_err(|error| {
        let text = format!("enter the control group {}: {error}", group.display());
        io::Error::new(error.kind(), text)
    })
}

/// Starts a process, and with it all that it will start, in a group: this process is in it
/// meanwhile.
///
/// # Errors
/// The group cannot be entered; or as `start`.
pub(super) fn start_in<T>(group: &Path, start: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let own = Own::find(Path::new("/"));
    enter(group)?;
    let started = start();
    // One that may not go back stays, and the group with it until this process ends.
    if let Ok(own) = own {
        let _ = enter(&own.group);
    }
    started
}

/// Removes the groups of processes that are gone without having done so: killed at the wrong
/// moment. Those in use cannot be removed.
fn remove_abandoned(root: &Path, parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let maker = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
        let Some(maker) = maker.and_then(|maker| maker.parse::<u32>().ok()) else { continue };
        if !root.join(format!("proc/{maker}")).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), CgroupError> {
    safe_path::write(path, text).map_err(|source| CgroupError::Refused {
        doing: format!("write {text} to {}", path.display()),
        source,
    })
}

impl Own {
    /// By `/proc/self/cgroup` and `/proc/self/mounts`.
    fn find(root: &Path) -> Result<Own, CgroupError> {
        let read = |path: &str| {
            let path = root.join(path);
            fs::read_to_string(&path)
                .map_err(|why| CgroupError::NoController(format!("read {}: {why}", path.display())))
        };
        let (own, mounts) = (read("proc/self/cgroup")?, read("proc/self/mounts")?);
        let (version, mount, group) = own_group(&own, &mounts)
            .ok_or_else(|| CgroupError::NoController("no mounted controller".to_owned()))?;
        let below = |path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
        let mount = below(&mount);
        let group = mount.join(group.trim_start_matches('/'));
        // In some containers what is mounted is the own group, whatever it is called outside.
        let group = if group.is_dir() { group } else { mount.clone() };
        Ok(Own { version, mount, group })
    }

    /// In version 2: the group to make others below. Only one that passes memory on can limit it,
    /// and one that holds processes may not begin to, unless it is the root of all. So it is the
    /// own one where that passes memory on or can be told to, else the nearest above it.
    fn passing(&self) -> Result<PathBuf, CgroupError> {
        let has = |group: &Path, file: &str| {
            let text = fs::read_to_string(group.join(file)).unwrap_or_default();
            text.split_whitespace().any(|name| name == "memory")
        };
        let passes = |group: &&Path| has(group, "cgroup.subtree_control");
        let own = self.group.as_path();
        if passes(&own) {
            return Ok(own.to_owned());
        }
        let told = if has(own, "cgroup.controllers") {
            write(&own.join("cgroup.subtree_control"), "+memory")
        } else {
            let why = format!("{} may not use it", own.display());
            Err(CgroupError::NoController(why))
        };
        let Err(why) = told else { return Ok(own.to_owned()) };
        let mut above = own.ancestors().skip(1).take_while(|group| group.starts_with(&self.mount));
        above.find(passes).map(Path::to_owned).ok_or(why)
    }
}

/// From a process's `/proc/PID/cgroup`: the mount point of memory groups, and its own group.
fn own_group<'a>(own: &'a str, mounts: &str) -> Option<(Version, PathBuf, &'a str)> {
    let mounted = |kind: &str, option: Option<&str>| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (at, of, options) = (words.next()?, words.next()?, words.next()?);
            let fits = option.is_none_or(|option| options.split(',').any(|word| word == option));
            (of == kind && fits).then(|| PathBuf::from(at))
        })
    };
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        if controllers.split(',').any(|name| name == "memory") {
            return Some((Version::One, mounted("cgroup", Some("memory"))?, group));
        }
    }
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some((Version::Two, mounted("cgroup2", None)?, group))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::root_with;

    const LIMIT: u64 = 64 << 20;

    /// A host with version 2 alone, this process in `/a/b.scope`. `own` and `above` are the
    /// controllers that the group and that above it pass on.
    fn version_two(own: &str, above: &str, there: &str) -> tempfile::TempDir {
        root_with(&[
            ("proc/self/cgroup", "0::/a/b.scope\n"),
            ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n"),
            ("sys/fs/cgroup/cgroup.subtree_control", "cpu io\n"),
            ("sys/fs/cgroup/a/cgroup.subtree_control", above),
            ("sys/fs/cgroup/a/b.scope/cgroup.subtree_control", own),
            ("sys/fs/cgroup/a/b.scope/cgroup.controllers", there),
        ])
    }

    fn read(path: PathBuf) -> String {
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    fn name() -> String {
        format!("rqps-{}-x", std::process::id())
    }

    #[test]
    fn a_group_of_version_two_is_below_the_own_one_where_memory_is_passed_on() {
        let root = version_two("cpu memory\n", "memory\n", "cpu memory\n");
        let own = root.path().join("sys/fs/cgroup/a/b.scope");
        let group = MemoryGroup::create(root.path(), "x", LIMIT).expect("a group");
        assert_eq!(group.path(), own.join(name()));
        assert_eq!(read(group.path().join("memory.max")), LIMIT.to_string());
        assert_eq!(read(own.join("cgroup.subtree_control")), "cpu memory\n", "as it was");
        assert_eq!(group.killed(), None);
        fs::write(group.path().join("memory.events"), "oom 5\noom_kill 3\n").expect("write");
        assert_eq!(group.killed(), Some(3));
    }

    #[test]
    fn memory_is_passed_on_where_it_was_not() {
        let root = version_two("\n", "memory\n", "cpu memory pids\n");
        let own = root.path().join("sys/fs/cgroup/a/b.scope");
        let group = MemoryGroup::create(root.path(), "x", LIMIT).expect("a group");
        assert_eq!(group.path(), own.join(name()));
        assert_eq!(read(own.join("cgroup.subtree_control")), "+memory");
    }

    /// The kernel refuses a group that holds processes to pass memory on; a folder in place of the
    /// file refuses too.
    fn refuse(root: &tempfile::TempDir) -> PathBuf {
        let file = root.path().join("sys/fs/cgroup/a/b.scope/cgroup.subtree_control");
        fs::remove_file(&file).expect("remove");
        fs::create_dir(&file).expect("make");
        file
    }

    #[test]
    fn beside_a_group_that_may_pass_nothing_on() {
        let root = version_two("", "cpu memory\n", "memory\n");
        refuse(&root);
        let group = MemoryGroup::create(root.path(), "x", LIMIT).expect("a group");
        assert_eq!(group.path(), root.path().join("sys/fs/cgroup/a").join(name()));
    }

    #[test]
    fn a_refusal_says_what_was_refused_and_by_what() {
        let root = version_two("", "cpu\n", "memory\n");
        let file = refuse(&root);
        let text = MemoryGroup::create(root.path(), "x", LIMIT).expect_err("refused").to_string();
        assert!(text.contains(&format!("write +memory to {}", file.display())), "{text}");
        assert!(text.contains("run as root, or in a scope"), "{text}");
        let root = version_two("", "cpu\n", "cpu io\n");
        let text = MemoryGroup::create(root.path(), "x", LIMIT).expect_err("refused").to_string();
        assert!(text.contains("no memory controller") && text.contains("b.scope may not use it"));
        let none = root_with(&[("proc/self/cgroup", "0::/\n"), ("proc/self/mounts", "")]);
        let text = MemoryGroup::create(none.path(), "x", LIMIT).expect_err("refused").to_string();
        assert!(
            text.contains("no mounted controller") && text.contains("leave out the limit"),
            "{text}"
        );
    }

    #[test]
    fn groups_of_those_who_are_gone_are_removed() {
        let root = version_two("memory\n", "", "memory\n");
        let own = root.path().join("sys/fs/cgroup/a/b.scope");
        fs::create_dir_all(root.path().join("proc/17")).expect("make");
        for name in ["rqps-16-a", "rqps-17-a", "rqps-x", "other"] {
            fs::create_dir(own.join(name)).expect("make");
        }
        fs::create_dir_all(own.join("rqps-15-a/in-use")).expect("make");
        let _group = MemoryGroup::create(root.path(), "x", LIMIT).expect("a group");
        let left = |name: &str| own.join(name).exists();
        assert!(!left("rqps-16-a"));
        assert!(["rqps-17-a", "rqps-x", "other", "rqps-15-a"].into_iter().all(left));
    }

    #[test]
    fn the_own_group_is_found_in_either_version() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let first = own_group("4:memory:/job/7\n0::/\n", mounts);
        assert_eq!(first, Some((Version::One, "/sys/fs/cgroup/memory".into(), "/job/7")));
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let second = own_group("0::/user.slice/a:b.scope\n", mounts);
        assert_eq!(second, Some((Version::Two, "/sys/fs/cgroup".into(), "/user.slice/a:b.scope")));
        assert_eq!(own_group("0::/x\n", "proc /proc proc rw 0 0\n"), None);
        assert_eq!(own_group("", mounts), None);
    }

    #[test]
    fn a_container_sees_its_own_group_as_the_mounted_one() {
        let root = root_with(&[
            ("proc/self/cgroup", "4:memory:/docker/abc\n0::/\n"),
            ("proc/self/mounts", "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", ""),
        ]);
        let group = MemoryGroup::create(root.path(), "x", LIMIT).expect("a group");
        assert_eq!(group.path(), root.path().join("sys/fs/cgroup/memory").join(name()));
        assert_eq!(read(group.path().join("memory.limit_in_bytes")), LIMIT.to_string());
    }
}
