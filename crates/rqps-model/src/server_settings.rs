//! Settings of a server without which its rates mean little: what a commit flushes, what the
//! planner may do, caches, character sets. Two servers that differ in them are not two builds.

use super::dialect::Dialect;

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

const POSTGRES_DURABLE: [&str; 3] = ["fsync", "synchronous_commit", "full_page_writes"];

const POSTGRES: [&str; 21] = [
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
];

const MYSQL_DURABLE: [&str; 4] =
    ["innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog", "innodb_doublewrite"];

const MYSQL: [&str; 16] = [
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
];
