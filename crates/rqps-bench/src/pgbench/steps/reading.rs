//! Reads the scripts of a workload and refuses those that cannot run.

use crate::pgbench::schema::builtin;
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::dialect::Dialect;
use rqps_model::pgbench::{PgbenchProtocol, PgbenchShape, PgbenchStep};
use rqps_model::units;
use rqps_text::pgbench::{
    PgbenchAction, PgbenchCommand, PgbenchProgram, PgbenchSql, SqlPiece, VariableNames,
};

/// Most partitions of the accounts, as `--partitions` allows.
const MOST_PARTITIONS: u32 = 100_000;

/// Most values of a statement.
const MOST_VALUES: usize = 255;

/// The parameters of this benchmark; `None` for another workload.
pub(super) fn shape(workload: &Workload) -> Option<&PgbenchShape> {
    match &workload.shape {
        BenchmarkParameters::Pgbench(shape) => Some(shape),
        _ => None,
    }
}

/// True if rqps creates the standard tables.
pub(crate) fn has_tables(workload: &Workload) -> bool {
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
