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

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use clap::Parser;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use serde_json::{Value, json};

use rqps_analysis::causes::{
    self, CauseReaders, Causes, CausesOfStep, TakeCounter, differing_steps,
};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::history::{DateOptions, date_histories};
use rqps_analysis::{Comparison, VerdictOptions};
use rqps_lab::benchmarks::{compare_measured, digest, render, write_report};
use rqps_model::datagen::rng::Rng;
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Run, StepRecord};
use rqps_report::{Format, dates_document, render_text};
use rqps_results::{each_counter, read_each, settings_of};
use rqps_stats::Interval;
use rqps_stats::paired::mean_interval;

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
        return compare(&parent, before, words.pairs);
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

// Run folders like the committed ones in tests/data, as many as asked for, without fsync.

/// The size of a result set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SetSize {
    pub(crate) runs: usize,
    pub(crate) steps: usize,
    pub(crate) targets: usize,
    /// Counters of the DBMS that moved in each step; 0 for folders without them.
    pub(crate) counters: usize,
}

/// Two targets differ by this share in all steps, so that a report looks for causes in counters.
const SLOWER_WITH_COUNTERS: f64 = 0.05;
/// More targets differ by so little that no step does.
const SLOWER: f64 = 0.001;

/// Writes result sets of one run, a quarter of an hour apart.
pub(crate) fn generate_sets(dir: &Path, sets: usize, steps: usize) -> Result<Vec<PathBuf>> {
    let source = Path::new("tests/data/two-targets");
    let mut records = Records::read(source)?;
    let latencies: Vec<String> = (0..steps).map(|index| latency(index as u64)).collect();
    let mut rng = Rng::stream(2, "history time", 0);
    records.run["targets"] = json!(["nightly"]);
    records.run["target"]["label"] = json!("nightly");
    records.run["key"] = json!({ "block": 1, "attempt": 1, "order": 1, "label": "nightly" });
    let mut folders = Vec::with_capacity(sets);
    for set in 0..sets {
        let (day, minute) = (set / 96, set % 96 * 15);
        let (year, month) = (2020 + day / 336, 1 + day % 336 / 28);
        records.run["started"] = json!(format!(
            "{year}-{month:02}-{:02}T{:02}:{:02}:00Z",
            1 + day % 28,
            minute / 60,
            minute % 60
        ));
        let folder = dir.join(format!("set{set:05}"));
        fs::create_dir_all(&folder)?;
        for name in ["plan.toml", "host.json"] {
            fs::copy(source.join(name), folder.join(name))?;
        }
        let run = folder.join("b01-1-nightly");
        fs::create_dir_all(run.join("steps"))?;
        fs::write(run.join("run.json"), records.run.to_string())?;
        for (place, latency) in latencies.iter().enumerate() {
            let level = if place % 4 == 0 && set >= sets / 2 { 0.95 } else { 1.0 };
            let rate = 20_000.0 * level * (1.0 + 0.02 * rng.unit());
            records.write_step(&run, (place, latency), rate, &mut rng)?;
        }
        folders.push(folder);
    }
    Ok(folders)
}

/// Records of the committed result set, the material for others.
struct Records {
    run: Value,
    step: Value,
}

impl Records {
    fn read(source: &Path) -> Result<Records> {
        let load = |path: &str| -> Result<Value> {
            let path = source.join(path);
            let text =
                fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
            Ok(serde_json::from_str(&text)?)
        };
        Ok(Records {
            run: load("b01-1-mysql-5.6.14/run.json")?,
            step: load("b01-1-mysql-5.6.14/steps/02-point-query.json")?,
        })
    }

    fn write_step(
        &mut self,
        folder: &Path,
        (place, latency): (usize, &str),
        rate: f64,
        rng: &mut Rng,
    ) -> Result<()> {
        let step = &mut self.step;
        step["index"] = json!(place + 1);
        step["name"] = json!(format!("step-{place}"));
        step["group"] = json!(["point", "range", "write"][place % 3]);
        step["outcome"]["statements"] = json!((rate * 10.0) as u64);
        step["outcome"]["latency"] = json!(latency);
        step["per_second"] =
            json!((0..60).map(|_| (rate * (0.95 + 0.1 * rng.unit())).round()).collect::<Vec<_>>());
        let path = folder.join(format!("steps/{:02}-step-{place}.json", place + 1));
        fs::write(path, serde_json::to_string_pretty(step)?)?;
        Ok(())
    }
}

/// Writes one result set.
pub(crate) fn generate(dir: &Path, size: SetSize) -> Result<()> {
    let SetSize { runs, steps, targets, counters } = size;
    let slower = if counters > 0 { SLOWER_WITH_COUNTERS } else { SLOWER };
    let source = Path::new("tests/data/two-targets");
    fs::create_dir_all(dir)?;
    for name in ["plan.toml", "host.json"] {
        fs::copy(source.join(name), dir.join(name)).with_context(|| format!("copy {name}"))?;
    }
    let mut records = Records::read(source)?;
    let labels: Vec<String> = (0..targets).map(|target| format!("target-{target}")).collect();
    records.run["targets"] = json!(labels);
    let latencies: Vec<String> = (0..steps).map(|index| latency(index as u64)).collect();
    let mut rng = Rng::stream(1, "report time", 0);
    for index in 0..runs {
        let (block, target) = (index / targets + 1, index % targets);
        let label = &labels[target];
        let run = &mut records.run;
        run["key"] = json!({ "block": block, "attempt": 1, "order": target + 1, "label": label });
        run["target"]["label"] = json!(label);
        let folder = dir.join(format!("b{block:02}-{}-{label}", target + 1));
        fs::create_dir_all(folder.join("steps"))?;
        fs::write(folder.join("run.json"), serde_json::to_string_pretty(run)?)?;
        for (place, latency) in latencies.iter().enumerate() {
            let rate = 20_000.0 * (1.0 + 0.02 * rng.unit()) * (1.0 - slower * target as f64);
            records.write_step(&folder, (place, latency), rate, &mut rng)?;
            if counters > 0 {
                write_counters(&folder, (place, target), counters, &mut rng)?;
            }
        }
    }
    Ok(())
}

/// Writes the other files that a run has for each step: its counters, and its seconds and turns,
/// which no report over many runs reads. Every tenth counter moves more in later targets, and every
/// eleventh is one that they lack.
fn write_counters(
    folder: &Path,
    (step, target): (usize, usize),
    counters: usize,
    rng: &mut Rng,
) -> Result<()> {
    let mut text = "counter,before,after\n".to_owned();
    for counter in (0..counters).filter(|counter| target == 0 || counter % 11 != 10) {
        let before = rng.below(1_000_000);
        let more = if counter % 10 == 0 { 0.2 * target as f64 } else { 0.0 };
        let moved = 200_000.0 * (1.0 + more + 0.01 * rng.unit());
        let after = before + moved as u64;
        text.push_str(&format!("pg_stat_database.counter_{counter:03},{before},{after}\n"));
    }
    let file = |end: &str| folder.join(format!("steps/{:02}-step-{step}.{end}.csv", step + 1));
    fs::write(file("counters"), text)?;
    let rows = |row: &str, count: usize| row.repeat(count);
    fs::write(file("turns"), rows("1,0,20000000,400,1\n", 80))?;
    let seconds = folder.join(format!("steps/{:02}-step-{step}.csv", step + 1));
    fs::write(seconds, rows("1,1.0,20000,20000,0,49.1,51.2,58.3,180.4\n", 6))?;
    Ok(())
}

/// A hundred thousand latencies around 30 µs with a long tail, like those of a step.
fn latency(seed: u64) -> String {
    let mut rng = Rng::stream(seed, "latencies", 0);
    let histogram = Histogram::<u64>::new_with_bounds(1, (1 << 42) - 1, 3);
    let Ok(mut histogram) = histogram else { return String::new() };
    for _ in 0..100_000 {
        let bell: f64 = (0..4).map(|_| rng.unit()).sum();
        histogram.saturating_record((30_000.0 * (2.0 * bell).exp2()) as u64);
    }
    let mut bytes = Vec::new();
    // Writing to memory cannot fail.
    let _ = V2Serializer::new().serialize(&histogram, &mut bytes);
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

// Times `rqps report` of two builds in turn: other work on the host slows down both alike.

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
