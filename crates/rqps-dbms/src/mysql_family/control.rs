//! The control plane of MySQL and MariaDB servers that rqps runs.

use std::mem;
use std::path::{Path, PathBuf};

use crate::connection::connector;
use crate::control::ControlPlane;
use crate::error::DbmsError;
use crate::mysql_family::statements::{MysqlCalls, NO_REDO_LOG, WHILE_LOADING, change, restore};
use crate::mysql_family::system_tables::{self, CREATE_DATABASE, DATABASE};
use crate::mysql_family::{Flavor, accounts, myrocks};
use crate::server::{Server, socket};
use crate::settle::SettleLoad;
use crate::site::Site;
use crate::sql_server::SqlServer;
use rqps_host::process::{StopOrder, StopSignal};
use rqps_model::config::is_installed;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_model::sql_name::Identifier;

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
        engine.is_some_and(|name| myrocks::NAMES.contains(&name))
    }

    /// A fault of a server that is to have RocksDB may be that it does not.
    fn explain(&self, error: DbmsError) -> DbmsError {
        let why = match self.server.root() {
            Ok(root) if self.is_myrocks() => myrocks::hint(root),
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
        myrocks::check(&mut *session, self.server.root()?)
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
            Some(name) if myrocks::NAMES.contains(&name) => {
                args.extend(myrocks::args(root));
            }
            Some(other) => args.push(format!("--default-storage-engine={other}")),
        }
        Ok(args)
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
        let statements = system_tables::bootstrap_statements(root, &self.flavor)?;
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
        let data = self.server.make_data_folder(if initializes { &[] } else { &["mysql"] })?;
        let made = self.base_args().and_then(|args| {
            if initializes {
                self.initialize(&program, args)
            } else {
                self.bootstrap(&program, args)
            }
        });
        if made.is_err() {
            // The next attempt refuses and names a file that cannot be removed.
            data.discard().ok();
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
        self.sql_server().ask("make the account of clients in", |session| {
            accounts::admit(session, &listen.password)
        })
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        (Endpoint::Server(self.address()), login())
    }

    fn far_endpoint(&self) -> Option<(Endpoint, Login)> {
        let listen = self.server.site.listen.as_ref()?;
        let login = Login {
            user: accounts::USER.to_owned(),
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
