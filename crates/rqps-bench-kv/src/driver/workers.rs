//! The threads of a step: clients and the background writer, as members of one pool.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::client::{Client, Counts, Store, Until};
use super::{KeyNumbers, LabChannel, ValuePool, key};
use crate::driver;
use rqps_driver::Stop;
use rqps_driver::clock::{ArrivalSchedule, Clock, SECOND, Window};
use rqps_driver::confined::{self, Seating};
use rqps_driver::control_channel::StepInterval;
use rqps_driver::recorder::{IntervalMeter, Recorder, histograms};
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::turns::token::TurnRequest;
use rqps_driver::turns::{TurnGroup, TurnMember};
use rqps_driver::worker_pool::{
    Done, Finished, Intervals, LEAD_NS, Order, Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec,
};
use rqps_embed::rocksdb::{Database, Durability, Handle};
use rqps_host::affinity::CpuAssignment;
use rqps_host::tree::{self, Cpu};
use rqps_model::benchmark::Pace;
use rqps_model::kv::{KEY_BYTES, KvOperation, KvWork};
use rqps_model::metric::Metric;
use rqps_model::run::{OpenOutcome, Outcome, Role};

/// Opens the store for a thread.
type Open<S> = Box<dyn Fn() -> S + Send + Sync>;

/// Reads the current state of the tree: columns of an interval.
type TreeState<'a> = dyn Fn() -> Vec<(&'static str, f64)> + 'a;

/// Shared by the threads.
struct Shared<S> {
    work: KvWork,
    seed: u64,
    clock: Clock,
    open: Open<S>,
    clients: Vec<Arc<Recorder>>,
    /// Recorder and limit, MB per second.
    writer: Option<(Arc<Recorder>, f64)>,
    /// The CPUs of the clients, and after them those of the writer.
    seats: Vec<CpuAssignment>,
    /// The turns with other targets' clients, if they take turns.
    team: Option<TurnGroup>,
}

/// The course of a step.
enum ClientCourse<'a, 'c> {
    /// One window.
    Window,
    /// Turns with other targets.
    Turns(&'a TurnRequest),
    /// This number of counted operations. The function completes the background work that they
    /// leave.
    Counted(u64, &'a mut dyn FnMut(&mut LabChannel<'c>) -> Result<(), Stop>),
}

/// Runs the clients of a step, and the writer if it has a limit.
pub(super) fn measure(
    request: &DriverRequest,
    task: &StepRequest<KvWork>,
    beside: (Option<f64>, Seating),
    database: &Arc<Database>,
    control: &mut LabChannel,
) -> Result<Outcome, Stop> {
    let logged = task.work.write_ahead_log;
    let durability = if logged { Durability::Log } else { Durability::NoLog };
    let opened = Arc::clone(database);
    let open: Open<Handle> = Box::new(move || Handle::new(&opened, durability));
    let mut settle = |control: &mut LabChannel| driver::settle(database, &task.work, control);
    let course = match (&request.turns, request.counted_events) {
        (Some(turns), _) => ClientCourse::Turns(turns),
        (None, Some(operations)) => {
            driver::prepare(database, &task.work, control)?;
            ClientCourse::Counted(operations, &mut settle)
        }
        (None, None) => ClientCourse::Window,
    };
    run(request.seed, task, course, beside, open, &|| tree_state(database), control)
}

fn run<'c, S: Store + 'static>(
    seed: u64,
    task: &StepRequest<KvWork>,
    course: ClientCourse<'_, 'c>,
    (writer_mb, seating): (Option<f64>, Seating),
    open: Open<S>,
    tree: &TreeState<'_>,
    control: &mut LabChannel<'c>,
) -> Result<Outcome, Stop> {
    let clock = Clock::real();
    let team = match course {
        ClientCourse::Turns(turns) => {
            Some(TurnGroup::join(turns, task.work.clients, clock.clone())?)
        }
        ClientCourse::Window | ClientCourse::Counted(..) => None,
    };
    let is_open = matches!(task.work.pace, Pace::Open { .. });
    let recorder = |scheduled| Arc::new(Recorder::new(scheduled));
    let shared = Arc::new(Shared {
        work: task.work.clone(),
        seed,
        clock,
        open,
        clients: (0..task.work.clients).map(|_| recorder(is_open)).collect(),
        writer: writer_mb.map(|mb| (recorder(false), mb)),
        seats: seating.seats,
        team,
    });
    let mut pool = WorkerPool::start(shared.clock.clone(), members(&shared))?;
    let ready = pool.gather(control)?;
    let finished = match (&shared.team, course) {
        (None, ClientCourse::Counted(operations, settle)) => {
            let serving = ready.first().and_then(|ready| ready.thread);
            pool.count_events(driver::events(&task.work, operations), serving, settle, control)?
        }
        (Some(team), _) => {
            let window = Window { start: 0, end: u64::MAX, whole_events: true };
            let mut seconds = Seconds::new(&shared, window, tree);
            team.lead(&mut pool, &mut |own| seconds.cut(own), control)?
        }
        (None, _) => {
            let start = shared.clock.now() + LEAD_NS;
            let limited = shared.work.operations.is_some();
            let end = if limited { u64::MAX } else { start + (task.seconds * SECOND) as u64 };
            let window = Window { start, end, whole_events: true };
            pool.measure(window, &mut Seconds::new(&shared, window, tree), control)?
        }
    };
    // The connector closes the database, so the threads must release it first.
    pool.join(control)?;
    let mut outcome = shared.outcome(finished);
    if let Some(team) = &shared.team {
        team.report(&mut outcome, control)?;
    }
    outcome.notes.extend(seating.notes);
    Ok(outcome)
}

/// Threads count from 1, with the writer first if there is one, as in db_bench.
fn members<S: Store + 'static>(shared: &Arc<Shared<S>>) -> Vec<WorkerSpec<Counts>> {
    let mut members = Vec::new();
    let mut thread = 1;
    if let Some((recorder, mb)) = shared.writer.clone() {
        let shared = Arc::clone(shared);
        let main = move |handle: &WorkerHandle<Counts>| shared.write(thread, recorder, mb, handle);
        members.push(WorkerSpec::new("the writer".to_owned(), main).in_background());
        thread += 1;
    }
    for (client, recorder) in shared.clients.iter().cloned().enumerate() {
        let (shared, thread) = (Arc::clone(shared), thread + client as u64);
        let main =
            move |handle: &WorkerHandle<Counts>| shared.operate((thread, client), recorder, handle);
        members.push(WorkerSpec::new(format!("client {client}"), main));
    }
    members
}

impl<S: Store> Shared<S> {
    /// Pins the calling thread to its CPUs.
    fn sit(&self, index: usize) -> Result<(), String> {
        self.seats.get(index).map_or(Ok(()), confined::seat_client)
    }

    fn operate(
        &self,
        (thread, index): (u64, usize),
        recorder: Arc<Recorder>,
        handle: &WorkerHandle<Counts>,
    ) -> Result<(), String> {
        let work = &self.work;
        self.sit(index)?;
        let mut client = Client {
            store: (self.open)(),
            numbers: KeyNumbers::new(self.seed, thread, work.keys.max(1)),
            values: ValuePool::new(work.value_bytes as usize),
            clock: self.clock.clone(),
            recorder,
            schedule: ArrivalSchedule::of(work.pace, self.seed, index as u32, work.clients),
            before: 0,
        };
        handle.ready(Ready { thread: Some(tree::thread_id()), ..Ready::default() });
        if let Some(team) = &self.team {
            return play(team, index as u32, TurnClient::new(client, work), handle);
        }
        while let Some(order) = handle.order() {
            let until = match order {
                Order::WarmUpEvents(operations) => {
                    handle.answer(client.warm_up(work, operations));
                    continue;
                }
                Order::MeasureEvents(operations) => Until::operations(operations),
                Order::Measure(window) => {
                    self.clock.wait_until(window.start);
                    // A thread that wakes after the window makes one call, so that the step has a
                    // rate.
                    let operations = work.operations.unwrap_or(u64::MAX);
                    Until { time: window.end, operations, least: 1 }
                }
                _ => continue,
            };
            let (counts, spent) = Spent::on(&self.clock, || client.run(work, until));
            handle.done(counts?, spent);
        }
        Ok(())
    }

    fn write(
        &self,
        thread: u64,
        recorder: Arc<Recorder>,
        mb_per_second: f64,
        handle: &WorkerHandle<Counts>,
    ) -> Result<(), String> {
        let work = &self.work;
        self.sit(work.clients as usize)?;
        let mut writer = Writer {
            store: (self.open)(),
            numbers: KeyNumbers::new(self.seed, thread, work.keys.max(1)),
            values: ValuePool::new(work.value_bytes as usize),
            clock: self.clock.clone(),
            recorder,
            mb_per_second,
        };
        handle.ready(Ready::default());
        let Some(window) = handle.window() else { return Ok(()) };
        self.clock.wait_until(window.start);
        let (counts, spent) = Spent::on(&self.clock, || writer.run(|| handle.is_over()));
        handle.done(counts?, spent);
        Ok(())
    }

    fn outcome(&self, finished: Finished<Counts>) -> Outcome {
        let mut done: Vec<Done<Counts>> = finished.done.into_iter().flatten().collect();
        let written = self.writer.as_ref().map(|_| done.remove(0));
        let all = || done.iter().map(|done| &done.value);
        let sum = |get: fn(&Counts) -> u64| all().map(get).sum::<u64>();
        let first = all().map(|counts| counts.start).min().unwrap_or(0);
        let last = all().map(|counts| counts.end).max().unwrap_or(0);
        let of_threads: u64 = sum(|counts| counts.end - counts.start);
        let recorders: Vec<&Recorder> = self.clients.iter().map(AsRef::as_ref).collect();
        let operations = sum(|counts| counts.operations);
        let (latency, service) = histograms(&recorders);
        let mut outcome = Outcome {
            seconds: (last - first) as f64 / SECOND,
            events: sum(|counts| counts.events),
            statements: operations,
            rows: sum(|counts| counts.entries),
            bytes: sum(|counts| counts.bytes),
            latency,
            service,
            open: matches!(self.work.pace, Pace::Open { .. }).then(|| OpenOutcome {
                due: sum(|counts| counts.due),
                behind_seconds_max: all().map(|counts| counts.behind_ns).max().unwrap_or(0) as f64
                    / SECOND,
            }),
            client_cpu: finished.cpu,
            client_busiest: busiest(&done),
            ..Outcome::default()
        };
        match self.work.action {
            KvOperation::FillSequential | KvOperation::Overwrite => outcome.writes = operations,
            KvOperation::Mix { .. } => {
                outcome.writes = sum(|counts| counts.puts);
                outcome.reads = operations - outcome.writes;
            }
            _ => outcome.reads = operations,
        }
        let missed = sum(|counts| counts.missed);
        if missed > 0 {
            outcome.errors.insert("key not found".to_owned(), missed);
        }
        let us_per_op = of_threads as f64 / 1e3 / operations.max(1) as f64;
        outcome.extra.insert(Metric::MicrosPerOp, us_per_op);
        if let (Some((recorder, mb)), Some(done)) = (&self.writer, &written) {
            let per_put = (KEY_BYTES as u64 + u64::from(self.work.value_bytes)) as f64;
            let target = mb * f64::from(1 << 20) / per_put;
            outcome.roles.insert("writer".to_owned(), role(recorder, done, target));
            let rate = done.value.operations as f64 / outcome.seconds.max(f64::MIN_POSITIVE);
            outcome.extra.insert(Metric::WriterRate, rate);
        }
        outcome
    }
}

/// Client `index` takes turns when the order comes.
fn play<S: Store>(
    team: &TurnGroup,
    index: u32,
    mut client: TurnClient<'_, S>,
    handle: &WorkerHandle<Counts>,
) -> Result<(), String> {
    while let Some(order) = handle.order() {
        if order == Order::TakeTurns {
            let (counts, spent) = team.play(index, &mut client, &|news| handle.turns(news))?;
            handle.done(counts, spent);
        }
    }
    Ok(())
}

/// The largest share of a CPU that one thread used.
fn busiest(threads: &[Done<Counts>]) -> f64 {
    threads.iter().map(|done| done.spent.share()).fold(0.0, f64::max).min(1.0)
}

fn role(recorder: &Recorder, done: &Done<Counts>, target: f64) -> Role {
    let Done { value: counts, spent } = done;
    Role {
        workers: 1,
        operations: counts.operations,
        rows: counts.entries,
        target_per_second: Some(target),
        latency: histograms(&[recorder]).0,
        service: None,
        cpu: Cpu { total_ns: spent.cpu_ns, user_ticks: 1, system_ticks: 0 }.since(Cpu::default()),
        busiest: busiest(std::slice::from_ref(done)),
        seconds: None,
    }
}

/// Cuts seconds with the counts of the clients and the state of the tree.
struct Seconds<'a> {
    meter: IntervalMeter,
    writer: Option<IntervalMeter>,
    tree: &'a TreeState<'a>,
    window: Window,
}

impl<'a> Seconds<'a> {
    fn new<S>(shared: &Shared<S>, window: Window, tree: &'a TreeState<'a>) -> Seconds<'a> {
        let recorder = shared.writer.as_ref().map(|(recorder, _)| Arc::clone(recorder));
        Seconds {
            meter: IntervalMeter::new(&shared.clients, window.start),
            writer: recorder.map(|recorder| IntervalMeter::new(&[recorder], window.start)),
            tree,
            window,
        }
    }
}

impl Intervals for Seconds<'_> {
    fn next_cut(&self) -> Option<u64> {
        let Window { start, end, .. } = self.window;
        Some(self.meter.next_cut(start, end)).filter(|cut| *cut < end)
    }

    fn cut(&mut self, now: u64) -> StepInterval {
        let mut interval = self.meter.interval(now);
        let mut extra = BTreeMap::new();
        if let Some(meter) = &mut self.writer {
            extra.insert("writer_operations".to_owned(), meter.interval(now).events as f64);
        }
        extra.extend((self.tree)().into_iter().map(|(name, value)| (name.to_owned(), value)));
        interval.extra = extra;
        interval
    }
}

fn tree_state(database: &Database) -> Vec<(&'static str, f64)> {
    let number = |name| database.number(name).unwrap_or(0) as f64;
    let stopped = number(c"rocksdb.is-write-stopped");
    let delayed = number(c"rocksdb.actual-delayed-write-rate");
    vec![
        ("stalled", f64::from(stopped > 0.0 || delayed > 0.0)),
        ("delayed_write_rate", delayed),
        ("level0_files", driver::level0_files(database).unwrap_or(0) as f64),
        ("pending_bytes", number(c"rocksdb.estimate-pending-compaction-bytes")),
        ("immutable_memtables", number(c"rocksdb.num-immutable-mem-table")),
        ("running_compactions", number(c"rocksdb.num-running-compactions")),
    ]
}

// A client of the RocksDB sequence while several targets take turns within a step.

/// A client, with its counts over all turns.
pub(super) struct TurnClient<'a, S> {
    client: Client<S>,
    work: &'a KvWork,
    /// The window's recorder. Until the window opens, the client uses a different one.
    recorder: Arc<Recorder>,
    counts: Option<Counts>,
}

impl<'a, S> TurnClient<'a, S> {
    pub(super) fn new(mut client: Client<S>, work: &'a KvWork) -> TurnClient<'a, S> {
        let recorder = std::mem::replace(&mut client.recorder, Arc::new(Recorder::new(false)));
        TurnClient { client, work, recorder, counts: None }
    }
}

impl<S: Store> TurnMember for TurnClient<'_, S> {
    type Counts = Counts;

    fn turn(&mut self, until: u64) -> Result<(u64, u64), String> {
        let until = Until { time: until, operations: u64::MAX, least: 1 };
        let turn = self.client.run(self.work, until)?;
        if let Some(counts) = &mut self.counts {
            counts.add_turn(&turn);
            self.client.before = counts.operations;
        }
        Ok((turn.end, turn.events))
    }

    fn open_window(&mut self, _start: u64) {
        self.client.recorder = Arc::clone(&self.recorder);
        self.counts = Some(Counts::default());
    }

    fn close_window(&mut self) -> Counts {
        self.counts.take().unwrap_or_default()
    }
}

// The background writer of the steps while writing: it overwrites random keys at a limited rate
// until the clients are done. Its operations count separately.

/// The writer, ready to run.
pub(super) struct Writer<S> {
    pub(super) store: S,
    pub(super) numbers: KeyNumbers,
    pub(super) values: ValuePool,
    pub(super) clock: Clock,
    pub(super) recorder: Arc<Recorder>,
    pub(super) mb_per_second: f64,
}

impl<S: Store> Writer<S> {
    /// Writes until `is_over` is true. The error is a complete message.
    pub(super) fn run(&mut self, is_over: impl Fn() -> bool) -> Result<Counts, String> {
        let Writer { store, numbers, values, clock, recorder, mb_per_second } = self;
        let start = clock.now();
        let mut limiter = Limiter::new(*mb_per_second, start);
        let mut counts = Counts { start, end: start, ..Counts::default() };
        while !is_over() {
            let key = key(numbers.after_choice());
            let value = values.next_value();
            let begun = clock.now();
            store.put(&key, value).map_err(|error| format!("failed to {error}"))?;
            counts.end = clock.now();
            counts.events += 1;
            counts.operations += 1;
            counts.entries += 1;
            let bytes = (KEY_BYTES + value.len()) as u64;
            counts.bytes += bytes;
            recorder.event(counts.end - begun, 0, counts.operations);
            limiter.take(bytes, counts.end, |time| clock.wait_until(time));
        }
        Ok(counts)
    }
}

// Limits the background writer: grants bytes in portions, ten per second, like RocksDB's own rate
// limiter, so that the writer is as bursty as db_bench's.

/// Time per portion, nanoseconds.
const PERIOD_NS: u64 = 100_000_000;

/// Grants one portion per period; unused bytes and time are lost.
pub(super) struct Limiter {
    portion: u64,
    available: u64,
    next_fill: u64,
}

impl Limiter {
    /// Grants `mb_per_second` MiB/s from `now` on.
    pub(super) fn new(mb_per_second: f64, now: u64) -> Limiter {
        let portion = ((mb_per_second * f64::from(1 << 20)) as u64 / 10).max(1);
        Limiter { portion, available: 0, next_fill: now }
    }

    /// Takes `bytes`. Calls `wait_until` with a time for each portion that it must wait for; the
    /// call returns the time then.
    pub(super) fn take(&mut self, bytes: u64, now: u64, mut wait_until: impl FnMut(u64) -> u64) {
        let mut wanted = bytes;
        let mut now = now;
        while wanted > self.available {
            wanted -= self.available;
            self.available = 0;
            if now < self.next_fill {
                now = wait_until(self.next_fill);
            }
            self.available = self.portion;
            self.next_fill = now + PERIOD_NS;
        }
        self.available -= wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::client::tests::{reader, work};
    use rqps_driver::recorder::Snapshot;
    use rqps_embed::rocksdb::{EntryCounts, RocksdbError};
    use rqps_model::benchmark::{Placement, RateUnit};

    /// Finds every key. Panics at this operation, if given; 0 is the opening.
    struct Brittle(Option<u32>);

    impl Brittle {
        fn pass(&mut self) {
            if let Some(left) = &mut self.0 {
                assert!(*left > 0, "block 7 is torn");
                *left -= 1;
            }
            std::thread::yield_now();
        }
    }

    impl Store for Brittle {
        fn write(&mut self, _: &[u8; KEY_BYTES], _: &[u8]) -> Result<(), RocksdbError> {
            self.pass();
            Ok(())
        }

        fn put(&mut self, _: &[u8; KEY_BYTES], _: &[u8]) -> Result<(), RocksdbError> {
            self.pass();
            Ok(())
        }

        fn get(&mut self, _: &[u8; KEY_BYTES]) -> Result<EntryCounts, RocksdbError> {
            self.pass();
            Ok(EntryCounts { entries: 1, bytes: 420 })
        }

        fn multi_get(&mut self, keys: &[[u8; KEY_BYTES]]) -> Result<EntryCounts, RocksdbError> {
            Ok(EntryCounts { entries: keys.len() as u64, bytes: 0 })
        }

        fn scan(
            &mut self,
            _: &[u8; KEY_BYTES],
            n: u32,
            _: bool,
        ) -> Result<EntryCounts, RocksdbError> {
            Ok(EntryCounts { entries: u64::from(n), bytes: 0 })
        }
    }

    /// Runs two reading clients and a writer. The store opened as number `brittle`, from 0, panics.
    fn step(operations: Option<u64>, brittle: Option<u32>) -> Result<Outcome, String> {
        let work = KvWork {
            action: KvOperation::Read,
            clients: 2,
            operations,
            keys: 1_000,
            value_bytes: 400,
            write_ahead_log: true,
            pace: Pace::Closed,
            writer_mb: Some(2.0),
            writer_named: false,
            after: vec![],
            options: vec![],
            overrides: vec![],
        };
        let task = StepRequest {
            work,
            clients: 2,
            warmup_seconds: 0.0,
            seconds: if brittle.is_some() { 60.0 } else { 0.01 },
            pace: Pace::Closed,
            rate: RateUnit::Operations,
            placement: Placement::Os,
            server_pid: None,
            plans: false,
            storage_engine: None,
            cache: None,
        };
        let opened = std::sync::atomic::AtomicU32::new(0);
        let open: Open<Brittle> = Box::new(move || {
            let number = opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Brittle((brittle == Some(number)).then_some(3))
        });
        let mut sent = Vec::new();
        let mut control = LabChannel::alone(&mut sent);
        let seating = Seating { seats: Vec::new(), notes: Vec::new() };
        run(1, &task, ClientCourse::Window, (Some(2.0), seating), open, &Vec::new, &mut control)
            .map_err(|stop| match stop {
                Stop::Fault(fault) => fault,
                Stop::Gone | Stop::Answered => "gone".to_owned(),
            })
    }

    #[test]
    fn clients_and_writer_are_counted_apart() {
        for operations in [None, Some(50)] {
            let outcome = step(operations, None).unwrap();
            assert_eq!(outcome.roles["writer"].workers, 1);
            assert!(outcome.reads >= 2, "{outcome:?}");
            assert!(operations.is_none() || outcome.reads == 100, "{outcome:?}");
        }
    }

    #[test]
    fn a_panic_of_a_client_or_the_writer_ends_the_step_with_its_message() {
        // With a count, the others would never end.
        for operations in [None, Some(u64::MAX)] {
            for brittle in 0..3 {
                let fault = step(operations, Some(brittle)).unwrap_err();
                let (who, what) = fault.split_once(" panicked: ").unwrap();
                assert!(["the writer", "client 0", "client 1"].contains(&who), "{fault}");
                assert_eq!(what, "block 7 is torn");
            }
        }
    }

    #[test]
    fn turns_count_in_the_window_only_and_without_the_gaps() {
        let work = work(KvOperation::MultiRead { batch: 10 });
        let client = reader();
        let (clock, recorder) = (client.clock.clone(), Arc::clone(&client.recorder));
        let mut player = TurnClient::new(client, &work);
        player.turn(clock.now() + 100_000).unwrap();
        assert_eq!(Snapshot::take([&*recorder]).statements, 0, "the warm-up does not count");
        player.open_window(clock.now());
        let mut own = 0;
        let mut events = 0;
        for _ in 0..3 {
            let begun = clock.now();
            // Without time left, it still makes one call.
            let (ended, calls) = player.turn(begun).unwrap();
            assert!(calls >= 1 && ended > begun);
            own += ended - begun;
            events += calls;
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let counts = player.close_window();
        assert_eq!((counts.events, counts.operations), (events, 10 * events));
        assert_eq!(Snapshot::take([&*recorder]).statements, 10 * events);
        assert!(counts.end - counts.start <= own, "{counts:?}: more than {own} ns");
    }

    /// Times of `count` calls for 420 bytes with `work_ns` of work each.
    fn times(count: usize, work_ns: u64) -> Vec<u64> {
        let mut limiter = Limiter::new(2.0, 0);
        let mut now = 0;
        let takes = (0..count).map(|_| {
            now += work_ns;
            let mut woken = now;
            limiter.take(420, now, |time| {
                woken = woken.max(time);
                woken
            });
            now = woken;
            now
        });
        takes.collect()
    }

    #[test]
    fn two_megabytes_are_4993_puts_a_second_in_bursts() {
        let times = times(20_000, 2_000);
        let in_second =
            |second: u64| times.iter().filter(|time| *time / 1_000_000_000 == second).count();
        // 2 × 2^20 / 420 = 4993; a put may straddle the second.
        for second in 1..3 {
            assert!((4985..=5000).contains(&in_second(second)), "{}", in_second(second));
        }
        // A tenth comes at once, then the writer sleeps.
        let burst = times.iter().filter(|time| (100..101).contains(&(*time / 1_000_000))).count();
        assert!((490..=500).contains(&burst), "{burst}");
    }

    #[test]
    fn unused_time_is_not_saved_up() {
        let mut limiter = Limiter::new(2.0, 0);
        // After ten idle seconds there is one portion, not a hundred.
        let mut waits = 0;
        for _ in 0..1000 {
            limiter.take(420, 10_000_000_000, |time| {
                waits += 1;
                time
            });
        }
        assert!(waits >= 1, "{waits}");
    }
}
