//! Named settings of a DBMS, with a hash of their text.

use serde::{Deserialize, Serialize};

/// Settings as they were handed to the DBMS: a my.cnf, a postgresql.conf fragment, a list of
/// PRAGMAs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `default`, or the name after the colon of the target word.
    pub name: String,
    /// The text after version guards and sizes were filled in: exactly what the DBMS read.
    pub text: String,
    /// The first 12 hex digits of the SHA-256 of `text`.
    pub hash: String,
}

/// The config of every DBMS that leaves its build as it is.
pub const INSTALLED: &str = "installed";

/// True for [`INSTALLED`], and for changes of it, whose names continue with a plus.
pub fn is_installed(name: &str) -> bool {
    name.strip_prefix(INSTALLED).is_some_and(|rest| rest.is_empty() || rest.starts_with('+'))
}
