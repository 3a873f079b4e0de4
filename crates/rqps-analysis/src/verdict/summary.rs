//! Verdicts in short: counts, geometric means, the sentence for a reader in a hurry, the limits of
//! verdicts, and the steps that are still open.

use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::SQRT_2;

use serde::Serialize;

use super::{
    Explanation, FamilyFacts, MeanTest, SuiteMean, TargetVerdicts, VerdictCounts, VerdictSummary,
};
use crate::comparison::{Comparison, Relative, RunFacts, StepComparison, TargetResult};
use crate::pairing::{is_summarized, relative_rate};
use rqps_model::metric::Metric;
use rqps_model::units::counted;
use rqps_model::verdict::{LookSchedule, Rules, Verdict};
use rqps_stats::moderated::{Estimate, SD_MIN};
use rqps_stats::paired::mean_interval;
use rqps_stats::power::Looks;
use rqps_stats::summary::{mean, median, stddev};
use rqps_stats::{Interval, student};

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
    let (about, limit) = (estimand(comparison), limits_sentence(comparison, notes));
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
    let interval = mean.interval.filter(|_| repeated).map(Interval::exp);
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

// The limits of the verdicts on rates, in one sentence.

/// The smallest difference that could be found, on half of the steps and on the worst, and what was
/// found out about the host. Empty where no rate was compared.
fn limits_sentence(comparison: &Comparison, notes: &[String]) -> String {
    let rates: Vec<(&str, &Relative)> = comparison
        .measured_steps()
        .flat_map(|step| step.targets.iter().skip(1).map(|target| (step.name.as_str(), target)))
        .filter_map(|(step, target)| Some((step, target.relative(Metric::Rate)?)))
        .collect();
    let Some(most) = rates.iter().map(|(_, rate)| rate.pairs).max() else { return String::new() };
    let mut found: Vec<(f64, &str)> = rates
        .iter()
        .filter_map(|(step, rate)| Some((rate.judgement.as_ref()?.test.as_ref()?.mde, *step)))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shares: Vec<f64> = found.iter().map(|(mde, _)| *mde).collect();
    let (Some(half), Some((largest, worst))) = (median(&shares), found.last()) else {
        return untested(most).to_owned();
    };
    let steps = comparison.measured_steps().count();
    let alone = if steps > 1 { format!(" in one of {steps} steps") } else { String::new() };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let published = (0..comparison.targets.len()).any(|target| comparison.is_imported(target));
    let who = if published { "These results find" } else { "This host finds" };
    let mut text =
        format!("{who} differences of {} and more{alone} with {most} pairs", percent(half));
    if percent(*largest) != percent(half) {
        text.push_str(&format!(
            " (MDE, the median of {} ratios; the largest is {}, of {worst})",
            found.len(),
            percent(*largest)
        ));
    }
    for note in notes {
        text.push_str("; ");
        text.push_str(note);
    }
    text.push('.');
    text
}

fn untested(pairs: usize) -> &'static str {
    match pairs {
        0 => "No block measured both sides, so the scatter of ratios is unknown.",
        1 => "Each ratio comes from one pair, so the scatter of ratios is unknown.",
        _ => "No rate has two pairs above 0, so the scatter of ratios is unknown.",
    }
}

// Associated costs: cost metrics whose change accompanies a change of the rate.

/// The costs that were shown to be worse where the rate was shown to be slower, or better where it
/// was faster; the largest change first. A small change of a cost explains only a small one of the
/// rate.
pub(crate) fn explanations(target: &TargetResult) -> Vec<Explanation> {
    let verdict = |metric: Metric| {
        let relative = target.relative(metric)?;
        Some((relative, relative.judgement.as_ref()?))
    };
    let Some((_, rate)) = verdict(Metric::Rate) else { return Vec::new() };
    let mut costs: Vec<Metric> = Metric::which(|spec| spec.explains.is_some()).collect();
    costs.sort_by_key(|metric| metric.spec().explains);
    let mut found: Vec<Explanation> = costs
        .into_iter()
        .filter_map(|metric| {
            let (relative, judgement) = verdict(metric)?;
            let cost = judgement.verdict;
            let with = match rate.verdict {
                Verdict::Slower | Verdict::Faster => cost == rate.verdict,
                small => {
                    (small.is_worse() && cost.is_worse()) || (small.is_better() && cost.is_better())
                }
            };
            let interval = judgement.test.as_ref()?.interval;
            let (ratio, verdict) = (relative.ratio, cost);
            with.then_some(Explanation { metric, ratio, interval, verdict, detail: None })
        })
        .collect();
    found.sort_by(|a, b| b.ratio.ln().abs().total_cmp(&a.ratio.ln().abs()));
    found
}

// Selects the steps of a plan with `blocks = "auto"` that need more blocks.

/// A step that is not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenStep {
    /// Name of the step.
    pub step: String,
    /// Labels of the targets that it is open for.
    pub targets: Vec<String>,
    /// Pairs after which it will probably be settled: at least one more than there are, at most
    /// those of the schedule.
    pub pairs_needed: u32,
}

/// The steps that must be measured in the next block; empty when the plan is done. A step that is
/// settled for all targets, or has been looked at as often as the schedule allows, is not among
/// them.
///
/// The comparison must be over runs whose records carry the schedule ([`RunRecord::schedule`]):
/// then its verdicts are those of the looks.
///
/// [`RunRecord::schedule`]: rqps_model::run::RunRecord::schedule
pub fn open_steps(comparison: &Comparison, schedule: &LookSchedule) -> Vec<OpenStep> {
    let mut open = Vec::new();
    let looks = Looks::new(schedule.blocks_min, schedule.blocks_max);
    for step in comparison.measured_steps() {
        let mut targets = Vec::new();
        let mut needed = 0;
        for target in step.targets.iter().skip(1) {
            let relative = target.relative(Metric::Rate);
            let pairs = relative.map_or(0, |relative| relative.pairs as u32);
            let judgement = relative.and_then(|relative| relative.judgement.as_ref());
            let test = judgement.and_then(|judgement| judgement.test.as_ref());
            // More blocks do not make it comparable.
            let void = target.is_void(Metric::Rate);
            if test.is_some_and(|test| test.settled) || void || pairs >= schedule.blocks_max {
                continue;
            }
            let wanted = match test {
                Some(test) => {
                    let ends = [test.interval.low, test.interval.high];
                    let mean = ends.map(f64::ln).iter().sum::<f64>() / 2.0;
                    settled_at(
                        Estimate { mean, se: test.se, df: test.df },
                        pairs,
                        &comparison.rules,
                        &looks,
                    )
                }
                None => schedule.blocks_min.max(pairs + 1),
            };
            needed = needed.max(wanted);
            targets.push(target.label.clone());
        }
        if !targets.is_empty() {
            open.push(OpenStep { step: step.name.clone(), targets, pairs_needed: needed });
        }
    }
    open
}

/// Pairs after which a step is settled if its mean and its scatter stay as they are: those of the
/// last look if it never is.
fn settled_at(now: Estimate, pairs: u32, rules: &Rules, looks: &Looks) -> u32 {
    let Estimate { mean, se, df } = now;
    let layout = SQRT_2 * rules.layout_sd();
    let is_settled = |look: &u32| {
        let (df, of_now) = (df + f64::from(look - pairs), f64::from(pairs) / f64::from(*look));
        let se = se * of_now.sqrt();
        let shows = |distance: f64, se: f64, alpha: f64| {
            student::above(distance / se, df) <= looks.level(alpha, *look)
        };
        shows(mean.abs() - rules.least(), se.hypot(layout), rules.q / 2.0)
            || shows(rules.equivalence_limit() - mean.abs(), se, rules.equivalence_alpha)
    };
    (pairs + 1..looks.last()).find(is_settled).unwrap_or(looks.last())
}

// What verdicts are about: the builds, and how many loads, sittings and hosts stand for all others.

/// One sentence; empty for a baseline alone, and where others measured.
pub fn estimand(comparison: &Comparison) -> String {
    let targets = 0..comparison.targets.len();
    if targets.len() < 2 || targets.clone().any(|target| comparison.is_imported(target)) {
        return String::new();
    }
    let distinct = |get: fn(&RunFacts) -> &str| {
        comparison.runs.iter().map(get).collect::<BTreeSet<&str>>().len()
    };
    let hosts = distinct(|run| &run.host_fingerprint);
    let sittings = distinct(|run| &run.session);
    let loads = targets.map(|target| loads(comparison, target)).min().filter(|loads| *loads > 0);
    let class = comparison.hosts.values().next().map(|host| format!(" ({})", host.class()));
    let place = match hosts {
        0 | 1 => format!("this host{}", class.unwrap_or_default()),
        several => format!("these {several} hosts"),
    };
    let number = |count: usize, what: &str| match count {
        1 => format!("one {what}"),
        count => counted(count, what),
    };
    let mut basis: Vec<String> =
        loads.map(|loads| number(loads, "load") + " of each").into_iter().collect();
    basis.push(number(sittings, "sitting"));
    let mut others = vec![];
    if loads == Some(1) {
        others.push("load");
    }
    if sittings == 1 {
        others.push("sitting");
    }
    others.push("host");
    let others = match others.as_slice() {
        [rest @ .., last] if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => others.concat(),
    };
    format!(
        "These verdicts are about these builds on {place}: {}. Another {others} may give other \
         ratios.",
        basis.join(", ")
    )
}

/// The number of loads that blocks of a target started from; 0 if each block loads in a step.
fn loads(comparison: &Comparison, target: usize) -> usize {
    let runs = comparison.targets[target].runs.iter().map(|run| &comparison.runs[*run]);
    let loads = runs.filter_map(|run| Some((&run.result_set, &run.node, run.load?)));
    loads.collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_open_for_as_long_as_its_mean_and_scatter_leave_it_open() {
        let looks = Looks::new(4, 12);
        let check = |(mean, sd): (f64, f64), pairs: u32, want: u32| {
            let (se, df) = (sd / f64::from(pairs).sqrt(), f64::from(pairs - 1));
            let now = Estimate { mean, se, df };
            let found = settled_at(now, pairs, &Rules::default(), &looks);
            assert_eq!(found, want, "mean {mean}, sd {sd}, {pairs} pairs");
        };
        check((0.0, 0.01), 4, 5);
        check((0.0, 0.02), 4, 8);
        check((-0.1, 0.08), 4, 8);
        // As noisy as that, or so close to a limit: no look decides it.
        check((0.0, 0.1), 4, 12);
        check((0.015, 0.01), 6, 12);
        check((0.015, 0.01), 11, 12);
    }
}
