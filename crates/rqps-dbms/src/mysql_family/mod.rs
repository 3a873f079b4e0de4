//! Code shared by MySQL and MariaDB: all but packages and the creation of a data folder.

mod statements;

pub(super) use self::statements::MysqlCalls;

use std::mem;
use std::path::{Path, PathBuf};

use crate::control::{ControlPlane, DbmsError, Site};
use crate::mysql_family::statements::{NO_REDO_LOG, WHILE_LOADING, change, restore};
use crate::server::{Server, socket};
use crate::spec::Arrangement;
use crate::sql_server::{ControlConnection, SettleLoad, SqlServer, connector};
use rqps_host::process::{StopOrder, StopSignal};
use rqps_model::bounded;
use rqps_model::build::{Version, is_installed};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_model::sql_name::{Identifier, Literal};
use rqps_wire::WireError;

/// The differences between members of the family.
#[derive(Clone, Copy)]
pub(crate) struct Flavor {
    /// The name in target words.
    pub(crate) name: &'static str,
    /// Names of the server, the one to prefer first.
    pub(crate) programs: &'static [&'static str],
    /// Folders that may hold `english/errmsg.sys`.
    pub(crate) share: &'static [&'static str],
    /// The first version that makes its system tables itself; `None` if none does.
    pub(crate) initializes_since: Option<&'static [u32]>,
    /// The first version that speaks a second protocol, on a public port and socket.
    pub(crate) second_protocol_since: Option<&'static [u32]>,
    /// True if its SQL files make accounts without a name.
    pub(crate) has_nameless_accounts: bool,
    /// MyRocks's folder of all tables, below the data folder.
    pub(crate) rocksdb_folder: &'static str,
}

/// Packages of Debian have them in the usual folders.
pub(crate) const ARRANGEMENT: Arrangement =
    Arrangement::Usr { servers: &["mariadbd", "mysqld"], programs: &["my", "mariadb"] };

/// The version in `mysqld  Ver 8.0.33 for Linux on x86_64 (MySQL Community …)`.
pub(crate) fn version_in(words: &str) -> Option<Version> {
    let (_, rest) = words.split_once(" Ver ")?;
    let version = rest.split_whitespace().next()?.split('-').next()?;
    version.starts_with(|first: char| first.is_ascii_digit()).then(|| Version::new(version))
}

// The control plane of MySQL and MariaDB servers that rqps runs.

/// A MySQL or MariaDB that rqps runs.
pub(crate) struct MysqlFamily {
    flavor: Flavor,
    server: Server,
    /// Settings that are other while tables are loaded, with their values before.
    changed: Vec<(&'static str, String)>,
}

impl MysqlFamily {
    pub(crate) fn new(site: Site, flavor: Flavor) -> MysqlFamily {
        MysqlFamily { flavor, server: Server::new(site), changed: Vec::new() }
    }

    fn address(&self) -> Address {
        Address::Unix(self.server.site.sockets.join("mysql.sock"))
    }

    fn sql_server(&self) -> SqlServer {
        SqlServer {
            calls: &MysqlCalls,
            dialect: Dialect::Mysql,
            connect: connector(Dialect::Mysql, self.address(), login(), Vec::new()),
            name: self.server.name(),
            interrupt: self.server.site.interrupt.clone(),
            is_own: true,
            compatible: None,
        }
    }

    /// `--initialize` of 8.0 makes the database before it reads `character_set_server`, so its
    /// tables would be utf8mb4 where those of other versions are latin1, and cost conversion.
    fn use_character_set_of_server(&self) -> Result<(), DbmsError> {
        self.sql_server().ask("set the character set of", |session| {
            let query = "SELECT @@character_set_server, default_character_set_name \
                         FROM information_schema.schemata WHERE schema_name = 'test'";
            match session.rows(query)?.first().map(Vec::as_slice) {
                Some([Some(server), Some(database)]) if server != database => {
                    let set = Identifier::plain(Dialect::Mysql, server);
                    session.run(&format!("ALTER DATABASE test CHARACTER SET {set}"))
                }
                _ => Ok(()),
            }
        })
    }

    /// True if this version is `since` or later, and there is such a version.
    fn has(&self, since: Option<&[u32]>) -> bool {
        since.is_some_and(|since| self.server.site.build.manifest.version.at_least(since))
    }

    fn program(&self) -> Result<PathBuf, DbmsError> {
        self.server.program(self.flavor.programs)
    }

    /// True if its tables are to be in RocksDB.
    fn is_myrocks(&self) -> bool {
        let engine = self.server.site.storage_engine.as_deref();
        engine.is_some_and(|name| statements::NAMES.contains(&name))
    }

    /// A fault of a server that is to have RocksDB may be that it does not.
    fn explain(&self, error: DbmsError) -> DbmsError {
        let why = match self.server.root() {
            Ok(root) if self.is_myrocks() => statements::hint(root),
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
        let mut session = self.sql_server().session("ask for the storage engines of")?;
        statements::check(&mut *session, self.server.root()?)
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
        if let Some(messages) = self.messages_folder(root) {
            args.push(format!("--lc-messages-dir={}", messages.display()));
        }
        match self.server.site.storage_engine.as_deref() {
            None | Some("innodb") => {}
            Some(name) if statements::NAMES.contains(&name) => {
                args.extend(statements::args(root));
            }
            Some(other) => args.push(format!("--default-storage-engine={other}")),
        }
        Ok(args)
    }

    /// All that the content of a new data folder depends on: not the sizes of caches.
    fn made_with(&self) -> String {
        let site = &self.server.site;
        let is_cache = |line: &&str| CACHES.iter().any(|name| line.trim_start().starts_with(name));
        let settings: Vec<&str> = site.config.text.lines().filter(|line| !is_cache(line)).collect();
        let sql = [CREATE_DATABASE, BEFORE, DROP_NAMELESS];
        format!("{settings:?} {:?} {sql:?}", site.storage_engine)
    }

    /// The folder with `english/errmsg.sys`, if it is at one of the usual places: the path compiled
    /// into the server is that of the machine that built it.
    fn messages_folder(&self, root: &Path) -> Option<PathBuf> {
        let mut folders = self.flavor.share.iter().map(|folder| root.join(folder));
        folders.find(|folder| folder.join("english/errmsg.sys").is_file())
    }

    /// MySQL 5.7 and later make their system tables themselves.
    fn initialize(&self, program: &Path, mut args: Vec<String>) -> Result<(), DbmsError> {
        let file = self.server.write_config("create.sql", CREATE_DATABASE)?;
        args.push("--initialize-insecure".to_owned());
        args.push(format!("--init-file={}", file.display()));
        self.server.run_tool(program, args, None)
    }

    /// Earlier ones, and MariaDB, read the statements that make them. The packages' own install
    /// scripts do the same, but need Perl, a shell, and a host name that can be looked up.
    fn bootstrap(&self, program: &Path, mut args: Vec<String>) -> Result<(), DbmsError> {
        let root = self.server.root()?;
        let statements = bootstrap_statements(root, &self.flavor)?;
        args.push("--bootstrap".to_owned());
        self.server.run_tool(program, args, Some(&statements))
    }
}

fn login() -> Login {
    Login { user: "root".to_owned(), password: String::new(), database: DATABASE.to_owned() }
}

impl ControlPlane for MysqlFamily {
    fn init(&mut self) -> Result<(), DbmsError> {
        let program = self.program()?;
        let initializes = self.has(self.flavor.initializes_since);
        // Statements create tables in this folder, not the folder itself; and `--initialize` wants
        // no folder.
        let inside: &[&str] = if initializes { &[] } else { &["mysql"] };
        let made = self.server.fill_data_folder(inside, &self.made_with(), || {
            let args = self.base_args()?;
            if initializes {
                self.initialize(&program, args)
            } else {
                self.bootstrap(&program, args)
            }
        });
        made.map_err(|error| self.explain(error))
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        let program = self.program()?;
        let sockets = &self.server.site.sockets;
        let path = socket(sockets, "mysql.sock")?;
        let mut args = self.base_args()?;
        args.push(format!("--socket={}", path.display()));
        args.push(format!("--pid-file={}", sockets.join("mysql.pid").display()));
        match &self.server.site.listen {
            None => args.push("--skip-networking".to_owned()),
            Some(listen) => args.extend([
                format!("--bind-address={}", listen.ip),
                format!("--port={}", listen.port),
                // Else a session from 127.0.0.1 would be one of root@localhost.
                "--skip-name-resolve".to_owned(),
            ]),
        }
        if self.has(self.flavor.second_protocol_since) {
            // It would listen on a public port and a public socket. Some builds lack it.
            args.push("--loose-mysqlx=OFF".to_owned());
        }
        args.extend(self.valgrind_args());
        self.server.launch(&program, args, StopOrder::HARD)?;
        let address = self.address();
        let ready = self.server.wait_ready(Dialect::Mysql, &address, &login());
        ready.map_err(|error| self.explain(error))?;
        self.check_storage_engine()?;
        self.use_character_set_of_server()?;
        let Some(listen) = &self.server.site.listen else { return Ok(()) };
        self.sql_server()
            .ask("make the account of clients in", |session| admit(session, &listen.password))
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        (Endpoint::Server(self.address()), login())
    }

    fn far_endpoint(&self) -> Option<(Endpoint, Login)> {
        let listen = self.server.site.listen.as_ref()?;
        let login = Login {
            user: USER.to_owned(),
            password: listen.password.clone(),
            database: DATABASE.to_owned(),
        };
        Some((listen.endpoint(), login))
    }

    fn session_setup(&self, _: bool) -> Vec<String> {
        if is_installed(&self.server.site.config.name) {
            return vec!["SET NAMES DEFAULT".to_owned()];
        }
        // The character set of the tables, so that no version converts what others do not.
        vec!["SET NAMES latin1".to_owned()]
    }

    fn sql(&self) -> Option<SqlServer> {
        Some(self.sql_server())
    }

    fn server_pid(&self) -> Option<u32> {
        self.server.pid()
    }

    fn database_folder(&self) -> Option<PathBuf> {
        let name = if self.is_myrocks() { self.flavor.rocksdb_folder } else { DATABASE };
        Some(self.server.db_folder().join(name))
    }

    /// Old versions refuse some (before 8.0.21, MariaDB): the load is then slower, with the same
    /// result.
    fn before_load(&mut self) -> Result<(), DbmsError> {
        let mut session = self.sql_server().session("ready for a load")?;
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
        let mut session = self.sql_server().session("end the load of")?;
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

    /// A checksum reads the whole table, and a count one of its indexes.
    fn read_all(&mut self, tables: &SettleLoad) -> Result<(), DbmsError> {
        self.sql_server().ask("read all tables of", |session| {
            tables.names().iter().try_for_each(|table| {
                session.rows(&format!("CHECKSUM TABLE {table}"))?;
                session.rows(&format!("SELECT COUNT(*) FROM {table}")).map(drop)
            })
        })
    }

    /// Valgrind does not know all system calls of native asynchronous I/O, and cannot map the 8 TiB
    /// of addresses that MariaDB reserves since 10.11.12 and 11.4.6 for a buffer pool that grows.
    /// The server raises this limit to the size of its buffer pool.
    fn valgrind_args(&self) -> Vec<String> {
        if self.server.site.callgrind.is_none() {
            return Vec::new();
        }
        ["--innodb-use-native-aio=0", "--loose-innodb-buffer-pool-size-max=8M"]
            .map(str::to_owned)
            .to_vec()
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        self.server.stop(StopSignal::Term)
    }
}

// The account of clients on other hosts.

/// Its name.
const USER: &str = "rqps";

/// Makes the account that enters by TCP with this password, and drops all others that TCP leads
/// to: the files that make a data folder have some without a password.
fn admit(session: &mut dyn ControlConnection, password: &str) -> Result<(), WireError> {
    let rows = session.rows("SELECT user, host FROM mysql.user WHERE host <> 'localhost'")?;
    let text = |text: &str| Literal::quoted(Dialect::Mysql, text);
    for row in rows {
        let [Some(user), Some(host)] = row.as_slice() else { continue };
        session.run(&format!("DROP USER {}@{}", text(user), text(host)))?;
    }
    // The server writes no passwords into its logs.
    session.run(&format!("CREATE USER '{USER}'@'%' IDENTIFIED BY {}", text(password)))?;
    session.run(&format!("GRANT ALL PRIVILEGES ON *.* TO '{USER}'@'%'"))
}

/// The settings of caches.
const CACHES: [&str; 2] = ["innodb_buffer_pool_size", "rocksdb_block_cache_size"];

// The SQL files that make the data folder of MariaDB, and of MySQL 5.5 and 5.6.

/// The database that holds the tables.
const DATABASE: &str = "test";

/// Ends the statements of an init file that a data folder is made with.
const CREATE_DATABASE: &str = "CREATE DATABASE IF NOT EXISTS test;\n";

/// Folders, below the root of a build, that hold the SQL files.
const FOLDERS: [&str; 4] = ["share", "share/mysql", "share/mariadb", "scripts"];

/// The files in order: under any of these names, and whether a build can lack it.
const FILES: [(&[&str], bool); 3] = [
    (&["mariadb_system_tables.sql", "mysql_system_tables.sql"], false),
    (&["mariadb_performance_tables.sql", "mysql_performance_tables.sql"], true),
    (&["mariadb_system_tables_data.sql", "mysql_system_tables_data.sql"], false),
];

/// The content of the account tables: root without a password (only the private socket reaches it),
/// and no anonymous user. Each statement must be on its own line.
const BEFORE: &str = "use mysql;\n\
    set @auth_root_socket=NULL;\n\
    set @skip_auth_anonymous=1;\n\
    set @current_hostname='localhost';\n";

/// The files of MySQL know no variable against accounts without a name.
const DROP_NAMELESS: &str = "delete from user where user='';\n";

/// All statements that make the system tables and the database of the benchmark.
fn bootstrap_statements(root: &Path, flavor: &Flavor) -> Result<String, DbmsError> {
    let mut text = BEFORE.to_owned();
    for (names, may_lack) in FILES {
        let mut places =
            FOLDERS.iter().flat_map(|folder| names.iter().map(move |name| (folder, name)));
        let found = places.find_map(|(folder, name)| {
            let path = root.join(folder).join(name);
            path.is_file().then_some(path)
        });
        match found {
            Some(path) => {
                let file = bounded::bytes(&path, bounded::WRITTEN_MAX)
                    .map_err(DbmsError::io(format!("read {}", path.display())))?;
                text.push_str(&String::from_utf8_lossy(&file));
                text.push('\n');
            }
            None if may_lack => {}
            None => {
                let dbms = flavor.name;
                return Err(DbmsError::Unsupported(format!(
                    "make a data folder for {dbms} with the build {}: it has no {} in {}; the \
                     package is incomplete, use one with its SQL files",
                    root.display(),
                    names.join(" or "),
                    FOLDERS.join(", ")
                )));
            }
        }
    }
    if flavor.has_nameless_accounts {
        text.push_str(DROP_NAMELESS);
    }
    text.push_str(CREATE_DATABASE);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const FLAVOR: Flavor = Flavor {
        name: "mariadb",
        programs: &[],
        share: &[],
        initializes_since: None,
        second_protocol_since: None,
        has_nameless_accounts: false,
        rocksdb_folder: "",
    };

    #[test]
    fn files_are_read_in_order_from_wherever_they_are() {
        let root = tempfile::tempdir().unwrap();
        let share = root.path().join("share/mysql");
        fs::create_dir_all(&share).unwrap();
        let error = bootstrap_statements(root.path(), &FLAVOR).unwrap_err().to_string();
        assert!(error.contains("mariadb_system_tables.sql or mysql_system_tables.sql"), "{error}");
        fs::write(share.join("mysql_system_tables.sql"), "TABLES;").unwrap();
        fs::write(share.join("mysql_system_tables_data.sql"), "DATA;").unwrap();
        let text = bootstrap_statements(root.path(), &FLAVOR).unwrap();
        assert!(text.starts_with("use mysql;\n"), "{text}");
        assert!(text.ends_with("TABLES;\nDATA;\nCREATE DATABASE IF NOT EXISTS test;\n"), "{text}");
    }
}
