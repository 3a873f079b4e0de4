//! Descriptive statistics of a short list of numbers.

use serde::Serialize;

/// Descriptive statistics of a list of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Count.
    pub n: usize,
    /// Smallest.
    pub min: f64,
    /// Largest.
    pub max: f64,
    /// Arithmetic mean.
    pub average: f64,
    /// Median.
    pub median: f64,
    /// Sample standard deviation (n − 1); `None` for one number.
    pub stddev: Option<f64>,
    /// Geometric mean; `None` unless all numbers are positive.
    pub geomean: Option<f64>,
}

/// Describes a list of numbers; `None` if it is empty. The order does not change a bit of the
/// result, because sums run over the sorted list.
pub fn summarize(values: &[f64]) -> Option<Summary> {
    if values.is_empty() {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let positive = sorted[0] > 0.0;
    let logs = || sorted.iter().map(|value| value.ln()).sum::<f64>();
    Some(Summary {
        n,
        min: sorted[0],
        max: sorted[n - 1],
        average: mean(&sorted),
        median: middle(&sorted),
        stddev: stddev(&sorted),
        geomean: positive.then(|| (logs() / n as f64).exp()),
    })
}

/// The median: the middle number, or the mean of the middle two; `None` if the list is empty.
pub fn median(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut values = values.to_vec();
    let is_odd = values.len() % 2 == 1;
    let half = values.len() / 2;
    let (lower, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let below = lower.iter().copied().max_by(f64::total_cmp).filter(|_| !is_odd);
    Some(below.map_or(*upper, |below| f64::midpoint(below, *upper)))
}

/// Arithmetic mean; NaN for an empty list.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Geometric mean of positive numbers; NaN for an empty list. Equal numbers, or one alone, come
/// back as they are: logarithms would change their last digits.
pub fn geomean(values: &[f64]) -> f64 {
    match values.split_first() {
        Some((first, others)) if others.iter().all(|other| other == first) => *first,
        _ => mean(&values.iter().map(|value| value.ln()).collect::<Vec<f64>>()).exp(),
    }
}

/// Sample standard deviation (n − 1); `None` for fewer than two numbers.
pub fn stddev(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The median of a sorted, non-empty list.
pub(super) fn middle(sorted: &[f64]) -> f64 {
    let n = sorted.len();
    if n % 2 == 1 { sorted[n / 2] } else { f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]) }
}

// Ratios in the format of published tables.

/// value / baseline with two decimals; `1` if both are zero, `inf` if only the baseline is zero.
pub fn printed_ratio(value: f64, baseline: f64) -> String {
    match (value == 0.0, baseline == 0.0) {
        (true, true) => "1".to_owned(),
        (false, true) => "inf".to_owned(),
        _ => format!("{:.2}", value / baseline),
    }
}

/// Returns true if a printed ratio agrees with value and baseline. A quotient halfway between two
/// decimals agrees with both, because C, AWK and spreadsheets round it differently.
pub fn follows(printed: &str, value: f64, baseline: f64) -> bool {
    if printed == printed_ratio(value, baseline) {
        return true;
    }
    let Ok(number) = printed.parse::<f64>() else { return false };
    baseline != 0.0 && printed.len() > 1 && ((value / baseline - number).abs() - 0.005).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_worked_out_by_hand() {
        // 2, 4, 4, 4, 5, 5, 7, 9: mean 5, squares 32, so sample variance 32/7.
        let summary = summarize(&[9.0, 2.0, 4.0, 5.0, 4.0, 7.0, 4.0, 5.0]).unwrap();
        assert_eq!((summary.n, summary.min, summary.max), (8, 2.0, 9.0));
        assert_eq!((summary.average, summary.median), (5.0, 4.5));
        assert!((summary.stddev.unwrap() - (32.0f64 / 7.0).sqrt()).abs() < 1e-15);
        let product = 2.0f64 * 4.0 * 4.0 * 4.0 * 5.0 * 5.0 * 7.0 * 9.0;
        assert!((summary.geomean.unwrap() - product.powf(0.125)).abs() < 1e-12);
    }

    #[test]
    fn one_number_has_no_spread_and_none_has_nothing() {
        let one = summarize(&[3.0]).unwrap();
        assert_eq!((one.median, one.stddev, one.n), (3.0, None, 1));
        assert_eq!(summarize(&[]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(summarize(&[0.0, 1.0]).unwrap().geomean, None);
        assert!((1..1000).map(f64::from).all(|value| geomean(&[value]) == value));
        assert_eq!(geomean(&[101.0; 3]), 101.0);
        assert!((geomean(&[2.0, 8.0]) - 4.0).abs() < 1e-12 && geomean(&[]).is_nan());
    }

    #[test]
    fn ratios_are_printed_as_published() {
        let check = |value, baseline, expected: &str| {
            assert_eq!(printed_ratio(value, baseline), expected);
            assert!(follows(expected, value, baseline));
        };
        check(3927.0, 4533.0, "0.87");
        check(0.0, 0.0, "1");
        check(0.001, 0.0, "inf");
        check(0.0, 0.003, "0.00");
        check(1.0, 1.0, "1.00");
    }

    #[test]
    fn only_a_tie_may_go_either_way() {
        // 0.125 is exact in binary: printf gives 0.12, others 0.13.
        assert!(follows("0.12", 1.0, 8.0) && follows("0.13", 1.0, 8.0));
        assert!(!follows("0.12", 1.01, 8.0));
        assert!(!follows("1", 0.0, 2.0));
        assert!(!follows("x", 1.0, 2.0));
    }
}
