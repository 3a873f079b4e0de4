//! Reads EXPLAIN (FORMAT JSON) of Postgres into the words of one version.

use serde_json::Value as Json;

use crate::postgres::hollow::{Row, Session, cell, many};
use crate::postgres::source::Facts;
use crate::postgres::{explain, refusal};
use crate::rehearsal::{PlanError, PlanNode};
use rqps_model::dialect::Dialect::Postgres;
use rqps_model::sql_name::Literal;
use rqps_text::SqlLexer;

/// Keys that are no conditions: they become parts of the node, or tell nothing about how it works.
const STRUCTURE: [&str; 35] = [
    "Node Type", "Strategy", "Partial Mode", "Parent Relationship", "Subplan Name",
    "Parallel Aware", "Async Capable", "Scan Direction", "Index Name", "Relation Name", "Schema",
    "Alias", "Startup Cost", "Total Cost", "Plan Rows", "Plan Width", "Plans", "Join Type",
    "Command", "Operation", "CTE Name", "Function Name", "Table Function Name", "Tuplestore Name",
    "Inner Unique", "Single Copy", "Planned Partitions", "Disabled", "Output", "Triggers",
    "Cache Mode", "Window", "Storage", "Custom Plan Provider", "Target Tables",
];

/// The plan in the first value of the first row; `None` if it is none.
pub(super) fn read(text: &str) -> Option<PlanNode> {
    let json: Json = serde_json::from_str(text).ok()?;
    match json.as_array()?.first() {
        Some(first) => Some(node(first.get("Plan")?)),
        // A rule may leave nothing to do.
        None => Some(PlanNode::of("Nothing")),
    }
}

/// Each condition as it stands there, with the table of its node or of the one above: an index of a
/// bitmap has none of its own.
pub(super) fn conditions(text: &str) -> Vec<(String, String)> {
    fn collect(json: &Json, above: &str, found: &mut Vec<(String, String)>) {
        let table = json.get("Relation Name").and_then(Json::as_str).unwrap_or(above);
        for (key, value) in json.as_object().into_iter().flatten() {
            if let (Some(text), true) = (value.as_str(), key == "Filter" || key.ends_with("Cond")) {
                found.push((table.to_owned(), text.to_owned()));
            }
        }
        let below = json.get("Plans").and_then(Json::as_array);
        below.into_iter().flatten().for_each(|plan| collect(plan, table, found));
    }
    let mut found = Vec::new();
    if let Ok(json) = serde_json::from_str::<Json>(text)
        && let Some(plan) = json.get(0).and_then(|first| first.get("Plan"))
    {
        collect(plan, "", &mut found);
    }
    found
}

fn node(json: &Json) -> PlanNode {
    let text = |key: &str| json.get(key).and_then(Json::as_str);
    let owned = |key: &str| text(key).map(str::to_owned);
    let number = |key: &str| json.get(key).and_then(Json::as_f64);
    let kind = text("Node Type").unwrap_or_default();
    let mut made = PlanNode {
        kind: kind_of(kind, &text),
        role: owned("Subplan Name"),
        relation: owned("Relation Name"),
        alias: owned("Alias").or_else(|| owned("CTE Name")),
        index: owned("Index Name"),
        direction: owned("Scan Direction").filter(|direction| direction == "Backward"),
        rows: number("Plan Rows"),
        cost: number("Total Cost"),
        parallel: json.get("Parallel Aware").and_then(Json::as_bool).unwrap_or(false),
        joins: matches!(kind, "Nested Loop" | "Hash Join" | "Merge Join"),
        ..PlanNode::default()
    };
    for (key, value) in json.as_object().into_iter().flatten() {
        let is_nothing = key == "Subplans Removed" && value == 0;
        if !STRUCTURE.contains(&key.as_str()) && !is_nothing {
            made.condition(key, normal(&words(value)));
        }
    }
    if let Some(alias) = made.alias.clone() {
        unqualify(&mut made, &alias);
    }
    let plans = json.get("Plans").and_then(Json::as_array);
    made.children = plans.into_iter().flatten().map(node).collect();
    made
}

/// The name of a node as EXPLAIN writes it in its text form.
fn kind_of<'a>(kind: &str, text: &dyn Fn(&str) -> Option<&'a str>) -> String {
    let strategy = text("Strategy").unwrap_or_default();
    let mut name = match (kind, strategy) {
        ("Aggregate", "Sorted") => "GroupAggregate".to_owned(),
        ("Aggregate", "Hashed") => "HashAggregate".to_owned(),
        ("Aggregate", "Mixed") => "MixedAggregate".to_owned(),
        ("SetOp", _) => {
            let hashed = if strategy == "Hashed" { "Hash" } else { "" };
            format!("{hashed}SetOp {}", text("Command").unwrap_or_default())
        }
        ("ModifyTable", _) => text("Operation").unwrap_or(kind).to_owned(),
        _ => kind.to_owned(),
    };
    match text("Join Type") {
        Some("Inner") | None => {}
        Some(join) => {
            name = match name.strip_suffix(" Join") {
                Some(method) => format!("{method} {join} Join"),
                None => format!("{name} {join} Join"),
            };
        }
    }
    match text("Partial Mode") {
        Some(mode @ ("Partial" | "Finalize")) => format!("{mode} {name}"),
        _ => name,
    }
}

fn words(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Array(list) => list.iter().map(words).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// The text of an expression in the words of the oldest version: `(hashed SubPlan 1)` is `(ANY (x =
/// (hashed SubPlan 1).col1))` from 17 on, `$0` is `(InitPlan 1).col1`; their numbers mean nothing.
fn normal(text: &str) -> String {
    let mut text = text.to_owned();
    for word in ["SubPlan ", "InitPlan ", "$"] {
        text = without_number(&text, word);
    }
    text = without_number(&text.replace("(InitPlan).col", "$"), "$");
    for function in ["EXISTS(", "ARRAY("] {
        for plan in ["SubPlan", "hashed SubPlan"] {
            text = text.replace(&format!("{function}{plan})"), &format!("({plan})"));
        }
    }
    // The name of a window, which only 18 tells.
    let windows: Vec<&str> = text.split(" OVER ").collect();
    let rest = windows[1..].iter().map(|after| {
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        after.strip_prefix("(?)").unwrap_or_else(|| after.trim_start_matches(is_name))
    });
    text = windows[..1].iter().copied().chain(rest).collect::<Vec<_>>().join(" OVER");
    for quantifier in ["(ANY (", "(ALL ("] {
        let mut from = 0;
        while let Some(begin) = text[from..].find(quantifier).map(|at| from + at) {
            let end = closing(&text, begin).unwrap_or(text.len());
            let inner = &text[begin..end];
            if inner.contains("SubPlan") {
                let plan =
                    if inner.contains("(hashed SubPlan)") { "hashed SubPlan" } else { "SubPlan" };
                text.replace_range(begin..end, &format!("({plan})"));
            }
            from = begin + 1;
        }
    }
    text
}

/// Drops the digits after each `word`, with the blank before them.
fn without_number(text: &str, word: &str) -> String {
    let mut made = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let after = &rest[at + word.len()..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        made.push_str(&rest[..at]);
        made.push_str(if digits > 0 { word.trim_end() } else { word });
        rest = &after[digits..];
    }
    made.push_str(rest);
    made
}

/// The end of what the parenthesis at `begin` opens.
fn closing(text: &str, begin: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in text.bytes().enumerate().skip(begin) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// Drops the name of a table before its columns.
fn unqualify(node: &mut PlanNode, alias: &str) {
    let prefix = format!("{alias}.");
    for condition in &mut node.conditions {
        let mut made = String::new();
        let mut rest = condition.text.as_str();
        while let Some(at) = rest.find(&prefix) {
            let before = rest[..at].chars().next_back().or(made.chars().next_back());
            let is_word = |c: char| c.is_alphanumeric() || ['_', '.', '"', '\''].contains(&c);
            made.push_str(&rest[..at]);
            if before.is_some_and(is_word) {
                made.push_str(&prefix);
            }
            rest = &rest[at + prefix.len()..];
        }
        made.push_str(rest);
        condition.text = made;
    }
}

// Statements with parameters: a generic plan, and plans with sets of values from the statistics.

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
        let raw = crate::postgres::raw_conditions(session, &head, &nulls)?;
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
    use crate::compare::{PlanClass, compare};

    #[test]
    fn words_of_versions_are_no_difference() {
        let check = |old: &str, new: &str| assert_eq!(normal(old), normal(new), "{old} | {new}");
        check("(NOT (hashed SubPlan 1))", "(NOT (ANY (a = (hashed SubPlan 1).col1)))");
        check("(b AND (SubPlan 2))", "(b AND EXISTS(SubPlan 2))");
        check("rank() OVER (?), a", "rank() OVER w1, a");
        check("(a > $0)", "(a > (InitPlan 1).col1)");
        check("(SubPlan 3)", "(ALL ((f(a) + 1) > (SubPlan 4).col1))");
        assert_ne!(normal("(a = ANY ('{1,2}'::integer[]))"), normal("(a = 1)"));
    }

    fn plan(json: &str) -> PlanNode {
        read(&format!("[{{\"Plan\": {json}}}]")).unwrap()
    }

    #[test]
    fn names_are_those_of_the_text_form() {
        let scan = |alias: &str, more: &str| {
            format!(
                "{{\"Node Type\": \"Index Scan\", \"Parallel Aware\": false, \"Index Name\": \"i\", \
                 \"Scan Direction\": \"Backward\", \"Relation Name\": \"t\", \"Alias\": \"{alias}\", \
                 \"Total Cost\": 8.5, \"Plan Rows\": 3{more}}}"
            )
        };
        let one = plan(&scan("x", ", \"Index Cond\": \"(x.a = 1)\""));
        let other = plan(&scan("x", ", \"Index Cond\": \"(a = 1)\", \"Async Capable\": false"));
        assert_eq!(one.title(), "Index Scan Backward using i on t x");
        assert_eq!(compare(&one, &other).class, PlanClass::Same);
        let join = plan(&format!(
            "{{\"Node Type\": \"Hash Join\", \"Join Type\": \"Left\", \"Hash Cond\": \"(x.a = y.a)\", \
             \"Plans\": [{}, {}]}}",
            scan("x", ""),
            scan("y", "")
        ));
        assert!(join.joins && join.kind == "Hash Left Join", "{join:?}");
        assert_eq!(join.conditions[0].text, "(x.a = y.a)");
        assert!(read("[]").is_some() && read("{").is_none());
    }
}

#[cfg(test)]
mod parameters_tests {
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
