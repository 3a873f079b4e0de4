//! Options that name folders.

use std::path::PathBuf;

use clap::Args;

/// Heading of the help.
const OUTPUT: &str = "Output";

/// Folders of results, configurations, work and builds.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = OUTPUT)]
pub(super) struct Folders {
    /// Result folder [default: a new folder in ./rqps-results]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Your configurations: DIR/DBMS/NAME.conf, which replace shipped ones of that name [default:
    /// ./configs, for targets that name their configuration]
    #[arg(long, value_name = "DIR")]
    pub configs: Option<PathBuf>,
    /// Parent of the temporary folder for data and snapshots. rqps removes it at the end; after
    /// Ctrl-C it stays, and --resume with the same --work uses it [default: beside the results]
    #[arg(long, value_name = "DIR", env = "RQPS_WORK")]
    pub work: Option<PathBuf>,
    /// Folder of debug files by build id (DIR/.build-id/ab/cdef.debug): names of functions of
    /// stripped builds in counts; repeatable
    #[arg(long = "debug-dir", value_name = "DIR")]
    pub debug: Vec<PathBuf>,
    #[command(flatten)]
    pub cache: CacheFolder,
}

#[derive(Clone, Debug, Args)]
pub(super) struct CacheFolder {
    /// Cache of builds and data sets [default: /var/cache/rqps as root, else the XDG cache folder]
    #[arg(long = "cache", value_name = "DIR", env = "RQPS_CACHE")]
    pub cache: Option<PathBuf>,
}
