//! Files in folders of others: no link is followed to what only root may read, no pipe is waited
//! for, and no length is believed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// Opens a plain file to read it.
///
/// # Errors
/// It is a link, or anything else but a file.
pub fn open(path: &Path) -> io::Result<File> {
    let file = File::options().read(true).custom_flags(FLAGS).open(path)?;
    checked(file, u64::MAX)
}

/// As [`open`], for a path in a tree of others: no part of it may be a link.
///
/// # Errors
/// As there.
pub fn open_without_links(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // An old kernel, or a container that forbids the call.
        Err(Errno::NOSYS | Errno::PERM) => open(path),
        opened => checked(File::from(opened?), u64::MAX),
    }
}

const FLAGS: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits().cast_signed();

fn checked(file: File, names_most: u64) -> io::Result<File> {
    let facts = file.metadata()?;
    if facts.is_file() && facts.nlink() <= names_most {
        Ok(file)
    } else {
        Err(io::Error::other("it is no plain file, or has another name elsewhere"))
    }
}

/// Opens a file to append to it, or makes it. No link is followed, and no pipe waited for.
///
/// # Errors
/// It cannot be opened, is no plain file, or has another name elsewhere.
pub fn to_append(path: &Path) -> io::Result<File> {
    let file = File::options().create(true).append(true).custom_flags(FLAGS).open(path)?;
    checked(file, 1)
}

/// The beginning of a plain file, as text.
///
/// # Errors
/// As [`open`].
pub fn beginning(path: &Path, most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The end of a plain file, at most what comes after the byte `from`.
///
/// # Errors
/// As [`open`].
pub fn end(path: &Path, from: u64, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most).max(from)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_plain_files_are_read_and_only_a_part() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "0123456789").unwrap();
        assert_eq!(beginning(&file, 4).unwrap(), "0123");
        assert_eq!(end(&file, 0, 4).unwrap(), b"6789");
        assert_eq!(end(&file, 7, 40).unwrap(), b"789");
        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(open(&link).is_err() && open(folder.path()).is_err());
        assert!(open(Path::new("/dev/null")).is_err());
    }
}
