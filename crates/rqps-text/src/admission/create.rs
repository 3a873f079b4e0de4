//! CREATE and ALTER in a load: tables, views, indexes, sequences and types of its own.

use crate::admission::expressions::{definition, query};
use crate::admission::statement::{
    ALL_KINDS, Admitted, EXTENSIONS, NOTHING, OwnObjects, Refusal, Statement, done, routines,
};
use crate::admission::tokens::{TokenKind, without_hints};
use crate::reading::{ChangedRelation, RelationKind};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::TableName;

/// Storage engines that keep rows in the data folder of the server, and nowhere else.
const ENGINES: [&str; 9] =
    ["INNODB", "MYISAM", "ARIA", "MEMORY", "HEAP", "ROCKSDB", "ARCHIVE", "NDB", "NDBCLUSTER"];

/// Words of tables of MySQL that name files or other tables.
const ELSEWHERE: [&str; 6] = ["DIRECTORY", "DISCARD", "EXCHANGE", "IMPORT", "OUTFILE", "DUMPFILE"];

const OTHER_OBJECTS: &str =
    "a load may make nothing but tables, views, indexes, sequences and types";

const OF_OWNER: &str = "the owner of what rqps loads is its login";

/// `CREATE …`, after the first word.
pub(super) fn create(
    rules: &mut OwnObjects,
    mut statement: Statement<'_>,
) -> Result<Admitted, Refusal> {
    let mysql = statement.is_mysql();
    let begin = statement.at;
    let replaces = statement.take(&["OR", "REPLACE"]);
    let replacing = span(&statement, begin);
    if mysql {
        view_options(&mut statement)?;
    }
    if statement.take(&["UNLOGGED"]) && statement.word() != "TABLE" {
        return Err(OTHER_OBJECTS.to_owned());
    }
    let is_unique = statement.take_any(&["UNIQUE", "FULLTEXT", "SPATIAL"]).is_some();
    let kind = match statement.word().as_str() {
        "INDEX" => RelationKind::Index,
        _ if is_unique => return Err(OTHER_OBJECTS.to_owned()),
        "TABLE" => RelationKind::Table,
        "VIEW" => RelationKind::View,
        "MATERIALIZED" if !mysql && statement.word_at(1) == "VIEW" => {
            statement.at += 1;
            RelationKind::MaterializedView
        }
        "SEQUENCE" => RelationKind::Sequence,
        "TYPE" | "DOMAIN" if !mysql => RelationKind::Type,
        "STATISTICS" if !mysql => return statistics(rules, statement),
        "EXTENSION" if !mysql => {
            return Ok(Admitted::left_out(EXTENSIONS));
        }
        "FUNCTION" | "PROCEDURE" | "TRIGGER" | "RULE" | "EVENT" | "AGGREGATE" | "POLICY"
        | "CONSTRAINT" => return Err(routines()),
        _ => return Err(OTHER_OBJECTS.to_owned()),
    };
    if replaces && kind != RelationKind::View {
        return Err("OR REPLACE takes the place of something else".to_owned());
    }
    statement.at += 1;
    statement.take(&["CONCURRENTLY"]);
    let begin = statement.at;
    let mut admitted = Admitted::default();
    if statement.take(&["IF", "NOT", "EXISTS"]) {
        admitted.without.push(span(&statement, begin));
    }
    if kind == RelationKind::Index {
        index(rules, statement)?;
        return Ok(admitted);
    }
    let name = statement.name()?;
    let is_known = rules.is_made(&name, &[kind]);
    if is_known && !admitted.without.is_empty() {
        return Err(format!("the load made {} before", name.text));
    }
    if replaces && !is_known {
        admitted.without.push(replacing);
    }
    let was_named = rules.was_named(&name);
    admitted.makes.push(rules.make(&name, kind)?);
    body(rules, kind, statement)?;
    if kind == RelationKind::View && query(rules, statement).is_err() {
        rules.hide(&name, was_named);
    }
    Ok(admitted)
}

/// What follows the name of a new object.
fn body(
    rules: &mut OwnObjects,
    kind: RelationKind,
    mut statement: Statement<'_>,
) -> Result<(), Refusal> {
    match kind {
        RelationKind::Table => table(rules, statement),
        // Its query is not executed, unless the load reads it.
        RelationKind::View => one_statement(statement),
        RelationKind::MaterializedView => query(rules, statement),
        RelationKind::Type if statement.take(&["AS", "RANGE"]) || statement.is_sign(b'(') => {
            Err("a type with functions is not the load's business".to_owned())
        }
        RelationKind::Sequence => {
            if statement.is_mysql() {
                stays_here(statement)?;
            }
            let mut ahead = statement;
            while !ahead.is_over() {
                if ahead.take(&["OWNED", "BY"]) && !ahead.take(&["NONE"]) {
                    return Err("OWNED BY is expected in ALTER SEQUENCE".to_owned());
                }
                ahead.at += 1;
            }
            definition(rules, statement)
        }
        _ => definition(rules, statement),
    }
}

/// The bytes from a token to the one that follows.
fn span(statement: &Statement<'_>, begin: usize) -> std::ops::Range<usize> {
    let byte = |at: usize| statement.tokens.get(at).map_or(statement.sql.len(), |it| it.begin);
    byte(begin)..byte(statement.at)
}

/// `ALGORITHM=… DEFINER=… SQL SECURITY …` before VIEW.
fn view_options(statement: &mut Statement<'_>) -> Result<(), Refusal> {
    if statement.take(&["ALGORITHM"]) {
        statement.take_sign(b'=');
        statement.at += 1;
    }
    if statement.word() == "DEFINER" {
        return Err("it names the user with whose rights it runs".to_owned());
    }
    if statement.take(&["SQL", "SECURITY"]) {
        statement.take_any(&["DEFINER", "INVOKER"]);
    }
    Ok(())
}

/// The rest of `CREATE INDEX`.
fn index(rules: &mut OwnObjects, mut statement: Statement<'_>) -> Result<(), Refusal> {
    if statement.word() != "ON" {
        let name = statement.name()?;
        if name.parts.len() > 1 {
            return Err("an index has no schema".to_owned());
        }
        rules.make(&name, RelationKind::Index)?;
        if statement.take(&["USING"]) {
            statement.at += 1;
        }
    }
    if !statement.take(&["ON"]) {
        return Err("ON is missing".to_owned());
    }
    statement.take(&["ONLY"]);
    rules.own(&mut statement, &[RelationKind::Table, RelationKind::MaterializedView])?;
    definition(rules, statement)
}

/// `CREATE STATISTICS`, which go with their table, from the word of their kind.
fn statistics(rules: &mut OwnObjects, mut statement: Statement<'_>) -> Result<Admitted, Refusal> {
    let mut admitted = Admitted::default();
    statement.at += 1;
    let begin = statement.at;
    if statement.take(&["IF", "NOT", "EXISTS"]) {
        admitted.without.push(span(&statement, begin));
    }
    let name = statement.name()?;
    rules.make_statistics(&name)?;
    statement.take_columns()?;
    if !statement.take(&["ON"]) {
        return Err("ON is missing".to_owned());
    }
    // Its FROM must name a table of the load.
    query(rules, statement)?;
    Ok(admitted)
}

/// The rest of `CREATE TABLE`.
fn table(rules: &mut OwnObjects, mut statement: Statement<'_>) -> Result<(), Refusal> {
    if statement.is_mysql() {
        if statement.take(&["LIKE"]) {
            rules.own_table(&mut statement)?;
            return statement.end();
        }
        stays_here(statement)?;
    }
    if statement.take(&["PARTITION", "OF"]) {
        rules.own_table(&mut statement)?;
    } else if statement.take(&["OF"]) {
        rules.own(&mut statement, &[RelationKind::Type])?;
    }
    made_within(rules, statement)?;
    // The columns of `CREATE TABLE t (a) AS SELECT …` are no call.
    definition(rules, statement)
}

/// Notes the sequences that identities of columns name, and the indexes of named constraints.
fn made_within(rules: &mut OwnObjects, mut statement: Statement<'_>) -> Result<(), Refusal> {
    while !statement.is_over() && !statement.is_mysql() {
        let is_column = statement.at > 0 && statement.is_sign_before(b'.');
        if is_column {
            statement.at += 1;
        } else if statement.take(&["AS", "IDENTITY"]) {
            let mut inside = statement;
            if statement.is_sign(b'(') {
                statement.pass_parentheses()?;
            }
            while inside.at < statement.at {
                if inside.take(&["SEQUENCE", "NAME"]) {
                    let name = inside.name()?;
                    rules.make(&name, RelationKind::Sequence)?;
                } else {
                    inside.at += 1;
                }
            }
        } else if statement.take(&["CONSTRAINT"]) {
            let name = statement.name()?;
            let kinds = ["PRIMARY", "UNIQUE", "EXCLUDE"];
            if name.parts.len() == 1 && kinds.contains(&statement.word().as_str()) {
                rules.make(&name, RelationKind::Index)?;
            }
        } else {
            statement.at += 1;
        }
    }
    Ok(())
}

/// Refuses tables of MySQL and MariaDB whose rows are elsewhere.
fn stays_here(mut statement: Statement<'_>) -> Result<(), Refusal> {
    while let Some(token) = statement.peek() {
        let word = statement.word();
        statement.at += 1;
        let assigns = statement.is_sign(b'=');
        let is_text = statement.peek().is_some_and(|next| next.kind == TokenKind::Text);
        match word.as_str() {
            "ENGINE" => {
                statement.take_sign(b'=');
                let engine = statement.peek().map_or(&b""[..], |token| statement.text(token));
                let engine = String::from_utf8_lossy(engine).to_ascii_uppercase();
                if !ENGINES.contains(&engine.trim_matches(['`', '\'', '"'])) {
                    return Err(format!("tables of the engine {engine} may be elsewhere"));
                }
                statement.at += 1;
            }
            "CONNECTION" | "UNION" if assigns || is_text || statement.is_sign(b'(') => {
                return Err(format!("{word} names other tables"));
            }
            "NEXT" if statement.word() == "VALUE" => {
                return Err("it takes a value of a sequence".to_owned());
            }
            word if ELSEWHERE.contains(&word) && token.kind == TokenKind::Word => {
                return Err(format!("{word} leads out of the tables of the load"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Refuses a second statement within a definition that is not executed.
fn one_statement(mut statement: Statement<'_>) -> Result<(), Refusal> {
    while !statement.is_over() {
        if statement.is_sign(b';') {
            return Err("it holds a second statement".to_owned());
        }
        if ELSEWHERE.contains(&statement.word().as_str()) {
            return Err(format!("{} is not expected in a view", statement.word()));
        }
        statement.at += 1;
    }
    Ok(())
}

/// `ALTER …`, after the first word.
pub(super) fn alter(
    rules: &mut OwnObjects,
    mut statement: Statement<'_>,
) -> Result<Admitted, Refusal> {
    if !statement.is_mysql() && statement.take(&["STATISTICS"]) {
        let name = statement.name()?;
        return match statement.word().as_str() {
            "OWNER" if rules.has_statistics(&name) => Ok(Admitted::left_out(OF_OWNER)),
            "SET" if rules.has_statistics(&name) && statement.word_at(1) == "STATISTICS" => {
                statement.at += 2;
                statement.take_number();
                done(statement)
            }
            _ => Err(format!("the load did not make {}", name.text)),
        };
    }
    let Some(kind) = dropped_kind(&mut statement) else {
        return Err("a load may change nothing but what it made".to_owned());
    };
    let is_optional = statement.take(&["IF", "EXISTS"]);
    statement.take(&["ONLY"]);
    let mut ahead = statement;
    let name = ahead.name()?;
    // Older dumps say TABLE for views and sequences, too.
    if ahead.word() == "OWNER" && rules.is_made(&name, &ALL_KINDS) {
        return Ok(Admitted::left_out(OF_OWNER));
    }
    if is_optional && !rules.is_made(&name, &[kind]) && !statement.is_mysql() {
        rules.check_place(&name)?;
        let mut left_out = Admitted::left_out(NOTHING);
        left_out.makes.push(ChangedRelation { name: name.text, kind });
        return Ok(left_out);
    }
    rules.own(&mut statement, &[kind])?;
    if kind == RelationKind::Table {
        if statement.is_mysql() {
            stays_here(statement)?;
        }
        actions(rules, statement)?;
        made_within(rules, statement)?;
        return Ok(Admitted::default());
    }
    match kind {
        // `OWNED BY t.a`, and numbers.
        RelationKind::Sequence => {
            if statement.take(&["OWNED", "BY"]) && !statement.take(&["NONE"]) {
                let mut column = statement.name()?;
                column.parts.pop();
                if !rules.is_made(&column, &[RelationKind::Table]) {
                    return Err(format!("the load did not make {}", column.text));
                }
                rules.belongs(&name);
                return done(statement);
            }
            if ["RENAME", "SET"].contains(&statement.word().as_str()) {
                return Err(format!("{} is not expected there", statement.word()));
            }
            definition(rules, statement)?;
        }
        RelationKind::Index if statement.take(&["ATTACH", "PARTITION"]) => {
            rules.own(&mut statement, &[kind])?;
            return done(statement);
        }
        _ => return Err("a load may change nothing but its tables and sequences".to_owned()),
    }
    Ok(Admitted::default())
}

/// The actions of `ALTER TABLE`, each of which must be known.
fn actions(rules: &mut OwnObjects, statement: Statement<'_>) -> Result<(), Refusal> {
    let mut action = statement;
    loop {
        one_action(rules, &mut action)?;
        // To the comma before the next one.
        while !action.is_over() && !action.is_sign(b',') {
            // A column that is there already brings no sequence and no index of that name.
            if !action.is_mysql() && action.take(&["IF", "NOT", "EXISTS"]) {
                return Err("with IF NOT EXISTS nobody knows what it makes".to_owned());
            }
            if action.is_sign(b'(') { action.pass_parentheses()? } else { action.at += 1 }
        }
        if !action.take_sign(b',') {
            return definition(rules, statement);
        }
    }
}

fn one_action(rules: &mut OwnObjects, action: &mut Statement<'_>) -> Result<(), Refusal> {
    let word = action.word();
    action.at += 1;
    let is_known = match word.as_str() {
        "ADD" | "ALTER" | "CLUSTER" | "VALIDATE" | "REPLICA" => true,
        "MODIFY" | "AUTO_INCREMENT" | "COMMENT" => action.is_mysql(),
        "ENABLE" | "DISABLE" => action.is_mysql() && action.word() == "KEYS",
        "ATTACH" => action.take(&["PARTITION"]) && rules.own_table(action).is_ok(),
        "INHERIT" => rules.own_table(action).is_ok(),
        "SET" => {
            let words = ["WITHOUT", "LOGGED", "UNLOGGED"];
            words.contains(&action.word().as_str()) || action.is_sign(b'(')
        }
        "DROP" => {
            let mut rest = *action;
            let mut cascades = false;
            while !rest.is_over() && !rest.is_sign(b',') {
                cascades |= rest.word() == "CASCADE";
                rest.at += 1;
            }
            !cascades && ["CONSTRAINT", "COLUMN"].contains(&action.word().as_str())
        }
        _ => false,
    };
    if is_known {
        Ok(())
    } else {
        Err(format!("a load may not change a table by {word} {}", action.shown()))
    }
}

// Statements that drop something.

/// Takes the word of a kind that a load may drop.
pub(super) fn dropped_kind(statement: &mut Statement<'_>) -> Option<RelationKind> {
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
            "each entry of `drop` is a table or one DROP statement without `;`, not {entry:?}: \
             {why}"
        ))
    };
    let all = match without_hints(dialect, entry.as_bytes()) {
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
