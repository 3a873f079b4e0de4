//! Carries out the steps of the Insert Benchmark.
//!
//! A step of the Insert Benchmark: per client an inserter, a deleter and query workers, each a
//! thread with its own connection, in one process.
//!
//! The published client is a group of processes per client; one of them only makes statements. Here
//! each worker makes its own statements. `workers.rs` has their common order of turns and pace as
//! data; threads and the fake DBMS use the same code.

mod meter;
mod prepare;
mod workers;

use std::io::Write;
use std::sync::Arc;

use meter::{Ended, Observer, RoleKind, RoleMeter, WindowEnd, WorkerCpu, WorkerRecorder};
use prepare::{Maker, Post, Worker, said};
use workers::{Pair, Side, Writer, WriterTurn};

use rqps_driver::clock::{Clock, LATE, SECOND, Window};
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::{ControlChannel, DriverEvent, StepInterval};
use rqps_driver::recorder::SeriesOf;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::worker_pool::{
    Events, Intervals, LEAD_NS, Order, Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec,
};
use rqps_driver::{Stop, confined};
use rqps_host::affinity::CpuAssignment;
use rqps_model::endpoint::Endpoint;
use rqps_model::insert::InsertWork;
use rqps_model::metric::Metric;
use rqps_model::run::{CpuTime, Outcome};

/// What the driver tells the lab, wherever the lab is.
type LabChannel<'a> = ControlChannel<&'a mut dyn Write>;

/// Number of statements that identify the server's thread of a connection.
const PINGS: u32 = 50;

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    measure(request, &task.own()?, Connector::new(request)?, control)
}

/// Carries out a step and sends its progress.
fn measure(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    connector: Connector,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    check(task)?;
    match request.endpoint {
        Endpoint::Fake { .. } => measure_fake(request, task, &connector, control),
        Endpoint::Server(_) | Endpoint::File { .. } => {
            measure_really(request, task, connector, control)
        }
    }
}

/// Refuses a step that would never end.
fn check(task: &StepRequest<InsertWork>) -> Result<(), String> {
    let writes = &task.work.writes;
    let wrong = if task.clients == 0 {
        "no clients"
    } else if writes.rows == 0 {
        "no rows"
    } else if writes.rows_per_commit == 0 {
        "batches without rows"
    } else if writes.rows_per_second == Some(0) {
        "a rate of 0 rows per second"
    } else if task.work.shared && writes.deletes.is_some() {
        "deletes from a table shared by several clients"
    } else {
        return Ok(());
    };
    Err(format!("failed to measure: the request has {wrong}"))
}

/// Shared by the threads.
struct Shared {
    request: DriverRequest,
    task: StepRequest<InsertWork>,
    connector: Arc<Connector>,
    posts: Vec<Post>,
    recorders: Vec<Arc<WorkerRecorder>>,
    pairs: Vec<Pair>,
    clock: Clock,
    /// Unix seconds at zero of the clock.
    epoch: i64,
    gate: Option<Arc<std::sync::Mutex<()>>>,
    /// The CPUs of each worker and of the server's side of its connection.
    seats: Vec<CpuAssignment>,
}

impl Shared {
    fn maker(&self) -> Maker<'_> {
        Maker {
            request: &self.request,
            task: &self.task,
            connector: &self.connector,
            epoch: self.epoch,
            gate: self.gate.clone(),
        }
    }

    fn pair(&self, post: Post) -> &Pair {
        &self.pairs[self.maker().own(post.client)]
    }
}

fn measure_really(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    connector: Connector,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    let clock = Clock::real();
    let connector = Arc::new(connector);
    let mut notes = prepare::tables(request, task, &connector, control)?;
    let (plans, more) = prepare::query_plans(request, task, &connector);
    notes.extend(more);
    let writers = 1 + u32::from(task.work.writes.deletes.is_some());
    let pair = |client| Pair::new(prepare::turns(request, &task.work, client, 0), writers);
    let first = request.number_of(0);
    let posts = prepare::posts(task, first);
    let recorders = prepare::recorders(&task.work, &posts);
    let own_pid = task.server_pid.filter(|_| request.mark.is_none());
    let seating = confined::plan_seats(task.placement, posts.len() as u32, own_pid);
    notes.extend(seating.notes);
    let shared = Arc::new(Shared {
        request: request.clone(),
        task: task.clone(),
        connector,
        posts,
        recorders,
        pairs: (first..first + task.clients).map(pair).collect(),
        epoch: jiff::Timestamp::now().as_second() - (clock.now() as f64 / SECOND) as i64,
        clock,
        gate: prepare::gate(request.dialect),
        seats: seating.seats,
    });
    let mut pool = WorkerPool::start(shared.clock.clone(), members(&shared))?;
    let mut measured = run(&shared, &mut pool, control)?;
    measured.plans = plans;
    measured.notes.splice(..0, notes);
    control.send(&DriverEvent::Measured(Box::new(measured)))?;
    Ok(())
}

/// One thread for each worker.
fn members(shared: &Arc<Shared>) -> Vec<WorkerSpec<Ended>> {
    let member = |(index, post): (usize, &Post)| {
        let shared = Arc::clone(shared);
        let main = move |handle: &WorkerHandle<Ended>| live(&shared, index, handle);
        WorkerSpec::new(said(*post), main)
    };
    shared.posts.iter().enumerate().map(member).collect()
}

/// Leads the workers through the window.
fn run(
    shared: &Shared,
    pool: &mut WorkerPool<Ended>,
    control: &mut LabChannel,
) -> Result<Outcome, Stop> {
    let Shared { request, task, pairs, .. } = shared;
    let ready = pool.gather(control)?;
    let alone = ready.len() == 1;
    let server = confined::SeatedServer {
        dialect: request.dialect,
        pid: task.server_pid,
        alone,
        own: request.mark.is_none(),
    };
    let mut notes: Vec<String> = ready.iter().flat_map(|ready| ready.notes.clone()).collect();
    notes.extend(server.seat_all(pool, &ready, &shared.seats, control)?);
    if let Some(batches) = request.counted_events {
        let serving = server.serving(pool, &ready, control)?;
        let mut outcome = lead(&task.work, batches, pool, serving, control)?;
        outcome.notes = notes;
        return Ok(outcome);
    }
    let observer = Observer::start(request, task, &shared.connector);
    control.pause_if(request.pause)?;
    control.send(&DriverEvent::Warming)?;
    let start = window_start(shared, control);
    for (client, pair) in (request.number_of(0)..).zip(pairs) {
        pair.begin(prepare::turns(request, &task.work, client, start));
    }
    let main = meter::main_role(&task.work);
    let mut seconds = Seconds {
        start,
        limit: task.work.limit_seconds.map(|seconds| start + (seconds * SECOND) as u64),
        meter: RoleMeter::new(&shared.recorders, main, start).for_share_of(request, task.clients),
        series: SeriesOf::default(),
        observer: &observer,
    };
    let window = Window { start, end: u64::MAX, whole_events: true };
    let finished = pool.measure(window, &mut seconds, control)?;
    let ended = finished.done.into_iter().map(|done| done.map(|done| done.value));
    let ended: Vec<Ended> = ended.map(Option::unwrap_or_default).collect();
    let window_ns = finished.end.saturating_sub(start);
    let end = WindowEnd { window_ns, limited: finished.limited };
    let end = end.of_all_hosts(request, task, control)?;
    let mut outcome = meter::outcome((request, task), &shared.recorders, &ended, end.window_ns);
    if !request.is_shared(task.clients) {
        outcome.series = seconds.series.into_columns();
    }
    outcome.notes.splice(..0, notes);
    outcome.client_cpu = finished.cpu;
    meter::speak_for_all(&mut outcome, (request, task), end.limited, control)?;
    if end.limited {
        // A server this far behind may not answer further queries.
        return Ok(outcome);
    }
    outcome.notes.extend(observer.end());
    if let Some(bytes) = prepare::database_bytes(request, task, &shared.connector) {
        outcome.extra.insert(Metric::DatabaseSize, bytes / f64::from(1 << 30));
    }
    Ok(outcome)
}

/// The start of the window: on several hosts at the same moment, even if one of them was late.
fn window_start(shared: &Shared, control: &LabChannel) -> u64 {
    let now = || shared.clock.now();
    let is_shared = shared.request.is_shared(shared.task.clients);
    match control.start_by(now).filter(|_| is_shared) {
        Some(begin) => (begin + LATE.as_nanos() as u64).max(now()),
        None => now() + LEAD_NS,
    }
}

/// Cuts an interval each second until all workers are done or the step reaches its limit.
struct Seconds<'a> {
    start: u64,
    limit: Option<u64>,
    meter: RoleMeter,
    series: SeriesOf,
    observer: &'a Observer,
}

impl Intervals for Seconds<'_> {
    fn next_cut(&self) -> Option<u64> {
        Some(self.start + (u64::from(self.meter.seconds()) + 1) * SECOND as u64)
    }

    fn cut(&mut self, now: u64) -> StepInterval {
        let mut interval = self.meter.interval(now);
        self.observer.add_to(&mut interval.extra);
        self.series.add(&interval);
        interval
    }

    fn limit(&self) -> Option<u64> {
        self.limit
    }
}

/// The whole work of one worker. The error is a complete message.
fn live(shared: &Shared, index: usize, handle: &WorkerHandle<Ended>) -> Result<(), String> {
    let post = shared.posts[index];
    let maker = shared.maker();
    let pair = shared.pair(post);
    let seated = confined::seat_client(&shared.seats[index]);
    let mut session = maker.open(post)?;
    let is_counted = shared.request.counted_events.is_some();
    let thread = is_counted.then(|| session.serving_thread()).flatten();
    let connection_id = session.connection_id();
    let recorder = Arc::clone(&shared.recorders[index]);
    let mut worker = maker.worker(post, session, shared.clock.clone(), recorder, pair)?;
    let notes = Vec::from_iter(seated.err());
    handle.ready(Ready { connection_id, thread, notes, ..Ready::default() });
    let Some(order) = first_order(shared, &mut worker, handle)? else { return Ok(()) };
    let start = match order {
        Order::Measure(window) => window.start,
        Order::MeasureEvents(batches) => {
            let write = || count(&mut worker, batches, &shared.clock, thread);
            let (written, spent) = Spent::on(&shared.clock, write);
            written.map_err(|fault| format!("{}: {fault}", said(post)))?;
            handle.done(meter::ended(worker, WorkerCpu::default()), spent);
            return Ok(());
        }
        _ => return Ok(()),
    };
    shared.clock.wait_until(start);
    let work = || work(shared, post, &mut worker, start, handle);
    let (worked, mut spent) = Spent::on(&shared.clock, work);
    worked.map_err(|fault| format!("{}: {fault}", said(post)))?;
    let cpu = WorkerCpu { used_ns: spent.cpu_ns, share: spent.share() };
    if post.role == RoleKind::Query {
        // The window ends with the last writer; a query in flight then counts.
        spent.to = start;
    }
    handle.done(meter::ended(worker, cpu), spent);
    Ok(())
}

/// Answers pings and warms up until the order to measure; `None` if the step ends before.
fn first_order(
    shared: &Shared,
    worker: &mut Worker,
    handle: &WorkerHandle<Ended>,
) -> Result<Option<Order>, String> {
    while let Some(order) = handle.order() {
        match order {
            Order::Measure(_) | Order::MeasureEvents(_) => return Ok(Some(order)),
            Order::Ping => handle.answer(worker.session().ping(PINGS)),
            Order::WarmUpEvents(batches) => {
                handle.answer(write(worker, batches, &shared.clock));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The work of a worker in the window.
fn work(
    shared: &Shared,
    post: Post,
    worker: &mut Worker,
    start: u64,
    handle: &WorkerHandle<Ended>,
) -> Result<(), String> {
    let pair = shared.pair(post);
    match worker {
        Worker::Writer(writer, side) => {
            if write_all(shared, pair, writer, *side, handle)? {
                finish(shared, post, writer, *side, start)?;
                pair.done();
            }
        }
        Worker::Querier(querier) => {
            while !pair.is_over() && !handle.is_over() {
                querier.query()?;
            }
        }
    }
    Ok(())
}

/// Writes all batches of one side. False if the step ended meanwhile.
fn write_all(
    shared: &Shared,
    pair: &Pair,
    writer: &mut Writer,
    side: Side,
    handle: &WorkerHandle<Ended>,
) -> Result<bool, String> {
    loop {
        match pair.wait(side, || shared.clock.now(), || handle.is_over()) {
            Some(WriterTurn::Go { intended, ready, .. }) => writer.write(intended, ready)?,
            Some(WriterTurn::Resync) => {
                writer.resync()?;
                pair.resynced(shared.clock.now());
            }
            Some(WriterTurn::Over) => return Ok(true),
            Some(WriterTurn::Blocked) => {}
            None => return Ok(false),
        }
        if handle.is_over() {
            return Ok(false);
        }
    }
}

/// Work after a writer's rows: waits for the end of the schedule, makes indexes.
fn finish(
    shared: &Shared,
    post: Post,
    writer: &mut Writer,
    side: Side,
    start: u64,
) -> Result<(), String> {
    let Shared { request, task, .. } = shared;
    let last =
        prepare::pacer(request, &task.work, post.client, start).end(prepare::batches(&task.work));
    // A kept schedule lasts for its whole length, including the last gap.
    shared.clock.wait_until(last);
    let own_table = !task.work.shared || post.client == 0;
    if side == Side::Insert && own_table && !task.work.indexes.is_empty() {
        let table = shared.maker().table(post.client);
        let engine = task.storage_engine.as_deref();
        writer.make_indexes(&prepare::index_statements(&task.work, table, engine))?;
    }
    Ok(())
}

// A step with one inserter whose instructions are counted. All batches except the last ones are
// warm-up.

/// Leads the inserter through its batches and returns the counts of the last ones.
pub(super) fn lead(
    work: &InsertWork,
    batches: u64,
    pool: &mut WorkerPool<Ended>,
    serving: Option<u32>,
    control: &mut LabChannel,
) -> Result<Outcome, Stop> {
    let all = prepare::batches(work);
    let counted = batches.min(all);
    let events = Events { warm_up: all - counted, counted };
    let finished = pool.count_events(events, serving, &mut |_| Ok(()), control)?;
    let rows = counted * u64::from(work.writes.rows_per_commit.max(1));
    Ok(Outcome {
        events: counted,
        statements: rows,
        writes: counted,
        client_cpu: finished.cpu,
        ..Outcome::default()
    })
}

/// Writes the counted batches. Before each, waits until the server's `thread` of the inserter
/// sleeps.
pub(super) fn count(
    worker: &mut Worker,
    batches: u64,
    clock: &Clock,
    thread: Option<u32>,
) -> Result<(), String> {
    if let Worker::Writer(writer, _) = worker {
        writer.session.set_lull(thread);
    }
    write(worker, batches, clock)
}

/// Writes this number of batches.
pub(super) fn write(worker: &mut Worker, batches: u64, clock: &Clock) -> Result<(), String> {
    let Worker::Writer(writer, _) = worker else {
        return Err("failed to count: only inserters are counted".to_owned());
    };
    for _ in 0..batches {
        let now = clock.now();
        writer.write(now, now)?;
    }
    Ok(())
}

// Runs a step on the fake DBMS in one thread: the worker whose clock is furthest behind goes next,
// so that neither threads nor the host affect the result.

/// CPU time of the client per fake statement, microseconds.
const CPU_PER_STATEMENT_US: f64 = 5.0;

/// One worker and its state.
struct Member {
    post: Post,
    worker: Worker,
    clock: Clock,
    over: bool,
    blocked: bool,
    /// A batch taken before its time: intended, ready.
    pending: Option<(u64, u64)>,
}

/// Measures with fake workers.
pub(super) fn measure_fake(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    connector: &Connector,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    let first = request.number_of(0);
    let posts = prepare::posts(task, first);
    let recorders = prepare::recorders(&task.work, &posts);
    let writers = 1 + u32::from(task.work.writes.deletes.is_some());
    let pair = |client| Pair::new(prepare::turns(request, &task.work, client, 0), writers);
    let pairs: Vec<Pair> = (first..first + task.clients).map(pair).collect();
    let maker = Maker { request, task, connector, epoch: 0, gate: None };
    let mut members = fake_members(&maker, posts, &recorders, &pairs)?;
    control.pause_if(request.pause)?;
    control.send(&DriverEvent::Warming)?;
    // The fake clock begins at 0.
    control.send(&DriverEvent::WindowStart { at_ns: 0 })?;
    let mut meter = RoleMeter::new(&recorders, meter::main_role(&task.work), 0)
        .for_share_of(request, task.clients);
    let mut series = SeriesOf::default();
    let limit = task.work.limit_seconds.map_or(u64::MAX, |seconds| (seconds * SECOND) as u64);
    let mut over = false;
    while let Some(next) = earliest(&members) {
        let cut = (u64::from(meter.seconds()) + 1) * SECOND as u64;
        over = members[next].clock.now() >= limit && cut > limit;
        if over {
            break;
        }
        if members[next].clock.now() >= cut {
            let interval = meter.interval(cut);
            series.add(&interval);
            control.send(&DriverEvent::Interval(interval))?;
            continue;
        }
        step(request, task, &mut members, next, &pairs)?;
    }
    let writing = members.iter().filter(|member| member.post.role != RoleKind::Query);
    let last = writing.map(|member| member.clock.now()).max().unwrap_or(1);
    let end = if over { limit } else { last };
    let interval = meter.interval(end);
    series.add(&interval);
    control.send(&DriverEvent::Interval(interval))?;
    let end = WindowEnd { window_ns: end, limited: over }.of_all_hosts(request, task, control)?;
    let ended = |member: Member| ended(member, end.window_ns);
    let ended: Vec<Ended> = members.into_iter().map(ended).collect();
    let mut outcome = meter::outcome((request, task), &recorders, &ended, end.window_ns);
    if !request.is_shared(task.clients) {
        outcome.series = series.into_columns();
    }
    let statements = (outcome.reads + outcome.writes) as f64;
    outcome.client_cpu = CpuTime { user_us: statements * CPU_PER_STATEMENT_US, system_us: 0.0 };
    meter::speak_for_all(&mut outcome, (request, task), end.limited, control)?;
    outcome.notes.push("fake: latencies and client CPU are scripted".to_owned());
    control.send(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}

fn fake_members(
    maker: &Maker<'_>,
    posts: Vec<Post>,
    recorders: &[Arc<WorkerRecorder>],
    pairs: &[Pair],
) -> Result<Vec<Member>, String> {
    let mut members = Vec::new();
    for (post, recorder) in posts.into_iter().zip(recorders) {
        let session = maker.open(post)?;
        let Connection::Fake(fake) = &session else {
            return Err("failed to fake a session that is not fake".to_owned());
        };
        let clock = fake.clock();
        let pair = &pairs[maker.own(post.client)];
        let worker = maker.worker(post, session, clock.clone(), Arc::clone(recorder), pair)?;
        members.push(Member { post, worker, clock, over: false, blocked: false, pending: None });
    }
    Ok(members)
}

/// The worker that goes next.
fn earliest(members: &[Member]) -> Option<usize> {
    let able = |member: &Member| !member.over && !member.blocked;
    let all = members.iter().enumerate().filter(|(_, member)| able(member));
    all.min_by_key(|(index, member)| (member.clock.now(), *index)).map(|(index, _)| index)
}

/// One statement of one worker.
fn step(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    members: &mut [Member],
    index: usize,
    pairs: &[Pair],
) -> Result<(), String> {
    let member = &mut members[index];
    let client = member.post.client;
    let pair = &pairs[(client - request.number_of(0)) as usize];
    let now = member.clock.now();
    match &mut member.worker {
        Worker::Querier(querier) => {
            if pair.is_over() {
                member.over = true;
            } else {
                querier.query()?;
            }
        }
        Worker::Writer(writer, _) if member.pending.is_some() => {
            if let Some((intended, ready)) = member.pending.take() {
                writer.write(intended, ready)?;
            }
        }
        Worker::Writer(writer, side) => match pair.look(*side, now) {
            WriterTurn::Go { intended, ready, .. } => {
                // Others go first while this one waits.
                member.clock.wait_until(ready);
                member.pending = Some((intended, ready));
            }
            WriterTurn::Resync => {
                writer.resync()?;
                pair.resynced(member.clock.now());
            }
            WriterTurn::Blocked => {
                member.blocked = true;
                return Ok(());
            }
            WriterTurn::Over => {
                let pacer = prepare::pacer(request, &task.work, client, 0);
                member.clock.wait_until(pacer.end(prepare::batches(&task.work)));
                if *side == Side::Insert {
                    let statements = prepare::index_statements(&task.work, client + 1, None);
                    writer.make_indexes(&statements)?;
                }
                pair.done();
                member.over = true;
            }
        },
    }
    // A worker that waited for this one may look again.
    for other in members.iter_mut().filter(|other| other.post.client == client) {
        other.blocked = false;
    }
    Ok(())
}

fn ended(member: Member, end: u64) -> Ended {
    let statements = member.worker_operations();
    let used_ns = (statements as f64 * CPU_PER_STATEMENT_US * 1e3) as u64;
    let share = used_ns as f64 / end.max(1) as f64;
    meter::ended(member.worker, WorkerCpu { used_ns, share: share.min(1.0) })
}

impl Member {
    fn worker_operations(&self) -> u64 {
        match &self.worker {
            Worker::Writer(writer, _) => writer.recorder.operations(),
            Worker::Querier(querier) => querier.recorder.operations(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_driver::request::RequestBody;
    use rqps_model::insert::Query;
    use rqps_model::script::Protocol;

    /// Two clients, each with an inserter, a deleter and a query worker, on fake sessions and the
    /// clock of the host.
    fn step(change: impl FnOnce(&mut InsertWork)) -> Result<(), String> {
        let mut task = meter::outcome_tests::task(2);
        task.work.writes.rows_per_second = None;
        task.work.writes.insert_sql = "INSERT INTO pi{table} VALUES ".to_owned();
        task.work.queries.as_mut().unwrap().kinds = vec![Query {
            name: "point".to_owned(),
            prepare: None,
            sql: "SELECT 1 FROM pi{table}".to_owned(),
            protocol: Protocol::Text,
            parameters: Vec::new(),
        }];
        change(&mut task.work);
        let request = DriverRequest {
            tables: 2,
            ..DriverRequest::fake(RequestBody::Step(Box::new(task.with(task.work.clone().into()))))
        };
        let connector = Connector::new(&request)?;
        let mut sent = Vec::new();
        let mut control = LabChannel::alone(&mut sent);
        measure_really(&request, &task, connector, &mut control).map_err(|stop| match stop {
            Stop::Fault(fault) => fault,
            Stop::Gone | Stop::Answered => "gone".to_owned(),
        })
    }

    #[test]
    fn a_panic_of_any_worker_ends_the_step_with_its_message() {
        let check = |who: &str, change: fn(&mut InsertWork)| {
            let fault = step(change).unwrap_err();
            let rest = fault.strip_prefix(&format!("the {who} of client ")).unwrap_or(&fault);
            assert_eq!(&rest[1..], " panicked: told to panic", "{fault}");
        };
        check("inserter", |work| work.writes.insert_sql = "panic {table} ".to_owned());
        check("deleter", |work| {
            work.writes.rows = 1_000_000_000;
            work.writes.deletes.as_mut().unwrap().sql = "panic {key} {rows}".to_owned();
        });
        check("query worker", |work| {
            work.writes.rows = 1_000_000_000;
            work.queries.as_mut().unwrap().kinds[0].sql = "panic {table}".to_owned();
        });
    }
}
