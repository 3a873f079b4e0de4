//! Errors of a database connection, and how statements are stopped from another thread.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

use crate::mysql::MysqlClient;
use crate::postgres::PostgresClient;
use rqps_model::endpoint::{Address, Login};
use rqps_model::escape;

/// An error of a connection.
#[derive(Debug, Error)]
pub enum WireError {
    /// The server refused the statement; the connection can go on.
    #[error("{} ({})", escape::line(message), escape::line(code))]
    Server {
        /// SQLSTATE for Postgres (`40001`), error number for MySQL (`1213`), result code for
        /// SQLite.
        code: String,
        /// The server's message.
        message: String,
    },
    /// The server asks for a password, and the login has none.
    #[error("{words}")]
    NoPassword {
        /// `28P01` of Postgres, `1045` of MySQL.
        code: &'static str,
        /// The server's message, and where a password may come from.
        words: String,
    },
    /// The connection is broken, or could not be opened.
    #[error("{doing}: {source}")]
    Io {
        /// The action that failed: "connect to /tmp/x/.s.PGSQL.5432".
        doing: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The client does not understand or support the server's message.
    #[error("{0}")]
    Protocol(String),
}

impl From<String> for WireError {
    fn from(what: String) -> WireError {
        WireError::Protocol(what)
    }
}

impl WireError {
    /// The server's code, if the server refused.
    pub fn code(&self) -> Option<&str> {
        match self {
            WireError::Server { code, .. } => Some(code),
            WireError::NoPassword { code, .. } => Some(code),
            WireError::Io { .. } | WireError::Protocol(_) => None,
        }
    }

    /// What a user can do about a server that did not let rqps in, where a DSN names it.
    pub fn way_out(&self) -> Option<&'static str> {
        match self {
            WireError::Io { doing, .. } if doing.starts_with("connect to") => Some(
                "start the server, or name another host, port or socket in the DSN; a port that \
                 a firewall closes does not answer",
            ),
            WireError::Server { code, .. } => match code.as_str() {
                "3D000" | "1049" => Some(
                    "name a database that the server has in the DSN, after the last /, or make \
                     this one",
                ),
                "28000" => Some("name another user in the DSN, or let this one in (pg_hba.conf)"),
                "1044" => {
                    Some("GRANT the user of the DSN a right to the database, or name another")
                }
                "28P01" | "1045" => Some(
                    "the password is from the DSN, its variable or the client's file \
                     (docs/dsn.md, Passwords)",
                ),
                _ => None,
            },
            _ => None,
        }
    }

    /// True if the server refused a session because it is not encrypted.
    fn wants_encryption(&self) -> bool {
        matches!(self, WireError::Server { message, .. }
            if ENCRYPTION_WANTED.iter().any(|words| message.contains(words)))
    }

    /// True if Postgres may have refused a connection because it is not encrypted. Its messages may
    /// be in any language, so the code of a refused login also counts.
    pub(super) fn may_want_encryption(&self) -> bool {
        self.code() == Some(INVALID_AUTHORIZATION) || self.wants_encryption()
    }

    /// Adds a hint if the server refused the connection because of encryption or a missing client
    /// certificate.
    pub(super) fn with_tls_hint(self, encrypted: bool) -> WireError {
        let WireError::Server { message, .. } = &self else { return self };
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        let hint = if says(&CERTIFICATE_WANTED) {
            "name a certificate of the client with sslcert=FILE and sslkey=FILE"
        } else if !encrypted && self.wants_encryption() {
            "the server refuses sessions without TLS: use sslmode=require or verify-full"
        } else if encrypted && message.contains("SSL encryption") {
            "the server refuses sessions with TLS: use sslmode=disable"
        } else {
            return self;
        };
        WireError::Protocol(format!("{self}\nhint: {hint}"))
    }
}

/// Longest part of what a server says about an error that is kept, bytes: a terminal and each record
/// of a step would show all of it.
const WORDS_KEPT: usize = 8 << 10;

/// What a server says, shortened.
pub(super) fn words_of(said: &[u8]) -> String {
    let kept = said.get(..WORDS_KEPT).unwrap_or(said);
    let words = String::from_utf8_lossy(kept);
    match said.len() - kept.len() {
        0 => words.into_owned(),
        more => format!("{words}… and {more} bytes more"),
    }
}

/// SQLSTATE of Postgres: pg_hba.conf has no matching entry, or the role does not exist.
const INVALID_AUTHORIZATION: &str = "28000";

/// Messages of servers that require encryption: Postgres 14 and later, older Postgres, CockroachDB,
/// Neon, Azure; MySQL, MariaDB and TiDB; Vitess.
const ENCRYPTION_WANTED: [&str; 7] = [
    "no encryption", "SSL off", "SSL connection required", "connection is insecure",
    "SSL connection is required", "insecure transport", "insecure connections",
];

/// Messages of Postgres and of poolers that require a client certificate.
const CERTIFICATE_WANTED: [&str; 2] =
    ["requires a valid client certificate", "no TLS client certificate"];

// Ends the statement that another session executes: a server that nobody reads from goes on with
// it.

/// A session whose statement can be ended.
#[derive(Clone)]
pub struct Canceller {
    address: Address,
    login: Login,
    session: Session,
}

#[derive(Clone)]
enum Session {
    /// Whether it is encrypted, its number, and its key.
    Postgres(bool, u32, Vec<u8>),
    /// The server, and its number there.
    Mysql(String, u64),
}

/// The server that answers. Proxies may lead each connection to another one, where a number is that
/// of somebody else's session.
const SERVER: &str = "SELECT CONCAT(@@hostname, ':', @@port, ':', @@datadir)";

impl Canceller {
    /// For a session of Postgres at this address.
    pub fn of_postgres(client: &PostgresClient, address: &Address, login: &Login) -> Canceller {
        let key = client.cancel_key().to_vec();
        let session = Session::Postgres(client.is_encrypted(), client.connection_id(), key);
        Canceller { address: address.clone(), login: login.clone(), session }
    }

    /// For a session of MySQL; `None` if a proxy hides its number.
    pub fn of_mysql(
        client: &mut MysqlClient,
        address: &Address,
        login: &Login,
    ) -> Option<Canceller> {
        let server = single(client, SERVER)?;
        let id = single(client, "SELECT CONNECTION_ID()")?.parse().ok()?;
        let is_known = id == u64::from(client.connection_id());
        let session = Session::Mysql(server, id);
        is_known.then(|| Canceller { address: address.clone(), login: login.clone(), session })
    }

    /// Ends its statement, if it executes one.
    ///
    /// # Errors
    /// The server does not answer within `limit`.
    pub fn cancel(&self, limit: Duration) -> Result<(), WireError> {
        let (server, id) = match &self.session {
            Session::Postgres(encrypted, id, key) => {
                return PostgresClient::cancel(&self.address, *encrypted, *id, key, limit);
            }
            Session::Mysql(server, id) => (server, *id),
        };
        let mut client = MysqlClient::connect(&self.address, &self.login, limit)?;
        client.set_read_timeout(Some(limit))?;
        if single(&mut client, SERVER).as_ref() == Some(server) {
            client.simple(&format!("KILL QUERY {id}")).map(drop)
        } else {
            Ok(())
        }
    }
}

fn single(client: &mut MysqlClient, sql: &str) -> Option<String> {
    client.rows(sql).ok()?.into_iter().flatten().flatten().next()
}

// The way to a server: its name, its address, and the wish of the user to stop on it.

/// How often a wait of the lab looks whether the user wants to stop.
pub(super) const SLICE: Duration = Duration::from_millis(250);

/// How long an answer may take after the user wanted to stop: rqps still removes what it made.
pub(super) const GRACE: Duration = Duration::from_secs(10);

/// The wish of the user to stop, in the process of the lab.
static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, answers on new connections of this process come within ten seconds after `flag`
/// is set, or their connection ends. For the lab; drivers end with it.
pub fn stop_with(flag: Arc<AtomicBool>) {
    // A second flag would be an error of this program, and harmless.
    let _ = STOP.set(flag);
}

/// True once the user wants to stop.
pub fn is_stopped() -> bool {
    STOP.get().is_some_and(|flag| flag.load(Ordering::Relaxed))
}

/// True in a process that the user may stop.
pub(super) fn may_stop() -> bool {
    STOP.get().is_some()
}

/// Addresses of a host. The resolver of the system has a time of its own, and heeds no signal.
fn addresses(host: &str, port: u16, deadline: Instant) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (found, answer) = channel();
    let name = host.to_owned();
    thread::spawn(move || {
        // Nobody may wait any more.
        let _ = found.send((name.as_str(), port).to_socket_addrs().map(Vec::from_iter));
    });
    let mut by = deadline;
    let mut was_stopped = false;
    while Instant::now() < by {
        if is_stopped() && !was_stopped {
            (was_stopped, by) = (true, by.min(Instant::now() + GRACE));
        }
        match answer.recv_timeout(SLICE) {
            Ok(addresses) => return addresses,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Err(io::Error::new(ErrorKind::TimedOut, "the name service did not answer in time"))
}

/// Connects to the first address that answers.
pub(super) fn connect_tcp(host: &str, port: u16, deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in addresses(host, port, deadline)? {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(stream) => {
                // A statement is one small write; waiting to fill a segment would cost 40 ms.
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_words_of_a_server_are_shortened() {
        assert_eq!(words_of("é".as_bytes()), "é");
        let long = words_of(&vec![b'x'; WORDS_KEPT + 7]);
        assert!(long.ends_with("x… and 7 bytes more"), "{long}");
    }

    #[test]
    fn a_session_that_is_refused_for_its_encryption_has_a_way_out() {
        let check = |message: &str, encrypted: bool, hint: &str| {
            let error = WireError::Server { code: "1".to_owned(), message: message.to_owned() };
            let text = error.with_tls_hint(encrypted).to_string();
            let found = text.split_once("\nhint: ").map_or("", |(_, hint)| hint);
            assert!(found.contains(hint) && found.is_empty() == hint.is_empty(), "{text}");
        };
        let hba = "no pg_hba.conf entry for host \"h\", user \"u\", database \"d\"";
        check(&format!("{hba}, no encryption"), false, "sslmode=require");
        check(&format!("{hba}, SSL encryption"), true, "sslmode=disable");
        check("Connections using insecure transport are prohibited", false, "sslmode=require");
        check("connection requires a valid client certificate", true, "sslcert=FILE");
        check(&format!("{hba}, no encryption"), true, "");
        check("database \"d\" does not exist", false, "");
        let german = WireError::Server {
            code: "28000".to_owned(),
            message: "kein pg_hba.conf-Eintrag für Host »h«, keine Verschlüsselung".to_owned(),
        };
        assert!(german.may_want_encryption());
    }
}
