//! Unmodified pgbench scripts: built-in ones and files, with the program's options.
//!
//! `user_text::pgbench` reads a script when a plan is made. Each client of the driver interprets it
//! with the random numbers of the real program.
//!
//! Reads and checks pgbench scripts, and makes steps of them.

pub mod driver;
pub mod schema;
mod settings;

use self::schema::builtin;
use crate::spec::{BenchmarkSpec, Counting, LENGTHS, OwnWords, scaled};
use rqps_driver::part::DriverPart;
use rqps_model::benchmark::{
    BenchmarkParameters, Group, OwnParameters, Phase, RateUnit, Step, StepTurns, Workload,
};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::pgbench::{PgbenchProtocol, PgbenchShape, PgbenchStep, PgbenchWork, WeightedText};
use rqps_model::units;
use rqps_text::pgbench::{
    PgbenchAction, PgbenchCommand, PgbenchProgram, PgbenchSql, SqlPiece, VariableNames,
};
use rqps_text::{reading, words};

/// The row of the benchmark.
pub static SPEC: BenchmarkSpec = BenchmarkSpec {
    name: "pgbench",
    workload: |name| {
        scaled(&LENGTHS, name, |_| {
            let shape = PgbenchShape { scale: 1, max_tries: 1, vacuum: true, ..Default::default() };
            BenchmarkParameters::Pgbench(Box::new(shape))
        })
    },
    set: |workload, said| settings::SETTINGS.set(workload, said),
    finish: settings::finish,
    check,
    phases: |dialect, _, workload| phases(dialect, workload),
    placement: None,
    load: Some(driver::load),
    words: Some(OwnWords {
        take: settings::take,
        visits: |workload| !has_tables(workload),
        brings: |workload| shape(workload).is_some_and(|shape| !shape.files.is_empty()),
        writes,
    }),
    counting: COUNTING,
    driver: DriverPart {
        benchmark: "pgbench",
        step_loop: Some(driver::step_loop),
        answers: true,
        own_load: Some(driver::own_load),
        ..DriverPart::NONE
    },
    names_made: |_, workload| {
        if has_tables(workload) { schema::TABLES.map(str::to_owned).to_vec() } else { Vec::new() }
    },
    size: settings::data_size,
    brought: settings::brought,
    ..BenchmarkSpec::PLAIN
};

// The steps of pgbench scripts in order, as phases.

/// The built-in scripts derived from TPC-B.
const LIKE_TPC_B: [&str; 2] = ["tpcb-like", "simple-update"];

/// Longest name of a step, characters.
const NAME: usize = 60;

/// The hooks of counted runs: a step is counted for as many transactions as contain the requested
/// number of statements.
pub(crate) const COUNTING: Counting = Counting { step: counted, ..Counting::SCRIPTS };

/// Fewest events of a counted step.
const EVENTS_LEAST: u64 = 3;

fn counted(step: &Step, workload: &Workload, statements: u64) -> StepCount {
    let programs = step.own::<PgbenchWork>().map(programs).unwrap_or_default();
    let messages: usize = programs.iter().map(|program| program.statements().count()).sum();
    let each = messages.div_ceil(programs.len().max(1)).max(1) as u64;
    if shape(workload).is_some_and(|shape| shape.connect) {
        StepCount::LeftOut("each transaction has a connection of its own".to_owned())
    } else {
        StepCount::Events((statements / each).max(EVENTS_LEAST))
    }
}

/// All phases after the load.
pub(crate) fn phases(dialect: Dialect, workload: &Workload) -> Vec<Phase> {
    let Some(shape) = shape(workload) else { return Vec::new() };
    let mut names: Vec<String> = Vec::new();
    let mut phases = Vec::new();
    for step in &shape.step {
        let plain = name(step);
        let (mut name, mut again) = (plain.clone(), 2);
        while names.contains(&name) {
            name = format!("{plain}-{again}");
            again += 1;
        }
        names.push(name.clone());
        let work = work(shape, step, dialect);
        phases.push(Phase::Measure(Box::new(measured(workload, name, step, work))));
    }
    phases
}

/// The names of the steps that may write, judged by their statements.
pub(crate) fn writes(workload: &Workload) -> Vec<String> {
    let writing = |phase| match phase {
        Phase::Measure(step)
            if step.group == Group::Write || step.own::<PgbenchWork>().is_some_and(may_write) =>
        {
            Some(step.name)
        }
        _ => None,
    };
    phases(Dialect::Postgres, workload).into_iter().filter_map(writing).collect()
}

/// True unless all messages only read, with the values that become a part of their text.
fn may_write(work: &PgbenchWork) -> bool {
    let mut names = VariableNames::default();
    let read = |script: &WeightedText| PgbenchProgram::read(&script.text, &mut names).ok();
    let programs: Vec<PgbenchProgram> = work.scripts.iter().filter_map(read).collect();
    let is_text = work.protocol == PgbenchProtocol::Simple;
    let spelled = |piece: &SqlPiece| match piece {
        SqlPiece::Sql(sql) => sql.clone(),
        SqlPiece::Variable(number) => {
            let value = work.define.get(&names.all()[*number as usize]);
            value.filter(|_| is_text).cloned().unwrap_or_else(|| "1".to_owned())
        }
    };
    let mut statements = programs.iter().flat_map(PgbenchProgram::statements);
    // To have each new session refuse writes would cost as much as it measures.
    work.connect
        || statements.any(|sql| {
            // Nobody knows yet what a server will put into later messages.
            let fills = is_text && sql.stored.is_some();
            fills
                || reading::joins(sql.pieces.iter().map(SqlPiece::sql))
                || reading::may_write(&sql.pieces.iter().map(spelled).collect::<String>())
        })
}

/// The statements that carry on with nothing else when they fail, with NULL for each variable that
/// the command line does not set.
pub fn statements(work: &PgbenchWork) -> Vec<String> {
    let mut names = VariableNames::default();
    let read = |script: &WeightedText| PgbenchProgram::read(&script.text, &mut names).ok();
    let programs: Vec<PgbenchProgram> = work.scripts.iter().filter_map(read).collect();
    let spelled = |piece: &SqlPiece| match piece {
        SqlPiece::Sql(sql) => sql.clone(),
        SqlPiece::Variable(number) => {
            let value = work.define.get(&names.all()[*number as usize]);
            value.cloned().unwrap_or_else(|| "NULL".to_owned())
        }
    };
    let all = programs.iter().flat_map(PgbenchProgram::statements);
    all.filter(|_| !work.continue_on_error)
        .map(|sql| sql.pieces.iter().map(spelled).collect())
        .collect()
}

/// The name of a step, made of its scripts.
fn name(step: &PgbenchStep) -> String {
    let of_script = |name: &str| {
        let name = name.rsplit('/').next().unwrap_or(name);
        let name = name.strip_suffix(".sql").unwrap_or(name);
        let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        name.chars().map(safe).collect::<String>()
    };
    let names: Vec<String> = step.scripts.iter().map(|script| of_script(&script.name)).collect();
    let all = names.join("+");
    if all.len() <= NAME && !all.is_empty() { all } else { format!("mix-of-{}", names.len()) }
}

fn work(shape: &PgbenchShape, step: &PgbenchStep, dialect: Dialect) -> PgbenchWork {
    let script = |script: &rqps_model::pgbench::PgbenchScript| WeightedText {
        name: script.name.clone(),
        weight: script.weight,
        // The plan was checked before.
        text: text(shape, &script.name, dialect).unwrap_or_default(),
    };
    let mut define = shape.define.clone();
    define.entry("scale".to_owned()).or_insert_with(|| shape.scale.to_string());
    PgbenchWork {
        scripts: step.scripts.iter().map(script).collect(),
        protocol: shape.protocol,
        define,
        max_tries: shape.max_tries,
        continue_on_error: shape.continue_on_error,
        connect: shape.connect,
        vacuum: shape.vacuum && shape.tables.made,
    }
}

fn measured(workload: &Workload, name: String, step: &PgbenchStep, work: PgbenchWork) -> Step {
    let programs = programs(&work);
    let sleeps = programs.iter().flat_map(|program| &program.commands);
    let sleeps = sleeps.filter(|one| matches!(one.action, PgbenchAction::Sleep { .. })).count();
    let group = group(&programs);
    let seconds = match group {
        Group::Write => workload.write_seconds,
        _ => workload.read_seconds,
    };
    let of_mix =
        |script: &rqps_model::pgbench::PgbenchScript| format!("{}@{}", script.name, script.weight);
    let detail = match (step.scripts.as_slice(), programs.as_slice()) {
        ([_], [program]) => match program.statements().count() {
            1 => "1 statement".to_owned(),
            count => format!("{count} statements"),
        },
        (scripts, _) => scripts.iter().map(of_mix).collect::<Vec<_>>().join(", "),
    };
    let names = || step.scripts.iter().map(|script| script.name.as_str());
    let detail = if names().any(|name| LIKE_TPC_B.contains(&name)) {
        format!(
            "{detail}; a workload derived from TPC-B; not comparable with published TPC-B results"
        )
    } else {
        detail
    };
    Step {
        seconds,
        warmup_seconds: workload.warmup_seconds,
        detail,
        // While a client sleeps, the other targets would wait.
        turns: if work.connect { StepTurns::None } else { StepTurns::of_clients(sleeps == 0) },
        only_reads: group != Group::Write,
        ..Step::new(&name, group, RateUnit::Transactions, work)
    }
}

/// The valid scripts; all are, because the plan was checked before.
fn programs(work: &PgbenchWork) -> Vec<PgbenchProgram> {
    let read = |script: &WeightedText| {
        PgbenchProgram::read(&script.text, &mut VariableNames::default()).ok()
    };
    work.scripts.iter().filter_map(read).collect()
}

fn group(programs: &[PgbenchProgram]) -> Group {
    let statements = || programs.iter().flat_map(PgbenchProgram::statements);
    let is_single = programs.iter().all(|program| program.statements().count() == 1);
    match statements().map(reads).collect::<Option<Vec<bool>>>() {
        None => Group::Write,
        Some(reads) if is_single && reads.iter().all(|reads| *reads) => Group::Point,
        Some(_) => Group::Range,
    }
}

/// True for a query, false for the edge of a transaction, `None` for a statement that may write.
fn reads(sql: &PgbenchSql) -> Option<bool> {
    const QUERIES: [&str; 6] = ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "("];
    const BRACKETS: [&str; 5] = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK"];
    if sql.is_joined && reading::may_write(&sql.text) {
        return None;
    }
    const WRITES: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "INTO"];
    let words = words(Dialect::Postgres, &sql.text);
    let first = words.first()?.as_str();
    if words.iter().any(|word| WRITES.contains(&word.as_str())) {
        return None;
    }
    match (QUERIES.contains(&first), BRACKETS.contains(&first)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

// Reads the scripts of a workload and refuses those that cannot run.

/// Most partitions of the accounts, as `--partitions` allows.
const MOST_PARTITIONS: u32 = 100_000;

/// Most values of a statement.
const MOST_VALUES: usize = 255;

/// The parameters of this benchmark; `None` for another workload.
pub(super) fn shape(workload: &Workload) -> Option<&PgbenchShape> {
    OwnParameters::of(&workload.shape)
}

/// True if rqps creates the standard tables.
fn has_tables(workload: &Workload) -> bool {
    shape(workload).is_some_and(|shape| shape.tables.made)
}

/// The text of a script for a dialect: from a file, or built in.
pub(super) fn text(shape: &PgbenchShape, name: &str, dialect: Dialect) -> Option<String> {
    match shape.files.get(name) {
        Some(file) => Some(file.text.clone()),
        None => builtin(name, dialect),
    }
}

/// Refuses a workload that cannot run on a DBMS of this dialect.
///
/// # Errors
///
/// The text names the script and the place in it.
pub(crate) fn check(workload: &Workload, dialect: Dialect) -> Result<(), String> {
    let Some(shape) = shape(workload) else { return Ok(()) };
    if dialect == Dialect::Fake {
        return Err("the fake DBMS cannot execute scripts of pgbench".to_owned());
    }
    if shape.step.is_empty() {
        return Err("the workload names no script".to_owned());
    }
    if shape.scale == 0 {
        return Err("the scale of pgbench's tables is at least 1".to_owned());
    }
    for (name, file) in &shape.files {
        if units::sha256(&file.text) != file.sha256 {
            return Err(format!(
                "the text of `{name}` in the plan does not match its sha256\n\
                 hint: make the plan again with --bench pgbench:{name}"
            ));
        }
    }
    // Each partition is a statement.
    if shape.tables.partitions > MOST_PARTITIONS {
        return Err(format!("pgbench_accounts has at most {MOST_PARTITIONS} partitions"));
    }
    check_tables(shape, dialect)?;
    for step in &shape.step {
        check_step(shape, step, dialect)?;
    }
    Ok(())
}

fn check_step(shape: &PgbenchShape, step: &PgbenchStep, dialect: Dialect) -> Result<(), String> {
    if step.scripts.iter().all(|script| script.weight == 0) {
        return Err("all weights of a step are 0".to_owned());
    }
    for script in &step.scripts {
        let name = &script.name;
        let Some(text) = text(shape, name, dialect) else {
            return Err(format!(
                "the plan names the script `{name}` but does not contain its text"
            ));
        };
        let program = PgbenchProgram::read(&text, &mut VariableNames::default())
            .map_err(|fault| format!("{name}, {fault}"))?;
        for command in &program.commands {
            check_command(shape, command, dialect)
                .map_err(|what| format!("{name}, line {}: {what}", command.line))?;
        }
    }
    Ok(())
}

fn check_command(
    shape: &PgbenchShape,
    command: &PgbenchCommand,
    dialect: Dialect,
) -> Result<(), String> {
    let language = language(dialect);
    match &command.action {
        PgbenchAction::StartPipeline if shape.protocol == PgbenchProtocol::Simple => {
            Err("pipelines need `-M extended` or `-M prepared`".to_owned())
        }
        PgbenchAction::StartPipeline if dialect != Dialect::Postgres => {
            Err(format!("pipelines need Postgres; a target speaks {language}"))
        }
        PgbenchAction::Sql(sql) => {
            if sql.is_joined && dialect == Dialect::Sqlite {
                return Err(format!(
                    "{language} executes one statement at a time: end it with `;`"
                ));
            }
            let values = sql.pieces.iter().filter(|piece| matches!(piece, SqlPiece::Variable(_)));
            if shape.protocol != PgbenchProtocol::Simple && values.count() > MOST_VALUES {
                return Err(format!("a statement has at most {MOST_VALUES} variables"));
            }
            check_literals(sql, dialect)
        }
        _ => Ok(()),
    }
}

/// Refuses literals that MySQL reads differently: scripts are split by Postgres's rules, but MySQL
/// treats a backslash in quotes as an escape.
fn check_literals(sql: &PgbenchSql, dialect: Dialect) -> Result<(), String> {
    let has_backslash = |piece: &SqlPiece| match piece {
        SqlPiece::Sql(text) => text.contains("\\'") || text.contains("\\\""),
        SqlPiece::Variable(_) => false,
    };
    if dialect == Dialect::Mysql && sql.pieces.iter().any(has_backslash) {
        Err("on MySQL, a backslash escapes the quote after it\nhint: write two \
                     quotes"
            .to_owned())
    } else {
        Ok(())
    }
}

fn language(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "postgres",
        Dialect::Mysql => "mysql",
        Dialect::Sqlite => "sqlite",
        Dialect::KeyValue | Dialect::Fake => "no SQL",
    }
}

fn check_tables(shape: &PgbenchShape, dialect: Dialect) -> Result<(), String> {
    let tables = &shape.tables;
    if tables.by_hash && tables.partitions == 0 {
        return Err("`--partition-method` needs `--partitions`".to_owned());
    }
    if shape.protocol == PgbenchProtocol::Extended && dialect != Dialect::Postgres {
        return Err(format!(
            "`-M extended` needs Postgres; a target speaks {}\nhint: use -M simple or -M prepared",
            language(dialect)
        ));
    }
    let keys = tables.steps.contains('f');
    let refused = [
        (tables.fillfactor.is_some(), "fill factor"),
        (tables.unlogged, "unlogged tables"),
        (tables.tablespace.is_some() || tables.index_tablespace.is_some(), "tablespaces here"),
        (tables.partitions > 0 && dialect == Dialect::Sqlite, "partitions"),
        (tables.partitions > 0 && keys, "partitions with foreign keys"),
        (keys && dialect == Dialect::Sqlite, "foreign keys of tables that are there"),
    ];
    match refused.iter().find(|(is_said, _)| *is_said && dialect != Dialect::Postgres) {
        Some((_, what)) => Err(format!("{} has no {what}", language(dialect))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(text: &str, define: &[(&str, &str)], protocol: PgbenchProtocol) -> PgbenchWork {
        let (name, text) = ("a.sql".to_owned(), text.to_owned());
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        PgbenchWork {
            scripts: vec![WeightedText { name, weight: 1, text }],
            protocol,
            define: define.iter().map(pair).collect(),
            max_tries: 1,
            continue_on_error: false,
            connect: false,
            vacuum: false,
        }
    }

    #[test]
    fn what_reaches_a_server_of_others_is_known_or_asked_about() {
        use PgbenchProtocol::{Prepared, Simple};
        let check = |text: &str, define: &[(&str, &str)], protocol, want| {
            assert_eq!(may_write(&work(text, define, protocol)), want, "{text} {define:?}");
        };
        check("\\set a random(1, 9)\nSELECT b FROM t WHERE a = :a;", &[], Simple, false);
        check("BEGIN;\nSELECT count(*) FROM t;\nEND;", &[], Simple, false);
        check("SELECT 1 \\; DROP TABLE theirs;", &[], Simple, true);
        check("SELECT 1 \\; SELECT 2;", &[], Simple, false);
        check("SELECT :v;", &[("v", "1; DROP TABLE theirs")], Simple, true);
        check("SELECT :v;", &[("v", "1; DROP TABLE theirs")], Prepared, false);
        check("SELECT '1; DROP TABLE theirs' AS v \\gset\nSELECT :v;", &[], Simple, true);
        check("COMMIT PREPARED 'theirs';", &[], Simple, true);
        assert!(may_write(&PgbenchWork { connect: true, ..work("SELECT 1;", &[], Simple) }));
        check("SELECT pg_terminate_backend(pid) FROM pg_stat_activity;", &[], Simple, true);
        let joined = programs(&work("SELECT 1 \\; DROP TABLE theirs;", &[], Simple));
        assert_eq!(group(&joined), Group::Write, "a step that says it only reads may be repeated");
    }
}
