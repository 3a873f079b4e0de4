//! Stability of a rate over the seconds of a run: warm-up inside the window, drift, stalls. Never
//! evidence between builds, because seconds of one run are correlated.

use std::ops::Range;

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};

use super::summary;

/// Seconds of a batch of MSER-5.
const BATCH: usize = 5;
/// The search for a cut needs this many batches: 20 s.
const BATCHES_MIN: usize = 4;
/// Seconds per mean of the trend test.
const TREND_BATCH: usize = 10;
/// The trend test needs this many means: with five, even a steady rise has p = .027.
const TREND_MEANS_MIN: usize = 6;
/// Largest p of a trend.
const DRIFT_P_MAX: f64 = 0.01;
/// A drift changes the rate over the window by more than this share.
const DRIFT_MIN: f64 = 0.01;
/// A second with less than this share of the median second's rate is part of a stall. The share is
/// far below the effect of checkpoints and compaction, so only a halt counts.
pub const STALL_SHARE: f64 = 0.1;

/// Stability statistics of one series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Stability {
    /// Evenness of the rate; `None` below 5 s.
    pub evenness: Option<Evenness>,
    /// Start of the steady state; `None` below 20 s.
    pub warm_up: Option<Cut>,
    /// Trend; `None` below 60 s.
    pub trend: Option<Trend>,
}

impl Stability {
    /// Computes the statistics from the rates of seconds; `None` if there are none.
    pub fn of(per_second: &[f64]) -> Option<Stability> {
        (!per_second.is_empty()).then(|| Stability {
            evenness: evenness(per_second),
            warm_up: warm_up(per_second),
            trend: trend(per_second),
        })
    }

    /// Returns true if the series probably never reached a steady state: the best cut of the
    /// warm-up is at the half.
    pub fn is_unsteady(&self) -> bool {
        self.warm_up.is_some_and(|cut| cut.at_half)
    }

    /// The change over the window as a share, if it is a drift: p below .01 and more than 1 %.
    pub fn drift(&self) -> Option<f64> {
        let trend = self.trend.filter(|trend| trend.p < DRIFT_P_MAX)?;
        (trend.change.abs() > DRIFT_MIN).then_some(trend.change)
    }
}

/// Start of the steady state by MSER-5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cut {
    /// Seconds of the warm-up.
    pub seconds: usize,
    /// True if the best cut is the last candidate, at the half: the series probably never reached a
    /// steady state.
    pub at_half: bool,
}

/// MSER-5 (White 1997; Franklin and White 2008): means of 5 s; among all cuts d up to half of the k
/// means, the one that minimises Σ (y − ȳ)² / (k − d)² of the rest. `None` below 20 s.
pub fn warm_up(per_second: &[f64]) -> Option<Cut> {
    let means = batch_means(per_second, BATCH);
    let k = means.len();
    if k < BATCHES_MIN {
        return None;
    }
    // From the end, so that each cut adds one mean to the rest.
    let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    for cut in (0..k).rev() {
        n += 1.0;
        let away = means[cut] - mean;
        mean += away / n;
        squares += away * (means[cut] - mean);
        // Among equal values, the earliest cut keeps the most data.
        if cut <= k / 2 && squares / (n * n) <= best.0 {
            best = (squares / (n * n), cut);
        }
    }
    Some(Cut { seconds: best.1 * BATCH, at_half: best.1 == k / 2 })
}

/// A trend over the whole series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Trend {
    /// Two-sided p of the Mann-Kendall test on means of 10 s.
    pub p: f64,
    /// Theil-Sen slope × duration, as a share of the median: −0.03 for a fall of 3 %.
    pub change: f64,
}

/// The trend of a series; `None` below 60 s, and if the median is 0.
pub fn trend(per_second: &[f64]) -> Option<Trend> {
    let means = batch_means(per_second, TREND_BATCH);
    let median = summary::median(&means)?;
    if means.len() < TREND_MEANS_MIN || median <= 0.0 {
        return None;
    }
    let slope = theil_sen(&means)?;
    Some(Trend { p: mann_kendall(&means), change: slope * means.len() as f64 / median })
}

fn batch_means(values: &[f64], length: usize) -> Vec<f64> {
    values.chunks_exact(length).map(summary::mean).collect()
}

/// Two-sided p of the Mann-Kendall test for a trend (Mann 1945, Kendall 1975): S, the number of
/// rising pairs minus the number of falling pairs, is normal with variance
/// (n (n−1)(2n+5) − Σ t (t−1)(2t+5)) / 18 for ties of t; with the continuity correction. 1 for
/// constant series.
pub fn mann_kendall(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mut balance = 0.0;
    for (place, later) in values.iter().enumerate() {
        for earlier in &values[..place] {
            balance += f64::from(i8::from(later > earlier) - i8::from(later < earlier));
        }
    }
    let weight = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a == b).map(|tie| weight(tie.len() as f64)).sum();
    let variance = (weight(n) - ties) / 18.0;
    let corrected: f64 = balance - f64::signum(balance);
    if balance == 0.0 || variance <= 0.0 {
        return 1.0;
    }
    (2.0 * Normal::standard().sf(corrected.abs() / variance.sqrt())).min(1.0)
}

/// The median of the slopes of all pairs (Theil 1950, Sen 1968), per index; `None` for fewer than
/// two values.
pub fn theil_sen(values: &[f64]) -> Option<f64> {
    let mut slopes = Vec::with_capacity(values.len() * values.len() / 2);
    for (place, later) in values.iter().enumerate() {
        for (before, earlier) in values[..place].iter().enumerate() {
            slopes.push((later - earlier) / (place - before) as f64);
        }
    }
    summary::median(&slopes)
}

/// Finds the stalls of a series: ranges of consecutive seconds with less than [`STALL_SHARE`] of
/// the median second each, in order. Empty if half or more of the seconds have a rate of 0.
///
/// All counted, dated and drawn stalls come from this function.
pub fn stalls(per_second: &[f64]) -> Vec<Range<usize>> {
    stalls_below(STALL_SHARE * summary::median(per_second).unwrap_or(0.0), per_second)
}

fn stalls_below(limit: f64, per_second: &[f64]) -> Vec<Range<usize>> {
    let mut stalls: Vec<Range<usize>> = Vec::new();
    for place in (0..per_second.len()).filter(|place| per_second[*place] < limit) {
        match stalls.last_mut() {
            Some(stall) if stall.end == place => stall.end += 1,
            _ => stalls.push(place..place + 1),
        }
    }
    stalls
}

/// Evenness of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Evenness {
    /// Standard deviation of the seconds' rates / their mean.
    pub cv: f64,
    /// First percentile of the seconds' rates, as a share of their median.
    pub p1: f64,
    /// Fifth percentile, as a share of the median.
    pub p5: f64,
    /// The longest of the [`stalls`], s.
    pub longest_stall: usize,
    /// Seconds of all [`stalls`].
    pub stall_seconds: usize,
}

/// Computes the evenness of a rate; `None` below 5 s, and if half of the seconds have a rate of 0.
pub fn evenness(per_second: &[f64]) -> Option<Evenness> {
    if per_second.len() < 5 {
        return None;
    }
    let mut sorted = per_second.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let median = summary::middle(&sorted);
    if median <= 0.0 {
        return None;
    }
    let stalls = stalls_below(STALL_SHARE * median, per_second);
    let stalls: Vec<usize> = stalls.iter().map(Range::len).collect();
    Some(Evenness {
        cv: summary::stddev(&sorted)? / summary::mean(&sorted),
        p1: quantile(&sorted, 0.01) / median,
        p5: quantile(&sorted, 0.05) / median,
        longest_stall: stalls.iter().copied().max().unwrap_or(0),
        stall_seconds: stalls.iter().sum(),
    })
}

/// The quantile of a sorted, non-empty list by linear interpolation (Hyndman and Fan's definition
/// 7, the default of R and NumPy).
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let low = place.floor() as usize;
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + (place - low as f64) * (sorted[high] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_cut_off_and_a_steady_series_is_not() {
        let steady: Vec<f64> = (0..60).map(|i| 1000.0 + f64::from(i * 7 % 5)).collect();
        assert_eq!(warm_up(&steady), Some(Cut { seconds: 0, at_half: false }));
        let mut warm = steady.clone();
        warm[..12].fill(700.0);
        assert_eq!(warm_up(&warm), Some(Cut { seconds: 15, at_half: false }));
        // Warms with a time constant as long as the window.
        let slow: Vec<f64> =
            (0..60).map(|i| 1000.0 - 300.0 * (-f64::from(i) / 60.0).exp()).collect();
        assert_eq!(warm_up(&slow), Some(Cut { seconds: 30, at_half: true }));
        assert_eq!(warm_up(&steady[..19]), None);
        assert_eq!(warm_up(&[5.0; 20]), Some(Cut { seconds: 0, at_half: false }));
    }

    #[test]
    fn mser_is_the_textbook_minimum() {
        // Means of 5 s 2, 8, 10, 9, 11: Σ(y−ȳ)²/(k−d)² is 50/25, 5/16, 2/9 for cuts 0, 1, 2.
        let series: Vec<f64> =
            [2.0, 8.0, 10.0, 9.0, 11.0].into_iter().flat_map(|y| [y; 5]).collect();
        assert_eq!(warm_up(&series), Some(Cut { seconds: 10, at_half: true }));
    }

    #[test]
    fn trends_are_those_of_other_programs() {
        let series = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
        // SciPy 1.17, stats.theilslopes.
        assert!((theil_sen(&series).unwrap() - 0.464_285_714_285_714_3).abs() < 1e-12);
        // By hand: 19 pairs rise, 8 fall, 1 ties; S 11, variance (8·7·21 − 2·1·9)/18.
        let z = 10.0 / ((8.0 * 7.0 * 21.0 - 2.0 * 9.0) / 18.0_f64).sqrt();
        let p = 2.0 * Normal::standard().sf(z);
        assert!((mann_kendall(&series) - p).abs() < 1e-12);
        assert_eq!(mann_kendall(&[2.0; 9]), 1.0);
    }

    #[test]
    fn a_drift_is_told_in_shares() {
        // Falls by a twentieth of a per cent a second: 6 % of the median over 120 s.
        let series: Vec<f64> = (0..120).map(|i| 1000.0 - 0.5 * (f64::from(i) - 59.5)).collect();
        let trend = trend(&series).unwrap();
        assert!((trend.change + 0.06).abs() < 1e-12, "{trend:?}");
        assert!(trend.p < 1e-4, "{trend:?}");
        assert_eq!(super::trend(&series[..59]), None);
        assert_eq!(super::trend(&[0.0; 100]), None);
    }

    #[test]
    fn neighbouring_slow_seconds_are_one_stall() {
        let check = |rates: &[f64], expected: &[Range<usize>]| assert_eq!(stalls(rates), expected);
        check(&[100.0, 9.0, 0.0, 100.0, 10.0, 100.0, 100.0, 100.0, 5.0], &[1..3, 8..9]);
        check(&[5.0, 100.0, 100.0, 0.0], &[0..1, 3..4]);
        check(&[0.0, 0.0, 0.0], &[]);
        check(&[], &[]);
    }

    #[test]
    fn stalls_are_counted() {
        let mut series = vec![100.0; 20];
        series[3..6].fill(9.0);
        series[10] = 0.0;
        series[12] = 10.0;
        let evenness = evenness(&series).unwrap();
        assert_eq!((evenness.longest_stall, evenness.stall_seconds), (3, 4));
        // Sorted: 0, 9, 9, 9, 10, 100 …: place .19 of 0..19 lies at 0 + .19 · 9; place .95 at 8.55.
        assert!((evenness.p1 - 0.0171).abs() < 1e-12, "{evenness:?}");
        assert!((evenness.p5 - 0.0855).abs() < 1e-12, "{evenness:?}");
        // NumPy 2: std(ddof=1) / mean.
        assert!((evenness.cv - 0.535_886_428_296).abs() < 1e-9, "{evenness:?}");
        assert_eq!(super::evenness(&[0.0; 9]), None);
    }
}
