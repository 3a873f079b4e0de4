//! Query plans of all kinds of statements, with the same sample values on every target, so that
//! plans can be compared.

use std::collections::BTreeMap;

use crate::connection::Connection;
use crate::request::DriverRequest;
use crate::script::call::ScriptBuffers;
use crate::script::sources::SharedSources;
use rqps_model::dialect::{Dialect, Placeholder};
use rqps_model::script::{Fragment, Operation, Parameter, Protocol, Script};
use rqps_wire::{RowTexts, WireError};

/// Seed of the sample values, the same on every target.
const SAMPLE_SEED: u64 = 1;

/// The plan of each kind on table 1 as text, and a note for each missing plan.
pub fn capture(
    request: &DriverRequest,
    (script, sources): (&Script, &SharedSources),
    session: &mut Connection,
) -> (BTreeMap<String, String>, Vec<String>) {
    let (mut plans, mut notes) = (BTreeMap::new(), Vec::new());
    let mut samples = SourceSamples::new(script, sources);
    for event in &script.events {
        // Later statements need the rows of earlier ones; the rollback removes their traces.
        let is_carried_out = event.operations.iter().any(|operation| !operation.into.is_empty());
        if is_carried_out && let Err(error) = session.simple("BEGIN") {
            notes.push(format!("no query plans: failed to begin a transaction: {error}"));
            break;
        }
        for operation in &event.operations {
            let sql = if operation.fragments.is_empty() {
                with_samples(operation, request.dialect, request.rows)
            } else {
                samples.spell(operation, request.dialect, session.escapes_backslash())
            };
            let got = session.rows(&format!("{}{sql}", request.dialect.spec().explain));
            let got = got.map(|rows| spell(request.dialect, &rows)).map_err(|e| e.to_string());
            let got = got.and_then(|plan| {
                if operation.into.is_empty() {
                    Ok(plan)
                } else {
                    samples.take(&sql, &operation.into, session).map(|()| plan)
                }
            });
            match got {
                Ok(plan) => {
                    plans.insert(operation.kind.clone(), plan);
                    if !is_carried_out
                        && let Some(plan) = generic(operation, request.dialect, session)
                    {
                        plans.insert(format!("{} (generic)", operation.kind), plan);
                    }
                }
                // MySQL before 5.6.3 explains only SELECT. A step goes on without plans.
                Err(why) => {
                    notes.push(format!("no query plan of {}: {why}", operation.kind));
                    if is_carried_out {
                        break;
                    }
                }
            }
        }
        if is_carried_out && let Err(error) = session.simple("ROLLBACK") {
            notes.push(format!("failed to take a sample transaction back: {error}"));
        }
    }
    (plans, notes)
}

/// The plan for any values: Postgres may use it from the sixth execution of a prepared statement
/// on. `None` if there is no such plan, or if the server does not show it.
fn generic(operation: &Operation, dialect: Dialect, session: &mut Connection) -> Option<String> {
    let values = operation.parameters.len();
    let is_prepared = operation.protocol == Protocol::Prepared && !operation.fragments.is_empty();
    if dialect != Dialect::Postgres || !is_prepared || values == 0 {
        return None;
    }
    // The setting exists since version 12. ROLLBACK restores the user's value.
    let setting = session.simple("BEGIN; SET LOCAL plan_cache_mode = force_generic_plan");
    let prepare = format!("PREPARE rqps_generic AS {}", operation.sql);
    let plan = setting.and_then(|_| session.simple(&prepare)).and_then(|_| {
        let nulls = vec!["NULL"; values].join(", ");
        let plan = explain_one(dialect, &format!("EXECUTE rqps_generic({nulls})"), session);
        session.simple("ROLLBACK; DEALLOCATE rqps_generic").and(plan)
    });
    if plan.is_err() {
        // After a failed plan there may be no open transaction.
        session.simple("ROLLBACK").ok()?;
    }
    plan.ok()
}

/// The plan of one statement without parameters.
pub fn explain_one(
    dialect: Dialect,
    sql: &str,
    session: &mut Connection,
) -> Result<String, WireError> {
    let rows = session.rows(&format!("{}{sql}", dialect.spec().explain))?;
    Ok(spell(dialect, &rows))
}

/// One line per row, without columns that differ between two targets with the same plan.
fn spell(dialect: Dialect, rows: &[Vec<Option<String>>]) -> String {
    let lines = rows.iter().map(|row| {
        let all: Vec<usize> = (0..row.len()).collect();
        let known = dialect.spec().plan_columns.iter().find(|(count, _)| *count == row.len());
        let keep = known.map_or(all.as_slice(), |(_, keep)| *keep);
        let cells = keep.iter().filter_map(|index| row.get(*index));
        let cells: Vec<&str> = cells.map(|cell| cell.as_deref().unwrap_or("NULL")).collect();
        cells.join("\t")
    });
    let mut plan = lines.collect::<Vec<String>>().join("\n");
    plan.truncate(plan.floor_char_boundary(PLAN_KEPT));
    plan
}

/// Longest plan that is kept, bytes: it stands in the record of each step.
const PLAN_KEPT: usize = 256 << 10;

/// Sample values of a script's sources.
struct SourceSamples(ScriptBuffers);

impl SourceSamples {
    fn new(script: &Script, sources: &SharedSources) -> SourceSamples {
        let mut scratch = ScriptBuffers::for_script(script, sources.slots());
        // Another stream than any client's, so that no sequence is used up. A source that cannot be
        // drawn fails the step a moment later.
        let mut client = sources.of_client(SAMPLE_SEED, 0);
        let all: Vec<u32> = (0..script.sources.len() as u32).collect();
        client.draw(&all, &mut scratch.drawn).unwrap_or_default();
        SourceSamples(scratch)
    }

    /// Executes a statement whose row gives values to later ones.
    fn take(&mut self, sql: &str, into: &[u32], session: &mut Connection) -> Result<(), String> {
        let mut rows = RowTexts::default();
        session.simple_rows(sql, &mut rows).map_err(|error| error.to_string())?;
        self.0.keep(&rows, into).map_err(|what| format!("execute {sql:?}: {what}"))
    }

    /// A statement with literals for its parameters.
    fn spell(&mut self, operation: &Operation, dialect: Dialect, backslash: bool) -> String {
        // Postgres takes the type of a parameter from its place, as that of a text in quotes.
        let is_typed_by_place =
            dialect == Dialect::Postgres && operation.protocol == Protocol::Prepared;
        let part = |fragment: &Fragment| match fragment {
            Fragment::Sql(sql) => sql.clone(),
            Fragment::Literal(parameter) => {
                let index = *parameter as usize;
                let literal = self.0.literal(operation.parameters[index], index, backslash);
                let is_bare = literal != "NULL" && !literal.ends_with('\'');
                if is_typed_by_place && is_bare { format!("'{literal}'") } else { literal }
            }
        };
        operation.fragments.iter().map(part).collect()
    }
}

/// The statement on table 1 with literals for its placeholders: `{n}` in text protocol, `$n` or `?`
/// by dialect.
fn with_samples(operation: &Operation, dialect: Dialect, rows: u64) -> String {
    let sql = operation.sql.replace("{table}", "1");
    let values = samples(&operation.parameters, rows);
    match (operation.protocol, dialect.spec().placeholder) {
        (Protocol::Text, _) => numbered(&sql, &values, |number| format!("{{{number}}}")),
        (Protocol::Prepared, Placeholder::Numbered) => {
            numbered(&sql, &values, |number| format!("${number}"))
        }
        (Protocol::Prepared, Placeholder::InOrder) => {
            let mut values = values.iter();
            sql.chars().fold(String::new(), |mut text, letter| {
                match (letter, letter == '?') {
                    (_, true) => text.push_str(values.next().map_or("?", String::as_str)),
                    (other, false) => text.push(other),
                }
                text
            })
        }
    }
}

/// Replaces from the last number down, so that `$1` does not match the beginning of `$12`.
fn numbered(sql: &str, values: &[String], mark: impl Fn(usize) -> String) -> String {
    (1..=values.len())
        .rev()
        .fold(sql.to_owned(), |text, number| text.replace(&mark(number), &values[number - 1]))
}

/// Values from the middle of the table on; each id differs.
fn samples(parameters: &[Parameter], rows: u64) -> Vec<String> {
    let middle = (rows / 2).max(1);
    let (mut last_id, mut start) = (middle, middle);
    let mut values = Vec::with_capacity(parameters.len());
    for (index, parameter) in parameters.iter().enumerate() {
        values.push(match parameter {
            Parameter::Id | Parameter::Key => {
                last_id = middle + index as u64;
                last_id.to_string()
            }
            Parameter::FirstId => "1".to_owned(),
            Parameter::SameId => last_id.to_string(),
            Parameter::HotId { offset } => (rows / 2 + u64::from(*offset)).to_string(),
            Parameter::RangeStart => {
                start = middle;
                start.to_string()
            }
            Parameter::RangeEnd { span } => (start + u64::from(*span)).to_string(),
            Parameter::Digits { .. } => "'00000000000'".to_owned(),
            Parameter::Value { .. } => "NULL".to_owned(),
        });
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::script::Distribution;
    use rqps_model::script::{Freshness, SourceValues, ValueSource};

    fn row(cells: &[&str]) -> Vec<Option<String>> {
        cells.iter().map(|cell| Some((*cell).to_owned())).collect()
    }

    /// A column of text has no operator for a number.
    #[test]
    fn postgres_takes_the_type_of_a_value_from_its_place() {
        let list = |texts: &[&str]| SourceValues::List {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            weights: Vec::new(),
            whole: texts == ["7"],
        };
        let spelled = |values: SourceValues, dialect: Dialect| {
            let source = ValueSource {
                name: "v".to_owned(),
                values,
                freshness: Freshness::Event,
                count: 1,
                distinct: false,
                nulls: 0.0,
            };
            let whole = source.is_whole();
            let plain = Script::of(false, Vec::new(), Distribution::Uniform);
            let script = Script { sources: vec![source], ..plain };
            let sources = SharedSources::open(&script, 1).unwrap();
            let operation = Operation {
                protocol: Protocol::Prepared,
                parameters: vec![Parameter::Value { slot: 0, whole }],
                fragments: vec![Fragment::Sql("a = ".to_owned()), Fragment::Literal(0)],
                ..Operation::PLAIN
            };
            SourceSamples::new(&script, &sources).spell(&operation, dialect, false)
        };
        assert_eq!(spelled(list(&["7"]), Dialect::Postgres), "a = '7'");
        assert_eq!(spelled(list(&["7"]), Dialect::Mysql), "a = 7");
        assert_eq!(spelled(list(&["007"]), Dialect::Postgres), "a = '007'");
        assert_eq!(spelled(list(&["007"]), Dialect::Mysql), "a = '007'");
    }

    #[test]
    fn one_plan_of_two_versions_of_mysql_is_one_text() {
        let old = row(&["1", "SIMPLE", "t", "const", "PRIMARY", "PRIMARY", "4", "const", "1", "x"]);
        let new = row(&[
            "1", "SIMPLE", "t", "NULL", "const", "PRIMARY", "PRIMARY", "4", "const", "1", "100.00",
            "x",
        ]);
        let text = spell(Dialect::Mysql, &[old]);
        assert_eq!(text, "SIMPLE\tt\tconst\tPRIMARY\t4\tconst\tx");
        assert_eq!(text, spell(Dialect::Mysql, &[new]));
        let endless = spell(Dialect::Postgres, &[row(&[&"é".repeat(PLAN_KEPT)])]);
        assert_eq!(endless.len(), PLAN_KEPT);
    }

    #[test]
    fn placeholders_become_literals_and_twelve_is_not_one() {
        let mut operation = Operation {
            kind: "points".to_owned(),
            sql: "SELECT c FROM t{table} WHERE id IN ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)"
                .to_owned(),
            parameters: vec![Parameter::Id; 11],
            ..Operation::PLAIN
        };
        let want = "SELECT c FROM t1 WHERE id IN (50,51,52,53,54,55,56,57,58,59,60)";
        assert_eq!(with_samples(&operation, Dialect::Postgres, 100), want);
        operation.sql = "SELECT c FROM t{table} WHERE id IN (?,?,?,?,?,?,?,?,?,?,?)".to_owned();
        assert_eq!(with_samples(&operation, Dialect::Mysql, 100), want);
    }
}
