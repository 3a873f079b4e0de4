//! One page of memory that several processes share: numbers to read and write without a lock, and
//! words to wait at until another process changes them (futex).
//!
//! The page is an anonymous file (memfd) of the process that makes it; others open it by its path
//! in /proc. It goes with the last process that has it, so a crash leaves nothing behind.
#![allow(unsafe_code)] // The mapping, and the views into it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::time::Duration;

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};
use rustix::thread::futex;
use rustix::time::Timespec;

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
