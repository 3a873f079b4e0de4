//! apt-get with a state of its own: its resolver and its signature checks, for any suite, without
//! touching what is installed on this host.
//!
//! The host's apt configuration is read (proxies, credentials, transports), then everything that
//! has to do with this host's own packages is replaced: sources, lists, status, preferences, hooks.
//! Options: apt.conf(5), sources.list(5), apt-secure(8).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client;
use crate::debian::mirror::{Mirror, PACKAGE};
use crate::debian::words;
use crate::error::Reason;
use crate::progress::Progress;
use rqps_dbms::spec::Machine;
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::CommandOutput;
use rqps_model::build::Dbms;

/// Settings that the command line cannot undo: lists. Hooks of the host are for the host's
/// packages.
const CONFIGURATION: &str = "\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
#clear DPkg::Pre-Install-Pkgs;
#clear APT::Default-Release;
";

/// apt-get for one suite, with its files in one folder.
pub(super) struct Apt<'a> {
    client: &'a Path,
    folder: PathBuf,
    suite: &'a str,
    dbms: Dbms,
    mirror: Mirror,
}

/// One package that the resolver chose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Download {
    /// Its file name in the archives: `libc6_2.41-12_amd64.deb`.
    pub(super) file: String,
    /// Its size, bytes.
    pub(crate) bytes: u64,
}

impl<'a> Apt<'a> {
    /// Makes the private state in `folder`.
    pub(super) fn new(
        client: &'a Path,
        folder: &Path,
        suite: &'a str,
        dbms: Dbms,
        mirror: Mirror,
    ) -> Result<Apt<'a>, Reason> {
        let apt = Apt { client, folder: folder.to_path_buf(), suite, dbms, mirror };
        for name in ["state/lists/partial", "cache/archives/partial"] {
            let made = apt.folder.join(name);
            fs::create_dir_all(&made).map_err(Reason::io("create", &made))?;
        }
        let files = [
            ("apt.conf", CONFIGURATION.to_string()),
            ("state/status", String::new()),
            ("sources.list", apt.source_line()),
        ];
        for (name, text) in files {
            let path = apt.folder.join(name);
            fs::write(&path, text).map_err(Reason::io("write", &path))?;
        }
        Ok(apt)
    }

    /// The folder of downloaded packages.
    pub(super) fn archives(&self) -> PathBuf {
        self.folder.join("cache/archives")
    }

    /// Only the list of packages of this machine: no translations, no contents.
    fn source_line(&self) -> String {
        let signed = match &self.mirror.keyring {
            Some(keyring) => format!(" signed-by={}", keyring.display()),
            None => String::new(),
        };
        let arch = match Machine::this() {
            Machine::X86_64 => " arch=amd64",
            Machine::Aarch64 => " arch=arm64",
            Machine::Other => "",
        };
        let (uri, suite) = (&self.mirror.uri, self.suite);
        format!("deb [target=Packages lang=none{arch}{signed}] {uri} {suite} main\n")
    }

    fn command(&self) -> Command {
        let mut command = child::command(self.client, ChildTask::Fetch);
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        command.arg("-c").arg(self.folder.join("apt.conf"));
        let folders = [
            ("Dir::Etc::SourceList", "sources.list"),
            ("Dir::State", "state"),
            ("Dir::State::Lists", "state/lists"),
            ("Dir::State::Status", "state/status"),
            ("Dir::Cache", "cache"),
            ("Dir::Cache::Archives", "cache/archives"),
            ("Dir::Log", "log"),
        ];
        for (option, name) in folders {
            command.arg("-o").arg(format!("{option}={}", self.folder.join(name).display()));
        }
        for option in [
            "Dir::Etc::SourceParts=/dev/null",
            "Dir::Etc::Preferences=/dev/null",
            "Dir::Etc::PreferencesParts=/dev/null",
            "APT::Install-Recommends=false",
            "APT::Install-Suggests=false",
            "APT::Update::Error-Mode=any",
            // Whatever the host allows itself: nothing unsigned.
            "APT::Get::AllowUnauthenticated=false",
            "Acquire::AllowInsecureRepositories=false",
            "Acquire::AllowWeakRepositories=false",
            "Acquire::Retries=2",
            "Dpkg::Use-Pty=false",
        ] {
            command.args(["-o", option]);
        }
        command
    }

    /// Fetches the signed list of packages of the suite.
    pub(super) fn update(&self, progress: &mut Progress<'_>) -> Result<(), Reason> {
        let text = || format!("reading the package list of {}", self.suite);
        progress.begin(&text());
        let ended = client::run(self.command().arg("update"), PACKAGE, self.dbms, progress, text)?;
        let refused = ended.status.success().then(|| words::warned_of_signature(&ended.said()));
        match refused {
            Some(None) => Ok(()),
            _ => Err(self.failed(&ended, "the package list")),
        }
    }

    /// The packages that the resolver would download: these and all that they depend on.
    pub(super) fn resolve(
        &self,
        packages: &[String],
        progress: &mut Progress<'_>,
    ) -> Result<Vec<Download>, Reason> {
        let text = || format!("resolving the dependencies of {}", packages.join(", "));
        let mut command = self.command();
        command.args(["install", "-y", "--print-uris", "--"]).args(packages);
        let ended = client::run(&mut command, PACKAGE, self.dbms, progress, text)?;
        if !ended.status.success() {
            return Err(self.failed(&ended, &packages.join(", ")));
        }
        Ok(ended.output.lines().filter_map(parse_uri).collect())
    }

    /// Downloads and verifies them.
    pub(super) fn download(
        &self,
        packages: &[String],
        downloads: &[Download],
        progress: &mut Progress<'_>,
    ) -> Result<(), Reason> {
        let all: u64 = downloads.iter().map(|download| download.bytes).sum();
        let (count, archives) = (downloads.len(), self.archives());
        let text = || {
            let have = bytes_of(&archives) + bytes_of(&archives.join("partial"));
            let (have, all) = (have / 1_000_000, all / 1_000_000);
            format!("downloading {count} packages of {}: {have} of {all} MB", self.suite)
        };
        progress.begin(&text());
        let mut command = self.command();
        command.args(["install", "-y", "--download-only", "--"]).args(packages);
        let ended = client::run(&mut command, PACKAGE, self.dbms, progress, text)?;
        if ended.status.success() {
            return Ok(());
        }
        Err(self.failed(&ended, &packages.join(", ")))
    }

    fn failed(&self, ended: &CommandOutput, what: &str) -> Reason {
        let context = words::Context {
            client: self.client.display().to_string(),
            suite: self.suite.to_string(),
            what: what.to_string(),
            dbms: self.dbms,
            mirror: self.mirror.uri.clone(),
        };
        words::classify(&context, &ended.how(), &ended.said())
    }
}

/// A line of `--print-uris`: `'URI' FILE BYTES HASH`.
pub(crate) fn parse_uri(line: &str) -> Option<Download> {
    let rest = line.strip_prefix('\'')?;
    let (_, rest) = rest.split_once("' ")?;
    let mut parts = rest.split(' ');
    let file = parts.next()?.to_string();
    let bytes = parts.next()?.parse().ok()?;
    Some(Download { file, bytes })
}

/// Bytes of the files in a folder, not below it; 0 if it cannot be read.
fn bytes_of(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let files = entries.flatten().filter_map(|entry| entry.metadata().ok());
    files.filter(|facts| facts.is_file()).map(|facts| facts.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_have_file_and_size() {
        let line = "'http://m/pool/main/g/glibc/libc6_2.41-12_amd64.deb' \
                    libc6_2.41-12_amd64.deb 2847292 SHA256:00ff";
        let file = "libc6_2.41-12_amd64.deb".to_string();
        assert_eq!(parse_uri(line), Some(Download { file, bytes: 2_847_292 }));
        for line in ["Reading package lists...", "", "'http://m/x.deb' x.deb", "'x"] {
            assert_eq!(parse_uri(line), None, "{line}");
        }
    }
}
