//! The versions of a ladder and their order.

use std::collections::BTreeMap;

use serde::Serialize;
use thiserror::Error;

use super::changes::{self, StepLadder};
use super::rung::{Rung, by_config, chains, family, rung, sorted};
use crate::Comparison;
use rqps_model::metric::Metric;

/// Options of a ladder.
#[derive(Clone, Debug, PartialEq)]
pub struct LadderOptions {
    /// The metric.
    pub metric: Metric,
    /// Labels of targets in the wanted order; `None` for the order of their versions.
    pub order: Option<Vec<String>>,
    /// True to look for changes along the first versions of branches and along each branch; false
    /// to look along all versions.
    pub branches: bool,
}

/// Versions of one DBMS, the oldest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ladder {
    /// `postgres`; `mysql, config binlog` where one version was measured with several
    /// configurations, each of which is a ladder then.
    pub family: String,
    /// Key of the metric.
    pub metric: String,
    /// Its versions in order: ratios are relative to the first.
    pub rungs: Vec<Rung>,
    /// Along which versions changes were searched, by place: all of them; with branches, the first
    /// version of each branch, then each branch with two or more.
    pub chains: Vec<Vec<usize>>,
    /// True if the order is that of versions; false if a version is unknown, or the user gave an
    /// order. Then it is that of the plan or the user.
    pub by_version: bool,
    /// Standard deviation of ln by which the layout of a build moves a step: half of the threshold
    /// tau, which stands for pairs of builds, over √2. For counted instructions, the same of the
    /// scatter of counts.
    pub layout_sd: f64,
    /// Labels of targets whose every step has the value 0: runs that were broken.
    pub broken: Vec<String>,
    /// Steps in the order of reports.
    pub steps: Vec<StepLadder>,
}

/// An order of targets that does not fit the results.
#[derive(Debug, Error)]
pub enum OrderError {
    /// The order names a target that the results lack.
    #[error("unknown target `{0}` in the order; the targets are: {1}")]
    Unknown(String, String),
    /// The order names a target twice.
    #[error("the order names `{0}` twice")]
    Twice(String),
}

/// One ladder for each DBMS with two or more targets. Where one version has several
/// configurations, each configuration is a ladder; else configurations may change along it, as
/// later versions need others.
///
/// # Errors
/// The order names targets that are not there, or twice. Targets that it leaves out are left out.
pub fn ladders(comparison: &Comparison, of: &LadderOptions) -> Result<Vec<Ladder>, OrderError> {
    let places = places(comparison, of.order.as_deref())?;
    let mut families: BTreeMap<String, Vec<Rung>> = BTreeMap::new();
    for place in places {
        let family = family(&comparison.targets[place]);
        families.entry(family).or_default().push(rung(comparison, place));
    }
    let ladder = |(family, rungs): (String, Vec<Rung>)| {
        let (rungs, by_version) = match of.order {
            Some(_) => (rungs, false),
            None => sorted(rungs),
        };
        let layout_sd = changes::build_sd(of.metric, comparison.rules.layout_sd());
        let (broken, rungs): (Vec<Rung>, Vec<Rung>) =
            rungs.into_iter().partition(|rung| is_broken(comparison, rung.target, of.metric));
        let chains = chains(&rungs, of.branches && by_version);
        let steps = changes::steps(comparison, &rungs, of.metric, (&chains, layout_sd));
        Ladder {
            family,
            metric: of.metric.name().to_owned(),
            rungs,
            chains,
            by_version,
            layout_sd,
            broken: broken.into_iter().map(|rung| rung.label).collect(),
            steps,
        }
    };
    let families = families.into_iter().flat_map(|(family, rungs)| by_config(family, rungs));
    let several = families.filter(|(_, rungs)| rungs.len() > 1);
    Ok(several.map(ladder).filter(|ladder| !ladder.steps.is_empty()).collect())
}

/// Places of targets: all, or those of an order.
fn places(comparison: &Comparison, order: Option<&[String]>) -> Result<Vec<usize>, OrderError> {
    let targets = &comparison.targets;
    let Some(order) = order else { return Ok((0..targets.len()).collect()) };
    let mut places = Vec::new();
    for label in order {
        let Some(place) = targets.iter().position(|target| target.label == *label) else {
            let labels: Vec<&str> = targets.iter().map(|target| target.label.as_str()).collect();
            return Err(OrderError::Unknown(label.clone(), labels.join(", ")));
        };
        if places.contains(&place) {
            return Err(OrderError::Twice(label.clone()));
        }
        places.push(place);
    }
    Ok(places)
}

/// True if the target has values of the metric, and all of them are 0.
fn is_broken(comparison: &Comparison, target: usize, metric: Metric) -> bool {
    let of_target = comparison.steps.iter().map(|step| &step.targets[target]);
    let samples = of_target.flat_map(|one| &one.samples);
    let mut values = samples.filter_map(|sample| sample.get(metric)).peekable();
    values.peek().is_some() && values.all(|value| value == 0.0)
}
