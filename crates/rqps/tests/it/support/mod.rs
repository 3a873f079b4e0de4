//! What the tests share: builds and servers of their own, a terminal, hosts by SSH and Slurm, and
//! what a server's log shows.

pub(crate) mod browser;
pub(crate) mod builds;
pub(crate) mod elsewhere;
pub(crate) mod log;
pub(crate) mod made;
pub(crate) mod program;
#[allow(clippy::unwrap_used, reason = "the lint knows tests by their attribute")]
pub(crate) mod scene;
pub(crate) mod server_place;
pub(crate) mod skipped;
pub(crate) mod slurm_site;
pub(crate) mod ssh_site;
pub(crate) mod terminal;
pub(crate) mod theirs;
pub(crate) mod user_files;
