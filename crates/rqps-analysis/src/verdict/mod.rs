//! Verdicts: for every metric of every step of every target, the decision and its evidence
//! (docs/verdicts.md).

mod explain;
mod family;
mod host;
mod judge;
mod judgement;
mod limit;
mod member;
mod open;
mod summary;

pub use judge::{judge_cluster_means, judge_differences, judge_in_turns, judge_on_host};
pub use judgement::{
    Explanation, FamilyFacts, Judgement, MeanTest, SharedVariance, SuiteMean, TOLD_TOGETHER,
    TargetVerdicts, Test, VerdictCounts, VerdictOptions, VerdictSummary,
};
pub use member::Kind;
pub use open::{OpenStep, open_steps};

pub(super) use explain::explanations;
pub(super) use judge::judge;
pub(super) use summary::summarize;
