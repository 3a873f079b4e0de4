//! Runs a step of vector search: loads tables, builds indexes, runs queries, and compares each
//! answer with the exact one.

mod capacity;
pub mod graph;
mod isolation;
mod load;
mod mixed;
mod search;
pub mod searcher;
mod sql;
mod visibility;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use self::sql::Sql;
use crate::data::VectorSet;
use rqps_driver::Stop;
use rqps_driver::clock::{Clock, SECOND, Window};
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::{DriverEvent, StepInterval};
use rqps_driver::recorder::histograms;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::worker_pool::{
    Intervals, LEAD_NS, Ready, Spent, WorkerHandle, WorkerPool, WorkerSpec,
};
use rqps_host::clock::RealClock;
use rqps_model::dialect::Dialect;
use rqps_model::run::Outcome;
use rqps_model::vector::{VectorOperation, VectorWork};

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    measure(request, &task.own()?, Connector::new(request)?, control)
}

/// Carries out a step and sends its progress.
fn measure<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<VectorWork>,
    connector: Connector,
    control: &mut ControlChannel<W>,
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
        VectorOperation::Load { spare } => load::load(&mut context, *spare)?,
        VectorOperation::Build(index) => load::build(&mut context, index)?,
        VectorOperation::Search(search) => search::search(&mut context, search)?,
        VectorOperation::Payload(search) => search::payload(&mut context, search)?,
        VectorOperation::Target { recall, search } => {
            search::target(&mut context, *recall, search)?
        }
        VectorOperation::Mixed { insert_rate, search } => {
            mixed::mixed(&mut context, *insert_rate, search)?
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
pub(super) struct VectorContext<'a, W> {
    pub(super) request: &'a DriverRequest,
    pub(super) task: &'a StepRequest<VectorWork>,
    pub(super) connector: Connector,
    pub(super) control: &'a mut ControlChannel<W>,
    pub(super) data: Arc<VectorSet>,
    pub(super) table: Arc<TableContext>,
}

/// Shared by the threads of a step: table and rows.
pub(super) struct TableContext {
    sql: Sql,
    pub(super) data: Arc<VectorSet>,
}

impl<'a, W: Write> VectorContext<'a, W> {
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
pub(super) fn untimed<W: Write, T: Send + 'static, F>(
    context: &mut VectorContext<'_, W>,
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
pub(super) fn untimed_workers<W: Write, T: Send + 'static>(
    context: &mut VectorContext<'_, W>,
    workers: Vec<Worker<T>>,
    done: &Arc<AtomicU64>,
) -> Result<(Vec<T>, Outcome), Stop> {
    carry_out(workers, done, context.request.pause, context.control)
}

fn carry_out<W: Write, T: Send + 'static>(
    workers: Vec<Worker<T>>,
    done: &Arc<AtomicU64>,
    pause: bool,
    control: &mut ControlChannel<W>,
) -> Result<(Vec<T>, Outcome), Stop> {
    let begun = Instant::now();
    let clock = Clock::Real(RealClock::starting_at(begun));
    let members = workers.into_iter().map(|worker| member(worker, clock.clone())).collect();
    let mut pool = WorkerPool::start(begun, members)?;
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
        carry_out(workers, &done, false, &mut ControlChannel::alone(Vec::new())).map_err(|stop| {
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
