//! Errors of result folders.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// The reason why a result folder could not be written or read. Each text reads after "failed to".
#[derive(Debug, Error)]
pub enum ResultsError {
    /// The operating system refused.
    #[error("{doing} `{}`: {source}", path.display())]
    Io {
        /// `read`, `write`, `create` …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A file is not what it should be.
    #[error("read `{}`, line {line}{}: {why}; restore the file from a copy{}", path.display(),
            in_field(field), way_around(path))]
    Malformed {
        /// The file.
        path: PathBuf,
        /// From 1; 0 if the fault has no line.
        line: usize,
        /// The field or column, if it is known.
        field: Option<String>,
        /// The problem.
        why: String,
    },
    /// Written by a later rqps.
    #[error("read `{}`: its format version is {found}, this rqps knows versions up to {known}; \
             use the rqps that wrote it, or a later one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// [`rqps_model::run::FORMAT`].
        known: u32,
    },
    /// Neither a result set nor a run folder.
    #[error("read results from `{}`: {why}; name the folder that `rqps compare` or `rqps run` \
             wrote (it holds plan.toml), or one run folder in it (it holds run.json)",
             path.display())]
    NotResults {
        /// The folder.
        path: PathBuf,
        /// The missing part.
        why: String,
    },
    /// The folder is in use for something else.
    #[error("keep results in `{}`: {why}; choose another folder with --out, or empty this one",
             path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// The content of the folder.
        why: String,
    },
    /// A name that cannot be a file name, or a value that JSON cannot hold.
    #[error("write {what}: {why}")]
    Unwritable {
        /// The thing.
        what: String,
        /// The problem.
        why: String,
    },
}

fn in_field(field: &Option<String>) -> String {
    field.as_ref().map(|field| format!(", field `{field}`")).unwrap_or_default()
}

/// A way to do without the file.
fn way_around(path: &Path) -> &'static str {
    if path.parent().is_some_and(|folder| folder.ends_with("calibrations")) {
        return ", or remove it and calibrate this host again";
    }
    match path.file_name().and_then(|name| name.to_str()) {
        Some("host.json" | "plan.toml") => "",
        Some("ledger.csv") => ", or remove it: what rqps ships counts then",
        Some("gate.json") => ", or remove it to do without the host log",
        _ => ", or remove its run folder to do without that run",
    }
}

impl ResultsError {
    /// The error of a failed access: the action, and the file.
    pub fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> ResultsError {
        move |source| ResultsError::Io { doing, path: path.to_owned(), source }
    }

    /// A JSON fault, with the field on whose line the parser stopped: records are written one
    /// field a line.
    pub fn json(path: &Path, text: &str, source: &serde_json::Error) -> ResultsError {
        let line = source.line();
        let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or("").trim_start();
        let field = shown.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        ResultsError::Malformed {
            path: path.to_owned(),
            line,
            field: field.map(|(name, _)| name.to_owned()),
            why: source.to_string(),
        }
    }
}
