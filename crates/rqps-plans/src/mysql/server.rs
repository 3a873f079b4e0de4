//! A private server of one version.

use std::path::Path;

use anyhow::{Context, Result, bail};

use rqps_dbms::ControlPlane;
use rqps_model::build::Build;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Endpoint, Login};
use rqps_text::mysql_dump::{self, DumpedStatement};
use rqps_text::{SqlChunk, Token, tokens};
use rqps_wire::WireError;

use super::constants;
use super::session::{Session, literal, name};
use super::source::Facts;
use crate::place::PrivatePlace;
use crate::rehearsal::PlanError;
use crate::sql_file::each_chunk;
use crate::statement::Statement;
use crate::tree::PlanNode;

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

    /// A file of the user's, whose database is this one. Returns what the server refuses of it.
    pub(super) fn load(&mut self, path: &Path) -> Result<Vec<String>> {
        let mut refused = Vec::new();
        each_chunk(path, Dialect::Mysql, &mut |chunk| {
            let SqlChunk::Statement(text, line) = chunk else {
                bail!("read {}: it holds data of COPY, which is no MySQL", path.display());
            };
            let sql = match mysql_dump::judge(&text) {
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
        constants::patterns(statement).into_iter().find_map(|pattern| {
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
