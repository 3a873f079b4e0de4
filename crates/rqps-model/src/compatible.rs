//! Servers that speak the protocol of Postgres or MySQL without being it: how they tell, and what
//! rqps does otherwise with them. One row each; docs/dsn.md shows the table.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::dialect::Dialect;

/// A server that is compatible with a dialect.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompatibleServer {
    /// Its name.
    pub name: String,
    /// The dialect that it speaks.
    pub dialect: Dialect,
    /// The sign by which rqps recognises it.
    pub sign: Sign,
    /// True if a lock keeps a second rqps from the same place.
    pub has_locks: bool,
    /// True if VACUUM exists; without it rqps says ANALYZE. MySQL's have neither.
    pub has_vacuum: bool,
    /// The isolation level of a session that asks for none.
    pub isolation: String,
    /// Codes of conflicts beyond those of the dialect.
    #[serde(default)]
    pub conflicts: Vec<String>,
    /// The reason why rqps makes no tables there; empty if it does.
    #[serde(default)]
    pub refused: String,
    /// Features that do not work, or work differently.
    #[serde(default)]
    pub limits: String,
    /// Address of the documentation.
    pub source: String,
    /// The version on which rqps itself ran a comparison, and the day.
    pub tried: String,
    /// Schemes of DSNs that mean it, besides those of its dialect.
    #[serde(default)]
    pub schemes: Vec<String>,
    /// The port of a DSN with such a scheme that names none.
    #[serde(default)]
    pub port: u16,
    /// The vendor whose terms for published results hold wherever the server runs. Empty if anybody
    /// may run it: then the host of the DSN decides.
    #[serde(default)]
    pub vendor: String,
}

/// The sign by which rqps recognises a server.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    /// By a word in `version()`.
    Version(String),
    /// By the end of the host's name, since its version is that of Postgres or MySQL.
    Host(String),
    /// By a query that only this server answers with a value, and that no server refuses: an
    /// error would stand in its log.
    Query(String),
}

/// The tables of compatible.toml.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Tables {
    server: Vec<CompatibleServer>,
    terms: Vec<Terms>,
}

static TABLES: LazyLock<Tables> =
    LazyLock::new(|| toml::from_str(include_str!("compatible.toml")).unwrap_or_default());

/// All of them. What `version()` says comes first, since it costs nothing to look.
pub fn servers() -> &'static [CompatibleServer] {
    &TABLES.server
}

/// The terms of all vendors, sorted by name.
pub fn terms() -> &'static [Terms] {
    &TABLES.terms
}

impl CompatibleServer {
    /// Recognises a server by its `version()` and the name of its host; `answers` tells whether it
    /// answers a query with a value.
    pub fn recognise(
        dialect: Dialect,
        version: &str,
        host: &str,
        answers: &mut dyn FnMut(&str) -> bool,
    ) -> Option<&'static CompatibleServer> {
        let host = host.to_ascii_lowercase();
        let of_dialect = || servers().iter().filter(move |row| row.dialect == dialect);
        let quiet = of_dialect().find(|row| match &row.sign {
            Sign::Version(word) => version.contains(word),
            Sign::Host(end) => host.ends_with(end),
            Sign::Query(_) => false,
        });
        quiet.or_else(|| {
            of_dialect().find(|row| match &row.sign {
                Sign::Query(query) => answers(query),
                Sign::Version(_) | Sign::Host(_) => false,
            })
        })
    }

    /// The server that a scheme of DSNs means.
    pub fn of_scheme(scheme: &str) -> Option<&'static CompatibleServer> {
        servers().iter().find(|row| row.schemes.iter().any(|own| own == scheme))
    }

    /// The version of a server that is recognised, as runs keep it.
    pub fn reported(&self, version: &str) -> String {
        format!("{version} [{}]", self.name)
    }

    /// The server of a kept version.
    pub fn of_reported(reported: &str) -> Option<&'static CompatibleServer> {
        let name = reported.trim().strip_suffix(']')?.rsplit_once('[')?.1;
        servers().iter().find(|row| row.name == name)
    }

    /// The differences in rqps's behaviour on this server, as a sentence for the user.
    pub fn words(&self) -> String {
        let mut words = vec![format!("the server is {}", self.name)];
        if !self.has_vacuum && self.dialect == Dialect::Postgres {
            words.push("ANALYZE replaces VACUUM".to_owned());
        }
        if !self.has_locks {
            words.push("no lock keeps a second rqps away".to_owned());
        }
        words.push(format!("isolation: {}", self.isolation));
        if !self.limits.is_empty() {
            words.push(self.limits.clone());
        }
        words.join("; ")
    }
}

// Conditions of vendors for publishing benchmark results of their services. Facts with a source
// and a date, and no legal advice: an agreement of your own may say otherwise.

/// The terms of one vendor.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The vendor.
    pub vendor: String,
    /// For which services.
    pub services: String,
    /// The rule in a sentence.
    pub rule: String,
    /// Address of the condition.
    pub source: String,
    /// The version or the day of the reading.
    pub date: String,
    /// Ends of the names of its hosts.
    pub hosts: Vec<String>,
}

impl Terms {
    /// The terms of a vendor.
    pub fn of_vendor(vendor: &str) -> Option<&'static Terms> {
        terms().iter().find(|terms| terms.vendor == vendor)
    }

    /// Oracle's terms, if Oracle licenses this version of MySQL.
    pub fn of_mysql(version: &str) -> Option<&'static Terms> {
        let licensed =
            ["-commercial", "-enterprise", "-cloud"].iter().any(|it| version.contains(it));
        let is_oracle = licensed && !version.contains("MariaDB") && !version.contains('[');
        is_oracle.then(|| Terms::of_vendor("Oracle")).flatten()
    }

    /// The terms of the vendor that runs this host.
    pub fn of_host(host: &str) -> Option<&'static Terms> {
        let host = host.to_ascii_lowercase();
        terms().iter().find(|terms| terms.hosts.iter().any(|end| host.ends_with(end)))
    }
}

/// The licences of what rqps fetches or builds itself.
pub const OPEN_SOURCE: &str = "Postgres, MySQL Community, MariaDB, SQLite, RocksDB and Speedb have \
                               open licences, which ask for nothing when results are published.";

/// The text below every list of terms.
pub const NO_ADVICE: &str = "These are facts as of the dates listed, not legal advice. Read the \
                             agreement that applies to you.";

#[cfg(test)]
mod tests {
    use super::{Terms, *};

    /// Answers of servers to `version()`, from their documentation and users.
    const ANSWERS: [(Dialect, &str, &str, &str); 9] = [
        (
            Dialect::Postgres,
            "CockroachDB CCL v23.1.11 (x86_64-pc-linux-gnu, built 2023/09/27 01:53:43, go1.19.10)",
            "localhost",
            "CockroachDB",
        ),
        (
            Dialect::Postgres,
            "PostgreSQL 11.2-YB-2.18.0.0-b0 on x86_64-pc-linux-gnu, compiled by clang, 64-bit",
            "localhost",
            "YugabyteDB",
        ),
        (Dialect::Postgres, "PostgreSQL 16", "abc.dsql.us-east-1.on.aws", "Aurora DSQL"),
        (Dialect::Postgres, "PostgreSQL 17.2 on x86_64-pc-linux-gnu", "db.example", ""),
        (Dialect::Mysql, "8.0.11-TiDB-v7.5.0", "localhost", "TiDB"),
        (Dialect::Mysql, "8.0.30-Vitess", "aws.connect.psdb.cloud", "Vitess, PlanetScale"),
        (Dialect::Mysql, "8.0.33", "localhost", ""),
        (Dialect::Mysql, "10.11.5-MariaDB", "localhost", ""),
        // A word of another dialect is no sign.
        (Dialect::Mysql, "CockroachDB", "localhost", ""),
    ];

    #[test]
    fn servers_are_recognised_by_what_they_say() {
        for (dialect, version, host, name) in ANSWERS {
            let found = CompatibleServer::recognise(dialect, version, host, &mut |_| false);
            assert_eq!(found.map_or("", |row| row.name.as_str()), name, "{version}");
        }
    }

    #[test]
    fn servers_with_a_usual_version_are_asked() {
        let asked = |dialect, wanted: &str| {
            let mut answers = |query: &str| query.contains(wanted);
            let found = CompatibleServer::recognise(dialect, "8.0.33", "h", &mut answers);
            found.map_or("", |row| row.name.as_str())
        };
        assert_eq!(asked(Dialect::Postgres, "aurora_version"), "Aurora PostgreSQL");
        assert_eq!(asked(Dialect::Postgres, "neon.tenant_id"), "Neon");
        assert_eq!(asked(Dialect::Postgres, "spanner_sys"), "Spanner (PGAdapter)");
        assert_eq!(asked(Dialect::Mysql, "aurora_version"), "Aurora MySQL");
        assert_eq!(asked(Dialect::Mysql, "dolt%"), "Dolt");
        assert_eq!(asked(Dialect::Mysql, "memsql_version"), "SingleStore");
    }

    #[test]
    fn rows_fit_the_dialects_and_the_terms() {
        for row in servers() {
            assert!(row.source.starts_with("https://"), "{}", row.name);
            assert_eq!(row.port > 0, !row.schemes.is_empty(), "{}", row.name);
            let terms = Terms::of_vendor(&row.vendor);
            assert_eq!(terms.is_some(), !row.vendor.is_empty(), "{}", row.name);
            let is_conflict = |code: &String| row.dialect.is_conflict(code);
            assert!(row.conflicts.iter().all(is_conflict), "{}", row.name);
            assert_eq!(CompatibleServer::of_reported(&row.reported("1.2")), Some(row));
        }
        assert_eq!(CompatibleServer::of_reported("17.2 (Debian 17.2-1.pgdg120+1)"), None);
    }

    #[test]
    fn the_documentation_has_every_row() {
        let page = include_str!("../../../docs/dsn.md");
        for row in servers() {
            let line = page.lines().find(|line| line.starts_with(&format!("| [{}](", row.name)));
            let line = line.expect(&row.name);
            let codes = row.conflicts.join(", ");
            for part in [&row.source, &row.isolation, &codes, &row.limits, &row.refused] {
                assert!(line.contains(part.as_str()), "{}: {part}", row.name);
            }
            assert!(line.ends_with(&format!(" | {} |", row.tried)), "{}: {}", row.name, row.tried);
            for scheme in &row.schemes {
                let port = format!("| `{scheme}://` | {} | {} |", row.name, row.port);
                assert!(page.contains(&port), "{port}");
            }
        }
    }
}

#[cfg(test)]
mod terms_tests {
    use super::*;

    #[test]
    fn every_row_has_a_source_and_a_date() {
        toml::from_str::<Tables>(include_str!("compatible.toml")).unwrap();
        for terms in terms() {
            assert!(terms.source.contains("https://"), "{}", terms.vendor);
            assert!(terms.date.contains("20"), "{}", terms.vendor);
            assert!(terms.hosts.iter().all(|host| host.starts_with('.')), "{}", terms.vendor);
        }
        assert!(terms().is_sorted_by_key(|terms| &terms.vendor));
    }

    #[test]
    fn a_host_tells_the_vendor() {
        let vendor = |host| Terms::of_host(host).map(|terms| terms.vendor.as_str());
        let aurora = "db.cluster-abc.eu-central-1.RDS.amazonaws.com";
        assert_eq!(vendor(aurora), Some("Amazon Web Services"));
        assert_eq!(vendor("ep-x-123.eu-central-1.aws.neon.tech"), Some("Neon"));
        assert_eq!(vendor("db.example"), None);
        let oracle = |version| Terms::of_mysql(version).is_some();
        assert!(oracle("8.0.33-commercial") && oracle("8.4.3-u4-cloud"));
        assert!(!oracle("8.0.33") && !oracle("10.6.14-9-MariaDB-enterprise"));
    }

    #[test]
    fn the_documentation_has_every_row() {
        let page = include_str!("../../../docs/terms.md");
        for terms in terms() {
            let Terms { vendor, services, rule, source, date, .. } = terms;
            let line = page.lines().find(|line| line.starts_with(&format!("| {vendor} |")));
            let line = line.expect(vendor);
            for part in [services, rule, source, date] {
                assert!(line.contains(part.as_str()), "{vendor}: {part}");
            }
        }
        assert!(page.contains(NO_ADVICE) && page.contains(OPEN_SOURCE));
    }
}
