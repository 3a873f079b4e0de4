//! Judges every ratio of a comparison.

use std::collections::BTreeMap;

use super::family::{self, Cluster, Family};
use super::host::{self, HostFindings, Widening};
use super::judgement::{FamilyFacts, Judgement, SharedVariance, VerdictCounts};
use super::member::{Kind, PairList};
use crate::comparison::{Comparison, Relative, StepComparison};
use rqps_model::gate::HostLog;
use rqps_model::metric::{Direction, Metric};
use rqps_model::verdict::Rules;
use rqps_stats::moderated::Spread;
use rqps_stats::parallel;
use rqps_stats::sequential::Looks;
use rqps_stats::summary::{mean, stddev};

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
    let measured = host::Measured { in_turns: comparison.all_in_turns(), dbms };
    let findings = host::findings(&comparison.gates, &measured);
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
    let clusters = ratios.iter().filter_map(|ratio| cluster(ratio.relative));
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
        if let (None, Some(clusters)) = (self::cluster(ratio.relative), cluster)
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
    (said.collect(), FamilyFacts { counts, priors })
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
    let in_clusters = cluster(relative).is_some();
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
    let clustered = ratios.iter().filter(|ratio| cluster(ratio.relative).is_some());
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
fn cluster(relative: &Relative) -> Option<Cluster> {
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
    (weighed.map(|(own, wide)| host::weigh(own, wide, family.metric)).collect(), priors)
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
    let measured = host::Measured { in_turns: false, dbms };
    with_host(&family, &host::findings(gates, &measured), &lists(differences)).0
}
