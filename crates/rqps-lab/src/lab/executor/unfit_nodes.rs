//! Nodes that get no more blocks of a plan, each with its reason: a file in the folder of the
//! cells. The node writes it when it finds itself unfit, or the coordinator when blocks fail there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use rqps_host::mark::OwnFolder;
use rqps_host::plain;
use rqps_results::{entries, replace_whole};

/// Bytes of a reason.
const WHY_MOST: u64 = 4096;
/// The folder of all reasons, in that of the cells.
pub(super) const FOLDER: &str = "unfit";

/// Unfit nodes as far as they are known.
pub(super) struct UnfitNodes {
    folder: PathBuf,
    reasons: BTreeMap<String, String>,
}

impl UnfitNodes {
    /// Begins without any: those of an earlier sitting may be mended.
    ///
    /// # Errors
    /// Earlier ones cannot be forgotten.
    pub(super) fn open(cells: &OwnFolder) -> Result<UnfitNodes> {
        let folder = cells.path().join(FOLDER);
        cells.remove_below(&folder)?;
        Ok(UnfitNodes { folder, reasons: BTreeMap::new() })
    }

    /// The nodes that have become unfit since the last call.
    ///
    /// # Errors
    /// A reason cannot be read.
    pub(super) fn new_ones(&mut self) -> Result<Vec<String>> {
        let all = reasons(&self.folder)?;
        let is_new = |node: &&String| !self.reasons.contains_key(*node);
        let found = all.keys().filter(is_new).cloned().collect();
        self.reasons.extend(all);
        Ok(found)
    }

    /// Declares a node unfit; [`UnfitNodes::new_ones`] returns it next.
    ///
    /// # Errors
    /// The reason cannot be written.
    pub(super) fn declare(&self, node: &str, why: &str) -> Result<()> {
        let what = || format!("write down that the node {node} is unfit");
        if !is_node(node) {
            bail!("{}: it has no plain name", what());
        }
        fs::create_dir_all(&self.folder).with_context(what)?;
        replace_whole(&self.folder.join(node), format!("{why}\n")).with_context(what)
    }

    pub(super) fn reason(&self, node: &str) -> Option<&str> {
        self.reasons.get(node).map(String::as_str)
    }

    /// All of them.
    pub(super) fn names(&self) -> Vec<String> {
        self.reasons.keys().cloned().collect()
    }
}

/// True for a name that a node can have: others would be options, or lists of nodes.
pub(super) fn is_node(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && !name.starts_with(['-', '.']) && name.chars().all(is_part)
}

/// The unfit nodes of a folder of cells, with their reasons.
///
/// # Errors
/// A reason cannot be read.
pub(super) fn all(cells: &Path) -> Result<BTreeMap<String, String>> {
    reasons(&cells.join(FOLDER))
}

fn reasons(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    if !folder.is_dir() {
        return Ok(found);
    }
    for node in entries(folder)?.into_iter().filter(|node| is_node(node)) {
        // Nodes write it.
        let why = plain::beginning(&folder.join(&node), WHY_MOST).unwrap_or_default();
        // A node may still be writing it.
        if !why.trim().is_empty() {
            found.insert(node, why.trim().to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_host::mark::MarkKey;

    #[test]
    fn each_node_is_told_once_and_forgotten_by_the_next_sitting() {
        let folder = tempfile::tempdir().unwrap();
        let key = MarkKey::open(None).unwrap();
        let cells = key.claim(&folder.path().join(".cells")).unwrap();
        let mut nodes = UnfitNodes::open(&cells).unwrap();
        assert_eq!(nodes.new_ones().unwrap(), [""; 0]);
        nodes.declare("n2", "its disk is full").unwrap();
        nodes.declare("n1", "sick").unwrap();
        assert_eq!(nodes.new_ones().unwrap(), ["n1", "n2"]);
        assert_eq!(nodes.new_ones().unwrap(), [""; 0]);
        assert_eq!(nodes.reason("n2"), Some("its disk is full"));
        assert_eq!(UnfitNodes::open(&cells).unwrap().new_ones().unwrap(), [""; 0]);
    }
}
