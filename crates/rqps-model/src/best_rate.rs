//! The search for the highest rate that keeps a limit, as data: what is searched for, and what was
//! measured so far.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::target;

/// The version of [`RateLog`] on disk.
pub const RATE_FORMAT: u32 = 1;

/// The content of the folder of such a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateLog {
    /// [`RATE_FORMAT`].
    pub format: u32,
    /// The search.
    pub request: RateRequest,
    /// What was measured, in order.
    pub rounds: Vec<RateRound>,
}

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
    #[serde(deserialize_with = "target::checked_label")]
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
