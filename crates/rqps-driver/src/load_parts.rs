//! Loads tables of different shapes: several parts of their rows at the same time, each part in
//! order on one connection.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::Stop;
use crate::connection::{Connection, Connector};
use crate::control_channel::ControlChannel;
use crate::event::DriverEvent;
use crate::loaders::{connections, share_out};
use crate::part::OpenPart;
use crate::request::{DriverRequest, PartLoad};
use crate::row_stream::{FillColumn, RowStream, TableFill};
use rqps_host::tree;
use rqps_model::run::CpuTime;
use rqps_model::sql_name::Identifier;

/// Shared by the loading threads.
struct Shared {
    request: DriverRequest,
    task: PartLoad,
    open: OpenPart,
    connector: Connector,
    rows: AtomicU64,
    finished: AtomicUsize,
}

/// Carries out a load and sends its progress.
pub fn load<W: Write>(
    request: &DriverRequest,
    task: &PartLoad,
    open: OpenPart,
    connector: Connector,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    if request.dialect.is_scripted() {
        let client_cpu = CpuTime::default();
        let (rows, load_seconds, index_seconds) = (task.rows, 0.0, 0.0);
        control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
        return Ok(());
    }
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    let mut session = connector.open(0)?;
    for sql in &task.setup {
        let made = connector.make(&mut session, sql);
        made.map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    }
    drop(session);
    let shared = Arc::new(Shared {
        request: request.clone(),
        task: task.clone(),
        open,
        connector,
        rows: AtomicU64::new(0),
        finished: AtomicUsize::new(0),
    });
    let threads = connections(request, task.parallel);
    let connector = &shared.connector;
    let progress = || shared.progress();
    let parts = (task.parts as usize, threads);
    share_out(parts, connector, &shared, Shared::fill, &progress, control)?;
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let lists = (task.finish.len(), threads);
    share_out(lists, connector, &shared, Shared::finish, &progress, control)?;
    let index_seconds = begun.elapsed().as_secs_f64();
    let rows = shared.rows.load(Ordering::Relaxed);
    let client_cpu = tree::own_cpu().since(cpu);
    control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

impl Shared {
    fn progress(&self) -> DriverEvent {
        match self.finished.load(Ordering::Relaxed) {
            0 => {
                DriverEvent::Loading { rows: self.rows.load(Ordering::Relaxed), of: self.task.rows }
            }
            done => DriverEvent::Indexing { done: done as u32, of: self.task.finish.len() as u32 },
        }
    }

    /// Loads the rows of a part into all tables.
    fn fill(&self, part: usize, session: &mut Connection) -> Result<(), String> {
        let dialect = self.request.dialect;
        for (index, table) in self.task.tables.iter().enumerate() {
            let Some(rows) = (self.open)(&self.request, &self.task, part as u32, index)? else {
                continue;
            };
            let column = |name: &String| FillColumn::text(Identifier::plain(dialect, name));
            let table = TableFill {
                name: Identifier::plain(dialect, &table.name),
                columns: table.columns.iter().map(column).collect(),
                // Rows of benchmarks are ASCII.
                character_set: "latin1",
                rows: &self.rows,
            };
            table.fill(dialect, RowStream::new(rows), session)?;
        }
        Ok(())
    }

    fn finish(&self, list: usize, session: &mut Connection) -> Result<(), String> {
        for sql in &self.task.finish[list] {
            let made = session.rows(sql);
            made.map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
        }
        self.finished.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
