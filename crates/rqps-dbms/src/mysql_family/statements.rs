//! Statements of the control plane on MySQL and MariaDB.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::connection::{ControlConnection, ControlRow, numbers, one_value, table};
use crate::error::DbmsError;
use crate::mysql_family::myrocks;
use crate::settle::{SettleLoad, on_all_tables, rest};
use crate::site::Interrupt;
use rqps_wire::WireError;

/// Dirty pages of the buffer pool that count as none.
const FEW_PAGES: u64 = 50;

/// Undo records not yet purged that count as none.
const SHORT_HISTORY: u64 = 1000;

/// `VERSION()` of a session.
pub(crate) fn reported_version(
    session: &mut dyn ControlConnection,
    doing: &str,
) -> Result<String, DbmsError> {
    let version = one_value(session, "SELECT VERSION()").map_err(DbmsError::sql(doing))?;
    Ok(version.unwrap_or_default())
}

/// A server with assertions and dbug ends its version with `-debug`.
pub(crate) fn debug_build(
    session: &mut dyn ControlConnection,
    doing: &str,
) -> Result<Option<String>, DbmsError> {
    let version = reported_version(session, doing)?;
    Ok(version.split('-').any(|part| part == "debug").then(|| format!("version {version}")))
}

/// While tables are loaded: two connections that fill one table meet less if they find the page of
/// the last row without going down the tree; and a file that grows is not filled with zeros first.
pub(crate) const WHILE_LOADING: [(&str, &str); 2] = [
    ("innodb_adaptive_hash_index", "ON"),
    // Since 8.0.22.
    ("innodb_extend_and_initialize", "OFF"),
];

/// Without a redo log pages are written once, not twice, and a load costs less CPU. A server that
/// is killed then does not start again.
pub(crate) const NO_REDO_LOG: &str = "ALTER INSTANCE DISABLE INNODB REDO_LOG";

/// The settings that make InnoDB write dirty pages now, with the value for that. In this order,
/// because the low-water mark may not be above the limit; restored in the opposite one.
const FLUSH_NOW: [(&str, &str); 3] = [
    ("innodb_max_dirty_pages_pct_lwm", "1"),
    ("innodb_max_dirty_pages_pct", "1"),
    // Since 8.0.18.
    ("innodb_idle_flush_pct", "100"),
];

/// ANALYZE TABLE of all tables at the same time while dirty pages are written; then waits until
/// they are, or the time is over. Settings are as before when it returns, also with an error.
pub(crate) fn maintain<C>(
    load: &SettleLoad,
    interrupt: &Interrupt,
    doing: &str,
    connect: C,
    progress: &mut dyn FnMut(&str),
) -> Result<(), DbmsError>
where
    C: Fn() -> Result<Box<dyn ControlConnection>, WireError> + Clone + Send + 'static,
{
    let end = Instant::now() + load.wait();
    let mut session = connect().map_err(DbmsError::sql(doing))?;
    let changed = change(&mut *session, &FLUSH_NOW);
    let analyzed = analyze(load, interrupt, doing, connect, progress);
    let rested = analyzed
        .and_then(|()| myrocks::settle(&mut *session, load, interrupt, progress))
        .and_then(|rocks| {
            let mut quiet = || !rocks && all_is_written(&mut *session);
            rest(end, interrupt, progress, &mut quiet)
        });
    restore(&mut *session, &changed, doing)?;
    rested
}

/// ANALYZE TABLE of all tables at the same time.
pub(crate) fn analyze<C>(
    load: &SettleLoad,
    interrupt: &Interrupt,
    doing: &str,
    connect: C,
    progress: &mut dyn FnMut(&str),
) -> Result<(), DbmsError>
where
    C: Fn() -> Result<Box<dyn ControlConnection>, WireError> + Clone + Send + 'static,
{
    progress(&format!("analyze of {} tables", load.tables));
    on_all_tables(load.names(), interrupt, doing, connect, |table| format!("ANALYZE TABLE {table}"))
}

/// Changes those of the settings that this version has; returns them with their old values.
pub(crate) fn change(
    session: &mut dyn ControlConnection,
    settings: &[(&'static str, &'static str)],
) -> Vec<(&'static str, String)> {
    let mut changed = Vec::new();
    for (name, value) in settings {
        if let Ok(Some(old)) = one_value(session, &format!("SELECT @@GLOBAL.{name}"))
            && session.run(&format!("SET GLOBAL {name} = {value}")).is_ok()
        {
            changed.push((*name, old));
        }
    }
    changed
}

/// Gives the settings their old values again, the last first.
pub(crate) fn restore(
    session: &mut dyn ControlConnection,
    changed: &[(&'static str, String)],
    doing: &str,
) -> Result<(), DbmsError> {
    for (name, value) in changed.iter().rev() {
        let sql = format!("SET GLOBAL {name} = {value}");
        session.run(&sql).map_err(DbmsError::sql(format!("{doing}: {sql}")))?;
    }
    Ok(())
}

/// True if hardly a page is dirty and purge has caught up.
pub(crate) fn all_is_written(session: &mut dyn ControlConnection) -> bool {
    let number = |rows: Result<Vec<ControlRow>, WireError>, column: usize| {
        rows.ok()?.first()?.get(column)?.as_ref()?.parse::<u64>().ok()
    };
    let dirty = number(session.rows("SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'"), 1);
    let history = number(
        session.rows(
            "SELECT COUNT FROM information_schema.INNODB_METRICS \
             WHERE NAME = 'trx_rseg_history_len'",
        ),
        0,
    );
    dirty.is_some_and(|pages| pages <= FEW_PAGES) && history.unwrap_or(0) <= SHORT_HISTORY
}

/// All status variables that are numbers.
pub(crate) fn counters(
    session: &mut dyn ControlConnection,
) -> Result<BTreeMap<String, f64>, WireError> {
    Ok(numbers(session.rows("SHOW GLOBAL STATUS")?))
}

/// Settings and counters.
pub(crate) fn status(
    session: &mut dyn ControlConnection,
) -> Result<Vec<(String, String)>, WireError> {
    let mut files = Vec::new();
    let variables = session.rows("SHOW GLOBAL VARIABLES")?;
    files.push(("variables.tsv".to_owned(), table("name\tvalue", &variables)));
    let counters = session.rows("SHOW GLOBAL STATUS")?;
    files.push(("status.tsv".to_owned(), table("name\tvalue", &counters)));
    for engine in ["INNODB", "ROCKSDB"] {
        // One of the two is missing on most servers, or not allowed.
        if let Ok(rows) = session.rows(&format!("SHOW ENGINE {engine} STATUS")) {
            let texts: Vec<String> = rows
                .into_iter()
                .map(|row| row.into_iter().flatten().collect::<Vec<_>>().join("\n"))
                .collect();
            files.push((format!("{}_status.txt", engine.to_lowercase()), texts.join("\n")));
        }
    }
    let tables = session.rows(
        "SELECT TABLE_NAME, ENGINE, TABLE_ROWS, DATA_LENGTH, INDEX_LENGTH, DATA_FREE \
         FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME",
    )?;
    let heading = "table\tengine\trows\tdata_bytes\tindex_bytes\tfree_bytes";
    files.push(("tables.tsv".to_owned(), table(heading, &tables)));
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server of this version.
    struct Reports(&'static str);

    impl ControlConnection for Reports {
        fn rows(&mut self, _: &str) -> Result<Vec<ControlRow>, WireError> {
            Ok(vec![vec![Some(self.0.to_owned())]])
        }

        fn run(&mut self, _: &str) -> Result<(), WireError> {
            Ok(())
        }
    }

    #[test]
    fn servers_with_assertions_say_so_in_their_version() {
        for version in ["8.0.33-debug", "11.4.5-MariaDB-debug-log"] {
            let said = debug_build(&mut Reports(version), "ask").unwrap();
            assert_eq!(said, Some(format!("version {version}")));
        }
        for version in ["9.7.2", "10.11.18-MariaDB-0+deb12u1", "8.0.33-debugger"] {
            assert_eq!(debug_build(&mut Reports(version), "ask").unwrap(), None);
        }
    }
}
