//! The five transactions as stored functions of Postgres and stored procedures of MySQL.

use crate::orders::schema::PROCEDURES;
use rqps_model::dialect::Dialect;

/// SQLSTATE raised by the function of a new order for an item that does not exist.
pub(super) const UNSOLD: &str = "ORD01";

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
