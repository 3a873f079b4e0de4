//! MySQL 5.5 to 8.x, and what MariaDB shares with it: all but how a data folder is made.

use std::collections::BTreeMap;
use std::mem;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::dbms::server::{
    ControlConnection, Row, Server, connect, numbers, one_value, socket, table,
};
use crate::dbms::settle::{SettleLoad, on_all_tables, rest};
use crate::dbms::{ControlPlane, DbmsError, Interrupt, Site, mariadb, myrocks};
use crate::domain::build::{Dbms, Dialect};
use crate::domain::endpoint::{Address, Endpoint, Login};
use crate::os::process::{Stop, StopSignal};
use crate::wire::WireError;

/// The database that holds the tables.
pub(super) const DATABASE: &str = "test";

/// How long a session of the control plane may take to connect.
const CONNECT: Duration = Duration::from_secs(30);

/// Dirty pages of the buffer pool that count as none.
const FEW_PAGES: u64 = 50;

/// Undo records not yet purged that count as none.
const SHORT_HISTORY: u64 = 1000;

/// Ends the statements of an init file that a data folder is made with.
pub(super) const CREATE_DATABASE: &str = "CREATE DATABASE IF NOT EXISTS test;\n";

/// A MySQL or MariaDB that rqps runs.
pub(super) struct Mysql {
    server: Server,
    /// Settings that are other while tables are loaded, with their values before.
    changed: Vec<(&'static str, String)>,
}

impl Mysql {
    pub(super) fn new(site: Site) -> Result<Mysql, DbmsError> {
        Ok(Mysql { server: Server::new(site), changed: Vec::new() })
    }

    fn address(&self) -> Address {
        Address::Unix(self.server.site.sockets.join("mysql.sock"))
    }

    fn session(&self, doing: &str) -> Result<Box<dyn ControlConnection>, DbmsError> {
        connect(Dialect::Mysql, &self.address(), &login(), CONNECT)
            .map_err(DbmsError::sql(format!("{doing} {}", self.server.name())))
    }

    /// `--initialize` of 8.0 makes the database before it reads `character_set_server`, so its
    /// tables
    /// would be utf8mb4 where those of other versions are latin1, and cost conversion.
    fn use_character_set_of_server(&self) -> Result<(), DbmsError> {
        let doing = format!("set the character set of {}", self.server.name());
        let mut session = self.session("set the character set of")?;
        let query = "SELECT @@character_set_server, default_character_set_name \
                     FROM information_schema.schemata WHERE schema_name = 'test'";
        let rows = session.rows(query).map_err(DbmsError::sql(doing.clone()))?;
        match rows.first().map(Vec::as_slice) {
            Some([Some(server), Some(database)]) if server != database => session
                .run(&format!("ALTER DATABASE test CHARACTER SET {server}"))
                .map_err(DbmsError::sql(doing)),
            _ => Ok(()),
        }
    }

    fn is_mariadb(&self) -> bool {
        self.server.site.build.manifest.dbms == Dbms::Mariadb
    }

    fn program(&self) -> Result<PathBuf, DbmsError> {
        let names: &[&str] = if self.is_mariadb() { &["mariadbd", "mysqld"] } else { &["mysqld"] };
        self.server.program(names)
    }

    /// True if its tables are to be in RocksDB.
    fn is_myrocks(&self) -> bool {
        let engine = self.server.site.storage_engine.as_deref();
        engine.is_some_and(|name| myrocks::NAMES.contains(&name))
    }

    /// A fault of a server that is to have RocksDB may be that it does not.
    fn explain(&self, error: DbmsError) -> DbmsError {
        let folders = self.server.root().map(|root| PLUGIN_FOLDERS.map(|name| root.join(name)));
        let why = match folders {
            Ok(folders) if self.is_myrocks() => {
                myrocks::hint(&folders.each_ref().map(PathBuf::as_path))
            }
            _ => None,
        };
        match (error, why) {
            (DbmsError::Ended { doing, what, tail, hint }, Some(why)) if hint.is_empty() => {
                DbmsError::Ended { doing, what, tail, hint: format!("\nhint: {why}") }
            }
            (error, _) => error,
        }
    }

    /// Asks whether the storage engine that was asked for is there.
    fn check_storage_engine(&self) -> Result<(), DbmsError> {
        if !self.is_myrocks() {
            return Ok(());
        }
        let root = self.server.root()?;
        let folders = PLUGIN_FOLDERS.map(|folder| root.join(folder));
        let mut session = self.session("ask for the storage engines of")?;
        myrocks::check(&mut *session, &folders.each_ref().map(PathBuf::as_path))
    }

    /// Arguments for a start and for making a data folder alike: only our config, our folders.
    fn base_args(&self) -> Result<Vec<String>, DbmsError> {
        let text = &self.server.site.config.text;
        // Without a heading the server reads none of it.
        let text = if text.trim_start().starts_with('[') {
            text.clone()
        } else {
            format!("[mysqld]\n{text}")
        };
        let config = self.server.write_config("my.cnf", &text)?;
        let root = self.server.root()?;
        let mut args = vec![
            format!("--defaults-file={}", config.display()),
            format!("--basedir={}", root.display()),
            format!("--datadir={}", self.server.db_folder().display()),
            format!("--tmpdir={}", self.server.temporary_folder().display()),
        ];
        if let Some(messages) = messages_folder(root) {
            args.push(format!("--lc-messages-dir={}", messages.display()));
        }
        match self.server.site.storage_engine.as_deref() {
            None | Some("innodb") => {}
            Some(name) if myrocks::NAMES.contains(&name) => {
                let folders = PLUGIN_FOLDERS.map(|folder| root.join(folder));
                args.extend(myrocks::args(&folders.each_ref().map(PathBuf::as_path)));
            }
            Some(other) => args.push(format!("--default-storage-engine={other}")),
        }
        Ok(args)
    }

    /// MySQL 5.7 and later make their system tables themselves.
    fn initialize(&self, program: &Path, mut args: Vec<String>) -> Result<(), DbmsError> {
        let file = self.server.write_config("tmp/create.sql", CREATE_DATABASE)?;
        args.push("--initialize-insecure".to_owned());
        args.push(format!("--init-file={}", file.display()));
        self.server.run_tool(program, args, None)
    }

    /// Earlier ones, and MariaDB, read the statements that make them. The packages' own install
    /// scripts do the same, but need Perl, a shell, and a host name that can be looked up.
    fn bootstrap(&self, program: &Path, mut args: Vec<String>) -> Result<(), DbmsError> {
        let root = self.server.root()?;
        let statements = mariadb::bootstrap_statements(root, self.is_mariadb())?;
        // The statements create tables in it, not the folder itself.
        self.server.make_data_subfolder("mysql")?;
        args.push("--bootstrap".to_owned());
        self.server.run_tool(program, args, Some(&statements))
    }
}

/// The folder with `english/errmsg.sys`, if it is at one of the usual places: the path compiled
/// into the server is that of the machine that built it.
fn messages_folder(root: &Path) -> Option<PathBuf> {
    ["share", "share/mysql", "share/mariadb"]
        .into_iter()
        .map(|folder| root.join(folder))
        .find(|folder| folder.join("english/errmsg.sys").is_file())
}

/// Where plugins are in packages and installed trees.
const PLUGIN_FOLDERS: [&str; 4] =
    ["lib/plugin", "lib/mysql/plugin", "lib/mariadb/plugin", "lib64/mysql/plugin"];

fn login() -> Login {
    Login { user: "root".to_owned(), password: String::new(), database: DATABASE.to_owned() }
}

impl ControlPlane for Mysql {
    fn init(&mut self) -> Result<(), DbmsError> {
        let program = self.program()?;
        self.server.make_data_folder()?;
        let version = &self.server.site.build.manifest.version;
        let made = self.base_args().and_then(|args| {
            if !self.is_mariadb() && version.at_least(&[5, 7, 6]) {
                self.initialize(&program, args)
            } else {
                self.bootstrap(&program, args)
            }
        });
        if made.is_err() {
            self.server.discard_data();
        }
        made.map_err(|error| self.explain(error))
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        let program = self.program()?;
        let sockets = &self.server.site.sockets;
        let path = socket(sockets, "mysql.sock")?;
        let mut args = self.base_args()?;
        args.push(format!("--socket={}", path.display()));
        args.push(format!("--pid-file={}", sockets.join("mysql.pid").display()));
        match self.server.site.tcp_port {
            None => args.push("--skip-networking".to_owned()),
            Some(port) => {
                args.extend(["--bind-address=127.0.0.1".to_owned(), format!("--port={port}")]);
            }
        }
        if !self.is_mariadb() && self.server.site.build.manifest.version.at_least(&[8, 0, 11]) {
            // The second protocol would listen on a public port and a public socket.
            args.push("--mysqlx=OFF".to_owned());
        }
        self.server.launch(&program, args, Stop::HARD)?;
        let address = self.address();
        let ready = self.server.wait_ready(Dialect::Mysql, &address, &login());
        ready.map_err(|error| self.explain(error))?;
        self.check_storage_engine()?;
        self.use_character_set_of_server()
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        (Endpoint::Server(self.address()), login())
    }

    fn session_setup(&self) -> Vec<String> {
        // The character set of the tables, so that no version converts what others do not.
        vec!["SET NAMES latin1".to_owned()]
    }

    fn server_pid(&self) -> Option<u32> {
        self.server.pid()
    }

    fn database_folder(&self) -> Option<PathBuf> {
        let [mariadb, mysql] = myrocks::FOLDERS;
        let name = match self.is_myrocks() {
            true if self.is_mariadb() => mariadb,
            true => mysql,
            false => DATABASE,
        };
        Some(self.server.db_folder().join(name))
    }

    fn reported_version(&mut self) -> Result<String, DbmsError> {
        let doing = "ask the version of";
        let mut session = self.session(doing)?;
        reported_version(&mut *session, &format!("{doing} {}", self.server.name()))
    }

    /// What is refused (before 8.0.21, MariaDB) is left: the load is slower then, not other.
    fn before_load(&mut self) -> Result<(), DbmsError> {
        let mut session = self.session("ready for a load")?;
        self.changed = change(&mut *session, &WHILE_LOADING);
        match session.run(NO_REDO_LOG) {
            Err(error) if error.code().is_none() => {
                let doing = format!("ready {} for a load", self.server.name());
                Err(DbmsError::sql(doing)(error))
            }
            _ => Ok(()),
        }
    }

    fn after_load(&mut self) -> Result<(), DbmsError> {
        let mut session = self.session("end the load of")?;
        let doing = format!("end the load of {}", self.server.name());
        restore(&mut *session, &mem::take(&mut self.changed), &doing)?;
        // Only the server knows for certain what it is without.
        let rows = session.rows("SHOW GLOBAL STATUS LIKE 'Innodb_redo_log_enabled'");
        let rows = rows.map_err(DbmsError::sql(doing.clone()))?;
        match rows.first().map(Vec::as_slice) {
            Some([_, Some(enabled)]) if enabled == "OFF" => {
                session.run("ALTER INSTANCE ENABLE INNODB REDO_LOG").map_err(DbmsError::sql(doing))
            }
            _ => Ok(()),
        }
    }

    fn settle(
        &mut self,
        load: &SettleLoad,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), DbmsError> {
        let address = self.address();
        let connect = move || connect(Dialect::Mysql, &address, &login(), CONNECT);
        let doing = format!("settle {}", self.server.name());
        maintain(load, &self.server.site.interrupt, &doing, connect, progress)
    }

    fn status(&mut self) -> Result<Vec<(String, String)>, DbmsError> {
        let mut session = self.session("read the status of")?;
        let doing = format!("read the status of {}", self.server.name());
        status(&mut *session).map_err(DbmsError::sql(doing))
    }

    fn counters(&mut self, quiet: bool) -> Result<BTreeMap<String, f64>, String> {
        // A status variable is the sum of all sessions at any moment.
        let _ = quiet;
        let mut session =
            self.session("read the counters of").map_err(|error| error.to_string())?;
        counters(&mut *session).map_err(|error| error.to_string())
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        self.server.stop(StopSignal::Term)
    }
}

/// `VERSION()` of a session.
pub(super) fn reported_version(
    session: &mut dyn ControlConnection,
    doing: &str,
) -> Result<String, DbmsError> {
    let version = one_value(session, "SELECT VERSION()").map_err(DbmsError::sql(doing))?;
    Ok(version.unwrap_or_default())
}

/// A setting and a value for it.
type Setting = (&'static str, &'static str);

/// While tables are loaded: two connections that fill one table meet less if they find the page of
/// the last row without going down the tree; and a file that grows is not filled with zeros first.
const WHILE_LOADING: [Setting; 2] = [
    ("innodb_adaptive_hash_index", "ON"),
    // Since 8.0.22.
    ("innodb_extend_and_initialize", "OFF"),
];

/// Without a redo log pages are written once, not twice, and a load costs less CPU. A server that
/// is killed then does not start again.
const NO_REDO_LOG: &str = "ALTER INSTANCE DISABLE INNODB REDO_LOG";

/// The settings that make InnoDB write dirty pages now, with the value for that. In this order,
/// because the low-water mark may not be above the limit; restored in the opposite one.
const FLUSH_NOW: [Setting; 3] = [
    ("innodb_max_dirty_pages_pct_lwm", "1"),
    ("innodb_max_dirty_pages_pct", "1"),
    // Since 8.0.18.
    ("innodb_idle_flush_pct", "100"),
];

/// ANALYZE TABLE of all tables at the same time while dirty pages are written; then waits until
/// they are, or the time is over. Settings are as before when it returns, also with an error.
pub(super) fn maintain<C>(
    load: &SettleLoad,
    interrupt: &Interrupt,
    doing: &str,
    connect: C,
    progress: &mut dyn FnMut(&str),
) -> Result<(), DbmsError>
where
    C: Fn() -> Result<Box<dyn ControlConnection>, WireError> + Clone + Send + 'static,
{
    let end = Instant::now() + load.wait();
    let mut session = connect().map_err(DbmsError::sql(doing))?;
    let changed = change(&mut *session, &FLUSH_NOW);
    let analyzed = analyze(load, interrupt, doing, connect, progress);
    let rested = analyzed
        .and_then(|()| myrocks::settle(&mut *session, load, interrupt, progress))
        .and_then(|rocks| {
            let mut quiet = || !rocks && all_is_written(&mut *session);
            rest(end, interrupt, progress, &mut quiet)
        });
    restore(&mut *session, &changed, doing)?;
    rested
}

/// ANALYZE TABLE of all tables at the same time.
pub(super) fn analyze<C>(
    load: &SettleLoad,
    interrupt: &Interrupt,
    doing: &str,
    connect: C,
    progress: &mut dyn FnMut(&str),
) -> Result<(), DbmsError>
where
    C: Fn() -> Result<Box<dyn ControlConnection>, WireError> + Clone + Send + 'static,
{
    progress(&format!("analyze of {} tables", load.tables));
    on_all_tables(load.names(), interrupt, doing, connect, |table| format!("ANALYZE TABLE {table}"))
}

/// Changes those of the settings that this version has; returns them with their old values.
fn change(
    session: &mut dyn ControlConnection,
    settings: &[Setting],
) -> Vec<(&'static str, String)> {
    let mut changed = Vec::new();
    for (name, value) in settings {
        if let Ok(Some(old)) = one_value(session, &format!("SELECT @@GLOBAL.{name}"))
            && session.run(&format!("SET GLOBAL {name} = {value}")).is_ok()
        {
            changed.push((*name, old));
        }
    }
    changed
}

/// Gives the settings their old values again, the last first.
fn restore(
    session: &mut dyn ControlConnection,
    changed: &[(&'static str, String)],
    doing: &str,
) -> Result<(), DbmsError> {
    for (name, value) in changed.iter().rev() {
        let sql = format!("SET GLOBAL {name} = {value}");
        session.run(&sql).map_err(DbmsError::sql(format!("{doing}: {sql}")))?;
    }
    Ok(())
}

/// True if hardly a page is dirty and purge has caught up.
pub(super) fn all_is_written(session: &mut dyn ControlConnection) -> bool {
    let number = |rows: Result<Vec<Row>, WireError>, column: usize| {
        rows.ok()?.first()?.get(column)?.as_ref()?.parse::<u64>().ok()
    };
    let dirty = number(session.rows("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'"), 1);
    let history = number(
        session.rows(
            "SELECT COUNT FROM information_schema.INNODB_METRICS \
             WHERE NAME = 'trx_rseg_history_len'",
        ),
        0,
    );
    dirty.is_some_and(|pages| pages <= FEW_PAGES) && history.unwrap_or(0) <= SHORT_HISTORY
}

/// All status variables that are numbers.
pub(super) fn counters(
    session: &mut dyn ControlConnection,
) -> Result<BTreeMap<String, f64>, WireError> {
    Ok(numbers(session.rows("SHOW GLOBAL STATUS")?))
}

/// Settings and counters.
pub(super) fn status(
    session: &mut dyn ControlConnection,
) -> Result<Vec<(String, String)>, WireError> {
    let mut files = Vec::new();
    let variables = session.rows("SHOW GLOBAL VARIABLES")?;
    files.push(("variables.tsv".to_owned(), table("name\tvalue", &variables)));
    let counters = session.rows("SHOW GLOBAL STATUS")?;
    files.push(("status.tsv".to_owned(), table("name\tvalue", &counters)));
    for engine in ["INNODB", "ROCKSDB"] {
        // One of the two is missing on most servers, or not allowed.
        if let Ok(rows) = session.rows(&format!("SHOW ENGINE {engine} STATUS")) {
            let texts: Vec<String> = rows
                .into_iter()
                .map(|row| row.into_iter().flatten().collect::<Vec<_>>().join("\n"))
                .collect();
            files.push((format!("{}_status.txt", engine.to_lowercase()), texts.join("\n")));
        }
    }
    let tables = session.rows(
        "SELECT TABLE_NAME, ENGINE, TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH, DATA_FREE \
         FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME",
    )?;
    let heading = "table\tengine\trows\tdata_bytes\tindex_bytes\tfree_bytes";
    files.push(("tables.tsv".to_owned(), table(heading, &tables)));
    Ok(files)
}
