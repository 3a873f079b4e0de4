//! What a file or a tree of files holds: one hash for the user, and marks of each file by which the
//! kernel shows that somebody changed it later.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::units;

/// Most entries of a tree. What has more is no build.
const ENTRIES_MOST: usize = 500_000;

/// A file, or all files below a folder, at the time when they were hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    /// Its path without links.
    pub path: PathBuf,
    /// SHA-256 of the file; of a tree, of the names and hashes of its files.
    pub sha256: String,
    /// Number of files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    marks: Vec<(PathBuf, Mark)>,
}

/// What the kernel knows of a file. Whoever writes to it or replaces it changes one of these:
/// nobody sets the time of the last change of an inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Mark {
    fn of(metadata: &Metadata) -> Mark {
        Mark {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Fingerprint {
    /// Reads a file, or all files below a folder. Links are followed; what is neither file nor
    /// folder does not count.
    ///
    /// # Errors
    /// Something cannot be read, changed meanwhile, or is no file.
    pub fn of(path: &Path) -> io::Result<Fingerprint> {
        let path = path.canonicalize()?;
        if !path.is_dir() {
            let (sha256, mark) = hashed(&path)?;
            let marks = vec![(path.clone(), mark)];
            return Ok(Fingerprint { path, sha256, files: 1, bytes: mark.bytes, marks });
        }
        let mut sum = Sha256::new();
        let mut marks = Vec::new();
        for file in files_below(&path)? {
            let (sha256, mark) = hashed(&file)?;
            let name = file.strip_prefix(&path).unwrap_or(&file);
            sum.update(name.as_os_str().as_encoded_bytes());
            sum.update(format!("\0{sha256}\n"));
            marks.push((file, mark));
        }
        Ok(Fingerprint {
            path,
            sha256: units::hex(&sum.finalize()),
            files: marks.len(),
            bytes: marks.iter().map(|(_, mark)| mark.bytes).sum(),
            marks,
        })
    }

    /// Checks that nobody has changed, added or removed a file since. Costs one look at each file.
    ///
    /// # Errors
    /// Somebody has; the text names the first file.
    pub fn check(&self) -> Result<(), String> {
        let gone = |path: &Path| format!("{}: it was changed after it was allowed", path.display());
        let now = match self.path.is_dir() {
            true => files_below(&self.path).map_err(|_| gone(&self.path))?,
            false => vec![self.path.clone()],
        };
        if now.len() != self.marks.len() {
            return Err(gone(&self.path));
        }
        for (path, (known, mark)) in now.iter().zip(&self.marks) {
            let same = fs::metadata(path).is_ok_and(|metadata| Mark::of(&metadata) == *mark);
            if path != known || !same {
                return Err(gone(path));
            }
        }
        Ok(())
    }
}

/// SHA-256 of a file that is opened once, and its mark.
fn hashed(path: &Path) -> io::Result<(String, Mark)> {
    let wrong = |what: &str| io::Error::other(format!("{}: {what}", path.display()));
    let named =
        |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut file = open_file(path).map_err(named)?;
    let before = Mark::of(&file.metadata()?);
    let (mut sum, mut bytes) = (Sha256::new(), 0);
    let mut piece = vec![0; 256 << 10];
    loop {
        let length = file.read(&mut piece).map_err(named)?;
        if length == 0 {
            break;
        }
        bytes += length as u64;
        if bytes > before.bytes {
            return Err(wrong("it grows while rqps reads it"));
        }
        sum.update(piece.get(..length).unwrap_or_default());
    }
    if Mark::of(&file.metadata()?) != before {
        return Err(wrong("it changes while rqps reads it"));
    }
    Ok((units::hex(&sum.finalize()), before))
}

/// Opens what is a file, and never waits for the other end of a pipe.
///
/// # Errors
/// It cannot be read, or is no file.
pub fn open_file(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file")),
    }
}

/// All files below a folder, in order. A folder that several links lead to counts once.
fn files_below(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut seen = BTreeSet::new();
    let mut folders = vec![root.to_owned()];
    let mut entries = 0;
    while let Some(folder) = folders.pop() {
        let metadata = fs::metadata(&folder)?;
        if !seen.insert((metadata.dev(), metadata.ino())) {
            continue;
        }
        let mut found: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&folder)? {
            found.push(entry?.path());
        }
        found.sort();
        entries += found.len();
        if entries > ENTRIES_MOST {
            let text = format!("{}: more than {ENTRIES_MOST} files", root.display());
            return Err(io::Error::other(text));
        }
        // A link that leads nowhere is nothing that could be read.
        for (path, metadata) in found.into_iter().filter_map(|path| {
            let metadata = fs::metadata(&path).ok()?;
            Some((path, metadata))
        }) {
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_later_change_shows() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::write(root.join("bin/server"), "one").unwrap();
        std::os::unix::fs::symlink("bin", root.join("sbin")).unwrap();
        std::os::unix::fs::symlink("..", root.join("bin/loop")).unwrap();
        let tree = Fingerprint::of(&root).unwrap();
        assert_eq!((tree.files, tree.bytes), (1, 3));
        let file = Fingerprint::of(&root.join("bin/server")).unwrap();
        assert_eq!(file.sha256, units::sha256("one"));
        tree.check().unwrap();
        file.check().unwrap();
        fs::write(root.join("bin/more"), "").unwrap();
        assert!(tree.check().unwrap_err().contains("tree"));
        fs::remove_file(root.join("bin/more")).unwrap();
        tree.check().unwrap();
        // Same length, same time of modification: the inode was changed still.
        let was = fs::metadata(root.join("bin/server")).unwrap().modified().unwrap();
        fs::write(root.join("bin/server"), "two").unwrap();
        File::open(root.join("bin/server")).unwrap().set_modified(was).unwrap();
        assert!(tree.check().unwrap_err().contains("bin/server"));
        assert!(file.check().is_err());
        let now = Fingerprint::of(&root).unwrap();
        assert_ne!(now.sha256, tree.sha256);
        // Another file that was moved there.
        fs::write(folder.path().join("new"), "two").unwrap();
        fs::rename(folder.path().join("new"), root.join("bin/server")).unwrap();
        assert!(now.check().is_err());
        assert_eq!(Fingerprint::of(&root).unwrap().sha256, now.sha256);
    }

    #[test]
    fn devices_and_pipes_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Fingerprint::of(Path::new("/dev/zero")).is_err());
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(Fingerprint::of(&pipe).is_err());
        assert_eq!(Fingerprint::of(folder.path()).unwrap().files, 0);
    }
}
