//! Shares of counted events.

use statrs::function::beta::beta_reg;

use super::Interval;

/// Halvings of an interval of length 1: more than a number has bits.
const HALVINGS: u32 = 60;

/// The exact interval of the probability of an event that `hits` of `trials` had: the true one lies
/// outside with a probability of at most 1 − `confidence`. It is 0 to 1 without trials.
///
/// Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the
/// binomial", Biometrika 26 (1934).
///
/// # Panics
/// There are more hits than trials, or `confidence` is not between 0 and 1.
pub fn clopper_pearson(hits: u64, trials: u64, confidence: f64) -> Interval {
    assert!(hits <= trials, "{hits} of {trials}");
    assert!(confidence > 0.0 && confidence < 1.0, "confidence {confidence}");
    let tail = (1.0 - confidence) / 2.0;
    let (hit, missed) = (hits as f64, (trials - hits) as f64);
    // P(X ≥ k) of n trials is I_p(k, n − k + 1): at the lower end it is the tail, at the upper end
    // P(X ≤ k) is.
    let low = if hits == 0 { 0.0 } else { crossing(|p| beta_reg(hit, missed + 1.0, p) > tail) };
    let high = if hits == trials {
        1.0
    } else {
        crossing(|p| beta_reg(hit + 1.0, missed, p) > 1.0 - tail)
    };
    Interval { low, high }
}

/// The smallest number from 0 to 1 that fulfils a condition, which all larger ones fulfil, too.
fn crossing(is_beyond: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = (low + high) / 2.0;
        if is_beyond(middle) { high = middle } else { low = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_published_tables() {
        let check = |hits, trials, low: f64, high: f64| {
            let found = clopper_pearson(hits, trials, 0.95);
            let is_near = |a: f64, b: f64| (a - b).abs() < 1e-6;
            let both = is_near(found.low, low) && is_near(found.high, high);
            assert!(both, "{hits} of {trials}: {found:?}");
        };
        // Without a hit, (1 − p)^n = 0.025.
        check(0, 40, 0.0, 1.0 - 0.025_f64.powf(1.0 / 40.0));
        check(40, 40, 0.025_f64.powf(1.0 / 40.0), 1.0);
        // binom.test of R: the example of its documentation (Conover 1971), and two more.
        check(682, 925, 0.707_668_3, 0.765_406_6);
        check(5, 10, 0.187_086_0, 0.812_914_0);
        check(19, 20, 0.751_267_2, 0.998_734_9);
        check(0, 0, 0.0, 1.0);
    }

    #[test]
    fn the_true_probability_is_rarely_outside() {
        // For 20 trials at p = 0.1: the sum over all outcomes whose interval misses it.
        let (p, n) = (0.1_f64, 20);
        let mut missed = 0.0;
        let mut chance = (1.0 - p).powi(n);
        for hits in 0..=n as u64 {
            let interval = clopper_pearson(hits, n as u64, 0.95);
            if !(interval.low..=interval.high).contains(&p) {
                missed += chance;
            }
            chance *= (n as f64 - hits as f64) / (hits as f64 + 1.0) * p / (1.0 - p);
        }
        assert!(missed > 0.0 && missed <= 0.05, "{missed}");
    }
}
