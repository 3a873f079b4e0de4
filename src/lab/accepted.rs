//! Builds and files that the user was asked about. They are the same until the last step, or the
//! plan ends.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, bail};

use crate::os::fingerprint::Fingerprint;

/// Files as they were when the user accepted them; empty for a plan of the user's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepted {
    /// Builds that a plan names by their path, by the label of their target.
    pub builds: BTreeMap<String, Fingerprint>,
    /// Scripts, SQL, recipes, patches and data.
    pub files: Vec<Fingerprint>,
}

impl Accepted {
    /// Checks the files, and the build of a target, right before they are used.
    ///
    /// # Errors
    /// Somebody has changed one; the text names it.
    pub(super) fn check(&self, label: &str) -> Result<()> {
        let prints = self.files.iter().chain(self.builds.get(label));
        for print in prints {
            if let Err(fault) = print.check() {
                bail!("use {fault}\nhint: run it again to be asked about what is there now");
            }
        }
        Ok(())
    }

    /// Checks that the build of a target is the one that was read.
    ///
    /// # Errors
    /// It stands elsewhere, because somebody changed a link, or was changed.
    pub(super) fn check_place(&self, label: &str, root: Option<&Path>) -> Result<()> {
        self.check(label)?;
        match (self.builds.get(label), root) {
            (Some(print), Some(root)) if !print.path.starts_with(root) => bail!(
                "use {}: it leads elsewhere since it was allowed\nhint: run it again to be asked \
                 about what is there now",
                root.display()
            ),
            _ => Ok(()),
        }
    }
}
