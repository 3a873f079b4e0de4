//! The context of a vector step: connections, vectors, SQL of the dialect.

use std::io::Write;
use std::sync::Arc;

use crate::data::VectorSet;
use crate::driver::sql::Sql;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_model::dialect::Dialect;
use rqps_model::run::Outcome;
use rqps_model::vector::VectorWork;

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
    pub(super) sql: Sql,
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

    pub(super) fn sql(&self) -> Sql {
        self.table.sql.clone()
    }

    pub(super) fn note_data(&self, outcome: &mut Outcome) {
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
