//! The work of a client per event, and the sum of its statements.

use crate::connection::Connection;
use rqps_wire::{Reply, WireError};

/// The work that a client repeats.
pub trait ClientEvent {
    /// Attempts one event. `tally` counts the statements done even if a later one fails.
    fn attempt(
        &mut self,
        session: &mut Connection,
        tally: &mut Tally,
    ) -> Result<(), StatementError>;

    /// The action after an error with this code, where it differs from that of the dialect.
    fn after_error(&self, _code: &str) -> Option<AfterError> {
        None
    }

    /// Gives up the failed event: the next attempt is at another one.
    fn give_up(&mut self) {}

    /// Nanoseconds that a closed pace waits before the next event: they count for nothing.
    fn wait_ns(&mut self) -> u64 {
        0
    }

    /// The last event counts in the window and took this number of nanoseconds.
    fn recorded(&mut self, _latency_ns: u64) {}

    /// Errors that the client itself counted since the last call.
    #[inline]
    fn own_errors(&mut self) -> u64 {
        0
    }

    /// Cleans up after the last event. The error is a complete message.
    fn finish(&mut self, _session: &mut Connection) -> Result<(), String> {
        Ok(())
    }

    /// Set once the client carries out no more events. The last call of `attempt` ran no event then:
    /// it does not count.
    #[inline]
    fn stopped(&self) -> Option<ClientStop> {
        None
    }

    /// True if the statements are within BEGIN and COMMIT.
    fn is_transaction(&self) -> bool {
        false
    }
}

/// The reason for which a client stops before the end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientStop {
    /// It wants no more: the others go on, and it waits for them.
    Alone,
    /// All clients together have done as many as the step asks for: its window ends.
    Together,
}

/// The action after an error that does not end the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterError {
    /// The event begins again.
    Repeat,
    /// The event ends, and does not count.
    GiveUp,
    /// The step fails, although the dialect would try again.
    Fail,
}

/// The sum of the statements of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Statements of any kind.
    pub statements: u64,
    /// Statements that returned a result set.
    pub reads: u64,
    /// Statements that changed rows.
    pub writes: u64,
    /// Statements that are neither, including those of transactions.
    pub others: u64,
    /// Statements that could have changed a row and changed none.
    pub no_ops: u64,
    /// Rows returned.
    pub rows: u64,
    /// Rows changed.
    pub affected: u64,
    /// Bytes of the values returned.
    pub bytes: u64,
}

/// A failed statement.
pub struct StatementError {
    /// The kind of statement, `BEGIN` or `COMMIT`.
    pub kind: String,
    /// The error of the server, or of the connection.
    pub error: WireError,
}

impl Tally {
    /// Counts a reply as sysbench does: a result set is a read, a changed row a write, the rest
    /// other.
    #[inline]
    pub fn count(&mut self, reply: Reply) {
        self.statements += 1;
        self.rows += reply.rows;
        self.affected += reply.affected;
        self.bytes += reply.bytes;
        if reply.result_set {
            self.reads += 1;
        } else if reply.affected > 0 {
            self.writes += 1;
        } else {
            self.others += 1;
            self.no_ops += 1;
        }
    }

    /// Adds the sum of another event.
    #[inline]
    pub fn add(&mut self, more: &Tally) {
        self.statements += more.statements;
        self.reads += more.reads;
        self.writes += more.writes;
        self.others += more.others;
        self.no_ops += more.no_ops;
        self.rows += more.rows;
        self.affected += more.affected;
        self.bytes += more.bytes;
    }
}
