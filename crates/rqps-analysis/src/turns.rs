//! Scatter of the ratio inside a block and between blocks, if targets took turns within a step. The
//! block stays the unit of statistics; the scatter inside shows whether longer windows or more
//! blocks would help.

use std::collections::BTreeMap;

use super::comparison::{Comparison, RunFacts, StepComparison, TargetResult};
use super::measurement::Measurement;
use super::pairing::{PairKey, pair_key};
use rqps_model::metric::Metric;
use rqps_model::run::TurnFacts;
use rqps_model::target::Target;
use rqps_stats::paired::error_of_shares;
use rqps_stats::parallel;

/// Turns of one target and the first one in one step.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnScatter {
    /// Name of the step.
    pub step: String,
    /// Label of the target.
    pub label: String,
    /// Shortest length of a turn, milliseconds; the longest of all runs.
    pub slice_ms: f64,
    /// The state of the DBMS in the turns of others.
    pub waiting: &'static str,
    /// Turns of the target in a block, the fewest of all.
    pub turns: u32,
    /// Standard error of the ln ratio of a block by the shares of its window, the root mean square
    /// over the blocks; `None` where windows have one share.
    pub inside_ln: Option<f64>,
    /// Standard deviation of the ln ratio between blocks; `None` for fewer than two.
    pub between_ln: Option<f64>,
    /// Blocks in which both took turns.
    pub blocks: usize,
}

/// One entry for each step and target that took turns with the first target.
pub fn scatter(comparison: &Comparison) -> Vec<TurnScatter> {
    let of_step = |step| -> Vec<TurnScatter> {
        let pairs = (1..comparison.targets.len()).filter_map(|place| {
            let target = comparison.targets.get(place)?.target.as_ref();
            let is_library = target.is_some_and(Target::is_in_client);
            one(&comparison.runs, step, (place, is_library))
        });
        pairs.collect()
    };
    parallel::map(comparison.steps.iter().collect(), of_step).into_iter().flatten().collect()
}

/// The share of the windows that belongs to no turn, because one target hands over to the next;
/// over all steps and blocks in which every target finished. `None` if no targets took turns.
pub fn share_between_turns(comparison: &Comparison) -> Option<f64> {
    let (mut between, mut windows) = (0.0, 0.0);
    for step in comparison.measured_steps() {
        let mut blocks: BTreeMap<PairKey<'_>, Window> = BTreeMap::new();
        for sample in step.targets.iter().flat_map(|target| &target.samples) {
            let outcome = &sample.record.outcome;
            // Windows of processes in turns do not begin together.
            if let Some(turns) = outcome.turns.as_ref().filter(|turns| !turns.shares.is_empty()) {
                let block = blocks.entry(pair_key(&comparison.runs[sample.run])).or_default();
                block.take(outcome.seconds, turns);
            }
        }
        for window in blocks.values().filter(|window| window.missing == 0) {
            between += window.seconds - window.own_seconds;
            windows += window.seconds;
        }
    }
    (windows > 0.0).then(|| between / windows)
}

/// Carry-over of a target: the effect of the turns of others, over all its steps and blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetCarryOver {
    /// Loss of rate in turns after those of others, compared with its own next turns: a share,
    /// below 0 for a gain.
    pub slower: f64,
    /// Standard error of that.
    pub error: f64,
}

/// The carry-over of each target: the mean over the pairs of turns of all steps; `None` for targets
/// without such pairs.
pub fn carry_over(comparison: &Comparison) -> Vec<Option<TargetCarryOver>> {
    let of_target = |target: usize| {
        let (mut pairs, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for step in comparison.measured_steps() {
            let samples = step.targets.get(target).map_or(&[][..], |target| &target.samples);
            let turns = samples.iter().filter_map(|sample| sample.record.outcome.turns.as_ref());
            for found in turns.filter_map(|turns| turns.carry_over) {
                let weight = f64::from(found.pairs);
                pairs += weight;
                sum += weight * found.mean_ln;
                squares += (weight * found.error_ln).powi(2);
            }
        }
        (pairs > 0.0).then(|| TargetCarryOver {
            slower: -(sum / pairs).exp_m1(),
            error: squares.sqrt() / pairs,
        })
    };
    (0..comparison.targets.len()).map(of_target).collect()
}

/// The window of a step in one block.
#[derive(Default)]
struct Window {
    /// To the end of the last turn.
    seconds: f64,
    /// Turns of all targets.
    own_seconds: f64,
    /// Targets that took turns and are not counted yet.
    missing: u32,
    counted: u32,
}

impl Window {
    fn take(&mut self, own_seconds: f64, turns: &TurnFacts) {
        self.seconds = self.seconds.max(turns.wall_seconds);
        self.own_seconds += own_seconds;
        self.counted += 1;
        self.missing = turns.targets.saturating_sub(self.counted);
    }
}

fn one<'a>(
    runs: &'a [RunFacts],
    step: &'a StepComparison,
    (target, is_library): (usize, bool),
) -> Option<TurnScatter> {
    let (first, other) = (step.targets.first()?, step.targets.get(target)?);
    let turns_of = |target: &'a TargetResult| {
        let facts = |sample: &'a Measurement| {
            Some((pair_key(&runs[sample.run]), sample.record.outcome.turns.as_ref()?))
        };
        target.samples.iter().filter_map(facts)
    };
    let baseline: BTreeMap<PairKey<'_>, &TurnFacts> = turns_of(first).collect();
    let pairs: Vec<[&TurnFacts; 2]> =
        turns_of(other).filter_map(|(key, own)| Some([*baseline.get(&key)?, own])).collect();
    let turns = pairs.iter().map(|[_, own]| own.turns).min()?;
    let error = |[a, b]: &[&TurnFacts; 2]| error_of_shares(&a.shares, &b.shares);
    let squares: Vec<f64> = pairs.iter().filter_map(error).map(|error| error * error).collect();
    let mean = squares.iter().sum::<f64>() / squares.len().max(1) as f64;
    Some(TurnScatter {
        step: step.name.clone(),
        label: other.label.clone(),
        slice_ms: pairs.iter().map(|[_, own]| own.slice_ms).fold(0.0, f64::max),
        waiting: match pairs.iter().any(|[_, own]| own.stopped) {
            true => "stopped",
            false if is_library => "with its client",
            false => "running",
        },
        turns,
        inside_ln: (!squares.is_empty()).then(|| mean.sqrt()),
        between_ln: other.relative(Metric::Rate).and_then(|relative| relative.sd_ln),
        blocks: pairs.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_turn_holds_lies_between_turns() {
        let facts = |wall_seconds| TurnFacts { targets: 2, wall_seconds, ..TurnFacts::default() };
        let mut window = Window::default();
        window.take(1.0, &facts(1.98));
        assert_eq!(window.missing, 1, "a target that failed leaves turns that nobody counts");
        window.take(0.96, &facts(2.0));
        assert_eq!((window.missing, window.seconds), (0, 2.0));
        assert!((window.seconds - window.own_seconds - 0.04).abs() < 1e-12);
    }
}
