//! Compares answers and data of each target with those of the baseline.

use std::collections::{BTreeSet, HashMap};

use super::finding::{AnswerFinding, AnswerWeight, Sides, Told};
use super::replies::{self, Asked};
use super::{tables, windows};
use crate::comparison::{StepComparison, TargetResult};
use rqps_model::answers::StepAnswers;
use rqps_model::run::{Dataset, Run};
use rqps_model::verdict::Rules;

/// Compares answers and data of each target with those of the baseline, and notes in the steps
/// which of them cannot be compared.
pub(crate) fn find(
    dataset: &Dataset,
    labels: &[String],
    rules: &Rules,
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
        of_target.extend(of_other_dbms(&bases, dataset, label));
        of_target.extend(of_windows(&pairs, &of_target, [&labels[0], label]));
        for finding in &of_target {
            note(
                finding,
                rules,
                steps.iter_mut().map(|step| (&step.name, &mut step.targets[place])),
            );
        }
        found.extend(of_target);
    }
    found.sort_by_key(|finding| finding.weight);
    found
}

/// Notes in the steps of a finding that they cannot be compared.
fn note<'a>(
    finding: &AnswerFinding,
    rules: &Rules,
    steps: impl Iterator<Item = (&'a String, &'a mut TargetResult)>,
) {
    let (voids, why) = match finding.weight {
        AnswerWeight::Data => (!rules.data_differ, "it reads data that differ from the baseline's"),
        AnswerWeight::Answer => (!rules.ignore_answers, "its answers differ from the baseline's"),
        AnswerWeight::Harmless | AnswerWeight::Uncompared => (false, ""),
    };
    for (_, step) in steps.filter(|(name, _)| voids && finding.steps.contains(name)) {
        let reasons = &mut step.not_comparable;
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

/// Says that answers of two DBMSs are not compared, where there are some.
fn of_other_dbms(
    bases: &HashMap<(&str, u32, u32), &Run>,
    dataset: &Dataset,
    label: &str,
) -> Option<AnswerFinding> {
    let of_target = dataset.runs.iter().filter(|run| run.record.key.label == label);
    let has_some = |run: &Run| {
        !run.record.tables.is_empty() || run.steps.iter().any(|step| step.answers.is_some())
    };
    let mut pairs = of_target.filter_map(|run| Some((*bases.get(&block_of(run))?, run)));
    let (base, run) = pairs.find(|(base, run)| {
        base.record.target.dbms != run.record.target.dbms && (has_some(base) || has_some(run))
    })?;
    let [one, other] = [base, run].map(|run| run.record.target.dbms.name());
    Some(AnswerFinding {
        weight: AnswerWeight::Uncompared,
        target: label.to_owned(),
        steps: Vec::new(),
        text: format!("answers and data of {other} are not compared with those of {one}"),
    })
}

/// Differences over the windows, in steps of which nothing else is known.
fn of_windows(
    pairs: &[(&Run, &Run)],
    known: &[AnswerFinding],
    labels: [&str; 2],
) -> Vec<AnswerFinding> {
    let is_told = |name: &String| {
        let told = [AnswerWeight::Data, AnswerWeight::Answer];
        let mut grave = known.iter().filter(|finding| told.contains(&finding.weight));
        grave.any(|finding| finding.steps.contains(name))
    };
    let first = pairs.first().map_or(&[][..], |(base, _)| &base.steps);
    let new = first.iter().filter(|step| step.index > 0 && step.reported && !is_told(&step.name));
    new.filter_map(|step| {
        let Told { weight, text } = windows::compare(pairs, step.index, labels)?;
        let (target, steps) = (labels[1].to_owned(), vec![step.name.clone()]);
        Some(AnswerFinding { weight, target, steps, text })
    })
    .collect()
}

fn of_pair(base: &Run, run: &Run) -> Vec<AnswerFinding> {
    let dialect = run.record.target.dbms.dialect();
    let labels = [base.record.key.label.as_str(), run.record.key.label.as_str()];
    let runs = Sides { base, target: run, labels };
    let finding = |told: Told, steps: Vec<String>| AnswerFinding {
        weight: told.weight,
        target: labels[1].to_owned(),
        steps,
        text: told.text,
    };
    let mut found = Vec::new();
    let (mut of_other_data, mut of_own_values) = (BTreeSet::new(), BTreeSet::new());
    for (name, told) in tables::compare(&runs) {
        let reads = run
            .steps
            .iter()
            .filter(|step| step.answers.as_ref().is_none_or(|answers| names(answers, &name)));
        let steps: Vec<String> = reads.map(|step| step.name.clone()).collect();
        if told.weight == AnswerWeight::Data {
            of_other_data.extend(steps.iter().cloned());
        } else if told.weight == AnswerWeight::Harmless {
            of_own_values.extend(steps.iter().cloned());
        }
        found.push(finding(told, steps));
    }
    for step in run.steps.iter().filter(|step| !of_other_data.contains(&step.name)) {
        let same = base.steps.iter().find(|base| base.index == step.index);
        let pair = (same.and_then(|base| base.answers.as_ref()), step.answers.as_ref());
        if let (Some(one), Some(other)) = pair {
            let own_values = of_own_values.contains(&step.name);
            let asked = Asked { dialect, own_values, is_changed: false };
            let sides = runs.with(one, other);
            let mut told = replies::compare(&sides, &asked);
            if told.iter().all(|told| told.weight != AnswerWeight::Answer)
                && let Some((one, other)) = after(base, run, step.index)
            {
                let mut steps = base.steps.iter().chain(&run.steps);
                let is_changed = steps.any(|step| step.index > 0 && windows::writes(step));
                let of_end = Asked { is_changed, ..asked };
                let after = replies::compare(&runs.with(one, other), &of_end).into_iter();
                told.extend(
                    after.filter(|told| told.weight == AnswerWeight::Answer).map(|told| Told {
                        text: format!("after the block: {}", told.text),
                        ..told
                    }),
                );
            }
            found.extend(told.into_iter().map(|told| finding(told, vec![step.name.clone()])));
        }
    }
    found
}

/// The answers of both to a step at the end of the block; `None` if both are those of its
/// beginning.
fn after<'a>(
    base: &'a Run,
    run: &'a Run,
    index: u32,
) -> Option<(&'a StepAnswers, &'a StepAnswers)> {
    let ends = [base, run].map(|run| run.record.answers_after.get(&index));
    let of = |run: &'a Run, end: Option<&'a StepAnswers>| {
        let step = run.steps.iter().find(|step| step.index == index)?;
        end.or(step.answers.as_ref())
    };
    ends.iter().any(Option::is_some).then_some(())?;
    Some((of(base, ends[0])?, of(run, ends[1])?))
}

/// True if a statement names a table, or nothing is known of the statements.
fn names(answers: &StepAnswers, table: &str) -> bool {
    let name = table.rsplit('.').next().unwrap_or(table).to_ascii_uppercase();
    let holds = |sql: &String| sql.to_ascii_uppercase().contains(&name);
    answers.statements.is_empty() || answers.statements.iter().any(holds)
}
