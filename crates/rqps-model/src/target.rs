//! Targets: a build with a configuration and a short label.

use serde::{Deserialize, Serialize};

use crate::build::{BuildSource, Dbms};
use crate::label;

/// One thing to measure. Two targets of a plan never share a label.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Target {
    /// Short and unique in the plan: `mysql-8.0.33`, `before`. Safe in a file name.
    #[serde(deserialize_with = "label::checked")]
    pub label: String,
    /// The product.
    pub dbms: Dbms,
    /// The origin of its build.
    pub source: BuildSource,
    /// Name of the configuration; `default` is shipped for every DBMS.
    pub config: String,
    /// `innodb`, `rocksdb`: only where the DBMS has a choice and one was made.
    pub storage_engine: Option<String>,
}
