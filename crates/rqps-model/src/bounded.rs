//! Reads files of others: as files, and up to a length.

use std::fs::File;
use std::io::{self, BufRead, ErrorKind, Read};
use std::path::Path;

use crate::{safe_path, units};

/// Longest text that a person writes: plans, workloads, recipes, lists.
pub const WRITTEN_MAX: u64 = 64 << 20;

/// Longest record of a run folder. The largest known ones have some megabytes.
pub const RECORD_MAX: u64 = 1 << 30;

/// Longest statement or row of a file of SQL or CSV. Servers take 1 GB at most, and by default less.
pub const STATEMENT_MAX: u64 = 256 << 20;

/// Longest file of certificates or of a key; those of all authorities of a system have .2 MB.
pub const PEM_MAX: u64 = 16 << 20;

/// Opens a file without waiting, whatever it is.
///
/// # Errors
/// It cannot be opened; for root, a link of another user leads there.
pub fn open(path: &Path) -> io::Result<File> {
    safe_path::open_file(path)
}

/// Opens a plain file without waiting.
///
/// # Errors
/// It cannot be opened, or is a pipe, a device or a folder.
pub fn plain(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        let why = "it is no plain file; write its content into one";
        Err(io::Error::new(ErrorKind::InvalidInput, why))
    }
}

/// The content of a file of vectors, which are read whole: what fits into the memory of this host.
///
/// # Errors
/// As [`bytes`].
pub fn data(path: &Path) -> io::Result<Vec<u8>> {
    let available = File::open("/proc/meminfo").and_then(|file| {
        let mut text = String::new();
        file.take(WRITTEN_MAX).read_to_string(&mut text)?;
        Ok(text)
    });
    let text = available.unwrap_or_default();
    let left = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let left = left.and_then(|left| left.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    bytes(path, left.map_or(RECORD_MAX, |left| left.saturating_mul(1024)))
}

/// Reads to the end of a line, at most so many bytes. Returns their number.
///
/// # Errors
/// It cannot be read, or is longer.
pub fn line(from: &mut impl BufRead, to: &mut Vec<u8>, most: u64) -> io::Result<usize> {
    let length = from.take(most + 1).read_until(b'\n', to)?;
    if length as u64 > most { Err(too_long(most)) } else { Ok(length) }
}

/// The content of a file.
///
/// # Errors
/// It cannot be read, is a pipe, a device or a folder, or is longer than `most` bytes.
pub fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    rest(plain(path)?, most)
}

/// What is left of an open file.
///
/// # Errors
/// It cannot be read, or is longer than `most` bytes.
pub fn rest(file: File, most: u64) -> io::Result<Vec<u8>> {
    // What is too long is not read first.
    if file.metadata()?.len() > most {
        return Err(too_long(most));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(bytes) }
}

/// The text of a file.
///
/// # Errors
/// As [`bytes`]; it is not UTF-8.
pub fn text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(bytes(path, most)?)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// The error of a file that is longer than it may be.
pub fn too_long(most: u64) -> io::Error {
    let why = format!("it is longer than {}, the most that rqps reads of it", units::bytes(most));
    io::Error::new(ErrorKind::FileTooLarge, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_up_to_a_length_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(text(&path, 3).unwrap(), "abc");
        let error = text(&path, 2).unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
        for other in [folder.path(), Path::new("/dev/zero"), Path::new("/dev/null")] {
            let error = bytes(other, 10).unwrap_err().to_string();
            assert!(error.contains("no plain file"), "{error}");
        }
        let endless = io::repeat(b'x');
        let mut read = Vec::new();
        assert!(line(&mut io::BufReader::new(endless), &mut read, 100).is_err());
        assert_eq!(read.len(), 101);
        read.clear();
        assert_eq!(line(&mut &b"abc\nd"[..], &mut read, 4).unwrap(), 4);
        assert!(plain(Path::new("/dev/zero")).is_err());
        assert_eq!(data(&path).unwrap(), b"abc");
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(text(&path, 3).unwrap_err().kind(), ErrorKind::InvalidData);
    }
}
