//! Runs a step of vector search: loads tables, builds indexes, runs queries, and compares each
//! answer with the exact one.

use std::io::Write;
use std::sync::Arc;

use crate::benchmarks::vector::data::VectorSet;
use crate::benchmarks::vector::driver::context::{VectorContext, types};
use crate::benchmarks::vector::driver::{
    build, capacity, churn, isolation, load, mixed, search, target,
};
use crate::domain::dialect::Dialect;
use crate::domain::vector::{VectorOperation, VectorWork};
use crate::driver::Stop;
use crate::driver::connection::Connector;
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::driver::request::{DriverRequest, StepRequest};

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    job: &DriverRequest,
    task: &StepRequest,
    link: &mut LabLink<&mut dyn Write>,
) -> Result<(), Stop> {
    measure(job, &task.own()?, Connector::new(job)?, link)
}

/// Carries out a step and sends its progress.
fn measure<W: Write>(
    job: &DriverRequest,
    task: &StepRequest<VectorWork>,
    connector: Connector,
    link: &mut LabLink<W>,
) -> Result<(), Stop> {
    if !matches!(job.dialect, Dialect::Postgres | Dialect::Mysql) {
        return Err("failed to measure: only Postgres with pgvector and MariaDB support vector \
                    search"
            .to_owned()
            .into());
    }
    link.say(&DriverEvent::Warming)?;
    let work = &task.work;
    let data = VectorSet::open(&work.data, work.rows, work.k as usize, task.cache.as_deref())
        .map_err(|error| format!("failed to {error}"))?;
    let types = types(job, &connector)?;
    let mut bench = VectorContext { job, task, connector, link, data: Arc::new(data), types };
    let mut outcome = match &work.act {
        VectorOperation::Load { spare } => load::load(&mut bench, *spare)?,
        VectorOperation::Build(index) => build::build(&mut bench, index)?,
        VectorOperation::Search(search) => search::search(&mut bench, search)?,
        VectorOperation::Payload(search) => search::payload(&mut bench, search)?,
        VectorOperation::Target { recall, search } => target::target(&mut bench, *recall, search)?,
        VectorOperation::Mixed { insert_rate, search } => {
            mixed::mixed(&mut bench, *insert_rate, search)?
        }
        VectorOperation::Delete { percent } => churn::delete(&mut bench, *percent)?,
        VectorOperation::Clean => churn::clean(&mut bench)?,
        VectorOperation::Isolate { level, search } => {
            isolation::isolate(&mut bench, *level, search)?
        }
        VectorOperation::Fill { index, clients, commit_rows } => {
            capacity::fill(&mut bench, index, *clients, *commit_rows as usize)?
        }
    };
    bench.note_data(&mut outcome);
    link.say(&DriverEvent::Measured(Box::new(outcome)))?;
    Ok(())
}
