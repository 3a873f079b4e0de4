//! The loop of one client: next event after the reply (closed), or on a schedule (open).
//!
//! Per event it reads the clock once, allocates nothing, takes no lock and writes only memory of
//! its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::attempt::{AfterError, ClientEvent, ClientStop, Pulse, StatementError, Tally};
use crate::clock::{ArrivalSchedule, Clock, Window};
use crate::connection::{Connection, failed_statement};
use crate::recorder::Recorder;
use crate::turns::TurnMember;
use rqps_model::benchmark::Pace;
use rqps_model::dialect::Dialect;
use rqps_wire::WireError;

/// The code of errors that a client counts itself.
const OWN_ERRORS: &str = "script";

/// One client: its session, its events and its counts.
pub struct Client<E> {
    session: Connection,
    event: E,
    clock: Clock,
    dialect: Dialect,
    schedule: Option<ArrivalSchedule>,
    recorder: Arc<Recorder>,
    /// The server thread of the session, if known.
    serving: Option<u32>,
    /// The counter that a watch looks at, if events may never end.
    pulse: Option<Pulse>,
    /// The event that ended after the limit of the last call, to be counted in the next.
    pending: Option<CompletedEvent>,
    /// The end of the last event, where the next one begins under a closed pace.
    last_end: u64,
    window: Option<Window>,
    counts: Counts,
}

/// Counts of one client in the window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Events that ended in the window.
    pub events: u64,
    /// The sum of their statements.
    pub tally: Tally,
    /// Failed statements by their error code.
    pub errors: BTreeMap<String, u64>,
    /// The divisor of the events, nanoseconds.
    pub window_ns: u64,
    /// True if no event ended in the window, so the one in flight counts over its own time.
    pub stretched: bool,
    /// True if the client wanted no more events before the end.
    pub stopped: bool,
    /// Under an open pace: events whose intended start lies in the window.
    pub due: u64,
    /// Under an open pace: largest delay behind the schedule, nanoseconds.
    pub behind_ns: u64,
    /// Statements of the warm-up and of events that do not count.
    pub outside: u64,
}

/// An event that was carried out.
struct CompletedEvent {
    intended: u64,
    start: u64,
    end: u64,
    tally: Tally,
    /// False if the window ended before a retry succeeded.
    complete: bool,
}

impl<E: ClientEvent> Client<E> {
    /// A client whose session is set up and whose statements are prepared.
    pub fn new(
        session: Connection,
        event: E,
        clock: Clock,
        dialect: Dialect,
        recorder: Arc<Recorder>,
    ) -> Client<E> {
        Client {
            session,
            event,
            clock,
            dialect,
            schedule: None,
            recorder,
            serving: None,
            pulse: None,
            pending: None,
            last_end: 0,
            window: None,
            counts: Counts::default(),
        }
    }

    /// Sets the pace: client `index` of `clients` takes its share of an open rate.
    pub fn set_pace(&mut self, pace: Pace, seed: u64, index: u32, clients: u32) {
        self.schedule = ArrivalSchedule::of(pace, seed, index, clients);
    }

    /// Sets the server thread that serves the session.
    pub fn set_serving(&mut self, thread: Option<u32>) {
        self.serving = thread;
    }

    /// Sets the counter of events that began or ended, for a watch.
    pub fn set_pulse(&mut self, pulse: Option<Pulse>) {
        self.pulse = pulse;
    }

    /// The client's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Sends `count` small statements, one at a time.
    pub fn ping(&mut self, count: u32) -> Result<(), String> {
        self.session.ping(count)
    }

    /// Runs events until `end` without counting them. Errors are complete messages, here and below.
    pub fn warm_up(&mut self, end: u64) -> Result<(), String> {
        self.last_end = self.clock.now();
        if let Some(schedule) = &mut self.schedule {
            schedule.restart(self.last_end);
        }
        self.run_until(end, end)
    }

    /// Opens the window. An event in flight from the warm-up counts if it ends inside, except when
    /// only whole events count, and under an open pace, whose schedule starts anew without a queue.
    pub fn open_window(&mut self, window: Window) {
        if self.schedule.is_some() || window.whole_events {
            if let Some(event) = self.pending.take() {
                self.counts.outside += event.tally.statements;
            }
            self.last_end = self.clock.wait_until(window.start).max(self.last_end);
        }
        if let Some(schedule) = &mut self.schedule {
            schedule.restart(window.start);
        }
        self.window = Some(window);
    }

    /// Runs until no further event can end by `limit`, the end of the window or an earlier moment.
    pub fn run_to(&mut self, limit: u64) -> Result<(), String> {
        let stop = self.window.map_or(limit, |window| window.end);
        self.run_until(limit, stop)
    }

    /// Runs `count` events without pauses, counted if a window is open.
    pub fn run_events(&mut self, count: u64) -> Result<(), String> {
        self.last_end = self.clock.now();
        for done in 0..count {
            let event = self.next_event(u64::MAX)?;
            if self.event.stopped().is_some() {
                return Err(format!("failed to carry out {count} events: it stopped after {done}"));
            }
            self.record(&event);
        }
        Ok(())
    }

    /// Runs `count` events in a window of their own and returns its counts. Each statement waits
    /// until the server sleeps.
    pub fn count_events(&mut self, count: u64) -> Result<Counts, String> {
        self.session.set_lull(self.serving);
        let start = self.clock.now();
        self.open_window(Window { start, end: u64::MAX, whole_events: true });
        self.run_events(count)?;
        let window_ns = self.last_end.saturating_sub(start);
        Ok(Counts { window_ns, ..self.close_window() })
    }

    /// Cleans up after the last event.
    pub fn finish(&mut self) -> Result<(), String> {
        self.event.finish(&mut self.session)
    }

    /// Closes the window and returns its counts.
    pub fn close_window(&mut self) -> Counts {
        let Some(window) = self.window else { return Counts::default() };
        let mut length = match self.event.stopped() {
            Some(ClientStop::Together) => self.last_end.saturating_sub(window.start).max(1),
            _ => window.end - window.start,
        };
        if let Some(event) = self.pending.take() {
            if window.whole_events && event.complete {
                length = event.end - window.start;
                self.record(&event);
            } else if event.complete && self.counts.events == 0 && self.schedule.is_none() {
                length = event.end - event.start;
                self.counts.stretched = true;
                self.record(&event);
            } else {
                self.counts.outside += event.tally.statements;
            }
        }
        self.counts.window_ns = length;
        self.counts.stopped = self.event.stopped() == Some(ClientStop::Alone);
        self.count_backlog(window.end);
        self.window = None;
        std::mem::take(&mut self.counts)
    }

    /// Counts the events that were due and had no turn.
    fn count_backlog(&mut self, end: u64) {
        let Some(schedule) = &mut self.schedule else { return };
        let (due, behind_ns) = schedule.backlog(end);
        self.counts.due += due;
        self.counts.behind_ns = self.counts.behind_ns.max(behind_ns);
    }

    /// Runs events and records those that end by `limit`; keeps a later one for the next call.
    /// After `stop`, a failed event is not repeated.
    fn run_until(&mut self, limit: u64, stop: u64) -> Result<(), String> {
        if let Some(event) = self.pending.take() {
            if event.end > limit {
                self.pending = Some(event);
                return Ok(());
            }
            self.record(&event);
        }
        loop {
            match self.event.stopped() {
                None => {}
                Some(ClientStop::Alone) => {
                    self.last_end = self.clock.wait_until(limit);
                    return Ok(());
                }
                Some(ClientStop::Together) => return Ok(()),
            }
            if let Some(schedule) = &self.schedule
                && schedule.next_time() > limit
            {
                return Ok(());
            }
            let event = self.next_event(stop)?;
            if event.end > limit {
                self.pending = Some(event);
                return Ok(());
            }
            self.record(&event);
        }
    }

    #[inline]
    fn next_event(&mut self, stop: u64) -> Result<CompletedEvent, String> {
        let mut start = self.last_end;
        let mut intended = start;
        if let Some(schedule) = &mut self.schedule {
            intended = schedule.take();
            if intended > start {
                start = self.clock.wait_until(intended);
            }
            if self.window.is_some() {
                self.counts.due += 1;
                self.counts.behind_ns = self.counts.behind_ns.max(start - intended);
            }
        } else {
            let wait = self.event.wait_ns();
            if wait > 0 {
                start = self.clock.wait_until(start.saturating_add(wait).min(stop));
                intended = start;
                if start >= stop {
                    let tally = Tally::default();
                    let end = start.saturating_add(1);
                    return Ok(CompletedEvent { intended, start, end, tally, complete: false });
                }
            }
        }
        let mut tally = Tally::default();
        let mut complete = true;
        self.pulse.as_ref().inspect(|pulse| pulse.beat());
        while let Err(failure) = self.event.attempt(&mut self.session, &mut tally) {
            if !self.may_retry(failure, stop)? {
                complete = false;
                break;
            }
        }
        self.pulse.as_ref().inspect(|pulse| pulse.beat());
        complete &= self.event.stopped().is_none();
        let end = self.clock.now();
        self.last_end = end;
        Ok(CompletedEvent { intended, start, end, tally, complete })
    }

    #[inline]
    fn record(&mut self, event: &CompletedEvent) {
        if self.window.is_none() || !event.complete {
            self.counts.outside += event.tally.statements;
            return;
        }
        self.counts.events += 1;
        self.counts.tally.add(&event.tally);
        self.event.recorded(event.end - event.intended);
        match self.event.own_errors() {
            0 => {}
            own => *self.counts.errors.entry(OWN_ERRORS.to_owned()).or_insert(0) += own,
        }
        self.recorder.event(
            event.end - event.intended,
            event.end - event.start,
            self.counts.tally.statements,
        );
    }

    /// Counts the error and rolls back. False if the time is over.
    #[cold]
    fn may_retry(&mut self, failure: StatementError, stop: u64) -> Result<bool, String> {
        let StatementError { kind, error } = failure;
        let fatal = || Err(failed_statement(&kind, &error));
        let WireError::Server { code, .. } = &error else { return fatal() };
        let after = match self.event.after_error(code) {
            None if self.dialect.retries(code) => AfterError::Repeat,
            None => return fatal(),
            Some(AfterError::Fail) => return fatal(),
            Some(after) => after,
        };
        let code = code.clone();
        let now = self.clock.now();
        if self.window.is_some_and(|window| now <= window.end || window.whole_events) {
            *self.counts.errors.entry(code).or_insert(0) += 1;
            self.recorder.error();
        }
        if self.event.is_transaction() {
            self.roll_back()?;
        }
        if after == AfterError::GiveUp {
            self.event.give_up();
        }
        Ok(now < stop && after == AfterError::Repeat)
    }

    /// Rolls back without counting it. There may be no transaction: a deadlock ends it on MySQL,
    /// and some errors do on SQLite.
    fn roll_back(&mut self) -> Result<(), String> {
        match self.session.simple("ROLLBACK") {
            Ok(_) | Err(WireError::Server { .. }) => Ok(()),
            Err(error) => Err(format!("failed to roll back: {error}")),
        }
    }
}

impl<E: ClientEvent> TurnMember for Client<E> {
    type Counts = Counts;

    fn turn(&mut self, until: u64) -> Result<(u64, u64), String> {
        self.last_end = self.clock.now();
        let mut events = 0;
        loop {
            if self.event.stopped().is_some() {
                return Ok((self.clock.wait_until(until), events));
            }
            let event = self.next_event(until)?;
            self.record(&event);
            events += u64::from(event.complete);
            if event.end >= until {
                return Ok((event.end, events));
            }
        }
    }

    fn open_window(&mut self, start: u64) {
        Client::open_window(self, Window { start, end: u64::MAX, whole_events: true });
    }

    fn close_window(&mut self) -> Counts {
        Client::close_window(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::fake::{Fake, Fault};
    use crate::recorder::Snapshot;
    use crate::script::sources::SharedSources;
    use crate::script::{Program, ScriptData};
    use rqps_model::script::{Distribution, Operation, Parameter, Protocol, Script, TableChoice};

    const MS: u64 = 1_000_000;

    struct Fixture {
        client: Client<Program>,
        recorder: Arc<Recorder>,
        log: Arc<Mutex<Vec<String>>>,
    }

    fn script(transaction: bool) -> Script {
        let operation = |kind: &str, sql: &str, parameters: Vec<Parameter>| Operation {
            kind: kind.to_owned(),
            sql: sql.to_owned(),
            parameters,
            ..Operation::PLAIN
        };
        Script::of(
            transaction,
            vec![
                operation("read", "SELECT c FROM t{table} WHERE id = ?", vec![Parameter::Id]),
                Operation {
                    protocol: Protocol::Text,
                    table: TableChoice::SameAsPrevious,
                    ..operation(
                        "write",
                        "UPDATE t{table} SET c = {2}, k = {1} WHERE id = {3}",
                        vec![Parameter::Key, Parameter::Digits { bytes: 119 }, Parameter::SameId],
                    )
                },
            ],
            Distribution::Uniform,
        )
    }

    /// A fake client whose statements take 1 ms on average.
    fn bench(seed: u64, index: u32, faults: Vec<(u64, Fault)>, pace: Pace) -> Fixture {
        let transaction = faults.iter().any(|(_, fault)| matches!(fault, Fault::Refuse(_)));
        let mut fake = Fake::new(seed, index, 1_000);
        fake.faults = faults;
        let (clock, log) = (fake.clock(), Arc::clone(&fake.log));
        let mut session = Connection::Fake(Box::new(fake));
        let script = script(transaction);
        let sources = SharedSources::open(&script, 1).unwrap();
        let data = ScriptData {
            seed,
            tables: 4,
            rows: 1000,
            dialect: Dialect::Fake,
            sources: &sources,
            counts_events: false,
        };
        let program = Program::compile(&script, index, &data, &mut session).unwrap();
        let recorder = Arc::new(Recorder::new(matches!(pace, Pace::Open { .. })));
        let mut client = Client::new(session, program, clock, Dialect::Fake, Arc::clone(&recorder));
        client.set_pace(pace, seed, index, 1);
        Fixture { client, recorder, log }
    }

    fn run(bench: &mut Fixture, warm_ms: u64, window_ms: u64, whole_events: bool) -> Counts {
        bench.client.warm_up(warm_ms * MS).unwrap();
        let start = bench.client.clock().now().max(warm_ms * MS);
        let start = if whole_events { start } else { warm_ms * MS };
        let window = Window { start, end: start + window_ms * MS, whole_events };
        bench.client.open_window(window);
        bench.client.run_to(window.end).unwrap();
        bench.client.close_window()
    }

    fn statements(seed: u64, index: u32, stall: bool) -> Vec<String> {
        let faults = if stall { vec![(10, Fault::Stall(50 * MS))] } else { vec![] };
        let mut bench = bench(seed, index, faults, Pace::Closed);
        run(&mut bench, 100, 300, false);
        let log = bench.log.lock().unwrap();
        log[..100].to_vec()
    }

    #[test]
    fn one_seed_gives_the_same_statements_whatever_the_latencies() {
        let first = statements(7, 0, false);
        assert_eq!(first, statements(7, 0, true));
        assert_ne!(first, statements(7, 1, false), "clients differ");
        assert_ne!(first, statements(8, 0, false), "seeds differ");
    }

    #[test]
    fn parameters_and_tables_go_where_the_script_says() {
        for pair in statements(3, 0, false).chunks(2) {
            let [read, write] = pair else { panic!("{pair:?}") };
            let table = |sql: &str| sql.split(" t").nth(1).unwrap()[..1].to_owned();
            assert_eq!(table(read), table(&write.replace("UPDATE", "FROM")), "same table");
            let id = read.split("[Int(").nth(1).unwrap().trim_end_matches(")]");
            assert!(write.ends_with(&format!("WHERE id = {id}")), "{read} {write}");
            let text = write.split('\'').nth(1).unwrap();
            assert_eq!(text.len(), 119);
            assert!(text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'));
        }
    }

    #[test]
    fn refused_events_begin_again_and_are_counted_by_code() {
        let faults = vec![(2, Fault::Refuse("40001")), (90, Fault::Refuse("40001"))];
        let mut bench = bench(1, 0, faults, Pace::Closed);
        // BEGIN, SELECT (refused), ROLLBACK, then again from BEGIN.
        let counts = run(&mut bench, 20, 1_000, false);
        assert_eq!(counts.errors, BTreeMap::from([("40001".to_owned(), 1)]), "warm-up not counted");
        let log = bench.log.lock().unwrap();
        assert!(log[1].starts_with("SELECT") && log[2] == "ROLLBACK", "{:?}", &log[..4]);
        assert!(log[3].starts_with("BEGIN"), "{:?}", &log[..4]);
        assert_ne!(log[1], log[4], "new parameters");
        // The statements before the refused one count; the refused one and ROLLBACK do not.
        let extra = counts.tally.statements - 4 * counts.events;
        assert!(extra < 4, "{counts:?}");
        assert_eq!(
            counts.tally.reads + counts.tally.writes + counts.tally.others,
            counts.tally.statements
        );
    }

    #[test]
    fn the_latency_of_a_refused_event_holds_the_retry() {
        let faults = vec![(30, Fault::Refuse("40001")), (30, Fault::Stall(100 * MS))];
        let faults = faults.into_iter().rev().collect();
        let mut bench = bench(1, 0, faults, Pace::Closed);
        run(&mut bench, 0, 1_000, false);
        let (_, values) = Snapshot::take([&*bench.recorder]).since(&Snapshot::default(), &[1.0]);
        assert!(values[0] > 100 * MS, "{values:?}");
    }

    #[test]
    fn other_errors_are_fatal_and_named() {
        let mut bench = bench(1, 0, vec![(2, Fault::Refuse("42P01"))], Pace::Closed);
        let fault = bench.client.warm_up(100 * MS).unwrap_err();
        assert!(fault.contains("read") && fault.contains("42P01"), "{fault}");
    }

    #[test]
    fn an_open_pace_shows_a_stall_in_response_time_only() {
        let pace = Pace::Open { events_per_second: 100.0 };
        let mut bench = bench(5, 0, vec![(600, Fault::Stall(1_000 * MS))], pace);
        let counts = run(&mut bench, 1_000, 10_000, false);
        // About 100 events came due during the stall; all of them waited.
        let snapshot = Snapshot::take([&*bench.recorder]);
        let (events, response) = snapshot.since(&Snapshot::default(), &[0.5, 0.95, 1.0]);
        assert_eq!(events, counts.events);
        assert!(response[0] < 20 * MS, "{response:?}");
        assert!(response[1] > 200 * MS, "a twentieth waited: {response:?}");
        assert!(counts.behind_ns > 900 * MS, "{counts:?}");
        let (_, service) = crate::recorder::histograms(&[&bench.recorder]);
        let bytes =
            base64::Engine::decode(&base64::engine::general_purpose::STANDARD, service.unwrap())
                .unwrap();
        let service: hdrhistogram::Histogram<u64> =
            hdrhistogram::serialization::Deserializer::new()
                .deserialize(&mut bytes.as_slice())
                .unwrap();
        assert!(service.value_at_quantile(0.95) < 10 * MS, "one event was slow, not many");
        assert!(service.max() > 1_000 * MS);
        // Poisson: 1000 due, standard deviation 32.
        assert!((850..1150).contains(&counts.due), "{counts:?}");
        assert!(counts.due - counts.events < 3, "it caught up: {counts:?}");
    }

    #[test]
    fn an_open_pace_does_not_inherit_the_queue_of_the_warm_up() {
        let pace = Pace::Open { events_per_second: 100.0 };
        let mut bench = bench(5, 0, vec![(20, Fault::Stall(800 * MS))], pace);
        let counts = run(&mut bench, 1_000, 2_000, false);
        assert!(counts.behind_ns < 100 * MS, "{counts:?}");
    }

    #[test]
    fn an_overloaded_open_pace_says_how_far_it_fell_behind() {
        // Two statements of 1 ms make 500 events per second at most.
        let pace = Pace::Open { events_per_second: 1_000.0 };
        let counts = run(&mut bench(5, 0, vec![], pace), 0, 4_000, false);
        assert!((3_800..4_200).contains(&counts.due), "{counts:?}");
        assert!((1_900..2_100).contains(&counts.events), "{counts:?}");
        assert!((1_800 * MS..2_200 * MS).contains(&counts.behind_ns), "{counts:?}");
    }

    #[test]
    fn events_count_where_they_end() {
        // The 60th statement begins in the warm-up or early in the window and ends within it.
        let stall = vec![(60, Fault::Stall(100 * MS))];
        let counts = run(&mut bench(9, 0, stall, Pace::Closed), 0, 1_000, false);
        assert!((400..500).contains(&counts.events), "{counts:?}");
        assert_eq!(counts.window_ns, 1_000 * MS);
        assert!(!counts.stretched);
    }

    #[test]
    fn an_event_longer_than_the_window_counts_over_its_own_time() {
        let stall = vec![(4, Fault::Stall(5_000 * MS))];
        let counts = run(&mut bench(9, 0, stall, Pace::Closed), 3, 1_000, false);
        assert_eq!(counts.events, 1);
        assert!(counts.stretched);
        assert!(counts.window_ns > 5_000 * MS && counts.window_ns < 5_010 * MS, "{counts:?}");
    }

    #[test]
    fn whole_events_are_counted_from_the_first_start_to_the_last_end() {
        let mut bench = bench(9, 0, vec![], Pace::Closed);
        let counts = run(&mut bench, 3, 10, true);
        let log = bench.log.lock().unwrap();
        // Each statement belongs to a warm-up event or to a counted one.
        let warm = log.len() as u64 / 2 - counts.events;
        assert!((1..5).contains(&warm) && (3..10).contains(&counts.events), "{warm} {counts:?}");
        assert!((10 * MS..20 * MS).contains(&counts.window_ns), "{counts:?}");
    }
}
