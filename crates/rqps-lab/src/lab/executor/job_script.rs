//! The script of a Slurm job: an array, each task of which measures one block; or one block in a
//! job of two parts, the first for its servers and the second for its clients.

use std::path::Path;

use anyhow::{Result, bail};

use super::unfit_nodes::{FOLDER, is_node};
use super::{RemoteHosts, SlurmPartition};
use crate::lab::ssh::quoted;
use rqps_host::host;

/// Seconds between Slurm's warning and the end of a job's time limit: servers are stopped in that
/// time.
const WARNING_SECONDS: u32 = 60;
/// The option of nodes that a job must not get.
const EXCLUDE: &str = "--exclude=";

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

/// Refuses words that would be more than one option of a job, or more than one line of its script.
///
/// # Errors
/// One of them would.
pub(super) fn check(folder: &Path, slurm: &SlurmPartition) -> Result<()> {
    let is_feature = |c: char| c.is_ascii_graphic() && !"\"'\\#".contains(c);
    if slurm.partition.starts_with('-') || !slurm.partition.chars().all(is_feature) {
        bail!("use the partition `{}`: it is no name", slurm.partition.escape_debug());
    }
    for features in slurm.constraint.iter().chain(&slurm.client_constraint) {
        if !features.chars().all(is_feature) {
            bail!(
                "use the constraint `{}`: it has other characters than features and their \
                   operators",
                features.escape_debug()
            );
        }
    }
    for option in &slurm.options {
        if !option.starts_with('-') || option.chars().any(char::is_control) {
            bail!("use --sbatch=`{}`: it is no option of sbatch", option.escape_debug());
        }
    }
    let folder = folder.to_string_lossy();
    if folder.chars().any(|c| c.is_control() || "\"\\%".contains(c)) {
        bail!(
            "keep results in {}: sbatch reads some of its characters as others\nhint: choose a \
             folder without quotes, backslashes and per cent signs",
            folder.escape_debug()
        );
    }
    Ok(())
}

/// An option as one word of a line of a script.
fn one_word(option: &str) -> String {
    if option.contains([' ', '"', '\'', '\\', '#']) {
        format!("\"{}\"", option.replace('\\', r"\\").replace('"', "\\\""))
    } else {
        option.to_owned()
    }
}

/// The script as sbatch reads it.
pub(super) fn text(batch: &Batch<'_>, place: &RemoteHosts, slurm: &SlurmPartition) -> String {
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
        format!("work={}", quoted(&place.work_folder())),
        format!("rqps={}", quoted(batch.program)),
    ]);
    lines.extend(leave(batch, slurm));
    lines.extend([
        format!(
            "[ \"$(uname -m)\" = {machine} ] || leave \"it is $(uname -m), and this rqps is for \
             {machine}\""
        ),
        "why=$(\"$rqps\" check-node \"$cell/spec.json\" --node \"$SLURMD_NODENAME\" \\".to_owned(),
        "    --work \"$work\" --pool \"$cells\") || leave \"${why:-its check failed}\"".to_owned(),
        "# Instead of the shell, so that signals of Slurm reach rqps, which stops its servers."
            .to_owned(),
        "exec \"$rqps\" block \"$cell/spec.json\" --out \"$start\" \\".to_owned(),
        format!("    --node \"$SLURMD_NODENAME\" --work \"$work\"{}", cache.unwrap_or_default()),
    ]);
    lines.join("\n") + "\n"
}

/// The function of a node that cannot measure: it gets no more blocks of this job, and rqps submits
/// this one again.
fn leave(batch: &Batch<'_>, slurm: &SlurmPartition) -> Vec<String> {
    let mut lines = vec![
        "leave() {".to_owned(),
        format!("    mkdir -p \"$cells/{FOLDER}\""),
        format!("    echo \"$1\" > \"$cells/{FOLDER}/$SLURMD_NODENAME\""),
    ];
    if slurm.client_nodes.is_none() {
        let before: String =
            excluded(batch.avoided, slurm).iter().map(|nodes| format!("{nodes},")).collect();
        lines.extend([
            "    # Of the array, it also names tasks that run or have ended, which is no fault."
                .to_owned(),
            "    scontrol update JobId=\"$SLURM_ARRAY_JOB_ID\" \\".to_owned(),
            format!("        ExcNodeList=\"{before}$(ls \"$cells/{FOLDER}\" | paste -sd,)\" \\"),
            "        2>&1 | grep -v -e 'No error' -e 'no longer pending' -e 'already finished'"
                .to_owned(),
        ]);
    }
    lines.extend([
        "    echo \"rqps: failed to measure on $SLURMD_NODENAME: $1\"".to_owned(),
        "    exit 2".to_owned(),
        "}".to_owned(),
    ]);
    lines
}

/// Nodes that jobs must not get: those to be avoided, and those that the user excludes.
pub(super) fn excluded(avoided: &[String], slurm: &SlurmPartition) -> Vec<String> {
    let own = slurm.options.iter().filter_map(|option| option.strip_prefix(EXCLUDE));
    own.map(str::to_owned).chain(avoided.iter().filter(|it| is_node(it)).cloned()).collect()
}

/// Options of the user, but for those that [`excluded`] has.
fn of_user(slurm: &SlurmPartition) -> impl Iterator<Item = String> {
    slurm.options.iter().filter(|option| !option.starts_with(EXCLUDE)).map(|it| one_word(it))
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
    words.extend(of_user(slurm));
    words
}

/// Options of the part of a job that has the clients.
fn of_clients(batch: &Batch<'_>, slurm: &SlurmPartition, nodes: u32) -> Vec<String> {
    let mut words = of_nodes(batch, slurm, nodes);
    words.push("--ntasks-per-node=1".to_owned());
    let features = slurm.client_constraint.iter();
    words.extend(features.map(|features| format!("--constraint={features}")));
    words.extend(of_user(slurm));
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
    let excluded = excluded(batch.avoided, slurm);
    if !excluded.is_empty() {
        words.push(format!("{EXCLUDE}{}", excluded.join(",")));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::executor::Transport;

    #[test]
    fn words_stay_one_option() {
        let slurm = SlurmPartition { partition: "bench".to_owned(), ..SlurmPartition::default() };
        let good = Path::new("/shared/.cells");
        check(good, &slurm).expect("good words");
        let refused = |change: &dyn Fn(&mut SlurmPartition)| {
            let mut other = slurm.clone();
            change(&mut other);
            assert!(check(good, &other).is_err(), "{other:?}");
        };
        refused(&|slurm| slurm.partition = "bench --uid=0".to_owned());
        refused(&|slurm| slurm.partition = "bench\nrm -rf /".to_owned());
        refused(&|slurm| slurm.constraint = Some("a --wrap=x".to_owned()));
        refused(&|slurm| slurm.constraint = Some("a\n#SBATCH --uid=0".to_owned()));
        refused(&|slurm| slurm.options = vec!["--time=1\nrm -rf /".to_owned()]);
        refused(&|slurm| slurm.options = vec!["script.sh".to_owned()]);
        assert!(check(Path::new("/a\" --uid=0/.cells"), &slurm).is_err());
        assert_eq!(one_word("--comment=a \"b\" --uid=0"), r#""--comment=a \"b\" --uid=0""#);
        let avoided = ["n1", "-n", "n2 --uid=0", "../x", "n3\nx"].map(str::to_owned);
        assert_eq!(excluded(&avoided, &slurm), ["n1"]);
    }

    #[test]
    fn a_script_asks_for_whole_nodes_and_runs_one_block_a_task() {
        let slurm = SlurmPartition {
            partition: "bench".to_owned(),
            constraint: Some("nvme&bare".to_owned()),
            client_constraint: Some("fast".to_owned()),
            client_nodes: None,
            options: vec!["--account=db".to_owned()],
        };
        let place = RemoteHosts { way: Transport::Slurm(slurm.clone()), work: None, cache: None };
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
            "work='/var/tmp'",
            "    --node \"$SLURMD_NODENAME\" --work \"$work\"",
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
