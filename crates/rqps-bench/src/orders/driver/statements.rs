//! The five transactions as statements of the client, prepared once per session.

use std::sync::LazyLock;

use crate::orders::DISTRICTS;
use crate::orders::driver::inputs::{TransactionInputs, TransactionKind};
use crate::orders::driver::rows::decimal;
use rqps_driver::attempt::{StatementError, Tally};
use rqps_driver::connection::Connection;
use rqps_model::dialect::{Dialect, Placeholder};
use rqps_wire::{Prepared, Reply, RowTexts, Value, ValueType, WireError};

/// Columns of a customer with bad credit.
const CREDIT: usize = 13;
const DATA: usize = 14;

/// Longest text about a customer, bytes.
const DATA_MOST: usize = 500;

/// The statements of a session.
pub(super) struct OrdersStatements {
    prepared: Vec<Prepared>,
    begin: TransactionEdge,
    begin_to_read: TransactionEdge,
    commit: TransactionEdge,
    rollback: TransactionEdge,
    rows: RowTexts,
    amount: Vec<u8>,
    text: Vec<u8>,
}

/// A statement that begins or ends a transaction.
enum TransactionEdge {
    Prepared(&'static str, Prepared),
    Text(&'static str),
}

/// A transaction in progress.
struct OrdersTransaction<'a> {
    statements: &'a [Prepared],
    session: &'a mut Connection,
    tally: &'a mut Tally,
    rows: &'a mut RowTexts,
}

impl OrdersStatements {
    /// Prepares all statements. The error is a complete message.
    pub(super) fn prepare(
        dialect: Dialect,
        session: &mut Connection,
    ) -> Result<OrdersStatements, String> {
        let mut prepared = Vec::with_capacity(STOCK + DISTRICTS as usize);
        for one in STATEMENTS.iter() {
            prepared.push(prepare_one(dialect, (one.name, one.types, &one.sql), session)?);
        }
        for district in 1..=DISTRICTS {
            let sql = format!(
                "SELECT s_quantity, s_dist_{district:02}, s_data FROM stock \
                 WHERE s_w_id = ? AND s_i_id = ?{{lock}}"
            );
            prepared.push(prepare_one(dialect, ("the stock of an item", "ii", &sql), session)?);
        }
        let mut bracket = |sql: &'static str| TransactionEdge::prepare(sql, dialect, session);
        let writes = match dialect {
            // With BEGIN, two writers may both read first; then one of them fails.
            Dialect::Sqlite => "BEGIN IMMEDIATE",
            _ => "BEGIN",
        };
        Ok(OrdersStatements {
            begin: bracket(writes)?,
            begin_to_read: bracket("BEGIN")?,
            commit: bracket("COMMIT")?,
            rollback: bracket("ROLLBACK")?,
            prepared,
            rows: RowTexts::default(),
            amount: Vec::with_capacity(16),
            text: Vec::with_capacity(DATA_MOST + 64),
        })
    }

    /// Executes one transaction. False if it was rolled back as intended (an item does not exist).
    pub(super) fn carry_out(
        &mut self,
        inputs: &TransactionInputs,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<bool, StatementError> {
        let begin = match inputs.kind {
            TransactionKind::StockLevel | TransactionKind::OrderStatus => &self.begin_to_read,
            _ => &self.begin,
        };
        begin.send(session, tally)?;
        let mut work =
            OrdersTransaction { statements: &self.prepared, session, tally, rows: &mut self.rows };
        let is_done = match inputs.kind {
            TransactionKind::NewOrder => {
                work.new_order(inputs, (&mut self.amount, &mut self.text))?
            }
            TransactionKind::Payment => work.payment(inputs, &mut self.text)?,
            TransactionKind::Delivery => work.delivery(inputs, &mut self.amount)?,
            TransactionKind::StockLevel => work.stock_level(inputs)?,
            TransactionKind::OrderStatus => work.order_status(inputs)?,
        };
        let end = if is_done { &self.commit } else { &self.rollback };
        end.send(session, tally)?;
        Ok(is_done)
    }
}

/// Prepares a statement: its name for messages, the types of its placeholders (`i` whole number,
/// `t` text), and its SQL with `?` for each placeholder and `{lock}` for `FOR UPDATE`.
pub(super) fn prepare_one(
    dialect: Dialect,
    (name, types, sql): (&str, &str, &str),
    session: &mut Connection,
) -> Result<Prepared, String> {
    let lock = if dialect == Dialect::Sqlite { "" } else { " FOR UPDATE" };
    let sql = in_dialect(&sql.replace("{lock}", lock), dialect);
    let kinds = types.chars().map(|letter| match letter {
        'i' => ValueType::AnyInt,
        _ => ValueType::AnyText,
    });
    session
        .prepare(&sql, &kinds.collect::<Vec<_>>())
        .map_err(|error| format!("failed to prepare {name} ({sql}): {error}"))
}

/// SQL with the placeholders of a dialect instead of `?`.
fn in_dialect(sql: &str, dialect: Dialect) -> String {
    if dialect.spec().placeholder == Placeholder::InOrder {
        return sql.to_owned();
    }
    let mut numbered = String::with_capacity(sql.len() + 16);
    for (index, part) in sql.split('?').enumerate() {
        if index > 0 {
            numbered.push_str(&format!("${index}"));
        }
        numbered.push_str(part);
    }
    numbered
}

impl TransactionEdge {
    fn prepare(
        sql: &'static str,
        dialect: Dialect,
        session: &mut Connection,
    ) -> Result<TransactionEdge, String> {
        if !dialect.spec().begin_prepared {
            return Ok(TransactionEdge::Text(sql));
        }
        let prepared = session.prepare(sql, &[]);
        prepared
            .map(|prepared| TransactionEdge::Prepared(sql, prepared))
            .map_err(|error| format!("failed to prepare {sql}: {error}"))
    }

    fn send(&self, session: &mut Connection, tally: &mut Tally) -> Result<(), StatementError> {
        let (sql, reply) = match self {
            TransactionEdge::Prepared(sql, prepared) => (sql, session.execute(*prepared, &[])),
            TransactionEdge::Text(sql) => (sql, session.simple(sql)),
        };
        let reply = reply.map_err(|error| failed(sql, error))?;
        tally.statements += 1;
        tally.others += 1;
        tally.bytes += reply.bytes;
        Ok(())
    }
}

#[cold]
pub(super) fn failed(kind: &str, error: WireError) -> StatementError {
    StatementError { kind: kind.to_owned(), error }
}

/// The name of a statement for messages.
fn name_of(statement: usize) -> &'static str {
    STATEMENTS.get(statement).map_or("the stock of an item", |statement| statement.name)
}

/// A whole number as a value.
fn whole(number: u32) -> Value<'static> {
    Value::Int(i64::from(number))
}

/// A number of cents from a text such as `12.5` or `-10`.
pub(super) fn cents(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let (units, parts) = digits.split_once('.').unwrap_or((digits, ""));
    let units: i64 = units.parse().ok()?;
    let mut part = parts.bytes().chain(*b"00");
    let digit =
        |byte: Option<u8>| byte.filter(u8::is_ascii_digit).map(|byte| i64::from(byte - b'0'));
    let (tens, ones) = (digit(part.next())?, digit(part.next())?);
    Some(sign * (units * 100 + tens * 10 + ones))
}

impl OrdersTransaction<'_> {
    /// Executes a statement without using its rows.
    fn send(&mut self, statement: usize, values: &[Value<'_>]) -> Result<Reply, StatementError> {
        let sent = self.session.execute(self.statements[statement], values);
        let reply = sent.map_err(|error| failed(name_of(statement), error))?;
        self.tally.count(reply);
        Ok(reply)
    }

    /// Executes a statement and keeps its rows.
    fn fetch(&mut self, statement: usize, values: &[Value<'_>]) -> Result<(), StatementError> {
        let sent = self.session.execute_rows(self.statements[statement], values, self.rows);
        let reply = sent.map_err(|error| failed(name_of(statement), error))?;
        self.tally.count(reply);
        Ok(())
    }

    /// A whole number of the first row.
    fn number(&self, statement: usize, column: usize) -> Result<i64, StatementError> {
        let value = self.rows.value(0, column);
        let number = value.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        number.ok_or_else(|| self.nothing(statement))
    }

    #[cold]
    fn nothing(&self, statement: usize) -> StatementError {
        let rows = self.rows.rows();
        let what = format!("it returned {rows} rows without the expected value");
        failed(name_of(statement), WireError::Protocol(what))
    }

    fn new_order(
        &mut self,
        inputs: &TransactionInputs,
        (amount, dist): (&mut Vec<u8>, &mut Vec<u8>),
    ) -> Result<bool, StatementError> {
        let (w, d, c) = (whole(inputs.warehouse), whole(inputs.district), whole(inputs.customer));
        self.fetch(ORDER_CUSTOMER, &[w, w, d, c])?;
        self.fetch(ORDER_NUMBER, &[w, d])?;
        let order = Value::Int(self.number(ORDER_NUMBER, 0)?);
        self.send(NEXT_NUMBER, &[w, d])?;
        let is_local = inputs.lines.iter().all(|line| line.supply == inputs.warehouse);
        let (count, local) = (inputs.lines.len() as i64, i64::from(is_local));
        self.send(ORDER, &[w, d, order, c, Value::Int(count), Value::Int(local)])?;
        self.send(NEW_ORDER, &[w, d, order])?;
        for (number, line) in (1..).zip(&inputs.lines) {
            let (item, supply) = (whole(line.item), whole(line.supply));
            self.fetch(ITEM, &[item])?;
            if self.rows.rows() == 0 && inputs.is_unsold() {
                return Ok(false);
            }
            let Some(price) = self.rows.value(0, 0) else { return Err(self.nothing(ITEM)) };
            let Some(price) = cents(price) else { return Err(self.nothing(ITEM)) };
            let stock = STOCK + inputs.district as usize - 1;
            self.fetch(stock, &[supply, item])?;
            let there = self.number(stock, 0)?;
            dist.clear();
            dist.extend_from_slice(self.rows.value(0, 1).unwrap_or_default());
            let quantity = i64::from(line.quantity);
            let left = there - quantity;
            let left = if left >= 10 { left } else { left + 91 };
            let remote = i64::from(line.supply != inputs.warehouse);
            let (left, remote) = (Value::Int(left), Value::Int(remote));
            self.send(LESS_STOCK, &[left, Value::Int(quantity), remote, supply, item])?;
            amount.clear();
            decimal(amount, quantity * price, 2);
            let (number, quantity) = (Value::Int(number), Value::Int(quantity));
            let (amount, dist) = (Value::Text(amount), Value::Text(dist));
            let values = [w, d, order, number, item, supply, quantity, amount, dist];
            self.send(ORDER_LINE, &values)?;
        }
        Ok(true)
    }

    fn payment(
        &mut self,
        inputs: &TransactionInputs,
        text: &mut Vec<u8>,
    ) -> Result<bool, StatementError> {
        let (w, d, amount) =
            (whole(inputs.warehouse), whole(inputs.district), whole(inputs.amount));
        let (cw, cd) = (whole(inputs.customer_warehouse), whole(inputs.customer_district));
        let mut names = [0; 24];
        self.send(WAREHOUSE_YEAR, &[amount, w])?;
        self.fetch(WAREHOUSE, &[w])?;
        let mut length = self.keep_name(&mut names, 0);
        self.send(DISTRICT_YEAR, &[amount, w, d])?;
        self.fetch(DISTRICT, &[w, d])?;
        names[length..length + 4].fill(b' ');
        length = self.keep_name(&mut names, length + 4);
        let customer = self.customer(inputs, (cw, cd))?;
        let c = Value::Int(customer);
        self.fetch(PAYER, &[cw, cd, c])?;
        match self.rows.value(0, CREDIT) {
            None => return Err(self.nothing(PAYER)),
            Some(b"BC") => {
                let old = self.rows.value(0, DATA).unwrap_or_default();
                about_customer(text, inputs, customer, old);
                let text = Value::Text(text);
                self.send(BAD_PAYMENT, &[amount, amount, text, cw, cd, c])?;
            }
            Some(_) => {
                self.send(PAYMENT, &[amount, amount, cw, cd, c])?;
            }
        }
        let data = Value::Text(&names[..length]);
        self.send(HISTORY, &[c, cd, cw, d, w, amount, data])?;
        Ok(true)
    }

    /// Copies the name in the first row to `at`; returns its end.
    fn keep_name(&self, names: &mut [u8; 24], at: usize) -> usize {
        let name = self.rows.value(0, 0).unwrap_or_default();
        let name = &name[..name.len().min(10)];
        names[at..at + name.len()].copy_from_slice(name);
        at + name.len()
    }

    /// The customer of the inputs; of several with the same last name, the middle one by first
    /// name.
    fn customer(
        &mut self,
        inputs: &TransactionInputs,
        (w, d): (Value<'_>, Value<'_>),
    ) -> Result<i64, StatementError> {
        if inputs.customer > 0 {
            return Ok(i64::from(inputs.customer));
        }
        self.fetch(BY_NAME, &[w, d, Value::Text(&inputs.last_name)])?;
        let middle = self.rows.rows().div_ceil(2).saturating_sub(1);
        let number = self.rows.value(middle, 0);
        let number = number.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        number.ok_or_else(|| self.nothing(BY_NAME))
    }

    fn delivery(
        &mut self,
        inputs: &TransactionInputs,
        worth: &mut Vec<u8>,
    ) -> Result<bool, StatementError> {
        let w = whole(inputs.warehouse);
        for district in 1..=DISTRICTS {
            let d = whole(district);
            self.fetch(OLDEST, &[w, d])?;
            if self.rows.rows() == 0 {
                continue;
            }
            let order = Value::Int(self.number(OLDEST, 0)?);
            self.send(NO_LONGER_NEW, &[w, d, order])?;
            self.send(CARRIER, &[whole(inputs.carrier), w, d, order])?;
            self.fetch(CUSTOMER_OF, &[w, d, order])?;
            let customer = Value::Int(self.number(CUSTOMER_OF, 0)?);
            self.send(DELIVERED_LINES, &[w, d, order])?;
            self.fetch(WORTH, &[w, d, order])?;
            let Some(sum) = self.rows.value(0, 0) else { return Err(self.nothing(WORTH)) };
            worth.clear();
            worth.extend_from_slice(sum);
            self.send(DELIVERY, &[Value::Text(worth), w, d, customer])?;
        }
        Ok(true)
    }

    fn stock_level(&mut self, inputs: &TransactionInputs) -> Result<bool, StatementError> {
        let (w, d) = (whole(inputs.warehouse), whole(inputs.district));
        self.fetch(ORDER_NUMBER_READ, &[w, d])?;
        let next = self.number(ORDER_NUMBER_READ, 0)?;
        let (next, first) = (Value::Int(next), Value::Int(next - 20));
        self.send(LOW_STOCK, &[w, d, next, first, w, whole(inputs.threshold)])?;
        Ok(true)
    }

    fn order_status(&mut self, inputs: &TransactionInputs) -> Result<bool, StatementError> {
        let (w, d) = (whole(inputs.warehouse), whole(inputs.district));
        let customer = Value::Int(self.customer(inputs, (w, d))?);
        self.send(CUSTOMER, &[w, d, customer])?;
        self.fetch(LAST_ORDER, &[w, d, customer])?;
        let order = Value::Int(self.number(LAST_ORDER, 0)?);
        self.send(LINES_OF, &[w, d, order])?;
        Ok(true)
    }
}

/// The new text about a customer with bad credit: this payment, then the old text.
fn about_customer(text: &mut Vec<u8>, inputs: &TransactionInputs, customer: i64, old: &[u8]) {
    use std::io::Write;
    text.clear();
    let TransactionInputs {
        warehouse,
        district,
        customer_warehouse,
        customer_district,
        amount,
        ..
    } = inputs;
    // Writing to memory cannot fail.
    write!(
        text,
        "{customer} {customer_district} {customer_warehouse} {district} {warehouse} {amount}.00 | "
    )
    .unwrap_or(());
    text.extend_from_slice(old);
    text.truncate(DATA_MOST);
}

// The statements of the transactions.

/// A statement: its name for messages, the types of its placeholders (`i` whole number, `t` text),
/// and its SQL. `{lock}` locks the read rows if the dialect can.
struct OrdersStatement {
    name: &'static str,
    types: &'static str,
    sql: String,
}

/// Statements by number.
static STATEMENTS: LazyLock<Vec<OrdersStatement>> = LazyLock::new(|| {
    let texts = include_str!("statements.sql").split("\n\n").skip(1);
    let statement = |text: &'static str| {
        let (head, sql) = text.strip_prefix("-- ")?.split_once('\n')?;
        let (name, types) = head.split_once(": ")?;
        Some(OrdersStatement { name, types, sql: sql.trim_end().replace('\n', " ") })
    };
    texts.filter_map(statement).collect()
});

pub(super) const ORDER_CUSTOMER: usize = 0;
pub(super) const ORDER_NUMBER: usize = 1;
pub(super) const NEXT_NUMBER: usize = 2;
pub(super) const ORDER: usize = 3;
pub(super) const NEW_ORDER: usize = 4;
pub(super) const ITEM: usize = 5;
pub(super) const LESS_STOCK: usize = 6;
pub(super) const ORDER_LINE: usize = 7;
pub(super) const WAREHOUSE_YEAR: usize = 8;
pub(super) const WAREHOUSE: usize = 9;
pub(super) const DISTRICT_YEAR: usize = 10;
pub(super) const DISTRICT: usize = 11;
pub(super) const BY_NAME: usize = 12;
pub(super) const PAYER: usize = 13;
pub(super) const PAYMENT: usize = 14;
pub(super) const BAD_PAYMENT: usize = 15;
pub(super) const HISTORY: usize = 16;
pub(super) const OLDEST: usize = 17;
pub(super) const NO_LONGER_NEW: usize = 18;
pub(super) const CARRIER: usize = 19;
pub(super) const CUSTOMER_OF: usize = 20;
pub(super) const DELIVERED_LINES: usize = 21;
pub(super) const WORTH: usize = 22;
pub(super) const DELIVERY: usize = 23;
pub(super) const LOW_STOCK: usize = 24;
pub(super) const LAST_ORDER: usize = 25;
pub(super) const LINES_OF: usize = 26;
pub(super) const ORDER_NUMBER_READ: usize = 27;
pub(super) const CUSTOMER: usize = 28;
/// The stock statement for district 1; those for the other districts follow.
pub(super) const STOCK: usize = 29;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_statements_is_read() {
        assert_eq!(STATEMENTS.len(), STOCK);
        for statement in STATEMENTS.iter() {
            assert_eq!(
                statement.types.len(),
                statement.sql.matches('?').count(),
                "{}",
                statement.name
            );
        }
        assert!(STATEMENTS[CUSTOMER].sql.ends_with("AND c_id = ?"));
    }
}
