//! Prerequisites that steps create for later steps.

use serde::{Deserialize, Serialize};

/// What steps make and others rest on: an index rests on its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prerequisite {
    /// The filled table.
    Table,
    /// The index on it.
    Index,
}
