//! Hooks of a benchmark in the analysis. Each hook is asked about every step, run or comparison,
//! and answers by the facts in it; hooks return what they find and change nothing.

use std::collections::BTreeMap;

use super::caveat::{Caveat, Evidence};
use super::comparison::{Comparison, MissedRate, StepComparison, TargetResult};
use super::measurement::MetricValue;
use super::metrics::Latencies;
use rqps_model::benchmark::Workload;
use rqps_model::metric::Metric;
use rqps_model::run::{Second, StepRecord};

/// Figures that follow from the seconds of a step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecondFigures {
    /// Means over the seconds.
    pub means: BTreeMap<Metric, f64>,
    /// Column → a number for each second.
    pub series: BTreeMap<String, Vec<f64>>,
}

/// The hooks of one benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Extension {
    /// The benchmark, as run records name it.
    pub benchmark: &'static str,
    /// True if steps build on each other: reports keep their sequence.
    pub in_sequence: bool,
    /// True if a plan cannot know whether a step writes: its group is then that of what it did.
    pub groups_by_facts: bool,
    /// Metrics from the seconds of its own steps; `None` if their files need not be read.
    pub by_second: Option<fn(&[Second]) -> SecondFigures>,
    /// Returns the metrics of a step beside the common ones.
    pub measure: fn(&StepRecord, &Latencies) -> Vec<MetricValue>,
    /// Returns the write rate that a target of so many clients did not keep beside its queries.
    pub missed_rate: fn(&TargetResult, u32) -> Option<MissedRate>,
    /// Removes from a workload what makes no difference to its results.
    pub comparable: fn(&mut Workload),
    /// Returns steps that follow from the measured ones, without ratios.
    pub derive: fn(&Comparison) -> Vec<StepComparison>,
    /// Returns reasons for doubt.
    pub caveats: fn(&Evidence<'_>) -> Vec<Caveat>,
}

impl Extension {
    /// A benchmark that adds nothing.
    pub const fn none(benchmark: &'static str) -> Extension {
        Extension {
            benchmark,
            in_sequence: false,
            groups_by_facts: false,
            by_second: None,
            measure: |_, _| Vec::new(),
            missed_rate: |_, _| None,
            comparable: |_| {},
            derive: |_| Vec::new(),
            caveats: |_| Vec::new(),
        }
    }
}
