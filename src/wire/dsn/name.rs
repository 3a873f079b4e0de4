//! The parts of a DSN.

use std::fmt;

use super::scheme::names_folder;
use crate::domain::build::Dbms;
use crate::domain::endpoint::{Address, ChannelBinding, Login, Tls, TlsMode};

/// A parsed DSN. Shown without the password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dsn {
    /// What the scheme names; a server behind `mysql://` may still be MariaDB.
    pub dbms: Dbms,
    /// Where.
    pub address: Address,
    /// As whom.
    pub login: Login,
    /// The environment variable that has the password, from `${NAME}` in its place.
    pub password_variable: Option<String>,
    /// The service of libpq, or the login path of MySQL, that has what the DSN leaves out. Empty
    /// for the one that the environment names.
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

/// The options of TLS, without those that a DSN has by itself.
fn write_tls(f: &mut fmt::Formatter<'_>, tls: &Tls) -> fmt::Result {
    let files = [
        ("sslrootcert", tls.roots.as_ref()),
        ("sslcert", tls.identity.as_ref().map(|identity| &identity.certificate)),
        ("sslkey", tls.identity.as_ref().map(|identity| &identity.key)),
    ];
    let mut before = '?';
    if tls.mode != TlsMode::Prefer {
        write!(f, "{before}sslmode={}", tls.mode.word())?;
        before = '&';
    }
    for (name, file) in files {
        if let Some(file) = file {
            write!(f, "{before}{name}={}", Encoded(&file.to_string_lossy(), "/"))?;
            before = '&';
        }
    }
    match tls.binding {
        ChannelBinding::Prefer => Ok(()),
        ChannelBinding::Require => write!(f, "{before}channel_binding=require"),
        ChannelBinding::Disable => write!(f, "{before}channel_binding=disable"),
    }
}

/// Text with everything percent-encoded that could mean something in a URL, but for the characters
/// of the second text.
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
