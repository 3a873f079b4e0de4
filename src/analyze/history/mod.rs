//! Ladders: many versions in one comparison, in the order of the versions, with the places where
//! the level of a step changed.

mod changes;
mod fit;
mod ladder;
mod rung;

pub use changes::{LevelChange, StepLadder, VersionPoint};
pub use ladder::{Ladder, LadderOptions, OrderError, ladders};
pub use rung::Rung;
