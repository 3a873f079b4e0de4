//! What a CI job is told: findings, one for each thing to look at, and how the job ends
//! (docs/verdicts.md).

use serde::Serialize;

use super::Comparison;
use super::compare::{Relative, StepComparison};
use super::verdict::Explanation;
use crate::domain::metric::{Better, Metric};
use crate::domain::run::Status;
use crate::domain::verdict::{GateRules, Rules, Verdict};
use crate::stats::Interval;

/// How a gate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Nothing is slower; faster is allowed.
    Boring,
    /// Something is slower beyond doubt.
    Regression,
    /// Too much is unclear, or the numbers are not comparable.
    NoVerdict,
    /// A run or a step failed, and what was measured shows no regression.
    RunFailed,
}

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Ends the gate with a regression.
    Regression,
    /// Something was not measured.
    Failure,
    /// Nothing can be said, or not surely enough.
    Unclear,
    /// Worse, but allowed for by the rules.
    Allowed,
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
            Level::Allowed => "ALLOWED",
            Level::Gain => "GAIN",
        }
    }
}

/// One thing to look at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// How much it weighs.
    pub level: Level,
    /// The target; empty where all are meant.
    pub target: String,
    /// The step; empty where all are meant.
    pub step: String,
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
    /// What moved with it, why it is unclear, why it is allowed: words.
    pub text: String,
}

/// What a gate found.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Assessment {
    /// How it ends.
    pub ending: Ending,
    /// The gravest first, then in the order of targets and steps.
    pub findings: Vec<Finding>,
    /// Verdicts that were looked at: steps × targets × metrics.
    pub judged: usize,
    /// Of these, those without a clear one.
    pub unclear: usize,
    /// The share of unclear ones that is allowed.
    pub unclear_max: f64,
    /// Column heads of the metrics that may fail the gate.
    pub metrics: Vec<&'static str>,
    /// By what verdicts were given.
    pub rules: Rules,
    /// The summary of the verdicts on rates.
    pub sentence: String,
}

/// Assesses a comparison, which must have been made with the rules of `gate`
/// ([`GateRules::over`]).
///
/// A metric of a step is a regression if its p against τ, adjusted by Holm over the steps, is at
/// most α, and it is worse by δ or more as measured, or by what an allowance of the step says.
/// A regression weighs more than a run that failed, and that more than a missing verdict.
///
/// # Errors
/// A metric that there is not.
pub fn assess(comparison: &Comparison, gate: &GateRules) -> Result<Assessment, String> {
    let metrics = gate.metrics()?;
    let mut findings = failures(comparison);
    let failed = !findings.is_empty();
    findings.extend(incomparable(comparison));
    let void = findings.iter().any(|finding| finding.level == Level::Unclear);
    let (mut judged, mut unclear) = (0, 0);
    for target in 1..comparison.targets.len() {
        for step in &comparison.steps {
            for &metric in &metrics {
                let Some(relative) = step.targets[target].relative(metric) else {
                    // A rate that is missing is told by the failures; other metrics may not exist.
                    if metric == Metric::Rate {
                        (judged, unclear) = (judged + 1, unclear + 1);
                    }
                    continue;
                };
                judged += 1;
                let mut finding = finding(comparison, gate, step, target, metric, relative);
                if let Some(finding) = finding.as_mut().filter(|_| void) {
                    finding.level = Level::Unclear;
                }
                unclear += usize::from(finding.as_ref().is_some_and(|f| f.level == Level::Unclear));
                findings.extend(finding);
            }
        }
    }
    findings.sort_by_key(|finding| finding.level);
    let allowed = gate.unclear_max.unwrap_or(GateRules::UNCLEAR_MAX);
    let unclear_max = if gate.fail_on_inconclusive { 0.0 } else { allowed };
    let too_unclear = judged == 0 || unclear as f64 > unclear_max * judged as f64;
    let ending = match findings.first().map(|finding| finding.level) {
        Some(Level::Regression) => Ending::Regression,
        _ if failed => Ending::RunFailed,
        _ if void || too_unclear => Ending::NoVerdict,
        _ => Ending::Boring,
    };
    Ok(Assessment {
        ending,
        findings,
        judged,
        unclear,
        unclear_max,
        metrics: metrics.iter().map(|metric| metric.name()).collect(),
        rules: comparison.rules,
        sentence: comparison.summary.sentence.clone(),
    })
}

fn plain(level: Level, target: &str, step: &str, text: String) -> Finding {
    Finding {
        level,
        target: target.to_owned(),
        step: step.to_owned(),
        metric: None,
        verdict: String::new(),
        ratio: None,
        interval: None,
        pairs: 0,
        holm: None,
        text,
    }
}

/// Runs and steps that did not come to their end, and targets without a run. Blocks that were
/// thrown away because of the host were measured again: they are none.
fn failures(comparison: &Comparison) -> Vec<Finding> {
    let mut findings = Vec::new();
    for run in &comparison.runs {
        let why = match &run.status {
            Status::Complete | Status::Discarded(_) => continue,
            Status::Failed(why) => format!("the run {} failed: {}", run.folder, why.trim()),
            Status::Interrupted => format!("the run {} was interrupted", run.folder),
            Status::Running => format!("the run {} did not come to its end", run.folder),
        };
        findings.push(plain(Level::Failure, &run.key.label, "", why));
    }
    for step in &comparison.steps {
        for target in &step.targets {
            for failure in &target.failures {
                let folder = &comparison.runs[failure.run].folder;
                let why = match &failure.status {
                    Status::Failed(why) => format!("failed in {folder}: {}", why.trim()),
                    _ => format!("did not come to its end in {folder}"),
                };
                findings.push(plain(Level::Failure, &target.label, &step.name, why));
            }
            if target.samples.is_empty() && target.failures.is_empty() {
                let why = "was not measured".to_owned();
                findings.push(plain(Level::Failure, &target.label, &step.name, why));
            }
        }
    }
    for target in comparison.targets.iter().filter(|target| target.runs.is_empty()) {
        findings.push(plain(Level::Failure, &target.label, "", "has no run".to_owned()));
    }
    findings
}

/// What makes the whole comparison void.
fn incomparable(comparison: &Comparison) -> Vec<Finding> {
    let loud = comparison.caveats.iter().filter(|caveat| caveat.kind.is_loud());
    loud.map(|caveat| {
        let target = caveat.target.as_deref().unwrap_or("");
        let text = format!("{}: {}", caveat.kind.title(), caveat.text);
        plain(Level::Unclear, target, "", text)
    })
    .collect()
}

/// What is to be said of one metric of one step, if anything.
fn finding(
    comparison: &Comparison,
    gate: &GateRules,
    step: &StepComparison,
    target: usize,
    metric: Metric,
    relative: &Relative,
) -> Option<Finding> {
    let judgement = relative.judgement.as_ref()?;
    let target = &step.targets[target];
    let rules = &comparison.rules;
    let test = judgement.test.as_ref();
    let verdict = judgement.verdict;
    let allowance = gate.allow.iter().find(|allowance| {
        let of_target = allowance.target.as_ref().is_none_or(|glob| matches(glob, &target.label));
        let of_metric = allowance
            .metric
            .as_deref()
            .is_none_or(|word| crate::domain::verdict::metric(word) == Ok(metric));
        of_target && of_metric && matches(&allowance.step, &step.name)
    });
    let delta = allowance.map_or(rules.delta, |allowance| allowance.delta);
    let loss = match metric.better() {
        Better::Higher => 1.0 - relative.ratio,
        Better::Lower => relative.ratio - 1.0,
        Better::Neither => return None,
    };
    let sure = test.is_some_and(|test| test.holm_treat <= rules.alpha);
    let (level, mut text) = match verdict {
        Verdict::Slower if loss < delta => (Level::Allowed, String::new()),
        Verdict::Slower if sure => (Level::Regression, String::new()),
        Verdict::Slower => (Level::Unclear, "not sure enough to fail a job".to_owned()),
        Verdict::Faster => (Level::Gain, String::new()),
        Verdict::Inconclusive | Verdict::NoVerdict => (Level::Unclear, open(judgement)),
        Verdict::SlowerSmall | Verdict::FasterSmall | Verdict::Same => return None,
    };
    if let Some(allowance) = allowance.filter(|_| level == Level::Allowed) {
        let reason = if allowance.reason.is_empty() { "" } else { ": " };
        text = format!("allowed up to {} %{reason}{}", 100.0 * delta, allowance.reason);
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
        metric: Some(metric),
        verdict: verdict.word(metric).to_owned(),
        ratio: relative.ratio.is_finite().then_some(relative.ratio),
        interval: test.map(|test| test.interval),
        pairs: relative.pairs,
        holm: test.map(|test| test.holm_treat),
        text,
    })
}

fn open(judgement: &super::verdict::Judgement) -> String {
    let needs = judgement.pairs_needed.map(|pairs| format!("needs {pairs} pairs"));
    let all: Vec<String> = needs.into_iter().chain(judgement.reasons.iter().cloned()).collect();
    all.join("; ")
}

fn moved(explanations: &[Explanation]) -> String {
    let parts = explanations.iter().map(|moved| {
        let Interval { low, high } = moved.interval;
        format!("{} x{:.2} [{low:.2}, {high:.2}]", moved.metric.name(), moved.ratio)
    });
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { String::new() } else { format!("moved with it: {}", parts.join(", ")) }
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
mod tests {
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
