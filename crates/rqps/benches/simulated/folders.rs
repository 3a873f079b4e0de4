//! Writes run folders of targets with known true ratios, reads them as rqps does, and counts wrong
//! verdicts and jobs that fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::gate::{GateOutcome, assess};
use rqps_analysis::{Comparison, VerdictOptions};
use rqps_lab::benchmarks::compare;
use rqps_model::datagen::rng::Rng;
use rqps_model::metric::Metric;
use rqps_model::verdict::{GateRules, Rules, Verdict};
use serde_json::{Value, json};

use super::normal;

/// The result sets of a campaign. Standard deviations are of ln ratios.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FolderScene {
    /// Steps of which both are measured.
    pub(crate) steps: usize,
    /// Blocks of each result set.
    pub(crate) blocks: usize,
    /// Result sets.
    pub(crate) sets: usize,
    /// Targets beside the baseline.
    pub(crate) targets: usize,
    /// Noise of a pair.
    pub(crate) noise: f64,
    /// Factor of the noise of every tenth step.
    pub(crate) loud: f64,
    /// What all steps of a block share.
    pub(crate) start: f64,
    /// What all steps of a result set share.
    pub(crate) session: f64,
    /// What a step of a target has in all blocks.
    pub(crate) layout: f64,
    /// Correlation of the noise from block to block.
    pub(crate) memory: f64,
    /// Steps that only the last result set has, beside the others.
    pub(crate) alone: usize,
    /// Steps whose pairs are all equal, beside the others.
    pub(crate) equal: usize,
    /// Steps that lose 3 %, the first ones.
    pub(crate) slower: usize,
    /// True if targets take turns; the errors inside blocks are then as large as the noise.
    pub(crate) turns: bool,
    /// τ as a share.
    pub(crate) tau: f64,
    /// Interim looks from so many blocks on.
    pub(crate) first_look: Option<usize>,
}

/// Twelve steps in four blocks of one result set, with a noise of 5 %.
pub(crate) const FOLDERS: FolderScene = FolderScene {
    steps: 12,
    blocks: 4,
    sets: 1,
    targets: 1,
    noise: 0.05,
    loud: 1.0,
    start: 0.0,
    session: 0.0,
    layout: 0.0,
    memory: 0.0,
    alone: 0,
    equal: 0,
    slower: 0,
    turns: false,
    tau: 0.01,
    first_look: None,
};

/// Shares over many campaigns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FolderRates {
    /// Campaigns in which an equal step is SLOWER or FASTER.
    pub(crate) any_large: f64,
    /// Campaigns in which an equal step has any of the four verdicts of a difference.
    pub(crate) any: f64,
    /// Campaigns whose gate ends with a regression.
    pub(crate) gate: f64,
    /// Intervals that hold the truth.
    pub(crate) held: f64,
    /// The same of the loud steps, and of those of one result set.
    pub(crate) held_odd: f64,
    /// Slower steps that are SLOWER.
    pub(crate) found: f64,
}

const LOSS: f64 = 0.03;
const SHARES: usize = 40;

impl FolderScene {
    fn all_steps(&self) -> usize {
        self.steps + self.alone + self.equal
    }

    fn is_alone(&self, step: usize) -> bool {
        (self.steps..self.steps + self.alone).contains(&step)
    }

    fn is_equal(&self, step: usize) -> bool {
        step >= self.steps + self.alone
    }

    fn is_loud(&self, step: usize) -> bool {
        self.loud != 1.0 && step.is_multiple_of(10)
    }
}

/// The rates of so many campaigns, with folders in `dir`.
pub(crate) fn simulate_folders(
    scene: &FolderScene,
    campaigns: u32,
    dir: &Path,
) -> Result<FolderRates> {
    let mut rng = Rng::stream(7, "simulated folders", 0);
    let rules = Rules { tau: scene.tau.ln_1p(), ..Rules::default() };
    let records = Records::read()?;
    let mut sums = FolderRates::default();
    let mut counts = [0.0_f64; 3];
    for _ in 0..campaigns {
        let folders = write(scene, &records, dir, &mut rng)?;
        let dataset = rqps_results::read(&folders)?;
        let options = VerdictOptions { rules, ..VerdictOptions::default() };
        let comparison = compare(&dataset, &options)?;
        let gate = GateRules { tau: Some(scene.tau), ..GateRules::default() };
        let assessed = assess(&comparison, &gate, None, &BTreeSet::new());
        let ending = assessed.map_err(anyhow::Error::msg)?.ending;
        sums.gate += f64::from(u8::from(ending == GateOutcome::Regression));
        add(scene, &comparison, &mut sums, &mut counts)?;
    }
    let campaigns = f64::from(campaigns);
    Ok(FolderRates {
        any_large: sums.any_large / campaigns,
        any: sums.any / campaigns,
        gate: sums.gate / campaigns,
        held: sums.held / counts[0].max(1.0),
        held_odd: sums.held_odd / counts[1].max(1.0),
        found: sums.found / counts[2].max(1.0),
    })
}

fn add(
    scene: &FolderScene,
    comparison: &Comparison,
    sums: &mut FolderRates,
    counts: &mut [f64; 3],
) -> Result<()> {
    let (mut large, mut any) = (false, false);
    for step in &comparison.steps {
        let at: usize = place(step)?;
        let is_slower = at < scene.slower;
        let truth = if is_slower { 1.0 - LOSS } else { 1.0 };
        for target in step.targets.iter().skip(1) {
            let relative = target.relative(Metric::Rate).context("a ratio")?;
            let judgement = relative.judgement.as_ref().context("a judgement")?;
            let verdict = judgement.verdict;
            let is_large = matches!(verdict, Verdict::Slower | Verdict::Faster);
            if is_slower {
                counts[2] += 1.0;
                sums.found += f64::from(u8::from(verdict == Verdict::Slower));
            } else {
                large |= is_large;
                any |= verdict < Verdict::Same;
            }
            let Some(test) = &judgement.test else { continue };
            let holds = (test.interval.low..=test.interval.high).contains(&truth);
            let holds = f64::from(u8::from(holds));
            counts[0] += 1.0;
            sums.held += holds;
            if scene.is_loud(at) || scene.is_alone(at) {
                counts[1] += 1.0;
                sums.held_odd += holds;
            }
        }
    }
    sums.any_large += f64::from(u8::from(large));
    sums.any += f64::from(u8::from(any));
    Ok(())
}

fn place(step: &StepComparison) -> Result<usize> {
    let digits = step.name.strip_prefix("step-").context("a step of the bench")?;
    Ok(digits.parse()?)
}

/// Records of the committed result set, the material for others.
struct Records {
    run: Value,
    step: Value,
}

impl Records {
    fn read() -> Result<Records> {
        let load = |name: &str| -> Result<Value> {
            let path = Path::new("tests/data/two-targets/b01-1-mysql-5.6.14").join(name);
            Ok(serde_json::from_str(&fs::read_to_string(path)?)?)
        };
        Ok(Records { run: load("run.json")?, step: load("steps/02-point-query.json")? })
    }
}

/// The ln ratios of each target and step, by block, of one result set.
type Differences = Vec<Vec<Vec<f64>>>;

fn draw(scene: &FolderScene, layouts: &[Vec<f64>], rng: &mut Rng) -> Differences {
    let of_target = |layouts: &Vec<f64>, rng: &mut Rng| {
        let session = scene.session * normal(rng);
        let starts: Vec<f64> = (0..scene.blocks).map(|_| scene.start * normal(rng)).collect();
        let of_step = |(step, layout): (usize, &f64)| -> Vec<f64> {
            if scene.is_equal(step) {
                return vec![0.0; scene.blocks];
            }
            let loud = if scene.is_loud(step) { scene.loud } else { 1.0 };
            let effect = if step < scene.slower { (-LOSS).ln_1p() } else { 0.0 };
            let (memory, mut noise) = (scene.memory, normal(rng));
            let of_block = |start: &f64| {
                noise = memory * noise + (1.0 - memory * memory).sqrt() * normal(rng);
                effect + layout + session + start + loud * scene.noise * noise
            };
            starts.iter().map(of_block).collect()
        };
        layouts.iter().enumerate().map(of_step).collect()
    };
    layouts.iter().map(|layouts| of_target(layouts, rng)).collect()
}

fn write(
    scene: &FolderScene,
    records: &Records,
    dir: &Path,
    rng: &mut Rng,
) -> Result<Vec<PathBuf>> {
    let mut layout = || scene.layout * normal(rng);
    let mut of_target = || (0..scene.all_steps()).map(|_| layout()).collect::<Vec<f64>>();
    let layouts: Vec<Vec<f64>> = (0..scene.targets).map(|_| of_target()).collect();
    let mut folders = Vec::new();
    for set in 0..scene.sets {
        let folder = dir.join(format!("set-{set}"));
        let differences = draw(scene, &layouts, rng);
        let labels: Vec<String> = (0..=scene.targets).map(|at| format!("target-{at}")).collect();
        for (block, number) in (1..=scene.blocks).enumerate() {
            for (at, label) in labels.iter().enumerate() {
                let run = folder.join(format!("b{number:02}-{}-{label}", at + 1));
                fs::create_dir_all(run.join("steps"))?;
                let mut record = records.run.clone();
                record["targets"] = json!(labels);
                record["target"]["label"] = json!(label);
                record["key"] =
                    json!({ "block": number, "attempt": 1, "order": at + 1, "label": label });
                // Each block has its own load.
                record["load"]["number"] = json!(number);
                if let Some(first) = scene.first_look {
                    record["schedule"] = json!({ "blocks_min": first, "blocks_max": scene.blocks });
                }
                fs::write(run.join("run.json"), record.to_string())?;
                let of_run = |step: usize| match at.checked_sub(1) {
                    Some(target) => differences[target][step][block],
                    None => 0.0,
                };
                write_steps(scene, records, (&run, set + 1 == scene.sets), of_run, rng)?;
            }
        }
        for name in ["plan.toml", "host.json"] {
            fs::copy(Path::new("tests/data/two-targets").join(name), folder.join(name))?;
        }
        folders.push(folder);
    }
    Ok(folders)
}

fn write_steps(
    scene: &FolderScene,
    records: &Records,
    (run, is_last): (&Path, bool),
    difference: impl Fn(usize) -> f64,
    rng: &mut Rng,
) -> Result<()> {
    for step in 0..scene.all_steps() {
        if scene.is_alone(step) && !is_last {
            continue;
        }
        let mut record = records.step.clone();
        record["index"] = json!(step + 1);
        record["name"] = json!(format!("step-{step}"));
        let events = 1e12 * difference(step).exp();
        for name in ["events", "statements", "reads", "rows"] {
            record["outcome"][name] = json!(events.round() as u64);
        }
        if scene.turns {
            // A pair has this noise of both sides together, and so has its mean over the shares.
            let of_share = scene.noise * (SHARES as f64 / 2.0).sqrt();
            let share = |_| (10.0 / SHARES as f64, events / SHARES as f64 * of_share * normal(rng));
            let mean = events / SHARES as f64;
            let shares: Vec<(f64, f64)> = (0..SHARES).map(share).collect();
            let shares = shares.iter().map(|(seconds, more)| (seconds, (mean + more) as u64));
            record["outcome"]["turns"] = json!({
                "targets": scene.targets + 1, "slice_ms": 20.0, "stopped": false, "turns": 500,
                "longest_ms": 21.0, "wall_seconds": 20.0, "shares": shares.collect::<Vec<_>>(),
            });
        }
        let path = run.join(format!("steps/{:02}-step-{step}.json", step + 1));
        fs::write(path, record.to_string())?;
    }
    Ok(())
}
