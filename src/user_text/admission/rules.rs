//! The list of statements that a load may execute on a server that rqps does not run, and what was
//! made so far.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::domain::dialect::Dialect;
use crate::domain::sql_name::TableName;
use crate::user_text::admission::create;
use crate::user_text::admission::expressions::Expressions;
use crate::user_text::admission::settings::{self, SavedSettings};
use crate::user_text::admission::statement::{Refusal, SaidName, Statement};
use crate::user_text::admission::tokens::{readings, tokens};
use crate::user_text::changes::{ChangedRelation, RelationKind};

/// A statement that a load may execute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// The reason why it is not sent, if it is not the load's business; empty if it would do
    /// nothing.
    pub left_out: Option<&'static str>,
    /// Parts that are not sent: `IF NOT EXISTS` would take the table of somebody else for the own.
    pub without: Vec<Range<usize>>,
    /// What it makes.
    pub makes: Vec<ChangedRelation>,
}

impl Admitted {
    /// The statement as it is sent.
    pub fn sent(&self, sql: &[u8]) -> Vec<u8> {
        let mut sent = sql.to_vec();
        for part in self.without.iter().rev() {
            sent.drain(part.clone());
        }
        sent
    }

    pub(super) fn left_out(why: &'static str) -> Admitted {
        Admitted { left_out: Some(why), ..Admitted::default() }
    }
}

/// What a load may do, and what it has made so far: only that may it fill and change.
#[derive(Clone, Debug)]
pub struct LoadRules {
    dialect: Dialect,
    /// The schema or database that the load names, once it has named one.
    place: Option<String>,
    made: BTreeMap<String, RelationKind>,
    /// Sequences that come and go with a table.
    belonging: BTreeSet<String>,
    saved: SavedSettings,
}

/// The statement would do nothing.
pub(super) const NOTHING: &str = "";

const GRANTS: &str = "it changes rights\nhint: dump without them: pg_dump --no-privileges";
const ROUTINES: &str = "functions, procedures, triggers and rules hold statements that nobody sees \
                        here\nhint: dump without them (mysqldump --skip-triggers), or make them \
                        yourself and measure the tables as they are, without `load = true`";

impl LoadRules {
    /// Before the first file.
    pub fn new(dialect: Dialect) -> LoadRules {
        let (made, saved) = (BTreeMap::new(), BTreeMap::new());
        LoadRules { dialect, place: None, made, belonging: BTreeSet::new(), saved }
    }

    /// The schema or database that statements name. The load must run there.
    pub fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// True for a sequence that comes and goes with a table.
    pub fn is_of_table(&self, made: &ChangedRelation) -> bool {
        let name = TableName::try_from(made.name.clone()).map(|name| name.folded(self.dialect));
        let name = name.ok().and_then(|mut parts| parts.pop());
        made.kind == RelationKind::Sequence && name.is_some_and(|it| self.belonging.contains(&it))
    }

    /// A new session: nothing is saved in it.
    pub fn begin_file(&mut self) {
        self.saved.clear();
    }

    /// Judges a statement, which may stand in comments that MySQL executes.
    ///
    /// # Errors
    /// It is not on the list. The text says why.
    pub fn judge(&mut self, sql: &[u8]) -> Result<Admitted, String> {
        let all = tokens(self.dialect, sql).map_err(str::to_owned)?;
        let mut admitted: Option<Admitted> = None;
        // The newest version first: it makes the most.
        for reading in readings(&all).iter().filter(|reading| !reading.is_empty()) {
            let statement = Statement { dialect: self.dialect, sql, tokens: reading, at: 0 };
            let judged = self.statement(statement)?;
            let known = admitted.get_or_insert_with(|| judged.clone());
            if (&known.left_out, &known.without) != (&judged.left_out, &judged.without) {
                return Err("versions of the server read it in different ways".to_owned());
            }
        }
        Ok(admitted.unwrap_or_else(|| Admitted::left_out(NOTHING)))
    }

    /// Judges a COPY whose rows follow.
    ///
    /// # Errors
    /// As for [`LoadRules::judge`].
    pub fn judge_copy(&mut self, sql: &str) -> Result<(), String> {
        let all = tokens(self.dialect, sql.as_bytes()).map_err(str::to_owned)?;
        let mut statement =
            Statement { dialect: self.dialect, sql: sql.as_bytes(), tokens: &all, at: 0 };
        statement.at += usize::from(statement.word() == "COPY");
        self.own_table(&mut statement)?;
        statement.take_columns()?;
        if !statement.take(&["FROM", "STDIN"]) {
            return Err("its rows must follow: COPY … FROM stdin".to_owned());
        }
        // Options have no function and no condition.
        let options = &all[statement.at..];
        let words = options.iter().map(|token| statement.text(token).to_ascii_uppercase());
        match words.into_iter().any(|word| word == b"WHERE" || word == b"PROGRAM" || word == b";") {
            true => Err("its rows may have no condition".to_owned()),
            false => Ok(()),
        }
    }

    /// Judges rows of a file for a table.
    ///
    /// # Errors
    /// The load did not make the table.
    pub fn judge_rows(&mut self, table: &TableName) -> Result<(), String> {
        let parts = table.folded(self.dialect);
        self.check_place(&SaidName { text: table.to_string(), parts })?;
        match self.is_made_text(table) {
            true => Ok(()),
            false => Err(format!("no file of `schema` makes the table {table}")),
        }
    }

    /// True if the load made the relation.
    pub(super) fn is_made(&self, name: &SaidName) -> bool {
        let in_place = name.parts.len() == 1 || self.is_place(name);
        in_place && self.made.contains_key(name.last())
    }

    pub(super) fn is_made_text(&self, name: &TableName) -> bool {
        let said = SaidName { text: name.to_string(), parts: name.folded(self.dialect) };
        self.is_made(&said)
    }

    /// True if a name is of the schema or database of the load.
    pub(super) fn is_place(&self, name: &SaidName) -> bool {
        name.parts.len() == 2 && self.place.as_ref() == Some(&name.parts[0])
    }

    /// Remembers the place that a name has, and refuses another one.
    fn check_place(&mut self, name: &SaidName) -> Result<(), Refusal> {
        match name.parts.as_slice() {
            [_] => {}
            [place, _] => {
                let known = self.place.get_or_insert_with(|| place.clone());
                if known != place {
                    return Err(format!("{} is not in {known}, where the load is", name.text));
                }
            }
            _ => return Err(format!("{} names a database", name.text)),
        }
        // The server looks in its own catalogue first.
        match self.dialect == Dialect::Postgres && name.last().starts_with("pg_") {
            true => Err(format!("{} is a name of the server's own", name.text)),
            false => Ok(()),
        }
    }

    /// Notes what a statement makes.
    pub(super) fn make(
        &mut self,
        name: &SaidName,
        kind: RelationKind,
    ) -> Result<ChangedRelation, Refusal> {
        self.check_place(name)?;
        self.made.insert(name.last().to_owned(), kind);
        Ok(ChangedRelation { name: name.text.clone(), kind })
    }

    /// A sequence belongs to a table.
    pub(super) fn belongs(&mut self, sequence: &SaidName) {
        self.belonging.insert(sequence.last().to_owned());
    }

    /// The load does not make it after all.
    pub(super) fn forget(&mut self, name: &SaidName) {
        self.made.remove(name.last());
    }

    /// Takes the name of a table, view or sequence of the load.
    pub(super) fn own(&mut self, statement: &mut Statement<'_>) -> Result<SaidName, Refusal> {
        let name = statement.name()?;
        self.check_place(&name)?;
        match self.is_made(&name) {
            true => Ok(name),
            false => Err(format!("the load did not make {}", name.text)),
        }
    }

    /// Takes the name of a table of the load.
    pub(super) fn own_table(&mut self, statement: &mut Statement<'_>) -> Result<SaidName, Refusal> {
        let name = self.own(statement)?;
        match self.made.get(name.last()) {
            Some(RelationKind::Table) => Ok(name),
            _ => Err(format!("{} is no table", name.text)),
        }
    }

    /// Checks the rest of a statement that defines something.
    pub(super) fn definition(&self, statement: Statement<'_>) -> Result<(), Refusal> {
        let mut rest = Expressions::new(statement, self);
        // MySQL calls no functions of users in definitions of tables.
        rest.builtin_only = statement.is_mysql();
        rest.check()
    }

    /// Checks the rest of a statement that is a query or has values.
    pub(super) fn query(&self, statement: Statement<'_>) -> Result<(), Refusal> {
        let mut rest = Expressions::new(statement, self);
        rest.in_query = true;
        rest.check()
    }

    fn statement(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        let mysql = statement.is_mysql();
        let verb = statement.word();
        statement.at += 1;
        match verb.as_str() {
            "CREATE" => create::create(self, statement),
            "ALTER" => create::alter(self, statement),
            "DROP" => self.drop(statement),
            "INSERT" => self.insert(statement),
            "REPLACE" if mysql => self.insert(statement),
            "SET" if mysql => {
                settings::of_mysql(&mut statement, &mut self.saved)?;
                done(statement)
            }
            "SET" => {
                settings::of_postgres(&mut statement)?;
                done(statement)
            }
            "SELECT" if !mysql => self.select(statement),
            "COMMENT" if !mysql => self.comment(statement),
            "REFRESH" if !mysql && statement.take(&["MATERIALIZED", "VIEW"]) => {
                self.own(&mut statement)?;
                done(statement)
            }
            "ANALYZE" => {
                statement.take_any(&["TABLE", "VERBOSE"]);
                self.own_table(&mut statement)?;
                done(statement)
            }
            "LOCK" if mysql => self.lock(statement),
            "UNLOCK" if mysql && statement.take(&["TABLES"]) => done(statement),
            "BEGIN" | "COMMIT" | "END" => {
                statement.take_any(&["WORK", "TRANSACTION"]);
                done(statement)
            }
            "START" if statement.take(&["TRANSACTION"]) => done(statement),
            "GRANT" | "REVOKE" => Err(GRANTS.to_owned()),
            "CALL" | "DO" | "EXECUTE" | "PREPARE" | "HANDLER" => {
                Err("it hides other statements".to_owned())
            }
            _ => Err("a load there may make and fill tables, and no more".to_owned()),
        }
    }

    /// INSERT and REPLACE.
    fn insert(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        statement.take_any(&["LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE"]);
        statement.take(&["IGNORE"]);
        if !statement.take(&["INTO"]) {
            return Err("INTO is missing".to_owned());
        }
        self.own_table(&mut statement)?;
        if statement.take(&["PARTITION"]) {
            statement.take_columns()?;
        }
        // Without columns, a query may stand in parentheses.
        let mut ahead = statement;
        if matches!(ahead.take_columns(), Ok(true)) {
            statement = ahead;
        }
        self.query(statement)?;
        Ok(Admitted::default())
    }

    /// The two functions that dumps call.
    fn select(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        let other = "a load there may call no function but pg_catalog.setval of its own sequence";
        let is_of_server = statement.take(&["PG_CATALOG"]) && statement.take_sign(b'.');
        let function = statement.word();
        statement.at += 1;
        if !is_of_server || !statement.take_sign(b'(') {
            return Err(other.to_owned());
        }
        let first = statement.take_literal().unwrap_or_default();
        match function.as_str() {
            "SET_CONFIG" if first == "search_path" => {
                let is_empty = statement.take_sign(b',')
                    && statement.take_literal().as_deref() == Some("")
                    && statement.take_sign(b',');
                if !is_empty || statement.take_any(&["FALSE", "TRUE"]).is_none() {
                    return Err("a load may set search_path to nothing but ''".to_owned());
                }
            }
            "SETVAL" => {
                let name = TableName::try_from(first)?;
                if !self.is_made_text(&name) {
                    return Err(format!("the load did not make {name}"));
                }
                let is_value = statement.take_sign(b',') && statement.take_number();
                if !is_value {
                    return Err("the value of a sequence is a number".to_owned());
                }
                if statement.take_sign(b',') {
                    statement.take_any(&["FALSE", "TRUE"]);
                }
            }
            _ => return Err(other.to_owned()),
        }
        match statement.take_sign(b')') {
            true => done(statement),
            false => Err(other.to_owned()),
        }
    }

    fn comment(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        statement.take(&["ON"]);
        statement.take(&["MATERIALIZED"]);
        let kinds = [
            "TABLE",
            "VIEW",
            "SEQUENCE",
            "INDEX",
            "COLUMN",
            "CONSTRAINT",
            "TYPE",
            "DOMAIN",
            "EXTENSION",
            "SCHEMA",
        ];
        match statement.take_any(&kinds).as_deref() {
            Some("EXTENSION" | "SCHEMA") => {
                return Ok(Admitted::left_out("it is not about a table of the load"));
            }
            Some("COLUMN") => {
                let mut column = statement.name()?;
                column.parts.pop();
                self.check_place(&column)?;
                if !self.is_made(&column) {
                    return Err(format!("the load did not make {}", column.text));
                }
            }
            Some("CONSTRAINT") => {
                statement.name()?;
                statement.take(&["ON"]);
                self.own(&mut statement)?;
            }
            Some(_) => drop(self.own(&mut statement)?),
            None => return Err("it is not about a table of the load".to_owned()),
        }
        let is_text =
            statement.take(&["IS"]) && (statement.take(&["NULL"]) || statement.take_text());
        match is_text {
            true => done(statement),
            false => Err("the comment is no text".to_owned()),
        }
    }

    fn lock(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        if !statement.take(&["TABLES"]) {
            return Err("a load may lock nothing but its tables".to_owned());
        }
        loop {
            self.own(&mut statement)?;
            statement.take_any(&["READ", "WRITE", "LOW_PRIORITY"]);
            statement.take_any(&["LOCAL", "WRITE"]);
            if !statement.take_sign(b',') {
                return done(statement);
            }
        }
    }

    /// DROP: what the load made goes. What it did not make is not there: rqps looks before.
    fn drop(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        let kind = match dropped_kind(&mut statement) {
            Some(kind) => kind,
            None => return Err("a load may drop nothing but its tables and views".to_owned()),
        };
        let (mut names, mut own) = (Vec::new(), 0);
        statement.take(&["CONCURRENTLY"]);
        statement.take(&["IF", "EXISTS"]);
        loop {
            let name = statement.name()?;
            self.check_place(&name)?;
            own += usize::from(self.made.remove(name.last()).is_some());
            names.push(ChangedRelation { name: name.text, kind });
            if !statement.take_sign(b',') {
                break;
            }
        }
        if kind == RelationKind::Index && statement.take(&["ON"]) {
            self.own_table(&mut statement)?;
            own = names.len();
        }
        statement.take(&["RESTRICT"]);
        if statement.word() == "CASCADE" && !statement.is_mysql() {
            return Err("CASCADE drops what it does not name".to_owned());
        }
        statement.take(&["CASCADE"]);
        statement.end()?;
        match own {
            // If there is an index of that name, it is of another table.
            0 => Ok(Admitted {
                makes: names.into_iter().filter(|it| it.kind != RelationKind::Index).collect(),
                ..Admitted::left_out(NOTHING)
            }),
            own if own == names.len() => Ok(Admitted::default()),
            _ => Err("it drops something that the load did not make".to_owned()),
        }
    }
}

/// Takes the word of a kind that a load may drop.
fn dropped_kind(statement: &mut Statement<'_>) -> Option<RelationKind> {
    if statement.take(&["MATERIALIZED", "VIEW"]) {
        return Some(RelationKind::MaterializedView);
    }
    Some(
        match statement
            .take_any(&["TABLE", "VIEW", "SEQUENCE", "INDEX", "TYPE", "DOMAIN"])?
            .as_str()
        {
            "TABLE" => RelationKind::Table,
            "VIEW" => RelationKind::View,
            "SEQUENCE" => RelationKind::Sequence,
            "INDEX" => RelationKind::Index,
            _ => RelationKind::Type,
        },
    )
}

/// The end of a statement that is admitted.
pub(super) fn done(statement: Statement<'_>) -> Result<Admitted, Refusal> {
    statement.end().map(|()| Admitted::default())
}

/// Why routines and the like are refused.
pub(super) fn routines() -> Refusal {
    ROUTINES.to_owned()
}

/// What an entry of `drop` in a workload file drops: a table by its name, or a statement.
///
/// # Errors
/// It is neither, or it drops more than it names.
pub fn dropped(dialect: Dialect, entry: &str) -> Result<Vec<ChangedRelation>, String> {
    if let Ok(table) = TableName::try_from(entry.trim().to_owned()) {
        return Ok(vec![ChangedRelation::table(&table.to_string())]);
    }
    let wrong = |why: &str| {
        Err(format!(
            "each entry of `drop` is a table or one DROP statement without `;`, not {entry:?}: {why}"
        ))
    };
    let all = match tokens(dialect, entry.as_bytes()) {
        Ok(all) if all.iter().all(|token| token.comment.is_none()) => all,
        Ok(_) => return wrong("it has a comment that is executed"),
        Err(why) => return wrong(why),
    };
    let mut statement = Statement { dialect, sql: entry.as_bytes(), tokens: &all, at: 0 };
    if !statement.take(&["DROP"]) {
        return wrong("it is no name");
    }
    let kind = match dropped_kind(&mut statement) {
        Some(kind) => kind,
        None if statement.take_any(&ROUTINE_KINDS).is_some() => RelationKind::Routine,
        None => {
            let known = "TABLE, VIEW, MATERIALIZED VIEW, INDEX, SEQUENCE, TYPE, DOMAIN";
            let known = [known, &ROUTINE_KINDS.join(", ")].join(", ");
            return Err(format!("a statement of `drop` may drop one of {known}, not {entry:?}"));
        }
    };
    statement.take(&["CONCURRENTLY"]);
    statement.take(&["IF", "EXISTS"]);
    let mut names = Vec::new();
    loop {
        let name = statement.name()?;
        names.push(ChangedRelation { name: name.text, kind });
        if kind == RelationKind::Routine && statement.is_sign(b'(') {
            statement.pass_parentheses()?;
        }
        if !statement.take_sign(b',') {
            break;
        }
    }
    if statement.take(&["ON"]) {
        statement.name()?;
    }
    statement.take(&["RESTRICT"]);
    match statement.word().as_str() {
        "CASCADE" => wrong("with CASCADE it drops what it does not name: name that before it"),
        _ => match statement.end() {
            Ok(()) => Ok(names),
            Err(why) => wrong(&why),
        },
    }
}

/// Kinds that `drop` of a workload file may name besides those of tables.
const ROUTINE_KINDS: [&str; 5] = ["TRIGGER", "FUNCTION", "PROCEDURE", "AGGREGATE", "EVENT"];
