//! Finds which of many versions in a row changed a value: by bisection where values repeat, by
//! Bayes' rule where they scatter. Both are state machines: they say which version to measure next,
//! and know nothing but the values so far.

mod exact;
mod noisy;
mod posterior;

pub use exact::{ExactRules, ExactSearch, ExactStep, Jump};
pub use noisy::{EndsDifference, NoisyRules, NoisySearch, NoisyStep, Suspects};
