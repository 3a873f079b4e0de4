//! Database systems: make a data folder, start, know when it is ready, settle, look inside, stop.
//! One file per DBMS; what they share about servers is in `server.rs`.
//!
//! This is the control plane: it may fail, and then says richly how. What is measured goes through
//! the driver, never through here. Nothing here knows benchmarks.

pub mod config;
mod events;
mod external;
mod fake;
mod guest;
mod log;
mod mariadb;
mod myrocks;
mod mysql;
mod postgres;
mod rocksdb;
mod server;
mod settle;
mod sqlite;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use thiserror::Error;

use crate::domain::build::{Build, Dbms};
use crate::domain::config::Config;
use crate::domain::endpoint::{Endpoint, Login};
use crate::domain::guest::GuestPlace;
use crate::os::process::ProcessError;
use crate::os::user::{User, UserError};
use crate::wire::WireError;

pub use self::events::events;
pub use self::external::{External, external};
pub use self::guest::Guest;
pub use self::rocksdb::{ROCKSDB_COMMAND, rocksdb_process};
pub use self::server::Server;
pub use self::settle::SettleLoad;
pub use self::sqlite::{SQLITE_COMMAND, sqlite_process};

/// Where and how one target lives.
#[derive(Clone, Debug)]
pub struct Site {
    /// What runs.
    pub build: Build,
    /// Its settings.
    pub config: Config,
    /// Its data folder: all that a snapshot must copy while the server is down.
    pub data: PathBuf,
    /// The folder for logs of the server and of the programs that make its data folder.
    pub logs: PathBuf,
    /// A private folder for sockets with a short path. Made at the start, removed at the end.
    pub sockets: PathBuf,
    /// `innodb`, `rocksdb`: where the DBMS has a choice and one was made.
    pub storage_engine: Option<String>,
    /// The user of the server, if rqps runs as root.
    pub run_as: Option<User>,
    /// A control group that the server is started in; `None` for that of rqps.
    pub memory_group: Option<PathBuf>,
    /// Listen on this port of 127.0.0.1, too; `None` for the private socket only.
    pub tcp_port: Option<u16>,
    /// The program of rqps itself, which has the warden as a hidden subcommand.
    pub warden_program: PathBuf,
    /// How long a start, or making a data folder, may take.
    pub start_timeout: Duration,
    /// Set by whoever catches Ctrl-C: what waits here then gives up with
    /// [`DbmsError::Interrupted`].
    pub interrupt: Interrupt,
}

/// A flag shared with the handler of Ctrl-C.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(pub Arc<AtomicBool>);

impl Interrupt {
    /// An error once the flag is set.
    fn check(&self) -> Result<(), DbmsError> {
        if self.0.load(Ordering::Relaxed) { Err(DbmsError::Interrupted) } else { Ok(()) }
    }
}

/// One DBMS under control. All calls block.
pub trait ControlPlane: Send {
    /// Makes the data folder, with an empty database. Refuses a folder that is not empty.
    fn init(&mut self) -> Result<(), DbmsError>;
    /// Starts the server and returns when it answers a query. Creates nothing.
    fn start(&mut self) -> Result<(), DbmsError>;
    /// Where clients connect, and as whom.
    fn endpoint(&self) -> (Endpoint, Login);
    /// What every measuring session says first: `SET …`, `PRAGMA …`.
    fn session_setup(&self) -> Vec<String>;
    /// Where tables are on a server that rqps does not run; `None` for one that it runs.
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
    fn server_pid(&self) -> Option<u32>;
    /// The version that the running server reports.
    fn reported_version(&mut self) -> Result<String, DbmsError>;
    /// Called before tables are loaded into a data folder that is thrown away if that fails: what
    /// only guards against a crash may be off until [`ControlPlane::after_load`].
    fn before_load(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
    /// Called when they are loaded. Settings are those of the config when it returns.
    fn after_load(&mut self) -> Result<(), DbmsError> {
        Ok(())
    }
    /// Brings the server to rest after writes, so that what follows does not pay for them.
    /// `progress` is told what is being done.
    fn settle(
        &mut self,
        load: &SettleLoad,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), DbmsError>;
    /// Settings and counters for the run's logs: file name → text.
    fn status(&mut self) -> Result<Vec<(String, String)>, DbmsError>;
    /// The server's own counters, by name: what it read, wrote and waited for since it started. The
    /// error is a reason: there are none, or this login may not read them. `quiet` waits a moment
    /// for sessions of clients that have just ended, which hand in their counts when they end.
    fn counters(&mut self, quiet: bool) -> Result<BTreeMap<String, f64>, String> {
        let _ = quiet;
        Err("this DBMS keeps none that rqps reads".to_owned())
    }
    /// The folder with nothing but the tables and indexes of the benchmark, where there is one: its
    /// size is the published size of such a database.
    fn database_folder(&self) -> Option<PathBuf> {
        None
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

/// The control plane of a target whose server rqps runs itself. For servers that somebody else
/// runs see [`external`].
pub fn control_plane(site: Site) -> Result<Box<dyn ControlPlane>, DbmsError> {
    Ok(match site.build.manifest.dbms {
        Dbms::Postgres => Box::new(postgres::Postgres::new(site)?),
        Dbms::Mysql => Box::new(mysql::Mysql::new(site)?),
        Dbms::Mariadb => Box::new(mariadb::new(site)?),
        Dbms::Sqlite => Box::new(sqlite::Sqlite::new(site)),
        Dbms::Other => return Err(DbmsError::Unknown),
        Dbms::Rocksdb | Dbms::Speedb => Box::new(rocksdb::KeyValue::new(site)),
        Dbms::Fake => Box::new(fake::Fake::new(site)),
    })
}

/// What can go wrong with a DBMS. The texts that end in a log's last lines span several lines.
#[derive(Debug, Error)]
pub enum DbmsError {
    /// Only imported results name such a DBMS.
    #[error("run a DBMS that rqps does not know: its results can be reported, not measured anew")]
    Unknown,
    /// The data folder is in use or left over.
    #[error(
        "make a data folder in {0}: the folder is not empty; remove it or name another one \
         (rqps never deletes data that it did not make)"
    )]
    DataNotEmpty(PathBuf),
    /// The build lacks a program.
    #[error(
        "find {program} of {dbms}: it is not in {root}/bin, sbin, libexec or scripts; \
         name the folder that holds bin/, as in {dbms}=PATH"
    )]
    NoProgram {
        /// What is missing.
        program: &'static str,
        /// Of which product.
        dbms: Dbms,
        /// Where it was looked for.
        root: PathBuf,
    },
    /// The kernel takes no longer socket paths.
    #[error(
        "listen on {path}: the path has {length} bytes and a socket can have {limit}; \
         choose a shorter folder for temporary files",
        path = path.display()
    )]
    SocketPath {
        /// The socket.
        path: PathBuf,
        /// Its length.
        length: usize,
        /// The most that is possible.
        limit: usize,
    },
    /// A file or folder.
    #[error("{doing}: {source}")]
    Io {
        /// What was done, to what.
        doing: String,
        /// Why it failed.
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
        /// What to do, if the log tells; begins with a line break.
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
        /// What was done, to what.
        doing: String,
        /// Why it failed.
        source: ProcessError,
    },
    /// Asked for what this DBMS or build cannot do.
    #[error("{0}")]
    Unsupported(String),
    /// A server that rqps does not run holds something that rqps must not touch. Nothing was.
    #[error("{0}")]
    Refused(String),
    /// The user wants to stop.
    #[error("wait for the database: interrupted")]
    Interrupted,
}

impl DbmsError {
    /// For `map_err` on file operations.
    fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Io { doing, source }
    }

    /// For `map_err` on statements.
    fn sql(doing: impl Into<String>) -> impl FnOnce(WireError) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Sql { doing, source }
    }

    /// For `map_err` on processes.
    fn process(doing: impl Into<String>) -> impl FnOnce(ProcessError) -> DbmsError {
        let doing = doing.into();
        move |source| DbmsError::Process { doing, source }
    }
}
