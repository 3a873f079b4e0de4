//! Counts of findings, and the shares and intervals that follow.

use std::collections::BTreeSet;

use rqps_model::verdict::Verdict;
use rqps_stats::clopper_pearson;
use rqps_stats::summary::{mean, median};

use super::finding::{Comparison, Finding};

/// Confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// Some findings, which are counted together.
pub(crate) struct Counts<'a>(Vec<&'a Finding>);

impl<'a> Counts<'a> {
    pub(crate) fn of(
        all: &[&'a Finding],
        is_wanted: impl Fn(&Finding) -> bool,
    ) -> Option<Counts<'a>> {
        let wanted: Vec<&Finding> = all.iter().copied().filter(|one| is_wanted(one)).collect();
        (!wanted.is_empty()).then_some(Counts(wanted))
    }

    /// Verdicts: one for each metric of each step of each comparison.
    pub(crate) fn verdicts(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn with(&self, holds: impl Fn(&Finding) -> bool) -> usize {
        self.0.iter().filter(|one| holds(one)).count()
    }

    pub(crate) fn comparisons(&self) -> usize {
        self.comparisons_with(|_| true)
    }

    /// Comparisons in which a verdict on any step does this.
    pub(crate) fn comparisons_with(&self, holds: impl Fn(&Finding) -> bool) -> usize {
        let found = self.0.iter().filter(|one| holds(one));
        found.map(|one| &one.comparison).collect::<BTreeSet<&Comparison>>().len()
    }

    /// The number of intervals that contain the true ratio, and of those for which it is known.
    pub(crate) fn holding_truth(&self) -> (usize, usize) {
        let known: Vec<bool> = self.0.iter().filter_map(|one| one.holds_truth()).collect();
        (known.iter().filter(|holds| **holds).count(), known.len())
    }

    /// The median half width of the intervals, as a logarithm.
    pub(crate) fn half_width(&self) -> Option<f64> {
        let intervals = self.0.iter().filter_map(|one| one.interval);
        let widths: Vec<f64> = intervals.map(|one| (one.high / one.low).ln() / 2.0).collect();
        median(&widths)
    }

    /// The geometric mean of the true ratios.
    pub(crate) fn true_ratio(&self) -> Option<f64> {
        geometric_mean(self.0.iter().filter_map(|one| one.true_ratio))
    }

    /// The geometric mean of the measured ratios.
    pub(crate) fn found_ratio(&self) -> Option<f64> {
        geometric_mean(self.0.iter().filter_map(|one| one.found))
    }

    /// The mean time of measuring, of both targets and all blocks.
    pub(crate) fn measured_seconds(&self) -> f64 {
        mean(&self.0.iter().map(|one| one.measured_seconds).collect::<Vec<_>>())
    }

    /// The numbers of blocks that there were.
    pub(crate) fn blocks(&self) -> BTreeSet<u32> {
        self.0.iter().map(|one| one.blocks).collect()
    }
}

fn geometric_mean(ratios: impl Iterator<Item = f64>) -> Option<f64> {
    let logarithms: Vec<f64> = ratios.map(f64::ln).collect();
    (!logarithms.is_empty()).then(|| mean(&logarithms).exp())
}

/// A verdict that states a difference of any size.
pub(crate) fn states_difference(one: &Finding) -> bool {
    one.verdict.is_worse() || one.verdict.is_better()
}

/// A verdict that states a difference of δ or more.
pub(crate) fn states_large(one: &Finding) -> bool {
    matches!(one.verdict, Verdict::Slower | Verdict::Faster)
}

/// A share with its exact interval: `1 of 40: 2.5 % (0.1 to 13.2)`.
pub(crate) fn share(hits: usize, trials: usize) -> String {
    if trials == 0 {
        return "none".to_owned();
    }
    let interval = clopper_pearson(hits as u64, trials as u64, CONFIDENCE);
    let per_cent = 100.0 * hits as f64 / trials as f64;
    let [low, high] = [interval.low, interval.high].map(|end| 100.0 * end);
    format!("{hits} of {trials}: {per_cent:.1} % ({low:.1} to {high:.1})")
}

#[cfg(test)]
mod tests {
    #[test]
    fn findings_are_counted_by_comparison_and_by_verdict() {
        use super::super::columns::{HEAD, METRICS};
        use super::super::finding::{Burned, parse};
        use super::{BTreeSet, Counts, Finding, states_difference, states_large};

        // Two comparisons of a build with itself, with the same seed, and one with a twin.
        let rows = "\
2026-11-23,CPU,2,sqlite-3.40.1,0,1,a,o/s,6,24.0,SAME,0,1.00000,0.99000,1.01000,1.00000
2026-11-23,CPU,2,sqlite-3.40.1,0,1,b,o/s,6,24.0,FASTER-SMALL,0,1.01000,1.00100,1.02100,1.00000
2026-11-23,CPU,2,sqlite-3.40.1,0,1,a,o/s,6,26.0,SAME,0,1.00000,0.98000,1.02000,1.00000
2026-11-23,CPU,2,sqlite-3.40.1,0,1,b,o/s,6,26.0,NO VERDICT,0,1.00000,,,1.00000
2026-11-24,CPU,2,sqlite-3.40.1,0.02,1,a,o/s,6,24.0,SLOWER,1,0.97000,0.96000,0.98000,0.98000
";
        let sheet = parse("x", "", &format!("{HEAD}\n{rows}")).unwrap();
        let all: Vec<&Finding> = sheet.findings.iter().collect();
        let is_equal = |one: &Finding| one.comparison.burned == Burned::NOTHING;
        let equal = Counts::of(&all, is_equal).unwrap();
        assert_eq!((equal.comparisons(), equal.verdicts()), (2, 4));
        assert_eq!(equal.comparisons_with(states_difference), 1);
        assert_eq!(equal.with(states_difference), 1);
        assert_eq!(equal.with(states_large), 0);
        // The interval of the first b does not hold 1, and one is missing.
        assert_eq!(equal.holding_truth(), (2, 3));
        assert_eq!(equal.measured_seconds(), 25.0);
        assert_eq!(equal.blocks(), BTreeSet::from([6]));
        let half_width = equal.half_width().unwrap();
        assert!((half_width - 0.010_000_3).abs() < 1e-6, "{half_width}");
        let slowed = Counts::of(&all, |one| !is_equal(one)).unwrap();
        assert_eq!(all[4].comparison.burned.to_string(), "2 %");
        assert_eq!((slowed.comparisons(), slowed.with(states_large)), (1, 1));
        assert_eq!(slowed.holding_truth(), (1, 1));
        assert_eq!(format!("{:.5}", slowed.found_ratio().unwrap()), "0.97000");
        assert!(Counts::of(&all, |one| one.metric == METRICS[1]).is_none());
    }

    #[test]
    fn shares_have_exact_intervals() {
        assert_eq!(super::share(0, 40), "0 of 40: 0.0 % (0.0 to 8.8)");
        assert_eq!(super::share(19, 20), "19 of 20: 95.0 % (75.1 to 99.9)");
        assert_eq!(super::share(0, 0), "none");
    }
}
