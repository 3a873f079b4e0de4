//! Preparation and end of a step whose instructions are counted: background work of the library
//! that would vary or would be missed.

use std::io::Write;
use std::sync::Arc;

use crate::driver::maintain;
use crate::rows::key;
use rqps_driver::Stop;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::worker_pool::Events;
use rqps_embed::rocksdb::{Database, Durability, Handle};
use rqps_model::kv::{KvMaintenance, KvOperation, KvWork};

/// Completes the library's background work, and fills the block cache by a scan of all keys, so
/// that reads do not differ by its content.
pub(super) fn prepare<W: Write>(
    database: &Arc<Database>,
    work: &KvWork,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    maintain::carry_out(database, &[KvMaintenance::Wait], control)?;
    if !writes(work) {
        let mut handle = Handle::new(database, Durability::Log);
        handle
            .scan(&key(0), u32::MAX, false)
            .map_err(|error| format!("failed to read all keys: {error}"))?;
    }
    Ok(())
}

/// Flushes all written keys and completes the compactions that follow: the same work after the same
/// puts. Reads leave none.
pub(super) fn settle<W: Write>(
    database: &Database,
    work: &KvWork,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    if writes(work) {
        maintain::carry_out(database, &[KvMaintenance::Flush, KvMaintenance::Wait], control)
    } else {
        Ok(())
    }
}

fn writes(work: &KvWork) -> bool {
    matches!(
        work.action,
        KvOperation::FillSequential | KvOperation::Overwrite | KvOperation::Mix { .. }
    )
}

/// The operations of the warm-up: as many as are counted; for a load, all at its start.
pub(super) fn events(work: &KvWork, counted: u64) -> Events {
    match work.action {
        KvOperation::FillSequential => {
            let counted = counted.min(work.keys);
            Events { warm_up: work.keys - counted, counted }
        }
        _ => Events { warm_up: counted, counted },
    }
}
