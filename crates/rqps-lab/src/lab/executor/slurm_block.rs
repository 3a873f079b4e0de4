//! A block that a job of Slurm measures, as the queue shows it.

use std::collections::BTreeSet;
use std::time::Instant;

use super::STOPPED;
use super::cells::Cell;
use super::slurm_queue::{self, QueuedTask};

/// Slurm sends its signal up to so many seconds before the end of a job's time limit: a minute that
/// the job script asks for, and another by which Slurm may be early.
const NEAR_LIMIT: u64 = 120;
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
    /// True once a node has started the block.
    has_run: bool,
    /// Since when no job of it is left.
    pub(super) gone: Option<Instant>,
    pub(super) releases: u32,
}

impl UnderWay {
    /// A block that a task measures, if there is one already.
    pub(super) fn new(cell: Cell, batch: (String, usize), task: Option<QueuedTask>) -> UnderWay {
        UnderWay {
            cell,
            batch,
            task,
            tries: 1,
            avoided: Vec::new(),
            has_run: false,
            gone: None,
            releases: 0,
        }
    }

    /// Forgets its task: a new job is about to measure the block.
    pub(super) fn forget_task(&mut self) {
        (self.task, self.gone, self.has_run) = (None, None, false);
    }

    /// Updates the block from the queue. Returns a note for the user, if there is news.
    pub(super) fn look(&mut self, task: Option<&QueuedTask>) -> Option<String> {
        let Some(task) = task.filter(|task| !task.has_ended()) else {
            self.task = task.cloned().or(self.task.take());
            self.gone.get_or_insert_with(Instant::now);
            return None;
        };
        let before = self.task.replace(task.clone());
        let number = self.cell.spec.block;
        self.gone = None;
        if task.state != "PENDING" {
            self.has_run = true;
            return None;
        }
        if task.reason_words().contains("requeued held") && self.releases < TRIES {
            self.releases += 1;
            return Some(match slurm_queue::release(task) {
                Ok(()) => format!("block {number}: Slurm could not start it; rqps released it"),
                Err(error) => {
                    format!("block {number}: Slurm holds it ({}): {error:#}", task.reason)
                }
            });
        }
        match before.filter(|before| before.state != "PENDING") {
            Some(QueuedTask { job, node, .. }) => Some(format!(
                "block {number}: its node {node} failed, or somebody requeued its job {job}; Slurm \
                 starts the block again"
            )),
            None => held_up(task),
        }
    }

    /// True if a report may be there: a job that waits for its first start has written none.
    pub(super) fn may_have_ended(&self) -> bool {
        let waits = self.task.as_ref().is_some_and(|task| task.state == "PENDING");
        !waits || self.has_run || self.gone.is_some()
    }

    /// Its task, if it waits in the queue.
    pub(super) fn waiting_task(self) -> Option<QueuedTask> {
        self.task.filter(|task| task.state == "PENDING" && self.gone.is_none())
    }

    /// True if somebody has cancelled its job.
    pub(super) fn is_cancelled(&self) -> bool {
        self.task.as_ref().is_some_and(|task| task.state == "CANCELLED")
    }

    /// True if its job was cancelled before a node started the block: no report can come.
    pub(super) fn is_cancelled_before_start(&self) -> bool {
        let had_node = self.task.as_ref().is_some_and(|task| !task.node.is_empty());
        self.is_cancelled() && !self.has_run && !had_node
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

/// Why a job cannot start until a user or an administrator acts; `None` if it waits for its turn.
fn held_up(task: &QueuedTask) -> Option<String> {
    let QueuedTask { job, reason, .. } = task;
    let said = task.reason_words();
    let is_any = |parts: &[&str]| parts.iter().any(|part| said.contains(part));
    if said.contains("held") {
        return Some(format!("job {job} is held ({reason})\nhint: `scontrol release {job}`"));
    }
    if is_any(&["notavail", "down, drained", "partitiondown", "partitioninactive"]) {
        return Some(format!(
            "no node can take job {} now ({reason}); rqps waits\nhint: `sinfo --list-reasons` says \
             why nodes are down or drained",
            task.array()
        ));
    }
    if is_any(&["partitiontimelimit", "partitionnodelimit"]) {
        return Some(format!(
            "the partition never starts job {} ({reason})\nhint: stop rqps and resume with other \
             options, such as --sbatch=--time=60",
            task.array()
        ));
    }
    None
}

/// As [`UnderWay::end`], by the state of the job. `said` is the end of its log, as a clause.
fn why_ended(task: &QueuedTask, said: &str) -> (String, bool) {
    let QueuedTask { job, limit, .. } = task;
    let node = if task.node.is_empty() { "no node" } else { &task.node };
    let hint = "hint: resume with a higher one, such as --sbatch=--time=120";
    match task.state.as_str() {
        "TIMEOUT" => {
            (format!("job {job} on {node} reached its time limit ({limit})\n{hint}"), false)
        }
        // The block has stopped its servers in good order and ended.
        "FAILED" if said.contains(STOPPED) => match task.seconds_left() {
            Some(0..=NEAR_LIMIT) => {
                let when = "shortly before its time limit";
                (format!("Slurm stopped job {job} on {node} {when} ({limit})\n{hint}"), false)
            }
            _ => {
                let why = "though its time limit was not near";
                (format!("a signal stopped job {job} on {node}, {why} ({limit})"), true)
            }
        },
        state => (format!("job {job} ended with {state} on {node}{said}"), true),
    }
}

/// Names blocks by number: "block 3", "blocks 1 to 4, 7".
pub(super) fn named(blocks: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    let sorted: BTreeSet<u32> = blocks.iter().copied().collect();
    for block in sorted {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == block => *last = block,
            _ => ranges.push((block, block)),
        }
    }
    let ranges = ranges.iter().map(|(first, last)| {
        if first == last { first.to_string() } else { format!("{first} to {last}") }
    });
    let noun = if blocks.len() == 1 { "block" } else { "blocks" };
    format!("{noun} {}", ranges.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: &str, reason: &str, left: &str) -> QueuedTask {
        QueuedTask {
            job: "17_3".to_owned(),
            state: state.to_owned(),
            reason: reason.to_owned(),
            node: "n1".to_owned(),
            limit: "2:00".to_owned(),
            left: left.to_owned(),
            ..QueuedTask::default()
        }
    }

    #[test]
    fn a_time_limit_is_told_and_no_reason_to_start_again() {
        let stopped = format!(": failed to {STOPPED}");
        let stopped = stopped.as_str();
        for (state, left, said, part, again) in [
            ("TIMEOUT", "0:00", "", "job 17_3 on n1 reached its time limit (2:00)\nhint: ", false),
            ("FAILED", "1:10", stopped, "on n1 shortly before its time limit (2:00)\nhint", false),
            ("FAILED", "1:00:00", stopped, "a signal stopped job 17_3 on n1, though", true),
            ("FAILED", "UNLIMITED", stopped, "a signal stopped job 17_3 on n1, though", true),
            ("FAILED", "1:10", ": no space", "job 17_3 ended with FAILED on n1: no space", true),
            ("NODE_FAIL", "1:10", "", "job 17_3 ended with NODE_FAIL on n1", true),
        ] {
            let (why, retried) = why_ended(&task(state, "None", left), said);
            assert!(why.contains(part) && retried == again, "{state}: {why}");
        }
    }

    #[test]
    fn what_keeps_a_job_waiting_is_told_if_somebody_must_act() {
        for (reason, part) in [
            ("JobHeldUser", "hint: `scontrol release 17_3`"),
            ("launch_failed_requeued_held", "hint: `scontrol release 17_3`"),
            ("ReqNodeNotAvail, UnavailableNodes:n1", "no node can take job 17 now (ReqNodeNot"),
            ("Nodes required for job are DOWN, DRAINED or reserved", "no node can take job 17 now"),
            ("PartitionTimeLimit", "the partition never starts job 17 (PartitionTimeLimit)"),
        ] {
            let said = held_up(&task("PENDING", reason, "2:00")).unwrap();
            assert!(said.contains(part), "{reason}: {said}");
        }
        for reason in ["None", "Resources", "Priority", "BeginTime"] {
            assert_eq!(held_up(&task("PENDING", reason, "2:00")), None);
        }
    }

    #[test]
    fn neighbours_are_told_as_a_range() {
        assert_eq!(named(&[3]), "block 3");
        assert_eq!(named(&[7, 2, 1, 4, 3]), "blocks 1 to 4, 7");
    }
}
