//! A server of ssh of the test's own, with keys that it makes, on a port and with a configuration
//! of its own; what is at work and what is left on its hosts, which are all this machine.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use crate::support::elsewhere::{self, counts, json};
use crate::support::program::{self, text};
use crate::support::skipped;

const PATIENCE: Duration = Duration::from_secs(60);
const SERVER: &str = "/usr/sbin/sshd";

/// A server for two hosts, which are both this machine.
pub(crate) struct Site {
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
    pub(crate) fn start(test: &str) -> Option<Site> {
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
        // No start of a shell of the user's: it may be slow, or keep locks.
        let server = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/host-key\nUsePAM no\n\
             AuthorizedKeysFile {shown}/authorized\nStrictModes no\nPermitRootLogin yes\n\
             PasswordAuthentication no\nPidFile none\nMaxStartups 100\n\
             PermitUserEnvironment no\nAcceptEnv RQPS_HOST_LOCK XDG_CACHE_HOME\n\
             SetEnv HOME={shown}/home\n"
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

    pub(crate) fn path(&self, name: &str) -> PathBuf {
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

    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&Site) -> bool) {
        let began = Instant::now();
        while !is_so(self) {
            if began.elapsed() > PATIENCE {
                let log = fs::read_to_string(self.path("sshd.log")).unwrap_or_default();
                panic!("{what} did not come\n{log}");
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// A command, not started.
    pub(crate) fn rqps<W: AsRef<OsStr>>(&self, words: &[W]) -> Command {
        program::rqps(words, self.folder.path())
    }

    /// The output of a command.
    pub(crate) fn run<W: AsRef<OsStr>>(&self, words: &[W]) -> Output {
        self.rqps(words).output().expect("start rqps")
    }

    /// A name in the folder of the test.
    pub(crate) fn out(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Words of a comparison of the fake DBMS.
    pub(crate) fn words(&self, config: &str, blocks: u32, out: &str) -> Vec<String> {
        elsewhere::words(&self.path("configs"), config, blocks, &self.out(out))
    }

    /// The counts of all steps of a comparison of two blocks, with four clients on this host.
    pub(crate) fn counts_of_local_clients(&self) -> BTreeMap<String, Json> {
        let mut words = self.words("slow", 2, "here");
        words.extend(["--clients", "4"].map(str::to_owned));
        let output = self.run(&words);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let counts = counts(&self.out("here"));
        assert!(counts.len() >= 8, "{counts:?}");
        counts
    }

    /// Words of a comparison with blocks on other hosts, by ssh.
    pub(crate) fn elsewhere(
        &self,
        hosts: &str,
        config: &str,
        blocks: u32,
        out: &str,
    ) -> Vec<String> {
        let mut words = self.words(config, blocks, out);
        let (work, ssh) = (self.out("data"), self.out("ssh_config"));
        let on = format!("ssh:{hosts}");
        words.extend(["--on", &on, "--work", &work, "--ssh-config", &ssh].map(str::to_owned));
        words
    }

    /// The same with four clients on other hosts.
    pub(crate) fn with_clients(
        &self,
        hosts: &[&str],
        config: &str,
        blocks: u32,
        out: &str,
    ) -> Vec<String> {
        let mut words = self.words(config, blocks, out);
        words.extend(["--clients", "4", "--ssh-config"].map(str::to_owned));
        words.push(self.out("ssh_config"));
        for host in hosts {
            words.extend(["--client-host", host].map(str::to_owned));
        }
        words
    }

    /// The same with the servers on another host.
    pub(crate) fn with_server(
        &self,
        (server, clients): (&str, &[&str]),
        config: &str,
        blocks: u32,
        out: &str,
    ) -> Vec<String> {
        let mut words = self.with_clients(clients, config, blocks, out);
        words.extend(["--server-host", server, "--work"].map(str::to_owned));
        words.push(self.out("data"));
        words
    }

    /// Adds the host `small`, whose folder `data` is a disk of its own without room.
    ///
    /// # Errors
    /// There is none. The text is the reason, for the line about the skipped test.
    pub(crate) fn add_small_host(&self) -> Result<Disk, String> {
        fs::create_dir_all(self.path("data")).expect("folder");
        let (data, ready) = (self.out("data"), self.out("disk-ready"));
        let mount = format!("mount -t tmpfs -o size=64k none {data} && : > {ready}");
        let mount = format!("{mount} && exec sleep 600");
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", &mount]).stdin(Stdio::null()).stderr(Stdio::null());
        let mut keeper = command.spawn().map_err(|error| format!("start unshare: {error}"))?;
        while !Path::new(&ready).exists() {
            if keeper.try_wait().expect("the keeper of the disk").is_some() {
                return Err("no folder can be mounted here".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let pid = keeper.id();
        let disk = Disk(keeper);
        key(&self.path("small-key"));
        let public = fs::read_to_string(self.path("small-key.pub")).expect("key");
        let there = format!("nsenter -t {pid} -m sh -c \\\"$SSH_ORIGINAL_COMMAND\\\"");
        let keys = fs::read_to_string(self.path("authorized")).expect("keys");
        let keys = format!("{keys}\ncommand=\"{there}\" {public}");
        fs::write(self.path("authorized"), keys).expect("write");
        let config = fs::read_to_string(self.path("ssh_config")).expect("configuration");
        let hosts = config.split_inclusive("Host ").find(|host| host.starts_with("two\n"));
        let two = hosts.expect("the host two").trim_end_matches("Host ");
        let small = two.replace("two", "small").replace("user-key", "small-key");
        fs::write(self.path("ssh_config"), format!("{config}Host {small}")).expect("write");
        Ok(disk)
    }

    /// Processes of blocks and drivers and what they have started, on the far side: their numbers
    /// and command lines.
    pub(crate) fn processes(&self) -> Vec<(i32, String)> {
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

    pub(crate) fn at_work(&self) -> Vec<String> {
        self.processes().into_iter().map(|(_, line)| line).collect()
    }

    /// The driver on a host, once there is another one than `before`.
    pub(crate) fn next_driver(&self, host: &str, before: Option<i32>) -> i32 {
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
    pub(crate) fn left(&self) -> Vec<String> {
        let mut left: Vec<String> = Vec::new();
        for folder in ["home/rqps/hosts", "data/rqps-blocks-0"] {
            let entries = fs::read_dir(self.path(folder)).into_iter().flatten().flatten();
            let folders = entries.map(|entry| entry.path()).filter(|path| path.is_dir());
            left.extend(folders.map(|path| path.display().to_string()));
        }
        left
    }
}

/// A disk that only processes of its own see; it goes with this.
pub(crate) struct Disk(Child);

impl Drop for Disk {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        kill_process(Pid::from_child(&self.server), Signal::TERM).ok();
        self.server.wait().ok();
    }
}

/// The steps of the first run of the first block, by file, in their order.
pub(crate) fn steps(out: &str) -> BTreeMap<String, Json> {
    let mut runs = fs::read_dir(out).expect("results").flatten().map(|entry| entry.path());
    let run = runs.find(|run| run.display().to_string().contains("/b01-1-")).expect("a run");
    let steps = fs::read_dir(run.join("steps")).expect("steps").flatten();
    let named = steps.map(|step| (step.file_name().to_string_lossy().into_owned(), step.path()));
    let records = named.filter(|(name, _)| name.ends_with(".json"));
    records.map(|(name, path)| (name, json(&path))).collect()
}

/// The process that started this one.
pub(crate) fn parent(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("stat");
    let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
    parent.and_then(|pid| pid.parse().ok()).expect("the number of the parent")
}

/// The child processes of a process: ids and command lines.
pub(crate) fn children(of: i32) -> Vec<(i32, String)> {
    let mut found = Vec::new();
    for process in fs::read_dir("/proc").expect("/proc").flatten() {
        let Ok(pid) = process.file_name().to_string_lossy().parse() else { continue };
        // It may end meanwhile.
        let stat = fs::read_to_string(process.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1));
        if parent.and_then(|parent| parent.parse().ok()) == Some(of) {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            found.push((pid, text(&line).replace('\0', " ")));
        }
    }
    found
}

/// True until a process has ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').next());
    state.is_some_and(|state| !state.is_empty() && state != "Z")
}
