//! Ratios of pairs, rqps / other program, computed as in rqps's comparisons.

use rqps_stats::Interval;
use rqps_stats::paired;

/// Largest distance by which an interval may cross a limit.
const SLACK: f64 = 0.02;

/// exp(mean ln ratio) over pairs, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) estimate: f64,
    /// `None` for one pair.
    pub(crate) interval: Option<Interval>,
}

impl Ratio {
    /// The ratio of the pairs (rqps, other) with positive values; `None` without one, as when a run
    /// is so short that no clock tick fell into user mode.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Option<Ratio> {
        let logarithms: Vec<f64> = pairs
            .iter()
            .filter(|(ours, theirs)| *ours > 0.0 && *theirs > 0.0)
            .map(|(ours, theirs)| (ours / theirs).ln())
            .collect();
        let mean = paired::mean_interval(&logarithms, 0.95)?;
        let exp = |ends: Interval| Interval { low: ends.low.exp(), high: ends.high.exp() };
        Some(Ratio { estimate: mean.mean.exp(), interval: mean.interval.map(exp) })
    }

    /// True if 1 is in the interval, or if there is no interval.
    pub(crate) fn agrees(self) -> bool {
        self.interval.is_none_or(|ends| ends.low <= 1.0 && 1.0 <= ends.high)
    }

    /// True if it may be 1 or more.
    pub(crate) fn reaches_one(self) -> bool {
        self.interval.map_or(self.estimate, |ends| ends.high) >= 1.0
    }

    /// True if it is at least 1, and its interval at most 2 % below 1.
    pub(crate) fn is_no_less(self) -> bool {
        self.estimate >= 1.0 && self.interval.is_none_or(|ends| ends.low >= 1.0 - SLACK)
    }

    /// True if it is at most `most`, and its interval at most 2 % above it.
    pub(crate) fn is_no_more_than(self, most: f64) -> bool {
        self.estimate <= most && self.interval.is_none_or(|ends| ends.high <= most + SLACK)
    }

    /// The estimate as `0.812`.
    pub(crate) fn estimate_text(ratio: Option<Ratio>) -> String {
        ratio.map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.estimate))
    }

    /// The interval as `0.801 … 0.823`.
    pub(crate) fn interval_text(ratio: Option<Ratio>) -> String {
        match ratio.and_then(|ratio| ratio.interval) {
            Some(ends) => format!("{:.3} … {:.3}", ends.low, ends.high),
            None => "-".to_owned(),
        }
    }

    /// Estimate and interval.
    pub(crate) fn text(ratio: Option<Ratio>) -> String {
        format!("{} ({})", Ratio::estimate_text(ratio), Ratio::interval_text(ratio))
    }
}

/// exp(mean ln value); the ratio of two such means is the mean ratio.
pub(crate) fn geometric_mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    (values.map(f64::ln).sum::<f64>() / count).exp()
}

/// Arithmetic mean, for values that may be zero.
pub(crate) fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_ratio_is_that_of_geometric_means() {
        let pairs = [(2.0, 1.0), (8.0, 1.0), (0.0, 1.0)];
        let ratio = super::Ratio::of(&pairs).unwrap();
        assert!((ratio.estimate - 4.0).abs() < 1e-12);
        // ln 4 ± t · sd / √2, where sd is ln 4 / √2 and t with one degree of freedom 12.706.
        let half = 12.706 * 4f64.ln() / 2.0;
        let ends = ratio.interval.unwrap();
        assert!((ends.low.ln() - (4f64.ln() - half)).abs() < 1e-3, "{ends:?}");
        assert!((ends.high.ln() - (4f64.ln() + half)).abs() < 1e-3, "{ends:?}");
        assert_eq!(super::Ratio::of(&[(0.0, 0.0)]), None);
    }
}
