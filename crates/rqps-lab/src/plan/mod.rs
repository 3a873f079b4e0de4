//! Plans: what to measure, in which order, and at which cost. Pure, printable, hashed.

mod block_spec;
mod blocks;
mod client_hosts;
pub mod cost;
mod definition;
pub mod file;
pub mod order;
mod own_files;
mod sittings;
mod time_left;
pub mod words;

pub use block_spec::{BlockSpec, SpecError, TargetSlot};
pub use blocks::{Auto, Blocks};
pub use client_hosts::shared_clients;
pub use definition::{CountingPass, Interleave, Plan, PlanDraft, ProfilingPass};
pub use own_files::{OwnFile, StepFile, own_files, step_files};
pub use sittings::Sittings;
pub use time_left::TimeLeft;
