//! Query steps of the Insert Benchmark whose writers did not keep their rate. Fewer writes leave
//! more of the machine for queries, so their rates and costs are not comparable with those of a
//! server that did all its writes (the published reports leave such results out).

use serde::Serialize;

use super::compare::{StepComparison, TargetFacts, TargetResult};
use crate::benchmarks::insert::analyze::rules::{is_query_step, meets_sla, target_rate};
use crate::domain::metric::Metric;
use crate::domain::run::StepRecord;

/// A write rate that one target did not keep in one step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissedRate {
    /// Rows per second that were asked for, all clients together.
    pub target: f64,
    /// The lowest rate of the blocks, rows per second.
    pub lowest: f64,
    /// Blocks in which the rate was missed.
    pub missed: usize,
    /// Blocks that were measured.
    pub blocks: usize,
}

impl MissedRate {
    /// `misses its write rate: 312 of 1000 rows/s, in 2 of 3 blocks`.
    pub fn text(&self) -> String {
        format!(
            "misses its write rate: {:.0} of {:.0} rows/s, in {} of {} blocks",
            self.lowest, self.target, self.missed, self.blocks
        )
    }

    /// The share of the rate that is missing where it is lowest.
    pub fn loss(&self) -> f64 {
        1.0 - self.lowest / self.target
    }

    /// True if more than half of the blocks missed the rate: then it is not one bad block.
    pub fn is_regular(&self) -> bool {
        2 * self.missed > self.blocks
    }
}

/// Rows per second that the inserters of a query step were asked for: by the record of their role.
/// Published tables have no roles; their rate is that of the step's name, times the clients.
pub fn target(step: &StepRecord, clients: u32) -> Option<f64> {
    if !is_query_step(&step.name) {
        return None;
    }
    let of_role = step.outcome.roles.get("inserts").and_then(|role| {
        // The target counts batches.
        let rows_per_batch = role.rows as f64 / role.operations as f64;
        Some(role.target_per_second? * rows_per_batch).filter(|rate| rate.is_finite())
    });
    // Of published tables the clients may not be known.
    of_role.or_else(|| target_rate(&step.name, clients).filter(|_| clients > 0))
}

/// The write rate that a target missed in a step; `None` if it was met, or if there is none.
pub(super) fn missed(target_step: &TargetResult, clients: u32) -> Option<MissedRate> {
    let rates = target_step.samples.iter().filter_map(|sample| {
        let wanted = target(&sample.record, clients)?;
        let inserts = sample.record.outcome.roles.get("inserts");
        // A step without a single insert has no rate of its own.
        let none = inserts.filter(|role| role.operations == 0).map(|_| 0.0);
        Some((wanted, sample.values.get(Metric::InsertRate).or(none)?))
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

/// Notes for each target of a step whether it missed its write rate, and that the step is not
/// comparable where it or the base did.
pub(super) fn note(targets: &[TargetFacts], step: &mut StepComparison) {
    if !is_query_step(&step.name) {
        return;
    }
    for (facts, target) in targets.iter().zip(&mut step.targets) {
        let clients = facts.workloads.first().map_or(0, |workload| workload.clients);
        target.missed_rate = missed(target, clients);
    }
    let Some((base, others)) = step.targets.split_first_mut() else { return };
    let of_base = base.missed_rate.as_ref();
    for target in others {
        let of_base = of_base.map(|missed| format!("the baseline {}", missed.text()));
        let own = target.missed_rate.as_ref().map(MissedRate::text);
        target.not_comparable.extend(own.into_iter().chain(of_base));
    }
}
