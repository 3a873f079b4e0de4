//! A workload of the user's own SQL, as it stands in a file: what is loaded, which values there
//! are, and the statements of each step.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::sql_name::{PlainName, TableName};

/// The workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlShape {
    /// Whole numbers by name, which stand for themselves in other places. `--set` changes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, i64>,
    /// The files that it reads, each with its SHA-256: another file of that name is refused.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, PinnedFile>,
    /// The load of the tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<SqlLoad>,
    /// Values by name, for `:name` in statements.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameter: BTreeMap<String, SqlParameter>,
    /// The steps in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step: Vec<SqlStep>,
}

impl SqlShape {
    /// The statements of all events of all steps, in order.
    pub fn statements(&self) -> impl Iterator<Item = &SqlStatement> {
        self.step.iter().flat_map(|step| &step.event).flat_map(|event| &event.statement)
    }
}

/// A file that a workload reads.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedFile {
    /// SHA-256 of its content, in hex.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
}

/// A position in the file that a part was read from; unknown if it was read from another form. All
/// positions are equal, so that the same workloads in different places are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextPosition {
    /// Line, from 1; 0 if unknown.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl PartialEq for TextPosition {
    fn eq(&self, _: &TextPosition) -> bool {
        true
    }
}

impl TextPosition {
    /// `line 3, column 7: `, or nothing.
    pub fn prefix(&self) -> String {
        match self.line {
            0 => String::new(),
            line => format!("line {line}, column {}: ", self.column),
        }
    }
}

/// A whole number, a fraction, or a text: the name of a variable, a sum, a date.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a text in quotes")]
pub enum Amount {
    /// `42`.
    Whole(i64),
    /// `0.5`.
    Decimal(f64),
    /// `customers`, `customers*10`, `2024-02-29`.
    Text(String),
}

/// Texts that may be different for each dialect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected one value for all, or one for each dialect: { postgres = …, mysql = … }"
)]
pub enum ByDialect<T> {
    /// The same value for all.
    All(T),
    /// By `postgres`, `mysql`, `mariadb` (otherwise as `mysql`), `sqlite`, or `any` for the others.
    Each(BTreeMap<String, T>),
}

/// The load of the tables.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlLoad {
    /// The folder that files are relative to; that of the workload file if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<PathBuf>,
    /// The name of the database on the MySQL and MariaDB servers that rqps starts, where views and
    /// routines of the files spell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<PlainName>,
    /// True to load on servers given by a DSN, too, where other tables may be.
    #[serde(default, rename = "load", skip_serializing_if = "Option::is_none")]
    pub on_servers: Option<bool>,
    /// Tables that a load on such a server drops first, or statements that begin with DROP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<ByDialect<Vec<String>>>,
    /// Files of SQL that make tables; a dump may fill them, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<ByDialect<Vec<String>>>,
    /// CSV files, one table each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data: Vec<CsvLoad>,
    /// Files of SQL that follow the rows, such as indexes; timed apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<ByDialect<Vec<String>>>,
    /// Sessions that load CSV at the same time, files or parts of large ones; 1 if not given.
    #[serde(default, rename = "threads", skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    /// False to leave statistics as they are; else the DBMS gathers them after the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analyze: Option<bool>,
    /// Its position.
    #[serde(skip)]
    pub at: TextPosition,
}

/// The rows of a table in a CSV file with a header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CsvLoad {
    /// The file.
    pub csv: String,
    /// The table.
    pub table: TableName,
    /// Columns of the table in the order of the fields; those of the header if it says nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Columns whose fields are bytes, written in hex.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hex: Vec<String>,
    /// The unquoted field that stands for NULL; the empty field if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null: Option<String>,
    /// The character between fields; a comma if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delimiter: Option<String>,
    /// Rows that there must be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect_rows: Option<u64>,
}

/// The source of the values of a name. `kind` decides which keys have a meaning.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlParameter {
    /// `uniform`, `zipfian`, `list`, `text` and others.
    pub kind: String,
    /// The smallest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Amount>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<Amount>,
    /// `zipfian`, `latest`: the exponent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponent: Option<f64>,
    /// `zipfian`: spreads the hot values over the range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scramble: Option<bool>,
    /// `pareto`: the shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub h: Option<f64>,
    /// `gaussian`, `exponential`: the parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<f64>,
    /// `sequential`: begin again after the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wrap: Option<bool>,
    /// `same`, `latest`: the other parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// `same`: what is added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plus: Option<Amount>,
    /// `list`: the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Amount>>,
    /// `list`: one for each value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<Vec<f64>>,
    /// `file`: the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub csv: Option<String>,
    /// `file`: the column of the values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// `file`: the column of the weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight_column: Option<String>,
    /// `file`: `random` or `sequential`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// `file`: parameters with the same label take fields of one row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<String>,
    /// `text`: characters, or the fewest and the most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<CountOrRange>,
    /// `text`: characters and ranges such as `a-z0-9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alphabet: Option<String>,
    /// `text`: `#` is a digit, `@` a letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// `float`: digits after the point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digits: Option<u32>,
    /// `timestamp`: seconds between two values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<i64>,
    /// `event`, `use` or `client`: how often it is drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<String>,
    /// Values at once, for `IN (:ids)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// True if those differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distinct: Option<bool>,
    /// Share of NULLs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null: Option<f64>,
    /// On Postgres: the type that the value is cast to.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub cast: Option<String>,
    /// Its position.
    #[serde(skip)]
    pub at: TextPosition,
}

/// A number, or the least and the most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number, or the least and the most as in [20, 80]")]
pub enum CountOrRange {
    /// This number.
    Count(u64),
    /// From the first to the second.
    Range([u64; 2]),
}

impl CountOrRange {
    /// The least and the most.
    pub fn bounds(self) -> [u64; 2] {
        match self {
            CountOrRange::Count(count) => [count, count],
            CountOrRange::Range(range) => range,
        }
    }
}

/// A step: what clients do over and over for some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlStep {
    /// Its name.
    pub name: String,
    /// `point`, `range` or `write`; by its statements if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The measured window; that of its group if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Its clients; those of the workload if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Events per second that begin on a schedule; as the workload if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<f64>,
    /// The unit of the verdict: `statements` or `events`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// False to warm caches only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<bool>,
    /// True to begin on a fresh copy of the loaded data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh: Option<bool>,
    /// Statements that each session executes before the clock starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<String>,
    /// The events; a client draws one at a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub event: Vec<SqlEvent>,
    /// In place of events: the trace that the step replays, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// `trace`: how many times as fast as it was recorded; without it, as fast as the order allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// `trace`: how long the replay takes where the server is as fast as the recorded one; rqps
    /// computes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_seconds: Option<f64>,
    /// `trace`: `recorded`, or `free` to keep the order within each session only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// Its position.
    #[serde(skip)]
    pub at: TextPosition,
}

/// The replay of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayWork {
    /// The file.
    pub trace: PathBuf,
    /// Statements that each session executes first.
    pub init: Vec<String>,
    /// How many times as fast as it was recorded; `None` for as fast as the order allows.
    pub speed: Option<f64>,
    /// True to keep the order within each session only.
    pub is_free: bool,
    /// How long it takes where the server is as fast as the recorded one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_seconds: Option<f64>,
}

/// Statements that belong together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlEvent {
    /// A name for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its share of the events of the step; 1 if it says nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// True for BEGIN and COMMIT around it, or an isolation level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<TransactionWord>,
    /// More codes of errors after which it begins again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<String>,
    /// Codes of errors that end it without another try.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
    /// The statements in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statement: Vec<SqlStatement>,
}

/// The transaction of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected true, or an isolation level in quotes")]
pub enum TransactionWord {
    /// True if the event is a transaction.
    Plain(bool),
    /// A transaction with this isolation level.
    Level(String),
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlStatement {
    /// `prepared`, or `text` for literals that the server parses each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Executed so many times in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
    /// The SQL, with `:name` for values.
    pub sql: ByDialect<String>,
    /// The required result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<SqlExpectation>,
    /// Names for the columns of its only row, for the statements that follow in the event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub into: Vec<String>,
    /// The position of its SQL.
    #[serde(skip)]
    pub at: TextPosition,
}

/// The required result of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SqlExpectation {
    /// Rows.
    pub rows: CountOrRange,
}
