//! Reads RocksDB's statistics text (property `rocksdb.stats`) of all versions since 6.0. Columns
//! are found by their heads, because 10.3 inserted one.

use std::collections::BTreeMap;

const KIB: f64 = 1024.0;

/// RocksDB's statistics; `None` for values that the text does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    /// Rows of the compaction table by level, without its sums.
    pub levels: Vec<TreeLevel>,
    /// The row ` Sum`.
    pub sum: Option<TreeLevel>,
    /// Written by flushes and compactions since opening, GiB.
    pub compaction_written_gb: Option<f64>,
    /// Rate of these writes, MiB per second of uptime.
    pub compaction_mb_per_second: Option<f64>,
    /// Written by flushes alone, GiB.
    pub flush_gb: Option<f64>,
    /// Put by clients, GiB, to two digits.
    pub ingest_gb: Option<f64>,
    /// Size of the blob files, GiB.
    pub blob_gb: Option<f64>,
    /// Seconds since opening.
    pub uptime_seconds: Option<f64>,
    /// Share of the uptime in which the leader of a write group was delayed or stopped, per cent.
    pub stall_percent: Option<f64>,
    /// Number of delays and stops of writes by cause, with the names of 8.1 and later. Neither
    /// their time nor the affected writes.
    pub stalls: BTreeMap<String, u64>,
}

/// A row of the compaction table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeLevel {
    /// `L0`, `Sum`.
    pub name: String,
    /// Number of files, and how many of them are being compacted: `4/0`.
    pub files: String,
    /// Bytes of the files.
    pub bytes: f64,
    /// Numbers by head, from `Score` on.
    columns: Vec<(String, f64)>,
    /// All fields of the line.
    fields: Vec<String>,
}

impl TreeLevel {
    /// A number by the head of its column: `Comp(sec)`.
    pub fn get(&self, head: &str) -> Option<f64> {
        self.columns.iter().find(|(name, _)| name == head).map(|(_, value)| *value)
    }

    /// A field by its position in the line, from 1, as published scripts read it.
    pub fn field(&self, place: usize) -> Option<f64> {
        number(self.fields.get(place.checked_sub(1)?)?)
    }
}

/// Reads the text. Skips lines of an unknown form; the last line of a kind counts.
pub fn parse(text: &str) -> Stats {
    let (mut stats, mut heads) = (Stats::default(), Vec::new());
    text.lines().for_each(|line| stats.take(line, &mut heads));
    stats
}

impl Stats {
    /// Takes a line. `heads` are those of the table of levels that it may be of.
    pub fn take(&mut self, line: &str, heads: &mut Vec<String>) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["Level", "Files", "Size", rest @ ..] => {
                *heads = rest.iter().map(|head| (*head).to_owned()).collect();
            }
            ["Priority", ..] => heads.clear(),
            [name, files, size, unit, ..] if !heads.is_empty() && files.contains('/') => {
                if let Some(bytes) = scaled(size, unit) {
                    let level = level(name, files, bytes, heads, &words);
                    match *name {
                        "Sum" => self.sum = Some(level),
                        "Int" => {}
                        _ => self.levels.push(level),
                    }
                }
            }
            _ => facts(self, line),
        }
    }
}

fn level(name: &str, files: &str, bytes: f64, heads: &[String], words: &[&str]) -> TreeLevel {
    let values = words.iter().skip(4).map(|word| number(word));
    let columns = heads.iter().cloned().zip(values);
    TreeLevel {
        name: name.to_owned(),
        files: files.to_owned(),
        bytes,
        columns: columns.filter_map(|(head, value)| Some((head, value?))).collect(),
        fields: words.iter().map(|word| (*word).to_owned()).collect(),
    }
}

fn facts(stats: &mut Stats, line: &str) {
    if let Some(rest) = line.strip_prefix("Cumulative compaction: ") {
        stats.compaction_written_gb = before(rest, " write").and_then(gigabytes);
        let speed = rest.split(", ").nth(1).and_then(|part| part.split_whitespace().next());
        stats.compaction_mb_per_second = speed.and_then(number);
    } else if let Some(rest) = line.strip_prefix("Flush(GB): cumulative ") {
        stats.flush_gb = before(rest, ",").and_then(number);
    } else if line.starts_with("Cumulative writes: ") {
        let ingest = line.split_once("ingest: ").and_then(|(_, rest)| before(rest, ","));
        stats.ingest_gb = ingest.and_then(gigabytes);
    } else if let Some(rest) = line.strip_prefix("Blob file count: ") {
        let size = rest.split_once("total size: ").and_then(|(_, rest)| before(rest, ","));
        stats.blob_gb = size.and_then(gigabytes);
    } else if let Some(rest) = line.strip_prefix("Uptime(secs): ") {
        stats.uptime_seconds = before(rest, " total").and_then(number);
    } else if line.starts_with("Cumulative stall: ") {
        let percent = line.split_once("H:M:S, ").and_then(|(_, rest)| before(rest, " percent"));
        stats.stall_percent = percent.and_then(number);
    } else if let Some(rest) = line.strip_prefix("Write Stall (count): ") {
        stats.stalls.extend(new_stalls(rest));
    } else if let Some(rest) = line.strip_prefix("Stalls(count): ") {
        stats.stalls.extend(old_stalls(rest));
    }
}

fn before<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    text.split_once(end).map(|(before, _)| before)
}

/// Reads causes of write stalls as `name: n, name: n, …`, the form since 8.1.
fn new_stalls(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.split(", ").filter_map(|part| {
        let (name, count) = part.split_once(": ")?;
        Some((name.trim().to_owned(), count.trim().parse().ok()?))
    })
}

/// Causes before 8.1 in the order of their line, and their names since.
const OLD_STALLS: [(&str, &str); 8] = [
    ("level0_slowdown", "l0-file-count-limit-delays"),
    ("level0_slowdown_with_compaction", "cf-l0-file-count-limit-delays-with-ongoing-compaction"),
    ("level0_numfiles", "l0-file-count-limit-stops"),
    ("level0_numfiles_with_compaction", "cf-l0-file-count-limit-stops-with-ongoing-compaction"),
    ("stop for pending_compaction_bytes", "pending-compaction-bytes-stops"),
    ("slowdown for pending_compaction_bytes", "pending-compaction-bytes-delays"),
    ("memtable_compaction", "memtable-limit-stops"),
    ("memtable_slowdown", "memtable-limit-delays"),
];

/// Reads causes of write stalls as `n name, n name, …`, the form until 8.0.
fn old_stalls(text: &str) -> impl Iterator<Item = (String, u64)> {
    text.split(", ").filter_map(|part| {
        let (count, name) = part.trim().split_once(' ')?;
        let (_, new) = OLD_STALLS.iter().find(|(old, _)| *old == name)?;
        Some(((*new).to_owned(), count.parse().ok()?))
    })
}

/// Reads `12`, `12K`, `3M`, `1G`: counts are shortened by powers of 1000.
fn number(word: &str) -> Option<f64> {
    let (digits, factor) = match word.as_bytes().last()? {
        b'K' => (&word[..word.len() - 1], 1e3),
        b'M' => (&word[..word.len() - 1], 1e6),
        b'G' => (&word[..word.len() - 1], 1e9),
        _ => (word, 1.0),
    };
    digits.parse::<f64>().ok().map(|value| value * factor)
}

/// Reads `0.28 GB`, `1.5 TB`, `512.00 MB` as GiB.
fn gigabytes(text: &str) -> Option<f64> {
    let (size, unit) = text.trim().split_once(' ')?;
    scaled(size, unit).map(|bytes| bytes / KIB.powi(3))
}

fn scaled(size: &str, unit: &str) -> Option<f64> {
    let power = match unit {
        "B" | "bytes" => 0,
        "KB" => 1,
        "MB" => 2,
        "GB" => 3,
        "TB" => 4,
        _ => return None,
    };
    size.parse::<f64>().ok().map(|size| size * KIB.powi(power))
}
