//! A session with a MySQL or MariaDB, and its EXPLAIN.

use std::time::Duration;

use rqps_model::build::Version;
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Login};
use rqps_model::sql_name::{Identifier, Literal};
use rqps_wire::WireError;
use rqps_wire::mysql::MysqlClient;

use super::tabular::{self, ExplainRow};
use crate::rehearsal::PlanError;
use crate::statement::Statement;
use crate::tree::PlanNode;

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
