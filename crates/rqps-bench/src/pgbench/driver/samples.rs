//! Makes a sample of each statement for its query plan, the same on all targets.

use std::sync::Arc;

use super::client::ScriptClient;
use super::scripts::StepScripts;
use rqps_model::dialect::Dialect;
use rqps_model::pgbench::PgbenchWork;
use rqps_model::script::{Distribution, Fragment, Operation, Protocol, Script};
use rqps_text::pgbench::PgbenchAction;

/// Seed of the sample values.
const SEED: u64 = 1;

/// First words of statements that a DBMS explains.
const EXPLAINED: [&str; 7] = ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "MERGE"];

/// The statements of all scripts and branches with values, except statements with values that come
/// from the server.
pub(super) fn samples(work: &PgbenchWork, dialect: Dialect) -> Result<Script, String> {
    let shared = Arc::new(StepScripts::read(work, dialect, SEED, 1)?);
    let mut client = ScriptClient::new(&shared, 0, None);
    let mut operations: Vec<Operation> = Vec::new();
    for script in &shared.scripts {
        for command in &script.program.commands {
            match &command.action {
                PgbenchAction::Set { variable, value } => client.try_set(*variable, value),
                PgbenchAction::Sql(sql) => {
                    let first = sql.text.split(' ').next().unwrap_or_default().to_uppercase();
                    let Some(text) = client.sample(sql) else { continue };
                    if sql.is_joined || !EXPLAINED.contains(&first.as_str()) {
                        continue;
                    }
                    let text = text.trim_end().trim_end_matches(';').to_owned();
                    operations.push(Operation {
                        kind: format!("{} line {}", script.name, command.line),
                        sql: text.clone(),
                        protocol: Protocol::Text,
                        fragments: vec![Fragment::Sql(text)],
                        ..Operation::PLAIN
                    });
                }
                _ => {}
            }
        }
    }
    Ok(Script::of(false, operations, Distribution::Uniform))
}
