//! What a load may do on a server that rqps does not run: a list of allowed statements. All else is
//! refused before anything is sent.

mod create;
mod expressions;
mod rules;
mod settings;
mod statement;
#[cfg(test)]
mod tests;
mod tokens;

pub use rules::{Admitted, LoadRules, dropped};
pub use settings::plain_modes;
