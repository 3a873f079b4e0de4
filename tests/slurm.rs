//! Blocks by Slurm: a cluster of two virtual nodes on this machine, with a configuration, ports and
//! folders of its own. All processes of it end with the test, by their numbers.

mod elsewhere;
mod program;
mod skipped;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use elsewhere::{json, runs};
use program::text;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

/// A step of a test takes seconds; a machine that is busy gets this much.
const PATIENCE: Duration = Duration::from_secs(120);
const PROGRAMS: [&str; 5] = ["slurmctld", "slurmd", "sbatch", "squeue", "scontrol"];

/// Two virtual nodes.
struct Cluster {
    folder: tempfile::TempDir,
    controller: Option<Child>,
    nodes: BTreeMap<String, Child>,
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its number").port()
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    folders.iter().any(|folder| folder.join(program).is_file())
}

impl Cluster {
    /// `None` where it cannot be; the reason is noted.
    fn start(test: &str) -> Option<Cluster> {
        if !rustix::process::geteuid().is_root() {
            skipped::note(test, "slurmd needs root");
            return None;
        }
        if let Some(missing) = PROGRAMS.into_iter().find(|program| !is_there(program)) {
            skipped::note(test, &format!("no {missing} on this machine (package slurm-wlm)"));
            return None;
        }
        let folder = tempfile::tempdir().expect("folder");
        let mut cluster = Cluster { folder, controller: None, nodes: BTreeMap::new() };
        cluster.configure();
        cluster.start_controller();
        for node in ["n1", "n2"] {
            cluster.start_node(node);
        }
        cluster.wait_for("both nodes", |cluster| {
            let states = cluster.slurm("sinfo", &["-h", "-N", "-o", "%T"]);
            states.lines().filter(|state| *state == "idle").count() == 2
        });
        Some(cluster)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self) {
        for name in ["state", "spool-n1", "spool-n2", "shared"] {
            fs::create_dir(self.path(name)).expect("folder");
        }
        // Servers of the fake DBMS need nothing, but rqps as root looks whether they could.
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).expect("mode");
        let at = self.folder.path().display();
        let prolog = self.path("prolog");
        // The nodes are one machine; each measures as if it were alone.
        let script =
            format!("#!/bin/sh\necho \"export RQPS_HOST_LOCK={at}/lock-$SLURMD_NODENAME\"\n");
        fs::write(&prolog, script).expect("write");
        fs::set_permissions(&prolog, fs::Permissions::from_mode(0o755)).expect("mode");
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host = host.split('.').next().unwrap_or_default();
        let (controller, first, second) = (free_port(), free_port(), free_port());
        let text = format!(
            "ClusterName=rqps\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={controller}\n\
             SlurmUser=root\nAuthType=auth/none\nCredType=cred/none\nAuthInfo=cred_expire=5\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU_Memory\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
             JobAcctGatherType=jobacct_gather/none\nJobCompType=jobcomp/none\n\
             SlurmdParameters=config_overrides\nReturnToService=2\nJobRequeue=1\n\
             SlurmdTimeout=5\nKillWait=5\nInactiveLimit=0\nTaskProlog={at}/prolog\n\
             SchedulerParameters=sched_interval=1,bf_interval=1\n\
             StateSaveLocation={at}/state\nSlurmdSpoolDir={at}/spool-%n\n\
             SlurmctldPidFile={at}/controller.pid\nSlurmdPidFile={at}/%n.pid\n\
             SlurmctldLogFile={at}/controller.log\nSlurmdLogFile={at}/%n.log\n\
             NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=1 \
             RealMemory=100 Feature=bare,nvme\n\
             NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=1 \
             RealMemory=100 Feature=bare\n\
             PartitionName=bench Nodes=n1,n2 OverSubscribe=EXCLUSIVE Default=YES State=UP\n"
        );
        fs::write(self.path("slurm.conf"), text).expect("write");
    }

    fn command<W: AsRef<OsStr>>(&self, program: &str, words: &[W]) -> Command {
        let sbin = Path::new("/usr/sbin").join(program);
        let mut command = if sbin.is_file() { Command::new(sbin) } else { Command::new(program) };
        command.args(words).env("SLURM_CONF", self.path("slurm.conf"));
        command.stdin(Stdio::null());
        command
    }

    fn daemon(&self, program: &str, words: &[&str]) -> Child {
        let mut command = self.command(program, words);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect(program)
    }

    fn start_controller(&mut self) {
        self.controller = Some(self.daemon("slurmctld", &["-D"]));
        self.wait_for("the controller", |cluster| {
            let output = cluster.command("scontrol", &["ping"]).output().expect("scontrol");
            text(&output.stdout).contains("is UP")
        });
    }

    fn start_node(&mut self, node: &str) {
        let child = self.daemon("slurmd", &["-D", "-N", node]);
        self.nodes.insert(node.to_owned(), child);
    }

    /// The output of one of Slurm's commands.
    fn slurm(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program, words).output().expect(program);
        text(&output.stdout)
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Cluster) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            if began.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.path("controller.log")).unwrap_or_default();
                let queue = self.slurm("squeue", &["--array", "--states=all"]);
                panic!("{what} did not come\n{queue}\n{log}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    fn rqps<W: AsRef<OsStr>>(&self, words: &[W]) -> Command {
        let mut command = program::rqps(words, self.folder.path());
        command.env("SLURM_CONF", self.path("slurm.conf"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin"));
        command
    }

    fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Output {
        self.rqps(words).output().expect("start rqps")
    }

    fn out(&self, name: &str) -> String {
        self.path("shared").join(name).display().to_string()
    }

    /// Words of a comparison of the fake DBMS.
    fn words(&self, config: &str, blocks: u32, out: &str) -> Vec<String> {
        elsewhere::write_configs(&self.path("configs"));
        elsewhere::words(&self.path("configs"), config, blocks, &self.out(out))
    }

    /// The same on the nodes.
    fn elsewhere(&self, config: &str, blocks: u32, out: &str) -> Vec<String> {
        let mut words = self.words(config, blocks, out);
        let work = self.path("data").display().to_string();
        words.extend(["--on", "slurm:bench", "--work", &work].map(str::to_owned));
        words
    }

    /// Words that resume it.
    fn resumed(&self, out: &str) -> Vec<String> {
        let (out, work) = (self.out(out), self.path("data").display().to_string());
        let configs = self.path("configs").display().to_string();
        let words = ["run", &out, "--resume", "--on", "slurm:bench", "--work", &work];
        words.into_iter().chain(["--configs", &configs]).map(str::to_owned).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.command("scancel", &["--user=root"]).output().ok();
        let nodes = std::mem::take(&mut self.nodes);
        for mut child in nodes.into_values().chain(self.controller.take()) {
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
            child.wait().ok();
        }
    }
}

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

/// Blocks that run on the nodes: the numbers of their processes.
fn blocks_at_work(cluster: &Cluster) -> Vec<u32> {
    let folder = cluster.folder.path().display().to_string();
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").expect("/proc").flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let words: Vec<String> = line.split(|byte| *byte == 0).map(text).collect();
        if words.get(1).is_some_and(|word| word == "block") && words[0].starts_with(&folder) {
            found.extend(process.file_name().to_string_lossy().parse::<u32>());
        }
    }
    found
}

#[test]
fn blocks_by_slurm() {
    let Some(mut cluster) = Cluster::start("blocks_by_slurm") else { return };
    blocks_on_two_nodes_give_the_verdicts_of_local_blocks(&cluster);
    a_class_of_hosts_that_is_not_there_makes_nothing(&cluster);
    a_plan_shows_its_job_script(&cluster);
    clients_have_a_node_of_their_own(&cluster);
    nodes_of_another_architecture_are_told(&cluster);
    a_killed_coordinator_finds_its_jobs_again(&cluster);
    cancelled_jobs_are_told_and_resumed(&cluster);
    a_dead_node_loses_no_block(&mut cluster);
    a_full_node_gets_no_more_blocks(&mut cluster);
    assert_eq!(blocks_at_work(&cluster), [0; 0], "blocks are left");
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

/// Starts a comparison that takes some seconds a block, and waits until two blocks run.
fn begun(cluster: &Cluster, blocks: u32, out: &str) -> Child {
    let mut command = cluster.rqps(&cluster.elsewhere("waiting", blocks, out));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("start rqps");
    cluster.wait_for("two blocks at work", |cluster| blocks_at_work(cluster).len() == 2);
    child
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
    let jobs = cluster.slurm("squeue", &["--array", "--states=all", "-h", "-o", "%j %T %K"]);
    let ended = jobs.lines().filter(|job| job.contains("COMPLETED")).count();
    // Eight, one of two parts, and these three once.
    assert_eq!(ended, 13, "{jobs}");
}

fn cancelled_jobs_are_told_and_resumed(cluster: &Cluster) {
    let mut child = begun(cluster, 2, "stopped");
    kill_process(Pid::from_child(&child), Signal::INT).expect("Ctrl-C");
    assert_eq!(child.wait().expect("wait").code(), Some(130));
    let left = cluster.slurm("squeue", &["--array", "-h", "-t", "PENDING,RUNNING"]);
    assert_eq!(left, "", "Ctrl-C cancels all jobs");
    let resumed = cluster.rqps(&cluster.resumed("stopped")).stderr(Stdio::piped()).spawn();
    let resumed = resumed.expect("start rqps");
    cluster.wait_for("a block at work", |cluster| !blocks_at_work(cluster).is_empty());
    cluster.slurm("scancel", &["--user=root"]);
    let output = resumed.wait_with_output().expect("wait");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("block 1: its job was cancelled"), "{said}");
    let output = cluster.run(&cluster.resumed("stopped"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(runs(&cluster.out("stopped")), all_of(2));
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
    cluster.wait_for("both nodes", |cluster| {
        let states = cluster.slurm("sinfo", &["-h", "-N", "-o", "%T"]);
        states.lines().filter(|state| *state == "idle").count() == 2
    });
    let output = cluster.run(&cluster.elsewhere("slow", 4, "full"));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let full = cluster.out("full");
    assert_eq!(runs(&full), all_of(4));
    assert_eq!(nodes(&full), ["n2".to_owned()].into());
    let why = "node n1 gets no more blocks: keep data and snapshots in";
    assert!(said.contains(why), "{said}");
    assert_eq!(said.matches("rqps submits it again").count(), 1, "{said}");
}

fn a_dead_node_loses_no_block(cluster: &mut Cluster) {
    let mut child = begun(cluster, 3, "dead");
    // The node dies: its daemon, and all that it runs.
    let step = |line: &str| line.split_whitespace().next().and_then(|pid| pid.parse().ok());
    let mut daemon = cluster.nodes.remove("n1").expect("a node");
    daemon.kill().expect("kill");
    daemon.wait().expect("wait");
    let of_node = blocks_at_work(cluster).into_iter().filter(|block| {
        let line = fs::read(format!("/proc/{block}/environ")).unwrap_or_default();
        text(&line).split('\0').any(|variable| variable == "SLURMD_NODENAME=n1")
    });
    for block in of_node.collect::<Vec<u32>>() {
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
