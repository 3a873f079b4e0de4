//! Options of benches that start servers: where builds are kept, and where data go.

use std::path::PathBuf;

/// The folders of a bench.
#[derive(clap::Args)]
pub(crate) struct Folders {
    /// Cache of builds.
    #[arg(long, env = "RQPS_CACHE", default_value = "/var/cache/rqps")]
    pub(crate) cache: PathBuf,
    /// Folder for data, and for what is not kept.
    #[arg(long, default_value = "/var/tmp")]
    pub(crate) work: PathBuf,
}
