//! The size of a server's write-ahead or redo log.

/// Megabytes of write-ahead or redo log: as much as the cache, at least 256 and at most 16384.
/// Published runs have 20 to 40 GB with 10 GB of cache; less suffices for shorter runs, and some
/// versions fill the whole log with zeros when they first start, which every snapshot then copies.
pub fn log_mb(cache_mb: u64) -> u64 {
    cache_mb.clamp(256, 16384)
}
