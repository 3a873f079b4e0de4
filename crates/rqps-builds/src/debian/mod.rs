//! Builds from any suite of Debian.

mod apt;

pub(super) use crate::debian::apt::{choose_mirror, parse_uri};

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::client::{self, PackageClients, Progress, Reason};
use crate::debian::apt::{Apt, Download};
use crate::inspect;
use crate::unpack::{Folder, Links};
use rqps_dbms::spec::{self, Arrangement, DebianLayout};
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output::{self, gather, joined};
use rqps_model::build::{Dbms, Version};
use rqps_model::{safe_path, units};

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
    match arrange(tree, dbms)? {
        Some(()) => Ok(unpacked),
        None => Err(Reason::Build(format!(
            "the packages {} and their dependencies contain no {dbms}; use a package such as {}",
            packages.join(", "),
            usual_packages(dbms)
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
    safe_path::make_folder(tree).map_err(Reason::io("create", tree))?;
    let mut folder = Folder::new(&tree.join(PACKAGES), &coordinates, Links::BelowRoot)?;
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
    safe_path::write(&path, &list).map_err(Reason::io("write", &path))?;
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
        Some(tar) => folder.tar(tar, &place, progress),
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

// The folder of a build made of Debian packages.
//
// ```text
// TREE/debian/…              all packages, unpacked into one folder
// TREE/loader/NAME           the loader of that release, once for each program
// TREE/bin, sbin, lib, share links into debian/, so that it looks like any installed tree
// TREE/libsqlite3.so         the same for a library,
// TREE/start                 and what starts a program that is to load it where libc is older
// TREE/packages.tsv          file, SHA-256 and bytes of each package
// ```

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

// Programs of another release of Debian start through the loader of that release.
//
// The kernel starts a program with the loader that is named in it, this host's, and that refuses a
// program made for a newer libc. So each program of a build is put aside as `NAME.elf`, and in its
// place goes a script that starts it through the loader among the build's own packages, with the
// build's own libraries (ld.so(8)). Whatever starts `bin/postgres` by its path, initdb included,
// need not know; the script ends in exec, so the process, its parent and its accounts are those of
// the server.

/// The ending of a program that was put aside.
pub(crate) const ASIDE: &str = ".elf";

/// Folder in a tree with the loader under the name of each program, so that the kernel, ps and perf
/// call the process by that name and not `ld-linux-x86-64`.
const LOADERS: &str = "loader";

/// The loader and the libraries of a build.
pub(super) struct Loader {
    /// The root of the tree; all other paths are relative to it.
    root: PathBuf,
    program: PathBuf,
    libraries: Vec<PathBuf>,
    /// Since glibc 2.33 the loader can tell a program the name under which it was called.
    tells_name: bool,
}

impl Loader {
    /// Finds the loader among the packages in `packages`, a folder of the tree `root`.
    pub(super) fn find(root: &Path, packages: &str) -> Result<Loader, Reason> {
        let mut libraries = Vec::new();
        for folder in ["usr/lib", "lib"] {
            let folder = Path::new(packages).join(folder);
            libraries.extend(subfolders(&root.join(&folder)).map(|name| folder.join(name)));
            if root.join(&folder).is_dir() {
                libraries.push(folder);
            }
        }
        let program = libraries.iter().find_map(|folder| loader_in(root, folder));
        let program = program.ok_or_else(|| {
            Reason::Build(format!(
                "{} has no loader (ld-linux-….so): its packages do not depend on libc6, so they \
                 are not Debian programs",
                root.display()
            ))
        })?;
        let tells_name = tells_name(&root.join(&program));
        Ok(Loader { root: root.to_path_buf(), program, libraries, tells_name })
    }

    /// Puts a script in the place of the program at `path`, relative to the root. What is no ELF
    /// file is left as it is.
    fn wrap(&self, path: &Path) -> Result<(), Reason> {
        let whole = self.root.join(path);
        let metadata = fs::symlink_metadata(&whole).map_err(Reason::io("look at", &whole))?;
        if !metadata.is_file() || !is_elf(&whole)? {
            return Ok(());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let aside = whole.with_file_name(format!("{name}{ASIDE}"));
        safe_path::rename(&whole, &aside).map_err(Reason::io("rename", &whole))?;
        self.name_loader(&name)?;
        write_script(&whole, &self.script(path, &name))
    }

    /// Makes a script `name` in the root that starts any program with these libraries: a program of
    /// this host that is to load a library of the build.
    fn launcher(&self, name: &str) -> Result<(), Reason> {
        self.name_loader(name)?;
        let script = format!(
            "#!/bin/sh\n\
             # Starts a program of this host with the loader and the libraries of this build.\n\
             root=$(CDPATH= cd -P -- \"${{0%/*}}\" && pwd -P) || exit 127\n\
             exec \"$root/{LOADERS}/{name}\" --inhibit-cache \\\n  \
             --library-path \"{}\" \\\n  \
             \"$@\"\n",
            self.folders()
        );
        write_script(&self.root.join(name), &script)
    }

    /// The loader under the name of a program.
    fn name_loader(&self, name: &str) -> Result<(), Reason> {
        let loaders = self.root.join(LOADERS);
        safe_path::make_folder(&loaders).map_err(Reason::io("create", &loaders))?;
        let named = loaders.join(name);
        if fs::symlink_metadata(&named).is_err() {
            let target = Path::new("..").join(&self.program);
            symlink(&target, &named).map_err(Reason::io("link", &named))?;
        }
        Ok(())
    }

    /// The folders of libraries as a script spells them.
    fn folders(&self) -> String {
        let folders = self.libraries.iter().map(|folder| format!("$root/{}", folder.display()));
        folders.collect::<Vec<String>>().join(":")
    }

    /// The script finds the root from where it lies itself: a build may be moved.
    fn script(&self, path: &Path, name: &str) -> String {
        let depth = path.components().count().saturating_sub(1);
        let up = vec![".."; depth].join("/");
        let named = if self.tells_name {
            format!(" \\\n  --argv0 \"$here/{name}\"")
        } else {
            String::new()
        };
        format!(
            "#!/bin/sh\n\
             # Starts {name} with the loader and the libraries of its own release.\n\
             here=$(CDPATH= cd -P -- \"${{0%/*}}\" && pwd -P) || exit 127\n\
             root=$(CDPATH= cd -P -- \"$here/{up}\" && pwd -P) || exit 127\n\
             exec \"$root/{LOADERS}/{name}\" --inhibit-cache{named} \\\n  \
             --library-path \"{}\" \\\n  \
             \"$here/{name}{ASIDE}\" \"$@\"\n",
            self.folders()
        )
    }
}

fn write_script(path: &Path, text: &str) -> Result<(), Reason> {
    safe_path::write(path, text).map_err(Reason::io("write", path))?;
    let mode = Permissions::from_mode(0o755);
    fs::set_permissions(path, mode).map_err(Reason::io("chmod", path))
}

/// Names of the folders of libraries in `folder`, those of the processor: `x86_64-linux-gnu`.
fn subfolders(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).ok().into_iter().flatten().flatten();
    let names = entries.filter(|entry| entry.path().is_dir());
    let names = names.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| name.contains("-linux-gnu"))
}

/// The loader in a folder of libraries, relative to the root.
fn loader_in(root: &Path, folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(root.join(folder)).ok()?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let name = names.filter(|name| name.starts_with("ld-linux")).min()?;
    Some(folder.join(name))
}

/// True if the loader supports `--argv0`, which older ones do not: its help tells.
fn tells_name(loader: &Path) -> bool {
    let Ok(mut command) = child::stranger(loader) else { return false };
    command.arg("--help");
    command_output::run_stranger(command).is_ok_and(|answer| answer.output.contains("--argv0"))
}

fn is_elf(path: &Path) -> Result<bool, Reason> {
    use std::io::Read;
    let mut start = Vec::new();
    let file = fs::File::open(path).map_err(Reason::io("open", path))?;
    file.take(4).read_to_end(&mut start).map_err(Reason::io("read", path))?;
    Ok(start == b"\x7fELF")
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

#[cfg(test)]
mod tree_tests {
    use std::process::Command;

    use super::*;

    /// A tree with this host's own shell, loader and libc as if they were a package's; `None` where
    /// the loader has another name.
    fn tree(root: &Path) -> Option<Loader> {
        let names = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];
        let loader = names.iter().map(Path::new).find(|path| path.exists())?;
        let folder = loader.canonicalize().unwrap();
        let folder = folder.parent().unwrap();
        let libraries = root.join("packages/usr/lib/any-linux-gnu");
        fs::create_dir_all(&libraries).unwrap();
        fs::create_dir_all(root.join("packages/usr/bin")).unwrap();
        fs::copy(loader, libraries.join(loader.file_name().unwrap())).unwrap();
        fs::copy(folder.join("libc.so.6"), libraries.join("libc.so.6")).unwrap();
        fs::copy("/bin/sh", root.join("packages/usr/bin/server")).unwrap();
        Some(Loader::find(root, "packages").unwrap())
    }

    fn said(program: &Path, args: &[&str]) -> String {
        // Another test may still hold the script open between its fork and exec.
        for _ in 0..100 {
            match Command::new(program).args(args).output() {
                Ok(output) => return String::from_utf8_lossy(&output.stdout).trim().to_owned(),
                Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
            }
        }
        panic!("{} cannot be started", program.display());
    }

    #[test]
    fn programs_start_through_their_own_loader_under_their_own_name() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let Some(loader) = tree(&root) else { return };
        let program = Path::new("packages/usr/bin/server");
        loader.wrap(program).unwrap();
        loader.launcher("start").unwrap();
        fs::write(root.join("packages/usr/bin/script"), "#!/bin/sh\necho as it was\n").unwrap();
        loader.wrap(Path::new("packages/usr/bin/script")).unwrap();

        // A build may be moved, and reached through links.
        let moved = folder.path().join("moved to");
        fs::create_dir(&moved).unwrap();
        for name in ["packages", LOADERS, "start"] {
            fs::rename(root.join(name), moved.join(name)).unwrap();
        }
        symlink("packages/usr/bin", moved.join("bin")).unwrap();
        let server = moved.join("bin/server");
        // As initdb starts postgres: by its path, with arguments.
        assert_eq!(
            said(&server, &["-c", "read n < /proc/$$/comm; echo $n \"$1\"", "x", "a b"]),
            "server a b"
        );
        let maps = said(&server, &["-c", "while read l; do echo \"$l\"; done < /proc/$$/maps"]);
        let own = moved.canonicalize().unwrap().join("packages/usr/lib");
        let libc = maps.lines().find(|line| line.contains("libc.so")).unwrap();
        assert!(libc.contains(&*own.to_string_lossy()), "{libc}");
        assert!(moved.join("bin/server.elf").is_file());
        let started = said(&moved.join("start"), &["/bin/sh", "-c", "echo $1", "x", "hello"]);
        assert_eq!(started, "hello");
        let script = fs::read_to_string(moved.join("bin/script")).unwrap();
        assert!(script.contains("as it was"), "a script needs no loader");
    }

    #[test]
    fn packages_without_a_libc_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("packages/usr/lib/any-linux-gnu")).unwrap();
        let found = Loader::find(folder.path(), "packages");
        assert!(found.err().unwrap().to_string().contains("has no loader"));
    }
}
