//! Loading by files of the user's: SQL, dumps, CSV. One file after the other, each on a connection
//! of its own, because dumps change the settings of their session.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use crate::domain::dialect::Dialect;
use crate::domain::run::CpuTime;
use crate::driver::connection::{Connection, Connector};
use crate::driver::csv_rows;
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::driver::loaders::{gather_statistics, speed_up};
use crate::driver::request::{DriverRequest, FileLoad};
use crate::driver::script::table;
use crate::driver::sqlite_file;
use crate::driver::stop::Stop;
use crate::os::tree;
use crate::user_text::{SqlChunk, SqlSplitter};
use crate::wire::WireError;

/// Notes about one file at most.
const MOST_NOTES: usize = 5;

/// Code of Postgres for a role or a setting that it does not have.
const UNDEFINED_OBJECT: &str = "42704";

/// Carries out a loading job and says how it went.
pub fn load<W: Write>(
    job: &DriverRequest,
    task: &FileLoad,
    connector: &Connector,
    link: &mut LabLink<W>,
) -> Result<(), Stop> {
    if job.dialect.is_scripted() {
        let client_cpu = CpuTime::default();
        let (load_seconds, index_seconds) = (0.0, 0.0);
        link.say(&DriverEvent::Loaded { rows: 0, load_seconds, index_seconds, client_cpu })?;
        return Ok(());
    }
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    let of = (task.schema.len() + task.data.len()) as u64;
    let (mut rows, mut done) = (0, 0);
    for (place, path) in task.schema.iter().enumerate() {
        link.say(&DriverEvent::Loading { rows: done, of })?;
        match sqlite_file::is_database(path)? {
            true => sqlite_file::copy(path, &job.endpoint, place == 0)?,
            false => rows += execute(path, job.dialect, connector, link)?,
        }
        done += 1;
    }
    for data in &task.data {
        link.say(&DriverEvent::Loading { rows: done, of })?;
        let mut session = open(job.dialect, connector)?;
        rows += csv_rows::load(data, job.dialect, &mut session)
            .map_err(|fault| format!("failed to load {}: {fault}", data.path.display()))?;
        done += 1;
    }
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for (index, path) in task.index.iter().enumerate() {
        let (done, of) = (index as u32, task.index.len() as u32);
        link.say(&DriverEvent::Indexing { done, of })?;
        rows += execute(path, job.dialect, connector, link)?;
    }
    if task.analyze {
        gather_statistics(job.dialect, connector)?;
    }
    let index_seconds = begun.elapsed().as_secs_f64();
    let client_cpu = tree::own_cpu().since(cpu);
    link.say(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

fn open(dialect: Dialect, connector: &Connector) -> Result<Connection, String> {
    let mut session = connector.open(0)?;
    speed_up(dialect, &mut session)?;
    Ok(session)
}

/// Executes a file of SQL. Returns the rows that came with it by INSERT, REPLACE and COPY.
fn execute<W: Write>(
    path: &Path,
    dialect: Dialect,
    connector: &Connector,
    link: &mut LabLink<W>,
) -> Result<u64, Stop> {
    let mut session = open(dialect, connector)?;
    let fault = |what: String| format!("failed to load {}: {what}", path.display());
    let mut script = SqlFile {
        input: table::open(path).map_err(fault)?,
        splitter: SqlSplitter::new(dialect),
        chunks: Vec::new(),
        line: Vec::new(),
    };
    script.check_format().map_err(fault)?;
    let (mut rows, mut notes) = (0, 0);
    while let Some(chunk) = script.next().map_err(fault)? {
        let (sent, line) = match chunk {
            SqlChunk::Statement(sql, line) => (send(&sql, dialect, &mut session), line),
            SqlChunk::Copy(sql, line) => (script.copy(&sql, &mut session), line),
            SqlChunk::CopyLine(_) | SqlChunk::CopyEnd => continue,
        };
        match sent {
            Ok(copied) => rows += copied,
            Err(StatementFault::Skipped(note)) => {
                notes += 1;
                if notes <= MOST_NOTES {
                    let name = path.display();
                    link.say(&DriverEvent::Note(format!("{name}, line {line}: {note}")))?;
                }
            }
            Err(StatementFault::Fatal(what)) => {
                return Err(Stop::Fault(fault(format!("line {line}: {what}"))));
            }
        }
    }
    Ok(rows)
}

/// What came of a statement that was not executed.
enum StatementFault {
    /// It changes nothing that is measured: why it was left out.
    Skipped(String),
    Fatal(String),
}

/// A file of SQL as it is read.
struct SqlFile {
    input: Box<dyn BufRead>,
    splitter: SqlSplitter,
    /// What the lines so far gave and nobody took yet, the first last.
    chunks: Vec<SqlChunk>,
    line: Vec<u8>,
}

impl SqlFile {
    /// Refuses what is no text.
    fn check_format(&mut self) -> Result<(), String> {
        let begin = self.input.fill_buf().map_err(|error| error.to_string())?;
        match begin.starts_with(b"PGDMP") {
            true => Err("it is in pg_dump's custom format\nhint: make SQL of it with \
                         `pg_restore -f shop.sql FILE`"
                .to_owned()),
            false => Ok(()),
        }
    }

    fn next(&mut self) -> Result<Option<SqlChunk>, String> {
        let mut is_at_end = false;
        while self.chunks.is_empty() {
            if is_at_end {
                return Ok(None);
            }
            self.line.clear();
            let length = self.input.read_until(b'\n', &mut self.line);
            is_at_end = length.map_err(|error| error.to_string())? == 0;
            let split = match is_at_end {
                true => self.splitter.end(&mut self.chunks),
                false => self.splitter.take(&self.line, &mut self.chunks),
            };
            split.map_err(|error| error.to_string())?;
            self.chunks.reverse();
        }
        Ok(self.chunks.pop())
    }

    /// Sends a COPY with the rows that follow it in the file. Returns their number.
    fn copy(&mut self, sql: &str, session: &mut Connection) -> Result<u64, StatementFault> {
        let mut broken = None;
        let copied = session.copy_in(sql, &mut |out| match self.next() {
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
}

/// Sends a statement. Returns the rows that it inserts.
fn send(sql: &str, dialect: Dialect, session: &mut Connection) -> Result<u64, StatementFault> {
    if dialect == Dialect::Mysql {
        refuse_of_dump(sql)?;
    }
    let reply = session.simple(sql).map_err(|error| judged(sql, dialect, &error))?;
    let first = sql.split_whitespace().next().unwrap_or_default();
    let inserts = ["INSERT", "REPLACE"].iter().any(|word| first.eq_ignore_ascii_case(word));
    Ok(if inserts { reply.affected } else { 0 })
}

/// What the refusal of a statement means for the load.
fn judged(sql: &str, dialect: Dialect, error: &WireError) -> StatementFault {
    let text = format!("{error}: {}", shortened(sql));
    let first = sql.split_whitespace().next().unwrap_or_default().to_uppercase();
    let owns = sql.to_uppercase().contains(" OWNER TO ");
    let is_left = ["SET", "GRANT", "REVOKE"].contains(&first.as_str()) || owns;
    if dialect == Dialect::Postgres && is_left && error.code() == Some(UNDEFINED_OBJECT) {
        return StatementFault::Skipped(format!("left out: {text}"));
    }
    let hint = match error.code() {
        Some("1273") => {
            "\nhint: collations such as utf8mb4_0900_ai_ci are those of MySQL 8; replace them in \
             the file"
        }
        _ => "",
    };
    StatementFault::Fatal(text + hint)
}

/// Statements of dumps of MySQL that would change the server or its database.
fn refuse_of_dump(sql: &str) -> Result<(), StatementFault> {
    let upper = sql.get(..200).unwrap_or(sql).to_uppercase();
    if upper.contains("GTID_PURGED") || upper.contains("SQL_LOG_BIN") {
        let note = format!("left out: {}", shortened(sql));
        return Err(StatementFault::Skipped(note));
    }
    let words: Vec<&str> = upper.split_whitespace().take(2).collect();
    let names = matches!(words.as_slice(), ["USE", ..] | ["CREATE", "DATABASE" | "SCHEMA"]);
    match names {
        true => Err(StatementFault::Fatal(format!(
            "the file names its database: {}\nhint: dump one database without --databases",
            shortened(sql)
        ))),
        false => Ok(()),
    }
}

fn shortened(sql: &str) -> String {
    const LONGEST: usize = 120;
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
