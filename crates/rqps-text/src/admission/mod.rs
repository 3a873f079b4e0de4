//! What a load may do on a server that rqps does not run: a list of allowed statements. All else is
//! refused before anything is sent.

mod create;
mod expressions;
mod settings;
mod statement;
#[cfg(test)]
mod tests;
mod tokens;

use crate::admission::create::dropped_kind;
use crate::admission::settings::SavedSettings;
use crate::admission::statement::{
    EXTENSIONS, NOTHING, OwnObjects, Refusal, SaidName, Statement, WITH_ROWS, done,
};
use crate::admission::tokens::readings;
use crate::reading::{ChangedRelation, RelationKind};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::TableName;

pub use self::create::dropped;
pub use self::settings::plain_modes;
pub use self::statement::Admitted;
pub use self::tokens::{Token, TokenKind, VersionComment, is_one_statement, tokens};

pub(crate) use self::expressions::{is_harmless_before_parenthesis, is_of_relation};
pub(crate) use self::tokens::without_hints;

// The list of statements that a load may execute on a server that rqps does not run, and what was
// made so far.

/// What a load may do, and what it has made so far: only that may it fill and change.
#[derive(Clone, Debug)]
pub struct LoadRules {
    own: OwnObjects,
    saved: SavedSettings,
}

/// Words of MySQL that lead to files of the server, wherever they stand.
const FILES: [&str; 3] = ["DUMPFILE", "LOAD_FILE", "OUTFILE"];

/// Refuses the words of [`FILES`] outside of quotes, also where only a name can stand.
fn names_a_file(dialect: Dialect, sql: &[u8], all: &[Token]) -> Result<(), String> {
    let is_file = |token: &&Token| {
        let text = sql.get(token.begin..token.end).unwrap_or_default();
        token.kind == TokenKind::Word
            && FILES.iter().any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
    };
    match all.iter().find(is_file) {
        Some(token) if dialect == Dialect::Mysql => {
            let word = String::from_utf8_lossy(&sql[token.begin..token.end]).into_owned();
            Err(format!("{word} leads to a file of the server"))
        }
        _ => Ok(()),
    }
}

const GRANTS: &str = "it changes rights\nhint: dump without them: pg_dump --no-privileges";
impl LoadRules {
    /// Before the first file.
    pub fn new(dialect: Dialect) -> LoadRules {
        LoadRules { own: OwnObjects::new(dialect), saved: SavedSettings::new() }
    }

    /// The schema or database that statements name. The load must run there.
    pub fn place(&self) -> Option<&str> {
        self.own.place.as_deref()
    }

    /// True for a sequence that comes and goes with a table.
    pub fn is_of_table(&self, made: &ChangedRelation) -> bool {
        self.own.is_of_table(made)
    }

    /// Functions and operators that statements call so far, without those of the server's
    /// catalogue. If others made one of that name, the server may take it.
    pub fn called(&self) -> impl Iterator<Item = &str> {
        self.own.called.iter().map(String::as_str)
    }

    /// Names after a point, which Postgres may take for columns or for functions: `a.f` is `f(a)`.
    pub fn attributes(&self) -> impl Iterator<Item = &str> {
        self.own.attributes.iter().map(String::as_str)
    }

    /// Those of them that may be of a value, and not of a row of a table.
    pub fn attributes_of_values(&self) -> impl Iterator<Item = &str> {
        self.own.of_values.iter().map(String::as_str)
    }

    /// Names where types may stand, columns among them, but not those that the load made.
    pub fn types(&self) -> impl Iterator<Item = &str> {
        let is_own = |name: &&String| {
            let name = TableName::try_from((*name).clone());
            name.is_ok_and(|name| self.own.is_made_text(&name, RelationKind::Type))
        };
        self.own.types.iter().filter(move |name| !is_own(name)).map(String::as_str)
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
        let all = without_hints(self.own.dialect, sql).map_err(str::to_owned)?;
        // MySQL has `{fn name()}`, and names that begin with `$`.
        let is_odd = |token: &Token| {
            token.kind == TokenKind::Sign && matches!(sql[token.begin], b'{' | b'}' | b'$')
        };
        if self.own.dialect == Dialect::Mysql && all.iter().any(is_odd) {
            return Err("`{` or `$` stands outside of quotes".to_owned());
        }
        names_a_file(self.own.dialect, sql, &all)?;
        let mut admitted: Option<Admitted> = None;
        if all.iter().all(|token| token.comment.is_some_and(|comment| !comment.is_certain()))
            && all.first().is_some_and(|first| !is_setting(sql, first))
        {
            return Err("only some versions of the server execute it".to_owned());
        }
        // The newest version first: it makes the most.
        for reading in readings(&all).iter().filter(|reading| !reading.is_empty()) {
            let statement = Statement { dialect: self.own.dialect, sql, tokens: reading, at: 0 };
            let judged = self.statement(statement)?;
            let known = admitted.get_or_insert_with(|| judged.clone());
            if *known != judged {
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
        let all = without_hints(self.own.dialect, sql.as_bytes()).map_err(str::to_owned)?;
        let mut statement =
            Statement { dialect: self.own.dialect, sql: sql.as_bytes(), tokens: &all, at: 0 };
        statement.at += usize::from(statement.word() == "COPY");
        self.own.own_table(&mut statement)?;
        statement.take_columns()?;
        if !statement.take(&["FROM", "STDIN"]) {
            return Err("its rows must follow: COPY … FROM stdin".to_owned());
        }
        // Options have no function and no condition.
        let options = &all[statement.at..];
        let words = options.iter().map(|token| statement.text(token).to_ascii_uppercase());
        if words.into_iter().any(|word| word == b"WHERE" || word == b"PROGRAM" || word == b";") {
            Err("its rows may have no condition".to_owned())
        } else {
            Ok(())
        }
    }

    /// Judges rows of a file for a table.
    ///
    /// # Errors
    /// The load did not make the table.
    pub fn judge_rows(&mut self, table: &TableName) -> Result<(), String> {
        let parts = table.folded(self.own.dialect);
        self.own.check_place(&SaidName { text: table.to_string(), parts })?;
        if self.own.is_made_text(table, RelationKind::Table) {
            Ok(())
        } else {
            Err(format!("no file of `schema` makes the table {table}"))
        }
    }

    fn statement(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        let mysql = statement.is_mysql();
        let verb = statement.word();
        statement.at += 1;
        match verb.as_str() {
            "CREATE" => create::create(&mut self.own, statement),
            "ALTER" => create::alter(&mut self.own, statement),
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
                statement.take(&["CONCURRENTLY"]);
                let view = self.own.own(&mut statement, &[RelationKind::MaterializedView])?;
                if !self.own.is_read(&view) {
                    return Err(format!("{} may read a view that nobody checked", view.text));
                }
                statement.take(&["WITH", "DATA"]);
                statement.take(&["WITH", "NO", "DATA"]);
                done(statement)
            }
            "ANALYZE" => {
                statement.take_any(&["TABLE", "VERBOSE"]);
                self.own.own_table(&mut statement)?;
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
        self.own.own_table(&mut statement)?;
        if statement.take(&["PARTITION"]) {
            statement.take_columns()?;
        }
        // Without columns, a query may stand in parentheses.
        let mut ahead = statement;
        if matches!(ahead.take_columns(), Ok(true)) {
            statement = ahead;
        }
        expressions::query(&mut self.own, statement)?;
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
                if !self.own.is_made_text(&name, RelationKind::Sequence) {
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
        if statement.take_sign(b')') { done(statement) } else { Err(other.to_owned()) }
    }

    fn comment(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        statement.take(&["ON"]);
        if let Some(kind) = dropped_kind(&mut statement) {
            self.own.own(&mut statement, &[kind])?;
            return is_text(statement);
        }
        let others = ["COLUMN", "CONSTRAINT", "EXTENSION", "SCHEMA", "STATISTICS"];
        match statement.take_any(&others).as_deref() {
            Some("STATISTICS") => {
                let name = statement.name()?;
                if !self.own.has_statistics(&name) {
                    return Err(format!("the load did not make {}", name.text));
                }
            }
            Some("EXTENSION" | "SCHEMA") => {
                return Ok(Admitted::left_out("it is not about a table of the load"));
            }
            Some("COLUMN") => {
                let mut column = statement.name()?;
                column.parts.pop();
                self.own.check_place(&column)?;
                let mut kinds = WITH_ROWS.to_vec();
                kinds.push(RelationKind::Type);
                if !self.own.is_made(&column, &kinds) {
                    return Err(format!("the load did not make {}", column.text));
                }
            }
            Some("CONSTRAINT") => {
                statement.name()?;
                statement.take(&["ON"]);
                let kind = if statement.take(&["DOMAIN"]) {
                    RelationKind::Type
                } else {
                    RelationKind::Table
                };
                self.own.own(&mut statement, &[kind])?;
            }
            _ => return Err("it is not about a table of the load".to_owned()),
        }
        is_text(statement)
    }

    fn lock(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        if !statement.take(&["TABLES"]) {
            return Err("a load may lock nothing but its tables".to_owned());
        }
        loop {
            self.own.own_table(&mut statement)?;
            statement.take_any(&["READ", "WRITE", "LOW_PRIORITY"]);
            statement.take_any(&["LOCAL", "WRITE"]);
            if !statement.take_sign(b',') {
                return done(statement);
            }
        }
    }

    /// DROP: what the load made goes. What it did not make is not there: rqps looks before.
    fn drop(&mut self, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
        if !statement.is_mysql() && statement.take(&["STATISTICS"]) {
            // They go with their table.
            return Ok(Admitted::left_out(NOTHING));
        }
        if !statement.is_mysql() && statement.take(&["EXTENSION"]) {
            return Ok(Admitted::left_out(EXTENSIONS));
        }
        let kind = match dropped_kind(&mut statement) {
            Some(kind) => kind,
            None => return Err("a load may drop nothing but its tables and views".to_owned()),
        };
        let (mut names, mut own) = (Vec::new(), 0);
        statement.take(&["CONCURRENTLY"]);
        statement.take(&["IF", "EXISTS"]);
        loop {
            let name = statement.name()?;
            self.own.check_place(&name)?;
            own += usize::from(self.own.forget(&name, kind));
            names.push(ChangedRelation { name: name.text, kind });
            if !statement.take_sign(b',') {
                break;
            }
        }
        if kind == RelationKind::Index && statement.take(&["ON"]) {
            self.own.own_table(&mut statement)?;
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

/// True for `SET …`, which makes and fills nothing.
fn is_setting(sql: &[u8], first: &Token) -> bool {
    sql[first.begin..first.end].eq_ignore_ascii_case(b"SET")
}

/// `IS 'text'` of COMMENT.
fn is_text(mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
    let is_text = statement.take(&["IS"]) && (statement.take(&["NULL"]) || statement.take_text());
    if is_text { done(statement) } else { Err("the comment is no text".to_owned()) }
}
