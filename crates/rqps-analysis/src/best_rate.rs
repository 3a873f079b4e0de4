//! The highest rate at which each target keeps a limit of its response times: what to try next, and
//! what is known.
//!
//! The first round sends as fast as clients can; its rates are the scale. Every later round sends
//! to all targets at one rate, on a Poisson schedule, and each window keeps the limit or not
//! ([`RateWindow::keeps`](rqps_model::bisection::RateWindow::keeps)). The best rate is the one that
//! half of the windows keep; its posterior is that of [`Threshold`].

use std::collections::BTreeMap;

use serde::Serialize;

use rqps_model::bisection::{CampaignLog, RateRequest, RateRound};
use rqps_stats::Interval;
use rqps_stats::bisection::Threshold;

/// Confidence of all intervals.
const CONFIDENCE: f64 = 0.95;
/// A rate is known if its interval reaches no further than this share to each side.
const KNOWN_WITHIN: f64 = 0.025;
/// Rates that are looked at, as logarithms relative to the lowest and highest closed loop.
const BELOW: f64 = 4.0;
const ABOVE: f64 = 0.3;
/// Rounds in a row without a window after which a target is given up.
const LOST_AFTER: usize = 3;

/// What to measure next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NextRate {
    /// As fast as clients can.
    Closed,
    /// So many events per second.
    Open(f64),
    /// Enough is known, or the budget is spent.
    End,
}

/// The best rates of the targets of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestRates {
    /// The step.
    pub step: String,
    /// Name of the metric that has the limit.
    pub metric: String,
    /// The limit, in milliseconds.
    pub limit_ms: f64,
    /// The targets, the one that others are compared with first.
    pub targets: Vec<BestRate>,
    /// Rounds.
    pub rounds: usize,
    /// Seconds, loads included.
    pub seconds: f64,
}

/// The best rate of a target.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BestRate {
    /// Its label.
    pub label: String,
    /// Events per second in the closed loop; `None` if it could not be measured.
    pub closed: Option<f64>,
    /// What the search found; `None` if no window has the target.
    pub found: Option<FoundRate>,
    /// Windows at a rate, and those that kept the limit.
    pub windows: usize,
    /// Those that kept it.
    pub kept: usize,
    /// Against the first target.
    pub relative: Option<RelativeRate>,
    /// Why it could not be measured, as its server or the driver said last.
    pub fault: Option<String>,
}

/// A rate with its interval, events per second.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FoundRate {
    /// The median.
    pub rate: f64,
    /// The 95 % interval.
    pub interval: Interval,
    /// True if no window kept the limit: the rate is lower than the interval says.
    pub none_kept: bool,
    /// True if every window kept it: the clients cannot send more.
    pub all_kept: bool,
}

/// A ratio of best rates.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RelativeRate {
    /// Rate divided by that of the first target.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Interval,
}

/// What a search was asked for, and its rounds.
pub type RateLog = CampaignLog<RateRequest, RateRound>;

/// What is known of the threshold of each target, in the order of `labels`. `None` before the first
/// round, or if it has no window.
fn thresholds(log: &RateLog, labels: &[String]) -> Option<Vec<Threshold>> {
    let (first, others) = log.rounds.split_first()?;
    let closed = || first.windows.values().map(|window| window.events_per_second.ln());
    let low = closed().reduce(f64::min)? - BELOW;
    let high = closed().reduce(f64::max)? + ABOVE;
    let of_one = |label: &String| {
        let mut threshold = Threshold::new(low, high);
        for (rate, keeps) in windows(others, label, log.request.limit_ms) {
            threshold.record(rate.ln(), keeps);
        }
        threshold
    };
    Some(labels.iter().map(of_one).collect())
}

/// Rates of the windows of a target, and whether each kept the limit.
fn windows<'a>(
    rounds: &'a [RateRound],
    label: &'a str,
    limit_ms: f64,
) -> impl Iterator<Item = (f64, bool)> + 'a {
    rounds.iter().filter_map(move |round| {
        let rate = round.rate?;
        Some((rate, round.windows.get(label)?.keeps(rate, limit_ms)))
    })
}

/// What to measure next of these targets.
pub fn next(log: &RateLog, labels: &[String]) -> NextRate {
    let Some(thresholds) = thresholds(log, labels) else {
        return if log.rounds.is_empty() { NextRate::Closed } else { NextRate::End };
    };
    let spent: f64 = log.rounds.iter().map(|round| round.seconds).sum();
    if spent + spent / log.rounds.len() as f64 > log.request.budget_seconds {
        return NextRate::End;
    }
    let lost = |label: &String| {
        let last = log.rounds.iter().rev().take(LOST_AFTER);
        log.rounds.len() >= LOST_AFTER && last.clone().all(|it| !it.windows.contains_key(label))
    };
    let wide = |threshold: &Threshold| {
        let Interval { low, high } = threshold.interval(CONFIDENCE);
        high - low
    };
    let open = labels.iter().zip(&thresholds).filter(|(label, _)| !lost(label));
    let widest = open.map(|(_, it)| (wide(it), it)).max_by(|a, b| a.0.total_cmp(&b.0));
    match widest {
        Some((width, threshold)) if width > 2.0 * KNOWN_WITHIN => {
            NextRate::Open(threshold.quantile(0.5).exp())
        }
        _ => NextRate::End,
    }
}

/// What is known of these targets.
pub fn best_rates(log: &RateLog, labels: &[String]) -> BestRates {
    let thresholds = thresholds(log, labels);
    let faults: BTreeMap<&String, &String> =
        log.rounds.iter().flat_map(|round| &round.faults).collect();
    let first = log.rounds.first();
    let target = |at: usize, label: &String| {
        let windows: Vec<bool> =
            windows(&log.rounds, label, log.request.limit_ms).map(|(_, keeps)| keeps).collect();
        let kept = windows.iter().filter(|keeps| **keeps).count();
        let known = thresholds.as_ref().filter(|_| !windows.is_empty());
        let found = known.map(|all| FoundRate {
            rate: all[at].quantile(0.5).exp(),
            interval: all[at].interval(CONFIDENCE).exp(),
            none_kept: kept == 0,
            all_kept: kept == windows.len(),
        });
        let relative = known.filter(|_| at > 0).map(|all| {
            let (ln, interval) = all[at].above(&all[0], CONFIDENCE);
            RelativeRate { ratio: ln.exp(), interval: interval.exp() }
        });
        BestRate {
            label: label.clone(),
            closed: first.and_then(|it| it.windows.get(label)).map(|it| it.events_per_second),
            found,
            windows: windows.len(),
            kept,
            relative,
            fault: faults.get(label).map(|fault| (*fault).clone()),
        }
    };
    let mut targets: Vec<BestRate> =
        labels.iter().enumerate().map(|(at, label)| target(at, label)).collect();
    // Two ends of the range are no measurements, so they make no ratio.
    let is_measured = |it: &BestRate| it.found.is_some_and(|it| !it.none_kept && !it.all_kept);
    let has_base = targets.first().is_some_and(is_measured);
    for target in &mut targets {
        target.relative = target.relative.filter(|_| has_base && is_measured(target));
    }
    BestRates {
        step: log.request.step.clone(),
        metric: log.request.metric.clone(),
        limit_ms: log.request.limit_ms,
        targets,
        rounds: log.rounds.len(),
        seconds: log.rounds.iter().map(|round| round.seconds).sum(),
    }
}

#[cfg(test)]
mod tests {
    use rqps_model::bisection::{CAMPAIGN_FORMAT, RateRequest, RateWindow};
    use rqps_model::datagen::rng::Rng;

    use super::*;

    /// Servers whose response time at a rate is that of a queue with one server (M/M/1): its 99th
    /// percentile is ln(100) / (capacity − rate).
    fn searched(capacities: &[(&str, f64)], limit_ms: f64, rng: &mut Rng) -> BestRates {
        let labels: Vec<String> = capacities.iter().map(|(label, _)| (*label).to_owned()).collect();
        let request = RateRequest {
            plan: String::new(),
            step: "point-query".to_owned(),
            metric: "p99_ms".to_owned(),
            limit_ms,
            budget_seconds: 60.0 * 8.0,
        };
        let mut log = CampaignLog { format: CAMPAIGN_FORMAT, request, rounds: Vec::new() };
        loop {
            let rate = match next(&log, &labels) {
                NextRate::Closed => None,
                NextRate::Open(rate) => Some(rate),
                NextRate::End => return best_rates(&log, &labels),
            };
            let mut windows = BTreeMap::new();
            for (label, capacity) in capacities {
                let sent = rate.unwrap_or(*capacity);
                let noise = 1.0 + 0.1 * (rng.unit() - 0.5);
                let response = 1000.0 * 100_f64.ln() / (capacity - sent).max(1.0) * noise;
                let events_per_second = sent.min(*capacity);
                let events = (2.0 * events_per_second) as u64;
                let window =
                    RateWindow { events_per_second, events, errors: 0, response_ms: response };
                windows.insert((*label).to_owned(), window);
            }
            let (folder, faults) = (format!("round-{}", log.rounds.len()), BTreeMap::new());
            log.rounds.push(RateRound { folder, seconds: 10.0, rate, windows, faults });
        }
    }

    #[test]
    fn the_knee_of_a_queue_is_found_within_five_per_cent() {
        let (mut near, mut held, mut equal) = (0, 0, 0);
        for seed in 0..40 {
            let mut rng = Rng::new(seed);
            let capacity = 3000.0 + 9000.0 * rng.unit();
            // 5 ms: rate = capacity − ln(100) / .005.
            let truth = [capacity - 921.0, 0.9 * capacity - 921.0];
            let both = [("a", capacity), ("same", capacity), ("b", 0.9 * capacity)];
            let found = searched(&both, 5.0, &mut rng);
            let a = found.targets[0].found.expect("a rate");
            let b = found.targets[2].relative.expect("a ratio");
            near += usize::from((a.rate / truth[0] - 1.0).abs() < 0.05);
            held += usize::from(b.interval.low <= truth[1] / truth[0] && b.interval.high < 1.0);
            let same = found.targets[1].relative.expect("a ratio").interval;
            equal += usize::from(same.low <= 1.0 && same.high >= 1.0);
        }
        assert_eq!((near, equal), (40, 40));
        assert!(held >= 38, "{held} of 40 losses");
    }

    #[test]
    fn limits_that_no_rate_or_every_rate_keeps_are_no_measurements() {
        let found = searched(&[("a", 5000.0), ("b", 4000.0)], 0.0001, &mut Rng::new(1));
        assert!(found.targets.iter().all(|it| it.found.is_some_and(|it| it.none_kept)));
        assert!(found.targets.iter().all(|it| it.relative.is_none()));
    }
}
