//! Everything that can fail the job of a gate, with p-values adjusted over all of it, so that α is
//! the probability that equal builds fail it.

use std::collections::BTreeMap;

use super::comparison::{Comparison, Relative};
use super::finding::{Finding, Level, plain};
use super::history::{Newest, PastSets, against_newest};
use rqps_model::metric::Metric;
use rqps_model::verdict::{GateRules, Rules};
use rqps_stats::moderated::Estimate;
use rqps_stats::multiple::holm;

/// What can fail a job. All p-values are adjusted by Holm.
pub(super) struct Job<'a> {
    /// The metrics that can.
    pub(super) metrics: &'a [Metric],
    /// By place of the target, place of the step, and metric.
    pub(super) steps: BTreeMap<(usize, usize, Metric), f64>,
    /// The geometric mean, by place of the target.
    pub(super) suites: BTreeMap<usize, f64>,
    /// The newest levels of the history.
    pub(super) history: Vec<(Metric, Newest)>,
    /// Counted instructions.
    pub(super) instructions: Vec<CountedStep<'a>>,
}

/// A step whose instructions were counted on both sides.
pub(super) struct CountedStep<'a> {
    target: &'a str,
    step: &'a str,
    relative: &'a Relative,
    /// p of no more than the allowed share.
    p: f64,
}

impl<'a> Job<'a> {
    /// # Errors
    /// A limit on instructions that were not counted.
    pub(super) fn of(
        comparison: &'a Comparison,
        past: Option<&PastSets>,
        metrics: &'a [Metric],
        gate: &GateRules,
    ) -> Result<Job<'a>, String> {
        let newest = |&metric: &Metric| {
            let all = past.map(|past| against_newest(comparison, past, metric, &comparison.rules));
            all.unwrap_or_default().into_iter().map(move |newest| (metric, newest))
        };
        let targets = comparison.summary.targets.iter().enumerate();
        let of_mean =
            targets.filter_map(|(at, facts)| Some((at + 1, facts.geomean?.test?.p_treat)));
        let mut job = Job {
            metrics,
            steps: of_steps(comparison, metrics),
            suites: of_mean.filter(|_| metrics.contains(&Metric::Rate)).collect(),
            history: metrics.iter().flat_map(newest).collect(),
            instructions: match gate.instructions {
                Some(share) => of_instructions(comparison, share)?,
                None => Vec::new(),
            },
        };
        job.adjust();
        Ok(job)
    }

    fn adjust(&mut self) {
        let history = self.history.iter_mut().filter_map(|(_, newest)| newest.p_worse.as_mut());
        let of_counts = self.instructions.iter_mut().map(|count| &mut count.p);
        let of_means = self.suites.values_mut();
        let mut all: Vec<&mut f64> =
            self.steps.values_mut().chain(of_means).chain(history).chain(of_counts).collect();
        let p: Vec<f64> = all.iter().map(|p| **p).collect();
        all.iter_mut().zip(holm(&p)).for_each(|(p, adjusted)| **p = adjusted);
    }
}

fn of_steps(comparison: &Comparison, metrics: &[Metric]) -> BTreeMap<(usize, usize, Metric), f64> {
    let mut found = BTreeMap::new();
    for (place, step) in comparison.steps.iter().enumerate() {
        for (target, result) in step.targets.iter().enumerate().skip(1) {
            for &metric in metrics {
                let judgement = result.relative(metric).and_then(|it| it.judgement.as_ref());
                if let Some(test) = judgement.and_then(|judgement| judgement.test.as_ref()) {
                    found.insert((target, place, metric), test.p_treat);
                }
            }
        }
    }
    found
}

fn of_instructions(comparison: &Comparison, share: f64) -> Result<Vec<CountedStep<'_>>, String> {
    let counts = comparison.counts.as_deref().unwrap_or(comparison);
    let mut found = Vec::new();
    for step in &counts.steps {
        for target in step.targets.iter().skip(1) {
            let Some(relative) = target.comparable(Metric::InstructionsPerOp) else { continue };
            let mean = relative.ratio.ln();
            let p = relative.sd_ln.map_or(1.0, |sd| {
                let n = relative.pairs as f64;
                let estimate = Estimate { mean, se: sd / n.sqrt(), df: n - 1.0 };
                if mean > 0.0 { estimate.tails_beyond(share.ln_1p()).0 } else { 1.0 }
            });
            found.push(CountedStep { target: &target.label, step: &step.name, relative, p });
        }
    }
    if found.is_empty() {
        let fault = "no counted instructions in these results; measure them with `rqps compare \
                     --count`";
        return Err(fault.to_owned());
    }
    Ok(found)
}

impl CountedStep<'_> {
    /// The regression, if it is one.
    pub(super) fn finding(&self, rules: &Rules) -> Option<Finding> {
        let text = "it executes more instructions per operation, which tells nothing of its rate";
        (self.p <= rules.alpha).then(|| Finding {
            metric: Some(Metric::InstructionsPerOp),
            verdict: "MORE".to_owned(),
            ratio: Some(self.relative.ratio),
            interval: self.relative.interval,
            pairs: self.relative.pairs,
            holm: Some(self.p),
            ..plain(Level::Regression, self.target, self.step, text.to_owned())
        })
    }
}
