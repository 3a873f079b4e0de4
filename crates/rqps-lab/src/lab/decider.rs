//! Decides when a plan has measured enough: the lab asks after each block and does not judge
//! itself.

use anyhow::Result;

/// Decides which steps of a plan need more blocks.
pub trait Decider {
    /// The decision after a block that counts, or after the last of them when a plan is resumed (0
    /// for none).
    ///
    /// # Errors
    /// The results so far cannot be judged.
    fn after(&mut self, block: u32) -> Result<Decision>;
}

/// The measurements of the next block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Every step.
    All,
    /// The steps that are not decided yet, and the steps that they build on.
    Only {
        /// The undecided steps.
        open: Vec<UndecidedStep>,
        /// All steps that were looked at.
        steps: usize,
    },
    /// Nothing, for this reason.
    Stop(String),
}

/// A step that needs more blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndecidedStep {
    /// Name of the step.
    pub step: String,
    /// Pairs after which it is probably decided.
    pub pairs_needed: u32,
}

impl UndecidedStep {
    /// Blocks that it probably still needs after `block`.
    pub(super) fn more(&self, block: u32) -> u32 {
        self.pairs_needed.saturating_sub(block).max(1)
    }
}
