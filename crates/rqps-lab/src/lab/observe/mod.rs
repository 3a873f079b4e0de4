//! Observers of a step: counters of host, server and CPU, who else is at work, the server's log,
//! the counters of the DBMS, its stacks and waits. One file for each [`StepObserver`].

mod counters;
mod cpu_events;
mod dbms_counters;
mod disturbance;
mod observer;
mod profile;
mod server_log;
mod waits;

pub(super) use counters::CounterObserver;
pub(super) use cpu_events::CpuEventObserver;
pub(super) use dbms_counters::DbmsCounterObserver;
pub(super) use disturbance::DisturbanceObserver;
pub(super) use observer::{Edge, Observed, Observers, SampledStacks, StepObserver};
pub(super) use profile::ProfileObserver;
pub(super) use server_log::ServerLogObserver;
pub(super) use waits::WaitObserver;
