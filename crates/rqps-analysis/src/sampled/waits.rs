//! Compares waits of the threads that serve clients, while they are on no CPU, between baseline and
//! target. Looks at threads are samples, so the test is that of functions.

use std::collections::{BTreeMap, BTreeSet};

use super::difference::{SampledWait, WaitChange};
use super::judge::{FunctionFamily, FunctionSamples, SampledBlock, judge_functions};
use crate::comparison::{RunFacts, TargetResult};
use crate::measurement::Measurement;
use rqps_model::metric::Metric;
use rqps_model::sampled::Waited;
use rqps_model::verdict::Rules;
use rqps_stats::summary::mean;

/// Waits that fewer looks per pair of blocks found are too rare to be tested: many looks find one
/// long wait.
const LOOKS_LEAST: u64 = 10;
/// The row of threads that are ready to run and have no CPU.
const QUEUE: &str = "run queue";

/// The looks of one block. Each stands for `1e6 / (looks * rate)` microseconds per operation: by
/// Little's law, threads in a wait are the rate of operations times the time of each in it.
struct Block<'a> {
    waited: &'a Waited,
    of_look: f64,
}

impl Block<'_> {
    /// Looks that found a thread in a wait. The kernel measures the time in its queue: it is turned
    /// into looks.
    fn looks(&self, wait: &str) -> u64 {
        if wait == QUEUE {
            let between = self.waited.seconds / self.waited.looks.max(1) as f64;
            return (self.waited.queued_seconds / between).round() as u64;
        }
        self.waited.seen.get(wait).copied().unwrap_or(0)
    }

    fn time(&self, wait: &str) -> f64 {
        self.looks(wait) as f64 * self.of_look
    }

    /// Looks that did not find a thread waiting for its client.
    fn all(&self) -> SampledBlock {
        let samples = self.waited.running + self.waited.seen.values().sum::<u64>();
        SampledBlock { cost: samples as f64 * self.of_look, samples }
    }
}

/// The waits of a target beside those of the baseline; `None` without a pair of blocks.
pub(super) fn waits(
    baseline: &TargetResult,
    target: &TargetResult,
    runs: &[RunFacts],
    rules: &Rules,
) -> Option<WaitChange> {
    let (before, after) = (blocks(baseline, runs), blocks(target, runs));
    let pairs: Vec<(&Block<'_>, &Block<'_>)> =
        before.iter().filter_map(|(key, one)| Some((one, after.get(key)?))).collect();
    if pairs.is_empty() {
        return None;
    }
    let all = || pairs.iter().flat_map(|(one, other)| [one, other]);
    let names: BTreeSet<&str> = all()
        .flat_map(|block| block.waited.seen.keys().map(String::as_str))
        .chain([QUEUE])
        .collect();
    let of_pairs = |name: &&str| -> FunctionSamples {
        pairs.iter().map(|(one, other)| (one.looks(name), other.looks(name))).collect()
    };
    let family = FunctionFamily {
        pairs: pairs.iter().map(|(one, other)| (one.all(), other.all())).collect(),
        functions: names.iter().map(of_pairs).collect(),
        least: LOOKS_LEAST * pairs.len() as u64,
    };
    let tests = judge_functions(&[family], rules).pop().unwrap_or_default();
    let average = |of: &dyn Fn(&(&Block<'_>, &Block<'_>)) -> f64| {
        mean(&pairs.iter().map(of).collect::<Vec<f64>>())
    };
    let wait = |(name, test): (&str, Option<_>)| SampledWait {
        name: name.to_owned(),
        baseline: average(&|pair| pair.0.time(name)),
        target: average(&|pair| pair.1.time(name)),
        test,
    };
    let mut waits: Vec<SampledWait> = names.into_iter().zip(tests).map(wait).collect();
    waits.sort_by(|a, b| b.difference().abs().total_cmp(&a.difference().abs()));
    let serving = |of: fn(&(&Block<'_>, &Block<'_>)) -> u32| pairs.iter().map(of).max();
    Some(WaitChange {
        pairs: pairs.len(),
        waits,
        running: [
            average(&|pair| pair.0.waited.running as f64 * pair.0.of_look),
            average(&|pair| pair.1.waited.running as f64 * pair.1.of_look),
        ],
        serving: [
            serving(|pair| pair.0.waited.serving).unwrap_or(0),
            serving(|pair| pair.1.waited.serving).unwrap_or(0),
        ],
        looks: all().map(|block| block.waited.looks).sum(),
    })
}

fn blocks<'a>(
    target: &'a TargetResult,
    runs: &[RunFacts],
) -> BTreeMap<(String, u32, u32), Block<'a>> {
    let block = |sample: &'a Measurement| {
        let waited = sample.record.sampled.as_ref()?.waited.as_ref()?;
        let rate = sample.get(Metric::Rate).filter(|rate| *rate > 0.0)?;
        let run = &runs[sample.run];
        let key = (run.result_set.clone(), run.key.block, run.key.attempt);
        let of_look = 1e6 / rate / waited.looks.max(1) as f64;
        (waited.looks > 0).then_some((key, Block { waited, of_look }))
    };
    target.samples.iter().filter_map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_become_microseconds() {
        let seen = BTreeMap::from([("IO: fsync".to_owned(), 25)]);
        let waited = Waited {
            looks: 100,
            seconds: 1.0,
            running: 50,
            seen,
            queued_seconds: 0.1,
            ..Waited::default()
        };
        // 2,000 operations a second: 500 us each.
        let block = Block { waited: &waited, of_look: 500.0 / 100.0 };
        assert_eq!(block.time("IO: fsync"), 125.0);
        assert_eq!(block.time(QUEUE), 50.0);
        assert_eq!(block.time("lock: futex"), 0.0);
        assert_eq!(block.all(), SampledBlock { cost: 375.0, samples: 75 });
    }
}
