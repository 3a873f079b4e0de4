//! Observes the background activity of the server: queries its counters once a second during a
//! step.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::driver::prepare::BESIDE;
use rqps_driver::connection::{Connection, Connector};
use rqps_driver::request::{DriverRequest, StepRequest};
use rqps_model::dialect::Dialect;
use rqps_model::insert::InsertWork;

/// Time between two queries.
const OBSERVE: Duration = Duration::from_secs(1);
/// Time between two checks whether to end.
const LOOK: Duration = Duration::from_millis(50);
/// The ending of names of counters; all other names are levels.
const COUNTER: &str = "_total";

/// Values of the last query.
type Seen = BTreeMap<String, f64>;

/// A thread that queries the server once a second on its own connection.
pub(super) struct Observer {
    latest: Arc<Mutex<Seen>>,
    /// Values when columns were last made.
    before: Mutex<Seen>,
    stop: Arc<AtomicBool>,
    note: Option<String>,
}

impl Observer {
    /// Queries once, to find the queries that the server supports. On several hosts, only the
    /// driver of the first client observes.
    pub(super) fn start(
        request: &DriverRequest,
        task: &StepRequest<InsertWork>,
        connector: &Arc<Connector>,
    ) -> Observer {
        let mut observer = Observer {
            latest: Arc::default(),
            before: Mutex::default(),
            stop: Arc::default(),
            note: None,
        };
        let is_fake = request.dialect == Dialect::Fake;
        if task.work.observe.is_empty() || is_fake || !request.is_first() {
            return observer;
        }
        let (tell, told) = channel();
        let (latest, stop) = (Arc::clone(&observer.latest), Arc::clone(&observer.stop));
        let (connector, groups) = (Arc::clone(connector), task.work.observe.clone());
        // Not joined: it ends at most one query after the step.
        std::thread::spawn(move || observe(&connector, &groups, &tell, &latest, &stop));
        match told.recv() {
            Ok(Ok(seen)) => observer.before = Mutex::new(seen),
            Ok(Err(why)) => observer.note = Some(format!("the server is not observed: {why}")),
            Err(_) => observer.note = Some("the server is not observed".to_owned()),
        }
        observer
    }

    /// Adds a column per value: levels as they are, counters as their change since the last call.
    pub(super) fn add_to(&self, columns: &mut Seen) {
        let latest = lock(&self.latest).clone();
        let mut before = lock(&self.before);
        for (name, value) in &latest {
            match name.strip_suffix(COUNTER) {
                Some(short) => {
                    let moved = value - before.get(name).copied().unwrap_or(*value);
                    columns.insert(format!("server_{short}"), moved.max(0.0));
                }
                None => {
                    columns.insert(format!("server_{name}"), *value);
                }
            }
        }
        *before = latest;
    }

    /// Ends the thread. Returns a note if it could not observe.
    pub(super) fn end(self) -> Option<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.note
    }
}

fn lock(seen: &Mutex<Seen>) -> std::sync::MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first group of queries that the server answers with rows.
fn first(
    groups: &[Vec<String>],
    connector: &Connector,
) -> Result<(Connection, Vec<String>, Seen), String> {
    let mut session = connector.open(BESIDE)?;
    let mut why = String::new();
    for group in groups {
        match ask(&mut session, group) {
            Ok(seen) => return Ok((session, group.clone(), seen)),
            Err(error) => why = error,
        }
    }
    Err(why)
}

fn ask(session: &mut Connection, questions: &[String]) -> Result<Seen, String> {
    let mut all = Seen::new();
    for question in questions {
        let rows = session.rows(question);
        let rows = rows.map_err(|error| format!("failed to ask the server: {error}"))?;
        let before = all.len();
        all.extend(rows.into_iter().filter_map(reading));
        if all.len() == before {
            return Err(format!("no numbers from `{question}`"));
        }
    }
    Ok(all)
}

/// Reads a row of name and value, or of an engine's name, nothing, and its status.
fn reading(row: Vec<Option<String>>) -> Option<(String, f64)> {
    let mut cells = row.into_iter().flatten();
    let (name, value) = (cells.next()?, cells.next()?);
    match cells.next() {
        Some(status) => Some(("redo_used".to_owned(), redo_used(&status)?)),
        None => Some((column(&name), value.parse().ok()?)),
    }
}

/// Bytes of the redo log since the last checkpoint, from `SHOW ENGINE INNODB STATUS`.
fn redo_used(status: &str) -> Option<f64> {
    let number = |head: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(head))?;
        line.trim().parse::<f64>().ok()
    };
    Some(number("Log sequence number")? - number("Last checkpoint at")?)
}

/// A MySQL status variable as a column; counters are known by name.
fn column(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let short = name.strip_prefix("innodb_").unwrap_or(&name);
    match short {
        "buffer_pool_pages_flushed" => format!("pages_flushed{COUNTER}"),
        "buffer_pool_wait_free" => format!("free_page_waits{COUNTER}"),
        "log_waits" => format!("log_waits{COUNTER}"),
        "rocksdb_stall_micros" => format!("write_stall_us{COUNTER}"),
        "buffer_pool_pages_dirty" => "pages_dirty".to_owned(),
        "redo_log_logical_size" | "checkpoint_age" => "redo_used".to_owned(),
        "checkpoint_max_age" => "redo_capacity".to_owned(),
        other => other.to_owned(),
    }
}

/// The work of the observer's thread. `tell` receives the first answer, or the reason why there is
/// none.
fn observe(
    connector: &Connector,
    groups: &[Vec<String>],
    tell: &Sender<Result<Seen, String>>,
    latest: &Mutex<Seen>,
    stop: &AtomicBool,
) {
    let (mut session, questions) = match first(groups, connector) {
        Ok((session, questions, seen)) => {
            *lock(latest) = seen.clone();
            let _ = tell.send(Ok(seen));
            (session, questions)
        }
        Err(why) => {
            let _ = tell.send(Err(why));
            return;
        }
    };
    let mut next = Instant::now() + OBSERVE;
    while !stop.load(Ordering::Relaxed) {
        if Instant::now() < next {
            std::thread::sleep(LOOK);
            continue;
        }
        next += OBSERVE;
        // The workers report a server that does not answer.
        let Ok(seen) = ask(&mut session, &questions) else { return };
        *lock(latest) = seen;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_of_every_kind_becomes_columns() {
        let row = |cells: &[&str]| reading(cells.iter().map(|cell| Some((*cell).into())).collect());
        let is = |name: &str, value| Some((name.to_owned(), value));
        assert_eq!(row(&["Innodb_redo_log_logical_size", "46690816"]), is("redo_used", 46690816.0));
        assert_eq!(row(&["Innodb_checkpoint_max_age", "80"]), is("redo_capacity", 80.0));
        assert_eq!(row(&["checkpoints_total", "3"]), is("checkpoints_total", 3.0));
        let status = "LOG\n---\nLog sequence number 1635001\nLog flushed up to   1634900\n\
                      Pages flushed up to 1630000\nLast checkpoint at  1626000\n";
        assert_eq!(row(&["InnoDB", "", status]), is("redo_used", 9001.0));
        assert_eq!(row(&["InnoDB", "", "no such line"]), None);
        assert_eq!(row(&["Innodb_redo_log_enabled", "ON"]), None);
    }
}
