//! Compiles a statement of a workload file to an operation of a script.

use std::borrow::Cow;
use std::collections::BTreeSet;

use toml::de::{DeTable, DeValue};

use super::values::NamedSources;
use rqps_model::benchmark::{BenchmarkParameters, Workload};
use rqps_model::build::Dbms;
use rqps_model::dialect::{Dialect, Placeholder};
use rqps_model::script::{Fragment, Freshness, Operation, Parameter, Protocol};
use rqps_model::sql_workload::{ByDialect, CsvLoad, SqlLoad, SqlShape, SqlStatement, TextPosition};
use rqps_text::{SqlPart, dropped, parts, toml_reader, words};

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
                    rqps_model::script::SourceValues::Same { of, .. } => number = of,
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

// Checks [load] of a workload file.

/// Refuses a [load] that cannot be carried out on a DBMS of this dialect.
pub(super) fn check_load(shape: &SqlShape, dialect: Dialect) -> Result<(), String> {
    let Some(load) = &shape.load else { return Ok(()) };
    let at = load.at.prefix();
    let fault = |why: String| format!("{at}[load]: {why}");
    for said in load.schema.iter().chain(&load.index).chain(&load.drop) {
        check_dialects(said).map_err(fault)?;
    }
    if load.sessions.is_some_and(|sessions| !(1..=256).contains(&sessions)) {
        return Err(fault("`threads` must be from 1 to 256".to_owned()));
    }
    load.data.iter().try_for_each(check_delimiter).map_err(fault)?;
    check_servers(load, dialect).map_err(fault)?;
    if load.schema.as_ref().is_some_and(|said| of_dialect(said, dialect).is_none()) {
        let key = dialect_key(dialect);
        return Err(format!("{at}[load] has no schema for {key}, the dialect of a target"));
    }
    Ok(())
}

fn check_delimiter(data: &CsvLoad) -> Result<(), String> {
    let wrong = |text: &&String| !text.is_ascii() || text.len() != 1 || "\"\r\n".contains(*text);
    match data.delimiter.as_ref().filter(wrong) {
        Some(text) => Err(format!(
            "the `delimiter` of {} must be one character of ASCII, not {text:?}",
            data.csv
        )),
        None => Ok(()),
    }
}

/// Refuses what cannot be done on a server that somebody else runs.
fn check_servers(load: &SqlLoad, dialect: Dialect) -> Result<(), String> {
    if load.on_servers == Some(true) && load.schema.is_none() && load.data.is_empty() {
        return Err("`load = true` needs `schema` or `data`".to_owned());
    }
    let Some(drop) = &load.drop else { return Ok(()) };
    if load.on_servers != Some(true) {
        return Err("`drop` needs `load = true`: only servers given by a DSN have tables before \
                    the load"
            .to_owned());
    }
    let entries = of_dialect(drop, dialect);
    entries.into_iter().flatten().try_for_each(|entry| dropped(dialect, entry).map(|_| ()))
}

// Values of a workload file by dialect.

/// Keys of tables by dialect. MariaDB speaks MySQL's dialect and uses `mysql` if there is no
/// `mariadb`.
const KEYS: [&str; 5] = ["postgres", "mysql", "mariadb", "sqlite", "any"];

/// The key of a dialect in tables by dialect.
fn dialect_key(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgres => "postgres",
        Dialect::Mysql => "mysql",
        Dialect::Sqlite => "sqlite",
        Dialect::KeyValue => "kv",
        Dialect::Fake => "fake",
    }
}

/// The value for a dialect; without one, that of `any`.
pub fn of_dialect<T>(said: &ByDialect<T>, dialect: Dialect) -> Option<&T> {
    match said {
        ByDialect::All(all) => Some(all),
        ByDialect::Each(each) => each.get(dialect_key(dialect)).or_else(|| each.get("any")),
    }
}

/// The values of all dialects.
pub(super) fn all<T>(said: &ByDialect<T>) -> Vec<&T> {
    match said {
        ByDialect::All(all) => vec![all],
        ByDialect::Each(each) => each.values().collect(),
    }
}

/// Refuses keys that are no dialects.
fn check_dialects<T>(said: &ByDialect<T>) -> Result<(), String> {
    let ByDialect::Each(each) = said else { return Ok(()) };
    match each.keys().find(|key| !KEYS.contains(&key.as_str())) {
        Some(key) => Err(format!("`{key}` is not a dialect; dialects are {}", KEYS.join(", "))),
        None => Ok(()),
    }
}

/// The workload for a DBMS: exchanges the values under its own name with those under its dialect,
/// as `mariadb` with `mysql`. Keeps all values, so that all targets draw the same ones.
pub fn of_dbms(workload: &Workload, dbms: Dbms) -> Cow<'_, Workload> {
    let keys = (dbms.name(), dialect_key(dbms.dialect()));
    let BenchmarkParameters::Sql(shape) = &workload.shape else { return Cow::Borrowed(workload) };
    if keys.0 == keys.1 {
        return Cow::Borrowed(workload);
    }
    let mut shape = shape.clone();
    exchange(&mut shape, keys);
    Cow::Owned(Workload { shape: BenchmarkParameters::Sql(shape), ..workload.clone() })
}

fn exchange(shape: &mut SqlShape, keys: (&str, &str)) {
    let events = shape.step.iter_mut().flat_map(|step| &mut step.event);
    for statement in events.flat_map(|event| &mut event.statement) {
        exchange_keys(&mut statement.sql, keys);
    }
    let load = shape.load.iter_mut();
    for said in load.flat_map(|load| [&mut load.schema, &mut load.index, &mut load.drop]).flatten()
    {
        exchange_keys(said, keys);
    }
}

fn exchange_keys<T>(said: &mut ByDialect<T>, (own, shared): (&str, &str)) {
    let ByDialect::Each(each) = said else { return };
    let Some(of_own) = each.remove(own) else { return };
    if let Some(of_shared) = each.insert(shared.to_owned(), of_own) {
        each.insert(own.to_owned(), of_shared);
    }
}

// Positions of keys in TOML text.

/// The position of the value at a path such as `step.0.event.1.name`. If the value is missing, it
/// is the position of the last part of the path that exists.
pub(super) fn of_path(text: &str, path: &str) -> TextPosition {
    let Ok(table) = DeTable::parse(text) else { return TextPosition::default() };
    let mut offset = 0;
    let root = DeValue::Table(table.get_ref().clone());
    let mut value = &root;
    for word in path.split('.') {
        let next = match value {
            DeValue::Table(table) => {
                let found = table.iter().find(|(key, _)| key.get_ref() == word);
                found.map(|(_, value)| value)
            }
            DeValue::Array(array) => word.parse().ok().and_then(|index: usize| array.get(index)),
            _ => None,
        };
        let Some(next) = next else { break };
        offset = next.span().start;
        value = next.get_ref();
    }
    toml_reader::position(text, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_the_place_of_its_value() {
        let text = "a = 1\n[[step]]\nname = \"x\"\n[[step]]\n  name = \"é\"\nother.b = 2\n";
        let check = |path: &str, line, column| {
            let found = of_path(text, path);
            assert_eq!((found.line, found.column), (line, column), "{path}");
        };
        check("a", 1, 5);
        check("step.0.name", 3, 8);
        check("step.1.name", 5, 10);
        check("step.1.other.b", 6, 11);
        check("step.1", 4, 1);
        check("step.1.missing", 4, 1);
    }
}
