//! The answer to a statement of a load.

use std::ops::Range;

use crate::admission::statement::{Refusal, Statement};
use crate::changes::ChangedRelation;

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

/// The statement would do nothing.
pub(super) const NOTHING: &str = "";

pub(super) const EXTENSIONS: &str = "extensions are the business of the server's owner";

const ROUTINES: &str = "functions, procedures, triggers and rules hold statements that nobody sees \
                        here\nhint: dump without them (mysqldump --skip-triggers), or make them \
                        yourself and measure the tables as they are, without `load = true`";

/// The end of a statement that is admitted.
pub(super) fn done(statement: Statement<'_>) -> Result<Admitted, Refusal> {
    statement.end().map(|()| Admitted::default())
}

/// Why routines and the like are refused.
pub(super) fn routines() -> Refusal {
    ROUTINES.to_owned()
}
