//! Text statements that keep the last row of each result.

use super::MysqlClient;
use crate::mysql::packet::{self, HEADER};
use crate::results::{LastRow, LastRows};
use crate::rows::RowSink;
use crate::{Reply, WireError};

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
