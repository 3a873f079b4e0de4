//! Run folders like the committed ones in tests/data, as many as asked for, without fsync.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use rqps_model::datagen::rng::Rng;
use serde_json::{Value, json};

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
