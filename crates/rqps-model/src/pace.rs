//! The pace of clients.

use serde::{Deserialize, Serialize};

/// The times at which a client sends events.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// After the reply to the one before.
    Closed,
    /// On a seeded Poisson schedule; response time counts from the intended start.
    Open {
        /// Events per second of all clients together.
        events_per_second: f64,
    },
}
