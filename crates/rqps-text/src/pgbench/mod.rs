//! Scripts of pgbench as a user wrote them: SQL with backslash commands, and their expressions.

mod expression;
mod script;
mod setrandom;
mod tokens;
mod variables;

#[cfg(test)]
mod tests;

pub use expression::{PgbenchExpression, PgbenchFunction, PgbenchValue};
pub use script::{
    PgbenchAction, PgbenchCommand, PgbenchProgram, PgbenchSleep, PgbenchSql, SqlPiece, StoredRow,
};
pub use tokens::ScriptFault;
pub use variables::{VariableNames, is_variable_name};
