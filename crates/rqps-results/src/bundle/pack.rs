//! Writes a bundle. The same files give the same bytes: entries in the order of their paths, no
//! times, no users.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

use super::error::BundleError;
use super::list::{BundleHead, BundledFile, FOLDERS, LIST, ROOT, path_fault};

use crate::atomic;
use rqps_model::bounded;
use rqps_model::units;

/// A file on its way into a bundle.
#[derive(Clone, Debug)]
pub struct PackedFile {
    /// Its path in the bundle.
    pub path: String,
    /// Its content.
    pub content: FileContent,
}

/// The source of a file's content.
#[derive(Clone, Debug)]
pub enum FileContent {
    /// In this file.
    Disk(PathBuf),
    /// In this file below a folder, where nobody may put a link.
    Below(PathBuf, PathBuf),
    /// Here.
    Text(String),
}

/// The size of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BundleSize {
    /// Files in it.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes of the archive.
    pub archive_bytes: u64,
}

/// Writes the bundle to `to`: whole, or not at all. Fills in the files of `head`.
///
/// # Errors
/// A file that cannot be read, changes meanwhile, or has no plain path; `to` cannot be written.
pub fn pack(
    to: &Path,
    head: &BundleHead,
    mut files: Vec<PackedFile>,
) -> Result<BundleSize, BundleError> {
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let listed: Result<Vec<BundledFile>, BundleError> = files.iter().map(list).collect();
    let head = BundleHead { files: listed?, ..head.clone() };
    let mut name = OsString::from(".");
    name.push(to.file_name().unwrap_or_default());
    name.push(".partial");
    let partial = to.with_file_name(name);
    let written = write(&partial, &head, &files).and_then(|()| {
        fs::rename(&partial, to).map_err(BundleError::io("put in place", to))?;
        let length = fs::metadata(to).map_err(BundleError::io("look at", to))?.len();
        let bytes = head.files.iter().map(|file| file.bytes).sum();
        Ok(BundleSize { files: files.len(), bytes, archive_bytes: length })
    });
    if written.is_err() {
        // Nothing to remove is fine; the fault that led here is what the user needs.
        fs::remove_file(&partial).ok();
    }
    written
}

fn list(file: &PackedFile) -> Result<BundledFile, BundleError> {
    let unfit = |why| Err(BundleError::Unfit { path: PathBuf::from(&file.path), why });
    if path_fault(&file.path).is_some() {
        return unfit("its path leaves the bundle");
    }
    if !FOLDERS.iter().any(|folder| file.path.starts_with(folder)) {
        return unfit("a bundle has no place for it");
    }
    let mut sum = Summed { digest: Sha256::new(), bytes: 0 };
    match &file.content {
        FileContent::Text(text) => {
            sum.write_all(text.as_bytes())
                .map_err(BundleError::io("read", Path::new(&file.path)))?;
        }
        FileContent::Disk(path) | FileContent::Below(_, path) => {
            let mut opened = open(&file.content, path)?;
            io::copy(&mut opened, &mut sum).map_err(BundleError::io("read", path))?;
        }
    }
    Ok(BundledFile { path: file.path.clone(), bytes: sum.bytes, sha256: sum.hex() })
}

/// Opens the file of a content, and nothing else.
fn open(content: &FileContent, path: &Path) -> Result<File, BundleError> {
    let opened = match content {
        FileContent::Below(folder, path) => File::open(folder).and_then(|folder| {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            Ok(File::from(openat2(folder, path, flags, Mode::empty(), resolve)?))
        }),
        FileContent::Disk(_) | FileContent::Text(_) => bounded::open(path),
    };
    let opened = opened.map_err(BundleError::io("read", path))?;
    let facts = opened.metadata().map_err(BundleError::io("read", path))?;
    if facts.is_file() {
        Ok(opened)
    } else {
        Err(BundleError::Unfit { path: path.to_owned(), why: "it is no plain file" })
    }
}

fn write(to: &Path, head: &BundleHead, files: &[PackedFile]) -> Result<(), BundleError> {
    let fault = || BundleError::io("write", to);
    let opened = atomic::new_file(to).map_err(BundleError::io("create", to))?;
    // No time and no name in the head of the compressed stream.
    let stream = GzBuilder::new().write(BufWriter::new(opened), Compression::best());
    let mut archive = Builder::new(stream);
    let mut text = serde_json::to_string_pretty(head).map_err(io::Error::from).map_err(fault())?;
    text.push('\n');
    append(&mut archive, LIST, text.len() as u64, text.as_bytes()).map_err(fault())?;
    for (file, listed) in files.iter().zip(&head.files) {
        match &file.content {
            FileContent::Text(text) => {
                append(&mut archive, &file.path, listed.bytes, text.as_bytes()).map_err(fault())?;
            }
            FileContent::Disk(path) | FileContent::Below(_, path) => {
                let opened = open(&file.content, path)?;
                let mut taken = Taken { from: opened.take(listed.bytes), sum: Summed::default() };
                append(&mut archive, &file.path, listed.bytes, &mut taken).map_err(fault())?;
                if taken.sum.hex() != listed.sha256 {
                    let why = "it changes while it is read; wait for the end of the measurement";
                    return Err(BundleError::Unfit { path: path.clone(), why });
                }
            }
        }
    }
    let stream = archive.into_inner().and_then(GzEncoder::finish).map_err(fault())?;
    let file = stream.into_inner().map_err(|error| fault()(error.into_error()))?;
    file.sync_all().map_err(BundleError::io("flush", to))
}

fn append(
    archive: &mut Builder<impl Write>,
    path: &str,
    bytes: u64,
    content: impl Read,
) -> io::Result<()> {
    let mut header = Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(bytes);
    archive.append_data(&mut header, format!("{ROOT}{path}"), content)
}

/// Adds up what is written to it.
#[derive(Default)]
pub(super) struct Summed {
    digest: Sha256,
    pub(super) bytes: u64,
}

impl Summed {
    /// The SHA-256 so far.
    pub(super) fn hex(self) -> String {
        units::hex(&self.digest.finalize())
    }
}

impl Write for Summed {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.digest.update(piece);
        self.bytes += piece.len() as u64;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Adds up what is read through it.
struct Taken<R> {
    from: R,
    sum: Summed,
}

impl<R: Read> Read for Taken<R> {
    fn read(&mut self, piece: &mut [u8]) -> io::Result<usize> {
        let length = self.from.read(piece)?;
        self.sum.write_all(&piece[..length])?;
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Somebody puts a link where a file of the results was.
    #[test]
    fn a_link_in_the_place_of_a_file_is_not_packed() {
        let folder = tempfile::tempdir().unwrap();
        let (root, secret) = (folder.path().join("out"), folder.path().join("secret"));
        fs::create_dir_all(root.join("runs")).unwrap();
        fs::write(&secret, "dear").unwrap();
        fs::write(root.join("runs/a"), "1").unwrap();
        std::os::unix::fs::symlink(&secret, root.join("runs/b")).unwrap();
        std::os::unix::fs::symlink("runs", root.join("link")).unwrap();
        let of = |path: &str| {
            let content = FileContent::Below(root.clone(), PathBuf::from(path));
            open(&content, Path::new(path))
        };
        assert!(of("runs/a").is_ok());
        for path in ["runs/b", "link/a", "../secret", "runs"] {
            assert!(of(path).is_err(), "{path}");
        }
    }
}
