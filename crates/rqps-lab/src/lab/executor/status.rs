//! The progress of a plan on other hosts, from the result folder alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{cells, unfit_nodes};
use crate::plan::{Plan, file};
use rqps_results::ResultSet;

/// The progress of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanStatus {
    /// Blocks of the plan, by number, as far as they were begun.
    pub blocks: BTreeMap<u32, BlockState>,
    /// Blocks of the plan in all.
    pub planned: u32,
    /// Nodes that get no more blocks, with their reasons.
    pub unfit: BTreeMap<String, String>,
}

/// The known state of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// Its runs are in the result folder. Name of its host, if it is known.
    Measured(Option<String>),
    /// Measured again: the host was disturbed.
    Discarded,
    /// It was measured, and no rqps has taken its runs yet.
    Returned,
    /// A host has begun with it, and it has not come to its end.
    Begun,
    /// No host has begun with it.
    Waiting,
}

/// Reads the progress of the plan in this result folder.
///
/// # Errors
/// It is no result folder.
pub fn status(results: &Path) -> Result<PlanStatus> {
    let set = ResultSet::open(results)?;
    let plan: Plan = file::parse(&set.plan()?).context("read its plan")?;
    let mut blocks = BTreeMap::new();
    for begun in set.gate()?.map(|gate| gate.blocks).unwrap_or_default() {
        let state = match &begun.session {
            Some(_) if begun.discarded => BlockState::Discarded,
            Some(session) => BlockState::Measured(session.node.clone()),
            None => {
                let name = format!("{:04}-{}", begun.block, begun.attempt);
                of_cell(&cells::path_of(results)?.join(name))
            }
        };
        blocks.insert(begun.block, state);
    }
    let unfit = unfit_nodes::all(&cells::path_of(results)?)?;
    Ok(PlanStatus { blocks, planned: plan.blocks.most(), unfit })
}

fn of_cell(cell: &Path) -> BlockState {
    let entries = fs::read_dir(cell).into_iter().flatten().flatten();
    let starts: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    match starts.iter().any(|start| start.join("block.json").exists()) {
        _ if starts.is_empty() => BlockState::Waiting,
        true => BlockState::Returned,
        false => BlockState::Begun,
    }
}
