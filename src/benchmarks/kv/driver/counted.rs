//! A step whose instructions are counted: what comes before its operations, and what of their work
//! threads of the library do later.

use std::io::Write;
use std::sync::Arc;

use crate::benchmarks::kv::driver::maintain;
use crate::benchmarks::kv::rows::key;
use crate::domain::kv::{KvMaintenance, KvOperation, KvWork};
use crate::driver::Stop;
use crate::driver::crew::Events;
use crate::driver::link::LabLink;
use crate::embed::rocksdb::{Database, Durability, Handle};

/// Leaves the library nothing to do, and has the block cache filled by a scan of all keys, so that
/// reads do not differ by what they find in it.
pub(super) fn prepare<W: Write>(
    database: &Arc<Database>,
    work: &KvWork,
    link: &mut LabLink<W>,
) -> Result<(), Stop> {
    maintain::carry_out(database, &[KvMaintenance::Wait], link)?;
    if !writes(work) {
        let mut handle = Handle::new(database, Durability::Log);
        handle
            .scan(&key(0), u32::MAX, false)
            .map_err(|error| format!("failed to read all keys: {error}"))?;
    }
    Ok(())
}

/// Has all written keys flushed, and the compactions done that follow: the work of the same puts in
/// each repeat. Reads leave nothing.
pub(super) fn settle<W: Write>(
    database: &Database,
    work: &KvWork,
    link: &mut LabLink<W>,
) -> Result<(), Stop> {
    match writes(work) {
        true => maintain::carry_out(database, &[KvMaintenance::Flush, KvMaintenance::Wait], link),
        false => Ok(()),
    }
}

fn writes(work: &KvWork) -> bool {
    matches!(
        work.action,
        KvOperation::FillSequential | KvOperation::Overwrite | KvOperation::Mix { .. }
    )
}

/// The operations of the warm-up: as many as count, and for a load all that it begins with.
pub(super) fn events(work: &KvWork, counted: u64) -> Events {
    match work.action {
        KvOperation::FillSequential => {
            let counted = counted.min(work.keys);
            Events { warm_up: work.keys - counted, counted }
        }
        _ => Events { warm_up: counted, counted },
    }
}
