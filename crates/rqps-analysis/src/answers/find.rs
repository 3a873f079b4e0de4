//! Compares answers and data of each target with those of the baseline.

use std::collections::{BTreeSet, HashMap};

use super::finding::{AnswerFinding, AnswerWeight, Told};
use super::{replies, tables, windows};
use crate::comparison::StepComparison;
use rqps_model::answers::StepAnswers;
use rqps_model::run::{Dataset, Run};
use rqps_model::verdict::Rules;

/// Compares answers and data of each target with those of the baseline, and notes in the steps
/// which of them cannot be compared.
pub(crate) fn find(
    dataset: &Dataset,
    (labels, rules): (&[String], &Rules),
    steps: &mut [StepComparison],
) -> Vec<AnswerFinding> {
    let mut bases: HashMap<(&str, u32, u32), &Run> = HashMap::new();
    for run in dataset.runs.iter().filter(|run| run.record.key.label == labels[0]) {
        bases.insert(block_of(run), run);
    }
    let mut found: Vec<AnswerFinding> = Vec::new();
    for (place, label) in labels.iter().enumerate().skip(1) {
        let of_target = dataset.runs.iter().filter(|run| run.record.key.label == *label);
        let pairs: Vec<(&Run, &Run)> = of_target
            .filter_map(|run| Some((*bases.get(&block_of(run))?, run)))
            .filter(|(base, run)| are_alike(base, run))
            .collect();
        let mut of_target: Vec<AnswerFinding> = Vec::new();
        for finding in pairs.iter().flat_map(|(base, run)| of_pair(base, run)) {
            if !of_target.contains(&finding) {
                of_target.push(finding);
            }
        }
        of_target.extend(of_windows(&pairs, &of_target, (&labels[0], label)));
        of_target.iter().for_each(|finding| note(finding, (place, rules), steps));
        found.extend(of_target);
    }
    found.sort_by_key(|finding| finding.weight);
    found
}

/// Notes in the steps of a finding that they cannot be compared.
fn note(finding: &AnswerFinding, (place, rules): (usize, &Rules), steps: &mut [StepComparison]) {
    let (voids, why) = match finding.weight {
        AnswerWeight::Data => (!rules.data_differ, "it reads data that differ from the baseline's"),
        AnswerWeight::Answer => (!rules.ignore_answers, "its answers differ from the baseline's"),
        AnswerWeight::Harmless | AnswerWeight::Uncompared => (false, ""),
    };
    for step in steps.iter_mut().filter(|step| voids && finding.steps.contains(&step.name)) {
        let reasons = &mut step.targets[place].not_comparable;
        if !reasons.iter().any(|known| known == why) {
            reasons.push(why.to_owned());
        }
    }
}

/// Result set, block and attempt of a run.
fn block_of(run: &Run) -> (&str, u32, u32) {
    (&run.result_set, run.record.key.block, run.record.key.attempt)
}

/// True if both are of one DBMS and had the same values.
fn are_alike(base: &Run, run: &Run) -> bool {
    base.record.target.dbms == run.record.target.dbms && base.record.seed == run.record.seed
}

/// Differences over the windows, in steps of which nothing else is known.
fn of_windows(
    pairs: &[(&Run, &Run)],
    known: &[AnswerFinding],
    labels: (&str, &str),
) -> Vec<AnswerFinding> {
    let is_told = |name: &String| {
        let told = [AnswerWeight::Data, AnswerWeight::Answer];
        let mut grave = known.iter().filter(|finding| told.contains(&finding.weight));
        grave.any(|finding| finding.steps.contains(name))
    };
    let first = pairs.first().map_or(&[][..], |(base, _)| &base.steps);
    let new = first.iter().filter(|step| step.index > 0 && step.reported && !is_told(&step.name));
    new.filter_map(|step| {
        let (weight, text) = windows::compare(pairs, step.index, labels)?;
        let (target, steps) = (labels.1.to_owned(), vec![step.name.clone()]);
        Some(AnswerFinding { weight, target, steps, text })
    })
    .collect()
}

fn of_pair(base: &Run, run: &Run) -> Vec<AnswerFinding> {
    let dialect = run.record.target.dbms.dialect();
    let labels = (base.record.key.label.as_str(), run.record.key.label.as_str());
    let finding = |(weight, text): Told, steps: Vec<String>| AnswerFinding {
        weight,
        target: labels.1.to_owned(),
        steps,
        text,
    };
    let mut found = Vec::new();
    let (mut of_other_data, mut of_own_values) = (BTreeSet::new(), BTreeSet::new());
    for (name, told) in tables::compare((base, run), labels) {
        let reads = run
            .steps
            .iter()
            .filter(|step| step.answers.as_ref().is_none_or(|answers| names(answers, &name)));
        let steps: Vec<String> = reads.map(|step| step.name.clone()).collect();
        if told.0 == AnswerWeight::Data {
            of_other_data.extend(steps.iter().cloned());
        } else if told.0 == AnswerWeight::Harmless {
            of_own_values.extend(steps.iter().cloned());
        }
        found.push(finding(told, steps));
    }
    for step in run.steps.iter().filter(|step| !of_other_data.contains(&step.name)) {
        let same = base.steps.iter().find(|base| base.index == step.index);
        let pair = (same.and_then(|base| base.answers.as_ref()), step.answers.as_ref());
        if let (Some(one), Some(other)) = pair {
            let own_values = of_own_values.contains(&step.name);
            let told = replies::compare((dialect, own_values), (one, other), labels);
            found.extend(told.into_iter().map(|told| finding(told, vec![step.name.clone()])));
        }
    }
    found
}

/// True if a statement names a table, or nothing is known of the statements.
fn names(answers: &StepAnswers, table: &str) -> bool {
    let name = table.rsplit('.').next().unwrap_or(table).to_ascii_uppercase();
    let holds = |sql: &String| sql.to_ascii_uppercase().contains(&name);
    answers.statements.is_empty() || answers.statements.iter().any(holds)
}
