//! Errors of obtaining a build, with hints.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};

use rqps_dbms::spec::{self, DbmsSpec};
use rqps_model::build::Dbms;

/// The reason why a build is not available. Reads after "failed to".
#[derive(Debug, thiserror::Error)]
pub enum ObtainError {
    /// The cache folder cannot be used.
    #[error(
        "open the cache of builds {}: {source}; name another folder with --cache or \
         RQPS_CACHE",
        root.display()
    )]
    Cache {
        /// The folder.
        root: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// One build is not available.
    #[error("obtain {target}: {reason}")]
    Build {
        /// The target word: `mysql@8.0.33`, `postgres=/opt/pg`.
        target: String,
        /// The reason, with a way out.
        reason: Box<Reason>,
    },
}

fn installed(dbms: Dbms) -> &'static str {
    match spec::of(dbms).and_then(DbmsSpec::library) {
        Some(_) => "a shared library",
        None => "an installed tree",
    }
}

/// Why a build cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum Reason {
    /// The repository has no such package.
    #[error(
        "no package {coordinates} exists; `rqps builds {dbms}` lists available versions, and \
         {dbms}=PATH takes {}", installed(*dbms)
    )]
    NoSuchVersion {
        /// The product.
        dbms: Dbms,
        /// What was asked for.
        coordinates: String,
    },
    /// The package client is not installed.
    #[error(
        "fetching this build needs the program {client}: install it (Debian package {package}), or \
         name an installed tree with {dbms}=PATH"
    )]
    ClientMissing {
        /// The program.
        client: String,
        /// Its package in Debian.
        package: &'static str,
        /// The product.
        dbms: Dbms,
    },
    /// The package client reached no repository.
    #[error(
        "{client} could not reach its package repository: {said}; check the network, and the proxy \
         and mirror in {client}'s settings, or name an installed tree with {dbms}=PATH"
    )]
    Network {
        /// The program.
        client: String,
        /// Its words.
        said: String,
        /// The product.
        dbms: Dbms,
    },
    /// The package client failed for another reason.
    #[error("{client} {ended} while fetching {coordinates}: {said}")]
    ClientFailed {
        /// The program.
        client: String,
        /// How it ended.
        ended: String,
        /// What was asked for.
        coordinates: String,
        /// Its words.
        said: String,
    },
    /// There is no such build, or it is not what it ought to be.
    #[error("{0}")]
    Build(String),
    /// Something of this host or in the request stands in the way of any build.
    #[error("{0}")]
    Setup(String),
    /// The user ended it.
    #[error("stopped; the cache is unchanged")]
    Stopped,
    /// A file or program cannot be used.
    #[error("{doing} {}: {source}", path.display())]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Reason {
    /// True if another version may be had where this one cannot: not without its package client,
    /// a network or a cache that can be written.
    pub fn is_of_the_build(&self) -> bool {
        match self {
            Reason::NoSuchVersion { .. } | Reason::ClientFailed { .. } | Reason::Build(_) => true,
            Reason::ClientMissing { .. }
            | Reason::Network { .. }
            | Reason::Setup(_)
            | Reason::Stopped
            | Reason::Io { .. } => false,
        }
    }

    pub(super) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Reason {
        let path = path.into();
        move |source| Reason::Io { doing, path, source }
    }

    pub(super) fn missing_program(
        program: &str,
        purpose: &str,
        said: impl Display,
        package: &str,
    ) -> Reason {
        Reason::Build(format!(
            "{program}, needed {purpose}, does not run here: {said}; install {package}"
        ))
    }

    pub(super) fn other_dbms(path: &Path, dbms: Dbms, found: Dbms) -> Reason {
        let path = path.display();
        Reason::Build(format!("{path} is {found}, not {dbms}: write {found}={path}"))
    }

    pub(super) fn no_repository(folder: &Path) -> Reason {
        Reason::Setup(format!(
            "{} is not the top folder of a git repository, so it has no commits; leave out @REF \
             to build its files",
            folder.display()
        ))
    }

    pub(super) fn no_relink(dbms: Dbms, reason: &str) -> Reason {
        Reason::Setup(format!("linking {dbms} in another order (relinkN): {reason}"))
    }
}

/// The path without links.
pub(super) fn real(path: &Path) -> Result<PathBuf, Reason> {
    path.canonicalize().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Reason::Build(format!("{} does not exist", path.display())),
        _ => Reason::io("find", path)(error),
    })
}
