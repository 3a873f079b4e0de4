//! RocksDB, loaded from a shared library.

use crate::spec::{
    BuildForm, BuildRow, DbmsSpec, Machine, Numbering, Origin, Package, PackageFormat,
};
use rqps_model::build::{Dbms, Version};

use super::control::KeyValue;
use super::library::{library_form, place_of};

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
    instead: "",
    numbering: Numbering::PLAIN,
    package: Some(Package {
        format: PackageFormat::Zip,
        place: |path| place_of(path, "librocksdbjni", FILE),
        second_name: None,
    }),
    debian: None,
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
    ],
    recipes: &[("make", include_str!("../../../../configs/build/rocksdb/make.toml"))],
    tags: None,
    control: |site| Ok(Box::new(KeyValue::new(site, FILE))),
    guest: None,
};

fn scheme(version: &Version, machine: Machine) -> Option<Origin> {
    // The jar for Linux alone ended with version 10.
    let kind = if version.at_least(&[11]) { "" } else { ":jar:linux64" };
    let coordinates = format!("org.rocksdb:rocksdbjni:{version}{kind}");
    (machine != Machine::Other).then_some(Origin::Maven { coordinates })
}
