//! A trace: which session sent which statement, when, and what became of it (docs/traces.md). Its
//! reader takes a trace for hostile.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io::{BufRead, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{TokenKind, reading, tokens, words};
use rqps_model::dialect::Dialect;
use rqps_model::{bounded, escape};

/// The version of the format.
pub const TRACE_VERSION: u32 = 1;

/// Statements, texts and sessions of a trace.
const STATEMENTS_MOST: usize = 10_000_000;
const TEXTS_MOST: usize = 1_000_000;
const SESSIONS_MOST: usize = 100_000;

/// Sessions at the same time.
const CLIENTS_MOST: usize = 1_000;

/// Bytes of texts and values.
const HELD_MOST: usize = 1 << 30;

/// Longest time, milliseconds: thirty years.
const LONGEST_MS: f64 = 1e12;

/// Classes that are told apart; the rest is one more.
pub const CLASSES_MOST: usize = 40;

/// A line of a trace.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TraceLine {
    Trace(TraceHead),
    Text(String),
    Sent(SentStatement),
    End(TraceEnd),
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceHead {
    /// [`TRACE_VERSION`].
    pub version: u32,
    /// The dialect of its statements.
    pub dialect: Dialect,
    /// How exact its times are, milliseconds.
    pub precision_ms: f64,
    /// True if values are replaced by hashes.
    pub hashed: bool,
}

/// A statement that a session sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SentStatement {
    /// The session: any number.
    pub session: u32,
    /// When it began, milliseconds from any moment.
    pub at: f64,
    /// How long it took, milliseconds, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ms: Option<f64>,
    /// The number of its text, from 1.
    pub text: u32,
    /// The values of its placeholders; none for a text without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Option<String>>,
    /// True if it was prepared under a name, and is executed by it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prepared: bool,
    /// Rows that it returned, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The code of its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The last line: without it, a trace was cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceEnd {
    /// Statements in the trace.
    pub statements: u64,
    /// What the source had and the trace has not, by the reason.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub left_out: std::collections::BTreeMap<String, u64>,
}

/// Why a file is no trace that can be used.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct TraceError {
    line: u64,
    why: String,
}

/// A whole trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Its first line.
    pub head: TraceHead,
    /// The texts: number `n` is at `n - 1`.
    pub texts: Vec<String>,
    /// The statements in the order in which they ended, as far as the source knows.
    pub sent: Vec<SentStatement>,
    /// Its last line.
    pub end: TraceEnd,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// It cannot be read, is cut, of another version, or holds more than rqps takes; the text names
    /// the line and a way out.
    pub fn read(mut input: impl BufRead) -> Result<Trace, TraceError> {
        let (mut bytes, mut number, mut held) = (Vec::new(), 0, 0);
        let (mut head, mut end) = (None, None);
        let (mut texts, mut sent): (Vec<String>, Vec<SentStatement>) = Default::default();
        loop {
            number += 1;
            let fault = |why: String| TraceError { line: number, why };
            bytes.clear();
            let length = bounded::line(&mut input, &mut bytes, bounded::WRITTEN_MAX);
            if length.map_err(|error| fault(error.to_string()))? == 0 {
                break;
            }
            let line = match (&head, &end) {
                (None, _) => TraceLine::Trace(read_head(&bytes).map_err(fault)?),
                (_, Some(_)) => return Err(fault("something follows the line `end`".to_owned())),
                _ => serde_json::from_slice(&bytes).map_err(|error| {
                    fault(format!("it is no line of a trace: {}\n{AGAIN}", escape::fault(error)))
                })?,
            };
            match line {
                TraceLine::Trace(_) if head.is_some() => {
                    return Err(fault("a second trace begins; give each a file".to_owned()));
                }
                TraceLine::Trace(first) => head = Some(first),
                TraceLine::Text(text) => {
                    held += text.len();
                    texts.push(text);
                }
                TraceLine::Sent(one) => {
                    held += one.held();
                    check(&one, texts.len()).map_err(fault)?;
                    sent.push(one);
                }
                TraceLine::End(last) => end = Some(last),
            }
            if sent.len() > STATEMENTS_MOST || texts.len() > TEXTS_MOST || held > HELD_MOST {
                return Err(fault(TOO_LARGE.to_owned()));
            }
        }
        let fault = |why: String| TraceError { line: number, why };
        let head = head.ok_or_else(|| fault("it is empty".to_owned()))?;
        let end = end.ok_or_else(|| {
            let count = sent.len();
            fault(format!(
                "it was cut after {count} statements: the line `end` is missing\n{AGAIN}"
            ))
        })?;
        if end.statements != sent.len() as u64 {
            let (said, count) = (end.statements, sent.len());
            return Err(fault(format!(
                "`end` tells {said} statements, there are {count}\n{AGAIN}"
            )));
        }
        if sent.is_empty() {
            return Err(fault(format!("it has no statement\n{AGAIN}")));
        }
        let trace = Trace { head, texts, sent, end };
        let sessions = trace.sessions().len();
        if sessions > SESSIONS_MOST {
            return Err(fault(format!("{sessions} sessions: {TOO_LARGE}")));
        }
        Ok(trace)
    }

    /// The sessions in the order of their beginning: the places of their statements.
    fn sessions(&self) -> Vec<Vec<usize>> {
        let (mut known, mut sessions): (HashMap<u32, usize>, Vec<Vec<usize>>) = Default::default();
        for (place, one) in self.sent.iter().enumerate() {
            let session = *known.entry(one.session).or_insert(sessions.len());
            if session == sessions.len() {
                sessions.push(Vec::new());
            }
            sessions[session].push(place);
        }
        sessions.sort_by(|a, b| self.sent[a[0]].at.total_cmp(&self.sent[b[0]].at));
        sessions
    }

    /// The clients that a replay needs: each carries out one session after the other, and two
    /// sessions that were there at the same time never have the same client.
    ///
    /// # Errors
    /// There are more than a replay has.
    pub fn clients(&self) -> Result<Vec<Vec<usize>>, String> {
        let mut clients: Vec<(f64, Vec<usize>)> = Vec::new();
        for session in self.sessions() {
            let begin = self.sent[session[0]].at;
            let end = session.iter().map(|place| self.sent[*place].end());
            let end = end.fold(begin, f64::max);
            let is_full = clients.len() == CLIENTS_MOST;
            match clients.iter_mut().find(|(until, _)| *until < begin) {
                Some((until, all)) => {
                    *until = end;
                    all.extend(session);
                }
                None if is_full => {
                    return Err(format!(
                        "more than {CLIENTS_MOST} of its sessions were there at once\n\
                         hint: record less, or a part of the log"
                    ));
                }
                None => clients.push((end, session)),
            }
        }
        Ok(clients.into_iter().map(|(_, all)| all).collect())
    }

    /// From the first beginning to the last end, seconds.
    pub fn seconds(&self) -> f64 {
        let last = self.sent.iter().map(SentStatement::end).fold(f64::MIN, f64::max);
        (last - self.begin()) / 1000.0
    }

    /// The time in which some statement was at work, seconds: a replay without a speed leaves out
    /// the rest.
    pub fn busy_seconds(&self) -> f64 {
        let mut spans: Vec<(f64, f64)> = self.sent.iter().map(|it| (it.at, it.end())).collect();
        spans.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut busy, mut until) = (0.0, f64::MIN);
        for (begin, end) in spans {
            busy += (end - begin.max(until)).max(0.0);
            until = until.max(end);
        }
        busy / 1000.0
    }

    /// When the first statement began, milliseconds.
    pub fn begin(&self) -> f64 {
        self.sent.iter().map(|one| one.at).fold(f64::MAX, f64::min)
    }

    /// What each statement has to wait for.
    pub fn order(&self) -> Vec<ReplayOrder> {
        // Without a time, a statement lasts until the next one of its session, as far as is known.
        let mut ends: Vec<f64> = self.sent.iter().map(SentStatement::end).collect();
        for session in self.sessions() {
            for (place, next) in session.iter().zip(session.iter().skip(1)) {
                if self.sent[*place].ms.is_none() {
                    ends[*place] = self.sent[*next].at.max(ends[*place]);
                }
            }
            if let Some(place) = session.last().filter(|place| self.sent[**place].ms.is_none()) {
                ends[*place] = f64::INFINITY;
            }
        }
        let mut by_end: Vec<usize> = (0..self.sent.len()).collect();
        by_end.sort_by(|a, b| ends[*a].total_cmp(&ends[*b]));
        let sorted: Vec<f64> = by_end.iter().map(|place| ends[*place]).collect();
        let writing: Vec<bool> = self.texts.iter().map(|text| writes(text)).collect();
        let mut order = vec![ReplayOrder::default(); self.sent.len()];
        let mut writes = 0;
        for (rank, place) in by_end.into_iter().enumerate() {
            let one = &self.sent[place];
            let until = one.at - self.head.precision_ms;
            let after = sorted.partition_point(|end| *end <= until).min(rank);
            let write = writing[one.text as usize - 1].then_some(writes);
            writes += usize::from(write.is_some());
            order[place] = ReplayOrder { rank, after, write };
        }
        order
    }

    /// The class of each text, from 0, and a text of each: those that took most time first, and all
    /// beyond [`CLASSES_MOST`] as one.
    pub fn classes(&self) -> (Vec<usize>, Vec<&str>) {
        let mut keys: HashMap<String, usize> = HashMap::new();
        let mut of_text = Vec::with_capacity(self.texts.len());
        for text in &self.texts {
            let next = keys.len();
            of_text.push(*keys.entry(statement_class(text, self.head.dialect)).or_insert(next));
        }
        let mut all: Vec<(f64, usize, usize)> =
            (0..keys.len()).map(|class| (0.0, class, usize::MAX)).collect();
        for one in &self.sent {
            let text = one.text as usize - 1;
            let class = &mut all[of_text[text]];
            // Where no times are known, the most frequent ones come first.
            class.0 += one.ms.unwrap_or(1e-6);
            class.2 = class.2.min(text);
        }
        all.retain(|(.., text)| *text < usize::MAX);
        all.sort_by(|a, b| match b.0.total_cmp(&a.0) {
            Ordering::Equal => a.2.cmp(&b.2),
            order => order,
        });
        let shown = all.len().min(CLASSES_MOST);
        let mut place = vec![shown; keys.len()];
        for (number, (_, class, _)) in all.iter().take(shown).enumerate() {
            place[*class] = number;
        }
        let of_text = of_text.into_iter().map(|class| place[class]).collect();
        let texts = all.iter().take(shown).map(|(.., text)| self.texts[*text].as_str());
        (of_text, texts.collect())
    }
}

/// The way out for a damaged trace.
const AGAIN: &str = "hint: make it again with `rqps record`";

const TOO_LARGE: &str = "it is larger than rqps replays: 10,000,000 statements, 1,000,000 texts, \
                         100,000 sessions and 1 GiB of texts and values\nhint: record less, or a \
                         part of the log";

/// Reads the first line, whose version says whether the rest can be read.
fn read_head(bytes: &[u8]) -> Result<TraceHead, String> {
    #[derive(Deserialize)]
    struct Any {
        trace: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let no_trace = |error| format!("it is no trace: {}\n{AGAIN}", escape::fault(error));
    let version = serde_json::from_slice::<Any>(bytes).map_err(no_trace)?.trace.version;
    if version != TRACE_VERSION {
        return Err(format!(
            "its format has version {version}, this rqps reads {TRACE_VERSION}\nhint: use the rqps \
             that made it, or make it again"
        ));
    }
    match serde_json::from_slice(bytes).map_err(no_trace)? {
        TraceLine::Trace(head) if (0.0..=LONGEST_MS).contains(&head.precision_ms) => Ok(head),
        _ => Err(format!("it is no trace\n{AGAIN}")),
    }
}

fn check(one: &SentStatement, texts: usize) -> Result<(), String> {
    let is_time = |ms: f64| (-LONGEST_MS..=LONGEST_MS).contains(&ms);
    if one.text == 0 || one.text as usize > texts {
        return Err(format!("text {} is none of the {texts} before\n{AGAIN}", one.text));
    }
    if !is_time(one.at) || !one.ms.is_none_or(|ms| is_time(ms) && ms >= 0.0) {
        return Err(format!("its times are none\n{AGAIN}"));
    }
    Ok(())
}

impl SentStatement {
    /// Bytes of its values and error: a NULL of five bytes in the file takes 24.
    fn held(&self) -> usize {
        let texts = self.values.iter().flatten().chain(&self.error);
        texts.map(String::len).sum::<usize>() + size_of_val(self.values.as_slice())
    }

    fn end(&self) -> f64 {
        self.at + self.ms.unwrap_or(0.0)
    }
}

/// What a statement waits for in a replay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayOrder {
    /// Its place among all by their ends, from 0.
    pub rank: usize,
    /// The statements of lower ranks ended before it began.
    pub after: usize,
    /// For one that may write: how many of those ended before it did.
    pub write: Option<usize>,
}

/// True if the order of the statement among others may matter: it may write, and is no edge of a
/// transaction.
pub fn writes(text: &str) -> bool {
    const FRAMES: [&str; 11] = [
        "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET",
        "SHOW", "DEALLOCATE",
    ];
    let words = words(Dialect::Fake, text);
    !words.first().is_some_and(|first| FRAMES.contains(&first.as_str())) && reading::may_write(text)
}

/// The statement without its values: in `IN (1, 2)` and `VALUES (1, 2)`, however many.
pub fn statement_class(text: &str, dialect: Dialect) -> String {
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

/// Replaces values by hashes: equal ones stay equal, whole numbers stay numbers of as many digits.
/// Who does not have the key learns nothing but lengths.
pub struct ValueHasher([u8; 32]);

impl ValueHasher {
    /// Hashes with this key, which is for one trace and kept nowhere.
    pub fn new(key: [u8; 32]) -> ValueHasher {
        ValueHasher(key)
    }

    /// The value in place of this one.
    pub fn value(&self, value: &str) -> String {
        let hash = Sha256::digest([&self.0, value.as_bytes(), &self.0].concat());
        let (sign, digits) = match value.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", value),
        };
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let letters = hash.iter().cycle().take(value.len().min(64));
        if !is_whole {
            return letters.map(|byte| char::from(b'a' + byte % 16)).collect();
        }
        // The first digit is none of 0, so that there are as many; 18 fit every type of them.
        let first = |place| if place == 0 && digits.len() > 1 { 1 } else { 0 };
        let number = letters.take(digits.len().min(18)).enumerate();
        let number = number.map(|(place, byte)| byte % (10 - first(place)) + first(place));
        sign.to_owned() + &number.map(|digit| char::from(b'0' + digit)).collect::<String>()
    }

    /// The text with hashes in place of its values, without comments; `None` if nobody can tell where
    /// a value ends.
    pub fn text(&self, text: &str, dialect: Dialect) -> Option<String> {
        let (mut hashed, mut before) = (String::new(), 0);
        for token in tokens(dialect, text.as_bytes()).ok()? {
            // What MySQL executes of a comment would be lost.
            let said = text.get(token.begin..token.end).filter(|_| token.comment.is_none())?;
            if token.begin > before && before > 0 {
                hashed.push(' ');
            }
            match token.kind {
                TokenKind::Number => hashed.push_str(&self.number(said)),
                TokenKind::Text => {
                    let plain = said.strip_prefix('\'').and_then(|said| said.strip_suffix('\''));
                    let value = plain.unwrap_or(said).replace("''", "'");
                    hashed.push_str(&format!("'{}'", self.value(&value)));
                }
                _ => hashed.push_str(said),
            }
            before = token.end;
        }
        Some(hashed)
    }

    fn number(&self, said: &str) -> String {
        let parts = said.split_once('.');
        let whole = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        match parts {
            Some((before, after)) if whole(before) && whole(after) => {
                format!("{}.{}", self.value(before), self.value(after))
            }
            _ if whole(said) => self.value(said),
            _ => "0".to_owned(),
        }
    }
}

/// Writes a trace line by line.
pub struct TraceWriter<W: Write> {
    out: W,
    texts: HashMap<String, u32>,
    end: TraceEnd,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// It cannot be written, as everywhere below.
    pub fn begin(out: W, head: TraceHead) -> std::io::Result<TraceWriter<W>> {
        let mut writer = TraceWriter { out, texts: HashMap::new(), end: TraceEnd::default() };
        writer.line(&TraceLine::Trace(head))?;
        Ok(writer)
    }

    fn line(&mut self, line: &TraceLine) -> std::io::Result<()> {
        serde_json::to_writer(&mut self.out, line)?;
        self.out.write_all(b"\n")
    }

    /// Adds a statement; `one.text` follows from `text`.
    pub fn add(&mut self, text: &str, one: SentStatement) -> std::io::Result<()> {
        let number = match self.texts.get(text) {
            Some(number) => *number,
            None => {
                let number = self.texts.len() as u32 + 1;
                self.texts.insert(text.to_owned(), number);
                self.line(&TraceLine::Text(text.to_owned()))?;
                number
            }
        };
        self.end.statements += 1;
        self.line(&TraceLine::Sent(SentStatement { text: number, ..one }))
    }

    /// Counts a statement that the trace does not have.
    pub fn leave_out(&mut self, why: &str) {
        *self.end.left_out.entry(why.to_owned()).or_insert(0) += 1;
    }

    /// Ends the trace.
    pub fn end(mut self) -> std::io::Result<(W, TraceEnd)> {
        let end = self.end.clone();
        self.line(&TraceLine::End(end.clone()))?;
        self.out.flush()?;
        Ok((self.out, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        r#"{"trace":{"version":1,"dialect":"postgres","precision_ms":0.001,"hashed":false}}"#;

    fn read(lines: &[&str]) -> Result<Trace, String> {
        let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        Trace::read(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn sent(session: u32, at: f64, ms: f64, text: &str) -> (SentStatement, String) {
        (SentStatement { session, at, ms: Some(ms), ..SentStatement::default() }, text.to_owned())
    }

    fn written(all: Vec<(SentStatement, String)>) -> Trace {
        let dialect = Dialect::Postgres;
        let head = TraceHead { version: 1, dialect, precision_ms: 0.001, hashed: false };
        let mut writer = TraceWriter::begin(Vec::new(), head).unwrap();
        for (one, text) in all {
            writer.add(&text, one).unwrap();
        }
        Trace::read(writer.end().unwrap().0.as_slice()).unwrap()
    }

    #[test]
    fn hostile_traces_are_refused_with_the_place_and_a_way_out() {
        let one = r#"{"sent":{"session":1,"at":0,"text":1}}"#;
        let (text, end) = (r#"{"text":"SELECT 1"}"#, r#"{"end":{"statements":1}}"#);
        assert_eq!(read(&[HEAD, text, one, end]).unwrap().sent.len(), 1);
        let check = |lines: &[&str], parts: &[&str]| {
            let error = read(lines).unwrap_err();
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        };
        check(&[], &["line 1: it is empty"]);
        check(&["SELECT 1"], &["line 1: it is no trace", "hint"]);
        let newer = HEAD.replace("\"version\":1", "\"version\":2,\"more\":1");
        check(&[&newer], &["line 1: its format has version 2", "hint"]);
        check(&[HEAD, text, one], &["line 4: it was cut after 1 statement", "hint"]);
        check(&[HEAD, text, &one[..20]], &["line 3: it is no line of a trace", "hint"]);
        check(&[HEAD, one, end], &["line 2: text 1 is none of the 0 before", "hint"]);
        check(&[HEAD, text, one, one, end], &["`end` tells 1 statements, there are 2", "hint"]);
        check(&[HEAD, text, one, end, text], &["line 5: something follows"]);
        check(&[HEAD, HEAD], &["line 2: a second trace"]);
        check(&[HEAD, r#"{"end":{"statements":0}}"#], &["no statement", "hint"]);
        let endless = one.replace("\"at\":0", "\"at\":1e300");
        check(&[HEAD, text, &endless, end], &["line 3: its times are none", "hint"]);
        let more = one.replace("\"text\":1", "\"text\":1,\"run\":\"rm\"");
        check(&[HEAD, text, &more, end], &["line 3", "unknown field"]);
    }

    #[test]
    fn values_without_a_text_take_room_too() {
        let nulls = SentStatement { values: vec![None; 1000], ..SentStatement::default() };
        assert!(nulls.held() >= 16_000, "{}", nulls.held());
        let error = SentStatement { error: Some("x".repeat(900)), ..SentStatement::default() };
        assert_eq!(error.held(), 900);
    }

    #[test]
    fn sessions_one_after_the_other_share_a_client() {
        let trace = written(vec![
            sent(7, 0.0, 1.0, "SELECT 1"),
            sent(8, 0.5, 1.0, "SELECT 1"),
            sent(9, 2.0, 1.0, "SELECT 1"),
            sent(8, 2.0, 1.0, "SELECT 1"),
        ]);
        assert_eq!(trace.clients().unwrap(), [vec![0, 2], vec![1, 3]]);
        assert_eq!((trace.begin(), trace.seconds()), (0.0, 0.003));
        assert_eq!(trace.busy_seconds(), 0.0025);
    }

    #[test]
    fn a_statement_waits_for_what_ended_before_it_and_writes_for_earlier_writes() {
        let trace = written(vec![
            sent(1, 0.0, 1.0, "BEGIN"),
            sent(1, 2.0, 1.0, "UPDATE t SET a = 1"),
            sent(2, 0.0, 4.0, "SELECT a FROM t"),
            sent(1, 5.0, 1.0, "COMMIT"),
            // It waited for the row until the COMMIT.
            sent(2, 4.5, 2.0, "UPDATE t SET a = 2"),
        ]);
        let found: Vec<(usize, Option<usize>)> =
            trace.order().iter().map(|one| (one.after, one.write)).collect();
        assert_eq!(found, [(0, None), (1, Some(0)), (0, None), (3, None), (3, Some(1))]);
    }

    #[test]
    fn classes_are_told_by_the_time_that_they_took() {
        let mut all = vec![sent(1, 0.0, 3.0, "SELECT 1"), sent(1, 5.0, 9.0, "SELECT 'x', a")];
        all.push(sent(1, 20.0, 2.0, "select 2"));
        let trace = written(all);
        let (of_text, texts) = trace.classes();
        assert_eq!((of_text, texts), (vec![1, 0, 1], vec!["SELECT 'x', a", "SELECT 1"]));
    }
}
