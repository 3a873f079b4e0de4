//! A workload that a program of the user's carries out (docs/clients.md).

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::benchmark::Group;
use crate::sql_workload::PinnedFile;

/// The workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientShape {
    /// The absolute path of the program.
    pub program: PathBuf,
    /// The program with its SHA-256: another file of that name is refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, PinnedFile>,
    /// Options for the program, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Seconds that an answer may take beyond the time that it was asked for; `None` for
    /// [`ClientShape::TIMEOUT`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_seconds: Option<f64>,
    /// The declarations of the program.
    pub declared: ClientDeclared,
}

impl ClientShape {
    /// Seconds that an answer may take, unless a setting says more.
    pub const TIMEOUT: f64 = 60.0;
}

/// What a program says of itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientDeclared {
    /// Its steps, in the order of a run.
    pub steps: Vec<ClientStep>,
    /// True if it loads data.
    #[serde(default)]
    pub load: bool,
}

/// A step of a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientStep {
    /// Its name.
    pub name: String,
    /// Its group in reports. Whatever is no `point` and no `range` may write.
    #[serde(default = "writes")]
    pub group: Group,
    /// True parameters, for readers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

fn writes() -> Group {
    Group::Write
}

impl ClientStep {
    /// True if it changes no data.
    pub fn only_reads(&self) -> bool {
        matches!(self.group, Group::Point | Group::Range)
    }
}

/// The work of a step's clients, or of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientWork {
    /// The program.
    pub program: PathBuf,
    /// Its options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Seconds that an answer may take beyond the time that it was asked for.
    pub timeout_seconds: f64,
    /// The step; empty for a load.
    pub step: String,
    /// True if it changes no data.
    pub only_reads: bool,
}
