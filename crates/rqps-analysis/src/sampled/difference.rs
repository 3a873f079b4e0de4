//! The change of a step's sampled CPU time, as reports show it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::judge::TimeTest;
use super::tree::MergedTree;
use crate::comparison::{Comparison, TargetResult};
use rqps_model::metric::Metric;
use rqps_model::sampled::{CallGraph, Profiled};
use rqps_stats::Interval;
use rqps_stats::paired::mean_interval;
use rqps_stats::summary::mean;

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
