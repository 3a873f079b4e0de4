//! One query worker: sends the next query after the reply; draws the kind of each query.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use crate::driver::meter::WorkerRecorder;
use crate::driver::text::{Template, append_signed, for_table};
use crate::rows::{self, append_number, append_price};
use rqps_driver::clock::Clock;
use rqps_driver::connection::Connection;
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::insert::{Draw, KEY_REFRESH, PriceKind, Queries, Query};
use rqps_model::script::Protocol;
use rqps_wire::{Prepared, Reply, Value, ValueType, WireError};

/// Most parameters of a query.
const PARAMETERS: usize = 16;
/// Most failures in a row before the step fails.
const TRIES: u32 = 1000;

/// A prepared kind of query.
pub(crate) struct PreparedQuery {
    name: String,
    draws: Vec<Draw>,
    form: Form,
}

enum Form {
    Text(Template),
    Prepared(Prepared),
}

/// A worker that queries.
pub(crate) struct Querier {
    pub(crate) session: Connection,
    pub(crate) clock: Clock,
    pub(crate) recorder: Arc<WorkerRecorder>,
    pub(crate) dialect: Dialect,
    pub(crate) rng: Rng,
    pub(crate) price: PriceKind,
    pub(crate) kinds: Vec<PreparedQuery>,
    pub(crate) min_key: Arc<AtomicI64>,
    pub(crate) max_key: i64,
    pub(crate) max_sql: Option<String>,
    pub(crate) until_refresh: u32,
    pub(crate) text: Vec<u8>,
    pub(crate) failed_in_a_row: u32,
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) bytes: u64,
}

impl Querier {
    /// Executes one query. Its time begins before its text is made and ends after the last row,
    /// without the query for the largest key.
    ///
    /// # Errors
    ///
    /// Complete messages.
    pub(crate) fn query(&mut self) -> Result<(), String> {
        if let Some(sql) = &self.max_sql {
            if self.until_refresh == 0 {
                self.max_key = largest(&mut self.session, sql)?;
                self.until_refresh = KEY_REFRESH;
            }
            self.until_refresh -= 1;
        }
        let start = self.clock.now();
        let chosen = self.rng.below(self.kinds.len() as u64) as usize;
        match self.execute(chosen) {
            Ok(reply) => {
                let took = self.clock.now() - start;
                self.bytes += reply.bytes;
                self.failed_in_a_row = 0;
                self.recorder.record(took, took, reply.rows);
                Ok(())
            }
            Err(error) => self.failed(chosen, error),
        }
    }

    #[cold]
    fn failed(&mut self, chosen: usize, error: WireError) -> Result<(), String> {
        self.failed_in_a_row += 1;
        match &error {
            WireError::Server { code, .. }
                if self.dialect.retries(code) && self.failed_in_a_row < TRIES =>
            {
                *self.errors.entry(code.clone()).or_insert(0) += 1;
                self.recorder.error();
                Ok(())
            }
            _ => Err(format!("failed to run the query {}: {error}", self.kinds[chosen].name)),
        }
    }

    #[inline]
    fn execute(&mut self, chosen: usize) -> Result<Reply, WireError> {
        let kind = &self.kinds[chosen];
        let low = self.min_key.load(Ordering::Relaxed);
        let keys = (low, self.max_key.max(low + 1));
        let mut values = [0i64; PARAMETERS];
        for (value, draw) in values.iter_mut().zip(&kind.draws) {
            *value = drawn(&mut self.rng, *draw, self.price, keys);
        }
        match &kind.form {
            Form::Text(template) => {
                self.text.clear();
                template.spell(&mut self.text, |out, place| match kind.draws[place] {
                    Draw::Price => append_price(out, values[place].unsigned_abs()),
                    Draw::Key => append_signed(out, values[place]),
                    _ => append_number(out, values[place].unsigned_abs()),
                });
                let text = std::str::from_utf8(&self.text)
                    .map_err(|error| WireError::Protocol(error.to_string()))?;
                self.session.simple(text)
            }
            Form::Prepared(prepared) => {
                let mut bound = [Value::Int(0); PARAMETERS];
                for (bound, value) in bound.iter_mut().zip(values) {
                    *bound = Value::Int(value);
                }
                self.session.execute(*prepared, &bound[..kind.draws.len()])
            }
        }
    }
}

/// Draws a parameter; prices are in hundredths, except for [`Draw::WholePrice`].
#[inline]
fn drawn(rng: &mut Rng, draw: Draw, price: PriceKind, (low, high): (i64, i64)) -> i64 {
    match draw {
        Draw::Product => rng.below(rows::PRODUCTS) as i64,
        Draw::CashRegister => rng.below(rows::CASH_REGISTERS) as i64,
        Draw::WholePrice => rng.below(rows::MAX_PRICE) as i64,
        Draw::Price => rows::query_price(rng, price) as i64,
        Draw::Key => low + rng.below((high - low).max(1).unsigned_abs()) as i64,
    }
}

/// Prepares all queries for a table.
pub(crate) fn prepare(
    session: &mut Connection,
    queries: &Queries,
    table: u32,
) -> Result<Vec<PreparedQuery>, String> {
    queries.kinds.iter().map(|query| prepared(session, query, table)).collect()
}

fn prepared(session: &mut Connection, query: &Query, table: u32) -> Result<PreparedQuery, String> {
    let fault = |error: WireError| format!("failed to prepare the query {}: {error}", query.name);
    if query.parameters.len() > PARAMETERS {
        return Err(format!("failed to prepare the query {}: too many parameters", query.name));
    }
    if let Some(sql) = &query.prepare {
        session.simple(&for_table(sql, table, None)).map_err(fault)?;
    }
    let sql = for_table(&query.sql, table, None);
    let form = match query.protocol {
        Protocol::Text => {
            let places: Vec<String> =
                (1..=query.parameters.len()).map(|number| format!("{{{number}}}")).collect();
            let places: Vec<&str> = places.iter().map(String::as_str).collect();
            Form::Text(Template::new(&sql, &places))
        }
        Protocol::Prepared => {
            let types = vec![ValueType::Int; query.parameters.len()];
            Form::Prepared(session.prepare(&sql, &types).map_err(fault)?)
        }
    };
    Ok(PreparedQuery { name: query.name.clone(), draws: query.parameters.clone(), form })
}

fn largest(session: &mut Connection, sql: &str) -> Result<i64, String> {
    let rows =
        session.rows(sql).map_err(|error| format!("failed to ask for the largest key: {error}"))?;
    let first = rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
    Ok(first.and_then(|text| text.parse().ok()).unwrap_or(0))
}
