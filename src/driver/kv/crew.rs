//! The threads of a step: clients, the background writer, and the coordinator that cuts seconds.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::datagen::dbbench::{KeyNumbers, Values};
use crate::domain::kv::{Action, KEY_BYTES, KvWork};
use crate::domain::metric::Metric;
use crate::domain::run::{CpuTime, Outcome, Role};
use crate::driver::Stop;
use crate::driver::client::SECOND;
use crate::driver::clock::Clock;
use crate::driver::kv::client::{Client, Counts, Until};
use crate::driver::kv::maintain;
use crate::driver::kv::writer::Writer;
use crate::driver::measure::Meter;
use crate::driver::protocol::{Interval, Job, Message, WorkTask};
use crate::driver::recorder::{Recorder, histograms};
use crate::driver::talk::Talk;
use crate::embed::rocksdb::{Database, Durability, Session};
use crate::os::clock::RealClock;
use crate::os::tree::{self, Cpu};

/// RocksDB reads and writes with the stack of its callers.
const STACK: usize = 2 << 20;

/// What threads say to the coordinator.
enum News {
    Ready,
    Client(Counts, u64),
    Writer(Counts, u64),
    Fault(String),
}

/// What all threads share.
struct Shared {
    work: KvWork,
    seed: u64,
    seconds: f64,
    database: Arc<Database>,
    clock: Clock,
    over: AtomicBool,
}

/// Runs the clients of a step, and the writer if there is a limit for one.
pub(super) fn measure<W: Write>(
    job: &Job,
    task: &WorkTask<KvWork>,
    writer_mb: Option<f64>,
    database: &Arc<Database>,
    talk: &mut Talk<W>,
) -> Result<Outcome, Stop> {
    let start = Instant::now();
    let shared = Arc::new(Shared {
        work: task.work.clone(),
        seed: job.seed,
        seconds: task.seconds,
        database: Arc::clone(database),
        clock: Clock::Real(RealClock::starting_at(start)),
        over: AtomicBool::new(false),
    });
    let mut crew = Crew::start(shared, start, writer_mb)?;
    crew.gather(talk)?;
    let outcome = crew.run(talk)?;
    // The database is closed by whoever opened it, so the threads must have let go of it.
    crew.join(talk)?;
    Ok(outcome)
}

struct Crew {
    shared: Arc<Shared>,
    start: Instant,
    threads: Vec<std::thread::JoinHandle<()>>,
    orders: Vec<Sender<()>>,
    news: Receiver<News>,
    clients: Vec<Arc<Recorder>>,
    writer: Option<(Arc<Recorder>, f64)>,
}

/// What the threads said at their end.
#[derive(Default)]
struct Finished {
    clients: Vec<(Counts, u64)>,
    writer: Option<(Counts, u64)>,
}

impl Crew {
    fn start(shared: Arc<Shared>, start: Instant, writer_mb: Option<f64>) -> Result<Crew, String> {
        let (sender, news) = channel();
        let clients: Vec<_> =
            (0..shared.work.clients).map(|_| Arc::new(Recorder::new(false))).collect();
        let writer = writer_mb.map(|mb| (Arc::new(Recorder::new(false)), mb));
        let (threads, orders) = (Vec::new(), Vec::new());
        let mut crew = Crew { shared, start, threads, orders, news, clients, writer };
        // Threads count from 1, the writer first where there is one, as in db_bench.
        let mut thread = 1;
        if let Some((recorder, mb)) = crew.writer.clone() {
            crew.spawn("writer", sender.clone(), move |shared, ready| {
                let (counts, cpu) = write(&shared, thread, recorder, mb, ready)?;
                Ok(News::Writer(counts, cpu))
            })?;
            thread += 1;
        }
        for recorder in crew.clients.clone() {
            crew.spawn("client", sender.clone(), move |shared, ready| {
                let (counts, cpu) = operate(&shared, thread, recorder, ready)?;
                Ok(News::Client(counts, cpu))
            })?;
            thread += 1;
        }
        Ok(crew)
    }

    /// Starts a thread. Its life is given the means to wait for the start together.
    fn spawn(
        &mut self,
        name: &str,
        news: Sender<News>,
        life: impl FnOnce(Arc<Shared>, &dyn Fn()) -> Result<News, String> + Send + 'static,
    ) -> Result<(), String> {
        let (order, inbox) = channel::<()>();
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(STACK)
            .spawn(move || {
                let ready = || {
                    let _ = news.send(News::Ready);
                    let _ = inbox.recv();
                };
                // If nobody listens any more, there is nobody to tell.
                let _ = news.send(life(shared, &ready).unwrap_or_else(News::Fault));
            })
            .map_err(|error| format!("failed to start the thread of a {name}: {error}"))?;
        self.threads.push(thread);
        self.orders.push(order);
        Ok(())
    }

    fn hear<W: Write>(&self, deadline: Option<u64>, talk: &Talk<W>) -> Result<Option<News>, Stop> {
        let deadline = deadline.map(|time| self.start + Duration::from_nanos(time));
        match talk.wait(&self.news, deadline)? {
            Some(News::Fault(fault)) => Err(Stop::Fault(fault)),
            None if deadline.is_none() => {
                Err(Stop::Fault("failed to measure: a thread ended early".to_owned()))
            }
            other => Ok(other),
        }
    }

    fn gather<W: Write>(&self, talk: &Talk<W>) -> Result<(), Stop> {
        let mut left = self.orders.len();
        while left > 0 {
            if let Some(News::Ready) = self.hear(None, talk)? {
                left -= 1;
            }
        }
        Ok(())
    }

    fn run<W: Write>(&mut self, talk: &mut Talk<W>) -> Result<Outcome, Stop> {
        let cpu = tree::own_cpu();
        talk.say(&Message::WindowStart)?;
        let start = self.shared.clock.now();
        for order in &self.orders {
            let _ = order.send(());
        }
        let counted = self.shared.work.operations.is_some();
        let end = if counted { u64::MAX } else { start + (self.shared.seconds * SECOND) as u64 };
        let mut seconds = Seconds::new(self, start);
        let mut finished = Finished::default();
        while finished.clients.len() < self.clients.len() {
            let cut = seconds.meter.next_cut(start, end);
            // The last interval waits for the clients, so that intervals add up to the total.
            let last = cut >= end;
            match self.hear((!last).then_some(cut), talk)? {
                Some(News::Client(counts, cpu)) => finished.clients.push((counts, cpu)),
                Some(News::Writer(counts, cpu)) => finished.writer = Some((counts, cpu)),
                _ => {}
            }
            let now = self.shared.clock.now();
            let done = finished.clients.len() == self.clients.len();
            if !last && now >= cut && !done {
                talk.say(&Message::Interval(seconds.cut(now)))?;
            }
        }
        let used = tree::own_cpu().since(cpu);
        self.shared.over.store(true, Ordering::Relaxed);
        let end = finished.clients.iter().map(|(counts, _)| counts.end).max().unwrap_or(start);
        talk.say(&Message::Interval(seconds.cut(end)))?;
        while self.writer.is_some() && finished.writer.is_none() {
            if let Some(News::Writer(counts, cpu)) = self.hear(None, talk)? {
                finished.writer = Some((counts, cpu));
            }
        }
        Ok(self.outcome(&finished, used))
    }

    fn join<W: Write>(self, talk: &Talk<W>) -> Result<(), Stop> {
        for thread in self.threads {
            while !thread.is_finished() {
                talk.sleep(Duration::from_millis(1))?;
            }
        }
        Ok(())
    }

    fn outcome(&self, finished: &Finished, used: CpuTime) -> Outcome {
        let all = || finished.clients.iter().map(|(counts, _)| counts);
        let sum = |get: fn(&Counts) -> u64| all().map(get).sum::<u64>();
        let first = all().map(|counts| counts.start).min().unwrap_or(0);
        let last = all().map(|counts| counts.end).max().unwrap_or(0);
        let of_threads: u64 = sum(|counts| counts.end - counts.start);
        let recorders: Vec<&Recorder> = self.clients.iter().map(AsRef::as_ref).collect();
        let operations = sum(|counts| counts.operations);
        let (latency, _) = histograms(&recorders);
        let mut outcome = Outcome {
            seconds: (last - first) as f64 / SECOND,
            events: sum(|counts| counts.events),
            statements: operations,
            rows: sum(|counts| counts.entries),
            bytes: sum(|counts| counts.bytes),
            latency,
            client_cpu: used,
            client_busiest: busiest(&finished.clients),
            ..Outcome::default()
        };
        match self.shared.work.action {
            Action::FillSequential | Action::Overwrite => outcome.writes = operations,
            _ => outcome.reads = operations,
        }
        let missed = sum(|counts| counts.missed);
        if missed > 0 {
            outcome.errors.insert("key not found".to_owned(), missed);
        }
        let us_per_op = of_threads as f64 / 1e3 / operations.max(1) as f64;
        outcome.extra.insert(Metric::MicrosPerOp, us_per_op);
        if let (Some((recorder, mb)), Some(done)) = (&self.writer, &finished.writer) {
            let per_put = (KEY_BYTES as u64 + u64::from(self.shared.work.value_bytes)) as f64;
            let target = mb * f64::from(1 << 20) / per_put;
            outcome.roles.insert("writer".to_owned(), role(recorder, done, target));
            let rate = done.0.operations as f64 / outcome.seconds.max(f64::MIN_POSITIVE);
            outcome.extra.insert(Metric::WriterRate, rate);
        }
        outcome
    }
}

/// Largest share of its CPU that one thread used.
fn busiest(threads: &[(Counts, u64)]) -> f64 {
    let shares = threads
        .iter()
        .map(|(counts, cpu)| *cpu as f64 / counts.end.saturating_sub(counts.start).max(1) as f64);
    shares.fold(0.0, f64::max).min(1.0)
}

fn role(recorder: &Recorder, done: &(Counts, u64), target: f64) -> Role {
    Role {
        workers: 1,
        operations: done.0.operations,
        rows: done.0.entries,
        target_per_second: Some(target),
        latency: histograms(&[recorder]).0,
        service: None,
        cpu: Cpu { total_ns: done.1, user_ticks: 1, system_ticks: 0 }.since(Cpu::default()),
        busiest: busiest(std::slice::from_ref(done)),
    }
}

/// Sessions of a thread: without a log only where the step says so.
fn session(shared: &Shared) -> Session {
    let logged = shared.work.write_ahead_log;
    let durability = if logged { Durability::Log } else { Durability::NoLog };
    Session::new(&shared.database, durability)
}

fn operate(
    shared: &Shared,
    thread: u64,
    recorder: Arc<Recorder>,
    ready: &dyn Fn(),
) -> Result<(Counts, u64), String> {
    let work = &shared.work;
    let mut client = Client {
        store: session(shared),
        numbers: KeyNumbers::new(shared.seed, thread, work.keys.max(1)),
        values: Values::new(work.value_bytes as usize),
        clock: shared.clock.clone(),
        recorder,
    };
    ready();
    let time = match work.operations {
        Some(_) => u64::MAX,
        None => shared.clock.now() + (shared.seconds * SECOND) as u64,
    };
    let before = tree::thread_cpu_ns();
    let until = Until { time, operations: work.operations.unwrap_or(u64::MAX) };
    let counts = client.run(work, until)?;
    Ok((counts, tree::thread_cpu_ns() - before))
}

fn write(
    shared: &Shared,
    thread: u64,
    recorder: Arc<Recorder>,
    mb_per_second: f64,
    ready: &dyn Fn(),
) -> Result<(Counts, u64), String> {
    let work = &shared.work;
    let mut writer = Writer {
        session: session(shared),
        numbers: KeyNumbers::new(shared.seed, thread, work.keys.max(1)),
        values: Values::new(work.value_bytes as usize),
        clock: shared.clock.clone(),
        recorder,
        mb_per_second,
    };
    ready();
    let before = tree::thread_cpu_ns();
    let counts = writer.run(&shared.over)?;
    Ok((counts, tree::thread_cpu_ns() - before))
}

/// Cuts seconds: what the clients did, and the state of the tree at that moment.
struct Seconds {
    meter: Meter,
    writer: Option<Meter>,
    database: Arc<Database>,
}

impl Seconds {
    fn new(crew: &Crew, start: u64) -> Seconds {
        let recorder = crew.writer.as_ref().map(|(recorder, _)| Arc::clone(recorder));
        Seconds {
            meter: Meter::new(&crew.clients, start),
            writer: recorder.map(|recorder| Meter::new(&[recorder], start)),
            database: Arc::clone(&crew.shared.database),
        }
    }

    fn cut(&mut self, now: u64) -> Interval {
        let mut interval = self.meter.interval(now);
        let mut extra = BTreeMap::new();
        if let Some(meter) = &mut self.writer {
            extra.insert("writer_operations".to_owned(), meter.interval(now).events as f64);
        }
        let number = |name| self.database.number(name).unwrap_or(0) as f64;
        let stopped = number(c"rocksdb.is-write-stopped");
        let delayed = number(c"rocksdb.actual-delayed-write-rate");
        let stalled = f64::from(stopped > 0.0 || delayed > 0.0);
        let level0 = maintain::level0_files(&self.database).unwrap_or(0) as f64;
        let columns = [
            ("stalled", stalled),
            ("delayed_write_rate", delayed),
            ("level0_files", level0),
            ("pending_bytes", number(c"rocksdb.estimate-pending-compaction-bytes")),
            ("immutable_memtables", number(c"rocksdb.num-immutable-mem-table")),
            ("running_compactions", number(c"rocksdb.num-running-compactions")),
        ];
        extra.extend(columns.map(|(name, value)| (name.to_owned(), value)));
        interval.extra = extra;
        interval
    }
}
