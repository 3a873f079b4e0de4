//! The threads of a step, and the coordinator that leads them.
//!
//! Each thread is a worker of the pool. The coordinator waits until all workers are ready, gives
//! orders, cuts intervals while they work, and collects their results. A worker that fails or
//! panics ends the step at once, with its name and message.

use std::any::Any;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::Stop;
use crate::clock::{Clock, Window};
use crate::control_channel::{ControlChannel, DriverEvent, StepInterval};
use rqps_host::clock;
use rqps_host::tree;
use rqps_model::run::CpuTime;

/// A message to the coordinator from a client that takes turns.
pub enum TurnNews {
    /// The warm-up is over; read the counters.
    Sample,
    /// An interval has ended after this much own time, nanoseconds.
    Cut(u64),
}

/// Longest wait while workers take turns.
const BEAT: Duration = Duration::from_millis(250);

/// Nanoseconds from the order to measure to the start of the window: time for workers to receive
/// the order, and for the coordinator to read counters.
pub const LEAD_NS: u64 = 5_000_000;

/// Nanoseconds that workers may take for the statement in flight after a step has reached its
/// limit.
const GRACE_NS: u64 = 2_000_000_000;

/// The whole work of a worker: it ends with [`WorkerHandle::done`], or early if the step has ended. The
/// error is a complete message.
type WorkerMain<T> = Box<dyn FnOnce(&WorkerHandle<T>) -> Result<(), String> + Send>;

/// A thread of a step before its start.
pub struct WorkerSpec<T> {
    /// Its name in faults: `client 3`, `the deleter of client 2`.
    pub name: String,
    /// Bytes of the thread's stack.
    pub stack: usize,
    /// True if it works beside the others and ends when they are done (see [`WorkerHandle::is_over`]).
    pub background: bool,
    /// Its whole work.
    pub main: WorkerMain<T>,
}

impl<T> WorkerSpec<T> {
    /// A worker with a stack for the libraries and interpreters that it may call. Only used pages
    /// take memory.
    pub fn new(
        name: String,
        main: impl FnOnce(&WorkerHandle<T>) -> Result<(), String> + Send + 'static,
    ) -> WorkerSpec<T> {
        WorkerSpec { name, stack: 2 << 20, background: false, main: Box::new(main) }
    }

    /// The worker beside the others.
    pub fn in_background(self) -> WorkerSpec<T> {
        WorkerSpec { background: true, ..self }
    }
}

/// A connected and prepared worker.
#[derive(Debug, Default)]
pub struct Ready {
    /// The id in the protocol of the server's side of its connection.
    pub connection_id: Option<u32>,
    /// The server's thread of its connection, if the server reports it.
    pub thread: Option<u32>,
    /// Query plans by statement.
    pub plans: BTreeMap<String, String>,
    /// Notes of the step.
    pub notes: Vec<String>,
}

/// An order of the coordinator to a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Order {
    /// Send some small statements, so that the server's thread can be found, and answer.
    Ping,
    /// Run until this moment; count nothing.
    WarmUp(u64),
    /// Run through the window and count.
    Measure(Window),
    /// Execute this number of events without recording them; then answer.
    WarmUpEvents(u64),
    /// Execute and record this number of events.
    MeasureEvents(u64),
    /// Take turns with other targets through warm-up and window; count the window.
    TakeTurns,
}

/// Counts and costs of a worker.
#[derive(Clone, Debug)]
pub struct Done<T> {
    /// Its counts.
    pub value: T,
    /// CPU time and switches of its thread.
    pub spent: Spent,
}

/// CPU time and elapsed time of a thread between two moments, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time of the thread.
    pub cpu_ns: u64,
    /// The first moment, on the clock of the pool.
    pub from: u64,
    /// The last moment, on the same clock.
    pub to: u64,
}

impl Spent {
    /// Executes `work` on the calling thread and returns its cost.
    pub fn on<R>(clock: &Clock, work: impl FnOnce() -> R) -> (R, Spent) {
        let (from, before) = (clock.now(), tree::thread_cpu_ns());
        let result = work();
        let cpu_ns = tree::thread_cpu_ns() - before;
        (result, Spent { cpu_ns, from, to: clock.now() })
    }

    /// The share of one CPU.
    pub fn share(&self) -> f64 {
        self.cpu_ns as f64 / self.to.saturating_sub(self.from).max(1) as f64
    }
}

/// A worker's end of the conversation with the coordinator.
pub struct WorkerHandle<T> {
    worker: usize,
    orders: Receiver<Order>,
    news: Sender<WorkerEvent<T>>,
    over: Arc<AtomicBool>,
    is_done: Cell<bool>,
}

impl<T> WorkerHandle<T> {
    /// Says that the worker is connected and prepared.
    pub fn ready(&self, ready: Ready) {
        self.say(WorkerMessage::Ready(ready));
    }

    /// Answers an order.
    pub fn answer(&self, result: Result<(), String>) {
        self.say(WorkerMessage::Answer(result));
    }

    /// Sends a message about turns.
    pub fn turns(&self, news: TurnNews) {
        self.say(WorkerMessage::Turns(news));
    }

    /// Says that all work is done. Connections that are still open close after this, outside the
    /// window.
    pub fn done(&self, value: T, spent: Spent) {
        self.is_done.set(true);
        self.say(WorkerMessage::Done(Done { value, spent }));
    }

    /// The next order; `None` if the step has ended.
    pub fn order(&self) -> Option<Order> {
        self.orders.recv().ok()
    }

    /// The window of the next order to measure, for workers that know no other order.
    pub fn window(&self) -> Option<Window> {
        loop {
            if let Order::Measure(window) = self.order()? {
                return Some(window);
            }
        }
    }

    /// True once the step is over: its workers are done, or one failed.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn say(&self, said: WorkerMessage<T>) {
        // Without a receiver the step has ended, and the process ends soon.
        let _ = self.news.send(WorkerEvent { worker: self.worker, said });
    }
}

struct WorkerEvent<T> {
    worker: usize,
    said: WorkerMessage<T>,
}

enum WorkerMessage<T> {
    Ready(Ready),
    Answer(Result<(), String>),
    Done(Done<T>),
    Turns(TurnNews),
    Fault(String),
}

/// Makes the intervals of a window. All moments are on the clock of the pool.
pub trait Intervals {
    /// The end of the next interval; `None` while it waits for the workers, so that intervals add
    /// up to the total.
    fn next_cut(&self) -> Option<u64>;

    /// The interval since the last cut.
    fn cut(&mut self, now: u64) -> StepInterval;

    /// The end of the window if the clock cuts it: CPU time after it does not count, even if
    /// workers still finish events. `None`: the window ends with the last worker.
    fn cut_at(&self) -> Option<u64> {
        None
    }

    /// True if workers may be done before the end of the window, which ends with the last of them.
    fn may_end_early(&self) -> bool {
        false
    }

    /// The time at which the step ends although workers still have work; `None` for no limit.
    fn limit(&self) -> Option<u64> {
        None
    }
}

/// Results of a finished window.
pub struct Finished<T> {
    /// Counts in the order of the workers; `None` for one that had not finished after the limit.
    pub done: Vec<Option<Done<T>>>,
    /// CPU time of the whole process.
    pub cpu: CpuTime,
    /// The end of the window: where the clock cut it, or the end of the last worker that is not in
    /// the background.
    pub end: u64,
    /// True if the step reached its limit.
    pub limited: bool,
}

/// The coordinator of a step.
pub struct WorkerPool<T> {
    clock: Clock,
    slots: Vec<WorkerSlot>,
    news: Receiver<WorkerEvent<T>>,
    over: Arc<AtomicBool>,
    done: Vec<Option<Done<T>>>,
}

struct WorkerSlot {
    orders: Sender<Order>,
    background: bool,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> WorkerPool<T> {
    /// Starts all workers, which share `clock`. The error is a complete message.
    pub fn start(clock: Clock, workers: Vec<WorkerSpec<T>>) -> Result<WorkerPool<T>, String> {
        let (sender, news) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let mut slots = Vec::with_capacity(workers.len());
        for (worker, WorkerSpec { name, stack, background, main }) in
            workers.into_iter().enumerate()
        {
            let (orders, inbox) = channel();
            let (news, over) = (sender.clone(), Arc::clone(&over));
            let is_done = Cell::new(false);
            let handle = WorkerHandle { worker, orders: inbox, news, over, is_done };
            let failed = format!("failed to start the thread of {name}");
            // Not joined: a worker that hangs in a statement must not keep the process alive.
            let thread = std::thread::Builder::new()
                .name(name.clone())
                .stack_size(stack)
                .spawn(move || live(&name, &handle, main))
                .map_err(|error| format!("{failed}: {error}"))?;
            slots.push(WorkerSlot { orders, background, thread });
        }
        let done = slots.iter().map(|_| None).collect();
        Ok(WorkerPool { clock, slots, news, over, done })
    }

    /// Waits until all workers are ready; returns their messages in worker order.
    pub fn gather<W: Write>(&mut self, control: &ControlChannel<W>) -> Result<Vec<Ready>, Stop> {
        let mut all: Vec<Option<Ready>> = self.slots.iter().map(|_| None).collect();
        while all.iter().any(Option::is_none) {
            if let Some(WorkerEvent { worker, said: WorkerMessage::Ready(ready) }) =
                self.hear(None, control)?
            {
                all[worker] = Some(ready);
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// Gives an order to one worker and waits for its answer.
    pub fn ask<W: Write>(
        &mut self,
        worker: usize,
        order: Order,
        control: &ControlChannel<W>,
    ) -> Result<Result<(), String>, Stop> {
        self.slots[worker].order(order);
        loop {
            if let Some(WorkerEvent { said: WorkerMessage::Answer(answer), .. }) =
                self.hear(None, control)?
            {
                return Ok(answer);
            }
        }
    }

    /// Gives an order to all workers.
    pub fn order(&self, order: Order) {
        self.slots.iter().for_each(|post| post.order(order));
    }

    /// Waits for an answer from each worker that is not in the background.
    pub fn answers<W: Write>(&mut self, control: &ControlChannel<W>) -> Result<(), Stop> {
        let mut left = self.slots.iter().filter(|post| !post.background).count();
        while left > 0 {
            if let Some(WorkerEvent { said: WorkerMessage::Answer(answer), .. }) =
                self.hear(None, control)?
            {
                answer?;
                left -= 1;
            }
        }
        Ok(())
    }

    /// Sends all workers through `window`; tells the lab its start and its intervals. The last
    /// interval ends with the last worker; then workers in the background end too.
    pub fn measure<W: Write>(
        &mut self,
        window: Window,
        intervals: &mut dyn Intervals,
        control: &mut ControlChannel<W>,
    ) -> Result<Finished<T>, Stop> {
        self.order(Order::Measure(window));
        // Members may be done with a short window before this thread wakes.
        while self.clock.now() < window.start {
            self.hear(Some(window.start), control)?;
        }
        let cpu_start = tree::own_cpu();
        control.send(&DriverEvent::WindowStart { at_ns: self.on_host(window.start) })?;
        let (cut_at, limit) = (intervals.cut_at(), intervals.limit());
        let (mut cpu_end, mut grace) = (None, None);
        while self.is_working() && grace.is_none_or(|grace| self.clock.now() < grace) {
            let cut = intervals.next_cut();
            self.hear(cut.or(cut_at.filter(|_| cpu_end.is_none())), control)?;
            let now = self.clock.now();
            if cpu_end.is_none() && cut_at.is_some_and(|end| now >= end) {
                cpu_end = Some(tree::own_cpu());
            }
            if cut.is_some_and(|cut| now >= cut) && self.is_working() {
                control.send(&DriverEvent::Interval(intervals.cut(now)))?;
            }
            if grace.is_none() && limit.is_some_and(|limit| now >= limit) && self.is_working() {
                self.over.store(true, Ordering::Relaxed);
                grace = Some(now + GRACE_NS);
            }
        }
        let cpu = cpu_end.unwrap_or_else(tree::own_cpu).since(cpu_start);
        self.over.store(true, Ordering::Relaxed);
        let end = match cut_at {
            Some(end) => end,
            // An unfinished worker has used the time until now.
            None if self.is_working() => self.clock.now(),
            None => self.last_end(&window, intervals.may_end_early()),
        };
        control.send(&DriverEvent::Interval(intervals.cut(end)))?;
        while !self.is_working() && self.done.iter().any(Option::is_none) {
            self.hear(None, control)?;
        }
        let done = std::mem::take(&mut self.done);
        Ok(Finished { done, cpu, end, limited: grace.is_some() })
    }

    /// Waits until workers that take no orders are done, and calls `beat` every `every` meanwhile.
    /// Returns their counts in worker order.
    pub fn finish<W: Write>(
        &mut self,
        every: Duration,
        beat: &mut dyn FnMut(&mut ControlChannel<W>) -> Result<(), Stop>,
        control: &mut ControlChannel<W>,
    ) -> Result<Vec<T>, Stop> {
        let every = every.as_nanos() as u64;
        let mut next = self.clock.now() + every;
        while self.is_working() {
            self.hear(Some(next), control)?;
            let now = self.clock.now();
            if now >= next {
                beat(control)?;
                next = now + every;
            }
        }
        Ok(self.done.iter_mut().filter_map(Option::take).map(|done| done.value).collect())
    }

    /// Waits while the workers take turns with workers of other targets. Passes messages about
    /// turns to `heed`, and calls it without one several times a second.
    pub fn take_turns<W: Write>(
        &mut self,
        heed: &mut impl FnMut(Option<TurnNews>, &mut ControlChannel<W>) -> Result<(), Stop>,
        control: &mut ControlChannel<W>,
    ) -> Result<Vec<Done<T>>, Stop> {
        self.order(Order::TakeTurns);
        while self.is_working() {
            let look = self.clock.now() + BEAT.as_nanos() as u64;
            let news = match self.hear(Some(look), control)? {
                Some(WorkerEvent { said: WorkerMessage::Turns(news), .. }) => Some(news),
                _ => None,
            };
            heed(news, control)?;
        }
        self.over.store(true, Ordering::Relaxed);
        Ok(self.done.iter_mut().filter_map(Option::take).collect())
    }

    /// Waits for the next message until `deadline`. Keeps the counts of a worker that is done.
    fn hear<W: Write>(
        &mut self,
        deadline: Option<u64>,
        control: &ControlChannel<W>,
    ) -> Result<Option<WorkerEvent<T>>, Stop> {
        let deadline = deadline.map(|time| {
            Instant::now() + Duration::from_nanos(time.saturating_sub(self.clock.now()))
        });
        match control.wait(&self.news, deadline)? {
            Some(WorkerEvent { said: WorkerMessage::Fault(fault), .. }) => Err(Stop::Fault(fault)),
            Some(WorkerEvent { worker, said: WorkerMessage::Done(done) }) => {
                self.done[worker] = Some(done);
                Ok(None)
            }
            None if deadline.is_none() => Err(Stop::Fault(
                "failed to measure: all threads of the step ended early".to_owned(),
            )),
            other => Ok(other),
        }
    }

    /// Converts a moment of the pool's clock to the host's clock.
    fn on_host(&self, moment: u64) -> u64 {
        (clock::monotonic_ns() + moment).saturating_sub(self.clock.now())
    }

    fn is_working(&self) -> bool {
        self.slots.iter().zip(&self.done).any(|(post, done)| !post.background && done.is_none())
    }

    /// The end of the last worker that is not in the background.
    fn last_end(&self, window: &Window, may_be_early: bool) -> u64 {
        let is_open = window.end == u64::MAX || may_be_early;
        let earliest = if is_open { window.start + 1 } else { window.end };
        let workers = self.slots.iter().zip(&self.done).filter(|(post, _)| !post.background);
        let ends = workers.filter_map(|(_, done)| done.as_ref()).map(|done| done.spent.to);
        ends.fold(earliest, u64::max)
    }
}

impl<T> WorkerPool<T> {
    /// Waits until all threads have ended and released what they share.
    pub fn join<W: Write>(mut self, control: &ControlChannel<W>) -> Result<(), Stop> {
        // A worker that waits for an order ends when no sender is left.
        let threads: Vec<_> = self.slots.drain(..).map(|post| post.thread).collect();
        for thread in threads {
            while !thread.is_finished() {
                control.sleep(Duration::from_millis(1))?;
            }
        }
        Ok(())
    }
}

/// Tells working workers that the step has ended. Members inside a statement end with the process.
impl<T> Drop for WorkerPool<T> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl WorkerSlot {
    /// If the worker is gone, its fault is the next message.
    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

/// Does the worker's work and reports its fault. A panic is a fault too: other workers would wait
/// for it without end.
fn live<T>(name: &str, handle: &WorkerHandle<T>, main: WorkerMain<T>) {
    let fault = match catch_unwind(AssertUnwindSafe(|| main(handle))) {
        Ok(Ok(())) if handle.is_done.get() => return,
        Ok(Ok(())) => format!("{name} ended early"),
        Ok(Err(fault)) => fault,
        Err(panic) => format!("{name} panicked: {}", words(&*panic)),
    };
    handle.say(WorkerMessage::Fault(fault));
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message; see the driver's log")
}

/// Events of each worker of a counted step.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// Events before the count begins.
    pub warm_up: u64,
    /// Events that count.
    pub counted: u64,
}

impl<T: Send + 'static> WorkerPool<T> {
    /// Sends all workers through the events of the warm-up and then the counted ones. Pauses before
    /// and after the latter, so that the lab switches the counting on and off. `settle` runs before
    /// each pause and completes work that the events left.
    pub fn count_events<W: Write>(
        &mut self,
        Events { warm_up, counted }: Events,
        serving: Option<u32>,
        settle: &mut dyn FnMut(&mut ControlChannel<W>) -> Result<(), Stop>,
        control: &mut ControlChannel<W>,
    ) -> Result<Finished<T>, Stop> {
        self.order(Order::WarmUpEvents(warm_up));
        self.answers(control)?;
        settle(control)?;
        control.pause_at(&DriverEvent::BeforeCount { serving })?;
        let cpu_start = tree::own_cpu();
        self.order(Order::MeasureEvents(counted));
        while self.is_working() {
            self.hear(None, control)?;
        }
        settle(control)?;
        let cpu = tree::own_cpu().since(cpu_start);
        let end = self.clock.now();
        control.pause_at(&DriverEvent::AfterCount)?;
        self.over.store(true, Ordering::Relaxed);
        Ok(Finished { done: std::mem::take(&mut self.done), cpu, end, limited: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts intervals of a window that ends with its workers.
    struct Counting(u64);

    impl Intervals for Counting {
        fn next_cut(&self) -> Option<u64> {
            Some((self.0 + 1) * 1_000_000_000)
        }

        fn cut(&mut self, _: u64) -> StepInterval {
            self.0 += 1;
            StepInterval { second: self.0 as u32, seconds: 1.0, ..StepInterval::default() }
        }
    }

    fn worker(
        name: &str,
        background: bool,
        main: impl FnOnce(&WorkerHandle<u32>) -> Result<(), String> + Send + 'static,
    ) -> WorkerSpec<u32> {
        WorkerSpec { name: name.to_owned(), stack: 64 << 10, background, main: Box::new(main) }
    }

    /// Becomes ready and works until the step is over.
    fn endless(handle: &WorkerHandle<u32>) -> Result<(), String> {
        handle.ready(Ready::default());
        while handle.order().is_some() {}
        Ok(())
    }

    fn run(workers: Vec<WorkerSpec<u32>>) -> Result<(Vec<u32>, String), String> {
        let mut output = Vec::new();
        let mut control = ControlChannel::alone(&mut output);
        let measured = || -> Result<Vec<u32>, Stop> {
            let mut pool = WorkerPool::start(Clock::real(), workers)?;
            pool.gather(&control)?;
            let window = Window { start: 0, end: u64::MAX, whole_events: true };
            let finished = pool.measure(window, &mut Counting(0), &mut control)?;
            pool.join(&control)?;
            Ok(finished.done.into_iter().flatten().map(|done| done.value).collect())
        };
        match measured() {
            Ok(values) => Ok((values, String::from_utf8_lossy(&output).into_owned())),
            Err(Stop::Fault(fault)) => Err(fault),
            Err(Stop::Gone | Stop::Answered) => Err("gone".to_owned()),
        }
    }

    #[test]
    fn values_come_in_the_order_of_the_members_and_the_background_ends_last() {
        let client = |value| {
            move |handle: &WorkerHandle<u32>| {
                handle.ready(Ready::default());
                handle.window();
                handle.done(value, Spent::default());
                Ok(())
            }
        };
        let writer = |handle: &WorkerHandle<u32>| {
            handle.ready(Ready::default());
            while !handle.is_over() {
                std::thread::yield_now();
            }
            handle.done(9, Spent::default());
            Ok(())
        };
        let workers = vec![
            worker("the writer", true, writer),
            worker("client 0", false, client(1)),
            worker("client 1", false, client(2)),
        ];
        let (values, said) = run(workers).unwrap();
        assert_eq!(values, [9, 1, 2]);
        assert!(said.contains("window_start") && said.contains("interval"), "{said}");
    }

    #[test]
    fn a_panic_of_any_member_at_any_time_ends_the_step_with_its_name_and_message() {
        let check = |background: bool, main: fn(&WorkerHandle<u32>) -> Result<(), String>| {
            // The others work on without end, so only the panic can end the step.
            let workers = vec![
                worker("client 0", false, endless),
                worker("the deleter of client 2", background, main),
                worker("client 1", false, endless),
            ];
            let fault = run(workers).unwrap_err();
            assert_eq!(fault, "the deleter of client 2 panicked: row 7 is gone");
        };
        for background in [false, true] {
            check(background, |_| panic!("row 7 is gone"));
            check(background, |handle| {
                handle.ready(Ready::default());
                panic!("row {} is gone", 7)
            });
            check(background, |handle| {
                handle.ready(Ready::default());
                handle.window();
                panic!("row {} is gone", 7)
            });
        }
    }

    #[test]
    fn a_member_that_fails_or_leaves_ends_the_step() {
        let with = |main: fn(&WorkerHandle<u32>) -> Result<(), String>| {
            run(vec![worker("client 0", false, endless), worker("client 1", false, main)])
        };
        assert_eq!(with(|_| Err("no more".to_owned())).unwrap_err(), "no more");
        let left = with(|handle| {
            handle.ready(Ready::default());
            Ok(())
        });
        assert_eq!(left.unwrap_err(), "client 1 ended early");
    }
}
