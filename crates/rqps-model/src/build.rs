//! Builds: the DBMS, its version, and the origin of the build.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

/// The product. Never "engine" alone: that word belongs to storage engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dbms {
    /// PostgreSQL.
    Postgres,
    /// MySQL by Oracle and its forks that keep the name.
    Mysql,
    /// MariaDB Server.
    Mariadb,
    /// SQLite, compiled in or loaded from a shared library.
    Sqlite,
    /// RocksDB, loaded from a shared library.
    Rocksdb,
    /// Speedb, a fork of RocksDB with the same C API.
    Speedb,
    /// Whatever a program of the user's knows: rqps neither runs nor reaches it.
    Client,
    /// A product that rqps cannot run itself: only in results that were imported.
    Other,
    /// Scripted latencies on a fake clock: no load, no server, the same output every time. For
    /// tests of rqps itself.
    Fake,
}

/// Facts about a product for every module.
struct Product {
    name: &'static str,
    /// Other words for it in target words and DSNs.
    aliases: &'static [&'static str],
    dialect: Dialect,
}

impl Dbms {
    /// All that can be named on the command line.
    pub const ALL: [Dbms; 6] =
        [Dbms::Postgres, Dbms::Mysql, Dbms::Mariadb, Dbms::Sqlite, Dbms::Rocksdb, Dbms::Speedb];

    fn product(self) -> Product {
        let (name, aliases, dialect): (_, &[&str], _) = match self {
            Dbms::Postgres => ("postgres", &["postgresql", "pg"], Dialect::Postgres),
            Dbms::Mysql => ("mysql", &[], Dialect::Mysql),
            Dbms::Mariadb => ("mariadb", &[], Dialect::Mysql),
            Dbms::Sqlite => ("sqlite", &[], Dialect::Sqlite),
            Dbms::Rocksdb => ("rocksdb", &[], Dialect::KeyValue),
            Dbms::Speedb => ("speedb", &[], Dialect::KeyValue),
            // No SQL of rqps's own.
            Dbms::Client => ("client", &[], Dialect::KeyValue),
            // Never run; nothing is ever said to it.
            Dbms::Other => ("other", &[], Dialect::Fake),
            Dbms::Fake => ("fake", &[], Dialect::Fake),
        };
        Product { name, aliases, dialect }
    }

    /// The name in target words, files and reports.
    pub fn name(self) -> &'static str {
        self.product().name
    }

    /// The DBMS of that name, or `None`. `postgresql` and `pg` are understood too.
    pub fn from_name(name: &str) -> Option<Dbms> {
        let mut all = Dbms::ALL.into_iter().chain([Dbms::Client, Dbms::Fake]);
        all.find(|dbms| {
            let product = dbms.product();
            product.name == name || product.aliases.contains(&name)
        })
    }

    /// The branch that a version belongs to: `10.11` of 10.11.14, `17` of Postgres 17.2.
    pub fn branch(self, version: &Version) -> String {
        let numbers = version.numbers();
        let major = self == Dbms::Postgres && numbers.first().is_some_and(|first| *first >= 10);
        let parts: Vec<String> =
            numbers.iter().take(if major { 1 } else { 2 }).map(u32::to_string).collect();
        parts.join(".")
    }

    /// The dialect that it speaks.
    pub fn dialect(self) -> Dialect {
        self.product().dialect
    }

    /// True if the DBMS runs inside the driver process and has no server of its own.
    pub fn is_embedded(self) -> bool {
        self != Dbms::Other && self.dialect().spec().server.is_none()
    }
}

impl fmt::Display for Dbms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A dotted version such as `8.0.33`, `9.6.24` or `18beta2`, ordered by its leading numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(String);

impl Version {
    /// Any text; what is not a number ends the part that is compared.
    pub fn new(text: impl Into<String>) -> Version {
        Version(text.into())
    }

    /// The text as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The leading numbers: `8.0.33-log` gives `[8, 0, 33]`.
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        for part in self.0.split('.') {
            let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
            let whole = digits.len() == part.len();
            match digits.parse() {
                Ok(number) => numbers.push(number),
                Err(_) => break,
            }
            if !whole {
                break;
            }
        }
        numbers
    }

    /// True if this version is `wanted` or later; only as many numbers as `wanted` has are
    /// compared.
    pub fn at_least(&self, wanted: &[u32]) -> bool {
        let have = self.numbers();
        for (index, want) in wanted.iter().enumerate() {
            match have.get(index).copied().unwrap_or(0).cmp(want) {
                Ordering::Equal => {}
                order => return order == Ordering::Greater,
            }
        }
        true
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The origin of a build, as in the target word.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BuildSource {
    /// `mysql@8.0.33`: by version, through a package client, with a variant after `+` if there is
    /// one.
    Version {
        /// The version as asked for.
        version: Version,
        /// `pgvector`, `myrocks`: what the build must have besides.
        variant: Option<String>,
    },
    /// `postgres=/usr/lib/postgresql/17`: an installed or self-built tree, or a shared library for
    /// SQLite.
    Path(PathBuf),
    /// `mariadb=deb:trixie/mariadb-server-core`: packages of a Debian suite, with what they depend
    /// on.
    Deb {
        /// The suite or its code name: `trixie`, `sid`.
        suite: String,
        /// The packages asked for, in order; separated by commas in the word.
        packages: Vec<String>,
    },
    /// `postgres=src:DIR@REF+VARIANT`: built from a commit of a git repository, or from a folder of
    /// sources.
    Source {
        /// The folder.
        folder: PathBuf,
        /// The commit, by any name that git knows; `None` for the files as they are.
        reference: Option<String>,
        /// Words joined by `+`: `O3+native`.
        variant: Option<String>,
    },
    /// `sqlite`: what is compiled into this program.
    CompiledIn,
    /// `postgres://…`: a server that somebody else runs.
    Dsn(String),
    /// `client:TEXT`, or an address with a scheme that rqps does not know: for a program of the
    /// user's.
    Client(String),
    /// Somebody else's published results, under the tag by which they were published. Such a target
    /// can be reported, not run.
    Imported(String),
}

impl BuildSource {
    /// True for a server that somebody else runs: what is loaded there is there in the next block,
    /// too.
    pub fn is_elsewhere(&self) -> bool {
        match self {
            BuildSource::Dsn(_) => true,
            BuildSource::Client(text) => text.contains("://"),
            _ => false,
        }
    }
}

/// Facts about an obtained build. Stored beside it in the cache and in every run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The product.
    pub dbms: Dbms,
    /// The version that was asked for, or found.
    pub version: Version,
    /// The whole text that the binary prints about itself.
    pub reported: String,
    /// Package coordinates, a path, `compiled in`, or a DSN without its password.
    pub origin: String,
    /// SHA-256 of the package file (hex), or of the main binary where there is no package; `None`
    /// for a DSN.
    pub sha256: Option<String>,
    /// From the ELF `.comment` section, if there is one.
    pub compiler: Option<String>,
    /// Name → version of all packages that the build consists of, where it comes from a
    /// distribution; empty for a build that is one package.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, String>,
}

impl Manifest {
    /// Of a build that is no package, by what it says of itself.
    pub fn new(dbms: Dbms, version: Version, reported: String, origin: String) -> Manifest {
        let packages = BTreeMap::new();
        Manifest { dbms, version, reported, origin, sha256: None, compiler: None, packages }
    }
}

/// A build that can be run now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Build {
    /// The folder with `bin/`, `share/` …; the shared library itself for SQLite by path; `None` for
    /// compiled in and DSN.
    pub root: Option<PathBuf>,
    /// The provenance of the build.
    pub manifest: Manifest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        let version = Version::new("8.0.33-0ubuntu");
        assert_eq!(version.numbers(), [8, 0, 33]);
        assert!(version.at_least(&[8, 0]));
        assert!(version.at_least(&[5, 7, 40]));
        assert!(!version.at_least(&[8, 0, 34]));
        assert!(Version::new("18beta2").at_least(&[18]));
        assert!(!Version::new("9.6.24").at_least(&[10]));
    }
}
