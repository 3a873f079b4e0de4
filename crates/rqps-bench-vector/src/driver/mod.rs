//! Runs a step of vector search: loads tables, builds indexes, runs queries, and compares each
//! answer with the exact one.

mod capacity;
mod isolation;
mod search;
pub mod searcher;
mod sql;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use searcher::{Encoding, shuffled};
use sql::{Sql, TABLE};

use crate::data::{VectorSet, fate, uniform};
use rqps_driver::clock::{Clock, SECOND, Window};
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::{ControlChannel, DriverEvent, StepInterval};
use rqps_driver::recorder::histograms;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::worker_pool::{
    Intervals, LEAD_NS, Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec,
};
use rqps_driver::{Stop, guest};
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::metric::Metric;
use rqps_model::run::Outcome;
use rqps_model::vector::{Distance, Index, Present, Variant, VectorOperation, VectorWork};
use rqps_wire::{Value, WireError};

/// What the driver tells the lab, wherever the lab is.
type LabChannel<'a> = ControlChannel<&'a mut dyn Write>;

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
    task: &StepRequest<VectorWork>,
    connector: Connector,
    control: &mut LabChannel,
) -> Result<(), Stop> {
    if !matches!(request.dialect, Dialect::Postgres | Dialect::Mysql) {
        return Err("failed to measure: only Postgres with pgvector and MariaDB support vector \
                    search"
            .to_owned()
            .into());
    }
    control.send(&DriverEvent::Warming)?;
    let work = &task.work;
    let data = VectorSet::open(&work.data, work.rows, work.k as usize, task.cache.as_deref())
        .map_err(|error| format!("failed to {error}"))?;
    let data = Arc::new(data);
    let table = table(request, task, &connector, &data)?;
    let mut context = VectorContext { request, task, connector, control, data, table };
    let follows = !request.is_first();
    let mut outcome = match &work.operation {
        VectorOperation::Search(search) | VectorOperation::Target { search, .. } if follows => {
            search::follow(&mut context, search, false)?
        }
        VectorOperation::Payload(search) if follows => search::follow(&mut context, search, true)?,
        VectorOperation::Load { spare } => load(&mut context, *spare)?,
        VectorOperation::Build(index) => build(&mut context, index)?,
        VectorOperation::Search(search) => search::search(&mut context, search)?,
        VectorOperation::Payload(search) => search::payload(&mut context, search)?,
        VectorOperation::Target { recall, search } => {
            search::target(&mut context, *recall, search)?
        }
        VectorOperation::Mixed { insert_rate, search } => {
            capacity::mixed(&mut context, *insert_rate, search)?
        }
        VectorOperation::Delete { percent } => capacity::delete(&mut context, *percent)?,
        VectorOperation::Clean => capacity::clean(&mut context)?,
        VectorOperation::Isolate { level, search } => {
            isolation::isolate(&mut context, *level, search)?
        }
        VectorOperation::Fill { index, clients, commit_rows } => {
            capacity::fill(&mut context, index, *clients, *commit_rows as usize)?
        }
    };
    context.note_data(&mut outcome);
    control.send(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}

// The context of a vector step: connections, vectors, SQL of the dialect.

/// The context of a step.
pub(super) struct VectorContext<'a, 'c> {
    pub(super) request: &'a DriverRequest,
    pub(super) task: &'a StepRequest<VectorWork>,
    pub(super) connector: Connector,
    pub(super) control: &'a mut LabChannel<'c>,
    pub(super) data: Arc<VectorSet>,
    pub(super) table: Arc<TableContext>,
}

/// Shared by the threads of a step: table and rows.
pub(super) struct TableContext {
    sql: Sql,
    pub(super) data: Arc<VectorSet>,
}

impl<'a> VectorContext<'a, '_> {
    pub(super) fn work(&self) -> &'a VectorWork {
        &self.task.work
    }

    /// True if other hosts carry clients of this step, too.
    pub(super) fn is_shared(&self) -> bool {
        self.request.is_shared(self.task.clients)
    }

    pub(super) fn k(&self) -> usize {
        self.task.work.k as usize
    }

    fn sql(&self) -> Sql {
        self.table.sql.clone()
    }

    fn note_data(&self, outcome: &mut Outcome) {
        let data = format!("{} [{}]", self.data.name, self.data.hash);
        outcome.facts.insert("data".to_owned(), data);
    }
}

/// The table of a step, for its threads.
pub(super) fn table(
    request: &DriverRequest,
    task: &StepRequest<VectorWork>,
    connector: &Connector,
    data: &Arc<VectorSet>,
) -> Result<Arc<TableContext>, String> {
    let sql = Sql {
        dialect: request.dialect,
        dims: data.train.dims,
        distance: data.distance,
        work: task.work.clone(),
        storage_engine: task.storage_engine.clone(),
        types: types(request, connector)?,
        mark: request.mark.clone(),
    };
    Ok(Arc::new(TableContext { sql, data: Arc::clone(data) }))
}

/// Finds the prefix for names of pgvector's types and operators. On a server that rqps does not
/// run, the extension may be in another schema than the tables, and sessions see only the latter.
fn types(request: &DriverRequest, connector: &Connector) -> Result<String, String> {
    if request.mark.is_none() || request.dialect != Dialect::Postgres {
        return Ok(String::new());
    }
    let sql = "SELECT quote_ident(n.nspname) FROM pg_extension e \
               JOIN pg_namespace n ON n.oid = e.extnamespace \
               WHERE e.extname = 'vector' AND n.nspname <> ALL (current_schemas(true))";
    let rows = connector.open(0)?.rows(sql);
    let rows = rows.map_err(|error| format!("failed to look for the extension: {error}"))?;
    let schema = rows.into_iter().flatten().flatten().next();
    Ok(schema.map(|schema| format!("{schema}.")).unwrap_or_default())
}

/// Runs a statement that the step made.
pub(super) fn run(session: &mut Connection, sql: &str) -> Result<(), String> {
    match session.simple(sql) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("failed to run {sql}: {error}")),
    }
}

/// The numbers of the first row; `None` for NULL and for other text.
pub(super) fn numbers(session: &mut Connection, sql: &str) -> Result<Vec<Option<f64>>, String> {
    let rows = session.rows(sql).map_err(|error| format!("failed to run {sql}: {error}"))?;
    let first = rows.into_iter().next().unwrap_or_default();
    Ok(first.into_iter().map(|cell| cell.and_then(|cell| cell.parse().ok())).collect())
}

// Runs a step of one piece of work without a time limit: loading, building, cleaning.

/// Runs `work` as the measured window on a connection of `connector`. `work` adds its progress to
/// the counter, which the lab receives each second. Returns the result of `work`, and an outcome
/// with the counter as its statements. Faults contain `name`.
pub(super) fn untimed<T: Send + 'static, F>(
    context: &mut VectorContext,
    connector: &Connector,
    name: &str,
    work: F,
) -> Result<(T, Outcome), Stop>
where
    F: FnOnce(&mut Connection, &TableContext, &AtomicU64) -> Result<T, String> + Send + 'static,
{
    let (table, done) = (Arc::clone(&context.table), Arc::new(AtomicU64::new(0)));
    let counter = Arc::clone(&done);
    let worker = Worker {
        name: name.to_owned(),
        connector: connector.clone(),
        client: 0,
        work: Box::new(move |session, _| work(session, &table, &counter)),
    };
    let (results, outcome) = untimed_workers(context, vec![worker], &done)?;
    let result = results.into_iter().next();
    Ok((
        result.ok_or_else(|| format!("failed to measure: {name} ended without a result"))?,
        outcome,
    ))
}

/// The work on a session in this window; begins when all are connected.
type UntimedWork<T> = Box<dyn FnOnce(&mut Connection, Window) -> Result<T, String> + Send>;

/// One thread with a session.
pub(super) struct Worker<T> {
    pub(super) name: String,
    pub(super) connector: Connector,
    /// Number of its session, from 0.
    pub(super) client: u32,
    pub(super) work: UntimedWork<T>,
}

/// Runs several workers, which begin together once they are connected.
pub(super) fn untimed_workers<T: Send + 'static>(
    context: &mut VectorContext,
    workers: Vec<Worker<T>>,
    done: &Arc<AtomicU64>,
) -> Result<(Vec<T>, Outcome), Stop> {
    carry_out(workers, done, context.request.pause, context.control)
}

fn carry_out<T: Send + 'static>(
    workers: Vec<Worker<T>>,
    done: &Arc<AtomicU64>,
    pause: bool,
    control: &mut LabChannel,
) -> Result<(Vec<T>, Outcome), Stop> {
    let clock = Clock::real();
    let members = workers.into_iter().map(|worker| member(worker, clock.clone())).collect();
    let mut pool = WorkerPool::start(clock.clone(), members)?;
    pool.gather(control)?;
    control.pause_if(pause)?;
    let start = clock.now() + LEAD_NS;
    let mut seconds = Seconds { start, second: 0, from: start, counter: Arc::clone(done), done: 0 };
    let window = Window { start, end: u64::MAX, whole_events: true };
    let finished = pool.measure(window, &mut seconds, control)?;
    let seconds = finished.end.saturating_sub(start) as f64 / SECOND;
    let done = done.load(Ordering::Relaxed);
    let outcome = Outcome {
        seconds,
        statements: done,
        writes: done,
        latency: histograms(&[]).0,
        client_cpu: finished.cpu,
        client_busiest: finished.cpu.total_us() / 1e6 / seconds.max(1e-9),
        ..Outcome::default()
    };
    Ok((finished.done.into_iter().flatten().map(|done| done.value).collect(), outcome))
}

fn member<T: Send + 'static>(worker: Worker<T>, clock: Clock) -> WorkerSpec<T> {
    let Worker { name, connector, client, work } = worker;
    let main = move |handle: &WorkerHandle<T>| {
        let mut session = connector.open(client)?;
        handle.ready(Ready::default());
        let Some(window) = handle.window() else { return Ok(()) };
        clock.wait_until(window.start);
        let (result, spent) = Spent::on(&clock, || work(&mut session, window));
        handle.done(result?, spent);
        Ok(())
    };
    WorkerSpec::new(name, main)
}

/// Reports the counter each second.
struct Seconds {
    start: u64,
    second: u32,
    from: u64,
    counter: Arc<AtomicU64>,
    done: u64,
}

impl Intervals for Seconds {
    fn next_cut(&self) -> Option<u64> {
        Some(self.start + (u64::from(self.second) + 1) * SECOND as u64)
    }

    fn cut(&mut self, now: u64) -> StepInterval {
        let done = self.counter.load(Ordering::Relaxed);
        self.second += 1;
        let interval = StepInterval {
            second: self.second,
            seconds: now.saturating_sub(self.from) as f64 / SECOND,
            statements: done - self.done,
            ..StepInterval::default()
        };
        (self.from, self.done) = (now, done);
        interval
    }
}

// Loads the table: binary COPY on Postgres, prepared multi-row INSERTs on MariaDB. The order of
// rows is random, so that two builds of one index are independent.

/// Rows per INSERT: 64 rows of 784 dimensions are 200 KB.
const ROWS_PER_INSERT: usize = 64;
/// INSERTs per transaction.
const INSERTS_PER_COMMIT: usize = 32;
/// Rows of COPY between two updates of the counter.
const COPY_ROWS: usize = 64;

const MIB: f64 = (1 << 20) as f64;

/// Makes rows for the table.
pub(super) struct RowMaker<'a> {
    data: &'a VectorSet,
    form: Encoding,
    shift: Option<Vec<f32>>,
    values: Vec<f32>,
}

impl<'a> RowMaker<'a> {
    pub(super) fn new(data: &'a VectorSet, dialect: Dialect, variant: Variant) -> RowMaker<'a> {
        let values = vec![0.0; data.train.dims];
        RowMaker {
            data,
            form: Encoding::of_row(dialect, variant),
            shift: shift(data, variant),
            values,
        }
    }

    /// The columns id, class, u, fate.
    pub(super) fn attributes(&self, id: u32) -> [i64; 4] {
        let class = i64::from(self.data.class_of(id));
        [i64::from(id), class, uniform(id) as i64, fate(id) as i64]
    }

    /// Appends the vector of a row.
    pub(super) fn vector(&mut self, id: u32, out: &mut Vec<u8>) {
        self.data.train.copy_row(id as usize, &mut self.values);
        if let Some(shift) = &self.shift {
            self.values.iter_mut().zip(shift).for_each(|(value, shift)| *value += shift);
        }
        self.form.push(&self.values, out);
    }

    /// The vectors of some rows.
    pub(super) fn vectors(&mut self, ids: &[u32]) -> Vec<Vec<u8>> {
        let vector = |id: &u32| {
            let mut vector = Vec::new();
            self.vector(*id, &mut vector);
            vector
        };
        ids.iter().map(vector).collect()
    }

    /// The values of an INSERT for these rows.
    pub(super) fn values<'v>(&self, ids: &[u32], vectors: &'v [Vec<u8>]) -> Vec<Value<'v>> {
        let mut values = Vec::with_capacity(ids.len() * 5);
        for (id, vector) in ids.iter().zip(vectors) {
            values.extend(self.attributes(*id).map(Value::Int));
            values.push(Value::Bytes(vector));
        }
        values
    }
}

/// The vector to add to all vectors. A bit stores the sign of a value, so values are centred on
/// their means first. This preserves distances between points, but not angles.
fn shift(data: &VectorSet, variant: Variant) -> Option<Vec<f32>> {
    let centred = variant == Variant::Bit && data.distance == Distance::Euclidean;
    centred.then(|| data.train.mean().iter().map(|mean| -mean).collect())
}

/// Creates the table and loads all rows except the last `spare`.
fn load(context: &mut VectorContext, spare: u64) -> Result<Outcome, Stop> {
    let connector = context.connector.clone();
    let order =
        shuffled(context.data.train.rows(), Rng::stream(context.request.seed, "vector.load", 0));
    let (table_bytes, mut outcome) =
        untimed(context, &connector, "the load", move |session, table, done| {
            let (sql, data, dialect) = (&table.sql, &*table.data, table.sql.dialect);
            create(sql, session)?;
            let present = |id: &u32| data.is_present(*id, Present::AllBut { spare });
            let ids: Vec<u32> = order.into_iter().filter(present).collect();
            let rows = RowMaker::new(data, dialect, table.sql.work.variant);
            let loaded = match dialect {
                Dialect::Mysql => insert(sql, session, rows, &ids, done),
                _ => copy(session, rows, &ids, done),
            };
            loaded.map_err(|error| format!("failed to load {} rows: {error}", ids.len()))?;
            check_count(session, ids.len())?;
            Ok(numbers(session, &sql.sizes())?.first().copied().flatten())
        })?;
    outcome.extra.insert(Metric::LoadSeconds, outcome.seconds);
    if let Some(bytes) = table_bytes {
        outcome.extra.insert(Metric::TableSize, bytes / MIB);
    }
    Ok(outcome)
}

fn create(sql: &Sql, session: &mut Connection) -> Result<(), String> {
    for statement in sql.create() {
        guest::make(session, sql.dialect, sql.mark.as_deref(), &statement)
            .map_err(|error| explain(sql, &statement, &error))?;
    }
    Ok(())
}

/// The error if the table cannot be created, with a hint.
fn explain(sql: &Sql, statement: &str, error: &WireError) -> String {
    let hint = match (sql.dialect, error.code()) {
        (Dialect::Postgres, Some("58P01" | "0A000" | "22023"))
            if statement.contains("EXTENSION") =>
        {
            "\nhint: this server has no pgvector; use a build with it (postgres@17+pgvector), or \
             install the extension `vector` there"
        }
        (Dialect::Postgres, Some("42501")) if statement.contains("EXTENSION") => {
            "\nhint: let a superuser run CREATE EXTENSION vector in this database first"
        }
        (Dialect::Mysql, Some("1064" | "4161")) => {
            "\nhint: this server has no type VECTOR, which needs MariaDB 11.7 or later \
             (mariadb@11.8)"
        }
        _ => "",
    };
    format!("failed to run {statement}: {error}{hint}")
}

/// Binary COPY: header, rows of five columns, trailer.
fn copy(
    session: &mut Connection,
    mut rows: RowMaker<'_>,
    ids: &[u32],
    done: &AtomicU64,
) -> Result<(), WireError> {
    let mut parts = ids.chunks(COPY_ROWS);
    let (mut vector, mut begun) = (Vec::new(), false);
    let sql = format!("COPY {TABLE} (id, class, u, fate, v) FROM STDIN (FORMAT binary)");
    session.copy_in(&sql, &mut |out| {
        if !begun {
            begun = true;
            out.extend_from_slice(b"PGCOPY\n\xff\r\n\0");
            out.extend_from_slice(&[0; 8]);
        }
        let Some(part) = parts.next() else {
            out.extend_from_slice(&[0xff; 2]);
            return false;
        };
        for id in part {
            out.extend_from_slice(&5u16.to_be_bytes());
            for value in rows.attributes(*id) {
                out.extend_from_slice(&4u32.to_be_bytes());
                out.extend_from_slice(&(value as i32).to_be_bytes());
            }
            vector.clear();
            rows.vector(*id, &mut vector);
            out.extend_from_slice(&(vector.len() as u32).to_be_bytes());
            out.extend_from_slice(&vector);
        }
        done.fetch_add(part.len() as u64, Ordering::Relaxed);
        true
    })?;
    Ok(())
}

/// Prepared multi-row INSERTs, many per transaction.
fn insert(
    sql: &Sql,
    session: &mut Connection,
    mut rows: RowMaker<'_>,
    ids: &[u32],
    done: &AtomicU64,
) -> Result<(), WireError> {
    let (text, types) = sql.insert(ROWS_PER_INSERT);
    let many = session.prepare(&text, &types)?;
    for (number, part) in ids.chunks(ROWS_PER_INSERT).enumerate() {
        if number % INSERTS_PER_COMMIT == 0 {
            session.simple(if number == 0 { "BEGIN" } else { "COMMIT AND CHAIN" })?;
        }
        let vectors = rows.vectors(part);
        let values = rows.values(part, &vectors);
        let statement = if part.len() == ROWS_PER_INSERT {
            many
        } else {
            let (text, types) = sql.insert(part.len());
            session.prepare(&text, &types)?
        };
        session.execute(statement, &values)?;
        done.fetch_add(part.len() as u64, Ordering::Relaxed);
    }
    session.simple("COMMIT").map(|_| ())
}

/// Checks that all rows are in the table.
fn check_count(session: &mut Connection, expected: usize) -> Result<(), String> {
    let found = numbers(session, &format!("SELECT COUNT(*) FROM {TABLE}"))?;
    match found.first().copied().flatten() {
        Some(rows) if rows == expected as f64 => Ok(()),
        other => Err(format!(
            "failed to load: the table has {} rows instead of {expected}",
            other.unwrap_or(f64::NAN)
        )),
    }
}

/// Settles the server, so that the first query pays for no work of the load.
fn settle(sql: &Sql, session: &mut Connection) -> Result<(), String> {
    match sql.dialect {
        Dialect::Mysql => run(session, &format!("ANALYZE TABLE {TABLE}")),
        _ => {
            run(session, &format!("VACUUM (ANALYZE) {TABLE}"))?;
            // On a server that rqps does not run, it would write the data of others too.
            if sql.mark.is_some() { Ok(()) } else { run(session, "CHECKPOINT") }
        }
    }
}

// Builds an index on a loaded table with enough memory, and measures its size.

/// Smallest memory of a build, bytes.
const FLOOR_BYTES: u64 = 64 << 20;
/// Room of a cache as a multiple of the index. With less, the step would measure how the index is
/// read repeatedly.
pub(super) const ROOM: f64 = 1.5;

/// Builds `index`. Drops an existing one first, outside the measurement.
fn build(context: &mut VectorContext, index: &Index) -> Result<Outcome, Stop> {
    let sql = context.sql();
    let rows = context.data.train.rows() as u64;
    let memory = memory_bytes(&sql, index, rows);
    let mut session = context.connector.open(0)?;
    run(&mut session, &sql.drop_index())?;
    settle(&sql, &mut session)?;
    allow(&sql, &mut session, memory);
    let connector = context.connector.also(settings(&sql, index, memory, context.request.seed));
    let statement = sql.create_index(index);
    let (notices, mut outcome) =
        untimed(context, &connector, "the build", move |session, _, done| {
            session.take_warnings();
            let built = session.simple(&statement);
            built.map_err(|error| format!("failed to build the index ({statement}): {error}"))?;
            done.store(rows, Ordering::Relaxed);
            Ok(session.take_warnings())
        })?;
    put_sizes(&sql, &mut session, &mut outcome)?;
    outcome.extra.insert(Metric::IndexSeconds, outcome.seconds);
    outcome.facts.insert("memory for the build".to_owned(), format!("{} MiB", memory >> 20));
    outcome.facts.insert("workers beside the leader".to_owned(), index.workers.to_string());
    if let Some(setting) = give_room(&sql, &mut session)? {
        outcome.facts.insert("mhnsw_max_cache_size".to_owned(), setting);
    }
    for notice in notices {
        // "hnsw graph no longer fits into maintenance_work_mem": the build continued more slowly.
        outcome.notes.push(format!("server notice during the index build: {notice}"));
    }
    settle(&sql, &mut session)?;
    Ok(outcome)
}

/// Measures the sizes of table and index.
fn put_sizes(sql: &Sql, session: &mut Connection, outcome: &mut Outcome) -> Result<(), String> {
    let sizes = numbers(session, &sql.sizes())?;
    for (metric, bytes) in [Metric::TableSize, Metric::IndexSize].into_iter().zip(sizes) {
        if let Some(bytes) = bytes {
            outcome.extra.insert(metric, bytes / MIB);
        }
    }
    Ok(())
}

/// Lets MariaDB's cache of the graph grow to `memory` bytes. On a server that rqps does not run,
/// the current size may suffice; [`give_room`] checks.
fn allow(sql: &Sql, session: &mut Connection, memory: u64) {
    if sql.dialect == Dialect::Mysql && sql.mark.is_none() {
        let _ = session.simple(&format!("SET GLOBAL mhnsw_max_cache_size = {memory}"));
    }
}

/// Memory for a build, bytes, estimated generously: each vector in the index's form, its links, and
/// half as much in addition.
fn memory_bytes(sql: &Sql, index: &Index, rows: u64) -> u64 {
    let dims = sql.dims as u64;
    let vector = match (sql.dialect, sql.work.variant) {
        (Dialect::Mysql, _)
        | (_, Variant::Halfvec | Variant::HalfvecRerank | Variant::HalfvecColumn) => 2 * dims,
        (_, Variant::Vector) => 4 * dims,
        (_, Variant::Bit) => dims / 8,
    };
    // pgvector: candidates of 16 bytes, about one layer of 2 m and a few of m.
    let links = 64 * u64::from(index.m);
    (rows * (vector + links + 200) * 3 / 2).max(FLOOR_BYTES)
}

/// Settings of the session that builds the index.
fn settings(sql: &Sql, index: &Index, memory: u64, seed: u64) -> Vec<String> {
    match sql.dialect {
        Dialect::Mysql => vec![
            // The session's own generator draws the layer of a node.
            format!("SET rand_seed1 = {}, rand_seed2 = {}", seed & 0x3fff_ffff, seed >> 34),
        ],
        _ => vec![
            format!("SET maintenance_work_mem = '{}MB'", (memory >> 20) + 1),
            format!("SET max_parallel_maintenance_workers = {}", index.workers),
        ],
    }
}

/// Makes sure that MariaDB's cache holds the graph; otherwise each statement would drop the graph
/// and the next read it again. Returns the setting; `None` if there is no such cache.
fn give_room(sql: &Sql, session: &mut Connection) -> Result<Option<String>, String> {
    if sql.dialect != Dialect::Mysql {
        return Ok(None);
    }
    let cache = || "SELECT @@GLOBAL.mhnsw_max_cache_size";
    let size = numbers(session, &sql.sizes())?.get(1).copied().flatten();
    let Some(size) = size else { return Ok(None) };
    let have = numbers(session, cache())?.first().copied().flatten().unwrap_or(0.0);
    if have < ROOM * size {
        let wanted = (2.0 * size) as u64;
        if sql.mark.is_none() {
            run(session, &format!("SET GLOBAL mhnsw_max_cache_size = {wanted}"))?;
        }
    }
    let now = numbers(session, cache())?.first().copied().flatten().unwrap_or(0.0);
    if now < ROOM * size {
        return Err(format!(
            "failed to measure: mhnsw_max_cache_size is {:.0} MiB but the index has {:.0} MiB, so \
             every query would read the graph again; set it to at least {ROOM} times the index \
             size",
            now / MIB,
            size / MIB
        ));
    }
    Ok(Some(format!("{:.0} MiB for an index of {:.0} MiB", now / MIB, size / MIB)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_driver::request::{LoadRequest, RequestBody};

    fn run(works: Vec<UntimedWork<u32>>) -> Result<(Vec<u32>, Outcome), String> {
        let request = DriverRequest::fake(RequestBody::Load(LoadRequest::default()));
        let connector = Connector::new(&request)?;
        let worker = |(client, work): (usize, UntimedWork<u32>)| Worker {
            name: format!("client {client}"),
            connector: connector.clone(),
            client: client as u32,
            work,
        };
        let workers = works.into_iter().enumerate().map(worker).collect();
        let done = Arc::new(AtomicU64::new(7));
        carry_out(workers, &done, false, &mut LabChannel::alone(&mut Vec::new())).map_err(|stop| {
            match stop {
                Stop::Fault(fault) => fault,
                Stop::Gone | Stop::Answered => "gone".to_owned(),
            }
        })
    }

    #[test]
    fn all_workers_are_waited_for() {
        let (results, outcome) = run(vec![Box::new(|_, _| Ok(3)), Box::new(|_, _| Ok(4))]).unwrap();
        assert_eq!((results, outcome.statements), (vec![3, 4], 7));
        assert!(outcome.seconds > 0.0);
    }

    #[test]
    fn a_worker_that_panics_ends_the_step_while_others_work() {
        let (hang, sender) = std::sync::mpsc::channel::<()>();
        let works: Vec<UntimedWork<u32>> = vec![
            Box::new(move |_, _| {
                let _ = sender.recv();
                Ok(3)
            }),
            Box::new(|_, _| panic!("row {} is gone", 7)),
        ];
        assert_eq!(run(works).unwrap_err(), "client 1 panicked: row 7 is gone");
        drop(hang);
    }
}
