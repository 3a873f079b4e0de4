//! A private server of one version.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::mysql::source::{self, Facts};
use crate::mysql::tabular::{self, ExplainRow};
use crate::rehearsal::{PlanError, PlanNode, PrivatePlace, Statement, each_chunk};
use rqps_dbms::ControlPlane;
use rqps_model::build::{Build, Version};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_model::sql_name::{Identifier, Literal};
use rqps_text::reading::{self, DumpedStatement};
use rqps_text::{SqlChunk, Token, tokens};
use rqps_wire::WireError;
use rqps_wire::mysql::MysqlClient;

/// The statistics stay as they are written or gathered, and a thousand pages tell more than twenty:
/// by chance two versions must not plan with other numbers.
const SETTINGS: &str = "\nloose_innodb_stats_auto_recalc = OFF\n\
    loose_innodb_stats_persistent_sample_pages = 200\nevent_scheduler = OFF\n\
    max_allowed_packet = 256M\n";

/// Statements of a file that a version may refuse before the rest makes no sense.
const MOST_REFUSED: usize = 20;

/// The login that makes what a server of others tells, and that plans there: it has rights on one
/// database and no other, so a lie of that server reaches no file and no setting.
pub(super) const ROLE: &str = "rqps_plans";

/// A running server with a database. Dropping it ends it; its data are thrown away.
pub(super) struct Private {
    control: Box<dyn ControlPlane>,
    /// The administrator's.
    pub(super) session: Session,
    /// That of [`ROLE`], or another one of the administrator for files of the user's.
    planner: Session,
    role: Option<&'static str>,
    /// `mysql 8.0.33`.
    pub(super) name: String,
    database: String,
    /// Set in every session.
    setup: Vec<String>,
}

impl Private {
    /// Starts it. Definitions are executed, and statements planned, in that role: without one, by
    /// the administrator.
    pub(super) fn start(
        place: &PrivatePlace,
        build: &Build,
        folder: &str,
        database: &str,
        role: Option<&'static str>,
    ) -> Result<Private> {
        let mut control = place.server(build, folder, SETTINGS)?;
        control.init()?;
        control.start()?;
        let manifest = &build.manifest;
        let server_name = format!("{} {}", manifest.dbms, manifest.version);
        let mut session = connect(&*control, "", None, &server_name)?;
        let quoted = name(database);
        let prepare = [
            format!("CREATE DATABASE IF NOT EXISTS {quoted}"),
            format!("CREATE USER {ROLE}@localhost"),
            format!("GRANT ALL ON {quoted}.* TO {ROLE}@localhost"),
            // Functions need more rights where there is a binary log.
            "SET GLOBAL log_bin_trust_function_creators = ON".to_owned(),
        ];
        for sql in prepare {
            let done = session.client.simple(&sql);
            done.with_context(|| format!("ready {server_name} to plan"))?;
        }
        let planner = connect(&*control, database, role, &server_name)?;
        let mut private = Private {
            control,
            session,
            planner,
            role,
            name: server_name,
            database: database.to_owned(),
            setup: Vec::new(),
        };
        private.pin_costs()?;
        private.reconnect()?;
        Ok(private)
    }

    /// The cost of a read must not depend on how much of a table is in memory.
    fn pin_costs(&mut self) -> Result<()> {
        if self.session.is_mysql(&[8]) {
            self.run(
                "UPDATE mysql.engine_cost SET cost_value = 0.25 \
                 WHERE cost_name = 'io_block_read_cost'",
            )?;
            // Sessions from now on have it.
            self.run("FLUSH OPTIMIZER_COSTS")?;
        }
        Ok(())
    }

    /// A new session: with the costs and global settings of now.
    pub(super) fn reconnect(&mut self) -> Result<()> {
        self.session = connect(&*self.control, &self.database, None, &self.name)?;
        self.planner = connect(&*self.control, &self.database, self.role, &self.name)?;
        for sql in self.setup.clone() {
            self.run(&sql)?;
            self.run_as_planner(&sql)?;
        }
        Ok(())
    }

    /// A setting of this session and of those after it, if this version has it.
    pub(super) fn set_in_each_session(&mut self, assignment: &'static str) {
        let sql = format!("SET SESSION {assignment}");
        let taken = self.session.client.simple(&sql).and_then(|_| self.planner.client.simple(&sql));
        if taken.is_ok() {
            self.setup.push(sql);
        }
    }

    pub(super) fn forget_setup(&mut self) -> Result<()> {
        self.setup.clear();
        self.reconnect()
    }

    /// Makes tables, views and functions of the source. What refuses is tried again after the
    /// others, which it may need.
    pub(super) fn make(&mut self, facts: &Facts, lacking: &mut Vec<String>) -> Result<()> {
        let (set, collation) = (name(&facts.character_set), name(&facts.collation));
        let database = name(&self.database);
        let sql = format!("ALTER DATABASE {database} CHARACTER SET {set} COLLATE {collation}");
        if let Err(error) = self.session.client.simple(&sql) {
            lacking.push(format!("{} has no collation {collation}: {error}", self.name));
        }
        // Folders of the source, dates of zeros, and keys of tables that no statement names.
        self.run_as_planner("SET SESSION sql_mode = 'NO_DIR_IN_CREATE'")?;
        self.run_as_planner("SET SESSION foreign_key_checks = 0")?;
        let tables = facts.tables.iter().map(|table| (&table.name, &table.create));
        let functions = facts.functions.iter().map(|(function, sql)| (function, sql));
        let mut left: Vec<(&String, &String)> = functions.chain(tables).collect();
        loop {
            let (tried, mut refused) = (left.len(), Vec::new());
            for (object, sql) in left {
                if let Err(error) = self.planner.client.simple(sql) {
                    refused.push((object, sql, error));
                }
            }
            if refused.is_empty() || refused.len() == tried {
                lacking.extend(refused.into_iter().map(|(object, _, error)| {
                    format!("{} cannot make \"{object}\": {error}", self.name)
                }));
                break;
            }
            left = refused.into_iter().map(|(object, sql, _)| (object, sql)).collect();
        }
        self.reconnect()
    }

    /// Takes over statistics that were written into their tables. MariaDB does so for certain only
    /// when it starts, and that takes it a second.
    pub(super) fn read_statistics(&mut self) -> Result<()> {
        if self.session.is_mariadb || self.session.is_mysql(&[9]) {
            self.control.stop()?;
            self.control.start()?;
        } else {
            self.run("FLUSH TABLES")?;
        }
        self.reconnect()
    }

    pub(super) fn run(&mut self, sql: &str) -> Result<()> {
        self.control.check()?;
        let done = self.session.client.simple(sql).map(drop);
        done.with_context(|| format!("ready {} to plan", self.name))
    }

    fn run_as_planner(&mut self, sql: &str) -> Result<()> {
        self.control.check()?;
        let done = self.planner.client.simple(sql).map(drop);
        done.with_context(|| format!("ready {} to plan", self.name))
    }

    /// A setting of all sessions. False if this version does not know it or its value.
    pub(super) fn set(&mut self, variable: &str, value: &str) -> Result<bool> {
        let value = match value.parse::<f64>() {
            Ok(_) => value.to_owned(),
            Err(_) => literal(value).to_string(),
        };
        let sql = format!("SET GLOBAL {} = {value}", name(variable));
        match self.session.client.simple(&sql) {
            Ok(_) => Ok(true),
            Err(WireError::Server { .. }) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("set {variable} of {}", self.name)),
        }
    }

    /// True if this version has the mode of `sql_mode`. The session of the planner keeps it until
    /// the next one.
    pub(super) fn takes_mode(&mut self, mode: &str) -> Result<bool> {
        self.control.check()?;
        let sql = format!("SET SESSION sql_mode = {}", Literal::quoted(Dialect::Mysql, mode));
        match self.planner.client.simple(&sql) {
            Ok(_) => Ok(true),
            Err(WireError::Server { .. }) => Ok(false),
            Err(error) => Err(error).with_context(|| format!("set a mode of {}", self.name)),
        }
    }

    /// A file of the user's, whose database is this one. Returns what the server refuses of it.
    pub(super) fn load(&mut self, path: &Path) -> Result<Vec<String>> {
        let mut refused = Vec::new();
        each_chunk(path, Dialect::Mysql, &mut |chunk| {
            let SqlChunk::Statement(text, line) = chunk else {
                bail!("read {}: it holds data of COPY, which is no MySQL", path.display());
            };
            let sql = match reading::judge_dumped(&text) {
                DumpedStatement::Plain => text,
                DumpedStatement::WithoutDefiner(text) => text,
                DumpedStatement::OfReplication | DumpedStatement::NamesDatabase => return Ok(()),
            };
            match self.session.client.simple_bytes(&sql) {
                Ok(_) => Ok(()),
                Err(WireError::Server { code, message }) if refused.len() < MOST_REFUSED => {
                    let place = format!("{}:{line}", path.display());
                    let made = made(&String::from_utf8_lossy(&sql)).unwrap_or_default();
                    let server = &self.name;
                    refused.push(format!("{server} refuses {place}{made}: {message} ({code})"));
                    Ok(())
                }
                Err(error) => Err(error).with_context(|| {
                    format!("load {} line {line} into {}", path.display(), self.name)
                }),
            }
        })?;
        // A dump may leave settings behind in its session.
        self.reconnect()?;
        Ok(refused)
    }

    /// Gathers statistics of all tables.
    pub(super) fn analyze(&mut self) -> Result<()> {
        let tables = self.session.rows(
            "SELECT table_name FROM information_schema.tables \
             WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE'",
        )?;
        for table in tables.into_iter().flatten().flatten() {
            let sql = format!("ANALYZE TABLE {}", name(&table));
            self.session.rows(&sql).with_context(|| format!("analyze {table} of {}", self.name))?;
        }
        Ok(())
    }

    /// The plan of a statement. A statement that ends the server is told, and the server starts
    /// again.
    pub(super) fn explain(&mut self, statement: &Statement) -> Result<Result<PlanNode, PlanError>> {
        match self.planner.explain(statement) {
            Err(PlanError::Broken(words)) => {
                self.control.start().with_context(|| {
                    format!("start {} after statement {}: {words}", self.name, statement.number)
                })?;
                self.reconnect()?;
                Ok(Err(PlanError::Refused(format!("it ends the server: {words}"))))
            }
            Ok(plan) => Ok(match self.refused_pattern(&statement.text) {
                Some(words) => Err(PlanError::Refused(format!("when it runs: {words}"))),
                None => Ok(plan),
            }),
            answer => Ok(answer),
        }
    }

    /// What this version says against a regular expression of a statement.
    fn refused_pattern(&mut self, statement: &str) -> Option<String> {
        source::patterns(statement).into_iter().find_map(|pattern| {
            // The server may end the literal elsewhere, if the source's settings say so.
            match self.planner.rows(&format!("SELECT 'a' REGEXP {pattern}")) {
                Err(WireError::Server { code, message }) => Some(format!("{message} ({code})")),
                _ => None,
            }
        })
    }
}

/// The name of what a statement makes: ` "orders"`.
fn made(sql: &str) -> Option<String> {
    let all = tokens(Dialect::Mysql, sql.as_bytes()).ok()?;
    let text = |token: &Token| sql.get(token.begin..token.end).unwrap_or_default();
    let mut rest = all
        .iter()
        .skip_while(|token| !["TABLE", "VIEW", "FUNCTION"].contains(&&*text(token).to_uppercase()));
    rest.next()?;
    let is_filler =
        |token: &&Token| ["IF", "NOT", "EXISTS"].contains(&&*text(token).to_uppercase());
    let name = rest.find(|token| !is_filler(token))?;
    Some(format!(" \"{}\"", text(name).trim_matches('`')))
}

/// As the administrator, or in a role.
fn connect(
    control: &dyn ControlPlane,
    database: &str,
    role: Option<&str>,
    server: &str,
) -> Result<Session> {
    let doing = || format!("connect to {server}");
    let (Endpoint::Server(address), login) = control.endpoint() else {
        bail!("connect to {server}: it is no server");
    };
    let user = role.map_or(login.user, str::to_owned);
    let login = Login { database: database.to_owned(), user, password: login.password };
    Session::connect(&address, &login, false).with_context(doing)
}

// A session with a MySQL or MariaDB, and its EXPLAIN.

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(30);

/// Time limit of one EXPLAIN: it may read rows of tables that have one row each.
const EXPLAIN: Duration = Duration::from_secs(60);

/// First words of statements that EXPLAIN knows in all versions.
const EXPLAINED: [&str; 8] =
    ["SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE", "TABLE", "VALUES"];

/// A name in quotes.
pub(super) fn name(text: &str) -> Identifier {
    Identifier::quoted(Dialect::Mysql, text)
}

/// A text in quotes.
pub(super) fn literal(text: &str) -> Literal {
    Literal::quoted(Dialect::Mysql, text)
}

/// A session.
pub(super) struct Session {
    pub(super) client: MysqlClient,
    address: Address,
    login: Login,
    pub(super) version: Version,
    pub(super) is_mariadb: bool,
    /// True on a server of somebody else: every statement is in a transaction that only reads, and
    /// that ends at once, so that nobody waits for a lock of it.
    reads_only: bool,
}

impl Session {
    pub(super) fn connect(
        address: &Address,
        login: &Login,
        reads_only: bool,
    ) -> Result<Session, WireError> {
        let mut client = MysqlClient::connect(address, login, CONNECT)?;
        if reads_only {
            client.one_statement_each()?;
        }
        let reported = client.server_version().to_owned();
        Ok(Session {
            client,
            address: address.clone(),
            login: login.clone(),
            is_mariadb: reported.contains("MariaDB"),
            version: Version::new(reported),
            reads_only,
        })
    }

    /// True for a MySQL of this version or a later one.
    pub(super) fn is_mysql(&self, since: &[u32]) -> bool {
        !self.is_mariadb && self.version.at_least(since)
    }

    /// Rows as text.
    pub(super) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, WireError> {
        if !self.reads_only {
            return self.client.rows(sql);
        }
        self.client.simple("START TRANSACTION READ ONLY")?;
        let rows = self.client.rows(sql);
        if !matches!(rows, Err(WireError::Io { .. })) {
            self.client.simple("ROLLBACK")?;
        }
        rows
    }

    /// The plan of one statement.
    pub(super) fn explain(&mut self, statement: &Statement) -> Result<PlanNode, PlanError> {
        let first = statement.first_word(Dialect::Mysql);
        if !EXPLAINED.contains(&first.as_str()) {
            return Err(PlanError::NotCovered(format!("{first} has no plan")));
        }
        let statement = &statement.text;
        // 9.7 prints a tree by default, and earlier ones tell partitions only if asked.
        let sql = if self.is_mysql(&[5, 7]) {
            format!("EXPLAIN FORMAT=TRADITIONAL {statement}")
        } else {
            format!("EXPLAIN PARTITIONS {statement}")
        };
        self.client.set_answer_limit(Some(EXPLAIN));
        let answer = self.rows(&sql);
        self.client.set_answer_limit(None);
        let rows = match answer {
            Ok(rows) => rows,
            Err(WireError::Server { code, message }) => {
                return Err(PlanError::Refused(format!("{message} ({code})")));
            }
            Err(error) => return Err(self.reconnected(&error)),
        };
        let read: Option<Vec<ExplainRow>> = rows.iter().map(|row| ExplainRow::read(row)).collect();
        match read {
            Some(rows) => Ok(tabular::tree(&rows)),
            None => Err(PlanError::NotCovered("EXPLAIN has other columns here".to_owned())),
        }
    }

    /// After an answer that did not come: the statement may have ended the server.
    fn reconnected(&mut self, error: &WireError) -> PlanError {
        match MysqlClient::connect(&self.address, &self.login, CONNECT) {
            Ok(client) => {
                self.client = client;
                PlanError::NotCovered(format!("EXPLAIN gives no answer: {error}"))
            }
            Err(_) => PlanError::Broken(format!("the server is gone after EXPLAIN: {error}")),
        }
    }
}
