//! A bisection as data: which versions are searched for what, and what was measured so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::label;
use crate::metric::Metric;
use crate::target::Target;
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
    #[serde(deserialize_with = "label::checked")]
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
