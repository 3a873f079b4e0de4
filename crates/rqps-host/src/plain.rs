//! Files in folders of others: no link is followed to what only root may read, no pipe is waited
//! for, and no length is believed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a plain file to read it.
///
/// # Errors
/// It is a link, or anything else but a file.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no plain file")),
    }
}

/// Opens a file to append to it, or makes it. No link is followed, and no pipe waited for.
///
/// # Errors
/// It cannot be opened, is no plain file, or has another name elsewhere.
pub fn to_append(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = File::options().create(true).append(true).custom_flags(flags).open(path)?;
    let facts = file.metadata()?;
    match facts.is_file() && facts.nlink() == 1 {
        true => Ok(file),
        false => Err(io::Error::other("it is no plain file, or has another name elsewhere")),
    }
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

/// The end of a plain file.
///
/// # Errors
/// As [`open`].
pub fn end(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
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
        assert_eq!(end(&file, 4).unwrap(), b"6789");
        assert_eq!(end(&file, 40).unwrap(), b"0123456789");
        let link = folder.path().join("link");
        symlink(&file, &link).unwrap();
        assert!(open(&link).is_err() && open(folder.path()).is_err());
        assert!(open(Path::new("/dev/null")).is_err());
    }
}
