//! The overview: every step of every target relative to the base, by any of the metrics that
//! explain a rate, with the runs behind each number.

use std::collections::BTreeSet;

use super::document::Digits;
use crate::analyze::Comparison;
use crate::analyze::compare::TargetResult;
use crate::analyze::metrics::rate_unit;
use crate::analyze::verdict::Judgement;
use crate::domain::metric::{Direction, Metric};
use crate::domain::verdict::Verdict;
use crate::stats::Interval;

/// What the overview can be coloured by, besides whatever else a benchmark measures: the rate, and
/// what moves with it.
const COMMON: [Metric; 10] = [
    Metric::Rate,
    Metric::CpuPerOp,
    Metric::ServerCpuPerOp,
    Metric::ClientCpuPerOp,
    Metric::ContextSwitchesPerOp,
    Metric::ReadsPerOp,
    Metric::ReadKbPerOp,
    Metric::WriteKbPerOp,
    Metric::P50,
    Metric::P99,
];

/// The overview.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// All labels, the base first.
    pub targets: Vec<String>,
    /// The rate first.
    pub metrics: Vec<Measure>,
    /// In the field's order.
    pub steps: Vec<Row>,
}

/// A metric of the overview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// As a column head.
    pub name: &'static str,
    /// Of absolute values; empty where it is the step's own.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Direction,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: &'static str,
    /// Unit of its rate.
    pub unit: &'static str,
    /// One for each target, the base first.
    pub cells: Vec<Cell>,
}

/// A step of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// One for each metric; `None` where there is no ratio, and for the base.
    pub ratios: Vec<Option<Ratio>>,
    /// Medians over the samples, one for each metric.
    pub absolute: Vec<Option<f64>>,
    /// The runs behind it.
    pub samples: Vec<Sample>,
    /// Why there is nothing to show; empty if there is.
    pub missing: String,
}

/// Target / base.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// May be infinite.
    pub ratio: f64,
    /// 95 % interval.
    pub interval: Option<Interval>,
    /// Pairs.
    pub pairs: usize,
    /// What is said about it; `None` where nothing is judged.
    pub verdict: Option<Verdict>,
    /// What the verdict rests on, in words.
    pub reason: String,
}

/// One run of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Its run folder.
    pub folder: String,
    /// Its files in `steps/`, without the extension: `03-point-query`.
    pub file: String,
    /// One for each metric.
    pub values: Vec<Option<f64>>,
}

/// The overview; `None` where there is nothing to compare.
pub(super) fn overview(comparison: &Comparison) -> Option<Heat> {
    if comparison.targets.len() < 2 || comparison.steps.is_empty() {
        return None;
    }
    let metrics = shown_metrics(comparison);
    let steps = comparison.steps.iter().map(|step| Row {
        name: step.name.clone(),
        group: step.group.name(),
        unit: rate_unit(step.rate),
        cells: step.targets.iter().map(|target| cell(comparison, target, &metrics)).collect(),
    });
    Some(Heat {
        targets: comparison.targets.iter().map(|target| target.label.clone()).collect(),
        steps: steps.collect(),
        metrics: metrics.into_iter().map(measure).collect(),
    })
}

fn measure(metric: Metric) -> Measure {
    Measure { name: metric.name(), unit: metric.unit(), better: metric.better() }
}

/// The common ones and those of the benchmark, as far as any step has them.
fn shown_metrics(comparison: &Comparison) -> Vec<Metric> {
    let last_common = Metric::DataSize;
    let wanted = |metric: Metric| COMMON.contains(&metric) || metric > last_common;
    let measured = |metric: Metric| {
        let mut targets = comparison.steps.iter().flat_map(|step| step.targets.iter().skip(1));
        targets.any(|target| target.relative(metric).is_some())
    };
    let all = comparison.metrics().into_iter().chain([Metric::Rate]).collect::<BTreeSet<Metric>>();
    let shown = |metric: &Metric| *metric == Metric::Rate || (wanted(*metric) && measured(*metric));
    all.into_iter().filter(shown).collect()
}

fn cell(comparison: &Comparison, target: &TargetResult, metrics: &[Metric]) -> Cell {
    let samples = target.samples.iter().map(|sample| Sample {
        folder: comparison.runs[sample.run].folder.clone(),
        file: format!("{:02}-{}", sample.record.index, sample.record.name),
        values: metrics.iter().map(|metric| sample.values.get(*metric)).collect(),
    });
    let missing = match (target.samples.is_empty(), target.failures.is_empty()) {
        (false, _) => "",
        (true, false) => "failed",
        (true, true) => "not measured",
    };
    Cell {
        ratios: metrics.iter().map(|metric| ratio(target, *metric)).collect(),
        absolute: metrics.iter().map(|metric| target.absolute(*metric)).collect(),
        samples: samples.collect(),
        missing: missing.to_owned(),
    }
}

fn ratio(target: &TargetResult, metric: Metric) -> Option<Ratio> {
    target.relative(metric).map(|relative| {
        let judgement = relative.judgement.as_ref();
        let test = judgement.and_then(|judgement| judgement.test.as_ref());
        Ratio {
            ratio: relative.ratio,
            interval: test.map(|test| test.interval).or(relative.interval),
            pairs: relative.pairs,
            verdict: judgement.map(|judgement| judgement.verdict),
            reason: judgement.map(reason).unwrap_or_default(),
        }
    })
}

/// The figures of a verdict in one line, then what the reader should know of it.
fn reason(judgement: &Judgement) -> String {
    let mut parts = Vec::new();
    if let Some(test) = &judgement.test {
        let small = |p: f64| Digits::Significant(2).write(p);
        let mde = Digits::Significant(2).write(100.0 * test.mde);
        parts.push(format!("p {} against tau", small(test.p_treat)));
        parts.push(format!("q {} over the steps", small(test.q_treat)));
        parts.push(format!("MDE {mde} %"));
    }
    if let Some(pairs) = judgement.pairs_needed {
        parts.push(format!("sample size about {pairs} pairs"));
    }
    parts.extend(judgement.reasons.iter().cloned());
    parts.join("; ")
}

/// The word of a verdict for a metric of the overview.
pub(super) fn word(verdict: Verdict, of_rate: bool) -> &'static str {
    verdict.word(if of_rate { Metric::Rate } else { Metric::CpuPerOp })
}
