//! Losses that the rules of a gate accept.

use super::comparison::StepComparison;
use rqps_model::metric::Metric;
use rqps_model::verdict::{Allowance, GateRules};

/// The loss that the rules accept for a metric of a step, if they do.
pub(super) fn allowance<'a>(
    gate: &'a GateRules,
    step: &StepComparison,
    label: &str,
    metric: Metric,
) -> Option<&'a Allowance> {
    let of_all_counts = step.client_count.as_ref().map(|count| count.step.as_str());
    gate.allow.iter().find(|allowance| {
        let of_target = allowance.target.as_ref().is_none_or(|glob| matches(glob, label));
        let of_metric = allowance
            .metric
            .as_deref()
            .is_none_or(|word| rqps_model::verdict::metric(word) == Ok(metric));
        let of_step = [Some(step.name.as_str()), of_all_counts]
            .into_iter()
            .flatten()
            .any(|name| matches(&allowance.step, name));
        of_target && of_metric && of_step
    })
}

pub(super) fn allowed(allowance: &Allowance) -> String {
    let reason = if allowance.reason.is_empty() { "" } else { ": " };
    format!("allowed up to {} %{reason}{}", 100.0 * allowance.delta, allowance.reason)
}

/// A pattern in which `*` stands for any characters and `?` for one.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // fits[n]: the pattern so far fits the first n characters.
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    for wanted in pattern {
        let before = fits.clone();
        for n in 0..=name.len() {
            fits[n] = match wanted {
                '*' => before[n] || (n > 0 && fits[n - 1]),
                _ => n > 0 && before[n - 1] && (wanted == '?' || wanted == name[n - 1]),
            };
        }
    }
    fits[name.len()]
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("scan", "scan", true),
            ("scan", "scan-2", false),
            ("read-only*=10?", "read-only.pre_range=100", true),
            ("read-only*=10?", "read-only.pre_range=10", false),
            ("*pre*", "read-only.pre_range", true),
            ("?", "", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
