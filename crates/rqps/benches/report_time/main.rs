//! Measures the time of a report over many runs. The limits: 1,000 runs of 42 steps in a second,
//! and ten times as many in at most eleven times the time.
//!
//!     cargo bench --bench report_time [-- --runs 1000,10000 --targets 20 --folder /dev/shm]
//!     cargo bench --bench report_time -- --before OTHER/target/release/rqps --folder /dev/shm
//!     cargo bench --bench report_time -- --history 240,10000x1 --folder /dev/shm
//!
//! The run folders are generated: twenty targets, each step with a latency histogram of a hundred
//! thousand events and a minute of intervals, like a real one. Each size is read (with the metrics
//! of each step), compared and written three times; the best time counts, since the rest is noise
//! of the machine. Memory is the peak of the process when the first text is complete.
//!
//! `--before OTHER` compares with another build of rqps instead: both report on the same result
//! sets in turn, and the bench prints the ratio of their times, this build / the other.
//!
//! `--history` times `rqps history --by date` instead, over result sets of one run each: 240 sets
//! of 42 steps and 10,000 sets of one step are 10,000 points each. Every fourth step loses 5 % in
//! the middle.

#![allow(clippy::print_stdout, reason = "a program of its own")]

mod folders;
mod two_programs;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use rqps_analysis::causes::{
    self, CauseReaders, Causes, CausesOfStep, TakeCounter, differing_steps,
};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::history::{DateOptions, date_histories};
use rqps_analysis::{Comparison, VerdictOptions};
use rqps_lab::benchmarks::{compare_measured, digest, render, write_report};
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Run, StepRecord};
use rqps_report::{Format, dates_document, render_text};
use rqps_results::{each_counter, read_each, settings_of};

use self::folders::{SetSize, generate, generate_sets};

const STEPS: usize = 42;
const ROUNDS: usize = 3;

#[derive(Parser)]
struct Words {
    /// Numbers of runs, smallest first [default: 1000]
    #[arg(long, value_delimiter = ',')]
    runs: Vec<usize>,
    /// Time histories of this number of result sets instead; `SETSxSTEPS` for another number of
    /// steps
    #[arg(long, value_delimiter = ',', value_parser = history_size)]
    history: Vec<(usize, usize)>,
    /// Another build of rqps to compare the time of `rqps report` with
    #[arg(long)]
    before: Option<PathBuf>,
    /// Pairs of reports, one by each build, on each result set
    #[arg(long, default_value_t = 20)]
    pairs: usize,
    /// Targets among them
    #[arg(long, default_value_t = 20)]
    targets: usize,
    /// Counters of the DBMS in each step, of which two targets differ by 5 % [default: none]
    #[arg(long, default_value_t = 0)]
    counters: usize,
    /// Folder for the run folders; the bench removes them at its end
    #[arg(long)]
    folder: Option<PathBuf>,
    /// Given by `cargo bench`. Under `cargo test` it is missing, and a small size is enough
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let words = Words::parse();
    let sizes = match (words.runs.is_empty(), words.bench) {
        (false, _) => words.runs,
        (true, true) => vec![1000],
        (true, false) => vec![2 * words.targets],
    };
    let parent = words.folder.unwrap_or_else(std::env::temp_dir);
    if let Some(before) = &words.before {
        return two_programs::compare(&parent, before, words.pairs);
    }
    if !words.history.is_empty() {
        return histories(&parent, &words.history);
    }
    println!(
        "| runs | read | compare | causes | text | read to text | CSV | JSON | per run | memory |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let mut first = None;
    for runs in sizes {
        let scratch = tempfile::tempdir_in(&parent).context("make a folder")?;
        let dir = scratch.path().join("set");
        let (targets, counters) = (words.targets, words.counters);
        generate(&dir, SetSize { runs, steps: STEPS, targets, counters })?;
        let times =
            (0..ROUNDS).map(|_| measure(&dir, (runs, counters))).collect::<Result<Vec<_>>>()?;
        let memory = times.first().map_or(0.0, |first| first.memory_mb);
        let best = times.into_iter().min_by_key(|times| times.to_text());
        let Some(best) = best else { continue };
        let whole = best.to_text();
        println!(
            "| {runs} | {:.2?} | {:.2?} | {:.2?} | {:.2?} | {whole:.2?} | {:.2?} | {:.2?} | \
             {:.2?} | {memory:.0} MB |",
            best.read,
            best.compare,
            best.causes,
            best.text,
            best.csv,
            best.json,
            whole / runs as u32,
        );
        let (runs_first, whole_first) = *first.get_or_insert((runs, whole));
        if runs > runs_first {
            println!(
                "\n{:.1} times the runs in {:.1} times the time\n",
                runs as f64 / runs_first as f64,
                whole.as_secs_f64() / whole_first.as_secs_f64()
            );
        }
    }
    Ok(())
}

/// Reads `240`, or `10000x1` for 10,000 result sets of one step.
fn history_size(word: &str) -> Result<(usize, usize), String> {
    let (sets, steps) = word.split_once('x').map_or((word, None), |(sets, n)| (sets, Some(n)));
    let number = |text: &str| text.parse().map_err(|_| "write SETS or SETSxSTEPS".to_owned());
    Ok((number(sets)?, steps.map_or(Ok(STEPS), number)?))
}

/// Prints the times of `rqps history --by date`.
fn histories(parent: &Path, sizes: &[(usize, usize)]) -> Result<()> {
    println!("| result sets | steps | points | read | compare | changes | text | total |");
    println!("|---|---|---|---|---|---|---|---|");
    for &(sets, steps) in sizes {
        let scratch = tempfile::tempdir_in(parent).context("make a folder")?;
        let folders = generate_sets(scratch.path(), sets, steps)?;
        let times = (0..ROUNDS).map(|_| history(&folders, steps)).collect::<Result<Vec<_>>>()?;
        let best = times.into_iter().min_by_key(|times| times.iter().sum::<Duration>());
        let Some(best @ [read, compare, changes, text]) = best else { continue };
        let total: Duration = best.iter().sum();
        println!(
            "| {sets} | {steps} | {} | {read:.2?} | {compare:.2?} | {changes:.2?} | {text:.2?} | \
             {total:.2?} |",
            sets * steps
        );
    }
    Ok(())
}

/// Times of reading, comparing, searching for changes, and writing.
fn history(folders: &[PathBuf], steps: usize) -> Result<[Duration; 4]> {
    let start = Instant::now();
    let (dataset, measured) = read_each(folders, digest)?;
    let read = start.elapsed();
    let comparison = compare_measured(&dataset, measured, &VerdictOptions::default())?;
    let compared = start.elapsed();
    let of = DateOptions {
        metric: Metric::Rate,
        as_otava: false,
        max_p: 0.001,
        min_magnitude: 0.0,
        same_host: false,
    };
    let found = date_histories(&comparison, &of);
    let searched = start.elapsed();
    let text = render_text(&dates_document(&found), None);
    let rendered = start.elapsed();
    let [history] = &found[..] else { bail!("{} histories", found.len()) };
    let points = history.steps.iter().map(|step| step.points.len());
    ensure!(points.sum::<usize>() == folders.len() * steps, "points are missing");
    ensure!(history.steps.iter().any(|step| !step.changes.is_empty()), "no change was found");
    ensure!(text.contains("step-0"), "the report is not whole");
    Ok([read, compared - read, searched - compared, rendered - searched])
}

/// Times of one report.
struct Times {
    read: Duration,
    compare: Duration,
    causes: Duration,
    text: Duration,
    csv: Duration,
    json: Duration,
    memory_mb: f64,
}

impl Times {
    fn to_text(&self) -> Duration {
        self.read + self.compare + self.causes + self.text
    }
}

/// Reads settings and counters, as `rqps report` does.
fn found_causes(
    comparison: &Comparison,
    dataset: &Dataset,
    steps: &[&StepComparison],
) -> Result<Causes> {
    let settings = |run: &Run| settings_of(run).map_err(|error| error.to_string());
    let counters = |run: &Run, step: &StepRecord, take: TakeCounter<'_>| {
        each_counter(run, step, take).map_err(|error| error.to_string())
    };
    let readers = CauseReaders { settings: &settings, counters: &counters };
    let causes = causes::find(comparison, dataset, steps, readers);
    ensure!(causes.faults.is_empty(), "{:?}", causes.faults);
    let has_some = |step: &CausesOfStep| step.counters.iter().any(|moved| !moved.is_empty());
    ensure!(causes.steps.iter().all(has_some) || !dataset.runs[0].has_counters, "no counter moved");
    Ok(causes)
}

fn measure(dir: &Path, (runs, counters): (usize, usize)) -> Result<Times> {
    let start = Instant::now();
    let (dataset, measured) = read_each(&[dir.to_owned()], digest)?;
    let read = start.elapsed();
    let mut comparison = compare_measured(&dataset, measured, &VerdictOptions::default())?;
    let compared = start.elapsed();
    let steps = differing_steps(&comparison);
    ensure!(counters == 0 || steps.len() == STEPS, "only {} steps differ", steps.len());
    comparison.causes = if steps.is_empty() {
        None
    } else {
        Some(Box::new(found_causes(&comparison, &dataset, &steps)?))
    };
    let explained = start.elapsed();
    let text = render(&comparison, Format::Text);
    let rendered = start.elapsed();
    let memory_mb = memory_mb()?;
    ensure!(comparison.runs.len() == runs && comparison.steps.len() == STEPS, "runs are missing");
    ensure!(text.contains("step-41"), "the report is not whole");
    let rows = |format| -> Result<Duration> {
        let start = Instant::now();
        let mut out = Counted(0);
        write_report(&comparison, format, &mut out)?;
        ensure!(out.0 > 1000 * runs, "{} bytes in {format:?}: samples are missing", out.0);
        Ok(start.elapsed())
    };
    Ok(Times {
        read,
        compare: compared - read,
        causes: explained - compared,
        text: rendered - explained,
        csv: rows(Format::Csv)?,
        json: rows(Format::Json)?,
        memory_mb,
    })
}

/// Counts written bytes and drops them.
struct Counted(usize);

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The peak memory of this process, MB.
fn memory_mb() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.split_whitespace().next()).context("find VmHWM")?;
    Ok(kb.parse::<f64>()? / 1024.0)
}
