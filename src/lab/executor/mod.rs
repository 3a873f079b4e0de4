//! Where blocks are measured: a coordinator writes a block down and gets a report back.

mod local;
mod seam;

pub(super) use local::LocalExecutor;
pub(super) use seam::Executor;
