//! A script compiled for one client: statements prepared, tables resolved, parameters drawn
//! straight into buffers that are allocated once.

use crate::datagen::distribution::{Sampler, Zipfian};
use crate::datagen::rng::Rng;
use crate::domain::dialect::Dialect;
use crate::domain::script::{Distribution, Operation, Parameter, Protocol, Script, TableChoice};
use crate::driver::attempt::{ClientEvent, StatementError, Tally};
use crate::driver::connection::Connection;
use crate::driver::request::DriverRequest;
use crate::wire::{Prepared, Reply, Value, ValueType, WireError};

/// What a client carries out per event.
pub(crate) struct Program {
    begin_commit: Option<[Call; 2]>,
    operations: Vec<Compiled>,
    tables: u64,
    draw: Draw,
    scratch: Scratch,
}

/// One operation.
struct Compiled {
    kind: String,
    parameters: Vec<Parameter>,
    repeat: u32,
    table: Table,
    /// By table; `None` where the operation never goes.
    statements: Vec<Option<Call>>,
}

#[derive(Clone, Copy)]
enum Table {
    Uniform,
    Previous,
    Fixed(usize),
}

/// How one statement travels.
enum Call {
    Prepared(Prepared),
    Text(Vec<Piece>),
}

/// Text protocol: SQL between placeholders, and the parameters (from 0) at their places.
enum Piece {
    Sql(String),
    Parameter(usize),
}

impl Program {
    /// Prepares everything that `script` needs on `session`, for client `client` (from 0). The
    /// error is a whole fault.
    pub(crate) fn compile(
        script: &Script,
        client: u32,
        (seed, tables, rows): (u64, u32, u64),
        dialect: Dialect,
        session: &mut Connection,
    ) -> Result<Program, String> {
        let tables = tables.max(1);
        let mut operations = Vec::with_capacity(script.operations.len());
        let mut reach = (0..tables).collect::<Vec<u32>>();
        for operation in &script.operations {
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
            operations.push(Compiled {
                kind: operation.kind.clone(),
                parameters: operation.parameters.clone(),
                repeat: operation.repeat,
                table,
                statements,
            });
        }
        let plain = script.operations.iter().all(|one| one.protocol == Protocol::Text);
        let mut brackets = || -> Result<[Call; 2], String> {
            let dialect = if plain { None } else { Some(dialect) };
            Ok([bracket("BEGIN", dialect, session)?, bracket("COMMIT", dialect, session)?])
        };
        let begin_commit = if script.transaction { Some(brackets()?) } else { None };
        Ok(Program {
            begin_commit,
            operations,
            tables: u64::from(tables),
            draw: Draw::new(script.distribution, seed, client, rows),
            scratch: Scratch::for_operations(&script.operations),
        })
    }
}

impl ClientEvent for Program {
    fn is_transaction(&self) -> bool {
        self.begin_commit.is_some()
    }

    #[inline]
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        if let Some([begin, _]) = &self.begin_commit {
            bracketed(begin, "BEGIN", session, &mut self.scratch, tally)?;
        }
        let mut table = 0;
        for operation in &self.operations {
            table = match operation.table {
                Table::Uniform if self.tables == 1 => 0,
                Table::Uniform => self.draw.rng.below(self.tables) as usize,
                Table::Previous => table,
                Table::Fixed(index) => index,
            };
            for _ in 0..operation.repeat {
                self.draw.fill(&operation.parameters, &mut self.scratch);
                let reply = match &operation.statements[table] {
                    Some(send) => send.go(&operation.parameters, session, &mut self.scratch),
                    None => {
                        Err(WireError::Protocol("a table without prepared statements".to_owned()))
                    }
                };
                match reply {
                    Ok(reply) => tally.count(reply),
                    Err(error) => return Err(stumble(&operation.kind, error)),
                }
            }
        }
        if let Some([_, commit]) = &self.begin_commit {
            bracketed(commit, "COMMIT", session, &mut self.scratch, tally)?;
        }
        Ok(())
    }
}

#[cold]
fn stumble(kind: &str, error: WireError) -> StatementError {
    StatementError { kind: kind.to_owned(), error }
}

/// BEGIN and COMMIT are prepared where the dialect can, as sysbench does; not
/// without a dialect, where no statement is.
fn bracket(sql: &str, dialect: Option<Dialect>, session: &mut Connection) -> Result<Call, String> {
    if !dialect.is_some_and(|dialect| dialect.spec().begin_prepared) {
        return Ok(Call::Text(vec![Piece::Sql(sql.to_owned())]));
    }
    session
        .prepare(sql, &[])
        .map(Call::Prepared)
        .map_err(|error| format!("failed to prepare {sql}: {error}"))
}

fn bracketed(
    send: &Call,
    sql: &str,
    session: &mut Connection,
    scratch: &mut Scratch,
    tally: &mut Tally,
) -> Result<(), StatementError> {
    let reply = send.go(&[], session, scratch).map_err(|error| stumble(sql, error))?;
    tally.statements += 1;
    tally.others += 1;
    tally.bytes += reply.bytes;
    Ok(())
}

impl Call {
    /// Of `operation` on table number `table`, from 1.
    fn compile(
        operation: &Operation,
        table: u32,
        session: &mut Connection,
    ) -> Result<Call, String> {
        let sql = operation.sql.replace("{table}", &table.to_string());
        match operation.protocol {
            Protocol::Text => Ok(Call::Text(pieces(&sql, operation.parameters.len()))),
            Protocol::Prepared => {
                let types: Vec<ValueType> =
                    operation.parameters.iter().map(|parameter| parameter.value_type()).collect();
                session.prepare(&sql, &types).map(Call::Prepared).map_err(|error| {
                    format!("failed to prepare {} ({sql}): {error}", operation.kind)
                })
            }
        }
    }

    #[inline]
    fn go(
        &self,
        parameters: &[Parameter],
        session: &mut Connection,
        scratch: &mut Scratch,
    ) -> Result<Reply, WireError> {
        match self {
            Call::Prepared(prepared) => {
                scratch.with_values(parameters, |values| session.execute(*prepared, values))
            }
            Call::Text(pieces) => {
                scratch.spell(pieces, parameters);
                session.simple(&scratch.sql)
            }
        }
    }
}

/// Splits SQL at `{1}` … `{n}`.
fn pieces(sql: &str, parameters: usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = sql[at..].find('{').map(|place| at + place) {
        let number = sql[open + 1..].split_once('}').and_then(|(number, _)| {
            let value: usize = number.parse().ok()?;
            (1..=parameters).contains(&value).then_some((value, open + number.len() + 2))
        });
        at = open + 1;
        if let Some((number, end)) = number {
            pieces.push(Piece::Sql(sql[from..open].to_owned()));
            pieces.push(Piece::Parameter(number - 1));
            (from, at) = (end, end);
        }
    }
    pieces.push(Piece::Sql(sql[from..].to_owned()));
    pieces
}

/// Draws parameters. The stream depends on seed and client alone.
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
    fn fill(&mut self, parameters: &[Parameter], scratch: &mut Scratch) {
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
            };
        }
    }
}

/// Buffers of one client.
struct Scratch {
    /// Per parameter: the integer, or where its text begins.
    slots: Vec<i64>,
    texts: Vec<u8>,
    /// Kept for its allocation alone.
    values: Vec<Value<'static>>,
    sql: String,
}

impl Scratch {
    fn for_operations(operations: &[Operation]) -> Scratch {
        let most = operations.iter().map(|operation| operation.parameters.len()).max();
        let texts = operations.iter().map(|operation| {
            operation.parameters.iter().map(|parameter| parameter.text_len()).sum::<usize>()
        });
        Scratch {
            slots: vec![0; most.unwrap_or(0)],
            texts: vec![0; texts.max().unwrap_or(0)],
            values: Vec::with_capacity(most.unwrap_or(0)),
            sql: String::with_capacity(256),
        }
    }

    /// Hands the values that were drawn to `use_values`.
    #[inline]
    fn with_values<T>(
        &mut self,
        parameters: &[Parameter],
        use_values: impl FnOnce(&[Value<'_>]) -> T,
    ) -> T {
        match parameters {
            [] => use_values(&[]),
            [one] => use_values(&[self.value(*one, 0)]),
            many => {
                let mut values: Vec<Value<'_>> = recycle(std::mem::take(&mut self.values));
                values.extend(many.iter().enumerate().map(|(index, one)| self.value(*one, index)));
                let result = use_values(&values);
                self.values = recycle(values);
                result
            }
        }
    }

    #[inline]
    fn value(&self, parameter: Parameter, index: usize) -> Value<'_> {
        let slot = self.slots[index];
        match parameter.text_len() {
            0 => Value::Int(slot),
            length => Value::Text(&self.texts[slot as usize..slot as usize + length]),
        }
    }

    /// Writes a statement with literals into `sql`. Digits and `-` need no escapes.
    fn spell(&mut self, pieces: &[Piece], parameters: &[Parameter]) {
        use std::fmt::Write;
        let mut sql = std::mem::take(&mut self.sql);
        sql.clear();
        for piece in pieces {
            // Writing to a string cannot fail.
            let _ = match piece {
                Piece::Sql(text) => sql.write_str(text),
                Piece::Parameter(index) => match self.value(parameters[*index], *index) {
                    Value::Int(int) => write!(sql, "{int}"),
                    Value::Text(text) | Value::Bytes(text) => {
                        write!(sql, "'{}'", String::from_utf8_lossy(text))
                    }
                },
            };
        }
        self.sql = sql;
    }
}

/// An empty vector with the allocation of `values`: values borrow the texts of one statement, the
/// memory serves all. The standard library collects in place here.
#[inline]
fn recycle<'a>(mut values: Vec<Value<'_>>) -> Vec<Value<'a>> {
    values.clear();
    values.into_iter().map(|_| Value::Int(0)).collect()
}

impl Parameter {
    /// Bytes of a text parameter; 0 for integers.
    #[inline]
    fn text_len(self) -> usize {
        match self {
            Parameter::Digits { bytes } => bytes as usize,
            _ => 0,
        }
    }

    fn value_type(self) -> ValueType {
        if self.text_len() > 0 { ValueType::Text } else { ValueType::Int }
    }
}
/// What client `index` does where the work is a script.
pub(crate) fn compile(
    job: &DriverRequest,
    script: &Script,
    index: u32,
    session: &mut Connection,
) -> Result<Program, String> {
    let data = (job.seed, job.tables, job.rows);
    Program::compile(script, index, data, job.dialect, session)
}
