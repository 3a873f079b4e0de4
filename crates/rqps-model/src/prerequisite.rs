//! Prerequisites that steps create for later steps.

use serde::{Deserialize, Serialize};

/// A prerequisite that one step makes and later ones need: an index needs its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Prerequisite {
    /// The filled table.
    Table,
    /// The index on it.
    Index,
}
