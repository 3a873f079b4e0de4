//! Verdicts: for every metric of every step of every target, the decision and its evidence
//! (docs/verdicts.md).

mod errors;
mod family;
pub mod summary;

use std::collections::BTreeMap;

use serde::Serialize;

use super::comparison::{Comparison, Relative, StepComparison, number_or_inf};
use errors::{HostFindings, PairList, Widening};
use family::{Cluster, Family};
use rqps_model::gate::HostLog;
use rqps_model::metric::{Direction, Metric};
use rqps_model::verdict::{Rules, Verdict};
use rqps_stats::moderated::Spread;
use rqps_stats::moderated::{Effect, posteriors};
use rqps_stats::power::Looks;
use rqps_stats::summary::{mean, stddev};
use rqps_stats::{Interval, parallel};

pub use errors::Kind;
pub use summary::{OpenStep, open_steps};

pub(super) use summary::{explanations, summarize};

// Judgements of ratios, as data.

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
    /// Of a rate, if four or more steps have a test: what all of them tell of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shrunken: Option<Shrunken>,
}

/// An effect among those of all steps of a target: the worst of many estimates is also the
/// unluckiest ([`rqps_stats::shrinkage`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Shrunken {
    /// The ratio.
    pub ratio: f64,
    /// Its interval at the confidence of the rules.
    pub interval: Interval,
    /// The probability that the loss is larger than δ.
    pub p_loss: f64,
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

// Judges every ratio of a comparison.

/// A ratio: indexes of step and target in the comparison, and the metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RatioPlace {
    pub(crate) step: usize,
    pub(crate) target: usize,
    pub(crate) metric: Metric,
}

/// All verdicts of a comparison.
pub(crate) struct Judged {
    pub(crate) judgements: Vec<(RatioPlace, Judgement)>,
    /// For each target but the baseline: its metrics.
    pub(crate) families: Vec<BTreeMap<Metric, FamilyFacts>>,
    /// Findings about the host, each in a few words.
    pub(crate) notes: Vec<String>,
    /// True if the host adds to the errors of rates.
    pub(crate) widened: bool,
}

/// Judges every ratio of a comparison: the steps of a target and metric are one family.
pub(crate) fn judge(comparison: &Comparison) -> Judged {
    let targets = comparison.targets.iter().filter_map(|facts| facts.target.as_ref());
    let dbms = targets.map(|target| target.dbms).collect();
    let measured = errors::Measured { in_turns: comparison.all_in_turns(), dbms };
    let findings = errors::findings(&comparison.gates, &measured);
    let looks =
        comparison.schedule.map(|schedule| Looks::new(schedule.blocks_min, schedule.blocks_max));
    let rules = comparison.rules;
    // Families have nothing to do with each other until all are judged.
    let judged = parallel::map(families(&comparison.steps), |((target, metric), ratios)| {
        let host = Widening::default();
        let family = Family { rules: &rules, metric, looks: looks.as_ref(), cluster: None, host };
        (target, metric, judge_family(&family, &findings, &ratios))
    });
    let mut families = vec![BTreeMap::new(); comparison.targets.len().saturating_sub(1)];
    let mut judgements = Vec::new();
    for (target, metric, (of_steps, facts)) in judged {
        families[target - 1].insert(metric, facts);
        let place = |step| RatioPlace { step, target, metric };
        judgements.extend(of_steps.into_iter().map(|(step, said)| (place(step), said)));
    }
    let widened = !findings.widening(Metric::Rate).is_none();
    Judged { judgements, families, notes: findings.notes, widened }
}

/// A ratio to judge, and why it cannot be judged if it cannot.
struct Ratio<'a> {
    step: usize,
    /// The kind of its noise; `None` for a step that repeats the pairs of measured ones.
    kind: Option<Kind>,
    relative: &'a Relative,
    void: &'a [String],
}

/// Ratios that are judged together: place of their target, metric → one for each step that has it.
type Families<'a> = BTreeMap<(usize, Metric), Vec<Ratio<'a>>>;

fn families(steps: &[StepComparison]) -> Vec<((usize, Metric), Vec<Ratio<'_>>)> {
    let mut families = Families::new();
    for (step, of_step) in steps.iter().enumerate() {
        let kind = Kind::of(of_step);
        for (place, target) in of_step.targets.iter().enumerate().skip(1) {
            for (&metric, result) in &target.metrics {
                if metric.better() == Direction::Neither {
                    continue;
                }
                if let Some(relative) = &result.relative {
                    let void =
                        if target.is_void(metric) { &target.not_comparable[..] } else { &[] };
                    let ratio = Ratio { step, kind, relative, void };
                    families.entry((place, metric)).or_default().push(ratio);
                }
            }
        }
    }
    families.into_iter().collect()
}

/// The judgements of one target and metric by step.
fn judge_family(
    family: &Family<'_>,
    findings: &HostFindings,
    ratios: &[Ratio<'_>],
) -> (Vec<(usize, Judgement)>, FamilyFacts) {
    let offset = offset_of_clusters(ratios);
    let lists: Vec<PairList<'_>> = ratios.iter().map(|ratio| evidence(ratio, offset)).collect();
    let clusters = ratios.iter().filter_map(|ratio| cluster_of(ratio.relative));
    let cluster = clusters.min_by(|a, b| a.pairs.total_cmp(&b.pairs));
    // All looks belong to one session, and plans with looks have no shared loads. So data of
    // several sessions or loads gets one test, at the end.
    let looks = family.looks.filter(|_| cluster.is_none());
    let family = &Family { looks, cluster, ..*family };
    let (judgements, priors) = with_host(family, findings, &lists);
    let mut counts = VerdictCounts::default();
    let said = ratios.iter().zip(judgements).map(|(ratio, judgement)| {
        let mut judgement = match ratio {
            Ratio { void, .. } if !void.is_empty() => family::without_test(void.to_vec()),
            Ratio { relative, .. } if relative.pairs > 0 && relative.differences.is_empty() => {
                family::without_test(vec!["a value is 0 and has no logarithm".to_owned()])
            }
            _ => judgement,
        };
        if let (None, Some(clusters)) = (cluster_of(ratio.relative), cluster)
            && judgement.test.is_some()
        {
            let name = clusters.name;
            judgement.reasons.push(format!(
                "measured in one {name} only, so it has the scatter between {name}s of other steps"
            ));
        }
        counts.add(judgement.verdict);
        (ratio.step, judgement)
    });
    let mut said: Vec<(usize, Judgement)> = said.collect();
    if family.metric == Metric::Rate {
        shrink(said.iter_mut().filter_map(|(_, judgement)| judgement.test.as_mut()), family.rules);
    }
    (said, FamilyFacts { counts, priors })
}

/// With fewer steps, a prior of them says nothing.
const SHRUNKEN_LEAST: usize = 4;

/// Adds what all steps tell of each. The limit of a loss and the errors are those of the tests.
fn shrink<'a>(tests: impl Iterator<Item = &'a mut Test>, rules: &Rules) {
    let tests: Vec<&mut Test> = tests.collect();
    if tests.len() < SHRUNKEN_LEAST {
        return;
    }
    let effect = |test: &&mut Test| {
        let mean = (test.interval.low.ln() + test.interval.high.ln()) / 2.0;
        Effect { mean, se: test.se, df: test.df }
    };
    let effects: Vec<Effect> = tests.iter().map(effect).collect();
    for (test, posterior) in tests.into_iter().zip(posteriors(&effects)) {
        test.shrunken = Some(Shrunken {
            ratio: posterior.mean().exp(),
            interval: posterior.interval(rules.confidence).exp(),
            p_loss: posterior.below(-rules.equivalence_limit()),
        });
    }
}

/// A ratio that is not comparable gives no evidence, so it changes neither the shared variance nor
/// the correction for the number of steps.
///
/// Means of clusters stand alone: they have few degrees of freedom, share the effect of their
/// cluster, and have another unit than pairs.
fn evidence<'a>(ratio: &Ratio<'a>, offset: Option<Spread>) -> PairList<'a> {
    let relative = ratio.relative;
    if !ratio.void.is_empty() {
        return PairList::of(&[]);
    }
    let in_clusters = cluster_of(relative).is_some();
    PairList {
        differences: relative.evidence(),
        block_errors: relative.evidence_errors(),
        blocks: &relative.blocks,
        kind: ratio.kind.filter(|_| !in_clusters && offset.is_none()),
        offset: offset.filter(|_| !in_clusters),
    }
}

/// The scatter of the means of clusters over the steps that have several: what a step of one
/// cluster may be off by. `None` if no step has clusters.
fn offset_of_clusters(ratios: &[Ratio<'_>]) -> Option<Spread> {
    let clustered = ratios.iter().filter(|ratio| cluster_of(ratio.relative).is_some());
    let spreads: Vec<(f64, usize)> = clustered
        .filter_map(|ratio| {
            let values = ratio.relative.evidence();
            Some((stddev(values)?.powi(2), values.len()))
        })
        .collect();
    let fewest = spreads.iter().map(|(_, count)| *count).min()?;
    let variances: Vec<f64> = spreads.iter().map(|(variance, _)| *variance).collect();
    Some(Spread { sd: mean(&variances).sqrt(), df: (fewest - 1) as f64 })
}

/// The clusters whose means are the values of a ratio; `None` if its values are pairs.
fn cluster_of(relative: &Relative) -> Option<Cluster> {
    let (name, count) = match (&relative.sessions, &relative.loads) {
        (Some(sessions), _) => ("session", sessions.values.len()),
        (None, Some(loads)) => ("load", loads.values.len()),
        (None, None) => return None,
    };
    Some(Cluster { name, pairs: relative.pairs as f64 / count as f64 })
}

/// Judges by the steps' own pairs, and again with the errors of the host if it has any.
fn with_host(
    family: &Family<'_>,
    findings: &HostFindings,
    lists: &[PairList<'_>],
) -> (Vec<Judgement>, Vec<SharedVariance>) {
    let (own, priors) = family::judge(family, lists);
    let host = findings.widening(family.metric);
    if host.is_none() {
        return (own, priors);
    }
    // The host's noise is that of a pair; a cluster is the mean of several.
    let pair_sd = host.pair_sd / family.cluster.map_or(1.0, |cluster| cluster.pairs).sqrt();
    let host = Widening { pair_sd, ..host };
    let (wide, _) = family::judge(&Family { host, ..*family }, lists);
    let weighed = own.into_iter().zip(wide);
    (weighed.map(|(own, wide)| errors::weigh(own, wide, family.metric)).collect(), priors)
}

/// Judges lists of paired ln ratios of one target and metric that come from no run: those of
/// simulations and of other tools.
pub fn judge_differences(
    differences: &[&[f64]],
    metric: Metric,
    rules: &Rules,
    looks: Option<&Looks>,
) -> Vec<Judgement> {
    let family = Family { rules, metric, looks, cluster: None, host: Widening::default() };
    family::judge(&family, &lists(differences)).0
}

/// As [`judge_differences`], for rates of steps in turns and without interim looks. Each step has
/// its differences and their standard errors inside a block.
pub fn judge_in_turns(steps: &[(&[f64], &[f64])], rules: &Rules) -> Vec<Judgement> {
    let (metric, host) = (Metric::Rate, Widening::default());
    let family = Family { rules, metric, looks: None, cluster: None, host };
    let lists = steps
        .iter()
        .map(|&(differences, block_errors)| PairList { block_errors, ..PairList::of(differences) });
    family::judge(&family, &lists.collect::<Vec<_>>()).0
}

/// As [`judge_differences`], for rates of which each value is the mean of a session or load.
pub fn judge_cluster_means(means: &[&[f64]], rules: &Rules) -> Vec<Judgement> {
    let (metric, host) = (Metric::Rate, Widening::default());
    let family = Family { rules, metric, looks: None, cluster: None, host };
    let lists = means.iter().map(|means| PairList { kind: None, ..PairList::of(means) });
    family::judge(&family, &lists.collect::<Vec<_>>()).0
}

fn lists<'a>(differences: &[&'a [f64]]) -> Vec<PairList<'a>> {
    differences.iter().map(|differences| PairList::of(differences)).collect()
}

/// As [`judge_differences`], with the findings of host logs (`gate.json`) and no interim looks, for
/// whole steps of the DBMS that was calibrated.
pub fn judge_on_host(
    differences: &[&[f64]],
    metric: Metric,
    rules: &Rules,
    gates: &BTreeMap<String, HostLog>,
) -> Vec<Judgement> {
    let host = Widening::default();
    let family = Family { rules, metric, looks: None, cluster: None, host };
    let calibrations = gates.values().filter_map(|gate| gate.calibration.as_ref());
    let dbms = calibrations.map(|known| known.dbms).collect();
    let measured = errors::Measured { in_turns: false, dbms };
    with_host(&family, &errors::findings(gates, &measured), &lists(differences)).0
}
