//! Published figures of others about the differences that their gates find, with sources.

use rqps_stats::student::above;

/// Who, what they publish, and where.
struct Published {
    who: &'static str,
    what: String,
    source: &'static str,
}

/// Coefficient of variation of benchmarks on GitHub's hosted runners, per cent, over 100 runs.
const HOSTED_RUNNERS: f64 = 2.66;
/// The gate in the same source, per cent.
const GATE: f64 = 2.0;

fn all() -> [Published; 3] {
    let modelled = 100.0 * outside(GATE / HOSTED_RUNNERS);
    [
        Published {
            who: "ClickHouse, performance tests of pull requests",
            what: "a query counts as changed from 15 % on, or from what its history shows if that \
                   is more; until June 2026 from 10 %, which noise exceeded too often"
                .to_owned(),
            source: "[ClickHouse/ClickHouse#107692]\
                     (https://github.com/ClickHouse/ClickHouse/pull/107692), June 2026",
        },
        Published {
            who: "Datadog, tracers for .NET and Ruby",
            what: "a pull request fails if a microbenchmark loses more than 20 %".to_owned(),
            source: "[DataDog/dd-trace-dotnet#7967]\
                     (https://github.com/DataDog/dd-trace-dotnet/pull/7967), December 2025; \
                     [DataDog/dd-trace-rb#5571]\
                     (https://github.com/DataDog/dd-trace-rb/pull/5571), April 2026",
        },
        Published {
            who: "CodSpeed, on GitHub's hosted runners",
            what: format!(
                "100 runs of benchmark suites vary by {HOSTED_RUNNERS} %; a normal model with that \
                 has {modelled:.0} % false alarms at a gate of {GATE} %"
            ),
            source: "[Benchmarks in CI: Escaping the Cloud Chaos]\
                     (https://codspeed.io/blog/benchmarks-in-ci-without-noise), July 2025",
        },
    ]
}

/// The probability that a normal value lies farther than `z` standard deviations from its mean.
fn outside(z: f64) -> f64 {
    2.0 * above(z, f64::INFINITY)
}

/// The rows of the table.
pub(super) fn rows() -> Vec<Vec<String>> {
    let row = |one: Published| vec![one.who.to_owned(), one.what, one.source.to_owned()];
    all().into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_model_gives_the_published_share() {
        use super::{GATE, HOSTED_RUNNERS, outside};

        // The source says 45 %.
        assert_eq!(format!("{:.0}", 100.0 * outside(GATE / HOSTED_RUNNERS)), "45");
        assert!((outside(1.959_964) - 0.05).abs() < 1e-7);
    }
}
