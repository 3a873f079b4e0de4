//! The gate with a history: `rqps gate DIR --history DIR…`.

use std::collections::BTreeSet;

use super::Comparison;
use super::allowance::allowance;
use super::finding::{Finding, Level, plain};
use super::history::Newest;
use rqps_model::metric::{Direction, Metric};
use rqps_model::verdict::{GateRules, Verdict};

/// Result sets beside a level that are named at most.
const BESIDE_MOST: usize = 6;

/// Findings of the steps that stand worse than the newest level of the history, or have none, and
/// how many were looked at. The p-values of `history` are adjusted over the job.
///
/// A step is a regression if its p against τ is at most α, and it is worse by δ or more.
pub(super) fn findings(
    comparison: &Comparison,
    history: &[(Metric, Newest)],
    accepted: &BTreeSet<String>,
    gate: &GateRules,
) -> (Vec<Finding>, usize) {
    let found = history.iter().filter_map(|(metric, newest)| {
        let finding = finding(comparison, newest, newest.p_worse, *metric, gate)?;
        Some(accept(finding, accepted))
    });
    (found.collect(), history.len())
}

/// A loss that somebody accepts tonight is no regression.
fn accept(finding: Finding, accepted: &BTreeSet<String>) -> Finding {
    if finding.level == Level::Regression && accepted.contains(&finding.step) {
        Finding {
            level: Level::Allowed,
            text: format!("accepted as the new level; {}", finding.text),
            ..finding
        }
    } else {
        finding
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
pub(super) fn notes(history: &[(Metric, Newest)], findings: &[Finding]) -> Vec<String> {
    let mut notes = Vec::new();
    for (metric, newest) in history {
        let (said, is_told) = (beside(newest), |finding: &Finding| {
            finding.target == newest.label
                && finding.text.contains("; not in it: ")
                && finding.step == newest.step
        });
        if !said.is_empty() && !findings.iter().any(is_told) {
            let (label, step, sets) = (&newest.label, &newest.step, newest.sets);
            notes.push(format!(
                "{label} {step} {}: the newest level of the history has {sets} result sets since \
                 {}{said}",
                metric.name(),
                newest.since
            ));
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
