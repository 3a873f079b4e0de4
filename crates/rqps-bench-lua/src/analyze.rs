//! Hooks of scripts in the analysis.

use rqps_analysis::Extension;

/// The hooks: a plan cannot know whether a script writes.
pub(crate) const EXTENSION: Extension =
    Extension { groups_by_facts: true, ..Extension::none("lua") };
