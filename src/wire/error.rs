//! Errors of sessions.

use thiserror::Error;

/// What went wrong on a session.
#[derive(Debug, Error)]
pub enum WireError {
    /// The server refused the statement; the session lives on.
    #[error("{message} ({code})")]
    Server {
        /// SQLSTATE for Postgres (`40001`), error number for MySQL (`1213`), result code for
        /// SQLite.
        code: String,
        /// The server's words.
        message: String,
    },
    /// The connection is broken or was never made.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done: "connect to /tmp/x/.s.PGSQL.5432".
        doing: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The server said something that this client does not understand or support.
    #[error("{0}")]
    Protocol(String),
}

impl WireError {
    /// The server's code, if it was the server who refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            WireError::Server { code, .. } => Some(code),
            WireError::Io { .. } | WireError::Protocol(_) => None,
        }
    }
}
