//! The script of a Slurm job: an array, each task of which measures one block; or one block in a
//! job of two parts, the first for its servers and the second for its clients.

use std::path::Path;

use super::elsewhere::{Elsewhere, SlurmPartition};
use crate::lab::far::quoted;
use crate::os::host;

/// Seconds between Slurm's warning and the end of a job's time limit: servers are stopped in that
/// time.
const WARNING_SECONDS: u32 = 60;

/// The values that the script of a batch of blocks needs.
pub(super) struct Batch<'a> {
    /// Name of the job: no other job has it.
    pub(super) name: &'a str,
    /// Names of the cells, one for each task of the array, from 1.
    pub(super) cells: &'a [String],
    /// The folder of all cells on the shared file system.
    pub(super) folder: &'a Path,
    /// The copy of rqps that all tasks run.
    pub(super) program: &'a Path,
    /// Nodes that failed these blocks before.
    pub(super) avoided: &'a [String],
}

/// The script as sbatch reads it.
pub(super) fn text(batch: &Batch<'_>, place: &Elsewhere, slurm: &SlurmPartition) -> String {
    let mut lines = vec!["#!/bin/bash".to_owned()];
    lines.extend(directives(batch, slurm).into_iter().map(|word| format!("#SBATCH {word}")));
    if let Some(nodes) = slurm.client_nodes {
        lines.push("# The nodes of the clients.".to_owned());
        lines.push("#SBATCH hetjob".to_owned());
        let words = of_clients(batch, slurm, nodes);
        lines.extend(words.into_iter().map(|word| format!("#SBATCH {word}")));
    }
    let (folder, machine) = (quoted(batch.folder), host::machine());
    let cache = place.cache.as_deref().map(|cache| format!(" --cache {}", quoted(cache)));
    lines.extend([
        format!("cells={folder}"),
        format!(
            "cell=$cells/$(sed -n \"${{SLURM_ARRAY_TASK_ID:-1}}p\" \"$cells/{}.cells\")",
            batch.name
        ),
        "start=$cell/$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}".to_owned(),
        format!("if [ \"$(uname -m)\" != {machine} ]; then"),
        format!(
            "    echo \"rqps: failed to measure on $SLURMD_NODENAME: it is $(uname -m), and this \
             rqps is for {machine}\""
        ),
        "    exit 2".to_owned(),
        "fi".to_owned(),
        "# Instead of the shell, so that signals of Slurm reach rqps, which stops its servers."
            .to_owned(),
        format!("exec {} block \"$cell/spec.json\" --out \"$start\" \\", quoted(batch.program)),
        format!(
            "    --node \"$SLURMD_NODENAME\" --work {}{}",
            quoted(&place.work_folder()),
            cache.unwrap_or_default()
        ),
    ]);
    lines.join("\n") + "\n"
}

/// Options of sbatch. Those of the user come last and win.
fn directives(batch: &Batch<'_>, slurm: &SlurmPartition) -> Vec<String> {
    let is_array = slurm.client_nodes.is_none();
    let place = if is_array { "%a" } else { "1" };
    let mut words = of_nodes(batch, slurm, 1);
    words.extend(is_array.then(|| format!("--array=1-{}", batch.cells.len())));
    words.extend([
        "--ntasks=1".to_owned(),
        "--requeue".to_owned(),
        "--open-mode=append".to_owned(),
        format!("--output=\"{}/{}-{place}.log\"", batch.folder.display(), batch.name),
        "--chdir=/".to_owned(),
        format!("--signal=B:TERM@{WARNING_SECONDS}"),
    ]);
    words.extend(slurm.constraint.iter().map(|features| format!("--constraint={features}")));
    words.extend(slurm.options.iter().cloned());
    words
}

/// Options of the part of a job that has the clients.
fn of_clients(batch: &Batch<'_>, slurm: &SlurmPartition, nodes: u32) -> Vec<String> {
    let mut words = of_nodes(batch, slurm, nodes);
    words.push("--ntasks-per-node=1".to_owned());
    let features = slurm.client_constraint.iter();
    words.extend(features.map(|features| format!("--constraint={features}")));
    words.extend(slurm.options.iter().cloned());
    words
}

/// Options of both parts.
fn of_nodes(batch: &Batch<'_>, slurm: &SlurmPartition, nodes: u32) -> Vec<String> {
    let mut words = vec![
        format!("--job-name={}", batch.name),
        format!("--partition={}", slurm.partition),
        format!("--nodes={nodes}"),
        "--exclusive".to_owned(),
    ];
    if !batch.avoided.is_empty() {
        words.push(format!("--exclude={}", batch.avoided.join(",")));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::executor::elsewhere::Way;

    #[test]
    fn a_script_asks_for_whole_nodes_and_runs_one_block_a_task() {
        let slurm = SlurmPartition {
            partition: "bench".to_owned(),
            constraint: Some("nvme&bare".to_owned()),
            client_constraint: Some("fast".to_owned()),
            client_nodes: None,
            options: vec!["--account=db".to_owned()],
        };
        let place = Elsewhere { way: Way::Slurm(slurm.clone()), work: None, cache: None };
        let cells = ["0001-1".to_owned(), "0002-1".to_owned()];
        let batch = Batch {
            name: "rqps-0a1b2c3d-0001",
            cells: &cells,
            folder: Path::new("/shared/it's/.cells"),
            program: Path::new("/shared/it's/.cells/rqps-00"),
            avoided: &["n3".to_owned()],
        };
        let text = text(&batch, &place, &slurm);
        for line in [
            "#SBATCH --array=1-2",
            "#SBATCH --partition=bench",
            "#SBATCH --constraint=nvme&bare",
            "#SBATCH --exclude=n3",
            "#SBATCH --account=db",
            "#SBATCH --exclusive",
            r"cells='/shared/it'\''s/.cells'",
            "    --node \"$SLURMD_NODENAME\" --work '/var/tmp'",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
        }
        assert!(!text.contains("hetjob"), "{text}");
        let slurm = SlurmPartition { client_nodes: Some(2), ..slurm };
        let text = super::text(&batch, &place, &slurm);
        let (servers, clients) = text.split_once("#SBATCH hetjob\n").expect("two parts");
        assert!(servers.contains("--nodes=1\n") && !text.contains("--array"), "{text}");
        for part in ["--nodes=2\n", "--constraint=fast\n", "--exclude=n3\n", "--account=db\n"] {
            assert!(clients.contains(part), "{part} is not in:\n{clients}");
        }
    }
}
