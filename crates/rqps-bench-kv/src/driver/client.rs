//! The loop of one client. Per operation it reads the clock once and writes only its own memory;
//! only the library allocates.

use std::hint::black_box;
use std::sync::Arc;

use super::{KeyNumbers, MixDraws, ValuePool, key};
use rqps_driver::clock::{ArrivalSchedule, Clock};
use rqps_driver::recorder::Recorder;
use rqps_embed::rocksdb::{BATCH_MAX, EntryCounts, Handle, RocksdbError};
use rqps_model::kv::{CoreMix, KEY_BYTES, KvOperation, KvWork};

/// Number of operations that measure the client's own time.
const CALIBRATION: u64 = 100_000;

/// The library as a client calls it. An implementation that does nothing measures the cost of the
/// loop.
pub(super) trait Store {
    /// A batch of one entry, as db_bench writes.
    fn write(&mut self, key: &[u8; KEY_BYTES], value: &[u8]) -> Result<(), RocksdbError>;

    /// A plain put, as in db_bench's background writer.
    fn put(&mut self, key: &[u8; KEY_BYTES], value: &[u8]) -> Result<(), RocksdbError> {
        self.write(key, value)
    }

    fn get(&mut self, key: &[u8; KEY_BYTES]) -> Result<EntryCounts, RocksdbError>;
    fn multi_get(&mut self, keys: &[[u8; KEY_BYTES]]) -> Result<EntryCounts, RocksdbError>;
    fn scan(
        &mut self,
        key: &[u8; KEY_BYTES],
        n: u32,
        back: bool,
    ) -> Result<EntryCounts, RocksdbError>;
}

impl Store for Handle {
    #[inline]
    fn write(&mut self, key: &[u8; KEY_BYTES], value: &[u8]) -> Result<(), RocksdbError> {
        Handle::write(self, key, value)
    }

    #[inline]
    fn put(&mut self, key: &[u8; KEY_BYTES], value: &[u8]) -> Result<(), RocksdbError> {
        Handle::put(self, key, value)
    }

    #[inline]
    fn get(&mut self, key: &[u8; KEY_BYTES]) -> Result<EntryCounts, RocksdbError> {
        Handle::get(self, key)
    }

    fn multi_get(&mut self, keys: &[[u8; KEY_BYTES]]) -> Result<EntryCounts, RocksdbError> {
        Handle::multi_get(self, keys)
    }

    #[inline]
    fn scan(
        &mut self,
        key: &[u8; KEY_BYTES],
        n: u32,
        back: bool,
    ) -> Result<EntryCounts, RocksdbError> {
        Handle::scan(self, key, n, back)
    }
}

/// A store that finds every key and does nothing.
struct Nothing;

impl Store for Nothing {
    #[inline]
    fn write(&mut self, key: &[u8; KEY_BYTES], value: &[u8]) -> Result<(), RocksdbError> {
        black_box((key, value));
        Ok(())
    }

    #[inline]
    fn get(&mut self, key: &[u8; KEY_BYTES]) -> Result<EntryCounts, RocksdbError> {
        black_box(key);
        Ok(black_box(EntryCounts { entries: 1, bytes: 420 }))
    }

    fn multi_get(&mut self, keys: &[[u8; KEY_BYTES]]) -> Result<EntryCounts, RocksdbError> {
        black_box(keys);
        Ok(EntryCounts { entries: keys.len() as u64, bytes: 0 })
    }

    #[inline]
    fn scan(
        &mut self,
        key: &[u8; KEY_BYTES],
        n: u32,
        _: bool,
    ) -> Result<EntryCounts, RocksdbError> {
        black_box(key);
        Ok(black_box(EntryCounts { entries: u64::from(n), bytes: 0 }))
    }
}

/// Counts of one client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counts {
    /// Calls; each has a latency.
    pub(super) events: u64,
    /// Operations: each key of a batch counts.
    pub(super) operations: u64,
    /// Keys found or entries read.
    pub(super) entries: u64,
    /// Keys that should exist and were not found.
    pub(super) missed: u64,
    /// Puts of a core workload of YCSB.
    pub(super) puts: u64,
    /// Bytes of keys and values.
    pub(super) bytes: u64,
    /// Start and end, nanoseconds.
    pub(super) start: u64,
    pub(super) end: u64,
    /// Under an open pace: calls that were due, and the largest delay, nanoseconds.
    pub(super) due: u64,
    pub(super) behind_ns: u64,
}

/// One client, ready to run.
pub(super) struct Client<S> {
    pub(super) store: S,
    pub(super) numbers: KeyNumbers,
    pub(super) values: ValuePool,
    pub(super) clock: Clock,
    pub(super) recorder: Arc<Recorder>,
    /// The schedule of calls under an open pace.
    pub(super) schedule: Option<ArrivalSchedule>,
    /// Operations of earlier runs that are in the recorder.
    pub(super) before: u64,
}

/// The end of a run: a time or a number of operations, whichever comes first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until {
    pub(super) time: u64,
    pub(super) operations: u64,
    /// Fewest operations, even after the time.
    pub(super) least: u64,
}

impl Until {
    /// After this number of operations, however long they take.
    pub(super) fn operations(operations: u64) -> Until {
        Until { time: u64::MAX, operations, least: 0 }
    }
}

impl<S: Store> Client<S> {
    /// Runs this number of operations before those of later runs.
    pub(super) fn warm_up(&mut self, work: &KvWork, operations: u64) -> Result<(), String> {
        let counts = self.run(work, Until::operations(operations))?;
        self.before += counts.operations;
        Ok(())
    }

    /// Runs operations from now on. The error is a complete message.
    pub(super) fn run(&mut self, work: &KvWork, until: Until) -> Result<Counts, String> {
        let Client { store, numbers, values, clock, recorder, schedule, before } = self;
        let bytes = (KEY_BYTES as u64) + u64::from(work.value_bytes);
        let written = EntryCounts { entries: 1, bytes };
        let schedule = schedule.as_mut();
        let mut pace = Pacer { clock, recorder, until, schedule, before: *before };
        let counts = match work.action {
            KvOperation::FillSequential => {
                let mut next = *before;
                pace.drive(1, || {
                    let key = key(next);
                    next += 1;
                    store.write(&key, values.next_value()).map(|()| written)
                })
            }
            KvOperation::Overwrite => pace.drive(1, || {
                let key = key(numbers.after_choice());
                store.write(&key, values.next_value()).map(|()| written)
            }),
            KvOperation::Read => pace.drive(1, || store.get(&key(numbers.after_choice()))),
            KvOperation::MultiRead { batch } => {
                let batch = (batch as usize).clamp(1, BATCH_MAX);
                let mut keys = [[0; KEY_BYTES]; BATCH_MAX];
                pace.drive(batch as u64, || {
                    numbers.choice();
                    keys[..batch].fill_with(|| key(numbers.plain()));
                    store.multi_get(&keys[..batch])
                })
            }
            KvOperation::Range { nexts, reverse } => {
                pace.drive(1, || store.scan(&key(numbers.plain()), nexts, reverse))
            }
            KvOperation::Mix { mix } => {
                let draws = numbers.mixed();
                (draws.missed, draws.puts) = (0, 0);
                let counts = pace.drive(1, || mixed(mix, store, (draws, values), written));
                counts.map(|counts| Counts { missed: draws.missed, puts: draws.puts, ..counts })
            }
            KvOperation::Maintain => Ok(Counts::default()),
        };
        let mut counts = counts.map_err(|error| format!("failed to {error}"))?;
        if matches!(work.action, KvOperation::Read | KvOperation::MultiRead { .. }) {
            counts.missed = counts.operations - counts.entries.min(counts.operations);
        }
        Ok(counts)
    }
}

/// One operation of a core workload of YCSB.
#[inline]
fn mixed<S: Store>(
    mix: CoreMix,
    store: &mut S,
    (draws, values): (&mut MixDraws, &mut ValuePool),
    written: EntryCounts,
) -> Result<EntryCounts, RocksdbError> {
    let is_main = draws.is_among(match mix {
        CoreMix::A | CoreMix::F => 50,
        CoreMix::B | CoreMix::D | CoreMix::E => 95,
        CoreMix::C => 100,
    });
    let number = match (mix, is_main) {
        (CoreMix::D, true) => draws.latest(),
        (CoreMix::D | CoreMix::E, false) => draws.next_new(),
        _ => draws.popular(),
    };
    let key = key(number);
    if mix == CoreMix::E && is_main {
        return store.scan(&key, draws.scanned(), false);
    }
    let mut found = EntryCounts { entries: 0, bytes: 0 };
    if is_main || mix == CoreMix::F {
        found = store.get(&key)?;
        draws.missed += u64::from(found.entries == 0);
    }
    if !is_main {
        store.write(&key, values.next_value())?;
        draws.puts += 1;
        found.entries += written.entries;
        found.bytes += written.bytes;
    }
    Ok(found)
}

/// The state of a client's calls.
struct Pacer<'a> {
    clock: &'a Clock,
    recorder: &'a Recorder,
    until: Until,
    schedule: Option<&'a mut ArrivalSchedule>,
    before: u64,
}

impl Pacer<'_> {
    /// Makes calls until the end: without pauses, or on a schedule.
    #[inline]
    fn drive(
        &mut self,
        operations_per_call: u64,
        call: impl FnMut() -> Result<EntryCounts, RocksdbError>,
    ) -> Result<Counts, RocksdbError> {
        match self.schedule.take() {
            None => self.drive_closed(operations_per_call, call),
            Some(schedule) => self.drive_open(schedule, operations_per_call, call),
        }
    }

    /// Each latency is the time since the call before, as in db_bench, and includes the making of
    /// key and value.
    #[inline]
    fn drive_closed(
        &self,
        operations_per_call: u64,
        mut call: impl FnMut() -> Result<EntryCounts, RocksdbError>,
    ) -> Result<Counts, RocksdbError> {
        let start = self.clock.now();
        let mut counts = Counts { start, end: start, ..Counts::default() };
        let Until { time, operations, least } = self.until;
        while counts.operations < operations && (counts.end < time || counts.operations < least) {
            let found = call()?;
            let now = self.clock.now();
            counts.add(&found, operations_per_call);
            self.recorder.event(now - counts.end, 0, self.before + counts.operations);
            counts.end = now;
        }
        Ok(counts)
    }

    /// Each latency counts from the due time, so that a stall is visible in all delayed calls. The
    /// client stays until the end of the window.
    fn drive_open(
        &self,
        schedule: &mut ArrivalSchedule,
        operations_per_call: u64,
        mut call: impl FnMut() -> Result<EntryCounts, RocksdbError>,
    ) -> Result<Counts, RocksdbError> {
        let start = self.clock.now();
        let mut counts = Counts { start, end: start, ..Counts::default() };
        schedule.restart(start);
        while schedule.next_time() < self.until.time && counts.end < self.until.time {
            let due = schedule.take();
            let begun = if due > counts.end { self.clock.wait_until(due) } else { counts.end };
            let found = call()?;
            let now = self.clock.now();
            counts.due += 1;
            counts.behind_ns = counts.behind_ns.max(begun - due);
            counts.add(&found, operations_per_call);
            self.recorder.event(now - due, now - begun, self.before + counts.operations);
            counts.end = now;
        }
        let (due, behind_ns) = schedule.backlog(self.until.time);
        counts.due += due;
        counts.behind_ns = counts.behind_ns.max(behind_ns);
        if counts.end < self.until.time {
            counts.end = self.clock.wait_until(self.until.time);
        }
        Ok(counts)
    }
}

impl Counts {
    /// Adds a turn: `start` and `end` then span the time of all turns without the gaps.
    pub(super) fn add_turn(&mut self, turn: &Counts) {
        self.events += turn.events;
        self.operations += turn.operations;
        self.entries += turn.entries;
        self.missed += turn.missed;
        self.puts += turn.puts;
        self.bytes += turn.bytes;
        self.end += turn.end - turn.start;
    }

    #[inline]
    fn add(&mut self, found: &EntryCounts, operations: u64) {
        self.events += 1;
        self.operations += operations;
        self.entries += found.entries;
        self.bytes += found.bytes;
    }
}

/// Nanoseconds per operation of the loop itself, measured on a store that does nothing. `None` for
/// steps without operations.
pub(super) fn overhead(work: &KvWork) -> Option<f64> {
    if work.action == KvOperation::Maintain {
        return None;
    }
    let mut client = Client {
        store: Nothing,
        numbers: KeyNumbers::new(0, 1, work.keys.max(1)),
        values: ValuePool::new(work.value_bytes as usize),
        clock: Clock::real(),
        recorder: Arc::new(Recorder::new(false)),
        schedule: None,
        before: 0,
    };
    let until = Until::operations(CALIBRATION);
    client.run(work, until).ok()?;
    let counts = client.run(work, until).ok()?;
    Some((counts.end - counts.start) as f64 / counts.operations.max(1) as f64)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use rqps_model::benchmark::Pace;

    /// Remembers keys; every tenth is missing.
    #[derive(Default)]
    struct Notebook {
        keys: Vec<u64>,
        nexts: u32,
    }

    impl Notebook {
        fn note(&mut self, key: &[u8; KEY_BYTES]) -> u64 {
            let mut number = [0; 8];
            number.copy_from_slice(&key[..8]);
            self.keys.push(u64::from_be_bytes(number));
            self.keys[self.keys.len() - 1]
        }
    }

    impl Store for Notebook {
        fn write(&mut self, key: &[u8; KEY_BYTES], value: &[u8]) -> Result<(), RocksdbError> {
            assert_eq!(value.len(), 400);
            self.note(key);
            Ok(())
        }

        fn get(&mut self, key: &[u8; KEY_BYTES]) -> Result<EntryCounts, RocksdbError> {
            let number = self.note(key);
            Ok(EntryCounts { entries: u64::from(!number.is_multiple_of(10)), bytes: 420 })
        }

        fn multi_get(&mut self, keys: &[[u8; KEY_BYTES]]) -> Result<EntryCounts, RocksdbError> {
            for key in keys {
                self.note(key);
            }
            Ok(EntryCounts { entries: keys.len() as u64, bytes: 0 })
        }

        fn scan(
            &mut self,
            key: &[u8; KEY_BYTES],
            n: u32,
            _: bool,
        ) -> Result<EntryCounts, RocksdbError> {
            self.note(key);
            self.nexts = n;
            Ok(EntryCounts { entries: u64::from(n), bytes: 10 })
        }
    }

    pub(in crate::driver) fn work(action: KvOperation) -> KvWork {
        KvWork {
            action,
            clients: 1,
            operations: None,
            keys: 1_000_000,
            value_bytes: 400,
            write_ahead_log: true,
            pace: Pace::Closed,
            writer_mb: None,
            writer_named: false,
            after: vec![],
            options: vec![],
            overrides: vec![],
        }
    }

    /// A client of a store that remembers keys.
    pub(in crate::driver) fn reader() -> Client<impl Store> {
        client()
    }

    fn client() -> Client<Notebook> {
        Client {
            store: Notebook::default(),
            numbers: KeyNumbers::new(999, 1, 1_000_000),
            values: ValuePool::new(400),
            clock: Clock::real(),
            recorder: Arc::new(Recorder::new(false)),
            schedule: None,
            before: 0,
        }
    }

    fn run(action: KvOperation, operations: u64) -> (Counts, Notebook) {
        let mut client = client();
        let until = Until::operations(operations);
        (client.run(&work(action), until).unwrap(), client.store)
    }

    #[test]
    fn each_action_draws_its_keys_as_db_bench_does() {
        // Seed 1000; the tests of `driver/mod.rs` have the sequence.
        assert_eq!(run(KvOperation::FillSequential, 4).1.keys, [0, 1, 2, 3]);
        let (mut filler, fill) = (client(), work(KvOperation::FillSequential));
        filler.warm_up(&fill, 2).unwrap();
        filler.run(&fill, Until::operations(2)).unwrap();
        assert_eq!(filler.store.keys, [0, 1, 2, 3], "a warm-up is the beginning of the load");
        assert_eq!(run(KvOperation::Overwrite, 2).1.keys, [239_071, 130_198]);
        assert_eq!(run(KvOperation::Read, 3).1.keys, [239_071, 130_198, 572_195]);
        let range = KvOperation::Range { nexts: 10, reverse: false };
        assert_eq!(run(range, 2).1.keys, [921_198, 239_071]);
        // One draw before the batch, then one per key.
        let batch = run(KvOperation::MultiRead { batch: 3 }, 3);
        assert_eq!(batch.1.keys, [239_071, 793_948, 130_198]);
        assert_eq!((batch.0.events, batch.0.operations), (1, 3));
    }

    #[test]
    fn mixes_have_their_shares_of_puts() {
        for (letter, mix) in CoreMix::ALL {
            let action = KvOperation::Mix { mix };
            assert_eq!(work(action).only_reads(), mix == CoreMix::C, "{letter}: only reads");
            let (counts, notebook) = run(action, 2000);
            // A put after a get records its key twice.
            let (calls, puts) = (notebook.keys.len() as u64, counts.puts);
            let expected = match mix {
                CoreMix::F => 2900..3100,
                _ => 2000..2001,
            };
            assert!(expected.contains(&calls), "{letter}: {calls}");
            assert_eq!(counts.operations, 2000, "{letter}");
            let expected = match mix {
                CoreMix::A | CoreMix::F => 900..1100,
                CoreMix::C => 0..1,
                _ => 50..150,
            };
            assert!(expected.contains(&puts) && counts.missed < 1000, "{letter}: {counts:?}");
        }
    }

    #[test]
    fn keys_that_are_missed_are_counted() {
        let (counts, notebook) = run(KvOperation::Read, 1000);
        let missing = notebook.keys.iter().filter(|key| *key % 10 == 0).count() as u64;
        assert!(missing > 0);
        assert_eq!((counts.missed, counts.operations), (missing, 1000));
        assert_eq!(counts.bytes, 420_000);
    }

    #[test]
    fn a_client_stops_at_its_time() {
        let mut client = Client {
            store: Notebook::default(),
            numbers: KeyNumbers::new(999, 1, 1_000_000),
            values: ValuePool::new(400),
            clock: Clock::real(),
            recorder: Arc::new(Recorder::new(false)),
            schedule: None,
            before: 0,
        };
        let time = client.clock.now() + 200_000_000;
        let until = Until { time, operations: u64::MAX, least: 0 };
        let counts = client.run(&work(KvOperation::Overwrite), until).unwrap();
        // The operation in flight at the end counts.
        assert!(counts.end >= time && counts.operations > 0, "{counts:?}");
    }

    /// A client at 1000 calls per second on a clock that only waiting and the store advance.
    fn open(window_ns: u64, call_ns: u64) -> (Counts, Arc<Recorder>) {
        struct Slow(Clock, u64);
        impl Store for Slow {
            fn write(&mut self, _: &[u8; KEY_BYTES], _: &[u8]) -> Result<(), RocksdbError> {
                self.0.wait_until(self.0.now() + self.1);
                Ok(())
            }
            fn get(&mut self, _: &[u8; KEY_BYTES]) -> Result<EntryCounts, RocksdbError> {
                self.0.wait_until(self.0.now() + self.1);
                Ok(EntryCounts { entries: 1, bytes: 420 })
            }
            fn multi_get(&mut self, _: &[[u8; KEY_BYTES]]) -> Result<EntryCounts, RocksdbError> {
                Ok(EntryCounts::default())
            }
            fn scan(&mut self, _: &[u8; 20], _: u32, _: bool) -> Result<EntryCounts, RocksdbError> {
                Ok(EntryCounts::default())
            }
        }
        let clock = Clock::Fake(rqps_host::clock::FakeClock::new());
        let recorder = Arc::new(Recorder::new(true));
        let mut client = Client {
            store: Slow(clock.clone(), call_ns),
            numbers: KeyNumbers::new(999, 1, 1_000_000),
            values: ValuePool::new(400),
            clock,
            recorder: Arc::clone(&recorder),
            schedule: ArrivalSchedule::of(Pace::Open { events_per_second: 1000.0 }, 5, 0, 1),
            before: 0,
        };
        let until = Until { time: window_ns, operations: u64::MAX, least: 0 };
        (client.run(&work(KvOperation::Read), until).unwrap(), recorder)
    }

    #[test]
    fn an_open_pace_keeps_its_rate_and_its_window() {
        let (counts, _) = open(10_000_000_000, 100_000);
        assert_eq!(counts.end, 10_000_000_000, "the window is not cut at the last call");
        assert_eq!(counts.due, counts.events);
        // Poisson: 10000 events, standard deviation 100.
        assert!((9_600..10_400).contains(&counts.events), "{counts:?}");
        assert!(counts.behind_ns < 10_000_000, "{counts:?}");
    }

    #[test]
    fn an_open_pace_that_is_missed_loses_no_arrival() {
        let (counts, recorder) = open(10_000_000_000, 2_000_000);
        assert!((9_600..10_400).contains(&counts.due), "{counts:?}");
        assert!((4_990..5_010).contains(&counts.events), "half is done: {counts:?}");
        assert!(counts.behind_ns > 4_000_000_000, "{counts:?}");
        let snapshot = rqps_driver::recorder::Snapshot::take([&*recorder]);
        let (_, quantiles) = snapshot.since(&Default::default(), &[0.5]);
        assert!(quantiles[0] > 2_000_000_000, "latency counts from when a call was due");
    }

    #[test]
    fn the_loop_itself_costs_something_and_maintenance_has_none() {
        assert!(overhead(&work(KvOperation::Overwrite)).unwrap() > 0.0);
        assert_eq!(overhead(&work(KvOperation::Maintain)), None);
    }
}
