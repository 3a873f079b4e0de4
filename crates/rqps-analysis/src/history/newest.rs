//! A result set against the newest level of a history.

use std::collections::{BTreeMap, BTreeSet};

use super::{DateOptions, DatePoint, StepDates, host_difference, points};
use crate::comparison::{Comparison, StepComparison};
use rqps_model::metric::{Direction, Metric};
use rqps_model::verdict::Rules;
use rqps_stats::summary::{mean, median};
use rqps_stats::{Interval, Prediction};

/// Fewer result sets tell too little of how they scatter, unless an earlier level does.
const SETS_MIN: usize = 4;

/// Earlier result sets, and in which of them the speed of a step was accepted.
#[derive(Clone, Debug)]
pub struct PastSets {
    /// Their runs.
    pub comparison: Comparison,
    /// Result set → steps whose speed in it was accepted as a new level.
    pub accepted: BTreeMap<String, BTreeSet<String>>,
    /// True if all its hosts are that of the new result set, such as before a new kernel.
    pub same_host: bool,
}

/// A step of a target in the new result sets, beside the same in the history.
#[derive(Clone, Debug, PartialEq)]
pub struct Newest {
    /// Label of the target.
    pub label: String,
    /// Name of the step.
    pub step: String,
    /// Result sets of the newest level, on the same host.
    pub sets: usize,
    /// Start of the newest level, RFC 3339; empty without result sets.
    pub since: String,
    /// True if both were divided by the baseline of their own result set.
    pub is_relative: bool,
    /// New value / level. NaN without result sets.
    pub ratio: f64,
    /// New value / what the level predicts, at both ends of its 95 % prediction interval; `None`
    /// with too few result sets.
    pub interval: Option<Interval>,
    /// Result sets beside the level, with their values divided by it: outliers, and the last ones
    /// if they are off and were not accepted.
    pub beside: Vec<(String, f64)>,
    /// Without result sets of this host: how the newest other host of the history differs.
    pub other_host: Option<String>,
    /// p that it is worse than the level by more than τ; `None` with too few result sets.
    pub p_worse: Option<f64>,
}

impl Newest {
    /// The reason why there is no test.
    pub fn why_open(&self) -> String {
        match self.sets {
            0 => {
                let none = "the history has no result set of this target, step and host";
                match &self.other_host {
                    Some(other) => format!("{none}; {other}"),
                    None => none.to_owned(),
                }
            }
            sets => format!(
                "the newest level of the history has {sets} result sets on this host; a test needs \
                 {SETS_MIN}"
            ),
        }
    }
}

/// Holds the new result sets against the newest level of the past ones, for each step and target:
/// the baseline, too, if it is all there is to hold.
///
/// If every result set has the baseline, the values are ratios to it, because the baseline measures
/// the speed of the host on that day. The new value is compared with the [`Prediction`] of the
/// level's logarithms.
pub fn against_newest(
    new: &Comparison,
    past: &PastSets,
    metric: Metric,
    rules: &Rules,
) -> Vec<Newest> {
    let mut found = Vec::new();
    // A night was reported if it passed Holm's first step.
    let alpha = rules.alpha / new.measured_steps().count().max(1) as f64;
    let walk = WalkRules { metric, tau: rules.tau, delta: rules.delta, alpha };
    for step in new.measured_steps() {
        let earlier = past.comparison.steps.iter().find(|other| other.name == step.name);
        let first = usize::from(new.targets.len() > 1);
        for place in first..new.targets.len() {
            for (host, now) in points(new, &step.targets[place], metric, None) {
                let sides = Sides { new, past, step, earlier, place, host: &host, walk };
                found.push(sides.judge(&now, rules.confidence));
            }
        }
    }
    found
}

/// One step of one target on one host, now and before.
struct Sides<'a> {
    new: &'a Comparison,
    past: &'a PastSets,
    step: &'a StepComparison,
    earlier: Option<&'a StepComparison>,
    place: usize,
    host: &'a str,
    walk: WalkRules,
}

impl Sides<'_> {
    fn judge(&self, now: &[DatePoint], confidence: f64) -> Newest {
        let label = &self.new.targets[self.place].label;
        let before = self.before(label);
        let baseline = &self.new.targets[0].label;
        let divided = (self.place > 0)
            .then(|| self.divided(baseline, now, &before))
            .flatten()
            .filter(|(_, before)| !before.is_empty());
        let is_relative = divided.is_some();
        let (now, before) = divided.unwrap_or((now.to_vec(), before));
        let is_accepted = |point: &DatePoint| {
            let steps = self.past.accepted.get(&point.result_set);
            steps.is_some_and(|steps| steps.contains(&self.step.name))
        };
        let Reference { level, aside, off, next } = reference(&before, is_accepted, &self.walk);
        let logs: Vec<f64> = level.iter().map(|place| before[*place].value.ln()).collect();
        let value = mean(&now.iter().map(|point| point.value.ln()).collect::<Vec<f64>>());
        let beside = aside.iter().chain(&off).map(|place| &before[*place]);
        let beside =
            beside.map(|point| (point.date.clone(), (point.value.ln() - mean(&logs)).exp()));
        let mut newest = Newest {
            label: label.clone(),
            step: self.step.name.clone(),
            sets: level.len(),
            since: level.first().map(|place| before[*place].date.clone()).unwrap_or_default(),
            beside: beside.collect(),
            is_relative,
            ratio: f64::NAN,
            interval: None,
            p_worse: None,
            other_host: self.other_host(label),
        };
        if logs.is_empty() {
            return newest;
        }
        newest.ratio = (value - mean(&logs)).exp();
        if let Some(next) = next {
            let badness = self.walk.badness(value.exp());
            let Interval { low, high } = next.interval(confidence);
            let [low, high] = [badness - high, badness - low];
            newest.interval = Some(match self.walk.metric.better() {
                Direction::Lower => Interval { low, high }.exp(),
                Direction::Higher | Direction::Neither => Interval { low: -high, high: -low }.exp(),
            });
            newest.p_worse = Some(next.p_above(badness - self.walk.tau));
        }
        newest
    }

    /// Points of a label in the history, on this host.
    fn before(&self, label: &str) -> Vec<DatePoint> {
        let past = &self.past.comparison;
        let place = past.targets.iter().position(|target| target.label == label);
        let (Some(step), Some(place)) = (self.earlier, place) else { return Vec::new() };
        let one_host = self.past.same_host.then_some(self.host);
        let mut hosts = points(past, &step.targets[place], self.walk.metric, one_host);
        hosts.remove(self.host).unwrap_or_default()
    }

    /// How the newest host on which the history has the label differs from this one.
    fn other_host(&self, label: &str) -> Option<String> {
        let past = &self.past.comparison;
        let runs = past.runs.iter().filter(|run| run.key.label == label);
        let newest = runs.max_by_key(|run| &run.started)?;
        let other = newest.host_fingerprint.as_str();
        (other != self.host).then(|| {
            format!(
                "its newest host {other} differs ({}): --same-host takes both for one",
                host_difference(past.hosts.get(other), self.new.hosts.get(self.host))
            )
        })
    }

    /// Both divided by the baseline of the same result sets; `None` if one has no baseline.
    fn divided(
        &self,
        baseline: &str,
        now: &[DatePoint],
        before: &[DatePoint],
    ) -> Option<(Vec<DatePoint>, Vec<DatePoint>)> {
        let mut baselines = points(self.new, &self.step.targets[0], self.walk.metric, None);
        let new = quotients(now, &baselines.remove(self.host)?)?;
        Some((new, quotients(before, &self.before(baseline))?))
    }
}

fn quotients(points: &[DatePoint], baselines: &[DatePoint]) -> Option<Vec<DatePoint>> {
    let baselines: BTreeMap<&str, f64> =
        baselines.iter().map(|baseline| (baseline.result_set.as_str(), baseline.value)).collect();
    let quotient = |point: &DatePoint| {
        let baseline = baselines.get(point.result_set.as_str())?;
        Some(DatePoint { value: point.value / baseline, ..point.clone() })
    };
    points.iter().map(quotient).collect()
}

// The level that a new result set is held against: walked night by night, so that one broken
// night moves nothing and a loss stays a loss until somebody accepts it.

/// Fewer differences within levels tell too little of how result sets scatter.
const DF_MIN: f64 = 3.0;
/// A point off by this many standard deviations of its neighbours' differences, which agree with
/// each other, is an outlier.
const OUTLIER_SDS: f64 = 5.0;
/// A point that is off with less probability than this is no scatter, also if the next is not off.
const NEVER: f64 = 0.001;
/// Points that a level has at least, unless it was accepted.
const LEVEL_MIN: usize = 2;

/// What counts as another level.
#[derive(Clone, Copy, Debug)]
struct WalkRules {
    /// The metric.
    pub metric: Metric,
    /// τ, a natural logarithm: smaller differences are no evidence.
    pub tau: f64,
    /// δ: a smaller loss is none.
    pub delta: f64,
    /// Level of the test of each point.
    pub alpha: f64,
}

impl WalkRules {
    /// ln of a value so that more is worse.
    fn badness(&self, value: f64) -> f64 {
        match self.metric.better() {
            Direction::Lower => value.ln(),
            Direction::Higher | Direction::Neither => -value.ln(),
        }
    }

    /// δ as a difference of [`WalkRules::badness`].
    fn margin(&self) -> f64 {
        match self.metric.better() {
            Direction::Lower => self.delta.ln_1p(),
            Direction::Higher | Direction::Neither => -(-self.delta).ln_1p(),
        }
    }
}

/// The level, and what is not in it. Places are those of the points.
#[derive(Clone, Debug, Default, PartialEq)]
struct Reference {
    /// Points of the level.
    pub level: Vec<usize>,
    /// Outliers.
    pub aside: Vec<usize>,
    /// The last points, if they are off the level: worse and not accepted, or a single better one.
    pub off: Vec<usize>,
    /// The prediction of the next point, as badness; `None` with too few points.
    pub next: Option<Prediction>,
}

/// Walks over points, the oldest first. `accepted` tells at which of them the present speed was
/// accepted as the new level.
fn reference(
    points: &[DatePoint],
    accepted: impl Fn(&DatePoint) -> bool,
    rules: &WalkRules,
) -> Reference {
    let values: Vec<f64> = points.iter().map(|point| rules.badness(point.value)).collect();
    let mut walk = Walk::new(&values, rules);
    for (place, point) in points.iter().enumerate() {
        walk.take(place, accepted(point));
    }
    walk.end(points)
}

struct Walk<'a> {
    values: &'a [f64],
    rules: &'a WalkRules,
    outliers: Vec<usize>,
    found: Reference,
    /// Sum of squares and degrees of freedom of earlier levels.
    earlier: (f64, f64),
    /// True if the points that are off are worse.
    off_is_worse: bool,
    /// True if one of them is no scatter.
    off_is_sure: bool,
}

impl<'a> Walk<'a> {
    fn new(values: &'a [f64], rules: &'a WalkRules) -> Walk<'a> {
        Walk {
            values,
            rules,
            outliers: outliers(values, rules.margin()),
            found: Reference::default(),
            earlier: (0.0, 0.0),
            off_is_worse: false,
            off_is_sure: false,
        }
    }

    fn take(&mut self, place: usize, is_accepted: bool) {
        if is_accepted {
            self.found.off.push(place);
            return self.adopt();
        }
        if self.outliers.contains(&place) {
            return self.found.aside.push(place);
        }
        let Some((is_worse, p)) = self.off(self.values[place]) else {
            // What did not last was scatter, or an outlier.
            let off = std::mem::take(&mut self.found.off);
            let to = if self.off_is_sure { &mut self.found.aside } else { &mut self.found.level };
            to.extend(off);
            self.off_is_sure = false;
            return self.found.level.push(place);
        };
        if is_worse != self.off_is_worse {
            self.found.aside.append(&mut self.found.off);
            self.off_is_sure = false;
        }
        self.off_is_worse = is_worse;
        self.off_is_sure |= p <= NEVER;
        self.found.off.push(place);
        if !is_worse && self.found.off.len() >= LEVEL_MIN {
            self.adopt();
        }
    }

    /// Whether a value is worse or better than the level predicts, with its p; `None` if neither
    /// can be shown or counts.
    fn off(&self, value: f64) -> Option<(bool, f64)> {
        let next = self.next(&self.found.level)?;
        let (above, tau) = (value - next.mean, self.rules.tau);
        let p = next.p_above(next.mean + above.abs() - tau);
        let counts = p <= self.rules.alpha && above.abs() >= self.rules.margin();
        counts.then_some((above > 0.0, p))
    }

    /// The points that are off become the level.
    fn adopt(&mut self) {
        let (squares, df) = scatter(self.values, &self.found.level);
        self.earlier = (self.earlier.0 + squares, self.earlier.1 + df);
        self.found.level = std::mem::take(&mut self.found.off);
        self.off_is_sure = false;
    }

    fn next(&self, level: &[usize]) -> Option<Prediction> {
        let (squares, df) = scatter(self.values, level);
        let (squares, df) = (squares + self.earlier.0, df + self.earlier.1);
        let n = level.len() as f64;
        let of_level: Vec<f64> = level.iter().map(|place| self.values[*place]).collect();
        let error = (squares / df).sqrt() * (1.0 + 1.0 / n).sqrt();
        (df >= DF_MIN && n > 0.0).then(|| Prediction { mean: mean(&of_level), error, df })
    }

    /// The level within the walked points since their last change: smaller changes, which no single
    /// point shows. A loss that counts is no new level.
    fn end(mut self, points: &[DatePoint]) -> Reference {
        let kept: Vec<DatePoint> = self.found.level.iter().map(|at| points[*at].clone()).collect();
        let of = DateOptions {
            metric: self.rules.metric,
            as_otava: false,
            max_p: NEVER,
            min_magnitude: 0.0,
            same_host: false,
        };
        for change in StepDates::find("", kept, &of).changes.iter().rev() {
            if self.found.level.len() < change.at + LEVEL_MIN || change.at < LEVEL_MIN {
                continue;
            }
            let (old, new) = self.found.level.split_at(change.at);
            let mean_of = |part: &[usize]| {
                mean(&part.iter().map(|place| self.values[*place]).collect::<Vec<f64>>())
            };
            let is_loss = mean_of(new) - mean_of(old) >= self.rules.margin();
            let (level, rest) = if is_loss { (old, new) } else { (new, old) };
            let (squares, df) = scatter(self.values, rest);
            self.earlier = (self.earlier.0 + squares, self.earlier.1 + df);
            if is_loss {
                self.found.off.extend(rest);
                self.found.off.sort_unstable();
            }
            self.found.level = level.to_vec();
            if !is_loss {
                break;
            }
        }
        self.found.next = self.next(&self.found.level);
        self.found
    }
}

/// Sum of squares around the mean, and its degrees of freedom.
fn scatter(values: &[f64], level: &[usize]) -> (f64, f64) {
    let own: Vec<f64> = level.iter().map(|place| values[*place]).collect();
    let centre = mean(&own);
    let squares = own.iter().map(|value| (value - centre).powi(2)).sum();
    if own.len() < LEVEL_MIN { (0.0, 0.0) } else { (squares, (own.len() - 1) as f64) }
}

/// Points that stick out from both neighbours, which agree with each other.
pub(super) fn outliers(values: &[f64], margin: f64) -> Vec<usize> {
    let differences: Vec<f64> = values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect();
    // As in the spread of versions with one value each.
    let sd = 1.4826 / std::f64::consts::SQRT_2 * median(&differences).unwrap_or(0.0);
    let least = margin.max(OUTLIER_SDS * sd);
    let sticks_out = |at: &usize| {
        let (left, own, right) = (values[at - 1], values[*at], values[at + 1]);
        let gap = (own - left).abs().min((own - right).abs());
        gap > least && (left - right).abs() < gap / 2.0 && (own > left) == (own > right)
    };
    (1..values.len().saturating_sub(1)).filter(sticks_out).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: WalkRules =
        WalkRules { metric: Metric::Rate, tau: 0.00995, delta: 0.02, alpha: 0.05 };

    fn walk(rates: &[f64], accepted: &[usize]) -> Reference {
        let point = |(day, value): (usize, &f64)| DatePoint {
            date: format!("2026-01-{day:02}"),
            result_set: day.to_string(),
            value: *value,
            n: 1,
        };
        let points: Vec<DatePoint> = rates.iter().enumerate().map(point).collect();
        let is_accepted =
            |point: &DatePoint| accepted.iter().any(|day| point.result_set == day.to_string());
        reference(&points, is_accepted, &RULES)
    }

    /// Eight nights that scatter by 0.3 %.
    const USUAL: [f64; 8] = [1000.0, 1004.0, 997.0, 1001.0, 1003.0, 996.0, 1000.0, 1002.0];

    fn after(more: &[f64]) -> Vec<f64> {
        [&USUAL, more].concat()
    }

    fn p_of(found: &Reference, rate: f64) -> f64 {
        let next = found.next.expect("a prediction");
        next.p_above(RULES.badness(rate) - RULES.tau)
    }

    #[test]
    fn a_broken_night_is_set_aside_and_a_loss_right_after_it_is_seen() {
        for more in [&[400.0][..], &[400.0, 940.0], &[400.0, 941.0, 938.0], &[1700.0, 940.0]] {
            let found = walk(&after(more), &[]);
            assert_eq!(found.level, [0, 1, 2, 3, 4, 5, 6, 7], "{more:?}: {found:?}");
            assert!(p_of(&found, 940.0) < 0.001, "{more:?}");
            assert!(p_of(&found, 1001.0) > 0.5, "{more:?}");
        }
        let found = walk(&after(&[400.0, 1001.0, 999.0]), &[]);
        assert_eq!((found.aside, found.level.len(), found.off), (vec![8], 10, vec![]));
    }

    #[test]
    fn a_loss_stays_one_until_it_is_accepted() {
        let lost: Vec<f64> = USUAL.iter().map(|rate| rate * 0.94).collect();
        let nights = after(&lost);
        for night in 9..nights.len() {
            let found = walk(&nights[..night], &[]);
            assert!(p_of(&found, nights[night]) < 0.001, "night {night}: {found:?}");
            assert_eq!(found.off.len(), night - 8);
        }
        // Accepted on its first night: the new level is known with the scatter of the old one.
        let found = walk(&nights[..9], &[8]);
        assert_eq!((&found.level, found.off.len()), (&vec![8], 0));
        assert!(p_of(&found, 939.0) > 0.5 && p_of(&found, 880.0) < 0.001);
        // Accepted later, it begins where it was first off.
        assert_eq!(walk(&nights[..12], &[10]).level, [8, 9, 10, 11]);
    }

    #[test]
    fn two_better_nights_are_the_new_level() {
        let found = walk(&after(&[1100.0]), &[]);
        assert_eq!((found.level.len(), found.off), (8, vec![8]));
        let found = walk(&after(&[1100.0, 1103.0]), &[]);
        assert_eq!((found.level, found.off), (vec![8, 9], vec![]));
    }

    #[test]
    fn scatter_stays_in_the_level() {
        let noisy = [1000.0, 1030.0, 985.0, 1010.0, 970.0, 1022.0, 960.0, 1008.0, 1001.0, 978.0];
        assert_eq!(walk(&noisy, &[]).level.len(), 10);
        let few = walk(&USUAL[..3], &[]);
        assert_eq!((few.level.len(), few.next), (3, None));
    }
}
