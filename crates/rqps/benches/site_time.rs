//! Measures the time of `rqps site` over many result sets: all new, none new, one new.
//!
//!     cargo bench --bench site_time [-- --sets 1000 --steps 12 --blocks 3 --folder /dev/shm]
//!
//! The result sets are generated: two targets, each step with a latency histogram and 20 seconds of
//! intervals, dates a day apart, and a change of 5 % in every fourth step in the middle. The
//! program itself runs, as for a user.

#![allow(clippy::print_stdout, reason = "a program of its own")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rqps_model::datagen::rng::Rng;
use serde_json::{Value, json};

/// Seconds of intervals per step.
const SECONDS: usize = 20;

#[derive(Parser)]
struct Words {
    /// Numbers of result sets [default: 1000]
    #[arg(long, value_delimiter = ',')]
    sets: Vec<usize>,
    /// Steps in each
    #[arg(long, default_value_t = 12)]
    steps: usize,
    /// Blocks in each
    #[arg(long, default_value_t = 3)]
    blocks: usize,
    /// Folder for the result sets; the bench removes them at its end
    #[arg(long)]
    folder: Option<PathBuf>,
    /// The program to time [default: the one that cargo built]
    #[arg(long, default_value = env!("CARGO_BIN_EXE_rqps"))]
    program: PathBuf,
    /// Given by `cargo bench`. Under `cargo test` it is missing, and a small size is enough
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let words = Words::parse();
    let sizes = match (words.sets.is_empty(), words.bench) {
        (false, _) => words.sets.clone(),
        (true, true) => vec![1000],
        (true, false) => vec![12],
    };
    let parent = words.folder.clone().unwrap_or_else(std::env::temp_dir);
    println!("| result sets | steps | runs | full | nothing new | one more | files | site |");
    println!("|---|---|---|---|---|---|---|---|");
    for count in sizes {
        let scratch = tempfile::tempdir_in(&parent).context("make a folder")?;
        let (sets, out) = (scratch.path().join("sets"), scratch.path().join("site"));
        let made = Made::read(&words)?;
        for day in 0..count {
            made.write(&sets, day, count)?;
        }
        let full = site(&words.program, &sets, &out, count)?;
        let nothing = site(&words.program, &sets, &out, 0)?;
        made.write(&sets, count, count)?;
        let more = site(&words.program, &sets, &out, 1)?;
        let (files, bytes) = size(&out)?;
        println!(
            "| {count} | {} | {} | {full:.1?} | {nothing:.2?} | {more:.2?} | {files} | {} MB |",
            words.steps,
            count * words.blocks * 2,
            bytes >> 20
        );
    }
    Ok(())
}

/// The time of `rqps site`, which must render this number of reports.
fn site(program: &Path, sets: &Path, out: &Path, rendered: usize) -> Result<Duration> {
    let begin = Instant::now();
    let output = Command::new(program)
        .arg("site")
        .arg(sets)
        .arg("-o")
        .arg(out)
        .output()
        .context("start rqps")?;
    let time = begin.elapsed();
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "rqps site: {said}");
    ensure!(said.contains(&format!("({rendered} reports rendered)")), "{said}");
    Ok(time)
}

/// Files and bytes below a folder.
fn size(folder: &Path) -> Result<(usize, u64)> {
    let (mut files, mut bytes) = (0, 0);
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let (more, size) =
            if entry.path().is_dir() { size(&entry.path())? } else { (1, entry.metadata()?.len()) };
        files += more;
        bytes += size;
    }
    Ok((files, bytes))
}

/// Material for result sets: records of a committed one.
struct Made {
    run: Value,
    step: Value,
    steps: usize,
    blocks: usize,
}

impl Made {
    fn read(words: &Words) -> Result<Made> {
        let load = |path: &str| -> Result<Value> {
            let path = Path::new("tests/data/two-targets").join(path);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            Ok(serde_json::from_str(&text)?)
        };
        Ok(Made {
            run: load("b01-1-mysql-5.6.14/run.json")?,
            step: load("b01-1-mysql-5.6.14/steps/02-point-query.json")?,
            steps: words.steps,
            blocks: words.blocks,
        })
    }

    /// Writes one result set, without fsync.
    fn write(&self, sets: &Path, day: usize, days: usize) -> Result<()> {
        let set = sets.join(format!("nightly-{day:05}"));
        fs::create_dir_all(&set)?;
        for name in ["plan.toml", "host.json"] {
            fs::copy(Path::new("tests/data/two-targets").join(name), set.join(name))?;
        }
        let labels = ["stable", "nightly"];
        let mut rng = Rng::stream(day as u64, "site time", 0);
        let (year, rest) = (2020 + day / 336, day % 336);
        let date = format!("{year}-{:02}-{:02}", 1 + rest / 28, 1 + rest % 28);
        for block in 1..=self.blocks {
            for (place, label) in labels.iter().enumerate() {
                let mut run = self.run.clone();
                run["targets"] = json!(labels);
                run["key"] =
                    json!({ "block": block, "attempt": 1, "order": place + 1, "label": label });
                run["target"]["label"] = json!(label);
                run["started"] = json!(format!("{date}T01:{:02}:00Z", block % 60));
                let folder = set.join(format!("b{block:02}-{}-{label}", place + 1));
                fs::create_dir_all(folder.join("steps"))?;
                fs::write(folder.join("run.json"), run.to_string())?;
                for step in 0..self.steps {
                    let changed = place == 1 && step % 4 == 0 && day >= days / 2;
                    let level = if changed { 0.95 } else { 1.0 };
                    let rate = 20_000.0 * level * (1.0 + 0.02 * rng.unit());
                    self.write_step(&folder, step, rate, &mut rng)?;
                }
            }
        }
        Ok(())
    }

    fn write_step(&self, folder: &Path, step: usize, rate: f64, rng: &mut Rng) -> Result<()> {
        let mut record = self.step.clone();
        let name = format!("step-{step}");
        record["index"] = json!(step + 1);
        record["name"] = json!(name);
        record["group"] = json!(["point", "range", "write"][step % 3]);
        record["outcome"]["statements"] = json!((rate * 10.0) as u64);
        let mut csv =
            "second,seconds_s,events,statements,errors,p50_us,p95_us,p99_us,max_us\n".to_owned();
        for second in 1..=SECONDS {
            let here = (rate * (0.95 + 0.1 * rng.unit())).round();
            csv.push_str(&format!("{second},1,{here},{here},0,50,100,150,600\n"));
        }
        let file = folder.join(format!("steps/{:02}-{name}", step + 1));
        fs::write(file.with_extension("json"), record.to_string())?;
        fs::write(file.with_extension("csv"), csv)?;
        Ok(())
    }
}
