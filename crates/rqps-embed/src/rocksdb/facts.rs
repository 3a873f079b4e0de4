//! Facts that a library reports about itself: no function has its version, but it writes one into
//! the LOG of every database that it opens.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The head of a LOG, bytes.
const HEAD_BYTES: u64 = 64 << 10;

/// The facts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// `9.9.3`; of Speedb, the version of Speedb.
    pub version: String,
    /// The version of RocksDB that it is, or that it was forked from.
    pub rocksdb_version: String,
    /// `Git sha`, if the build has one.
    pub git: Option<String>,
    /// `Compile date`.
    pub compiled: Option<String>,
    /// Its support of CRC32C: `Not supported on x86` means in software.
    pub crc32: Option<String>,
}

impl Facts {
    /// One line for manifests and reports.
    pub fn line(&self) -> String {
        let fork = (self.rocksdb_version != self.version).then_some(&self.rocksdb_version);
        let facts = [
            ("RocksDB", fork),
            ("compiled", self.compiled.as_ref()),
            ("git", self.git.as_ref()),
            ("fast CRC32:", self.crc32.as_ref()),
        ];
        let known = facts.iter().filter_map(|(name, value)| Some(format!("{name} {}", (*value)?)));
        let known = known.collect::<Vec<_>>().join("; ");
        if known.is_empty() { self.version.clone() } else { format!("{} ({known})", self.version) }
    }
}

/// Reads the LOG of the database in `folder`. `None` if it names no version.
///
/// # Errors
/// The file cannot be read.
pub fn facts(folder: &Path) -> io::Result<Option<Facts>> {
    let mut text = Vec::new();
    fs::File::open(folder.join("LOG"))?.take(HEAD_BYTES).read_to_end(&mut text)?;
    Ok(parse(&String::from_utf8_lossy(&text)))
}

fn parse(log: &str) -> Option<Facts> {
    let mut facts = Facts::default();
    for line in log.lines() {
        let after = |head: &str| {
            let (_, rest) = line.split_once(head)?;
            let rest = rest.trim();
            (!rest.is_empty()).then(|| rest.to_owned())
        };
        if let Some(version) = after("RocksDB version: ") {
            facts.rocksdb_version.clone_from(&version);
            facts.version = version;
        } else if let Some(words) = after("Speedb version: ") {
            // `2.8.0-? (8.6.7)`: its own, then that of RocksDB.
            let own = words.split(['-', ' ']).next().unwrap_or_default();
            facts.version = own.to_owned();
            let inner = words.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
            facts.rocksdb_version = inner.map_or(own, |(version, _)| version).to_owned();
        } else if let Some(git) = after("Git sha ") {
            facts.git = Some(git).filter(|git| !git.contains("@@") && !git.starts_with("rocksdb_"));
        } else if let Some(date) = after("Compile date ") {
            facts.compiled = Some(date);
        } else if let Some(said) = after("Fast CRC32 supported: ") {
            facts.crc32 = Some(said);
        }
    }
    (!facts.version.is_empty()).then_some(facts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_of_a_log_is_read() {
        let log = "2024/11/01-10:00:00.000001 7f RocksDB version: 9.9.3\n\
            2024/11/01-10:00:00.000002 7f Git sha 0\n\
            2024/11/01-10:00:00.000003 7f Compile date 2025-01-02 03:04:05\n\
            2024/11/01-10:00:00.000004 7f Fast CRC32 supported: Not supported on x86\n";
        let facts = parse(log).unwrap();
        assert_eq!((facts.version.as_str(), facts.rocksdb_version.as_str()), ("9.9.3", "9.9.3"));
        assert_eq!(
            facts.line(),
            "9.9.3 (compiled 2025-01-02 03:04:05; git 0; fast CRC32: Not supported on x86)"
        );
    }

    #[test]
    fn speedb_tells_both_versions() {
        let facts = parse("x Speedb version: 2.8.0-? (8.6.7)\n").unwrap();
        assert_eq!((facts.version.as_str(), facts.rocksdb_version.as_str()), ("2.8.0", "8.6.7"));
        assert_eq!(facts.line(), "2.8.0 (RocksDB 8.6.7)");
        assert_eq!(parse("nothing of the kind"), None);
    }
}
