//! Code shared by all loads: work shared by connections, session settings, LOAD DATA with rows from
//! memory, statistics.

use std::io::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::Stop;
use crate::clock::Clock;
use crate::connection::{Connection, Connector};
use crate::control_channel::{ControlChannel, DriverEvent};
use crate::part::OpenPart;
use crate::request::{DriverRequest, PartLoad};
use crate::row_stream::{FillColumn, RowStream, TableFill};
use crate::worker_pool::{Spent, WorkerHandle, WorkerPool, WorkerSpec};
use rqps_host::{affinity, tree};
use rqps_model::dialect::{Bulk, Dialect};
use rqps_model::run::CpuTime;
use rqps_model::sql_name::Identifier;
use rqps_wire::Canceller;
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
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let next = Arc::new(AtomicUsize::new(0));
    let threads = (threads as usize).clamp(1, count.max(1));
    let member = |number| {
        let (shared, next, connector) = (Arc::clone(shared), Arc::clone(&next), connector.clone());
        let main = move |handle: &WorkerHandle<()>| {
            let mut session = connector.open(0)?;
            speed_up(connector.dialect(), &mut session)?;
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                if index >= count {
                    break;
                }
                work(&shared, index, &mut session)?;
            }
            handle.done((), Spent::default());
            Ok(())
        };
        let name = format!("loader {number}");
        WorkerSpec { name, stack: STACK, background: false, main: Box::new(main) }
    };
    let mut pool = WorkerPool::start(Clock::real(), (1..=threads).map(member).collect())?;
    let mut say = |control: &mut ControlChannel<W>| Ok(control.send(&progress())?);
    pool.finish(PROGRESS, &mut say, control)?;
    say(control)
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

/// Code of MySQL and MariaDB for a collation that they do not have.
const UNKNOWN_COLLATION: &str = "1273";

/// Code of MySQL and MariaDB for a database that is not there.
const UNKNOWN_DATABASE: &str = "1049";

/// Code of Postgres for a value of a column that it computes.
const ALWAYS_GENERATED: &str = "428C9";

/// Codes for a row whose foreign key finds no row: of Postgres, of MySQL and MariaDB.
const NO_PARENT: [&str; 2] = ["23503", "1452"];

/// Words in the message for a value of a generated column: of MySQL (3105), MariaDB (1906),
/// Postgres (42P10) and SQLite.
const GENERATED: &str = "generated column";

/// A line with the way out, to be put behind the message of the error; empty where none is known.
pub(super) fn hint(error: &WireError) -> &'static str {
    let message = error.to_string();
    if error.code() == Some(ALWAYS_GENERATED) || message.contains(GENERATED) {
        return "\nhint: the server computes generated columns: a CSV file has no field for them, \
                and INSERT names the other columns (mysqldump --complete-insert)";
    }
    match error.code() {
        Some(code) if NO_PARENT.contains(&code) => {
            "\nhint: load a table before those that reference it: `data` keeps its order with \
             `threads = 1`; or make foreign keys in a file of `index`"
        }
        Some(UNKNOWN_DATABASE) => {
            "\nhint: the file spells the name of its database: `database = \"NAME\"` in [load] gives \
             it that name on builds that rqps starts"
        }
        Some(UNKNOWN_COLLATION) => collation_hint(&message),
        _ => "",
    }
}

/// The hint for a collation that the server does not know: the DBMS that has it.
fn collation_hint(message: &str) -> &'static str {
    if message.contains("_0900_") {
        return "\nhint: collations such as utf8mb4_0900_ai_ci exist only in MySQL 8; replace it in \
                the file, for instance by utf8mb4_general_ci";
    }
    if message.contains("uca1400") {
        return "\nhint: collations such as utf8mb4_uca1400_ai_ci exist only in MariaDB from 10.10; \
                replace it in the file, for instance by utf8mb4_general_ci";
    }
    ""
}

// Loads tables of different shapes: several parts of their rows at the same time, each part in
// order on one connection.

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

// Sessions of a load on a server of others. Their statements end when the lab goes: the server
// would go on with a COPY or an index for hours. Statements that are asked for their answers also
// end when they take too long.

/// Sessions that are remembered; a load has few.
const MOST: usize = 1000;

/// The time for each.
const LIMIT: Duration = Duration::from_secs(3);

static SESSIONS: Mutex<Vec<Canceller>> = Mutex::new(Vec::new());

/// Remembers a session. One that is closed by then does no harm: no number comes twice.
pub(super) fn remember(session: Canceller) {
    if let Ok(mut sessions) = SESSIONS.lock()
        && sessions.len() < MOST
    {
        sessions.push(session);
    }
}

/// Time between two looks at how long a statement takes.
const LOOK: Duration = Duration::from_millis(100);

/// Number of statements begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

/// A statement begins.
pub(super) fn begin() {
    BEGUN.fetch_add(1, Ordering::Relaxed);
}

/// As long as the value lives, ends statements that take longer than `most`.
pub(super) fn limit(most: Duration) -> Arc<()> {
    let alive = Arc::new(());
    let watched = Arc::downgrade(&alive);
    std::thread::spawn(move || {
        let (mut known, mut since) = (BEGUN.load(Ordering::Relaxed), Instant::now());
        while watched.strong_count() > 0 {
            std::thread::sleep(LOOK);
            let now = BEGUN.load(Ordering::Relaxed);
            if now == known && since.elapsed() > most {
                all();
            }
            if now != known || since.elapsed() > most {
                (known, since) = (now, Instant::now());
            }
        }
    });
    alive
}

/// Ends what all of them execute.
pub(super) fn all() {
    let sessions = SESSIONS.lock().map(|sessions| sessions.clone());
    std::thread::scope(|scope| {
        for session in sessions.iter().flatten() {
            // Whom it does not reach goes on, as before.
            scope.spawn(|| session.cancel(LIMIT).ok());
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_with_a_way_out_tell_it() {
        let of = |code: &str, message: &str| {
            let (code, message) = (code.to_owned(), message.to_owned());
            hint(&WireError::Server { code, message })
        };
        let computed = "\nhint: the server computes generated columns";
        let value = "The value specified for generated column 'b' in table 't' is not allowed.";
        assert!(of("3105", value).starts_with(computed));
        let message = "cannot insert a non-DEFAULT value into column \"b\"";
        assert!(of("428C9", message).starts_with(computed));
        let warned = WireError::Protocol(format!("the server did not take 2 rows: {value} (3105)"));
        assert!(hint(&warned).starts_with(computed));
        assert!(of("1273", "Unknown collation: 'utf8mb4_0900_ai_ci'").contains("only in MySQL 8"));
        assert!(of("1273", "Unknown collation: 'utf8mb4_uca1400_ai_ci'").contains("in MariaDB"));
        assert!(of("1049", "Unknown database 'shop'").contains("`database = \"NAME\"`"));
        assert_eq!(of("1273", "Unknown collation: 'x'"), "");
        assert_eq!(of("1146", "Table 't' doesn't exist"), "");
        let child = "Cannot add or update a child row: a foreign key constraint fails";
        assert!(of("1452", child).starts_with("\nhint: load a table before those that reference"));
    }
}
