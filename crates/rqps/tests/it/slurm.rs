//! Blocks by Slurm on virtual nodes of this machine, and what becomes of them when nodes, jobs and
//! the controller fail.

use crate::support::{elsewhere, skipped};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, JoinHandle};

use crate::support::elsewhere::{json, runs};
use crate::support::program::text;
use crate::support::slurm_site::Cluster;
use crate::support::slurm_site::at_work::{blocks_at_work, blocks_on, wait_until_nothing_is_left};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

/// A user without rights.
const NOBODY: u32 = 65_534;

/// Nodes that measured blocks.
fn nodes(out: &str) -> BTreeSet<String> {
    let gate = json(&Path::new(out).join("gate.json"));
    let blocks = gate["blocks"].as_array().expect("blocks").clone();
    blocks
        .iter()
        .map(|block| block["session"]["node"].as_str().expect("a node").to_owned())
        .collect()
}

/// Verdict of each step.
fn verdicts(cluster: &Cluster, out: &str) -> BTreeMap<String, String> {
    let output = cluster.run(&["report", out, "--format", "json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut verdicts = BTreeMap::new();
    for step in report["comparison"]["steps"].as_array().expect("steps") {
        let judged = &step["targets"][1]["metrics"]["rate"]["relative"]["judgement"]["verdict"];
        verdicts.insert(step["name"].to_string(), judged.as_str().expect("verdict").to_owned());
    }
    verdicts
}

#[test]
fn blocks_by_slurm() {
    let Some(mut cluster) = Cluster::start("blocks_by_slurm") else { return };
    // It waits for Slurm, which looks for such jobs twice a minute: beside the others, on n3.
    let limited = at_its_time_limit(&cluster);
    blocks_on_two_nodes_give_the_verdicts_of_local_blocks(&cluster);
    a_class_of_hosts_that_is_not_there_makes_nothing(&cluster);
    a_plan_shows_its_job_script(&cluster);
    clients_have_a_node_of_their_own(&cluster);
    nodes_of_another_architecture_are_told(&cluster);
    a_killed_coordinator_finds_its_jobs_again(&cluster);
    cancelled_jobs_are_told_and_resumed(&cluster);
    a_drained_node_and_a_requeued_job_lose_no_block(&cluster);
    a_dead_node_loses_no_block(&mut cluster);
    two_users_share_nodes_and_folders(&cluster);
    a_full_node_gets_no_more_blocks(&mut cluster);
    a_block_at_its_time_limit_is_told_and_resumed(&cluster, limited);
    a_restarted_controller_is_waited_for(&mut cluster);
    for node in ["n1", "n2", "n3"] {
        wait_until_nothing_is_left(cluster.folder.path(), node);
    }
}

fn blocks_on_two_nodes_give_the_verdicts_of_local_blocks(cluster: &Cluster) {
    let usual = cluster.run(&cluster.words("slow", 8, "usual"));
    assert!(usual.status.success(), "{}", text(&usual.stderr));
    let output = cluster.run(&cluster.elsewhere("slow", 8, "fleet"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (usual, fleet) = (cluster.out("usual"), cluster.out("fleet"));
    assert_eq!(runs(&fleet), runs(&usual));
    assert_eq!(nodes(&fleet), ["n1".to_owned(), "n2".to_owned()].into());
    assert_eq!(verdicts(cluster, &fleet), verdicts(cluster, &usual));
    let report = text(&output.stdout);
    assert!(report.contains("host n1") && report.contains("host n2"), "{report}");
    let fleet = Path::new(&fleet);
    assert!(!fleet.join(".cells").exists(), "nothing but results stays");
    assert!(fleet.join("jobs/0008-1.log").exists(), "logs are fetched");
    let left = fs::read_dir(cluster.path("data/rqps-blocks-0"));
    assert_eq!(left.map_or(0, Iterator::count), 0, "data are left on the nodes");
    let status = text(&cluster.run(&["run", "--status", &fleet.to_string_lossy()]).stdout);
    assert!(status.contains("8 measured: 1 on n"), "{status}");
}

fn a_class_of_hosts_that_is_not_there_makes_nothing(cluster: &Cluster) {
    let mut words = cluster.elsewhere("slow", 2, "nowhere");
    words.extend(["--constraint", "optane"].map(str::to_owned));
    let output = cluster.run(&words);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no such host class: no node has the features `optane`"), "{said}");
    assert!(!Path::new(&cluster.out("nowhere")).exists());
    let mut words = cluster.words("slow", 2, "nowhere");
    words.extend(["--on", "slurm:lab"].map(str::to_owned));
    let said = text(&cluster.run(&words).stderr);
    assert!(said.contains("no partition `lab`\nhint: `sinfo"), "{said}");
}

fn a_plan_shows_its_job_script(cluster: &Cluster) {
    let mut words = cluster.elsewhere("slow", 2, "planned");
    words[0] = "plan".to_owned();
    words.extend(["--constraint", "bare", "--sbatch=--time=30"].map(str::to_owned));
    let output = cluster.run(&words);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for line in
        ["#   #SBATCH --array=1-2", "#   #SBATCH --constraint=bare", "#   #SBATCH --time=30"]
    {
        assert!(said.lines().any(|found| found == line), "{line} is not in:\n{said}");
    }
}

fn clients_have_a_node_of_their_own(cluster: &Cluster) {
    let four = ["--clients", "4"].map(str::to_owned);
    let mut usual = cluster.words("slow", 1, "together");
    usual.extend(four.clone());
    let usual = cluster.run(&usual);
    assert!(usual.status.success(), "{}", text(&usual.stderr));
    let mut words = cluster.elsewhere("slow", 1, "apart");
    words.extend(four);
    words.extend(["--client-nodes", "1", "--constraint", "nvme"].map(str::to_owned));
    let output = cluster.run(&words);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (together, apart) = (cluster.out("together"), cluster.out("apart"));
    assert_eq!(elsewhere::counts(&apart), elsewhere::counts(&together));
    assert_eq!(nodes(&apart), ["n1".to_owned()].into());
    let report = text(&output.stdout);
    assert!(report.contains("1 for each block, nodes of Slurm: n2 by TCP"), "{report}");
    let of_ssh = ["--on", "ssh:one", "--client-nodes", "1"].map(str::to_owned);
    let mut words = cluster.words("slow", 1, "nowhere");
    words.extend(of_ssh);
    let said = text(&cluster.run(&words).stderr);
    assert!(said.contains("hint: --on slurm:PARTITION, or"), "{said}");
}

fn nodes_of_another_architecture_are_told(cluster: &Cluster) {
    let folder = cluster.path("other");
    fs::create_dir(&folder).expect("folder");
    let program = folder.join("uname");
    fs::write(&program, "#!/bin/sh\necho riscv64\n").expect("write");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("mode");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut command = cluster.rqps(&cluster.elsewhere("slow", 4, "other"));
    // Jobs have the environment of who submits them.
    command.env("PATH", format!("{}:{path}", folder.display()));
    let output = command.output().expect("start rqps");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("no fit node is left; n1: it is riscv64, and this rqps is"), "{said}");
}

/// Starts a comparison that takes some seconds a block, and waits until two blocks run. What it
/// says is in the file of [`said_so_far`].
fn begun(cluster: &Cluster, blocks: u32, out: &str) -> Child {
    started(cluster, &mut cluster.rqps(&cluster.elsewhere("serving", blocks, out)), out)
}

fn started(cluster: &Cluster, command: &mut Command, out: &str) -> Child {
    let said = fs::File::create(cluster.path(out)).expect("a file");
    let mut child = command.stdout(Stdio::null()).stderr(said).spawn().expect("start rqps");
    cluster.wait_for("two blocks at work", |cluster| {
        let is_over = child.try_wait().expect("ask for its end").is_some();
        assert!(!is_over, "{}", said_so_far(cluster, out));
        blocks_at_work(cluster).len() == 2
    });
    child
}

/// What the comparison with these results has said so far.
fn said_so_far(cluster: &Cluster, out: &str) -> String {
    fs::read_to_string(cluster.path(out)).expect("read")
}

fn all_of(blocks: u64) -> BTreeSet<(u64, String)> {
    let labels = ["fake-1", "b"];
    (1..=blocks).flat_map(|block| labels.map(|label| (block, label.to_owned()))).collect()
}

fn a_killed_coordinator_finds_its_jobs_again(cluster: &Cluster) {
    let mut child = begun(cluster, 3, "killed");
    child.kill().expect("kill");
    child.wait().expect("wait");
    let output = cluster.run(&cluster.resumed("killed"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(runs(&cluster.out("killed")), all_of(3));
    let words = ["-p", "bench", "--array", "--states=all", "-h", "-o", "%T"];
    let jobs = cluster.slurm("squeue", &words);
    let ended = jobs.lines().filter(|job| job.contains("COMPLETED")).count();
    // Eight, one of two parts, and these three once.
    assert_eq!(ended, 13, "{jobs}");
}

/// Jobs of the partition `bench` that run: number and node.
fn running(cluster: &Cluster) -> Vec<(String, String)> {
    let words = ["-h", "--array", "-p", "bench", "-t", "RUNNING", "-o", "%i %N"];
    let jobs = cluster.slurm("squeue", &words);
    let of_line =
        |line: &str| line.split_once(' ').map(|(job, node)| (job.to_owned(), node.to_owned()));
    jobs.lines().filter_map(of_line).collect()
}

fn cancelled_jobs_are_told_and_resumed(cluster: &Cluster) {
    let mut child = begun(cluster, 3, "stopped");
    kill_process(Pid::from_child(&child), Signal::INT).expect("Ctrl-C");
    assert_eq!(child.wait().expect("wait").code(), Some(130));
    let left = cluster.slurm("squeue", &["-p", "bench", "--array", "-h", "-t", "PENDING,RUNNING"]);
    assert_eq!(left, "", "Ctrl-C cancels all jobs");
    let mut child = started(cluster, &mut cluster.rqps(&cluster.resumed("stopped")), "stopped");
    let jobs = running(cluster);
    let array = jobs[0].0.split('_').next().expect("an array").to_owned();
    cluster.slurm("scancel", &[&array]);
    let code = child.wait().expect("wait").code();
    let said = said_so_far(cluster, "stopped");
    assert_eq!(code, Some(4), "{said}");
    // In one line, unless the queue was read while blocks ended.
    let cancelled = format!("cancelled in Slurm (job {array}");
    let lines = said.lines().filter(|line| line.contains(&cancelled) && line.contains("failed: "));
    assert!((1..=3).contains(&lines.count()), "{said}");
    assert!(said.contains("\nhint: `rqps run --resume` measures what is left"), "{said}");
    for node in ["n1", "n2"] {
        wait_until_nothing_is_left(cluster.folder.path(), node);
    }
    let output = cluster.run(&cluster.resumed("stopped"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(runs(&cluster.out("stopped")), all_of(3));
}

/// The block of n1 is requeued while no node takes new ones; that of n2 goes on.
fn a_drained_node_and_a_requeued_job_lose_no_block(cluster: &Cluster) {
    let mut words = cluster.elsewhere("serving", 3, "drained");
    words.extend(["--progress", "json"].map(str::to_owned));
    let mut child = started(cluster, &mut cluster.rqps(&words), "drained");
    cluster.wait_for("rqps to see them", |cluster| {
        said_so_far(cluster, "drained").contains("blocks running: 2")
    });
    let jobs = running(cluster);
    let job = jobs.iter().find_map(|(job, node)| (node == "n1").then_some(job)).expect("a job");
    let set = |node: &str, words: &[&str]| {
        let node = format!("NodeName={node}");
        cluster.slurm("scontrol", &[&["update", node.as_str()][..], words].concat());
    };
    set("n1,n2", &["State=DRAIN", "Reason=fan"]);
    cluster.slurm("scontrol", &["requeue", job]);
    cluster.wait_for("a note", |cluster| {
        said_so_far(cluster, "drained").contains("no node can take job")
    });
    wait_until_nothing_is_left(cluster.folder.path(), "n1");
    set("n2", &["State=RESUME"]);
    let status = child.wait().expect("wait");
    let said = said_so_far(cluster, "drained");
    assert!(status.success(), "{said}");
    let block = job.split('_').nth(1).expect("a task");
    let requeued =
        format!("block {block}: its node n1 failed, or somebody requeued its job {job};");
    assert!(said.contains(&requeued), "{said}");
    assert!(said.contains("hint: `sinfo --list-reasons` says why"), "{said}");
    let out = cluster.out("drained");
    assert_eq!(runs(&out), all_of(3));
    assert_eq!(nodes(&out), ["n2".to_owned()].into());
    set("n1", &["State=RESUME"]);
    cluster.wait_for_nodes();
}

/// Starts a block of half a minute under a time limit of a minute, and resumes it without one.
/// Slurm sends its signal a minute before the limit: when it first looks.
fn at_its_time_limit(cluster: &Cluster) -> JoinHandle<[Output; 2]> {
    let on = ["--on", "slurm:short", "--work", &cluster.path("limited").display().to_string()]
        .map(str::to_owned);
    let mut words = cluster.words("serving", 1, "limited");
    // Only the steps of the other one take time.
    words.retain(|word| word != "fake@1");
    words.extend(["--set", "read_seconds=33"].map(str::to_owned));
    words.extend(on.clone());
    words.push("--sbatch=--time=1".to_owned());
    let mut limited = cluster.rqps(&words);
    let configs = cluster.path("configs").display().to_string();
    let again = ["run", &cluster.out("limited"), "--resume", "--configs", &configs];
    let again: Vec<String> = again.map(str::to_owned).into_iter().chain(on).collect();
    let mut resumed = cluster.rqps(&again);
    let folder = cluster.folder.path().to_owned();
    thread::spawn(move || {
        let limited = limited.output().expect("start rqps");
        wait_until_nothing_is_left(&folder, "n3");
        [limited, resumed.output().expect("start rqps")]
    })
}

fn a_block_at_its_time_limit_is_told_and_resumed(
    cluster: &Cluster,
    limited: JoinHandle<[Output; 2]>,
) {
    let [limited, resumed] = limited.join().expect("no panic");
    let said = text(&limited.stderr);
    assert_eq!(limited.status.code(), Some(4), "{said}");
    for part in [
        "block 1: Slurm stopped job ",
        " on n3 shortly before its time limit (1:00)\nhint: resume with a higher one, such as \
         --sbatch=--time=120",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(runs(&cluster.out("limited")), [(1, "b".to_owned())].into());
    let left = fs::read_dir(cluster.path("limited")).map_or(0, Iterator::count);
    assert_eq!(left, 0, "data are left on n3");
}

/// Submitting gets no answer twice, the second time although Slurm has taken the job; then the
/// controller is stopped while blocks run.
fn a_restarted_controller_is_waited_for(cluster: &mut Cluster) {
    let folder = cluster.path("no-answer");
    fs::create_dir(&folder).expect("folder");
    let program = folder.join("sbatch");
    let at = folder.display();
    let script = format!(
        "#!/bin/sh\nPATH=${{PATH#*:}}\n[ \"$1\" = --parsable ] || exec sbatch \"$@\"\n\
         echo call >> {at}/calls\ncase $(wc -l < {at}/calls) in\n\
         1) echo 'Unable to contact slurm controller (connect failure)' >&2; exit 1 ;;\n\
         2) sbatch \"$@\"; echo 'Socket timed out on send/recv operation' >&2; exit 1 ;;\n\
         *) exec sbatch \"$@\" ;;\nesac\n"
    );
    fs::write(&program, script).expect("write");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("mode");
    let mut command = cluster.rqps(&cluster.elsewhere("serving", 2, "restarted"));
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{at}:{path}:/usr/sbin"));
    let mut child = started(cluster, &mut command, "restarted");
    cluster.stop_controller();
    cluster.wait_for("a note", |cluster| {
        said_so_far(cluster, "restarted").contains("waiting for Slurm's controller: squeue: ")
    });
    cluster.start_controller();
    let status = child.wait().expect("wait");
    assert!(status.success(), "{}", said_so_far(cluster, "restarted"));
    let calls = fs::read_to_string(folder.join("calls")).expect("read");
    assert_eq!(calls.lines().count(), 2, "no job is submitted twice");
    assert_eq!(runs(&cluster.out("restarted")), all_of(2));
}

/// A user without rights beside root.
fn two_users_share_nodes_and_folders(cluster: &Cluster) {
    let program = cluster.path("rqps");
    // The folder of the program may be closed to others.
    let from = env!("CARGO_BIN_EXE_rqps");
    fs::hard_link(from, &program).or_else(|_| fs::copy(from, &program).map(drop)).expect("copy");
    fs::set_permissions(cluster.path("shared"), fs::Permissions::from_mode(0o1777)).expect("mode");
    let (own, closed) = (cluster.path("data-nobody"), cluster.path("closed"));
    for folder in [&own, &closed] {
        fs::create_dir(folder).expect("folder");
    }
    chown(&own, Some(NOBODY), Some(NOBODY)).expect("chown");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("mode");
    let nobody = |words: &[String]| {
        let usual = cluster.rqps(words);
        let mut command = Command::new(&program);
        command.args(usual.get_args()).stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
        command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("HOME", &own).current_dir(&own);
        command
    };
    let refused = |words: &[String]| {
        let output = nobody(words).output().expect("start rqps");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        said
    };
    let mut words = cluster.elsewhere("slow", 2, "nobodys");
    let last = words.len() - 1;
    words[last] = own.display().to_string();
    // Both at once.
    let beside = nobody(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let beside = beside.expect("start rqps");
    let output = cluster.run(&cluster.elsewhere("slow", 2, "roots"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = beside.wait_with_output().expect("wait");
    assert!(output.status.success(), "{}", text(&output.stderr));
    for (out, user) in [("nobodys", NOBODY), ("roots", 0)] {
        let out = cluster.out(out);
        assert_eq!(runs(&out), all_of(2));
        let plan = fs::metadata(Path::new(&out).join("plan.toml")).expect("the plan");
        assert_eq!(plan.uid(), user);
    }
    // What belongs to root: results, the folder for data, a cache.
    let said = refused(&cluster.resumed("roots"));
    assert!(said.contains(&cluster.out("roots")) && said.contains("ermission denied"), "{said}");
    let said = refused(&cluster.elsewhere("slow", 2, "unkept"));
    let data = cluster.path("data").display().to_string();
    let why =
        format!("no fit node is left; n1: keep data in {data}: make {data}/rqps-blocks-65534");
    assert!(said.contains(&why) && said.contains("hint: name a folder with --work"), "{said}");
    let mut words = cluster.elsewhere("slow", 2, "uncached");
    words[1] = "postgres@17.2.0".to_owned();
    words.extend(["--cache".to_owned(), closed.display().to_string()]);
    let said = refused(&words);
    assert!(said.contains(&format!("not in the cache {}", closed.display())), "{said}");
    assert!(!Path::new(&cluster.out("uncached")).exists());
}

/// The disk of n1 has no room. The first block that gets there says so, and those that wait go to
/// the other node.
fn a_full_node_gets_no_more_blocks(cluster: &mut Cluster) {
    let mut daemon = cluster.nodes.remove("n1").expect("a node");
    kill_process(Pid::from_child(&daemon), Signal::TERM).expect("stop the daemon");
    daemon.wait().expect("wait");
    let data = cluster.path("data");
    fs::create_dir_all(&data).expect("folder");
    let mount = format!("mount -t tmpfs -o size=64k none {}", data.display());
    let tried = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        cluster.start_node("n1");
        return skipped::note("a_full_node_gets_no_more_blocks", "no folder can be mounted here");
    }
    let script = format!("{mount} && exec \"$0\" -D -N n1");
    let words = ["-m", "sh", "-c", &script, "slurmd"];
    let mut command = cluster.command("unshare", &words);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    cluster.nodes.insert("n1".to_owned(), command.spawn().expect("slurmd"));
    cluster.wait_for_nodes();
    let output = cluster.run(&cluster.elsewhere("slow", 4, "full"));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let full = cluster.out("full");
    assert_eq!(runs(&full), all_of(4));
    assert_eq!(nodes(&full), ["n2".to_owned()].into());
    let why = "node n1 gets no more blocks: keep data and snapshots in";
    assert!(said.contains(why), "{said}");
    assert_eq!(said.matches("rqps submits it again").count(), 1, "{said}");
    // The node has room again.
    cluster.wait_for_nodes();
    let node = cluster.nodes["n1"].id().to_string();
    let mut empty = Command::new("nsenter");
    empty.args(["--mount", "--target", &node, "umount"]).arg(&data);
    assert!(empty.status().expect("nsenter").success());
}

fn a_dead_node_loses_no_block(cluster: &mut Cluster) {
    let mut child = begun(cluster, 3, "dead");
    // The node dies: its daemon, and all that it runs.
    let step = |line: &str| line.split_whitespace().next().and_then(|pid| pid.parse().ok());
    let mut daemon = cluster.nodes.remove("n1").expect("a node");
    daemon.kill().expect("kill");
    daemon.wait().expect("wait");
    for block in blocks_on(cluster, "n1") {
        let stat = fs::read_to_string(format!("/proc/{block}/stat")).expect("stat");
        let parent: Option<i32> = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| step(rest.split_once(' ').map_or("", |(_, rest)| rest)));
        for pid in [parent.expect("slurmstepd"), block as i32] {
            kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).ok();
        }
    }
    assert!(child.wait().expect("wait").success());
    assert_eq!(runs(&cluster.out("dead")), all_of(3));
    cluster.start_node("n1");
}
