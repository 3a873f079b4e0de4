//! The run folders that numbers link to.

/// A run folder that numbers link to.
pub(crate) struct RunLink {
    /// Name in cells.
    pub(crate) folder: String,
    /// Link address.
    pub(crate) address: String,
    /// Displayed name.
    pub(crate) name: String,
}
