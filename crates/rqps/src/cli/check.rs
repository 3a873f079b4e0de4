//! `rqps check`: one verdict on a change within a budget. Counts come first; then turns for the
//! steps whose count moved, and for a sample of the others.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use anyhow::{Context, Result, bail};
use clap::Args;
use clap_complete::engine::ArgValueCompleter;
use serde::Serialize;

use crate::cli::args::{Folders, GuestOptions, RuleOptions, share};
use crate::cli::folders::{self, valgrind_for};
use crate::cli::hosts::Hosts;
use crate::cli::measure::{self, COUNTING_PASS, SHORT_STEPS};
use crate::cli::parts::{Switch, WorkloadArgs, duration, whole};
use crate::cli::report::{self, Compared};
use crate::cli::{builds, bundle, campaigns, exit, gate, help, own_workload, questions, terminal};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::counted::{FunctionComparison, TotalChange};
use rqps_analysis::gate::{Assessment, GateOutcome};
use rqps_host::fingerprint::Fingerprint;
use rqps_lab::lab::error_text;
use rqps_lab::plan::{Auto, Blocks, CountingPass, Plan, PlanDraft, cost, words};
use rqps_model::benchmark::{Group, Phase};
use rqps_model::build::{Build, BuildSource, Dbms, Target};
use rqps_model::datagen::rng::Rng;
use rqps_model::metric::Metric;
use rqps_model::{escape, safe_path};
use rqps_report::gate::regressions;
use rqps_results as results;

/// The version of the JSON form.
const CHECK_SCHEMA: u32 = 1;
/// The part of the budget for counts.
const COUNTS_SHARE: f64 = 0.4;
/// The part of the budget for the report and the receipt, and its least seconds.
const END_SHARE: f64 = 0.04;
const END_LEAST: f64 = 2.0;
/// Statements of a step that are counted, twice: enough to see which steps moved.
const COUNTED: CountingPass = CountingPass { statements: 100, repeats: 2, ..COUNTING_PASS };
/// The steps are so few that there is time for as many blocks, each from the one load: others would
/// take the time of steps.
const BLOCKS: u32 = 6;
/// Fewer blocks fail no gate.
const BLOCKS_LEAST: u32 = 3;
/// Settings of sysbench with which a block takes seconds.
const SETTINGS: [&str; 5] =
    ["rows=20000", "read_seconds=0.3", "write_seconds=0.3", "warmup_seconds=0.1", "settle_scale=0"];
/// Looks at who else runs, and the time between them.
const LOOKS: u32 = 10;
const LOOK: Duration = Duration::from_millis(50);
/// Each so many steps in turns is one whose count did not move.
const ONE_OTHER_IN: usize = 4;

/// `rqps check`.
pub(super) fn check(words: &CheckArgs) -> Result<u8> {
    let targets = builds::sides(&words.targets)?;
    let draft = draft(words, &targets)?;
    let all = steps(&draft)?;
    let budget = words.budget.as_secs_f64();
    let one = PlanDraft { steps: all[..1].to_vec(), ..draft.clone() };
    let least = seconds(&of_blocks(one, BLOCKS_LEAST)?)? + end_seconds(budget);
    if least > budget {
        bail!(
            "check within {budget} s: {BLOCKS_LEAST} blocks of one step take about {least:.0} s\n\
             hint: name a longer --budget"
        );
    }
    let labels: Vec<_> = draft.targets.iter().map(|target| target.label.clone()).collect();
    let out = folders::results(words.folders.out.as_deref(), &labels);
    let receipt = receipt(&out)?;
    let Some(built) = builds::fetched(&draft.targets, &words.folders.cache)? else {
        return Ok(exit::INTERRUPTED);
    };
    let began = Instant::now();
    if let Some(why) = same(&draft.targets, &built)? {
        return end_without_change(words, &draft, why);
    }
    // A folder that holds anything else is no place for results. Names with a dot do not count.
    let counts = out.join(format!(".{}", results::COUNTS));
    let mut order = all.clone();
    if let Some(plan) = counting(&draft, &all, COUNTS_SHARE * budget)? {
        info!("rqps: counting {} of {} steps", plan.steps.len(), all.len());
        if run(&plan, words, &counts, (1.0 - COUNTS_SHARE) * budget)? {
            return Ok(exit::INTERRUPTED);
        }
        order = in_order(&counts, &all, draft.seed)?;
    }
    let left = budget - began.elapsed().as_secs_f64() - end_seconds(budget);
    let plan =
        fitting(&order, left, |steps| of_blocks(PlanDraft { steps, ..draft.clone() }, BLOCKS))?;
    let steps = plan.map_or_else(|| order[..1].to_vec(), |plan| plan.draft().steps);
    info!("rqps: measuring {} of {} steps in turns", steps.len(), all.len());
    let auto = Auto { budget_seconds: Some(left.max(1.0)), ..Auto::default() };
    let draft = PlanDraft { steps, blocks: Blocks::Auto(auto), ..draft };
    if run(&Plan::build(draft)?, words, &out, end_seconds(budget))? {
        return Ok(exit::INTERRUPTED);
    }
    if counts.is_dir() {
        let place = out.join(results::COUNTS);
        safe_path::rename(&counts, &place).with_context(|| format!("write {}", place.display()))?;
    }
    end(words, (&out, receipt), began)
}

/// The place of the receipt, which must be free: nobody has named that file.
fn receipt(out: &Path) -> Result<PathBuf> {
    let Some(name) = out.file_name() else {
        bail!("check into {}: name a folder with --out", out.display());
    };
    let file = out.with_file_name(format!("{}.tar.gz", name.to_string_lossy()));
    if file.symlink_metadata().is_ok() {
        bail!(
            "write the receipt {}: such a file is there already; name another folder with --out",
            file.display()
        );
    }
    Ok(file)
}

/// What is measured, but for its steps and blocks.
fn draft(said: &CheckArgs, targets: &[String]) -> Result<PlanDraft> {
    let sides = builds::pinned(words::targets(targets)?);
    if let Some(server) = sides.iter().find(|it| matches!(it.source, BuildSource::Dsn(_))) {
        bail!("check {}: it is a running server; `rqps compare` measures it", server.label);
    }
    let [_, changed] = sides.as_slice() else {
        bail!("check {} targets: name two, the one before the change first", sides.len());
    };
    let usual = match changed.dbms {
        Dbms::Rocksdb | Dbms::Speedb => "kv",
        _ => "sysbench",
    };
    let bench = said.bench.as_deref().unwrap_or(usual);
    let spec = own_workload::benchmark(&[bench.to_owned()])?.spec;
    let short = if bench == "sysbench" { SETTINGS.as_slice() } else { spec.counting.settings };
    let settings = short.iter().map(|setting| (*setting).to_owned());
    let shape = WorkloadArgs {
        bench: vec![bench.to_owned()],
        preset: "quick".to_owned(),
        steps: said.steps.clone(),
        settings: settings.chain(said.settings.iter().cloned()).collect(),
        canaries: Switch::Off,
        seed: said.seed,
        ..WorkloadArgs::default()
    };
    let mut draft = measure::drafted(targets, &shape)?.0;
    let mut rules = gate::said(&said.rules).unwrap_or_default();
    if rules.tau.is_none() {
        rules.tau = campaigns::tau(&draft.targets, &said.folders, said.rules.delta)?;
    }
    rules.instructions = said.instructions;
    draft.gate = Some(rules);
    Ok(draft)
}

/// The steps in the order in which they are chosen: those that stand for others first.
fn steps(draft: &PlanDraft) -> Result<Vec<String>> {
    let phases = draft.phases(&draft.targets[0])?;
    let mut names: Vec<String> = phases.into_iter().filter_map(reported).collect();
    names.sort_by_key(|name| SHORT_STEPS.iter().position(|short| short == name).unwrap_or(99));
    if names.is_empty() {
        bail!("check: no step is measured; `rqps plan` lists the steps");
    }
    Ok(names)
}

/// The name of a step that is measured and no load.
fn reported(phase: Phase) -> Option<String> {
    match phase {
        Phase::Measure(step) if step.reported && step.group != Group::Load => Some(step.name),
        _ => None,
    }
}

/// The plan of the counts of as many steps as there is time for; `None` without valgrind or time.
fn counting(draft: &PlanDraft, all: &[String], seconds: f64) -> Result<Option<Plan>> {
    // Estimates are on the side of servers: a library needs half of them.
    let is_library = draft.targets.iter().all(|target| target.dbms.is_embedded());
    let room = if is_library { 2.0 * seconds } else { seconds } / slowdown();
    let plan = fitting(all, room, |steps| {
        let plan = PlanDraft { steps, count: Some(COUNTED), ..draft.clone() };
        Plan::build(plan)?.counting()?.context("count: no target is a build")
    })?;
    let Some(plan) = plan else {
        info!("rqps: {seconds:.0} s are too short to count instructions; rates alone decide");
        return Ok(None);
    };
    match valgrind_for(&plan) {
        Ok(_) => Ok(Some(plan)),
        Err(error) => {
            info!("rqps: nothing is counted: {}", error_text(&error));
            Ok(None)
        }
    }
}

/// How many times as long as on a quiet host two processes take that need a CPU each: by how many
/// others want to run now.
fn slowdown() -> f64 {
    let running = || -> Option<f64> {
        // `0.20 0.18 0.12 3/1024 4711`: the fourth is how many run, of all.
        let text = fs::read_to_string("/proc/loadavg").ok()?;
        text.split(' ').nth(3)?.split('/').next()?.parse().ok()
    };
    let look = |_| {
        thread::sleep(LOOK);
        // This process is one.
        running().map_or(0.0, |running| (running - 1.0).max(0.0))
    };
    let others = (0..LOOKS).map(look).sum::<f64>() / f64::from(LOOKS);
    let cpus = thread::available_parallelism().map_or(1.0, |cpus| cpus.get() as f64);
    ((others + 2.0) / cpus).max(1.0)
}

/// The plan of as many steps, from the first on, as there is time for.
fn fitting(
    order: &[String],
    left: f64,
    make: impl Fn(Vec<String>) -> Result<Plan>,
) -> Result<Option<Plan>> {
    for count in (1..=order.len()).rev() {
        let plan = make(order[..count].to_vec())?;
        if seconds(&plan)? <= left {
            return Ok(Some(plan));
        }
    }
    Ok(None)
}

/// The plan of a fixed number of blocks.
fn of_blocks(draft: PlanDraft, blocks: u32) -> Result<Plan> {
    Ok(Plan::build(PlanDraft { blocks: Blocks::Fixed(blocks), ..draft })?)
}

/// Seconds that a plan probably takes.
fn seconds(plan: &Plan) -> Result<f64> {
    Ok(cost::estimate(plan, &plan.phases(&plan.targets[0])?).total_seconds)
}

/// Seconds of a budget for the report and the receipt.
fn end_seconds(budget: f64) -> f64 {
    END_LEAST.max(END_SHARE * budget)
}

/// Carries out a plan. True if the user stopped it.
fn run(plan: &Plan, words: &CheckArgs, out: &Path, later: f64) -> Result<bool> {
    let consent = questions::own(plan, &words.folders)?;
    let folders = Folders { out: Some(out.to_owned()), ..words.folders.clone() };
    let place = (&folders, Hosts::default(), &consent);
    let (stored, _) = results::read_calibrations(&folders::calibrations());
    let guest = GuestOptions::default();
    let (summary, _) = measure::measure_on(plan.clone(), place, &guest, stored, later)?;
    for fault in &summary.faults {
        error!("rqps: failed: {fault}");
    }
    if summary.interrupted {
        info!("rqps: stopped; what was measured is in {}", out.display());
    }
    Ok(summary.interrupted)
}

/// The steps in the order in which turns choose them: those whose count moved, the largest change
/// first, and between them some of the others.
fn in_order(counts: &Path, all: &[String], seed: u64) -> Result<Vec<String>> {
    let counted = Compared::read(&[counts.to_owned()], None, Default::default())?.comparison;
    let mut moved: Vec<Count> = counted.steps.iter().filter_map(Count::of).collect();
    moved.retain(Count::has_moved);
    moved.sort_by(|a, b| b.size().total_cmp(&a.size()));
    let moved: Vec<String> = moved.into_iter().map(|count| count.step.to_owned()).collect();
    let (mut others, mut rng) = (Vec::new(), Rng::stream(seed, "others", 0));
    let mut rest: Vec<&String> = all.iter().filter(|step| !moved.contains(step)).collect();
    while !rest.is_empty() {
        others.push(rest.swap_remove(rng.below(rest.len() as u64) as usize).clone());
    }
    Ok(mixed(moved, others))
}

/// One of the others after each few that moved.
fn mixed(moved: Vec<String>, others: Vec<String>) -> Vec<String> {
    let (mut moved, mut others) = (moved.into_iter(), others.into_iter());
    let mut order = Vec::new();
    loop {
        let is_other = order.len() % ONE_OTHER_IN == ONE_OTHER_IN - 1;
        let (first, second): (&mut dyn Iterator<Item = String>, &mut dyn Iterator<Item = String>) =
            if is_other { (&mut others, &mut moved) } else { (&mut moved, &mut others) };
        match first.next().or_else(|| second.next()) {
            Some(step) => order.push(step),
            None => return order,
        }
    }
}

/// Why no measurement can tell both sides apart: with the same settings, they are the same files or
/// the same code.
fn same(targets: &[Target], built: &[Build]) -> Result<Option<&'static str>> {
    if targets.iter().any(|target| target.config != targets[0].config) {
        return Ok(None);
    }
    let [one, other] = [0, 1].map(|side| built.get(side)?.manifest.code.as_ref());
    if one.is_some() && one == other {
        return Ok(Some("differ in comments, or in files that no build depends on"));
    }
    let [Some(one), Some(other)] = [0, 1].map(|side| built.get(side)?.root.as_ref()) else {
        return Ok(None);
    };
    let hash = |root: &PathBuf| {
        let hashed = Fingerprint::of(root).with_context(|| format!("read {}", root.display()))?;
        anyhow::Ok(hashed.sha256)
    };
    Ok((hash(one)? == hash(other)?).then_some("have the same files"))
}

/// What `--json` prints (docs/check.md).
#[derive(Default, Serialize)]
struct Checked<'a> {
    schema: u32,
    exit: u8,
    verdict: &'a str,
    baseline: &'a str,
    target: &'a str,
    budget_seconds: f64,
    seconds: f64,
    counts: Vec<Count<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<&'a Assessment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<&'a Path>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt: Option<Receipt>,
}

/// The counted instructions of a step.
#[derive(Serialize)]
struct Count<'a> {
    step: &'a str,
    change: TotalChange,
    ratio: f64,
    interval: Option<rqps_stats::Interval>,
    /// The function that changed most in the direction of the total.
    function: Option<&'a str>,
    /// Its instructions per operation, those of the baseline taken off.
    instructions: Option<f64>,
}

impl Count<'_> {
    fn has_moved(&self) -> bool {
        matches!(self.change, TotalChange::More | TotalChange::Fewer)
    }

    /// The size of its change.
    fn size(&self) -> f64 {
        self.ratio.ln().abs()
    }

    fn of(step: &StepComparison) -> Option<Count<'_>> {
        let target = step.targets.get(1)?;
        let counted = target.counted.as_ref()?;
        let relative = target.relative(Metric::InstructionsPerOp)?;
        let first = counted.functions.as_ref().and_then(FunctionComparison::leading);
        Some(Count {
            step: &step.name,
            change: counted.change,
            ratio: relative.ratio,
            interval: relative.interval,
            function: first.map(|first| &*first.name),
            instructions: first.map(|first| first.difference()),
        })
    }
}

/// The bundle of what was measured.
#[derive(Serialize)]
struct Receipt {
    file: PathBuf,
    sha256: String,
}

/// Both sides are one build.
fn end_without_change(words: &CheckArgs, draft: &PlanDraft, why: &str) -> Result<u8> {
    let labels = [0, 1].map(|side| draft.targets[side].label.as_str());
    if words.json {
        return print_json(&Checked {
            schema: CHECK_SCHEMA,
            exit: exit::FINE,
            verdict: "same build",
            baseline: labels[0],
            target: labels[1],
            budget_seconds: words.budget.as_secs_f64(),
            ..Checked::default()
        });
    }
    out!("check: same build (exit 0): {} and {} {why}", labels[0], labels[1]);
    Ok(exit::FINE)
}

/// Judges, and writes the report and the receipt.
fn end(words: &CheckArgs, (out, file): (&Path, PathBuf), began: Instant) -> Result<u8> {
    let found = report::written(out, &words.rules)?;
    let comparison = &found.comparison;
    let (assessment, exit) = gate::assessed(comparison, out)?;
    bundle::pack_folder(out, &file)?;
    let reading = || format!("read {}", file.display());
    let sha256 = Fingerprint::of(&file).with_context(reading)?.sha256;
    let counted = comparison.counts.as_ref();
    let counts: Vec<Count> =
        counted.iter().flat_map(|all| &all.steps).filter_map(Count::of).collect();
    let labels = [0, 1].map(|side| comparison.targets.get(side).map_or("", |it| &it.label));
    let checked = Checked {
        schema: CHECK_SCHEMA,
        exit,
        verdict: verdict(assessment.ending),
        baseline: labels[0],
        target: labels[1],
        budget_seconds: words.budget.as_secs_f64(),
        seconds: began.elapsed().as_secs_f64(),
        counts,
        gate: Some(&assessment),
        results: Some(out),
        receipt: Some(Receipt { file, sha256 }),
    };
    if words.json {
        return print_json(&checked);
    }
    out!("{}\n", checked.line());
    report::answer(&found, out)?;
    if let Some(Receipt { file, sha256 }) = &checked.receipt {
        out!("Receipt: {} sha256 {sha256}", escape::line(&file.to_string_lossy()));
    }
    Ok(exit)
}

impl Checked<'_> {
    /// The verdict in one line.
    fn line(&self) -> String {
        let is = |wanted| self.counts.iter().filter(|it| it.change == wanted).count();
        let (more, fewer) = (is(TotalChange::More), is(TotalChange::Fewer));
        let counts = match self.counts.len() {
            0 => "nothing counted".to_owned(),
            all => format!("of {all} counts {more} MORE, {fewer} FEWER"),
        };
        let mut text = format!(
            "check: {} (exit {}): {counts}; {:.0} s of {:.0} s",
            self.verdict, self.exit, self.seconds, self.budget_seconds
        );
        let moved = self.counts.iter().filter(|it| it.has_moved());
        if let Some(most) = moved.max_by(|a, b| a.size().total_cmp(&b.size())) {
            let function = most.function.zip(most.instructions);
            let function = function.map(|(name, more)| format!(", {name} {more:+.0}"));
            let function = function.unwrap_or_default();
            text += &format!("\ncounts: {} x{:.3}{function} instructions", most.step, most.ratio);
        }
        // The table below judges each step by itself.
        if let Some(first) = self.gate.map(regressions).and_then(|all| all.into_iter().next()) {
            text += &format!("\nfailed: {first}");
        }
        escape::terminal(&text).into_owned()
    }
}

fn print_json(checked: &Checked) -> Result<u8> {
    let text = serde_json::to_string_pretty(checked).context("print the verdict")?;
    terminal::escaped(format!("{}\n", escape::json(&text)).as_bytes())?;
    Ok(checked.exit)
}

fn verdict(ending: GateOutcome) -> &'static str {
    match ending {
        GateOutcome::Boring => "fine",
        GateOutcome::NoRegression => "no regression",
        GateOutcome::Undecided => "undecided, no regression shown",
        GateOutcome::Regression => "REGRESSION",
        GateOutcome::NoVerdict => "NO VERDICT",
        GateOutcome::RunFailed => "A RUN FAILED",
    }
}

#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    /// The sides, that before the change first: commits (HEAD~1 HEAD, main..) in the git repository
    /// of a DBMS, or targets as for `compare` [default: HEAD and the work tree; HEAD~1 and HEAD if
    /// it has no changes]
    #[arg(value_name = "TARGET", add = ArgValueCompleter::new(help::targets))]
    pub targets: Vec<String>,
    /// Time for everything after the builds
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    pub budget: Duration,
    /// Print the verdict as JSON for programs (docs/check.md)
    #[arg(long)]
    pub json: bool,
    /// Also fail if a step executes more instructions per operation by this share, such as 1%
    /// [default: instructions fail nothing]
    #[arg(long, value_name = "SHARE", value_parser = share, allow_hyphen_values = true)]
    pub instructions: Option<f64>,
    /// Benchmark, as for `compare` [default: sysbench; kv for RocksDB and Speedb]
    #[arg(long, value_name = "NAME", add = ArgValueCompleter::new(help::benchmark))]
    pub bench: Option<String>,
    /// Choose among steps whose name matches; !GLOB excludes; repeatable
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    #[arg(add = ArgValueCompleter::new(help::steps))]
    pub steps: Vec<String>,
    /// Change one setting of the workload, such as rows=1M; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", add = ArgValueCompleter::new(help::settings))]
    pub settings: Vec<String>,
    /// Seed of the data, the statements and the sample of steps
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<u64>)]
    pub seed: u64,
    #[command(flatten)]
    pub folders: Folders,
    #[command(flatten)]
    pub rules: RuleOptions,
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::build::{Manifest, Version};

    #[test]
    fn one_build_with_two_configurations_is_a_change() {
        let check = |words: [&str; 2], files: [&str; 2], expected| {
            let place = Path::new(env!("CARGO_MANIFEST_DIR"));
            let build = |file| {
                let (said, origin) = (String::new(), String::new());
                let manifest = Manifest::new(Dbms::Sqlite, Version::new("3.46"), said, origin);
                Build { root: Some(place.join(file)), manifest, cache: None }
            };
            let targets = words::targets(&words.map(str::to_owned)).unwrap();
            let found = same(&targets, &files.map(build)).unwrap();
            assert_eq!(found.is_some(), expected, "{words:?}");
        };
        let toml = ["Cargo.toml"; 2];
        check(["sqlite", "b=sqlite"], toml, true);
        check(["sqlite", "b=sqlite:small-cache"], toml, false);
        check(["sqlite", "b=sqlite"], ["Cargo.toml", "src/main.rs"], false);
    }

    #[test]
    fn a_receipt_replaces_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("sqlite");
        let file = folder.path().join("sqlite.tar.gz");
        assert_eq!(receipt(&out).unwrap(), file);
        std::os::unix::fs::symlink("/nowhere", &file).unwrap();
        assert!(receipt(&out).unwrap_err().to_string().contains("is there already"));
        assert!(receipt(Path::new("..")).is_err());
    }

    #[test]
    fn one_step_of_four_is_one_that_did_not_move() {
        let check = |moved: &str, others: &str, expected: &str| {
            let list = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
            assert_eq!(mixed(list(moved), list(others)).concat(), expected);
        };
        check("abcdefg", "uvw", "abcudefvgw");
        check("", "uvw", "uvw");
        check("ab", "", "ab");
    }
}
