//! A cluster of Slurm of the test's own: two virtual nodes in the partition `bench` and one in
//! `short`, all this machine, with a configuration, ports and folders of its own. All processes of
//! it end with the test, by their numbers.

pub(crate) mod at_work;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::program::{self, text};
use crate::support::{elsewhere, skipped};

/// A step of a test takes seconds; a machine that is busy gets this much.
const PATIENCE: Duration = Duration::from_secs(120);
/// Jobs of a cluster that ends get this much.
const ENDING: Duration = Duration::from_secs(20);
const PROGRAMS: [&str; 5] = ["slurmctld", "slurmd", "sbatch", "squeue", "scontrol"];

/// Three virtual nodes.
pub(crate) struct Cluster {
    pub(crate) folder: tempfile::TempDir,
    controller: Option<Child>,
    /// Daemons by the name of their node.
    pub(crate) nodes: BTreeMap<String, Child>,
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
    pub(crate) fn start(test: &str) -> Option<Cluster> {
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
        for node in ["n1", "n2", "n3"] {
            cluster.start_node(node);
        }
        cluster.wait_for_nodes();
        Some(cluster)
    }

    /// Waits until both nodes of `bench` take jobs.
    pub(crate) fn wait_for_nodes(&self) {
        self.wait_for("both nodes", |cluster| {
            let states = cluster.slurm("sinfo", &["-h", "-N", "-p", "bench", "-o", "%T"]);
            states.lines().filter(|state| *state == "idle").count() == 2
        });
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self) {
        for name in ["state", "spool-n1", "spool-n2", "spool-n3", "shared"] {
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
        let [controller, first, second, third] = [(); 4].map(|()| free_port());
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
             NodeName=n3 NodeHostname={host} NodeAddr=127.0.0.1 Port={third} CPUs=1 \
             RealMemory=100\n\
             PartitionName=short Nodes=n3 OverSubscribe=EXCLUSIVE State=UP\n\
             PartitionName=bench Nodes=n1,n2 OverSubscribe=EXCLUSIVE Default=YES State=UP\n"
        );
        fs::write(self.path("slurm.conf"), text).expect("write");
    }

    pub(crate) fn command<W: AsRef<OsStr>>(&self, program: &str, words: &[W]) -> Command {
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

    pub(crate) fn start_controller(&mut self) {
        self.controller = Some(self.daemon("slurmctld", &["-D"]));
        self.wait_for("the controller", |cluster| {
            let output = cluster.command("scontrol", &["ping"]).output().expect("scontrol");
            text(&output.stdout).contains("is UP")
        });
    }

    /// Stops the controller in good order.
    pub(crate) fn stop_controller(&mut self) {
        let mut controller = self.controller.take().expect("a controller");
        kill_process(Pid::from_child(&controller), Signal::TERM).expect("stop the controller");
        controller.wait().expect("wait");
    }

    pub(crate) fn start_node(&mut self, node: &str) {
        let child = self.daemon("slurmd", &["-D", "-N", node]);
        self.nodes.insert(node.to_owned(), child);
    }

    /// The output of one of Slurm's commands.
    pub(crate) fn slurm(&self, program: &str, words: &[&str]) -> String {
        let output = self.command(program, words).output().expect(program);
        text(&output.stdout)
    }

    pub(crate) fn wait_for(&self, what: &str, mut is_so: impl FnMut(&Cluster) -> bool) {
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

    pub(crate) fn rqps<W: AsRef<OsStr>>(&self, words: &[W]) -> Command {
        let mut command = program::rqps(words, self.folder.path());
        command.env("SLURM_CONF", self.path("slurm.conf"));
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin"));
        command
    }

    pub(crate) fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Output {
        self.rqps(words).output().expect("start rqps")
    }

    pub(crate) fn out(&self, name: &str) -> String {
        self.path("shared").join(name).display().to_string()
    }

    /// Words of a comparison of the fake DBMS.
    pub(crate) fn words(&self, config: &str, blocks: u32, out: &str) -> Vec<String> {
        elsewhere::write_configs(&self.path("configs"));
        elsewhere::words(&self.path("configs"), config, blocks, &self.out(out))
    }

    /// The same on the nodes of `bench`.
    pub(crate) fn elsewhere(&self, config: &str, blocks: u32, out: &str) -> Vec<String> {
        let mut words = self.words(config, blocks, out);
        let work = self.path("data").display().to_string();
        words.extend(["--on", "slurm:bench", "--work", &work].map(str::to_owned));
        words
    }

    /// Words that resume it.
    pub(crate) fn resumed(&self, out: &str) -> Vec<String> {
        let (out, work) = (self.out(out), self.path("data").display().to_string());
        let configs = self.path("configs").display().to_string();
        let words = ["run", &out, "--resume", "--on", "slurm:bench", "--work", &work];
        words.into_iter().chain(["--configs", &configs]).map(str::to_owned).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.command("scancel", &["--user=root"]).output().ok();
        // A job's own daemon outlives the others if it cannot tell the controller of its end.
        let began = Instant::now();
        while self.controller.is_some() && began.elapsed() < ENDING {
            match self.command("squeue", &["--noheader"]).output() {
                Ok(queue) if queue.status.success() && !queue.stdout.is_empty() => {
                    std::thread::sleep(Duration::from_millis(100));
                }
                _ => break,
            }
        }
        let nodes = std::mem::take(&mut self.nodes);
        for mut child in nodes.into_values().chain(self.controller.take()) {
            kill_process(Pid::from_child(&child), Signal::TERM).ok();
            child.wait().ok();
        }
    }
}
