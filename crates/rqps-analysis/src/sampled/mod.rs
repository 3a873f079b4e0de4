//! Sampled runs: the CPU time of an operation by function, and the functions in which a target
//! takes more or less of it than the baseline.

mod difference;
mod functions;
mod judge;
mod tree;
mod waits;

pub use difference::{
    FunctionTime, Overhead, ProfileFacts, SampledChange, SampledFunction, SampledWait, WaitChange,
};
pub use judge::{
    FunctionFamily, FunctionSamples, LAYOUT_SHARE, SampledBlock, TimeTest, judge_functions,
};
pub use tree::{MergedNode, MergedTree};

pub(super) use difference::overhead;
pub(super) use functions::{compare, explain};
