//! Parameters of a drafted workload: which values a statement gets, in the words of its file.

use std::collections::BTreeMap;

use super::facts::{ColumnFacts, ColumnValues, ForeignKey, TableFacts};
use super::keys;
use super::names::bare;
use super::statements::ValueGuess;
use crate::escape;

/// Most values of a referenced column in the workload file itself. More have a file of their own.
const LISTED: usize = 20;

/// Parts of the numbers above the largest of a column. Each use takes its new values from another.
const SEQUENCES: u32 = 16;

/// Most numbers above the largest that new rows take.
const NEW_NUMBERS: i64 = 1_000_000_000;

/// Most characters of new texts.
const NEW_TEXT: u32 = 20;

/// A parameter: its value in TOML, and a comment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parameter {
    pub(super) value: String,
    pub(super) comment: String,
    /// True if each use of the column needs a parameter of its own.
    pub(super) is_sequence: bool,
}

impl Parameter {
    pub(super) fn new(value: String, comment: String) -> Parameter {
        Parameter { value, comment, is_sequence: false }
    }

    /// With one more key.
    pub(super) fn with(self, key: &str) -> Parameter {
        let value = format!("{}, {key} }}", self.value.trim_end_matches(" }"));
        Parameter { value, ..self }
    }
}

/// A file beside the workload file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftFile {
    /// Its name.
    pub name: String,
    /// Its content.
    pub text: String,
}

/// Makes parameters for the values of one database.
pub(super) struct Parameters<'a> {
    tables: &'a [TableFacts],
    /// The workload file's name without its end; files beside it begin with it.
    stem: &'a str,
    /// Files of referenced columns, by table and columns.
    files: BTreeMap<(usize, Vec<usize>), DraftFile>,
    /// Uses of columns of new numbers so far, by table and column.
    sequences: BTreeMap<(usize, usize), u32>,
}

/// The values of one statement.
pub(super) struct StatementValues<'a> {
    /// Its number in the file.
    pub(super) number: usize,
    pub(super) is_insert: bool,
    pub(super) guesses: &'a [ValueGuess],
    pub(super) types: &'a [String],
}

impl<'a> Parameters<'a> {
    pub(super) fn new(tables: &'a [TableFacts], stem: &'a str) -> Parameters<'a> {
        Parameters { tables, stem, files: BTreeMap::new(), sequences: BTreeMap::new() }
    }

    /// The files that parameters read.
    pub(super) fn into_files(self) -> Vec<DraftFile> {
        self.files.into_values().collect()
    }

    /// The parameter for a value of a statement.
    pub(super) fn of(&mut self, statement: &StatementValues<'_>, value: usize) -> Parameter {
        let type_name = statement.types.get(value).map_or("", String::as_str);
        match statement.guesses.get(value).unwrap_or(&ValueGuess::Unknown) {
            ValueGuess::Column(table, column) => of_facts(&self.tables[*table], *column),
            ValueGuess::Stored(table, column) => {
                self.stored(statement, value, (*table, *column), type_name)
            }
            ValueGuess::Limit => Parameter::new(
                "{ kind = \"list\", values = [10] }".to_owned(),
                "  # rows".to_owned(),
            ),
            ValueGuess::Unknown => unknown(type_name, "rqps cannot infer it"),
        }
    }

    /// For a value that is stored in a column: foreign keys and unique indexes must allow it.
    fn stored(
        &mut self,
        statement: &StatementValues<'_>,
        value: usize,
        (number, column): (usize, usize),
        type_name: &str,
    ) -> Parameter {
        let tables = self.tables;
        let table = &tables[number];
        let facts = &table.columns[column];
        let stored: Vec<usize> = statement
            .guesses
            .iter()
            .filter_map(|guess| match guess {
                ValueGuess::Stored(other, column) if *other == number => Some(*column),
                _ => None,
            })
            .collect();
        if let Some((place, key)) = keys::reference_of(table, column, &stored) {
            // Each row of an INSERT of several has a parent of its own.
            let before = &statement.guesses[..value];
            let is_same = |guess: &&ValueGuess| **guess == ValueGuess::Stored(number, column);
            let row = before.iter().filter(is_same).count();
            let label = format!("s{}-{place}-{row}", statement.number);
            return self.referenced(key, facts, column, &label);
        }
        if statement.is_insert && keys::must_be_new(table, column, &stored) {
            return self.new_value((number, column));
        }
        match facts.values {
            ColumnValues::Unknown if facts.is_nullable => null(&name(table, column)),
            ColumnValues::Unknown => {
                let known = if type_name.is_empty() { facts.type_name.as_str() } else { type_name };
                unknown(known, &format!("{} could not be read", name(table, column)))
            }
            _ => of_facts(table, column),
        }
    }

    /// For a column that references another.
    fn referenced(
        &mut self,
        key: &ForeignKey,
        facts: &ColumnFacts,
        column: usize,
        label: &str,
    ) -> Parameter {
        let tables = self.tables;
        let parent = &tables[key.table];
        let place = key.columns.iter().position(|own| *own == column).unwrap_or_default();
        let referenced = key.referenced[place];
        let of = name(parent, referenced);
        if let Some(values) = keys::few_values(key, tables, LISTED) {
            return of_column(&values, &parent.columns[referenced].type_name, &of);
        }
        if key.sample.is_empty() {
            return match facts.is_nullable {
                true => null(&of),
                false => unknown(&facts.type_name, &format!("{of} could not be read")),
            };
        }
        let file = self.file_of(key);
        let header = bare(&parent.columns[referenced].name);
        let (file, header) = (quoted(file), quoted(header));
        let value =
            format!("{{ kind = \"file\", csv = {file}, column = {header}, row = \"{label}\" }}");
        Parameter::new(value, format!("  # rows of {of}"))
    }

    /// The name of the file with rows of what `key` references.
    fn file_of(&mut self, key: &ForeignKey) -> &str {
        let tables = self.tables;
        let parent = &tables[key.table];
        let count = self.files.len() + 1;
        let entry = self.files.entry((key.table, key.referenced.clone()));
        let file = entry.or_insert_with(|| {
            let word: String = bare(&parent.name)
                .chars()
                .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
                .collect();
            let header = key.referenced.iter().map(|column| bare(&parent.columns[*column].name));
            let mut text = csv_line(header);
            for row in &key.sample {
                text.push_str(&csv_line(row.iter().map(String::as_str)));
            }
            DraftFile { name: format!("{}-keys-{count}-{word}.csv", self.stem), text }
        });
        &file.name
    }

    /// For a column of a unique index in new rows.
    fn new_value(&mut self, (table, column): (usize, usize)) -> Parameter {
        let tables = self.tables;
        let facts = &tables[table].columns[column];
        let of = name(&tables[table], column);
        if facts.is_whole() {
            let most = match facts.values {
                ColumnValues::Whole(_, most) => Some(most),
                _ => Some(0).filter(|_| tables[table].rows == 0),
            };
            let Some(most) = most else {
                return unknown(&facts.type_name, &format!("{of} must be new"));
            };
            let room = facts.most_of_type().saturating_sub(most).min(NEW_NUMBERS);
            let part = room / i64::from(SEQUENCES);
            let uses = self.sequences.entry((table, column)).or_default();
            let from = most.saturating_add(1) + i64::from(*uses % SEQUENCES) * part;
            *uses += 1;
            if part > 0 {
                let to = from + part - 1;
                let value = format!("{{ kind = \"sequential\", from = {from}, to = {to} }}");
                let comment = format!("  # new values of {of}");
                return Parameter { value, comment, is_sequence: true };
            }
        }
        if facts.is_text() {
            let length = facts.longest.map_or(NEW_TEXT, |longest| longest.min(NEW_TEXT));
            let value = format!("{{ kind = \"text\", length = {length} }}");
            return Parameter::new(value, format!("  # new values of {of}"));
        }
        unknown(&facts.type_name, &format!("{of} must be new"))
    }
}

pub(super) fn name(table: &TableFacts, column: usize) -> String {
    format!("{}.{}", table.name, table.columns[column].name)
}

/// For a column by its own values.
pub(super) fn of_facts(table: &TableFacts, column: usize) -> Parameter {
    let facts = &table.columns[column];
    of_column(&facts.values, &facts.type_name, &name(table, column))
}

fn of_column(values: &ColumnValues, type_name: &str, name: &str) -> Parameter {
    let comment = format!("  # {name}, {type_name}");
    match values {
        ColumnValues::Whole(least, most) => {
            let value = format!("{{ kind = \"uniform\", from = {least}, to = {most} }}");
            Parameter::new(value, comment)
        }
        ColumnValues::Sample(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            let value = format!("{{ kind = \"list\", values = [{}] }}", texts.join(", "));
            Parameter::new(value, comment)
        }
        ColumnValues::Unknown => unknown(type_name, &format!("{name} could not be read")),
    }
}

/// For a column of which no value is known.
fn null(name: &str) -> Parameter {
    let value = "{ kind = \"list\", values = [\"1\"], null = 1.0 }".to_owned();
    Parameter::new(value, format!("  # NULL: {name} has no values"))
}

/// A parameter for a value whose column is unknown.
fn unknown(type_name: &str, why: &str) -> Parameter {
    let lower = type_name.to_lowercase();
    let value = match lower.as_str() {
        name if name.contains("int") && name != "interval" => {
            "{ kind = \"uniform\", from = 1, to = 1000 }"
        }
        name if name.starts_with("timestamp") => {
            "{ kind = \"timestamp\", from = \"2024-01-01\", to = \"2024-12-31\" }"
        }
        "date" => "{ kind = \"date\", from = \"2024-01-01\", to = \"2024-12-31\" }",
        "numeric" | "real" | "double precision" | "decimal" | "float" | "double" => {
            "{ kind = \"float\", from = 0, to = 1000 }"
        }
        "boolean" => "{ kind = \"list\", values = [\"true\", \"false\"] }",
        _ => "{ kind = \"list\", values = [\"1\"] }",
    };
    Parameter::new(value.to_owned(), format!("  # EDIT: {why}; {type_name}"))
}

/// A text of TOML. An editor shows all of it.
pub(super) fn quoted(text: &str) -> String {
    match text.lines().any(|line| escape::line(line) != line) {
        true => escape::toml(text),
        false => toml::Value::String(text.to_owned()).to_string(),
    }
}

/// A line of CSV, all fields in quotes.
pub(super) fn csv_line<'a>(fields: impl Iterator<Item = &'a str>) -> String {
    let fields: Vec<String> =
        fields.map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
    fields.join(",") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(name: &str, type_name: &str, values: ColumnValues) -> ColumnFacts {
        let (name, type_name) = (name.to_owned(), type_name.to_owned());
        ColumnFacts { name, type_name, values, ..ColumnFacts::default() }
    }

    /// Shelves with a key of two columns, and books on them that follow an earlier book.
    fn tables() -> Vec<TableFacts> {
        let whole = |name: &str, most| column(name, "integer", ColumnValues::Whole(1, most));
        let shelf = TableFacts {
            name: "shelf".to_owned(),
            rows: 90,
            columns: vec![whole("room", 9), whole("place", 40)],
            key: vec![0, 1],
            unique: vec![vec![0, 1]],
            ..TableFacts::default()
        };
        let texts = ColumnValues::Sample(vec!["a".to_owned()]);
        let columns = vec![
            ColumnFacts { is_dense: true, ..whole("id", 70) },
            whole("room", 9),
            whole("place", 40),
            ColumnFacts { longest: Some(13), ..column("isbn", "character", texts) },
            column("earlier", "integer", ColumnValues::Whole(3, 60)),
            ColumnFacts { is_nullable: true, ..column("note", "jsonb", ColumnValues::Unknown) },
        ];
        let rows = |rows: &[[&str; 2]]| -> Vec<Vec<String>> {
            rows.iter().map(|row| row.map(str::to_owned).to_vec()).collect()
        };
        let to_shelf = ForeignKey {
            columns: vec![1, 2],
            table: 0,
            referenced: vec![0, 1],
            sample: rows(&[["1", "40"], ["9", "a\"b"]]),
        };
        let to_itself =
            ForeignKey { columns: vec![4], table: 1, referenced: vec![0], sample: Vec::new() };
        let book = TableFacts {
            name: "book".to_owned(),
            rows: 70,
            columns,
            key: vec![0],
            unique: vec![vec![0], vec![3]],
            references: vec![to_shelf, to_itself],
            ..TableFacts::default()
        };
        vec![shelf, book]
    }

    #[test]
    fn stored_values_heed_foreign_keys_and_unique_indexes() {
        let tables = tables();
        let mut parameters = Parameters::new(&tables, "shop");
        let guesses: Vec<ValueGuess> = (0..6).map(|column| ValueGuess::Stored(1, column)).collect();
        let mut of = |number, is_insert| -> Vec<String> {
            let statement = StatementValues { number, is_insert, guesses: &guesses, types: &[] };
            (0..6).map(|value| parameters.of(&statement, value).value).collect()
        };
        let file = |column: &str, number: u32| {
            format!(
                "{{ kind = \"file\", csv = \"shop-keys-1-shelf.csv\", column = \"{column}\", \
                 row = \"s{number}-0-0\" }}"
            )
        };
        let earlier = "{ kind = \"uniform\", from = 1, to = 70 }";
        let none = "{ kind = \"list\", values = [\"1\"], null = 1.0 }";
        let inserted = of(1, true);
        assert_eq!(inserted[0], "{ kind = \"sequential\", from = 71, to = 62500070 }");
        assert_eq!(inserted[1..3], [file("room", 1), file("place", 1)]);
        assert_eq!(inserted[3], "{ kind = \"text\", length = 13 }");
        assert_eq!(inserted[4..], [earlier, none]);
        assert_eq!(of(2, true)[0], "{ kind = \"sequential\", from = 62500071, to = 125000070 }");
        let updated = of(3, false);
        assert_eq!(updated[0], "{ kind = \"uniform\", from = 1, to = 70 }");
        assert_eq!(updated[1], file("room", 3));
        assert_eq!(updated[3], "{ kind = \"list\", values = [\"a\"] }");
        let files = parameters.into_files();
        let text = "\"room\",\"place\"\n\"1\",\"40\"\n\"9\",\"a\"\"b\"\n".to_owned();
        assert_eq!(files, [DraftFile { name: "shop-keys-1-shelf.csv".to_owned(), text }]);
    }

    #[test]
    fn a_key_is_added_to_a_value() {
        let list = Parameter::new("{ kind = \"client\" }".to_owned(), String::new());
        assert_eq!(list.with("count = 10").value, "{ kind = \"client\", count = 10 }");
    }
}
