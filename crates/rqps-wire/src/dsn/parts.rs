//! Parses a DSN part by part.

use std::path::{Path, PathBuf};

use crate::dsn::{Dsn, DsnError, first_word, known_scheme, names_folder, split_options, variable};
use rqps_model::build::Dbms;
use rqps_model::endpoint::{
    Address, AuthMethods, ChannelBinding, ClientIdentity, Consent, Login, ServerKey, Tls, TlsMode,
};

const POSTGRES_OPTIONS: &str = "valid options: host, port, user, password, dbname, service, \
                                sslmode, sslrootcert, sslcert, sslkey, channel_binding, \
                                require_auth";
const MYSQL_OPTIONS: &str = "valid options: socket, login-path, ssl-mode, ssl-ca, ssl-cert, \
                             ssl-key (or sslmode, sslrootcert, sslcert, sslkey), \
                             get-server-public-key, server-public-key-path, \
                             enable-cleartext-plugin";

/// Longest port, digits.
const PORT_DIGITS: usize = 5;

/// A DSN while it is being read.
pub(super) struct Parts {
    dbms: Dbms,
    user: String,
    password: String,
    password_variable: Option<String>,
    database: String,
    /// A name, an address, or for Postgres the folder of the socket.
    host: String,
    port: u16,
    /// MySQL's socket.
    socket: String,
    service: Option<String>,
    tls_mode: String,
    root_certificate: String,
    certificate: String,
    key: String,
    binding: String,
    /// Options of a login that is not protected, with their values.
    consent: Vec<(&'static str, String)>,
}

/// Options by which a user allows what a login does otherwise not do, or forbids a method.
const POSTGRES_CONSENT: &str = "require_auth";
const MYSQL_CONSENT: [&str; 3] =
    ["get-server-public-key", "server-public-key-path", "enable-cleartext-plugin"];

impl Parts {
    fn default_of(dbms: Dbms, port: u16) -> Parts {
        Parts {
            dbms,
            user: String::new(),
            password: String::new(),
            password_variable: None,
            database: String::new(),
            host: String::new(),
            port,
            socket: String::new(),
            service: None,
            tls_mode: String::new(),
            root_certificate: String::new(),
            certificate: String::new(),
            key: String::new(),
            binding: String::new(),
            consent: Vec::new(),
        }
    }

    /// Parses a DSN. Its parts replace those of the service.
    pub(super) fn read(text: &str, service: &[(String, String)]) -> Result<Parts, DsnError> {
        let (scheme, rest) = text.split_once("://").unwrap_or((first_word(text), ""));
        let Some((dbms, port)) = known_scheme(scheme) else {
            return Err(DsnError::Scheme(scheme.to_owned()));
        };
        let mut parts = Parts::default_of(dbms, port);
        for (name, value) in service {
            parts.set_from_service(name, value)?;
        }
        let (place, options) = split_options(rest);
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        if database.contains('@') {
            return Err(DsnError::At);
        }
        // A password may hold an unencoded @; a host cannot.
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        parts.password_variable = variable(password).map(str::to_owned);
        let password = if parts.password_variable.is_some() { "" } else { password };
        let own = [
            (&mut parts.user, user, "user"),
            (&mut parts.password, password, "password"),
            (&mut parts.database, database, "database"),
        ];
        for (part, text, name) in own {
            if !text.is_empty() {
                *part = decode(text, name)?;
            }
        }
        if parts.password_variable.is_some() {
            parts.password.clear();
        }
        parts.set_host(host)?;
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            parts.set_option(name, decode(value, "options")?)?;
        }
        Ok(parts)
    }

    /// Sets an option of a libpq service file.
    fn set_from_service(&mut self, name: &str, value: &str) -> Result<(), DsnError> {
        let value = value.to_owned();
        match name {
            "host" => self.host = value,
            "port" => self.set_port(&value)?,
            "user" => self.user = value,
            "password" => self.password = value,
            "dbname" => self.database = value,
            _ => self.set_option(name, value)?,
        }
        Ok(())
    }

    /// `host`, `host:port`, `[::1]:port`, `%2Ffolder`.
    fn set_host(&mut self, text: &str) -> Result<(), DsnError> {
        let bad = |why| DsnError::Host { host: shown_host(text), why };
        if text.contains(',') {
            return Err(bad("names several servers; a DSN names one"));
        }
        let (host, port) = if let Some(rest) = text.strip_prefix('[') {
            let (host, after) = rest.split_once(']').ok_or_else(|| bad("has no closing ]"))?;
            match after.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if after.is_empty() => (host, None),
                None => return Err(bad("has something other than a port after ]")),
            }
        } else {
            match text.split_once(':') {
                Some((_, port)) if port.contains(':') => {
                    return Err(bad("has more than one colon; write an IPv6 address as [::1]"));
                }
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        if !host.is_empty() {
            self.host = decode(host, "host")?;
            // The socket of a login path belongs to another server.
            self.socket.clear();
        }
        match port {
            Some("") | None => Ok(()),
            Some(port) => self.set_port(port),
        }
    }

    fn set_port(&mut self, text: &str) -> Result<(), DsnError> {
        match text.parse() {
            Ok(port) if port > 0 => {
                self.port = port;
                Ok(())
            }
            // If the host is missing, this is the password.
            _ if text.len() > PORT_DIGITS || !text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(DsnError::PortWord)
            }
            _ => Err(DsnError::Port(text.to_owned())),
        }
    }

    fn set_option(&mut self, name: &str, value: String) -> Result<(), DsnError> {
        let postgres = names_folder(self.dbms);
        match name {
            "sslmode" | "ssl-mode" => self.tls_mode = value.to_ascii_lowercase(),
            "sslrootcert" | "ssl-ca" => self.root_certificate = value,
            "sslcert" | "ssl-cert" => self.certificate = value,
            "sslkey" | "ssl-key" => self.key = value,
            "channel_binding" if postgres => self.binding = value,
            POSTGRES_CONSENT if postgres => self.consent.push((POSTGRES_CONSENT, value)),
            _ if !postgres && MYSQL_CONSENT.contains(&name) => {
                let known = MYSQL_CONSENT.into_iter().find(|known| *known == name);
                self.consent.extend(known.map(|name| (name, value)));
            }
            "service" if postgres => self.service = Some(value),
            "login-path" if !postgres => self.service = Some(value),
            "host" if postgres => self.host = value,
            "port" if postgres => self.set_port(&value)?,
            "user" if postgres => self.user = value,
            "password" if postgres => self.password = value,
            "dbname" if postgres => self.database = value,
            "socket" if !postgres => self.socket = value,
            _ => {
                let known = if postgres { POSTGRES_OPTIONS } else { MYSQL_OPTIONS };
                // If a password contains a `?`, the rest of it may follow.
                let is_part =
                    |letter: &char| letter.is_ascii_alphanumeric() || "-_".contains(*letter);
                let option = name.chars().take_while(is_part).collect();
                return Err(DsnError::Option { option, known });
            }
        }
        Ok(())
    }

    /// Checks the parts and makes the DSN. `complete`: no service will add missing parts.
    pub(super) fn finish(self, complete: bool) -> Result<Dsn, DsnError> {
        let postgres = names_folder(self.dbms);
        let may_lack = self.service.is_some() && !complete;
        if self.user.is_empty() && !may_lack {
            let example = if postgres { "postgres://USER@…" } else { "mysql://USER@…" };
            return Err(DsnError::Missing { part: "user", example });
        }
        let tls = self.tls(may_lack)?;
        let unused = |option: &str, value: &str| DsnError::Value {
            option: option.to_owned(),
            value: value.to_owned(),
            why: "has no use on a unix socket, which is local",
        };
        let address = match self.socket()? {
            Some(_) if !matches!(tls.mode, TlsMode::Off) && !tls.mode.server_decides() => {
                return Err(unused("sslmode", &self.tls_mode));
            }
            Some(_) if tls.identity.is_some() => return Err(unused("sslcert", &self.certificate)),
            Some(_) if tls.binding == ChannelBinding::Require => {
                return Err(unused("channel_binding", &self.binding));
            }
            Some(_) if !self.consent.is_empty() => {
                let (name, value) = &self.consent[0];
                return Err(unused(name, value));
            }
            Some(socket) => Address::Unix(socket),
            None if self.host.is_empty() && !may_lack => {
                let example = if postgres {
                    "postgres://user@HOST/database, or postgres://user@/database?host=/FOLDER"
                } else {
                    "mysql://user@HOST/database, or mysql://user@/database?socket=/PATH"
                };
                return Err(DsnError::Missing { part: "host", example });
            }
            None => Address::Tcp { host: self.host, port: self.port, tls },
        };
        let Parts { dbms, user, password, password_variable, database, service, .. } = self;
        let login = Login { user, password, database };
        Ok(Dsn { dbms, address, login, password_variable, service })
    }

    /// The socket's file, if it is a unix socket.
    fn socket(&self) -> Result<Option<PathBuf>, DsnError> {
        if !self.socket.is_empty() {
            if !self.socket.starts_with('/') {
                return Err(DsnError::Value {
                    option: "socket".to_owned(),
                    value: self.socket.clone(),
                    why: "is not an absolute path",
                });
            }
            return Ok(Some(PathBuf::from(&self.socket)));
        }
        if !self.host.starts_with('/') {
            return Ok(None);
        }
        if !names_folder(self.dbms) {
            return Err(DsnError::Host {
                host: self.host.clone(),
                why: "is a path: write ?socket=/path",
            });
        }
        let path = Path::new(&self.host);
        let is_socket =
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(".s.PGSQL."));
        if is_socket {
            return Ok(Some(path.to_owned()));
        }
        Ok(Some(path.join(format!(".s.PGSQL.{}", self.port))))
    }

    /// The TLS options. `may_lack`: a service may add missing ones, so a certificate may lack its
    /// key.
    fn tls(&self, may_lack: bool) -> Result<Tls, DsnError> {
        let bad = |option: &str, value: &str, why| {
            Err(DsnError::Value { option: option.to_owned(), value: value.to_owned(), why })
        };
        let postgres = names_folder(self.dbms);
        let word = self.tls_mode.as_str();
        let mode = match word {
            // The default of libpq and of MySQL's clients.
            "" | "prefer" | "preferred" => TlsMode::Prefer,
            "disable" | "disabled" => TlsMode::Off,
            "allow" if postgres => TlsMode::Allow,
            "require" | "required" => TlsMode::Require,
            "verify-ca" | "verify_ca" => TlsMode::VerifyCa,
            "verify-full" | "verify_full" | "verify_identity" | "verify-identity" => {
                TlsMode::VerifyFull
            }
            _ if postgres => {
                let why = "is not one of disable, allow, prefer, require, verify-ca, verify-full";
                return bad("sslmode", word, why);
            }
            _ => {
                let why = "is not one of DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY";
                return bad("ssl-mode", word, why);
            }
        };
        let roots = match self.root_certificate.as_str() {
            "" | "system" => None,
            file => Some(PathBuf::from(file)),
        };
        if mode == TlsMode::VerifyCa && roots.is_none() && !may_lack {
            return if postgres {
                let why = "needs sslrootcert=FILE: a certificate of any public authority would do, \
                           for any host; those of the system go with verify-full";
                bad("sslmode", word, why)
            } else {
                let why = "needs ssl-ca=FILE: a certificate of any public authority would do, for \
                           any host; those of the system go with VERIFY_IDENTITY";
                bad("ssl-mode", "VERIFY_CA", why)
            };
        }
        if !self.root_certificate.is_empty() && !mode.verifies() && !may_lack {
            let why = "has no use without sslmode=verify-ca or verify-full";
            return bad("sslrootcert", &self.root_certificate, why);
        }
        let identity = match (self.certificate.as_str(), self.key.as_str()) {
            ("", "") => None,
            ("", _) | (_, "") if may_lack => None,
            (file, "") => return bad("sslcert", file, "needs sslkey=FILE, its private key"),
            ("", file) => return bad("sslkey", file, "needs sslcert=FILE, its certificate"),
            (file, _) if matches!(mode, TlsMode::Off) => {
                return bad("sslcert", file, "has no use with sslmode=disable");
            }
            (certificate, key) => {
                Some(ClientIdentity { certificate: certificate.into(), key: key.into() })
            }
        };
        let binding = match self.binding.as_str() {
            "" | "prefer" => ChannelBinding::Prefer,
            "disable" => ChannelBinding::Disable,
            "require" => ChannelBinding::Require,
            other => {
                return bad("channel_binding", other, "is not one of disable, prefer, require");
            }
        };
        Ok(Tls { mode, roots, identity, binding, consent: self.consent()? })
    }

    fn consent(&self) -> Result<Consent, DsnError> {
        let mut consent = Consent::default();
        for (option, value) in &self.consent {
            let bad =
                |why| DsnError::Value { option: (*option).to_owned(), value: value.clone(), why };
            let is_on = || match value.to_ascii_lowercase().as_str() {
                "" | "1" | "on" | "true" => Ok(true),
                "0" | "off" | "false" => Ok(false),
                _ => Err(bad("is neither true nor false")),
            };
            match *option {
                "get-server-public-key" => {
                    // As in MySQL, a file goes before what the server sends.
                    if is_on()? && consent.key == ServerKey::Refused {
                        consent.key = ServerKey::Asked;
                    }
                }
                "server-public-key-path" => consent.key = ServerKey::File(PathBuf::from(value)),
                "enable-cleartext-plugin" => consent.clear = is_on()?,
                _ => {
                    let why = "is no list of password, md5, scram-sha-256, none, gss, sspi, oauth, \
                               or of these, each with a ! before it";
                    consent.methods = Some(AuthMethods::parse(value).ok_or_else(|| bad(why))?);
                }
            }
        }
        Ok(consent)
    }
}

/// The host for an error message, without the text after a colon unless the host is an address: if
/// the host is missing, that text is the password.
fn shown_host(text: &str) -> String {
    let is_address = |byte: u8| byte.is_ascii_hexdigit() || b":.[]".contains(&byte);
    match text.split_once(':') {
        Some((host, _)) if !text.bytes().all(is_address) => format!("{host}:…"),
        _ => text.to_owned(),
    }
}

/// Undoes percent-encoding. `+` stays a plus.
pub(super) fn decode(text: &str, part: &'static str) -> Result<String, DsnError> {
    let bad = || DsnError::Encoding(part);
    let mut bytes = Vec::with_capacity(text.len());
    let mut pieces = text.split('%');
    bytes.extend_from_slice(pieces.next().unwrap_or_default().as_bytes());
    for piece in pieces {
        let digits = piece.get(..2).ok_or_else(bad)?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad());
        }
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| bad())?);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}
