//! Makes the workers of a step: their roles, tables and random streams.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use crate::driver::meter::{RoleKind, WorkerRecorder};
use crate::driver::pair::Pair;
use crate::driver::querier::{self, Querier};
use crate::driver::text::{Template, WallTime, for_table};
use crate::driver::turns::{Pacer, Side, Turns};
use crate::driver::writer::{Batch, Notes, Writer};
use crate::rows::Rows;
use rqps_driver::clock::Clock;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::insert::{InsertWork, Pacing};

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
                    kinds: querier::prepare(&mut session, queries, table)?,
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
