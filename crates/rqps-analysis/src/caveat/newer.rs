//! Caveats on fields and values of a newer rqps that this one does not know.

use std::collections::BTreeSet;

use super::evidence::Evidence;
use super::kind::{Caveat, CaveatKind};
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::run::LeftOut;
use rqps_model::step_parameters::StepPurpose;

/// One caveat for all of it.
pub(super) fn find(evidence: &Evidence) -> Option<Caveat> {
    let comparison = evidence.comparison;
    let groups = comparison.groups_of_steps().into_iter();
    let units = comparison.steps.iter().filter_map(|step| match step.rate {
        RateUnit::Unknown(word) => Some(word.text()),
        _ => None,
    });
    let purposes = comparison.steps.iter().filter_map(|step| match step.parameters.purpose {
        StepPurpose::Unknown(word) => Some(word.text()),
        _ => None,
    });
    let metrics = comparison.metrics().into_iter().filter(|metric| !metric.is_known());
    let fields = evidence.dataset.runs.iter().flat_map(|run| &run.unknown).map(String::as_str);
    let beside = evidence.dataset.unknown.iter().map(String::as_str);
    let left_out: Vec<String> = evidence
        .dataset
        .left_out
        .iter()
        .map(|LeftOut { file, field, value }| format!("{file} (`{field}` is `{value}`)"))
        .collect();
    let unknown: [(&str, BTreeSet<&str>); 6] = [
        ("metrics", metrics.map(|metric| metric.name()).collect()),
        ("groups", groups.filter(|it| !Group::ALL.contains(it)).map(Group::name).collect()),
        ("units of rates", units.collect()),
        ("purposes of steps", purposes.collect()),
        ("fields", fields.chain(beside).collect()),
        ("values, so these files are left out:", left_out.iter().map(String::as_str).collect()),
    ];
    let parts: Vec<String> = unknown
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(what, names)| format!("{what} {}", Vec::from_iter(names).join(", ")))
        .collect();
    (!parts.is_empty()).then(|| Caveat {
        kind: CaveatKind::NewerFacts,
        target: None,
        steps: Vec::new(),
        text: format!("unknown here: {}", parts.join("; ")),
    })
}
