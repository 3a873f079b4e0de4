//! Conditions of vendors for publishing benchmark results of their services. Facts with a source
//! and a date, and no legal advice: an agreement of your own may say otherwise.

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
