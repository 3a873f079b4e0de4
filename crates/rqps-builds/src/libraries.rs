//! Finds shared libraries that a program needs and this host lacks, with their Debian packages.
//!
//! Asked only when a program does not start. The search is that of ld.so(8), without the
//! environment: DT_RPATH of the file and of those that need it, DT_RUNPATH, the cache of ldconfig,
//! the system's own folders.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::elf::{self, Elf};
use rqps_host::child::{self, ChildTask};
use rqps_host::command_output;

/// The default folders of libraries; the multiarch folders are Debian's.
const SYSTEM_FOLDERS: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The libraries that the program needs, itself or through another library, and that cannot be
/// found: name and advice. Empty if the file is no ELF file.
pub(super) fn missing(program: &Path) -> Vec<(String, String)> {
    let found = search(program, &host_libraries());
    found.into_iter().map(|name| (name.clone(), advice(&name))).collect()
}

fn search(program: &Path, host: &BTreeMap<String, Vec<PathBuf>>) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    let mut seen = BTreeSet::new();
    // A file and the RPATH folders of those through which it was reached.
    let mut open: Vec<(PathBuf, Vec<PathBuf>)> = vec![(program.to_path_buf(), Vec::new())];
    while let Some((path, inherited)) = open.pop() {
        let Ok(Some(elf)) = elf::read(&path) else { continue };
        let origin = path.parent().unwrap_or(Path::new("/"));
        let expand = |folders: &[String]| -> Vec<PathBuf> {
            let origin = origin.to_string_lossy();
            let expanded = folders.iter();
            expanded
                .map(|f| f.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin).into())
                .collect()
        };
        // DT_RPATH is ignored in a file that has a DT_RUNPATH.
        let mut rpath = inherited.clone();
        if elf.runpath.is_empty() {
            rpath.splice(0..0, expand(&elf.rpath));
        }
        let mut folders = if elf.runpath.is_empty() { rpath.clone() } else { Vec::new() };
        folders.extend(expand(&elf.runpath));
        for name in &elf.needed {
            // The loader is not searched for: the kernel started it by its path.
            if name.starts_with("ld-linux") || !seen.insert(name.clone()) {
                continue;
            }
            match find(name, &elf, &folders, host) {
                Some(found) => open.push((found, rpath.clone())),
                None => {
                    missing.insert(name.clone());
                }
            }
        }
    }
    missing
}

fn find(
    name: &str,
    by: &Elf,
    folders: &[PathBuf],
    host: &BTreeMap<String, Vec<PathBuf>>,
) -> Option<PathBuf> {
    let own = folders.iter().map(|folder| folder.join(name));
    let cached = host.get(name).into_iter().flatten().cloned();
    let system = SYSTEM_FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    // A library for another processor is passed over, as the loader does.
    own.chain(cached)
        .chain(system)
        .find(|path| matches!(elf::read(path), Ok(Some(elf)) if elf.machine == by.machine))
}

/// Name → paths, from `ldconfig -p`; empty without it.
fn host_libraries() -> BTreeMap<String, Vec<PathBuf>> {
    // Debian keeps it out of the path of ordinary users.
    for program in ["ldconfig", "/sbin/ldconfig", "/usr/sbin/ldconfig"] {
        let mut command = child::command(program, ChildTask::Work);
        command.arg("-p");
        if let Ok(answer) = command_output::run(command)
            && answer.success()
        {
            return parse_ldconfig(&answer.output);
        }
    }
    BTreeMap::new()
}

/// Lines such as `libz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1`.
pub(super) fn parse_ldconfig(text: &str) -> BTreeMap<String, Vec<PathBuf>> {
    let mut libraries: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for line in text.lines() {
        if let Some((left, path)) = line.split_once(" => ")
            && let Some(name) = left.split_whitespace().next()
        {
            libraries.entry(name.to_string()).or_default().push(PathBuf::from(path.trim()));
        }
    }
    libraries
}

/// Library and Debian package, where the one does not follow from the other.
const PACKAGES: &[(&str, &str)] = &[
    ("libaio.so.1", "libaio1"),
    ("libatomic.so.1", "libatomic1"),
    ("libbz2.so.1.0", "libbz2-1.0"),
    ("libcrypt.so.1", "libcrypt1"),
    ("libcurl.so.4", "libcurl4"),
    ("libedit.so.2", "libedit2"),
    ("libgcc_s.so.1", "libgcc-s1"),
    ("libgssapi_krb5.so.2", "libgssapi-krb5-2"),
    ("libkrb5.so.3", "libkrb5-3"),
    ("libldap-2.4.so.2", "libldap-2.4-2, last in Debian 11"),
    ("libldap-2.5.so.0", "libldap-2.5-0"),
    ("liblz4.so.1", "liblz4-1"),
    ("liblzma.so.5", "liblzma5"),
    ("libncurses.so.5", "libncurses5, last in Debian 12"),
    ("libncurses.so.6", "libncurses6"),
    ("libnuma.so.1", "libnuma1"),
    ("libpam.so.0", "libpam0g"),
    ("libpcre2-8.so.0", "libpcre2-8-0"),
    ("libpq.so.5", "libpq5"),
    ("libreadline.so.7", "libreadline7, last in Debian 10"),
    ("libreadline.so.8", "libreadline8"),
    ("libsasl2.so.2", "libsasl2-2"),
    ("libsnappy.so.1", "libsnappy1v5"),
    ("libstdc++.so.6", "libstdc++6"),
    ("libsystemd.so.0", "libsystemd0"),
    ("libtinfo.so.5", "libtinfo5, last in Debian 12"),
    ("libtinfo.so.6", "libtinfo6"),
    ("liburing.so.2", "liburing2"),
    ("libuuid.so.1", "libuuid1"),
    ("libxml2.so.2", "libxml2"),
    ("libxslt.so.1", "libxslt1.1"),
    ("libz.so.1", "zlib1g"),
    ("libzstd.so.1", "libzstd1"),
];

/// The package to install for a library.
fn advice(name: &str) -> String {
    if name == "libaio.so.1" {
        return "install the Debian package libaio1; since Debian 13 it is libaio1t64 with the file \
                libaio.so.1t64: make a link libaio.so.1 to it"
            .to_string();
    }
    let package = PACKAGES.iter().find(|(library, _)| *library == name);
    let package = package.map(|(_, package)| package.to_string()).or_else(|| by_rule(name));
    match package {
        Some(package) => format!("install the Debian package {package}"),
        None => format!("search for its Debian package with `apt-file search {name}`"),
    }
}

/// Families of libraries whose packages carry the version.
fn by_rule(name: &str) -> Option<String> {
    let (stem, version) = name.split_once(".so.")?;
    match (stem, version) {
        ("libssl" | "libcrypto", "1.1") => Some("libssl1.1, last in Debian 11".to_string()),
        ("libssl" | "libcrypto", "1.0.0" | "1.0.2") => Some(format!("libssl{version}")),
        ("libssl" | "libcrypto", "3") => Some("libssl3".to_string()),
        (stem, version) if stem.starts_with("libicu") => Some(format!("libicu{version}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf::tests::made;

    #[test]
    fn advice_names_the_package() {
        let check = |library: &str, words: &str| {
            let advice = advice(library);
            assert!(advice.contains(words), "{library}: {advice}");
        };
        check("libaio.so.1", "libaio1;");
        check("libnuma.so.1", "package libnuma1");
        check("libtinfo.so.5", "libtinfo5");
        check("libcrypto.so.1.1", "libssl1.1");
        check("libicuuc.so.72", "libicu72");
        check("libxml2.so.2", "libxml2");
        check("libodd.so.9", "apt-file search libodd.so.9");
    }

    #[test]
    fn ldconfig_is_understood() {
        let text = "2 libs found in cache `/etc/ld.so.cache'\n\
                    \tlibz.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libz.so.1\n\
                    \tlibz.so.1 (libc6) => /lib/i386-linux-gnu/libz.so.1\n";
        let libraries = parse_ldconfig(text);
        assert_eq!(libraries["libz.so.1"].len(), 2);
        assert_eq!(libraries["libz.so.1"][0], Path::new("/lib/x86_64-linux-gnu/libz.so.1"));
    }

    #[test]
    fn libraries_are_searched_as_the_loader_does() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("bin")).unwrap();
        std::fs::create_dir_all(root.join("lib")).unwrap();
        let write = |name: &str, needed: &[&str], runpath: &str| {
            std::fs::write(root.join(name), made(b"GCC\0", needed, runpath)).unwrap();
        };
        let needed = ["libnear.so.1", "libhost.so.1", "libgone.so.1", "ld-linux-x86-64.so.2"];
        write("bin/server", &needed, "$ORIGIN/../lib");
        // RUNPATH is not inherited: what libnear needs is not searched for in lib.
        write("lib/libnear.so.1", &["libbeside.so.1", "libgone2.so.1"], "");
        write("lib/libbeside.so.1", &[], "");
        write("libhost.so.1", &[], "");
        let host = BTreeMap::from([("libhost.so.1".to_string(), vec![root.join("libhost.so.1")])]);
        let missing: Vec<String> = search(&root.join("bin/server"), &host).into_iter().collect();
        assert_eq!(missing, ["libbeside.so.1", "libgone.so.1", "libgone2.so.1"]);
    }

    #[test]
    fn what_runs_lacks_nothing() {
        assert_eq!(missing(Path::new("/proc/self/exe")), []);
        assert_eq!(missing(Path::new("/etc/passwd")), []);
    }
}
