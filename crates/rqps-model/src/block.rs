//! The report of a measured block, the counterpart of its specification.

use serde::{Deserialize, Serialize};

use crate::gate::Canary;
use crate::host::Session;
use crate::run::{RunKey, Status};

/// The format version of written-down blocks and of their reports that this program writes.
pub const BLOCK_FORMAT: u32 = 1;

/// One attempt at a block, as the host tells that measured it. Whether the block counts is decided
/// by who gets the report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockReport {
    /// [`BLOCK_FORMAT`].
    pub format: u32,
    /// The id of the block's specification.
    pub id: String,
    /// Host and start of the measurement.
    pub session: Session,
    /// Before the first server was started and after the last stopped. `None` if canaries are off;
    /// the second also if the block was interrupted.
    pub canaries: [Option<Canary>; 2],
    /// Seconds of the block, without loading.
    pub seconds: f64,
    /// The runs that have a folder, in their order. A target that could not be loaded has none.
    pub runs: Vec<BlockRun>,
    /// One line for each run or target that failed.
    pub faults: Vec<String>,
}

/// A run of a block, and how it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockRun {
    /// Its folder is named after it.
    pub key: RunKey,
    /// The end of the run.
    pub status: Status,
}
