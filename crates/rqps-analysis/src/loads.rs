//! Pairs of blocks that share loads. What one load happens to give (page splits, file layout,
//! statistics) is in all of its blocks, so the load is a random effect.

use serde::Serialize;

use super::clusters;
use rqps_stats::Interval;

/// One ratio as the blocks of one load found it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadRatio {
    /// Number of the load, from 1.
    pub load: u32,
    /// exp(mean d) over its pairs.
    pub ratio: f64,
    /// Its pairs.
    pub pairs: usize,
}

/// One ratio over several loads. Logarithms are natural.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loads {
    /// One for each load with a pair, in the order of the blocks.
    pub loads: Vec<LoadRatio>,
    /// Standard deviation between loads, τ of the random effect, of ln ratios.
    pub between_sd: f64,
    /// One value for each load, with the mean and the standard error of the pooled estimate.
    #[serde(skip)]
    pub values: Vec<f64>,
}

/// Pools pairs (number of the load, ln ratio). `None` for a single load, which says nothing of the
/// next, and where each pair has a load of its own: then pairs are independent as they are.
pub fn pool(pairs: &[(u32, f64)], confidence: f64) -> Option<Loads> {
    let by_load = clusters::by_key(pairs);
    if by_load.len() < 2 || by_load.len() == pairs.len() {
        return None;
    }
    let pooled = clusters::pool(&by_load, confidence)?;
    let of_load = by_load.iter().zip(&pooled.means).map(|((load, _), mean)| LoadRatio {
        load: *load,
        ratio: mean.mean.exp(),
        pairs: mean.n,
    });
    let loads = of_load.collect();
    Some(Loads { loads, between_sd: pooled.between_sd, values: pooled.values })
}

impl Loads {
    /// The pooled ratio with the t interval of its standard error on k − 1 degrees of freedom.
    pub(super) fn ratio(&self, confidence: f64) -> (f64, Interval) {
        clusters::ratio(&self.values, confidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_load_and_a_load_for_each_pair_are_not_pooled() {
        assert_eq!(pool(&[], 0.95), None);
        assert_eq!(pool(&[(1, 0.1), (1, 0.2)], 0.95), None);
        assert_eq!(pool(&[(1, 0.1), (2, 0.2), (3, 0.0)], 0.95), None);
    }

    /// Balanced loads: REML and HKSJ give the plain t over the means of the loads.
    #[test]
    fn balanced_loads_give_the_t_over_their_means() {
        let pairs = [(1, 0.00), (2, 0.09), (3, 0.04), (1, 0.02), (2, 0.11), (3, 0.06)];
        let pooled = pool(&pairs, 0.95).unwrap();
        let (ratio, interval) = pooled.ratio(0.95);
        // Means .01, .10, .05: mean .16/3, variance .0020333, t(.975; 2) = 4.302653.
        assert!((ratio.ln() - 0.16 / 3.0).abs() < 1e-9, "{ratio}");
        let half = 4.302_652_7 * (0.006_1f64 / 3.0 / 3.0).sqrt();
        assert!((interval.high.ln() - (0.16 / 3.0 + half)).abs() < 1e-7, "{interval:?}");
        assert!((pooled.between_sd.powi(2) - (0.006_1 / 3.0 - 0.000_1)).abs() < 1e-9);
        let numbers: Vec<(u32, usize)> = pooled.loads.iter().map(|l| (l.load, l.pairs)).collect();
        assert_eq!(numbers, [(1, 2), (2, 2), (3, 2)]);
    }
}
