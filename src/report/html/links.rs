//! The run folders that numbers link to.

/// A run folder that numbers link to.
pub(in crate::report) struct RunLink {
    /// Name in cells.
    pub(in crate::report) folder: String,
    /// Link address.
    pub(in crate::report) address: String,
    /// Displayed name.
    pub(in crate::report) name: String,
}
