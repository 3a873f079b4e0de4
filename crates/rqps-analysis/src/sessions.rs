//! Pairs of several sessions: of several result sets, or of the hosts or sittings that measured
//! blocks of one plan. What sessions differ by beyond the scatter of their pairs is a random effect. Pairs are of
//! one block, so they never mix hosts.

use serde::Serialize;

use super::clusters;
use rqps_stats::Interval;

/// One ratio as one session found it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionRatio {
    /// The result set, and the host and the sitting where it has several.
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
    /// Standard deviation of a pair within its session, pooled over the sessions; `None` if each
    /// has one pair.
    pub within_sd: Option<f64>,
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
    let clusters::Clusters { between_sd, within_sd, values, .. } = pooled;
    Some(Sessions { sessions, between_sd, within_sd, values })
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
    use crate::verdict::{Judgement, judge_cluster_means};
    use rqps_model::datagen::rng::Rng;
    use rqps_model::verdict::{Rules, Verdict};
    use rqps_stats::paired::mean_interval;

    /// Box and Muller (1958).
    fn normal(rng: &mut Rng) -> f64 {
        (2.0 * rng.exponential()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
    }

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

    /// Sittings that all steps share shift by 1 %, blocks scatter by .45 %: what blocks promise is not
    /// kept (below .6 of their intervals hold the truth), what sittings promise is.
    #[test]
    fn the_interval_over_sittings_holds_the_truth() {
        let rules = Rules::default();
        let mut rng = Rng::new(43);
        for sittings in [3, 5] {
            let (mut held, mut by_blocks, mut any, mut total) = (0, 0, 0, 0);
            for _ in 0..1000 {
                let shifts: Vec<f64> = (0..sittings).map(|_| 0.01 * normal(&mut rng)).collect();
                let mut values = Vec::new();
                for _ in 0..6 {
                    let names = ["a", "b", "c", "d", "e"];
                    let pairs = names.iter().zip(&shifts).flat_map(|(name, shift)| {
                        [(); 4].map(|()| (*name, shift + 0.0045 * normal(&mut rng)))
                    });
                    let pairs: Vec<(&str, f64)> = pairs.collect();
                    let pooled = pool(&pairs, 0.95).unwrap();
                    let of_one: Vec<f64> = pairs[..4].iter().map(|pair| pair.1).collect();
                    let alone = mean_interval(&of_one, 0.95).unwrap().interval.unwrap();
                    let holds = |it: Interval, truth: f64| it.low <= truth && truth <= it.high;
                    held += usize::from(holds(pooled.ratio(0.95).1, 1.0));
                    by_blocks += usize::from(holds(alone, 0.0));
                    values.push(pooled.values);
                    total += 1;
                }
                let lists: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
                let judged = judge_cluster_means(&lists, &rules);
                let is_false =
                    |it: &Judgement| matches!(it.verdict, Verdict::Slower | Verdict::Faster);
                any += usize::from(judged.iter().any(is_false));
            }
            let share = |count: usize, of: usize| count as f64 / of as f64;
            assert!(share(held, total) >= 0.94, "{sittings}: {}", share(held, total));
            assert!(share(by_blocks, total) < 0.6, "{sittings}: {}", share(by_blocks, total));
            assert!(share(any, 1000) <= 0.05, "{sittings}: {}", share(any, 1000));
        }
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
