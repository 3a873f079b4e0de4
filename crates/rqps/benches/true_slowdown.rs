//! Tests whether rqps finds slowdowns of known size, and states no difference between equal builds:
//! campaigns of `rqps compare` in turns, of a build with its twin that burns a share of its CPU.
//!
//!     cargo bench --bench true_slowdown -- --slow 2%,1%,0% --campaigns 20
//!
//! docs/performance.md explains the table and has results.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

mod folders;
mod slowdown;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Parser;
use rqps_builds as obtain;
use rqps_builds::Said;
use rqps_lab::lab;
use rqps_lab::plan;
use rqps_model::build::Dbms;
use rqps_model::metric::Metric;
use rqps_model::verdict::{Rules, Verdict};
use rqps_stats::summary::mean;

use crate::folders::Folders;
use crate::slowdown::{Campaign, Finding, Measuring, Twins, append, share};

/// Builds of the bars. Debian's package libsqlite3-0 has the last.
const TARGETS: &str =
    "postgres@17.2.0,mysql@8.0.33,sqlite=/usr/lib/x86_64-linux-gnu/libsqlite3.so.0";

/// A build against its slowed twin, many times.
#[derive(Parser)]
struct Options {
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
    /// Builds: servers by version or path, SQLite by the path of its library.
    #[arg(long, value_delimiter = ',', default_value = TARGETS)]
    targets: Vec<String>,
    /// Share of its own CPU that the slowed twin burns in addition. 0 is an A/A test.
    #[arg(long, value_delimiter = ',', default_value = "2%,1%,0%", value_parser = share)]
    slow: Vec<f64>,
    /// Comparisons of each build and share, each with another seed.
    #[arg(long, default_value_t = 20)]
    campaigns: u32,
    /// Begin no comparison after this many minutes.
    #[arg(long)]
    minutes: Option<f64>,
    #[arg(
        long,
        default_value = "point-query,random-points_range=100,range-covered-pk,read-only_range=100"
    )]
    steps: String,
    #[arg(long, default_value_t = 6)]
    blocks: u32,
    /// Measured seconds per target, step and block.
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
    #[arg(long, default_value_t = 0.5)]
    warmup: f64,
    #[arg(long, default_value = "100k")]
    rows: String,
    /// Loads of each target in each comparison.
    #[arg(long, default_value_t = 1)]
    loads: u32,
    #[arg(long, default_value = "2%", value_parser = share)]
    delta: f64,
    #[arg(long, default_value = "1%", value_parser = share)]
    tau: f64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Append every finding to this CSV file. docs/evidence.md is made from such files.
    #[arg(long)]
    record: Option<PathBuf>,
    #[command(flatten)]
    folders: Folders,
    /// More options of `rqps compare`.
    #[arg(last = true)]
    more: Vec<String>,
}

fn main() -> ExitCode {
    match compare(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("true_slowdown: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// A build, a share, and what the comparisons of both found.
struct Series {
    label: String,
    slow: f64,
    twins: Twins,
    findings: Vec<Finding>,
    /// Duration of each comparison.
    seconds: Vec<f64>,
}

fn compare(options: &Options) -> Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("listen for Ctrl-C")?;
    }
    let folder = tempfile::Builder::new()
        .prefix("true-slowdown-")
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir_in(&options.folders.work)
        .with_context(|| format!("make a folder in {}", options.folders.work.display()))?;
    let rules = Rules { delta: options.delta, tau: options.tau.ln_1p(), ..Rules::default() };
    let measuring = Measuring {
        steps: options.steps.clone(),
        blocks: options.blocks,
        seconds: options.seconds,
        warmup: options.warmup,
        rows: options.rows.clone(),
        loads: options.loads,
        rules,
        work: options.folders.work.clone(),
        more: options.more.clone(),
    };
    let mut all = series(options, folder.path())?;
    let started = Instant::now();
    let limit = options.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes));
    let is_over =
        || stop.load(Ordering::Relaxed) || limit.is_some_and(|limit| started.elapsed() >= limit);
    // Round by round, so that a bench which is stopped has as many of each.
    'rounds: for round in 0..u64::from(options.campaigns) {
        for one in &mut all {
            if is_over() {
                break 'rounds;
            }
            let results = folder.path().join("results");
            let seed = options.seed + round;
            match Campaign::carry_out(&one.twins, &measuring, seed, &results) {
                Ok(campaign) => {
                    if let Some(path) = &options.record {
                        append(path, &one.label, one.slow, seed, &campaign.findings)?;
                    }
                    one.take(round + 1, campaign);
                }
                Err(_) if stop.load(Ordering::Relaxed) => break 'rounds,
                Err(error) => return Err(error),
            }
        }
    }
    print_table(&all);
    Ok(())
}

/// The builds that were named, slowed as much as was asked for.
fn series(options: &Options, folder: &Path) -> Result<Vec<Series>> {
    let cache = lab::open_cache(&options.folders.cache)?;
    let mut all = Vec::new();
    for target in plan::words::targets(&options.targets)? {
        let mut say = |said: Said<'_>| eprintln!("{}", said.text());
        let build = obtain::obtain(target.dbms, &target.source, &cache, &mut say)
            .with_context(|| format!("obtain {}", target.label))?;
        let version = &build.manifest.version;
        let label = if target.dbms == Dbms::Sqlite {
            format!("sqlite-{version}")
        } else {
            target.label.clone()
        };
        for slow in &options.slow {
            let place = folder.join(format!("{label}-{slow}"));
            fs::create_dir(&place).with_context(|| format!("make {}", place.display()))?;
            let twins = Twins::make(&build, target.dbms, *slow, &place)
                .with_context(|| format!("slow {label} down"))?;
            let (findings, seconds) = (Vec::new(), Vec::new());
            all.push(Series { label: label.clone(), slow: *slow, twins, findings, seconds });
        }
    }
    Ok(all)
}

impl Series {
    /// Keeps what a comparison found, and tells it.
    fn take(&mut self, number: u64, campaign: Campaign) {
        eprintln!(
            "{number} {} +{:.2} % of its CPU ({:.0} s)",
            self.label,
            100.0 * self.slow,
            campaign.seconds
        );
        for finding in &campaign.findings {
            let truth = finding.truth.map_or_else(|| "?".to_owned(), ratio);
            let interval = finding.interval.map_or_else(String::new, |interval| {
                format!("[{:.4}, {:.4}]", interval.low, interval.high)
            });
            eprintln!(
                "    {} {}: {} {} {interval}, true {truth}",
                finding.step,
                finding.metric.name(),
                finding.verdict.word(finding.metric),
                ratio(mean(&finding.differences)),
            );
        }
        self.seconds.push(campaign.seconds);
        self.findings.extend(campaign.findings);
    }

    /// Step and metric of its findings, each once.
    fn rows(&self) -> Vec<(&str, Metric)> {
        let mut rows = Vec::new();
        for finding in &self.findings {
            let row = (finding.step.as_str(), finding.metric);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        rows
    }
}

fn print_table(all: &[Series]) {
    println!(
        "| target | burns | step | metric | true | found | n | {} | beyond tau | holds truth \
         | sd of d | half width | measured | wall |",
        Verdict::ALL.map(Verdict::name).join(" | ")
    );
    println!("{}", "|---".repeat(15 + Verdict::ALL.len()) + "|");
    for one in all {
        for (step, metric) in one.rows() {
            let same = |finding: &&Finding| finding.step == step && finding.metric == metric;
            let found: Vec<&Finding> = one.findings.iter().filter(same).collect();
            print_row(one, &found);
        }
    }
}

fn print_row(one: &Series, found: &[&Finding]) {
    let Some(first) = found.first() else { return };
    let count = |holds: &dyn Fn(&Finding) -> bool| found.iter().filter(|one| holds(one)).count();
    let verdicts = Verdict::ALL.map(|verdict| count(&|one| one.verdict == verdict).to_string());
    let truths: Vec<f64> = found.iter().filter_map(|one| one.truth).collect();
    let true_ratio = if truths.is_empty() { "?".to_owned() } else { ratio(mean(&truths)) };
    let means: Vec<f64> = found.iter().map(|one| mean(&one.differences)).collect();
    // The root mean square over comparisons, with the degrees of freedom of each.
    let squares: f64 = found.iter().map(|one| sum_of_squares(&one.differences)).sum();
    let freedom: usize =
        found.iter().map(|one| one.differences.len().saturating_sub(1)).sum::<usize>().max(1);
    let widths = found.iter().filter_map(|one| one.interval);
    let mut widths: Vec<f64> =
        widths.map(|interval| (interval.high / interval.low).ln() / 2.0).collect();
    widths.sort_by(f64::total_cmp);
    println!(
        "| {} | {:.1} % | {} | {} | {true_ratio} | {} | {} | {} | {} | {} of {} | {} of {} \
         | {:.2} % | {:.2} % | {:.0} s | {:.0} s |",
        one.label,
        100.0 * one.slow,
        first.step,
        first.metric.name(),
        ratio(mean(&means)),
        found.len(),
        verdicts.join(" | "),
        count(&|one| one.beyond_tau),
        count(&|one| one.holds_truth() == Some(true)),
        count(&|one| one.holds_truth().is_some()),
        count(&|one| one.holds(mean(&means))),
        found.len(),
        100.0 * (squares / freedom as f64).sqrt(),
        100.0 * widths.get(widths.len() / 2).copied().unwrap_or(f64::NAN),
        mean(&found.iter().map(|one| one.measured).collect::<Vec<_>>()),
        mean(&one.seconds),
    );
}

fn ratio(ln_ratio: f64) -> String {
    format!("{:.4}", ln_ratio.exp())
}

fn sum_of_squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}
