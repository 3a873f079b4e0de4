//! Random inputs of each transaction. They depend only on the seed, so they are equal on all
//! targets.

use std::io::Write;

use crate::orders::driver::statements::{failed, prepare_one};
use crate::orders::{CUSTOMERS, DISTRICTS, ITEMS, KINDS, PROCEDURES};
use rqps_driver::attempt::{StatementError, Tally};
use rqps_driver::connection::Connection;
use rqps_model::datagen::rng::Rng;
use rqps_model::dialect::Dialect;
use rqps_model::ycsb::{OrdersShape, WarehouseSpread};
use rqps_wire::{Prepared, Reply, RowTexts, Value, WireError};

/// An item that does not exist.
const UNUSED_ITEM: u32 = ITEMS + 1;

/// C of the non-uniform distribution.
const UNEVEN: u64 = 123;

/// Parts of last names.
const SYLLABLES: [&[u8]; 10] =
    [b"BAR", b"OUGHT", b"ABLE", b"PRI", b"PRES", b"ESE", b"ANTI", b"CALLY", b"ATION", b"EING"];

/// Appends the last name for a number below 1000: a syllable per digit.
pub(crate) fn last_name(out: &mut Vec<u8>, number: u64) {
    for digit in [number / 100, number / 10 % 10, number % 10] {
        out.extend_from_slice(SYLLABLES[(digit % 10) as usize]);
    }
}

/// The non-uniform distribution over first..=last: some values are much more frequent.
pub(crate) fn non_uniform(rng: &mut Rng, bits: u64, first: u64, last: u64) -> u64 {
    let mixed = rng.uniform(0, bits) | rng.uniform(first, last);
    (mixed + UNEVEN) % (last - first + 1) + first
}

/// The kinds of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionKind {
    NewOrder,
    Payment,
    Delivery,
    StockLevel,
    OrderStatus,
}

impl TransactionKind {
    /// All, in the order of records.
    pub(crate) const ALL: [TransactionKind; 5] = [
        TransactionKind::NewOrder,
        TransactionKind::Payment,
        TransactionKind::Delivery,
        TransactionKind::StockLevel,
        TransactionKind::OrderStatus,
    ];

    /// The name in records.
    pub(crate) fn name(self) -> &'static str {
        KINDS[self as usize].0
    }

    /// Seconds: keying before it, and mean thinking after it.
    fn waits(self) -> (f64, f64) {
        match self {
            TransactionKind::NewOrder => (18.0, 12.0),
            TransactionKind::Payment => (3.0, 12.0),
            TransactionKind::Delivery => (2.0, 10.0),
            TransactionKind::StockLevel | TransactionKind::OrderStatus => (2.0, 5.0),
        }
    }
}

/// A line of a new order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OrderedLine {
    pub(crate) item: u32,
    pub(crate) supply: u32,
    pub(crate) quantity: u32,
}

/// The inputs of one transaction. Fields that its kind does not use keep old values.
#[derive(Clone, Debug)]
pub(crate) struct TransactionInputs {
    pub(crate) kind: TransactionKind,
    pub(crate) warehouse: u32,
    pub(crate) district: u32,
    /// The customer's warehouse.
    pub(crate) customer_warehouse: u32,
    pub(crate) customer_district: u32,
    /// 0 if the customer is selected by last name.
    pub(crate) customer: u32,
    pub(crate) last_name: Vec<u8>,
    pub(crate) lines: Vec<OrderedLine>,
    /// Whole units of money.
    pub(crate) amount: u32,
    pub(crate) carrier: u32,
    pub(crate) threshold: u32,
}

impl TransactionInputs {
    /// True for a new order that ends with an item that does not exist.
    pub(crate) fn is_unsold(&self) -> bool {
        self.lines.last().is_some_and(|line| line.item == UNUSED_ITEM)
    }
}

/// Draws the transactions of a client.
pub(crate) struct OrdersSource {
    rng: Rng,
    shape: OrdersShape,
    client: u32,
    clients: u32,
    home: u32,
    /// The district whose stock level the client checks.
    district: u32,
    /// Seconds to wait after the current transaction.
    thinking: f64,
    pub(crate) inputs: TransactionInputs,
}

impl OrdersSource {
    pub(crate) fn new(
        shape: &OrdersShape,
        seed: u64,
        (client, clients): (u32, u32),
    ) -> OrdersSource {
        let mut rng = Rng::stream(seed, "orders", u64::from(client));
        let home = rng.uniform(1, u64::from(shape.warehouses)) as u32;
        let district = rng.uniform(1, u64::from(DISTRICTS)) as u32;
        let inputs = TransactionInputs {
            kind: TransactionKind::NewOrder,
            warehouse: home,
            district,
            customer_warehouse: home,
            customer_district: district,
            customer: 1,
            last_name: Vec::with_capacity(16),
            lines: Vec::with_capacity(15),
            amount: 1,
            carrier: 1,
            threshold: 10,
        };
        let shape = shape.clone();
        OrdersSource { rng, shape, client, clients, home, district, thinking: 0.0, inputs }
    }

    /// Draws the next transaction. Returns the seconds to wait before it: the thinking after the
    /// last one, and its keying.
    pub(crate) fn next(&mut self) -> f64 {
        let kind = match self.rng.uniform(1, 23) {
            1..=10 => TransactionKind::NewOrder,
            11..=20 => TransactionKind::Payment,
            21 => TransactionKind::Delivery,
            22 => TransactionKind::StockLevel,
            _ => TransactionKind::OrderStatus,
        };
        self.inputs.kind = kind;
        self.inputs.warehouse = self.warehouse();
        match kind {
            TransactionKind::NewOrder => self.new_order(),
            TransactionKind::Payment => self.payment(),
            TransactionKind::Delivery => self.inputs.carrier = self.rng.uniform(1, 10) as u32,
            TransactionKind::StockLevel => {
                self.inputs.district = self.district;
                self.inputs.threshold = self.rng.uniform(10, 20) as u32;
            }
            TransactionKind::OrderStatus => {
                self.inputs.district = self.any_district();
                self.of_home();
                self.customer();
            }
        }
        if !self.shape.keying {
            return 0.0;
        }
        let (keying, thinking) = kind.waits();
        let wait = self.thinking + keying;
        self.thinking = ((1.0 - self.rng.unit()).ln() * thinking).round().abs();
        wait
    }

    fn warehouse(&mut self) -> u32 {
        if self.shape.spread == WarehouseSpread::Home {
            return self.home;
        }
        let all = self.shape.warehouses;
        let first = self.client % all;
        let of_client = (all - first).div_ceil(self.clients.max(1)).max(1);
        first + self.rng.below(u64::from(of_client)) as u32 * self.clients + 1
    }

    /// Another warehouse, if there is one.
    fn other_warehouse(&mut self) -> u32 {
        let (here, all) = (self.inputs.warehouse, self.shape.warehouses);
        if all == 1 {
            return here;
        }
        let drawn = self.rng.uniform(1, u64::from(all) - 1) as u32;
        if drawn >= here { drawn + 1 } else { drawn }
    }

    fn any_district(&mut self) -> u32 {
        self.rng.uniform(1, u64::from(DISTRICTS)) as u32
    }

    fn any_customer(&mut self) -> u32 {
        let last = u64::from(CUSTOMERS);
        if self.shape.nurand {
            non_uniform(&mut self.rng, 1023, 1, last) as u32
        } else {
            self.rng.uniform(1, last) as u32
        }
    }

    fn of_home(&mut self) {
        self.inputs.customer_warehouse = self.inputs.warehouse;
        self.inputs.customer_district = self.inputs.district;
    }

    /// The customer of a payment or an order status: 60 of 100 by last name.
    fn customer(&mut self) {
        self.inputs.last_name.clear();
        if self.rng.below(100) < 60 {
            let name = non_uniform(&mut self.rng, 255, 0, 999);
            self.inputs.customer = 0;
            last_name(&mut self.inputs.last_name, name);
        } else {
            self.inputs.customer = self.any_customer();
        }
    }

    fn new_order(&mut self) {
        self.inputs.district = self.any_district();
        self.of_home();
        self.inputs.customer = self.any_customer();
        let lines = self.rng.uniform(5, 15);
        let is_unsold = self.rng.below(100) == 0;
        self.inputs.lines.clear();
        for number in 1..=lines {
            let item = if self.shape.nurand {
                non_uniform(&mut self.rng, 8191, 1, u64::from(ITEMS)) as u32
            } else {
                self.rng.uniform(1, u64::from(ITEMS)) as u32
            };
            let supply = match self.rng.below(100) {
                0 => self.other_warehouse(),
                _ => self.inputs.warehouse,
            };
            let quantity = self.rng.uniform(1, 10) as u32;
            let item = if is_unsold && number == lines { UNUSED_ITEM } else { item };
            self.inputs.lines.push(OrderedLine { item, supply, quantity });
        }
    }

    fn payment(&mut self) {
        self.inputs.district = self.any_district();
        self.of_home();
        if self.rng.below(100) >= 85 {
            self.inputs.customer_warehouse = self.other_warehouse();
            self.inputs.customer_district = self.any_district();
        }
        self.customer();
        self.inputs.amount = self.rng.uniform(1, 5000) as u32;
    }
}

// The five transactions as calls of stored procedures and functions, one statement each.

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

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_stats::goodness_of_fit;

    fn source(seed: u64, client: u32) -> OrdersSource {
        let shape = OrdersShape {
            warehouses: 5,
            spread: WarehouseSpread::All,
            keying: false,
            partitions: 0,
            nurand: false,
            procedures: false,
        };
        OrdersSource::new(&shape, seed, (client, 2))
    }

    /// `count` transactions of a client.
    fn drawn(seed: u64, client: u32, count: usize) -> Vec<TransactionInputs> {
        let mut source = source(seed, client);
        (0..count)
            .map(|_| {
                source.next();
                source.inputs.clone()
            })
            .collect()
    }

    #[test]
    fn one_seed_gives_the_same_transactions_and_another_seed_or_client_others() {
        let text = |seed, client| format!("{:?}", drawn(seed, client, 200));
        assert_eq!(text(7, 1), text(7, 1));
        assert_ne!(text(7, 1), text(8, 1));
        assert_ne!(text(7, 1), text(7, 0));
    }

    #[test]
    fn kinds_and_inputs_have_their_shares() {
        let all = drawn(1, 1, 100_000);
        let mut kinds = [0; 5];
        all.iter().for_each(|one| kinds[one.kind as usize] += 1);
        assert!(goodness_of_fit(&kinds, &[10.0, 10.0, 1.0, 1.0, 1.0]) > 1e-5, "{kinds:?}");
        // Client 1 of 2 works on every second of five warehouses.
        assert!(all.iter().all(|one| [2, 4].contains(&one.warehouse)));
        let orders: Vec<_> =
            all.iter().filter(|one| one.kind == TransactionKind::NewOrder).collect();
        let unsold = orders.iter().filter(|one| one.is_unsold()).count() as u64;
        let sold = orders.len() as u64 - unsold;
        assert!(goodness_of_fit(&[unsold, sold], &[1.0, 99.0]) > 1e-5, "{unsold}");
        let mut lines = [0; 11];
        let (mut remote, mut near) = (0, 0);
        for order in &orders {
            lines[order.lines.len() - 5] += 1;
            for line in &order.lines {
                let is_remote = line.supply != order.warehouse;
                *(if is_remote { &mut remote } else { &mut near }) += 1;
                assert!((1..=5).contains(&line.supply) && (1..=10).contains(&line.quantity));
            }
        }
        assert!(goodness_of_fit(&lines, &[1.0; 11]) > 1e-5, "{lines:?}");
        assert!(goodness_of_fit(&[remote, near], &[1.0, 99.0]) > 1e-5, "{remote} {near}");
        let payments = all.iter().filter(|one| one.kind == TransactionKind::Payment);
        let (mut away, mut named, mut count) = (0, 0, 0);
        for payment in payments {
            count += 1;
            away += u64::from(payment.customer_warehouse != payment.warehouse);
            named += u64::from(payment.customer == 0);
        }
        assert!(goodness_of_fit(&[away, count - away], &[15.0, 85.0]) > 1e-5, "{away}");
        assert!(goodness_of_fit(&[named, count - named], &[60.0, 40.0]) > 1e-5, "{named}");
    }
}
