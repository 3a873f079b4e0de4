//! Findings of a gate.

use serde::Serialize;

use rqps_model::metric::Metric;
use rqps_stats::Interval;

/// The weight of a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Ends the gate with a regression.
    Regression,
    /// Something was not measured.
    #[default]
    Failure,
    /// No verdict, or a difference that is not significant enough.
    Unclear,
    /// A small loss: worse, but by less than counts.
    Small,
    /// Worse, but allowed for by the rules.
    Allowed,
    /// A regression that fresh sittings show not to be one.
    NotConfirmed,
    /// Better.
    Gain,
}

impl Level {
    /// The word at the beginning of a line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Regression => "REGRESSION",
            Level::Failure => "FAILED",
            Level::Unclear => "UNCLEAR",
            Level::Small => "SMALL LOSS",
            Level::Allowed => "ALLOWED",
            Level::NotConfirmed => "FINE",
            Level::Gain => "GAIN",
        }
    }
}

/// One thing to look at.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Finding {
    /// Its weight.
    pub level: Level,
    /// The target; empty where all are meant.
    pub target: String,
    /// The step; empty where all or several are meant.
    pub step: String,
    /// Several steps with the same finding.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<String>,
    /// The metric, if one is meant.
    pub metric: Option<Metric>,
    /// The verdict in its word for the metric; empty where there is none.
    pub verdict: String,
    /// Target / base.
    pub ratio: Option<f64>,
    /// Its moderated interval.
    pub interval: Option<Interval>,
    /// Pairs.
    pub pairs: usize,
    /// p against τ, adjusted by Holm.
    pub holm: Option<f64>,
    /// In words: associated costs, why it is unclear, why it is allowed.
    pub text: String,
}

/// A finding without a metric.
pub(super) fn plain(level: Level, target: &str, step: &str, text: String) -> Finding {
    Finding { level, target: target.to_owned(), step: step.to_owned(), text, ..Finding::default() }
}
