//! What a load may do on a server that rqps does not run: a list of allowed statements. All else is
//! refused before anything is sent.

mod create;
mod dropped;
mod expressions;
mod own;
mod rules;
mod settings;
mod statement;
#[cfg(test)]
mod tests;
mod tokens;

pub use dropped::dropped;
pub(crate) use expressions::is_harmless_before_parenthesis;
pub use rules::LoadRules;
pub use settings::plain_modes;
pub use statement::Admitted;
pub use tokens::is_one_statement;
pub(crate) use tokens::without_hints;
pub use tokens::{Token, TokenKind, VersionComment, tokens};
