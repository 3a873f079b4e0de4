//! The result of a bisection, as reports show it.

use serde::Serialize;

use rqps_model::verdict::Verdict;
use rqps_stats::Interval;

/// The result of a bisection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bisection {
    /// The step.
    pub step: String,
    /// Name of the metric that was searched by.
    pub metric: String,
    /// The reason for this metric.
    pub reason: String,
    /// All versions, the baseline first.
    pub versions: Vec<VersionFacts>,
    /// Candidate / baseline of that metric.
    pub ends: f64,
    /// Its 95 % interval; `None` for counts.
    pub ends_interval: Option<Interval>,
    /// True if the ends differ. Otherwise rqps does not search.
    pub reproduced: bool,
    /// The versions that changed the step, the largest change first. Empty if the difference is
    /// spread over many small changes.
    pub culprits: Vec<Culprit>,
    /// Its costs.
    pub cost: BisectionCost,
}

/// One version of a bisection.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VersionFacts {
    /// Its label.
    pub label: String,
    /// Date and subject of a commit; else empty.
    pub about: String,
    /// Relative to the baseline; `None` if it was not measured.
    pub ratio: Option<f64>,
    /// Number of values.
    pub n: usize,
    /// The reason why it could not be measured.
    pub lost: Option<String>,
    /// True if it cannot matter: a commit of documentation or tests.
    pub passed_over: bool,
}

/// A version that changed the step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Culprit {
    /// Places of the versions that may have done it, with their probability.
    pub suspects: Vec<(usize, f64)>,
    /// The last version before the change.
    pub after: usize,
    /// The first version with it.
    pub at: usize,
    /// The change, new / old.
    pub ratio: f64,
    /// Its share of the difference between the ends.
    pub share: f64,
    /// The verdict on fresh blocks of both; `None` if none were measured.
    pub check: Option<CulpritCheck>,
    /// Functions that changed most, with the difference of their instructions per operation.
    pub functions: Vec<(String, f64)>,
}

/// Fresh blocks of the versions before and after a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CulpritCheck {
    /// The metric: the rate.
    pub metric: String,
    /// New / old.
    pub ratio: f64,
    /// Its 95 % interval.
    pub interval: Option<Interval>,
    /// The verdict.
    pub verdict: Verdict,
    /// Number of pairs.
    pub pairs: usize,
    /// The result folder, in that of the bisection.
    pub folder: String,
}

/// The costs of a bisection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct BisectionCost {
    /// Versions that were measured.
    pub versions: usize,
    /// Versions that could not be.
    pub lost: usize,
    /// Counts of one version.
    pub counts: usize,
    /// Blocks of two versions.
    pub blocks: usize,
    /// Seconds, builds and loads included.
    pub seconds: f64,
}
