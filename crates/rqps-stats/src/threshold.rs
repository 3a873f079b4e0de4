//! The highest load that keeps a limit, from windows that keep it or not. Near the threshold chance
//! decides, so the answer is a posterior over threshold and width (Watson and Pelli 1983; Kontsevich
//! and Tyler 1999), and the next load to try is its median.

use super::student::Interval;

/// Places of the threshold.
const PLACES: usize = 801;
/// Widths of the range in which chance decides, as logarithms of the load.
const WIDTHS: [f64; 6] = [0.003, 0.006, 0.0125, 0.025, 0.05, 0.1];
/// The share of windows that the load does not decide, such as those with a disturbed host.
const LAPSES: f64 = 0.02;

/// What is known of a threshold. Loads are logarithms.
#[derive(Clone, Debug)]
pub struct Threshold {
    low: f64,
    high: f64,
    /// ln of the posterior, by width and place, up to a constant.
    ln: Vec<Vec<f64>>,
}

impl Threshold {
    /// A threshold of which only two bounds are known.
    pub fn new(low: f64, high: f64) -> Threshold {
        Threshold { low, high, ln: vec![vec![0.0; PLACES]; WIDTHS.len()] }
    }

    fn place(&self, at: usize) -> f64 {
        self.low + (self.high - self.low) * at as f64 / (PLACES - 1) as f64
    }

    /// Takes a window: its load, and whether it kept the limit.
    pub fn record(&mut self, load: f64, keeps: bool) {
        let places: Vec<f64> = (0..PLACES).map(|at| self.place(at)).collect();
        for (of_width, width) in self.ln.iter_mut().zip(WIDTHS) {
            for (ln, place) in of_width.iter_mut().zip(&places) {
                let chance = 1.0 / (1.0 + ((load - place) / width).exp());
                let chance = LAPSES / 2.0 + (1.0 - LAPSES) * chance;
                *ln += if keeps { chance.ln() } else { (1.0 - chance).ln() };
            }
        }
    }

    /// The probability of each place; their sum is 1.
    fn posterior(&self) -> Vec<f64> {
        let most = self.ln.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let at = |at: usize| self.ln.iter().map(|of_width| (of_width[at] - most).exp()).sum();
        let all: Vec<f64> = (0..PLACES).map(at).collect();
        let sum: f64 = all.iter().sum();
        all.into_iter().map(|share| share / sum).collect()
    }

    /// The place below which this share of the probability lies.
    pub fn quantile(&self, share: f64) -> f64 {
        let place = quantile(self.posterior().into_iter(), share);
        self.place(place)
    }

    /// The equal-tailed interval.
    pub fn interval(&self, confidence: f64) -> Interval {
        let tail = (1.0 - confidence) / 2.0;
        Interval { low: self.quantile(tail), high: self.quantile(1.0 - tail) }
    }

    /// Median and interval of this threshold's distance from another one, which both have the same
    /// bounds.
    pub fn above(&self, other: &Threshold, confidence: f64) -> (f64, Interval) {
        let (ours, theirs) = (self.posterior(), other.posterior());
        let mut shares = vec![0.0; 2 * PLACES - 1];
        for (at, our) in ours.iter().enumerate().filter(|(_, share)| **share > 1e-12) {
            for (of, their) in theirs.iter().enumerate() {
                shares[at + PLACES - 1 - of] += our * their;
            }
        }
        let step = (self.high - self.low) / (PLACES - 1) as f64;
        let distance = |share: f64| {
            (quantile(shares.iter().copied(), share) as f64 - (PLACES - 1) as f64) * step
        };
        let tail = (1.0 - confidence) / 2.0;
        (distance(0.5), Interval { low: distance(tail), high: distance(1.0 - tail) })
    }
}

fn quantile(shares: impl Iterator<Item = f64>, share: f64) -> usize {
    let sums = shares.scan(0.0, |sum, one| {
        *sum += one;
        Some(*sum)
    });
    sums.take_while(|sum| *sum < share).count()
}

#[cfg(test)]
mod tests {
    use rqps_model::datagen::rng::Rng;

    use super::Threshold;

    /// Two thresholds after so many windows of both at the same loads.
    fn searched(truths: [f64; 2], width: f64, windows: usize, rng: &mut Rng) -> [Threshold; 2] {
        let mut both = truths.map(|_| Threshold::new(-3.0, 0.5));
        for number in 0..windows {
            let load = both[number % 2].quantile(0.5);
            for (threshold, truth) in both.iter_mut().zip(truths) {
                let chance = 1.0 / (1.0 + ((load - truth) / width).exp());
                threshold.record(load, rng.unit() < chance);
            }
        }
        both
    }

    #[test]
    fn intervals_hold_the_truth() {
        for (width, widest) in [(0.005, 0.065), (0.03, 0.14)] {
            let (mut held, mut equal, mut widths) = (0, 0, 0.0);
            for seed in 0..200 {
                let mut rng = Rng::new(seed);
                let truth = -2.0 + 2.2 * rng.unit();
                let [a, b] = searched([truth, truth], width, 24, &mut rng);
                let interval = a.interval(0.95);
                held += usize::from(interval.low <= truth && truth <= interval.high);
                widths += (interval.high - interval.low) / 200.0;
                let (_, apart) = b.above(&a, 0.95);
                equal += usize::from(apart.low <= 0.0 && apart.high >= 0.0);
            }
            assert!(held >= 183, "{held} of 200 at {width}");
            assert!(equal >= 188, "{equal} of 200 equal at {width}");
            assert!(widths < widest, "{widths} at {width}");
        }
    }

    #[test]
    fn a_loss_of_a_tenth_is_found() {
        let mut found = 0;
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            let [a, b] = searched([-1.0, -1.105], 0.01, 24, &mut rng);
            let (ln, apart) = b.above(&a, 0.95);
            found += usize::from(apart.high < 0.0 && (ln + 0.105).abs() < 0.04);
        }
        assert!(found >= 95, "{found} of 100");
    }

    #[test]
    fn a_limit_that_nothing_keeps_ends_at_the_lowest_load() {
        let mut threshold = Threshold::new(0.0, 3.0);
        (0..12).for_each(|_| {
            let load = threshold.quantile(0.5);
            threshold.record(load, false)
        });
        assert!(threshold.interval(0.95).high < 0.1, "{:?}", threshold.interval(0.95));
    }
}
