//! Why a number deserves doubt, as data: what, where, how much, and what to do about it.

use serde::Serialize;

use super::compare::Comparison;
use crate::domain::run::Dataset;

/// One reason for doubt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Caveat {
    /// Which kind; reports print each kind's advice once.
    pub kind: Kind,
    /// The target it is about; `None` for all.
    pub target: Option<String>,
    /// The steps it is about; empty for all.
    pub steps: Vec<String>,
    /// What was found, with its numbers.
    pub text: String,
}

/// Kinds of caveats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Fewer than three pairs.
    TooFewBlocks,
}

impl Kind {
    /// True if numbers may not be comparable at all: to be seen before the first of them.
    pub fn is_loud(self) -> bool {
        false
    }

    /// What it is, as a head.
    pub fn title(self) -> &'static str {
        "Too few blocks"
    }

    /// What to do about it.
    pub fn advice(self) -> &'static str {
        "Measure more blocks with --blocks."
    }
}

/// All caveats.
pub(super) fn find(_dataset: &Dataset, _comparison: &Comparison) -> Vec<Caveat> {
    Vec::new()
}
