//! `rqps plans`: the plan of every statement on another version, without the data.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;

use crate::cli::args::CacheFolder;
use crate::cli::folders::{self, program, stop_flag};
use crate::cli::questions::{self, confirm};
use crate::cli::terminal::{self, Display};
use crate::cli::{exit, help};
use rqps_bench::sql::steps;
use rqps_builds as obtain;
use rqps_builds::{Cache, PackageClients, Said};
use rqps_dbms::Interrupt;
use rqps_lab::lab::{self, Event, error_text};
use rqps_lab::plan::words;
use rqps_model::bounded;
use rqps_model::build::{Build, BuildSource, Dbms, Target, Version};
use rqps_model::dialect::Dialect;
use rqps_model::safe_path;
use rqps_model::sql_workload::SqlStep;
use rqps_plans::mysql::{self, MysqlSource};
use rqps_plans::postgres::{self, PostgresSource};
use rqps_plans::sqlite::{self, SqliteSource};
use rqps_plans::{PrivatePlace, Rehearsal, Report, SourceFiles, Statement, StatementLog};
use rqps_text::SqlPart;
use rqps_wire::dsn::{self, Dsn};
use rqps_wire::mysql::MysqlClient;
use rqps_wire::password::{self, Known};

/// Time limit for connecting to a source.
const CONNECT: Duration = Duration::from_secs(20);

/// Words before the path of a file of SQLite in a DSN.
const SQLITE_DSN: &str = "sqlite://";

/// Form of the report.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum PlansForm {
    Text,
    Json,
    Html,
}

/// `rqps plans`.
#[derive(Debug, Args)]
pub(super) struct Plans {
    /// The source and --to, or the old and the new version. A source is the DSN of a server, or a
    /// database file of SQLite (a path, or sqlite:///PATH); versions are targets, as for `compare`
    #[arg(required = true, num_args = 1..=2, value_name = "TARGET")]
    #[arg(add = ArgValueCompleter::new(help::targets))]
    pub targets: Vec<String>,
    /// The new version, for a source
    #[arg(long, value_name = "TARGET", add = ArgValueCompleter::new(help::targets))]
    pub to: Option<String>,
    /// The version that the source is used with [default: that of the server; for a file, the
    /// SQLite in rqps]
    #[arg(long, value_name = "TARGET", add = ArgValueCompleter::new(help::targets))]
    pub from: Option<String>,
    /// A file of SQL statements to plan; repeatable [default: for a DSN of Postgres, the statements
    /// of pg_stat_statements that take most of the time]
    #[arg(long, value_name = "FILE", help_heading = "Statements")]
    pub statements: Vec<PathBuf>,
    /// A log of the server: the statements that take most of its time, with their shares;
    /// repeatable. Of Postgres jsonlog, csvlog or a plain log with log_min_duration_statement, of
    /// MySQL and MariaDB the slow log
    #[arg(long, value_name = "FILE", help_heading = "Statements")]
    pub log: Vec<PathBuf>,
    /// A statement to plan; repeatable
    #[arg(long, value_name = "SQL", help_heading = "Statements")]
    pub sql: Vec<String>,
    /// The statements of a workload file, as sql:FILE; for two versions also the files of its load
    #[arg(long, value_name = "NAME", help_heading = "Statements")]
    #[arg(add = ArgValueCompleter::new(help::benchmark))]
    pub bench: Option<String>,
    /// For two versions: a file of SQL that makes the tables; repeatable
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    pub schema: Vec<PathBuf>,
    /// A file of SQL that fills them, or a dump of a source's rows; repeatable
    #[arg(long, value_name = "FILE", help_heading = "Source")]
    pub data: Vec<PathBuf>,
    /// Let values of rows leave the source, into private servers and files of rqps, which it removes
    /// at the end: in statistics that hold such values, and for MySQL and MariaDB in a sample of
    /// the rows where statistics do not suffice
    #[arg(long, help_heading = "Source")]
    pub yes: bool,
    /// Form of the report on stdout
    #[arg(long, value_enum, default_value = "text", help_heading = "Output")]
    pub format: PlansForm,
    /// Also write plans.html, with both trees of each statement side by side, and plans.json into
    /// this folder
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Parent of the temporary folder for private servers [default: /var/tmp]
    #[arg(long, value_name = "DIR", env = "RQPS_WORK")]
    pub work: Option<PathBuf>,
    #[command(flatten)]
    pub cache: CacheFolder,
}

/// Most statements that come from the server's own statistics or logs.
const MOST: usize = 200;

/// Most tables that a question names.
const NAMED: usize = 12;

/// Where schema and statistics come from.
enum Source {
    File(PathBuf),
    Server(Box<Dsn>),
    /// The user's SQL.
    Made,
}

/// The source, and both versions.
pub(super) struct Sides {
    source: Source,
    pub old: Target,
    pub new: Target,
    /// The words of both targets.
    targets: [String; 2],
}

/// The plans of both versions.
pub(super) struct Planned {
    pub report: Report,
    /// The words of both targets.
    pub targets: [String; 2],
}

/// `rqps plans`.
pub(super) fn plans(words: &Plans) -> Result<u8> {
    let report = match planned(words, sides(words)?)? {
        Ok(planned) => planned.report,
        Err(code) => return Ok(code),
    };
    if let Some(folder) = &words.out {
        safe_path::make_folder(folder).with_context(|| format!("make {}", folder.display()))?;
        write(&report, folder)?;
        info!("rqps: wrote {}", folder.join("plans.html").display());
    }
    match words.format {
        PlansForm::Text => out!("{}", rqps_plans::text(&report).trim_end()),
        PlansForm::Json => out!("{}", rqps_model::escape::json(&json(&report)?)),
        PlansForm::Html => out!("{}", rqps_plans::html(&report).trim_end()),
    }
    Ok(match (report.has_changes(), report.has_unknowns()) {
        (true, _) => exit::REGRESSION,
        (false, true) => exit::NO_VERDICT,
        (false, false) => exit::FINE,
    })
}

/// Plans all statements on both versions; an exit code where that failed and was told.
///
/// # Errors
/// The command line is wrong.
pub(super) fn planned(words: &Plans, mut sides: Sides) -> Result<Result<Planned, u8>> {
    let dialect = sides.old.dbms.dialect();
    let mut files = SourceFiles { schema: words.schema.clone(), data: words.data.clone() };
    let mut statements = Vec::new();
    if let Some(word) = &words.bench {
        let is_made = matches!(sides.source, Source::Made);
        of_workload(word, (dialect, is_made), &mut statements, &mut files)?;
    }
    for text in &words.sql {
        for text in rqps_text::reading::statements(dialect, text) {
            let (number, text) = (statements.len() + 1, text.trim().to_owned());
            let origin = "--sql".to_owned();
            statements.push(Statement { number, text, origin, ..Statement::default() });
        }
    }
    for path in &words.statements {
        rqps_plans::statements_of(path, dialect, &mut statements)?;
    }
    let mut logs = StatementLog::new(dialect);
    for path in &words.log {
        logs.read(path)?;
    }
    if let Some(left_out) = logs.statements(MOST, &mut statements) {
        info!("rqps: {left_out}");
    }
    if let (true, Source::Server(dsn), Dialect::Postgres) =
        (statements.is_empty(), &sides.source, dialect)
    {
        statements = postgres(dsn)?.statements(MOST)?;
    }
    if statements.is_empty() {
        bail!(
            "compare plans of no statement\nhint: name files with --statements FILE or --log FILE"
        );
    }
    let stop = stop_flag()?;
    let interrupt = Interrupt(Arc::clone(&stop));
    let place = PrivatePlace::make(words.work.as_deref(), program()?, interrupt)?;
    let (old, new) = builds(words, &mut sides)?;
    let mut tell = |text: &str| info!("rqps: {text}");
    let parts = (&*statements, files, &place);
    let report = prepare(words, &sides, (&old, &new), parts, &mut tell).and_then(|mut ready| {
        // Its servers end before their folders.
        rqps_plans::judge(&statements, &mut ready, &mut tell)
    });
    Ok(match report {
        Ok(report) => Ok(Planned { report, targets: sides.targets }),
        Err(_) if stop.load(Ordering::Relaxed) => {
            error!("rqps: stopped");
            Err(exit::INTERRUPTED)
        }
        Err(error) => {
            error!("rqps: failed to {}", error_text(&error).trim_end());
            Err(exit::RUN_FAILED)
        }
    })
}

fn prepare(
    words: &Plans,
    sides: &Sides,
    (old, new): (&Build, &Build),
    (statements, files, place): (&[Statement], SourceFiles, &PrivatePlace),
    tell: &mut rqps_plans::Tell<'_>,
) -> Result<Rehearsal> {
    match (sides.old.dbms.dialect(), &sides.source) {
        (Dialect::Sqlite, Source::File(path)) => {
            if sqlite::holds_values(path, place)? {
                ask_for_values(words, &format!("sqlite_stat4 of {}", path.display()))?;
            }
            sqlite::prepare((old, new), &SqliteSource::File(path.clone()), place, tell)
        }
        (Dialect::Sqlite, _) => {
            sqlite::prepare((old, new), &SqliteSource::Made(files), place, tell)
        }
        (Dialect::Mysql, Source::Server(dsn)) => {
            let Dsn { address, login, .. } = (**dsn).clone();
            let (consent, data) = (words.yes, files.data);
            let source = MysqlSource::Server { address: Box::new(address), login, consent, data };
            mysql::prepare((old, new), &source, statements, place, tell)
        }
        (Dialect::Mysql, _) => {
            mysql::prepare((old, new), &MysqlSource::Made(files), statements, place, tell)
        }
        (Dialect::Postgres, Source::Server(dsn)) => {
            let mut source = postgres(dsn)?;
            let tables = source.tables_with_values()?;
            if !tables.is_empty() {
                ask_for_values(words, &named(&tables))?;
            }
            postgres::prepare((old, new), source, place, tell)
        }
        (Dialect::Postgres, _) => {
            let source = PostgresSource::make(old, &files, place, tell)?;
            postgres::prepare((old, new), source, place, tell)
        }
        _ => bail!("compare plans of {}: rqps has no planner of it", sides.old.dbms),
    }
}

/// The statements of a workload file, with parameters in the place of its values, and the files of
/// its load.
fn of_workload(
    word: &str,
    (dialect, is_made): (Dialect, bool),
    statements: &mut Vec<Statement>,
    files: &mut SourceFiles,
) -> Result<()> {
    let Some(path) = word.strip_prefix("sql:").map(Path::new) else {
        bail!("compare plans of {word}: only a workload file has statements, as sql:shop.toml");
    };
    let doing = || format!("read {}", path.display());
    let text = bounded::text(path, bounded::WRITTEN_MAX).with_context(doing)?;
    let shape = steps::read(&text).map_err(anyhow::Error::msg).with_context(doing)?;
    let of_step = |step: &SqlStep| {
        let statements = step.event.iter().flat_map(|event| event.statement.clone());
        statements.map(|it| (step.name.clone(), it)).collect::<Vec<_>>()
    };
    for (step, statement) in shape.step.iter().flat_map(of_step) {
        let Some(sql) = steps::of_dialect(&statement.sql, dialect) else { continue };
        let parts = rqps_text::parts(dialect, sql).map_err(anyhow::Error::msg);
        let mut names: Vec<String> = Vec::new();
        let mut text = String::new();
        for part in parts.with_context(doing)? {
            match part {
                SqlPart::Sql(part) => text.push_str(&part),
                SqlPart::Reference(_) if dialect != Dialect::Postgres => text.push('?'),
                SqlPart::Reference(name) => {
                    let known = names.iter().position(|other| *other == name);
                    let at = known.unwrap_or_else(|| {
                        names.push(name);
                        names.len() - 1
                    });
                    text.push_str(&format!("${}", at + 1));
                }
            }
        }
        let (number, origin) = (statements.len() + 1, path.display().to_string());
        statements.push(Statement { number, text, origin, step: Some(step), share: None });
    }
    let Some(load) = shape.load.as_ref().filter(|_| is_made) else { return Ok(()) };
    if !load.data.is_empty() && files.data.is_empty() {
        bail!(
            "{}: its load has CSV files, which `rqps plans` does not load\n\
             hint: name a file of SQL with --data",
            doing()
        );
    }
    let here = path.parent().unwrap_or(Path::new(""));
    let named = load.schema.iter().chain(&load.index);
    let named = named.filter_map(|list| steps::of_dialect(list, dialect)).flatten();
    files.schema.extend(named.map(|name| here.join(name)));
    Ok(())
}

fn postgres(dsn: &Dsn) -> Result<PostgresSource> {
    PostgresSource::connect(&dsn.address, &dsn.login)
        .with_context(|| format!("read the source {}", dsn.address))
}

fn named(tables: &[String]) -> String {
    let shown = tables[..tables.len().min(NAMED)].join(", ");
    match tables.len().saturating_sub(NAMED) {
        0 => format!("of {shown}"),
        more => format!("of {shown}, and {more} more tables"),
    }
}

/// Asks before values of rows leave the source.
fn ask_for_values(words: &Plans, what: &str) -> Result<()> {
    use std::io::IsTerminal;
    if words.yes {
        return Ok(());
    }
    let text = format!(
        "statistics hold values of rows: {what}. rqps needs them on private servers, which it \
         removes at the end; no report shows them"
    );
    if std::io::stdin().is_terminal() {
        if !confirm(&format!("rqps: {text}. Go on?"))? {
            bail!("compare plans: not confirmed");
        }
        return Ok(());
    }
    bail!("compare plans: {text}\nhint: say yes with --yes");
}

/// Both versions by the words of the command line.
///
/// # Errors
/// They name no source and no two versions of one DBMS.
pub(super) fn sides(words: &Plans) -> Result<Sides> {
    let target = |word: &String| -> Result<Target> {
        let found = words::targets(std::slice::from_ref(word))?;
        found.into_iter().next().context("name a target")
    };
    let first = &words.targets[0];
    let file = first.strip_prefix(SQLITE_DSN).map(PathBuf::from);
    let file = file.or_else(|| Some(PathBuf::from(first)).filter(|path| path.is_file()));
    let new_word = match (words.targets.get(1), &words.to) {
        (Some(new), None) | (None, Some(new)) => new.clone(),
        _ => bail!(
            "compare plans: name an old and a new version, or a source and --to\n\
             hint: rqps plans shop.db --to sqlite@3.46.1 --statements q.sql"
        ),
    };
    let new = target(&new_word)?;
    let from = words.from.as_ref();
    // Every other word of a target has one of these.
    let is_word = |word: &str| word.contains(['@', '=', ':']) || Dbms::from_name(word).is_some();
    let sides = if let Some(path) = file {
        if !path.is_file() {
            bail!("compare plans of {}: no such file", path.display());
        }
        let old = from.cloned().unwrap_or_else(|| Dbms::Sqlite.name().to_owned());
        (Source::File(path), old)
    } else if Dsn::looks_like(first) {
        let dsn = server(first)?;
        let old = match from {
            Some(word) => word.clone(),
            None => version_word(&dsn)?,
        };
        (Source::Server(Box::new(dsn)), old)
    } else if words.to.is_some() && !is_word(first) {
        bail!("compare plans of {first}: no such file, and no DSN such as postgres://user@host/db");
    } else {
        (Source::Made, first.clone())
    };
    let (source, old_word) = sides;
    let old = target(&old_word)?;
    let (one, other) = (old.dbms, new.dbms);
    if one == Dbms::Client {
        bail!(
            "compare plans of {first}: rqps itself knows no such DBMS; use postgres://, mysql:// \
             or mariadb://, or a file of SQLite"
        );
    }
    if one.dialect() != other.dialect() {
        bail!("compare plans of {one} and {other}: a statement of one is not one of the other");
    }
    Ok(Sides { source, old, new, targets: [old_word, new_word] })
}

/// A server with its login.
fn server(text: &str) -> Result<Dsn> {
    let doing = || format!("read the source {}", dsn::without_password(text));
    let Known { mut dsn, notes, .. } =
        password::known(text, &folders::variable).with_context(doing)?;
    for note in notes {
        info!("rqps: {note}");
    }
    questions::of_server(&mut dsn).with_context(doing)?;
    Ok(dsn)
}

/// The version of a server as a target.
fn version_word(dsn: &Dsn) -> Result<String> {
    let doing = || format!("ask {} for its version", dsn.address);
    match dsn.dialect() {
        Dialect::Mysql => {}
        Dialect::Postgres => return Ok(format!("postgres@{}", postgres(dsn)?.version()?)),
        _ => bail!("{}: rqps has no planner of it", doing()),
    }
    let client = MysqlClient::connect(&dsn.address, &dsn.login, CONNECT).with_context(doing)?;
    let reported = client.server_version().to_owned();
    let dbms = if reported.contains("MariaDB") { Dbms::Mariadb } else { Dbms::Mysql };
    let numbers = Version::new(reported).numbers();
    let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
    Ok(format!("{}@{}", dbms.name(), numbers.join(".")))
}

fn builds(words: &Plans, sides: &mut Sides) -> Result<(Build, Build)> {
    let cache = lab::open_cache(&folders::cache(words.cache.cache.as_deref()))?;
    let is_asked = matches!(sides.source, Source::Server(_)) && words.from.is_none();
    let old = match build(&sides.old, &cache) {
        Err(error) if is_asked => {
            let (word, build) = near(&sides.old, &cache).ok_or_else(|| {
                error.context(
                    "get the version of the source\nhint: name a near one that `rqps builds` \
                     lists with --from",
                )
            })?;
            sides.targets[0] = word;
            build
        }
        old => old?,
    };
    Ok((old, build(&sides.new, &cache)?))
}

/// The newest build of the branch of a Postgres, whose minor versions plan alike.
fn near(wanted: &Target, cache: &Cache) -> Option<(String, Build)> {
    let BuildSource::Version { version, .. } = &wanted.source else { return None };
    let major = version.numbers().first().copied().filter(|_| wanted.dbms == Dbms::Postgres)?;
    let word = format!("postgres@{major}");
    let target = words::targets(std::slice::from_ref(&word)).ok()?;
    let build = build(target.first()?, cache).ok()?;
    info!("rqps: no build of {version}: {} stands for it", build.manifest.version);
    Some((word, build))
}

fn build(target: &Target, cache: &Cache) -> Result<Build> {
    if let BuildSource::Dsn(_) = target.source {
        bail!("compare plans on {}: name a build; a DSN can only be the source", target.label);
    }
    let clients = PackageClients { stop: stop_flag()?, ..PackageClients::default() };
    let mut display = Display::of_fetches();
    let mut say = |said: Said<'_>| display.show(Event::of_fetch(&target.label, said));
    Ok(obtain::obtain_with(&clients, target.dbms, &target.source, cache, &mut say)?)
}

/// Writes the page and the JSON form into a folder.
pub(super) fn write(report: &Report, folder: &Path) -> Result<()> {
    terminal::put(Some(&folder.join("plans.html")), rqps_plans::html(report).as_bytes())?;
    terminal::put(Some(&folder.join("plans.json")), json(report)?.as_bytes())
}

fn json(report: &Report) -> Result<String> {
    rqps_plans::json(report).context("write the report")
}
