//! Blocks and clients by ssh to this machine: a server of the test's own, with keys that it makes,
//! on a port and with a configuration of its own.

mod elsewhere;
mod program;
mod skipped;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use elsewhere::{json, runs};
use program::text;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

const PATIENCE: Duration = Duration::from_secs(60);
const SERVER: &str = "/usr/sbin/sshd";

/// A server for two hosts, which are both this machine.
struct Site {
    folder: tempfile::TempDir,
    server: Child,
    port: u16,
}

fn made(command: &mut Command) {
    let output = command.output().expect("start");
    assert!(output.status.success(), "{command:?}: {}", text(&output.stderr));
}

fn key(path: &Path) {
    let mut command = Command::new("ssh-keygen");
    made(command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path));
}

impl Site {
    /// `None` where it cannot be; the reason is noted.
    fn start(test: &str) -> Option<Site> {
        if !rustix::process::geteuid().is_root() {
            skipped::note(test, "sshd without root serves no shell here");
            return None;
        }
        if !Path::new(SERVER).exists() {
            skipped::note(test, "no sshd on this machine (package openssh-server)");
            return None;
        }
        let folder = tempfile::tempdir().expect("folder");
        // What sshd wants of the machine, and installing it may not have made.
        fs::create_dir_all("/run/sshd").expect("the folder of sshd");
        let at = folder.path();
        key(&at.join("host-key"));
        key(&at.join("user-key"));
        key(&at.join("other-key"));
        let [user, other] = ["user-key.pub", "other-key.pub"]
            .map(|name| fs::read_to_string(at.join(name)).expect("key"));
        // Who comes with this key is on a machine of another architecture.
        let changed =
            format!("PATH={}/other:$PATH; eval \\\"$SSH_ORIGINAL_COMMAND\\\"", at.display());
        let keys = format!("{user}command=\"{changed}\" {other}");
        fs::write(at.join("authorized"), keys).expect("write");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its number").port();
        drop(listener);
        let shown = at.display();
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/host-key\nUsePAM no\n\
             AuthorizedKeysFile {shown}/authorized\nStrictModes no\nPermitRootLogin yes\n\
             PasswordAuthentication no\nPidFile none\nMaxStartups 100\n\
             PermitUserEnvironment no\nAcceptEnv RQPS_HOST_LOCK XDG_CACHE_HOME\n"
        );
        fs::write(at.join("sshd_config"), server).expect("write");
        let log = fs::File::create(at.join("sshd.log")).expect("log");
        let mut command = Command::new(SERVER);
        command.args(["-D", "-e", "-f"]).arg(at.join("sshd_config"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let server = command.spawn().expect("start sshd");
        let site = Site { folder, server, port };
        site.configure();
        site.wait_for("the server", |site| TcpStream::connect(("127.0.0.1", site.port)).is_ok());
        Some(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn configure(&self) {
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o755)).expect("mode");
        let at = self.folder.path().display();
        let known = fs::read_to_string(self.path("host-key.pub")).expect("key");
        let port = self.port;
        fs::write(self.path("known"), format!("[127.0.0.1]:{port} {known}")).expect("write");
        fs::write(self.path("known-nothing"), "").expect("write");
        let mut config = String::new();
        for host in ["one", "two", "stranger", "riscv"] {
            let known = if host == "stranger" { "known-nothing" } else { "known" };
            let key = if host == "riscv" { "other-key" } else { "user-key" };
            config.push_str(&format!(
                "Host {host}\nHostName 127.0.0.1\nPort {port}\nUser root\n\
                 IdentityFile {at}/{key}\nIdentitiesOnly yes\nUserKnownHostsFile {at}/{known}\n\
                 GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n\
                 SetEnv RQPS_HOST_LOCK={at}/lock-{host} XDG_CACHE_HOME={at}/home\n"
            ));
        }
        config.push_str("Host gone\nHostName 127.0.0.1\nPort 1\n");
        fs::write(self.path("ssh_config"), config).expect("write");
        elsewhere::write_configs(&self.path("configs"));
        let uname = self.path("other/uname");
        fs::create_dir(self.path("other")).expect("folder");
        fs::write(&uname, "#!/bin/sh\necho riscv64\n").expect("write");
        fs::set_permissions(&uname, fs::Permissions::from_mode(0o755)).expect("mode");
    }

    fn wait_for(&self, what: &str, is_so: impl Fn(&Site) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            if began.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.path("sshd.log")).unwrap_or_default();
                panic!("{what} did not come\n{log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn rqps<W: AsRef<OsStr>>(&self, words: &[W]) -> Command {
        program::rqps(words, self.folder.path())
    }

    fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Output {
        self.rqps(words).output().expect("start rqps")
    }

    fn out(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Words of a comparison of the fake DBMS.
    fn words(&self, config: &str, blocks: u32, out: &str) -> Vec<String> {
        elsewhere::words(&self.path("configs"), config, blocks, &self.out(out))
    }

    /// The same over ssh.
    fn elsewhere(&self, hosts: &str, config: &str, blocks: u32, out: &str) -> Vec<String> {
        let mut words = self.words(config, blocks, out);
        let (work, ssh) = (self.out("data"), self.out("ssh_config"));
        let on = format!("ssh:{hosts}");
        words.extend(["--on", &on, "--work", &work, "--ssh-config", &ssh].map(str::to_owned));
        words
    }

    /// The same with four clients on other hosts.
    fn with_clients(&self, hosts: &[&str], config: &str, blocks: u32, out: &str) -> Vec<String> {
        let mut words = self.words(config, blocks, out);
        words.extend(["--clients", "4", "--ssh-config"].map(str::to_owned));
        words.push(self.out("ssh_config"));
        for host in hosts {
            words.extend(["--client-host", host].map(str::to_owned));
        }
        words
    }

    /// Processes of blocks and drivers and what they have started, on the far side: their numbers
    /// and command lines.
    fn processes(&self) -> Vec<(i32, String)> {
        let ours = self.folder.path().display().to_string();
        let mut found = Vec::new();
        for process in fs::read_dir("/proc").expect("/proc").flatten() {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = text(&line).replace('\0', " ");
            let pid = process.file_name().to_string_lossy().parse();
            if let (true, Ok(pid)) = (line.starts_with(&ours), pid)
                && line.contains("/rqps/hosts/")
            {
                found.push((pid, line));
            }
        }
        found
    }

    fn at_work(&self) -> Vec<String> {
        self.processes().into_iter().map(|(_, line)| line).collect()
    }

    /// The driver on a host, once there is another one than `before`.
    fn next_driver(&self, host: &str, before: Option<i32>) -> i32 {
        let lock = format!("RQPS_HOST_LOCK={}/lock-{host}", self.folder.path().display());
        let found = || {
            // Before its first driver, a host runs a short process that tries the network.
            let drivers = self.processes().into_iter().filter(|(_, line)| line.contains(" driver"));
            drivers.map(|(pid, _)| pid).find(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                Some(*pid) != before && text(&environment).split('\0').any(|it| it == lock)
            })
        };
        self.wait_for("a driver", |_| found().is_some());
        found().expect("it lives for seconds")
    }

    /// Folders of blocks on the far side.
    fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        for folder in ["home/rqps/hosts", "data/rqps-blocks-0"] {
            let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
            let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
            left.extend(folders.map(|path| path.display().to_string()));
        }
        left
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.server), Signal::TERM).ok();
        self.server.wait().ok();
    }
}

#[test]
fn blocks_by_ssh() {
    let Some(site) = Site::start("blocks_by_ssh") else { return };
    blocks_on_two_hosts_give_the_runs_of_local_blocks(&site);
    a_host_that_cannot_be_used_is_told_before_anything_is_made(&site);
    nothing_runs_on_without_its_coordinator(&site);
}

#[test]
fn clients_by_ssh() {
    let Some(site) = Site::start("clients_by_ssh") else { return };
    clients_of_two_hosts_count_what_those_of_one_do(&site);
    a_client_host_that_goes_away_fails_its_step_alone(&site);
    no_client_runs_on_without_its_lab(&site);
    a_client_host_that_cannot_be_used_is_told_before_anything_is_made(&site);
}

/// Every step of every run, by folder and file, without what a clock decides.
fn counts(out: &str) -> BTreeMap<String, Json> {
    let mut counts = BTreeMap::new();
    for run in fs::read_dir(out).expect("results").flatten() {
        for step in fs::read_dir(run.path().join("steps")).into_iter().flatten().flatten() {
            let name = format!("{:?}/{:?}", run.file_name(), step.file_name());
            if name.contains(".json") {
                let outcome = &json(&step.path())["outcome"];
                let fields = ["seconds", "events", "statements", "reads", "latency", "plans"];
                counts.insert(name, fields.iter().map(|field| outcome[field].clone()).collect());
            }
        }
    }
    counts
}

/// The steps of the first run of the first block, by file, in their order.
fn steps(out: &str) -> BTreeMap<String, Json> {
    let mut runs = fs::read_dir(out).expect("results").flatten().map(|entry| entry.path());
    let run = runs.find(|run| run.display().to_string().contains("/b01-1-")).expect("a run");
    let steps = fs::read_dir(run.join("steps")).expect("steps").flatten();
    let named = steps.map(|step| (step.file_name().to_string_lossy().into_owned(), step.path()));
    let records = named.filter(|(name, _)| name.ends_with(".json"));
    records.map(|(name, path)| (name, json(&path))).collect()
}

fn clients_of_two_hosts_count_what_those_of_one_do(site: &Site) {
    let mut here = site.words("slow", 2, "here");
    here.extend(["--clients", "4"].map(str::to_owned));
    let usual = site.run(&here);
    assert!(usual.status.success(), "{}", text(&usual.stderr));
    let output = site.run(&site.with_clients(&["one", "two"], "slow", 2, "there"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (here, there) = (site.out("here"), site.out("there"));
    let counted = counts(&there);
    assert!(counted.len() >= 8, "{counted:?}");
    assert_eq!(counted, counts(&here));
    let steps = steps(&there);
    let step = steps.values().last().expect("a step");
    let hosts = step["outcome"]["client_hosts"].as_array().expect("client hosts").clone();
    let shares: Vec<(&Json, &Json)> =
        hosts.iter().map(|host| (&host["host"], &host["clients"])).collect();
    assert_eq!(shares, [(&"one".into(), &2.into()), (&"two".into(), &2.into())]);
    let events: u64 = hosts.iter().filter_map(|host| host["events"].as_u64()).sum();
    assert_eq!(Some(events), step["outcome"]["events"].as_u64());
    assert!(hosts.iter().all(|host| host["clock_bound_ms"].as_f64() > Some(0.0)), "{step}");
    assert!(hosts.iter().any(|host| host["start_ms"] == 0.0), "{step}");
    let report = text(&output.stdout);
    assert!(report.contains("one, two by TCP; whole steps alternate"), "{report}");
    let plan = fs::read_to_string(Path::new(&there).join("plan.toml")).expect("the plan");
    assert!(plan.contains("hosts = [\"one\", \"two\"]"), "{plan}");
    assert_eq!(site.at_work(), [""; 0]);
}

fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
    parent.and_then(|pid| pid.parse().ok()).expect("the number of the parent")
}

fn a_client_host_that_goes_away_fails_its_step_alone(site: &Site) {
    let mut words = site.with_clients(&["one", "two"], "waiting", 1, "cut");
    words.extend(["--steps", "delete", "--set", "read_seconds=3"].map(str::to_owned));
    words.extend(["--set", "write_seconds=3"].map(str::to_owned));
    // Only its steps take time.
    words.retain(|word| word != "fake@1");
    let mut command = site.rqps(&words);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("start rqps");
    let first = site.next_driver("two", None);
    let kill = |pid: i32| {
        // By then its clients are at work, which takes seconds.
        std::thread::sleep(Duration::from_secs(1));
        kill_process(Pid::from_raw(pid).expect("a process"), Signal::KILL).expect("kill");
    };
    kill(first);
    let second = site.next_driver("two", Some(first));
    // Its shell, and what has started that.
    kill(parent(parent(second)));
    let output = child.wait_with_output().expect("wait");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(4), "{said}");
    let statuses: Vec<Json> =
        steps(&site.out("cut")).values().map(|step| step["status"].clone()).collect();
    let [killed, cut, rest @ ..] = statuses.as_slice() else { panic!("{statuses:?}") };
    let failed = |status: &Json, why: &str| {
        let text = status["failed"].as_str().unwrap_or_default();
        assert!(text.contains(why), "{status}");
    };
    failed(killed, "the driver process on the client host two ended early");
    failed(cut, "the connection to the client host two was cut");
    assert!(!rest.is_empty() && rest.iter().all(|status| status == "complete"), "{statuses:?}");
    site.wait_for("the end of all drivers", |site| site.at_work().is_empty());
}

fn no_client_runs_on_without_its_lab(site: &Site) {
    let mut words = site.with_clients(&["one", "two"], "waiting", 1, "gone");
    words.extend(["--set", "read_seconds=60"].map(str::to_owned));
    words.retain(|word| word != "fake@1");
    let mut command = site.rqps(&words);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("rqps");
    site.wait_for("both drivers", |site| site.at_work().len() == 2);
    child.kill().expect("kill");
    child.wait().expect("wait");
    site.wait_for("the end of all drivers", |site| site.at_work().is_empty());
}

fn a_client_host_that_cannot_be_used_is_told_before_anything_is_made(site: &Site) {
    let refused = |words: &[String], parts: &[&str]| {
        let output = site.run(words);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(!Path::new(&site.out("nowhere")).exists());
    };
    let on = |host: &str| site.with_clients(&[host], "slow", 1, "nowhere");
    refused(&on("stranger"), &["use the client host stranger", "hint: connect once by hand"]);
    refused(&on("riscv"), &["measure on riscv: it is riscv64, and this rqps is for"]);
    let mut elsewhere = on("one");
    elsewhere.extend(["--server-address", "192.0.2.1"].map(str::to_owned));
    refused(&elsewhere, &["use --server-address 192.0.2.1 on this host", "hint: "]);
    let folder = fs::read_dir(site.path("home/rqps/hosts")).expect("the far side").flatten();
    let programs: Vec<PathBuf> = folder.map(|entry| entry.path()).collect();
    assert_eq!(programs.len(), 1, "{programs:?}");
    fs::remove_file(&programs[0]).expect("remove");
    fs::write(&programs[0], "#!/bin/sh\necho rqps 0.0.1\n").expect("write");
    fs::set_permissions(&programs[0], fs::Permissions::from_mode(0o755)).expect("mode");
    refused(&on("one"), &["it is rqps 0.0.1, and this is rqps", "hint: remove that file"]);
}

fn blocks_on_two_hosts_give_the_runs_of_local_blocks(site: &Site) {
    let usual = site.run(&site.words("slow", 4, "usual"));
    assert!(usual.status.success(), "{}", text(&usual.stderr));
    let output = site.run(&site.elsewhere("one,two", "slow", 4, "fleet"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (usual, fleet) = (site.out("usual"), site.out("fleet"));
    assert_eq!(runs(&fleet), runs(&usual));
    let gate = json(&Path::new(&fleet).join("gate.json"));
    let blocks = gate["blocks"].as_array().expect("blocks");
    let nodes: BTreeSet<String> =
        blocks.iter().map(|block| block["session"]["node"].to_string()).collect();
    assert_eq!(nodes, ["\"one\"".to_owned(), "\"two\"".to_owned()].into());
    assert!(!Path::new(&fleet).join(".cells").exists(), "nothing but results stays");
    assert_eq!(site.left(), [""; 0], "nothing stays on the hosts");
    let report = text(&output.stdout);
    assert!(report.contains("host one") && report.contains("host two"), "{report}");
}

fn a_host_that_cannot_be_used_is_told_before_anything_is_made(site: &Site) {
    for (host, part) in [
        ("stranger", "hint: connect once by hand (`ssh stranger`) and check the key"),
        ("gone", "hint: try `ssh gone true`"),
    ] {
        let output = site.run(&site.elsewhere(host, "slow", 1, "nowhere"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("reach {host}: ")) && said.contains(part), "{said}");
        assert!(!Path::new(&site.out("nowhere")).exists());
    }
}

fn nothing_runs_on_without_its_coordinator(site: &Site) {
    let mut command = site.rqps(&site.elsewhere("one,two", "waiting", 3, "killed"));
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().expect("start rqps");
    let blocks =
        |site: &Site| site.at_work().iter().filter(|line| line.contains(" block ")).count();
    site.wait_for("two blocks at work", |site| blocks(site) == 2);
    child.kill().expect("kill");
    child.wait().expect("wait");
    site.wait_for("the end of all that it started", |site| {
        site.at_work().is_empty() && site.left().iter().all(|path| !path.contains("/data/"))
    });
    let (out, ssh, work) = (site.out("killed"), site.out("ssh_config"), site.out("data"));
    let words = ["run", &out, "--resume", "--on", "ssh:one,two", "--ssh-config", &ssh];
    let configs = site.out("configs");
    let words = words.into_iter().chain(["--work", &work, "--configs", &configs]);
    let output = site.run(&words.collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(runs(&out).len(), 6);
    assert_eq!(site.left(), [""; 0], "nothing stays on the hosts");
}
