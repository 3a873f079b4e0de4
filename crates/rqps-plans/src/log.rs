//! Statements in the logs of servers, with the share of the time that each kind takes: of Postgres
//! `jsonlog`, `csvlog` and plain logs with `log_min_duration_statement`, of MySQL and MariaDB the
//! slow log. A log is read as a stream; what it holds is somebody else's.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::rehearsal::Statement;
use rqps_model::bounded;
use rqps_model::dialect::Dialect;
use rqps_text::{CsvReader, CsvRecord, TokenKind, tokens};

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

/// Fields of a line of `csvlog`: the severity, the message.
const CSV_MESSAGE: usize = 13;

/// What the lines of the slow log before a statement begin with.
const SLOW_HEADS: [&str; 3] = ["# Time:", "# User@Host:", "# Query_time:"];

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
    pub fn take(&mut self, mut log: impl BufRead, name: &str) -> Result<()> {
        let begin = log.fill_buf()?;
        let first = begin.iter().find(|byte| !byte.is_ascii_whitespace());
        let line = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let is_csv = line.iter().filter(|byte| **byte == b',').count() > CSV_MESSAGE;
        match (self.dialect, first) {
            (Dialect::Mysql, _) => self.slow_log(log, name),
            (_, Some(b'{')) => self.json_log(log, name),
            _ if is_csv => self.csv_log(log, name),
            _ => self.plain_log(log, name),
        }
    }

    fn json_log(&mut self, mut log: impl BufRead, name: &str) -> Result<()> {
        #[derive(Deserialize)]
        struct Entry {
            #[serde(default)]
            message: String,
        }
        each_line(&mut log, |number, line| {
            // A line that is cut, as the last one, or of another program, is none of a statement.
            if let Ok(entry) = serde_json::from_str::<Entry>(line) {
                self.message(&entry.message, name, number);
            }
        })
    }

    fn csv_log(&mut self, log: impl BufRead, name: &str) -> Result<()> {
        let mut reader = CsvReader::new(log, b',');
        let mut record = CsvRecord::default();
        while reader.read(&mut record)? {
            if let Some((message, _)) = record.field(CSV_MESSAGE) {
                self.message(&String::from_utf8_lossy(message), name, record.line);
            }
        }
        Ok(())
    }

    /// A message begins on a line with `LOG:  `, after a prefix that the user sets; its other lines
    /// begin with a tab.
    fn plain_log(&mut self, mut log: impl BufRead, name: &str) -> Result<()> {
        let (mut message, mut begun) = (String::new(), 0);
        each_line(&mut log, |number, line| {
            if let Some(more) = line.strip_prefix('\t') {
                if !message.is_empty()
                    && message.len() + line.len() < bounded::STATEMENT_MAX as usize
                {
                    message.push('\n');
                    message.push_str(more);
                }
                return;
            }
            self.message(&message, name, begun);
            message = line.split_once("LOG:  ").map_or("", |(_, text)| text).to_owned();
            begun = number;
        })?;
        self.message(&message, name, begun);
        Ok(())
    }

    fn slow_log(&mut self, mut log: impl BufRead, name: &str) -> Result<()> {
        let (mut ms, mut text, mut begun) = (None, String::new(), 0);
        each_line(&mut log, |number, line| {
            if SLOW_HEADS.iter().any(|head| line.starts_with(head)) {
                if let Some(ms) = ms.take() {
                    self.add(&text, ms, name, begun);
                }
                text.clear();
                let seconds = line.strip_prefix("# Query_time:").unwrap_or_default();
                let seconds = seconds.split_whitespace().next().and_then(|it| it.parse().ok());
                ms = seconds.map(|seconds: f64| seconds * 1000.0);
                begun = number + 1;
                return;
            }
            let is_set = text.is_empty()
                && (line.starts_with("SET timestamp=") || line.to_lowercase().starts_with("use "));
            let is_note = text.is_empty() && line.starts_with('#');
            if ms.is_some()
                && !is_set
                && !is_note
                && text.len() + line.len() < bounded::STATEMENT_MAX as usize
            {
                text.push_str(line);
                text.push('\n');
            }
        })?;
        if let Some(ms) = ms {
            self.add(&text, ms, name, begun);
        }
        Ok(())
    }

    /// `duration: 0.123 ms  statement: SELECT 1`, or `execute NAME: SELECT $1`.
    fn message(&mut self, message: &str, name: &str, line: u64) {
        let Some((ms, rest)) =
            message.strip_prefix("duration: ").and_then(|rest| rest.split_once(" ms  "))
        else {
            return;
        };
        let text = match rest.strip_prefix("statement: ") {
            Some(text) => Some(text),
            None => rest
                .strip_prefix("execute ")
                .and_then(|rest| rest.split_once(": "))
                .map(|(_, text)| text),
        };
        if let (Ok(ms), Some(text)) = (ms.parse(), text) {
            self.add(text, ms, name, line);
        }
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
        let key = kind(text, self.dialect);
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

/// The statement without its values: in `IN (1, 2)` and `VALUES (1, 2)`, however many.
fn kind(text: &str, dialect: Dialect) -> String {
    let Ok(all) = tokens(dialect, text.as_bytes()) else { return text.to_owned() };
    let mut parts: Vec<String> = Vec::new();
    for token in all {
        let said = String::from_utf8_lossy(&text.as_bytes()[token.begin..token.end]);
        let part = match token.kind {
            TokenKind::Text | TokenKind::Number => "?".to_owned(),
            TokenKind::Word => said.to_lowercase(),
            TokenKind::Name | TokenKind::Sign => said.into_owned(),
        };
        if part == "?" && parts.ends_with(&["?".to_owned(), ",".to_owned()]) {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join(" ")
}

/// Gives each line with its number, from 1.
fn each_line(log: &mut impl BufRead, mut take: impl FnMut(u64, &str)) -> Result<()> {
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        if bounded::line(log, &mut line, bounded::STATEMENT_MAX)? == 0 {
            return Ok(());
        }
        number += 1;
        let text = String::from_utf8_lossy(&line);
        take(number, text.trim_end_matches(['\n', '\r']));
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
