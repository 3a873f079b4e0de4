//! What a client does, as data: statements with generated parameters, grouped into events.
//!
//! Benchmarks write scripts, the lab ships them, `driver` carries them out. SQL is spelled per
//! dialect when the script is made, so the driver knows nothing of benchmarks.

use serde::{Deserialize, Serialize};

/// One event is the list of operations in order. The latency of a step is that of events, its rate
/// that of statements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// BEGIN before and COMMIT after the operations; both are counted as statements.
    pub transaction: bool,
    /// The operations of one event.
    pub operations: Vec<Operation>,
    /// How random ids, keys and range starts are drawn.
    pub distribution: Distribution,
}

impl Script {
    /// Statements of one event as QPS counts them.
    pub fn statements_per_event(&self) -> u64 {
        let own: u64 = self.operations.iter().map(|operation| u64::from(operation.repeat)).sum();
        own + if self.transaction { 2 } else { 0 }
    }
}

/// A statement, how often it is executed in a row, and on which table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Statement kind for plans and logs: `point_selects`, `index_updates`.
    pub kind: String,
    /// SQL in the dialect of the target, with `{table}` where the table's number goes (`FROM
    /// sbtest{table} WHERE …`).
    pub sql: String,
    /// Prepared once per connection, table and kind; or sent as text each time.
    pub protocol: Protocol,
    /// Values of the placeholders in order. In text protocol, `{1}`, `{2}` … in the SQL are
    /// replaced by literals: `42`, and texts with their quotes: `'0123…'`.
    pub parameters: Vec<Parameter>,
    /// Executed this many times per event with new parameters, all on one table.
    pub repeat: u32,
    /// How the table is chosen, once per event.
    pub table: TableChoice,
}

/// How statements travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Server-side prepared, executed by handle.
    Prepared,
    /// Literals in the SQL, the simple protocol.
    Text,
}

/// How an operation's table is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TableChoice {
    /// Uniform over all tables.
    Uniform,
    /// The table of the operation before in the same event.
    SameAsPrevious,
    /// Client i always takes table i mod T.
    ByClient,
}

/// How ids, keys and range starts in 1..=rows are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Every value alike.
    Uniform,
    /// Rank k with probability ∝ 1/k^exponent, hottest id 1, not scrambled.
    Zipfian {
        /// θ; sysbench's default and the published 0.8.
        exponent: f64,
    },
}

/// One value of a statement. All numbers are 64-bit integers on the wire, as sysbench binds them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Parameter {
    /// A random id from the script's distribution, in 1..=rows.
    Id,
    /// A random value of column k: as `Id`, under another name.
    Key,
    /// The id 1, whatever the distribution: every client on one row of its table.
    FirstId,
    /// The id that the operation before used for its last `Id`.
    SameId,
    /// rows/2 + offset: the adjacent ids of hot-points.
    HotId {
        /// 1 for the first.
        offset: u32,
    },
    /// Random start of a range.
    RangeStart,
    /// The last `RangeStart` + `span`: BETWEEN reads span + 1 keys.
    RangeEnd {
        /// Distance between both ends.
        span: u32,
    },
    /// New random text of so many characters: groups of eleven digits with `-` between them.
    Digits {
        /// Characters.
        bytes: u32,
    },
}
