//! Scripts of pgbench as a user wrote them: SQL with backslash commands, and their expressions.

mod expression;

pub use self::expression::{
    PgbenchExpression, PgbenchFunction, PgbenchValue, ScriptFault, VariableNames, is_variable_name,
};

use crate::lexer::{SqlLexer, words};
use crate::pgbench::expression::{next_reference, skip_blanks};
use rqps_model::dialect::Dialect;

// A script: SQL commands and backslash commands, read as pgbench reads them.

/// A script, its commands in the order of the text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PgbenchProgram {
    /// The commands in order; a jump has an index in this list.
    pub commands: Vec<PgbenchCommand>,
}

/// One command.
#[derive(Clone, Debug, PartialEq)]
pub struct PgbenchCommand {
    /// The line on which it begins, from 1.
    pub line: u32,
    /// The action.
    pub action: PgbenchAction,
}

/// The action of a command.
#[derive(Clone, Debug, PartialEq)]
pub enum PgbenchAction {
    /// Sends a message with SQL.
    Sql(PgbenchSql),
    /// `\set`.
    Set {
        /// The variable by its number.
        variable: u32,
        /// The new value.
        value: PgbenchExpression,
    },
    /// `\if` and `\elif`: goes on, or jumps to the command `otherwise` if the condition is not
    /// true.
    JumpUnless {
        /// The condition.
        condition: PgbenchExpression,
        /// A place in the list of commands.
        otherwise: usize,
    },
    /// The end of a branch: jumps behind `\endif`.
    Jump(usize),
    /// `\sleep`.
    Sleep {
        /// The time in `unit_us`.
        time: PgbenchSleep,
        /// Microseconds of the unit.
        unit_us: u64,
    },
    /// `\startpipeline`.
    StartPipeline,
    /// `\syncpipeline`.
    SyncPipeline,
    /// `\endpipeline`.
    EndPipeline,
}

/// The length of a client's sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PgbenchSleep {
    /// So long.
    Fixed(i64),
    /// The value of a variable.
    Variable(u32),
}

/// A message with SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PgbenchSql {
    /// The text between references to variables, and these.
    pub pieces: Vec<SqlPiece>,
    /// The text as a person reads it: no `\;`, no line feeds.
    pub text: String,
    /// True if `\;` joins several statements.
    pub is_joined: bool,
    /// The row of its result that becomes variables.
    pub stored: Option<StoredRow>,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlPiece {
    /// SQL as written.
    Sql(String),
    /// A variable by its number.
    Variable(u32),
}

impl SqlPiece {
    /// SQL as written; `None` for a variable.
    pub fn sql(&self) -> Option<&str> {
        match self {
            SqlPiece::Sql(sql) => Some(sql),
            SqlPiece::Variable(_) => None,
        }
    }
}

/// `\gset` and `\aset`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRow {
    /// Before the names of the columns.
    pub prefix: String,
    /// True for the last row of each result (`\aset`), false for the only row of the last result.
    pub of_each: bool,
}

impl PgbenchProgram {
    /// Reads a script. Variables get numbers in `names`.
    ///
    /// # Errors
    /// The place, and what was expected there.
    pub fn read(text: &str, names: &mut VariableNames) -> Result<PgbenchProgram, ScriptFault> {
        if let Some(place) = text.bytes().position(|byte| byte == 0) {
            return Err(ScriptFault::at(text, place, "a script holds no zero byte"));
        }
        let (commands, branches, counted) = (Vec::new(), Vec::new(), (0, 1));
        let mut reader = Reader { text, names, commands, branches, follows_sql: false, counted };
        reader.read()?;
        reader.check_pipelines()?;
        if reader.commands.is_empty() {
            return Err(ScriptFault::at(text, 0, "the script holds no command"));
        }
        Ok(PgbenchProgram { commands: reader.commands })
    }

    /// The messages with SQL.
    pub fn statements(&self) -> impl Iterator<Item = &PgbenchSql> {
        self.commands.iter().filter_map(|command| match &command.action {
            PgbenchAction::Sql(sql) => Some(sql),
            _ => None,
        })
    }
}

/// An `\if` whose `\endif` has not come yet.
struct Branch {
    /// The position of its backslash.
    place: usize,
    /// The last condition, which jumps to what comes next.
    condition: Option<usize>,
    /// Jumps at the ends of branches.
    ends: Vec<usize>,
    is_after_else: bool,
}

struct Reader<'a> {
    text: &'a str,
    names: &'a mut VariableNames,
    commands: Vec<PgbenchCommand>,
    branches: Vec<Branch>,
    /// True right after an SQL command.
    follows_sql: bool,
    /// A place in the text, and its line: lines are counted once.
    counted: (usize, u32),
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), ScriptFault> {
        let mut at = 0;
        while at < self.text.len() {
            at = self.sql(at)?;
            if self.text[at..].starts_with('\\') {
                at = self.backslash(at)?;
            }
        }
        match self.branches.last() {
            None => Ok(()),
            Some(branch) => Err(self.fault(branch.place, "this \\if has no \\endif")),
        }
    }

    fn fault(&self, place: usize, what: impl Into<String>) -> ScriptFault {
        ScriptFault::at(self.text, place, what)
    }

    fn push(&mut self, place: usize, action: PgbenchAction) {
        let between = self.text.get(self.counted.0..place).unwrap_or_default();
        let line = self.counted.1 + between.matches('\n').count() as u32;
        self.counted = (place, line);
        self.commands.push(PgbenchCommand { line, action });
    }

    /// Reads SQL up to its `;`, a backslash command or the end. Returns the place after it.
    fn sql(&mut self, from: usize) -> Result<usize, ScriptFault> {
        let bytes = self.text.as_bytes();
        let mut lexer = SqlLexer::new(Dialect::Postgres);
        let (mut at, mut depth, mut sql, mut begin) = (from, 0u32, String::new(), None);
        // Skipped text stays in the message.
        let (mut copied, mut is_joined) = (from, false);
        while at < bytes.len() {
            let (next, is_code) = lexer.step(bytes, at);
            let is_comment = !is_code && lexer.is_in_code() && begin.is_none();
            if is_comment || (is_code && begin.is_none() && bytes[at].is_ascii_whitespace()) {
                (at, copied) = (next, next);
                continue;
            }
            match bytes[at] {
                b'\\' if is_code => match bytes.get(at + 1) {
                    Some(b';' | b':') => {
                        sql.push_str(&self.text[copied..at]);
                        begin.get_or_insert(at);
                        is_joined |= bytes[at + 1] == b';';
                        copied = at + 1;
                        at += 2;
                        continue;
                    }
                    _ => break,
                },
                b'(' if is_code => depth += 1,
                b')' if is_code => depth = depth.saturating_sub(1),
                b';' if is_code && depth == 0 => {
                    begin.get_or_insert(at);
                    at = next;
                    break;
                }
                _ => {}
            }
            begin.get_or_insert(at);
            at = next;
        }
        if let (Some(open), Some(begin)) = (lexer.open(), begin) {
            return Err(self.fault(begin, format!("the script ends within {open}")));
        }
        sql.push_str(&self.text[copied..at]);
        if let Some(begin) = begin {
            self.check_sql(begin, &sql)?;
            let sql = PgbenchSql { is_joined, ..self.message(&sql) };
            self.push(begin, PgbenchAction::Sql(sql));
            self.follows_sql = true;
        }
        Ok(at)
    }

    fn check_sql(&self, begin: usize, sql: &str) -> Result<(), ScriptFault> {
        match words(Dialect::Postgres, sql).first().map(String::as_str) {
            Some("COPY") => Err(self.fault(begin, "COPY moves data that a script does not have")),
            _ => Ok(()),
        }
    }

    fn message(&mut self, sql: &str) -> PgbenchSql {
        let (mut pieces, mut from) = (Vec::new(), 0);
        while let Some((at, end)) = next_reference(sql, from) {
            pieces.push(SqlPiece::Sql(sql[from..at].to_owned()));
            pieces.push(SqlPiece::Variable(self.names.number(&sql[at + 1..end])));
            from = end;
        }
        pieces.push(SqlPiece::Sql(sql[from..].to_owned()));
        pieces.retain(|piece| *piece != SqlPiece::Sql(String::new()));
        let text = sql.split_whitespace().collect::<Vec<_>>().join(" ");
        PgbenchSql { pieces, text, is_joined: false, stored: None }
    }

    /// Reads a backslash command. Returns the place after its line.
    fn backslash(&mut self, place: usize) -> Result<usize, ScriptFault> {
        let (name, after) = self.word(place + 1);
        let mut words = Vec::new();
        let mut at = after;
        loop {
            let (begin, word, next) = self.next_word(at);
            if word.is_empty() {
                at = begin;
                break;
            }
            words.push((begin, word));
            at = next;
        }
        let end = self.text[at..].find('\n').map_or(self.text.len(), |feed| at + feed + 1);
        let lower = name.to_ascii_lowercase();
        match lower.as_str() {
            "set" => self.set(place, after)?,
            "if" | "elif" => self.condition(place, &lower, after)?,
            "sleep" => self.sleep(place, &words)?,
            "setrandom" => return Err(self.fault(place, expression::instead_of_setrandom(&words))),
            "gset" | "aset" if !self.follows_sql => {
                let what = format!("`\\{lower}` must follow an SQL command");
                return Err(self.fault(place, what));
            }
            "gset" | "aset" => self.stored(&words, lower == "aset")?,
            _ => {
                let action = self.plain(place, &lower)?;
                if let Some((begin, word)) = words.first() {
                    let what = format!("`\\{lower}` takes nothing, not `{word}`");
                    return Err(self.fault(*begin, what));
                }
                if let Some(action) = action {
                    self.push(place, action);
                }
            }
        }
        self.follows_sql = false;
        Ok(end)
    }

    /// The word at `at` and the place after it.
    fn word(&self, at: usize) -> (String, usize) {
        let rest = &self.text.as_bytes()[at..];
        let length = rest.iter().take_while(|byte| !byte.is_ascii_whitespace()).count();
        (self.text[at..at + length].to_owned(), at + length)
    }

    /// The next word of a line: where it begins, itself, and the place after it.
    fn next_word(&self, at: usize) -> (usize, String, usize) {
        let begin = skip_blanks(self.text, at);
        let (word, end) = self.word(begin);
        (begin, word, end)
    }

    fn set(&mut self, place: usize, at: usize) -> Result<(), ScriptFault> {
        let (begin, name, after) = self.next_word(at);
        if name.is_empty() {
            return Err(self.fault(begin, "the name of a variable must follow `\\set`"));
        }
        if !is_variable_name(&name) {
            let what = format!("`{name}` is not a name of a variable: letters, digits and `_`");
            return Err(self.fault(begin, what));
        }
        let value = expression::parse(self.text, after, self.names)?;
        let variable = self.names.number(&name);
        self.push(place, PgbenchAction::Set { variable, value });
        Ok(())
    }

    fn condition(&mut self, place: usize, name: &str, at: usize) -> Result<(), ScriptFault> {
        if name == "elif" {
            self.end_branch(place, name)?;
        } else {
            let ends = Vec::new();
            self.branches.push(Branch { place, condition: None, ends, is_after_else: false });
        }
        let condition = expression::parse(self.text, at, self.names)?;
        let number = self.commands.len();
        self.push(place, PgbenchAction::JumpUnless { condition, otherwise: usize::MAX });
        if let Some(branch) = self.branches.last_mut() {
            branch.condition = Some(number);
        }
        Ok(())
    }

    /// Ends the branch before `\elif` or `\else`: it jumps to the end, and the condition before it
    /// to what follows.
    fn end_branch(&mut self, place: usize, name: &str) -> Result<(), ScriptFault> {
        let number = self.commands.len();
        let Some(branch) = self.branches.last_mut() else {
            return Err(self.fault(place, format!("`\\{name}` without `\\if`")));
        };
        if branch.is_after_else {
            return Err(self.fault(place, format!("`\\{name}` after `\\else`")));
        }
        branch.ends.push(number);
        let condition = branch.condition.take();
        self.push(place, PgbenchAction::Jump(usize::MAX));
        if let Some(condition) = condition {
            self.aim(condition, number + 1);
        }
        Ok(())
    }

    /// Says where a jump goes.
    fn aim(&mut self, jump: usize, to: usize) {
        match &mut self.commands[jump].action {
            PgbenchAction::JumpUnless { otherwise, .. } => *otherwise = to,
            PgbenchAction::Jump(target) => *target = to,
            _ => {}
        }
    }

    /// Commands without arguments.
    fn plain(&mut self, place: usize, name: &str) -> Result<Option<PgbenchAction>, ScriptFault> {
        Ok(match name {
            "else" => {
                self.end_branch(place, name)?;
                if let Some(branch) = self.branches.last_mut() {
                    branch.is_after_else = true;
                }
                None
            }
            "endif" => {
                let Some(branch) = self.branches.pop() else {
                    return Err(self.fault(place, "`\\endif` without `\\if`"));
                };
                let end = self.commands.len();
                for jump in branch.ends.into_iter().chain(branch.condition) {
                    self.aim(jump, end);
                }
                None
            }
            "startpipeline" => Some(PgbenchAction::StartPipeline),
            "syncpipeline" => Some(PgbenchAction::SyncPipeline),
            "endpipeline" => Some(PgbenchAction::EndPipeline),
            "shell" | "setshell" => {
                return Err(self.fault(place, format!("`\\{name}` runs a program; rqps does not")));
            }
            _ => {
                return Err(self.fault(
                    place,
                    format!(
                        "pgbench has no `\\{name}`; there are \\set, \\sleep, \\if, \\elif, \
                         \\else, \\endif, \\gset, \\aset, \\startpipeline, \\syncpipeline and \
                         \\endpipeline"
                    ),
                ));
            }
        })
    }

    fn sleep(&mut self, place: usize, words: &[(usize, String)]) -> Result<(), ScriptFault> {
        let ((begin, time), unit) = match words {
            [] => return Err(self.fault(place, "a time must follow `\\sleep`, such as 10 ms")),
            [time] => (time, None),
            [time, unit] => (time, Some(unit)),
            [_, _, (extra, word), ..] => {
                let what = format!("`\\sleep` takes a time and a unit, not `{word}`");
                return Err(self.fault(*extra, what));
            }
        };
        let (time, attached) = match time.strip_prefix(':') {
            Some(name) if is_variable_name(name) => {
                (PgbenchSleep::Variable(self.names.number(name)), "")
            }
            _ => {
                let sign = usize::from(time.starts_with(['+', '-']));
                let digits = time[sign..].bytes().take_while(u8::is_ascii_digit).count();
                let (number, attached) = time.split_at(sign + digits);
                let number = number.parse().map_err(|_| {
                    let what = format!("a time must be a whole number or a variable, not `{time}`");
                    self.fault(*begin, what)
                })?;
                (PgbenchSleep::Fixed(number), attached)
            }
        };
        let (unit_at, unit) = match (attached, unit) {
            ("", None) => (*begin, "s"),
            ("", Some((at, unit))) => (*at, unit.as_str()),
            (attached, None) => (*begin, attached),
            (_, Some((at, unit))) => {
                return Err(self.fault(*at, format!("a second unit: `{unit}`")));
            }
        };
        let unit_us = match unit.to_ascii_lowercase().as_str() {
            "us" => 1,
            "ms" => 1_000,
            "s" => 1_000_000,
            _ => {
                let what = format!("the unit must be us, ms or s, not `{unit}`");
                return Err(self.fault(unit_at, what));
            }
        };
        self.push(place, PgbenchAction::Sleep { time, unit_us });
        Ok(())
    }

    fn stored(&mut self, words: &[(usize, String)], of_each: bool) -> Result<(), ScriptFault> {
        let name = if of_each { "aset" } else { "gset" };
        let prefix = match words {
            [] => String::new(),
            [(_, prefix)] => prefix.clone(),
            [_, (extra, word), ..] => {
                let what = format!("`\\{name}` takes one prefix, not `{word}` too");
                return Err(self.fault(*extra, what));
            }
        };
        if let Some(PgbenchAction::Sql(sql)) =
            self.commands.last_mut().map(|command| &mut command.action)
        {
            sql.stored = Some(StoredRow { prefix, of_each });
        }
        Ok(())
    }

    /// Refuses what pgbench would refuse while it runs. With branches only the run tells.
    fn check_pipelines(&self) -> Result<(), ScriptFault> {
        let branches = |action: &PgbenchAction| matches!(action, PgbenchAction::JumpUnless { .. });
        if self.commands.iter().any(|command| branches(&command.action)) {
            return Ok(());
        }
        let mut begun = None;
        let fault = |line, what: &str| Err(ScriptFault { line, column: 1, what: what.to_owned() });
        for command in &self.commands {
            let line = command.line;
            match (&command.action, begun) {
                (PgbenchAction::StartPipeline, Some(_)) => {
                    return fault(line, "`\\startpipeline` within a pipeline");
                }
                (PgbenchAction::StartPipeline, None) => begun = Some(line),
                (PgbenchAction::EndPipeline, None) => {
                    return fault(line, "`\\endpipeline` without `\\startpipeline`");
                }
                (PgbenchAction::SyncPipeline, None) => {
                    return fault(line, "`\\syncpipeline` without `\\startpipeline`");
                }
                (PgbenchAction::EndPipeline, Some(_)) => begun = None,
                (PgbenchAction::Sql(sql), Some(_)) if sql.stored.is_some() => {
                    return fault(line, "`\\gset` and `\\aset` are not allowed in a pipeline");
                }
                _ => {}
            }
        }
        match begun {
            None => Ok(()),
            Some(line) => fault(line, "this pipeline has no `\\endpipeline`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use PgbenchSleep::{Fixed, Variable};

    use super::*;

    fn program(text: &str) -> (PgbenchProgram, VariableNames) {
        let mut names = VariableNames::default();
        let program = PgbenchProgram::read(text, &mut names).unwrap();
        (program, names)
    }

    /// The messages of a script, with `:name` for variables.
    fn messages(text: &str) -> Vec<String> {
        let (program, names) = program(text);
        let whole = |sql: &PgbenchSql| {
            let piece = |piece: &SqlPiece| match piece {
                SqlPiece::Sql(text) => text.clone(),
                SqlPiece::Variable(number) => format!(":{}", names.all()[*number as usize]),
            };
            sql.pieces.iter().map(piece).collect::<String>()
        };
        program.statements().map(whole).collect()
    }

    #[test]
    fn commands_end_where_pgbench_ends_them() {
        let check = |text: &str, want: &[&str]| assert_eq!(messages(text), want, "{text}");
        check("SELECT 1;\nSELECT 2;\n", &["SELECT 1;", "SELECT 2;"]);
        check("-- a comment\n  SELECT 1", &["SELECT 1"]);
        check("SELECT 1 \\; SELECT 2;", &["SELECT 1 ; SELECT 2;"]);
        check("SELECT ';', \":x\", $$;$$; SELECT 2;", &["SELECT ';', \":x\", $$;$$;", "SELECT 2;"]);
        check("SELECT (1; 2);", &["SELECT (1; 2);"]);
        check("SELECT 1 -- a;\n, 2;", &["SELECT 1 -- a;\n, 2;"]);
        check("SELECT a\\:\\:int;", &["SELECT a::int;"]);
        check("SELECT :x AS a \\gset p_\nSELECT :p_a;", &["SELECT :x AS a ", "SELECT :p_a;"]);
        check("/* :y */ SELECT 1;", &["/* :y */ SELECT 1;"]);
    }

    #[test]
    fn branches_become_jumps() {
        let text =
            "\\if :a\nSELECT 1;\n\\elif :b\nSELECT 2;\n\\else\nSELECT 3;\n\\endif\nSELECT 4;\n";
        let (program, _) = program(text);
        let shown: Vec<String> = program
            .commands
            .iter()
            .map(|command| match &command.action {
                PgbenchAction::JumpUnless { otherwise, .. } => format!("unless {otherwise}"),
                PgbenchAction::Jump(target) => format!("jump {target}"),
                PgbenchAction::Sql(sql) => sql.text.clone(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(
            shown,
            [
                "unless 3", "SELECT 1;", "jump 7", "unless 6", "SELECT 2;", "jump 7", "SELECT 3;",
                "SELECT 4;"
            ]
        );
        let lines: Vec<u32> = program.commands.iter().map(|command| command.line).collect();
        assert_eq!(lines, [1, 2, 3, 3, 4, 5, 6, 8]);
    }

    #[test]
    fn lines_are_continued_and_times_have_units() {
        let (program, names) =
            program("\\set a 1 + \\\n  2\n\\sleep 5ms\n\\sleep :a us\n\\sleep 1\n");
        assert_eq!(names.all(), ["a"]);
        let sleeps: Vec<_> = program
            .commands
            .iter()
            .filter_map(|command| match command.action {
                PgbenchAction::Sleep { time, unit_us } => Some((time, unit_us)),
                _ => None,
            })
            .collect();
        assert_eq!(sleeps, [(Fixed(5), 1000), (Variable(0), 1), (Fixed(1), 1_000_000)]);
        assert_eq!(program.commands[1].line, 3);
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_place() {
        let check = |text: &str, want: &str| {
            let fault = PgbenchProgram::read(text, &mut VariableNames::default()).unwrap_err();
            assert!(fault.to_string().contains(want), "{fault}\n  instead of {want}");
        };
        check("SELECT 1;\n\\setshell a b\n", "line 2, column 1: `\\setshell` runs a program");
        check("\\setrandom aid 1 :n", "write `\\set aid random(1, :n)`");
        check("\\setrandom a 1 9 gaussian 2.0", "`\\set a random_gaussian(1, 9, 2.0)`");
        check("\\foo", "line 1, column 1: pgbench has no `\\foo`; there are \\set, \\sleep");
        check("\\set 1a 5", "line 1, column 6: `1a` is not a name of a variable");
        check("\\set", "the name of a variable must follow `\\set`");
        check("\\set a", "line 1, column 7: a value, not the end of the line");
        check("\\set a 1 +", "a value, not the end of the line");
        check("\\set a 1 2", "line 1, column 10: an operator or the end of the line, not `2`");
        check("\\set a foo(1)", "`foo` is no function; there are abs, debug");
        check("\\set a random(1)", "line 1, column 8: `random` takes 2 arguments, not 1");
        check("\\set a (1", "`)`, not the end of the line");
        check("\\set a 9223372036854775808", "is no whole number of 64 bits");
        check("\\set a 1 < 2 < 3", "comparisons do not follow each other");
        check("\\set a case when 1 then 2", "WHEN, ELSE or END, not the end of the line");
        check("\\set a 'x'", "`'` means nothing in an expression");
        check("\\if 1\nSELECT 1;", "line 1, column 1: this \\if has no \\endif");
        check("\\else", "`\\else` without `\\if`");
        check("\\if 1\n\\else\n\\elif 1\n\\endif", "line 3, column 1: `\\elif` after `\\else`");
        check("\\endif", "`\\endif` without `\\if`");
        check("\\gset", "`\\gset` must follow an SQL command");
        check(
            "SELECT 1 AS a \\gset\n\\gset",
            "line 2, column 1: `\\gset` must follow an SQL command",
        );
        let branch = "SELECT 1 AS a;\n\\if 1\nSELECT 2;\n\\endif\n\\gset";
        check(branch, "`\\gset` must follow an SQL command");
        check("SELECT 1 \\gset a b", "takes one prefix, not `b` too");
        check("\\sleep", "a time must follow `\\sleep`");
        check("\\sleep abc", "a time must be a whole number or a variable, not `abc`");
        check("\\sleep 5 h", "line 1, column 10: the unit must be us, ms or s, not `h`");
        check(
            "\\startpipeline\nSELECT 1;",
            "line 1, column 1: this pipeline has no `\\endpipeline`",
        );
        check("\\endpipeline", "`\\endpipeline` without `\\startpipeline`");
        check("\\startpipeline\nSELECT 1 AS a \\gset\n\\endpipeline", "not allowed in a pipeline");
        check(&format!("\\set x 1{}", "+1".repeat(2000)), "more than 1000 operators");
        check("SELECT 'a", "the script ends within a text in quotes");
        check("COPY t FROM stdin;", "COPY moves data that a script does not have");
        check("-- nothing\n", "the script holds no command");
    }
}
