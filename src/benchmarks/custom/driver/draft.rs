//! Drafts a workload file from the survey of a database, with comments for its editor.

use std::collections::BTreeMap;

use super::facts::{ColumnFacts, ColumnValues, DatabaseSurvey, TableFacts, TopStatement};
use super::statements::{StatementPart, ValueGuess, guesses, parts};
use crate::domain::dialect::Dialect;

/// Most tables with a step of their own if there are no statements.
const STEPS: usize = 12;

/// The text of a workload file. `from` names the database, without a password.
pub fn draft(dialect: Dialect, from: &str, found: &DatabaseSurvey) -> String {
    let mut draft = Draft { parameters: BTreeMap::new(), steps: String::new() };
    if !found.statements.is_empty() {
        draft.top_statements(found);
    }
    let keyed = found.tables.iter().filter(|table| table.rows > 0 && !table.key.is_empty());
    for table in keyed.take(if found.statements.is_empty() { STEPS } else { 0 }) {
        draft.by_key(table);
    }
    let mut text = head(dialect, from, found);
    for (name, (value, comment)) in &draft.parameters {
        text.push_str(&format!("{name} = {value}{comment}\n"));
    }
    if draft.steps.is_empty() {
        text.push_str("\n# No table has rows and a primary key: write your statements here.\n");
    }
    text + &draft.steps
}

fn head(dialect: Dialect, from: &str, found: &DatabaseSurvey) -> String {
    let mut text = format!(
        "# A workload for `rqps compare A B --bench sql:FILE`, drafted from {from}.\n\
         # docs/workloads.md explains every key. Edit the statements and their values.\n\
         #\n# Tables:\n"
    );
    for table in &found.tables {
        let bytes = table.bytes.map(crate::units::bytes);
        let bytes = bytes.map(|bytes| format!(", {bytes}")).unwrap_or_default();
        text.push_str(&format!("#   {}: about {} rows{bytes}\n", table.name, table.rows));
    }
    for note in &found.notes {
        let note = note.lines().next().unwrap_or_default();
        text.push_str(&format!("# {note}.\n"));
    }
    let dump = match dialect {
        Dialect::Postgres => "pg_dump --no-owner --no-privileges DATABASE > dump.sql",
        Dialect::Mysql => "mysqldump --no-tablespaces DATABASE > dump.sql",
        _ => "sqlite3 FILE .dump > dump.sql",
    };
    text.push_str(&format!(
        "\n# Builds that rqps starts need the data. Make a dump and remove the #:\n\
         #   {dump}\n# [load]\n# schema = [\"dump.sql\"]\n\n[parameter]\n"
    ));
    text
}

struct Draft {
    /// By name: the value, and a comment.
    parameters: BTreeMap<String, (String, String)>,
    steps: String,
}

impl Draft {
    /// One step per statement, and one that mixes them in the proportion of their calls.
    fn top_statements(&mut self, found: &DatabaseSurvey) {
        let mut mix = String::from("\n# All of them, as often as the server saw them.\n[[step]]\n");
        mix.push_str("name = \"mix\"\n");
        let most = found.statements.iter().map(|one| one.calls).max().unwrap_or(1).max(1);
        for (index, statement) in found.statements.iter().enumerate() {
            let number = index + 1;
            let sql = self.spell(number, statement, &found.tables);
            let TopStatement { calls, mean_ms, .. } = statement;
            self.steps.push_str(&format!(
                "\n# {calls} calls, {mean_ms:.3} ms each\n[[step]]\nname = \"top-{number}\"\n\
                 [[step.event]]\n[[step.event.statement]]\nsql = {sql}\n"
            ));
            let weight = (1000.0 * *calls as f64 / most as f64).ceil().max(1.0);
            mix.push_str(&format!(
                "[[step.event]]\nname = \"top-{number}\"\nweight = {weight}\n\
                 [[step.event.statement]]\nsql = {sql}\n"
            ));
        }
        if found.statements.len() > 1 {
            self.steps.push_str(&mix);
        }
    }

    /// The SQL with `:name` for its values, as TOML.
    fn spell(&mut self, number: usize, statement: &TopStatement, tables: &[TableFacts]) -> String {
        let guesses = guesses(statement, tables);
        let mut sql = String::new();
        for part in parts(&statement.sql) {
            match part {
                StatementPart::Sql(text) => sql.push_str(&text),
                StatementPart::Value(value) => {
                    let name = format!("s{number}_{}", value + 1);
                    let type_name = statement.types.get(value).map_or("", String::as_str);
                    let guess = guesses.get(value).unwrap_or(&ValueGuess::Unknown);
                    let drawn = self::value(guess, type_name, tables);
                    self.parameters.insert(name.clone(), drawn);
                    sql.push_str(&format!(":{name}"));
                }
            }
        }
        quoted(&sql)
    }

    /// A statement by primary key.
    fn by_key(&mut self, table: &TableFacts) {
        let word: String = table
            .name
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
            .collect::<String>()
            .trim_matches('_')
            .to_lowercase();
        let mut conditions = Vec::new();
        let mut expect = "";
        for &column in table.key.iter().take(1) {
            let column = &table.columns[column];
            let name = format!("{word}_key");
            if table.key.len() == 1 && is_dense(column, table.rows) {
                expect = "expect.rows = 1\n";
            }
            let guess = of_column(
                &column.values,
                &column.type_name,
                &format!("{}.{}", table.name, column.name),
            );
            self.parameters.insert(name.clone(), guess);
            conditions.push(format!("{} = :{name}", column.name));
        }
        let sql = format!("SELECT * FROM {} WHERE {}", table.name, conditions.join(" AND "));
        self.steps.push_str(&format!(
            "\n[[step]]\nname = \"{}-by-key\"\n[[step.event]]\n[[step.event.statement]]\n\
             sql = {}\n{expect}",
            word.replace('_', "-"),
            quoted(&sql)
        ));
    }
}

/// True if every value between the smallest and the largest is there.
fn is_dense(column: &ColumnFacts, rows: u64) -> bool {
    match column.values {
        ColumnValues::Whole(least, most) => most.wrapping_sub(least) as u64 + 1 == rows,
        _ => false,
    }
}

/// A parameter for a value, and its comment.
fn value(guess: &ValueGuess, type_name: &str, tables: &[TableFacts]) -> (String, String) {
    match guess {
        ValueGuess::Column(table, column) => {
            let (table, column) = (&tables[*table], &tables[*table].columns[*column]);
            let name = format!("{}.{}", table.name, column.name);
            of_column(&column.values, &column.type_name, &name)
        }
        ValueGuess::Limit => {
            ("{ kind = \"list\", values = [10] }".to_owned(), "  # rows".to_owned())
        }
        ValueGuess::Unknown => unknown(type_name, "rqps cannot infer it"),
    }
}

fn of_column(values: &ColumnValues, type_name: &str, name: &str) -> (String, String) {
    let comment = format!("  # {name}, {type_name}");
    match values {
        ColumnValues::Whole(least, most) => {
            (format!("{{ kind = \"uniform\", from = {least}, to = {most} }}"), comment)
        }
        ColumnValues::Sample(texts) => {
            let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
            (format!("{{ kind = \"list\", values = [{}] }}", texts.join(", ")), comment)
        }
        ColumnValues::Unknown => unknown(type_name, &format!("{name} could not be read")),
    }
}

/// A parameter for a value whose column is unknown.
fn unknown(type_name: &str, why: &str) -> (String, String) {
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
    (value.to_owned(), format!("  # EDIT: {why}; {type_name}"))
}

/// A text of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}
