//! A server that is not rqps's, with a log of the statements that it receives.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::MutexGuard;
use std::thread;
use std::time::Duration;

use rqps_dbms::{ControlPlane, control_plane};
use rqps_model::build::Dbms;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_wire::mysql::MysqlClient;
use rqps_wire::postgres::PostgresClient;

use crate::support::log::{self, Seen};
use crate::support::{builds, program, server_place, skipped};

/// A running server.
pub(crate) struct Theirs {
    pub(crate) dbms: Dbms,
    pub(crate) login: Login,
    /// A folder that the user of servers can read.
    pub(crate) folder: tempfile::TempDir,
    plane: Box<dyn ControlPlane>,
    log: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Theirs {
    /// Starts one; `None`, and a note, if the build cannot be had.
    pub(crate) fn start(test: &str, target: &str, dbms: Dbms) -> Option<Theirs> {
        Theirs::start_with(test, target, dbms, ("", ""))
    }

    /// With a line of the default config in place of another.
    pub(crate) fn start_with(
        test: &str,
        target: &str,
        dbms: Dbms,
        (line, instead): (&str, &str),
    ) -> Option<Theirs> {
        let turn = program::turn();
        let root = match builds::roots("", &[target]) {
            Ok(roots) => roots.into_iter().next()?,
            Err(why) => {
                skipped::note(test, &why);
                return None;
            }
        };
        let folder = tempfile::Builder::new().prefix("rqps-theirs-").tempdir().unwrap();
        // The user of servers goes through it.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let version = target.split_once('@').unwrap().1;
        let build = server_place::build(dbms, Some(&root), version);
        let mut site = server_place::site(folder.path(), &build);
        assert!(site.config.text.contains(line), "{}", site.config.text);
        if !line.is_empty() {
            site.config.text = site.config.text.replace(line, instead);
        }
        let mut plane = control_plane(site).unwrap();
        plane.init().unwrap();
        plane.start().unwrap();
        let (_, login) = plane.endpoint();
        let log = match dbms {
            Dbms::Postgres => folder.path().join("logs/server.log"),
            _ => folder.path().join("data/tmp/general.log"),
        };
        let theirs = Theirs { dbms, login, folder, plane, log, _turn: turn };
        theirs.begin_log();
        Some(theirs)
    }

    fn begin_log(&self) {
        let log = self.log.display();
        match self.dbms {
            Dbms::Postgres => self.owner(&[
                "ALTER SYSTEM SET log_statement = 'all'",
                "ALTER SYSTEM SET log_line_prefix = '@%p '",
                "SELECT pg_reload_conf()",
            ]),
            _ => self.owner(&[
                &format!("SET GLOBAL general_log_file = '{log}'"),
                "SET GLOBAL log_output = 'FILE'",
                "SET GLOBAL general_log = 1",
            ]),
        }
        // Postgres reads its settings a moment later.
        thread::sleep(Duration::from_millis(300));
    }

    fn address(&self) -> Address {
        let (Endpoint::Server(address), _) = self.plane.endpoint() else { panic!("no server") };
        address
    }

    /// The path of its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        let Address::Unix(socket) = self.address() else { panic!("no socket") };
        socket
    }

    /// A target of that server.
    pub(crate) fn dsn(&self, label: &str) -> String {
        let (socket, Login { user, database, .. }) = (self.socket(), &self.login);
        let socket = socket.display();
        match self.dbms {
            Dbms::Postgres => format!("{label}=postgres://{user}@/{database}?host={socket}"),
            _ => format!("{label}=mysql://{user}@/{database}?socket={socket}"),
        }
    }

    /// Runs statements of the owner's.
    pub(crate) fn owner(&self, statements: &[&str]) {
        statements.iter().for_each(|sql| drop(self.owner_rows(sql)));
    }

    /// The rows that the owner gets for a statement.
    pub(crate) fn owner_rows(&self, sql: &str) -> Vec<Vec<Option<String>>> {
        let (address, patience) = (self.address(), Duration::from_secs(30));
        let rows = match self.dbms {
            Dbms::Postgres => {
                let client = PostgresClient::connect(&address, &self.login, patience);
                client.unwrap().rows(sql)
            }
            _ => MysqlClient::connect(&address, &self.login, patience).unwrap().rows(sql),
        };
        rows.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// Bytes that are in the log now.
    pub(crate) fn log_length(&self) -> usize {
        fs::metadata(&self.log).map_or(0, |log| log.len() as usize)
    }

    /// The log from there on.
    pub(crate) fn log_since(&self, mark: usize) -> String {
        let log = fs::read(&self.log).unwrap();
        program::text(&log[mark..])
    }

    /// The sessions that the log has from there on.
    pub(crate) fn sessions_since(&self, mark: usize) -> Vec<Vec<Seen>> {
        let text = self.log_since(mark);
        match self.dbms {
            Dbms::Postgres => log::postgres(&text),
            _ => log::mysql(&text),
        }
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        if let Err(error) = self.plane.stop() {
            eprintln!("stop the server: {error}");
        }
    }
}
