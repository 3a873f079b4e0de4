//! The step of the order mix: clients through warm-up and window, then the checks.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::orders::driver::calls::OrdersCalls;
use crate::orders::driver::check;
use crate::orders::driver::client::{ClientFigures, OrdersClient, OrdersWay};
use crate::orders::driver::inputs::{OrdersSource, TransactionKind};
use crate::orders::driver::statements::OrdersStatements;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_driver::recorder::{Recorder, Snapshot, histograms};
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_driver::step::{Clients, MakeEvent};
use rqps_driver::{Stop, step};
use rqps_model::metric::Metric;
use rqps_model::orders::OrdersShape;
use rqps_model::run::{Outcome, Role};

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
        check::check(&mut self.session)?;
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
