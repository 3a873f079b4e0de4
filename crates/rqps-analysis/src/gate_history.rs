//! The gate with a history: `rqps gate DIR --history DIR…`.

use std::collections::BTreeSet;

use super::Comparison;
use super::allowance::allowance;
use super::finding::{Finding, Level, plain};
use super::history::{Newest, PastSets, against_newest};
use rqps_model::metric::{Direction, Metric};
use rqps_model::verdict::{GateRules, Verdict};
use rqps_stats::multiple::holm;

/// Result sets beside a level that are named at most.
const BESIDE_MOST: usize = 6;

/// Findings of the steps that stand worse than the newest level of the history, or have none, and
/// how many were looked at.
///
/// A step is a regression if its p against τ, adjusted by Holm over the steps of one target and
/// metric, is at most α, and it is worse by δ or more.
pub(super) fn findings(
    comparison: &Comparison,
    past: &PastSets,
    accepted: &BTreeSet<String>,
    metrics: &[Metric],
    gate: &GateRules,
) -> (Vec<Finding>, usize) {
    let (mut found, mut looked) = (Vec::new(), 0);
    for &metric in metrics {
        let all = against_newest(comparison, past, metric, &comparison.rules);
        looked += all.len();
        for target in &comparison.targets {
            let own: Vec<&Newest> = all.iter().filter(|one| one.label == target.label).collect();
            let tested: Vec<f64> = own.iter().filter_map(|one| one.p_worse).collect();
            let mut adjusted = holm(&tested).into_iter();
            for newest in own {
                let holm = newest.p_worse.and_then(|_| adjusted.next());
                let finding = finding(comparison, newest, holm, metric, gate);
                found.extend(finding.map(|finding| accept(finding, accepted)));
            }
        }
    }
    (found, looked)
}

/// A loss that somebody accepts tonight is no regression.
fn accept(finding: Finding, accepted: &BTreeSet<String>) -> Finding {
    match finding.level == Level::Regression && accepted.contains(&finding.step) {
        true => Finding {
            level: Level::Allowed,
            text: format!("accepted as the new level; {}", finding.text),
            ..finding
        },
        false => finding,
    }
}

/// `; set aside: 2026-01-09 (x0.400)`; empty if nothing is.
fn beside(newest: &Newest) -> String {
    let sets = newest.beside.iter().map(|(date, ratio)| {
        let day = date.split_once('T').map_or(date.as_str(), |(day, _)| day);
        format!("{day} (x{ratio:.3})")
    });
    let sets: Vec<String> = sets.collect();
    let more = match sets.len().saturating_sub(BESIDE_MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = sets[..sets.len().min(BESIDE_MOST)].join(", ");
    if sets.is_empty() { String::new() } else { format!("; not in it: {first}{more}") }
}

/// Outliers of the history, and nights that are off its level, for each step without a finding.
pub(super) fn notes(
    comparison: &Comparison,
    past: &PastSets,
    metrics: &[Metric],
    findings: &[Finding],
) -> Vec<String> {
    let mut notes = Vec::new();
    for &metric in metrics {
        for newest in against_newest(comparison, past, metric, &comparison.rules) {
            let (said, is_told) = (beside(&newest), |finding: &Finding| {
                finding.target == newest.label
                    && finding.text.contains("; not in it: ")
                    && finding.step == newest.step
            });
            if !said.is_empty() && !findings.iter().any(is_told) {
                let (label, step, sets) = (&newest.label, &newest.step, newest.sets);
                notes.push(format!(
                    "{label} {step} {}: the newest level of the history has {sets} result sets \
                     since {}{said}",
                    metric.name(),
                    newest.since
                ));
            }
        }
    }
    notes
}

fn finding(
    comparison: &Comparison,
    newest: &Newest,
    holm: Option<f64>,
    metric: Metric,
    gate: &GateRules,
) -> Option<Finding> {
    let rules = &comparison.rules;
    let Some(p) = holm else {
        let finding = plain(Level::Unclear, &newest.label, &newest.step, newest.why_open());
        return Some(Finding { metric: Some(metric), pairs: newest.sets, ..finding });
    };
    let loss = match metric.better() {
        Direction::Lower => newest.ratio - 1.0,
        Direction::Higher => 1.0 - newest.ratio,
        Direction::Neither => return None,
    };
    if p > rules.alpha || loss < rules.delta {
        return None;
    }
    let step = comparison.steps.iter().find(|step| step.name == newest.step)?;
    let allowance = allowance(gate, step, &newest.label, metric);
    let allowance = allowance.filter(|allowance| loss < allowance.delta);
    let relative = if newest.is_relative { ", each divided by its baseline" } else { "" };
    let text = format!(
        "beside the newest level of the history: {} result sets since {}{relative}{}",
        newest.sets,
        newest.since,
        beside(newest)
    );
    let level = if allowance.is_some() { Level::Allowed } else { Level::Regression };
    Some(Finding {
        metric: Some(metric),
        verdict: Verdict::Slower.word(metric).to_owned(),
        ratio: Some(newest.ratio),
        interval: newest.interval,
        pairs: newest.sets,
        holm: Some(p),
        ..plain(level, &newest.label, &newest.step, text)
    })
}
