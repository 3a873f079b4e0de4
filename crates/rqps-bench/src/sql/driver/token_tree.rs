//! The tokens of a statement from a server's statistics, with its values and parentheses.

use super::facts::TopStatement;
use super::names::bare;
use rqps_model::dialect::Dialect;
use rqps_text::{TokenKind, tokens};

/// Signs of which operators consist.
const OPERATORS: &str = "=<>!~+-*/%^&|@#?:";

/// Most parentheses around a token. Whoever may run statements on the server wrote them.
const DEEPEST: usize = 100;

/// What Postgres 18 writes after the first value of a list in its statistics.
pub(super) const SQUEEZED: &str = " /*, ... */";

/// What a token is to a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    /// A keyword or a name without quotes.
    Word,
    /// A name in quotes.
    Name,
    /// A text or a number.
    Literal,
    Sign,
    /// The value of this number, from 0.
    Value(usize),
    /// Several values in the place of one.
    Values(usize),
}

/// A token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) begin: usize,
    pub(super) end: usize,
    /// The parenthesis around it.
    pub(super) parent: Option<usize>,
    /// The other parenthesis of the pair.
    pub(super) partner: Option<usize>,
}

/// A statement as tokens.
pub(super) struct TokenTree<'a> {
    pub(super) sql: &'a str,
    pub(super) nodes: Vec<Node>,
}

impl<'a> TokenTree<'a> {
    /// Reads a statement. One that cannot be read has no tokens: nothing is known of its values.
    pub(super) fn of(statement: &'a TopStatement) -> TokenTree<'a> {
        TokenTree::read(statement.dialect(), &statement.sql)
    }

    /// Reads SQL whose values are `$n` on Postgres, and `?` or `?...` elsewhere.
    pub(super) fn read(dialect: Dialect, sql: &'a str) -> TokenTree<'a> {
        let mut tree = TokenTree { sql, nodes: Vec::new() };
        let Ok(all) = tokens(dialect, sql.as_bytes()) else { return tree };
        let (mut open, mut unnamed, mut after): (Vec<usize>, usize, usize) = (Vec::new(), 0, 0);
        for token in all {
            let (begin, mut end) = (token.begin, token.end);
            if begin < after {
                continue;
            }
            let mut kind = match token.kind {
                TokenKind::Word => NodeKind::Word,
                TokenKind::Name => NodeKind::Name,
                TokenKind::Text | TokenKind::Number => NodeKind::Literal,
                TokenKind::Sign => NodeKind::Sign,
            };
            let text = &sql[begin..end];
            match text.strip_prefix('$').map(str::parse::<usize>) {
                Some(Ok(number)) if dialect == Dialect::Postgres => {
                    let is_list = sql[end..].starts_with(SQUEEZED);
                    let number = number.max(1) - 1;
                    kind = if is_list { NodeKind::Values(number) } else { NodeKind::Value(number) };
                    end += if is_list { SQUEEZED.len() } else { 0 };
                }
                _ if text == "?" && dialect != Dialect::Postgres => {
                    let is_list = sql[end..].starts_with("...");
                    kind =
                        if is_list { NodeKind::Values(unnamed) } else { NodeKind::Value(unnamed) };
                    end += if is_list { "...".len() } else { 0 };
                    unnamed += 1;
                }
                _ => {}
            }
            after = end;
            let place = tree.nodes.len();
            let is_end = text == ")" && kind == NodeKind::Sign;
            let partner = if is_end { open.pop() } else { None };
            if let Some(partner) = partner {
                tree.nodes[partner].partner = Some(place);
            }
            let parent = open.last().copied();
            tree.nodes.push(Node { kind, begin, end, parent, partner });
            if text == "(" && kind == NodeKind::Sign {
                open.push(place);
            }
            if open.len() > DEEPEST {
                return TokenTree { sql, nodes: Vec::new() };
            }
        }
        tree
    }

    /// The text of a token; empty beyond both ends.
    pub(super) fn text(&self, at: usize) -> &'a str {
        self.nodes.get(at).map_or("", |node| &self.sql[node.begin..node.end])
    }

    /// The number of a value.
    pub(super) fn value(&self, at: usize) -> Option<usize> {
        match self.nodes.get(at)?.kind {
            NodeKind::Value(number) | NodeKind::Values(number) => Some(number),
            _ => None,
        }
    }

    /// Places of values and their numbers.
    pub(super) fn values(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.nodes.len()).filter_map(|at| Some((at, self.value(at)?)))
    }

    /// True if a token is this keyword.
    pub(super) fn is(&self, at: usize, word: &str) -> bool {
        self.nodes.get(at).is_some_and(|node| node.kind == NodeKind::Word)
            && self.text(at).eq_ignore_ascii_case(word)
    }

    /// True if a token is one of these keywords.
    pub(super) fn is_any(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    /// True if a token is this sign.
    pub(super) fn is_sign(&self, at: usize, sign: &str) -> bool {
        self.nodes.get(at).is_some_and(|node| node.kind == NodeKind::Sign) && self.text(at) == sign
    }

    /// The name that a token may be, without quotes.
    pub(super) fn name(&self, at: usize) -> Option<&'a str> {
        let node = self.nodes.get(at)?;
        matches!(node.kind, NodeKind::Word | NodeKind::Name).then(|| bare(self.text(at)))
    }

    /// The operator that ends with the token at `at`: its first token, and its text.
    pub(super) fn operator(&self, at: usize) -> Option<(usize, &'a str)> {
        let is_part = |at: usize| {
            let text = self.text(at);
            self.nodes[at].kind == NodeKind::Sign && OPERATORS.contains(text)
        };
        let end = self.nodes.get(at).filter(|_| is_part(at))?.end;
        let mut first = at;
        while first > 0
            && is_part(first - 1)
            && self.nodes[first - 1].end == self.nodes[first].begin
        {
            first -= 1;
        }
        Some((first, &self.sql[self.nodes[first].begin..end]))
    }

    /// The parts of a list in parentheses, or of the statement from a token on, up to `end`: first
    /// token and the one after the last.
    pub(super) fn items(&self, from: usize, end: usize) -> Vec<(usize, usize)> {
        let Some(first) = self.nodes.get(from).filter(|_| from < end) else { return Vec::new() };
        let (mut items, mut begin) = (Vec::new(), from);
        for at in from..end.min(self.nodes.len()) {
            if self.is_sign(at, ",") && self.nodes[at].parent == first.parent {
                items.push((begin, at));
                begin = at + 1;
            }
        }
        items.push((begin, end));
        items
    }

    /// The number of an item in its parentheses, from 0, for one of its tokens.
    pub(super) fn place_in_list(&self, open: usize, at: usize) -> usize {
        let is_comma = |at: &usize| self.is_sign(*at, ",") && self.nodes[*at].parent == Some(open);
        (open + 1..at).filter(is_comma).count()
    }

    /// The statement with other texts in the places of some tokens.
    pub(super) fn with(&self, other: impl Fn(usize) -> Option<String>) -> String {
        let (mut sql, mut from) = (String::new(), 0);
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(text) = other(at) {
                sql.push_str(&self.sql[from..node.begin]);
                sql.push_str(&text);
                from = node.end;
            }
        }
        sql + &self.sql[from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_dialect() {
        let check = |dialect, sql: &str, want: &[usize]| {
            let tree = TokenTree::read(dialect, sql);
            assert_eq!(tree.values().map(|(_, number)| number).collect::<Vec<_>>(), want, "{sql}");
        };
        check(
            Dialect::Postgres,
            "SELECT a ? $2, '$1', \"$1\" /* $1 */ FROM t WHERE b = $1",
            &[1, 0],
        );
        check(Dialect::Mysql, "SELECT '?', `?`, a FROM t WHERE b IN (?...) AND c = ?", &[0, 1]);
        check(Dialect::Mysql, "SELECT 'a", &[]);
        check(Dialect::Mysql, &format!("SELECT {}?", "(".repeat(100_000)), &[]);
    }

    #[test]
    fn lists_and_operators_are_found() {
        let tree = TokenTree::read(Dialect::Postgres, "f(a, (b, c), $1) <= 3");
        assert_eq!(tree.items(2, 11).len(), 3);
        assert_eq!(tree.place_in_list(1, 10), 2);
        assert_eq!(tree.operator(13), Some((12, "<=")));
        assert_eq!(tree.with(|at| (at == 14).then(|| "4".to_owned())), "f(a, (b, c), $1) <= 4");
    }
}
