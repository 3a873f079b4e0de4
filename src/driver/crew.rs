//! The threads of the clients, and the coordinator that leads them through warm-up and window.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::domain::run::Outcome;

use crate::driver::client::{Acts, Client, Counts, SECOND, Window};
use crate::driver::clock::Clock;
use crate::driver::measure::{self, Meter};
use crate::driver::protocol::{Job, MeasureTask, Message};
use crate::driver::recorder::Recorder;
use crate::driver::session::{Opener, Session};
use crate::driver::talk::Talk;
use crate::driver::{Stop, placement, plans};
use crate::os::affinity::Seat;
use crate::os::clock::RealClock;
use crate::os::tree::{self, Cpu};

/// Enough for SQLite's parser; the pages are only taken when used.
const STACK: usize = 512 << 10;

/// Time for the coordinator to read counters between the last warm-up event and the first one of a
/// window of whole events.
const LEAD: Duration = Duration::from_millis(2);

/// Statements by which the server's thread of a connection is found.
const PINGS: u32 = 20;

/// What clients say to the coordinator.
enum News {
    /// Connected and prepared.
    Ready(Ready),
    /// The pings were answered.
    Pinged(Result<(), String>),
    /// The warm-up is over. Said only if whole events count.
    Warm,
    /// The window is over.
    Done { client: usize, counts: Box<Counts>, cpu_share: f64, end: u64 },
    /// The client cannot go on.
    Fault(String),
}

struct Ready {
    client: usize,
    connection_id: Option<u32>,
    plans: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// What the coordinator tells a client to do.
enum Order {
    /// Send some small statements, for the server's thread to be found.
    Ping,
    /// Run until then, count nothing.
    WarmUp(u64),
    /// Run through the window, count.
    Measure(Window),
}

/// Prepares what a client does, on its session: job, task, client (from 0).
pub(crate) type MakeActs =
    Box<dyn Fn(&Job, &MeasureTask, u32, &mut Session) -> Result<Acts, String> + Send + Sync>;

/// All that the threads share, read only.
struct Shared {
    job: Job,
    task: MeasureTask,
    opener: Opener,
    make: MakeActs,
    recorders: Vec<Arc<Recorder>>,
    seats: Vec<Seat>,
    clock: Clock,
}

/// Measures with one thread per client and returns what was counted.
pub(crate) fn measure<W: Write>(
    job: &Job,
    task: &MeasureTask,
    opener: Opener,
    make: MakeActs,
    talk: &mut Talk<W>,
) -> Result<Outcome, Stop> {
    let start = Instant::now();
    let seating = placement::plan(task);
    let shared = Arc::new(Shared {
        job: job.clone(),
        task: task.clone(),
        opener,
        make,
        recorders: measure::recorders(task),
        seats: seating.seats,
        clock: Clock::Real(RealClock::starting_at(start)),
    });
    let mut crew = Crew::start(Arc::clone(&shared), start)?;
    let mut ready = crew.make_ready(talk)?;
    ready.notes.splice(..0, seating.notes);
    ready.notes.extend(crew.seat_server(&ready.connections, talk)?);
    talk.say(&Message::Warming)?;
    let window = crew.warm_up(talk)?;
    let finished = crew.run_window(window, talk)?;
    let mut outcome = measure::outcome(job, task, &finished.counts, &shared.recorders);
    outcome.plans = ready.plans;
    outcome.notes.splice(..0, ready.notes);
    outcome.client_cpu = finished.cpu_end.since(finished.cpu_start);
    outcome.client_busiest = finished.busiest;
    Ok(outcome)
}

/// The coordinator's end of the threads.
struct Crew {
    shared: Arc<Shared>,
    start: Instant,
    orders: Vec<Sender<Order>>,
    news: Receiver<News>,
}

/// What the clients said when they were ready.
#[derive(Default)]
struct AllReady {
    connections: Vec<Option<u32>>,
    plans: BTreeMap<String, String>,
    notes: Vec<String>,
}

/// What a finished window gave.
struct Finished {
    counts: Vec<Counts>,
    busiest: f64,
    cpu_start: Cpu,
    cpu_end: Cpu,
}

impl Crew {
    fn start(shared: Arc<Shared>, start: Instant) -> Result<Crew, String> {
        let (sender, news) = channel();
        let mut orders = Vec::new();
        for index in 0..shared.task.clients {
            let (order, inbox) = channel();
            orders.push(order);
            let shared = Arc::clone(&shared);
            let news = sender.clone();
            // Not joined: a client that hangs in a statement must not keep the process alive.
            std::thread::Builder::new()
                .name(format!("client {index}"))
                .stack_size(STACK)
                .spawn(move || {
                    if let Err(fault) = live(&shared, index, &inbox, &news) {
                        // If nobody listens any more, there is nobody to tell.
                        let _ = news.send(News::Fault(fault));
                    }
                })
                .map_err(|error| {
                    format!("failed to start the thread of client {index}: {error}")
                })?;
        }
        Ok(Crew { shared, start, orders, news })
    }

    /// Waits for the next news, until `deadline` if there is one.
    fn hear<W: Write>(&self, deadline: Option<u64>, talk: &Talk<W>) -> Result<Option<News>, Stop> {
        let deadline = deadline.map(|time| self.start + Duration::from_nanos(time));
        match talk.wait(&self.news, deadline)? {
            Some(News::Fault(fault)) => Err(Stop::Fault(fault)),
            None if deadline.is_none() => {
                Err(Stop::Fault("failed to measure: a client thread ended early".to_owned()))
            }
            other => Ok(other),
        }
    }

    /// Waits until all clients are connected and prepared.
    fn make_ready<W: Write>(&mut self, talk: &mut Talk<W>) -> Result<AllReady, Stop> {
        let clients = self.orders.len();
        let mut all = AllReady { connections: vec![None; clients], ..AllReady::default() };
        for _ in 0..clients {
            if let Some(News::Ready(ready)) = self.hear(None, talk)? {
                all.connections[ready.client] = ready.connection_id;
                all.plans.extend(ready.plans);
                all.notes.extend(ready.notes);
            }
        }
        Ok(all)
    }

    /// Pins the server's side of every connection, one after the other while all others are still.
    /// Returns notes on those that could not be.
    fn seat_server<W: Write>(
        &self,
        connections: &[Option<u32>],
        talk: &Talk<W>,
    ) -> Result<Vec<String>, Stop> {
        let Shared { job, task, seats, .. } = &*self.shared;
        let mut notes = Vec::new();
        for (client, (id, seat)) in connections.iter().zip(seats).enumerate() {
            let connection = placement::Connection { client, id: *id, seat };
            let mut stop = None;
            let seated = placement::seat_server(job, task, &connection, || {
                let _ = self.orders[client].send(Order::Ping);
                match self.hear(None, talk) {
                    Ok(Some(News::Pinged(result))) => result,
                    Ok(_) => Err("a client said something else than asked".to_owned()),
                    Err(end) => {
                        stop = Some(end);
                        Err("the job ends".to_owned())
                    }
                }
            });
            if let Some(stop) = stop {
                return Err(stop);
            }
            notes.extend(seated.err());
        }
        Ok(notes)
    }

    /// Sends the clients through the warm-up; the window is known when this returns.
    fn warm_up<W: Write>(&mut self, talk: &mut Talk<W>) -> Result<Window, Stop> {
        let task = &self.shared.task;
        let end = self.shared.clock.now() + (task.warmup_seconds * SECOND) as u64;
        self.order(|| Order::WarmUp(end));
        let mut window = measure::window(task, end);
        if window.whole_events {
            let mut left = self.orders.len();
            while left > 0 {
                if let Some(News::Warm) = self.hear(None, talk)? {
                    left -= 1;
                }
            }
            let start = self.shared.clock.now() + LEAD.as_nanos() as u64;
            window = measure::window(task, start);
        }
        self.order(|| Order::Measure(window));
        Ok(window)
    }

    /// A client that is gone has sent its fault, which is heard next.
    fn order(&self, make: impl Fn() -> Order) {
        for order in &self.orders {
            let _ = order.send(make());
        }
    }

    fn run_window<W: Write>(
        &mut self,
        window: Window,
        talk: &mut Talk<W>,
    ) -> Result<Finished, Stop> {
        // A client may be done with a short window before this thread is awake.
        let mut early = Vec::new();
        while self.shared.clock.now() < window.start {
            early.extend(self.hear(Some(window.start), talk)?);
        }
        let cpu_start = tree::own_cpu();
        talk.say(&Message::WindowStart)?;
        let clients = self.orders.len();
        let mut finished = Finished {
            counts: vec![Counts::default(); clients],
            busiest: 0.0,
            cpu_start,
            cpu_end: Cpu::default(),
        };
        let mut meter = Meter::new(&self.shared.recorders, window.start);
        let (mut done, mut last_end) = (0, window.end);
        let mut cpu_end = None;
        while done < clients {
            let cut = meter.next_cut(window.start, window.end);
            // The last interval waits for the clients, so that intervals add up to the total.
            let last = !window.whole_events && cut >= window.end;
            let deadline = match cpu_end {
                None if last => Some(window.end),
                _ if last => None,
                _ => Some(cut),
            };
            let news = match early.pop() {
                None => self.hear(deadline, talk)?,
                heard => heard,
            };
            let now = self.shared.clock.now();
            if cpu_end.is_none() && now >= window.end && !window.whole_events {
                cpu_end = Some(tree::own_cpu());
            }
            if let Some(News::Done { client, counts, cpu_share, end }) = news {
                finished.counts[client] = *counts;
                finished.busiest = finished.busiest.max(cpu_share);
                last_end = last_end.max(end);
                done += 1;
            }
            if !last && now >= cut && done < clients {
                talk.say(&Message::Interval(meter.interval(now)))?;
            }
        }
        finished.cpu_end = cpu_end.unwrap_or_else(tree::own_cpu);
        talk.say(&Message::Interval(meter.interval(last_end)))?;
        Ok(finished)
    }
}

/// The life of one client.
fn live(
    shared: &Shared,
    index: u32,
    inbox: &Receiver<Order>,
    news: &Sender<News>,
) -> Result<(), String> {
    let (mut client, ready) = make_ready(shared, index)?;
    let _ = news.send(News::Ready(ready));
    while let Ok(order) = inbox.recv() {
        match order {
            Order::Ping => {
                let _ = news.send(News::Pinged(client.ping(PINGS)));
            }
            Order::WarmUp(end) => {
                client.warm_up(end)?;
                if measure::counts_whole_events(&shared.task) {
                    let _ = news.send(News::Warm);
                }
            }
            Order::Measure(window) => {
                client.open_window(window);
                let begun = client.clock().now();
                let before = tree::thread_cpu_ns();
                client.run_to(window.end)?;
                let used = tree::thread_cpu_ns() - before;
                let end = client.clock().now();
                let done = News::Done {
                    client: index as usize,
                    counts: Box::new(client.close_window()),
                    cpu_share: used as f64 / end.saturating_sub(begun).max(1) as f64,
                    end: if window.whole_events { end } else { window.end },
                };
                let _ = news.send(done);
            }
        }
    }
    Ok(())
}

fn make_ready(shared: &Shared, index: u32) -> Result<(Client, Ready), String> {
    let Shared { job, task, opener, recorders, clock, .. } = shared;
    let seated = placement::seat_client(&shared.seats[index as usize]);
    let mut session = opener.open(index)?;
    let mut ready = Ready {
        client: index as usize,
        connection_id: session.connection_id(),
        plans: BTreeMap::new(),
        notes: Vec::new(),
    };
    if task.plans && index == 0 {
        (ready.plans, ready.notes) = plans::capture(job, &task.script, &mut session);
    }
    ready.notes.extend(seated.err());
    let recorder = Arc::clone(&recorders[index as usize]);
    let acts = (shared.make)(job, task, index, &mut session)?;
    let mut client = Client::new(session, acts, clock.clone(), job.dialect, recorder);
    client.set_pace(task.pace, job.seed, index, task.clients);
    Ok((client, ready))
}
