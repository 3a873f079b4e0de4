//! The microbenchmarks' hooks in the analysis.

use super::steps::parameters_of_name;
use rqps_analysis::Extension;

/// The hooks.
pub(crate) const EXTENSION: Extension =
    Extension { upgrade: parameters_of_name, ..Extension::none("sysbench") };
