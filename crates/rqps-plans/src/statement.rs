//! Statements whose plans are compared.

use serde::{Deserialize, Serialize};

use rqps_model::dialect::Dialect;
use rqps_text::words;

/// A statement, and what share of the load it is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// Its number in its file or list, from 1.
    pub number: usize,
    /// Its text, without the `;` at its end.
    pub text: String,
    /// Where it is from: a file and a line, or a list of the server.
    pub origin: String,
    /// Its share of the time that the source spends, from 0 to 1.
    pub share: Option<f64>,
}

impl Statement {
    /// Its first word, in capitals.
    pub fn first_word(&self, dialect: Dialect) -> String {
        let mut words = words(dialect, &self.text).into_iter();
        words.find(|word| word != "(").unwrap_or_default()
    }

    /// Its text in one line.
    pub fn line(&self) -> String {
        self.text.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}
