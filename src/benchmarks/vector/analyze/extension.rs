//! What vector search adds to the analysis.

use super::{caveats, equal_recall};
use crate::analyze::Extension;
use crate::domain::vector::SearchPoint;

/// The hooks of this benchmark. Indexes have parameters of their own on each DBMS, and steps are
/// named after them.
pub(crate) const EXTENSION: Extension = Extension {
    is_of_one_dbms: |step| SearchPoint::is_named_in(&step.name),
    derive: equal_recall::steps,
    caveats: caveats::recalls,
    ..Extension::none("vector")
};
