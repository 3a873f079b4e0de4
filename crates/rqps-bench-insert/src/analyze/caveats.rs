//! Caveats of the Insert Benchmark.

use super::rules::{SLA_SHARE, counts_queries};
use rqps_analysis::caveat::{
    Caveat, CaveatKind, Evidence, WRITE_BACK_MIN_KB, most, percent, worst,
};
use rqps_model::run::StepRecord;

/// Caveats on missed write rates and on dirty pages of the step before.
pub(crate) fn find(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let of_target = |(target, label)| {
        let found = [missed_pace(evidence, target, label), dirty_pages(evidence, target, label)];
        found.into_iter().flatten()
    };
    evidence.targets().flat_map(of_target).collect()
}

/// Missed rates in steps without queries. In steps with queries, the write rate decides whether
/// targets can be compared (write_rate.rs).
fn missed_pace(evidence: &Evidence<'_>, target: usize, label: &str) -> Option<Caveat> {
    let found = evidence.each_step(target, |records| {
        most(records, 0.0, |record| missed_target(record).filter(|_| !counts_queries(record.rate)))
    });
    worst(CaveatKind::MissedPace, label, found, |missed| {
        format!("only {} of the scheduled events completed", percent(1.0 - missed))
    })
}

/// The share of the operations that inserters failed to make in time, if it exceeds the published
/// limit.
fn missed_target(record: &StepRecord) -> Option<f64> {
    let inserts = record.outcome.roles.get("inserts")?;
    let due = inserts.target_per_second? * record.outcome.seconds;
    let missed = 1.0 - inserts.operations as f64 / due;
    (missed > 1.0 - SLA_SHARE).then_some(missed)
}

/// Query steps in which the server wrote back dirty pages of earlier steps: it ended with fewer
/// than it began with.
fn dirty_pages(evidence: &Evidence<'_>, target: usize, label: &str) -> Option<Caveat> {
    /// Default size of an InnoDB page, KiB.
    const PAGE_KB: f64 = 16.0;
    let found = evidence.each_step(target, |records| {
        most(records, WRITE_BACK_MIN_KB, |record| {
            let pages = record.outcome.series.get("server_pages_dirty")?;
            let fell = pages.first()? - pages.last()?;
            let seconds = record.outcome.seconds;
            (counts_queries(record.rate) && seconds > 0.0).then(|| PAGE_KB * fell / seconds)
        })
    });
    worst(CaveatKind::WriteBack, label, found, |kb| {
        format!("writeback of the previous step's dirty pages, up to {kb:.0} KB/s")
    })
}
