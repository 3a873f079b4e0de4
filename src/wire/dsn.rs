//! Data source names: one URL that says what to speak, where, and as whom.
//!
//! ```text
//! postgres://user:password@host:5432/database?sslmode=require
//! postgres://user@/database?host=/var/run/postgresql
//! mysql://user:password@host:3306/database
//! mariadb://user@/database?socket=/run/mysqld/mysqld.sock
//! ```
//!
//! Whatever is in a part may be percent-encoded. The same DSN means the same server everywhere, so
//! user and host must be named. Only the password may come from the environment (password.rs); a
//! password `${NAME}` names the variable.

use std::fmt;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::socket::check_tls;
use crate::domain::build::Dbms;
use crate::domain::dialect::{Dialect, SocketName};
use crate::domain::endpoint::{Address, Login, Tls};

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
}

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
    /// A host that cannot be used.
    #[error("the host '{host}' of the DSN {why}")]
    Host {
        /// As written.
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
    /// TLS is asked for and not compiled in.
    #[error("{0}")]
    NoTls(String),
}

const POSTGRES_OPTIONS: &str = "valid options: host, port, user, password, dbname, sslmode, \
                                sslrootcert";
const MYSQL_OPTIONS: &str = "valid options: socket, ssl-mode, ssl-ca (or sslmode, sslrootcert)";

impl Dsn {
    /// True if the text looks like a DSN rather than the name of a build or a path.
    pub fn looks_like(text: &str) -> bool {
        text.split_once("://").is_some_and(|(scheme, _)| known_scheme(scheme).is_some())
    }

    /// Parses a DSN.
    pub fn parse(text: &str) -> Result<Dsn, DsnError> {
        let (scheme, rest) = text.split_once("://").unwrap_or((first_word(text), ""));
        let Some(dbms) = known_scheme(scheme) else {
            return Err(DsnError::Scheme(scheme.to_owned()));
        };
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        // A password may hold an unencoded @; a host cannot.
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let (user, password) = user.split_once(':').unwrap_or((user, ""));
        let password_variable = variable(password).map(str::to_owned);
        let password = if password_variable.is_some() { "" } else { password };
        let mut parts = Parts {
            dbms,
            user: decode(user, "user")?,
            password: decode(password, "password")?,
            password_variable,
            database: decode(database, "database")?,
            ..Parts::default_of(dbms)
        };
        parts.set_host(host)?;
        for option in options.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            parts.set_option(name, decode(value, "options")?)?;
        }
        parts.finish()
    }

    /// What the server speaks.
    pub fn dialect(&self) -> Dialect {
        self.dbms.dialect()
    }
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
                match tls {
                    Tls::Off => Ok(()),
                    Tls::Require => f.write_str("?sslmode=require"),
                    Tls::Verify { root_certificate } => {
                        let file = root_certificate.to_string_lossy();
                        write!(f, "?sslmode=verify-full&sslrootcert={}", Encoded(&file, "/"))
                    }
                }
            }
        }
    }
}

/// The name in `${NAME}`, where a password stands.
fn variable(password: &str) -> Option<&str> {
    let name = password.strip_prefix("${")?.strip_suffix('}')?;
    let is_name = |name: &str| {
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit())
    };
    (!name.is_empty() && is_name(name)).then_some(name)
}

/// A DSN that may be shown and stored. It keeps the name of a variable, but no password. Where it
/// is not clear what belongs to the password, rather more is left out than less.
pub fn without_password(dsn: &str) -> String {
    let Some((scheme, rest)) = dsn.split_once("//") else { return dsn.to_string() };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let place = match place.rsplit_once('@') {
        Some((login, host)) => {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            match variable(password) {
                Some(name) => format!("{user}:${{{name}}}@{host}"),
                None => format!("{user}@{host}"),
            }
        }
        None => place.to_string(),
    };
    let query = query.map(|query| {
        let kept = query.split('&').filter(|pair| !pair.to_lowercase().starts_with("pass"));
        kept.collect::<Vec<_>>().join("&")
    });
    let query = query.filter(|query| !query.is_empty());
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    format!("{scheme}//{place}{query}")
}

fn known_scheme(scheme: &str) -> Option<Dbms> {
    Dbms::from_name(scheme).filter(|dbms| dbms.dialect().spec().server.is_some())
}

/// True for the DSNs of Postgres, in which the host may be the folder of a socket; false for those
/// of MySQL, which name its file.
fn names_folder(dbms: Dbms) -> bool {
    let server = dbms.dialect().spec().server.as_ref();
    server.is_some_and(|server| server.socket == SocketName::HostFolder)
}

/// What a text begins with, short enough for an error and without anything secret.
fn first_word(text: &str) -> &str {
    text.split([':', '/', '@', ' ']).next().unwrap_or_default()
}

/// A DSN while it is being read.
struct Parts {
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
    tls_mode: String,
    root_certificate: String,
}

impl Parts {
    fn default_of(dbms: Dbms) -> Parts {
        Parts {
            dbms,
            user: String::new(),
            password: String::new(),
            password_variable: None,
            database: String::new(),
            host: String::new(),
            port: dbms.dialect().spec().server.as_ref().map_or(0, |server| server.port),
            socket: String::new(),
            tls_mode: String::new(),
            root_certificate: String::new(),
        }
    }

    /// `host`, `host:port`, `[::1]:port`, `%2Ffolder`.
    fn set_host(&mut self, text: &str) -> Result<(), DsnError> {
        let bad = |why| DsnError::Host { host: text.to_owned(), why };
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
        self.host = decode(host, "host")?;
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
            _ => Err(DsnError::Port(text.to_owned())),
        }
    }

    fn set_option(&mut self, name: &str, value: String) -> Result<(), DsnError> {
        let postgres = names_folder(self.dbms);
        match name {
            "sslmode" | "ssl-mode" => self.tls_mode = value.to_ascii_lowercase(),
            "sslrootcert" | "ssl-ca" => self.root_certificate = value,
            "host" if postgres => self.host = value,
            "port" if postgres => self.set_port(&value)?,
            "user" if postgres => self.user = value,
            "password" if postgres => self.password = value,
            "dbname" if postgres => self.database = value,
            "socket" if !postgres => self.socket = value,
            _ => {
                let known = if postgres { POSTGRES_OPTIONS } else { MYSQL_OPTIONS };
                return Err(DsnError::Option { option: name.to_owned(), known });
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Dsn, DsnError> {
        let postgres = names_folder(self.dbms);
        if self.user.is_empty() {
            let example = if postgres { "postgres://USER@…" } else { "mysql://USER@…" };
            return Err(DsnError::Missing { part: "user", example });
        }
        let tls = self.tls()?;
        let address = match self.socket()? {
            Some(_) if tls != Tls::Off => {
                return Err(DsnError::Value {
                    option: "sslmode".to_owned(),
                    value: self.tls_mode,
                    why: "has no use on a unix socket, which is local",
                });
            }
            Some(socket) => Address::Unix(socket),
            None if self.host.is_empty() => {
                let example = if postgres {
                    "postgres://user@HOST/database, or postgres://user@/database?host=/FOLDER"
                } else {
                    "mysql://user@HOST/database, or mysql://user@/database?socket=/PATH"
                };
                return Err(DsnError::Missing { part: "host", example });
            }
            None => Address::Tcp { host: self.host, port: self.port, tls },
        };
        check_tls(&address).map_err(|error| DsnError::NoTls(error.to_string()))?;
        let Parts { dbms, user, password, password_variable, database, .. } = self;
        Ok(Dsn { dbms, address, login: Login { user, password, database }, password_variable })
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

    fn tls(&self) -> Result<Tls, DsnError> {
        let bad = |option: &str, value: &str, why| {
            Err(DsnError::Value { option: option.to_owned(), value: value.to_owned(), why })
        };
        let mode = self.tls_mode.as_str();
        let tls = match mode {
            "" | "disable" | "disabled" => Tls::Off,
            "require" | "required" => Tls::Require,
            "verify-full" | "verify_full" | "verify_identity" | "verify-identity" => {
                if self.root_certificate.is_empty() {
                    let why = "needs sslrootcert=FILE, the certificate that signed the server's \
                               certificate";
                    return bad("sslmode", mode, why);
                }
                Tls::Verify { root_certificate: PathBuf::from(&self.root_certificate) }
            }
            "prefer" | "preferred" | "allow" => {
                let why = "lets the server choose encryption, but a measurement must fix it: use \
                           disable or require";
                return bad("sslmode", mode, why);
            }
            "verify-ca" | "verify_ca" => {
                return bad("sslmode", mode, "is not supported: use verify-full or require");
            }
            _ => return bad("sslmode", mode, "is not one of disable, require, verify-full"),
        };
        if !self.root_certificate.is_empty() && !matches!(tls, Tls::Verify { .. }) {
            return bad("sslrootcert", &self.root_certificate, "works only with verify-full");
        }
        Ok(tls)
    }
}

/// Undoes percent-encoding. `+` stays a plus.
fn decode(text: &str, part: &'static str) -> Result<String, DsnError> {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngSeed};

    #[test]
    fn a_dsn_is_stored_without_its_password() {
        let check = |dsn: &str, stored: &str| assert_eq!(without_password(dsn), stored);
        check("postgres://me:${SECRET}@host/db", "postgres://me:${SECRET}@host/db");
        check("postgres://me:${SEC RET}@host/db", "postgres://me@host/db");
        check("postgres://me:x${SECRET}@host/db", "postgres://me@host/db");
        check("postgres://me:secret@db:5432/app", "postgres://me@db:5432/app");
        check("postgres://me@db/app", "postgres://me@db/app");
        check("mysql://db:3306/app", "mysql://db:3306/app");
        check("mysql://me:p@ss/w:ord@db/app", "mysql://me@db/app");
        check("postgres:///app?host=/tmp&password=x&user=me", "postgres:///app?host=/tmp&user=me");
        check("postgres:///app?password=x", "postgres:///app");
        check("mysql://me:@db", "mysql://me@db");
    }

    use super::*;

    fn shown(text: &str) -> String {
        match Dsn::parse(text) {
            Ok(dsn) => {
                let Login { user, password, database } = &dsn.login;
                format!("{} {} {user} {password} {database}", dsn.dbms, dsn.address)
            }
            Err(error) => error.to_string(),
        }
    }

    fn check(text: &str, expected: &str) {
        assert_eq!(shown(text), expected, "{text}");
    }

    #[test]
    fn reads_all_forms() {
        check("postgres://u:p@h:6000/d", "postgres h:6000 u p d");
        check("postgresql://u@h", "postgres h:5432 u  ");
        check("postgres://u:p%40%2F%3a@h/d%20e", "postgres h:5432 u p@/: d e");
        check("postgres://u:p@q@h/d", "postgres h:5432 u p@q d");
        check("postgres://u@[::1]:7/d", "postgres ::1:7 u  d");
        check("postgres://u@[::1]/d", "postgres ::1:5432 u  d");
        check("postgres://u@/d?host=/run/pg", "postgres /run/pg/.s.PGSQL.5432 u  d");
        check("postgres://u@:7/d?host=/run/pg", "postgres /run/pg/.s.PGSQL.7 u  d");
        check("postgres:///d?user=u&host=/r&port=8", "postgres /r/.s.PGSQL.8 u  d");
        check("postgres://u@%2Frun%2Fpg/d", "postgres /run/pg/.s.PGSQL.5432 u  d");
        check("postgres://u@/d?host=/r/.s.PGSQL.9", "postgres /r/.s.PGSQL.9 u  d");
        check("postgres://h?user=u&password=%25&dbname=d", "postgres h:5432 u % d");
        check("mysql://u:p@h/d", "mysql h:3306 u p d");
        check("mysql://u@/d?socket=/tmp/my%20sock", "mysql /tmp/my sock u  d");
        check("mariadb://u:+@h:1/", "mariadb h:1 u + ");
        check("mysql://u@h/?ssl-mode=DISABLED", "mysql h:3306 u  ");
    }

    #[test]
    fn names_the_bad_part() {
        check(
            "oracle://u@h",
            "the DSN begins with 'oracle' instead of postgres://, postgresql://, mysql:// or \
             mariadb://",
        );
        check(
            "user:secret@host",
            "the DSN begins with 'user' instead of postgres://, postgresql://, mysql:// or \
             mariadb://",
        );
        check("mysql://h/d", "the DSN names no user: write mysql://USER@…");
        check(
            "mysql://u@/d",
            "the DSN names no host: write mysql://user@HOST/database, or \
             mysql://user@/database?socket=/PATH",
        );
        check(
            "mysql://u:50%@h",
            "the password of the DSN has invalid percent-encoding: write a literal % as %25",
        );
        check("mysql://u:%+1@h", &DsnError::Encoding("password").to_string());
        check("mysql://u%ff@h", &DsnError::Encoding("user").to_string());
        check("mysql://u@h:0", "the port '0' of the DSN is not a number from 1 to 65535");
        check("mysql://u@h:x", "the port 'x' of the DSN is not a number from 1 to 65535");
        check(
            "postgres://u@::1/d",
            "the host '::1' of the DSN has more than one colon; write an IPv6 address as [::1]",
        );
        check(
            "postgres://u@a,b/d",
            "the host 'a,b' of the DSN names several servers; a DSN names one",
        );
        check("postgres://u@[::1/d", "the host '[::1' of the DSN has no closing ]");
        check(
            "postgres://u@[::1]7/d",
            "the host '[::1]7' of the DSN has something other than a port after ]",
        );
        check(
            "mysql://u@h?host=a",
            "unknown DSN option 'host'; valid options: socket, ssl-mode, ssl-ca (or \
             sslmode, sslrootcert)",
        );
        check("mysql://u@%2Ftmp", "the host '/tmp' of the DSN is a path: write ?socket=/path");
        check("mysql://u@/?socket=tmp", "the DSN's option socket=tmp is not an absolute path");
    }

    #[test]
    fn tls_is_said_or_refused() {
        check(
            "postgres://u@h?sslmode=verify-ca",
            "the DSN's option sslmode=verify-ca is not supported: use verify-full or require",
        );
        check(
            "postgres://u@h?sslmode=sure",
            "the DSN's option sslmode=sure is not one of disable, require, verify-full",
        );
        check(
            "postgres://u@h?sslmode=verify-full",
            "the DSN's option sslmode=verify-full needs sslrootcert=FILE, the certificate that \
             signed the server's certificate",
        );
        check(
            "postgres://u@h?sslrootcert=/a",
            "the DSN's option sslrootcert=/a works only with verify-full",
        );
        check(
            "postgres://u@/?host=/r&sslmode=require",
            "the DSN's option sslmode=require has no use on a unix socket, which is local",
        );
        assert!(shown("postgres://u@h?sslmode=prefer").contains("use disable or require"));
        let required = Dsn::parse("postgres://u@h?sslmode=require");
        let verified = Dsn::parse("mysql://u@h?ssl-mode=VERIFY_IDENTITY&ssl-ca=/ca.pem");
        if cfg!(feature = "tls") {
            let address = |dsn: Result<Dsn, DsnError>| dsn.unwrap().address;
            let tcp = |port, tls| Address::Tcp { host: "h".to_owned(), port, tls };
            assert_eq!(address(required), tcp(5432, Tls::Require));
            let root_certificate = PathBuf::from("/ca.pem");
            assert_eq!(address(verified), tcp(3306, Tls::Verify { root_certificate }));
        } else {
            assert!(required.unwrap_err().to_string().contains("--features tls"));
            assert!(verified.unwrap_err().to_string().contains("--features tls"));
        }
    }

    #[test]
    fn shows_no_password() {
        let hidden = |text: &str| Dsn::parse(text).unwrap().to_string();
        assert_eq!(hidden("postgres://u:secret@h/d"), "postgres://u@h:5432/d");
        assert_eq!(hidden("postgresql://h/d?user=u&password=x"), "postgres://u@h:5432/d");
        assert_eq!(
            hidden("postgres://u@/d?host=/run/pg&password=x"),
            "postgres://u@/d?host=/run/pg/.s.PGSQL.5432"
        );
        assert_eq!(hidden("mariadb://u%40:x@[::1]/d"), "mariadb://u%40@[::1]:3306/d");
        assert_eq!(hidden("mysql://u:x@/d?socket=/s"), "mysql://u@/d?socket=/s");
        let debug = format!("{:?}", Dsn::parse("mysql://u:secret@h/d").unwrap());
        assert!(!debug.contains("secret"), "{debug}");
    }

    #[test]
    fn looks() {
        assert!(Dsn::looks_like("mysql://"));
        assert!(!Dsn::looks_like("mysql@8.0.33"));
        assert!(!Dsn::looks_like("postgres=/usr/lib/postgresql/15"));
        assert!(!Dsn::looks_like("https://example.org"));
    }

    proptest! {
        #![proptest_config(Config { rng_seed: RngSeed::Fixed(1), ..Config::default() })]

        #[test]
        fn never_panics(text in "(postgres|mysql)://[a%0-9:@/?&=\\[\\]é,]{0,40}") {
            let _ = Dsn::parse(&text);
        }

        #[test]
        fn what_is_shown_means_the_same(
            user in "\\PC{1,8}", database in "\\PC{0,8}", host in "[a-z.-]{1,9}",
            path in "/[^/\0]{1,8}", port in 1u16.., form in 0..5,
        ) {
            let (dbms, address) = match form {
                0 => (Dbms::Postgres, Address::Tcp { host, port, tls: Tls::Off }),
                1 => (Dbms::Mariadb, Address::Tcp { host: "::1".into(), port, tls: Tls::Off }),
                2 => (Dbms::Mysql, Address::Tcp { host, port, tls: Tls::Off }),
                3 => (Dbms::Mysql, Address::Unix(path.into())),
                _ => (Dbms::Postgres, Address::Unix(format!("{path}/.s.PGSQL.{port}").into())),
            };
            let login = Login { user, password: String::new(), database };
            let dsn = Dsn { dbms, address, login, password_variable: None };
            prop_assert_eq!(Dsn::parse(&dsn.to_string()), Ok(dsn));
        }
    }
}
