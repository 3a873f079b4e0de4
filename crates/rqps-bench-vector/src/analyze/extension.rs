//! Vector search's hooks in the analysis.

use super::{caveats, equal_recall};
use rqps_analysis::Extension;

/// The hooks.
pub(crate) const EXTENSION: Extension = Extension {
    derive: equal_recall::steps,
    caveats: caveats::recalls,
    ..Extension::none("vector")
};
