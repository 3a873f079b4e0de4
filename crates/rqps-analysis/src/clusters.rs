//! Pairs in clusters: the pairs of one session, or of one load, share a random effect, which is what
//! clusters differ by beyond the scatter of their pairs.

use rqps_stats::mixed::{self, ClusterEstimate};
use rqps_stats::paired::{PairedMean, mean_interval};
use rqps_stats::{Interval, student};

/// Clusters and their pooled estimate. Logarithms are natural.
pub(super) struct Clusters {
    /// The mean of each cluster.
    pub(super) means: Vec<PairedMean>,
    /// Standard deviation between clusters, τ of the random effect.
    pub(super) between_sd: f64,
    /// Standard deviation of a pair within its cluster, pooled; `None` if each has one pair.
    pub(super) within_sd: Option<f64>,
    /// One value for each cluster: their mean and standard error are those of the pooled estimate,
    /// so that what judges lists of pairs judges clusters the same way.
    pub(super) values: Vec<f64>,
}

/// The values of each key, in the order in which keys appear.
pub(super) fn by_key<K: PartialEq + Copy>(pairs: &[(K, f64)]) -> Vec<(K, Vec<f64>)> {
    let mut clusters: Vec<(K, Vec<f64>)> = Vec::new();
    for (key, difference) in pairs {
        match clusters.iter_mut().find(|(known, _)| known == key) {
            Some((_, list)) => list.push(*difference),
            None => clusters.push((*key, vec![*difference])),
        }
    }
    clusters
}

/// Pools clusters of ln ratios, each with a pair or more. `None` for fewer than two.
///
/// The variance of a cluster's mean is s²/n with s² pooled over the clusters, on Σ (n − 1) degrees
/// of freedom: clusters of few pairs do not show their own. Pooling is [`mixed::pool`].
pub(super) fn pool<K>(clusters: &[(K, Vec<f64>)], confidence: f64) -> Option<Clusters> {
    // Most comparisons have one, and pool nothing.
    if clusters.len() < 2 {
        return None;
    }
    let means: Vec<PairedMean> =
        clusters.iter().filter_map(|(_, list)| mean_interval(list, confidence)).collect();
    let squares = means.iter().map(|m| m.sd.unwrap_or(0.0).powi(2) * (m.n - 1) as f64);
    let df = means.iter().map(|m| m.n - 1).sum::<usize>();
    let within = squares.sum::<f64>() / df.max(1) as f64;
    let estimates: Vec<ClusterEstimate> = means
        .iter()
        .map(|m| ClusterEstimate { mean: m.mean, variance: within / m.n as f64 })
        .collect();
    let pooled = mixed::pool(&estimates)?;
    let own: Vec<f64> = means.iter().map(|mean| mean.mean).collect();
    let values = with_moments(&own, pooled.mean, pooled.se);
    let within_sd = (df > 0).then(|| within.sqrt());
    Some(Clusters { means, between_sd: pooled.between.sqrt(), within_sd, values })
}

/// The ratio of pooled values with the t interval of their standard error on k − 1 degrees of
/// freedom.
pub(super) fn ratio(values: &[f64], confidence: f64) -> (f64, Interval) {
    let k = values.len() as f64;
    let mean = values.iter().sum::<f64>() / k;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let se = (squares / (k - 1.0) / k).sqrt();
    let half = student::quantile(0.5 + confidence / 2.0, k - 1.0) * se;
    (mean.exp(), Interval { low: mean - half, high: mean + half }.exp())
}

/// `list` moved and stretched, so that its mean is `mean` and its standard error is `se`.
fn with_moments(list: &[f64], mean: f64, se: f64) -> Vec<f64> {
    let k = list.len() as f64;
    let own = list.iter().sum::<f64>() / k;
    let squares: f64 = list.iter().map(|value| (value - own).powi(2)).sum();
    let sd = (squares / (k - 1.0)).sqrt();
    let stretch = if sd > 0.0 { se * k.sqrt() / sd } else { 0.0 };
    list.iter().map(|value| mean + (value - own) * stretch).collect()
}
