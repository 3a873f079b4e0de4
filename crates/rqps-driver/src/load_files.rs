//! Loads the user's files: SQL, dumps, CSV. Each SQL file has its own connection, because dumps
//! change session settings. CSV rows may use several connections.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::connection::{Connection, Connector};
use crate::control_channel::{ControlChannel, DriverEvent, FileProgress, LabGone, Stop};
use crate::files::{self, CsvPart, SqlFile};
use crate::load_changes::{self, shortened};
use crate::loaders::{self, connections, gather_statistics, share_out, speed_up};
use crate::request::{DriverRequest, FileLoad};
use rqps_host::tree;
use rqps_model::dialect::Dialect;
use rqps_model::run::{CpuTime, LoadedFile};
use rqps_text::reading::{self, DumpedStatement};
use rqps_text::{LoadRules, SqlChunk};
use rqps_wire::WireError;

/// Most notes per file.
const MOST_NOTES: usize = 5;

/// Postgres's code for an unknown role or setting.
const UNDEFINED_OBJECT: &str = "42704";

/// Carries out a loading request and says how it went.
pub fn load<W: Write>(
    request: &DriverRequest,
    task: &FileLoad,
    connector: &Connector,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    if request.dialect.is_scripted() {
        let client_cpu = CpuTime::default();
        let (load_seconds, index_seconds) = (0.0, 0.0);
        control.send(&DriverEvent::Loaded { rows: 0, load_seconds, index_seconds, client_cpu })?;
        return Ok(());
    }
    let changed = match request.mark {
        Some(_) => Some(load_changes::make_way(task, request.dialect, connector)?),
        None => None,
    };
    let mut rules = changed.as_ref().map(|_| LoadRules::new(request.dialect));
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
        if files::is_database(path)? {
            let watch = FileWatch::over(path);
            files::copy_database(path, &request.endpoint, place == 0)?;
            control.send(&DriverEvent::LoadedFile(watch.loaded(0)))?;
        } else {
            rows += execute((path, rules.as_mut(), task), request.dialect, connector, control)?
        }
    }
    rows += load_data(request, task, connector, control)?;
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    for (index, path) in task.index.iter().enumerate() {
        let (done, of) = (index as u32, task.index.len() as u32);
        control.send(&DriverEvent::Indexing { done, of })?;
        rows += execute((path, rules.as_mut(), task), request.dialect, connector, control)?;
    }
    match changed {
        _ if !task.analyze => {}
        None => gather_statistics(request.dialect, connector)?,
        Some(changed) => load_changes::gather_statistics(&changed, request.dialect, connector)?,
    }
    let index_seconds = begun.elapsed().as_secs_f64();
    let client_cpu = tree::own_cpu().since(cpu);
    control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
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
    files: Vec<SharedFile>,
}

/// How far a file is whose parts are loaded.
struct SharedFile {
    name: String,
    bytes: u64,
    /// Parts that are not loaded yet.
    left: AtomicUsize,
    rows: AtomicU64,
    read: Arc<AtomicU64>,
    begun: OnceLock<Instant>,
    ended: OnceLock<Instant>,
}

impl SharedFile {
    fn new(path: &Path, parts: usize) -> SharedFile {
        SharedFile {
            name: name_of(path),
            bytes: length_of(path),
            left: AtomicUsize::new(parts),
            rows: AtomicU64::new(0),
            read: Arc::default(),
            begun: OnceLock::new(),
            ended: OnceLock::new(),
        }
    }

    /// A part of it is loaded.
    fn end_part(&self) {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.ended.get_or_init(Instant::now);
        }
    }

    /// Seconds from its first row to its last, or until now.
    fn seconds(&self) -> f64 {
        let Some(begun) = self.begun.get() else { return 0.0 };
        let ended = self.ended.get().copied().unwrap_or_else(Instant::now);
        ended.saturating_duration_since(*begun).as_secs_f64()
    }

    fn progress(&self) -> FileProgress {
        FileProgress {
            file: self.name.clone(),
            bytes: self.read.load(Ordering::Relaxed),
            of: self.bytes,
            seconds: self.seconds(),
        }
    }

    fn loaded(&self) -> LoadedFile {
        let (file, seconds) = (self.name.clone(), self.seconds());
        LoadedFile { file, bytes: self.bytes, rows: self.rows.load(Ordering::Relaxed), seconds }
    }
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
        let file = &self.files[*file];
        file.begun.get_or_init(Instant::now);
        let loaded = files::load(part, self.dialect, session, (&file.rows, &file.read));
        file.end_part();
        loaded.map_err(|what| fault_of(&part.file.path, &what))
    }

    fn all(&self) -> u64 {
        self.files.iter().map(|file| file.rows.load(Ordering::Relaxed)).sum()
    }

    /// The first file at work; rows if there is none.
    fn progress(&self, of: u64) -> DriverEvent {
        let is_at_work =
            |file: &&SharedFile| file.begun.get().is_some() && file.ended.get().is_none();
        match self.files.iter().find(is_at_work) {
            Some(file) => DriverEvent::LoadingFile(file.progress()),
            None => DriverEvent::Loading { rows: self.all(), of },
        }
    }
}

/// Loads CSV files on several sessions. Returns the number of rows.
fn load_data<W: Write>(
    request: &DriverRequest,
    task: &FileLoad,
    connector: &Connector,
    control: &mut ControlChannel<W>,
) -> Result<u64, Stop> {
    let sessions = connections(request, task.sessions);
    let (mut parts, mut files) = (Vec::new(), Vec::new());
    for (number, file) in task.data.iter().enumerate() {
        let of_file = files::parts(file, sessions);
        let of_file = of_file.map_err(|what| fault_of(&file.path, &what))?;
        files.push(SharedFile::new(&file.path, of_file.len()));
        parts.extend(of_file.into_iter().map(|part| (number, part)));
    }
    if parts.is_empty() {
        return Ok(0);
    }
    let shared = Arc::new(SharedRows { dialect: request.dialect, parts, files });
    // The total is known only if each file states its number of rows.
    let of = task.data.iter().map(|file| file.expect_rows).sum::<Option<u64>>().unwrap_or(0);
    let progress = || shared.progress(of);
    let count = (shared.parts.len(), sessions);
    share_out(count, connector, &shared, SharedRows::load, &progress, control)?;
    for (file, loaded) in task.data.iter().zip(&shared.files) {
        let loaded = loaded.loaded();
        let rows = loaded.rows;
        control.send(&DriverEvent::LoadedFile(loaded))?;
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

/// Executes a SQL file, by the rules of a load where the server is not rqps's. Returns its number
/// of rows by INSERT, REPLACE and COPY.
fn execute<W: Write>(
    (path, mut rules, task): (&Path, Option<&mut LoadRules>, &FileLoad),
    dialect: Dialect,
    connector: &Connector,
    control: &mut ControlChannel<W>,
) -> Result<u64, Stop> {
    let mut session = open(dialect, connector)?;
    if let Some(rules) = &mut rules {
        load_changes::read_as_written(dialect, &mut session)?;
        rules.begin_file();
    }
    let fault = |what: String| fault_of(path, &what);
    let mut watch = FileWatch::over(path);
    let script = SqlFile::open_counted(path, dialect, &watch.counter());
    let mut script = script.map_err(fault)?;
    let (mut rows, mut notes) = (0, 0);
    while let Some(chunk) = script.next().map_err(fault)? {
        let mut said = Vec::new();
        let mut note = |what: String| said.push(what);
        let (sent, line) = match chunk {
            SqlChunk::Statement(sql, line) => {
                let rules = rules.as_deref_mut();
                (send((&sql, rules, task), dialect, &mut session, &mut note), line)
            }
            SqlChunk::Copy(sql, line) => {
                let judged = rules.as_deref_mut().map(|rules| rules.judge_copy(&sql));
                let mut tell = || watch.tell(control);
                let sent = match judged {
                    Some(Err(why)) => Err(StatementFault::Fatal(why)),
                    _ => copy(&mut script, &sql, &mut session, &mut tell),
                };
                (sent, line)
            }
            SqlChunk::CopyLine(_) | SqlChunk::CopyEnd => continue,
        };
        match sent {
            Ok(copied) => rows += copied,
            // What follows, up to a COMMIT that undoes all, would be in vain.
            Err(StatementFault::Skipped(what)) if session.is_in_failed_transaction() => {
                return Err(Stop::Fault(fault(format!("line {line}: {what}"))));
            }
            Err(StatementFault::Skipped(what)) => said.push(what),
            Err(StatementFault::Fatal(what)) => {
                return Err(Stop::Fault(fault(format!("line {line}: {what}"))));
            }
            Err(StatementFault::LabGone) => return Err(Stop::Gone),
        }
        watch.tell(control)?;
        for what in said {
            notes += 1;
            if notes <= MOST_NOTES {
                let note = format!("{}, line {line}: {what}", path.display());
                control.send(&DriverEvent::Note(note))?;
            }
        }
    }
    if session.has_open_transaction() {
        let what = "its end comes before that of a transaction\nhint: add COMMIT; to it";
        return Err(Stop::Fault(fault(what.to_owned())));
    }
    if notes > MOST_NOTES {
        let more = format!("{}: {} more notes", path.display(), notes - MOST_NOTES);
        control.send(&DriverEvent::Note(more))?;
    }
    control.send(&DriverEvent::LoadedFile(watch.loaded(rows)))?;
    Ok(rows)
}

/// The reason why a statement was not executed.
enum StatementFault {
    /// It changes nothing that is measured; the reason for leaving it out.
    Skipped(String),
    Fatal(String),
    LabGone,
}

/// Lines of a COPY between two calls of its `tell`.
const LINES_PER_CALL: u64 = 256;

/// Sends a COPY with the rows that follow it in the file, and calls `tell` now and then. Returns
/// the number of rows.
fn copy(
    script: &mut SqlFile,
    sql: &str,
    session: &mut Connection,
    tell: &mut dyn FnMut() -> Result<(), LabGone>,
) -> Result<u64, StatementFault> {
    let (mut broken, mut lines) = (None, 0_u64);
    let copied = session.copy_in(sql, &mut |out| match script.next() {
        Ok(Some(SqlChunk::CopyLine(line))) => {
            out.extend_from_slice(&line);
            lines += 1;
            if lines.is_multiple_of(LINES_PER_CALL) && tell().is_err() {
                broken = Some(StatementFault::LabGone);
            }
            broken.is_none()
        }
        Ok(_) => false,
        Err(error) => {
            broken = Some(StatementFault::Fatal(error));
            false
        }
    });
    match (broken, copied) {
        (Some(fault), _) => Err(fault),
        (None, copied) => copied.map_err(|error| StatementFault::Fatal(error.to_string())),
    }
}

/// Sends a statement. Returns the number of inserted rows.
fn send(
    (sql, rules, task): (&[u8], Option<&mut LoadRules>, &FileLoad),
    dialect: Dialect,
    session: &mut Connection,
    note: &mut dyn FnMut(String),
) -> Result<u64, StatementFault> {
    let changed;
    let mut sql = sql;
    if dialect == Dialect::Mysql {
        match reading::judge_dumped(sql) {
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
                return Err(if load_changes::names_another(sql, task) {
                    StatementFault::Fatal(load_changes::another_database(sql))
                } else {
                    StatementFault::Skipped(format!("left out: {}", shortened(sql)))
                });
            }
        }
    }
    let admitted;
    if let Some(rules) = rules {
        let judged = rules.judge(sql).map_err(StatementFault::Fatal)?;
        match judged.left_out {
            Some("") => return Ok(0),
            Some(why) => {
                let what = format!("left out: {why}: {}", shortened(sql));
                return Err(StatementFault::Skipped(what));
            }
            None => {}
        }
        admitted = judged.sent(sql);
        sql = &admitted;
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
    StatementFault::Fatal(text + loaders::hint(error))
}

fn first_word(sql: &[u8]) -> String {
    let word = sql.split(|byte| !byte.is_ascii_alphabetic()).next().unwrap_or_default();
    String::from_utf8_lossy(word).to_uppercase()
}

/// Time between two progress reports.
const PAUSE: Duration = Duration::from_millis(500);

/// Smaller files are not reported: their bytes say nothing of their statements' time.
const LEAST_BYTES: u64 = 1 << 20;

/// Watches a file that one session reads.
struct FileWatch {
    file: SharedFile,
    told: Instant,
}

impl FileWatch {
    /// Begins now.
    fn over(path: &Path) -> FileWatch {
        let (file, now) = (SharedFile::new(path, 1), Instant::now());
        file.begun.get_or_init(|| now);
        FileWatch { file, told: now }
    }

    /// The counter of bytes for the reader of the file.
    fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.file.read)
    }

    /// Sends the progress if the last report is some time ago.
    fn tell<W: Write>(&mut self, control: &mut ControlChannel<W>) -> Result<(), LabGone> {
        if self.file.bytes < LEAST_BYTES || self.told.elapsed() < PAUSE {
            return Ok(());
        }
        self.told = Instant::now();
        control.send(&DriverEvent::LoadingFile(self.file.progress()))
    }

    /// The file is loaded.
    fn loaded(self, rows: u64) -> LoadedFile {
        LoadedFile { rows, ..self.file.loaded() }
    }
}

/// The name of a file without folders.
fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// The length of a file; 0 if it cannot be read, which its reader reports.
fn length_of(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |facts| facts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_large_files_are_told_and_not_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("shop.sql");
        let told = |bytes: usize, ago: Duration| {
            fs::write(&path, vec![b'-'; bytes]).expect("write a file");
            let mut watch = FileWatch::over(&path);
            watch.counter().fetch_add(7, Ordering::Relaxed);
            watch.told = watch.told.checked_sub(ago).expect("the host is up for longer");
            let mut said = Vec::new();
            assert!(watch.tell(&mut ControlChannel::alone(&mut said)).is_ok());
            assert_eq!(watch.loaded(3).rows, 3);
            String::from_utf8(said).expect("JSON")
        };
        assert_eq!(told(LEAST_BYTES as usize, Duration::ZERO), "");
        assert_eq!(told(10, PAUSE), "");
        let line = told(LEAST_BYTES as usize, PAUSE);
        let wanted = r#"{"loading_file":{"file":"shop.sql","bytes":7,"of":1048576,"seconds":"#;
        assert!(line.starts_with(wanted), "{line}");
    }
}
