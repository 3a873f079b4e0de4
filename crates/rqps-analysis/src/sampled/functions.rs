//! The comparison of two targets by function of their sampled time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::{
    FunctionFamily, FunctionSamples, FunctionTime, ProfileFacts, SampledBlock, SampledChange,
    SampledFunction, TimeTest, judge_functions,
};
use crate::comparison::{Comparison, RunFacts, TargetResult};
use crate::measurement::Measurement;
use rqps_model::metric::Metric;
use rqps_model::sampled::{CallTree, Profiled};
use rqps_model::verdict::Rules;
use rqps_stats::parallel;
use rqps_stats::summary::mean;

/// Rows of the list at most.
const ROWS_MOST: usize = 40;
/// A profile with a larger share of broken stacks tells nothing about callers.
const BROKEN_MOST: f64 = 0.2;

/// Functions with fewer samples in all pairs together are too rare to be tested. So many are enough
/// to show a function that one target lacks, and chance moves so few less than the normal
/// distribution of the test expects.
const SAMPLES_LEAST: u64 = 20;

/// Samples of a function of its own, and with those that it calls.
type Samples = (u64, u64);

/// Profiles of baseline and target in one block.
type Pair<'a> = (&'a Profile<'a>, &'a Profile<'a>);

/// A profile of one target in one block.
struct Profile<'a> {
    sampled: &'a Profiled,
    tree: &'a CallTree,
    block: SampledBlock,
    functions: HashMap<&'a Arc<str>, Samples>,
}

impl Profile<'_> {
    /// CPU microseconds of an operation that a sample stands for.
    fn of_sample(&self) -> f64 {
        self.block.cost / self.block.samples as f64
    }

    fn has_stacks(&self) -> bool {
        self.sampled.broken as f64 <= BROKEN_MOST * self.sampled.samples as f64
    }
}

/// Adds what was sampled to the steps of a comparison of sampled runs.
pub(crate) fn compare(comparison: &mut Comparison) {
    let rules = comparison.rules;
    let runs = &comparison.runs;
    let found = parallel::map(comparison.steps.iter().collect(), |step| {
        let (baseline, targets) = step.targets.split_first()?;
        let of_target = |target| change(baseline, target, runs, &rules).map(Box::new);
        Some(targets.iter().map(of_target).collect::<Vec<_>>())
    });
    for (step, found) in comparison.steps.iter_mut().zip(found) {
        let targets = step.targets.iter_mut().skip(1);
        for (target, change) in targets.zip(found.into_iter().flatten()) {
            target.sampled = change;
        }
    }
}

/// Names the function behind a server's CPU time that moved with a rate.
pub(crate) fn explain(comparison: &mut Comparison, profiles: &Comparison) {
    let baseline = comparison.baseline.clone();
    for step in comparison.steps.iter_mut().filter(|_| baseline == profiles.baseline) {
        let Some(sampled) = profiles.steps.iter().find(|other| other.name == step.name) else {
            continue;
        };
        for target in step.targets.iter_mut().skip(1) {
            let found = sampled.targets.iter().find(|other| other.label == target.label);
            let Some(change) = found.and_then(|found| found.sampled.as_ref()) else { continue };
            let of_cpu = |metric| metric == Metric::ServerCpuPerOp;
            for cost in target.explanations.iter_mut().filter(|cost| of_cpu(cost.metric)) {
                cost.detail = largest(change, cost.ratio > 1.0);
            }
        }
    }
}

/// The function whose own time changed most in a direction.
fn largest(change: &SampledChange, more: bool) -> Option<String> {
    let own = change.functions.iter().filter(|it| it.q_own.is_some_and(|q| q <= 0.05));
    let mut along = own.filter(|it| (it.difference() > 0.0) == more);
    let first = along.next()?;
    Some(format!("{} {:+.2} us", first.name, first.difference()))
}

fn change(
    baseline: &TargetResult,
    target: &TargetResult,
    runs: &[RunFacts],
    rules: &Rules,
) -> Option<SampledChange> {
    let (before, after) = (profiles(baseline, runs), profiles(target, runs));
    let pairs: Vec<Pair<'_>> =
        before.iter().filter_map(|(block, one)| Some((one, after.get(block)?))).collect();
    if pairs.is_empty() {
        return None;
    }
    let mut facts = [ProfileFacts::default(), ProfileFacts::default()];
    for (one, other) in &pairs {
        facts[0].add(one.sampled);
        facts[1].add(other.sampled);
    }
    let all = pairs.iter().flat_map(|(one, other)| [one, other]);
    let names: BTreeSet<&Arc<str>> =
        all.flat_map(|profile| profile.functions.keys().copied()).collect();
    let names: Vec<&Arc<str>> = names.into_iter().collect();
    let with_stacks: Vec<Pair<'_>> =
        pairs.iter().filter(|(a, b)| a.has_stacks() && b.has_stacks()).copied().collect();
    let Found { tested, differing, functions } = differing((&pairs, &with_stacks), &names, rules);
    let mut merger = Merger::default();
    for (one, other) in &with_stacks {
        let share = 1.0 / with_stacks.len() as f64;
        merger.add(one.tree, one.of_sample() * share, false);
        merger.add(other.tree, other.of_sample() * share, true);
    }
    let cost = |of: fn(&Pair<'_>) -> f64| mean(&pairs.iter().map(of).collect::<Vec<f64>>());
    Some(SampledChange {
        baseline_total: cost(|(one, _)| one.block.cost),
        target_total: cost(|(_, other)| other.block.cost),
        pairs: pairs.len(),
        tested,
        differing,
        functions,
        waits: super::waits(baseline, target, runs, rules),
        facts,
        tree: Arc::new(merger.end()),
    })
}

/// Results of a step's tests.
struct Found {
    tested: usize,
    differing: usize,
    functions: Vec<SampledFunction>,
}

/// Tests the functions of a step.
fn differing(
    (pairs, with_stacks): (&[Pair<'_>], &[Pair<'_>]),
    names: &[&Arc<str>],
    rules: &Rules,
) -> Found {
    let families = [
        family(pairs, names, |samples| samples.0),
        family(with_stacks, names, |samples| samples.1),
    ];
    let mut found = judge_functions(&families, rules).into_iter();
    let (own, inclusive) = (found.next().unwrap_or_default(), found.next().unwrap_or_default());
    let tested = own.iter().zip(&inclusive).filter(|(own, all)| own.or(**all).is_some()).count();
    let differs = |test: &Option<TimeTest>| test.is_some_and(|test| test.q <= rules.q);
    let mut functions: Vec<SampledFunction> = Vec::new();
    for ((name, own), inclusive) in names.iter().zip(own).zip(inclusive) {
        if differs(&own) || differs(&inclusive) {
            functions.push(SampledFunction {
                name: Arc::clone(name),
                baseline: time(name, (pairs, with_stacks), |pair| pair.0),
                target: time(name, (pairs, with_stacks), |pair| pair.1),
                interval: own.map(|test| test.interval),
                q_own: own.map(|test| test.q),
                q_inclusive: inclusive.map(|test| test.q),
            });
        }
    }
    let size = |it: &SampledFunction| it.difference().abs();
    functions.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.name.cmp(&b.name)));
    let differing = functions.len();
    functions.truncate(ROWS_MOST);
    Found { tested, differing, functions }
}

/// Result set, block and attempt, which a pair shares.
type BlockKey = (String, u32, u32);

fn profiles<'a>(target: &'a TargetResult, runs: &[RunFacts]) -> BTreeMap<BlockKey, Profile<'a>> {
    let profile = |sample: &'a Measurement| {
        let sampled = sample.record.sampled.as_ref()?;
        let tree = sampled.profile.as_deref()?;
        let metric =
            if sampled.in_client { Metric::ClientCpuPerOp } else { Metric::ServerCpuPerOp };
        let functions = samples_of(tree);
        let samples = tree.nodes.iter().map(|node| node.own).sum();
        let cost = sample.get(metric)?;
        let run = &runs[sample.run];
        let key = (run.result_set.clone(), run.key.block, run.key.attempt);
        let block = SampledBlock { cost, samples };
        (samples > 0).then_some((key, Profile { sampled, tree, block, functions }))
    };
    target.samples.iter().filter_map(profile).collect()
}

/// The samples of each function. Calls of a function within itself count once.
fn samples_of(tree: &CallTree) -> HashMap<&Arc<str>, Samples> {
    let mut inclusive: Vec<u64> = tree.nodes.iter().map(|node| node.own).collect();
    for (place, node) in tree.nodes.iter().enumerate().rev() {
        if let Some(caller) = node.caller {
            inclusive[caller as usize] += inclusive[place];
        }
    }
    let is_within_itself = |place: usize| {
        let name = tree.nodes[place].name;
        let mut caller = tree.nodes[place].caller;
        while let Some(at) = caller {
            if tree.nodes[at as usize].name == name {
                return true;
            }
            caller = tree.nodes[at as usize].caller;
        }
        false
    };
    let mut all: HashMap<&Arc<str>, Samples> = HashMap::new();
    for (place, node) in tree.nodes.iter().enumerate() {
        let samples = all.entry(&tree.names[node.name as usize]).or_default();
        samples.0 += node.own;
        if !is_within_itself(place) {
            samples.1 += inclusive[place];
        }
    }
    all
}

fn family(pairs: &[Pair<'_>], names: &[&Arc<str>], which: fn(Samples) -> u64) -> FunctionFamily {
    let of = |profile: &Profile<'_>, name: &Arc<str>| {
        which(profile.functions.get(name).copied().unwrap_or_default())
    };
    let function = |name: &&Arc<str>| -> FunctionSamples {
        pairs.iter().map(|(one, other)| (of(one, name), of(other, name))).collect()
    };
    FunctionFamily {
        pairs: pairs.iter().map(|(one, other)| (one.block, other.block)).collect(),
        functions: names.iter().map(function).collect(),
        least: SAMPLES_LEAST,
    }
}

/// Means over blocks; with callees over those whose stacks are whole.
fn time<'a>(
    name: &Arc<str>,
    (pairs, with_stacks): (&[Pair<'a>], &[Pair<'a>]),
    which: fn(&Pair<'a>) -> &'a Profile<'a>,
) -> FunctionTime {
    let mean_of = |pairs: &[Pair<'a>], samples: fn(Samples) -> u64| {
        let times = pairs.iter().map(which).map(|profile| {
            let found = profile.functions.get(name).copied().unwrap_or_default();
            samples(found) as f64 * profile.of_sample()
        });
        mean(&times.collect::<Vec<f64>>())
    };
    FunctionTime {
        own: mean_of(pairs, |samples| samples.0),
        inclusive: if with_stacks.is_empty() {
            0.0
        } else {
            mean_of(with_stacks, |samples| samples.1)
        },
    }
}

// The call trees of two targets in one: what a flame graph shows.

/// Call trees of baseline and target, joined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergedTree {
    /// Names of functions.
    pub names: Vec<Arc<str>>,
    /// A caller comes before those that it calls.
    pub nodes: Vec<MergedNode>,
}

/// A function in the place where it was called, with its CPU microseconds per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergedNode {
    /// Place of its caller among the nodes.
    pub caller: Option<u32>,
    /// Place of its name.
    pub name: u32,
    /// Own time in the baseline.
    pub baseline: f64,
    /// Own time in the target.
    pub target: f64,
}

/// Joins trees node by node.
#[derive(Default)]
struct Merger {
    tree: MergedTree,
    names: HashMap<Arc<str>, u32>,
    places: HashMap<(Option<u32>, u32), u32>,
}

impl Merger {
    /// Adds the stacks of a profile of the target, or of the baseline, with the microseconds per
    /// operation that a sample stands for.
    fn add(&mut self, tree: &CallTree, of_sample: f64, is_target: bool) {
        let mut places: Vec<u32> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let caller = node.caller.map(|caller| places[caller as usize]);
            let place = self.place(caller, &tree.names[node.name as usize]);
            places.push(place);
            let time = node.own as f64 * of_sample;
            let merged = &mut self.tree.nodes[place as usize];
            if is_target { merged.target += time } else { merged.baseline += time }
        }
    }

    fn place(&mut self, caller: Option<u32>, name: &Arc<str>) -> u32 {
        let names = &mut self.tree.names;
        let name = *self.names.entry(Arc::clone(name)).or_insert_with(|| {
            names.push(Arc::clone(name));
            names.len() as u32 - 1
        });
        let nodes = &mut self.tree.nodes;
        *self.places.entry((caller, name)).or_insert_with(|| {
            nodes.push(MergedNode { caller, name, baseline: 0.0, target: 0.0 });
            nodes.len() as u32 - 1
        })
    }

    /// The merged tree.
    fn end(self) -> MergedTree {
        self.tree
    }
}

impl MergedTree {
    /// For each node the time with all that it calls: of baseline and target.
    pub fn inclusive(&self) -> Vec<(f64, f64)> {
        let mut all: Vec<(f64, f64)> =
            self.nodes.iter().map(|node| (node.baseline, node.target)).collect();
        for place in (0..self.nodes.len()).rev() {
            if let Some(caller) = self.nodes[place].caller {
                let (baseline, target) = all[place];
                all[caller as usize].0 += baseline;
                all[caller as usize].1 += target;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::sampled::CallNode;

    #[test]
    fn recursion_counts_once() {
        let node = |caller, name, own| CallNode { caller, name, own };
        let tree = CallTree {
            names: vec![Arc::from("main"), Arc::from("walk")],
            nodes: vec![
                node(None, 0, 1),
                node(Some(0), 1, 2),
                node(Some(1), 1, 3),
                node(Some(2), 1, 4),
            ],
        };
        let found = samples_of(&tree);
        assert_eq!(found[&tree.names[0]], (1, 10));
        assert_eq!(found[&tree.names[1]], (9, 9));
    }

    #[test]
    fn stacks_of_two_targets_are_one_tree() {
        let tree = |names: &[&str], nodes: &[(Option<u32>, u32, u64)]| CallTree {
            names: names.iter().map(|name| Arc::from(*name)).collect(),
            nodes: nodes
                .iter()
                .map(|&(caller, name, own)| CallNode { caller, name, own })
                .collect(),
        };
        let before = tree(&["main", "read"], &[(None, 0, 1), (Some(0), 1, 4)]);
        let after =
            tree(&["read", "main", "sort"], &[(None, 1, 0), (Some(0), 0, 3), (Some(1), 2, 5)]);
        let mut merger = Merger::default();
        merger.add(&before, 2.0, false);
        merger.add(&after, 1.0, true);
        let merged = merger.end();
        let names: Vec<&str> =
            merged.nodes.iter().map(|node| &*merged.names[node.name as usize]).collect();
        assert_eq!(names, ["main", "read", "sort"]);
        assert_eq!(merged.inclusive(), [(10.0, 8.0), (8.0, 8.0), (0.0, 5.0)]);
    }
}
