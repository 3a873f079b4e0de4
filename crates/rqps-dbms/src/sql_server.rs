//! What rqps asks of a server that answers SQL, its own or somebody else's.

use std::collections::BTreeMap;

use crate::connection::{Connect, ControlConnection, one_value};
use crate::error::DbmsError;
use crate::server_settings::server_settings;
use crate::settle::SettleLoad;
use crate::site::Interrupt;
use rqps_model::compatible::CompatibleServer;
use rqps_model::dialect::Dialect;
use rqps_wire::WireError;

/// Takes a text about what goes on.
pub(crate) type Tell<'a> = dyn FnMut(&str) + 'a;
/// Names of files and their texts.
pub(crate) type StatusFiles = Vec<(String, String)>;

/// The statements of one kind of servers.
pub(crate) trait ServerCalls: Sync {
    /// Answers the version, in one row.
    fn version_query(&self) -> &'static str;
    /// What makes the server a build for debugging.
    fn debug_build(&self, session: &mut dyn ControlConnection)
    -> Result<Option<String>, WireError>;
    /// Brings the tables to rest. Only the settings of rqps's own servers may be changed for that.
    fn settle(
        &self,
        server: &SqlServer,
        load: &SettleLoad,
        progress: &mut Tell<'_>,
    ) -> Result<(), DbmsError>;
    /// Settings and statistics, as files.
    fn status(&self, session: &mut dyn ControlConnection) -> Result<StatusFiles, WireError>;
    /// Counters that only grow; if `quiet`, after all clients have handed theirs in.
    fn counters(
        &self,
        session: &mut dyn ControlConnection,
        quiet: bool,
    ) -> Result<BTreeMap<String, f64>, WireError>;
    /// The root process, if the server is on this host.
    fn pid(&self, session: &mut dyn ControlConnection) -> Option<u32>;
    /// Beginnings of the names that its process may have.
    fn processes(&self) -> &'static [&'static str];
    /// True if the place of rqps's tables on somebody else's server is a database, not a schema.
    fn place_is_database(&self) -> bool;
}

/// A server that answers SQL.
pub struct SqlServer {
    pub(crate) calls: &'static dyn ServerCalls,
    pub(crate) dialect: Dialect,
    pub(crate) connect: Connect,
    /// As errors name it.
    pub(crate) name: String,
    pub(crate) interrupt: Interrupt,
    /// True if rqps started it.
    pub(crate) is_own: bool,
    pub(crate) compatible: Option<&'static CompatibleServer>,
}

impl SqlServer {
    pub(crate) fn doing(&self, what: &str) -> String {
        format!("{what} {}", self.name)
    }

    pub(crate) fn session(&self, what: &str) -> Result<Box<dyn ControlConnection>, DbmsError> {
        (self.connect)().map_err(DbmsError::sql(self.doing(what)))
    }

    /// Asks on a session of its own.
    pub(crate) fn ask<T>(
        &self,
        what: &str,
        question: impl FnOnce(&mut dyn ControlConnection) -> Result<T, WireError>,
    ) -> Result<T, DbmsError> {
        question(&mut *self.session(what)?).map_err(DbmsError::sql(self.doing(what)))
    }

    pub(crate) fn version(&self) -> Result<String, DbmsError> {
        let query = self.calls.version_query();
        let version = self.ask("ask the version of", |session| one_value(session, query))?;
        let version = version.unwrap_or_default();
        Ok(self.compatible.map_or_else(|| version.clone(), |server| server.reported(&version)))
    }

    pub(crate) fn debug_build(&self) -> Result<Option<String>, DbmsError> {
        match self.compatible {
            Some(_) => Ok(None),
            None => self.ask("ask the assertions of", |session| self.calls.debug_build(session)),
        }
    }

    pub(crate) fn settings(&self) -> Result<BTreeMap<String, String>, DbmsError> {
        self.ask("ask the settings of", |session| server_settings(session, self.dialect))
    }

    pub(crate) fn status(&self) -> Result<StatusFiles, DbmsError> {
        self.ask("read the status of", |session| {
            match (self.calls.status(session), self.compatible) {
                (Err(error @ WireError::Server { .. }), Some(server)) => {
                    let text = format!("{} does not tell its status: {error}\n", server.name);
                    Ok(vec![("status.txt".to_owned(), text)])
                }
                (files, _) => files,
            }
        })
    }

    pub(crate) fn counters(&self, quiet: bool) -> Result<BTreeMap<String, f64>, String> {
        let mut session =
            self.session("read the counters of").map_err(|error| error.to_string())?;
        self.calls.counters(&mut *session, quiet).map_err(|error| error.to_string())
    }
}
