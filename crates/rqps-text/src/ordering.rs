//! The order that a query asks for: the same query with its sort keys as further columns, and with
//! one row more than its limit allows, which tells whether the last rows are ties.

use crate::admission::{Token, TokenKind, tokens};
use rqps_model::dialect::Dialect;

/// A query that also returns its sort keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedQuery {
    /// Its text. The keys are the last columns.
    pub sql: String,
    /// The keys, in order: true for one that descends.
    pub descending: Vec<bool>,
    /// How many rows it returns.
    pub limit: RowLimit,
    /// True if it passes over the first rows.
    pub skips: bool,
}

/// The number of rows of a [`KeyedQuery`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowLimit {
    /// All.
    All,
    /// One more than the query itself.
    More,
    /// As many as the query itself: how the limit is spelled is unknown.
    Same,
    /// The value of this placeholder, from 0, which is to be one more.
    Value(usize),
}

/// Words between SELECT and its columns.
const MODIFIERS: &str = "ALL DISTINCT DISTINCTROW HIGH_PRIORITY STRAIGHT_JOIN SQL_SMALL_RESULT \
     SQL_BIG_RESULT SQL_BUFFER_RESULT SQL_NO_CACHE SQL_CACHE SQL_CALC_FOUND_ROWS";

/// Words that the last word of an expression may follow without being a name for it.
const OPERATORS: &str = "COLLATE NOT AND OR IS LIKE IN DIV MOD XOR ZONE";

/// Words that end an expression.
const ENDS: &str = "END NULL TRUE FALSE UNKNOWN";

/// The query with its keys; `None` if it has no order, or one that this reader does not follow.
pub fn keyed(dialect: Dialect, sql: &str) -> Option<KeyedQuery> {
    let tokens = tokens(dialect, sql.as_bytes()).ok()?;
    let query = Query { dialect, sql, top: top(sql, &tokens)? };
    let begin = query.find(0, "SELECT")?;
    let from = query.find(begin, "FROM")?;
    let by = (from..query.top.len())
        .rfind(|at| query.is(*at, "ORDER") && query.is(at + 1, "BY"))?
        .checked_add(2)?;
    let end = (by..query.top.len())
        .find(|at| ["LIMIT", "OFFSET", "FETCH"].iter().any(|word| query.is(*at, word)))
        .unwrap_or(query.top.len());
    let mut first = begin + 1;
    while query.top.get(first).is_some_and(|_| query.is_of(first, MODIFIERS)) {
        first += 1;
    }
    let is_distinct = (begin..first).any(|at| query.is(at, "DISTINCT"));
    if is_distinct && query.is(first, "ON") {
        return None;
    }
    let columns = query.split(first, from);
    let mut keys = String::new();
    let mut descending = Vec::new();
    for key in query.split(by, end) {
        let (key, descends) = query.direction(key)?;
        let text = query.key(key, &columns, is_distinct)?;
        if text.contains('?') {
            return None;
        }
        descending.push(descends);
        keys.push_str(&format!(", ({text}) AS rqps_key_{}", descending.len()));
    }
    let (limit, skips, replaced) = query.limit(end, &tokens);
    let at = query.top[from].0.begin;
    let (head, tail) = (sql[..at].trim_end(), &sql[at..]);
    let tail = match replaced {
        Some((token, text)) => format!("{}{text}{}", &sql[at..token.begin], &sql[token.end..]),
        None => tail.to_owned(),
    };
    Some(KeyedQuery { sql: format!("{head}{keys} {tail}"), descending, limit, skips })
}

/// The tokens outside of parentheses, each with the end of the group that it opens; `None` for two
/// queries in one.
fn top<'a>(sql: &str, tokens: &'a [Token]) -> Option<Vec<(&'a Token, usize)>> {
    let (mut depth, mut found): (i32, Vec<(&Token, usize)>) = (0, Vec::new());
    for token in tokens {
        let text = &sql[token.begin..token.end];
        depth -= i32::from(text == ")");
        match depth {
            0 if text == ")" => found.last_mut()?.1 = token.end,
            0 => found.push((token, token.end)),
            _ => {}
        }
        depth += i32::from(text == "(");
        let joins = ["UNION", "INTERSECT", "EXCEPT", "MINUS"];
        if depth == 0 && joins.iter().any(|word| text.eq_ignore_ascii_case(word)) {
            return None;
        }
    }
    found.retain(|(token, _)| &sql[token.begin..token.end] != ";");
    Some(found)
}

struct Query<'a> {
    dialect: Dialect,
    sql: &'a str,
    /// Tokens outside of parentheses, with the end of the group that each opens.
    top: Vec<(&'a Token, usize)>,
}

/// A part of the tokens: from, up to.
type Part = (usize, usize);

impl Query<'_> {
    fn text(&self, at: usize) -> &str {
        self.top.get(at).map_or("", |(token, _)| &self.sql[token.begin..token.end])
    }

    fn is(&self, at: usize, word: &str) -> bool {
        self.text(at).eq_ignore_ascii_case(word)
    }

    fn is_of(&self, at: usize, words: &str) -> bool {
        words.split(' ').any(|word| self.is(at, word))
    }

    fn find(&self, from: usize, word: &str) -> Option<usize> {
        (from..self.top.len()).find(|at| self.is(*at, word))
    }

    /// What stands in these tokens.
    fn span(&self, (from, to): Part) -> Option<&str> {
        let (first, last) = (self.top.get(from)?, self.top.get(to.checked_sub(1)?)?);
        self.sql.get(first.0.begin..last.1)
    }

    /// Splits at commas.
    fn split(&self, from: usize, to: usize) -> Vec<Part> {
        let commas = (from..to).filter(|at| self.is(*at, ","));
        let ends: Vec<usize> = commas.chain([to]).collect();
        let begins = [from].into_iter().chain(ends.iter().map(|end| end + 1));
        begins.zip(ends.clone()).collect()
    }

    /// A key without its direction, and true if it descends.
    fn direction(&self, (from, mut to): Part) -> Option<(Part, bool)> {
        if to >= from + 3 && self.is(to - 2, "NULLS") {
            to -= 2;
        }
        let is_said = to > from + 1 && self.is_of(to - 1, "ASC DESC");
        let descends = is_said && self.is(to - 1, "DESC");
        let key = (from, to - usize::from(is_said));
        (to > from && (from..to).all(|at| !self.is(at, "USING"))).then_some((key, descends))
    }

    /// The expression of a key: that of a column by its number or name, or its own.
    fn key(&self, key: Part, columns: &[Part], is_distinct: bool) -> Option<String> {
        let (from, to) = key;
        let is_star = |part: &Part| self.is(part.1.saturating_sub(1), "*");
        if to - from == 1 && self.top[from].0.kind == TokenKind::Number {
            let number = self.text(from).parse::<usize>().ok()?.checked_sub(1)?;
            let column = *columns.get(number)?;
            let is_known = !columns[..=number].iter().any(is_star);
            return is_known.then(|| self.span(self.named(column).0).map(str::to_owned))?;
        }
        let name = |at: usize| self.text(at).trim_matches(['"', '`']).to_ascii_lowercase();
        for column in columns {
            let (expression, named) = self.named(*column);
            let is_named = to - from == 1 && named.is_some_and(|at| name(at) == name(from));
            if is_named || self.span(*column) == self.span(key) {
                return self.span(expression).map(str::to_owned);
            }
        }
        if is_distinct { None } else { self.span(key).map(str::to_owned) }
    }

    /// The expression of a column without its name, and the place of the name.
    fn named(&self, column: Part) -> (Part, Option<usize>) {
        let (from, to) = column;
        let Some(last) = to.checked_sub(1).filter(|last| *last >= from) else {
            return (column, None);
        };
        let is_name = |at: usize| matches!(self.top[at].0.kind, TokenKind::Word | TokenKind::Name);
        let is_call = self.is(last, "(");
        if is_call && self.dialect == Dialect::Postgres && last == from + 1 && is_name(from) {
            // A call has the name of its function.
            return (column, Some(from));
        }
        if is_call || !is_name(last) || self.is_of(last, ENDS) {
            return (column, None);
        }
        match last.checked_sub(1).filter(|before| *before >= from) {
            Some(before) if self.is(before, "AS") => ((from, before), Some(last)),
            Some(before) if self.is(before, ".") => (column, Some(last)),
            Some(before) if self.is_of(before, OPERATORS) => (column, None),
            Some(before) if self.top[before].0.kind == TokenKind::Sign && !self.is(before, "(") => {
                (column, None)
            }
            Some(_) => ((from, last), Some(last)),
            None => (column, Some(last)),
        }
    }

    /// The limit after the order: its form, whether rows are passed over, and what to replace.
    fn limit(&self, end: usize, tokens: &[Token]) -> (RowLimit, bool, Option<(&Token, String)>) {
        let offset = self.find(end, "OFFSET").map(|at| at + 1);
        let mut skips = offset.is_some_and(|at| !self.is(at, "0"));
        let limit = self.find(end, "LIMIT").map(|at| at + 1);
        let fetch = self.find(end, "FETCH").map(|at| at + 2);
        let Some(mut at) = limit.or(fetch) else { return (RowLimit::All, skips, None) };
        if limit.is_some() && self.is(at + 1, ",") {
            skips = skips || !self.is(at, "0");
            at += 2;
        }
        if self.is(at, "ALL") {
            return (RowLimit::All, skips, None);
        }
        let has_ties = (at..self.top.len()).any(|at| self.is(at, "TIES"));
        let Some((token, _)) = self.top.get(at).filter(|_| !has_ties) else {
            return (RowLimit::Same, skips, None);
        };
        let text = self.text(at);
        let more = text.parse::<u64>().ok().and_then(|rows| rows.checked_add(1));
        let is_last = |next: &str| next.is_empty() || self.is_of(at + 1, "OFFSET ROW ROWS");
        match more {
            _ if !is_last(self.text(at + 1)) => (RowLimit::Same, skips, None),
            Some(more) => (RowLimit::More, skips, Some((token, more.to_string()))),
            None if text.starts_with('$') && limit.is_some() => {
                (RowLimit::More, skips, Some((token, format!("{text} + 1"))))
            }
            None if text == "?" => {
                let is_value = |other: &&Token| {
                    other.begin < token.begin && &self.sql[other.begin..other.end] == "?"
                };
                (RowLimit::Value(tokens.iter().filter(is_value).count()), skips, None)
            }
            None => (RowLimit::Same, skips, None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use RowLimit::{All, More, Same, Value};

    #[test]
    fn a_query_returns_its_keys_and_one_row_more() {
        let check = |sql: &str, want: &str, limit: RowLimit| {
            let found = keyed(Dialect::Postgres, sql).unwrap_or_else(|| panic!("{sql}"));
            assert_eq!((found.sql.as_str(), found.limit), (want, limit), "{sql}");
        };
        check(
            "SELECT c FROM t WHERE id = $1 ORDER BY k DESC, lower(c) LIMIT 10",
            "SELECT c, (k) AS rqps_key_1, (lower(c)) AS rqps_key_2 FROM t WHERE id = $1 \
             ORDER BY k DESC, lower(c) LIMIT 11",
            More,
        );
        check(
            "SELECT k, sum(x) AS total FROM t GROUP BY k ORDER BY total, 1 LIMIT $2 OFFSET 0",
            "SELECT k, sum(x) AS total, (sum(x)) AS rqps_key_1, (k) AS rqps_key_2 FROM t \
             GROUP BY k ORDER BY total, 1 LIMIT $2 + 1 OFFSET 0",
            More,
        );
        check(
            "SELECT k, count(*) n FROM t GROUP BY 1 ORDER BY n NULLS LAST;",
            "SELECT k, count(*) n, (count(*)) AS rqps_key_1 FROM t GROUP BY 1 ORDER BY n NULLS \
             LAST;",
            All,
        );
        check(
            "SELECT k, count(*) FROM t GROUP BY k ORDER BY count FETCH FIRST 3 ROWS ONLY",
            "SELECT k, count(*), (count(*)) AS rqps_key_1 FROM t GROUP BY k ORDER BY count FETCH \
             FIRST 4 ROWS ONLY",
            More,
        );
        check(
            "SELECT * FROM t ORDER BY a LIMIT 2 + 1",
            "SELECT *, (a) AS rqps_key_1 FROM t ORDER BY a LIMIT 2 + 1",
            Same,
        );
    }

    #[test]
    fn limits_of_mysql_may_be_values_and_follow_an_offset() {
        let check = |sql: &str, limit: RowLimit, skips: bool| {
            let found = keyed(Dialect::Mysql, sql).unwrap_or_else(|| panic!("{sql}"));
            assert_eq!((found.limit, found.skips), (limit, skips), "{sql}");
        };
        check("SELECT `a` FROM t WHERE b = ? ORDER BY `a` LIMIT ?", Value(1), false);
        check("SELECT a FROM t ORDER BY a LIMIT 5, 10", More, true);
        check("SELECT a FROM t ORDER BY a LIMIT ? OFFSET ?", Value(0), true);
    }

    #[test]
    fn orders_that_are_not_followed_are_left_alone() {
        for sql in [
            "SELECT a FROM t",
            "SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 1) x",
            "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1",
            "SELECT *, 1 FROM t ORDER BY 2",
            "SELECT DISTINCT a FROM t ORDER BY b",
            "SELECT DISTINCT ON (a) a, b FROM t ORDER BY a, b",
            "SELECT 1 ORDER BY 1",
        ] {
            assert_eq!(keyed(Dialect::Postgres, sql), None, "{sql}");
        }
    }
}
