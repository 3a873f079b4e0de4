//! A server that is not rqps's, with a log of the statements that it receives.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use rqps::dbms::{ControlPlane, Interrupt, Site, config, control_plane};
use rqps::domain::build::{Build, Dbms, Manifest, Version};
use rqps::domain::endpoint::{Address, Endpoint, Login};
use rqps::os::user;
use rqps::wire::mysql::MysqlClient;
use rqps::wire::postgres::PostgresClient;

use crate::log::{self, Seen};
use crate::{builds, skipped};

/// Servers take turns: the machine is small.
static TURN: Mutex<()> = Mutex::new(());

/// A running server.
pub(crate) struct Theirs {
    plane: Box<dyn ControlPlane>,
    dbms: Dbms,
    login: Login,
    log: PathBuf,
    _folder: tempfile::TempDir,
    _turn: MutexGuard<'static, ()>,
}

/// The real program, if it is installed.
pub(crate) fn sysbench() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("sysbench")).find(|it| it.is_file())
}

impl Theirs {
    /// Starts one; `None`, and a note, if the build cannot be had.
    pub(crate) fn start(test: &str, target: &str, dbms: Dbms) -> Option<Theirs> {
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let root = match builds::roots("", &[target]) {
            Ok(roots) => roots.into_iter().next()?,
            Err(why) => {
                skipped::note(test, &why);
                return None;
            }
        };
        let folder = tempfile::Builder::new().prefix("rqps-lua-").tempdir().unwrap();
        // The user of servers goes through it.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut plane = plane(folder.path(), root, target, dbms);
        plane.init().unwrap();
        plane.start().unwrap();
        let (_, login) = plane.endpoint();
        let log = match dbms {
            Dbms::Postgres => folder.path().join("logs/server.log"),
            _ => folder.path().join("data/general.log"),
        };
        let theirs = Theirs { plane, dbms, login, log, _folder: folder, _turn: turn };
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

    fn socket(&self) -> PathBuf {
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
    fn owner(&self, statements: &[&str]) {
        let (address, patience) = (self.address(), Duration::from_secs(30));
        for sql in statements {
            let rows = match self.dbms {
                Dbms::Postgres => {
                    let client = PostgresClient::connect(&address, &self.login, patience);
                    client.unwrap().rows(sql)
                }
                _ => MysqlClient::connect(&address, &self.login, patience).unwrap().rows(sql),
            };
            rows.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
    }

    /// Runs the real program on this server, with one thread and a fixed number of events.
    pub(crate) fn sysbench(&self, script: &str, options: &[&str], command: &str) {
        let mut real = Command::new(sysbench().unwrap());
        let (socket, login) = (self.socket(), &self.login);
        real.arg(Path::new(crate::SYSBENCH).join(script))
            .args(["--threads=1", "--events=200", "--time=0"])
            .args(options);
        match self.dbms {
            Dbms::Postgres => {
                let name = socket.file_name().unwrap().to_string_lossy().into_owned();
                let port = name.rsplit('.').next().unwrap();
                real.arg("--db-driver=pgsql").arg(format!("--pgsql-port={port}"));
                real.arg(format!("--pgsql-host={}", socket.parent().unwrap().display()));
                real.arg(format!("--pgsql-user={}", login.user));
                real.arg(format!("--pgsql-db={}", login.database));
            }
            _ => {
                real.arg("--db-driver=mysql");
                real.arg(format!("--mysql-socket={}", socket.display()));
                real.arg(format!("--mysql-user={}", login.user));
                real.arg(format!("--mysql-db={}", login.database));
            }
        }
        let output = real.arg(command).output().unwrap();
        let words = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "sysbench {script} {command}: {words}");
    }

    /// Bytes that are in the log now.
    pub(crate) fn log_length(&self) -> usize {
        fs::metadata(&self.log).map_or(0, |log| log.len() as usize)
    }

    /// The sessions that the log has from there on.
    pub(crate) fn sessions_since(&self, mark: usize) -> Vec<Vec<Seen>> {
        let log = fs::read(&self.log).unwrap();
        let text = String::from_utf8_lossy(&log[mark..]);
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

fn plane(folder: &Path, root: PathBuf, target: &str, dbms: Dbms) -> Box<dyn ControlPlane> {
    let version = Version::new(target.split_once('@').unwrap().1);
    let config = config::load(dbms, "default", None, &version, 128 << 20).unwrap();
    let manifest = Manifest {
        dbms,
        version,
        reported: String::new(),
        origin: "a test".to_owned(),
        sha256: None,
        compiler: None,
        packages: BTreeMap::new(),
    };
    let site = Site {
        build: Build { root: Some(root), manifest },
        config,
        data: folder.join("data"),
        logs: folder.join("logs"),
        sockets: folder.join("s"),
        storage_engine: None,
        run_as: user::choose(None).unwrap(),
        memory_group: None,
        callgrind: None,
        listen: None,
        warden_program: PathBuf::from(env!("CARGO_BIN_EXE_rqps")),
        start_timeout: Duration::from_secs(120),
        interrupt: Interrupt::default(),
    };
    control_plane(site).unwrap()
}
