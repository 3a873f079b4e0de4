//! A plan that was repeated: the same verdicts, and which ratios differ beyond their intervals.

use serde::Serialize;

use super::comparison::{Comparison, Relative, StepComparison, TargetResult, number_or_inf};
use rqps_model::build::Manifest;
use rqps_model::metric::Metric;
use rqps_model::verdict::Verdict;
use rqps_stats::moderated::{Estimate, benjamini_hochberg};
use rqps_stats::{Interval, paired};

/// A repetition and what was repeated.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Repetition {
    /// Label of the baseline.
    #[serde(rename = "base")]
    pub baseline: String,
    /// Targets whose builds are not those of the first measurement.
    pub other_builds: Vec<OtherBuild>,
    /// All targets but the baseline.
    pub targets: Vec<RepeatedTarget>,
    /// A ratio differs if its q is at most this.
    pub q: f64,
}

/// A target that was measured with another build.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OtherBuild {
    /// The target.
    pub label: String,
    /// Its builds the first time.
    pub first: Vec<Manifest>,
    /// Its builds in the repetition.
    pub second: Vec<Manifest>,
}

/// One target, measured twice.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepeatedTarget {
    /// Its label.
    pub label: String,
    /// Steps that both have, in the order of the first.
    pub steps: Vec<RepeatedStep>,
    /// Steps that only the first has.
    pub not_repeated: Vec<String>,
    /// Steps that only the repetition has.
    pub new: Vec<String>,
}

/// One step of a target, measured twice: its relative rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepeatedStep {
    /// The step.
    pub step: String,
    /// The first measurement.
    pub first: RepeatedRatio,
    /// The repetition.
    pub second: RepeatedRatio,
    /// The agreement of the verdicts.
    pub agreement: Agreement,
    /// Second / first; `None` if either has no standard error, as with a single pair.
    pub change: Option<RatioChange>,
}

/// A relative rate and its verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RepeatedRatio {
    /// Target / baseline.
    #[serde(serialize_with = "number_or_inf")]
    pub ratio: f64,
    /// Its interval: that of the verdict where there is one.
    pub interval: Option<Interval>,
    /// Pairs.
    pub pairs: usize,
    /// The verdict.
    pub verdict: Verdict,
}

/// The agreement of two verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The same word.
    Same,
    /// Other words that can both be true: SLOWER and SLOWER-SMALL, SAME and a small difference.
    Compatible,
    /// One of them is INCONCLUSIVE or NO VERDICT.
    Undecided,
    /// They cannot both be true: SLOWER and FASTER, SLOWER and SAME.
    Contrary,
}

impl Agreement {
    /// In the order of reports.
    pub const ALL: [Agreement; 4] =
        [Agreement::Same, Agreement::Compatible, Agreement::Undecided, Agreement::Contrary];

    /// The agreement of two verdicts.
    pub fn of(first: Verdict, second: Verdict) -> Agreement {
        let open = |verdict| matches!(verdict, Verdict::Inconclusive | Verdict::NoVerdict);
        let small = |verdict| matches!(verdict, Verdict::SlowerSmall | Verdict::FasterSmall);
        let same = |verdict| verdict == Verdict::Same;
        if first == second {
            Agreement::Same
        } else if open(first) || open(second) {
            Agreement::Undecided
        } else if (first.is_worse() && second.is_worse())
            || (first.is_better() && second.is_better())
            || (same(first) && small(second))
            || (small(first) && same(second))
        {
            Agreement::Compatible
        } else {
            Agreement::Contrary
        }
    }
}

/// The second ratio divided by the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioChange {
    /// Second / first.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Interval,
    /// Probability of as large a change where there is none.
    pub p: f64,
    /// `p`, adjusted over the steps of the target by Benjamini-Hochberg.
    pub q: f64,
    /// Degrees of freedom.
    #[serde(serialize_with = "number_or_inf")]
    pub df: f64,
    /// True if `q` is at most that of the rules.
    pub differs: bool,
}

impl RepeatedTarget {
    /// Steps whose verdicts agree in this way.
    pub fn agreeing(&self, how: Agreement) -> usize {
        self.steps.iter().filter(|step| step.agreement == how).count()
    }

    /// Steps whose ratios differ beyond their intervals.
    pub fn differing(&self) -> impl Iterator<Item = &RepeatedStep> {
        self.steps.iter().filter(|step| step.change.is_some_and(|change| change.differs))
    }
}

/// Compares a repetition with the first measurement, target by target and step by step.
///
/// The change of a ratio is the difference of two independent means of ln ratios, each with the
/// standard error and the degrees of freedom that its verdict rests on (`stats::welch`).
pub fn repeated(first: &Comparison, second: &Comparison) -> Repetition {
    let labels = first.targets.iter().map(|target| &target.label);
    let others = labels.filter(|label| **label != first.baseline);
    let q = first.rules.q;
    Repetition {
        baseline: first.baseline.clone(),
        other_builds: other_builds(first, second),
        targets: others.map(|label| repeated_target(label, first, second)).collect(),
        q,
    }
}

fn other_builds(first: &Comparison, second: &Comparison) -> Vec<OtherBuild> {
    let mut found = Vec::new();
    for target in &first.targets {
        let again = second.targets.iter().find(|other| other.label == target.label);
        let Some(again) = again.filter(|again| !again.manifests.is_empty()) else { continue };
        let sums = |builds: &[Manifest]| -> Vec<_> {
            builds.iter().map(|build| (build.sha256.clone(), build.reported.clone())).collect()
        };
        if sums(&target.manifests) != sums(&again.manifests) {
            found.push(OtherBuild {
                label: target.label.clone(),
                first: target.manifests.clone(),
                second: again.manifests.clone(),
            });
        }
    }
    found
}

fn repeated_target(label: &str, first: &Comparison, second: &Comparison) -> RepeatedTarget {
    let of_step = |comparison: &'_ Comparison, name: &str| -> Option<Relative> {
        let step = comparison.steps.iter().find(|step| step.name == name)?;
        let target = step.targets.iter().find(|target| target.label == label)?;
        rate(target).cloned()
    };
    let mut found = RepeatedTarget {
        label: label.to_owned(),
        steps: Vec::new(),
        not_repeated: Vec::new(),
        new: Vec::new(),
    };
    for step in &first.steps {
        match (of_step(first, &step.name), of_step(second, &step.name)) {
            (Some(before), Some(after)) => {
                found.steps.push(repeated_step(&step.name, &before, &after, first));
            }
            (Some(_), None) => found.not_repeated.push(step.name.clone()),
            (None, Some(_)) => found.new.push(step.name.clone()),
            (None, None) => {}
        }
    }
    let is_new = |step: &&StepComparison| !first.steps.iter().any(|known| known.name == step.name);
    let new = second.steps.iter().filter(is_new);
    found.new.extend(
        new.filter(|step| of_step(second, &step.name).is_some()).map(|step| step.name.clone()),
    );
    adjust(&mut found.steps, first.rules.q);
    found
}

/// The relative rate of a target that was measured in pairs.
fn rate(target: &TargetResult) -> Option<&Relative> {
    target.comparable(Metric::Rate).filter(|relative| relative.pairs > 0)
}

fn repeated_step(
    step: &str,
    first: &Relative,
    second: &Relative,
    comparison: &Comparison,
) -> RepeatedStep {
    let ratio = |relative: &Relative| RepeatedRatio {
        ratio: relative.ratio,
        interval: relative.shown_interval(),
        pairs: relative.pairs,
        verdict: relative.judgement.as_ref().map_or(Verdict::NoVerdict, |it| it.verdict),
    };
    let (before, after) = (ratio(first), ratio(second));
    let change = estimate(first).zip(estimate(second)).and_then(|(first, second)| {
        paired::difference_of_means(first, second, comparison.rules.confidence)
    });
    let change = change.map(|change| RatioChange {
        ratio: change.value.exp(),
        interval: change.interval.exp(),
        p: change.p,
        q: change.p,
        df: change.df,
        differs: false,
    });
    let agreement = Agreement::of(before.verdict, after.verdict);
    RepeatedStep { step: step.to_owned(), first: before, second: after, agreement, change }
}

/// The values that a verdict uses.
fn estimate(relative: &Relative) -> Option<Estimate> {
    let test = relative.test()?;
    Some(Estimate { mean: relative.ratio.ln(), se: test.se, df: test.df })
}

/// Adjusts p over the steps of a target.
fn adjust(steps: &mut [RepeatedStep], q_max: f64) {
    let mut changes: Vec<&mut RatioChange> =
        steps.iter_mut().filter_map(|step| step.change.as_mut()).collect();
    let p: Vec<f64> = changes.iter().map(|change| change.p).collect();
    for (change, q) in changes.iter_mut().zip(benjamini_hochberg(&p)) {
        change.q = q;
        change.differs = q <= q_max;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_agree_or_not() {
        use Verdict::*;
        let check = |first, second, expected| {
            assert_eq!(Agreement::of(first, second), expected, "{first:?} {second:?}");
            assert_eq!(Agreement::of(second, first), expected, "{second:?} {first:?}");
        };
        check(Slower, Slower, Agreement::Same);
        check(NoVerdict, NoVerdict, Agreement::Same);
        check(Slower, SlowerSmall, Agreement::Compatible);
        check(Same, SlowerSmall, Agreement::Compatible);
        check(Same, Inconclusive, Agreement::Undecided);
        check(NoVerdict, Inconclusive, Agreement::Undecided);
        check(Slower, Same, Agreement::Contrary);
        check(Slower, Faster, Agreement::Contrary);
        check(SlowerSmall, FasterSmall, Agreement::Contrary);
    }
}
