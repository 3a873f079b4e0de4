//! Slurm's commands: submissions, the queue, cancelling. Nothing here needs its accounting.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use thiserror::Error;

use crate::lab::executor::slurm_jobs::{FOLDER, is_node};
use crate::lab::executor::{RemoteHosts, SlurmPartition};
use crate::lab::ssh::quoted;
use rqps_host::child::{self, ChildTask};
use rqps_host::{command_output, host};

/// Slurm's default for the largest number of tasks in an array, where it does not tell.
const ARRAY_MOST: usize = 1000;
/// Fields of a line of squeue, in the order of [`FORMAT`].
const FIELDS: usize = 9;
/// What sbatch says where no node meets the requirements of a job.
const NO_NODE: &str = "node configuration is not available";
/// What Slurm's commands say if the controller is down, busy or unreachable.
const NO_ANSWER: [&str; 4] = [
    "Unable to contact slurm controller",
    "Socket timed out",
    "Zero Bytes were transmitted",
    "standby mode",
];
/// Array job, task, state, reason, node, name, job, time limit, what is left of it.
const FORMAT: &str = "%F|%K|%T|%r|%N|%j|%i|%l|%L";

/// The controller gave no answer, for example during a restart or a network failure. Jobs keep
/// running.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct NoAnswer(String);

/// One task of an array as the queue shows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::lab) struct QueuedTask {
    /// Name of its job.
    pub(super) name: String,
    /// Its place in the array, from 1.
    pub(super) index: usize,
    /// As scontrol takes it: `17_3`.
    pub(super) job: String,
    /// `PENDING`, `RUNNING`, `NODE_FAIL` …
    pub(super) state: String,
    /// The reason for this state.
    pub(super) reason: String,
    /// Node that it runs or ran on; empty for none.
    pub(super) node: String,
    /// Its time limit as Slurm prints it, `1:00` for a minute, or `UNLIMITED`.
    pub(super) limit: String,
    /// What was left of the limit, in the same form.
    pub(super) left: String,
}

impl QueuedTask {
    /// The job of all tasks of its array: `17` of `17_3`.
    pub(in crate::lab) fn array(&self) -> &str {
        self.job.split('_').next().unwrap_or_default()
    }

    /// Its reason in lower case and single words: versions of Slurm differ in case and underscores.
    pub(in crate::lab) fn reason_words(&self) -> String {
        self.reason.replace('_', " ").to_lowercase()
    }

    /// Seconds that were left of its time limit; `None` if it has none, or none is known.
    pub(in crate::lab) fn seconds_left(&self) -> Option<u64> {
        seconds(&self.left)
    }

    /// True if it will not run again by itself.
    pub(in crate::lab) fn has_ended(&self) -> bool {
        const UNDER_WAY: [&str; 12] = [
            "PENDING", "CONFIGURING", "RUNNING", "SUSPENDED", "COMPLETING", "REQUEUED",
            "REQUEUE_HOLD", "REQUEUE_FED", "RESIZING", "SIGNALING", "STAGE_OUT", "STOPPED",
        ];
        !UNDER_WAY.contains(&self.state.as_str())
    }
}

/// Runs one of Slurm's commands.
fn asked(program: &str, words: &[&str]) -> Result<String> {
    let mut command = child::command(program, ChildTask::Submit);
    command.args(words);
    let said = command_output::run(command).map_err(|why| {
        anyhow::anyhow!("start {program}: {why}\nhint: run rqps where Slurm's commands are")
    })?;
    if said.success() {
        Ok(said.output)
    } else {
        Err(failed(format!("{program}: {}", said.complaint())))
    }
}

/// The error for what a command said; [`NoAnswer`] if the controller did not answer it.
fn failed(said: String) -> anyhow::Error {
    if NO_ANSWER.iter().any(|words| said.contains(words)) {
        NoAnswer(said).into()
    } else {
        anyhow::Error::msg(said)
    }
}

/// The tasks of the jobs of these names that Slurm still knows.
///
/// # Errors
/// The controller does not answer.
pub(super) fn tasks(names: &[String]) -> Result<Vec<QueuedTask>> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let names = format!("--name={}", names.join(","));
    let text = asked("squeue", &["--noheader", "--array", "--states=all", &names, "-o", FORMAT])?;
    Ok(text.lines().filter_map(parsed).collect())
}

pub(in crate::lab) fn parsed(line: &str) -> Option<QueuedTask> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    if fields.len() != FIELDS {
        return None;
    }
    // squeue lists a heterogeneous job once per part, such as `17+0` and `18+1`. Part 0 has the
    // servers and stands for the block.
    let (index, job) = match (fields[1], fields[6].split_once('+')) {
        ("N/A", Some((job, "0"))) => (1, job.to_owned()),
        ("N/A", _) => return None,
        (index, _) => (index.parse().ok()?, format!("{}_{}", fields[0], index)),
    };
    Some(QueuedTask {
        name: fields[5].to_owned(),
        index,
        job,
        state: fields[2].to_owned(),
        reason: fields[3].to_owned(),
        node: fields[4].trim_matches(|c| c == '(' || c == ')').to_owned(),
        limit: fields[7].to_owned(),
        left: fields[8].to_owned(),
    })
}

/// Seconds of a time as Slurm prints it: `[days-][hours:]minutes:seconds`.
fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let parts: Option<Vec<u64>> = clock.split(':').map(|part| part.parse().ok()).collect();
    let parts = parts.filter(|parts| (2..=3).contains(&parts.len()))?;
    let clock = parts.iter().try_fold(0u64, |all, part| all.checked_mul(60)?.checked_add(*part))?;
    days.parse::<u64>().ok()?.checked_mul(86_400)?.checked_add(clock)
}

/// The largest array that this cluster takes.
///
/// # Errors
/// The controller does not answer.
pub(super) fn array_most() -> Result<usize> {
    let text = asked("scontrol", &["show", "config"])?;
    let told = text.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "MaxArraySize").then(|| value.trim().parse::<usize>().ok())?
    });
    // The largest index is one less.
    Ok(told.map_or(ARRAY_MOST, |most| most.saturating_sub(1)).clamp(1, ARRAY_MOST))
}

/// Has a script looked at without submitting it.
///
/// # Errors
/// No node can run it; the text says why and what to do.
pub(super) fn try_out(script: &str, features: Option<&str>, partition: &str) -> Result<()> {
    sbatch(&["--test-only"], script).map(drop).map_err(|said| explained(&said, features, partition))
}

/// False if Slurm says that no node can run a script.
/// True also while the controller does not answer.
pub(super) fn has_nodes(script: &str) -> bool {
    sbatch(&["--test-only"], script).map_or_else(|said| !said.contains(NO_NODE), |_| true)
}

/// Keeps the tasks of a job that wait away from these nodes.
///
/// # Errors
/// Slurm refuses.
pub(super) fn exclude(job: &str, nodes: &[String]) -> Result<()> {
    let words = ["update", &format!("JobId={job}"), &format!("ExcNodeList={}", nodes.join(","))];
    // Of an array, scontrol also names tasks that run or have ended: they keep their node.
    let is_late = |error: &anyhow::Error| {
        let said = error.to_string();
        said.contains("no longer pending") || said.contains("already finished")
    };
    match asked("scontrol", &words) {
        Err(error) if !is_late(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Submits the script in a file; returns the number of the job.
///
/// # Errors
/// As [`try_out`]; [`NoAnswer`] if the controller does not answer, which may have taken the job.
pub(super) fn submit(path: &Path, features: Option<&str>, partition: &str) -> Result<String> {
    let script =
        std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    let said = sbatch(&["--parsable"], &script);
    let said = said.map_err(|said| explained(&said, features, partition))?;
    let job = said.lines().last().unwrap_or_default().split(';').next().unwrap_or_default();
    Ok(job.trim().to_owned())
}

/// The error is what sbatch said.
fn sbatch(words: &[&str], script: &str) -> Result<String, String> {
    let mut command = child::command("sbatch", ChildTask::Submit);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("start it: {error}"))?;
    if let Some(mut input) = child.stdin.take() {
        // One that does not read says why, below.
        input.write_all(script.as_bytes()).ok();
    }
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() {
        Ok(said(&output.stdout))
    } else {
        Err(said(&output.stderr).replace('\n', "; "))
    }
}

/// The error for a refused submission, with a hint where one is known.
fn explained(said: &str, features: Option<&str>, partition: &str) -> anyhow::Error {
    let hosts = "`sinfo --format='%P %f %D %t'` lists partitions and features";
    if said.contains("nvalid feature") {
        let features = features.unwrap_or_default();
        return anyhow::anyhow!(
            "submit blocks: no such host class: no node has the features `{features}` of \
             --constraint\nhint: {hosts}"
        );
    }
    if said.contains("nvalid partition") {
        return anyhow::anyhow!("submit blocks: no partition `{partition}`\nhint: {hosts}");
    }
    if said.contains(NO_NODE) {
        return anyhow::anyhow!(
            "submit blocks: no node of the partition `{partition}` meets the requirements of the \
             job ({said})\nhint: {hosts}"
        );
    }
    if said.starts_with("start it") {
        return anyhow::anyhow!(
            "submit blocks: sbatch: {said}\nhint: run rqps where Slurm's commands are"
        );
    }
    failed(format!("submit blocks: {said}"))
}

/// Lets a held task run.
///
/// # Errors
/// Slurm refuses.
pub(super) fn release(task: &QueuedTask) -> Result<()> {
    asked("scontrol", &["release", &task.job]).map(drop)
}

/// Cancels all tasks of jobs of these names.
///
/// # Errors
/// The controller does not answer.
pub(super) fn cancel(names: &[String]) -> Result<()> {
    asked("scancel", &[&format!("--name={}", names.join(","))]).map(drop)
}

/// Cancels one task.
///
/// # Errors
/// The controller does not answer.
pub(super) fn cancel_task(task: &QueuedTask) -> Result<()> {
    asked("scancel", &[&task.job]).map(drop)
}

// The script of a Slurm job: an array, each task of which measures one block; or one block in a
// job of two parts, the first for its servers and the second for its clients.

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

    #[test]
    fn lines_of_the_queue_become_tasks() {
        let task = parsed("17|3|RUNNING|None|n1|rqps-0a1b-0001|20|1:00|0:12").expect("a task");
        assert_eq!(
            (task.name.as_str(), task.index, task.job.as_str()),
            ("rqps-0a1b-0001", 3, "17_3")
        );
        assert_eq!((task.node.as_str(), task.has_ended()), ("n1", false));
        assert_eq!((task.limit.as_str(), task.seconds_left()), ("1:00", Some(12)));
        let failed =
            parsed("17|4|NODE_FAIL|NodeDown|n2|rqps-0a1b-0001|21|1:00|0:12").expect("a task");
        assert!(failed.has_ended());
        assert_eq!(parsed("17|N/A|PENDING|None||other|17|1:00|1:00"), None);
        let first = "17|N/A|RUNNING|None|n1|rqps-0a1b-0001|17+0|UNLIMITED|UNLIMITED";
        let first = parsed(first).expect("a job");
        assert_eq!(first.seconds_left(), None);
        assert_eq!((first.index, first.job.as_str()), (1, "17"));
        assert_eq!(parsed("18|N/A|RUNNING|None|n3|rqps-0a1b-0001|17+1|1:00|0:12"), None);
        assert_eq!(parsed("slurm_load_jobs error"), None);
    }

    #[test]
    fn times_of_slurm_are_seconds() {
        for (text, expected) in [
            ("0:59", Some(59)),
            ("2:00:00", Some(7200)),
            ("1-00:00:01", Some(86_401)),
            // No controller means these, and none of them ends rqps.
            ("9223372036854775807:00", None),
            ("9223372036854775807-00:00", None),
            ("UNLIMITED", None),
            ("INVALID", None),
            ("", None),
        ] {
            assert_eq!(seconds(text), expected, "{text}");
        }
    }

    #[test]
    fn a_controller_that_is_away_is_no_refusal() {
        let said = "sbatch: error: Batch job submission failed: Unable to contact slurm controller \
                    (connect failure)";
        assert!(explained(said, None, "bench").is::<NoAnswer>());
        assert!(
            !explained("sbatch: error: QOSMaxSubmitJobPerUserLimit", None, "bench")
                .is::<NoAnswer>()
        );
    }

    #[test]
    fn refusals_say_what_to_do() {
        let said = "sbatch: error: Batch job submission failed: Invalid feature specification";
        let text = explained(said, Some("nvme"), "bench").to_string();
        assert!(text.contains("no such host class") && text.contains("`nvme`"), "{text}");
        let said = "sbatch: error: invalid partition specified: lab";
        assert!(explained(said, None, "lab").to_string().contains("no partition `lab`"));
        let other = explained("sbatch: error: QOSMaxSubmitJobPerUserLimit", None, "lab");
        assert!(other.to_string().contains("QOSMaxSubmitJobPerUserLimit"));
    }
}

#[cfg(test)]
mod job_script_tests {
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
