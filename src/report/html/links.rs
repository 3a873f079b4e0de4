//! The run folders that numbers link to.

/// A run folder that numbers link to.
pub(super) struct RunLink {
    /// Name in cells.
    pub(super) folder: String,
    /// Link address.
    pub(super) address: String,
    /// Displayed name.
    pub(super) name: String,
}
