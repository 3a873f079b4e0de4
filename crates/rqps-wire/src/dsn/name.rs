//! The parts of a DSN.

use std::fmt;

use super::scheme::names_folder;
use rqps_model::build::Dbms;
use rqps_model::endpoint::{Address, ChannelBinding, Login, ServerKey, Tls, TlsMode};

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
