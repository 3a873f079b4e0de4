//! What is known of a gap at the end, as reports show it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::candidates::LeftOut;
use rqps_model::gap::Intervention;
use rqps_stats::Interval;
use rqps_stats::factors::Account;

/// The gap between two targets in a step. All effects are logarithms of ratios of rates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Gap {
    /// The step.
    pub step: String,
    /// Label of the target that was changed.
    pub base: String,
    /// Label of the target that it was to become like.
    pub goal: String,
    /// The goal against the base, as both are; `None` if they cannot be measured.
    pub ends: GapEnds,
    /// Settings that differ and could be changed.
    pub candidates: usize,
    /// Changes that are worth something, the largest first; the same order as in the account.
    pub causes: Vec<Cause>,
    /// What they are worth; `None` if there are none.
    pub account: Option<Account>,
    /// Changes of which too little is known.
    pub unknown: Vec<Unknown>,
    /// Changes that cannot be made, with the reason, in the server's words where it has some.
    pub impossible: BTreeMap<String, String>,
    /// Settings that differ and are no change.
    pub left_out: Vec<LeftOut>,
    /// What was spent.
    pub cost: GapCost,
    /// Smaller effects do not matter.
    pub least: f64,
}

/// The two targets as they are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GapEnds {
    /// ln(goal / base).
    pub ln: f64,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// True if they were shown to differ.
    pub differ: bool,
}

/// One change, or several that do something only together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    /// The changes.
    pub changes: Vec<Intervention>,
}

impl Cause {
    /// `name = value`, or the number of changes and their names.
    pub fn text(&self) -> String {
        match self.changes.as_slice() {
            [one] => format!("{} = {}", one.name, if one.to.is_empty() { "''" } else { &one.to }),
            several => {
                let names: Vec<&str> = several.iter().map(|it| it.name.as_str()).collect();
                format!("{} settings together: {}", several.len(), names.join(", "))
            }
        }
    }
}

/// Changes that stay undecided.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unknown {
    /// Their names.
    pub names: Vec<String>,
    /// The interval of their effect; `None` if time did not suffice to measure them.
    pub interval: Option<Interval>,
}

/// The costs of a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct GapCost {
    /// Rounds.
    pub rounds: usize,
    /// Runs of one target in one block.
    pub runs: usize,
    /// Seconds, loads included.
    pub seconds: f64,
}
