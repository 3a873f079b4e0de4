//! Compares answers and data of each target with those of the baseline.

use std::collections::BTreeSet;

use super::finding::{AnswerFinding, AnswerWeight, Told};
use super::{replies, tables};
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
    let mut found: Vec<AnswerFinding> = Vec::new();
    for run in &dataset.runs {
        let place = labels.iter().position(|label| *label == run.record.key.label);
        let Some(place) = place.filter(|place| *place > 0) else { continue };
        let Some(base) = dataset.runs.iter().find(|base| is_base(base, run, &labels[0])) else {
            continue;
        };
        for finding in of_pair(base, run) {
            let voids = match finding.weight {
                AnswerWeight::Data => !rules.data_differ,
                AnswerWeight::Answer => !rules.ignore_answers,
                AnswerWeight::Harmless | AnswerWeight::Uncompared => false,
            };
            let why = match finding.weight {
                AnswerWeight::Data => "it reads data that differ from the baseline's",
                _ => "its answers differ from the baseline's",
            };
            for step in steps.iter_mut().filter(|step| finding.steps.contains(&step.name)) {
                let reasons = &mut step.targets[place].not_comparable;
                if voids && !reasons.iter().any(|known| known == why) {
                    reasons.push(why.to_owned());
                }
            }
            if !found.contains(&finding) {
                found.push(finding);
            }
        }
    }
    found.sort_by_key(|finding| finding.weight);
    found
}

/// True if `base` is the baseline's run of the same block, on the same DBMS.
fn is_base(base: &Run, run: &Run, label: &str) -> bool {
    let (one, other) = (&base.record, &run.record);
    one.key.label == label
        && base.result_set == run.result_set
        && (one.key.block, one.key.attempt) == (other.key.block, other.key.attempt)
        && one.target.dbms == other.target.dbms
        && one.seed == other.seed
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
