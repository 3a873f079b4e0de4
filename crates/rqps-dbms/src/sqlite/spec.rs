//! SQLite, compiled into this program or loaded from a shared library.

use crate::spec::{
    Arrangement, BuildForm, BuildRow, DbmsSpec, DebianLayout, LibraryForm, LibraryVersion,
};
use rqps_model::build::Dbms;

use super::control::Sqlite;

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Sqlite,
    form: BuildForm::Library(LibraryForm {
        file: "libsqlite3.so",
        is_root: true,
        example: "name the shared library itself, libsqlite3.so",
        // Its largest builds have a few MB.
        bytes_max: 256 << 20,
        symbol: b"sqlite3_prepare_v2\0",
        api: "SQLite's functions",
        version: LibraryVersion::Strings,
        compiled_in: Some(compiled_in),
    }),
    builds: &[
        BuildRow::debian("3.34", "", "bullseye", &["libsqlite3-0"]),
        BuildRow::debian("3.40", "", "bookworm", &["libsqlite3-0"]),
        BuildRow::debian("3.46", "", "trixie", &["libsqlite3-0"]),
    ],
    instead: "sqlite for the compiled-in version, a version from `rqps builds sqlite`, \
              sqlite=deb:SUITE/libsqlite3-0 for a Debian suite, or sqlite=PATH with the path of a \
              libsqlite3.so",
    debian: Some(DebianLayout {
        usual_package: "libsqlite3-0",
        arrangement: Arrangement::Library { file: "libsqlite3.so.0" },
    }),
    configs: &[
        ("default", include_str!("../../../../configs/sqlite/default.conf")),
        ("small-cache", include_str!("../../../../configs/sqlite/small-cache.conf")),
        ("installed", include_str!("../../../../configs/sqlite/installed.conf")),
    ],
    recipes: &[
        ("amalgamation", include_str!("../../../../configs/build/sqlite/amalgamation.toml")),
        ("sources", include_str!("../../../../configs/build/sqlite/sources.toml")),
    ],
    control: |site| Ok(Box::new(Sqlite::new(site))),
    ..DbmsSpec::NONE
};

fn compiled_in() -> (String, String) {
    let version = libsqlite3_sys::SQLITE_VERSION.to_string_lossy();
    let source = libsqlite3_sys::SQLITE_SOURCE_ID.to_string_lossy();
    (version.to_string(), format!("{version} {source}"))
}
