//! Expressions and queries within statements of a load: they call known functions and read tables
//! that the load made.

use std::collections::BTreeSet;

use crate::admission::statement::{OwnObjects, Refusal, Statement};
use crate::admission::tokens::{Token, TokenKind};
use crate::reading::RelationKind;
use rqps_model::sql_name::TableName;

/// Keywords, types and functions before a parenthesis. No function among them reads a file,
/// connects to anything, waits, ends a session, or executes a text as SQL.
const BEFORE_PARENTHESIS: &str = include_str!("before_parenthesis.txt");

/// Functions of MySQL and MariaDB that have other effects than their value.
const OTHER_EFFECTS: [&str; 8] =
    ["benchmark", "get_lock", "lastval", "load_file", "nextval", "release_lock", "setval", "sleep"];

/// Words of definitions of MySQL before a value without parentheses.
const BEFORE_VALUE: [&str; 4] = ["DEFAULT", "INTERVAL", "STARTS", "UPDATE"];

/// Methods of indexes, after USING.
const METHODS: [&str; 9] =
    ["bloom", "brin", "btree", "gin", "gist", "hash", "hnsw", "ivfflat", "spgist"];

/// Words after which no further table of FROM follows. MySQL takes some for names: the later ones.
/// FOR is none: tables may follow what begins with it, as FOR ORDER BY of an index or FOR
/// SYSTEM_TIME.
const AFTER_FROM: [&str; 12] = [
    "WHERE", "GROUP", "ORDER", "HAVING", "LIMIT", "UNION", "OFFSET", "EXCEPT", "INTERSECT",
    "WINDOW", "FETCH", "RETURNING",
];

/// Those of them that no server takes for a name.
const RESERVED_AFTER_FROM: usize = 6;

/// Words that begin something else than the name of a table in FROM, even if a table has that name.
const NO_TABLE: [&str; 11] = [
    "CROSS", "FROM", "INNER", "JOIN", "LATERAL", "LEFT", "NATURAL", "RIGHT", "SELECT", "TABLE",
    "VALUES",
];

/// Functions whose arguments have a FROM of their own.
const WITH_FROM: [&str; 5] = ["EXTRACT", "SUBSTRING", "TRIM", "OVERLAY", "POSITION"];

/// The characters of operators of Postgres.
const OF_OPERATOR: &[u8] = b"+-*/<>=~!@#%^&|`?";

/// Longest name of an operator.
const LONGEST_OPERATOR: usize = 63;

/// Further words before the parentheses of queries.
const IN_QUERIES: [&str; 21] = [
    "against", "analyze", "bernoulli", "describe", "except", "explain", "first", "having",
    "intersect", "is", "join", "limit", "match", "materialized", "offset", "only", "ordinality",
    "straight_join", "system", "window", "xor",
];

fn is_listed(word: &str) -> bool {
    BEFORE_PARENTHESIS.split_ascii_whitespace().any(|listed| listed == word)
}

/// True for a word before a parenthesis that calls nothing that does more than give a value.
pub(crate) fn is_harmless_before_parenthesis(word: &str) -> bool {
    let word = word.to_lowercase();
    is_listed(&word) || IN_QUERIES.contains(&word.as_str())
}

/// Words of Postgres that call a function without parentheses, also in FROM.
const WITHOUT_PARENTHESES: [&str; 12] = [
    "CURRENT_CATALOG", "CURRENT_DATE", "CURRENT_ROLE", "CURRENT_SCHEMA", "CURRENT_TIME",
    "CURRENT_TIMESTAMP", "CURRENT_USER", "LOCALTIME", "LOCALTIMESTAMP", "SESSION_USER",
    "SYSTEM_USER", "USER",
];

/// True if the name at this place is certainly that of a column: what stands before its point is a
/// table, or another name of one, wherever else it stands. Of a function's value it could be a
/// function: in `FROM abs(1) AS f`, `f.g` is `g(f)`.
pub(crate) fn is_of_relation(sql: &[u8], tokens: &[Token], at: usize) -> bool {
    let is = |at: Option<usize>, signs: &[u8]| {
        let token = at.and_then(|at| tokens.get(at));
        token.is_some_and(|it| it.kind == TokenKind::Sign && signs.contains(&sql[it.begin]))
    };
    let text = |at: usize| String::from_utf8_lossy(&sql[tokens[at].begin..tokens[at].end]);
    let word = |at: Option<usize>| match at.and_then(|at| Some((at, tokens.get(at)?))) {
        Some((at, token)) if token.kind == TokenKind::Word => text(at).to_uppercase(),
        _ => String::new(),
    };
    let name = |at: Option<usize>| match at.and_then(|at| Some((at, tokens.get(at)?.kind))) {
        Some((at, TokenKind::Word)) => Some(text(at).to_lowercase()),
        Some((at, TokenKind::Name)) => Some(text(at).trim_matches('"').replace("\"\"", "\"")),
        _ => None,
    };
    // The place before the name of a table that ends here; that is no function.
    let begin = |end: usize| {
        let mut begin = end;
        while begin >= 2 && is(Some(begin - 1), b".") && name(Some(begin - 2)).is_some() {
            begin -= 2;
        }
        let is_function = is(Some(end + 1), b"(")
            || begin == end && WITHOUT_PARENTHESES.contains(&word(Some(end)).as_str());
        begin.checked_sub(1).filter(|_| !is_function)
    };
    let is_table = |end: usize| {
        name(Some(end)).is_some()
            && begin(end).is_some_and(|before| {
                is(Some(before), b",")
                    || ["FROM", "INTO", "JOIN", "UPDATE"].contains(&word(Some(before)).as_str())
            })
    };
    let Some(table) = at.checked_sub(2).filter(|_| is(at.checked_sub(1), b".")) else {
        return false;
    };
    let Some(wanted) = name(Some(table)).filter(|name| name.is_ascii()) else { return false };
    if is(table.checked_sub(1), b".:$?@&") {
        return false;
    }
    let mut is_known = wanted == "excluded";
    for at in (0..tokens.len()).filter(|at| name(Some(*at)).as_ref() == Some(&wanted)) {
        if is(Some(at + 1), b".") {
            continue;
        }
        // `FROM t AS a`, `FROM t a`.
        let of = at.checked_sub(if word(at.checked_sub(1)) == "AS" { 2 } else { 1 });
        let is_alias = !is(Some(at + 1), b"(") && of.is_some_and(is_table);
        if !is_table(at) && !is_alias {
            return false;
        }
        is_known = true;
    }
    is_known
}

/// What stands within one pair of parentheses.
#[derive(Default)]
struct Frame {
    in_from: bool,
    awaits_table: bool,
    /// The parenthesis is of a function with a FROM of its own.
    passes_from: bool,
    /// It holds an expression, and no columns of an index.
    computes: bool,
    /// The name of WITH whose query it is, and whether WITH is recursive. After its end and a
    /// comma, a further name stands.
    of_with: Option<(String, bool)>,
    /// Names of WITH that are known there.
    named: BTreeSet<String>,
}

/// Checks the rest of a statement that defines something.
pub(super) fn definition(rules: &mut OwnObjects, statement: Statement<'_>) -> Result<(), Refusal> {
    let mut rest = Expressions::new(statement, rules);
    rest.builtin_only = statement.is_mysql();
    rest.check()
}

/// Checks the rest of a statement that is a query or has values.
pub(super) fn query(rules: &mut OwnObjects, statement: Statement<'_>) -> Result<(), Refusal> {
    let mut rest = Expressions::new(statement, rules);
    rest.in_query = true;
    rest.check()
}

/// A walk through the rest of a statement.
struct Expressions<'a, 'r> {
    statement: Statement<'a>,
    rules: &'r mut OwnObjects,
    /// True if indexes and columns of them may stand before a parenthesis: definitions of tables of
    /// MySQL. It calls no stored function there, but MariaDB calls those of libraries.
    builtin_only: bool,
    /// True within a query, where points stand between tables and columns.
    in_query: bool,
    frames: Vec<Frame>,
}

impl<'a, 'r> Expressions<'a, 'r> {
    fn new(statement: Statement<'a>, rules: &'r mut OwnObjects) -> Expressions<'a, 'r> {
        let frames = vec![Frame::default()];
        Expressions { statement, rules, builtin_only: false, in_query: false, frames }
    }

    /// Checks everything up to the end of the statement.
    fn check(mut self) -> Result<(), Refusal> {
        while let Some(token) = self.statement.peek() {
            match token.kind {
                TokenKind::Text | TokenKind::Number => self.statement.at += 1,
                TokenKind::Sign => self.sign(token)?,
                TokenKind::Word | TokenKind::Name => self.word(token)?,
            }
        }
        match self.frames.len() {
            1 => Ok(()),
            _ => Err("parentheses do not fit".to_owned()),
        }
    }

    fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn sign(&mut self, token: &Token) -> Result<(), Refusal> {
        self.statement.at += 1;
        match self.statement.sql[token.begin] {
            b';' => return Err("it holds a second statement".to_owned()),
            b':' if self.statement.is_mysql() && self.statement.is_sign(b'=') => {
                return Err("it sets a variable".to_owned());
            }
            b'(' => {
                let awaits_table = std::mem::take(&mut self.frame().awaits_table);
                let begins_query =
                    ["SELECT", "WITH", "VALUES"].contains(&self.statement.word().as_str());
                let is_join = awaits_table && !begins_query;
                // `KEY k ((a + b))`.
                let mut inside = self.statement;
                inside.at -= 1;
                let computes = self.frame().computes || inside.is_sign_before(b'(');
                self.frames.push(Frame {
                    in_from: is_join,
                    awaits_table: is_join,
                    computes,
                    ..Frame::default()
                });
            }
            b')' => {
                let closed = self.frames.pop();
                if self.frames.is_empty() {
                    return Err("parentheses do not fit".to_owned());
                }
                if let Some((name, is_recursive)) = closed.and_then(|frame| frame.of_with) {
                    self.frame().named.insert(name);
                    if self.statement.take_sign(b',') {
                        self.with(is_recursive)?;
                    }
                }
            }
            b',' => {
                let frame = self.frame();
                frame.awaits_table |= frame.in_from;
            }
            first if OF_OPERATOR.contains(&first) && !self.statement.is_mysql() => {
                let rest = &self.statement.sql[token.begin..];
                let is_of_it = |byte: &&u8| OF_OPERATOR.contains(byte);
                let length = rest.iter().take(LONGEST_OPERATOR).take_while(is_of_it).count();
                self.rules.called.insert(String::from_utf8_lossy(&rest[..length]).into_owned());
            }
            _ => {}
        }
        Ok(())
    }

    fn word(&mut self, token: &Token) -> Result<(), Refusal> {
        let word = self.statement.word();
        if self.frame().awaits_table {
            // MySQL takes ONLY for a name.
            let is_prefix = word == "LATERAL" || word == "ONLY" && !self.statement.is_mysql();
            self.statement.at += usize::from(is_prefix);
            return if is_prefix { Ok(()) } else { self.source() };
        }
        if self.is_part() {
            return self.call(token);
        }
        let before = self.statement.word_before();
        let is_before = |words: &[&str]| words.contains(&before.as_str());
        match word.as_str() {
            "FROM" if !self.frame().passes_from && !self.follows_is_distinct() => {
                // `FOR VALUES FROM (1) TO (2)` of a partition.
                let is_bound = !self.in_query
                    && self.statement.is_sign_at(1, b'(')
                    && self.statement.follows(&["FOR", "VALUES"]);
                let frame = self.frame();
                (frame.in_from, frame.awaits_table) = (!is_bound, !is_bound);
                self.statement.at += 1;
                return Ok(());
            }
            "JOIN" | "STRAIGHT_JOIN" => {
                self.frame().awaits_table = true;
                self.statement.at += 1;
                return Ok(());
            }
            "REFERENCES" | "INHERITS" | "LIKE" if is_of_definition(&word, self) => {
                return self.own_table();
            }
            "WITH" if is_query(&self.statement) => {
                (self.in_query, self.builtin_only) = (true, false);
                self.statement.at += 1;
                let is_recursive = self.statement.take(&["RECURSIVE"]);
                return self.with(is_recursive);
            }
            "NEXT" | "PREVIOUS" if self.statement.is_mysql() => return self.next_value(),
            // The names of WITH end with the query before it.
            "DUPLICATE" | "CONFLICT" | "RETURNING" => self.frame().named.clear(),
            "TABLESPACE" if self.names_tablespace() => {
                return Err("it lays rows on another disk of the server".to_owned());
            }
            "EXECUTE" | "CALL" => return Err(format!("{word} hides other statements")),
            "INTO" => return Err("a query may not write INTO anything".to_owned()),
            "TABLE" => return Err("TABLE is not expected there".to_owned()),
            "UPDATE" if is_before(&["KEY", "DO", "ON"]) => {}
            "INSERT" | "UPDATE" | "DELETE" | "MERGE"
                if !is_before(&["ON"]) && !self.statement.is_sign_at(1, b'(') =>
            {
                return Err(format!("{word} is not expected there"));
            }
            "SELECT" => {
                (self.in_query, self.builtin_only) = (true, false);
                self.frame().in_from = false;
            }
            // No bounds of a partition: those have LESS or IN.
            "VALUES"
                if self.statement.is_sign_at(1, b'(') || self.statement.word_at(1) == "ROW" =>
            {
                self.builtin_only = false;
            }
            word if self.ends_from(word) => self.frame().in_from = false,
            _ => {}
        }
        self.call(token)
    }

    /// True for a clause of Postgres, false for a column of that name.
    fn names_tablespace(&self) -> bool {
        let before = self.statement.word_before();
        let is_clause = !self.in_query
            && self.frames.len() == 1
            && !["ADD", "ALTER", "COLUMN", "DROP"].contains(&before.as_str());
        !self.statement.is_mysql() && (is_clause || before == "INDEX")
    }

    /// True for a word that continues a name or is a variable, whatever it says.
    fn is_part(&self) -> bool {
        self.statement.is_sign_before(b'.') || self.statement.is_sign_before(b'@')
    }

    fn ends_from(&self, word: &str) -> bool {
        let known = if self.statement.is_mysql() { RESERVED_AFTER_FROM } else { AFTER_FROM.len() };
        // Not WITHIN GROUP (…), and not USE INDEX FOR ORDER BY (…).
        let has_by = self.statement.word_at(1) == "BY" && self.statement.word_before() != "FOR";
        AFTER_FROM[..known].contains(&word) && (!matches!(word, "GROUP" | "ORDER") || has_by)
    }

    /// `a IS DISTINCT FROM b`, but not `a.is distinct FROM b`, where both are names. MySQL has none.
    fn follows_is_distinct(&self) -> bool {
        if self.statement.is_mysql() {
            return false;
        }
        let mut before = self.statement;
        let forms: [&[&str]; 2] = [&["IS", "DISTINCT"], &["IS", "NOT", "DISTINCT"]];
        let Some(form) = forms.iter().find(|form| before.follows(form)) else { return false };
        before.at -= form.len();
        let is_part = before.is_sign_before(b'.') || before.is_sign_before(b'@');
        !is_part && before.word_before() != "AS"
    }

    /// `NEXT VALUE FOR sequence` of MariaDB.
    fn next_value(&mut self) -> Result<(), Refusal> {
        self.statement.at += 1;
        if self.statement.take(&["VALUE", "FOR"]) {
            let name = self.statement.name()?;
            if !self.rules.is_made(&name, &[RelationKind::Sequence]) {
                return Err(format!("the load did not make {}", name.text));
            }
        }
        Ok(())
    }

    /// A name, or a function and its parenthesis.
    fn call(&mut self, token: &Token) -> Result<(), Refusal> {
        // `(a).f.g`: both are of a value.
        let is_of_value = self.statement.is_sign_before(b'.');
        let is_star = self.statement.is_sign_at(1, b'.') && self.statement.is_sign_at(2, b'*');
        if is_star && !is_of_value {
            self.statement.at += 3;
            return Ok(());
        }
        let before = self.statement.at.checked_sub(1).map(|at| self.statement.tokens[at]);
        let before = before.map(|before| self.statement.text(&before).to_ascii_uppercase());
        let follows = |text: &[u8]| before.as_deref() == Some(text);
        let first = self.statement.at;
        let name = self.statement.name()?;
        let is_call = self.statement.is_sign(b'(');
        // `dom '1'`, and RETURNING of JSON_VALUE and the like.
        let is_of_text = self.statement.peek().is_some_and(|next| next.kind == TokenKind::Text);
        let is_returned = follows(b"RETURNING") && self.frames.len() > 1;
        let is_type =
            follows(b":") || follows(b"AS") || is_of_text || is_returned || !self.in_query;
        if name.parts.len() > 1 && (is_call || is_type) && !self.statement.is_mysql() {
            let is_of_server = name.parts[0] == "pg_catalog" && name.parts.len() == 2;
            if !is_of_server && (is_call || !self.rules.is_place(&name)) {
                return Err(format!("a load may not use {}", name.text));
            }
        }
        if !is_call {
            let (sql, tokens) = (self.statement.sql, self.statement.tokens);
            let parts = name.parts.iter().enumerate().skip(usize::from(!is_of_value));
            for (at, part) in parts {
                self.rules.attributes.insert(part.clone());
                if !is_of_relation(sql, tokens, first + 2 * at) {
                    self.rules.of_values.insert(part.clone());
                }
            }
            if is_type && !self.statement.is_mysql() {
                self.rules.types.insert(name.last().to_owned());
            }
            return Ok(());
        }
        // `AS g (i)` of FROM: no server calls a function there.
        let mut ahead = self.statement;
        if self.in_query && follows(b"AS") && matches!(ahead.take_columns(), Ok(true)) {
            self.statement = ahead;
            return Ok(());
        }
        let word = name.last().to_lowercase();
        let is_plain =
            token.kind == TokenKind::Word && (name.parts.len() == 1 || !self.statement.is_mysql());
        let is_known = is_plain && is_listed(&word);
        let is_sequence = word == "nextval" && self.takes_own_sequence();
        let computes =
            self.frame().computes || BEFORE_VALUE.iter().any(|it| follows(it.as_bytes()));
        let is_builtin = self.builtin_only
            && !computes
            && name.parts.len() == 1
            && !OTHER_EFFECTS.contains(&&*word);
        let computes = computes || is_plain && ["as", "check", "default"].contains(&&*word);
        let is_method = is_plain && follows(b"USING") && METHODS.contains(&&*word);
        if !(is_known || is_sequence || is_builtin || is_method) {
            return Err(format!("a load may not call {}", name.text));
        }
        let divides = !self.in_query && self.divides_table();
        if name.parts.len() == 1 && !self.builtin_only && !divides {
            self.rules.called.insert(word.clone());
        }
        let passes_from = WITH_FROM.contains(&word.to_uppercase().as_str());
        self.statement.at += 1;
        self.frames.push(Frame { passes_from, computes, ..Frame::default() });
        Ok(())
    }

    /// True after `PARTITION BY HASH` and the like.
    fn divides_table(&self) -> bool {
        ["HASH", "LIST", "RANGE"]
            .iter()
            .any(|way| self.statement.follows(&["PARTITION", "BY", way]))
    }

    /// True if the argument is the name of a sequence of the load.
    fn takes_own_sequence(&self) -> bool {
        let mut inside = self.statement;
        inside.at += 1;
        let name = inside.take_literal().and_then(|text| TableName::try_from(text).ok());
        // More would make another name of it.
        if inside.take_sign(b':') && !(inside.take_sign(b':') && inside.take(&["REGCLASS"])) {
            return false;
        }
        if !inside.is_sign(b')') {
            return false;
        }
        name.is_some_and(|name| self.rules.is_made_text(&name, RelationKind::Sequence))
    }

    /// A table of FROM: one of the load, a name of WITH, or a known function.
    fn source(&mut self) -> Result<(), Refusal> {
        self.frame().awaits_table = false;
        let mut ahead = self.statement;
        let name = ahead.name()?;
        if name.parts.len() == 1 && NO_TABLE.contains(&self.statement.word().as_str()) {
            return Err(format!("{} is not expected there", name.text));
        }
        if ahead.is_sign(b'(') {
            let token = *self.statement.peek().ok_or("a table is missing")?;
            return self.call(&token);
        }
        let is_named = name.parts.len() == 1
            && self.frames.iter().any(|frame| frame.named.contains(name.last()));
        if !is_named && !self.rules.is_read(&name) {
            let why = if self.rules.is_made(&name, &[RelationKind::View]) {
                "a view that may do what a load may not"
            } else {
                "which the load did not make"
            };
            return Err(format!("it reads {}, {why}", name.text));
        }
        self.statement = ahead;
        Ok(())
    }

    /// A further name of WITH up to the parenthesis of its query.
    fn with(&mut self, is_recursive: bool) -> Result<(), Refusal> {
        let name = self.statement.name()?;
        if name.parts.len() > 1 {
            return Err(format!("{} is no name of WITH", name.text));
        }
        self.statement.take_columns()?;
        if !self.statement.take(&["AS"]) {
            return Err("AS is missing".to_owned());
        }
        self.statement.take(&["NOT"]);
        self.statement.take(&["MATERIALIZED"]);
        if !self.statement.take_sign(b'(') {
            return Err("a query in parentheses is missing".to_owned());
        }
        // Within its own query it is another table, unless the query is recursive.
        let name = name.last().to_owned();
        let named = is_recursive.then(|| name.clone()).into_iter().collect();
        self.frames.push(Frame { of_with: Some((name, is_recursive)), named, ..Frame::default() });
        Ok(())
    }

    /// A table that must be one of the load, and what follows its name.
    fn own_table(&mut self) -> Result<(), Refusal> {
        let word = self.statement.word();
        self.statement.at += 1;
        let in_parentheses = word == "INHERITS" && self.statement.take_sign(b'(');
        loop {
            let name = self.statement.name()?;
            if !self.rules.is_made(&name, &[RelationKind::Table]) {
                return Err(format!("{word} names {}, which the load did not make", name.text));
            }
            if !(in_parentheses && self.statement.take_sign(b',')) {
                break;
            }
        }
        if in_parentheses {
            return if self.statement.take_sign(b')') {
                Ok(())
            } else {
                Err("parentheses do not fit".to_owned())
            };
        }
        self.statement.take_columns().map(drop)
    }
}

/// True if the word names a table in a definition. LIKE is an operator elsewhere.
fn is_of_definition(word: &str, walk: &Expressions<'_, '_>) -> bool {
    let before = walk.statement.at.checked_sub(1).map(|at| walk.statement.tokens[at]);
    let follows_sign = before.is_some_and(|before| {
        matches!(walk.statement.text(&before), b"(" | b",") && before.kind == TokenKind::Sign
    });
    match word {
        "REFERENCES" | "INHERITS" => true,
        "LIKE" => follows_sign,
        _ => false,
    }
}

/// True if WITH begins a query, and no options: `WITH name AS (`, `WITH name (`, `WITH RECURSIVE`.
fn is_query(statement: &Statement<'_>) -> bool {
    let mut ahead = *statement;
    ahead.at += 1;
    if ahead.take(&["RECURSIVE"]) {
        return true;
    }
    if ahead.is_sign(b'(') || ahead.name().is_err() {
        return false;
    }
    ahead.take_columns().is_ok() && ahead.word() == "AS"
}
