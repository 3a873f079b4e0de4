//! A block that a job of Slurm measures, as the queue shows it.

use std::time::Instant;

use super::cells::Cell;
use super::life_line::STOPPED;
use super::slurm_queue::{self, QueuedTask};

/// Starts of a block on hosts that failed; then it is given up. A held job is released as often.
pub(super) const TRIES: u32 = 3;

/// A block that a job measures, by the name of its cell.
pub(super) struct UnderWay {
    pub(super) cell: Cell,
    /// Name of the job, and task.
    pub(super) batch: (String, usize),
    pub(super) task: Option<QueuedTask>,
    pub(super) tries: u32,
    /// Nodes that failed it.
    pub(super) avoided: Vec<String>,
    /// Since when no job of it is left.
    pub(super) gone: Option<Instant>,
    pub(super) releases: u32,
}

impl UnderWay {
    pub(super) fn new(cell: Cell, batch: (String, usize)) -> UnderWay {
        UnderWay { cell, batch, task: None, tries: 1, avoided: Vec::new(), gone: None, releases: 0 }
    }

    /// Takes up what the queue says; returns what a user wants to know of it.
    pub(super) fn look(&mut self, task: Option<&QueuedTask>) -> Option<String> {
        let before = self.task.as_ref().map(|task| (task.state.clone(), task.node.clone()));
        let number = self.cell.spec.block;
        let Some(task) = task else {
            self.gone.get_or_insert_with(Instant::now);
            return None;
        };
        self.task = Some(task.clone());
        if task.has_ended() {
            self.gone.get_or_insert_with(Instant::now);
            return None;
        }
        self.gone = None;
        let ran = before.filter(|(state, _)| state == "RUNNING" || state == "COMPLETING");
        if task.state != "PENDING" {
            return None;
        }
        if task.reason.to_lowercase().contains("requeued held") && self.releases < TRIES {
            self.releases += 1;
            return Some(match slurm_queue::release(task) {
                Ok(()) => format!("block {number}: Slurm could not start it; rqps released it"),
                Err(error) => {
                    format!("block {number}: Slurm holds it ({}): {error:#}", task.reason)
                }
            });
        }
        let (_, node) = ran?;
        Some(format!("block {number}: node {node} failed; Slurm starts the block again"))
    }

    /// True if a report may be there: a job that waits for its first start has written none.
    pub(super) fn may_have_ended(&self) -> bool {
        self.task.as_ref().is_none_or(|task| task.state != "PENDING") || self.gone.is_some()
    }

    /// Why the job left no report, and whether it is worth starting the block again.
    pub(super) fn end(&mut self, said: Option<String>) -> (String, bool) {
        let said = said.map(|said| format!(": {said}")).unwrap_or_default();
        let Some(task) = self.task.clone() else {
            return (format!("its job is gone from the queue{said}"), true);
        };
        let (why, again) = why_ended(&task, &said);
        let is_of_node = ["NODE_FAIL", "BOOT_FAIL", "PREEMPTED"].contains(&task.state.as_str());
        if again && !is_of_node && !task.node.is_empty() && !self.avoided.contains(&task.node) {
            self.avoided.push(task.node);
        }
        (why, again)
    }
}

/// As [`UnderWay::end`], by the state of the job. `said` is the end of its log, as a clause.
fn why_ended(task: &QueuedTask, said: &str) -> (String, bool) {
    let node = if task.node.is_empty() { "no node" } else { &task.node };
    let hint = "hint: raise it, such as --sbatch=--time=120";
    match task.state.as_str() {
        "TIMEOUT" => (format!("the time limit of its job on {node} was reached\n{hint}"), false),
        // The block has stopped its servers in good order and ended before the limit.
        "FAILED" if said.contains(STOPPED) => (
            format!("Slurm stopped its job on {node} shortly before its time limit\n{hint}"),
            false,
        ),
        "CANCELLED" => {
            (format!("its job was cancelled{said}\nhint: `rqps run --resume` repeats it"), false)
        }
        state => (format!("its job ended with {state} on {node}{said}"), true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_limit_is_told_and_no_reason_to_start_again() {
        let task = |state: &str| QueuedTask {
            state: state.to_owned(),
            node: "n1".to_owned(),
            ..QueuedTask::default()
        };
        let stopped = format!(": failed to {STOPPED}");
        for (state, said, part, again) in [
            ("TIMEOUT", "", "the time limit of its job on n1 was reached\nhint: ", false),
            ("FAILED", stopped.as_str(), "on n1 shortly before its time limit\nhint: ", false),
            ("FAILED", ": no space", "its job ended with FAILED on n1: no space", true),
            ("CANCELLED", stopped.as_str(), "its job was cancelled", false),
            ("NODE_FAIL", "", "its job ended with NODE_FAIL on n1", true),
        ] {
            let (why, retried) = why_ended(&task(state), said);
            assert!(why.contains(part) && retried == again, "{state}: {why}");
        }
    }
}
