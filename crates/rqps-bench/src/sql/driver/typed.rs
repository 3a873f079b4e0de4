//! Statements of pg_stat_statements as Postgres prepares them: values in the places of constants
//! that its grammar allows no parameter for.

use std::collections::BTreeMap;

use super::facts::{TableFacts, TopStatement};
use super::operands::{Operand, Operands};
use super::token_tree::{NodeKind, SQUEEZED, TokenTree};

/// Words after which a value stands as an expression. Any other word before one is its type.
const BEFORE_VALUES: &[&str] = &[
    "SELECT", "DISTINCT", "ALL", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "LIKE", "ILIKE",
    "BETWEEN", "SYMMETRIC", "ASYMMETRIC", "THEN", "ELSE", "WHEN", "CASE", "ON", "HAVING", "BY",
    "SET", "VALUES", "LIMIT", "OFFSET", "AS", "RETURNING", "TO", "FOR", "ZONE", "ESCAPE", "FIRST",
    "NEXT", "ROWS", "RANGE", "GROUPS", "LEADING", "TRAILING", "BOTH", "PLACING", "VARIADIC",
    "UNION", "EXCEPT", "INTERSECT", "USING", "UESCAPE", "DEFAULT", "IS", "OVERLAPS", "ANY", "SOME",
];

/// Types that may have a precision before a value.
const WITH_PRECISION: &[&str] =
    &["TIMESTAMP", "TIME", "INTERVAL", "NUMERIC", "DECIMAL", "VARCHAR", "CHAR", "BIT", "BPCHAR"];

/// The statement with casts for `interval $1`, and a field for `extract($1 from …)`. Statistics do
/// not keep which field it was: it suits the type of the column, and the second is true.
pub(super) fn with_values(statement: &TopStatement, tables: &[TableFacts]) -> (String, bool) {
    let tree = TokenTree::of(statement);
    let operands = Operands::of(&tree, tables);
    let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
    let (mut sql, mut from, mut is_assumed) = (String::new(), 0, false);
    for (at, number) in tree.values() {
        let node = tree.nodes[at];
        let is_field = tree.is_sign(at.wrapping_sub(1), "(")
            && tree.is(at.wrapping_sub(2), "EXTRACT")
            && tree.is(at + 1, "FROM");
        if is_field {
            sql.push_str(&tree.sql[from..node.begin]);
            sql.push_str(field_of(operands.right(at + 2), tables));
            (from, is_assumed) = (node.end, true);
            continue;
        }
        let next = numbers.len() + 1;
        let number = *numbers.entry(number).or_insert(next);
        let typed = type_before(&tree, at);
        let begin = typed.map_or(node.begin, |first| tree.nodes[first].begin);
        sql.push_str(&tree.sql[from..begin]);
        sql.push_str(&format!("${number}"));
        if typed.is_some() {
            sql.push_str(&format!("::{}", tree.sql[begin..node.begin].trim_end()));
        }
        from = node.end;
        if let NodeKind::Values(_) = node.kind {
            sql.push_str(SQUEEZED);
        }
    }
    (sql + &tree.sql[from..], is_assumed)
}

/// A field that all values of an operand have.
fn field_of(operand: Operand, tables: &[TableFacts]) -> &'static str {
    let type_name = match operand {
        Operand::Column { table, column, .. } => tables[table].columns[column].type_name.as_str(),
        _ => "",
    };
    match type_name {
        name if name.starts_with("time ") => "hour",
        "interval" => "day",
        _ => "year",
    }
}

/// The first token of the type that stands before the value at `at`, as in `interval $1` and
/// `time with time zone $1`.
fn type_before(tree: &TokenTree<'_>, at: usize) -> Option<usize> {
    let mut last = at.checked_sub(1)?;
    let is_zone = tree.is(last, "ZONE")
        && tree.is(last.wrapping_sub(1), "TIME")
        && tree.is_any(last.wrapping_sub(2), &["WITH", "WITHOUT"]);
    if is_zone {
        last = last.checked_sub(3)?;
    }
    let is_precise = tree.is_sign(last, ")");
    if is_precise {
        last = tree.nodes[last].partner?.checked_sub(1)?;
    }
    let is_type = if is_precise {
        tree.is_any(last, WITH_PRECISION)
    } else {
        tree.name(last).is_some() && !tree.is_any(last, BEFORE_VALUES)
    };
    if !is_type {
        return None;
    }
    if tree.is(last, "PRECISION") || tree.is(last, "VARYING") {
        last = last.checked_sub(1)?;
    }
    while tree.is_sign(last.wrapping_sub(1), ".") {
        last = last.checked_sub(2)?;
    }
    Some(last)
}

/// The statement with the same values in expressions of GROUP BY and ORDER BY as in the same ones
/// before them. The statistics number constants of both apart, or keep those of GROUP BY as they
/// were; the server takes expressions with different parameters for different.
pub(super) fn with_same_values(statement: &TopStatement) -> String {
    let tree = TokenTree::of(statement);
    let mut same: BTreeMap<usize, String> = BTreeMap::new();
    for by in 0..tree.nodes.len() {
        if !tree.is(by, "BY") {
            continue;
        }
        let parent = tree.nodes[by].parent;
        let ends = |at: &usize| {
            tree.nodes[*at].parent == parent
                && tree.is_any(*at, &["HAVING", "ORDER", "LIMIT", "UNION", "FOR", "OFFSET"])
                || parent.is_some_and(|open| tree.nodes[open].partner == Some(*at))
        };
        let end = (by..tree.nodes.len()).find(ends).unwrap_or(tree.nodes.len());
        for (first, end) in tree.items(by + 1, end) {
            let is_order = tree.is_any(end - 1, &["ASC", "DESC"]);
            same.extend(earlier(&tree, first, if is_order { end - 1 } else { end }));
        }
    }
    tree.with(|at| same.get(&tree.value(at)?).cloned())
}

/// Numbers of values that are known from the same expression before two tokens, or after them, each
/// with what stands there.
fn earlier(tree: &TokenTree<'_>, first: usize, end: usize) -> Vec<(usize, String)> {
    let length = end.saturating_sub(first);
    let is_same = |one: usize, other: usize| match (tree.value(one), tree.value(other)) {
        (None, None) => tree.text(one).eq_ignore_ascii_case(tree.text(other)),
        // `$1` and `'month'`, or `year` in extract.
        (Some(_), None) => !matches!(tree.nodes[other].kind, NodeKind::Sign | NodeKind::Name),
        (one, _) => one.is_some() || tree.value(other).is_some(),
    };
    let begin = (0..first.saturating_sub(length))
        .find(|begin| (0..length).all(|offset| is_same(begin + offset, first + offset)));
    let Some(begin) = begin.filter(|_| length > 1) else { return Vec::new() };
    let pair = |offset| match (tree.value(begin + offset), tree.value(first + offset)) {
        (_, Some(later)) => Some((later, tree.text(begin + offset).to_owned())),
        (Some(before), None) => Some((before, tree.text(first + offset).to_owned())),
        _ => None,
    };
    (0..length).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::super::facts::ColumnFacts;
    use super::*;

    fn of(sql: &str) -> TopStatement {
        TopStatement { sql: sql.to_owned(), ..TopStatement::default() }
    }

    #[test]
    fn constants_with_a_type_become_casts() {
        let column = |name: &str, type_name: &str| ColumnFacts {
            name: name.to_owned(),
            type_name: type_name.to_owned(),
            ..ColumnFacts::default()
        };
        let columns = vec![column("day", "date"), column("opens", "time without time zone")];
        let tables = [TableFacts { name: "shop".to_owned(), columns, ..TableFacts::default() }];
        let check = |sql: &str, want: &str| assert_eq!(with_values(&of(sql), &tables).0, want);
        check(
            "SELECT 1 FROM shop WHERE day > now() - interval $1 AND day < date $2 LIMIT $3",
            "SELECT 1 FROM shop WHERE day > now() - $1::interval AND day < $2::date LIMIT $3",
        );
        check(
            "SELECT time with time zone $1, timestamp(3) without time zone $2, double precision $3",
            "SELECT $1::time with time zone, $2::timestamp(3) without time zone, \
             $3::double precision",
        );
        check(
            "SELECT interval $1 day, public.colour $2",
            "SELECT $1::interval day, $2::public.colour",
        );
        check(
            "SELECT day AT TIME ZONE $1, $2::date FROM shop WHERE day BETWEEN $3 AND $4",
            "SELECT day AT TIME ZONE $1, $2::date FROM shop WHERE day BETWEEN $3 AND $4",
        );
        check(
            "SELECT extract($1 FROM day), extract($2 from opens) FROM shop WHERE day = $3",
            "SELECT extract(year FROM day), extract(hour from opens) FROM shop WHERE day = $1",
        );
    }

    #[test]
    fn an_expression_that_is_grouped_by_has_the_same_values() {
        let sql = "SELECT date_trunc($1, day) AS d, count(*) FROM shop WHERE id = $2 GROUP BY \
                   date_trunc($3, day), city ORDER BY date_trunc($4, day) DESC LIMIT $5";
        let want = "SELECT date_trunc($1, day) AS d, count(*) FROM shop WHERE id = $2 GROUP BY \
                    date_trunc($1, day), city ORDER BY date_trunc($1, day) DESC LIMIT $5";
        assert_eq!(with_same_values(&of(sql)), want);
        // Where the statistics keep them, they are the values before.
        let sql = "SELECT extract($1 from day), a + $2, date_trunc($3, day) FROM shop GROUP BY \
                   extract(year from day), date_trunc('month', day), a + $4";
        let want = "SELECT extract(year from day), a + $2, date_trunc('month', day) FROM shop \
                    GROUP BY extract(year from day), date_trunc('month', day), a + $2";
        assert_eq!(with_same_values(&of(sql)), want);
    }
}
