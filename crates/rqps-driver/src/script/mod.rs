//! Scripts as the driver runs them, and the query plans of their statements.
//!
//! A script compiled for one client: statements are prepared, tables resolved, and parameters are
//! drawn into buffers that are allocated once.

pub mod call;
pub mod explain;
pub mod sources;
pub mod values;

use self::call::{Call, ScriptBuffers};
use self::sources::{ClientSources, SharedSources};
use crate::attempt::{AfterError, ClientEvent, StatementError, Tally};
use crate::connection::Connection;
use crate::request::DriverRequest;
use rqps_model::benchmark::RateUnit;
use rqps_model::datagen::distribution::{Sampler, Zipfian};
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::script::{
    Distribution, Operation, Parameter, Protocol, Script, ScriptEvent, TableChoice,
};
use rqps_wire::{Reply, WireError};

/// The work of a client per event.
pub struct Program {
    events: Vec<CompiledEvent>,
    /// Draws the next event; `None` if there is only one.
    choice: Option<EventChoice>,
    /// The current event.
    current: usize,
    /// True if the current event failed and is repeated.
    again: bool,
    tables: u64,
    draw: Draw,
    sources: ClientSources,
    scratch: ScriptBuffers,
    /// True if an event counts as one operation, however many statements it has.
    counts_events: bool,
}

/// One event.
struct CompiledEvent {
    begin: Vec<Bracket>,
    commit: Option<Bracket>,
    operations: Vec<CompiledOperation>,
    draws: Vec<u32>,
    retry: Vec<String>,
    ignore: Vec<String>,
}

/// A statement that begins or ends a transaction.
struct Bracket {
    sql: String,
    call: Call,
}

/// One operation.
struct CompiledOperation {
    kind: String,
    parameters: Vec<Parameter>,
    repeat: u32,
    table: Table,
    draws: Vec<u32>,
    expect: Option<[u64; 2]>,
    /// Slots for the columns of its only row.
    into: Vec<u32>,
    /// Statements by table; `None` for tables that the operation never uses.
    statements: Vec<Option<Call>>,
}

#[derive(Clone, Copy)]
enum Table {
    Uniform,
    Previous,
    Fixed(usize),
}

/// Draws events by weight, from a stream of its own.
struct EventChoice {
    rng: Rng,
    /// Sums of the weights up to each event.
    sums: Vec<u64>,
}

impl EventChoice {
    fn of(events: &[ScriptEvent], seed: u64, client: u32) -> Option<EventChoice> {
        let sums: Vec<u64> = events
            .iter()
            .scan(0, |sum, event| {
                *sum += u64::from(event.weight);
                Some(*sum)
            })
            .collect();
        let rng = Rng::stream(seed, "events", u64::from(client));
        (events.len() > 1).then_some(EventChoice { rng, sums })
    }

    fn next(&mut self) -> usize {
        let all = self.sums.last().copied().unwrap_or(1).max(1);
        let drawn = self.rng.below(all);
        self.sums.partition_point(|sum| *sum <= drawn)
    }
}

/// The data and the dialect of a compiled script.
pub struct ScriptData<'a> {
    /// The seed of the block.
    pub seed: u64,
    /// Number of tables.
    pub tables: u32,
    /// Rows of each table.
    pub rows: u64,
    /// The dialect of the server.
    pub dialect: Dialect,
    /// The clients' shared part of the sources.
    pub sources: &'a SharedSources,
    /// True if an event counts as one operation.
    pub counts_events: bool,
}

impl Program {
    /// Prepares all that `script` needs on `session`, for client `client` (from 0). The error is a
    /// complete message.
    pub fn compile(
        script: &Script,
        client: u32,
        data: &ScriptData<'_>,
        session: &mut Connection,
    ) -> Result<Program, String> {
        for sql in &script.init {
            session.simple(sql).map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
        }
        let tables = data.tables.max(1);
        let mut events = Vec::with_capacity(script.events.len());
        for event in &script.events {
            events.push(CompiledEvent::compile(event, (client, tables), data.dialect, session)?);
        }
        let mut sources = data.sources.of_client(data.seed, client);
        let mut scratch = ScriptBuffers::for_script(script, data.sources.slots());
        sources.start(&mut scratch.drawn)?;
        Ok(Program {
            events,
            choice: EventChoice::of(&script.events, data.seed, client),
            current: 0,
            again: false,
            tables: u64::from(tables),
            draw: Draw::new(script.distribution, data.seed, client, data.rows),
            sources,
            scratch,
            counts_events: data.counts_events,
        })
    }
}

impl CompiledEvent {
    fn compile(
        event: &ScriptEvent,
        (client, tables): (u32, u32),
        dialect: Dialect,
        session: &mut Connection,
    ) -> Result<CompiledEvent, String> {
        let mut operations = Vec::with_capacity(event.operations.len());
        let mut reach = (0..tables).collect::<Vec<u32>>();
        for operation in &event.operations {
            let (table, reached) = match operation.table {
                TableChoice::Uniform => (Table::Uniform, (0..tables).collect()),
                TableChoice::SameAsPrevious => (Table::Previous, reach),
                TableChoice::ByClient => {
                    (Table::Fixed((client % tables) as usize), vec![client % tables])
                }
            };
            reach = reached;
            let mut statements: Vec<Option<Call>> = (0..tables).map(|_| None).collect();
            for &index in &reach {
                let send = Call::compile(operation, index + 1, session)?;
                statements[index as usize] = Some(send);
            }
            operations.push(CompiledOperation::new(operation, table, statements));
        }
        let plain = event.operations.iter().all(|one| one.protocol == Protocol::Text);
        let dialect = if plain { None } else { Some(dialect) };
        let mut begin = Vec::new();
        for sql in &event.begin {
            begin.push(Bracket::compile(sql, dialect, session)?);
        }
        let commit = if begin.is_empty() {
            None
        } else {
            Some(Bracket::compile("COMMIT", dialect, session)?)
        };
        Ok(CompiledEvent {
            begin,
            commit,
            operations,
            draws: event.draws.clone(),
            retry: event.retry.clone(),
            ignore: event.ignore.clone(),
        })
    }
}

impl CompiledOperation {
    fn new(operation: &Operation, table: Table, statements: Vec<Option<Call>>) -> Self {
        CompiledOperation {
            kind: operation.kind.clone(),
            parameters: operation.parameters.clone(),
            repeat: operation.repeat,
            table,
            draws: operation.draws.clone(),
            expect: operation.expect,
            into: operation.into.clone(),
            statements,
        }
    }
}

impl CompiledOperation {
    #[inline]
    fn send(
        &self,
        table: usize,
        session: &mut Connection,
        scratch: &mut ScriptBuffers,
    ) -> Result<Reply, WireError> {
        match &self.statements[table] {
            Some(call) if self.into.is_empty() => call.go(&self.parameters, session, scratch),
            Some(call) => call.fetch((&self.parameters, &self.into), session, scratch),
            None => Err(WireError::Protocol("a table without prepared statements".to_owned())),
        }
    }
}

impl ClientEvent for Program {
    fn is_transaction(&self) -> bool {
        self.events.get(self.current).is_some_and(|event| event.commit.is_some())
    }

    fn after_error(&self, code: &str) -> Option<AfterError> {
        let event = self.events.get(self.current)?;
        let holds = |codes: &[String]| codes.iter().any(|known| known == code);
        if holds(&event.ignore) {
            return Some(AfterError::GiveUp);
        }
        holds(&event.retry).then_some(AfterError::Repeat)
    }

    fn give_up(&mut self) {
        self.again = false;
    }

    #[inline]
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        if let Some(choice) = &mut self.choice
            && !std::mem::replace(&mut self.again, true)
        {
            self.current = choice.next();
        }
        self.sources.begin();
        let event = &self.events[self.current];
        if !event.draws.is_empty() {
            let drawn = self.sources.draw(&event.draws, &mut self.scratch.drawn);
            drawn.map_err(|fault| statement_error("event", WireError::Protocol(fault)))?;
        }
        for bracket in &event.begin {
            bracket.go(session, &mut self.scratch, tally)?;
        }
        let mut table = 0;
        for operation in &event.operations {
            table = match operation.table {
                Table::Uniform if self.tables == 1 => 0,
                Table::Uniform => self.draw.rng.below(self.tables) as usize,
                Table::Previous => table,
                Table::Fixed(index) => index,
            };
            for _ in 0..operation.repeat {
                if !operation.draws.is_empty() {
                    let drawn = self.sources.draw(&operation.draws, &mut self.scratch.drawn);
                    drawn.map_err(|fault| {
                        statement_error(&operation.kind, WireError::Protocol(fault))
                    })?;
                }
                self.draw.fill(&operation.parameters, &mut self.scratch);
                match operation.send(table, session, &mut self.scratch) {
                    Ok(reply) => {
                        tally.count(reply);
                        if let Some(expect) = operation.expect
                            && !(expect[0]..=expect[1]).contains(&reply.rows)
                        {
                            return Err(surprise(operation, reply.rows, &self.scratch));
                        }
                    }
                    Err(error) => return Err(statement_error(&operation.kind, error)),
                }
            }
        }
        if let Some(commit) = &event.commit {
            commit.go(session, &mut self.scratch, tally)?;
        }
        self.again = false;
        self.sources.confirm();
        if self.counts_events {
            tally.statements = 1;
        }
        Ok(())
    }
}

#[cold]
fn statement_error(kind: &str, error: WireError) -> StatementError {
    StatementError { kind: kind.to_owned(), error }
}

/// The error of a statement that returned an unexpected number of rows.
#[cold]
fn surprise(operation: &CompiledOperation, rows: u64, scratch: &ScriptBuffers) -> StatementError {
    let wanted = match operation.expect {
        Some([least, most]) if least == most => least.to_string(),
        Some([least, most]) => format!("{least} to {most}"),
        None => "any".to_owned(),
    };
    let values: Vec<String> = (0..operation.parameters.len())
        .map(|index| scratch.literal(operation.parameters[index], index, false))
        .collect();
    let with = if values.is_empty() {
        String::new()
    } else {
        format!(" with the values {}", values.join(", "))
    };
    let noun = if rows == 1 { "row" } else { "rows" };
    let what = format!("it returned {rows} {noun}, not {wanted}{with}");
    statement_error(&operation.kind, WireError::Protocol(what))
}

impl Bracket {
    /// Prepares BEGIN and COMMIT if the dialect can, as sysbench does; as text where no statement
    /// is prepared.
    fn compile(
        sql: &str,
        dialect: Option<Dialect>,
        session: &mut Connection,
    ) -> Result<Bracket, String> {
        let call = if dialect.is_some_and(|dialect| dialect.spec().begin_prepared) {
            session
                .prepare(sql, &[])
                .map(Call::Prepared)
                .map_err(|error| format!("failed to prepare {sql}: {error}"))?
        } else {
            Call::text(sql)
        };
        Ok(Bracket { sql: sql.to_owned(), call })
    }

    fn go(
        &self,
        session: &mut Connection,
        scratch: &mut ScriptBuffers,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        let reply = self.call.go(&[], session, scratch);
        let reply = reply.map_err(|error| statement_error(&self.sql, error))?;
        tally.statements += 1;
        tally.others += 1;
        tally.bytes += reply.bytes;
        Ok(())
    }
}

/// Draws parameters from a stream that depends only on seed and client.
struct Draw {
    rng: Rng,
    sampler: Sampler,
    rows: u64,
    last_id: i64,
    last_start: i64,
}

impl Draw {
    fn new(distribution: Distribution, seed: u64, client: u32, rows: u64) -> Draw {
        let rows = rows.max(1);
        let sampler = match distribution {
            Distribution::Uniform => Sampler::Uniform { rows },
            Distribution::Zipfian { exponent } => Sampler::Zipfian(Zipfian::new(rows, exponent)),
        };
        let rng = Rng::stream(seed, "client", u64::from(client));
        Draw { rng, sampler, rows, last_id: 1, last_start: 1 }
    }

    #[inline]
    fn fill(&mut self, parameters: &[Parameter], scratch: &mut ScriptBuffers) {
        let mut text = 0;
        for (parameter, slot) in parameters.iter().zip(&mut scratch.slots) {
            *slot = match *parameter {
                Parameter::Id => {
                    self.last_id = self.sampler.draw(&mut self.rng) as i64;
                    self.last_id
                }
                Parameter::Key => self.sampler.draw(&mut self.rng) as i64,
                Parameter::FirstId => 1,
                Parameter::SameId => self.last_id,
                Parameter::HotId { offset } => (self.rows / 2) as i64 + i64::from(offset),
                Parameter::RangeStart => {
                    self.last_start = self.sampler.draw(&mut self.rng) as i64;
                    self.last_start
                }
                Parameter::RangeEnd { span } => self.last_start + i64::from(span),
                Parameter::Digits { .. } => {
                    let start = text;
                    text += parameter.text_len();
                    self.rng.digit_groups(&mut scratch.texts[start..text]);
                    start as i64
                }
                Parameter::Value { .. } => continue,
            };
        }
    }
}

/// The events of client `index` in a script.
pub fn compile(
    request: &DriverRequest,
    (script, sources): (&Script, &SharedSources),
    index: u32,
    session: &mut Connection,
) -> Result<Program, String> {
    let data = ScriptData {
        seed: request.seed,
        tables: request.tables,
        rows: request.rows,
        dialect: request.dialect,
        sources,
        counts_events: request.rate() == Some(RateUnit::Operations),
    };
    Program::compile(script, index, &data, session)
}
