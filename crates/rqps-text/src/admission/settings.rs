//! SET in a load: settings of the session that change neither rights nor how statements are read.

use std::collections::BTreeMap;

use crate::admission::statement::{Refusal, Statement};
use crate::admission::tokens::TokenKind;

/// Settings of Postgres that a load may change for its session.
const OF_POSTGRES: [&str; 29] = [
    "BYTEA_OUTPUT",
    "CHECK_FUNCTION_BODIES",
    "CLIENT_ENCODING",
    "CLIENT_MIN_MESSAGES",
    "CONSTRAINT_EXCLUSION",
    "DATESTYLE",
    "DEFAULT_TABLESPACE",
    "DEFAULT_TABLE_ACCESS_METHOD",
    "DEFAULT_TOAST_COMPRESSION",
    "DEFAULT_WITH_OIDS",
    "ESCAPE_STRING_WARNING",
    "EXTRA_FLOAT_DIGITS",
    "IDLE_IN_TRANSACTION_SESSION_TIMEOUT",
    "INTERVALSTYLE",
    "LOCK_TIMEOUT",
    "MAINTENANCE_WORK_MEM",
    "MAX_PARALLEL_MAINTENANCE_WORKERS",
    "QUOTE_ALL_IDENTIFIERS",
    "RESTRICT_NONSYSTEM_RELATION_KIND",
    "ROW_SECURITY",
    "STANDARD_CONFORMING_STRINGS",
    "STATEMENT_TIMEOUT",
    "SYNCHRONIZE_SEQSCANS",
    "SYNCHRONOUS_COMMIT",
    "TIMEZONE",
    "TRANSACTION_TIMEOUT",
    "WORK_MEM",
    "XMLOPTION",
    "JIT",
];

/// Encodings in which no byte of a letter is a quote or a backslash.
const ENCODINGS: [&str; 8] =
    ["UTF8", "UTF-8", "UNICODE", "SQL_ASCII", "LATIN1", "LATIN9", "WIN1251", "WIN1252"];

/// The same of MySQL.
const CHARACTER_SETS: [&str; 10] = [
    "UTF8", "UTF8MB3", "UTF8MB4", "LATIN1", "LATIN2", "ASCII", "BINARY", "CP1250", "CP1251",
    "KOI8R",
];

/// Settings of MySQL and MariaDB that a load may change for its session.
const OF_MYSQL: [&str; 16] = [
    "AUTOCOMMIT", "BULK_INSERT_BUFFER_SIZE", "CHARACTER_SET_CLIENT", "CHARACTER_SET_RESULTS",
    "COLLATION_CONNECTION", "FOREIGN_KEY_CHECKS", "INNODB_LOCK_WAIT_TIMEOUT", "LOCK_WAIT_TIMEOUT",
    "MAX_STATEMENT_TIME", "NOTE_VERBOSITY", "SORT_BUFFER_SIZE", "SQL_MODE", "SQL_NOTES",
    "SQL_QUOTE_SHOW_CREATE", "TIME_ZONE", "UNIQUE_CHECKS",
];

/// Modes with which MySQL reads a statement in another way.
const OTHER_READINGS: [&str; 8] = [
    "ANSI", "ANSI_QUOTES", "DB2", "MAXDB", "MSSQL", "NO_BACKSLASH_ESCAPES", "ORACLE", "POSTGRESQL",
];

/// The modes of a text that do not change how MySQL reads statements.
pub fn plain_modes(modes: &str) -> String {
    let is_plain =
        |mode: &&str| !OTHER_READINGS.contains(&mode.trim().to_ascii_uppercase().as_str());
    modes.split(',').filter(is_plain).collect::<Vec<_>>().join(",")
}

/// `SET name = value` of Postgres.
pub(super) fn of_postgres(statement: &mut Statement<'_>) -> Result<(), Refusal> {
    // Both are of this session.
    statement.take_any(&["SESSION", "LOCAL"]);
    let name = statement.word();
    statement.at += 1;
    if name == "TIME" && statement.take(&["ZONE"]) {
        return value(statement).map(drop);
    }
    if !OF_POSTGRES.contains(&name.as_str()) {
        return Err(format!("a load may not set {}", name.to_lowercase()));
    }
    if !statement.take(&["TO"]) && !statement.take_sign(b'=') {
        return Err("`=` is missing".to_owned());
    }
    let mut values = vec![value(statement)?];
    while statement.take_sign(b',') {
        values.push(value(statement)?);
    }
    let said = values.join(",").to_uppercase();
    let is_kept = match name.as_str() {
        // Others would end a text elsewhere.
        "STANDARD_CONFORMING_STRINGS" => ["ON", "TRUE", "1"].contains(&said.as_str()),
        "CLIENT_ENCODING" => ENCODINGS.contains(&said.as_str()),
        "DEFAULT_TABLESPACE" => said.is_empty(),
        _ => true,
    };
    if is_kept {
        Ok(())
    } else {
        Err(format!("a load may not set {} to {said:?}", name.to_lowercase()))
    }
}

/// A literal, a number or a word.
fn value(statement: &mut Statement<'_>) -> Result<String, Refusal> {
    if let Some(text) = statement.take_literal() {
        return Ok(text);
    }
    statement.take_sign(b'-');
    match statement.peek() {
        Some(token) if matches!(token.kind, TokenKind::Word | TokenKind::Number) => {
            statement.at += 1;
            Ok(String::from_utf8_lossy(statement.text(token)).into_owned())
        }
        _ => Err(format!("`{}` is no plain value", statement.shown())),
    }
}

/// Variables of the user, and the setting that each holds; `None` if it may hold anything else.
pub(super) type SavedSettings = BTreeMap<String, Option<String>>;

/// `SET` of MySQL and MariaDB.
pub(super) fn of_mysql(
    statement: &mut Statement<'_>,
    saved: &mut SavedSettings,
) -> Result<(), Refusal> {
    if statement.take(&["NAMES"]) || statement.take(&["CHARACTER", "SET"]) {
        let set = value(statement)?;
        if statement.take(&["COLLATE"]) {
            value(statement)?;
        }
        return character_set(&set);
    }
    loop {
        assignment(statement, saved)?;
        if !statement.take_sign(b',') {
            return Ok(());
        }
    }
}

fn character_set(name: &str) -> Result<(), Refusal> {
    if CHARACTER_SETS.contains(&name.to_ascii_uppercase().as_str()) {
        Ok(())
    } else {
        Err(format!("a load may not use the character set {name}"))
    }
}

fn assignment(statement: &mut Statement<'_>, saved: &mut SavedSettings) -> Result<(), Refusal> {
    let Setting { name, is_of_user } = setting(statement)?;
    if !statement.take_sign(b'=') {
        return Err("`=` is missing".to_owned());
    }
    if statement.is_sign(b'@') {
        let from = setting(statement)?;
        if is_of_user && !from.is_of_user {
            keep(saved, name, Some(from.name));
            return Ok(());
        }
        let is_restored =
            !is_of_user && from.is_of_user && saved.get(&from.name) == Some(&Some(name.clone()));
        return if is_restored && OF_MYSQL.contains(&name.as_str()) {
            Ok(())
        } else {
            Err(format!("a load may not set {name} to {}", from.name))
        };
    }
    let is_number = statement.peek().is_some_and(|token| token.kind == TokenKind::Number);
    let said = value(statement)?;
    if is_of_user {
        keep(saved, name, None);
        return Ok(());
    }
    if !OF_MYSQL.contains(&name.as_str()) {
        return Err(format!("a load may not set {}", name.to_lowercase()));
    }
    let is_of_list = |byte: u8| byte.is_ascii_alphanumeric() || b"_, ".contains(&byte);
    let begins_with_digit =
        |mode: &str| mode.trim().starts_with(|first: char| first.is_ascii_digit());
    let is_list = said.bytes().all(is_of_list)
        && !said.split(',').any(begins_with_digit)
        && !said.eq_ignore_ascii_case("DEFAULT");
    match name.as_str() {
        // The default may be any mode, a number too, and letters are compared without accents.
        "SQL_MODE" if is_number || !is_list || plain_modes(&said) != said => {
            Err(format!("with sql_mode {said:?} the server reads statements in another way"))
        }
        "CHARACTER_SET_CLIENT" => character_set(&said),
        _ => Ok(()),
    }
}

/// Remembers what a variable holds. Whether a comment is executed is not known here, so a variable
/// that held two things may hold either.
fn keep(saved: &mut SavedSettings, name: String, setting: Option<String>) {
    let known = saved.entry(name).or_insert_with(|| setting.clone());
    if *known != setting {
        *known = None;
    }
}

/// A variable in SET.
struct Setting {
    name: String,
    /// `@name`.
    is_of_user: bool,
}

/// `name`, `SESSION name`, `@@name`, `@@SESSION.name` or `@name`.
fn setting(statement: &mut Statement<'_>) -> Result<Setting, Refusal> {
    let (mut is_of_user, mut is_system) = (false, false);
    if statement.take_sign(b'@') {
        is_system = statement.take_sign(b'@');
        is_of_user = !is_system;
    }
    if !is_of_user && statement.take_any(&["SESSION", "LOCAL"]).is_some() && is_system {
        statement.take_sign(b'.');
    }
    let name = statement.word();
    if name.is_empty() || ["GLOBAL", "PERSIST", "PERSIST_ONLY"].contains(&name.as_str()) {
        return Err("a load may set nothing but variables of its session".to_owned());
    }
    statement.at += 1;
    if statement.is_sign(b'.') {
        Err("a load may set nothing but variables of its session".to_owned())
    } else {
        Ok(Setting { name, is_of_user })
    }
}
