//! Verdicts for a CI job: findings, one for each thing to look at, and how the job ends
//! (docs/verdicts.md).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::caveat::{Caveat, CaveatKind};
use super::comparison::{Comparison, MissedRate, Relative, StepComparison};
use super::counted::is_counted;
use super::history::{Newest, PastSets, against_newest};
use super::verdict::{Explanation, TOLD_TOGETHER, TargetVerdicts};
use rqps_model::metric::{Direction, Metric};
use rqps_model::run::Status;
use rqps_model::verdict::{Allowance, GateRules, Rules, Verdict};
use rqps_stats::Interval;
use rqps_stats::moderated::{Estimate, holm};

/// A regression needs more values than this: two show too little of their scatter.
pub(super) const FEW: usize = 2;

/// The end of a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// Nothing is slower, and every verdict is known; faster is allowed.
    Boring,
    /// Some losses are small, and everything is shown to lose less than δ.
    NoRegression,
    /// No regression is shown, but not everything is shown to lose less than δ.
    Undecided,
    /// Something is significantly slower.
    Regression,
    /// More is undecided than the rules allow, or the numbers are not comparable.
    NoVerdict,
    /// A run or a step failed, and the measured steps show no regression.
    RunFailed,
}

/// The findings of a gate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assessment {
    /// Its end.
    pub ending: GateOutcome,
    /// The gravest first, then in the order of targets and steps.
    pub findings: Vec<Finding>,
    /// Number of verdicts: steps × targets × metrics.
    pub judged: usize,
    /// Number of unclear verdicts.
    pub unclear: usize,
    /// Number of small losses.
    pub small: usize,
    /// Facts about builds and history that are no findings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The share of unclear ones that is allowed.
    pub unclear_max: f64,
    /// Column heads of the metrics that may fail the gate.
    pub metrics: Vec<&'static str>,
    /// The rules of the verdicts.
    pub rules: Rules,
    /// The summary of the verdicts on rates.
    pub sentence: String,
    /// The limits of the findings.
    pub limit: String,
}

/// Assesses a comparison, which must have been made with the rules of `gate`
/// ([`GateRules::over`]).
///
/// A metric of a step is a regression if it is worse, its p, adjusted by Holm, is at most α, and no
/// allowance of the step says otherwise. Holm's adjustment is over everything that can fail the job:
/// all targets, metrics and steps, the geometric means, the history and counted instructions.
/// The exit code is that of the worst finding: a regression, then a failed run, then a missing
/// verdict. If `past` has a history, its newest level is a second baseline ([`against_newest`]);
/// a loss against it is none where the step is in `accepted`.
///
/// [`against_newest`]: super::history::against_newest
///
/// # Errors
/// A metric that there is not; a limit on instructions that were not counted.
pub fn assess(
    comparison: &Comparison,
    gate: &GateRules,
    past: Option<&PastSets>,
    accepted: &BTreeSet<String>,
) -> Result<Assessment, String> {
    let metrics = gate.metrics()?;
    let mut findings = failures(comparison);
    let failed = findings.iter().any(|finding| finding.level == Level::Failure);
    let job = Job::of(comparison, past, &metrics, gate)?;
    let obstacles = incomparable(comparison);
    let void = !obstacles.is_empty();
    findings.extend(obstacles);
    let (of_steps, mut judged, mut unclear) = verdicts(comparison, gate, &job, void);
    findings.extend(of_steps);
    if !void {
        findings.extend(suites(comparison, &job, &findings));
    }
    let allowed = gate.unclear_max.unwrap_or(GateRules::UNCLEAR_MAX);
    let unclear_max = if gate.fail_on_inconclusive { 0.0 } else { allowed };
    let too_many =
        |unclear: usize, judged: usize| judged == 0 || unclear as f64 > unclear_max * judged as f64;
    // Each kind of verdict by itself: clear ones of one kind do not make up for those of another.
    let mut too_unclear = too_many(unclear, judged);
    let mut notes = of_builds(comparison);
    if past.is_some() {
        let (more, count) = history_findings(comparison, &job.history, accepted, gate);
        let open = more.iter().filter(|finding| finding.level == Level::Unclear).count();
        let alone = judged == 0;
        (judged, unclear) = (judged + count, unclear + open);
        too_unclear = (too_unclear && !alone) || (count > 0 || alone) && too_many(open, count);
        notes.extend(history_notes(&job.history, &more));
        findings.extend(more);
    }
    if gate.instructions.is_some() {
        findings
            .extend(job.instructions.iter().filter_map(|count| count.finding(&comparison.rules)));
        findings.extend(comparison.counts.iter().flat_map(|counts| failures(counts)));
    }
    findings.sort_by_key(|finding| finding.level);
    let findings = together(findings);
    let small = findings.iter().filter(|finding| finding.level == Level::Small);
    let small = small.map(|finding| finding.steps.len().max(1)).sum();
    let ending = match findings.first().map(|finding| finding.level) {
        Some(Level::Regression) => GateOutcome::Regression,
        _ if failed => GateOutcome::RunFailed,
        _ if void || too_unclear => GateOutcome::NoVerdict,
        _ if unclear > 0 || !small_are_less(comparison, &metrics) => GateOutcome::Undecided,
        _ if small > 0 => GateOutcome::NoRegression,
        _ => GateOutcome::Boring,
    };
    Ok(Assessment {
        ending,
        findings,
        judged,
        unclear,
        small,
        notes,
        unclear_max,
        metrics: metrics
            .iter()
            .chain(gate.instructions.map(|_| &Metric::InstructionsPerOp))
            .map(|metric| metric.name())
            .collect(),
        rules: comparison.rules,
        sentence: comparison.summary.sentence.clone(),
        limit: comparison.summary.limit.clone(),
    })
}

/// Findings of the verdicts, how many were looked at, and how many of these are unclear: all of
/// them if the comparison is `void`.
fn verdicts(
    comparison: &Comparison,
    gate: &GateRules,
    job: &Job<'_>,
    void: bool,
) -> (Vec<Finding>, usize, usize) {
    let (mut findings, mut judged, mut unclear) = (Vec::new(), 0, 0);
    for target in 1..comparison.targets.len() {
        for (place, step) in comparison.steps.iter().enumerate() {
            for &metric in job.metrics {
                let Some(relative) = step.targets[target].relative(metric) else {
                    // A step without a rate is reported as a failure elsewhere. Other metrics may
                    // be absent: not every benchmark has them, and some steps run on one target
                    // only.
                    let both = comparison.is_for(step, 0) && comparison.is_for(step, target);
                    if metric == Metric::Rate && both && !is_counted(comparison) {
                        (judged, unclear) = (judged + 1, unclear + 1);
                    }
                    continue;
                };
                judged += 1;
                let mut finding = match &step.targets[target].missed_rate {
                    Some(missed) if metric == Metric::Rate => {
                        Some(missed_rate(gate, step, target, missed))
                    }
                    _ => {
                        let holm = job.steps.get(&(target, place, metric)).copied();
                        finding(comparison, gate, (step, target, metric), relative, holm)
                    }
                };
                if let Some(finding) = finding.as_mut().filter(|_| void) {
                    finding.level = Level::Unclear;
                }
                unclear += usize::from(finding.as_ref().is_some_and(|f| f.level == Level::Unclear));
                findings.extend(finding);
            }
        }
    }
    (findings, judged, unclear)
}

/// True if each small loss is shown to be less than δ: another may be larger, and be due to layout.
fn small_are_less(comparison: &Comparison, metrics: &[Metric]) -> bool {
    let targets = comparison.steps.iter().flat_map(|step| step.targets.iter().skip(1));
    let mut judged = targets.flat_map(|target| {
        metrics.iter().filter_map(|metric| target.relative(*metric)?.judgement.as_ref())
    });
    judged.all(|it| {
        let less = it.test.as_ref().is_some_and(|test| test.equivalent);
        it.verdict != Verdict::SlowerSmall || less
    })
}

/// The targets whose steps are slower as a whole, although no single one is a regression.
fn suites(comparison: &Comparison, job: &Job<'_>, found: &[Finding]) -> Vec<Finding> {
    let of_target = |(place, facts): (usize, &TargetVerdicts)| {
        let (mean, holm) = (facts.geomean?, job.suites.get(&(place + 1)).copied()?);
        let test = mean.test.filter(|test| test.blocks > FEW && mean.steps > 1)?;
        let is_told = |it: &Finding| {
            matches!(it.level, Level::Regression | Level::Allowed) && it.target == facts.label
        };
        let fails = mean.ratio < 1.0 && holm <= comparison.rules.alpha;
        (fails && !found.iter().any(is_told)).then(|| Finding {
            metric: Some(Metric::Rate),
            verdict: Verdict::Slower.word(Metric::Rate).to_owned(),
            ratio: Some(mean.ratio),
            interval: Some(test.interval),
            pairs: test.blocks,
            holm: Some(holm),
            ..plain(
                Level::Regression,
                &facts.label,
                "",
                format!("the geometric mean of {} steps, none of which fails alone", mean.steps),
            )
        })
    };
    comparison.summary.targets.iter().enumerate().filter_map(of_target).collect()
}

/// Findings without a test that say the same of a target are one, from [`TOLD_TOGETHER`] steps on.
fn together(findings: Vec<Finding>) -> Vec<Finding> {
    let same = |a: &Finding, b: &Finding| {
        let what = |of: &Finding| (of.level, of.metric, of.pairs, of.holm.is_none());
        let of_steps = a.level != Level::Regression
            && a.holm.is_none()
            && !a.step.is_empty()
            && !b.step.is_empty();
        let words = a.target == b.target && a.verdict == b.verdict && a.text == b.text;
        of_steps && what(a) == what(b) && words
    };
    let mut all: Vec<Finding> = Vec::new();
    for (place, finding) in findings.iter().enumerate() {
        let alike = || findings.iter().filter(|other| same(finding, other));
        if alike().count() < TOLD_TOGETHER {
            all.push(finding.clone());
        } else if !findings[..place].iter().any(|earlier| same(finding, earlier)) {
            let steps: Vec<String> = alike().map(|other| other.step.clone()).collect();
            let text = format!("{} steps: {} ({})", steps.len(), finding.text, steps.join(", "));
            let one = Finding { step: String::new(), ratio: None, text, ..finding.clone() };
            all.push(Finding { steps, ..one });
        }
    }
    all
}

/// Runs and steps that did not come to their end, and targets without a run. Blocks that were
/// discarded because of the host were measured again: they are none.
pub(super) fn failures(comparison: &Comparison) -> Vec<Finding> {
    let mut findings = Vec::new();
    for run in &comparison.runs {
        let why = match &run.status {
            Status::Complete | Status::Discarded(_) => continue,
            Status::Failed(why) => format!("the run {} failed: {}", run.folder, why.trim()),
            Status::Interrupted => format!("the run {} was interrupted", run.folder),
            Status::Running => format!("the run {} is incomplete", run.folder),
        };
        findings.push(plain(Level::Failure, &run.key.label, "", why));
    }
    for step in &comparison.steps {
        for (place, target) in step.targets.iter().enumerate() {
            for failure in &target.failures {
                let folder = &comparison.runs[failure.run].folder;
                let why = match &failure.status {
                    Status::Failed(why) => format!("failed in {folder}: {}", why.trim()),
                    _ => format!("is incomplete in {folder}"),
                };
                findings.push(plain(Level::Failure, &target.label, &step.name, why));
            }
            if !target.was_carried_out() && !step.is_choice() && comparison.is_for(step, place) {
                // Authors may leave out a step; that is no failure of the build.
                let (level, why) = if comparison.is_imported(place) {
                    (Level::Unclear, "is not in the imported files")
                } else {
                    (Level::Failure, "was not measured")
                };
                findings.push(plain(level, &target.label, &step.name, why.to_owned()));
            }
        }
    }
    for target in comparison.targets.iter().filter(|target| target.runs.is_empty()) {
        findings.push(plain(Level::Failure, &target.label, "", "has no run".to_owned()));
    }
    findings
}

/// Facts about the builds that may explain a difference.
fn of_builds(comparison: &Comparison) -> Vec<String> {
    let of_compilers = |caveat: &&Caveat| caveat.kind == CaveatKind::DifferentCompiler;
    let found = comparison.caveats.iter().filter(of_compilers);
    found.map(|caveat| format!("{}: {}", caveat.kind.title().to_lowercase(), caveat.text)).collect()
}

/// Findings that make the whole comparison void.
fn incomparable(comparison: &Comparison) -> Vec<Finding> {
    let loud = comparison.caveats.iter().filter(|caveat| caveat.kind.is_loud());
    loud.map(|caveat| {
        let target = caveat.target.as_deref().unwrap_or("");
        let text = format!("{}: {}", caveat.kind.title(), caveat.text);
        plain(Level::Unclear, target, "", text)
    })
    .collect()
}

/// The finding on one metric of one step, if there is one.
fn finding(
    comparison: &Comparison,
    gate: &GateRules,
    (step, target, metric): (&StepComparison, usize, Metric),
    relative: &Relative,
    holm: Option<f64>,
) -> Option<Finding> {
    let judgement = relative.judgement.as_ref()?;
    let target = &step.targets[target];
    let rules = &comparison.rules;
    let test = judgement.test.as_ref();
    let verdict = judgement.verdict;
    let allowance = allowance(gate, step, &target.label, metric);
    let loss = match metric.better() {
        Direction::Higher => 1.0 - relative.ratio,
        Direction::Lower => relative.ratio - 1.0,
        Direction::Neither => return None,
    };
    let allowance = allowance.filter(|allowance| loss < allowance.delta);
    let sure = holm.is_some_and(|p| p <= rules.alpha);
    let (level, mut text) = match verdict {
        Verdict::Slower if allowance.is_some() => (Level::Allowed, String::new()),
        Verdict::Slower if relative.evidence().len() <= FEW => {
            (Level::Unclear, format!("{FEW} values fail no job: measure more blocks"))
        }
        Verdict::Slower if sure => (Level::Regression, String::new()),
        Verdict::Slower => (Level::Unclear, "not significant enough to fail a job".to_owned()),
        Verdict::Faster => (Level::Gain, String::new()),
        Verdict::Inconclusive | Verdict::NoVerdict => (Level::Unclear, open(judgement)),
        Verdict::SlowerSmall => (Level::Small, String::new()),
        Verdict::FasterSmall | Verdict::Same => return None,
    };
    if let Some(allowance) = allowance.filter(|_| level == Level::Allowed) {
        text = allowed(allowance);
    }
    if metric == Metric::Rate && matches!(level, Level::Regression | Level::Allowed | Level::Gain) {
        let moved = moved(&target.explanations);
        let between = if text.is_empty() || moved.is_empty() { "" } else { "; " };
        text = format!("{text}{between}{moved}");
    }
    Some(Finding {
        level,
        target: target.label.clone(),
        step: step.name.clone(),
        steps: Vec::new(),
        metric: Some(metric),
        verdict: verdict.word(metric).to_owned(),
        ratio: Some(relative.ratio).filter(|ratio| ratio.is_finite() && !target.is_void(metric)),
        interval: test.map(|test| test.interval),
        pairs: relative.pairs,
        holm,
        text,
    })
}

/// A step beside whose queries the target did not write as much as it was asked to. A regression
/// if the baseline kept the rate and this target missed it in most blocks; else nothing is sure.
fn missed_rate(
    gate: &GateRules,
    step: &StepComparison,
    target: usize,
    missed: &MissedRate,
) -> Finding {
    let baseline_kept = step.targets[0].missed_rate.is_none();
    let label = &step.targets[target].label;
    let allowance = allowance(gate, step, label, Metric::Rate);
    let allowance = allowance.filter(|allowance| missed.loss() < allowance.delta);
    let (level, verdict) = match (baseline_kept && missed.is_regular(), allowance) {
        (true, Some(_)) => (Level::Allowed, "MISSES ITS WRITE RATE"),
        (true, None) => (Level::Regression, "MISSES ITS WRITE RATE"),
        (false, _) => (Level::Unclear, Verdict::NoVerdict.name()),
    };
    let reasons = step.targets[target].not_comparable.join("; ");
    let text = match allowance.filter(|_| level == Level::Allowed) {
        Some(allowance) => format!("{}; {reasons}", allowed(allowance)),
        None => reasons,
    };
    Finding {
        metric: Some(Metric::Rate),
        verdict: verdict.to_owned(),
        pairs: step.targets[target].relative(Metric::Rate).map_or(0, |relative| relative.pairs),
        ..plain(level, label, &step.name, text)
    }
}

fn open(judgement: &super::verdict::Judgement) -> String {
    let size = judgement.pairs_needed.map(|pairs| format!("sample size {pairs} pairs"));
    let all: Vec<String> = size.into_iter().chain(judgement.reasons.iter().cloned()).collect();
    all.join("; ")
}

fn moved(explanations: &[Explanation]) -> String {
    let parts = explanations
        .iter()
        .map(|moved| format!("{} x{:.2} {:.2}", moved.metric.name(), moved.ratio, moved.interval));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { String::new() } else { format!("associated costs: {}", parts.join(", ")) }
}

// Findings of a gate.

/// The weight of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Ends the gate with a regression.
    Regression,
    /// Something was not measured.
    #[default]
    Failure,
    /// No verdict, or a difference that is not significant enough.
    Unclear,
    /// A small loss: worse, but by less than counts.
    Small,
    /// Worse, but allowed for by the rules.
    Allowed,
    /// A regression that fresh sittings show not to be one.
    NotConfirmed,
    /// Better.
    Gain,
}

impl Level {
    /// The word at the beginning of a line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Regression => "REGRESSION",
            Level::Failure => "FAILED",
            Level::Unclear => "UNCLEAR",
            Level::Small => "SMALL LOSS",
            Level::Allowed => "ALLOWED",
            Level::NotConfirmed => "FINE",
            Level::Gain => "GAIN",
        }
    }
}

/// One thing to look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// Its weight.
    pub level: Level,
    /// The target; empty where all are meant.
    pub target: String,
    /// The step; empty where all or several are meant.
    pub step: String,
    /// Several steps with the same finding.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// The metric, if one is meant.
    pub metric: Option<Metric>,
    /// The verdict in its word for the metric; empty where there is none.
    pub verdict: String,
    /// Target / base.
    pub ratio: Option<f64>,
    /// Its moderated interval.
    pub interval: Option<Interval>,
    /// Pairs.
    pub pairs: usize,
    /// p against τ, adjusted by Holm.
    pub holm: Option<f64>,
    /// In words: associated costs, why it is unclear, why it is allowed.
    pub text: String,
}

/// A finding without a metric.
pub(super) fn plain(level: Level, target: &str, step: &str, text: String) -> Finding {
    Finding { level, target: target.to_owned(), step: step.to_owned(), text, ..Finding::default() }
}

// What decides the job of a gate: its history, losses that are allowed, and everything that can
// fail it, with p-values adjusted over all of it, so that α is
// the probability that equal builds fail it.

/// What can fail a job. All p-values are adjusted by Holm.
pub(super) struct Job<'a> {
    /// The metrics that can.
    pub(super) metrics: &'a [Metric],
    /// By place of the target, place of the step, and metric.
    pub(super) steps: BTreeMap<(usize, usize, Metric), f64>,
    /// The geometric mean, by place of the target.
    pub(super) suites: BTreeMap<usize, f64>,
    /// The newest levels of the history.
    pub(super) history: Vec<(Metric, Newest)>,
    /// Counted instructions.
    pub(super) instructions: Vec<CountedStep<'a>>,
}

/// A step whose instructions were counted on both sides.
pub(super) struct CountedStep<'a> {
    target: &'a str,
    step: &'a str,
    relative: &'a Relative,
    /// p of no more than the allowed share.
    p: f64,
}

impl<'a> Job<'a> {
    /// # Errors
    /// A limit on instructions that were not counted.
    pub(super) fn of(
        comparison: &'a Comparison,
        past: Option<&PastSets>,
        metrics: &'a [Metric],
        gate: &GateRules,
    ) -> Result<Job<'a>, String> {
        let newest = |&metric: &Metric| {
            let all = past.map(|past| against_newest(comparison, past, metric, &comparison.rules));
            all.unwrap_or_default().into_iter().map(move |newest| (metric, newest))
        };
        let targets = comparison.summary.targets.iter().enumerate();
        let of_mean =
            targets.filter_map(|(at, facts)| Some((at + 1, facts.geomean?.test?.p_treat)));
        let mut job = Job {
            metrics,
            steps: of_steps(comparison, metrics),
            suites: of_mean.filter(|_| metrics.contains(&Metric::Rate)).collect(),
            history: metrics.iter().flat_map(newest).collect(),
            instructions: match gate.instructions {
                Some(share) => of_instructions(comparison, share)?,
                None => Vec::new(),
            },
        };
        job.adjust();
        Ok(job)
    }

    fn adjust(&mut self) {
        let history = self.history.iter_mut().filter_map(|(_, newest)| newest.p_worse.as_mut());
        let of_counts = self.instructions.iter_mut().map(|count| &mut count.p);
        let of_means = self.suites.values_mut();
        let mut all: Vec<&mut f64> =
            self.steps.values_mut().chain(of_means).chain(history).chain(of_counts).collect();
        let p: Vec<f64> = all.iter().map(|p| **p).collect();
        all.iter_mut().zip(holm(&p)).for_each(|(p, adjusted)| **p = adjusted);
    }
}

fn of_steps(comparison: &Comparison, metrics: &[Metric]) -> BTreeMap<(usize, usize, Metric), f64> {
    let mut found = BTreeMap::new();
    for (place, step) in comparison.steps.iter().enumerate() {
        for (target, result) in step.targets.iter().enumerate().skip(1) {
            for &metric in metrics {
                let judgement = result.relative(metric).and_then(|it| it.judgement.as_ref());
                if let Some(test) = judgement.and_then(|judgement| judgement.test.as_ref()) {
                    found.insert((target, place, metric), test.p_treat);
                }
            }
        }
    }
    found
}

fn of_instructions(comparison: &Comparison, share: f64) -> Result<Vec<CountedStep<'_>>, String> {
    let counts = comparison.counts.as_deref().unwrap_or(comparison);
    let mut found = Vec::new();
    for step in &counts.steps {
        for target in step.targets.iter().skip(1) {
            let Some(relative) = target.comparable(Metric::InstructionsPerOp) else { continue };
            let mean = relative.ratio.ln();
            let p = relative.sd_ln.map_or(1.0, |sd| {
                let n = relative.pairs as f64;
                let estimate = Estimate { mean, se: sd / n.sqrt(), df: n - 1.0 };
                if mean > 0.0 { estimate.tails_beyond(share.ln_1p()).0 } else { 1.0 }
            });
            found.push(CountedStep { target: &target.label, step: &step.name, relative, p });
        }
    }
    if found.is_empty() {
        let fault = "no counted instructions in these results; measure them with `rqps compare \
                     --count`";
        return Err(fault.to_owned());
    }
    Ok(found)
}

impl CountedStep<'_> {
    /// The regression, if it is one.
    pub(super) fn finding(&self, rules: &Rules) -> Option<Finding> {
        let text = "it executes more instructions per operation, which tells nothing of its rate";
        (self.p <= rules.alpha).then(|| Finding {
            metric: Some(Metric::InstructionsPerOp),
            verdict: "MORE".to_owned(),
            ratio: Some(self.relative.ratio),
            interval: self.relative.interval,
            pairs: self.relative.pairs,
            holm: Some(self.p),
            ..plain(Level::Regression, self.target, self.step, text.to_owned())
        })
    }
}

// The gate with a history: `rqps gate DIR --history DIR…`.

/// Result sets beside a level that are named at most.
const BESIDE_MOST: usize = 6;

/// Findings of the steps that stand worse than the newest level of the history, or have none, and
/// how many were looked at. The p-values of `history` are adjusted over the job.
///
/// A step is a regression if its p against τ is at most α, and it is worse by δ or more.
pub(super) fn history_findings(
    comparison: &Comparison,
    history: &[(Metric, Newest)],
    accepted: &BTreeSet<String>,
    gate: &GateRules,
) -> (Vec<Finding>, usize) {
    let found = history.iter().filter_map(|(metric, newest)| {
        let finding = finding_of_job(comparison, newest, newest.p_worse, *metric, gate)?;
        Some(accept(finding, accepted))
    });
    (found.collect(), history.len())
}

/// A loss that somebody accepts tonight is no regression.
fn accept(finding: Finding, accepted: &BTreeSet<String>) -> Finding {
    if finding.level == Level::Regression && accepted.contains(&finding.step) {
        Finding {
            level: Level::Allowed,
            text: format!("accepted as the new level; {}", finding.text),
            ..finding
        }
    } else {
        finding
    }
}

/// `; set aside: 2026-01-09 (x0.400)`; empty if nothing is.
fn beside(newest: &Newest) -> String {
    let sets = newest.beside.iter().map(|(date, ratio)| {
        let day = date.split_once('T').map_or(date.as_str(), |(day, _)| day);
        format!("{day} (x{ratio:.3})")
    });
    let sets: Vec<String> = sets.collect();
    let more = match sets.len().saturating_sub(BESIDE_MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let first = sets[..sets.len().min(BESIDE_MOST)].join(", ");
    if sets.is_empty() { String::new() } else { format!("; not in it: {first}{more}") }
}

/// Outliers of the history, and nights that are off its level, for each step without a finding.
pub(super) fn history_notes(history: &[(Metric, Newest)], findings: &[Finding]) -> Vec<String> {
    let mut notes = Vec::new();
    for (metric, newest) in history {
        let (said, is_told) = (beside(newest), |finding: &Finding| {
            finding.target == newest.label
                && finding.text.contains("; not in it: ")
                && finding.step == newest.step
        });
        if !said.is_empty() && !findings.iter().any(is_told) {
            let (label, step, sets) = (&newest.label, &newest.step, newest.sets);
            notes.push(format!(
                "{label} {step} {}: the newest level of the history has {sets} result sets since \
                 {}{said}",
                metric.name(),
                newest.since
            ));
        }
    }
    notes
}

fn finding_of_job(
    comparison: &Comparison,
    newest: &Newest,
    holm: Option<f64>,
    metric: Metric,
    gate: &GateRules,
) -> Option<Finding> {
    let rules = &comparison.rules;
    let Some(p) = holm else {
        let finding = plain(Level::Unclear, &newest.label, &newest.step, newest.why_open());
        return Some(Finding { metric: Some(metric), pairs: newest.sets, ..finding });
    };
    let loss = match metric.better() {
        Direction::Lower => newest.ratio - 1.0,
        Direction::Higher => 1.0 - newest.ratio,
        Direction::Neither => return None,
    };
    if p > rules.alpha || loss < rules.delta {
        return None;
    }
    let step = comparison.steps.iter().find(|step| step.name == newest.step)?;
    let allowance = allowance(gate, step, &newest.label, metric);
    let allowance = allowance.filter(|allowance| loss < allowance.delta);
    let relative = if newest.is_relative { ", each divided by its baseline" } else { "" };
    let text = format!(
        "beside the newest level of the history: {} result sets since {}{relative}{}",
        newest.sets,
        newest.since,
        beside(newest)
    );
    let level = if allowance.is_some() { Level::Allowed } else { Level::Regression };
    Some(Finding {
        metric: Some(metric),
        verdict: Verdict::Slower.word(metric).to_owned(),
        ratio: Some(newest.ratio),
        interval: newest.interval,
        pairs: newest.sets,
        holm: Some(p),
        ..plain(level, &newest.label, &newest.step, text)
    })
}

// Losses that the rules of a gate accept.

/// The loss that the rules accept for a metric of a step, if they do.
pub(super) fn allowance<'a>(
    gate: &'a GateRules,
    step: &StepComparison,
    label: &str,
    metric: Metric,
) -> Option<&'a Allowance> {
    let of_all_counts = step.client_count.as_ref().map(|count| count.step.as_str());
    gate.allow.iter().find(|allowance| {
        let of_target = allowance.target.as_ref().is_none_or(|glob| matches(glob, label));
        let of_metric = allowance
            .metric
            .as_deref()
            .is_none_or(|word| rqps_model::verdict::metric(word) == Ok(metric));
        let of_step = [Some(step.name.as_str()), of_all_counts]
            .into_iter()
            .flatten()
            .any(|name| matches(&allowance.step, name));
        of_target && of_metric && of_step
    })
}

pub(super) fn allowed(allowance: &Allowance) -> String {
    let reason = if allowance.reason.is_empty() { "" } else { ": " };
    format!("allowed up to {} %{reason}{}", 100.0 * allowance.delta, allowance.reason)
}

/// A pattern in which `*` stands for any characters and `?` for one.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // fits[n]: the pattern so far fits the first n characters.
    let mut fits = vec![false; name.len() + 1];
    fits[0] = true;
    for wanted in pattern {
        let before = fits.clone();
        for n in 0..=name.len() {
            fits[n] = match wanted {
                '*' => before[n] || (n > 0 && fits[n - 1]),
                _ => n > 0 && before[n - 1] && (wanted == '?' || wanted == name[n - 1]),
            };
        }
    }
    fits[name.len()]
}

#[cfg(test)]
mod gate_job_tests {
    use super::matches;

    #[test]
    fn patterns_fit_whole_names() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("scan", "scan", true),
            ("scan", "scan-2", false),
            ("read-only*=10?", "read-only.pre_range=100", true),
            ("read-only*=10?", "read-only.pre_range=10", false),
            ("*pre*", "read-only.pre_range", true),
            ("?", "", false),
        ] {
            assert_eq!(matches(pattern, name), fits, "{pattern} {name}");
        }
    }
}
