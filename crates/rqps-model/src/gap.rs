//! A gap between two targets as data: what is searched for, and what was measured so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::label;

/// The version of [`GapLog`] on disk.
pub const GAP_FORMAT: u32 = 1;

/// The content of the folder of a gap.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapLog {
    /// [`GAP_FORMAT`].
    pub format: u32,
    /// The search.
    pub request: GapRequest,
    /// What was measured, in order.
    pub rounds: Vec<GapRound>,
}

/// Two targets, and what is to be explained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapRequest {
    /// The plan by which rounds are measured, as a plan file; its targets are the two ends.
    pub plan: String,
    /// The step.
    pub step: String,
    /// True if what the second target has is put into the first.
    pub from_b: bool,
    /// Seconds for everything.
    pub budget_seconds: f64,
    /// Effects below this share do not matter.
    pub least: f64,
}

/// Targets that were measured beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapRound {
    /// The result folder, in the folder of the gap.
    #[serde(deserialize_with = "label::checked")]
    pub folder: String,
    /// Seconds, loads included.
    pub seconds: f64,
    /// What was measured.
    pub arms: Vec<GapArm>,
    /// Logarithms of the rates, by block in the order of the arms; none of one that could not be
    /// measured.
    pub blocks: Vec<Vec<Option<f64>>>,
    /// Label of a target → why it could not be measured, in the words of its server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub faults: BTreeMap<String, String>,
}

/// One of the targets of a round.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GapArm {
    /// The target that the other is to become like.
    Goal,
    /// The target that is changed, with these settings of the goal; without any, as it is.
    Base(Vec<String>),
}

/// A named, reversible change of a target towards another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intervention {
    /// The setting.
    pub name: String,
    /// Its value on the target that is changed.
    pub from: String,
    /// The value that it gets.
    pub to: String,
    /// Lines of a config that make the change.
    pub lines: Vec<String>,
    /// What the server must then say that it has; empty where it tells nothing.
    pub effective: BTreeMap<String, String>,
    /// True if tables must be loaded with it.
    pub loads_anew: bool,
    /// The reason why this is one change, if it is more than a value; else empty.
    pub about: String,
}
