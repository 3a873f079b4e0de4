//! One comparison of a build with its slowed twin, and what it found.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::slowdown::burner;
use crate::slowdown::columns::{HEAD, METRICS};
use rqps_analysis::VerdictOptions;
use rqps_analysis::comparison::StepComparison;
use rqps_host::host;
use rqps_lab::benchmarks;
use rqps_model::build::{Build, Dbms};
use rqps_model::metric::Metric;
use rqps_model::run::{Dataset, Status, StepRecord};
use rqps_model::verdict::{Rules, Verdict};
use rqps_results as results;
use rqps_stats::Interval;
use rqps_stats::summary::mean;

/// Labels of the targets.
const PLAIN: &str = "plain";
const SLOWED: &str = "slowed";

/// The settings of each comparison.
pub(crate) struct Measuring {
    pub(crate) steps: String,
    pub(crate) blocks: u32,
    /// Measured seconds per target, step and block.
    pub(crate) seconds: f64,
    pub(crate) warmup: f64,
    pub(crate) rows: String,
    pub(crate) loads: u32,
    pub(crate) rules: Rules,
    pub(crate) work: PathBuf,
    /// More words for `rqps compare`.
    pub(crate) more: Vec<String>,
}

/// A comparison that was carried out.
pub(crate) struct Campaign {
    pub(crate) findings: Vec<Finding>,
    /// From start to end, loading included.
    pub(crate) seconds: f64,
}

/// Its result for one metric of one step.
pub(crate) struct Finding {
    pub(crate) step: String,
    pub(crate) metric: Metric,
    pub(crate) verdict: Verdict,
    /// The interval of the ratio that the verdict uses.
    pub(crate) interval: Option<Interval>,
    /// True if the difference was shown to exceed τ, whatever its size.
    pub(crate) beyond_tau: bool,
    /// The ln ratio of each block.
    pub(crate) differences: Vec<f64>,
    /// The true ln ratio, by what was burned.
    pub(crate) truth: Option<f64>,
    /// Measured seconds of both targets, all blocks.
    pub(crate) measured: f64,
}

impl Finding {
    /// True if the interval contains the true ratio; `None` where one of them is missing.
    pub(crate) fn holds_truth(&self) -> Option<bool> {
        let truth = self.truth?;
        self.interval.map(|_| self.holds(truth))
    }

    /// True if the interval contains this ln ratio.
    pub(crate) fn holds(&self, ln_ratio: f64) -> bool {
        let within = |interval: Interval| (interval.low..=interval.high).contains(&ln_ratio.exp());
        self.interval.is_some_and(within)
    }
}

impl Campaign {
    /// Measures, reads the results in `folder` and removes them.
    pub(crate) fn carry_out(
        twins: &Twins,
        measuring: &Measuring,
        seed: u64,
        folder: &Path,
    ) -> Result<Campaign> {
        let started = Instant::now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rqps"));
        command.arg("compare");
        command.arg(format!("{PLAIN}={}", twins.plain));
        command.arg(format!("{SLOWED}={}", twins.slowed));
        command.args(["--interleave", "turns", "--canaries", "off"]);
        command.arg("--blocks").arg(measuring.blocks.to_string());
        command.arg("--loads").arg(measuring.loads.to_string());
        command.arg("--seed").arg(seed.to_string());
        command.arg("--steps").arg(&measuring.steps);
        for (key, value) in [
            ("rows", measuring.rows.clone()),
            ("read_seconds", measuring.seconds.to_string()),
            ("write_seconds", measuring.seconds.to_string()),
            ("warmup_seconds", measuring.warmup.to_string()),
        ] {
            command.arg("--set").arg(format!("{key}={value}"));
        }
        // An A/A test that somebody once made on this host would widen the intervals.
        command.env("RQPS_STATE", folder.with_extension("state"));
        command.arg("--out").arg(folder).arg("--work").arg(&measuring.work).args(&measuring.more);
        let output = command.stdin(Stdio::null()).output().context("run rqps compare")?;
        if !output.status.success() {
            bail!("run rqps compare: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        let seconds = started.elapsed().as_secs_f64();
        let findings = read(folder, &measuring.rules, &twins.tally)?;
        fs::remove_dir_all(folder).with_context(|| format!("remove {}", folder.display()))?;
        Ok(Campaign { findings, seconds })
    }
}

fn read(folder: &Path, rules: &Rules, tally: &Tally) -> Result<Vec<Finding>> {
    let dataset = results::read(&[folder.to_owned()]).context("read the results")?;
    let options = VerdictOptions { baseline: Some(PLAIN.to_owned()), rules: *rules };
    let comparison = benchmarks::compare(&dataset, &options).context("compare the runs")?;
    let mut findings = Vec::new();
    for step in &comparison.steps {
        for metric in METRICS {
            findings.extend(finding(&dataset, step, metric, rules, tally)?);
        }
    }
    Ok(findings)
}

/// The result for a metric; `None` if the step has no such metric.
fn finding(
    dataset: &Dataset,
    step: &StepComparison,
    metric: Metric,
    rules: &Rules,
    tally: &Tally,
) -> Result<Option<Finding>> {
    let Some(slowed) = step.targets.iter().find(|target| target.label == SLOWED) else {
        return Ok(None);
    };
    let Some(relative) = slowed.relative(metric) else { return Ok(None) };
    let Some(judgement) = &relative.judgement else { return Ok(None) };
    let mut truths = Vec::new();
    let mut measured = 0.0;
    for run in &dataset.runs {
        for record in run.steps.iter().filter(|record| record.name == step.name) {
            measured += record.outcome.seconds;
            if run.record.key.label == SLOWED && record.status == Status::Complete {
                truths.push(truth(record, metric, tally)?);
            }
        }
    }
    let known: Vec<f64> = truths.iter().copied().flatten().collect();
    let all_known = !known.is_empty() && known.len() == truths.len();
    let test = judgement.test.as_ref();
    Ok(Some(Finding {
        step: step.name.clone(),
        metric,
        verdict: judgement.verdict,
        interval: test.map(|test| test.interval),
        beyond_tau: test.is_some_and(|test| test.q_treat <= rules.q),
        differences: relative.differences.clone(),
        truth: all_known.then(|| mean(&known)),
        measured,
    }))
}

/// The true ln ratio in one block: without what it burned in its turns, the build would have needed
/// that much less of their time, or of its CPU.
fn truth(record: &StepRecord, metric: Metric, tally: &Tally) -> Result<Option<f64>> {
    let Some(turns) = &record.outcome.turns else { return Ok(None) };
    let started: jiff::Timestamp = record.started.parse().context("read the start of a step")?;
    // The record has whole seconds: the window began within the second after, and its inside is
    // what is in the window for certain.
    let from = started.as_millisecond() as u64 + 1000;
    let to = from - 1000 + (turns.wall_seconds * 1e3) as u64;
    let Some(per_second) = tally.burned_per_second(from, to)? else { return Ok(None) };
    let burned = per_second * turns.wall_seconds / 1e9;
    Ok(match metric {
        Metric::Rate => Some((1.0 - burned / record.outcome.seconds).ln()),
        _ => {
            let cpu = record.usage.server_cpu.map(|cpu| cpu.total_us() / 1e6);
            cpu.map(|cpu| -(1.0 - burned / cpu).ln())
        }
    })
}

// Two builds that differ in nothing but what one of them burns.

/// A build and the same build slowed, as words for the command line of rqps.
pub(crate) struct Twins {
    pub(crate) plain: String,
    pub(crate) slowed: String,
    /// The time that the slowed one burns.
    pub(super) tally: Tally,
}

impl Twins {
    /// Makes both in `folder`, which is to be readable by all.
    pub(crate) fn make(build: &Build, dbms: Dbms, share: f64, folder: &Path) -> Result<Twins> {
        let mut made = Vec::new();
        for (name, share) in [("plain", 0.0), ("slowed", share)] {
            let place = folder.join(name);
            fs::create_dir(&place).with_context(|| format!("make {}", place.display()))?;
            let tally = Tally::create(&place.join("tally"))?;
            let mut definitions = vec![format!("-DSHARE={share:?}")];
            definitions.extend(tally.definitions());
            made.push((burner::make(build, dbms, &definitions, &place)?, tally));
        }
        let (slowed, tally) = made.pop().context("make twins")?;
        let (plain, _) = made.pop().context("make twins")?;
        Ok(Twins { plain, slowed, tally })
    }
}

// The time that a slowed build burned, in each tenth of a second.

/// Length of a bucket of the tally: `BUCKET_NS` of burn.c.
const BUCKET_MS: u64 = 100;
/// More than a campaign lasts.
const LONGEST: Duration = Duration::from_secs(6 * 3600);

/// The file that a slowed build writes into.
pub(crate) struct Tally {
    path: PathBuf,
    /// Start of the first bucket, milliseconds since 1970.
    start: u64,
}

impl Tally {
    pub(crate) const BUCKETS: u64 = LONGEST.as_millis() as u64 / BUCKET_MS;

    /// An empty one, which servers of any user can write into.
    pub(crate) fn create(path: &Path) -> Result<Tally> {
        let doing = || format!("make {}", path.display());
        let file = File::create(path).with_context(doing)?;
        file.set_len(Tally::BUCKETS * 8).with_context(doing)?;
        file.set_permissions(PermissionsExt::from_mode(0o666)).with_context(doing)?;
        let start = SystemTime::now().duration_since(UNIX_EPOCH).context("read the clock")?;
        Ok(Tally { path: path.to_owned(), start: start.as_millis() as u64 })
    }

    /// Definitions that burn.c expects.
    pub(crate) fn definitions(&self) -> [String; 3] {
        [
            format!("-DTALLY=\"{}\"", self.path.display()),
            format!("-DTALLY_START={}ull", self.start),
            format!("-DTALLY_BUCKETS={}ull", Tally::BUCKETS),
        ]
    }

    /// Burned nanoseconds per second in the buckets that lie wholly in a time (milliseconds since
    /// 1970); `None` if it is too short to tell.
    pub(crate) fn burned_per_second(&self, from_ms: u64, to_ms: u64) -> Result<Option<f64>> {
        let first = from_ms.saturating_sub(self.start).div_ceil(BUCKET_MS);
        let end = to_ms.saturating_sub(self.start) / BUCKET_MS;
        if end < first + 5 || end > Tally::BUCKETS {
            return Ok(None);
        }
        let bytes =
            std::fs::read(&self.path).with_context(|| format!("read {}", self.path.display()))?;
        let (words, _) = bytes.as_chunks::<8>();
        let burned: u64 =
            words[first as usize..end as usize].iter().map(|word| u64::from_ne_bytes(*word)).sum();
        Ok(Some(burned as f64 / ((end - first) * BUCKET_MS) as f64 * 1e3))
    }
}

// Findings of comparisons as lines of a CSV file, which many runs of the bench append to.

/// Appends the findings of one comparison.
pub(crate) fn append(
    path: &Path,
    build: &str,
    burned: f64,
    seed: u64,
    findings: &[Finding],
) -> Result<()> {
    let doing = || format!("write to {}", path.display());
    let mut file = OpenOptions::new().append(true).create(true).open(path).with_context(doing)?;
    let mut text = String::new();
    if file.metadata().with_context(doing)?.len() == 0 {
        text = format!("{HEAD}\n");
    }
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d");
    let host = host::read(path);
    let cpu = host.cpu_model.as_deref().unwrap_or("?").replace(',', " ");
    let cpus = host.cpus;
    for one in findings {
        // No difference has no mean.
        let found = Some(mean(&one.differences).exp()).filter(|ratio| ratio.is_finite());
        let [low, high] = one.interval.map_or([None; 2], |it| [Some(it.low), Some(it.high)]);
        let number = |ratio: Option<f64>| ratio.map_or_else(String::new, |one| format!("{one:.5}"));
        text += &format!(
            "{date},{cpu},{cpus},{build},{burned},{seed},{},{},{},{:.1},{},{},{},{},{},{}\n",
            one.step,
            one.metric.name(),
            one.differences.len(),
            one.measured,
            one.verdict.name(),
            u8::from(one.beyond_tau),
            number(found),
            number(low),
            number(high),
            number(one.truth.map(f64::exp)),
        );
    }
    file.write_all(text.as_bytes()).with_context(doing)
}
