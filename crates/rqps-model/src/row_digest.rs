//! Checksums of rows in bounded memory, with which two results are compared without keeping them.

use std::collections::BTreeMap;

use ring::digest;
use serde::{Deserialize, Serialize};

/// Most rows of a sample.
const SAMPLE_ROWS: usize = 20;

/// Most bytes of a value in a sample.
const VALUE_BYTES: usize = 200;

/// Most bytes of the values of a sample.
const SAMPLE_BYTES: usize = 4 << 10;

/// Most bytes of the least and the greatest value of a column.
const EDGE_BYTES: usize = 48;

/// Odd, so that no checksum of an order loses bits.
const ORDER: u128 = 0x2545_f491_4f6c_dd1d_9e37_79b9_7f4a_7c15;

/// Number and checksums of rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RowsRecord {
    /// Number of rows.
    pub rows: u64,
    /// Checksum that depends on the order.
    pub in_order: String,
    /// Checksum that does not.
    pub any_order: String,
    /// The same without numbers that have a fraction or an exponent.
    pub without_floats: String,
    /// These numbers.
    #[serde(default, skip_serializing_if = "FloatSums::is_empty")]
    pub floats: FloatSums,
    /// The rows with the smallest checksums: two results with the same rows have the same sample.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sample: Vec<SampleRow>,
    /// Names of the columns and their checksums, of tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<ColumnDigest>,
}

/// A row of a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRow {
    /// Its checksum.
    pub checksum: String,
    /// Its values, up to a length; NULL is null.
    pub values: Vec<Option<String>>,
}

/// Numbers with a fraction or an exponent, added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FloatSums {
    /// How many there are.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The sum of their absolute values.
    pub absolute: f64,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ColumnDigest {
    /// Its name.
    pub name: String,
    /// Its type, as the server spells it.
    pub kind: String,
    /// Checksum of its values in any order.
    pub any_order: String,
    /// Its numbers with a fraction or an exponent.
    #[serde(default, skip_serializing_if = "FloatSums::is_empty")]
    pub floats: FloatSums,
    /// The least value as text, up to a length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<String>,
    /// The greatest value as text, up to a length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub greatest: Option<String>,
}

impl RowsRecord {
    /// True if the sample has every row.
    pub fn is_whole(&self) -> bool {
        self.sample.len() as u64 == self.rows
    }
}

impl FloatSums {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn add(&mut self, number: f64) {
        let (sum, absolute) = (self.sum + number, self.absolute + number.abs());
        // JSON has no infinity.
        if absolute.is_finite() {
            (self.sum, self.absolute) = (sum, absolute);
        }
        self.count += 1;
    }

    /// True if the numbers may differ in their last digits only.
    pub fn is_near(&self, other: &FloatSums) -> bool {
        let scale = self.absolute.max(other.absolute);
        let apart = (self.sum - other.sum).abs().max((self.absolute - other.absolute).abs());
        self.count == other.count && apart <= NEAR * scale
    }
}

/// Relative difference of two numbers up to which only their digits differ.
const NEAR: f64 = 1e-9;

/// True if two texts are numbers that differ in their last digits only.
pub fn is_near(one: &str, other: &str) -> bool {
    match (float(one.as_bytes()), float(other.as_bytes())) {
        (None, None) => false,
        _ => match (one.parse::<f64>(), other.parse::<f64>()) {
            (Ok(one), Ok(other)) => (one - other).abs() <= NEAR * one.abs().max(other.abs()),
            _ => false,
        },
    }
}

/// The number if the text is one with a fraction or an exponent.
pub(super) fn float(text: &[u8]) -> Option<f64> {
    let is_of_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    let has_mark = text.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    if !has_mark || text.len() > 400 || !text.iter().all(is_of_number) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Adds rows up to a [`RowsRecord`], one after the other.
#[derive(Clone, Debug, Default)]
pub struct RowDigest {
    rows: u64,
    in_order: u128,
    any_order: u128,
    without_floats: u128,
    floats: FloatSums,
    sample: Vec<(u128, Vec<Option<String>>)>,
    /// By column, where columns are added up, too.
    columns: Vec<ColumnSums>,
    /// Takes the rows, where they have their sort keys.
    order: Option<Box<OrderDigest>>,
    /// The values of a row with their lengths, with and without floats.
    whole: Vec<u8>,
    rest: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
struct ColumnSums {
    name: String,
    kind: String,
    any_order: u128,
    floats: FloatSums,
    edges: Option<(Vec<u8>, Vec<u8>)>,
}

impl RowDigest {
    /// A digest of a table with these columns: names and types.
    pub fn of_columns(columns: Vec<(String, String)>) -> RowDigest {
        let sums = |(name, kind)| ColumnSums { name, kind, ..ColumnSums::default() };
        RowDigest { columns: columns.into_iter().map(sums).collect(), ..RowDigest::default() }
    }

    /// A digest of rows with their sort keys.
    pub fn of_order(order: OrderDigest) -> RowDigest {
        RowDigest { order: Some(Box::new(order)), ..RowDigest::default() }
    }

    /// What the sort keys are.
    pub fn order(&self) -> Option<&OrderDigest> {
        self.order.as_deref()
    }

    /// Adds a row.
    pub fn add<'a>(&mut self, row: impl Iterator<Item = Option<&'a [u8]>> + Clone) {
        if let Some(order) = &mut self.order {
            return order.add(row);
        }
        self.whole.clear();
        self.rest.clear();
        let mut has_floats = false;
        for (place, value) in row.clone().enumerate() {
            push(&mut self.whole, value);
            let number = value.and_then(float);
            match number {
                Some(number) => {
                    has_floats = true;
                    self.floats.add(number);
                    push(&mut self.rest, Some(b"."));
                }
                None => push(&mut self.rest, value),
            }
            if let Some(column) = self.columns.get_mut(place) {
                column.add(value, number);
            }
        }
        let checksum = checksum(&self.whole);
        let without = if has_floats { self::checksum(&self.rest) } else { checksum };
        self.rows += 1;
        self.in_order = follow(self.in_order, checksum);
        self.any_order = self.any_order.wrapping_add(checksum);
        self.without_floats = self.without_floats.wrapping_add(without);
        self.keep(checksum, row);
    }

    /// Keeps the row if its checksum is one of the smallest.
    fn keep<'a>(&mut self, checksum: u128, row: impl Iterator<Item = Option<&'a [u8]>>) {
        let place = self.sample.partition_point(|(known, _)| *known <= checksum);
        if place >= SAMPLE_ROWS {
            return;
        }
        let text = |value: &[u8]| String::from_utf8_lossy(shortened(value, VALUE_BYTES)).into();
        self.sample.insert(place, (checksum, row.map(|value| value.map(text)).collect()));
        self.sample.truncate(SAMPLE_ROWS);
    }

    /// The record of all rows so far.
    pub fn record(&self) -> RowsRecord {
        let hex = |sum: u128| format!("{sum:032x}");
        let mut left = SAMPLE_BYTES;
        let sample = self.sample.iter().map_while(|(checksum, values)| {
            let bytes: usize = values.iter().flatten().map(|value| value.len() + 8).sum();
            left = left.checked_sub(bytes)?;
            Some(SampleRow { checksum: hex(*checksum), values: values.clone() })
        });
        RowsRecord {
            rows: self.rows,
            in_order: hex(self.in_order),
            any_order: hex(self.any_order),
            without_floats: hex(self.without_floats),
            floats: self.floats,
            sample: sample.collect(),
            columns: self.columns.iter().map(ColumnSums::digest).collect(),
        }
    }
}

impl ColumnSums {
    fn add(&mut self, value: Option<&[u8]>, number: Option<f64>) {
        let mut buffer = [0; 64];
        let checksum = match value {
            Some(value) if value.len() < buffer.len() => {
                buffer[0] = 1;
                buffer[1..=value.len()].copy_from_slice(value);
                checksum(&buffer[..=value.len()])
            }
            Some(value) => checksum(value),
            None => checksum(&[]),
        };
        self.any_order = self.any_order.wrapping_add(checksum);
        if let Some(number) = number {
            self.floats.add(number);
        }
        let Some(value) = value.map(|value| shortened(value, EDGE_BYTES)) else { return };
        match &mut self.edges {
            None => self.edges = Some((value.to_vec(), value.to_vec())),
            Some((least, _)) if value < &least[..] => *least = value.to_vec(),
            Some((_, greatest)) if value > &greatest[..] => *greatest = value.to_vec(),
            Some(_) => {}
        }
    }

    fn digest(&self) -> ColumnDigest {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let edges = self.edges.as_ref();
        ColumnDigest {
            name: self.name.clone(),
            kind: self.kind.clone(),
            any_order: format!("{:032x}", self.any_order),
            floats: self.floats,
            least: edges.map(|(least, _)| text(least)),
            greatest: edges.map(|(_, greatest)| text(greatest)),
        }
    }
}

/// The checksum of what is in an order, with one more.
pub(super) fn follow(sum: u128, checksum: u128) -> u128 {
    sum.wrapping_mul(ORDER).wrapping_add(checksum)
}

/// Appends a value with its length, so that no two rows look the same.
pub(super) fn push(buffer: &mut Vec<u8>, value: Option<&[u8]>) {
    match value {
        None => buffer.extend_from_slice(&u64::MAX.to_le_bytes()),
        Some(value) => {
            buffer.extend_from_slice(&(value.len() as u64).to_le_bytes());
            buffer.extend_from_slice(value);
        }
    }
}

/// The first half of the SHA-256. A value has few bytes: generic code around each block would take
/// several times as long as the block where the compiler does not optimise.
fn checksum(bytes: &[u8]) -> u128 {
    let hash = digest::digest(&digest::SHA256, bytes);
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_ref()[..16]);
    u128::from_le_bytes(half)
}

fn shortened(value: &[u8], most: usize) -> &[u8] {
    &value[..value.len().min(most)]
}

// The sort keys of rows in bounded memory: with them, ties in another order are told apart from
// another answer.

/// Most rows whose keys are kept.
const KEPT_ROWS: usize = 100;

/// Most bytes of the keys that are kept.
const KEPT_BYTES: usize = 2 << 10;

/// Most bytes of a key.
const KEY_BYTES: usize = 100;

/// The sort keys of the rows of a statement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OrderRecord {
    /// For each key, true if it descends.
    pub descending: Vec<bool>,
    /// Whether the statement has a limit.
    pub is_limited: bool,
    /// Whether it passes over the first rows.
    pub skips: bool,
    /// Checksum of the keys in their order, without numbers that have a fraction or an exponent.
    pub in_order: String,
    /// These numbers.
    #[serde(default, skip_serializing_if = "FloatSums::is_empty")]
    pub floats: FloatSums,
    /// The keys of the first rows.
    pub keys: Vec<Vec<Option<String>>>,
    /// Checksum in any order of the rows that cannot tie with rows beyond the limit: those with
    /// other keys than the last row.
    pub inner: String,
    /// Whether the row after the last has the same keys; `None` if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_tied: Option<bool>,
}

/// Adds rows whose last values are their sort keys up to an [`OrderRecord`].
#[derive(Clone, Debug, Default)]
pub struct OrderDigest {
    record: OrderRecord,
    /// Number of rows that the statement itself returns.
    rows: u64,
    seen: u64,
    in_order: u128,
    inner: u128,
    /// Keys of the last rows, and the sum of these rows.
    last: (u128, u128),
    /// True while no row has other keys than the first.
    is_first: bool,
    /// True if the row after the last would come, too.
    sees_end: bool,
    left: usize,
    buffer: Vec<u8>,
}

/// What a checksum tells of values.
#[derive(Clone, Copy)]
enum Sum {
    /// That they may compare equal on one server.
    Equal,
    /// That they are the same on both, but for numbers with a fraction.
    Same,
}

impl OrderDigest {
    /// Of a statement that returns `rows` rows. `record` says what its order is. With `sees_end`,
    /// the row after the last would come, too.
    pub fn new(record: OrderRecord, rows: u64, sees_end: bool) -> OrderDigest {
        let (is_first, left) = (true, KEPT_BYTES);
        OrderDigest { record, rows, sees_end, is_first, left, ..OrderDigest::default() }
    }

    /// Adds a row.
    pub(super) fn add<'a>(&mut self, row: impl Iterator<Item = Option<&'a [u8]>> + Clone) {
        let columns = row.clone().count().saturating_sub(self.record.descending.len());
        let keys = self.sum(row.clone().skip(columns), Sum::Equal);
        self.seen += 1;
        if self.seen > self.rows {
            if self.seen == self.rows + 1 {
                self.record.is_tied = Some(keys == self.last.0);
            }
            return;
        }
        if self.seen > 1 && keys != self.last.0 {
            // Rows before the first may have its keys, too.
            if !(self.is_first && self.record.skips) {
                self.inner = self.inner.wrapping_add(self.last.1);
            }
            (self.is_first, self.last.1) = (false, 0);
        }
        let values = self.sum(row.clone().take(columns), Sum::Same);
        self.last = (keys, self.last.1.wrapping_add(values));
        self.in_order = follow(self.in_order, self.sum(row.clone().skip(columns), Sum::Same));
        row.clone().skip(columns).flatten().filter_map(float).for_each(|number| {
            self.record.floats.add(number);
        });
        self.keep(row.skip(columns));
    }

    fn sum<'a>(&mut self, values: impl Iterator<Item = Option<&'a [u8]>>, of: Sum) -> u128 {
        self.buffer.clear();
        for value in values {
            let number = value.and_then(float);
            match (value, number, of) {
                (_, Some(_), Sum::Same) => push(&mut self.buffer, Some(b".")),
                (_, Some(number), Sum::Equal) => {
                    push(&mut self.buffer, Some(&(number + 0.0).to_le_bytes()));
                }
                (Some(text), None, Sum::Equal) => {
                    push(&mut self.buffer, Some(&text.to_ascii_lowercase()));
                }
                (value, ..) => push(&mut self.buffer, value),
            }
        }
        checksum(&self.buffer)
    }

    fn keep<'a>(&mut self, keys: impl Iterator<Item = Option<&'a [u8]>>) {
        let is_next = self.record.keys.len() as u64 + 1 == self.seen;
        if !is_next || self.record.keys.len() >= KEPT_ROWS {
            return;
        }
        let text = |key: &[u8]| String::from_utf8_lossy(shortened(key, KEY_BYTES)).into_owned();
        let keys: Vec<Option<String>> = keys.map(|key| key.map(text)).collect();
        let bytes: usize = keys.iter().flatten().map(|key| key.len() + 4).sum();
        if let Some(left) = self.left.checked_sub(bytes) {
            self.left = left;
            self.record.keys.push(keys);
        }
    }

    /// The record of all rows; `None` if there are fewer than the statement itself returned.
    pub fn record(&self) -> Option<OrderRecord> {
        let hex = |sum: u128| format!("{sum:032x}");
        let whole = OrderRecord {
            in_order: hex(self.in_order),
            inner: hex(self.inner),
            is_tied: if self.record.skips {
                None
            } else {
                self.record.is_tied.or(self.sees_end.then_some(false))
            },
            ..self.record.clone()
        };
        (self.seen >= self.rows).then_some(whole)
    }
}

// The answers of one target to the first executions of the statements of a step, and what its
// tables hold after a load: facts by which targets are compared before their speed is.

/// The answers to the first events of a step, with the same values on every target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepAnswers {
    /// In the order of the statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<StatementAnswer>,
    /// The texts of the statements, also of those that write and so were not executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<String>,
    /// The reason for which there are not more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The answer to one statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatementAnswer {
    /// Its text: the place in [`StepAnswers::statements`].
    pub statement: u32,
    /// The values of its placeholders, up to a length; NULL is null.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Option<String>>,
    /// What came back.
    pub reply: AnswerReply,
    /// The plan with the work that it did, of a fast statement on Postgres (EXPLAIN (ANALYZE,
    /// BUFFERS)) and SQLite, after the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// What SQLite counted of it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub work: BTreeMap<String, u64>,
}

impl From<AnswerReply> for StatementAnswer {
    /// The answer to the first statement, which has no values.
    fn from(reply: AnswerReply) -> StatementAnswer {
        let (values, work) = (Vec::new(), BTreeMap::new());
        StatementAnswer { statement: 0, values, reply, plan: None, work }
    }
}

/// What a server replied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerReply {
    /// Rows.
    Rows {
        /// Their number and checksums.
        #[serde(flatten)]
        rows: RowsRecord,
        /// Whether a second execution gave the same rows; `None` if there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeats: Option<bool>,
        /// Their sort keys, where the statement orders them by some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order: Option<Box<OrderRecord>>,
        /// Warnings and notices, up to a number: kind and code, a colon, the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// An error.
    Refused {
        /// SQLSTATE, or the code of the DBMS where it has none.
        code: String,
        /// Its message, up to a length.
        message: String,
    },
}

/// A table after a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Its name, with the schema where that is not the usual one.
    pub name: String,
    /// Rows; `None` if they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The content; `None` if only rows were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RowsRecord>,
    /// The reason for which something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(rows: &[&[Option<&str>]]) -> RowsRecord {
        let mut digest = RowDigest::default();
        for row in rows {
            digest.add(row.iter().map(|value| value.map(str::as_bytes)));
        }
        digest.record()
    }

    #[test]
    fn checksums_tell_rows_order_and_digits_apart() {
        let one: &[Option<&str>] = &[Some("1"), Some("2.5"), None];
        let two: &[Option<&str>] = &[Some("2"), Some("1e3"), Some("")];
        let (there, back) = (record(&[one, two]), record(&[two, one]));
        assert_ne!(there.in_order, back.in_order);
        assert_eq!(there.any_order, back.any_order);
        assert_eq!(there.sample, back.sample);
        let digits: &[Option<&str>] = &[Some("1"), Some("2.5000000000001"), None];
        let near = record(&[digits, two]);
        assert_ne!(near.any_order, there.any_order);
        assert_eq!(near.without_floats, there.without_floats);
        assert!(near.floats.is_near(&there.floats));
        let far = record(&[&[Some("1"), Some("2.6"), None], two]);
        assert_eq!(far.without_floats, there.without_floats);
        assert!(!far.floats.is_near(&there.floats));
        let null = record(&[&[Some("1"), Some("2.5"), Some("")], two]);
        assert_ne!(null.without_floats, there.without_floats);
        let moved = record(&[&[Some("12"), Some("")], &[Some("1"), Some("2")]]);
        assert_ne!(
            moved.any_order,
            record(&[&[Some("1"), Some("2")], &[Some(""), None]]).any_order
        );
    }

    #[test]
    fn a_sample_is_bounded_and_the_same_in_any_order() {
        let texts: Vec<String> = (0..100_000).map(|number| format!("{number:0300}")).collect();
        let of = |texts: &mut dyn Iterator<Item = &String>| {
            let mut digest = RowDigest::default();
            texts.for_each(|text| digest.add([Some(text.as_bytes())].into_iter()));
            digest.record()
        };
        let there = of(&mut texts.iter());
        assert_eq!(there.sample, of(&mut texts.iter().rev()).sample);
        assert!(!there.sample.is_empty() && there.sample.len() <= SAMPLE_ROWS && !there.is_whole());
        let first = there.sample[0].values[0].as_deref().unwrap_or_default();
        assert_eq!(first.len(), VALUE_BYTES);
    }

    #[test]
    fn columns_of_tables_have_checksums_and_edges() {
        let columns = vec![("a".to_owned(), "int".to_owned()), ("b".to_owned(), "text".to_owned())];
        let mut digest = RowDigest::of_columns(columns);
        for (a, b) in [("2", None), ("1", Some(&b"x"[..])), ("3", None)] {
            digest.add([Some(a.as_bytes()), b].into_iter());
        }
        let found = digest.record().columns;
        let edges = (found[0].least.as_deref(), found[0].greatest.as_deref());
        assert_eq!((found[0].name.as_str(), edges), ("a", (Some("1"), Some("3"))));
        assert_eq!(found[1].least.as_deref(), Some("x"));
        assert_ne!(found[0].any_order, found[1].any_order);
    }

    #[test]
    fn only_numbers_with_a_fraction_have_digits() {
        let check = |one: &str, other: &str, near: bool| assert_eq!(is_near(one, other), near);
        check("0.1", "0.10000000000000001", true);
        check("1.50", "1.5", true);
        check("3", "3.0000000000001", true);
        check("1", "1", false);
        check("0.1", "0.2", false);
        check("a.b", "a.b", false);
        check("1e400", "1e400", false);
        check("192.168.1.1", "192.168.1.1", false);
    }
}

#[cfg(test)]
mod order_digest_tests {
    use super::{RowDigest, *};

    fn record(rows: &[(&str, &str)], of_statement: u64, skips: bool) -> OrderRecord {
        let order = OrderRecord { descending: vec![false], skips, ..OrderRecord::default() };
        let mut digest = RowDigest::of_order(OrderDigest::new(order, of_statement, true));
        for (value, key) in rows {
            digest.add([Some(value.as_bytes()), Some(key.as_bytes())].into_iter());
        }
        digest.order().unwrap().record().unwrap()
    }

    #[test]
    fn only_rows_with_the_keys_of_the_last_may_be_ties() {
        let one = record(&[("a", "1"), ("b", "2"), ("c", "2"), ("d", "2")], 3, false);
        let tie = record(&[("a", "1"), ("d", "2"), ("b", "2"), ("c", "2")], 3, false);
        assert_eq!(one, tie);
        assert_eq!((one.is_tied, one.keys.len()), (Some(true), 3));
        let other = record(&[("x", "1"), ("b", "2"), ("c", "2"), ("d", "2")], 3, false);
        assert_eq!((&other.in_order, other.inner == one.inner), (&one.in_order, false));
        let float = record(&[("a", "0.5"), ("b", "1.5"), ("c", "2.5")], 2, false);
        assert_eq!(float.is_tied, Some(false));
        let total = record(&[("a", "1"), ("b", "2"), ("c", "3")], 2, false);
        assert_eq!(total.is_tied, Some(false));
        assert_ne!(total.in_order, one.in_order);
    }

    #[test]
    fn after_an_offset_the_first_rows_may_be_ties_too() {
        let one = record(&[("a", "1"), ("b", "2"), ("c", "3")], 3, true);
        let other = record(&[("x", "1"), ("b", "2"), ("y", "3")], 3, true);
        assert_eq!((one.is_tied, &one.inner), (None, &other.inner));
        let middle = record(&[("a", "1"), ("x", "2"), ("c", "3")], 3, true);
        assert_ne!(one.inner, middle.inner);
    }
}
