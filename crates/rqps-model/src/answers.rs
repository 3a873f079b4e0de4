//! The answers of one target to the first executions of the statements of a step, and what its
//! tables hold after a load: facts by which targets are compared before their speed is.

use serde::{Deserialize, Serialize};

use crate::row_digest::{OrderRecord, RowsRecord};

/// The answers to the first events of a step, with the same values on every target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepAnswers {
    /// In the order of the statements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<StatementAnswer>,
    /// The texts of the statements, also of those that write and so were not executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<String>,
    /// The reason for which there are not more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The answer to one statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatementAnswer {
    /// Its text: the place in [`StepAnswers::statements`].
    pub statement: u32,
    /// The values of its placeholders, up to a length; NULL is null.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Option<String>>,
    /// What came back.
    pub reply: AnswerReply,
    /// The plan with the work that it did (EXPLAIN (ANALYZE, BUFFERS)), of a fast statement on
    /// Postgres, after the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
}

/// What a server replied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerReply {
    /// Rows.
    Rows {
        /// Their number and checksums.
        #[serde(flatten)]
        rows: RowsRecord,
        /// Whether a second execution gave the same rows; `None` if there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeats: Option<bool>,
        /// Their sort keys, where the statement orders them by some.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        order: Option<Box<OrderRecord>>,
        /// Warnings and notices, up to a number: kind and code, a colon, the text.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// An error.
    Refused {
        /// SQLSTATE, or the code of the DBMS where it has none.
        code: String,
        /// Its message, up to a length.
        message: String,
    },
}

/// A table after a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableRecord {
    /// Its name, with the schema where that is not the usual one.
    pub name: String,
    /// Rows; `None` if they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// The content; `None` if only rows were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RowsRecord>,
    /// The reason for which something is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
