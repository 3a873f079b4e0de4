//! Differences between members of the family.

/// The differences between members of the family.
#[derive(Clone, Copy)]
pub(crate) struct Flavor {
    /// The name in target words.
    pub(crate) name: &'static str,
    /// Names of the server, the one to prefer first.
    pub(crate) programs: &'static [&'static str],
    /// Folders that may hold `english/errmsg.sys`.
    pub(crate) share: &'static [&'static str],
    /// The first version that makes its system tables itself; `None` if none does.
    pub(crate) initializes_since: Option<&'static [u32]>,
    /// The first version that speaks a second protocol, on a public port and socket.
    pub(crate) second_protocol_since: Option<&'static [u32]>,
    /// True if its SQL files make accounts without a name.
    pub(crate) has_nameless_accounts: bool,
    /// MyRocks's folder of all tables, below the data folder.
    pub(crate) rocksdb_folder: &'static str,
}
