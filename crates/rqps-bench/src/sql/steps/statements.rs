//! Compiles a statement of a workload file to an operation of a script.

use std::collections::BTreeSet;

use super::dialects::{all, check_dialects, dialect_key, of_dialect};
use super::values::NamedSources;
use rqps_model::dialect::{Dialect, Placeholder};
use rqps_model::script::{Fragment, Operation, Parameter, Protocol};
use rqps_model::sql_workload::{SqlShape, SqlStatement};
use rqps_model::value_source::Freshness;
use rqps_text::{SqlPart, parts, words};

/// First words of statements that rqps refuses inside an event, because the event's transaction
/// sends them.
const BRACKETS: [&str; 7] = ["BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT"];

/// Compiles statements for one dialect.
pub(super) struct Compiler<'a> {
    pub(super) shape: &'a SqlShape,
    pub(super) dialect: Dialect,
    pub(super) named: &'a NamedSources,
}

impl Compiler<'_> {
    /// The operation for a statement; `kind` is its name in plans and logs.
    pub(super) fn operation(
        &self,
        statement: &SqlStatement,
        kind: String,
    ) -> Result<Operation, String> {
        check_dialects(&statement.sql)?;
        let key = dialect_key(self.dialect);
        let sql = of_dialect(&statement.sql, self.dialect)
            .ok_or_else(|| format!("there is no `sql` for {key}, the dialect of a target"))?;
        check_characters(sql)?;
        self.check_words(sql)?;
        let protocol = match statement.protocol.as_deref() {
            None | Some("prepared") => Protocol::Prepared,
            Some("text") => Protocol::Text,
            Some(other) => {
                return Err(format!("`protocol` must be prepared or text, not `{other}`"));
            }
        };
        let repeat = statement.repeat.unwrap_or(1);
        if !(1..=1_000_000).contains(&repeat) {
            return Err(format!("`repeat` must be from 1 to 1000000, not {repeat}"));
        }
        let expect = statement.expect.map(|expect| expect.rows.bounds());
        if let Some([least, most]) = expect
            && least > most
        {
            return Err(format!("`expect.rows` must ascend, not from {least} to {most}"));
        }
        if statement.expect.is_some() && !statement.into.is_empty() {
            return Err("`into` needs one row anyway; leave out `expect.rows`".to_owned());
        }
        let spelled = Spelling::of(self, &parts(self.dialect, sql)?)?;
        let draws = self.used(statement, Freshness::Use)?.into_iter().collect();
        Ok(Operation {
            kind,
            sql: spelled.sql,
            protocol,
            parameters: spelled.parameters,
            repeat,
            fragments: spelled.fragments,
            draws,
            expect,
            into: self.slots_of(&statement.into)?,
            ..Operation::PLAIN
        })
    }

    /// The sources of this freshness that a statement uses in any dialect, including those they
    /// copy.
    pub(super) fn used(
        &self,
        statement: &SqlStatement,
        freshness: Freshness,
    ) -> Result<BTreeSet<u32>, String> {
        let mut used = BTreeSet::new();
        for name in self.names(statement)? {
            let mut number = self.number(&name)?;
            loop {
                used.insert(number);
                match self.named.sources[number as usize].values {
                    rqps_model::value_source::SourceValues::Same { of, .. } => number = of,
                    _ => break,
                }
            }
        }
        used.retain(|number| self.named.sources[*number as usize].freshness == freshness);
        Ok(used)
    }

    /// Names that a statement uses in any dialect.
    pub(super) fn names(&self, statement: &SqlStatement) -> Result<BTreeSet<String>, String> {
        let mut names = BTreeSet::new();
        for sql in all(&statement.sql) {
            for part in parts(self.dialect, sql)? {
                if let SqlPart::Reference(name) = part {
                    names.insert(name);
                }
            }
        }
        Ok(names)
    }

    /// The slots of names that a row gives values to.
    fn slots_of(&self, names: &[String]) -> Result<Vec<u32>, String> {
        let mut slots = Vec::with_capacity(names.len());
        for name in names {
            let slot = self.named.slots[self.number(name)? as usize];
            if slots.contains(&slot) {
                return Err(format!("`into` has `{name}` twice"));
            }
            slots.push(slot);
        }
        Ok(slots)
    }

    fn number(&self, name: &str) -> Result<u32, String> {
        self.named.numbers.get(name).copied().ok_or_else(|| {
            let known: Vec<&str> = self.named.numbers.keys().map(String::as_str).collect();
            let known = if known.is_empty() {
                "the file has no [parameter.…]".to_owned()
            } else {
                format!("parameters are {}", known.join(", "))
            };
            format!("it uses `:{name}`, and no parameter has that name; {known}")
        })
    }

    fn check_words(&self, sql: &str) -> Result<(), String> {
        let words = words(self.dialect, sql);
        let Some(first) = words.first() else { return Err("its `sql` is empty".to_owned()) };
        if BRACKETS.contains(&first.as_str()) {
            return Err(format!("`{first}` is written as `transaction = true` of the event"));
        }
        let copies = first == "COPY" || (first == "LOAD" && words.iter().any(|w| w == "LOCAL"));
        if copies && words.iter().any(|word| ["STDIN", "STDOUT", "LOCAL"].contains(&&**word)) {
            return Err(format!("`{first}` of rows from the client belongs in [load]"));
        }
        Ok(())
    }
}

/// Refuses characters that servers may take for something else than rqps, such as a carriage return
/// that ends a comment.
pub(super) fn check_characters(sql: &str) -> Result<(), String> {
    let strange = |(at, c): &(usize, char)| match c {
        '\t' | '\n' => false,
        '\r' => !sql[at + 1..].starts_with('\n'),
        _ => c.is_control(),
    };
    match sql.char_indices().find(strange) {
        None => Ok(()),
        Some((_, c)) => Err(format!(
            "its `sql` holds the control character {c:?}, which a server may read in another way"
        )),
    }
}

/// A statement with placeholders, and the same in fragments.
#[derive(Default)]
struct Spelling {
    sql: String,
    parameters: Vec<Parameter>,
    fragments: Vec<Fragment>,
}

impl Spelling {
    fn of(compiler: &Compiler<'_>, parts: &[SqlPart]) -> Result<Spelling, String> {
        let mut spelling = Spelling::default();
        for (index, part) in parts.iter().enumerate() {
            match part {
                SqlPart::Sql(sql) => spelling.push_sql(sql),
                SqlPart::Reference(name) => {
                    let number = compiler.number(name)? as usize;
                    let source = &compiler.named.sources[number];
                    let cast = match compiler.dialect {
                        Dialect::Postgres => {
                            let parameter = compiler.shape.parameter.get(name);
                            parameter.and_then(|parameter| parameter.cast.as_deref())
                        }
                        _ => None,
                    };
                    if let Some(wrong) = cast.filter(|cast| !is_type(cast)) {
                        return Err(format!("the `type` of `{name}` is no type: {wrong:?}"));
                    }
                    if source.count > 1 && !is_in_list(index, parts) {
                        return Err(format!(
                            "`{name}` has `count = {}` and stands outside IN (…)",
                            source.count
                        ));
                    }
                    let (first, whole) = (compiler.named.slots[number], source.is_whole());
                    for slot in first..first + source.count {
                        if slot > first {
                            spelling.push_sql(", ");
                        }
                        let parameter = Parameter::Value { slot, whole };
                        spelling.push_value(parameter, compiler.dialect, cast);
                    }
                }
            }
        }
        if spelling.fragments.is_empty() {
            return Err("its `sql` is empty".to_owned());
        }
        Ok(spelling)
    }

    fn push_sql(&mut self, sql: &str) {
        self.sql.push_str(sql);
        match self.fragments.last_mut() {
            Some(Fragment::Sql(before)) => before.push_str(sql),
            _ => self.fragments.push(Fragment::Sql(sql.to_owned())),
        }
    }

    fn push_value(&mut self, parameter: Parameter, dialect: Dialect, cast: Option<&str>) {
        let known = self.parameters.iter().position(|known| *known == parameter);
        let numbered = dialect.spec().placeholder == Placeholder::Numbered;
        let index = match known {
            Some(index) if numbered => index,
            _ => {
                self.parameters.push(parameter);
                self.parameters.len() - 1
            }
        };
        if numbered {
            self.sql.push_str(&format!("${}", index + 1))
        } else {
            self.sql.push('?')
        }
        self.fragments.push(Fragment::Literal(index as u32));
        if let Some(cast) = cast {
            self.push_sql(&format!("::{cast}"));
        }
    }
}

/// True for the name of a type, such as `text[]`, `numeric(10,2)`, `public."Mood"`.
fn is_type(text: &str) -> bool {
    let is_of_type = |letter: char| letter.is_alphanumeric() || "_ .\"[](),".contains(letter);
    let begins = text.starts_with(|letter: char| letter.is_alphabetic() || "_\"".contains(letter));
    // Parentheses hold numbers only.
    let mut inner = text.split('(').skip(1).filter_map(|rest| rest.split_once(')'));
    let holds_numbers = inner.all(|(numbers, _)| !numbers.contains(char::is_alphabetic));
    let is_closed = text.matches('(').count() == text.matches(')').count();
    begins && is_closed && holds_numbers && text.chars().all(is_of_type)
}

/// True if the reference is the whole list of an IN.
fn is_in_list(index: usize, parts: &[SqlPart]) -> bool {
    let before = index.checked_sub(1).and_then(|before| parts.get(before));
    let (Some(SqlPart::Sql(before)), Some(SqlPart::Sql(after))) = (before, parts.get(index + 1))
    else {
        return false;
    };
    let opens = before.trim_end().strip_suffix('(').map(|rest| rest.trim_end().to_uppercase());
    opens.is_some_and(|rest| rest.ends_with("IN")) && after.trim_start().starts_with(')')
}
