//! What of a plan was measured before.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use crate::domain::run::{RunRecord, Status};
use crate::results::ResultSet;

/// The blocks that were begun.
pub(super) struct History {
    done: BTreeSet<u32>,
    attempts: BTreeMap<u32, u32>,
    /// What was found, in words.
    pub(super) notes: Vec<String>,
}

impl History {
    /// True if every target of the block was measured, and the block was not thrown away.
    pub(super) fn is_done(&self, block: u32) -> bool {
        self.done.contains(&block)
    }

    /// The attempt at a block that is to come next.
    pub(super) fn next_attempt(&self, block: u32) -> u32 {
        self.attempts.get(&block).copied().unwrap_or(0) + 1
    }

    /// The last block that is done; 0 for none.
    pub(super) fn last_done(&self) -> u32 {
        self.done.last().copied().unwrap_or(0)
    }
}

/// Looks at the runs that are there. A block in which every target was measured is done; a block
/// that failed, was broken off or thrown away is done again as the next attempt. The steps that
/// one broken off did finish stay and count.
///
/// # Errors
/// The result folder cannot be read.
pub(super) fn history(results: &ResultSet, targets: usize) -> Result<History> {
    let mut blocks: BTreeMap<u32, Vec<RunRecord>> = BTreeMap::new();
    for record in results.runs()? {
        blocks.entry(record.key.block).or_default().push(record);
    }
    let mut history =
        History { done: BTreeSet::new(), attempts: BTreeMap::new(), notes: Vec::new() };
    for (block, runs) in blocks {
        let last = runs.iter().map(|run| run.key.attempt).max().unwrap_or(1);
        history.attempts.insert(block, last);
        let of_last: Vec<_> = runs.iter().filter(|run| run.key.attempt == last).collect();
        let failed = of_last.iter().find(|run| matches!(run.status, Status::Failed(_)));
        let complete = |run: &&RunRecord| matches!(run.status, Status::Complete);
        if let Some(run) = failed {
            // Whoever goes on after a failure has done something about its cause.
            let label = &run.key.label;
            history.notes.push(format!("{label} failed in block {block}; it is measured again"));
        } else if of_last.iter().all(complete) && of_last.len() == targets {
            history.done.insert(block);
            history.notes.push(format!("block {block} was measured before; its results stay"));
        } else if of_last.iter().any(|run| matches!(run.status, Status::Discarded(_))) {
            history.notes.push(format!("block {block} was thrown away; it is measured again"));
        } else {
            history.notes.push(format!("block {block} was broken off; it is measured again"));
        }
    }
    Ok(history)
}
