//! Sends one statement: prepared with values, or as text with literals.

use crate::connection::Connection;
use crate::script::sources::{Drawn, DrawnValue};
use rqps_model::dialect::push_literal;
use rqps_model::script::{Fragment, Operation, Parameter, Protocol, Script};
use rqps_wire::{Prepared, Reply, RowTexts, Value, ValueType, WireError};

/// The form of one statement.
pub enum Call {
    /// Prepared on the server.
    Prepared(Prepared),
    /// A text with parameters to fill in.
    Text(Vec<Piece>),
}

/// A piece of a text statement.
pub enum Piece {
    /// SQL between two parameters.
    Sql(String),
    /// The parameter with this index, from 0.
    Parameter(usize),
}

impl Call {
    /// A statement without parameters, as text.
    pub fn text(sql: &str) -> Call {
        Call::Text(vec![Piece::Sql(sql.to_owned())])
    }

    /// Compiles `operation` for table `table`, from 1.
    pub fn compile(
        operation: &Operation,
        table: u32,
        session: &mut Connection,
    ) -> Result<Call, String> {
        let sql = if operation.fragments.is_empty() {
            operation.sql.replace("{table}", &table.to_string())
        } else {
            operation.sql.clone()
        };
        match operation.protocol {
            Protocol::Text if operation.fragments.is_empty() => {
                Ok(Call::Text(pieces(&sql, operation.parameters.len())))
            }
            Protocol::Text => {
                let piece = |fragment: &Fragment| match fragment {
                    Fragment::Sql(sql) => Piece::Sql(sql.clone()),
                    Fragment::Literal(parameter) => Piece::Parameter(*parameter as usize),
                };
                Ok(Call::Text(operation.fragments.iter().map(piece).collect()))
            }
            Protocol::Prepared => {
                let types: Vec<ValueType> =
                    operation.parameters.iter().map(|parameter| value_type(*parameter)).collect();
                session.prepare(&sql, &types).map(Call::Prepared).map_err(|error| {
                    format!("failed to prepare {} ({sql}): {error}", operation.kind)
                })
            }
        }
    }

    /// Sends the statement and reads its reply.
    #[inline]
    pub fn go(
        &self,
        parameters: &[Parameter],
        session: &mut Connection,
        scratch: &mut ScriptBuffers,
    ) -> Result<Reply, WireError> {
        match self {
            Call::Prepared(prepared) => {
                scratch.with_values(parameters, |values| session.execute(*prepared, values))
            }
            Call::Text(pieces) => {
                scratch.spell(pieces, parameters, session.escapes_backslash());
                session.simple(&scratch.sql)
            }
        }
    }
}

impl Call {
    /// Executes the statement and stores the columns of its only row in slots.
    pub fn fetch(
        &self,
        (parameters, into): (&[Parameter], &[u32]),
        session: &mut Connection,
        scratch: &mut ScriptBuffers,
    ) -> Result<Reply, WireError> {
        let mut rows = std::mem::take(&mut scratch.rows);
        let sent = match self {
            Call::Prepared(prepared) => scratch.with_values(parameters, |values| {
                session.execute_rows(*prepared, values, &mut rows)
            }),
            Call::Text(pieces) => {
                scratch.spell(pieces, parameters, session.escapes_backslash());
                session.simple_rows(&scratch.sql, &mut rows)
            }
        };
        let kept = sent.and_then(|reply| match scratch.keep(&rows, into) {
            Ok(()) => Ok(reply),
            Err(what) => Err(WireError::Protocol(what)),
        });
        scratch.rows = rows;
        kept
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

/// Buffers of one client.
pub struct ScriptBuffers {
    /// By parameter: the integer, or the start of its text.
    pub slots: Vec<i64>,
    /// The texts of the parameters.
    pub texts: Vec<u8>,
    /// Values of the script's sources.
    pub drawn: Vec<Drawn>,
    /// Empty; kept for its allocation.
    values: Vec<Value<'static>>,
    sql: String,
    /// Rows of statements whose values are used later.
    rows: RowTexts,
}

impl ScriptBuffers {
    /// Buffers for a script with this number of drawn values.
    pub fn for_script(script: &Script, drawn: usize) -> ScriptBuffers {
        let most = script.operations().map(|operation| operation.parameters.len()).max();
        let texts = script.operations().map(|operation| {
            operation.parameters.iter().map(|parameter| parameter.text_len()).sum::<usize>()
        });
        ScriptBuffers {
            slots: vec![0; most.unwrap_or(0)],
            texts: vec![0; texts.max().unwrap_or(0)],
            drawn: (0..drawn).map(|_| Drawn::default()).collect(),
            values: Vec::with_capacity(most.unwrap_or(0)),
            sql: String::with_capacity(256),
            rows: RowTexts::default(),
        }
    }

    /// Stores the columns of the only row in slots.
    pub fn keep(&mut self, rows: &RowTexts, into: &[u32]) -> Result<(), String> {
        if (rows.rows(), rows.columns()) != (1, into.len()) {
            let (count, columns, names) = (rows.rows(), rows.columns(), into.len());
            let found = match count {
                0 => "no row".to_owned(),
                _ => format!("rows: {count}, columns: {columns}"),
            };
            let noun = if names == 1 { "column" } else { "columns" };
            return Err(format!("it returned {found}; `into` needs one row of {names} {noun}"));
        }
        for (column, slot) in into.iter().enumerate() {
            let drawn = &mut self.drawn[*slot as usize];
            drawn.text.clear();
            drawn.value = match rows.value(0, column) {
                None => DrawnValue::Null,
                Some(text) => {
                    drawn.text.extend_from_slice(text);
                    DrawnValue::Text
                }
            };
        }
        Ok(())
    }

    /// Passes the drawn values to `use_values`.
    #[inline]
    fn with_values<T>(
        &mut self,
        parameters: &[Parameter],
        use_values: impl FnOnce(&[Value<'_>]) -> T,
    ) -> T {
        match parameters {
            [] => use_values(&[]),
            // A vector would cost a hundred instructions.
            [one] => use_values(&[self.value(*one, 0)]),
            [one, two] => use_values(&[self.value(*one, 0), self.value(*two, 1)]),
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
        if let Parameter::Value { slot, .. } = parameter {
            let drawn = &self.drawn[slot as usize];
            return match drawn.value {
                DrawnValue::Null => Value::Null,
                DrawnValue::Whole(number) => Value::Int(number),
                DrawnValue::Text => Value::Text(&drawn.text),
            };
        }
        let slot = self.slots[index];
        match parameter.text_len() {
            0 => Value::Int(slot),
            length => Value::Text(&self.texts[slot as usize..slot as usize + length]),
        }
    }

    /// The literal of a parameter.
    pub fn literal(&self, parameter: Parameter, index: usize, backslash: bool) -> String {
        let mut text = String::new();
        self.spell_literal(&mut text, parameter, index, backslash);
        text
    }

    fn spell_literal(&self, sql: &mut String, parameter: Parameter, index: usize, backslash: bool) {
        use std::fmt::Write;
        match self.value(parameter, index) {
            Value::Null => sql.push_str("NULL"),
            // Writing to a string cannot fail.
            Value::Int(int) => write!(sql, "{int}").unwrap_or(()),
            Value::Text(text) | Value::Bytes(text) => push_literal(sql, text, backslash),
        }
    }

    /// Writes a statement with literals into `sql`.
    fn spell(&mut self, pieces: &[Piece], parameters: &[Parameter], backslash: bool) {
        let mut sql = std::mem::take(&mut self.sql);
        sql.clear();
        for piece in pieces {
            match piece {
                Piece::Sql(text) => sql.push_str(text),
                Piece::Parameter(index) => {
                    self.spell_literal(&mut sql, parameters[*index], *index, backslash);
                }
            }
        }
        self.sql = sql;
    }
}

/// An empty vector with the allocation of `values`. Values borrow the texts of one statement; the
/// memory serves all. The standard library collects in place here.
#[inline]
fn recycle<'a>(mut values: Vec<Value<'_>>) -> Vec<Value<'a>> {
    values.clear();
    values.into_iter().map(|_| Value::Int(0)).collect()
}

fn value_type(parameter: Parameter) -> ValueType {
    match parameter {
        Parameter::Digits { .. } => ValueType::Text,
        Parameter::Value { whole: true, .. } => ValueType::AnyInt,
        Parameter::Value { whole: false, .. } => ValueType::AnyText,
        _ => ValueType::Int,
    }
}
