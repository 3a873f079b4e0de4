//! What vector search asks for: its scale beyond the common one, and the work of a step.

use serde::{Deserialize, Serialize};

/// Scale and shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VectorShape {}

/// What the clients of a step do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VectorWork {}
