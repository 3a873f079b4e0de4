//! Finds the column that a statement compares a value with, and what else a place may take.

use super::ranges::{ARGUMENTS, RESULTS, Relation, SAME, ValueGuess};
use super::statements::{NodeKind, TokenTree};
use super::survey::TableFacts;
use super::written::NamedTables;

/// Words that are no name of a column and no function.
pub(super) const NO_OPERAND: &[&str] = &[
    "SELECT", "FROM", "WHERE", "AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "BETWEEN", "THEN",
    "ELSE", "WHEN", "CASE", "END", "ON", "HAVING", "BY", "SET", "VALUES", "LIMIT", "OFFSET", "ANY",
    "ALL", "SOME", "EXISTS", "DISTINCT", "DISTINCTROW", "AS", "IS", "NULL", "INTERVAL",
    "RETURNING", "USING", "JOIN", "TO", "XOR",
];

/// What a value is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    /// A column of a table that the statement names at `name`.
    Column {
        table: usize,
        column: usize,
        name: usize,
    },
    /// The year of such a column.
    Year {
        table: usize,
        column: usize,
    },
    Fixed(&'static str),
    Unknown,
}

/// The operands of a statement.
pub(super) struct Operands<'a> {
    tree: &'a TokenTree<'a>,
    named: NamedTables<'a>,
}

impl<'a> Operands<'a> {
    pub(super) fn of(tree: &'a TokenTree<'a>, tables: &'a [TableFacts]) -> Operands<'a> {
        Operands { tree, named: NamedTables::of(tree, tables) }
    }

    /// True if a token stands in a select list, in GROUP BY or in ORDER BY.
    pub(super) fn is_listed(&self, at: usize) -> bool {
        let mut place = Some(at);
        while let Some(at) = place {
            if ["SELECT", "BY"].contains(&self.named.clause(at).as_str()) {
                return true;
            }
            place = self.tree.nodes[at].parent;
        }
        false
    }

    /// True if OR stands beside the comparison of a value: a row need not fulfil it.
    pub(super) fn has_or(&self, at: usize) -> bool {
        let parent = self.tree.nodes[at].parent;
        (0..self.tree.nodes.len())
            .any(|other| self.tree.nodes[other].parent == parent && self.tree.is(other, "OR"))
    }

    /// The operand that ends with the token at `at`, and its first token.
    fn ending(&self, at: usize) -> (Operand, usize) {
        let (tree, mut at) = (self.tree, at);
        loop {
            let before = at.checked_sub(2);
            let type_at = match tree.nodes.get(at).and_then(|node| node.partner) {
                Some(open) if tree.is_sign(at, ")") => open.wrapping_sub(1),
                _ => at,
            };
            let is_type = type_at > 2
                && tree.name(type_at).is_some()
                && tree.is_sign(type_at - 1, ":")
                && tree.is_sign(type_at - 2, ":");
            match before {
                Some(_) if is_type => at = type_at - 3,
                Some(before) if tree.is(at - 1, "COLLATE") => at = before,
                _ => break,
            }
        }
        if tree.is_sign(at, ")")
            && let Some(open) = tree.nodes[at].partner
        {
            let before = open.wrapping_sub(1);
            if tree.name(before).is_some() && !tree.is_any(before, NO_OPERAND) {
                return (self.function(before, open, at), before);
            }
            return match self.ending(at - 1) {
                (operand, begin) if begin == open + 1 => (operand, open),
                _ => (Operand::Unknown, open),
            };
        }
        if tree.name(at).is_none() || tree.is_any(at, NO_OPERAND) {
            return (Operand::Unknown, at);
        }
        let mut begin = at;
        while begin > 1 && tree.is_sign(begin - 1, ".") {
            begin -= 2;
        }
        let column = self.named.column(at);
        let column = column.map(|(table, column, name)| Operand::Column { table, column, name });
        (column.unwrap_or(Operand::Unknown), begin)
    }

    /// The whole operand of an operator before which the token at `at` stands.
    fn left(&self, at: Option<usize>) -> Operand {
        let Some(at) = at else { return Operand::Unknown };
        let (operand, begin) = self.ending(at);
        // A value that is added to a column, or a member of a document, is not one of the column.
        let is_part = begin > 0
            && self.tree.operator(begin - 1).is_some_and(|(_, sign)| {
                !sign.contains(['=', '<', '>']) || sign.contains("->") || sign.contains("#>")
            });
        if is_part { Operand::Unknown } else { operand }
    }

    /// The operand that begins with the token at `at`.
    pub(super) fn right(&self, at: usize) -> Operand {
        let (tree, mut end) = (self.tree, at);
        while tree.is_sign(end + 1, ".") {
            end += 2;
        }
        if let Some(close) = tree.nodes.get(end + 1).and_then(|node| node.partner)
            && tree.is_sign(end + 1, "(")
        {
            end = close;
        }
        let is_part = tree.nodes.get(end + 1).is_some_and(|node| {
            node.kind == NodeKind::Sign && "+-*/|#".contains(tree.text(end + 1))
        });
        match self.ending(end) {
            (operand, begin) if begin == at && !is_part => operand,
            _ => Operand::Unknown,
        }
    }

    fn function(&self, name: usize, open: usize, close: usize) -> Operand {
        let tree = self.tree;
        let called = tree.name(name).unwrap_or_default().to_uppercase();
        // EXTRACT ( field FROM date ), DATE_PART ( 'field' , date )
        let argument = match called.as_str() {
            "EXTRACT" => open + 3,
            "DATE_PART" | "TIMESTAMPDIFF" => open + 3,
            _ => open + 1,
        };
        let column = match (argument < close).then(|| self.right(argument)) {
            Some(Operand::Column { table, column, name }) => Some((table, column, name)),
            _ => None,
        };
        let part = tree.text(open + 1).trim_matches('\'').to_uppercase();
        let part = if ["EXTRACT", "DATE_PART"].contains(&called.as_str()) { part } else { called };
        match column {
            Some((table, column, name)) if SAME.contains(&part.as_str()) => {
                Operand::Column { table, column, name }
            }
            Some((table, column, _)) if part == "YEAR" => Operand::Year { table, column },
            _ => RESULTS
                .iter()
                .find(|(names, _)| names.contains(&part.as_str()))
                .map_or(Operand::Unknown, |(_, values)| Operand::Fixed(values)),
        }
    }

    /// What a value is compared with, and how.
    pub(super) fn compared_with(&self, at: usize) -> Option<(Operand, Relation)> {
        let tree = self.tree;
        let (begin, end) = widened(self.tree, at);
        let before = begin.checked_sub(1)?;
        let left = |at: usize| self.left(at.checked_sub(1));
        let without_not = |at: usize| if tree.is(at.wrapping_sub(1), "NOT") { at - 1 } else { at };
        if let Some((first, sign)) = tree.operator(before) {
            let sign = sign.strip_suffix('-').filter(|sign| !sign.is_empty()).unwrap_or(sign);
            return match sign {
                "=" | "<=>" => Some((left(first), Relation::Equal)),
                "<" | "<=" | ">" | ">=" | "<>" | "!=" => Some((left(first), Relation::Other)),
                "~~" | "~~*" | "!~~" => Some((left(first), Relation::Pattern)),
                "~" | "~*" | "!~" | "!~*" => Some((Operand::Fixed("\"^[a-m]\""), Relation::Other)),
                _ => None,
            };
        }
        if tree.is_any(before, &["LIKE", "ILIKE"]) {
            return Some((left(without_not(before)), Relation::Pattern));
        }
        if tree.is_any(before, &["REGEXP", "RLIKE"]) {
            return Some((Operand::Fixed("\"^[a-m]\""), Relation::Other));
        }
        let between = if tree.is(before, "AND") {
            self.between(before)
        } else {
            Some(before).filter(|at| tree.is_any(*at, &["BETWEEN", "SYMMETRIC"]))
        };
        if let Some(between) = between {
            return Some((left(without_not(between)), Relation::Other));
        }
        self.in_list(begin).or_else(|| self.reversed(end + 1))
    }

    /// The BETWEEN whose AND stands at `and`.
    fn between(&self, and: usize) -> Option<usize> {
        let tree = self.tree;
        let is_beside = |at: &usize| tree.nodes[*at].parent == tree.nodes[and].parent;
        let mut before = (0..and).rev().filter(is_beside);
        let word = before.find(|at| tree.is_any(*at, &["BETWEEN", "AND", "OR", "WHERE", "ON"]))?;
        tree.is(word, "BETWEEN").then_some(word)
    }

    /// For a value of a list in parentheses, or of a row.
    fn in_list(&self, begin: usize) -> Option<(Operand, Relation)> {
        let tree = self.tree;
        let open = tree.nodes[begin].parent?;
        let before = begin.checked_sub(1)?;
        let is_item = before == open || tree.is_sign(before, ",") || tree.is_sign(before, "[");
        let word = open.checked_sub(1).filter(|_| is_item)?;
        let ahead = |at: usize| at.checked_sub(1);
        if tree.is(word, "IN") {
            let end = if tree.is(word.wrapping_sub(1), "NOT") { word - 1 } else { word };
            // The first value of a list may be one of the row that other columns name.
            let is_first = before == open && end == word && !self.has_or(open);
            let relation = if is_first { Relation::Equal } else { Relation::Other };
            return Some((self.left(ahead(end)), relation));
        }
        if tree.is_any(word, &["ANY", "ALL", "SOME"]) {
            let (first, _) = tree.operator(ahead(word)?)?;
            let is_array = !(open + 1..begin).any(|at| tree.is_sign(at, "["));
            let relation = if is_array { Relation::Array } else { Relation::Other };
            return Some((self.left(ahead(first)), relation));
        }
        // `(a, b) = (?, ?)`, `(a, b) IN ((?, ?), (?, ?))`
        let word = if tree.is(word, "ROW") { ahead(word)? } else { word };
        let mut is_equal = false;
        let end = match tree.operator(word) {
            Some((first, sign)) if sign.contains(['=', '<', '>']) => {
                is_equal = ["=", "<=>"].contains(&sign) && !self.has_or(open);
                first
            }
            Some(_) => return None,
            None => {
                let list = ahead(tree.nodes[open].parent?)?;
                if !tree.is(list, "IN") {
                    return None;
                }
                if tree.is(list.wrapping_sub(1), "NOT") { list - 1 } else { list }
            }
        };
        let close = ahead(end).filter(|at| tree.is_sign(*at, ")"))?;
        let row = tree.nodes[close].partner?;
        let items = tree.items(row + 1, close);
        let (_, end) = *items.get(tree.place_in_list(open, begin))?;
        let relation = if is_equal { Relation::Equal } else { Relation::Tuple(open) };
        Some((self.left(ahead(end)), relation))
    }

    /// For a value before its operator.
    fn reversed(&self, at: usize) -> Option<(Operand, Relation)> {
        let tree = self.tree;
        if tree.is(at, "BETWEEN") {
            return Some((self.right(at + 1), Relation::Other));
        }
        let mut end = at;
        while tree.operator(end + 1).is_some_and(|(first, _)| first == at) {
            end += 1;
        }
        let (first, sign) = tree.operator(end).filter(|(first, _)| *first == at)?;
        debug_assert_eq!(first, at);
        match sign {
            "=" => Some((self.right(end + 1), Relation::Equal)),
            "<" | "<=" | ">" | ">=" | "<>" | "!=" => Some((self.right(end + 1), Relation::Other)),
            _ => None,
        }
    }

    /// What a place takes where nothing is compared.
    pub(super) fn other(&self, at: usize) -> ValueGuess {
        let tree = self.tree;
        let (begin, end) = widened(self.tree, at);
        let Some(before) = begin.checked_sub(1) else { return ValueGuess::Unknown };
        let follows = |word: &str| tree.is(before, word);
        if follows("LIMIT") && tree.is_sign(end + 1, ",") || follows("OFFSET") {
            return ValueGuess::Offset;
        }
        let is_second = tree.is_sign(before, ",") && tree.is(before.wrapping_sub(2), "LIMIT");
        if follows("LIMIT") || is_second || tree.is_any(before, &["FIRST", "NEXT"]) {
            return ValueGuess::Limit;
        }
        if follows("ZONE") {
            return ValueGuess::Fixed("\"UTC\"");
        }
        if follows("INTERVAL") || follows("ROWS") {
            return ValueGuess::Fixed("1");
        }
        if follows("ESCAPE") {
            return ValueGuess::Fixed("\"!\"");
        }
        if let Some((first, sign)) = tree.operator(before) {
            let left = first.checked_sub(1).map(|at| self.ending(at).0);
            return match (sign, left) {
                ("->" | "->>" | "?", Some(Operand::Column { table, column, .. })) => {
                    ValueGuess::Member(table, column)
                }
                ("@>" | "<@" | "&&" | "#>" | "#>>" | "?|" | "?&", _) => ValueGuess::Fixed("\"{}\""),
                ("%" | "*" | "/", _) => ValueGuess::Fixed("2"),
                _ => ValueGuess::Unknown,
            };
        }
        let Some(open) = tree.nodes[begin].parent else { return ValueGuess::Unknown };
        let called = tree.name(open.wrapping_sub(1)).unwrap_or_default().to_uppercase();
        let (place, close) = (tree.place_in_list(open, begin), tree.nodes[open].partner);
        if ["COALESCE", "IFNULL"].contains(&called.as_str()) && place > 0 {
            return match self.right(open + 1) {
                Operand::Column { table, column, .. } => ValueGuess::Column(table, column),
                _ => ValueGuess::Unknown,
            };
        }
        let is_only = close == Some(end + 1) && place == 0;
        // `to_tsquery('word')`, but `to_tsquery('simple', 'word')`.
        let place = if is_only && called.ends_with("_TSQUERY") { 1 } else { place };
        let place = match tree.text(before).to_uppercase().as_str() {
            // `substring(a FROM 1 FOR 3)`, `group_concat(a SEPARATOR ',')`
            "FROM" | "SEPARATOR" => 1,
            "FOR" => 2,
            _ => place,
        };
        ARGUMENTS
            .iter()
            .find(|(names, of, _)| *of == place && names.contains(&called.as_str()))
            .map_or(ValueGuess::Unknown, |(_, _, values)| ValueGuess::Fixed(values))
    }
}

/// The first and the last token of a value with its casts, parentheses and functions whose
/// result is like their argument.
pub(super) fn widened(tree: &TokenTree<'_>, at: usize) -> (usize, usize) {
    let (mut begin, mut end) = (at, at);
    loop {
        let is_cast = tree.is_sign(end + 1, ":") && tree.is_sign(end + 2, ":");
        if is_cast && tree.name(end + 3).is_some() {
            end += 3;
            continue;
        }
        let Some(open) = begin.checked_sub(1) else { break };
        let Some(close) = tree.nodes[open].partner.filter(|_| tree.is_sign(open, "(")) else {
            break;
        };
        let before = open.wrapping_sub(1);
        let is_alone = close == end + 1;
        if tree.is(before, "CAST") && tree.is(end + 1, "AS")
            || is_alone && tree.is_any(before, SAME)
        {
            (begin, end) = (before, close);
        } else if is_alone && tree.operator(before).is_some() {
            (begin, end) = (open, close);
        } else {
            break;
        }
    }
    (begin, end)
}
