//! What decides the job of a gate: its history, losses that are allowed, and everything that can
//! fail it, with p-values adjusted over all of it, so that α is
//! the probability that equal builds fail it.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::{Comparison, Relative, StepComparison};
use super::gate::{Finding, Level, plain};
use super::history::{Newest, PastSets, against_newest};
use rqps_model::metric::{Direction, Metric};
use rqps_model::verdict::{Allowance, GateRules, Rules, Verdict};
use rqps_stats::moderated::{Estimate, holm};

/// What can fail a job. All p-values are adjusted by Holm.
pub(super) struct Job<'a> {
    /// The metrics that can.
    pub(super) metrics: &'a [Metric],
    /// By place of the target, place of the step, and metric.
    pub(super) steps: BTreeMap<(usize, usize, Metric), f64>,
    /// The geometric mean, by place of the target.
    pub(super) suites: BTreeMap<usize, f64>,
    /// The newest levels of the history.
    pub(super) history: Vec<(Metric, Newest)>,
    /// Counted instructions.
    pub(super) instructions: Vec<CountedStep<'a>>,
}

/// A step whose instructions were counted on both sides.
pub(super) struct CountedStep<'a> {
    target: &'a str,
    step: &'a str,
    relative: &'a Relative,
    /// p of no more than the allowed share.
    p: f64,
}

impl<'a> Job<'a> {
    /// # Errors
    /// A limit on instructions that were not counted.
    pub(super) fn of(
        comparison: &'a Comparison,
        past: Option<&PastSets>,
        metrics: &'a [Metric],
        gate: &GateRules,
    ) -> Result<Job<'a>, String> {
        let newest = |&metric: &Metric| {
            let all = past.map(|past| against_newest(comparison, past, metric, &comparison.rules));
            all.unwrap_or_default().into_iter().map(move |newest| (metric, newest))
        };
        let targets = comparison.summary.targets.iter().enumerate();
        let of_mean =
            targets.filter_map(|(at, facts)| Some((at + 1, facts.geomean?.test?.p_treat)));
        let mut job = Job {
            metrics,
            steps: of_steps(comparison, metrics),
            suites: of_mean.filter(|_| metrics.contains(&Metric::Rate)).collect(),
            history: metrics.iter().flat_map(newest).collect(),
            instructions: match gate.instructions {
                Some(share) => of_instructions(comparison, share)?,
                None => Vec::new(),
            },
        };
        job.adjust();
        Ok(job)
    }

    fn adjust(&mut self) {
        let history = self.history.iter_mut().filter_map(|(_, newest)| newest.p_worse.as_mut());
        let of_counts = self.instructions.iter_mut().map(|count| &mut count.p);
        let of_means = self.suites.values_mut();
        let mut all: Vec<&mut f64> =
            self.steps.values_mut().chain(of_means).chain(history).chain(of_counts).collect();
        let p: Vec<f64> = all.iter().map(|p| **p).collect();
        all.iter_mut().zip(holm(&p)).for_each(|(p, adjusted)| **p = adjusted);
    }
}

fn of_steps(comparison: &Comparison, metrics: &[Metric]) -> BTreeMap<(usize, usize, Metric), f64> {
    let mut found = BTreeMap::new();
    for (place, step) in comparison.steps.iter().enumerate() {
        for (target, result) in step.targets.iter().enumerate().skip(1) {
            for &metric in metrics {
                let judgement = result.relative(metric).and_then(|it| it.judgement.as_ref());
                if let Some(test) = judgement.and_then(|judgement| judgement.test.as_ref()) {
                    found.insert((target, place, metric), test.p_treat);
                }
            }
        }
    }
    found
}

fn of_instructions(comparison: &Comparison, share: f64) -> Result<Vec<CountedStep<'_>>, String> {
    let counts = comparison.counts.as_deref().unwrap_or(comparison);
    let mut found = Vec::new();
    for step in &counts.steps {
        for target in step.targets.iter().skip(1) {
            let Some(relative) = target.comparable(Metric::InstructionsPerOp) else { continue };
            let mean = relative.ratio.ln();
            let p = relative.sd_ln.map_or(1.0, |sd| {
                let n = relative.pairs as f64;
                let estimate = Estimate { mean, se: sd / n.sqrt(), df: n - 1.0 };
                if mean > 0.0 { estimate.tails_beyond(share.ln_1p()).0 } else { 1.0 }
            });
            found.push(CountedStep { target: &target.label, step: &step.name, relative, p });
        }
    }
    if found.is_empty() {
        let fault = "no counted instructions in these results; measure them with `rqps compare \
                     --count`";
        return Err(fault.to_owned());
    }
    Ok(found)
}

impl CountedStep<'_> {
    /// The regression, if it is one.
    pub(super) fn finding(&self, rules: &Rules) -> Option<Finding> {
        let text = "it executes more instructions per operation, which tells nothing of its rate";
        (self.p <= rules.alpha).then(|| Finding {
            metric: Some(Metric::InstructionsPerOp),
            verdict: "MORE".to_owned(),
            ratio: Some(self.relative.ratio),
            interval: self.relative.interval,
            pairs: self.relative.pairs,
            holm: Some(self.p),
            ..plain(Level::Regression, self.target, self.step, text.to_owned())
        })
    }
}

// The gate with a history: `rqps gate DIR --history DIR…`.

/// Result sets beside a level that are named at most.
const BESIDE_MOST: usize = 6;

/// Findings of the steps that stand worse than the newest level of the history, or have none, and
/// how many were looked at. The p-values of `history` are adjusted over the job.
///
/// A step is a regression if its p against τ is at most α, and it is worse by δ or more.
pub(super) fn history_findings(
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
pub(super) fn history_notes(history: &[(Metric, Newest)], findings: &[Finding]) -> Vec<String> {
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

// Losses that the rules of a gate accept.

/// The loss that the rules accept for a metric of a step, if they do.
pub(super) fn allowance<'a>(
    gate: &'a GateRules,
    step: &StepComparison,
    label: &str,
    metric: Metric,
) -> Option<&'a Allowance> {
    let of_all_counts = step.client_count.as_ref().map(|count| count.step.as_str());
    gate.allow.iter().find(|allowance| {
        let of_target = allowance.target.as_ref().is_none_or(|glob| matches(glob, label));
        let of_metric = allowance
            .metric
            .as_deref()
            .is_none_or(|word| rqps_model::verdict::metric(word) == Ok(metric));
        let of_step = [Some(step.name.as_str()), of_all_counts]
            .into_iter()
            .flatten()
            .any(|name| matches(&allowance.step, name));
        of_target && of_metric && of_step
    })
}

pub(super) fn allowed(allowance: &Allowance) -> String {
    let reason = if allowance.reason.is_empty() { "" } else { ": " };
    format!("allowed up to {} %{reason}{}", 100.0 * allowance.delta, allowance.reason)
}

/// A pattern in which `*` stands for any characters and `?` for one.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // fits[n]: the pattern so far fits the first n characters.
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    for wanted in pattern {
        let before = fits.clone();
        for n in 0..=name.len() {
            fits[n] = match wanted {
                '*' => before[n] || (n > 0 && fits[n - 1]),
                _ => n > 0 && before[n - 1] && (wanted == '?' || wanted == name[n - 1]),
            };
        }
    }
    fits[name.len()]
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("scan", "scan", true),
            ("scan", "scan-2", false),
            ("read-only*=10?", "read-only.pre_range=100", true),
            ("read-only*=10?", "read-only.pre_range=10", false),
            ("*pre*", "read-only.pre_range", true),
            ("?", "", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
