//! rqps as a guest: where its tables are on a server that it does not run.

/// The place of a benchmark's tables on a server that somebody else runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestPlace {
    /// `schema rqps_0123456789ab of the database app`.
    pub words: String,
    /// The comment of every table that rqps makes there. A table without it is not rqps's.
    pub mark: String,
}
