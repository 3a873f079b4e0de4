//! Errors of configs.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use rqps_model::build::{Dbms, Version};

/// An error of a config.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// No file and nothing shipped has that name.
    #[error(
        "find the config '{name}' of {dbms}: no {looked}; shipped configs: {shipped}; create that \
         file, or give the path of one{}",
        if name.contains(',') { "; a setting of its own is KEY=VALUE" } else { "" }
    )]
    Unknown {
        /// The requested name.
        name: String,
        /// The DBMS.
        dbms: Dbms,
        /// Files that do not exist.
        looked: String,
        /// Names that do.
        shipped: String,
    },
    /// The file is there and cannot be read.
    #[error("read the config {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A folder, or a file that is no text: most likely a build.
    #[error(
        "use {path} as a config of {dbms}: it is not a text file; to use it as a build, write \
         {dbms}={path}"
    )]
    NoText {
        /// The path.
        path: PathBuf,
        /// The DBMS.
        dbms: Dbms,
    },
    /// A setting without which the config is not what its name says.
    #[error(
        "use the config '{name}' for {dbms} {version}: '{setting}' needs {dbms} {least} or later; \
         use another config or a later version"
    )]
    TooOld {
        /// Name of the config.
        name: String,
        /// The DBMS.
        dbms: Dbms,
        /// The version that it was to be used for.
        version: Version,
        /// The line of it.
        setting: String,
        /// The first version that knows the setting.
        least: String,
    },
    /// A guard or a size that nobody knows.
    #[error("understand line {line} of the config '{name}' of {dbms}: {what}")]
    Syntax {
        /// Name of the config.
        name: String,
        /// The DBMS.
        dbms: Dbms,
        /// From 1.
        line: usize,
        /// The problem, and the valid form.
        what: String,
    },
}
