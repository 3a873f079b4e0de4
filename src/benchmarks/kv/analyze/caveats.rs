//! Reasons for doubt that only the RocksDB sequence has.

use std::collections::BTreeSet;

use crate::analyze::caveat::{Caveat, Evidence, too_large};
use crate::domain::benchmark::BenchmarkParameters;
use crate::domain::rocksdb::{KvOption, READAHEAD_BYTES, READAHEAD_OPTION};
use crate::domain::run::RunRecord;

/// Readahead of compactions that asks for more than the disk takes at once.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let mut caveats: Vec<Caveat> = Vec::new();
    let mut seen = BTreeSet::new();
    for run in &evidence.dataset.runs {
        let Some(tuning) = evidence.dataset.tunings.get(&run.result_set) else { continue };
        let limit = tuning.max_sectors_kb.zip(readahead_kb(&run.record));
        let Some((limit_kb, kb)) = limit.filter(|(limit_kb, kb)| kb > limit_kb) else { continue };
        let label = &run.record.key.label;
        if seen.insert((label, kb, limit_kb)) {
            caveats.push(too_large(Some(label.clone()), READAHEAD_OPTION, kb, limit_kb));
        }
    }
    caveats
}

/// What settings or else the configuration ask for; `None` for other benchmarks.
fn readahead_kb(record: &RunRecord) -> Option<u64> {
    let BenchmarkParameters::Kv(shape) = &record.workload.shape else { return None };
    let user = shape.options.get(READAHEAD_OPTION).cloned();
    let mut lines = record.config.text.lines().filter_map(|line| KvOption::parse(line).ok());
    let config = lines.rfind(|option| option.key == READAHEAD_OPTION);
    // What is unset is the library's own, which differs by version.
    let bytes = match user.or(config.map(|option| option.value)) {
        Some(text) => text.parse().ok()?,
        None => READAHEAD_BYTES,
    };
    Some(bytes >> 10)
}
