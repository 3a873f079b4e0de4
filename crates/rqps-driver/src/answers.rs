//! Carries out the first events of a step by its first client, and sends the answers to what they
//! read.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::time::{Duration, Instant};

use crate::attempt::{Call, ClientEvent, StatementError, Tally};
use crate::connection::{Connection, Connector};
use crate::control_channel::{ControlChannel, DriverEvent, LabGone, Stop};
use crate::loaders;
use crate::request::DriverRequest;
use crate::script::explain;
use rqps_model::dialect::Dialect;
use rqps_model::row_digest::{
    AnswerReply, OrderDigest, OrderRecord, RowDigest, RowsRecord, StatementAnswer, StepAnswers,
};
use rqps_text::reading::{self, Effect};
use rqps_text::{KeyedQuery, RowLimit, keyed};
use rqps_wire::{LastRows, Prepared, Reply, RowTexts, Value, ValueType, WireError};

/// Most events.
const EVENTS: u32 = 10;

/// The longest time of a statement.
const LONGEST: Duration = Duration::from_secs(10);

/// No event begins later than this.
const LATEST: Duration = Duration::from_secs(2);

/// Asks the events that `make` prepares.
pub fn ask<W: Write, E: ClientEvent>(
    request: &DriverRequest,
    connector: &Connector,
    make: &dyn Fn(&DriverRequest, u32, &mut Connection) -> Result<E, String>,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let mut session = connector.open(0)?;
    let _limit = loaders::limit(LONGEST);
    let mut event = make(request, 0, &mut session)?;
    around(&mut session, AnswerKeeper::end_event).map_err(|error| error.to_string())?;
    if let Connection::Recorded(recorded) = &mut session {
        recorded.begin();
    }
    let mut note = None;
    let began = Instant::now();
    for number in 0..EVENTS {
        around(&mut session, AnswerKeeper::begin_event).map_err(|error| error.to_string())?;
        let attempt = event.attempt(&mut session, &mut Tally::default());
        let is_over = pass_on(&mut session, control)? || event.stopped().is_some();
        if let Err(StatementError { kind, error }) = attempt {
            note = Some(format!("event {} of {kind}: {error}", number + 1));
            if !matches!(error, WireError::Server { .. }) {
                break;
            }
            // There may be no transaction; then this fails.
            session.simple("ROLLBACK").ok();
            event.give_up();
        }
        around(&mut session, AnswerKeeper::end_event).map_err(|error| error.to_string())?;
        if is_over || began.elapsed() > LATEST {
            break;
        }
    }
    Ok(control.send(&DriverEvent::Answered(note))?)
}

/// Has the session begin or end the transaction around an event.
fn around(
    session: &mut Connection,
    edge: fn(&mut AnswerKeeper) -> Result<(), WireError>,
) -> Result<(), WireError> {
    match session {
        Connection::Recorded(recorded) => edge(recorded),
        _ => Ok(()),
    }
}

/// Sends the answers since the last time. True if no more are kept.
fn pass_on<W: Write>(
    session: &mut Connection,
    control: &mut ControlChannel<W>,
) -> Result<bool, LabGone> {
    let Connection::Recorded(recorded) = session else { return Ok(true) };
    let found = recorded.take();
    if !(found.answers.is_empty() && found.statements.is_empty()) {
        control.send(&DriverEvent::Answer(Box::new(found)))?;
    }
    Ok(recorded.is_full())
}

// A session that carries out only what reads, and keeps the answers: two targets are compared by
// them. What would write is not sent.

/// Numbers of statements that were not prepared because they write.
const UNPREPARED: usize = usize::MAX / 2;

/// Most answers to one text.
const OF_ONE_TEXT: usize = 5;

/// Most answers.
const ANSWERS: usize = 60;

/// Most bytes of texts, values and rows that are kept.
const KEPT_BYTES: usize = 48 << 10;

/// Most bytes of a text, and of a value.
const TEXT_BYTES: usize = 8 << 10;
const VALUE_BYTES: usize = 200;

/// Most warnings of an answer.
const WARNINGS: usize = 5;

/// What asks Postgres for the work of a statement, and most bytes of the answer.
const EXPLAIN: &str = "EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF)";
const PLAN_BYTES: usize = 2 << 10;

/// A faster statement is executed a second time, which tells whether it repeats itself.
const FAST: Duration = Duration::from_millis(100);

/// A session whose reads are kept.
pub struct AnswerKeeper {
    inner: Connection,
    dialect: Dialect,
    /// By number.
    prepared: HashMap<usize, Statement>,
    /// Text → its place in the answers, and how often it was answered.
    known: HashMap<String, (u32, usize)>,
    found: StepAnswers,
    bytes: usize,
    is_keeping: bool,
    /// True on a server that others run. There rqps sets nothing that outlives a transaction of
    /// others behind a pooler, and reads in transactions that cannot write.
    is_guest: bool,
}

/// A prepared statement.
struct Statement {
    sql: String,
    /// The same with its sort keys.
    keyed: Option<(Prepared, KeyedQuery)>,
    /// With [`EXPLAIN`].
    explained: Option<Prepared>,
}

/// The place of a text in the answers.
struct Place {
    statement: u32,
    /// True if it has no answer yet.
    is_first: bool,
}

/// What a caller wants of the rows.
pub enum Wanted<'a> {
    /// Nothing.
    Nothing,
    /// All rows.
    Rows(&'a mut RowTexts),
    /// The last row of each result.
    Results(&'a mut LastRows),
}

/// Has a session refuse to write as far as its version can.
pub fn only_read(session: &mut Connection, dialect: Dialect) {
    let setup: &[&str] = match dialect {
        Dialect::Postgres => &["SET default_transaction_read_only = on"],
        Dialect::Mysql => &["SET SESSION TRANSACTION READ ONLY"],
        Dialect::Sqlite => &["PRAGMA query_only = 1"],
        Dialect::KeyValue | Dialect::Fake => &[],
    };
    for sql in setup {
        // Old versions do not know it.
        session.simple(sql).ok();
    }
}

/// What begins a transaction that cannot write.
fn begin_reading(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "BEGIN READ ONLY",
        _ => "START TRANSACTION READ ONLY",
    }
}

/// Prepares a statement.
type Prepare<'a> = dyn FnMut(&mut Connection, &str) -> Result<Prepared, WireError> + 'a;

impl AnswerKeeper {
    /// Records what `inner` answers, which `is_guest` on a server of others.
    pub fn over(inner: Connection, dialect: Dialect, is_guest: bool) -> AnswerKeeper {
        let (prepared, known, found) = (HashMap::new(), HashMap::new(), StepAnswers::default());
        let (bytes, is_keeping) = (0, false);
        AnswerKeeper { inner, dialect, prepared, known, found, bytes, is_keeping, is_guest }
    }

    /// Before an event: what it calls cannot write, either.
    pub fn begin_event(&mut self) -> Result<(), WireError> {
        self.as_guest(begin_reading(self.dialect))
    }

    /// After an event, whatever became of it.
    fn end_event(&mut self) -> Result<(), WireError> {
        self.as_guest("COMMIT")
    }

    fn as_guest(&mut self, sql: &str) -> Result<(), WireError> {
        if !self.is_guest {
            return Ok(());
        }
        self.inner.simple(sql).map(drop)
    }

    /// True if it would begin or end the transaction around an event of a guest.
    fn ends_reading(&self, sql: &str) -> bool {
        let words = sql.trim_start().to_ascii_uppercase();
        self.is_guest && (!words.starts_with("SET") || words.contains("AUTOCOMMIT"))
    }

    /// The session.
    pub fn inner(&self) -> &Connection {
        &self.inner
    }

    /// From now on, answers are kept.
    pub fn begin(&mut self) {
        self.is_keeping = true;
    }

    /// The answers since the last call, with the texts that are new.
    pub fn take(&mut self) -> StepAnswers {
        std::mem::take(&mut self.found)
    }

    /// True if no more answers are kept.
    pub fn is_full(&self) -> bool {
        let answers: usize = self.known.values().map(|(_, answers)| answers).sum();
        self.bytes >= KEPT_BYTES || answers >= ANSWERS
    }

    /// As [`Connection::prepare`].
    pub fn prepare(&mut self, sql: &str, types: &[ValueType]) -> Result<Prepared, WireError> {
        self.prepare_with(sql, &mut |session, sql| session.prepare(sql, types))
    }

    /// As [`Connection::prepare_text`].
    pub fn prepare_text(&mut self, sql: &str, values: usize) -> Result<Prepared, WireError> {
        self.prepare_with(sql, &mut |session, sql| session.prepare_text(sql, values))
    }

    fn prepare_with(
        &mut self,
        sql: &str,
        prepare: &mut Prepare<'_>,
    ) -> Result<Prepared, WireError> {
        let (mut keyed, mut explained) = (None, None);
        let statement = match reading::effect(self.dialect, sql) {
            Effect::Reads(sql) => {
                let statement = prepare(&mut self.inner, &sql)?;
                keyed = rqps_text::keyed(self.dialect, &sql).and_then(|query| {
                    let prepared = self.aside(&mut |session| prepare(session, &query.sql))?;
                    Some((prepared, query))
                });
                if self.dialect == Dialect::Postgres {
                    let sql = format!("{EXPLAIN} {sql}");
                    explained = self.aside(&mut |session| prepare(session, &sql));
                }
                statement
            }
            Effect::Frames => prepare(&mut self.inner, sql)?,
            Effect::Other => Prepared(UNPREPARED + self.prepared.len()),
        };
        self.prepared.insert(statement.0, Statement { sql: sql.to_owned(), keyed, explained });
        Ok(statement)
    }

    /// Does what may fail without harm to an open transaction.
    fn aside<T>(
        &mut self,
        act: &mut dyn FnMut(&mut Connection) -> Result<T, WireError>,
    ) -> Option<T> {
        let is_within = self.inner.is_in_transaction() == Some(true);
        if is_within {
            self.inner.simple("SAVEPOINT rqps_aside").ok()?;
        }
        let done = act(&mut self.inner);
        if is_within {
            let end = if done.is_ok() { "RELEASE" } else { "ROLLBACK TO" };
            self.inner.simple(&format!("{end} SAVEPOINT rqps_aside")).ok()?;
        }
        done.ok()
    }

    /// Executes a prepared statement.
    pub fn execute(
        &mut self,
        call: Call<'_>,
        values: &[Value<'_>],
        wanted: Wanted<'_>,
    ) -> Result<Reply, WireError> {
        let sql = match call {
            Call::Simple(sql) | Call::Parsed(sql) => sql.to_owned(),
            Call::Prepared(statement) | Call::PreparedText(statement) => {
                self.prepared.get(&statement.0).map(|it| it.sql.clone()).unwrap_or_default()
            }
        };
        let effect = reading::effect(self.dialect, &sql);
        let call = match (call, &effect) {
            (Call::Simple(_), Effect::Reads(read)) => Call::Simple(read),
            (Call::Parsed(_), Effect::Reads(read)) => Call::Parsed(read),
            (call, _) => call,
        };
        let reply = self.carry_out(&sql, &effect, (call, values))?;
        match wanted {
            Wanted::Nothing => Ok(reply),
            Wanted::Rows(rows) => {
                rows.clear();
                if reply.result_set { self.inner.call_rows(call, values, rows) } else { Ok(reply) }
            }
            Wanted::Results(results) => {
                results.clear();
                match (reply.result_set, call) {
                    (true, Call::Simple(sql)) => self.inner.simple_results(sql, results),
                    (true, Call::Parsed(sql)) => {
                        self.inner.parse_and_execute(sql, values, Some(results))
                    }
                    (true, Call::Prepared(statement) | Call::PreparedText(statement)) => {
                        self.inner.execute_text(statement, values, Some(results))
                    }
                    (false, _) => {
                        results.begin();
                        Ok(reply)
                    }
                }
            }
        }
    }

    /// Executes a statement unless it writes, and keeps its answer.
    fn carry_out(
        &mut self,
        sql: &str,
        effect: &Effect<'_>,
        (call, values): (Call<'_>, &[Value<'_>]),
    ) -> Result<Reply, WireError> {
        loaders::begin();
        match effect {
            // A session that only reads may not begin what would write; others see no difference.
            Effect::Frames if self.dialect == Dialect::Sqlite => Ok(Reply::default()),
            Effect::Frames if self.ends_reading(sql) => Ok(Reply::default()),
            Effect::Frames => self.inner.call_rows(call, values, &mut RowTexts::default()),
            Effect::Other => {
                self.place(sql);
                Ok(Reply { affected: 1, ..Reply::default() })
            }
            Effect::Reads(read) => match self.place(sql) {
                Some(place) => {
                    let known = self.found.answers.len();
                    let result = self.answer((place, read), (call, values));
                    self.count(sql, known);
                    result
                }
                None => {
                    let mut rows = RowTexts::digesting(RowDigest::default());
                    self.inner.call_rows(call, values, &mut rows)
                }
            },
        }
    }

    /// Counts the last answer, if there is one more than these.
    fn count(&mut self, sql: &str, known: usize) {
        let Some(last) = self.found.answers.get(known) else { return };
        self.bytes +=
            bytes_of(&last.values, &last.reply) + last.plan.as_ref().map_or(0, String::len);
        if let Some((_, answers)) = self.known.get_mut(sql) {
            *answers += 1;
        }
    }

    /// The place of a text; `None` if it, or its next answer, is not kept.
    fn place(&mut self, sql: &str) -> Option<Place> {
        if !self.is_keeping || self.is_full() || sql.len() > TEXT_BYTES {
            return None;
        }
        if let Some((place, answers)) = self.known.get(sql) {
            let place = Place { statement: *place, is_first: *answers == 0 };
            return (*answers < OF_ONE_TEXT).then_some(place);
        }
        let place = self.known.len() as u32;
        self.known.insert(sql.to_owned(), (place, 0));
        self.found.statements.push(sql.to_owned());
        self.bytes += sql.len();
        Some(Place { statement: place, is_first: true })
    }

    fn answer(
        &mut self,
        (place, read): (Place, &str),
        (call, values): (Call<'_>, &[Value<'_>]),
    ) -> Result<Reply, WireError> {
        let began = Instant::now();
        let mut rows = RowTexts::digesting(RowDigest::default());
        self.inner.take_warnings();
        let result = self.inner.call_rows(call, values, &mut rows);
        let is_fast = began.elapsed() < FAST;
        let reply = match &result {
            Ok(_) => {
                let mut warnings = self.inner.take_warnings();
                warnings.truncate(WARNINGS);
                let warnings = warnings.iter().map(|text| shortened(text.as_bytes())).collect();
                let record = record(&rows);
                let order = self.order((read, record.rows), (call, values)).map(Box::new);
                let repeats = if is_fast {
                    let mut again = RowTexts::digesting(RowDigest::default());
                    self.inner.call_rows(call, values, &mut again)?;
                    Some(self::record(&again).any_order == record.any_order)
                } else {
                    None
                };
                AnswerReply::Rows { rows: record, repeats, order, warnings }
            }
            Err(WireError::Server { code, message }) => {
                AnswerReply::Refused { code: code.clone(), message: shortened(message.as_bytes()) }
            }
            Err(_) => return result,
        };
        let text = |value: &Value<'_>| match value {
            Value::Null => None,
            Value::Int(number) => Some(number.to_string()),
            Value::Text(text) | Value::Bytes(text) => Some(shortened(text)),
        };
        let (bound, values) = (values, values.iter().map(text).collect());
        let is_asked = is_fast && place.is_first && result.is_ok();
        let mut work = BTreeMap::new();
        let plan = match self.dialect {
            Dialect::Postgres if is_asked => self.plan(read, call, bound),
            Dialect::Sqlite if is_asked => {
                work = self.inner.work(read, bound);
                let counts: Vec<String> =
                    work.iter().map(|(name, count)| format!("{name} {count}")).collect();
                let plan = explain::explain_one(self.dialect, read, &mut self.inner).ok();
                plan.map(|plan| format!("{plan}\n{}", counts.join(", ")))
            }
            _ => None,
        };
        let statement = place.statement;
        self.found.answers.push(StatementAnswer { statement, values, reply, plan, work });
        result
    }

    /// The plan of a statement with the work that it did, on Postgres.
    fn plan(&mut self, read: &str, call: Call<'_>, values: &[Value<'_>]) -> Option<String> {
        let explained = self.statement(call).and_then(|it| it.explained);
        let sql = format!("{EXPLAIN} {read}");
        let call = instead(call, &sql, explained)?;
        loaders::begin();
        let rows = self.aside(&mut |session| {
            let mut rows = RowTexts::default();
            session.call_rows(call, values, &mut rows).map(|_| rows)
        })?;
        let lines: Vec<String> = rows.into_texts().into_iter().flatten().flatten().collect();
        let plan = lines.join("\n");
        let most = plan.floor_char_boundary(PLAN_BYTES);
        Some(plan[..most].to_owned())
    }

    /// What is prepared of a call.
    fn statement(&self, call: Call<'_>) -> Option<&Statement> {
        match call {
            Call::Prepared(number) | Call::PreparedText(number) => self.prepared.get(&number.0),
            Call::Simple(_) | Call::Parsed(_) => None,
        }
    }

    /// The sort keys of a statement that returned this number of rows.
    fn order(
        &mut self,
        (read, rows): (&str, u64),
        (call, values): (Call<'_>, &[Value<'_>]),
    ) -> Option<OrderRecord> {
        let known = self.statement(call).and_then(|it| it.keyed.clone());
        let (prepared, query) = match known {
            Some((prepared, query)) => (Some(prepared), query),
            None => (None, keyed(self.dialect, read)?),
        };
        let call = instead(call, &query.sql, prepared)?;
        let mut values = values.to_vec();
        let more: String;
        if let RowLimit::Value(place) = query.limit {
            match values.get_mut(place)? {
                Value::Int(limit) => *limit = limit.checked_add(1)?,
                Value::Text(text) => {
                    more = std::str::from_utf8(text)
                        .ok()?
                        .parse::<u32>()
                        .ok()?
                        .checked_add(1)?
                        .to_string();
                    *text = more.as_bytes();
                }
                _ => return None,
            }
        }
        let order = OrderRecord {
            descending: query.descending.clone(),
            is_limited: query.limit != RowLimit::All,
            skips: query.skips,
            ..OrderRecord::default()
        };
        let digest = OrderDigest::new(order, rows, query.limit != RowLimit::Same);
        loaders::begin();
        self.aside(&mut |session| {
            let mut keyed = RowTexts::digesting(RowDigest::of_order(digest.clone()));
            session.call_rows(call, &values, &mut keyed)?;
            Ok(keyed.digest().and_then(RowDigest::order).and_then(OrderDigest::record))
        })?
    }
}

/// The call of another statement in the same way.
fn instead<'a>(call: Call<'_>, sql: &'a str, prepared: Option<Prepared>) -> Option<Call<'a>> {
    Some(match call {
        Call::Simple(_) => Call::Simple(sql),
        Call::Parsed(_) => Call::Parsed(sql),
        Call::Prepared(_) => Call::Prepared(prepared?),
        Call::PreparedText(_) => Call::PreparedText(prepared?),
    })
}

fn record(rows: &RowTexts) -> RowsRecord {
    rows.digest().map(RowDigest::record).unwrap_or_default()
}

fn shortened(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(VALUE_BYTES)]).into_owned()
}

/// About the bytes of an answer on disk.
fn bytes_of(values: &[Option<String>], reply: &AnswerReply) -> usize {
    let of = |values: &[Option<String>]| -> usize {
        values.iter().flatten().map(|value| value.len() + 8).sum()
    };
    let rows = match reply {
        AnswerReply::Rows { rows, order, warnings, .. } => {
            let keys =
                order.iter().flat_map(|order| &order.keys).map(|keys| of(keys)).sum::<usize>();
            let rows = rows.sample.iter().map(|row| 48 + of(&row.values)).sum::<usize>();
            rows + keys + warnings.iter().map(String::len).sum::<usize>()
        }
        AnswerReply::Refused { message, .. } => message.len(),
    };
    200 + of(values) + rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::Fake;

    #[test]
    fn what_a_guest_asks_stays_in_a_transaction_that_cannot_write() {
        let sent = |dialect, is_guest| -> Vec<&str> {
            let fake = Connection::Fake(Box::new(Fake::new(1, 0, 1)));
            let keeper = AnswerKeeper::over(fake, dialect, is_guest);
            let frames = ["BEGIN", "SET work_mem = 1", "set autocommit = 1", "COMMIT AND CHAIN"];
            let all = frames.into_iter();
            all.inspect(|sql| assert_eq!(reading::effect(dialect, sql), Effect::Frames))
                .filter(|sql| !keeper.ends_reading(sql))
                .collect()
        };
        assert_eq!(sent(Dialect::Postgres, true), ["SET work_mem = 1"]);
        assert_eq!(sent(Dialect::Mysql, true), ["SET work_mem = 1"]);
        assert_eq!(begin_reading(Dialect::Postgres), "BEGIN READ ONLY");
        assert_eq!(begin_reading(Dialect::Mysql), "START TRANSACTION READ ONLY");
        // Own servers have been told to refuse writes.
        assert_eq!(sent(Dialect::Mysql, false).len(), 4);
    }
}
