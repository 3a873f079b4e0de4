//! Finds the shared library of RocksDB and its forks.

use std::path::{Path, PathBuf};

use crate::spec::{LibraryForm, LibraryVersion};

/// A library with RocksDB's C API, at this path of a build's tree.
pub(crate) const fn library_form(file: &'static str) -> LibraryForm {
    LibraryForm {
        file,
        is_root: false,
        example: "name the shared library itself, such as librocksdb.so",
        // Up to 100 MB; with debug symbols several hundred.
        bytes_max: 2 << 30,
        symbol: b"rocksdb_open_column_families\0",
        api: "RocksDB's C API",
        version: LibraryVersion::FileName,
        compiled_in: None,
    }
}

/// The library for this processor, out of a Java package that has one for many.
pub(crate) fn place_of(path: &Path, prefix: &str, file: &str) -> Option<PathBuf> {
    let machine = if cfg!(target_arch = "aarch64") { "linux-aarch64" } else { "linux64" };
    let wanted = format!("{prefix}-{machine}.so");
    (path.file_name()?.to_str()? == wanted).then(|| PathBuf::from(file))
}
