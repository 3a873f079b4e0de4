//! Runs the scripts of a step, with one thread and one connection per client.

use std::io::Write;
use std::sync::Arc;

use super::client::ScriptClient;
use super::samples::samples;
use super::scripts::StepScripts;
use rqps_driver::connection::Connector;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::script::sources::SharedSources;
use rqps_driver::step::{Clients, MakeEvent};
use rqps_driver::watch::ClientWatch;
use rqps_driver::{Stop, step};
use rqps_model::dialect::Dialect;
use rqps_model::pgbench::PgbenchWork;

/// Statements that pgbench executes before it measures; failures are ignored.
const BEFORE: [&str; 3] =
    ["vacuum pgbench_branches", "vacuum pgbench_tellers", "truncate pgbench_history"];

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let task: StepRequest<PgbenchWork> = task.own()?;
    let connector = Connector::new(request)?;
    // Once, on the first host; clients begin after that.
    if task.work.vacuum && request.is_first() {
        clean(request.dialect, &connector)?;
    }
    let clients_of_all = request.all_clients(task.clients);
    let scripts = StepScripts::read(&task.work, request.dialect, request.seed, clients_of_all)?;
    let scripts = Arc::new(scripts);
    let again = task.work.connect.then(|| connector.clone());
    let shared = Arc::clone(&scripts);
    let make: MakeEvent<ScriptClient> =
        Box::new(move |_, client, _| Ok(ScriptClient::new(&shared, client, again.clone())));
    let names: Vec<&str> = scripts.scripts.iter().map(|script| script.name.as_str()).collect();
    let watch = Some(ClientWatch::over(&task, &names.join(", ")));
    let mut clients = Clients { watch, ..Clients::new(connector, make) };
    if task.plans {
        let samples = samples(&task.work, request.dialect)?;
        let sources = SharedSources::open(&samples, clients_of_all)?;
        clients.explain = Some((samples, sources));
    }
    let mut outcome = step::measure(request, &task, clients, control)?;
    let clients = clients_of_all;
    outcome.facts.insert(
        "random numbers".to_owned(),
        format!("those of pgbench -c {clients} -j {clients} --random-seed={}", scripts.seed),
    );
    let each = outcome.statements as f64 / outcome.events.max(1) as f64;
    outcome.facts.insert("statements per transaction".to_owned(), format!("{each:.3}"));
    control.send(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}

/// Vacuums the small tables and empties the history.
fn clean(dialect: Dialect, connector: &Connector) -> Result<(), String> {
    let mut session = connector.open(0)?;
    for sql in BEFORE {
        let sql = match (dialect, sql.strip_prefix("vacuum ")) {
            (Dialect::Postgres, _) => sql.to_owned(),
            (Dialect::Mysql, Some(table)) => format!("analyze table {table}"),
            (_, Some(table)) => format!("analyze {table}"),
            (Dialect::Mysql, None) => sql.to_owned(),
            (_, None) => "delete from pgbench_history".to_owned(),
        };
        if let Err(error) = session.rows(&sql)
            && error.code().is_none()
        {
            return Err(format!("failed to execute {sql:?}: {error}"));
        }
    }
    Ok(())
}
