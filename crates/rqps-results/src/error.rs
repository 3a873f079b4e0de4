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
    /// A value of an enumeration that this rqps does not know: a later one wrote it.
    #[error("read `{}`: {} has the value `{value}`, which this rqps does not know; use the rqps \
             that wrote it, or a later one", path.display(), named(field))]
    UnknownValue {
        /// The file.
        path: PathBuf,
        /// The field; empty where the file does not tell.
        field: String,
        /// Its value.
        value: String,
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

fn named(field: &str) -> String {
    if field.is_empty() { "a field".to_owned() } else { format!("field `{field}`") }
}

/// A way to do without the file.
fn way_around(path: &Path) -> &'static str {
    if path.parent().is_some_and(|folder| folder.ends_with("calibrations")) {
        return ", or remove it and calibrate this host again";
    }
    match path.file_name().and_then(|name| name.to_str()) {
        Some("host.json" | "plan.toml") => "",
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
        let why = source.to_string();
        if let Some((value, _)) = why.strip_prefix(UNKNOWN).and_then(|rest| rest.split_once('`')) {
            return ResultsError::UnknownValue {
                path: path.to_owned(),
                field: field_before(text, line, source.column(), value).unwrap_or_default(),
                value: value.to_owned(),
            };
        }
        let shown = text.lines().nth(line.saturating_sub(1)).unwrap_or("").trim_start();
        let field = shown.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        ResultsError::Malformed {
            path: path.to_owned(),
            line,
            field: field.map(|(name, _)| name.to_owned()),
            why,
        }
    }
}

/// The beginning of serde's error about an unknown value of an enumeration.
const UNKNOWN: &str = "unknown variant `";

/// The last field that is named before a place in a text: the one whose value stands there.
fn field_before(text: &str, line: usize, column: usize, value: &str) -> Option<String> {
    let before: usize = text.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let names = text.get(..before + column)?.rmatch_indices("\":").map(|(end, _)| end);
    let named = |end: usize| {
        let start = text[..end].rfind('"')?;
        Some(&text[start + 1..end])
    };
    // A variant with a payload is written like a field.
    names.filter_map(named).find(|name| *name != value).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::benchmark::Workload;

    #[test]
    fn a_value_of_a_newer_rqps_is_named_with_its_field() {
        let check = |old: &str, new: &str, expected: &str| {
            let text = r#"{"tables":1,"rows":9,"clients":2,"read_seconds":2.0,"write_seconds":2.0,
                "warmup_seconds":0.2,"settle_scale":0.0,"pace":"closed","placement":"together",
                "idle":"os","cache_bytes":null}"#;
            let text = text.replace(old, new);
            let fault = serde_json::from_str::<Workload>(&text).unwrap_err();
            let error = ResultsError::json(Path::new("run.json"), &text, &fault).to_string();
            assert!(error.contains(expected), "{error}");
        };
        let known = |field: &str, value: &str| format!("field `{field}` has the value `{value}`");
        check(r#""os""#, r#""boost""#, &known("idle", "boost"));
        check(r#""together""#, "\n\"far\"", &known("placement", "far"));
        check(r#""closed""#, r#"{"bursts":{"every":2}}"#, &known("pace", "bursts"));
        check(r#"null"#, r#"null,"shape":{"graph":{"nodes":2}}"#, &known("shape", "graph"));
        check("9", "-9", "line 1: invalid value");
    }
}
