//! The threads of a step, and the coordinator that leads them.
//!
//! Each thread is a member of the crew. The coordinator waits until all members are ready, gives
//! orders, cuts intervals while they work, and collects their results. A member that fails or
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
use crate::clock::Clock;
use crate::event::{DriverEvent, StepInterval};
use crate::link::ControlChannel;
use crate::window::Window;
use rqps_host::clock::{self, RealClock};
use rqps_host::tree;
use rqps_model::run::CpuTime;

/// A message to the coordinator from a client that takes turns.
pub enum TurnNews {
    /// The warm-up is over; read the counters.
    Sample,
    /// An interval has ended after this much own time, nanoseconds.
    Cut(u64),
}

/// Longest wait while members take turns.
const BEAT: Duration = Duration::from_millis(250);

/// Nanoseconds from the order to measure to the start of the window: time for members to receive
/// the order, and for the coordinator to read counters.
pub const LEAD_NS: u64 = 5_000_000;

/// Nanoseconds that members may take for the statement in flight after a step has reached its
/// limit.
const GRACE_NS: u64 = 2_000_000_000;

/// The whole work of a member: it ends with [`WorkerHandle::done`], or early if the step has ended. The
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
    pub life: WorkerMain<T>,
}

impl<T> WorkerSpec<T> {
    /// A worker with a stack for the libraries and interpreters that it may call. Only used pages
    /// take memory.
    pub fn new(
        name: String,
        life: impl FnOnce(&WorkerHandle<T>) -> Result<(), String> + Send + 'static,
    ) -> WorkerSpec<T> {
        WorkerSpec { name, stack: 2 << 20, background: false, life: Box::new(life) }
    }

    /// The worker beside the others.
    pub fn in_background(self) -> WorkerSpec<T> {
        WorkerSpec { background: true, ..self }
    }
}

/// A connected and prepared member.
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

/// An order of the coordinator to a member.
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

/// Counts and costs of a member.
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
    /// The first moment, on the clock of the crew.
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

/// A member's end of the conversation with the coordinator.
pub struct WorkerHandle<T> {
    member: usize,
    orders: Receiver<Order>,
    news: Sender<CrewEvent<T>>,
    over: Arc<AtomicBool>,
    is_done: Cell<bool>,
}

impl<T> WorkerHandle<T> {
    /// Says that the member is connected and prepared.
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

    /// The window of the next order to measure, for members that know no other order.
    pub fn window(&self) -> Option<Window> {
        loop {
            if let Order::Measure(window) = self.order()? {
                return Some(window);
            }
        }
    }

    /// True once the step is over: its members are done, or one failed.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn say(&self, said: WorkerMessage<T>) {
        // Without a receiver the step has ended, and the process ends soon.
        let _ = self.news.send(CrewEvent { member: self.member, said });
    }
}

struct CrewEvent<T> {
    member: usize,
    said: WorkerMessage<T>,
}

enum WorkerMessage<T> {
    Ready(Ready),
    Answer(Result<(), String>),
    Done(Done<T>),
    Turns(TurnNews),
    Fault(String),
}

/// Makes the intervals of a window. All moments are on the clock of the crew.
pub trait Intervals {
    /// The end of the next interval; `None` while it waits for the members, so that intervals add
    /// up to the total.
    fn next_cut(&self) -> Option<u64>;

    /// The interval since the last cut.
    fn cut(&mut self, now: u64) -> StepInterval;

    /// The end of the window if the clock cuts it: CPU time after it does not count, even if
    /// members still finish events. `None`: the window ends with the last member.
    fn cut_at(&self) -> Option<u64> {
        None
    }

    /// True if members may be done before the end of the window, which ends with the last of them.
    fn may_end_early(&self) -> bool {
        false
    }

    /// The time at which the step ends although members still have work; `None` for no limit.
    fn limit(&self) -> Option<u64> {
        None
    }
}

/// Results of a finished window.
pub struct Finished<T> {
    /// Counts in the order of the members; `None` for one that had not finished after the limit.
    pub done: Vec<Option<Done<T>>>,
    /// CPU time of the whole process.
    pub cpu: CpuTime,
    /// The end of the window: where the clock cut it, or the end of the last member that is not in
    /// the background.
    pub end: u64,
    /// True if the step reached its limit.
    pub limited: bool,
}

/// The coordinator of a step.
pub struct WorkerPool<T> {
    begun: Instant,
    clock: Clock,
    posts: Vec<WorkerSlot>,
    news: Receiver<CrewEvent<T>>,
    over: Arc<AtomicBool>,
    done: Vec<Option<Done<T>>>,
}

struct WorkerSlot {
    orders: Sender<Order>,
    background: bool,
    thread: JoinHandle<()>,
}

impl<T: Send + 'static> WorkerPool<T> {
    /// Starts all members. `begun` is the zero of their common clock. The error is a complete
    /// message.
    pub fn start(begun: Instant, members: Vec<WorkerSpec<T>>) -> Result<WorkerPool<T>, String> {
        let (sender, news) = channel();
        let over = Arc::new(AtomicBool::new(false));
        let mut posts = Vec::with_capacity(members.len());
        for (member, WorkerSpec { name, stack, background, life }) in
            members.into_iter().enumerate()
        {
            let (orders, inbox) = channel();
            let (news, over) = (sender.clone(), Arc::clone(&over));
            let is_done = Cell::new(false);
            let stand = WorkerHandle { member, orders: inbox, news, over, is_done };
            let failed = format!("failed to start the thread of {name}");
            // Not joined: a member that hangs in a statement must not keep the process alive.
            let thread = std::thread::Builder::new()
                .name(name.clone())
                .stack_size(stack)
                .spawn(move || live(&name, &stand, life))
                .map_err(|error| format!("{failed}: {error}"))?;
            posts.push(WorkerSlot { orders, background, thread });
        }
        let done = posts.iter().map(|_| None).collect();
        let clock = Clock::Real(RealClock::starting_at(begun));
        Ok(WorkerPool { begun, clock, posts, news, over, done })
    }

    /// Waits until all members are ready; returns their messages in member order.
    pub fn gather<W: Write>(&mut self, link: &ControlChannel<W>) -> Result<Vec<Ready>, Stop> {
        let mut all: Vec<Option<Ready>> = self.posts.iter().map(|_| None).collect();
        while all.iter().any(Option::is_none) {
            if let Some(CrewEvent { member, said: WorkerMessage::Ready(ready) }) =
                self.hear(None, link)?
            {
                all[member] = Some(ready);
            }
        }
        Ok(all.into_iter().flatten().collect())
    }

    /// Gives an order to one member and waits for its answer.
    pub fn ask<W: Write>(
        &mut self,
        member: usize,
        order: Order,
        link: &ControlChannel<W>,
    ) -> Result<Result<(), String>, Stop> {
        self.posts[member].order(order);
        loop {
            if let Some(CrewEvent { said: WorkerMessage::Answer(answer), .. }) =
                self.hear(None, link)?
            {
                return Ok(answer);
            }
        }
    }

    /// Gives an order to all members.
    pub fn order(&self, order: Order) {
        self.posts.iter().for_each(|post| post.order(order));
    }

    /// Waits for an answer from each member that is not in the background.
    pub fn answers<W: Write>(&mut self, link: &ControlChannel<W>) -> Result<(), Stop> {
        let mut left = self.posts.iter().filter(|post| !post.background).count();
        while left > 0 {
            if let Some(CrewEvent { said: WorkerMessage::Answer(answer), .. }) =
                self.hear(None, link)?
            {
                answer?;
                left -= 1;
            }
        }
        Ok(())
    }

    /// Sends all members through `window`; tells the lab its start and its intervals. The last
    /// interval ends with the last member; then members in the background end too.
    pub fn measure<W: Write>(
        &mut self,
        window: Window,
        intervals: &mut dyn Intervals,
        link: &mut ControlChannel<W>,
    ) -> Result<Finished<T>, Stop> {
        self.order(Order::Measure(window));
        // Members may be done with a short window before this thread wakes.
        while self.clock.now() < window.start {
            self.hear(Some(window.start), link)?;
        }
        let cpu_start = tree::own_cpu();
        link.say(&DriverEvent::WindowStart { at_ns: self.on_host(window.start) })?;
        let (cut_at, limit) = (intervals.cut_at(), intervals.limit());
        let (mut cpu_end, mut grace) = (None, None);
        while self.is_working() && grace.is_none_or(|grace| self.clock.now() < grace) {
            let cut = intervals.next_cut();
            self.hear(cut.or(cut_at.filter(|_| cpu_end.is_none())), link)?;
            let now = self.clock.now();
            if cpu_end.is_none() && cut_at.is_some_and(|end| now >= end) {
                cpu_end = Some(tree::own_cpu());
            }
            if cut.is_some_and(|cut| now >= cut) && self.is_working() {
                link.say(&DriverEvent::Interval(intervals.cut(now)))?;
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
            // An unfinished member has used the time until now.
            None if self.is_working() => self.clock.now(),
            None => self.last_end(&window, intervals.may_end_early()),
        };
        link.say(&DriverEvent::Interval(intervals.cut(end)))?;
        while !self.is_working() && self.done.iter().any(Option::is_none) {
            self.hear(None, link)?;
        }
        let done = std::mem::take(&mut self.done);
        Ok(Finished { done, cpu, end, limited: grace.is_some() })
    }

    /// Waits until members that take no orders are done, and calls `beat` every `every` meanwhile.
    /// Returns their counts in member order.
    pub fn finish<W: Write>(
        &mut self,
        every: Duration,
        beat: &mut dyn FnMut(&mut ControlChannel<W>) -> Result<(), Stop>,
        link: &mut ControlChannel<W>,
    ) -> Result<Vec<T>, Stop> {
        let every = every.as_nanos() as u64;
        let mut next = self.clock.now() + every;
        while self.is_working() {
            self.hear(Some(next), link)?;
            let now = self.clock.now();
            if now >= next {
                beat(link)?;
                next = now + every;
            }
        }
        Ok(self.done.iter_mut().filter_map(Option::take).map(|done| done.value).collect())
    }

    /// Waits while the members take turns with members of other targets. Passes messages about
    /// turns to `heed`, and calls it without one several times a second.
    pub fn take_turns<W: Write>(
        &mut self,
        heed: &mut impl FnMut(Option<TurnNews>, &mut ControlChannel<W>) -> Result<(), Stop>,
        link: &mut ControlChannel<W>,
    ) -> Result<Vec<Done<T>>, Stop> {
        self.order(Order::TakeTurns);
        while self.is_working() {
            let look = self.clock.now() + BEAT.as_nanos() as u64;
            let news = match self.hear(Some(look), link)? {
                Some(CrewEvent { said: WorkerMessage::Turns(news), .. }) => Some(news),
                _ => None,
            };
            heed(news, link)?;
        }
        self.over.store(true, Ordering::Relaxed);
        Ok(self.done.iter_mut().filter_map(Option::take).collect())
    }

    /// Waits for the next message until `deadline`. Keeps the counts of a member that is done.
    fn hear<W: Write>(
        &mut self,
        deadline: Option<u64>,
        link: &ControlChannel<W>,
    ) -> Result<Option<CrewEvent<T>>, Stop> {
        let deadline = deadline.map(|time| self.begun + Duration::from_nanos(time));
        match link.wait(&self.news, deadline)? {
            Some(CrewEvent { said: WorkerMessage::Fault(fault), .. }) => Err(Stop::Fault(fault)),
            Some(CrewEvent { member, said: WorkerMessage::Done(done) }) => {
                self.done[member] = Some(done);
                Ok(None)
            }
            None if deadline.is_none() => Err(Stop::Fault(
                "failed to measure: all threads of the step ended early".to_owned(),
            )),
            other => Ok(other),
        }
    }

    /// Converts a moment of the crew's clock to the host's clock.
    fn on_host(&self, moment: u64) -> u64 {
        (clock::monotonic_ns() + moment).saturating_sub(self.clock.now())
    }

    fn is_working(&self) -> bool {
        self.posts.iter().zip(&self.done).any(|(post, done)| !post.background && done.is_none())
    }

    /// The end of the last member that is not in the background.
    fn last_end(&self, window: &Window, may_be_early: bool) -> u64 {
        let is_open = window.end == u64::MAX || may_be_early;
        let earliest = if is_open { window.start + 1 } else { window.end };
        let members = self.posts.iter().zip(&self.done).filter(|(post, _)| !post.background);
        let ends = members.filter_map(|(_, done)| done.as_ref()).map(|done| done.spent.to);
        ends.fold(earliest, u64::max)
    }
}

impl<T> WorkerPool<T> {
    /// Waits until all threads have ended and released what they share.
    pub fn join<W: Write>(mut self, link: &ControlChannel<W>) -> Result<(), Stop> {
        // A member that waits for an order ends when no sender is left.
        let threads: Vec<_> = self.posts.drain(..).map(|post| post.thread).collect();
        for thread in threads {
            while !thread.is_finished() {
                link.sleep(Duration::from_millis(1))?;
            }
        }
        Ok(())
    }
}

/// Tells working members that the step has ended. Members inside a statement end with the process.
impl<T> Drop for WorkerPool<T> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl WorkerSlot {
    /// If the member is gone, its fault is the next message.
    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }
}

/// Does the member's work and reports its fault. A panic is a fault too: other members would wait
/// for it without end.
fn live<T>(name: &str, stand: &WorkerHandle<T>, life: WorkerMain<T>) {
    let fault = match catch_unwind(AssertUnwindSafe(|| life(stand))) {
        Ok(Ok(())) if stand.is_done.get() => return,
        Ok(Ok(())) => format!("{name} ended early"),
        Ok(Err(fault)) => fault,
        Err(panic) => format!("{name} panicked: {}", words(&*panic)),
    };
    stand.say(WorkerMessage::Fault(fault));
}

/// The message of a panic.
fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message; see the driver's log")
}

/// Events of each member of a counted step.
#[derive(Clone, Copy, Debug)]
pub struct Events {
    /// Events before the count begins.
    pub warm_up: u64,
    /// Events that count.
    pub counted: u64,
}

impl<T: Send + 'static> WorkerPool<T> {
    /// Sends all members through the events of the warm-up and then the counted ones. Pauses before
    /// and after the latter, so that the lab switches the counting on and off. `settle` runs before
    /// each pause and completes work that the events left.
    pub fn count_events<W: Write>(
        &mut self,
        Events { warm_up, counted }: Events,
        serving: Option<u32>,
        settle: &mut dyn FnMut(&mut ControlChannel<W>) -> Result<(), Stop>,
        link: &mut ControlChannel<W>,
    ) -> Result<Finished<T>, Stop> {
        self.order(Order::WarmUpEvents(warm_up));
        self.answers(link)?;
        settle(link)?;
        link.pause_at(&DriverEvent::BeforeCount { serving })?;
        let cpu_start = tree::own_cpu();
        self.order(Order::MeasureEvents(counted));
        while self.is_working() {
            self.hear(None, link)?;
        }
        settle(link)?;
        let cpu = tree::own_cpu().since(cpu_start);
        let end = self.clock.now();
        link.pause_at(&DriverEvent::AfterCount)?;
        self.over.store(true, Ordering::Relaxed);
        Ok(Finished { done: std::mem::take(&mut self.done), cpu, end, limited: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cuts intervals of a window that ends with its members.
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

    fn member(
        name: &str,
        background: bool,
        life: impl FnOnce(&WorkerHandle<u32>) -> Result<(), String> + Send + 'static,
    ) -> WorkerSpec<u32> {
        WorkerSpec { name: name.to_owned(), stack: 64 << 10, background, life: Box::new(life) }
    }

    /// Becomes ready and works until the step is over.
    fn endless(stand: &WorkerHandle<u32>) -> Result<(), String> {
        stand.ready(Ready::default());
        while stand.order().is_some() {}
        Ok(())
    }

    fn run(members: Vec<WorkerSpec<u32>>) -> Result<(Vec<u32>, String), String> {
        let mut output = Vec::new();
        let mut link = ControlChannel::alone(&mut output);
        let measured = || -> Result<Vec<u32>, Stop> {
            let mut crew = WorkerPool::start(Instant::now(), members)?;
            crew.gather(&link)?;
            let window = Window { start: 0, end: u64::MAX, whole_events: true };
            let finished = crew.measure(window, &mut Counting(0), &mut link)?;
            crew.join(&link)?;
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
            move |stand: &WorkerHandle<u32>| {
                stand.ready(Ready::default());
                stand.window();
                stand.done(value, Spent::default());
                Ok(())
            }
        };
        let writer = |stand: &WorkerHandle<u32>| {
            stand.ready(Ready::default());
            while !stand.is_over() {
                std::thread::yield_now();
            }
            stand.done(9, Spent::default());
            Ok(())
        };
        let members = vec![
            member("the writer", true, writer),
            member("client 0", false, client(1)),
            member("client 1", false, client(2)),
        ];
        let (values, said) = run(members).unwrap();
        assert_eq!(values, [9, 1, 2]);
        assert!(said.contains("window_start") && said.contains("interval"), "{said}");
    }

    #[test]
    fn a_panic_of_any_member_at_any_time_ends_the_step_with_its_name_and_message() {
        let check = |background: bool, life: fn(&WorkerHandle<u32>) -> Result<(), String>| {
            // The others work on without end, so only the panic can end the step.
            let members = vec![
                member("client 0", false, endless),
                member("the deleter of client 2", background, life),
                member("client 1", false, endless),
            ];
            let fault = run(members).unwrap_err();
            assert_eq!(fault, "the deleter of client 2 panicked: row 7 is gone");
        };
        for background in [false, true] {
            check(background, |_| panic!("row 7 is gone"));
            check(background, |stand| {
                stand.ready(Ready::default());
                panic!("row {} is gone", 7)
            });
            check(background, |stand| {
                stand.ready(Ready::default());
                stand.window();
                panic!("row {} is gone", 7)
            });
        }
    }

    #[test]
    fn a_member_that_fails_or_leaves_ends_the_step() {
        let with = |life: fn(&WorkerHandle<u32>) -> Result<(), String>| {
            run(vec![member("client 0", false, endless), member("client 1", false, life)])
        };
        assert_eq!(with(|_| Err("no more".to_owned())).unwrap_err(), "no more");
        let left = with(|stand| {
            stand.ready(Ready::default());
            Ok(())
        });
        assert_eq!(left.unwrap_err(), "client 1 ended early");
    }
}
