//! Ends the statement that another session executes: a server that nobody reads from goes on with
//! it.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::WireError;
use crate::mysql::MysqlClient;
use crate::postgres::PostgresClient;
use rqps_model::endpoint::{Address, Login};

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
pub(super) fn is_stopped() -> bool {
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
