//! Possible causes of a difference between targets, as data.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::counters::MovedCounter;

/// Facts in a comparison's run folders beside its numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Causes {
    /// Settings of the servers, defaults included, for each target of the comparison; empty if the
    /// run folders do not hold those of all.
    pub settings: Vec<SettingsOfTarget>,
    /// The explained steps, in the order of the comparison.
    pub steps: Vec<CausesOfStep>,
    /// Files that could not be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// Settings of a server that differ from those of other targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SettingsOfTarget {
    /// Settings that all targets have, with other values.
    pub differing: BTreeMap<String, String>,
    /// Settings that another target does not have.
    pub unknown_elsewhere: Vec<String>,
}

/// Differences in one step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CausesOfStep {
    /// The step.
    pub name: String,
    /// For each target of the comparison: counters of the DBMS that differ from the baseline's.
    pub counters: Vec<Vec<MovedCounter>>,
}

impl Causes {
    /// The differences in a step; `None` if it is not explained.
    pub fn of_step(&self, step: &str) -> Option<&CausesOfStep> {
        self.steps.iter().find(|causes| causes.name == step)
    }
}
