//! Drafts a workload file from the survey of a running database, with comments for its editor.

mod digests;
mod keys;
mod operands;
mod parameters;
mod ranges;
mod statements;
mod survey;
mod written;

use std::collections::{BTreeMap, BTreeSet};

use self::keys::{must_be_new, reference_of};
pub use self::parameters::DraftFile;
use self::parameters::{Parameter, Parameters, StatementValues, of_facts, quoted};
use self::ranges::{Meaning, Ranges, RowOfValues, ValueGuess, ranges};
use self::statements::{NodeKind, OWN, TokenTree, bare, meaning, mentions};
pub use self::survey::{AskDatabase, DatabaseSurvey, survey};
use self::survey::{TableFacts, TopStatement};
use rqps_model::dialect::Dialect;
use rqps_model::escape;

/// Most tables with a step of their own if there are no statements.
const STEPS: usize = 12;

/// Characters of a step's name at most, but for its number.
const NAME_MOST: usize = 60;

/// Values in the place of an abbreviated list.
const LIST: u32 = 10;

/// The text of a workload file, and files beside it that it reads. `from` names the database,
/// without a password; `stem` is the name of the workload file without its end, `dump` that of a
/// dump beside it, if there is one.
pub fn draft(
    dialect: Dialect,
    from: &str,
    stem: &str,
    found: &DatabaseSurvey,
    dump: Option<&str>,
) -> (String, Vec<DraftFile>) {
    let mut draft = Draft {
        dialect,
        found,
        tables: &found.tables,
        values: Parameters::new(found, stem),
        ranges: Ranges::new(&found.tables, stem),
        parameters: BTreeMap::new(),
        words: BTreeSet::new(),
        steps: String::new(),
    };
    if !found.statements.is_empty() {
        draft.top_statements(&found.statements);
    }
    let keyed = found.tables.iter().filter(|table| table.rows > 0 && !table.key.is_empty());
    for table in keyed.take(if found.statements.is_empty() { STEPS } else { 0 }) {
        draft.by_key(table);
    }
    let mut text = head(from, found) + &load(dialect, found, dump) + "\n[parameter]\n";
    for (name, Parameter { value, comment, .. }) in &draft.parameters {
        text.push_str(&format!("{name} = {value}{}\n", escape::line(comment)));
    }
    if draft.steps.is_empty() {
        text.push_str("\n# No table has rows and a primary key: write your statements here.\n");
    }
    let files = draft.values.into_files().into_iter().chain(draft.ranges.into_files());
    (text + &draft.steps, files.collect())
}

fn head(from: &str, found: &DatabaseSurvey) -> String {
    let mut text = format!(
        "# A workload for `rqps compare A B --bench sql:FILE`, drafted from {}.\n\
         # docs/workloads.md explains every key. Edit the statements and their values.\n\
         #\n# Tables:\n",
        escape::line(from)
    );
    for table in found.tables.iter().filter(|table| !table.is_view) {
        let bytes = table.bytes.map(rqps_model::units::bytes);
        let bytes = bytes.map(|bytes| format!(", {bytes}")).unwrap_or_default();
        let referenced: BTreeSet<&str> =
            table.references.iter().map(|key| found.tables[key.table].name.as_str()).collect();
        let referenced = if referenced.is_empty() {
            String::new()
        } else {
            format!(", references {}", Vec::from_iter(referenced).join(" and "))
        };
        let TableFacts { name, rows, .. } = table;
        let about = format!("{name}: about {rows} rows{bytes}{referenced}");
        text.push_str(&format!("#   {}\n", escape::line(&about)));
    }
    for note in found.notes.iter().chain(&found.left_out) {
        let note = note.lines().next().unwrap_or_default();
        text.push_str(&format!("# {}.\n", escape::line(note)));
    }
    text
}

/// Where the rows are from, and how they come to servers given by a DSN.
fn load(dialect: Dialect, found: &DatabaseSurvey, dump: Option<&str>) -> String {
    let command = match dialect {
        Dialect::Postgres => "pg_dump --no-owner --no-privileges DATABASE > dump.sql",
        Dialect::Mysql => "mysqldump --no-tablespaces DATABASE > dump.sql",
        _ => "sqlite3 FILE .dump > dump.sql",
    };
    let mut text = match dump {
        Some(dump) => format!(
            "\n# Builds that rqps starts load this dump.\n[load]\nschema = [{}]\n",
            escape::toml(dump)
        ),
        None => format!(
            "\n# Builds that rqps starts need the data. `rqps init --dump` writes a dump, too. Or make\n\
             # one, and remove the #:\n#   {command}\n# [load]\n# schema = [\"dump.sql\"]\n"
        ),
    };
    if dialect != Dialect::Sqlite {
        let entries: Vec<String> = keys::drop_order(&found.tables)
            .iter()
            .map(|together| drop_entry(together, &found.tables))
            .collect();
        text.push_str(&format!(
            "# With these two lines it loads on servers given by a DSN, too; it first drops their\n\
             # tables of these names:\n# load = true\n# drop = [{}]\n",
            entries.join(", ")
        ));
    }
    text
}

/// An entry of `drop`: a table, or the statement that drops several at once. It is one line,
/// because it stands in a comment.
fn drop_entry(together: &[usize], tables: &[TableFacts]) -> String {
    let names: Vec<&str> = together.iter().map(|table| tables[*table].name.as_str()).collect();
    match names.as_slice() {
        [name] => escape::toml(name),
        names => escape::toml(&format!("DROP TABLE IF EXISTS {}", names.join(", "))),
    }
}

struct Draft<'a> {
    dialect: Dialect,
    found: &'a DatabaseSurvey,
    tables: &'a [TableFacts],
    values: Parameters<'a>,
    ranges: Ranges<'a>,
    /// By name.
    parameters: BTreeMap<String, Parameter>,
    /// Words that parameters and steps are named after so far.
    words: BTreeSet<String>,
    steps: String,
}

/// A row that a statement deletes.
struct DeletedRow {
    insert: String,
    /// The INSERT makes it first; else it puts it back.
    is_new: bool,
    /// Names of the values by which the statement finds it.
    given: BTreeMap<usize, String>,
}

impl Draft<'_> {
    /// One step per statement, and one that mixes them in the proportion of their calls.
    fn top_statements(&mut self, statements: &[TopStatement]) {
        let mut mix = String::from("\n# All of them, as often as the server saw them.\n[[step]]\n");
        mix.push_str("name = \"mix\"\n");
        let most = statements.iter().map(|one| one.calls).max().unwrap_or(1).max(1);
        for (index, statement) in statements.iter().enumerate() {
            let number = index + 1;
            let (statements, makes_room) = self.statements(number, statement, "s");
            let ignore = self.ignored(statement, makes_room);
            let TopStatement { calls, mean_ms, .. } = statement;
            let name = self.step_name(statement);
            self.steps.push_str(&format!(
                "\n# {calls} calls, {mean_ms:.3} ms each\n[[step]]\nname = \"{name}\"\n\
                 [[step.event]]\n{ignore}{statements}"
            ));
            if statements.len() == 1 {
                return;
            }
            let (statements, _) = self.statements(number, statement, "m");
            let weight = (1000.0 * *calls as f64 / most as f64).ceil().max(1.0);
            mix.push_str(&format!(
                "[[step.event]]\nname = \"{name}\"\nweight = {weight}\n{ignore}{statements}"
            ));
        }
        self.steps.push_str(&mix);
    }

    /// What a statement does, and the first two tables that it does it to: `select-orders-customer`.
    fn step_name(&mut self, statement: &TopStatement) -> String {
        let is_apart = |letter: char| !letter.is_alphanumeric() && !"_$".contains(letter);
        let words: Vec<&str> = statement.sql.split(is_apart).filter(|it| !it.is_empty()).collect();
        let is_before = |word: &&str| {
            ["FROM", "INTO", "UPDATE", "JOIN"]
                .iter()
                .any(|before| before.eq_ignore_ascii_case(word))
        };
        let places = (0..words.len()).filter(|at| is_before(&words[*at]));
        let mut name = vec![statement.first_word()];
        for place in places {
            // Its schema may stand before it.
            let after = words.iter().skip(place + 1).take(2);
            let is_table = |word: &&&str| {
                let is = |table: &TableFacts| bare(&table.name).eq_ignore_ascii_case(word);
                self.tables.iter().any(is)
            };
            if let Some(table) = after.copied().find(|word| is_table(&word)) {
                let is_new = !name.iter().any(|known| known == table);
                name.extend(Some(table.to_owned()).filter(|_| is_new));
            }
        }
        name.truncate(3);
        let short: String = name.join(" ").chars().take(NAME_MOST).collect();
        self.word(&short).replace('_', "-")
    }

    /// The statements of an event as TOML: the one that the server saw, and those that keep it at
    /// work. True if one makes room for its row.
    fn statements(
        &mut self,
        number: usize,
        statement: &TopStatement,
        prefix: &str,
    ) -> (String, bool) {
        let meaning = meaning(statement, self.tables);
        let back = self.deleted_row((number, statement), &meaning, prefix);
        let given = back.as_ref().map(|back| back.given.clone()).unwrap_or_default();
        let names = self.named_values((number, statement), &meaning, prefix, given);
        let name = |value: usize| format!(":{}", names.get(&value).map_or("", String::as_str));
        let tree = TokenTree::of(statement);
        let sql = tree.with(|at| tree.value(at).map(name));
        let of = |comment: &str, sql: &str| {
            let comment = if comment.is_empty() { String::new() } else { format!("# {comment}\n") };
            format!("{comment}[[step.event.statement]]\nsql = {}\n", quoted(sql))
        };
        let assumed = if statement.is_assumed {
            "EDIT: the field of extract is assumed, the server does not keep it."
        } else {
            ""
        };
        let mut all = vec![of(assumed, &sql)];
        let freed = keys::freed_rows(self.tables, statement, &meaning);
        if let Some((table, rows)) = &freed {
            let table = &self.tables[*table];
            let is_equal = |(column, value): &(usize, usize)| {
                format!("{} = {}", table.columns[*column].name, name(*value))
            };
            let of_row = |row: &Vec<(usize, usize)>| {
                row.iter().map(is_equal).collect::<Vec<_>>().join(" AND ")
            };
            let rows: Vec<String> = rows.iter().map(of_row).collect();
            let sql = format!("DELETE FROM {} WHERE {}", table.name, rows.join(" OR "));
            all.insert(0, of("Makes room: the keys of a unique index would run out.", &sql));
        }
        match back {
            Some(back) if back.is_new => {
                let why = "Makes the row: others reference those that are there.";
                all.insert(0, of(why, &back.insert));
            }
            Some(back) => {
                all.push(of("Puts the row back: there would soon be none left.", &back.insert));
            }
            None => {}
        }
        let mut again = BTreeMap::new();
        if let Some((table, columns)) = keys::outgrown(self.tables, statement) {
            for column in columns {
                let name = format!("s{number}_c{}", column + 1);
                self.parameters.insert(name.clone(), of_facts(&self.tables[table], column));
                again.insert(column, name);
            }
        }
        if let Some(undone) = keys::undone(self.tables, statement, name, &again) {
            let place = if undone.is_first { 0 } else { all.len() };
            all.insert(place, of("The column would leave its bounds.", &undone.sql));
        }
        (all.concat(), freed.is_some())
    }

    /// The row that the statement deletes, if it deletes one.
    fn deleted_row(
        &mut self,
        (number, statement): (usize, &TopStatement),
        meaning: &Meaning,
        prefix: &str,
    ) -> Option<DeletedRow> {
        let back = keys::put_back(self.tables, statement, meaning)?;
        let (columns, is_new) = back.columns(self.found)?;
        let mut given = BTreeMap::new();
        let mut names: BTreeMap<usize, String> = BTreeMap::new();
        for column in columns {
            let label = format!("s{number}-back");
            let rows = (columns.as_slice(), is_new);
            let drawn = self.values.of_deleted(back.table, rows, *column, &label)?;
            let prefix = if drawn.is_sequence { prefix } else { "s" };
            let found_by = back.found_by.iter().find(|(found_by, _)| found_by == column);
            let name = match found_by {
                Some((_, value)) => {
                    let name = format!("{prefix}{number}_{}", value + 1);
                    given.insert(*value, name.clone());
                    name
                }
                None => format!("{prefix}{number}_c{}", column + 1),
            };
            self.parameters.insert(name.clone(), drawn);
            names.insert(*column, name);
        }
        let insert = keys::insert(self.dialect, &self.tables[back.table], &names);
        Some(DeletedRow { insert, is_new, given })
    }

    /// The name of each value. Names of sequences begin with `prefix`, those of others with `s`:
    /// steps share them.
    fn named_values(
        &mut self,
        (number, statement): (usize, &TopStatement),
        meaning: &Meaning,
        prefix: &str,
        given: BTreeMap<usize, String>,
    ) -> BTreeMap<usize, String> {
        let together = drawn_together(self.tables, statement, meaning);
        let together: &[RowOfValues] = &together;
        let values = StatementValues { number, statement, meaning, together };
        let ranges = ranges(statement, &meaning.guesses);
        let tree = TokenTree::of(statement);
        let mut named = given;
        for (at, value) in tree.values() {
            if named.contains_key(&value) {
                continue;
            }
            let of_range = ranges.get(&value).and_then(|part| {
                let first = part.first(value);
                let name = format!("s{number}_{}", first + 1);
                self.ranges.ends(&meaning.guesses[first], &name)?.part(*part)
            });
            let mut drawn = of_range.unwrap_or_else(|| self.values.of(&values, value));
            if matches!(tree.nodes[at].kind, NodeKind::Values(_)) {
                let count = statement.counts.get(value);
                drawn = drawn.with(&format!("count = {}", count.copied().unwrap_or(LIST)));
                if count.is_none() {
                    drawn.comment.push_str("; EDIT: the number of values in the list");
                }
            }
            let prefix = if drawn.is_sequence { prefix } else { "s" };
            let name = format!("{prefix}{number}_{}", value + 1);
            self.parameters.insert(name.clone(), drawn);
            named.insert(value, name);
        }
        named
    }

    /// The key for errors that are no fault of the build: a foreign key forbids what other events
    /// have made or deleted, or all values of a unique index are references that are taken and not
    /// freed.
    fn ignored(&self, statement: &TopStatement, makes_room: bool) -> String {
        if !statement.is_write() {
            return String::new();
        }
        let named: Vec<usize> = (0..self.tables.len())
            .filter(|table| mentions(statement, &self.tables[*table].name))
            .collect();
        let (foreign_key, duplicate): (&[&str], &str) = match self.dialect {
            Dialect::Postgres => (&["23503"], "23505"),
            Dialect::Mysql => (&["1451", "1452"], "1062"),
            _ => return String::new(),
        };
        let mut codes: Vec<&str> = Vec::new();
        if named.iter().any(|table| keys::is_bound(self.tables, *table)) {
            codes.extend(foreign_key);
        }
        let is_full = |table: &usize| keys::has_unique_references(&self.tables[*table]);
        if statement.is_insert() && !makes_room && named.iter().any(is_full) {
            codes.push(duplicate);
        }
        if codes.is_empty() {
            String::new()
        } else {
            format!("ignore = {codes:?}  # foreign keys forbid some\n")
        }
    }

    /// A statement by primary key.
    fn by_key(&mut self, table: &TableFacts) {
        let word = self.word(&table.name);
        let Some(&first) = table.key.first() else { return };
        let column = &table.columns[first];
        let is_one = table.key.len() == 1 && column.is_dense;
        let expect = if is_one { "expect.rows = 1\n" } else { "" };
        self.parameters.insert(format!("{word}_key"), of_facts(table, first));
        let sql = format!("SELECT * FROM {} WHERE {} = :{word}_key", table.name, column.name);
        self.steps.push_str(&format!(
            "\n[[step]]\nname = \"{}-by-key\"\n[[step.event]]\n[[step.event.statement]]\n\
             sql = {}\n{expect}",
            word.replace('_', "-"),
            quoted(&sql)
        ));
    }

    /// A word for names of a table's parameter and step, which no other table has.
    fn word(&mut self, table: &str) -> String {
        let word: String = table
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
            .collect::<String>()
            .trim_matches('_')
            .to_lowercase();
        let word = if word.starts_with(|letter: char| letter.is_ascii_lowercase()) {
            word
        } else {
            format!("t_{word}").trim_end_matches('_').to_owned()
        };
        let numbered = (2..).map(|number| format!("{word}_{number}"));
        let mut all = std::iter::once(word.clone()).chain(numbered);
        let free = all.find(|word| !self.words.contains(word)).unwrap_or_default();
        self.words.insert(free.clone());
        free
    }
}

// Rows of a database from which a draft takes values: those that others reference, and those that
// have several values of a statement.

/// Rows of a referenced table that a draft chooses from.
const SAMPLE: usize = 1000;

/// Longest sampled value, bytes.
const LONGEST: usize = 200;

/// Reads rows of the tables that statements reference by what they store, and those from which they
/// take several values together. Returns the referenced columns that stand alone, whose values may
/// be a range.
pub(super) fn learn(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    found: &mut DatabaseSurvey,
) -> Vec<(usize, usize)> {
    let mut stored: Vec<(usize, usize)> = Vec::new();
    let mut together: BTreeSet<(usize, Vec<usize>)> = BTreeSet::new();
    for statement in &found.statements {
        let meaning = meaning(statement, &found.tables);
        stored.extend(meaning.guesses.iter().filter_map(|guess| match guess {
            ValueGuess::Stored(table, column) => Some((*table, *column)),
            _ => None,
        }));
        together.extend(
            drawn_together(&found.tables, statement, &meaning)
                .iter()
                .map(|row| (row.table, row.columns.iter().map(|(column, _)| *column).collect())),
        );
        together.extend(meaning.guesses.iter().filter_map(|guess| {
            match guess {
                ValueGuess::Column(table, column) => Some((*table, vec![*column]))
                    .filter(|_| found.tables[*table].columns[*column].is_sparse),
                _ => None,
            }
        }));
        let back = keys::put_back(&found.tables, statement, &meaning);
        let choices = back.into_iter().flat_map(|back| back.choices.map(|it| (back.table, it)));
        together.extend(choices);
    }
    for (table, columns) in together {
        let rows = sample(dialect, ask, &found.tables[table], &columns);
        found.rows.insert((table, columns), rows);
    }
    let mut alone = Vec::new();
    for own in 0..found.tables.len() {
        for number in 0..found.tables[own].references.len() {
            let key = found.tables[own].references[number].clone();
            if !key.columns.iter().any(|column| stored.contains(&(own, *column))) {
                continue;
            }
            let sample = sample(dialect, ask, &found.tables[key.table], &key.referenced);
            found.tables[own].references[number].sample = sample;
            alone.extend(match key.referenced.as_slice() {
                [column] => Some((key.table, *column)),
                _ => None,
            });
        }
    }
    alone
}

/// The values of a statement that come from one row of a table: those of several columns that it
/// compares with one row, and those that it stores in one, but for references and new keys.
fn drawn_together(
    tables: &[TableFacts],
    statement: &TopStatement,
    meaning: &Meaning,
) -> Vec<RowOfValues> {
    let of_row = |row: &RowOfValues| {
        let table = &tables[row.table];
        let stored: Vec<usize> = row.columns.iter().map(|(column, _)| *column).collect();
        let is_other = |(column, _): &(usize, usize)| {
            let is_free = reference_of(table, *column, &stored).is_none()
                && !must_be_new(table, *column, &stored);
            (!row.is_stored || is_free)
                && (!statement.is_mysql || table.columns[*column].has_text())
        };
        let columns = row.columns.iter().filter(|pair| is_other(pair)).copied().collect();
        RowOfValues { columns, ..row.clone() }
    };
    let rows = meaning.rows.iter().map(of_row);
    rows.filter(|row| row.columns.len() > 1).collect()
}

/// Some rows of these columns; none if they cannot be read.
fn sample(
    dialect: Dialect,
    ask: &mut AskDatabase<'_>,
    table: &TableFacts,
    columns: &[usize],
) -> Vec<Vec<String>> {
    let names: Vec<&str> =
        columns.iter().map(|column| table.columns[*column].name.as_str()).collect();
    let (list, from) = (names.join(", "), &table.name);
    let random = if dialect == Dialect::Mysql { "rand()" } else { "random()" };
    let known: Vec<String> = names.iter().map(|name| format!("{name} IS NOT NULL")).collect();
    let known = known.join(" AND ");
    let sql = format!(
        "SELECT {list} FROM (SELECT {list} FROM {from} WHERE {known} LIMIT 100000) AS {OWN} \
         ORDER BY {random} LIMIT {SAMPLE}"
    );
    let rows = ask(&sql).unwrap_or_default().into_iter();
    let whole = |row: Vec<Option<String>>| row.into_iter().collect::<Option<Vec<String>>>();
    let is_short = |row: &Vec<String>| row.iter().all(|text| text.len() <= LONGEST);
    let mut rows: Vec<Vec<String>> = rows.filter_map(whole).filter(is_short).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::draft::survey::{ColumnFacts, ColumnValues, ForeignKey};

    fn table(name: &str) -> TableFacts {
        let column = ColumnFacts {
            name: "id".to_owned(),
            type_name: "bigint".to_owned(),
            values: ColumnValues::Whole(1, 5),
            is_dense: true,
            ..ColumnFacts::default()
        };
        TableFacts {
            name: name.to_owned(),
            rows: 5,
            columns: vec![column],
            key: vec![0],
            unique: vec![vec![0]],
            ..TableFacts::default()
        }
    }

    #[test]
    fn tables_have_names_of_their_own_in_the_draft() {
        let names = ["a.b", "a_b", "\"2024\"", "\"\u{fc}\"", "\"\u{e4}\""];
        let tables = names.map(table).to_vec();
        let found = DatabaseSurvey { tables, ..DatabaseSurvey::default() };
        let (text, files) = draft(Dialect::Postgres, "here", "shop", &found, None);
        assert!(files.is_empty());
        for (step, parameter) in
            [("a-b", "a_b"), ("a-b-2", "a_b_2"), ("t-2024", "t_2024"), ("t", "t"), ("t-2", "t_2")]
        {
            assert!(text.contains(&format!("name = \"{step}-by-key\"\n")), "{step}\n{text}");
            assert!(text.contains(&format!("\n{parameter}_key = ")), "{parameter}\n{text}");
        }
    }

    #[test]
    fn no_name_of_a_table_becomes_a_part_of_the_file() {
        let name = "\"x\n[load]\nschema = ['/etc/passwd']\n#\u{202e}\"";
        let mut tables = vec![table(name), table("child")];
        tables[0].columns[0].name = "\"id\n[load]\"".to_owned();
        tables[0].columns[0].type_name = "int\r\n[load]".to_owned();
        let key = ForeignKey { columns: vec![0], referenced: vec![0], ..ForeignKey::default() };
        tables[1].references.push(key);
        let notes = vec!["server\r[load]\u{1b}[2J".to_owned()];
        let found = DatabaseSurvey { tables, notes, ..DatabaseSurvey::default() };
        let (text, _) = draft(Dialect::Postgres, "here\n[load]", "shop", &found, None);
        let file: toml::Table = text.parse().unwrap();
        assert_eq!(file.keys().collect::<Vec<_>>(), ["parameter", "step"], "{text}");
        assert!(text.lines().all(|line| escape::line(line) == line), "{text}");
        // Without its sign, the comment is what it says.
        let drop = text.lines().find_map(|line| line.strip_prefix("# drop = ")).unwrap();
        let drop: toml::Table = format!("drop = {drop}").parse().unwrap();
        assert_eq!(drop["drop"][1].as_str(), Some(name));
    }

    #[test]
    fn a_mix_inserts_other_rows_than_the_steps_before_it() {
        let mut tables = vec![table("parent"), table("child")];
        let (columns, referenced) = (vec![0], vec![0]);
        let key = ForeignKey { columns, table: 0, referenced, ..ForeignKey::default() };
        tables[1].references.push(key);
        let statement = |sql: &str| TopStatement {
            sql: sql.to_owned(),
            is_mysql: true,
            calls: 1,
            ..Default::default()
        };
        let statements = vec![
            statement("INSERT INTO `parent` ( `id` ) VALUES (?)"),
            statement("SELECT * FROM `child` WHERE `id` IN (?...)"),
        ];
        let found = DatabaseSurvey { tables, statements, ..DatabaseSurvey::default() };
        let (text, _) = draft(Dialect::Mysql, "here", "shop", &found, None);
        for part in [
            "#   child: about 5 rows, references parent\n",
            "# drop = [\"child\", \"parent\"]\n",
            "s1_1 = { kind = \"sequential\", from = 6, to = 31250005 }",
            "m1_1 = { kind = \"sequential\", from = 31250006, to = 62500005 }",
            "s2_1 = { kind = \"uniform\", from = 1, to = 5, count = 10 }",
            "IN (:s2_1)",
            "[[step.event]]\nignore = [\"1451\", \"1452\"]  # foreign keys forbid some\n",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert_eq!(text.matches("ignore = ").count(), 2, "{text}");
    }
}
