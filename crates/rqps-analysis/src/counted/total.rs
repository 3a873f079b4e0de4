//! The change of a step's total.

use super::difference::TotalChange;
use crate::comparison::Relative;

/// Totals that differ by no more than this share are the same: repeats of one build differ by up to
/// this much.
pub const SAME_WITHIN: f64 = 0.001;

/// Counts of two builds that differ by less than this share prove no change of the code between
/// them: to counts what tau is to rates, but without the layout of a build, which no count depends
/// on. Half of it may be the scatter of each.
pub const COUNTS_TAU: f64 = 2.0 * SAME_WITHIN;

impl TotalChange {
    /// The change that the interval of a ratio demonstrates.
    pub fn of(relative: &Relative) -> TotalChange {
        let Some(interval) = relative.interval else { return TotalChange::Unclear };
        let (least, most) = (1.0 - SAME_WITHIN, 1.0 + SAME_WITHIN);
        match interval {
            it if it.low > most => TotalChange::More,
            it if it.high < least => TotalChange::Fewer,
            it if it.low >= least && it.high <= most => TotalChange::Same,
            _ => TotalChange::Unclear,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_stats::Interval;

    #[test]
    fn an_interval_must_lie_on_one_side() {
        let check = |interval: Option<(f64, f64)>, expected| {
            let interval = interval.map(|(low, high)| Interval { low, high });
            let relative = Relative { interval, ..Relative::of_medians(1.0, 3) };
            assert_eq!(TotalChange::of(&relative), expected, "{interval:?}");
        };
        check(Some((1.01, 1.02)), TotalChange::More);
        check(Some((0.9, 0.95)), TotalChange::Fewer);
        check(Some((0.9995, 1.0004)), TotalChange::Same);
        check(Some((0.9995, 1.004)), TotalChange::Unclear);
        check(None, TotalChange::Unclear);
    }
}
