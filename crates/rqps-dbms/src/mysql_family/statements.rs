//! Statements of the control plane on MySQL and MariaDB.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use crate::connection::{ControlConnection, ControlRow, numbers, one_value, table};
use crate::error::DbmsError;
use crate::mysql_family::myrocks;
use crate::settle::{SettleLoad, on_all_tables, rest};
use crate::sql_server::{ServerCalls, SqlServer, StatusFiles, Tell};
use rqps_host::plain;
use rqps_wire::WireError;

/// Dirty pages of the buffer pool that count as none.
const FEW_PAGES: u64 = 50;

/// More than the digits of any process.
const PID_BYTES: u64 = 32;

/// Undo records not yet purged that count as none.
const SHORT_HISTORY: u64 = 1000;

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

/// Statements of MySQL and MariaDB.
pub(crate) struct MysqlCalls;

impl ServerCalls for MysqlCalls {
    fn version_query(&self) -> &'static str {
        "SELECT VERSION()"
    }

    fn debug_build(
        &self,
        session: &mut dyn ControlConnection,
    ) -> Result<Option<String>, WireError> {
        let version = one_value(session, self.version_query())?.unwrap_or_default();
        Ok(version.split('-').any(|part| part == "debug").then(|| format!("version {version}")))
    }

    /// ANALYZE of the tables, then waits until pages are written, or the time is over. Only an own
    /// server is hastened by its settings, and by compactions of MyRocks.
    fn settle(
        &self,
        server: &SqlServer,
        load: &SettleLoad,
        progress: &mut Tell<'_>,
    ) -> Result<(), DbmsError> {
        let end = Instant::now() + load.wait();
        let mut session = server.session("settle")?;
        let settings: &[_] = if server.is_own { &FLUSH_NOW } else { &[] };
        let changed = change(&mut *session, settings);
        progress(&format!("analyze of {} tables", load.tables));
        let analyzed = on_all_tables(server, load, |table| format!("ANALYZE TABLE {table}"));
        let interrupt = &server.interrupt;
        let rested = analyzed
            .and_then(|()| {
                if server.is_own {
                    myrocks::settle(&mut *session, load, interrupt, progress)
                } else {
                    Ok(false)
                }
            })
            .and_then(|rocks| {
                let mut quiet = || !rocks && all_is_written(&mut *session);
                rest(end, interrupt, progress, &mut quiet)
            });
        restore(&mut *session, &changed, &server.doing("settle"))?;
        rested
    }

    fn status(&self, session: &mut dyn ControlConnection) -> Result<StatusFiles, WireError> {
        status(session)
    }

    /// A status variable is the sum of all sessions at any moment.
    fn counters(
        &self,
        session: &mut dyn ControlConnection,
        _quiet: bool,
    ) -> Result<BTreeMap<String, f64>, WireError> {
        Ok(numbers(session.rows("SHOW GLOBAL STATUS")?))
    }

    /// By the file that the server writes its process into, which is on the server's host.
    fn pid(&self, session: &mut dyn ControlConnection) -> Option<u32> {
        let path = one_value(session, "SELECT @@GLOBAL.pid_file").ok()??;
        // Whoever answers names the file.
        plain::beginning(Path::new(&path), PID_BYTES).ok()?.trim().parse().ok()
    }

    fn processes(&self) -> &'static [&'static str] {
        &["mysqld", "mariadbd"]
    }

    fn place_is_database(&self) -> bool {
        true
    }
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
fn all_is_written(session: &mut dyn ControlConnection) -> bool {
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

/// Settings and counters.
fn status(session: &mut dyn ControlConnection) -> Result<StatusFiles, WireError> {
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

    /// A server that answers this to everything.
    struct Reports<'a>(&'a str);

    impl ControlConnection for Reports<'_> {
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
            let said = MysqlCalls.debug_build(&mut Reports(version)).unwrap();
            assert_eq!(said, Some(format!("version {version}")));
        }
        for version in ["9.7.2", "10.11.18-MariaDB-0+deb12u1", "8.0.33-debugger"] {
            assert_eq!(MysqlCalls.debug_build(&mut Reports(version)).unwrap(), None);
        }
    }

    /// From a pipe no answer would come, and from the device one without end.
    #[test]
    fn a_server_names_no_file_that_does_not_end() {
        let folder = tempfile::tempdir().unwrap();
        let [file, pipe] = ["file", "pipe"].map(|name| folder.path().join(name));
        std::fs::write(&file, "4711\n").unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let pid = |path: &Path| MysqlCalls.pid(&mut Reports(path.to_str().unwrap()));
        assert_eq!(pid(&file), Some(4711));
        assert_eq!((pid(&pipe), pid(Path::new("/dev/zero"))), (None, None));
    }
}
