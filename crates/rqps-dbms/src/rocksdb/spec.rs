//! RocksDB, loaded from a shared library.

use crate::spec::{
    BuildForm, BuildRow, DbmsSpec, LibraryForm, LibraryVersion, Machine, Origin, Package,
    PackageFormat,
};
use std::path::{Path, PathBuf};

use rqps_model::build::{Dbms, Version};

use super::control::KeyValue;

const FILE: &str = "lib/librocksdb.so";

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Rocksdb,
    form: BuildForm::Library(library_form(FILE)),
    builds: &[
        BuildRow::package("6.0.2", ""),
        BuildRow::package("6.29.5", ""),
        BuildRow::package("7.10.2", ""),
        BuildRow::package("8.5.4", ""),
        BuildRow::package("8.6.7", ""),
        BuildRow::package("9.9.3", ""),
        BuildRow::package("10.5.1", ""),
        BuildRow::package("10.6.2", ""),
        BuildRow::package("10.10.1", ""),
    ],
    scheme,
    package: Some(Package {
        format: PackageFormat::Zip,
        place: |path| place_of(path, "librocksdbjni", FILE),
        second_name: None,
    }),
    configs: &[
        ("default", include_str!("../../../../configs/rocksdb/default.conf")),
        ("published", include_str!("../../../../configs/rocksdb/published.conf")),
        ("lru", include_str!("../../../../configs/rocksdb/lru.conf")),
        ("hyperclock", include_str!("../../../../configs/rocksdb/hyperclock.conf")),
        ("best-cache", include_str!("../../../../configs/rocksdb/best-cache.conf")),
        ("fanout-32", include_str!("../../../../configs/rocksdb/fanout-32.conf")),
        (
            "hyperclock-fanout-32",
            include_str!("../../../../configs/rocksdb/hyperclock-fanout-32.conf"),
        ),
        ("writer-8", include_str!("../../../../configs/rocksdb/writer-8.conf")),
        ("writer-32", include_str!("../../../../configs/rocksdb/writer-32.conf")),
        ("readahead-0", include_str!("../../../../configs/rocksdb/readahead-0.conf")),
        ("installed", include_str!("../../../../configs/rocksdb/installed.conf")),
    ],
    recipes: &[("make", include_str!("../../../../configs/build/rocksdb/make.toml"))],
    control: |site| Ok(Box::new(KeyValue::new(site, FILE))),
    ..DbmsSpec::NONE
};

fn scheme(version: &Version, machine: Machine) -> Option<Origin> {
    // The jar for Linux alone ended with version 10.
    let kind = if version.at_least(&[11]) { "" } else { ":jar:linux64" };
    let coordinates = format!("org.rocksdb:rocksdbjni:{version}{kind}");
    (machine != Machine::Other).then_some(Origin::Maven { coordinates })
}

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
