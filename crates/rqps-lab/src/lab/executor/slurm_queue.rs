//! Slurm's commands: submissions, the queue, cancelling. Nothing here needs its accounting.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, Result};
use thiserror::Error;

use rqps_host::child::{self, ChildTask};
use rqps_host::command_output;

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
