//! The data that a report reads.

use std::collections::{BTreeMap, BTreeSet};

use crate::gate::HostLog;
use crate::host::{Host, Tuning};
use crate::run::Run;

/// The content of result folders: the input of the analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dataset {
    /// Fingerprint → host.
    pub hosts: BTreeMap<String, Host>,
    /// Settings of the host at the time of each result set, where they were recorded.
    pub tunings: BTreeMap<String, Tuning>,
    /// Runs in the order of the result sets given, and of their keys within each.
    pub runs: Vec<Run>,
    /// [`Run::result_set`] → its `gate.json`; nothing for a set without one.
    pub gates: BTreeMap<String, HostLog>,
    /// Fields of `host.json` and `gate.json` that this rqps does not know: `host.json: cpu_flags`.
    pub unknown: BTreeSet<String>,
    /// Parts in a form of a newer rqps, which were left out.
    pub left_out: Vec<LeftOut>,
}

/// A file that is left out because a field of it has a value that this rqps does not know. What it
/// holds cannot be compared: the value may say what was measured, or how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The file; all of its run folder is left out with a file of a run.
    pub file: String,
    /// The field.
    pub field: String,
    /// Its value.
    pub value: String,
}
