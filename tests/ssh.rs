//! Blocks by ssh to this machine: a server of the test's own, with keys that it makes, on a port
//! and with a configuration of its own.

mod program;
mod skipped;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

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
        fs::copy(at.join("user-key.pub"), at.join("authorized")).expect("copy");
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
        for host in ["one", "two", "stranger"] {
            let known = if host == "stranger" { "known-nothing" } else { "known" };
            config.push_str(&format!(
                "Host {host}\nHostName 127.0.0.1\nPort {port}\nUser root\n\
                 IdentityFile {at}/user-key\nIdentitiesOnly yes\nUserKnownHostsFile {at}/{known}\n\
                 GlobalKnownHostsFile /dev/null\nStrictHostKeyChecking yes\n\
                 SetEnv RQPS_HOST_LOCK={at}/lock-{host} XDG_CACHE_HOME={at}/home\n"
            ));
        }
        config.push_str("Host gone\nHostName 127.0.0.1\nPort 1\n");
        fs::write(self.path("ssh_config"), config).expect("write");
        let fake = self.path("configs/fake");
        fs::create_dir_all(&fake).expect("folder");
        fs::write(fake.join("slow.conf"), "mean_us = 125\n").expect("write");
        fs::write(fake.join("waiting.conf"), "mean_us = 1000\nreal_time = true\n").expect("write");
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
        let words = [
            "compare",
            "fake@1",
            &format!("b=fake@1:{config}"),
            "--steps",
            "point-query,update-index",
            "--set",
            "read_seconds=1",
            "--set",
            "write_seconds=1",
            "--set",
            "warmup_seconds=0.1",
            "--set",
            "settle_scale=0",
            "--configs",
            &self.out("configs"),
            "--blocks",
            &blocks.to_string(),
            "--out",
            &self.out(out),
        ];
        words.map(str::to_owned).to_vec()
    }

    /// The same over ssh.
    fn elsewhere(&self, hosts: &str, config: &str, blocks: u32, out: &str) -> Vec<String> {
        let mut words = self.words(config, blocks, out);
        let (work, ssh) = (self.out("data"), self.out("ssh_config"));
        let on = format!("ssh:{hosts}");
        words.extend(["--on", &on, "--work", &work, "--ssh-config", &ssh].map(str::to_owned));
        words
    }

    /// Processes of blocks and what they have started, on the far side.
    fn at_work(&self) -> Vec<String> {
        let ours = self.folder.path().display().to_string();
        let mut found = Vec::new();
        for process in fs::read_dir("/proc").expect("/proc").flatten() {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = text(&line).replace('\0', " ");
            if line.starts_with(&ours) && line.contains("/rqps/hosts/") {
                found.push(line);
            }
        }
        found
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

fn json(path: &Path) -> Json {
    serde_json::from_slice(&fs::read(path).expect("read")).expect("JSON")
}

/// Names of the run folders, all of which are complete.
fn runs(out: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(out).expect("results").flatten();
    let folders = entries.filter(|entry| entry.path().join("run.json").exists());
    let name = |entry: fs::DirEntry| {
        let record = json(&entry.path().join("run.json"));
        assert_eq!(record["status"], "complete", "{record}");
        entry.file_name().to_string_lossy().into_owned()
    };
    folders.map(name).collect()
}

#[test]
fn blocks_by_ssh() {
    let Some(site) = Site::start("blocks_by_ssh") else { return };
    blocks_on_two_hosts_give_the_runs_of_local_blocks(&site);
    a_host_that_cannot_be_used_is_told_before_anything_is_made(&site);
    nothing_runs_on_without_its_coordinator(&site);
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
