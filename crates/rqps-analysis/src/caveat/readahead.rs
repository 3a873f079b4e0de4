//! Readahead that asks for more than the disk takes at once.

use std::collections::BTreeSet;

use super::evidence::Evidence;
use super::kind::{Caveat, CaveatKind};
use rqps_model::host::Tuning;
use rqps_model::run::RunRecord;

/// Settings of servers by which reads are made larger, and the bytes of a plain number there.
const SETTINGS: [(&str, u64); 3] = [
    ("rocksdb_compaction_readahead_size", 1),
    // Blocks of Postgres.
    ("io_combine_limit", 8192),
    ("io_max_combine_limit", 8192),
];

pub(super) fn find(evidence: &Evidence) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    let mut seen = BTreeSet::new();
    for run in &evidence.dataset.runs {
        let Some(tuning) = evidence.dataset.tunings.get(&run.result_set) else { continue };
        let Some(limit_kb) = tuning.max_sectors_kb else { continue };
        let label = &run.record.key.label;
        let configured = of_target(&run.record).map(|found| (Some(label.clone()), found));
        let found = configured.into_iter().chain(of_kernel(tuning).map(|found| (None, found)));
        for (target, (name, kb)) in found.filter(|(_, (_, kb))| *kb > limit_kb) {
            if seen.insert((target.clone(), name.clone(), kb)) {
                caveats.push(too_large(target, &name, kb, limit_kb));
            }
        }
    }
    caveats
}

/// A readahead that is larger than a request to the disk, in KiB.
pub fn too_large(target: Option<String>, name: &str, kb: u64, limit_kb: u64) -> Caveat {
    let text = format!("{name} is {kb} KiB, max_sectors_kb of the disk is {limit_kb}");
    Caveat { kind: CaveatKind::Readahead, target, steps: Vec::new(), text }
}

type Found = (String, u64);

/// The page cache's.
fn of_kernel(tuning: &Tuning) -> Option<Found> {
    Some(("read_ahead_kb of the disk".to_owned(), tuning.read_ahead_kb?))
}

/// The largest that the configuration asks for.
fn of_target(record: &RunRecord) -> Option<Found> {
    let lines = record.config.text.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim().to_lowercase().replace('-', "_");
        let (_, unit) = SETTINGS.iter().find(|(known, _)| *known == name)?;
        Some((name, bytes(value.trim().trim_matches(['\'', '"']), *unit)? >> 10))
    });
    lines.max_by_key(|(_, kb)| *kb)
}

/// `128kB`, `2M`, or a plain number of `unit` bytes.
fn bytes(text: &str, unit: u64) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let factor = match text[end..].trim().to_lowercase().as_str() {
        "" => unit,
        "b" => 1,
        "k" | "kb" => 1 << 10,
        "m" | "mb" => 1 << 20,
        "g" | "gb" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_those_of_configs() {
        let check = |text: &str, unit, wanted| assert_eq!(bytes(text, unit), wanted, "{text}");
        check("16", 8192, Some(131_072));
        check("128kB", 8192, Some(131_072));
        check("2M", 1, Some(2 << 20));
        check("2097152", 1, Some(2 << 20));
        check("many", 1, None);
        check("99999999999999999G", 1, None);
    }
}
