//! Verdicts in short: counts, geometric means, and the sentence for a reader in a hurry.

use std::collections::BTreeMap;

use super::judgement::{
    FamilyFacts, MeanTest, SuiteMean, TargetVerdicts, VerdictCounts, VerdictSummary,
};
use super::limit;
use crate::comparison::{Comparison, Relative, StepComparison};
use crate::estimand;
use crate::groups::{is_summarized, relative_rate};
use rqps_model::metric::Metric;
use rqps_model::verdict::{Rules, Verdict};
use rqps_stats::Interval;
use rqps_stats::moderated::{Estimate, SD_MIN};
use rqps_stats::paired::mean_interval;
use rqps_stats::summary::{mean, stddev};

/// Up to this many targets, a sentence holds the geometric mean of each.
const MEANS_MAX: usize = 5;

/// The verdicts on all targets but the base. `families` are those of each target, `notes` what was
/// found out about the host, which may widen the errors of rates.
pub(crate) fn summarize(
    comparison: &Comparison,
    families: Vec<BTreeMap<Metric, FamilyFacts>>,
    (notes, widened): (&[String], bool),
) -> VerdictSummary {
    let (steps, rules) = (&comparison.steps, &comparison.rules);
    let mut targets = Vec::new();
    for (index, metrics) in families.into_iter().enumerate() {
        let counts = metrics.get(&Metric::Rate).map(|facts| facts.counts).unwrap_or_default();
        let mut geomean = geomean(steps, index + 1, rules);
        // The scatter of the blocks alone does not show what the host adds.
        geomean.iter_mut().filter(|_| widened).for_each(|mean| mean.test = None);
        let worst = worst(steps, index + 1);
        targets.push(TargetVerdicts {
            label: comparison.targets[index + 1].label.clone(),
            sentence: sentence((counts, all_within(steps, index + 1)), worst, geomean, rules),
            boring: is_boring(counts),
            metrics,
            geomean,
        });
    }
    let boring = !targets.is_empty() && targets.iter().all(|target| target.boring);
    let sentence = match targets.as_slice() {
        [] => String::new(),
        [one] => format!("{}: {}", one.label, one.sentence),
        many if boring => {
            format!("Boring: all {} targets are the same as the baseline.", many.len())
        }
        many => together(many),
    };
    let (about, limit) = (estimand::line(comparison), limit::sentence(comparison, notes));
    VerdictSummary { sentence, about, limit, boring, targets }
}

/// True if every step has a verdict and all are SAME.
fn is_boring(counts: VerdictCounts) -> bool {
    counts.total() > 0 && counts.same == counts.total()
}

/// True if each rate is shown to differ by less than δ, so that all of them do (an
/// intersection-union test: no correction for their number).
fn all_within(steps: &[StepComparison], target: usize) -> bool {
    let rates = steps.iter().filter_map(|step| step.targets[target].relative(Metric::Rate));
    let mut tests = rates.map(|rate| rate.judgement.as_ref()?.test.as_ref());
    tests.all(|test| test.is_some_and(|test| test.equivalent))
}

/// The step with the largest loss that counts: its name and ratio.
fn worst(steps: &[StepComparison], target: usize) -> Option<(&str, f64)> {
    let slower = steps.iter().filter_map(|step| {
        let relative = step.targets[target].relative(Metric::Rate)?;
        let verdict = relative.judgement.as_ref()?.verdict;
        (verdict == Verdict::Slower).then_some((step.name.as_str(), relative.ratio))
    });
    slower.min_by(|a, b| a.1.total_cmp(&b.1))
}

fn sentence(
    (counts, within_delta): (VerdictCounts, bool),
    worst: Option<(&str, f64)>,
    geomean: Option<SuiteMean>,
    rules: &Rules,
) -> String {
    let total = counts.total();
    let within = format!("{} %", trimmed(100.0 * rules.delta));
    if total == 0 {
        return "no step was measured on both.".to_owned();
    }
    if is_boring(counts) {
        return match total {
            1 => format!("boring: the only step is the same within {within}."),
            _ => format!("boring: all {total} steps are the same within {within}."),
        };
    }
    let mut parts: Vec<String> = Vec::new();
    for verdict in Verdict::ALL {
        let count = counts.of(verdict);
        if count > 0 {
            let worst = worst.filter(|_| verdict == Verdict::Slower);
            let name = worst.map(|(step, ratio)| match count {
                1 => format!(" ({step} {ratio:.3})"),
                _ => format!(" (worst: {step} {ratio:.3})"),
            });
            parts.push(format!("{count} {}{}", verdict.name(), name.unwrap_or_default()));
        }
    }
    let steps = if total == 1 { "step" } else { "steps" };
    if counts.no_verdict == total {
        let mean = geomean.map(|mean| format!("; geometric mean of rQPS {:.3}", mean.ratio));
        return format!("no verdict on any of {total} {steps}{}.", mean.unwrap_or_default());
    }
    let head = match (counts.slower, counts.faster) {
        (0, 0) if within_delta => format!("no difference of {within} or more; "),
        (0, 0) => format!("no difference of {within} or more demonstrated; "),
        _ => String::new(),
    };
    format!("{head}of {total} {steps} {}.", parts.join(", "))
}

/// Over several targets: which are slower somewhere, which are not.
fn together(targets: &[TargetVerdicts]) -> String {
    let rate = |target: &TargetVerdicts| {
        target.metrics.get(&Metric::Rate).map(|facts| facts.counts).unwrap_or_default()
    };
    let slower: Vec<String> = targets
        .iter()
        .filter(|target| rate(target).slower > 0)
        .map(|target| {
            format!("{} ({} of {})", target.label, rate(target).slower, rate(target).total())
        })
        .collect();
    let boring = targets.iter().filter(|target| target.boring).count();
    let open: usize = targets.iter().map(|t| rate(t).inconclusive + rate(t).no_verdict).sum();
    if targets.iter().all(|target| rate(target).no_verdict == rate(target).total()) {
        return format!("No verdict on any of {} targets{}.", targets.len(), means(targets));
    }
    let mut sentence = match slower.len() {
        0 => format!("None of {} targets is demonstrably slower", targets.len()),
        n => format!("{n} of {} targets slower: {}", targets.len(), slower.join(", ")),
    };
    if boring > 0 {
        sentence.push_str(&format!("; {boring} boring"));
    }
    if open > 0 {
        sentence.push_str(&format!("; rates without a clear verdict: {open}"));
    }
    sentence.push('.');
    sentence
}

/// The geometric means where there is nothing else to say; of many targets a table has them.
fn means(targets: &[TargetVerdicts]) -> String {
    let of =
        |target: &TargetVerdicts| Some(format!("{} {:.3}", target.label, target.geomean?.ratio));
    let means: Vec<String> = targets.iter().filter_map(of).collect();
    match means.len() {
        1..=MEANS_MAX => format!("; geometric mean of rQPS: {}", means.join(", ")),
        _ => String::new(),
    }
}

/// exp of the mean ln ratio of the rates, with the t interval over steps. Only comparable steps
/// with a positive ratio count, and only those that group summaries count. Steps of one pair give
/// no interval: an interval over steps would look like evidence.
fn geomean(steps: &[StepComparison], target: usize, rules: &Rules) -> Option<SuiteMean> {
    let counted: Vec<&Relative> = steps
        .iter()
        .filter(|step| is_summarized(step))
        .filter_map(|step| relative_rate(step, target))
        .filter(|relative| relative.ratio.ln().is_finite())
        .collect();
    let logs: Vec<f64> = counted.iter().map(|relative| relative.ratio.ln()).collect();
    let mean = mean_interval(&logs, rules.confidence)?;
    let repeated = counted.iter().all(|relative| relative.pairs > 1);
    let interval = mean
        .interval
        .filter(|_| repeated)
        .map(|interval| Interval { low: interval.low.exp(), high: interval.high.exp() });
    let ratio = match counted.as_slice() {
        [one] => one.ratio,
        _ => mean.mean.exp(),
    };
    Some(SuiteMean { ratio, interval, steps: mean.n, test: mean_test(&counted, rules) })
}

/// The test of the mean of these steps, which have different layouts. A suite of steps counts from
/// half of δ on.
fn mean_test(steps: &[&Relative], rules: &Rules) -> Option<MeanTest> {
    let first = steps.first()?;
    let alike =
        |it: &&Relative| it.blocks == first.blocks && it.evidence().len() == first.evidence().len();
    let blocks = first.evidence().len();
    if blocks < 2 || !steps.iter().all(alike) {
        return None;
    }
    let count = steps.len() as f64;
    let of_block = |block| steps.iter().map(|it| it.evidence()[block]).sum::<f64>() / count;
    let means: Vec<f64> = (0..blocks).map(of_block).collect();
    let sd = stddev(&means).filter(|sd| *sd >= SD_MIN)?;
    let se = sd / (blocks as f64).sqrt();
    let estimate = Estimate { mean: mean(&means), se, df: (blocks - 1) as f64 };
    let layout = std::f64::consts::SQRT_2 * rules.layout_sd() / count.sqrt();
    let p_treat = estimate
        .with_error(layout)
        .p_beyond(rules.equivalence_limit() / 2.0)
        .max(estimate.p_beyond(0.0));
    Some(MeanTest { blocks, interval: estimate.interval(rules.confidence).exp(), p_treat })
}

fn trimmed(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
