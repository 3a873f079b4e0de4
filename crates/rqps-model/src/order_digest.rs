//! The sort keys of rows in bounded memory: with them, ties in another order are told apart from
//! another answer.

use serde::{Deserialize, Serialize};

use crate::row_digest::{FloatSums, checksum, float, follow, push, shortened};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_digest::RowDigest;

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
