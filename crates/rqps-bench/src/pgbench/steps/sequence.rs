//! The steps of pgbench scripts in order, as phases.

use super::reading::{shape, text};
use crate::spec::Counting;
use rqps_model::benchmark::{Group, Phase, RateUnit, Step, StepTurns, Workload};
use rqps_model::counted::StepCount;
use rqps_model::dialect::Dialect;
use rqps_model::pgbench::{PgbenchProtocol, PgbenchShape, PgbenchStep, PgbenchWork, WeightedText};
use rqps_text::pgbench::{PgbenchAction, PgbenchProgram, PgbenchSql, SqlPiece, VariableNames};
use rqps_text::{reading, words};

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
            fills || reading::may_write(&sql.pieces.iter().map(spelled).collect::<String>())
        })
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
