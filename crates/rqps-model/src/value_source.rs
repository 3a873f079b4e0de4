//! Sources of the values in a user's statements, as data: a distribution, a list, a file.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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
