//! What was found out about answers and data, as data.

/// What was found out about a target against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerFinding {
    /// What it means.
    pub weight: AnswerWeight,
    /// The target.
    pub target: String,
    /// The steps that it is about.
    pub steps: Vec<String>,
    /// The difference.
    pub text: String,
}

/// What a difference means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnswerWeight {
    /// Tables hold other rows.
    Data,
    /// A statement has another answer.
    Answer,
    /// A difference that says nothing against the target.
    Harmless,
    /// Nothing could be compared.
    Uncompared,
}

/// A difference and its weight.
pub(super) type Told = (AnswerWeight, String);
