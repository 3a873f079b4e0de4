//! Code shared by all loads: work shared by connections, session settings, LOAD DATA with rows from
//! memory, statistics.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Stop;
use crate::connection::{Connection, Connector};
use crate::crew::{Spent, WorkerHandle, WorkerPool, WorkerSpec};
use crate::event::DriverEvent;
use crate::link::ControlChannel;
use crate::request::DriverRequest;
use rqps_host::affinity;
use rqps_model::dialect::{Bulk, Dialect};
use rqps_wire::WireError;
use rqps_wire::mysql::LOCAL_REFUSED;

/// Bytes of a loading thread's stack.
const STACK: usize = 2 << 20;

/// Time between two progress reports.
const PROGRESS: Duration = Duration::from_millis(500);

/// Bytes of COPY or LOAD DATA per piece.
pub const COPY_BYTES: usize = 64 << 10;

/// Work on one of several things, by its index, on a connection.
type LoaderWork<S> = fn(&S, usize, &mut Connection) -> Result<(), String>;

/// Does `work` for each of `count` things on up to `threads` connections at the same time, and
/// sends the progress.
pub fn share_out<S: Send + Sync + 'static, W: Write>(
    (count, threads): (usize, u32),
    connector: &Connector,
    shared: &Arc<S>,
    work: LoaderWork<S>,
    progress: &dyn Fn() -> DriverEvent,
    link: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let next = Arc::new(AtomicUsize::new(0));
    let threads = (threads as usize).clamp(1, count.max(1));
    let member = |number| {
        let (shared, next, connector) = (Arc::clone(shared), Arc::clone(&next), connector.clone());
        let life = move |stand: &WorkerHandle<()>| {
            let mut session = connector.open(0)?;
            speed_up(connector.dialect(), &mut session)?;
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    break;
                }
                work(&shared, index, &mut session)?;
            }
            stand.done((), Spent::default());
            Ok(())
        };
        let name = format!("loader {number}");
        WorkerSpec { name, stack: STACK, background: false, life: Box::new(life) }
    };
    let mut crew = WorkerPool::start(Instant::now(), (1..=threads).map(member).collect())?;
    let mut say = |link: &mut ControlChannel<W>| Ok(link.say(&progress())?);
    crew.finish(PROGRESS, &mut say, link)?;
    say(link)
}

/// Number of connections that load rows at the same time, at most `wanted`.
pub fn connections(request: &DriverRequest, wanted: u32) -> u32 {
    match (request.counted_events, request.dialect.spec().bulk) {
        // Several streams would fill pages differently in each load; SQLite has one writer.
        (Some(_), _) | (None, Bulk::Rows) => 1,
        (None, Bulk::Copy | Bulk::LoadData) => wanted,
    }
}

/// Sets a connection up for loading. Skips settings that the version or the login does not allow:
/// the load is then slower, with the same result.
pub fn speed_up(dialect: Dialect, session: &mut Connection) -> Result<(), String> {
    let cpus = affinity::allowed_cpus().len().max(1).to_string();
    for sql in dialect.spec().load_setup {
        let said = session.simple(&sql.replace("{cpus}", &cpus));
        if let Err(error) = said
            && error.code().is_none()
        {
            return Err(format!("failed to set up a connection for loading: {error}"));
        }
    }
    Ok(())
}

/// Sends rows by one LOAD DATA LOCAL: `fill` appends rows, and returns their number and whether
/// more follow. Returns the number of rows sent; `None`, before any call of `fill`, if the server
/// does not allow it.
pub fn send_local(
    sql: &str,
    session: &mut Connection,
    fill: &mut dyn FnMut(&mut Vec<u8>) -> (u64, bool),
) -> Result<Option<u64>, WireError> {
    let mut sent = 0;
    let loaded = session.load_local(sql, &mut |out| {
        let (rows, more) = fill(out);
        sent += rows;
        more
    });
    match loaded {
        // With LOCAL, the server omits or changes a row that does not fit, and only a warning
        // tells.
        Ok(taken) => match warning(session)? {
            None if taken == sent => Ok(Some(sent)),
            said => {
                let said = said.map(|said| format!(": {said}")).unwrap_or_default();
                let what = format!("the server did not take {sent} rows as they are{said}");
                Err(WireError::Protocol(what))
            }
        },
        Err(error) if error.code().is_some_and(|code| LOCAL_REFUSED.contains(&code)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The first warning about the last statement above the level of a note.
fn warning(session: &mut Connection) -> Result<Option<String>, WireError> {
    let warnings = session.rows("SHOW WARNINGS LIMIT 10")?.into_iter().map(|row| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        let (level, code) = (cells.next().unwrap_or_default(), cells.next().unwrap_or_default());
        (level, format!("{} ({code})", cells.next().unwrap_or_default()))
    });
    let mut severe = warnings.filter(|(level, _)| level != "Note");
    Ok(severe.next().map(|(_, words)| words))
}

/// Makes the DBMS gather statistics of all tables, so that plans fit the loaded rows.
pub fn gather_statistics(dialect: Dialect, connector: &Connector) -> Result<(), String> {
    let mut session = connector.open(0)?;
    let statements = match dialect {
        Dialect::Postgres => vec!["VACUUM (ANALYZE)".to_owned()],
        Dialect::Mysql => {
            let names = "SELECT CONCAT('ANALYZE TABLE `', REPLACE(table_name, '`', '``'), '`') \
                         FROM information_schema.tables WHERE table_schema = DATABASE() \
                         AND table_type = 'BASE TABLE'";
            let rows = session.rows(names);
            let rows = rows.map_err(|error| format!("failed to list tables: {error}"))?;
            rows.into_iter().flatten().flatten().collect()
        }
        _ => vec!["ANALYZE".to_owned()],
    };
    for sql in statements {
        session.rows(&sql).map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    }
    Ok(())
}
