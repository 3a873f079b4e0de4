//! Builds from sources: a commit of a git repository or a folder of sources, compiled by the
//! recipe of its DBMS into the cache. The user's tree is only read.

mod commit;
mod compile;
mod folder;
mod git;
mod git_folder;
mod locate;
mod patch;
mod recipe;
mod relink;
mod run;
mod toolchain;
mod tree;

pub use commit::commit_of;
pub use git::{Commit, commits};
pub use recipe::IdleFiles;
pub use tree::{changes, has_commit, tree_of};

pub(super) use compile::{Compile, Place, compile, link, make_objects};
pub(super) use git::commit;
pub(super) use locate::locate;
