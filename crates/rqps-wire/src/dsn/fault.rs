//! Errors of a DSN.

use thiserror::Error;

/// An invalid DSN. No message holds the password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DsnError {
    /// It does not begin with the scheme of a server.
    #[error(
        "the DSN begins with '{0}' instead of postgres://, postgresql://, mysql:// or mariadb://"
    )]
    Scheme(String),
    /// A required part is missing.
    #[error("the DSN names no {part}: write {example}")]
    Missing {
        /// "user".
        part: &'static str,
        /// Its form with that part.
        example: &'static str,
    },
    /// A `%` without two hexadecimal digits, or bytes that are not UTF-8.
    #[error("the {0} of the DSN has invalid percent-encoding: write a literal % as %25")]
    Encoding(&'static str),
    /// The port is not a number from 1 to 65535.
    #[error("the port '{0}' of the DSN is not a number from 1 to 65535")]
    Port(String),
    /// The port is not a number from 1 to 65535, and may be a password.
    #[error(
        "the port of the DSN is not a number from 1 to 65535; a password stands before an @: \
         USER:PASSWORD@HOST:PORT, with / in it as %2F"
    )]
    PortWord,
    /// An @ behind the first slash: the password holds a slash.
    #[error("the database of the DSN holds an @: write it as %40, and a / in the password as %2F")]
    At,
    /// The host cannot be used.
    #[error("the host '{host}' of the DSN {why}")]
    Host {
        /// The host, without a text that may be a password.
        host: String,
        /// The reason, as the end of the sentence.
        why: &'static str,
    },
    /// An unknown option after the `?`.
    #[error("unknown DSN option '{option}'; {known}")]
    Option {
        /// The name of the option.
        option: String,
        /// The valid options.
        known: &'static str,
    },
    /// The value of an option cannot be used.
    #[error("the DSN's option {option}={value} {why}")]
    Value {
        /// The name of the option.
        option: String,
        /// Its value.
        value: String,
        /// The reason, as the end of the sentence.
        why: &'static str,
    },
}
