//! Judging the steps of one target and metric together: they lend each other variance, and the
//! list of differences is corrected for how many they are.

use std::collections::BTreeMap;

use super::errors::{Kind, Member, PairList, Widening, members};
use super::{Judgement, SharedVariance, Test};
use rqps_model::metric::Metric;
use rqps_model::verdict::{Rules, Verdict};
use rqps_stats::Interval;
use rqps_stats::moderated::{Prior, benjamini_hochberg, holm};
use rqps_stats::power::{self, Aim, Looks};

/// Facts shared by the members of a family.
pub(super) struct Family<'a> {
    pub rules: &'a Rules,
    pub metric: Metric,
    /// The interim looks; `None` for one test at the end.
    pub looks: Option<&'a Looks>,
    /// The cluster that one value of a list is the mean of; `None` if each value is one pair.
    pub cluster: Option<Cluster>,
    /// The errors that the host adds to those of the steps.
    pub host: Widening,
}

/// Pairs with a common session or load. Their mean is one value of a list.
#[derive(Clone, Copy)]
pub(super) struct Cluster {
    /// `session` or `load`.
    pub name: &'static str,
    /// Mean number of pairs in a cluster.
    pub pairs: f64,
}

/// P-values of the three tests, valid at the look: beyond τ, different from zero, equivalent.
#[derive(Clone, Copy)]
struct Evidence {
    treat: f64,
    zero: f64,
    within: f64,
}

/// P-values adjusted for the number of members, by place in the list of steps.
struct Adjusted {
    q_treat: Vec<f64>,
    q_zero: Vec<f64>,
    holm: Vec<f64>,
}

/// One step after the looks so far.
#[derive(Clone, Copy)]
struct SequentialState {
    member: Option<Member>,
    look: u32,
    /// q(τ) and q(0) at the look that decided it: later blocks of other steps change nothing.
    settled: Option<(f64, f64)>,
    /// Largest statistics of all looks for the three tests of [`Evidence`]. The first test has a
    /// statistic for each tail, the second has equal tails, the third has one tail.
    treat: (f64, f64),
    zero: f64,
    within: f64,
}

/// A judgement for each list of paired ln ratios, in their order, and the variance that they share.
/// Lists of fewer than two pairs get no verdict and are not members.
pub(super) fn judge(
    family: &Family<'_>,
    lists: &[PairList<'_>],
) -> (Vec<Judgement>, Vec<SharedVariance>) {
    match family.looks {
        None => judge_once(family, lists),
        Some(looks) => judge_looks(family, looks, lists),
    }
}

fn judge_once(
    family: &Family<'_>,
    lists: &[PairList<'_>],
) -> (Vec<Judgement>, Vec<SharedVariance>) {
    let (members, priors) = members(lists, usize::MAX, &family.host);
    let evidence: Vec<Option<Evidence>> =
        members.iter().map(|member| member.map(|member| family.evidence(&member))).collect();
    let adjusted = adjust(&evidence);
    let members_count = evidence.iter().flatten().count();
    let alpha = 1.0 - family.rules.confidence;
    let mut detectable = Detectable::default();
    let judgements = members.iter().enumerate().map(|(at, member)| {
        let (Some(member), Some(evidence)) = (member, evidence[at]) else {
            return without_test(vec![untested(lists[at].differences.len())]);
        };
        let mde = detectable.share(family, member, alpha, members_count);
        let tails = (alpha / 2.0, family.rules.equivalence_alpha);
        let test = family.test(member, evidence, (&adjusted, at), tails, mde);
        family.finish(member, test, alpha)
    });
    let judgements = judgements.collect();
    (judgements, shown(&priors))
}

/// Replays the looks in order: a step decided at a look keeps that verdict, so later blocks cannot
/// undo it.
fn judge_looks(
    family: &Family<'_>,
    looks: &Looks,
    lists: &[PairList<'_>],
) -> (Vec<Judgement>, Vec<SharedVariance>) {
    let none = SequentialState {
        member: None,
        look: 0,
        settled: None,
        treat: (f64::NEG_INFINITY, f64::NEG_INFINITY),
        zero: f64::NEG_INFINITY,
        within: f64::NEG_INFINITY,
    };
    let mut states = vec![none; lists.len()];
    let mut last_priors = Vec::new();
    let most = lists.iter().map(|list| list.differences.len()).max().unwrap_or(0) as u32;
    for look in looks.first()..=looks.last().min(most) {
        let (members, priors) = members(lists, look as usize, &family.host);
        for (state, member) in states.iter_mut().zip(&members) {
            if let Some(member) = member.filter(|member| member.pairs == look as usize)
                && state.settled.is_none()
            {
                state.take(family, looks, member, look);
            }
        }
        let evidence = evidence_of(looks, &states);
        let adjusted = adjust(&evidence);
        for (at, state) in states.iter_mut().enumerate() {
            if let Some(evidence) = evidence[at]
                && state.settled.is_none()
            {
                let q = (adjusted.q_treat[at], adjusted.q_zero[at]);
                let within = evidence.within <= family.rules.equivalence_alpha;
                state.settled = (q.0 <= family.rules.q || within).then_some(q);
            }
        }
        last_priors = priors;
    }
    let judgements = finish_looks(family, looks, &states, lists);
    (judgements, shown(&last_priors))
}

fn evidence_of(looks: &Looks, states: &[SequentialState]) -> Vec<Option<Evidence>> {
    let of = |state: &SequentialState| {
        let zero = (2.0 * looks.p_value(state.zero)).min(1.0);
        // Each tail has its own p-value, because a one-sided boundary is crossed less often than
        // a two-sided one. The two largest statistics may be of different looks, so the sum is
        // raised to `zero`: "beyond τ" cannot be more certain than "different from zero".
        let beyond = looks.p_value(state.treat.0) + looks.p_value(state.treat.1);
        Evidence { treat: beyond.clamp(zero, 1.0), zero, within: looks.p_value(state.within) }
    };
    states.iter().map(|state| state.member.map(|_| of(state))).collect()
}

fn finish_looks(
    family: &Family<'_>,
    looks: &Looks,
    states: &[SequentialState],
    lists: &[PairList<'_>],
) -> Vec<Judgement> {
    let rules = family.rules;
    let evidence = evidence_of(looks, states);
    let adjusted = adjust(&evidence);
    let members_count = evidence.iter().flatten().count();
    let both_tails = (1.0 - rules.confidence) / 2.0;
    let at_last = 2.0 * looks.level(both_tails, looks.last());
    let mut detectable = Detectable::default();
    let of = |(at, state): (usize, &SequentialState)| {
        let (Some(member), Some(evidence)) = (state.member, evidence[at]) else {
            let (pairs, first) = (lists[at].differences.len(), looks.first());
            let reason = if pairs as u32 >= first {
                untested(pairs)
            } else {
                format!("the first interim look is at {first} pairs; so far: {pairs}")
            };
            return without_test(vec![reason]);
        };
        let mde = detectable.share(family, &member, at_last, members_count);
        let tails = [both_tails, rules.equivalence_alpha].map(|it| looks.level(it, state.look));
        let test = family.test(&member, evidence, (&adjusted, at), tails.into(), mde);
        let (q_treat, q_zero) = state.settled.unwrap_or((test.q_treat, test.q_zero));
        let settled = state.settled.is_some();
        let test = Test { q_treat, q_zero, settled, look: Some(state.look), ..test };
        family.finish(&member, test, at_last)
    };
    states.iter().enumerate().map(of).collect()
}

impl SequentialState {
    fn take(&mut self, family: &Family<'_>, looks: &Looks, member: Member, look: u32) {
        let evidence = family.evidence(&member);
        let (near, far) = family.with_layout(&member).tails_beyond(family.threshold());
        self.treat.0 = self.treat.0.max(looks.statistic(near, look));
        self.treat.1 = self.treat.1.max(looks.statistic(far, look));
        self.zero = self.zero.max(looks.statistic(evidence.zero / 2.0, look));
        self.within = self.within.max(looks.statistic(evidence.within, look));
        self.member = Some(member);
        self.look = look;
    }
}

impl Family<'_> {
    /// SLOWER and FASTER are larger differences than this.
    fn threshold(&self) -> f64 {
        self.rules.least() + self.host.bias
    }

    fn evidence(&self, member: &Member) -> Evidence {
        let limit = self.rules.equivalence_limit() - self.host.bias;
        let zero = member.p_beyond(self.host.bias);
        let treat = self.with_layout(member).p_beyond(self.threshold());
        Evidence {
            // Layout has more degrees of freedom than the pairs; a difference that layout does not
            // explain is never surer than one from 0.
            treat: treat.max(zero),
            zero,
            within: member.p_within(limit),
        }
    }

    /// The step with the effect of code layout among its errors: it differs from build to build,
    /// and no pairs lessen it.
    fn with_layout(&self, member: &Member) -> Member {
        member.with_error(std::f64::consts::SQRT_2 * self.rules.layout_sd())
    }

    /// The test of the step at this index of the list, without interim looks. `tails` are the
    /// shares of the t distribution beyond each end of the interval and of the equivalence
    /// interval.
    fn test(
        &self,
        member: &Member,
        evidence: Evidence,
        (adjusted, at): (&Adjusted, usize),
        tails: (f64, f64),
        mde: f64,
    ) -> Test {
        let widest = member.widest();
        Test {
            interval: self.interval(member, tails.0),
            another_sitting: None,
            equivalence: self.interval(member, tails.1),
            equivalent: evidence.within <= self.rules.equivalence_alpha,
            p_treat: evidence.treat,
            p_zero: evidence.zero,
            q_treat: adjusted.q_treat[at],
            q_zero: adjusted.q_zero[at],
            holm_treat: adjusted.holm[at],
            se: widest.se,
            df: widest.df,
            mde,
            settled: false,
            look: None,
            shrunken: None,
        }
    }

    /// The interval with this share of the t distribution beyond each end, as a ratio.
    fn interval(&self, member: &Member, tail: f64) -> Interval {
        let Interval { low, high } = member.interval_beyond(tail);
        Interval { low: low - self.host.bias, high: high + self.host.bias }.exp()
    }

    /// The values of a list in the plural: `pairs`, `sessions`, `loads`.
    fn values(&self) -> String {
        format!("{}s", self.cluster.map_or("pair", |cluster| cluster.name))
    }

    /// The verdict from the figures, with its reasons.
    fn finish(&self, member: &Member, test: Test, alpha: f64) -> Judgement {
        let mean = member.mean;
        let verdict = if test.q_treat <= self.rules.q && !test.equivalent {
            Verdict::of_difference(self.metric, mean, false)
        } else if test.q_zero <= self.rules.q && mean != 0.0 {
            Verdict::of_difference(self.metric, mean, true)
        } else if test.equivalent {
            Verdict::Same
        } else {
            Verdict::Inconclusive
        };
        let mut reasons = Vec::new();
        let mut pairs_needed = None;
        if verdict == Verdict::Inconclusive {
            pairs_needed = self.pairs_needed(member, alpha, &mut reasons);
        }
        if member.pairs == 2 {
            let values = self.values();
            let between = if self.cluster.is_some() { &values } else { "blocks" };
            reasons
                .push(format!("2 {values} give a poor estimate of the variance between {between}"));
        }
        if member.memory > 0.0 {
            reasons.push(format!(
                "each block resembles the one before it (correlation {:.2}), which widens its \
                 interval",
                member.memory
            ));
        }
        Judgement { verdict, test: Some(test), pairs_needed, reasons }
    }

    fn pairs_needed(&self, member: &Member, alpha: f64, reasons: &mut Vec<String>) -> Option<u32> {
        let effect = self.rules.equivalence_limit() - self.host.bias;
        if effect <= 0.0 || self.host.offset_sd > 0.0 {
            reasons.push("more pairs cannot decide this step on this host".to_owned());
            return None;
        }
        let aim =
            Aim { sd: member.sd, df_lent: member.df_lent, effect, alpha, power: self.rules.power };
        match power::pairs_needed(&aim) {
            Some(needed) if self.cluster.is_some() && needed as usize > member.pairs => {
                let values = self.values();
                reasons.push(format!("about {needed} {values} find a difference of delta"));
                None
            }
            Some(pairs) if pairs as usize > member.pairs => Some(pairs),
            Some(_) => {
                reasons.push("the difference is close to delta or to 0".to_owned());
                None
            }
            None => {
                let most = power::PAIRS_MAX;
                let values = self.values();
                reasons.push(format!("the noise is too large even for {most} {values}"));
                None
            }
        }
    }
}

/// Adjusts over the members; lists that are not members get 1.
fn adjust(evidence: &[Option<Evidence>]) -> Adjusted {
    let places: Vec<usize> = (0..evidence.len()).filter(|at| evidence[*at].is_some()).collect();
    let spread = |method: fn(&[f64]) -> Vec<f64>, get: fn(&Evidence) -> f64| -> Vec<f64> {
        let p: Vec<f64> = evidence.iter().flatten().map(get).collect();
        let mut all = vec![1.0; evidence.len()];
        places.iter().zip(method(&p)).for_each(|(at, adjusted)| all[*at] = adjusted);
        all
    };
    Adjusted {
        q_treat: spread(benjamini_hochberg, |evidence| evidence.treat),
        q_zero: spread(benjamini_hochberg, |evidence| evidence.zero),
        holm: spread(holm, |evidence| evidence.treat),
    }
}

/// Detectable differences by degrees of freedom, each computed once.
#[derive(Default)]
struct Detectable {
    known: BTreeMap<u64, f64>,
}

impl Detectable {
    /// The smallest difference found if it is the only one of so many steps, as a share:
    /// 1 − exp(−(threshold + detectable · se)).
    fn share(&mut self, family: &Family<'_>, member: &Member, alpha: f64, steps: usize) -> f64 {
        let (alpha, wanted) = (alpha / steps.max(1) as f64, family.rules.power);
        let mut shift = |df: f64| {
            // One digit more than reports show.
            let df = if df < 1e3 { (df * 50.0).round() / 50.0 } else { 1e3 };
            let compute = || power::detectable(df, alpha, wanted);
            *self.known.entry(df.to_bits()).or_insert_with(compute)
        };
        let mut found =
            |member: &Member| member.estimates().map(|it| shift(it.df) * it.se).fold(0.0, f64::max);
        let beyond_layout = family.threshold() + found(&family.with_layout(member));
        -(-beyond_layout.max(family.host.bias + found(member))).exp_m1()
    }
}

/// No verdict, with its reasons.
pub(super) fn without_test(reasons: Vec<String>) -> Judgement {
    Judgement { verdict: Verdict::NoVerdict, test: None, pairs_needed: None, reasons }
}

fn untested(pairs: usize) -> String {
    match pairs {
        0 => "no block measured both targets".to_owned(),
        1 => "one pair gives no estimate of the variance between blocks".to_owned(),
        _ => {
            format!("the {pairs} pairs are identical to the last digit, so a test has no variance")
        }
    }
}

fn shown(priors: &[(Kind, Prior)]) -> Vec<SharedVariance> {
    let of = |(kind, prior): &(Kind, Prior)| (*kind, prior.df, prior.sd);
    priors.iter().map(of).map(|(kind, df, sd)| SharedVariance { kind, df, sd }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_stats::power::Looks;

    /// Four blocks that agree to .05 % by luck, while the turns inside each give an error of 1 %.
    #[test]
    fn blocks_that_agree_by_luck_have_the_error_inside_a_block() {
        let rules = Rules::default();
        let host = Widening::default();
        let family =
            Family { rules: &rules, metric: Metric::Rate, looks: None, cluster: None, host };
        let differences = [0.005, 0.0055, 0.0045, 0.005];
        let with = |block_errors| {
            let list = PairList { block_errors, ..PairList::of(&differences) };
            let (judgements, _) = judge(&family, &[list]);
            let test = judgements[0].test.clone().unwrap();
            (judgements[0].verdict, test.se, test.df)
        };
        let (lucky, _, _) = with(&[]);
        assert_eq!(lucky, Verdict::FasterSmall);
        let (honest, se, df) = with(&[0.01; 4]);
        assert_ne!(honest, Verdict::FasterSmall);
        assert!((se - 0.005).abs() < 1e-12 && df == 3.0, "{se} {df}");
        // An error below the scatter changes nothing.
        assert_eq!(with(&[1e-6; 4]), with(&[]));
    }

    #[test]
    fn copies_prove_nothing() {
        let rules = Rules::default();
        let looks = Looks::new(2, 4);
        for looks in [None, Some(&looks)] {
            let host = Widening::default();
            let family = Family { rules: &rules, metric: Metric::Rate, looks, cluster: None, host };
            let (half, same) = (vec![0.5f64.ln(); 3], vec![0.0; 3]);
            for step in [&half, &same] {
                // A step by itself, and among enough others to lend each other variance.
                for count in [1, 6] {
                    let list = PairList::of(step);
                    let (judgements, prior) = judge(&family, &vec![list; count]);
                    assert!(prior.is_empty() && judgements.len() == count);
                    for judgement in judgements {
                        assert_eq!(judgement.verdict, Verdict::NoVerdict);
                        assert!(judgement.test.is_none());
                        let why = judgement.reasons.join(" ");
                        assert!(why.contains("3 pairs are identical to the last digit"), "{why}");
                    }
                }
            }
        }
    }
}
