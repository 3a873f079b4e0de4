//! Plans: what to measure, in which order, and at which cost. Pure, printable, hashed.

mod blocks;
mod client_hosts;
pub mod cost;
mod definition;
pub mod file;
pub mod words;

pub(crate) use blocks::orders;
pub use blocks::{Auto, BlockSpec, Blocks, Sittings, SpecError, TargetSlot};
pub use client_hosts::shared_clients;
pub use cost::TimeLeft;
pub use definition::{
    CountingPass, Interleave, OwnFile, Plan, PlanDraft, ProfilingPass, StepFile, own_files,
    step_files,
};
