//! Speedb, a fork of RocksDB with the same C API.

use crate::rocksdb::{KeyValue, library_form, place_of};
use crate::spec::{BuildForm, BuildRow, DbmsSpec, Machine, Origin, Package, PackageFormat};
use rqps_model::build::{Dbms, Version};

const FILE: &str = "lib/libspeedb.so";

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Speedb,
    form: BuildForm::Library(library_form(FILE)),
    builds: &[BuildRow::package("2.8.0", "")],
    scheme,
    package: Some(Package {
        format: PackageFormat::Zip,
        place: |path| place_of(path, "libspeedbjni", FILE),
        second_name: None,
    }),
    configs: &[
        ("default", include_str!("../../../configs/speedb/default.conf")),
        ("published", include_str!("../../../configs/speedb/published.conf")),
        ("static-delay", include_str!("../../../configs/speedb/static-delay.conf")),
        ("hyperclock", include_str!("../../../configs/speedb/hyperclock.conf")),
        ("installed", include_str!("../../../configs/speedb/installed.conf")),
    ],
    control: |site| Ok(Box::new(KeyValue::new(site, FILE))),
    ..DbmsSpec::NONE
};

fn scheme(version: &Version, machine: Machine) -> Option<Origin> {
    let coordinates = format!("io.github.speedb-io:speedbjni:{version}");
    (machine == Machine::X86_64).then_some(Origin::Maven { coordinates })
}
