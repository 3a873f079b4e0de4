//! A bisection as data: which versions are searched for what, and what was measured so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::target::{self, Target};
use crate::verdict::Rules;

/// The version of [`BisectionLog`] on disk.
pub const BISECTION_FORMAT: u32 = 1;

/// The content of a bisection's folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BisectionLog {
    /// [`BISECTION_FORMAT`].
    pub format: u32,
    /// The search.
    pub request: BisectionRequest,
    /// Measurements in order.
    pub entries: Vec<BisectionEntry>,
}

/// A search for the version that changed a step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BisectionRequest {
    /// The plan by which versions are measured, as a plan file; its targets are the ends.
    pub plan: String,
    /// The step.
    pub step: String,
    /// The metric; `None` for the one that shows the difference of the ends best.
    pub metric: Option<Metric>,
    /// Versions in order: the baseline first, the candidate last.
    pub versions: Vec<BisectedVersion>,
    /// By which verdicts are given.
    pub rules: Rules,
}

/// One of the versions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BisectedVersion {
    /// The measured target.
    pub target: Target,
    /// Date and subject of a commit in one line; empty for other versions.
    pub about: String,
    /// Relative probability that it differs from the version before it; 0 for a commit of
    /// documentation.
    pub mass: f64,
}

/// Something that was measured, or could not be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BisectionEntry {
    /// Values of one version, or of a pair.
    Measured(BisectionMeasurement),
    /// A version that cannot be measured.
    Lost {
        /// Its place among the versions.
        place: usize,
        /// The reason.
        reason: String,
    },
}

/// Values of one version, or of a pair.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BisectionMeasurement {
    /// The measurement.
    pub what: BisectionPass,
    /// Places of the versions: one for counts, two for rates.
    pub places: Vec<usize>,
    /// The result folder, in the folder of the bisection.
    #[serde(deserialize_with = "target::checked_label")]
    pub folder: String,
    /// Seconds, including builds.
    pub seconds: f64,
    /// Name of a metric → its values: those of the version by repeat, or ln(second / first) by
    /// block.
    pub values: BTreeMap<String, Vec<f64>>,
}

/// The kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BisectionPass {
    /// Instructions of one version.
    Count,
    /// Rates and costs of two versions in the same blocks.
    Rate,
    /// Another measurement of the found pair, for a verdict on blocks that the search did not see.
    Check,
}

impl BisectionPass {
    /// The word in names of folders.
    pub fn word(self) -> &'static str {
        match self {
            BisectionPass::Count => "count",
            BisectionPass::Rate => "rate",
            BisectionPass::Check => "check",
        }
    }
}

// A gap between two targets as data: what is searched for, and what was measured so far.

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
    #[serde(deserialize_with = "target::checked_label")]
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
