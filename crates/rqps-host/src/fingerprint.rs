//! What a file or a tree of files holds: one hash for the user, and marks of each file by which the
//! kernel shows that somebody changed it later.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::beneath;
use rqps_model::{bounded, units};

/// Most entries of a tree. What has more is no build.
const ENTRIES_MOST: usize = 500_000;

/// Most bytes of a file or a tree, holes among them: reading them takes minutes.
const BYTES_MOST: u64 = 64 << 30;

/// Most bytes of a file of sources, which a build reads as a whole.
const SOURCE_MOST: u64 = 1 << 30;

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
    /// True if links count by where they lead.
    keeps_links: bool,
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
        let (mut sum, mut marks) = (Sha256::new(), Vec::new());
        if !path.is_dir() {
            marks.push((path.clone(), hash_into(&mut sum, &path, bounded::plain(&path))?));
            return Ok(Fingerprint::new(path, &sum.finalize(), marks, false));
        }
        for file in files(&path, false)? {
            let mut own = Sha256::new();
            let mark = hash_into(&mut own, &file, bounded::plain(&file))?;
            let name = file.strip_prefix(&path).unwrap_or(&file);
            sum.update(name.as_os_str().as_encoded_bytes());
            sum.update(format!("\0{}\n", units::hex(&own.finalize())));
            marks.push((file, mark));
        }
        Ok(Fingerprint::new(path, &sum.finalize(), marks, false))
    }

    fn new(path: PathBuf, sum: &[u8], marks: Vec<(PathBuf, Mark)>, keeps_links: bool) -> Self {
        let bytes = marks.iter().map(|(_, mark)| mark.bytes).sum();
        let (sha256, files) = (units::hex(sum), marks.len());
        Fingerprint { path, sha256, files, bytes, marks, keeps_links }
    }

    /// Reads a folder of sources as a build of it does: all files below, and links by where they
    /// lead, without following them. Calls `each` after each file; false ends it.
    ///
    /// # Errors
    /// Something cannot be read, changes meanwhile, or `each` ended it.
    pub fn of_sources(path: &Path, each: &mut dyn FnMut() -> bool) -> io::Result<Fingerprint> {
        let path = path.canonicalize()?;
        let (mut sum, mut marks) = (Sha256::new(), Vec::new());
        for file in files(&path, true)? {
            let name = file.strip_prefix(&path).unwrap_or(&file);
            sum.update(name.as_os_str().as_encoded_bytes());
            sum.update([0]);
            let facts = fs::symlink_metadata(&file)?;
            let mark = match facts.is_symlink() {
                true => {
                    sum.update(fs::read_link(&file)?.as_os_str().as_encoded_bytes());
                    Mark::of(&facts)
                }
                // Others may put a link to what only root may read in the place of a file, or
                // above it.
                false => hash_into(&mut sum, &file, beneath::open_without_links(&file))?,
            };
            sum.update([0]);
            marks.push((file, mark));
            if !each() {
                return Err(io::ErrorKind::Interrupted.into());
            }
        }
        Ok(Fingerprint::new(path, &sum.finalize(), marks, true))
    }

    /// Checks that nobody has changed, added or removed a file since. Costs one look at each file.
    ///
    /// # Errors
    /// Somebody has; the text names the first file.
    pub fn check(&self) -> Result<(), String> {
        let gone = |path: &Path| format!("{}: it was changed after it was allowed", path.display());
        let now = if self.path.is_dir() {
            files(&self.path, self.keeps_links).map_err(|_| gone(&self.path))?
        } else {
            vec![self.path.clone()]
        };
        if now.len() != self.marks.len() {
            return Err(gone(&self.path));
        }
        for (path, (known, mark)) in now.iter().zip(&self.marks) {
            let now = look(path, self.keeps_links);
            if path != known || !now.is_ok_and(|facts| Mark::of(&facts) == *mark) {
                return Err(gone(path));
            }
        }
        Ok(())
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Adds the content of an opened file to a hash. Returns its mark.
fn hash_into(sum: &mut Sha256, path: &Path, file: io::Result<File>) -> io::Result<Mark> {
    let mut file = file.map_err(|error| named(path, &error))?;
    let wrong = |what: &str| io::Error::other(format!("{}: {what}", path.display()));
    let before = Mark::of(&file.metadata()?);
    if before.bytes > BYTES_MOST {
        return Err(too_large(path, BYTES_MOST));
    }
    let mut bytes = 0;
    let mut piece = vec![0; 256 << 10];
    loop {
        let length = file.read(&mut piece).map_err(|error| named(path, &error))?;
        if length == 0 {
            break;
        }
        bytes += length as u64;
        if bytes > before.bytes {
            return Err(wrong("it grows while rqps reads it"));
        }
        sum.update(piece.get(..length).unwrap_or_default());
    }
    if Mark::of(&file.metadata()?) == before {
        Ok(before)
    } else {
        Err(wrong("it changes while rqps reads it"))
    }
}

/// Files and links of a folder of sources: its own path and that of each below it, in order.
///
/// # Errors
/// A folder cannot be read; there are too many files.
pub fn sources_below(folder: &Path) -> io::Result<Vec<PathBuf>> {
    files(folder, true)
}

fn too_large(path: &Path, most: u64) -> io::Error {
    io::Error::other(format!("{}: more than {} GiB", path.display(), most >> 30))
}

fn look(path: &Path, keeps_links: bool) -> io::Result<Metadata> {
    if keeps_links { fs::symlink_metadata(path) } else { fs::metadata(path) }
}

/// All files below a folder, in order. Links are files of their own, or followed; then a folder
/// that several lead to counts once.
fn files(root: &Path, keeps_links: bool) -> io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    let (mut seen, mut entries, mut bytes) = (BTreeSet::new(), 0, 0u64);
    while let Some(folder) = folders.pop() {
        let facts = fs::metadata(&folder)?;
        if !seen.insert((facts.dev(), facts.ino())) {
            continue;
        }
        let found = fs::read_dir(&folder).map_err(|error| named(&folder, &error))?;
        let found = found.map(|entry| Ok(entry?.path())).collect::<io::Result<BTreeSet<_>>>()?;
        entries += found.len();
        if entries > ENTRIES_MOST {
            let text = format!("{}: more than {ENTRIES_MOST} files", root.display());
            return Err(io::Error::other(text));
        }
        for path in found {
            let facts = match look(&path, keeps_links) {
                // A link that leads nowhere is nothing that could be read.
                Err(_) if !keeps_links => continue,
                facts => facts.map_err(|error| named(&path, &error))?,
            };
            if facts.is_dir() {
                folders.push(path);
            } else if facts.is_file() || facts.is_symlink() {
                if keeps_links && facts.len() > SOURCE_MOST {
                    return Err(too_large(&path, SOURCE_MOST));
                }
                bytes = bytes.saturating_add(facts.len());
                if bytes > BYTES_MOST {
                    return Err(too_large(root, BYTES_MOST));
                }
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

    /// As the build copies it: what a link leads to is no part of it, where it leads is.
    #[test]
    fn sources_have_links_by_where_they_lead() {
        let folder = tempfile::tempdir().unwrap();
        let (root, other) = (folder.path().join("src"), folder.path().join("other"));
        fs::create_dir_all(root.join("a")).unwrap();
        fs::write(root.join("a/x.c"), "one").unwrap();
        fs::write(&other, "secret").unwrap();
        std::os::unix::fs::symlink("../other", root.join("link")).unwrap();
        let print = || Fingerprint::of_sources(&root, &mut || true).unwrap();
        let first = print();
        assert_eq!(first.files, 2);
        let want = [&b"a/x.c\0one\0"[..], b"link\0../other\0"].concat();
        assert_eq!(first.sha256, units::hex(&Sha256::digest(&want)));
        fs::write(&other, "changed").unwrap();
        assert_eq!(print().sha256, first.sha256);
        first.check().unwrap();
        fs::remove_file(root.join("link")).unwrap();
        std::os::unix::fs::symlink("a/x.c", root.join("link")).unwrap();
        assert!(first.check().is_err());
        assert_ne!(print().sha256, first.sha256);
        assert!(Fingerprint::of_sources(&root, &mut || false).is_err());
    }

    #[test]
    fn holes_count_before_anything_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let hole = |name: &str, bytes: u64| {
            let path = folder.path().join(name);
            File::create(&path).unwrap().set_len(bytes).unwrap();
            path
        };
        let large = hole("large", (1 << 30) + 1);
        let said = sources_below(folder.path()).unwrap_err().to_string();
        assert_eq!(said, format!("{}: more than 1 GiB", large.display()));
        hole("large", 1 << 42);
        for path in [folder.path(), &large] {
            let said = Fingerprint::of(path).unwrap_err().to_string();
            assert!(said.ends_with(": more than 64 GiB"), "{said}");
        }
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
