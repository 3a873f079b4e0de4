//! Makes a trace of the logs of a server.

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::log::{Logged, each_logged};
use rqps_model::bounded;
use rqps_model::dialect::Dialect;
use rqps_text::trace::{
    SentStatement, TRACE_VERSION, TraceEnd, TraceHead, TraceWriter, ValueHasher,
};

/// A line that is so much older than the one before means that a clock was set back.
const SET_BACK_MS: f64 = 5_000.0;

/// Sessions whose names are kept.
const SESSIONS_MOST: usize = 100_000;

/// First words of statements that a trace does not repeat, and why.
const UNREPEATED: [(&str, &str); 7] = [
    ("COPY", "COPY: its rows are in no log"),
    ("LOAD", "LOAD: its file is in no log"),
    ("KILL", "KILL: it acts on sessions of the server"),
    ("SHUTDOWN", "SHUTDOWN: it ends the server"),
    ("RESTART", "RESTART: it ends the server"),
    ("USE", "USE: a replay has one database"),
    ("LISTEN", "LISTEN: nobody takes its messages"),
];

/// Writes a trace of these logs, in their order. With a hasher, hashes stand for values.
///
/// # Errors
/// A log cannot be read, or holds nothing that a trace could have.
pub fn record<W: Write>(
    dialect: Dialect,
    logs: &[PathBuf],
    hasher: Option<ValueHasher>,
    out: W,
) -> Result<(W, TraceEnd)> {
    let mut maker = TraceMaker::new(dialect, hasher, out);
    for path in logs {
        let doing = || format!("read the log {}", path.display());
        let log = std::io::BufReader::new(bounded::plain(path).with_context(doing)?);
        maker.take(log).with_context(doing)?;
    }
    maker.end()
}

/// A trace that is being made.
pub(super) struct TraceMaker<W: Write> {
    dialect: Dialect,
    hasher: Option<ValueHasher>,
    /// Until the first statement says how exact times are.
    out: Option<W>,
    writer: Option<TraceWriter<W>>,
    sessions: HashMap<String, u32>,
    /// The moment of the first line, and of the last one.
    first: f64,
    last: f64,
    /// What clocks that were set back took away.
    shift: f64,
}

impl<W: Write> TraceMaker<W> {
    pub(super) fn new(dialect: Dialect, hasher: Option<ValueHasher>, out: W) -> TraceMaker<W> {
        let (sessions, first, last, shift) = (HashMap::new(), 0.0, 0.0, 0.0);
        let (out, writer) = (Some(out), None);
        TraceMaker { dialect, hasher, out, writer, sessions, first, last, shift }
    }

    /// Adds a log.
    pub(super) fn take(&mut self, log: impl BufRead) -> Result<()> {
        each_logged(self.dialect, log, &mut |one| {
            let line = one.line;
            self.add(&one).with_context(|| format!("use line {line}"))
        })
    }

    fn add(&mut self, one: &Logged<'_>) -> Result<()> {
        let text = one.text.trim().trim_end_matches(';').trim_end();
        let Some(at) = moment(one.at).filter(|_| !one.session.is_empty()) else {
            bail!(
                "it has no time or no session\nhint: Postgres has both in csvlog, jsonlog, and with \
                 log_line_prefix = '%m [%p] '"
            );
        };
        if self.writer.is_none() {
            let precision_ms = precision(one.at);
            let (version, hashed) = (TRACE_VERSION, self.hasher.is_some());
            let head = TraceHead { version, dialect: self.dialect, precision_ms, hashed };
            let out = self.out.take().context("begin it once")?;
            self.writer = Some(TraceWriter::begin(out, head)?);
            (self.first, self.last) = (at, at);
        }
        let mut at = at + self.shift;
        if at < self.last - SET_BACK_MS {
            self.shift += self.last - at;
            at = self.last;
        }
        self.last = self.last.max(at);
        let at = at - self.first;
        let (text, values) = match self.repeated(text, one) {
            Ok(found) => found,
            Err(why) => {
                self.writer.as_mut().context("begin it first")?.leave_out(why);
                return Ok(());
            }
        };
        let next = self.sessions.len();
        if next == SESSIONS_MOST && !self.sessions.contains_key(one.session) {
            bail!("more than {SESSIONS_MOST} sessions\nhint: name a part of the log");
        }
        let session = *self.sessions.entry(one.session.to_owned()).or_insert(next as u32 + 1);
        let sent = SentStatement {
            session,
            at: rounded(if one.is_begin { at } else { at - one.ms.unwrap_or(0.0) }),
            // Of what failed only the end is told.
            ms: one.ms.or((!one.is_begin).then_some(0.0)),
            values,
            prepared: one.name.is_some_and(|name| !name.starts_with("<unnamed>")),
            rows: one.rows,
            error: one.error.map(str::to_owned),
            ..SentStatement::default()
        };
        self.writer.as_mut().context("begin it first")?.add(&text, sent)?;
        Ok(())
    }

    /// The text and the values as the trace has them, or why it has not.
    fn repeated(
        &self,
        text: &str,
        one: &Logged<'_>,
    ) -> Result<(String, Vec<Option<String>>), &'static str> {
        let first = text.split(|it: char| !it.is_ascii_alphabetic()).next().unwrap_or_default();
        if text.is_empty() {
            return Err("an error without its statement");
        }
        if let Some((_, why)) = UNREPEATED.iter().find(|(it, _)| first.eq_ignore_ascii_case(it)) {
            return Err(why);
        }
        if one.name.is_some_and(|name| name.starts_with("fetch from ")) {
            return Err("a further part of a result");
        }
        let values = if one.name.is_some() { parameters(one.values) } else { Some(Vec::new()) };
        let values = values.ok_or("its values are not told whole")?;
        if self.dialect == Dialect::Postgres && placeholders(text) > values.len() {
            return Err("its values are not in the log (log_parameter_max_length)");
        }
        let Some(hasher) = &self.hasher else { return Ok((text.to_owned(), values)) };
        let hidden =
            hasher.text(text, self.dialect).ok_or("nobody can tell where its values end")?;
        let hide = |value: Option<String>| value.map(|value| hasher.value(&value));
        Ok((hidden, values.into_iter().map(hide).collect()))
    }

    /// Ends the trace.
    pub(super) fn end(self) -> Result<(W, TraceEnd)> {
        let none = "find a statement with its time and session\nhint: Postgres needs \
                    log_min_duration_statement = 0; MySQL and MariaDB need the general log, or the \
                    slow log with long_query_time = 0";
        let (out, end) = self.writer.context(none)?.end()?;
        if end.statements == 0 {
            bail!("{none}");
        }
        Ok((out, end))
    }
}

/// Microseconds are as exact as any log.
fn rounded(ms: f64) -> f64 {
    (ms * 1000.0).round() / 1000.0
}

/// The largest number of a placeholder of Postgres.
fn placeholders(text: &str) -> usize {
    let Ok(all) = rqps_text::tokens(Dialect::Postgres, text.as_bytes()) else { return usize::MAX };
    let said = all.iter().filter_map(|token| text.get(token.begin..token.end));
    said.filter_map(|said| said.strip_prefix('$')?.parse().ok()).max().unwrap_or(0)
}

/// The values in `Parameters: $1 = '4', $2 = NULL`; `None` if they are cut.
fn parameters(detail: &str) -> Option<Vec<Option<String>>> {
    let mut rest = match detail.split_once(':') {
        Some((word, rest)) if word.eq_ignore_ascii_case("parameters") => rest.trim_start(),
        _ => return Some(Vec::new()),
    };
    let mut values = Vec::new();
    loop {
        rest = rest.strip_prefix(&format!("${} = ", values.len() + 1))?;
        if let Some(more) = rest.strip_prefix("NULL") {
            values.push(None);
            rest = more;
        } else {
            let (mut value, mut more) = (String::new(), rest.strip_prefix('\'')?);
            loop {
                let (part, after) = more.split_once('\'')?;
                value.push_str(part);
                more = after;
                match more.strip_prefix('\'') {
                    Some(after) => (value, more) = (value + "'", after),
                    None => break,
                }
            }
            values.push(Some(value));
            rest = more;
        }
        match rest.strip_prefix(", ") {
            Some(more) => rest = more,
            None => return rest.trim().is_empty().then_some(values),
        }
    }
}

/// How exact a time is, milliseconds.
fn precision(time: &str) -> f64 {
    let digits = time
        .split_once('.')
        .map_or(0, |(_, rest)| rest.bytes().take_while(u8::is_ascii_digit).count().min(6));
    1000.0 / 10_f64.powi(digits as i32)
}

/// Milliseconds since 1970 of `2026-11-27 10:00:00.123 UTC`, `2026-11-27T10:00:00.123456Z` or
/// `261127 10:00:00`, in the zone of the log.
pub(super) fn moment(time: &str) -> Option<f64> {
    let mut parts = time.split(|it: char| !it.is_ascii_digit()).filter(|part| !part.is_empty());
    let mut next = || parts.next()?.parse::<i64>().ok();
    let first = next()?;
    let (year, month, day) = match first {
        10_101.. => (2000 + first / 10_000, first / 100 % 100, first % 100),
        _ => (first, next()?, next()?),
    };
    let (hour, minute, second) = (next()?, next()?, next()?);
    let within = |it: i64, least: i64, most: i64| (least..=most).contains(&it).then_some(());
    within(year, 1970, 9999).and(within(month, 1, 12)).and(within(day, 1, 31))?;
    within(hour, 0, 24).and(within(minute, 0, 59)).and(within(second, 0, 60))?;
    let fraction = time.split_once('.').map_or("", |(_, rest)| rest);
    let fraction = fraction.split(|it: char| !it.is_ascii_digit()).next().unwrap_or_default();
    let fraction: f64 = format!("0.{fraction}0").parse().ok()?;
    // Days since 1970 by http://howardhinnant.github.io/date_algorithms.html#days_from_civil
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
    Some(((days * 24 + hour) * 60 + minute) as f64 * 60_000.0 + (second as f64 + fraction) * 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_text::trace::Trace;

    fn made(dialect: Dialect, log: &str) -> Trace {
        let mut maker = TraceMaker::new(dialect, None, Vec::new());
        maker.take(log.as_bytes()).unwrap();
        Trace::read(maker.end().unwrap().0.as_slice()).unwrap()
    }

    /// `session at+ms text values error`, a line each.
    fn lines(trace: &Trace) -> String {
        let line = |one: &SentStatement| {
            let ms = one.ms.map_or("?".to_owned(), |ms| ms.to_string());
            let text = &trace.texts[one.text as usize - 1];
            let mut line = format!("{} {}+{ms} {text}", one.session, one.at);
            let value = |value: &Option<String>| value.clone().unwrap_or("NULL".to_owned());
            let values: Vec<String> = one.values.iter().map(value).collect();
            line += &values.iter().map(|value| format!(" <{value}>")).collect::<String>();
            line += if one.prepared { " prepared" } else { "" };
            line + &one.error.as_ref().map_or(String::new(), |code| format!(" !{code}"))
        };
        trace.sent.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn every_log_of_postgres_gives_the_same_trace() {
        let want = "1 -2+2 BEGIN\n\
                    2 -0.5+1.5 UPDATE t SET a = $1\n  WHERE b = $2 <it's> <NULL> prepared\n\
                    1 2+0 SELECT no !42703\n\
                    1 3+0 SELECT 'x'";
        let entries = [
            ("00.000", "a.1", "LOG", "00000", "duration: 2.000 ms  statement: BEGIN;", "", ""),
            (
                "00.001",
                "b.2",
                "LOG",
                "00000",
                "duration: 1.500 ms  execute S_1/C_1: UPDATE t SET a = $1\n  WHERE b = $2",
                "Parameters: $1 = 'it''s', $2 = NULL",
                "",
            ),
            ("00.002", "a.1", "ERROR", "42703", "column no", "", "SELECT no"),
            (
                "00.002",
                "a.1",
                "LOG",
                "00000",
                "duration: 0.1 ms  statement: COPY t TO STDOUT",
                "",
                "",
            ),
            ("00.003", "a.1", "LOG", "00000", "duration: 0 ms  statement: SELECT 'x'", "", ""),
            (
                "00.003",
                "a.1",
                "LOG",
                "00000",
                "duration: 0 ms  execute <unnamed>: SELECT $1",
                "",
                "",
            ),
        ];
        let (mut csv, mut json, mut plain) = (String::new(), String::new(), String::new());
        for (time, session, severity, state, message, detail, statement) in entries {
            let time = format!("2026-11-27 10:00:{time} UTC");
            let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
            csv += &format!(
                "{time},u,d,7,h,{session},1,q,t,v,0,{severity},{state},{},{},,,,,{},,,,\n",
                quoted(message),
                quoted(detail),
                quoted(statement)
            );
            json += &(serde_json::json!({"timestamp": time, "session_id": session,
                "error_severity": severity, "state_code": state, "message": message,
                "detail": detail, "statement": statement})
            .to_string()
                + "\n");
            let mut line = |word: &str, text: &str| {
                let text = text.replace('\n', "\n\t");
                plain += &format!("{time} [{session}] {word}:  {text}\n");
            };
            line(severity, message);
            for (word, text) in [("DETAIL", detail), ("STATEMENT", statement)] {
                if !text.is_empty() {
                    line(word, text);
                }
            }
        }
        for log in [csv, json] {
            let trace = made(Dialect::Postgres, &log);
            assert_eq!(lines(&trace), want);
            assert_eq!(trace.head.precision_ms, 1.0);
            assert_eq!(trace.end.left_out.values().sum::<u64>(), 2);
        }
        // Its prefix has no code of an error.
        assert_eq!(lines(&made(Dialect::Postgres, &plain)), want.replace("42703", "error"));
    }

    #[test]
    fn logs_of_mysql_and_mariadb_give_traces() {
        let slow = "/usr/sbin/mysqld, Version: 8.0.33. started with:\nTcp port: 3306\n\
             # Time: 2026-11-27T10:00:00.000000Z\n# User@Host: me[me] @ localhost []  Id:     8\n\
             # Query_time: 0.003000  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 9\n\
             use shop;\nSET timestamp=1700000000;\nSELECT a\n# why\nFROM t;\n\
             # Time: 2026-11-27T10:00:00.000100Z\n# User@Host: me[me] @ localhost []  Id:     9\n\
             # Query_time: 0.000001  Lock_time: 0.0 Rows_sent: 0\n\
             SET timestamp=1700000001;\n# administrator command: Quit;\n\
             # Time: 2026-11-27T10:00:00.000200Z\n# User@Host: me[me] @ localhost []  Id:     9\n\
             # Query_time: 0.000100  Lock_time: 0.0 Rows_sent: 0\nSET timestamp=1700000001;\nCOMMIT;\n";
        let trace = made(Dialect::Mysql, slow);
        assert_eq!(lines(&trace), "1 -3+3 SELECT a\n# why\nFROM t\n2 0.1+0.1 COMMIT");
        assert_eq!((trace.sent[0].rows, trace.head.precision_ms), (Some(1), 0.001));
        let general = "mysqld, Version: 8.0\nTime                 Id Command    Argument\n\
             2026-11-27T10:00:00.000000Z\t    8 Connect\tme@localhost on shop using Socket\n\
             2026-11-27T10:00:00.001000Z\t    8 Query\tSELECT 1\t,\n  2\n\
             2026-11-27T10:00:00.002000Z\t    9 Prepare\tSELECT ?\n\
             2026-11-27T10:00:00.002500Z\t    9 Execute\tSELECT 7\n\
             2026-11-27T10:00:00.003000Z\t    9 Quit\t\n";
        assert_eq!(
            lines(&made(Dialect::Mysql, general)),
            "1 0+? SELECT 1\t,\n  2\n2 1.5+? SELECT 7"
        );
        let mariadb = "261127 10:00:00\t     8 Query\tSELECT 1\n\t\t     9 Query\tSELECT 2\n\
             261127 10:00:01\t     9 Query\tSELECT 3\n";
        let trace = made(Dialect::Mysql, mariadb);
        assert_eq!(lines(&trace), "1 0+? SELECT 1\n2 0+? SELECT 2\n2 1000+? SELECT 3");
        assert_eq!(trace.head.precision_ms, 1000.0);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_change_the_order() {
        let line = |time: &str, text: &str| {
            format!("2026-11-27 {time} UTC [7] LOG:  duration: 0 ms  statement: {text}\n")
        };
        let log = line("10:00:10.000", "SELECT 1")
            + &line("09:00:00.000", "SELECT 2")
            + &line("09:00:01.000", "SELECT 3");
        assert_eq!(
            lines(&made(Dialect::Postgres, &log)),
            "1 0+0 SELECT 1\n1 0+0 SELECT 2\n1 1000+0 SELECT 3"
        );
    }

    #[test]
    fn hashes_hide_values_and_keep_what_is_equal() {
        let log = "2026-11-27 10:00:00.000 UTC [7] LOG:  duration: 1 ms  statement: SELECT 'Ada', 42 -- me\n\
                   2026-11-27 10:00:00.000 UTC [7] LOG:  duration: 1 ms  execute <unnamed>: SELECT $1, 1.5\n\
                   2026-11-27 10:00:00.000 UTC [7] DETAIL:  parameters: $1 = 'Ada'\n";
        let hasher = Some(ValueHasher::new([7; 32]));
        let mut maker = TraceMaker::new(Dialect::Postgres, hasher, Vec::new());
        maker.take(log.as_bytes()).unwrap();
        let bytes = maker.end().unwrap().0;
        let text = String::from_utf8(bytes.clone()).unwrap();
        for secret in ["Ada", "42", "-- me"] {
            assert!(!text.contains(secret), "{text}");
        }
        let trace = Trace::read(bytes.as_slice()).unwrap();
        let name = trace.sent[1].values[0].clone().unwrap();
        assert!(trace.head.hashed && name.len() == 3, "{text}");
        assert!(trace.texts[0].starts_with(&format!("SELECT '{name}', ")), "{text}");
    }

    #[test]
    fn a_log_without_sessions_is_refused_with_a_way_out() {
        let mut maker = TraceMaker::new(Dialect::Postgres, None, Vec::new());
        let log = "LOG:  duration: 1 ms  statement: SELECT 1\n";
        let error = format!("{:#}", maker.take(log.as_bytes()).unwrap_err());
        assert!(error.contains("line 1") && error.contains("log_line_prefix"), "{error}");
        assert!(format!("{:#}", maker.end().unwrap_err()).contains("log_min_duration_statement"));
    }
}
