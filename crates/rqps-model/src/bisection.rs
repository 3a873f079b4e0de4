//! A bisection as data: which versions are searched for what, and what was measured so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::build::{self, Target};
use crate::metric::Metric;
use crate::verdict::Rules;

/// The version of a [`CampaignLog`] on disk.
pub const CAMPAIGN_FORMAT: u32 = 1;

/// The content of the folder of a campaign: what was asked for, and what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CampaignLog<Request, Round> {
    /// [`CAMPAIGN_FORMAT`].
    pub format: u32,
    /// The search.
    pub request: Request,
    /// Measurements in order; a bisection called them `entries` once.
    #[serde(alias = "entries")]
    pub rounds: Vec<Round>,
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
    #[serde(deserialize_with = "build::checked_label")]
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
    /// True if what was found is measured in all steps of the plan at the end.
    #[serde(default)]
    pub all_steps: bool,
}

/// Targets that were measured beside each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GapRound {
    /// The result folder, in the folder of the gap.
    #[serde(deserialize_with = "build::checked_label")]
    pub folder: String,
    /// Seconds, loads included.
    pub seconds: f64,
    /// What was measured.
    pub arms: Vec<GapArm>,
    /// Logarithms of the rates in the step, by block in the order of the arms; none of one that could
    /// not be measured.
    pub blocks: Vec<Vec<Option<f64>>>,
    /// True if all steps of the plan were measured.
    #[serde(default)]
    pub all_steps: bool,
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

// The search for the highest rate that keeps a limit, as data: what is searched for, and what was
// measured so far.

/// Targets and a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateRequest {
    /// The plan by which rounds are measured, as a plan file.
    pub plan: String,
    /// The step.
    pub step: String,
    /// The metric that has the limit, by name: a percentile of response times.
    pub metric: String,
    /// The limit, in milliseconds.
    pub limit_ms: f64,
    /// Seconds for everything.
    pub budget_seconds: f64,
}

/// One window of each target at one rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateRound {
    /// The result folder, in the folder of the search.
    #[serde(deserialize_with = "build::checked_label")]
    pub folder: String,
    /// Seconds, loads included.
    pub seconds: f64,
    /// Events per second of all clients; none for the round that sends as fast as clients can.
    pub rate: Option<f64>,
    /// Label of a target → its window, where it has one.
    pub windows: BTreeMap<String, RateWindow>,
    /// Label of a target → why it could not be measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub faults: BTreeMap<String, String>,
}

/// What a target did in a window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateWindow {
    /// Events per second that ended.
    pub events_per_second: f64,
    /// Events.
    pub events: u64,
    /// Events that began again after an error.
    pub errors: u64,
    /// The metric, in milliseconds.
    pub response_ms: f64,
}

/// Shares of events: more errors than this break the limit, whatever the response times.
const ERRORS_MOST: f64 = 0.001;
/// A target that ends fewer events than are due, beyond chance, falls behind.
const KEPT_LEAST: f64 = 0.98;

impl RateWindow {
    /// True if the limit was kept: by response times, without errors, and without falling behind.
    pub fn keeps(&self, rate: f64, limit_ms: f64) -> bool {
        let events = self.events as f64;
        // Arrivals are Poisson: three standard deviations of their number.
        let least = rate * (KEPT_LEAST - 3.0 / events.max(1.0).sqrt());
        self.response_ms <= limit_ms
            && self.errors as f64 <= ERRORS_MOST * events
            && self.events_per_second >= least
    }
}
