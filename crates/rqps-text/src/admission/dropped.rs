//! Statements that drop something.

use crate::admission::statement::Statement;
use crate::admission::tokens::without_hints;
use crate::changes::{ChangedRelation, RelationKind};
use rqps_model::dialect::Dialect;
use rqps_model::sql_name::TableName;

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
