//! Statements of mysqldump and mariadb-dump that a server of another user must not get as they are.

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
pub fn judge(sql: &[u8]) -> DumpedStatement {
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
    fn the_definer_of_a_view_a_routine_or_a_trigger_is_left_out() {
        let check = |sql: &str, want: &str| {
            let want = DumpedStatement::WithoutDefiner(want.as_bytes().to_vec());
            assert_eq!(judge(sql.as_bytes()), want, "{sql}");
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
        let check = |sql: &str, want| assert_eq!(judge(sql.as_bytes()), want, "{sql}");
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
            judge(text.as_bytes());
        }
    }
}
