//! Sampled runs: the CPU time of an operation by function, and the functions in which a target
//! takes more or less of it than the baseline.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::comparison::{Comparison, RunFacts, TargetResult};
use super::measurement::Measurement;
use rqps_model::counted::{CallGraph, CallTree, Profiled, Waited};
use rqps_model::metric::Metric;
use rqps_model::verdict::Rules;
use rqps_stats::moderated::{Estimate, Prior, SD_MIN, Spread, benjamini_hochberg};
use rqps_stats::paired::mean_interval;
use rqps_stats::summary::{mean, stddev};
use rqps_stats::{Interval, parallel};

// The change of a step's sampled CPU time, as reports show it.

/// The sampled CPU time of a step: target against base. Times are CPU microseconds per operation of
/// the server's processes, or of the client that a library works in.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledChange {
    /// Total of the baseline.
    pub baseline_total: f64,
    /// Total of the target.
    pub target_total: f64,
    /// Pairs of blocks.
    pub pairs: usize,
    /// Functions with enough samples to be tested.
    pub tested: usize,
    /// Number of functions that were shown to differ.
    pub differing: usize,
    /// The listed functions, the largest difference first.
    pub functions: Vec<SampledFunction>,
    /// Waits of threads, if they were observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits: Option<WaitChange>,
    /// Facts about the samples of both.
    pub facts: [ProfileFacts; 2],
    /// The stacks of both.
    #[serde(skip)]
    pub tree: Arc<MergedTree>,
}

/// One function in both targets, means over the pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledFunction {
    /// Its name.
    #[serde(serialize_with = "text")]
    pub name: Arc<str>,
    /// In the baseline.
    pub baseline: FunctionTime,
    /// In the target.
    pub target: FunctionTime,
    /// 95 % interval of the difference of its own time; `None` if that is too little to be tested.
    pub interval: Option<Interval>,
    /// q of its own time.
    pub q_own: Option<f64>,
    /// q of its time with the functions that it calls.
    pub q_inclusive: Option<f64>,
}

impl SampledFunction {
    /// Its own time: target − baseline.
    pub fn difference(&self) -> f64 {
        self.target.own - self.baseline.own
    }
}

/// Waits of the threads that serve clients: target against baseline. Times are microseconds per
/// operation over all threads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitChange {
    /// Pairs of blocks.
    pub pairs: usize,
    /// Waits, the largest difference first.
    pub waits: Vec<SampledWait>,
    /// Time of running or being ready to run, in baseline and target.
    pub running: [f64; 2],
    /// Threads that serve clients.
    pub serving: [u32; 2],
    /// Looks at these threads.
    pub looks: u64,
}

/// One wait in both targets, means over the pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampledWait {
    /// Its kind and the system call: `IO: fsync`.
    pub name: String,
    /// Microseconds per operation.
    pub baseline: f64,
    /// Microseconds per operation.
    pub target: f64,
    /// The test of the difference; `None` if it is too rare.
    pub test: Option<TimeTest>,
}

impl SampledWait {
    /// Target − baseline.
    pub fn difference(&self) -> f64 {
        self.target - self.baseline
    }
}

/// CPU microseconds per operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct FunctionTime {
    /// Own time.
    pub own: f64,
    /// With the functions that it calls.
    pub inclusive: f64,
}

/// Facts about the profiles of one target, over all blocks.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProfileFacts {
    /// The programs that sampled.
    pub tools: BTreeSet<String>,
    /// The methods of unwinding, by block.
    pub call_graphs: Vec<CallGraph>,
    /// True if the samples are of a client with a library in it.
    pub in_client: bool,
    /// Samples.
    pub samples: u64,
    /// Samples that were lost.
    pub lost: u64,
    /// Samples whose stack is broken.
    pub broken: u64,
    /// Samples whose function has no symbol.
    pub nameless: u64,
}

impl ProfileFacts {
    /// One more profile.
    pub(super) fn add(&mut self, sampled: &Profiled) {
        self.tools.insert(sampled.tool.clone());
        self.call_graphs.push(sampled.call_graph);
        self.in_client |= sampled.in_client;
        self.samples += sampled.samples;
        self.lost += sampled.lost;
        self.broken += sampled.broken;
        self.nameless += sampled.nameless;
    }

    /// A number of samples as a share of all.
    pub fn share(&self, samples: u64) -> f64 {
        samples as f64 / self.samples.max(1) as f64
    }
}

/// Rates of sampled blocks relative to those of the blocks of the same pass without a profiler.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Overhead {
    /// Geometric mean over all steps and targets that have both.
    pub ratio: f64,
    /// 95 % t interval over them; `None` for a single one.
    pub interval: Option<Interval>,
    /// Number of samples.
    pub count: usize,
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// The cost of sampling in a profiling pass; `None` if no step was measured with and without it.
pub(crate) fn overhead(profiles: &Comparison) -> Option<Overhead> {
    let targets = profiles.steps.iter().flat_map(|step| &step.targets);
    let difference =
        |target: &TargetResult| Some(log_rate(target, true)? - log_rate(target, false)?);
    let differences: Vec<f64> = targets.filter_map(difference).collect();
    let ratio = (!differences.is_empty()).then(|| mean(&differences).exp())?;
    let interval = mean_interval(&differences, 0.95).and_then(|it| it.interval).map(Interval::exp);
    Some(Overhead { ratio, interval, count: differences.len() })
}

/// The mean logarithm of the rate over the blocks with samples, or over those without.
fn log_rate(target: &TargetResult, is_sampled: bool) -> Option<f64> {
    let samples = target.samples.iter();
    let samples = samples.filter(|sample| sample.record.sampled.is_some() == is_sampled);
    let rates = samples.filter_map(|sample| sample.get(Metric::Rate)).filter(|rate| *rate > 0.0);
    let logs: Vec<f64> = rates.map(f64::ln).collect();
    (!logs.is_empty()).then(|| mean(&logs))
}

// Tests which functions take more or less time in a target than in the baseline: the test of
// rates, with the functions of one step in place of the steps of one suite.
//
// A function's time in a block is its share of the samples × the CPU time of an operation. The
// difference of a pair of blocks scatters for two reasons that are known in advance: samples are
// counts (Poisson), and all functions of a block vary together with the whole operation. Divided
// by the scatter expected from these, the differences of all functions have about the same
// variance and can share it (Smyth 2004), without the caution of [`Prior::robust`]: chance gives
// each variance a lower limit.

/// Differences up to this share of the baseline's time per operation are attributed to the layout
/// of code (TREAT).
pub const LAYOUT_SHARE: f64 = 0.002;

/// The samples of one target in one block.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledBlock {
    /// CPU microseconds of an operation.
    pub cost: f64,
    /// Samples of all functions.
    pub samples: u64,
}

/// The samples of one function, of baseline and target in each pair of blocks.
pub type FunctionSamples = Vec<(u64, u64)>;

/// The test of one function.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimeTest {
    /// 95 % interval of the difference, microseconds per operation.
    pub interval: Interval,
    /// Chance of as large a difference where the true one is [`LAYOUT_SHARE`], over all functions
    /// adjusted by Benjamini-Hochberg.
    pub q: f64,
}

/// Functions whose times are of one kind, and the pairs of blocks that they are from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionFamily {
    /// Baseline and target in each pair.
    pub pairs: Vec<(SampledBlock, SampledBlock)>,
    /// Samples in these pairs.
    pub functions: Vec<FunctionSamples>,
    /// Functions with fewer samples in all pairs together are too rare to be tested.
    pub least: u64,
}

/// Judges families of functions: one for their own time, one for their time with those that they
/// call. Families lend no variance to each other, but the correction is for all together. `None`
/// for functions that are too rare, and without two pairs.
pub fn judge_functions(families: &[FunctionFamily], rules: &Rules) -> Vec<Vec<Option<TimeTest>>> {
    let estimates: Vec<Vec<Option<Scaled>>> = families.iter().map(estimates).collect();
    let p: Vec<f64> = estimates
        .iter()
        .flatten()
        .flatten()
        .map(|it| it.estimate.p_beyond(it.threshold / it.scale))
        .collect();
    let mut q = benjamini_hochberg(&p).into_iter();
    let confidence = rules.confidence;
    let mut test = |it: &Scaled| {
        let interval = it.estimate.interval(confidence);
        let interval = Interval { low: interval.low * it.scale, high: interval.high * it.scale };
        TimeTest { interval, q: q.next().unwrap_or(1.0) }
    };
    let of_family = |family: &Vec<Option<Scaled>>| {
        family.iter().map(|it| it.as_ref().map(&mut test)).collect::<Vec<_>>()
    };
    estimates.iter().map(of_family).collect()
}

/// The difference of a function, in units of the scatter that is expected of one pair.
struct Scaled {
    /// Microseconds per operation.
    scale: f64,
    /// Largest effect of layout, microseconds per operation.
    threshold: f64,
    estimate: Estimate,
}

fn estimates(family: &FunctionFamily) -> Vec<Option<Scaled>> {
    let FunctionFamily { pairs, functions, least } = family;
    let count = pairs.len();
    if count < 2 || pairs.iter().any(|(a, b)| a.samples == 0 || b.samples == 0) {
        return functions.iter().map(|_| None).collect();
    }
    let threshold = LAYOUT_SHARE * mean(&pairs.iter().map(|(a, _)| a.cost).collect::<Vec<_>>());
    let ratios: Vec<f64> = pairs.iter().map(|(a, b)| (b.cost / a.cost).ln()).collect();
    let common = stddev(&ratios).unwrap_or(0.0);
    let scale = |function: &FunctionSamples| {
        let all: u64 = function.iter().map(|(a, b)| a + b).sum();
        (all >= *least).then(|| scaled_differences(pairs, function, common)).flatten()
    };
    let scaled: Vec<Option<(f64, Vec<f64>)>> = functions.iter().map(scale).collect();
    let spread = |values: &[f64]| {
        let sd = stddev(values).unwrap_or(0.0).max(SD_MIN);
        Spread { sd, df: (count - 1) as f64 }
    };
    let spreads: Vec<Spread> = scaled.iter().flatten().map(|(_, values)| spread(values)).collect();
    let prior = Prior::fit(&spreads);
    let estimate = |(scale, values): (f64, Vec<f64>)| {
        let own = spread(&values);
        let moderated = prior.as_ref().map_or(own, |prior| prior.moderate(own));
        // Counts scatter at least as chance would have it.
        let se = moderated.sd.max(1.0) / (count as f64).sqrt();
        Scaled {
            scale,
            threshold,
            estimate: Estimate { mean: mean(&values), se, df: moderated.df },
        }
    };
    scaled.into_iter().map(|it| it.map(estimate)).collect()
}

/// The differences of a function in units of their expected scatter, and that scatter.
fn scaled_differences(
    pairs: &[(SampledBlock, SampledBlock)],
    function: &FunctionSamples,
    common: f64,
) -> Option<(f64, Vec<f64>)> {
    let of_sample = |block: &SampledBlock| block.cost / block.samples as f64;
    let values: Vec<(f64, f64)> = pairs
        .iter()
        .zip(function)
        .map(|((a, b), (of_a, of_b))| (of_sample(a) * *of_a as f64, of_sample(b) * *of_b as f64))
        .collect();
    let sizes: Vec<f64> = values.iter().map(|(a, b)| (a + b) / 2.0).collect();
    // Both targets are taken to be alike: a function that one lacks has no scatter of its own.
    let size = mean(&sizes);
    let counts: Vec<f64> =
        pairs.iter().map(|(a, b)| (of_sample(a) + of_sample(b)) * size).collect();
    let variance = mean(&counts) + (common * size).powi(2);
    let scale = variance.sqrt();
    let differences = values.iter().map(|(a, b)| (b - a) / scale).collect();
    (scale > 0.0).then_some((scale, differences))
}

// Compares waits of the threads that serve clients, while they are on no CPU, between baseline and
// target. Looks at threads are samples, so the test is that of functions.

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
fn waits(
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

// The comparison of two targets by function of their sampled time.

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
        waits: waits(baseline, target, runs, rules),
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
    use rqps_model::datagen::rng::Rng;

    /// A campaign: shares of functions, noise of blocks.
    struct Campaign {
        pairs: usize,
        /// Samples of a block.
        samples: f64,
        /// Standard deviation of ln(cost) of a block.
        of_block: f64,
        /// Standard deviation of ln(time) of a function in a block, beside that.
        of_function: f64,
        /// Factor of the first function in the target.
        slower: f64,
        /// True if the baseline lacks the first function.
        new: bool,
    }

    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| rng.unit()).sum::<f64>() - 6.0
    }

    fn poisson(rng: &mut Rng, mean: f64) -> u64 {
        if mean > 60.0 {
            return (mean + mean.sqrt() * normal(rng)).max(0.0).round() as u64;
        }
        let (mut count, mut product) = (0, rng.unit());
        while product > (-mean).exp() {
            count += 1;
            product *= rng.unit();
        }
        count
    }

    impl Campaign {
        /// The smallest q of the first function, and of all others.
        fn smallest(&self, seed: u64) -> (f64, f64) {
            let mut rng = Rng::new(seed);
            // The first has 2 %, the others fall off as functions of servers do.
            let shares: Vec<f64> = std::iter::once(0.02)
                .chain((1..300).map(|rank| 0.16 / (f64::from(rank) + 2.0)))
                .collect();
            let mut pairs = Vec::new();
            let mut functions: Vec<FunctionSamples> = vec![Vec::new(); shares.len()];
            for _ in 0..self.pairs {
                let mut side = |factor: f64| {
                    let block = (self.of_block * normal(&mut rng)).exp();
                    let times: Vec<f64> = shares
                        .iter()
                        .enumerate()
                        .map(|(place, share)| {
                            let own = (self.of_function * normal(&mut rng)).exp();
                            share * own * if place == 0 { factor } else { 1.0 }
                        })
                        .collect();
                    let total: f64 = times.iter().sum();
                    let counts: Vec<u64> = times
                        .iter()
                        .map(|time| poisson(&mut rng, self.samples * time / total))
                        .collect();
                    let samples = counts.iter().sum();
                    (SampledBlock { cost: 100.0 * total * block, samples }, counts)
                };
                let before = if self.new { 0.0 } else { 1.0 };
                let ((before, of_before), (after, of_after)) = (side(before), side(self.slower));
                pairs.push((before, after));
                for (function, counts) in
                    functions.iter_mut().zip(of_before.into_iter().zip(of_after))
                {
                    function.push(counts);
                }
            }
            let family = FunctionFamily { pairs, functions, least: 20 };
            let found = judge_functions(&[family], &Rules::default());
            let q = |test: &Option<TimeTest>| test.map_or(1.0, |test| test.q);
            let others = found[0][1..].iter().map(q).fold(1.0, f64::min);
            (q(&found[0][0]), others)
        }

        /// Shares of 400 campaigns that list the first function, and any other.
        fn listed(&self) -> (f64, f64) {
            let campaigns = 400;
            let all: Vec<(f64, f64)> = (0..campaigns).map(|seed| self.smallest(seed)).collect();
            let share = |of: fn(&(f64, f64)) -> f64| {
                all.iter().filter(|it| of(it) <= 0.05).count() as f64 / f64::from(campaigns as u32)
            };
            (share(|it| it.0), share(|it| it.1))
        }
    }

    const USUAL: Campaign = Campaign {
        pairs: 6,
        samples: 8000.0,
        of_block: 0.02,
        of_function: 0.03,
        slower: 1.0,
        new: false,
    };

    #[test]
    fn equal_targets_list_a_function_in_at_most_5_of_100_campaigns() {
        let check = |campaign: Campaign| {
            let (first, others) = campaign.listed();
            assert!(first + others <= 0.05, "{first} {others}");
        };
        check(USUAL);
        check(Campaign { pairs: 3, ..USUAL });
        check(Campaign { of_block: 0.0, of_function: 0.0, ..USUAL });
        check(Campaign { of_block: 0.06, ..USUAL });
        check(Campaign { samples: 800.0, of_function: 0.08, ..USUAL });
        check(Campaign { samples: 300.0, of_block: 0.1, ..USUAL });
        check(Campaign { samples: 300.0, pairs: 3, ..USUAL });
    }

    #[test]
    fn a_new_function_of_2_percent_is_found_with_few_samples() {
        // A host so busy that the server has a tenth of a CPU.
        let (found, others) =
            Campaign { samples: 350.0, of_block: 0.1, new: true, ..USUAL }.listed();
        assert!(found >= 0.9 && others <= 0.05, "{found} {others}");
    }

    #[test]
    fn a_function_that_burns_2_percent_more_is_found() {
        let (found, _) = Campaign { slower: 2.0, ..USUAL }.listed();
        assert!(found >= 0.9, "{found}");
    }

    #[test]
    fn one_pair_and_rare_functions_are_not_judged() {
        let block = SampledBlock { cost: 50.0, samples: 1000 };
        let family = |pairs: usize, functions: &[&[(u64, u64)]]| FunctionFamily {
            pairs: vec![(block, block); pairs],
            functions: functions.iter().map(|samples| samples.to_vec()).collect(),
            least: 20,
        };
        let one = family(1, &[&[(400, 900)]]);
        assert_eq!(judge_functions(&[one], &Rules::default()), [[None]]);
        let two = family(2, &[&[(1, 9), (2, 7)], &[(100, 110), (105, 99)]]);
        let found = judge_functions(&[two], &Rules::default());
        assert_eq!(found[0][0], None);
        let test = found[0][1].unwrap();
        assert!(test.interval.low < 0.0 && test.interval.high > 0.0 && test.q > 0.5, "{test:?}");
    }

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

#[cfg(test)]
mod functions_tests {
    use super::*;
    use rqps_model::counted::CallNode;

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
