//! The seam between a coordinator, which decides what is measured, and what measures it.

use anyhow::Result;

use crate::lab::progress::Progress;
use crate::plan::BlockSpec;
use rqps_model::block::BlockReport;

/// Measures blocks, here or elsewhere. The coordinator keeps `gate.json` and decides which block
/// counts; an executor sees to it that the run folders of a block are in the result folder when its
/// report comes.
pub(crate) trait Executor {
    /// Takes blocks on. A block that was taken on before, by an earlier rqps too, stays one block.
    ///
    /// # Errors
    /// This executor cannot carry them out.
    fn submit(&mut self, specs: Vec<BlockSpec>) -> Result<()>;

    /// Waits for the end of a block; `None` if no block is under way. When the user stops, it
    /// returns soon, with the report of an interrupted block or without.
    ///
    /// # Errors
    /// No target can be loaded, or a folder cannot be written. A fault of one target is no error:
    /// it is in the record of its run and in the report.
    fn poll(&mut self, progress: &mut Progress<'_>) -> Result<Option<BlockEnd>>;

    /// True if other hosts measure: they load for each block, and may still be at one that an
    /// earlier rqps handed out.
    fn is_elsewhere(&self) -> bool {
        true
    }

    /// Removes what is no result: the plan is done.
    ///
    /// # Errors
    /// A folder cannot be removed.
    fn clear(&mut self) -> Result<()>;
}

/// The end of a block, or of several for the same reason.
pub(crate) enum BlockEnd {
    /// It was measured; its runs are in the result folder.
    Measured(Box<BlockReport>),
    /// No report came: a host or a job failed. A resumed plan measures these blocks.
    Lost {
        /// The ids of the blocks.
        ids: Vec<String>,
        /// Why, for the user.
        fault: String,
    },
}
