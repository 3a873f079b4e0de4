//! Servers that speak the protocol of Postgres or MySQL without being it: how they tell, and what
//! rqps does otherwise with them. One row each; docs/dsn.md shows the table.

use crate::dialect::Dialect;

/// A server that is compatible with a dialect.
#[derive(Debug, PartialEq, Eq)]
pub struct CompatibleServer {
    /// Its name.
    pub name: &'static str,
    /// The dialect that it speaks.
    pub dialect: Dialect,
    /// The sign by which rqps recognises it.
    pub sign: Sign,
    /// True if a lock keeps a second rqps from the same place.
    pub has_locks: bool,
    /// True if VACUUM exists; without it rqps says ANALYZE. MySQL's have neither.
    pub has_vacuum: bool,
    /// The isolation level of a session that asks for none.
    pub isolation: &'static str,
    /// Codes of conflicts beyond those of the dialect.
    pub conflicts: &'static [&'static str],
    /// The reason why rqps makes no tables there; empty if it does.
    pub refused: &'static str,
    /// Features that do not work, or work differently.
    pub limits: &'static str,
    /// Address of the documentation.
    pub source: &'static str,
    /// The version on which rqps itself ran a comparison, and the day.
    pub tried: &'static str,
    /// Schemes of DSNs that mean it, besides those of its dialect.
    pub schemes: &'static [&'static str],
    /// The port of a DSN with such a scheme that names none.
    pub port: u16,
    /// The vendor whose terms for published results hold wherever the server runs. Empty if anybody
    /// may run it: then the host of the DSN decides.
    pub vendor: &'static str,
}

/// The sign by which rqps recognises a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// By a word in `version()`.
    Version(&'static str),
    /// By the end of the host's name, since its version is that of Postgres or MySQL.
    Host(&'static str),
    /// By a query that only this server answers with a value, and that no server refuses: an
    /// error would stand in its log.
    Query(&'static str),
}

/// What most of them are.
const PLAIN: CompatibleServer = CompatibleServer {
    name: "",
    dialect: Dialect::Mysql,
    sign: Sign::Version(""),
    has_locks: true,
    has_vacuum: false,
    isolation: "",
    conflicts: &[],
    refused: "",
    limits: "",
    source: "",
    tried: "not tried",
    schemes: &[],
    port: 0,
    vendor: "",
};

/// All of them. What `version()` says comes first, since it costs nothing to look.
pub const COMPATIBLE: [CompatibleServer; 11] = [
    CompatibleServer {
        name: "CockroachDB",
        dialect: Dialect::Postgres,
        sign: Sign::Version("CockroachDB"),
        has_locks: false,
        isolation: "serializable",
        limits: "sequences are not dense; fillfactor has no effect; no pg_stat_* counters",
        source: "https://www.cockroachlabs.com/docs/stable/postgresql-compatibility",
        schemes: &["cockroachdb"],
        port: 26257,
        ..PLAIN
    },
    CompatibleServer {
        name: "YugabyteDB",
        dialect: Dialect::Postgres,
        sign: Sign::Version("-YB-"),
        has_locks: false,
        isolation: "read committed, executed as snapshot unless the cluster enables it",
        limits: "an index on a primary key is hashed unless it says ASC, so ranges scan the table",
        source: "https://docs.yugabyte.com/preview/explore/transactions/isolation-levels/",
        schemes: &["yugabyte", "yugabytedb"],
        port: 5433,
        ..PLAIN
    },
    CompatibleServer {
        name: "Aurora DSQL",
        dialect: Dialect::Postgres,
        sign: Sign::Host(".on.aws"),
        has_locks: false,
        isolation: "repeatable read, and no other",
        conflicts: &["OC000", "OC001"],
        refused: "it has no sequences, no TRUNCATE and no indexes but with CREATE INDEX ASYNC",
        limits: "no sequences, temporary tables, TRUNCATE, VACUUM, SAVEPOINT or extensions",
        source: "https://docs.aws.amazon.com/aurora-dsql/latest/userguide/\
                 working-with-postgresql-compatibility-unsupported-features.html",
        vendor: "Amazon Web Services",
        ..PLAIN
    },
    CompatibleServer {
        name: "Aurora PostgreSQL",
        dialect: Dialect::Postgres,
        sign: Sign::Query("SELECT 1 FROM pg_proc WHERE proname = 'aurora_version'"),
        has_vacuum: true,
        isolation: "read committed",
        source: "https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/\
                 AuroraPostgreSQL.Updates.Versions.html",
        vendor: "Amazon Web Services",
        ..PLAIN
    },
    CompatibleServer {
        name: "Neon",
        dialect: Dialect::Postgres,
        sign: Sign::Query("SELECT setting FROM pg_settings WHERE name = 'neon.tenant_id'"),
        has_vacuum: true,
        isolation: "read committed",
        limits: "compute sleeps when idle, and the first statement wakes it; a host with -pooler \
                 shares sessions, so use the one without",
        source: "https://neon.com/docs/reference/compatibility",
        vendor: "Neon",
        ..PLAIN
    },
    CompatibleServer {
        name: "Spanner (PGAdapter)",
        dialect: Dialect::Postgres,
        sign: Sign::Query(
            "SELECT 1 FROM information_schema.tables WHERE table_schema = 'spanner_sys' LIMIT 1",
        ),
        has_locks: false,
        isolation: "serializable",
        refused: "its tables cannot have comments, which rqps needs to mark its own",
        limits: "no sequences but bit-reversed ones; a limit of mutations per commit",
        source: "https://cloud.google.com/spanner/docs/reference/postgresql/overview",
        vendor: "Google Cloud",
        ..PLAIN
    },
    CompatibleServer {
        name: "TiDB",
        dialect: Dialect::Mysql,
        sign: Sign::Version("-TiDB-"),
        isolation: "repeatable read, executed as snapshot; serializable is refused",
        conflicts: &["8002", "8005", "8022", "8028", "9007"],
        limits: "AUTO_INCREMENT is not dense; no InnoDB counters",
        source: "https://docs.pingcap.com/tidb/stable/error-codes",
        schemes: &["tidb"],
        port: 4000,
        ..PLAIN
    },
    CompatibleServer {
        name: "Vitess, PlanetScale",
        dialect: Dialect::Mysql,
        sign: Sign::Version("-Vitess"),
        isolation: "repeatable read within a shard",
        limits: "no CREATE DATABASE through its gate, so the DSN names one; LOAD DATA works \
                 unsharded only",
        source: "https://vitess.io/docs/reference/compatibility/mysql-compatibility/",
        ..PLAIN
    },
    CompatibleServer {
        name: "Aurora MySQL",
        dialect: Dialect::Mysql,
        sign: Sign::Query("SHOW VARIABLES LIKE 'aurora_version'"),
        isolation: "repeatable read",
        source: "https://docs.aws.amazon.com/AmazonRDS/latest/AuroraUserGuide/\
                 AuroraMySQL.Updates.Versions.html",
        vendor: "Amazon Web Services",
        ..PLAIN
    },
    CompatibleServer {
        name: "Dolt",
        dialect: Dialect::Mysql,
        sign: Sign::Query("SHOW VARIABLES LIKE 'dolt%'"),
        isolation: "repeatable read; conflicts show at COMMIT",
        limits: "no InnoDB counters",
        source: "https://docs.dolthub.com/sql-reference/sql-support",
        ..PLAIN
    },
    CompatibleServer {
        name: "SingleStore",
        dialect: Dialect::Mysql,
        sign: Sign::Query("SHOW VARIABLES LIKE 'memsql_version'"),
        isolation: "read committed, and no other",
        limits: "unique keys must hold the shard key",
        source: "https://docs.singlestore.com/db/latest/introduction/faqs/general",
        vendor: "SingleStore",
        ..PLAIN
    },
];

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
        let of_dialect = || COMPATIBLE.iter().filter(move |row| row.dialect == dialect);
        let quiet = of_dialect().find(|row| match row.sign {
            Sign::Version(word) => version.contains(word),
            Sign::Host(end) => host.ends_with(end),
            Sign::Query(_) => false,
        });
        quiet.or_else(|| {
            of_dialect().find(|row| match row.sign {
                Sign::Query(query) => answers(query),
                Sign::Version(_) | Sign::Host(_) => false,
            })
        })
    }

    /// The server that a scheme of DSNs means.
    pub fn of_scheme(scheme: &str) -> Option<&'static CompatibleServer> {
        COMPATIBLE.iter().find(|row| row.schemes.contains(&scheme))
    }

    /// The version of a server that is recognised, as runs keep it.
    pub fn reported(&self, version: &str) -> String {
        format!("{version} [{}]", self.name)
    }

    /// The server of a kept version.
    pub fn of_reported(reported: &str) -> Option<&'static CompatibleServer> {
        let name = reported.trim().strip_suffix(']')?.rsplit_once('[')?.1;
        COMPATIBLE.iter().find(|row| row.name == name)
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
            words.push(self.limits.to_owned());
        }
        words.join("; ")
    }
}

// Conditions of vendors for publishing benchmark results of their services. Facts with a source
// and a date, and no legal advice: an agreement of your own may say otherwise.

/// A vendor's condition for publishing results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publishing {
    /// Results may be published on conditions.
    Conditions,
    /// The terms restrict benchmarks, or their publication.
    Restricted,
    /// Nobody has looked, or the terms could not be read.
    Unknown,
}

/// The terms of one vendor.
#[derive(Debug)]
pub struct Terms {
    /// The vendor.
    pub vendor: &'static str,
    /// For which services.
    pub services: &'static str,
    /// The rule in a word.
    pub publishing: Publishing,
    /// The rule in a sentence.
    pub rule: &'static str,
    /// Address of the condition.
    pub source: &'static str,
    /// The version or the day of the reading.
    pub date: &'static str,
    /// Ends of the names of its hosts.
    pub hosts: &'static [&'static str],
}

/// All vendors, sorted by name. A row says only what its source says; docs/terms.md shows it.
pub const TERMS: [Terms; 12] = [
    Terms {
        vendor: "Amazon Web Services",
        services: "Aurora, Aurora DSQL, RDS",
        publishing: Publishing::Conditions,
        rule: "publish, and disclose to AWS, all information necessary to replicate the benchmark; \
               AWS may benchmark your products in turn",
        source: "AWS Service Terms, 1.8, https://aws.amazon.com/service-terms/",
        date: "version of 2026-09-11",
        hosts: &[".rds.amazonaws.com", ".rds.amazonaws.com.cn", ".on.aws"],
    },
    Terms {
        vendor: "Cockroach Labs",
        services: "CockroachDB Cloud",
        publishing: Publishing::Conditions,
        rule: "publish the method and all that is necessary to replicate the test; Cockroach Labs \
               may benchmark your products in turn",
        source: "Acceptable Use Policy, https://www.cockroachlabs.com/acceptable-use-policy/",
        date: "copy without a date, read 2026-11-23",
        hosts: &[".cockroachlabs.cloud"],
    },
    Terms {
        vendor: "DoltHub",
        services: "Hosted Dolt",
        publishing: Publishing::Unknown,
        rule: "no terms on benchmarks were found",
        source: "https://www.dolthub.com/",
        date: "searched 2026-11-23",
        hosts: &[".dbs.hosted.doltdb.com"],
    },
    Terms {
        vendor: "Google Cloud",
        services: "Spanner, AlloyDB, Cloud SQL",
        publishing: Publishing::Conditions,
        rule: "publish all information necessary to replicate the test; Google may benchmark your \
               products in turn; tests on behalf of a large public cloud need Google's consent",
        source: "Service Specific Terms, general terms 7, \
                 https://cloud.google.com/terms/service-terms",
        date: "version of 2023-08-14",
        hosts: &[".alloydb.goog", ".sql.goog"],
    },
    Terms {
        vendor: "Microsoft Azure",
        services: "Azure Database for PostgreSQL and for MySQL",
        publishing: Publishing::Conditions,
        rule: "vendors of competing services must, on request, give Microsoft all information \
               necessary to replicate the benchmark, and access to benchmark their service",
        source: "Product Terms for Online Services, Competitive Benchmarking, \
                 https://www.microsoft.com/licensing/terms/product/ForOnlineServices/all",
        date: "read 2026-09-07",
        hosts: &[".database.azure.com"],
    },
    Terms {
        vendor: "Neon",
        services: "Neon",
        publishing: Publishing::Unknown,
        rule: "no terms on benchmarks were found; Neon is an affiliate of Databricks, whose terms \
               may apply",
        source: "https://neon.com/terms-of-service",
        date: "searched 2026-11-23",
        hosts: &[".neon.tech"],
    },
    Terms {
        vendor: "Oracle",
        services: "MySQL Enterprise Edition, HeatWave (the community edition has the GPL)",
        publishing: Publishing::Restricted,
        rule: "Oracle's licences of programs ask for Oracle's prior consent before benchmark \
               results are disclosed; look at yours",
        source: "as quoted in https://danluu.com/anon-benchmark/",
        date: "read 2026-11-23",
        hosts: &[".oraclecloud.com", ".oraclevcn.com"],
    },
    Terms {
        vendor: "PingCAP",
        services: "TiDB Cloud",
        publishing: Publishing::Unknown,
        rule: "no terms on benchmarks were found",
        source: "https://www.pingcap.com/legal/",
        date: "searched 2026-11-23",
        hosts: &[".tidbcloud.com"],
    },
    Terms {
        vendor: "PlanetScale",
        services: "PlanetScale",
        publishing: Publishing::Restricted,
        rule: "the guidelines of 2020 forbid to monitor the service for any benchmarking or \
               competitive purpose; the current terms could not be read in full",
        source: "Platform Guidelines, https://www.planetscale.com/legal/guidelines",
        date: "version of 2020-03-04",
        hosts: &[".psdb.cloud", ".pscale.com"],
    },
    Terms {
        vendor: "SingleStore",
        services: "SingleStore Helios",
        publishing: Publishing::Unknown,
        rule: "no terms on benchmarks were found",
        source: "https://www.singlestore.com/legal/",
        date: "searched 2026-11-23",
        hosts: &[".singlestore.com", ".memsql.com"],
    },
    Terms {
        vendor: "Snowflake",
        services: "Snowflake",
        publishing: Publishing::Conditions,
        rule: "publish all information necessary to replicate the test; tests that involve \
               previews may not be published",
        source: "Acceptable Use Policy, https://www.snowflake.com/legal/acceptable-use-policy/, as \
                 quoted in https://github.com/ClickHouse/ClickBench/blob/main/snowflake/README.md",
        date: "quotation without a date, read 2026-11-27",
        hosts: &[".snowflakecomputing.com"],
    },
    Terms {
        vendor: "Yugabyte",
        services: "YugabyteDB Aeon",
        publishing: Publishing::Unknown,
        rule: "the part of the terms that could be read does not mention benchmarks",
        source: "https://www.yugabyte.com/legal/hosted-services-terms/",
        date: "version of 2026-04",
        hosts: &[".ybdb.io", ".yugabyte.cloud"],
    },
];

impl Terms {
    /// The terms of a vendor.
    pub fn of_vendor(vendor: &str) -> Option<&'static Terms> {
        TERMS.iter().find(|terms| terms.vendor == vendor)
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
        TERMS.iter().find(|terms| terms.hosts.iter().any(|end| host.ends_with(end)))
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
            assert_eq!(found.map_or("", |row| row.name), name, "{version}");
        }
    }

    #[test]
    fn servers_with_a_usual_version_are_asked() {
        let asked = |dialect, wanted: &str| {
            let mut answers = |query: &str| query.contains(wanted);
            let found = CompatibleServer::recognise(dialect, "8.0.33", "h", &mut answers);
            found.map_or("", |row| row.name)
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
        for row in &COMPATIBLE {
            assert!(row.source.starts_with("https://"), "{}", row.name);
            assert_eq!(row.port > 0, !row.schemes.is_empty(), "{}", row.name);
            let terms = Terms::of_vendor(row.vendor);
            assert_eq!(terms.is_some(), !row.vendor.is_empty(), "{}", row.name);
            let is_conflict = |code: &&str| row.dialect.is_conflict(code);
            assert!(row.conflicts.iter().all(is_conflict), "{}", row.name);
            assert_eq!(CompatibleServer::of_reported(&row.reported("1.2")), Some(row));
        }
        assert_eq!(CompatibleServer::of_reported("17.2 (Debian 17.2-1.pgdg120+1)"), None);
    }

    #[test]
    fn the_documentation_has_every_row() {
        let page = include_str!("../../../docs/dsn.md");
        for row in &COMPATIBLE {
            let line = page.lines().find(|line| line.starts_with(&format!("| [{}](", row.name)));
            let line = line.expect(row.name);
            let codes = row.conflicts.join(", ");
            for part in [row.source, row.isolation, &codes, row.limits, row.refused] {
                assert!(line.contains(part), "{}: {part}", row.name);
            }
            assert!(line.ends_with(&format!(" | {} |", row.tried)), "{}: {}", row.name, row.tried);
            for scheme in row.schemes {
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
        for terms in &TERMS {
            assert!(terms.source.contains("https://"), "{}", terms.vendor);
            assert!(terms.date.contains("20"), "{}", terms.vendor);
            assert!(terms.hosts.iter().all(|host| host.starts_with('.')), "{}", terms.vendor);
        }
        assert!(TERMS.is_sorted_by_key(|terms| terms.vendor));
    }

    #[test]
    fn a_host_tells_the_vendor() {
        let vendor = |host| Terms::of_host(host).map(|terms| terms.vendor);
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
        for terms in &TERMS {
            let Terms { vendor, services, rule, source, date, .. } = terms;
            let line = page.lines().find(|line| line.starts_with(&format!("| {vendor} |")));
            let line = line.expect(vendor);
            for part in [services, rule, source, date] {
                assert!(line.contains(part), "{vendor}: {part}");
            }
        }
        assert!(page.contains(NO_ADVICE) && page.contains(OPEN_SOURCE));
    }
}
