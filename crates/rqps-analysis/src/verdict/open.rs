//! Selects the steps of a plan with `blocks = "auto"` that need more blocks.

use std::f64::consts::SQRT_2;

use serde::Serialize;

use crate::comparison::Comparison;
use rqps_model::metric::Metric;
use rqps_model::verdict::{LookSchedule, Rules};
use rqps_stats::moderated::Estimate;
use rqps_stats::sequential::Looks;
use rqps_stats::student;

/// A step that is not settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OpenStep {
    /// Name of the step.
    pub step: String,
    /// Labels of the targets that it is open for.
    pub targets: Vec<String>,
    /// Pairs after which it will probably be settled: at least one more than there are, at most
    /// those of the schedule.
    pub pairs_needed: u32,
}

/// The steps that must be measured in the next block; empty when the plan is done. A step that is
/// settled for all targets, or has been looked at as often as the schedule allows, is not among
/// them.
///
/// The comparison must be over runs whose records carry the schedule ([`RunRecord::schedule`]):
/// then its verdicts are those of the looks.
///
/// [`RunRecord::schedule`]: rqps_model::run::RunRecord::schedule
pub fn open_steps(comparison: &Comparison, schedule: &LookSchedule) -> Vec<OpenStep> {
    let mut open = Vec::new();
    let looks = Looks::new(schedule.blocks_min, schedule.blocks_max);
    for step in comparison.measured_steps() {
        let mut targets = Vec::new();
        let mut needed = 0;
        for target in step.targets.iter().skip(1) {
            let relative = target.relative(Metric::Rate);
            let pairs = relative.map_or(0, |relative| relative.pairs as u32);
            let judgement = relative.and_then(|relative| relative.judgement.as_ref());
            let test = judgement.and_then(|judgement| judgement.test.as_ref());
            // More blocks do not make it comparable.
            let void = target.is_void(Metric::Rate);
            if test.is_some_and(|test| test.settled) || void || pairs >= schedule.blocks_max {
                continue;
            }
            let wanted = match test {
                Some(test) => {
                    let ends = [test.interval.low, test.interval.high];
                    let mean = ends.map(f64::ln).iter().sum::<f64>() / 2.0;
                    settled_at(
                        Estimate { mean, se: test.se, df: test.df },
                        pairs,
                        &comparison.rules,
                        &looks,
                    )
                }
                None => schedule.blocks_min.max(pairs + 1),
            };
            needed = needed.max(wanted);
            targets.push(target.label.clone());
        }
        if !targets.is_empty() {
            open.push(OpenStep { step: step.name.clone(), targets, pairs_needed: needed });
        }
    }
    open
}

/// Pairs after which a step is settled if its mean and its scatter stay as they are: those of the
/// last look if it never is.
fn settled_at(now: Estimate, pairs: u32, rules: &Rules, looks: &Looks) -> u32 {
    let Estimate { mean, se, df } = now;
    let layout = SQRT_2 * rules.layout_sd();
    let is_settled = |look: &u32| {
        let (df, of_now) = (df + f64::from(look - pairs), f64::from(pairs) / f64::from(*look));
        let se = se * of_now.sqrt();
        let shows = |distance: f64, se: f64, alpha: f64| {
            student::above(distance / se, df) <= looks.level(alpha, *look)
        };
        shows(mean.abs() - rules.least(), se.hypot(layout), rules.q / 2.0)
            || shows(rules.equivalence_limit() - mean.abs(), se, rules.equivalence_alpha)
    };
    (pairs + 1..looks.last()).find(is_settled).unwrap_or(looks.last())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_open_for_as_long_as_its_mean_and_scatter_leave_it_open() {
        let looks = Looks::new(4, 12);
        let check = |(mean, sd): (f64, f64), pairs: u32, want: u32| {
            let (se, df) = (sd / f64::from(pairs).sqrt(), f64::from(pairs - 1));
            let now = Estimate { mean, se, df };
            let found = settled_at(now, pairs, &Rules::default(), &looks);
            assert_eq!(found, want, "mean {mean}, sd {sd}, {pairs} pairs");
        };
        check((0.0, 0.01), 4, 5);
        check((0.0, 0.02), 4, 8);
        check((-0.1, 0.08), 4, 8);
        // As noisy as that, or so close to a limit: no look decides it.
        check((0.0, 0.1), 4, 12);
        check((0.015, 0.01), 6, 12);
        check((0.015, 0.01), 11, 12);
    }
}
