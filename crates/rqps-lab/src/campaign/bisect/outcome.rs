//! The result of a bisection, from its log.

use std::collections::BTreeSet;

use super::choice::{Choice, level};
use super::measuring::{Measuring, counts_of};
use rqps_analysis::bisection::{Bisection, BisectionCost, Culprit, VersionFacts};
use rqps_analysis::pairing::CONFIDENCE;
use rqps_model::bisection::{BisectionEntry, BisectionMeasurement, BisectionPass};
use rqps_model::metric::Metric;
use rqps_stats::Interval;
use rqps_stats::bisection::EndsDifference;
use rqps_stats::moderated::Estimate;
use rqps_stats::summary::mean;

/// The difference of the ends: ln(candidate / baseline), with its 95 % interval if it scatters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ends {
    pub(super) ln: f64,
    pub(super) interval: Option<Interval>,
}

impl Ends {
    /// By values that scatter: Student's t, because the scatter is estimated from few of them.
    pub(super) fn of(ends: EndsDifference) -> Ends {
        let EndsDifference { difference, error, df } = ends;
        let estimate = Estimate { mean: difference, se: error, df: df as f64 };
        Ends { ln: difference, interval: (df > 0).then(|| estimate.interval(CONFIDENCE)) }
    }
}

/// The outcome; `culprits` is `None` if the ends do not differ.
pub(super) fn outcome(
    measuring: &Measuring<'_>,
    choice: &Choice,
    ends: Ends,
    culprits: Option<Vec<Culprit>>,
) -> Bisection {
    let request = measuring.request();
    let entries = measuring.entries();
    let versions = request.versions.iter().enumerate().map(|(place, version)| {
        let values = values(entries, choice.metric, place);
        let n = values.len();
        let lost = entries.iter().find_map(|entry| match entry {
            BisectionEntry::Lost { place: at, reason } if *at == place => Some(reason.clone()),
            _ => None,
        });
        VersionFacts {
            label: version.target.label.clone(),
            about: version.about.clone(),
            ratio: ratio(entries, choice.metric, place),
            n,
            lost: lost.filter(|_| n == 0 && place > 0),
            passed_over: place > 0 && version.mass <= 0.0,
        }
    });
    let versions: Vec<VersionFacts> = versions.collect();
    Bisection {
        step: request.step.clone(),
        metric: choice.metric.name().to_owned(),
        reason: choice.reason.clone(),
        ends: ends.ln.exp(),
        ends_interval: ends.interval.map(Interval::exp),
        reproduced: culprits.is_some(),
        culprits: culprits.unwrap_or_default(),
        cost: cost(entries, versions.iter().filter(|version| version.lost.is_some()).count()),
        versions,
    }
}

fn measured(entries: &[BisectionEntry]) -> impl Iterator<Item = &BisectionMeasurement> {
    entries.iter().filter_map(|entry| match entry {
        BisectionEntry::Measured(measured) => Some(measured),
        BisectionEntry::Lost { .. } => None,
    })
}

/// Values of a version by the metric of the search: its own, or ln ratios against another.
fn values(entries: &[BisectionEntry], metric: Metric, place: usize) -> Vec<f64> {
    let what = pass(metric);
    let of_place = measured(entries)
        .filter(|it| it.what == what && it.places.last() == Some(&place))
        .filter(|it| what == BisectionPass::Rate || it.places.len() == 1);
    of_place.flat_map(|it| it.values.get(metric.name()).cloned().unwrap_or_default()).collect()
}

fn pass(metric: Metric) -> BisectionPass {
    if counts_of(metric).is_some() { BisectionPass::Count } else { BisectionPass::Rate }
}

/// A version relative to the baseline.
fn ratio(entries: &[BisectionEntry], metric: Metric, place: usize) -> Option<f64> {
    if pass(metric) == BisectionPass::Count {
        let of = |place| {
            let values = values(entries, metric, place);
            (!values.is_empty()).then(|| level(metric, &values))
        };
        return Some((of(place)? - of(0)?).exp());
    }
    ln_ratio(entries, metric, place).map(f64::exp)
}

/// ln(version / baseline): against the baseline itself, else through the version that it was
/// measured against.
fn ln_ratio(entries: &[BisectionEntry], metric: Metric, place: usize) -> Option<f64> {
    if place == 0 {
        return Some(0.0);
    }
    let of_place = |against: usize| {
        let pairs = measured(entries)
            .filter(|it| it.what == BisectionPass::Rate && it.places == [against, place]);
        let values: Vec<f64> = pairs
            .flat_map(|it| it.values.get(metric.name()).cloned().unwrap_or_default())
            .collect();
        (!values.is_empty()).then(|| mean(&values))
    };
    let through = |against: usize| Some(of_place(against)? + ln_ratio(entries, metric, against)?);
    (0..place).find_map(through)
}

fn cost(entries: &[BisectionEntry], lost: usize) -> BisectionCost {
    let places: BTreeSet<usize> =
        measured(entries).flat_map(|measured| measured.places.iter().copied()).collect();
    let mut cost = BisectionCost { versions: places.len(), lost, ..BisectionCost::default() };
    for measured in measured(entries) {
        cost.seconds += measured.seconds;
        let n = measured.values.values().map(Vec::len).max().unwrap_or(0);
        match measured.what {
            BisectionPass::Count => cost.counts += n * measured.places.len(),
            BisectionPass::Rate | BisectionPass::Check => cost.blocks += n,
        }
    }
    cost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_give_the_interval_of_student_s_t() {
        let ends = Ends::of(EndsDifference { difference: 0.1, error: 0.01, df: 5 });
        let interval = ends.interval.expect("an interval");
        // t(0.975, 5) = 2.570582.
        assert!((interval.high - 0.125_705_82).abs() < 1e-8, "{interval:?}");
        assert!((interval.low - 0.074_294_18).abs() < 1e-8, "{interval:?}");
        let none = Ends::of(EndsDifference { difference: 0.1, error: 0.01, df: 0 });
        assert_eq!(none.interval, None);
    }
}
