//! Where a session goes and as whom it logs in.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// The socket file itself.
    Unix(PathBuf),
    /// Over TCP.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
        /// Whether the bytes are encrypted.
        tls: Tls,
    },
}

/// Encryption of a TCP connection. Anything but [`Tls::Off`] needs the cargo feature `tls`. There
/// is no "encrypt if the server likes to": two servers must not be measured differently by chance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tls {
    /// Plain.
    #[default]
    Off,
    /// Encrypted, with whatever certificate the server shows (`sslmode=require`).
    Require,
    /// Encrypted, and the certificate must be for this host name and signed by one of the
    /// certificates of this PEM file (`sslmode=verify-full`).
    Verify {
        /// The PEM file.
        root_certificate: PathBuf,
    },
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
        }
    }
}

/// How to log in. Its debug form hides the password.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// User.
    pub user: String,
    /// Empty for none.
    pub password: String,
    /// Database; empty for none.
    pub database: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let password = if self.password.is_empty() { "" } else { "***" };
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("password", &password)
            .field("database", &self.database)
            .finish()
    }
}

/// Where a session goes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// A server that speaks Postgres or MySQL.
    Server(Address),
    /// A database that the driver opens itself: SQLite's file or RocksDB's folder, and the library
    /// to open it with (`None`: compiled in).
    File {
        /// The file, or the folder.
        path: PathBuf,
        /// The shared library to load.
        library: Option<PathBuf>,
    },
    /// The fake DBMS.
    Fake {
        /// Mean service time of one statement, microseconds.
        mean_us: u64,
        /// True to sleep through warm-up and window as a real step would (for tests that
        /// interrupt); false for the fake clock alone.
        real_time: bool,
    },
}
