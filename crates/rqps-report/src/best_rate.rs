//! The best rates of targets under a limit, as a short text and as JSON.

use std::time::Duration;

use super::form::versioned;
use rqps_analysis::best_rate::{BestRate, BestRates, FoundRate};
use rqps_model::{escape, units};

/// Version of the JSON form; it grows when a reader would have to change.
pub const BEST_RATE_SCHEMA: u32 = 1;

/// The best rates with the version of this form.
///
/// # Errors
/// A number that JSON cannot write.
pub fn best_rate_json(rates: &BestRates) -> serde_json::Result<String> {
    versioned(BEST_RATE_SCHEMA, "best_rate", rates)
}

/// The text of the best rates, a line for each target.
pub fn best_rate_text(rates: &BestRates) -> String {
    let metric = rates.metric.trim_end_matches("_ms");
    let mut lines = vec![format!(
        "{}: most events per second with {metric} <= {} ms",
        rates.step, rates.limit_ms
    )];
    let base = rates.targets.first().map_or("", |target| target.label.as_str());
    for target in &rates.targets {
        lines.push(format!("  {}: {}", target.label, words(target)));
        if let Some(relative) = target.relative {
            let (low, high) = (relative.interval.low, relative.interval.high);
            let verdict = match (low > 1.0, high < 1.0) {
                (true, _) => "MORE",
                (_, true) => "LESS",
                _ => "no difference shown",
            };
            lines.push(format!(
                "    {:.3} [{low:.3}, {high:.3}] of {base}: {verdict}",
                relative.ratio
            ));
        }
        lines.extend(target.fault.iter().map(|fault| format!("    {fault}")));
    }
    let seconds = Duration::from_secs_f64(rates.seconds.round());
    lines.push(format!("{} rounds, {}.", rates.rounds, units::duration(seconds)));
    lines.into_iter().map(|line| escape::line(&line).into_owned() + "\n").collect()
}

fn words(target: &BestRate) -> String {
    let closed = target.closed.map_or_else(String::new, |rate| {
        format!("; as fast as clients can: {}", units::rate(rate))
    });
    let Some(FoundRate { rate, interval, none_kept, all_kept }) = target.found else {
        return "not measured".to_owned();
    };
    let (low, high) = (units::rate(interval.low), units::rate(interval.high));
    let kept = format!("{} of {} windows kept it", target.kept, target.windows);
    match (none_kept, all_kept) {
        (true, _) => format!("less than {high}: {kept}{closed}"),
        (_, true) => format!("more than {low}: {kept}{closed}"),
        _ => format!("{} [{low}, {high}], {kept}{closed}", units::rate(rate)),
    }
}

#[cfg(test)]
mod tests {
    use rqps_analysis::best_rate::RelativeRate;
    use rqps_stats::Interval;

    use super::*;

    #[test]
    fn each_target_has_its_rate_and_what_it_is_of_the_first() {
        let found = |rate: f64, none_kept| {
            let interval = Interval { low: rate * 0.98, high: rate * 1.02 };
            Some(FoundRate { rate, interval, none_kept, all_kept: false })
        };
        let target = |label: &str, found, relative| BestRate {
            label: label.to_owned(),
            closed: Some(15_000.0),
            found,
            windows: 20,
            kept: if label == "c" { 0 } else { 11 },
            relative,
            fault: None,
        };
        let ratio = RelativeRate { ratio: 0.9, interval: Interval { low: 0.87, high: 0.93 } };
        let rates = BestRates {
            step: "point-query".to_owned(),
            metric: "p99_ms".to_owned(),
            limit_ms: 5.0,
            targets: vec![
                target("a", found(12_000.0, false), None),
                target("b", found(10_800.0, false), Some(ratio)),
                target("c", found(100.0, true), None),
                target("d", None, None),
            ],
            rounds: 21,
            seconds: 312.0,
        };
        let expected = "\
point-query: most events per second with p99 <= 5 ms
  a: 12.0k [11.8k, 12.2k], 11 of 20 windows kept it; as fast as clients can: 15.0k
  b: 10.8k [10.6k, 11.0k], 11 of 20 windows kept it; as fast as clients can: 15.0k
    0.900 [0.870, 0.930] of a: LESS
  c: less than 102: 0 of 20 windows kept it; as fast as clients can: 15.0k
  d: not measured
21 rounds, 5m12s.
";
        assert_eq!(best_rate_text(&rates), expected);
    }
}
