//! A sitting on a host.

use serde::{Deserialize, Serialize};

/// One sitting of rqps on one host: from its start to its end. What is measured in one sitting
/// shares the state of the host; a resumed plan has several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// Fingerprint of the host ([`crate::host::fingerprint`]).
    pub host: String,
    /// The kernel's name for the time since the host was started; `None` where it does not tell.
    pub boot: Option<String>,
    /// RFC 3339, UTC: when rqps began there.
    pub started: String,
    /// Name of the host in a pool whose hosts measure blocks of one plan; `None` where a plan has
    /// one host. Hosts of the same class have the same fingerprint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}
