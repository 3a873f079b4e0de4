//! Makes the workers of a step: their roles, tables and random streams.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::LabChannel;
use super::meter::{RoleKind, WorkerRecorder};
use super::workers::{
    self, Batch, Notes, Pacer, Pair, Querier, Side, Template, Turns, WallTime, Writer, for_table,
};
use crate::rows::Rows;
use rqps_driver::Stop;
use rqps_driver::clock::Clock;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::DriverEvent;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::script::explain as plans;
use rqps_driver::worker_pool::{Spent, WorkerHandle, WorkerPool, WorkerSpec};
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::insert::{InsertWork, Maintenance, Pacing};

/// One worker of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Post {
    pub(crate) role: RoleKind,
    pub(crate) client: u32,
    /// Index among the query workers of the client.
    pub(crate) thread: u32,
    /// Number among the workers of all clients, on whichever host.
    pub(crate) number: u32,
}

/// All workers of a driver: for each of its clients, from number `first` on, the inserter, the
/// deleter, the query workers.
pub(crate) fn posts(task: &StepRequest<InsertWork>, first: u32) -> Vec<Post> {
    let threads = task.work.queries.as_ref().map_or(0, |queries| queries.workers);
    let mut roles = vec![(RoleKind::Insert, 0)];
    roles.extend(task.work.writes.deletes.is_some().then_some((RoleKind::Delete, 0)));
    roles.extend((0..threads).map(|thread| (RoleKind::Query, thread)));
    let of_client = |client: u32| {
        let number = client * roles.len() as u32;
        let post = move |(place, (role, thread)): (u32, (RoleKind, u32))| Post {
            role,
            client,
            thread,
            number: number + place,
        };
        (0..).zip(roles.clone()).map(post)
    };
    (first..first + task.clients).flat_map(of_client).collect()
}

/// Number of batches of each client.
pub(crate) fn batches(work: &InsertWork) -> u64 {
    work.writes.rows.div_ceil(u64::from(work.writes.rows_per_commit.max(1)))
}

/// Requested operations per second of a client's writers, if there is a rate.
pub(crate) fn batches_per_second(work: &InsertWork) -> Option<f64> {
    let rate = work.writes.rows_per_second?;
    Some(f64::from(rate) / f64::from(work.writes.rows_per_commit.max(1)))
}

/// The schedule of client `client` for a window that begins at `start`.
pub(crate) fn turns(request: &DriverRequest, work: &InsertWork, client: u32, start: u64) -> Turns {
    let writes = &work.writes;
    let pacer = pacer(request, work, client, start);
    let deletes = writes.deletes.as_ref().map(|deletes| deletes.resync_every);
    Turns::new(batches(work), writes.queue, start, pacer, deletes)
}

/// The pace of client `client` in a window that begins at `start`.
pub(crate) fn pacer(request: &DriverRequest, work: &InsertWork, client: u32, start: u64) -> Pacer {
    let writes = &work.writes;
    let phase = Rng::stream(request.seed, "iibench phase", u64::from(client)).unit();
    Pacer::new(writes.rows_per_second, writes.rows_per_commit, writes.pacing, start, phase)
}

/// One recorder for each worker.
pub(crate) fn recorders(work: &InsertWork, posts: &[Post]) -> Vec<Arc<WorkerRecorder>> {
    let open = work.writes.rows_per_second.is_some() && work.writes.pacing == Pacing::Open;
    let recorder = |post: &Post| {
        let scheduled = open && post.role != RoleKind::Query;
        Arc::new(WorkerRecorder::new(post.role, scheduled))
    };
    posts.iter().map(recorder).collect()
}

/// The worker for a post.
pub(crate) enum Worker {
    Writer(Box<Writer>, Side),
    Querier(Box<Querier>),
}

impl Worker {
    /// Its connection.
    pub(crate) fn session(&mut self) -> &mut Connection {
        match self {
            Worker::Writer(writer, _) => &mut writer.session,
            Worker::Querier(querier) => &mut querier.session,
        }
    }
}

/// Makes the workers of a step.
pub(crate) struct Maker<'a> {
    pub(crate) request: &'a DriverRequest,
    pub(crate) task: &'a StepRequest<InsertWork>,
    pub(crate) connector: &'a Connector,
    /// Unix seconds at zero of the clock.
    pub(crate) epoch: i64,
    pub(crate) gate: Option<Arc<Mutex<()>>>,
}

impl Maker<'_> {
    /// The place of a client among those of this driver.
    pub(crate) fn own(&self, client: u32) -> usize {
        (client - self.request.number_of(0)) as usize
    }

    /// The table of a client.
    pub(crate) fn table(&self, client: u32) -> u32 {
        if self.task.work.shared { 1 } else { client + 1 }
    }

    /// Opens the connection of a post.
    pub(crate) fn open(&self, post: Post) -> Result<Connection, String> {
        let who = said(post);
        self.connector.open(post.number).map_err(|fault| format!("{who}: {fault}"))
    }

    /// The worker of a post on its connection.
    pub(crate) fn worker(
        &self,
        post: Post,
        mut session: Connection,
        clock: Clock,
        recorder: Arc<WorkerRecorder>,
        pair: &Pair,
    ) -> Result<Worker, String> {
        let Maker { request, task, .. } = *self;
        let work = &task.work;
        let table = self.table(post.client);
        let side = match post.role {
            RoleKind::Insert => Side::Insert,
            RoleKind::Delete => Side::Delete,
            RoleKind::Query => {
                let Some(queries) = &work.queries else {
                    let why = "failed to start a query worker: the step has no queries";
                    return Err(why.to_owned());
                };
                // Own streams: no two workers send the same queries.
                let stream = u64::from(post.client) << 32 | u64::from(post.thread);
                let rng = Rng::stream(request.seed, "iibench queries", stream);
                let min_key = Arc::clone(&pair.min_key);
                min_key.store(0, Ordering::Relaxed);
                return Ok(Worker::Querier(Box::new(Querier {
                    kinds: workers::prepare(&mut session, queries, table)?,
                    session,
                    clock,
                    recorder,
                    dialect: request.dialect,
                    rng,
                    price: work.price,
                    min_key,
                    max_key: 0,
                    max_sql: queries.max_sql.as_ref().map(|sql| for_table(sql, table, None)),
                    until_refresh: 0,
                    text: Vec::with_capacity(1024),
                    failed_in_a_row: 0,
                    errors: BTreeMap::new(),
                    bytes: 0,
                })));
            }
        };
        let rows_per_batch = work.writes.rows_per_commit.max(1);
        let writer = Writer {
            session,
            clock,
            recorder,
            dialect: request.dialect,
            batch: self.batch(side, post.client),
            rows_per_batch,
            min_key: Arc::clone(&pair.min_key),
            gate: self.gate.clone(),
            text: Vec::with_capacity(rows_per_batch as usize * 80 + 256),
            notes: Notes::default(),
        };
        Ok(Worker::Writer(Box::new(writer), side))
    }

    fn batch(&self, side: Side, client: u32) -> Batch {
        let Maker { request, task, .. } = *self;
        let engine = task.storage_engine.as_deref();
        let in_table = |sql: &str| for_table(sql, self.table(client), engine);
        match (side, &task.work.writes.deletes) {
            (Side::Delete, Some(deletes)) => Batch::Delete {
                sql: Template::new(&in_table(&deletes.sql), &["{key}", "{rows}"]),
                min_sql: in_table(&deletes.min_sql),
                key: 0,
            },
            _ => Batch::Insert {
                head: in_table(&task.work.writes.insert_sql).into_bytes(),
                rows: Box::new(Rows::new(request.seed, client, task.work.price)),
                time: WallTime::new(self.epoch),
            },
        }
    }
}

/// The statements that make the indexes of a client's table, for its storage engine.
pub(crate) fn index_statements(
    work: &InsertWork,
    table: u32,
    storage_engine: Option<&str>,
) -> Vec<String> {
    let one_by_one = matches!(storage_engine, Some("myrocks" | "rocksdb"));
    let statements = if one_by_one { &work.indexes_one_by_one } else { &work.indexes };
    statements.iter().map(|sql| for_table(sql, table, storage_engine)).collect()
}

/// A lock for DBMSs with one writer at a time: writers wait for it instead of polling.
pub(crate) fn gate(dialect: Dialect) -> Option<Arc<Mutex<()>>> {
    (dialect == Dialect::Sqlite).then(Arc::default)
}

/// The name of a worker: `the inserter of client 2`.
pub(crate) fn said(post: Post) -> String {
    let who = match post.role {
        RoleKind::Insert => "inserter",
        RoleKind::Delete => "deleter",
        RoleKind::Query => "query worker",
    };
    let which = if post.thread > 0 { format!(" {}", post.thread + 1) } else { String::new() };
    format!("the {who}{which} of client {}", post.client + 1)
}

// Work before the window: tables, maintenance, query plans.

/// Time between two progress messages during maintenance.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// First number of connections that are not workers.
pub(super) const BESIDE: u32 = 1 << 20;

/// The tables of a step on all hosts.
#[derive(Clone, Copy)]
struct StepTables<'a> {
    task: &'a StepRequest<InsertWork>,
    /// Clients of all hosts.
    clients: u32,
}

impl StepTables<'_> {
    fn numbers(self) -> std::ops::RangeInclusive<u32> {
        1..=if self.task.work.shared { 1 } else { self.clients }
    }
}

/// Makes tables and does the maintenance before a step, for the clients of all hosts: the driver of
/// the first client does, and the others wait. Returns notes.
///
/// # Errors
///
/// A statement fails, or the lab is gone.
pub(super) fn tables(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    connector: &Arc<Connector>,
    control: &mut LabChannel,
) -> Result<Vec<String>, Stop> {
    let tables = StepTables { task, clients: request.all_clients(task.clients) };
    let notes =
        if request.is_first() { tables_of_all(tables, connector, control)? } else { Vec::new() };
    if request.is_shared(task.clients) {
        control.meet(0)?;
    }
    Ok(notes)
}

fn tables_of_all(
    tables: StepTables<'_>,
    connector: &Arc<Connector>,
    control: &mut LabChannel,
) -> Result<Vec<String>, Stop> {
    let task = tables.task;
    let work = &task.work;
    let mut notes = Vec::new();
    let engine = task.storage_engine.as_deref();
    if !work.setup.is_empty() {
        let mut session = connector.open(BESIDE)?;
        for table in tables.numbers() {
            for sql in &work.setup {
                let sql = for_table(sql, table, engine);
                connector
                    .make(&mut session, &sql)
                    .map_err(|error| format!("failed to make a table with {sql:?}: {error}"))?;
            }
        }
    }
    for maintenance in &work.maintenance {
        let began = Instant::now();
        maintain(tables, maintenance, connector, control)?;
        control
            .sleep(Duration::try_from_secs_f64(maintenance.pause_seconds).unwrap_or_default())?;
        if maintenance.wait {
            let took = began.elapsed().as_secs_f64();
            notes.push(format!("before the step: {} took {took:.1} s", maintenance.sql));
        } else {
            notes.push(format!("beside the step: {}", maintenance.sql));
        }
    }
    Ok(notes)
}

/// Runs one statement on all tables at the same time.
fn maintain(
    tables: StepTables<'_>,
    maintenance: &Maintenance,
    connector: &Arc<Connector>,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    let member = |table| {
        let engine = tables.task.storage_engine.as_deref();
        let sql = for_table(&maintenance.sql, table, engine);
        let connector = Arc::clone(connector);
        let main = move |handle: &WorkerHandle<()>| {
            let result = connector.open(BESIDE + table)?.simple(&sql);
            result.map_err(|error| format!("failed to run {sql:?}: {error}"))?;
            handle.done((), Spent::default());
            Ok(())
        };
        let name = format!("the maintenance of table {table}");
        WorkerSpec::new(name, main)
    };
    let mut pool = WorkerPool::start(Clock::real(), tables.numbers().map(member).collect())?;
    if !maintenance.wait {
        // It continues beside the step, which does not depend on its end.
        return Ok(());
    }
    let what = maintenance.sql.clone();
    let mut beat =
        |control: &mut LabChannel| Ok(control.send(&DriverEvent::Waiting { what: what.clone() })?);
    pool.finish(SIGN_OF_LIFE, &mut beat, control)?;
    Ok(())
}

/// The plan of each kind of query on table 1, and a note for each missing plan. On several hosts,
/// only the driver of the first client asks the server.
pub(super) fn query_plans(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    connector: &Arc<Connector>,
) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut plans, mut notes) = (BTreeMap::new(), Vec::new());
    let queries = task.work.queries.as_ref().filter(|_| request.is_first());
    let Some(queries) = queries else { return (plans, notes) };
    let mut session = match connector.open(BESIDE) {
        Ok(session) => session,
        Err(fault) => return (plans, vec![format!("no query plans: {fault}")]),
    };
    for query in &queries.kinds {
        if let Some(prepare) = &query.prepare {
            // If it fails, the plan fails too and reports the error.
            let _ = session.simple(&for_table(prepare, 1, None));
        }
        let mut sql = for_table(&query.sql, 1, None).replace('?', "7");
        for number in 1..=query.parameters.len() {
            // Ten different keys, because MariaDB looks a key up while it plans.
            sql = sql.replace(&format!("{{{number}}}"), &(number * 100).to_string());
        }
        match plans::explain_one(request.dialect, &sql, &mut session) {
            Ok(plan) => {
                plans.insert(query.name.clone(), plan);
            }
            Err(error) => notes.push(format!("no query plan of {}: {error}", query.name)),
        }
    }
    (plans, notes)
}

/// Bytes of the tables and their indexes. `None` if the DBMS has no query for it. On several hosts,
/// only the driver of the first client asks the server.
pub(super) fn database_bytes(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    connector: &Connector,
) -> Option<f64> {
    if task.work.size.is_empty() || !request.is_first() {
        return None;
    }
    let mut session = connector.open(BESIDE).ok()?;
    let marked: Vec<String> = connector.size_of_marked().into_iter().collect();
    if !marked.is_empty() {
        // MySQL 8 otherwise answers with statistics up to a day old; other versions do not know the
        // setting.
        session.simple("SET SESSION information_schema_stats_expiry = 0").ok();
    }
    let questions = if marked.is_empty() { &task.work.size } else { &marked };
    questions.iter().find_map(|sql| {
        let rows = session.rows(sql).ok()?;
        rows.first()?.first()?.as_ref()?.parse().ok()
    })
}
