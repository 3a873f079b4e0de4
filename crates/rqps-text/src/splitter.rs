//! A file of SQL as single statements: dumps of pg_dump, mysqldump, mariadb-dump and SQLite too.

use thiserror::Error;

use crate::lexer::{SqlLexer, is_of_name};
use rqps_model::dialect::Dialect;

/// A part of a file, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlChunk {
    /// One statement, without the `;` at its end and comments before it, and the line on which it
    /// begins, from 1. Dumps of MySQL hold bytes in it that are not UTF-8.
    Statement(Vec<u8>, u64),
    /// A COPY whose data follow, and its line.
    Copy(String, u64),
    /// A line of the data of `COPY … FROM stdin`, with its line feed.
    CopyLine(Vec<u8>),
    /// The end of these data.
    CopyEnd,
}

/// A file that is not SQL for a server.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SplitError {
    /// A command of a client program.
    #[error("line {line}: `{word}` is a command of {program}\nhint: {}", instead(word))]
    Command {
        /// The line.
        line: u64,
        /// The command.
        word: String,
        /// The program that understands it.
        program: &'static str,
    },
    /// Bytes that are not UTF-8.
    #[error("line {line}: the statement is not UTF-8{}", crate::csv::UTF8_HINT)]
    Encoding {
        /// The line.
        line: u64,
    },
    /// The end of the file within something.
    #[error("line {line}: the file ends within {open} that begins there")]
    Open {
        /// The line where the statement begins.
        line: u64,
        /// The open literal or comment.
        open: &'static str,
    },
}

/// Takes the lines of a file and gives its statements.
pub struct SqlSplitter {
    dialect: Dialect,
    lexer: SqlLexer,
    /// The delimiter of statements.
    delimiter: Vec<u8>,
    statement: Vec<u8>,
    begun: u64,
    line: u64,
    in_copy: bool,
    body: StatementBody,
}

/// A body of statements within a statement: of a trigger of SQLite, of a function of Postgres.
#[derive(Default)]
struct StatementBody {
    words: u32,
    /// Words of the beginning that say whether a body may follow.
    is_trigger: bool,
    after_begin: bool,
    depth: u32,
}

impl SqlSplitter {
    /// At the beginning of a file.
    pub fn new(dialect: Dialect) -> SqlSplitter {
        SqlSplitter {
            dialect,
            lexer: SqlLexer::new(dialect),
            delimiter: b";".to_vec(),
            statement: Vec::new(),
            begun: 0,
            line: 0,
            in_copy: false,
            body: StatementBody::default(),
        }
    }

    /// Bytes of the statement that is not complete.
    pub fn pending(&self) -> usize {
        self.statement.len()
    }

    /// The line on which it begins, from 1.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Takes the next line with its line feed, and appends what it completes to `chunks`.
    ///
    /// # Errors
    /// See [`SplitError`].
    pub fn take(&mut self, line: &[u8], chunks: &mut Vec<SqlChunk>) -> Result<(), SplitError> {
        self.line += 1;
        if self.in_copy {
            let end = line.strip_suffix(b"\n").unwrap_or(line);
            let end = end.strip_suffix(b"\r").unwrap_or(end);
            self.in_copy = end != b"\\.";
            chunks.push(if self.in_copy {
                SqlChunk::CopyLine(line.to_vec())
            } else {
                SqlChunk::CopyEnd
            });
            return Ok(());
        }
        // Comments may stand before a command.
        if self.lexer.is_in_code() && self.body.words == 0 && self.command(line)? {
            // Lines of a statement are counted from its first comment.
            self.append(b"\n");
            return Ok(());
        }
        let (mut from, mut at, mut word) = (0, 0, None);
        while at < line.len() {
            let (next, is_code) = self.lexer.step(line, at);
            if is_code && is_of_name(line[at]) {
                word.get_or_insert(at);
            } else if let Some(begin) = word.take() {
                self.body.word(&line[begin..at], self.dialect);
            }
            if is_code && self.body.depth == 0 && line[at..].starts_with(&self.delimiter) {
                self.append(&line[from..at]);
                self.finish(chunks)?;
                at += self.delimiter.len();
                // Of `END$$` the word is over: the delimiter is no part of it.
                (from, word) = (at, None);
            } else {
                at = next;
            }
        }
        if let Some(begin) = word {
            self.body.word(&line[begin..], self.dialect);
        }
        self.append(&line[from..]);
        Ok(())
    }

    /// The end of the file.
    ///
    /// # Errors
    /// See [`SplitError`].
    pub fn end(&mut self, chunks: &mut Vec<SqlChunk>) -> Result<(), SplitError> {
        let open = match (self.in_copy, self.body.depth) {
            (true, _) => Some("data of COPY"),
            (false, 0) => self.lexer.open(),
            (false, _) => Some("a body of BEGIN"),
        };
        match open {
            Some(open) => Err(SplitError::Open { line: self.begun.max(1), open }),
            None => self.finish(chunks),
        }
    }

    fn is_blank(&self) -> bool {
        self.statement.iter().all(u8::is_ascii_whitespace)
    }

    /// Handles a line that is a command and no SQL. True if it was one.
    fn command(&mut self, line: &[u8]) -> Result<bool, SplitError> {
        let text = String::from_utf8_lossy(line);
        let mut words = text.split_whitespace();
        let Some(first) = words.next() else { return Ok(false) };
        if self.dialect == Dialect::Mysql && first.eq_ignore_ascii_case("delimiter") {
            let delimiter = words.next().unwrap_or(";");
            self.delimiter = delimiter.as_bytes().to_vec();
            return Ok(true);
        }
        // Dumps since August 2025 guard themselves against other commands with these two.
        if self.dialect == Dialect::Postgres && ["\\restrict", "\\unrestrict"].contains(&first) {
            return Ok(true);
        }
        // The first line of dumps of MariaDB: a command of its client in a comment.
        if self.line == 1 && first.starts_with("/*") && text.contains("999999\\-") {
            return Ok(true);
        }
        let (program, is_command) = match self.dialect {
            Dialect::Sqlite => ("sqlite3", first.starts_with('.')),
            Dialect::Mysql => {
                let is_word = first.eq_ignore_ascii_case("source") && self.is_blank();
                ("mysql", first.starts_with('\\') || is_word)
            }
            _ => ("psql", first.starts_with('\\')),
        };
        if is_command {
            Err(SplitError::Command { line: self.line, word: first.to_owned(), program })
        } else {
            Ok(false)
        }
    }

    fn append(&mut self, part: &[u8]) {
        if self.is_blank() {
            self.statement.clear();
            if part.iter().all(u8::is_ascii_whitespace) {
                return;
            }
            self.begun = self.line;
        }
        self.statement.extend_from_slice(part);
    }

    /// Gives the statement that is complete, unless it holds nothing but comments.
    fn finish(&mut self, chunks: &mut Vec<SqlChunk>) -> Result<(), SplitError> {
        self.body = StatementBody::default();
        let mut statement = std::mem::take(&mut self.statement);
        let comments = comments_before(self.dialect, &statement);
        let lines = statement[..comments].iter().filter(|byte| **byte == b'\n').count();
        let line = self.begun + lines as u64;
        statement.drain(..comments);
        statement.truncate(statement.trim_ascii_end().len());
        if statement.is_empty() {
            return Ok(());
        }
        if self.dialect == Dialect::Mysql {
            chunks.push(SqlChunk::Statement(statement, line));
            return Ok(());
        }
        let text = String::from_utf8(statement).map_err(|_| SplitError::Encoding { line })?;
        self.in_copy = self.dialect == Dialect::Postgres && takes_rows(&text);
        chunks.push(if self.in_copy {
            SqlChunk::Copy(text, line)
        } else {
            SqlChunk::Statement(text.into_bytes(), line)
        });
        Ok(())
    }
}

impl StatementBody {
    /// Passes a word of code.
    fn word(&mut self, word: &[u8], dialect: Dialect) {
        let is = |text: &str| word.eq_ignore_ascii_case(text.as_bytes());
        self.words += 1;
        if dialect == Dialect::Mysql {
            // There DELIMITER tells.
            return;
        }
        if self.words <= 4 && is("trigger") {
            self.is_trigger = true;
        }
        let opens = match dialect {
            Dialect::Sqlite => self.is_trigger && self.depth == 0 && is("begin"),
            _ => self.after_begin && is("atomic"),
        };
        if opens || (self.depth > 0 && is("case")) {
            self.depth += 1;
        } else if self.depth > 0 && is("end") {
            self.depth -= 1;
        }
        self.after_begin = is("begin");
    }
}

/// What a file has in the place of a command of a client.
fn instead(word: &str) -> &'static str {
    match word.trim_end_matches(';').to_ascii_lowercase().as_str() {
        "\\c" | "\\connect" | "\\u" | ".open" => {
            "remove the line: rqps loads into a database of its own, which it has made"
        }
        "\\i" | "\\ir" | "\\include" | "\\include_relative" | "\\." | "source" | ".read" => {
            "name the file in `schema`, at its place: schema = [\"first.sql\", \"second.sql\"]"
        }
        "\\copy" | ".import" => {
            "name the CSV file in `data`, or write COPY … FROM stdin and the rows below it"
        }
        "\\gexec" | "\\g" | "\\gx" | "\\gset" => "write the statements themselves",
        _ => "remove the line: only the client program knows it",
    }
}

/// The length of blanks and comments at the beginning, without comments that MySQL executes.
fn comments_before(dialect: Dialect, text: &[u8]) -> usize {
    let mut lexer = SqlLexer::new(dialect);
    let mut at = 0;
    while at < text.len() {
        let is_executed = dialect == Dialect::Mysql
            && (text[at..].starts_with(b"/*!") || text[at..].starts_with(b"/*M!"));
        if lexer.is_in_comment() || text[at].is_ascii_whitespace() {
            at = lexer.step(text, at).0;
            continue;
        }
        let next = lexer.step(text, at).0;
        if is_executed || !lexer.is_in_comment() {
            break;
        }
        at = next;
    }
    at
}

/// True for `COPY … FROM stdin`, whose rows follow in the file.
fn takes_rows(sql: &str) -> bool {
    let words = crate::lexer::words(Dialect::Postgres, sql);
    let from_stdin = words.windows(2).any(|pair| pair[0] == "FROM" && pair[1] == "STDIN");
    words.first().is_some_and(|word| word == "COPY") && from_stdin
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(dialect: Dialect, text: &str) -> Result<Vec<SqlChunk>, SplitError> {
        let (mut splitter, mut chunks) = (SqlSplitter::new(dialect), Vec::new());
        for line in text.as_bytes().split_inclusive(|byte| *byte == b'\n') {
            splitter.take(line, &mut chunks)?;
        }
        splitter.end(&mut chunks)?;
        Ok(chunks)
    }

    fn statements(dialect: Dialect, text: &str) -> Vec<(String, u64)> {
        let chunks = split(dialect, text).unwrap().into_iter();
        chunks
            .filter_map(|chunk| match chunk {
                SqlChunk::Statement(sql, line) => Some((String::from_utf8(sql).unwrap(), line)),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn statements_end_at_a_semicolon_of_code() {
        let check = |dialect, text: &str, want: &[(&str, u64)]| {
            let want: Vec<_> = want.iter().map(|(sql, line)| ((*sql).to_owned(), *line)).collect();
            assert_eq!(statements(dialect, text), want, "{text}");
        };
        check(Dialect::Postgres, "a;b\n;\n\n c ", &[("a", 1), ("b", 1), ("c", 4)]);
        check(Dialect::Postgres, "-- x;\n;;\n", &[]);
        check(Dialect::Postgres, "SELECT ';\n;' ;", &[("SELECT ';\n;'", 1)]);
        check(
            Dialect::Postgres,
            "CREATE FUNCTION f() RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql;\nb;",
            &[("CREATE FUNCTION f() RETURNS int AS $$ SELECT 1; $$ LANGUAGE sql", 1), ("b", 2)],
        );
        check(
            Dialect::Postgres,
            "CREATE PROCEDURE p() BEGIN ATOMIC\n SELECT CASE WHEN a THEN b END; END;\nc",
            &[
                ("CREATE PROCEDURE p() BEGIN ATOMIC\n SELECT CASE WHEN a THEN b END; END", 1),
                ("c", 3),
            ],
        );
        check(
            Dialect::Sqlite,
            "BEGIN;\nCREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END;\nCOMMIT;",
            &[
                ("BEGIN", 1),
                ("CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1; END", 2),
                ("COMMIT", 3),
            ],
        );
        check(
            Dialect::Mysql,
            "DELIMITER //\nCREATE PROCEDURE p() BEGIN SELECT 1; END//\nDELIMITER ;\nb;",
            &[("CREATE PROCEDURE p() BEGIN SELECT 1; END", 2), ("b", 4)],
        );
        check(
            Dialect::Mysql,
            "DELIMITER $$\nCREATE PROCEDURE p() BEGIN SELECT 1; END$$\nDELIMITER ;\nb;",
            &[("CREATE PROCEDURE p() BEGIN SELECT 1; END", 2), ("b", 4)],
        );
        check(
            Dialect::Mysql,
            "/*M!999999\\- enable the sandbox mode */ \n/*!40101 SET x=1 */;\n/* c */;",
            &[("/*!40101 SET x=1 */", 2)],
        );
    }

    #[test]
    fn a_command_may_follow_comments() {
        let text = "-- a dump\n\n\\restrict abc\n\n-- settings\nSELECT 1;\n";
        assert_eq!(statements(Dialect::Postgres, text), [("SELECT 1".to_owned(), 6)]);
        let other = split(Dialect::Postgres, "-- a dump\n\\connect shop\n").unwrap_err();
        let remove = "hint: remove the line: rqps loads into a database of its own";
        assert!(
            other
                .to_string()
                .starts_with(&format!("line 2: `\\connect` is a command of psql\n{remove}"))
        );
        let within = "SELECT '\n\\restrict'\n\\restrict;";
        assert_eq!(
            statements(Dialect::Postgres, within),
            [(within[..within.len() - 1].to_owned(), 1)]
        );
    }

    #[test]
    fn rows_of_copy_are_passed_on() {
        let text = "COPY t (a) FROM stdin;\n1;\n\\N\n\\.\n\\restrict abc\nSELECT 1;\n";
        let want = vec![
            SqlChunk::Copy("COPY t (a) FROM stdin".to_owned(), 1),
            SqlChunk::CopyLine(b"1;\n".to_vec()),
            SqlChunk::CopyLine(b"\\N\n".to_vec()),
            SqlChunk::CopyEnd,
            SqlChunk::Statement(b"SELECT 1".to_vec(), 6),
        ];
        assert_eq!(split(Dialect::Postgres, text).unwrap(), want);
    }

    #[test]
    fn what_no_server_understands_is_refused_with_its_line() {
        let fails = |dialect, text: &str| split(dialect, text).unwrap_err().to_string();
        let connect = fails(Dialect::Postgres, "a;\n\\connect b\n");
        assert!(connect.starts_with("line 2: `\\connect` is a command of psql\nhint: remove"));
        for (dialect, text, hint) in [
            (Dialect::Sqlite, ".mode csv\n", "remove the line: only"),
            (Dialect::Postgres, "\\i other.sql\n", "name the file in `schema`"),
            (Dialect::Postgres, "\\copy t FROM 'a.csv'\n", "name the CSV file in `data`"),
            (Dialect::Mysql, "source other.sql;\n", "name the file in `schema`"),
            (Dialect::Mysql, "\\. other.sql\n", "name the file in `schema`"),
        ] {
            let fault = fails(dialect, text);
            assert!(fault.contains(&format!("\nhint: {hint}")), "{fault}");
        }
        let open = fails(Dialect::Postgres, "a;\nSELECT 'b;\nc;\n");
        assert_eq!(open, "line 2: the file ends within a text in quotes that begins there");
    }
}
