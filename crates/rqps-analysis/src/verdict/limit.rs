//! The limits of the verdicts on rates, in one sentence.

use crate::comparison::{Comparison, Relative};
use rqps_model::metric::Metric;
use rqps_stats::summary::median;

/// The smallest difference that could be found, on half of the steps and on the worst, and what was
/// found out about the host. Empty where no rate was compared.
pub(super) fn sentence(comparison: &Comparison, notes: &[String]) -> String {
    let rates: Vec<(&str, &Relative)> = comparison
        .measured_steps()
        .flat_map(|step| step.targets.iter().skip(1).map(|target| (step.name.as_str(), target)))
        .filter_map(|(step, target)| Some((step, target.relative(Metric::Rate)?)))
        .collect();
    let Some(most) = rates.iter().map(|(_, rate)| rate.pairs).max() else { return String::new() };
    let mut found: Vec<(f64, &str)> = rates
        .iter()
        .filter_map(|(step, rate)| Some((rate.judgement.as_ref()?.test.as_ref()?.mde, *step)))
        .collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    let shares: Vec<f64> = found.iter().map(|(mde, _)| *mde).collect();
    let (Some(half), Some((largest, worst))) = (median(&shares), found.last()) else {
        return untested(most).to_owned();
    };
    let steps = comparison.measured_steps().count();
    let alone = if steps > 1 { format!(" in one of {steps} steps") } else { String::new() };
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    let published = (0..comparison.targets.len()).any(|target| comparison.is_imported(target));
    let who = if published { "These results find" } else { "This host finds" };
    let mut text =
        format!("{who} differences of {} and more{alone} with {most} pairs", percent(half));
    if percent(*largest) != percent(half) {
        text.push_str(&format!(
            " (MDE, the median of {} ratios; the largest is {}, of {worst})",
            found.len(),
            percent(*largest)
        ));
    }
    for note in notes {
        text.push_str("; ");
        text.push_str(note);
    }
    text.push('.');
    text
}

fn untested(pairs: usize) -> &'static str {
    match pairs {
        0 => "No block measured both sides, so the scatter of ratios is unknown.",
        1 => "Each ratio comes from one pair, so the scatter of ratios is unknown.",
        _ => "No rate has two pairs above 0, so the scatter of ratios is unknown.",
    }
}
