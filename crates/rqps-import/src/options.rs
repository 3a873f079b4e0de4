//! Options of an import.

use std::path::PathBuf;

use super::error::ImportError;

/// Options of the command line beside format and paths.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// Take published means of vmstat even where samples would give better ones.
    pub compat: bool,
    /// The disk under the data, as iostat names it.
    pub device: Option<String>,
    /// Clients of the columns of a table.
    pub clients: Vec<u32>,
    /// Names of the steps of a table that has none.
    pub steps: Vec<String>,
    /// CPUs of the host.
    pub cpus: Option<u32>,
    /// Labels of rows or columns of a table that does not tell its targets.
    pub labels: Vec<String>,
    /// True if rows of one target and step are repetitions, not targets of their own.
    pub repeats: bool,
    /// Rows of this size only, as tags have it: `20m`.
    pub size: Option<String>,
    /// Allowed differences within the set, for ratios across them.
    pub across: Across,
}

/// Properties that may differ between the targets of one import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Across {
    /// The number of rows.
    pub sizes: bool,
    /// The machine.
    pub hosts: bool,
}

/// A file or folder with its prefix: `LABEL=PATH`, `LABEL/STEP=PATH`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The path.
    pub path: PathBuf,
    /// The target it belongs to.
    pub label: Option<String>,
    /// The step it belongs to.
    pub step: Option<String>,
}

impl Named {
    /// Takes a word of the command line apart. What exists as it is written is a path, whatever it
    /// holds.
    pub fn of(word: &str) -> Named {
        let plain = Named { path: PathBuf::from(word), label: None, step: None };
        if plain.path.exists() {
            return plain;
        }
        let Some((label, path)) = word.split_once('=').filter(|(label, _)| !label.is_empty())
        else {
            return plain;
        };
        let (label, step) = match label.split_once('/') {
            Some((label, step)) if !label.is_empty() && !step.is_empty() => (label, Some(step)),
            _ => (label, None),
        };
        Named {
            path: PathBuf::from(path),
            label: Some(label.to_owned()),
            step: step.map(str::to_owned),
        }
    }
}

/// Paths of formats whose files say themselves what they are of.
pub(crate) fn unnamed(paths: &[Named]) -> Result<Vec<PathBuf>, ImportError> {
    if let Some(named) = paths.iter().find(|named| named.label.is_some()) {
        let path = named.path.display();
        return Err(ImportError::Words(format!(
            "`{path}`: files of this format name their targets; leave out the label before the path"
        )));
    }
    Ok(paths.iter().map(|named| named.path.clone()).collect())
}
