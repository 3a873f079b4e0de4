//! Scripts of a client, as data: statements with generated parameters, grouped into events.
//!
//! Benchmarks write scripts, the lab ships them, `driver` carries them out. SQL is spelled per
//! dialect when the script is made, so the driver knows nothing of benchmarks.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The work that a client repeats: one of a few events, each a list of operations in order.
/// Latencies are those of events, the rate is that of statements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// The events; a client draws one by weight each time. With a single event it draws nothing.
    pub events: Vec<ScriptEvent>,
    /// The distribution of random ids, keys and range starts.
    pub distribution: Distribution,
    /// The sources of [`Parameter::Value`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<ValueSource>,
    /// Statements that each session executes once, before the clock starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<String>,
    /// True if the statements are the user's: one that never ends fails the step.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub watched: bool,
}

/// One of the things that a client does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScriptEvent {
    /// Its share of all events is its weight divided by the sum of all weights.
    pub weight: u32,
    /// Statements that begin a transaction, which COMMIT ends; empty for none. All are counted as
    /// statements, and so is COMMIT.
    pub begin: Vec<String>,
    /// The operations of one event.
    pub operations: Vec<Operation>,
    /// Sources, by number, whose values are drawn before the first operation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draws: Vec<u32>,
    /// Codes of errors after which the event begins again, besides those of the dialect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retry: Vec<String>,
    /// Codes of errors that end the event without another try. It does not count as an event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore: Vec<String>,
}

impl Script {
    /// A script of one event.
    pub fn of(transaction: bool, operations: Vec<Operation>, distribution: Distribution) -> Script {
        let event = ScriptEvent {
            weight: 1,
            begin: if transaction { vec!["BEGIN".to_owned()] } else { Vec::new() },
            operations,
            draws: Vec::new(),
            retry: Vec::new(),
            ignore: Vec::new(),
        };
        let (sources, init, watched) = (Vec::new(), Vec::new(), false);
        Script { events: vec![event], distribution, sources, init, watched }
    }

    /// True if an event is a transaction.
    pub fn has_transaction(&self) -> bool {
        self.events.iter().any(|event| !event.begin.is_empty())
    }

    /// The operations of all events.
    pub fn operations(&self) -> impl Iterator<Item = &Operation> {
        self.events.iter().flat_map(|event| &event.operations)
    }

    /// Statements of one event as QPS counts them; of several events the mean, rounded up.
    pub fn statements_per_event(&self) -> u64 {
        let weights: u64 = self.events.iter().map(|event| u64::from(event.weight)).sum();
        let weighted: u64 =
            self.events.iter().map(|event| u64::from(event.weight) * event.statements()).sum();
        weighted.div_ceil(weights.max(1))
    }
}

impl ScriptEvent {
    /// Statements as QPS counts them.
    pub fn statements(&self) -> u64 {
        let own: u64 = self.operations.iter().map(|operation| u64::from(operation.repeat)).sum();
        let brackets = match self.begin.len() {
            0 => 0,
            begin => begin as u64 + 1,
        };
        own + brackets
    }
}

/// A statement, how often it is executed in a row, and on which table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Operation {
    /// Statement kind for plans and logs: `point_selects`, `index_updates`.
    pub kind: String,
    /// SQL in the dialect of the target, with `{table}` where the table's number goes (`FROM
    /// sbtest{table} WHERE …`). With `fragments` it stands as it is.
    pub sql: String,
    /// Prepared once per connection, table and kind; or sent as text each time.
    pub protocol: Protocol,
    /// Values of the placeholders in order. In text protocol, `{1}`, `{2}` … in the SQL are
    /// replaced by literals: `42`, and texts with their quotes: `'0123…'`.
    pub parameters: Vec<Parameter>,
    /// Executed this many times per event with new parameters, all on one table.
    pub repeat: u32,
    /// The choice of the table, once per event.
    pub table: TableChoice,
    /// The SQL between literals, where marks in the SQL itself could be the user's own text; empty
    /// where `{1}` and `{table}` are marks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fragments: Vec<Fragment>,
    /// Sources, by number, that are drawn anew before each execution.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draws: Vec<u32>,
    /// The fewest and the most rows that it may return; any other number fails the step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<[u64; 2]>,
    /// Slots that the columns of its only row go to; empty where its rows are only counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub into: Vec<u32>,
}

impl Operation {
    /// Default values of an operation.
    pub const PLAIN: Operation = Operation {
        kind: String::new(),
        sql: String::new(),
        protocol: Protocol::Prepared,
        parameters: Vec::new(),
        repeat: 1,
        table: TableChoice::Uniform,
        fragments: Vec::new(),
        draws: Vec::new(),
        expect: None,
        into: Vec::new(),
    };
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fragment {
    /// SQL as it stands.
    Sql(String),
    /// The literal of a parameter: its number in the operation, from 0.
    Literal(u32),
}

/// The protocol of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Server-side prepared, executed by handle.
    Prepared,
    /// Literals in the SQL, the simple protocol.
    Text,
}

/// The choice of an operation's table.
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

/// The distribution of ids, keys and range starts in 1..=rows.
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
    /// A value of one of the script's sources.
    Value {
        /// Its slot: slots are numbered through all sources.
        slot: u32,
        /// True if it is a whole number or NULL, never text.
        whole: bool,
    },
}

impl Parameter {
    /// Bytes of a text parameter of fixed length; 0 for others.
    #[inline]
    pub fn text_len(self) -> usize {
        match self {
            Parameter::Digits { bytes } => bytes as usize,
            _ => 0,
        }
    }
}

// The parameters of a step as data: what its name only shows to a reader.

/// The parameters of a step that analysis needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepParameters {
    /// The purpose of the step.
    #[serde(default, skip_serializing_if = "StepPurpose::is_result")]
    pub purpose: StepPurpose,
    /// True if the step is named after parameters that only one DBMS has: other DBMSs have steps of
    /// their own instead.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_one_dbms: bool,
    /// Its own number of clients, where that of the workload does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Its own schedule, in events per second of all clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events_per_second: Option<f64>,
    /// Parameters of the benchmark alone.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub own: Map<String, Value>,
}

impl StepParameters {
    /// Parameters of a benchmark, which are fields of a structure.
    pub fn of(own: &impl Serialize) -> StepParameters {
        let own = match serde_json::to_value(own) {
            Ok(Value::Object(own)) => own,
            // A structure with names for keys always becomes an object.
            _ => Map::new(),
        };
        StepParameters { own, ..StepParameters::default() }
    }

    /// The parameters as their benchmark knows them; `None` if they are those of something else.
    pub fn read<P: DeserializeOwned>(&self) -> Option<P> {
        P::deserialize(&self.own).ok()
    }
}

/// The purpose of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepPurpose {
    /// For its own result.
    #[default]
    Result,
    /// To compare it with the same step after the writes. Group summaries leave it out.
    BeforeWrites,
    /// To warm caches. Group summaries leave it out.
    Warming,
}

impl StepPurpose {
    /// True for steps that are measured for their own result.
    pub fn is_result(&self) -> bool {
        *self == StepPurpose::Result
    }
}

// Sources of the values in a user's statements, as data: a distribution, a list, a file.

/// A source of values. It fills as many slots in a row as its `count` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValueSource {
    /// Its name, for messages.
    pub name: String,
    /// The values.
    pub values: SourceValues,
    /// The times of drawing.
    pub freshness: Freshness,
    /// Slots: how many values it draws at once.
    pub count: u32,
    /// True if the values drawn at once differ from each other.
    pub distinct: bool,
    /// Share of NULLs.
    pub nulls: f64,
}

impl ValueSource {
    /// True if all its values are whole numbers or NULL.
    pub fn is_whole(&self) -> bool {
        match &self.values {
            SourceValues::Whole { .. }
            | SourceValues::Sequential { .. }
            | SourceValues::Same { .. }
            | SourceValues::Latest { .. }
            | SourceValues::Client => true,
            SourceValues::List { whole, .. } => *whole,
            _ => false,
        }
    }
}

/// The times at which a source draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// Before the first statement of each event.
    Event,
    /// Before each execution of a statement that uses it.
    Use,
    /// Once, when the client starts.
    Client,
    /// Never: a statement of the event returns it.
    Reply,
}

/// The values that a source draws.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceValues {
    /// Whole numbers in from..=to.
    Whole {
        /// The smallest.
        from: i64,
        /// The largest.
        to: i64,
        /// The distribution.
        spread: ValueSpread,
    },
    /// Client i of c draws from + i, from + i + c, and so on.
    Sequential {
        /// The first.
        from: i64,
        /// The last.
        to: i64,
        /// True to begin again after the last, false to fail the step.
        wrap: bool,
    },
    /// One of these texts.
    List {
        /// The texts.
        texts: Vec<String>,
        /// A weight for each; empty for all alike.
        weights: Vec<f64>,
        /// True if all are whole numbers without quotes. MySQL finds a text by its index only if
        /// it is compared with a text.
        #[serde(default)]
        whole: bool,
    },
    /// A field of a CSV file with a header.
    File {
        /// The file.
        path: PathBuf,
        /// The column of the values.
        column: String,
        /// The column of the weights, if there is one.
        weight_column: Option<String>,
        /// True to take rows in order, as [`SourceValues::Sequential`] does, from the first again
        /// after the last.
        sequential: bool,
        /// Sources of one file with the same label take fields of one row.
        row: Option<String>,
    },
    /// Random characters.
    Text {
        /// The fewest.
        least: u32,
        /// The most.
        most: u32,
        /// The characters to draw from.
        alphabet: String,
    },
    /// Text in which `#` becomes a digit and `@` a letter from a to z.
    Template {
        /// The text.
        text: String,
    },
    /// Numbers with so many digits after the point.
    Decimal {
        /// The smallest.
        from: f64,
        /// The largest.
        to: f64,
        /// Digits after the point.
        digits: u32,
    },
    /// Days as `2024-02-29`.
    Date {
        /// The first, days since 1970.
        from: i64,
        /// The last.
        to: i64,
    },
    /// Moments as `2024-02-29 12:00:00`.
    Timestamp {
        /// The first, seconds since 1970.
        from: i64,
        /// The last.
        to: i64,
        /// Seconds between two of them.
        step: i64,
    },
    /// The first value of another source plus a number; whole numbers only.
    Same {
        /// The number of the other source, which is drawn before.
        of: u32,
        /// The number to add.
        plus: i64,
    },
    /// The number of the client, from 0.
    Client,
    /// A value of a sequence that is in the database, the newest most often: those that the client
    /// itself has drawn and the server has confirmed, then those before the sequence. The k-th
    /// newest with probability ∝ 1/k^exponent.
    Latest {
        /// The number of the source of the sequence, which stands before.
        of: u32,
        /// θ.
        exponent: f64,
    },
    /// A column of the row that a statement returned.
    Reply,
    /// A key that scatters its record: a prefix and a hash of the record's number, from 0.
    HashedKey {
        /// The text before the hash.
        prefix: String,
        /// The choice of records.
        records: KeyChoice,
    },
    /// This number of random printable characters of 64 kinds.
    Printable {
        /// Characters.
        bytes: u32,
    },
}

/// The choice of the records of hashed keys.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyChoice {
    /// Loaded ones, all alike.
    Uniform {
        /// Number of loaded records.
        loaded: u64,
    },
    /// Loaded ones, by the popularity of their hashed ranks.
    HashedZipfian {
        /// Number of loaded records.
        loaded: u64,
    },
    /// The newest most often: those that the client itself has inserted and the server has
    /// confirmed, then the loaded ones from the last. The k-th newest has a probability ∝
    /// 1/k^exponent.
    Latest {
        /// Number of loaded records.
        loaded: u64,
        /// The number of the source of new records; it stands before.
        inserts: u32,
        /// θ.
        exponent: f64,
    },
    /// New ones: client i of c takes from + i, from + i + c, and so on.
    New {
        /// The first.
        from: u64,
    },
}

/// The distribution of whole numbers over their range.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueSpread {
    /// Each alike.
    Uniform,
    /// Rank k with probability ∝ 1/k^exponent.
    Zipfian {
        /// θ.
        exponent: f64,
        /// True if a keyed permutation makes the value of a rank, false if rank 1 is the smallest
        /// value.
        scramble: bool,
    },
    /// A share 1 - h of the draws falls on the share h of the values, the smallest.
    Pareto {
        /// h, between 0 and 1.
        h: f64,
    },
    /// The default of sysbench 1.0.
    Special,
    /// A normal distribution, cut at so many standard deviations from the centre.
    Gaussian {
        /// The cut, at least 2.
        parameter: f64,
    },
    /// Small values first.
    Exponential {
        /// The larger, the steeper.
        parameter: f64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_written_as_far_as_they_say_something() {
        let check = |parameters: &StepParameters, expected: &str| {
            let text = serde_json::to_string(parameters).unwrap();
            assert_eq!(text, expected);
            assert_eq!(serde_json::from_str::<StepParameters>(&text).unwrap(), *parameters);
        };
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Own {
            links: u32,
        }
        check(&StepParameters::default(), "{}");
        let own = StepParameters { of_one_dbms: true, ..StepParameters::of(&Own { links: 16 }) };
        check(&own, r#"{"of_one_dbms":true,"own":{"links":16}}"#);
        assert_eq!(own.read::<Own>(), Some(Own { links: 16 }));
        assert_eq!(StepParameters::default().read::<Own>(), None);
        for (word, purpose) in
            [("before_writes", StepPurpose::BeforeWrites), ("warming", StepPurpose::Warming)]
        {
            let parameters = StepParameters { purpose, ..StepParameters::default() };
            check(&parameters, &format!("{{\"purpose\":\"{word}\"}}"));
        }
    }
}
