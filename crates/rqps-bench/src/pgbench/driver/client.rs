//! A client of pgbench scripts: draws a script and carries out its commands.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::evaluate::Evaluation;
use crate::pgbench::driver::{CompiledScript, Message, StepScripts, Variables};
use rqps_driver::attempt::{AfterError, ClientEvent, StatementError, Tally};
use rqps_driver::connection::{Connection, Connector};
use rqps_model::datagen::rng::Xoroshiro128;
use rqps_model::pgbench::PgbenchProtocol;
use rqps_text::pgbench::{
    PgbenchAction, PgbenchExpression, PgbenchSleep, PgbenchSql, PgbenchValue, SqlPiece, StoredRow,
    is_variable_name,
};
use rqps_wire::postgres::TextCall;
use rqps_wire::{LastRows, Prepared, Reply, Value, WireError};

/// Codes of serialization failures and deadlocks: Postgres, MySQL, SQLite.
const TRANSIENT: [&str; 8] = ["40001", "40P01", "1213", "1205", "5", "6", "261", "517"];

/// MySQL's code for a statement that cannot be prepared.
const UNPREPARED: &str = "1295";

/// Most values of a statement that need no allocation.
const FEW: usize = 16;

/// One client.
pub(super) struct ScriptClient {
    #[allow(clippy::redundant_allocation, reason = "a count that all clients change is slow")]
    shared: Arc<Arc<StepScripts>>,
    number: u32,
    variables: Variables,
    /// The generator of functions.
    random: Xoroshiro128,
    /// The generator of the choice of scripts.
    choice: Xoroshiro128,
    /// The current script.
    current: usize,
    /// Attempts at the transaction so far; 0 before the first.
    tries: u32,
    /// The generator of functions at the start of the transaction.
    before: Xoroshiro128,
    /// Prepared statements by script and command.
    prepared: Vec<Vec<Option<Way>>>,
    results: LastRows,
    sql: String,
    /// Opens connections, if each transaction has its own.
    connector: Option<Connector>,
    /// True after the first transaction.
    is_used: bool,
}

impl ScriptClient {
    /// Makes client `number`, from 0.
    pub(super) fn new(
        shared: &Arc<StepScripts>,
        number: u32,
        connector: Option<Connector>,
    ) -> ScriptClient {
        let [random, choice] = shared.generators(number);
        ScriptClient {
            shared: Arc::new(Arc::clone(shared)),
            number,
            variables: shared.variables(number),
            random,
            choice,
            current: 0,
            tries: 0,
            before: random,
            prepared: nothing_prepared(shared),
            results: LastRows::default(),
            sql: String::with_capacity(256),
            connector,
            is_used: false,
        }
    }

    /// Draws the script of a new transaction, or repeats a failed one.
    fn begin(&mut self) {
        self.tries += 1;
        if self.tries > 1 {
            self.random = self.before;
            return;
        }
        self.before = self.random;
        let sums = &self.shared.sums;
        if sums.len() > 1 {
            let all = sums.last().copied().unwrap_or(1);
            let drawn = self.choice.up_to((all - 1) as u64) as i64;
            self.current = sums.partition_point(|sum| *sum <= drawn);
        }
    }

    /// Connects again if each transaction has its own connection.
    fn connect(&mut self, session: &mut Connection) -> Result<(), WireError> {
        let Some(connector) = &self.connector else { return Ok(()) };
        if self.is_used {
            *session = connector.open(self.number).map_err(WireError::Protocol)?;
            self.prepared = nothing_prepared(&self.shared);
        }
        self.is_used = true;
        Ok(())
    }
}

/// The form of a statement that was to be prepared.
#[derive(Clone, Copy)]
enum Way {
    Prepared(Prepared),
    /// Text, because the server cannot prepare it.
    Text,
}

fn nothing_prepared(shared: &StepScripts) -> Vec<Vec<Option<Way>>> {
    shared.scripts.iter().map(|script| vec![None; script.program.commands.len()]).collect()
}

impl ClientEvent for ScriptClient {
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        self.begin();
        let connected = self.connect(session);
        connected.map_err(|error| StatementError { kind: "a connection".to_owned(), error })?;
        let shared = Arc::clone(&self.shared);
        let script = &shared.scripts[self.current];
        let mut run = Run { client: self, script, session, tally, pipeline: None, at: 0 };
        let ran = run.all();
        let at = run.at;
        match ran {
            Ok(()) => {
                self.tries = 0;
                Ok(())
            }
            Err(error) => Err(self.failed(script, at, session, error)),
        }
    }

    fn after_error(&self, code: &str) -> Option<AfterError> {
        let work = &self.shared.work;
        let may_repeat = work.max_tries == 0 || self.tries < work.max_tries;
        Some(match TRANSIENT.contains(&code) {
            true if may_repeat => AfterError::Repeat,
            true => AfterError::GiveUp,
            false if work.continue_on_error => AfterError::GiveUp,
            false => AfterError::Fail,
        })
    }

    fn give_up(&mut self) {
        self.tries = 0;
    }
}

impl ScriptClient {
    #[cold]
    fn failed(
        &self,
        script: &CompiledScript,
        at: usize,
        session: &mut Connection,
        error: WireError,
    ) -> StatementError {
        let line = script.program.commands.get(at).map_or(0, |command| command.line);
        let kind = format!("{}, line {line}", script.name);
        // On other DBMSs, a missing transaction is a harmless error.
        if error.code().is_some()
            && session.is_in_transaction() != Some(false)
            && let Err(error @ (WireError::Io { .. } | WireError::Protocol(_))) =
                session.simple("ROLLBACK")
        {
            return StatementError { kind: "ROLLBACK".to_owned(), error };
        }
        StatementError { kind, error }
    }

    #[inline]
    fn value(&mut self, expression: &PgbenchExpression) -> Result<PgbenchValue, WireError> {
        let names = self.shared.names.all();
        let (variables, random) = (&self.variables, &mut self.random);
        let mut evaluation = Evaluation { variables, names, random };
        evaluation.value(expression).map_err(WireError::Protocol)
    }

    /// Sets a variable of a sample. A variable with a value from the server stays as it is.
    pub(super) fn try_set(&mut self, variable: u32, value: &PgbenchExpression) {
        if let Ok(value) = self.value(value) {
            self.variables.set(variable, value);
        }
    }

    /// The text of a message, if all its variables are set.
    pub(super) fn sample(&mut self, sql: &PgbenchSql) -> Option<&str> {
        let is_unset = |piece: &SqlPiece| match piece {
            SqlPiece::Sql(_) => false,
            SqlPiece::Variable(number) => self.variables.text(*number).is_none(),
        };
        if sql.pieces.iter().any(is_unset) {
            return None;
        }
        self.spell(sql);
        Some(&self.sql)
    }

    fn holds(&mut self, expression: &PgbenchExpression) -> Result<bool, WireError> {
        let names = self.shared.names.all();
        let (variables, random) = (&self.variables, &mut self.random);
        let mut evaluation = Evaluation { variables, names, random };
        evaluation.holds(expression).map_err(WireError::Protocol)
    }

    fn sleep(&self, time: PgbenchSleep, unit_us: u64) -> Result<(), WireError> {
        let time = match time {
            PgbenchSleep::Fixed(time) => time,
            PgbenchSleep::Variable(number) => {
                let name = &self.shared.names.all()[number as usize];
                let fault = |why: &str| WireError::Protocol(format!("variable `{name}` {why}"));
                let text = self.variables.text(number).ok_or_else(|| fault("is not set"))?;
                leading_number(text).ok_or_else(|| fault("holds no number of time units"))?
            }
        };
        let time = u64::try_from(time).unwrap_or(0).saturating_mul(unit_us);
        thread::sleep(Duration::from_micros(time));
        Ok(())
    }

    /// Writes the text of a message with the values of its variables.
    fn spell(&mut self, sql: &PgbenchSql) {
        let mut out = std::mem::take(&mut self.sql);
        out.clear();
        for piece in &sql.pieces {
            match piece {
                SqlPiece::Sql(text) => out.push_str(text),
                SqlPiece::Variable(number) => {
                    self.variables.spell(*number);
                    match self.variables.text(*number).map(std::str::from_utf8) {
                        Some(Ok(text)) => out.push_str(text),
                        Some(Err(_)) => {
                            let text = self.variables.text(*number).unwrap_or_default();
                            out.push_str(&String::from_utf8_lossy(text));
                        }
                        // A variable that is not set is none.
                        None => {
                            out.push(':');
                            out.push_str(&self.shared.names.all()[*number as usize]);
                        }
                    }
                }
            }
        }
        self.sql = out;
    }

    /// Stores the row of a reply in variables.
    fn keep(&mut self, stored: &StoredRow) -> Result<(), WireError> {
        let fault = |what: String| Err(WireError::Protocol(what));
        let results = std::mem::take(&mut self.results);
        let last = results.results().len().saturating_sub(1);
        for (number, result) in results.results().iter().enumerate() {
            if !stored.of_each && number < last {
                continue;
            }
            if !stored.of_each && !result.has_columns() {
                return fault("\\gset needs a statement that returns a row".to_owned());
            }
            if !stored.of_each && result.rows != 1 {
                return fault(format!("\\gset needs one row, and there are {}", result.rows));
            }
            if result.rows == 0 {
                continue;
            }
            for (column, value) in result.cells() {
                let name = (stored.prefix.as_bytes(), column);
                self.keep_value(name, value).or_else(fault)?;
            }
        }
        self.results = results;
        Ok(())
    }

    fn keep_value(&mut self, name: (&[u8], &[u8]), value: &[u8]) -> Result<(), String> {
        let (prefix, column) = name;
        let is_it = |known: &String| known.as_bytes().strip_prefix(prefix) == Some(column);
        let names = self.shared.names.all();
        if let Some(number) = names.iter().position(is_it) {
            self.variables.set_text(number as u32, value);
            return Ok(());
        }
        // No script reads it, but pgbench would refuse the name.
        let whole = String::from_utf8_lossy(&[prefix, column].concat()).into_owned();
        if is_variable_name(&whole) {
            Ok(())
        } else {
            Err(format!("`{whole}` is not a name of a variable; rename the column"))
        }
    }
}

/// The number at the start of a text, as C's `atoi` reads it; `None` without a digit.
fn leading_number(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let sign = usize::from(matches!(text.first(), Some(b'-' | b'+')));
    let digits = text[sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..sign + digits]).ok()?.parse().ok()
}

/// One run through a script.
struct Run<'a> {
    client: &'a mut ScriptClient,
    script: &'a CompiledScript,
    session: &'a mut Connection,
    tally: &'a mut Tally,
    /// Syncs of the open pipeline.
    pipeline: Option<u32>,
    /// The current command.
    at: usize,
}

impl Run<'_> {
    fn all(&mut self) -> Result<(), WireError> {
        let script = self.script;
        while let Some(command) = script.program.commands.get(self.at) {
            let mut next = self.at + 1;
            match &command.action {
                PgbenchAction::Sql(sql) => self.send(sql)?,
                PgbenchAction::Set { variable, value } => {
                    let value = self.client.value(value)?;
                    self.client.variables.set(*variable, value);
                }
                PgbenchAction::JumpUnless { condition, otherwise } => {
                    if !self.client.holds(condition)? {
                        next = *otherwise;
                    }
                }
                PgbenchAction::Jump(target) => next = *target,
                PgbenchAction::Sleep { time, unit_us } => {
                    if let PgbenchSleep::Variable(number) = time {
                        self.client.variables.spell(*number);
                    }
                    self.client.sleep(*time, *unit_us)?;
                }
                PgbenchAction::StartPipeline => self.start_pipeline()?,
                PgbenchAction::SyncPipeline => self.sync_pipeline()?,
                PgbenchAction::EndPipeline => self.end_pipeline()?,
            }
            self.at = next;
        }
        if self.pipeline.is_some() {
            return Err(protocol("the script ends within a pipeline"));
        }
        if self.session.is_in_transaction() == Some(true) {
            return Err(protocol("the script ends within a transaction"));
        }
        Ok(())
    }

    #[inline]
    fn send(&mut self, sql: &PgbenchSql) -> Result<(), WireError> {
        let script = self.script;
        let reply = match &script.messages[self.at] {
            None => self.send_text(sql)?,
            Some(message) => {
                for number in &message.values {
                    self.client.variables.spell(*number);
                }
                // A session that keeps answers waits for each.
                if self.pipeline.is_some() && !self.session.is_asked() {
                    return self.queue(message);
                }
                self.call(message, sql)?
            }
        };
        let no_ops = self.tally.no_ops;
        self.tally.count(reply);
        if !script.changes[self.at] {
            // BEGIN and END change no rows by design.
            self.tally.no_ops = no_ops;
        }
        match &sql.stored {
            None => Ok(()),
            Some(stored) => self.client.keep(stored),
        }
    }

    /// Executes a statement with separate values.
    #[inline]
    fn call(&mut self, message: &Message, sql: &PgbenchSql) -> Result<Reply, WireError> {
        // Only on Postgres do rows as text with separate values have column names.
        let keeps = sql.stored.is_some() && self.session.is_in_transaction().is_none();
        let way = if keeps { Some(Way::Text) } else { self.prepared(self.at, message)? };
        if let Some(Way::Text) = way {
            return self.send_text(sql);
        }
        let ScriptClient { variables, results, .. } = &mut *self.client;
        let results = sql.stored.is_some().then_some(results);
        with_values(variables, &message.values, |values| match way {
            Some(Way::Prepared(prepared)) => self.session.execute_text(prepared, values, results),
            _ => self.session.parse_and_execute(&message.sql, values, results),
        })
    }

    /// Executes a message as text that contains the values of its variables.
    #[inline]
    fn send_text(&mut self, sql: &PgbenchSql) -> Result<Reply, WireError> {
        self.client.spell(sql);
        match sql.stored {
            None => self.session.simple(&self.client.sql),
            Some(_) => {
                let results = &mut self.client.results;
                self.session.simple_results(&self.client.sql, results)
            }
        }
    }

    /// The prepared statement of a command, if the protocol prepares it.
    #[inline]
    fn prepared(&mut self, at: usize, message: &Message) -> Result<Option<Way>, WireError> {
        if self.client.shared.work.protocol != PgbenchProtocol::Prepared {
            return Ok(None);
        }
        let place = &mut self.client.prepared[self.client.current][at];
        if place.is_none() {
            let prepared = self.session.prepare_text(&message.sql, message.values.len());
            *place = Some(match prepared {
                Err(error) if error.code() == Some(UNPREPARED) => Way::Text,
                prepared => Way::Prepared(prepared?),
            });
        }
        Ok(*place)
    }

    fn start_pipeline(&mut self) -> Result<(), WireError> {
        if self.pipeline.is_some() {
            return Err(protocol("a pipeline begins within another"));
        }
        let script = self.script;
        let is_end =
            |at: &usize| matches!(script.program.commands[*at].action, PgbenchAction::EndPipeline);
        let last = script.program.commands.len();
        for at in (self.at..last).take_while(|at| !is_end(at)) {
            if let Some(message) = &script.messages[at] {
                self.prepared(at, message)?;
            }
        }
        if !self.session.is_asked() {
            self.session.postgres("has pipelines")?.begin_pipeline();
        }
        self.pipeline = Some(0);
        Ok(())
    }

    fn queue(&mut self, message: &Message) -> Result<(), WireError> {
        let call = match self.prepared(self.at, message)? {
            Some(Way::Prepared(prepared)) => TextCall::Prepared(prepared),
            _ => TextCall::Parsed(&message.sql),
        };
        let session = self.session.postgres("has pipelines")?;
        let queued = |values: &[Value<'_>]| session.queue(call, values);
        with_values(&self.client.variables, &message.values, queued)
    }

    fn sync_pipeline(&mut self) -> Result<(), WireError> {
        let Some(syncs) = &mut self.pipeline else {
            return Err(protocol("a pipeline must begin first"));
        };
        *syncs += 1;
        if self.session.is_asked() {
            return Ok(());
        }
        self.session.postgres("has pipelines")?.sync_pipeline()
    }

    fn end_pipeline(&mut self) -> Result<(), WireError> {
        self.sync_pipeline()?;
        let syncs = self.pipeline.take().unwrap_or_default();
        if self.session.is_asked() {
            return Ok(());
        }
        let session = self.session.postgres("has pipelines")?;
        session.end_pipeline(syncs, &mut |reply| self.tally.count(reply))
    }
}

fn protocol(what: &str) -> WireError {
    WireError::Protocol(what.to_owned())
}

/// Passes the values of variables to `use_values`; NULL for those that are not set.
#[inline]
fn with_values<T>(
    variables: &Variables,
    numbers: &[u32],
    use_values: impl FnOnce(&[Value<'_>]) -> T,
) -> T {
    let value = |number: &u32| variables.text(*number).map_or(Value::Null, Value::Text);
    if numbers.len() > FEW {
        return use_values(&numbers.iter().map(value).collect::<Vec<_>>());
    }
    let mut few = [Value::Null; FEW];
    for (place, number) in few.iter_mut().zip(numbers) {
        *place = value(number);
    }
    use_values(&few[..numbers.len()])
}
