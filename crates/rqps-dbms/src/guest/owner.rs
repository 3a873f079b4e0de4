//! Owners of tables on a server that rqps does not run: the table of owners, and the mark.

/// The table that says what rqps made in a place.
pub(super) const OWNER: &str = "rqps_owner";

/// Its comment: a table of that name without it is somebody else's.
pub(super) const OWNER_COMMENT: &str = "rqps: what rqps made here, for which plan, and when";

/// Its columns, as both dialects understand them.
pub(super) const OWNER_COLUMNS: &str = "tag VARCHAR(16) NOT NULL, name VARCHAR(64) NOT NULL, \
     plan VARCHAR(16) NOT NULL, results VARCHAR(1000) NOT NULL, host VARCHAR(255) NOT NULL, \
     label VARCHAR(255) NOT NULL, version VARCHAR(32) NOT NULL, made VARCHAR(32) NOT NULL, \
     kept INT NOT NULL, PRIMARY KEY (tag, name)";

/// A visit of rqps to a server: its purpose and its permissions.
#[derive(Clone, Debug)]
pub struct Guest {
    /// 12 hex digits, another one for each host, result folder, plan and label: the same when a
    /// plan is resumed.
    pub tag: String,
    /// Hash of the plan.
    pub plan: String,
    /// The result folder.
    pub results: String,
    /// Name of the host that rqps runs on.
    pub host: String,
    /// Label of the target.
    pub label: String,
    /// The time of the visit, RFC 3339.
    pub time: String,
    /// Every name that the benchmark gives to a table, an index or a sequence.
    pub names: Vec<String>,
    /// True to keep what the benchmark made on the server (`--keep`).
    pub keep: bool,
    /// Tables of others that may be dropped for their names.
    pub replace: Vec<String>,
}

impl Guest {
    pub(super) fn mark(&self) -> String {
        mark(&self.tag)
    }
}

/// The comment of the tables of one tag.
pub(super) fn mark(tag: &str) -> String {
    format!("rqps {tag}: made for a benchmark, see {OWNER}")
}
