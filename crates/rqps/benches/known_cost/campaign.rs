//! One comparison of a build with builds that burn a known share of its work in one function, and
//! what rqps found.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rqps_analysis::VerdictOptions;
use rqps_analysis::comparison::{Comparison, TargetResult};
use rqps_analysis::counted::TotalChange;
use rqps_lab::benchmarks;
use rqps_model::verdict::Rules;
use rqps_results as results;

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
