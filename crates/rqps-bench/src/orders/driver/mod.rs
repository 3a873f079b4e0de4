//! The driver of the order mix: load, clients, and checks after a step.
//!
//! The load request: one part for the items, one per warehouse.

mod inputs;
mod rows;
mod statements;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use self::inputs::{OrdersCalls, OrdersSource, TransactionKind};
use self::rows::rows_of;
use self::statements::OrdersStatements;
use crate::orders::{shape, tables};
use rqps_driver::Stop;
use rqps_driver::attempt::{ClientEvent, StatementError, Tally};
use rqps_driver::clock::SECOND;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::{ControlChannel, DriverEvent};
use rqps_driver::part::PartRows;
use rqps_driver::recorder::{Recorder, Snapshot, histograms};
use rqps_driver::request::{DriverRequest, PartLoad, PartTable, RequestBody, StepRequest};
use rqps_driver::step::{self, Clients, MakeEvent};
use rqps_model::benchmark::Workload;
use rqps_model::dialect::Dialect;
use rqps_model::metric::Metric;
use rqps_model::run::{Outcome, Role};
use rqps_model::ycsb::OrdersShape;

/// Connections that load warehouses at the same time.
const PARALLEL: u32 = 4;

/// The load for a dialect.
pub(crate) fn load(dialect: Dialect, workload: &Workload, engine: Option<&str>) -> RequestBody {
    let (warehouses, partitions) =
        shape(workload).map_or((1, 0), |shape| (shape.warehouses, shape.partitions));
    let has_procedures = shape(workload).is_some_and(|shape| shape.procedures);
    let drop = |table: &str| format!("DROP TABLE IF EXISTS {table}");
    let mut setup: Vec<String> = tables().iter().map(|table| drop(&table.name)).collect();
    setup.extend(tables().iter().flat_map(|table| table.create(dialect, engine, partitions)));
    if has_procedures {
        setup.extend(inputs::create(dialect));
    }
    let mut finish: Vec<Vec<String>> = tables().iter().map(|table| table.finish(dialect)).collect();
    // The largest table first.
    finish.reverse();
    let task = PartLoad {
        rows_of: "orders".to_owned(),
        shape: warehouses.into(),
        setup,
        tables: tables()
            .iter()
            .map(|table| PartTable { name: table.name.clone(), columns: table.column_names() })
            .collect(),
        parts: 1 + warehouses,
        rows: workload.rows,
        parallel: PARALLEL,
        finish,
    };
    RequestBody::LoadParts(task)
}

/// Opens the rows of a part in a table.
pub(crate) fn part_rows(
    request: &DriverRequest,
    task: &PartLoad,
    part: u32,
    table: usize,
) -> Result<Option<Box<dyn PartRows>>, String> {
    let name = task.tables.get(table).map_or("", |table| table.name.as_str());
    Ok(rows_of(request.seed, part, name))
}

// The step of the order mix: clients through warm-up and window, then the checks.

/// Number of the connection for the checks.
const ASKS: u32 = 1 << 20;

/// The loop of the benchmark's step.
pub(crate) fn step_loop(
    request: &DriverRequest,
    task: &StepRequest,
    control: &mut ControlChannel<&mut dyn Write>,
) -> Result<(), Stop> {
    let task: StepRequest<OrdersShape> = task.own()?;
    let connector = Connector::new(request)?;
    let first = request.number_of(0);
    // The host of the first client checks.
    let mut checks = if request.is_first() { Some(Checks::begin(&connector)?) } else { None };
    let figures: Vec<Arc<ClientFigures>> =
        (0..task.clients).map(|_| Arc::new(ClientFigures::new())).collect();
    let clients = request.all_clients(task.clients);
    let (shape, own) = (task.work.clone(), figures.clone());
    let make: MakeEvent<OrdersClient> = Box::new(move |request, client, session| {
        let way = if shape.procedures {
            OrdersWay::Calls(Box::new(OrdersCalls::prepare(request.dialect, session)?))
        } else {
            let statements = OrdersStatements::prepare(request.dialect, session)?;
            OrdersWay::Statements(Box::new(statements))
        };
        Ok(OrdersClient {
            source: OrdersSource::new(&shape, request.seed, (client, clients)),
            way,
            figures: Arc::clone(&own[(client - first) as usize]),
            is_drawn: false,
        })
    });
    let mut outcome = step::measure(request, &task, Clients::new(connector, make), control)?;
    add(&mut outcome, &task, &figures);
    let mut new_orders: u64 =
        figures.iter().map(|figures| figures.new_orders.load(Ordering::Relaxed)).sum();
    if request.is_shared(task.clients) {
        // The clients of all hosts have ended.
        new_orders = control.meet(new_orders)?.sum;
    }
    if let Some(checks) = &mut checks {
        let what = "the checks of consistency".to_owned();
        control.send(&DriverEvent::Waiting { what })?;
        outcome.notes.extend(checks.end(new_orders, clients)?);
    }
    Ok(control.send(&DriverEvent::Measured(Box::new(outcome)))?)
}

/// The checks of the tables before and after the clients.
struct Checks {
    session: Connection,
    /// Orders before the step, by the counters of all districts.
    before: i64,
}

impl Checks {
    fn begin(connector: &Connector) -> Result<Checks, String> {
        let mut session = connector.open(ASKS)?;
        let before = orders_of_districts(&mut session)?;
        Ok(Checks { session, before })
    }

    /// Checks the tables after all clients have ended. Returns a note if the `clients` have counted
    /// another number of new orders than the tables.
    fn end(&mut self, new_orders: u64, clients: u32) -> Result<Option<String>, String> {
        check(&mut self.session)?;
        let counted = orders_of_districts(&mut self.session)? - self.before;
        let apart = (counted - new_orders as i64).unsigned_abs();
        // Each client may have had one order in flight.
        Ok((apart > u64::from(clients)).then(|| {
            format!("clients counted {new_orders} new orders in all, districts {counted}")
        }))
    }
}

/// Number of orders by the counters of all districts.
fn orders_of_districts(session: &mut Connection) -> Result<i64, String> {
    let sql = "SELECT SUM(d_next_o_id) FROM district";
    let rows = session.rows(sql).map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    let sum = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
    sum.ok_or_else(|| format!("failed to execute {sql:?}: it returned no number"))
}

/// Adds the metrics of this benchmark.
fn add(outcome: &mut Outcome, task: &StepRequest<OrdersShape>, figures: &[Arc<ClientFigures>]) {
    if outcome.seconds > 0.0 {
        let per_minute = |count: u64| 60.0 * count as f64 / outcome.seconds;
        let (nopm, tpm) = (per_minute(outcome.statements), per_minute(outcome.events));
        outcome.extra.insert(Metric::NewOrdersPerMinute, nopm);
        outcome.extra.insert(Metric::TransactionsPerMinute, tpm);
    }
    for kind in TransactionKind::ALL {
        let all: Vec<&Recorder> =
            figures.iter().map(|figures| &figures.by_kind[kind as usize]).collect();
        let operations = Snapshot::take(all.iter().copied()).since(&Snapshot::default(), &[]).0;
        let role = Role {
            workers: task.clients,
            operations,
            latency: histograms(&all).0,
            ..Role::default()
        };
        outcome.roles.insert(kind.name().to_owned(), role);
    }
}

// The loop of a client: draws a transaction, and repeats it until it succeeds.

/// Figures of a client for the coordinator: response times by kind, and all new orders including
/// the warm-up.
pub(super) struct ClientFigures {
    pub(super) by_kind: [Recorder; 5],
    new_orders: AtomicU64,
}

impl ClientFigures {
    pub(super) fn new() -> ClientFigures {
        let by_kind = TransactionKind::ALL.map(|_| Recorder::new(false));
        ClientFigures { by_kind, new_orders: AtomicU64::new(0) }
    }
}

/// The way to execute transactions.
enum OrdersWay {
    /// Statement by statement.
    Statements(Box<OrdersStatements>),
    /// One call of a stored procedure each.
    Calls(Box<OrdersCalls>),
}

/// A client.
struct OrdersClient {
    pub(super) source: OrdersSource,
    pub(super) way: OrdersWay,
    pub(super) figures: Arc<ClientFigures>,
    /// True if the inputs of the next or current transaction are drawn.
    is_drawn: bool,
}

impl ClientEvent for OrdersClient {
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError> {
        if !self.is_drawn {
            self.source.next();
        }
        // A repeated transaction has the same inputs.
        self.is_drawn = true;
        let inputs = &self.source.inputs;
        let is_done = match &mut self.way {
            OrdersWay::Statements(statements) => statements.carry_out(inputs, session, tally)?,
            OrdersWay::Calls(calls) => calls.carry_out(inputs, session, tally)?,
        };
        self.is_drawn = false;
        let is_new_order = is_done && inputs.kind == TransactionKind::NewOrder;
        tally.statements = u64::from(is_new_order);
        self.figures.new_orders.fetch_add(tally.statements, Ordering::Relaxed);
        Ok(())
    }

    fn wait_ns(&mut self) -> u64 {
        if self.is_drawn {
            return 0;
        }
        let seconds = self.source.next();
        self.is_drawn = true;
        (seconds * SECOND) as u64
    }

    fn recorded(&mut self, latency_ns: u64) {
        let kind = self.source.inputs.kind as usize;
        self.figures.by_kind[kind].event(latency_ns, latency_ns, 0);
    }

    fn is_transaction(&self) -> bool {
        true
    }
}

// Checks that the tables are consistent after a step: conditions 1 to 4.

/// Amounts that differ by less are equal, because SQLite adds in binary floating point.
const CENT: f64 = 0.005;

/// Checks the conditions. The error names the first violation.
pub(super) fn check(session: &mut Connection) -> Result<(), String> {
    years(session)?;
    numbers(session)?;
    lines(session)
}

fn fault(place: &str, what: &str) -> String {
    format!("orders are inconsistent after the step: {place}: {what}")
}

/// The rows of a query as numbers; NULL is `None`.
fn ask(session: &mut Connection, sql: &str) -> Result<Vec<Vec<Option<f64>>>, String> {
    let rows = session.rows(sql).map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    let number = |text: Option<String>| text.and_then(|text| text.parse().ok());
    Ok(rows.into_iter().map(|row| row.into_iter().map(number).collect()).collect())
}

/// Condition 1: the year of a warehouse is the sum of its districts.
fn years(session: &mut Connection) -> Result<(), String> {
    let sql = "SELECT w_id, w_ytd, (SELECT SUM(d_ytd) FROM district WHERE d_w_id = w_id) \
               FROM warehouse ORDER BY w_id";
    for row in ask(session, sql)? {
        let [Some(warehouse), year, districts] = row[..] else { continue };
        let (year, districts) = (year.unwrap_or(0.0), districts.unwrap_or(0.0));
        if (year - districts).abs() > CENT {
            let what = format!("w_ytd is {year:.2}, and its districts have {districts:.2}");
            return Err(fault(&format!("warehouse {warehouse}"), &what));
        }
    }
    Ok(())
}

/// Conditions 2 and 3: the next number follows the last order, and new orders have no gap.
fn numbers(session: &mut Connection) -> Result<(), String> {
    let of_new = |what: &str| {
        format!("(SELECT {what} FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id)")
    };
    let sql = format!(
        "SELECT d_w_id, d_id, d_next_o_id - 1, (SELECT MAX(o_id) FROM orders \
         WHERE o_w_id = d_w_id AND o_d_id = d_id), {}, {}, {} FROM district ORDER BY d_w_id, d_id",
        of_new("MAX(no_o_id)"),
        of_new("MIN(no_o_id)"),
        of_new("COUNT(*)")
    );
    for row in ask(session, &sql)? {
        let [Some(warehouse), Some(district), Some(last), order, newest, oldest, count] = row[..]
        else {
            continue;
        };
        let place = format!("district {district} of warehouse {warehouse}");
        if order != Some(last) || newest.is_some_and(|newest| newest != last) {
            let said = |number: Option<f64>| number.map_or("none".to_owned(), |n| n.to_string());
            let (order, newest) = (said(order), said(newest));
            let what = format!(
                "d_next_o_id - 1 is {last}, the last order {order}, the last new order {newest}"
            );
            return Err(fault(&place, &what));
        }
        if let (Some(newest), Some(oldest), Some(count)) = (newest, oldest, count)
            && newest - oldest + 1.0 != count
        {
            let what = format!("{count} new orders have the numbers {oldest} to {newest}");
            return Err(fault(&place, &what));
        }
    }
    Ok(())
}

/// Condition 4: orders have the stated number of lines.
fn lines(session: &mut Connection) -> Result<(), String> {
    let mut of = |sql: &str| -> Result<BTreeMap<(u64, u64), u64>, String> {
        let rows = ask(session, sql)?;
        let whole = |number: Option<f64>| number.unwrap_or(0.0) as u64;
        Ok(rows.iter().map(|row| ((whole(row[0]), whole(row[1])), whole(row[2]))).collect())
    };
    let said = of("SELECT o_w_id, o_d_id, SUM(o_ol_cnt) FROM orders GROUP BY o_w_id, o_d_id")?;
    let there = of("SELECT ol_w_id, ol_d_id, COUNT(*) FROM order_line GROUP BY ol_w_id, ol_d_id")?;
    match said.iter().find(|(place, count)| there.get(place) != Some(count)) {
        None => Ok(()),
        Some((place, count)) => {
            let there = there.get(place).copied().unwrap_or(0);
            let what = format!("its orders should have {count} lines, but have {there}");
            Err(fault(&format!("district {} of warehouse {}", place.1, place.0), &what))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use rqps_embed::sqlite::{Sqlite, SqliteConnection};

    /// Two districts of two warehouses each, with three orders of two lines; the last two of each
    /// district are new.
    fn tables() -> Connection {
        let library = Arc::new(Sqlite::compiled_in());
        let memory = Path::new(":memory:");
        let mut session =
            Connection::Sqlite(SqliteConnection::open(&library, memory, 1000).unwrap());
        let mut make = |sql: &str| {
            session.simple(sql).unwrap();
        };
        make("CREATE TABLE warehouse (w_id INT, w_ytd DECIMAL(12,2))");
        make("CREATE TABLE district (d_w_id INT, d_id INT, d_ytd DECIMAL(12,2), d_next_o_id INT)");
        make("CREATE TABLE orders (o_w_id INT, o_d_id INT, o_id INT, o_ol_cnt INT)");
        make("CREATE TABLE new_order (no_w_id INT, no_d_id INT, no_o_id INT)");
        make("CREATE TABLE order_line (ol_w_id INT, ol_d_id INT, ol_o_id INT, ol_number INT)");
        for w in 1..=2 {
            make(&format!("INSERT INTO warehouse VALUES ({w}, 60000.2)"));
            for d in 1..=2 {
                make(&format!("INSERT INTO district VALUES ({w}, {d}, 30000.1, 4)"));
                for o in 1..=3 {
                    make(&format!("INSERT INTO orders VALUES ({w}, {d}, {o}, 2)"));
                    for number in 1..=2 {
                        make(&format!("INSERT INTO order_line VALUES ({w}, {d}, {o}, {number})"));
                    }
                }
                make(&format!("INSERT INTO new_order VALUES ({w}, {d}, 2), ({w}, {d}, 3)"));
            }
        }
        session
    }

    #[test]
    fn tables_that_agree_pass_and_every_broken_one_is_found_with_its_place() {
        let mut session = tables();
        assert_eq!(super::check(&mut session), Ok(()));
        let mut found = |breaks: &str, wanted: &str| {
            session.simple("BEGIN").unwrap();
            session.simple(breaks).unwrap();
            let fault = super::check(&mut session).unwrap_err();
            let all = format!("orders are inconsistent after the step: {wanted}");
            assert_eq!(fault, all, "{breaks}");
            session.simple("ROLLBACK").unwrap();
        };
        found(
            "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2",
            "warehouse 2: w_ytd is 60000.21, and its districts have 60000.20",
        );
        found(
            "UPDATE district SET d_next_o_id = 5 WHERE d_w_id = 1 AND d_id = 2",
            "district 2 of warehouse 1: d_next_o_id - 1 is 4, the last order 3, the last new order \
             3",
        );
        found(
            "DELETE FROM new_order WHERE no_w_id = 2 AND no_d_id = 1 AND no_o_id = 3",
            "district 1 of warehouse 2: d_next_o_id - 1 is 3, the last order 3, the last new order \
             2",
        );
        found(
            "UPDATE new_order SET no_o_id = 1 WHERE no_w_id = 1 AND no_d_id = 1 AND no_o_id = 2",
            "district 1 of warehouse 1: 2 new orders have the numbers 1 to 3",
        );
        found(
            "DELETE FROM order_line WHERE ol_w_id = 2 AND ol_d_id = 2 AND ol_o_id = 1 \
             AND ol_number = 1",
            "district 2 of warehouse 2: its orders should have 6 lines, but have 5",
        );
        found(
            "DELETE FROM orders WHERE o_w_id = 1 AND o_d_id = 1",
            "district 1 of warehouse 1: d_next_o_id - 1 is 3, the last order none, the last new \
             order 3",
        );
        assert_eq!(super::check(&mut session), Ok(()));
    }
}
