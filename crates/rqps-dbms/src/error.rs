//! Errors of a DBMS.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use rqps_host::process::ProcessError;
use rqps_host::user::UserError;
use rqps_model::build::Dbms;
use rqps_wire::WireError;

/// An error of a DBMS. Texts that end with lines of a log have several lines.
#[derive(Debug, Error)]
pub enum DbmsError {
    /// Only imported results name such a DBMS.
    #[error("run a DBMS unknown to this rqps: rqps can report its results, not measure it")]
    Unknown,
    /// The data folder is in use or left over.
    #[error(
        "make a data folder in {0}: the folder is not empty; remove it or name another folder \
         (rqps only deletes data that it made)"
    )]
    DataNotEmpty(PathBuf),
    /// The build lacks a program.
    #[error(
        "find {program} of {dbms}: not in {root}/bin, sbin, libexec or scripts; name the folder \
         that holds bin/, as in {dbms}=PATH"
    )]
    NoProgram {
        /// The missing program.
        program: &'static str,
        /// The DBMS.
        dbms: Dbms,
        /// The folder that was searched.
        root: PathBuf,
    },
    /// The kernel takes no longer socket paths.
    #[error(
        "listen on {path}: the path has {length} bytes but a socket path can have at most {limit}; \
         choose a shorter folder for temporary files",
        path = path.display()
    )]
    SocketPath {
        /// The socket.
        path: PathBuf,
        /// Its length.
        length: usize,
        /// The most that is possible.
        limit: usize,
    },
    /// A file or folder.
    #[error("{doing}: {source}")]
    Io {
        /// The action and its object.
        doing: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A program of the DBMS, or the server itself, ended when it should not have.
    #[error("{doing}: {what}{tail}{hint}")]
    Ended {
        /// "start postgres 17.2.0".
        doing: String,
        /// "it ended with exit status 1".
        what: String,
        /// The last lines of its log, each on a line of its own.
        tail: String,
        /// A hint, if the log gives one; begins with a line break.
        hint: String,
    },
    /// A statement of the control plane failed.
    #[error("{doing}: {source}")]
    Sql {
        /// "settle mysql 8.0.33: ANALYZE TABLE sbtest1".
        doing: String,
        /// The server's words.
        source: WireError,
    },
    /// The user that servers run as.
    #[error(transparent)]
    User(#[from] UserError),
    /// A signal, or the warden.
    #[error("{doing}: {source}")]
    Process {
        /// The action and its object.
        doing: String,
        /// The error of the process.
        source: ProcessError,
    },
    /// Asked for what this DBMS or build cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// A server that rqps does not run holds something that rqps must not touch, and did not.
    #[error("{0}")]
    Refused(String),
    /// The user wants to stop.
    #[error("wait for the database: interrupted")]
    Interrupted,
}

impl DbmsError {
    pub(super) fn ended(doing: String, what: String) -> DbmsError {
        DbmsError::Ended { doing, what, tail: String::new(), hint: String::new() }
    }

    /// For `map_err` on file operations.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Io { doing, source }
    }

    /// For `map_err` on statements.
    pub(super) fn sql(doing: impl Into<String>) -> impl FnOnce(WireError) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Sql { doing, source }
    }

    /// For `map_err` on processes.
    pub(super) fn process(doing: impl Into<String>) -> impl FnOnce(ProcessError) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Process { doing, source }
    }
}
