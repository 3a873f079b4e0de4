//! The control plane: what the lab asks of every DBMS.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

use thiserror::Error;

use crate::server::Server;
use crate::sql_server::{SettleLoad, SqlServer};
use rqps_host::fingerprint::Fingerprint;
use rqps_host::process::ProcessError;
use rqps_host::user::{User, UserError};
use rqps_host::valgrind::Callgrind;
use rqps_model::build::{Build, Config, GuestPlace};
use rqps_model::endpoint::{Address, Consent, Endpoint, Login, ServerKey, Tls};
use rqps_wire::WireError;

/// One DBMS under control. All calls block.
pub trait ControlPlane: Send {
    /// Makes the data folder, with an empty database. Refuses a folder that is not empty.
    fn init(&mut self) -> Result<(), DbmsError>;
    /// Starts the server and returns when it answers a query. Creates nothing.
    fn start(&mut self) -> Result<(), DbmsError>;
    /// Address and login for clients.
    fn endpoint(&self) -> (Endpoint, Login);
    /// Address and login for clients on other hosts; `None` if the server listens at no address, or
    /// there is no server.
    fn far_endpoint(&self) -> Option<(Endpoint, Login)> {
        None
    }
    /// The first statements of each session of clients, or of those that load: `SET …`,
    /// `PRAGMA …`.
    fn session_setup(&self, loads: bool) -> Vec<String>;
    /// The place of tables on a server that rqps does not run; `None` on its own.
    fn guest_place(&self) -> Option<GuestPlace> {
        None
    }
    /// A program that must start the process of the clients, given the program and its arguments,
    /// because that process loads a library which this host cannot load by itself.
    fn launcher(&self) -> Option<PathBuf> {
        None
    }
    /// The control group that the process of the clients must be in: where the DBMS is a library,
    /// a limit on its memory is one on theirs.
    fn client_group(&self) -> Option<PathBuf> {
        None
    }
    /// Root process of the server, if it is on this host and known.
    fn server_pid(&self) -> Option<u32> {
        None
    }
    /// The server, if it answers SQL.
    fn sql(&self) -> Option<SqlServer> {
        None
    }
    /// The version that the running server reports.
    fn reported_version(&mut self) -> Result<String, DbmsError> {
        self.sql().map_or_else(|| Ok(String::new()), |server| server.version())
    }
    /// What makes the running build one for debugging, in its own words, such as
    /// `debug_assertions = on`: it spends time on checks that a release leaves out. `None` for a
    /// release, and where the DBMS does not tell.
    fn debug_build(&mut self) -> Result<Option<String>, DbmsError> {
        self.sql().map_or(Ok(None), |server| server.debug_build())
    }
    /// The compiler of the running build, if the server tells it.
    fn compiler(&mut self) -> Option<String> {
        self.sql()?.compiler()
    }
    /// Settings of the running server that a run records; empty without a server.
    fn server_settings(&mut self) -> Result<BTreeMap<String, String>, DbmsError> {
        self.sql().map_or_else(|| Ok(BTreeMap::new()), |server| server.settings())
    }
    /// Called before tables are loaded into a data folder that is thrown away if that fails: what
    /// only guards against a crash may be off until [`ControlPlane::after_load`].
    fn before_load(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
    /// Called when they are loaded. Settings are those of the config when it returns.
    fn after_load(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
    /// Brings the server to rest after writes, so that what follows does not pay for them. Reports
    /// the current activity to `progress`.
    fn settle(
        &mut self,
        load: &SettleLoad,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), DbmsError> {
        self.sql().map_or(Ok(()), |server| server.calls.settle(&server, load, progress))
    }
    /// Reads all tables and indexes once, so that the caches hold what they have room for.
    fn read_all(&mut self, tables: &SettleLoad) -> Result<(), DbmsError> {
        let _ = tables;
        Ok(())
    }
    /// Settings and counters for the run's logs: file name → text.
    fn status(&mut self) -> Result<Vec<(String, String)>, DbmsError> {
        self.sql().map_or_else(|| Ok(Vec::new()), |server| server.status())
    }
    /// The server's own counters, by name: what it read, wrote and waited for since it started. The
    /// error is a reason: there are none, or this login may not read them. `quiet` waits a moment
    /// for sessions of clients that have just ended, which hand in their counts when they end.
    fn counters(&mut self, quiet: bool) -> Result<BTreeMap<String, f64>, String> {
        self.sql().ok_or("rqps reads no counters of this DBMS")?.counters(quiet)
    }
    /// The folder with nothing but the tables and indexes of the benchmark, where there is one: its
    /// size is the published size of such a database.
    fn database_folder(&self) -> Option<PathBuf> {
        None
    }
    /// Arguments beyond its config that the server gets under valgrind, because it cannot run there
    /// without them.
    fn valgrind_args(&self) -> Vec<String> {
        Vec::new()
    }
    /// The server under a warden, where rqps runs one: what has none needs to say nothing.
    fn server(&mut self) -> Option<&mut Server> {
        None
    }
    /// Stops all processes of the server from running.
    fn pause(&mut self) -> Result<(), DbmsError> {
        self.server().map_or(Ok(()), |server| server.pause())
    }
    /// Lets them run again.
    fn resume(&mut self) -> Result<(), DbmsError> {
        self.server().map_or(Ok(()), |server| server.resume())
    }
    /// An error, with the last lines of the log, if the server is no longer alive.
    fn check(&mut self) -> Result<(), DbmsError> {
        self.server().map_or(Ok(()), |server| server.check())
    }
    /// Shuts down in good order: afterwards the data folder can be copied.
    fn stop(&mut self) -> Result<(), DbmsError>;
}

// Paths and address of one target, and the flag that ends all waiting.

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

// Errors of a DBMS.

/// An error of a DBMS. Texts that end with lines of a log have several lines.
#[derive(Debug, Error)]
pub enum DbmsError {
    /// Only imported results name such a DBMS.
    #[error("run a DBMS unknown to this rqps: rqps can report its results, not measure it")]
    Unknown,
    /// The data folder is in use or left over.
    #[error(
        "make a data folder in {0}: the folder is not empty; remove it or name another folder \
         (rqps only deletes data that it made)"
    )]
    DataNotEmpty(PathBuf),
    /// A file or folder.
    #[error("{doing}: {source}")]
    Io {
        /// The action and its object.
        doing: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A program of the DBMS, or the server itself, ended when it should not have.
    #[error("{doing}: {what}{tail}{hint}")]
    Ended {
        /// "start postgres 17.2.0".
        doing: String,
        /// "it ended with exit status 1".
        what: String,
        /// The last lines of its log, each on a line of its own.
        tail: String,
        /// A hint, if the log gives one; begins with a line break.
        hint: String,
    },
    /// A statement of the control plane failed.
    #[error("{doing}: {source}")]
    Sql {
        /// "settle mysql 8.0.33: ANALYZE TABLE sbtest1".
        doing: String,
        /// The server's words.
        source: WireError,
    },
    /// The user that servers run as.
    #[error(transparent)]
    User(#[from] UserError),
    /// A signal, or the warden.
    #[error("{doing}: {source}")]
    Process {
        /// The action and its object.
        doing: String,
        /// The error of the process.
        source: ProcessError,
    },
    /// Asked for what this DBMS or build cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// A server that rqps does not run holds something that rqps must not touch, and did not.
    #[error("{0}")]
    Refused(String),
    /// The user wants to stop.
    #[error("wait for the database: interrupted")]
    Interrupted,
}

impl DbmsError {
    pub(super) fn ended(doing: String, what: String) -> DbmsError {
        DbmsError::Ended { doing, what, tail: String::new(), hint: String::new() }
    }

    /// For `map_err` on file operations.
    pub(super) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Io { doing, source }
    }

    /// For `map_err` on statements.
    pub(super) fn sql(doing: impl Into<String>) -> impl FnOnce(WireError) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Sql { doing, source }
    }

    /// For `map_err` on processes.
    pub(super) fn process(doing: impl Into<String>) -> impl FnOnce(ProcessError) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Process { doing, source }
    }
}
