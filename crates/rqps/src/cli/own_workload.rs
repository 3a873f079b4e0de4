//! Workloads in the user's own files: reads them, checks them against the plan, and asks before
//! they write to a server that rqps did not start.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::cli::args::{GuestOptions, Init, VerifyData};
use crate::cli::folders::{self, program};
use crate::cli::questions::{self, confirm};
use crate::cli::{dump, exit, terminal};
use rqps_bench::client;
use rqps_bench::spec::{CliContext, look_apart};
use rqps_bench::sql;
use rqps_bench::sql::draft::{self, AskDatabase, DatabaseSurvey, survey};
use rqps_bench_lua as lua;
use rqps_bench_vector::analyze::verify::{self, DataCheck, Progress, Seeded};
use rqps_bench_vector::data::{VectorSet, files, statistics};
use rqps_dbms::Interrupt;
use rqps_driver::load_changes;
use rqps_driver::request::RequestBody;
use rqps_host::child::{self, ChildTask};
use rqps_host::confinement;
use rqps_host::fingerprint::Fingerprint;
use rqps_lab::benchmarks::{self, BenchmarkSpec};
use rqps_lab::plan::{Interleave, Plan, PlanDraft};
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::bounded;
use rqps_model::build::{BuildSource, Target};
use rqps_model::dialect::Dialect;
use rqps_model::sql_workload::{ByDialect, PinnedFile, SqlLoad, SqlShape, SqlStep};
use rqps_model::vector::{DataSource, Distance, Filter, PgBuild, Present};
use rqps_plans::sqlite::Library;
use rqps_text::{UTF8_HINT, toml_reader};
use rqps_wire::dsn::{self, Dsn};
use rqps_wire::mysql::MysqlClient;
use rqps_wire::password::{self, Known};
use rqps_wire::postgres::PostgresClient;

/// The benchmark of `--bench`.
pub(super) struct SaidBenchmark {
    /// The row of the benchmark.
    pub spec: &'static BenchmarkSpec,
    /// Its workload file, if it has one.
    pub file: Option<PathBuf>,
    /// True if that file is a trace.
    is_trace: bool,
    /// The text after the name and colon in each `--bench`.
    what: Vec<String>,
}

/// The benchmark of `--bench NAME`, `--bench NAME:FILE` or several `--bench NAME:WHAT`.
///
/// # Errors
/// No such benchmark, or two; a file for a benchmark that takes none, or no file for one that
/// needs it.
pub(super) fn benchmark(words: &[String]) -> Result<SaidBenchmark> {
    let parts: Vec<(&str, &str)> =
        words.iter().map(|word| word.split_once(':').unwrap_or((word, ""))).collect();
    let Some((name, what)) = parts.first().copied() else { bail!("run a benchmark: none named") };
    let is_trace = name == TRACE;
    let name = if is_trace { sql::SPEC.name } else { name };
    let spec = benchmarks::named(name).map_err(anyhow::Error::msg)?;
    let is_other = |other: &str| if is_trace { other != TRACE } else { other != name };
    if let Some((other, _)) = parts.iter().find(|(other, _)| is_other(other)) {
        bail!(
            "run the benchmarks `{name}` and `{other}`: a comparison has one\nhint: make a \
             comparison of each"
        );
    }
    if spec.words.is_some() {
        let what = parts.iter().map(|(_, what)| (*what).to_owned()).collect();
        return Ok(SaidBenchmark { spec, file: None, is_trace, what });
    }
    if parts.len() > 1 {
        bail!("run the benchmark `{name}`: --bench names it {} times; give it once", parts.len());
    }
    let is_file = words.iter().any(|word| word.contains(':'));
    match (&spec.file, is_file) {
        (Some(_), false) => bail!(
            "run the benchmark `{name}`: it needs a workload file, such as --bench {name}:shop.toml\
             \nhint: `rqps init` writes one from a running database"
        ),
        (None, true) => {
            bail!("run the benchmark `{name}`: it takes no file; leave out `:{what}`")
        }
        _ => {
            let file = is_file.then(|| PathBuf::from(what));
            Ok(SaidBenchmark { spec, file, is_trace, what: Vec::new() })
        }
    }
}

/// Applies `--bench` and the options after `--` to the workload.
///
/// # Errors
/// A file cannot be read, or a word is unknown; the text names the place.
pub(super) fn take(
    said: &SaidBenchmark,
    options: &[String],
    workload: &mut Workload,
) -> Result<()> {
    let name = said.spec.name;
    let Some(words) = &said.spec.words else {
        if let Some(option) = options.first() {
            bail!(
                "run the benchmark `{name}`: it takes no options after `--`; leave out `{option}`\n\
                 hint: --set changes its settings"
            );
        }
        return match &said.file {
            Some(path) if said.is_trace => replay(workload, path),
            Some(path) => read(said.spec, workload, path),
            None => Ok(()),
        };
    };
    let read =
        |path: &Path| read_text(path).map_err(|error| format!("read {}: {error}", path.display()));
    let note = |text: &str| info!("rqps: {text}");
    let look = |file: &Path, with_help| look(name, file, with_help);
    let words_said =
        CliContext { what: &said.what, options, read: &read, look: &look, note: &note };
    let taken = (words.take)(workload, &words_said).map_err(anyhow::Error::msg);
    taken.with_context(|| format!("run the benchmark `{name}`"))?;
    pin(workload, Path::new("/"))
}

/// The declarations of a user's script or program.
fn look(benchmark: &str, file: &Path, with_help: bool) -> Result<String, String> {
    let program = program().map_err(|error| error.to_string())?;
    let mut rqps = child::command(program, ChildTask::Work);
    rqps.env_clear().envs(confinement::environment(folders::variable));
    let command = match benchmark {
        "client" => client::driver::CLIENT_COMMAND,
        _ => lua::driver::LUA_COMMAND,
    };
    look_apart(rqps, command, file, if with_help { &["--with-help"] } else { &[] })
}

/// The text of a file that a user wrote.
///
/// # Errors
/// The file cannot be read, or is not UTF-8; the text names the place in it.
fn read_text(path: &Path) -> Result<String, String> {
    let bytes = bounded::bytes(path, bounded::WRITTEN_MAX).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..valid]);
        let place = toml_reader::position(&before, valid);
        format!("{}it is not UTF-8{UTF8_HINT}", place.prefix())
    })
}

/// Reads a workload file into the workload.
///
/// # Errors
/// The file cannot be read; the text names the place in it.
fn read(spec: &BenchmarkSpec, workload: &mut Workload, path: &Path) -> Result<()> {
    let Some(own) = &spec.file else { return Ok(()) };
    let shown = path.display();
    let text = read_text(path).map_err(|error| {
        let way_out = format!("\nhint: rqps init DSN -o {shown} drafts one");
        let hint = if path.exists() { String::new() } else { way_out };
        anyhow!("read the workload file {shown}: {error}{hint}")
    })?;
    (own.read)(workload, &text)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("use the workload file {}", path.display()))?;
    pin(workload, &folder_of(path)?)?;
    sql::fit(workload).map_err(anyhow::Error::msg)
}

/// The name after `--bench` of a trace, and of its only step.
const TRACE: &str = "trace";

/// A workload of one step that replays a trace: `--bench trace:FILE` and, after commas, files of SQL
/// that make the tables on builds that rqps starts.
///
/// # Errors
/// As [`read`].
fn replay(workload: &mut Workload, said: &Path) -> Result<()> {
    let said = said.to_str().context("read a trace: its name is not UTF-8")?;
    let mut names = said.split(',').map(str::to_owned);
    let trace = names.next();
    if let Some(missing) = trace.as_ref().filter(|trace| !Path::new(trace).exists()) {
        bail!(
            "read the trace {missing}: no such file\nhint: rqps record --dbms NAME --log FILE -o \
             {missing} makes one of the log of a server"
        );
    }
    let schema: Vec<String> = names.collect();
    let load = SqlLoad { schema: Some(ByDialect::All(schema.clone())), ..SqlLoad::default() };
    let step = SqlStep { name: "replay".to_owned(), trace, ..SqlStep::default() };
    let shape = SqlShape {
        load: (!schema.is_empty()).then_some(load),
        step: vec![step],
        ..SqlShape::default()
    };
    workload.shape = BenchmarkParameters::Sql(Box::new(shape));
    pin(workload, &std::path::absolute(".").context("find the current folder")?)?;
    sql::fit(workload).map_err(anyhow::Error::msg)
}

/// The absolute path of the folder of a file.
///
/// # Errors
/// There is no current folder.
pub(super) fn folder_of(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).context("find the folder of the workload")?;
    Ok(path.parent().unwrap_or(Path::new("/")).to_owned())
}

/// Stores the lengths and hashes of the workload's files in it. Searches in `folder`, unless the
/// workload names another. A file with a stored hash must be unchanged.
///
/// # Errors
///
/// A file is missing or has changed.
pub(super) fn pin(workload: &mut Workload, folder: &Path) -> Result<()> {
    let Some(own) = &benchmarks::of(workload).file else { return Ok(()) };
    let folder = match (own.folder)(workload) {
        Some(said) => folder.join(said),
        None => folder.to_owned(),
    };
    let mut found = BTreeMap::new();
    for (name, known) in (own.files)(workload) {
        let now = length_and_hash(&folder.join(&name))?;
        if known.is_some_and(|known| known != now) {
            bail!(
                "use {}: the file has changed since the plan was made\nhint: make the plan again, \
                 or restore the file",
                folder.join(&name).display()
            );
        }
        found.insert(name, now);
    }
    (own.pin)(workload, &folder, found);
    Ok(())
}

/// Length and SHA-256 of a file.
fn length_and_hash(path: &Path) -> Result<PinnedFile> {
    let doing = || format!("read {}", path.display());
    if path.is_dir() {
        bail!("{}: it is a folder", doing());
    }
    let print = Fingerprint::of(path).with_context(doing)?;
    Ok(PinnedFile { sha256: print.sha256, bytes: print.bytes })
}

/// Allows the scripts of the plan to run programs if `--allow-shell` is given.
///
/// # Errors
///
/// The benchmark has no such scripts.
pub(super) fn allow_shell(plan: &mut PlanDraft, is_allowed: bool) -> Result<()> {
    if !is_allowed {
        return Ok(());
    }
    if lua::settings::shape(&plan.workload).is_none() {
        bail!(
            "allow programs: --allow-shell is only for scripts for sysbench\nhint: leave it out; \
             `{}` runs no programs",
            plan.benchmark()
        );
    }
    Ok(benchmarks::set(&mut plan.workload, "shell=on")?)
}

/// Refuses scripts that may run programs, for a command that has no option to allow it.
///
/// # Errors
///
/// The plan allows its scripts to run programs.
pub(super) fn refuse_programs(plan: &Plan) -> Result<()> {
    if lua::settings::shape(&plan.workload).is_some_and(|shape| shape.shell) {
        bail!(
            "bisect with scripts that may run programs: what these cost would count as the \
             database's\nhint: leave out shell=on"
        )
    } else {
        Ok(())
    }
}

/// Asks before the user's statements change rows on a server that rqps did not start.
///
/// # Errors
/// The answer is no, or standard input is no terminal.
pub(super) fn ask(plan: &Plan, guest: &GuestOptions) -> Result<()> {
    if lua::settings::shape(&plan.workload).is_some_and(|shape| shape.shell) && !guest.allow_shell {
        bail!(
            "run scripts that may run programs: the plan says `shell = true`\n\
             hint: add --allow-shell if you trust them"
        );
    }
    if !plan.brings_statements() {
        return Ok(());
    }
    let is_visitor = plan.is_visitor();
    let is_guest = |target: &&Target| target.source.is_elsewhere();
    let guests: Vec<&Target> = plan.targets.iter().filter(is_guest).collect();
    let restored = after_restore(plan).filter(|_| is_visitor);
    if let (Some(target), Some(step)) = (guests.first(), restored) {
        bail!(
            "run the step {step} on {}: it needs a fresh copy of the data, and rqps makes none on \
             a server that others use\nhint: remove its `fresh`",
            target.label
        );
    }
    let load = if is_visitor { load_words(plan, &guests)? } else { None };
    let steps = writing_steps(plan);
    if guests.is_empty() || (steps.is_empty() && load.is_none()) || guest.yes {
        return Ok(());
    }
    let labels: Vec<&str> = guests.iter().map(|target| target.label.as_str()).collect();
    let (what, instead) = changes(load, &steps.join(", "), &labels.join(", "));
    if !std::io::stdin().is_terminal() {
        bail!(
            "run statements on a server that others use: {what}\nhint: add --yes to allow it, or \
             {instead}"
        );
    }
    if !confirm(&format!("rqps: {what}, which is not a copy. Go on?"))? {
        bail!("run statements on a server that others use: not confirmed");
    }
    Ok(())
}

/// A description of the changes in databases that others use, and a way to avoid them.
fn changes(load: Option<String>, steps: &str, labels: &str) -> (String, &'static str) {
    let Some(load) = load else {
        let what = format!("{steps} may change rows of the database of {labels}");
        return (what, "leave the steps out with --steps");
    };
    let and_steps = match steps {
        "" => String::new(),
        steps => format!(", and {steps} may change rows,"),
    };
    let what = format!("{load}{and_steps} in the database of {labels}");
    (what, "remove `load = true` from [load] to measure the tables that are there")
}

/// The first step that begins on a fresh copy of the data.
fn after_restore(plan: &Plan) -> Option<String> {
    use rqps_model::benchmark::Phase;
    let phases = plan.phases(plan.targets.first()?).ok()?;
    let mut later = phases.iter().skip_while(|phase| !matches!(phase, Phase::Restore));
    later.find_map(|phase| match phase {
        Phase::Measure(step) => Some(step.name.clone()),
        Phase::Settle | Phase::Restore => None,
    })
}

/// The steps of the plan that may write, by their names in its file.
fn writing_steps(plan: &Plan) -> Vec<String> {
    use rqps_model::benchmark::Phase;
    let phases = plan.targets.first().and_then(|first| plan.phases(first).ok());
    let mut names = Vec::new();
    for phase in phases.unwrap_or_default() {
        let Phase::Measure(step) = phase else { continue };
        let name = step.client_count.as_ref().map_or(&step.name, |count| &count.step);
        if benchmarks::may_write(&plan.workload, &step) && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// A plan read from `path`, with the hashes of its workload's files.
///
/// # Errors
///
/// As [`pin`].
pub(super) fn of_plan(mut plan: PlanDraft, path: &Path) -> Result<Plan> {
    if plan.is_visitor() {
        pin(&mut plan.workload, &folder_of(path)?)?;
    }
    Ok(Plan::build(plan)?)
}

/// A description of the loads on the servers of these targets; `None` if no target is loaded.
///
/// # Errors
/// A file cannot be read; a later block would find tables of an earlier one; two targets would load
/// into one database at the same time.
fn load_words(plan: &Plan, targets: &[&Target]) -> Result<Option<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut places: Vec<&BuildSource> = Vec::new();
    for target in targets {
        let Some(RequestBody::LoadFiles(load)) = plan.load_request(target) else { continue };
        let doing = || format!("load tables on {}", target.label);
        let dialect = target.dbms.dialect();
        let found = load_changes::of_load(&load, dialect);
        let changed = found.map_err(anyhow::Error::msg).with_context(doing)?.relations;
        let kept = load_changes::undropped(&load, dialect, &changed);
        if plan.blocks.most() > 1 && !kept.is_empty() {
            let all: Vec<String> =
                changed.iter().rev().map(|relation| relation.drop_entry()).collect();
            let kept: Vec<&str> = kept.iter().map(|relation| relation.name.as_str()).collect();
            bail!(
                "load tables on {}: each block loads anew, and `drop` of [load] does not name {}\n\
                 hint: if nothing else is in them, add drop = {all:?} to [load]",
                target.label,
                kept.join(", ")
            );
        }
        if plan.interleave != Interleave::Run && places.contains(&&target.source) {
            bail!(
                "load tables on {}: another target loads into the same database\n\
                 hint: give each target its own database, or use --interleave run",
                target.label
            );
        }
        places.push(&target.source);
        let said = load_changes::words(&load, dialect, &changed);
        if !words.contains(&said) {
            words.push(said);
        }
    }
    let all = words.join(", or ");
    Ok((!all.is_empty()).then(|| format!("each block {all}")))
}

// `rqps init`: writes a workload file from a running database.

/// Time limit for connecting.
const CONNECT: Duration = Duration::from_secs(20);

/// Time limit for each answer of the server.
const ANSWER: Duration = Duration::from_secs(300);

/// Time after which nothing more is asked: the draft says what is not known.
const SURVEY: Duration = Duration::from_secs(3600);

/// `rqps init`.
pub(super) fn init(words: &Init) -> Result<u8> {
    let out = &words.out;
    if out.exists() {
        bail!("write {}: it already exists\nhint: name another file with -o", out.display());
    }
    let (dialect, from, found, client) = if Dsn::looks_like(&words.database) {
        of_server(&words.database)?
    } else {
        of_file(Path::new(&words.database))?
    };
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    let dump = words.dump.then(|| format!("{stem}-dump.sql"));
    let (text, files) = draft::draft(dialect, &from, &stem, &found, dump.as_deref());
    let dump = dump.map(|name| out.with_file_name(name));
    let beside: Vec<(PathBuf, String)> =
        files.into_iter().map(|file| (out.with_file_name(file.name), file.text)).collect();
    let mut new = beside.iter().map(|(path, _)| path).chain(&dump);
    if let Some(path) = new.find(|path| path.exists()) {
        bail!("write {}: it already exists\nhint: name another file with -o", path.display());
    }
    for left_out in &found.left_out {
        info!("rqps: {left_out}");
    }
    if let Some(dump) = &dump {
        dump::write(client, dump)?;
    }
    // The workload file is last: it names the others.
    let edits = text.matches("EDIT:").count();
    for (path, text) in beside.into_iter().chain([(out.clone(), text)]) {
        terminal::put(Some(&path), text.as_bytes())?;
        info!("rqps: wrote {}", path.display());
    }
    if edits > 0 {
        info!("rqps: {edits} values are marked with EDIT, because rqps cannot infer them");
    }
    info!("hint: rqps compare A B --bench sql:{}", out.display());
    Ok(exit::FINE)
}

/// What is drafted from: its dialect, its name, what it holds, and the client that dumps it.
type Source = (Dialect, String, DatabaseSurvey, Command);

fn of_server(text: &str) -> Result<Source> {
    let from = dsn::without_password(text);
    let doing = || format!("draft a workload from {from}");
    let Known { mut dsn, notes, .. } =
        password::known(text, &folders::variable).with_context(doing)?;
    for note in notes {
        info!("rqps: {note}");
    }
    questions::of_server(&mut dsn).with_context(doing)?;
    let dialect = dsn.dialect();
    let mut ask: Box<AskDatabase<'_>> = match dialect {
        Dialect::Mysql => {
            let client = MysqlClient::connect(&dsn.address, &dsn.login, CONNECT);
            let mut client = client.with_context(doing)?;
            client.set_answer_limit(Some(ANSWER));
            Box::new(move |sql| client.rows(sql).map_err(|error| error.to_string()))
        }
        _ => {
            let client = PostgresClient::connect(&dsn.address, &dsn.login, CONNECT);
            let mut client = client.with_context(doing)?;
            client.set_answer_limit(Some(ANSWER));
            // So that the server reads statements of its statistics as rqps does.
            client.simple("SET standard_conforming_strings = on").with_context(doing)?;
            Box::new(move |sql| client.rows(sql).map_err(|error| error.to_string()))
        }
    };
    let end = Instant::now() + SURVEY;
    let mut ask = |sql: &str| {
        if Instant::now() < end {
            ask(sql)
        } else {
            Err("the database had answered for an hour".to_owned())
        }
    };
    let found = survey(dialect, &mut ask).map_err(anyhow::Error::msg).with_context(doing)?;
    Ok((dialect, from, found, dump::of_server(&dsn)))
}

/// The first bytes of a database of SQLite (sqlite.org/fileformat.html).
const SQLITE_HEAD: &[u8] = b"SQLite format 3\0";

fn of_file(path: &Path) -> Result<Source> {
    let doing = || format!("draft a workload from {}", path.display());
    if !path.is_file() {
        bail!("{}: it is neither a file nor a DSN such as postgres://user@host/db", doing());
    }
    let mut head = Vec::new();
    // Since then, somebody may have put a pipe there, which would wait for a writer.
    let file = bounded::plain(path).with_context(doing)?;
    file.take(SQLITE_HEAD.len() as u64).read_to_end(&mut head).with_context(doing)?;
    if !head.is_empty() && head != SQLITE_HEAD {
        bail!(
            "{}: it is no database of SQLite\nhint: name the file of one, or a DSN such as \
             postgres://user@host/db",
            doing()
        );
    }
    let database =
        Library::of_user(path, &program()?, &Interrupt::default()).with_context(doing)?;
    let mut ask = |sql: &str| database.rows(sql).map_err(|error| format!("{error:#}"));
    let found = survey(Dialect::Sqlite, &mut ask).map_err(anyhow::Error::msg);
    let client = dump::of_file(path).with_context(doing)?;
    Ok((Dialect::Sqlite, path.display().to_string(), found.with_context(doing)?, client))
}

// `rqps vector verify-data`: checks a vector data set.

/// Neighbours per query in the statistics.
const K: usize = 100;
/// Queries whose given neighbours are checked.
const SAMPLE: usize = 500;
/// Minimum interval between progress messages.
const PAUSE: Duration = Duration::from_secs(10);

/// `rqps vector verify-data`.
pub(super) fn verify(words: &VerifyData) -> Result<u8> {
    let (mut workload, _) = benchmarks::workload("vector", "full").map_err(anyhow::Error::msg)?;
    for setting in &words.settings {
        benchmarks::set(&mut workload, setting)?;
    }
    let BenchmarkParameters::Vector(shape) = &workload.shape else { return Ok(exit::USAGE) };
    let wanted = words.indexes.as_deref().map(indexes).transpose()?;
    let cache = folders::cache(words.cache.cache.as_deref()).join("datasets");
    info!("rqps: generating or reading the data set");
    let data = VectorSet::open(&shape.data, workload.rows, shape.k as usize, Some(&cache))?;
    info!("rqps: finding the {K} exact neighbours of {} queries", data.test.rows());
    let truth = data
        .truth(Filter::None, Present::All, K, Some(&cache))
        .context("find the exact neighbours")?;
    out!("{} [{}], {:?}", data.name, data.hash, data.distance);
    let sized = (data.train.rows(), data.train.dims) == verify::SPECIFIED;
    let specified = sized && matches!(&shape.data, DataSource::Fashion { rounded: true, .. });
    // A file of this size and distance may be the real set with published recalls; its name proves
    // nothing.
    let comparable = specified || (sized && is_the_real_one(&data));
    let found = statistics(&data, &truth);
    if found.equal_rows > 0.0 {
        out!(
            "{:.2} % of the rows equal another row, and {:.2} % of the queries have ties at the \
             10th neighbour: recall counts rows as near as the k-th, and scatters more between \
             builds of an index",
            100.0 * found.equal_rows,
            100.0 * found.ties
        );
    }
    let mut checks = verify::statistics(&found, specified);
    let builds = wanted.unwrap_or_else(|| {
        if comparable {
            verify::published()
        } else {
            vec![PgBuild { m: 8, ef_construction: 32 }, PgBuild { m: 16, ef_construction: 64 }]
        }
    });
    let mut progress = Watch::new(&data, &builds);
    let hear = &mut |news| progress.hear(&news);
    let found = verify::graphs(&data, &truth, &builds, comparable, hear);
    checks.extend(verify::recalls(&found, comparable));
    let mut wrong = print(&checks);
    if !specified {
        out!(
            "rqps knows the expected statistics of 60000 generated rows of 784 dimensions, and the \
             expected recall of these rows and of fashion-mnist"
        );
    }
    wrong += tell_given(&data, &files::wrong(&data, &truth, SAMPLE));
    match wrong {
        0 => out!("all checks passed"),
        wrong => out!("{wrong} checks FAILED"),
    }
    Ok(if wrong == 0 { exit::FINE } else { exit::RUN_FAILED })
}

/// Checks the user's vectors before any download or start.
pub(super) fn check_files(plan: &Plan) -> Result<()> {
    if let BenchmarkParameters::Vector(shape) = &plan.workload.shape
        && let DataSource::Files { .. } = &shape.data
    {
        VectorSet::open(&shape.data, plan.workload.rows, shape.k as usize, None)?;
    }
    Ok(())
}

/// fashion-mnist has bytes, euclidean distance, and 10,000 queries.
fn is_the_real_one(data: &VectorSet) -> bool {
    data.distance == Distance::Euclidean
        && data.test.rows() == 10_000
        && matches!(data.train.values, rqps_bench_vector::data::Numbers::Bytes(_))
}

fn indexes(text: &str) -> Result<Vec<PgBuild>> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let words = text.split(',').map(|word| PgBuild::try_from(word.trim().to_owned()));
    words.collect::<Result<_, _>>().map_err(anyhow::Error::msg).context("read --indexes")
}

/// Prints a line per check. Returns the number of failed checks.
fn print(checks: &[DataCheck]) -> u32 {
    out!("{:<42} {:>9} {:>9} {:>19}  verdict  expected by", "check", "found", "expected", "range");
    let mut wrong = 0;
    for check in checks {
        let expected = check.expected.map_or("-".to_owned(), |value| format!("{value:.4}"));
        let range = match &check.range {
            Some(range) => format!("{:.4} … {:.4}", range.start(), range.end()),
            None => "-".to_owned(),
        };
        let verdict = match (&check.range, check.holds()) {
            (None, _) => "-",
            (Some(_), true) => "ok",
            (Some(_), false) => "FAILED",
        };
        let source = match check.interval {
            None => check.source.to_owned(),
            Some(interval) => format!(
                "{}; mean of several graphs, 95 % interval {:.4} … {:.4}{}",
                check.source,
                interval.low,
                interval.high,
                if check.is_close() { ", within the limit" } else { "" }
            ),
        };
        wrong += u32::from(!check.holds());
        let line = format!(
            "{:<42} {:>9.4} {expected:>9} {range:>19}  {verdict:<7}  {source}",
            check.what, check.found
        );
        out!("{}", line.trim_end());
    }
    wrong
}

/// Prints whether the neighbours in the file are correct. Returns 1 if they are wrong.
fn tell_given(data: &VectorSet, wrong: &Option<String>) -> u32 {
    match (&data.given, wrong) {
        (_, Some(what)) => out!("the file's neighbours are WRONG: {what}"),
        (Some(given), None) => {
            out!("the file's neighbours (k = {}) agree with the exact ones", given.k);
        }
        (None, None) => {}
    }
    u32::from(wrong.is_some())
}

/// Prints the progress of the indexes on stderr.
struct Watch {
    rows: usize,
    began: Instant,
    told: Instant,
    left: Vec<(Seeded, usize)>,
}

impl Watch {
    fn new(data: &VectorSet, builds: &[PgBuild]) -> Watch {
        if !builds.is_empty() {
            info!("rqps: building {} indexes in memory", builds.len());
        }
        let left = builds.iter().map(|build| (Seeded::first(*build), 0)).collect();
        let now = Instant::now();
        Watch { rows: data.train.rows(), began: now, told: now, left }
    }

    fn hear(&mut self, news: &Progress) {
        match news {
            Progress::More(more) => {
                if !more.is_empty() {
                    info!(
                        "rqps: building {} more graphs of indexes whose recall is near its limit",
                        more.len()
                    );
                }
                self.left.extend(more.iter().map(|of| (*of, 0)));
            }
            Progress::Rows(of, rows) => {
                let entry = self.left.iter_mut().find(|(other, _)| other == of);
                if let Some((_, done)) = entry {
                    *done = *rows;
                }
                if self.told.elapsed() > PAUSE {
                    self.told = Instant::now();
                    let begun = self.left.iter().filter(|(_, done)| *done > 0);
                    let begun = begun.map(|(of, done)| {
                        format!("{of}: {} % of the rows", 100 * done / self.rows.max(1))
                    });
                    let begun: Vec<String> = begun.collect();
                    let later = self.left.len() - begun.len();
                    info!("rqps: {}; {later} not yet started", begun.join(", "));
                }
            }
            Progress::Asked(of, points) => {
                self.left.retain(|(other, _)| other != of);
                let points = points.iter().map(|point| {
                    format!(
                        "ef {}: {:.4} ({:.0} distances)",
                        point.ef, point.recall, point.computed
                    )
                });
                info!(
                    "rqps: after {:.0} s, {of}: {}",
                    self.began.elapsed().as_secs_f64(),
                    points.collect::<Vec<_>>().join(", ")
                );
            }
        }
    }
}
