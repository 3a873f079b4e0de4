//! Errors of a bundle.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use rqps_model::escape;

/// The reason why a bundle could not be written or read. Each text reads after "failed to".
#[derive(Debug, Error)]
pub enum BundleError {
    /// The operating system refused.
    #[error("{doing} `{}`: {source}", path.display())]
    Io {
        /// `read`, `write`, `create` …
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Some other file.
    #[error("read the bundle `{}`: {}; name a file that `rqps bundle` wrote", path.display(),
            escape::line(why))]
    NotBundle {
        /// The file.
        path: PathBuf,
        /// The kind of file.
        why: String,
    },
    /// Written by a later rqps.
    #[error("read the bundle `{}`: its format version is {found}, this rqps knows versions up to \
             {known}; use the rqps that wrote it, or a later one", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// [`super::BUNDLE_FORMAT`].
        known: u32,
    },
    /// Cut off, or changed on its way.
    #[error("read the bundle `{}`: {}; the file is damaged, copy it again", path.display(),
            escape::line(why))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The position of the damage.
        why: String,
    },
    /// It would take more disk or memory than a bundle needs.
    #[error("read the bundle `{}`: it holds {why}; if you trust its sender, unpack it with tar and \
             run results/plan.toml in it", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What is too much.
        why: String,
    },
    /// It would write somewhere else.
    #[error("unpack the bundle `{}`: it holds `{}`, which {why}; do not use this file",
             path.display(), escape::line(entry))]
    Unsafe {
        /// The file.
        path: PathBuf,
        /// The entry.
        entry: String,
        /// The problem.
        why: &'static str,
    },
    /// Something that cannot be bundled.
    #[error("bundle `{}`: {why}", path.display())]
    Unfit {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
}

impl BundleError {
    /// The error of a failed access.
    pub(super) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BundleError {
        let path = path.to_owned();
        move |source| BundleError::Io { doing, path, source }
    }
}
