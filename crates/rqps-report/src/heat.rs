//! The overview: every step of every target relative to the baseline, by the rate or a metric that
//! explains it, with the runs behind each number.

use std::collections::BTreeSet;

use rqps_analysis::Comparison;
use rqps_analysis::comparison::TargetResult;
use rqps_analysis::metrics::rate_unit;
use rqps_analysis::verdict::Judgement;
use rqps_model::digits::Digits;
use rqps_model::metric::{Direction, Metric};
use rqps_model::verdict::Verdict;
use rqps_stats::Interval;

/// The overview.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// All labels, the baseline first.
    pub targets: Vec<String>,
    /// Metrics, the rate first.
    pub metrics: Vec<Measure>,
    /// Steps, in the published order.
    pub steps: Vec<HeatRow>,
}

/// A metric of the overview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Column head.
    pub name: &'static str,
    /// Unit of absolute values; empty for the step's own unit.
    pub unit: &'static str,
    /// The better direction.
    pub better: Direction,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatRow {
    /// Name.
    pub name: String,
    /// Group.
    pub group: &'static str,
    /// Unit of its rate.
    pub unit: &'static str,
    /// One cell per target, the baseline first.
    pub cells: Vec<HeatCell>,
}

/// A step of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatCell {
    /// One ratio per metric; `None` without a ratio, and for the baseline.
    pub ratios: Vec<Option<Ratio>>,
    /// Medians over the samples, one per metric.
    pub absolute: Vec<Option<f64>>,
    /// Runs behind the cell.
    pub samples: Vec<HeatSample>,
    /// The reason why the cell is empty; else empty.
    pub missing: String,
}

/// Target / baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// May be infinite.
    pub ratio: f64,
    /// 95 % interval.
    pub interval: Option<Interval>,
    /// Pairs.
    pub pairs: usize,
    /// Verdict; `None` if there is none.
    pub verdict: Option<Verdict>,
    /// Evidence of the verdict, as text.
    pub reason: String,
}

/// One run of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatSample {
    /// Run folder.
    pub folder: String,
    /// Name of its files in `steps/`, without the extension: `03-point-query`.
    pub file: String,
    /// One value per metric.
    pub values: Vec<Option<f64>>,
}

/// The overview; `None` if there is no comparison.
pub(super) fn overview(comparison: &Comparison) -> Option<Heat> {
    if comparison.targets.len() < 2 || comparison.steps.is_empty() {
        return None;
    }
    let metrics = shown_metrics(comparison);
    let steps = comparison.steps.iter().map(|step| HeatRow {
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

/// The rate, and the metrics of the overview that any target has a ratio of.
fn shown_metrics(comparison: &Comparison) -> Vec<Metric> {
    let wanted = |metric: Metric| !metric.spec().aside;
    let measured = |metric: Metric| {
        let mut targets = comparison.steps.iter().flat_map(|step| step.targets.iter().skip(1));
        targets.any(|target| target.relative(metric).is_some())
    };
    let all = comparison.metrics().into_iter().chain([Metric::Rate]).collect::<BTreeSet<Metric>>();
    let shown = |metric: &Metric| *metric == Metric::Rate || (wanted(*metric) && measured(*metric));
    all.into_iter().filter(shown).collect()
}

fn cell(comparison: &Comparison, target: &TargetResult, metrics: &[Metric]) -> HeatCell {
    let samples = target.samples.iter().map(|sample| HeatSample {
        folder: comparison.runs[sample.run].folder.clone(),
        file: format!("{:02}-{}", sample.record.index, sample.record.name),
        values: metrics.iter().map(|metric| sample.get(*metric)).collect(),
    });
    let missing = match (target.samples.is_empty(), target.failures.is_empty()) {
        (false, _) => "",
        (true, false) => "failed",
        (true, true) => "not measured",
    };
    HeatCell {
        ratios: metrics.iter().map(|metric| ratio(target, *metric)).collect(),
        absolute: metrics.iter().map(|metric| target.absolute(*metric)).collect(),
        samples: samples.collect(),
        missing: missing.to_owned(),
    }
}

fn ratio(target: &TargetResult, metric: Metric) -> Option<Ratio> {
    let judgement = target.judgement(metric);
    target.relative(metric).map(|relative| Ratio {
        ratio: relative.ratio,
        interval: relative.shown_interval(),
        pairs: relative.pairs,
        verdict: judgement.map(|judgement| judgement.verdict),
        reason: judgement.map(reason).unwrap_or_default(),
    })
}

/// The figures of a verdict in one line, then its notes.
fn reason(judgement: &Judgement) -> String {
    let mut parts = Vec::new();
    if let Some(test) = &judgement.test {
        let small = |p: f64| Digits::Significant(2).write(p);
        let mde = Digits::Significant(2).write(100.0 * test.mde);
        parts.push(format!("p(tau) {}", small(test.p_treat)));
        parts.push(format!("q {} over the steps", small(test.q_treat)));
        parts.push(format!("MDE {mde} %"));
    }
    if let Some(pairs) = judgement.pairs_needed {
        parts.push(format!("sample size about {pairs} pairs"));
    }
    parts.extend(judgement.reasons.iter().cloned());
    parts.join("; ")
}

/// The name of a verdict for a metric of the overview.
pub(super) fn word(verdict: Verdict, of_rate: bool) -> &'static str {
    verdict.word(if of_rate { Metric::Rate } else { Metric::CpuPerOp })
}
