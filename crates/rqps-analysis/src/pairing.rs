//! Ratios of targets to their baseline, over pairs that were measured in the same block.

use std::collections::BTreeMap;

use super::comparison::{Relative, Robust, RunFacts, StepComparison, TargetResult};
use super::measurement::Measurement;
use super::{loads, sessions};
use rqps_model::metric::Metric;
use rqps_stats::Interval;
use rqps_stats::paired::{HodgesLehmann, error_of_shares, hodges_lehmann, mean_interval};
use rqps_stats::summary::median;

/// Confidence of every interval.
pub const CONFIDENCE: f64 = 0.95;

/// Fills in the ratios of all targets but the baseline.
pub(super) fn divide(runs: &[RunFacts], step: &mut StepComparison) {
    let pair_keys = |target: &TargetResult| -> Vec<(usize, PairKey<'_>)> {
        let key = |sample: &Measurement| pair_key(&runs[sample.run]);
        target.samples.iter().enumerate().map(|(i, sample)| (i, key(sample))).collect()
    };
    let Some((baseline, others)) = step.targets.split_first_mut() else { return };
    let baseline_keys: BTreeMap<PairKey<'_>, usize> =
        pair_keys(baseline).into_iter().map(|(index, key)| (key, index)).collect();
    for target in others {
        let pairs: Vec<(usize, usize)> = pair_keys(target)
            .into_iter()
            .filter_map(|(index, key)| baseline_keys.get(&key).map(|baseline| (*baseline, index)))
            .collect();
        let known: Vec<Metric> = target.metrics.keys().copied().collect();
        for metric in known {
            let relative = relative(metric, baseline, target, &pairs, runs);
            if let Some(result) = target.metrics.get_mut(&metric) {
                result.relative = relative;
            }
        }
    }
}

/// The key that two runs of a pair share: block, attempt, result set. Numbers come first, because
/// most blocks differ by them and texts take longer to compare.
pub type PairKey<'a> = (u32, u32, &'a str);

/// The key of a run.
pub fn pair_key(run: &RunFacts) -> PairKey<'_> {
    (run.key.block, run.key.attempt, &run.result_set)
}

fn relative(
    metric: Metric,
    baseline: &TargetResult,
    target: &TargetResult,
    places: &[(usize, usize)],
    runs: &[RunFacts],
) -> Option<Relative> {
    let value = |side: &TargetResult, index: usize| side.samples[index].get(metric);
    let values = |(b, t): &(usize, usize)| Some((value(baseline, *b)?, value(target, *t)?));
    let with_runs: Vec<(usize, (f64, f64))> =
        places.iter().filter_map(|at| Some((target.samples[at.1].run, values(at)?))).collect();
    let pairs: Vec<(f64, f64)> = with_runs.iter().map(|(_, pair)| *pair).collect();
    if pairs.is_empty() {
        let ratio = field_ratio(target.absolute(metric)?, baseline.absolute(metric)?);
        return Some(Relative::of_medians(ratio, 0));
    }
    if pairs.iter().any(|(baseline, target)| *baseline <= 0.0 || *target <= 0.0) {
        let bases: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let targets: Vec<f64> = pairs.iter().map(|pair| pair.1).collect();
        let ratio = field_ratio(median(&targets)?, median(&bases)?);
        return Some(Relative::of_medians(ratio, pairs.len()));
    }
    let differences: Vec<f64> =
        pairs.iter().map(|(baseline, target)| target.ln() - baseline.ln()).collect();
    let mean = mean_interval(&differences, CONFIDENCE)?;
    // The check costs n² per step: on the rate only, which is what verdicts rest on.
    let robust =
        if metric == Metric::Rate { hodges_lehmann(&differences, CONFIDENCE) } else { None };
    // exp(ln − ln) of one pair may differ from its quotient in the last bit, which moves what is
    // printed of a ratio that lies halfway between two decimals.
    let own = match pairs.as_slice() {
        [(baseline, target)] => target / baseline,
        _ => mean.mean.exp(),
    };
    let blocks: Vec<usize> = with_runs.iter().map(|(run, _)| *run).collect();
    let with_runs = || blocks.iter().map(|run| &runs[*run]).zip(differences.iter().copied());
    let of_sessions: Vec<(&str, f64)> =
        with_runs().map(|(run, difference)| (run.session.as_str(), difference)).collect();
    let sessions = sessions::pool(&of_sessions, CONFIDENCE);
    // Sessions have loads of their own, so what loads differ by is in what sessions differ by.
    let loads = match &sessions {
        Some(_) => None,
        None => {
            let of_load = |(run, difference): (&RunFacts, f64)| Some((run.load?, difference));
            let of_loads: Option<Vec<(u32, f64)>> = with_runs().map(of_load).collect();
            of_loads.and_then(|of_loads| loads::pool(&of_loads, CONFIDENCE))
        }
    };
    let pooled = match (&sessions, &loads) {
        (Some(sessions), _) => Some(sessions.ratio(CONFIDENCE)),
        (None, loads) => loads.as_ref().map(|loads| loads.ratio(CONFIDENCE)),
    };
    let (ratio, interval) = match pooled {
        Some((ratio, interval)) => (ratio, Some(interval)),
        None => (own, mean.interval.map(Interval::exp)),
    };
    Some(Relative {
        ratio,
        interval,
        sd_ln: mean.sd,
        pairs: mean.n,
        robust: robust.filter(|_| pooled.is_none()).and_then(robust_ratio),
        differences,
        block_errors: block_errors(baseline, target, places, metric),
        blocks,
        sessions,
        loads,
        judgement: None,
    })
}

/// The standard error of each pair by the shares of its window; empty if a pair has none, and for
/// other metrics than the rate.
fn block_errors(
    baseline: &TargetResult,
    target: &TargetResult,
    places: &[(usize, usize)],
    metric: Metric,
) -> Vec<f64> {
    if metric != Metric::Rate {
        return Vec::new();
    }
    fn shares(side: &TargetResult, index: usize) -> Option<&[(f64, u64)]> {
        Some(&side.samples[index].record.outcome.turns.as_ref()?.shares)
    }
    let error = |(b, t): &(usize, usize)| {
        error_of_shares(shares(baseline, *b)?, shares(target, *t)?).filter(|error| *error > 0.0)
    };
    places.iter().map(error).collect::<Option<Vec<f64>>>().unwrap_or_default()
}

fn robust_ratio(result: HodgesLehmann) -> Option<Robust> {
    let interval = result.interval?.exp();
    Some(Robust { ratio: result.estimate.exp(), interval })
}

/// The field's division: 0/0 is 1, x/0 is infinite.
pub fn field_ratio(target: f64, baseline: f64) -> f64 {
    match (target == 0.0, baseline == 0.0) {
        (true, true) => 1.0,
        (false, true) => f64::INFINITY,
        _ => target / baseline,
    }
}
