//! The call trees of two targets in one: what a flame graph shows.

use std::collections::HashMap;
use std::sync::Arc;

use rqps_model::sampled::CallTree;

/// Call trees of baseline and target, joined.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MergedTree {
    /// Names of functions.
    pub names: Vec<Arc<str>>,
    /// A caller comes before those that it calls.
    pub nodes: Vec<MergedNode>,
}

/// A function in the place where it was called, with its CPU microseconds per operation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MergedNode {
    /// Place of its caller among the nodes.
    pub caller: Option<u32>,
    /// Place of its name.
    pub name: u32,
    /// Own time in the baseline.
    pub baseline: f64,
    /// Own time in the target.
    pub target: f64,
}

/// Joins trees node by node.
#[derive(Default)]
pub(super) struct Merger {
    tree: MergedTree,
    names: HashMap<Arc<str>, u32>,
    places: HashMap<(Option<u32>, u32), u32>,
}

impl Merger {
    /// Adds the stacks of a profile of the target, or of the baseline, with the microseconds per
    /// operation that a sample stands for.
    pub(super) fn add(&mut self, tree: &CallTree, of_sample: f64, is_target: bool) {
        let mut places: Vec<u32> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let caller = node.caller.map(|caller| places[caller as usize]);
            let place = self.place(caller, &tree.names[node.name as usize]);
            places.push(place);
            let time = node.own as f64 * of_sample;
            let merged = &mut self.tree.nodes[place as usize];
            if is_target { merged.target += time } else { merged.baseline += time }
        }
    }

    fn place(&mut self, caller: Option<u32>, name: &Arc<str>) -> u32 {
        let names = &mut self.tree.names;
        let name = *self.names.entry(Arc::clone(name)).or_insert_with(|| {
            names.push(Arc::clone(name));
            names.len() as u32 - 1
        });
        let nodes = &mut self.tree.nodes;
        *self.places.entry((caller, name)).or_insert_with(|| {
            nodes.push(MergedNode { caller, name, baseline: 0.0, target: 0.0 });
            nodes.len() as u32 - 1
        })
    }

    /// The merged tree.
    pub(super) fn end(self) -> MergedTree {
        self.tree
    }
}

impl MergedTree {
    /// For each node the time with all that it calls: of baseline and target.
    pub fn inclusive(&self) -> Vec<(f64, f64)> {
        let mut all: Vec<(f64, f64)> =
            self.nodes.iter().map(|node| (node.baseline, node.target)).collect();
        for place in (0..self.nodes.len()).rev() {
            if let Some(caller) = self.nodes[place].caller {
                let (baseline, target) = all[place];
                all[caller as usize].0 += baseline;
                all[caller as usize].1 += target;
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rqps_model::sampled::CallNode;

    #[test]
    fn stacks_of_two_targets_are_one_tree() {
        let tree = |names: &[&str], nodes: &[(Option<u32>, u32, u64)]| CallTree {
            names: names.iter().map(|name| Arc::from(*name)).collect(),
            nodes: nodes
                .iter()
                .map(|&(caller, name, own)| CallNode { caller, name, own })
                .collect(),
        };
        let before = tree(&["main", "read"], &[(None, 0, 1), (Some(0), 1, 4)]);
        let after =
            tree(&["read", "main", "sort"], &[(None, 1, 0), (Some(0), 0, 3), (Some(1), 2, 5)]);
        let mut merger = Merger::default();
        merger.add(&before, 2.0, false);
        merger.add(&after, 1.0, true);
        let merged = merger.end();
        let names: Vec<&str> =
            merged.nodes.iter().map(|node| &*merged.names[node.name as usize]).collect();
        assert_eq!(names, ["main", "read", "sort"]);
        assert_eq!(merged.inclusive(), [(10.0, 8.0), (8.0, 8.0), (0.0, 5.0)]);
    }
}
