//! Where one target lives, and the flag that ends all waiting.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::dbms::error::DbmsError;
use crate::domain::build::Build;
use crate::domain::config::Config;
use crate::os::user::User;
use crate::os::valgrind::Callgrind;

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
    /// What the server runs under, if its instructions are to be counted.
    pub callgrind: Option<Callgrind>,
    /// The program of rqps itself, which has the warden as a hidden subcommand.
    pub warden_program: PathBuf,
    /// How long a start, or making a data folder, may take.
    pub start_timeout: Duration,
    /// Set by the Ctrl-C handler: waits here then end with [`DbmsError::Interrupted`].
    pub interrupt: Interrupt,
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
