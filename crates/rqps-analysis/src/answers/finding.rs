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
#[derive(Debug, PartialEq)]
pub(super) struct Told {
    pub(super) weight: AnswerWeight,
    pub(super) text: String,
}

impl Told {
    pub(super) fn answer(text: String) -> Told {
        Told { weight: AnswerWeight::Answer, text }
    }

    pub(super) fn harmless(text: impl Into<String>) -> Told {
        Told { weight: AnswerWeight::Harmless, text: text.into() }
    }

    pub(super) fn uncompared(text: impl Into<String>) -> Told {
        Told { weight: AnswerWeight::Uncompared, text: text.into() }
    }
}

/// The same thing of the baseline and of a target, with the labels of both.
#[derive(Debug)]
pub(super) struct Sides<'a, T> {
    pub(super) base: &'a T,
    pub(super) target: &'a T,
    pub(super) labels: [&'a str; 2],
}

impl<'a, T> Sides<'a, T> {
    /// The same with a part of both.
    pub(super) fn with<U>(&self, base: &'a U, target: &'a U) -> Sides<'a, U> {
        Sides { base, target, labels: self.labels }
    }

    /// What `say` says of each, with the label.
    pub(super) fn told(&self, say: impl Fn(&str, &T) -> String) -> [String; 2] {
        [say(self.labels[0], self.base), say(self.labels[1], self.target)]
    }
}
