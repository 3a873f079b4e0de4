//! Loading tables of different shapes: parts of their rows at the same time, each part on one
//! connection and in order, by the fastest way that the dialect has.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use crate::domain::dialect::Bulk;
use crate::domain::run::CpuTime;
use crate::driver::Stop;
use crate::driver::connection::{Connection, Connector};
use crate::driver::csv_rows::copy_field;
use crate::driver::event::DriverEvent;
use crate::driver::link::LabLink;
use crate::driver::loaders::{COPY_BYTES, send_local, share_out};
use crate::driver::part::{FieldRow, OpenPart, PartRows};
use crate::driver::request::{DriverRequest, PartLoad, PartTable};
use crate::os::tree;
use crate::wire::{Value, ValueType, WireError};

/// Rows of one LOAD DATA, which is one transaction.
const ROWS_PER_LOAD: u64 = 50_000;

/// Rows of an INSERT where LOAD DATA is not allowed.
const ROWS_PER_INSERT: usize = 500;

/// What the loading threads share.
struct Shared {
    job: DriverRequest,
    task: PartLoad,
    open: OpenPart,
    connector: Connector,
    rows: AtomicU64,
    finished: AtomicUsize,
}

/// Carries out a loading job and says how it went.
pub fn load<W: Write>(
    job: &DriverRequest,
    task: &PartLoad,
    open: OpenPart,
    connector: Connector,
    link: &mut LabLink<W>,
) -> Result<(), Stop> {
    if job.dialect.is_scripted() {
        let client_cpu = CpuTime::default();
        let (rows, load_seconds, index_seconds) = (task.rows, 0.0, 0.0);
        link.say(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
        return Ok(());
    }
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    let mut session = connector.open(0)?;
    for sql in &task.setup {
        let made = connector.make(&mut session, sql);
        made.map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
    }
    drop(session);
    let shared = Arc::new(Shared {
        job: job.clone(),
        task: task.clone(),
        open,
        connector,
        rows: AtomicU64::new(0),
        finished: AtomicUsize::new(0),
    });
    let threads = match (job.counted_events, job.dialect.spec().bulk) {
        // Where streams meet, pages are filled otherwise each time; SQLite has one writer.
        (Some(_), _) | (None, Bulk::Rows) => 1,
        (None, Bulk::Copy | Bulk::LoadData) => task.parallel,
    };
    let connector = &shared.connector;
    let progress = || shared.progress();
    let parts = (task.parts as usize, threads);
    share_out(parts, connector, &shared, Shared::fill, &progress, link)?;
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    let lists = (task.finish.len(), threads);
    share_out(lists, connector, &shared, Shared::finish, &progress, link)?;
    let index_seconds = begun.elapsed().as_secs_f64();
    let rows = shared.rows.load(Ordering::Relaxed);
    let client_cpu = tree::own_cpu().since(cpu);
    link.say(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

impl Shared {
    fn progress(&self) -> DriverEvent {
        match self.finished.load(Ordering::Relaxed) {
            0 => {
                DriverEvent::Loading { rows: self.rows.load(Ordering::Relaxed), of: self.task.rows }
            }
            done => DriverEvent::Indexing { done: done as u32, of: self.task.finish.len() as u32 },
        }
    }

    /// Fills the rows of a part into all tables.
    fn fill(&self, part: usize, session: &mut Connection) -> Result<(), String> {
        for (index, table) in self.task.tables.iter().enumerate() {
            let fault = |error: WireError| format!("failed to fill {}: {error}", table.name);
            let Some(rows) = (self.open)(&self.job, &self.task, part as u32, index)? else {
                continue;
            };
            let mut stream = RowStream::new(rows);
            match self.job.dialect.spec().bulk {
                Bulk::Copy => self.copy(table, &mut stream, session).map_err(fault)?,
                Bulk::LoadData => self.load_data(table, &mut stream, session).map_err(fault)?,
                Bulk::Rows => self.insert_each(table, &mut stream, session).map_err(fault)?,
            }
        }
        Ok(())
    }

    fn finish(&self, list: usize, session: &mut Connection) -> Result<(), String> {
        for sql in &self.task.finish[list] {
            let made = session.rows(sql);
            made.map_err(|error| format!("failed to execute {sql:?}: {error}"))?;
        }
        self.finished.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn copy(
        &self,
        table: &PartTable,
        stream: &mut RowStream,
        session: &mut Connection,
    ) -> Result<(), WireError> {
        let sql = format!("COPY {} ({}) FROM STDIN", table.name, table.columns.join(", "));
        session.copy_in(&sql, &mut |out| {
            let (taken, more) = stream.lines(out, u64::MAX);
            self.rows.fetch_add(taken, Ordering::Relaxed);
            more
        })?;
        Ok(())
    }

    /// LOAD DATA LOCAL with rows from memory, or INSERTs if the server is not for it.
    fn load_data(
        &self,
        table: &PartTable,
        stream: &mut RowStream,
        session: &mut Connection,
    ) -> Result<(), WireError> {
        let sql = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {} CHARACTER SET latin1 ({})",
            table.name,
            table.columns.join(", ")
        );
        while stream.is_more() {
            let mut sent = 0;
            let loaded = send_local(&sql, session, &mut |out| {
                let (taken, more) = stream.lines(out, ROWS_PER_LOAD - sent);
                sent += taken;
                (taken, more && sent < ROWS_PER_LOAD)
            })?;
            let Some(sent) = loaded else { return self.insert_many(table, stream, session) };
            self.rows.fetch_add(sent, Ordering::Relaxed);
        }
        Ok(())
    }

    /// INSERTs of many rows with literals, in one transaction for each 50000 rows.
    fn insert_many(
        &self,
        table: &PartTable,
        stream: &mut RowStream,
        session: &mut Connection,
    ) -> Result<(), WireError> {
        let columns = table.columns.join(", ");
        session.simple("BEGIN")?;
        let mut in_transaction = 0;
        while stream.is_more() {
            let mut sql = format!("INSERT INTO {} ({columns}) VALUES ", table.name);
            let mut count = 0;
            while count < ROWS_PER_INSERT
                && let Some(row) = stream.row()
            {
                sql.push_str(if count > 0 { ",(" } else { "(" });
                spell(&mut sql, row, session.escapes_backslash());
                sql.push(')');
                count += 1;
            }
            session.simple(&sql)?;
            self.rows.fetch_add(count as u64, Ordering::Relaxed);
            in_transaction += count as u64;
            if in_transaction >= ROWS_PER_LOAD {
                session.simple("COMMIT")?;
                session.simple("BEGIN")?;
                in_transaction = 0;
            }
        }
        session.simple("COMMIT").map(|_| ())
    }

    /// One transaction and one prepared statement: the fastest way into SQLite.
    fn insert_each(
        &self,
        table: &PartTable,
        stream: &mut RowStream,
        session: &mut Connection,
    ) -> Result<(), WireError> {
        let marks = vec!["?"; table.columns.len()].join(", ");
        let columns = table.columns.join(", ");
        session.simple("BEGIN")?;
        let sql = format!("INSERT INTO {} ({columns}) VALUES ({marks})", table.name);
        let types = vec![ValueType::AnyText; table.columns.len()];
        let insert = session.prepare(&sql, &types)?;
        while let Some(row) = stream.row() {
            let value = |field: Option<_>| field.map_or(Value::Null, Value::Text);
            let values: Vec<Value<'_>> = row.fields().map(value).collect();
            session.execute(insert, &values)?;
            self.rows.fetch_add(1, Ordering::Relaxed);
        }
        session.simple("COMMIT").map(|_| ())
    }
}

/// The values of a row as literals. Numbers stand in quotes, too.
fn spell(sql: &mut String, row: &FieldRow, backslash: bool) {
    for (index, field) in row.fields().enumerate() {
        if index > 0 {
            sql.push(',');
        }
        let Some(field) = field else {
            sql.push_str("NULL");
            continue;
        };
        sql.push('\'');
        for letter in String::from_utf8_lossy(field).chars() {
            if letter == '\'' || (backslash && letter == '\\') {
                sql.push(letter);
            }
            sql.push(letter);
        }
        sql.push('\'');
    }
}

/// Rows one after the other, with one that was looked at before it is taken.
struct RowStream {
    rows: Box<dyn PartRows>,
    row: FieldRow,
    /// True if `row` is the next one, false if it must be made.
    is_made: bool,
    is_over: bool,
}

impl RowStream {
    fn new(rows: Box<dyn PartRows>) -> RowStream {
        RowStream { rows, row: FieldRow::default(), is_made: false, is_over: false }
    }

    /// True if a row is left.
    fn is_more(&mut self) -> bool {
        if !self.is_made && !self.is_over {
            self.row.clear();
            self.is_made = self.rows.next(&mut self.row);
            self.is_over = !self.is_made;
        }
        self.is_made
    }

    /// The next row.
    fn row(&mut self) -> Option<&FieldRow> {
        let is_there = self.is_more();
        self.is_made = false;
        is_there.then_some(&self.row)
    }

    /// Appends lines in COPY's text form: some 64 KB, `most` at most. Returns their number, and
    /// whether rows are left.
    fn lines(&mut self, out: &mut Vec<u8>, most: u64) -> (u64, bool) {
        let (full, mut count) = (out.len() + COPY_BYTES, 0);
        while out.len() < full
            && count < most
            && let Some(row) = self.row()
        {
            for (index, field) in row.fields().enumerate() {
                if index > 0 {
                    out.push(b'\t');
                }
                copy_field(out, field);
            }
            out.push(b'\n');
            count += 1;
        }
        (count, self.is_more())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three rows: a number, a text that needs escapes, and every second one a NULL.
    struct Three(u64);

    impl PartRows for Three {
        fn next(&mut self, row: &mut FieldRow) -> bool {
            if self.0 == 3 {
                return false;
            }
            row.number(self.0 * 10);
            row.text(b"a\\'b\tc");
            match self.0 % 2 {
                0 => row.null(),
                _ => row.written(|out| out.extend_from_slice(b"x")),
            }
            self.0 += 1;
            true
        }
    }

    #[test]
    fn lines_are_cut_at_the_number_of_rows_and_lose_none() {
        let mut stream = RowStream::new(Box::new(Three(0)));
        let mut out = Vec::new();
        assert_eq!(stream.lines(&mut out, 2), (2, true));
        assert_eq!(stream.lines(&mut out, 2), (1, false));
        let text = String::from_utf8(out).unwrap();
        let want = "0\ta\\\\'b\\tc\t\\N\n10\ta\\\\'b\\tc\tx\n20\ta\\\\'b\\tc\t\\N\n";
        assert_eq!(text, want);
    }

    #[test]
    fn literals_are_quoted_for_the_dialect() {
        let mut stream = RowStream::new(Box::new(Three(0)));
        let mut sql = String::new();
        spell(&mut sql, stream.row().unwrap(), true);
        assert_eq!(sql, "'0','a\\\\''b\tc',NULL");
        assert!(stream.is_more() && stream.is_more());
        let rest = std::iter::from_fn(|| stream.row().map(|row| row.fields().count()));
        assert_eq!(rest.collect::<Vec<_>>(), [3, 3]);
    }
}
