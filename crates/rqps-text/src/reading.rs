//! What statements do: those that only read are told from those that may write, by their words; what
//! a load makes or changes; what a dump names that belongs to others.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::admission::{
    LoadRules, Token, TokenKind, is_harmless_before_parenthesis, is_of_relation, without_hints,
};
use crate::lexer::{SqlLexer, parts, words};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::{Identifier, Literal, TableName};

/// What a statement does to data, as far as its words tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<'a> {
    /// It returns rows and changes none. The text is without the locks that it takes.
    Reads(Cow<'a, str>),
    /// It begins or ends a transaction, or sets a variable of the session.
    Frames,
    /// Anything else: it may write.
    Other,
}

/// Words of statements that write, within one that begins like a query.
const WRITES: [&str; 5] = ["INTO", "INSERT", "UPDATE", "DELETE", "MERGE"];

/// First words of statements that change no data.
const FRAMES: [&str; 9] =
    ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE", "SET"];

/// Words of variables that outlive the session, or that let it write; of transactions of others, and of
/// the number that the next one has on all servers; of threads of others; of traces in files; of
/// MariaDB's statements that hold others.
const LASTING: [&str; 15] = [
    "ATOMIC",
    "STATEMENT",
    "GLOBAL",
    "PERSIST",
    "PERSIST_ONLY",
    "WRITE",
    "DEFAULT_TRANSACTION_READ_ONLY",
    "TRANSACTION_READ_ONLY",
    "TX_READ_ONLY",
    "PASSWORD",
    "PREPARED",
    "GTID_NEXT",
    "RESOURCE",
    "DEBUG",
    "DEBUG_DBUG",
];

/// Words of settings that give other rights, with which READ ONLY changes what a read costs, or after
/// which names and texts mean something else.
const TELLING: [&str; 13] = [
    "ROLE", "AUTHORIZATION", "SERIALIZABLE", "SEARCH_PATH", "SCHEMA", "SQL_MODE",
    "STANDARD_CONFORMING_STRINGS", "CLIENT_ENCODING", "CHARACTER_SET_CLIENT", "NAMES", "CHARACTER",
    "CHARSET", "CHAR",
];

/// First words of queries.
const READS: [&str; 7] = ["SELECT", "WITH", "VALUES", "TABLE", "SHOW", "EXPLAIN", "DESCRIBE"];

/// First words of the edges of transactions, and the others that may stand there.
const EDGES: [&str; 5] = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK"];
const OF_EDGES: [&str; 15] = [
    "WORK", "TRANSACTION", "AND", "NO", "NOT", "CHAIN", "RELEASE", "ISOLATION", "LEVEL", "READ",
    "ONLY", "COMMITTED", "UNCOMMITTED", "REPEATABLE", "DEFERRABLE",
];

/// Words of statements that EXPLAIN can carry out, beside [`WRITES`].
const EXPLAINED: [&str; 5] = ["CREATE", "REFRESH", "EXECUTE", "REPLACE", "DECLARE"];

/// What a statement does. Functions that it calls may write all the same.
pub fn effect(dialect: Dialect, sql: &str) -> Effect<'_> {
    if parts(dialect, sql).is_err() {
        return Effect::Other;
    }
    let read = without_locks(dialect, sql);
    let words = words(dialect, &read);
    let holds = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let first = words.iter().find(|word| *word != "(").map_or("", String::as_str);
    match first {
        // Some versions of MySQL execute it.
        _ if is_executed_comment(sql) => Effect::Other,
        "SELECT" | "WITH" | "VALUES" | "TABLE" if !holds(&WRITES) => Effect::Reads(read),
        // A variable whose name stands in quotes may be one of those, too.
        "SET" if sql.contains(['"', '`', '(']) || sets_role(&words) => Effect::Other,
        first if FRAMES.contains(&first) && !holds(&LASTING) => Effect::Frames,
        _ => Effect::Other,
    }
}

/// First words of statements that change rows and nothing else.
const CHANGES: [&str; 6] = ["INSERT", "UPDATE", "DELETE", "MERGE", "REPLACE", "WITH"];

/// True unless a statement makes what a later one could name, or changes what its names mean, as far
/// as its words tell.
pub fn keeps_names(dialect: Dialect, sql: &str) -> bool {
    let words = words(dialect, sql);
    match effect(dialect, sql) {
        Effect::Reads(_) => true,
        // All names are of ASCII there, as rqps's own first statement on MySQL has it.
        Effect::Frames if words == ["SET", "NAMES", "UTF8MB4"] => true,
        Effect::Frames => !words.iter().any(|word| TELLING.contains(&word.as_str())),
        Effect::Other => words.first().is_some_and(|word| CHANGES.contains(&word.as_str())),
    }
}

fn is_executed_comment(sql: &str) -> bool {
    sql.contains("/*!") || sql.contains("/*M!")
}

/// `SET DEFAULT ROLE` of MySQL, which outlives the session.
fn sets_role(words: &[String]) -> bool {
    words.windows(2).any(|pair| pair == ["DEFAULT", "ROLE"])
}

/// The statements of a text, as a server of the dialect splits it; the whole where nobody can tell.
pub fn statements(dialect: Dialect, sql: &str) -> Vec<&str> {
    let all = without_hints(dialect, sql.as_bytes()).unwrap_or_default();
    let mut from = 0;
    let mut found = Vec::new();
    for end in all.iter().filter(|token| &sql[token.begin..token.end] == ";") {
        found.push(&sql[from..end.begin]);
        from = end.end;
    }
    found.push(&sql[from..]);
    found.retain(|statement| !statement.trim().is_empty());
    found
}

/// True unless a text, as servers of each dialect read it, only queries, and calls only functions
/// that do nothing beside: on a server of others, the rest needs a yes. For what words cannot show,
/// as a view that writes, the server has to refuse writes.
pub fn may_write(sql: &str) -> bool {
    // Where literals and names end depends on the settings of the server.
    ["\\'", "\\\"", "\\`", "\\\\"].iter().any(|escape| sql.contains(escape))
        // A name in other letters than its own.
        || ["u&\"", "U&\""].iter().any(|name| sql.contains(name))
        || calls_unknown(sql)
        || [Dialect::Postgres, Dialect::Mysql].into_iter().any(|dialect| {
            statements(dialect, sql).into_iter().any(|one| !is_query(&words(dialect, one)))
        })
}

/// True if the value that takes the place of one of these `None` would become a part of a name or of a
/// literal: then nobody knows what the statement names, or where the value ends.
pub fn joins<'a>(pieces: impl IntoIterator<Item = Option<&'a str>>) -> bool {
    let (mut sql, mut values) = (String::new(), Vec::new());
    for piece in pieces {
        values.extend(piece.is_none().then_some(sql.len()));
        sql.push_str(piece.unwrap_or("1"));
    }
    [Dialect::Postgres, Dialect::Mysql].into_iter().any(|dialect| {
        let Ok(all) = without_hints(dialect, sql.as_bytes()) else { return true };
        values.iter().any(|at| {
            let is_text = |token: &Token| token.kind == TokenKind::Text;
            let next = all.iter().position(|token| token.end > *at);
            let Some(next) = next.filter(|next| all[*next].begin <= *at) else { return false };
            let is_alone = (all[next].begin, all[next].end) == (*at, at + 1);
            // `E'a'` says how the server reads a literal that follows.
            let follows_text = next.checked_sub(1).is_some_and(|before| is_text(&all[before]));
            !is_text(&all[next]) && (follows_text || !is_alone)
        })
    })
}

/// True for a text that sets variables of the session, and lets it write no more than before.
pub fn only_sets(sql: &str) -> bool {
    const DIALECTS: [Dialect; 2] = [Dialect::Postgres, Dialect::Mysql];
    let words = words(Dialect::Fake, sql);
    let is_telling = words.iter().any(|word| TELLING.contains(&word.as_str()));
    match words.first().map(String::as_str) {
        Some("SET") => {
            let sets = |dialect: &Dialect| effect(*dialect, sql) == Effect::Frames;
            let may_load = |dialect| LoadRules::new(dialect).judge(sql.as_bytes()).is_ok();
            DIALECTS.iter().all(sets) && (!is_telling || DIALECTS.into_iter().any(may_load))
        }
        Some("PRAGMA") => DIALECTS.into_iter().all(|dialect| statements(dialect, sql).len() == 1),
        _ => false,
    }
}

/// True if some server may call a function that is not known to do nothing but give a value.
pub fn calls_unknown(sql: &str) -> bool {
    [Dialect::Postgres, Dialect::Mysql].into_iter().any(|dialect| {
        let Ok(all) = without_hints(dialect, sql.as_bytes()) else { return true };
        let text = |token: &Token| &sql[token.begin..token.end];
        let is_unknown = |at: usize| {
            let before = &all[at];
            let is_qualified = at > 0 && text(&all[at - 1]) == ".";
            let is_plain = before.kind == TokenKind::Word && !is_qualified;
            let may_call = matches!(before.kind, TokenKind::Word | TokenKind::Name);
            may_call && !(is_plain && is_harmless_before_parenthesis(text(before)))
        };
        let calls = (1..all.len()).filter(|at| text(&all[*at]) == "(");
        all.iter().any(|token| token.comment.is_some()) || calls.map(|at| at - 1).any(is_unknown)
    })
}

/// The names after a point that Postgres may take for functions of a value, as in `(7).f`, in small
/// letters; `None` if nobody can tell where names end.
pub fn attributes_of_values(sql: &str) -> Option<BTreeSet<String>> {
    let all = without_hints(Dialect::Postgres, sql.as_bytes()).ok()?;
    let text = |at: usize| sql.get(all[at].begin..all[at].end).unwrap_or_default();
    let is_attribute =
        |at: &usize| text(*at - 1) == "." && !is_of_relation(sql.as_bytes(), &all, *at);
    let found = (1..all.len()).filter(is_attribute).map(|at| text(at).trim_matches('"'));
    Some(found.map(str::to_lowercase).collect())
}

/// A statement of Postgres with NULL in place of its texts: whoever made the type of a text may have it
/// checked by a function as soon as the server reads the statement. `None` if nobody can tell where
/// texts end.
pub fn without_texts(sql: &str) -> Option<String> {
    let mut without = sql.to_owned();
    let all = without_hints(Dialect::Postgres, sql.as_bytes()).ok()?;
    for token in all.iter().rev().filter(|token| token.kind == TokenKind::Text) {
        without.replace_range(token.begin..token.end, " NULL ");
    }
    Some(without)
}

/// True for the words of a query, or of the edge of a transaction.
fn is_query(words: &[String]) -> bool {
    let holds = |list: &[&str]| {
        // `REPLACE(…)` and `INSERT(…)` are functions, too.
        let is_call = |at: usize| words.get(at + 1).is_some_and(|next| next == "(");
        words.iter().enumerate().any(|(at, word)| list.contains(&word.as_str()) && !is_call(at))
    };
    let first = words.iter().find(|word| *word != "(").map_or("", String::as_str);
    match first {
        "EXPLAIN" | "DESCRIBE" => !(holds(&WRITES) || holds(&EXPLAINED)),
        first if READS.contains(&first) => {
            let locks = [["FOR", "SHARE"], ["KEY", "SHARE"], ["IN", "SHARE"]];
            !holds(&WRITES) && !words.windows(2).any(|pair| locks.iter().any(|lock| pair == lock))
        }
        "START" if words.get(1).is_none_or(|word| word != "TRANSACTION") => false,
        first => {
            let mut rest = words.iter().skip(1).map(String::as_str);
            EDGES.contains(&first) && rest.all(|word| OF_EDGES.contains(&word))
        }
    }
}

/// The statement without FOR UPDATE, FOR SHARE and LOCK IN SHARE MODE at its end: a session that
/// only reads may not lock, and gets the same rows without.
fn without_locks(dialect: Dialect, sql: &str) -> Cow<'_, str> {
    let text = sql.as_bytes();
    let (mut lexer, mut at, mut depth, mut cut) = (SqlLexer::new(dialect), 0, 0_i32, None);
    while at < text.len() {
        let (next, is_code) = lexer.step(text, at);
        if is_code {
            match text[at] {
                b'(' => depth += 1,
                b')' => depth -= 1,
                _ if depth == 0 && cut.is_none() && begins_lock(text, at) => cut = Some(at),
                _ => {}
            }
        }
        at = next;
    }
    cut.map_or(Cow::Borrowed(sql), |cut| Cow::Owned(sql[..cut].trim_end().to_owned()))
}

/// True if a locking clause begins at `at`.
fn begins_lock(text: &[u8], at: usize) -> bool {
    let is_of_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
    if at.checked_sub(1).is_some_and(|before| is_of_word(text[before])) {
        return false;
    }
    let rest = String::from_utf8_lossy(&text[at..(at + 60).min(text.len())]).to_ascii_uppercase();
    let mut words = rest.split_ascii_whitespace().map(|word| word.trim_end_matches(';'));
    matches!(
        (words.next(), words.next(), words.next()),
        (Some("FOR"), Some("UPDATE" | "SHARE"), _)
            | (Some("FOR"), Some("NO" | "KEY"), Some("KEY" | "SHARE"))
            | (Some("LOCK"), Some("IN"), Some("SHARE"))
    )
}

// Tables, views and other objects that a load makes, changes or drops.

/// The tables and views that a statement of Postgres names where nothing else can stand, each with
/// the right that it needs there. What might be another thing is left out.
pub fn used_relations(sql: &str) -> Vec<(ChangedRelation, &'static str)> {
    let Ok(all) = without_hints(Dialect::Postgres, sql.as_bytes()) else { return Vec::new() };
    let text = |at: usize| all.get(at).map_or("", |token| &sql[token.begin..token.end]);
    let is = |at: usize, word: &str| text(at).eq_ignore_ascii_case(word);
    let is_after = |at: usize, word: &str| at > 0 && is(at - 1, word);
    let is_name = |at: usize| {
        all.get(at).is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::Name))
    };
    // `extract(year FROM made)` names no table: that stands in parentheses without a query.
    let (mut queries, mut found) = (vec![true], Vec::new());
    for at in 0..all.len() {
        match text(at) {
            "(" => {
                queries.push(["SELECT", "WITH", "(", "DELETE"].iter().any(|word| is(at + 1, word)))
            }
            ")" => drop(queries.pop()),
            _ => {}
        }
        let right = match text(at).to_ascii_uppercase().as_str() {
            "FROM" if is_after(at, "DELETE") => "DELETE",
            "FROM" if queries.last() == Some(&true) && !is_after(at, "DISTINCT") => "SELECT",
            "JOIN" => "SELECT",
            "INTO" if is_after(at, "INSERT") => "INSERT",
            "UPDATE" if at == 0 || is_after(at, "(") || is_after(at, ")") => "UPDATE",
            _ => continue,
        };
        let begin = if is(at + 1, "ONLY") { at + 2 } else { at + 1 };
        let end = if text(begin + 1) == "." { begin + 2 } else { begin };
        let is_call = text(end + 1) == "(" && right != "INSERT";
        // One of WITH may have the name of a table.
        let is_of_with = begin == end
            && (0..all.len()).any(|other| is(other, "WITH"))
            && (0..all.len()).any(|other| {
                is(other, text(begin)) && (is(other + 1, "AS") || text(other + 1) == "(")
            });
        if is_name(begin) && is_name(end) && !is_call && !is_of_with {
            let name = &sql[all[begin].begin..all[end].end];
            found.push((ChangedRelation::table(name), right));
        }
    }
    found
}

/// Something that a statement makes, changes or drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRelation {
    /// Its name as the statement has it, with quotes and schema.
    pub name: String,
    /// Its kind in the statement.
    pub kind: RelationKind,
}

/// The kind of an object, as a statement names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RelationKind {
    /// A table.
    Table,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
    /// A sequence.
    Sequence,
    /// A type or a domain.
    Type,
    /// An index.
    Index,
    /// A function, a procedure, a trigger: only `drop` of a workload file names one.
    Routine,
}

impl ChangedRelation {
    /// A table of this name.
    pub fn table(name: &str) -> ChangedRelation {
        ChangedRelation { name: name.to_owned(), kind: RelationKind::Table }
    }

    /// True if both names may mean one relation: those without a schema are in any.
    pub fn is_same(&self, other: &ChangedRelation) -> bool {
        let (own, others) = (self.parts(), other.parts());
        let mut pairs = own.iter().rev().zip(others.iter().rev());
        pairs.all(|(one, other)| one.eq_ignore_ascii_case(other))
    }

    /// Its parts without quotes, from the outermost.
    fn parts(&self) -> Vec<String> {
        match TableName::try_from(self.name.clone()) {
            // Another dialect would fold the case.
            Ok(name) => name.folded(Dialect::Mysql),
            Err(_) => vec![self.name.clone()],
        }
    }

    /// The name as SQL.
    pub fn identifier(&self, dialect: Dialect) -> Identifier {
        match TableName::try_from(self.name.clone()) {
            Ok(name) => name.identifier(dialect),
            Err(_) => Identifier::quoted(dialect, &self.name),
        }
    }

    /// The statement that returns a row if there is such an object.
    pub fn presence_query(&self, dialect: Dialect) -> String {
        if dialect != Dialect::Mysql {
            let name = Literal::quoted(dialect, &self.identifier(dialect).to_string());
            return match self.kind {
                RelationKind::Type => {
                    format!("SELECT 1 WHERE pg_catalog.to_regtype({name}) IS NOT NULL")
                }
                _ => format!("SELECT 1 WHERE pg_catalog.to_regclass({name}) IS NOT NULL"),
            };
        }
        format!("SELECT 1 FROM information_schema.tables WHERE {}", self.mysql_condition())
    }

    /// The statement that returns a row if the login of a Postgres lacks a right to this relation
    /// and to each of its columns.
    pub fn closed_query(&self, right: &str) -> String {
        let dialect = Dialect::Postgres;
        let name = Literal::quoted(dialect, &self.identifier(dialect).to_string());
        let right = Literal::quoted(dialect, right);
        // No right to a single column removes rows.
        let of_columns = "pg_catalog.has_any_column_privilege(pg_catalog.to_regclass";
        let of_table = "pg_catalog.has_table_privilege(pg_catalog.to_regclass";
        let asked = if right.to_string() == "'DELETE'" { of_table } else { of_columns };
        format!("SELECT 1 WHERE NOT {asked}({name}), {right})")
    }

    /// The statement that returns the names of the columns that MySQL or MariaDB computes.
    pub fn generated_columns_query(&self) -> String {
        format!(
            "SELECT column_name FROM information_schema.columns WHERE {} \
             AND (extra LIKE '%STORED GENERATED%' OR extra LIKE '%VIRTUAL GENERATED%')",
            self.mysql_condition()
        )
    }

    /// The condition on MySQL's tables about tables that is true for this one.
    fn mysql_condition(&self) -> String {
        let parts = self.parts();
        let literal = |text: &str| Literal::quoted(Dialect::Mysql, text).to_string();
        let name = literal(parts.last().map_or("", String::as_str));
        let place = match parts.as_slice() {
            [database, _] => literal(database),
            _ => "DATABASE()".to_owned(),
        };
        format!("table_schema = {place} AND table_name = {name}")
    }

    /// The entry for it in `drop` of a workload file, which drops it before the load.
    pub fn drop_entry(&self) -> String {
        let kind = match self.kind {
            RelationKind::Table => return self.name.clone(),
            RelationKind::View => "VIEW",
            RelationKind::MaterializedView => "MATERIALIZED VIEW",
            RelationKind::Sequence => "SEQUENCE",
            RelationKind::Type => "TYPE",
            RelationKind::Index => "INDEX",
            RelationKind::Routine => "FUNCTION",
        };
        format!("DROP {kind} IF EXISTS {}", self.name)
    }
}

/// The statement that returns the schema or database in which a load makes its tables.
pub fn place_query(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Mysql => "SELECT DATABASE()",
        _ => "SELECT pg_catalog.current_schema()",
    }
}

/// The message about files that name another place than the one that the login leads to.
pub fn elsewhere(place: &str, own: &str) -> String {
    format!(
        "its files name `{place}`, but the login leads to `{own}`\nhint: a load goes into the \
         schema or database of the login; name no other in the files"
    )
}

// Statements of mysqldump and mariadb-dump that a server of another user must not get as they are.

/// The treatment of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DumpedStatement {
    /// It goes to the server as it stands.
    Plain,
    /// It goes to the server without its DEFINER: that account is one of the dumped server.
    WithoutDefiner(Vec<u8>),
    /// It says which transactions and logs the dumped server had.
    OfReplication,
    /// It names the database, which is another one here.
    NamesDatabase,
}

/// Words that stand before DEFINER in a statement that makes a view, a routine, a trigger or an
/// event.
const BEFORE_DEFINER: [&str; 9] = [
    "CREATE", "ALTER", "OR", "REPLACE", "AGGREGATE", "ALGORITHM", "UNDEFINED", "MERGE", "TEMPTABLE",
];

/// Looks at a statement of a dump, which may stand in comments that MySQL executes.
pub fn judge_dumped(sql: &[u8]) -> DumpedStatement {
    let mut words = Words { text: sql, at: 0 };
    let is = |word: Option<&[u8]>, known: &[&str]| {
        word.is_some_and(|word| {
            known.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        })
    };
    let first = words.next();
    if is(first, &["USE"]) {
        return DumpedStatement::NamesDatabase;
    }
    if is(first, &["SET"]) {
        let names = |word: &[u8]| is(Some(word), &["GTID_PURGED", "SQL_LOG_BIN"]);
        return if words.take(MOST_WORDS).any(names) {
            DumpedStatement::OfReplication
        } else {
            DumpedStatement::Plain
        };
    }
    if !is(first, &["CREATE", "DROP", "ALTER"]) {
        return DumpedStatement::Plain;
    }
    loop {
        let before = words.at;
        let word = words.next();
        if is(word, &["DATABASE", "SCHEMA"]) {
            return DumpedStatement::NamesDatabase;
        }
        if is(word, &["DEFINER"]) {
            return without_definer(sql, before);
        }
        if !is(word, &BEFORE_DEFINER) {
            return DumpedStatement::Plain;
        }
    }
}

/// Words of a SET that are looked at.
const MOST_WORDS: usize = 12;

/// The statement without its clause `DEFINER = user@host`, which begins after `from`.
fn without_definer(sql: &[u8], from: usize) -> DumpedStatement {
    let mut words = Words { text: sql, at: from };
    words.next();
    let begin = words.at - "DEFINER".len();
    let mut at = skip(sql, words.at, |byte| byte.is_ascii_whitespace());
    if sql.get(at) != Some(&b'=') {
        return DumpedStatement::Plain;
    }
    at = skip(sql, at + 1, |byte| byte.is_ascii_whitespace());
    at = name_end(sql, at);
    if sql.get(at) == Some(&b'@') {
        at = name_end(sql, at + 1);
    } else if sql[at..].starts_with(b"()") {
        at += 2;
    }
    DumpedStatement::WithoutDefiner([&sql[..begin], &sql[at..]].concat())
}

fn skip(text: &[u8], from: usize, passed: impl Fn(&u8) -> bool) -> usize {
    from + text[from..].iter().take_while(|byte| passed(byte)).count()
}

/// The end of a quoted or plain name that begins at `at`.
fn name_end(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(quote @ (b'`' | b'\'' | b'"')) => {
            let mut end = at + 1;
            while let Some(byte) = text.get(end) {
                end += 1;
                if byte == quote {
                    if text.get(end) == Some(quote) { end += 1 } else { break }
                }
            }
            end
        }
        _ => skip(text, at, |byte| byte.is_ascii_alphanumeric() || b"_.%$-".contains(byte)),
    }
}

/// Words of a statement from `at`, those in executed comments, too; the numbers of their versions
/// and all signs are passed over.
struct Words<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            let sign = |byte: &u8| b"/*!= \t\r\n@.`".contains(byte);
            let mut begin = skip(self.text, self.at, sign);
            if self.text[self.at..begin].ends_with(b"/*") && self.text[begin..].starts_with(b"M!") {
                begin += 2;
            }
            let end = skip(self.text, begin, |byte| byte.is_ascii_alphanumeric() || *byte == b'_');
            self.at = end;
            let word = &self.text[begin..end];
            if word.is_empty() {
                return None;
            }
            if !word.iter().all(u8::is_ascii_digit) {
                return Some(word);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_make_something_are_told_from_those_that_only_use_it() {
        let keeping = [
            "SELECT 1 FROM t",
            "INSERT INTO t VALUES (NULL)",
            "DELETE FROM t",
            "BEGIN",
            "WITH a AS (SELECT 1) UPDATE t SET n = 1",
            "SET work_mem = '64MB'",
        ];
        let others = [
            "CREATE TEMP TABLE t (n int)", "SELECT 1 AS n INTO t", "SET search_path TO a",
            "SET ROLE b", "CALL make()", "DO $$ $$", "USE other", "DROP TABLE t",
        ];
        for sql in keeping {
            assert!(keeps_names(Dialect::Postgres, sql), "{sql}");
        }
        for sql in others {
            assert!(!keeps_names(Dialect::Postgres, sql), "{sql}");
        }
        assert!(keeps_names(Dialect::Mysql, "SET NAMES utf8mb4"));
        assert!(!keeps_names(Dialect::Mysql, "SET NAMES gbk"));
    }

    #[test]
    fn what_certainly_is_a_table_is_told_with_the_right_to_it() {
        let check = |sql: &str, want: &[&str]| {
            let found = used_relations(sql).into_iter();
            let found: Vec<String> =
                found.map(|(table, right)| format!("{right} {}", table.name)).collect();
            assert_eq!(found, want, "{sql}");
        };
        check(
            "SELECT extract(year FROM made) FROM ONLY shop.\"Order\" o JOIN item USING (id)",
            &["SELECT shop.\"Order\"", "SELECT item"],
        );
        check(
            "SELECT a FROM (SELECT b FROM t) x WHERE a IS DISTINCT FROM c FOR UPDATE",
            &["SELECT t"],
        );
        check("DELETE FROM t WHERE a IN (SELECT a FROM u)", &["DELETE t", "SELECT u"]);
        check("INSERT INTO t(a) SELECT 1 ON CONFLICT (a) DO UPDATE SET a = 1", &["INSERT t"]);
        check("UPDATE t SET a = 1 FROM u", &["UPDATE t", "SELECT u"]);
        check("WITH u AS (UPDATE t SET a = 1 RETURNING a) SELECT a FROM u", &["UPDATE t"]);
        check("WITH u (a) AS (SELECT 1) SELECT a FROM u, generate_series(1, 2)", &[]);
        check("SELECT a FROM generate_series(1, 2) a", &[]);
        check("SELECT 'FROM t'", &[]);
        let asked = ChangedRelation::table("shop.\"It's\"").closed_query("DELETE");
        let name = "to_regclass('shop.\"It''s\"')";
        assert!(asked.contains(name) && asked.ends_with(", 'DELETE')"), "{asked}");
    }

    #[test]
    fn only_what_certainly_reads_is_a_read() {
        use Dialect::{Mysql, Postgres, Sqlite};
        let reads = |dialect, sql: &str, want: &str| {
            assert_eq!(effect(dialect, sql), Effect::Reads(want.into()), "{sql}");
        };
        let check = |dialect, sql: &str, want: Effect<'_>| {
            assert_eq!(effect(dialect, sql), want, "{sql}");
        };
        for sql in [
            "SELECT 1",
            " (select a from t) union select 2;",
            "WITH x AS (SELECT 1) SELECT * FROM x",
            "VALUES (1)",
            "SELECT 'insert into t' AS \"update\"",
        ] {
            reads(Postgres, sql, sql);
        }
        reads(
            Postgres,
            "SELECT a FROM t WHERE b = $1 FOR UPDATE OF t",
            "SELECT a FROM t WHERE b = $1",
        );
        reads(Postgres, "select a from t for no key update", "select a from t");
        reads(Mysql, "SELECT a FROM t LOCK IN SHARE MODE", "SELECT a FROM t");
        reads(Postgres, "SELECT substring(a FOR 2) FROM t", "SELECT substring(a FOR 2) FROM t");
        for sql in [
            "UPDATE t SET a = 1",
            "WITH x AS (DELETE FROM t RETURNING a) SELECT * FROM x",
            "SELECT a INTO u FROM t",
            "SELECT 1; DROP TABLE t",
            "CALL p()",
            "EXPLAIN ANALYZE DELETE FROM t",
            "SELECT 'a",
            "",
        ] {
            check(Postgres, sql, Effect::Other);
        }
        for sql in [
            "SET GLOBAL x = 1",
            "SET @@global.x = 1",
            "SET /*!50000 GLOBAL */ x = 1",
            "SET PASSWORD = 'x'",
            "SET DEFAULT ROLE r TO u",
            "SET @a = f()",
            "SELECT a /*! INTO OUTFILE '/tmp/x' */ FROM t",
        ] {
            check(Mysql, sql, Effect::Other);
        }
        check(Postgres, "SET \"transaction_read_only\" = off", Effect::Other);
        check(Postgres, "COMMIT PREPARED 'theirs'", Effect::Other);
        check(Mysql, "SELECT a INTO @x FROM t", Effect::Other);
        check(Sqlite, "PRAGMA journal_mode = off", Effect::Other);
        check(Postgres, "BEGIN ISOLATION LEVEL SERIALIZABLE", Effect::Frames);
        check(Mysql, "SET autocommit = 0", Effect::Frames);
        check(Sqlite, "commit", Effect::Frames);
    }

    #[test]
    fn what_some_server_may_write_by_needs_a_yes() {
        for sql in [
            "SELECT count(*), max(a) FROM t WHERE b IN (SELECT b FROM u) AND c = :c",
            "WITH x AS (SELECT 1) SELECT * FROM x JOIN (SELECT 2) y ON (true) LIMIT (3)",
            "EXPLAIN ANALYZE SELECT replace(a, 'b', 'c') FROM t",
            "BEGIN; SELECT 1; END;",
            "SELECT \"a\" FROM \"t\" -- DELETE",
            r"SELECT a FROM t WHERE a ~ '^\d+$'",
            "START TRANSACTION; SELECT 1; COMMIT",
        ] {
            assert!(!may_write(sql), "{sql}");
        }
        for sql in [
            "SELECT 1; DROP TABLE theirs",
            "SELECT setval('theirs', 1)",
            "SELECT \"refund\"(1)",
            "SELECT theirs.count(1)",
            "EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1",
            "EXPLAIN (ANALYZE) EXECUTE x",
            "COMMIT PREPARED 'theirs'",
            "TRUNCATE theirs",
            "BEGIN READ WRITE",
            "BEGIN NOT ATOMIC EXECUTE IMMEDIATE 'DROP TABLE theirs'; END",
            "START REPLICA",
            "BEGIN ISOLATION LEVEL SERIALIZABLE",
            "SELECT a FROM t FOR NO KEY UPDATE",
            "SELECT a FROM t FOR KEY SHARE",
            "SELECT a FROM t LOCK IN SHARE MODE",
            // A query to a server whose names stand in double quotes.
            r#"SELECT '\'' AS "\", theirs() -- " -- '"#,
            // Each is a query to the other dialect.
            "SELECT 1 --1 INTO OUTFILE '/tmp/x'",
            "SELECT 1 /*! INTO OUTFILE '/tmp/x' */",
            "SELECT 1 /* /* */ INTO OUTFILE '/tmp/x' -- */",
            r"WITH y AS (SELECT '\'), x AS (DELETE FROM t WHERE a = '\' RETURNING a) SELECT 1 --'",
            "WITH x AS (DELETE /* ' */ FROM t RETURNING $$ ' $$) SELECT 1",
        ] {
            assert!(may_write(sql), "{sql}");
        }
        assert_eq!(statements(Dialect::Postgres, "SELECT ';' ; B;"), ["SELECT ';' ", " B"]);
        for sql in [
            "SET statement_timeout = 5000",
            "SET NAMES utf8mb4",
            "SET sql_mode = 'STRICT_ALL_TABLES'",
            "SET optimizer_switch = 'mrr=on', @a = 1;",
            "PRAGMA cache_size = 9",
        ] {
            assert!(only_sets(sql), "{sql}");
        }
        for sql in [
            "SET default_transaction_read_only = off",
            "SET SESSION TRANSACTION READ WRITE",
            "SET @@session.tx_read_only = 0",
            "SET ROLE owner",
            "SET @a = theirs()",
            "SET statement_timeout = 0; RESET ALL",
            "PRAGMA cache_size = 9; RESET ALL",
            "SET STATEMENT max_statement_time = 9 FOR KILL 5",
            "SET \"default_transaction_read_only\" = off",
            "SET search_path = theirs, pg_catalog",
            "SET gtid_next = '3E11FA47-71CA-11E1-9E33-C80AA9429562:23'",
            "SET @@SESSION.gtid_next = 'AUTOMATIC'",
            "SET RESOURCE GROUP theirs FOR 5",
            "SET debug = 'd:t:o,/tmp/x'",
            "SET SCHEMA 'theirs'",
            "SET NAMES gbk",
            "SET CHARACTER SET gbk",
            "SET NAMES 'SJIS'",
            "SET sql_mode = 'ANSI_QUOTES'",
        ] {
            assert!(!only_sets(sql), "{sql}");
        }
    }

    #[test]
    fn only_what_follows_a_table_is_certainly_its_column() {
        for of_tables in [
            "SELECT t.currval FROM t",
            "SELECT T.nextval, \"t\".a FROM public.t WHERE t.currval > 1",
            "SELECT o.nextval FROM own AS o JOIN public.b p ON p.currval = o.currval",
            "SELECT x.nextval FROM a, \"X\" x",
            "INSERT INTO own VALUES (1) ON CONFLICT (id) DO UPDATE SET a = excluded.a + own.nextval",
        ] {
            let found = attributes_of_values(of_tables).unwrap();
            let is_call = |name: &str| ["currval", "nextval"].contains(&name);
            assert!(!found.iter().any(|name| is_call(name)), "{of_tables}: {found:?}");
        }
        for (sql, want) in [
            ("SELECT (7).nextval", "nextval"),
            ("SELECT f.PG_Sleep FROM abs(0.0) AS f", "pg_sleep"),
            ("SELECT abs.pg_sleep FROM abs(0.0)", "pg_sleep"),
            ("SELECT f.pg_sleep FROM t, abs(0.0) f", "pg_sleep"),
            ("SELECT f.pg_sleep FROM t JOIN ROWS FROM (abs(0.0)) AS f ON true", "pg_sleep"),
            ("SELECT q.nextval FROM SYSTEM_USER AS q", "nextval"),
            ("SELECT user.nextval FROM USER", "nextval"),
            ("SELECT t.pg_sleep FROM t, LATERAL (SELECT t.pg_sleep FROM abs(0.0) t) x", "pg_sleep"),
            ("SELECT a[1].nextval FROM a", "nextval"),
            ("SELECT $1.nextval FROM t", "nextval"),
            ("SELECT :t.nextval FROM t", "nextval"),
            ("SELECT x.t.nextval FROM t", "nextval"),
            ("SELECT q.nextval", "nextval"),
        ] {
            assert!(attributes_of_values(sql).unwrap().contains(want), "{sql}");
        }
        assert_eq!(attributes_of_values("SELECT 'a"), None);
    }

    #[test]
    fn a_statement_without_texts_names_the_same_tables() {
        let check = |sql: &str, want: &str| {
            assert_eq!(without_texts(sql).as_deref(), Some(want));
        };
        check(
            "SELECT 'a', $$b$$ FROM t WHERE c = E'd\\''",
            "SELECT  NULL ,  NULL  FROM t WHERE c =  NULL ",
        );
        assert_eq!(without_texts("SELECT 'a"), None);
    }

    #[test]
    fn a_value_stands_alone() {
        let check = |sql: &str, want| {
            let mut all: Vec<_> = sql.split('?').flat_map(|one| [Some(one), None]).collect();
            all.pop();
            assert_eq!(joins(all), want, "{sql}");
        };
        for alone in ["SELECT a FROM t WHERE b=? AND c IN (?,?)-?", "SELECT 'a?', -?::int", "?"] {
            check(alone, false);
        }
        for joined in [
            "SELECT a FROM b?", "SELECT a FROM b??", "SELECT \"On ?\"", "SELECT ?x", "SELECT E?",
            "SELECT E'a'\n?", "SELECT `a?`", "SELECT $?", "SELECT '", "SELECT ??",
        ] {
            check(joined, true);
        }
    }

    #[test]
    fn names_are_the_same_whatever_their_quotes() {
        let check = |one: &str, other: &str, same| {
            let found = ChangedRelation::table(one).is_same(&ChangedRelation::table(other));
            assert_eq!(found, same, "{one} {other}");
        };
        check("t", "\"T\"", true);
        check("public.t", "t", true);
        check("public.t", "shop.t", false);
        check("`a``b`", "\"a`b\"", true);
        check("`a.b`", "b", false);
        check("t", "u", false);
    }

    #[test]
    fn a_server_is_asked_for_the_name_as_it_reads_it() {
        let query = |name: &str, dialect| ChangedRelation::table(name).presence_query(dialect);
        let postgres = query("public.\"It's\"", Dialect::Postgres);
        assert_eq!(
            postgres,
            "SELECT 1 WHERE pg_catalog.to_regclass('public.\"It''s\"') IS NOT NULL"
        );
        let own = query("`t`", Dialect::Mysql);
        assert!(own.ends_with("table_schema = DATABASE() AND table_name = 't'"), "{own}");
        let other = query("shop.t", Dialect::Mysql);
        assert!(other.ends_with("table_schema = 'shop' AND table_name = 't'"), "{other}");
        let backslash = query(r"`It's \n`", Dialect::Mysql);
        assert!(backslash.ends_with(r"table_name = 'It''s \\n'"), "{backslash}");
    }

    #[test]
    fn the_definer_of_a_view_a_routine_or_a_trigger_is_left_out() {
        let check = |sql: &str, want: &str| {
            let want = DumpedStatement::WithoutDefiner(want.as_bytes().to_vec());
            assert_eq!(judge_dumped(sql.as_bytes()), want, "{sql}");
        };
        check(
            "CREATE DEFINER=`a``b`@`%` PROCEDURE p() BEGIN END",
            "CREATE  PROCEDURE p() BEGIN END",
        );
        check("CREATE DEFINER = 'a'@'h' FUNCTION f()", "CREATE  FUNCTION f()");
        check("create or replace definer=current_user() view v", "create or replace  view v");
        check(
            "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`localhost`*/ /*!50003 TRIGGER t*/",
            "/*!50003 CREATE*/ /*!50017 */ /*!50003 TRIGGER t*/",
        );
        check(
            "/*!50001 CREATE ALGORITHM=MERGE */\n/*!50013 DEFINER=`r`@`h` SQL SECURITY DEFINER */",
            "/*!50001 CREATE ALGORITHM=MERGE */\n/*!50013  SQL SECURITY DEFINER */",
        );
        check("/*M!100001 CREATE DEFINER=a@h VIEW v*/", "/*M!100001 CREATE  VIEW v*/");
    }

    #[test]
    fn statements_about_the_dumped_server_are_known_by_their_words() {
        use DumpedStatement::{NamesDatabase, OfReplication, Plain};
        let check = |sql: &str, want| assert_eq!(judge_dumped(sql.as_bytes()), want, "{sql}");
        check("SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ ''", OfReplication);
        check("SET @MYSQLDUMP_TEMP_LOG_BIN = @@SESSION.SQL_LOG_BIN", OfReplication);
        check("SET @@SESSION.SQL_LOG_BIN= 0", OfReplication);
        check("/*!40101 SET NAMES utf8 */", Plain);
        check("use `shop`", NamesDatabase);
        check("CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop`", NamesDatabase);
        check("/*!40000 DROP DATABASE IF EXISTS `shop`*/", NamesDatabase);
        check("INSERT INTO t VALUES ('SET SQL_LOG_BIN')", Plain);
        check("CREATE TABLE t (definer int, `database` int)", Plain);
        check("CREATE PROCEDURE p() SELECT 'DEFINER=`a`@`b`'", Plain);
        check("", Plain);
    }

    #[test]
    fn any_bytes_are_judged() {
        let mut rng = rqps_model::datagen::rng::Rng::new(3);
        let parts = ["CREATE ", "DEFINER", "=", "`", "@", "/*!", "'", "\u{e9}", "50003 ", "SET "];
        for _ in 0..2000 {
            let text: String = (0..6).map(|_| parts[rng.below(10) as usize]).collect();
            judge_dumped(text.as_bytes());
        }
    }
}
