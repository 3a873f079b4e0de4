//! Builds from any suite of Debian.

mod apt;
mod tree;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::client::{self, PackageClients, Progress};
use crate::debian::apt::{Apt, Download};
use crate::error::Reason;
use crate::inspect;
use crate::unpack::{Folder, Links};
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{gather, joined};
use rqps_model::build::Dbms;
use rqps_model::units;

pub(super) use self::apt::{choose_mirror, parse_uri};
pub(super) use self::tree::ASIDE;

// Builds from any suite of Debian: apt-get of this host resolves, downloads and verifies with a
// state of its own, everything is unpacked into one folder of the cache, and programs start
// through the loader of their own release. Nothing is installed, nothing needs root.

/// The packages to fetch.
pub(crate) struct Request<'a> {
    pub(crate) dbms: Dbms,
    /// `trixie`.
    pub(crate) suite: &'a str,
    /// The packages asked for.
    pub(crate) packages: &'a [String],
    pub(crate) clients: &'a PackageClients,
}

/// The unpacked packages.
pub(crate) struct Unpacked {
    /// Name → version of all packages.
    pub(crate) packages: BTreeMap<String, String>,
    /// SHA-256 of the list of their checksums, which is in the tree.
    pub(crate) sha256: String,
}

/// Checks the names of a suite and its packages, because both become part of paths and arguments.
pub(crate) fn check_names(suite: &str, packages: &[String]) -> Result<(), Reason> {
    let good = |text: &str, more: &[u8]| {
        text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
            && text
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || more.contains(&b))
    };
    if !good(suite, b"-") {
        return Err(Reason::Build(format!(
            "{suite:?} is not a Debian suite: write one as in deb:trixie/PACKAGE"
        )));
    }
    match packages.iter().find(|package| !good(package, b"+-.")) {
        None if !packages.is_empty() => Ok(()),
        wrong => Err(Reason::Build(format!(
            "{:?} is not a Debian package: write one or more as in deb:trixie/ONE,TWO",
            wrong.map_or("", String::as_str)
        ))),
    }
}

/// Downloads into `state`, unpacks into `tree`.
pub(crate) fn fetch(
    request: &Request<'_>,
    state: &Path,
    tree: &Path,
    progress: &mut Progress<'_>,
) -> Result<Unpacked, Reason> {
    let Request { dbms, suite, packages, clients } = *request;
    let mirror = apt::find_mirror(clients, suite, dbms, progress)?;
    let apt = Apt::new(&clients.apt_get, state, suite, dbms, mirror)?;
    apt.update(progress)?;
    let downloads = apt.resolve(packages, progress)?;
    apt.download(packages, &downloads, progress)?;
    let unpacked = unpack(request, &apt.archives(), &downloads, tree, progress)?;
    match tree::arrange(tree, dbms)? {
        Some(()) => Ok(unpacked),
        None => Err(Reason::Build(format!(
            "the packages {} and their dependencies contain no {dbms}; use a package such as {}",
            packages.join(", "),
            tree::usual_packages(dbms)
        ))),
    }
}

/// Checksums and unpacks all packages, and writes the list of them.
fn unpack(
    request: &Request<'_>,
    archives: &Path,
    downloads: &[Download],
    tree: &Path,
    progress: &mut Progress<'_>,
) -> Result<Unpacked, Reason> {
    let coordinates = format!("Debian {} {}", request.suite, request.packages.join(", "));
    progress.begin(&format!("unpacking {} packages of {}", downloads.len(), request.suite));
    fs::create_dir_all(tree).map_err(Reason::io("create", tree))?;
    let mut folder = Folder::new(&tree.join(tree::PACKAGES), &coordinates, Links::BelowRoot)?;
    let mut packages = BTreeMap::new();
    let mut list = "package\tversion\tfile\tsha256\tbytes\n".to_string();
    let mut downloads: Vec<&Download> = downloads.iter().collect();
    downloads.sort_by(|a, b| a.file.cmp(&b.file));
    for Download { file, .. } in downloads {
        let path = archives.join(file);
        let sha256 = inspect::sha256(&path, progress)?;
        let bytes = fs::metadata(&path).map_err(Reason::io("look at", &path))?.len();
        let (name, version) = name_and_version(file);
        let _ = writeln!(list, "{name}\t{version}\t{file}\t{sha256}\t{bytes}");
        packages.insert(name, version);
        unpack_one(request, &path, &mut folder, progress)?;
    }
    folder.finish()?;
    let path = tree.join("packages.tsv");
    fs::write(&path, &list).map_err(Reason::io("write", &path))?;
    let sha256 = units::sha256(&list);
    Ok(Unpacked { packages, sha256 })
}

/// dpkg-deb knows the format and its compressions; what it hands out is a tar, which is unpacked
/// with the care that is taken of any package.
fn unpack_one(
    request: &Request<'_>,
    package: &PathBuf,
    folder: &mut Folder<'_>,
    progress: &mut Progress<'_>,
) -> Result<(), Reason> {
    let mut command = child::command(&request.clients.dpkg_deb, ChildTask::Work);
    command.arg("--fsys-tarfile").arg(package);
    let mut child = client::start(&mut command, "dpkg", request.dbms)?;
    let errors = gather(child.stderr.take());
    let unpacked = match child.stdout.take() {
        Some(mut tar) => {
            let done = folder.tar(&mut tar, &tree::place, progress);
            // Zeros may follow the end of the archive.
            done.and_then(|()| {
                std::io::copy(&mut tar, &mut std::io::sink())
                    .map(|_| ())
                    .map_err(Reason::io("read", package))
            })
        }
        None => Ok(()),
    };
    if unpacked.is_err() {
        client::end(&mut child);
    }
    let text = || format!("unpacking {}", package.display());
    let status = client::wait(&mut child, &command, progress, &text);
    let errors = joined(errors);
    // dpkg-deb knows more about a damaged package than the reader of its stream.
    let damaged = |said: &str| {
        let file = package.file_name().unwrap_or_default().to_string_lossy();
        Reason::Build(format!("dpkg-deb cannot unpack the package {file}: {said}; try again"))
    };
    match (status, unpacked) {
        (Ok(status), _) if !status.success() && !errors.trim().is_empty() => {
            Err(damaged(&client::shortened(errors.lines().next().unwrap_or_default())))
        }
        (_, Err(reason)) => Err(reason),
        (Err(reason), _) => Err(reason),
        (Ok(status), Ok(())) if !status.success() => Err(damaged(&status.to_string())),
        (Ok(_), Ok(())) => Ok(()),
    }
}

/// `libc6_2.41-12_amd64.deb`, `zlib1g_1%3a1.3_amd64.deb`: name and version, with its epoch.
pub(crate) fn name_and_version(file: &str) -> (String, String) {
    let mut parts = file.split('_');
    let name = parts.next().unwrap_or_default().to_string();
    let version = parts.next().unwrap_or_default().replace("%3a", ":").replace("%3A", ":");
    (name, version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_tell_the_version() {
        let check = |file: &str, name: &str, version: &str| {
            assert_eq!(name_and_version(file), (name.to_string(), version.to_string()));
        };
        check("libc6_2.41-12+deb13u4_amd64.deb", "libc6", "2.41-12+deb13u4");
        check("zlib1g_1%3a1.3.dfsg-1_amd64.deb", "zlib1g", "1:1.3.dfsg-1");
    }

    #[test]
    fn suites_and_packages_are_words() {
        let check = |suite: &str, packages: &[&str], good: bool| {
            let packages: Vec<String> = packages.iter().map(|p| p.to_string()).collect();
            assert_eq!(check_names(suite, &packages).is_ok(), good, "{suite} {packages:?}");
        };
        check("trixie", &["libstdc++6", "postgresql-17-pgvector"], true);
        check("trixie-backports", &["a"], true);
        check("../etc", &["a"], false);
        check("sid main\ndeb", &["a"], false);
        check("", &["a"], false);
        check("sid", &[], false);
        check("sid", &["-o"], false);
        check("sid", &["a/b"], false);
        check("sid", &[""], false);
    }
}
