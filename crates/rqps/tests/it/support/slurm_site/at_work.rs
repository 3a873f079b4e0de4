//! Processes that blocks have started on the virtual nodes, told apart by their environment.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::Cluster;
use crate::support::program::text;

/// Time for servers to end after their block has.
const ENDING: Duration = Duration::from_secs(20);

/// Everything that blocks have started on this node, by number and words: rqps, drivers, servers
/// and their wardens.
fn at_work_on(folder: &Path, node: &str) -> Vec<(u32, Vec<String>)> {
    let (folder, node) = (folder.display().to_string(), format!("SLURMD_NODENAME={node}"));
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(pid) = process.file_name().to_string_lossy().parse::<u32>() else { continue };
        let of = |name: &str| {
            let bytes = fs::read(process.path().join(name)).unwrap_or_default();
            bytes.split(|byte| *byte == 0).map(text).collect::<Vec<String>>()
        };
        let environment = of("environ");
        let is_ours = environment.iter().any(|variable| variable.contains(&folder));
        if is_ours && environment.contains(&node) {
            found.push((pid, of("cmdline")));
        }
    }
    found
}

/// Process ids of the blocks that run on this node.
pub(crate) fn blocks_on(cluster: &Cluster, node: &str) -> Vec<u32> {
    let mut all = at_work_on(cluster.folder.path(), node);
    all.retain(|(_, words)| words.get(1).is_some_and(|word| word == "block"));
    all.into_iter().map(|(pid, _)| pid).collect()
}

/// Process ids of the blocks that run on the nodes of `bench`.
pub(crate) fn blocks_at_work(cluster: &Cluster) -> Vec<u32> {
    ["n1", "n2"].into_iter().flat_map(|node| blocks_on(cluster, node)).collect()
}

/// Waits until nothing that a block has started is left on this node.
pub(crate) fn wait_until_nothing_is_left(folder: &Path, node: &str) {
    let began = Instant::now();
    loop {
        let left = at_work_on(folder, node);
        if left.is_empty() {
            return;
        }
        assert!(began.elapsed() < ENDING, "left on {node}: {left:?}");
        thread::sleep(Duration::from_millis(100));
    }
}
