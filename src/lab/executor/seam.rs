//! The seam between a coordinator, which decides what is measured, and what measures it.

use anyhow::Result;

use crate::domain::block::BlockReport;
use crate::lab::progress::Progress;
use crate::plan::BlockSpec;

/// Measures blocks, here or elsewhere. The coordinator keeps `gate.json` and decides which block
/// counts; an executor sees to it that the run folders of a block are in the result folder when its
/// report comes.
pub(crate) trait Executor {
    /// Takes a block on.
    ///
    /// # Errors
    /// This executor cannot carry it out.
    fn submit(&mut self, spec: BlockSpec) -> Result<()>;

    /// Waits for a report; `None` if no block is under way. When the user stops, the report of a
    /// block that was interrupted comes soon.
    ///
    /// # Errors
    /// What stops everything: no target can be loaded, a folder cannot be written. What goes wrong
    /// with one target is in its run and in the report.
    fn poll(&mut self, progress: &mut Progress<'_>) -> Result<Option<BlockReport>>;
}
