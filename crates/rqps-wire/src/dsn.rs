//! Data source names: a URL with protocol, address and login.
//!
//! ```text
//! postgres://user:password@host:5432/database?sslmode=require
//! postgres://user@/database?host=/var/run/postgresql
//! mysql://user:password@host:3306/database
//! mariadb://user@/database?socket=/run/mysqld/mysqld.sock
//! postgres://?service=prod
//! mysql://?login-path=prod
//! ```
//!
//! Whatever is in a part may be percent-encoded. User and host must be named, or a service of libpq
//! or a login path of MySQL that has them. Only what a DSN leaves out may come from elsewhere
//! (password.rs). A password `${NAME}` names the environment variable.

mod parts;
#[cfg(test)]
mod tests;

use std::fmt;

use thiserror::Error;

use crate::dsn::parts::Parts;
use rqps_model::build::Dbms;
use rqps_model::compatible::CompatibleServer;
use rqps_model::dialect::{Dialect, SocketName};
use rqps_model::endpoint::{Address, ChannelBinding, Login, ServerKey, Tls, TlsMode};

impl Dsn {
    /// True if the text looks like a DSN rather than the name of a build or a path.
    pub fn looks_like(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| known_scheme(scheme).is_some())
    }

    /// Parses a DSN. User and host may be missing if it names a service; [`Dsn::parse_with`]
    /// completes them.
    pub fn parse(text: &str) -> Result<Dsn, DsnError> {
        Parts::read(text, &[])?.finish(false)
    }

    /// Parses a DSN and takes missing parts from `service`: pairs of a libpq option and its value.
    pub fn parse_with(text: &str, service: &[(String, String)]) -> Result<Dsn, DsnError> {
        Parts::read(text, service)?.finish(true)
    }

    /// The dialect of the server.
    pub fn dialect(&self) -> Dialect {
        self.dbms.dialect()
    }
}

/// The DSN as logs and files may have it. `${NAME}`, a password in a variable, stays; whatever may be
/// a part of a password goes, also where the DSN has mistakes.
pub fn without_password(dsn: &str) -> String {
    let Some((scheme, rest)) = dsn.split_once("//") else { return dsn.to_string() };
    let (place, query) = split_options(rest);
    let place = match place.rsplit_once('@') {
        Some((login, host)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            match variable(password) {
                Some(name) => format!("{user}:${{{name}}}@{host}"),
                None => format!("{user}@{host}"),
            }
        }
        None => without_port_word(place).to_owned(),
    };
    let is_secret = |pair: &str| names_secret(pair) || (pair.contains('@') && !is_option(pair));
    // Semicolons as in addresses of SQL Server.
    let kept = |options: &str| {
        let kept: Vec<&str> = options.split(';').filter(|pair| !is_secret(pair)).collect();
        kept.join(";")
    };
    let place = match place.split_once(';') {
        Some((host, options)) => [host.to_owned(), kept(options)].join(";"),
        None => place,
    };
    let query: Vec<String> = query.split('&').map(kept).filter(|pair| !pair.is_empty()).collect();
    if query.is_empty() {
        format!("{scheme}//{place}")
    } else {
        format!("{scheme}//{place}?{}", query.join("&"))
    }
}

/// What [`without_password`] leaves out of an address, as it is there and decoded.
pub fn secrets(text: &str) -> Vec<String> {
    let Some((_, rest)) = text.split_once("//") else { return Vec::new() };
    let (place, query) = split_options(rest);
    let login = place.rsplit_once('@').and_then(|(login, _)| login.split_once(':'));
    let parts = place.split(';').skip(1).chain(query.split(['&', ';']));
    let options = parts.filter(|pair| names_secret(pair));
    let found = options.filter_map(|pair| pair.split_once('=')).chain(login);
    let found = found.map(|(_, secret)| secret).filter(|secret| variable(secret).is_none());
    let both =
        |secret: &str| [secret.to_owned(), parts::decode(secret, "password").unwrap_or_default()];
    found.flat_map(both).filter(|secret| !secret.is_empty()).collect()
}

/// True for an option that some DBMS takes a password or key of the user's from, such as
/// `tlsCertificateKeyFilePassword`, `access_token` or `pwd`.
fn names_secret(pair: &str) -> bool {
    let name = pair.split('=').next().unwrap_or_default().to_lowercase();
    let parts = ["pass", "pwd", "token", "secret", "apikey", "api_key", "api-key"];
    parts.iter().any(|part| name.contains(part))
}

/// A part of an address, percent-encoded.
pub fn encoded(text: &str) -> String {
    Encoded(text, "").to_string()
}

/// Cuts the address off at a port that is not a number: it is the password if the host is missing.
fn without_port_word(place: &str) -> &str {
    let authority = place.split('/').next().unwrap_or_default();
    let is_port = |text: &str| text.is_empty() || text.parse::<u16>().is_ok();
    match authority.split_once(':') {
        Some((host, port)) if !host.starts_with('[') && !is_port(port) => host,
        _ => place,
    }
}

// Errors of a DSN.

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

// The parts of a DSN.

/// A parsed DSN. Shown without the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dsn {
    /// The DBMS of the scheme; a server behind `mysql://` may still be MariaDB.
    pub dbms: Dbms,
    /// The address of the server.
    pub address: Address,
    /// User, password and database.
    pub login: Login,
    /// The environment variable with the password: NAME of `${NAME}`.
    pub password_variable: Option<String>,
    /// The libpq service or MySQL login path that completes the DSN; empty if an environment
    /// variable names it.
    pub service: Option<String>,
}

impl fmt::Display for Dsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}@", self.dbms, Encoded(&self.login.user, ""))?;
        match &self.address {
            Address::Unix(path) => {
                let option = if names_folder(self.dbms) { "host" } else { "socket" };
                let path = path.to_string_lossy();
                write!(f, "/{}?{option}={}", Encoded(&self.login.database, ""), Encoded(&path, "/"))
            }
            Address::Tcp { host, port, tls } => {
                if host.contains(':') {
                    write!(f, "[{host}]:{port}")?;
                } else {
                    write!(f, "{}:{port}", Encoded(host, ""))?;
                }
                write!(f, "/{}", Encoded(&self.login.database, ""))?;
                write_tls(f, tls)
            }
        }
    }
}

/// Writes the TLS options that differ from the defaults.
fn write_tls(f: &mut fmt::Formatter<'_>, tls: &Tls) -> fmt::Result {
    let mut options = Vec::new();
    let mut add = |name: &str, value: &dyn fmt::Display| options.push(format!("{name}={value}"));
    if tls.mode != TlsMode::Prefer {
        add("sslmode", &tls.mode.word());
    }
    let (certificate, key) = tls.identity.as_ref().map(|it| (&it.certificate, &it.key)).unzip();
    let key_of_server = match &tls.consent.key {
        ServerKey::File(path) => Some(path),
        ServerKey::Refused | ServerKey::Asked => None,
    };
    for (name, file) in [
        ("sslrootcert", tls.roots.as_ref()),
        ("sslcert", certificate),
        ("sslkey", key),
        ("server-public-key-path", key_of_server),
    ] {
        if let Some(file) = file {
            add(name, &Encoded(&file.to_string_lossy(), "/"));
        }
    }
    match tls.binding {
        ChannelBinding::Prefer => {}
        ChannelBinding::Require => add("channel_binding", &"require"),
        ChannelBinding::Disable => add("channel_binding", &"disable"),
    }
    if tls.consent.key == ServerKey::Asked {
        add("get-server-public-key", &true);
    }
    if tls.consent.clear {
        add("enable-cleartext-plugin", &true);
    }
    if let Some(methods) = &tls.consent.methods {
        add("require_auth", methods);
    }
    if options.is_empty() { Ok(()) } else { write!(f, "?{}", options.join("&")) }
}

/// Percent-encodes all characters that have a meaning in a URL, except those of the second text.
struct Encoded<'a>(&'a str, &'static str);

impl fmt::Display for Encoded<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for byte in self.0.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => write!(f, "{}", char::from(byte))?,
                b'-' | b'.' | b'_' | b'~' => write!(f, "{}", char::from(byte))?,
                _ if self.1.as_bytes().contains(&byte) => write!(f, "{}", char::from(byte))?,
                _ => write!(f, "%{byte:02X}")?,
            }
        }
        Ok(())
    }
}

// Words and separators of DSNs.

/// The name in a password of the form `${NAME}`.
fn variable(password: &str) -> Option<&str> {
    let name = password.strip_prefix("${")?.strip_suffix('}')?;
    let is_name = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit())
    };
    (!name.is_empty() && is_name(name)).then_some(name)
}

/// The DBMS whose protocol a scheme means, and the port of a DSN that names none.
pub fn known_scheme(scheme: &str) -> Option<(Dbms, u16)> {
    if let Some(row) = CompatibleServer::of_scheme(scheme) {
        let dbms = Dbms::ALL.into_iter().find(|dbms| dbms.dialect() == row.dialect)?;
        return Some((dbms, row.port));
    }
    let dbms = Dbms::from_name(scheme)?;
    Some((dbms, dbms.dialect().spec().server.as_ref()?.port))
}

/// True for Postgres, where the host may be the folder of the socket. DSNs of MySQL name the
/// socket's file.
fn names_folder(dbms: Dbms) -> bool {
    let server = dbms.dialect().spec().server.as_ref();
    server.is_some_and(|server| server.socket == SocketName::HostFolder)
}

/// Names of the options of both dialects.
const OPTIONS: [&str; 21] = [
    "host", "port", "user", "password", "dbname", "service", "login-path", "socket", "sslmode",
    "ssl-mode", "sslrootcert", "ssl-ca", "sslcert", "ssl-cert", "sslkey", "ssl-key",
    "channel_binding", "require_auth", "get-server-public-key", "server-public-key-path",
    "enable-cleartext-plugin",
];

/// True for a known option with a value: `user=me`.
fn is_option(pair: &str) -> bool {
    let name = pair.split_once('=').map_or("", |(name, _)| name);
    OPTIONS.contains(&name)
}

/// Splits the text after `://` into the address and the options. As in libpq, an unencoded `?` in
/// the password does not begin the options.
fn split_options(rest: &str) -> (&str, &str) {
    let mut from = 0;
    while let Some(at) = rest[from..].find('?').map(|at| from + at) {
        let options = &rest[at + 1..];
        match options.split_once('@') {
            Some((before, _)) if !before.split('&').any(is_option) => {
                from = at + 1 + before.len();
            }
            _ => return (&rest[..at], options),
        }
    }
    (rest, "")
}

/// The beginning of a text that is not a DSN, short enough for an error and without a password.
fn first_word(text: &str) -> &str {
    text.split([':', '/', '@', ' ']).next().unwrap_or_default()
}
