//! Values in a row of which each resembles the one before it: AR(1).

use crate::moderated::{SD_MIN, Spread};

/// Correlations that are tried.
const GRID: u32 = 48;
const STEP: f64 = 0.02;
/// Twice the gain of the log likelihood beyond which a correlation above 0 is shown, one-sided
/// p < .05.
const SHOWN: f64 = 2.71;

/// What a correlation leaves of one series: the sum of squares of what each value adds, by
/// generalized least squares, and the variance of the mean as a share of it, without the scale.
struct Whitened {
    squares: f64,
    /// 1′ V⁻¹ 1.
    weight: f64,
}

fn whiten(series: &[f64], correlation: f64) -> Whitened {
    let first = (1.0 - correlation * correlation).sqrt();
    let innovation = |at: usize| match at {
        0 => (first * series[0], first),
        _ => (series[at] - correlation * series[at - 1], 1.0 - correlation),
    };
    let all = || (0..series.len()).map(innovation);
    let weight: f64 = all().map(|(_, one)| one * one).sum();
    let mean = all().map(|(value, one)| value * one).sum::<f64>() / weight;
    Whitened { squares: all().map(|(value, one)| (value - one * mean).powi(2)).sum(), weight }
}

/// The correlation of a value with the next one that all series have in common, by restricted
/// maximum likelihood; each series has its own mean and variance. 0 if none is shown.
///
/// The sample correlation is biased downwards by more than its size for few values; this is not.
/// Where the series `move_together`, they count as one.
pub fn shared(series: &[&[f64]], move_together: bool) -> f64 {
    let series: Vec<&[f64]> = series
        .iter()
        .copied()
        .filter(|it| it.len() > 2 && whiten(it, 0.0).squares > SD_MIN * SD_MIN)
        .collect();
    let likelihood = |correlation: f64| {
        let of = |it: &&[f64]| {
            let Whitened { squares, weight } = whiten(it, correlation);
            let determinant = (1.0 - correlation * correlation).ln() - weight.ln();
            (determinant - (it.len() - 1) as f64 * squares.ln()) / 2.0
        };
        series.iter().map(of).sum::<f64>()
    };
    let none = likelihood(0.0);
    let tried = (1..GRID).map(|at| f64::from(at) * STEP).map(|it| (likelihood(it), it));
    let Some((best, correlation)) = tried.max_by(|a, b| a.0.total_cmp(&b.0)) else { return 0.0 };
    let once = if move_together { series.len() as f64 } else { 1.0 };
    if 2.0 * (best - none) / once > SHOWN { correlation } else { 0.0 }
}

/// The standard deviation of independent values whose mean would scatter as that of this series,
/// with the degrees of freedom of the series.
pub fn spread(series: &[f64], correlation: f64) -> Spread {
    let n = series.len() as f64;
    let df = n - 1.0;
    let sum: f64 =
        (1..series.len()).map(|lag| (1.0 - lag as f64 / n) * correlation.powi(lag as i32)).sum();
    let variance = whiten(series, correlation).squares / df / (1.0 - correlation * correlation);
    Spread { sd: (variance * (1.0 + 2.0 * sum)).sqrt(), df }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::stddev;

    const SERIES: [[f64; 8]; 3] = [
        [0.1, 0.7, 0.3, 1.1, 0.8, 0.2, -0.3, 0.1],
        [-1.0, -0.2, 0.4, -0.3, 0.9, 1.4, 0.2, 0.6],
        [2.0, 1.2, 1.9, 1.0, 0.4, 1.1, 0.1, 0.9],
    ];

    /// Computed with SciPy: a search over the profile of the restricted likelihood finds .4403, and
    /// the matrix of correlations gives the deviation.
    #[test]
    fn the_likelihood_is_that_of_another_program() {
        let series: Vec<&[f64]> = SERIES.iter().map(|it| &it[..]).collect();
        let found = shared(&series, false);
        assert!((found - 0.44).abs() < 1e-9, "{found}");
        let Spread { sd, df } = spread(&SERIES[0], 0.6);
        assert!((sd - 1.005_422_364_126_497).abs() < 1e-9 && df == 7.0, "{sd}");
    }

    #[test]
    fn independent_values_have_their_own_deviation_and_no_correlation() {
        let series = [0.3, -0.2, 0.5, 0.1, -0.4, 0.25];
        assert_eq!(shared(&[&series], false), 0.0);
        let own = stddev(&series).unwrap();
        assert!((spread(&series, 0.0).sd - own).abs() < 1e-12);
        assert_eq!(shared(&[&[1.0; 9]], false), 0.0);
        assert_eq!(shared(&[], false), 0.0);
    }
}
