//! apt-get with a state of its own: its resolver and its signature checks, for any suite, without
//! touching what is installed on this host.
//!
//! The host's apt configuration is read (proxies, credentials, transports), then everything that
//! has to do with this host's own packages is replaced: sources, lists, status, preferences, hooks.
//! Options: apt.conf(5), sources.list(5), apt-secure(8).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::client::{self, Fetch, PackageClients, Progress, Reason, line_with, shortened};
use rqps_dbms::spec::Machine;
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::CommandOutput;
use rqps_model::build::Dbms;
use rqps_model::safe_path;

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
            safe_path::make_folder(&made).map_err(Reason::io("create", &made))?;
        }
        let files = [
            ("apt.conf", CONFIGURATION.to_string()),
            ("state/status", String::new()),
            ("sources.list", apt.source_line()),
        ];
        for (name, text) in files {
            let path = apt.folder.join(name);
            safe_path::write(&path, text).map_err(Reason::io("write", &path))?;
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
        let refused = ended.status.success().then(|| warned_of_signature(&ended.said()));
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
        let context = Context {
            client: self.client.display().to_string(),
            suite: self.suite.to_string(),
            what: what.to_string(),
            dbms: self.dbms,
            mirror: self.mirror.uri.clone(),
        };
        classify(&context, &ended.how(), &ended.said())
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

// The mirror of Debian packages on this host, and the keys that sign them, from the host's own apt
// configuration.

/// The Debian package of apt-get.
pub(super) const PACKAGE: &str = "apt";

/// A mirror of Debian, and the keys that sign for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mirror {
    /// Its address as apt knows it.
    pub(super) uri: String,
    /// The keyring; `None` for the keys that apt of this host trusts anyway.
    pub(super) keyring: Option<PathBuf>,
}

/// One line for each list of packages that apt of this host uses.
const FORMAT: &str = "$(ORIGIN)|$(LABEL)|$(CODENAME)|$(SUITE)|$(COMPONENT)|$(REPO_URI)";

/// Asks apt for its mirror of Debian.
pub(super) fn find_mirror(
    clients: &PackageClients,
    suite: &str,
    dbms: Dbms,
    progress: &mut Progress<'_>,
) -> Result<Mirror, Reason> {
    let (client, keyring) = (clients.apt_get.as_path(), clients.debian_keyring.as_path());
    let mut command = child::command(client, ChildTask::Fetch);
    command.env("LC_ALL", "C").args(["indextargets", "--format", FORMAT]);
    command.arg("Created-By: Packages");
    let text = || "asking apt for its mirror".to_string();
    let ended = client::run(&mut command, PACKAGE, dbms, progress, text)?;
    if !ended.status.success() {
        let coordinates = "the list of its package sources";
        let asked = Fetch { client, coordinates, dbms, into: Path::new("") };
        let last = ended.errors.lines().last().unwrap_or("no message");
        return Err(asked.failed(&ended.how(), last));
    }
    let uri = choose_mirror(&ended.output, suite).ok_or_else(|| {
        Reason::Setup(format!(
            "this host's apt has no Debian package source, so rqps knows no mirror: add one and \
             run `apt-get update`, or name an installed tree with {dbms}=PATH"
        ))
    })?;
    if keyring.is_file() {
        return Ok(Mirror { uri, keyring: Some(keyring.to_path_buf()) });
    }
    // Debian's own hosts trust its keys without the package that holds all of them.
    if trusts_something(client, dbms, progress)? {
        return Ok(Mirror { uri, keyring: None });
    }
    Err(Reason::Setup(format!(
        "verifying packages needs Debian's keys, but there is no {}; install the Debian package \
         debian-archive-keyring",
        keyring.display()
    )))
}

/// The mirror of the suite itself if the host uses that, else any of Debian's.
pub(crate) fn choose_mirror(listed: &str, suite: &str) -> Option<String> {
    let rows: Vec<Vec<&str>> = listed.lines().map(|line| line.split('|').collect()).collect();
    let rows: Vec<&Vec<&str>> = rows.iter().filter(|row| row.len() == 6).collect();
    // A field that apt does not know, as before the first update, stays as it was written.
    let told = |text: &str| !text.is_empty() && !text.starts_with("$(");
    let debian = |row: &&&Vec<&str>| {
        let (origin, label, component) = (row[0], row[1], row[4]);
        (origin == "Debian" && label == "Debian" || !told(origin))
            && (component == "main" || !told(component))
            && told(row[5])
            && !row[5].starts_with("cdrom:")
    };
    let own = |row: &&&Vec<&str>| row[2] == suite || row[3] == suite;
    let candidates: Vec<&&Vec<&str>> = rows.iter().filter(debian).collect();
    let known = |row: &&&&Vec<&str>| told(row[0]);
    let chosen = candidates
        .iter()
        .find(|row| own(row) && known(row))
        .or_else(|| candidates.iter().find(known))
        .or_else(|| candidates.first());
    chosen.map(|row| row[5].to_string())
}

/// True if apt has trusted keys of its own.
fn trusts_something(
    client: &Path,
    dbms: Dbms,
    progress: &mut Progress<'_>,
) -> Result<bool, Reason> {
    // apt-config is of the same package and lies beside apt-get.
    let config = match client.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => folder.join("apt-config"),
        None => PathBuf::from("apt-config"),
    };
    let mut command = child::command(config, ChildTask::Fetch);
    command.args(["shell", "PARTS", "Dir::Etc::TrustedParts/d"]);
    let text = || "asking apt for its keys".to_string();
    let ended = client::run(&mut command, PACKAGE, dbms, progress, text)?;
    let folder = ended.output.split('\'').nth(1).unwrap_or_default().to_string();
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(false) };
    let key = |path: PathBuf| path.extension().is_some_and(|e| e == "gpg" || e == "asc");
    Ok(entries.flatten().any(|entry| key(entry.path())))
}

// Error messages of apt-get, and their meaning for the user.

/// Words about a signature that is missing, unknown, expired or wrong, the most telling first.
const SIGNATURE: [&str; 9] = [
    "NO_PUBKEY",
    "EXPKEYSIG",
    "REVKEYSIG",
    "BADSIG",
    "invalid signature",
    "signatures couldn't be verified",
    "signatures were invalid",
    "is not signed",
    "GPG error",
];

/// Words of a file that is not what the signed list says.
const CHANGED: [&str; 3] = ["Hash Sum mismatch", "File has unexpected size", "Size mismatch"];

/// Words by which apt says that it cannot reach a mirror.
const NO_MIRROR: [&str; 10] = [
    "Temporary failure resolving", "Could not resolve", "Could not connect", "Unable to connect",
    "Connection failed", "Connection refused", "Connection timed out", "Network is unreachable",
    "connection timed out", "Clearsigned file isn't valid",
];

/// Words about packages that the suite does not have.
const GONE: [&str; 3] =
    ["Unable to locate package", "has no installation candidate", "Couldn't find any package"];

/// The action.
pub(super) struct Context {
    pub(super) client: String,
    pub(super) suite: String,
    /// Packages, or the package list.
    pub(super) what: String,
    pub(super) dbms: Dbms,
    pub(super) mirror: String,
}

/// The line in which apt-get doubts a signature, if there is one: some versions only warn.
fn warned_of_signature(said: &str) -> Option<String> {
    line_with(said, &SIGNATURE).map(shortened)
}

/// The reason why apt-get failed, by its English messages.
pub(super) fn classify(context: &Context, ended: &str, said: &str) -> Reason {
    let Context { client, suite, what, dbms, mirror } = context;
    let (client, dbms) = (client.clone(), *dbms);
    let with = |words: &[&str]| line_with(said, words).map(shortened);
    let no_release = said.lines().any(|line| {
        line.contains("does not have a Release file")
            || line.contains("no longer has a Release file")
    });
    // A mirror that cannot be reached has no Release file either.
    if let Some(said) = with(&NO_MIRROR) {
        return Reason::Network { client, said, dbms };
    }
    if no_release {
        return Reason::Build(format!(
            "the mirror {mirror} has no suite {suite} (any more): check its name; for a suite \
             moved to the archive, make the archive the mirror of this host's apt; or name an \
             installed tree with {dbms}=PATH"
        ));
    }
    if let Some(said) = with(&SIGNATURE) {
        return Reason::Build(format!(
            "apt does not trust the package list of Debian {suite}: {said}; rqps kept no files. \
             If this host's keys are older than the suite, update the Debian package \
             debian-archive-keyring; otherwise do not trust the mirror"
        ));
    }
    if let Some(said) = with(&GONE) {
        return Reason::Build(format!(
            "{said}: Debian {suite} has no such package for this machine (any more); name another \
             suite with {dbms}=deb:SUITE/PACKAGE, or an installed tree with {dbms}=PATH"
        ));
    }
    if said.contains("unmet dependencies") || said.contains("unmet dependency") {
        let lines: Vec<&str> = said.lines().filter(|line| line.contains("Depends:")).collect();
        let said = shortened(&lines.join("; "));
        return Reason::Build(format!(
            "apt cannot resolve {what} of Debian {suite}: {said}; a suite in development can stay \
             in such a state for days: try again later, or another suite"
        ));
    }
    if let Some(said) = with(&CHANGED).or_else(|| with(&["404  Not Found"])) {
        return Reason::Build(format!(
            "the mirror of Debian {suite} does not match its package list: {said}; it is probably \
             updating: try again in a few minutes"
        ));
    }
    let last = said.lines().rev().find(|line| line.starts_with("E: "));
    let last = last.or_else(|| said.lines().last()).unwrap_or("no message");
    Reason::ClientFailed {
        client,
        ended: ended.to_string(),
        coordinates: format!("{what} of Debian {suite}"),
        said: shortened(last),
    }
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

    const HOST: &str = "Other|Other|any|any|main|https://other/apt/\n\
        Debian|Debian-Security|bookworm-security|stable-security|main|http://m/debian-security/\n\
        Debian|Debian|bookworm|stable|contrib|http://c/debian/\n\
        Debian|Debian|bookworm|stable|main|http://m/debian/\n\
        Debian|Debian|sid|unstable|main|http://s/debian/\n";

    #[test]
    fn the_mirror_is_the_hosts_own() {
        let check = |listed: &str, suite: &str, expected: Option<&str>| {
            assert_eq!(choose_mirror(listed, suite).as_deref(), expected, "{suite}");
        };
        check(HOST, "trixie", Some("http://m/debian/"));
        check(HOST, "sid", Some("http://s/debian/"));
        check(HOST, "unstable", Some("http://s/debian/"));
        check("Ubuntu|Ubuntu|noble|noble|main|http://u/ubuntu/\n", "sid", None);
        check("", "sid", None);
        let never_updated = "$(ORIGIN)|$(LABEL)|$(CODENAME)|$(SUITE)|main|http://m/debian/\n";
        check(never_updated, "sid", Some("http://m/debian/"));
    }

    fn check(said: &str, words: &[&str]) {
        let context = Context {
            client: "apt-get".to_string(),
            suite: "trixie".to_string(),
            what: "mariadb-server-core".to_string(),
            dbms: Dbms::Mariadb,
            mirror: "http://mirror/debian/".to_string(),
        };
        let text = classify(&context, "exited with 100", said).to_string();
        for word in words {
            assert!(text.contains(word), "{word:?} is not in: {text}");
        }
    }

    #[test]
    fn the_words_of_apt_are_understood() {
        let release = "Err:2 http://mirror/debian trixy Release\n  404  Not Found\n\
                       E: The repository 'http://mirror/debian trixy Release' does not have a \
                       Release file.";
        check(release, &["trixie", "http://mirror/debian/", "no suite"]);
        let key = "W: GPG error: http://mirror/debian sid InRelease: The following signatures \
                   couldn't be verified because the public key is not available: NO_PUBKEY 6ED0E7\n\
                   E: The repository 'http://mirror/debian sid InRelease' is not signed.";
        check(key, &["NO_PUBKEY 6ED0E7", "debian-archive-keyring"]);
        check(
            "E: Unable to locate package mariadb-x",
            &["mariadb-x", "Debian trixie has no such package"],
        );
        let unmet = "The following packages have unmet dependencies:\n \
                     a : Depends: b (= 1) but it is not installable\nE: Unable to correct problems";
        check(unmet, &["a : Depends: b (= 1)"]);
        let refused = "Err:1 http://mirror/debian trixie InRelease\n  Could not connect to \
                       127.0.0.1:9 (127.0.0.1). - connect (111: Connection refused)\n\
                       E: The repository 'x' does not have a Release file.";
        check(refused, &["could not reach", "Connection refused"]);
        check("E: Failed to fetch http://m/a.deb  404  Not Found", &["again", "404"]);
        check("E: Failed to fetch http://m/a.deb  Hash Sum mismatch", &["again", "Hash Sum"]);
        check("E: Could not get lock", &["exited with 100", "Could not get lock"]);
        check("", &["no message"]);
    }

    #[test]
    fn a_warning_of_a_signature_is_heard() {
        let said = "W: An error occurred during the signature verification. GPG error: x: \
                    EXPKEYSIG 1234 Debian";
        assert!(warned_of_signature(said).is_some());
        assert_eq!(warned_of_signature("Reading package lists..."), None);
    }
}
