//! The mirror of Debian packages on this host, and the keys that sign them, from the host's own apt
//! configuration.

use std::path::{Path, PathBuf};

use crate::client::{self, Fetch};
use crate::clients::PackageClients;
use crate::error::Reason;
use crate::progress::Progress;
use rqps_host::child::{self, ChildTask};
use rqps_model::build::Dbms;

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
pub(super) fn find(
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
    let uri = choose(&ended.output, suite).ok_or_else(|| {
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
pub(crate) fn choose(listed: &str, suite: &str) -> Option<String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "Other|Other|any|any|main|https://other/apt/\n\
        Debian|Debian-Security|bookworm-security|stable-security|main|http://m/debian-security/\n\
        Debian|Debian|bookworm|stable|contrib|http://c/debian/\n\
        Debian|Debian|bookworm|stable|main|http://m/debian/\n\
        Debian|Debian|sid|unstable|main|http://s/debian/\n";

    #[test]
    fn the_mirror_is_the_hosts_own() {
        let check = |listed: &str, suite: &str, expected: Option<&str>| {
            assert_eq!(choose(listed, suite).as_deref(), expected, "{suite}");
        };
        check(HOST, "trixie", Some("http://m/debian/"));
        check(HOST, "sid", Some("http://s/debian/"));
        check(HOST, "unstable", Some("http://s/debian/"));
        check("Ubuntu|Ubuntu|noble|noble|main|http://u/ubuntu/\n", "sid", None);
        check("", "sid", None);
        let never_updated = "$(ORIGIN)|$(LABEL)|$(CODENAME)|$(SUITE)|main|http://m/debian/\n";
        check(never_updated, "sid", Some("http://m/debian/"));
    }
}
