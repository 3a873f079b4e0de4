//! Errors of a DSN.

use thiserror::Error;

/// What is wrong with a DSN. No message holds the password.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DsnError {
    /// Not a URL of a server.
    #[error(
        "the DSN begins with '{0}' instead of postgres://, postgresql://, mysql:// or mariadb://"
    )]
    Scheme(String),
    /// A part that must be there is not.
    #[error("the DSN names no {part}: write {example}")]
    Missing {
        /// "user".
        part: &'static str,
        /// How it looks with that part.
        example: &'static str,
    },
    /// A `%` that is not followed by two hexadecimal digits, or bytes that are no UTF-8.
    #[error("the {0} of the DSN has invalid percent-encoding: write a literal % as %25")]
    Encoding(&'static str),
    /// Not a number from 1 to 65535.
    #[error("the port '{0}' of the DSN is not a number from 1 to 65535")]
    Port(String),
    /// The same, if the text may be a password.
    #[error(
        "the port of the DSN is not a number from 1 to 65535; a password stands before an @: \
         USER:PASSWORD@HOST:PORT, with / in it as %2F"
    )]
    PortWord,
    /// A login without an end, or with more than a name.
    #[error("the database of the DSN holds an @: write it as %40, and a / in the password as %2F")]
    At,
    /// A host that cannot be used.
    #[error("the host '{host}' of the DSN {why}")]
    Host {
        /// As written, unless it may hold a password.
        host: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A word after `?` that is not known.
    #[error("unknown DSN option '{option}'; {known}")]
    Option {
        /// Its name.
        option: String,
        /// Those that are known.
        known: &'static str,
    },
    /// An option with a value that cannot be used.
    #[error("the DSN's option {option}={value} {why}")]
    Value {
        /// Its name.
        option: String,
        /// Its value.
        value: String,
        /// What is wrong with it.
        why: &'static str,
    },
}
