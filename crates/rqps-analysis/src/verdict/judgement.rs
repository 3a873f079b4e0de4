//! Judgements of ratios, as data.

use std::collections::BTreeMap;

use serde::Serialize;

use super::member::Kind;
use crate::number::number_or_inf;
use rqps_model::metric::Metric;
use rqps_model::verdict::{Rules, Verdict};
use rqps_stats::Interval;

/// From this many steps on, reports name a common reason for a missing verdict once.
pub const TOLD_TOGETHER: usize = 4;

/// The verdict on one ratio and its evidence.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The figures behind it; `None` where there was nothing to test: fewer than two pairs, or a
    /// value of 0.
    pub test: Option<Test>,
    /// Pairs at which a difference of δ is found with the power of the rules. Only for
    /// INCONCLUSIVE, and only where that is more than there are.
    pub pairs_needed: Option<u32>,
    /// Reasons for the reader: why there is no verdict, or what makes it weak.
    pub reasons: Vec<String>,
}

/// The figures behind a verdict. Logarithms are natural.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Test {
    /// The moderated t interval at the confidence of the rules, as a ratio.
    pub interval: Interval,
    /// Of a rate of one sitting: where another sitting of such a host would find the ratio, by the
    /// ledger.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub another_sitting: Option<Interval>,
    /// The interval that must lie within δ for SAME, as a ratio: at 1 − 2 × the rules'
    /// equivalence_alpha, 90 %.
    pub equivalence: Interval,
    /// True if it does.
    pub equivalent: bool,
    /// Chance of as large a difference where the true one is τ (TREAT).
    pub p_treat: f64,
    /// Chance of as large a difference where there is none.
    pub p_zero: f64,
    /// `p_treat`, adjusted over the steps of this target and metric by Benjamini-Hochberg.
    pub q_treat: f64,
    /// `p_zero`, adjusted the same way.
    pub q_zero: f64,
    /// `p_treat`, adjusted by Holm: what `rqps gate` exits by.
    pub holm_treat: f64,
    /// Standard error of the mean ln ratio, moderated; that of the host where it is larger.
    pub se: f64,
    /// Its degrees of freedom, those borrowed from the other steps included.
    #[serde(serialize_with = "number_or_inf")]
    pub df: f64,
    /// The smallest difference that these pairs find with the power of the rules, as a share: 0.025
    /// for 2.5 %.
    pub mde: f64,
    /// Under a schedule of looks: true once the step needs no more pairs.
    pub settled: bool,
    /// Under a schedule of looks: pairs at the look that the figures are of.
    pub look: Option<u32>,
}

/// Number of verdicts of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerdictCounts {
    /// SLOWER.
    pub slower: usize,
    /// FASTER.
    pub faster: usize,
    /// SLOWER-SMALL.
    pub slower_small: usize,
    /// FASTER-SMALL.
    pub faster_small: usize,
    /// SAME.
    pub same: usize,
    /// INCONCLUSIVE.
    pub inconclusive: usize,
    /// NO VERDICT.
    pub no_verdict: usize,
}

impl VerdictCounts {
    /// One more.
    pub fn add(&mut self, verdict: Verdict) {
        *self.place(verdict) += 1;
    }

    /// The number of one verdict.
    pub fn of(mut self, verdict: Verdict) -> usize {
        *self.place(verdict)
    }

    /// All.
    pub fn total(self) -> usize {
        Verdict::ALL.into_iter().map(|verdict| self.of(verdict)).sum()
    }

    fn place(&mut self, verdict: Verdict) -> &mut usize {
        match verdict {
            Verdict::Slower => &mut self.slower,
            Verdict::Faster => &mut self.faster,
            Verdict::SlowerSmall => &mut self.slower_small,
            Verdict::FasterSmall => &mut self.faster_small,
            Verdict::Same => &mut self.same,
            Verdict::Inconclusive => &mut self.inconclusive,
            Verdict::NoVerdict => &mut self.no_verdict,
        }
    }
}

/// All verdicts of a comparison in short.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct VerdictSummary {
    /// One sentence over all targets: what a reader in a hurry reads.
    pub sentence: String,
    /// One sentence on what it is about: builds, loads, sittings, host. Empty for a baseline alone
    /// and for results of others.
    pub about: String,
    /// One sentence on what limits it: the smallest difference that could be found, and what the
    /// host has to do with it. Empty for a baseline alone.
    pub limit: String,
    /// True if there is a verdict on every rate and all are SAME.
    pub boring: bool,
    /// One for each target but the baseline, in the order of the comparison.
    pub targets: Vec<TargetVerdicts>,
}

/// All verdicts on one target in short.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetVerdicts {
    /// The target.
    pub label: String,
    /// One sentence over its rates.
    pub sentence: String,
    /// True if there is a verdict on every rate and all are SAME.
    pub boring: bool,
    /// Metric → how often each verdict was given, and what the steps lent each other.
    pub metrics: BTreeMap<Metric, FamilyFacts>,
    /// Geometric mean of the relative rates of these steps, with the t interval over them; `None`
    /// without a finite ratio.
    pub geomean: Option<SuiteMean>,
}

/// The steps of one target and metric that were judged together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FamilyFacts {
    /// Number of verdicts of each kind.
    pub counts: VerdictCounts,
    /// The variance that the steps of each kind share; kinds that cannot have none.
    pub priors: Vec<SharedVariance>,
}

/// The variance that the steps of one kind of noise contribute to each one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SharedVariance {
    /// The kind.
    pub kind: Kind,
    /// d0: its degrees of freedom.
    #[serde(serialize_with = "number_or_inf")]
    pub df: f64,
    /// s0: its standard deviation, of ln ratios; where all steps took turns and the metric is the
    /// rate, as a multiple of the standard error inside a block.
    pub sd: f64,
}

/// A geometric mean over the steps that group summaries count.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SuiteMean {
    /// The mean.
    pub ratio: f64,
    /// t interval over the steps: it speaks of these steps and of such as they are a sample of.
    /// `None` for a single step, and where a step has fewer than two pairs.
    pub interval: Option<Interval>,
    /// Steps.
    pub steps: usize,
    /// The test of the mean itself; `None` if the steps do not have the same blocks, two or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<MeanTest>,
}

/// The test of a geometric mean of these steps, by the mean over the steps in each block: what
/// blocks share is in it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanTest {
    /// Blocks, or sessions or loads if the steps have several.
    pub blocks: usize,
    /// The t interval.
    pub interval: Interval,
    /// Chance of a mean this far from 0 where the true one is half of δ, with code layout.
    pub p_treat: f64,
}

/// A cost that moved with the rate, and so may be why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// The cost.
    pub metric: Metric,
    /// Its ratio.
    pub ratio: f64,
    /// The moderated interval of it.
    pub interval: Interval,
    /// Its verdict: worse where the rate is slower, better where it is faster.
    pub verdict: Verdict,
    /// The known cause: the function that changed most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Options of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerdictOptions {
    /// Label of the baseline; `None` for the first target of the plan.
    pub baseline: Option<String>,
    /// The rules of the verdicts.
    pub rules: Rules,
}

impl VerdictOptions {
    /// The defaults, with another baseline.
    pub fn with_baseline(baseline: Option<&str>) -> VerdictOptions {
        VerdictOptions { baseline: baseline.map(str::to_owned), ..VerdictOptions::default() }
    }
}
