//! Loads generated tables: tables in parallel, rows in the order of their ids, then indexes.
//!
//! The data must be as if one client had inserted it in order. Postgres keeps rows where they
//! arrive, and its plans depend on how well that follows the ids, so one stream fills one table.
//! InnoDB sorts by primary key, so several streams may fill one table.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use crate::Stop;
use crate::connection::{Connection, Connector};
use crate::control_channel::{ControlChannel, DriverEvent};
use crate::loaders::{COPY_BYTES, send_local, share_out};
use crate::part::{LoadRow, LoadRows, OpenRows};
use crate::request::{DriverRequest, LoadRequest, LoadType};
use crate::row_stream::LoadColumns;
use rqps_host::{affinity, tree};
use rqps_model::dialect::{Bulk, Dialect};
use rqps_model::endpoint::Endpoint;
use rqps_model::run::CpuTime;
use rqps_wire::{Prepared, Value, WireError};

/// Rows per INSERT: about 200 KB, less than max_allowed_packet of every server.
const ROWS_PER_INSERT: u64 = 1000;

/// INSERTs per transaction: about 10 MB, so that commits cost little and a rollback ends soon.
const INSERTS_PER_COMMIT: u32 = 50;

/// Rows per LOAD DATA, which is one transaction: as many as of the INSERTs.
const ROWS_PER_LOAD: u64 = ROWS_PER_INSERT * INSERTS_PER_COMMIT as u64;

/// CPU time of the driver per row of the fake DBMS, microseconds.
const FAKE_ROW_US: f64 = 0.1;

/// Rows between two progress reports of the SQLite loader.
const REPORT_ROWS: u64 = 10_000;

/// Shared by the loading threads.
struct Shared {
    request: DriverRequest,
    task: LoadRequest,
    rows: OpenRows,
    columns: LoadColumns,
    connector: Connector,
    rows_done: AtomicU64,
    indexes_done: AtomicU32,
}

/// A unit of work for one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoadPart {
    /// Drop and create a table.
    Create { table: u32 },
    /// Load the rows first..=last.
    Fill { table: u32, first: u64, last: u64 },
    /// Make the indexes of a table.
    Index { table: u32 },
}

/// Rows first..=last of the table `name`.
struct RowRange<'a> {
    name: &'a str,
    rows: &'a dyn LoadRows,
    first: u64,
    last: u64,
}

/// Carries out a load and sends its progress.
pub fn load<W: Write>(
    request: &DriverRequest,
    task: &LoadRequest,
    rows: OpenRows,
    connector: Connector,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    if i32::try_from(request.rows).is_err() || request.rows == 0 || request.tables == 0 {
        return Err(Stop::Fault(format!(
            "failed to load {} tables of {} rows: ids are 32-bit integers from 1",
            request.tables, request.rows
        )));
    }
    let shared = Arc::new(Shared {
        request: request.clone(),
        task: task.clone(),
        rows,
        columns: LoadColumns::of(task),
        connector,
        rows_done: AtomicU64::new(0),
        indexes_done: AtomicU32::new(0),
    });
    if let Endpoint::Fake { mean_us, .. } = request.endpoint {
        return pretend(&shared, mean_us, control);
    }
    let tables = 1..=request.tables;
    let streams = match request.counted_events {
        // Several streams would fill pages differently in each load, and searches would differ in
        // cost.
        Some(_) => 1,
        None => streams(request.dialect, task.parallel),
    };
    let (begun, cpu) = (Instant::now(), tree::own_cpu());
    run(tables.clone().map(|table| LoadPart::Create { table }).collect(), 1, &shared, control)?;
    run(fills(request, streams), streams, &shared, control)?;
    let load_seconds = begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    run(tables.map(|table| LoadPart::Index { table }).collect(), task.parallel, &shared, control)?;
    let index_seconds = begun.elapsed().as_secs_f64();
    let (rows, client_cpu) = (shared.rows_in_all(), tree::own_cpu().since(cpu));
    control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

/// Loads the fake DBMS; a row takes a hundredth of a statement's latency.
fn pretend<W: Write>(
    shared: &Shared,
    mean_us: u64,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let rows = shared.rows_in_all();
    let of = shared.indexes_in_all();
    let load_seconds = rows as f64 * mean_us as f64 * 1e-8;
    control.send(&DriverEvent::Loading { rows, of: rows })?;
    control.send(&DriverEvent::Indexing { done: of, of })?;
    let client_cpu = CpuTime { user_us: rows as f64 * FAKE_ROW_US, system_us: 0.0 };
    let index_seconds = load_seconds / 4.0;
    control.send(&DriverEvent::Loaded { rows, load_seconds, index_seconds, client_cpu })?;
    Ok(())
}

/// Number of connections that fill tables at the same time.
fn streams(dialect: Dialect, parallel: u32) -> u32 {
    if dialect.spec().splits_tables {
        parallel.max(affinity::allowed_cpus().len().min(2) as u32)
    } else {
        parallel
    }
}

/// The parts of all tables. Splits tables, where allowed, so that no stream is idle.
fn fills(request: &DriverRequest, streams: u32) -> Vec<LoadPart> {
    let ranges = if request.dialect.spec().splits_tables {
        u64::from(streams.div_ceil(request.tables)).min(request.rows)
    } else {
        1
    };
    let bound = |range: u64| request.rows * range / ranges;
    (1..=request.tables)
        .flat_map(|table| {
            (0..ranges).map(move |range| LoadPart::Fill {
                table,
                first: bound(range) + 1,
                last: bound(range + 1),
            })
        })
        .collect()
}

/// Runs one phase on up to `threads` threads and sends its progress.
fn run<W: Write>(
    work: Vec<LoadPart>,
    threads: u32,
    shared: &Arc<Shared>,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    let indexing = matches!(work.first(), Some(LoadPart::Index { .. }));
    let size = (work.len(), threads);
    let phase = Arc::new((Arc::clone(shared), work));
    let one = |phase: &(Arc<Shared>, Vec<LoadPart>), index: usize, session: &mut Connection| {
        phase.0.carry_out(phase.1[index], session)
    };
    share_out(size, &shared.connector, &phase, one, &|| shared.progress(indexing), control)
}

impl Shared {
    fn rows_in_all(&self) -> u64 {
        self.request.rows * u64::from(self.request.tables)
    }

    fn indexes_in_all(&self) -> u32 {
        self.request.tables * self.task.index_sql.len() as u32
    }

    fn progress(&self, indexing: bool) -> DriverEvent {
        if indexing {
            let done = self.indexes_done.load(Ordering::Relaxed);
            return DriverEvent::Indexing { done, of: self.indexes_in_all() };
        }
        DriverEvent::Loading {
            rows: self.rows_done.load(Ordering::Relaxed),
            of: self.rows_in_all(),
        }
    }

    fn carry_out(&self, work: LoadPart, session: &mut Connection) -> Result<(), String> {
        match work {
            LoadPart::Create { table } => {
                self.control(&self.task.drop_sql, table, session)?;
                self.control(&self.task.create_sql, table, session)
            }
            LoadPart::Fill { table, first, last } => {
                let name = self.task.table.replace("{table}", &table.to_string());
                let rows = (self.rows)(&self.request, table);
                let range = RowRange { name: &name, rows: &*rows, first, last };
                let filled = match self.request.dialect.spec().bulk {
                    Bulk::Copy => self.copy(&range, session),
                    Bulk::LoadData => self.load_data(&range, session),
                    Bulk::Rows => self.insert_each(&range, session),
                };
                filled.map_err(|error| format!("failed to fill {name}: {error}"))
            }
            LoadPart::Index { table } => {
                for sql in &self.task.index_sql {
                    self.control(sql, table, session)?;
                    self.indexes_done.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            }
        }
    }

    fn control(&self, sql: &str, table: u32, session: &mut Connection) -> Result<(), String> {
        let sql = sql.replace("{table}", &table.to_string());
        let made = self.connector.make(session, &sql);
        made.map_err(|error| format!("failed to execute {sql:?}: {error}"))
    }

    /// COPY in binary form: the server parses neither numbers nor escapes.
    fn copy(&self, range: &RowRange<'_>, session: &mut Connection) -> Result<(), WireError> {
        let RowRange { name, rows, first, last } = *range;
        let sql = format!("COPY {name} ({}) FROM STDIN (FORMAT binary)", self.columns.names);
        let mut row = LoadRow::default();
        let mut id = first;
        session.copy_in(&sql, &mut |out| {
            if id == first {
                out.extend_from_slice(COPY_HEADER);
            }
            let (from, full) = (id, out.len() + COPY_BYTES);
            while id <= last && out.len() < full {
                rows.row(id, &mut row);
                self.columns.copy_tuple(out, &row);
                id += 1;
            }
            self.rows_done.fetch_add(id - from, Ordering::Relaxed);
            if id > last {
                out.extend_from_slice(&COPY_TRAILER);
            }
            id <= last
        })?;
        Ok(())
    }

    /// True if the columns have the widths of [`LoadColumns::fixed_line`], bytes. Columns are wider
    /// if a character may take several bytes.
    fn is_fixed(&self, name: &str, session: &mut Connection) -> bool {
        let sql = format!(
            "SELECT COALESCE(CHARACTER_OCTET_LENGTH, DATA_TYPE) FROM information_schema.COLUMNS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = '{name}' ORDER BY ORDINAL_POSITION"
        );
        let want = self.columns.holds.iter().map(|holds| match holds {
            LoadType::Int => "int".to_owned(),
            LoadType::Text { width, .. } => width.to_string(),
        });
        session.rows(&sql).is_ok_and(|rows| rows.into_iter().flatten().flatten().eq(want))
    }

    /// LOAD DATA LOCAL with rows from memory; INSERTs if the table or the server does not allow
    /// that.
    fn load_data(&self, range: &RowRange<'_>, session: &mut Connection) -> Result<(), WireError> {
        let RowRange { name, rows, first, last } = *range;
        if !self.is_fixed(name, session) {
            return self.insert_many(range, session);
        }
        let sql = format!(
            "LOAD DATA LOCAL INFILE 'rows' INTO TABLE {name} CHARACTER SET latin1 \
             FIELDS TERMINATED BY '' ENCLOSED BY '' ESCAPED BY '' LINES TERMINATED BY '\\n' ({})",
            self.columns.names
        );
        let mut row = LoadRow::default();
        let mut id = first;
        while id <= last {
            let end = last.min(id + ROWS_PER_LOAD - 1);
            let taken = send_local(&sql, session, &mut |out| {
                let (from, full) = (id, out.len() + COPY_BYTES);
                while id <= end && out.len() < full {
                    rows.row(id, &mut row);
                    self.columns.fixed_line(out, &row);
                    id += 1;
                }
                self.rows_done.fetch_add(id - from, Ordering::Relaxed);
                (id - from, id <= end)
            })?;
            if taken.is_none() {
                return self.insert_many(&RowRange { first: id, ..*range }, session);
            }
        }
        Ok(())
    }

    /// Prepared multi-row INSERTs in large transactions: the server parses once.
    fn insert_many(&self, range: &RowRange<'_>, session: &mut Connection) -> Result<(), WireError> {
        let RowRange { name, rows, first, last } = *range;
        let mut batch = vec![LoadRow::default(); ROWS_PER_INSERT as usize];
        let mut prepared: Option<(u64, Prepared)> = None;
        let (mut id, mut inserts) = (first, 0);
        session.simple("BEGIN")?;
        while id <= last {
            let count = ROWS_PER_INSERT.min(last + 1 - id);
            let insert = match prepared {
                Some((rows, insert)) if rows == count => insert,
                _ => self.prepare_insert(name, count, session)?,
            };
            prepared = Some((count, insert));
            for (row, id) in batch.iter_mut().zip(id..id + count) {
                rows.row(id, row);
            }
            let values: Vec<Value<'_>> = batch
                .iter()
                .take(count as usize)
                .flat_map(|row| self.columns.values(row))
                .collect();
            session.execute(insert, &values)?;
            self.rows_done.fetch_add(count, Ordering::Relaxed);
            id += count;
            inserts += 1;
            if inserts % INSERTS_PER_COMMIT == 0 {
                session.simple("COMMIT")?;
                session.simple("BEGIN")?;
            }
        }
        session.simple("COMMIT").map(|_| ())
    }

    fn prepare_insert(
        &self,
        name: &str,
        rows: u64,
        session: &mut Connection,
    ) -> Result<Prepared, WireError> {
        let tuples = vec![self.columns.placeholders(); rows as usize].join(",");
        let sql = format!("INSERT INTO {name} ({}) VALUES {tuples}", self.columns.names);
        session.prepare(&sql, &self.columns.types().repeat(rows as usize))
    }

    /// One transaction and one prepared statement: the fastest way into SQLite.
    fn insert_each(&self, range: &RowRange<'_>, session: &mut Connection) -> Result<(), WireError> {
        let RowRange { name, rows, first, last } = *range;
        session.simple("BEGIN")?;
        let (names, values) = (&self.columns.names, self.columns.placeholders());
        let sql = format!("INSERT INTO {name} ({names}) VALUES {values}");
        let insert = session.prepare(&sql, &self.columns.types())?;
        let mut row = LoadRow::default();
        let mut unreported = 0;
        for id in first..=last {
            rows.row(id, &mut row);
            let values: Vec<Value<'_>> = self.columns.values(&row).collect();
            session.execute(insert, &values)?;
            unreported += 1;
            if unreported == REPORT_ROWS || id == last {
                self.rows_done.fetch_add(unreported, Ordering::Relaxed);
                unreported = 0;
            }
        }
        session.simple("COMMIT").map(|_| ())
    }
}

/// The header of COPY's binary form as Postgres documents it: signature, no flags, no extension.
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";
/// A tuple of -1 columns ends the data.
const COPY_TRAILER: [u8; 2] = (-1i16).to_be_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    use crate::request::{LoadColumn, RequestBody};

    /// Two numbers, and two texts of 119 and 59 characters.
    fn columns() -> Vec<LoadColumn> {
        let text = |bytes| LoadType::Text { bytes, width: bytes + 1 };
        let holds = [LoadType::Int, LoadType::Int, text(119), text(59)];
        holds.map(|holds| LoadColumn { name: "x".to_owned(), holds }).into()
    }

    fn of_columns() -> LoadColumns {
        LoadColumns { names: String::new(), holds: columns().iter().map(|one| one.holds).collect() }
    }

    fn row(id: i64, k: i64, c: u8, pad: u8) -> LoadRow {
        LoadRow { numbers: vec![id, k], text: [vec![c; 119], vec![pad; 59]].concat() }
    }

    struct NoRows;

    impl LoadRows for NoRows {
        fn row(&self, _: u64, _: &mut LoadRow) {}
    }

    fn request(dialect: Dialect, tables: u32, rows: u64) -> DriverRequest {
        let task = LoadRequest { columns: columns(), parallel: 2, ..LoadRequest::default() };
        DriverRequest { dialect, tables, rows, ..DriverRequest::fake(RequestBody::Load(task)) }
    }

    #[test]
    fn a_loader_that_panics_ends_the_load_with_its_message() {
        let request = request(Dialect::Fake, 4, 10);
        let RequestBody::Load(mut task) = request.task.clone() else { panic!("no load") };
        task.create_sql = "panic {table}".to_owned();
        let shared = Arc::new(Shared {
            request: request.clone(),
            columns: LoadColumns::of(&task),
            task,
            rows: |_, _| Box::new(NoRows),
            connector: Connector::new(&request).unwrap(),
            rows_done: AtomicU64::new(0),
            indexes_done: AtomicU32::new(0),
        });
        let work = (1..=4).map(|table| LoadPart::Create { table }).collect();
        let end = run(work, 2, &shared, &mut ControlChannel::alone(Vec::new()));
        let Err(Stop::Fault(fault)) = end else { panic!("it ended well") };
        assert!(
            fault.starts_with("loader ") && fault.ends_with(" panicked: told to panic"),
            "{fault}"
        );
    }

    #[test]
    fn a_line_has_the_widths_of_its_columns() {
        for (id, k, want) in
            [(1, 0, "          1          0"), (2_147_483_647, 10, " 2147483647         10")]
        {
            let mut out = Vec::new();
            of_columns().fixed_line(&mut out, &row(id, k, b'c', b'p'));
            let want = format!("{want}{} {} \n", "c".repeat(119), "p".repeat(59));
            assert_eq!(String::from_utf8(out).unwrap(), want);
        }
    }

    #[test]
    fn every_row_is_filled_in_once() {
        for (dialect, tables, rows, streams, pieces) in [
            (Dialect::Mysql, 1, 1_000_001, 2, 2),
            (Dialect::Mysql, 3, 7, 4, 6),
            (Dialect::Mysql, 1, 1, 2, 1),
            (Dialect::Mysql, 8, 100, 4, 8),
            (Dialect::Postgres, 1, 100, 4, 1),
        ] {
            let fills = fills(&request(dialect, tables, rows), streams);
            assert_eq!(fills.len(), pieces, "{dialect:?} {tables} {rows} {streams}");
            let mut want = (1, 1);
            for fill in fills {
                let LoadPart::Fill { table, first, last } = fill else { panic!("{fill:?}") };
                assert_eq!((table, first), want);
                assert!(last >= first);
                want = if last == rows { (table + 1, 1) } else { (table, last + 1) };
            }
            assert_eq!(want, (tables + 1, 1));
        }
    }

    #[test]
    fn a_binary_tuple_is_as_postgres_documents_it() {
        let mut out = Vec::new();
        of_columns().copy_tuple(&mut out, &row(1, 258, b'1', b'2'));
        assert_eq!(out[..18], [0, 4, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 1, 2]);
        assert_eq!(out[18..22], [0, 0, 0, 119]);
        assert_eq!(out[22 + 119..22 + 123], [0, 0, 0, 59]);
        assert_eq!(out.len(), 22 + 119 + 4 + 59);
        assert_eq!(COPY_HEADER.len(), 11 + 4 + 4);
    }
}
