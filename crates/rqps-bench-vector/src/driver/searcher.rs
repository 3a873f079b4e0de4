//! The event of a vector client: sends one query that is already encoded, and reads its row numbers
//! into existing memory.

use std::sync::Arc;
use std::sync::mpsc::Sender;

use rqps_driver::attempt::{ClientEvent, StatementError, Tally};
use rqps_driver::clock::Clock;
use rqps_driver::clock::SECOND;
use rqps_driver::connection::Connection;
use rqps_model::datagen::rng::Rng;
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let clock =
            Clock::Real(rqps_host::clock::RealClock::starting_at(std::time::Instant::now()));
        let mut logging = Logging::new(2, 3, clock, sender);
        for query in 0..5 {
            logging.keep(query, 0, &[7, 8]);
        }
        drop(logging);
        let log = receiver.recv().unwrap();
        assert_eq!(log.ids, [7, 8, u32::MAX, 7, 8, u32::MAX]);
        assert_eq!(log.asked.iter().map(|asked| asked.0).collect::<Vec<_>>(), [0, 1]);
    }
}
