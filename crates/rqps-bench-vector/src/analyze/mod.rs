//! Metrics and rules of vector search.

pub(crate) mod equal_recall;
pub mod recall;
pub mod verify;

use rqps_analysis::Extension;
use rqps_analysis::caveat::{Caveat, CaveatKind, Evidence};
use rqps_model::metric::Metric;

/// The hooks.
pub(crate) const EXTENSION: Extension =
    Extension { derive: equal_recall::steps, caveats: recalls, ..Extension::none("vector") };

/// Largest difference between recalls that count as equal.
const RECALL_NEAR: f64 = 0.005;

/// The caveat on searches of two DBMSs whose recalls differ by more than those of two builds of one
/// index. Between builds of one DBMS, a lower recall is a finding of its own.
fn recalls(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let comparison = evidence.comparison;
    let dbms = |place: usize| {
        comparison.targets.get(place).and_then(|facts| Some(facts.target.as_ref()?.dbms))
    };
    let mut caveats = Vec::new();
    for step in comparison.measured_steps().filter(|step| !step.is_choice()) {
        let recall = |place: usize| step.targets.get(place)?.absolute(Metric::Recall);
        let Some(baseline) = recall(0) else { continue };
        for (place, target) in step.targets.iter().enumerate().skip(1) {
            let Some(other) = recall(place).filter(|_| dbms(0) != dbms(place)) else { continue };
            if (other - baseline).abs() > RECALL_NEAR {
                caveats.push(Caveat {
                    kind: CaveatKind::DifferentRecall,
                    target: Some(target.label.clone()),
                    steps: vec![step.name.clone()],
                    text: format!("recall {other:.4}, {baseline:.4} of {}", comparison.baseline),
                });
            }
        }
    }
    caveats
}
