//! A step of the Insert Benchmark: for each client an inserter, a deleter and query workers, each
//! a thread with a connection of its own, in one process.
//!
//! The published client is a group of processes per client, one of which does nothing but make
//! statements. Here the one who sends a statement makes it. What they agree on, the order of turns
//! and the pace, is in `turns.rs` as data; threads and the fake DBMS go through the same code.

mod fake;
mod make;
mod meter;
mod observer;
mod outcome;
mod pair;
mod prepare;
mod querier;
mod text;
mod turns;
mod writer;

use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::domain::endpoint::Endpoint;
use crate::domain::insert::InsertWork;
use crate::domain::metric::Metric;
use crate::driver::Stop;
use crate::driver::client::SECOND;
use crate::driver::clock::Clock;
use crate::driver::insert::make::{Maker, Post, Worker, said};
use crate::driver::insert::meter::{Meter, SeriesOf, WorkerCpu, WorkerRecorder};
use crate::driver::insert::observer::Observer;
use crate::driver::insert::outcome::Ended;
use crate::driver::insert::pair::Pair;
use crate::driver::insert::turns::{Side, Turn};
use crate::driver::insert::writer::Writer;
use crate::driver::protocol::{Job, Message, WorkTask};
use crate::driver::session::Opener;
use crate::driver::talk::Talk;
use crate::os::clock::RealClock;
use crate::os::tree;

/// Enough for SQLite's parser; the pages are only taken when used.
const STACK: usize = 1 << 20;

/// Between the word to begin and the beginning: time for all threads to hear it.
const LEAD_NS: u64 = 5_000_000;

/// Carries out a step and says how it went.
pub(crate) fn measure<W: Write>(
    job: &Job,
    task: &WorkTask<InsertWork>,
    opener: Opener,
    talk: &mut Talk<W>,
) -> Result<(), Stop> {
    check(task)?;
    match job.endpoint {
        Endpoint::Fake { .. } => fake::measure(job, task, &opener, talk),
        Endpoint::Server(_) | Endpoint::File { .. } => measure_really(job, task, opener, talk),
    }
}

/// Refuses what could never end.
fn check(task: &WorkTask<InsertWork>) -> Result<(), String> {
    let writes = &task.work.writes;
    let wrong = if task.clients == 0 {
        "no clients"
    } else if writes.rows == 0 {
        "no rows"
    } else if writes.rows_per_commit == 0 {
        "batches without rows"
    } else if writes.rows_per_second == Some(0) {
        "a rate of no rows a second"
    } else if task.work.shared && writes.deletes.is_some() {
        "deletes from a table that several clients write"
    } else {
        return Ok(());
    };
    Err(format!("failed to measure: the job asks for {wrong}"))
}

/// All that the threads share.
struct Shared {
    job: Job,
    task: WorkTask<InsertWork>,
    opener: Arc<Opener>,
    posts: Vec<Post>,
    recorders: Vec<Arc<WorkerRecorder>>,
    pairs: Vec<Pair>,
    clock: Clock,
    /// Unix seconds when the clock stood at zero.
    epoch: i64,
    gate: Option<Arc<std::sync::Mutex<()>>>,
    given_up: AtomicBool,
}

impl Shared {
    fn maker(&self) -> Maker<'_> {
        Maker {
            job: &self.job,
            task: &self.task,
            opener: &self.opener,
            epoch: self.epoch,
            gate: self.gate.clone(),
        }
    }
}

/// What workers say to the coordinator.
enum News {
    /// Connected and prepared.
    Ready,
    /// Done with all its work.
    Ended(usize, Box<Ended>),
    /// It cannot go on, and so the step cannot.
    Fault(String),
}

fn measure_really<W: Write>(
    job: &Job,
    task: &WorkTask<InsertWork>,
    opener: Opener,
    talk: &mut Talk<W>,
) -> Result<(), Stop> {
    let start = Instant::now();
    let opener = Arc::new(opener);
    let mut notes = prepare::tables(task, &opener, talk)?;
    let (plans, more) = prepare::plans(job, task, &opener);
    notes.extend(more);
    let writers = 1 + u32::from(task.work.writes.deletes.is_some());
    let pair = |client| Pair::new(make::turns(job, &task.work, client, 0), writers);
    let shared = Arc::new(Shared {
        job: job.clone(),
        task: task.clone(),
        opener,
        posts: make::posts(task),
        recorders: make::recorders(task),
        pairs: (0..task.clients).map(pair).collect(),
        clock: Clock::Real(RealClock::starting_at(start)),
        epoch: jiff::Timestamp::now().as_second() - start.elapsed().as_secs() as i64,
        gate: make::gate(job.dialect),
        given_up: AtomicBool::new(false),
    });
    let crew = Crew::start(Arc::clone(&shared), start)?;
    let result = crew.run(talk);
    // Those who wait for each other look at this; those in a statement end with the process.
    shared.given_up.store(true, Ordering::Relaxed);
    let mut measured = result?;
    measured.plans = plans;
    measured.notes.splice(..0, notes);
    talk.say(&Message::Measured(Box::new(measured)))?;
    Ok(())
}

/// The coordinator's end of the threads.
struct Crew {
    shared: Arc<Shared>,
    begun: Instant,
    orders: Vec<Sender<u64>>,
    news: Receiver<News>,
}

impl Crew {
    fn start(shared: Arc<Shared>, begun: Instant) -> Result<Crew, String> {
        let (sender, news) = channel();
        let mut orders = Vec::new();
        for (index, post) in shared.posts.iter().enumerate() {
            let (order, inbox) = channel();
            orders.push(order);
            let (shared, news) = (Arc::clone(&shared), sender.clone());
            let post = *post;
            // Not joined: one that hangs in a statement must not keep the process alive.
            std::thread::Builder::new()
                .name(said(post))
                .stack_size(STACK)
                .spawn(move || {
                    let life = || live(&shared, index, &inbox, &news);
                    let lived = catch_unwind(AssertUnwindSafe(life));
                    if let Some(fault) = fault_of(post, lived) {
                        // If nobody listens any more, there is nobody to tell.
                        let _ = news.send(News::Fault(fault));
                    }
                })
                .map_err(|error| {
                    format!("failed to start the thread of {}: {error}", said(post))
                })?;
        }
        Ok(Crew { shared, begun, orders, news })
    }

    /// Waits for the next news until `deadline`. A worker that cannot go on ends the step at once.
    fn hear<W: Write>(&self, deadline: Option<u64>, talk: &Talk<W>) -> Result<Option<News>, Stop> {
        let deadline = deadline.map(|time| self.begun + Duration::from_nanos(time));
        match talk.wait(&self.news, deadline)? {
            Some(News::Fault(fault)) => Err(Stop::Fault(fault)),
            None if deadline.is_none() => {
                Err(Stop::Fault("failed to measure: a worker ended without a word".to_owned()))
            }
            other => Ok(other),
        }
    }

    fn run<W: Write>(&self, talk: &mut Talk<W>) -> Result<crate::domain::run::Outcome, Stop> {
        let Shared { job, task, clock, pairs, .. } = &*self.shared;
        let mut ready = 0;
        while ready < self.orders.len() {
            if let Some(News::Ready) = self.hear(None, talk)? {
                ready += 1;
            }
        }
        let observer = Observer::start(job, task, &self.shared.opener);
        talk.say(&Message::Warming)?;
        let start = clock.now() + LEAD_NS;
        for (client, pair) in (0..).zip(pairs) {
            pair.begin(make::turns(job, &task.work, client, start));
        }
        for order in &self.orders {
            // A worker that is gone has said its fault, which is heard next.
            let _ = order.send(start);
        }
        clock.wait_until(start);
        let cpu_start = tree::own_cpu();
        talk.say(&Message::WindowStart)?;
        let Finished { ended, end, series } = self.window(start, &observer, talk)?;
        let mut outcome =
            outcome::outcome(task, &self.shared.recorders, &ended, end.saturating_sub(start));
        outcome.series = series;
        outcome.client_cpu = tree::own_cpu().since(cpu_start);
        outcome.notes.extend(observer.end());
        if let Some(bytes) = prepare::database_bytes(task, &self.shared.opener) {
            outcome.extra.insert(Metric::DatabaseSize, bytes / f64::from(1 << 30));
        }
        Ok(outcome)
    }

    /// Until all workers are done; an interval each second. Returns the end of the last writer.
    fn window<W: Write>(
        &self,
        start: u64,
        observer: &Observer,
        talk: &mut Talk<W>,
    ) -> Result<Finished, Stop> {
        let shared = &*self.shared;
        let mut ended = vec![Ended::default(); self.orders.len()];
        let mut left = self.orders.len();
        let main = outcome::main_role(&shared.task.work);
        let mut meter = Meter::new(&shared.recorders, main, start);
        let mut series = SeriesOf::default();
        while left > 0 {
            let cut = start + (u64::from(meter.seconds()) + 1) * SECOND as u64;
            let news = self.hear(Some(cut), talk)?;
            if let Some(News::Ended(index, worker)) = news {
                ended[index] = *worker;
                left -= 1;
            }
            let now = shared.clock.now();
            if now >= cut && left > 0 {
                let mut interval = meter.interval(now);
                observer.add_to(&mut interval.extra);
                series.add(&interval);
                talk.say(&Message::Interval(interval))?;
            }
        }
        let end = ended.iter().map(|worker| worker.end).max().unwrap_or(start).max(start + 1);
        let mut interval = meter.interval(end);
        observer.add_to(&mut interval.extra);
        series.add(&interval);
        talk.say(&Message::Interval(interval))?;
        Ok(Finished { ended, end, series: series.into_columns() })
    }
}

/// The fault with which a worker's life ended, if it did. One that panicked is as dead as one whose
/// connection is gone, and its partners would wait for it for ever.
fn fault_of(post: Post, lived: std::thread::Result<Result<(), String>>) -> Option<String> {
    match lived {
        Ok(Ok(())) => None,
        Ok(Err(fault)) => Some(fault),
        Err(_) => Some(format!(
            "{}: it ended by a fault of rqps, told in the log of the driver",
            said(post)
        )),
    }
}

/// What a finished window gave.
struct Finished {
    ended: Vec<Ended>,
    /// The end of the last writer.
    end: u64,
    series: BTreeMap<String, Vec<f64>>,
}

/// The life of one worker. The error is a whole fault.
fn live(
    shared: &Shared,
    index: usize,
    inbox: &Receiver<u64>,
    news: &Sender<News>,
) -> Result<(), String> {
    let post = shared.posts[index];
    let maker = shared.maker();
    let pair = &shared.pairs[post.client as usize];
    let session = maker.open(post, index)?;
    let recorder = Arc::clone(&shared.recorders[index]);
    let mut worker = maker.worker(post, session, shared.clock.clone(), recorder, pair)?;
    let _ = news.send(News::Ready);
    // Nobody gives an order any more: the step has ended elsewhere.
    let Ok(start) = inbox.recv() else { return Ok(()) };
    shared.clock.wait_until(start);
    let cpu_before = tree::thread_cpu_ns();
    let fault = |fault: String| format!("{}: {fault}", said(post));
    match &mut worker {
        Worker::Writer(writer, side) => {
            if !write_all(shared, pair, writer, *side).map_err(fault)? {
                return Ok(());
            }
            finish(shared, post, writer, *side, start).map_err(fault)?;
            pair.done();
        }
        Worker::Querier(querier) => {
            while !pair.is_over() {
                querier.query().map_err(fault)?;
                if shared.given_up.load(Ordering::Relaxed) {
                    return Ok(());
                }
            }
        }
    }
    let end = shared.clock.now();
    let used_ns = tree::thread_cpu_ns() - cpu_before;
    let share = used_ns as f64 / end.saturating_sub(start).max(1) as f64;
    let mut ended = ended(worker, WorkerCpu { used_ns, share });
    ended.end = if post.role == meter::RoleKind::Query { start } else { end };
    let _ = news.send(News::Ended(index, Box::new(ended)));
    Ok(())
}

/// All batches of one side. False if the step was given up meanwhile.
fn write_all(
    shared: &Shared,
    pair: &Pair,
    writer: &mut Writer,
    side: Side,
) -> Result<bool, String> {
    loop {
        match pair.wait(side, || shared.clock.now(), &shared.given_up) {
            Some(Turn::Go { intended, ready, .. }) => writer.write(intended, ready)?,
            Some(Turn::Resync) => {
                writer.resync()?;
                pair.resynced(shared.clock.now());
            }
            Some(Turn::Over) => return Ok(true),
            Some(Turn::Blocked) => {}
            None => return Ok(false),
        }
        if shared.given_up.load(Ordering::Relaxed) {
            return Ok(false);
        }
    }
}

/// What follows a writer's rows: the end of its schedule, and indexes.
fn finish(
    shared: &Shared,
    post: Post,
    writer: &mut Writer,
    side: Side,
    start: u64,
) -> Result<(), String> {
    let Shared { job, task, .. } = shared;
    let last = make::pacer(job, &task.work, post.client, start).end(make::batches(&task.work));
    // A schedule that was kept lasts as long as it says, not one batch less.
    shared.clock.wait_until(last);
    let own_table = !task.work.shared || post.client == 0;
    if side == Side::Insert && own_table && !task.work.indexes.is_empty() {
        let table = shared.maker().table(post.client);
        let engine = task.storage_engine.as_deref();
        writer.make_indexes(&make::index_statements(&task.work, table, engine))?;
    }
    Ok(())
}

/// What a worker has to say at its end.
fn ended(worker: Worker, cpu: WorkerCpu) -> Ended {
    let mut ended = Ended { cpu, ..Ended::default() };
    match worker {
        Worker::Writer(writer, _) => ended.notes = writer.notes,
        Worker::Querier(querier) => {
            ended.notes.errors = querier.errors;
            ended.bytes = querier.bytes;
        }
    }
    ended
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::insert::meter::RoleKind;

    #[test]
    fn a_worker_that_panics_is_a_fault_with_its_name() {
        let post = Post { role: RoleKind::Delete, client: 1, thread: 0 };
        let of = |life: fn() -> Result<(), String>| fault_of(post, catch_unwind(life));
        assert_eq!(of(|| Ok(())), None);
        assert_eq!(of(|| Err("no more".to_owned())).as_deref(), Some("no more"));
        let fault = of(|| panic!("a bug")).unwrap_or_default();
        assert!(fault.starts_with("the deleter of client 2: it ended by a fault"), "{fault}");
    }
}
