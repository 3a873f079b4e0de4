//! Statements with parameters: a generic plan, and plans with sets of values from the statistics.

use super::session::{Row, Session, cell, many};
use super::source::Facts;
use super::{explain, refusal};
use crate::rehearsal::PlanError;
use crate::tree::PlanNode;
use rqps_model::dialect::Dialect::Postgres;
use rqps_model::sql_name::Literal;
use rqps_text::SqlLexer;

/// The name of the plan that is made for no value.
pub(super) const GENERIC: &str = "any value";

/// Names of sets of values.
const SETS: [&str; 3] = ["the most common value", "a rare value", "the largest value"];

/// The name of the prepared statement.
const NAME: &str = "rqps_plan";

/// True if a statement has parameters such as `$1`.
pub(super) fn has_parameters(text: &str) -> bool {
    let (mut lexer, mut at) = (SqlLexer::new(Postgres), 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let (next, is_code) = lexer.step(bytes, at);
        let digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
        let of_name = at > 0 && (bytes[at - 1].is_ascii_alphanumeric() || bytes[at - 1] == b'_');
        if is_code && bytes[at] == b'$' && digit && !of_name {
            return true;
        }
        at = next;
    }
    false
}

/// Values of columns, for parameters.
#[derive(Clone, Debug)]
pub(super) struct Variants {
    /// Table, column, and a value for each set.
    columns: Vec<(String, String, [String; 3])>,
}

impl Variants {
    pub(super) fn of(facts: &Facts) -> Variants {
        let column = |row: &Row| {
            let list = |at: usize| many::values(cell(row, at));
            let (common, bounds) = (list(7), list(9));
            let middle = bounds.get(bounds.len() / 2);
            let common_or_middle = common.first().or(middle)?.clone();
            let rare = middle.or(common.last())?.clone();
            let high = bounds.last().or(common.last())?.clone();
            let names = (cell(row, 1).to_owned(), cell(row, 2).to_owned());
            Some((names.0, names.1, [common_or_middle, rare, high]))
        };
        Variants { columns: facts.columns.iter().filter_map(column).collect() }
    }

    /// The generic plan, and those with values where each parameter belongs to a column.
    pub(super) fn explain(
        &self,
        session: &mut Session,
        text: &str,
    ) -> Result<Vec<(String, PlanNode)>, PlanError> {
        session.run(&["DEALLOCATE ", NAME].concat()).ok();
        session.try_rows(&["PREPARE ", NAME, " AS ", text].concat()).map_err(refusal)?;
        let broken = |error: anyhow::Error| PlanError::Broken(format!("{error:#}"));
        let count = session
            .rows("SELECT cardinality(parameter_types) FROM pg_prepared_statements")
            .map_err(broken)?;
        let count: usize = count.first().map_or("", |row| cell(row, 0)).parse().unwrap_or(0);
        let head = ["EXPLAIN (FORMAT JSON) EXECUTE ", NAME].concat();
        let mode = |name| ["SET plan_cache_mode = ", name].concat();
        session.run(&mode("force_generic_plan")).map_err(broken)?;
        let nulls = format!("({})", vec!["NULL"; count].join(", "));
        let generic = explain(session, &head, &nulls)?;
        let mut found = vec![(GENERIC.to_owned(), generic)];
        // The conditions of that plan say to which columns parameters belong.
        let raw = super::raw_conditions(session, &head, &nulls)?;
        session.run(&mode("force_custom_plan")).map_err(broken)?;
        for (set, name) in SETS.iter().enumerate() {
            let value = |number: usize| {
                let values = self.columns.iter().find(|(table, column, _)| {
                    raw.iter().any(|(relation, condition)| {
                        relation == table && compares(condition, column, number)
                    })
                });
                values.map(|(.., values)| Literal::quoted(Postgres, &values[set]).to_string())
            };
            let values: Option<Vec<String>> = (1..=count).map(value).collect();
            let Some(values) = values else { break };
            let list = format!("({})", values.join(", "));
            if let Ok(plan) = explain(session, &head, &list) {
                found.push((name.to_string(), plan));
            }
        }
        Ok(found)
    }
}

/// True if a condition such as `((a = $1) AND (x.b > $2))` compares the column with that parameter.
fn compares(condition: &str, column: &str, number: usize) -> bool {
    let parameter = format!("${number}");
    condition.split(['(', ')']).any(|part| {
        let mut words = part.split_whitespace();
        let (left, _, right) = (words.next(), words.next(), words.next());
        let is_column = |word: &str| {
            let word = word.rsplit('.').next().unwrap_or_default();
            word.split("::").next() == Some(column)
        };
        let is_parameter = |word: &str| word.split("::").next() == Some(parameter.as_str());
        match (left, right) {
            (Some(left), Some(right)) => {
                is_column(left) && is_parameter(right) || is_parameter(left) && is_column(right)
            }
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_code_and_in_conditions() {
        assert!(has_parameters("SELECT 1 FROM t WHERE a = $1"));
        assert!(!has_parameters("SELECT '$1', $$ $2 $$, a$1 FROM t -- $3"));
        let condition = "((t.a = $1) AND (b > $12) AND ($3 = c))";
        assert!(compares(condition, "a", 1) && compares(condition, "b", 12));
        assert!(compares(condition, "c", 3) && !compares(condition, "b", 1));
    }
}
