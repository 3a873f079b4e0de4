//! Paths and address of one target, and the flag that ends all waiting.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::DbmsError;
use rqps_host::fingerprint::Fingerprint;
use rqps_host::user::User;
use rqps_host::valgrind::Callgrind;
use rqps_model::build::Build;
use rqps_model::config::Config;
use rqps_model::endpoint::{Address, Consent, Endpoint, ServerKey, Tls};

/// Paths, address and options of one target.
#[derive(Clone, Debug)]
pub struct Site {
    /// The build to run.
    pub build: Build,
    /// What its files were when the user accepted them, if somebody else named them.
    pub accepted: Option<Fingerprint>,
    /// Its settings.
    pub config: Config,
    /// Its data folder: all that a snapshot must copy while the server is down. It belongs to the
    /// user of rqps, as do the control files in it; its `db` and `tmp` to the user of the server.
    pub data: PathBuf,
    /// The folder for logs of the server and of the programs that make its data folder.
    pub logs: PathBuf,
    /// A private folder for sockets with a short path. Made at the start, removed at the end.
    pub sockets: PathBuf,
    /// `innodb`, `rocksdb`: where the DBMS has a choice and one was made.
    pub storage_engine: Option<String>,
    /// The user of the server, or of scripts that open its files, if rqps runs as root.
    pub run_as: Option<User>,
    /// A control group that the server is started in; `None` for that of rqps.
    pub memory_group: Option<PathBuf>,
    /// Its TCP address; `None` for only the private socket.
    pub listen: Option<ListenAddress>,
    /// Callgrind around the server, if its instructions are counted.
    pub callgrind: Option<Callgrind>,
    /// True if the server serves counted runs or loads their data: it then does no background work
    /// at times of its own.
    pub still: bool,
    /// The program of rqps itself, which has the warden as a hidden subcommand.
    pub warden_program: PathBuf,
    /// Time limit for a start or for making a data folder.
    pub start_timeout: Duration,
    /// Set by the Ctrl-C handler: waits here then end with [`DbmsError::Interrupted`].
    pub interrupt: Interrupt,
}

impl Site {
    /// Checks that the build is what the user accepted, right before a process loads it.
    ///
    /// # Errors
    /// Somebody has changed it; the text names the file.
    pub(super) fn check_build(&self) -> io::Result<()> {
        self.accepted.as_ref().map_or(Ok(()), Fingerprint::check).map_err(io::Error::other)
    }
}

/// A server's address for clients on other hosts, and their login.
#[derive(Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// An address of this host.
    pub ip: IpAddr,
    /// A free port.
    pub port: u16,
    /// Every login over TCP needs it, even from this host.
    pub password: String,
}

impl ListenAddress {
    /// The address for clients.
    pub(super) fn endpoint(&self) -> Endpoint {
        let (host, port) = (self.ip.to_string(), self.port);
        // The password is made for this server alone, and ends with it.
        let consent = Consent { key: ServerKey::Asked, ..Consent::default() };
        let tls = Tls { consent, ..Tls::OFF };
        Endpoint::Server(Address::Tcp { host, port, tls })
    }
}

impl fmt::Debug for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} with a password", self.ip, self.port)
    }
}

/// A flag shared with the handler of Ctrl-C.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(pub Arc<AtomicBool>);

impl Interrupt {
    /// An error once the flag is set.
    pub(super) fn check(&self) -> Result<(), DbmsError> {
        if self.0.load(Ordering::Relaxed) { Err(DbmsError::Interrupted) } else { Ok(()) }
    }
}
