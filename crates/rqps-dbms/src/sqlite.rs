//! SQLite: no server, a database file that the driver process opens.
//!
//! The control plane calls SQLite in a process of its own, too (the hidden subcommand
//! [`SQLITE_COMMAND`]): a library that was loaded from a path, or a damaged database, must not take
//! the lab along.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::control::{ControlPlane, DbmsError, Interrupt, Site};
use crate::server::{self, check_library, hand_over_data};
use crate::spec::{
    Arrangement, BuildForm, BuildRow, DbmsSpec, DebianLayout, LibraryForm, LibraryVersion,
};
use crate::sql_server::{ControlRow, SettleLoad, table};
use rqps_embed::sqlite::{self, SqliteConnection};
use rqps_host::child::{self, ChildTask};
use rqps_host::user::{Identity, User};
use rqps_host::{confinement, host};
use rqps_model::build::{Build, Dbms, Version};
use rqps_model::endpoint::{Endpoint, Login};

/// The hidden subcommand that runs [`sqlite_process`].
pub const SQLITE_COMMAND: &str = "sqlite-statements";

/// Milliseconds that a statement of the control plane waits for a lock.
const BUSY_TIMEOUT_MS: u32 = 10_000;
/// Longest answer of the process with the library, which may be hostile.
const ANSWER_MAX: u64 = 64 << 20;

/// A SQLite database.
struct Sqlite {
    site: Site,
}

/// The request of the subcommand: one JSON value on standard input.
#[derive(Debug, Serialize, Deserialize)]
struct SqliteRequest {
    library: Option<PathBuf>,
    run_as: Option<Identity>,
    path: PathBuf,
    /// True for a file of somebody else, in which nothing may change.
    read_only: bool,
    statements: Vec<String>,
}

/// The rows of each statement, or what SQLite says against it.
pub type SqliteAnswers = Vec<Result<Vec<ControlRow>, String>>;

/// A library of SQLite with a database file, each question answered by a process of its own.
pub struct SqliteFile<'a> {
    /// The library.
    pub build: &'a Build,
    /// The program of rqps itself.
    pub program: &'a Path,
    /// The user of the process, if rqps runs as root.
    pub run_as: Option<&'a User>,
    /// The database.
    pub path: &'a Path,
    /// True for a file of somebody else, in which nothing may change.
    pub read_only: bool,
    /// Ends the process.
    pub interrupt: &'a Interrupt,
}

impl SqliteFile<'_> {
    /// Runs all statements, whatever one of them answers.
    ///
    /// # Errors
    /// The process cannot be started, or ends without an answer; the text is that of the library
    /// that cannot be loaded or of the file that cannot be opened.
    pub fn ask(&self, statements: Vec<String>) -> io::Result<Result<SqliteAnswers, String>> {
        let work = SqliteRequest {
            library: self.build.root.clone(),
            run_as: self.run_as.map(User::identity),
            path: self.path.to_owned(),
            read_only: self.read_only,
            statements,
        };
        let launcher = launcher(self.build, host::libc_version().as_deref());
        let mut command = match launcher {
            Some(launcher) => {
                let mut command = child::command(launcher, ChildTask::Library);
                command.arg(self.program);
                // The libc of that release is part of the build.
                if let Some(user) = self.run_as {
                    child::become_user(&mut command, user.identity());
                }
                command
            }
            None => child::command(self.program, ChildTask::Library),
        };
        command.arg(SQLITE_COMMAND);
        server::ask(command, &work, ANSWER_MAX, self.interrupt)
    }
}

impl Sqlite {
    fn new(site: Site) -> Sqlite {
        Sqlite { site }
    }

    fn path(&self) -> PathBuf {
        self.site.data.join("rqps.db")
    }

    /// Runs statements as a client would, after the PRAGMAs of the config. Returns the rows of
    /// each.
    fn ask(&self, doing: &str, statements: &[&str]) -> Result<Vec<Vec<ControlRow>>, DbmsError> {
        let doing = format!("{doing} sqlite {}", self.site.build.manifest.version);
        let setup = self.session_setup(false);
        let first = setup.len();
        self.site.check_build().map_err(DbmsError::io(doing.clone()))?;
        let file = SqliteFile {
            build: &self.site.build,
            program: &self.site.warden_program,
            run_as: self.site.run_as.as_ref(),
            path: &self.path(),
            read_only: false,
            interrupt: &self.site.interrupt,
        };
        let all = setup.into_iter().chain(statements.iter().map(|s| s.to_string()));
        let answer = file.ask(all.collect()).map_err(DbmsError::io(doing.clone()))?;
        let rows: Result<Vec<_>, _> = answer.and_then(|each| each.into_iter().collect());
        let mut rows = rows.map_err(|what| DbmsError::ended(doing, what))?;
        Ok(rows.split_off(first.min(rows.len())))
    }
}

/// The program that starts a process with the library, if the library is from a Debian with a newer
/// libc than this host's: a script in the build's folder uses that libc. `None` if the host is new
/// enough.
fn launcher(build: &Build, host_libc: Option<&str>) -> Option<PathBuf> {
    let theirs = Version::new(build.manifest.packages.get("libc6")?);
    let ours = Version::new(host_libc?);
    if ours.numbers().is_empty() || ours.at_least(&theirs.numbers()) {
        return None;
    }
    let script = build.root.as_ref()?.parent()?.join("start");
    script.is_file().then_some(script)
}

/// The whole of the hidden subcommand: opens the database, runs the statements, answers.
pub fn sqlite_process(input: impl Read, output: impl Write) -> ExitCode {
    server::answer(input, output, carry_out)
}

fn carry_out(work: &SqliteRequest) -> Result<SqliteAnswers, String> {
    confinement::become_unprivileged(work.run_as)?;
    let sqlite = match &work.library {
        Some(path) => sqlite::Sqlite::load(path).map_err(|error| error.to_string())?,
        None => sqlite::Sqlite::compiled_in(),
    };
    let sqlite = Arc::new(sqlite);
    let open = if work.read_only { SqliteConnection::open_to_read } else { SqliteConnection::open };
    let mut connection = open(&sqlite, &work.path, BUSY_TIMEOUT_MS)
        .map_err(|error| format!("open {}: {error}", work.path.display()))?;
    let answer = |sql: &String| connection.rows(sql).map_err(|error| format!("{sql}: {error}"));
    Ok(work.statements.iter().map(answer).collect())
}

/// PRAGMAs whose values are kept with a run.
const PRAGMAS: [&str; 11] = [
    "auto_vacuum", "cache_size", "encoding", "freelist_count", "journal_mode", "mmap_size",
    "page_count", "page_size", "synchronous", "temp_store", "wal_autocheckpoint",
];

impl ControlPlane for Sqlite {
    fn init(&mut self) -> Result<(), DbmsError> {
        hand_over_data(&self.site).map(drop)
    }

    /// Opens the file once with the config, so that a wrong setting or library shows here.
    fn start(&mut self) -> Result<(), DbmsError> {
        check_library(&self.site)?;
        self.ask("start", &["SELECT 1"]).map(drop)
    }

    fn endpoint(&self) -> (Endpoint, Login) {
        let library = self.site.build.root.clone();
        (Endpoint::File { path: self.path(), library }, Login::default())
    }

    fn launcher(&self) -> Option<PathBuf> {
        launcher(&self.site.build, host::libc_version().as_deref())
    }

    fn client_group(&self) -> Option<PathBuf> {
        self.site.memory_group.clone()
    }

    fn session_setup(&self, _: bool) -> Vec<String> {
        self.site.config.text.lines().map(|line| format!("PRAGMA {line}")).collect()
    }

    fn reported_version(&mut self) -> Result<String, DbmsError> {
        let rows = self.ask("ask the version of", &["SELECT sqlite_version()"])?;
        let first = rows.into_iter().flatten().flatten().next();
        Ok(first.flatten().unwrap_or_default())
    }

    fn debug_build(&mut self) -> Result<Option<String>, DbmsError> {
        let rows = self.ask("ask the options of", &["PRAGMA compile_options"])?;
        let mut options = rows.into_iter().flatten().flatten().flatten();
        Ok(options.any(|option| option == "DEBUG").then(|| "SQLITE_DEBUG".to_owned()))
    }

    /// Statistics and a checkpoint. SQLite does nothing in the background, so there is nothing to
    /// wait for afterwards.
    fn settle(
        &mut self,
        _load: &SettleLoad,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), DbmsError> {
        progress("analyze and checkpoint");
        self.ask("settle", &["ANALYZE", "PRAGMA wal_checkpoint(TRUNCATE)"]).map(|_| ())
    }

    fn status(&mut self) -> Result<Vec<(String, String)>, DbmsError> {
        let mut statements: Vec<String> =
            PRAGMAS.iter().map(|name| format!("PRAGMA {name}")).collect();
        statements.push("PRAGMA compile_options".to_owned());
        let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
        let mut answers = self.ask("read the status of", &statements)?;
        let options = answers.pop().unwrap_or_default();
        let named = PRAGMAS.iter().zip(answers).map(|(name, rows)| {
            let value = rows.into_iter().flatten().next().flatten();
            vec![Some((*name).to_owned()), value]
        });
        Ok(vec![
            ("pragmas.tsv".to_owned(), table("pragma\tvalue", &named.collect::<Vec<ControlRow>>())),
            ("compile_options.tsv".to_owned(), table("option", &options)),
        ])
    }

    /// Moves the rest of the write-ahead log into the database, so that the file alone is all.
    fn stop(&mut self) -> Result<(), DbmsError> {
        if !self.path().exists() {
            return Ok(());
        }
        self.ask("stop", &["PRAGMA wal_checkpoint(TRUNCATE)"]).map(|_| ())
    }
}

// SQLite, compiled into this program or loaded from a shared library.

pub(crate) const SPEC: DbmsSpec = DbmsSpec {
    dbms: Dbms::Sqlite,
    form: BuildForm::Library(LibraryForm {
        file: "libsqlite3.so",
        is_root: true,
        example: "name the shared library itself, libsqlite3.so",
        // Its largest builds have a few MB.
        bytes_max: 256 << 20,
        symbol: b"sqlite3_prepare_v2\0",
        api: "SQLite's functions",
        version: LibraryVersion::Strings,
        compiled_in: Some(compiled_in),
    }),
    builds: &[
        BuildRow::debian("3.34", "", "bullseye", &["libsqlite3-0"]),
        BuildRow::debian("3.40", "", "bookworm", &["libsqlite3-0"]),
        BuildRow::debian("3.46", "", "trixie", &["libsqlite3-0"]),
    ],
    instead: "sqlite for the compiled-in version, a version from `rqps builds sqlite`, \
              sqlite=deb:SUITE/libsqlite3-0 for a Debian suite, or sqlite=PATH with the path of a \
              libsqlite3.so",
    debian: Some(DebianLayout {
        usual_package: "libsqlite3-0",
        arrangement: Arrangement::Library { file: "libsqlite3.so.0" },
    }),
    configs: &[
        ("default", include_str!("../../../configs/sqlite/default.conf")),
        ("small-cache", include_str!("../../../configs/sqlite/small-cache.conf")),
        ("installed", include_str!("../../../configs/sqlite/installed.conf")),
    ],
    recipes: &[
        ("amalgamation", include_str!("../../../configs/build/sqlite/amalgamation.toml")),
        ("sources", include_str!("../../../configs/build/sqlite/sources.toml")),
    ],
    control: |site| Ok(Box::new(Sqlite::new(site))),
    ..DbmsSpec::NONE
};

fn compiled_in() -> (String, String) {
    let version = libsqlite3_sys::SQLITE_VERSION.to_string_lossy();
    let source = libsqlite3_sys::SQLITE_SOURCE_ID.to_string_lossy();
    (version.to_string(), format!("{version} {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::build::{Dbms, Manifest};

    #[test]
    fn a_library_of_a_newer_libc_needs_a_launcher() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("start");
        let build = |libc: Option<&str>| Build {
            root: Some(folder.path().join("libsqlite3.so")),
            manifest: Manifest {
                packages: libc.iter().map(|v| ("libc6".to_owned(), v.to_string())).collect(),
                ..Manifest::new(Dbms::Sqlite, Version::new("3.46.1"), String::new(), String::new())
            },
            cache: None,
        };
        let newer = build(Some("2.41-12+deb13u4"));
        assert_eq!(launcher(&newer, Some("2.36")), None, "there is no script");
        std::fs::write(&script, "").unwrap();
        assert_eq!(launcher(&newer, Some("2.36")), Some(script));
        assert_eq!(launcher(&newer, Some("2.41")), None);
        assert_eq!(launcher(&newer, Some("2.42")), None);
        assert_eq!(launcher(&newer, None), None);
        assert_eq!(launcher(&build(Some("2.31-13+deb11u11")), Some("2.36")), None);
        assert_eq!(launcher(&build(None), Some("2.36")), None);
    }
}
