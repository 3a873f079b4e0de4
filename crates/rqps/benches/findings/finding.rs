//! Findings of comparisons, as `--record` of the bench true_slowdown writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::columns::{HEAD, METRICS};
use rqps_model::metric::Metric;
use rqps_model::verdict::Verdict;
use rqps_stats::Interval;
use rqps_stats::student::above;

/// A file of findings: those of one machine, on one or more days.
pub(crate) struct Sheet {
    /// Name of the file.
    pub(crate) name: String,
    /// The command that measured it, from the file NAME.txt beside it.
    pub(crate) command: String,
    pub(crate) dates: BTreeSet<String>,
    /// Name of the CPU, and how many there are.
    pub(crate) machines: BTreeSet<(String, u32)>,
    pub(crate) findings: Vec<Finding>,
}

/// The result of one comparison for one metric of one step.
pub(crate) struct Finding {
    pub(crate) comparison: Comparison,
    pub(crate) step: String,
    pub(crate) metric: Metric,
    pub(crate) blocks: u32,
    /// Measured time of both targets in all blocks.
    pub(crate) measured_seconds: f64,
    pub(crate) verdict: Verdict,
    /// True if the difference was shown to exceed τ, whatever its size.
    pub(crate) beyond_tau: bool,
    /// The measured ratio, if there is one.
    pub(crate) found: Option<f64>,
    pub(crate) interval: Option<Interval>,
    /// The ratio that follows from what was burned, if it is known.
    pub(crate) true_ratio: Option<f64>,
}

/// One run of `rqps compare`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Comparison {
    pub(crate) build: String,
    pub(crate) burned: Burned,
    sheet: String,
    seed: u64,
    /// The number of earlier comparisons in the file with this build, share and seed.
    repeat: usize,
}

/// The share of its own CPU that a slowed build burns besides: millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Burned(u32);

impl Burned {
    /// The build is compared with itself.
    pub(crate) const NOTHING: Burned = Burned(0);
}

impl std::fmt::Display for Burned {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{} %", f64::from(self.0) / 1e4)
    }
}

impl Finding {
    /// True if the interval contains the true ratio; `None` if one of them is missing.
    pub(crate) fn holds_truth(&self) -> Option<bool> {
        let (interval, truth) = (self.interval?, self.true_ratio?);
        Some((interval.low..=interval.high).contains(&truth))
    }
}

/// All CSV files of a folder, in the order of their names.
pub(crate) fn read(folder: &Path) -> Result<Vec<Sheet>> {
    let mut paths: Vec<PathBuf> = Vec::new();
    let entries = fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("read {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().map(|path| read_file(path)).collect()
}

fn read_file(path: &Path) -> Result<Sheet> {
    let read =
        |path: &Path| fs::read_to_string(path).with_context(|| format!("read {}", path.display()));
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let command = read(&path.with_extension("txt")).context("find the command of a CSV file")?;
    parse(&name, command.trim(), &read(path)?).with_context(|| format!("read {}", path.display()))
}

/// The text of a file.
pub(super) fn parse(name: &str, command: &str, text: &str) -> Result<Sheet> {
    let mut lines = text.lines();
    ensure!(lines.next() == Some(HEAD), "its first line is not {HEAD}");
    let mut sheet = Sheet {
        name: name.to_owned(),
        command: command.to_owned(),
        dates: BTreeSet::new(),
        machines: BTreeSet::new(),
        findings: Vec::new(),
    };
    let mut seen = BTreeMap::new();
    for (index, line) in lines.enumerate() {
        let number = index + 2;
        add(&mut sheet, line, &mut seen).with_context(|| format!("read its line {number}"))?;
    }
    Ok(sheet)
}

/// Findings that the file has so far of a build, a share, a seed, a step and a metric.
type Seen = BTreeMap<(String, Burned, u64, String, Metric), usize>;

fn add(sheet: &mut Sheet, line: &str, seen: &mut Seen) -> Result<()> {
    let fields: Vec<&str> = line.split(',').collect();
    let count = fields.len();
    let Ok(fields) = <[&str; 16]>::try_from(fields) else {
        anyhow::bail!("it has {count} fields instead of 16");
    };
    let [date, cpu, cpus, build, burned, seed, step, metric, ..] = fields;
    let [.., blocks, seconds, verdict, beyond_tau, found, low, high, true_ratio] = fields;
    let metric = METRICS.into_iter().find(|one| one.name() == metric);
    let metric = metric.context("find its metric")?;
    let verdict = Verdict::ALL.into_iter().find(|one| one.name() == verdict);
    let verdict = verdict.context("find its verdict")?;
    let burned = Burned((number(burned)? * 1e6).round() as u32);
    let seed = seed.parse().context("read its seed")?;
    let key = (build.to_owned(), burned, seed, step.to_owned(), metric);
    let before = seen.entry(key).or_default();
    let repeat = *before;
    *before += 1;
    let interval = match (optional(low)?, optional(high)?) {
        (Some(low), Some(high)) => {
            ensure!(0.0 < low && low <= high, "its interval is {low} to {high}");
            Some(Interval { low, high })
        }
        _ => None,
    };
    sheet.dates.insert(date.to_owned());
    sheet.machines.insert((cpu.to_owned(), cpus.parse().context("read its number of CPUs")?));
    let (build, name) = (build.to_owned(), sheet.name.clone());
    sheet.findings.push(Finding {
        comparison: Comparison { build, burned, sheet: name, seed, repeat },
        step: step.to_owned(),
        metric,
        blocks: blocks.parse().context("read its number of blocks")?,
        measured_seconds: number(seconds)?,
        verdict,
        beyond_tau: beyond_tau == "1",
        found: optional(found)?,
        interval,
        true_ratio: optional(true_ratio)?,
    });
    Ok(())
}

fn optional(field: &str) -> Result<Option<f64>> {
    if field.is_empty() { Ok(None) } else { number(field).map(Some) }
}

fn number(field: &str) -> Result<f64> {
    let number: f64 = field.parse().with_context(|| format!("read the number {field:?}"))?;
    ensure!(number.is_finite(), "{field} is no number");
    Ok(number)
}

// Published figures of others about the differences that their gates find, with sources.

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
    fn a_file_that_is_not_whole_is_refused() {
        use super::{HEAD, parse};

        let row = "2026-11-23,CPU,2,mysql-8.0.33,0,1,a,o/s,6,24.0,SAME,0,1.0,0.96,1.04,1.0\n";
        let text = format!("{HEAD}\n{row}");
        assert_eq!(parse("x", "", &text).unwrap().findings.len(), 1);
        let check = |from: &str, to: &str, expected: &str| {
            let error = parse("x", "", &text.replacen(from, to, 1)).err().unwrap();
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{from}: {error}");
        };
        check("burned", "share", "its first line is not date,cpu");
        check("SAME", "MAYBE", "read its line 2: find its verdict");
        check(",o/s", ",ips", "read its line 2: find its metric");
        check("0.96,", "", "read its line 2: it has 15 fields instead of 16");
        check("0.96", "1.96", "read its line 2: its interval is 1.96 to 1.04");
        check("24.0", "inf", "read its line 2: inf is no number");
        check("0,1.0,", "0,NaN,", "read its line 2: NaN is no number");
        check("0,1.0,", "0,1.O,", "read its line 2: read the number \"1.O\"");
        let without = parse("x", "", &text.replacen("0,1.0,", "0,,", 1)).unwrap();
        assert_eq!(without.findings[0].found, None);
    }
}

#[cfg(test)]
mod published_tests {
    #[test]
    fn the_model_gives_the_published_share() {
        use super::{GATE, HOSTED_RUNNERS, outside};

        // The source says 45 %.
        assert_eq!(format!("{:.0}", 100.0 * outside(GATE / HOSTED_RUNNERS)), "45");
        assert!((outside(1.959_964) - 0.05).abs() < 1e-7);
    }
}
