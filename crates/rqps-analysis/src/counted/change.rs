//! Adds counts to a comparison: the change of each total with its functions, and the changes beside
//! a rate.

use super::difference::{
    BackgroundChange, CountedChange, FunctionChange, FunctionComparison, TotalChange,
};
use super::functions::{ComparedFunctions, compare_functions};
use crate::comparison::{Comparison, StepComparison, TargetResult};
use crate::verdict::Explanation;
use rqps_model::metric::Metric;
use rqps_model::verdict::Verdict;

/// Functions of other threads are compared where these execute more than this share of what the
/// thread that serves the client executes.
const BACKGROUND_LEAST: f64 = 0.01;

/// Adds the changes of a comparison whose steps are counted.
pub(crate) fn compare(comparison: &mut Comparison) {
    for step in &mut comparison.steps {
        let Some((baseline, targets)) = step.targets.split_first_mut() else { continue };
        for target in targets {
            let total = target.comparable(Metric::InstructionsPerOp).map(TotalChange::of);
            let Some(change) = total else { continue };
            let ComparedFunctions { client, background } =
                compare_functions(baseline, target, &comparison.runs);
            let other = target.comparable(Metric::BackgroundInstructionsPerOp).map(TotalChange::of);
            let is_much = |of: &FunctionComparison| {
                let most = of.baseline_total.max(of.target_total);
                client.as_ref().is_none_or(|it| most > BACKGROUND_LEAST * it.baseline_total)
            };
            let background = other.zip(background.filter(is_much));
            target.counted = Some(Box::new(CountedChange {
                change,
                functions: client,
                background: background
                    .map(|(change, functions)| BackgroundChange { change, functions }),
            }));
        }
    }
}

/// Adds the counted instructions to what moved with the rates, where they moved the same way.
pub(crate) fn explain(comparison: &mut Comparison, counts: &Comparison) {
    let baseline = comparison.baseline.clone();
    for step in comparison.steps.iter_mut().filter(|_| baseline == counts.baseline) {
        let Some(counted) = counts.steps.iter().find(|other| other.name == step.name) else {
            continue;
        };
        for target in step.targets.iter_mut().skip(1) {
            if let Some(explanation) = explanation(target, counted) {
                target.explanations.push(explanation);
            }
        }
    }
}

fn explanation(target: &TargetResult, counted: &StepComparison) -> Option<Explanation> {
    let rate = target.judgement(Metric::Rate)?.verdict;
    let counted = counted.targets.iter().find(|other| other.label == target.label)?;
    let relative = counted.relative(Metric::InstructionsPerOp)?;
    let change = counted.counted.as_ref()?;
    let verdict = match change.change {
        TotalChange::More if rate.is_worse() => Verdict::Slower,
        TotalChange::Fewer if rate.is_better() => Verdict::Faster,
        _ => return None,
    };
    Some(Explanation {
        metric: Metric::InstructionsPerOp,
        ratio: relative.ratio,
        interval: relative.interval?,
        verdict,
        detail: change.functions.as_ref().and_then(FunctionComparison::leading).map(detail),
    })
}

fn detail(change: &FunctionChange) -> String {
    format!("{} {:+.0}", change.name, change.difference())
}
