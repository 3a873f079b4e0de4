//! The control plane: what the lab asks of every DBMS.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::error::DbmsError;
use crate::server::Server;
use crate::settle::SettleLoad;
use crate::sql_server::SqlServer;
use rqps_model::endpoint::{Endpoint, Login};
use rqps_model::guest::GuestPlace;

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
