//! Statements in the logs of servers, with the share of the time that each kind takes: of Postgres
//! `jsonlog`, `csvlog` and plain logs with `log_min_duration_statement`, of MySQL and MariaDB the
//! slow log; a trace is made of the general log, too. A log is read as a
//! stream; what it holds is somebody else's.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::record::moment;
use crate::rehearsal::Statement;
use rqps_model::bounded;
use rqps_model::dialect::Dialect;
use rqps_text::trace::statement_class;
use rqps_text::{CsvReader, CsvRecord};

/// Kinds of statements that are kept. A program that writes values into names of tables has no end
/// of them.
const KINDS_MOST: usize = 100_000;

/// Bytes of their texts that are kept.
const TEXTS_MOST: usize = 256 << 20;

/// The longest statement: thirty years.
const LONGEST_MS: f64 = 1e12;

/// First words of statements that have a plan.
const PLANNED: [&str; 10] = [
    "SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE",
    "REFRESH",
];

/// Fields of a line of `csvlog`.
mod csv {
    pub(super) const SESSION: usize = 5;
    pub(super) const SEVERITY: usize = 11;
    pub(super) const STATE: usize = 12;
    pub(super) const MESSAGE: usize = 13;
    pub(super) const DETAIL: usize = 14;
    pub(super) const STATEMENT: usize = 19;
}

/// What the lines of the slow log before a statement begin with.
const SLOW_HEADS: [&str; 4] = ["# Time:", "# User@Host:", "# Thread_id:", "# Query_time:"];

/// Statements of one kind: they differ in their values only.
#[derive(Debug)]
struct StatementKind {
    /// The slowest one.
    text: String,
    slowest_ms: f64,
    origin: String,
    all_ms: f64,
    calls: u64,
}

/// What logs hold, by kinds of statements.
#[derive(Debug)]
pub struct StatementLog {
    dialect: Dialect,
    kinds: HashMap<String, StatementKind>,
    /// Time of all statements, also of those without a plan.
    all_ms: f64,
    /// Bytes of texts.
    held: usize,
    /// Statements beyond [`KINDS_MOST`] and [`TEXTS_MOST`].
    left_out: u64,
}

impl StatementLog {
    /// Nothing yet, of servers of this dialect.
    pub fn new(dialect: Dialect) -> StatementLog {
        StatementLog { dialect, kinds: HashMap::new(), all_ms: 0.0, held: 0, left_out: 0 }
    }

    /// Adds a log.
    ///
    /// # Errors
    /// It cannot be read, or has no statement with its time.
    pub fn read(&mut self, path: &Path) -> Result<()> {
        let doing = || format!("read the log {}", path.display());
        let file = bounded::plain(path).with_context(doing)?;
        let before = self.all_ms;
        self.take(std::io::BufReader::new(file), &path.to_string_lossy()).with_context(doing)?;
        if self.all_ms == before {
            let setting = match self.dialect {
                Dialect::Mysql => "slow_query_log with long_query_time = 0",
                _ => "log_min_duration_statement = 0",
            };
            bail!("{}: no statement in it has its time\nhint: the server needs {setting}", doing());
        }
        Ok(())
    }

    /// Adds the text of a log, which `name` stands for in origins.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn take(&mut self, log: impl BufRead, name: &str) -> Result<()> {
        each_logged(self.dialect, log, &mut |one| {
            if let Some(ms) = one.ms {
                self.add(one.text, ms, name, one.line);
            }
            Ok(())
        })
    }

    fn add(&mut self, text: &str, ms: f64, name: &str, line: u64) {
        let text = text.trim().trim_end_matches(';').trim_end();
        if !(0.0..=LONGEST_MS).contains(&ms) || text.is_empty() {
            return;
        }
        self.all_ms += ms;
        let first = text.trim_start_matches('(').split(|it: char| !it.is_ascii_alphabetic()).next();
        if !first.is_some_and(|it| PLANNED.contains(&it.to_ascii_uppercase().as_str())) {
            return;
        }
        let key = statement_class(text, self.dialect);
        let is_full =
            self.kinds.len() >= KINDS_MOST || self.held + key.len() + text.len() > TEXTS_MOST;
        if is_full && !self.kinds.contains_key(&key) {
            self.left_out += 1;
            return;
        }
        if !self.kinds.contains_key(&key) {
            self.held += key.len();
        }
        let known = self.kinds.entry(key).or_insert_with(|| StatementKind {
            text: String::new(),
            slowest_ms: -1.0,
            origin: String::new(),
            all_ms: 0.0,
            calls: 0,
        });
        known.all_ms += ms;
        known.calls += 1;
        if ms > known.slowest_ms && !(is_full && text.len() > known.text.len()) {
            known.slowest_ms = ms;
            self.held = self.held + text.len() - known.text.len();
            known.text = text.to_owned();
            known.origin = format!("{name}:{line}");
        }
    }

    /// The statements that take most of the time, each with the values of its slowest execution,
    /// numbered on from those that are there. Returns what is left out, in words.
    pub fn statements(self, most: usize, found: &mut Vec<Statement>) -> Option<String> {
        let mut kinds: Vec<StatementKind> = self.kinds.into_values().collect();
        kinds.sort_by(|a, b| b.all_ms.total_cmp(&a.all_ms).then_with(|| a.text.cmp(&b.text)));
        let more = (kinds.len().saturating_sub(most) as u64) + self.left_out;
        for kind in kinds.into_iter().take(most) {
            found.push(Statement {
                number: found.len() + 1,
                text: kind.text,
                origin: format!("{} and {} more", kind.origin, kind.calls - 1),
                step: None,
                share: Some(kind.all_ms / self.all_ms.max(f64::MIN_POSITIVE)),
            });
        }
        (more > 0).then(|| format!("{more} more kinds of statements in the log are left out"))
    }
}

/// A statement in a log.
#[derive(Debug, Default)]
pub(super) struct Logged<'a> {
    pub(super) text: &'a str,
    /// The time that it took, milliseconds.
    pub(super) ms: Option<f64>,
    pub(super) line: u64,
    /// What the log calls the session.
    pub(super) session: &'a str,
    /// When the line was written, as the log says it.
    pub(super) at: &'a str,
    /// True if it began then, false if it ended.
    pub(super) is_begin: bool,
    /// The values of its placeholders, as Postgres tells them.
    pub(super) values: &'a str,
    /// The name under which it was prepared.
    pub(super) name: Option<&'a str>,
    pub(super) rows: Option<u64>,
    /// The code of its error.
    pub(super) error: Option<&'a str>,
}

/// What takes the statements of a log.
type Take<'a> = dyn FnMut(Logged<'_>) -> Result<()> + 'a;

/// Gives each statement of a log.
///
/// # Errors
/// It cannot be read, or `take` fails.
pub(super) fn each_logged(
    dialect: Dialect,
    mut log: impl BufRead,
    take: &mut Take<'_>,
) -> Result<()> {
    let begin = log.fill_buf()?;
    let first = begin.iter().find(|byte| !byte.is_ascii_whitespace());
    let line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let is_csv = line.iter().filter(|byte| **byte == b',').count() > csv::MESSAGE;
    match (dialect, first) {
        (Dialect::Mysql, _) => mysql_log(log, take),
        (_, Some(b'{')) => json_log(log, take),
        _ if is_csv => csv_log(log, take),
        _ => plain_log(log, take),
    }
}

/// The fields of a message of Postgres.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Message {
    timestamp: String,
    session_id: String,
    error_severity: String,
    state_code: String,
    message: String,
    detail: String,
    /// The statement that failed.
    statement: String,
}

fn json_log(mut log: impl BufRead, take: &mut Take<'_>) -> Result<()> {
    each_line(&mut log, |number, line| {
        // A line that is cut, as the last one, or of another program, is none of a statement.
        serde_json::from_str::<Message>(line).map_or(Ok(()), |one| one.give(number, take))
    })
}

fn csv_log(log: impl BufRead, take: &mut Take<'_>) -> Result<()> {
    let mut reader = CsvReader::new(log, b',');
    let mut record = CsvRecord::default();
    while reader.read(&mut record)? {
        let field = |at| {
            let found = record.field(at).unwrap_or_default().0;
            String::from_utf8_lossy(found).into_owned()
        };
        let message = Message {
            timestamp: field(0),
            session_id: field(csv::SESSION),
            error_severity: field(csv::SEVERITY),
            state_code: field(csv::STATE),
            message: field(csv::MESSAGE),
            detail: field(csv::DETAIL),
            statement: field(csv::STATEMENT),
        };
        message.give(record.line, take)?;
    }
    Ok(())
}

/// A message begins on a line with `LOG:  `, after a prefix that the user sets; its other lines begin
/// with a tab. Those with `DETAIL:  ` and `STATEMENT:  ` belong to the one before.
fn plain_log(mut log: impl BufRead, take: &mut Take<'_>) -> Result<()> {
    let (mut message, mut begun) = (Message::default(), 0);
    let mut is_of = Field::Other;
    each_line(&mut log, |number, line| {
        let found = FIELDS.iter().find_map(|(mark, field)| Some((line.split_once(mark)?, *field)));
        let ((prefix, text), field) = match (line.strip_prefix('\t'), found) {
            (Some(more), _) => (("", more), is_of),
            (None, Some(found)) => found,
            (None, None) => (("", ""), Field::Other),
        };
        if matches!(field, Field::Message | Field::Error) && !line.starts_with('\t') {
            std::mem::take(&mut message).give(begun, take)?;
            begun = number;
            let (time, session) = prefix.split_once('[').unwrap_or_default();
            message.timestamp = time.to_owned();
            message.session_id = session.split(']').next().unwrap_or_default().to_owned();
            if field == Field::Error {
                message.error_severity = "ERROR".to_owned();
                // The prefix may have no code.
                message.state_code = "error".to_owned();
            }
        }
        is_of = field;
        let of = match field {
            Field::Message | Field::Error => &mut message.message,
            Field::Detail => &mut message.detail,
            Field::Statement => &mut message.statement,
            Field::Other => return Ok(()),
        };
        if of.len() + text.len() < bounded::STATEMENT_MAX as usize {
            if line.starts_with('\t') {
                of.push('\n');
            }
            of.push_str(text);
        }
        Ok(())
    })?;
    message.give(begun, take)
}

/// What a line of a plain log belongs to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Message,
    Error,
    Detail,
    Statement,
    Other,
}

/// What these lines say after a prefix.
const FIELDS: [(&str, Field); 4] = [
    ("LOG:  ", Field::Message),
    ("ERROR:  ", Field::Error),
    ("DETAIL:  ", Field::Detail),
    ("STATEMENT:  ", Field::Statement),
];

impl Message {
    /// `duration: 0.123 ms  statement: SELECT 1`, or `execute NAME: SELECT $1`; or an error with the
    /// statement that failed.
    fn give(self, line: u64, take: &mut Take<'_>) -> Result<()> {
        let said = Logged {
            line,
            session: &self.session_id,
            at: &self.timestamp,
            values: &self.detail,
            ..Logged::default()
        };
        if self.error_severity == "ERROR" {
            let error = Some(self.state_code.as_str());
            return take(Logged { text: &self.statement, error, values: "", ..said });
        }
        let Some((ms, rest)) =
            self.message.strip_prefix("duration: ").and_then(|rest| rest.split_once(" ms  "))
        else {
            return Ok(());
        };
        let (name, text) = match rest.strip_prefix("statement: ") {
            Some(text) => (None, text),
            None => match rest.strip_prefix("execute ").and_then(|rest| rest.split_once(": ")) {
                Some((name, text)) => (Some(name), text),
                None => return Ok(()),
            },
        };
        match ms.parse() {
            Ok(ms) => take(Logged { text, ms: Some(ms), name, ..said }),
            Err(_) => Ok(()),
        }
    }
}

/// The slow log and the general log.
fn mysql_log(mut log: impl BufRead, take: &mut Take<'_>) -> Result<()> {
    let mut entry = MysqlEntry::default();
    let mut time = String::new();
    each_line(&mut log, |number, line| {
        if let Some((at, session, command, text)) = general(line).filter(|_| !entry.is_slow) {
            std::mem::take(&mut entry).give(&time, take)?;
            if !at.is_empty() {
                at.clone_into(&mut time);
            }
            if matches!(command, "Query" | "Execute") {
                entry = MysqlEntry { line: number, is_open: true, ..MysqlEntry::default() };
                session.clone_into(&mut entry.session);
                entry.add(text);
            }
            return Ok(());
        }
        if SLOW_HEADS.iter().any(|head| line.starts_with(head)) {
            if entry.is_open || !entry.is_slow {
                let session = entry.session.clone();
                std::mem::take(&mut entry).give(&time, take)?;
                entry = MysqlEntry { is_slow: true, session, ..MysqlEntry::default() };
            }
            entry.head(line, &mut time);
            entry.line = number + 1;
            return Ok(());
        }
        let is_set = entry.is_slow
            && (line.starts_with("SET timestamp=") || line.to_lowercase().starts_with("use "));
        let is_note = entry.is_slow && line.starts_with('#');
        if entry.is_open && !(entry.text.is_empty() && (is_set || is_note)) {
            entry.add(line);
        }
        Ok(())
    })?;
    entry.give(&time, take)
}

/// An entry of a log of MySQL or MariaDB.
#[derive(Debug, Default)]
struct MysqlEntry {
    is_slow: bool,
    /// True if its text may follow.
    is_open: bool,
    line: u64,
    session: String,
    ms: Option<f64>,
    rows: Option<u64>,
    error: Option<String>,
    text: String,
}

impl MysqlEntry {
    /// A line before the statement in the slow log.
    fn head(&mut self, line: &str, time: &mut String) {
        let after = |mark: &str| line.split_once(mark)?.1.split_whitespace().next();
        if let Some(at) = line.strip_prefix("# Time:") {
            at.trim().clone_into(time);
        }
        if let Some(id) = after("Id:").or_else(|| after("Thread_id:")) {
            id.clone_into(&mut self.session);
        }
        if let Some(seconds) = after("# Query_time:").and_then(|it| it.parse::<f64>().ok()) {
            self.ms = Some(seconds * 1000.0);
            self.is_open = true;
        }
        self.rows = self.rows.or_else(|| after("Rows_sent:")?.parse().ok());
        let error = after("Errno:").filter(|code| *code != "0");
        self.error = self.error.take().or(error.map(str::to_owned));
    }

    fn add(&mut self, line: &str) {
        if self.text.len() + line.len() < bounded::STATEMENT_MAX as usize {
            self.text.push_str(line);
            self.text.push('\n');
        }
    }

    fn give(self, time: &str, take: &mut Take<'_>) -> Result<()> {
        if self.text.trim().is_empty() {
            return Ok(());
        }
        take(Logged {
            text: &self.text,
            ms: self.ms,
            line: self.line,
            session: &self.session,
            at: time,
            is_begin: !self.is_slow,
            rows: self.rows,
            error: self.error.as_deref(),
            ..Logged::default()
        })
    }
}

/// A line of the general log: time (MariaDB leaves it out where it stays), session, command, text.
fn general(line: &str) -> Option<(&str, &str, &str, &str)> {
    const COMMANDS: [&str; 11] = [
        "Query", "Execute", "Prepare", "Connect", "Quit", "Init", "Close", "Statistics", "Field",
        "Reset", "Ping",
    ];
    let (at, rest) = match line.strip_prefix("\t\t") {
        Some(rest) => ("", rest),
        None => line.split_once('\t').filter(|(at, _)| moment(at).is_some())?,
    };
    let (head, text) = rest.split_once('\t').unwrap_or((rest, ""));
    let mut words = head.split_whitespace();
    let (session, command) = (words.next()?, words.next()?);
    let is_head = session.bytes().all(|byte| byte.is_ascii_digit()) && COMMANDS.contains(&command);
    is_head.then_some((at, session, command, text))
}

/// Gives each line with its number, from 1.
fn each_line(log: &mut impl BufRead, mut take: impl FnMut(u64, &str) -> Result<()>) -> Result<()> {
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        if bounded::line(log, &mut line, bounded::STATEMENT_MAX)? == 0 {
            return Ok(());
        }
        number += 1;
        let text = String::from_utf8_lossy(&line);
        take(number, text.trim_end_matches(['\n', '\r']))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(dialect: Dialect, text: &str) -> Vec<(String, f64, String)> {
        let mut log = StatementLog::new(dialect);
        log.take(text.as_bytes(), "log").unwrap();
        let mut found = Vec::new();
        assert_eq!(log.statements(10, &mut found), None);
        let share = |one: &Statement| (one.share.unwrap() * 1000.0).round() / 1000.0;
        found.iter().map(|one| (one.text.clone(), share(one), one.origin.clone())).collect()
    }

    fn wanted(list: &[(&str, f64, &str)]) -> Vec<(String, f64, String)> {
        list.iter().map(|(text, share, at)| (text.to_string(), *share, at.to_string())).collect()
    }

    #[test]
    fn each_log_of_postgres_gives_the_same_statements() {
        let json = r#"{"timestamp":"x","message":"duration: 6.000 ms  statement: SELECT * FROM t WHERE id IN (1, 2)"}
{"timestamp":"x","message":"duration: 2.000 ms  statement: select * from t\n where id in (7);"}
{"timestamp":"x","message":"connection received: host=[local]"}
{"timestamp":"x","message":"duration: 1.500 ms  execute <unnamed>: UPDATE t SET a = $1","detail":"Parameters: $1 = '4'"}
{"timestamp":"x","message":"duration: 0.500 ms  statement: COMMIT"}
{"timestamp":"x","message":"duration: 1e308 ms  statement: SELECT 1"}
{"timestamp":"x","message":"duration: 9.000 ms  bind <unnamed>: UPDATE t SET a = $1"}
{"cut"#;
        let same = [
            ("SELECT * FROM t WHERE id IN (1, 2)", 0.8, "log:1 and 1 more"),
            ("UPDATE t SET a = $1", 0.15, "log:4 and 0 more"),
        ];
        assert_eq!(read(Dialect::Postgres, json), wanted(&same));
        let line = |message: &str| {
            format!("t,u,d,1,h,s,1,q,t,v,0,LOG,00000,\"{message}\",,,,,,,,,\"psql\",\"x\"\n")
        };
        let csv = line("duration: 6.000 ms  statement: SELECT * FROM t WHERE id IN (1, 2)")
            + &line("duration: 2.000 ms  statement: select * from t\n where id in (7);")
            + &line("connection received")
            + &line("duration: 1.500 ms  execute <unnamed>: UPDATE t SET a = $1")
            + &line("duration: 0.500 ms  statement: COMMIT");
        // Its second message has two lines.
        let same_but_lines = [same[0], ("UPDATE t SET a = $1", 0.15, "log:5 and 0 more")];
        assert_eq!(read(Dialect::Postgres, &csv), wanted(&same_but_lines));
        let plain = "2026-11-27 UTC [7] LOG:  duration: 6.000 ms  statement: SELECT * FROM t WHERE id IN (1, 2)\n\
                     2026-11-27 UTC [7] LOG:  duration: 2.000 ms  statement: select * from t\n\t where id in (7);\n\
                     2026-11-27 UTC [7] ERROR:  no\n\
                     2026-11-27 UTC [7] LOG:  duration: 1.500 ms  execute S_1: UPDATE t SET a = $1\n\
                     2026-11-27 UTC [7] DETAIL:  Parameters: $1 = '4'\n\
                     2026-11-27 UTC [7] LOG:  duration: 0.500 ms  statement: COMMIT\n";
        assert_eq!(read(Dialect::Postgres, plain), wanted(&same_but_lines));
    }

    #[test]
    fn the_slow_log_gives_its_statements() {
        let text = "/usr/sbin/mysqld, Version: 8.0.33. started with:\nTcp port: 3306\n\
                    # Time: 2026-11-27T10:00:00.000000Z\n# User@Host: me[me] @ localhost []  Id: 8\n\
                    # Query_time: 0.003000  Lock_time: 0.000100 Rows_sent: 1  Rows_examined: 9\n\
                    use shop;\nSET timestamp=1700000000;\nSELECT a\n# why\nFROM t WHERE b = 'x';\n\
                    # User@Host: me[me] @ localhost []  Id: 8\n\
                    # Query_time: 0.001000  Lock_time: 0.000000 Rows_sent: 0  Rows_examined: 0\n\
                    SET timestamp=1700000001;\n# administrator command: Prepare;\n\
                    # Query_time: 0.001000  Lock_time: 0.0\nselect a FROM t WHERE b = 'y'";
        let found = read(Dialect::Mysql, text);
        assert_eq!(
            found,
            wanted(&[("SELECT a\n# why\nFROM t WHERE b = 'x'", 1.0, "log:6 and 1 more")])
        );
    }

    #[test]
    fn a_log_without_times_is_refused_with_the_setting() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "2026 LOG:  statement: SELECT 1\n").unwrap();
        let refused = StatementLog::new(Dialect::Postgres).read(file.path()).unwrap_err();
        assert!(format!("{refused:#}").contains("log_min_duration_statement"), "{refused:#}");
    }
}
