//! The programs of the user that fetch builds.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::cache::Cache;
use crate::pins;

/// The programs that fetch, and the wish to stop them. Each is a name to look for on the path, or a
/// path.
#[derive(Clone, Debug)]
pub struct PackageClients {
    /// Maven.
    pub mvn: PathBuf,
    /// Debian's apt-get; apt-config of the same package lies beside it.
    pub apt_get: PathBuf,
    /// Debian's dpkg-deb.
    pub dpkg_deb: PathBuf,
    /// Python's pip.
    pub pip: PathBuf,
    /// The file in which the package debian-archive-keyring has Debian's keys.
    pub debian_keyring: PathBuf,
    /// The SHA-256 that a package must have; `None` for one that nobody has looked at.
    pub pinned: fn(&str) -> Option<&'static str>,
    /// Set to true (by a signal handler, from another thread) to end a fetch: the client is
    /// killed, nothing is kept, the error says [`Reason::Stopped`](crate::Reason::Stopped).
    pub stop: Arc<AtomicBool>,
}

impl Default for PackageClients {
    fn default() -> PackageClients {
        PackageClients {
            mvn: PathBuf::from("mvn"),
            apt_get: PathBuf::from("apt-get"),
            dpkg_deb: PathBuf::from("dpkg-deb"),
            pip: PathBuf::from("pip3"),
            debian_keyring: PathBuf::from("/usr/share/keyrings/debian-archive-keyring.gpg"),
            pinned: pins::pinned,
            stop: Arc::new(AtomicBool::new(false)),
        }
    }
}

/// With what, and where to.
pub(super) struct Tools<'a> {
    pub(super) clients: &'a PackageClients,
    pub(super) cache: &'a Cache,
}
