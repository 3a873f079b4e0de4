//! Loads the user's files: SQL, dumps, CSV. Each SQL file has its own connection, because dumps
//! change session settings. CSV rows may use several connections.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::domain::dialect::Dialect;
use crate::domain::run::CpuTime;
use crate::driver::connection::{Connection, Connector};
use crate::driver::csv_rows::{self, CsvPart};
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::driver::load_changes;
use crate::driver::load_hints;
use crate::driver::loaders::{connections, gather_statistics, share_out, speed_up};
use crate::driver::request::{DriverRequest, FileLoad};
use crate::driver::sql_file::SqlFile;
use crate::driver::sqlite_file;
use crate::driver::stop::Stop;
use crate::os::tree;
use crate::user_text::SqlChunk;
use crate::user_text::mysql_dump::{self, DumpedStatement};
use crate::wire::WireError;

/// Most notes per file.
const MOST_NOTES: usize = 5;

/// Postgres's code for an unknown role or setting.
const UNDEFINED_OBJECT: &str = "42704";

/// Carries out a loading request and says how it went.
pub fn load<W: Write>(
    request: &DriverRequest,
    task: &FileLoad,
    connector: &Connector,
    link: &mut LabLink<W>,
) -> Result<(), Stop> {
    if request.dialect.is_scripted() {
        let client_cpu = CpuTime::default();
        let (load_seconds, index_seconds) = (0.0, 0.0);
        link.say(&DriverEvent::Loaded { rows: 0, load_seconds, index_seconds, client_cpu })?;
        return Ok(());
    }
    let changed = match request.mark {
        Some(_) => Some(load_changes::make_way(task, request.dialect, connector)?),
        None => None,
    };
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    let mut rows = 0;
    // The settings of a database that somebody else runs stay as they are.
    if request.dialect == Dialect::Mysql && changed.is_none() {
        let mut session = connector.open(0)?;
        // Without this, the version of the server decides which characters a text may contain.
        let set = session.simple("ALTER DATABASE CHARACTER SET utf8mb4");
        set.map_err(|error| format!("failed to set the character set: {error}"))?;
    }
    for (place, path) in task.schema.iter().enumerate() {
        match sqlite_file::is_database(path)? {
            true => sqlite_file::copy(path, &request.endpoint, place == 0)?,
            false => rows += execute(path, request.dialect, connector, link)?,
        }
    }
    rows += load_data(request, task, connector, link)?;
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for (index, path) in task.index.iter().enumerate() {
        let (done, of) = (index as u32, task.index.len() as u32);
        link.say(&DriverEvent::Indexing { done, of })?;
        rows += execute(path, request.dialect, connector, link)?;
    }
    match changed {
        _ if !task.analyze => {}
        None => gather_statistics(request.dialect, connector)?,
        Some(changed) => load_changes::gather_statistics(&changed, request.dialect, connector)?,
    }
    let index_seconds = begun.elapsed().as_secs_f64();
    let client_cpu = tree::own_cpu().since(cpu);
    link.say(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

fn open(dialect: Dialect, connector: &Connector) -> Result<Connection, String> {
    let mut session = connector.open(0)?;
    speed_up(dialect, &mut session)?;
    speak_utf8(dialect, &mut session)?;
    Ok(session)
}

/// Files are UTF-8, unless they set something else.
fn speak_utf8(dialect: Dialect, session: &mut Connection) -> Result<(), String> {
    if dialect == Dialect::Mysql {
        let set = session.simple("SET NAMES utf8mb4");
        set.map_err(|error| format!("failed to set the character set: {error}"))?;
    }
    Ok(())
}

/// Shared by the sessions that load rows.
struct SharedRows {
    dialect: Dialect,
    /// Parts of files, each with the number of its file.
    parts: Vec<(usize, CsvPart)>,
    /// Rows of each file.
    rows: Vec<AtomicU64>,
}

impl SharedRows {
    fn load(&self, number: usize, session: &mut Connection) -> Result<(), String> {
        speak_utf8(self.dialect, session)?;
        if self.dialect == Dialect::Mysql {
            // Without this, versions before 5.7 change values that do not fit.
            let strict = "SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')";
            let set = session.simple(strict);
            set.map_err(|error| format!("failed to make the session strict: {error}"))?;
        }
        let (file, part) = &self.parts[number];
        csv_rows::load(part, self.dialect, session, &self.rows[*file])
            .map_err(|what| fault_of(&part.file.path, &what))
    }

    fn all(&self) -> u64 {
        self.rows.iter().map(|rows| rows.load(Ordering::Relaxed)).sum()
    }
}

/// Loads CSV files on several sessions. Returns the number of rows.
fn load_data<W: Write>(
    request: &DriverRequest,
    task: &FileLoad,
    connector: &Connector,
    link: &mut LabLink<W>,
) -> Result<u64, Stop> {
    let sessions = connections(request, task.sessions);
    let mut parts = Vec::new();
    for (number, file) in task.data.iter().enumerate() {
        let of_file = csv_rows::parts(file, sessions);
        let of_file = of_file.map_err(|what| fault_of(&file.path, &what))?;
        parts.extend(of_file.into_iter().map(|part| (number, part)));
    }
    if parts.is_empty() {
        return Ok(0);
    }
    let rows = task.data.iter().map(|_| AtomicU64::new(0)).collect();
    let shared = Arc::new(SharedRows { dialect: request.dialect, parts, rows });
    // The total is known only if each file states its number of rows.
    let of = task.data.iter().map(|file| file.expect_rows).sum::<Option<u64>>().unwrap_or(0);
    let progress = || DriverEvent::Loading { rows: shared.all(), of };
    let count = (shared.parts.len(), sessions);
    share_out(count, connector, &shared, SharedRows::load, &progress, link)?;
    for (file, rows) in task.data.iter().zip(&shared.rows) {
        let rows = rows.load(Ordering::Relaxed);
        if let Some(expected) = file.expect_rows.filter(|expected| *expected != rows) {
            let what = format!("it holds {rows} rows, not {expected} as `expect_rows` says");
            return Err(Stop::Fault(fault_of(&file.path, &what)));
        }
    }
    Ok(shared.all())
}

fn fault_of(path: &Path, what: &str) -> String {
    format!("failed to load {}: {what}", path.display())
}

/// Executes a SQL file. Returns its number of rows by INSERT, REPLACE and COPY.
fn execute<W: Write>(
    path: &Path,
    dialect: Dialect,
    connector: &Connector,
    link: &mut LabLink<W>,
) -> Result<u64, Stop> {
    let mut session = open(dialect, connector)?;
    let fault = |what: String| fault_of(path, &what);
    let mut script = SqlFile::open(path, dialect).map_err(fault)?;
    let (mut rows, mut notes) = (0, 0);
    while let Some(chunk) = script.next().map_err(fault)? {
        let mut said = Vec::new();
        let mut note = |what: String| said.push(what);
        let (sent, line) = match chunk {
            SqlChunk::Statement(sql, line) => (send(&sql, dialect, &mut session, &mut note), line),
            SqlChunk::Copy(sql, line) => (copy(&mut script, &sql, &mut session), line),
            SqlChunk::CopyLine(_) | SqlChunk::CopyEnd => continue,
        };
        match sent {
            Ok(copied) => rows += copied,
            Err(StatementFault::Skipped(what)) => said.push(what),
            Err(StatementFault::Fatal(what)) => {
                return Err(Stop::Fault(fault(format!("line {line}: {what}"))));
            }
        }
        for what in said {
            notes += 1;
            if notes <= MOST_NOTES {
                let note = format!("{}, line {line}: {what}", path.display());
                link.say(&DriverEvent::Note(note))?;
            }
        }
    }
    if notes > MOST_NOTES {
        let more = format!("{}: {} more notes", path.display(), notes - MOST_NOTES);
        link.say(&DriverEvent::Note(more))?;
    }
    Ok(rows)
}

/// The reason why a statement was not executed.
enum StatementFault {
    /// It changes nothing that is measured; the reason for leaving it out.
    Skipped(String),
    Fatal(String),
}

/// Sends a COPY with the rows that follow it in the file. Returns their number.
fn copy(script: &mut SqlFile, sql: &str, session: &mut Connection) -> Result<u64, StatementFault> {
    let mut broken = None;
    let copied = session.copy_in(sql, &mut |out| match script.next() {
        Ok(Some(SqlChunk::CopyLine(line))) => {
            out.extend_from_slice(&line);
            true
        }
        Ok(_) => false,
        Err(error) => {
            broken = Some(error);
            false
        }
    });
    match (broken, copied) {
        (Some(error), _) => Err(StatementFault::Fatal(error)),
        (None, copied) => copied.map_err(|error| StatementFault::Fatal(error.to_string())),
    }
}

/// Sends a statement. Returns the number of inserted rows.
fn send(
    sql: &[u8],
    dialect: Dialect,
    session: &mut Connection,
    note: &mut dyn FnMut(String),
) -> Result<u64, StatementFault> {
    let changed;
    let mut sql = sql;
    if dialect == Dialect::Mysql {
        match mysql_dump::judge(sql) {
            DumpedStatement::Plain => {}
            DumpedStatement::WithoutDefiner(rest) => {
                note(format!("sent without its DEFINER: {}", shortened(sql)));
                changed = rest;
                sql = &changed;
            }
            DumpedStatement::OfReplication => {
                return Err(StatementFault::Skipped(format!("left out: {}", shortened(sql))));
            }
            DumpedStatement::NamesDatabase => {
                return Err(StatementFault::Fatal(format!(
                    "the dump names its database: {}\nhint: dump one database without --databases",
                    shortened(sql)
                )));
            }
        }
    }
    let reply = session.simple_bytes(sql).map_err(|error| judged(sql, dialect, &error))?;
    let is_insert = ["INSERT", "REPLACE"].contains(&first_word(sql).as_str());
    Ok(if is_insert { reply.affected } else { 0 })
}

/// Decides whether a refused statement ends the load.
fn judged(sql: &[u8], dialect: Dialect, error: &WireError) -> StatementFault {
    let text = format!("{error}: {}", shortened(sql));
    let owns = || String::from_utf8_lossy(sql).to_uppercase().contains(" OWNER TO ");
    let is_left = ["SET", "GRANT", "REVOKE"].contains(&first_word(sql).as_str()) || owns();
    if dialect == Dialect::Postgres && error.code() == Some(UNDEFINED_OBJECT) && is_left {
        return StatementFault::Skipped(format!("left out: {text}"));
    }
    StatementFault::Fatal(text + load_hints::hint(error))
}

fn first_word(sql: &[u8]) -> String {
    let word = sql.split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
    String::from_utf8_lossy(word).to_uppercase()
}

fn shortened(sql: &[u8]) -> String {
    const LONGEST: usize = 120;
    // Four bytes per character, and blanks that are left out.
    let sql = String::from_utf8_lossy(&sql[..sql.len().min(8 * LONGEST)]);
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
