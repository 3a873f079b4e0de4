//! Reads a bundle. All of it is checked before anything is written: each entry must be the next
//! file of the list, with its length and checksum.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use flate2::bufread::GzDecoder;
use serde::Deserialize;
use tar::{Archive, Entry};

use super::{
    BUNDLE_FORMAT, BundleError, BundleHead, BundledFile, FOLDERS, LIST, ROOT, Summed, path_fault,
};
use rqps_model::{bounded, escape, safe_path, units};

/// The list of a bundle is not longer than this; what claims to be is no bundle.
const LIST_BYTES_MAX: u64 = 4 << 20;

/// Most files of a bundle: a measurement of a day has some thousand.
const FILES_MAX: usize = 200_000;

/// Longest path in a bundle, and most folders in it.
const PATH_BYTES_MAX: u64 = 1024;
const DEPTH_MAX: usize = 16;

/// Most unpacked bytes for each byte of the archive, of files together. Records and tables of
/// seconds shrink to a twentieth. Small bundles may hold [`BYTES_FREE`].
const RATIO_MAX: u64 = 100;
const BYTES_FREE: u64 = 64 << 20;

/// Most bytes between the last entry and the end of the archive.
const TAIL_MAX: u64 = 64 << 10;

/// The first bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

type Stream = GzDecoder<BufReader<File>>;

/// A bundle that was read whole.
#[derive(Clone, Debug)]
pub struct Bundle {
    path: PathBuf,
    head: BundleHead,
}

impl Bundle {
    /// True if a file may be a bundle, by its first bytes: a plan file never begins with them.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub fn is_meant(path: &Path) -> Result<bool, BundleError> {
        let opened = bounded::open(path).map_err(BundleError::io("read", path))?;
        let mut start = Vec::new();
        opened.take(2).read_to_end(&mut start).map_err(BundleError::io("read", path))?;
        Ok(start == GZIP)
    }

    /// Reads the whole file, and writes nothing.
    ///
    /// # Errors
    /// It is no bundle, a newer one, damaged, or would write elsewhere.
    pub fn open(path: &Path) -> Result<Bundle, BundleError> {
        let mut nowhere = |_: &BundledFile| Ok(Box::new(io::sink()) as Box<dyn Write>);
        let head = walk(path, &mut nowhere)?;
        Ok(Bundle { path: path.to_owned(), head })
    }

    /// The head of the bundle.
    pub fn head(&self) -> &BundleHead {
        &self.head
    }

    /// Bytes of its files.
    pub fn bytes(&self) -> u64 {
        self.head.files.iter().map(|file| file.bytes).sum()
    }

    /// Writes its files below `folder`, which must not be there yet.
    ///
    /// # Errors
    /// The folder cannot be written; the file has changed since it was opened. What was written
    /// stays behind then: only who made the folder around it knows how to remove it.
    pub fn unpack(&self, folder: &Path) -> Result<(), BundleError> {
        safe_path::new_folder(folder, 0o777).map_err(BundleError::io("create", folder))?;
        let mut create = |file: &BundledFile| {
            let place = folder.join(&file.path);
            let parent = place.parent().unwrap_or(folder);
            safe_path::make_folder(parent).map_err(BundleError::io("create", parent))?;
            let made = safe_path::new_file(&place).map_err(BundleError::io("create", &place))?;
            Ok(Box::new(made) as Box<dyn Write>)
        };
        walk(&self.path, &mut create).map(drop)
    }
}

type Create<'a> = &'a mut dyn FnMut(&BundledFile) -> Result<Box<dyn Write>, BundleError>;

/// Reads the archive from end to end; the content of each file goes where `create` says.
fn walk(path: &Path, create: Create<'_>) -> Result<BundleHead, BundleError> {
    let opened = File::open(path).map_err(BundleError::io("read", path))?;
    let mut archive = Archive::new(GzDecoder::new(BufReader::with_capacity(1 << 16, opened)));
    // Raw: the library would keep long names and extensions in memory, whatever their length.
    let mut entries = archive.entries().map_err(BundleError::io("read", path))?.raw(true);
    let damaged = |why: String| BundleError::Damaged(path.to_owned(), why);
    let cut = |error: io::Error| damaged(format!("it cannot be read to its end ({error})"));
    let first = match entries.next() {
        Some(Ok(first)) => first,
        Some(Err(error)) => return Err(not_bundle(path, format!("it is no tar.gz ({error})"))),
        None => return Err(not_bundle(path, "it is empty".to_owned())),
    };
    let head = read_list(path, first)?;
    let mut wanted = head.files.iter();
    let mut long_name = None;
    for entry in entries {
        let mut entry = entry.map_err(&cut)?;
        if entry.header().entry_type().is_gnu_longname() {
            if long_name.replace(name_in(path, &mut entry)?).is_some() {
                return Err(damaged("it holds a path without a file".to_owned()));
            }
            continue;
        }
        let short = || String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let name = long_name.take().unwrap_or_else(short);
        let file = match wanted.next() {
            Some(file) if name == format!("{ROOT}{}", file.path) => file,
            _ => return Err(unexpected(path, name)),
        };
        if !entry.header().entry_type().is_file() {
            let why = "is no plain file";
            return Err(BundleError::Unsafe(path.to_owned(), name, why));
        }
        if entry.size() != file.bytes {
            return Err(damaged(format!("`{}` has another length than listed", file.path)));
        }
        let mut to = create(file)?;
        if pour(path, &mut entry, (file, &mut *to))? != file.sha256 {
            return Err(damaged(format!("`{}` has another checksum than listed", file.path)));
        }
    }
    if long_name.is_some() {
        return Err(damaged("it ends with a path without a file".to_owned()));
    }
    if let Some(missing) = wanted.next() {
        return Err(damaged(format!("it ends before `{}`", missing.path)));
    }
    // The checksum of the compressed stream is at its end.
    let mut rest = archive.into_inner().take(TAIL_MAX + 1);
    if io::copy(&mut rest, &mut io::sink()).map_err(cut)? > TAIL_MAX {
        return Err(damaged("it goes on after its last file".to_owned()));
    }
    Ok(head)
}

/// The name of the next entry, which is too long for its head.
fn name_in(path: &Path, entry: &mut Entry<'_, Stream>) -> Result<String, BundleError> {
    let damaged = |why: String| BundleError::Damaged(path.to_owned(), why);
    if entry.size() > PATH_BYTES_MAX {
        return Err(damaged(format!("a path in it has more than {PATH_BYTES_MAX} bytes")));
    }
    let mut name = Vec::new();
    entry.read_to_end(&mut name).map_err(|error| damaged(format!("a path in it ({error})")))?;
    Ok(String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(&name)).into_owned())
}

/// Refuses a list of more than a bundle may hold, before anything of it is read.
fn check_sizes(path: &Path, head: &BundleHead) -> Result<(), BundleError> {
    let large = |why: String| Err(BundleError::TooLarge(path.to_owned(), why));
    if head.files.len() > FILES_MAX {
        return large(format!("{} files, and at most {FILES_MAX} are allowed", head.files.len()));
    }
    let archive = fs::metadata(path).map_err(BundleError::io("look at", path))?.len();
    let most = archive.saturating_mul(RATIO_MAX).max(BYTES_FREE);
    let all = head.files.iter().fold(0u64, |sum, file| sum.saturating_add(file.bytes));
    if all > most {
        return large(format!(
            "{} unpacked, and at most {} are allowed: {RATIO_MAX} times its size",
            units::bytes(all),
            units::bytes(most)
        ));
    }
    Ok(())
}

fn not_bundle(path: &Path, why: String) -> BundleError {
    BundleError::NotBundle(path.to_owned(), why)
}

/// An entry that is not the next file of the list.
fn unexpected(path: &Path, entry: String) -> BundleError {
    let path = path.to_owned();
    match path_fault(entry.strip_prefix(ROOT).unwrap_or(&entry)) {
        Some(why) => BundleError::Unsafe(path, entry, why),
        None => {
            let why = format!("it holds `{entry}`, which its list does not have there");
            BundleError::Damaged(path, why)
        }
    }
}

/// Copies the content of an entry; returns its SHA-256.
fn pour(
    path: &Path,
    entry: &mut Entry<'_, Stream>,
    (file, to): (&BundledFile, &mut dyn Write),
) -> Result<String, BundleError> {
    let mut sum = Summed::default();
    let mut piece = vec![0; 1 << 16];
    loop {
        let length = entry.read(&mut piece).map_err(|error| {
            BundleError::Damaged(
                path.to_owned(),
                format!("`{}` cannot be read to its end ({error})", file.path),
            )
        })?;
        if length == 0 {
            break;
        }
        let written = sum.write_all(&piece[..length]).and_then(|()| to.write_all(&piece[..length]));
        written.map_err(BundleError::io("write", Path::new(&file.path)))?;
    }
    to.flush().map_err(BundleError::io("write", Path::new(&file.path)))?;
    Ok(sum.hex())
}

/// Reads the list, and refuses paths that lead elsewhere.
fn read_list(path: &Path, mut entry: Entry<'_, Stream>) -> Result<BundleHead, BundleError> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
    if name != format!("{ROOT}{LIST}") || entry.size() > LIST_BYTES_MAX {
        let why = format!("its first file is `{name}`; that of a bundle is `{ROOT}{LIST}`");
        return Err(not_bundle(path, why));
    }
    let damaged = |why: String| BundleError::Damaged(path.to_owned(), why);
    let mut text = String::new();
    entry
        .read_to_string(&mut text)
        .map_err(|error| damaged(format!("{LIST} cannot be read to its end ({error})")))?;
    let version: Version = serde_json::from_str(&text)
        .map_err(|error| damaged(format!("{LIST}: {}", escape::fault(error))))?;
    if version.format > BUNDLE_FORMAT {
        let (path, found) = (path.to_owned(), version.format);
        return Err(BundleError::Newer(path, found, BUNDLE_FORMAT));
    }
    let head: BundleHead = serde_json::from_str(&text)
        .map_err(|error| damaged(format!("{LIST}: {}", escape::fault(error))))?;
    for file in &head.files {
        let elsewhere = !FOLDERS.iter().any(|folder| file.path.starts_with(folder));
        let is_long =
            file.path.len() as u64 > PATH_BYTES_MAX || file.path.split('/').count() > DEPTH_MAX;
        let fault = path_fault(&file.path)
            .or(is_long.then_some("has too long a path"))
            .or(elsewhere.then_some("belongs to no bundle"));
        if let Some(why) = fault {
            let (path, entry) = (path.to_owned(), file.path.clone());
            return Err(BundleError::Unsafe(path, entry, why));
        }
    }
    check_sizes(path, &head)?;
    Ok(head)
}
