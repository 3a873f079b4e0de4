//! Verdicts: for every metric of every step of every target, what can be said and how sure it is
//! (docs/verdicts.md).

mod explain;
mod family;
mod host;
mod limit;
mod open;
mod summary;

use std::collections::BTreeMap;

use serde::Serialize;

pub use open::{OpenStep, open_steps};

use self::family::Family;
use self::host::{HostFindings, Widening};
use super::compare::{Comparison, Relative, StepComparison};
use crate::domain::gate::HostLog;
use crate::domain::metric::{Direction, Metric};
use crate::domain::verdict::{Rules, Verdict};
use crate::parallel;
use crate::stats::Interval;
use crate::stats::sequential::Looks;

/// From this many steps on, reports name a common reason for a missing verdict once.
pub const TOLD_TOGETHER: usize = 4;

/// What is said about one ratio, and by what.
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
    /// What the reader should know of it, in words: why there is no verdict, what makes it weak.
    pub reasons: Vec<String>,
}

/// The figures behind a verdict. Logarithms are natural.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Test {
    /// The moderated t interval at the confidence of the rules, as a ratio.
    pub interval: Interval,
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
    #[serde(serialize_with = "super::compare::number_or_inf")]
    pub df: f64,
    /// The smallest difference that these pairs find with the power of the rules, as a share: 0.025
    /// for 2.5 %.
    pub mde: f64,
    /// Under a schedule of looks: true once the step needs no more pairs.
    pub settled: bool,
    /// Under a schedule of looks: pairs at the look that the figures are of.
    pub look: Option<u32>,
}

/// How often each verdict was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
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

impl Counts {
    /// One more.
    pub fn add(&mut self, verdict: Verdict) {
        *self.place(verdict) += 1;
    }

    /// How often a verdict was given.
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
pub struct Summary {
    /// One sentence over all targets: what a reader in a hurry reads.
    pub sentence: String,
    /// One sentence on what limits it: the smallest difference that could be found, and what the
    /// host has to do with it. Empty for a base alone.
    pub limit: String,
    /// True if there is a verdict on every rate and all are SAME.
    pub boring: bool,
    /// One for each target but the base, in the order of the comparison.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FamilyFacts {
    /// How often each verdict was given.
    pub counts: Counts,
    /// What the steps lent each other; `None` where nobody could lend.
    pub prior: Option<Prior>,
}

/// What is borrowed from all steps for the variance of one (Smyth 2004).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Prior {
    /// d0: its degrees of freedom; infinite where the steps do not differ in noise more than
    /// chance would have it.
    #[serde(serialize_with = "super::compare::number_or_inf")]
    pub df: f64,
    /// s0: its standard deviation, of ln ratios.
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
}

/// How a comparison is to be made.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VerdictOptions {
    /// Label of the base; `None` for the first target of the plan.
    pub base: Option<String>,
    /// By what verdicts are given.
    pub rules: Rules,
}

impl VerdictOptions {
    /// The defaults, with another base.
    pub fn with_base(base: Option<&str>) -> VerdictOptions {
        VerdictOptions { base: base.map(str::to_owned), ..VerdictOptions::default() }
    }
}

/// Judges every ratio of a comparison: the steps of a target and metric are one family.
pub(super) fn judge(comparison: &mut Comparison, gates: &BTreeMap<String, HostLog>) {
    let findings = host::findings(gates, comparison.all_in_turns());
    let looks =
        comparison.schedule.map(|schedule| Looks::new(schedule.blocks_min, schedule.blocks_max));
    let rules = comparison.rules;
    // Families have nothing to do with each other until all are judged.
    let judged = parallel::map(families(&mut comparison.steps), |(place, mut ratios)| {
        let host = Widening::default();
        let family =
            Family { rules: &rules, metric: place.1, looks: looks.as_ref(), sessions: None, host };
        (place, judge_family(&family, &findings, &mut ratios))
    });
    let mut families = vec![BTreeMap::new(); comparison.targets.len().saturating_sub(1)];
    for ((target, metric), facts) in judged {
        families[target - 1].insert(metric, facts);
    }
    for target in comparison.steps.iter_mut().flat_map(|step| step.targets.iter_mut().skip(1)) {
        target.explanations = explain::explanations(target);
    }
    let labels: Vec<String> = comparison.targets.iter().map(|facts| facts.label.clone()).collect();
    comparison.summary = summary::summarize(&comparison.steps, families, &labels, &rules);
    comparison.summary.limit = limit::sentence(comparison, &findings.notes);
}

/// A ratio to judge, and why it cannot be judged if it cannot.
struct Member<'a> {
    relative: &'a mut Relative,
    void: Vec<String>,
}

/// Ratios that are judged together: place of their target, metric → one for each step that has it.
type Families<'a> = BTreeMap<(usize, Metric), Vec<Member<'a>>>;

fn families(steps: &mut [StepComparison]) -> Vec<((usize, Metric), Vec<Member<'_>>)> {
    let mut families = Families::new();
    for step in steps {
        for (place, target) in step.targets.iter_mut().enumerate().skip(1) {
            let void: Vec<Metric> =
                target.metrics.keys().copied().filter(|metric| target.is_void(*metric)).collect();
            for (&metric, result) in &mut target.metrics {
                if metric.better() == Direction::Neither {
                    continue;
                }
                if let Some(relative) = &mut result.relative {
                    let is_void = void.contains(&metric);
                    let void = if is_void { target.not_comparable.clone() } else { Vec::new() };
                    let member = Member { relative, void };
                    families.entry((place, metric)).or_default().push(member);
                }
            }
        }
    }
    families.into_iter().collect()
}

/// One target and metric.
fn judge_family(
    family: &Family<'_>,
    findings: &HostFindings,
    ratios: &mut [Member<'_>],
) -> FamilyFacts {
    // What is not comparable lends no variance and counts for no correction.
    let differences = |member: &Member<'_>| match member.void.is_empty() {
        true => member.relative.evidence().to_vec(),
        false => Vec::new(),
    };
    let differences: Vec<Vec<f64>> = ratios.iter().map(differences).collect();
    let lists: Vec<&[f64]> = differences.iter().map(Vec::as_slice).collect();
    let pairs_each = ratios.iter().filter_map(|member| {
        let sessions = member.relative.sessions.as_ref()?;
        Some(member.relative.pairs as f64 / sessions.values.len() as f64)
    });
    let sessions = pairs_each.min_by(f64::total_cmp);
    // Looks are of one sitting; over several there is one look, at the end.
    let looks = family.looks.filter(|_| sessions.is_none());
    let family = &Family { looks, sessions, ..*family };
    let (judgements, prior) = with_host(family, findings, &lists);
    let mut counts = Counts::default();
    for (Member { relative, void }, mut judgement) in ratios.iter_mut().zip(judgements) {
        if !void.is_empty() {
            judgement = family::without_test(std::mem::take(void));
            // An interval would be taken for evidence.
            (relative.interval, relative.sd_ln, relative.robust) = (None, None, None);
            counts.add(judgement.verdict);
            relative.judgement = Some(judgement);
            continue;
        }
        if relative.pairs > 0 && relative.differences.is_empty() {
            judgement = family::without_test(vec!["a value is 0, and has no logarithm".to_owned()]);
        }
        counts.add(judgement.verdict);
        relative.judgement = Some(judgement);
    }
    FamilyFacts { counts, prior }
}

/// Judges by the steps' own pairs and, if the host adds anything to their errors, with that.
fn with_host(
    family: &Family<'_>,
    findings: &HostFindings,
    differences: &[&[f64]],
) -> (Vec<Judgement>, Option<Prior>) {
    let (own, prior) = family::judge(family, differences);
    let host = findings.widening(family.metric);
    if host.is_none() {
        return (own, prior);
    }
    // The host's noise is that of a pair; a session is the mean of several.
    let pair_sd = host.pair_sd / family.sessions.unwrap_or(1.0).sqrt();
    let host = Widening { pair_sd, ..host };
    let (wide, _) = family::judge(&Family { host, ..*family }, differences);
    let weighed = own.into_iter().zip(wide);
    (weighed.map(|(own, wide)| host::weigh(own, wide, family.metric)).collect(), prior)
}

/// Judges lists of paired ln ratios that belong to one target and metric, without runs around them:
/// for simulations, and for pairs from elsewhere.
pub fn judge_differences(
    differences: &[&[f64]],
    metric: Metric,
    rules: &Rules,
    looks: Option<&Looks>,
) -> Vec<Judgement> {
    family::judge(
        &Family { rules, metric, looks, sessions: None, host: Widening::default() },
        differences,
    )
    .0
}

/// The same on hosts of which gates tell something, looked at once.
pub fn judge_on_host(
    differences: &[&[f64]],
    metric: Metric,
    rules: &Rules,
    gates: &BTreeMap<String, HostLog>,
) -> Vec<Judgement> {
    let host = Widening::default();
    let family = Family { rules, metric, looks: None, sessions: None, host };
    with_host(&family, &host::findings(gates, false), differences).0
}
