//! `rqps find-rate`: the most events per second at which response times keep a limit.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Arg, Args, ValueEnum};

use crate::cli::args::Folders;
use crate::cli::bisect::{self, check_step};
use crate::cli::measure::plan_of;
use crate::cli::parts::{SittingArgs, WorkloadArgs};
use crate::cli::terminal::{self, Display};
use crate::cli::{exit, folders, hosts};
use rqps_lab::campaign::best_rate;
use rqps_lab::plan::{Plan, PlanDraft, file};
use rqps_model::benchmark::Pace;
use rqps_model::best_rate::RateRequest;
use rqps_model::metric::Metric;
use rqps_report::{best_rate_json, best_rate_text};
use rqps_results::RateFolder;

/// The time for everything, if none is given.
const BUDGET: Duration = Duration::from_mins(15);

/// `rqps find-rate`.
pub(super) fn find(words: &FindRateArgs) -> Result<u8> {
    let folder = match &words.resume {
        Some(path) => RateFolder::open(path)
            .context("resume a search; name the folder that the interrupted command printed")?,
        None => begin(words)?,
    };
    let out = folder.path().to_owned();
    let resumed = words.resume.as_ref().map(|_| words.allow.as_deref());
    let plan = &folder.log().request.plan;
    let options = bisect::options_of(plan, &out, resumed, &words.folders)?;
    let mut display = Display::new();
    let found = best_rate::find(&options, folder, &mut |event| display.show(event));
    drop(display);
    let Some(rates) = found.with_context(|| format!("find the rate ({})", out.display()))? else {
        let again = folders::resume_words(&out);
        info!("rqps: stopped\nhint: resume with `rqps find-rate --resume {again}`");
        return Ok(exit::INTERRUPTED);
    };
    info!("rqps: results are in {}", out.display());
    let text = match words.format {
        RateFormat::Text => best_rate_text(&rates),
        RateFormat::Json => best_rate_json(&rates)?,
    };
    terminal::escaped(text.as_bytes())?;
    Ok(exit::FINE)
}

/// The folder of a new search.
fn begin(words: &FindRateArgs) -> Result<RateFolder> {
    let (Some(step), Some(limit)) = (words.step.clone(), &words.limit) else {
        bail!(
            "find the rate: name a step and a limit, such as --step point-query --limit \
             'p99<=5ms'"
        );
    };
    let (metric, limit_ms) = limit_of(limit)?;
    let shape = WorkloadArgs {
        steps: vec![step.clone()],
        budget: None,
        sittings: SittingArgs::default(),
        ..words.shape.clone()
    };
    let plan = plan_of(&words.targets, &shape)?;
    hosts::refuse_server(&plan, "rqps find-rate")?;
    check_step(&plan, &step)?;
    if plan.workload.pace != Pace::Closed {
        bail!("find the rate: it is what the search finds; leave --rate out");
    }
    let labels: Vec<String> = plan.targets.iter().map(|target| target.label.clone()).collect();
    let out = folders::results(words.folders.out.as_deref(), &labels);
    // A disturbed window is one of the few that the search does not believe.
    let plan = Plan::build(PlanDraft { canaries: false, ..plan.draft() })?;
    let request = RateRequest {
        plan: file::print(&plan)?,
        step,
        metric: metric.name().to_owned(),
        limit_ms,
        budget_seconds: words.shape.budget.unwrap_or(BUDGET).as_secs_f64(),
    };
    Ok(RateFolder::create(&out, request)?)
}

/// Metric and milliseconds of `p99<=5ms`.
fn limit_of(text: &str) -> Result<(Metric, f64)> {
    let name = |metric: &Metric| metric.name().trim_end_matches("_ms");
    let parts = text.split_once("<=").or_else(|| text.split_once('<'));
    let known = parts.and_then(|(metric, limit)| {
        let metric = Metric::percentiles().find(|it| name(it) == metric.trim())?;
        let limit = limit.trim();
        let units = [("us", 0.001), ("ms", 1.0), ("s", 1000.0)];
        let (number, unit) =
            units.iter().find_map(|(unit, ms)| Some((limit.strip_suffix(unit)?, *ms)))?;
        let number: f64 = number.trim().parse().ok()?;
        Some((metric, number * unit)).filter(|(_, ms)| *ms > 0.0 && ms.is_finite())
    });
    known.with_context(|| {
        let metrics: Vec<String> =
            Metric::percentiles().map(|metric| name(&metric).to_owned()).collect();
        format!(
            "use the limit `{text}`: write a response time ({}) and a time in us, ms or s, such as \
             'p99<=5ms'",
            metrics.join(", ")
        )
    })
}

#[derive(Debug, Args)]
pub(super) struct FindRateArgs {
    /// Targets: the best rate of each, and its ratio to that of the first
    #[arg(value_name = "TARGET", required_unless_present = "resume")]
    pub targets: Vec<String>,
    /// Step to measure
    #[arg(long, value_name = "NAME")]
    pub step: Option<String>,
    /// Limit of a response time, such as 'p99<=5ms' or 'p95<=800us'
    #[arg(long, value_name = "LIMIT")]
    pub limit: Option<String>,
    /// Resume the interrupted search in this folder, or show what it found
    #[arg(long, value_name = "DIR", conflicts_with_all = ["targets", "step", "limit", "out"])]
    pub resume: Option<PathBuf>,
    /// With --resume: measure a search that is new on this host if all that it would use has this
    /// hash
    #[arg(long, value_name = "HASH", requires = "resume")]
    pub allow: Option<String>,
    #[command(flatten)]
    pub shape: WorkloadArgs,
    #[command(flatten)]
    pub folders: Folders,
    /// Format of the result
    #[arg(long, value_enum, default_value = "text")]
    pub format: RateFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RateFormat {
    Text,
    Json,
}

/// Hides the options of workloads that a search decides itself, and says what its budget is.
pub(super) fn arrange_options(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "budget" => arg.help("Time for everything, such as 30m [default: 15m]"),
        "rate" => arg.hide(true),
        _ => bisect::hide_options_without_effect(arg),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_response_times() {
        let known = |text: &str| limit_of(text).expect(text);
        assert_eq!(known("p99<=5ms"), (Metric::P99, 5.0));
        assert_eq!(known("p95 < 800us"), (Metric::P95, 0.8));
        assert_eq!(known("max<=1.5s"), (Metric::Max, 1500.0));
        for wrong in ["p99", "p98<=5ms", "p99<=5", "p99<=-5ms", "p99<=infs", "qps<=5ms", ""] {
            let error = limit_of(wrong).expect_err(wrong).to_string();
            assert!(error.contains("p50, p95, p99, p99.9, max"), "{error}");
        }
    }
}
