//! The address and the login of a session.

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
        /// The encryption of the connection.
        tls: Tls,
    },
}

/// Encryption of a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// The encryption, and the checks of the server's certificate.
    pub mode: TlsMode,
    /// The PEM file of the certificates that may vouch for the server. `None` means those of the
    /// system.
    pub roots: Option<PathBuf>,
    /// The client's certificate and key.
    pub identity: Option<ClientIdentity>,
    /// The channel binding of password proofs.
    pub binding: ChannelBinding,
    /// What a login may send where nobody vouches for the server.
    #[serde(default)]
    pub consent: Consent,
}

/// What a login may send where nobody vouches for the server: over TCP without TLS, or with a
/// certificate that is not checked. Without consent, no password leaves there but as a proof.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consent {
    /// The key of MySQL that encrypts the password.
    pub key: ServerKey,
    /// The password itself may go to MySQL, if its certificate was checked.
    pub clear: bool,
    /// The methods that Postgres may ask for; `None`: all.
    pub methods: Option<AuthMethods>,
}

/// The public key of a MySQL server that encrypts passwords.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerKey {
    /// None.
    #[default]
    Refused,
    /// Whatever the server sends: anybody in between can send another.
    Asked,
    /// The key of this PEM file.
    File(PathBuf),
}

/// `require_auth` of libpq: methods by which the server may ask who the client is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuthMethods {
    /// The words of the list.
    words: Vec<String>,
    /// True if these are the ones that are refused.
    negated: bool,
}

impl AuthMethods {
    /// The words of libpq.
    const WORDS: [&str; 7] = ["password", "md5", "gss", "sspi", "scram-sha-256", "oauth", "none"];

    /// Reads a list: `scram-sha-256,none`, or `!password,!md5`. `None`: it is none.
    pub fn parse(list: &str) -> Option<AuthMethods> {
        let negated = list.starts_with('!');
        let words = list.split(',').map(|word| match (negated, word.strip_prefix('!')) {
            (true, Some(word)) => Some(word),
            (false, None) => Some(word),
            _ => None,
        });
        let words: Option<Vec<&str>> = words.collect();
        let words = words.filter(|words| words.iter().all(|it| Self::WORDS.contains(it)))?;
        Some(AuthMethods { words: words.into_iter().map(str::to_owned).collect(), negated })
    }

    /// True if the server may use the method.
    pub fn allows(&self, method: &str) -> bool {
        self.words.iter().any(|word| word == method) != self.negated
    }

    /// True if the list names the method as one to use.
    pub fn names(&self, method: &str) -> bool {
        !self.negated && self.allows(method)
    }
}

impl fmt::Display for AuthMethods {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negated { "!" } else { "" };
        let words: Vec<String> = self.words.iter().map(|word| format!("{sign}{word}")).collect();
        f.write_str(&words.join(","))
    }
}

/// The encryption of a connection, and the checks of the server's certificate. The words of libpq
/// and, in brackets, of MySQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsMode {
    /// `disable` (`DISABLED`): plain.
    Off,
    /// `allow`: plain, unless the server refuses that.
    Allow,
    /// `prefer` (`PREFERRED`): encrypted if the server can, with any certificate.
    Prefer,
    /// `require` (`REQUIRED`): encrypted, with any certificate.
    Require,
    /// `verify-ca` (`VERIFY_CA`): encrypted, with a certificate that a known authority signed.
    VerifyCa,
    /// `verify-full` (`VERIFY_IDENTITY`): the certificate must also be for this host name.
    VerifyFull,
}

/// The files of a client's certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientIdentity {
    /// The PEM file of the certificate, and of those between it and the authority.
    pub certificate: PathBuf,
    /// The PEM file of its private key.
    pub key: PathBuf,
}

/// Channel binding of SCRAM, so that nobody in between can pass the proof on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// If the server can.
    #[default]
    Prefer,
    /// A server that cannot is refused.
    Require,
}

impl Tls {
    /// Plain.
    pub const OFF: Tls = Tls {
        mode: TlsMode::Off,
        roots: None,
        identity: None,
        binding: ChannelBinding::Prefer,
        consent: Consent { key: ServerKey::Refused, clear: false, methods: None },
    };

    /// A mode without files.
    pub fn of(mode: TlsMode) -> Tls {
        Tls { mode, ..Tls::OFF }
    }
}

impl TlsMode {
    /// The word of libpq.
    pub fn word(self) -> &'static str {
        match self {
            TlsMode::Off => "disable",
            TlsMode::Allow => "allow",
            TlsMode::Prefer => "prefer",
            TlsMode::Require => "require",
            TlsMode::VerifyCa => "verify-ca",
            TlsMode::VerifyFull => "verify-full",
        }
    }

    /// True if the server's certificate is checked.
    pub fn verifies(self) -> bool {
        matches!(self, TlsMode::VerifyCa | TlsMode::VerifyFull)
    }

    /// True if the server decides whether the connection is encrypted.
    pub fn server_decides(self) -> bool {
        matches!(self, TlsMode::Allow | TlsMode::Prefer)
    }
}

impl Address {
    /// The address with what the first session found out. Later sessions of the block use it as it
    /// is, so that all steps are measured in the same way.
    pub fn settled(&self, encrypted: bool) -> Address {
        match self {
            Address::Tcp { host, port, tls } if tls.mode.server_decides() => {
                let mode = if encrypted { TlsMode::Require } else { TlsMode::Off };
                let tls = Tls { mode, ..tls.clone() };
                Address::Tcp { host: host.clone(), port: *port, tls }
            }
            other => other.clone(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{}", path.display()),
            Address::Tcp { host, port, .. } => write!(f, "{host}:{port}"),
        }
    }
}

/// User, password and database. Its debug form hides the password.
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

/// The server or library that a session uses.
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

impl Endpoint {
    /// How clients reach a server, in words; `None` without a server.
    pub fn way(&self) -> Option<&'static str> {
        match self {
            Endpoint::Server(Address::Unix(_)) => Some("unix socket"),
            Endpoint::Server(Address::Tcp { tls, .. }) if tls.mode == TlsMode::Off => Some("TCP"),
            Endpoint::Server(Address::Tcp { .. }) => Some("TCP with TLS"),
            Endpoint::File { .. } | Endpoint::Fake { .. } => None,
        }
    }
}
