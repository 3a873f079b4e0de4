//! Loading: tables in parallel, rows in the order of their ids, indexes afterwards.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use crate::datagen::sbtest::{Row, Table};
use crate::driver::Stop;
use crate::driver::protocol::{Job, LoadTask, Message};
use crate::driver::session::{Opener, Session};
use crate::driver::talk::Talk;
use crate::wire::{Value, ValueType, WireError};

/// How often progress is said.
const PROGRESS: Duration = Duration::from_millis(500);

/// What the loading threads share.
struct Shared {
    job: Job,
    task: LoadTask,
    opener: Opener,
    rows_done: AtomicU64,
    indexes_done: AtomicU32,
    /// Number of the next table, from 0, in each phase.
    next_table: [AtomicU32; 2],
}

/// The two phases: rows of all tables, then indexes of all tables.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Rows,
    Indexes,
}

/// Carries out a loading job and says how it went.
pub(crate) fn load<W: Write>(
    job: &Job,
    task: &LoadTask,
    opener: Opener,
    talk: &mut Talk<W>,
) -> Result<(), Stop> {
    let shared = Arc::new(Shared {
        job: job.clone(),
        task: task.clone(),
        opener,
        rows_done: AtomicU64::new(0),
        indexes_done: AtomicU32::new(0),
        next_table: [AtomicU32::new(0), AtomicU32::new(0)],
    });
    let load_seconds = run(Phase::Rows, &shared, talk)?;
    let index_seconds = run(Phase::Indexes, &shared, talk)?;
    talk.say(&Message::Loaded { rows: shared.rows_in_all(), load_seconds, index_seconds })?;
    Ok(())
}

/// Runs one phase on all its threads, saying how far they are; returns its seconds.
fn run<W: Write>(phase: Phase, shared: &Arc<Shared>, talk: &mut Talk<W>) -> Result<f64, Stop> {
    let begun = Instant::now();
    let (sender, news) = channel::<Result<(), String>>();
    let threads = shared.task.parallel.clamp(1, shared.job.tables.max(1));
    for _ in 0..threads {
        spawn(phase, Arc::clone(shared), sender.clone())?;
    }
    drop(sender);
    let mut left = threads;
    while left > 0 {
        match talk.wait(&news, Some(Instant::now() + PROGRESS))? {
            Some(Ok(())) => left -= 1,
            Some(Err(fault)) => return Err(Stop::Fault(fault)),
            None => talk.say(&shared.progress(phase))?,
        }
    }
    talk.say(&shared.progress(phase))?;
    Ok(begun.elapsed().as_secs_f64())
}

fn spawn(
    phase: Phase,
    shared: Arc<Shared>,
    news: Sender<Result<(), String>>,
) -> Result<(), String> {
    let work = move || {
        // If nobody listens any more, there is nobody to tell.
        let _ = news.send(shared.work(phase));
    };
    std::thread::Builder::new()
        .name("loader".to_owned())
        .spawn(work)
        .map(|_| ())
        .map_err(|error| format!("failed to start a loading thread: {error}"))
}

impl Shared {
    fn rows_in_all(&self) -> u64 {
        self.job.rows * u64::from(self.job.tables)
    }

    fn progress(&self, phase: Phase) -> Message {
        match phase {
            Phase::Rows => Message::Loading {
                rows: self.rows_done.load(Ordering::Relaxed),
                of: self.rows_in_all(),
            },
            Phase::Indexes => Message::Indexing {
                done: self.indexes_done.load(Ordering::Relaxed),
                of: self.job.tables * self.task.index_sql.len() as u32,
            },
        }
    }

    /// One connection takes tables until none is left.
    fn work(&self, phase: Phase) -> Result<(), String> {
        let mut session = self.opener.open(0)?;
        loop {
            let table = self.next_table[phase as usize].fetch_add(1, Ordering::Relaxed) + 1;
            if table > self.job.tables {
                return Ok(());
            }
            match phase {
                Phase::Rows => self.fill(table, &mut session)?,
                Phase::Indexes => {
                    for sql in &self.task.index_sql {
                        self.control(sql, table, &mut session)?;
                        self.indexes_done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    fn fill(&self, table: u32, session: &mut Session) -> Result<(), String> {
        self.control(&self.task.drop_sql, table, session)?;
        self.control(&self.task.create_sql, table, session)?;
        let name = self.task.table.replace("{table}", &table.to_string());
        let rows = Table::new(self.job.seed, table, self.job.rows);
        let filled = match session {
            Session::Sqlite(_) => self.insert_one_by_one(&name, &rows, session),
            Session::Fake(_) => {
                self.rows_done.fetch_add(self.job.rows, Ordering::Relaxed);
                Ok(())
            }
        };
        filled.map_err(|error| format!("failed to fill {name}: {error}"))
    }

    fn control(&self, sql: &str, table: u32, session: &mut Session) -> Result<(), String> {
        let sql = sql.replace("{table}", &table.to_string());
        match session.simple(&sql) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("failed to execute {sql:?}: {error}")),
        }
    }

    /// One transaction and one prepared statement: the fastest way into SQLite.
    fn insert_one_by_one(
        &self,
        name: &str,
        rows: &Table,
        session: &mut Session,
    ) -> Result<(), WireError> {
        /// Rows between two reports.
        const REPORT: u64 = 10_000;
        session.simple("BEGIN")?;
        let sql = format!("INSERT INTO {name} ({}) VALUES (?, ?, ?, ?)", self.task.columns);
        let types = [ValueType::Int, ValueType::Int, ValueType::Text, ValueType::Text];
        let insert = session.prepare(&sql, &types)?;
        let mut row = Row::default();
        for id in 1..=self.job.rows {
            rows.row(id, &mut row);
            let values = [
                Value::Int(id as i64),
                Value::Int(row.k as i64),
                Value::Text(&row.c),
                Value::Text(&row.pad),
            ];
            session.execute(insert, &values)?;
            if id % REPORT == 0 || id == self.job.rows {
                let done = if id % REPORT == 0 { REPORT } else { id % REPORT };
                self.rows_done.fetch_add(done, Ordering::Relaxed);
            }
        }
        session.simple("COMMIT").map(|_| ())
    }
}
