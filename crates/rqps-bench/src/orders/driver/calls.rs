//! The five transactions as calls of stored procedures and functions, one statement each.

use std::io::Write;

use crate::orders::driver::inputs::{OrderedLine, TransactionInputs, TransactionKind};
use crate::orders::driver::statements::{failed, prepare_one};
use crate::orders::schema::PROCEDURES;
use rqps_driver::attempt::{StatementError, Tally};
use rqps_driver::connection::Connection;
use rqps_model::dialect::Dialect;
use rqps_wire::{Prepared, Reply, RowTexts, Value, WireError};

/// The prepared calls of a session.
pub(super) struct OrdersCalls {
    prepared: Vec<Prepared>,
    dialect: Dialect,
    rows: RowTexts,
    /// Texts of the lists of a new order: items, supplying warehouses, quantities.
    lists: [Vec<u8>; 3],
}

impl OrdersCalls {
    /// Prepares all calls. The error is a complete message.
    pub(super) fn prepare(
        dialect: Dialect,
        session: &mut Connection,
    ) -> Result<OrdersCalls, String> {
        let mut prepared = Vec::with_capacity(STORED.len());
        for stored in &STORED {
            let call = stored.call(dialect);
            prepared.push(prepare_one(dialect, (stored.name, stored.types, &call), session)?);
        }
        Ok(OrdersCalls {
            prepared,
            dialect,
            rows: RowTexts::default(),
            lists: [Vec::new(), Vec::new(), Vec::new()],
        })
    }

    /// Executes one transaction. False if it was rolled back as intended (an item does not exist).
    pub(super) fn carry_out(
        &mut self,
        inputs: &TransactionInputs,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<bool, StatementError> {
        let whole = |number: u32| Value::Int(i64::from(number));
        let TransactionInputs { warehouse, district, customer, .. } = *inputs;
        let (w, d, c) = (whole(warehouse), whole(district), whole(customer));
        let name = Value::Text(&inputs.last_name);
        let sent = match inputs.kind {
            TransactionKind::NewOrder => {
                self.list(&inputs.lines);
                let is_local = inputs.lines.iter().all(|line| line.supply == warehouse);
                let [items, supplies, quantities] = &self.lists;
                let lists = [items, supplies, quantities].map(|list| Value::Text(list));
                let [items, supplies, quantities] = lists;
                let local = Value::Int(i64::from(is_local));
                let values = [w, d, c, local, items, supplies, quantities];
                session.execute_rows(self.prepared[0], &values, &mut self.rows)
            }
            TransactionKind::Payment => {
                let (cw, cd) = (inputs.customer_warehouse, inputs.customer_district);
                let values = [w, d, whole(cw), whole(cd), c, name, whole(inputs.amount)];
                session.execute(self.prepared[1], &values)
            }
            TransactionKind::Delivery => {
                session.execute(self.prepared[2], &[w, whole(inputs.carrier)])
            }
            TransactionKind::StockLevel => {
                session.execute(self.prepared[3], &[w, d, whole(inputs.threshold)])
            }
            TransactionKind::OrderStatus => session.execute(self.prepared[4], &[w, d, c, name]),
        };
        let stored = &STORED[inputs.kind as usize];
        match sent {
            Ok(reply) => {
                tally.count(reply);
                self.is_done(inputs, reply).map_err(|error| failed(stored.name, error))
            }
            Err(WireError::Server { code, .. }) if code == UNSOLD && inputs.is_unsold() => {
                tally.statements += 1;
                tally.others += 1;
                Ok(false)
            }
            Err(error) => Err(failed(stored.name, error)),
        }
    }

    /// False for a new order that the server rolled back because an item does not exist.
    fn is_done(&self, inputs: &TransactionInputs, reply: Reply) -> Result<bool, WireError> {
        if inputs.kind != TransactionKind::NewOrder {
            return match reply.rows {
                0 => Err(WireError::Protocol("the procedure returned no row".to_owned())),
                _ => Ok(true),
            };
        }
        let is_sold = self.rows.value(0, 0).is_some_and(|sold| sold != b"0");
        if is_sold == inputs.is_unsold() {
            Err(WireError::Protocol(format!(
                "the procedure returned a new order as {}, which is wrong",
                if is_sold { "committed" } else { "rolled back" }
            )))
        } else {
            Ok(is_sold)
        }
    }

    /// Writes the lines of an order as lists; as arrays on Postgres.
    fn list(&mut self, lines: &[OrderedLine]) {
        let is_array = self.dialect == Dialect::Postgres;
        let columns: [fn(&OrderedLine) -> u32; 3] =
            [|line| line.item, |line| line.supply, |line| line.quantity];
        for (list, column) in self.lists.iter_mut().zip(columns) {
            list.clear();
            if is_array {
                list.push(b'{');
            }
            for (place, line) in lines.iter().enumerate() {
                let comma = if place > 0 { "," } else { "" };
                // Writing to memory cannot fail.
                write!(list, "{comma}{}", column(line)).unwrap_or(());
            }
            if is_array {
                list.push(b'}');
            }
        }
    }
}

// The five transactions as stored functions of Postgres and stored procedures of MySQL.

/// SQLSTATE raised by the function of a new order for an item that does not exist.
const UNSOLD: &str = "ORD01";

/// A transaction as a stored function of Postgres and a stored procedure of MySQL.
pub(super) struct Stored {
    pub(super) name: &'static str,
    /// Types of the call's placeholders: `i` whole number, `t` text.
    pub(super) types: &'static str,
    postgres: &'static str,
    mysql: &'static str,
}

impl Stored {
    /// The statements that create it.
    fn create(&self, dialect: Dialect) -> Vec<String> {
        let name = self.name;
        let (postgres, mysql) = (self.postgres.trim_end(), self.mysql.trim_end());
        match dialect {
            Dialect::Mysql => vec![
                format!("DROP PROCEDURE IF EXISTS {name}"),
                format!("CREATE PROCEDURE {name} {mysql}"),
            ],
            _ => vec![format!("CREATE OR REPLACE FUNCTION {name} {postgres}")],
        }
    }

    /// The statement that calls it, with `?` for each parameter.
    pub(super) fn call(&self, dialect: Dialect) -> String {
        let marks = vec!["?"; self.types.len()].join(", ");
        match dialect {
            Dialect::Mysql => format!("CALL {}({marks})", self.name),
            _ => format!("SELECT * FROM {}({marks})", self.name),
        }
    }
}

/// The statements that create all procedures.
pub(super) fn create(dialect: Dialect) -> Vec<String> {
    STORED.iter().flat_map(|stored| stored.create(dialect)).collect()
}

/// All procedures, in the order of transaction kinds.
pub(super) const STORED: [Stored; 5] = [NEW_ORDER, PAYMENT, DELIVERY, STOCK_LEVEL, ORDER_STATUS];

/// The items, their supplying warehouses and their quantities are parameters, each a list.
const NEW_ORDER: Stored = Stored {
    name: PROCEDURES[0],
    types: "iiiittt",
    postgres: include_str!("procedures/new_order.postgres.sql"),
    mysql: include_str!("procedures/new_order.mysql.sql"),
};

/// Parameter `c` is 0 if the customer is selected by name.
const PAYMENT: Stored = Stored {
    name: PROCEDURES[1],
    types: "iiiiiti",
    postgres: include_str!("procedures/payment.postgres.sql"),
    mysql: include_str!("procedures/payment.mysql.sql"),
};

const DELIVERY: Stored = Stored {
    name: PROCEDURES[2],
    types: "ii",
    postgres: include_str!("procedures/delivery.postgres.sql"),
    mysql: include_str!("procedures/delivery.mysql.sql"),
};

const STOCK_LEVEL: Stored = Stored {
    name: PROCEDURES[3],
    types: "iii",
    postgres: include_str!("procedures/stock_level.postgres.sql"),
    mysql: include_str!("procedures/stock_level.mysql.sql"),
};

/// Returns the lines of the customer's last order, each with the customer's balance.
const ORDER_STATUS: Stored = Stored {
    name: PROCEDURES[4],
    types: "iiit",
    postgres: include_str!("procedures/order_status.postgres.sql"),
    mysql: include_str!("procedures/order_status.mysql.sql"),
};
