//! Parameters of a drafted workload: which values a statement gets, in the words of its file.

use std::collections::{BTreeMap, BTreeSet};

use super::keys::{self, PLENTY};
use super::ranges::{Meaning, RowOfValues, ValueGuess};
use super::statements::bare;
use super::survey::{
    ColumnFacts, ColumnValues, DatabaseSurvey, ForeignKey, TableFacts, TopStatement,
};
use rqps_model::escape;

/// Most values of a referenced column in the workload file itself. More have a file of their own.
const LISTED: usize = 20;

/// Parts of the numbers above the largest of a column. Each use takes its new values from another.
const SEQUENCES: u32 = 32;

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
    found: &'a DatabaseSurvey,
    tables: &'a [TableFacts],
    /// The workload file's name without its end; files beside it begin with it.
    stem: &'a str,
    /// Files of rows, by table and columns.
    files: BTreeMap<(usize, Vec<usize>), DraftFile>,
    /// Uses of columns of new numbers so far, by table and column.
    sequences: BTreeMap<(usize, usize), u32>,
    /// Columns whose new numbers the server gives in other statements.
    numbered: BTreeSet<(usize, usize)>,
}

/// The values of one statement.
pub(super) struct StatementValues<'a> {
    /// Its number in the file.
    pub(super) number: usize,
    pub(super) statement: &'a TopStatement,
    pub(super) meaning: &'a Meaning,
    /// Values that come from one row, each.
    pub(super) together: &'a [RowOfValues],
}

impl<'a> Parameters<'a> {
    pub(super) fn new(found: &'a DatabaseSurvey, stem: &'a str) -> Parameters<'a> {
        let (files, sequences) = (BTreeMap::new(), BTreeMap::new());
        let numbered = keys::numbered(found);
        Parameters { found, tables: &found.tables, stem, files, sequences, numbered }
    }

    /// The files that parameters read.
    pub(super) fn into_files(self) -> Vec<DraftFile> {
        self.files.into_values().collect()
    }

    /// The parameter for a value of a statement.
    pub(super) fn of(&mut self, values: &StatementValues<'_>, value: usize) -> Parameter {
        use ValueGuess::{Array, Column, Fixed, Member, Neutral, Pattern, Step, Stored, Year};
        let (found, tables) = (self.found, self.tables);
        let type_name = values.statement.types.get(value).map_or("", String::as_str);
        let seen = values.statement.seen.get(value).map(String::as_str);
        if let Some(drawn) = self.of_row(values, value) {
            return drawn;
        }
        match values.meaning.guesses.get(value).unwrap_or(&ValueGuess::Unknown) {
            Column(table, column) => {
                // Values of a list are drawn apart, those of other places have a row each.
                let label = format!("s{}-{value}", values.number);
                let drawn = if tables[*table].columns[*column].is_sparse {
                    self.of_rows(*table, &[*column], *column, &label)
                } else {
                    None
                };
                drawn.unwrap_or_else(|| of_facts(&tables[*table], *column))
            }
            Stored(table, column) => self.stored(values, value, (*table, *column), type_name),
            Pattern(table, column) => pattern(&tables[*table], *column, seen),
            Array(table, column) => array(&tables[*table], *column),
            Year(table, column) => year(&tables[*table], *column),
            Step(..) if is_number(type_name) || type_name.is_empty() => list("1", "a step"),
            Neutral(values) if fits(values, type_name) => {
                list(values, "the column would leave its bounds with another")
            }
            Member(table, column) => match found.members.get(&(*table, *column)) {
                Some(keys) if !keys.is_empty() && type_name == "text" => {
                    of_column(&ColumnValues::Sample(keys.clone()), type_name, "its members")
                }
                _ => list(if type_name == "integer" { "0" } else { "\"a\"" }, "a member"),
            },
            Fixed(values) if fits(values, type_name) => list(values, "assumed"),
            ValueGuess::Limit => list("10", "rows"),
            ValueGuess::Offset => list("0, 10", "rows to pass over"),
            _ => match found.labels.get(type_name) {
                Some(labels) => {
                    let labels = ColumnValues::Sample(labels.clone());
                    of_column(&labels, type_name, "EDIT: rqps cannot infer it")
                }
                None => unknown(type_name, "rqps cannot infer it"),
            },
        }
    }

    /// For a value that comes from a row with others.
    fn of_row(&mut self, values: &StatementValues<'_>, value: usize) -> Option<Parameter> {
        let is_of = |row: &&RowOfValues| row.columns.iter().any(|(_, number)| *number == value);
        let (place, row) = values.together.iter().enumerate().find(|(_, row)| is_of(row))?;
        let columns: Vec<usize> = row.columns.iter().map(|(column, _)| *column).collect();
        let (column, _) = row.columns.iter().find(|(_, number)| *number == value)?;
        let label = format!("s{}-r{place}", values.number);
        self.of_rows(row.table, &columns, *column, &label)
    }

    /// A column of rows of a table. `None` if none could be read.
    fn of_rows(
        &mut self,
        table: usize,
        columns: &[usize],
        column: usize,
        label: &str,
    ) -> Option<Parameter> {
        let found = self.found;
        let key = (table, columns.to_vec());
        let rows = found.rows.get(&key).filter(|rows| !rows.is_empty())?;
        Some(self.of_file((table, columns), rows, column, label))
    }

    /// A column of a row that a DELETE takes away: one that is there, or one with a new key.
    pub(super) fn of_deleted(
        &mut self,
        table: usize,
        (columns, is_new): (&[usize], bool),
        column: usize,
        label: &str,
    ) -> Option<Parameter> {
        if is_new && keys::must_be_new(&self.tables[table], column, columns) {
            Some(self.new_value((table, column), (0, 1)))
        } else {
            self.of_rows(table, columns, column, label)
        }
    }

    /// For a value that is stored in a column: foreign keys and unique indexes must allow it.
    fn stored(
        &mut self,
        values: &StatementValues<'_>,
        value: usize,
        (number, column): (usize, usize),
        type_name: &str,
    ) -> Parameter {
        let guesses = &values.meaning.guesses;
        let tables = self.tables;
        let table = &tables[number];
        let facts = &table.columns[column];
        let stored: Vec<usize> = guesses
            .iter()
            .filter_map(|guess| match guess {
                ValueGuess::Stored(other, column) if *other == number => Some(*column),
                _ => None,
            })
            .collect();
        // Each row of an INSERT of several has a parent and a key of its own.
        let is_same = |guess: &&ValueGuess| **guess == ValueGuess::Stored(number, column);
        let row = guesses[..value].iter().filter(is_same).count();
        if let Some((place, key)) = keys::reference_of(table, column, &stored) {
            let label = format!("s{}-{place}-{row}", values.number);
            return self.referenced(key, facts, column, &label);
        }
        if keys::must_be_new(table, column, &stored) {
            let rows = guesses.iter().filter(is_same).count();
            return self.new_value((number, column), (row, rows));
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
            return if facts.is_nullable {
                null(&of)
            } else {
                unknown(&facts.type_name, &format!("{of} could not be read"))
            };
        }
        self.of_file((key.table, &key.referenced), &key.sample, referenced, label)
    }

    /// For a column of rows, which stand in a file.
    fn of_file(
        &mut self,
        (table, columns): (usize, &[usize]),
        rows: &[Vec<String>],
        column: usize,
        label: &str,
    ) -> Parameter {
        let facts = &self.tables[table];
        let count = self.files.len() + 1;
        let entry = self.files.entry((table, columns.to_vec()));
        let file = entry.or_insert_with(|| {
            let word: String = bare(&facts.name)
                .chars()
                .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
                .collect();
            let header = columns.iter().map(|column| bare(&facts.columns[*column].name));
            let mut text = csv_line(header);
            for row in rows {
                text.push_str(&csv_line(row.iter().map(String::as_str)));
            }
            DraftFile { name: format!("{}-keys-{count}-{word}.csv", self.stem), text }
        });
        let (file, header) = (quoted(&file.name), quoted(bare(&facts.columns[column].name)));
        let value =
            format!("{{ kind = \"file\", csv = {file}, column = {header}, row = \"{label}\" }}");
        Parameter::new(value, format!("  # rows of {}", name(facts, column)))
    }

    /// For a column of a unique index in new rows: the row of this number of so many.
    fn new_value(
        &mut self,
        (table, column): (usize, usize),
        (row, rows): (usize, usize),
    ) -> Parameter {
        let tables = self.tables;
        let facts = &tables[table].columns[column];
        let of = name(&tables[table], column);
        let comment = format!("  # new values of {of}");
        if facts.is_whole() {
            let bounds = match facts.values {
                ColumnValues::Whole(least, most) => Some((least.min(0), most)),
                _ => Some((0, 0)).filter(|_| tables[table].rows == 0),
            };
            let Some((least, most)) = bounds else {
                return unknown(&facts.type_name, &format!("{of} must be new"));
            };
            let is_signed = !facts.type_name.contains("unsigned");
            let (begin, room) = if is_signed && self.numbered.contains(&(table, column)) {
                // Those above zero are the server's.
                let room = facts.most_of_type().saturating_add(least).min(NEW_NUMBERS);
                (least - room, room)
            } else {
                (most.saturating_add(1), facts.new_values().min(NEW_NUMBERS))
            };
            let uses = self.sequences.entry((table, column)).or_default();
            // All rows of a statement share its part.
            let part = (room / i64::from(SEQUENCES)).max(rows as i64);
            let parts = (room / part).max(1);
            let from = begin + i64::from(*uses) % parts * part;
            *uses += u32::from(row + 1 == rows);
            let own = part / rows as i64;
            if room > part {
                let (from, to) = (from + row as i64 * own, from + (row as i64 + 1) * own - 1);
                let wrap = if facts.new_values() < PLENTY { ", wrap = true" } else { "" };
                let value = format!("{{ kind = \"sequential\", from = {from}, to = {to}{wrap} }}");
                return Parameter { value, comment, is_sequence: true };
            }
        }
        let lower = facts.type_name.to_lowercase();
        let value = match lower.as_str() {
            _ if facts.is_text() => {
                let length = facts.longest.map_or(NEW_TEXT, |longest| longest.min(NEW_TEXT));
                format!("{{ kind = \"text\", length = {length} }}")
            }
            name if name.starts_with("timestamp") || name == "datetime" => {
                "{ kind = \"timestamp\", from = \"2030-01-01\", to = \"2037-12-31\" }".to_owned()
            }
            "date" => "{ kind = \"date\", from = \"2030-01-01\", to = \"9999-12-31\" }".to_owned(),
            "uuid" => "{ kind = \"text\", template = \"########-####-4###-8###-############\" }"
                .to_owned(),
            _ => return unknown(&facts.type_name, &format!("{of} must be new")),
        };
        Parameter::new(value, comment)
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

/// A parameter that is one of these values.
fn list(values: &str, comment: &str) -> Parameter {
    let value = format!("{{ kind = \"list\", values = [{values}] }}");
    Parameter::new(value, format!("  # {comment}"))
}

/// Values of a column as texts; some of them.
fn texts(facts: &ColumnFacts) -> Vec<String> {
    match &facts.values {
        ColumnValues::Whole(least, most) => {
            // Spread evenly: a draft of the same database is the same.
            let step = (most.saturating_sub(*least) / 50).max(1);
            (0..50)
                .map(|at| least.saturating_add(at * step))
                .filter(|it| it <= most)
                .map(|number| number.to_string())
                .collect()
        }
        ColumnValues::Sample(texts) => texts.clone(),
        ColumnValues::Unknown => Vec::new(),
    }
}

/// Patterns that match values of a column: with wildcards where the statement had them, else at the
/// end.
fn pattern(table: &TableFacts, column: usize, seen: Option<&str>) -> Parameter {
    let facts = &table.columns[column];
    let inside = seen.map(|text| text.trim_matches(['\'', '"']));
    let begins = inside.is_some_and(|text| text.starts_with('%'));
    let ends = inside.is_none_or(|text| text.ends_with('%'));
    let is_plain = |letter: &char| !"%_\\".contains(*letter);
    let of_text = |text: &String| -> String {
        let skipped = usize::from(begins && text.chars().count() > 4);
        let part = text.chars().skip(skipped).take_while(is_plain);
        let part: String = if begins || ends { part.take(3).collect() } else { part.collect() };
        format!("{}{part}{}", if begins { "%" } else { "" }, if ends { "%" } else { "" })
    };
    let mut patterns: Vec<String> = texts(facts).iter().map(of_text).collect();
    patterns.sort_unstable();
    patterns.dedup();
    let name = name(table, column);
    if patterns.is_empty() {
        let is_plain = |letter: char| letter.is_alphanumeric() || " %_-".contains(letter);
        return match inside.filter(|inside| inside.chars().all(is_plain)) {
            Some(sent) => {
                list(&quoted(sent), &format!("as it was sent; {name} has no short values"))
            }
            None => list("\"a%\"", &format!("EDIT: no value of {name} is known")),
        };
    }
    let of = format!("{} of {name}", if begins { "parts" } else { "beginnings" });
    of_column(&ColumnValues::Sample(patterns), &facts.type_name, &of)
}

/// Arrays of values of a column.
fn array(table: &TableFacts, column: usize) -> Parameter {
    let facts = &table.columns[column];
    let item = |text: &String| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    let items: Vec<String> = texts(facts).iter().map(item).collect();
    let (count, last) = (items.len().clamp(1, LISTED), items.len().saturating_sub(1));
    // Each array begins at another value.
    let of = |first: usize| {
        let picked =
            (0..10.min(items.len())).map(|at| items[(first + at * 7) % (last + 1)].clone());
        let mut picked: Vec<String> = picked.collect();
        picked.sort_unstable();
        picked.dedup();
        format!("{{{}}}", picked.join(","))
    };
    let arrays = (0..count).map(of).collect();
    let of = format!("arrays of {}", name(table, column));
    of_column(&ColumnValues::Sample(arrays), &facts.type_name, &of)
}

/// Years of a column.
fn year(table: &TableFacts, column: usize) -> Parameter {
    let year = |text: &String| text.get(..4)?.parse::<u32>().ok().map(|year| year.to_string());
    let mut years: Vec<String> = texts(&table.columns[column]).iter().filter_map(year).collect();
    years.sort_unstable();
    years.dedup();
    if years.is_empty() {
        years.push("2024".to_owned());
    }
    list(&years.join(", "), &format!("years of {}", name(table, column)))
}

fn is_number(type_name: &str) -> bool {
    let name = type_name.to_lowercase();
    let is_whole = name.contains("int") && !name.starts_with("interval") && !name.contains("point");
    is_whole
        || ["numeric", "real", "double precision", "decimal", "float", "double"]
            .contains(&name.as_str())
}

/// True if values, as TOML, are of a type; on MySQL nothing tells the type.
fn fits(values: &str, type_name: &str) -> bool {
    let is_text = values.starts_with('"');
    match type_name {
        "" | "text" | "character varying" | "character" | "name" | "interval" => true,
        "uuid" | "inet" | "cidr" | "boolean" => false,
        name if name == "date" || name.starts_with("time") => values.starts_with("\"20"),
        name if name.ends_with("[]") || name.starts_with("json") => values == "\"{}\"",
        "tsquery" | "tsvector" | "regconfig" | "bytea" => is_text && values != "\"{}\"",
        name => is_number(name) && !is_text,
    }
}

/// A parameter for a value whose column is unknown.
fn unknown(type_name: &str, why: &str) -> Parameter {
    let lower = type_name.to_lowercase();
    let value = match lower.as_str() {
        name if name.ends_with("[]") => "{ kind = \"list\", values = [\"{}\"] }",
        name if name.starts_with("interval") => "{ kind = \"list\", values = [\"1 day\"] }",
        name if name.starts_with("timestamp") || name == "datetime" => {
            "{ kind = \"timestamp\", from = \"2024-01-01\", to = \"2024-12-31\" }"
        }
        name if name.starts_with("time") => "{ kind = \"list\", values = [\"12:00\"] }",
        "date" => "{ kind = \"date\", from = \"2024-01-01\", to = \"2024-12-31\" }",
        "boolean" => "{ kind = \"list\", values = [\"true\", \"false\"] }",
        "json" | "jsonb" => "{ kind = \"list\", values = [\"{}\"] }",
        "uuid" => "{ kind = \"text\", template = \"########-####-4###-8###-############\" }",
        "inet" | "cidr" => "{ kind = \"list\", values = [\"127.0.0.1\"] }",
        "macaddr" => "{ kind = \"list\", values = [\"08:00:2b:01:02:03\"] }",
        name if name.ends_with("multirange") => "{ kind = \"list\", values = [\"{}\"] }",
        name if name.ends_with("range") => "{ kind = \"list\", values = [\"empty\"] }",
        "point" => "{ kind = \"list\", values = [\"(0,0)\"] }",
        "box" | "lseg" | "path" => "{ kind = \"list\", values = [\"((1,1),(0,0))\"] }",
        "polygon" => "{ kind = \"list\", values = [\"((0,0),(1,1),(1,0))\"] }",
        "circle" => "{ kind = \"list\", values = [\"<(0,0),1>\"] }",
        "line" => "{ kind = \"list\", values = [\"{1,-1,0}\"] }",
        "jsonpath" => "{ kind = \"list\", values = [\"$\"] }",
        "regconfig" => "{ kind = \"list\", values = [\"simple\"] }",
        "regclass" => "{ kind = \"list\", values = [\"pg_class\"] }",
        "pg_lsn" => "{ kind = \"list\", values = [\"0/0\"] }",
        name if is_number(name) && name.contains("int") => {
            "{ kind = \"uniform\", from = 1, to = 1000 }"
        }
        name if is_number(name) => "{ kind = \"float\", from = 0, to = 1000 }",
        _ => "{ kind = \"list\", values = [\"1\"] }",
    };
    Parameter::new(value.to_owned(), format!("  # EDIT: {why}; {type_name}"))
}

/// A text of TOML. An editor shows all of it.
pub(super) fn quoted(text: &str) -> String {
    if text.lines().any(|line| escape::line(line) != line) {
        escape::toml(text)
    } else {
        toml::Value::String(text.to_owned()).to_string()
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
        let found = DatabaseSurvey { tables: tables(), ..DatabaseSurvey::default() };
        let mut parameters = Parameters::new(&found, "shop");
        let guesses = (0..6).map(|column| ValueGuess::Stored(1, column)).collect();
        let (meaning, statement) = (Meaning { guesses, rows: Vec::new() }, TopStatement::default());
        let mut of = |number| -> Vec<String> {
            let (statement, meaning) = (&statement, &meaning);
            let values = StatementValues { number, statement, meaning, together: &[] };
            (0..6).map(|value| parameters.of(&values, value).value).collect()
        };
        let file = |column: &str, number: u32| {
            format!(
                "{{ kind = \"file\", csv = \"shop-keys-1-shelf.csv\", column = \"{column}\", \
                 row = \"s{number}-0-0\" }}"
            )
        };
        let earlier = "{ kind = \"uniform\", from = 1, to = 70 }";
        let none = "{ kind = \"list\", values = [\"1\"], null = 1.0 }";
        let inserted = of(1);
        assert_eq!(inserted[0], "{ kind = \"sequential\", from = 71, to = 31250070 }");
        assert_eq!(inserted[1..3], [file("room", 1), file("place", 1)]);
        assert_eq!(inserted[3], "{ kind = \"text\", length = 13 }");
        assert_eq!(inserted[4..], [earlier, none]);
        let second = of(2);
        assert_eq!(second[0], "{ kind = \"sequential\", from = 31250071, to = 62500070 }");
        // Where the server numbers rows of another statement, new numbers are not among its own.
        parameters.numbered.insert((1, 0));
        let (statement, meaning) = (&statement, &meaning);
        let values = StatementValues { number: 3, statement, meaning, together: &[] };
        let third = parameters.of(&values, 0);
        assert_eq!(third.value, "{ kind = \"sequential\", from = -937500000, to = -906250001 }");
        assert_eq!(second[1], file("room", 2));
        let files = parameters.into_files();
        let text = "\"room\",\"place\"\n\"1\",\"40\"\n\"9\",\"a\"\"b\"\n".to_owned();
        assert_eq!(files, [DraftFile { name: "shop-keys-1-shelf.csv".to_owned(), text }]);
    }

    #[test]
    fn a_pattern_has_the_wildcards_that_were_sent() {
        let texts = ColumnValues::Sample(vec!["Title 12".to_owned()]);
        let columns =
            vec![column("title", "text", texts), column("body", "", ColumnValues::Unknown)];
        let table = TableFacts { name: "post".to_owned(), columns, ..TableFacts::default() };
        let check = |column, seen, wanted: &str, comment: &str| {
            let found = pattern(&table, column, seen);
            assert!(found.value.contains(&format!("[{wanted}]")), "{}", found.value);
            assert!(found.comment.contains(comment), "{}", found.comment);
        };
        check(0, Some("'Title 1%'"), "\"Tit%\"", "beginnings of post.title");
        check(0, Some("'%itl%'"), "\"%itl%\"", "parts of post.title");
        check(0, None, "\"Tit%\"", "beginnings");
        check(1, Some("'%tex%'"), "\"%tex%\"", "as it was sent");
        check(1, Some("'a\\'b%'"), "\"a%\"", "EDIT:");
        check(1, None, "\"a%\"", "EDIT:");
    }

    #[test]
    fn a_value_is_of_the_type_that_the_server_tells() {
        let labels = BTreeMap::from([("public.rating".to_owned(), vec!["PG".to_owned()])]);
        let found = DatabaseSurvey { labels, ..DatabaseSurvey::default() };
        let of = |guess: ValueGuess, type_name: &str| {
            let statement =
                TopStatement { types: vec![type_name.to_owned()], ..TopStatement::default() };
            let meaning = Meaning { guesses: vec![guess], ..Meaning::default() };
            let (statement, meaning) = (&statement, &meaning);
            let values = StatementValues { number: 1, statement, meaning, together: &[] };
            Parameters::new(&found, "shop").of(&values, 0).value
        };
        for (guess, type_name, want) in [
            (ValueGuess::Fixed("1"), "integer", "values = [1]"),
            (ValueGuess::Fixed("1"), "date", "kind = \"date\""),
            (ValueGuess::Fixed("\"2024-01-01\""), "date", "values = [\"2024-01-01\"]"),
            (ValueGuess::Fixed("\"{}\""), "tsrange", "values = [\"empty\"]"),
            (ValueGuess::Fixed("\"{}\""), "text[]", "values = [\"{}\"]"),
            (ValueGuess::Fixed("\"month\""), "text", "values = [\"month\"]"),
            (ValueGuess::Unknown, "public.rating", "values = [\"PG\"]"),
            (ValueGuess::Unknown, "box", "values = [\"((1,1),(0,0))\"]"),
            (ValueGuess::Neutral("1"), "numeric", "values = [1]"),
        ] {
            let value = of(guess.clone(), type_name);
            assert!(value.contains(want), "{guess:?} {type_name}: {value}");
        }
    }

    #[test]
    fn a_key_is_added_to_a_value() {
        let list = Parameter::new("{ kind = \"client\" }".to_owned(), String::new());
        assert_eq!(list.with("count = 10").value, "{ kind = \"client\", count = 10 }");
    }
}
