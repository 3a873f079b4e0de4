//! A limit on the memory of a process tree, page cache of its files included: a control group of
//! its own, in either version of the interface.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::os::tree;

/// Where control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// Why memory cannot be limited here.
#[derive(Debug, Error)]
pub enum CgroupError {
    /// No memory controller.
    #[error(
        "limit the memory of a server: this system has no memory controller for control groups \
         ({0}); leave the limit out, or use a machine with less memory"
    )]
    NoController(String),
    /// Not allowed, or refused by the kernel.
    #[error(
        "limit the memory of a server: {doing}: {source}; run as root, or in a scope that may \
         delegate memory (systemd-run --user --scope -p Delegate=yes)"
    )]
    Refused {
        /// What was done, to what.
        doing: String,
        /// Why not.
        source: io::Error,
    },
}

/// Which interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A group with a limit. Dropping it removes it, once its processes are gone.
#[derive(Debug)]
pub struct MemoryGroup {
    path: PathBuf,
}

impl MemoryGroup {
    /// Makes a group `name` below this process's own, with `limit` bytes.
    ///
    /// # Errors
    /// There is no controller, or making the group is not allowed.
    pub fn create(name: &str, limit: u64) -> Result<MemoryGroup, CgroupError> {
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let (version, parent) = own_group(&own, &mounts).ok_or_else(|| {
            CgroupError::NoController(format!("nothing with memory is mounted under {MOUNT}"))
        })?;
        let path = parent.join(name);
        if version == Version::Two {
            let file = parent.join("cgroup.subtree_control");
            write(&file, "+memory")?;
        }
        fs::create_dir(&path).map_err(|source| CgroupError::Refused {
            doing: format!("make {}", path.display()),
            source,
        })?;
        let group = MemoryGroup { path };
        let file = match version {
            Version::One => "memory.limit_in_bytes",
            Version::Two => "memory.max",
        };
        write(&group.path.join(file), &limit.to_string())?;
        // What does not fit shall not go to a swap device, whose speed would be measured. Kernels
        // that do not count swap have no such file.
        let (file, most) = match version {
            Version::One => ("memory.memsw.limit_in_bytes", limit.to_string()),
            Version::Two => ("memory.swap.max", "0".to_owned()),
        };
        let swap = group.path.join(file);
        if swap.exists() {
            write(&swap, &most)?;
        }
        Ok(group)
    }

    /// The folder in which the kernel keeps its figures.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves a process and all below it into the group. What they start later begins in it.
    ///
    /// # Errors
    /// The kernel refuses a process that is still there.
    pub fn add_tree(&self, root: u32) -> Result<(), CgroupError> {
        let file = self.path.join("cgroup.procs");
        // Twice: a process may be started by one that was not moved yet.
        for _ in 0..2 {
            for pid in tree::processes(root).unwrap_or_else(|_| vec![root]) {
                match write(&file, &pid.to_string()) {
                    // It has ended meanwhile.
                    Err(CgroupError::Refused { source, .. })
                        if source.raw_os_error() == Some(libc::ESRCH) => {}
                    other => other?,
                }
            }
        }
        Ok(())
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        // A group with a process left cannot be removed: it is empty when the server is gone.
        fs::remove_dir(&self.path).ok();
    }
}

fn write(path: &Path, text: &str) -> Result<(), CgroupError> {
    fs::write(path, text).map_err(|source| CgroupError::Refused {
        doing: format!("write {text} to {}", path.display()),
        source,
    })
}

/// The group of a process by its `/proc/PID/cgroup`, where memory can be limited below it.
fn own_group(own: &str, mounts: &str) -> Option<(Version, PathBuf)> {
    let mounted = |kind: &str, option: Option<&str>| {
        mounts.lines().find_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (at, of, options) = (words.next()?, words.next()?, words.next()?);
            let fits = option.is_none_or(|option| options.split(',').any(|word| word == option));
            (of == kind && fits).then(|| PathBuf::from(at))
        })
    };
    let below = |mount: PathBuf, group: &str| mount.join(group.trim_start_matches('/'));
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { continue };
        if controllers.split(',').any(|name| name == "memory") {
            let mount = mounted("cgroup", Some("memory"))?;
            return Some((Version::One, below(mount, group)));
        }
    }
    let group = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some((Version::Two, below(mounted("cgroup2", None)?, group)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_why_and_what_to_do() {
        let none = CgroupError::NoController("nothing".to_owned()).to_string();
        assert!(none.contains("no memory controller") && none.contains("leave the limit out"));
        let refused = write(Path::new("/proc/no/memory.max"), "1").unwrap_err().to_string();
        assert!(refused.contains("write 1 to /proc/no/memory.max: No such file"), "{refused}");
        assert!(refused.contains("run as root, or in a scope"), "{refused}");
    }

    #[test]
    fn the_own_group_is_found_in_either_version() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let first = own_group("4:memory:/job/7\n0::/\n", mounts);
        assert_eq!(first, Some((Version::One, "/sys/fs/cgroup/memory/job/7".into())));
        let mounts = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
        let second = own_group("0::/user.slice/a:b.scope\n", mounts);
        assert_eq!(second, Some((Version::Two, "/sys/fs/cgroup/user.slice/a:b.scope".into())));
        assert_eq!(own_group("0::/x\n", "proc /proc proc rw 0 0\n"), None);
        assert_eq!(own_group("", mounts), None);
    }
}
