//! Whether fresh sittings confirm what failed a gate. What was selected for being slow is slow by
//! luck, too, so the fresh data alone decide.

use std::collections::BTreeSet;

use super::comparison::{Comparison, Relative};
use super::gate::{Assessment, FEW, Finding, GateOutcome, Level, failures};
use rqps_model::benchmark::Group;
use rqps_model::datagen::rng::Rng;
use rqps_model::metric::{Direction, Metric};
use rqps_model::units::counted;
use rqps_model::verdict::Verdict;
use rqps_stats::moderated::holm;

/// The findings that fresh sittings can confirm, and those that they cannot: a level of a history,
/// counted instructions, a missed rate.
pub fn tripped(comparison: &Comparison, assessment: &Assessment) -> (Vec<Finding>, Vec<Finding>) {
    let failed = assessment.findings.iter().filter(|it| it.level == Level::Regression).cloned();
    failed.partition(|it| match (it.step.is_empty(), it.metric) {
        (true, _) => true,
        (false, Some(metric)) => {
            let relative = relative(comparison, it, metric);
            let judgement = relative.and_then(|relative| relative.judgement.as_ref());
            judgement.is_some_and(|judgement| judgement.verdict == Verdict::Slower)
        }
        (false, None) => false,
    })
}

/// The steps that tripped, and as many drawn from the others as controls; all if a whole suite did.
pub fn steps(comparison: &Comparison, tripped: &[Finding], seed: u64) -> Vec<String> {
    let names: BTreeSet<&str> = tripped.iter().map(|finding| finding.step.as_str()).collect();
    let measured = comparison.measured_steps().filter(|step| step.group != Group::Load);
    let (mut steps, mut others): (Vec<String>, Vec<String>) =
        measured.map(|step| step.name.clone()).partition(|step| names.contains(step.as_str()));
    if names.contains("") {
        steps.append(&mut others);
    }
    let mut rng = Rng::stream(seed, "controls", 0);
    for _ in 0..steps.len().min(others.len()) {
        let drawn = rng.below(others.len() as u64) as usize;
        steps.push(others.swap_remove(drawn));
    }
    steps
}

/// What fresh sittings say of what tripped.
pub fn assess(fresh: &Comparison, tripped: &[Finding]) -> Assessment {
    let estimates: Vec<FreshEstimate> =
        tripped.iter().map(|finding| FreshEstimate::of(fresh, finding)).collect();
    let p: Vec<f64> = estimates.iter().map(|estimate| estimate.p).collect();
    let mut findings = failures(fresh);
    let failed = !findings.is_empty();
    for ((finding, estimate), holm) in tripped.iter().zip(&estimates).zip(holm(&p)) {
        findings.push(estimate.finding(finding, holm, fresh));
    }
    findings.sort_by_key(|finding| finding.level);
    let any = |level| findings.iter().filter(|it| it.level == level).count();
    let ending = match (any(Level::Regression), failed, any(Level::Unclear)) {
        (1.., ..) => GateOutcome::Regression,
        (0, true, _) => GateOutcome::RunFailed,
        (0, false, 1..) => GateOutcome::NoVerdict,
        (0, false, 0) => GateOutcome::NoRegression,
    };
    let metrics: BTreeSet<&str> =
        tripped.iter().filter_map(|finding| Some(finding.metric?.name())).collect();
    Assessment {
        ending,
        judged: tripped.len(),
        unclear: any(Level::Unclear),
        findings,
        small: 0,
        notes: vec![controls(fresh, tripped)],
        unclear_max: 0.0,
        metrics: metrics.into_iter().collect(),
        rules: fresh.rules,
        sentence: fresh.summary.sentence.clone(),
        limit: fresh.summary.limit.clone(),
    }
}

/// What the fresh data say of one finding.
#[derive(Default)]
struct FreshEstimate {
    ratio: Option<f64>,
    interval: Option<rqps_stats::Interval>,
    values: usize,
    pairs: usize,
    /// Of no loss; 1 if it is none.
    p: f64,
    /// True if it is shown to be no loss that counts.
    is_none: bool,
    between: Option<f64>,
}

impl FreshEstimate {
    fn of(fresh: &Comparison, finding: &Finding) -> FreshEstimate {
        let none = FreshEstimate { p: 1.0, ..FreshEstimate::default() };
        if finding.step.is_empty() {
            let all = fresh.summary.targets.iter().find(|it| it.label == finding.target);
            let Some(mean) = all.and_then(|it| it.geomean) else { return none };
            let mean_only = FreshEstimate { ratio: Some(mean.ratio), ..none };
            let Some(test) = mean.test else { return mean_only };
            return FreshEstimate {
                interval: Some(test.interval),
                values: test.blocks,
                pairs: test.blocks,
                p: if mean.ratio < 1.0 { test.p_treat } else { 1.0 },
                is_none: test.interval.low > 1.0 - fresh.rules.delta / 2.0,
                ..mean_only
            };
        }
        let metric = finding.metric.unwrap_or(Metric::Rate);
        let Some(relative) = relative(fresh, finding, metric) else { return none };
        let is_loss = match metric.better() {
            Direction::Lower => relative.ratio > 1.0,
            Direction::Higher | Direction::Neither => relative.ratio < 1.0,
        };
        let test = relative.test();
        let decided = [Verdict::Same, Verdict::Faster, Verdict::FasterSmall, Verdict::SlowerSmall];
        let verdict = relative.judgement.as_ref().map(|judgement| judgement.verdict);
        FreshEstimate {
            ratio: Some(relative.ratio).filter(|ratio| ratio.is_finite()),
            interval: relative.shown_interval(),
            values: relative.evidence().len(),
            pairs: relative.pairs,
            p: test.filter(|it| is_loss && !it.equivalent).map_or(1.0, |test| test.p_treat),
            is_none: verdict.is_some_and(|verdict| decided.contains(&verdict)),
            between: relative.sessions.as_ref().map(|sessions| sessions.between_sd),
        }
    }

    fn finding(&self, first: &Finding, holm: f64, fresh: &Comparison) -> Finding {
        let is_confirmed = holm <= fresh.rules.alpha && self.values > FEW;
        let (level, verdict) = match (is_confirmed, self.is_none) {
            (true, _) => (Level::Regression, "CONFIRMED"),
            (false, true) => (Level::NotConfirmed, "NOT CONFIRMED"),
            (false, false) => (Level::Unclear, "NOT CONFIRMED"),
        };
        let mut parts = vec![counted(self.values, "sitting")];
        parts.extend(self.between.map(|sd| format!("between-sitting sd {:.2} %", 100.0 * sd)));
        parts
            .extend(first.ratio.map(|ratio| format!("the first look, {ratio:.3}, does not count")));
        if level == Level::Unclear {
            parts.push("neither a loss nor its absence is shown: more sittings decide".to_owned());
        }
        Finding {
            level,
            verdict: verdict.to_owned(),
            ratio: self.ratio,
            interval: self.interval,
            pairs: self.pairs,
            holm: Some(holm),
            text: parts.join("; "),
            ..first.clone()
        }
    }
}

fn relative<'a>(all: &'a Comparison, finding: &Finding, metric: Metric) -> Option<&'a Relative> {
    let step = all.steps.iter().find(|step| step.name == finding.step)?;
    step.targets.iter().find(|it| it.label == finding.target)?.relative(metric)
}

/// What became of the controls, which nothing was the matter with.
fn controls(fresh: &Comparison, tripped: &[Finding]) -> String {
    let is_control = |name: &str| tripped.iter().all(|it| !it.step.is_empty() && it.step != name);
    let (mut all, mut slower) = (0, Vec::new());
    for step in fresh.measured_steps().filter(|it| it.group != Group::Load && is_control(&it.name))
    {
        all += 1;
        for target in step.targets.iter().skip(1) {
            let Some(relative) = target.relative(Metric::Rate) else { continue };
            if relative.judgement.as_ref().is_some_and(|it| it.verdict == Verdict::Slower) {
                slower.push(format!("{} {} {:.3}", target.label, step.name, relative.ratio));
            }
        }
    }
    match (all, slower.len()) {
        (0, _) => "no step is left as a control".to_owned(),
        (all, 0) => format!("none of {} is slower", counted(all, "control")),
        (all, _) => format!(
            "controls that are slower, of {all}: {}; they were not in the first look, so sittings \
             of this host differ by more than their intervals hold",
            slower.join(", ")
        ),
    }
}
