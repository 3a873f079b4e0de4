//! Runs a step of clients, each on its own thread and connection: places them, warms them up, and
//! measures a window.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::{ClientEvent, ClientWatch};
use crate::client::{Client, Counts};
use crate::clock::{self, Clock, LATE, SECOND, Window};
use crate::connection::{Connection, Connector};
use crate::control_channel::{ControlChannel, DriverEvent, StepInterval};
use crate::recorder::{self, IntervalMeter, Recorder};
use crate::request::{DriverRequest, StepRequest};
use crate::script::sources::SharedSources;
use crate::script::{Program, compile, explain as plans};
use crate::turns::TurnGroup;
use crate::worker_pool::{
    Events, Intervals, Order, Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec,
};
use crate::{Stop, answers, confined, fake, outcome};
use rqps_host::affinity::CpuAssignment;
use rqps_model::benchmark::{Pace, RateUnit};
use rqps_model::endpoint::Endpoint;
use rqps_model::run::Outcome;
use rqps_model::script::Script;

/// Bytes of a client's stack: enough for SQLite's parser. Only used pages take memory.
const STACK: usize = 512 << 10;

/// Time for the coordinator to read counters between the last warm-up event and the first event of
/// a window of whole events.
const LEAD: Duration = Duration::from_millis(2);

/// Fewest warm-up events of a count, except for scans: after five executions of a prepared
/// statement, Postgres decides whether to use a generic plan.
const WARM_UP_LEAST: u64 = 6;

/// Number of statements that identify the server's thread of a connection.
const PINGS: u32 = 20;

/// Prepares the work of a client on its session: request, client (from 0).
pub type MakeEvent<E> =
    Box<dyn Fn(&DriverRequest, u32, &mut Connection) -> Result<E, String> + Send + Sync>;

/// The clients of a step.
pub struct Clients<E> {
    /// The threads' common clock.
    pub clock: Clock,
    /// Opens the sessions.
    pub connector: Connector,
    /// Prepares the work of each client.
    pub make: MakeEvent<E>,
    /// Statements whose query plans the first client records.
    pub explain: Option<(Script, SharedSources)>,
    /// A background thread; its counts do not enter the outcome.
    pub beside: Option<WorkerSpec<Counts>>,
    /// The watch over clients whose events may never end.
    pub watch: Option<ClientWatch>,
    /// True if the clients may end the window early.
    pub is_capped: bool,
}

impl<E> Clients<E> {
    /// Clients without a background thread.
    pub fn new(connector: Connector, make: MakeEvent<E>) -> Clients<E> {
        let (explain, beside, watch, is_capped) = (None, None, None, false);
        Clients { clock: Clock::real(), connector, make, explain, beside, watch, is_capped }
    }
}

/// Shared by the threads, read only.
struct Shared<E> {
    request: DriverRequest,
    task: StepRequest<()>,
    connector: Connector,
    make: MakeEvent<E>,
    explain: Option<(Script, SharedSources)>,
    recorders: Vec<Arc<Recorder>>,
    seats: Vec<CpuAssignment>,
    clock: Clock,
    watch: Option<ClientWatch>,
    /// The turns with other targets' clients, if they take turns.
    team: Option<TurnGroup>,
}

/// Measures with one thread per client and returns the counts.
pub fn measure<W: Write, B, E: ClientEvent + 'static>(
    request: &DriverRequest,
    task: &StepRequest<B>,
    clients: Clients<E>,
    control: &mut ControlChannel<W>,
) -> Result<Outcome, Stop> {
    if request.asks {
        answers::ask(request, &clients.connector, &*clients.make, control)?;
        return Err(Stop::Answered);
    }
    let (watch, connector) = (clients.watch.clone(), clients.connector.clone());
    let measured = measure_pool(request, task, clients, control);
    match (measured, watch) {
        (Err(Stop::Fault(fault)), Some(watch)) => {
            Err(Stop::Fault(match watch.end_sessions(&connector) {
                Ok(()) => fault,
                Err(more) => format!("{fault}; {more}"),
            }))
        }
        (measured, _) => measured,
    }
}

fn measure_pool<W: Write, B, E: ClientEvent + 'static>(
    request: &DriverRequest,
    task: &StepRequest<B>,
    clients: Clients<E>,
    control: &mut ControlChannel<W>,
) -> Result<Outcome, Stop> {
    let Clients { clock, connector, make, explain, beside, watch, is_capped } = clients;
    let seating = confined::plan(task, request.mark.is_none());
    let team =
        request.turns.as_ref().map(|turns| TurnGroup::join(turns, task.clients, clock.clone()));
    let shared = Arc::new(Shared {
        request: request.clone(),
        task: task.with(()),
        connector,
        make,
        explain,
        recorders: recorder::recorders(task),
        seats: seating.seats,
        clock,
        watch: watch.clone(),
        team: team.transpose()?,
    });
    let members = (0..task.clients).map(|client| member(&shared, client));
    let members = members.chain(beside).chain(watch.map(ClientWatch::member));
    let mut pool = WorkerPool::start(shared.clock.clone(), members.collect())?;
    let ready = pool.gather(control)?;
    let mut notes = seating.notes;
    notes.extend(ready.iter().flat_map(|ready| ready.notes.iter().cloned()));
    let alone = task.clients == 1;
    let server = confined::SeatedServer {
        dialect: request.dialect,
        pid: task.server_pid,
        alone,
        own: request.mark.is_none(),
    };
    notes.extend(server.seat_all(&mut pool, &ready, &shared.seats, control)?);
    control.pause_if(request.pause)?;
    control.send(&DriverEvent::Warming)?;
    let finished = match (&shared.team, request.counted_events) {
        (Some(team), _) => {
            let mut meter = IntervalMeter::new(&shared.recorders, 0);
            team.lead(&mut pool, &mut |own| meter.interval(own), control)?
        }
        (None, Some(events)) => {
            let serving = server.serving(&mut pool, &ready, control)?;
            let least = if task.rate == RateUnit::RowsScanned { 1 } else { WARM_UP_LEAST };
            let events = Events { warm_up: events.max(least), counted: events };
            pool.count_events(events, serving, &mut |_| Ok(()), control)?
        }
        (None, None) => {
            let window = shared.warm_up(&mut pool, control)?;
            let meter = IntervalMeter::new(&shared.recorders, window.start)
                .for_share_of(request, task.clients);
            pool.measure(window, &mut WindowSeconds { meter, window, is_capped }, control)?
        }
    };
    let done = || finished.done.iter().take(task.clients as usize).flatten();
    let busiest = done().map(|done| done.spent.share()).fold(0.0, f64::max);
    let counts: Vec<Counts> = done().map(|done| done.value.clone()).collect();
    let mut outcome = outcome::outcome(request, task, &counts, &shared.recorders);
    if let Some(team) = &shared.team {
        team.report(&mut outcome, control)?;
    }
    outcome.plans = ready.into_iter().flat_map(|ready| ready.plans).collect();
    outcome.notes.splice(..0, notes);
    outcome.client_cpu = finished.cpu;
    outcome.client_busiest = busiest;
    Ok(outcome)
}

fn member<E: ClientEvent + 'static>(shared: &Arc<Shared<E>>, client: u32) -> WorkerSpec<Counts> {
    let shared = Arc::clone(shared);
    let name = format!("client {}", shared.request.number_of(client));
    let main = move |handle: &WorkerHandle<Counts>| live(&shared, client, handle);
    WorkerSpec { name, stack: STACK, background: false, main: Box::new(main) }
}

impl<E> Shared<E> {
    /// Sends the clients through the warm-up and returns the window.
    fn warm_up<W: Write>(
        &self,
        pool: &mut WorkerPool<Counts>,
        control: &mut ControlChannel<W>,
    ) -> Result<Window, Stop> {
        // Windows of several hosts begin together, even if one of them was late for its warm-up.
        let begun = |control: &ControlChannel<W>| control.start_by(|| self.clock.now());
        let begin = begun(control).unwrap_or_else(|| self.clock.now());
        let least = if self.is_shared() { LATE.as_nanos() as u64 } else { 0 };
        let end = begin + ((self.task.warmup_seconds * SECOND) as u64).max(least);
        let end = end.max(self.clock.now());
        pool.order(Order::WarmUp(end));
        if !clock::counts_whole_events(&self.task) {
            return Ok(clock::window(&self.task, end));
        }
        pool.answers(control)?;
        // The last events of a warm-up end at different moments.
        if !self.is_shared() {
            let start = self.clock.now() + LEAD.as_nanos() as u64;
            return Ok(clock::window(&self.task, start));
        }
        control.pause_at(&DriverEvent::WarmedUp)?;
        let begin = begun(control).unwrap_or_else(|| self.clock.now());
        let start = (begin + LATE.as_nanos() as u64).max(self.clock.now());
        Ok(clock::window(&self.task, start))
    }

    /// True if other hosts carry clients of the step, too.
    fn is_shared(&self) -> bool {
        self.request.is_shared(self.task.clients)
    }
}

/// Cuts the intervals of a window that ends at a moment or after its last event.
struct WindowSeconds {
    meter: IntervalMeter,
    window: Window,
    is_capped: bool,
}

impl Intervals for WindowSeconds {
    fn next_cut(&self) -> Option<u64> {
        let Window { start, end, whole_events } = self.window;
        let whole_events = whole_events || self.is_capped;
        Some(self.meter.next_cut(start, end)).filter(|cut| whole_events || *cut < end)
    }

    fn cut(&mut self, now: u64) -> StepInterval {
        self.meter.interval(now)
    }

    fn cut_at(&self) -> Option<u64> {
        (!self.window.whole_events && !self.is_capped).then_some(self.window.end)
    }

    fn may_end_early(&self) -> bool {
        self.is_capped
    }
}

/// The whole work of one client.
fn live<E: ClientEvent>(
    shared: &Shared<E>,
    index: u32,
    handle: &WorkerHandle<Counts>,
) -> Result<(), String> {
    let (mut client, ready) = make_ready(shared, index)?;
    handle.ready(ready);
    while let Some(order) = handle.order() {
        match order {
            Order::Ping => handle.answer(client.ping(PINGS)),
            Order::WarmUp(end) => {
                client.warm_up(end)?;
                if clock::counts_whole_events(&shared.task) {
                    handle.answer(Ok(()));
                }
            }
            Order::Measure(window) => {
                client.open_window(window);
                let (ran, spent) = Spent::on(&shared.clock, || client.run_to(window.end));
                ran?;
                let counts = client.close_window();
                client.finish()?;
                handle.done(counts, spent);
            }
            Order::WarmUpEvents(events) => handle.answer(client.run_events(events)),
            Order::MeasureEvents(events) => {
                let (counts, spent) = Spent::on(&shared.clock, || client.count_events(events));
                client.finish()?;
                handle.done(counts?, spent);
            }
            Order::TakeTurns => {
                let Some(team) = &shared.team else { continue };
                let (counts, spent) = team.play(index, &mut client, &|news| handle.turns(news))?;
                client.finish()?;
                handle.done(counts, spent);
            }
        }
    }
    Ok(())
}

fn make_ready<E: ClientEvent>(
    shared: &Shared<E>,
    index: u32,
) -> Result<(Client<E>, Ready), String> {
    let Shared { request, task, connector, recorders, clock, .. } = shared;
    let seated = confined::seat_client(&shared.seats[index as usize]);
    let number = request.number_of(index);
    let mut session = connector.open(number)?;
    let mut ready = Ready { connection_id: session.connection_id(), ..Ready::default() };
    if let (0, Some((script, sources))) = (number, &shared.explain) {
        (ready.plans, ready.notes) = plans::capture(request, (script, sources), &mut session);
    }
    if request.counted_events.is_some() {
        ready.thread = session.serving_thread();
    }
    ready.notes.extend(seated.err());
    let recorder = Arc::clone(&recorders[index as usize]);
    let event = (shared.make)(request, number, &mut session)?;
    let mut client = Client::new(session, event, clock.clone(), request.dialect, recorder);
    client.set_pace(task.pace, request.seed, number, request.all_clients(task.clients));
    client.set_serving(ready.thread);
    client.set_pulse(shared.watch.as_ref().map(|watch| watch.join(number, ready.connection_id)));
    Ok((client, ready))
}

// Measures a step of script events, on real or on simulated clients.

/// Carries out a step and sends its progress.
pub fn measure_script<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<Script>,
    connector: Connector,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    check(task)?;
    match request.endpoint {
        Endpoint::Fake { real_time, .. } if request.turns.is_none() => {
            fake::measure(request, task, &connector, real_time, control)
        }
        // In turns the clock of the host counts, so even fake clients need threads.
        Endpoint::Fake { .. } | Endpoint::Server(_) | Endpoint::File { .. } => {
            let clients = script_clients(connector, task, request.all_clients(task.clients))?;
            let outcome = measure(request, task, clients, control)?;
            Ok(control.send(&DriverEvent::Measured(Box::new(outcome)))?)
        }
    }
}

/// Refuses a step that would never end or would divide by zero.
fn check(task: &StepRequest<Script>) -> Result<(), String> {
    let seconds = |value: f64| value.is_finite() && value >= 0.0;
    let wrong = if task.clients == 0 {
        "no clients"
    } else if task.work.operations().next().is_none() {
        "a script without operations"
    } else if !seconds(task.seconds) || task.seconds == 0.0 {
        "a window that is not a positive number of seconds"
    } else if !seconds(task.warmup_seconds) {
        "a warm-up that is not a number of seconds"
    } else if let Pace::Open { events_per_second } = task.pace
        && !(events_per_second.is_finite() && events_per_second > 0.0)
    {
        "an open pace that is not a positive number of events per second"
    } else {
        return Ok(());
    };
    Err(format!("failed to measure: the request has {wrong}"))
}

/// The clients of a script, among those of all hosts.
fn script_clients(
    connector: Connector,
    task: &StepRequest<Script>,
    all_clients: u32,
) -> Result<Clients<Program>, String> {
    let script = task.work.clone();
    let sources = SharedSources::open(&script, all_clients)?;
    let explain = task.plans.then(|| (task.work.clone(), sources.clone()));
    let make: MakeEvent<Program> = Box::new(move |request, index, session| {
        compile(request, (&script, &sources), index, session)
    });
    let watch = task.work.watched.then(|| ClientWatch::over(task, "its statements"));
    Ok(Clients { explain, watch, ..Clients::new(connector, make) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::RequestBody;
    use rqps_model::benchmark::{Placement, StepBody};
    use rqps_model::script::{Distribution, Operation};

    fn task(sql: &str, rate: RateUnit) -> StepRequest<Script> {
        let operation =
            Operation { kind: "read".to_owned(), sql: sql.to_owned(), ..Operation::PLAIN };
        StepRequest {
            work: Script::of(false, vec![operation], Distribution::Uniform),
            clients: 3,
            warmup_seconds: 0.01,
            seconds: 0.01,
            pace: Pace::Closed,
            rate,
            placement: Placement::Os,
            server_pid: None,
            plans: false,
            storage_engine: None,
            cache: None,
        }
    }

    /// Runs fake sessions on the clock of the host.
    fn run(task: &StepRequest<Script>, make: MakeEvent<Program>) -> Result<Outcome, String> {
        let request = DriverRequest {
            rows: 10,
            ..DriverRequest::fake(RequestBody::Step(Box::new(
                task.with(StepBody::Script(task.work.clone())),
            )))
        };
        let connector = Connector::new(&request)?;
        measure(
            &request,
            task,
            Clients::new(connector, make),
            &mut ControlChannel::alone(Vec::new()),
        )
        .map_err(|stop| match stop {
            Stop::Fault(fault) => fault,
            Stop::Gone | Stop::Answered => "gone".to_owned(),
        })
    }

    #[test]
    fn all_clients_are_counted() {
        for rate in [RateUnit::Queries, RateUnit::RowsScanned] {
            let task = task("SELECT 1", rate);
            let script = task.work.clone();
            let sources = SharedSources::open(&script, 3).unwrap();
            let make: MakeEvent<Program> = Box::new(move |request, client, session| {
                compile(request, (&script, &sources), client, session)
            });
            let outcome = run(&task, make).unwrap();
            assert!(outcome.events >= 3 && outcome.client_busiest > 0.0, "{outcome:?}");
        }
    }

    #[test]
    fn a_client_that_panics_while_it_prepares_ends_the_step() {
        let task = task("SELECT 1", RateUnit::Queries);
        let script = task.work.clone();
        let sources = SharedSources::open(&script, 3).unwrap();
        let make: MakeEvent<Program> = Box::new(move |request, client, session| match client {
            1 => panic!("no such act"),
            _ => compile(request, (&script, &sources), client, session),
        });
        let fault = run(&task, make).unwrap_err();
        assert_eq!(fault, "client 1 panicked: no such act");
    }

    #[test]
    fn a_client_that_panics_in_a_statement_ends_the_step() {
        // The other two work on for a minute.
        let mut task = task("SELECT 1", RateUnit::Queries);
        let script = task.work.clone();
        let sources = SharedSources::open(&script, 3).unwrap();
        let make: MakeEvent<Program> = Box::new(move |request, client, session| {
            let mut script = script.clone();
            if client == 2 {
                script.events[0].operations[0].sql = "SELECT panic".to_owned();
            }
            compile(request, (&script, &sources), client, session)
        });
        task.seconds = 60.0;
        let fault = run(&task, make).unwrap_err();
        assert_eq!(fault, "client 2 panicked: told to panic");
    }

    #[test]
    fn only_statements_of_the_user_are_watched() {
        for watched in [false, true] {
            let script = Script { watched, ..Script::of(false, Vec::new(), Distribution::Uniform) };
            let task = StepRequest {
                work: script.clone(),
                clients: 1,
                warmup_seconds: 0.0,
                seconds: 1.0,
                pace: Pace::Closed,
                rate: RateUnit::Queries,
                placement: Placement::Os,
                server_pid: None,
                plans: false,
                storage_engine: None,
                cache: None,
            };
            let body = RequestBody::Step(Box::new(task.with(StepBody::Script(script))));
            let connector = Connector::new(&DriverRequest::fake(body)).unwrap();
            let clients = script_clients(connector, &task, 1).unwrap();
            assert_eq!(clients.watch.is_some(), watched);
        }
    }
}
