//! Everything that a script can call: connections, statements and random numbers of one state.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::random::{self, driver_name, may_miss, type_of, with_values};
use super::random::{Random, Unique};
use crate::driver::begins_again;
use rqps_driver::attempt::Tally;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::fake::Fake;
use rqps_embed::lua::{Binding, RandomDraw, Report, RowCells, ScriptHost, StatementEnd};
use rqps_host::confinement;
use rqps_model::dialect::Dialect;
use rqps_model::lua::LuaWork;
use rqps_wire::{Prepared, Reply, RowTexts, ValueType, WireError};

/// Longest statement of a bulk insert, bytes including the final zero.
const BULK_BYTES: usize = 512 << 10;

/// Most bytes that the scripts of one state may print.
const PRINTED: usize = 16 << 20;

/// MySQL's code for a statement that cannot be prepared.
const NOT_PREPARABLE: &str = "1295";

/// Number of error counters that a script may use.
const ERRORS: u32 = 4;

/// The calls available to a script, for one state.
pub(super) struct SqlHost {
    connector: Connector,
    dialect: Dialect,
    /// True if the script treats the DBMS as Postgres.
    is_postgres: bool,
    client: u32,
    slots: Vec<Slot>,
    /// The session of the client, unless a connection of the script has it.
    home: Option<Connection>,
    /// The script's connection with the client's session.
    home_slot: Option<usize>,
    /// Stands in for the client's session meanwhile.
    spare: Option<Connection>,
    statements: Vec<HostStatement>,
    random: Random,
    ignored: Vec<String>,
    plain: bool,
    /// Sum of the statements since the last look.
    pub(super) tally: Tally,
    /// Errors that the script counted since the last look.
    pub(super) own_errors: u64,
    /// Counter of changed rows during a load.
    pub(super) inserted: Option<Arc<AtomicU64>>,
    /// The last error of a server.
    pub(super) last: Option<WireError>,
    /// The destination of a script's output: the log of the driver process, never its protocol.
    log: Option<File>,
    printed: usize,
}

/// A connection of a script.
#[derive(Default)]
struct Slot {
    session: Option<Connection>,
    is_closed: bool,
    rows: RowTexts,
    next_row: usize,
    bulk: Vec<u8>,
    bulk_prefix: usize,
    bulk_rows: u64,
}

/// A statement of a script.
struct HostStatement {
    connection: u32,
    pieces: Vec<String>,
    types: Vec<ValueType>,
    handle: Option<Prepared>,
    /// True if it may change rows and find none.
    may_miss: bool,
    /// True if it is sent as text.
    plain: bool,
}

impl SqlHost {
    /// The host of client `client`.
    pub(super) fn new(
        connector: Connector,
        work: &LuaWork,
        (seed, client): (u64, u32),
        unique: Arc<Unique>,
    ) -> SqlHost {
        let dialect = connector.dialect();
        SqlHost {
            connector,
            dialect,
            is_postgres: driver_name(dialect, work) == "pgsql",
            client,
            slots: Vec::new(),
            home: None,
            home_slot: None,
            spare: Some(Connection::Fake(Box::new(Fake::new(0, 0, 1)))),
            statements: Vec::new(),
            random: Random::of_client(work.random, seed_of(seed), client, unique),
            ignored: work.ignored_errors.clone(),
            plain: work.plain_statements,
            tally: Tally::default(),
            own_errors: 0,
            inserted: None,
            last: None,
            log: confinement::log().ok(),
            printed: 0,
        }
    }

    /// Takes the client's session while the script runs.
    #[inline]
    pub(super) fn borrow(&mut self, session: &mut Connection) {
        let Some(spare) = self.spare.take() else { return };
        let session = std::mem::replace(session, spare);
        match self.home_slot {
            Some(slot) => self.slots[slot].session = Some(session),
            None => self.home = Some(session),
        }
    }

    /// Returns the client's session.
    #[inline]
    pub(super) fn give_back(&mut self, session: &mut Connection) {
        let own = match self.home_slot {
            Some(slot) => self.slots[slot].session.take(),
            None => self.home.take(),
        };
        if let Some(own) = own {
            self.spare = Some(std::mem::replace(session, own));
        }
    }

    /// sysbench draws a number between two events.
    #[inline]
    pub(super) fn event_ended(&mut self) {
        self.random.bits();
    }

    /// The connection with this number, if it is open.
    fn slot(&mut self, connection: u32, report: &mut Report) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(connection as usize);
        let open = slot.filter(|slot| slot.session.is_some() && !slot.is_closed);
        if open.is_none() {
            report.failed(0, "", "the connection is closed".to_owned());
        }
        open
    }

    #[inline]
    fn answered(
        &mut self,
        connection: u32,
        (answer, columns): (Result<Reply, WireError>, u32),
        may_miss: bool,
        report: &mut Report,
    ) -> StatementEnd {
        match answer {
            Ok(reply) => {
                self.tally.count(reply);
                if !may_miss && !reply.result_set && reply.affected == 0 {
                    // BEGIN, COMMIT and SET change no row and do not miss one.
                    self.tally.no_ops -= 1;
                }
                if let Some(inserted) = &self.inserted {
                    inserted.fetch_add(reply.affected, Ordering::Relaxed);
                }
                report.done(reply.result_set.then_some((reply.rows, columns)));
                StatementEnd::Done
            }
            Err(error) => self.refused(connection, error, report),
        }
    }

    #[cold]
    fn refused(&mut self, connection: u32, error: WireError, report: &mut Report) -> StatementEnd {
        let WireError::Server { code, message } = error else {
            // The connection is gone; the number is that of MySQL's client library.
            report.failed(2013, "HY000", error.to_string());
            return StatementEnd::Failed;
        };
        let session = self.slots[connection as usize].session.as_mut();
        let restarts = begins_again(self.dialect, &code, &self.ignored);
        let state = session.as_ref().and_then(|session| session.sql_state());
        let (number, state) = match state {
            Some(state) => (code.parse().unwrap_or_default(), state.to_owned()),
            None if self.dialect == Dialect::Postgres => (0, code.clone()),
            // SQLite has only error numbers; this is the state of an error without one.
            None => (code.parse().unwrap_or_default(), "HY000".to_owned()),
        };
        report.failed(number, &state, message.clone());
        self.last = Some(WireError::Server { code, message });
        if !restarts {
            return StatementEnd::Failed;
        }
        // Without a transaction, this is a harmless error.
        if let (Dialect::Postgres | Dialect::Sqlite, Some(session)) = (self.dialect, session)
            && let Err(error @ (WireError::Io { .. } | WireError::Protocol(_))) =
                session.simple("ROLLBACK")
        {
            report.failed(0, "", format!("failed to roll back: {error}"));
            return StatementEnd::Failed;
        }
        StatementEnd::Restart
    }

    /// Prepares a statement with known types, or leaves it as text if the server cannot prepare it.
    fn prepare_now(&mut self, number: usize, report: &mut Report) -> StatementEnd {
        let statement = &mut self.statements[number];
        let connection = statement.connection;
        let sql = random::prepared(&statement.pieces, self.dialect);
        let session = self.slots[connection as usize].session.as_mut();
        let Some(session) = session else { return StatementEnd::Failed };
        match session.prepare(&sql, &statement.types) {
            Ok(handle) => statement.handle = Some(handle),
            Err(error) if error.code() == Some(NOT_PREPARABLE) => statement.plain = true,
            Err(error) => return self.refused(connection, error, report),
        }
        StatementEnd::Done
    }

    fn send_bulk(&mut self, connection: u32, report: &mut Report) -> StatementEnd {
        let Some(slot) = self.slot(connection, report) else { return StatementEnd::Failed };
        let Some(session) = &mut slot.session else { return StatementEnd::Failed };
        let sql = String::from_utf8_lossy(&slot.bulk);
        let sent = session.simple(&sql);
        slot.bulk.truncate(slot.bulk_prefix);
        slot.bulk_rows = 0;
        self.answered(connection, (sent, 0), true, report)
    }
}

/// The seed as `--rand-seed` accepts it: 31 bits, and not 0, which would mean the time.
pub(super) fn seed_of(seed: u64) -> u32 {
    ((seed & 0x7fff_ffff) as u32).max(1)
}

impl ScriptHost for SqlHost {
    fn connect(&mut self, report: &mut Report) -> Option<u32> {
        let number = self.slots.len();
        let session = match self.home.take() {
            Some(home) => {
                self.home_slot = Some(number);
                home
            }
            None => match self.connector.open(self.client) {
                Ok(session) => session,
                Err(fault) => {
                    report.failed(0, "", fault);
                    return None;
                }
            },
        };
        self.slots.push(Slot { session: Some(session), ..Slot::default() });
        u32::try_from(number).ok()
    }

    fn disconnect(&mut self, connection: u32) {
        let Some(slot) = self.slots.get_mut(connection as usize) else { return };
        slot.is_closed = true;
        if self.home_slot != Some(connection as usize) {
            slot.session = None;
        }
    }

    fn reconnect(&mut self, connection: u32, report: &mut Report) -> StatementEnd {
        match self.connector.open(self.client) {
            Ok(session) => {
                if let Some(slot) = self.slots.get_mut(connection as usize) {
                    (slot.session, slot.is_closed) = (Some(session), false);
                }
                StatementEnd::Done
            }
            Err(fault) => {
                report.failed(2013, "HY000", fault);
                StatementEnd::Failed
            }
        }
    }

    fn query(&mut self, connection: u32, sql: &[u8], report: &mut Report) -> StatementEnd {
        let Some(slot) = self.slot(connection, report) else { return StatementEnd::Failed };
        let Ok(sql) = std::str::from_utf8(sql) else {
            report.failed(0, "", "the statement is not UTF-8".to_owned());
            return StatementEnd::Failed;
        };
        slot.next_row = 0;
        let Some(session) = &mut slot.session else { return StatementEnd::Failed };
        let answer = session.simple_rows(sql, &mut slot.rows);
        let columns = slot.rows.columns() as u32;
        self.answered(connection, (answer, columns), may_miss(sql), report)
    }

    fn prepare(&mut self, connection: u32, sql: &[u8], report: &mut Report) -> Option<u32> {
        self.slot(connection, report)?;
        let sql = String::from_utf8_lossy(sql);
        if self.is_postgres && !self.plain {
            // sysbench draws the name of the statement.
            self.random.bits();
            self.random.bits();
        }
        let pieces = random::pieces(&sql);
        let has_values = pieces.len() > 1;
        let number = self.statements.len();
        self.statements.push(HostStatement {
            connection,
            pieces,
            types: Vec::new(),
            handle: None,
            may_miss: may_miss(&sql),
            plain: self.plain,
        });
        if !self.plain && !has_values && self.prepare_now(number, report) != StatementEnd::Done {
            return None;
        }
        u32::try_from(number).ok()
    }

    fn bind<'a>(
        &mut self,
        statement: u32,
        values: impl ExactSizeIterator<Item = Binding<'a>>,
        report: &mut Report,
    ) -> StatementEnd {
        let Some(known) = self.statements.get_mut(statement as usize) else {
            return StatementEnd::Failed;
        };
        let types: Vec<ValueType> = values.map(type_of).collect();
        let wanted = known.pieces.len() - 1;
        if types.len() != wanted {
            let given = types.len();
            let what = format!("the statement has {wanted} placeholders, not {given}");
            report.failed(0, "", what);
            return StatementEnd::Failed;
        }
        if known.plain || (known.handle.is_some() && known.types == types) {
            return StatementEnd::Done;
        }
        known.types = types;
        self.prepare_now(statement as usize, report)
    }

    #[inline]
    fn execute<'a>(
        &mut self,
        statement: u32,
        values: impl ExactSizeIterator<Item = Binding<'a>>,
        keep: bool,
        report: &mut Report,
    ) -> StatementEnd {
        let Some(known) = self.statements.get(statement as usize) else {
            return StatementEnd::Failed;
        };
        let connection = known.connection;
        let slot = self.slots.get_mut(connection as usize).filter(|slot| !slot.is_closed);
        let Some(Slot { session: Some(session), rows, next_row, .. }) = slot else {
            report.failed(0, "", "the connection is closed".to_owned());
            return StatementEnd::Failed;
        };
        let answer = with_values(values, |bindings, values| match known.handle {
            Some(handle) if keep => session.execute_rows(handle, values, rows),
            Some(handle) => session.execute(handle, values),
            None if known.plain => {
                let backslash = session.escapes_backslash();
                let sql = random::plain(&known.pieces, bindings, backslash);
                if keep { session.simple_rows(&sql, rows) } else { session.simple(&sql) }
            }
            None => {
                let what = "bind_param() has not been called for the statement".to_owned();
                Err(WireError::Protocol(what))
            }
        });
        *next_row = 0;
        let columns = if keep { rows.columns() as u32 } else { 0 };
        let may_miss = known.may_miss;
        self.answered(connection, (answer, columns), may_miss, report)
    }

    fn close(&mut self, statement: u32) {
        if let Some(known) = self.statements.get_mut(statement as usize) {
            known.handle = None;
        }
    }

    fn fetch(&mut self, connection: u32, cells: &mut RowCells) -> bool {
        let Some(slot) = self.slots.get_mut(connection as usize) else { return false };
        let row = slot.rows.row(slot.next_row);
        slot.next_row += 1;
        let is_there = row.is_some();
        row.into_iter().flatten().for_each(|value| cells.push(value));
        is_there
    }

    fn bulk_begin(&mut self, connection: u32, prefix: &[u8]) -> bool {
        let Some(slot) = self.slots.get_mut(connection as usize) else { return false };
        slot.bulk.clear();
        slot.bulk.extend_from_slice(prefix);
        slot.bulk_prefix = slot.bulk.len();
        slot.bulk_rows = 0;
        true
    }

    fn bulk_row(&mut self, connection: u32, row: &[u8], report: &mut Report) -> StatementEnd {
        let Some(slot) = self.slots.get_mut(connection as usize) else {
            return StatementEnd::Failed;
        };
        let comma = usize::from(slot.bulk_rows > 0);
        if slot.bulk_rows > 0 && slot.bulk.len() + row.len() + comma + 1 > BULK_BYTES {
            let sent = self.send_bulk(connection, report);
            return match sent {
                StatementEnd::Done => self.bulk_row(connection, row, report),
                failed => failed,
            };
        }
        if comma > 0 {
            slot.bulk.push(b',');
        }
        slot.bulk.extend_from_slice(row);
        slot.bulk_rows += 1;
        StatementEnd::Done
    }

    fn bulk_end(&mut self, connection: u32, report: &mut Report) -> StatementEnd {
        match self.slots.get(connection as usize) {
            Some(slot) if slot.bulk_rows > 0 => self.send_bulk(connection, report),
            _ => StatementEnd::Done,
        }
    }

    #[inline]
    fn bits(&mut self) -> u64 {
        self.random.bits()
    }

    #[inline]
    fn fraction(&mut self) -> f64 {
        self.random.fraction()
    }

    #[inline]
    fn draw(&mut self, draw: RandomDraw, from: u32, to: u32) -> u32 {
        self.random.draw(draw, from, to)
    }

    fn unique(&mut self) -> u32 {
        self.random.unique()
    }

    #[inline]
    fn fill(&mut self, template: &[u8], output: &mut [u8]) {
        self.random.fill(template, output);
    }

    fn print(&mut self, text: &[u8]) {
        let left = PRINTED.saturating_sub(self.printed);
        self.printed += text.len();
        if let (Some(log), true) = (&mut self.log, left > 0) {
            // A failure to write a log must not end a measurement.
            let _ = log.write_all(&text[..text.len().min(left)]);
        }
    }

    fn sleep(&mut self, seconds: f64) {
        if let Ok(pause) = Duration::try_from_secs_f64(seconds) {
            thread::sleep(pause);
        }
    }

    fn count(&mut self, counter: u32, add: i64) {
        let add = u64::try_from(add).unwrap_or_default();
        if counter == ERRORS {
            self.own_errors += add;
        }
    }
}
