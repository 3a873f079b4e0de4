//! Records of the workers, which the coordinator reads each second, and their sums by role.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::LabChannel;
use super::prepare::{self, BESIDE, Worker};
use super::workers::Notes;
use rqps_driver::Stop;
use rqps_driver::clock::SECOND;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::StepInterval;
use rqps_driver::recorder::{self, Recorder, Snapshot, histograms};
use rqps_driver::request::{DriverRequest, Met, StepRequest};
use rqps_model::dialect::Dialect;
use rqps_model::insert::InsertWork;
use rqps_model::metric::Metric;
use rqps_model::run::{CpuTime, OpenOutcome, Outcome, Role};

/// Kinds of workers in the order of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RoleKind {
    Insert,
    Delete,
    Query,
}

impl RoleKind {
    pub(crate) const ALL: [RoleKind; 3] = [RoleKind::Insert, RoleKind::Delete, RoleKind::Query];

    /// The name in records and columns.
    pub(crate) fn name(self) -> &'static str {
        match self {
            RoleKind::Insert => "inserts",
            RoleKind::Delete => "deletes",
            RoleKind::Query => "queries",
        }
    }
}

/// Upper bounds of the published response-time classes, nanoseconds; one more class follows.
const BUCKETS_NS: [u64; 9] = [
    256_000, 1_000_000, 4_000_000, 16_000_000, 64_000_000, 256_000_000, 1_000_000_000,
    4_000_000_000, 16_000_000_000,
];

/// The recorder of one worker.
pub(crate) struct WorkerRecorder {
    pub(crate) role: RoleKind,
    buckets: [AtomicU64; BUCKETS_NS.len() + 1],
    recorder: Recorder,
    operations: AtomicU64,
    rows: AtomicU64,
    /// Nanoseconds of all answered queries for the smallest key.
    asked_ns: AtomicU64,
    /// Start of the unanswered query for the smallest key; 0 if there is none.
    asking_from_ns: AtomicU64,
}

impl WorkerRecorder {
    /// `scheduled`: with separate service times, for operations on a schedule.
    pub(crate) fn new(role: RoleKind, scheduled: bool) -> WorkerRecorder {
        WorkerRecorder {
            role,
            buckets: Default::default(),
            recorder: Recorder::new(scheduled),
            operations: AtomicU64::new(0),
            rows: AtomicU64::new(0),
            asked_ns: AtomicU64::new(0),
            asking_from_ns: AtomicU64::new(0),
        }
    }

    /// Records one operation. Only the worker's thread calls this.
    #[inline]
    pub(crate) fn record(&self, latency_ns: u64, service_ns: u64, rows: u64) {
        let operations = self.operations.load(Ordering::Relaxed) + 1;
        self.operations.store(operations, Ordering::Relaxed);
        self.rows.store(self.rows.load(Ordering::Relaxed) + rows, Ordering::Relaxed);
        let bucket = &self.buckets[BUCKETS_NS.partition_point(|bound| *bound < latency_ns)];
        bucket.store(bucket.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.recorder.event(latency_ns, service_ns, operations);
    }

    pub(crate) fn error(&self) {
        self.recorder.error();
    }

    /// A query for the smallest key begins.
    pub(crate) fn ask(&self, now_ns: u64) {
        self.asking_from_ns.store(now_ns, Ordering::Relaxed);
    }

    /// The query was answered.
    pub(crate) fn answered(&self, now_ns: u64) {
        let from = self.asking_from_ns.swap(0, Ordering::Relaxed);
        let before = self.asked_ns.load(Ordering::Relaxed);
        self.asked_ns.store(before + now_ns.saturating_sub(from), Ordering::Relaxed);
    }

    /// Nanoseconds of all queries for the smallest key until now, including an unanswered one.
    fn asked_until(&self, now_ns: u64) -> u64 {
        let from = self.asking_from_ns.load(Ordering::Relaxed);
        let open = if from > 0 { now_ns.saturating_sub(from) } else { 0 };
        self.asked_ns.load(Ordering::Relaxed) + open
    }

    pub(crate) fn operations(&self) -> u64 {
        self.operations.load(Ordering::Relaxed)
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

/// CPU time of one worker at its end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WorkerCpu {
    pub(crate) used_ns: u64,
    pub(crate) share: f64,
}

/// A role's sums at one moment.
#[derive(Clone, Default)]
struct Sums {
    rows: u64,
    snapshot: Snapshot,
}

/// Turns records into intervals.
pub(crate) struct RoleMeter {
    recorders: Vec<Arc<WorkerRecorder>>,
    main: RoleKind,
    earlier: BTreeMap<RoleKind, Sums>,
    asked_ns: u64,
    from_ns: u64,
    second: u32,
    /// Clients of all hosts, if these workers are those of a share.
    all_clients: Option<u32>,
}

impl RoleMeter {
    /// Begins at the start of the window. `main`: the role that the step's rate counts.
    pub(crate) fn new(
        recorders: &[Arc<WorkerRecorder>],
        main: RoleKind,
        start_ns: u64,
    ) -> RoleMeter {
        let earlier = RoleKind::ALL.into_iter().map(|role| (role, Sums::default())).collect();
        let recorders = recorders.to_vec();
        RoleMeter {
            recorders,
            main,
            earlier,
            asked_ns: 0,
            from_ns: start_ns,
            second: 0,
            all_clients: None,
        }
    }

    /// For a driver with this share of the step's clients.
    pub(crate) fn for_share_of(self, request: &DriverRequest, clients: u32) -> RoleMeter {
        let all_clients = request.is_shared(clients).then(|| request.all_clients(clients));
        RoleMeter { all_clients, ..self }
    }

    /// The number of intervals so far.
    pub(crate) fn seconds(&self) -> u32 {
        self.second
    }

    /// The interval since the last call, with columns of each role.
    pub(crate) fn interval(&mut self, now_ns: u64) -> StepInterval {
        self.second += 1;
        let mut interval = StepInterval {
            second: self.second,
            seconds: now_ns.saturating_sub(self.from_ns) as f64 / SECOND,
            ..StepInterval::default()
        };
        self.from_ns = now_ns;
        for role in RoleKind::ALL {
            let of_role = self.recorders.iter().filter(|recorder| recorder.role == role);
            let sums = Sums {
                rows: of_role.clone().map(|recorder| recorder.rows()).sum(),
                snapshot: Snapshot::take(of_role.clone().map(|recorder| &recorder.recorder)),
            };
            let Some(earlier) = self.earlier.insert(role, sums.clone()) else { continue };
            let (events, values) = sums.snapshot.since(&earlier.snapshot, &[0.5, 0.95, 0.99, 1.0]);
            let us = |index: usize| values.get(index).map_or(0.0, |value| *value as f64 / 1e3);
            let rows = sums.rows - earlier.rows;
            interval.errors += sums.snapshot.errors - earlier.snapshot.errors;
            if role == self.main {
                interval.events = events;
                interval.statements = if role == RoleKind::Query { events } else { rows };
                (interval.p50_us, interval.p95_us) = (us(0), us(1));
                (interval.p99_us, interval.max_us) = (us(2), us(3));
            }
            let members = of_role.count();
            if members > 0 {
                let done = if role == RoleKind::Query { events } else { rows };
                let latencies = (us(2), us(3));
                recorder::add(role.name(), done as f64, latencies, &mut interval.extra);
            }
            if self.all_clients.is_some() && members > 0 {
                let latencies = sums.snapshot.latencies_since(&earlier.snapshot);
                if role == self.main {
                    interval.latency = Some(latencies.clone());
                }
                interval.latencies.insert(role.name().to_owned(), latencies);
            }
        }
        interval.extra.extend(self.asked(now_ns).map(|seconds| ("min_key_s".to_owned(), seconds)));
        interval
    }

    /// Seconds since the last call in which a client waited for its smallest key: the mean over the
    /// clients, or this share's part of the mean over those of all hosts. `None` without deletes.
    fn asked(&mut self, now_ns: u64) -> Option<f64> {
        let deleters = self.recorders.iter().filter(|recorder| recorder.role == RoleKind::Delete);
        let all: Vec<u64> = deleters.map(|recorder| recorder.asked_until(now_ns)).collect();
        let asked: u64 = all.iter().sum();
        let since = asked.saturating_sub(self.asked_ns);
        self.asked_ns += since;
        let clients = self.all_clients.map_or(all.len(), |clients| clients as usize);
        (!all.is_empty()).then(|| since as f64 / SECOND / clients as f64)
    }
}

/// Operations of each role by published class.
pub(crate) fn buckets(recorders: &[Arc<WorkerRecorder>]) -> BTreeMap<String, Vec<u64>> {
    let mut all = BTreeMap::new();
    for recorder in recorders {
        let sums: &mut Vec<u64> = all
            .entry(recorder.role.name().to_owned())
            .or_insert_with(|| vec![0; recorder.buckets.len()]);
        for (sum, bucket) in sums.iter_mut().zip(&recorder.buckets) {
            *sum += bucket.load(Ordering::Relaxed);
        }
    }
    all
}

/// The totals of each role. `targets`: requested operations per second.
pub(crate) fn roles(
    recorders: &[Arc<WorkerRecorder>],
    cpu: &[WorkerCpu],
    target: impl Fn(RoleKind) -> Option<f64>,
) -> BTreeMap<String, Role> {
    let mut roles = BTreeMap::new();
    for kind in RoleKind::ALL {
        let members: Vec<usize> =
            (0..recorders.len()).filter(|index| recorders[*index].role == kind).collect();
        if members.is_empty() {
            continue;
        }
        let own: Vec<&Recorder> = members.iter().map(|index| &recorders[*index].recorder).collect();
        let (latency, service) = histograms(&own);
        let used: u64 = members.iter().map(|index| cpu[*index].used_ns).sum();
        let role = Role {
            workers: members.len() as u32,
            operations: members.iter().map(|index| recorders[*index].operations()).sum(),
            rows: members.iter().map(|index| recorders[*index].rows()).sum(),
            target_per_second: target(kind),
            latency,
            service,
            cpu: CpuTime { user_us: used as f64 / 1e3, system_us: 0.0 },
            busiest: members.iter().map(|index| cpu[*index].share).fold(0.0, f64::max),
            seconds: None,
        };
        roles.insert(kind.name().to_owned(), role);
    }
    roles
}

// Observes the background activity of the server: queries its counters once a second during a
// step.

/// Time between two queries.
const OBSERVE: Duration = Duration::from_secs(1);
/// Time between two checks whether to end.
const LOOK: Duration = Duration::from_millis(50);
/// The ending of names of counters; all other names are levels.
const COUNTER: &str = "_total";

/// Values of the last query.
type Seen = BTreeMap<String, f64>;

/// A thread that queries the server once a second on its own connection.
pub(super) struct Observer {
    latest: Arc<Mutex<Seen>>,
    /// Values when columns were last made.
    before: Mutex<Seen>,
    stop: Arc<AtomicBool>,
    note: Option<String>,
}

impl Observer {
    /// Queries once, to find the queries that the server supports. On several hosts, only the
    /// driver of the first client observes.
    pub(super) fn start(
        request: &DriverRequest,
        task: &StepRequest<InsertWork>,
        connector: &Arc<Connector>,
    ) -> Observer {
        let mut observer = Observer {
            latest: Arc::default(),
            before: Mutex::default(),
            stop: Arc::default(),
            note: None,
        };
        let is_fake = request.dialect == Dialect::Fake;
        if task.work.observe.is_empty() || is_fake || !request.is_first() {
            return observer;
        }
        let (tell, told) = channel();
        let (latest, stop) = (Arc::clone(&observer.latest), Arc::clone(&observer.stop));
        let (connector, groups) = (Arc::clone(connector), task.work.observe.clone());
        // Not joined: it ends at most one query after the step.
        std::thread::spawn(move || observe(&connector, &groups, &tell, &latest, &stop));
        match told.recv() {
            Ok(Ok(seen)) => observer.before = Mutex::new(seen),
            Ok(Err(why)) => observer.note = Some(format!("the server is not observed: {why}")),
            Err(_) => observer.note = Some("the server is not observed".to_owned()),
        }
        observer
    }

    /// Adds a column per value: levels as they are, counters as their change since the last call.
    pub(super) fn add_to(&self, columns: &mut Seen) {
        let latest = lock(&self.latest).clone();
        let mut before = lock(&self.before);
        for (name, value) in &latest {
            match name.strip_suffix(COUNTER) {
                Some(short) => {
                    let moved = value - before.get(name).copied().unwrap_or(*value);
                    columns.insert(format!("server_{short}"), moved.max(0.0));
                }
                None => {
                    columns.insert(format!("server_{name}"), *value);
                }
            }
        }
        *before = latest;
    }

    /// Ends the thread. Returns a note if it could not observe.
    pub(super) fn end(self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.note
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first group of queries that the server answers with rows.
fn first(
    groups: &[Vec<String>],
    connector: &Connector,
) -> Result<(Connection, Vec<String>, Seen), String> {
    let mut session = connector.open(BESIDE)?;
    let mut why = String::new();
    for group in groups {
        match ask(&mut session, group) {
            Ok(seen) => return Ok((session, group.clone(), seen)),
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn ask(session: &mut Connection, questions: &[String]) -> Result<Seen, String> {
    let mut all = Seen::new();
    for question in questions {
        let rows = session.rows(question);
        let rows = rows.map_err(|error| format!("failed to ask the server: {error}"))?;
        let before = all.len();
        all.extend(rows.into_iter().filter_map(reading));
        if all.len() == before {
            return Err(format!("no numbers from `{question}`"));
        }
    }
    Ok(all)
}

/// Reads a row of name and value, or of an engine's name, nothing, and its status.
fn reading(row: Vec<Option<String>>) -> Option<(String, f64)> {
    let mut cells = row.into_iter().flatten();
    let (name, value) = (cells.next()?, cells.next()?);
    match cells.next() {
        Some(status) => Some(("redo_used".to_owned(), redo_used(&status)?)),
        None => Some((column(&name), value.parse().ok()?)),
    }
}

/// Bytes of the redo log since the last checkpoint, from `SHOW ENGINE INNODB STATUS`.
fn redo_used(status: &str) -> Option<f64> {
    let number = |head: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(head))?;
        line.trim().parse::<f64>().ok()
    };
    Some(number("Log sequence number")? - number("Last checkpoint at")?)
}

/// A MySQL status variable as a column; counters are known by name.
fn column(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let short = name.strip_prefix("innodb_").unwrap_or(&name);
    match short {
        "buffer_pool_pages_flushed" => format!("pages_flushed{COUNTER}"),
        "buffer_pool_wait_free" => format!("free_page_waits{COUNTER}"),
        "log_waits" => format!("log_waits{COUNTER}"),
        "rocksdb_stall_micros" => format!("write_stall_us{COUNTER}"),
        "buffer_pool_pages_dirty" => "pages_dirty".to_owned(),
        "redo_log_logical_size" | "checkpoint_age" => "redo_used".to_owned(),
        "checkpoint_max_age" => "redo_capacity".to_owned(),
        other => other.to_owned(),
    }
}

/// The work of the observer's thread. `tell` receives the first answer, or the reason why there is
/// none.
fn observe(
    connector: &Connector,
    groups: &[Vec<String>],
    tell: &Sender<Result<Seen, String>>,
    latest: &Mutex<Seen>,
    stop: &AtomicBool,
) {
    let (mut session, questions) = match first(groups, connector) {
        Ok((session, questions, seen)) => {
            *lock(latest) = seen.clone();
            let _ = tell.send(Ok(seen));
            (session, questions)
        }
        Err(why) => {
            let _ = tell.send(Err(why));
            return;
        }
    };
    let mut next = Instant::now() + OBSERVE;
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() < next {
            std::thread::sleep(LOOK);
            continue;
        }
        next += OBSERVE;
        // The workers report a server that does not answer.
        let Ok(seen) = ask(&mut session, &questions) else { return };
        *lock(latest) = seen;
    }
}

// Adds up the counts of a step's workers.

/// If queries return a smaller share of the expected rows, the data are wrong. Gaps between keys
/// and ranges at the end of an index cost a few per cent.
const FEW_ROWS: f64 = 0.5;

/// Counts of a worker at its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    pub(crate) notes: Notes,
    /// Bytes of replies to queries.
    pub(crate) bytes: u64,
    pub(crate) cpu: WorkerCpu,
}

/// Takes the counts from a worker.
pub(crate) fn ended(worker: Worker, cpu: WorkerCpu) -> Ended {
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

/// The role that the rate of a step counts.
pub(crate) fn main_role(work: &InsertWork) -> RoleKind {
    if work.queries.is_some() { RoleKind::Query } else { RoleKind::Insert }
}

/// The end of a window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowEnd {
    /// Length of the window, nanoseconds.
    pub(crate) window_ns: u64,
    /// True if the step reached its limit.
    pub(crate) limited: bool,
}

impl WindowEnd {
    /// The end for the clients of all hosts: that of the last writer of all, so that rates add up.
    pub(crate) fn of_all_hosts(
        self,
        request: &DriverRequest,
        task: &StepRequest<InsertWork>,
        control: &mut LabChannel,
    ) -> Result<WindowEnd, Stop> {
        if !request.is_shared(task.clients) {
            return Ok(self);
        }
        let window_ns = control.meet(self.window_ns)?.largest;
        let limited = control.meet(self.limited.into())?.largest > 0;
        Ok(WindowEnd { window_ns, limited })
    }
}

/// Makes one driver tell the figures that do not add up over hosts: that of the first client. Cuts
/// the step if it reached its limit.
pub(crate) fn speak_for_all(
    outcome: &mut Outcome,
    (request, task): (&DriverRequest, &StepRequest<InsertWork>),
    limited: bool,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    let is_shared = request.is_shared(task.clients);
    let mut meet =
        |number: u64| if is_shared { control.meet(number) } else { Ok(Met::alone(number)) };
    let role = |kind: RoleKind| outcome.roles.get(kind.name());
    if limited {
        let inserted = meet(role(RoleKind::Insert).map_or(0, |role| role.rows))?.sum;
        outcome.cut = cut(&task.work, inserted, request.all_clients(task.clients))
            .filter(|_| request.is_first());
    }
    if !is_shared {
        return Ok(());
    }
    let query = role(RoleKind::Query).map(|role| (role.operations, role.rows));
    if let Some((operations, rows)) = query {
        let (operations, rows) = (meet(operations)?.sum, meet(rows)?.sum);
        outcome.extra.remove(&Metric::RowsPerQuery);
        if operations > 0 && request.is_first() {
            outcome.extra.insert(Metric::RowsPerQuery, rows as f64 / operations as f64);
        }
    }
    // Of times, the longest of all hosts counts. The factor is the nanoseconds of the unit.
    let mut longest = |metric: Metric, unit_ns: f64| -> Result<(), Stop> {
        if let Some(value) = outcome.extra.remove(&metric) {
            let longest = meet((value * unit_ns).round() as u64)?.largest;
            if request.is_first() {
                outcome.extra.insert(metric, longest as f64 / unit_ns);
            }
        }
        Ok(())
    };
    longest(Metric::IndexSeconds, 1e9)?;
    longest(Metric::MinKeyQuery, 1e6)
}

/// The outcome of a window of `window_ns`.
pub(crate) fn outcome(
    (request, task): (&DriverRequest, &StepRequest<InsertWork>),
    recorders: &[Arc<WorkerRecorder>],
    ended: &[Ended],
    window_ns: u64,
) -> Outcome {
    let work = &task.work;
    let seconds = window_ns as f64 / SECOND;
    let cpu: Vec<WorkerCpu> = ended.iter().map(|ended| ended.cpu).collect();
    let target = |role| match role {
        RoleKind::Query => None,
        _ => prepare::batches_per_second(work).map(|rate| rate * f64::from(task.clients)),
    };
    let roles = roles(recorders, &cpu, target);
    let of = |role: RoleKind| roles.get(role.name());
    let operations = |role| of(role).map_or(0, |role| role.operations);
    let rows = |role| of(role).map_or(0, |role| role.rows);
    let (inserts, deletes, queries) = (RoleKind::Insert, RoleKind::Delete, RoleKind::Query);
    let main = main_role(work);
    let counted = if main == queries {
        operations(queries)
    } else {
        // Of several hosts, the first counts the rows of all tables.
        let indexes = !work.indexes.is_empty() && request.is_first();
        rows(inserts) + if indexes { work.indexed_rows } else { 0 }
    };
    let mut outcome = Outcome {
        seconds,
        events: operations(main),
        statements: counted,
        reads: operations(queries),
        writes: operations(inserts) + operations(deletes),
        rows: rows(queries),
        affected: rows(inserts) + rows(deletes),
        bytes: ended.iter().map(|ended| ended.bytes).sum(),
        latency: of(main).map(|role| role.latency.clone()).unwrap_or_default(),
        service: of(main).and_then(|role| role.service.clone()),
        client_busiest: cpu.iter().map(|cpu| cpu.share).fold(0.0, f64::max),
        ..Outcome::default()
    };
    for ended in ended {
        for (code, count) in &ended.notes.errors {
            *outcome.errors.entry(code.clone()).or_insert(0) += count;
        }
    }
    if let Some(rate) = prepare::batches_per_second(work) {
        let behind = ended.iter().map(|ended| ended.notes.behind_ns).max().unwrap_or(0);
        outcome.open = Some(OpenOutcome {
            due: (rate * f64::from(task.clients) * seconds).round() as u64,
            behind_seconds_max: behind as f64 / SECOND,
        });
    }
    outcome.extra = extra(work, &roles, ended, seconds);
    outcome.notes = notes(work, &roles, ended);
    outcome.roles = roles;
    outcome.buckets = buckets(recorders);
    outcome
}

/// Metrics of this benchmark that only the driver knows.
fn extra(
    work: &InsertWork,
    roles: &BTreeMap<String, Role>,
    ended: &[Ended],
    seconds: f64,
) -> BTreeMap<Metric, f64> {
    let mut extra = BTreeMap::new();
    let per_second = |role: RoleKind| {
        let rows = roles.get(role.name()).map_or(0, |role| role.rows);
        (seconds > 0.0 && rows > 0).then(|| rows as f64 / seconds)
    };
    if work.queries.is_some() {
        extra.extend(per_second(RoleKind::Insert).map(|rate| (Metric::InsertRate, rate)));
    }
    extra.extend(per_second(RoleKind::Delete).map(|rate| (Metric::DeleteRate, rate)));
    let longest = |pick: fn(&Notes) -> u64| ended.iter().map(|ended| pick(&ended.notes)).max();
    if !work.indexes.is_empty() {
        let index = longest(|notes| notes.index_ns).unwrap_or(0);
        extra.insert(Metric::IndexSeconds, index as f64 / SECOND);
    }
    if let Some(role) = roles.get(RoleKind::Query.name()).filter(|role| role.operations > 0) {
        extra.insert(Metric::RowsPerQuery, role.rows as f64 / role.operations as f64);
    }
    if work.writes.deletes.is_some() {
        let min_query = longest(|notes| notes.resync_longest_ns).unwrap_or(0);
        extra.insert(Metric::MinKeyQuery, min_query as f64 / 1e6);
    }
    extra
}

/// Says why a step of so many clients ended before all rows were in: its limit, and its progress.
fn cut(work: &InsertWork, inserted: u64, clients: u32) -> Option<String> {
    let of_client = prepare::batches(work) * u64::from(work.writes.rows_per_commit.max(1));
    let limit = work.limit_seconds?;
    let wanted = of_client * u64::from(clients);
    let indexes = if work.indexes.is_empty() { "" } else { ", no indexes made" };
    Some(format!(
        "the step reached its time limit of {limit:.0} s (step_limit): {inserted} of {wanted} rows \
         inserted{indexes}"
    ))
}

fn notes(work: &InsertWork, roles: &BTreeMap<String, Role>, ended: &[Ended]) -> Vec<String> {
    let mut notes = Vec::new();
    let short: u64 = ended.iter().map(|ended| ended.notes.short_deletes).sum();
    if short > 0 {
        notes.push(format!("deletes that found too few rows: {short}"));
    }
    if let (Some(queries), Some(role)) = (&work.queries, roles.get(RoleKind::Query.name()))
        && (role.rows as f64)
            < FEW_ROWS * (role.operations * u64::from(queries.rows_per_query)) as f64
    {
        notes.push(format!(
            "queries returned {:.3} rows on average, {} expected",
            role.rows as f64 / role.operations.max(1) as f64,
            queries.rows_per_query
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_driver::recorder::SeriesOf;

    #[test]
    fn classes_have_inclusive_bounds() {
        let recorder = Arc::new(WorkerRecorder::new(RoleKind::Insert, false));
        for latency in [1, 256_000, 256_001, 1_000_000, 16_000_000_000, 16_000_000_001] {
            recorder.record(latency, latency, 50);
        }
        let all = buckets(&[Arc::clone(&recorder), recorder]);
        assert_eq!(all["inserts"], [4, 4, 0, 0, 0, 0, 0, 0, 2, 2]);
    }

    #[test]
    fn intervals_have_columns_of_each_role() {
        let insert = Arc::new(WorkerRecorder::new(RoleKind::Insert, true));
        let query = Arc::new(WorkerRecorder::new(RoleKind::Query, false));
        let recorders = [Arc::clone(&insert), Arc::clone(&query)];
        let mut meter = RoleMeter::new(&recorders, RoleKind::Query, 0);
        insert.record(9_000_000, 1_000_000, 50);
        query.record(20_000, 20_000, 10);
        query.record(40_000, 40_000, 10);
        let first = meter.interval(1_000_000_000);
        assert_eq!((first.events, first.statements), (2, 2));
        assert_eq!((first.extra["inserts"], first.extra["queries"]), (50.0, 2.0));
        assert!((first.extra["inserts_max_us"] / 9_000.0 - 1.0).abs() < 0.001);
        assert!(!first.extra.contains_key("deletes"), "nobody deletes");
        insert.record(1_000_000, 1_000_000, 50);
        let second = meter.interval(1_500_000_000);
        assert_eq!((second.second, second.events, second.extra["inserts"]), (2, 0, 50.0));
        let mut series = SeriesOf::default();
        [first, second, meter.interval(1_500_000_001)].iter().for_each(|all| series.add(all));
        assert_eq!(series.into_columns()["inserts"], [50.0, 100.0]);
    }

    #[test]
    fn waiting_for_the_smallest_key_is_told_while_it_lasts() {
        let deleters = [(); 2].map(|()| Arc::new(WorkerRecorder::new(RoleKind::Delete, false)));
        let mut meter = RoleMeter::new(&deleters, RoleKind::Delete, 0);
        let mut waited = |until_ns: u64| meter.interval(until_ns).extra["min_key_s"];
        deleters[0].ask(250_000_000);
        assert_eq!(waited(1_000_000_000), 0.375, "of two clients one waited for 0.75 s");
        assert_eq!(waited(2_000_000_000), 0.5);
        deleters[0].answered(2_500_000_000);
        assert_eq!(waited(3_000_000_000), 0.25);
        assert_eq!(waited(4_000_000_000), 0.0);
    }

    #[test]
    fn status_of_every_kind_becomes_columns() {
        let row = |cells: &[&str]| reading(cells.iter().map(|cell| Some((*cell).into())).collect());
        let is = |name: &str, value| Some((name.to_owned(), value));
        assert_eq!(row(&["Innodb_redo_log_logical_size", "46690816"]), is("redo_used", 46690816.0));
        assert_eq!(row(&["Innodb_checkpoint_max_age", "80"]), is("redo_capacity", 80.0));
        assert_eq!(row(&["checkpoints_total", "3"]), is("checkpoints_total", 3.0));
        let status = "LOG\n---\nLog sequence number 1635001\nLog flushed up to   1634900\n\
                      Pages flushed up to 1630000\nLast checkpoint at  1626000\n";
        assert_eq!(row(&["InnoDB", "", status]), is("redo_used", 9001.0));
        assert_eq!(row(&["InnoDB", "", "no such line"]), None);
        assert_eq!(row(&["Innodb_redo_log_enabled", "ON"]), None);
    }
}

#[cfg(test)]
pub(crate) mod outcome_tests {
    use super::*;
    use rqps_driver::request::{FileLoad, RequestBody};
    use rqps_model::benchmark::{Pace, Placement, RateUnit};
    use rqps_model::insert::{Deletes, Pacing, PriceKind, Queries, Writes};

    /// A query step with deletes.
    pub(crate) fn task(clients: u32) -> StepRequest<InsertWork> {
        let deletes = Deletes { sql: String::new(), min_sql: String::new(), resync_every: 0 };
        let work = InsertWork {
            shared: false,
            setup: Vec::new(),
            maintenance: Vec::new(),
            price: PriceKind::Whole,
            writes: Writes {
                insert_sql: String::new(),
                rows: 1000,
                rows_per_commit: 50,
                rows_per_second: Some(1000),
                pacing: Pacing::Open,
                queue: 8,
                deletes: Some(deletes),
            },
            indexes: Vec::new(),
            indexes_one_by_one: Vec::new(),
            indexed_rows: 0,
            queries: Some(Queries {
                workers: 1,
                kinds: Vec::new(),
                rows_per_query: 10,
                max_sql: None,
            }),
            observe: Vec::new(),
            size: Vec::new(),
            limit_seconds: None,
        };
        StepRequest {
            work,
            clients,
            warmup_seconds: 0.0,
            seconds: 1.0,
            pace: Pace::Closed,
            rate: RateUnit::RowsInserted,
            placement: Placement::Os,
            server_pid: None,
            plans: false,
            storage_engine: None,
            cache: None,
        }
    }

    /// Each of three clients has an inserter, a deleter and a query worker.
    #[test]
    fn the_busiest_of_all_workers_of_all_clients_counts() {
        let task = task(3);
        let recorders = prepare::recorders(&task.work, &prepare::posts(&task, 0));
        assert_eq!(recorders.len(), 9);
        for busy in 0..9 {
            let mut ended = vec![Ended::default(); 9];
            for (place, ended) in ended.iter_mut().enumerate() {
                let share = if place == busy { 0.93 } else { 0.1 };
                ended.cpu = WorkerCpu { used_ns: (share * 1e9) as u64, share };
            }
            let body = RequestBody::LoadFiles(FileLoad::default());
            let request = DriverRequest::fake(body);
            let outcome = outcome((&request, &task), &recorders, &ended, 1_000_000_000);
            assert_eq!(outcome.client_busiest, 0.93, "worker {busy}");
            let role = recorders[busy].role.name();
            for (name, of_role) in &outcome.roles {
                assert_eq!(of_role.busiest, if name == role { 0.93 } else { 0.1 }, "{name}");
            }
        }
    }
}
