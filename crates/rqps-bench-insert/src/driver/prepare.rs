//! Work before the window: tables, maintenance, query plans.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::driver::text::for_table;
use rqps_driver::Stop;
use rqps_driver::connection::Connector;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::script::explain as plans;
use rqps_driver::worker_pool::{Spent, WorkerHandle, WorkerPool, WorkerSpec};
use rqps_model::insert::{InsertWork, Maintenance};

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
pub(super) fn tables<W: Write>(
    request: &DriverRequest,
    task: &StepRequest<InsertWork>,
    connector: &Arc<Connector>,
    control: &mut ControlChannel<W>,
) -> Result<Vec<String>, Stop> {
    let tables = StepTables { task, clients: request.all_clients(task.clients) };
    let notes =
        if request.is_first() { tables_of_all(tables, connector, control)? } else { Vec::new() };
    if request.is_shared(task.clients) {
        control.meet(0)?;
    }
    Ok(notes)
}

fn tables_of_all<W: Write>(
    tables: StepTables<'_>,
    connector: &Arc<Connector>,
    control: &mut ControlChannel<W>,
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
fn maintain<W: Write>(
    tables: StepTables<'_>,
    maintenance: &Maintenance,
    connector: &Arc<Connector>,
    control: &mut ControlChannel<W>,
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
    let mut pool = WorkerPool::start(Instant::now(), tables.numbers().map(member).collect())?;
    if !maintenance.wait {
        // It continues beside the step, which does not depend on its end.
        return Ok(());
    }
    let what = maintenance.sql.clone();
    let mut beat = |control: &mut ControlChannel<W>| {
        Ok(control.send(&DriverEvent::Waiting { what: what.clone() })?)
    };
    pool.finish(SIGN_OF_LIFE, &mut beat, control)?;
    Ok(())
}

/// The plan of each kind of query on table 1, and a note for each missing plan. On several hosts,
/// only the driver of the first client asks the server.
pub(super) fn plans(
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
