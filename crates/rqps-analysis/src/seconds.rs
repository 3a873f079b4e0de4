//! Computes a benchmark's metrics from the seconds of its steps. They replace values stored by an
//! older rqps.

use std::sync::Arc;

use super::extension::Extension;
use rqps_model::run::{ReadSeconds, Run, StepRecord};

/// Key of the reason in a step's `missing` for metrics from seconds.
const SECONDS: &str = "seconds";

/// Computes them for each step of a run that rqps measured. A step whose seconds cannot be read
/// keeps its stored values; without stored values, its record gets the reason.
pub(super) fn add(run: &mut Run, seconds: ReadSeconds, extensions: &[&Extension]) {
    let benchmark = run.record.benchmark.as_str();
    let own = extensions.iter().find(|own| own.benchmark == benchmark);
    let Some(hook) = own.and_then(|own| own.by_second) else { return };
    for place in 0..run.steps.len() {
        let step = &run.steps[place];
        if !was_measured(step) {
            continue;
        }
        let rows = seconds(run, step);
        let step = Arc::make_mut(&mut run.steps[place]);
        match rows {
            Ok(rows) => {
                let found = (hook.compute)(&rows);
                step.outcome.extra.extend(found.means);
                step.outcome.series.extend(found.series);
            }
            Err(_) if (hook.is_stored)(&step.outcome) => {}
            Err(why) => {
                step.usage.missing.insert(SECONDS.to_owned(), why);
            }
        }
    }
}

/// Published means stay as they were published.
fn was_measured(step: &StepRecord) -> bool {
    step.imported.is_none() && step.outcome.seconds > 0.0
}
