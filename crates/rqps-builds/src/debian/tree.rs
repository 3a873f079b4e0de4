//! The folder of a build made of Debian packages.
//!
//! ```text
//! TREE/debian/…              all packages, unpacked into one folder
//! TREE/loader/NAME           the loader of that release, once for each program
//! TREE/bin, sbin, lib, share links into debian/, so that it looks like any installed tree
//! TREE/libsqlite3.so         the same for a library,
//! TREE/start                 and what starts a program that is to load it where libc is older
//! TREE/packages.tsv          file, SHA-256 and bytes of each package
//! ```

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::debian::loader::Loader;
use crate::error::Reason;
use rqps_dbms::spec::{self, Arrangement, DebianLayout};
use rqps_model::build::{Dbms, Version};

/// The folder of all packages.
pub(super) const PACKAGES: &str = "debian";

/// Starts a program of this host with the libraries of the tree.
const LAUNCHER: &str = "start";

/// Parts of packages that no server reads: more than half of the files. Interpreters come along as
/// dependencies of scripts that are not used here.
const LEFT_OUT: [&str; 20] = [
    "etc", "var", "run", "usr/include", "usr/lib/python3", "usr/lib/python3.11",
    "usr/lib/python3.13", "usr/lib/systemd", "usr/share/applications", "usr/share/bash-completion",
    "usr/share/bug", "usr/share/doc", "usr/share/icons", "usr/share/info", "usr/share/lintian",
    "usr/share/locale", "usr/share/man", "usr/share/perl", "usr/share/perl5", "usr/share/python3",
];

/// The path of a package's file in the tree; `None` leaves it out.
pub(super) fn place(path: &Path) -> Option<PathBuf> {
    let left_out = LEFT_OUT.iter().any(|folder| path.starts_with(folder));
    (!left_out).then(|| path.to_path_buf())
}

/// The packages with the usual contents of a tree, for an error.
pub(super) fn usual_packages(dbms: Dbms) -> &'static str {
    spec::of(dbms).and_then(|spec| spec.debian).map_or("none", |debian| debian.usual_package)
}

/// Makes the tree look like an installed one, and its programs start through its own loader.
/// `None` if the packages hold nothing of the DBMS.
pub(super) fn arrange(tree: &Path, dbms: Dbms) -> Result<Option<()>, Reason> {
    let Some(spec) = spec::of(dbms) else { return Ok(None) };
    let Some(DebianLayout { arrangement, .. }) = spec.debian else { return Ok(None) };
    let programs = match arrangement {
        Arrangement::Versioned { lib, share, server } => versioned(tree, lib, share, server)?,
        Arrangement::Usr { servers, programs } => usr(tree, servers, programs)?,
        Arrangement::Library { file } => {
            let Some(name) = spec.library().map(|library| library.file) else { return Ok(None) };
            let found = library(tree, file, name)?;
            if found.is_some() {
                Loader::find(tree, PACKAGES)?.launcher(LAUNCHER)?;
            }
            return Ok(found);
        }
    };
    let Some(programs) = programs else { return Ok(None) };
    let loader = Loader::find(tree, PACKAGES)?;
    for program in programs {
        loader.wrap(&program)?;
    }
    Ok(Some(()))
}

/// The newest version that has a server. It finds its own files from where its binary is, so
/// nothing is moved.
fn versioned(
    tree: &Path,
    lib: &str,
    share: &str,
    server: &str,
) -> Result<Option<Vec<PathBuf>>, Reason> {
    let Ok(entries) = fs::read_dir(tree.join(PACKAGES).join(lib)) else { return Ok(None) };
    let versions = entries.flatten().filter(|entry| entry.path().join(server).is_file());
    let versions = versions.filter_map(|entry| entry.file_name().into_string().ok());
    let newest = versions.max_by_key(|version| Version::new(version.as_str()).numbers());
    let Some(version) = newest else { return Ok(None) };
    let lib = format!("{PACKAGES}/{lib}/{version}");
    link(tree, "bin", &format!("{lib}/bin"))?;
    link(tree, "lib", &format!("{lib}/lib"))?;
    link(tree, "share", &format!("{PACKAGES}/{share}/{version}"))?;
    files(tree, &format!("{lib}/bin"), |_| true).map(Some)
}

/// The folders of `usr`, and of all programs only the DBMS's, since dependencies bring many others.
fn usr(tree: &Path, servers: &[&str], programs: &[&str]) -> Result<Option<Vec<PathBuf>>, Reason> {
    let usr = format!("{PACKAGES}/usr");
    let server = servers.iter().find(|name| {
        fs::symlink_metadata(tree.join(&usr).join("sbin").join(name)).is_ok_and(|f| f.is_file())
    });
    if server.is_none() {
        return Ok(None);
    }
    for name in ["bin", "sbin", "lib", "share"] {
        if tree.join(&usr).join(name).is_dir() {
            link(tree, name, &format!("{usr}/{name}"))?;
        }
    }
    let own = |name: &str| programs.iter().any(|prefix| name.starts_with(prefix));
    let mut programs = files(tree, &format!("{usr}/sbin"), own)?;
    if tree.join(&usr).join("bin").is_dir() {
        programs.extend(files(tree, &format!("{usr}/bin"), own)?);
    }
    Ok(Some(programs))
}

/// A library in a folder of its processor, as `name`.
fn library(tree: &Path, file: &str, name: &str) -> Result<Option<()>, Reason> {
    for folder in ["usr/lib", "lib"] {
        let folder = Path::new(PACKAGES).join(folder);
        let Ok(entries) = fs::read_dir(tree.join(&folder)) else { continue };
        for entry in entries.flatten() {
            let library = folder.join(entry.file_name()).join(file);
            if tree.join(&library).is_file() {
                link(tree, name, &library.to_string_lossy())?;
                return Ok(Some(()));
            }
        }
    }
    Ok(None)
}

fn link(tree: &Path, name: &str, target: &str) -> Result<(), Reason> {
    let place = tree.join(name);
    symlink(target, &place).map_err(Reason::io("link", &place))
}

/// The files of a folder of the tree, relative to the tree, in order of their names.
fn files(tree: &Path, folder: &str, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, Reason> {
    let whole = tree.join(folder);
    let mut found = Vec::new();
    for entry in fs::read_dir(&whole).map_err(Reason::io("read", &whole))? {
        let entry = entry.map_err(Reason::io("read", &whole))?;
        let name = entry.file_name();
        if name.to_str().is_some_and(&wanted) {
            found.push(Path::new(folder).join(name));
        }
    }
    found.sort();
    Ok(found)
}
