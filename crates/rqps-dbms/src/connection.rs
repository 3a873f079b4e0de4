//! Sessions of the control plane with a server, and what their rows become.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Login};
use rqps_wire::WireError;
use rqps_wire::mysql::MysqlClient;
use rqps_wire::postgres::PostgresClient;

/// One row of text columns.
pub type ControlRow = Vec<Option<String>>;

/// A session of the control plane.
pub trait ControlConnection: Send {
    /// Rows of a query as text.
    fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError>;
    /// A statement whose rows do not matter.
    fn run(&mut self, sql: &str) -> Result<(), WireError>;
    /// True if the session is encrypted.
    fn is_encrypted(&self) -> bool {
        false
    }
}

/// Rows of name and value whose value is a number.
pub(super) fn numbers(rows: Vec<ControlRow>) -> BTreeMap<String, f64> {
    let number = |row: ControlRow| {
        let mut cells = row.into_iter().flatten();
        let (name, value) = (cells.next()?, cells.next()?.parse::<f64>().ok()?);
        value.is_finite().then_some((name, value))
    };
    rows.into_iter().filter_map(number).collect()
}

/// The first column of the first row.
pub(super) fn one_value(
    session: &mut dyn ControlConnection,
    sql: &str,
) -> Result<Option<String>, WireError> {
    Ok(session.rows(sql)?.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
}

impl ControlConnection for PostgresClient {
    fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError> {
        self.set_answer_limit(Some(ANSWER));
        let rows = PostgresClient::rows(self, sql);
        self.set_answer_limit(None);
        rows
    }

    fn is_encrypted(&self) -> bool {
        PostgresClient::is_encrypted(self)
    }

    fn run(&mut self, sql: &str) -> Result<(), WireError> {
        self.simple(sql).map(|_| ())
    }
}

impl ControlConnection for MysqlClient {
    fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError> {
        self.set_answer_limit(Some(ANSWER));
        let rows = MysqlClient::rows(self, sql);
        self.set_answer_limit(None);
        rows
    }

    fn is_encrypted(&self) -> bool {
        MysqlClient::is_encrypted(self)
    }

    fn run(&mut self, sql: &str) -> Result<(), WireError> {
        self.simple(sql).map(|_| ())
    }
}

/// Connects a session of the control plane. Its statements may take as long as they take.
pub(super) fn connect(
    dialect: Dialect,
    address: &Address,
    login: &Login,
) -> Result<Box<dyn ControlConnection>, WireError> {
    Ok(match dialect {
        Dialect::Postgres => Box::new(PostgresClient::connect(address, login, CONNECT)?),
        Dialect::Mysql => Box::new(MysqlClient::connect(address, login, CONNECT)?),
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => {
            return Err(WireError::Protocol(format!("{dialect:?} has no server to connect to")));
        }
    })
}

/// Time limit for connecting a session of the control plane.
const CONNECT: Duration = Duration::from_secs(30);

/// Time limit of an answer with rows: catalogues of many tables take minutes.
const ANSWER: Duration = Duration::from_secs(600);

/// Opens a session.
pub(crate) type Connect =
    Arc<dyn Fn() -> Result<Box<dyn ControlConnection>, WireError> + Send + Sync>;

/// What opens sessions with this login, each with these first statements.
pub(super) fn connector(
    dialect: Dialect,
    address: Address,
    login: Login,
    setup: Vec<String>,
) -> Connect {
    Arc::new(move || {
        let mut session = connect(dialect, &address, &login)?;
        setup.iter().try_for_each(|sql| session.run(sql))?;
        Ok(session)
    })
}

/// Connects and asks for one row, each within `timeout`.
pub(super) fn first_query(
    dialect: Dialect,
    address: &Address,
    login: &Login,
    timeout: Duration,
) -> Result<(), WireError> {
    const QUERY: &str = "SELECT 1";
    match dialect {
        Dialect::Postgres => {
            let mut client = PostgresClient::connect(address, login, timeout)?;
            client.set_read_timeout(Some(timeout))?;
            client.simple(QUERY)?;
        }
        Dialect::Mysql => {
            let mut client = MysqlClient::connect(address, login, timeout)?;
            client.set_read_timeout(Some(timeout))?;
            client.simple(QUERY)?;
        }
        Dialect::Sqlite | Dialect::KeyValue | Dialect::Fake => {}
    }
    Ok(())
}

/// Rows as tab-separated lines under a heading; NULL as `\N`.
pub(super) fn table(heading: &str, rows: &[ControlRow]) -> String {
    let mut text = format!("{heading}\n");
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| match cell {
                Some(cell) => cell.replace(['\t', '\n'], " "),
                None => "\\N".to_owned(),
            })
            .collect();
        text.push_str(&cells.join("\t"));
        text.push('\n');
    }
    text
}
