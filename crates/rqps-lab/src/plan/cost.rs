//! Estimates the time and space of a plan, from the plan alone.

use crate::dbms::spec::log_mb;
use crate::domain::benchmark::Phase;
use crate::domain::dialect::Dialect;
use crate::domain::target::Target;
use crate::plan::blocks::{Auto, Blocks};
use crate::plan::definition::Plan;

/// Starting a driver process, connecting, preparing, asking for plans.
const STEP_OVERHEAD_SECONDS: f64 = 0.5;
/// Restoring a snapshot, starting and stopping a server.
const RUN_OVERHEAD_SECONDS: f64 = 6.0;
/// Initialising a data folder, starting, stopping, copying.
const PREPARE_SECONDS: f64 = 20.0;
/// Rows loaded and indexed per second, on the slow side.
const LOAD_ROWS_PER_SECOND: f64 = 100_000.0;
/// Trying a library of keys and values, making and removing a folder.
const LIBRARY_PREPARE_SECONDS: f64 = 1.0;
/// A fresh server's own files, with their snapshot: redo logs and system tables, bytes.
const SERVER_BYTES: f64 = 2.0 * 700e6;

/// System tables and undo logs of a server without data, bytes.
const SYSTEM_TABLES_BYTES: f64 = 100e6;
/// Write-ahead log of a server that has just begun, bytes: a few files of 16 MiB.
const FIRST_WAL_BYTES: f64 = 3.0 * 16_777_216.0;

/// An estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// All loads of all targets.
    pub load_seconds: f64,
    /// One step measured on one target, on average.
    pub step_seconds: f64,
    /// One target in one block.
    pub run_seconds: f64,
    /// All targets in one block.
    pub block_seconds: f64,
    /// Blocks of the plan, or those that its budget has time for; one is always measured.
    pub blocks_most: u32,
    /// Everything, if all blocks are measured, or until the budget ends.
    pub total_seconds: f64,
    /// Everything, if no more than the fewest blocks are needed; the same for a fixed number.
    pub least_seconds: f64,
    /// Measured windows (steps × targets × blocks) of all blocks.
    pub windows: u64,
    /// Disk for data and snapshots of all targets, bytes.
    pub disk_bytes: u64,
}

impl Cost {
    /// Seconds for loading and this number of blocks.
    pub fn through(&self, blocks: u32) -> f64 {
        self.load_seconds + self.block_seconds * f64::from(blocks)
    }
}

/// Seconds that a phase takes on one target.
pub fn phase_seconds(phase: &Phase, settle_seconds: f64) -> f64 {
    match phase {
        Phase::Measure(step) => step.seconds + step.warmup_seconds + STEP_OVERHEAD_SECONDS,
        Phase::Settle => settle_seconds + 1.0,
        Phase::Restore => RUN_OVERHEAD_SECONDS,
    }
}

/// The published wait after loading and writing, scaled: min(1200, 60 + rows / 1 000 000) seconds.
pub fn settle_seconds(rows_total: u64, scale: f64) -> f64 {
    scale * (60.0 + rows_total as f64 / 1e6).min(1200.0)
}

/// Estimates a plan whose targets all go through `phases`.
pub fn estimate(plan: &Plan, phases: &[Phase]) -> Cost {
    let targets = plan.targets.len() as f64;
    let rows = u64::from(plan.workload.tables) * plan.workload.rows;
    let settle = settle_seconds(rows, plan.workload.settle_scale);
    let windows = phases.iter().filter(|phase| matches!(phase, Phase::Measure(_))).count();
    let in_phases: f64 = phases.iter().map(|phase| phase_seconds(phase, settle)).sum();
    let run_seconds = in_phases + RUN_OVERHEAD_SECONDS;
    let load_seconds = load_seconds(plan, settle);
    let block_seconds = run_seconds * targets;
    let through = |blocks: u32| load_seconds + block_seconds * f64::from(blocks);
    let most = plan.blocks.most();
    let budget = match plan.blocks {
        Blocks::Auto(Auto { budget_seconds: Some(budget), .. }) => budget,
        _ => f64::INFINITY,
    };
    Cost {
        load_seconds,
        step_seconds: in_phases / windows.max(1) as f64,
        run_seconds,
        block_seconds,
        blocks_most: (((budget - load_seconds) / block_seconds) as u32).clamp(1, most.max(1)),
        total_seconds: through(most).min(budget),
        least_seconds: through(plan.blocks.fewest()).min(budget),
        windows: windows as u64 * plan.targets.len() as u64 * u64::from(most),
        disk_bytes: disk_bytes(plan) as u64,
    }
}

/// Seconds before the first step, of all loads of all targets.
fn load_seconds(plan: &Plan, settle: f64) -> f64 {
    let rows = u64::from(plan.workload.tables) * plan.workload.rows;
    let of_target = |target: &Target| {
        let prepare = match target.dbms.dialect() {
            Dialect::KeyValue => LIBRARY_PREPARE_SECONDS,
            _ => PREPARE_SECONDS,
        };
        match plan.load_request(target) {
            Some(_) => prepare + (rows as f64 / LOAD_ROWS_PER_SECOND + settle),
            None => prepare,
        }
    };
    let once: f64 = plan.targets.iter().map(of_target).sum();
    once * f64::from(plan.loads.max(1))
}

/// Bytes of disk of all targets.
fn disk_bytes(plan: &Plan) -> f64 {
    let size = plan.size().disk_bytes;
    let servers = plan.targets.iter().filter(|target| !target.dbms.is_embedded());
    let own: f64 = match plan.workload.counted_statements {
        // Data and snapshot.
        Some(_) => servers.map(|target| 2.0 * fresh_server_bytes(plan, target)).sum(),
        None => servers.count() as f64 * SERVER_BYTES,
    };
    let once = own + plan.targets.len() as f64 * size;
    // Half of it is a snapshot of each load, and half the data of the current block.
    once * f64::from(1 + plan.loads.max(1)) / 2.0
}

/// Bytes of a server's own files in a counted run, whose steps write little: system tables, and the
/// log. MySQL makes its log as large as it may become; that of Postgres grows with what is loaded.
fn fresh_server_bytes(plan: &Plan, target: &Target) -> f64 {
    let cache = plan.workload.cache_bytes.unwrap_or_else(|| plan.size().cached_bytes);
    let log = (log_mb(cache >> 20) << 20) as f64;
    let log = match target.dbms.dialect() {
        // The load writes each row into it, too.
        Dialect::Postgres => log.min(FIRST_WAL_BYTES + plan.size().disk_bytes),
        _ => log,
    };
    SYSTEM_TABLES_BYTES + log
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_wait() {
        assert_eq!(settle_seconds(50_000_000, 1.0), 110.0);
        assert_eq!(settle_seconds(80_000_000, 1.0), 140.0);
        assert_eq!(settle_seconds(2_000_000_000, 1.0), 1200.0);
        assert_eq!(settle_seconds(1_000_000, 0.0), 0.0);
    }
}
