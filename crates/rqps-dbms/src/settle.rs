//! Rest between writing and measuring: maintenance by the DBMS, then a wait that grows with the
//! data.

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::DbmsError;
use crate::site::Interrupt;
use crate::sql_server::SqlServer;

/// Sessions that do maintenance at the same time.
const PARALLEL: usize = 16;

/// Time between two checks for Ctrl-C.
const NAP: Duration = Duration::from_millis(100);

/// The data that were written.
#[derive(Clone, Debug, PartialEq)]
pub struct SettleLoad {
    /// Number of tables.
    pub tables: u32,
    /// Rows of all tables together.
    pub rows_total: u64,
    /// Name of a table; `{table}` is its number, from 1: `sbtest{table}`.
    pub table: String,
    /// Factor on the published wait: 1 for the published shapes, less for quick presets, 0 for
    /// maintenance alone.
    pub scale: f64,
}

impl SettleLoad {
    /// The shortest time of settling: scale × min(1200, 60 + rows / 1e6) seconds including
    /// maintenance, as in the published sysbench runs.
    pub fn wait(&self) -> Duration {
        let seconds = (60.0 + self.rows_total as f64 / 1e6).min(1200.0) * self.scale;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
    }

    /// The tables by name.
    pub(super) fn names(&self) -> Vec<String> {
        if self.table.is_empty() {
            return Vec::new();
        }
        (1..=self.tables).map(|table| self.table.replace("{table}", &table.to_string())).collect()
    }
}

/// Runs `statement(table)` for all tables, several at a time, each on a session of its own. Returns
/// when all are done, with the first error.
pub(super) fn on_all_tables(
    server: &SqlServer,
    load: &SettleLoad,
    statement: impl Fn(&str) -> String + Clone + Send + 'static,
) -> Result<(), DbmsError> {
    let tables = load.names();
    let threads = tables.len().min(PARALLEL);
    let (tell, done) = mpsc::channel();
    for first in 0..threads {
        let mine: Vec<String> = tables.iter().skip(first).step_by(threads).cloned().collect();
        let (tell, connect, statement) = (tell.clone(), server.connect.clone(), statement.clone());
        // Not joined: after Ctrl-C nobody waits for a long statement, the server is stopped.
        thread::spawn(move || {
            let work = || {
                let mut session = connect().map_err(|error| ("connect".to_owned(), error))?;
                mine.iter()
                    .map(|table| statement(table))
                    .try_for_each(|sql| session.run(&sql).map_err(|error| (sql, error)))
            };
            let _ = tell.send(work());
        });
    }
    drop(tell);
    let mut open = threads;
    while open > 0 {
        server.interrupt.check()?;
        match done.recv_timeout(NAP) {
            Ok(Ok(())) => open -= 1,
            Ok(Err((what, source))) => {
                let doing = format!("{}: {what}", server.doing("settle"));
                return Err(DbmsError::Sql { doing, source });
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

/// Sleeps until `end`, or until `quiet` says that nothing is left to wait for. Tells `progress`
/// each second how long it still takes.
pub(super) fn rest(
    end: Instant,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(&str),
    quiet: &mut dyn FnMut() -> bool,
) -> Result<(), DbmsError> {
    let mut told = None;
    loop {
        interrupt.check()?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let seconds = left.as_secs();
        if told != Some(seconds) {
            if quiet() {
                return Ok(());
            }
            progress(&format!("at rest, {} s left", seconds + 1));
            told = Some(seconds);
        }
        thread::sleep(left.min(NAP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(rows_total: u64, scale: f64) -> SettleLoad {
        SettleLoad { tables: 2, rows_total, table: "sbtest{table}".to_owned(), scale }
    }

    #[test]
    fn the_wait_is_the_published_one_times_scale() {
        let check = |rows, scale, seconds| {
            assert_eq!(load(rows, scale).wait(), Duration::from_secs(seconds), "{rows} {scale}");
        };
        check(50_000_000, 1.0, 110);
        check(80_000_000, 0.5, 70);
        check(5_000_000_000, 1.0, 1200);
        check(0, 0.1, 6);
        check(50_000_000, 0.0, 0);
        check(50_000_000, -1.0, 0);
    }

    #[test]
    fn tables_are_numbered_from_one() {
        assert_eq!(load(0, 1.0).names(), ["sbtest1", "sbtest2"]);
    }

    #[test]
    fn rest_ends_early_when_all_is_quiet_and_at_once_when_interrupted() {
        let far = Instant::now() + Duration::from_secs(3600);
        let interrupt = Interrupt::default();
        let mut asked = 0;
        let mut quiet = || {
            asked += 1;
            asked == 2
        };
        rest(far, &interrupt, &mut |_| {}, &mut quiet).unwrap();
        assert_eq!(asked, 2);
        interrupt.0.store(true, std::sync::atomic::Ordering::Relaxed);
        let stopped = rest(far, &interrupt, &mut |_| {}, &mut || false);
        assert!(matches!(stopped, Err(DbmsError::Interrupted)));
    }
}
