//! Shared memory of processes that are about to be killed: files and System V segments of the host,
//! which stay until the next boot when their owner does not remove them. Postgres keeps its state
//! there.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;
use rustix::time::Timespec;

use crate::{beneath, tree};

/// The C library's folder of shared memory, one file each.
const FOLDER: &str = "/dev/shm";

/// A piece of shared memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SharedPiece {
    /// A file of the C library.
    File(PathBuf),
    /// A segment of System V, by its id.
    Segment(i32),
}

/// Shared memory that these processes have mapped and nobody has removed. Processes that have
/// ended, or that cannot be read, have none.
pub fn mapped_by(pids: impl IntoIterator<Item = u32>) -> BTreeSet<SharedPiece> {
    let maps = |pid| std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    pids.into_iter().flat_map(|pid| mapped(&maps(pid))).collect()
}

/// Removes the pieces that no process maps any more, if they belong to the user of the processes
/// that did: what a server can read, it can map, and it may be somebody else's. Returns true if
/// some are mapped still.
pub fn remove_abandoned(pieces: &BTreeSet<SharedPiece>, uid: u32) -> bool {
    let left: BTreeSet<SharedPiece> =
        pieces.iter().filter(|piece| piece.owner() == Some(uid)).cloned().collect();
    if left.is_empty() {
        return false;
    }
    let used = mapped_by(tree::all_processes());
    // It may be gone already, and other errors cannot be reported here.
    left.difference(&used).for_each(SharedPiece::remove);
    !left.is_disjoint(&used)
}

/// The beginning of the file that each Postgres has mapped from its start to its end, and that lists
/// its other shared memory (`PG_DYNSHMEM_CONTROL_MAGIC`, as this host writes it).
const CONTROL: [u8; 4] = 0x9a50_3d32_u32.to_ne_bytes();

/// The beginning of the names of such files, and of those that they list, before a number.
const NAME: &str = "PostgreSQL.";

/// Longest list that is read.
const LIST_MOST: u64 = 16 << 20;

/// Bytes of the segment by which each Postgres knows whether it runs: its `PGShmemHeader`.
const HEADER_MOST: u64 = 64;

/// What a killed Postgres of a user has left since then: a list of files that no process has mapped
/// any more, and what it lists; segments that nobody uses and whose maker is gone. A process of
/// `initdb` that is killed leaves them so soon that no look at its maps finds them.
pub fn left_since(begun: SystemTime, uid: u32) -> BTreeSet<SharedPiece> {
    let table = beneath::beginning(Path::new("/proc/sysvipc/shm"), LIST_MOST).unwrap_or_default();
    let is_alive = |pid: u32| Path::new("/proc").join(pid.to_string()).exists();
    let mut left: BTreeSet<SharedPiece> = segments(&table, (begun, uid), &is_alive).collect();
    left.extend(left_in(Path::new(FOLDER), begun, uid));
    left
}

/// The files of [`left_since`] in this folder.
fn left_in(folder: &Path, begun: SystemTime, uid: u32) -> BTreeSet<SharedPiece> {
    let mut left = BTreeSet::new();
    let files = files(folder, begun, uid);
    let lists = lists(&files);
    if !lists.is_empty() {
        let used = mapped_by(tree::all_processes());
        let dead = lists.into_iter().filter(|(list, _)| !used.contains(list));
        left.extend(dead.flat_map(|(list, listed)| listed.into_iter().chain([list])));
    }
    // A Postgres that a limit of file sizes kills while it makes its list leaves an empty file. One
    // that makes a list has it open.
    let empty = files.iter().filter(|(path, content)| content.is_empty() && !is_open(path));
    left.extend(empty.map(|(path, _)| SharedPiece::File(path.clone())));
    left
}

/// Segments of a user since then, by the kernel's table of them: as small as those of Postgres, used
/// by nobody, and made by a process that is gone.
fn segments(
    table: &str,
    (begun, uid): (SystemTime, u32),
    is_alive: &dyn Fn(u32) -> bool,
) -> impl Iterator<Item = SharedPiece> {
    let begun = begun.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    table.lines().filter_map(move |line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let number = |at: usize| words.get(at)?.parse::<u64>().ok();
        let maker = u32::try_from(number(4)?).ok()?;
        let is_left = number(3)? <= HEADER_MOST
            && number(6)? == 0
            && number(7)? == u64::from(uid)
            && number(13)? >= begun
            // 0: the maker cannot be seen from here.
            && maker != 0
            && !is_alive(maker);
        is_left.then_some(SharedPiece::Segment(words.get(1)?.parse().ok()?))
    })
}

/// Files of a user in the folder since then that have the names of those of Postgres, with what
/// they hold.
fn files(folder: &Path, begun: SystemTime, uid: u32) -> Vec<(PathBuf, Vec<u8>)> {
    let read = |path: &Path| {
        let file = beneath::open(path).ok()?;
        let facts = file.metadata().ok()?;
        let mut content = Vec::new();
        let is_new = facts.uid() == uid && facts.modified().ok()? >= begun;
        let file = is_new.then_some(file)?;
        file.take(LIST_MOST).read_to_end(&mut content).ok()?;
        Some(content)
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries
        .filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(NAME)));
    named.filter_map(|entry| Some((entry.path(), read(&entry.path())?))).collect()
}

/// The lists among these files, each with the files that it names.
fn lists(files: &[(PathBuf, Vec<u8>)]) -> Vec<(SharedPiece, BTreeSet<SharedPiece>)> {
    let lists = files.iter().filter(|(_, content)| content.starts_with(&CONTROL));
    lists
        .map(|(path, content)| {
            let numbers = content.as_chunks::<4>().0.iter().map(|word| u32::from_ne_bytes(*word));
            let paths = numbers.map(|number| path.with_file_name(format!("{NAME}{number}")));
            let listed = paths.filter(|path| path.exists()).map(SharedPiece::File);
            let listed = listed.collect();
            (SharedPiece::File(path.clone()), listed)
        })
        .collect()
}

/// True if a process has this file open.
fn is_open(path: &Path) -> bool {
    tree::all_processes().any(|pid| {
        let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        let mut links = descriptors.flatten().map(|entry| std::fs::read_link(entry.path()));
        links.any(|link| link.is_ok_and(|link| link == path))
    })
}

impl SharedPiece {
    /// `None` if it is gone.
    fn owner(&self) -> Option<u32> {
        match self {
            SharedPiece::File(path) => {
                let facts = std::fs::symlink_metadata(path).ok()?;
                facts.is_file().then(|| facts.uid())
            }
            SharedPiece::Segment(id) => {
                let mut facts = MaybeUninit::<libc::shmid_ds>::zeroed();
                // SAFETY: the call writes to `facts`, all of whose fields are numbers and pointers,
                // for which zero is a value.
                let facts = unsafe {
                    let code = libc::shmctl(*id, libc::IPC_STAT, facts.as_mut_ptr());
                    (code == 0).then(|| facts.assume_init())
                };
                facts.map(|facts| facts.shm_perm.uid)
            }
        }
    }

    fn remove(&self) {
        match self {
            SharedPiece::File(path) => drop(std::fs::remove_file(path)),
            // SAFETY: the call takes numbers; this command does not use the pointer.
            SharedPiece::Segment(id) => unsafe {
                libc::shmctl(*id, libc::IPC_RMID, std::ptr::null_mut());
            },
        }
    }
}

/// Pieces in `/proc/PID/maps`. Of files those that lie directly in the folder: what lies deeper is
/// somebody's data.
fn mapped(maps: &str) -> BTreeSet<SharedPiece> {
    maps.lines().filter_map(piece).collect()
}

fn piece(line: &str) -> Option<SharedPiece> {
    let path = &line[line.find('/')?..];
    // The kernel names segments by their key, all as deleted; the inode is the id.
    if path.starts_with("/SYSV") {
        return Some(SharedPiece::Segment(line.split_ascii_whitespace().nth(4)?.parse().ok()?));
    }
    // The system writes this behind the path of what was removed.
    let is_there = !path.ends_with(" (deleted)");
    let path = Path::new(path);
    (is_there && path.parent() == Some(Path::new(FOLDER)))
        .then(|| SharedPiece::File(path.to_owned()))
}

// One page of memory that several processes share: numbers to read and write without a lock, and
// words to wait at until another process changes them (futex).
//
// The page is an anonymous file (memfd) of the process that makes it; others open it by its path
// in /proc. It goes with the last process that has it, so a crash leaves nothing behind.

/// Bytes of the page.
const BYTES: usize = 4096;
/// Numbers of 64 bits in its first half.
pub const NUMBERS: usize = BYTES / 2 / 8;
/// Words of 32 bits in its second half.
pub const WORDS: usize = BYTES / 2 / 4;

/// A page that processes share.
#[derive(Debug)]
pub struct SharedPage {
    start: NonNull<u8>,
    path: PathBuf,
    /// Keeps the file there for those who open it by its path.
    _file: OwnedFd,
}

// SAFETY: the page is only reached through atomics, and is unmapped by the last owner alone.
unsafe impl Send for SharedPage {}
// SAFETY: as above.
unsafe impl Sync for SharedPage {}

impl SharedPage {
    /// Makes a page of zeros.
    ///
    /// # Errors
    /// The kernel has no memory, or no anonymous files.
    pub fn create() -> io::Result<SharedPage> {
        let file =
            rustix::fs::memfd_create("rqps", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        rustix::fs::ftruncate(&file, BYTES as u64)?;
        // A process that cut the file would end all others at their next look at it.
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
        SharedPage::map(file, PathBuf::from(path))
    }

    /// Opens the page of another process by [`SharedPage::path`].
    ///
    /// # Errors
    /// That process is gone, or belongs to another user; the file is no such page.
    pub fn open(path: &Path) -> io::Result<SharedPage> {
        let file = File::options().read(true).write(true).open(path)?;
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        let is_memory = opened.as_os_str().as_encoded_bytes().starts_with(b"/memfd:rqps");
        if !is_memory || file.metadata()?.len() != BYTES as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is not a shared page"));
        }
        SharedPage::map(OwnedFd::from(file), path.to_owned())
    }

    fn map(file: OwnedFd, path: PathBuf) -> io::Result<SharedPage> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let start = unsafe {
            rustix::mm::mmap(ptr::null_mut(), BYTES, access, MapFlags::SHARED, file.as_fd(), 0)?
        };
        let start = NonNull::new(start.cast::<u8>()).ok_or(Errno::NOMEM)?;
        Ok(SharedPage { start, path, _file: file })
    }

    /// The path of the page for other processes of this user, as long as this process lives.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The number at a place from 0 to [`NUMBERS`] - 1.
    ///
    /// # Panics
    /// There is no such number.
    #[inline]
    pub fn number(&self, index: usize) -> &AtomicU64 {
        assert!(index < NUMBERS, "a page has {NUMBERS} numbers, not {index}");
        // SAFETY: within the first half of the mapping, which lives as long as `self`; aligned,
        // since the page is; all views of these bytes are atomics of this size.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr().cast::<u64>().add(index)) }
    }

    /// Word `index`, below [`WORDS`].
    ///
    /// # Panics
    /// There is no such word.
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU32 {
        assert!(index < WORDS, "a page has {WORDS} words, not {index}");
        // SAFETY: as above, within the second half.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(BYTES / 2).cast::<u32>().add(index)) }
    }

    /// Sleeps while word `index` is `value`, for `limit` at most; it may wake up for no reason.
    pub fn wait(&self, index: usize, value: u32, limit: Duration) {
        let time = Timespec {
            tv_sec: i64::try_from(limit.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        // Changed, woken, interrupted, too late: the caller looks at the word again in any case.
        let _ = futex::wait(self.word(index), futex::Flags::empty(), value, Some(&time));
    }

    /// Wakes all that sleep at word `index`, in all processes.
    pub fn wake(&self, index: usize) {
        // It fails only for an address that is not mapped.
        let _ = futex::wake(self.word(index), futex::Flags::empty(), i32::MAX as u32);
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `map` with this length; no view outlives `self`.
        let _ = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn the_list_of_a_killed_postgres_and_what_it_lists_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let uid = rustix::process::geteuid().as_raw();
        let begun = SystemTime::now() - std::time::Duration::from_secs(1);
        let make = |name: &str, content: &[u8]| {
            std::fs::write(folder.path().join(name), content).unwrap();
        };
        let listed = 270_113_718_u32;
        make("PostgreSQL.1", &[&CONTROL[..], &[0; 12], &listed.to_ne_bytes(), &[0; 40]].concat());
        make(&format!("PostgreSQL.{listed}"), b"rows");
        make("PostgreSQL.3", b"rows of somebody");
        make("other.4", &CONTROL);
        std::os::unix::fs::symlink("PostgreSQL.1", folder.path().join("PostgreSQL.5")).unwrap();
        let file = |name: &str| SharedPiece::File(folder.path().join(name));
        make("PostgreSQL.6", b"");
        let want = [file("PostgreSQL.1"), file(&format!("PostgreSQL.{listed}"))];
        let open = std::fs::File::open(folder.path().join("PostgreSQL.6")).unwrap();
        assert_eq!(left_in(folder.path(), begun, uid), BTreeSet::from(want.clone()));
        drop(open);
        let [list, listed] = want;
        let want = BTreeSet::from([list, listed, file("PostgreSQL.6")]);
        assert_eq!(left_in(folder.path(), begun, uid), want);
        assert!(left_in(folder.path(), begun, uid + 1).is_empty());
        let later = SystemTime::now() + std::time::Duration::from_secs(60);
        assert!(left_in(folder.path(), later, uid).is_empty());
    }

    #[test]
    fn segments_of_a_killed_postgres_are_found() {
        let table = "\
       key      shmid perms                  size  cpid  lpid nattch   uid   gid  cuid  cgid      atime      dtime      ctime                   rss                  swap
   5432001         21   600                    56  4711  4711      0 65534 65534 65534 65534 1700000010 1700000011 1700000010                  4096                     0
   5432002         22   600                    56  4711  4711      1 65534 65534 65534 65534 1700000010 1700000011 1700000010                  4096                     0
   5432003         23   600                    56    12  4711      0 65534 65534 65534 65534 1700000010 1700000011 1700000010                  4096                     0
   5432004         24   600                    56  4711  4711      0  1000  1000  1000  1000 1700000010 1700000011 1700000010                  4096                     0
   5432005         25   600                    56  4711  4711      0 65534 65534 65534 65534 1600000010 1600000011 1600000010                  4096                     0
   5432006         26   600               1048576  4711  4711      0 65534 65534 65534 65534 1700000010 1700000011 1700000010                  4096                     0
   5432007         27   600                    56     0     0      0 65534 65534 65534 65534 1700000010 1700000011 1700000010                  4096                     0
";
        let begun = UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
        let found: Vec<_> = segments(table, (begun, 65_534), &|pid| pid == 12).collect();
        assert_eq!(found, [SharedPiece::Segment(21)]);
    }

    #[test]
    fn only_what_lies_directly_there_and_still_exists_is_shared_memory() {
        let maps = "\
7f0000000000-7f0000100000 rw-s 00000000 00:1a 42    /dev/shm/PostgreSQL.2966607012
7f0000100000-7f0000200000 rw-s 00000000 00:1a 42    /dev/shm/PostgreSQL.2966607012
7f0000200000-7f0000300000 rw-s 00000000 00:1a 43    /dev/shm/PostgreSQL.7 (deleted)
7f0000300000-7f0000400000 rw-s 00000000 00:1a 44    /dev/shm/run/data/file
7f0000400000-7f0000500000 rw-s 00000000 00:01 45    /dev/zero (deleted)
7f0000480000-7f0000481000 rw-s 00000000 00:01 32770 /SYSV0052e2c1 (deleted)
7f0000500000-7f0000600000 r-xp 00000000 fe:00 46    /usr/lib/libc.so.6
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0     [stack]
7ffd00021000-7ffd00022000 rw-p 00000000 00:00 0
";
        let found: Vec<_> = mapped(maps).into_iter().collect();
        let file = SharedPiece::File(PathBuf::from("/dev/shm/PostgreSQL.2966607012"));
        assert_eq!(found, [file, SharedPiece::Segment(32_770)]);
    }

    #[test]
    fn two_mappings_are_one_page() {
        let page = SharedPage::create().unwrap();
        let again = SharedPage::open(page.path()).unwrap();
        let file = File::options().write(true).open(page.path()).unwrap();
        assert!(file.set_len(0).is_err(), "nobody can cut it");
        page.number(NUMBERS - 1).store(u64::MAX, Ordering::SeqCst);
        page.word(0).store(7, Ordering::SeqCst);
        again.word(WORDS - 1).store(9, Ordering::SeqCst);
        assert_eq!(again.number(NUMBERS - 1).load(Ordering::SeqCst), u64::MAX);
        assert_eq!(again.word(0).load(Ordering::SeqCst), 7);
        assert_eq!(page.word(WORDS - 1).load(Ordering::SeqCst), 9);
        assert_eq!(page.number(0).load(Ordering::SeqCst), 0);
    }

    #[test]
    fn a_sleeper_is_woken_through_the_other_mapping() {
        let page = SharedPage::create().unwrap();
        let again = SharedPage::open(page.path()).unwrap();
        let file = File::options().write(true).open(page.path()).unwrap();
        assert!(file.set_len(0).is_err(), "nobody can cut it");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                again.word(3).store(1, Ordering::SeqCst);
                again.wake(3);
            });
            while page.word(3).load(Ordering::SeqCst) == 0 {
                page.wait(3, 0, Duration::from_secs(60));
            }
        });
        page.wait(3, 1, Duration::from_millis(1));
        page.wait(3, 0, Duration::from_secs(60));
    }

    #[test]
    fn what_is_no_page_is_refused() {
        assert!(SharedPage::open(Path::new("/proc/self/stat")).is_err());
        assert!(SharedPage::open(Path::new("/proc/1/fd/no")).is_err());
    }
}
