//! Steps whose writers did not keep their rate beside the queries. Fewer writes leave more of the
//! machine for queries, so their rates and costs are not comparable with those of a server that did
//! all its writes (the published reports leave such results out).

use super::comparison::{MissedRate, StepComparison, TargetFacts};
use super::extension::Extension;

/// Notes for each target of a step whether it missed its write rate, and that the step is not
/// comparable where it or the baseline did.
pub(super) fn note(targets: &[TargetFacts], step: &mut StepComparison, extensions: &[&Extension]) {
    for (facts, target) in targets.iter().zip(&mut step.targets) {
        let clients = facts.workloads.first().map_or(0, |workload| workload.clients);
        target.missed_rate = extensions.iter().find_map(|own| (own.missed_rate)(target, clients));
    }
    let Some((baseline, others)) = step.targets.split_first_mut() else { return };
    let of_baseline = baseline.missed_rate.as_ref();
    for target in others {
        let of_baseline = of_baseline.map(|missed| format!("the baseline {}", missed.text()));
        let own = target.missed_rate.as_ref().map(MissedRate::text);
        target.not_comparable.extend(own.into_iter().chain(of_baseline));
    }
}
