//! Statements of MySQL and MariaDB from their statistics: the text that was sent, with `?` in the
//! places of its literals, and the digest as a statement that the server takes.

use std::collections::{BTreeMap, BTreeSet};

use super::operands::{NO_OPERAND, Operand, Operands};
use super::ranges::{RowOfValues, ValueGuess};
use super::statements::{NodeKind, SQUEEZED, TokenTree, meaning};
use super::survey::{TableFacts, TopStatement};
use super::written::Target;
use rqps_model::dialect::Dialect;
use rqps_text::{TokenKind, tokens};

/// Types of literals that stand before a text, and what they are in CAST.
const TYPED: [(&str, &str); 3] = [("DATE", "DATE"), ("TIMESTAMP", "DATETIME"), ("TIME", "TIME")];

/// Names of the current time that digests spell without parentheses.
const NOW: [(&str, &str); 3] =
    [("NOW", "CURRENT_TIMESTAMP"), ("CURDATE", "CURRENT_DATE"), ("CURTIME", "CURRENT_TIME")];

/// Lengths of types, which digests hide.
const LENGTHS: [(&str, &str); 6] = [
    ("DECIMAL", "(30, 6)"),
    ("CHARACTER", "(255)"),
    ("CHAR", "(255)"),
    ("BINARY", "(255)"),
    ("DATETIME", "(6)"),
    ("TIME", "(6)"),
];

/// Spellings of a statement, the best first: what was sent with values in the places of literals of
/// which the column is known; what was sent; the digest with its lists spelled out.
pub(super) fn spellings(
    digest: &str,
    sample: Option<&str>,
    tables: &[TableFacts],
) -> Vec<TopStatement> {
    let mut all = Vec::new();
    if let Some(sent) = sample.and_then(without_comments) {
        let of = |sql: String, seen, counts| TopStatement {
            sql,
            is_mysql: true,
            seen,
            counts,
            ..TopStatement::default()
        };
        all.extend(Literals::of(&sent).statement(tables));
        all.push(of(sent, Vec::new(), Vec::new()));
    }
    all.extend([2, 3].map(|values| TopStatement {
        sql: repaired(digest, values, tables),
        is_mysql: true,
        ..TopStatement::default()
    }));
    all
}

/// A statement as one line without comments but hints; `None` if it was cut, or if MySQL executes comments.
fn without_comments(sample: &str) -> Option<String> {
    let sample = sample.trim_end().trim_end_matches(';');
    let all = tokens(Dialect::Mysql, sample.as_bytes()).ok()?;
    let is_cut = sample.ends_with("...") || all.iter().any(|token| token.comment.is_some());
    let mut sql = String::new();
    let mut before = 0;
    for token in all.iter().filter(|_| !is_cut) {
        if token.begin > before && before > 0 {
            sql.push(' ');
            let gap = sample.get(before..token.begin)?.trim();
            if gap.starts_with("/*+") && gap.find("*/") == gap.len().checked_sub(2) {
                sql.push_str(gap);
                sql.push(' ');
            }
        }
        sql.push_str(sample.get(token.begin..token.end)?);
        before = token.end;
    }
    (!sql.is_empty()).then_some(sql)
}

/// The literals of a statement: begin and end.
struct Literals<'a> {
    sql: &'a str,
    places: Vec<(usize, usize)>,
}

impl<'a> Literals<'a> {
    fn of(sql: &'a str) -> Literals<'a> {
        let all = tokens(Dialect::Mysql, sql.as_bytes()).unwrap_or_default();
        let text = |at: usize| all.get(at).map_or("", |token| &sql[token.begin..token.end]);
        let mut places = Vec::new();
        for (at, token) in all.iter().enumerate() {
            if !matches!(token.kind, TokenKind::Text | TokenKind::Number) {
                continue;
            }
            let before = at.checked_sub(1).map(|at| (all[at], text(at)));
            let begin = match before {
                Some((word, name)) if word.kind == TokenKind::Word => {
                    let is_typed = TYPED.iter().any(|(of, _)| name.eq_ignore_ascii_case(of));
                    // Of `x'41'` and `_utf8'a'` the word is a part.
                    if word.end == token.begin && token.kind == TokenKind::Text {
                        continue;
                    }
                    if is_typed { word.begin } else { token.begin }
                }
                Some((sign, "-")) => {
                    let ahead = at.checked_sub(2).map_or("", text);
                    let is_sign = ["=", "<", ">", "(", ","].contains(&ahead);
                    if is_sign { sign.begin } else { token.begin }
                }
                // `1` of `.1`
                Some((_, ".")) => continue,
                _ => token.begin,
            };
            places.push((begin, token.end));
        }
        Literals { sql, places }
    }

    /// The statement with `?` for some of its literals. The others stay.
    fn with_values(&self, chosen: &BTreeSet<usize>) -> String {
        let (mut sql, mut from) = (String::new(), 0);
        for (number, (begin, end)) in self.places.iter().enumerate() {
            if chosen.contains(&number) {
                sql.push_str(&self.sql[from..*begin]);
                sql.push('?');
                from = *end;
            }
        }
        sql + &self.sql[from..]
    }

    /// The statement with values for literals that are compared with a column or stored in one.
    /// None if it has `?` itself, or no such literal.
    fn statement(&self, tables: &[TableFacts]) -> Option<TopStatement> {
        if TokenTree::read(Dialect::Mysql, self.sql).values().next().is_some() {
            return None;
        }
        let all: BTreeSet<usize> = (0..self.places.len()).collect();
        let of = |sql: String| TopStatement { sql, is_mysql: true, ..TopStatement::default() };
        let statement = of(self.with_values(&all));
        let guesses = meaning(&statement, tables).guesses;
        let tree = TokenTree::of(&statement);
        let operands = Operands::of(&tree, tables);
        let is_data = |(at, number): &(usize, usize)| match guesses.get(*number) {
            Some(ValueGuess::Stored(..)) => true,
            Some(ValueGuess::Column(..) | ValueGuess::Pattern(..) | ValueGuess::Year(..)) => {
                // GROUP BY knows expressions of the select list by their text.
                !operands.is_listed(*at)
            }
            _ => false,
        };
        let chosen: BTreeSet<usize> = tree.values().filter(is_data).map(|it| it.1).collect();
        let mut statement = of(self.with_values(&chosen));
        let seen = |number: &usize| {
            let (begin, end) = self.places[*number];
            self.sql[begin..end].to_owned()
        };
        statement.seen = chosen.iter().map(seen).collect();
        with_list_counts(&mut statement, tables);
        (!chosen.is_empty()).then_some(statement)
    }
}

/// Spells `IN (?, ?, ?)` as a list of so many values. Its first value stays by itself if it is of
/// one row with another.
fn with_list_counts(statement: &mut TopStatement, tables: &[TableFacts]) {
    let rows = meaning(statement, tables).rows;
    let is_of_row = |value: usize| {
        let has = |row: &RowOfValues| row.columns.iter().any(|(_, own)| *own == value);
        rows.iter().any(|row| row.is_equal && row.columns.len() > 1 && has(row))
    };
    let tree = TokenTree::of(statement);
    let mut lists: BTreeMap<usize, usize> = BTreeMap::new();
    for open in 1..tree.nodes.len() {
        let Some(close) = tree.nodes[open].partner.filter(|close| *close > open) else { continue };
        let items = tree.items(open + 1, close);
        let is_value =
            |(begin, end): &(usize, usize)| *end == begin + 1 && tree.value(*begin).is_some();
        if tree.is(open - 1, "IN") && items.len() > 1 && items.iter().all(is_value) {
            lists.insert(open, close);
        }
    }
    let (mut seen, mut counts) = (Vec::new(), Vec::new());
    let mut sql = String::new();
    let mut from = 0;
    for (at, number) in tree.values() {
        let list = tree.nodes[at].parent.and_then(|open| Some((open, *lists.get(&open)?)));
        match list {
            Some((open, close)) if at == open + 1 => {
                sql.push_str(&tree.sql[from..tree.nodes[at].begin]);
                let mut count = tree.items(open + 1, close).len() as u32;
                if is_of_row(number) {
                    sql.push_str("?, ");
                    counts.push(1);
                    seen.push(statement.seen.get(number).cloned().unwrap_or_default());
                    count -= 1;
                }
                sql.push_str(if count > 1 { "?..." } else { "?" });
                from = tree.nodes[close].begin;
                counts.push(count);
            }
            Some(_) => continue,
            None => counts.push(1),
        }
        seen.push(statement.seen.get(number).cloned().unwrap_or_default());
    }
    sql.push_str(&tree.sql[from..]);
    (statement.sql, statement.seen, statement.counts) = (sql, seen, counts);
}

/// A digest as a statement: `values` values in the place of `?, ...`, a value for each column in
/// `VALUES (...)`, and `IN (?...)` for a list of any length.
fn repaired(digest: &str, values: usize, tables: &[TableFacts]) -> String {
    // A column `day` is a unit of time to the statistics.
    let digest =
        digest.replace("SQL_TSI_", "").replace("/* , ... */", "").replace("(_charset)", "");
    let mut sql = with_words(digest.trim_end(), tables);
    // Each turn spells the first list out, so it ends.
    for _ in 0..digest.len() {
        let tree = TokenTree::read(Dialect::Mysql, &sql);
        let Some(at) = (0..tree.nodes.len()).find(|at| is_ellipsis(&tree, *at)) else { break };
        sql = with_list(&tree, at, values, tables);
    }
    sql
}

fn is_ellipsis(tree: &TokenTree<'_>, at: usize) -> bool {
    (at..at + 3).all(|at| tree.is_sign(at, "."))
}

/// The statement with values in the place of the `...` at `at`.
fn with_list(tree: &TokenTree<'_>, at: usize, values: usize, tables: &[TableFacts]) -> String {
    let node = &tree.nodes[at];
    let spell = |begin: usize, text: &str| {
        let end = tree.nodes.get(at + 2).map_or(tree.sql.len(), |node| node.end);
        format!("{}{text}{}", &tree.sql[..begin], &tree.sql[end..])
    };
    let is_whole = node.parent == at.checked_sub(1);
    let several = |count: usize| vec!["?"; count.max(1)].join(", ");
    let outer = |at: usize| node.parent.and_then(|open| open.checked_sub(at));
    let Some(open) = node.parent else {
        // An INSERT selects as many values as it names columns.
        let target = Target::of(tree, tables);
        let listed = target.as_ref().and_then(|target| Some((target, target.select?)));
        let listed = listed.filter(|(_, (from, to))| (*from..*to).contains(&at));
        let count = listed.map_or(values - 1, |(target, (from, to))| {
            target.columns.len().saturating_sub(tree.items(from, to).len() - 1)
        });
        return spell(node.begin, &several(count));
    };
    // A row of VALUES.
    if let Some(target) = Target::of(tree, tables)
        && target.values.is_some_and(|word| word < at)
        && tree.nodes[open].parent.is_none()
    {
        let close = tree.nodes[open].partner.unwrap_or(tree.nodes.len());
        let others = tree.items(open + 1, close).len() - 1;
        return spell(node.begin, &several(target.columns.len().saturating_sub(others)));
    }
    let is_in = |word: Option<usize>| word.is_some_and(|word| tree.is(word, "IN"));
    // A row that is compared: as many values as it has columns.
    let row_end = match (outer(1), tree.nodes[open].parent) {
        (Some(word), _) if tree.operator(word).is_some() => {
            tree.operator(word).and_then(|(first, _)| first.checked_sub(1))
        }
        (_, Some(list)) if is_in(list.checked_sub(1)) => list
            .checked_sub(2)
            .map(|before| if tree.is(before, "NOT") { before - 1 } else { before }),
        _ => None,
    };
    let row = row_end
        .filter(|end| tree.is_sign(*end, ")"))
        .and_then(|end| Some(tree.items(tree.nodes[end].partner? + 1, end).len()));
    match row {
        Some(columns) if is_whole => spell(node.begin, &several(columns)),
        _ if is_whole && is_in(outer(1)) => spell(node.begin, "?..."),
        _ => {
            // `IF(a, ?, ?)` has one value more than its digest has in `?, ...`.
            let is_if = outer(1).is_some_and(|word| tree.is(word, "IF"));
            let values = if is_if { 2 } else { values - 1 };
            spell(node.begin, &several(if is_whole { values + 1 } else { values }))
        }
    }
}

/// True if a table must stand at `at`.
fn names_table(tree: &TokenTree<'_>, at: usize) -> bool {
    at.checked_sub(1).is_some_and(|at| tree.is_any(at, &["FROM", "JOIN", "INTO", "UPDATE"]))
}

/// The digest with words that the server takes.
fn with_words(digest: &str, tables: &[TableFacts]) -> String {
    let tree = TokenTree::read(Dialect::Mysql, digest);
    let (mut sql, mut from) = (String::new(), 0);
    let mut put = |begin: usize, end: usize, text: &str| {
        sql.push_str(&digest[from..begin]);
        sql.push_str(text);
        from = end;
    };
    let mut at = 0;
    while at < tree.nodes.len() {
        let node = tree.nodes[at];
        let of = |pairs: &[(&str, &'static str)]| {
            pairs.iter().find(|(word, _)| tree.is(at, word)).map(|(_, other)| *other)
        };
        let is_call = tree.is_sign(at + 1, "(");
        let close = tree.nodes.get(at + 1).and_then(|node| node.partner).filter(|_| is_call);
        let is_length = close.is_some_and(|close| {
            (at + 2..close).all(|at| tree.value(at).is_some() || tree.is_sign(at, "."))
                && close > at + 2
        });
        match (of(&NOW), of(&TYPED), of(&LENGTHS)) {
            (Some(now), ..) if !is_call => put(node.begin, node.end, now),
            (_, Some(cast), _) if tree.value(at + 1).is_some() => {
                put(node.begin, tree.nodes[at + 1].end, &format!("CAST(? AS {cast})"));
                at += 1;
            }
            (.., Some(length)) if is_length => {
                let close = close.unwrap_or(at);
                put(node.end, tree.nodes[close].end, length);
                at = close;
            }
            // The grammar has no parameter there.
            _ if tree.is(at, "SEPARATOR") && tree.value(at + 1).is_some() => {
                put(node.end, tree.nodes[at + 1].end, " ','");
                at += 1;
            }
            _ if node.kind == NodeKind::Word && names_table(&tree, at) => {
                // MariaDB writes names that are keywords elsewhere in capitals.
                let is_it = |table: &&TableFacts| tree.text(at).eq_ignore_ascii_case(&table.name);
                if let Some(table) = tables.iter().find(is_it) {
                    put(node.begin, node.end, &table.name);
                }
            }
            // Functions of the server are none with a space before the parenthesis.
            _ if is_call && node.kind == NodeKind::Word && !tree.is_any(at, NO_OPERAND) => {
                put(node.end, tree.nodes[at + 1].begin, "");
            }
            _ => {}
        }
        at += 1;
    }
    sql + &digest[from..]
}

// Statements of pg_stat_statements as Postgres prepares them: values in the places of constants
// that its grammar allows no parameter for.

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
    use super::*;
    use crate::sql::draft::survey::ColumnFacts;

    fn tables() -> Vec<TableFacts> {
        let column = |name: &str| ColumnFacts { name: name.to_owned(), ..ColumnFacts::default() };
        let columns = ["id", "city", "day"].map(column).to_vec();
        vec![TableFacts { name: "customer".to_owned(), columns, ..TableFacts::default() }]
    }

    #[test]
    fn literals_of_known_columns_become_values_and_others_stay() {
        let check = |sent: &str, sql: &str, seen: &[&str]| {
            let sent = without_comments(sent).unwrap();
            let found = Literals::of(&sent).statement(&tables()).unwrap();
            assert_eq!((found.sql.as_str(), found.seen.as_slice()), (sql, &seen.map_owned()[..]));
        };
        check(
            "SELECT /* by the app */ COUNT(*), DATE_FORMAT(day, '%Y') FROM customer\n \
             WHERE city = 'Oslo' AND day > NOW() - INTERVAL 7 DAY LIMIT 10, 5;",
            "SELECT COUNT(*), DATE_FORMAT(day, '%Y') FROM customer WHERE city = ? AND day > \
             NOW() - INTERVAL 7 DAY LIMIT 10, 5",
            &["'Oslo'"],
        );
        check(
            "SELECT IF(city = 'Oslo', 1, 2) FROM customer WHERE id IN (1, -2) AND day >= DATE \
             '2024-01-02'",
            "SELECT IF(city = 'Oslo', 1, 2) FROM customer WHERE id IN (?...) AND day >= ?",
            &["1", "DATE '2024-01-02'"],
        );
        check(
            "DELETE FROM customer WHERE city = 'Oslo' AND id IN (4, 5, 6)",
            "DELETE FROM customer WHERE city = ? AND id IN (?, ?...)",
            &["'Oslo'", "4", "4"],
        );
        check(
            "DELETE FROM customer WHERE city = 'Oslo' AND id IN (4, 5)",
            "DELETE FROM customer WHERE city = ? AND id IN (?, ?)",
            &["'Oslo'", "4", "4"],
        );
        check(
            "SELECT /*+ MAX_EXECUTION_TIME(1000) */ day FROM customer WHERE id = 5",
            "SELECT /*+ MAX_EXECUTION_TIME(1000) */ day FROM customer WHERE id = ?",
            &["5"],
        );
        check(
            "INSERT INTO customer VALUES (1, x'41', '2024-01-02'), (2, NULL, NOW())",
            "INSERT INTO customer VALUES (?, x'41', ?), (?, NULL, NOW())",
            &["1", "'2024-01-02'", "2"],
        );
    }

    trait MapOwned {
        fn map_owned(&self) -> Vec<String>;
    }

    impl MapOwned for [&str] {
        fn map_owned(&self) -> Vec<String> {
            self.iter().map(|text| (*text).to_owned()).collect()
        }
    }

    #[test]
    fn what_the_server_cut_or_would_execute_is_no_statement() {
        for sent in ["SELECT 1 FROM customer WHERE ci...", "SELECT 1 /*! , 2 */", "SELECT 'a", ""] {
            assert_eq!(without_comments(sent), None, "{sent}");
        }
    }

    #[test]
    fn digests_become_statements() {
        let check = |digest: &str, want: &str| {
            assert_eq!(repaired(digest, 2, &tables()), want, "{digest}");
        };
        check("SELECT COUNT ( * ) FROM `customer`", "SELECT COUNT( * ) FROM `customer`");
        check("INSERT INTO `customer` VALUES (...)", "INSERT INTO `customer` VALUES (?, ?, ?)");
        check(
            "INSERT INTO `customer` ( `city` , `id` ) VALUES (...) /* , ... */",
            "INSERT INTO `customer` ( `city` , `id` ) VALUES (?, ?)",
        );
        check(
            "INSERT INTO `customer` ( `id` , `city` , `day` ) SELECT MAX ( `id` ) + ?, ... FROM `a`",
            "INSERT INTO `customer` ( `id` , `city` , `day` ) SELECT MAX( `id` ) + ?, ?, ? FROM `a`",
        );
        check(
            "INSERT INTO `customer` VALUES ( ?, ... , NOW ( ) )",
            "INSERT INTO `customer` VALUES ( ?, ? , NOW( ) )",
        );
        check(
            "SELECT `id` FROM `customer` WHERE ( `id` , `city` ) IN ( (...) /* , ... */ )",
            "SELECT `id` FROM `customer` WHERE ( `id` , `city` ) IN ( (?, ?)  )",
        );
        check(
            "SELECT `id` FROM `customer` WHERE ( `id` , `city` ) = (...) AND `id` IN (...)",
            "SELECT `id` FROM `customer` WHERE ( `id` , `city` ) = (?, ?) AND `id` IN (?...)",
        );
        check(
            "SELECT IF ( `id` > ?, ... ) FROM `customer` WHERE SQL_TSI_DAY < DATE ? LIMIT ?, ...",
            "SELECT IF( `id` > ?, ?, ? ) FROM `customer` WHERE DAY < CAST(? AS DATE) LIMIT ?, ?",
        );
        check(
            "SELECT CAST ( `id` AS DECIMAL (...) ) , CONVERT ( `id` , CHARACTER (?) ) , \
             (_charset) ?",
            "SELECT CAST( `id` AS DECIMAL(30, 6) ) , CONVERT( `id` , CHARACTER(255) ) ,  ?",
        );
        check(
            "SELECT GROUP_CONCAT ( `city` SEPARATOR ? ) FROM CUSTOMER WHERE ID = ?",
            "SELECT GROUP_CONCAT( `city` SEPARATOR ',' ) FROM customer WHERE ID = ?",
        );
        check(
            "UPDATE `customer` SET SQL_TSI_DAY = NOW WHERE `id` = ?",
            "UPDATE `customer` SET DAY = CURRENT_TIMESTAMP WHERE `id` = ?",
        );
    }

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
