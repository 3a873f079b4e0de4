//! Steps that compare targets at equal recall: for each published recall, every target with its
//! fastest configuration that reaches it. So indexes with different parameters can be compared.

use super::recall::{self, Curve, CurvePoint, TARGETS};
use rqps_analysis::comparison::{Comparison, StepComparison, TargetResult};
use rqps_model::benchmark::{Group, RateUnit};
use rqps_model::step_parameters::StepParameters;
use rqps_model::vector::of_clients;

/// A step for each published recall that the baseline and another target reach. Its name is
/// `recall=0.99`, or `recall=0.99.clients=4` for several clients. A target's measurements in it are
/// those of its fastest configuration with at least that recall. A recall for which all targets
/// have the same configurations as for the next higher one gives no step.
///
/// The caller computes the ratios.
pub(crate) fn steps(comparison: &Comparison) -> Vec<StepComparison> {
    let curves = recall::curves(comparison);
    let mut clients: Vec<u32> = curves.iter().map(|curve| curve.clients).collect();
    clients.dedup();
    let mut steps = Vec::new();
    for clients in clients {
        let mine: Vec<&Curve> = curves.iter().filter(|curve| curve.clients == clients).collect();
        let mut above = Vec::new();
        for recall in TARGETS {
            let choices = choices(&mine, comparison.targets.len(), recall);
            let reached = choices.iter().skip(1).any(Option::is_some) && choices[0].is_some();
            if reached && choices != above {
                steps.push(step(comparison, &choices, recall, clients));
            }
            above = choices;
        }
    }
    steps
}

/// For each target the name of the step of its best point; `None` if it does not reach the recall.
fn choices(curves: &[&Curve], targets: usize, recall: f64) -> Vec<Option<String>> {
    let of = |place: usize| {
        let curve = curves.iter().find(|curve| curve.place == place)?;
        let best: &CurvePoint = &curve.points[curve.best_for(recall)?.best];
        Some(best.point.step())
    };
    (0..targets).map(of).collect()
}

fn step(
    comparison: &Comparison,
    choices: &[Option<String>],
    recall: f64,
    clients: u32,
) -> StepComparison {
    let targets = choices.iter().enumerate().map(|(place, choice)| {
        let measured = choice.as_ref().and_then(|name| {
            let step = comparison.steps.iter().find(|step| step.name == *name)?;
            Some(step.targets[place].chosen_for_another(name))
        });
        measured.unwrap_or_else(|| TargetResult::none(&comparison.targets[place].label))
    });
    StepComparison {
        name: format!("recall={recall:.2}{}", of_clients(clients)),
        client_count: None,
        group: Group::Point,
        detail: format!(
            "fastest configuration of each target with a mean recall of at least {recall:.2}"
        ),
        rate: RateUnit::Queries,
        targets: targets.collect(),
        parameters: StepParameters::default(),
    }
}
