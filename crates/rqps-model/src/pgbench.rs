//! Scripts of pgbench as a workload: what is loaded, and what each step runs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::sql_name::PlainName;

/// The workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgbenchShape {
    /// The standard tables have 100000 accounts times this.
    pub scale: u32,
    /// The protocol of statements.
    #[serde(default)]
    pub protocol: PgbenchProtocol,
    /// Variables and their values (`-D`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub define: BTreeMap<String, String>,
    /// Largest number of attempts at a transaction that fails to serialize or in a deadlock; 0
    /// means no limit.
    pub max_tries: u32,
    /// Other errors of a statement end their transaction, not the step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub continue_on_error: bool,
    /// A new connection for each transaction.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub connect: bool,
    /// Standard tables are vacuumed before each step.
    pub vacuum: bool,
    /// The standard tables.
    #[serde(default)]
    pub tables: PgbenchTables,
    /// The scripts that are files, by name. A plan holds their text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, PgbenchFile>,
    /// The steps in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step: Vec<PgbenchStep>,
}

/// The protocol of statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PgbenchProtocol {
    /// Text that contains the values of variables.
    #[default]
    Simple,
    /// Text and values apart, parsed each time.
    Extended,
    /// Prepared on first use in a session.
    Prepared,
}

/// Options of the standard tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgbenchTables {
    /// `false` where the user's own tables are there already.
    pub made: bool,
    /// Letters of `-I`: d drops, t makes tables, g and G fill them, v vacuums, p adds primary keys,
    /// f foreign keys.
    pub steps: String,
    /// Share of pages that is filled, per cent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fillfactor: Option<u32>,
    /// Partitions of the accounts; 0 for none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub partitions: u32,
    /// Partitions by hash instead of ranges.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_hash: bool,
    /// Without a write-ahead log.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlogged: bool,
    /// Tablespace of the tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tablespace: Option<PlainName>,
    /// Tablespace of the indexes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index_tablespace: Option<PlainName>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Default for PgbenchTables {
    fn default() -> PgbenchTables {
        PgbenchTables {
            made: true,
            steps: "dtgvp".to_owned(),
            fillfactor: None,
            partitions: 0,
            by_hash: false,
            unlogged: false,
            tablespace: None,
            index_tablespace: None,
        }
    }
}

/// A script that is a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgbenchFile {
    /// SHA-256 of its text, in hex.
    pub sha256: String,
    /// Its text.
    pub text: String,
}

/// A step: one script, or a mix of several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgbenchStep {
    /// Its scripts; a client draws one by weight for each transaction.
    pub scripts: Vec<PgbenchScript>,
}

/// A script of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PgbenchScript {
    /// The name of a built-in script, or of a file.
    pub name: String,
    /// Its share is its weight divided by the sum of all weights.
    pub weight: u32,
}

/// A load of the standard tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PgbenchLoad {
    /// See [`PgbenchShape::scale`].
    pub scale: u32,
    /// Options of the tables.
    pub tables: PgbenchTables,
    /// The storage engine of MySQL, where one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_engine: Option<String>,
}

/// The work of a step's clients.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PgbenchWork {
    /// The scripts.
    pub scripts: Vec<WeightedText>,
    /// The protocol of statements.
    pub protocol: PgbenchProtocol,
    /// Variables that are set when a client begins.
    pub define: BTreeMap<String, String>,
    /// See [`PgbenchShape::max_tries`].
    pub max_tries: u32,
    /// See [`PgbenchShape::continue_on_error`].
    pub continue_on_error: bool,
    /// See [`PgbenchShape::connect`].
    pub connect: bool,
    /// Vacuum the small standard tables and empty the history first.
    pub vacuum: bool,
}

/// The text of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightedText {
    /// The name in messages.
    pub name: String,
    /// Its weight.
    pub weight: u32,
    /// Its text.
    pub text: String,
}
