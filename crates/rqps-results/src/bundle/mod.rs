//! Bundles: archives of a result folder and everything needed to repeat it (docs/bundles.md).

mod unpack;

pub use unpack::Bundle;

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};
use thiserror::Error;

use super::read::ResultsError;
use super::store::Temporary;
use rqps_model::build::{self, Manifest};
use rqps_model::{bounded, escape, safe_path, units};

// Errors of a bundle.

/// The reason why a bundle could not be written or read. Each text reads after "failed to".
#[derive(Debug, Error)]
pub enum BundleError {
    /// The operating system refused.
    #[error("{doing} `{}`: {source}", path.display())]
    Io {
        /// `read`, `write`, `create` …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// It cannot be put where it should be.
    #[error(transparent)]
    Place(#[from] ResultsError),
    /// Some other file.
    #[error("read the bundle `{}`: {}; name a file that `rqps bundle` wrote", .0.display(),
            escape::line(.1))]
    NotBundle(PathBuf, String),
    /// Written by a later rqps.
    #[error("read the bundle `{}`: its format version is {}, this rqps knows versions up to \
             {}; use the rqps that wrote it, or a later one", .0.display(), .1, .2)]
    Newer(PathBuf, u32, u32),
    /// Cut off, or changed on its way.
    #[error("read the bundle `{}`: {}; the file is damaged, copy it again", .0.display(),
            escape::line(.1))]
    Damaged(PathBuf, String),
    /// It would take more disk or memory than a bundle needs.
    #[error("read the bundle `{}`: it holds {}; if you trust its sender, unpack it with tar and \
             run results/plan.toml in it", .0.display(), .1)]
    TooLarge(PathBuf, String),
    /// It would write somewhere else.
    #[error("unpack the bundle `{}`: it holds `{}`, which {}; do not use this file",
             .0.display(), escape::line(.1), .2)]
    Unsafe(PathBuf, String, &'static str),
    /// Something that cannot be bundled.
    #[error("bundle `{}`: {}", .0.display(), .1)]
    Unfit(PathBuf, &'static str),
}

impl BundleError {
    /// The error of a failed access.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BundleError {
        let path = path.to_owned();
        move |source| BundleError::Io { doing, path, source }
    }
}

// `bundle.json`, the first file of a bundle: what it is of, and every file in it.

/// The format version of bundles that this program writes.
pub const BUNDLE_FORMAT: u32 = 1;

/// The folder that all entries of the archive lie in.
const ROOT: &str = "rqps-bundle/";

/// The first entry.
const LIST: &str = "bundle.json";

/// Folders that a bundle may contain.
const FOLDERS: [&str; 3] = ["results/", "configs/", "files/"];

/// `bundle.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundleHead {
    /// [`BUNDLE_FORMAT`].
    pub format: u32,
    /// Version of the rqps that wrote the bundle.
    pub rqps_version: String,
    /// Hash of the plan.
    pub plan_hash: String,
    /// The targets with their builds, in the order of the plan.
    pub targets: Vec<BundledTarget>,
    /// Files that the plan reads and the bundle does not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// All other files, in the order of the archive.
    pub files: Vec<BundledFile>,
}

/// A target, and what was measured under its label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundledTarget {
    /// Its label.
    #[serde(deserialize_with = "build::checked_label")]
    pub label: String,
    /// The target word of the plan, without a password.
    pub word: String,
    /// Its builds: coordinates and checksum. More than one if runs differ.
    pub builds: Vec<Manifest>,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledFile {
    /// Its path in the bundle: `results/plan.toml`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256, hex.
    pub sha256: String,
}

/// The reason for refusing a path in a bundle; `None` if it stays inside the bundle's folder.
fn path_fault(path: &str) -> Option<&'static str> {
    if path.starts_with('/') {
        return Some("has an absolute path");
    }
    if path.split('/').any(|part| part == "..") {
        return Some("leaves the folder");
    }
    if path.contains('\0') || path.split('/').any(|part| part.is_empty() || part == ".") {
        return Some("has no plain path");
    }
    None
}

// Writes a bundle. The same files give the same bytes: entries in the order of their paths, no
// times, no users.

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
    if fs::symlink_metadata(to).is_ok_and(|facts| !facts.is_file() && !facts.is_symlink()) {
        return Err(BundleError::Unfit(to.to_owned(), "what has this name is no file"));
    }
    let temporary = Temporary::beside(to)?;
    let archive_bytes = write(temporary.create()?, to, &head, &files)?;
    temporary.put_in_place(to)?;
    let bytes = head.files.iter().map(|file| file.bytes).sum();
    Ok(BundleSize { files: files.len(), bytes, archive_bytes })
}

fn list(file: &PackedFile) -> Result<BundledFile, BundleError> {
    let unfit = |why| Err(BundleError::Unfit(PathBuf::from(&file.path), why));
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
        FileContent::Below(folder, path) => safe_path::folder(folder).and_then(|folder| {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let opened = openat2(&folder, path, flags, Mode::empty(), resolve)?;
            let opened = File::from(opened);
            if rustix::process::geteuid().is_root() {
                safe_path::check_names(&opened, &folder)?;
            }
            Ok(opened)
        }),
        FileContent::Disk(_) | FileContent::Text(_) => bounded::open(path),
    };
    let opened = opened.map_err(BundleError::io("read", path))?;
    let facts = opened.metadata().map_err(BundleError::io("read", path))?;
    if facts.is_file() {
        Ok(opened)
    } else {
        Err(BundleError::Unfit(path.to_owned(), "it is no plain file"))
    }
}

/// Returns the bytes of the archive.
fn write(
    opened: File,
    to: &Path,
    head: &BundleHead,
    files: &[PackedFile],
) -> Result<u64, BundleError> {
    let fault = || BundleError::io("write", to);
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
                    return Err(BundleError::Unfit(path.clone(), why));
                }
            }
        }
    }
    let stream = archive.into_inner().and_then(GzEncoder::finish).map_err(fault())?;
    let file = stream.into_inner().map_err(|error| fault()(error.into_error()))?;
    file.sync_all().map_err(BundleError::io("flush", to))?;
    Ok(file.metadata().map_err(BundleError::io("look at", to))?.len())
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
struct Summed {
    digest: Sha256,
    bytes: u64,
}

impl Summed {
    /// The SHA-256 so far.
    fn hex(self) -> String {
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

    #[test]
    fn paths_stay_below_the_folder() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(path_fault(path), expected, "{path}");
        };
        check("results/b01-1-a/run.json", None);
        check("results/..x/a..b", None);
        check("/etc/passwd", Some("has an absolute path"));
        check("results/../../evil", Some("leaves the folder"));
        check("..", Some("leaves the folder"));
        check("results//x", Some("has no plain path"));
        check("results/./x", Some("has no plain path"));
        check("", Some("has no plain path"));
    }

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
        if rustix::process::geteuid().is_root() {
            // The folder itself is swapped for a link.
            fs::rename(&root, folder.path().join("away")).unwrap();
            std::os::unix::fs::symlink("away", &root).unwrap();
            std::os::unix::fs::lchown(&root, Some(1234), None).unwrap();
            assert!(of("runs/a").is_err());
        }
    }
}
