//! Which blocks are still to be measured.

use std::collections::BTreeMap;

use anyhow::Result;

use crate::domain::run::{RunRecord, Status};
use crate::results::ResultSet;

/// What is left of a plan.
pub(super) struct Todo {
    /// Block and attempt, in order.
    pub(super) blocks: Vec<(u32, u32)>,
    /// What was found, in words.
    pub(super) notes: Vec<String>,
}

/// Looks at the runs that are there. A block in which every target came to an end is done; a block
/// that
/// was broken off is done again as the next attempt, and the steps that it did finish stay and
/// count.
///
/// # Errors
/// The result folder cannot be read.
pub(super) fn blocks_to_do(results: &ResultSet, blocks: u32, targets: usize) -> Result<Todo> {
    let mut attempts: BTreeMap<u32, Vec<RunRecord>> = BTreeMap::new();
    for record in results.runs()? {
        attempts.entry(record.key.block).or_default().push(record);
    }
    let mut todo = Todo { blocks: Vec::new(), notes: Vec::new() };
    for block in 1..=blocks {
        let Some(runs) = attempts.get(&block) else {
            todo.blocks.push((block, 1));
            continue;
        };
        let last = runs.iter().map(|run| run.key.attempt).max().unwrap_or(1);
        let over = |run: &&RunRecord| matches!(run.status, Status::Complete | Status::Failed(_));
        let of_last: Vec<_> = runs.iter().filter(|run| run.key.attempt == last).collect();
        if of_last.iter().all(over) && of_last.len() == targets {
            todo.notes.push(format!("block {block} was measured before; its results stay"));
        } else {
            todo.notes.push(format!("block {block} was broken off; it is measured again"));
            todo.blocks.push((block, last + 1));
        }
    }
    Ok(todo)
}
