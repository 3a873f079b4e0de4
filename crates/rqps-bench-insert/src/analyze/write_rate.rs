//! The write rate beside the queries of a step, and whether the writers kept it.

use super::rules::{counts_queries, meets_sla, target_rate};
use rqps_analysis::comparison::{MissedRate, TargetResult};
use rqps_model::metric::Metric;
use rqps_model::run::StepRecord;

/// Rows per second requested of the inserters in a query step, from the record of their role.
/// Published tables have no roles; there it is the rate in the step's name times the clients.
pub(super) fn target(step: &StepRecord, clients: u32) -> Option<f64> {
    if !counts_queries(step.rate) {
        return None;
    }
    let of_role = step.outcome.roles.get("inserts").and_then(|role| {
        // The role's target counts batches.
        let rows_per_batch = role.rows as f64 / role.operations as f64;
        Some(role.target_per_second? * rows_per_batch).filter(|rate| rate.is_finite())
    });
    // Published tables may not tell the clients.
    of_role.or_else(|| target_rate(&step.name, clients).filter(|_| clients > 0))
}

/// The write rate that a target missed in a step; `None` if it was met or not set.
pub(super) fn missed(target_step: &TargetResult, clients: u32) -> Option<MissedRate> {
    let rates = target_step.samples.iter().filter_map(|sample| {
        let wanted = target(&sample.record, clients)?;
        let inserts = sample.record.outcome.roles.get("inserts");
        // A step without inserts has no insert rate.
        let none = inserts.filter(|role| role.operations == 0).map(|_| 0.0);
        Some((wanted, sample.get(Metric::InsertRate).or(none)?))
    });
    let rates: Vec<(f64, f64)> = rates.collect();
    let missed = rates.iter().filter(|(wanted, inserted)| !meets_sla(*inserted, *wanted)).count();
    let lowest = rates.iter().copied().min_by(|a, b| (a.1 / a.0).total_cmp(&(b.1 / b.0)))?;
    (missed > 0).then_some(MissedRate {
        target: lowest.0,
        lowest: lowest.1,
        missed,
        blocks: rates.len(),
    })
}
