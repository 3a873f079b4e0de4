//! The layout noise of a DBMS on a host: rates of one source whose functions are linked in several
//! orders. It holds what was measured; τ follows from it.

use serde::{Deserialize, Serialize};

use crate::build::Dbms;

/// The format version of layout files that this program writes.
pub const LAYOUT_FORMAT: u32 = 1;

/// Rates of relinked builds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutRates {
    /// [`LAYOUT_FORMAT`].
    pub format: u32,
    /// The fingerprint of the host. The rates count for no other.
    pub host_fingerprint: String,
    /// RFC 3339, UTC: when the last run was finished.
    pub made: String,
    /// Version of rqps that measured.
    pub rqps_version: String,
    /// The target word without its order of linking.
    pub target: String,
    /// The DBMS that was built.
    pub dbms: Dbms,
    /// Number of orders of linking.
    pub layouts: u32,
    /// Each step that was measured.
    pub steps: Vec<LayoutStep>,
}

/// Rates of one step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutStep {
    /// Name of the step.
    pub step: String,
    /// ln(rate in 1/s): a list for each order of linking, with a value for each block.
    pub rates: Vec<Vec<f64>>,
}
