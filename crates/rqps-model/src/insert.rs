//! Parameters of the Insert Benchmark: its scale beyond the common one, and the work of a step.
//! `rows` of the workload counts the rows that l.i0 inserts into each table.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::script::Protocol;

/// Scale and shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InsertShape {
    /// The published version of the sequence.
    pub profile: Profile,
    /// Tables as they were asked for; `None` for one per client, or one that all share.
    pub tables: Option<u32>,
    /// Rows that l.i1 inserts for each client.
    pub i1_rows: u64,
    /// Rows that l.i2 inserts for each client; 2026 only.
    pub i2_rows: u64,
    /// Seconds that a query step lasts if its writers keep their rate.
    pub query_seconds: f64,
    /// The query steps in order.
    pub query_steps: Vec<QueryStep>,
    /// For every row inserted in l.i1, l.i2 and the query steps one is deleted at the other end.
    pub deletes: bool,
    /// All clients write one table.
    pub shared: bool,
    /// Ranges of the primary key that a table is split into; 1 for a plain table.
    pub partitions: u32,
    /// Secondary indexes that l.x makes, 0 to 3.
    pub secondary_indexes: u32,
    /// Rows per INSERT in each step.
    pub rows_per_commit: RowsPerCommit,
    /// Batches between two questions for the smallest key; 0 asks once per step.
    pub resync_every: u32,
    /// Connections of each client that query in a query step.
    pub query_threads: u32,
    /// The pacing of writers with a rate.
    pub pacing: Pacing,
    /// Memory that a server and the page cache of its files may take, bytes; `None` for no limit.
    pub memory_limit: Option<u64>,
    /// A step ends at the latest after this many times its planned length; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_limit: Option<f64>,
}

/// A published era: schema, indexes, steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Profile {
    /// January 2021: as [`Profile::Y2021`], with twelve query steps.
    #[serde(rename = "2021-jan")]
    Y2021Jan,
    /// November 2021: no deletes, l.i0 l.x l.i1 q100.1 q500.1 q1000.1.
    #[serde(rename = "2021")]
    Y2021,
    /// Since December 2023: deletes, l.i2, range and point queries.
    #[serde(rename = "2026")]
    Y2026,
}

impl Profile {
    /// All, in the order of time.
    pub const ALL: [Profile; 3] = [Profile::Y2021Jan, Profile::Y2021, Profile::Y2026];

    /// The word after `profile=`.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Y2021Jan => "2021-jan",
            Profile::Y2021 => "2021",
            Profile::Y2026 => "2026",
        }
    }

    /// True for the schema, the indexes and the queries of 2021.
    pub fn is_2021(self) -> bool {
        self != Profile::Y2026
    }
}

/// Rows per INSERT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsPerCommit {
    /// In l.i0 and l.x.
    pub i0: u32,
    /// In l.i1.
    pub i1: u32,
    /// In l.i2.
    pub i2: u32,
    /// In query steps; no more than their rate.
    pub query: u32,
}

/// A query step: `100:range`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct QueryStep {
    /// Rows that each client inserts a second.
    pub rows_per_second: u32,
    /// The kind of queries.
    pub kind: QueryKind,
}

/// Kinds of queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryKind {
    /// Ten entries of a secondary index.
    Range,
    /// Ten rows by primary key.
    Point,
}

impl QueryKind {
    /// The word in `query_steps`.
    pub fn name(self) -> &'static str {
        match self {
            QueryKind::Range => "range",
            QueryKind::Point => "point",
        }
    }
}

impl fmt::Display for QueryStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.rows_per_second, self.kind.name())
    }
}

impl From<QueryStep> for String {
    fn from(step: QueryStep) -> String {
        step.to_string()
    }
}

impl TryFrom<String> for QueryStep {
    type Error = String;

    fn try_from(text: String) -> Result<QueryStep, String> {
        let wanted = || {
            format!(
                "`{text}` is not a query step: write RATE:KIND, such as 100:range or 1000:point, \
                 with a rate from 1 to 10000000 rows per second and client"
            )
        };
        let (rate, kind) = text.split_once(':').unwrap_or((&text, "range"));
        let kind = match kind.trim() {
            "range" => QueryKind::Range,
            "point" => QueryKind::Point,
            _ => return Err(wanted()),
        };
        let rate: Option<u32> = rate.trim().parse().ok();
        let rows_per_second =
            rate.filter(|rate| (1..=10_000_000).contains(rate)).ok_or_else(wanted)?;
        Ok(QueryStep { rows_per_second, kind })
    }
}

/// The pacing of writers with a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pacing {
    /// Evenly spaced; what is late is caught up, and response time counts from the schedule.
    Open,
    /// As published: a burst at the start of each second, and no recovery of lost time.
    Compat,
}

/// The work of a step's clients. SQL is in the dialect of the target, with `{table}` for the
/// table's number and `{engine}` for the storage engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InsertWork {
    /// Every client writes table 1; otherwise client i writes table i + 1.
    pub shared: bool,
    /// For each table, before the window: drop and create.
    pub setup: Vec<String>,
    /// For each table, before the window: maintenance between steps.
    pub maintenance: Vec<Maintenance>,
    /// The price column.
    pub price: PriceKind,
    /// The writers.
    pub writes: Writes,
    /// For each table, after its rows: the secondary indexes, one statement for all of them where
    /// the DBMS can.
    pub indexes: Vec<String>,
    /// The statements one by one, for storage engines that would otherwise need too much memory.
    pub indexes_one_by_one: Vec<String>,
    /// Rows that were there before and that the indexes cover: counted into the rate.
    pub indexed_rows: u64,
    /// The queries; `None` in steps that only write.
    pub queries: Option<Queries>,
    /// Groups of statements about the activity of the server, for the report's stalls. The first
    /// group that the server answers with rows is sent each second.
    pub observe: Vec<Vec<String>>,
    /// Asks for the bytes of the tables with their indexes, after the window; the first that the
    /// server understands.
    pub size: Vec<String>,
    /// Seconds after which the step ends although rows are left; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit_seconds: Option<f64>,
}

impl InsertWork {
    /// True if the step loads rows or makes indexes that all later steps need.
    pub fn loads(&self) -> bool {
        self.queries.is_none()
    }
}

/// Something to be done to each table between steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Maintenance {
    /// The statement.
    pub sql: String,
    /// True to wait for its end; otherwise it runs beside the step.
    pub wait: bool,
    /// Seconds of rest afterwards.
    pub pause_seconds: f64,
}

/// The price column: rows of the insert benchmark draw it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceKind {
    /// 2021.
    Correlated,
    /// 2026.
    Whole,
}

/// The inserter and the deleter of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Writes {
    /// `INSERT INTO pi{table} (…) VALUES `, up to the first tuple.
    pub insert_sql: String,
    /// Rows of each client, rounded up to whole batches.
    pub rows: u64,
    /// Rows of a batch, which is one statement and one transaction.
    pub rows_per_commit: u32,
    /// Rows per second of each client; `None` for as fast as possible.
    pub rows_per_second: Option<u32>,
    /// The pacing of the rate.
    pub pacing: Pacing,
    /// Statements that one side may be ahead of the other.
    pub queue: u32,
    /// The deleter.
    pub deletes: Option<Deletes>,
}

/// The deleter of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Deletes {
    /// With `{key}` for the guess of the smallest key and `{rows}` for the number of rows.
    pub sql: String,
    /// Asks for the smallest key.
    pub min_sql: String,
    /// Batches between two questions; 0 for one at the start only.
    pub resync_every: u32,
}

/// The query workers of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Queries {
    /// Connections of each client.
    pub workers: u32,
    /// One of them is drawn for each query.
    pub kinds: Vec<Query>,
    /// Rows that a query should return.
    pub rows_per_query: u32,
    /// Asks for the largest key, at the start and every [`KEY_REFRESH`] queries; `None` where no
    /// query needs keys.
    pub max_sql: Option<String>,
}

/// Queries between two questions for the largest key.
pub const KEY_REFRESH: u32 = 100;

/// One kind of query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// `market`, `register`, `pdc`, `point`.
    pub name: String,
    /// Said once per connection: `PREPARE …`.
    pub prepare: Option<String>,
    /// With `{1}`, `{2}` … for the parameters in text, `?` where it is prepared.
    pub sql: String,
    /// Text, or prepared by the protocol.
    pub protocol: Protocol,
    /// The parameters of the query, in order.
    pub parameters: Vec<Draw>,
}

/// The distribution of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Draw {
    /// Uniform in 0..10000.
    Product,
    /// Uniform in 0..1000.
    CashRegister,
    /// Uniform in 0..500.
    WholePrice,
    /// Like the price of a row of 2021, with two decimals.
    Price,
    /// Uniform in smallest..largest key.
    Key,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_step_is_a_word() {
        let step = QueryStep { rows_per_second: 100, kind: QueryKind::Point };
        assert_eq!(String::from(step), "100:point");
        assert_eq!(QueryStep::try_from("100:point".to_owned()), Ok(step));
        for wrong in ["0:range", "-5:range", "100:scan", "range", "1e3:point", "99999999:range"] {
            let error = QueryStep::try_from(wrong.to_owned()).unwrap_err();
            assert!(error.contains("RATE:KIND"), "{error}");
        }
    }
}
