//! The loop of a client: draws a transaction, and repeats it until it succeeds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::orders::driver::calls::OrdersCalls;
use crate::orders::driver::inputs::{OrdersSource, TransactionKind};
use crate::orders::driver::statements::OrdersStatements;
use rqps_driver::attempt::{ClientEvent, StatementError, Tally};
use rqps_driver::clock::SECOND;
use rqps_driver::connection::Connection;
use rqps_driver::recorder::Recorder;

/// Figures of a client for the coordinator: response times by kind, and all new orders including
/// the warm-up.
pub(super) struct ClientFigures {
    pub(super) by_kind: [Recorder; 5],
    pub(super) new_orders: AtomicU64,
}

impl ClientFigures {
    pub(super) fn new() -> ClientFigures {
        let by_kind = TransactionKind::ALL.map(|_| Recorder::new(false));
        ClientFigures { by_kind, new_orders: AtomicU64::new(0) }
    }
}

/// The way to execute transactions.
pub(super) enum OrdersWay {
    /// Statement by statement.
    Statements(Box<OrdersStatements>),
    /// One call of a stored procedure each.
    Calls(Box<OrdersCalls>),
}

/// A client.
pub(super) struct OrdersClient {
    pub(super) source: OrdersSource,
    pub(super) way: OrdersWay,
    pub(super) figures: Arc<ClientFigures>,
    /// True if the inputs of the next or current transaction are drawn.
    pub(super) is_drawn: bool,
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
