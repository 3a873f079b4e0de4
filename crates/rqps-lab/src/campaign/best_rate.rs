//! `rqps find-rate`: measures all targets at one rate after the other, until it is known how much
//! each of them can take.

use std::collections::BTreeMap;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use super::{Stopped, compared, measured, step};
use crate::lab::{Event, ExecutionOptions};
use crate::plan::{Blocks, Plan, PlanDraft};
use rqps_analysis::best_rate::{BestRates, NextRate, best_rates, next};
use rqps_model::benchmark::Pace;
use rqps_model::bisection::{RateRound, RateWindow};
use rqps_model::metric::Metric;
use rqps_model::verdict::Rules;
use rqps_results as results;
use rqps_results::RateFolder;

/// Searches until the rates are known or the budget is spent; `None` if the user stopped it. The
/// plan of `options` has the targets; what the log of the folder has is not measured again.
///
/// # Errors
/// No target can be measured; the limit is of no metric.
pub fn find(
    options: &ExecutionOptions,
    mut folder: RateFolder,
    events: &mut dyn FnMut(Event),
) -> Result<Option<BestRates>> {
    let labels: Vec<String> =
        options.plan.targets.iter().map(|target| target.label.clone()).collect();
    let named = |metric: &Metric| metric.name() == folder.log().request.metric;
    let Some(metric) = Metric::percentiles().find(named) else {
        bail!("find the best rate: {} is no response time", folder.log().request.metric);
    };
    loop {
        let rate = match next(folder.log(), &labels) {
            NextRate::Closed => None,
            // More digits of a rate mean nothing.
            NextRate::Open(rate) => Some((rate * 1000.0).round() / 1000.0),
            NextRate::End => break,
        };
        match round(options, &folder, (rate, metric), events) {
            Ok(round) => folder.add(round)?,
            Err(error) if error.is::<Stopped>() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    let found = best_rates(folder.log(), &labels);
    if found.targets.iter().all(|target| target.found.is_none()) {
        let fault = found.targets.iter().find_map(|target| target.fault.as_deref());
        bail!("no window was measured: {}", fault.unwrap_or("the budget allows none"));
    }
    Ok(Some(found))
}

/// Measures one window of each target.
fn round(
    options: &ExecutionOptions,
    folder: &RateFolder,
    (rate, metric): (Option<f64>, Metric),
    events: &mut dyn FnMut(Event),
) -> Result<RateRound> {
    let began = Instant::now();
    let number = folder.log().rounds.len();
    let name = format!("round-{:02}", number + 1);
    let base = options.plan.draft();
    let mut workload = base.workload.clone();
    workload.pace = match rate {
        Some(events_per_second) => {
            events(Event::Note(format!("{events_per_second:.0} events per second")));
            Pace::Open { events_per_second }
        }
        None => Pace::Closed,
    };
    let seed = base.seed.wrapping_add(number as u64);
    let (blocks, loads) = (Blocks::Fixed(1), 1);
    let draft = PlanDraft { workload, blocks, loads, seed, gate: None, count: None, ..base };
    let out = folder.path().join(&name);
    let options = ExecutionOptions { plan: Plan::build(draft)?, out, ..options.clone() };
    let faults = measured(&options, &name, events)?;
    let dataset = results::read(std::slice::from_ref(&options.out)).context("read the results")?;
    let mut windows = BTreeMap::new();
    if !dataset.runs.is_empty() {
        let comparison = compared(&dataset, Rules::default())?;
        let step = step(&comparison, &folder.log().request.step)?;
        for target in &step.targets {
            let Some(sample) = target.samples.first() else { continue };
            let window = RateWindow {
                events_per_second: sample.events as f64 / sample.record.outcome.seconds,
                events: sample.events,
                errors: sample.errors,
                response_ms: sample.get(metric).unwrap_or(f64::MAX),
            };
            windows.insert(target.label.clone(), window);
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    Ok(RateRound { folder: name, seconds, rate, windows, faults })
}
