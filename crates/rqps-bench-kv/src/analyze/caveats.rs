//! Caveats of the RocksDB sequence.

use std::collections::BTreeSet;

use rqps_analysis::caveat::{Caveat, Evidence, too_large};
use rqps_model::benchmark::BenchmarkParameters;
use rqps_model::rocksdb::{KvOption, READAHEAD_BYTES, READAHEAD_OPTION};
use rqps_model::run::RunRecord;

/// The caveat on compaction readahead that exceeds one request of the disk.
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

/// The readahead of the settings or else the configuration, KiB; `None` for other benchmarks.
fn readahead_kb(record: &RunRecord) -> Option<u64> {
    let BenchmarkParameters::Kv(shape) = &record.workload.shape else { return None };
    let user = shape.options.get(READAHEAD_OPTION).cloned();
    let mut lines = record.config.text.lines().filter_map(|line| KvOption::parse(line).ok());
    let config = lines.rfind(|option| option.key == READAHEAD_OPTION);
    // Without a setting, the library's default holds, which differs by version.
    let bytes = match user.or(config.map(|option| option.value)) {
        Some(text) => text.parse().ok()?,
        None => READAHEAD_BYTES,
    };
    Some(bytes >> 10)
}
