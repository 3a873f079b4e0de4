//! `rqps explain`: possible causes of the differences between the builds of a result folder.

use anyhow::{Result, bail};

use crate::cli::args::Explain;
use crate::cli::compared::Compared;
use crate::cli::{folders, gate, print, report};
use rqps_analysis::comparison::StepComparison;
use rqps_analysis::{Comparison, causes};
use rqps_report::{explanation, render_text};

/// `rqps explain`.
pub(super) fn explain(words: &Explain) -> Result<u8> {
    let folders = folders::or_newest(&words.folders)?;
    let rules = gate::rules(&folders, &words.rules)?;
    let mut found = Compared::read(&folders, words.baseline.as_deref(), rules)?;
    let steps = chosen(&found.comparison, &words.steps)?;
    if steps.is_empty() {
        out!("No step has a verdict of a difference. Name a step with --step to see its data.");
        return Ok(report::exit_code(&found.comparison));
    }
    let causes = found.causes(&steps);
    for fault in &causes.faults {
        info!("rqps: {fault}");
    }
    found.comparison.causes = Some(Box::new(causes));
    out!("{}", render_text(&explanation(&found.comparison), print::columns()).trim_end());
    Ok(report::exit_code(&found.comparison))
}

/// The named steps, or those that differ.
fn chosen<'a>(comparison: &'a Comparison, names: &[String]) -> Result<Vec<&'a StepComparison>> {
    if names.is_empty() {
        return Ok(causes::differing_steps(comparison));
    }
    let find = |name: &String| {
        let mut steps = comparison.measured_steps();
        let Some(step) = steps.find(|step| step.name == *name) else {
            let known: Vec<&str> =
                comparison.measured_steps().map(|step| step.name.as_str()).collect();
            bail!("explain the step {name}: no such step; these folders hold {}", known.join(", "))
        };
        Ok(step)
    };
    names.iter().map(find).collect()
}
