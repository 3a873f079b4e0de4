//! Finds the tables and views that a statement of a file makes, changes or drops: its first words
//! tell.

use crate::domain::dialect::Dialect;
use crate::user_text::lexer::is_of_name;

/// Bytes of a statement that are looked at: names stand at its beginning.
const LOOKED_AT: usize = 4096;

/// Words that may stand between the verb and a name.
const BETWEEN: [&str; 12] = [
    "TABLE",
    "IF",
    "NOT",
    "EXISTS",
    "ONLY",
    "INTO",
    "IGNORE",
    "LOW_PRIORITY",
    "HIGH_PRIORITY",
    "DELAYED",
    "QUICK",
    "FROM",
];

/// Words by which CREATE and DROP go on to something that is neither a table nor a view.
const OTHER_KINDS: [&str; 10] = [
    "FUNCTION",
    "PROCEDURE",
    "TYPE",
    "SEQUENCE",
    "SCHEMA",
    "EXTENSION",
    "DOMAIN",
    "DATABASE",
    "EVENT",
    "AGGREGATE",
];

/// A table or a view that a statement makes, changes or drops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRelation {
    /// Its name as the statement has it, with quotes and schema.
    pub name: String,
    /// Its kind in the statement.
    pub kind: RelationKind,
}

/// The kind of a relation, as a statement names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RelationKind {
    /// A table.
    Table,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
}

impl ChangedRelation {
    /// A table of this name.
    pub fn table(name: &str) -> ChangedRelation {
        ChangedRelation { name: name.to_owned(), kind: RelationKind::Table }
    }

    /// True if both names may mean one relation: those without a schema are in any.
    pub fn is_same(&self, other: &ChangedRelation) -> bool {
        let (own, others) = (name_parts(&self.name), name_parts(&other.name));
        let mut pairs = own.iter().rev().zip(others.iter().rev());
        pairs.all(|(one, other)| one.eq_ignore_ascii_case(other))
    }

    /// The statement that returns a row if there is such a relation.
    pub fn presence_query(&self, dialect: Dialect) -> String {
        if dialect != Dialect::Mysql {
            let name = dialect.literal(&self.name);
            return format!("SELECT 1 WHERE to_regclass({name}) IS NOT NULL");
        }
        format!("SELECT 1 FROM information_schema.tables WHERE {}", self.mysql_condition())
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
        let parts = name_parts(&self.name);
        let name = Dialect::Mysql.literal(parts.last().map_or("", String::as_str));
        let place = match parts.as_slice() {
            [database, _] => Dialect::Mysql.literal(database),
            _ => "DATABASE()".to_owned(),
        };
        format!("table_schema = {place} AND table_name = {name}")
    }

    /// The entry for it in `drop` of a workload file, which drops it before the load.
    pub fn drop_entry(&self) -> String {
        match self.kind {
            RelationKind::Table => self.name.clone(),
            RelationKind::View => format!("DROP VIEW IF EXISTS {}", self.name),
            RelationKind::MaterializedView => {
                format!("DROP MATERIALIZED VIEW IF EXISTS {}", self.name)
            }
        }
    }
}

/// The relations that a statement makes, changes or drops; temporary ones are none.
pub fn changes(sql: &[u8]) -> Vec<ChangedRelation> {
    let tokens = tokens(sql);
    let Some(verb) = tokens.first().map(|verb| verb.to_uppercase()) else { return Vec::new() };
    let rest = &tokens[1..];
    match verb.as_str() {
        "CREATE" => created(rest).into_iter().collect(),
        "DROP" => dropped(rest),
        "ALTER" if is(rest.first(), "TABLE") => one(rest),
        "RENAME" if is(rest.first(), "TABLE") => {
            let names = rest[1..].iter().filter(|token| is_name(token) && !is(Some(token), "TO"));
            names.map(|name| ChangedRelation::table(name)).collect()
        }
        "TRUNCATE" => listed(rest, RelationKind::Table),
        "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "COPY" => one(rest),
        "MERGE" | "LOAD" => {
            let at = rest.iter().position(|token| is(Some(token), "INTO"));
            at.map_or_else(Vec::new, |at| one(&rest[at..]))
        }
        _ => Vec::new(),
    }
}

/// The parts of a name without quotes: `shop."Order"` has two.
fn name_parts(name: &str) -> Vec<String> {
    let (mut parts, mut letters) = (vec![String::new()], name.chars().peekable());
    let mut close = None;
    while let Some(letter) = letters.next() {
        match close {
            // A doubled quote stands for one.
            Some(quote) if letter == quote && letters.next_if_eq(&quote).is_none() => {
                close = None;
                continue;
            }
            None if matches!(letter, '"' | '`') => {
                close = Some(letter);
                continue;
            }
            None if letter == '.' => {
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
    }
    parts
}

/// The relation that the words after CREATE name.
fn created(rest: &[String]) -> Option<ChangedRelation> {
    let mut kind = RelationKind::View;
    for (at, token) in rest.iter().enumerate() {
        let word = token.to_uppercase();
        match word.as_str() {
            "TEMP" | "TEMPORARY" | "(" | "AS" => return None,
            "MATERIALIZED" => kind = RelationKind::MaterializedView,
            "TABLE" => return one(&rest[at..]).pop(),
            "VIEW" => return listed(&rest[at + 1..], kind).into_iter().next(),
            "INDEX" | "TRIGGER" => {
                let on = rest.iter().position(|token| is(Some(token), "ON"))?;
                return one(&rest[on + 1..]).pop();
            }
            word if OTHER_KINDS.contains(&word) => return None,
            _ => {}
        }
    }
    None
}

/// The relations that the words after DROP name.
fn dropped(rest: &[String]) -> Vec<ChangedRelation> {
    match rest {
        [table, names @ ..] if is(Some(table), "TABLE") => listed(names, RelationKind::Table),
        [view, names @ ..] if is(Some(view), "VIEW") => listed(names, RelationKind::View),
        [word, view, names @ ..] if is(Some(word), "MATERIALIZED") && is(Some(view), "VIEW") => {
            listed(names, RelationKind::MaterializedView)
        }
        _ => Vec::new(),
    }
}

/// The first name, as that of a table.
fn one(rest: &[String]) -> Vec<ChangedRelation> {
    let mut names = listed(rest, RelationKind::Table);
    names.truncate(1);
    names
}

/// Names with commas between them.
fn listed(rest: &[String], kind: RelationKind) -> Vec<ChangedRelation> {
    let is_between = |token: &&String| BETWEEN.iter().any(|word| is(Some(token), word));
    let mut names = Vec::new();
    let mut tokens = rest.iter().skip_while(is_between);
    while let Some(token) = tokens.next().filter(|token| is_name(token)) {
        names.push(ChangedRelation { name: token.clone(), kind });
        if tokens.next().is_none_or(|next| next != ",") {
            break;
        }
    }
    names
}

fn is(token: Option<&String>, word: &str) -> bool {
    token.is_some_and(|token| token.eq_ignore_ascii_case(word))
}

/// True for a word or a name, false for a sign.
fn is_name(token: &str) -> bool {
    token.bytes().next().is_some_and(|byte| is_of_name(byte) || matches!(byte, b'"' | b'`'))
}

/// Words, names with their quotes and dots, and single signs of the beginning of a statement; those
/// of comments that MySQL executes, too.
fn tokens(sql: &[u8]) -> Vec<String> {
    let sql = &sql[..sql.len().min(LOOKED_AT)];
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(byte) = sql.get(at) {
        let rest = &sql[at..];
        if let Some(length) = passed_over(rest) {
            at += length;
            continue;
        }
        let length = match byte {
            b'"' | b'`' => name_length(rest),
            byte if is_of_name(*byte) => name_length(rest),
            _ => 1,
        };
        tokens.push(String::from_utf8_lossy(&rest[..length]).into_owned());
        at += length;
    }
    tokens
}

/// Length of blanks, of a comment, or of the signs of one that MySQL executes.
fn passed_over(rest: &[u8]) -> Option<usize> {
    let until = |end: &[u8]| {
        let found = rest.windows(end.len()).position(|window| window == end);
        found.map_or(rest.len(), |at| at + end.len())
    };
    if rest[0].is_ascii_whitespace() {
        return Some(1);
    }
    if rest.starts_with(b"--") || rest[0] == b'#' {
        return Some(until(b"\n"));
    }
    if rest.starts_with(b"*/") {
        return Some(2);
    }
    let executed = [&b"/*!"[..], b"/*M!"].into_iter().find(|mark| rest.starts_with(mark));
    if let Some(mark) = executed {
        let digits = rest[mark.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        return Some(mark.len() + digits);
    }
    rest.starts_with(b"/*").then(|| until(b"*/"))
}

/// Length of the name at the beginning, with its parts.
fn name_length(text: &[u8]) -> usize {
    let begins = |byte: &u8| is_of_name(*byte) || matches!(byte, b'"' | b'`');
    let mut at = 0;
    loop {
        at += match text[at] {
            quote @ (b'"' | b'`') => {
                let inside = text[at + 1..].iter().take_while(|byte| **byte != quote).count();
                (inside + 2).min(text.len() - at)
            }
            _ => text[at..].iter().take_while(|byte| is_of_name(**byte)).count(),
        };
        match text.get(at) {
            // A doubled quote is one of the name.
            Some(b'"' | b'`') => {}
            Some(b'.') if text.get(at + 1).is_some_and(begins) => at += 1,
            _ => return at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(sql: &str) -> Vec<String> {
        changes(sql.as_bytes()).into_iter().map(|found| found.drop_entry()).collect()
    }

    #[test]
    fn tables_and_views_are_found_by_the_verbs_of_dumps() {
        let check = |sql: &str, want: &[&str]| assert_eq!(names(sql), want, "{sql}");
        check("CREATE TABLE public.\"Or der\" (id int)", &["public.\"Or der\""]);
        check("create unlogged table if not exists a(id int)", &["a"]);
        check("CREATE TABLE `shop`.`a``b` (id int)", &["`shop`.`a``b`"]);
        check("CREATE TEMP TABLE a (id int)", &[]);
        check("DROP TABLE IF EXISTS a, \"b\" CASCADE", &["a", "\"b\""]);
        check("DROP VIEW v", &["DROP VIEW IF EXISTS v"]);
        check("DROP FUNCTION f", &[]);
        check("CREATE OR REPLACE VIEW v AS SELECT 1", &["DROP VIEW IF EXISTS v"]);
        check("CREATE MATERIALIZED VIEW v AS SELECT 1", &["DROP MATERIALIZED VIEW IF EXISTS v"]);
        check("CREATE FUNCTION f() RETURNS TABLE (a int) LANGUAGE sql", &[]);
        check("CREATE TYPE t AS (a int)", &[]);
        check("CREATE UNIQUE INDEX i ON ONLY t USING btree (a)", &["t"]);
        check("CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW EXECUTE FUNCTION k()", &["t"]);
        check("INSERT INTO t VALUES ('INTO u')", &["t"]);
        check("insert ignore t set a = 1", &["t"]);
        check("REPLACE INTO t SELECT 1", &["t"]);
        check("UPDATE ONLY t SET a = 1", &["t"]);
        check("DELETE FROM t", &["t"]);
        check("TRUNCATE TABLE a, b", &["a", "b"]);
        check("COPY public.t (a, b) FROM stdin", &["public.t"]);
        check("COPY (SELECT 1) TO stdout", &[]);
        check("ALTER TABLE ONLY public.t ADD CONSTRAINT k PRIMARY KEY (a)", &["public.t"]);
        check("ALTER SEQUENCE s OWNED BY t.a", &[]);
        check("RENAME TABLE a TO b, c TO d", &["a", "b", "c", "d"]);
        check("MERGE INTO t USING u ON true", &["t"]);
        check("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", &["t"]);
        check("SET search_path = a", &[]);
        check("", &[]);
        check("/*!40000 ALTER TABLE `t` DISABLE KEYS */", &["`t`"]);
        check(
            "/*!50001 CREATE ALGORITHM=UNDEFINED */ /*!50013 SQL SECURITY DEFINER */ \
             /*!50001 VIEW `v` AS SELECT 1 */",
            &["DROP VIEW IF EXISTS `v`"],
        );
        check("-- a\n/* CREATE TABLE x */ CREATE # y\nTABLE t (a int)", &["t"]);
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
        assert_eq!(postgres, "SELECT 1 WHERE to_regclass('public.\"It''s\"') IS NOT NULL");
        let own = query("`t`", Dialect::Mysql);
        assert!(own.ends_with("table_schema = DATABASE() AND table_name = 't'"), "{own}");
        let other = query("shop.t", Dialect::Mysql);
        assert!(other.ends_with("table_schema = 'shop' AND table_name = 't'"), "{other}");
        let backslash = query(r"`It's \n`", Dialect::Mysql);
        assert!(backslash.ends_with(r"table_name = 'It''s \\n'"), "{backslash}");
    }

    #[test]
    fn any_bytes_are_looked_at() {
        let mut rng = crate::datagen::rng::Rng::new(3);
        let parts = ["CREATE ", "TABLE ", "`", "\"", ".", "/*!", "*/", "'", "\u{e9}", ",", "a"];
        for _ in 0..2000 {
            let text: String = (0..6).map(|_| parts[rng.below(11) as usize]).collect();
            changes(text.as_bytes());
        }
    }
}
