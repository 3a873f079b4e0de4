//! The event of a vector client: sends one query that is already encoded, and reads its row numbers
//! into existing memory.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use crate::data::VectorSet;
use crate::data::truth::Truth;
use rqps_driver::attempt::{ClientEvent, StatementError, Tally};
use rqps_driver::clock::{Clock, SECOND};
use rqps_driver::connection::Connection;
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::vector::Variant;
use rqps_wire::{Prepared, Value};

/// The encoded queries.
pub(crate) struct Encoded {
    pub(crate) bytes: Vec<u8>,
    /// Bytes per query.
    pub(crate) stride: usize,
    /// The value in each query's filter, if there is a filter.
    pub(crate) filters: Option<Vec<i64>>,
}

impl Encoded {
    /// Number of queries.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len().checked_div(self.stride).unwrap_or(0)
    }

    #[inline]
    fn query(&self, index: usize) -> &[u8] {
        &self.bytes[index * self.stride..][..self.stride]
    }

    /// Sends query `index` and reads its neighbours.
    #[inline]
    pub(crate) fn ask(
        &self,
        index: usize,
        statement: Prepared,
        session: &mut Connection,
        ids: &mut Vec<u32>,
    ) -> Result<rqps_wire::Reply, rqps_wire::WireError> {
        let vector = Value::Bytes(self.query(index));
        match &self.filters {
            None => session.execute_ids(statement, &[vector], ids),
            Some(filters) => {
                // The filter stands before the distance in the statement.
                session.execute_ids(statement, &[Value::Int(filters[index]), vector], ids)
            }
        }
    }
}

/// The answers of one client with their times, for recall that depends on the rows at the time.
#[derive(Default)]
pub(crate) struct AnswerLog {
    /// Query, start and end; nanoseconds on the clients' clock.
    pub(crate) asked: Vec<(u32, u64, u64)>,
    /// k row numbers per query; `u32::MAX` for a missing row.
    pub(crate) ids: Vec<u32>,
}

/// Keeps answers while there is room, and hands them over at the end.
pub(crate) struct Logging {
    log: AnswerLog,
    k: usize,
    clock: Clock,
    hand_over: Sender<AnswerLog>,
}

impl Logging {
    /// With room for `answers` of `k` rows.
    pub(crate) fn new(
        answers: usize,
        k: usize,
        clock: Clock,
        hand_over: Sender<AnswerLog>,
    ) -> Logging {
        let log =
            AnswerLog { asked: Vec::with_capacity(answers), ids: Vec::with_capacity(answers * k) };
        Logging { log, k, clock, hand_over }
    }

    fn keep(&mut self, query: usize, start: u64, ids: &[u32]) {
        if self.log.asked.len() == self.log.asked.capacity() {
            return;
        }
        self.log.asked.push((query as u32, start, self.clock.now()));
        self.log.ids.extend((0..self.k).map(|place| ids.get(place).copied().unwrap_or(u32::MAX)));
    }
}

impl Drop for Logging {
    fn drop(&mut self) {
        // If the step failed, nobody receives it.
        let _ = self.hand_over.send(std::mem::take(&mut self.log));
    }
}

/// One client's queries in its own order, repeatedly.
pub(crate) struct Searcher {
    statement: Prepared,
    queries: Arc<Encoded>,
    order: Vec<u32>,
    next: usize,
    ids: Vec<u32>,
    logging: Option<Logging>,
}

impl Searcher {
    /// `statement` must be prepared on the session of each attempt.
    pub(crate) fn new(
        statement: Prepared,
        queries: Arc<Encoded>,
        seed: u64,
        client: u32,
        k: usize,
    ) -> Searcher {
        let order = shuffled(queries.len(), Rng::stream(seed, "vector.order", client.into()));
        Searcher { statement, queries, order, next: 0, ids: Vec::with_capacity(k), logging: None }
    }

    /// Also keeps answers.
    pub(crate) fn logging(self, logging: Logging) -> Searcher {
        Searcher { logging: Some(logging), ..self }
    }
}

impl ClientEvent for Searcher {
    /// Runs one query.
    #[inline]
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        let query = self.order[self.next] as usize;
        self.next = if self.next + 1 == self.order.len() { 0 } else { self.next + 1 };
        let start = self.logging.as_ref().map_or(0, |logging| logging.clock.now());
        match self.queries.ask(query, self.statement, session, &mut self.ids) {
            Ok(reply) => {
                tally.count(reply);
                if let Some(logging) = &mut self.logging {
                    logging.keep(query, start, &self.ids);
                }
                Ok(())
            }
            Err(error) => Err(StatementError { kind: "the vector query".to_owned(), error }),
        }
    }
}

/// 0..count in random order (Fisher and Yates).
pub(crate) fn shuffled(count: usize, mut rng: Rng) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    for last in (1..count).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

/// Converts nanoseconds to seconds.
pub(crate) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / SECOND
}

// Scores answers: recall by distance and by row number.

/// Distance beyond the true k-th within which a row is a hit: the rule of ann-benchmarks.
pub(crate) const SLACK: f64 = 1e-3;

/// The score of answers to a set of queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Score {
    /// Mean share of the k rows that are as near as the true k-th.
    pub recall: f64,
    /// Mean share of the k rows that are true neighbours.
    pub recall_ids: f64,
    /// Standard deviation of `recall` over the queries.
    pub deviation: f64,
    /// Mean number of returned rows / k.
    pub rows_per_k: f64,
    /// Queries whose answer repeats a row.
    pub duplicates: usize,
    /// Number of queries.
    pub queries: usize,
}

/// Scores one answer per query: `k` row numbers, `u32::MAX` for a missing row.
pub(crate) fn score(data: &VectorSet, truth: &Truth, answers: &[u32]) -> Score {
    let k = truth.k;
    let (mut query, mut row) = (vec![0.0; data.train.dims], vec![0.0; data.train.dims]);
    let (mut sum, mut squares, mut by_id, mut returned) = (0.0, 0.0, 0usize, 0usize);
    let mut score = Score { queries: answers.len() / k, ..Score::default() };
    for (index, answer) in answers.chunks(k).enumerate() {
        data.test.copy_row(index, &mut query);
        let limit = truth.threshold(index) + SLACK;
        let mut hits = 0;
        for (place, id) in answer.iter().enumerate().filter(|(_, id)| **id != u32::MAX) {
            if answer[..place].contains(id) {
                // A repeated row counts once.
                score.duplicates += 1;
                continue;
            }
            returned += 1;
            if (*id as usize) < data.train.rows() {
                data.train.copy_row(*id as usize, &mut row);
                hits += usize::from(data.distance.between(&query, &row) <= limit);
            }
            by_id += usize::from(truth.ids_of(index).contains(id));
        }
        let recall = hits as f64 / k as f64;
        sum += recall;
        squares += recall * recall;
    }
    let queries = score.queries.max(1) as f64;
    score.recall = sum / queries;
    score.deviation = (squares / queries - score.recall * score.recall).max(0.0).sqrt();
    score.recall_ids = by_id as f64 / (queries * k as f64);
    score.rows_per_k = returned as f64 / (queries * k as f64);
    score
}

// Encodes vectors in the binary forms of pgvector and MariaDB.

/// A binary form of vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// pgvector's `vector`: number of dimensions and a zero, 16 bits each, then single precision;
    /// all big-endian.
    Vector,
    /// pgvector's `halfvec`: the same with half precision.
    Halfvec,
    /// MariaDB: only single precision values, little-endian.
    Plain,
}

impl Encoding {
    /// The form of a query's parameter.
    pub fn of_query(dialect: Dialect, variant: Variant) -> Encoding {
        match (dialect, variant) {
            (Dialect::Mysql, _) => Encoding::Plain,
            (_, Variant::Halfvec | Variant::HalfvecColumn) => Encoding::Halfvec,
            // Rows are ranked again in single precision.
            (_, Variant::Vector | Variant::HalfvecRerank | Variant::Bit) => Encoding::Vector,
        }
    }

    /// The form of a row.
    pub fn of_row(dialect: Dialect, variant: Variant) -> Encoding {
        match (dialect, variant) {
            (Dialect::Mysql, _) => Encoding::Plain,
            (_, Variant::HalfvecColumn) => Encoding::Halfvec,
            _ => Encoding::Vector,
        }
    }

    /// Bytes of a vector with `dims` dimensions.
    pub fn size(self, dims: usize) -> usize {
        match self {
            Encoding::Vector => 4 + 4 * dims,
            Encoding::Halfvec => 4 + 2 * dims,
            Encoding::Plain => 4 * dims,
        }
    }

    /// Appends a vector. Allocates nothing if `out` has room.
    pub fn push(self, values: &[f32], out: &mut Vec<u8>) {
        if self != Encoding::Plain {
            out.extend_from_slice(&(values.len() as u16).to_be_bytes());
            out.extend_from_slice(&[0, 0]);
        }
        match self {
            Encoding::Vector => append(out, values, f32::to_be_bytes),
            Encoding::Halfvec => append(out, values, |value| half(value).to_be_bytes()),
            Encoding::Plain => append(out, values, f32::to_le_bytes),
        }
    }
}

/// Appends all values after reserving room once, so that the loop has no check per value.
fn append<const N: usize>(out: &mut Vec<u8>, values: &[f32], bytes: impl Fn(f32) -> [u8; N]) {
    let start = out.len();
    out.resize(start + N * values.len(), 0);
    for (place, value) in out[start..].as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *place = bytes(*value);
    }
}

/// The nearest half-precision number (IEEE 754 binary16), ties to even, as bits. It computes all
/// cases and selects one, so that the compiler can convert many values at once.
#[inline]
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    // 13 bits are lost: more than half of them rounds up, exactly half to even.
    let rounded = magnitude.wrapping_add(0xfff + ((magnitude >> 13) & 1));
    let normal = rounded.wrapping_sub(0x3800_0000) >> 13;
    // Below 2^-14, numbers are multiples of 2^-24; adding 0.5 rounds to these.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let finite = if magnitude < 0x3880_0000 { small } else { normal };
    // 65520 and more round to infinity.
    let result = if magnitude >= 0x477f_f000 { special } else { finite };
    (sign | result) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Matrix;
    use crate::data::truth::exact;
    use rqps_model::vector::Distance;

    #[test]
    fn an_order_holds_everything_once() {
        let order = shuffled(1000, Rng::new(5));
        assert_ne!(order, (0..1000).collect::<Vec<u32>>());
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<u32>>());
        assert_eq!(order, shuffled(1000, Rng::new(5)), "one seed, one order");
        assert!(shuffled(0, Rng::new(5)).is_empty());
    }

    #[test]
    fn a_log_keeps_what_it_has_room_for_and_hands_it_over() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut logging = Logging::new(2, 3, Clock::real(), sender);
        for query in 0..5 {
            logging.keep(query, 0, &[7, 8]);
        }
        drop(logging);
        let log = receiver.recv().unwrap();
        assert_eq!(log.ids, [7, 8, u32::MAX, 7, 8, u32::MAX]);
        assert_eq!(log.asked.iter().map(|asked| asked.0).collect::<Vec<_>>(), [0, 1]);
    }

    /// Rows 0, 1, 2, 2, 3 on a line, queried from 0.
    fn scene() -> (VectorSet, Truth) {
        let train = Matrix::of_floats(1, vec![0.0, 1.0, 2.0, 2.0, 3.0]);
        let test = Matrix::of_floats(1, vec![0.0, 0.0]);
        let data = VectorSet::new("line".to_owned(), train, test, Distance::Euclidean);
        let truth = exact(&data.train, &data.test, data.distance, None, 3, 1);
        (data, truth)
    }

    #[test]
    fn a_tie_with_the_last_counts_by_distance_and_not_by_number() {
        let (data, truth) = scene();
        assert_eq!(truth.ids_of(0), [0, 1, 2]);
        let score = score(&data, &truth, &[0, 1, 2, 0, 1, 3]);
        assert_eq!((score.recall, score.rows_per_k), (1.0, 1.0));
        assert!((score.recall_ids - 5.0 / 6.0).abs() < 1e-12);
        assert_eq!(score.deviation, 0.0);
    }

    #[test]
    fn missing_foreign_and_repeated_rows_are_misses() {
        let (data, truth) = scene();
        let score = score(&data, &truth, &[0, u32::MAX, u32::MAX, 0, 0, 4]);
        assert!((score.recall - 1.0 / 3.0).abs() < 1e-12, "{score:?}");
        assert!((score.rows_per_k - 0.5).abs() < 1e-12, "{score:?}");
        assert_eq!(score.duplicates, 1);
        assert_eq!(super::score(&data, &truth, &[99; 6]).recall, 0.0, "rows that do not exist");
    }

    #[test]
    fn forms_are_those_of_the_servers() {
        let check = |form: Encoding, expected: &[u8]| {
            let mut out = Vec::new();
            form.push(&[1.0, -2.5], &mut out);
            assert_eq!(out, expected);
            assert_eq!(out.len(), form.size(2));
        };
        check(Encoding::Vector, &[0, 2, 0, 0, 0x3f, 0x80, 0, 0, 0xc0, 0x20, 0, 0]);
        check(Encoding::Halfvec, &[0, 2, 0, 0, 0x3c, 0, 0xc1, 0]);
        check(Encoding::Plain, &[0, 0, 0x80, 0x3f, 0, 0, 0x20, 0xc0]);
    }

    #[test]
    fn half_precision_rounds_to_nearest_even() {
        // Values from numpy.float16.
        for (value, bits) in [
            (0.0, 0x0000),
            (-0.0, 0x8000),
            (1.0, 0x3c00),
            (255.0, 0x5bf8),
            (0.1, 0x2e66),
            (-1.0 / 3.0, 0xb555),
            (2049.0, 0x6800),
            (2051.0, 0x6802),
            (65504.0, 0x7bff),
            (65519.0, 0x7bff),
            (65520.0, 0x7c00),
            (1e30, 0x7c00),
            (5.960_464_5e-8, 0x0001),
            (2.980_232_2e-8, 0x0000),
            (8.940_697e-8, 0x0002),
            (6.097_555e-5, 0x03ff),
            (6.103_515_6e-5, 0x0400),
            (f32::INFINITY, 0x7c00),
            (f32::NAN, 0x7e00),
        ] {
            assert_eq!(half(value), bits, "{value}");
        }
    }
}
