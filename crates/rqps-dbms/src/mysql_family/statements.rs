//! Statements of the control plane on MySQL and MariaDB.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::control::{DbmsError, Interrupt};
use crate::sql_server::{
    ControlConnection, ControlRow, ServerCalls, SettleLoad, SqlServer, StatusFiles, Tell, numbers,
    on_all_tables, one_value, rest, table,
};
use rqps_host::beneath;
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
                    settle(&mut *session, load, interrupt, progress)
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
        beneath::beginning(Path::new(&path), PID_BYTES).ok()?.trim().parse().ok()
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

// MyRocks: RocksDB as a storage engine of MariaDB or MySQL, in a plugin or compiled into the
// server, as FB MySQL has it.

/// The name of the storage engine, in `ENGINE=` and in target words.
pub(super) const NAMES: [&str; 2] = ["rocksdb", "myrocks"];

/// The file of the plugin.
const PLUGIN: &str = "ha_rocksdb.so";

/// Published pause where compactions cannot be looked at, and before level 0 is compacted, seconds.
const UNSEEN_SECONDS: f64 = 30.0;
const FLUSHED_SECONDS: f64 = 20.0;

/// Between two looks at compactions that are going on (published).
const LOOK: Duration = Duration::from_secs(10);

/// Returns a row if the server has the engine and may use it.
const IS_THERE: &str = "SELECT 1 FROM information_schema.ENGINES \
                          WHERE ENGINE = 'ROCKSDB' AND SUPPORT IN ('YES', 'DEFAULT')";

/// Folders of plugins in packages and installed trees.
const PLUGIN_FOLDERS: [&str; 4] =
    ["lib/plugin", "lib/mysql/plugin", "lib/mariadb/plugin", "lib64/mysql/plugin"];

fn plugin_folder(root: &Path) -> Option<PathBuf> {
    let mut folders = PLUGIN_FOLDERS.iter().map(|folder| root.join(folder));
    folders.find(|folder| folder.join(PLUGIN).is_file())
}

/// Arguments that make its tables the usual ones, and load the plugin where there is one. Without
/// a plugin it may be compiled in, which [`check`] asks the server.
pub(super) fn args(root: &Path) -> Vec<String> {
    let mut args = match plugin_folder(root) {
        Some(folder) => vec![
            format!("--plugin-dir={}", folder.display()),
            format!("--plugin-load-add={PLUGIN}"),
            "--plugin-maturity=unknown".to_owned(),
        ],
        // FB MySQL has it switched off until it is asked for; others do not know the option.
        None => vec!["--loose-rocksdb=ON".to_owned()],
    };
    args.push("--default-storage-engine=rocksdb".to_owned());
    args
}

/// A hint if a server does not start or has no such engine.
pub(super) fn hint(root: &Path) -> Option<String> {
    if plugin_folder(root).is_some() {
        return None;
    }
    let looked = PLUGIN_FOLDERS.join(", ");
    Some(format!(
        "no {PLUGIN} in {looked} of {}, so RocksDB must be compiled into the server; use a build \
         with either, such as mariadb@11.8+myrocks",
        root.display()
    ))
}

/// Asks a server that has started for the engine.
pub(super) fn check(session: &mut dyn ControlConnection, root: &Path) -> Result<(), DbmsError> {
    let doing = "ask for the storage engine RocksDB";
    match one_value(session, IS_THERE).map_err(DbmsError::sql(doing.to_owned()))? {
        Some(_) => Ok(()),
        None => {
            let hint = hint(root).unwrap_or_else(|| "see its log".to_owned());
            let what = "use the storage engine RocksDB: the server does not have it";
            Err(DbmsError::Unsupported(format!("{what}\nhint: {hint}")))
        }
    }
}

/// Settings that compact; newer versions compact level 0 alone.
const COMPACT: [&str; 2] =
    ["rocksdb_compact_lzero_now", "rocksdb_force_flush_memtable_and_lzero_now"];

/// The published rules after writes: wait until no compaction runs, flush the memtable, a pause,
/// compact level 0, wait again. Returns false at once if there is no RocksDB.
pub(super) fn settle(
    session: &mut dyn ControlConnection,
    load: &SettleLoad,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(&str),
) -> Result<bool, DbmsError> {
    if !matches!(one_value(session, IS_THERE), Ok(Some(_))) {
        return Ok(false);
    }
    let pause = |seconds: f64| {
        Instant::now() + Duration::try_from_secs_f64(seconds * load.scale).unwrap_or_default()
    };
    progress("compactions of RocksDB");
    wait_for_compactions(session, pause(UNSEEN_SECONDS), interrupt, progress)?;
    progress("flush of RocksDB's memtable");
    set_now(session, &["rocksdb_force_flush_memtable_now"])?;
    rest(pause(FLUSHED_SECONDS), interrupt, progress, &mut || false)?;
    progress("compaction of RocksDB's level 0");
    set_now(session, &COMPACT)?;
    wait_for_compactions(session, pause(0.0), interrupt, progress)?;
    Ok(true)
}

/// Sets the first of these that this version has; the statement returns when the work is done.
fn set_now(session: &mut dyn ControlConnection, names: &[&str]) -> Result<(), DbmsError> {
    for name in names {
        if let Ok(Some(_)) = one_value(session, &format!("SELECT @@GLOBAL.{name}")) {
            let sql = format!("SET GLOBAL {name} = 1");
            return session.run(&sql).map_err(DbmsError::sql(format!("settle MyRocks: {sql}")));
        }
    }
    let names = names.join(" or ");
    Err(DbmsError::Unsupported(format!(
        "settle MyRocks: this version has no {names}, so rqps cannot bring its data to rest before \
         measuring"
    )))
}

/// Waits until no compaction runs. A version that does not list them is given until `unseen`, and
/// as long as it says that a flush or a compaction is due.
fn wait_for_compactions(
    session: &mut dyn ControlConnection,
    unseen: Instant,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(&str),
) -> Result<(), DbmsError> {
    let running = "SELECT COUNT(*) FROM information_schema.ROCKSDB_ACTIVE_COMPACTION_STATS";
    let due = "SELECT COALESCE(SUM(VALUE), 0) FROM information_schema.ROCKSDB_CFSTATS \
               WHERE STAT_TYPE IN ('COMPACTION_PENDING', 'MEM_TABLE_FLUSH_PENDING')";
    let seen = one_value(session, running).is_ok();
    if !seen {
        rest(unseen, interrupt, progress, &mut || false)?;
    }
    let question = if seen { running } else { due };
    loop {
        match one_value(session, question) {
            Ok(Some(count)) if count.parse() != Ok(0.0) => {
                let step = if seen { LOOK } else { Duration::from_secs(1) };
                rest(Instant::now() + step, interrupt, progress, &mut || false)?;
            }
            Ok(_) => return Ok(()),
            Err(source) => {
                let doing = format!("settle MyRocks: {question}");
                return Err(DbmsError::Sql { doing, source });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::sql_server::ControlRow;
    use rqps_wire::WireError;

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

    /// A server that answers from a list: what a question must hold, and its first value.
    struct Scripted {
        answers: VecDeque<(&'static str, Option<&'static str>)>,
        said: Vec<String>,
    }

    impl Scripted {
        fn new(answers: &[(&'static str, Option<&'static str>)]) -> Scripted {
            Scripted { answers: answers.iter().copied().collect(), said: Vec::new() }
        }
    }

    impl ControlConnection for Scripted {
        fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError> {
            let (words, answer) = self.answers.pop_front().unwrap_or(("nothing", None));
            assert!(sql.contains(words), "{sql} where {words} was expected");
            match answer {
                Some(value) => Ok(vec![vec![Some(value.to_owned())]]),
                None => Err(WireError::Protocol("no such thing".to_owned())),
            }
        }

        fn run(&mut self, sql: &str) -> Result<(), WireError> {
            self.said.push(sql.to_owned());
            Ok(())
        }
    }

    fn settled(session: &mut Scripted) -> Result<bool, DbmsError> {
        let load =
            SettleLoad { tables: 1, rows_total: 1, table: "t{table}".to_owned(), scale: 0.0 };
        settle(session, &load, &Interrupt::default(), &mut |_| {})
    }

    #[test]
    fn mariadb_flushes_then_compacts_with_what_it_has() {
        let mut session = Scripted::new(&[
            ("ENGINES", Some("1")),
            ("ACTIVE_COMPACTION", None),
            ("PENDING", Some("1.0")),
            ("PENDING", Some("0")),
            ("rocksdb_force_flush_memtable_now", Some("0")),
            ("rocksdb_compact_lzero_now", None),
            ("memtable_and_lzero_now", Some("0")),
            ("ACTIVE_COMPACTION", None),
            ("PENDING", Some("0")),
        ]);
        assert!(settled(&mut session).unwrap());
        assert_eq!(
            session.said,
            [
                "SET GLOBAL rocksdb_force_flush_memtable_now = 1",
                "SET GLOBAL rocksdb_force_flush_memtable_and_lzero_now = 1"
            ]
        );
        assert!(session.answers.is_empty());
    }

    #[test]
    fn newer_ones_list_compactions_and_compact_level_0_alone() {
        let mut session = Scripted::new(&[
            ("ENGINES", Some("1")),
            ("ACTIVE_COMPACTION", Some("0")),
            ("ACTIVE_COMPACTION", Some("0")),
            ("rocksdb_force_flush_memtable_now", Some("0")),
            ("rocksdb_compact_lzero_now", Some("0")),
            ("ACTIVE_COMPACTION", Some("0")),
            ("ACTIVE_COMPACTION", Some("0")),
        ]);
        assert!(settled(&mut session).unwrap());
        assert_eq!(session.said[1], "SET GLOBAL rocksdb_compact_lzero_now = 1");
    }

    #[test]
    fn without_rocksdb_nothing_is_done_and_without_its_settings_it_is_an_error() {
        let mut session = Scripted::new(&[("ENGINES", None)]);
        assert!(!settled(&mut session).unwrap());
        let mut session = Scripted::new(&[
            ("ENGINES", Some("1")),
            ("ACTIVE_COMPACTION", Some("0")),
            ("ACTIVE_COMPACTION", Some("0")),
            ("rocksdb_force_flush", None),
        ]);
        let said = settled(&mut session).unwrap_err().to_string();
        assert!(said.contains("this version has no rocksdb_force_flush_memtable_now"), "{said}");
    }

    /// A server that was asked: its engines as they are, or nothing.
    struct Engines(Vec<ControlRow>);

    impl ControlConnection for Engines {
        fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError> {
            assert!(sql.contains("information_schema.ENGINES"), "{sql}");
            Ok(self.0.clone())
        }

        fn run(&mut self, sql: &str) -> Result<(), WireError> {
            panic!("{sql}")
        }
    }

    #[test]
    fn a_plugin_is_loaded_and_without_one_it_may_be_compiled_in() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let compiled_in = args(root);
        assert_eq!(compiled_in, ["--loose-rocksdb=ON", "--default-storage-engine=rocksdb"]);
        let there = &mut Engines(vec![vec![Some("1".to_owned())]]);
        check(there, root).unwrap();
        let said = check(&mut Engines(vec![]), root).unwrap_err().to_string();
        assert!(said.contains("the server does not have it"), "{said}");
        let place = folder.path().display().to_string();
        assert!(said.contains(&place) && said.contains("mariadb@11.8+myrocks"), "{said}");
        let plugins = root.join(PLUGIN_FOLDERS[0]);
        std::fs::create_dir_all(&plugins).unwrap();
        std::fs::write(plugins.join(PLUGIN), "").unwrap();
        let loaded = args(root);
        assert!(loaded.contains(&"--plugin-load-add=ha_rocksdb.so".to_owned()), "{loaded:?}");
        assert!(loaded.contains(&"--default-storage-engine=rocksdb".to_owned()), "{loaded:?}");
        assert_eq!(hint(root), None);
    }
}
