//! Takes in what another host wrote. It is hostile until shown otherwise: only folders and plain
//! files below one folder, no links, a bounded number of bytes, files and levels.

use std::ffi::{CStr, CString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};

/// The most that a block may send.
pub(super) const OF_BLOCK: Bounds = Bounds { bytes: 16 << 30, entries: 200_000, depth: 12 };

/// The longest path in a tar, in bytes.
const PATH_MOST: u64 = 4096;
/// The longest list of extended headers, which rqps passes over.
const HEADERS_MOST: u64 = 64 << 10;
const CHUNK: usize = 64 << 10;

/// What may be taken in yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    bytes: u64,
    entries: u64,
    depth: u32,
}

impl Bounds {
    fn count_entry(&mut self) -> Result<()> {
        match self.entries.checked_sub(1) {
            Some(left) => self.entries = left,
            None => bail!("it has too many files"),
        }
        Ok(())
    }

    /// Copies a file, as far as its bytes may be taken in.
    fn pour(&mut self, from: &mut dyn Read, to: &mut File) -> Result<()> {
        let mut piece = vec![0; CHUNK];
        loop {
            let count = match from.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            match self.bytes.checked_sub(count as u64) {
                Some(left) => self.bytes = left,
                None => bail!("it is too large"),
            }
            to.write_all(&piece[..count])?;
        }
    }
}

/// Makes a folder of this user alone, which must not be there.
fn make(folder: &Path) -> Result<()> {
    let made = DirBuilder::new().mode(0o700).create(folder);
    made.with_context(|| format!("make {}", folder.display()))
}

/// Copies the folder `from`, which others may change meanwhile, to `to`, which must not be there.
///
/// # Errors
/// It has something else than folders and plain files, or exceeds the bounds.
pub(super) fn copy(from: &Path, to: &Path, mut bounds: Bounds) -> Result<()> {
    let opened = open_folder(CWD, from).with_context(|| format!("open {}", from.display()))?;
    make(to)?;
    let levels = bounds.depth;
    copy_folder(opened, (Path::new(""), to), &mut bounds, levels)
        .with_context(|| format!("take in {}", from.display()))
}

fn open_folder(at: impl AsFd, name: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(at, name, flags, Mode::empty())?)
}

fn copy_folder(
    from: OwnedFd,
    (below, to): (&Path, &Path),
    bounds: &mut Bounds,
    levels: u32,
) -> Result<()> {
    let Some(levels) = levels.checked_sub(1) else { bail!("{}: too deep", below.display()) };
    let mut names: Vec<CString> = Vec::new();
    for entry in Dir::read_from(&from)? {
        let entry = entry?;
        if ![c".", c".."].contains(&entry.file_name()) {
            bounds.count_entry()?;
            names.push(entry.file_name().to_owned());
        }
    }
    for name in names {
        let plain = plain(&name).with_context(|| format!("in `{}`", below.display()))?;
        let below = below.join(plain);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = openat(&from, plain, flags, Mode::empty());
        let opened = opened.map_err(|error| anyhow!("{}: {error}", below.display()))?;
        let kind = FileType::from_raw_mode(fstat(&opened)?.st_mode);
        let target = to.join(plain);
        match kind {
            FileType::Directory => {
                make(&target)?;
                copy_folder(opened, (&below, &target), bounds, levels)?;
            }
            FileType::RegularFile => {
                let mut made = File::create_new(&target)?;
                bounds
                    .pour(&mut File::from(opened), &mut made)
                    .with_context(|| format!("{}", below.display()))?;
            }
            _ => bail!("{}: it is no plain file", below.display()),
        }
    }
    Ok(())
}

/// A name of a file that can be shown and typed.
fn plain(name: &CStr) -> Result<&str> {
    match name.to_str() {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text),
        _ => bail!("{name:?} is no plain name"),
    }
}

/// Unpacks a tar into the folder `to`, which must not be there.
///
/// # Errors
/// As [`copy`], and for paths that lead elsewhere.
pub(super) fn unpack(stream: impl Read, to: &Path, mut bounds: Bounds) -> Result<()> {
    make(to)?;
    let mut archive = tar::Archive::new(stream);
    // The path of the next entry, if it is too long for its own header.
    let mut long: Option<Vec<u8>> = None;
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry?;
        bounds.count_entry()?;
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() {
            let mut name = Vec::new();
            entry.by_ref().take(PATH_MOST + 1).read_to_end(&mut name)?;
            name.truncate(name.iter().position(|byte| *byte == 0).unwrap_or(name.len()));
            if name.len() as u64 >= PATH_MOST {
                bail!("a path in it is too long");
            }
            long = Some(name);
            continue;
        }
        if kind.is_pax_local_extensions() || kind.is_pax_global_extensions() {
            if entry.size() > HEADERS_MOST {
                bail!("a header in it is too long");
            }
            continue;
        }
        let name = long.take().unwrap_or_else(|| entry.path_bytes().into_owned());
        let shown = String::from_utf8_lossy(&name).escape_debug().to_string();
        let path = relative(&name, bounds.depth).with_context(|| format!("`{shown}`"))?;
        let target = to.join(&path);
        if kind.is_dir() {
            // The folder itself is the first entry.
            make_all(to, &path)?;
        } else if kind.is_file() {
            make_all(to, path.parent().unwrap_or(Path::new("")))?;
            let mut made = File::create_new(&target).with_context(|| format!("`{shown}`"))?;
            bounds.pour(&mut entry, &mut made).with_context(|| format!("`{shown}`"))?;
        } else {
            bail!("`{shown}` is neither a folder nor a plain file");
        }
    }
    Ok(())
}

/// Makes folders below `to`, in which there are no links.
fn make_all(to: &Path, path: &Path) -> Result<()> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(to.join(path));
    made.with_context(|| format!("make {}", path.display()))
}

/// The path of an entry, if it leads to nowhere but below the folder.
fn relative(name: &[u8], depth: u32) -> Result<PathBuf> {
    let text = std::str::from_utf8(name).context("it is no text")?;
    if text.chars().any(char::is_control) {
        bail!("it has control characters");
    }
    let mut path = PathBuf::new();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(part) => path.push(part),
            Component::CurDir => {}
            _ => bail!("it leads out of the folder"),
        }
    }
    if path.components().count() > depth as usize {
        bail!("it is too deep");
    }
    Ok(path)
}

/// The text of a file of a folder that was taken in, if it is not longer than `most` bytes.
///
/// # Errors
/// It is longer, or cannot be read.
pub(super) fn text(file: &Path, most: u64) -> Result<String> {
    let what = || format!("read {}", file.display());
    let length = fs::symlink_metadata(file).with_context(what)?.len();
    if length > most {
        bail!("{}: it has {length} bytes", what());
    }
    fs::read_to_string(file).with_context(what)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const FEW: Bounds = Bounds { bytes: 1000, entries: 10, depth: 3 };

    /// A tar with one entry of that kind; a name is written into its header as it is.
    fn tar(name: &str, kind: tar::EntryType, content: &[u8]) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        let field = &mut header.as_gnu_mut().unwrap().name;
        field[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(kind);
        header.set_mode(0o4777);
        header.set_size(content.len() as u64);
        if kind.is_symlink() || kind.is_hard_link() {
            header.set_link_name("/etc/passwd").unwrap();
        }
        header.set_cksum();
        let mut made = tar::Builder::new(Vec::new());
        made.append(&header, content).unwrap();
        made.into_inner().unwrap()
    }

    #[test]
    fn a_tar_that_leads_elsewhere_is_refused() {
        use tar::EntryType;
        let folder = tempfile::tempdir().unwrap();
        let check = |name: &str, kind: EntryType, content: &[u8], part: &str| {
            let to = folder.path().join("to");
            let error = unpack(&*tar(name, kind, content), &to, FEW).unwrap_err();
            assert!(format!("{error:#}").contains(part), "{name}: {error:#}");
            assert!(!folder.path().join("evil").exists(), "{name}");
            fs::remove_dir_all(&to).unwrap();
        };
        check("../evil", EntryType::Regular, b"x", "leads out");
        check("a/../../evil", EntryType::Regular, b"x", "leads out");
        check("/tmp/rqps-evil", EntryType::Regular, b"x", "leads out");
        check("link", EntryType::Symlink, b"", "neither a folder nor");
        check("link", EntryType::Link, b"", "neither a folder nor");
        check("null", EntryType::Char, b"", "neither a folder nor");
        check("pipe", EntryType::Fifo, b"", "neither a folder nor");
        check("a/b/c/d", EntryType::Regular, b"x", "too deep");
        check("large", EntryType::Regular, &[0; 1001], "too large");
        check("a\u{1b}[2J", EntryType::Regular, b"x", "control characters");
        check("long", EntryType::GNULongName, &[b'a'; 5000], "too long");
    }

    #[test]
    fn what_is_plain_is_unpacked_without_its_rights() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let to = folder.path().join("to");
        unpack(&*tar("./a/b", tar::EntryType::Regular, b"x"), &to, FEW).unwrap();
        assert_eq!(fs::read_to_string(to.join("a/b")).unwrap(), "x");
        assert_eq!(fs::metadata(to.join("a/b")).unwrap().permissions().mode() & 0o7111, 0);
        let mut made = tar::Builder::new(Vec::new());
        let long = "n".repeat(150);
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        header.set_mode(0o644);
        made.append_data(&mut header, &long, &b"y"[..]).unwrap();
        let other = folder.path().join("other");
        unpack(&*made.into_inner().unwrap(), &other, FEW).unwrap();
        assert_eq!(fs::read_to_string(other.join(long)).unwrap(), "y");
    }

    #[test]
    fn a_folder_is_copied_without_links() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::create_dir_all(from.join("run/steps")).unwrap();
        fs::write(from.join("run/steps/1"), "x").unwrap();
        copy(&from, &to, FEW).unwrap();
        assert_eq!(fs::read_to_string(to.join("run/steps/1")).unwrap(), "x");
        assert!(copy(&from, &to, FEW).is_err(), "it is there");
        symlink("/etc", from.join("run/etc")).unwrap();
        let error = copy(&from, &folder.path().join("other"), FEW).unwrap_err();
        assert!(format!("{error:#}").contains("run/etc"), "{error:#}");
        symlink(&from, folder.path().join("link")).unwrap();
        assert!(copy(&folder.path().join("link"), &folder.path().join("third"), FEW).is_err());
        fs::remove_file(from.join("run/etc")).unwrap();
        let small = Bounds { entries: 2, ..FEW };
        assert!(copy(&from, &folder.path().join("fourth"), small).is_err());
    }
}
