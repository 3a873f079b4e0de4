//! Builds: the DBMS, its version, and the origin of the build.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, de};

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
    /// SHA-256 of all that decides about the code of a build from sources, without comments: builds
    /// with the same are the same program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Name → version of all packages that the build consists of, where it comes from a
    /// distribution; empty for a build that is one package.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub packages: BTreeMap<String, String>,
}

impl Manifest {
    /// Of a build that is no package, by what it says of itself.
    pub fn new(dbms: Dbms, version: Version, reported: String, origin: String) -> Manifest {
        let (sha256, compiler, code, packages) = (None, None, None, BTreeMap::new());
        Manifest { dbms, version, reported, origin, sha256, compiler, code, packages }
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
    /// The cache that holds it, if this user may write there.
    pub cache: Option<PathBuf>,
}

// Targets: a build with a configuration and a short label, and where its tables are on a server of
// somebody else.

/// One thing to measure. Two targets of a plan never share a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// Short and unique in the plan: `mysql-8.0.33`, `before`. Safe in a file name.
    #[serde(deserialize_with = "checked_label")]
    pub label: String,
    /// The product.
    pub dbms: Dbms,
    /// The origin of its build.
    pub source: BuildSource,
    /// Name of the configuration, and settings of the target's own after it, as
    /// [`config_parts`] divides it; `default` is shipped for every DBMS.
    pub config: String,
    /// `innodb`, `rocksdb`: only where the DBMS has a choice and one was made.
    pub storage_engine: Option<String>,
}

impl Target {
    /// True if the DBMS is a library in the process of its clients.
    pub fn is_in_client(&self) -> bool {
        self.dbms.is_embedded() && !self.source.is_elsewhere()
    }
}

/// A setting of a target: its name and its value.
pub type Setting<'a> = (&'a str, &'a str);

/// `default,work_mem=64MB`: the name of a configuration, and the settings that come after it. A
/// name or path whose comma begins no setting has none.
pub fn config_parts(config: &str) -> (&str, Vec<Setting<'_>>) {
    let Some((name, rest)) = config.split_once(',') else { return (config, Vec::new()) };
    match rest.split(',').map(setting).collect() {
        Some(settings) => (name, settings),
        None => (config, Vec::new()),
    }
}

/// `KEY=VALUE` with characters that no file of settings reads as more than one setting.
pub fn setting(text: &str) -> Option<Setting<'_>> {
    let of = |text: &str, more: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        !text.is_empty() && text.len() <= 200 && text.chars().all(plain)
    };
    let (key, value) = text.split_once('=')?;
    (of(key, "_.-") && of(value, "_.-+%")).then_some((key, value))
}

// Named settings of a DBMS, with a hash of their text.

/// Settings as they were handed to the DBMS: a my.cnf, a postgresql.conf fragment, a list of
/// PRAGMAs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `default`, or the name after the colon of the target word.
    pub name: String,
    /// The text after version guards and sizes were filled in: exactly what the DBMS read.
    pub text: String,
    /// The first 12 hex digits of the SHA-256 of `text`.
    pub hash: String,
}

/// The config of every DBMS that leaves its build as it is.
pub const INSTALLED: &str = "installed";

/// True for [`INSTALLED`], and for changes of it, whose names continue with a plus.
pub fn is_installed(name: &str) -> bool {
    name.strip_prefix(INSTALLED).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}

// Labels of targets. A label becomes the name of a folder, so this rule holds wherever a file
// brings one: plans, bundles, run records, blocks, reports of other hosts.

/// Bytes of the longest label. The name of a run folder has some more.
const BYTES_MOST: usize = 200;

/// The reason for refusing a label; `None` if it is one.
pub fn label_fault(label: &str) -> Option<&'static str> {
    if label.is_empty() {
        return Some("it is empty");
    }
    if label.len() > BYTES_MOST {
        return Some("it is longer than 200 bytes");
    }
    if label.starts_with('.') {
        return Some("it begins with a dot");
    }
    if label.contains('/') {
        return Some("it has a slash");
    }
    // Marks of direction are of a kind that `escape_debug` escapes, as control characters are.
    let hides = |c: char| !c.is_ascii_graphic() && c != ' ' && c.escape_debug().len() > 1;
    label.contains(hides).then_some("it has a character that is not shown")
}

/// Reads a label. For `#[serde(deserialize_with)]`.
///
/// # Errors
/// [`fault`].
pub fn checked_label<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let label = String::deserialize(from)?;
    match label_fault(&label) {
        None => Ok(label),
        Some(why) => {
            let shown: String = label.chars().take(60).flat_map(char::escape_debug).collect();
            Err(de::Error::custom(format!("`{shown}` is not the label of a target: {why}")))
        }
    }
}

// rqps as a guest: where its tables are on a server that it does not run.

/// The place of a benchmark's tables on a server that somebody else runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPlace {
    /// `schema rqps_0123456789ab of the database app`.
    pub words: String,
    /// The comment of every table that rqps makes there. A table without it is not rqps's.
    pub mark: String,
}

// Settings of a server without which its rates mean little: what a commit flushes, what the
// planner may do, caches, character sets. Two servers that differ in them are not two builds.

/// The entry for how clients reach the server, which is no setting of it.
pub const CONNECTION: &str = "connection";

/// Settings that a run records, by dialect.
pub fn recorded(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let (durable, others): (&[&str], &[&str]) = match dialect {
        Dialect::Postgres => (&POSTGRES_DURABLE, &POSTGRES),
        Dialect::Mysql => (&MYSQL_DURABLE, &MYSQL),
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => (&[], &[]),
    };
    durable.iter().chain(others).copied()
}

/// Settings of the planner among what shipped configurations set; for statements of the user's own
/// they stay those of the build.
pub const PLANNER: [&str; 3] = ["jit", "max_parallel_workers_per_gather", "max_parallel_workers"];

/// True for a setting that decides what a commit writes and flushes.
pub fn is_of_durability(name: &str) -> bool {
    POSTGRES_DURABLE.contains(&name) || MYSQL_DURABLE.contains(&name)
}

const POSTGRES_DURABLE: [&str; 4] =
    ["fsync", "synchronous_commit", "full_page_writes", "synchronous_standby_names"];

#[rustfmt::skip]
const POSTGRES: [&str; 59] = [
    "wal_level",
    "jit",
    "max_parallel_workers_per_gather",
    "max_parallel_workers",
    "shared_buffers",
    "effective_cache_size",
    "work_mem",
    "hash_mem_multiplier",
    "random_page_cost",
    "seq_page_cost",
    "effective_io_concurrency",
    "default_statistics_target",
    "plan_cache_mode",
    "default_transaction_isolation",
    "server_encoding",
    "lc_collate",
    "data_checksums",
    "wal_compression",
    "io_method",
    "autovacuum",
    "shared_preload_libraries",
    // When pages and the log are written.
    "max_wal_size", "min_wal_size", "checkpoint_timeout", "checkpoint_completion_target",
    "wal_buffers", "wal_sync_method", "commit_delay", "bgwriter_delay", "bgwriter_lru_maxpages",
    "backend_flush_after", "autovacuum_naptime", "autovacuum_vacuum_cost_delay",
    "autovacuum_vacuum_cost_limit", "huge_pages", "maintenance_work_mem", "max_parallel_maintenance_workers",
    "max_worker_processes",
    // What the planner may do.
    "enable_seqscan", "enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan",
    "enable_nestloop", "enable_hashjoin", "enable_mergejoin", "enable_hashagg", "enable_sort",
    "enable_memoize", "enable_partitionwise_join", "cpu_tuple_cost", "cpu_index_tuple_cost",
    "cpu_operator_cost", "jit_above_cost", "join_collapse_limit", "from_collapse_limit",
    // What is written down about each statement.
    "track_io_timing", "log_statement", "log_min_duration_statement", "log_duration",
];

const MYSQL_DURABLE: [&str; 7] = [
    "innodb_flush_log_at_trx_commit",
    "log_bin",
    "sync_binlog",
    "innodb_doublewrite",
    "rocksdb_flush_log_at_trx_commit",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_source_enabled",
];

/// The bytes of the redo log; those of versions and products with a number of files of one size are
/// their product.
pub const REDO_LOG: &str = "innodb_redo_log_capacity";

/// The switches of the optimizer in one text.
pub const OPTIMIZER_SWITCH: &str = "optimizer_switch";

#[rustfmt::skip]
const MYSQL: [&str; 40] = [
    "innodb_buffer_pool_size",
    "innodb_flush_method",
    "innodb_adaptive_hash_index",
    "innodb_stats_persistent_sample_pages",
    "innodb_page_size",
    "character_set_server",
    "character_set_database",
    "collation_database",
    "sql_mode",
    "query_cache_type",
    "query_cache_size",
    "transaction_isolation",
    "tx_isolation",
    "binlog_format",
    "performance_schema",
    "default_storage_engine",
    OPTIMIZER_SWITCH, "eq_range_index_dive_limit",
    // When pages and the log are written.
    REDO_LOG, "innodb_log_buffer_size", "innodb_io_capacity", "innodb_io_capacity_max",
    "innodb_flush_neighbors", "innodb_change_buffering", "innodb_checksum_algorithm",
    "innodb_thread_concurrency", "innodb_use_native_aio", "rocksdb_block_cache_size",
    "binlog_row_image", "gtid_mode",
    // Memory and threads of statements.
    "sort_buffer_size", "join_buffer_size", "tmp_table_size", "max_heap_table_size",
    "internal_tmp_mem_storage_engine", "thread_handling",
    // What is written down about each statement.
    "general_log", "slow_query_log", "long_query_time", "userstat",
];

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

#[cfg(test)]
mod target_tests {
    use super::{Target, *};
    use crate::run::RunKey;

    #[test]
    fn settings_stand_after_the_name_of_a_config() {
        assert_eq!(config_parts("default"), ("default", vec![]));
        let (name, settings) = config_parts("a,work_mem=64MB,jit=off");
        assert_eq!((name, &settings[..]), ("a", &[("work_mem", "64MB"), ("jit", "off")][..]));
        for whole in ["./a,b.conf", "a,x=1\ny=2", "a,x=/etc/passwd", "a,x=1,", "a,=1", "a,x='a b'"]
        {
            assert_eq!(config_parts(whole), (whole, vec![]), "{whole}");
        }
    }

    #[test]
    fn a_label_is_the_name_of_a_folder() {
        for fine in ["mysql-8.0.33", "before", "a b+c_d", "é", "x..y", "🦀"] {
            assert_eq!(label_fault(fine), None, "{fine}");
        }
        let long = "x".repeat(201);
        for wrong in ["", ".", "..", ".x", "../x", "a/b", "/etc", "a\0", "a\n", "\u{202e}x", &long]
        {
            assert!(label_fault(wrong).is_some(), "{wrong:?}");
        }
    }

    #[test]
    fn whoever_reads_a_label_checks_it() {
        let key = |label: &str| {
            let json = serde_json::json!({"block": 1, "attempt": 1, "order": 1, "label": label});
            serde_json::from_value::<RunKey>(json)
        };
        assert!(key("a").is_ok());
        assert!(key("x/../../x").unwrap_err().to_string().contains("has a slash"));
        let target = |label: &str| {
            let source = "compiled_in";
            serde_json::from_value::<Target>(serde_json::json!({"label": label, "dbms": "sqlite",
                "source": source, "config": "default", "storage_engine": null}))
        };
        assert!(target("a").is_ok());
        assert!(target("..").unwrap_err().to_string().contains("begins with a dot"));
    }
}
