//! A workload of scripts for sysbench: which scripts, what they declare, and with which options.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sql_workload::PinnedFile;

/// The workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LuaShape {
    /// Scripts as the user named them, in the order of their steps.
    pub scripts: Vec<String>,
    /// Options of the scripts as they were given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
    /// Scripts and the modules that they require, by path, each with its SHA-256: another file of
    /// that name is refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, PinnedFile>,
    /// Permissions of scripts.
    #[serde(default, skip_serializing_if = "LuaRights::is_full")]
    pub rights: LuaRights,
    /// True if scripts may run programs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shell: bool,
    /// Commands of the scripts that run before each of their steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
    /// Commands of the scripts that run after each of their steps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Bytes that a state of a script may take; `None` for a share of the host's memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The driver that scripts are told of on SQLite, which sysbench has none for; empty for
    /// `sqlite`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver: String,
    /// Seconds between two calls of a script's own reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report_interval: Option<f64>,
    /// Events of all clients after which a step ends; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<u64>,
    /// The generators of random numbers.
    #[serde(default, skip_serializing_if = "LuaRandom::is_default")]
    pub random: LuaRandom,
    /// Codes of MySQL's errors after which an event begins again; empty for sysbench's own, `all`
    /// for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_errors: Vec<String>,
    /// True to put values into the statements, as `--db-ps-mode=disable` does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub plain_statements: bool,
    /// The declarations of each script.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub declared: Vec<LuaScript>,
}

/// Permissions of a script.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LuaRights {
    /// Whatever Lua can.
    #[default]
    Full,
    /// No programs, no files to write, no C code: a guard against accidents.
    None,
}

impl LuaRights {
    /// True without limits.
    pub fn is_full(&self) -> bool {
        *self == LuaRights::Full
    }
}

/// A script, and what it declares.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LuaScript {
    /// Name of its step.
    pub name: String,
    /// The absolute path.
    pub path: PathBuf,
    /// Its options with their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<LuaOption>,
    /// True if it declares options; without any it takes all that are given, as globals.
    #[serde(default)]
    pub has_options: bool,
    /// Commands, and whether each runs on all threads.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub commands: BTreeMap<String, bool>,
}

/// An option of a script.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LuaOption {
    /// Its name with underscores.
    pub name: String,
    /// `bool`, `number`, `size`, `string`, `list` or `file`.
    pub kind: String,
    /// Its value as text.
    pub value: String,
}

/// The distribution of numbers between two others.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LuaRandom {
    /// The default distribution.
    pub kind: RandomType,
    /// Draws that make one value of `gaussian`.
    pub iterations: u32,
    /// Width of the hot band of `special`, per cent.
    pub percent: u32,
    /// Share of the draws that go there, per cent.
    pub hot_percent: u32,
    /// The shape of `pareto`.
    pub pareto_h: f64,
    /// The exponent of `zipfian`.
    pub zipfian_exponent: f64,
}

impl Default for LuaRandom {
    fn default() -> LuaRandom {
        LuaRandom {
            kind: RandomType::Special,
            iterations: 12,
            percent: 1,
            hot_percent: 75,
            pareto_h: 0.2,
            zipfian_exponent: 0.8,
        }
    }
}

impl LuaRandom {
    /// True for what sysbench 1.0 does without options.
    pub fn is_default(&self) -> bool {
        *self == LuaRandom::default()
    }
}

/// Distributions by sysbench's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RandomType {
    /// A hot band in the middle: the default of 1.0.
    Special,
    /// All alike: the default of 1.1.
    Uniform,
    /// Around the middle.
    Gaussian,
    /// Hot at the beginning.
    Pareto,
    /// By rank.
    Zipfian,
}

/// The work of a step's clients, or of a load's threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LuaWork {
    /// The script.
    pub script: LuaScript,
    /// Commands before the step; for a load, what loads.
    pub commands: Vec<String>,
    /// Commands after the step.
    #[serde(default)]
    pub after: Vec<String>,
    /// For a load: other scripts with a `prepare`, which does not run.
    #[serde(default)]
    pub unprepared: Vec<String>,
    /// Clients, which the script knows as threads.
    pub clients: u32,
    /// Seconds that the script is told of.
    pub seconds: f64,
    /// Permissions of the script.
    pub rights: LuaRights,
    /// True if it may run programs.
    #[serde(default)]
    pub shell: bool,
    /// Bytes that a state of it may take.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// The driver that it is told of on SQLite; empty for `sqlite`.
    #[serde(default)]
    pub driver: String,
    /// Seconds between two of its own reports.
    #[serde(default)]
    pub report_interval: Option<f64>,
    /// Events of all clients after which the step ends.
    #[serde(default)]
    pub events: Option<u64>,
    /// The generators of random numbers.
    pub random: LuaRandom,
    /// Codes of MySQL's errors after which an event begins again.
    pub ignored_errors: Vec<String>,
    /// True to put values into the statements.
    pub plain_statements: bool,
}

/// The declarations of a script that runs without a database.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LuaDeclared {
    /// Its options with their defaults, by name.
    pub options: Vec<LuaOption>,
    /// True if it declares options, be it none.
    pub has_options: bool,
    /// Commands, and whether each runs on all threads.
    pub commands: BTreeMap<String, bool>,
    /// Functions that have a meaning to sysbench.
    pub functions: Vec<String>,
    /// Files of the modules that it requires.
    pub modules: Vec<PathBuf>,
    /// The script's own words about its options, by their names.
    #[serde(default)]
    pub about: BTreeMap<String, String>,
    /// What its own `help` prints, if it was asked for.
    #[serde(default)]
    pub help: String,
}
