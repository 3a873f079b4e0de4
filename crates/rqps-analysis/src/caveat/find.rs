//! All caveats of a comparison, in the order of reports.

use std::collections::HashMap;

use super::evidence::Evidence;
use super::kind::{Caveat, CaveatKind};
use super::{comparability, completeness, course, measuring, planning, readahead};
use crate::answers::{AnswerFinding, AnswerWeight};
use crate::comparison::Comparison;
use crate::counted::is_counted;
use crate::extension::Extension;
use rqps_model::run::Dataset;

/// All caveats, the gravest first; those of one kind in the order of targets and steps.
pub(crate) fn find(
    dataset: &Dataset,
    comparison: &Comparison,
    extensions: &[&Extension],
) -> Vec<Caveat> {
    let evidence = Evidence::of(dataset, comparison);
    if is_counted(comparison) {
        return of_count(&evidence, extensions);
    }
    let of_benchmarks = extensions.iter().flat_map(|own| (own.caveats)(&evidence));
    let mut caveats: Vec<Caveat> = of_benchmarks.collect();
    caveats.extend(comparison.answers.iter().map(of_answers));
    caveats.extend(comparability::find(&evidence, extensions));
    caveats.extend(completeness::find(&evidence));
    caveats.extend(measuring::find(&evidence));
    caveats.extend(course::find(&evidence));
    caveats.extend(planning::find(&evidence));
    caveats.extend(readahead::find(&evidence));
    caveats.sort_by_key(|caveat| caveat.kind);
    together(caveats)
}

fn of_answers(found: &AnswerFinding) -> Caveat {
    let kind = match found.weight {
        AnswerWeight::Data => CaveatKind::DifferentData,
        AnswerWeight::Answer => CaveatKind::DifferentAnswers,
        AnswerWeight::Harmless => CaveatKind::HarmlessAnswers,
        AnswerWeight::Uncompared => CaveatKind::UncomparedAnswers,
    };
    let AnswerFinding { target, steps, text, .. } = found.clone();
    Caveat { kind, target: Some(target), steps, text }
}

/// Caveats of counts. Counts are not timed, so the state of the host does not matter.
fn of_count(evidence: &Evidence<'_>, extensions: &[&Extension]) -> Vec<Caveat> {
    let mut caveats = comparability::find(evidence, extensions);
    caveats.extend(completeness::find(evidence));
    caveats.extend(planning::find(evidence));
    caveats.sort_by_key(|caveat| caveat.kind);
    together(caveats)
}

/// Caveats of several steps that say the same are one.
fn together(caveats: Vec<Caveat>) -> Vec<Caveat> {
    let mut all: Vec<Caveat> = Vec::with_capacity(caveats.len());
    let mut known: HashMap<(CaveatKind, Option<String>, String), usize> = HashMap::new();
    for caveat in caveats {
        let place = (caveat.kind, caveat.target.clone(), caveat.text.clone());
        match known.get(&place).filter(|_| !caveat.steps.is_empty()) {
            Some(first) => {
                let new = caveat.steps.into_iter().filter(|step| !all[*first].steps.contains(step));
                let new: Vec<String> = new.collect();
                all[*first].steps.extend(new);
            }
            None => {
                known.insert(place, all.len());
                all.push(caveat);
            }
        }
    }
    all
}
