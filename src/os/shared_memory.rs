//! POSIX shared memory of processes that are about to be killed: files of the host, which stay
//! until the next boot when their owner does not remove them. Postgres keeps its state there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::os::process::all_processes;

/// The C library's folder of shared memory, one file each.
const FOLDER: &str = "/dev/shm";

/// Shared memory that these processes have mapped and nobody has removed. Processes that have
/// ended, or that cannot be read, have none.
pub fn mapped_by(pids: impl IntoIterator<Item = u32>) -> BTreeSet<PathBuf> {
    let maps = |pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    pids.into_iter().flat_map(|pid| mapped(&maps(pid))).collect()
}

/// Removes the pieces that no process maps any more.
pub fn remove_abandoned(pieces: &BTreeSet<PathBuf>) {
    if pieces.is_empty() {
        return;
    }
    let used = mapped_by(all_processes().into_iter().map(|(pid, _)| pid));
    for piece in pieces.difference(&used) {
        // It may be gone already, and other errors cannot be reported here.
        let _ = std::fs::remove_file(piece);
    }
}

/// Files of `/proc/PID/maps` that lie directly in the folder: what lies deeper is somebody's data.
fn mapped(maps: &str) -> BTreeSet<PathBuf> {
    let paths = maps.lines().filter_map(|line| Some(Path::new(&line[line.find('/')?..])));
    let directly = |path: &&Path| path.parent() == Some(Path::new(FOLDER));
    // The system writes this behind the path of what was removed.
    let is_there = |path: &&Path| !path.to_string_lossy().ends_with(" (deleted)");
    paths.filter(directly).filter(is_there).map(Path::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_directly_there_and_still_exists_is_shared_memory() {
        let maps = "\
7f0000000000-7f0000100000 rw-s 00000000 00:1a 42    /dev/shm/PostgreSQL.2966607012
7f0000100000-7f0000200000 rw-s 00000000 00:1a 42    /dev/shm/PostgreSQL.2966607012
7f0000200000-7f0000300000 rw-s 00000000 00:1a 43    /dev/shm/PostgreSQL.7 (deleted)
7f0000300000-7f0000400000 rw-s 00000000 00:1a 44    /dev/shm/run/data/file
7f0000400000-7f0000500000 rw-s 00000000 00:01 45    /dev/zero (deleted)
7f0000500000-7f0000600000 r-xp 00000000 fe:00 46    /usr/lib/libc.so.6
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0     [stack]
7ffd00021000-7ffd00022000 rw-p 00000000 00:00 0
";
        let found: Vec<_> = mapped(maps).into_iter().collect();
        assert_eq!(found, [PathBuf::from("/dev/shm/PostgreSQL.2966607012")]);
    }
}
