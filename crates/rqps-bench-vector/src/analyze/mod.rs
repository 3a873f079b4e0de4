//! Metrics and rules of vector search.

pub mod verify;

use std::collections::BTreeMap;

use rqps_analysis::Extension;
use rqps_analysis::caveat::{Caveat, CaveatKind, Evidence};
use rqps_analysis::comparison::{Comparison, StepComparison, TargetResult};
use rqps_analysis::measurement::Measurement;
use rqps_analysis::pairing::{CONFIDENCE, pair_key};
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::metric::Metric;
use rqps_model::script::StepParameters;
use rqps_model::vector::{SearchPoint, of_clients};
use rqps_stats::moderated::holm;
use rqps_stats::paired::mean_interval;
use rqps_stats::summary::{self, median};
use rqps_stats::{Interval, student};

/// The hooks.
pub(crate) const EXTENSION: Extension =
    Extension { derive: steps, caveats: recalls, ..Extension::none("vector") };

/// Largest difference between recalls that count as equal.
const RECALL_NEAR: f64 = 0.005;

/// The caveat on searches of two DBMSs whose recalls differ by more than those of two builds of one
/// index. Between builds of one DBMS, a lower recall is a finding of its own.
fn recalls(evidence: &Evidence<'_>) -> Vec<Caveat> {
    let comparison = evidence.comparison;
    let dbms = |place: usize| {
        comparison.targets.get(place).and_then(|facts| Some(facts.target.as_ref()?.dbms))
    };
    let mut caveats = Vec::new();
    for step in comparison.measured_steps().filter(|step| !step.is_choice()) {
        let recall = |place: usize| step.targets.get(place)?.absolute(Metric::Recall);
        let Some(baseline) = recall(0) else { continue };
        for (place, target) in step.targets.iter().enumerate().skip(1) {
            let Some(other) = recall(place).filter(|_| dbms(0) != dbms(place)) else { continue };
            if (other - baseline).abs() > RECALL_NEAR {
                caveats.push(Caveat {
                    kind: CaveatKind::DifferentRecall,
                    target: Some(target.label.clone()),
                    steps: vec![step.name.clone()],
                    text: format!("recall {other:.4}, {baseline:.4} of {}", comparison.baseline),
                });
            }
        }
    }
    caveats
}

// Steps that compare targets at equal recall: for each published recall, every target with its
// fastest configuration that reaches it. So indexes with different parameters can be compared.

/// A step for each published recall that the baseline and another target reach. Its name is
/// `recall=0.99`, or `recall=0.99.clients=4` for several clients. A target's measurements in it are
/// those of its fastest configuration with at least that recall. A recall for which all targets
/// have the same configurations as for the next higher one gives no step.
///
/// The caller computes the ratios.
pub(crate) fn steps(comparison: &Comparison) -> Vec<StepComparison> {
    let curves = curves(comparison);
    let mut clients: Vec<u32> = curves.iter().map(|curve| curve.clients).collect();
    clients.dedup();
    let mut steps = Vec::new();
    for clients in clients {
        let mine: Vec<&Curve> = curves.iter().filter(|curve| curve.clients == clients).collect();
        let mut above = Vec::new();
        for recall in TARGETS {
            let choices = choices(&mine, comparison.targets.len(), recall);
            let reached = choices.iter().skip(1).any(Option::is_some) && choices[0].is_some();
            if reached && choices != above {
                steps.push(step(comparison, &choices, recall, clients));
            }
            above = choices;
        }
    }
    steps
}

/// For each target the name of the step of its best point; `None` if it does not reach the recall.
fn choices(curves: &[&Curve], targets: usize, recall: f64) -> Vec<Option<String>> {
    let of = |place: usize| {
        let curve = curves.iter().find(|curve| curve.place == place)?;
        let best: &CurvePoint = &curve.points[curve.best_for(recall)?.best];
        Some(best.point.step())
    };
    (0..targets).map(of).collect()
}

fn step(
    comparison: &Comparison,
    choices: &[Option<String>],
    recall: f64,
    clients: u32,
) -> StepComparison {
    let targets = choices.iter().enumerate().map(|(place, choice)| {
        let measured = choice.as_ref().and_then(|name| {
            let step = comparison.steps.iter().find(|step| step.name == *name)?;
            Some(step.targets[place].chosen_for_another(name))
        });
        measured.unwrap_or_else(|| TargetResult::none(&comparison.targets[place].label))
    });
    StepComparison {
        name: format!("recall={recall:.2}{}", of_clients(clients)),
        client_count: None,
        group: Group::Point,
        detail: format!(
            "fastest configuration of each target with a mean recall of at least {recall:.2}"
        ),
        rate: RateUnit::Queries,
        targets: targets.collect(),
        parameters: StepParameters::default(),
    }
}

// Curves of recall and rate: points with intervals, frontiers, the best configuration for a recall
// and those equal to it, and lost recall.

/// The recalls of the published table.
pub const TARGETS: [f64; 6] = [1.0, 0.99, 0.98, 0.97, 0.96, 0.95];

/// Fewest pairs for a test between two points; with fewer, [`NEAR`] decides.
const PAIRS_MIN: usize = 3;
/// Rates that differ by a smaller share count as equal if there is no test: builds of one index
/// differ by as much.
const NEAR: f64 = 0.03;
/// Smallest loss of mean recall that is a finding, however certain.
const DROP_MIN: f64 = 0.002;
/// The largest difference of recall between two builds of one index in published data; with few
/// pairs, a larger one is told. Data with many equal rows scatter more.
const DROP_UNSURE: f64 = 0.024;
/// Chance that any recall of a target is called lost where none is.
const DROP_ALPHA: f64 = 0.05;

/// A mean over independent builds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The arithmetic mean; for rates the geometric mean.
    pub value: f64,
    /// The 95 % t interval; `None` for fewer than two builds.
    pub interval: Option<Interval>,
}

/// A point of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct CurvePoint {
    /// Parameters of the search.
    pub point: SearchPoint,
    /// Recall.
    pub recall: Mean,
    /// Queries per second.
    pub rate: Mean,
    /// Medians over the builds of [`Metric::percentiles`], ms.
    pub latency: Vec<Option<f64>>,
    /// Seconds to build the index, without table and rows; median.
    pub index_seconds: Option<f64>,
    /// Seconds for table, rows and index, median; isecs in published work.
    pub build_seconds: Option<f64>,
    /// Size of the index, MiB, median.
    pub index_mib: Option<f64>,
    /// Resident memory of the server under these queries, MiB, median.
    pub server_mib: Option<f64>,
    /// True if no other point of the curve is better in both recall and rate.
    pub frontier: bool,
    /// Indexes of its runs in the comparison.
    pub runs: Vec<usize>,
    /// ln rate of each run, in the order of `runs`.
    ln_rates: Vec<f64>,
}

/// All points of a target with one number of clients.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Label of the target.
    pub label: String,
    /// Index of the target in the comparison.
    pub place: usize,
    /// Number of clients.
    pub clients: u32,
    /// Points by ascending recall.
    pub points: Vec<CurvePoint>,
}

/// The best configuration for a recall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Index of the point with the highest rate.
    pub best: usize,
    /// Indexes of all points equal to it within the error, including it, the fastest first.
    pub tied: Vec<usize>,
    /// The one of them whose index is built soonest; `None` if no build was timed.
    pub cheapest: Option<usize>,
}

/// Recall that a target lost against the baseline with equal parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Drop {
    /// Label of the target.
    pub label: String,
    /// The step.
    pub step: String,
    /// Mean recall of the baseline and of the target over the pairs.
    pub recall: [f64; 2],
    /// 95 % t interval of the mean difference, target − baseline.
    pub interval: Option<Interval>,
    /// Number of pairs.
    pub pairs: usize,
    /// True if the scatter between the pairs shows it; false for a large difference of few pairs.
    pub is_sure: bool,
}

/// The curves of all targets, by number of clients and then by target.
pub fn curves(comparison: &Comparison) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for step in &comparison.steps {
        let Some(point) = SearchPoint::of(&step.parameters) else { continue };
        for (place, target) in step.targets.iter().enumerate() {
            let Some(made) = curve_point(comparison, point, place, target) else { continue };
            let same = |curve: &&mut Curve| (curve.clients, curve.place) == (point.clients, place);
            match curves.iter_mut().find(same) {
                Some(curve) => curve.points.push(made),
                None => curves.push(Curve {
                    label: target.label.clone(),
                    place,
                    clients: point.clients,
                    points: vec![made],
                }),
            }
        }
    }
    curves.sort_by_key(|curve| (curve.clients, curve.place));
    for curve in &mut curves {
        let by_recall = |a: &CurvePoint, b: &CurvePoint| {
            let recall = a.recall.value.total_cmp(&b.recall.value);
            recall.then(b.rate.value.total_cmp(&a.rate.value)).then(a.point.cmp(&b.point))
        };
        curve.points.sort_by(by_recall);
        mark_frontier(&mut curve.points);
    }
    curves
}

fn curve_point(
    comparison: &Comparison,
    point: SearchPoint,
    place: usize,
    target: &TargetResult,
) -> Option<CurvePoint> {
    let both: Vec<(&Measurement, f64, f64)> = target
        .samples
        .iter()
        .filter_map(|sample| {
            let recall = sample.get(Metric::Recall)?;
            let rate = sample.get(Metric::Rate).filter(|rate| *rate > 0.0)?;
            Some((sample, recall, rate))
        })
        .collect();
    let recalls: Vec<f64> = both.iter().map(|(_, recall, _)| *recall).collect();
    let ln_rates: Vec<f64> = both.iter().map(|(_, _, rate)| rate.ln()).collect();
    let own = |metric: Metric| {
        let numbers: Vec<f64> =
            both.iter().filter_map(|(sample, _, _)| sample.get(metric)).collect();
        median(&numbers)
    };
    // Measured in the build of its index, or in the step itself for imported ones.
    let of_step = |name: &str, metric: Metric| {
        let step = comparison.steps.iter().find(|step| step.name == name)?;
        step.targets.get(place)?.metrics.get(&metric)?.absolute
    };
    let of_build = |metric: Metric| own(metric).or_else(|| of_step(&point.index_step(), metric));
    let index_seconds = of_build(Metric::IndexSeconds);
    let load_seconds = of_step("load", Metric::LoadSeconds);
    let whole = index_seconds.zip(load_seconds).map(|(index, load)| index + load);
    let exp = |interval: Interval| Interval { low: interval.low.exp(), high: interval.high.exp() };
    let rate = mean(&ln_rates)?;
    let mut recall = mean(&recalls)?;
    // Recall is from 0 to 1.
    recall.interval = recall
        .interval
        .map(|interval| Interval { low: interval.low.max(0.0), high: interval.high.min(1.0) });
    Some(CurvePoint {
        point,
        recall,
        rate: Mean { value: rate.value.exp(), interval: rate.interval.map(exp) },
        latency: Metric::percentiles().map(own).collect(),
        index_seconds,
        build_seconds: of_build(Metric::BuildSeconds).or(whole),
        index_mib: of_build(Metric::IndexSize),
        server_mib: own(Metric::ServerRss),
        frontier: false,
        runs: both.iter().map(|(sample, _, _)| sample.run).collect(),
        ln_rates,
    })
}

fn mean(values: &[f64]) -> Option<Mean> {
    let mean = mean_interval(values, CONFIDENCE)?;
    Some(Mean { value: mean.mean, interval: mean.interval })
}

/// Marks the points that no other point exceeds in both recall and rate: in descending order of
/// rate, each has a higher recall than all before it. Points without recall or rate do not count
/// (the rule of ann-benchmarks).
fn mark_frontier(points: &mut [CurvePoint]) {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_by(|&a, &b| {
        let rate = points[b].rate.value.total_cmp(&points[a].rate.value);
        rate.then(points[b].recall.value.total_cmp(&points[a].recall.value))
    });
    let mut highest = 0.0;
    for place in order {
        let point = &mut points[place];
        point.frontier = point.recall.value > highest && point.rate.value > 0.0;
        highest = point.recall.value.max(highest);
    }
}

impl Curve {
    /// The highest rate among points with a recall of at least `recall`, not rounded; `None` if
    /// there is none.
    pub fn best_for(&self, recall: f64) -> Option<Choice> {
        let mut enough: Vec<usize> =
            (0..self.points.len()).filter(|place| self.points[*place].reaches(recall)).collect();
        enough.sort_by(|&a, &b| self.points[b].rate.value.total_cmp(&self.points[a].rate.value));
        let best = *enough.first()?;
        let is_tied = |place: &usize| self.points[*place].cannot_be_told_from(&self.points[best]);
        let tied: Vec<usize> = enough.into_iter().filter(is_tied).collect();
        let seconds = |place: usize| self.points[place].seconds_to_build();
        let timed = tied.iter().copied().filter_map(|place| Some((place, seconds(place)?)));
        let cheapest = timed.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(place, _)| place);
        Some(Choice { best, tied, cheapest })
    }

    /// The build time that a recall costs: indexes of the points with at least that recall, the
    /// soonest built first, each with a higher rate than all before it. The first one with a wanted
    /// rate shows how long its build takes.
    pub fn soonest_for(&self, recall: f64) -> Vec<usize> {
        let enough = (0..self.points.len()).filter(|place| self.points[*place].reaches(recall));
        let timed = |place: usize| Some((self.points[place].seconds_to_build()?, place));
        let mut order: Vec<(f64, usize)> = enough.filter_map(timed).collect();
        let rate = |place: usize| self.points[place].rate.value;
        order.sort_by(|a, b| a.0.total_cmp(&b.0).then(rate(b.1).total_cmp(&rate(a.1))));
        let mut highest = 0.0;
        let is_faster = |place: &usize| {
            let faster = rate(*place) > highest;
            highest = rate(*place).max(highest);
            faster
        };
        order.into_iter().map(|(_, place)| place).filter(is_faster).collect()
    }
}

impl CurvePoint {
    /// Seconds to build the index; if only the whole was timed, with table and rows.
    pub fn seconds_to_build(&self) -> Option<f64> {
        self.index_seconds.or(self.build_seconds)
    }

    fn reaches(&self, recall: f64) -> bool {
        // A sum of tenths may be slightly less than the whole.
        self.recall.value >= recall - 1e-9
    }

    /// True if the t interval of the differences of ln rates over common runs contains 0; with
    /// fewer than [`PAIRS_MIN`] runs, if the rates differ by less than [`NEAR`].
    fn cannot_be_told_from(&self, best: &CurvePoint) -> bool {
        let differences: Vec<f64> = self
            .runs
            .iter()
            .zip(&self.ln_rates)
            .filter_map(|(run, rate)| {
                let place = best.runs.iter().position(|other| other == run)?;
                Some(rate - best.ln_rates[place])
            })
            .collect();
        let interval = mean_interval(&differences, CONFIDENCE).and_then(|mean| mean.interval);
        match interval {
            Some(interval) if differences.len() >= PAIRS_MIN => interval.high >= 0.0,
            _ => self.rate.value >= best.rate.value * (1.0 - NEAR),
        }
    }
}

/// Recall lost with equal parameters. Sure is a loss that exceeds the scatter from block to block
/// (three pairs or more, t test, adjusted by Holm over the steps of a target); with fewer pairs
/// there is no scatter to hold it against, and only a large one is told.
pub fn drops(comparison: &Comparison) -> Vec<Drop> {
    let dbms = |place: usize| {
        comparison.targets.get(place).and_then(|facts| Some(facts.target.as_ref()?.dbms))
    };
    let mut drops = Vec::new();
    for place in 1..comparison.targets.len() {
        // Another DBMS has another index in a step of the same name.
        if dbms(0) != dbms(place) {
            continue;
        }
        let steps = comparison.measured_steps();
        let all: Vec<(Drop, Option<f64>)> =
            steps.filter_map(|step| drop_of(comparison, step, place)).collect();
        let tested: Vec<f64> = all.iter().filter_map(|(_, p)| *p).collect();
        let mut adjusted = holm(&tested).into_iter();
        for (drop, p) in all {
            let holm = p.and_then(|_| adjusted.next());
            let lost = drop.recall[0] - drop.recall[1];
            match holm {
                Some(p) if p <= DROP_ALPHA && lost >= DROP_MIN => {
                    drops.push(Drop { is_sure: true, ..drop });
                }
                None if lost > DROP_UNSURE => drops.push(drop),
                _ => {}
            }
        }
    }
    let order = |name: &str| comparison.steps.iter().position(|step| step.name == name);
    drops.sort_by_key(|drop| order(&drop.step));
    drops
}

/// The p that a mean difference this far below zero, or farther, is scatter. Without scatter, 0.
fn p_of_loss(differences: &[f64]) -> Option<f64> {
    let (mean, n) = (summary::mean(differences), differences.len() as f64);
    let sd = summary::stddev(differences)?;
    Some(match sd > 0.0 {
        true => student::above(-mean / (sd / n.sqrt()), n - 1.0),
        false if mean < 0.0 => 0.0,
        false => 1.0,
    })
}

fn drop_of(
    comparison: &Comparison,
    step: &StepComparison,
    place: usize,
) -> Option<(Drop, Option<f64>)> {
    let (baseline, target) = (step.targets.first()?, step.targets.get(place)?);
    let recall = |sample: &Measurement| {
        let run = &comparison.runs[sample.run];
        Some((pair_key(run), sample.get(Metric::Recall)?))
    };
    let bases: BTreeMap<_, f64> = baseline.samples.iter().filter_map(recall).collect();
    let pairs: Vec<(f64, f64)> = target
        .samples
        .iter()
        .filter_map(recall)
        .filter_map(|(key, recall)| Some((*bases.get(&key)?, recall)))
        .collect();
    let differences: Vec<f64> = pairs.iter().map(|(baseline, target)| target - baseline).collect();
    let mean = mean_interval(&differences, CONFIDENCE)?;
    let p = p_of_loss(&differences).filter(|_| pairs.len() >= PAIRS_MIN);
    let average =
        |part: fn(&(f64, f64)) -> f64| pairs.iter().map(part).sum::<f64>() / pairs.len() as f64;
    let drop = Drop {
        label: target.label.clone(),
        step: step.name.clone(),
        recall: [average(|pair| pair.0), average(|pair| pair.1)],
        interval: mean.interval,
        pairs: pairs.len(),
        is_sure: false,
    };
    Some((drop, p))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// recall, rate, index seconds; a run per rate.
    fn point(ef: u32, recall: f64, rates: &[f64], index_seconds: f64) -> CurvePoint {
        let ln_rates: Vec<f64> = rates.iter().map(|rate| rate.ln()).collect();
        let rate = mean(&ln_rates).unwrap();
        CurvePoint {
            point: SearchPoint { m: 16, ef_construction: None, ef, clients: 1 },
            recall: Mean { value: recall, interval: None },
            rate: Mean { value: rate.value.exp(), interval: None },
            latency: Vec::new(),
            index_seconds: Some(index_seconds),
            build_seconds: None,
            index_mib: None,
            server_mib: None,
            frontier: false,
            runs: (0..rates.len()).collect(),
            ln_rates,
        }
    }

    fn curve(points: Vec<CurvePoint>) -> Curve {
        Curve { label: "a".to_owned(), place: 0, clients: 1, points }
    }

    #[test]
    fn the_frontier_is_what_nothing_beats() {
        let mut points = vec![
            point(1, 0.90, &[1000.0], 1.0),
            point(2, 0.95, &[900.0], 1.0),
            point(3, 0.93, &[800.0], 1.0),
            point(4, 0.95, &[850.0], 1.0),
            point(5, 1.00, &[100.0], 1.0),
            point(6, 0.0, &[5000.0], 1.0),
        ];
        mark_frontier(&mut points);
        let frontier: Vec<u32> =
            points.iter().filter(|point| point.frontier).map(|point| point.point.ef).collect();
        assert_eq!(frontier, [1, 2, 5]);
    }

    #[test]
    fn the_best_is_the_fastest_that_reaches_the_recall() {
        let curve = curve(vec![
            point(1, 0.949, &[9000.0], 1.0),
            point(2, 0.95, &[5000.0], 9.0),
            point(3, 0.97, &[4900.0], 3.0),
            point(4, 0.99, &[4000.0], 1.0),
        ]);
        let choice = curve.best_for(0.95).unwrap();
        assert_eq!(choice, Choice { best: 1, tied: vec![1, 2], cheapest: Some(2) });
        assert_eq!(curve.best_for(0.98).unwrap().best, 3);
        assert_eq!(curve.best_for(1.0), None);
    }

    #[test]
    fn time_to_a_recall_rises_with_the_rate_that_is_wanted() {
        let curve = curve(vec![
            point(1, 0.949, &[9000.0], 1.0),
            point(2, 0.95, &[5000.0], 9.0),
            point(3, 0.97, &[4900.0], 3.0),
            point(4, 0.99, &[4000.0], 2.0),
            point(5, 0.99, &[3000.0], 2.5),
        ]);
        let found = |recall| {
            let places = curve.soonest_for(recall).into_iter();
            places.map(|place| curve.points[place].point.ef).collect::<Vec<_>>()
        };
        assert_eq!(found(0.95), [4, 3, 2], "5 is built later than 4 and slower");
        assert_eq!(found(0.98), [4]);
        assert_eq!(found(1.0), Vec::<u32>::new());
    }

    #[test]
    fn with_enough_builds_ties_are_tested() {
        // Two per cent apart in every build: different. Ten per cent apart with much noise: equal.
        let curve = curve(vec![
            point(1, 1.0, &[1000.0, 1010.0, 990.0, 1000.0], 5.0),
            point(2, 1.0, &[980.0, 990.0, 970.0, 981.0], 1.0),
            point(3, 1.0, &[700.0, 1300.0, 600.0, 1200.0], 2.0),
        ]);
        let choice = curve.best_for(1.0).unwrap();
        assert_eq!(choice, Choice { best: 0, tied: vec![0, 2], cheapest: Some(2) });
    }
}
