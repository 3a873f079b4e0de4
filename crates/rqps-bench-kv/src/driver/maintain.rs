//! Compacts and flushes the tree, after the window or in a step of its own.

use std::ffi::CStr;
use std::io::Write;
use std::time::{Duration, Instant};

use rqps_driver::Stop;
use rqps_driver::control_channel::ControlChannel;
use rqps_driver::event::DriverEvent;
use rqps_embed::rocksdb::{Database, RocksdbError};
use rqps_model::kv::KvMaintenance;

/// Time between two looks at the tree.
const LOOK: Duration = Duration::from_millis(20);
/// Looks in a row that must find no work: a compaction may begin right after a flush.
const QUIET_LOOKS: u32 = 10;
/// Time between two messages to the lab during maintenance.
const HEARTBEAT: Duration = Duration::from_secs(20);
/// The trigger of level 0 that all runs have.
const TRIGGER: &CStr = c"level0_file_num_compaction_trigger";

/// Properties that are above zero while there is work.
const WORK: [&CStr; 4] = [
    c"rocksdb.mem-table-flush-pending",
    c"rocksdb.num-running-flushes",
    c"rocksdb.compaction-pending",
    c"rocksdb.num-running-compactions",
];

/// Carries out all maintenance in order.
pub(super) fn carry_out<W: Write>(
    database: &Database,
    all: &[KvMaintenance],
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    for one in all {
        match one {
            KvMaintenance::Flush => database.flush().map_err(fault)?,
            KvMaintenance::Wait => wait(control, "compaction", || is_quiet(database))?,
            KvMaintenance::CompactLevel0 => compact_level0(database, control)?,
        }
    }
    Ok(())
}

fn fault(error: RocksdbError) -> Stop {
    Stop::Fault(format!("failed to {error}"))
}

/// Sleeps until `quiet` was true several times in a row.
fn wait<W: Write>(
    control: &mut ControlChannel<W>,
    what: &str,
    quiet: impl Fn() -> bool,
) -> Result<(), Stop> {
    let (mut looks, mut told) = (0, Instant::now());
    while looks < QUIET_LOOKS {
        control.sleep(LOOK)?;
        looks = if quiet() { looks + 1 } else { 0 };
        if told.elapsed() > HEARTBEAT {
            control.send(&DriverEvent::Waiting { what: what.to_owned() })?;
            told = Instant::now();
        }
    }
    Ok(())
}

fn is_quiet(database: &Database) -> bool {
    WORK.iter().all(|property| database.number(property) == Some(0))
}

/// Number of files in level 0.
pub(super) fn level0_files(database: &Database) -> Option<u64> {
    database.property(c"rocksdb.num-files-at-level0")?.trim().parse().ok()
}

/// Compacts level 0 into the level below by lowering the trigger to a single file: the C API can
/// name files to compact only since 11.8, but all versions can change options.
fn compact_level0<W: Write>(
    database: &Database,
    control: &mut ControlChannel<W>,
) -> Result<(), Stop> {
    if level0_files(database) == Some(0) {
        return Ok(());
    }
    database.set_option(TRIGGER, c"1").map_err(fault)?;
    wait(control, "level 0", || level0_files(database) == Some(0) && is_quiet(database))?;
    database.set_option(TRIGGER, c"4").map_err(fault)
}
