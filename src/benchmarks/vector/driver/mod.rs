//! Vector search: tables are filled, indexes built, queries asked, and every answer is held against
//! the exact one.

mod build;
mod busy;
mod capacity;
mod churn;
pub mod encode;
pub mod graph;
mod isolation;
mod load;
mod mixed;
mod score;
mod search;
pub(crate) mod searcher;
mod sight;
mod sql;
mod target;
pub mod truth;
pub mod verify;

use std::io::Write;
use std::sync::Arc;

use self::sql::Sql;
use crate::benchmarks::vector::data::Dataset;
use crate::domain::dialect::Dialect;
use crate::domain::run::Outcome;
use crate::domain::vector::{VectorOperation, VectorWork};
use crate::driver::Stop;
use crate::driver::connection::{Connection, Connector};
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::driver::request::{DriverRequest, StepRequest};

/// Everything that the steps work with.
struct VectorContext<'a, W> {
    job: &'a DriverRequest,
    task: &'a StepRequest<VectorWork>,
    connector: Connector,
    link: &'a mut LabLink<W>,
    data: Arc<Dataset>,
    /// What stands before the names of pgvector's types and operators.
    types: String,
}

/// What the threads of a step share: the same table with the same rows.
struct TableContext {
    dialect: Dialect,
    work: VectorWork,
    storage_engine: Option<String>,
    data: Arc<Dataset>,
    types: String,
    mark: Option<String>,
}

impl TableContext {
    fn sql(&self) -> Sql<'_> {
        Sql {
            dialect: self.dialect,
            dims: self.data.train.dims,
            distance: self.data.distance,
            work: &self.work,
            storage_engine: self.storage_engine.as_deref(),
            types: self.types.clone(),
            mark: self.mark.as_deref(),
        }
    }
}

/// The loop of the benchmark's steps.
pub(crate) fn step_loop(
    job: &DriverRequest,
    task: &StepRequest,
    link: &mut LabLink<&mut dyn Write>,
) -> Result<(), Stop> {
    measure(job, &task.own()?, Connector::new(job)?, link)
}

/// Carries out a step and says how it went.
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
    let data = Dataset::open(&work.data, work.rows, work.k as usize, task.cache.as_deref())
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

impl<'a, W: Write> VectorContext<'a, W> {
    fn work(&self) -> &'a VectorWork {
        &self.task.work
    }

    fn k(&self) -> usize {
        self.task.work.k as usize
    }

    fn sql(&self) -> Sql<'a> {
        let VectorContext { job, task, .. } = self;
        Sql {
            dialect: job.dialect,
            dims: self.data.train.dims,
            distance: self.data.distance,
            work: &task.work,
            storage_engine: task.storage_engine.as_deref(),
            types: self.types.clone(),
            mark: job.mark.as_deref(),
        }
    }

    /// The same for threads.
    fn ground(&self) -> Arc<TableContext> {
        Arc::new(TableContext {
            dialect: self.job.dialect,
            work: self.task.work.clone(),
            storage_engine: self.task.storage_engine.clone(),
            data: Arc::clone(&self.data),
            types: self.types.clone(),
            mark: self.job.mark.clone(),
        })
    }

    fn note_data(&self, outcome: &mut Outcome) {
        let data = format!("{} [{}]", self.data.name, self.data.hash);
        outcome.facts.insert("data".to_owned(), data);
    }
}

/// What must stand before the names of pgvector's types and operators: on a server that rqps does
/// not run the extension may be in another schema than the tables, and sessions see only theirs.
fn types(job: &DriverRequest, connector: &Connector) -> Result<String, String> {
    if job.mark.is_none() || job.dialect != Dialect::Postgres {
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

/// Runs a statement of the step's own making.
fn run(session: &mut Connection, sql: &str) -> Result<(), String> {
    match session.simple(sql) {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("failed to run {sql}: {error}")),
    }
}

/// The numbers of the first row; `None` for NULL and for what is no number.
fn numbers(session: &mut Connection, sql: &str) -> Result<Vec<Option<f64>>, String> {
    let rows = session.rows(sql).map_err(|error| format!("failed to run {sql}: {error}"))?;
    let first = rows.into_iter().next().unwrap_or_default();
    Ok(first.into_iter().map(|cell| cell.and_then(|cell| cell.parse().ok())).collect())
}
