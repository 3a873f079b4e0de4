//! A connection to a Postgres server: requests and replies after the login.

use std::time::Duration;

use super::login;
use super::message::{self, ParameterForm};
use crate::postgres::message::{header, whole, words};
use crate::rows::{CollectRows, CountRows, Ids, KeepRows, RowSink};
use crate::socket::Channel;
use crate::{Prepared, Reply, RowTexts, TextRows, Value, ValueType, WireError};
use rqps_model::endpoint::{Address, ChannelBinding, Login, TlsMode};

/// Bytes of COPY data per write.
const COPY_BYTES: usize = 256 * 1024;

/// The code of a request to cancel.
const CANCEL_REQUEST: u32 = 80_877_102;

/// Most notices that a connection keeps.
const NOTICES_KEPT: usize = 20;

/// A connection.
pub struct PostgresClient {
    channel: Channel,
    /// The message being built; kept so that its memory is reused.
    output: Vec<u8>,
    statements: Vec<Statement>,
    connection_id: u32,
    cancel_key: Vec<u8>,
    server_version: String,
    escapes_backslash: bool,
    notices: Vec<String>,
    /// State in the last ReadyForQuery: `I` idle, `T` in a transaction, `E` in a failed one.
    transaction: u8,
    /// True if a text may hold only one statement.
    is_single: bool,
}

/// A prepared statement.
struct Statement {
    /// The Bind message up to the values.
    bind: Vec<u8>,
    forms: Vec<ParameterForm>,
    result_set: bool,
}

/// The protocol of a sent statement. It decides which messages follow a refused COPY.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sent {
    Simple,
    Extended,
}

impl PostgresClient {
    /// Connects and logs in. A refused login is [`WireError::Server`] with the SQLSTATE: `28P01`
    /// wrong password, `3D000` no such database, `57P03` still starting. `timeout` holds for the
    /// connection and each read of the login; afterwards reads wait without a limit.
    pub fn connect(
        address: &Address,
        login: &Login,
        timeout: Duration,
    ) -> Result<PostgresClient, WireError> {
        let (mode, binding) = match address {
            Address::Tcp { tls, .. } => (tls.mode, tls.binding),
            Address::Unix(_) => (TlsMode::Off, ChannelBinding::Prefer),
        };
        let channel = Channel::connect(address, timeout)?;
        if matches!(mode, TlsMode::Off | TlsMode::Allow) {
            let refused = match PostgresClient::log_in(channel, login, binding) {
                Err(error) if mode == TlsMode::Allow && error.may_want_encryption() => error,
                answer => return answer.map_err(|error| error.with_tls_hint(false)),
            };
            let channel = login::encrypt(Channel::connect(address, timeout)?, address)?;
            // The server may refuse because of TLS: it may have none, or require it.
            return if channel.is_encrypted() {
                PostgresClient::log_in(channel, login, binding)
            } else {
                Err(refused.with_tls_hint(false))
            };
        }
        let channel = login::encrypt(channel, address)?;
        let encrypted = channel.is_encrypted();
        PostgresClient::log_in(channel, login, binding)
            .map_err(|error| error.with_tls_hint(encrypted))
    }

    pub(crate) fn log_in(
        channel: Channel,
        login: &Login,
        binding: ChannelBinding,
    ) -> Result<PostgresClient, WireError> {
        let mut welcome = login::log_in(channel, login, binding)?;
        welcome.channel.logged_in()?;
        Ok(PostgresClient {
            connection_id: welcome.connection_id,
            cancel_key: welcome.cancel_key,
            server_version: welcome.server_version,
            escapes_backslash: welcome.escapes_backslash,
            ..PostgresClient::over(welcome.channel)
        })
    }

    /// A client whose login is over.
    pub(crate) fn over(channel: Channel) -> PostgresClient {
        PostgresClient {
            channel,
            output: Vec::with_capacity(4096),
            statements: Vec::new(),
            connection_id: 0,
            cancel_key: Vec::new(),
            server_version: String::new(),
            escapes_backslash: false,
            notices: Vec::new(),
            transaction: b'I',
            is_single: false,
        }
    }

    /// Calls `pause` before each request from now on.
    pub fn set_pause(&mut self, pause: Box<dyn FnMut() + Send>) {
        self.channel.set_pause(pause);
    }

    /// True if the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.channel.is_encrypted()
    }

    /// Process id of the server's backend for this connection.
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// Ends the statement that a session executes, by another connection: the session is known by
    /// the address, whether it was encrypted, its number and its key.
    ///
    /// # Errors
    /// The server does not answer.
    pub(crate) fn cancel(
        address: &Address,
        is_encrypted: bool,
        id: u32,
        key: &[u8],
        timeout: Duration,
    ) -> Result<(), WireError> {
        let mut channel = Channel::connect(address, timeout)?;
        if is_encrypted {
            channel = login::encrypt(channel, address)?;
        }
        let mut request = Vec::new();
        request.extend_from_slice(&(12 + key.len() as u32).to_be_bytes());
        request.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        request.extend_from_slice(&id.to_be_bytes());
        request.extend_from_slice(key);
        channel.send(&request)?;
        // The server closes the connection when it has sent the signal.
        channel.need(1).ok();
        Ok(())
    }

    /// The key for [`PostgresClient::cancel`].
    pub(crate) fn cancel_key(&self) -> &[u8] {
        &self.cancel_key
    }

    /// True if a backslash escapes the next character of a literal: the setting
    /// standard_conforming_strings is off, as the server told last.
    pub fn escapes_backslash(&self) -> bool {
        self.escapes_backslash
    }

    /// The server's parameter `server_version`: `17.2`, `15.14 (Debian 15.14-0+deb12u1)`.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// Time limit of each whole answer from now on; `None` means no limit. An answer that exceeds it
    /// breaks the connection.
    pub fn set_answer_limit(&mut self, limit: Option<Duration>) {
        self.channel.set_answer_limit(limit);
    }

    /// Time limit of a read; `None` means no limit. A read that exceeds it breaks the connection.
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) -> Result<(), WireError> {
        self.channel.set_read_timeout(timeout)
    }

    /// Prepares a statement with `$1` placeholders: integers are int8, text is varchar.
    pub fn prepare(&mut self, sql: &str, types: &[ValueType]) -> Result<Prepared, WireError> {
        let number = self.statements.len();
        self.output.clear();
        message::parse(&mut self.output, number, sql, types)
            .and_then(|()| message::describe(&mut self.output, number))?;
        message::sync(&mut self.output);
        self.channel.send(&self.output)?;
        let described = self.finish_prepare()?;
        if described.parameters.len() != types.len() {
            return Err(WireError::Protocol(format!(
                "the statement has {} placeholders, not {}: {sql}",
                described.parameters.len(),
                types.len()
            )));
        }
        let described_types = types.iter().zip(&described.parameters);
        let forms = described_types.map(|(declared, oid)| ParameterForm::of(*declared, *oid));
        let forms: Vec<ParameterForm> = forms.collect();
        self.statements.push(Statement {
            bind: message::bind_beginning(number, &forms),
            forms,
            result_set: described.result_set,
        });
        Ok(Prepared(number))
    }

    /// Runs a prepared statement: one write, and one read unless the reply is long. Integers and
    /// results are binary, as in sysbench's driver.
    #[inline]
    pub fn execute(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
    ) -> Result<Reply, WireError> {
        self.execute_with(statement, values, &mut CountRows)
    }

    /// Runs a prepared statement that returns one column of whole numbers, which replace the
    /// content of `ids`. Allocates nothing once `ids` has room.
    #[inline]
    pub fn execute_ids(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        ids: &mut Vec<u32>,
    ) -> Result<Reply, WireError> {
        ids.clear();
        self.execute_with(statement, values, &mut Ids { ids, number: message::single_number })
    }

    /// Runs a prepared statement; its rows, as text made by the server, replace those in `rows`.
    pub fn execute_rows(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError> {
        rows.clear();
        let result_set = self.bind(statement, values)?;
        message::ask_for_text(&mut self.output);
        self.channel.send(&self.output)?;
        let reply = Reply { result_set, ..Reply::default() };
        self.finish(Sent::Extended, reply, &mut KeepRows { rows, read: message::text_values })
    }

    /// Notices and warnings since the last call.
    pub fn take_notices(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notices)
    }

    #[inline]
    fn execute_with<S: RowSink>(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        sink: &mut S,
    ) -> Result<Reply, WireError> {
        let result_set = self.bind(statement, values)?;
        self.channel.send(&self.output)?;
        let reply = Reply { result_set, ..Reply::default() };
        self.finish(Sent::Extended, reply, sink)
    }

    /// Writes the execution of a statement into the output. True if it returns a result set.
    #[inline]
    fn bind(&mut self, statement: Prepared, values: &[Value<'_>]) -> Result<bool, WireError> {
        let Some(statement) = self.statements.get(statement.0) else {
            return Err(WireError::Protocol(format!(
                "the session has no prepared statement number {}",
                statement.0
            )));
        };
        self.output.clear();
        message::bind_and_execute(&mut self.output, &statement.bind, &statement.forms, values)?;
        Ok(statement.result_set)
    }

    /// From now on, the server refuses a text that holds several statements: text goes through the
    /// extended protocol, which knows no more than one.
    pub fn one_statement_each(&mut self) {
        self.is_single = true;
    }

    /// True in a transaction that failed.
    pub fn has_failed(&self) -> bool {
        self.transaction == b'E'
    }

    /// Runs text through the simple protocol. Semicolons may join several statements; the reply
    /// adds up their counts.
    pub fn simple(&mut self, sql: &str) -> Result<Reply, WireError> {
        let sent = self.query(sql)?;
        self.finish(sent, Reply::default(), &mut CountRows)
    }

    /// Runs text; its rows, as text, replace those in `rows`. Allocates nothing once `rows` has
    /// room.
    pub fn simple_rows(&mut self, sql: &str, rows: &mut RowTexts) -> Result<Reply, WireError> {
        rows.clear();
        let sent = self.query(sql)?;
        let mut sink = KeepRows { rows, read: message::text_values };
        self.finish(sent, Reply::default(), &mut sink)
    }

    /// Runs text and returns its rows as text. Allocates for every value: not for measured
    /// statements.
    pub fn rows(&mut self, sql: &str) -> Result<TextRows, WireError> {
        let mut rows = RowTexts::default();
        let sent = self.query(sql)?;
        let keep = KeepRows { rows: &mut rows, read: message::text_values };
        self.finish(sent, Reply::default(), &mut CollectRows(keep))?;
        Ok(rows.into_texts())
    }

    /// Runs `COPY … FROM STDIN` with rows from memory: `fill` appends rows in COPY's text form and
    /// returns false after the last. Returns the number of rows that the server loaded.
    pub fn copy_in(
        &mut self,
        sql: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, WireError> {
        let sent = self.ask(sql)?;
        // After an error, the server ignores everything up to a Sync: exactly one follows.
        if sent == Sent::Extended {
            message::flush(&mut self.output);
        }
        self.channel.send(&self.output)?;
        if !self.copy_begins()? {
            self.sync(sent)?;
            self.finish(sent, Reply::default(), &mut CountRows)?;
            return Err(WireError::Protocol(format!("not a COPY … FROM STDIN: {sql}")));
        }
        self.output.clear();
        let mut more = true;
        while more {
            let beginning = message::begin_copy_data(&mut self.output);
            more = fill(&mut self.output);
            message::end_copy_data(&mut self.output, beginning)?;
            if !more {
                message::copy_done(&mut self.output);
            }
            if !more || self.output.len() >= COPY_BYTES {
                self.channel.send(&self.output)?;
                self.output.clear();
                // Only an error makes the server send something now. It ignores the rows after an
                // error.
                more &= self.channel.spoken()? != Some(b'E');
            }
        }
        self.sync(sent)?;
        let reply = self.finish(sent, Reply::default(), &mut CountRows)?;
        Ok(reply.affected)
    }

    /// Sends text.
    fn query(&mut self, sql: &str) -> Result<Sent, WireError> {
        let sent = self.ask(sql)?;
        if sent == Sent::Extended {
            message::sync(&mut self.output);
        }
        self.channel.send(&self.output)?;
        Ok(sent)
    }

    /// Writes text into the output, for the extended protocol without a Sync.
    fn ask(&mut self, sql: &str) -> Result<Sent, WireError> {
        self.output.clear();
        if self.is_single {
            message::one_statement(&mut self.output, sql)?;
            return Ok(Sent::Extended);
        }
        message::query(&mut self.output, sql)?;
        Ok(Sent::Simple)
    }

    /// Sends the Sync that the extended protocol needs.
    fn sync(&mut self, sent: Sent) -> Result<(), WireError> {
        if sent == Sent::Simple {
            return Ok(());
        }
        self.output.clear();
        message::sync(&mut self.output);
        self.channel.send(&self.output)
    }

    /// Reads until the server is ready again. Returns an error of the statement only then, so that
    /// the connection stays in step.
    #[inline]
    fn finish<S: RowSink>(
        &mut self,
        sent: Sent,
        mut reply: Reply,
        sink: &mut S,
    ) -> Result<Reply, WireError> {
        let before = self.channel.consumed();
        let mut refused = None;
        loop {
            let (kind, length) = header(&mut self.channel)?;
            match kind {
                b'D' => {
                    reply.rows += 1;
                    if S::WANTS_ROWS && !sink.row(whole(&mut self.channel, kind, length)?) {
                        return Err(self
                            .channel
                            .confused("an invalid row, or more than 64 MB of rows"));
                    }
                }
                b'2' => {}
                b'C' => {
                    let affected = message::affected(whole(&mut self.channel, kind, length)?);
                    reply.affected = reply.affected.saturating_add(affected);
                }
                b'Z' => {
                    self.ready(length)?;
                    break;
                }
                _ => self.unusual(sent, kind, length, &mut reply, &mut refused)?,
            }
            self.channel.skip(message::HEADER + length)?;
        }
        reply.bytes = self.channel.consumed() - before;
        match refused {
            None => Ok(reply),
            Some(error) => Err(error),
        }
    }

    /// Reads the message that the server is ready again.
    #[inline]
    fn ready(&mut self, length: usize) -> Result<(), WireError> {
        self.channel.need(message::HEADER + length)?;
        if let Some(status) = self.channel.available().get(message::HEADER) {
            self.transaction = *status;
        }
        self.channel.consume(message::HEADER + length);
        Ok(())
    }

    /// Handles messages other than those of a point query.
    #[cold]
    fn unusual(
        &mut self,
        sent: Sent,
        kind: u8,
        length: usize,
        reply: &mut Reply,
        refused: &mut Option<WireError>,
    ) -> Result<(), WireError> {
        match kind {
            b'T' => reply.result_set = true,
            b'E' => {
                let error = message::ServerError::parse(words(&mut self.channel, kind, length)?);
                if error.is_fatal() {
                    return Err(self.channel.fault(error.into_io()));
                }
                // The first error is the cause.
                refused.get_or_insert(error.into_wire());
            }
            b'G' => {
                self.output.clear();
                let why = "the server expects rows, but rqps sends none";
                message::copy_fail(&mut self.output, why);
                if sent == Sent::Extended {
                    // The server ignored the first Sync while it waited for rows.
                    message::sync(&mut self.output);
                }
                self.channel.send(&self.output)?;
            }
            b'S' => {
                let told = message::escapes_backslash(words(&mut self.channel, kind, length)?);
                self.escapes_backslash = told.unwrap_or(self.escapes_backslash);
            }
            b'W' => {
                let what = "rqps does not support streaming replication";
                return Err(self.channel.confused(what));
            }
            b'N' => {
                let notice = message::ServerError::parse(words(&mut self.channel, kind, length)?)
                    .into_words();
                // A server that complains about every row must not fill the memory.
                if self.notices.len() < NOTICES_KEPT {
                    self.notices.push(notice);
                }
            }
            // Messages without a count: ParseComplete, CloseComplete, NoData, EmptyQuery,
            // PortalSuspended, notifications, COPY to the client.
            b'1' | b'3' | b'n' | b'I' | b's' | b't' | b'A' | b'H' | b'd' | b'c' => {}
            other => {
                let what = format!("unexpected message {:?}", char::from(other));
                return Err(self.channel.confused(what));
            }
        }
        Ok(())
    }

    fn finish_prepare(&mut self) -> Result<Described, WireError> {
        let mut described = Described::default();
        let mut refused = None;
        loop {
            let (kind, length) = header(&mut self.channel)?;
            match kind {
                b't' => {
                    described.parameters =
                        message::parameters(whole(&mut self.channel, kind, length)?)
                }
                b'T' => described.result_set = true,
                b'Z' => {
                    self.channel.skip(message::HEADER + length)?;
                    break;
                }
                _ => {
                    let mut ignored = Reply::default();
                    self.unusual(Sent::Extended, kind, length, &mut ignored, &mut refused)?;
                }
            }
            self.channel.skip(message::HEADER + length)?;
        }
        refused.map_or(Ok(described), Err)
    }

    /// True if the server now waits for rows. Leaves any other reply unread.
    fn copy_begins(&mut self) -> Result<bool, WireError> {
        loop {
            let (kind, length) = header(&mut self.channel)?;
            match kind {
                b'G' => {
                    self.channel.skip(message::HEADER + length)?;
                    return Ok(true);
                }
                b'1' | b'2' | b'n' | b'N' | b'S' | b'A' => {
                    self.channel.skip(message::HEADER + length)?;
                }
                _ => return Ok(false),
            }
        }
    }
}

/// The server's description of a prepared statement.
#[derive(Default)]
struct Described {
    parameters: Vec<u32>,
    result_set: bool,
}

mod text;
pub use text::TextCall;

#[cfg(test)]
mod tests;
