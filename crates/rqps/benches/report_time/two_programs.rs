//! Times `rqps report` of two builds in turn: other work on the host slows down both alike.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rqps_stats::Interval;
use rqps_stats::paired::mean_interval;

use super::folders::{SetSize, generate};

/// Many small runs; many steps; one comparison of two targets; a thousand blocks of two targets
/// with the counters that a Postgres has.
const SIZES: [SetSize; 4] = [
    SetSize { runs: 4_000, steps: 4, targets: 20, counters: 0 },
    SetSize { runs: 600, steps: 42, targets: 20, counters: 0 },
    SetSize { runs: 24, steps: 32, targets: 2, counters: 0 },
    SetSize { runs: 2_000, steps: 42, targets: 2, counters: 24 },
];

/// A pair has as many reports by each build as take this long, so that it is not all noise.
const PAIR_MIN: Duration = Duration::from_millis(400);

/// Prints a row for each result set.
pub(crate) fn compare(parent: &Path, before: &Path, pairs: usize) -> Result<()> {
    let now = Path::new(env!("CARGO_BIN_EXE_rqps"));
    println!("| runs | steps | targets | counters | before | now | now / before (95 %) | pairs |");
    println!("|---|---|---|---|---|---|---|---|");
    for size in SIZES {
        let scratch = tempfile::tempdir_in(parent).context("make a folder")?;
        let set = scratch.path().join("set");
        generate(&set, size)?;
        // The first reports fill caches.
        let first = report(before, &set)?.max(report(now, &set)?);
        let reports = PAIR_MIN.div_duration_f64(first).ceil() as u32;
        let mut times = Vec::with_capacity(pairs);
        for pair in 0..pairs {
            let timed = |program: &Path| -> Result<Duration> {
                let each = (0..reports).map(|_| report(program, &set));
                Ok(each.sum::<Result<Duration>>()? / reports)
            };
            // The second build may find warmer caches, so each is the second in half of the pairs.
            times.push(if pair % 2 == 0 {
                let first = timed(before)?;
                (first, timed(now)?)
            } else {
                let first = timed(now)?;
                (timed(before)?, first)
            });
        }
        print_row(size, &times);
    }
    Ok(())
}

fn print_row(size: SetSize, times: &[(Duration, Duration)]) {
    let SetSize { runs, steps, targets, counters } = size;
    let count = times.len() as u32;
    let before: Duration = times.iter().map(|(before, _)| before).sum();
    let now: Duration = times.iter().map(|(_, now)| now).sum();
    let logarithms: Vec<f64> =
        times.iter().map(|(before, now)| now.div_duration_f64(*before).ln()).collect();
    let Some(ratio) = mean_interval(&logarithms, 0.95) else { return };
    let ends = ratio.interval.map(Interval::exp);
    let ends = ends.map_or_else(String::new, |it| format!(" [{:.3}, {:.3}]", it.low, it.high));
    println!(
        "| {runs} | {steps} | {targets} | {counters} | {:.1?} | {:.1?} | {:.3}{ends} | {count} |",
        before / count,
        now / count,
        ratio.mean.exp()
    );
}

/// The time of one report.
fn report(program: &Path, set: &Path) -> Result<Duration> {
    let start = Instant::now();
    let mut command = Command::new(program);
    let status = command.arg("report").arg(set).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("start {}", program.display()))?;
    let time = start.elapsed();
    ensure!(status.success(), "{} failed to report: {status}", program.display());
    Ok(time)
}
