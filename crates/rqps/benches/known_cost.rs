//! Tests whether rqps finds a function that costs a known share of an operation, and lists no
//! function of equal builds: campaigns of `rqps count` and `rqps compare --profile`.
//!
//!     cargo bench --bench known_cost -- --by count,sample --burn 0.5%,2% --campaigns 10
//!
//! docs/explaining.md explains the table and has results.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program of its own")]

#[path = "slowdown/burner.rs"]
mod burner;
mod folders;
#[path = "slowdown/share.rs"]
mod share;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::folders::Folders;
use crate::share::share;
use rqps_analysis::VerdictOptions;
use rqps_analysis::comparison::{Comparison, TargetResult};
use rqps_analysis::counted::TotalChange;
use rqps_builds as obtain;
use rqps_builds::Said;
use rqps_lab::{benchmarks, lab, plan};
use rqps_model::verdict::Rules;
use rqps_results as results;

/// A build against builds that burn a share of its work in one function, many times.
#[derive(Parser)]
struct Options {
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
    /// The build: a server by version or path.
    #[arg(long, default_value = "postgres@17.2.0")]
    target: String,
    #[arg(long, value_delimiter = ',', default_value = "count,sample")]
    by: Vec<Source>,
    /// Share of an operation's instructions or CPU time that each further build burns.
    #[arg(long, value_delimiter = ',', default_value = "0.5%,2%", value_parser = share)]
    burn: Vec<f64>,
    /// Comparisons of all builds, each with another seed.
    #[arg(long, default_value_t = 10)]
    campaigns: u64,
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value = "point-query")]
    step: String,
    #[arg(long, default_value_t = 20_000)]
    rows: u64,
    /// Counts of each build in a comparison.
    #[arg(long, default_value_t = 3)]
    repeats: u32,
    /// Sampled seconds per build and block.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Keep builds and results in this folder; comparisons that are there are read, not repeated.
    #[arg(long)]
    keep: Option<PathBuf>,
    /// The program rqps, by default that of this build.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_rqps"))]
    rqps: PathBuf,
    #[command(flatten)]
    folders: Folders,
}

fn main() -> ExitCode {
    match compare(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("known_cost: failed to {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(options: &Options) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("known-cost-")
        .permissions(PermissionsExt::from_mode(0o755))
        .tempdir_in(&options.folders.work)
        .with_context(|| format!("make a folder in {}", options.folders.work.display()))?;
    let place = options.keep.as_deref().unwrap_or(folder.path());
    let measuring = Measuring {
        rqps: options.rqps.clone(),
        step: options.step.clone(),
        rows: options.rows,
        repeats: options.repeats,
        seconds: options.seconds,
        work: options.folders.work.clone(),
    };
    println!(
        "| by | burns | campaigns | difference stated | function listed | first | its share \
         | others listed |"
    );
    println!("{}|", "|---".repeat(8));
    for source in &options.by {
        let builds = builds(options, *source, &measuring, place)?;
        let mut rows: Vec<Vec<Finding>> = builds[1..].iter().map(|_| Vec::new()).collect();
        for seed in options.seed..options.seed + options.campaigns {
            let results = place.join(format!("{}-{seed}", source.name()));
            let words: Vec<String> = builds.iter().map(|build| build.word.clone()).collect();
            let campaign = measuring.carry_out(*source, &words, seed, &results)?;
            tell(*source, seed, &campaign);
            for (row, finding) in rows.iter_mut().zip(campaign.findings) {
                row.push(finding);
            }
        }
        for (build, row) in builds[1..].iter().zip(&rows) {
            print_row(*source, build.burns, row);
        }
    }
    Ok(())
}

/// A build of the comparison.
struct Burning {
    /// `LABEL=DBMS=PATH`.
    word: String,
    burns: f64,
}

/// The build that burns nothing, twice, then those that burn.
fn builds(
    options: &Options,
    source: Source,
    measuring: &Measuring,
    place: &Path,
) -> Result<Vec<Burning>> {
    let cache = lab::open_cache(&options.folders.cache)?;
    let target = plan::words::targets(std::slice::from_ref(&options.target))?.remove(0);
    let mut say = |said: Said<'_>| eprintln!("{}", said.text());
    let build = obtain::obtain(target.dbms, &target.source, &cache, &mut say)
        .with_context(|| format!("obtain {}", target.label))?;
    let place = place.join(source.name());
    fs::create_dir_all(&place).with_context(|| format!("make {}", place.display()))?;
    let make = |label: &str, definition: String| {
        let definitions = ["-DNAMED".to_owned(), definition];
        let place = place.join(label);
        if place.exists() {
            fs::remove_dir_all(&place).with_context(|| format!("clear {}", place.display()))?;
        }
        burner::make(&build, target.dbms, &definitions, &place)
    };
    let instructions = match source {
        Source::Sample => 0.0,
        Source::Count => {
            let trial = make("trial", "-DLOOPS=0".to_owned())?;
            measuring.instructions(&trial, &place.join("trial-results"))?
        }
    };
    // Paths of one length: what it costs to compare strings depends on where they lie.
    let labels = [PLAIN.to_owned(), "again".to_owned()].into_iter();
    let labels = labels.chain((1..=options.burn.len()).map(|number| format!("burn{number}")));
    let mut all = Vec::new();
    for (label, burns) in labels.zip([0.0, 0.0].iter().chain(&options.burn)) {
        let definition = match source {
            // A loop is two instructions.
            Source::Count => format!("-DLOOPS={:.0}", burns * instructions / 2.0),
            Source::Sample => format!("-DSHARE={burns:?}"),
        };
        let word = format!("{label}={}", make(&label, definition)?);
        all.push(Burning { word, burns: *burns });
    }
    Ok(all)
}

fn tell(source: Source, seed: u64, campaign: &Campaign) {
    let overhead = campaign.overhead.map_or_else(String::new, |ratio| {
        format!("; rates with the profiler {ratio:.3} times those without")
    });
    eprintln!("{} {seed}{overhead}", source.name());
    for one in &campaign.findings {
        let burned = one.burned.map_or_else(
            || "not listed".to_owned(),
            |share| format!("listed with {:.2} %", 100.0 * share),
        );
        let differs = if one.differs { "differs" } else { "no difference" };
        eprintln!("    {}: {differs}, burning function {burned}, {} others", one.label, one.others);
    }
}

fn print_row(source: Source, burns: f64, found: &[Finding]) {
    let count = |holds: fn(&Finding) -> bool| found.iter().filter(|one| holds(one)).count();
    let shares: Vec<f64> = found.iter().filter_map(|one| one.burned).collect();
    let lowest = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let range = if shares.is_empty() {
        "-".to_owned()
    } else {
        format!("{:.2} to {:.2} %", 100.0 * lowest, 100.0 * highest)
    };
    println!(
        "| {} | {:.1} % | {} | {} | {} | {} | {range} | {} |",
        source.name(),
        100.0 * burns,
        found.len(),
        count(|one| one.differs),
        count(|one| one.burned.is_some()),
        count(|one| one.is_first),
        found.iter().map(|one| one.others).sum::<usize>(),
    );
}

// One comparison of a build with builds that burn a known share of its work in one function, and
// what rqps found.

/// The label of the build that burns nothing.
pub(crate) const PLAIN: &str = "plain";

/// The function of burn.c.
const FUNCTION: &str = "rqps_burn";

/// How rqps looks for the function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Source {
    /// `rqps count`.
    Count,
    /// `rqps compare --profile`.
    Sample,
}

impl Source {
    /// As its option has it, and its folders.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Source::Count => "count",
            Source::Sample => "sample",
        }
    }
}

/// The settings of each comparison.
pub(crate) struct Measuring {
    pub(crate) rqps: PathBuf,
    pub(crate) step: String,
    pub(crate) rows: u64,
    /// Counts of each build.
    pub(crate) repeats: u32,
    /// Sampled seconds per build and block.
    pub(crate) seconds: f64,
    pub(crate) work: PathBuf,
}

/// What rqps found in one build.
pub(crate) struct Finding {
    pub(crate) label: String,
    /// True if the report states a difference: MORE or FEWER instructions, or a listed function.
    pub(crate) differs: bool,
    /// The share of the baseline's work that the burning function has, if the report lists it.
    pub(crate) burned: Option<f64>,
    /// True if the burning function is the first of the list.
    pub(crate) is_first: bool,
    /// Other functions of the list.
    pub(crate) others: usize,
}

/// A comparison that was carried out.
pub(crate) struct Campaign {
    pub(crate) findings: Vec<Finding>,
    /// Rates of blocks with the profiler relative to those without.
    pub(crate) overhead: Option<f64>,
}

impl Measuring {
    /// Compares these builds, each `LABEL=DBMS=PATH`, the baseline first. Goes on with the results
    /// that are in `folder`.
    pub(crate) fn carry_out(
        &self,
        source: Source,
        builds: &[String],
        seed: u64,
        folder: &Path,
    ) -> Result<Campaign> {
        let mut words: Vec<String> = match source {
            Source::Count => vec!["count".to_owned(), format!("--repeats={}", self.repeats)],
            Source::Sample => {
                ["compare", "--profile", "--blocks=1", "--canaries=off"].map(str::to_owned).to_vec()
            }
        };
        if source == Source::Sample {
            // Rows that fit into memory are warm after a second.
            words.extend(["--steps=!*.warm".to_owned(), "--set=warmup_seconds=1".to_owned()]);
            words.push(format!("--set=read_seconds={}", self.seconds));
            words.push(format!("--set=write_seconds={}", self.seconds));
        }
        words.push(format!("--steps={}", self.step));
        words.push(format!("--set=rows={}", self.rows));
        words.push(format!("--seed={seed}"));
        words.extend_from_slice(builds);
        let output = Command::new(&self.rqps)
            .args(words)
            .arg("--out")
            .arg(folder)
            .arg("--work")
            .arg(&self.work)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("run {}", self.rqps.display()))?;
        if !output.status.success() {
            bail!("run rqps: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let comparison = read(folder)?;
        let compared = comparison.profiles.as_deref().filter(|_| source == Source::Sample);
        let steps = &compared.unwrap_or(&comparison).steps;
        let step = steps.iter().find(|step| step.name == self.step);
        let targets = step.with_context(|| format!("find {} in the results", self.step))?;
        let found: Option<Vec<Finding>> = targets.targets[1..].iter().map(finding).collect();
        let findings = found.with_context(|| format!("find functions in {}", folder.display()))?;
        let overhead = comparison.overhead.map(|overhead| overhead.ratio);
        Ok(Campaign { findings, overhead })
    }

    /// Counts one build once and returns its instructions per operation.
    pub(crate) fn instructions(&self, build: &str, folder: &Path) -> Result<f64> {
        let once = Measuring {
            repeats: 1,
            rqps: self.rqps.clone(),
            step: self.step.clone(),
            work: self.work.clone(),
            ..*self
        };
        let builds = [format!("{PLAIN}={build}"), format!("again={build}")];
        once.carry_out(Source::Count, &builds, 1, folder)?;
        let comparison = read(folder)?;
        let targets = comparison.steps.iter().flat_map(|step| &step.targets);
        let mut changes = targets.filter_map(|target| target.counted.as_ref());
        let functions = changes.find_map(|change| change.functions.as_ref());
        Ok(functions.context("count the build's instructions")?.baseline_total)
    }
}

fn read(folder: &Path) -> Result<Comparison> {
    let dataset = results::read(&[folder.to_owned()]).context("read the results")?;
    let options = VerdictOptions { baseline: Some(PLAIN.to_owned()), rules: Rules::default() };
    benchmarks::compare(&dataset, &options).context("compare the runs")
}

/// What a report states of a target; `None` if it has no functions.
fn finding(target: &TargetResult) -> Option<Finding> {
    let (differs, total, listed): (bool, f64, Vec<(&str, f64)>) =
        match (&target.counted, &target.sampled) {
            (Some(counted), _) => {
                let functions = counted.functions.as_ref()?;
                let differs = matches!(counted.change, TotalChange::More | TotalChange::Fewer);
                let listed = functions.changes.iter().map(|it| (&*it.name, it.difference()));
                (differs, functions.baseline_total, listed.collect())
            }
            (None, Some(sampled)) => {
                let listed = sampled.functions.iter().map(|it| (&*it.name, it.difference()));
                (sampled.differing > 0, sampled.baseline_total, listed.collect())
            }
            (None, None) => return None,
        };
    let burned = listed.iter().find(|(name, _)| *name == FUNCTION).map(|it| it.1 / total);
    Some(Finding {
        label: target.label.clone(),
        differs,
        burned,
        is_first: listed.first().is_some_and(|(name, _)| *name == FUNCTION),
        others: listed.len() - usize::from(burned.is_some()),
    })
}
