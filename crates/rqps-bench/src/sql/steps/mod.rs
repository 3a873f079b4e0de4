//! Steps of the user's own statements, compiled to scripts for each dialect.
//!
//! The phases of a workload file: its steps in order.

mod statements;
mod values;

pub use self::statements::{of_dbms, of_dialect};

use std::collections::BTreeSet;

use self::statements::{Compiler, all, check_characters, check_load};
use self::values::NamedSources;
use rqps_model::benchmark::{Group, OwnParameters, Phase, RateUnit, Step, StepTurns, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::script::{
    Distribution, Freshness, Script, ScriptEvent, StepParameters, StepPurpose,
};
use rqps_model::sql_workload::{
    ByDialect, ReplayWork, SqlEvent, SqlShape, SqlStatement, SqlStep, TransactionWord,
};
use rqps_text::{SqlPart, parts, reading, toml_reader, words};

/// Isolation levels in SQL.
const LEVELS: [&str; 4] = ["read uncommitted", "read committed", "repeatable read", "serializable"];

/// The limit of a replay of which nothing is known.
const SECONDS: f64 = 60.0;

/// Longest SQL in the description of a step, characters.
const DETAIL: usize = 100;

/// Refuses a workload that cannot run on a DBMS of this dialect.
///
/// # Errors
///
/// The text names the place in the file.
pub fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = shape(workload) else { return Ok(()) };
    let named = NamedSources::of(shape)?;
    if shape.step.is_empty() {
        return Err("the workload has no [[step]]".to_owned());
    }
    let mut names = BTreeSet::new();
    for step in &shape.step {
        let at = step.at.prefix();
        if !names.insert(&step.name) {
            return Err(format!("{at}two steps have the name `{}`", step.name));
        }
        if step.trace.is_some() {
            check_replay(step, dialect).map_err(|fault| format!("{at}{fault}"))?;
            continue;
        }
        compiled(shape, &named, step, dialect).map_err(|fault| {
            if fault.starts_with("line ") { fault } else { format!("{at}{fault}") }
        })?;
    }
    check_used(shape, &named, dialect)?;
    check_load(shape, dialect)
}

fn check_used(shape: &SqlShape, named: &NamedSources, dialect: Dialect) -> Result<(), String> {
    let compiler = Compiler { shape, dialect, named };
    let mut used = BTreeSet::new();
    for statement in shape.statements() {
        for freshness in [Freshness::Event, Freshness::Use, Freshness::Client, Freshness::Reply] {
            used.extend(compiler.used(statement, freshness)?);
        }
    }
    match named.numbers.iter().find(|(_, number)| !used.contains(number)) {
        None => Ok(()),
        Some((name, _)) => Err(match shape.parameter.get(name) {
            Some(parameter) => {
                let at = parameter.at.prefix();
                format!("{at}parameter `{name}` is used by no statement")
            }
            None => format!("`into` gives a value to `{name}`, and no statement uses it"),
        }),
    }
}

/// The names of the steps that may write, by their statements and those of `init`.
pub fn writes(workload: &Workload) -> Vec<String> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let may_write = |step: &&SqlStep| {
        let of_events = step.event.iter().flat_map(|event| &event.statement);
        let mut statements = of_events.flat_map(|statement| all(&statement.sql));
        statements.any(|sql| sql_writes(sql) || reading::may_write(sql) || joins(sql))
            || step.init.iter().any(|sql| !reading::only_sets(sql) && reading::may_write(sql))
            || step.event.iter().any(is_serializable)
            // Nobody reads all of a trace before: it is asked about.
            || step.trace.is_some()
    };
    shape.step.iter().filter(may_write).map(|step| step.name.clone()).collect()
}

/// True if a value would become a part of a name or of a literal.
fn joins(sql: &str) -> bool {
    let of_dialect = |dialect| parts(dialect, sql).unwrap_or_default();
    [Dialect::Postgres, Dialect::Mysql]
        .into_iter()
        .any(|dialect| reading::joins(of_dialect(dialect).iter().map(SqlPart::sql)))
}

/// All phases after the load.
pub fn phases(dialect: Dialect, workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    // The plan was checked before.
    let Ok(named) = NamedSources::of(shape) else { return Vec::new() };
    let mut phases = Vec::with_capacity(shape.step.len());
    for step in &shape.step {
        if step.fresh == Some(true) {
            phases.push(Phase::Restore);
        }
        if let Some(trace) = &step.trace {
            phases.push(Phase::Measure(Box::new(replayed(shape, step, trace, dialect))));
            continue;
        }
        let Ok(script) = compiled(shape, &named, step, dialect) else { continue };
        phases.push(Phase::Measure(Box::new(measured(workload, step, script))));
    }
    phases
}

fn measured(workload: &Workload, step: &SqlStep, script: Script) -> Step {
    let group = group(step);
    let reported = step.reported.unwrap_or(true);
    let usual = if group == Group::Write { workload.write_seconds } else { workload.read_seconds };
    let purpose = if reported { StepPurpose::Result } else { StepPurpose::Warming };
    let rate = match step.unit.as_deref() {
        Some("events") => RateUnit::Transactions,
        _ => RateUnit::Queries,
    };
    Step {
        reported,
        seconds: step.seconds.unwrap_or(usual),
        warmup_seconds: if reported { workload.warmup_seconds } else { 0.0 },
        detail: detail(step, &script),
        parameters: StepParameters {
            purpose,
            clients: step.clients,
            events_per_second: step.rate,
            ..StepParameters::default()
        },
        turns: StepTurns::of_clients(step.rate.is_none()),
        only_reads: !is_writing(step),
        ..Step::new(&step.name, group, rate, script)
    }
}

/// How many times as fast as recorded a trace may be replayed.
pub(super) const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1000.0;

/// Refuses a step that no replay can be.
fn check_replay(step: &SqlStep, dialect: Dialect) -> Result<(), String> {
    let name = &step.name;
    check_step(step)?;
    if !matches!(dialect, Dialect::Postgres | Dialect::Mysql) {
        return Err(format!("step `{name}` replays a trace, which is of Postgres or MySQL"));
    }
    if !step.event.is_empty() || step.rate.is_some() || step.unit.is_some() {
        return Err(format!("step `{name}` replays a trace: leave out event, rate and unit"));
    }
    if step.speed.is_some_and(|speed| !SPEEDS.contains(&speed)) {
        return Err(format!("the speed of step `{name}` must be from 0.001 to 1000"));
    }
    if step.order.as_ref().is_some_and(|order| !["recorded", "free"].contains(&&**order)) {
        return Err(format!("the order of step `{name}` must be recorded or free"));
    }
    Ok(())
}

/// A step that replays a trace.
fn replayed(shape: &SqlShape, step: &SqlStep, trace: &str, dialect: Dialect) -> Step {
    let folder = shape.load.as_ref().and_then(|load| load.folder.clone()).unwrap_or_default();
    let work = ReplayWork {
        trace: folder.join(trace),
        init: session_setup(dialect).map(str::to_owned).chain(step.init.iter().cloned()).collect(),
        speed: step.speed,
        is_free: step.order.as_deref() == Some("free"),
        expected_seconds: step.expected_seconds,
    };
    Step {
        reported: step.reported.unwrap_or(true),
        seconds: step.seconds.unwrap_or(SECONDS),
        detail: format!("the trace {trace}"),
        parameters: StepParameters { clients: step.clients, ..StepParameters::default() },
        ..Step::new(&step.name, Group::Write, RateUnit::Queries, work)
    }
}

/// The text of the only statement, or the number of statements.
fn detail(step: &SqlStep, script: &Script) -> String {
    let operations: Vec<_> = script.operations().collect();
    let mut said = step.event.iter().flat_map(|event| &event.statement);
    if let ([_], Some(SqlStatement { sql: ByDialect::All(sql), .. })) =
        (operations.as_slice(), said.next())
    {
        let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        return match sql.char_indices().nth(DETAIL) {
            Some((end, _)) => format!("{}…", &sql[..end]),
            None => sql,
        };
    }
    let (statements, events) = (operations.len(), script.events.len());
    match events {
        1 if statements == 1 => "1 statement".to_owned(),
        1 => format!("{statements} statements"),
        _ => format!("{statements} statements in {events} events"),
    }
}

fn group(step: &SqlStep) -> Group {
    let statements = || step.event.iter().flat_map(|event| &event.statement);
    let is_point = |statement: &SqlStatement| {
        statement.expect.is_some_and(|expect| expect.rows.bounds() == [1, 1])
    };
    match step.group.as_deref() {
        Some("point") => Group::Point,
        Some("range") => Group::Range,
        Some(_) => Group::Write,
        None if is_writing(step) => Group::Write,
        None if statements().all(is_point) => Group::Point,
        None => Group::Range,
    }
}

/// On Postgres, READ ONLY would make such a transaction cheaper.
fn is_serializable(event: &SqlEvent) -> bool {
    matches!(&event.transaction, Some(TransactionWord::Level(level))
        if level.eq_ignore_ascii_case("serializable"))
}

fn is_writing(step: &SqlStep) -> bool {
    let of_events = step.event.iter().flat_map(|event| &event.statement);
    of_events.flat_map(|statement| all(&statement.sql)).any(|sql| sql_writes(sql))
}

/// True if MySQL may execute a comment of it.
fn is_executed_comment(sql: &str) -> bool {
    sql.contains("/*!") || sql.contains("/*M!")
}

/// True unless the words of the statement show that it only reads.
fn sql_writes(sql: &str) -> bool {
    if is_executed_comment(sql) {
        return true;
    }
    const READS: [&str; 8] =
        ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE", "("];
    const WRITES: [&str; 4] = ["INSERT", "UPDATE", "DELETE", "MERGE"];
    let words = words(Dialect::Fake, sql);
    let Some(first) = words.first() else { return false };
    if !READS.contains(&first.as_str()) {
        return true;
    }
    // `REPLACE(…)` and `INSERT(…)` are functions, too.
    let followed = |index: usize| words.get(index + 1).is_some_and(|next| next == "(");
    let verb =
        |(index, word): (usize, &String)| WRITES.contains(&word.as_str()) && !followed(index);
    words.iter().enumerate().any(verb) || words.iter().any(|word| word == "INTO")
}

/// Refuses a step that is invalid in every dialect.
fn check_step(step: &SqlStep) -> Result<(), String> {
    let name = &step.name;
    let is_of_name = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if name.is_empty() || !name.chars().all(|letter| is_of_name(letter) || letter == '-') {
        return Err(format!(
            "the name of step `{name}` must be lower-case letters, digits and `-`"
        ));
    }
    if step.group.as_ref().is_some_and(|group| !["point", "range", "write"].contains(&&**group)) {
        return Err(format!("the group of step `{name}` must be point, range or write"));
    }
    if step.seconds.is_some_and(|seconds| !(seconds > 0.0 && seconds <= 86_400.0)) {
        return Err(format!("the seconds of step `{name}` must be above 0 and at most 86400"));
    }
    if step.event.is_empty() && step.trace.is_none() {
        return Err(format!("step `{name}` has no event"));
    }
    if step.trace.is_none() && (step.speed.is_some() || step.order.is_some()) {
        return Err(format!("the speed and order of step `{name}` are those of a trace"));
    }
    if step.trace.is_none() && step.event.iter().all(|event| event.weight == Some(0)) {
        return Err(format!("all weights of step `{name}` are 0"));
    }
    let mut names = BTreeSet::new();
    let of_events = step.event.iter().filter_map(|event| event.name.as_ref());
    if let Some(twice) = of_events.into_iter().find(|event| !names.insert(*event)) {
        return Err(format!("two events of step `{name}` have the name `{twice}`"));
    }
    if step.clients.is_some_and(|clients| !(1..=10_000).contains(&clients)) {
        return Err(format!("the clients of step `{name}` must be from 1 to 10000"));
    }
    if step.rate.is_some_and(|rate| !(rate > 0.0 && rate <= 1e7)) {
        return Err(format!("the rate of step `{name}` must be above 0 and at most 10000000"));
    }
    if step.unit.as_ref().is_some_and(|unit| !["statements", "events"].contains(&&**unit)) {
        return Err(format!("the unit of step `{name}` must be statements or events"));
    }
    Ok(())
}

/// The script of a step in a dialect.
fn compiled(
    shape: &SqlShape,
    named: &NamedSources,
    step: &SqlStep,
    dialect: Dialect,
) -> Result<Script, String> {
    check_step(step)?;
    let name = &step.name;
    for sql in &step.init {
        check_characters(sql).map_err(|why| format!("`init` of step `{name}`: {why}"))?;
    }
    let compiler = Compiler { shape, dialect, named };
    let several = step.event.len() > 1;
    let mut events = Vec::new();
    for (index, event) in step.event.iter().enumerate() {
        let of_event = match (&event.name, several) {
            (Some(given), _) => format!("{given} "),
            (None, true) => format!("event {} ", index + 1),
            (None, false) => String::new(),
        };
        let where_ = if several || event.name.is_some() {
            format!("step `{name}`, {}", of_event.trim_end())
        } else {
            format!("step `{name}`")
        };
        events.push(compiled_event(&compiler, event, &of_event, &where_)?);
    }
    Ok(Script {
        events,
        distribution: Distribution::Uniform,
        sources: named.sources.clone(),
        init: session_setup(dialect).map(str::to_owned).chain(step.init.iter().cloned()).collect(),
        watched: true,
    })
}

/// The first statements of each session: a workload file is UTF-8.
fn session_setup(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    (dialect == Dialect::Mysql).then_some("SET NAMES utf8mb4").into_iter()
}

fn compiled_event(
    compiler: &Compiler<'_>,
    event: &SqlEvent,
    of_event: &str,
    where_: &str,
) -> Result<ScriptEvent, String> {
    if event.statement.is_empty() {
        return Err(format!("{where_} has no statement"));
    }
    let (mut operations, mut draws, mut given) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (index, statement) in event.statement.iter().enumerate() {
        let number = index + 1;
        let fault = |why| format!("{}{where_}, statement {number}: {why}", statement.at.prefix());
        let names = compiler.names(statement).map_err(fault)?;
        let is_early = |name: &&String| compiler.named.is_reply(name) && !given.contains(*name);
        if let Some(name) = names.iter().find(is_early) {
            let why = format!("it uses `:{name}`, and no statement before it has that in `into`");
            return Err(fault(why));
        }
        given.extend(statement.into.iter().cloned());
        let kind = format!("{of_event}statement {number}");
        operations.push(compiler.operation(statement, kind).map_err(fault)?);
        draws.extend(compiler.used(statement, Freshness::Event).map_err(fault)?);
    }
    let writes = event.statement.iter().flat_map(|one| all(&one.sql)).any(|sql| sql_writes(sql));
    let begin = begin(event.transaction.as_ref(), compiler.dialect, writes);
    Ok(ScriptEvent {
        weight: event.weight.unwrap_or(1),
        begin: begin.map_err(|why| format!("{where_}: {why}"))?,
        operations,
        draws: draws.into_iter().collect(),
        retry: event.retry.clone(),
        ignore: event.ignore.clone(),
    })
}

/// Statements that begin a transaction.
fn begin(
    word: Option<&TransactionWord>,
    dialect: Dialect,
    writes: bool,
) -> Result<Vec<String>, String> {
    let plain = match dialect {
        // Otherwise two writers may both read first, and one of them fails.
        Dialect::Sqlite if writes => "BEGIN IMMEDIATE",
        _ => "BEGIN",
    };
    let level = match word {
        None | Some(TransactionWord::Plain(false)) => return Ok(Vec::new()),
        Some(TransactionWord::Plain(true)) => return Ok(vec![plain.to_owned()]),
        Some(TransactionWord::Level(level)) => level.to_lowercase(),
    };
    if !LEVELS.contains(&level.as_str()) {
        return Err(format!(
            "`transaction` must be true, false or one of {}, not `{level}`",
            LEVELS.join(", ")
        ));
    }
    let level = level.to_uppercase();
    Ok(match dialect {
        Dialect::Postgres => vec![format!("BEGIN ISOLATION LEVEL {level}")],
        Dialect::Mysql => {
            vec![format!("SET TRANSACTION ISOLATION LEVEL {level}"), plain.to_owned()]
        }
        // All its transactions are serializable.
        _ => vec![plain.to_owned()],
    })
}

// Reads a workload file and lists the files that it names.

/// The user's statements, if the workload consists of them.
pub fn shape(workload: &Workload) -> Option<&SqlShape> {
    OwnParameters::of(&workload.shape)
}

/// The error for statements in the place of a workload file.
const NO_SQL: &str = "it holds statements and is no workload file\n\
    hint: a file of statements runs as a script: --bench pgbench:FILE. A workload file names \
    statements, steps and values: docs/workloads.md shows one, and `rqps init` drafts one";

/// True if a text begins as SQL or a script of pgbench does.
fn is_sql(text: &str) -> bool {
    const FIRST: [&str; 12] = [
        "SELECT", "INSERT", "UPDATE", "DELETE", "WITH", "BEGIN", "CREATE", "DROP", "SET", "USE",
        "START", "REPLACE",
    ];
    let mut lines = text.lines().map(str::trim_start);
    let is_comment = |line: &str| line.is_empty() || line.starts_with("--");
    let Some(line) = lines.find(|line| !is_comment(line)) else { return false };
    let word = line.split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    line.starts_with(['\\', '('])
        || line.starts_with("/*")
        || FIRST.iter().any(|first| word.eq_ignore_ascii_case(first))
            && !line[word.len()..].trim_start().starts_with('=')
}

/// Reads a workload file.
///
/// # Errors
/// The text is not TOML, or a key is unknown, missing or of the wrong type. The error names the
/// line.
pub fn read(text: &str) -> Result<SqlShape, String> {
    let shape: SqlShape = toml_reader::read(text)
        .map_err(|error| if is_sql(text) { NO_SQL.to_owned() } else { error.to_string() })?;
    Ok(placed(text, shape))
}

/// Adds to the workload the positions of its parts in `text`.
pub fn placed(text: &str, mut shape: SqlShape) -> SqlShape {
    let at = |path: &str| statements::of_path(text, path);
    if let Some(load) = &mut shape.load {
        load.at = at("load");
    }
    for (name, parameter) in &mut shape.parameter {
        parameter.at = at(&format!("parameter.{name}"));
    }
    for (number, step) in shape.step.iter_mut().enumerate() {
        step.at = at(&format!("step.{number}"));
        for (event, statements) in step.event.iter_mut().enumerate() {
            for (index, statement) in statements.statement.iter_mut().enumerate() {
                statement.at = at(&format!("step.{number}.event.{event}.statement.{index}.sql"));
            }
        }
    }
    shape
}

/// The files that a server executes or opens as a database.
pub fn executed_files(shape: &SqlShape) -> Vec<String> {
    let load = shape.load.iter();
    load.flat_map(|load| load.schema.iter().chain(&load.index))
        .flat_map(all)
        .flatten()
        .cloned()
        .collect()
}

/// All files that a workload reads, as it names them, each once.
pub fn files(shape: &SqlShape) -> Vec<String> {
    let mut files = executed_files(shape);
    if let Some(load) = &shape.load {
        files.extend(load.data.iter().map(|data| data.csv.clone()));
    }
    files.extend(shape.step.iter().filter_map(|step| step.trace.clone()));
    files.extend(shape.parameter.values().filter_map(|parameter| parameter.csv.clone()));
    files.sort();
    files.dedup();
    files
}

/// True if the workload says how its tables are made and filled.
pub fn has_load(workload: &Workload) -> bool {
    let load = shape(workload).and_then(|shape| shape.load.as_ref());
    load.is_some_and(|load| load.schema.is_some() || !load.data.is_empty())
}

/// True if the workload is loaded on servers given by a DSN, too.
pub fn loads_on_servers(workload: &Workload) -> bool {
    let load = shape(workload).and_then(|shape| shape.load.as_ref());
    load.is_some_and(|load| load.on_servers == Some(true))
}
