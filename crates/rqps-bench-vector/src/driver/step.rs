//! Runs a step of vector search: loads tables, builds indexes, runs queries, and compares each
//! answer with the exact one.

use std::io::Write;
use std::sync::Arc;

use crate::data::VectorSet;
use crate::driver::context::{VectorContext, table};
use crate::driver::{build, capacity, churn, isolation, load, mixed, search, target};
use rqps_driver::Stop;
use rqps_driver::connection::Connector;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_model::dialect::Dialect;
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
        VectorOperation::Build(index) => build::build(&mut context, index)?,
        VectorOperation::Search(search) => search::search(&mut context, search)?,
        VectorOperation::Payload(search) => search::payload(&mut context, search)?,
        VectorOperation::Target { recall, search } => {
            target::target(&mut context, *recall, search)?
        }
        VectorOperation::Mixed { insert_rate, search } => {
            mixed::mixed(&mut context, *insert_rate, search)?
        }
        VectorOperation::Delete { percent } => churn::delete(&mut context, *percent)?,
        VectorOperation::Clean => churn::clean(&mut context)?,
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
