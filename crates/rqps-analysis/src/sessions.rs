//! Pairs of several sessions: of several result sets, or of the hosts that measured blocks of one
//! plan. What sessions differ by beyond the scatter of their pairs is a random effect. Pairs are of
//! one block, so they never mix hosts.

use serde::Serialize;

use super::clusters;
use rqps_stats::Interval;

/// One ratio as one session found it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionRatio {
    /// The result set, and the host where it has several.
    #[serde(rename = "result_set")]
    pub session: String,
    /// exp(mean d) over its pairs.
    pub ratio: f64,
    /// The t interval of the session alone, 95 %, as a ratio; `None` for one pair.
    pub interval: Option<Interval>,
    /// Its pairs.
    pub pairs: usize,
}

/// One ratio over several sessions. Logarithms are natural.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sessions {
    /// One for each session with a pair, in the order of their runs.
    pub sessions: Vec<SessionRatio>,
    /// Standard deviation between sessions, τ of the random effect, of ln ratios.
    pub between_sd: f64,
    /// One value for each session: their mean and standard error are those of the pooled estimate,
    /// so that what judges lists of pairs judges sessions the same way.
    #[serde(skip)]
    pub values: Vec<f64>,
}

/// Pools pairs (session, ln ratio). `None` if they are all of one session.
pub(super) fn pool(pairs: &[(&str, f64)], confidence: f64) -> Option<Sessions> {
    let sets = clusters::by_key(pairs);
    let pooled = clusters::pool(&sets, confidence)?;
    let sessions = sets.iter().zip(&pooled.means).map(|((set, _), mean)| SessionRatio {
        session: (*set).to_owned(),
        ratio: mean.mean.exp(),
        interval: mean.interval.map(Interval::exp),
        pairs: mean.n,
    });
    let sessions = sessions.collect();
    Some(Sessions { sessions, between_sd: pooled.between_sd, values: pooled.values })
}

impl Sessions {
    /// The pooled ratio with the t interval of its standard error on k − 1 degrees of freedom.
    pub(super) fn ratio(&self, confidence: f64) -> (f64, Interval) {
        clusters::ratio(&self.values, confidence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_session_is_not_pooled() {
        assert_eq!(pool(&[("a", 0.1), ("a", 0.2)], 0.95), None);
        assert_eq!(pool(&[], 0.95), None);
    }

    /// Balanced sessions: REML and HKSJ give the plain t over the means of the sessions.
    #[test]
    fn balanced_sessions_give_the_t_over_their_means() {
        let pairs = [("a", 0.00), ("a", 0.02), ("b", 0.09), ("b", 0.11), ("c", 0.04), ("c", 0.06)];
        let pooled = pool(&pairs, 0.95).unwrap();
        let (ratio, interval) = pooled.ratio(0.95);
        // Means .01, .10, .05: mean .16/3, variance .0020333, t(.975; 2) = 4.302653.
        assert!((ratio.ln() - 0.16 / 3.0).abs() < 1e-9, "{ratio}");
        let half = 4.302_652_7 * (0.006_1f64 / 3.0 / 3.0).sqrt();
        assert!((interval.high.ln() - (0.16 / 3.0 + half)).abs() < 1e-7, "{interval:?}");
        // Within: .0002 each, so .0001 of each mean.
        assert!((pooled.between_sd.powi(2) - (0.006_1 / 3.0 - 0.000_1)).abs() < 1e-9);
        let of_b = &pooled.sessions[1];
        assert_eq!((of_b.session.as_str(), of_b.pairs), ("b", 2));
        assert!((of_b.ratio - 0.1f64.exp()).abs() < 1e-12);
    }

    /// A session that is quiet in itself and elsewhere the next time shows nothing for sure.
    #[test]
    fn two_sessions_that_disagree_are_wide() {
        let of = |set: &'static str, mean: f64| [-0.001, 0.0, 0.001].map(|d| (set, mean + d));
        let pairs: Vec<(&str, f64)> = [of("a", 0.0), of("b", 0.05)].concat();
        let (ratio, interval) = pool(&pairs, 0.95).unwrap().ratio(0.95);
        assert!((ratio.ln() - 0.025).abs() < 1e-9);
        // t(.975; 1) = 12.706205, standard error .025.
        assert!((interval.low.ln() - (0.025 - 12.706_205 * 0.025)).abs() < 1e-5, "{interval:?}");
    }
}
