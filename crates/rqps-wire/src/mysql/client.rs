//! A connection to a MySQL server: requests and replies after the login.

#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::mysql::login;
use crate::mysql::packet::{self, ColumnType, HEADER, LONGEST};
use crate::rows::{CollectRows, CountRows, Ids, KeepRows, LastRow, LastRows, RowSink};
use crate::socket::Channel;
use crate::{Prepared, Reply, RowTexts, TextRows, Value, ValueType, WireError};
use rqps_model::endpoint::{Address, Login};

const SERVER_STATUS_IN_TRANS: u16 = 0x0001;
const SERVER_MORE_RESULTS_EXISTS: u16 = 0x0008;
const SERVER_STATUS_NO_BACKSLASH_ESCAPES: u16 = 0x0200;

/// Errors that end the connection: shutdown, killed, killed (MariaDB), idle too long, forced to
/// close.
const FAREWELLS: [u16; 5] = [1053, 3169, 1927, 4031, 1080];

/// Errors of a server that refuses local files: `local_infile` is off in MySQL 5 and MariaDB, in
/// MySQL 8, in later MariaDB.
pub const LOCAL_REFUSED: [&str; 3] = ["1148", "3948", "4166"];

/// A connection.
pub struct MysqlClient {
    channel: Channel,
    /// The packet being built; kept so that its memory is reused.
    output: Vec<u8>,
    statements: Vec<Statement>,
    connection_id: u32,
    server_version: String,
    /// SQLSTATE of the last error.
    sql_state: String,
    /// Warnings of the last statement, and the server's status flags after it.
    warnings: u16,
    status: u16,
    /// True if an OK packet ends result sets and nothing ends columns (MySQL 5.7, MariaDB 10.2 and
    /// later); false if an EOF packet ends both.
    deprecate_eof: bool,
}

/// A prepared statement.
struct Statement {
    /// COM_STMT_EXECUTE up to the values, twice: the first execution sends the types, the others do
    /// not.
    first: Vec<u8>,
    later: Vec<u8>,
    types: Vec<ValueType>,
    /// True once the server knows the types.
    bound: bool,
}

impl MysqlClient {
    /// Connects and logs in. A refused login is [`WireError::Server`] with the error number: `1045`
    /// wrong password, `1049` no such database, `1040` too many connections. `timeout` holds for
    /// the connection and each read of the login; afterwards reads wait without a limit.
    pub fn connect(
        address: &Address,
        login: &Login,
        timeout: Duration,
    ) -> Result<MysqlClient, WireError> {
        MysqlClient::log_in(Channel::connect(address, timeout)?, Some(address), login)
    }

    pub(crate) fn log_in(
        channel: Channel,
        address: Option<&Address>,
        login: &Login,
    ) -> Result<MysqlClient, WireError> {
        let welcome = login::log_in(channel, address, login)?;
        Ok(MysqlClient {
            connection_id: welcome.connection_id,
            server_version: welcome.server_version,
            ..MysqlClient::over(welcome.channel, welcome.deprecate_eof)
        })
    }

    /// A client whose login is over.
    pub(crate) fn over(channel: Channel, deprecate_eof: bool) -> MysqlClient {
        MysqlClient {
            channel,
            output: Vec::with_capacity(4096),
            statements: Vec::new(),
            connection_id: 0,
            server_version: String::new(),
            sql_state: String::new(),
            warnings: 0,
            status: 0,
            deprecate_eof,
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

    /// The server's number of this connection.
    pub fn connection_id(&self) -> u32 {
        self.connection_id
    }

    /// The version that the server reports: `8.0.33`, `10.11.5-MariaDB`. Without the `5.5.5-` that
    /// MariaDB puts before it for old replicas.
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// SQLSTATE of the last error; empty before the first error.
    pub fn sql_state(&self) -> &str {
        &self.sql_state
    }

    /// True inside a transaction.
    pub fn is_in_transaction(&self) -> bool {
        self.status & SERVER_STATUS_IN_TRANS != 0
    }

    /// True if a backslash escapes the next character of a literal, as of the last statement: the
    /// SQL mode NO_BACKSLASH_ESCAPES ends that.
    pub fn escapes_backslash(&self) -> bool {
        self.status & SERVER_STATUS_NO_BACKSLASH_ESCAPES == 0
    }

    /// Number of warnings of the last statement.
    pub fn warnings(&self) -> u16 {
        self.warnings
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

    /// Prepares a statement with `?` placeholders: integers are BIGINT, text is VARCHAR.
    pub fn prepare(&mut self, sql: &str, types: &[ValueType]) -> Result<Prepared, WireError> {
        self.command(packet::COM_STMT_PREPARE, sql.as_bytes())?;
        let length = self.header()?;
        if self.channel.available()[HEADER] == packet::ERR {
            return Err(self.refused(length));
        }
        let Some(described) = packet::prepared(self.whole(length)?) else {
            return Err(self.channel.confused("invalid answer to a prepare"));
        };
        self.channel.skip(HEADER + length)?;
        for definitions in [described.parameters, described.columns] {
            self.skip_definitions(u64::from(definitions))?;
        }
        if usize::from(described.parameters) != types.len() {
            return Err(WireError::Protocol(format!(
                "the statement has {} placeholders, not {}: {sql}",
                described.parameters,
                types.len()
            )));
        }
        self.statements.push(Statement {
            first: packet::execute_beginning(described.statement, types, true),
            later: packet::execute_beginning(described.statement, types, false),
            types: types.to_vec(),
            bound: types.is_empty(),
        });
        Ok(Prepared(self.statements.len() - 1))
    }

    /// Runs a prepared statement: one write, and one read unless the reply is long. Results are
    /// binary.
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
        self.execute_with(statement, values, &mut Ids { ids, number: packet::single_number })
    }

    /// Runs a prepared statement; its rows, as text, replace those in `rows`.
    pub fn execute_rows(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        rows: &mut RowTexts,
    ) -> Result<Reply, WireError> {
        rows.clear();
        self.execute_with(statement, values, &mut BinaryRows { rows, columns: Vec::new() })
    }

    #[inline]
    fn execute_with<S: RowSink>(
        &mut self,
        statement: Prepared,
        values: &[Value<'_>],
        sink: &mut S,
    ) -> Result<Reply, WireError> {
        let number = statement.0;
        let Some(statement) = self.statements.get_mut(number) else {
            return Err(WireError::Protocol(format!(
                "the session has no prepared statement number {number}"
            )));
        };
        let bound = statement.bound;
        let beginning = if bound { &statement.later } else { &statement.first };
        self.output.clear();
        packet::execute(&mut self.output, beginning, &statement.types, values)?;
        self.channel.send(&self.output)?;
        let reply = self.finish(sink)?;
        if !bound {
            // A reply proves that the server has the types.
            self.statements[number].bound = true;
        }
        Ok(reply)
    }

    /// Runs text (COM_QUERY). Semicolons may join several statements; the reply adds up their
    /// counts.
    pub fn simple(&mut self, sql: &str) -> Result<Reply, WireError> {
        self.simple_bytes(sql.as_bytes())
    }

    /// Runs text whose literals may be arbitrary bytes, as in dumps.
    pub fn simple_bytes(&mut self, sql: &[u8]) -> Result<Reply, WireError> {
        self.command(packet::COM_QUERY, sql)?;
        self.finish(&mut CountRows)
    }

    /// Runs text; its rows, as text, replace those in `rows`. Allocates nothing once `rows` has
    /// room.
    pub fn simple_rows(&mut self, sql: &str, rows: &mut RowTexts) -> Result<Reply, WireError> {
        rows.clear();
        self.command(packet::COM_QUERY, sql.as_bytes())?;
        self.finish(&mut KeepRows { rows, read: packet::text_values })
    }

    /// Runs text and returns its rows as text. Allocates for every value: not for measured
    /// statements.
    pub fn rows(&mut self, sql: &str) -> Result<TextRows, WireError> {
        let mut rows = RowTexts::default();
        self.command(packet::COM_QUERY, sql.as_bytes())?;
        let keep = KeepRows { rows: &mut rows, read: packet::text_values };
        self.finish(&mut CollectRows(keep))?;
        Ok(rows.into_texts())
    }

    /// Runs `LOAD DATA LOCAL INFILE …` with rows from memory: `fill` appends up to about 100 KB at
    /// a time and returns false after the last. The file name in the statement has no meaning.
    /// Returns the number of rows that the server loaded.
    ///
    /// A server that does not allow it refuses before the first call of `fill`, with
    /// [`WireError::Server`] and a code of [`LOCAL_REFUSED`].
    pub fn load_local(
        &mut self,
        sql: &str,
        fill: &mut dyn FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<u64, WireError> {
        self.command(packet::COM_QUERY, sql.as_bytes())?;
        let length = self.header()?;
        if self.channel.available()[HEADER] != packet::LOCAL_INFILE {
            self.finish(&mut CountRows)?;
            let what = format!("not a LOAD DATA LOCAL INFILE: {sql}");
            return Err(WireError::Protocol(what));
        }
        // The server's packet has number 1; the packets of the file follow it.
        let mut sequence = 2u8;
        self.channel.skip(HEADER + length)?;
        let mut more = true;
        while more {
            packet::begin_file_part(&mut self.output);
            more = fill(&mut self.output);
            packet::end_file_part(&mut self.output, sequence)
                .map_err(|what| self.channel.confused(what))?;
            if !self.output.is_empty() {
                self.channel.send(&self.output)?;
                sequence = sequence.wrapping_add(1);
            }
        }
        self.channel.send(&packet::end_of_file(sequence))?;
        Ok(self.finish(&mut CountRows)?.affected)
    }

    /// From now on, the server refuses a text that holds several statements.
    pub fn one_statement_each(&mut self) -> Result<(), WireError> {
        /// MYSQL_OPTION_MULTI_STATEMENTS_OFF.
        const OFF: [u8; 2] = [1, 0];
        self.command(packet::COM_SET_OPTION, &OFF)?;
        let length = self.header()?;
        match self.channel.available()[HEADER] {
            packet::EOF | packet::OK => self.channel.skip(HEADER + length),
            packet::ERR => Err(self.refused(length)),
            _ => Err(self.channel.confused("invalid answer to an option")),
        }
    }

    fn command(&mut self, command: u8, argument: &[u8]) -> Result<(), WireError> {
        self.output.clear();
        packet::command(&mut self.output, command, argument);
        self.channel.send(&self.output)
    }

    /// Waits for the header of the next packet and the first byte of its body; returns the body's
    /// length.
    #[inline]
    fn header(&mut self) -> Result<usize, WireError> {
        self.channel.need(HEADER + 1)?;
        match packet::body_length(self.channel.available()) {
            0 => Err(self.channel.confused("got an empty packet; is that a MySQL server?")),
            length => Ok(length),
        }
    }

    /// Waits for a whole packet, whose header was just read.
    #[inline]
    fn whole(&mut self, length: usize) -> Result<&[u8], WireError> {
        self.channel.need(HEADER + length)?;
        Ok(&self.channel.available()[HEADER..HEADER + length])
    }

    /// Consumes an error packet.
    #[cold]
    fn refused(&mut self, length: usize) -> WireError {
        let error = match self.whole(length) {
            Ok(body) => packet::ServerError::parse(body),
            Err(error) => return error,
        };
        self.sql_state.clone_from(&error.state);
        self.channel.consume(HEADER + length);
        if FAREWELLS.contains(&error.number) {
            return self.channel.fault(error.into_io());
        }
        error.into_wire()
    }

    /// Reads the whole reply to a statement.
    #[inline]
    fn finish<S: RowSink>(&mut self, sink: &mut S) -> Result<Reply, WireError> {
        let before = self.channel.consumed();
        let mut reply = Reply::default();
        while self.result(&mut reply, sink)? {}
        reply.bytes = self.channel.consumed() - before;
        Ok(reply)
    }

    /// Reads one result; true if another follows.
    #[inline]
    fn result<S: RowSink>(&mut self, reply: &mut Reply, sink: &mut S) -> Result<bool, WireError> {
        let length = self.header()?;
        match self.channel.available()[HEADER] {
            packet::OK => {
                let ended = packet::Ended::by_ok(self.whole(length)?);
                self.ended(ended, length, reply)
            }
            packet::ERR => Err(self.refused(length)),
            packet::LOCAL_INFILE => self.no_local_file(length),
            _ => {
                let Some(columns) = packet::column_count(self.whole(length)?) else {
                    return Err(self.channel.confused("a result without a number of columns"));
                };
                self.channel.consume(HEADER + length);
                reply.result_set = true;
                if S::WANTS_COLUMNS {
                    self.read_definitions(columns, sink)?
                } else {
                    self.skip_definitions(columns)?
                }
                self.result_rows(reply, sink)
            }
        }
    }

    /// The server asks for a file of this host. The client sends an empty one, and the server
    /// continues.
    #[cold]
    fn no_local_file(&mut self, length: usize) -> Result<bool, WireError> {
        self.channel.skip(HEADER + length)?;
        self.channel.send(&[0, 0, 0, 2])?;
        Ok(true)
    }

    #[inline]
    fn ended(
        &mut self,
        ended: Option<packet::Ended>,
        length: usize,
        reply: &mut Reply,
    ) -> Result<bool, WireError> {
        let Some(ended) = ended else {
            return Err(self.channel.confused("invalid end of a result"));
        };
        self.channel.consume(HEADER + length);
        reply.affected = reply.affected.saturating_add(ended.affected);
        (self.warnings, self.status) = (ended.warnings, ended.status);
        Ok(ended.status & SERVER_MORE_RESULTS_EXISTS != 0)
    }

    #[inline]
    fn result_rows<S: RowSink>(
        &mut self,
        reply: &mut Reply,
        sink: &mut S,
    ) -> Result<bool, WireError> {
        // True while the next packet continues a row of 16 MB or more.
        let mut within_row = false;
        loop {
            if within_row {
                // The last part of a long row may be empty.
                self.channel.need(HEADER)?;
                let length = packet::body_length(self.channel.available());
                self.channel.skip(HEADER + length)?;
                within_row = length == LONGEST;
                continue;
            }
            let length = self.header()?;
            match self.channel.available()[HEADER] {
                packet::EOF if length < 9 && !self.deprecate_eof => {
                    let ended = packet::Ended::by_eof(self.whole(length)?);
                    return self.ended(ended, length, reply);
                }
                packet::EOF if length < LONGEST && self.deprecate_eof => {
                    let ended = packet::Ended::by_ok(self.whole(length)?);
                    return self.ended(ended, length, reply);
                }
                packet::ERR => return Err(self.refused(length)),
                _ => {}
            }
            reply.rows += 1;
            within_row = length == LONGEST;
            if S::WANTS_ROWS {
                if within_row {
                    let what = "rqps can only count rows of 16 MB or more, not read them";
                    return Err(self.channel.confused(what));
                }
                if !sink.row(self.whole(length)?) {
                    return Err(self
                        .channel
                        .confused("an invalid row, or more than 64 MB of rows"));
                }
            }
            self.channel.skip(HEADER + length)?;
        }
    }

    /// Passes the column definitions to `sink`.
    fn read_definitions<S: RowSink>(&mut self, count: u64, sink: &mut S) -> Result<(), WireError> {
        for index in 0..count {
            let length = self.header()?;
            if !sink.column(self.whole(length)?, index == 0) {
                return Err(self.channel.confused("invalid definition of a column"));
            }
            self.channel.skip(HEADER + length)?;
        }
        self.end_definitions()
    }

    /// Skips the definitions of columns or parameters, and the packet that ends them.
    #[inline]
    fn skip_definitions(&mut self, count: u64) -> Result<(), WireError> {
        if count == 0 {
            return Ok(());
        }
        for _ in 0..count {
            let length = self.header()?;
            self.channel.skip(HEADER + length)?;
        }
        self.end_definitions()
    }

    /// Skips the packet that ends definitions, if the server sends one.
    #[inline]
    fn end_definitions(&mut self) -> Result<(), WireError> {
        if !self.deprecate_eof {
            let length = self.header()?;
            if self.channel.available()[HEADER] != packet::EOF {
                return Err(self.channel.confused("column definitions without end"));
            }
            self.channel.skip(HEADER + length)?;
        }
        Ok(())
    }
}

/// Keeps binary rows as text.
struct BinaryRows<'a> {
    rows: &'a mut RowTexts,
    columns: Vec<ColumnType>,
}

impl RowSink for BinaryRows<'_> {
    const WANTS_ROWS: bool = true;
    const WANTS_COLUMNS: bool = true;

    fn column(&mut self, body: &[u8], first: bool) -> bool {
        if first {
            self.columns.clear();
        }
        let column = packet::column_type(body);
        self.columns.extend(column);
        column.is_some()
    }

    fn row(&mut self, body: &[u8]) -> bool {
        packet::binary_row(body, &self.columns, self.rows).is_some()
    }
}

// Text statements that keep the last row of each result.

impl MysqlClient {
    /// Runs text (COM_QUERY) and keeps the last row of each of its results.
    pub fn simple_results(
        &mut self,
        sql: &str,
        results: &mut LastRows,
    ) -> Result<Reply, WireError> {
        results.clear();
        self.command(packet::COM_QUERY, sql.as_bytes())?;
        let before = self.channel.consumed();
        let mut reply = Reply::default();
        while self.kept_result(&mut reply, results.begin())? {}
        reply.bytes = self.channel.consumed() - before;
        Ok(reply)
    }

    /// Reads one result; true if another follows.
    fn kept_result(&mut self, reply: &mut Reply, result: &mut LastRow) -> Result<bool, WireError> {
        let length = self.header()?;
        let first = self.channel.available()[HEADER];
        if matches!(first, packet::OK | packet::ERR | packet::LOCAL_INFILE) {
            return self.result(reply, &mut LastOfResult { result });
        }
        let Some(columns) = packet::column_count(self.whole(length)?) else {
            return Err(self.channel.confused("a result without a number of columns"));
        };
        self.channel.consume(HEADER + length);
        reply.result_set = true;
        for _ in 0..columns {
            let length = self.header()?;
            match packet::column_name(self.whole(length)?) {
                Some(name) => result.column(name),
                None => return Err(self.channel.confused("invalid definition of a column")),
            }
            self.channel.skip(HEADER + length)?;
        }
        result.end_columns();
        self.end_definitions()?;
        self.result_rows(reply, &mut LastOfResult { result })
    }
}

/// Keeps the last row of one result.
struct LastOfResult<'a> {
    result: &'a mut LastRow,
}

impl RowSink for LastOfResult<'_> {
    const WANTS_ROWS: bool = true;

    fn row(&mut self, body: &[u8]) -> bool {
        packet::text_values(body, self.result.next_row()).is_some()
    }
}
